#include "tile/extent.h"

#include <math.h>

#include "tile/program_build.h"

/* More than any machine computes; products of extents stay exact in a double. */
static const double TILES_MAX = 0x1p53;
static const double VALUE_MAX = 0x1p40;

struct infer {
	const struct program *p;
	struct extents *x;
	enum axis_role *role;		/* phase * AXES_MAX + axis */
	bool changed;
	struct err *e;
};

static enum axis_role role_of(const struct infer *f, int phase, int axis)
{
	return f->role[phase * AXES_MAX + axis];
}

/* Has any phase this role for the axis? */
static bool has_role(const struct infer *f, int axis, enum axis_role role)
{
	for (int i = 0; i < f->p->phases.n; i++)
		if (role_of(f, i, axis) == role)
			return true;
	return false;
}

/* Does a store have the axis, of which each tile has all? */
static bool is_undivided(const struct program *p, int axis)
{
	for (int i = 0; i < p->phases.n; i++)
		if (p->phases.v[i].undivided >> axis & 1)
			return true;
	return false;
}

/* tile= is given where the graph is made, so that no line of the program is to blame. */
static enum err_code check_extent(const struct infer *f, int axis, int64_t given)
{
	const struct axis *a = &f->p->axes.v[axis];
	bool tiled = has_role(f, axis, AXIS_GRID) || has_role(f, axis, AXIS_LOOP);

	if (given == 0)
		return OK;
	if (given < 0)
		return err_set(f->e, ERR_INPUT, NOWHERE, "the tile of axis '%s' is %lld; it must "
			"be positive", a->name, (long long)given);
	if (a->packs != NONE)
		return err_set(f->e, ERR_INPUT, NOWHERE, "axis '%s' counts words of '%s' and is tiled with it; leave "
			"it out of tile=", a->name, f->p->axes.v[a->packs].name);
	if (a->single && given != 1)
		return err_set(f->e, ERR_INPUT, NOWHERE, "axis '%s' is batch, so a tile has one "
			"value of it; leave it out of tile=", a->name);
	if (!tiled && has_role(f, axis, AXIS_FULL) && given < a->size)
		return err_set(f->e, ERR_INPUT, NOWHERE, "axis '%s' is complete in every tile because no loop runs "
			"over it and %s; leave it out of tile=", a->name, is_undivided(f->p, axis) ?
			"what is added in memory is made of all of it" : "no store has it");
	return OK;
}

/* Packed words are tiled with their elements; a tile must not end inside a word. */
static enum err_code follow_tile(const struct infer *f, int axis)
{
	const struct axis *a = &f->p->axes.v[axis], *to = &f->p->axes.v[a->packs];
	int64_t tile = f->x->tile[a->packs];

	if (tile >= to->size)
		return OK;
	if (tile % a->per)
		return err_set(f->e, ERR_INPUT, NOWHERE, "the tile of axis '%s' is %lld, but a word along '%s' holds "
			"%d of it; use a multiple of %d", to->name, (long long)tile, a->name, a->per, a->per);
	f->x->tile[axis] = tile / a->per;
	return OK;
}

static enum err_code choose_tiles(struct infer *f, const struct tiling *t)
{
	const struct program *p = f->p;

	for (int a = 0; a < p->axes.n; a++) {
		int64_t size = p->axes.v[a].size, given = t->extent[a];

		TRY(check_extent(f, a, given));
		f->x->tile[a] = given && given < size ? given : size;
		if (p->axes.v[a].single)
			f->x->tile[a] = 1;
	}
	for (int a = 0; a < p->axes.n; a++)
		if (p->axes.v[a].packs != NONE)
			TRY(follow_tile(f, a));
	return OK;
}

/* Does this region work on one tile of the axis at a time? */
static bool is_tiled(const struct infer *f, int phase, int loop, int axis)
{
	return role_of(f, phase, axis) == AXIS_GRID || program_axis_bound(f->p, loop, axis);
}

bool extent_is_full(const struct extents *x, int node, int axis)
{
	const struct node *n = &x->program->nodes.v[node];
	int i = ints_find(n->axis, n->naxes, axis);

	return i != NONE && x->full_axis[node * RANK_MAX + i];
}

