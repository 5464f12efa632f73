/* Around the rows of a timeline: title, axes, intervals, shares, legend; and titles of all pictures. */
#include <math.h>
#include <string.h>

#include "draw/panel.h"
#include "draw/units.h"

enum { AXIS_GAP = 90, TITLE_LEAST = 18, BAND = 18, BRACKET = 20, USE_ROW = 30, LINE = 22 };

const char *program_text(struct arena *a, const struct program *p)
{
	struct buf b = buf_new(a);

	buf_puts(&b, p->name);
	for (int i = 0; i < p->axes.n; i++)
		buf_printf(&b, "%s%s=%lld", i ? ", " : "{", p->axes.v[i].name, (long long)p->axes.v[i].size);
	buf_puts(&b, p->axes.n ? "}" : "");
	return b.text;
}

double picture_wrap(struct picture *p, double x, double y, double space, double size, int ink, const char *text)
{
	struct buf b = buf_new(p->arena);

	while (*text) {
		size_t n = strcspn(text, " ");
		const char *longer = arena_strf(p->arena, "%s%s%.*s", b.len ? b.text : "",
			b.len ? " " : "", (int)n, text);

		if (b.len && picture_width(longer, size, false) > space) {
			picture_text(p, x, y, ANCHOR_LEFT, size, ink, b.text);
			y += size * 1.4;
			buf_init(&b, p->arena);
			continue;
		}
		if (b.len)
			buf_putc(&b, ' ');
		buf_putn(&b, text, n);
		text += n;
		text += strspn(text, " ");
	}
	if (b.len) {
		picture_text(p, x, y, ANCHOR_LEFT, size, ink, b.text);
		y += size * 1.4;
	}
	return y;
}

const struct picture_options *picture_begin(struct picture *p, const struct picture_options *o)
{
	static const struct picture_options usual;

	o = o ? o : &usual;
	p->width = o->width > 0 ? o->width : PICTURE_WIDTH;
	return o;
}

const char *picture_title(struct picture *p, const struct plan *plan, const struct picture_options *o)
{
	const struct vdevice *d = plan->device;

	return o->title ? o->title : arena_strf(p->arena, "%s on %s", program_text(p->arena, plan->graph->program),
		d->title ? d->title : d->name);
}

double picture_top(struct picture *p, const char *title, int n, const char *const *line)
{
	double y = MARGIN + TITLE, size = TITLE, w = picture_width(title, size, true), space = p->width - 2 * MARGIN;
	struct buf about = buf_new(p->arena);
	const char *remainder;
	int lines;

	if (w > space)
		size = fmax(size * space / w, TITLE_LEAST);
	/* a title that is still too long goes on in a second line */
	for (remainder = title, lines = 0; picture_width(remainder, size, true) > space + 1 && lines < 1; lines++) {
		int end = 0;

		for (int i = 0; remainder[i]; i++)
			if (remainder[i] == ' ' && picture_width(arena_strf(p->arena, "%.*s", i, remainder), size, true) <= space)
				end = i;
		if (!end)
			break;
		picture_bold(p, MARGIN, y, ANCHOR_LEFT, size, INK_TEXT, arena_strf(p->arena, "%.*s", end, remainder));
		remainder += end + 1;
		y += size * 1.25;
	}
	picture_bold(p, MARGIN, y, ANCHOR_LEFT, size, INK_TEXT, picture_width(remainder, size, true) <= space + 1 ? remainder :
		picture_fit(p, remainder, size * 1.12, space));
	y += TEXT * 1.7;
	for (int i = 0; i < n; i++) {
		if (!line[i][0])
			continue;
		buf_printf(&about, "%s%s", about.len ? "; " : "", line[i]);
		y = picture_wrap(p, MARGIN, y, space, TEXT, INK_FAINT, line[i]);
	}
	p->title = title;
	p->about = about.len ? about.text : "";
	return y;
}

