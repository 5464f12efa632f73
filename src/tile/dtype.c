#include "tile/dtype.h"

#include <math.h>
#include <string.h>

struct format {
	const char *name;
	int bits, exp, mant;
};

static const struct format formats[DT_COUNT] = {
#define X(id, name, bits, e, m) [DT_##id] = { name, bits, e, m },
	DTYPES(X)
#undef X
};

static const struct {
	const char *name;
	enum dtype type;
} aliases[] = {
	{ "float64", DT_F64 }, { "float32", DT_F32 }, { "float16", DT_F16 },
	{ "bfloat16", DT_BF16 }, { "fp8", DT_E4M3 }, { "fp4", DT_E2M1 },
	{ "int32", DT_I32 }, { "int8", DT_I8 }, { "uint8", DT_U8 }, { "int4", DT_I4 },
};

static const struct format *format_of(enum dtype t)
{
	if ((unsigned)t >= DT_COUNT)
		BUG("no data type %d", (int)t);
	return &formats[t];
}

int dtype_bits(enum dtype t)
{
	return format_of(t)->bits;
}

const char *dtype_name(enum dtype t)
{
	return format_of(t)->name;
}

bool dtype_parse(const char *name, enum dtype *out)
{
	for (int i = 0; i < LEN(aliases); i++)
		if (!strcmp(name, aliases[i].name))
			name = formats[aliases[i].type].name;
	for (int i = 0; i < DT_COUNT; i++)
		if (!strcmp(name, formats[i].name)) {
			*out = (enum dtype)i;
			return true;
		}
	return false;
}

bool dtype_is_float(enum dtype t)
{
	return format_of(t)->exp > 0;
}

bool dtype_has_mantissa(enum dtype t)
{
	return format_of(t)->mant > 0;
}

/* OCP's e4m3 and e2m1 spend the highest exponent on finite values, e8m0 on NaN. */
static bool has_inf(enum dtype t)
{
	return t != DT_E4M3 && t != DT_E2M1 && t != DT_E8M0;
}

static int bias_of(const struct format *f)
{
	return (1 << (f->exp - 1)) - 1;
}

/* 2^e where that is a normal double: unlike ldexp, a few instructions. */
static double pow2(int e)
{
	uint64_t bits = (uint64_t)(e + 1023) << 52;
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* floor(log2 |x|); -1023 for zeros and subnormals, 1024 for infinities and NaN. */
static int exponent_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (int)(bits >> 52 & 0x7ff) - 1023;
}

static double max_value(enum dtype t)
{
	const struct format *f = &formats[t];
	double top = 2 - pow2(-f->mant);

	if (t == DT_E8M0)
		return pow2(bias_of(f));
	if (t == DT_E4M3)
		top -= pow2(-f->mant);	/* the last mantissa is NaN */
	return top * pow2(has_inf(t) ? bias_of(f) : (1 << f->exp) - 1 - bias_of(f));
}

double dtype_roundoff(enum dtype t)
{
	return pow2(-format_of(t)->mant - 1);
}

double dtype_least_half(enum dtype t)
{
	return ldexp(1, 1 - bias_of(format_of(t)) - formats[t].mant - 1);
}

double dtype_greatest(enum dtype t)
{
	format_of(t);
	return max_value(t);
}

bool dtype_loses(enum dtype from, enum dtype to)
{
	const struct format *f = format_of(from), *t = format_of(to);

	if (from == DT_BOOL)
		return false;
	if (f->exp == 0)
		return f->bits - (from != DT_U8) > t->mant + 1;
	return f->mant > t->mant || f->exp > t->exp;
}

/* The spacing of the type's values around x, which has at least that exponent. */
static int quantum_exp(const struct format *f, double x)
{
	int e = exponent_of(x), least = 1 - bias_of(f);

	return (e < least ? least : e) - f->mant;
}

/* To e8m0. */
static double power_below(double x)
{
	int e = exponent_of(x), most = bias_of(&formats[DT_E8M0]);

	return isnan(x) ? x : pow2(e < -most ? -most : e > most ? most : e);
}

static double round_float(enum dtype t, double x)
{
	double r, max;
	int q;

	if (t == DT_F64)
		return x;
	if (t == DT_F32)
		return (double)(float)x;
	if (t == DT_E8M0)
		return power_below(x);
	if (isnan(x))
		return t == DT_E2M1 ? max_value(t) : x;
	if (isinf(x))
		return has_inf(t) ? x : copysign(max_value(t), x);
	max = max_value(t);
	if (fabs(x) > 2 * max) {
		r = 2 * max;
	} else {
		q = quantum_exp(&formats[t], x);
		r = rint(fabs(x) * pow2(-q)) * pow2(q);
	}
	if (r > max)
		r = has_inf(t) ? (double)INFINITY : max;
	return copysign(r, x);
}

double dtype_round(enum dtype t, double x)
{
	double half, lo, hi;

	if (dtype_is_float(t))
		return round_float(t, x);
	if (isnan(x))
		return 0;
	half = pow2(formats[t].bits - 1);
	lo = t == DT_BOOL || t == DT_U8 ? 0 : -half;
	hi = t == DT_BOOL ? 1 : t == DT_U8 ? 2 * half - 1 : half - 1;
	x = rint(x) + 0.0;		/* no negative zero */
	return x < lo ? lo : x > hi ? hi : x;
}

