/* A timeline in a few lines: time, bounds, causes of waiting. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/chart.h"
#include "draw/label.h"
#include "draw/pen.h"
#include "draw/speed.h"
#include "draw/units.h"
#include "sim/blame.h"
#include "sim/bounds.h"

enum { CAUSES_SHOWN = 3 };

/* All waiting of an sTask for one reason. */
struct waiting {
	int task, cause, cause_task;
	int64_t cycles;
	int next;			/* of the same sTask; NONE */
};

struct waits {
	VEC(struct waiting) v;
	int *first;			/* by sTask */
};

static void add_waiting(struct waits *b, struct arena *a, int task, struct reason r, int64_t cycles)
{
	if (cycles <= 0 || r.cause == CAUSE_NONE)
		return;
	for (int i = b->first[task]; i != NONE; i = b->v.v[i].next) {
		if (b->v.v[i].cause != r.cause || b->v.v[i].cause_task != r.task)
			continue;
		b->v.v[i].cycles += cycles;
		return;
	}
	VEC_PUSH(a, &b->v, ((struct waiting){ .task = task, .cause = r.cause,
		.cause_task = r.task, .cycles = cycles, .next = b->first[task] }));
	b->first[task] = b->v.n - 1;
}

/* Most cycles first; if equal, in the order of the program, so that texts are stable. */
static int compare_waiting(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->cycles != y->cycles)
		return x->cycles < y->cycles ? 1 : -1;
	if (x->task != y->task)
		return x->task - y->task;
	return x->cause_task - y->cause_task;
}

/* Cycles that the events of a lane span, summed over its replicas. */
static int64_t lane_time(const struct plan *plan, const struct phase_line *p, int lane)
{
	int64_t first = INT64_MAX, last = 0;
	int replicas = 1;

	for (int i = 0; i < p->events.n; i++) {
		const struct event *e = &p->events.v[i];

		if (e->lane != lane || !event_is_sound(plan, e))
			continue;
		first = min_i64(first, e->ready);
		last = max_i64(last, e->end);
		replicas = (int)max_i64(replicas, e->replica + 1);
	}
	return first < last ? (last - first) * replicas : 0;
}

/* What a task waits for by the plan: "load_a or load_b". */
static const char *awaited(struct arena *a, const struct plan *p, int task)
{
	struct buf b = buf_new(a);

	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].task == task)
			buf_printf(&b, "%s%s", b.len ? " or " : "", p->graph->tasks.v[p->waits.v[i].on].name);
	return b.len ? b.text : "another";
}

static const char *waiting_text(struct arena *a, const struct plan *p, const struct waiting *b)
{
	const struct graph *g = p->graph;
	const char *task = g->tasks.v[b->task].name;

	if (b->cause == CAUSE_WAIT && b->cause_task == NONE)
		return arena_strf(a, "%s for %s", task, awaited(a, p, b->task));
	return arena_strf(a, "%s %s", task, reason_text(a, p, (struct reason){ b->cause,
		b->cause == CAUSE_SEU || b->cause == CAUSE_MEMORY ? NONE : b->cause_task }));
}

static void collect_waits(struct arena *a, const struct timeline *t, const struct phase_line *p, struct waits *b)
{
	const struct plan *plan = t->plan;
	bool idle[LANES_MAX] = { 0 };

	b->first = ARENA_ARRAY(a, plan->graph->tasks.n, int);
	for (int i = 0; i < plan->graph->tasks.n; i++)
		b->first[i] = NONE;
	for (int l = 0; l < plan->lanes.n && l < LANES_MAX; l++)
		idle[l] = lane_only_feeds(plan, l);
	for (int i = 0; i < p->events.n; i++) {
		const struct event *e = &p->events.v[i];
		if (!event_is_sound(plan, e) || e->lane >= LANES_MAX || idle[e->lane])
			continue;
		add_waiting(b, a, e->task, event_held_for(plan, e), e->issue - e->ready);
		if (!plan->device->seu[e->seu].async)
			add_waiting(b, a, e->task, (struct reason){ e->cause, e->cause_task }, e->start - e->issue);
	}
}

