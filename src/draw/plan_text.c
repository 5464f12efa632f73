/* A plan as the programs of its lanes. */
#include "draw/draw.h"
#include "draw/label.h"
#include "draw/pen.h"
#include "draw/units.h"
#include "target/target.h"
#include "plan/cluster.h"
#include "plan/keep.h"
#include "plan/order.h"

enum { BAR = 20 };

/* " along 'm'", of the first phase that has clusters. */
static const char *cluster_text(const struct plan *p, struct arena *a)
{
	for (int i = 0; i < p->graph->program->phases.n; i++) {
		struct cluster c = plan_cluster(p, i);

		if (c.size > 1 && c.axis == NONE)
			return arena_strf(a, " that divide '%s'", p->graph->program->axes.v[p->grid.divided - 1].name);
		if (c.size > 1)
			return arena_strf(a, " along '%s'", p->graph->program->axes.v[c.axis].name);
	}
	return "";
}

/* " along 'h'", of the first phase in which EUs keep anything. */
static const char *keep_text(const struct plan *p, struct arena *a)
{
	for (int i = 0; i < p->graph->program->phases.n; i++) {
		struct cluster c = plan_keep(p, i);

		if (c.size > 1)
			return arena_strf(a, " along '%s'", p->graph->program->axes.v[c.axis].name);
	}
	return "";
}

/* "plan for h200, on 132 of 132 EUs, tiles by rows in groups of 8" */
static const char *grid_text(const struct plan *p, struct arena *a)
{
	const struct grid_plan *g = &p->grid;
	struct buf b = buf_new(a);
	int most = 0;

	for (int i = 0; i < p->graph->program->phases.n; i++)
		most = (int)max_i64(most, plan_eus(p, i));
	buf_printf(&b, "plan for %s, on %d of %d EUs, tiles by %s", p->device->name, most,
		p->device->eus, g->raster == RASTER_ROWS ? "rows" : "columns");
	if (g->group > 1)
		buf_printf(&b, " in groups of %d", g->group);
	if (g->longest_first)
		buf_puts(&b, ", longest first");
	if (g->section)
		buf_printf(&b, " of each %d", g->section);
	if (g->dynamic)
		buf_puts(&b, ", taken as EUs come free");
	if (g->cluster > 1)
		buf_printf(&b, ", clusters of %d%s", g->cluster, cluster_text(p, a));
	if (g->keep > 1)
		buf_printf(&b, ", %d neighbours%s one after the other on an EU", g->keep, keep_text(p, a));
	if (g->chiplets > 1)
		buf_printf(&b, ", neighbours on one of %d chiplets", g->chiplets);
	if (p->launch.ready.n)
		buf_puts(&b, ", loads");
	for (int i = 0; i < p->launch.ready.n; i++)
		buf_printf(&b, "%s '%s'", i ? "," : "", p->graph->program->tensors.v[p->launch.ready.v[i]].name);
	if (p->launch.ready.n)
		buf_puts(&b, " before what is in front has ended");
	if (p->launch.next != NEXT_AUTO)
		buf_printf(&b, ", lets the next kernel begin %s", p->launch.next == NEXT_START ? "at its start" :
			p->launch.next == NEXT_LOADED ? "with its last loads" : "at its end");
	if (*label_lengths(a, p->graph->program))
		buf_printf(&b, "; %s", label_lengths(a, p->graph->program));
	return b.text;
}

bool lane_has_entries(const struct plan *p, int lane, int phase)
{
	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].lane == lane && p->graph->tasks.v[p->entries.v[i].task].phase == phase)
			return true;
	return false;
}

static void add_name(struct buf *b, const char *name, int distance, enum wait_when when)
{
	buf_printf(b, "%s%s", b->len ? ", " : "", name);
	if (distance)
		buf_printf(b, " %+d", distance);
	if (when == WAIT_ISSUED)
		buf_puts(b, " issued");
}

/* One item for each distance that the wait covers, according to the dependences. */
static void add_wait(const struct plan *p, const struct wait *w, struct buf *b)
{
	const struct graph *g = p->graph;
	const char *on = g->tasks.v[w->on].name;
	bool here[VERSIONS_MAX + 1] = { false }, served = false;

	for (int i = w->distance == DISTANCE_AUTO ? g->first_in[w->task] : NONE; i != NONE; i = g->next_in.v[i])
		if (g->edges.v[i].from == w->on)
			here[edge_distance(p, &g->edges.v[i])] = true;
	for (int d = 0; d <= VERSIONS_MAX; d++) {
		if (here[d])
			add_name(b, on, d, w->when);
		served |= here[d];
	}
	if (!served)
		add_name(b, on, w->distance == DISTANCE_AUTO ? 0 : w->distance, w->when);
}

const char *waits_text(struct arena *a, const struct plan *p, int task)
{
	struct buf b = buf_new(a);

	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].task == task)
			add_wait(p, &p->waits.v[i], &b);
	return b.text;
}

