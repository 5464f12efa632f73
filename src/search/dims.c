/* Chooses the extents of each tiled axis by how the program uses the axis (dims.h, axis_use.h).
 *
 * Rows and columns of products, what products contract, what is contiguous in memory and all else have lists of their
 * own (fill_dim). Which extents and which starts there are is experience with plans made by hand. They decide how
 * long a search takes, not what is legal. */
#include "search/dims.h"

#include "search/axis_use.h"

enum {
	FEW_LEAST = 16,			/* rows or columns of a product if there are fewer tiles than EUs otherwise */
	COLUMNS_LEAST = 32,		/* columns of a product, which come in steps of SPACE_COLUMNS */
	EVEN_TILES_MOST = 4,		/* of which an axis of such columns is to be, all with as many */
	FULL_PRODUCT_MOST = 4096,	/* rows or columns that a tile has all of, as a reduction goes along them */
	NARROW_LEAST = 8,		/* columns of a product come in steps of so many where a tile has such rows */
	LOOPED_START_MOST = 128,	/* greatest start of rows or columns in a loop: the keys of attention */
	SMALL_AXIS = 16,		/* up to this size, a loop takes one element at a time, or all */
	FULL_MAX = 65536,		/* up to this size, a contiguous axis may be one tile */
};

/* Powers of two from `from` to `to`. The first start is start_from, each other is start_step times the one before. */
struct powers {
	int64_t from, to, start_from, start_to, start_step;
};

static const struct powers CONTRACTED = { 32, 512, 32, 128, 2 };
/* At least 64 elements of a contiguous axis: if the rows of a tile are only a few memory sectors, they are read at half
 * the rate. */
static const struct powers STREAMED = { 64, 4096, 128, 2048, 4 };
static const struct powers OTHER = { 1, 256, 4, 256, 4 };
/* If there are fewer tiles than EUs otherwise: also a sector of memory at a time. */
static const struct powers STREAMED_FEW = { 8, 4096, 8, 2048, 4 };
/* Where each tile has an axis in full, of which one row may be all that fits. */
static const struct powers WITH_FULL_AXIS = { 1, 256, 1, 256, 4 };

/* Add an extent, clipped to the axis. One that is less than the last is left out; one that is there already becomes a
 * start if `start` says so. */
static void add_extent(struct dim *d, int64_t size, int64_t extent, bool start)
{
	extent = min_i64(round_up(extent, d->multiple), size);
	for (int i = 0; i < d->n; i++)
		if (d->extent[i] == extent) {
			d->starts |= (uint32_t)start << i;
			return;
		}
	if (d->n == EXTENTS_MAX || (d->n && extent < d->extent[d->n - 1]))
		return;
	d->starts |= (uint32_t)start << d->n;
	d->extent[d->n++] = extent;
}

static void fill_product(struct dim *d, int64_t size, const struct axis_use *u)
{
	int64_t step = u->row ? SPACE_ROWS : SPACE_COLUMNS;

	for (int64_t x = FEW_LEAST; d->few && x < (u->row ? SPACE_ROWS : COLUMNS_LEAST); x *= 2)
		add_extent(d, size, x, false);
	for (int64_t x = u->row ? SPACE_ROWS : COLUMNS_LEAST; x <= SPACE_PRODUCT_MOST && x < size + step; x += step)
		add_extent(d, size, x, x % SPACE_ROWS == 0 && (!u->looped || x <= LOOPED_START_MOST));
}

void dims_insert(struct dim *d, int64_t extent)
{
	uint32_t below;
	int at = 0;

	while (at < d->n && d->extent[at] < extent)
		at++;
	if (d->n == EXTENTS_MAX || (at < d->n && d->extent[at] == extent))
		return;
	for (int k = d->n++; k > at; k--)
		d->extent[k] = d->extent[k - 1];
	d->extent[at] = extent;
	below = d->starts & ((1u << at) - 1);
	d->starts = below | (d->starts & ~below) << 1;
}

/* Columns that the usual starts divide unevenly: a few tiles of the same extent, but for what an instruction is
 * padded by, to start from. Of many tiles the last one matters little. */
