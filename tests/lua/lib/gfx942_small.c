/* Tests the functions for floats of 8 bits of a text for gfx942, the file DEFINITIONS, on this machine: they must have the
 * values of OCP's types, and what they make for the matrix unit in its own encoding (FNUZ) half these values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef _Float16 two_halves __attribute__((ext_vector_type(2)));
#define DEV static inline

static u32 __builtin_amdgcn_perm(u32 high, u32 low, u32 select)
{
	unsigned long long x = (unsigned long long)high << 32 | low;
	u32 y = 0;

	for (int i = 0; i < 4; i++) {
		u32 s = select >> 8 * i & 255;

		y |= s < 8 ? (u32)(x >> 8 * s & 255) << 8 * i : 0;
	}
	return y;
}

#include DEFINITIONS

static float decoded(int x, int mantissa, int bias)
{
	int e = (x & 127) >> mantissa, m = x & ((1 << mantissa) - 1);
	float y = e ? ldexpf((float)((1 << mantissa) + m), e - bias - mantissa) : ldexpf((float)m, 1 - bias - mantissa);

	return x & 128 ? -y : y;
}

static float ocp(int x, int mantissa)
{
	if (mantissa == 3)
		return (x & 127) == 127 ? NAN : decoded(x, 3, 7);
	return (x & 127) < 124 ? decoded(x, 2, 15) : (x & 127) > 124 ? NAN : x & 128 ? -INFINITY : INFINITY;
}

static float fnuz(int x)
{
	return x == 128 ? NAN : decoded(x, 3, 8);
}

static int differs(float x, float y)
{
	return isnan(x) ? !isnan(y) : x != y;
}

/* The bits of x rounded to nearest or even. Too great numbers become the greatest of e4m3; in e5m2 they become infinite if
 * they would be rounded to more than the greatest. */
static int rounded(float x, int mantissa)
{
	int sign = signbit(x) ? 128 : 0, best = 0;
	float y = fabsf(x);

	if (mantissa == 2 && y >= 61440.f)
		return sign | 124;
	for (int i = 0; i < (mantissa == 3 ? 127 : 124); i++) {
		double now = fabs((double)ocp(i, mantissa) - y), least = fabs((double)ocp(best, mantissa) - y);

		if (now < least || (now == least && i % 2 == 0))
			best = i;
	}
	return sign | best;
}

static float half_value(u16 x)
{
	_Float16 y;

	memcpy(&y, &x, 2);
	return (float)y;
}

int main(void)
{
	int wrong = 0;

	for (int x = 0; x < 65536; x++) {	/* words with each pair of neighbouring bytes, as these are converted together */
		u32 bytes = (u32)x << 16 | (u32)x, y = e4m3_fnuz(bytes);

		for (int i = 0; i < 4; i++)
			wrong += differs(ocp(bytes >> 8 * i & 255, 3), 2.f * fnuz(y >> 8 * i & 255));
		for (int i = 0; i < 4; i++) {
			int byte = bytes >> 8 * i & 255, at = 16 * (i % 2);

			wrong += differs(ocp(byte, 3), half_value((u16)(e4m3_halves(bytes, i / 2) >> at)));
			wrong += differs(ocp(byte, 2), half_value((u16)(e5m2_halves(bytes, i / 2) >> at)));
		}
	}
	for (int x = 0; x < 256; x++) {
		wrong += differs(ocp(x, 3), from_e4m3((u32)x)) + differs(ocp(x, 2), from_e5m2((u32)x));
		wrong += !isnan(ocp(x, 3)) && to_e4m3(ocp(x, 3)) != x;
		wrong += !isnan(ocp(x, 2)) && to_e5m2(ocp(x, 2)) != x;
	}
	for (u32 bits = 0; bits < 0xff800000; bits += 0x3fff0) {
		float x = bits_float(bits);

		if (!isnan(x))
			wrong += (to_e4m3(x) != rounded(x, 3)) + (to_e5m2(x) != rounded(x, 2));
	}
	wrong += !isnan(ocp(to_e4m3(NAN), 3)) + !isnan(ocp(to_e5m2(NAN), 2));
	printf("%d", wrong);
	return 0;
}
