/* Edits of the explored plan. Each is an edit of the history; then the new state is made, and the message says what
 * has changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/label.h"
#include "draw/units.h"
#include "explore/model.h"
#include "explore/positions.h"

const struct srcloc model_loc = { .file = "explorer", .line = 0 };

enum { WAITS_NAMED = 4 };

/* Can } and { change how many versions it has? */
static bool buffer_has_versions(const struct buffer *b)
{
	return b->loop != NONE && b->carry == NONE && b->first != NONE;
}

/* Write how many waits of `a` there are not in `b`, and which: " +2 (load_k for mma_qk, load_v for mma_pv)". */
static void put_waits_without(const struct plan *a, const struct plan *b, char sign, struct buf *out)
{
	struct buf names = buf_new(out->arena);
	int n = 0;

	for (int i = 0; i < a->waits.n; i++) {
		const char *task = a->graph->tasks.v[a->waits.v[i].task].name;
		const char *on = a->graph->tasks.v[a->waits.v[i].on].name;
		bool found = false;

		for (int k = 0; k < b->waits.n && !found; k++)
			found = !strcmp(b->graph->tasks.v[b->waits.v[k].task].name, task) &&
				!strcmp(b->graph->tasks.v[b->waits.v[k].on].name, on) && a->waits.v[i].distance ==
				b->waits.v[k].distance && a->waits.v[i].when == b->waits.v[k].when;
		if (!found && n++ < WAITS_NAMED)
			buf_printf(&names, "%s%s for %s", n > 1 ? ", " : "", task, on);
	}
	if (n > WAITS_NAMED)
		buf_printf(&names, " and %d more", n - WAITS_NAMED);
	if (n)
		buf_printf(out, " %c%d (%s)", sign, n, names.text);
}

/* Write which buffers have other versions now than before, but for those that `what` names. */
static void put_other_versions(const struct model *m, const char *what, const struct plan *before, struct buf *out)
{
	const struct plan *now = m->now->plan;
	int n = 0;

	for (int i = 0; i < now->graph->buffers.n && strncmp(what, "plan:", 5); i++) {
		const struct buffer *b = &now->graph->buffers.v[i];
		int was = graph_find_buffer(before->graph, b->name), versions = now->versions[i];
		const char *text = arena_strf(out->arena, "%s: %d version%s", b->name, versions, versions == 1 ? "" : "s");

		if (was == NONE || before->versions[was] == versions || !strcmp(what, text))
			continue;
		buf_printf(out, "%s%s", n++ ? ", " : ", also ", text);
	}
}

/* "} on 'mma_qk' adds one, ", after a problem that says that a buffer has too few versions; "" if } does not give it
 * more. */
static const char *key_for_versions(struct model *m, const struct problem *x)
{
	const struct graph *g = m->now->graph;
	const struct buffer *b = NULL;

	if (x && x->code == PROBLEM_VERSIONS && x->edge != NONE)
		b = &g->buffers.v[g->edges.v[x->edge].buffer];
	if (!b || !buffer_has_versions(b) || m->now->plan->versions[b - g->buffers.v] >= VERSIONS_MAX)
		return "";
	return b->first == m->sel.task ? "} adds one, " :
		arena_strf(&m->frame, "} on '%s' adds one, ", g->tasks.v[b->first].name);
}

