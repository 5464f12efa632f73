/* How large the tiles of a plain kernel are, and where a block keeps their values. */
#include "reference/plain_text.h"

static const int64_t ELEMENTS_MAX = (int64_t)1 << 30;	/* of one value: counted in int */

enum {
	TILE_FIRST = 64,
	TILE_LEAST = 8,			/* tiles above it are multiples of it, as is what a word holds packed */
	TILE_FEW = 16,			/* tiles up to it are not halved to have more of them */
	TILES_WANTED = 256,
	MEMORY_WANTED = 1 << 18,		/* in doubles, per block */
	MEMORY_MOST = 1 << 23,			/* ... where smaller tiles would each compute all of a row */
};

/* n * by, or ELEMENTS_MAX + 1 if that is more. */
static int64_t multiply_capped(int64_t n, int64_t by)
{
	return n > ELEMENTS_MAX / by ? ELEMENTS_MAX + 1 : n * by;
}

static int64_t round_up4(int64_t n)
{
	return (n + 3) / 4 * 4;
}

/* Most elements of an operand of a product, its own axes' part rounded up to fours. */
static int64_t operand_elements(const struct extents *x, int product, int which)
{
	const struct node *n = &x->program->nodes.v[product];
	const struct node *a = &x->program->nodes.v[n->arg[which]];
	int64_t own = 1, shared = 1;

	for (int i = 0; i < a->naxes; i++)
		if (!node_has_axis(n, a->axis[i]))
			shared = multiply_capped(shared, extent_of_node(x, n->arg[which], i));
	for (int i = 0; i < n->naxes; i++)
		if (node_has_axis(a, n->axis[i]))
			own = multiply_capped(own, extent_of_node(x, product, i));
	return multiply_capped(round_up4(own), shared);
}

/* Of a carry or a node with n axes: the product of extent(x, id, axis). */
static int64_t elements(const struct extents *x, int id, int n, int64_t (*extent)(const struct extents *, int, int))
{
	int64_t total = 1;

	for (int i = 0; i < n; i++)
		total = multiply_capped(total, extent(x, id, i));
	return total;
}

static int64_t reserve_doubles(struct plain_memory *r, int64_t elements, int64_t *most)
{
	int64_t at = r->total;

	r->total += round_up4(elements);
	*most = max_i64(*most, elements);
	return at;
}

enum err_code plain_memory(struct arena *arena, const struct extents *x, int phase,
			 struct plain_memory *out, struct err *e)
{
	const struct program *p = x->program;
	int64_t most = 0, a = 0, b = 0;
	struct plain_memory r = { .node = ARENA_ARRAY(arena, p->nodes.n, int64_t),
		.carry = ARENA_ARRAY(arena, p->carries.n, int64_t) };

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		r.node[i] = NONE;
		if (n->task == NONE || p->tasks.v[n->task].phase != phase || n->op == OP_SET || n->op == OP_STORE)
			continue;
		r.node[i] = reserve_doubles(&r, elements(x, i, n->naxes, extent_of_node), &most);
		if (n->op == OP_MMA) {
			a = max_i64(a, operand_elements(x, i, 0));
			b = max_i64(b, operand_elements(x, i, 1));
		}
	}
	for (int i = 0; i < p->carries.n; i++) {
		r.carry[i] = NONE;
		if (p->carries.v[i].phase == phase)
			r.carry[i] = reserve_doubles(&r, elements(x, i, p->carries.v[i].naxes, extent_of_carry), &most);
	}
	r.a = reserve_doubles(&r, a, &most);
	r.b = reserve_doubles(&r, b, &most);
	if (most > ELEMENTS_MAX)
		return err_set(e, ERR_LIMIT, p->phases.v[phase].loc, "a value of phase '%s' has more "
			"than 2^30 elements in a tile", p->phases.v[phase].name);
	*out = r;
	return OK;
}

/* Doubles that a block needs, in the phase that needs most; -1 if that is too much. */
static int64_t memory_wanted(struct arena *a, const struct program *p, const struct tiling *t,
			   struct extents *x, struct err *e)
{
	int64_t most = 0;

	if (extents_infer(a, p, t, x, e))
		return -1;
	for (int i = 0; i < p->phases.n; i++) {
		struct plain_memory r;

		if (plain_memory(a, x, i, &r, e))
			return -1;
		most = max_i64(most, r.total);
	}
	return most;
}

