#include "search/space.h"

#include "search/build.h"

enum {
	SMALL_AXIS = 16,		/* a looped axis up to this size is taken whole, or one by one */
	SHORT_AXIS = 64,		/* below, an axis of the grid is cut into what divides it up */
	WHOLE_MAX = 16384,		/* of an axis that lies together: as one tile */
	STARTS_MAX = 4096,
	DEEPEST = 8,			/* of rings that loads fill: who waits then does so for something else */
	TILES_USUAL = 2,		/* versions of what is loaded once a tile */
	FREE_VERSIONS = 4,		/* values, of all that loops make, whose versions are tried one by one */
};

/* How products use an axis; does it lie together in memory? */
struct use {
	bool row, column, contracted, looped, together;
};

static bool holds(const struct node *n, int axis)
{
	return node_has_axis(n, axis);
}

static struct use use_of(const struct program *p, int axis)
{
	struct use u = { 0 };

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op != OP_MMA || n->task == NONE)
			continue;
		u.row |= holds(n, axis) && holds(&p->nodes.v[n->arg[0]], axis);
		u.column |= holds(n, axis) && holds(&p->nodes.v[n->arg[1]], axis);
		u.contracted |= !holds(n, axis) && holds(&p->nodes.v[n->arg[0]], axis);
	}
	for (int t = 0; t < p->tensors.n; t++)
		u.together |= p->tensors.v[t].dim[p->tensors.v[t].rank - 1] == axis;
	for (int l = 0; l < p->loops.n; l++)
		u.looped |= ints_hold(p->loops.v[l].axis, p->loops.v[l].naxes, axis);
	return u;
}

static void add(struct dim *d, int64_t size, int64_t extent, bool coarse)
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

static bool is_one_of(int64_t x, const int64_t *v, int n)
{
	for (int i = 0; i < n; i++)
		if (v[i] == x)
			return true;
	return false;
}

/* Columns of a product come in sixteens, up to what one instruction has; rows by warpgroups. */
static void fill_product(struct dim *d, int64_t size, const struct use *u)
{
	static const int64_t usual[] = { 64, 128, 192, 256 }, looped[] = { 64, 128 };
	int64_t step = u->row ? 64 : 16;

	for (int64_t x = u->row ? 64 : 32; x <= 256 && x < size + step; x += step)
		add(d, size, x, u->looped ? is_one_of(x, looped, LEN(looped)) :
			is_one_of(x, usual, LEN(usual)));
}

static void fill_powers(struct dim *d, int64_t size, int64_t from, int64_t to, int64_t coarse_from,
	int64_t coarse_to, int64_t coarse_step)
{
	int64_t next = coarse_from;

	for (int64_t x = from; x <= to && x < size * 2; x *= 2) {
		add(d, size, x, x == next && x <= coarse_to);
		next = x == next ? next * coarse_step : next;
	}
	if (d->n && !d->coarse)
		d->coarse = 1u << (d->n - 1);
}

static bool multiplies(const struct program *p)
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
		add(d, size, 1, size <= SMALL_AXIS / 2);
		add(d, size, size, size > SMALL_AXIS / 2);
	} else if (!u.looped && size < SHORT_AXIS) {
		for (int i = 0; i < LEN(few); i++)
			if (few[i] < size)
				add(d, size, few[i], product || !multiplies(p));
		add(d, size, size, true);
	} else if (product) {
		fill_product(d, size, &u);
	} else if (u.contracted) {
		fill_powers(d, size, 32, 256, 32, 128, 2);
	} else if (u.looped || u.together) {
		/* rows of less than a few sectors are read at half the rate */
		fill_powers(d, size, 64, 4096, 128, 2048, 4);
		if (!u.looped && size <= WHOLE_MAX)
			add(d, size, size, true);
	} else {
		fill_powers(d, size, 1, 256, 4, 256, 4);
	}
}

/* Tiled over the grid of some phase, and batch or whole in none? */
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

