#include "draw/label.h"

#include <string.h>

#include "draw/units.h"

static void put_axes(const struct program *p, int n, const int *axis, struct buf *out)
{
	for (int i = 0; i < n; i++)
		buf_printf(out, "%s%s", i ? "," : "", p->axes.v[axis[i]].name);
}

const char *label_loop(struct arena *a, const struct program *p, int loop)
{
	const struct loop *l;
	struct buf b = buf_new(a);
	int nth = 1;

	if (loop == NONE)
		return "tile";
	l = &p->loops.v[loop];
	put_axes(p, l->naxes, l->axis, &b);
	for (int i = 0; i < loop; i++)
		nth += p->loops.v[i].phase == l->phase && p->loops.v[i].naxes == l->naxes &&
			!memcmp(p->loops.v[i].axis, l->axis, (size_t)l->naxes * sizeof(l->axis[0]));
	if (nth > 1)
		buf_printf(&b, "#%d", nth);
	return b.text;
}

const char *label_loop_trips(struct arena *a, const struct graph *g, int loop)
{
	const struct trips *t = &g->trips[loop];
	struct buf b = buf_new(a);

	buf_printf(&b, "loop %s, ", label_loop(a, g->program, loop));
	if (t->least != t->most)
		buf_printf(&b, "%lld to ", (long long)t->least);
	buf_printf(&b, "%lld iteration%s", (long long)t->most, t->most == 1 ? "" : "s");
	return b.text;
}

const char *label_lengths(struct arena *a, const struct program *p)
{
	struct buf b = buf_new(a);
	const struct loop *before = NULL;

	for (int i = 0; i < p->loops.n; i++) {
		const struct loop *l = &p->loops.v[i];
		int64_t all;

		if (!l->has_length || !l->body.n)
			continue;
		all = l->keeps_steps ? program_steps_around(p, l) : p->axes.v[l->axis[0]].size;
		if (!before || before->keeps_steps != l->keeps_steps)
			buf_printf(&b, "%sassumed %s of", before ? "; " : "", l->keeps_steps ? "steps" : "length");
		else
			buf_putc(&b, ',');
		buf_printf(&b, " loop %s %lld", label_loop(a, p, l->keeps_steps ? l->parent : i),
			(long long)(l->typical ? l->typical : all));
		if (!l->typical)
			buf_puts(&b, ", all");
		else if (l->keeps_steps)
			buf_printf(&b, " of %lld", (long long)all);
		before = l;
	}
	return b.text;
}

const char *label_tiles(struct arena *a, const struct graph *g, int phase)
{
	int64_t n = g->grids[phase].total;

	return arena_strf(a, "%s: %s tile%s", g->program->phases.v[phase].name, unit_count(n).s, n == 1 ? "" : "s");
}

const char *label_extents(struct arena *a, const struct program *p, int naxes, const int *axis, const int64_t *extent)
{
	struct buf b = buf_new(a);

	if (!naxes)
		return "scalar";
	for (int i = 0; i < naxes; i++)
		buf_printf(&b, "%s%s=%lld", i ? " " : "", p->axes.v[axis[i]].name, (long long)extent[i]);
	return b.text;
}

/* Axes that both operands of the product have. */
static int summed_axes(const struct program *p, const struct task *t, int *out)
{
	const struct node *a, *b, *n = NULL;
	int found = 0;

	for (int i = 0; i < t->nodes.n; i++)
		if (p->nodes.v[t->nodes.v[i]].op == OP_MMA)
			n = &p->nodes.v[t->nodes.v[i]];
	if (!n)
		return 0;
	a = &p->nodes.v[n->arg[0]];
	b = &p->nodes.v[n->arg[1]];
	for (int i = 0; i < a->naxes; i++)
		for (int j = 0; j < b->naxes; j++)
			if (a->axis[i] == b->axis[j])
				out[found++] = a->axis[i];
	return found;
}

const char *label_shape(struct arena *a, const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];
	const char *shape = label_extents(a, g->program, s->naxes, s->axis, s->extent);
	int axis[RANK_MAX], n;
	struct buf b = buf_new(a);

	if (s->kind != TASK_MMA)
		return shape;
	n = summed_axes(g->program, &g->program->tasks.v[s->task], axis);
	buf_printf(&b, "%s ·", shape);
	put_axes(g->program, n, axis, &b);
	buf_printf(&b, "%s%lld", n ? "=" : "", (long long)s->work.k);
	return b.text;
}

const char *label_distance(struct arena *a, const struct edge *e)
{
	if (e->reuse)
		return e->distance == 1 ? "+V" : arena_strf(a, "+%dV", e->distance);
	return e->distance ? arena_strf(a, "%+d", e->distance) : "0";
}

static bool edges_alike(const struct edge *x, const struct edge *y)
{
	return x->from == y->from && x->to == y->to && x->kind == y->kind && x->loop == y->loop &&
		x->distance == y->distance && x->reuse == y->reuse && x->chain == y->chain;
}

const char *label_edge_buffers(struct arena *a, const struct graph *g, int i)
{
	const struct edge *e = &g->edges.v[i];
	struct buf names = buf_new(a);

	for (int j = g->first_in[e->to]; j != i; j = g->next_in.v[j])
		if (edges_alike(&g->edges.v[j], e))
			return NULL;
	buf_puts(&names, g->buffers.v[e->buffer].name);
	for (int j = g->next_in.v[i]; j != NONE; j = g->next_in.v[j])
		if (edges_alike(&g->edges.v[j], e))
			buf_printf(&names, ", %s", g->buffers.v[g->edges.v[j].buffer].name);
	return names.text;
}

bool edge_is_inner(const struct edge *e)
{
	return !e->reuse && e->distance == 0;
}

const char *label_seu(enum task_kind k)
{
	return k == TASK_MMA ? "matrix" : k == TASK_COMPUTE ? "vector" : "copy";
}

struct style style_of_kind(enum task_kind k)
{
	static const uint8_t colour[] = {
		[TASK_LOAD] = 74, [TASK_MMA] = 208, [TASK_COMPUTE] = 114, [TASK_STORE] = 68,
	};

	return (struct style){ .fg = colour[k] };
}