/* Say how time, II, versions and waits have changed, or what is not legal now. */
static void report_change(struct model *m, const char *what, const struct state *before)
{
	const struct state *now = m->now;
	struct buf b = buf_new(&m->frame), waits = buf_new(&m->frame);

	buf_printf(&b, "%s: ", what);
	if (!now->legal) {
		const struct problems *shown = model_problems(m);
		const struct problem *first = shown->v.n ? &shown->v.v[0] : NULL;

		model_refuse(m, "%snot legal: %s (%s8: all problems, f: repair, u: undo)", b.text, first ?
			first->message : now->unchecked,
			key_for_versions(m, first));
		return;
	}
	if (before->tl && before->tl->seconds > 0 && now->tl) {
		const struct phase_line *one = timeline_longest(before->tl), *two = timeline_longest(now->tl);
		double a = one->ii, z = two->ii;

		buf_printf(&b, "%s -> %s (%s)", unit_seconds(before->tl->seconds).s, unit_seconds(now->tl->seconds).s,
			unit_change(now->tl->seconds / before->tl->seconds - 1).s);
		if (a > 0 && z > 0 && fabs(a - z) >= 0.5 && phases_iterate_alike(before->tl, one, now->tl, two))
			buf_printf(&b, ", II %s -> %s", unit_rounded(a).s, unit_rounded(z).s);
	} else if (now->tl) {
		const struct timeline *first = m->base != now ? m->base->tl : NULL;

		buf_printf(&b, "legal, %s", unit_seconds(now->tl->seconds).s);
		if (first && first->seconds > 0 && !first->logical)	/* the state before has no time to compare with */
			buf_printf(&b, "; %s %s (%s)", m->base_given ? m->base_name : "before", unit_seconds(first->seconds).s,
				unit_change(now->tl->seconds / first->seconds - 1).s);
	}
	put_other_versions(m, what, before->plan, &b);
	put_waits_without(now->plan, before->plan, '+', &waits);
	put_waits_without(before->plan, now->plan, '-', &waits);
	model_say(m, "%s%s%s", b.text, waits.len ? ", waits" : "", waits.len ? waits.text : "");
}

/* ---- the new state ---- */

/* Select what was selected before, by name. */
static void keep_selection(struct model *m, const struct state *before)
{
	const char *name = m->sel.task == NONE ? NULL : before->graph->tasks.v[m->sel.task].name;
	int task = name ? graph_find_task(m->now->graph, name) : NONE;
	const struct event *e = NULL;
	int seq = 0;

	if (before->tl && m->sel.event != NONE && m->sel.phase < before->tl->nphases) {
		e = &before->tl->phases[m->sel.phase].events.v[m->sel.event];
		seq = e->seq;
	}
	m->sel.event = NONE;
	m->sel.task = task;
	if (m->now->tl && m->sel.phase >= m->now->tl->nphases)
		m->sel.phase = 0;
	if (task == NONE || !m->now->tl)
		return;
	model_select_task(m, task);
	if (e && model_lookup(m)->of_task[task].n > seq)
		model_select_event(m, model_lookup(m)->of_task[task].v[seq]);
}

/* After an edit of the history: make the new state and show it. */
static void show_edit(struct model *m, const char *what)
{
	struct state *before = m->now;
	struct err e;

	if (state_of_history(m, m->history, true, &m->next, &e)) {
		state_free(m->next);
		m->next = NULL;
		history_return(m->history, m->at);
		*m->interrupted = 0;
		model_refuse(m, "%s: %s; the plan is as it was", what, e.msg);
		return;
	}
	m->now = m->next;
	m->next = m->base == before ? NULL : before;	/* freed when the message is made */
	m->at = history_mark(m->history);
	keep_selection(m, before);
	report_change(m, what, before);
	state_free(m->next);
	m->next = NULL;
	positions_close(m);
}

/* The end of every edit: show its error, or the new state. */
static void finish_edit(struct model *m, enum err_code code, const struct err *e, const char *what)
{
	if (code)
		model_refuse(m, "%s: %s", what, e->msg);
	else
		show_edit(m, what);
}

bool model_can_edit(struct model *m)
{
	return m->history || model_refuse(m, "this cannot be edited, because it is %s; open a plan or a simulated "
			"timeline", m->now->plan ? "measured, or its plan has been edited since" : "a graph");
	return m->history != NULL;
}

/* Is an sTask selected that is in the plan? If not, the message says so. */
static bool has_entry(struct model *m)
{
	if (!model_can_edit(m))
		return false;
	if (m->sel.task == NONE || plan_entry_of(m->now->plan, m->sel.task) == NONE)
		return model_refuse(m, "first select an sTask that is in the plan");
	return true;
}

/* ---- moving ---- */

const char *model_moved_name(struct model *m, int task)
{
	const struct stask *s = &m->now->graph->tasks.v[task];
	const char *dot = strrchr(s->name, '.');

	if (s->slices <= 1 || !dot || m->each_part)
		return s->name;
	return arena_strf(&m->frame, "%.*s", (int)(dot - s->name), s->name);
}

/* The name of another sTask, as the moved one is named: of all its slices, or of one. */
static const char *neighbour_name(struct model *m, const char *name)
{
	int t = name ? graph_find_task(m->now->graph, name) : NONE;

	return t == NONE ? name : model_moved_name(m, t);
}

