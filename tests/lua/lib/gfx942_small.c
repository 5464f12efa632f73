/* The definitions for floats of 8 bits of a text for gfx942, which are included as DEFINITIONS, on this machine: all values are
 * those of OCP, and those that the machine's matrix unit gets in its own encoding (FNUZ) are half of them. */
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

/* To nearest or even; what is too great becomes the greatest of e4m3, and infinite in e5m2 where it would be rounded to what is
 * greater than the greatest. */
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

	for (int x = 0; x < 65536; x++) {	/* each byte next to each other one */
		u32 bytes = (u32)x << 16 | (u32)x, y = e4m3_fnuz(bytes), at[2] = { 0, 8 };

		for (int i = 0; i < 4; i++)
			wrong += differs(ocp(bytes >> 8 * i & 255, 3), 2.f * fnuz(y >> 8 * i & 255));
		for (int i = 0; i < 4; i++) {
			int byte = bytes >> 8 * i & 255;

			wrong += differs(ocp(byte, 3), half_value((u16)(e4m3_halves(bytes, i / 2) >> 2 * at[i % 2])));
			wrong += differs(ocp(byte, 2), half_value((u16)(e5m2_halves(bytes, i / 2) >> 2 * at[i % 2])));
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
