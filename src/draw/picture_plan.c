/* A plan as tables: for each lane, which iteration of the source loop each entry performs in each iteration of the
 * pipelined loop. */
#include <math.h>
#include <string.h>

#include "draw/label.h"
#include "draw/panel.h"
#include "draw/units.h"
#include "plan/order.h"

static const double LARGER = 1.25;	/* a sheet, rather than that waits are shortened */

enum {
	LEAST = 4,			/* columns of a loop, at least */
	LINES_MOST = 6,			/* that say what an entry waits for, */
	LINES_SHORTENED = 4,		/* or some of it */
	NARROW = 800,			/* a narrower picture has narrower columns */
	LAST_SHOWN = 3,			/* columns at the end of a loop that is too long, at least */
	BLOCKS_MOST = 3,		/* tables next to each other on a slide */
	ROW_MOST = 34,			/* height of an entry on a slide, unless its waits need more */
	ROW_LEAST = 18,
	GAP_LEAST = 8, GAP_MOST = 16,	/* between lanes on a slide; */
	GAP_GOOD = 9,			/* below this, rows are made lower */
	STAGES = 3, BLOCK_GAP = 28, WAITS_LEAST = 80, WAITS_MOST = 180,
};

/* The entries of a lane in one phase. */
struct block {
	int lane, phase, column;
	double height;
};

struct plan_picture {
	struct picture *p;
	const struct plan *plan;
	const struct graph *g;
	const uint8_t *ink;
	enum theme theme;
	bool brief;
	double name, unit, cell, waits;	/* widths of columns */
	double row;			/* height of an entry, at least */
	double gap;			/* below a lane */
	double small;			/* size of the text of waits that takes several lines */
	int lines;			/* of waits, at most */
	double lanes_top, lanes_end;	/* where the first lane begins and the last one ends */
	double end;			/* below it, entries are only counted ... */
	int hidden;			/* ... here */
	double left, right;		/* of the table that is being drawn */
	double x;			/* where its columns of iterations begin */
	VEC(struct block) blocks;
	int phase, lane;
	bool *stages;			/* which of prologue, steady state and epilogue are drawn */
};

/* Does a list of waits have the item that consists of these two parts? */
static bool has_item(const char *list, const char *name, const char *behind, int nbehind)
{
	size_t n = strlen(name);

	for (const char *at = list; *at; at += strcspn(at, ","), at += strspn(at, ", "))
		if (!strncmp(at, name, n) && !strncmp(at + n, behind, (size_t)nbehind) &&
			strchr(",", at[n + (size_t)nbehind]))
			return true;
	return false;
}

/* As waits_text, but "mma +1" instead of "mma.0 +1, mma.1 +1" if all slices of an sTask are awaited alike. */
static const char *brief_waits(const struct plan_picture *s, int task)
{
	const char *list = waits_text(s->p->arena, s->plan, task);
	struct buf b = buf_new(s->p->arena);

	for (const char *at = list; *at; at += strcspn(at, ","), at += strspn(at, ", ")) {
		int n = (int)strcspn(at, ","), name = (int)strcspn(at, " ,");
		int first = graph_find_task(s->g, arena_strf(s->p->arena, "%.*s", name, at));
		const struct stask *on = first == NONE ? NULL : &s->g->tasks.v[first];
		bool all = on && on->slices > 1 && strchr(on->name, '.');

		first -= on ? on->slice : 0;
		for (int k = 0; all && k < on->slices; k++)
			all = has_item(list, s->g->tasks.v[first + k].name, at + name, n - name);
		if (all && on->slice)
			continue;
		buf_printf(&b, "%s%.*s%.*s", b.len ? ", " : "", all ? (int)(strrchr(on->name, '.') - on->name) : name,
			at,
			n - name, at + name);
	}
	return b.text;
}

static const char *text_of_waits(const struct plan_picture *s, int task)
{
	return s->brief ? brief_waits(s, task) : waits_text(s->p->arena, s->plan, task);
}

/* How much of a text is in its first line: all, or up to the last space that fits and does not stand before the "+1" of a
 * name; 0: nothing. */
