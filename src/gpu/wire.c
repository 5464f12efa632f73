#define _GNU_SOURCE			/* MSG_CMSG_CLOEXEC */
#include "gpu/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TICK_MS = 20,			/* how late an interrupt may be noticed */
	MAGIC = 0x4d524750,
};

#define BODY_MAX ((uint64_t)1 << 30)

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

/* ---- frames ---- */

/* Wait until the socket is ready for `events`. The signal handler that sets the flag of `stop` may run
 * in another thread, where it does not interrupt poll(): so look at the flag from time to time. */
static enum wire_status await(int socket, short events, double deadline, const struct stop *stop)
{
	for (;;) {
		struct pollfd p = { .fd = socket, .events = events };
		double left = deadline ? deadline - clock_seconds() : 1;
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

/* One sendmsg or recvmsg. *fd is sent along unless it is -1; a descriptor that comes along replaces *fd, which is
 * closed. */
static ssize_t transfer_some(int socket, bool sending, void *p, size_t n, int *fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control = { { 0 } };
	struct iovec io = { .iov_base = p, .iov_len = n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	ssize_t got;

	if (sending) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), fd, sizeof(*fd));
		m.msg_controllen = *fd < 0 ? 0 : m.msg_controllen;
		return sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	got = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	for (c = got < 0 ? NULL : CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		if (*fd >= 0)
			close(*fd);
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	}
	return got;
}

/* All n bytes, in either direction; the descriptor goes with the first of them. */
static enum wire_status transfer(int socket, bool sending, void *p, size_t n, int *fd, double deadline,
	const struct stop *stop)
{
	for (size_t done = 0; done < n; ) {
		enum wire_status status = await(socket, sending ? POLLOUT : POLLIN, deadline, stop);
		ssize_t some;

		if (status)
			return status;
		some = transfer_some(socket, sending, (char *)p + done, n - done, sending && done ? &(int){ -1 } : fd);
		if ((some == 0 && !sending) || (some < 0 && errno != EAGAIN && errno != EINTR))
			return WIRE_CLOSED;
		done += some > 0 ? (size_t)some : 0;
	}
	return WIRE_OK;
}

enum wire_status wire_send(int socket, int kind, const struct wire *body, int fd, double deadline,
	const struct stop *stop)
{
	struct header h = { MAGIC, WIRE_VERSION, (uint16_t)kind, body ? body->len : 0 };
	enum wire_status status = transfer(socket, true, &h, sizeof(h), &fd, deadline, stop);

	return status || !h.bytes ? status :
		transfer(socket, true, body->data, body->len, &(int){ -1 }, deadline, stop);
}

enum wire_status wire_receive(int socket, struct frame *f, struct arena *a, double deadline, const struct stop *stop)
{
	enum wire_status status;
	struct header h;

	*f = (struct frame){ .fd = -1 };
	status = transfer(socket, false, &h, sizeof(h), &f->fd, deadline, stop);
	if (status)
		return status;
	if (h.magic != MAGIC || h.version != WIRE_VERSION || h.bytes > BODY_MAX)
		return WIRE_GARBLED;
	f->kind = h.kind;
	f->body.data = arena_alloc(a, h.bytes);
	f->body.len = h.bytes;
	return transfer(socket, false, f->body.data, h.bytes, &f->fd, deadline, stop);
}