static void first_tiles(const struct program *p, struct tiling *t)
{
	*t = (struct tiling){ 0 };
	for (int i = 0; i < p->phases.n; i++) {
		for (int a = 0; a < p->axes.n; a++) {
			enum axis_role role = program_axis_role(p, i, a);

			if ((role == AXIS_GRID || role == AXIS_LOOP) && p->axes.v[a].packs == NONE &&
			    !p->axes.v[a].single)
				t->extent[a] = p->axes.v[a].size > 2 * TILE_FIRST ? TILE_FIRST : p->axes.v[a].size;
		}
	}
}

static int64_t halved(int64_t tile)
{
	return max_i64(1, (tile + 1) / 2 / TILE_LEAST * TILE_LEAST);
}

/* Set of the axes of the grid that are divided into tiles although values need all of them, as a softmax needs all of its
 * row: each tile would compute all of that. */
static uint64_t repeated_axes(struct arena *a, const struct program *p, const struct tiling *t)
{
	struct extents x;
	struct err ignored;
	uint64_t all = 0;

	if (extents_infer(a, p, t, &x, &ignored))
		return 0;
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int k = 0; k < n->naxes && n->task != NONE; k++)
			if (extent_is_full(&x, i, n->axis[k]) && extent_tiles(&x, n->axis[k]) > 1 &&
			    program_axis_role(p, p->tasks.v[n->task].phase, n->axis[k]) == AXIS_GRID)
				all |= (uint64_t)1 << n->axis[k];
	}
	return all;
}

/* Halve the tile that lets the values shrink most, but of no axis in `kept`; false if none does. */
static bool shrink_tile(struct arena *a, const struct program *p, struct tiling *t, uint64_t kept, int64_t *memory)
{
	int64_t least = *memory < 0 ? INT64_MAX : *memory;
	int best = NONE;

	for (int i = 0; i < p->axes.n; i++) {
		struct arena_mark mark = arena_mark(a);
		struct tiling one = *t;
		struct extents x;
		struct err e;
		int64_t n;

		if (t->extent[i] <= TILE_LEAST || kept >> i & 1)
			continue;
		one.extent[i] = halved(t->extent[i]);
		n = memory_wanted(a, p, &one, &x, &e);
		arena_reset(a, mark);
		n = n < 0 ? INT64_MAX : n;
		if (n < least || (n == least && best != NONE && t->extent[i] > t->extent[best]) ||
		    (*memory < 0 && best == NONE)) {
			least = n;
			best = i;
		}
	}
	if (best == NONE)
		return false;
	t->extent[best] = halved(t->extent[best]);
	*memory = least == INT64_MAX ? -1 : least;
	return true;
}

/* Halve tiles of the grid, but of no axis in `kept`, until there are enough for all of a device. */
static enum err_code split_grid(struct arena *a, const struct program *p, struct tiling *t, uint64_t kept, int phase,
	struct err *e)
{
	for (;;) {
		struct extents x;
		struct grid g;
		int best = NONE;

		TRY(extents_infer(a, p, t, &x, e));
		g = extents_grid(&x, phase);
		for (int i = 0; i < g.n; i++)
			if (t->extent[g.axis[i]] > TILE_FEW && !(kept >> g.axis[i] & 1) && (best == NONE || t->extent[g.axis[i]] > t->extent[best]))
				best = g.axis[i];
		if (g.total >= TILES_WANTED || best == NONE)
			return OK;
		t->extent[best] = halved(t->extent[best]);
	}
}

/* Tiles whose values are of moderate size. Axes in `kept` have one tile. Returns the doubles that a block needs then; -1
 * if that is too much. */
static int64_t fit_tiles(struct arena *a, const struct program *p, uint64_t kept, struct tiling *t, struct err *e)
{
	struct extents x;
	int64_t memory;

	first_tiles(p, t);
	for (int i = 0; i < p->axes.n; i++)
		if (kept >> i & 1)
			t->extent[i] = p->axes.v[i].size;
	memory = memory_wanted(a, p, t, &x, e);
	while ((memory < 0 || memory > MEMORY_WANTED) && shrink_tile(a, p, t, kept, &memory))
		;
	return memory;
}

enum err_code plain_extents(struct arena *a, const struct program *p, struct extents *out, struct err *e)
{
	struct tiling t;
	uint64_t kept;
	int64_t memory;

	fit_tiles(a, p, 0, &t, e);
	kept = repeated_axes(a, p, &t);
	if (kept) {
		memory = fit_tiles(a, p, kept, &t, e);
		if (memory < 0 || memory > MEMORY_MOST) {
			kept = 0;
			fit_tiles(a, p, kept, &t, e);
		}
	}
	for (int i = 0; i < p->phases.n; i++)
		TRY(split_grid(a, p, &t, kept, i, e));
	return extents_infer(a, p, &t, out, e);
}
