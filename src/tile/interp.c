#include "tile/interp.h"

#include <math.h>
#include <string.h>

#include "tile/interp_row.h"
#include "tile/interp_value.h"
#include "tile/length.h"
#include "tile/program_build.h"

struct run {
	const struct program *p;
	const struct extents *x;
	double *const *data;
	const struct interp_sample *sample;	/* NULL: the program itself */
	unsigned flags;
	const struct stop *stop;
	struct arena *arena;
	struct value *node, *carry;
	struct axis_ranges at;		/* the present tile */
	/* by tensor: 1 + the number of the element that was stored there, at an index that is a value, 0: none was;
	 * NULL: there is no such store */
	uint64_t **written;
	const struct node *twice;	/* a store of two elements at one index; NULL */
};

/* Set the value's box: the present range of each axis, or all of a full one. */
static void set_box(const struct run *r, struct value *v, int n, const int *axis, const uint8_t *full_axis)
{
	v->n = 0;
	for (int i = 0; i < n; i++) {
		int a = axis[i];

		if (full_axis[i])
			value_add_axis(v, a, 0, r->p->axes.v[a].size);
		else
			value_add_axis(v, a, r->at.lo[a], r->at.hi[a] - r->at.lo[a] + 1);
	}
}

/* Copy the value of a node into scratch memory, in the order and the box of `want`. */
static void gather(struct run *r, struct value *want, int node)
{
	want->v = ARENA_ARRAY(r->arena, value_elements(want), double);
	value_copy(want, &r->node[node]);
}

/* Add the part of an axis that the reduction or contraction n goes over: the present tile, or all of it. */
static void add_contracted(const struct run *r, struct value *v, const struct node *n, int axis)
{
	if (program_reduces_tile(r->p, n, axis))
		value_add_axis(v, axis, r->at.lo[axis], r->at.hi[axis] - r->at.lo[axis] + 1);
	else
		value_add_axis(v, axis, 0, r->p->axes.v[axis].size);
}

/* Value of the terms of an index over one axis, or over all others. */
static int64_t index_part(const struct index_expr *x, const int64_t *pos, int axis, bool others)
{
	struct index_expr one = { .n = 1 };
	int64_t sum = 0;

	for (int i = 0; i < x->n; i++) {
		if ((x->term[i].axis == axis) == others)
			continue;
		one.term[0] = x->term[i];
		sum += index_eval(&one, pos);
	}
	return sum;
}

/* Goes over the rows of a load or store and finds where in its tensor they lie. */
struct access_walk {
	const struct run *r;
	const struct node *n;
	const struct value *box;
	int row_axis;			/* NONE: a scalar */
	int64_t row_len, pos[AXES_MAX];
	const struct value *value[RANK_MAX];	/* by dimension: what is added to its index; NULL: nothing */
	int64_t *part;			/* dimension * row_len + i: what the row adds */
	int64_t *offset;		/* of each element of the row; -1: outside */
};

/* The element of a value at a position, and how far it is to the next one along an axis (NONE: 0). */
static const double *value_at(const struct value *v, const int64_t *pos, int axis, int64_t *step)
{
	int64_t at = 0, stride = 1;

	*step = 0;
	for (int i = v->n - 1; i >= 0; i--) {
		at += (pos[v->axis[i]] - v->lo[i]) * stride;
		if (v->axis[i] == axis)
			*step = stride;
		stride *= v->len[i];
	}
	return v->v + at;
}

static void access_begin(struct access_walk *w, struct run *r, const struct node *n, const struct value *box)
{
	int rank = r->p->tensors.v[n->ref].rank, last = box->n - 1;

	memset(w, 0, sizeof(*w));
	w->r = r;
	w->n = n;
	w->box = box;
	w->row_axis = box->n ? box->axis[last] : NONE;
	w->row_len = box->n ? box->len[last] : 1;
	memcpy(w->pos, r->at.lo, sizeof(w->pos));
	for (int i = 0; i < box->n; i++)
		w->pos[box->axis[i]] = box->lo[i];
	w->part = ARENA_ARRAY(r->arena, rank * w->row_len, int64_t);
	w->offset = ARENA_ARRAY(r->arena, w->row_len, int64_t);
	for (int64_t i = 0; i < w->row_len && w->row_axis != NONE; i++) {
		int64_t *part = w->part + i;

		for (int d = 0; d < rank; d++, part += w->row_len)
			*part = index_part(&n->index[d], w->pos, w->row_axis, false);
		w->pos[w->row_axis]++;
	}
	for (int d = 0; d < rank; d++)
		w->value[d] = n->index[d].value ? &r->node[index_value(&n->index[d])] : NULL;
	if (w->row_axis != NONE)
		w->pos[w->row_axis] = box->lo[last];
}

