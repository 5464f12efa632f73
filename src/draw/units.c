#include "draw/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Three significant digits without trailing zeros; v is below 1e15. */
static void put_digits(char *out, size_t size, double v)
{
	double a = fabs(v);
	int decimals = a < 9.995 ? 2 : a < 99.95 ? 1 : 0;
	char *end;

	snprintf(out, size, "%.*f", decimals, v);
	if (!decimals)
		return;
	for (end = out + strlen(out); end[-1] == '0'; end--)
		;
	*(end[-1] == '.' ? end - 1 : end) = '\0';
}

/* v with the largest prefix for which it is at least 1 after rounding; each prefix is `base` times the one before. */
static struct unit_text scaled(double v, double base, const char *const *prefix, int n, const char *unit)
{
	struct unit_text t;
	char digits[20];
	int i = 0;

	if (!isfinite(v)) {
		snprintf(t.s, sizeof(t.s), "%s", isnan(v) ? "?" : v < 0 ? "-inf" : "inf");
		return t;
	}
	for (; i < n - 1 && fabs(v) >= (base == 1000 ? 999.5 : 1023.5); i++)
		v /= base;
	if (fabs(v) >= 1e15)
		snprintf(digits, sizeof(digits), "%.2e", v);
	else
		put_digits(digits, sizeof(digits), v);
	snprintf(t.s, sizeof(t.s), "%s%s%s%.6s", digits, prefix[i][0] || unit[0] ? " " : "", prefix[i], unit);
	return t;
}

struct unit_text unit_bytes(double bytes)
{
	static const char *const prefix[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };

	return scaled(bytes, 1024, prefix, LEN(prefix), "");
}

struct unit_text unit_si(double v, const char *unit)
{
	static const char *const prefix[] = { "", "k", "M", "G", "T", "P", "E" };

	return scaled(v, 1000, prefix, LEN(prefix), unit);
}

struct unit_text unit_seconds(double s)
{
	static const char *const prefix[] = { "ns", "µs", "ms", "s" };

	return scaled(s * 1e9, 1000, prefix, LEN(prefix), "");
}

struct unit_text unit_count(int64_t n)
{
	struct unit_text t;
	char digits[24];
	int len, at = 0;

	len = snprintf(digits, sizeof(digits), "%lld", (long long)n);
	for (int i = 0; i < len; i++) {
		if (i > (n < 0) && (len - i) % 3 == 0)
			t.s[at++] = ',';
		t.s[at++] = digits[i];
	}
	t.s[at] = '\0';
	return t;
}

struct unit_text unit_percent(double share)
{
	struct unit_text t;
	double p = fabs(share) < 0.0005 ? 0 : 100 * share;	/* no "-0 %" */

	if (!isfinite(p))
		snprintf(t.s, sizeof(t.s), "?");
	else
		snprintf(t.s, sizeof(t.s), fabs(p) < 9.95 && p != 0 ? "%.1f %%" : "%.0f %%", p);
	return t;
}

struct unit_text unit_change(double share)
{
	struct unit_text t;

	if (fabs(share) < 0.0005)
		return unit_percent(0);
	snprintf(t.s, sizeof(t.s), "%+.1f %%", 100 * share);
	return t;
}

struct unit_text unit_rounded(double n)
{
	return unit_count((int64_t)(n + 0.5));
}

double unit_step(double v)
{
	double decade = pow(10, floor(log10(v) + 1e-9)), x = v / decade;

	return decade * (x <= 1 + 1e-9 ? 1 : x <= 2 + 1e-9 ? 2 : x <= 5 + 1e-9 ? 5 : 10);
}