const char *timeline_waits(struct arena *a, const struct timeline *t, const struct phase_line *p)
{
	struct waits b = { 0 };
	struct buf out = buf_new(a);

	collect_waits(a, t, p, &b);
	if (b.v.n)
		qsort(b.v.v, (size_t)b.v.n, sizeof(*b.v.v), compare_waiting);
	for (int i = 0; i < b.v.n && i < CAUSES_SHOWN; i++) {
		int entry = plan_entry_of(t->plan, b.v.v[i].task);
		const char *text = waiting_text(a, t->plan, &b.v.v[i]);
		int64_t time;

		if (entry == NONE)
			continue;
		time = lane_time(t->plan, p, t->plan->entries.v[entry].lane);
		buf_printf(&out, "%s%s %s of %s", out.len ? ", " : "waiting: ", text,
			unit_percent((double)b.v.v[i].cycles / (double)max_i64(time, 1)).s,
			t->plan->lanes.v[t->plan->entries.v[entry].lane].name);
	}
	return out.text;
}

const char *timeline_unpriced(struct arena *a, const struct timeline *t)
{
	return t->unpriced ? arena_strf(a, "by the plan alone, no kernel is made of it: %s", t->unpriced) : "";
}

const char *timeline_ii(struct arena *a, const struct timeline *t, const struct phase_line *p)
{
	double bound = fmax(p->res_mii, p->rec_mii), over = p->ii / bound - 1;
	struct buf b = buf_new(a);

	if (!(p->ii > 0))
		return b.text;
	buf_printf(&b, "%s%s: II %s", p->ii_loop == NONE ? "tile loop" : "loop ", p->ii_loop == NONE ? "" :
		label_loop(a, t->plan->graph->program, p->ii_loop), unit_rounded(p->ii).s);
	if (!(bound > 0) || t->logical)
		return b.text;
	if (fabs(over) < 0.0005)
		buf_puts(&b, ", at the bound; ");
	else
		buf_printf(&b, ", %s %s the bound; ", unit_percent(fabs(over)).s, over > 0 ? "above" : "below");
	buf_printf(&b, "ResMII %s (%s), RecMII %s", unit_rounded(p->res_mii).s, binding_name(t->plan, p->binding_seu),
		unit_rounded(p->rec_mii).s);
	return b.text;
}

const char *timeline_unit(const struct timeline *t)
{
	return t->logical ? "stamps" : "cycles";
}

const char *timeline_origin(struct arena *a, const struct timeline *t)
{
	const char *device = t->plan->device->name;
	struct buf b = buf_new(a);

	if (!t->measured)
		return arena_strf(a, "on %s, simulated", device);
	if (t->logical)
		return arena_strf(a, "for %s, traced on the host, without a clock", device);
	buf_printf(&b, "on %s, measured", device);
	if (t->clock_hz > 0)
		buf_printf(&b, " at %s", unit_si(t->clock_hz, "Hz").s);
	if (!isnan(t->overhead))
		buf_printf(&b, "; stamps cost %s%s", t->overhead < 0 ? "-" : "", unit_percent(fabs(t->overhead)).s);
	return b.text;
}

const char *uncertainty_text(struct arena *a, const struct timeline *t)
{
	if (t->uncertainty > 0)
		return arena_strf(a, " +- %s", unit_percent(t->uncertainty).s);
	if (t->measured || t->logical)
		return "";
	return t->uncertainty_least > 0 ? arena_strf(a, " +- %s or more (%s is not calibrated)",
		unit_percent(t->uncertainty_least).s, t->plan->device->name) :
		arena_strf(a, " (+- unknown: %s is not calibrated)", t->plan->device->name);
}

const char *timeline_no_power(const struct timeline *t)
{
	return !t->measured && !t->logical && t->products_busy && !(t->plan->device->power_limit > 0) ?
		"clock not limited by power: this device has no power model" : "";
}

