#include "run/trace.h"

#include "run/trace_eu.h"
#include "plan/assign.h"
#include "sim/measure.h"

/* The EU that ended last. */
static int last_eu(const struct kernel *k, const uint32_t *words, int eus, bool logical)
{
	uint64_t latest = 0;
	int best = 0;

	for (int u = 0; u < eus; u++) {
		const uint32_t *block = words + u * k->traced.words;

		for (int i = 0; i < k->lanes.n; i++) {
			const uint32_t *lane = block + k->lanes.v[i].traced.out_at;
			uint64_t end = logical ? lane[STAMP_LANE_END] - block[STAMP_START] :
				time_at(lane + STAMP_LANE_TIME);

			if (end > latest) {
				latest = end;
				best = u;
			}
		}
	}
	return best;
}

static enum err_code read_phase(struct timeline *t, const struct built_phase *in, int phase,
	const struct trace_options *o, struct arena *a, struct err *e)
{
	struct phase_line *line = &t->phases[phase];
	struct eu_stamps eu = { .kernel = in->kernel, .logical = o->logical };
	struct tile_assignment d;
	struct walk walk;
	int missing;

	plan_assign_tiles(a, t->plan, phase, &d);
	if (o->eu != NONE && (o->eu < 0 || o->eu >= d.eus))
		return err_set(e, ERR_INPUT, NOWHERE, "there is no EU %d: %d EU%s at work", o->eu + 1,
			d.eus, d.eus == 1 ? " is" : "s are");
	line->phase = phase;
	line->eu = o->eu == NONE ? last_eu(in->kernel, in->stamps, d.eus, o->logical) : o->eu;
	walk_init(a, &walk, t->plan->graph, phase, (int)(d.start[line->eu + 1] -
		d.start[line->eu]), d.order + d.start[line->eu]);
	eu.words = in->stamps + line->eu * in->kernel->traced.words;
	eu.walk = &walk;
	missing = trace_eu(a, &t->arena, &eu, line, &t->clock_hz);
	if (missing)
		return err_set(e, ERR_IO, NOWHERE, "the traced kernel left %d stamps fewer than it "
			"should on EU %d", missing, line->eu + 1);
	t->nevents += line->events.n;
	t->cycles += line->cycles;
	measure_line(a, t->plan, &walk, line);
	return OK;
}

enum err_code trace_read(struct mem *mem, const struct built *traced, const struct trace_options *o,
	 struct arena *scratch, struct timeline **out, struct err *e)
{
	struct timeline *t;

	timeline_new(mem, traced->plan, out);
	t = *out;
	t->measured = true;
	t->logical = o->logical;
	t->seconds = o->seconds;
	t->overhead = o->overhead;
	t->cache = o->cache;
	for (int i = 0; i < t->nphases; i++)
		TRY(read_phase(t, &traced->phases[i], i, o, scratch, e));
	return OK;
}