int model_extra_versions(const struct model *m, int task, enum extra_versions which, struct versions_of *out, int max)
{
	const struct plan *p = m->now->plan;
	const struct graph *g = p->graph;
	int n = 0;

	for (int i = 0; i < g->buffers.n && n < max && which; i++) {
		const struct buffer *b = &g->buffers.v[i];
		bool used = false;

		if (b->loop == NONE || b->carry != NONE || plan_scope(p, i) == SCOPE_SHARED)
			continue;
		for (int t = 0; t < g->tasks.n; t++) {
			const struct stask *s = &g->tasks.v[t];

			if (s->task != g->tasks.v[task].task || (m->each_part && t != task))
				continue;
			used |= which == EXTRA_OF_READS ? stask_reads(s, i) : ints_hold(s->writes.v, s->writes.n, i);
		}
		if (used && p->versions[i] < VERSIONS_MAX)
			out[n++] = (struct versions_of){ b->name, p->versions[i] + 1 };
	}
	return n;
}

void model_move(struct model *m, const struct move *how, enum extra_versions extra)
{
	struct versions_of v[16];
	struct move move = *how;
	enum err_code code;
	const char *name;
	struct err e;
	int n;

	if (!has_entry(m))
		return;
	name = model_moved_name(m, m->sel.task);
	move.before = neighbour_name(m, how->before);
	move.after = neighbour_name(m, how->after);
	n = model_extra_versions(m, m->sel.task, extra, v, LEN(v));
	code = history_move(m->history, &name, 1, &move, true, &m->stop, model_loc, &e);
	if (!code && n && !history_versions(m->history, v, n, model_loc, &e)) {
		history_join(m->history, 2);
		if (!history_move(m->history, &name, 1, &move, true, &m->stop, model_loc, &e))
			history_join(m->history, 2);
	}
	finish_edit(m, code, &e, name);
}

void model_shift(struct model *m, int by)
{
	const struct plan *p = m->now->plan;

	if (!has_entry(m))
		return;
	model_move(m, &(struct move){ .set_at = true,
		.at = p->entries.v[plan_entry_of(p, m->sel.task)].at + by }, EXTRA_NONE);
}

bool model_is_neighbour(const struct model *m, const struct entry *e, const struct stask *s)
{
	const struct stask *t = &m->now->graph->tasks.v[e->task];

	return t->phase == s->phase && t->loop == s->loop && (m->each_part ? t != s : t->task != s->task);
}

/* The entry before (-1) or after (1) another one in the same lane and loop; slices that are moved together are
 * skipped. NONE. */
static int neighbour(const struct model *m, int entry, int by)
{
	const struct plan *p = m->now->plan;
	const struct entry *e = &p->entries.v[entry];
	const struct stask *s = &p->graph->tasks.v[e->task];

	for (int i = entry + by; i >= 0 && i < p->entries.n; i += by)
		if (p->entries.v[i].lane == e->lane && model_is_neighbour(m, &p->entries.v[i], s))
			return i;
	return NONE;
}

/* The selected sTask has no neighbour on that side, among which are only those of its loop, or those outside of loops. */
static void refuse_end(struct model *m, int by)
{
	const struct plan *p = m->now->plan;
	const struct entry *e = &p->entries.v[plan_entry_of(p, m->sel.task)];
	const struct stask *s = &p->graph->tasks.v[e->task];
	const char *end = by < 0 ? "first" : "last", *lane = p->lanes.v[e->lane].name;
	bool has_loop = false;

	for (int i = 0; i < p->entries.n; i++)
		has_loop |= p->entries.v[i].lane == e->lane && p->graph->tasks.v[p->entries.v[i].task].loop != NONE;
	if (s->loop != NONE)
		model_refuse(m, "'%s' is already the %s of loop %s on %s; sTasks do not leave their loop", s->name, end,
			label_loop(&m->frame, p->graph->program, s->loop), lane);
	else if (has_loop)
		model_refuse(m, "'%s' is already the %s outside loops on %s; it does not enter the loop", s->name, end, lane);
	else
		model_refuse(m, "'%s' is already the %s on %s", s->name, end, lane);
}

