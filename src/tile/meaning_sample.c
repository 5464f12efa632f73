#include "tile/meaning_sample.h"

#include <math.h>
#include <string.h>

#include "base/prng.h"
#include "tile/interp.h"
#include "tile/program_build.h"
#include "tile/random.h"

/* How long the axes of a sample are. */
enum {
	LOOPED = 6,			/* a tile of 4 and a ragged one */
	PLACED = 4,			/* its indices take part in the values, or in bounds */
	OTHER = 2,
};

/* Limits of a sample: instances of sTasks in one tile of the grid, if loops go by single elements; and elements of all
 * values, over the grid and all iterations. */
static const double INSTANCES_MAX = 2000;
static const double ELEMENTS_MAX = 100e3;
/* How long bounded axes of a longer sample are at most, and its instances. */
enum { LONGEST = 1024 };
static const double LONGER_INSTANCES_MAX = 20e3;

/* The error of a number that was rounded to 16 bits, and of one that was rounded to an integer of 8 bits. */
static const double FLOAT_ERROR = 0x1p-11;
static const double STEP_ERROR = 0x1p-6;
/* Relative to the greatest element: float64's own error where large numbers cancel. */
static const double NOISE = 1e-9;

/* How the axes of a program are used, over all of its phases. */
struct use {
	bool batch, placed;
};

static void use_index(struct use *use, const struct index_expr *x)
{
	for (int i = 0; i < x->n; i++)
		use[x->term[i].axis].placed = true;
}

static bool adds_in_memory(const struct program *p, int phase)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].adds && p->tasks.v[p->nodes.v[i].task].phase == phase)
			return true;
	return false;
}

/* Each tile of the grid stores its own elements, so the grid makes no difference unless tiles add to the same ones. */
static void find_uses(const struct program *p, struct sample *s, struct use *use)
{
	for (int i = 0; i < p->phases.n; i++) {
		enum axis_role role[AXES_MAX];
		bool adds = adds_in_memory(p, i);

		axis_roles(p, i, role);
		for (int a = 0; a < p->axes.n; a++) {
			use[a].batch |= p->axes.v[a].single;
			s->grid[a] |= role[a] == AXIS_GRID && p->axes.v[a].packs == NONE;
			s->looped[a] |= (role[a] == AXIS_LOOP || (adds && role[a] == AXIS_GRID)) &&
				p->axes.v[a].packs == NONE;
		}
	}
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if ((n->op == OP_INDEX || n->op == OP_AT) && n->task != NONE)
			use[n->ref].placed = true;
		if (n->op == OP_AT && n->task != NONE)
			use_index(use, &n->index[0]);
	}
	for (int i = 0; i < p->loops.n; i++) {
		use_index(use, &p->loops.v[i].from);
		use_index(use, &p->loops.v[i].upto);
	}
	for (int a = 0; a < p->axes.n; a++) {
		const struct axis *x = &p->axes.v[a];

		s->per[a] = max_i64(s->per[a], 1);
		if (x->packs != NONE)
			s->per[x->packs] = max_i64(s->per[x->packs], x->per);
	}
}

static int64_t sample_size(const struct sample *s, const struct use *use, int axis)
{
	int64_t n = use->batch ? 1 : OTHER;

	if (use->placed)
		n = use->batch ? OTHER : PLACED;
	if (s->looped[axis])
		n = LOOPED;
	if (s->per[axis] > 1)
		n = min_i64(n, 3) * s->per[axis];
	return min_i64(n, s->size[axis]);
}

static double count_instances(const struct sample *s)
{
	const struct program *p = &s->p;
	double total = 0;

	for (int i = 0; i < p->tasks.n; i++) {
		double n = 1;

		for (int l = p->tasks.v[i].loop; l != NONE; l = p->loops.v[l].parent) {
			for (int j = 0; j < p->loops.v[l].naxes; j++) {
				int a = p->loops.v[l].axis[j];

				n *= (double)ceil_div(p->axes.v[a].size, s->per[a]);
			}
		}
		total += n;
	}
	return total;
}

