/* Below the rows of a timeline: what colours, letters and marks stand for. It has what was drawn, and nothing else. */
#include <math.h>
#include <string.h>

#include "draw/panel.h"

enum { LINE = 22, KEY = 22, KEYS = 8 };

struct flow {
	struct picture *p;
	double x, y, left, right;
};

/* Reserve a width for the next item; returns its left side. */
static double flow_next(struct flow *f, double w)
{
	double x = f->x;

	if (x + w > f->right && x > f->left) {
		x = f->left;
		f->y += LINE;
	}
	f->x = x + w + 18;
	return x;
}

/* Does any event of the sTask, or the waiting before it, lie in the window? */
static bool is_in_sight(const struct panel *n, int task)
{
	const struct lookup_list *list = &n->c.lookup->of_task[task];

	for (int i = 0; i < list->n; i++) {
		const struct event *e = &n->c.line->events.v[list->v[i]];

		if (e->ready < n->c.to && e->end > n->c.from)
			return true;
	}
	return false;
}

/* What an sTask is called before it is split. */
static const char *unsplit_name(const struct panel *n, int task)
{
	const struct stask *s = &n->c.g->tasks.v[task];
	const char *dot = s->slices > 1 ? strrchr(s->name, '.') : NULL;

	return dot ? arena_strf(n->p->arena, "%.*s", (int)(dot - s->name), s->name) : s->name;
}

/* A letter on its colour. */
struct key {
	const char *letter, *name;
	int ink;
};

/* Add the keys of all slices of an sTask that are in sight and differ from those that are there. */
static void add_keys(const struct panel *n, const char *unsplit, struct key *key, int *found)
{
	for (int i = 0; i < n->c.g->tasks.n && *found < KEYS; i++) {
		bool known = n->c.g->tasks.v[i].phase != n->c.line->phase || strcmp(unsplit_name(n, i), unsplit) ||
			!is_in_sight(n, i);

		for (int k = 0; k < *found; k++)
			known |= key[k].ink == n->ink[i] && !strcmp(key[k].letter, n->c.key[i].letter);
		if (!known)
			key[(*found)++] = (struct key){ n->c.key[i].letter, n->c.g->tasks.v[i].name, n->ink[i] };
	}
}

/* The letters of an sTask, then its name; of one that is split, the letters of all slices. */
static void put_keys(struct panel *n, struct flow *f, const char *unsplit)
{
	struct key key[KEYS];
	const char *name;
	int found = 0;
	double x;

	add_keys(n, unsplit, key, &found);
	if (n->above)
		add_keys(n->above, unsplit, key, &found);
	if (!found)
		return;
	name = found > 1 ? unsplit : key[0].name;
	x = flow_next(f, (KEY + 2) * found + 4 + picture_width(name, 13, false));
	for (int i = 0; i < found; i++, x += KEY + 2) {
		picture_rect(n->p, x, f->y - 12, KEY, 16, key[i].ink, INK_NONE)->round = 2;
		picture_bold(n->p, x + KEY / 2, f->y + 1, ANCHOR_MIDDLE, 13, picture_on(n->theme, key[i].ink),
			key[i].letter);
	}
	picture_text(n->p, x + 4, f->y + 1, ANCHOR_LEFT, 13, INK_TEXT, name);
}

/* Those of one timeline, but for what the other one has, too. */
static void put_all_keys(struct panel *n, struct flow *f, const struct panel *of, const struct panel *but)
{
	for (int i = 0; i < of->c.g->tasks.n; i++) {
		const char *unsplit = unsplit_name(of, i);
		bool first = of->c.g->tasks.v[i].phase == of->c.line->phase;

		for (int k = 0; k < i; k++)
			first &= of->c.g->tasks.v[k].phase != of->c.line->phase || strcmp(unsplit_name(of, k), unsplit);
		for (int k = 0; but && k < but->c.g->tasks.n; k++)
			first &= but->c.g->tasks.v[k].phase != but->c.line->phase ||
				strcmp(unsplit_name(but, k), unsplit);
		if (first)
			put_keys(n, f, unsplit);
	}
}