/* Note that all of an axis of a value or carry is needed, if it has the axis. */
static void need_full(struct infer *f, uint8_t *full_axis, int naxes, const int *axes, int axis)
{
	int i = ints_find(axes, naxes, axis);

	if (i != NONE && !full_axis[i])
		full_axis[i] = f->changed = true;
}

/* What is known before propagation: an axis of which there is no present tile is full, and a scan along an axis of
 * the grid needs all elements before its own. */
static void begin(struct infer *f)
{
	const struct program *p = f->p;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		const struct task *t = n->task == NONE ? NULL : &p->tasks.v[n->task];

		for (int j = 0; t && j < n->naxes; j++) {
			bool scanned = op_class(n->op) == CLASS_SCAN && n->axis[j] == n->ref &&
				!program_axis_bound(p, t->loop, n->ref);

			f->x->full_axis[i * RANK_MAX + j] = scanned || !is_tiled(f, t->phase, t->loop, n->axis[j]);
		}
	}
	for (int i = 0; i < p->carries.n; i++) {
		const struct carry *c = &p->carries.v[i];

		for (int j = 0; j < c->naxes; j++)
			f->x->carry_full_axis[i * RANK_MAX + j] = !is_tiled(f, c->phase, c->loop, c->axis[j]);
	}
}

/* Does a node need all of an axis of its argument? */
static bool needs_full(const struct infer *f, int node, int axis)
{
	const struct node *n = &f->p->nodes.v[node];
	const struct axis *a = &f->p->axes.v[axis];

	if (n->op == OP_AT && n->ref == axis)
		return true;
	if (ints_hold(n->axis, n->naxes, axis))
		return extent_is_full(f->x, node, axis);
	if ((n->op == OP_UNPACK || n->op == OP_EXPAND) && a->packs == n->ref)
		return extent_is_full(f->x, node, n->ref);
	return !program_reduces_tile(f->p, n, axis);
}

static void propagate(struct infer *f, int node)
{
	const struct node *n = &f->p->nodes.v[node];
	bool gets = node_gets_carry(n), sets = node_sets_carry(n);
	const struct carry *c = gets || sets ? &f->p->carries.v[n->ref] : NULL;
	uint8_t *full = &f->x->full_axis[node * RANK_MAX];
	uint8_t *carry_full = c ? &f->x->carry_full_axis[n->ref * RANK_MAX] : NULL;

	for (int i = 0; i < n->naxes && gets; i++)
		if (full[i])
			need_full(f, carry_full, c->naxes, c->axis, n->axis[i]);
	for (int i = 0; i < n->naxes && sets; i++)
		if (carry_full[i])
			need_full(f, full, n->naxes, n->axis, c->axis[i]);
	for (int i = 0; i < node_arity(n); i++) {
		const struct node *arg = &f->p->nodes.v[n->arg[i]];

		for (int j = 0; j < arg->naxes; j++)
			if (needs_full(f, node, arg->axis[j]))
				need_full(f, &f->x->full_axis[n->arg[i] * RANK_MAX], arg->naxes, arg->axis,
					arg->axis[j]);
	}
}

/* A stored value of which all of an axis is there is stored at the indices of all of it. */
static void propagate_store(struct infer *f, int node)
{
	const struct node *n = &f->p->nodes.v[node], *value = &f->p->nodes.v[n->arg[0]];

	if (!has_index_values(n))
		return;
	for (int i = 0; i < value->naxes; i++)
		for (int k = 1; extent_is_full(f->x, n->arg[0], value->axis[i]) && k < node_arity(n); k++)
			need_full(f, &f->x->full_axis[n->arg[k] * RANK_MAX], f->p->nodes.v[n->arg[k]].naxes,
				f->p->nodes.v[n->arg[k]].axis, value->axis[i]);
}

static void find_bounds_by_all(struct infer *f)
{
	const struct program *p = f->p;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int l = n->task == NONE ? NONE : p->tasks.v[n->task].loop; l != NONE; l = p->loops.v[l].parent)
			for (int j = 0; j < n->naxes; j++)
				if (f->x->full_axis[i * RANK_MAX + j])
					f->x->bounded_by_all[l * AXES_MAX + n->axis[j]] = true;
	}
}

