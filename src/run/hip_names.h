/* hip_names.h - what texts in CUDA C++ use, for HIP without its headers and without a device library: clang is enough.
 *
 * This text is put in front of them as it stands, so it includes nothing. Grids have one dimension, blocks 256 threads.
 * The functions are for references in f64: their errors are a few units of the last digit (sine and cosine: as long as
 * the quotient by pi is exact, up to about 1e15), tests/unit/hip_names.c compares them with those of <math.h>.
 */
#ifndef RUN_HIP_NAMES_H
#define RUN_HIP_NAMES_H

#ifdef __HIP__
#pragma clang fp contract(off)
#define __CUDACC__
#define __CUDACC_RTC__
#define __forceinline__ inline __attribute__((always_inline))
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(n, n)))
struct in_x { unsigned x; };
#define threadIdx (in_x{ __builtin_amdgcn_workitem_id_x() })
#define blockIdx (in_x{ __builtin_amdgcn_workgroup_id_x() })
#define blockDim (in_x{ 256 })
#define gridDim (in_x{ __builtin_amdgcn_grid_size_x() / 256 })
#define __syncthreads() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
#define atomicAdd(to, x) __hip_atomic_fetch_add(to, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define NAMED static __device__ inline
#else
#define NAMED static inline
#endif

NAMED double of_parts(unsigned long long bits)
{
	union { unsigned long long u; double x; } v;

	v.u = bits;
	return v.x;
}

NAMED unsigned long long parts_of(double x)
{
	union { unsigned long long u; double x; } v;

	v.x = x;
	return v.u;
}

NAMED double power_of_2(int e) { return of_parts((unsigned long long)(e + 1023) << 52); }

/* e to the power of x, less 1, by its series; |x| is at most ln(2) / 2. */
NAMED double exp_less_1(double x)
{
	double term = x, sum = 0;

	for (int i = 2; i <= 16; i++) {
		sum += term;
		term *= x / i;
	}
	return sum;
}

NAMED double exp2_of(double x)
{
	double n;
	int e;

	if (x != x)
		return x;
	x = x < -1100 ? -1100 : x > 1100 ? 1100 : x;
	n = __builtin_rint(x);
	e = (int)n;
	return (1 + exp_less_1((x - n) * 0.69314718055994531)) * power_of_2(e / 2) * power_of_2(e - e / 2);
}

/* Of a number with its exponent between those of sqrt(1/2) and sqrt(2): log m = 2 artanh((m - 1) / (m + 1)). */
NAMED double log2_of(double x)
{
	double m, s, sum = 0;
	int e = 0;

	if (!(x > 0) || x - x != 0)	/* NaN, not above 0, infinite */
		return x != x || x < 0 ? of_parts(0x7ff8000000000000ull) : x > 0 ? x : of_parts(0xfff0000000000000ull);
	if (x < power_of_2(-1000)) {
		x *= power_of_2(200);
		e = -200;
	}
	e += (int)(parts_of(x) >> 52) - 1023;
	m = of_parts((parts_of(x) & 0xfffffffffffffull) | 0x3ff0000000000000ull);
	if (m > 1.4142135623730951) {
		m /= 2;
		e++;
	}
	s = (m - 1) / (m + 1);
	for (int i = 25; i > 0; i -= 2)
		sum = sum * s * s + 1.0 / i;
	return e + 2 * s * sum * 1.4426950408889634;
}

NAMED double tanh_of(double x)
{
	double y = 2 * __builtin_fabs(x), p;

	if (x != x)
		return x;
	p = y < 0.34 ? exp_less_1(y) : y < 60 ? exp2_of(y * 1.4426950408889634) - 1 : 1e30;
	return __builtin_copysign(p / (p + 2), x);
}

/* By a series whose terms are all positive, and for large x by a continued fraction. */
NAMED double erf_of(double x)
{
	double y = __builtin_fabs(x), square = y * y, sum, term = y;

	if (x != x)
		return x;
	if (y > 6)
		return __builtin_copysign(1, x);
	if (y < 2.5) {
		sum = term;
		for (int i = 1; i < 60; i++)
			sum += term *= 2 * square / (2 * i + 1);
		sum *= exp2_of(-square * 1.4426950408889634) * 1.1283791670955126;
	} else {
		sum = y;
		for (int i = 60; i > 0; i--)
			sum = y + i * 0.5 / sum;
		sum = 1 - exp2_of(-square * 1.4426950408889634) * 0.56418958354775629 / sum;
	}
	return __builtin_copysign(sum, x);
}

/* Of x + quarters * pi / 2, |x| at most pi / 4. */
NAMED double sine_of_residual(double x, int quarters)
{
	double term = quarters & 1 ? 1 : x, sum = 0;

	for (int i = quarters & 1 ? 1 : 2; i < 22; i += 2) {
		sum += term;
		term *= -x * x / (i * (i + 1));
	}
	return quarters & 2 ? -sum : sum;
}

NAMED double sine_from(double x, int quarters)
{
	double n = __builtin_rint(x * 0.63661977236758134);
	double residual = __builtin_fma(-n, 1.5707963267948966, x);

	if (x - x != 0)
		return of_parts(0x7ff8000000000000ull);
	residual = __builtin_fma(-n, 6.123233995736766e-17, residual);
	residual = __builtin_fma(-n, -1.4973849048591833e-33, residual);
	return sine_of_residual(residual, (int)(n - 4 * __builtin_floor(n / 4)) + quarters);
}

NAMED double sin_of(double x) { return sine_from(x, 0); }
NAMED double cos_of(double x) { return sine_from(x, 1); }

#ifdef __HIP__
#define exp2 exp2_of
#define log2 log2_of
#define tanh tanh_of
#define erf erf_of
#define sin sin_of
#define cos cos_of
#define fabs __builtin_fabs
#define floor __builtin_floor
#define sqrt __builtin_sqrt
#define rint __builtin_rint
#define trunc __builtin_trunc
#define fma __builtin_fma
#define copysign __builtin_copysign
#endif

#endif
