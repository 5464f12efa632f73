/* States of a plan, and what is selected in them. */
#include "explore/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "draw/units.h"
#include "explore/page.h"
#include "role/role.h"
#include "run/built.h"
#include "target/target.h"

/* ---- states ---- */

static struct state *state_new(struct model *m, struct state **out)
{
	*out = ARENA_OWNER(m->mem, struct state);
	(*out)->script = "";
	return *out;
}

void state_free(struct state *s)
{
	if (!s)
		return;
	timeline_free(s->own_tl);
	kernels_free(s->kernels);
	kernel_free(s->held);
	plan_free(s->own_plan);
	graph_free(s->own_graph);
	arena_release(&s->arena);
}

static void index_events(struct state *s)
{
	s->lookup = ARENA_ARRAY(&s->arena, s->tl->nphases, struct lookup);
	for (int i = 0; i < s->tl->nphases; i++)
		lookup_init(&s->arena, &s->lookup[i], s->tl, i);
}

/* Fill in problems and usage. A plan that cannot be checked is no error: `unchecked` says why. */
static enum err_code check_state(struct model *m, struct state *s, struct err *e)
{
	enum err_code code = lower_check(m->mem, s->plan, &s->arena, &m->stop, &s->held, &s->problems,
		&s->usage, &s->model_only, e);

	s->checked = !code;
	s->legal = !code && !s->problems.v.n;
	if (code && code != ERR_INTERRUPTED)
		s->unchecked = arena_strdup(&s->arena, e->msg);
	return code == ERR_INTERRUPTED ? code : OK;
}

enum err_code state_of_history(struct model *m, struct history *h, bool events, struct state **out, struct err *e)
{
	struct state *s = state_new(m, out);
	struct sim_options o = { .keep = events ? -1 : 0 };
	struct buf script = buf_new(&s->arena);
	enum err_code code;

	TRY(history_snapshot(h, &s->own_graph, &s->own_plan, e));
	s->graph = s->own_graph;
	s->plan = s->own_plan;
	plan_script(history_plan(h), &script);
	s->script = script.text;
	TRY(check_state(m, s, e));
	if (!s->legal)
		return OK;
	code = priced_run(m->mem, s->plan, NULL, &o, &m->stop, &s->kernels, &s->own_tl, e);
	if (code == ERR_INTERRUPTED)
		return code;
	if (code) {
		s->unchecked = arena_strdup(&s->arena, e->msg);
		return OK;
	}
	s->tl = s->own_tl;
	index_events(s);
	return OK;
}

void state_of_timeline(struct model *m, const struct timeline *t, const char *script, struct state **out)
{
	struct state *s = state_new(m, out);
	struct buf text = buf_new(&s->arena);
	struct err e;

	s->tl = t;
	s->plan = t->plan;
	s->graph = t->plan->graph;
	if (script)
		buf_puts(&text, script);
	else
		plan_script(t->plan, &text);
	s->script = text.text;
	if (check_state(m, s, &e))
		s->unchecked = arena_strdup(&s->arena, e.msg);
	index_events(s);
}

void state_of_graph(struct model *m, const struct graph *g, struct state **out)
{
	struct state *s = state_new(m, out);

	s->graph = g;
}

/* ---- the model ---- */

void model_init(struct model *m, struct mem *mem)
{
	*m = (struct model){ .mem = mem, .sel = { .event = NONE, .task = NONE }, .go = -1, .title = "" };
	settings_parse(&m->settings, "", "");
	arena_init(&m->frame, mem);
	arena_init(&m->arena, mem);
}

void model_free(struct model *m)
{
	if (m->base != m->now)
		state_free(m->base);
	state_free(m->now);
	state_free(m->next);
	for (int i = 0; i < m->kept.n; i++)
		arena_release(m->kept.v[i]);
	m->kept.n = m->kept.cap = 0;
	m->base = m->now = m->next = NULL;
	arena_release(&m->frame);
	arena_release(&m->arena);
}

struct arena *model_arena(struct model *m)
{
	struct arena *a = ARENA_NEW(&m->arena, struct arena);

	arena_init(a, m->mem);
	VEC_PUSH(&m->arena, &m->kept, a);
	return a;
}

/* ---- texts ---- */

/* Why there is no kernel of the plan; NULL if there is one. */
static const char *no_kernel(const struct state *s)
{
	if (!s->plan)
		return "there is no plan";
	if (s->checked && !s->legal)
		return "the plan is not legal";
	return s->model_only || !lower_has_target(s->plan->device) ? "no kernels are generated for this device" : NULL;
}

