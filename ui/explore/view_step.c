/* Step by step, one issue or completion after the other: what each lane and each sEU does, what they wait for, and what
 * each slot of each ring holds. */
#include <string.h>

#include "draw/label.h"
#include "draw/pen.h"
#include "draw/units.h"
#include "explore/page.h"
#include "explore/view.h"
#include "sim/moments.h"
#include "target/target.h"

enum { JUMP = 20, SLOTS_SHOWN = 7, AROUND = 3, WORDS_MAX = 3, PADDED_MIN = 76, DOING = 34, SLOT = 14 };

struct own {
	struct computed computed;
	struct moments moments;		/* is computed */
	int at;
	int at_event;			/* the selection when `at` was chosen */
	int64_t at_cursor;
	bool chosen;			/* `at` is chosen */
	int top, height;		/* the first line in sight, and how many are, where not all are */
};

static const char *lacks(const struct model *m)
{
	const struct phase_line *l = model_line(m);

	if (!l)
		return m->now->plan && !m->now->legal ?
			"the plan is not legal, so there is no timeline to step through" :
			"there is no timeline to step through";
	return l->events.n ? NULL : "no events of this phase were recorded";
}

/* The moment being drawn. */
struct scene {
	struct view *v;
	struct model *m;
	struct arena *a;
	const struct moments *moments;
	const struct event *events;
	const struct plan *plan;
	const struct graph *g;
	const struct task_key *key;
	int at;
	int64_t cycle;
	struct pen pen;
};

/* Pad with blanks, if the screen is wide enough, so that columns do not move from moment to moment. */
static const char *padded(const struct scene *s, const char *text, int cols)
{
	struct buf b = buf_new(s->a);

	if (s->pen.width < PADDED_MIN)
		return text;
	buf_puts(&b, text);
	buf_repeat(&b, " ", cols - text_width(text));
	return b.text;
}

/* ---- the moment ----------------------------------------------------------------- */

static void make(struct view *v)
{
	struct own *own = v->own;

	if (!computed_begin(&own->computed, v->m, hash_mix(key_of_state(v->m->now), (uintptr_t)model_line(v->m))))
		return;
	moments_init(own->computed.arena, &own->moments, model_lookup(v->m));
	own->computed.made = true;
	own->chosen = false;
}

static void choose(struct view *v, int at)
{
	struct own *own = v->own;

	own->at = at;
	own->at_event = v->m->sel.event;
	own->at_cursor = v->m->sel.cursor;
	own->chosen = true;
}

/* Go to the moment of the timeline's cursor, unless the cursor is still where this view has put it. */
static void follow_cursor(struct view *v)
{
	struct own *own = v->own;
	const struct selection *sel = &v->m->sel;

	if (own->chosen && own->at_event == sel->event && own->at_cursor == sel->cursor)
		return;
	choose(v, moments_at(&own->moments, sel->cursor));
}

static void go(struct view *v, int at)
{
	struct own *own = v->own;

	at = (int)max_i64(0, min_i64(at, own->moments.n - 1));
	if (own->moments.n) {
		model_select_event(v->m, own->moments.v[at].event);
		v->m->sel.cursor = own->moments.v[at].cycle;
	}
	choose(v, at);
}

/* "mma_qk.0 3" */
static const char *instance(const struct scene *s, const struct event *e)
{
	return arena_strf(s->a, "%s %d", s->g->tasks.v[e->task].name, e->seq);
}

/* ---- the event of the moment ----------------------------------------------------- */

/* May the next event of a lane be issued from now on, because this instance of the sTask has completed? */
static bool is_released(const struct scene *s, const struct event *next, int task)
{
	struct reason r = event_held_by(s->m->now->tl, next);
	const struct lookup_list *list = &s->moments->lookup->of_task[task];

	if (r.task != task || next->ready > s->cycle || next->issue < s->cycle)
		return false;
	/* not if a later instance completes before the issue */
	for (int i = 0; i < list->n; i++) {
		const struct event *e = &s->events[list->v[i]];

		if (e->issue > next->issue)
			break;
		if (e->end > s->cycle && e->end <= next->issue)
			return false;
	}
	return true;
}

