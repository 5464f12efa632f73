/* Around the rows of a timeline: title, axes, intervals, shares; and titles of all pictures. */
#include <math.h>
#include <string.h>

#include "draw/panel.h"
#include "draw/units.h"

enum {
	AXIS_GAP = 90, TITLE_LEAST = 18, TITLE_LINES = 4, TEXT_BRIEF = 13, BAND = 18, BAND_MARGIN = 12, BRACKET = 20,
	NAME_GAP = 12, USE_ROW = 30, STEPS = 4, HEAD_GAP = 16,
};

static const double NEARLY = 0.02;	/* two starts that are off by more do not show the interval */

const char *program_text(struct arena *a, const struct program *p)
{
	struct buf b = buf_new(a);

	program_print_call(p, &b);
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

	return o->title ? o->title : arena_strf(p->arena, "%s on %s", o->brief ? plan->graph->program->name :
		program_text(p->arena, plan->graph->program), d->title ? d->title : d->name);
}

const char *picture_sizes(struct picture *p, const struct program *program, const struct vdevice *d,
	const struct picture_options *o)
{
	const char *text = program_text(p->arena, program);
	size_t name = strlen(program->name), end = strlen(text);

	if (o->title)
		return !d ? text : arena_strf(p->arena, "%s on %s", text, d->title && !o->brief ? d->title : d->name);
	if (!o->brief || end < name + 2)
		return "";
	return arena_strf(p->arena, "sizes %.*s", (int)(end - name - 2), text + name + 1);
}

const char *picture_tile(struct picture *p, const struct graph *g)
{
	struct buf b = buf_new(p->arena);

	for (int i = 0; i < g->program->axes.n; i++)
		if (g->tiling.extent[i])
			buf_printf(&b, "%s%s=%lld", b.len ? ", " : "tile ", g->program->axes.v[i].name,
				(long long)g->tiling.extent[i]);
	return b.len ? b.text : "untiled";
}

double picture_top(struct picture *p, const struct picture_options *o, const char *title, int n,
	const char *const *line)
{
	double size = o->brief ? TITLE_LEAST : TITLE, text = o->brief ? TEXT_BRIEF : TEXT,
		y = o->brief ? 28 : MARGIN + TITLE;
	double w = picture_width(title, size, true), space = p->width - 2 * MARGIN;
	struct buf about = buf_new(p->arena);
	const char *remainder;
	int lines;

	if (w > space)
		size = fmax(size * space / w, TITLE_LEAST);
	/* a title that is still too long goes on in more lines */
	for (remainder = title, lines = 1; lines < TITLE_LINES; lines++) {
		int end = 0;

		if (picture_width(remainder, size, true) <= space + 1)
			break;
		for (int i = 0; remainder[i]; i++)
			if (remainder[i] == ' ' &&
			    picture_width(arena_strf(p->arena, "%.*s", i, remainder), size, true) <= space)
				end = i;
		if (!end)
			break;
		picture_bold(p, MARGIN, y, ANCHOR_LEFT, size, INK_TEXT, arena_strf(p->arena, "%.*s", end, remainder));
		remainder += end + 1;
		y += size * 1.25;
	}
	picture_bold(p, MARGIN, y, ANCHOR_LEFT, size, INK_TEXT,
		picture_width(remainder, size, true) <= space + 1 ? remainder :
		picture_fit(p, remainder, size * 1.12, space));
	/* what is below a title of the user's own on a slide may stand next to it */
	bool joins = o->brief && o->title && n && lines == 1 &&
		picture_width(title, size, true) + HEAD_GAP + picture_width(line[0], text, false) <= space;
	if (joins)
		picture_text(p, p->width - MARGIN, y, ANCHOR_RIGHT, text, INK_FAINT, line[0]);
	y += text * (o->brief ? 1.5 : 1.7);
	for (int i = 0; i < n; i++) {
		if (!line[i][0])
			continue;
		if (!i && joins) {
			buf_puts(&about, line[i]);
			continue;
		}
		buf_printf(&about, "%s%s", about.len ? "; " : "", line[i]);
		y = picture_wrap(p, MARGIN, y, space, text, INK_FAINT, line[i]);
	}
	p->title = title;
	p->about = about.len ? about.text : "";
	return y;
}

/* ---- above the rows ------------------------------------------------------------- */

static const char *const stages[] = { "prologue", "steady state", "epilogue" };
static const char *const short_stages[] = { "", "steady", "" };

