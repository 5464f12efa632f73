/* The functions of references on AMD's GPUs against those of <math.h>. */
#include <math.h>

#include "base/prng.h"
#include "run/hip_names.h"
#include "tap.h"

/* The greatest error among many x of magnitudes from 2^least to 2^most, relative to the result, or where that is
 * near zero, to `floor_at`. */
static double worst(double (*ours)(double), double (*theirs)(double), int least, int most, bool negative,
	double floor_at)
{
	struct prng r = { 7 };
	double found = 0;

	for (int i = 0; i < 200000; i++) {
		double x = ldexp(1 + prng_unit(&r), least + (int)(prng_unit(&r) * (most - least)));
		double want, got;

		x = negative && i % 2 ? -x : x;
		want = theirs(x);
		got = ours(x);
		if (got != want)
			found = fmax(found, fabs(got - want) / fmax(fabs(want), floor_at));
	}
	return found;
}

static void agrees(const char *name, double error, double allowed)
{
	ok(error <= allowed, name);
	if (!(error <= allowed))
		diag("off by %g", error);
}

static bool same(double x, double y) { return x == y || (x != x && y != y); }

int main(void)
{
	static const double edges[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1e308, -1e308 };
	bool good = true;

	agrees("exp2", worst(exp2_of, exp2, -60, 10, true, 1e-300), 1e-15);
	agrees("log2", worst(log2_of, log2, -1070, 1023, false, 1e-300), 1e-15);
	agrees("log2 near 1", worst(log2_of, log2, -1, 1, false, 1e-3), 1e-15);
	agrees("tanh", worst(tanh_of, tanh, -60, 10, true, 1e-300), 2e-15);
	agrees("erf", worst(erf_of, erf, -60, 10, true, 1e-300), 4e-15);
	agrees("sine", worst(sin_of, sin, -60, 20, true, 1e-6), 1e-15);
	agrees("cosine", worst(cos_of, cos, -60, 20, true, 1e-6), 1e-15);
	agrees("sine of large numbers", worst(sin_of, sin, 20, 45, true, 1e-3), 1e-12);
	for (int i = 0; i < LEN(edges); i++) {
		double x = edges[i];

		good = good && same(exp2_of(x), exp2(x)) && same(tanh_of(x), tanh(x)) && same(erf_of(x), erf(x));
		if (x == 0 || x - x != 0)
			good = good && same(log2_of(x), log2(x)) && same(sin_of(x), sin(x)) && same(cos_of(x), cos(x));
		if (!good)
			diag("at %g: %g %g %g %g", x, exp2_of(x), tanh_of(x), erf_of(x), log2_of(x));
	}
	ok(good, "zeros, infinities and NaN");
	return tap_done();
}
