/* All keys, from the table of actions, and the words that the views use. */
#include <string.h>

#include "draw/pen.h"
#include "explore/page.h"
#include "explore/view.h"

enum { WIDE = 104, GAP = 4, KEYS = 16, SINGLE_MAX = 90 };

static const enum action_group groups[] = { GROUP_ANY, GROUP_SPAN, GROUP_TIME, GROUP_EDIT, GROUP_CHANGES, GROUP_PICKED,
	GROUP_ITEM, GROUP_SIDES, GROUP_STEP };

static const char *const words[][2] = {
	{ "sTask", "a step of a tile program on one tile: a load, a product, element-wise work, a store" },
	{ "EU, sEU", "a multiprocessor; a unit of it: copy engine (tma), tensor cores, CUDA cores (cuda)" },
	{ "lane", "warps that issue sTasks in order; a lane does not wait for an asynchronous unit" },
	{ "offset", "at +1: in iteration j of the pipelined loop the lane performs the sTask of iteration j + 1" },
	{ "wait", "the sTask is issued after another one is complete, or issued" },
	{ "versions", "slots of a buffer's ring: one is written while others are still read" },
	{ "II", "initiation interval: cycles from one iteration to the next in the steady state" },
	{ "bounds", "lower bounds of II: ResMII by the busiest unit, RecMII by the longest recurrence" },
	{ "critical", "the critical path: events that each had to wait for the one before" },
	{ "tile, wave", "a tile of the output is computed by one EU; wave a is the first tiles of all EUs, b the second, ..." },
	{ "legal", "no race and no deadlock, however fast units are; and the plan fits into an EU" } };

static void put_row(struct pen *pen, const char *head, const char *text)
{
	struct buf b = buf_new(pen->arena);

	text_fit(&b, head, (int)max_i64(KEYS - 3, text_width(head)), ALIGN_LEFT, 0);
	pen_puts(pen, "  ", PLAIN);
	pen_puts(pen, b.text, BOLD);
	pen_puts(pen, " ", PLAIN);
	text_wrap(pen->out, text, KEYS + (int)max_i64(0, text_width(head) - KEYS + 3), KEYS, pen->width, pen->flags);
	pen_puts(pen, "\n", PLAIN);
}

static void put_group(struct pen *pen, enum action_group group)
{
	pen_section(pen, action_group_name(group));
	for (int a = 1; a < ACTION_COUNT; a++) {
		const struct action_row *r = &action_rows[a];

		if (a == ACT_VIEW_1 && group == r->group)	/* stands for all views */
			put_row(pen, "1 to 8", "timeline, plan, graph, kernel, grid, step, compare, problems");
		else if (r->group == group && (a < ACT_VIEW_1 || a > ACT_VIEW_8))
			put_row(pen, r->keys, r->help);
	}
}

/* Write the groups of the left one of two columns, of the right one, or of both. */
static void put_column(struct pen *pen, bool left, bool right)
{
	for (int i = 0; i < LEN(groups); i++)
		if (groups[i] & (GROUP_ANY | GROUP_STEP | GROUP_SIDES | GROUP_ITEM) ? left : right)
			put_group(pen, groups[i]);
	if (!left)
		return;
	pen_section(pen, "words");
	for (int i = 0; i < LEN(words); i++)
		put_row(pen, words[i][0], words[i][1]);
}

static void put_columns(struct model *m, struct pen *pen)
{
	int each = (pen->width - GAP) / 2, w, h[2];
	struct pen column[2] = { frame_pen(m, each), frame_pen(m, each) };
	struct cells c;

	for (int i = 0; i < 2; i++) {
		put_column(&column[i], !i, i);
		cells_measure(column[i].out->text, &w, &h[i]);
	}
	cells_init(&c, pen->arena, pen->width, (int)max_i64(h[0], h[1]));
	pen_show(&column[0], &c, 0, 0);
	pen_show(&column[1], &c, each + GAP, 0);
	cells_print(&c, pen->flags, pen->out);
}

static void draw(struct view *v, struct cells *out)
{
	struct page *page = v->own;
	struct pen pen;

	page->still = true;
	if (page_begin(page, v->m, 1, out->w - 1, &pen)) {
		if (pen.width >= WIDE) {
			put_columns(v->m, &pen);
		} else {
			pen.width = (int)min_i64(pen.width, SINGLE_MAX);
			put_column(&pen, true, true);
		}
		page_end(page, &pen, NULL);
	}
	page_draw(page, out, 0, 0, out->w, out->h, NONE);
	if (page->cells.h > out->h && !(v->m->message[0] && v->m->wrong))
		model_say(v->m, "help: lines %d to %d of %d; arrows and PgDn scroll, / finds, ? goes back",
			page->top + 1, (int)min_i64(page->top + out->h, page->cells.h), page->cells.h);
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct page *p = v->own;

	if (wheel_step(k)) {
		page_go(p, p->top + 3 * wheel_step(k));
		return true;
	}
	return page_act(p, a);
}

static bool find(struct view *v, const char *text, int direction)
{
	return page_find(v->own, text, direction);
}

const struct view_ops view_help = { .name = "help", .size = sizeof(struct page), .draw = draw, .act = act, .find = find };
