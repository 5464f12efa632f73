#include "verify/reached.h"

#include "base/prng.h"

enum { TILES_TRIED = 1 << 13, BOXES_TRIED = 256 };

/* Numbers where tiles begin at lo[axis]. */
struct tile_env {
	struct num_env env;
	int64_t lo[AXES_MAX];
	bool *other;			/* set if anything else is asked for */
};

static int64_t tile_var(const struct num_env *env, enum var v, int of)
{
	const struct tile_env *x = (const struct tile_env *)env;

	*x->other |= v != VAR_LO;
	return v == VAR_LO ? x->lo[of] : 0;
}

/* How many elements of the axis the value has that the sTask stores, its other slices included. */
static int64_t extent_of(const struct stask *s, int axis)
{
	for (int i = 0; i < s->naxes; i++)
		if (s->axis[i] == axis)
			return s->extent[i] * (axis == s->split_axis ? s->slices : 1);
	return 1;
}

/* Has the tensor an element of the tile? Values as indices may be anything. */
static bool has_elements(const struct program *p, const struct graph *g, const struct stask *s, const struct node *n,
	const int64_t *lo)
{
	int64_t first[AXES_MAX], last[AXES_MAX];

	for (int a = 0; a < p->axes.n; a++) {
		int64_t extent = extent_of(s, a);

		first[a] = extent > g->extents.tile[a] ? 0 : lo[a];
		last[a] = min_i64(first[a] + extent, p->axes.v[a].size) - 1;
	}
	for (int d = 0; d < p->tensors.v[n->ref].rank; d++) {
		struct index_range r = index_bounds(&n->index[d], first, last);

		if (!n->index[d].value && (r.hi < 0 || r.lo >= p->axes.v[p->tensors.v[n->ref].dim[d]].size))
			return false;
	}
	return true;
}

/* All combinations of tiles of the axes on which it depends whether something is inside, or as many as TILES_TRIED at random;
 * tiles of other axes are any. */
static enum err_code check_condition(const struct plan *p, const struct role_op *o, struct err *e)
{
	const struct graph *g = p->graph;
	const struct program *program = g->program;
	const struct stask *s = &g->tasks.v[o->task];
	const struct task *t = &program->tasks.v[s->task];
	const struct node *n = &program->nodes.v[t->nodes.v[t->nodes.n - 1]];
	bool other = false, used[AXES_MAX] = { false };
	struct tile_env at = { .env.var = tile_var, .other = &other };
	struct prng random = { 1 };
	int64_t total = 1;

	for (int a = 0; a < program->axes.n; a++) {
		for (int d = 0; d < program->tensors.v[n->ref].rank; d++)
			used[a] |= index_uses(&n->index[d], a) && !(n->index[d].n == 1 && !n->index[d].k && !n->index[d].value &&
				program->axes.v[a].size <= program->axes.v[program->tensors.v[n->ref].dim[d]].size);
		if (used[a])
			total = min_i64(total * extent_tiles(&g->extents, a), TILES_TRIED + 1);
	}
	for (int64_t i = 0; i < min_i64(total, TILES_TRIED); i++) {
		int64_t others = i;

		for (int a = 0; a < program->axes.n; a++) {
			int64_t tiles = extent_tiles(&g->extents, a);
			bool counts = used[a] && total <= TILES_TRIED;

			at.lo[a] = g->extents.tile[a] * (counts ? others % tiles : prng_below(&random, (uint32_t)min_i64(tiles, INT32_MAX)));
			others /= counts ? tiles : 1;
		}
		if (has_elements(program, g, s, n, at.lo) && !num_value(o->u.region.when, &at.env))
			return err_set(e, ERR_ILLEGAL, s->loc, "the kernel is wrong: '%s' does not store a tile of which '%s' has elements",
				s->name, program->tensors.v[n->ref].name);
	}
	return other ? err_set(e, ERR_ILLEGAL, s->loc, "the kernel is wrong: whether '%s' stores depends on more than the tile",
		s->name) : OK;
}

/* A box, of a warp, a round and a panel. */
struct box_env {
	struct num_env env;
	int64_t lo[AXES_MAX], panel, round, thread;
};

static int64_t box_var(const struct num_env *env, enum var v, int of)
{
	const struct box_env *x = (const struct box_env *)env;

	return v == VAR_LO ? x->lo[of] : v == VAR_PANEL ? x->panel : v == VAR_ROUND ? x->round : v == VAR_THREAD ? x->thread : 0;
}

/* The copy engine traps at a box that begins in front of its tensor where it stores: tiles at random, and the first and last ones. */
static enum err_code check_boxes(const struct role_program *r, const struct plan *p, const struct role_op *o, struct err *e)
{
	const struct graph *g = p->graph;
	const struct role_box *b = &o->u.boxes.boxes.v[0];
	struct box_env at = { .env.var = box_var };
	struct prng random = { 1 };

	for (int i = 0; i < BOXES_TRIED; i++) {
		for (int a = 0; a < g->program->axes.n; a++) {
			int64_t tiles = extent_tiles(&g->extents, a);

			at.lo[a] = g->extents.tile[a] * (i < 2 ? i * (tiles - 1) : prng_below(&random, (uint32_t)min_i64(tiles, INT32_MAX)));
		}
		at.panel = prng_below(&random, (uint32_t)o->u.boxes.panels);
		at.round = 0;
		at.thread = i % 4 * r->target->warp;
		for (int d = 0; d < r->maps.v[o->u.boxes.map].rank; d++)
			if ((!b->when || num_value(b->when, &at.env)) && num_value(b->corner[d], &at.env) < 0)
				return err_set(e, ERR_ILLEGAL, g->tasks.v[o->task].loc, "the kernel is wrong: a box that '%s' stores begins in "
					"front of its tensor", g->tasks.v[o->task].name);
	}
	return OK;
}

static enum err_code check_body(const struct role_program *r, const struct plan *p, const struct role_body *b, struct err *e)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_STORE_BOXES)
			TRY(check_boxes(r, p, o, e));
		if (!role_is_region(o->what))
			continue;
		if (o->what == DO_IF && o->u.region.section == SECTION_REACHED) {
			if (o->task == NONE || p->graph->tasks.v[o->task].kind != TASK_STORE || o->u.region.other.v.n)
				return err_set(e, ERR_ILLEGAL, NOWHERE, "the kernel is wrong: what is left out is no store");
			TRY(check_condition(p, o, e));
		}
		TRY(check_body(r, p, &o->u.region.body, e));
		TRY(check_body(r, p, &o->u.region.other, e));
	}
	return OK;
}

enum err_code reached_check(const struct role_program *r, const struct plan *p, struct err *e)
{
	for (int i = 0; i < r->roles.n; i++)
		TRY(check_body(r, p, &r->roles.v[i].body, e));
	return OK;
}