void model_reorder(struct model *m, int by)
{
	const struct plan *p = m->now->plan;
	const char *name;
	int other;

	if (!has_entry(m))
		return;
	other = neighbour(m, plan_entry_of(p, m->sel.task), by);
	if (other == NONE) {
		refuse_end(m, by);
		return;
	}
	name = p->graph->tasks.v[p->entries.v[other].task].name;
	model_move(m, by < 0 ? &(struct move){ .before = name } : &(struct move){ .after = name }, EXTRA_NONE);
}

void model_change_lane(struct model *m)
{
	const struct plan *p = m->now->plan;
	bool each_part = m->each_part;
	int lane;

	if (!has_entry(m))
		return;
	if (p->lanes.n < 2) {
		model_refuse(m, "there is no other lane");
		return;
	}
	lane = (p->entries.v[plan_entry_of(p, m->sel.task)].lane + 1) % p->lanes.n;
	m->each_part = true;			/* slices can be on different lanes */
	model_move(m, &(struct move){ .lane = p->lanes.v[lane].name }, EXTRA_NONE);
	m->each_part = each_part;
}

/* ---- rings, waits, tiles ---- */

/* "; } on 'load_v' is for 'v', which it reads": where the versions are that an sTask can use; "" if there are none. */
static const char *way_to_versions(struct model *m, const struct stask *s)
{
	const struct graph *g = m->now->graph;

	for (int i = s->reads.n - 1; i >= 0; i--) {
		const struct buffer *b = &g->buffers.v[s->reads.v[i]];

		if (buffer_has_versions(b))
			return arena_strf(&m->frame, "; } on '%s' is for '%s', which it reads", g->tasks.v[b->first].name, b->name);
	}
	return "";
}

/* No buffer that the sTask writes has versions that the key can change: say why, and what does. */
static void refuse_deepening(struct model *m, const struct stask *s)
{
	const struct graph *g = m->now->graph;
	const struct buffer *b = s->writes.n ? &g->buffers.v[s->writes.v[0]] : NULL;

	if (!b)
		model_refuse(m, "'%s' writes memory, and no buffer%s", s->name, way_to_versions(m, s));
	else if (b->carry != NONE)
		model_refuse(m, "'%s' continues '%s' of the iteration before, so that it has one version%s", s->name, b->name,
			way_to_versions(m, s));
	else
		model_refuse(m, "'%s' is written once a tile; plan:buffers{%s=2} in the shell gives it versions", b->name, b->name);
}

void model_deepen(struct model *m, int by)
{
	const struct plan *p = m->now->plan;
	struct versions_of v[16];
	const struct stask *s;
	int n = 0;
	struct err e;

	if (!has_entry(m))
		return;
	s = &p->graph->tasks.v[m->sel.task];
	for (int i = 0; i < p->graph->buffers.n && n < LEN(v); i++) {
		const struct buffer *b = &p->graph->buffers.v[i];
		const struct stask *maker = &p->graph->tasks.v[b->first];

		if (b->loop == NONE || b->carry != NONE || maker->task != s->task ||
		    (m->each_part && b->first != m->sel.task))
			continue;
		v[n++] = (struct versions_of){ b->name, p->versions[i] + by };
		if (p->versions[i] + by < 1 || p->versions[i] + by > VERSIONS_MAX) {
			model_refuse(m, "'%s' already has %d version%s", b->name, p->versions[i],
				p->versions[i] == 1 ? "" : "s");
			return;
		}
	}
	if (!n) {
		refuse_deepening(m, s);
		return;
	}
	finish_edit(m, history_versions(m->history, v, n, model_loc, &e), &e, arena_strf(&m->frame,
		"%s: %d version%s", v[0].buffer, v[0].versions, v[0].versions == 1 ? "" : "s"));
}

const char *model_waits(struct model *m)
{
	const struct plan *p = m->now->plan;
	struct buf b = buf_new(&m->frame);

	if (!has_entry(m))
		return NULL;
	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].task == m->sel.task)
			buf_printf(&b, "%s%s", b.len ? " " : "", p->graph->tasks.v[p->waits.v[i].on].name);
	return b.len ? b.text : "";
}

/* The one sTask whose name begins so, or else that has the text in its name, of those in `names` (separated by spaces) if
 * that is given; else the text as it is. */
