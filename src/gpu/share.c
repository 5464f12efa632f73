#define _GNU_SOURCE			/* memfd_create, fallocate, seals */
#include "gpu/share.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK ((size_t)64 << 20)

static enum err_code stopped(struct err *e)
{
	return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
}

/* Allocate the pages now: writing to a mapping without memory behind it raises a signal instead of
 * an error. Chunk by chunk, so that it can be interrupted. */
static enum err_code reserve(int fd, size_t bytes, const struct stop *stop, struct err *e)
{
	if (ftruncate(fd, (off_t)bytes))
		return err_set(e, ERR_LIMIT, NOWHERE,
			"no %zu bytes of shared memory for the job: %s", bytes, strerror(errno));
	for (size_t at = 0; at < bytes; ) {
		size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;

		if (stop_asked(stop))
			return stopped(e);
		if (!fallocate(fd, 0, (off_t)at, (off_t)n))
			at += n;
		else if (errno == ENOSPC || errno == ENOMEM)
			return err_set(e, ERR_LIMIT, NOWHERE, "no %zu bytes of shared memory for the job: %s", bytes,
				strerror(errno));
		else if (errno != EINTR)
			break;		/* not supported here: the pages come when they are used */
	}
	/* Neither process can change the size any more. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return OK;
}

static enum err_code map(struct share *s, size_t bytes, const struct stop *stop, struct err *e)
{
	void *p;

	s->fd = memfd_create("millrace-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0)
		return err_set(e, ERR_IO, NOWHERE, "cannot make shared memory: %s", strerror(errno));
	TRY(reserve(s->fd, bytes, stop, e));
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (p == MAP_FAILED)
		return err_set(e, ERR_LIMIT, NOWHERE, "cannot map %zu bytes: %s", bytes, strerror(errno));
	s->map = p;
	return OK;
}

enum err_code share_init(struct share *s, struct mem *m, size_t bytes, const struct stop *stop, struct err *e)
{
	enum err_code code;

	*s = (struct share){ .mem = m, .fd = -1 };
	if (m->cap && (bytes > m->cap || m->used > m->cap - bytes))
		return err_set(e, ERR_LIMIT, NOWHERE, "the job's memory, %.1f MiB, exceeds what "
			"the shell may still take (%.1f MiB)",
			(double)bytes / 0x1p20, (double)(m->cap - m->used) / 0x1p20);
	s->bytes = bytes;
	m->used += bytes;
	code = map(s, bytes, stop, e);
	if (code)
		share_release(s);
	return code;
}

void share_release(struct share *s)
{
	if (!s->mem)
		return;
	if (s->map)
		munmap(s->map, s->bytes);
	if (s->fd >= 0)
		close(s->fd);
	s->mem->used -= s->bytes;
	*s = (struct share){ .fd = -1 };
}

enum err_code share_copy(void *to, const void *from, size_t n, const struct stop *stop, struct err *e)
{
	for (size_t at = 0; at < n; at += CHUNK) {
		if (stop_asked(stop))
			return stopped(e);
		memcpy((char *)to + at, (const char *)from + at, n - at < CHUNK ? n - at : CHUNK);
	}
	return OK;
}
