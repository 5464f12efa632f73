/* Finds what a program leaves to choose on a device: the extents of its axes, the orders of its loops, conversions that
 * can be sTasks of their own (space.h).
 *
 * Of the extents of an axis some are starts: the search begins with all combinations of them, and reaches the others
 * step by step (neighbours.c). Which extents and which starts there are is experience with plans made by hand, as are
 * the usual values of everything else (space_first_choice). They decide how long a search takes, not what is legal. */
#include "plan/keep.h"
#include "search/space.h"

#include <math.h>

#include "base/hash.h"
#include "lower/lower.h"
#include "search/build.h"
#include "search/limits.h"
#include "search/sides.h"
#include "search/starts.h"
#include "search/task_groups.h"
#include "target/target.h"

enum {
	FEW_LEAST = 16,			/* rows or columns of a product if there are fewer tiles than EUs otherwise */
	COLUMNS_LEAST = 32,		/* columns of a product, which come in steps of SPACE_COLUMNS */
	EVEN_TILES_MOST = 4,		/* of which an axis of such columns is to be, all with as many */
	FULL_PRODUCT_MOST = 4096,	/* rows or columns that a tile has all of, as a reduction goes along them */
	NARROW_LEAST = 8,		/* columns of a product come in steps of so many where a tile has such rows */
	LOOPED_START_MOST = 128,	/* greatest start of rows or columns in a loop: the keys of attention */
	SMALL_AXIS = 16,		/* up to this size, a loop takes one element at a time, or all */
	FULL_MAX = 65536,		/* up to this size, a contiguous axis may be one tile */
	BUILDS_MOST = 256,		/* graphs that are tried until one can be built */
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

/* How the program uses an axis. */
struct axis_use {
	bool row, column, contracted;	/* by products */
	bool looped;
	bool contiguous;		/* the last dimension of the largest tensor that has it */
};

static double tensor_bytes(const struct program *p, const struct tensor *t)
{
	double bits = dtype_bits(t->type);

	for (int i = 0; i < t->rank; i++)
		bits *= (double)p->axes.v[t->dim[i]].size;
	return bits / 8;
}

/* Do neighbouring elements of the axis lie next to each other along dimension d of the tensor? The tensor is declared
 * with the axis there, or some load or store has the axis as its index. */
static bool lies_along(const struct program *p, int tensor, int d, int axis)
{
	if (p->tensors.v[tensor].dim[d] == axis)
		return true;
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if ((n->op != OP_LOAD && n->op != OP_STORE) || n->task == NONE || n->ref != tensor)
			continue;
		for (int k = 0; k < n->index[d].n; k++)
			if (n->index[d].term[k].axis == axis && n->index[d].term[k].coef == 1 &&
			    n->index[d].term[k].div == 1)
				return true;
	}
	return false;
}

/* A few numbers for each row are contiguous along the rows, but what matters are the rows themselves. */
static bool is_contiguous(const struct program *p, int axis)
{
	double most = 0, last = 0;

	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];
		double bytes = tensor_bytes(p, t);

		for (int d = 0; d < t->rank; d++) {
			if (!lies_along(p, i, d, axis))
				continue;
			most = fmax(most, bytes);
			if (d == t->rank - 1)
				last = fmax(last, bytes);
		}
	}
	return last > 0 && last >= most;
}

static struct axis_use use_of(const struct program *p, int axis)
{
	struct axis_use u = { 0 };

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op != OP_MMA || n->task == NONE)
			continue;
		u.row |= node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis);
		u.column |= node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[1]], axis);
		u.contracted |= !node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis);
	}
	u.contiguous = is_contiguous(p, axis);
	for (int l = 0; l < p->loops.n; l++)
		u.looped |= ints_hold(p->loops.v[l].axis, p->loops.v[l].naxes, axis);
	return u;
}

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

/* Add an extent at its position of the list, of which it is no start. */
static void insert_extent(struct dim *d, int64_t extent)
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

/* Columns that the usual starts divide unevenly: a few tiles of the same extent, but for what an instruction is padded by, to start
 * from. Of many tiles the last one matters little. */
