/* Random elements by fill.h are what prng.h and dtype.h make of the same numbers. */
#include "tile/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/prng.h"
#include "run/fill.h"
#include "tests/tap.h"

enum { ELEMENTS = 40001, BYTES = 8 * ELEMENTS };

static double element(struct prng *r, enum dtype type)
{
	uint64_t v = prng_next(r);
	int bits = dtype_bits(type);

	if (dtype_is_float(type))
		return ((double)(v >> 11) + 0.5) * 0x1p-52 - 1;
	if (type == DT_BOOL)
		return (double)(v >> 63);
	if (type == DT_U8)		/* the bits of an i8 */
		return (double)(v >> 56 ^ 0x80);
	return (double)(v >> (64 - bits)) - ldexp(1, bits - 1);
}

static void check_type(enum dtype t, uint64_t seed)
{
	static double want[ELEMENTS], got[ELEMENTS];
	struct prng r = { random_state(seed, "A") };
	struct fill_type type = random_type(t, 0, false, 0);

	memset(want, 0, sizeof(want));
	memset(got, 0, sizeof(got));
	for (size_t i = 0; i < ELEMENTS; i++)
		dtype_store(t, want, i, element(&r, t));
	for (uint64_t i = 0; i < fill_units(type, ELEMENTS); i++)
		fill_unit(type, got, ELEMENTS, random_state(seed, "A"), i);
	ok(!memcmp(want, got, BYTES), dtype_name(t));
}

/* Where rounding is delicate: ties, the carry into the exponent, subnormals, zero. */
static void check_edges(enum dtype t)
{
	static const double x[] = { 0, 0x1p-53, -0x1p-53, 0x1p-24, 0x1.8p-25, -0x1.8p-25, 0x1p-25, 0x1p-10, 0x1p-9,
		-0x1.8p-10, 0x1p-14, 0x1.ffcp-15, 0x1.fffp-15, 0.5, 0.25, 0.75, -0.75, 0x1.01p-1, 0x1.03p-1, 0x1.02p-1,
		0x1.1p-1, 0x1.3p-1, 0x1.ffffp-1, -0x1.ffffp-1, 0x1.fffffffffffffp-1, -1, 0x1.fep-1, 0x1.fdp-1 };
	int wrong = 0;

	for (int i = 0; i < LEN(x); i++) {
		uint32_t want = 0;

		dtype_store(t, &want, 0, x[i]);
		wrong += fill_encode(random_type(t, 0, false, 0), x[i]) != want;
	}
	is_int(wrong, 0, dtype_name(t));
}

/* The kernels that fill an input on a GPU, and write addresses, are C but for how they are declared; here a C compiler reads
 * them. */
static void compile_kernel(void)
{
	static const char declaration[] = "extern \"C\" __global__ void __launch_bounds__(256)";
	struct mem mem = { 0 };
	const char *text, *at;
	struct arena a;
	FILE *f;

	arena_init(&a, &mem);
	text = feed_text(&a);
	at = strstr(text, declaration);
	ok(at != NULL, "the kernel that fills an input is declared as such");
	f = at ? popen("${CC:-cc} -std=c11 -Wall -Werror -Wno-unused-function -fsyntax-only -x c -", "w") : NULL;
	if (f) {
		fputs("static struct { unsigned x; } gridDim, blockDim, blockIdx, threadIdx;\n", f);
		for (; at; text = at + strlen(declaration), at = strstr(text, declaration))
			fprintf(f, "%.*svoid", (int)(at - text), text);
		fputs(text, f);
	}
	ok(f && !pclose(f), "... and a compiler takes it");
	arena_release(&a);
}

int main(void)
{
	static const enum dtype small[] = { DT_F16, DT_BF16, DT_E4M3, DT_E5M2, DT_E2M1 };

	for (int t = 0; t < DT_COUNT; t++)
		for (uint64_t seed = 1; seed < 4; seed++)
			check_type((enum dtype)t, seed);
	for (int i = 0; i < LEN(small); i++)
		check_edges(small[i]);
	compile_kernel();
	return tap_done();
}