static double count_elements(const struct sample *s)
{
	const struct program *p = &s->p;
	double total = 0;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		double elements = n->task != NONE;

		for (int a = 0; a < p->axes.n; a++) {
			if (ints_hold(n->axis, n->naxes, a) ||
			    (n->task != NONE && program_axis_bound(p, p->tasks.v[n->task].loop, a)))
				elements *= (double)p->axes.v[a].size;
		}
		total += elements;
	}
	return total;
}

/* The twin of the axis, or the axis of which it is the twin; NONE. Both number the same elements of tensors, so a sample has as many of
 * both, from the same one on. */
static int other_twin(const struct program *p, int axis)
{
	if (p->axes.v[axis].is_twin)
		return p->axes.v[axis].twin_of;
	for (int i = 0; i < p->axes.n; i++)
		if (p->axes.v[i].is_twin && p->axes.v[i].twin_of == axis)
			return i;
	return NONE;
}

static void set_size(struct sample *s, int axis, int64_t size)
{
	int other = other_twin(&s->p, axis);

	s->p.axes.v[axis].size = size;
	if (other != NONE)
		s->p.axes.v[other].size = size;
}

/* Shorten axes, the longest first, until no more than `most` is counted: only looped axes to at least one tile, or any
 * to at least two. */
static void limit(struct sample *s, double (*count)(const struct sample *s), double most, bool looped)
{
	int64_t least = looped ? 1 : 2;

	while (count(s) > most) {
		int longest = NONE;
		int64_t tiles = least;

		for (int a = 0; a < s->p.axes.n; a++) {
			int64_t n = ceil_div(s->p.axes.v[a].size, s->per[a]);

			if ((looped ? s->looped[a] : s->p.axes.v[a].packs == NONE) && n > least && n >= tiles) {
				tiles = n;
				longest = a;
			}
		}
		if (longest == NONE)
			return;
		set_size(s, longest, (tiles - 1) * s->per[longest]);
	}
}

/* Is any number rounded to an integer or a power of two, so that a small difference may become a step? */
static bool has_rounding(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		bool steps = n->op == OP_CAST && n->type != DT_BOOL && !dtype_has_mantissa(n->type) &&
			dtype_is_float(p->nodes.v[n->arg[0]].type);

		if (n->task != NONE && (steps || n->op == OP_FLOOR))
			return true;
	}
	return false;
}

/* What follows from the sizes of the axes. */
static void derive_axes(struct sample *s)
{
	s->nvary = 0;
	for (int i = 0; i < s->p.axes.n; i++) {
		struct axis *x = &s->p.axes.v[i];

		if (x->packs != NONE)
			x->size = min_i64(s->size[i], ceil_div(s->p.axes.v[x->packs].size, x->per));
		s->grid[i] &= !s->batch[i];
		s->varies[i] = s->looped[i] && !s->batch[i] && x->size > s->per[i];
		s->nvary += s->varies[i];
	}
}

/* The sample with arrays of its own, so that changes leave the first one alone. */
static struct sample copy_sample(struct arena *a, const struct sample *s)
{
	struct sample c = *s;

	c.p.axes.v = arena_copy(a, s->p.axes.v, (size_t)s->p.axes.n, sizeof(*s->p.axes.v));
	c.p.nodes.v = arena_copy(a, s->p.nodes.v, (size_t)s->p.nodes.n, sizeof(*s->p.nodes.v));
	c.p.loops.v = arena_copy(a, s->p.loops.v, (size_t)s->p.loops.n, sizeof(*s->p.loops.v));
	return c;
}

void sample_shorten(struct arena *a, const struct program *p, struct sample *out)
{
	struct use use[AXES_MAX] = { { 0 } };

	*out = copy_sample(a, &(struct sample){ .p = *p });
	find_uses(p, out, use);
	out->rounds = has_rounding(p);
	for (int i = 0; i < p->axes.n; i++) {
		out->size[i] = p->axes.v[i].size;
		if (p->axes.v[i].packs == NONE)
			out->p.axes.v[i].size = sample_size(out, &use[i], i);
	}
	for (int i = 0; i < p->axes.n; i++)
		if (p->axes.v[i].is_twin)
			set_size(out, i, max_i64(out->p.axes.v[i].size, out->p.axes.v[p->axes.v[i].twin_of].size));
	limit(out, count_instances, INSTANCES_MAX, true);
	limit(out, count_elements, ELEMENTS_MAX, false);
	for (int i = 0; i < p->axes.n; i++)
		out->batch[i] = use[i].batch;
	derive_axes(out);
}