/* In a loop over an axis only the present tile of it exists. The building calls check that, except for axes that
 * became axes of packed words later. */
static enum err_code check_present(const struct infer *f)
{
	const struct program *p = f->p;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int j = 0; n->task != NONE && j < n->naxes; j++) {
			if (!f->x->full_axis[i * RANK_MAX + j] ||
			    !program_axis_bound(p, p->tasks.v[n->task].loop, n->axis[j]))
				continue;
			return err_set(f->e, ERR_INPUT, n->loc, "task '%s' is inside a loop over '%s' but is needed "
				"for all of it; move it out of the loop, or keep what is needed in a carry",
				p->tasks.v[n->task].name, p->axes.v[n->axis[j]].name);
		}
	}
	return OK;
}

/* What a tile has all of is in registers or memory of a size that a plan must know. */
static enum err_code check_known_sizes(const struct infer *f)
{
	const struct program *p = f->p;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int j = 0; n->task != NONE && j < n->naxes; j++)
			if (f->x->full_axis[i * RANK_MAX + j] && p->axes.v[n->axis[j]].multiple)
				return err_set(f->e, ERR_INPUT, n->loc,
					"task '%s' needs all of axis '%s' in every tile, whose size is "
					"known at launch only; reduce it in a loop over '%s' with a carry, or bind a size",
					p->tasks.v[n->task].name, p->axes.v[n->axis[j]].name,
						p->axes.v[n->axis[j]].name);
	}
	return OK;
}

static enum err_code check_sizes(const struct infer *f)
{
	const struct program *p = f->p;

	for (int i = 0; i < p->phases.n; i++) {
		double total = 1;

		for (int a = 0; a < p->axes.n; a++)
			if (role_of(f, i, a) == AXIS_GRID || role_of(f, i, a) == AXIS_BATCH)
				total *= (double)extent_tiles(f->x, a);
		if (total > TILES_MAX)
			return err_set(f->e, ERR_LIMIT, p->phases.v[i].loc, "phase '%s' has %.3g tiles; use larger "
				"ones", p->phases.v[i].name, total);
	}
	for (int i = 0; i < p->loops.n; i++) {
		const struct loop *l = &p->loops.v[i];
		double total = 1;

		for (int j = 0; j < l->naxes; j++)
			total *= (double)extent_tiles(f->x, l->axis[j]);
		if (total > TILES_MAX)
			return err_set(f->e, ERR_LIMIT, l->loc, "the loop over '%s' has %.3g iterations; use larger "
				"tiles", p->axes.v[l->axis[0]].name, total);
	}
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		double total = 1;

		for (int j = 0; j < n->naxes; j++)
			total *= (double)extent_of_node(f->x, i, j);
		if (total > VALUE_MAX && n->task != NONE)
			return err_set(f->e, ERR_LIMIT, n->loc, "a value in task '%s' has %.3g elements in every tile; "
				"use smaller tiles or a loop", p->tasks.v[n->task].name, total);
	}
	return OK;
}

enum err_code extents_infer(struct arena *a, const struct program *p, const struct tiling *t,
			    struct extents *out, struct err *e)
{
	struct extents x = { .program = p, .full_axis = ARENA_ARRAY(a, (size_t)p->nodes.n * RANK_MAX, uint8_t),
		.carry_full_axis = ARENA_ARRAY(a, (size_t)p->carries.n * RANK_MAX, uint8_t),
		.bounded_by_all = ARENA_ARRAY(a, (size_t)p->loops.n * AXES_MAX, uint8_t) };
	struct infer f = { .p = p, .x = &x, .changed = true, .e = e,
		.role = ARENA_ARRAY(a, (size_t)p->phases.n * AXES_MAX, enum axis_role) };

