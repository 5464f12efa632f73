#include "base/buf.h"

#include <stdio.h>
#include <string.h>

struct buf buf_new(struct arena *a)
{
	return (struct buf){ .arena = a, .text = arena_strdup(a, "") };
}

void buf_init(struct buf *b, struct arena *a)
{
	*b = buf_new(a);
}

static void reserve(struct buf *b, size_t more)
{
	size_t cap = (b->len + more + 1) * 2;
	char *grown;

	if (b->len + more + 1 <= b->cap)
		return;
	grown = arena_alloc(b->arena, cap);
	memcpy(grown, b->text, b->len);
	b->text = grown;
	b->cap = cap;			/* only now: the allocation may not return */
}

void buf_putn(struct buf *b, const char *s, size_t n)
{
	reserve(b, n);
	memcpy(b->text + b->len, s, n);
	b->len += n;
	b->text[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_putn(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_putn(b, &c, 1);
}

void buf_repeat(struct buf *b, const char *s, int times)
{
	while (times-- > 0)
		buf_puts(b, s);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		BUG("bad format '%s'", fmt);
	reserve(b, (size_t)n);
	vsnprintf(b->text + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
	va_end(ap);
}
