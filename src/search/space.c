#include "search/space.h"

#include "base/hash.h"
#include "search/build.h"

enum {
	SMALL_AXIS = 16,		/* up to this size, a loop takes one element at a time, or all */
	SHORT_AXIS = 64,		/* below this size, an axis of the grid gets a few small extents */
	FULL_MAX = 16384,		/* up to this size, a contiguous axis may be one tile */
};

/* How the program uses an axis. */
struct use {
	bool row, column, contracted;	/* by products */
	bool looped;
	bool contiguous;		/* the last dimension of a tensor */
};

static struct use use_of(const struct program *p, int axis)
{
	struct use u = { 0 };

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op != OP_MMA || n->task == NONE)
			continue;
		u.row |= node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis);
		u.column |= node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[1]], axis);
		u.contracted |= !node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis);
	}
	for (int t = 0; t < p->tensors.n; t++)
		u.contiguous |= p->tensors.v[t].dim[p->tensors.v[t].rank - 1] == axis;
	for (int l = 0; l < p->loops.n; l++)
		u.looped |= ints_hold(p->loops.v[l].axis, p->loops.v[l].naxes, axis);
	return u;
}

/* Extents come in increasing order; one that is there already may become coarse. */
static void add_extent(struct dim *d, int64_t size, int64_t extent, bool coarse)
{
	extent = min_i64(extent, size);
	for (int i = 0; i < d->n; i++)
		if (d->extent[i] == extent) {
			d->coarse |= (uint32_t)coarse << i;
			return;
		}
	if (d->n == CHOICES_MAX || (d->n && extent < d->extent[d->n - 1]))
		return;
	d->coarse |= (uint32_t)coarse << d->n;
	d->extent[d->n++] = extent;
}

/* Rows of a product in steps of a warpgroup's 64, columns in steps of 16, both up to the 256 of one instruction. */
static void fill_product(struct dim *d, int64_t size, const struct use *u)
{
	int64_t step = u->row ? 64 : 16;

	for (int64_t x = u->row ? 64 : 32; x <= 256 && x < size + step; x += step)
		add_extent(d, size, x, x % 64 == 0 && (!u->looped || x <= 128));
}

/* Powers of two. Coarse are those from coarse_from to coarse_to, each coarse_step times the one before; if none of these
 * is an extent, the greatest extent. */
static void fill_powers(struct dim *d, int64_t size, int64_t from, int64_t to, int64_t coarse_from,
	int64_t coarse_to, int64_t coarse_step)
{
	int64_t next = coarse_from;

	for (int64_t x = from; x <= to && x < size * 2; x *= 2) {
		add_extent(d, size, x, x == next && x <= coarse_to);
		next = x == next ? next * coarse_step : next;
	}
	if (d->n && !d->coarse)
		d->coarse = 1u << (d->n - 1);
}

static bool has_mma(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_MMA)
			return true;
	return false;
}

static void fill_dim(const struct program *p, struct dim *d)
{
	static const int64_t few[] = { 1, 4, 8, 16 };
	int64_t size = p->axes.v[d->axis].size;
	struct use u = use_of(p, d->axis);
	bool product = u.row || u.column;

	if (u.looped && size <= SMALL_AXIS) {
		add_extent(d, size, 1, size <= SMALL_AXIS / 2);
		add_extent(d, size, size, size > SMALL_AXIS / 2);
	} else if (!u.looped && size < SHORT_AXIS) {
		for (int i = 0; i < LEN(few); i++)
			if (few[i] < size)
				add_extent(d, size, few[i], product || !has_mma(p));
		add_extent(d, size, size, true);
	} else if (product) {
		fill_product(d, size, &u);
	} else if (u.contracted) {
		fill_powers(d, size, 32, 256, 32, 128, 2);
	} else if (u.looped || u.contiguous) {
		/* rows of few memory sectors are read at half the rate */
		fill_powers(d, size, 64, 4096, 128, 2048, 4);
		if (!u.looped && size <= FULL_MAX)
			add_extent(d, size, size, true);
	} else {
		fill_powers(d, size, 1, 256, 4, 256, 4);
	}
}

