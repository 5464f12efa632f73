/* The kernel of the plan: its role programs, or the source code. Lines of the selected sTask are marked; the plan's
 * entries are listed on the left. */
#include <string.h>

#include "draw/pen.h"
#include "draw/units.h"
#include "explore/page.h"
#include "explore/view.h"

enum { LIST = 25, LIST_MIN = 96, HEAD_MIN = 8, TAB = 2, SHARED_MAX = 2 };

/* One of the two texts. */
struct side {
	struct page page;
	int (*tasks)[SHARED_MAX];	/* by line: the sTasks it is of (two slices can share code); NONE */
};

struct own {
	struct side side[2];
	bool source;
	bool follow;			/* scroll to the lines of the selected sTask */
	int list_top;
	int head;			/* rows above the text, when it was drawn last */
};

static const char *lacks(const struct model *m)
{
	if (!m->now->plan)
		return "there is no plan to make a kernel of";
	if (m->now->checked && !m->now->legal)
		return "the plan is not legal, so there is no kernel: see the problems (8)";
	return NULL;
}

static struct side *shown(struct view *v)
{
	struct own *own = v->own;

	return &own->side[own->source];
}

/* ---- the text ------------------------------------------------------------------- */

/* Write the text with blanks for tabs, and lines that begin a lane in bold. */
static void put_text(struct pen *pen, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		bool title = !strncmp(text, "lane ", 5) || !strncmp(text, "kernel ", 7);

		style_put(pen->out, PLAIN, title ? BOLD : PLAIN, pen->flags);
		for (size_t i = 0; i < n; i++) {
			if (text[i] == '\t')
				buf_repeat(pen->out, " ", TAB);
			else
				buf_putc(pen->out, text[i]);
		}
		style_put(pen->out, title ? BOLD : PLAIN, PLAIN, pen->flags);
		buf_putc(pen->out, '\n');
		text += n + (text[n] == '\n');
	}
}

/* The column in which a line's text begins. */
static int indent_of(const struct cells *c, int y)
{
	int x = 0;

	while (x < c->w && (!cells_at(c, x, y)->utf8[0] || cells_at(c, x, y)->utf8[0] == ' '))
		x++;
	return x;
}

/* Does the block of an sTask begin in this line: "task 'NAME', ..." or "{" and a comment "NAME|NAME, ..."? */
static bool begins_task(const struct page *p, int y, int indent, const struct page_name *first)
{
	const char *c = cells_at(&p->cells, indent, y)->utf8;

	if (!first)
		return false;
	if (c[0] == 't' && first->x == indent + 6)
		return !strcmp(cells_at(&p->cells, first->x - 1, y)->utf8, "'");
	return c[0] == '{' && first->x > 3 && !strcmp(cells_at(&p->cells, first->x - 2, y)->utf8, "*");
}

/* The first name in a line; NULL. Lines are asked for in order: *at is the first name that can be in this one. */
static const struct page_name *first_name(const struct page *p, int y, int *at)
{
	while (*at < p->names.n && p->names.v[*at].y < y)
		++*at;
	return *at < p->names.n && p->names.v[*at].y == y ? &p->names.v[*at] : NULL;
}

static void find_tasks(struct side *s)
{
	const struct page *p = &s->page;
	int at = 0, open = -1, task[SHARED_MAX] = { NONE, NONE };

	s->tasks = arena_array(s->page.arena, (size_t)p->cells.h + 1, sizeof(*s->tasks));
	for (int y = 0; y < p->cells.h; y++) {
		const struct page_name *n = first_name(p, y, &at);
		int indent = indent_of(&p->cells, y);

		if (indent < p->cells.w && indent <= open) {
			task[0] = task[1] = NONE;
			open = -1;
		}
		if (indent < p->cells.w && begins_task(p, y, indent, n)) {
			task[0] = n->task;
			task[1] = at + 1 < p->names.n && n[1].y == y && n[1].x == n->x + n->n + 1 ? n[1].task : NONE;
			open = indent;
		}
		memcpy(s->tasks[y], task, sizeof(task));
	}
}

