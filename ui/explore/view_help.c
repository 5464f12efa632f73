/* All keys, from the table of actions, and the words that the views use. */
#include <string.h>

#include "draw/pen.h"
#include "explore/page.h"
#include "explore/view.h"

enum { WIDE = 104, GAP = 4, KEYS = 16, SINGLE_MAX = 90 };

struct own {
	struct page page;
};

static const enum action_group groups[] = { GROUP_ANY, GROUP_SPAN, GROUP_TIME, GROUP_EDIT, GROUP_PICKED,
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
	{ "tile, wave", "a tile of the output is computed by one EU; a wave is the tiles of all EUs at a time" },
	{ "legal", "no race and no deadlock, however fast units are; and the plan fits into an EU" },
};

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

/* Is it a key of a view, but the first, which stands for all? */
static bool is_view(int a)
{
	return a > ACT_VIEW_1 && a <= ACT_VIEW_8;
}

static void put_group(struct pen *pen, enum action_group group)
{
	pen_section(pen, action_group_name(group));
	for (int a = 1; a < ACTION_COUNT; a++) {
		const struct action_row *r = &action_rows[a];

		if (r->group != group || is_view(a))
			continue;
		if (a == ACT_VIEW_1)
			put_row(pen, "1 to 8", "timeline, plan, graph, kernel, grid, step, compare, problems");
		else
			put_row(pen, r->keys, r->help);
	}
}

static void put_words(struct pen *pen)
{
	pen_section(pen, "words");
	for (int i = 0; i < LEN(words); i++)
		put_row(pen, words[i][0], words[i][1]);
}

/* Is the group in the left one of two columns? */
static bool is_left(enum action_group g)
{
	return g & (GROUP_ANY | GROUP_STEP | GROUP_SIDES | GROUP_ITEM);
}

/* The groups of the left column, of the right one, or of both. */
static const char *column(struct view *v, int w, bool left, bool right)
{
	struct pen pen = frame_pen(v->m, w);

	for (int i = 0; i < LEN(groups); i++)
		if (is_left(groups[i]) ? left : right)
			put_group(&pen, groups[i]);
	if (left)
		put_words(&pen);
	return pen.out->text;
}

/* The next line of a text; false at its end. */
static bool next_line(const char **s, size_t *n)
{
	*n = strcspn(*s, "\n");
	return **s != '\0';
}

static void put_line(struct buf *out, const char **s, int w)
{
	int cols, rows;
	size_t n;

	if (!next_line(s, &n)) {
		buf_repeat(out, " ", w);
		return;
	}
	cells_measure(arena_strf(out->arena, "%.*s", (int)n, *s), &cols, &rows);
	buf_putn(out, *s, n);
	buf_repeat(out, " ", w - cols);
	*s += n + ((*s)[n] == '\n');
}

static const char *two_columns(struct view *v, int w)
{
	int each = (w - GAP) / 2;
	const char *one = column(v, each, true, false), *two = column(v, each, false, true);
	struct buf b = buf_new(&v->m->frame);

	while (*one || *two) {
		put_line(&b, &one, each + GAP);
		put_line(&b, &two, 0);
		buf_putc(&b, '\n');
	}
	return b.text;
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	int w = out->w - 1;
	struct pen pen;

	if (page_begin(&own->page, v->m, 1, w, &pen)) {
		buf_puts(pen.out, w >= WIDE ? two_columns(v, w) : column(v, (int)min_i64(w, SINGLE_MAX), true, true));
		page_end(&own->page, &pen, NULL);
	}
	page_draw(&own->page, out, 0, 0, out->w, out->h, NONE);
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct page *p = &((struct own *)v->own)->page;

	if (wheel_step(k)) {
		page_go(p, p->top + 3 * wheel_step(k));
		return true;
	}
	return page_act(p, a);
}

static bool find(struct view *v, const char *text, int direction)
{
	return page_find(&((struct own *)v->own)->page, text, direction);
}

static void open_view(struct view *v)
{
	struct own *own = v->own;

	page_init(&own->page, v->m);
	own->page.still = true;
}

const struct view_ops view_help = {
	.name = "help", .groups = 0, .size = sizeof(struct own), .open = open_view, .draw = draw,
	.act = act, .find = find,
};