static int first_line(const struct plan_picture *s, const char *text, double size, double space)
{
	int end = 0;

	if (picture_width(text, size, false) <= space)
		return (int)strlen(text);
	for (int i = 0; text[i]; i++)
		if (text[i] == ' ' && text[i + 1] != '+' &&
		    picture_width(arena_strf(s->p->arena, "%.*s", i, text), size, false) <= space)
			end = i;
	return end;
}

/* How many lines of that width a text takes; more than any table has, if a part of it is wider. */
static int count_lines(const struct plan_picture *s, const char *text, double size, double space)
{
	int n = 1, end;

	for (; (end = first_line(s, text, size, space)) && text[end]; n++)
		text += end + 1;
	return end || !*text ? n : LINES_MOST + 1;
}

/* How many lines the waits of an entry have. */
static int lines_of_waits(const struct plan_picture *s, int task)
{
	int n = count_lines(s, text_of_waits(s, task), s->small, s->waits);

	return n < s->lines ? n : s->lines;
}

/* The height of an entry: more, if what it waits for takes several lines. */
static double row_of(const struct plan_picture *s, const struct entry *e)
{
	int n = s->brief ? lines_of_waits(s, e->task) : 1;

	return n == 1 ? s->row : fmax(s->row, n * (s->small + 1) + 2);
}

/* What an entry waits for, in one line or in several, of which the last one is shortened if it must be. */
static void draw_waits(const struct plan_picture *s, const struct entry *e, double x, double y)
{
	const char *text = text_of_waits(s, e->task);
	double size = s->brief ? s->small : 12, line = s->small + 1;
	int n = lines_of_waits(s, e->task);

	if (picture_width(text, size, false) <= s->waits) {
		picture_text(s->p, x, y + row_of(s, e) / 2 + 5, ANCHOR_LEFT, size, INK_FAINT, text);
		return;
	}
	y += row_of(s, e) / 2 - n * line / 2 + 0.8 * line;
	for (int i = 0; i < n && *text; i++, y += line) {
		int end = first_line(s, text, s->small, s->waits);
		bool all = i == n - 1 || !end;

		picture_text(s->p, x, y, ANCHOR_LEFT, s->small, INK_FAINT,
			picture_fit(s->p, all ? text : arena_strf(s->p->arena, "%.*s", end, text), s->small, s->waits));
		text += all ? strlen(text) : (size_t)end + 1;
	}
}

/* The width at which each list of waits of a slide fits into so many lines; WAITS_MOST if some fit into none so wide. */
static double waits_width(const struct plan_picture *s)
{
	double w = WAITS_LEAST;

	for (int i = 0; i < s->plan->entries.n; i++) {
		const char *text = text_of_waits(s, s->plan->entries.v[i].task);

		while (w < WAITS_MOST && count_lines(s, text, s->small, w) > s->lines)
			w += 4;
	}
	return w;
}

/* Is there no space for an entry at y? Then it is only counted. */
static bool is_hidden(struct plan_picture *s, const struct entry *e, double y)
{
	bool hidden = y + row_of(s, e) > s->end;

	s->hidden += hidden;
	return hidden;
}

/* "tensor +1" */
static const char *unit_text(const struct plan_picture *s, const struct entry *e)
{
	const char *name = s->plan->device->seu[e->seu].name;

	return e->at ? arena_strf(s->p->arena, "%s %+d", name, e->at) : name;
}

static void draw_names(const struct plan_picture *s, const struct entry *e, double y)
{
	double base = y + row_of(s, e) / 2 + 5;

	picture_text(s->p, s->left + 10, base, ANCHOR_LEFT, 14, INK_TEXT,
		picture_fit(s->p, s->g->tasks.v[e->task].name, 14, s->name - 4));
	picture_text(s->p, s->left + 10 + s->name, base, ANCHOR_LEFT, 13, INK_FAINT, unit_text(s, e));
	draw_waits(s, e, s->right - s->waits, y);
}

static void draw_cell(const struct plan_picture *s, const struct entry *e, double x, double y, double w,
	const char *text)
{
	int ink = s->ink[e->task];

	y += (row_of(s, e) - s->row) / 2;
	picture_rect(s->p, x + 1, y + 2, w - 2, s->row - 4, ink, INK_NONE)->round = 3;
	picture_text(s->p, x + w / 2, y + s->row / 2 + 5, ANCHOR_MIDDLE, 14, picture_on(s->theme, ink), text)
		->max_width =
		fmin(picture_width(text, 14, false), w - 4);
}