/* Not over the bands before, which end at *done. */
static void draw_band(struct panel *n, double y, int64_t from, int64_t to, int stage, double *done)
{
	double x = fmax(panel_x(n, from), *done), end = fmin(panel_x(n, to), n->x1), margin = BAND_MARGIN;
	const char *text = stages[stage];

	if (end - x < 2)
		return;
	*done = end;
	picture_rect(n->p, x, y + BAND - 5, end - x - 1, 4, INK_PROLOGUE + stage, INK_NONE);
	if (picture_width(text, SMALL, false) > end - x - margin)
		text = short_stages[stage];
	if (picture_width(text, SMALL, false) <= end - x - margin)
		picture_text(n->p, (x + end) / 2, y + BAND - 8, ANCHOR_MIDDLE, SMALL, INK_FAINT, text);
}

/* |---| from x to x + w. */
static void draw_bracket(struct panel *n, double x, double w, double y, int ink)
{
	picture_rect(n->p, x, y - 1.2, w, 2.4, ink, INK_NONE);
	picture_rect(n->p, x, y - 6, 2.4, 12, ink, INK_NONE);
	picture_rect(n->p, x + w - 2.4, y - 6, 2.4, 12, ink, INK_NONE);
}

/* Names of brackets, at most two in one row; of those that are one, the other has no text. */
struct bracket_name {
	const char *text;
	int ink;
	double w;
};

static void draw_bracket_name(struct panel *n, const struct bracket_name *name, double x, double y)
{
	if (name->text)
		picture_bold(n->p, x, y + 5, ANCHOR_LEFT, 13, name->ink, name->text);
}

/* Into the bracket, whose line ends around it. */
static void draw_name_inside(struct panel *n, const struct bracket_name *name, double x, double y)
{
	if (name->text)
		picture_rect(n->p, x - 4, y - 6, name->w + 8, 12, INK_PAPER, INK_NONE);
	draw_bracket_name(n, name, x, y);
}

/* Write the names of a bracket from x to `end`: both at its right, the first there and the second at its left or in
 * it, both at its left, or, where there is no other space, both in it. */
static void draw_bracket_names(struct panel *n, double x, double end, double y, struct bracket_name *first,
	struct bracket_name *second)
{
	double right = n->p->width - 4 - (end + 6), left = x - 6 - MARGIN, both;

	first->w = picture_width(first->text, 13, true);
	second->w = second->text ? picture_width(second->text, 13, true) : 0;
	both = first->w + NAME_GAP + second->w;
	if (first->w <= right) {
		draw_bracket_name(n, first, end + 6, y);
		if (both <= right)
			draw_bracket_name(n, second, end + 6 + first->w + NAME_GAP, y);
		else if (second->w <= left)
			draw_bracket_name(n, second, x - 6 - second->w, y);
		else
			draw_name_inside(n, second, fmin(x + 16, n->p->width - 4 - second->w), y);
	} else if (both <= left) {
		draw_bracket_name(n, second, x - 6 - both, y);
		draw_bracket_name(n, first, x - 6 - first->w, y);
	} else {
		x = fmax(n->x0, fmin(x + 16, n->p->width - 4 - both));
		picture_rect(n->p, x - 4, y - 6, both + 8, 12, INK_PAPER, INK_NONE);
		draw_bracket_name(n, first, x, y);
		draw_bracket_name(n, second, x + first->w + NAME_GAP, y);
	}
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

/* Where the bar of an event begins. */
static double bar_x(const struct panel *n, const struct event *e)
{
	return panel_x(n, event_is_async(&n->c, e) ? event_seu_begin(e) : e->start);
}

/* The steady state of a tile; it stays empty if there is none. */
static struct lookup_span steady_of(const struct panel *n, int tile)
{
	struct lookup_span all, steady = { 0 };

