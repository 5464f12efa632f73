/* rt_number.h - conversions of 16-bit and 8-bit numbers; for kernels and for the runtime. */
#ifndef HOST_RT_NUMBER_H
#define HOST_RT_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The operand types of matrix instructions. */
enum host_type { HOST_bf16, HOST_f16, HOST_e4m3, HOST_e5m2, HOST_tf32, HOST_i8, HOST_u8 };

static inline float host_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint32_t host_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline float host_from_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;

	if (e == 31)
		return host_float(sign | 0x7f800000 | m << 13);
	if (e == 0)
		return (sign ? -1.f : 1.f) * (float)m * 0x1p-24f;
	return host_float(sign | (e + 112) << 23 | m << 13);
}

static inline float host_from_bf16(uint16_t x)
{
	return host_float((uint32_t)x << 16);
}

/* To nearest, ties to even. */
static inline uint32_t host_to_bf16(float x)
{
	uint32_t bits = host_bits(x);

	if (x != x)
		return 0x7fff;
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static inline uint32_t host_to_f16(float x)
{
	uint32_t sign = host_bits(x) >> 16 & 0x8000, e;
	float y = fabsf(x);

	if (x != x)
		return 0x7fff;
	if (y >= 65520.f)
		return sign | 0x7c00;
	if (y < 0x1p-14f)		/* subnormal: a multiple of 2^-24 */
		return sign | (uint32_t)nearbyintf(y * 0x1p24f);
	e = host_bits(y);
	return sign | (((e + 0xfff + (e >> 13 & 1)) >> 13) - (112 << 10));
}

/* Magnitude of a float of `man` stored bits and that exponent bias, and back. */
static inline uint32_t host_to_small(float y, int man, int bias)
{
	int e;

	frexpf(y, &e);			/* y = [0.5, 1) 2^e, or 0 */
	e = y == 0 || e - 1 < 1 - bias ? 1 - bias : e - 1;
	return (uint32_t)nearbyintf(ldexpf(y, man - e)) + ((uint32_t)(e + bias - 1) << man);
}

static inline float host_from_small(uint32_t x, int man, int bias)
{
	uint32_t e = x >> man, m = x & ((1u << man) - 1);

	return e ? ldexpf((float)(m | 1u << man), (int)e - bias - man) : ldexpf((float)m, 1 - bias - man);
}

/* The bits of a float of 8; values from `end` on become `top`. */
static inline uint32_t host_to_fp8(float x, float end, uint32_t top, int man, int bias)
{
	uint32_t sign = host_bits(x) >> 24 & 0x80;

	return x != x ? 0x7f : sign | (fabsf(x) >= end ? top : host_to_small(fabsf(x), man, bias));
}

#define host_to_e4m3(x) host_to_fp8(x, 448.f, 0x7e, 3, 7)	/* has no infinity: too large ones become the largest finite */
#define host_to_e5m2(x) host_to_fp8(x, 61440.f, 0x7c, 2, 15)

static inline float host_from_e4m3(uint32_t x)
{
	float y = (x & 0x7f) == 0x7f ? NAN : host_from_small(x & 0x7f, 3, 7);

	return x & 0x80 ? -y : y;
}

/* To nearest, ties to even; a float has 13 more bits. */
static inline float host_to_tf32(float x)
{
	uint32_t bits = host_bits(x);

	return x != x || fabsf(x) == HUGE_VALF ? x : host_float((bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t)0x1fff);
}

static inline int host_type_bytes(enum host_type t)
{
	return t == HOST_tf32 ? 4 : t == HOST_bf16 || t == HOST_f16 ? 2 : 1;
}

static inline int host_is_integer(enum host_type t)
{
	return t == HOST_i8 || t == HOST_u8;
}

/* The bits of an element, in the low ones. */
static inline float host_from_bits(enum host_type t, uint32_t bits)
{
	switch (t) {
	case HOST_bf16:
		return host_from_bf16((uint16_t)bits);
	case HOST_f16:
		return host_from_f16((uint16_t)bits);
	case HOST_e4m3:
		return host_from_e4m3(bits);
	case HOST_e5m2:
		return host_from_f16((uint16_t)(bits << 8));
	case HOST_i8:
		return (float)(int8_t)bits;
	case HOST_u8:
		return (float)(uint8_t)bits;
	case HOST_tf32:			/* the instruction ignores the low bits */
		break;
	}
	return host_float(bits & ~(uint32_t)0x1fff);
}

#endif