const char *timeline_total(struct arena *a, const struct timeline *t)
{
	struct buf b = buf_new(a);

	buf_printf(&b, "%s %s", unit_count(t->cycles).s, timeline_unit(t));
	if (!t->logical)
		buf_printf(&b, ", %s", unit_seconds(t->seconds).s);
	buf_puts(&b, uncertainty_text(a, t));
	const char *speed = t->logical ? "" : speed_text(a, t->plan->graph, t->plan->device, t->flops, t->seconds);
	if (speed[0])
		buf_printf(&b, ", %s", speed);
	for (int i = 0; i < t->nphases; i++)
		buf_printf(&b, "%s%s tile%s on %d EU%s", i ? " + " : "; ", unit_count(t->phases[i].tiles).s,
			t->phases[i].tiles == 1 ? "" : "s", t->phases[i].eus, t->phases[i].eus == 1 ? "" : "s");
	if (t->cache)
		buf_printf(&b, "; %s", t->cache);
	if (*label_lengths(a, t->plan->graph->program))
		buf_printf(&b, "; %s", label_lengths(a, t->plan->graph->program));
	return b.text;
}

/* "busy: tensor 91 %, cuda 63 %" */
static const char *busy_text(struct arena *a, const struct timeline *t, const struct phase_line *p)
{
	struct buf b = buf_new(a);

	for (int s = 0; s < t->plan->device->nseus; s++)
		if (unit_share(p, t->plan->device, s) > 0)
			buf_printf(&b, "%s%s %s%s", b.len ? ", " : "busy: ", unit_label(a, p, t->plan->device, s),
				unit_percent(unit_share(p, t->plan->device, s)).s,
				t->plan->device->seu[s].kind == SEU_COPY ? " (transfers under way)" : "");
	if (p->memory_share > 0)
		buf_printf(&b, "%smemory %s", b.len ? ", " : "busy: ", unit_percent(p->memory_share).s);
	return b.text;
}

/* "power-limited at 1.33 GHz: 715 W, product 62 %, l2 9 %, ..." */
static const char *power_text(struct arena *a, const struct timeline *t)
{
	const struct vdevice *d = t->plan->device;
	double all = t->watts * t->seconds;
	struct buf b = buf_new(a);

	if (!(all > 0))
		return "";
	buf_printf(&b, "%s %s: %.0f W", t->clock_hz < device_full_clock(d, &t->effort) ?
		"power-limited at" : "at", unit_si(t->clock_hz, "Hz").s, t->watts);
	for (int i = 0; i < EFFORT_KINDS; i++)
		if (t->joules.of[i] >= 0.005 * all)
			buf_printf(&b, ", %s %s", effort_names[i], unit_percent(t->joules.of[i] / all).s);
	buf_printf(&b, ", idle %s", unit_percent(d->power_idle * t->seconds / all).s);
	return b.text;
}

void draw_timeline_summary(const struct timeline *t, const struct draw_options *o, struct buf *out)
{
	struct pen pen = pen_new(o, out);

	pen_name(&pen, t->plan->graph->program->name, arena_strf(pen.arena,
		"%s: %s", timeline_origin(pen.arena, t), timeline_total(pen.arena, t)));
	for (int i = 0; i < t->nphases; i++) {
		const struct phase_line *p = &t->phases[i];
		const char *line[] = { timeline_ii(pen.arena, t, p), busy_text(pen.arena, t, p),
			timeline_waits(pen.arena, t, p) };

		if (t->nphases > 1)
			pen_printf(&pen, "phase %s: %s %s\n", t->plan->graph->program->phases.v[p->phase].name,
				unit_count(p->cycles).s, timeline_unit(t));
		for (int k = 0; k < LEN(line); k++)
			pen_line(&pen, line[k]);
	}
	pen_line(&pen, power_text(pen.arena, t));
	pen_line(&pen, timeline_no_power(t));
	pen_line(&pen, timeline_unpriced(pen.arena, t));
}

/* ---- the causes of blame.h as text ---- */

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

const char *blame_awaited(struct arena *a, const struct plan *p, const struct blame_part *b, bool no_slices)
{
	const char *on = task_name(a, p->graph, b->on, no_slices);
	const char *unit = b->unit >= 0 && b->unit < p->device->nseus ? p->device->seu[b->unit].name : "";

	if (b->why == BLAME_ISSUE || b->why == BLAME_POWER || (b->why == BLAME_PIPE && b->on == NONE))
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