/* shifts ------------------------------------------------------------------------ */

/* By multiples of this, all parts of the expression that divide the axis can be adjusted; at most `most`. */
static int64_t index_step(const struct index_expr *x, int axis, int64_t step, int64_t most)
{
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		int64_t period;

		if (t->axis != axis)
			continue;
		period = t->div * (t->mod ? t->mod : 1);
		if (period > most || step / gcd_i64(step, period) > most / period)
			return most;
		step = step / gcd_i64(step, period) * period;
	}
	return step;
}

/* The same for all loads and bounds of the sample. */
static int64_t axis_step(const struct sample *s, int axis)
{
	const struct program *p = &s->p;
	int64_t step = 1, most = max_i64(s->size[axis], 1);

	for (int i = 0; i < p->nodes.n; i++)
		for (int d = 0; p->nodes.v[i].op != OP_STORE && d < node_index_count(p, &p->nodes.v[i]); d++)
			step = index_step(&p->nodes.v[i].index[d], axis, step, most);
	for (int i = 0; i < p->loops.n; i++) {
		step = index_step(&p->loops.v[i].from, axis, step, most);
		step = index_step(&p->loops.v[i].upto, axis, step, most);
	}
	return step;
}

/* Adjust the expression to an axis that begins at `by` instead of 0; false if it divides the axis so that no constant
 * can adjust it. */
static bool shift_index(struct index_expr *x, int axis, int64_t by)
{
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		if (t->axis != axis)
			continue;
		if (by % t->div || (t->mod && by / t->div % t->mod))
			return false;
		x->k += t->mod ? 0 : t->coef * (by / t->div);
	}
	return true;
}

static bool shift_indices(struct arena *a, const struct program *p, struct node *n, int axis, int64_t by)
{
	int rank = node_index_count(p, n);
	struct index_expr *index = ARENA_ARRAY(a, rank, struct index_expr);
	bool done = true;

	for (int d = 0; d < rank; d++) {
		index[d] = n->index[d];
		done &= shift_index(&index[d], axis, by);
	}
	n->index = index;
	return done;
}

static bool shift_alone(struct arena *a, struct sample *s, int axis, int64_t by)
{
	struct program *p = &s->p;
	bool done = s->per[axis] == 1;

	for (int i = 0; i < p->nodes.n; i++) {
		struct node *n = &p->nodes.v[i];

		if (n->op == OP_INDEX && n->ref == axis)
			n->k += (double)by;
		if (n->op == OP_LOAD || n->op == OP_AT)
			done &= shift_indices(a, p, n, axis, by);
	}
	for (int i = 0; i < p->loops.n; i++) {
		struct loop *l = &p->loops.v[i];

		done &= shift_index(&l->from, axis, by);
		done &= shift_index(&l->upto, axis, by);
		if (l->axis[0] == axis) {
			l->from.k -= by;
			l->upto.k -= by;
		}
	}
	s->begin[axis] += by;
	return done;
}

/* Let an axis, and its twin, begin at `by`, unless it is packed in words. Stores keep their positions: it only matters that they are
 * the same under every tiling. */
static bool shift_axis(struct arena *a, struct sample *s, int axis, int64_t by)
{
	int other = other_twin(&s->p, axis);
	bool done = shift_alone(a, s, axis, by);

	return (other == NONE || shift_alone(a, s, other, by)) && done;
}

/* The next element of the axes that the expression has; false: there was none. */
static bool next_element(const struct sample *s, const struct index_expr *x, int64_t *at)
{
	for (int a = 0; a < s->p.axes.n; a++) {
		if (!index_uses(x, a))
			continue;
		if (++at[a] < s->p.axes.v[a].size)
			return true;
		at[a] = 0;
	}
	return false;
}

