/* Notes on tiles that one phase takes because of another.
 *
 * An axis has tiles of one extent in all phases. Where a phase needs all of an axis, as for a sum along rows, the tiles
 * of the other axes are as small as these rows are long; a product of another phase over the same axes has such tiles,
 * too, and nothing in its own statements says why. */
#include "graph/repeats.h"
#include "lower/lower.h"
#include "target/target.h"

static enum axis_role role_in(const struct graph *g, int phase, int axis)
{
	return program_axis_role(g->program, phase, axis);
}

static bool is_tiled_in(const struct graph *g, int phase, int axis)
{
	return role_in(g, phase, axis) == AXIS_GRID || role_in(g, phase, axis) == AXIS_LOOP;
}

static int position_of(const struct buffer *b, int axis)
{
	return ints_find(b->axis, b->naxes, axis);
}

/* The matrix instruction of the product; NULL: it is on another unit. */
static const struct matrix_instruction *instruction_of(const struct plan *p, int task)
{
	const struct stask *s = &p->graph->tasks.v[task];
	int entry = plan_entry_of(p, task);
	const struct seu *unit = entry == NONE ? NULL : &p->device->seu[p->entries.v[entry].seu];

	if (!unit || unit->kind != SEU_MATRIX)
		return NULL;
	return target_matrix(target_of(p->device), unit->async, s->work.sparse, s->work.type);
}

/* Does the phase have a value of which the tile has all of one axis, so that with tiles of another one twice as large
 * it would not fit? */
static bool is_limited(const struct plan *p, int phase, int axis, int all)
{
	const struct graph *g = p->graph;
	bool limited = false;

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		int at = position_of(b, all);

		limited |= b->phase == phase && at != NONE && position_of(b, axis) != NONE &&
			b->extent[at] == g->program->axes.v[all].size && 2 * b->bytes > p->device->shared_bytes;
	}
	return limited;
}

/* The phase of the task needs all of axis `all` and tiles `axis`: is the product's tile of `axis` smaller for that? */
static bool is_small(const struct plan *p, int product, int phase, int axis, int all)
{
	const struct graph *g = p->graph;
	const struct stask *s = &g->tasks.v[product];
	const struct matrix_instruction *x = instruction_of(p, product);

	return axis != all && g->extents.tile[axis] < g->program->axes.v[axis].size && is_tiled_in(g, s->phase, axis) &&
		is_tiled_in(g, phase, axis) && !g->program->axes.v[axis].single &&
		((x && s->work.m < x->rows) || is_limited(p, phase, axis, all));
}

/* Has the product's tile all of the axis, although its own phase could divide it, because the other one's tile has? */
static bool is_complete(const struct plan *p, int product, int phase, int all)
{
	const struct graph *g = p->graph;
	const struct matrix_instruction *x = instruction_of(p, product);
	int64_t size = g->program->axes.v[all].size;

	return x && size > x->cols_most && g->extents.tile[all] == size &&
		role_in(g, g->tasks.v[product].phase, all) == AXIS_GRID && role_in(g, phase, all) == AXIS_GRID &&
		graph_needing_task(g, g->tasks.v[product].phase, all) == NONE;
}

static const char *task_text(const struct graph *g, int task, struct arena *a)
{
	const struct task *t = &g->program->tasks.v[task];

	return arena_strf(a, "'%s' of phase '%s' (line %d)", t->name, g->program->phases.v[t->phase].name, t->loc.line);
}

static void add_note(const struct plan *p, int product, int needs, int axis, int all, struct arena *a,
	struct problems *out)
{
	const struct graph *g = p->graph;
	const struct axis *x = &g->program->axes.v[axis];
	const char *by = task_text(g, needs, a), *of = task_text(g, g->tasks.v[product].task, a);
	struct problem n = { .code = NOTE_TIED, .task = product, .other = NONE, .edge = NONE,
		.loc = g->tasks.v[product].loc };

	if (axis == all)
		n.message = arena_strf(a, "tiles have all %lld of '%s' in each phase: %s needs them, and %s has the "
			"same tiles", (long long)x->size, x->name, by, of);
	else
		n.message = arena_strf(a, "tiles have %lld of '%s' in each phase: %s needs all %lld of '%s' with "
			"them, and %s has the same tiles", (long long)g->extents.tile[axis], x->name, by,
			(long long)g->program->axes.v[all].size, g->program->axes.v[all].name, of);
	n.hint = arena_strf(a, "let one of the phases have an axis of its own instead of '%s': "
		"p:axis(\"%s_2\", %s.size)", x->name, x->name, x->name);
	VEC_PUSH(a, &out->notes, n);
}

/* Of each product at most one note, about the first such axis. */
static void note_product(const struct plan *p, int product, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;
	const struct stask *s = &g->tasks.v[product];

	for (int phase = 0; phase < g->program->phases.n; phase++)
		for (int all = 0; all < g->program->axes.n; all++) {
			int needs = phase == s->phase ? NONE : graph_needing_task(g, phase, all);

			for (int i = 0; needs != NONE && i < s->naxes; i++) {
				int axis = s->axis[i];

				if (axis == all ? is_complete(p, product, phase, all) :
				    is_small(p, product, phase, axis, all)) {
					add_note(p, product, needs, axis, all, a, out);
					return;
				}
			}
		}
}

void note_tied(const struct plan *p, struct arena *a, struct problems *out)
{
	for (int i = 0; i < p->graph->tasks.n; i++)
		if (p->graph->tasks.v[i].kind == TASK_MMA && p->graph->tasks.v[i].slice == 0)
			note_product(p, i, a, out);
}
