/* fill.h - random elements of tensors, the same numbers here and on a device.
 *
 * This text is compiled into the program, and as it stands into the kernel that fills tensors on a
 * device (run/fill.h): so it includes nothing, and is C and C++. Every operation on doubles is one
 * that IEEE 754 defines, and none can be contracted with another to a different result.
 *
 * Element i is made of the (i + 1)th number that splitmix64 (base/prng.h) gives from `state` on:
 * floats are uniform in [-1, 1], those of e8m0 as if such numbers were converted, integers over all that the type holds or, if `below` is given, over
 * [0, below), as different from each other as they can be if `step` is given, or ascending in rows of `row`; bytes with a
 * `step` are indices of two pairs out of four. dtype_store rounds so, too.
 */
#ifndef TILE_FILL_H
#define TILE_FILL_H

#ifdef __CUDACC_RTC__
#define FILL static __device__ __forceinline__
#else
#define FILL static inline
#endif

typedef unsigned long long fill_word;

/* As dtype_format says; exponent 0: an integer, of 1 bit in a byte: a truth value. below: of integers of 32 bits;
 * 0: any. */
struct fill_type {
	int bits, exponent, mantissa;
	unsigned below, step, row;
};

union fill_double {
	double x;
	fill_word bits;
};

union fill_float {
	float x;
	unsigned bits;
};

FILL double fill_power(int e)
{
	union fill_double u;

	u.bits = (fill_word)(e + 1023) << 52;
	return u.x;
}

FILL fill_word fill_draw(fill_word state, fill_word i)
{
	fill_word z = state + (i + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

FILL double fill_real(fill_word v)
{
	return ((double)(v >> 11) + 0.5) * fill_power(-52) - 1;
}

/* The encoding of x, at most 1 either way, rounded to the nearest even value. What rounds up to the
 * next power of 2 carries into the exponent. */
FILL unsigned fill_encode(struct fill_type t, double x)
{
	int bias = (1 << (t.exponent - 1)) - 1, e;
	double far = fill_power(52), size = x < 0 ? -x : x;
	union fill_double u;

	u.x = size;
	e = (int)(u.bits >> 52) - 1023;
	e = e < 1 - bias ? 1 - bias : e;
	if (!t.mantissa)
		return (unsigned)(e + bias);
	size = size * fill_power(t.mantissa - e) + far - far;
	return ((unsigned)(x < 0) << (t.exponent + t.mantissa)) +
		((unsigned)(e + bias - 1) << t.mantissa) + (unsigned)size;
}

/* The element's bits, of types of at most 32. */
FILL unsigned fill_bits(struct fill_type t, fill_word v)
{
	union fill_float single;

	if (t.below)
		return (unsigned)((v >> 32) * t.below >> 32);
	if (!t.exponent)
		return (unsigned)(v >> (64 - t.mantissa)) ^ (t.mantissa > 1 ? 1u << (t.mantissa - 1) : 0);
	if (t.bits < 32)
		return fill_encode(t, fill_real(v));
	single.x = (float)fill_real(v);
	return t.mantissa == 23 ? single.bits : fill_encode(t, fill_real(v)) << (23 - t.mantissa);
}

/* Goes through all numbers before it comes to one again, as `below` and `step` have no common divisor. */
FILL unsigned fill_distinct(struct fill_type t, fill_word state, fill_word i)
{
	return (unsigned)((i % t.below * t.step + state % t.below) % t.below);
}

/* Ascending in each row, with about equal steps; different, too, if there are enough numbers. */
FILL unsigned fill_ascending(struct fill_type t, fill_word state, fill_word i)
{
	fill_word within = t.step ? 0 : (fill_draw(state, i) >> 32) * t.below >> 32;

	return (unsigned)((i % t.row * t.below + within) / t.row);
}

FILL unsigned fill_word_of(struct fill_type t, fill_word state, fill_word i)
{
	if (t.row)
		return fill_ascending(t, state, i);
	return t.step ? fill_distinct(t, state, i) : fill_bits(t, fill_draw(state, i));
}

/* Four bits: two different indices below 4, the lower one first. */
FILL unsigned fill_pair(unsigned v)
{
	return 0xe9dc84u >> v % 6 * 4 & 15;
}

FILL unsigned fill_byte(struct fill_type t, fill_word v)
{
	return t.step ? fill_pair((unsigned)(v >> 32)) | fill_pair((unsigned)(v & 0xffffffffu)) << 4 : fill_bits(t, v);
}

/* Of n elements the i-th, or of those of 4 bits two, a byte. */
FILL void fill_unit(struct fill_type t, void *data, fill_word n, fill_word state, fill_word i)
{
	unsigned low;

	if (t.bits == 64) {
		((double *)data)[i] = fill_real(fill_draw(state, i));
	} else if (t.bits == 32) {
		((unsigned *)data)[i] = fill_word_of(t, state, i);
	} else if (t.bits == 16) {
		((unsigned short *)data)[i] = (unsigned short)fill_bits(t, fill_draw(state, i));
	} else if (t.bits == 8) {
		((unsigned char *)data)[i] = (unsigned char)fill_byte(t, fill_draw(state, i));
	} else {
		low = fill_bits(t, fill_draw(state, 2 * i)) & 15;
		if (2 * i + 1 < n)
			low |= (fill_bits(t, fill_draw(state, 2 * i + 1)) & 15) << 4;
		((unsigned char *)data)[i] = (unsigned char)low;
	}
}

FILL fill_word fill_units(struct fill_type t, fill_word n)
{
	return t.bits == 4 ? n / 2 + n % 2 : n;
}

#undef FILL

#endif