/* Is any value of the bound inside the loop's axis of `size` elements? If not, *past is the least value
 * beyond its end, INT64_MAX if there is none. */
static bool bounds_inside(const struct sample *s, const struct index_expr *x, int64_t size, int64_t *past)
{
	int64_t at[AXES_MAX] = { 0 };

	*past = INT64_MAX;
	do {
		int64_t v = index_bounds(x, at, at).lo;

		if (v > 0 && v < size - 1)
			return true;
		if (v >= size - 1)
			*past = min_i64(*past, v);
	} while (next_element(s, x, at));
	return false;
}

/* The values that an index takes in the sample. */
static struct index_range sample_bounds(const struct sample *s, const struct index_expr *x)
{
	int64_t lo[AXES_MAX] = { 0 }, hi[AXES_MAX] = { 0 };

	for (int a = 0; a < s->p.axes.n; a++)
		hi[a] = s->p.axes.v[a].size - 1;
	return index_bounds(x, lo, hi);
}

/* Find an axis of a bound, and how far to move it, so that the bound's values lie about `middle`, or as near to that
 * as the axis of the program allows. */
static bool find_axis_shift(const struct sample *s, const struct index_expr *x, int64_t middle, int *axis, int64_t *by)
{
	struct index_range r = sample_bounds(s, x);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		*axis = t->axis;
		*by = min_i64((2 * middle - r.lo - r.hi) / 2 / t->coef * t->div,
			s->size[t->axis] - s->p.axes.v[t->axis].size - s->begin[t->axis]);
		*by -= *by % axis_step(s, t->axis);
		if (!t->mod && *by > 0)
			return true;
	}
	return false;
}

/* Let values of the bound come to the middle of the loop's axis. */
static bool shift_inside(struct arena *a, struct sample *s, int over, const struct index_expr *x)
{
	int64_t size = s->p.axes.v[over].size, past, by;
	int axis;

	if (bounds_inside(s, x, size, &past))
		return false;
	if (find_axis_shift(s, x, (size - 1) / 2, &axis, &by))
		return shift_axis(a, s, axis, by);
	by = past - size / 2;
	return past < INT64_MAX && by > 0 && by <= s->size[over] - size && shift_axis(a, s, over, by);
}

bool sample_is_emptied(const struct sample *s, int loop, bool upto)
{
	const struct loop *l = &s->p.loops.v[loop];
	int64_t size = s->p.axes.v[l->axis[0]].size;
	struct index_range r;

	if (!(upto ? l->has_upto : l->has_from))
		return false;
	r = sample_bounds(s, upto ? &l->upto : &l->from);
	return upto ? r.lo < 0 && r.hi >= 0 : r.lo < size && r.hi >= size;
}

/* Let the bound leave out all of the loop's axis for some elements, and not for others. */
static bool shift_empty(struct arena *a, struct sample *s, int loop, bool upto)
{
	const struct loop *l = &s->p.loops.v[loop];
	int over = l->axis[0], axis;
	int64_t size = s->p.axes.v[over].size, end = s->size[over], by;

	if (!upto && end > size && !shift_axis(a, s, over, end - size))
		return false;
	return find_axis_shift(s, upto ? &l->upto : &l->from, upto ? 0 : size, &axis, &by) &&
		shift_axis(a, s, axis, by) && sample_is_emptied(s, loop, upto);
}

bool sample_shift(struct arena *a, struct sample *s, int loop, bool upto, enum sample_where where)
{
	const struct loop *l = &s->p.loops.v[loop];

	if (!l->body.n || !(upto ? l->has_upto : l->has_from))
		return false;
	return where == WHERE_EMPTY ? shift_empty(a, s, loop, upto) :
		shift_inside(a, s, l->axis[0], upto ? &l->upto : &l->from);
}