/* Iterations of a pipelined loop, [from, to], of which [skip, resume) are left out. */
struct iterations {
	int64_t from, to, skip, resume;	/* skip == resume: all are shown */
	int columns;
};

static struct iterations iterations_of(int64_t trips, int least, int most, int columns)
{
	struct iterations t = { -most, trips - 1 - least, 0, 0, 0 };
	int64_t n = t.to - t.from + 1;

	t.columns = (int)min_i64(n, columns);
	t.skip = t.resume = t.to + 1;
	if (n > columns) {
		t.resume = t.to - min_i64(LAST_SHOWN + (most - least), columns / 2) + 1;
		t.skip = t.from + columns - 1 - (t.to - t.resume + 1);
	}
	return t;
}

static double column_x(const struct plan_picture *s, const struct iterations *t, int64_t j)
{
	return s->x + (double)(j < t->skip ? j - t->from : j - t->resume + t->skip - t->from + 1) * s->cell;
}

/* Rows of a loop, with the numbers of iterations above; returns where they end. */
static double draw_loop(struct plan_picture *s, int loop, const struct order_step *steps, int n,
	int least, int most, double y)
{
	int columns = (int)((s->right - s->waits - 12 - s->x) / s->cell);
	int64_t trips = max_i64(s->g->trips[loop].most, 1);
	struct iterations t = iterations_of(trips, least, most, (int)max_i64(columns, LEAST));
	double space = s->name + s->unit - 2;
	const char *title = label_loop_trips(s->p->arena, s->g, loop);
	double head = s->brief ? 22 : 26;

	if (y + head + s->row > s->end) {		/* no space for its heading and an entry */
		for (int i = 0; i < n; i++)
			s->hidden += !steps[i].is_loop;
		return y;
	}
	picture_text(s->p, s->left + 10, y + head - (s->brief ? 9.5 : 11), ANCHOR_LEFT, 13, INK_FAINT,
		picture_fit(s->p, title, 13, space));
	if (picture_width(title, 13, false) + 8 + picture_width("iteration", 12, false) <= space)
		picture_text(s->p, s->x - 8, y + head - (s->brief ? 9.5 : 11), ANCHOR_RIGHT, 12, INK_FAINT,
			"iteration");
	for (int64_t j = t.from; j <= t.to; j = j + 1 == t.skip ? t.resume : j + 1) {
		double x = column_x(s, &t, j);
		int stage = j + least >= 0 && j + most < trips ? 1 : j + least < 0 ? 0 : 2;
		struct shape *number = picture_text(s->p, x + s->cell / 2, y + head - (s->brief ? 9.5 : 11),
			ANCHOR_MIDDLE, 12, INK_FAINT,
			arena_strf(s->p->arena, "%lld", (long long)j));

		number->max_width = fmin(number->max_width, s->cell - 4);
		picture_rect(s->p, x + 1, y + head - (s->brief ? 6 : 7), s->cell - 2, 4, INK_PROLOGUE + stage,
			INK_NONE);
		s->stages[stage] = true;
	}
	if (t.skip < t.resume && t.resume <= t.to)
		picture_text(s->p, column_x(s, &t, t.resume) - s->cell / 2, y + head - (s->brief ? 9.5 : 11),
			ANCHOR_MIDDLE, 13, INK_FAINT, "…");
	y += head;
	for (int i = 0; i < n; i++) {
		const struct entry *e = &s->plan->entries.v[steps[i].id];

		if (steps[i].is_loop || is_hidden(s, e, y))
			continue;
		draw_names(s, e, y);
		for (int64_t j = t.from; j <= t.to; j = j + 1 == t.skip ? t.resume : j + 1) {
			double x = column_x(s, &t, j);

			if (j + e->at < 0 || j + e->at >= trips)
				picture_rect(s->p, x + 1, y + (row_of(s, e) - s->row) / 2 + 2, s->cell - 2, s->row - 4,
					INK_NONE,
					INK_GRID)->round = 3;
			else
				draw_cell(s, e, x, y, s->cell, arena_strf(s->p->arena, "%lld", (long long)(j + e->at)));
		}
		y += row_of(s, e);
	}
	return y;
}