	for (int i = 0; i < p->phases.n; i++)
		axis_roles(p, i, &f.role[i * AXES_MAX]);
	TRY(choose_tiles(&f, t));
	begin(&f);
	/* Each pass but the last finds a need: at most RANK_MAX passes a node, and in
	 * practice one for every two carries in a row. */
	while (f.changed) {
		f.changed = false;
		for (int i = p->nodes.n - 1; i >= 0; i--)
			if (p->nodes.v[i].task != NONE) {
				propagate(&f, i);
				if (p->nodes.v[i].op == OP_STORE)
					propagate_store(&f, i);
			}
	}
	x.divided = (int)t->divided;
	x.parts = t->divided ? (int)t->parts : 1;
	find_bounds_by_all(&f);
	TRY(check_present(&f));
	TRY(check_known_sizes(&f));
	TRY(check_sizes(&f));
	*out = x;
	return OK;
}

int64_t extent_of_node(const struct extents *x, int node, int i)
{
	int axis = x->program->nodes.v[node].axis[i];

	return x->full_axis[node * RANK_MAX + i] ? x->program->axes.v[axis].size : x->tile[axis];
}

int64_t extent_of_carry(const struct extents *x, int carry, int i)
{
	int axis = x->program->carries.v[carry].axis[i];

	return x->carry_full_axis[carry * RANK_MAX + i] ? x->program->axes.v[axis].size : x->tile[axis];
}

int64_t extent_elements(const struct extents *x, int node)
{
	int64_t n = 1;

	for (int i = 0; i < x->program->nodes.v[node].naxes; i++)
		n *= extent_of_node(x, node, i);
	return n;
}

int64_t extent_tiles(const struct extents *x, int axis)
{
	return ceil_div(x->program->axes.v[axis].size, x->tile[axis]);
}

struct grid extents_grid(const struct extents *x, int phase)
{
	const struct program *p = x->program;
	const struct phase *ph = &p->phases.v[phase];
	enum axis_role role[AXES_MAX];
	struct grid g = { .total = 1 };

	axis_roles(p, phase, role);
	for (int i = 0; i < ph->nbatch; i++)
		g.axis[g.n++] = ph->batch[i];
	for (int a = 0; a < p->axes.n && g.n < LEN(g.axis); a++)
		if (role[a] == AXIS_GRID && p->axes.v[a].packs == NONE)
			g.axis[g.n++] = a;
	for (int i = 0; i < g.n; i++) {
		g.tiles[i] = extent_tiles(x, g.axis[i]);
		g.total *= g.tiles[i];
	}
	return g;
}

/* Set the ranges of axes of words that pack the axis. */
static void set_words(const struct program *p, int axis, struct axis_ranges *at)
{
	for (int a = 0; a < p->axes.n; a++)
		if (p->axes.v[a].packs == axis) {
			at->lo[a] = at->lo[axis] / p->axes.v[a].per;
			at->hi[a] = at->hi[axis] / p->axes.v[a].per;
		}
}

/* Set the ranges of an axis, and of the axes of words that pack it, to one of its tiles. */
static void set_range(const struct extents *x, int axis, int64_t tile, struct axis_ranges *at)
{
	const struct program *p = x->program;
	int64_t lo = tile * x->tile[axis];
	int64_t hi = min_i64(lo + x->tile[axis], p->axes.v[axis].size) - 1;

	at->lo[axis] = lo;
	at->hi[axis] = hi;
	set_words(p, axis, at);
}

void ranges_set_tile(const struct extents *x, const struct grid *g, int64_t tile, struct axis_ranges *out)
{
	const struct program *p = x->program;

	for (int a = 0; a < p->axes.n; a++) {
		out->lo[a] = 0;
		out->hi[a] = p->axes.v[a].size - 1;
	}
	for (int i = g->n - 1; i >= 0; i--) {
		set_range(x, g->axis[i], tile % g->tiles[i], out);
		tile /= g->tiles[i];
	}
}

int64_t loop_end(const struct extents *x, int loop, const struct axis_ranges *at, int64_t value)
{
	const struct loop *l = &x->program->loops.v[loop];

	return max_i64(0, min_i64(value + index_bounds(&l->length, at->lo, at->hi).hi,
		x->program->axes.v[l->axis[0]].size));
}

/* Is the step of the loop around that `at` is in one of those that predictions assume to be kept? These are spread
 * evenly. Of a range of steps: is one of them? */
