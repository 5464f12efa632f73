/* Aliases: values that use the registers or the slots of others, once those are read. */
#include "graph/build.h"

#include <string.h>

static const char *slice_name(struct graph *g, const char *name, int slice)
{
	return slice == NONE ? name : arena_strf(&g->arena, "%s.%d", name, slice);
}

static enum err_code find_value(struct graph *g, const char *name, struct srcloc loc, int *out, struct err *e)
{
	const char *slice = strchr(name, '.');

	*out = graph_find_buffer(g, name);
	if (*out == NONE && slice && graph_find_buffer(g, arena_strf(&g->arena, "%.*s",
	    (int)(slice - name), name)) != NONE)
		return err_set(e, ERR_INPUT, loc, "there is no buffer '%s': both values of an alias "
			"are split, or none is", name);
	if (*out == NONE)
		return err_set(e, ERR_INPUT, loc, "there is no buffer '%s'", name);
	return g->buffers.v[*out].node != NONE ? OK :
		err_set(e, ERR_INPUT, loc, "'%s' is a carry: only values can be aliases", name);
}

/* Do they live equally long, and is there space for `what`? Registers need the same type and extents; the order of axes
 * does not matter there. */
static bool has_space(const struct buffer *what, const struct buffer *of)
{
	bool alike = what->naxes == of->naxes && what->type == of->type;

	for (int i = 0; i < what->naxes && alike; i++) {
		int k = ints_find(of->axis, of->naxes, what->axis[i]);

		alike = k != NONE && of->extent[k] == what->extent[i];
	}
	return what->loop == of->loop && what->phase == of->phase &&
		(of->scope == SCOPE_SHARED ? what->bytes <= of->bytes : alike);
}

/* A buffer that an sTask writes together with `what`, and that is `of` or an alias of it; NONE. */
static int written_together(const struct graph *g, int what, int of)
{
	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];

		for (int i = 0; i < s->writes.n && ints_hold(s->writes.v, s->writes.n, what); i++) {
			int b = s->writes.v[i];

			if (b == of || (b != what && g->buffers.v[b].alias_of == of))
				return b;
		}
	}
	return NONE;
}

static enum err_code add_alias(struct graph *g, const struct alias *x, int slice, struct err *e)
{
	struct buffer *what, *of;
	int a, b;

	TRY(find_value(g, slice_name(g, x->what, slice), x->loc, &a, e));
	TRY(find_value(g, slice_name(g, x->of, slice), x->loc, &b, e));
	what = &g->buffers.v[a];
	of = &g->buffers.v[b];
	if (a == b || of->alias_of != NONE || what->alias_of != NONE)
		return err_set(e, ERR_INPUT, x->loc, "'%s' cannot be an alias of '%s', as '%s' %s",
			what->name, of->name, of->alias_of != NONE ? of->name : what->name, a == b ? "is the "
			"same" : "is an alias already");
	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].alias_of == a)
			return err_set(e, ERR_INPUT, x->loc, "'%s' cannot be an alias of '%s', as '%s' "
				"is an alias of it", what->name, of->name, g->buffers.v[i].name);
	if (written_together(g, a, b) != NONE)
		return err_set(e, ERR_INPUT, x->loc, "'%s' cannot be an alias of '%s': '%s' is made "
			"together with it", what->name, of->name, g->buffers.v[written_together(g, a, b)].name);
	if (g->program->tasks.v[g->program->nodes.v[what->node].task].kind == TASK_LOAD ||
	    (what->scope == SCOPE_SHARED && of->scope != SCOPE_SHARED))
		return err_set(e, ERR_INPUT, x->loc, "'%s' cannot be an alias of '%s': it is in shared "
			"memory%s", what->name, of->name, of->scope == SCOPE_SHARED ? ", loaded ahead" : "");
	if (what->together || of->together)
		return err_set(e, ERR_INPUT, x->loc, "'%s' cannot be an alias of '%s', as the slices of "
			"'%s' lie together: somebody reads several", what->name, of->name, what->together ?
			what->name : of->name);
	if (!has_space(what, of))
		return err_set(e, ERR_INPUT, x->loc, of->scope == SCOPE_SHARED ? "'%s' cannot be an alias "
			"of '%s': it is larger, or of another loop" : "'%s' cannot be an alias of '%s': they "
			"differ in shape, type or loop", what->name, of->name);
	what->alias_of = b;
	what->scope = of->scope == SCOPE_SHARED ? SCOPE_SHARED : what->scope;
	return OK;
}

