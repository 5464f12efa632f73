/* A plan as tables: for each lane, which iteration of the source loop each entry performs in each iteration of the
 * pipelined loop. */
#include <math.h>

#include "draw/label.h"
#include "draw/panel.h"
#include "draw/units.h"
#include "plan/order.h"

enum {
	CELL_H = 28, LEAST = 4,		/* columns of a loop, at least */
	NARROW = 800,			/* a narrower picture has narrower columns */
	LAST_SHOWN = 3,			/* columns at the end of a loop that is too long, at least */
};

struct plan_picture {
	struct picture *p;
	const struct plan *plan;
	const struct graph *g;
	const uint8_t *ink;
	enum theme theme;
	double name, unit, cell, waits;	/* widths of columns */
	double x;			/* where the columns of iterations begin */
	int phase, lane;
	bool *stages;			/* which of prologue, steady state and epilogue are drawn */
};

/* What an entry waits for, in one line or in two smaller ones. */
static void draw_waits(const struct plan_picture *s, int task, double x, double y)
{
	const char *text = waits_text(s->p->arena, s->plan, task);
	int end = 0;

	if (picture_width(text, 12, false) <= s->waits) {
		picture_text(s->p, x, y + CELL_H / 2.0 + 5, ANCHOR_LEFT, 12, INK_FAINT, text);
		return;
	}
	for (int i = 0; text[i]; i++)
		if (text[i] == ' ' && picture_width(arena_strf(s->p->arena, "%.*s", i, text), 11, false) <= s->waits)
			end = i;
	picture_text(s->p, x, y + 12, ANCHOR_LEFT, 11, INK_FAINT, picture_fit(s->p,
		end ? arena_strf(s->p->arena, "%.*s", end, text) : text, 11, s->waits));
	if (end)
		picture_text(s->p, x, y + 25, ANCHOR_LEFT, 11, INK_FAINT, picture_fit(s->p, text + end + 1, 11, s->waits));
}

static void draw_names(const struct plan_picture *s, const struct entry *e, double y)
{
	double base = y + CELL_H / 2.0 + 5, right = s->p->width - MARGIN;

	picture_text(s->p, MARGIN + 10, base, ANCHOR_LEFT, 14, INK_TEXT,
		picture_fit(s->p, s->g->tasks.v[e->task].name, 14, s->name - 4));
	picture_text(s->p, MARGIN + 10 + s->name, base, ANCHOR_LEFT, 13, INK_FAINT, arena_strf(s->p->arena, "%s%s",
		s->plan->device->seu[e->seu].name, e->at ? arena_strf(s->p->arena, " %+d", e->at) : ""));
	draw_waits(s, e->task, right - s->waits, y);
}

static void draw_cell(const struct plan_picture *s, const struct entry *e, double x, double y, double w,
	const char *text)
{
	int ink = s->ink[e->task];

	picture_rect(s->p, x + 1, y + 2, w - 2, CELL_H - 4, ink, INK_NONE)->round = 3;
	picture_text(s->p, x + w / 2, y + CELL_H / 2.0 + 5, ANCHOR_MIDDLE, 14, picture_on(s->theme, ink), text)->max_width =
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
static double draw_loop(const struct plan_picture *s, int loop, const struct order_step *steps, int n,
	int least, int most, double y)
{
	int columns = (int)((s->p->width - MARGIN - s->waits - 12 - s->x) / s->cell);
	int64_t trips = max_i64(s->g->trips[loop].most, 1);
	struct iterations t = iterations_of(trips, least, most, (int)max_i64(columns, LEAST));
	double space = s->name + s->unit - 2;
	const char *title = label_loop_trips(s->p->arena, s->g, loop);

	picture_text(s->p, MARGIN + 10, y + 15, ANCHOR_LEFT, 13, INK_FAINT, picture_fit(s->p, title, 13, space));
	if (picture_width(title, 13, false) + 8 + picture_width("iteration", 12, false) <= space)
		picture_text(s->p, s->x - 8, y + 15, ANCHOR_RIGHT, 12, INK_FAINT, "iteration");
	for (int64_t j = t.from; j <= t.to; j = j + 1 == t.skip ? t.resume : j + 1) {
		double x = column_x(s, &t, j);
		int stage = j + least >= 0 && j + most < trips ? 1 : j + least < 0 ? 0 : 2;
		struct shape *number = picture_text(s->p, x + s->cell / 2, y + 15, ANCHOR_MIDDLE, 12, INK_FAINT,
			arena_strf(s->p->arena, "%lld", (long long)j));

		number->max_width = fmin(number->max_width, s->cell - 4);
		picture_rect(s->p, x + 1, y + 19, s->cell - 2, 4, INK_PROLOGUE + stage, INK_NONE);
		s->stages[stage] = true;
	}
	if (t.skip < t.resume && t.resume <= t.to)
		picture_text(s->p, column_x(s, &t, t.resume) - s->cell / 2, y + 15, ANCHOR_MIDDLE, 13, INK_FAINT, "…");
	y += 26;
	for (int i = 0; i < n; i++) {
		const struct entry *e = &s->plan->entries.v[steps[i].id];

		if (steps[i].is_loop)
			continue;
		draw_names(s, e, y);
		for (int64_t j = t.from; j <= t.to; j = j + 1 == t.skip ? t.resume : j + 1) {
			double x = column_x(s, &t, j);

			if (j + e->at < 0 || j + e->at >= trips)
				picture_rect(s->p, x + 1, y + 2, s->cell - 2, CELL_H - 4, INK_NONE, INK_GRID)->round = 3;
			else
				draw_cell(s, e, x, y, s->cell, arena_strf(s->p->arena, "%lld", (long long)(j + e->at)));
		}
		y += CELL_H;
	}
	return y;
}

static double draw_region(const struct plan_picture *s, int loop, double y)
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
		if (loop != NONE)
			continue;
		draw_names(s, e, y);
		draw_cell(s, e, s->x, y, s->cell * 3, e->at ? arena_strf(s->p->arena, "tile %+d", e->at) : "once a tile");
		y += CELL_H;
	}
	return y;
}