/* Reserve space for a sample and write what it stands for, in several lines if one is too short; returns where the
 * sample belongs. */
static struct point put_words(struct flow *f, double sample, const char *text)
{
	double w = fmin(sample + picture_width(text, 13, false), f->right - f->left);
	double x = flow_next(f, w), y = f->y;

	f->y = picture_wrap(f->p, x + sample, y + 1, w - sample + 0.1, 13, INK_FAINT, text) - 13 * 1.4 - 1;
	return (struct point){ x, y };
}

static void put_waits(struct flow *f, unsigned drawn)
{
	static const struct { int cause; const char *text; } causes[] = {
		{ CAUSE_WAIT, "w for a completion" }, { CAUSE_ISSUE_ORDER, "o for the issue order" },
		{ CAUSE_SEU, "u for its sEU" }, { CAUSE_MEMORY, "mem for memory" },
		{ CAUSE_DRAIN, "d for its products to drain" }, { CAUSE_MEETING, "b at a barrier for another lane" } };
	struct buf b = buf_new(f->p->arena);
	struct point at;
	int n = 0;

	if (!(drawn & DRAWN_WAIT))
		return;
	buf_puts(&b, "the lane waits");
	for (int i = 0; i < LEN(causes); i++)
		if (drawn & DRAWN_CAUSE << causes[i].cause)
			buf_printf(&b, "%s%s", n++ ? ", " : ": ", causes[i].text);
	at = put_words(f, 44, b.text);
	picture_rect(f->p, at.x, at.y - 8, 38, 9, INK_NONE, INK_NONE)->hatched = true;
}

double panel_legend(struct panel *n, double y)
{
	struct flow f = { .p = n->p, .x = MARGIN, .y = y, .left = MARGIN, .right = n->p->width - MARGIN };
	unsigned drawn = n->drawn | (n->above ? n->above->drawn : 0);
	struct point at;

	if (n->rings)
		f.y = panel_legend_rings(n, f.y);
	if (n->only_rings)
		return f.y;
	put_all_keys(n, &f, n, NULL);
	if (n->above)
		put_all_keys(n, &f, n->above, n);
	f.x = f.left;
	f.y += LINE;
	put_waits(&f, drawn);
	if (drawn & DRAWN_LINK) {
		at = put_words(&f, 26, n->brief ? "from issue to work" : "issued by the lane, begun on the unit");
		picture_rect(n->p, at.x, at.y - 12, 2.4, 10, INK_LINE, INK_NONE);
		picture_line(n->p, at.x + 1, at.y - 2, at.x + 14, at.y + 4, INK_LINE, 1);
		picture_rect(n->p, at.x + 14, at.y + 1, 8, 5, INK_LINE, INK_NONE);
	}
	if (drawn & DRAWN_TAIL) {
		at = put_words(&f, 28, n->brief ? "to its result" : "until its result is seen");
		picture_rect(n->p, at.x, at.y - 4, 22, 2.5, INK_LINE, INK_NONE);
		picture_rect(n->p, at.x + 20, at.y - 8, 2, 8, INK_LINE, INK_NONE);
	}
	if (chart_is_split(&n->c) || (n->above && chart_is_split(&n->above->c)))
		put_words(&f, 0, n->brief ? "wg: a warpgroup" : "wg0, wg1: warpgroups of a lane that drift apart");
	return f.y + (n->brief ? 12 : f.x > f.left ? LINE : 4);
}

double panel_below(struct panel *n)
{
	int before = n->p->shapes.n;
	double y;

	/* the legend has what is drawn, so draw it */
	for (struct panel *m = n; m; m = m == n ? n->above : NULL) {
		panel_arrange(m, 0);
		panel_draw(m);
	}
	y = panel_legend(n, panel_axis(n, 6, 6) + panel_legend_gap(n));
	n->p->shapes.n = before;
	return y;
}
