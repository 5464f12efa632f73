/* Which cycles of a timeline a chart shows, and by which letter and colour each sTask is recognised. */
#include "draw/chart.h"
#include "draw/palette.h"

#include <stdlib.h>
#include <string.h>

enum {
	TASK_COLUMNS = 6,		/* of an sTask of the steady state, unless asked */
	SAMPLES = 4096,
	TIME_COLUMNS_MIN = 8,
	MANY = 6,			/* events per column from which on the overview is drawn */
};

bool event_is_async(const struct chart *c, const struct event *e)
{
	return c->d->seu[e->seu].async;
}

int64_t event_seu_end(const struct chart *c, const struct event *e)
{
	const struct seu *s = &c->d->seu[e->seu];

	if (!s->async || s->kind != SEU_MATRIX || c->t->measured)
		return e->end;
	return max_i64(e->start, e->end - (int64_t)s->latency);
}

bool chart_is_split(const struct chart *c)
{
	for (int i = 0; i < LANES_MAX; i++)
		if (c->split[i])
			return true;
	return false;
}

static int compare_cycles(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Median length of the events of the busiest loop, without copy engines, whose long latency would dominate; of all
 * events, if there are no others. `any`: of all. */
static int64_t typical_length(const struct chart *c, bool any)
{
	int64_t *length = ARENA_ARRAY(c->arena, SAMPLES, int64_t);
	int n = 0;

	for (int i = 0; i < c->line->events.n && n < SAMPLES; i++) {
		const struct event *e = &c->line->events.v[i];

		if (!event_is_sound(c->t->plan, e) || event_seu_end(c, e) == event_seu_begin(e))
			continue;
		if (!any && (c->g->tasks.v[e->task].loop != c->line->ii_loop || c->d->seu[e->seu].kind == SEU_COPY))
			continue;
		length[n++] = event_seu_end(c, e) - event_seu_begin(e);
	}
	if (!n)
		return any ? 1 : typical_length(c, true);
	qsort(length, (size_t)n, sizeof(*length), compare_cycles);
	return length[n / 2];
}

/* When every sTask of the busiest loop has completed once. */
static int64_t prologue_end(const struct chart *c)
{
	bool *seen = ARENA_ARRAY(c->arena, c->g->tasks.n, bool);
	int64_t end = 0;

	for (int i = 0; i < c->line->events.n; i++) {
		const struct event *e = &c->line->events.v[i];

		if (!event_is_sound(c->t->plan, e) || seen[e->task] || c->g->tasks.v[e->task].loop != c->line->ii_loop)
			continue;
		seen[e->task] = true;
		end = max_i64(end, e->end);
	}
	return end;
}

/* An sTask gets six columns, or down to four if two iterations of the steady state only fit then, or down to two if one
 * does: less than an iteration would hide what follows what. */
static int64_t choose_span(const struct chart *c)
{
	int64_t length = typical_length(c, false), span = max_i64(1, length * c->cols / TASK_COLUMNS);
	int64_t want = max_i64(prologue_end(c) - c->from, 0);
	int64_t ii = c->line->ii > 0 && c->line->ii < 1e15 ? (int64_t)c->line->ii : 0;

	want += 2 * ii;
	want = want > span ? min_i64(want, span * 3 / 2) : span;
	return ii > want ? min_i64(ii, span * 3) : want;
}

/* When the last work ends that a lane does or issues; after that, only what was issued goes on. */
static int64_t last_work(const struct chart *c)
{
	int64_t last = 0;

	for (int i = 0; i < c->line->events.n; i++) {
		const struct event *e = &c->line->events.v[i];

		if (event_is_placed(c->t->plan, e))
			last = max_i64(last, c->d->seu[e->seu].kind == SEU_COPY ? e->issue : e->end);
	}
	return last;
}

/* Where the steady state begins, or earlier if the window would reach beyond the last event or, where the steady
 * state is short, beyond the last work; 0 if there is none, or if all events fit. Sets c->steady. */
static int64_t steady_begin(struct chart *c)
{
	const struct phase_line *line = c->line;
	int64_t span = choose_span(c);
	int tiles = line->events.n ? line->events.v[line->events.n - 1].tile + 1 : 0;

	if (c->lookup->last <= span)
		return 0;
	for (int t = 0; t < tiles && line->ii_loop != NONE; t++) {
		int64_t begin, from, to, end, latest;

		if (!lookup_steady(c->lookup, t, &begin, &from, &to, &end))
			continue;
		c->from = from;
		span = choose_span(c);
		latest = max_i64((2 * (to - from) < span ? last_work(c) : c->lookup->last) - span, 0);
		c->steady = from > 0 && from <= latest;
		return min_i64(from, latest);
	}
	return 0;
}

static int64_t tile_begin(const struct chart *c, int tile)
{
	int64_t begin = INT64_MAX;

	for (int i = 0; i < c->line->events.n; i++)
		if (c->line->events.v[i].tile == tile && event_is_sound(c->t->plan, &c->line->events.v[i]))
			begin = min_i64(begin, c->line->events.v[i].ready);
	return begin == INT64_MAX ? 0 : begin;
}

/* Add what each warpgroup did. On the unit, those that follow each other without a pause are one bar, which belongs to the
 * last of them. */
static void add_parts(struct chart *c, int event)
{
	int first = c->seen.n, groups = c->line->events.v[event].nparts + 1;

	for (int g = 0; g < groups; g++) {
		VEC_PUSH(c->arena, &c->seen, ((struct seen){ *event_part(c->line, event, g), event, false }));
		c->seen.v[first + g].e.replica = (uint8_t)g;
		c->seen.v[first + g].e.before = 0;
	}
	for (int n = 0; n < groups; n++)	/* as long as some can be joined */
		for (struct seen *x = &c->seen.v[first]; x < &c->seen.v[first + groups]; x++)
			for (struct seen *y = &c->seen.v[first]; y < &c->seen.v[first + groups]; y++) {
				if (x == y || x->joined || y->joined || !event_is_async(c, &x->e) || x->e.end > y->e.end ||
				    event_seu_begin(&y->e) > event_seu_end(c, &x->e))
					continue;
				x->joined = true;
				y->e.before = (int32_t)max_i64(y->e.before, y->e.start - event_seu_begin(&x->e));
			}
}

/* By issue, like the events of a timeline. */
static int compare_seen(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return x->e.issue != y->e.issue ? (x->e.issue > y->e.issue) - (x->e.issue < y->e.issue) :
		x->event != y->event ? (x->event > y->event) - (x->event < y->event) :
		(x->e.group > y->e.group) - (x->e.group < y->e.group);
}

/* The event of a lane in one row. A bar on an asynchronous unit begins with the first warpgroup, which therefore is the one
 * that issues it. */
static void add_unsplit(struct chart *c, int event)
{
	struct seen x = { c->line->events.v[event], event, false };

	for (int g = 0; g < x.e.nparts && event_is_async(c, &x.e); g++) {
		x.e.issue = min_i64(x.e.issue, event_part(c->line, event, g)->issue);
		x.e.ready = min_i64(x.e.ready, event_part(c->line, event, g)->ready);
		x.e.end = max_i64(x.e.end, event_part(c->line, event, g)->end);
	}
	VEC_PUSH(c->arena, &c->seen, x);
}

static void find_seen(struct chart *c)
{
	const struct lookup_list list = lookup_in_sight(c->arena, c->lookup, c->from, c->to);

	memset(c->split, 0, sizeof(c->split));
	for (int i = 0; i < list.n; i++) {
		int lane = c->line->events.v[list.v[i]].lane;

		if (c->lookup->drifts[lane] && lookup_drifts(c->line, list.v[i]))
			c->split[lane] = c->lookup->drifts[lane];
	}
	c->seen.n = 0;
	for (int i = 0; i < list.n; i++) {
		const struct event *e = &c->line->events.v[list.v[i]];

		if (c->shown && !c->shown[e->task])
			continue;
		if (c->split[e->lane])
			add_parts(c, list.v[i]);
		else
			add_unsplit(c, list.v[i]);
	}
	if (chart_is_split(c))
		qsort(c->seen.v, (size_t)c->seen.n, sizeof(*c->seen.v), compare_seen);
}

void chart_set_window(struct chart *c, int64_t from, int64_t to)
{
	c->from = min_i64(max_i64(from, 0), CYCLES_MAX);
	c->to = max_i64(min_i64(to, CYCLES_MAX + 1), c->from + 1);
	find_seen(c);
}

void chart_init(struct chart *c, const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a)
{
	static const struct timeline_view usual = { .from = TIMELINE_STEADY };
	int phase;

	if (!v)
		v = &usual;
	phase = v->phase >= 0 && v->phase < t->nphases ? v->phase : 0;
	*c = (struct chart){ .t = t, .g = t->plan->graph, .d = t->plan->device, .arena = a,
		.flags = flags, .by = v->by };
	c->line = &t->phases[phase];
	c->key = task_keys(a, c->g);
	c->lookup = v->lookup;
	c->shown = v->shown;
	if (!c->lookup) {
		struct lookup *l = ARENA_NEW(a, struct lookup);

		lookup_init(a, l, t, phase);
		c->lookup = l;
	}
	c->deep = v->deep;
	c->left = chart_label_width(c) + 2;
	c->cols = (int)max_i64(width - c->left, TIME_COLUMNS_MIN);
	c->from = v->from == TIMELINE_STEADY ? steady_begin(c) : v->from;
	c->from = max_i64(c->from, v->tile > 0 ? tile_begin(c, v->tile) : 0);
	chart_set_window(c, c->from, v->to > 0 ? v->to : min_i64(c->from + choose_span(c), c->lookup->last));
	c->overview = v->overview && c->seen.n > MANY * c->cols ? v->overview : NULL;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "qk" of "mma_qk"; but "mma_2", as a number alone would be taken for an iteration. */
static const char *brief_name(const char *name)
{
	const char *last = strrchr(name, '_');

	return last && is_letter(last[1]) ? last + 1 : name;
}

/* Is it a letter that no other one has, and that cannot be taken for 0, 1, another letter, or a mark of a cause
 * (cause_mark)? */
static bool is_free(char c, const bool *taken)
{
	return c && !strchr("iIjJlLoOwud", c) && is_letter(c) && !taken[(unsigned char)c];
}

/* The first free letter of the brief name, of the name, of the alphabet. */
static char free_letter(const char *name, const bool *taken)
{
	const char *from[] = { brief_name(name), name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" };

	for (int i = 0; i < LEN(from); i++)
		for (const char *c = from[i]; *c; c++)
			if (is_free(*c, taken))
				return *c;
	return '*';
}

/* The second slice of a split sTask gets the capital of the first one's letter. */
static char letter_of(const struct graph *g, const struct task_key *key, int task, const bool *taken)
{
	const struct stask *s = &g->tasks.v[task];

	if (s->slice == 1 && task > 0 && g->tasks.v[task - 1].task == s->task) {
		char c = key[task - 1].letter[0];

		if (c >= 'a' && c <= 'z' && is_free((char)(c - 'a' + 'A'), taken))
			return (char)(c - 'a' + 'A');
	}
	return free_letter(s->name, taken);
}

/* The colour that the sTask has in pictures, too. */
static struct style bar_style(int ink)
{
	return (struct style){ .fg = picture_on(THEME_DARK, ink) == INK_BLACK ? 16 : 231,
		.bg = colour_of_256(ink_colour(THEME_DARK, ink)) };
}

/* Letters are unique in a phase; sTasks in loops, which are seen most, choose first. */
static void choose_letters(const struct graph *g, int phase, struct task_key *key)
{
	bool taken[256] = { 0 };

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < g->tasks.n; i++) {
			const struct stask *s = &g->tasks.v[i];

			if (s->phase != phase || (s->loop == NONE) != pass)
				continue;
			key[i].letter[0] = letter_of(g, key, i, taken);
			taken[(unsigned char)key[i].letter[0]] = key[i].letter[0] != '*';
		}
	}
}

struct task_key *task_keys(struct arena *a, const struct graph *g)
{
	static const char *const fill[] = {
		[TASK_LOAD] = "░", [TASK_MMA] = "▓", [TASK_COMPUTE] = "▒", [TASK_STORE] = "░",
	};
	struct task_key *key = ARENA_ARRAY(a, g->tasks.n, struct task_key);
	const uint8_t *ink = task_inks(a, g);

	for (int i = 0; i < g->program->phases.n; i++)
		choose_letters(g, i, key);
	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		key[i].brief = brief_name(s->name);
		if (strlen(key[i].brief) <= 1 && key[i].letter[0] != '*')	/* one letter stands for one sTask everywhere */
			key[i].brief = key[i].letter;
		key[i].fill = fill[s->kind];
		key[i].bar = bar_style(ink[i]);
		key[i].tick = (struct style){ .fg = key[i].bar.bg, .attr = STYLE_BOLD };
	}
	return key;
}

