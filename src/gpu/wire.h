/* wire.h - messages between the shell and its worker.
 *
 * A frame is a header (magic, version, kind, length) and so many bytes; a file
 * descriptor may come with it. Both ends are one program on one machine, so numbers go
 * as they are; but one end may be dying, so the other believes nothing: lengths are
 * checked, and a reader that meets the end early turns `bad` and yields zeros from
 * then on.
 */
#ifndef GPU_WIRE_H
#define GPU_WIRE_H

#include "base/arena.h"
#include "base/err.h"

enum { WIRE_VERSION = 1 };

/* ---- the bytes of a message ---- */

struct wire {
	struct arena *arena;		/* when writing */
	unsigned char *data;
	size_t len, cap;
	size_t pos;			/* when reading */
	bool bad;
};

void wire_put(struct wire *w, const void *p, size_t n);
void wire_put_u32(struct wire *w, uint32_t x);
void wire_put_str(struct wire *w, const char *s);	/* or NULL */

/* n bytes in place, or NULL if there are not so many. */
const void *wire_get(struct wire *w, size_t n);
uint32_t wire_get_u32(struct wire *w);
const char *wire_get_str(struct wire *w);	/* in place; or NULL, if that was put */
/* A number of elements that take at least `least` bytes each. */
int wire_get_count(struct wire *w, size_t least);
/* A number that must be in [0, end). */
int wire_get_below(struct wire *w, int end);

/* ---- frames over a socket ---- */

enum wire_status {
	WIRE_OK,
	WIRE_CLOSED,			/* the other end is gone */
	WIRE_LATE,			/* the deadline passed */
	WIRE_STOPPED,			/* interrupted */
	WIRE_GARBLED,			/* not a frame of this version */
};

struct frame {
	int kind;
	struct wire body;
	int fd;				/* that came with it, owned by the receiver; -1: none */
};

/* Seconds of a clock that only goes forward. */
double wire_clock(void);

/* deadline: of wire_clock; 0: never. stop may be NULL. */
enum wire_status wire_send(int socket, int kind, const struct wire *body, int fd,
	double deadline, const struct stop *stop);
/* f->fd is set before anything is allocated, for a caller whose handler may jump. */
enum wire_status wire_receive(int socket, struct frame *f, struct arena *a, double deadline,
	const struct stop *stop);

#endif
