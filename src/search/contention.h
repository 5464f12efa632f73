/* beside.h - what lanes ask of a vector unit that is slower while products are at work.
 *
 * Products are at work for no less than their own cycles, in which a lane draws only seu.beside of what it
 * could. At best it does then what is not on the unit. What is left over takes longer by as much as that
 * slows it; and of the unit, by what all lanes together cannot draw.
 */
#ifndef SEARCH_CONTENTION_H
#define SEARCH_CONTENTION_H

#include "sim/price.h"

struct contention {
	const struct vdevice *device;
	int unit;
	double products[SEU_MAX];	/* cycles of matrix units */
	double lane[LANES_MAX];		/* cycles that a lane is on the unit ... */
	double other[LANES_MAX];	/* ... and that it is held by something else */
	double most[LANES_MAX];		/* of the unit that it can draw */
	double busy;			/* cycles of all of the unit */
};

/* An sTask on a unit, so many times, which holds its lane for so long; part: what one of its lane's groups
 * does. */
void contention_add(struct contention *b, int lane, int unit, const struct entry_cost *part, double busy,
	double hold, double times);
/* Cycles that the lane, or all of the unit, takes; 0: products make no difference. */
double contention_lane(const struct contention *b, int lane);
double contention_unit(const struct contention *b);

#endif
