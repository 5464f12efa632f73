/* arena.h - memory that lives and dies together.
 *
 * Every object of the core (program, graph, plan, timeline) holds one arena and allocates from nothing else, so freeing
 * the object is releasing its arena and an error halfway through building it cannot leak. Blocks grow from 4 KiB to 1
 * MiB. Memory is zeroed. Nothing is freed one by one; a scratch use takes a mark and goes back to it.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>

#include "base/mem.h"

struct arena_block;

struct arena {
	struct mem *mem;		/* borrowed, outlives the arena */
	struct arena_block *top;
};

struct arena_mark {
	struct arena_block *block;
	size_t used;
};

void arena_init(struct arena *a, struct mem *m);
void arena_release(struct arena *a);	/* idempotent */
/* A zeroed struct that lies in the arena which is its own member `arena`. */
#define ARENA_OWNER(m, type) ((type *)arena_owner((m), sizeof(type), offsetof(type, arena)))
void *arena_owner(struct mem *m, size_t size, size_t arena);

/* Zeroed, aligned to 16 bytes; never NULL (see mem.h). */
void *arena_alloc(struct arena *a, size_t size);
/* count * size with overflow treated as an impossible request. */
void *arena_array(struct arena *a, size_t count, size_t size);
/* The same, with what there is at `from`. */
void *arena_copy(struct arena *a, const void *from, size_t count, size_t size);
/* n numbers, all with this value. */
int *arena_ints(struct arena *a, int n, int value);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
char *arena_vstrf(struct arena *a, const char *fmt, va_list ap) PRINTF(2, 0);

struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark m);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, n, type) ((type *)arena_array((a), (size_t)(n), sizeof(type)))

/* A growable array of T in an arena: `struct { T *v; int n, cap; }`. Growing moves the elements and leaves the old copy
 * to the arena, so keep indices, not pointers, across a push. */
#define VEC(T) struct { T *v; int n, cap; }
struct ints { int *v; int n, cap; };
#define VEC_PUSH(a, vec, x) \
	(VEC_MAKE_SPACE((a), (vec)), (vec)->v[(vec)->n++] = (x))
#define VEC_ADD(a, vec) \
	(VEC_MAKE_SPACE((a), (vec)), &(vec)->v[(vec)->n++])
#define VEC_MAKE_SPACE(a, vec) \
	((vec)->n < (vec)->cap ? (void)0 : \
	 vec_grow((a), (void **)&(vec)->v, (vec)->n, &(vec)->cap, sizeof(*(vec)->v)))
/* Keep the elements for which `keep`, an expression in the index i, is true. */
#define VEC_FILTER(vec, i, keep) do { \
	int kept_ = 0; \
	for (int i = 0; i < (vec)->n; i++) \
		if (keep) \
			(vec)->v[kept_++] = (vec)->v[i]; \
	(vec)->n = kept_; \
} while (0)
void vec_grow(struct arena *a, void **v, int n, int *cap, size_t size);

#endif
