#include "tile/index.h"

#include <stdlib.h>

#include "base/prng.h"
#include "tests/tap.h"

enum { AXES = 4 };

static const char *const names[AXES] = { "h", "w", "r", "s" };

/* An expression with the tree it was built from, as a value at every position of
 * a box: index.c and plain arithmetic are followed side by side. */
enum { SIDE = 5, POINTS = SIDE * SIDE * SIDE * SIDE };

struct sample {
	struct index_expr x;
	int64_t v[POINTS];
};

static void position(int point, const int64_t *lo, int64_t *pos)
{
	for (int a = 0; a < AXES; a++) {
		pos[a] = lo[a] + point % SIDE;
		point /= SIDE;
	}
}

static void sample_axis(struct sample *s, int axis, const int64_t *lo)
{
	int64_t pos[AXES];

	s->x = index_axis(axis);
	for (int i = 0; i < POINTS; i++) {
		position(i, lo, pos);
		s->v[i] = pos[axis];
	}
}

/* One random step; an expression that a step refuses stays as it was. */
static void sample_step(struct sample *s, struct prng *r, const int64_t *lo, struct err *e)
{
	static struct sample other;
	int64_t by = 1 + prng_below(r, 6), sign = prng_below(r, 4) ? 1 : -1;
	struct index_expr k = index_const(sign * by);

	switch (prng_below(r, 5)) {
	case 0:
		if (index_add(&s->x, &k, &s->x, e) == OK) {
			for (int i = 0; i < POINTS; i++)
				s->v[i] += sign * by;
		}
		break;
	case 1:
		if (index_scale(&s->x, sign * by, &s->x, e) == OK) {
			for (int i = 0; i < POINTS; i++)
				s->v[i] *= sign * by;
		}
		break;
	case 2:
		if (index_div(&s->x, by, &s->x, e) == OK) {
			for (int i = 0; i < POINTS; i++)
				s->v[i] = floor_div(s->v[i], by);
		}
		break;
	case 3:
		if (index_mod(&s->x, by, &s->x, e) == OK) {
			for (int i = 0; i < POINTS; i++)
				s->v[i] = floor_mod(s->v[i], by);
		}
		break;
	default:
		sample_axis(&other, (int)prng_below(r, AXES), lo);
		if (index_add(&s->x, &other.x, &s->x, e) == OK) {
			for (int i = 0; i < POINTS; i++)
				s->v[i] += other.v[i];
		}
		break;
	}
}

/* Does each axis occur in one term at most? Then the bounds are exact. */
static bool terms_are_apart(const struct index_expr *x)
{
	for (int i = 0; i < x->n; i++) {
		for (int j = 0; j < i; j++) {
			if (x->term[i].axis == x->term[j].axis)
				return false;
		}
	}
	return true;
}

static void test_random(struct prng *r)
{
	static struct sample s;
	int bad_eval = 0, bad_bounds = 0, loose = 0, exact = 0;
	struct err e;

	for (int round = 0; round < 4000; round++) {
		int64_t lo[AXES], hi[AXES], pos[AXES], least = INT64_MAX, most = INT64_MIN;
		struct index_range range;

		for (int a = 0; a < AXES; a++) {
			lo[a] = prng_below(r, 20);
			hi[a] = lo[a] + SIDE - 1;
		}
		sample_axis(&s, (int)prng_below(r, AXES), lo);
		for (int step = (int)prng_below(r, 8); step > 0; step--)
			sample_step(&s, r, lo, &e);
		range = index_bounds(&s.x, lo, hi);
		for (int i = 0; i < POINTS; i++) {
			position(i, lo, pos);
			bad_eval += index_eval(&s.x, pos) != s.v[i];
			least = min_i64(least, s.v[i]);
			most = max_i64(most, s.v[i]);
		}
		bad_bounds += range.lo > least || range.hi < most;
		if (terms_are_apart(&s.x)) {
			exact++;
			loose += range.lo != least || range.hi != most;
		}
	}
	is_int(bad_eval, 0, "random expressions have the value of plain arithmetic");
	is_int(bad_bounds, 0, "their bounds hold");
	is_int(loose, 0, "the bounds are exact where each axis has one term");
	ok(exact > 1000, "and many were of that kind");
}

static const char *text_of(struct arena *a, const struct index_expr *x)
{
	struct buf b;

	buf_init(&b, a);
	index_print(x, names, &b);
	return b.text;
}

static void test_print(struct arena *a)
{
	struct index_expr h = index_axis(0), r = index_axis(2), x, y;
	struct index_expr k = index_const(-1);
	struct err e;

	is_str(text_of(a, &k), "-1", "a constant");
	ok(!index_scale(&h, 2, &x, &e) && !index_add(&x, &r, &x, &e) && !index_add(&x, &k, &x, &e),
	   "2*h + r - 1");
	is_str(text_of(a, &x), "2*h + r - 1", "an affine sum");
	ok(!index_div(&h, 8, &x, &e) && !index_mod(&x, 4, &x, &e), "h // 8 % 4");
	is_str(text_of(a, &x), "h // 8 % 4", "division and modulo");
	ok(!index_scale(&x, -3, &x, &e) && !index_add(&x, &r, &x, &e), "-3*(h // 8 % 4) + r");
	is_str(text_of(a, &x), "-3*(h // 8 % 4) + r", "a scaled quotient, negative, comes first");
	ok(!index_scale(&r, -1, &y, &e) && !index_add(&h, &y, &y, &e), "h - r");
	is_str(text_of(a, &y), "h - r", "a difference");
}

