#include "draw/speed.h"

#include "draw/units.h"

enum { LANE_WARPS = 4 };		/* so many use all of a matrix unit */

/* What share of the other time the transfers, or the products, must need at least to be said. */
static const double TRANSFERS_COUNT = 0.5, PRODUCTS_COUNT = 0.25;

/* Seconds in which the device's matrix units can do the products, if all EUs are at work. */
static double products_seconds(const struct graph *g, const struct vdevice *d)
{
	struct pace pace = { .active = d->eus, .clock_hz = d->clock_hz };
	double sum = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		int seu = s->kind == TASK_MMA ? device_seu_for(d, &s->work) : NONE;

		if (seu != NONE && d->clock_hz > 0)
			sum += graph_all_runs(g, s) *
				device_cost(d, seu, &s->work, LANE_WARPS, pace).busy / d->eus / d->clock_hz;
	}
	return sum;
}

double bandwidth_share(const struct graph *g, const struct vdevice *d, double seconds)
{
	return seconds > 0 && d->global_rate > 0 ? graph_bytes(g) / seconds / d->global_rate : 0;
}

const char *speed_text(struct arena *a, const struct graph *g, const struct vdevice *d, double flops, double seconds)
{
	double products = products_seconds(g, d);
	double bytes = d->global_rate > 0 ? graph_bytes(g) / d->global_rate : 0;
	bool moves = bytes > TRANSFERS_COUNT * products;
	bool computes = flops > 0 && (products > PRODUCTS_COUNT * bytes || !moves);

	if (!(seconds > 0) || (!moves && !computes))
		return "";
	const char *flop_rate = arena_strdup(a, unit_si(flops / seconds, "FLOP/s").s);
	if (!moves)
		return flop_rate;
	const char *byte_rate = arena_strf(a, "%s, %s of the bandwidth", unit_si(graph_bytes(g) / seconds, "B/s").s,
		unit_percent(bandwidth_share(g, d, seconds)).s);
	return computes ? arena_strf(a, "%s, %s", flop_rate, byte_rate) : byte_rate;
}