static void insert_even(const struct vdevice *device, struct dim *d, int64_t size)
{
	int64_t step = SPACE_COLUMNS;

	for (int i = 0; i < device->nseus; i++)
		if (device->seu[i].kind == SEU_MATRIX)
			step = min_i64(step, max_i64(device->seu[i].min_n, 1));
	for (int tiles = 1; tiles <= EVEN_TILES_MOST && size % SPACE_ROWS; tiles++) {
		int64_t extent = min_i64(round_up(ceil_div(size, tiles), step), size);

		if (extent >= COLUMNS_LEAST && extent <= SPACE_PRODUCT_MOST && extent % d->multiple == 0) {
			dims_insert(d, extent);
			add_extent(d, size, extent, true);
		}
	}
}

/* If the axis is too small for any start, its greatest extent is one. */
static void fill_powers(struct dim *d, int64_t size, const struct powers *p)
{
	int64_t next = p->start_from;

	for (int64_t x = p->from; x <= p->to && x < size * 2; x *= 2) {
		add_extent(d, size, x, x == next && x <= p->start_to);
		next = x == next ? next * p->start_step : next;
	}
	if (d->n && !d->starts)
		d->starts = 1u << (d->n - 1);
}

/* Does every tile need all of some axis of the grid, since a reduction goes along it where no loop does? */
static bool has_full_axis(const struct program *p)
{
	for (int axis = 0; axis < p->axes.n; axis++)
		if (axis_is_reduced(p, axis))
			return true;
	return false;
}

/* Do products have rows, of which every tile needs all, that are longer than a tile usually has? Then it has few
 * columns. */
static bool has_long_rows(const struct program *p, int column)
{
	for (int axis = 0; axis < p->axes.n; axis++)
		if (axis != column && axis_use_of(p, axis).row && p->axes.v[axis].size > SPACE_PRODUCT_MOST &&
		    axis_is_reduced(p, axis))
			return true;
	return false;
}

/* Columns of a product along other axes of which every tile has all, as a reduction goes along them; 1: none. */
static int64_t full_columns(const struct program *p, int column)
{
	int64_t n = 1;

	for (int axis = 0; axis < p->axes.n; axis++)
		if (axis != column && axis_use_of(p, axis).column && p->axes.v[axis].size <= SPACE_PRODUCT_MOST && axis_is_reduced(p, axis))
			n *= p->axes.v[axis].size;
	return n;
}

/* Is it the only short axis of rows or columns of products, with a long one on the same side, as the heads of a
 * product that makes queries, keys and values? There are few tile shapes then, so that more extents of it can be
 * tried. */
static bool is_only_short(const struct program *p, int axis)
{
	struct axis_use u = axis_use_of(p, axis);
	bool has_long = false;

	for (int a = 0; a < p->axes.n; a++) {
		struct axis_use v = axis_use_of(p, a);

		if (a == axis || v.looped || !(v.row || v.column) || !axis_has_role(p, a, AXIS_GRID))
			continue;
		if (p->axes.v[a].size < SPACE_SHORT_AXIS)
			return false;
		has_long |= u.row ? v.row : v.column;
	}
	return has_long;
}

