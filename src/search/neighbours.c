#include "search/neighbours.h"

#include <math.h>

#include "search/build.h"
#include "search/sides.h"

enum {
	STARTS_MAX = 16384,		/* combinations of extents and lanes */
	DEPTH_MAX = 8,			/* of loaded rings; a lane that still waits then waits for something else */
	DEPTH_FINER = 16,		/* ... of the best plan's */
	LOAD_WARPS_MOST = 16,
	USUAL_RINGS = 3,		/* sets of rings that are made deeper for any plan */
	CONTRACTED_STEP = 32,		/* of extents between powers of two */
	BETWEEN_STEP = 16,		/* of those of axes that no product has */
	FREE_VERSIONS = 4,		/* values whose extra versions are tried one by one */
	/* Clusters divide loops into up to so many parts of at least so many iterations: a part has a prologue of its own,
	 * and more parts exchange more. */
	PARTS_MOST = 8,
	TRIPS_OF_PART = 4,
	/* Tiles of a grid with smaller shapes than usual: more cost the search memory and time, and each tile takes about a
	 * microsecond. Or so many times those of the usual shape, if that is more. */
	SMALLER_TILES_MOST = 1 << 18,
	SMALLER_TILES_RATIO = 8,
};

/* Computing lanes that are tried. Programs without products start from the first three only, and have the last one
 * for themselves: what waits for memory takes more threads than the matrix unit does. So do weights of few rows that
 * are converted in registers: the lanes before it are for the best plan with products on the second matrix unit. */
static const struct { int ways, warps, replicas; enum split_kind split; } lanes[] = { { 2, 4, 1, SPLIT_ROWS },
	{ 1, 4, 1, SPLIT_ROWS }, { 1, 8, 1, SPLIT_ROWS }, { 3, 4, 1, SPLIT_ROWS }, { 1, 4, 2, SPLIT_ROWS },
	{ 2, 4, 1, SPLIT_COLUMNS }, { 2, 4, 2, SPLIT_ROWS }, { 1, 4, 3, SPLIT_ROWS }, { 2, 4, 1, SPLIT_DEPTH },
	{ 2, 4, 1, SPLIT_TASKS }, { 3, 4, 1, SPLIT_TASKS }, { 2, 8, 1, SPLIT_TASKS }, { 4, 4, 1, SPLIT_COLUMNS },
	{ 1, 8, 2, SPLIT_ROWS } };

enum { USUAL_WAYS = 3 };
enum { GROUPS_START = 9 };		/* sTasks in groups: the search starts from these lanes, and goes on to others */

static bool has_lanes(const struct space *s, int i)
{
	if (lanes[i].split == SPLIT_TASKS && lanes[i].ways > s->ngroups)
		return false;
	if (s->has_products)
		return i < LEN(lanes) - 1 && (lanes[i].ways <= USUAL_WAYS || (s->on_second && s->finer));
	return lanes[i].ways == 1 || (s->finer && lanes[i].ways == 2 && lanes[i].split == SPLIT_ROWS);
}

static bool starts_from_lanes(const struct space *s, int i)
{
	return has_lanes(s, i) && (s->has_products ? lanes[i].split != SPLIT_TASKS || i == GROUPS_START : i <= 2);
}

/* Let every loop have the program's order; or, if ahead, that order in which most runs ahead, and versions for it. */
static void set_orders(const struct space *s, struct choice *c, bool ahead)
{
	c->extra_versions = 0;
	for (int l = 0; l < CHOICE_REGIONS; l++) {
		const struct orders *o = &s->variants[c->split_off].orders[l];

		c->order[l] = ahead ? o->most : 0;
		if (ahead && o->n)
			c->extra_versions |= o->v[o->most].versions;
	}
}

/* The i-th of the extents to start from; 0 if there are fewer. The first of several axes of a side stands for all of
 * them. */
static int64_t start_extent(const struct dim *d, int i)
{
	if (d->side)
		return i < (d->at ? 1 : d->side->nsplits) ? 1 : 0;
	for (int k = 0; k < d->n; k++)
		if (d->starts >> k & 1 && i-- == 0)
			return d->extent[k];
	return 0;
}

