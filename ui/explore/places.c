#include "explore/places.h"

#include <stdio.h>
#include <stdlib.h>

enum { OFFSETS_BESIDE = 1, PLACES_MAX = 400 };

static const struct srcloc here = { .file = "explorer", .line = 0 };

void places_close(struct model *m)
{
	struct places *s = m->places;
	struct arena a;

	if (!s)
		return;
	m->places = NULL;
	state_free(s->state);
	history_free(s->copy);
	a = s->arena;
	arena_release(&a);
}

/* ---- which there are ---- */

/* Is the entry of the region in which the sTask can be, and not itself moved with it? */
static bool is_beside(const struct model *m, const struct entry *o, const struct stask *s)
{
	const struct stask *t = &m->now->graph->tasks.v[o->task];

	return t->phase == s->phase && t->loop == s->loop &&
		(m->each_part ? t != s : t->task != s->task);
}

/* May it be on the lane? On its own; elsewhere if it goes alone. */
static bool may_be_on(const struct model *m, const struct entry *e, int lane)
{
	return lane == e->lane || m->each_part || m->now->graph->tasks.v[e->task].parts <= 1;
}

static void add_offsets(struct model *m, const struct entry *e, int lane, int before, int lo, int hi,
	bool here_in_order)
{
	struct places *s = m->places;

	for (int at = lo; at <= hi && s->v.n < PLACES_MAX; at++) {
		bool is_here = here_in_order && at == e->at;

		if (is_here)
			s->at = s->v.n;
		VEC_PUSH(&s->arena, &s->v, ((struct spot){ .lane = lane, .before = before, .at = at,
			.here = is_here }));
	}
}

/* Every place in the order of every lane, at the offsets that its region has, one more and one
 * less. */
static void list_places(struct model *m, int entry)
{
	const struct plan *p = m->now->plan;
	const struct entry *e = &p->entries.v[entry];
	const struct stask *s = &p->graph->tasks.v[e->task];
	int lo = e->at, hi = e->at;

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *o = &p->entries.v[i];

		if (!is_beside(m, o, s))
			continue;
		lo = (int)min_i64(lo, o->at);
		hi = (int)max_i64(hi, o->at);
	}
	lo = (int)max_i64(lo - OFFSETS_BESIDE, -OFFSET_MAX);
	hi = (int)min_i64(hi + OFFSETS_BESIDE, OFFSET_MAX);
	for (int lane = 0; lane < p->lanes.n; lane++) {
		bool passed = false, mine = lane == e->lane;

		if (!may_be_on(m, e, lane))
			continue;
		for (int i = 0; i < p->entries.n; i++) {
			const struct entry *o = &p->entries.v[i];

			if (o->lane != lane || !is_beside(m, o, s))
				continue;
			add_offsets(m, e, lane, o->task, lo, hi, mine && !passed && i > entry);
			passed |= mine && i > entry;
		}
		add_offsets(m, e, lane, NONE, lo, hi, mine && !passed);
	}
}

void places_open(struct model *m)
{
	struct arena a;
	int entry;

	places_close(m);
	if (!model_can_edit(m))
		return;
	entry = m->sel.task == NONE ? NONE : plan_entry_of(m->now->plan, m->sel.task);
	if (entry == NONE) {
		model_refuse(m, "select an sTask that is in the plan first");
		return;
	}
	arena_init(&a, m->mem);
	m->places = ARENA_NEW(&a, struct places);
	m->places->arena = a;
	m->places->task = m->sel.task;
	history_copy(m->history, &m->places->copy);
	m->places->mark = history_mark(m->places->copy);
	list_places(m, entry);
	model_say(m, "%s is picked up: arrows hold it elsewhere, Enter puts it there, Esc back",
		model_moved_name(m, m->sel.task));
}

/* ---- what they would do ---- */

static struct move move_to(struct model *m, const struct spot *p)
{
	const struct plan *plan = m->now->plan;
	const struct entry *e = &plan->entries.v[plan_entry_of(plan, m->places->task)];
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
		if (plan->entries.v[i].lane == p->lane && is_beside(m, &plan->entries.v[i], s))
			last = plan->entries.v[i].task;
	if (last != NONE)
		move.after = model_moved_name(m, last);
	return move;
}

/* The place with one version more of some values: better than what was tried before? */
static void try_with(struct model *m, struct spot *p, const struct move *move, enum deeper deeper)
{
	struct places *s = m->places;
	const char *name = model_moved_name(m, s->task), *why = NULL;
	struct versions_of v[16];
	int n = model_deeper(m, s->task, deeper, v, LEN(v));
	struct err e;

	if (deeper && !n)
		return;
	if ((n && history_versions(s->copy, v, n, here, &e)) ||
	    history_move(s->copy, &name, 1, move, true, &m->stop, here, &e) ||
	    state_of_history(m, s->copy, false, &s->state, &e))
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

static void try_place(struct model *m, struct spot *p)
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

/* The nearest ones first: those that the user comes to first. */
bool places_step(struct model *m)
{
	struct places *s = m->places;
	int best = NONE;

	for (int i = 0; s && i < s->v.n; i++)
		if (!s->v.v[i].tried && (best == NONE || abs(i - s->at) < abs(best - s->at)))
			best = i;
	if (best != NONE)
		try_place(m, &s->v.v[best]);
	return best != NONE;
}

/* ---- holding ---- */

const struct spot *places_held(const struct model *m)
{
	return m->places ? &m->places->v.v[m->places->at] : NULL;
}

void places_hold(struct model *m, int dx, int dy)
{
	struct places *s = m->places;
	const struct spot *now = places_held(m);
	int best = NONE;

	for (int i = 0; i < s->v.n; i++) {
		const struct spot *p = &s->v.v[i];
		bool same_place = p->lane == now->lane && p->before == now->before;

		if (dx && same_place && p->at == now->at + dx)
			best = i;
		if (dy > 0 && i > s->at && !same_place && p->at == now->at && best == NONE)
			best = i;
		if (dy < 0 && i < s->at && !same_place && p->at == now->at)
			best = i;
	}
	if (best != NONE)
		s->at = best;
}

void places_drop(struct model *m)
{
	const struct spot *p = places_held(m);
	struct move move;

	if (!p)
		return;
	if (p->here) {
		places_close(m);
		model_say(m, "put down where it was");
		return;
	}
	move = move_to(m, p);
	m->sel.task = m->places->task;
	model_move(m, &move, p->deeper);
	places_close(m);
}

const char *place_text(struct model *m, const struct spot *p)
{
	const struct plan *plan = m->now->plan;
	const char *what;

	if (p->here)
		what = "where it is";
	else if (!p->tried)
		what = "being tried";
	else if (!p->legal)
		what = p->why;
	else if (m->now->tl && m->now->tl->seconds > 0)
		what = arena_strf(&m->frame, "%+.1f %%", 100 * (p->seconds / m->now->tl->seconds - 1));
	else
		what = "legal";
	if (p->tried && p->legal && p->deeper)
		what = arena_strf(&m->frame, "%s, with one version more of what it %s", what,
			p->deeper == DEEPER_READS ? "reads" : "makes");
	return arena_strf(&m->frame, "%s, %s%s, at %+d: %s", plan->lanes.v[p->lane].name,
		p->before == NONE ? "last" : "before ",
		p->before == NONE ? "" : plan->graph->tasks.v[p->before].name, p->at, what);
}
