/* The problems of the plan, and a picture of the selected one. */
#include <string.h>

#include "draw/label.h"
#include "draw/pen.h"
#include "explore/page.h"
#include "explore/view.h"

enum { SIDE_MIN = 130, NAMES_MAX = 16 };	/* a message of a deadlock names fewer sTasks (plan/findings.h) */

struct own {
	struct page list, picture;
	int *line;			/* by problem: its first line; then where the last ends. In the list's arena */
	int at;				/* selected problem; notes follow problems */
};

static int count(struct model *m)
{
	const struct problems *p = model_problems(m);

	return p->v.n + p->notes.n;
}

static const struct problem *problem_at(struct model *m, int i)
{
	const struct problems *p = model_problems(m);

	return i < p->v.n ? &p->v.v[i] : i < count(m) ? &p->notes.v[i - p->v.n] : NULL;
}

static const char *lacks(const struct model *m)
{
	if (!m->now->plan)
		return "there is no plan";
	if (!m->now->checked)
		return m->now->unchecked ? m->now->unchecked : "the plan has not been checked";
	return m->now->problems.v.n || m->now->problems.notes.n ? NULL : "the plan is legal: there are no problems";
}

static void put_problem(struct model *m, int i, struct pen *pen)
{
	const struct problem *x = problem_at(m, i);
	bool note = i >= model_problems(m)->v.n;
	const char *name = problem_name(x->code);

	pen_puts(pen, note ? "note " : arena_strf(pen->arena, "%d ", i + 1), BOLD);
	pen_puts(pen, name, (struct style){ .fg = note ? 179 : 203, .attr = STYLE_BOLD });
	pen_puts(pen, arena_strf(pen->arena, "  %s\n", loc_text(pen->arena, x->loc)), FAINT);
	pen_wrap(pen, "  ", 2, x->message ? x->message : "");
	if (x->hint && x->hint[0])
		pen_wrap(pen, "  → ", 4, x->hint);
}

static void make_list(struct view *v, int w)
{
	struct own *own = v->own;
	int n = count(v->m), *line, cols;
	struct pen pen;

	if (!page_begin(&own->list, v->m, key_of_state(v->m->now), w, &pen))
		return;
	own->line = NULL;		/* page_end frees it */
	line = ARENA_ARRAY(&v->m->frame, n + 1, int);
	for (int i = 0; i < n; i++) {
		put_problem(v->m, i, &pen);
		cells_measure(pen.out->text, &cols, &line[i + 1]);
	}
	page_end(&own->list, &pen, v->m->now->graph);
	own->line = arena_copy(own->list.arena, line, (size_t)n + 1, sizeof(*line));
}

/* ---- pictures ------------------------------------------------------------------- */

struct picture {
	const struct plan *plan;
	const struct graph *g;
	const struct problem *x;
	struct pen pen;
	int task[NAMES_MAX], n;	/* that the problem is about, in order */
};

static int lane_of(const struct picture *p, int task)
{
	int entry = plan_entry_of(p->plan, task);

	return entry == NONE ? NONE : p->plan->entries.v[entry].lane;
}

static const char *lane_name(const struct picture *p, int task)
{
	return lane_of(p, task) == NONE ? "-" : p->plan->lanes.v[lane_of(p, task)].name;
}

/* Find the sTasks whose names are quoted in the message: of most problems only these say all that it is about. */
static void read_names(struct picture *p, struct arena *a)
{
	const char *s = p->x->message;

	while (s && p->n < NAMES_MAX && (s = strchr(s, '\''))) {
		size_t n = strcspn(s + 1, "'");
		int task = graph_find_task(p->g, arena_strf(a, "%.*s", (int)n, s + 1));

		if (task != NONE && !ints_hold(p->task, p->n, task))
			p->task[p->n++] = task;
		s += n + 1 + (s[n + 1] == '\'');
	}
}

/* Why an sTask comes after another one. */
static const char *reason_for_order(const struct picture *p, int task, int on)
{
	const struct plan *pl = p->plan;
	const char *other = p->g->tasks.v[on].name;

	for (int i = 0; i < pl->waits.n; i++) {
		const struct wait *w = &pl->waits.v[i];
		int d;

		if (w->task != task || w->on != on)
			continue;
		d = wait_distance(pl, w);
		return arena_strf(p->pen.arena, "waits for %s%s%s", other, d ? arena_strf(p->pen.arena,
			" %d iteration%s back", d, d == 1 ? "" : "s") : "",
			w->when == WAIT_ISSUED ? ", its issue" : "");
	}
	if (lane_of(p, task) != NONE && lane_of(p, task) == lane_of(p, on))
		return arena_strf(p->pen.arena, "comes after %s in the order of %s", other, lane_name(p, on));
	return arena_strf(p->pen.arena, "comes after %s", other);
}