static void fill_dim(const struct program *p, const struct vdevice *device, struct dim *d)
{
	static const int64_t few[] = { 1, 2, 3, 4, 6, 8, 12, 16 };
	int64_t size = p->axes.v[d->axis].size, full;
	struct axis_use u = axis_use_of(p, d->axis);
	bool product = u.row || u.column, needs_all = !u.looped && u.column && axis_is_reduced(p, d->axis);

	d->contracted = u.contracted && !product;
	d->product = product;
	full = u.column && !u.row && !u.looped && !needs_all ? full_columns(p, d->axis) : 1;
	if (needs_all && size <= SPACE_PRODUCT_MOST) {
		add_extent(d, size, size, true);
	} else if (full > 1) {			/* so many of these groups as make usual columns */
		for (int64_t x = 1; x == 1 || x * full <= SPACE_PRODUCT_MOST; x++)
			add_extent(d, size, x, x == 1 || x * full % SPACE_ROWS == 0);
	} else if (u.looped && size <= SMALL_AXIS) {
		/* rows of a product along such an axis come on top of those along others */
		add_extent(d, size, 1, size <= SMALL_AXIS / 2 || product);
		add_extent(d, size, size, size > SMALL_AXIS / 2);
	} else if (!u.looped && size < SPACE_SHORT_AXIS) {
		bool only = product && is_only_short(p, d->axis);

		for (int i = 0; i < LEN(few); i++)
			if (few[i] < size && (few[i] % 3 || (only && size % few[i] == 0)) && (few[i] != 2 || product) &&
			    !axis_is_contracted_again(p, d->axis))
				add_extent(d, size, few[i], (few[i] % 3 || few[i] == 3) && (few[i] != 2 || only) &&
					(product || !has_mma(p)));
		add_extent(d, size, size, true);
		d->is_short = product;
	} else if (product) {
		for (int64_t x = NARROW_LEAST; u.column && !u.looped && has_long_rows(p, d->axis) && x < COLUMNS_LEAST; x += NARROW_LEAST)
			add_extent(d, size, x, x == FEW_LEAST);
		fill_product(d, size, &u);
		if (u.column && !u.row && !u.looped)
			insert_even(device, d, size);
		if (!u.looped && size <= FULL_PRODUCT_MOST &&
		    (axis_is_reduced(p, d->axis) || axis_is_contracted_again(p, d->axis)))
			add_extent(d, size, size, true);
	} else if (u.contracted) {
		fill_powers(d, size, &CONTRACTED);
	} else if (u.looped || u.contiguous) {
		fill_powers(d, size, d->few && !u.looped && !has_mma(p) ? &STREAMED_FEW : &STREAMED);
		if (!u.looped && size <= FULL_MAX)
			add_extent(d, size, size, true);
	} else {
		fill_powers(d, size, has_full_axis(p) ? &WITH_FULL_AXIS : &OTHER);
		if (axis_is_reduced(p, d->axis) && size <= FULL_MAX)
			add_extent(d, size, size, true);
	}
	if (axis_is_reduced(p, d->axis) && !d->few && d->extent[d->n - 1] == size)
		d->starts = 1u << (d->n - 1);
}

/* Does a scan go along the axis where no loop does, or a read at other indices? A tile of it needs all before it, so
 * all of the axis is loaded and computed again for each of several tiles. */
static bool is_scanned(const struct program *p, int axis)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && node_goes_along(n, axis) && op_class(n->op) != CLASS_REDUCE &&
		    !program_axis_bound(p, p->tasks.v[n->task].loop, axis))
			return true;
	}
	return false;
}

/* Is there something to choose? An axis that is batch in any phase has tiles of one value, and words are tiled with
 * what they hold. Others are tiled if a loop runs over them, or if they are tiled over the grid in some phase and
 * complete in none. */
static bool is_tiled(const struct program *p, int axis)
{
	if (p->axes.v[axis].packs != NONE || p->axes.v[axis].single)
		return false;
	return axis_has_role(p, axis, AXIS_LOOP) || (axis_has_role(p, axis, AXIS_GRID) && !axis_has_role(p, axis, AXIS_FULL) &&
		!is_scanned(p, axis));
}

/* Elements of the axis in a packed word; 1: it is not packed. */
static int packed_per_word(const struct program *p, int axis)
{
	int per = 1;

	for (int a = 0; a < p->axes.n; a++)
		if (p->axes.v[a].packs == axis)
			per = p->axes.v[a].per > per ? p->axes.v[a].per : per;
	return per;
}

/* Take the extents that the caller asks for, all of them as starts. False if there are none. */
static bool take_wanted(const struct wanted *w, int64_t size, struct dim *d)
{
	for (int i = 0; w && i < w->n[d->axis]; i++) {
		d->extent[i] = min_i64(w->extent[d->axis][i], size);
		d->starts |= 1u << i;
		d->n++;
	}
	return d->n > 0;
}

/* The most tiles that a phase has with the least of the usual extents of products' rows and columns, and of what is
 * streamed. */
static int64_t most_tiles(const struct program *p)
{
	int64_t most = 0;

	for (int phase = 0; phase < p->phases.n; phase++) {
		int64_t tiles = 1;

		for (int a = 0; a < p->axes.n; a++) {
			enum axis_role role = program_axis_role(p, phase, a);
			struct axis_use u = axis_use_of(p, a);
			int64_t least = role == AXIS_BATCH ? 1 : u.row ? SPACE_ROWS : u.column ? COLUMNS_LEAST :
				u.contiguous && !has_mma(p) ? STREAMED.from : 1;

			if (role == AXIS_BATCH || role == AXIS_GRID)
				tiles = min_i64(tiles * ceil_div(p->axes.v[a].size, least), INT32_MAX);
		}
		most = max_i64(most, tiles);
	}
	return most;
}