static const char *completed(struct model *m, const char *text, const char *names)
{
	const struct graph *g = m->now->graph;
	const char *begins = NULL, *has = NULL;
	int nbegin = 0, nhave = 0;

	if (!text[0])
		return text;
	for (int i = 0; i < g->tasks.n; i++) {
		const char *name = g->tasks.v[i].name;
		size_t n = strlen(name);
		bool among = !names;

		if (!strcmp(name, text))
			return text;
		for (const char *at = names ? strstr(names, name) : NULL; at && !among; at = strstr(at + 1, name))
			among = (at == names || at[-1] == ' ') && (!at[n] || at[n] == ' ');
		if (!among || !strstr(name, text))
			continue;
		has = name;
		nhave++;
		if (!strncmp(name, text, strlen(text))) {
			begins = name;
			nbegin++;
		}
	}
	return nbegin == 1 ? begins : !nbegin && nhave == 1 ? has : text;
}

void model_wait(struct model *m, const char *on, bool add)
{
	struct wait_on w = { .task = on, .distance = DISTANCE_AUTO };
	const char *name, *waits;
	enum err_code code;
	struct err e;

	if (!has_entry(m))
		return;
	name = m->now->graph->tasks.v[m->sel.task].name;
	waits = model_waits(m);
	on = completed(m, on, add ? NULL : waits);
	code = add ? history_wait(m->history, name, &w, 1, model_loc, &e) :
		history_unwait(m->history, name, on, model_loc, &e);
	if (code)
		model_refuse(m, "%s%s%s%s", e.msg, add ? "" : e.msg[0] && e.msg[strlen(e.msg) - 1] == '?' ? " " : "; ",
			add ? "" : waits[0] ? "it waits for " : "it waits for nothing", add ? "" : waits);
	else
		show_edit(m, arena_strf(&m->frame, "%s %s %s", name, add ? "waits for" : "no longer waits for", on));
}

/* "m=128 n=64": axes that are not named keep their extents. */
static bool read_tile(struct model *m, const char *words, struct tiling *t)
{
	const struct program *p = m->now->graph->program;
	bool given[AXES_MAX] = { 0 };

	*t = m->now->graph->tiling;
	for (const char *s = words + strspn(words, " ,"); *s; s += strspn(s, " ,")) {
		size_t n = strcspn(s, "= ,"), digits = s[n] == '=' ? strspn(s + n + 1, "0123456789") : 0;
		const char *name = arena_strf(&m->frame, "%.*s", (int)n, s), *end = s + n + 1 + digits;
		int axis = program_find_axis(p, name);

		if (axis == NONE)
			return model_refuse(m, "'%s' is not an axis of %s; write a tile like m=128 n=64", name,
				p->name);
		if (!digits || digits > 15)
			return model_refuse(m, "'%s' needs an extent, as in %s=64", name, name);
		if (*end && !strchr(" ,", *end))
			return model_refuse(m, "'%.*s' is not an extent of '%s': numbers end with a space, as in "
				"m=128 n=64", (int)strcspn(s + n + 1, " ,"), s + n + 1, name);
		if (given[axis])
			return model_refuse(m, "'%s' has two extents", name);
		given[axis] = true;
		t->extent[axis] = strtoll(s + n + 1, NULL, 10);
		if (t->extent[axis] < 1)
			return model_refuse(m, "the extent of '%s' must be at least 1", name);
		s = end;
	}
	return true;
}

void model_tile(struct model *m, const char *words)
{
	struct tiling t;
	struct err e;

	if (!model_can_edit(m) || !read_tile(m, words, &t))
		return;
	finish_edit(m, history_propagate(m->history, &t, model_loc, &e), &e, arena_strf(&m->frame, "propagate %s", words));
}

/* By what plan:suggest() gives, as y does, so that both say the same. */
void model_repair(struct model *m)
{
	const char *what;
	bool changed;

	if (!model_can_edit(m))
		return;
	if (m->now->legal || !m->now->problems.v.n) {
		model_say(m, "the plan is legal: nothing to repair");
		return;
	}
	what = m->calls.repair ? m->calls.repair(m, &changed) : NULL;
	if (what && changed)
		show_edit(m, what);
	else if (what)
		model_refuse(m, "%s", what);
}

void model_improve(struct model *m, const char *pinned)
{
	const char *what;
	bool changed;

	if (!model_can_edit(m))
		return;
	if (!m->now->legal) {
		model_refuse(m, "the plan is not legal: f tries to make it so, y lists what would");
		return;
	}
	what = m->calls.improve ? m->calls.improve(m, pinned, &changed) : NULL;
	if (what && changed)
		show_edit(m, what);
	else if (what)
		model_say(m, "%s: nothing better was found", what);
}

