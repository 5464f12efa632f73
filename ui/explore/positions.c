#include "explore/positions.h"

#include <stdlib.h>
#include <string.h>

#include "draw/text.h"
#include "draw/units.h"

enum { POSITIONS_MAX = 400, GAP_COLUMNS = 26, OFFSET_COLUMNS = 11, HEAD_ROWS = 2 };	/* columns of the screen in one of the table; rows above it */

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

/* Add a gap in the order of a lane, at each offset. is_own_gap: entry e, which is picked up, is there now. */
static void add_offsets(struct model *m, const struct entry *e, int lane, int before, int lo, int hi, bool is_own_gap)
{
	struct positions *s = m->positions;

	for (int at = lo; at <= hi && s->v.n < POSITIONS_MAX; at++) {
		if (is_own_gap && at == e->at)
			s->chosen = s->v.n;
		VEC_PUSH(&s->arena, &s->v, ((struct position){ .lane = lane, .before = before, .at = at,
			.here = is_own_gap && at == e->at }));
	}
}

/* All gaps in the orders of all lanes, at offsets from one below the least of the loop to one above the greatest. */
static void list_positions(struct model *m, int entry)
{
	const struct plan *p = m->now->plan;
	const struct entry *e = &p->entries.v[entry];
	const struct stask *s = &p->graph->tasks.v[e->task];
	int lo = e->at, hi = e->at;

	for (const struct entry *o = p->entries.v; o < p->entries.v + p->entries.n; o++) {
		lo = model_is_neighbour(m, o, s) && o->at < lo ? o->at : lo;
		hi = model_is_neighbour(m, o, s) && o->at > hi ? o->at : hi;
	}
	lo = (int)max_i64(lo - 1, -OFFSET_MAX);
	hi = (int)min_i64(hi + 1, OFFSET_MAX);
	for (int lane = 0; lane < p->lanes.n; lane++) {
		bool passed = false, mine = lane == e->lane;

		if (!mine && !m->each_part && m->now->graph->tasks.v[e->task].slices > 1)
			continue;		/* slices that move together keep the lanes that they have now */
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
		model_refuse(m, "first select an sTask that is in the plan");
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

/* A problem in the columns of a cell. */
static const char *brief_name(enum problem_code code)
{
	switch ((int)code) {
	case PROBLEM_MISSING_WAIT: return "no wait";
	case PROBLEM_MISPLACED_WAIT: return "wrong wait";
	case PROBLEM_SHARED_MEMORY: return "shared mem";
	case PROBLEM_MISSING_TASK: return "missing";
	case PROBLEM_DUPLICATE_TASK: return "twice";
	default: return problem_name(code);
	}
}

/* "k: 2 versions, v: 3": the buffers that have more versions in the state than now. */
static const char *deeper_text(const struct model *m, const struct state *s, struct arena *a)
{
	struct buf b = buf_new(a);

	for (int i = 0; i < s->graph->buffers.n; i++)
		if (s->plan->versions[i] > m->now->plan->versions[i])
			buf_printf(&b, b.len ? ", %s: %d" : "%s: %d versions", s->graph->buffers.v[i].name, s->plan->versions[i]);
	return b.len ? b.text : "";
}

/* Try a position with one version more of some values. A version more takes registers, so its result replaces one with
 * fewer or other ones only if it is clearly faster. The problem that is shown is that of the move alone. */
static void try_with_extra(struct model *m, struct position *p, const struct move *move, enum extra_versions extra)
{
	struct positions *s = m->positions;
	const char *name = model_moved_name(m, s->task), *why = NULL, *brief = "refused";
	struct versions_of v[16];
	int n = model_extra_versions(m, s->task, extra, v, LEN(v));
	struct err e;

	if (extra && !n)
		return;
	if ((n && history_versions(s->copy, v, n, model_loc, &e)) ||
	    history_move(s->copy, &name, 1, move, true, &m->stop, model_loc, &e) ||
	    state_of_history(m, s->copy, false, &s->state, &e))
		why = arena_strdup(&s->arena, e.msg);
	else if (!s->state->legal || !s->state->tl) {
		bool known = s->state->problems.v.n > 0;

		why = known ? arena_strdup(&s->arena, s->state->problems.v.v[0].message) : "it cannot be checked";
		brief = known ? brief_name(s->state->problems.v.v[0].code) : "not checked";
	} else if (!p->legal || s->state->tl->seconds < p->seconds * 0.998) {
		p->legal = true;
		p->seconds = s->state->tl->seconds;
		p->extra = extra;
		p->also = deeper_text(m, s->state, &s->arena);
	}
	if (!extra) {
		p->why = why;
		p->brief = brief;
	}
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
	for (int x = EXTRA_NONE; x <= EXTRA_OF_WRITES; x++)
		try_with_extra(m, p, &move, (enum extra_versions)x);
}

/* Positions near the chosen one first, because the user reaches them first. */
bool positions_step(struct model *m)
{
	struct positions *s = m->positions;
	int best = NONE;

	for (int i = 0; s && i < s->v.n; i++)
		if (!s->v.v[i].tried && (best == NONE || abs(i - s->chosen) < abs(best - s->chosen)))
			best = i;
	if (best != NONE)
		try_position(m, &s->v.v[best]);
	return best != NONE;
}

/* ---- choosing ---- */

const struct position *positions_chosen(const struct model *m)
{
	return m->positions ? &m->positions->v.v[m->positions->chosen] : NULL;
}

void positions_choose(struct model *m, int dx, int dy)
{
	struct positions *s = m->positions;
	const struct position *now = positions_chosen(m);
	int best = NONE;

	for (int i = 0; i < s->v.n; i++) {
		const struct position *p = &s->v.v[i];
		bool same_position = p->lane == now->lane && p->before == now->before;

		if (dx && same_position && p->at == now->at + dx)
			best = i;
		if (dy > 0 && i > s->chosen && !same_position && p->at == now->at && best == NONE)
			best = i;
		if (dy < 0 && i < s->chosen && !same_position && p->at == now->at)
			best = i;
	}
	if (best != NONE)
		s->chosen = best;
}

void positions_drop(struct model *m)
{
	const struct position *p = positions_chosen(m);
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
	model_move(m, &move, p->extra);
	positions_close(m);
}

/* ---- drawing ---- */

/* What the position costs, as "+3.2 %", or its problem, as "deadlock"; brief: for a cell of the table. */
static const char *result_text(struct model *m, const struct position *p, bool brief)
{
	double before = m->now->tl ? m->now->tl->seconds : 0;
	const char *also = p->legal && p->also ? p->also : "", *more = !also[0] ? "" : brief ? " +" :
		arena_strf(&m->frame, ", with%s %s", p->extra == EXTRA_OF_READS ? " one version more of what it reads:" :
			p->extra ? " one version more of what it writes:" : "", also);

	if (p->here)
		return brief ? "here" : "where it is";
	if (!p->tried)
		return brief ? "..." : "being tried";
	if (!p->legal)
		return brief ? p->brief : p->why;
	if (!(before > 0))
		return arena_strf(&m->frame, "legal%s", brief ? "" : more);
	return arena_strf(&m->frame, "%s%s", unit_change(p->seconds / before - 1).s, more);
}

static struct style cell_style(const struct model *m, const struct position *p, bool chosen)
{
	double before = m->now->tl ? m->now->tl->seconds : 0;
	struct style s = p->here ? BOLD : PLAIN;

	if (!p->tried || !p->legal)
		s = FAINT;
	else if (before > 0 && p->seconds < before * 0.9995)	/* -0.1 % is shown, or less */
		s = (struct style){ .fg = 114, .attr = STYLE_BOLD };
	s.attr |= chosen ? STYLE_REVERSE : 0;
	return s;
}

/* Name of a gap, and of its lane if the row above, of lane `above`, has another. */
static const char *gap_text(struct model *m, const struct position *p, int above)
{
	const struct plan *plan = m->now->plan;
	const char *name = p->lane == above ? "" : plan->lanes.v[p->lane].name;

	if (p->before == NONE)
		return arena_strf(&m->frame, "%-4s last", name);
	return arena_strf(&m->frame, "%-4s before %s", name, plan->graph->tasks.v[p->before].name);
}

static bool is_row_start(const struct positions *s, int i)
{
	return !i || s->v.v[i].before != s->v.v[i - 1].before || s->v.v[i].lane != s->v.v[i - 1].lane;
}

void positions_draw(struct model *m, struct cells *out, int y)
{
	const struct positions *s = m->positions;
	const struct position *chosen = positions_chosen(m);
	int least = s->v.v[0].at, most = least, row = -1, chosen_row = 0, rows = out->h - y - 1 - HEAD_ROWS, skip;
	int columns = (int)max_i64(1, (out->w - GAP_COLUMNS) / OFFSET_COLUMNS);
	struct buf head = buf_new(&m->frame);
	const char *text;

	for (int line = y; line < out->h; line++)	/* on a small screen it hides the end of the chart */
		cells_fill(out, 0, line, out->w, " ", PLAIN);
	for (int i = 0; i < s->v.n; i++) {
		least = (int)min_i64(least, s->v.v[i].at);
		most = (int)max_i64(most, s->v.v[i].at);
		row += is_row_start(s, i);
		chosen_row = &s->v.v[i] == chosen ? row : chosen_row;
	}
	skip = (int)max_i64(0, chosen_row - rows + 1);
	text_wrap(&head, arena_strf(&m->frame, "%s at: %s, %s%s, at %+d: %s", model_moved_name(m, s->task),
		m->now->plan->lanes.v[chosen->lane].name, chosen->before == NONE ? "last" : "before ",
		chosen->before == NONE ? "" : m->now->graph->tasks.v[chosen->before].name, chosen->at,
		result_text(m, chosen, false)), 0, 2, out->w, 0);
	text = head.text;
	for (int i = 0; i < HEAD_ROWS && *text; i++) {
		cells_text(out, 0, y + i, out->w, arena_strf(&m->frame, "%.*s", (int)strcspn(text, "\n"), text), BOLD);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	/* the chosen one is in sight; signs show where there are more */
	if (most - least >= columns) {
		int first = (int)max_i64(least, chosen->at - columns + 1);

		if (first > least)
			cells_text(out, GAP_COLUMNS - 2, y + HEAD_ROWS, 1, "◂", FAINT);
		if (first + columns <= most)
			cells_text(out, out->w - 1, y + HEAD_ROWS, 1, "▸", FAINT);
		least = first;
		most = first + columns - 1;
	}
	row = -1;
	for (int i = 0; i < s->v.n; i++) {
		const struct position *p = &s->v.v[i];
		int x = GAP_COLUMNS + (p->at - least) * OFFSET_COLUMNS, w = OFFSET_COLUMNS - 1, line;

		row += is_row_start(s, i);
		line = y + HEAD_ROWS + 1 + row - skip;
		if (is_row_start(s, i) && row >= skip && row - skip < rows)
			cells_text(out, 0, line, GAP_COLUMNS - 1, gap_text(m, p, i ? p[-1].lane : NONE), PLAIN);
		if (p->at < least || p->at > most)
			continue;
		cells_text(out, x, y + HEAD_ROWS, w, arena_strf(&m->frame, "at %+d", p->at), FAINT);
		if (row < skip || row - skip >= rows)
			continue;
		cells_text(out, x, line, w, result_text(m, p, true), cell_style(m, p, p == chosen));
	}
}