static void access_offsets(struct access_walk *w)
{
	const struct tensor *t = &w->r->p->tensors.v[w->n->ref];
	const struct interp_sample *sample = w->n->op == OP_LOAD ? w->r->sample : NULL;
	int64_t stride = 1;

	memset(w->offset, 0, (size_t)w->row_len * sizeof(*w->offset));
	for (int d = t->rank - 1; d >= 0; d--) {
		const struct index_expr *x = &w->n->index[d];
		int64_t base = x->k + index_part(x, w->pos, w->row_axis, true);
		int64_t size = w->r->p->axes.v[t->dim[d]].size;
		int64_t within = sample ? sample->size[t->dim[d]] : size;
		const int64_t *part = w->part + d * w->row_len;
		int64_t step = 0;
		const double *value = w->value[d] ? value_at(w->value[d], w->pos, w->row_axis, &step) : NULL;

		for (int64_t i = 0; i < w->row_len; i++) {
			int64_t at = base + part[i] + (value ? (int64_t)value[i * step] : 0);
			bool inside = w->offset[i] >= 0 && at >= 0 && at < within;

			w->offset[i] = inside ? w->offset[i] + at % size * stride : -1;
		}
		stride *= size;
	}
}

static bool access_next(struct access_walk *w)
{
	for (int i = w->box->n - 2; i >= 0; i--) {
		int a = w->box->axis[i];

		if (++w->pos[a] < w->box->lo[i] + w->box->len[i])
			return true;
		w->pos[a] = w->box->lo[i];
	}
	return false;
}

/* Round values to what a tensor can hold: floats with a mantissa if asked for, others always. */
static void round_stored(const struct run *r, enum dtype t, int64_t n, double *v)
{
	if (dtype_has_mantissa(t) && !(r->flags & INTERP_ROUND))
		return;
	for (int64_t i = 0; i < n; i++)
		v[i] = dtype_round(t, v[i]);
}

/* Sums of i32 wrap around. */
static void add_stored(const struct run *r, enum dtype t, double *to, const double *x)
{
	if (t == DT_I32) {
		join_rows(OP_SUM, t, 1, to, to, x);
		return;
	}
	*to += *x;
	round_stored(r, t, 1, to);
}

static void eval_load(struct run *r, const struct node *n, struct value *out)
{
	const double *data = r->data[n->ref];
	double *to = out->v;
	struct access_walk w;

	access_begin(&w, r, n, out);
	do {
		access_offsets(&w);
		for (int64_t i = 0; i < w.row_len; i++)
			to[i] = w.offset[i] < 0 ? 0 : data[w.offset[i]];
		round_stored(r, n->type, w.row_len, to);
		to += w.row_len;
	} while (access_next(&w));
}

/* Which of two elements stays that are stored at one index is not defined. In a sample, whose tensors are too short for
 * all indices to differ, it is NaN. */
static void note_written(struct run *r, const struct node *n, int64_t at, uint64_t number)
{
	uint64_t *written = has_index_values(n) && !n->adds ? r->written[n->ref] : NULL;

	if (!written)
		return;
	if (!written[at])
		written[at] = number + 1;
	if (written[at] == number + 1)
		return;
	written[at] = UINT64_MAX;	/* for good, whichever is stored again */
	if (r->sample)
		r->data[n->ref][at] = NAN;
	else if (!r->twice)		/* a store behind it may be of the bound of its error */
		r->twice = n;
}

/* Number of the first element of a row that is stored, by its position along the value's axes and the batch axes: tiles
 * that differ only along others store it again. *step: to the next one of the row. */