/* Lower the plan of a state, phase by phase, and print each role program, or the source made of it. */
static void put_kernels(struct model *m, struct state *s, bool source, struct buf *out)
{
	struct err e;

	for (int i = 0; i < s->plan->graph->program->phases.n; i++) {
		if (lower_plan(m->mem, s->plan, i, &m->stop, &s->held, &e)) {
			buf_printf(out, "%s\n", e.msg);
			return;
		}
		if (source) {
			struct source text;

			kernel_finish(s->held);
			backends[backend_for(s->plan->device)].emit(s->held->role, &m->frame, &text);
			buf_puts(out, text.text.text);
		} else {
			role_print(s->held->role, out);
		}
		kernel_free(s->held);
		s->held = NULL;
	}
}

const char *state_kernel_text(struct model *m, struct state *s)
{
	struct buf out;

	if (no_kernel(s))
		return no_kernel(s);
	if (!s->kernel) {
		buf_init(&out, &s->arena);
		put_kernels(m, s, false, &out);
		s->kernel = out.text;
	}
	return s->kernel;
}

const char *model_source_text(struct model *m)
{
	struct buf out = buf_new(&m->frame);

	if (no_kernel(m->now))
		return no_kernel(m->now);
	put_kernels(m, m->now, true, &out);
	return out.text;
}

/* "legal: 384 of 1,024 threads, ...": what an EU has of each resource, and what the plan takes. */
const char *model_usage_text(struct model *m)
{
	const struct usage *u = &m->now->usage;
	struct unit_text used, most;
	const struct vdevice *d;
	struct buf b = buf_new(&m->frame);
	int n;

	if (!m->now->plan || !m->now->checked)
		return m->now->unchecked ? m->now->unchecked : "";
	d = m->now->plan->device;
	n = model_problems(m)->v.n;
	if (m->now->legal)
		buf_puts(&b, "legal");
	else
		buf_printf(&b, "not legal: %d problem%s (8)", n, n == 1 ? "" : "s");
	if (!u->threads && !u->shared_bytes)	/* it is so wrong that nothing was counted */
		return b.text;
	/* without registers it has no kernel, which would add threads and memory */
	buf_printf(&b, "; %s%s of %s threads", u->registers ? "" : "at least ", unit_count(u->threads).s,
		unit_count(d->max_threads).s);
	used = unit_bytes((double)u->shared_bytes);
	most = unit_bytes((double)d->shared_bytes);
	if (strchr(used.s, ' ') && !strcmp(strchr(used.s, ' '), strchr(most.s, ' ')))
		*strchr(used.s, ' ') = '\0';	/* the same unit */
	buf_printf(&b, ", %s of %s shared", used.s, most.s);
	if (u->registers)		/* 0: not known of a plan that is not legal */
		buf_printf(&b, ", %s of %s registers", unit_count(u->registers).s, unit_count(d->registers).s);
	if (u->named_barriers)
		buf_printf(&b, ", %d of %d named barriers", u->named_barriers, d->named_barriers);
	if (u->flags)
		buf_printf(&b, ", %d %s%s", u->flags, target_flag_name(target_of(d)), u->flags == 1 ? "" : "s");
	return b.text;
}

bool model_message(struct model *m, bool wrong, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->message, sizeof(m->message), fmt, ap);
	va_end(ap);
	m->wrong = wrong;
	return !wrong;
}

void model_ask(struct model *m, const char *text, const char *answer, void (*then)(struct model *m, const char *answer))
{
	m->ask = (struct question){ .text = text, .then = then, .offered = answer[0] != 0 };
	snprintf(m->ask.answer, sizeof(m->ask.answer), "%s", answer);
}

/* ---- selection ---- */

const struct phase_line *model_line(const struct model *m)
{
	const struct timeline *t = m->now->tl;

	if (!t || !t->nphases)
		return NULL;
	return &t->phases[m->sel.phase >= 0 && m->sel.phase < t->nphases ? m->sel.phase : 0];
}

const struct lookup *model_lookup(const struct model *m)
{
	const struct phase_line *line = model_line(m);

	return line ? &m->now->lookup[line - m->now->tl->phases] : NULL;
}

struct cached_overview {
	struct computed computed;
	struct overview *overview;
};

