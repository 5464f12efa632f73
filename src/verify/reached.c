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

/* Do elements of the dimension that are stored depend on where a tile is along the axis? Not where the index is
 * the axis, and ends as the dimension does or before. */
static bool depends_on(const struct program *p, const struct index_expr *x, int axis, int64_t size)
{
	const struct index_term *t = &x->term[0];
	bool plain = x->n == 1 && !x->k && !x->value && t->coef == 1 && t->div == 1 && !t->mod;

	return index_uses(x, axis) && !(plain && p->axes.v[axis].size <= size);
}

/* All combinations of tiles of the axes on which it depends whether something is inside, or whether it is stored;
 * or as many as TILES_TRIED at random. Tiles of other axes are any. */
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
			used[a] |= depends_on(program, &n->index[d], a, program->axes.v[program->tensors.v[n->ref].dim[d]].size);
		used[a] |= num_uses_of(o->u.region.when, VAR_LO, a);
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

/* What holds of all operations of a body. */
struct walk {
	const struct role_program *r;
	const struct plan *p;
	int warps, rounds;		/* of the lane; batches of the store at hand */
};

static bool begins_in_front(const struct walk *w, const struct role_op *o, const struct role_box *b, const struct box_env *at)
{
	if (b->when && !num_value(b->when, &at->env))
		return false;
	for (int d = 0; d < w->r->maps.v[o->u.boxes.map].rank; d++)
		if (num_value(b->corner[d], &at->env) < 0)
			return true;
	return false;
}

/* The copy engine traps at a box that begins in front of its tensor where it stores. Of each warp, round and panel
 * the boxes of the first tile, of the last one and of one at random; and of tiles at random any box. */
static enum err_code check_boxes(const struct walk *w, const struct role_op *o, const struct role_box *b, struct err *e)
{
	const struct graph *g = w->p->graph;
	struct box_env at = { .env.var = box_var };
	struct prng random = { 1 };
	int panels = o->u.boxes.panels, each = w->warps * w->rounds * panels;

	for (int i = 0; i < 3 * each + BOXES_TRIED; i++) {
		int box = i < 3 * each ? i / 3 : (int)prng_below(&random, (uint32_t)each);

		for (int a = 0; a < g->program->axes.n; a++) {
			int64_t tiles = extent_tiles(&g->extents, a);
			bool given = i < 3 * each && i % 3 < 2;

			at.lo[a] = g->extents.tile[a] * (given ? i % 3 * (tiles - 1) : prng_below(&random, (uint32_t)min_i64(tiles, INT32_MAX)));
		}
		at.panel = box % panels;
		at.round = box / panels % w->rounds;
		at.thread = box / panels / w->rounds * w->r->target->warp;
		if (begins_in_front(w, o, b, &at))
			return err_set(e, ERR_ILLEGAL, g->tasks.v[o->task].loc, "the kernel is wrong: a box that '%s' stores begins in "
				"front of its tensor", g->tasks.v[o->task].name);
	}
	return OK;
}

static enum err_code check_body(struct walk w, const struct role_body *b, struct err *e)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];
		struct walk inside = w;

		for (int k = 0; o->what == DO_STORE_BOXES && k < o->u.boxes.boxes.n; k++)
			TRY(check_boxes(&w, o, &o->u.boxes.boxes.v[k], e));
		if (!role_is_region(o->what))
			continue;
		if (o->what == DO_EACH && o->u.region.var == VAR_ROUND)
			inside.rounds = (int)o->u.region.step;
		if (o->what == DO_IF && o->u.region.section == SECTION_REACHED) {
			if (o->task == NONE || w.p->graph->tasks.v[o->task].kind != TASK_STORE || o->u.region.other.v.n)
				return err_set(e, ERR_ILLEGAL, NOWHERE, "the kernel is wrong: what is left out is no store");
			TRY(check_condition(w.p, o, e));
		}
		TRY(check_body(inside, &o->u.region.body, e));
		TRY(check_body(inside, &o->u.region.other, e));
	}
	return OK;
}

enum err_code reached_check(const struct role_program *r, const struct plan *p, struct err *e)
{
	for (int i = 0; i < r->roles.n; i++)
		TRY(check_body((struct walk){ r, p, r->roles.v[i].warps, 1 }, &r->roles.v[i].body, e));
	return OK;
}
