#include "tile/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "tests/tap.h"

/* Every type of 16 bits or fewer with a mantissa, and what its format fixes. */
static const struct small {
	enum dtype type;
	int exp, mant;
	bool inf;
	double max, least;		/* largest finite, smallest subnormal */
} small[] = {
	{ DT_F16, 5, 10, true, 65504, 0x1p-24 },
	{ DT_BF16, 8, 7, true, 0x1.fep127, 0x1p-133 },
	{ DT_E4M3, 4, 3, false, 448, 0x1p-9 },
	{ DT_E5M2, 5, 2, true, 57344, 0x1p-16 },
	{ DT_E2M1, 2, 1, false, 6, 0.5 },
};

struct label {
	char text[128];
};

static const char *say(struct label *l, enum dtype t, const char *what)
{
	snprintf(l->text, sizeof(l->text), "%s: %s", dtype_name(t), what);
	return l->text;
}

/* From the definition, with ldexp and nothing of dtype.c. NAN for encodings that
 * are NaN. */
static double value_of(const struct small *s, uint32_t bits)
{
	int e = (int)(bits >> s->mant & ((1u << s->exp) - 1));
	int m = (int)(bits & ((1u << s->mant) - 1));
	int bias = (1 << (s->exp - 1)) - 1, top = (1 << s->exp) - 1;
	double x;

	if (e == top && s->inf)
		x = m ? (double)NAN : (double)INFINITY;
	else if (s->type == DT_E4M3 && e == top && m == 7)
		x = (double)NAN;
	else
		x = e ? ldexp(m + (1 << s->mant), e - bias - s->mant)
		      : ldexp(m, 1 - bias - s->mant);
	return bits >> (s->exp + s->mant) & 1 ? -x : x;
}

/* The encoding of the largest finite value: those below are in order. */
static uint32_t top_of(const struct small *s)
{
	uint32_t i = 0;

	while (isfinite(value_of(s, i + 1)) && i + 1 < 1u << (s->exp + s->mant))
		i++;
	return i;
}

/* Nearest value by search; ties to the even encoding. */
static double slow_round(const struct small *s, uint32_t top, double x)
{
	double a = fabs(x), below, above, mid;
	uint32_t lo = 0, hi = top + 1;

	if (isnan(x))
		return s->type == DT_E2M1 ? 6 : x;
	while (hi - lo > 1) {
		uint32_t m = lo + (hi - lo) / 2;

		if (value_of(s, m) <= a)
			lo = m;
		else
			hi = m;
	}
	below = value_of(s, lo);
	/* The value that would follow the largest, if the exponent had one more value. */
	above = lo == top ? below + (below - value_of(s, lo - 1)) : value_of(s, lo + 1);
	mid = below + (above - below) / 2;
	if (a > mid || (a == mid && lo % 2))
		below = above;
	if (below > s->max)
		below = s->inf ? (double)INFINITY : s->max;
	return copysign(below, x);
}