/* The text of a line up to the next tab or its end, which *at is moved behind. */
static const char *next_text(struct arena *a, const char **at, const char *end)
{
	size_t n = strcspn(*at, end);
	const char *text = arena_strf(a, "%.*s", (int)n, *at);

	*at += n + ((*at)[n] != '\0');
	return text;
}

bool model_try_changes(struct model *m)
{
	struct state *s = m->now;
	const char *text;

	if (!model_can_edit(m))
		return false;
	if (s->why)
		return true;
	text = m->calls.changes ? m->calls.changes(m) : NULL;
	if (!text)
		return false;
	s->why = next_text(&s->arena, &text, "\n");
	while (*text) {
		struct change_tried c;

		c.gain = next_text(&s->arena, &text, "\t");
		c.statements = next_text(&s->arena, &text, "\t");
		c.reason = next_text(&s->arena, &text, "\n");
		VEC_PUSH(&s->arena, &s->changes, c);
	}
	m->message[0] = '\0';
	return true;
}

/* What is shown of a problem keeps all that the picture of the problem needs. */
static void read_problems(struct state *s, const char *text)
{
	while (*text) {
		int number = atoi(next_text(&s->arena, &text, "\t"));
		const char *message = next_text(&s->arena, &text, "\t"), *hint = next_text(&s->arena, &text, "\n");
		struct problem *x;

		if (number < 1 || number > s->problems.v.n)
			continue;
		x = VEC_ADD(&s->arena, &s->shown.v);
		*x = s->problems.v.v[number - 1];
		x->message = message;
		x->hint = hint;
	}
}

const struct problems *model_problems(struct model *m)
{
	struct state *s = m->now;
	const char *text = NULL;

	if (s->shown_made)
		return &s->shown;
	s->shown_made = true;
	s->shown.notes = s->problems.notes;
	if (m->history && s->problems.v.n && m->calls.problems)
		text = m->calls.problems(m);
	if (text)
		read_problems(s, text);
	if (!s->shown.v.n)
		s->shown.v = s->problems.v;
	return &s->shown;
}

void model_apply(struct model *m, int change)
{
	if (m->calls.apply && m->calls.apply(m, arena_strf(&m->frame, "%d", change + 1)))
		show_edit(m, arena_strdup(&m->frame, m->now->changes.v[change].statements));
}

/* ---- back and forth ---- */

void model_undo(struct model *m, bool redo)
{
	if (!model_can_edit(m))
		return;
	if (redo ? !history_redo(m->history) : history_is_at(m->history, m->opened) || !history_undo(m->history))
		model_refuse(m, redo ? "nothing to redo" : "nothing to undo since this was opened");
	else
		show_edit(m, redo ? "redo" : "undo");
}

bool model_is_changed(const struct model *m)
{
	return m->history && (strcmp(m->now->script, m->saved) ||
		memcmp(&m->now->graph->tiling, &m->saved_tile, sizeof(m->saved_tile)));
}

void model_discard(struct model *m)
{
	if (m->history)
		history_return(m->history, m->opened);
	m->saved = m->now->script;		/* nothing is unsaved */
	m->saved_tile = m->now->graph->tiling;
}

void model_set_base(struct model *m)
{
	if (m->base != m->now)
		state_free(m->base);
	m->base = m->now;
	m->base_given = false;
	model_say(m, "from now on compared with this plan");
}

bool model_save(struct model *m, const char *path, bool overwrite)
{
	const char *loads = m->calls.save ? m->calls.save(m, path, overwrite) : NULL;

	if (!loads)
		return false;
	m->saved = arena_strdup(&m->arena, m->now->script);
	m->saved_tile = m->now->graph->tiling;
	return model_say(m, "saved as %s%s: %s reads it", path,
		m->now->checked && !m->now->legal ? ", which is not legal" : "", loads);
}

void model_run(struct model *m)
{
	const struct timeline *t;

	if (!m->now->plan || !m->now->legal) {
		model_refuse(m, "the plan is not legal, so it cannot be run");
		return;
	}
	t = m->calls.measure ? m->calls.measure(m) : NULL;
	if (!t)
		return;
	m->measured = t;
	m->measured_of = arena_strdup(&m->arena, m->now->script);
}