/* Is the axis tiled over the grid in some phase, and neither batch nor full in any? */
static bool is_tiled(const struct program *p, int axis)
{
	bool grid = false;

	for (int ph = 0; ph < p->phases.n; ph++) {
		enum axis_role r = program_axis_role(p, ph, axis);

		if (r == AXIS_BATCH || r == AXIS_FULL)
			return false;
		grid |= r == AXIS_GRID;
	}
	return grid;
}

/* The extents that the caller asks for. False if there are none. */
static bool take_wanted(const struct wanted *w, int64_t size, struct dim *d)
{
	for (int i = 0; w && i < w->n[d->axis]; i++) {
		d->extent[i] = min_i64(w->extent[d->axis][i], size);
		d->coarse |= 1u << i;
		d->n++;
	}
	return d->n > 0;
}

static enum err_code find_dims(struct space *s, const struct wanted *want, struct err *e)
{
	const struct program *p = s->program;

	s->dims = ARENA_ARRAY(s->a, p->axes.n, struct dim);
	for (int a = 0; a < p->axes.n; a++) {
		struct use u = use_of(p, a);

		s->has_products |= u.row;
		if (!u.looped && !is_tiled(p, a)) {
			if (want && want->n[a])
				return err_set(e, ERR_INPUT, NOWHERE, "axis '%s' is not tiled: "
					"every tile has all of it", p->axes.v[a].name);
			continue;
		}
		s->dims[s->ndims].axis = a;
		if (!take_wanted(want, p->axes.v[a].size, &s->dims[s->ndims]))
			fill_dim(p, &s->dims[s->ndims]);
		s->ndims++;
	}
	return OK;
}

int space_region(const struct program *p, int phase, int loop)
{
	int region = loop != NONE ? loop : p->loops.n + phase;

	for (int l = 0; l < p->loops.n && loop == NONE; l++)
		if (p->loops.v[l].phase == phase)
			return NONE;
	return region < CHOICE_LOOPS ? region : NONE;
}

/* Can the choice split this product's operand along the axis? */
static bool is_split_axis(const struct program *p, const struct choice *c, const struct node *mma, int axis)
{
	if (c->tiling.extent[axis] <= 1)
		return false;
	if (c->split == SPLIT_DEPTH)
		return !node_has_axis(mma, axis);
	return node_has_axis(mma, axis) && program_axis_role(p, p->tasks.v[mma->task].phase, axis) == AXIS_GRID;
}

int space_split_axis(const struct program *p, const struct choice *c)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i], *of;

		if (n->op != OP_MMA || n->task == NONE || !p->tasks.v[n->task].nodes.n)
			continue;
		of = &p->nodes.v[n->arg[c->split != SPLIT_ROWS]];
		for (int k = 0; k < of->naxes; k++)
			if (is_split_axis(p, c, n, of->axis[k]))
				return of->axis[k];
	}
	return NONE;
}

/* ---- conversions ----------------------------------------------------------------------- */

static const char *conversion_name(const struct space *s, int i)
{
	const char *name = i ? arena_strf(s->a, "convert%d", i + 1) : "convert";

	while (program_find_task(s->program, name) != NONE)
		name = arena_strf(s->a, "%s_", name);
	return name;
}

/* First operands of products in loops that end with a conversion: it can be split off. */
static void find_conversions(struct space *s, const struct graph *g)
{
	const struct program *p = s->program;

	for (int b = 0; b < g->buffers.n && s->nconversions < CONVERSIONS_MAX; b++) {
		const struct buffer *x = &g->buffers.v[b];

		if (x->node == NONE || !x->matrix_a || x->loop == NONE || x->slice || p->nodes.v[x->node].op != OP_CAST)
			continue;
		s->conversions[s->nconversions] = (struct split_off){ .node = x->node,
			.value = arena_strf(s->a, "%s", x->name), .name = conversion_name(s, s->nconversions),
			.loc = NOWHERE };
		s->nconversions++;
	}
}

/* What a conversion reads may be an alias of the value that it was computed from. *g: the graph with the conversions
 * split off. The aliases that the graph can be built with are kept, and *g is that graph, or NULL. */
