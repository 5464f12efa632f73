/* tap.h - the checks of a unit test, printed as TAP.
 *
 * One test program is one main() that ends with `return tap_done();`. A failed
 * check says where it stands and what it saw; the plan comes last, and the exit
 * status is 1 if anything failed. Each check prints one line; a loop over many
 * cases should count its failures and make one check of the count.
 */
#ifndef TAP_H
#define TAP_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Not shared between translation units: a test program is one file. */
static struct {
	int run, failed;
} tap_count;

static inline bool tap_line(bool good, const char *file, int line, const char *what)
{
	tap_count.run++;
	tap_count.failed += !good;
	printf("%s %d - %s\n", good ? "ok" : "not ok", tap_count.run, what);
	if (!good)
		printf("# failed at %s:%d\n", file, line);
	return good;
}

static inline bool tap_int(long long got, long long want, const char *file, int line,
			   const char *what)
{
	if (tap_line(got == want, file, line, what))
		return true;
	printf("#   got: %lld\n#  want: %lld\n", got, want);
	return false;
}

static inline bool tap_str(const char *got, const char *want, const char *file, int line,
			   const char *what)
{
	bool good = got && want ? !strcmp(got, want) : got == want;

	if (tap_line(good, file, line, what))
		return true;
	printf("#   got: %s\n#  want: %s\n", got ? got : "(null)", want ? want : "(null)");
	return false;
}

static inline bool tap_near(double got, double want, double tolerance, const char *file, int line,
			    const char *what)
{
	/* In this form a NaN is never near, and equal infinities are. */
	if (tap_line(got == want || fabs(got - want) <= tolerance, file, line, what))
		return true;
	printf("#   got: %.17g\n#  want: %.17g within %g\n", got, want, tolerance);
	return false;
}

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count.run);
	if (tap_count.failed)
		printf("# %d of %d failed\n", tap_count.failed, tap_count.run);
	return tap_count.failed > 0;
}

#define ok(cond, what) tap_line((cond), __FILE__, __LINE__, (what))
#define is_int(got, want, what) tap_int((got), (want), __FILE__, __LINE__, (what))
#define is_str(got, want, what) tap_str((got), (want), __FILE__, __LINE__, (what))
#define is_near(got, want, tol, what) tap_near((got), (want), (tol), __FILE__, __LINE__, (what))
#define diag(...) (printf("# "), printf(__VA_ARGS__), printf("\n"))
#define skip(why) (printf("ok %d # SKIP %s\n", ++tap_count.run, (why)))

#endif
