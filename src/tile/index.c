#include "tile/index.h"

/* Sums of a few of these still fit an int64_t. */
static const int64_t COEF_MAX = (int64_t)1 << 59;

static int64_t abs_i64(int64_t x)
{
	return x < 0 ? -x : x;
}

static bool fits(int64_t x)
{
	return x >= -COEF_MAX && x <= COEF_MAX;
}

static bool product_fits(int64_t a, int64_t b)
{
	return fits(a) && fits(b) && (a == 0 || abs_i64(b) <= COEF_MAX / abs_i64(a));
}

static enum err_code too_large(struct err *e)
{
	return err_set(e, ERR_LIMIT, NOWHERE, "an index expression has a factor or offset beyond 2^59");
}

struct index_expr index_const(int64_t k)
{
	return (struct index_expr){ .k = k };
}

struct index_expr index_axis(int axis)
{
	return (struct index_expr){ .n = 1, .term[0] = { .axis = axis, .coef = 1, .div = 1 } };
}

struct index_expr index_of_value(int node)
{
	return (struct index_expr){ .value = node + 1 };
}

static enum err_code check_no_value(const struct index_expr *x, struct err *e)
{
	return x->value ? err_set(e, ERR_INPUT, NOWHERE, "an index is the sum of a value and an expression of axes; "
		"compute the value itself first, as in (table * 16)") : OK;
}

static enum err_code add_term(struct index_expr *x, const struct index_term *t, struct err *e)
{
	for (int i = 0; i < x->n; i++) {
		struct index_term *own = &x->term[i];

		if (own->axis != t->axis || own->div != t->div || own->mod != t->mod)
			continue;
		own->coef += t->coef;
		if (!fits(own->coef))
			return too_large(e);
		if (own->coef == 0) {
			for (x->n--; i < x->n; i++)
				x->term[i] = x->term[i + 1];
			x->term[x->n] = (struct index_term){ 0 };
		}
		return OK;
	}
	if (t->coef == 0)
		return OK;
	if (x->n == INDEX_TERMS)
		return err_set(e, ERR_LIMIT, NOWHERE, "an index expression has more than %d terms", INDEX_TERMS);
	x->term[x->n++] = *t;
	return OK;
}

enum err_code index_add(const struct index_expr *a, const struct index_expr *b, struct index_expr *out, struct err *e)
{
	struct index_expr sum = *a;

	if (!fits(a->k) || !fits(b->k) || !fits(a->k + b->k))
		return too_large(e);
	if (a->value && b->value)
		return err_set(e, ERR_INPUT, NOWHERE, "an index has two values; add the values themselves first");
	sum.k += b->k;
	sum.value += b->value;
	for (int i = 0; i < b->n; i++)
		TRY(add_term(&sum, &b->term[i], e));
	*out = sum;
	return OK;
}

enum err_code index_scale(const struct index_expr *a, int64_t by, struct index_expr *out, struct err *e)
{
	struct index_expr x = *a;

	TRY(check_no_value(a, e));
	if (by == 0) {
		*out = index_const(0);
		return OK;
	}
	if (!product_fits(by, x.k))
		return too_large(e);
	x.k *= by;
	for (int i = 0; i < x.n; i++) {
		if (!product_fits(by, x.term[i].coef))
			return too_large(e);
		x.term[i].coef *= by;
	}
	*out = x;
	return OK;
}

/* An expression as by * quotient + remainder, with remainder a constant, at least 0 and less than `by`, and perhaps one
 * term with a positive factor c that divides `by`: what division and modulo can be taken of. Of the constant, the part
 * `steps` of c counts, which is 0, or 1 if `by` is 2 c. */
struct split {
	struct index_expr quotient;
	int64_t k;
	bool has_term;
	struct index_term term;
	int64_t steps;
};

static enum err_code split_by(const struct index_expr *a, int64_t by, const char *what,
			      struct split *out, struct err *e)
{
	struct split s = { .quotient = index_const(floor_div(a->k, by)), .k = floor_mod(a->k, by) };
	int remainder = 0;

	for (int i = 0; i < a->n; i++) {
		struct index_term t = a->term[i];

		if (t.coef % by == 0) {
			t.coef /= by;
			s.quotient.term[s.quotient.n++] = t;
		} else {
			s.term = t;
			remainder++;
		}
	}
	s.has_term = remainder == 1;
	s.steps = s.has_term && s.term.coef > 0 ? s.k / s.term.coef : 0;
	if (remainder > 1 || (remainder == 1 && (s.term.coef < 0 || by % s.term.coef ||
				     (s.steps && by != 2 * s.term.coef))))
		return err_set(e, ERR_INPUT, NOWHERE, "%s %lld needs a single axis, or parts that %lld divides evenly",
			what, (long long)by, (long long)by);
	*out = s;
	return OK;
}

static enum err_code check_divisor(int64_t by, const char *what, struct err *e)
{
	if (by < 1)
		return err_set(e, ERR_INPUT, NOWHERE, "an index is %s by %lld; use a positive "
			"integer", what, (long long)by);
	if (by > COEF_MAX)
		return too_large(e);
	return OK;
}