bool space_ahead(const struct space *s, const struct choice *c, struct choice *out)
{
	bool has = false;

	for (int l = 0; l < CHOICE_REGIONS; l++)
		has |= s->variants[c->split_off].orders[l].n > 1;
	*out = *c;
	set_orders(s, out, true);
	return has;
}

/* Of a program without products, the first lanes are one lane of twice the warps. */
static void add_lanes(const struct space *s, struct arena *a, const struct choice *shape, struct choices *out)
{
	for (int split_off = 0; split_off < 2; split_off++)
		for (int i = 0; i < LEN(lanes) && s->variants[split_off].exists; i++) {
			struct choice c = *shape;

			if (!starts_from_lanes(s, i))
				continue;
			c.split_off = split_off;
			c.ways = s->has_products ? lanes[i].ways : 1;
			c.warps = lanes[i].warps << (i == 0 && !s->has_products);
			c.replicas = lanes[i].replicas;
			c.split = lanes[i].split;
			set_orders(s, &c, false);
			VEC_PUSH(a, &out->v, c);
		}
}

void space_starts(const struct space *s, struct arena *a, struct choices *out)
{
	int at[AXES_MAX] = { 0 }, d = 0;
	struct choice c = space_first_choice(s);

	/* all combinations of the extents to start from; the last dimension changes fastest */
	while (d >= 0 && out->v.n < STARTS_MAX) {
		for (d = s->ndims - 1; d >= 0; d--)
			if (!s->dims[d].side)
				c.tiling.extent[s->dims[d].axis] = start_extent(&s->dims[d], at[d]);
			else if (!s->dims[d].at)
				sides_set(s, s->dims[d].side, at[d], &c.tiling);
		add_lanes(s, a, &c, out);
		for (d = s->ndims - 1; d >= 0 && !start_extent(&s->dims[d], ++at[d]); d--)
			at[d] = 0;
	}
}

/* The most tiles of a phase's grid. */
static double grid_tiles(const struct space *s, const struct choice *c)
{
	const struct program *p = s->program;
	double most = 0;

	for (int phase = 0; phase < p->phases.n; phase++) {
		double tiles = 1;

		for (int axis = 0; axis < p->axes.n; axis++) {
			enum axis_role role = program_axis_role(p, phase, axis);
			int64_t extent = c->tiling.extent[axis];

			if (role == AXIS_BATCH)
				tiles *= (double)p->axes.v[axis].size;
			else if (role == AXIS_GRID && extent)
				tiles *= (double)ceil_div(p->axes.v[axis].size, extent);
		}
		most = fmax(most, tiles);
	}
	return most;
}

void space_smaller(const struct space *s, int level, bool by_threads, struct arena *a, struct choices *out)
{
	int halved[AXES_MAX] = { 0 };
	bool begun = false;
	struct choice c = space_first_choice(s);
	double most = fmax(SMALLER_TILES_MOST, SMALLER_TILES_RATIO * grid_tiles(s, &c));

	c.products_by_threads = by_threads;
	while (space_next_smaller(s, level, halved, &begun, &c)) {
		if (grid_tiles(s, &c) > most)
			continue;
		for (int split_off = 0; split_off < 2; split_off++)
			for (int warps = 4; warps <= 8 && s->variants[split_off].exists; warps += 4) {
				struct choice x = c;

				x.split_off = split_off;
				x.warps = warps;
				set_orders(s, &x, false);
				VEC_PUSH(a, &out->v, x);
				x.ring_depth = x.tile_versions = 1;
				x.stores_by_threads = true;
				VEC_PUSH(a, &out->v, x);
			}
	}
}

/* ---- neighbours ------------------------------------------------------------------------ */

enum coordinate { BY_ORDER, BY_ISSUE_ORDER = BY_ORDER + CHOICE_REGIONS, BY_SECOND_SPLIT, BY_SPLIT_OFF, BY_GROUP, BY_RASTER, BY_CLUSTER,
	BY_LONGEST_FIRST, BY_KEEP, BY_DEPTH, BY_DEEPER_RINGS, BY_TILE_VERSIONS, BY_STORES, BY_PRODUCTS, BY_VERSIONS, BY_LANES, BY_COLUMNS, BY_LOADERS,
	BY_LOAD_UNITS, BY_EXTENT };

int space_coordinates(const struct space *s)
{
	return BY_EXTENT + s->ndims;
}