/* How far within the program's loops an axis is: greater for inner loops, and for later axes of a loop. What is
 * contiguous in memory counts as innermost, so that what a tile loads has long rows. */
static int nesting(const struct program *p, int axis)
{
	int depth = 0;

	for (int l = 0; l < p->loops.n; l++)
		for (int i = 0; i < p->loops.v[l].naxes; i++)
			if (p->loops.v[l].axis[i] == axis)
				depth = l * AXES_MAX + i;
	return axis_use_of(p, axis).contiguous ? INT32_MAX : depth;
}

/* The dimensions that the product contracts, innermost first, but for those whose extents the caller has given. */
static int contracted_dims(const struct space *s, const struct node *mma, struct dim **out)
{
	const struct program *p = s->program;
	int n = 0;

	for (int i = 0; i < s->ndims; i++) {
		struct dim *d = &s->dims[i];
		int at = n;

		if (!d->contracted || d->wanted || node_has_axis(mma, d->axis) || !node_has_axis(&p->nodes.v[mma->arg[0]], d->axis))
			continue;
		for (; at > 0 && nesting(p, out[at - 1]->axis) < nesting(p, d->axis); at--)
			out[at] = out[at - 1];
		out[at] = d;
		n++;
	}
	return n;
}

/* Extents of an axis that a product contracts together with `inner` elements of the axes within it. */
static void fill_outer(struct dim *d, int64_t size, int64_t inner)
{
	int64_t most = max_i64(CONTRACTED.start_to / inner, 1), least = ceil_div(CONTRACTED.start_from, inner);

	d->n = 0;
	d->starts = 0;
	if (size <= SMALL_AXIS) {
		add_extent(d, size, 1, least == 1 || size > most);
		add_extent(d, size, size, least > 1 && size <= most);
		return;
	}
	for (int64_t x = 1; x <= CONTRACTED.to && x < size * 2; x *= 2)
		add_extent(d, size, x, x <= most && x >= min_i64(least, most));
}

/* If a product contracts several axes, a tile takes the usual number of elements of all of them together, not of
 * each: first of the innermost axis, and of the next one only if the tile has all of those within it. */
static void share_depth(const struct space *s)
{
	const struct program *p = s->program;

	for (int i = 0; i < p->nodes.n; i++) {
		struct dim *list[AXES_MAX];
		int n = p->nodes.v[i].op == OP_MMA && p->nodes.v[i].task != NONE ? contracted_dims(s, &p->nodes.v[i], list) : 0;
		int64_t inner = 1;

		for (int k = 0; k < n && n > 1; k++) {
			int64_t size = p->axes.v[list[k]->axis].size;

			if (k == 0 && size < CONTRACTED.start_from)
				list[k]->starts = 1u << (list[k]->n - 1);
			else if (k > 0)
				fill_outer(list[k], size, inner);
			inner = min_i64(inner * size, CONTRACTED.start_to);
		}
	}
}

enum err_code dims_find(struct space *s, const struct wanted *want, struct err *e)
{
	const struct program *p = s->program;
	bool few = most_tiles(p) < s->device->eus;

	s->dims = ARENA_ARRAY(s->a, p->axes.n, struct dim);
	for (int a = 0; a < p->axes.n; a++) {
		struct dim *d = &s->dims[s->ndims];

		s->has_products |= axis_use_of(p, a).row;
		if (want && want->n[a] && !is_tiled(p, a) && !axis_has_role(p, a, AXIS_LOOP))
			return err_set(e, ERR_INPUT, NOWHERE, "axis '%s' is not tiled: every tile has all of it",
				p->axes.v[a].name);
		if (!is_tiled(p, a) && !(want && want->n[a]))
			continue;
		d->axis = a;
		d->few = few;
		d->multiple = packed_per_word(p, a);
		d->wanted = take_wanted(want, p->axes.v[a].size, d);
		s->wants_rows |= d->wanted && axis_use_of(p, a).row;
		if (!d->wanted)
			fill_dim(p, s->device, d);
		s->ndims++;
	}
	share_depth(s);
	return OK;
}
