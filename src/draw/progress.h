/* progress.h - the trials of a search and its best time so far.
 *
 * A curve goes over trials and seconds. Pictures and terminals draw it, with axes from here. Times are in seconds;
 * 0 if they are not known.
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
	double best;			/* of this entry and all before; 0: progress_fill computes it */
	enum progress_status status;
	bool device;			/* of the phase on the device */
	const char *text;		/* "m=128 n=176, 2 lanes"; "" */
};

struct progress_curve {
	const char *name;		/* "" */
	const struct progress_entry *v;	/* in order of trials */
	int n;
	double bound;			/* lower bound; 0: not known */
};

/* Compute `best` of entries in which it is 0: of the measured times, once there is one, before of the predicted
 * ones. */
void progress_fill(struct progress_entry *v, int n);
/* The measured time, or else the predicted one; 0 if neither is known. */
double progress_seconds(const struct progress_entry *x);
/* Wrong or failed, so that it is not counted. */
bool progress_is_bad(const struct progress_entry *x);
/* The best time at the end; 0. */
double progress_best(const struct progress_curve *c);
/* The first entry whose best time is at most `seconds`; if any was measured, from the first measured one on. NONE. */
int progress_reaches(const struct progress_curve *c, double seconds);

struct progress_axes {
	double low, high;		/* seconds */
	double first, last;		/* trials */
	bool log, log_trials;
};

/* Axes for n curves. Times far apart get a logarithmic scale; so do trials if one curve is much longer than another. */
struct progress_axes progress_axes_of(const struct progress_curve *c, int n);
/* Coordinates from 0 to 1, upward and to the right. */
double progress_up(const struct progress_axes *a, double seconds);
double progress_along(const struct progress_axes *a, double trial);

enum { PROGRESS_TICKS = 24 };

/* Round numbers from low to high, about `most` of them. Returns how many. */
int progress_ticks(double low, double high, bool log, int most, double tick[PROGRESS_TICKS]);

/* Draw a curve into a part of a grid: times on the left, trials below. */
void progress_cells(struct cells *out, int x, int y, int w, int h, const struct progress_curve *c);

#endif
