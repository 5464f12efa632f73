#include "plan/names.h"

#include <string.h>

static enum err_code unknown(const char *what, const char *name, const char *const *names, int n,
	struct srcloc loc, struct err *e)
{
	const char *near = nearest_name(name, names, n);

	return err_set(e, ERR_INPUT, loc, "there is no %s '%s'%s%s%s", what, name,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum err_code named_task(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	const char **names;
	enum err_code code;

	*out = graph_find_task(g, name);
	if (*out != NONE)
		return OK;
	if (graph_find_task(g, arena_strf(a, "%s.0", name)) != NONE)
		return err_set(e, ERR_INPUT, loc, "'%s' is split: name a slice, as in '%s.0'", name, name);
	names = ARENA_ARRAY(a, 2 * g->tasks.n, const char *);
	for (int i = 0; i < g->tasks.n; i++) {
		const char *full = g->tasks.v[i].name, *dot = strrchr(full, '.');

		names[i] = full;
		names[g->tasks.n + i] = dot ? arena_strf(a, "%.*s", (int)(dot - full), full) : full;
	}
	code = unknown("sTask", name, names, 2 * g->tasks.n, loc, e);
	arena_reset(a, mark);
	return code;
}

enum err_code named_buffer(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	const char **names;
	enum err_code code;

	*out = graph_find_buffer(g, name);
	if (*out != NONE)
		return OK;
	names = ARENA_ARRAY(a, g->buffers.n, const char *);
	for (int i = 0; i < g->buffers.n; i++)
		names[i] = g->buffers.v[i].name;
	code = unknown("buffer", name, names, g->buffers.n, loc, e);
	arena_reset(a, mark);
	return code;
}