const char *cause_mark(int cause)
{
	static const char *const marks[CAUSES] = { [CAUSE_WAIT] = "w", [CAUSE_ISSUE_ORDER] = "o", [CAUSE_SEU] = "u",
		[CAUSE_MEMORY] = "mem", [CAUSE_DRAIN] = "d", [CAUSE_MEETING] = "b" };

	return cause > CAUSE_NONE && cause < CAUSES ? marks[cause] : "";
}

struct reason event_held_for(const struct plan *p, const struct event *e)
{
	struct reason r = { e->cause, e->cause_task };
	int found = 0;

	if (e->held == CAUSE_MEETING)
		return (struct reason){ e->held, e->held_task };
	if (e->cause != CAUSE_SEU && e->cause != CAUSE_MEMORY)
		return r;
	r = (struct reason){ CAUSE_WAIT, NONE };
	for (int i = 0; i < p->waits.n; i++) {
		if (p->waits.v[i].task != e->task)
			continue;
		r.task = found++ ? NONE : p->waits.v[i].on;
		r.cause = p->waits.v[i].when == WAIT_ISSUED ? CAUSE_ISSUE_ORDER : CAUSE_WAIT;
	}
	return found > 1 ? (struct reason){ CAUSE_WAIT, NONE } : r;
}

