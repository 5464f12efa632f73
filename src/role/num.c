#include "role/num.h"

#include <string.h>

#include "base/buf.h"

enum { TILE_LOOP = -1 };

const struct var_info var_info[VAR_COUNT] = {
#define LET false
#define GIVEN true
#define X(id, name, index, scope) { name, index, scope },
	VARS(X)
#undef X
#undef GIVEN
#undef LET
};

static struct num *new_num(struct arena *a, enum num_op op, const struct num *x, const struct num *y)
{
	struct num *n = ARENA_NEW(a, struct num);

	*n = (struct num){ .op = op, .a = x, .b = y };
	return n;
}

const struct num *num_const(struct arena *a, int64_t k)
{
	struct num *n = new_num(a, NUM_CONST, NULL, NULL);

	n->k = k;
	return n;
}

const struct num *num_var(struct arena *a, enum var v, int of)
{
	struct num *n = new_num(a, NUM_VAR, NULL, NULL);

	n->var = v;
	n->of = of;
	return n;
}

bool num_is(const struct num *x, int64_t k)
{
	return x->op == NUM_CONST && x->k == k;
}

/* What need not be computed; NULL if there is nothing to leave out. A term of 0 stays: it
 * may be another number in the role of another lane, with which this one shares its text. */
static const struct num *simplify(enum num_op op, const struct num *x, const struct num *y)
{
	if ((op == NUM_MUL && (num_is(x, 1) || num_is(y, 0))) || (op == NUM_BOTH && num_is(x, 1)))
		return y;
	if ((op == NUM_MUL && num_is(x, 0)) || ((op == NUM_MUL || op == NUM_DIV || op == NUM_BOTH) && num_is(y, 1)))
		return x;
	return NULL;
}

const struct num *num_make(struct arena *a, enum num_op op, const struct num *x, const struct num *y)
{
	const struct num *same = simplify(op, x, y);

	if (same)
		return same;
	if (num_is_const(x) && num_is_const(y) && op != NUM_TILE_AT)
		return num_const(a, num_value(&(struct num){ .op = op, .a = x, .b = y }, NULL));
	if (op == NUM_MOD && num_is(y, 1))
		return num_const(a, 0);
	return new_num(a, op, x, y);
}

const struct num *num_element(struct arena *a, int tensor, const struct num *at)
{
	struct num *n = new_num(a, NUM_ELEMENT, at, NULL);

	n->of = tensor;
	return n;
}

const struct num *num_of_lane(struct arena *a, int64_t first, int64_t step)
{
	return new_num(a, NUM_OF_LANE, num_const(a, first), num_const(a, step));
}

const struct num *num_select(struct arena *a, const struct num *when, const struct num *x, const struct num *y)
{
	if (num_is_const(when))
		return when->k ? x : y;
	struct num *n = new_num(a, NUM_SELECT, when, x);
	n->c = y;
	return n;
}

const struct num *num_mark_interior(struct arena *a, const struct num *when)
{
	return new_num(a, NUM_INTERIOR, when, NULL);
}

const struct num *num_assume_interior(struct arena *a, const struct num *when)
{
	if (when->op == NUM_INTERIOR)
		return num_const(a, 1);
	if (when->op == NUM_BOTH)
		return num_make(a, NUM_BOTH, num_assume_interior(a, when->a), num_assume_interior(a, when->b));
	return when;
}

bool num_alike(const struct num *x, const struct num *y)
{
	if (!x || !y)
		return x == y;
	return x->op == y->op && x->k == y->k && x->var == y->var && x->of == y->of &&
		num_alike(x->a, y->a) && num_alike(x->b, y->b) && num_alike(x->c, y->c);
}

bool num_has_conjunct(const struct num *all, const struct num *x)
{
	return num_alike(all, x) ||
		(all->op == NUM_BOTH && (num_has_conjunct(all->a, x) || num_has_conjunct(all->b, x)));
}