bool sample_lengthen(struct arena *a, const struct sample *s, struct sample *out)
{
	bool longer = false;

	*out = copy_sample(a, s);
	for (int i = 0; i < s->p.loops.n; i++) {
		const struct loop *l = &s->p.loops.v[i];

		if (l->has_from || l->has_upto)
			set_size(out, l->axis[0], min_i64(s->size[l->axis[0]], LONGEST));
	}
	limit(out, count_instances, LONGER_INSTANCES_MAX, true);
	limit(out, count_elements, ELEMENTS_MAX, false);
	for (int i = 0; i < s->p.axes.n; i++) {
		int64_t was = s->p.axes.v[i].size, size = out->p.axes.v[i].size;
		int64_t begin = max_i64(0, min_i64(s->begin[i] + was / 2 - size / 2, s->size[i] - size));

		if (size > was && begin != s->begin[i] && !s->p.axes.v[i].is_twin && !shift_axis(a, out, i, begin - s->begin[i]))
			return false;
		longer |= size > was;
	}
	derive_axes(out);
	return longer;
}

bool sample_keep_one(struct arena *a, const struct sample *s, int loop, bool upto, struct sample *out)
{
	const struct loop *l = &s->p.loops.v[loop];
	const struct index_expr *x = upto ? &l->upto : &l->from;

	*out = copy_sample(a, s);
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		int64_t size = out->p.axes.v[t->axis].size;
		bool last = (t->coef > 0) == upto;

		if (last && size > 1 && !shift_axis(a, out, t->axis, size - 1))
			return false;
		out->p.axes.v[t->axis].size = 1;
	}
	derive_axes(out);
	return true;
}

bool sample_find_empty(const struct sample *s, int loop, bool upto, int64_t *at, int64_t *bound)
{
	const struct loop *l = &s->p.loops.v[loop];
	const struct index_expr *x = upto ? &l->upto : &l->from;
	int over = l->axis[0];

	memset(at, 0, AXES_MAX * sizeof(*at));
	do {
		int64_t v = index_bounds(x, at, at).lo;

		if (upto ? v < 0 : v >= s->p.axes.v[over].size) {
			for (int a = 0; a < s->p.axes.n; a++)
				at[a] += s->begin[a];
			*bound = v + s->begin[over];
			return true;
		}
	} while (next_element(s, x, at));
	return false;
}

/* evaluation -------------------------------------------------------------------- */

/* The grid is tiled where that can make a difference: bounds are taken over its tile. */
static void choose_tiles(const struct sample *s, int axis, enum sample_tiles tiles, struct tiling *out)
{
	bool bounded = false;

	*out = (struct tiling){ 0 };
	for (int i = 0; i < s->p.loops.n; i++)
		bounded |= s->p.loops.v[i].has_from || s->p.loops.v[i].has_upto;
	for (int a = 0; a < s->p.axes.n && tiles != TILES_ONE; a++) {
		int64_t per = s->per[a], size = s->p.axes.v[a].size;

		if (s->varies[a] && (axis == NONE || axis == a))
			out->extent[a] = tiles == TILES_MANY ? per : max_i64(1, (2 * size + 2) / 3 / per) * per;
		else if (bounded && s->grid[a] && !s->looped[a])
			out->extent[a] = ceil_div(2, per) * per;
	}
}

static double random_input(struct prng *r, enum dtype t, int inputs)
{
	double unit = prng_unit(r);

	if (t == DT_E8M0)
		return dtype_round(t, 0.25 + unit);
	if (dtype_is_float(t))
		return inputs == 0 ? 2 * unit - 1 : 0.25 + unit;
	if (t == DT_BOOL)
		return unit < 0.5;
	return floor(unit * 16) - (inputs == 0 && t != DT_U8 ? 8 : 0);
}