/* ---- above the rows ------------------------------------------------------------- */

static const char *const stages[] = { "prologue", "steady state", "epilogue" };
static const char *const short_stages[] = { "", "steady", "" };

static void draw_band(struct panel *n, double y, int64_t from, int64_t to, int stage)
{
	double x = fmax(panel_x(n, from), n->x0), end = fmin(panel_x(n, to), n->x1);
	const char *text = stages[stage];

	if (end - x < 2)
		return;
	picture_rect(n->p, x, y + BAND - 5, end - x - 1, 4, INK_PROLOGUE + stage, INK_NONE);
	if (picture_width(text, SMALL, false) > end - x - 4)
		text = short_stages[stage];
	if (picture_width(text, SMALL, false) <= end - x - 4)
		picture_text(n->p, (x + end) / 2, y + BAND - 8, ANCHOR_MIDDLE, SMALL, INK_FAINT, text);
}

/* |---| NAME, so many cycles long; returns where the name ends. */
static double draw_bracket(struct panel *n, double y, int64_t from, double cycles, int ink, const char *name)
{
	double x = panel_x(n, from), w = cycles * (n->x1 - n->x0) / (double)(n->c.to - n->c.from);

	if (x < n->x0 || x + w > n->x1 || w < 6)
		return x;
	picture_rect(n->p, x, y - 1.2, w, 2.4, ink, INK_NONE);
	picture_rect(n->p, x, y - 6, 2.4, 12, ink, INK_NONE);
	picture_rect(n->p, x + w - 2.4, y - 6, 2.4, 12, ink, INK_NONE);
	picture_bold(n->p, x + w + 6, y + 5, ANCHOR_LEFT, 13, ink, name);
	return x + w + 6 + picture_width(name, 13, true);
}

/* The first tile in sight that has a steady state. */
static bool first_steady(const struct panel *n, int64_t *from, int64_t *to)
{
	for (int t = 0; n->c.line->events.n && t <= n->c.line->events.v[n->c.line->events.n - 1].tile; t++) {
		int64_t begin, end;

		if (lookup_steady(n->c.lookup, t, &begin, from, to, &end) && *to > n->c.from)
			return *from < n->c.to;
	}
	return false;
}

double panel_strip_height(const struct panel *n)
{
	int64_t from, to;

	return first_steady(n, &from, &to) ? BAND + 2 * BRACKET + 4 : n->c.line->ii > 0 ? 4 : 0;
}

void panel_strip(struct panel *n, double y)
{
	const struct phase_line *line = n->c.line;
	double bound = fmax(line->res_mii, line->rec_mii);
	int64_t steady, until;

	if (!first_steady(n, &steady, &until))
		return;
	for (int t = 0; t <= line->events.v[line->events.n - 1].tile; t++) {
		int64_t begin, from, to, end;

		if (!lookup_steady(n->c.lookup, t, &begin, &from, &to, &end))
			continue;
		if (begin >= n->c.to)
			break;
		draw_band(n, y, begin, from, 0);
		draw_band(n, y, from, to, 1);
		draw_band(n, y, to, end, 2);
	}
	y += BAND + BRACKET / 2.0 + 2;
	steady = max_i64(steady, n->c.from);
	if (line->ii > 0)
		draw_bracket(n, y, steady, line->ii, INK_TEXT, arena_strf(n->p->arena, "II %s",
			unit_rounded(line->ii).s));
	if (bound > 0 && !n->c.t->logical && line->ii > 0)
		draw_bracket(n, y + BRACKET, steady, bound, INK_BOUND, arena_strf(n->p->arena,
			"bound %s", unit_rounded(bound).s));
}

/* ---- axes ----------------------------------------------------------------------- */

