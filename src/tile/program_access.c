#include "tile/program_build.h"

static enum err_code add_axis(const struct program *p, const struct tensor *t, int axis, struct srcloc loc,
			      struct access *out, struct err *e)
{
	if (axis_is_batch_here(p, axis) || ints_hold(out->axis, out->naxes, axis))
		return OK;
	if (out->naxes == RANK_MAX)
		return err_set(e, ERR_LIMIT, loc, "tensor '%s' is indexed by more than "
			"%d axes; a value has at most that many", t->name, RANK_MAX);
	out->axis[out->naxes++] = axis;
	return OK;
}

/* Add the axes of the value that is added to an expression, then those of the expression: all but batch axes. */
static enum err_code add_axes(const struct program *p, const struct tensor *t, const struct index_expr *x,
			      struct srcloc loc, struct access *out, struct err *e)
{
	const struct node *v = x->value ? node_at(p, index_value(x)) : NULL;

	for (int i = 0; v && i < v->naxes; i++)
		TRY(add_axis(p, t, v->axis[i], loc, out, e));
	for (int i = 0; i < x->n; i++)
		TRY(add_axis(p, t, x->term[i].axis, loc, out, e));
	return OK;
}

enum err_code check_index_type(const struct program *p, const struct tensor *t, int d, int value, struct srcloc loc,
			       struct err *e)
{
	enum dtype type = node_at(p, value)->type;

	return type == DT_I32 ? OK : err_set(e, ERR_INPUT, loc, "%s, an index of dimension '%s' of '%s', is %s; an "
		"index is i32: %s", value_phrase(p, value).s, p->axes.v[t->dim[d]].name, t->name, dtype_name(type),
		type == DT_BOOL ? "choose between two with where" : "cast it with :to \"i32\"");
}

/* Note the value that is added to the index of dimension d. */
static enum err_code add_value(const struct program *p, const struct tensor *t, int d, struct srcloc loc,
			       struct access *out, struct err *e)
{
	int value = index_value(&out->index[d]);

	if (value == NONE)
		return OK;
	TRY(check_value(p, value, loc, e));
	TRY(check_index_type(p, t, d, value, loc, e));
	if (ints_hold(out->value, out->nvalues, value))
		return OK;
	if (out->nvalues == LEN(out->value))
		return err_set(e, ERR_LIMIT, loc, "tensor '%s' is indexed by more than %d values; let one value give "
			"several of its indices, or reshape the tensor", t->name, LEN(out->value));
	out->value[out->nvalues++] = value;
	return OK;
}

enum err_code check_access(const struct program *p, const struct tensor *t, const struct index_expr *index,
			   struct srcloc loc, struct access *out, struct err *e)
{
	out->naxes = out->nvalues = 0;
	for (int i = 0; i < t->rank; i++) {
		out->index[i] = index ? index[i] : index_axis(t->dim[i]);
		TRY(check_index(p, &out->index[i], loc, e));
		TRY(add_value(p, t, i, loc, out, e));
		TRY(add_axes(p, t, &out->index[i], loc, out, e));
	}
	return OK;
}

/* The greatest value of (axis / div) mod mod; the least is 0. */
static int64_t term_reach(const struct program *p, const struct index_term *t)
{
	int64_t last = (p->axes.v[t->axis].size - 1) / t->div;

	return t->mod ? min_i64(last, t->mod - 1) : last;
}

/* Does the value of the expression determine the values of all terms? It does if each factor is greater than all that
 * the terms with smaller factors can reach together. */
static bool terms_are_apart(const struct program *p, const struct index_expr *x)
{
	for (int i = 0; i < x->n; i++) {
		int64_t coef = x->term[i].coef < 0 ? -x->term[i].coef : x->term[i].coef;
		double below = 0;

		for (int j = 0; j < x->n; j++) {
			int64_t c = x->term[j].coef < 0 ? -x->term[j].coef : x->term[j].coef;

			if (j != i && (c < coef || (c == coef && j < i)))
				below += (double)c * (double)term_reach(p, &x->term[j]);
		}
		if (term_reach(p, &x->term[i]) && (double)coef <= below)
			return false;
	}
	return true;
}

/* If the position along the axis is determined modulo `known`, the greatest number modulo which it is determined with
 * one more term: h % 8 and h // 8 together determine h. */
static int64_t extend(const struct tensor *t, const struct access *x, int axis, int64_t known, int64_t size)
{
	int64_t most = known;

	for (int i = 0; i < t->rank; i++) {
		for (int j = 0; j < x->index[i].n; j++) {
			const struct index_term *term = &x->index[i].term[j];

			if (term->axis != axis || term->div > known || known % term->div)
				continue;
			if (term->mod == 0 || term->mod >= size / term->div + 1)
				return size;
			most = max_i64(most, term->div * term->mod);
		}
	}
	return most;
}

static bool index_has_axis(const struct program *p, const struct tensor *t, const struct access *x, int axis)
{
	int64_t size = p->axes.v[axis].size, known = 1, more;

	while (known < size) {
		more = extend(t, x, axis, known, size);
		if (more == known)
			return false;
		known = more;
	}
	return true;
}

enum err_code check_apart(const struct program *p, const struct tensor *t,
			  const struct access *x, struct srcloc loc, struct err *e)
{
	const struct phase *ph = p->cur_phase == NONE ? NULL : &p->phases.v[p->cur_phase];

	for (int i = 0; i < t->rank; i++) {
		if (!terms_are_apart(p, &x->index[i]))
			return err_set(e, ERR_INPUT, loc, "two elements would be stored at one index of dimension '%s' "
				"of '%s'; give them different indices", p->axes.v[t->dim[i]].name, t->name);
	}
	for (int i = 0; ph && i < ph->nbatch; i++) {
		if (!index_has_axis(p, t, x, ph->batch[i]))
			return err_set(e, ERR_INPUT, loc, "all tiles along batch axis '%s' would be stored to the same "
				"elements of '%s'; let its index depend on '%s'", p->axes.v[ph->batch[i]].name, t->name,
				p->axes.v[ph->batch[i]].name);
	}
	for (int i = 0; i < x->naxes; i++) {
		if (!index_has_axis(p, t, x, x->axis[i]))
			return err_set(e, ERR_INPUT, loc, "several elements along '%s' would be "
				"stored to the same element of '%s'; index it by '%s' itself",
				p->axes.v[x->axis[i]].name, t->name, p->axes.v[x->axis[i]].name);
	}
	return OK;
}
