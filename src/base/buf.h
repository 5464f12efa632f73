/* buf.h - text under construction.
 *
 * The core never prints: whatever a person reads is appended to a buf, and the caller decides where it goes. A buf
 * lives in an arena (so it cannot leak) and is always NUL-terminated once something was added.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/arena.h"

struct buf {
	struct arena *arena;		/* borrowed */
	char *text;			/* "" when empty */
	size_t len, cap;
};

struct buf buf_new(struct arena *a);
void buf_init(struct buf *b, struct arena *a);	/* the same in *b */
void buf_putc(struct buf *b, char c);
void buf_puts(struct buf *b, const char *s);
void buf_putn(struct buf *b, const char *s, size_t n);
void buf_repeat(struct buf *b, const char *s, int times);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

#endif