static void put_circle(struct picture *p)
{
	int name = 0, lane = 0;

	for (int i = 0; i < p->n; i++) {
		name = (int)max_i64(name, text_width(p->g->tasks.v[p->task[i]].name));
		lane = (int)max_i64(lane, text_width(lane_name(p, p->task[i])));
	}
	pen_puts(&p->pen, "each waits for the next, the last for the first\n", FAINT);
	for (int i = 0; i < p->n; i++) {
		int task = p->task[i], next = p->task[(i + 1) % p->n];
		const char *line = !i ? "  ┌▸ " : i == p->n - 1 ? "  └─ " : "  │  ";

		pen_puts(&p->pen, p->n == 1 ? "  ↺ " : line, PLAIN);
		text_fit(p->pen.out, lane_name(p, task), lane + 2, ALIGN_LEFT, 0);
		text_fit(p->pen.out, p->g->tasks.v[task].name, name + 2, ALIGN_LEFT, 0);
		pen_puts(&p->pen, arena_strf(p->pen.arena, "%s\n", reason_for_order(p, task, next)), FAINT);
	}
}

/* "slot 1 of k": where the value is. Only "k" if the iterations of the sTask's loop are not the lives of the buffer. */
static const char *slot_of(const struct picture *p, int task, int buffer, long long iteration)
{
	const struct buffer *b = &p->g->buffers.v[buffer];

	if (p->g->tasks.v[task].loop != b->loop || p->plan->versions[buffer] < 2)
		return b->name;
	return arena_strf(p->pen.arena, "slot %lld of %s", iteration % p->plan->versions[buffer], b->name);
}

static const char *missing_text(enum problem_code code)
{
	switch ((int)code) {
	case PROBLEM_MISPLACED_WAIT: return "  ┊ its wait is for another iteration";
	case PROBLEM_VERSIONS: return "  ┊ there are too few versions";
	case PROBLEM_OFFSET: return "  ┊ the order is the other way round";
	default: return "  ┊ there is no wait between them";
	}
}

/* The instance that must be first, what is missing, and the instance that may come too early. */
static void put_race(struct picture *p)
{
	const struct edge *e = &p->g->edges.v[p->x->edge];
	const char *deed[2] = { e->kind == EDGE_ANTI ? "reads" : "writes", e->kind == EDGE_FLOW ? "reads" : "writes" };
	int task[2] = { e->from, e->to };
	long long iteration[2] = { p->x->from_iteration, p->x->to_iteration };
	struct arena *a = p->pen.arena;
	static const struct column col[] = { { "lane", ALIGN_LEFT, 0, 0 }, { "sTask", ALIGN_LEFT, 8, 0 },
		{ "iteration", ALIGN_RIGHT, 0, 0 }, { "", ALIGN_LEFT, 8, 0 } };
	struct table t = table_new(a, col, LEN(col));

	for (int i = 0; i < 2; i++) {
		TABLE_ROW(&t, lane_name(p, task[i]), p->g->tasks.v[task[i]].name, arena_strf(a, "%lld", iteration[i]),
			arena_strf(a, "%s %s%s", deed[i], slot_of(p, task[i], e->buffer, iteration[i]),
			i ? ": may be earlier" : ": must be first"));
		if (!i)
			table_row(&t)[3] = (struct table_cell){ missing_text(p->x->code), FAINT };
	}
	pen_table(&p->pen, NULL, &t);
	pen_puts(&p->pen, arena_strf(a, "  dependence: %s, of %s, distance %d, over %s\n", edge_kind_name(e->kind),
		p->g->buffers.v[e->buffer].name, edge_distance(p->plan, e),
		e->loop == NONE ? "tiles" : arena_strf(a, "loop %s", label_loop(a, p->g->program, e->loop))), FAINT);
}

/* A deadlock has its sTasks in the order of the message. */
static void find_tasks(struct picture *p, struct arena *a)
{
	if (p->x->task != NONE && p->x->code != PROBLEM_DEADLOCK)
		p->task[p->n++] = p->x->task;
	read_names(p, a);
	if (p->x->other != NONE && !ints_hold(p->task, p->n, p->x->other) && p->n < NAMES_MAX)
		p->task[p->n++] = p->x->other;
}