const char *reason_on(const struct plan *p, struct reason r)
{
	int entry = r.task >= 0 && r.task < p->graph->tasks.n ? plan_entry_of(p, r.task) : NONE;

	if (r.cause == CAUSE_MEETING && entry != NONE)
		return p->lanes.v[p->entries.v[entry].lane].name;
	return r.task >= 0 && r.task < p->graph->tasks.n ? p->graph->tasks.v[r.task].name : NULL;
}

const char *reason_text(struct arena *a, const struct plan *p, struct reason r)
{
	const char *known = reason_on(p, r), *on = known ? known : "another";

	switch (r.cause) {
	case CAUSE_WAIT: return arena_strf(a, "for %s", on);
	case CAUSE_ISSUE_ORDER: return arena_strf(a, "for the issue order, after %s", on);
	case CAUSE_SEU: return known ? arena_strf(a, "for its sEU, busy with %s", on) : "for its sEU";
	case CAUSE_MEMORY: return known ? arena_strf(a, "for memory, busy with %s", on) : "for memory";
	case CAUSE_DRAIN: return arena_strf(a, "for %s to drain", known ? on : "its own products");
	case CAUSE_MEETING: return arena_strf(a, "at a barrier for %s", known ? on : "another lane");
	default: return "";
	}
}

