/* mem.h - where all memory comes from.
 *
 * A `struct mem` is one source of memory with an account: bytes in use, a cap, and what happens when a request cannot
 * be met. The shell has one, shared with the Lua allocator, so that a runaway size is a message and not a swap storm,
 * and so that a test can make the k-th request fail.
 *
 * mem_get never returns NULL: when malloc fails, the cap is reached or the planned failure is due, it calls `fail`,
 * which must not return (the shell raises a Lua error; without a handler the program ends with a message). Code that
 * runs below it therefore owns memory only through arenas, whose owner frees them whatever happens.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

struct mem {
	size_t used;			/* bytes handed out and not given back */
	size_t cap;			/* most bytes in use; 0: no limit */
	uint64_t calls;			/* requests so far */
	uint64_t fail_at;		/* the request that fails, counted from 1; 0: none */
	bool fine;			/* arenas request every allocation by itself, for fail_at */
	void (*on_request)(struct mem *m);	/* for tests; NULL: nothing */
	void (*fail)(void *ud, size_t want);	/* must not return; NULL: abort */
	void *ud;
};

/* Owned by the caller: give back with mem_put and the same size. */
void *mem_get(struct mem *m, size_t size);
void mem_put(struct mem *m, void *p, size_t size);

/* As realloc of the Lua allocator: NULL on failure instead of calling `fail`. */
void *mem_resize(struct mem *m, void *p, size_t old_size, size_t new_size);

#endif