static void add_released(const struct scene *s, int task, struct buf *b)
{
	int n = 0;

	for (int l = 0; l < s->plan->lanes.n; l++) {
		for (int c = 0; c < s->plan->lanes.v[l].replicas && c < REPLICAS_MAX; c++) {
			int last, next;

			moments_lane(s->moments, s->at, l, c, &last, &next);
			if (next == NONE || n == WORDS_MAX || !is_released(s, &s->events[next], task))
				continue;
			buf_printf(b, "; %s of %s may be issued", instance(s, &s->events[next]),
				lane_label(s->a, s->plan, l, c));
			n++;
		}
	}
}

/* "; slot 1 of k is full": the slots that the instance writes or reads. */
static void add_slots(const struct scene *s, const struct event *e, struct buf *b)
{
	static const char *const words[] = { [SLOT_EMPTY] = "is empty", [SLOT_FILLING] = "is being filled",
		[SLOT_FULL] = "is full", [SLOT_READ] = "is being read", [SLOT_FREE] = "is free" };
	const struct stask *t = &s->g->tasks.v[e->task];

	for (int i = 0; i < s->moments->nrings; i++) {
		int buffer = s->moments->ring[i], k;
		int64_t life = moments_life(s->moments, e, buffer);
		struct slot slots[VERSIONS_MAX];
		const char *what;

		if (!stask_touches(t, buffer) || life < 0)
			continue;
		moments_slots(s->moments, s->at, buffer, slots);
		k = (int)(life % s->plan->versions[buffer]);
		if (slots[k].life != life)
			continue;
		what = words[slots[k].state];
		if (s->plan->versions[buffer] > 1)
			buf_printf(b, "; slot %d of %s %s", k, s->g->buffers.v[buffer].name, what);
		else
			buf_printf(b, "; %s %s", s->g->buffers.v[buffer].name, what);
	}
}

/* "; wg0 at 8,340, wg1 at 8,352", if the warpgroups of its lane drift apart: the moment is that of the last one. */
static void add_warpgroups(const struct scene *s, const struct moment *t, struct buf *b)
{
	const struct phase_line *line = model_line(s->m);
	const struct event *e = &s->events[t->event];

	for (int g = 0; e->nparts && g <= e->nparts; g++) {
		const struct event *part = event_part(line, t->event, g);

		buf_printf(b, "%s wg%d at %s", g ? "," : ";", g, unit_count(t->end ? part->end :
			part->issue).s);
	}
}

/* "load_k 3 is complete; slot 1 of k is full; mma_qk of c0 may be issued" */
static const char *story(const struct scene *s)
{
	const struct moment *t = &s->moments->v[s->at];
	const struct event *e = &s->events[t->event];
	const struct seu *u = &s->plan->device->seu[e->seu];
	struct buf b = buf_new(s->a);

	buf_printf(&b, "%s", instance(s, e));
	if (t->end)
		buf_puts(&b, " is complete");
	else if (u->async)
		buf_printf(&b, " is issued by %s to %s, and the lane goes on", lane_label(s->a, s->plan, e->lane, e->replica),
			u->name);
	else
		buf_printf(&b, " begins on %s (%s)", lane_label(s->a, s->plan, e->lane, e->replica), u->name);
	if (!t->end && e->issue > e->ready) {
		const char *why = reason_text(s->a, s->plan, event_held_by(s->m->now->tl, e));

		buf_printf(&b, ", after waiting %s cycles%s%s", unit_count(e->issue - e->ready).s, *why ? " " : "",
			why);
	}
	add_warpgroups(s, t, &b);
	add_slots(s, e, &b);
	add_released(s, e->task, &b);
	return b.text;
}