static bool same(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void test_encodings(const struct small *s)
{
	int bits = dtype_bits(s->type), bad_load = 0, bad_store = 0, bad_round = 0;
	struct label l;

	for (uint32_t i = 0; i < 1u << bits; i++) {
		uint8_t in[2] = { (uint8_t)i, (uint8_t)(i >> 8) }, out[2] = { 0, 0 };
		double x = dtype_load(s->type, in, 0), want = value_of(s, i);

		bad_load += !same(x, want);
		bad_round += !same(dtype_round(s->type, want),
				   isnan(want) && s->type == DT_E2M1 ? 6 : want);
		dtype_store(s->type, out, 0, x);
		if (isnan(want))
			bad_store += !isnan(dtype_load(s->type, out, 0));
		else
			bad_store += memcmp(in, out, sizeof(in)) != 0;
	}
	is_int(bad_load, 0, say(&l, s->type, "every encoding has its value"));
	is_int(bad_store, 0, say(&l, s->type, "every encoding survives load and store"));
	is_int(bad_round, 0, say(&l, s->type, "every value rounds to itself"));
}

/* Many at a time, from one that is not the first: the same as one by one. */
static void test_many(enum dtype t)
{
	enum { N = 1 << 16 };
	static uint64_t in[N];
	static double many[N];
	int bad = 0;
	struct label l;

	for (int i = 0; i < N; i++)
		if (dtype_bits(t) == 16)
			((uint16_t *)in)[i] = (uint16_t)i;
		else
			in[i] = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
	dtype_load_many(t, in, 3, N - 3, many);
	for (int i = 0; i < N - 3; i++)
		bad += !same(many[i], dtype_load(t, in, (size_t)(3 + i)));
	is_int(bad, 0, say(&l, t, "many at a time are the same"));
}

/* All midpoints between neighbours, and a hair to either side: the hair is one
 * unit of the double, so rounding through float first would lose it. */
static void test_midpoints(const struct small *s)
{
	uint32_t top = top_of(s);
	int bad = 0;
	struct label l;

	for (uint32_t i = 0; i <= top; i++) {
		double a = value_of(s, i);
		double b = i < top ? value_of(s, i + 1) : a + (a - value_of(s, i - 1));
		double mid = a + (b - a) / 2;
		double x[] = { mid, nextafter(mid, 0), nextafter(mid, b), a, nextafter(a, b) };

		for (int j = 0; j < LEN(x); j++) {
			bad += !same(dtype_round(s->type, x[j]), slow_round(s, top, x[j]));
			bad += !same(dtype_round(s->type, -x[j]), slow_round(s, top, -x[j]));
		}
	}
	is_int(bad, 0, say(&l, s->type, "midpoints and their neighbours round to nearest even"));
}

static void test_random(const struct small *s, struct prng *r)
{
	uint32_t top = top_of(s);
	int bad = 0;
	struct label l;

	for (int i = 0; i < 50000; i++) {
		int e = (int)prng_below(r, 400) - 200;
		double x = ldexp(1 + prng_unit(r), e) * (prng_below(r, 2) ? 1 : -1);

		bad += !same(dtype_round(s->type, x), slow_round(s, top, x));
	}
	is_int(bad, 0, say(&l, s->type, "random doubles agree with the search"));
}

static void test_limits(const struct small *s)
{
	double inf = (double)INFINITY, over = s->inf ? inf : s->max;
	double nan_is = s->type == DT_E2M1 ? 6 : (double)NAN;
	enum dtype t = s->type;
	struct label l;

	ok(same(dtype_round(t, s->max), s->max), say(&l, t, "the largest value stands"));
	ok(same(dtype_round(t, s->max * 2), over), say(&l, t, "overflow"));
	ok(same(dtype_round(t, -1e300), -over), say(&l, t, "far overflow, negative"));
	ok(same(dtype_round(t, inf), over), say(&l, t, "infinity"));
	ok(same(dtype_round(t, (double)NAN), nan_is), say(&l, t, "NaN"));
	ok(same(dtype_round(t, s->least), s->least), say(&l, t, "the least subnormal stands"));
	ok(same(dtype_round(t, s->least / 2), 0), say(&l, t, "half of it ties to zero"));
	ok(same(dtype_round(t, s->least * 0.50001), s->least), say(&l, t, "more does not"));
	ok(same(dtype_round(t, -s->least / 4), -0.0), say(&l, t, "underflow keeps the sign"));
	ok(same(dtype_round(t, 5e-324), 0), say(&l, t, "a subnormal double"));
}

static void test_double_rounding(void)
{
	/* 1 + 2^-11 is the f16 midpoint; the 2^-40 vanishes in a float. */
	is_near(dtype_round(DT_F16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10, 0,
		"f16: no double rounding through f32");
	is_near(dtype_round(DT_BF16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7, 0,
		"bf16: no double rounding through f32");
	is_near(dtype_round(DT_TF32, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10, 0,
		"tf32: no double rounding through f32");
	is_near(dtype_round(DT_E4M3, 1 + 0x1p-4 + 0x1p-30), 1 + 0x1p-3, 0,
		"e4m3: no double rounding through f16");
	is_near(dtype_round(DT_F32, 1 + 0x1p-24 + 0x1p-50), 1 + 0x1p-23, 0,
		"f32: above a midpoint");
	is_near(dtype_round(DT_F32, 1 + 0x1p-24), 1, 0, "f32: a tie to even");
	is_near(dtype_round(DT_TF32, 0x1p-137), 0, 0, "tf32: half the least subnormal is a tie");
	is_near(dtype_round(DT_TF32, 0x1.8p-137), 0x1p-136, 0, "tf32: subnormals have 10 bits");
	is_near(dtype_round(DT_TF32, 3.5e38), (double)INFINITY, 0, "tf32: overflow");
}

/* A product of two values of 16 bits is the same rounded to f32 first, as when two are multiplied in their type at once
 * (src/lower/select/pairs.c). */
static void test_products(enum dtype t)
{
	int bad = 0;

	for (uint32_t i = 0; i < 0x10000; i++)
		for (uint32_t k = i * 7 % 61; k < 0x10000; k += 509) {
			uint16_t bits[2] = { (uint16_t)i, (uint16_t)k };
			double exact = dtype_load(t, bits, 0) * dtype_load(t, bits, 1);

			bad += !same(dtype_round(t, (double)(float)exact), dtype_round(t, exact));
		}
	is_int(bad, 0, t == DT_BF16 ? "bf16: a product is rounded once" : "f16: a product is rounded once");
}

static void test_integers(void)
{
	static const struct {
		enum dtype type;
		double x, want;
	} cases[] = {
		{ DT_I32, 2147483647.4, 2147483647 }, { DT_I32, 1e20, 2147483647 },
		{ DT_I32, -1e20, -2147483648.0 }, { DT_I32, 2.5, 2 }, { DT_I32, 3.5, 4 },
		{ DT_I32, -2.5, -2 }, { DT_I8, 127.5, 127 }, { DT_I8, -128.6, -128 },
		{ DT_I8, 300, 127 }, { DT_I4, 7.4, 7 }, { DT_I4, 8, 7 }, { DT_I4, -9, -8 },
		{ DT_U8, 255.6, 255 }, { DT_U8, -1, 0 }, { DT_U8, 129, 129 },
		{ DT_BOOL, 5, 1 }, { DT_BOOL, -1, 0 }, { DT_BOOL, 0.5, 0 }, { DT_BOOL, 0.6, 1 },
	};
	int bad = 0, bad_trip = 0;

	for (int i = 0; i < LEN(cases); i++)
		bad += dtype_round(cases[i].type, cases[i].x) != cases[i].want;
	is_int(bad, 0, "integers round to even and saturate");
	ok(dtype_round(DT_I8, (double)NAN) == 0, "NaN is 0 in integers");
	ok(!signbit(dtype_round(DT_I32, -0.2)), "integers have no negative zero");
	ok(dtype_round(DT_I8, -(double)INFINITY) == -128, "integers saturate infinity");
	for (int i = -128; i < 128; i++) {
		int8_t byte = (int8_t)i, back;

		bad_trip += dtype_load(DT_I8, &byte, 0) != i;
		dtype_store(DT_I8, &back, 0, i);
		bad_trip += back != byte;
	}
	is_int(bad_trip, 0, "i8: every encoding round-trips");
	bad_trip = 0;
	for (int i = 0; i < 256; i++) {
		uint8_t byte = (uint8_t)i, back;

		bad_trip += dtype_load(DT_U8, &byte, 0) != i;
		dtype_store(DT_U8, &back, 0, i);
		bad_trip += back != byte;
	}
	is_int(bad_trip, 0, "u8: every encoding round-trips");
}

/* Powers of two, as OCP's type of scales has them. */
static void test_scales(void)
{
	static const struct {
		double x, want;
	} cases[] = {
		{ 1, 1 }, { 1.999, 1 }, { 2, 2 }, { -6, 4 }, { 0.3, 0.25 }, { 0, 0x1p-127 }, { 0x1p-140, 0x1p-127 },
		{ 0x1.8p-127, 0x1p-127 }, { 0x1.8p-126, 0x1p-126 }, { 1e300, 0x1p127 }, { (double)INFINITY, 0x1p127 },
		{ 0x1.fffffffffffffp3, 8 },
	};
	int bad = 0, bad_trip = 0;
	uint8_t nan = 255;

	for (int i = 0; i < LEN(cases); i++)
		bad += !same(dtype_round(DT_E8M0, cases[i].x), cases[i].want);
	is_int(bad, 0, "e8m0: the power of two that is not greater");
	for (int i = 0; i < 255; i++) {
		uint8_t byte = (uint8_t)i, back;

		bad_trip += dtype_load(DT_E8M0, &byte, 0) != ldexp(1, i - 127);
		dtype_store(DT_E8M0, &back, 0, ldexp(1, i - 127));
		bad_trip += back != byte;
	}
	is_int(bad_trip, 0, "e8m0: every encoding round-trips");
	ok(isnan(dtype_load(DT_E8M0, &nan, 0)), "e8m0: 255 is NaN");
	nan = 0;
	dtype_store(DT_E8M0, &nan, 0, (double)NAN);
	is_int(nan, 255, "e8m0: NaN is 255");
	is_near(dtype_greatest(DT_E8M0), 0x1p127, 0, "e8m0: the greatest");
	ok(dtype_is_float(DT_E8M0) && !dtype_has_mantissa(DT_E8M0) && !dtype_has_mantissa(DT_U8) &&
		dtype_has_mantissa(DT_E2M1), "types with a mantissa");
}

static void test_packing(void)
{
	uint8_t a[4] = { 0 };
	int32_t words[3];
	float f[2];
	double d[2];

	for (int i = 0; i < 8; i++)
		dtype_store(DT_I4, a, (size_t)i, i - 8);
	ok(a[0] == 0x98 && a[1] == 0xba && a[3] == 0xfe, "i4: the even index lies low");
	is_near(dtype_load(DT_I4, a, 0), -8, 0, "i4: sign extended");
	is_near(dtype_load(DT_I4, a, 7), -1, 0, "i4: odd index");
	dtype_store(DT_I4, a, 3, 5);
	ok(a[1] == 0x5a, "i4: a store leaves its neighbour");
	dtype_store(DT_E2M1, a, 0, 3);
	dtype_store(DT_E2M1, a, 1, -6);
	ok(a[0] == 0xf5, "e2m1: packed");
	is_near(dtype_load(DT_E2M1, a, 1), -6, 0, "e2m1: odd index");
	dtype_store(DT_I32, words, 1, -123456789);
	is_near(dtype_load(DT_I32, words, 1), -123456789, 0, "i32");
	dtype_store(DT_F32, f, 1, 0.1);
	is_near(dtype_load(DT_F32, f, 1), (double)0.1f, 0, "f32");
	dtype_store(DT_TF32, f, 0, 1.0 / 3);
	is_near(dtype_load(DT_TF32, f, 0), dtype_round(DT_TF32, 1.0 / 3), 0, "tf32");
	dtype_store(DT_F64, d, 1, 0.1);
	is_near(dtype_load(DT_F64, d, 1), 0.1, 0, "f64");
	dtype_store(DT_BOOL, a, 2, 1);
	is_near(dtype_load(DT_BOOL, a, 2), 1, 0, "bool");
	is_int((long long)dtype_bytes(DT_I4, 5), 3, "five i4 take three bytes");
	is_int((long long)dtype_bytes(DT_BF16, 5), 10, "five bf16 take ten");
}

static void test_names(void)
{
	enum dtype t;
	int bad = 0;

	for (int i = 0; i < DT_COUNT; i++)
		bad += !dtype_parse(dtype_name((enum dtype)i), &t) || (int)t != i;
	is_int(bad, 0, "every type is found by its name");
	ok(dtype_parse("bfloat16", &t) && t == DT_BF16, "bfloat16");
	ok(dtype_parse("fp8", &t) && t == DT_E4M3, "fp8");
	ok(dtype_parse("fp4", &t) && t == DT_E2M1, "fp4");
	ok(dtype_parse("int8", &t) && t == DT_I8, "int8");
	ok(!dtype_parse("f31", &t) && !dtype_parse("", &t), "no such type");
	ok(dtype_is_float(DT_E2M1) && !dtype_is_float(DT_BOOL), "floats and others");
}

int main(void)
{
	struct prng r = { 1 };

	for (int i = 0; i < LEN(small); i++) {
		test_encodings(&small[i]);
		test_midpoints(&small[i]);
		test_random(&small[i], &r);
		test_limits(&small[i]);
	}
	for (enum dtype t = 0; t < DT_COUNT; t++)
		test_many(t);
	test_double_rounding();
	test_products(DT_BF16);
	test_products(DT_F16);
	test_integers();
	test_scales();
	test_packing();
	test_names();
	return tap_done();
}