/* Where threads multiply, as no tile of the search's first ones had a plan with products on the matrix unit: the
 * same tile with them there, with the rings that need least, on one lane, and on two with sTasks of their own, whose
 * threads each have the sums of some of the products only. */
static void push_products_on_unit(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	struct choice x = *c;

	if (!c->products_by_threads)
		return;
	x.products_by_threads = x.issue_order = x.second_split = false;
	x.ways = x.replicas = x.ring_depth = x.tile_versions = 1;
	x.warps = 4;
	x.columns = 0;
	x.split = SPLIT_ROWS;
	x.ring_bytes = 0;
	VEC_PUSH(a, &out->v, x);
	if (s->ngroups < 2)
		return;
	x.ways = 2;
	x.split = SPLIT_TASKS;
	VEC_PUSH(a, &out->v, x);
}

/* Where ring_bytes is set to 0, the kernel may need other shared memory than rings do (space.h).
 *
 * The three next extents in either direction, and all extents that the search starts from; finer: also some
 * between powers of two, of a contracted axis and of those that no product has. */
static void along_extent(const struct space *s, const struct dim *d, const struct choice *c, struct arena *a, struct choices *out)
{
	static const int eighths[] = { 6, 7, 9, 10, 12, 14 };
	struct choice x = *c;
	int at = 0;

	x.ring_bytes = 0;
	while (at < d->n && d->extent[at] != c->tiling.extent[d->axis])
		at++;
	for (int i = 0; i < d->n; i++) {
		int far = i > at ? i - at : at - i;

		if (far == 0 || (far > 3 && !(d->starts >> i & 1)))
			continue;
		x.tiling.extent[d->axis] = d->extent[i];
		VEC_PUSH(a, &out->v, x);
		push_products_on_unit(s, &x, a, out);
	}
	x.tiling = c->tiling;
	for (int i = 0; i < d->n; i++)
		for (int k = 0; k < s->ndims; k++)
			if (d->extent[i] != c->tiling.extent[d->axis] &&
			    sides_exchange(s, d, d->extent[i], k, &c->tiling, &x.tiling))
				VEC_PUSH(a, &out->v, x);
	x.tiling = c->tiling;
	for (int i = 0; i < LEN(eighths) && s->finer && !d->contracted && !d->product && !d->wanted; i++) {
		int64_t extent = c->tiling.extent[d->axis] * eighths[i] / 8 / BETWEEN_STEP * BETWEEN_STEP;

		if (c->tiling.extent[d->axis] < 2 * BETWEEN_STEP || extent % d->multiple || extent > s->program->axes.v[d->axis].size)
			continue;
		x.tiling.extent[d->axis] = extent;
		VEC_PUSH(a, &out->v, x);
	}
	for (int i = -2; i <= 2 && s->finer && d->contracted && !d->wanted; i++) {
		int64_t extent = c->tiling.extent[d->axis] + i * CONTRACTED_STEP;

		if (i == 0 || extent <= 0 || extent % d->multiple || extent > s->program->axes.v[d->axis].size)
			continue;
		x.tiling.extent[d->axis] = extent;
		VEC_PUSH(a, &out->v, x);
	}
}

/* Clusters that divide the loop over an axis into so many parts, where there are EUs enough, with the tiles that there
 * are, or such that are twice or half as large along one axis of products. */
static void push_parts(const struct space *s, const struct choice *c, int axis, int parts, struct arena *a,
	struct choices *out)
{
	struct choice x = *c;

	x.grid.cluster = parts;
	x.grid.keep = 1;
	x.grid.along = NONE;
	x.grid.divided = axis + 1;
	x.tiling.divided = axis + 1;
	x.tiling.parts = parts;
	x.ring_bytes = 0;
	for (int d = NONE; d < s->ndims; d++)
		for (int twice = 0; twice < (d == NONE ? 1 : 2); twice++) {
			const struct dim *dim = d == NONE ? NULL : &s->dims[d];
			int64_t extent = dim ? c->tiling.extent[dim->axis] : 0;

			extent = twice ? 2 * extent : extent / 2;
			if (dim && (!dim->product || dim->wanted || dim->side || extent < 1 || extent % dim->multiple ||
				    extent > s->program->axes.v[dim->axis].size))
				continue;
			x.tiling = c->tiling;
			x.tiling.divided = axis + 1;
			x.tiling.parts = parts;
			if (dim)
				x.tiling.extent[dim->axis] = extent;
			if (grid_tiles(s, &x) * parts <= s->device->eus)
				VEC_PUSH(a, &out->v, x);
		}
}

