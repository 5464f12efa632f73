#include "plan/names.h"

#include <string.h>

enum err_code named_task(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	const char **names;

	*out = graph_find_task(g, name);
	if (*out != NONE)
		return OK;
	if (graph_find_task(g, arena_strf(a, "%s.0", name)) != NONE)
		return err_set(e, ERR_INPUT, loc, "'%s' is split: name a slice, as in '%s.0'", name, name);
	names = ARENA_ARRAY(a, 2 * g->tasks.n, const char *);
	for (int i = 0; i < g->tasks.n; i++) {
		names[i] = g->tasks.v[i].name;
		names[g->tasks.n + i] = arena_strf(a, "%.*s", (int)strcspn(names[i], "."), names[i]);
	}
	err_set(e, ERR_INPUT, loc, "there is no sTask '%s'%s", name, nearest_hint(name, names, 2 * g->tasks.n).text);
	arena_reset(a, mark);
	return ERR_INPUT;
}

enum err_code named_buffer(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	const char **names = ARENA_ARRAY(a, g->buffers.n, const char *);

	for (int i = 0; i < g->buffers.n; i++)
		names[i] = g->buffers.v[i].name;
	*out = graph_find_buffer(g, name);
	if (*out == NONE)
		err_set(e, ERR_INPUT, loc, "there is no buffer '%s'%s", name, nearest_hint(name, names,
			g->buffers.n).text);
	arena_reset(a, mark);
	return *out == NONE ? ERR_INPUT : OK;
}
