#include "draw/progress.h"

#include <math.h>

#include "draw/units.h"

enum { LOG_FROM = 3, LONGER = 20 };	/* ratios from which on a scale is logarithmic */

double progress_seconds(const struct progress_entry *x)
{
	return x->measured > 0 ? x->measured : x->predicted;
}

bool progress_is_bad(const struct progress_entry *x)
{
	return x->status == PROGRESS_WRONG || x->status == PROGRESS_FAILED;
}

void progress_fill(struct progress_entry *v, int n)
{
	double measured = 0, predicted = 0;

	for (int i = 0; i < n; i++) {
		struct progress_entry *x = &v[i];

		if (!progress_is_bad(x) && x->measured > 0)
			measured = measured > 0 ? fmin(measured, x->measured) : x->measured;
		if (!progress_is_bad(x) && x->predicted > 0)
			predicted = predicted > 0 ? fmin(predicted, x->predicted) : x->predicted;
		if (!(x->best > 0))
			x->best = measured > 0 ? measured : predicted;
	}
}

double progress_best(const struct progress_curve *c)
{
	return c->n ? c->v[c->n - 1].best : 0;
}

int progress_reaches(const struct progress_curve *c, double seconds)
{
	int first = 0;

	while (first < c->n && !(c->v[first].measured > 0))
		first++;
	for (int i = first < c->n ? first : 0; i < c->n; i++)
		if (c->v[i].best > 0 && c->v[i].best <= seconds)
			return i;
	return NONE;
}

/* ---- axes ----------------------------------------------------------------------- */

static void include(struct progress_axes *a, double seconds)
{
	if (!(seconds > 0) || !isfinite(seconds))
		return;
	a->low = a->low > 0 ? fmin(a->low, seconds) : seconds;
	a->high = fmax(a->high, seconds);
}

struct progress_axes progress_axes_of(const struct progress_curve *c, int n)
{
	struct progress_axes a = { .first = 1, .last = 1 };
	double shortest = INFINITY;

	for (int k = 0; k < n; k++) {
		double last = c[k].n ? (double)c[k].v[c[k].n - 1].trial : 1;

		for (int i = 0; i < c[k].n; i++) {
			include(&a, progress_seconds(&c[k].v[i]));
			include(&a, c[k].v[i].best);
			a.first = fmin(a.first, (double)c[k].v[i].trial);
		}
		include(&a, c[k].bound);
		a.last = fmax(a.last, last);
		shortest = fmin(shortest, fmax(last, 1));
	}
	if (!(a.low > 0))
		a.low = a.high = 1e-3;
	a.first = fmax(a.first, 0);
	a.log = a.high > LOG_FROM * a.low;
	a.log_trials = n > 1 && a.first >= 1 && a.last > LONGER * shortest;
	if (a.high <= a.low * 1.001) {
		a.low *= 0.9;
		a.high *= 1.1;
	}
	if (a.log) {
		double more = pow(a.high / a.low, 0.05);

		a.low /= more;
		a.high *= more;
	} else {
		double more = 0.06 * (a.high - a.low);

		a.low -= more;
		a.high += more;
	}
	if (a.last <= a.first)
		a.last = a.first + 1;
	return a;
}

static double share(double v, double low, double high, bool log_scale)
{
	double x = log_scale ? log(v / low) / log(high / low) : (v - low) / (high - low);

	return fmin(fmax(x, 0), 1);
}

double progress_up(const struct progress_axes *a, double seconds)
{
	return seconds > 0 ? share(seconds, a->low, a->high, a->log) : 1;
}

double progress_along(const struct progress_axes *a, double trial)
{
	return share(trial, a->first, a->last, a->log_trials);
}

/* As many ticks in a decade as fit; if necessary, only every second decade or less. */
static int log_ticks(double low, double high, int most, double tick[PROGRESS_TICKS])
{
	static const struct {
		int n;
		double v[8];
	} within[] = { { 8, { 1, 1.5, 2, 3, 4, 5, 6, 8 } }, { 5, { 1, 1.5, 2, 3, 5 } }, { 3, { 1, 2, 5 } },
		{ 2, { 1, 3 } }, { 1, { 1 } } };
	double decades = log10(high / low);
	int way = 0, n = 0, by;

	while (way < LEN(within) - 1 && decades * within[way].n > most)
		way++;
	by = (int)ceil(fmax(decades * within[way].n / most, 1));
	for (int e = (int)floor(log10(low)); e <= (int)ceil(log10(high)); e++)
		for (int i = 0; i < within[way].n; i++) {
			double v = within[way].v[i] * pow(10, e);

			if (v >= low * 0.999 && v <= high * 1.001 && e % by == 0 && n < PROGRESS_TICKS)
				tick[n++] = v;
		}
	return n;
}

int progress_ticks(double low, double high, bool log_scale, int most, double tick[PROGRESS_TICKS])
{
	double step;
	int n = 0;

	most = most < 2 ? 2 : most < PROGRESS_TICKS ? most : PROGRESS_TICKS;
	if (log_scale) {
		n = log_ticks(low, high, most, tick);
		if (n > 1)
			return n;
		n = 0;			/* less than a decade: linear steps */
	}
	step = unit_step((high - low) / most);
	for (double v = ceil(low / step - 1e-9) * step; v <= high + step * 1e-6 && n < PROGRESS_TICKS; v += step)
		tick[n++] = v;
	return n;
}