/* of NULL: of any. */
static bool uses(const struct num *x, enum var v, const int *of)
{
	return x && ((x->op == NUM_VAR && x->var == v && (!of || x->of == *of)) || uses(x->a, v, of) ||
		uses(x->b, v, of) || uses(x->c, v, of));
}

bool num_uses(const struct num *x, enum var v)
{
	return uses(x, v, NULL);
}

bool num_uses_of(const struct num *x, enum var v, int of)
{
	return uses(x, v, &of);
}

bool num_slope(const struct num *x, enum var v, int64_t *by)
{
	int64_t a, b;

	*by = x->op == NUM_VAR && x->var == v;
	if (x->op == NUM_CONST || x->op == NUM_VAR)
		return true;
	if ((x->a && !num_slope(x->a, v, &a)) || (x->b && !num_slope(x->b, v, &b)))
		return false;
	if (x->op == NUM_ADD || x->op == NUM_SUB) {
		*by = x->op == NUM_ADD ? a + b : a - b;
		return true;
	}
	if (x->op == NUM_MUL && (num_is_const(x->a) || num_is_const(x->b))) {
		*by = num_is_const(x->a) ? x->a->k * b : a * x->b->k;
		return true;
	}
	return !num_uses(x, v);
}

int64_t num_alignment(const struct num *x, int64_t most, int64_t (*of_var)(const void *ctx, enum var v, int of),
	const void *ctx)
{
	int64_t a, b;

	if (x->op == NUM_CONST)
		return x->k ? min_i64(most, x->k & -x->k) : most;
	if (x->op == NUM_VAR)
		return min_i64(most, of_var(ctx, x->var, x->of));
	if (x->op == NUM_DIV && num_is_const(x->b) && x->b->k > 0 && x->b->k <= INT32_MAX / most) {
		/* of a number that is divisible by both */
		a = num_alignment(x->a, most * x->b->k, of_var, ctx);
		return a % x->b->k ? 1 : a / x->b->k;
	}
	if (x->op < NUM_ADD || x->op > NUM_XOR || x->op == NUM_DIV)
		return 1;
	a = num_alignment(x->a, most, of_var, ctx);
	if (x->op == NUM_SHL)
		return num_is_const(x->b) && x->b->k < 16 ? min_i64(most, a << x->b->k) : a;
	b = num_alignment(x->b, most, of_var, ctx);
	return x->op == NUM_MUL ? min_i64(most, a * b) : x->op == NUM_AND ? max_i64(a, b) : min_i64(a, b);
}

static int64_t lowest_bit(int64_t x)
{
	return x ? min_i64(NUM_ALIGNED_MOST, x & -x) : NUM_ALIGNED_MOST;
}

bool num_steps(const struct num *x, enum var v, int n, int64_t (*of_var)(const void *ctx, enum var v, int of), const void *ctx,
	int64_t *by, int64_t *aligned)
{
	int64_t a, b, p, q, grown;
	bool known = x->b && num_is_const(x->b) && x->b->k > 0;

	*by = 0;
	*aligned = 1;
	if (x->op == NUM_VAR && x->var == v) {
		*by = 1;
		*aligned = n;
		return true;
	}
	if (!num_uses(x, v)) {
		*aligned = num_alignment(x, NUM_ALIGNED_MOST, of_var, ctx);
		return true;
	}
	if (!x->b || x->c || !num_steps(x->a, v, n, of_var, ctx, &a, &p) || !num_steps(x->b, v, n, of_var, ctx, &b, &q))
		return false;
	grown = a * (n - 1);		/* below p: no digit of the first number changes */
	switch ((int)x->op) {
	case NUM_ADD:
		*by = a + b;
		*aligned = min_i64(p, q);
		return true;
	case NUM_MUL:
		if (!num_is_const(x->a) && !known)
			return false;
		*by = num_is_const(x->a) ? x->a->k * b : a * x->b->k;
		*aligned = min_i64(NUM_ALIGNED_MOST, p * q);
		return true;
	case NUM_DIV:
		if (!known || a < 0 || (a % x->b->k && grown >= min_i64(p, lowest_bit(x->b->k))))
			return false;
		*by = a % x->b->k ? 0 : a / x->b->k;
		return true;
	case NUM_MOD:
		if (!known || a < 0 || grown >= min_i64(p, lowest_bit(x->b->k)))
			return false;
		*by = a;
		*aligned = min_i64(p, lowest_bit(x->b->k));
		return true;
	case NUM_XOR:
		*by = a + b;
		*aligned = min_i64(p, q);
		return a >= 0 && b >= 0 && (!a || !b) && *by * (n - 1) < *aligned;
	}
	return false;
}