	if (!lookup_steady(n->c.lookup, tile, &all.begin, &steady.begin, &steady.end, &all.end))
		return (struct lookup_span){ 0 };
	return steady;
}

/* Two starts of one sTask, in sight and in the steady state of their tile, that are as far from each other as the
 * interval says, or nearly; the sTasks that take most of an iteration are seen best, but copies are made ahead.
 * Returns how many iterations lie between them, n->steps or as few as possible; 0: there are none. */
static int find_interval(const struct panel *n, double *begin, double *length)
{
	double scale = (n->x1 - n->x0) / (double)(n->c.to - n->c.from), least = NEARLY;
	struct lookup_span steady = { 0 };
	int found = 0, tile = NONE;

	for (int step = n->steps ? n->steps : 1; step <= (n->steps ? n->steps : STEPS) && !found; step++) {
		for (int t = 0; t < n->c.g->tasks.n; t++) {
			const struct stask *s = &n->c.g->tasks.v[t];
			const struct lookup_list *list = &n->c.lookup->of_task[t];

			for (int i = 0; i + step < list->n && s->loop == n->c.line->ii_loop &&
			     s->kind != TASK_LOAD; i++) {
				const struct event *e = &n->c.line->events.v[list->v[i]],
					*f = &n->c.line->events.v[list->v[i + step]];
				double x = bar_x(n, e), w = bar_x(n, f) - x,
					off = fabs(w / scale / step / n->c.line->ii - 1);

				if (x < n->x0 || e->tile != f->tile || off > least - (found ? NEARLY / 10 : 0))
					continue;
				if (x + w > n->x1)
					break;
				if (e->tile != tile)
					steady = steady_of(n, tile = e->tile);
				if (e->start - e->before < steady.begin || f->start >= steady.end)
					continue;
				least = off;
				found = step;
				*begin = x;
				*length = w;
			}
		}
	}
	return *length < 6 ? 0 : found;
}

void panel_strips_alike(struct panel *one, struct panel *other)
{
	bool alike = false;

	for (int steps = 1; steps <= STEPS && !alike; steps++) {
		double x, w[2] = { 0 };

		one->steps = other->steps = steps;
		alike = find_interval(one, &x, &w[0]) && find_interval(other, &x, &w[1]);
	}
	if (!alike)
		one->steps = other->steps = 0;
}

double panel_strip_height(const struct panel *n)
{
	int64_t from, to;
	double x, w = 0;

	if (!first_steady(n, &from, &to))
		return n->c.line->ii > 0 ? 4 : 0;
	return BAND + (!find_interval(n, &x, &w) ? 0 : n->brief ? 1 : 2) * BRACKET + 4;
}

/* The interval, between two starts, and its bound. */
static void draw_interval(struct panel *n, double y)
{
	const struct phase_line *line = n->c.line;
	double bound = n->c.t->logical ? 0 : fmax(line->res_mii, line->rec_mii), x = 0, w = 0, least;
	int steps = find_interval(n, &x, &w);
	const char *times = steps > 1 ? arena_strf(n->p->arena, "%d x ", steps) : "";
	double scale = (n->x1 - n->x0) / (double)(n->c.to - n->c.from) * steps;
	struct bracket_name none = { 0 };
	struct bracket_name interval = { arena_strf(n->p->arena, "II %s%s", times, unit_rounded(line->ii).s),
		INK_TEXT, 0 };
	struct bracket_name low = { arena_strf(n->p->arena, "bound %s%s", times, unit_rounded(bound).s), INK_BOUND, 0 };

	if (!steps)
		return;
	least = fmin(bound * scale, n->x1 - x);
	draw_bracket(n, x, w, y, INK_TEXT);
	if (n->brief && bound > 0) {		/* few words: the bound is on the interval */
		draw_bracket(n, x, least, y, INK_BOUND);
		draw_bracket_names(n, x, fmax(x + w, x + least), y, &interval, &low);
		return;
	}
	draw_bracket_names(n, x, x + w, y, &interval, &none);
	if (!(bound > 0))
		return;
	draw_bracket(n, x, least, y + BRACKET, INK_BOUND);
	draw_bracket_names(n, x, x + least, y + BRACKET, &low, &none);
}

void panel_strip(struct panel *n, double y)
{
	const struct phase_line *line = n->c.line;
	int64_t steady, until;
	double done = n->x0;

	if (!first_steady(n, &steady, &until))
		return;
	for (int t = 0; t <= line->events.v[line->events.n - 1].tile; t++) {
		int64_t begin, from, to, end;
		struct lookup_span next = steady_of(n, t + 1);

		if (!lookup_steady(n->c.lookup, t, &begin, &from, &to, &end))
			continue;
		if (begin >= n->c.to)
			break;
		draw_band(n, y, begin, from, 0, &done);
		draw_band(n, y, from, to, 1, &done);
		draw_band(n, y, to, next.begin > to ? min_i64(end, next.begin) : end, 2, &done);
	}
	if (line->ii > 0)
		draw_interval(n, y + BAND + BRACKET / 2.0 + 2);
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
		const char *issue = unit_issue(n->p->arena, line, n->c.d, s),
			*name = unit_label(n->p->arena, line, n->c.d, s);

		if (unit_share(line, n->c.d, s) > 0)
			y = draw_share(n, x, w, y, issue[0] ? arena_strf(n->p->arena, "%s (%s)", name, issue) : name,
				unit_share(line, n->c.d, s), ink_of_task(kinds[n->c.d->seu[s].kind], 0, 0));
	}
	if (line->memory_share > 0)
		y = draw_share(n, x, w, y, "memory", line->memory_share, INK_EPILOGUE);
	return y;
}