static void draw_ticks(struct panel *n, double y, double grid, const struct chart_axis *axis)
{
	double unit = n->x0 - 18;	/* where the unit ends: before the first number */

	if (axis->ticks.n)
		unit = fmin(unit, n->x0 + axis->ticks.v[0].at * (n->x1 - n->x0) -
			picture_width(axis->ticks.v[0].text, 13, false) / 2 - 8);
	if (axis->unit && unit - picture_width(axis->unit, 13, false) >= 2)
		picture_text(n->p, unit, y + 18, ANCHOR_RIGHT, 13, INK_FAINT, axis->unit);
	picture_line(n->p, n->x0, y, n->x1, y, INK_LINE, 1);
	for (int i = 0; i < axis->ticks.n; i++) {
		double x = n->x0 + axis->ticks.v[i].at * (n->x1 - n->x0);

		picture_line(n->p, x, y, x, y + 5, INK_LINE, 1);
		if (grid < y)
			picture_line(n->p, x, grid, x, y, INK_GRID, 1);
		if (x + picture_width(axis->ticks.v[i].text, 13, false) / 2 < n->p->width - 2)
			picture_text(n->p, x, y + 18, ANCHOR_MIDDLE, 13, INK_FAINT, axis->ticks.v[i].text);
	}
}

/* The distance of numbers at the axis, as a share of it: more where they are long. */
static double axis_gap(const struct panel *n)
{
	return fmax(AXIS_GAP, picture_width(unit_count(n->c.to).s, 13, false) + 24) / (n->x1 - n->x0);
}

void panel_grid(struct panel *n, double top, double bottom)
{
	struct chart_axis axis = chart_axis(&n->c, false, axis_gap(n));

	for (int i = 0; i < axis.ticks.n; i++) {
		double x = n->x0 + axis.ticks.v[i].at * (n->x1 - n->x0);

		picture_line(n->p, x, top, x, bottom, INK_GRID, 1);
	}
}

double panel_axis(struct panel *n, double y, double grid)
{
	struct chart_axis cycles = chart_axis(&n->c, false, axis_gap(n));
	struct chart_axis seconds = chart_axis(&n->c, true, axis_gap(n));

	draw_ticks(n, y, grid, &cycles);
	y += 26;
	if (!seconds.unit || n->no_seconds)
		return y;
	draw_ticks(n, y + 2, y + 2, &seconds);
	return y + 28;
}

static double draw_share(struct panel *n, double x, double w, double y, const char *name, double share, int ink)
{
	double bar = w - 62;

	share = fmin(fmax(share, 0), 1);
	picture_text(n->p, x, y + 12, ANCHOR_LEFT, 13, INK_TEXT, picture_fit(n->p, name, 13, w));
	picture_rect(n->p, x, y + 17, bar, 9, INK_GRID, INK_NONE);
	picture_rect(n->p, x, y + 17, bar * share, 9, ink, INK_NONE);
	picture_bold(n->p, x + w, y + 27, ANCHOR_RIGHT, TEXT, INK_TEXT, unit_keep(n->p->arena, unit_percent(share)));
	return y + USE_ROW + 4;
}

double panel_use(struct panel *n, double x, double w, double y)
{
	static const uint8_t kinds[SEU_KINDS] = { [SEU_COPY] = TASK_LOAD, [SEU_MATRIX] = TASK_MMA,
		[SEU_VECTOR] = TASK_COMPUTE };
	const struct phase_line *line = n->c.line;

	picture_text(n->p, x, y + 10, ANCHOR_LEFT, SMALL, INK_FAINT, "busy, of all the time");
	y += 18;
	for (int s = 0; s < n->c.d->nseus; s++) {
		const char *issue = unit_issue(n->p->arena, line, n->c.d, s), *name = unit_label(n->p->arena, line, n->c.d, s);

		if (unit_share(line, n->c.d, s) > 0)
			y = draw_share(n, x, w, y, issue[0] ? arena_strf(n->p->arena, "%s (%s)", name, issue) : name,
				unit_share(line, n->c.d, s), ink_of_task(kinds[n->c.d->seu[s].kind], 0, 0));
	}
	if (line->memory_share > 0)
		y = draw_share(n, x, w, y, "memory", line->memory_share, INK_EPILOGUE);
	return y;
}