/* Indices lie inside the tensors of the program itself, and a load wraps around what they are in the sample. */
static void fill_input(const struct program *p, int tensor, int inputs, double *v)
{
	const struct tensor *t = &p->tensors.v[tensor];
	struct prng r = { (uint64_t)tensor * 2 + (uint64_t)inputs };
	bool words = false;		/* which hold fields of any bits */

	for (int i = 0; i < t->rank; i++)
		words |= p->axes.v[t->dim[i]].packs != NONE && t->type == DT_I32;
	for (int64_t i = 0; i < tensor_elements(p, tensor); i++) {
		if (words)
			v[i] = dtype_round(t->type, (int32_t)(uint32_t)prng_next(&r));
		else if (t->index_distinct && dtype_bits(t->type) == 8)
			v[i] = dtype_load(t->type, &(uint8_t){ (uint8_t)fill_byte(random_type(t->type, 0, true, 0),
				prng_next(&r)) }, 0);
		else if (t->index_below)
			v[i] = t->index_distinct ? fill_distinct(random_type(t->type, t->index_below, true, 0), 0,
				(fill_word)i) : floor(prng_unit(&r) * (double)t->index_below);
		else
			v[i] = random_input(&r, t->type, inputs);
	}
}

static int64_t carry_elements(const struct program *p, int carry)
{
	const struct carry *c = &p->carries.v[carry];
	int64_t n = 1;

	for (int i = 0; i < c->naxes; i++)
		n *= p->axes.v[c->axis[i]].size;
	return n;
}

bool sample_run(struct arena *a, const struct sample *s, int axis, enum sample_tiles tiles,
		int inputs, struct outcome *out)
{
	const struct program *p = &s->p;
	struct interp_sample sample = { .size = s->size };
	struct extents x;
	struct tiling t;
	struct err e;

	choose_tiles(s, axis, tiles, &t);
	if (extents_infer(a, p, &t, &x, &e))
		return false;
	out->tensor = ARENA_ARRAY(a, p->tensors.n, double *);
	out->carry = ARENA_ARRAY(a, p->carries.n, double *);
	for (int i = 0; i < p->tensors.n; i++) {
		out->tensor[i] = ARENA_ARRAY(a, tensor_elements(p, i), double);
		if (p->tensors.v[i].role == TENSOR_INPUT)
			fill_input(p, i, inputs, out->tensor[i]);
	}
	for (int i = 0; i < p->carries.n; i++)
		out->carry[i] = ARENA_ARRAY(a, carry_elements(p, i), double);
	sample.carry = out->carry;
	return !interp_sample(a, &x, out->tensor, &sample, &e);
}

/* comparison -------------------------------------------------------------------- */

static double greatest(int64_t n, const double *x)
{
	double most = 0;

	for (int64_t i = 0; i < n; i++)
		most = isfinite(x[i]) ? fmax(most, fabs(x[i])) : most;
	return most;
}

/* With rounding to integers, numbers may differ by a step of the greatest element. */
static bool same_numbers(const struct sample *s, int64_t n, const double *x, const double *y)
{
	double scale = fmax(greatest(n, x), greatest(n, y));
	double step = (s->rounds ? STEP_ERROR : NOISE) * scale;

	for (int64_t i = 0; i < n; i++) {
		double off = fabs(x[i] - y[i]);

		if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i])))
			continue;
		if (!(off <= step + FLOAT_ERROR * fmax(fabs(x[i]), fabs(y[i]))) || isinf(off))
			return false;
	}
	return true;
}

bool same_tensor(const struct sample *s, int tensor, const struct outcome *x, const struct outcome *y)
{
	return same_numbers(s, tensor_elements(&s->p, tensor), x->tensor[tensor], y->tensor[tensor]);
}

bool same_carry(const struct sample *s, int carry, const struct outcome *x, const struct outcome *y)
{
	return same_numbers(s, carry_elements(&s->p, carry), x->carry[carry], y->carry[carry]);
}

bool nan_differs(const struct sample *s, int carry, const struct outcome *x, const struct outcome *y)
{
	for (int64_t i = 0; i < carry_elements(&s->p, carry); i++)
		if (!isnan(x->carry[carry][i]) != !isnan(y->carry[carry][i]))
			return true;
	return false;
}

bool same_outputs(const struct sample *s, const struct outcome *x, const struct outcome *y)
{
	for (int i = 0; i < s->p.tensors.n; i++)
		if (s->p.tensors.v[i].role == TENSOR_OUTPUT && !same_tensor(s, i, x, y))
			return false;
	return true;
}