static bool keeps_step(const struct program *p, const struct loop *l, const struct axis_ranges *at)
{
	const struct loop *outer = &p->loops.v[l->parent];
	double share = (double)l->typical / (double)program_steps_around(p, l);
	int64_t step = 0;

	for (int i = 0; i < outer->naxes; i++) {
		if (at->lo[outer->axis[i]] != at->hi[outer->axis[i]])
			return true;
		step = step * p->axes.v[outer->axis[i]].size + at->lo[outer->axis[i]];
	}
	return floor((double)(step + 1) * share) > floor((double)step * share);
}

int64_t typical_end(const struct extents *x, int loop, const struct axis_ranges *at)
{
	const struct loop *l = &x->program->loops.v[loop];

	if (l->keeps_steps)
		return !l->typical || keeps_step(x->program, l, at) ? 1 : 0;
	return l->has_length && l->typical ? loop_end(x, loop, at, l->typical) : x->program->axes.v[l->axis[0]].size;
}

int loop_parts(const struct extents *x, int loop)
{
	const struct loop *l = &x->program->loops.v[loop];

	return x->divided && l->parent == NONE && l->naxes == 1 && l->axis[0] == x->divided - 1 ? x->parts : 1;
}

void visited_iterations(const struct extents *x, int loop, const struct axis_ranges *at, int64_t *first, int64_t *last)
{
	visited_before(x, loop, at, typical_end(x, loop, at), first, last);
}

bool loop_bounded_by_all(const struct extents *x, int loop, int axis)
{
	return x->bounded_by_all && x->bounded_by_all[loop * AXES_MAX + axis] &&
		x->tile[axis] < x->program->axes.v[axis].size;
}

/* The ranges from which a loop's bounds follow: those of a tile, and all of the axes that it is bounded by in full.
 * Copied to *wider only if it must be, as this is asked for every tile. */
static const struct axis_ranges *bounding_ranges(const struct extents *x, int loop, const struct axis_ranges *tile,
	struct axis_ranges *wider)
{
	const struct axis_ranges *at = tile;

	for (int i = 0; x->bounded_by_all && i < x->program->axes.n; i++) {
		if (!loop_bounded_by_all(x, loop, i))
			continue;
		if (at == tile)
			*wider = *tile;
		at = wider;
		wider->lo[i] = 0;
		wider->hi[i] = x->program->axes.v[i].size - 1;
	}
	return at;
}

void visited_before(const struct extents *x, int loop, const struct axis_ranges *tile, int64_t end, int64_t *first,
	int64_t *last)
{
	const struct loop *l = &x->program->loops.v[loop];
	struct axis_ranges wider;
	const struct axis_ranges *at = bounding_ranges(x, loop, tile, &wider);
	int64_t n = 1;

	for (int i = 0; i < l->naxes; i++)
		n *= extent_tiles(x, l->axis[i]);
	*first = 0;
	*last = n;
	if (l->has_from) {
		int64_t least = index_bounds(&l->from, at->lo, at->hi).lo;

		*first = max_i64(0, min_i64(n, floor_div(least, x->tile[l->axis[0]])));
	}
	if (l->has_upto) {
		int64_t most = index_bounds(&l->upto, at->lo, at->hi).hi;

		*last = max_i64(0, min_i64(n, floor_div(most, x->tile[l->axis[0]]) + 1));
	}
	if (l->has_length)
		*last = min_i64(*last, ceil_div(end, x->tile[l->axis[0]]));
	*last = max_i64(*first, *last);
	if (loop_parts(x, loop) > 1)
		*last = *first + max_i64((*last - *first) / x->parts, 1);
}

void ranges_set_iteration(const struct extents *x, int loop, int64_t tile, struct axis_ranges *at)
{
	const struct loop *l = &x->program->loops.v[loop];

	for (int i = l->naxes - 1; i >= 0; i--) {
		int64_t n = extent_tiles(x, l->axis[i]);

		set_range(x, l->axis[i], tile % n, at);
		tile /= n;
	}
}

void ranges_end(const struct extents *x, int loop, int64_t end, struct axis_ranges *at)
{
	int axis = x->program->loops.v[loop].axis[0];

	at->hi[axis] = min_i64(at->hi[axis], end - 1);
	set_words(x->program, axis, at);
}
