/* How numbers go on from one to the next of several that begin at a multiple of as many: what num_steps says of expressions
 * at random, as addresses in shared memory are, against their values. */
#include "base/prng.h"
#include "role/num.h"
#include "tests/tap.h"

enum { TRIES = 20000, MULTIPLE = 8 };

static int64_t alignment(const void *ctx, enum var v, int of)
{
	(void)ctx;
	(void)of;
	return v == VAR_SLOT ? 16 : v == VAR_ROW0 ? 1 : v == VAR_LO ? MULTIPLE : 1;
}

struct setting {
	struct num_env env;
	int64_t group, slot, row, lo;
};

static int64_t var_of(const struct num_env *env, enum var v, int of)
{
	const struct setting *s = (const struct setting *)env;

	(void)of;
	return v == VAR_COL_GROUP ? s->group : v == VAR_SLOT ? s->slot : v == VAR_ROW0 ? s->row : s->lo;
}

static const struct num *drawn(struct arena *a, struct prng *r, int depth)
{
	static const enum var vars[] = { VAR_COL_GROUP, VAR_COL_GROUP, VAR_SLOT, VAR_ROW0, VAR_LO };
	static const enum num_op ops[] = { NUM_ADD, NUM_ADD, NUM_MUL, NUM_DIV, NUM_MOD, NUM_XOR, NUM_AND };
	enum num_op op;

	if (!depth || prng_below(r, 5) == 0)
		return num_var(a, vars[prng_below(r, LEN(vars))], -1);
	op = ops[prng_below(r, LEN(ops))];
	if (op == NUM_MUL || op == NUM_DIV || op == NUM_MOD || op == NUM_AND)
		return num_make(a, op, drawn(a, r, depth - 1), num_const(a, (int64_t)1 << prng_below(r, 8)));
	return num_make(a, op, drawn(a, r, depth - 1), drawn(a, r, depth - 1));
}

static bool is_so(const struct num *x, struct prng *r, int n, int64_t by, int64_t aligned)
{
	struct setting s = { .env.var = var_of, .slot = 16 * (int64_t)prng_below(r, 100), .row = prng_below(r, 32),
		.lo = MULTIPLE * (int64_t)prng_below(r, 32) };
	int64_t first, begin = n * (int64_t)prng_below(r, 32);

	s.group = begin;
	first = num_value(x, &s.env);
	if (first % aligned)
		return false;
	for (int i = 0; i < n; i++) {
		s.group = begin + i;
		if (num_value(x, &s.env) != first + i * by)
			return false;
	}
	return true;
}

int main(void)
{
	struct mem mem = { 0 };
	struct arena a;
	struct prng r = { .state = 1 };
	int known = 0, moving = 0, wrong = 0;

	arena_init(&a, &mem);

	for (int i = 0; i < TRIES; i++) {
		const struct num *x = drawn(&a, &r, 5);
		int n = 2 << prng_below(&r, 3);
		int64_t by, aligned;

		if (!num_steps(x, VAR_COL_GROUP, n, alignment, NULL, &by, &aligned))
			continue;
		known++;
		moving += by != 0;
		for (int k = 0; k < 20; k++)
			wrong += !is_so(x, &r, n, by, aligned);
	}
	is_int(wrong, 0, "what is said of a number is so");
	ok(known > TRIES / 4 && moving > TRIES / 20, "something is said of many, and of some that they go on");
	arena_release(&a);
	return tap_done();
}
