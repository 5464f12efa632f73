/* The causes of blame.h as text. */
#include <string.h>

#include "draw/draw.h"

static const char *task_name(struct arena *a, const struct graph *g, int task, bool no_slices)
{
	const struct stask *s;

	if (task < 0 || task >= g->tasks.n)
		return "others";
	s = &g->tasks.v[task];
	return no_slices && s->slices > 1 ? arena_strf(a, "%.*s", (int)(strrchr(s->name, '.') - s->name),
		s->name) : s->name;
}

static int lane_of(const struct plan *p, int task)
{
	int entry = task < 0 ? NONE : plan_entry_of(p, task);

	return entry == NONE ? NONE : p->entries.v[entry].lane;
}

static bool is_busy(const struct blame_part *b)
{
	return b->why == BLAME_ISSUE || b->why == BLAME_POWER || (b->why == BLAME_PIPE && b->on == NONE);
}

const char *blame_awaited(struct arena *a, const struct plan *p, const struct blame_part *b, bool no_slices)
{
	const char *on = task_name(a, p->graph, b->on, no_slices);
	const char *unit = b->unit >= 0 && b->unit < p->device->nseus ? p->device->seu[b->unit].name : "";

	if (is_busy(b))
		return NULL;
	switch (b->why) {
	case BLAME_PIPE:
		return lane_of(p, b->on) == b->lane ? arena_strf(a, "products of its own (%s)", on) :
			arena_strf(a, "%s, at work on %s", unit, on);
	case BLAME_SHARED: return arena_strf(a, "shared memory, with operands of %s", on);
	case BLAME_L2: return arena_strf(a, "L2, with %s", on);
	case BLAME_GLOBAL: return arena_strf(a, "device memory, with %s", on);
	case BLAME_SLOT: return arena_strf(a, "a free slot, after %s", on);
	case BLAME_ISSUE_ORDER: return arena_strf(a, "the issue order, after %s", on);
	case BLAME_SYNC: return arena_strf(a, "a signal of %s", on);
	case BLAME_ISSUE: case BLAME_DEPENDENCE: case BLAME_POWER: case BLAMES:
		break;
	}
	return on;
}

const char *blame_text(struct arena *a, const struct plan *p, const struct blame_part *b, bool no_slices)
{
	const char *task = task_name(a, p->graph, b->task, no_slices), *on = blame_awaited(a, p, b, no_slices);

	if (on)
		return arena_strf(a, "%s for %s", task, on);
	if (b->why == BLAME_PIPE)
		return arena_strf(a, "%s on %s", task, b->unit >= 0 && b->unit < p->device->nseus ?
			p->device->seu[b->unit].name : "its unit");
	return arena_strf(a, "%s %s", task, b->why == BLAME_ISSUE ? "issuing" : "by power");
}
