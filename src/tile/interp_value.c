#include "tile/interp_value.h"

#include <string.h>

int64_t value_elements(const struct value *v)
{
	int64_t n = 1;

	for (int i = 0; i < v->n; i++)
		n *= v->len[i];
	return n;
}

void value_add_axis(struct value *v, int axis, int64_t lo, int64_t len)
{
	v->axis[v->n] = axis;
	v->lo[v->n] = lo;
	v->len[v->n++] = len;
}

void walk_begin(struct walk *w, const struct value *out)
{
	int64_t step = 1;

	memset(w, 0, sizeof(*w));
	w->n = out->n;
	for (int i = out->n - 1; i >= 0; i--) {
		w->len[i] = out->len[i];
		w->step[0][i] = step;
		step *= out->len[i];
	}
}

void walk_operand(struct walk *w, int k, const struct value *out, const struct value *arg)
{
	int64_t step = 1;

	for (int i = arg->n - 1; i >= 0; i--) {
		int j = ints_find(out->axis, out->n, arg->axis[i]);

		if (j == NONE || out->lo[j] < arg->lo[i] || out->lo[j] + out->len[j] > arg->lo[i] + arg->len[i])
			BUG("an argument does not hold axis %d where it is needed", arg->axis[i]);
		w->step[k][j] = step;
		w->at[k] += (out->lo[j] - arg->lo[i]) * step;
		step *= arg->len[i];
	}
}

static void drop_axis(struct walk *w, int i)
{
	for (w->n--; i < w->n; i++) {
		w->len[i] = w->len[i + 1];
		for (int k = 0; k < OPERANDS; k++)
			w->step[k][i] = w->step[k][i + 1];
	}
}

void walk_fold(struct walk *w)
{
	for (int i = w->n - 1; i >= 0; i--) {
		bool merge = i + 1 < w->n;

		for (int k = 0; k < OPERANDS && merge; k++)
			merge = w->step[k][i] == w->step[k][i + 1] * w->len[i + 1];
		if (merge)
			w->len[i + 1] *= w->len[i];
		if (merge || w->len[i] == 1)
			drop_axis(w, i);
	}
	if (w->n == 0)
		w->len[w->n++] = 1;
}

bool walk_next(struct walk *w)
{
	for (int i = w->n - 2; i >= 0; i--) {
		bool more = ++w->pos[i] < w->len[i];
		int64_t by = more ? 1 : 1 - w->len[i];

		for (int k = 0; k < OPERANDS; k++)
			w->at[k] += by * w->step[k][i];
		if (more)
			return true;
		w->pos[i] = 0;
	}
	return false;
}

/* Copy between a dense box and another that holds it: into the dense one, or from it. */
static void copy_box(const struct value *dense, const struct value *other, bool into)
{
	struct walk w;

	walk_begin(&w, dense);
	walk_operand(&w, 1, dense, other);
	walk_fold(&w);
	do {
		double *row = dense->v + w.at[0], *with = other->v + w.at[1];
		int64_t n = w.len[w.n - 1], step = w.step[1][w.n - 1];

		for (int64_t i = 0; i < n && into; i++)
			row[i] = with[i * step];
		for (int64_t i = 0; i < n && !into; i++)
			with[i * step] = row[i];
	} while (walk_next(&w));
}

void value_copy(const struct value *to, const struct value *from)
{
	copy_box(to, from, true);
}

void value_put(const struct value *to, const struct value *from)
{
	copy_box(from, to, false);
}
