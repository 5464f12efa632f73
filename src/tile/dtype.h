/* dtype.h - element types and their exact conversions.
 *
 * Values are held as double everywhere in the reference; these functions say what a stored element of a type can
 * represent. Rounding is to nearest or even, once, straight from the double. Overflow goes to infinity where the
 * type has one (f16, bf16, e5m2, f32) and saturates where it has none (e4m3, e2m1 and the integers), as the conversion
 * instructions of the GPUs do with .satfinite. e8m0, OCP's type of scales, is only an exponent: 2^(byte - 127), or NaN if
 * the byte is 255. What is converted to it loses its sign, and becomes the power of two that is not greater.
 */
#ifndef TILE_DTYPE_H
#define TILE_DTYPE_H

#include "base/base.h"

/* columns: ID, name, bits of storage, exponent bits, mantissa bits stored
 * (0 0: an integer), as in OCP's and IEEE's definitions */
#define DTYPES(X) \
	X(F64,  "f64",  64, 11, 52) \
	X(F32,  "f32",  32,  8, 23) \
	X(TF32, "tf32", 32,  8, 10) \
	X(F16,  "f16",  16,  5, 10) \
	X(BF16, "bf16", 16,  8,  7) \
	X(E4M3, "e4m3",  8,  4,  3) \
	X(E5M2, "e5m2",  8,  5,  2) \
	X(E2M1, "e2m1",  4,  2,  1) \
	X(E8M0, "e8m0",  8,  8,  0) \
	X(I32,  "i32",  32,  0,  0) \
	X(I8,   "i8",    8,  0,  0) \
	X(U8,   "u8",    8,  0,  0) \
	X(I4,   "i4",    4,  0,  0) \
	X(BOOL, "bool",  8,  0,  0)

enum dtype {
#define X(id, name, bits, e, m) DT_##id,
	DTYPES(X)
#undef X
	DT_COUNT
};

int dtype_bits(enum dtype t);
const char *dtype_name(enum dtype t);
/* By name; also "float64 float32 float16 bfloat16 fp4 fp8 int32 int8 uint8 int4". False if there is none of that name. */
bool dtype_parse(const char *name, enum dtype *out);
bool dtype_is_float(enum dtype t);
/* Is rounding to the type a small share of the value? Else it is a step, which the reference takes, too: to integers, truth
 * values and e8m0. */
bool dtype_has_mantissa(enum dtype t);

/* The nearest value that `t` can hold. NaN stays NaN in floats but for e2m1, which
 * has none and takes its largest value, as the GPUs' conversion; 0 in integers. */
double dtype_round(enum dtype t, double x);

/* Of a float type: half of the relative spacing of its values; half of the spacing around zero; the greatest value. */
double dtype_roundoff(enum dtype t);
double dtype_least_half(enum dtype t);
double dtype_greatest(enum dtype t);
/* Can rounding a value of one type to another, a float, change it? */
bool dtype_loses(enum dtype from, enum dtype to);

/* Bytes of n packed elements (4-bit types: two to a byte, the even index low). */
size_t dtype_bytes(enum dtype t, size_t n);
/* Element i of an array of packed elements, rounded on storing. */
double dtype_load(enum dtype t, const void *array, size_t i);
/* Elements from `from` on, n of them: the same, and faster where there are many. */
void dtype_load_many(enum dtype t, const void *array, size_t from, size_t n, double *out);
void dtype_store(enum dtype t, void *array, size_t i, double x);

#endif