static void put_head(struct scene *s)
{
	const struct moment *t = &s->moments->v[s->at];
	const struct event *e = &s->events[t->event];
	int loop = s->g->tasks.v[e->task].loop;

	pen_puts(&s->pen, arena_strf(s->a, "%s %s", s->m->now->tl->logical ? "stamp" : "cycle",
		unit_count(t->cycle).s), BOLD);
	pen_puts(&s->pen, arena_strf(s->a, "   moment %s", unit_count(s->at + 1).s), FAINT);
	pen_puts(&s->pen, arena_strf(s->a, " of %s   tile %d of the EU%s\n", unit_count(s->moments->n).s,
		e->tile, loop == NONE ? "" : arena_strf(s->a, ", iteration %d of loop %s", e->seq,
		label_loop(s->a, s->g->program, loop))), FAINT);
	pen_wrap(&s->pen, t->end ? "◂ " : "▸ ", 2, story(s));
	pen_puts(&s->pen, "\n", PLAIN);
}

static struct table_cell activity(const struct scene *s, int last, int next)
{
	const struct event *e = last == NONE ? NULL : &s->events[last], *n = next == NONE ? NULL : &s->events[next];
	struct table_cell c = { "done", FAINT };

	if (e && !s->plan->device->seu[e->seu].async && s->moments->end[last] > s->at) {
		c.text = arena_strf(s->a, e->start > s->cycle ? "%s queues for %s" : "executes %s on %s",
			instance(s, e), s->plan->device->seu[e->seu].name);
		c.style = (struct style){ .fg = s->key[e->task].tick.fg };
		return c;
	}
	if (!n)
		return c;
	c.text = arena_strf(s->a, "goes on to %s", instance(s, n));
	if (n->ready <= s->cycle && n->issue > n->ready)
		c.text = arena_strf(s->a, "waits %s", reason_text(s->a, s->plan, event_held_by(s->m->now->tl, n)));
	if (n->ready > s->cycle)
		c.text = "issues, signals";
	return c;
}

static void put_lanes(struct scene *s)
{
	static const struct column col[] = { { "lane", ALIGN_LEFT, 0, 0 }, { "now", ALIGN_LEFT, 20, 0 },
		{ "last", ALIGN_LEFT, 8, 2 }, { "next", ALIGN_LEFT, 8, 1 } };
	int here = s->moments->v[s->at].event;
	struct table t = table_new(s->a, col, LEN(col));

	for (int l = 0; l < s->plan->lanes.n; l++) {
		for (int k = 0; k < s->plan->lanes.v[l].replicas && k < REPLICAS_MAX; k++) {
			struct table_cell *row;
			int last, next;

			if (!s->moments->lookup->of_lane[l][k].n)
				continue;
			moments_lane(s->moments, s->at, l, k, &last, &next);
			row = table_row(&t);
			row[0] = (struct table_cell){ lane_label(s->a, s->plan, l, k), s->events[here].lane == l &&
				s->events[here].replica == k ? BOLD : PLAIN };
			row[1] = activity(s, last, next);
			row[1].text = padded(s, row[1].text, DOING);
			row[2].text = padded(s, last == NONE ? "-" : instance(s, &s->events[last]), SLOT);
			row[3].text = next == NONE ? "-" : instance(s, &s->events[next]);
		}
	}
	pen_table(&s->pen, NULL, &t);
	pen_puts(&s->pen, "\n", PLAIN);
}