static double draw_region(struct plan_picture *s, int loop, double y)
{
	struct order_step *steps;
	int least, most, n = order_steps(s->p->arena, s->plan, s->lane, s->phase, loop, &steps, &least, &most);

	if (loop != NONE)
		y = draw_loop(s, loop, steps, n, least, most, y) + 4;
	for (int i = 0; i < n; i++) {
		const struct entry *e = steps[i].is_loop ? NULL : &s->plan->entries.v[steps[i].id];

		if (!e) {
			y = draw_region(s, steps[i].id, y);
			continue;
		}
		if (loop != NONE || is_hidden(s, e, y))
			continue;
		draw_names(s, e, y);
		draw_cell(s, e, s->x, y, s->cell * 3, e->at ? arena_strf(s->p->arena, "tile %+d", e->at) :
			"once a tile");
		y += row_of(s, e);
	}
	return y;
}

/* Above the column of waits. */
static const char *head_text(const struct plan_picture *s)
{
	return s->brief ? "waits for (+1: one before)" : "waits for; +1: of the iteration before";
}

static double head_width(const struct plan_picture *s)
{
	return fmax(s->waits, picture_width(head_text(s), s->brief ? 11.5 : 12, false));
}

/* Behind the name of a lane: "phase split, 4 warps, 240 registers". */
static const char *lane_heading(const struct plan_picture *s, int lane, int phase)
{
	const struct plan *p = s->plan;
	const struct lane *l = &p->lanes.v[lane];
	int warps = lane_warps(p, lane);
	struct buf b = buf_new(s->p->arena);

	if (p->graph->program->phases.n > 1)
		buf_printf(&b, "phase %s, ", p->graph->program->phases.v[phase].name);
	buf_printf(&b, "%d warp%s", warps, warps == 1 ? "" : "s");
	if (l->columns > 1)
		buf_printf(&b, " in %d columns", l->columns);
	if (l->replicas > 1)
		buf_printf(&b, ", %d replicas", l->replicas);
	if (l->registers)
		buf_printf(&b, ", %d registers%s", l->registers, s->brief ? "" : " a thread");
	if (l->spare)
		buf_printf(&b, ", %d spare", l->spare);
	return b.text;
}

/* A lane in one phase. */
static double draw_lane_rows(struct plan_picture *s, double y)
{
	const struct plan *p = s->plan;
	const struct lane *l = &p->lanes.v[s->lane];
	double top = y, left;

	if (y + 28 + s->row > s->end) {
		for (int i = 0; i < p->entries.n; i++)
			s->hidden += p->entries.v[i].lane == s->lane &&
				s->g->tasks.v[p->entries.v[i].task].phase == s->phase;
		return y;
	}
	y -= s->brief ? 4 : 0;
	picture_bold(s->p, s->left + 10, y + 18, ANCHOR_LEFT, 17, INK_TEXT, l->name);
	left = s->left + 20 + picture_width(l->name, 17, true);
	picture_text(s->p, left, y + 18, ANCHOR_LEFT, 13, INK_FAINT, picture_fit(s->p,
		lane_heading(s, s->lane, s->phase), 13, s->right - (top > s->lanes_top ? 0 : head_width(s) + 12) - left));
	y = draw_region(s, NONE, y + (s->brief ? 24 : 28));
	picture_rect(s->p, s->left, top, 3, y - top, INK_LINE, INK_NONE);
	return y + s->gap;
}

static double draw_rings(const struct plan_picture *s, double y)
{
	const char *line = "", *head = s->brief ? "rings: " : "rings, versions and size of each: ";

	for (int i = 0; i < s->g->buffers.n; i++) {
		const struct buffer *x = &s->g->buffers.v[i];
		const char *item, *longer;

		if (plan_scope(s->plan, i) != SCOPE_SHARED && s->plan->versions[i] == 1)
			continue;
		item = arena_strf(s->p->arena, "%s %d x %s%s", x->name, s->plan->versions[i], unit_bytes((double)x->bytes).s,
			plan_scope(s->plan, i) == SCOPE_SHARED ? "" : " in registers");
		longer = arena_strf(s->p->arena, "%s%s%s", line, *line ? ", " : head, item);
		y += *line ? 0 : 12;
		/* an item stays in one line */
		if (*line && picture_width(longer, 13, false) > s->p->width - 2 * MARGIN) {
			y = picture_wrap(s->p, MARGIN, y, INFINITY, 13, INK_FAINT,
				arena_strf(s->p->arena, "%s,", line));
			longer = item;
		}
		line = longer;
	}
	return picture_wrap(s->p, MARGIN, y, s->p->width - 2 * MARGIN, 13, INK_FAINT, line);
}