static void insert_even(const struct vdevice *device, struct dim *d, int64_t size)
{
	int64_t step = SPACE_COLUMNS;

	for (int i = 0; i < device->nseus; i++)
		if (device->seu[i].kind == SEU_MATRIX)
			step = min_i64(step, max_i64(device->seu[i].min_n, 1));
	for (int tiles = 1; tiles <= EVEN_TILES_MOST && size % SPACE_ROWS; tiles++) {
		int64_t extent = min_i64(round_up(ceil_div(size, tiles), step), size);

		if (extent >= COLUMNS_LEAST && extent <= SPACE_PRODUCT_MOST && extent % d->multiple == 0) {
			insert_extent(d, extent);
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

static bool has_mma(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_MMA)
			return true;
	return false;
}

static bool has_role(const struct program *p, int axis, enum axis_role role)
{
	for (int ph = 0; ph < p->phases.n; ph++)
		if (program_axis_role(p, ph, axis) == role)
			return true;
	return false;
}

bool space_is_reduced(const struct program *p, int axis)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && op_class(n->op) == CLASS_REDUCE && n->ref == axis && !program_reduces_tile(p, n, axis) &&
		    program_axis_role(p, p->tasks.v[n->task].phase, axis) == AXIS_GRID)
			return true;
	}
	return false;
}

bool space_is_contracted_again(const struct program *p, int axis)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && n->op == OP_MMA && !node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis) &&
		    !program_reduces_tile(p, n, axis) &&
		    program_axis_role(p, p->tasks.v[n->task].phase, axis) == AXIS_GRID)
			return true;
	}
	return false;
}

/* Does every tile need all of some axis of the grid, since a reduction goes along it where no loop does? */
static bool has_full_axis(const struct program *p)
{
	for (int axis = 0; axis < p->axes.n; axis++)
		if (space_is_reduced(p, axis))
			return true;
	return false;
}

/* Do products have rows, of which every tile needs all, that are longer than a tile usually has? Then it has few columns. */
static bool has_long_rows(const struct program *p, int column)
{
	for (int axis = 0; axis < p->axes.n; axis++)
		if (axis != column && use_of(p, axis).row && p->axes.v[axis].size > SPACE_PRODUCT_MOST &&
		    space_is_reduced(p, axis))
			return true;
	return false;
}

/* Columns of a product along other axes of which every tile has all, as a reduction goes along them; 1: none. */
static int64_t full_columns(const struct program *p, int column)
{
	int64_t n = 1;

	for (int axis = 0; axis < p->axes.n; axis++)
		if (axis != column && use_of(p, axis).column && p->axes.v[axis].size <= SPACE_PRODUCT_MOST && space_is_reduced(p, axis))
			n *= p->axes.v[axis].size;
	return n;
}

/* Is it the only short axis of rows or columns of products, with a long one on the same side, as the heads of a product that makes
 * queries, keys and values? There are few tile shapes then, so that more extents of it can be tried. */
static bool is_only_short(const struct program *p, int axis)
{
	struct axis_use u = use_of(p, axis);
	bool has_long = false;

	for (int a = 0; a < p->axes.n; a++) {
		struct axis_use v = use_of(p, a);

		if (a == axis || v.looped || !(v.row || v.column) || !has_role(p, a, AXIS_GRID))
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
	struct axis_use u = use_of(p, d->axis);
	bool product = u.row || u.column, needs_all = !u.looped && u.column && space_is_reduced(p, d->axis);

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
			    !space_is_contracted_again(p, d->axis))
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
		    (space_is_reduced(p, d->axis) || space_is_contracted_again(p, d->axis)))
			add_extent(d, size, size, true);
	} else if (u.contracted) {
		fill_powers(d, size, &CONTRACTED);
	} else if (u.looped || u.contiguous) {
		fill_powers(d, size, d->few && !u.looped && !has_mma(p) ? &STREAMED_FEW : &STREAMED);
		if (!u.looped && size <= FULL_MAX)
			add_extent(d, size, size, true);
	} else {
		fill_powers(d, size, has_full_axis(p) ? &WITH_FULL_AXIS : &OTHER);
		if (space_is_reduced(p, d->axis) && size <= FULL_MAX)
			add_extent(d, size, size, true);
	}
	if (space_is_reduced(p, d->axis) && !d->few && d->extent[d->n - 1] == size)
		d->starts = 1u << (d->n - 1);
}