/* A lane in one phase. */
static double draw_lane_rows(struct plan_picture *s, double y)
{
	const struct plan *p = s->plan;
	const struct lane *l = &p->lanes.v[s->lane];
	int warps = lane_warps(p, s->lane);
	double top = y, left;
	struct buf b = buf_new(s->p->arena);

	buf_printf(&b, "%d warp%s", warps, warps == 1 ? "" : "s");
	if (l->replicas > 1)
		buf_printf(&b, ", %d replicas", l->replicas);
	if (l->registers)
		buf_printf(&b, ", %d registers a thread", l->registers);
	if (p->graph->program->phases.n > 1)
		buf_printf(&b, ", phase %s", p->graph->program->phases.v[s->phase].name);
	picture_bold(s->p, MARGIN + 10, y + 18, ANCHOR_LEFT, 17, INK_TEXT, l->name);
	left = MARGIN + 20 + picture_width(l->name, 17, true);
	picture_text(s->p, left, y + 18, ANCHOR_LEFT, 13, INK_FAINT, picture_fit(s->p, b.text, 13,
		s->p->width - MARGIN - s->waits - 12 - left));
	y = draw_region(s, NONE, y + 28);
	picture_rect(s->p, MARGIN, top, 3, y - top, INK_LINE, INK_NONE);
	return y + 16;
}

static double draw_rings(struct picture *p, const struct plan *plan, double y)
{
	struct buf b = buf_new(p->arena);

	for (int i = 0; i < plan->graph->buffers.n; i++) {
		const struct buffer *x = &plan->graph->buffers.v[i];

		if (plan_scope(plan, i) != SCOPE_SHARED && plan->versions[i] == 1)
			continue;
		buf_printf(&b, "%s%s %d", b.len ? ", " : "rings, versions and size of each: ", x->name,
			plan->versions[i]);
		buf_printf(&b, " x %s", unit_bytes((double)x->bytes).s);
	}
	return b.len ? picture_wrap(p, MARGIN, y + 12, p->width - 2 * MARGIN, 13, INK_FAINT, b.text) : y;
}

static double draw_legend(struct picture *p, const bool *stages, double y)
{
	static const char *const words[] = { "prologue: some entries have nothing to do yet",
		"steady state: all entries work", "epilogue: some have no more to do" };
	double x = MARGIN;

	for (int i = 0; i < LEN(words); i++) {
		if (!stages[i])
			continue;
		if (x > MARGIN && x + 28 + picture_width(words[i], 13, false) > p->width - MARGIN) {
			x = MARGIN;
			y += 20;
		}
		picture_rect(p, x, y - 6, 22, 4, INK_PROLOGUE + i, INK_NONE);
		picture_text(p, x + 28, y, ANCHOR_LEFT, 13, INK_FAINT, words[i]);
		x += 46 + picture_width(words[i], 13, false);
	}
	return picture_wrap(p, MARGIN, y + 20, p->width - 2 * MARGIN, 13, INK_FAINT, "numbers in cells: the iteration of the "
		"source loop that is performed in the iteration above, from top to bottom") - 18;
}

void picture_plan(struct picture *p, const struct plan *plan, const struct picture_options *o)
{
	static const char head[] = "waits for; +1: of the iteration before";
	bool stages[3] = { false };
	const char *line;
	struct plan_picture s;
	double y;

	o = picture_begin(p, o);
	line = "the plan as a table: entry, unit and offset, what it performs in each iteration of the pipelined loop, waits";
	y = picture_top(p, picture_title(p, plan, o), 1, &line) + 8;
	s = (struct plan_picture){ .p = p, .plan = plan, .g = plan->graph, .theme = o->theme,
		.ink = task_inks(p->arena, plan->graph), .name = 130, .unit = 70, .cell = 46, .waits = 300,
		.stages = stages };
	if (p->width < NARROW) {
		s.name = 100;
		s.unit = 64;
		s.cell = 34;
		s.waits = fmax(p->width - 2 * MARGIN - 32 - s.name - s.unit - LEAST * s.cell, 80);
	}
	s.x = MARGIN + 20 + s.name + s.unit;
	picture_text(p, p->width - MARGIN - fmax(s.waits, picture_width(head, 12, false)), y + 10, ANCHOR_LEFT, 12,
		INK_FAINT, head);
	for (int l = 0; l < plan->lanes.n; l++) {
		for (int i = 0; i < plan->graph->program->phases.n; i++) {
			s.lane = l;
			s.phase = i;
			if (lane_has_entries(plan, l, i))
				y = draw_lane_rows(&s, y);
		}
	}
	y = draw_legend(p, stages, y + 10);
	y = draw_rings(p, plan, y + 10);
	p->height = fmax(y + MARGIN, o->height);
}