static uint64_t element_number(const struct access_walk *w, uint64_t *step)
{
	const struct program *p = w->r->p;
	const struct task *t = &p->tasks.v[w->n->task];
	uint64_t at = 0, stride = 1;

	*step = 0;
	for (int a = 0; a < p->axes.n; a++) {
		if (!node_has_axis(w->n, a) && !axis_is_batch_in(p, t->phase, t->loop, a))
			continue;
		at += (uint64_t)w->pos[a] * stride;
		if (a == w->row_axis)
			*step = stride;
		stride *= (uint64_t)p->axes.v[a].size;
	}
	return at;
}

static void eval_store(struct run *r, const struct node *n, const struct value *box)
{
	struct value want = *box;
	double *data = r->data[n->ref];
	double *from;
	struct access_walk w;

	gather(r, &want, n->arg[0]);
	from = want.v;
	access_begin(&w, r, n, box);
	do {
		uint64_t step, number = element_number(&w, &step);

		access_offsets(&w);
		round_stored(r, n->type, w.row_len, from);
		for (int64_t i = 0; i < w.row_len; i++) {
			if (w.offset[i] < 0)
				continue;
			if (n->adds)
				add_stored(r, n->type, &data[w.offset[i]], &from[i]);
			else
				data[w.offset[i]] = from[i];
			note_written(r, n, w.offset[i], number + (uint64_t)i * step);
		}
		from += w.row_len;
	} while (access_next(&w));
}

static void eval_elementwise(struct run *r, const struct node *n, struct value *out)
{
	const double *arg[3];
	int64_t step[3];
	int arity = op_arity(n->op);
	struct walk w;

	walk_begin(&w, out);
	for (int i = 0; i < arity; i++)
		walk_operand(&w, i + 1, out, &r->node[n->arg[i]]);
	walk_fold(&w);
	do {
		for (int i = 0; i < 3; i++) {
			int k = i < arity ? i : 0;	/* something to read */

			arg[i] = r->node[n->arg[k]].v + w.at[k + 1];
			step[i] = w.step[k + 1][w.n - 1];
		}
		row_apply(n->op, n->type, w.len[w.n - 1], out->v + w.at[0], arg, step);
	} while (walk_next(&w));
}

/* Field i of a word. */
static double unpack_field(enum dtype t, double word, int64_t i)
{
	uint8_t bytes[4];

	for (int j = 0; j < 4; j++)
		bytes[j] = (uint8_t)((uint32_t)(int32_t)word >> 8 * j);
	return dtype_load(t, bytes, (size_t)i);
}

static void eval_unpack(struct run *r, const struct node *n, struct value *out)
{
	const struct node *arg = &r->p->nodes.v[n->arg[0]];
	int at = ints_find(out->axis, out->n, n->ref), per = 32 / dtype_bits(n->type);
	int64_t lo = out->lo[at] / per, hi = (out->lo[at] + out->len[at] - 1) / per;
	int64_t outer = 1, inner = 1;
	struct value words = { 0 };

	for (int i = 0; i < out->n; i++) {
		if (i == at)
			value_add_axis(&words, arg->axis[i], lo, hi - lo + 1);
		else
			value_add_axis(&words, out->axis[i], out->lo[i], out->len[i]);
		outer *= i < at ? out->len[i] : 1;
		inner *= i > at ? out->len[i] : 1;
	}
	gather(r, &words, n->arg[0]);
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < out->len[at]; i++) {
			int64_t pos = out->lo[at] + i;
			const double *from = words.v + (o * words.len[at] + pos / per - lo) * inner;
			double *to = out->v + (o * out->len[at] + i) * inner;

			for (int64_t j = 0; j < inner; j++)
				to[j] = unpack_field(n->type, from[j], pos % per);
		}
}

/* The argument's elements where `out` has those that stand for `per` of them along axis `at`. */
static struct value gather_packed(struct run *r, const struct value *out, int arg, int at, int per)
{
	const struct node *n = &r->p->nodes.v[arg];
	int64_t lo = out->lo[at] / per, hi = (out->lo[at] + out->len[at] - 1) / per;
	int axis = find_packed_axis(r->p, n->axis, n->naxes, out->axis[at], per);
	struct value packed = { 0 };