/* Does a scan go along the axis where no loop does, or a read at other indices? A tile of it needs all before it, so all of the axis is loaded and
 * computed again for each of several tiles. */
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

/* Is there something to choose? An axis that is batch in any phase has tiles of one value, and words are tiled with what
 * they hold. Others are tiled if a loop runs over them, or if they are tiled over the grid in some phase and complete in
 * none. */
static bool is_tiled(const struct program *p, int axis)
{
	if (p->axes.v[axis].packs != NONE || p->axes.v[axis].single)
		return false;
	return has_role(p, axis, AXIS_LOOP) || (has_role(p, axis, AXIS_GRID) && !has_role(p, axis, AXIS_FULL) &&
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
			struct axis_use u = use_of(p, a);
			int64_t least = role == AXIS_BATCH ? 1 : u.row ? SPACE_ROWS : u.column ? COLUMNS_LEAST :
				u.contiguous && !has_mma(p) ? STREAMED.from : 1;

			if (role == AXIS_BATCH || role == AXIS_GRID)
				tiles = min_i64(tiles * ceil_div(p->axes.v[a].size, least), INT32_MAX);
		}
		most = max_i64(most, tiles);
	}
	return most;
}

/* How far within the program's loops an axis is: greater for inner loops, and for later axes of a loop. What is contiguous
 * in memory counts as innermost, so that what a tile loads has long rows. */
static int nesting(const struct program *p, int axis)
{
	int depth = 0;

	for (int l = 0; l < p->loops.n; l++)
		for (int i = 0; i < p->loops.v[l].naxes; i++)
			if (p->loops.v[l].axis[i] == axis)
				depth = l * AXES_MAX + i;
	return is_contiguous(p, axis) ? INT32_MAX : depth;
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

/* If a product contracts several axes, a tile takes the usual number of elements of all of them together, not of each: first
 * of the innermost axis, and of the next one only if the tile has all of those within it. */
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

static enum err_code find_dims(struct space *s, const struct wanted *want, struct err *e)
{
	const struct program *p = s->program;
	bool few = most_tiles(p) < s->device->eus;

	s->dims = ARENA_ARRAY(s->a, p->axes.n, struct dim);
	for (int a = 0; a < p->axes.n; a++) {
		struct dim *d = &s->dims[s->ndims];

		s->has_products |= use_of(p, a).row;
		if (want && want->n[a] && !is_tiled(p, a) && !has_role(p, a, AXIS_LOOP))
			return err_set(e, ERR_INPUT, NOWHERE, "axis '%s' is not tiled: every tile has all of it",
				p->axes.v[a].name);
		if (!is_tiled(p, a) && !(want && want->n[a]))
			continue;
		d->axis = a;
		d->few = few;
		d->multiple = packed_per_word(p, a);
		d->wanted = take_wanted(want, p->axes.v[a].size, d);
		s->wants_rows |= d->wanted && use_of(p, a).row;
		if (!d->wanted)
			fill_dim(p, s->device, d);
		s->ndims++;
	}
	share_depth(s);
	return OK;
}

int space_unit(const struct space *s, const struct choice *c, const struct work *w)
{
	return w->kind == WORK_MMA && c && c->on_second ? s->second_unit : device_seu_for(s->device, w);
}

int space_load_index(const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];
	int n = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *x = &g->tasks.v[i];

		n += x->kind == TASK_LOAD && x->slice == 0 && x->task < s->task;
	}
	return s->kind == TASK_LOAD && n < LOADS_MAX ? n : NONE;
}

