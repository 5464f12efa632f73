#define _GNU_SOURCE			/* MSG_CMSG_CLOEXEC */
#include "gpu/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_MS = 20,			/* how late an interrupt may be noticed */
	MAGIC = 0x4d524750,
};

#define BODY_MAX ((uint64_t)1 << 30)
#define NO_STRING UINT32_MAX

struct header {
	uint32_t magic;
	uint16_t version, kind;
	uint64_t bytes;
};

/* ---- writing ---- */

void wire_put(struct wire *w, const void *p, size_t n)
{
	if (w->cap - w->len < n) {
		size_t cap = (w->len + n) * 2;
		unsigned char *grown = arena_alloc(w->arena, cap);

		if (w->len)
			memcpy(grown, w->data, w->len);
		w->data = grown;
		w->cap = cap;
	}
	if (n)
		memcpy(w->data + w->len, p, n);
	w->len += n;
}

void wire_put_u32(struct wire *w, uint32_t x)
{
	wire_put(w, &x, sizeof(x));
}

/* With the NUL, so that the reader can use the string in place. */
void wire_put_str(struct wire *w, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	wire_put_u32(w, s ? (uint32_t)n : NO_STRING);
	if (s)
		wire_put(w, s, n + 1);
}

/* ---- reading ---- */

const void *wire_get(struct wire *w, size_t n)
{
	const void *p = w->data + w->pos;

	if (w->bad || w->len - w->pos < n) {
		w->bad = true;
		return NULL;
	}
	w->pos += n;
	return p;
}

uint32_t wire_get_u32(struct wire *w)
{
	const void *p = wire_get(w, sizeof(uint32_t));
	uint32_t x = 0;

	if (p)
		memcpy(&x, p, sizeof(x));
	return x;
}

const char *wire_get_str(struct wire *w)
{
	uint32_t n = wire_get_u32(w);
	const char *s;

	if (w->bad || n == NO_STRING)
		return NULL;
	s = wire_get(w, (size_t)n + 1);
	if (!s || memchr(s, '\0', (size_t)n + 1) != s + n) {
		w->bad = true;
		return NULL;
	}
	return s;
}

int wire_get_count(struct wire *w, size_t least)
{
	uint32_t n = wire_get_u32(w);

	if (w->bad || n > (w->len - w->pos) / least) {
		w->bad = true;
		return 0;
	}
	return (int)n;
}

int wire_get_below(struct wire *w, int end)
{
	uint32_t x = wire_get_u32(w);

	if (x >= (uint32_t)end)
		w->bad = true;
	return w->bad ? 0 : (int)x;
}

/* ---- frames ---- */

double wire_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Wait until the socket is ready for `events`. The signal handler that sets the flag of `stop` may run
 * in another thread, where it does not interrupt poll(): so look at the flag from time to time. */
static enum wire_status await(int socket, short events, double deadline, const struct stop *stop)
{
	for (;;) {
		struct pollfd p = { .fd = socket, .events = events };
		double left = deadline ? deadline - wire_clock() : 1;
		int n, tick = stop || deadline ? TICK_MS : -1;

		if (stop_asked(stop))
			return WIRE_STOPPED;
		if (left <= 0)
			return WIRE_LATE;
		n = poll(&p, 1, left * 1e3 < TICK_MS && tick > 0 ? (int)(left * 1e3) + 1 : tick);
		if (n > 0)
			return WIRE_OK;	/* or closed, which the following call notices */
		if (n < 0 && errno != EINTR)
			return WIRE_CLOSED;
	}
}

/* One sendmsg, with the descriptor if there is one. */
static ssize_t send_some(int socket, const void *p, size_t n, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control = { { 0 } };
	struct iovec io = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = control.space;
		m.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static enum wire_status send_all(int socket, const void *p, size_t n, int fd, double deadline, const struct stop *stop)
{
	for (size_t done = 0; done < n; ) {
		enum wire_status status = await(socket, POLLOUT, deadline, stop);
		ssize_t sent;

		if (status)
			return status;
		sent = send_some(socket, (const char *)p + done, n - done, done ? -1 : fd);
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return WIRE_CLOSED;
		done += sent > 0 ? (size_t)sent : 0;
	}
	return WIRE_OK;
}

enum wire_status wire_send(int socket, int kind, const struct wire *body, int fd,
	double deadline, const struct stop *stop)
{
	struct header h = { MAGIC, WIRE_VERSION, (uint16_t)kind, body ? body->len : 0 };
	enum wire_status status = send_all(socket, &h, sizeof(h), fd, deadline, stop);

	if (status || !h.bytes)
		return status;
	return send_all(socket, body->data, body->len, -1, deadline, stop);
}

/* One recvmsg. A descriptor that was sent along replaces *fd, which is closed. */
static ssize_t receive_some(int socket, void *p, size_t n, int *fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control;
	struct iovec io = { .iov_base = p, .iov_len = n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	ssize_t got = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	for (struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		if (*fd >= 0)
			close(*fd);
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	}
	return got;
}

static enum wire_status receive_all(int socket, void *p, size_t n, int *fd, double deadline, const struct stop *stop)
{
	for (size_t done = 0; done < n; ) {
		enum wire_status status = await(socket, POLLIN, deadline, stop);
		ssize_t got;

		if (status)
			return status;
		got = receive_some(socket, (char *)p + done, n - done, fd);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return WIRE_CLOSED;
		done += got > 0 ? (size_t)got : 0;
	}
	return WIRE_OK;
}

enum wire_status wire_receive(int socket, struct frame *f, struct arena *a, double deadline, const struct stop *stop)
{
	enum wire_status status;
	struct header h;

	*f = (struct frame){ .fd = -1 };
	status = receive_all(socket, &h, sizeof(h), &f->fd, deadline, stop);
	if (status)
		return status;
	if (h.magic != MAGIC || h.version != WIRE_VERSION || h.bytes > BODY_MAX)
		return WIRE_GARBLED;
	f->kind = h.kind;
	f->body.data = arena_alloc(a, h.bytes);
	f->body.len = h.bytes;
	return receive_all(socket, f->body.data, h.bytes, &f->fd, deadline, stop);
}