	for (int i = 0; i < out->n; i++)
		if (i == at)
			value_add_axis(&packed, axis, lo, hi - lo + 1);
		else
			value_add_axis(&packed, out->axis[i], out->lo[i], out->len[i]);
	gather(r, &packed, arg);
	return packed;
}

static void eval_expand(struct run *r, const struct node *n, struct value *out)
{
	int at = ints_find(out->axis, out->n, n->ref);
	struct value v = gather_packed(r, out, n->arg[0], at, EXPANDED_BY_VALUE);
	struct value w = gather_packed(r, out, n->arg[1], at, EXPANDED_BY_BYTE);
	int64_t outer = 1, inner = 1;

	for (int i = 0; i < out->n; i++) {
		outer *= i < at ? out->len[i] : 1;
		inner *= i > at ? out->len[i] : 1;
	}
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < out->len[at] * inner; i++) {
			int64_t pos = out->lo[at] + i / inner, first = pos / 4 * 2;
			int64_t of = pos / EXPANDED_BY_BYTE - w.lo[at], found = NONE;
			int which = (int)w.v[(o * w.len[at] + of) * inner + i % inner] >> pos % EXPANDED_BY_BYTE / 4 * 4;

			for (int k = 1; k >= 0; k--)
				if ((which >> 2 * k & 3) == pos % 4)
					found = first + k - v.lo[at];
			out->v[o * out->len[at] * inner + i] = found < 0 || found >= v.len[at] ? 0 :
				v.v[(o * v.len[at] + found) * inner + i % inner];
		}
}

/* In a sample, whose axis is shorter, indices beyond its end wrap around. */
static void eval_at(struct run *r, const struct node *n, struct value *out)
{
	const struct value *from = &r->node[n->arg[0]];
	int64_t size = r->p->axes.v[n->ref].size, pos[AXES_MAX], along, at, i = 0;

	memcpy(pos, r->at.lo, sizeof(pos));
	for (int k = 0; k < out->n; k++)
		pos[out->axis[k]] = out->lo[k];
	for (int k = 0; k >= 0;) {
		at = index_eval(&n->index[0], pos);
		if (r->sample)
			at = floor_mod(at, size);
		along = pos[n->ref];
		pos[n->ref] = at;
		out->v[i++] = at < 0 || at >= size ? 0 : *value_at(from, pos, NONE, &(int64_t){ 0 });
		pos[n->ref] = along;
		for (k = out->n - 1; k >= 0 && ++pos[out->axis[k]] == out->lo[k] + out->len[k]; k--)
			pos[out->axis[k]] = out->lo[k];
	}
}

/* The argument with the axis of the reduction or scan outermost, so that all others form one long row. */
static struct value gather_rows(struct run *r, const struct node *n, const struct value *out)
{
	int same = ints_find(out->axis, out->n, n->ref);
	struct value box = { 0 };

	if (same == NONE)
		add_contracted(r, &box, n, n->ref);
	else
		value_add_axis(&box, n->ref, out->lo[same], out->len[same]);
	for (int i = 0; i < out->n; i++)
		if (i != same)
			value_add_axis(&box, out->axis[i], out->lo[i], out->len[i]);
	gather(r, &box, n->arg[0]);
	return box;
}

static void eval_reduce(struct run *r, const struct node *n, struct value *out)
{
	struct value box = gather_rows(r, n, out);
	double start = op_identity(n->op, n->type);
	int64_t row = value_elements(out);

	for (int64_t i = 0; i < row; i++)
		out->v[i] = start;
	for (int64_t i = 0; i < box.len[0]; i++)
		join_rows(n->op, n->type, row, out->v, out->v, box.v + i * row);
}

static void eval_scan(struct run *r, const struct node *n, struct value *out)
{
	struct value box = gather_rows(r, n, out);
	int64_t row = value_elements(&box) / box.len[0];

	for (int64_t i = 1; i < box.len[0]; i++) {
		double *to = box.v + i * row;

		join_rows(n->op, n->type, row, to, to - row, to);
	}
	value_copy(out, &box);
}