int64_t num_value(const struct num *n, const struct num_env *env)
{
	switch ((int)n->op) {
	case NUM_CONST: return n->k;
	case NUM_VAR: return env->var(env, n->var, n->of);
	case NUM_SELECT: return num_value(num_value(n->a, env) ? n->b : n->c, env);
	case NUM_TILE_AT: case NUM_INTERIOR: case NUM_OF_LANE: return num_value(n->a, env);
	case NUM_BOTH: return num_value(n->a, env) && num_value(n->b, env);
	case NUM_ELEMENT: BUG("an element of tensor %d is known in a kernel alone", n->of);
	}
	int64_t x = num_value(n->a, env), y = num_value(n->b, env);
	switch ((int)n->op) {
	case NUM_ADD: return x + y;
	case NUM_SUB: return x - y;
	case NUM_MUL: return x * y;
	case NUM_DIV: return x / y;
	case NUM_MOD: return x % y;
	case NUM_SHL: return (int64_t)((uint64_t)x << y);
	case NUM_SHR: return x >> y;
	case NUM_AND: return x & y;
	case NUM_XOR: return x ^ y;
	case NUM_LT: return x < y;
	case NUM_LE: return x <= y;
	case NUM_GT: return x > y;
	case NUM_GE: return x >= y;
	case NUM_EQ: return x == y;
	case NUM_NE: return x != y;
	case NUM_EITHER: return x || y;
	case NUM_MIN: return x < y ? x : y;
	case NUM_MAX: return x > y ? x : y;
	}
	BUG("%d is no operation on numbers", n->op);
}

/* as text ---------------------------------------------------------------------- */

static const struct {
	const char *text;
	int binds;			/* more: tighter */
} forms[] = {
	[NUM_ADD] = { " + ", 9 }, [NUM_SUB] = { " - ", 9 }, [NUM_MUL] = { " * ", 10 },
	[NUM_DIV] = { " / ", 10 }, [NUM_MOD] = { " % ", 10 }, [NUM_SHL] = { " << ", 8 },
	[NUM_SHR] = { " >> ", 8 },
	[NUM_LT] = { " < ", 7 }, [NUM_LE] = { " <= ", 7 }, [NUM_GT] = { " > ", 7 },
	[NUM_GE] = { " >= ", 7 }, [NUM_EQ] = { " == ", 6 }, [NUM_NE] = { " != ", 6 },
	[NUM_AND] = { " & ", 5 }, [NUM_XOR] = { " ^ ", 4 }, [NUM_BOTH] = { " && ", 3 },
	[NUM_EITHER] = { " || ", 2 }, [NUM_SELECT] = { " ? ", 1 },
};

static void print_num(struct buf *out, const struct num *x, const struct num_names *names, int least);

