#include "tile/interp_row.h"

#include <math.h>
#include <string.h>

/* What the formulas of ops.def use, here and in the prelude of the compiled reference (plain_prelude.c). */

#define INF HUGE_VAL

/* The bits of an i32, and the i32 of bits. */
static uint32_t word(double x)
{
	return (uint32_t)(int32_t)x;
}

static double number(uint32_t bits)
{
	return (int32_t)bits;
}

/* The bits of the f32 next to x, and the f32 of bits. */
static uint32_t word_of(double x)
{
	float f = (float)x;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static double float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

/* If one is a NaN the result is the other, as with fmin and fmax and on GPUs. */
static double greater(double x, double y)
{
	return x > y || isnan(y) ? x : y;
}

static double lesser(double x, double y)
{
	return x < y || isnan(y) ? x : y;
}

/* Arithmetic, by the low five bits of `by`. */
static uint32_t shift_right(uint32_t x, uint32_t by)
{
	uint32_t sign = x >> 31 ? UINT32_MAX : 0;

	by &= 31;
	return by ? x >> by | sign << (32 - by) : x;
}

/* In fields of 2 bits, of 4, of 8; the product adds the four of 8 in the highest. */
static uint32_t count_bits(uint32_t x)
{
	x -= x >> 1 & 0x55555555;
	x = (x & 0x33333333) + (x >> 2 & 0x33333333);
	return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

/* Compute the row and return if it is this operation. */
#define ROW(id, formula) \
	if (op == OP_##id) { \
		for (int64_t i_ = 0; i_ < n; i_++) { \
			double x = arg[0][i_ * step[0]], y = arg[1][i_ * step[1]], z = arg[2][i_ * step[2]]; \
			\
			(void)x; \
			(void)y; \
			(void)z; \
			out[i_] = (formula); \
		} \
		return; \
	}

void row_apply(enum op op, enum dtype t, int64_t n, double *out, const double *const arg[3], const int64_t step[3])
{
	if (t == DT_I32) {
#define ON_I32(id, arity, value, kernel) ROW(id, value)
#include "tile/ops.def"
	} else {
#define ELEMENTWISE(id, name, arity, class, types, value, kernel, call, help) ROW(id, value)
#define REDUCTION(id, name, class, pair, call, help)
#define ERROR_BOUND(id, name, arity, value) ROW(id, value)
#include "tile/ops.def"
	}
	BUG("no element-wise %s of %s", op_name(op), dtype_name(t));
}

double cast_value(enum dtype t, double x, bool rounded)
{
	if (t == DT_BOOL)
		return x != 0;
	if (!dtype_is_float(t))
		return dtype_round(t, trunc(x));
	return rounded || !dtype_has_mantissa(t) ? dtype_round(t, x) : x;
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

void multiply_i32(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c, uint32_t *row)
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

void join_rows(enum op op, enum dtype t, int64_t n, double *out, const double *a, const double *b)
{
	const double *const arg[3] = { a, b, b };
	const int64_t step[3] = { 1, 1, 1 };

	row_apply(op_pair(op), t, n, out, arg, step);
}