static void eval_mma(struct run *r, const struct node *n, struct value *out)
{
	const struct node *a = &r->p->nodes.v[n->arg[0]], *b = &r->p->nodes.v[n->arg[1]];
	struct value x = { 0 }, y = { 0 };
	int64_t rows = 1, cols = 1, depth = 1;
	int of_a = 0;

	for (int i = 0; i < a->naxes; i++)
		of_a += !ints_hold(b->axis, b->naxes, a->axis[i]);
	for (int i = 0; i < of_a; i++) {
		value_add_axis(&x, out->axis[i], out->lo[i], out->len[i]);
		rows *= out->len[i];
	}
	for (int i = 0; i < a->naxes; i++) {
		if (!ints_hold(b->axis, b->naxes, a->axis[i]))
			continue;
		add_contracted(r, &x, n, a->axis[i]);
		value_add_axis(&y, a->axis[i], x.lo[x.n - 1], x.len[x.n - 1]);
		depth *= x.len[x.n - 1];
	}
	for (int i = of_a; i < out->n; i++) {
		value_add_axis(&y, out->axis[i], out->lo[i], out->len[i]);
		cols *= out->len[i];
	}
	gather(r, &x, n->arg[0]);
	gather(r, &y, n->arg[1]);
	if (n->ref == NONE)
		memset(out->v, 0, (size_t)(rows * cols) * sizeof(*out->v));
	else
		value_copy(out, &r->carry[n->ref]);
	if (n->type == DT_I32)
		multiply_i32(rows, cols, depth, x.v, y.v, out->v, ARENA_ARRAY(r->arena, cols, uint32_t));
	else
		multiply_f64(rows, cols, depth, x.v, y.v, out->v);
	if (n->ref != NONE)
		value_copy(&r->carry[n->ref], out);
}

static void eval_node(struct run *r, int id)
{
	const struct node *n = &r->p->nodes.v[id];
	struct value *out = &r->node[id];
	int64_t lo;

	set_box(r, out, n->naxes, n->axis, r->x->full_axis + id * RANK_MAX);
	switch (op_class(n->op)) {
	case CLASS_MOVE:
		if (n->op == OP_LOAD)
			eval_load(r, n, out);
		else
			eval_store(r, n, out);
		return;
	case CLASS_MMA:
		eval_mma(r, n, out);
		return;
	case CLASS_REDUCE:
		eval_reduce(r, n, out);
		return;
	case CLASS_SCAN:
		eval_scan(r, n, out);
		return;
	case CLASS_FREE: case CLASS_FMA: case CLASS_ALU: case CLASS_SFU: case CLASS_CVT:
	case CLASS_DIV: case CLASS_COUNT:
		break;
	}
	if (n->op == OP_GET) {
		value_copy(out, &r->carry[n->ref]);
	} else if (n->op == OP_SET) {
		value_copy(&r->carry[n->ref], &r->node[n->arg[0]]);
	} else if (n->op == OP_INDEX) {
		lo = out->n ? out->lo[0] : r->at.lo[n->ref];
		for (int64_t i = 0; i < value_elements(out); i++)
			out->v[i] = (double)(lo + i) + n->k;
	} else if (n->op == OP_CAST) {
		value_copy(out, &r->node[n->arg[0]]);
		for (int64_t i = 0; i < value_elements(out); i++)
			out->v[i] = cast_value(n->type, out->v[i], r->flags & INTERP_ROUND);
	} else if (n->op == OP_UNPACK) {
		eval_unpack(r, n, out);
	} else if (n->op == OP_EXPAND) {
		eval_expand(r, n, out);
	} else if (n->op == OP_AT) {
		eval_at(r, n, out);
	} else {
		eval_elementwise(r, n, out);
	}
}

static void init_carries(struct run *r, int phase, int loop)
{
	for (int i = 0; i < r->p->carries.n; i++) {
		const struct carry *c = &r->p->carries.v[i];
		struct value *v = &r->carry[i];

		if (c->phase != phase || c->loop != loop)
			continue;
		set_box(r, v, c->naxes, c->axis, r->x->carry_full_axis + i * RANK_MAX);
		for (int64_t j = 0; j < value_elements(v); j++)
			v->v[j] = c->init;
	}
}

