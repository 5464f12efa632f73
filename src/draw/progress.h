/* progress.h - what a search has tried, one after the other, and its best so far.
 *
 * A curve goes over trials and seconds; what draws it, as a picture or as characters, takes
 * its axes from here. Times are in seconds, 0 if they are not known.
 */
#ifndef DRAW_PROGRESS_H
#define DRAW_PROGRESS_H

#include "draw/cells.h"
#include "tile/program.h"

enum progress_status {			/* ORDER statuses in lua/lprogress.c */
	PROGRESS_OK, PROGRESS_PREDICTED, PROGRESS_SKIPPED, PROGRESS_WRONG, PROGRESS_FAILED,
	PROGRESS_STATUSES
};

struct progress_entry {
	int64_t trial;
	double predicted, measured;
	double best;			/* of this and those before; 0: progress_fill finds it */
	enum progress_status status;
	bool device;			/* it was to be measured */
	const char *text;		/* what it is: "m=128 n=176, 2 lanes"; "" */
};

struct progress_curve {
	const char *name;		/* "" */
	const struct progress_entry *v;	/* in order of trials */
	int n;
	double bound;			/* nothing is below; 0: not known */
};

/* The best so far of entries that do not say it: of what was measured, once something was, else
 * of what is predicted. */
void progress_fill(struct progress_entry *v, int n);
/* Where an entry stands: measured, else predicted; 0: neither is known. */
double progress_seconds(const struct progress_entry *x);
/* Wrong or failed, so that it is in no best. */
bool progress_is_bad(const struct progress_entry *x);
/* The best at the end; 0. */
double progress_best(const struct progress_curve *c);
/* The first entry whose best is that good, from the first one that was measured on, if any was; NONE. */
int progress_reaches(const struct progress_curve *c, double seconds);

struct progress_axes {
	double low, high;		/* seconds */
	double first, last;		/* trials */
	bool log, log_trials;
};

/* That hold all curves. Times that lie far apart are on a scale of logarithms; so are trials, if one
 * curve is far longer than another. */
struct progress_axes progress_axes_of(const struct progress_curve *c, int n);
/* From 0 to 1, upwards and to the right. */
double progress_up(const struct progress_axes *a, double seconds);
double progress_along(const struct progress_axes *a, double trial);

enum { PROGRESS_TICKS = 24 };

/* Round numbers from low to high, at most about `most` of them. Returns how many. */
int progress_ticks(double low, double high, bool log, int most, double tick[PROGRESS_TICKS]);

/* One curve in a part of a grid: times on the left, trials below. */
void progress_cells(struct cells *out, int x, int y, int w, int h, const struct progress_curve *c);

#endif