/* Those that the caller wants; false if there are none. */
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
				return err_set(e, ERR_INPUT, NOWHERE, "axis '%s' is not cut into tiles: "
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

/* May a product's operand be split along the axis, for such parts? */
static bool is_split_axis(const struct program *p, const struct choice *c, const struct node *mma, int axis)
{
	if (c->tiling.extent[axis] <= 1)
		return false;
	if (c->parts == PARTS_DEPTH)
		return !holds(mma, axis);
	return holds(mma, axis) && program_axis_role(p, p->tasks.v[mma->task].phase, axis) == AXIS_GRID;
}

int space_split_axis(const struct program *p, const struct choice *c)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i], *of;

		if (n->op != OP_MMA || n->task == NONE || !p->tasks.v[n->task].nodes.n)
			continue;
		of = &p->nodes.v[n->arg[c->parts != PARTS_ROWS]];
		for (int k = 0; k < of->naxes; k++)
			if (is_split_axis(p, c, n, of->axis[k]))
				return of->axis[k];
	}
	return NONE;
}

/* ---- conversions ----------------------------------------------------------------------- */

static const char *cut_name(const struct space *s, int i)
{
	const char *name = i ? arena_strf(s->a, "convert%d", i + 1) : "convert";

	while (program_find_task(s->program, name) != NONE)
		name = arena_strf(s->a, "%s_", name);
	return name;
}

/* Values of loops that products read as their first operand, where a last step makes them. */
static void find_cuts(struct space *s, const struct graph *g)
{
	const struct program *p = s->program;

	for (int b = 0; b < g->buffers.n && s->ncuts < CUTS_MAX; b++) {
		const struct buffer *x = &g->buffers.v[b];

		if (x->node == NONE || !x->matrix_a || x->loop == NONE || x->part ||
		    p->nodes.v[x->node].op != OP_CAST)
			continue;
		s->cuts[s->ncuts] = (struct cutting){ .node = x->node, .value = arena_strf(s->a, "%s",
			x->name), .name = cut_name(s, s->ncuts), .loc = NOWHERE };
		s->ncuts++;
	}
}

