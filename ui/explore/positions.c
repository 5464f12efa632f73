#include "explore/positions.h"

#include <stdlib.h>

enum { OFFSETS_MORE = 1, POSITIONS_MAX = 400, WIDE = 11, ORDER_COLUMNS = 26 };

void positions_close(struct model *m)
{
	struct positions *s = m->positions;

	if (!s)
		return;
	m->positions = NULL;
	state_free(s->state);
	history_free(s->copy);
	arena_release(&s->arena);
}

/* ---- the list ---- */

static void add_offsets(struct model *m, const struct entry *e, int lane, int before, int lo, int hi,
	bool here_in_order)
{
	struct positions *s = m->positions;

	for (int at = lo; at <= hi && s->v.n < POSITIONS_MAX; at++) {
		bool is_here = here_in_order && at == e->at;

		if (is_here)
			s->at = s->v.n;
		VEC_PUSH(&s->arena, &s->v, ((struct position){ .lane = lane, .before = before, .at = at,
			.here = is_here }));
	}
}

/* All gaps in the orders of all lanes, at the offsets of the entries there, one less and one more. */
static void list_positions(struct model *m, int entry)
{
	const struct plan *p = m->now->plan;
	const struct entry *e = &p->entries.v[entry];
	const struct stask *s = &p->graph->tasks.v[e->task];
	int lo = e->at, hi = e->at;

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *o = &p->entries.v[i];

		if (!model_is_neighbour(m, o, s))
			continue;
		lo = (int)min_i64(lo, o->at);
		hi = (int)max_i64(hi, o->at);
	}
	lo = (int)max_i64(lo - OFFSETS_MORE, -OFFSET_MAX);
	hi = (int)min_i64(hi + OFFSETS_MORE, OFFSET_MAX);
	for (int lane = 0; lane < p->lanes.n; lane++) {
		bool passed = false, mine = lane == e->lane;

		if (!mine && !m->each_part && m->now->graph->tasks.v[e->task].slices > 1)
			continue;		/* slices that are moved together stay on their lanes */
		for (int i = 0; i < p->entries.n; i++) {
			const struct entry *o = &p->entries.v[i];

			if (o->lane != lane || !model_is_neighbour(m, o, s))
				continue;
			add_offsets(m, e, lane, o->task, lo, hi, mine && !passed && i > entry);
			passed |= mine && i > entry;
		}
		add_offsets(m, e, lane, NONE, lo, hi, mine && !passed);
	}
}

void positions_open(struct model *m)
{
	int entry;

	positions_close(m);
	if (!model_can_edit(m))
		return;
	entry = m->sel.task == NONE ? NONE : plan_entry_of(m->now->plan, m->sel.task);
	if (entry == NONE) {
		model_refuse(m, "select an sTask that is in the plan first");
		return;
	}
	m->positions = ARENA_OWNER(m->mem, struct positions);
	m->positions->task = m->sel.task;
	history_copy(m->history, &m->positions->copy);
	m->positions->mark = history_mark(m->positions->copy);
	list_positions(m, entry);
	model_say(m, "%s is picked up: arrows choose a position, Enter puts it there, Esc cancels",
		model_moved_name(m, m->sel.task));
}

/* ---- trying ---- */

static struct move move_to(struct model *m, const struct position *p)
{
	const struct plan *plan = m->now->plan;
	const struct entry *e = &plan->entries.v[plan_entry_of(plan, m->positions->task)];
	const struct stask *s = &plan->graph->tasks.v[e->task];
	struct move move = { .set_at = true, .at = p->at };
	int last = NONE;

	if (p->lane != e->lane)
		move.lane = plan->lanes.v[p->lane].name;
	if (p->before != NONE) {
		move.before = model_moved_name(m, p->before);
		return move;
	}
	for (int i = 0; i < plan->entries.n; i++)
		if (plan->entries.v[i].lane == p->lane && model_is_neighbour(m, &plan->entries.v[i], s))
			last = plan->entries.v[i].task;
	if (last != NONE)
		move.after = model_moved_name(m, last);
	return move;
}

/* Try a position with one version more of some values, and keep the result if it is better than the last one. */
static void try_with(struct model *m, struct position *p, const struct move *move, enum deeper deeper)
{
	struct positions *s = m->positions;
	const char *name = model_moved_name(m, s->task), *why = NULL;
	struct versions_of v[16];
	int n = model_deeper(m, s->task, deeper, v, LEN(v));
	struct err e;

	if (deeper && !n)
		return;
	if ((n && history_versions(s->copy, v, n, model_loc, &e)) || history_move(s->copy, &name, 1, move, true, &m->stop,
	    model_loc, &e) || state_of_history(m, s->copy, false, &s->state, &e))
		why = arena_strdup(&s->arena, e.msg);
	else if (!s->state->legal || !s->state->tl)
		why = s->state->problems.v.n ? problem_name(s->state->problems.v.v[0].code) : "not checked";
	else if (!p->legal || s->state->tl->seconds < p->seconds * 0.998) {
		p->legal = true;
		p->seconds = s->state->tl->seconds;
		p->deeper = deeper;
	}
	if (!deeper)
		p->why = why;
	state_free(s->state);
	s->state = NULL;
	history_return(s->copy, s->mark);
}

