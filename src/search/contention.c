#include "search/contention.h"

#include <math.h>

bool contention_matters(const struct vdevice *d, int u)
{
	return d->seu[u].kind == SEU_VECTOR && !d->seu[u].async && d->seu[u].contention < 1;
}

void contention_add(struct contention *c, int lane, int unit, const struct entry_cost *part, double busy,
	double hold, double times)
{
	const struct seu *u = &c->device->seu[unit];
	double alone = fmax(part->cost.alone, part->cost.busy);

	if (unit == c->unit && part->cost.busy > 0) {
		c->lane[lane] += times * alone;
		c->other[lane] += times * (hold - alone);
		c->most[lane] = fmax(c->most[lane], fmax(part->groups, 1) * part->cost.busy / alone);
		c->busy += times * busy;
	} else {
		c->other[lane] += times * hold;
	}
	if (u->kind == SEU_MATRIX && u->async)
		c->products[unit] += times * busy;
}

static double product_cycles(const struct contention *c)
{
	double most = 0;

	for (int u = 0; u < c->device->nseus; u++)
		most = fmax(most, c->products[u]);
	return most;
}

double contention_lane(const struct contention *c, int lane)
{
	double slow = product_cycles(c) - c->other[lane];

	if (c->lane[lane] <= 0 || slow <= 0)
		return 0;
	return c->lane[lane] + product_cycles(c) - c->device->seu[c->unit].contention * slow;
}

double contention_unit(const struct contention *c)
{
	double drawn = 0;

	for (int l = 0; l < LANES_MAX; l++)
		drawn += c->device->seu[c->unit].contention * c->most[l];
	return drawn < 1 && c->busy > 0 ? c->busy + product_cycles(c) * (1 - drawn) : 0;
}