/* Indices are those of loops, then those of phases. In a phase with loops only the orders of these are chosen. */
int space_order_index(const struct program *p, int phase, int loop)
{
	int region = loop != NONE ? loop : p->loops.n + phase;

	for (int l = 0; l < p->loops.n && loop == NONE; l++)
		if (p->loops.v[l].phase == phase)
			return NONE;
	return region < CHOICE_REGIONS ? region : NONE;
}

/* Can the choice split the product along the axis? Along the contracted axis only its operands are split. */
static bool is_split_axis(const struct program *p, const struct choice *c, const struct node *mma, int axis)
{
	if (c->tiling.extent[axis] <= 1)
		return false;
	if (c->split == SPLIT_DEPTH)
		return !node_has_axis(mma, axis);
	return node_has_axis(mma, axis) && program_axis_role(p, p->tasks.v[mma->task].phase, axis) == AXIS_GRID;
}

/* The first axis of which a tile has several elements: all that it computes may be split there. */
static int first_tile_axis(const struct program *p, const struct choice *c)
{
	for (int axis = 0; axis < p->axes.n; axis++)
		if (c->tiling.extent[axis] > 1 && has_role(p, axis, AXIS_GRID) && !space_is_reduced(p, axis))
			return axis;
	return NONE;
}

int space_split_axis(const struct program *p, const struct choice *c)
{
	if (!has_mma(p))
		return first_tile_axis(p, c);
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i], *operand;

		if (n->op != OP_MMA || n->task == NONE || !p->tasks.v[n->task].nodes.n)
			continue;
		operand = &p->nodes.v[n->arg[c->split != SPLIT_ROWS]];	/* the first has the rows */
		for (int k = 0; k < operand->naxes; k++)
			if (is_split_axis(p, c, n, operand->axis[k]))
				return operand->axis[k];
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

/* The product of two loaded values in their own type of 16 bits is one instruction for each two elements, where the target has it: what
 * is made of them is then split off with the conversion. */
static int steps_of_conversion(const struct space *s, const struct buffer *b)
{
	const struct program *p = s->program;
	const struct node *n = &p->nodes.v[b->node], *x = &p->nodes.v[n->arg[0]];
	int uses = 0, others = 0;

	if (b->scope != SCOPE_REGISTERS || !(target_of(s->device)->pairs >> n->type & 1) || x->op != OP_MUL || x->task != n->task)
		return 1;
	for (int k = 0; k < 2; k++)
		if (p->nodes.v[x->arg[k]].op != OP_LOAD || p->nodes.v[x->arg[k]].type != n->type)
			return 1;
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *o = &p->nodes.v[i];

		uses += ints_hold(o->arg, node_arity(o), n->arg[0]);
		others += o->task == n->task && o != n && o != x && o->op != OP_CONST && o->op != OP_INDEX;
	}
	return uses == 1 && others ? 2 : 1;
}

/* An sTask that ends with a conversion to a product's first operand must wait until the product of the iteration
 * before has read the operand's registers. If the conversion is split off, it alone waits. */
static void find_conversions(struct space *s, const struct graph *g)
{
	const struct program *p = s->program;

	for (int b = 0; b < g->buffers.n && s->nconversions < CONVERSIONS_MAX; b++) {
		const struct buffer *x = &g->buffers.v[b];

		if (x->node == NONE || !x->matrix_a || x->loop == NONE || x->slice || p->nodes.v[x->node].op != OP_CAST)
			continue;
		s->conversions[s->nconversions] = (struct split_off){ .node = x->node,
			.value = arena_strf(s->a, "%s", x->name), .name = conversion_name(s, s->nconversions),
			.loc = NOWHERE, .steps = steps_of_conversion(s, x) };
		s->nconversions++;
	}
}

/* Conversions that are split off read values that would otherwise never leave their sTask. So that these take no more
 * registers, each becomes an alias of a value of the same size and type that its sTask reads.
 *
 * *graph is the graph of choice c without aliases. These are tried one by one, and kept if a graph can be built with
 * them. Afterwards it is the last graph that was tried, or NULL if that one could not be built. */