/* The encoding of a value that the type can hold, in the low bits. */
static uint32_t encode(enum dtype t, double r)
{
	const struct format *f = &formats[t];
	uint32_t sign = (uint32_t)(signbit(r) != 0) << (f->exp + f->mant);
	uint32_t ones = (1u << f->exp) - 1;
	int e = exponent_of(r), q;

	if (t == DT_E8M0)
		return isnan(r) ? ones : (uint32_t)(e + bias_of(f));
	if (isnan(r))
		return sign | ones << f->mant | (t == DT_E4M3 ? 7u : 1u << (f->mant - 1));
	if (isinf(r))
		return sign | ones << f->mant;
	q = quantum_exp(f, r);
	/* The hidden bit of a normal value adds one to the exponent below it. */
	if (e >= 1 - bias_of(f))
		sign |= (uint32_t)(e + bias_of(f) - 1) << f->mant;
	return sign + (uint32_t)(fabs(r) * pow2(-q));
}

static double decode(enum dtype t, uint32_t bits)
{
	const struct format *f = &formats[t];
	uint32_t ones = (1u << f->exp) - 1, e = bits >> f->mant & ones;
	uint32_t m = bits & ((1u << f->mant) - 1);
	double x;

	if (t == DT_E8M0)
		return e == ones ? (double)NAN : pow2((int)e - bias_of(f));
	if (e == ones && has_inf(t))
		x = m ? (double)NAN : (double)INFINITY;
	else if (t == DT_E4M3 && e == ones && m == 7)
		x = (double)NAN;
	else if (e == 0)
		x = m * pow2(1 - bias_of(f) - f->mant);
	else
		x = (m + (1u << f->mant)) * pow2((int)e - bias_of(f) - f->mant);
	return bits >> (f->exp + f->mant) & 1 ? -x : x;
}

size_t dtype_bytes(enum dtype t, size_t n)
{
	int bits = dtype_bits(t);

	return bits == 4 ? n / 2 + n % 2 : n * (size_t)(bits / 8);
}

/* The bytes of an element. */
union element {
	double f64;
	float f32;
	uint16_t half;
	int32_t i32;
	uint8_t byte;
};

double dtype_load(enum dtype t, const void *array, size_t i)
{
	size_t bits = (size_t)dtype_bits(t);
	union element x;
	int nibble;

	if (bits >= 8)
		memcpy(&x, (const uint8_t *)array + i * bits / 8, bits / 8);
	switch (t) {
	case DT_F64:
		return x.f64;
	case DT_F32: case DT_TF32:
		return (double)x.f32;
	case DT_F16: case DT_BF16:
		return decode(t, x.half);
	case DT_E4M3: case DT_E5M2: case DT_E8M0:
		return decode(t, x.byte);
	case DT_I32:
		return x.i32;
	case DT_I8:
		return x.byte < 128 ? x.byte : x.byte - 256;
	case DT_U8:
		return x.byte;
	case DT_BOOL:
		return x.byte != 0;
	case DT_E2M1: case DT_I4: case DT_COUNT:
		break;
	}
	nibble = ((const uint8_t *)array)[i / 2] >> (i % 2 * 4) & 15;
	return t == DT_E2M1 ? decode(t, (uint32_t)nibble) : nibble < 8 ? nibble : nibble - 16;
}

static float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* With its exponent as that of a float, a finite value is 2^112 times too small. */
static double half_value(uint16_t half)
{
	uint32_t bits = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16;

	if ((half & 0x7c00u) == 0x7c00u)
		return (double)float_of(sign | 0x7f800000u | bits);
	return (double)(float_of(sign | bits) * 0x1p112f);
}

void dtype_load_many(enum dtype t, const void *array, size_t from, size_t n, double *out)
{
	const uint8_t *at = array;
	uint16_t half;
	float single;

	switch (t) {
	case DT_F32:
	case DT_TF32:
		for (size_t i = 0; i < n; i++) {
			memcpy(&single, at + (from + i) * sizeof(single), sizeof(single));
			out[i] = (double)single;
		}
		return;
	case DT_BF16:
		for (size_t i = 0; i < n; i++) {
			memcpy(&half, at + (from + i) * sizeof(half), sizeof(half));
			out[i] = (double)float_of((uint32_t)half << 16);
		}
		return;
	case DT_F16:
		for (size_t i = 0; i < n; i++) {
			memcpy(&half, at + (from + i) * sizeof(half), sizeof(half));
			out[i] = half_value(half);
		}
		return;
	case DT_F64: case DT_E4M3: case DT_E5M2: case DT_E2M1: case DT_E8M0: case DT_I32: case DT_I8: case DT_U8:
	case DT_I4: case DT_BOOL: case DT_COUNT:
		break;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = dtype_load(t, array, from + i);
}

void dtype_store(enum dtype t, void *array, size_t i, double x)
{
	size_t bits = (size_t)dtype_bits(t);
	double r = dtype_round(t, x);
	union element to = { .f64 = r };
	uint8_t *byte = (uint8_t *)array + i * bits / 8;
	uint32_t nibble;

	switch (t) {
	case DT_F64:
		break;
	case DT_F32: case DT_TF32:
		to.f32 = (float)r;
		break;
	case DT_F16: case DT_BF16:
		to.half = (uint16_t)encode(t, r);
		break;
	case DT_E4M3: case DT_E5M2: case DT_E8M0:
		to.byte = (uint8_t)encode(t, r);
		break;
	case DT_I32:
		to.i32 = (int32_t)r;
		break;
	case DT_I8: case DT_U8: case DT_BOOL:
		to.byte = (uint8_t)(int32_t)r;
		break;
	case DT_E2M1: case DT_I4: case DT_COUNT:
		nibble = t == DT_E2M1 ? encode(t, r) : (uint32_t)(int32_t)r & 15;
		*byte = (uint8_t)(i % 2 ? (*byte & 15) | nibble << 4 : (*byte & 240u) | nibble);
		return;
	}
	memcpy(byte, &to, bits / 8);
}
