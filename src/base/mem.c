#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static bool refuse(struct mem *m, size_t more)
{
	m->calls++;
	if (m->on_request)
		m->on_request(m);
	if (m->calls == m->fail_at)
		return true;
	return m->cap && (more > m->cap || m->used > m->cap - more);
}

void *mem_get(struct mem *m, size_t size)
{
	void *p = refuse(m, size) ? NULL : malloc(size ? size : 1);

	if (!p) {
		if (m->fail)
			m->fail(m->ud, size);
		fprintf(stderr, "millrace: out of memory (%zu bytes wanted)\n", size);
		abort();
	}
	m->used += size;
	return p;
}

void mem_put(struct mem *m, void *p, size_t size)
{
	if (!p)
		return;
	m->used -= size;
	free(p);
}

void *mem_resize(struct mem *m, void *p, size_t old_size, size_t new_size)
{
	void *q;

	if (new_size == 0) {
		mem_put(m, p, old_size);
		return NULL;
	}
	if (new_size > old_size && refuse(m, new_size - old_size))
		return NULL;
	q = realloc(p, new_size);
	if (q)
		m->used += new_size - old_size;
	return q;
}