static void find_aliases(struct space *s, struct graph **graph, const struct choice *c)
{
	const struct graph *without = *graph;
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

		graph_free(*graph);
		*graph = NULL;
		s->aliases[s->naliases++] = found[i];
		if (build_graph(s, c, graph, &e))
			s->naliases--;
	}
}

static void find_orders(struct space *s, const struct graph *g, struct variant *v)
{
	v->exists = true;
	for (int ph = 0; ph < s->program->phases.n; ph++)
		for (int l = NONE; l < s->program->loops.n; l++) {
			int region = space_order_index(s->program, ph, l);

			if (region != NONE && (l == NONE || s->program->loops.v[l].phase == ph))
				orders_find(g, s->device, ph, l, &v->orders[region]);
		}
}

struct choice space_first_choice(const struct space *s)
{
	/* one lane of a warpgroup computes; rings as deep as usual plans have them; the next tile's loads run ahead */
	struct choice c = { .ways = 1, .warps = 4, .replicas = 1, .load_lanes = LOADS_TOGETHER, .on_second = s->on_second,
		.ring_depth = s->program->loops.n ? 6 : 4, .tile_versions = 2 };

	for (int i = 0; i < s->ndims; i++)
		for (int k = 0; k < s->dims[i].n && !c.tiling.extent[s->dims[i].axis]; k++)
			if (s->dims[i].starts >> k & 1)
				c.tiling.extent[s->dims[i].axis] = s->dims[i].extent[k];
	for (int i = 0; i < s->nsides; i++)
		sides_set(s, &s->sides[i], 0, &c.tiling);
	/* Groups of tiles of a product share what they read of both operands in L2. Of uneven tiles, an EU gets a few of a
	 * section: enough to end together with others, few enough for L2 to hold what all of them read. */
	c.grid = (struct grid_plan){ .raster = RASTER_ROWS, .group = s->has_products ? 8 : 1,
		.longest_first = s->uneven, .section = s->uneven ? SECTION_TILES * s->device->eus : 0, .cluster = 1,
		.keep = 1, .along = NONE, .chiplets = s->device->chiplets };
	return c;
}

/* ---- smaller shapes ---------------------------------------------------------------------- */

/* The least start of the dimension, halved so many times. The search starts without tiles of an axis that has none. */
static int64_t halved_extent(const struct space *s, const struct dim *d, int times)
{
	int64_t size = s->program->axes.v[d->axis].size, extent = d->starts ? d->extent[__builtin_ctz(d->starts)] : size;

	if (d->side)
		extent = d->side->least[d->at];
	return min_i64(round_up(max_i64(extent >> times, 1), d->multiple), size);
}

/* How many halvings give another extent each time. */
static int halvings(const struct space *s, const struct dim *d)
{
	int n = 0;

	while (!d->wanted && halved_extent(s, d, n + 1) < halved_extent(s, d, n))
		n++;
	return n;
}

/* Goes to the next way to distribute `level` halvings over dimensions from `from` on; the first way if all are zero. */
static bool distribute(const struct space *s, int from, int level, int halved[AXES_MAX], bool begun)
{
	int most = from < s->ndims ? halvings(s, &s->dims[from]) : 0;

	if (from == s->ndims)
		return level == 0 && !begun;
	if (begun && distribute(s, from + 1, level - halved[from], halved, true))
		return true;
	for (halved[from] = begun ? halved[from] + 1 : 0; halved[from] <= most && halved[from] <= level; halved[from]++)
		if (distribute(s, from + 1, level - halved[from], halved, false))
			return true;
	return false;
}

bool space_next_smaller(const struct space *s, int level, int halved[AXES_MAX], bool *begun, struct choice *c)
{
	if (!distribute(s, 0, level, halved, *begun))
		return false;
	*begun = true;
	for (int i = 0; i < s->ndims; i++)
		c->tiling.extent[s->dims[i].axis] = halved_extent(s, &s->dims[i], halved[i]);
	return true;
}