/* The axes over which loops run that stand in no other, if the grid has fewer tiles than there are EUs. */
static void along_parts(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	const struct program *p = s->program;

	for (int l = 0; l < p->loops.n; l++) {
		const struct loop *x = &p->loops.v[l];
		int64_t extent = x->naxes == 1 ? c->tiling.extent[x->axis[0]] : 0, trips;

		if (x->parent != NONE || !extent || x->has_from || x->has_upto || x->has_length ||
		    p->axes.v[x->axis[0]].multiple)
			continue;
		trips = ceil_div(p->axes.v[x->axis[0]].size, extent);
		for (int parts = 2; parts <= s->device->max_cluster && parts <= PARTS_MOST; parts++)
			if (trips % parts == 0 && trips / parts >= TRIPS_OF_PART && (c->grid.cluster != parts ||
			    c->grid.divided != x->axis[0] + 1))
				push_parts(s, c, x->axis[0], parts, a, out);
	}
}

/* Other orders with the versions that there are, and each order with the versions of what it computes ahead. */
static void along_order(const struct space *s, int region, const struct choice *c, struct arena *a, struct choices *out)
{
	const struct orders *o = &s->variants[c->split_off].orders[region];
	struct choice x = *c;

	for (int i = 0; i < o->n; i++) {
		x.order[region] = i;
		x.extra_versions = c->extra_versions;
		if (i != c->order[region])
			VEC_PUSH(a, &out->v, x);
		x.extra_versions |= o->v[i].versions;
		if (x.extra_versions != c->extra_versions)
			VEC_PUSH(a, &out->v, x);
	}
}

/* More replicas with smaller tiles, of which memory holds as many again: neither is better alone. */
static void with_smaller_tiles(const struct space *s, const struct choice *c, const struct choice *more,
	struct arena *a, struct choices *out)
{
	for (int i = 0; i < s->ndims && s->finer && !s->has_products && more->replicas > c->replicas; i++) {
		const struct dim *d = &s->dims[i];
		int64_t extent = c->tiling.extent[d->axis];

		for (int k = 0; k < d->n && !d->wanted; k++) {
			struct choice x = *more;

			x.tiling.extent[d->axis] = d->extent[k];
			if (d->extent[k] < extent && d->extent[k] * 4 >= extent)
				VEC_PUSH(a, &out->v, x);
		}
	}
}

static void along_lanes(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	struct choice x = *c;

	x.ring_bytes = 0;
	for (int i = 0; i < LEN(lanes); i++) {
		if (!has_lanes(s, i))
			continue;
		x.ways = lanes[i].ways;
		x.columns = c->warps == lanes[i].warps ? c->columns : 0;
		x.warps = lanes[i].warps;
		x.replicas = lanes[i].replicas;
		x.split = lanes[i].split;
		x.issue_order = c->issue_order && x.ways > 1;
		/* Without loops rings are filled once a tile: each replica has a version of them, and one is filled
		 * meanwhile. */
		x.ring_depth = s->program->loops.n || c->ring_depth > x.replicas ? c->ring_depth : x.replicas + 1;
		if (x.ways != c->ways || x.warps != c->warps || x.replicas != c->replicas || x.split != c->split)
			VEC_PUSH(a, &out->v, x);
		with_smaller_tiles(s, c, &x, a, out);
	}
}

/* Either threads copy what the engine cannot bring together, or it brings each row by itself. */
static void along_rows(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	struct choice x = *c;

	if (!s->has_boxes || (!c->copied_loads && !c->loads_by_rows))
		return;
	x.loads_by_rows = c->loads_by_rows ? 0 : c->copied_loads;
	VEC_PUSH(a, &out->v, x);
}

/* Other lanes that load. If threads copy (space.h): with fewer and more warps, as many registers as they can use, and two lanes
 * instead of one. */