static void make(struct view *v)
{
	struct own *own = v->own;
	struct side *s = shown(v);
	const char *text;
	struct pen pen;

	if (!page_begin(&s->page, v->m, key_of_state(v->m->now), 0, &pen))
		return;
	text = own->source ? model_source_text(v->m) : state_kernel_text(v->m, v->m->now);
	s->tasks = NULL;
	put_text(&pen, text ? text : "");
	page_end(&s->page, &pen, v->m->now->graph);
	find_tasks(s);
	own->follow = true;
}

static bool is_of(const struct side *s, int line, int task)
{
	return task != NONE && s->tasks && line < s->page.cells.h &&
		(s->tasks[line][0] == task || s->tasks[line][1] == task);
}

/* The first line of its block in the steady state, which is the most deeply nested one; -1. */
static int block_of(const struct side *s, int task)
{
	int best = -1, deepest = -1;

	for (int y = 0; y < s->page.cells.h; y++) {
		int indent;

		if (!is_of(s, y, task) || (y && is_of(s, y - 1, task)))
			continue;
		indent = indent_of(&s->page.cells, y);
		if (indent > deepest) {
			deepest = indent;
			best = y;
		}
	}
	return best;
}

static void follow(struct view *v)
{
	struct own *own = v->own;
	struct side *s = shown(v);
	int task = v->m->sel.task, line;

	if (!own->follow)
		return;
	own->follow = false;
	if (is_of(s, s->page.cursor, task))
		return;
	line = block_of(s, task);
	if (line < 0)
		return;
	page_go(&s->page, line + s->page.height * 2 / 3);
	page_go(&s->page, line);
}

/* ---- the list of entries --------------------------------------------------------- */

/* The next entry, lane by lane in the order of the plan. */
static int next_entry(const struct plan *p, int at, int step)
{
	int n = p->entries.n, lane = at == NONE ? 0 : p->entries.v[at].lane;

	for (int i = at + step; at != NONE && i >= 0 && i < n; i += step)
		if (p->entries.v[i].lane == lane)
			return i;
	for (lane = at == NONE ? 0 : lane + step; lane >= 0 && lane < p->lanes.n; lane += step)
		for (int i = step > 0 ? 0 : n - 1; i >= 0 && i < n; i += step)
			if (p->entries.v[i].lane == lane)
				return i;
	return at;
}

static void put_entry(struct view *v, struct cells *out, int y, const struct entry *e, const struct task_key *key)
{
	bool selected = e->task == v->m->sel.task;
	const char *name = v->m->now->graph->tasks.v[e->task].name;
	struct style style = { .attr = selected ? STYLE_REVERSE : 0 };

	cells_text(out, 1, y, 1, key->letter, v->m->flags & DRAW_COLOUR ? key->bar : PLAIN);
	cells_text(out, 3, y, LIST - 7, name, style);
	if (e->at)
		cells_text(out, LIST - 4, y, 3, arena_strf(&v->m->frame, "%+d", e->at), FAINT);
}

/* The lanes with their entries. */
static void draw_list(struct view *v, struct cells *out, int y, int h)
{
	struct own *own = v->own;
	const struct plan *p = v->m->now->plan;
	const struct task_key *key = task_keys(&v->m->frame, p->graph);
	struct cells all;
	int n = 0, at = 0;

	cells_init(&all, &v->m->frame, LIST, p->lanes.n * 2 + p->entries.n);
	for (int l = 0; l < p->lanes.n; l++) {
		cells_text(&all, 0, n++, LIST, p->lanes.v[l].name, BOLD);
		for (int i = 0; i < p->entries.n; i++) {
			if (p->entries.v[i].lane != l)
				continue;
			at = p->entries.v[i].task == v->m->sel.task ? n : at;
			put_entry(v, &all, n++, &p->entries.v[i], &key[p->entries.v[i].task]);
		}
		n++;
	}
	if (at < own->list_top || at >= own->list_top + h)
		own->list_top = at - h / 2;
	own->list_top = (int)max_i64(0, min_i64(own->list_top, n - h));
	cells_blit(out, 0, y, LIST, h, &all, 0, own->list_top);
	for (int r = 0; r < h; r++)
		cells_put(out, LIST, y + r, "│", FAINT);
}

/* ---- drawing --------------------------------------------------------------------- */