static double draw_legend(const struct plan_picture *s, double y)
{
	static const char *const words[] = { "prologue: some entries have nothing to do yet",
		"steady state: all entries work", "epilogue: some have no more to do" };
	static const char numbers[] =
		"numbers in cells: the iteration of the source loop that is performed in the iteration "
		"above, from top to bottom";
	struct picture *p = s->p;
	double x = MARGIN;

	for (int i = 0; i < LEN(words); i++) {
		const char *text = s->brief ? arena_strf(p->arena, "%.*s", (int)strcspn(words[i], ":"), words[i]) :
			words[i];

		if (!s->stages[i])
			continue;
		if (x > MARGIN && x + 28 + picture_width(text, 13, false) > p->width - MARGIN) {
			x = MARGIN;
			y += 20;
		}
		picture_rect(p, x, y - 6, 22, 4, INK_PROLOGUE + i, INK_NONE);
		picture_text(p, x + 28, y, ANCHOR_LEFT, 13, INK_FAINT, text);
		x += 46 + picture_width(text, 13, false);
	}
	return s->brief ? y : picture_wrap(p, MARGIN, y + 20, p->width - 2 * MARGIN, 13, INK_FAINT, numbers) - 18;
}

/* The tables of one column, from y down; returns where they end. */
static double draw_column(struct plan_picture *s, int column, double y)
{
	picture_text(s->p, s->right - head_width(s), y + 10, ANCHOR_LEFT, s->brief ? 11.5 : 12, INK_FAINT,
		head_text(s));
	for (int i = 0; i < s->blocks.n; i++) {
		struct block *b = &s->blocks.v[i];
		double top = y;

		if (b->column != column)
			continue;
		s->lane = b->lane;
		s->phase = b->phase;
		y = draw_lane_rows(s, y);
		b->height = y - top;
	}
	return y;
}

/* All but the title, in so many columns from y down; returns where it ends. */
static double draw_lanes(struct plan_picture *s, int columns, double y)
{
	double w = (s->p->width - 2 * MARGIN - (columns - 1) * BLOCK_GAP) / columns, end = y;

	s->hidden = 0;
	s->lanes_top = y;
	memset(s->stages, 0, STAGES * sizeof(*s->stages));
	for (int i = 0; i < columns; i++) {
		s->left = MARGIN + i * (w + BLOCK_GAP);
		s->right = s->left + w;
		s->x = s->left + 20 + s->name + s->unit;
		end = fmax(end, draw_column(s, i, y));
	}
	s->lanes_end = y = end;
	if (s->hidden) {
		picture_text(s->p, MARGIN + 10, y + 14, ANCHOR_LEFT, 13, INK_TEXT, arena_strf(s->p->arena,
			"and %d more entr%s", s->hidden, s->hidden == 1 ? "y" : "ies"));
		y += 22;
	}
	y = draw_legend(s, y + (s->brief ? 9 : 10));
	return draw_rings(s, y + (s->brief ? 6 : 10));
}

/* Columns as wide as they must be in a narrow picture. */
static void choose_columns(struct plan_picture *s, double width)
{
	s->name = s->unit = 30;
	for (int i = 0; i < s->plan->entries.n; i++) {
		const struct entry *e = &s->plan->entries.v[i];

		s->name = fmax(s->name, picture_width(s->g->tasks.v[e->task].name, 14, false) + 8);
		s->unit = fmax(s->unit, picture_width(unit_text(s, e), 13, false) + 6);
	}
	for (int i = 0; i < s->g->program->loops.n; i++)		/* the heading of a loop is in both */
		s->unit = fmax(s->unit, picture_width(label_loop_trips(s->p->arena, s->g, i), 13, false) + 4 - s->name);
	s->name = fmin(s->name, 130);
	s->cell = s->brief ? 28 : 34;
	s->waits = fmax(width - 32 - s->name - s->unit - LEAST * s->cell, WAITS_LEAST);
}