static void put_units(struct scene *s)
{
	static const struct column col[] = { { "sEU", ALIGN_LEFT, 0, 0 }, { "works on", ALIGN_LEFT, 10, 0 } };
	struct table t = table_new(s->a, col, LEN(col));
	struct lookup_list in_sight = lookup_in_sight(s->a, s->moments->lookup, s->cycle, s->cycle);

	for (int u = 0; u < s->plan->device->nseus; u++) {
		struct buf b = buf_new(s->a);

		if (!plan_shows_unit(s->plan, u))
			continue;
		for (int k = 0; k < in_sight.n; k++) {
			int i = in_sight.v[k];
			const struct event *e = &s->events[i];

			if (e->seu != u || s->moments->issue[i] > s->at || s->moments->end[i] <= s->at ||
			    s->moments->end[i] == s->moments->n)
				continue;
			buf_printf(&b, "%s%s (%s%s)", b.len ? ", " : "", instance(s, e),
				lane_label(s->a, s->plan, e->lane, e->replica), e->start > s->cycle ? ", queued" : "");
		}
		TABLE_ROW(&t, s->plan->device->seu[u].name, b.len ? b.text : "-")[1].style = b.len ? PLAIN : FAINT;
	}
	pen_table(&s->pen, NULL, &t);
	pen_puts(&s->pen, "\n", PLAIN);
}

static struct table_cell slot_cell(const struct scene *s, const struct slot *x, bool flagged)
{
	static const struct {
		const char *word;
		struct style style;
	} of[] = {
		[SLOT_EMPTY] = { "-", { .fg = 245 } }, [SLOT_FILLING] = { "filling", { .fg = 179 } },
		[SLOT_FULL] = { "full", { .fg = 114, .attr = STYLE_BOLD } },
		[SLOT_READ] = { "read", { .fg = 208 } }, [SLOT_FREE] = { "free", { .fg = 245 } },
	};
	struct table_cell c = { padded(s, of[x->state].word, SLOT), of[x->state].style };
	const char *by;

	if (x->state == SLOT_EMPTY)
		return c;
	by = x->state == SLOT_READ && x->by != NONE ? arena_strf(s->a, " by %s", s->key[x->by].letter) : "";
	c.text = padded(s, arena_strf(s->a, "%lld %s%s%s", (long long)x->life, of[x->state].word, by,
		!flagged ? "" : x->fills % 2 ? " ¹" : " ⁰"), SLOT);
	return c;
}

/* How many slots of each ring there is space for. */
static int slots_shown(const struct scene *s)
{
	enum { INDENT = 2, GAP = 2, MORE = 4 };
	int name = text_width("ring"), most = 1, fit;

	for (int i = 0; i < s->moments->nrings; i++) {
		name = (int)max_i64(name, text_width(s->g->buffers.v[s->moments->ring[i]].name));
		most = (int)max_i64(most, s->plan->versions[s->moments->ring[i]]);
	}
	fit = (s->pen.width - INDENT - name) / (GAP + SLOT);
	if (fit < most)
		fit = (s->pen.width - INDENT - name - GAP - MORE) / (GAP + SLOT);
	return (int)max_i64(1, min_i64(min_i64(most, SLOTS_SHOWN), fit));
}

static void put_rings(struct scene *s)
{
	struct column col[SLOTS_SHOWN + 2] = { { .title = "ring" } };
	int shown = slots_shown(s);
	bool any = false;
	struct table t;

	for (int k = 0; k < shown; k++)
		col[1 + k].title = arena_strf(s->a, "slot %d", k);
	col[1 + shown].title = "";			/* how many there are more */
	t = table_new(s->a, col, shown + 2);
	for (int i = 0; i < s->moments->nrings; i++) {
		int buffer = s->moments->ring[i], versions = s->plan->versions[buffer];
		const struct buffer *b = &s->g->buffers.v[buffer];
		bool flagged = b->first != NONE && s->g->tasks.v[b->first].kind == TASK_LOAD;
		struct slot slots[VERSIONS_MAX];
		struct table_cell *row = table_row(&t);

		moments_slots(s->moments, s->at, buffer, slots);
		row[0].text = b->name;
		for (int k = 0; k < versions && k < shown; k++)
			row[1 + k] = slot_cell(s, &slots[k], flagged);
		if (versions > shown)
			row[1 + shown].text = arena_strf(s->a, "+%d", versions - shown);
		any |= flagged;
	}
	pen_table(&s->pen, NULL, &t);
	if (any)
		pen_puts(&s->pen, arena_strf(s->a, "  ⁰ ¹ how often it has been filled, modulo 2: the phase of its %s\n",
			target_flag_name(target_of(s->plan->device))), FAINT);
	pen_puts(&s->pen, "\n", PLAIN);
}