/* With half and twice as much: what is too large for a plan in one proportion may not be in another. */
void space_add_extents(struct space *s, const struct choice *c)
{
	for (int i = 0; i < s->ndims; i++) {
		struct dim *d = &s->dims[i];
		int64_t extent = c->tiling.extent[d->axis];

		insert_extent(d, extent);
		if (!d->wanted && extent / 2 && extent / 2 % d->multiple == 0)
			insert_extent(d, extent / 2);
		if (!d->wanted && extent * 2 <= s->program->axes.v[d->axis].size)
			insert_extent(d, extent * 2);
	}
}

/* ---- variants ------------------------------------------------------------------------------ */

/* A choice whose graph can be built, in *graph: with the first extents or, if that is too large, smaller ones. */
static enum err_code build_any(struct space *s, struct graph **graph, struct choice *c, struct err *e)
{
	enum err_code code = build_graph(s, c, graph, e);

	for (int level = 1, tried = 0; code && level <= SPACE_LEVELS; level++) {
		int halved[AXES_MAX] = { 0 };
		bool begun = false;
		struct err other;

		while (code && tried++ < BUILDS_MOST && space_next_smaller(s, level, halved, &begun, c))
			code = build_graph(s, c, graph, &other);
	}
	return code;
}

/* How many lanes can have sTasks of their own: 1 for a program without products that have rows. */
static int count_groups(const struct space *s, const struct graph *g)
{
	struct arena_mark mark = arena_mark(s->a);
	int n = group_tasks(s->a, g, s->device, GROUPS_MOST, ARENA_ARRAY(s->a, g->tasks.n, int));

	arena_reset(s->a, mark);
	return s->has_products ? n : 1;
}

/* The first choice, but with the most rows of products that the search starts from. */
static struct choice choice_of_most_rows(const struct space *s)
{
	struct choice c = space_first_choice(s);

	for (int i = 0; i < s->ndims; i++) {
		const struct dim *d = &s->dims[i];

		if (d->starts && !d->side && use_of(s->program, d->axis).row)
			c.tiling.extent[d->axis] = d->extent[31 - __builtin_clz(d->starts)];
	}
	return c;
}

/* Cycles of the matrix unit for all products of the graph; INFINITY: it cannot do one of them, or has no instruction for it. */
static double product_cycles(const struct vdevice *d, const struct graph *g, int unit)
{
	const struct target *t = target_of(d);
	double cycles = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		if (s->work.kind != WORK_MMA)
			continue;
		if (!device_can(d, unit, &s->work) || !target_matrix(t, d->seu[unit].async, s->work.sparse, s->work.type))
			return INFINITY;
		cycles += device_cost(d, unit, &s->work, 4, (struct pace){ .active = d->eus, .clock_hz = d->clock_hz }).busy *
			graph_all_runs(g, s);
	}
	return cycles;
}

/* The instructions of a second matrix unit may have fewer rows than those of the first, which then pads the rows of a tile to
 * more. With many rows the first one is faster, or there would be no use for it. */
static int find_second_unit(const struct space *s, struct graph **graph)
{
	const struct vdevice *d = s->device;
	struct choice c = choice_of_most_rows(s);
	double cycles = INFINITY, now;
	int first = NONE, second = NONE;
	struct err e;

	for (int u = 0; u < d->nseus; u++)
		if (d->seu[u].kind == SEU_MATRIX && first == NONE)
			first = u;
		else if (d->seu[u].kind == SEU_MATRIX)
			second = u;
	if (second == NONE || !s->has_products || build_graph(s, &c, graph, &e))
		return NONE;
	cycles = product_cycles(d, *graph, first);
	now = product_cycles(d, *graph, second);
	graph_free(*graph);
	*graph = NULL;
	return now < cycles && isfinite(cycles) ? second : NONE;
}

