/* wire.h - messages between the shell and its worker.
 *
 * A frame is a header (magic, version, kind, length) and the bytes of a body; a file descriptor may be
 * sent along. Both ends are the same program on one machine, so numbers need no conversion. But one
 * end may be dying, so the other checks everything: a reader that reads beyond the end, or finds a
 * value out of range, sets `bad` and yields zeros from then on.
 */
#ifndef GPU_WIRE_H
#define GPU_WIRE_H

#include "base/arena.h"
#include "base/err.h"

enum { WIRE_VERSION = 1 };

/* ---- the bytes of a message ---- */

struct wire {
	struct arena *arena;		/* of the bytes when writing, of the values when reading */
	unsigned char *data;
	size_t len, cap;
	size_t pos;			/* the next byte when reading */
	bool reading, bad;
};

void wire_put(struct wire *w, const void *p, size_t n);
void wire_put_u32(struct wire *w, uint32_t x);
/* The next n bytes, where they are; NULL if fewer are left. */
const void *wire_get(struct wire *w, size_t n);
uint32_t wire_get_u32(struct wire *w);

/* ---- frames over a socket ---- */

enum wire_status {
	WIRE_OK,
	WIRE_CLOSED,			/* the other end has ended */
	WIRE_LATE,			/* the deadline passed */
	WIRE_STOPPED,			/* interrupted */
	WIRE_GARBLED,			/* not a frame of this version */
};

struct frame {
	int kind;
	struct wire body;
	int fd;				/* that was sent along, owned by the receiver; -1: none */
};

/* fd: sent along; -1: none. deadline: a time of clock_seconds; 0: none. stop may be NULL. */
enum wire_status wire_send(int socket, int kind, const struct wire *body, int fd,
	double deadline, const struct stop *stop);
/* The body lies in `a`. f->fd is set before anything is allocated, for a caller whose failure handler jumps. */
enum wire_status wire_receive(int socket, struct frame *f, struct arena *a, double deadline, const struct stop *stop);

#endif
