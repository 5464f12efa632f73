#include "base/arena.h"

#include <stdio.h>
#include <string.h>

enum {
	BLOCK_MIN = 4096,
	BLOCK_MAX = 1 << 20,
	ALIGN = 16,
};

struct arena_block {
	struct arena_block *below;
	size_t size;			/* bytes of data */
	size_t used;
};

#define HEADER ((sizeof(struct arena_block) + ALIGN - 1) / ALIGN * ALIGN)

static char *block_data(struct arena_block *b)
{
	return (char *)b + HEADER;
}

void arena_init(struct arena *a, struct mem *m)
{
	a->mem = m;
	a->top = NULL;
}

static void pop_block(struct arena *a)
{
	struct arena_block *b = a->top;

	a->top = b->below;
	mem_put(a->mem, b, HEADER + b->size);
}

void arena_release(struct arena *a)
{
	struct arena own = *a;		/* *a may lie in its own memory */

	a->top = NULL;
	while (own.top)
		pop_block(&own);
}

void *arena_owner(struct mem *m, size_t size, size_t arena)
{
	struct arena a;
	char *owner;

	arena_init(&a, m);
	owner = arena_alloc(&a, size);
	memcpy(owner + arena, &a, sizeof(a));
	return owner;
}

static void push_block(struct arena *a, size_t need)
{
	size_t size = a->top ? a->top->size * 2 : BLOCK_MIN;
	struct arena_block *b;

	if (size > BLOCK_MAX)
		size = BLOCK_MAX;
	if (size < need || a->mem->fine)
		size = need;
	b = mem_get(a->mem, HEADER + size);
	b->below = a->top;
	b->size = size;
	b->used = 0;
	a->top = b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	void *p;

	if (size > SIZE_MAX / 2)
		size = SIZE_MAX / 2;	/* refused by mem_get as what it is */
	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	if (!a->top || a->top->size - a->top->used < size)
		push_block(a, size);
	p = block_data(a->top) + a->top->used;
	a->top->used += size;
	return memset(p, 0, size);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / 2 / size)
		return arena_alloc(a, SIZE_MAX / 2);
	return arena_alloc(a, count * size);
}

void *arena_copy(struct arena *a, const void *from, size_t count, size_t size)
{
	void *to = arena_array(a, count, size);

	if (count)
		memcpy(to, from, count * size);
	return to;
}

int *arena_ints(struct arena *a, int n, int value)
{
	int *v = ARENA_ARRAY(a, n, int);

	for (int i = 0; i < n; i++)
		v[i] = value;
	return v;
}

char *arena_strdup(struct arena *a, const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(arena_alloc(a, n), s, n);
}

char *arena_vstrf(struct arena *a, const char *fmt, va_list ap)
{
	va_list again;
	char *s;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		BUG("bad format '%s'", fmt);
	s = arena_alloc(a, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	return s;
}

char *arena_strf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = arena_vstrf(a, fmt, ap);
	va_end(ap);
	return s;
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){ a->top, a->top ? a->top->used : 0 };
}

void arena_reset(struct arena *a, struct arena_mark m)
{
	while (a->top != m.block)
		pop_block(a);
	if (a->top)
		a->top->used = m.used;
}

void vec_grow(struct arena *a, void **v, int n, int *cap, size_t size)
{
	int more = *cap ? *cap * 2 : 8;
	void *grown;

	grown = arena_array(a, (size_t)more, size);
	if (n)
		memcpy(grown, *v, (size_t)n * size);
	*v = grown;
	*cap = more;			/* only now: the allocation may not return */
}
