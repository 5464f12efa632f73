/* contention.h - the cycles that a vector unit costs while matrix units are at work.
 *
 * In T cycles of products a lane draws only a share b (seu.contention) of what it draws of a vector unit otherwise. At
 * best the lane does then what needs no vector unit. If it computes for V cycles in all, and other work holds it for O
 * < T cycles, an iteration takes V + T - b (T - O) cycles or more. Of all lanes together, an iteration takes the unit's
 * own cycles, and the share of T that the lanes cannot draw. */
#ifndef SEARCH_CONTENTION_H
#define SEARCH_CONTENTION_H

#include "sim/price.h"

struct contention {
	const struct vdevice *device;
	int unit;			/* the vector unit */
	double products[SEU_MAX];	/* cycles of matrix units */
	double lane[LANES_MAX];		/* cycles for which a lane uses the unit ... */
	double other[LANES_MAX];	/* ... and for which other work holds it */
	double most[LANES_MAX];		/* the greatest share of the unit that a lane draws */
	double busy;			/* cycles of the unit, of all lanes */
};

/* Does contention for unit u cost anything in the model? */
bool contention_matters(const struct vdevice *d, int u);

/* Add an entry on any unit, `times` instances of it: busy cycles of its unit, hold cycles of its lane. part: the costs of
 * one of the lane's warpgroups. */
void contention_add(struct contention *c, int lane, int unit, const struct entry_cost *part, double busy,
	double hold, double times);

/* The least cycles of a lane, and of the unit; 0: products make no difference. */
double contention_lane(const struct contention *c, int lane);
double contention_unit(const struct contention *c);

#endif