static const char *usage_text(struct view *v)
{
	const struct plan *p = v->m->now->plan;
	const struct usage *u = &v->m->now->usage;
	struct buf b = buf_new(&v->m->frame);

	buf_printf(&b, "%s %s, ", ((struct own *)v->own)->source ? "source for" : "role program for", p->device->name);
	if (!v->m->now->checked)
		return b.text;
	buf_printf(&b, "%d threads, shared memory %s of %s; registers", u->threads,
		unit_bytes((double)u->shared_bytes).s, unit_bytes((double)p->device->shared_bytes).s);
	for (int l = 0; l < p->lanes.n; l++)
		if (u->lane_registers[l])
			buf_printf(&b, "%s %s %d%s", l ? "," : "", p->lanes.v[l].name, u->lane_registers[l],
				p->lanes.v[l].registers ? arena_strf(&v->m->frame, " of %d",
				p->lanes.v[l].registers) : "");
	return b.text;
}

static void mark_lines(struct view *v, struct cells *out, int x, int y, int h)
{
	const struct side *s = shown(v);
	const struct task_key *key = task_keys(&v->m->frame, v->m->now->graph);
	int task = v->m->sel.task;

	for (int r = 0; r < h; r++)
		if (is_of(s, s->page.top + r, task) && s->page.top + r != s->page.cursor)
			cells_put(out, x, y + r, "┃", key[task].tick);
}

static void draw(struct view *v, struct cells *out)
{
	bool list = out->w >= LIST_MIN;
	int head = out->h >= HEAD_MIN, x = list ? LIST + 1 : 0;
	struct side *s;

	make(v);
	s = shown(v);
	if (head)
		cells_text(out, 0, 0, out->w, usage_text(v), BOLD);
	if (list)
		draw_list(v, out, head, out->h - head);
	s->page.height = out->h - head;
	((struct own *)v->own)->head = head;
	follow(v);
	page_draw(&s->page, out, x, head, out->w - x, out->h - head, v->m->sel.task);
	if (out->w - x > 8)
		mark_lines(v, out, x, head, out->h - head);
}

/* ---- keys ----------------------------------------------------------------------- */

/* Select the sTask of the cursor's line. */
static void select_line(struct view *v)
{
	const struct side *s = shown(v);
	int line = s->page.cursor;

	if (!s->tasks || line >= s->page.cells.h || s->tasks[line][0] == NONE || is_of(s, line, v->m->sel.task))
		return;
	model_select_task(v->m, s->tasks[line][0]);
}

static void select_entry(struct view *v, int step)
{
	const struct plan *p = v->m->now->plan;
	int entry = v->m->sel.task == NONE ? NONE : plan_entry_of(p, v->m->sel.task);

	entry = next_entry(p, entry, step);
	if (entry == NONE)
		return;
	model_select_task(v->m, p->entries.v[entry].task);
	((struct own *)v->own)->follow = true;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;
	struct side *s;

	make(v);
	s = shown(v);
	if (wheel_step(k)) {
		page_go(&s->page, s->page.cursor + 3 * wheel_step(k));
		select_line(v);
		return true;
	}
	if (k->code == KEY_CODE_CLICK) {
		if (k->y >= own->head)
			page_go(&s->page, s->page.top + k->y - own->head);
		select_line(v);
		return true;
	}
	switch ((int)a) {
	case ACT_LEFT: select_entry(v, -1); return true;
	case ACT_RIGHT: select_entry(v, 1); return true;
	case ACT_SIDE_LEFT: return page_act(&s->page, ACT_LEFT);
	case ACT_SIDE_RIGHT: return page_act(&s->page, ACT_RIGHT);
	case ACT_OTHER_SIDE:
		own->source = !own->source;
		own->follow = true;
		return true;
	case ACT_GO:
		if (v->m->sel.task != NONE)
			v->m->go = VIEW_plan;
		return true;
	}
	if (!page_act(&s->page, a))
		return false;
	select_line(v);
	return true;
}

static bool find(struct view *v, const char *text, int direction)
{
	make(v);
	if (!page_find(&shown(v)->page, text, direction))
		return false;
	select_line(v);
	return true;
}

static void changed(struct view *v)
{
	((struct own *)v->own)->follow = true;
}

const struct view_ops view_kernel = {
	.name = "kernel", .groups = GROUP_ITEM | GROUP_SIDES, .size = sizeof(struct own), .lacks = lacks,
	.draw = draw, .act = act, .changed = changed, .find = find,
};