static void try_position(struct model *m, struct position *p)
{
	struct move move = move_to(m, p);

	p->tried = true;
	if (p->here) {
		p->legal = m->now->legal;
		p->seconds = m->now->tl ? m->now->tl->seconds : 0;
		return;
	}
	for (int d = DEEPER_NONE; d <= DEEPER_WRITES; d++)
		try_with(m, p, &move, (enum deeper)d);
}

/* Positions near the chosen one first, because the user reaches them first. */
bool positions_step(struct model *m)
{
	struct positions *s = m->positions;
	int best = NONE;

	for (int i = 0; s && i < s->v.n; i++)
		if (!s->v.v[i].tried && (best == NONE || abs(i - s->at) < abs(best - s->at)))
			best = i;
	if (best != NONE)
		try_position(m, &s->v.v[best]);
	return best != NONE;
}

/* ---- choosing ---- */

const struct position *positions_held(const struct model *m)
{
	return m->positions ? &m->positions->v.v[m->positions->at] : NULL;
}

void positions_hold(struct model *m, int dx, int dy)
{
	struct positions *s = m->positions;
	const struct position *now = positions_held(m);
	int best = NONE;

	for (int i = 0; i < s->v.n; i++) {
		const struct position *p = &s->v.v[i];
		bool same_position = p->lane == now->lane && p->before == now->before;

		if (dx && same_position && p->at == now->at + dx)
			best = i;
		if (dy > 0 && i > s->at && !same_position && p->at == now->at && best == NONE)
			best = i;
		if (dy < 0 && i < s->at && !same_position && p->at == now->at)
			best = i;
	}
	if (best != NONE)
		s->at = best;
}

void positions_drop(struct model *m)
{
	const struct position *p = positions_held(m);
	struct move move;

	if (!p)
		return;
	if (p->here) {
		positions_close(m);
		model_say(m, "put back where it was");
		return;
	}
	move = move_to(m, p);
	m->sel.task = m->positions->task;
	model_move(m, &move, p->deeper);
	positions_close(m);
}

/* ---- drawing ---- */

/* "+3.2 %", "deadlock"; brief: for a cell of the table. */
static const char *result_text(struct model *m, const struct position *p, bool brief)
{
	double before = m->now->tl ? m->now->tl->seconds : 0;
	const char *more = !p->deeper ? "" : brief ? " +" : p->deeper == DEEPER_READS ?
		", with one version more of what it reads" : ", with one version more of what it writes";

	if (p->here)
		return brief ? "here" : "where it is";
	if (!p->tried)
		return brief ? "..." : "being tried";
	if (!p->legal)
		return p->why;
	if (!(before > 0))
		return arena_strf(&m->frame, "legal%s", brief ? "" : more);
	return arena_strf(&m->frame, "%+.1f %%%s", 100 * (p->seconds / before - 1), more);
}

static struct style cell_style(const struct model *m, const struct position *p, bool held)
{
	double before = m->now->tl ? m->now->tl->seconds : 0;
	struct style s = p->here ? BOLD : PLAIN;

	if (!p->tried || !p->legal)
		s = FAINT;
	else if (before > 0 && p->seconds < before * 0.9995)
		s = (struct style){ .fg = 114, .attr = STYLE_BOLD };
	s.attr |= held ? STYLE_REVERSE : 0;
	return s;
}

static const char *order_text(struct model *m, const struct position *p, int lane)
{
	const struct plan *plan = m->now->plan;
	const char *name = p->lane == lane ? "" : plan->lanes.v[p->lane].name;

	if (p->before == NONE)
		return arena_strf(&m->frame, "%-4s last", name);
	return arena_strf(&m->frame, "%-4s before %s", name, plan->graph->tasks.v[p->before].name);
}

void positions_draw(struct model *m, struct cells *out, int y)
{
	const struct positions *s = m->positions;
	const struct position *held = positions_held(m);
	int least = s->v.v[0].at, row = 0, held_row = 0, rows = out->h - y - 2, skip, lane = NONE;

	for (int i = 0; i < s->v.n; i++) {
		least = (int)min_i64(least, s->v.v[i].at);
		row += i && (s->v.v[i].before != s->v.v[i - 1].before || s->v.v[i].lane != s->v.v[i - 1].lane);
		held_row = &s->v.v[i] == held ? row : held_row;
	}
	skip = (int)max_i64(0, held_row - rows + 1);
	cells_text(out, 0, y, out->w, arena_strf(&m->frame, "%s at: %s, %s%s, at %+d: %s", model_moved_name(m, s->task),
		m->now->plan->lanes.v[held->lane].name, held->before == NONE ? "last" : "before ", held->before ==
		NONE ? "" : m->now->graph->tasks.v[held->before].name, held->at, result_text(m, held, false)), BOLD);
	row = -1;
	for (int i = 0; i < s->v.n; i++) {
		const struct position *p = &s->v.v[i];
		int x = ORDER_COLUMNS + (p->at - least) * WIDE;

		if (!i || p->before != s->v.v[i - 1].before || p->lane != s->v.v[i - 1].lane) {
			row++;
			if (row >= skip && row - skip < rows)
				cells_text(out, 0, y + 2 + row - skip, ORDER_COLUMNS - 1, order_text(m, p, lane),
					PLAIN);
			lane = p->lane;
		}
		cells_text(out, x, y + 1, WIDE - 1, arena_strf(&m->frame, "at %+d", p->at), FAINT);
		if (row >= skip && row - skip < rows)
			cells_text(out, x, y + 2 + row - skip, WIDE - 1, result_text(m, p, true), cell_style(m, p, p == held));
	}
}