static void print_var(struct buf *out, enum var v, int of, const struct num_names *names)
{
	const char *at = var_info[v].name, *index = strchr(at, '%');

	if (v == VAR_ALL_TILES && names->taken) {
		buf_puts(out, "taken");
		return;
	}
	if (v == VAR_ALL_TILES && names->tiles) {
		buf_printf(out, "quo(%lld - BLOCK, %d)", (long long)names->tiles + names->blocks - 1, names->blocks);
		return;
	}
	if (!index) {
		buf_puts(out, at);
		return;
	}
	buf_putn(out, at, (size_t)(index - at));
	if (var_info[v].index == OF_AXIS || var_info[v].index == OF_RING)
		buf_puts(out, var_info[v].index == OF_AXIS ? names->axes[of] : names->rings[of]);
	else if (of == TILE_LOOP)
		buf_puts(out, "tile");
	else
		buf_printf(out, "%d", of);
}

/* In parentheses if it binds less than `least`. */
static void print_num(struct buf *out, const struct num *x, const struct num_names *names, int least)
{
	bool bitwise = x->op == NUM_SHL || x->op == NUM_SHR || x->op == NUM_AND || x->op == NUM_XOR;

	switch (x->op) {
	case NUM_CONST:
		buf_printf(out, x->k < 0 && least > 9 ? "(%lld)" : "%lld", (long long)x->k);
		return;
	case NUM_VAR:
		print_var(out, x->var, x->of, names);
		return;
	case NUM_MIN: case NUM_MAX:
		buf_puts(out, x->op == NUM_MIN ? "min_of(" : "max_of(");
		print_num(out, x->a, names, 0);
		buf_puts(out, ", ");
		print_num(out, x->b, names, 0);
		buf_putc(out, ')');
		return;
	case NUM_OF_LANE:
		buf_printf(out, "(%lld + who * %lld)", (long long)x->a->k, (long long)x->b->k);
		return;
	case NUM_TILE_AT:
		if (names->tiles) {
			buf_printf(out, "%s(%s", names->tile_at ? names->tile_at : "", x->b ? "BLOCK + " : "");
			print_num(out, x->a, names, 9);
			buf_printf(out, x->b ? " * %d)" : ")", names->blocks);
			return;
		}
		buf_puts(out, x->b ? "order[start[BLOCK] + " : "order[");
		print_num(out, x->a, names, 9);
		buf_putc(out, ']');
		return;
	case NUM_ELEMENT:		/* the same for all threads of a warp, and compilers should know it */
		buf_printf(out, "UNIFORM((int)tensor_%s[", names->tensors[x->of]);
		print_num(out, x->a, names, 0);
		buf_puts(out, "])");
		return;
	case NUM_INTERIOR:
		print_num(out, x->a, names, least);
		return;
	case NUM_SELECT:
	case NUM_ADD: case NUM_SUB: case NUM_MUL: case NUM_DIV: case NUM_MOD: case NUM_SHL:
	case NUM_SHR: case NUM_AND: case NUM_XOR: case NUM_LT: case NUM_LE: case NUM_GT: case NUM_GE: case NUM_EQ:
	case NUM_NE: case NUM_BOTH: case NUM_EITHER:
		break;
	}
	int binds = forms[x->op].binds;
	if (binds < least)
		buf_putc(out, '(');
	/* in operands of bitwise operators compilers warn of arithmetic without parentheses */
	print_num(out, x->a, names, bitwise ? 11 : x->op == NUM_SELECT ? 2 : binds);
	buf_puts(out, forms[x->op].text);
	print_num(out, x->b, names, bitwise ? 11 : binds + 1);
	if (x->op == NUM_SELECT) {
		buf_puts(out, " : ");
		print_num(out, x->c, names, 2);
	}
	if (binds < least)
		buf_putc(out, ')');
}

const char *num_text(struct arena *a, const struct num *x, const struct num_names *names)
{
	struct buf b;

	buf_init(&b, a);
	print_num(&b, x, names, 0);
	return b.text;
}

const char *var_text(struct arena *a, enum var v, int of, const struct num_names *names)
{
	struct buf b;

	buf_init(&b, a);
	print_var(&b, v, of, names);
	return b.text;
}
