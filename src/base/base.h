/* base.h - attributes and small helpers that every file may use.
 *
 * No dependency, no state. Everything else in src/base builds on this.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__GNUC__)
#define NODISCARD __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define NODISCARD
#define NORETURN
#define PRINTF(f, a)
#endif

#define LEN(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* Binary search: set the int i to the first index in [0, n) for which `before`, an expression in i, is false; to n
 * if there is none. Where `before` is true must come first. */
#define BISECT(i, n, before) do { \
	int low_ = 0, high_ = (n); \
	while (low_ < high_) { \
		(i) = low_ + (high_ - low_) / 2; \
		if (before) \
			low_ = (i) + 1; \
		else \
			high_ = (i); \
	} \
	(i) = low_; \
} while (0)

/* Set the int i to the first index in [0, n) for which `test`, an expression in i, is true; to -1 if there is none. */
#define FIND_FIRST(i, n, test) do { \
	for ((i) = 0; (i) < (n) && !(test); ) \
		(i)++; \
	if ((i) >= (n)) \
		(i) = -1; \
} while (0)

static inline int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t gcd_i64(int64_t a, int64_t b)
{
	return b ? gcd_i64(b, a % b) : a;
}

/* Quotient rounded towards minus infinity; b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Quotient rounded towards plus infinity; b > 0. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b > 0);
}
static inline int64_t round_up(int64_t x, int64_t unit)
{
	return ceil_div(x, unit) * unit;
}

/* Remainder in [0, b); b > 0. */
static inline int64_t floor_mod(int64_t a, int64_t b)
{
	return a - floor_div(a, b) * b;
}

/* For an invariant that does not hold: prints file, line and message, and aborts. */
NORETURN void bug_at(const char *file, int line, const char *fmt, ...) PRINTF(3, 4);
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

/* Seconds of a clock that only goes forward. */
static inline double clock_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The position of x among the n numbers; -1. */
static inline int ints_find(const int *v, int n, int x)
{
	int i;

	FIND_FIRST(i, n, v[i] == x);
	return i;
}

static inline bool ints_hold(const int *v, int n, int x)
{
	return ints_find(v, n, x) >= 0;
}

#endif
