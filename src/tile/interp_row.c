#include "tile/interp_row.h"

#include <math.h>

/* The low 32 bits of an integer in i32's range. */
static uint32_t word(double x)
{
	return (uint32_t)(int32_t)x;
}

static double number(uint32_t bits)
{
	return (int32_t)bits;
}

/* Of a number and a NaN the number, as fmin and fmax and the GPUs. */
static double greater(double x, double y)
{
	return x > y || isnan(y) ? x : y;
}

static double lesser(double x, double y)
{
	return x < y || isnan(y) ? x : y;
}

static uint32_t shift_right(uint32_t x, uint32_t by)
{
	uint32_t sign = x >> 31 ? UINT32_MAX : 0;

	by &= 31;
	return by ? x >> by | sign << (32 - by) : x;
}

#define EACH(expr) do { \
	for (int64_t i_ = 0; i_ < n; i_++) { \
		double x = arg[0][i_ * step[0]], y = arg[1][i_ * step[1]]; \
		\
		(void)x; \
		(void)y; \
		out[i_] = (expr); \
	} \
	return; \
} while (0)

static void apply_i32(enum op op, int64_t n, double *out, const double *const arg[3],
		      const int64_t step[3])
{
#define INTEGER_OPS(X) \
	X(ADD, number(word(x) + word(y))) \
	X(SUB, number(word(x) - word(y))) \
	X(MUL, number(word(x) * word(y))) \
	X(NEG, number(0 - word(x))) \
	X(ABS, number(x < 0 ? 0 - word(x) : word(x))) \
	X(MIN, lesser(x, y)) \
	X(MAX, greater(x, y)) \
	X(AND, number(word(x) & word(y))) \
	X(OR,  number(word(x) | word(y))) \
	X(XOR, number(word(x) ^ word(y))) \
	X(NOT, number(~word(x))) \
	X(SHL, number(word(x) << (word(y) & 31))) \
	X(SHR, number(shift_right(word(x), word(y))))
#define X(id, expr) if (op == OP_##id) EACH(expr);
	INTEGER_OPS(X)
#undef X
	BUG("no integer %s", op_name(op));
}

static void apply_float(enum op op, int64_t n, double *out, const double *const arg[3],
			const int64_t step[3])
{
#define FLOAT_OPS(X) \
	X(ADD,   x + y) \
	X(SUB,   x - y) \
	X(MUL,   x * y) \
	X(DIV,   x / y) \
	X(NEG,   -x) \
	X(ABS,   fabs(x)) \
	X(MIN,   lesser(x, y)) \
	X(MAX,   greater(x, y)) \
	X(FLOOR, floor(x)) \
	X(EXP2,  exp2(x)) \
	X(LOG2,  log2(x)) \
	X(RSQRT, 1 / sqrt(x)) \
	X(SQRT,  sqrt(x)) \
	X(TANH,  tanh(x)) \
	X(LT,    x < y) \
	X(LE,    x <= y) \
	X(EQ,    x == y) \
	X(NE,    x != y) \
	X(AND,   x != 0 && y != 0) \
	X(OR,    x != 0 || y != 0) \
	X(XOR,   (x != 0) != (y != 0)) \
	X(NOT,   x == 0)
#define X(id, expr) if (op == OP_##id) EACH(expr);
	FLOAT_OPS(X)
#undef X
	BUG("no element-wise %s", op_name(op));
}

static void apply_where(int64_t n, double *out, const double *const arg[3],
			const int64_t step[3])
{
	EACH(x != 0 ? y : arg[2][i_ * step[2]]);
}

void row_apply(enum op op, enum dtype t, int64_t n, double *out, const double *const arg[3],
	       const int64_t step[3])
{
	if (op == OP_WHERE)
		apply_where(n, out, arg, step);
	else if (t == DT_I32)
		apply_i32(op, n, out, arg, step);
	else
		apply_float(op, n, out, arg, step);
}

double cast_value(enum dtype t, double x, bool rounded)
{
	if (t == DT_BOOL)
		return x != 0;
	if (!dtype_is_float(t))
		return dtype_round(t, trunc(x));
	return rounded ? dtype_round(t, x) : x;
}

void multiply_f64(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c)
{
	/* Four rows of b at a time, so that c is read and written a quarter as often. */
	for (int64_t i = 0; i < m; i++) {
		double *restrict to = c + i * n;
		const double *x = a + i * k;
		int64_t l = 0;

		for (; l + 4 <= k; l += 4) {
			const double *b0 = b + l * n, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
			double x0 = x[l], x1 = x[l + 1], x2 = x[l + 2], x3 = x[l + 3];

			for (int64_t j = 0; j < n; j++)
				to[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];
		}
		for (; l < k; l++) {
			for (int64_t j = 0; j < n; j++)
				to[j] += x[l] * b[l * n + j];
		}
	}
}

void multiply_i32(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c,
		  uint32_t *row)
{
	for (int64_t i = 0; i < m; i++) {
		for (int64_t j = 0; j < n; j++)
			row[j] = word(c[i * n + j]);
		for (int64_t l = 0; l < k; l++) {
			uint32_t x = word(a[i * k + l]);

			for (int64_t j = 0; j < n; j++)
				row[j] += x * word(b[l * n + j]);
		}
		for (int64_t j = 0; j < n; j++)
			c[i * n + j] = number(row[j]);
	}
}

double reduce_identity(enum op op, enum dtype t)
{
	double least = t == DT_I32 ? INT32_MIN : -(double)INFINITY;
	double most = t == DT_I32 ? INT32_MAX : (double)INFINITY;

	if (op == OP_SUM || op == OP_CUMSUM)
		return 0;
	return op == OP_RMAX || op == OP_CUMMAX ? least : most;
}

void reduce_rows(enum op op, enum dtype t, int64_t n, double *out, const double *a,
		 const double *b)
{
	const double *const arg[3] = { a, b, b };
	const int64_t step[3] = { 1, 1, 1 };
	enum op pair = op == OP_SUM || op == OP_CUMSUM ? OP_ADD
		: op == OP_RMAX || op == OP_CUMMAX ? OP_MAX : OP_MIN;

	row_apply(pair, t, n, out, arg, step);
}