/* Give the sample the values of the carries of a region at the end of its iteration. */
static void probe_carries(struct run *r, int phase, int loop)
{
	for (int i = 0; i < r->p->carries.n && r->sample; i++) {
		const struct carry *c = &r->p->carries.v[i];
		struct value all = { .v = r->sample->carry[i] };

		if (c->phase != phase || c->loop != loop)
			continue;
		for (int j = 0; j < c->naxes; j++)
			value_add_axis(&all, c->axis[j], 0, r->p->axes.v[c->axis[j]].size);
		value_put(&all, &r->carry[i]);
	}
}

static enum err_code run_body(struct run *r, int phase, int loop, struct err *e);

/* Reads the tensors of a run. */
struct run_reader {
	struct length_reader reader;
	const struct run *r;
};

/* 0 for an element of a temporary that nothing was stored to. */
static double stored_element(const struct length_reader *x, int tensor, int64_t at)
{
	const struct run *r = ((const struct run_reader *)x)->r;
	double value = r->data[tensor][at];

	return isnan(value) ? 0 : dtype_round(r->p->tensors.v[tensor].type, value);
}

/* Where the axis of a loop with a length ends in this run. In a sample, whose axis is shorter than the program's, each
 * length is another one. */
static int64_t length_end(struct run *r, int loop)
{
	const struct loop *l = &r->p->loops.v[loop];
	struct run_reader reader = { { stored_element, r->sample }, r };
	int64_t value = length_value(r->p, loop, r->at.lo, &reader.reader);
	int64_t size = r->p->axes.v[l->axis[0]].size;

	if (r->sample)
		return floor_mod(value + index_bounds(&l->length, r->at.lo, r->at.hi).hi, size + 1);
	return loop_end(r->x, loop, &r->at, value);
}

static enum err_code run_loop(struct run *r, int loop, struct err *e)
{
	const struct loop *l = &r->p->loops.v[loop];
	struct axis_ranges before = r->at;
	int64_t first, last, end = 0;

	if (l->has_length)
		end = length_end(r, loop);
	visited_before(r->x, loop, &r->at, end, &first, &last);
	for (int64_t i = first; i < last; i++) {
		ranges_set_iteration(r->x, loop, i, &r->at);
		if (l->has_length)
			ranges_end(r->x, loop, end, &r->at);
		TRY(run_body(r, l->phase, loop, e));
	}
	r->at = before;
	return OK;
}

/* One iteration of a loop, or one tile of a phase; `stop` is checked before each task. Recursion is as deep as loops
 * nest. */
static enum err_code run_body(struct run *r, int phase, int loop, struct err *e)
{
	struct items body = program_body(r->p, phase, loop);
	struct arena_mark mark = arena_mark(r->arena);

	init_carries(r, phase, loop);
	for (int i = 0; i < body.n; i++) {
		if (stop_asked(r->stop))
			return err_set(e, ERR_INTERRUPTED, NOWHERE, "the reference was stopped in phase '%s'",
				r->p->phases.v[phase].name);
		if (body.v[i].is_loop) {
			TRY(run_loop(r, body.v[i].id, e));
			continue;
		}
		for (int k = 0; k < r->p->tasks.v[body.v[i].id].nodes.n; k++)
			eval_node(r, r->p->tasks.v[body.v[i].id].nodes.v[k]);
		arena_reset(r->arena, mark);
		if (r->twice)
			return err_set(e, ERR_INPUT, r->twice->loc, "'%s' stores two elements at one index of '%s', and "
				"which of them stays is not defined; give them different indices, or add them up with add",
				r->p->tasks.v[r->twice->task].name, r->p->tensors.v[r->twice->ref].name);
	}
	probe_carries(r, phase, loop);
	return OK;
}

/* Memory for the values of a phase, of the greatest size that each can have. */
static void alloc_phase(struct run *r, int phase)
{
	for (int i = 0; i < r->p->nodes.n; i++) {
		const struct node *n = &r->p->nodes.v[i];
		bool moved = n->op == OP_SET || n->op == OP_STORE;	/* no value */

		if (n->task != NONE && r->p->tasks.v[n->task].phase == phase && !moved)
			r->node[i].v = ARENA_ARRAY(r->arena, extent_elements(r->x, i), double);
	}
	for (int i = 0; i < r->p->carries.n; i++) {
		int64_t elements = 1;

		if (r->p->carries.v[i].phase != phase)
			continue;
		for (int j = 0; j < r->p->carries.v[i].naxes; j++)
			elements *= extent_of_carry(r->x, i, j);
		r->carry[i].v = ARENA_ARRAY(r->arena, elements, double);
	}
}