static void along_loaders(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	for (enum load_division how = LOADS_TOGETHER; how < LOAD_DIVISIONS && s->finer && !c->load_warps; how++) {
		struct choice x = *c;

		x.load_lanes = how;
		if (how != c->load_lanes && how != LOADS_KEPT && (how < LOADS_AHEAD || space_has_tile_loads(s->program, how == LOADS_BEHIND)))
			VEC_PUSH(a, &out->v, x);
	}
	for (enum load_division ways = LOADS_TOGETHER; ways <= LOADS_ALTERNATE && c->load_warps; ways++)
		for (int warps = 1; warps <= LOAD_WARPS_MOST; warps *= 2)
			for (int shifts = 0; shifts < 2; shifts++) {
				struct choice x = *c;

				x.load_lanes = ways;
				x.load_warps = warps;
				x.load_registers = shifts ? s->copy_registers : 0;
				if (choice_hash(&x) != choice_hash(c) && (!shifts || c->load_registers))
					VEC_PUSH(a, &out->v, x);
			}
}

/* Each load by the threads or by an engine, and all by threads, or without registers. finer only, as most loads are faster by
 * the engine; what it cannot bring, threads copy, and need no engine to tell them. */
static void along_load_units(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	unsigned all = (1u << s->nloads) - 1;
	struct choice x = *c;

	if (!s->finer)
		return;
	x.ring_bytes = 0;
	x.loads_by_dma = !c->loads_by_dma;
	if (s->dma_unit != NONE)
		VEC_PUSH(a, &out->v, x);
	x.loads_by_dma = c->loads_by_dma;
	for (int i = 0; i < s->nloads; i++) {
		x.loads_by_threads = c->loads_by_threads ^ 1u << i;
		VEC_PUSH(a, &out->v, x);
	}
	x.loads_by_threads = all;
	if (c->loads_by_threads != all)
		VEC_PUSH(a, &out->v, x);
}

/* Orders belong to a variant: the other one begins with its own. */
static void along_split_off(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	struct choice x = *c;

	x.split_off = !c->split_off;
	x.ring_bytes = 0;
	for (int ahead = 0; ahead < 2 && s->variants[x.split_off].exists; ahead++) {
		set_orders(s, &x, ahead);
		VEC_PUSH(a, &out->v, x);
	}
}

/* All values from first to last of an int of the choice, but for its own. x: a copy of c, field: in x. */
static void along_range(struct choice *x, int *field, int first, int last, struct arena *a, struct choices *out)
{
	int own = *field;

	for (*field = first; *field <= last; ++*field)
		if (*field != own)
			VEC_PUSH(a, &out->v, *x);
}

/* The first rings deeper; finer: also one of the others alone. */
static void along_deeper_rings(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	static const unsigned rings[] = { 0, 1, 3, 2, 4, 7, 8, 15 };
	struct choice x = *c;

	for (int i = 0; i < (s->finer ? LEN(rings) : USUAL_RINGS); i++) {
		x.deeper_rings = rings[i];
		if (rings[i] != c->deeper_rings)
			VEC_PUSH(a, &out->v, x);
	}
}

/* Neighbours along an axis one after the other on an EU, what they share on the lane of all loads, or on one of its own: a lane waits
 * for a slot also where it then has nothing to copy. */
static void along_kept(const struct space *s, const struct choice *c, struct arena *a, struct choices *out)
{
	static const int keeps[] = { 2, 4, 8, 16 };

	for (int axis = 0; axis < s->program->axes.n; axis++)
		for (int i = 0; i < LEN(keeps) && s->kept_axes >> axis & 1; i++)
			for (int own = 0; own < 2; own++) {
				struct choice x = *c;

				x.grid.cluster = 1;
				x.grid.divided = x.tiling.divided = x.tiling.parts = 0;
				x.grid.dynamic = false;
				x.grid.keep = keeps[i];
				x.grid.along = axis;
				x.load_lanes = own ? LOADS_KEPT : c->load_lanes == LOADS_KEPT ? LOADS_TOGETHER : c->load_lanes;
				if (choice_hash(&x) != choice_hash(c))
					VEC_PUSH(a, &out->v, x);
			}
	if (c->grid.keep > 1) {
		struct choice x = *c;

		x.grid.keep = 1;
		x.grid.along = NONE;
		x.load_lanes = c->load_lanes == LOADS_KEPT ? LOADS_TOGETHER : c->load_lanes;
		VEC_PUSH(a, &out->v, x);
	}
}

