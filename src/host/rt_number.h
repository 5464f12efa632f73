/* rt_number.h - elements of 16 bits; for kernels as well as for the runtime. */
#ifndef HOST_RT_NUMBER_H
#define HOST_RT_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum host_half { HOST_bf16, HOST_f16 };

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

static inline float host_from_half(enum host_half type, uint16_t x)
{
	return type == HOST_bf16 ? host_float((uint32_t)x << 16) : host_from_f16(x);
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
	if (y < 0x1p-14f)		/* a step of 2^-24: what nearbyint rounds to */
		return sign | (uint32_t)nearbyintf(y * 0x1p24f);
	e = host_bits(y);
	return sign | (((e + 0xfff + (e >> 13 & 1)) >> 13) - (112 << 10));
}

#endif