static enum err_code run_phase(struct run *r, int phase, struct err *e)
{
	struct arena_mark mark = arena_mark(r->arena);
	struct grid g = extents_grid(r->x, phase);
	enum err_code code = OK;

	alloc_phase(r, phase);
	for (int64_t i = 0; i < g.total && !code; i++) {
		ranges_set_tile(r->x, &g, i, &r->at);
		code = run_body(r, phase, NONE, e);
	}
	arena_reset(r->arena, mark);
	return code;
}

static enum err_code run_program(struct run *r, struct err *e)
{
	const struct program *p = r->p;
	struct arena_mark mark = arena_mark(r->arena);
	enum err_code code = OK;

	r->node = ARENA_ARRAY(r->arena, p->nodes.n, struct value);
	r->carry = ARENA_ARRAY(r->arena, p->carries.n, struct value);
	r->written = ARENA_ARRAY(r->arena, p->tensors.n, uint64_t *);
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op == OP_STORE && has_index_values(n) && !n->adds && !r->written[n->ref])
			r->written[n->ref] = ARENA_ARRAY(r->arena, tensor_elements(p, n->ref), uint64_t);
	}
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_CONST)
			r->node[i].v = arena_copy(r->arena, &p->nodes.v[i].k, 1, sizeof(double));
	for (int i = 0; i < p->phases.n && !code; i++)
		code = run_phase(r, i, e);
	arena_reset(r->arena, mark);
	return code;
}

enum err_code interp_run(struct arena *a, const struct extents *x, double *const *data,
			 unsigned flags, const struct stop *stop, struct err *e)
{
	return run_program(&(struct run){ .p = x->program, .x = x, .data = data, .flags = flags, .stop = stop,
		.arena = a }, e);
}

enum err_code interp_sample(struct arena *a, const struct extents *x, double *const *data,
			    const struct interp_sample *sample, struct err *e)
{
	return run_program(&(struct run){ .p = x->program, .x = x, .data = data, .sample = sample, .arena = a }, e);
}

/* Is all of an axis needed of a value, although tiles divide it? Each tile would compute the value again. */
static bool is_recomputed(const struct extents *x, int axis)
{
	const struct program *p = x->program;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int j = 0; n->task != NONE && j < n->naxes; j++)
			if (n->axis[j] == axis && x->full_axis[i * RANK_MAX + j] &&
			    p->axes.v[axis].size > x->tile[axis] &&
			    program_axis_role(p, p->tasks.v[n->task].phase, axis) == AXIS_GRID)
				return true;
	}
	return false;
}

enum err_code interp_extents(struct arena *a, const struct program *p, struct extents *out, struct err *e)
{
	enum { TILE = 128 };		/* a multiple of what a word can hold */
	bool undivided[AXES_MAX] = { false };
	struct tiling t = { 0 };
	int64_t longest = TILE;

	for (int i = 0; i < p->phases.n; i++) {
		enum axis_role role[AXES_MAX];

		axis_roles(p, i, role);
		for (int j = 0; j < p->axes.n; j++)
			if ((role[j] == AXIS_GRID || role[j] == AXIS_LOOP) && p->axes.v[j].packs == NONE &&
			    !p->axes.v[j].single)
				t.extent[j] = TILE;
	}
	TRY(extents_infer(a, p, &t, out, e));
	for (int j = 0; j < p->axes.n; j++) {
		undivided[j] = t.extent[j] && is_recomputed(out, j);
		if (undivided[j])
			longest = max_i64(longest, p->axes.v[j].size);
	}
	if (longest == TILE)
		return OK;
	/* Such axes are not divided, the others into so much less. */
	for (int j = 0; j < p->axes.n; j++)
		if (t.extent[j])
			t.extent[j] = undivided[j] ? 0 : is_packed(p, j) ? TILE : max_i64(1, TILE * TILE / longest);
	return extents_infer(a, p, &t, out, e);
}