enum err_code build_aliases(struct graph *g, const struct alias *v, int n, struct err *e)
{
	for (int i = 0; i < n; i++) {
		int slice = graph_find_buffer(g, slice_name(g, v[i].what, 0)), slices;

		slices = slice == NONE ? 0 : g->buffers.v[slice].slices;
		if (!slices)
			TRY(add_alias(g, &v[i], NONE, e));
		for (slice = 0; slice < slices; slice++)
			TRY(add_alias(g, &v[i], slice, e));
	}
	return OK;
}

static int storage_of(const struct graph *g, int buffer)
{
	return g->buffers.v[buffer].alias_of == NONE ? buffer : g->buffers.v[buffer].alias_of;
}

/* The value that the sTask makes of another one in the same storage, *of, if one of both is `buffer`; NONE. */
static int made_there(const struct graph *g, const struct stask *s, int buffer, int *of)
{
	for (int i = 0; i < s->writes.n; i++)
		for (int k = 0; k < s->reads.n; k++) {
			int made = s->writes.v[i], read = s->reads.v[k];

			*of = read;
			if (made != read && (made == buffer || read == buffer) &&
			    storage_of(g, made) == storage_of(g, read))
				return made;
		}
	return NONE;
}

/* The statement that made the buffer an alias: by its name, or by that of all its slices. */
static struct srcloc loc_of(const struct alias *v, const struct buffer *b)
{
	size_t n = strcspn(b->name, ".");

	while (strcmp(v->what, b->name) != 0 && (strncmp(v->what, b->name, n) != 0 || v->what[n]))
		v++;
	return v->loc;
}

static enum err_code check_alias(const struct graph *g, const struct alias *v, int buffer, struct err *e)
{
	const struct buffer *b = &g->buffers.v[buffer];
	const char *of = g->buffers.v[b->alias_of].name;

	for (int k = 0; k < g->edges.n; k++) {
		const struct edge *x = &g->edges.v[k];
		const struct stask *from = &g->tasks.v[x->from];

		if ((x->buffer == buffer || x->buffer == b->alias_of) && x->kind == EDGE_FLOW && !x->reuse &&
		    g->buffers.v[x->buffer].carry == NONE && !ints_hold(from->writes.v, from->writes.n, x->buffer))
			return err_set(e, ERR_INPUT, loc_of(v, b), "'%s' cannot be an alias of '%s': '%s' reads '%s' "
				"when '%s' has written over it", b->name, of, g->tasks.v[x->to].name,
				g->buffers.v[x->buffer].name, from->name);
	}
	/* In shared memory a thread or unit would read what others have written over; in registers each thread reads
	 * its own elements, one by one. */
	for (int t = 0; t < g->tasks.n && b->scope == SCOPE_SHARED; t++) {
		int read, made = made_there(g, &g->tasks.v[t], buffer, &read);

		if (made != NONE)
			return err_set(e, ERR_INPUT, loc_of(v, b), "'%s' cannot be an alias of '%s' in shared memory: "
				"'%s' makes '%s' of '%s', which lies there", b->name, of, g->tasks.v[t].name,
				g->buffers.v[made].name, g->buffers.v[read].name);
	}
	return OK;
}

enum err_code build_check_aliases(struct graph *g, const struct alias *v, struct err *e)
{
	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].alias_of != NONE)
			TRY(check_alias(g, v, i, e));
	return OK;
}