/* Entries in the order in which the lane executes them. */
static void add_region(const struct plan *p, int lane, int phase, int loop, int indent, struct table *t)
{
	struct order_step *steps;
	int least, most, n = order_steps(t->arena, p, lane, phase, loop, &steps, &least, &most);

	for (int i = 0; i < n; i++) {
		if (!steps[i].is_loop) {
			const struct entry *e = &p->entries.v[steps[i].id];
			const struct stask *s = &p->graph->tasks.v[e->task];

			TABLE_ROW(t, arena_strf(t->arena, "%*s%s", indent, "", s->name), e->at ?
				arena_strf(t->arena, "@%+d", e->at) : NULL, p->device->seu[e->seu].name,
				waits_text(t->arena, p, e->task))->style = style_of_kind(s->kind);
			continue;
		}
		table_row(t)[0] = (struct table_cell){ arena_strf(t->arena, "%*sloop %s", indent, "",
			label_loop(t->arena, p->graph->program, steps[i].id)), FAINT };
		add_region(p, lane, phase, steps[i].id, indent + 2, t);
	}
}

static void put_lane_title(const struct plan *p, int lane, const struct usage *u, struct pen *pen)
{
	const struct lane *l = &p->lanes.v[lane];
	int warps = lane_warps(p, lane);
	struct buf b = buf_new(pen->arena);

	buf_printf(&b, "%d warp%s", warps, warps == 1 ? "" : "s");
	if (l->columns > 1)
		buf_printf(&b, " in %d columns", l->columns);
	if (l->replicas > 1)
		buf_printf(&b, ", %d replicas", l->replicas);
	if (l->priority)
		buf_printf(&b, ", products at priority %d", l->priority);
	if (u && l->registers && u->lane_registers[lane])	/* 0: not known of a plan that is not legal */
		buf_printf(&b, ", needs %d of its %d registers a thread", u->lane_registers[lane], l->registers);
	else if ((u && u->lane_registers[lane]) || l->registers)
		buf_printf(&b, ", %d registers a thread", l->registers ? l->registers : u->lane_registers[lane]);
	if (l->spare)
		buf_printf(&b, ", %d spare", l->spare);
	pen_puts(pen, "\n", PLAIN);
	pen_name(pen, arena_strf(pen->arena, "lane %s:", l->name), b.text);
}

void pen_lane(struct pen *pen, const struct plan *p, int lane, const struct usage *u)
{
	static const struct column col[] = { { "sTask", ALIGN_LEFT, 16, 0 }, { "at", ALIGN_LEFT, 0, 0 },
		{ "sEU", ALIGN_LEFT, 0, 1 }, { "waits for", ALIGN_LEFT, 12, 0 } };
	const struct program *pr = p->graph->program;
	struct table t = table_new(pen->arena, col, LEN(col));

	put_lane_title(p, lane, u, pen);
	for (int i = 0; i < pr->phases.n; i++) {
		if (!lane_has_entries(p, lane, i))
			continue;
		if (pr->phases.n > 1)
			table_row(&t)[0] = (struct table_cell){ arena_strf(pen->arena, "phase %s",
				pr->phases.v[i].name), FAINT };
		add_region(p, lane, i, NONE, pr->phases.n > 1 ? 2 : 0, &t);
	}
	pen_table(pen, NULL, &t);
}

static void put_missing(const struct plan *p, struct pen *pen)
{
	struct buf b = buf_new(pen->arena);

	for (int i = 0; i < p->graph->tasks.n; i++)
		if (plan_entry_of(p, i) == NONE)
			add_name(&b, p->graph->tasks.v[i].name, 0, WAIT_COMPLETE);
	if (b.len)
		pen_wrap(pen, "\nnot appended: ", 2, b.text);
}

static void put_rings(const struct plan *p, struct pen *pen)
{
	static const struct column col[] = { { "buffer", ALIGN_LEFT, 12, 0 }, { "versions", ALIGN_RIGHT, 0, 0 },
		{ "each", ALIGN_RIGHT, 0, 2 }, { "all", ALIGN_RIGHT, 0, 0 }, { "home", ALIGN_LEFT, 0, 1 },
		{ "life", ALIGN_LEFT, 4, 3 } };
	struct table t = table_new(pen->arena, col, LEN(col));

	for (int i = 0; i < p->graph->buffers.n; i++) {
		const struct buffer *b = &p->graph->buffers.v[i];
		enum scope scope = plan_scope(p, i);

		if (scope == SCOPE_REGISTERS && p->versions[i] == 1)
			continue;
		TABLE_ROW(&t, b->name, arena_strf(t.arena, "%d", p->versions[i]),
			unit_keep(t.arena, unit_bytes((double)b->bytes)),
			unit_keep(t.arena, unit_bytes((double)b->bytes * p->versions[i])),
			scope == SCOPE_SHARED ? "shared" : "registers",
			label_loop(t.arena, p->graph->program, b->loop));
	}
	if (t.rows.n)
		pen_table(pen, "rings", &t);
}