/* The first unit of copies that a lane counts, if loads go to another one unless a plan says so; NONE. */
static int find_dma_unit(const struct vdevice *d)
{
	const struct target *t = target_of(d);
	int first, u;

	FIND_FIRST(first, d->nseus, d->seu[first].kind == SEU_COPY);
	FIND_FIRST(u, d->nseus, d->seu[u].kind == SEU_COPY && target_seen(t, &d->seu[u], true) == SEEN_COUNTED);
	return t->dma_bytes && u != first ? u : NONE;
}

/* Find what depends on the graph: first with each conversion in its sTask, then with conversions split off. There is
 * only one graph at a time, *graph, so that the caller can free it if memory runs out (space.h). */
static void find_variants(struct space *s, struct graph **graph)
{
	struct choice c = space_first_choice(s);
	struct err e;

	s->second_unit = find_second_unit(s, graph);
	if (!build_any(s, graph, &c, &s->unbuilt)) {
		for (int l = 0; l < s->program->loops.n; l++)
			s->uneven |= (*graph)->trips[l].least != (*graph)->trips[l].most;
		find_orders(s, *graph, &s->variants[c.split_off]);
		find_conversions(s, *graph);
		s->ngroups = count_groups(s, *graph);
		for (int t = 0; t < (*graph)->tasks.n; t++)
			s->nloads = max_i64(s->nloads, space_load_index(*graph, t) + 1);
		s->kept_axes = s->has_boxes ? keep_axes(*graph) : 0;
		s->has_warp_products = limit_has_warp_products(s, *graph);
	}
	graph_free(*graph);
	*graph = NULL;
	c.split_off = true;
	if (s->nconversions && !build_graph(s, &c, graph, &e)) {
		find_aliases(s, graph, &c);
		if (*graph || !build_graph(s, &c, graph, &e))
			find_orders(s, *graph, &s->variants[c.split_off]);
	}
	graph_free(*graph);
	*graph = NULL;
}

enum err_code space_init(struct space *s, struct arena *a, struct mem *mem, const struct program *p,
	const struct vdevice *d, const struct wanted *want, struct window *windows, int nwindows, struct graph **graph, struct err *e)
{
	*s = (struct space){ .a = a, .mem = mem, .program = p, .device = d, .second_unit = NONE, .windows = windows, .nwindows = nwindows,
		.dma_unit = find_dma_unit(d), .copy_registers = lower_has_target(d) ? lower_copy_registers(d) : 0,
		.has_boxes = lower_has_target(d) && lower_has_boxes(d), .ready = want ? want->ready : 0 };
	TRY(find_dims(s, want, e));
	sides_find(s, graph);
	starts_choose_elsewhere(s, graph);
	find_variants(s, graph);
	return OK;
}

bool space_has_tile_loads(const struct program *p, bool behind)
{
	for (int i = 0; i < p->tasks.n; i++) {
		bool looped = false, before = false;

		for (int k = 0; k < p->tasks.n; k++)
			if (p->tasks.v[k].phase == p->tasks.v[i].phase && p->tasks.v[k].loop != NONE) {
				looped = true;
				before |= k < i;
			}
		if (p->tasks.v[i].kind == TASK_LOAD && p->tasks.v[i].loop == NONE && looped && before == behind)
			return true;
	}
	return false;
}

uint64_t choice_hash(const struct choice *c)
{
	const int64_t v[] = { c->split_off, c->ways, c->warps, c->columns, c->replicas, c->split, c->second_split, c->load_lanes, c->load_warps,
		c->load_registers, c->copied_loads, c->loads_by_threads, c->loads_by_rows, c->loads_by_dma, c->issue_order, c->extra_versions,
		c->ring_bytes, c->ring_depth, c->deeper_rings, c->tile_versions, c->stores_by_threads,
		c->products_by_threads, c->on_second, c->grid.eus, c->grid.raster,
		c->grid.group, c->grid.longest_first, c->grid.section, c->grid.cluster, c->grid.keep, c->grid.along, c->grid.divided,
		c->grid.dynamic };
	uint64_t h = hash_bytes(hash_basis(0), c->tiling.extent, sizeof(c->tiling.extent));

	return hash_bytes(hash_bytes(h, c->order, sizeof(c->order)), v, sizeof(v));
}