static void test_rules(struct arena *a)
{
	struct index_expr h = index_axis(0), w = index_axis(1), x, y, k = index_const(9);
	struct err e = { 0 };

	ok(!index_scale(&h, -1, &x, &e) && !index_add(&h, &x, &x, &e) && x.n == 0,
	   "like terms cancel");
	ok(!index_scale(&h, 8, &x, &e) && !index_add(&x, &k, &x, &e) && !index_div(&x, 8, &y, &e),
	   "(8*h + 9) // 8");
	is_str(text_of(a, &y), "h + 1", "a constant remainder is divided separately");
	ok(!index_mod(&x, 8, &y, &e), "(8*h + 9) % 8");
	is_str(text_of(a, &y), "1", "and taken modulo");
	ok(!index_scale(&h, 8, &x, &e) && !index_add(&x, &w, &x, &e) && !index_div(&x, 8, &y, &e),
	   "(8*h + w) // 8");
	is_str(text_of(a, &y), "h + w // 8", "a single axis plus a multiple");
	k = index_const(1);
	ok(!index_add(&h, &k, &x, &e) && !index_div(&x, 2, &y, &e), "(h + 1) // 2");
	is_str(text_of(a, &y), "h // 2 + h % 2", "half of a number that is rounded up");
	ok(!index_mod(&x, 2, &y, &e), "(h + 1) % 2");
	is_str(text_of(a, &y), "-(h % 2) + 1", "the other of two");
	is_int(index_div(&x, 3, &y, &e), ERR_INPUT, "(h + 1) // 3 is refused");
	ok(!index_scale(&h, 2, &x, &e) && !index_add(&x, &k, &x, &e) && !index_div(&x, 8, &y, &e), "(2*h + 1) // 8");
	is_str(text_of(a, &y), "h // 4", "what is less than a step does not count");
	ok(!index_mod(&x, 8, &y, &e), "(2*h + 1) % 8");
	is_str(text_of(a, &y), "2*(h % 4) + 1", "  but is left");
	k = index_const(9);
	ok(!index_mod(&h, 12, &x, &e) && !index_div(&x, 4, &x, &e), "h % 12 // 4");
	is_str(text_of(a, &x), "h // 4 % 3", "a modulo that the divisor divides");
	ok(!index_mod(&h, 3, &x, &e) && !index_div(&x, 4, &x, &e) && x.n == 0 && x.k == 0,
	   "h % 3 // 4 is 0");
	ok(index_uses(&h, 0) && !index_uses(&h, 1), "index_uses");

	ok(!index_add(&h, &w, &x, &e), "h + w");
	y = k;
	is_int(index_div(&x, 4, &y, &e), ERR_INPUT, "(h + w) // 4 is refused");
	is_str(e.msg, "dividing an index by 4 needs a single axis, or parts that 4 divides evenly",
	       "with the reason");
	is_int(y.k, 9, "and the result is left alone");
	is_int(index_mod(&x, 4, &y, &e), ERR_INPUT, "(h + w) % 4 is refused");
	is_int(index_div(&h, 0, &y, &e), ERR_INPUT, "division by 0 is refused");
	is_int(index_mod(&h, -2, &y, &e), ERR_INPUT, "modulo -2 is refused");
	ok(!index_mod(&h, 6, &x, &e), "h % 6");
	is_int(index_div(&x, 4, &y, &e), ERR_INPUT, "h % 6 // 4 is refused");
	is_int(index_mod(&x, 4, &y, &e), ERR_INPUT, "h % 6 % 4 is refused");
	is_int(index_scale(&h, INT64_MAX, &y, &e), ERR_LIMIT, "a huge factor is refused");
	x = index_const(INT64_MIN);
	is_int(index_add(&h, &x, &y, &e), ERR_LIMIT, "a huge offset is refused");
	is_int(index_scale(&x, -1, &y, &e), ERR_LIMIT, "and not negated");
	x = index_const(0);
	for (int i = 0; i < INDEX_TERMS; i++) {
		ok(!index_div(&h, i + 1, &y, &e) && !index_add(&x, &y, &x, &e), "a term more");
	}
	is_int(index_add(&x, &w, &y, &e), ERR_LIMIT, "the ninth term is refused");
}

int main(void)
{
	struct mem mem = { 0 };
	struct arena a;
	struct prng r = { 7 };

	arena_init(&a, &mem);
	test_random(&r);
	test_print(&a);
	test_rules(&a);
	arena_release(&a);
	return tap_done();
}