/* ---- legend --------------------------------------------------------------------- */

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
	for (int i = 0; i < n->c.line->events.n; i++) {
		const struct event *e = &n->c.line->events.v[i];

		if (e->task == task && e->ready < n->c.to && e->end > n->c.from)
			return true;
	}
	return false;
}

static void put_key(struct panel *n, struct flow *f, int task)
{
	const char *name = n->c.g->tasks.v[task].name;
	double x = flow_next(f, 28 + picture_width(name, 13, false));

	picture_rect(n->p, x, f->y - 12, 22, 16, n->ink[task], INK_NONE)->round = 2;
	picture_bold(n->p, x + 11, f->y + 1, ANCHOR_MIDDLE, 13, picture_on(n->theme, n->ink[task]),
		n->c.key[task].letter);
	picture_text(n->p, x + 28, f->y + 1, ANCHOR_LEFT, 13, INK_TEXT, name);
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

static bool has_cause(const struct panel *n, int cause)
{
	for (int i = 0; i < n->c.line->events.n; i++)
		if (n->c.line->events.v[i].cause == cause || n->c.line->events.v[i].held == cause)
			return true;
	return false;
}

double panel_legend(struct panel *n, double y)
{
	static const struct { int cause; const char *text; } causes[] = {
		{ CAUSE_WAIT, "w completion" }, { CAUSE_ISSUE_ORDER, "o the issue order" },
		{ CAUSE_SEU, "u its sEU" }, { CAUSE_MEMORY, "m memory" },
		{ CAUSE_DRAIN, "d its products to drain" } };
	struct flow f = { .p = n->p, .x = MARGIN, .y = y, .left = MARGIN, .right = n->p->width - MARGIN };
	struct buf b = buf_new(n->p->arena);
	struct point at;

	if (n->rings)
		f.y = panel_legend_rings(n, f.y);
	if (n->only_rings)
		return f.y;
	for (int i = 0; i < n->c.g->tasks.n; i++)
		if (n->c.g->tasks.v[i].phase == n->c.line->phase && is_in_sight(n, i))
			put_key(n, &f, i);
	f.x = f.left;
	f.y += LINE;
	for (int i = 0; i < LEN(causes); i++)
		if (has_cause(n, causes[i].cause))
			buf_printf(&b, "%s%s", b.len ? ", " : "the lane waits for: ", causes[i].text);
	if (b.len) {
		at = put_words(&f, 44, b.text);
		picture_rect(n->p, at.x, at.y - 8, 38, 9, INK_NONE, INK_NONE)->hatched = true;
	}
	if (n->brief)
		return f.y + LINE;
	if (n->c.by == TIMELINE_LANES) {
		at = put_words(&f, 26, "issued by the lane, begun on the unit");
		picture_rect(n->p, at.x, at.y - 12, 2.4, 10, INK_LINE, INK_NONE);
		picture_line(n->p, at.x + 1, at.y - 2, at.x + 14, at.y + 4, INK_LINE, 1);
		picture_rect(n->p, at.x + 14, at.y + 1, 8, 5, INK_LINE, INK_NONE);
	}
	at = put_words(&f, 28, "until its result is seen");
	picture_rect(n->p, at.x, at.y - 4, 22, 2.5, INK_LINE, INK_NONE);
	picture_rect(n->p, at.x + 20, at.y - 8, 2, 8, INK_LINE, INK_NONE);
	return f.y + LINE;
}

double panel_below(struct panel *n)
{
	int before = n->p->shapes.n;
	double y = panel_legend(n, panel_axis(n, 6, 6) + 24);

	n->p->shapes.n = before;
	return y;
}