/* ((axis / div) mod m) / by for a term with factor 1. False if it is not a term. */
static bool divide_term(struct index_term *t, int64_t by)
{
	if (t->mod && t->mod <= by) {
		t->coef = 0;
		return true;
	}
	if (t->mod % by || !product_fits(t->div, by))
		return false;
	t->div *= by;
	t->mod /= by;
	return true;
}

/* (axis / div) mod m, of a term with factor 1. False if it is not a term. */
static bool reduce_term(struct index_term *t, int64_t m)
{
	if (t->mod == 0 || t->mod % m == 0)
		t->mod = m;
	return t->mod <= m;
}

enum err_code index_div(const struct index_expr *a, int64_t by, struct index_expr *out, struct err *e)
{
	struct split s;

	TRY(check_divisor(by, "divided", e));
	TRY(check_no_value(a, e));
	TRY(split_by(a, by, "dividing an index by", &s, e));
	if (s.has_term) {
		struct index_term odd = s.term;

		/* (c * t) / by = t / (by / c), and (t + 1) / 2 = t / 2 + t mod 2 */
		by /= s.term.coef;
		s.term.coef = odd.coef = 1;
		if (!divide_term(&s.term, by) || (s.steps && !reduce_term(&odd, by)))
			return err_set(e, ERR_INPUT, NOWHERE, "an index modulo %lld cannot be divided by %lld, which "
				"does not divide it", (long long)s.term.mod, (long long)by);
		TRY(add_term(&s.quotient, &s.term, e));
		if (s.steps)
			TRY(add_term(&s.quotient, &odd, e));
	}
	*out = s.quotient;
	return OK;
}

enum err_code index_mod(const struct index_expr *a, int64_t by, struct index_expr *out, struct err *e)
{
	struct index_expr x;
	struct split s;
	int64_t m;

	TRY(check_divisor(by, "taken modulo", e));
	TRY(check_no_value(a, e));
	TRY(split_by(a, by, "an index modulo", &s, e));
	x = index_const(s.k);
	if (s.has_term) {
		/* (c * t) mod by = c * (t mod (by / c)), and (t + 1) mod 2 = 1 - t mod 2 */
		m = by / s.term.coef;
		if (!reduce_term(&s.term, m))
			return err_set(e, ERR_INPUT, NOWHERE, "an index modulo %lld cannot be taken modulo %lld, which "
				"does not divide it", (long long)s.term.mod, (long long)m);
		if (s.steps)
			s.term.coef = -s.term.coef;
		TRY(add_term(&x, &s.term, e));
	}
	*out = x;
	return OK;
}

int64_t index_eval(const struct index_expr *x, const int64_t *pos)
{
	int64_t sum = x->k;

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		int64_t v = floor_div(pos[t->axis], t->div);

		sum += t->coef * (t->mod ? floor_mod(v, t->mod) : v);
	}
	return sum;
}

/* Range of (axis / div) mod mod over [lo, hi]. */
static struct index_range term_bounds(const struct index_term *t, int64_t lo, int64_t hi)
{
	struct index_range r = { floor_div(lo, t->div), floor_div(hi, t->div) };

	if (t->mod == 0)
		return r;
	if (floor_div(r.lo, t->mod) != floor_div(r.hi, t->mod))
		return (struct index_range){ 0, t->mod - 1 };
	return (struct index_range){ floor_mod(r.lo, t->mod), floor_mod(r.hi, t->mod) };
}

struct index_range index_bounds(const struct index_expr *x, const int64_t *lo, const int64_t *hi)
{
	struct index_range sum = { x->k, x->k };

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		struct index_range r = term_bounds(t, lo[t->axis], hi[t->axis]);

		sum.lo += t->coef * (t->coef > 0 ? r.lo : r.hi);
		sum.hi += t->coef * (t->coef > 0 ? r.hi : r.lo);
	}
	return sum;
}

bool index_uses(const struct index_expr *x, int axis)
{
	for (int i = 0; i < x->n; i++)
		if (x->term[i].axis == axis)
			return true;
	return false;
}

/* negated: a minus is in front of all of the expression, where it would be taken for that of the axis. */
static void print_term(const struct index_term *t, int64_t coef, bool negated, const char *const *names,
	struct buf *out)
{
	bool compound = (coef != 1 || negated) && (t->div > 1 || t->mod);

	if (coef != 1)
		buf_printf(out, "%lld*", (long long)coef);
	if (compound)
		buf_putc(out, '(');
	buf_puts(out, names[t->axis]);
	if (t->div > 1)
		buf_printf(out, " // %lld", (long long)t->div);
	if (t->mod)
		buf_printf(out, " %% %lld", (long long)t->mod);
	if (compound)
		buf_putc(out, ')');
}

void index_print(const struct index_expr *x, const char *const *names, struct buf *out)
{
	for (int i = 0; i < x->n; i++) {
		int64_t coef = x->term[i].coef;

		if (i > 0)
			buf_puts(out, coef < 0 ? " - " : " + ");
		else if (coef < 0)
			buf_putc(out, '-');
		print_term(&x->term[i], abs_i64(coef), i == 0 && coef < 0, names, out);
	}
	if (x->n == 0)
		buf_printf(out, "%lld", (long long)x->k);
	else if (x->k)
		buf_printf(out, " %c %lld", x->k < 0 ? '-' : '+', (long long)abs_i64(x->k));
}