/* What the conversions read may lie where that was which it is made of. */
static void find_places(struct space *s, struct graph **g, const struct choice *c)
{
	const struct graph *whole = *g;
	struct placing found[CUTS_MAX];
	int n = 0;

	for (int b = 0; b < whole->buffers.n; b++) {
		const struct buffer *x = &whole->buffers.v[b];
		const struct stask *maker = &whole->tasks.v[x->first];

		if (x->node == NONE || x->loop == NONE || x->scope != SCOPE_REGISTERS)
			continue;
		for (int k = 0; k < maker->reads.n && n < CUTS_MAX; k++) {
			const struct buffer *y = &whole->buffers.v[maker->reads.v[k]];

			if (y->node != NONE && y->loop == x->loop && y->scope == SCOPE_REGISTERS &&
			    y->bytes == x->bytes && y->type == x->type)
				found[n++] = (struct placing){ arena_strf(s->a, "%s", x->name),
					arena_strf(s->a, "%s", y->name), NOWHERE };
		}
	}
	for (int i = 0; i < n; i++) {
		struct err e;

		graph_free(*g);
		*g = NULL;
		s->places[s->nplaces++] = found[i];
		if (build_graph(s, c, g, &e))
			s->nplaces--;
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

static struct choice first_choice(const struct space *s)
{
	struct choice c = { .ways = 1, .warps = 4, .replicas = 1, .depth = 6, .tiles = TILES_USUAL };

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
	struct choice c = first_choice(s);
	struct err e;

	if (!build_graph(s, &c, held, &e)) {
		for (int l = 0; l < s->program->loops.n; l++)
			s->uneven |= (*held)->trips[l].least != (*held)->trips[l].most;
		find_orders(s, *held, &s->variants[0]);
		find_cuts(s, *held);
	}
	graph_free(*held);
	*held = NULL;
	c.cut = true;
	if (s->ncuts && !build_graph(s, &c, held, &e)) {
		find_places(s, held, &c);
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

/* ---- where to start -------------------------------------------------------------------- */

/* What one lane takes, by how many parts and warps. */
static const struct { int ways, warps, replicas; enum parts parts; } lanes[] = { { 2, 4, 1, PARTS_ROWS },
	{ 1, 4, 1, PARTS_ROWS }, { 1, 8, 1, PARTS_ROWS }, { 3, 4, 1, PARTS_ROWS }, { 1, 4, 2, PARTS_ROWS },
	{ 2, 4, 1, PARTS_COLUMNS }, { 2, 4, 2, PARTS_ROWS }, { 1, 4, 3, PARTS_ROWS }, { 2, 4, 1, PARTS_DEPTH } };

/* Every loop in the program's order, or with most that runs ahead, and versions for it. */
static void set_orders(const struct space *s, struct choice *c, bool ahead)
{
	c->versions = 0;
	for (int l = 0; l < CHOICE_LOOPS; l++) {
		const struct orders *o = &s->variants[c->cut].orders[l];

		c->order[l] = ahead ? o->most : 0;
		if (ahead && o->n)
			c->versions |= o->v[o->most].versions;
	}
}

/* The i-th of the extents to start from; 0 if there are fewer. */
static int64_t usual_extent(const struct dim *d, int i)
{
	for (int k = 0; k < d->n; k++)
		if (d->coarse >> k & 1 && i-- == 0)
			return d->extent[k];
	return 0;
}

bool space_ahead(const struct space *s, const struct choice *c, struct choice *out)
{
	bool has = false;

	for (int l = 0; l < CHOICE_LOOPS; l++)
		has |= s->variants[c->cut].orders[l].n > 1;
	*out = *c;
	set_orders(s, out, true);
	return has;
}

static void add_lanes(const struct space *s, struct arena *a, const struct choice *shape,
	struct choices *out)
{
	for (int cut = 0; cut < 2; cut++)
		for (int i = 0; i < LEN(lanes) && s->variants[cut].exists; i++) {
			struct choice c = *shape;

			if (!s->has_products && i > 2)
				continue;
			c.cut = cut;
			c.ways = s->has_products ? lanes[i].ways : 1;
			c.warps = lanes[i].warps << (i == 0 && !s->has_products);
			c.replicas = lanes[i].replicas;
			c.parts = lanes[i].parts;
			set_orders(s, &c, false);
			VEC_PUSH(a, &out->v, c);
		}
}

void space_starts(const struct space *s, struct arena *a, struct choices *out)
{
	int at[AXES_MAX] = { 0 }, d = 0;
	struct choice c = first_choice(s);

	/* counting over the usual extents, the last dimension fastest */
	while (d >= 0 && out->v.n < STARTS_MAX) {
		for (d = s->ndims - 1; d >= 0; d--)
			c.tiling.extent[s->dims[d].axis] = usual_extent(&s->dims[d], at[d]);
		add_lanes(s, a, &c, out);
		for (d = s->ndims - 1; d >= 0 && !usual_extent(&s->dims[d], ++at[d]); d--)
			at[d] = 0;
	}
}

/* ---- what lies beside ------------------------------------------------------------------ */

enum coordinate { BY_ORDER, BY_TURN = BY_ORDER + CHOICE_LOOPS, BY_CUT, BY_GROUP, BY_RASTER,
	BY_CLUSTER, BY_LONGEST, BY_DEPTH, BY_DEEPER, BY_TILES, BY_STORE, BY_VERSIONS, BY_LANES, BY_EXTENT };

int space_coordinates(const struct space *s)
{
	return BY_EXTENT + s->ndims;
}

/* Extents nearby, and the usual ones. */
static void along_extent(const struct dim *d, const struct choice *c, struct arena *a,
	struct choices *out)
{
	struct choice x = *c;
	int at = 0;

	while (at < d->n && d->extent[at] != c->tiling.extent[d->axis])
		at++;
	for (int i = 0; i < d->n; i++) {
		int far = i > at ? i - at : at - i;

		if (far == 0 || (far > 3 && !(d->coarse >> i & 1)))
			continue;
		x.tiling.extent[d->axis] = d->extent[i];
		VEC_PUSH(a, &out->v, x);
	}
}

static void along_order(const struct space *s, int loop, const struct choice *c, struct arena *a,
	struct choices *out)
{
	struct choice x = *c;

	for (int i = 0; i < s->variants[c->cut].orders[loop].n; i++) {
		x.order[loop] = i;
		x.versions = c->versions;
		if (i != c->order[loop])
			VEC_PUSH(a, &out->v, x);
		x.versions |= s->variants[c->cut].orders[loop].v[i].versions;
		if (x.versions != c->versions)
			VEC_PUSH(a, &out->v, x);
	}
}

static void along_lanes(const struct space *s, const struct choice *c, struct arena *a,
	struct choices *out)
{
	struct choice x = *c;

	for (int i = 0; i < LEN(lanes); i++) {
		if (!s->has_products && lanes[i].ways > 1)
			continue;
		x.ways = lanes[i].ways;
		x.warps = lanes[i].warps;
		x.replicas = lanes[i].replicas;
		x.parts = lanes[i].parts;
		x.in_turn = c->in_turn && x.ways > 1;
		if (x.ways != c->ways || x.warps != c->warps || x.replicas != c->replicas || x.parts != c->parts)
			VEC_PUSH(a, &out->v, x);
	}
}

static void along_group(const struct choice *c, struct arena *a, struct choices *out)
{
	static const int groups[] = { 1, 4, 8, 16, 32 };
	struct choice x = *c;

	for (int i = 0; i < LEN(groups); i++) {
		x.grid.group = groups[i];
		if (groups[i] != c->grid.group)
			VEC_PUSH(a, &out->v, x);
	}
}

/* With what is cut off, other sTasks have orders. */
static void along_cut(const struct space *s, const struct choice *c, struct arena *a,
	struct choices *out)
{
	struct choice x = *c;

	x.cut = !c->cut;
	for (int ahead = 0; ahead < 2 && s->variants[x.cut].exists; ahead++) {
		set_orders(s, &x, ahead);
		VEC_PUSH(a, &out->v, x);
	}
}

void space_along(const struct space *s, const struct choice *c, int coordinate, struct arena *a,
	struct choices *out)
{
	struct choice x = *c;

	if (coordinate >= BY_EXTENT) {
		along_extent(&s->dims[coordinate - BY_EXTENT], c, a, out);
		return;
	}
	if (coordinate < BY_TURN) {
		along_order(s, coordinate - BY_ORDER, c, a, out);
		return;
	}
	switch (coordinate) {
	case BY_TURN:
		x.in_turn = !c->in_turn;
		if (c->ways > 1)
			VEC_PUSH(a, &out->v, x);
		break;
	case BY_CUT:
		along_cut(s, c, a, out);
		break;
	case BY_GROUP:
		along_group(c, a, out);
		break;
	case BY_RASTER:
		x.grid.raster = c->grid.raster == RASTER_ROWS ? RASTER_COLUMNS : RASTER_ROWS;
		VEC_PUSH(a, &out->v, x);
		break;
	case BY_CLUSTER:
		x.grid.cluster = c->grid.cluster == 1 ? 2 : 1;
		VEC_PUSH(a, &out->v, x);
		break;
	case BY_LONGEST:
		x.grid.longest_first = !c->grid.longest_first;
		if (s->uneven)
			VEC_PUSH(a, &out->v, x);
		break;
	case BY_DEPTH:
		for (x.depth = 1; x.depth <= DEEPEST; x.depth++)
			if (x.depth != c->depth)
				VEC_PUSH(a, &out->v, x);
		break;
	case BY_DEEPER:
		for (x.deeper = 0; x.deeper <= 2; x.deeper++)
			if (x.deeper != c->deeper)
				VEC_PUSH(a, &out->v, x);
		break;
	case BY_TILES:
		x.tiles = c->tiles == 1 ? TILES_USUAL : 1;
		VEC_PUSH(a, &out->v, x);
		break;
	case BY_STORE:
		x.by_threads = !c->by_threads;
		VEC_PUSH(a, &out->v, x);
		break;
	case BY_VERSIONS:
		for (int i = 0; i < FREE_VERSIONS; i++) {
			x.versions = c->versions ^ 1u << i;
			VEC_PUSH(a, &out->v, x);
		}
		break;
	case BY_LANES:
		along_lanes(s, c, a, out);
		break;
	}
}

static uint64_t mix(uint64_t h, int64_t x)
{
	h ^= (uint64_t)x + UINT64_C(0x9e3779b97f4a7c15) + (h << 6) + (h >> 2);
	h *= UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 32;
}

uint64_t choice_hash(const struct choice *c)
{
	uint64_t h = 1;

	for (int i = 0; i < AXES_MAX; i++)
		h = mix(h, c->tiling.extent[i]);
	for (int i = 0; i < CHOICE_LOOPS; i++)
		h = mix(h, c->order[i]);
	h = mix(mix(mix(mix(mix(h, c->cut), c->ways), c->warps), c->replicas), c->parts);
	h = mix(mix(mix(mix(h, c->in_turn), c->versions), c->depth), c->deeper);
	h = mix(mix(mix(mix(h, c->tiles), c->by_threads), c->grid.eus), c->grid.raster);
	return mix(mix(mix(h, c->grid.group), c->grid.longest_first), c->grid.cluster);
}
