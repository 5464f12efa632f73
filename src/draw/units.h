/* units.h - numbers with units, for people.
 *
 * Three significant digits and a prefix: "16 KiB", "4.19 Mflop", "0.686 ms". The text is returned by value, so
 * unit_bytes(n).s is valid until the end of the full expression.
 */
#ifndef DRAW_UNITS_H
#define DRAW_UNITS_H

#include "base/arena.h"

struct unit_text {
	char s[32];
};

struct unit_text unit_bytes(double bytes);		/* powers of 1024: "1.5 MiB" */
struct unit_text unit_si(double v, const char *unit);	/* powers of 1000: "4.2 Mflop" */
struct unit_text unit_seconds(double s);		/* "12.3 µs" */
struct unit_text unit_count(int64_t n);			/* "1,234,567" */
struct unit_text unit_percent(double share);		/* "87 %" of 0.87, "4.2 %" */
struct unit_text unit_change(double share);		/* "+4.2 %" of 0.042, "0 %" of less than half of 0.1 % */
struct unit_text unit_rounded(double n);		/* unit_count of the nearest integer */

/* The least of 1, 2, 5 times a power of ten that is at least v: the distance of numbers at an axis. */
double unit_step(double v);

/* A text that lives as long as `a`. */
static inline const char *unit_keep(struct arena *a, struct unit_text t)
{
	return arena_strdup(a, t.s);
}

#endif
