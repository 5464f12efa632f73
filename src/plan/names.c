#include "plan/names.h"

#include <string.h>

enum { NAMES_SHOWN = 8 };

const char *name_of_slice(struct arena *a, const char *name, int i)
{
	return arena_strf(a, "%s.%d", name, i);
}

enum err_code named_tasks(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *first, int *n, struct err *e)
{
	struct arena_mark mark = arena_mark(a);

	*first = graph_find_task(g, name_of_slice(a, name, 0));
	*n = *first == NONE ? 1 : g->tasks.v[*first].slices;
	arena_reset(a, mark);
	return *first == NONE ? named_task(a, g, name, loc, first, e) : OK;
}

/* "; there are load_a, mma" */
static const char *names_list(struct arena *a, const struct graph *g)
{
	const char *text = "";

	for (int i = 0; i < g->tasks.n; i++)
		text = arena_strf(a, "%s%s%s", text, i ? ", " : "; there are ", g->tasks.v[i].name);
	return text;
}

enum err_code named_task(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	const char **names, *hint;
	struct name_hint near;

	*out = graph_find_task(g, name);
	if (*out != NONE)
		return OK;
	if (graph_find_task(g, name_of_slice(a, name, 0)) != NONE)
		return err_set(e, ERR_INPUT, loc, "'%s' is split: name a slice, as in '%s.0'", name, name);
	names = ARENA_ARRAY(a, 2 * g->tasks.n, const char *);
	for (int i = 0; i < g->tasks.n; i++) {
		names[i] = g->tasks.v[i].name;
		names[g->tasks.n + i] = arena_strf(a, "%.*s", (int)strcspn(names[i], "."), names[i]);
	}
	near = nearest_hint(name, names, 2 * g->tasks.n);
	hint = near.text;
	for (int i = 0; i < g->tasks.n && *name && !*hint; i++)		/* "mma" where there are mma_qk and mma_pv */
		if (strncmp(names[i], name, strlen(name)) == 0)
			hint = arena_strf(a, "; did you mean '%s'?", names[i]);
	if (!*hint && g->tasks.n <= NAMES_SHOWN)
		hint = names_list(a, g);
	err_set(e, ERR_INPUT, loc, "there is no sTask '%s'%s", name, hint);
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
