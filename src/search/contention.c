#include "search/contention.h"

#include <math.h>

void contention_add(struct contention *b, int lane, int unit, const struct entry_cost *part, double busy,
	double hold, double times)
{
	const struct seu *u = &b->device->seu[unit];
	double alone = fmax(part->cost.alone, part->cost.busy);

	if (unit == b->unit && part->cost.busy > 0) {
		b->lane[lane] += times * alone;
		b->other[lane] += times * (hold - alone);
		b->most[lane] = fmax(b->most[lane], fmax(part->groups, 1) * part->cost.busy / alone);
		b->busy += times * busy;
	} else {
		b->other[lane] += times * hold;
	}
	if (u->kind == SEU_MATRIX && u->async)
		b->products[unit] += times * busy;
}

static double products(const struct contention *b)
{
	double most = 0;

	for (int u = 0; u < b->device->nseus; u++)
		most = fmax(most, b->products[u]);
	return most;
}

double contention_lane(const struct contention *b, int lane)
{
	double slow = products(b) - b->other[lane];

	if (b->lane[lane] <= 0 || slow <= 0)
		return 0;
	return b->lane[lane] + products(b) - b->device->seu[b->unit].contention * slow;
}

double contention_unit(const struct contention *b)
{
	double drawn = 0;

	for (int l = 0; l < LANES_MAX; l++)
		drawn += b->device->seu[b->unit].contention * b->most[l];
	return drawn < 1 && b->busy > 0 ? b->busy + products(b) * (1 - drawn) : 0;
}