static void put_around(struct scene *s)
{
	const struct moments *m = s->moments;

	for (int i = s->at - AROUND; i <= s->at + 2 * AROUND; i++) {
		const struct moment *t = i >= 0 && i < m->n ? &m->v[i] : NULL;

		if (!t)
			continue;
		pen_puts(&s->pen, arena_strf(s->a, "%s %9s  %s %s\n", i == s->at ? "▸" : " ", unit_count(t->cycle).s,
			instance(s, &s->events[t->event]), t->end ? "complete" : "issued"), i == s->at ? BOLD : FAINT);
	}
}

/* Show all of it, or, on a small screen, what C-d and C-u scroll to. */
static void show_scrolled(struct own *own, const struct pen *pen, struct cells *out)
{
	struct cells all;
	int w, h;

	cells_measure(pen->out->len ? pen->out->text : "", &w, &h);
	cells_init(&all, pen->arena, out->w, (int)max_i64(h, 1));
	pen_show(pen, &all, 0, 0);
	own->height = out->h;
	own->top = (int)max_i64(0, min_i64(own->top, h - out->h));
	cells_blit(out, 0, 0, out->w, out->h, &all, 0, own->top);
	if (h > own->top + out->h)
		cells_text(out, out->w - 6, out->h - 1, 6, " ▼ C-d", BOLD);
	if (own->top)
		cells_text(out, out->w - 6, 0, 6, " ▲ C-u", BOLD);
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	struct scene s = { .v = v, .m = v->m, .a = &v->m->frame, .moments = &own->moments,
		.events = model_line(v->m)->events.v, .plan = v->m->now->tl->plan };

	make(v);
	follow_cursor(v);
	if (!own->moments.n)
		return;
	s.g = s.plan->graph;
	s.key = task_keys(s.a, s.g);
	s.at = own->at;
	s.cycle = own->moments.v[s.at].cycle;
	s.pen = frame_pen(v->m, out->w);
	put_head(&s);
	put_lanes(&s);
	put_units(&s);
	put_rings(&s);
	put_around(&s);
	show_scrolled(own, &s.pen, out);
}

/* The next moment of the same sTask. */
static int of_same_task(const struct own *own, const struct event *events, int step)
{
	int task = events[own->moments.v[own->at].event].task;

	for (int i = own->at + step; i >= 0 && i < own->moments.n; i += step)
		if (events[own->moments.v[i].event].task == task)
			return i;
	return own->at;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;
	const struct event *events = model_line(v->m)->events.v;

	make(v);
	follow_cursor(v);
	if (wheel_step(k)) {
		go(v, own->at + wheel_step(k));
		return true;
	}
	if (!own->moments.n)
		return false;
	switch ((int)a) {
	case ACT_STEP_NEXT: case ACT_RIGHT: go(v, own->at + 1); return true;
	case ACT_STEP_BACK: case ACT_LEFT: go(v, own->at - 1); return true;
	case ACT_DOWN: go(v, of_same_task(own, events, 1)); return true;
	case ACT_UP: go(v, of_same_task(own, events, -1)); return true;
	case ACT_PAGE_DOWN: go(v, own->at + JUMP); return true;
	case ACT_PAGE_UP: go(v, own->at - JUMP); return true;
	case ACT_HOME: go(v, 0); return true;
	case ACT_END: go(v, own->moments.n - 1); return true;
	case ACT_PANE_DOWN: own->top += (int)max_i64(1, own->height / 2); return true;
	case ACT_PANE_UP: own->top -= (int)max_i64(1, own->height / 2); return true;
	}
	return false;
}

const struct view_ops view_step = {
	.name = "step", .groups = GROUP_STEP, .size = sizeof(struct own), .lacks = lacks,
	.draw = draw, .act = act,
};
