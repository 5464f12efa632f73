/* What would help the plan, or make it legal: the changes that plan:suggest() finds, one of which can be applied. Shown instead of
 * another view, like the help. */
#include "draw/pen.h"
#include "explore/page.h"
#include "explore/view.h"

enum { NUMBERED = 9 };			/* have a digit as their key */

struct own {
	struct page page;
	int *line;			/* by change: its first line; then where the last ends. In the page's arena */
	int chosen;
};

static void put_change(const struct change_tried *c, int i, bool chosen, struct pen *pen)
{
	pen_puts(pen, arena_strf(pen->arena, i < NUMBERED ? "%s%d " : "%s  ", chosen ? "▸ " : "  ", i + 1), BOLD);
	if (c->gain[0])
		pen_puts(pen, arena_strf(pen->arena, "%s  ", c->gain), (struct style){ .fg = 114, .attr = STYLE_BOLD });
	text_wrap(pen->out, c->statements, 4 + (c->gain[0] ? text_width(c->gain) + 2 : 0), 6, pen->width, pen->flags);
	pen_puts(pen, "\n", PLAIN);
	pen_wrap(pen, "      ", 6, c->reason);
}

static void make(struct view *v, int w)
{
	struct own *own = v->own;
	const struct state *s = v->m->now;
	int *line, cols;
	struct pen pen;

	if (!page_begin(&own->page, v->m, hash_mix(hash_mix(key_of_state(s), (uintptr_t)s->why), (uint64_t)own->chosen), w, &pen))
		return;
	own->line = NULL;		/* page_end frees it */
	line = ARENA_ARRAY(&v->m->frame, s->changes.n + 1, int);
	pen_puts(&pen, s->legal ? "what would help\n" : "what would make the plan legal\n", BOLD);
	pen_line(&pen, s->why);
	pen_puts(&pen, "\n", PLAIN);
	for (int i = 0; i <= s->changes.n; i++) {
		cells_measure(pen.out->text, &cols, &line[i]);
		if (i < s->changes.n)
			put_change(&s->changes.v[i], i, i == own->chosen, &pen);
	}
	own->page.still = true;
	page_end(&own->page, &pen, s->graph);
	own->line = arena_copy(own->page.arena, line, (size_t)s->changes.n + 1, sizeof(*line));
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	struct page *p = &own->page;
	int n = v->m->now->changes.n;

	own->chosen = (int)max_i64(0, min_i64(own->chosen, n - 1));
	make(v, out->w - 1);
	if (n && p->top + out->h < own->line[own->chosen + 1])
		p->top = own->line[own->chosen + 1] - out->h;
	if (n && p->top >= own->line[own->chosen])
		p->top = own->chosen ? own->line[own->chosen] : 0;
	page_draw(p, out, 0, 0, out->w, out->h, NONE);
	draw_scroll_marks(out, 0, 0, out->w, out->h, p->top, p->cells.h);
	if (!v->m->message[0])
		model_say(v->m, n ? "Enter applies the change that is marked, u undoes it; arrows or its number mark one, Esc leaves" :
			"Esc leaves this");
}

static bool choose(struct view *v, int by)
{
	struct own *own = v->own;

	own->chosen = (int)max_i64(0, min_i64(own->chosen + by, v->m->now->changes.n - 1));
	return true;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;

	if (k->code > '0' && k->code <= '9') {
		/* elsewhere digits lead to views, so one does not edit by itself */
		if (k->code - '0' > v->m->now->changes.n) {
			model_refuse(v->m, "there is no change %c", k->code);
			return true;
		}
		own->chosen = k->code - '1';
		model_say(v->m, "Enter applies change %c; Esc leaves, and then digits lead to views", k->code);
		return true;
	}
	if (wheel_step(k))
		return choose(v, wheel_step(k));
	switch ((int)a) {
	case ACT_UP: return choose(v, -1);
	case ACT_DOWN: return choose(v, 1);
	case ACT_HOME: own->chosen = 0; return true;
	case ACT_END: return choose(v, v->m->now->changes.n);
	case ACT_APPLY:
		if (v->m->now->changes.n)
			model_apply(v->m, own->chosen);
		return true;
	}
	return false;
}

/* Other changes: the first one is chosen. */
static void changed(struct view *v)
{
	struct own *own = v->own;

	own->chosen = own->page.top = 0;
}

static const char *lacks(const struct model *m)
{
	return m->now->why ? NULL : "y tries changes of the plan";
}

const struct view_ops view_changes = {
	.name = "changes", .groups = GROUP_CHANGES, .size = sizeof(struct own),
	.lacks = lacks, .draw = draw, .act = act, .changed = changed,
};