void space_neighbours(const struct space *s, const struct choice *c, int coordinate, struct arena *a,
	struct choices *out)
{
	static const int groups[] = { 1, 4, 8, 16, 32 };
	static const int sections[] = { 0, 1, 2, 4, 8, 16 };	/* tiles of an EU */
	struct choice x = *c;

	if (coordinate >= BY_EXTENT) {
		along_extent(s, &s->dims[coordinate - BY_EXTENT], c, a, out);
		return;
	}
	if (coordinate < BY_ISSUE_ORDER) {
		along_order(s, coordinate - BY_ORDER, c, a, out);
		return;
	}
	switch (coordinate) {
	case BY_ISSUE_ORDER:
		x.issue_order = !c->issue_order;
		if (c->ways > 1)
			VEC_PUSH(a, &out->v, x);
		break;
	case BY_SECOND_SPLIT:
		x.second_split = !c->second_split;
		x.ring_bytes = 0;
		if (build_has_second_split(s, c))
			VEC_PUSH(a, &out->v, x);
		break;
	case BY_SPLIT_OFF:
		along_split_off(s, c, a, out);
		break;
	case BY_GROUP:
		for (int i = 0; i < LEN(groups); i++) {
			x.grid.group = groups[i];
			if (groups[i] != c->grid.group)
				VEC_PUSH(a, &out->v, x);
		}
		break;
	case BY_RASTER:
		x.grid.raster = c->grid.raster == RASTER_ROWS ? RASTER_COLUMNS : RASTER_ROWS;
		VEC_PUSH(a, &out->v, x);
		break;
	case BY_CLUSTER:
		x.grid.cluster = c->grid.cluster == 1 ? 2 : 1;
		x.grid.keep = 1;
		x.grid.along = NONE;
		x.grid.divided = 0;
		x.tiling.divided = x.tiling.parts = 0;
		VEC_PUSH(a, &out->v, x);
		along_parts(s, c, a, out);
		break;
	case BY_KEEP:
		along_kept(s, c, a, out);
		break;
	case BY_LONGEST_FIRST:
		x.grid.longest_first = true;
		for (int i = 0; i < LEN(sections) && s->uneven; i++) {
			x.grid.section = sections[i] * s->device->eus;
			if (!c->grid.longest_first || x.grid.section != c->grid.section)
				VEC_PUSH(a, &out->v, x);
		}
		x.grid.longest_first = false;
		x.grid.section = 0;
		if (c->grid.longest_first && s->uneven)
			VEC_PUSH(a, &out->v, x);
		break;
	case BY_DEPTH:
		along_range(&x, &x.ring_depth, 1, DEPTH_MAX, a, out);
		for (int i = DEPTH_MAX + 2; i <= DEPTH_FINER && s->finer; i += 2) {
			x.ring_depth = i;
			if (i != c->ring_depth)
				VEC_PUSH(a, &out->v, x);
		}
		break;
	case BY_DEEPER_RINGS:
		along_deeper_rings(s, c, a, out);
		break;
	case BY_TILE_VERSIONS:
		x.tile_versions = c->tile_versions == 1 ? 2 : 1;
		VEC_PUSH(a, &out->v, x);
		break;
	case BY_STORES:
		x.stores_by_threads = !c->stores_by_threads;
		x.ring_bytes = 0;
		VEC_PUSH(a, &out->v, x);
		break;
	case BY_PRODUCTS:
		push_products_on_unit(s, c, a, out);
		break;
	case BY_VERSIONS:
		for (int i = 0; i < FREE_VERSIONS && (s->program->loops.n || s->finer); i++) {
			x.extra_versions = c->extra_versions ^ 1u << i;
			VEC_PUSH(a, &out->v, x);
		}
		break;
	case BY_LANES:
		along_lanes(s, c, a, out);
		break;
	case BY_COLUMNS:
		x.ring_bytes = 0;
		for (x.columns = 1; x.columns <= c->warps && s->has_warp_products && !c->products_by_threads; x.columns *= 2)
			if (c->warps % x.columns == 0 && x.columns != c->columns)
				VEC_PUSH(a, &out->v, x);
		break;
	case BY_LOADERS:
		along_loaders(s, c, a, out);
		along_rows(s, c, a, out);
		break;
	case BY_LOAD_UNITS:
		along_load_units(s, c, a, out);
		break;
	}
}