/* Values in the registers or the shared memory of others. */
static void put_aliases(const struct plan *p, struct pen *pen)
{
	const struct graph *g = p->graph;
	bool any = false;

	for (int i = 0; i < g->buffers.n; i++) {
		if (g->buffers.v[i].alias_of == NONE)
			continue;
		if (!any)
			pen_section(pen, "aliases");
		any = true;
		pen_printf(pen, "  '%s' lies where '%s' was\n", g->buffers.v[i].name,
			g->buffers.v[g->buffers.v[i].alias_of].name);
	}
}

static void add_usage(struct table *t, const char *what, struct unit_text used, struct unit_text most, double share)
{
	TABLE_ROW(t, what, unit_keep(t->arena, used), arena_strf(t->arena, "of %s", most.s), NULL,
		unit_keep(t->arena, unit_percent(share)))[3] = pen_bar(t->arena, share, BAR);
}

/* What a plan takes that is not legal is counted without what its kernel would add: threads that fill warpgroups,
 * memory to stage stores. If it is so wrong that nothing was counted, nothing is shown. */
static void put_usage(const struct plan *p, const struct usage *u, struct pen *pen)
{
	const struct column col[] = { { u->registers ? "of one EU" : "of one EU, at least", ALIGN_LEFT, 0, 0 },
		{ "", ALIGN_RIGHT, 0, 0 }, { "", ALIGN_LEFT, 0, 0 }, { "", ALIGN_LEFT, 0, 1 }, { "", ALIGN_RIGHT, 0,
			2 } };
	const struct vdevice *d = p->device;
	struct table t = table_new(pen->arena, col, LEN(col));

	if (!u->threads && !u->shared_bytes)
		return;
	add_usage(&t, "threads", unit_count(u->threads), unit_count(d->max_threads),
		(double)u->threads / d->max_threads);
	if (u->registers)		/* 0: not known of a plan that is not legal */
		add_usage(&t, "registers", unit_count(u->registers), unit_count(d->registers),
			(double)u->registers / d->registers);
	add_usage(&t, "shared memory", unit_bytes((double)u->shared_bytes), unit_bytes((double)d->shared_bytes),
		(double)u->shared_bytes / (double)d->shared_bytes);
	if (u->named_barriers)
		add_usage(&t, "named barriers", unit_count(u->named_barriers), unit_count(d->named_barriers),
			(double)u->named_barriers / d->named_barriers);
	pen_puts(pen, "\n", PLAIN);
	pen_table(pen, NULL, &t);
	if (u->flags)
		pen_wrap(pen, "  ", 2,
			arena_strf(pen->arena, "and %d %s%s, limited by shared memory alone: %s of it",
			u->flags, target_flag_name(target_of(p->device)), u->flags == 1 ? "" : "s",
			unit_bytes((double)u->flags * target_of(p->device)->shared.flag).s));
}

static void put_problems(const struct problems *pr, struct pen *pen)
{
	const struct style red = { .fg = 203, .attr = STYLE_BOLD };

	if (!pr->v.n)
		pen_puts(pen, "\nlegal: no problems\n", PLAIN);
	for (int i = 0; i < pr->notes.n; i++) {
		pen_wrap(pen, "note: ", 6, pr->notes.v[i].message);
		pen_wrap(pen, "      → ", 8, pr->notes.v[i].hint);
	}
	if (!pr->v.n)
		return;
	pen_puts(pen, arena_strf(pen->arena, "\n%d problem%s\n", pr->v.n, pr->v.n == 1 ? "" : "s"), red);
	for (int i = 0; i < pr->v.n; i++) {
		const struct problem *x = &pr->v.v[i];
		const char *at = x->loc.file && x->loc.line ? arena_strf(pen->arena, " (%s:%d)",
			x->loc.file, x->loc.line) : "";

		pen_wrap(pen, arena_strf(pen->arena, "%3d. ", i + 1), 5,
			arena_strf(pen->arena, "%s: %s%s", problem_name(x->code), x->message, at));
		if (x->hint && x->hint[0])
			pen_wrap(pen, "     → ", 7, x->hint);
	}
}

void draw_plan(const struct plan *p, const struct usage *usage, const struct problems *problems,
	const struct draw_options *o, struct buf *out)
{
	struct pen pen = pen_new(o, out);

	pen_name(&pen, p->graph->program->name, grid_text(p, pen.arena));
	for (int i = 0; i < p->lanes.n; i++)
		pen_lane(&pen, p, i, usage);
	put_missing(p, &pen);
	put_rings(p, &pen);
	put_aliases(p, &pen);
	if (usage)
		put_usage(p, usage, &pen);
	if (problems)
		put_problems(problems, &pen);
}

void pen_usage(struct pen *pen, const struct plan *p, const struct usage *usage)
{
	put_rings(p, pen);
	put_usage(p, usage, pen);
}