/* The events of a phase are in order of issue: how many of them are issued before that cycle. */
static int issued_before(const struct phase_line *p, int64_t cycle)
{
	int low = 0, high = p->events.n;

	while (low < high) {
		int middle = low + (high - low) / 2;

		if (p->events.v[middle].issue < cycle)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of the sTasks that an event waits for, the one that completed last among the events before it; NONE: none is near. */
static int last_awaited(const struct timeline *t, const struct event *e)
{
	enum { NEAR = 512 };		/* events; what was longer ago is not waited for */
	const struct event *last = NULL;

	for (int k = 0; k < t->nphases; k++) {
		const struct phase_line *p = &t->phases[k];
		int n = p->phase == t->plan->graph->tasks.v[e->task].phase ? issued_before(p, e->issue) : 0;

		for (int i = n - 1; i >= 0 && i >= n - NEAR; i--) {
			const struct event *x = &p->events.v[i];

			for (int w = 0; w < t->plan->waits.n; w++)
				if (t->plan->waits.v[w].task == e->task && t->plan->waits.v[w].on == x->task &&
				    x->end <= e->issue && (!last || x->end > last->end))
					last = x;
		}
	}
	return last ? last->task : NONE;
}

struct reason event_held_by(const struct timeline *t, const struct event *e)
{
	struct reason r = { e->held, e->held_task };

	if (t->measured || e->held == CAUSE_NONE)
		r = event_held_for(t->plan, e);
	if (r.cause == CAUSE_WAIT && r.task == NONE)
		r.task = last_awaited(t, e);
	return r;
}