/* The width at which the waits of each entry are in one line, with the heading above them. */
static double longest_waits(const struct plan_picture *s)
{
	double w = head_width(&(struct plan_picture){ .p = s->p, .brief = s->brief });

	for (int i = 0; i < s->plan->entries.n; i++)
		w = fmax(w, picture_width(text_of_waits(s, s->plan->entries.v[i].task), s->small, false));
	return w;
}

/* Do so many columns fit? What waits do not need is for iterations. */
static bool fits_in(struct plan_picture *s, int columns)
{
	double w = (s->p->width - 2 * MARGIN - (columns - 1) * BLOCK_GAP) / columns;

	choose_columns(s, w);
	s->waits = fmin(s->waits, longest_waits(s));
	return columns == 1 || 32 + s->name + s->unit + LEAST * s->cell + waits_width(s) <= w;
}

/* Give each table, in their order, the first column that it makes no higher than `most`; false if that needs too many
 * columns. */
static bool assign_blocks(struct plan_picture *s, int columns, double most)
{
	double sum = 0;
	int at = 0;

	for (int i = 0; i < s->blocks.n; i++) {
		struct block *b = &s->blocks.v[i];

		if (sum > 0 && sum + b->height > most) {
			at++;
			sum = 0;
		}
		b->column = at < columns ? at : columns - 1;
		sum += b->height;
	}
	return at < columns;
}

/* Share the tables among columns so that the highest one is as low as possible. */
static void balance_blocks(struct plan_picture *s, int columns, double y)
{
	int first = s->p->shapes.n;
	double low = 0, high = 0;

	for (int i = 0; i < s->blocks.n; i++)
		s->blocks.v[i].column = 0;
	draw_lanes(s, columns, y);
	s->p->shapes.n = first;
	for (int i = 0; i < s->blocks.n; i++)
		high += s->blocks.v[i].height;
	for (int step = 0; step < 16; step++) {
		if (assign_blocks(s, columns, (low + high) / 2))
			high = (low + high) / 2;
		else
			low = (low + high) / 2;
	}
	assign_blocks(s, columns, high);
}

/* Does the heading of the first table of each of several columns fit next to that of its waits? */
static bool headings_fit(const struct plan_picture *s, int columns)
{
	double w = (s->p->width - 2 * MARGIN - (columns - 1) * BLOCK_GAP) / columns;
	int column = NONE;

	for (int i = 0; columns > 1 && i < s->blocks.n; i++) {
		const struct block *b = &s->blocks.v[i];
		const char *name = s->plan->lanes.v[b->lane].name;

		if (b->column != column && 32 + picture_width(name, 17, true) + head_width(s) +
		    picture_width(lane_heading(s, b->lane, b->phase), 13, false) > w)
			return false;
		column = b->column;
	}
	return true;
}

/* Increase a height by steps up to `limit`, as long as the tables still end above `most`. */
static void grow(struct plan_picture *s, double *height, double limit, int columns, double y, double most, int first)
{
	while (*height < limit) {
		++*height;
		s->p->shapes.n = first;
		if (draw_lanes(s, columns, y) > most) {
			--*height;
			break;
		}
	}
}

/* Draw them in so many columns that fit, with lanes apart and rows as high as there is space for; `first`: the
 * first shape of them, of those that are drawn. */
static double stretch(struct plan_picture *s, int columns, double y, double most, int first)
{
	grow(s, &s->gap, GAP_MOST, columns, y, most, first);
	while (s->gap < GAP_GOOD && s->row > ROW_LEAST) {
		s->row--;
		grow(s, &s->gap, GAP_GOOD, columns, y, most, first);
	}
	grow(s, &s->row, ROW_MOST, columns, y, most, first);
	s->p->shapes.n = first;
	return draw_lanes(s, columns, y);
}

/* Are the waits of all entries shown, none shortened? */
static bool shows_all_waits(const struct plan_picture *s)
{
	for (int i = 0; i < s->plan->entries.n; i++)
		if (count_lines(s, text_of_waits(s, s->plan->entries.v[i].task), s->small, s->waits) > s->lines)
			return false;
	return true;
}