struct overview *model_overview(struct model *m)
{
	enum { MANY = 2000 };
	const struct phase_line *line = model_line(m);
	int phase = (int)(line - m->now->tl->phases);
	struct cached_overview *c;
	uint64_t key;

	if (line->events.n <= MANY)
		return NULL;
	if (!m->overview)
		m->overview = ARENA_NEW(&m->arena, struct cached_overview);
	c = m->overview;
	key = hash_bytes(hash_mix(key_of_state(m->now), (uint64_t)phase), m->filter, strlen(m->filter));
	if (computed_begin(&c->computed, m, key)) {
		c->overview = overview_new(c->computed.arena, m->now->tl, phase, model_shown(m, m->now->plan));
		c->computed.made = true;
	}
	return c->overview;
}

/* ---- the filter ---- */

bool model_shows(const struct model *m, const struct plan *p, int task)
{
	int entry = plan_entry_of(p, task);
	const struct entry *e = entry == NONE ? NULL : &p->entries.v[entry];

	for (const char *s = m->filter + strspn(m->filter, " ,"); *s; s += strspn(s, " ,")) {
		char word[sizeof(m->filter)];
		size_t n = strcspn(s, " ,");

		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		if (strstr(p->graph->tasks.v[task].name, word) || (e &&
		    (strstr(p->lanes.v[e->lane].name, word) || strstr(p->device->seu[e->seu].name, word))))
			return true;
		s += n;
	}
	return !m->filter[0];
}

const bool *model_shown(struct model *m, const struct plan *p)
{
	bool *shown;

	if (!m->filter[0])
		return NULL;
	shown = ARENA_ARRAY(&m->frame, p->graph->tasks.n, bool);
	for (int t = 0; t < p->graph->tasks.n; t++)
		shown[t] = model_shows(m, p, t);
	return shown;
}

void model_filter(struct model *m, const char *words)
{
	char before[sizeof(m->filter)];
	int n = 0;

	if (!m->now->plan) {
		model_refuse(m, "a graph has no lanes to filter");
		return;
	}
	memcpy(before, m->filter, sizeof(before));
	snprintf(m->filter, sizeof(m->filter), "%s", words + strspn(words, " ,"));
	for (int t = 0; t < m->now->graph->tasks.n; t++)
		n += model_shows(m, m->now->plan, t);
	if (!n) {
		model_refuse(m, "no lane, unit or sTask has '%s' in its name", words);
		memcpy(m->filter, before, sizeof(before));
	}
	if (m->sel.task != NONE && !model_shows(m, m->now->plan, m->sel.task))
		m->sel.task = m->sel.event = NONE;
}

/* ---- more of the selection ---- */

const struct event *model_event(const struct model *m)
{
	const struct phase_line *line = model_line(m);

	if (!line || m->sel.event < 0 || m->sel.event >= line->events.n)
		return NULL;
	return &line->events.v[m->sel.event];
}

void model_select_event(struct model *m, int event)
{
	const struct event *e;

	m->sel.event = event;
	e = model_event(m);
	if (!e) {
		m->sel.event = NONE;
		return;
	}
	m->sel.task = e->task;
	m->sel.cursor = e->start;
}

void model_select_task(struct model *m, int task)
{
	const struct lookup *l = model_lookup(m);

	m->sel.task = task >= 0 && task < m->now->graph->tasks.n ? task : NONE;
	if (m->sel.task == NONE || !l)
		return;
	if (m->now->graph->tasks.v[task].phase != l->line->phase) {
		for (int i = 0; i < m->now->tl->nphases; i++)
			if (m->now->tl->phases[i].phase == m->now->graph->tasks.v[task].phase)
				m->sel.phase = i;
		l = model_lookup(m);
	}
	m->sel.event = lookup_near(l, &l->of_task[task], m->sel.cursor);
	if (m->sel.event != NONE)
		m->sel.cursor = l->line->events.v[m->sel.event].start;
}

bool model_find_task(struct model *m, const char *text, int direction)
{
	const struct graph *g = m->now->graph;
	int n = g->tasks.n, step = direction < 0 ? n - 1 : 1;
	int at = m->sel.task == NONE ? 0 : m->sel.task + (direction ? step : 0);

	for (int i = 0; i < n; i++, at += step) {
		if (!strstr(g->tasks.v[at % n].name, text) || (m->now->plan && !model_shows(m, m->now->plan, at % n)))
			continue;
		model_select_task(m, at % n);
		return true;
	}
	return false;
}