static void find_aliases(struct space *s, struct graph **g, const struct choice *c)
{
	const struct graph *without = *g;
	struct alias found[CONVERSIONS_MAX];
	int n = 0;

	for (int b = 0; b < without->buffers.n; b++) {
		const struct buffer *x = &without->buffers.v[b];
		const struct stask *maker = &without->tasks.v[x->first];

		if (x->node == NONE || x->loop == NONE || x->scope != SCOPE_REGISTERS)
			continue;
		for (int k = 0; k < maker->reads.n && n < CONVERSIONS_MAX; k++) {
			const struct buffer *y = &without->buffers.v[maker->reads.v[k]];

			if (y->node != NONE && y->loop == x->loop && y->scope == SCOPE_REGISTERS &&
			    y->bytes == x->bytes && y->type == x->type)
				found[n++] = (struct alias){ arena_strf(s->a, "%s", x->name),
					arena_strf(s->a, "%s", y->name), NOWHERE };
		}
	}
	for (int i = 0; i < n; i++) {
		struct err e;

		graph_free(*g);
		*g = NULL;
		s->aliases[s->naliases++] = found[i];
		if (build_graph(s, c, g, &e))
			s->naliases--;
	}
}

static void find_orders(struct space *s, const struct graph *g, struct variant *v)
{
	v->exists = true;
	for (int ph = 0; ph < s->program->phases.n; ph++)
		for (int l = NONE; l < s->program->loops.n; l++) {
			int region = space_region(s->program, ph, l);

			if (region != NONE && (l == NONE || s->program->loops.v[l].phase == ph))
				orders_find(g, s->device, ph, l, &v->orders[region]);
		}
}

struct choice space_first(const struct space *s)
{
	struct choice c = { .ways = 1, .warps = 4, .replicas = 1, .ring_depth = 6, .tile_versions = 2 };

	for (int i = 0; i < s->ndims; i++)
		for (int k = 0; k < s->dims[i].n && !c.tiling.extent[s->dims[i].axis]; k++)
			if (s->dims[i].coarse >> k & 1)
				c.tiling.extent[s->dims[i].axis] = s->dims[i].extent[k];
	c.grid = (struct grid_plan){ .raster = RASTER_ROWS, .group = s->has_products ? 8 : 1,
		.longest_first = s->uneven, .cluster = 1 };
	return c;
}

static void find_variants(struct space *s, struct graph **held)
{
	struct choice c = space_first(s);
	struct err e;

	if (!build_graph(s, &c, held, &e)) {
		for (int l = 0; l < s->program->loops.n; l++)
			s->uneven |= (*held)->trips[l].least != (*held)->trips[l].most;
		find_orders(s, *held, &s->variants[0]);
		find_conversions(s, *held);
	}
	graph_free(*held);
	*held = NULL;
	c.split_off = true;
	if (s->nconversions && !build_graph(s, &c, held, &e)) {
		find_aliases(s, held, &c);
		if (*held || !build_graph(s, &c, held, &e))
			find_orders(s, *held, &s->variants[1]);
	}
	graph_free(*held);
	*held = NULL;
}

enum err_code space_init(struct space *s, struct arena *a, struct mem *mem, const struct program *p,
	const struct vdevice *d, const struct wanted *want, struct graph **held, struct err *e)
{
	*s = (struct space){ .a = a, .mem = mem, .program = p, .device = d };
	TRY(find_dims(s, want, e));
	find_variants(s, held);
	return OK;
}

uint64_t choice_hash(const struct choice *c)
{
	const int64_t v[] = { c->split_off, c->ways, c->warps, c->replicas, c->split, c->issue_order, c->extra_versions,
		c->ring_depth, c->deeper_rings, c->tile_versions, c->stores_by_threads, c->grid.eus, c->grid.raster,
		c->grid.group, c->grid.longest_first, c->grid.cluster };
	uint64_t h = hash_bytes(hash_basis(0), c->tiling.extent, sizeof(c->tiling.extent));

	return hash_bytes(hash_bytes(h, c->order, sizeof(c->order)), v, sizeof(v));
}