static void put_picture(const struct model *m, struct picture *p)
{
	bool shown[LANES_MAX] = { 0 };

	if (p->x->code == PROBLEM_DEADLOCK)
		put_circle(p);
	else if (p->x->edge != NONE)
		put_race(p);
	if (p->x->code == PROBLEM_REGISTERS || p->x->code == PROBLEM_SHARED_MEMORY || p->x->code == PROBLEM_BARRIERS ||
	    p->x->code == PROBLEM_THREADS)
		pen_usage(&p->pen, p->plan, &m->now->usage);
	for (int i = 0; i < p->n; i++) {
		int lane = lane_of(p, p->task[i]);

		if (lane == NONE || shown[lane])
			continue;
		shown[lane] = true;
		pen_lane(&p->pen, p->plan, lane, NULL);
	}
}

/* The sTasks are found each time, as draw() marks their names; the text is made only if it has changed. */
static void make_picture(struct view *v, int w, struct picture *p)
{
	struct own *own = v->own;

	*p = (struct picture){ .plan = v->m->now->plan, .g = v->m->now->graph, .x = problem_at(v->m, own->at) };
	find_tasks(p, &v->m->frame);
	if (!page_begin(&own->picture, v->m, hash_mix(key_of_state(v->m->now), (uint64_t)own->at), w, &p->pen))
		return;
	put_picture(v->m, p);
	own->picture.cursor = own->picture.top = 0;
	own->picture.still = true;
	page_end(&own->picture, &p->pen, v->m->now->graph);
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	bool side = out->w >= SIDE_MIN;
	int w = side ? out->w / 2 : out->w, h = side ? out->h : out->h - out->h / 2;
	int x = side ? w : 0, y = side ? 0 : h + 1, space;
	struct picture p;

	own->at = (int)max_i64(0, min_i64(own->at, count(v->m) - 1));
	make_list(v, w - 2);
	if (!side && own->line[count(v->m)] < h) {
		h = own->line[count(v->m)];
		y = h + 1;
	}
	make_picture(v, out->w - x - 1, &p);
	own->list.cursor = own->line[own->at];
	if (own->list.top + h < own->line[own->at + 1])
		own->list.top = own->line[own->at + 1] - h;
	page_draw(&own->list, out, 0, 0, w, h, NONE);
	space = out->h - y;
	if (space < 1)
		return;
	draw_separator(out, side, side ? w - 1 : h);
	page_draw(&own->picture, out, x, y, out->w - x, space, NONE);
	for (int i = 0; i < p.n; i++)
		page_mark(&own->picture, out, x, y, out->w - x, space, p.task[i]);
}

/* ---- keys ----------------------------------------------------------------------- */

static bool go(struct view *v, int at)
{
	struct own *own = v->own;
	const struct problem *x;

	own->at = (int)max_i64(0, min_i64(at, count(v->m) - 1));
	x = problem_at(v->m, own->at);
	if (x && x->task != NONE)
		model_select_task(v->m, x->task);
	return true;
}

static bool click(struct view *v, const struct key *k)
{
	struct own *own = v->own;
	int line = own->list.top + k->y;

	for (int i = 0; own->line && i < count(v->m) && k->y < own->list.height; i++)
		if (line >= own->line[i] && line < own->line[i + 1])
			go(v, i);
	return true;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;

	if (k->code == KEY_CODE_CLICK)
		return click(v, k);
	if (wheel_step(k))
		return go(v, own->at + wheel_step(k));
	switch ((int)a) {
	case ACT_UP: return go(v, own->at - 1);
	case ACT_DOWN: return go(v, own->at + 1);
	case ACT_HOME: return go(v, 0);
	case ACT_END: return go(v, count(v->m) - 1);
	case ACT_PAGE_UP: case ACT_PAGE_DOWN: return page_act(&own->picture, a);
	case ACT_GO:
		go(v, own->at);
		v->m->go = VIEW_plan;
		return true;
	}
	return false;
}

static bool find(struct view *v, const char *text, int direction)
{
	struct own *own = v->own;

	if (!own->line || !page_find(&own->list, text, direction))
		return false;
	for (int i = 0; i < count(v->m); i++)
		if (own->list.cursor >= own->line[i] && own->list.cursor < own->line[i + 1])
			go(v, i);
	return true;
}

/* There may be other problems now: click() and find() must not use lines of the old ones. The picture has its key. */
static void changed(struct view *v)
{
	struct own *own = v->own;

	own->line = NULL;
	own->list.made = false;
}

const struct view_ops view_problems = {
	.name = "problems", .groups = GROUP_EDIT | GROUP_ITEM, .size = sizeof(struct own),
	.lacks = lacks, .draw = draw, .act = act, .changed = changed, .find = find,
};