/* With the largest text of waits, all of them if possible, the fewest lines of it, and the highest rows that make it no higher
 * than `most`, in one column or more. If none do and it must fit, without the last entries; else the next sheet is larger, and
 * waits are shortened only if no sheet shows all that is LARGER than one would be that shows some. */
static double draw_brief(struct plan_picture *s, double y, double most, bool shorten)
{
	static const struct { double small, row; } sizes[] = { { 15, 30 }, { 14, 28 }, { 13, 25 }, { 13, 22 }, { 13, 20 },
		{ 13, 18 }, { 11.5, 18 } };
	int first = s->p->shapes.n;
	double end = 0, least = INFINITY;

	/* first without shortened waits, in letters that are not the smallest */
	for (int k = 0; k < 2 * LEN(sizes) - 1; k++) {
		bool all = k < LEN(sizes) - 1;
		int i = all ? k : k - LEN(sizes) + 1;

		s->small = sizes[i].small;
		s->row = sizes[i].row;
		for (int columns = 1; columns <= BLOCKS_MOST; columns++) {
			for (s->lines = 1; s->lines <= (all ? LINES_MOST : LINES_SHORTENED); s->lines++) {
				if (!fits_in(s, columns) || (all && !shows_all_waits(s)))
					continue;
				balance_blocks(s, columns, y);
				end = draw_lanes(s, columns, y);
				if (headings_fit(s, columns)) {
					least = fmin(least, end);
					if (end <= (all || shorten ? most : most / LARGER))
						return stretch(s, columns, y, most, first);
				}
				s->p->shapes.n = first;
				if (all)	/* more lines would stay empty */
					break;
			}
		}
	}
	if (!shorten)			/* too high, so that the next sheet is larger */
		return fmax(least, most * LARGER);
	int columns = 1;

	s->lines = LINES_SHORTENED;
	while (columns < BLOCKS_MOST && fits_in(s, columns + 1))
		columns++;
	fits_in(s, columns);
	balance_blocks(s, columns, y);
	s->end = most - (end - s->lanes_end) - 30;
	return draw_lanes(s, columns, y);
}

void picture_plan(struct picture *p, const struct plan *plan, const struct picture_options *o)
{
	bool stages[STAGES] = { false };
	const char *how, *expected = "";
	struct plan_picture s;
	double y;

	o = picture_begin(p, o);
	how = o->brief ? "" : "the plan as a table: entry, unit and offset, what it performs in each iteration of the "
		"pipelined loop, waits";
	if (o->predicted && o->predicted->seconds > 0)
		expected = arena_strf(p->arena, "; predicted time %s%s", unit_seconds(o->predicted->seconds).s,
			uncertainty_text(p->arena, o->predicted));
	y = picture_top(p, o, picture_title(p, plan, o), 3, (const char *[]){
		picture_sizes(p, plan->graph->program, plan->device, o), how,
		arena_strf(p->arena, "%s%s", picture_tile(p, plan->graph), expected) }) + (o->brief ? -11 : 8);
	s = (struct plan_picture){ .p = p, .plan = plan, .g = plan->graph, .theme = o->theme, .brief = o->brief,
		.ink = task_inks(p->arena, plan->graph), .name = 130, .unit = 70, .cell = 46, .waits = 300,
		.row = 28, .gap = o->brief ? GAP_LEAST : GAP_MOST, .small = 11, .lines = 2, .end = INFINITY, .stages =
			stages };
	for (int i = 0; i < plan->entries.n; i++)
		s.unit = fmax(s.unit, picture_width(unit_text(&s, &plan->entries.v[i]), 13, false));
	if (p->width < NARROW)
		choose_columns(&s, p->width - 2 * MARGIN);
	for (int l = 0; l < plan->lanes.n; l++)
		for (int i = 0; i < plan->graph->program->phases.n; i++)
			if (lane_has_entries(plan, l, i))
				VEC_PUSH(p->arena, &s.blocks, ((struct block){ .lane = l, .phase = i }));
	y = s.brief ? draw_brief(&s, y, picture_most(o) - 2, o->shorten) + 2 : draw_lanes(&s, 1, y) + MARGIN;
	p->height = fmax(y, s.brief ? 0 : o->height);
}
