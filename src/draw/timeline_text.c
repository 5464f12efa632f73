/* A timeline as text: the chart with its axes, and the numbers below. */
#include "draw/chart.h"
#include "draw/pen.h"
#include "draw/units.h"

enum { BAR = 30, AXIS_GAP = 10 };

/* The axis' line with ticks on row `ruler`, its unit and numbers on row `text`; where numbers would touch, some are
 * left out. */
static void draw_axis(const struct chart *c, struct cells *out, int ruler, int text, bool seconds, const char *tick)
{
	struct chart_axis axis = chart_axis(c, seconds, (double)AXIS_GAP / c->cols);
	int free = 0;

	cells_text(out, 0, text, c->left - 1, axis.unit, FAINT);
	cells_fill(out, c->left, ruler, c->cols, "─", FAINT);
	for (int i = 0; i < axis.ticks.n; i++) {
		int x = (int)(axis.ticks.v[i].at * c->cols + 1e-9);
		const char *s = axis.ticks.v[i].text;

		if (x >= c->cols)
			break;
		cells_put(out, c->left + x, ruler, tick, FAINT);
		if (x < free || x + text_width(s) > c->cols)
			continue;
		cells_text(out, c->left + x, text, c->cols - x, s, FAINT);
		free = x + text_width(s) + 1;
	}
}

static void draw_chart(const struct chart *c, int width, struct cells *out, struct chart_map *map)
{
	bool timed = c->d->clock_hz > 0 && !c->t->logical;
	int y;

	cells_init(out, c->arena, width, 2);
	draw_axis(c, out, 1, 0, false, "┬");
	y = c->overview ? chart_many(c, out, 2, map) : chart_rows(c, out, 2, map);
	if (map) {
		map->top = 2;
		map->bottom = y;
	}
	cells_grow(out, y + 2);
	if (timed)
		draw_axis(c, out, y, y + 1, true, "┴");
	out->h = timed ? y + 2 : y;
}

void timeline_cells(const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a, struct cells *out, struct chart_map *map)
{
	struct chart c;

	if (map)
		*map = (struct chart_map){ 0 };
	if (!t->nphases) {
		cells_init(out, a, width, 0);
		return;
	}
	chart_init(&c, t, v, width, flags, a);
	draw_chart(&c, width, out, map);
}

static void put_keys(const struct chart *c, struct pen *pen)
{
	bool colour = pen->flags & DRAW_COLOUR;
	int x = 0;

	for (int i = 0; i < c->g->tasks.n; i++) {
		const struct task_key *k = &c->key[i];
		int space = 2 + text_width(c->g->tasks.v[i].name);

		if (c->g->tasks.v[i].phase != c->line->phase)
			continue;
		if (x && x + 2 + space > pen->width) {
			pen_puts(pen, "\n", PLAIN);
			x = 0;
		}
		pen_puts(pen, x ? "  " : "", PLAIN);
		pen_puts(pen, k->letter, colour ? k->bar : PLAIN);
		pen_printf(pen, " %s", c->g->tasks.v[i].name);
		x += space + (x ? 2 : 0);
	}
	pen_puts(pen, "\n", PLAIN);
}

static bool has_cause(const struct chart *c, enum cause cause)
{
	for (int i = 0; i < c->line->events.n; i++)
		if (c->line->events.v[i].cause == cause)
			return true;
	return false;
}

static void put_legend(const struct chart *c, struct pen *pen)
{
	struct buf b = buf_new(pen->arena);

	pen_puts(pen, "\n", PLAIN);
	put_keys(c, pen);
	if (!(pen->flags & DRAW_COLOUR))
		buf_puts(&b, "▓ matrix, ▒ vector, ░ copy; ");
	buf_puts(&b, c->by == TIMELINE_LANES ? "▸ issued; dots: waiting, w for completion, "
		"o for the issue order, u for its sEU, mem for memory" :
		"dots: waiting, u for its sEU, mem for memory");
	if (c->by == TIMELINE_LANES && has_cause(c, CAUSE_DRAIN))
		buf_puts(&b, ", d to drain the lane's products");
	if (c->by == TIMELINE_LANES && has_cause(c, CAUSE_MEETING))
		buf_puts(&b, ", b at a barrier for a lane");
	if (chart_is_split(c))
		buf_puts(&b, "; wg0, wg1: warpgroups of a lane that drift apart, each with its part of the work");
	pen_wrap(pen, "", 0, b.text);
}

static void add_use(struct table *t, const char *name, double busy, double share, int bar)
{
	TABLE_ROW(t, name, NULL, unit_keep(t->arena, unit_percent(share)), busy > 0 && busy < 9e18 ?
		unit_keep(t->arena, unit_count((int64_t)busy)) : NULL)[1] = pen_bar(t->arena, share, bar);
}

static void put_use(const struct timeline *t, const struct phase_line *p, struct pen *pen)
{
	const struct column col[] = { { "busy", ALIGN_LEFT, 8, 0 }, { "", ALIGN_LEFT, 0, 0 }, { "", ALIGN_RIGHT, 0, 0 },
		{ timeline_unit(t), ALIGN_RIGHT, 0, 1 } };
	int bar = (int)min_i64(max_i64(pen->width - 32, 8), BAR);
	const struct vdevice *d = t->plan->device;
	double cycles = (double)p->cycles;
	struct table use = table_new(pen->arena, col, LEN(col));

	for (int s = 0; s < d->nseus; s++)
		if (unit_share(p, d, s) > 0)
			add_use(&use, unit_label(pen->arena, p, d, s), d->seu[s].kind == SEU_COPY ?
				p->seu[s].under_way * cycles :
				p->seu[s].busy, unit_share(p, d, s), bar);
	if (p->memory_share > 0)
		add_use(&use, "memory", 0, p->memory_share, bar);
	table_print(&use, 0, pen->width, pen->flags, pen->out);
	for (int s = 0; s < d->nseus; s++) {
		const char *issue = unit_issue(pen->arena, p, d, s);

		if (unit_is_replaced(p, d, s))
			pen_wrap(pen, "", 2, arena_strf(pen->arena, "%s: threads copy instead of %s",
				unit_label(pen->arena, p, d, s), d->seu[s].name));
		else if (issue[0])
			pen_wrap(pen, "", 2, arena_strf(pen->arena, "%s: the time with transfers under way; %s",
				d->seu[s].name, issue));
	}
}

static const char *chart_title(const struct chart *c)
{
	const struct timeline *t = c->t;
	struct buf b = buf_new(c->arena);

	buf_printf(&b, "%s", timeline_origin(c->arena, t));
	if (t->nphases > 1)
		buf_printf(&b, ", phase %s", c->g->program->phases.v[c->line->phase].name);
	if (!c->line->events.n) {
		buf_puts(&b, ": no events were recorded");
		return b.text;
	}
	buf_printf(&b, ": %s %s to %s of %s", timeline_unit(t), unit_count(c->from).s, unit_count(c->to).s,
		unit_count(c->line->cycles).s);
	if (c->steady)
		buf_puts(&b, ", the steady state; from=0 begins with the prologue");
	return b.text;
}

void draw_timeline(const struct timeline *t, const struct timeline_view *v,
	const struct draw_options *o, struct buf *out)
{
	struct pen pen = pen_new(o, out);
	struct cells cells;
	struct chart c;

	if (!t->nphases) {
		pen_name(&pen, t->plan->graph->program->name, "timeline without phases");
		return;
	}
	chart_init(&c, t, v, pen.width, pen.flags, pen.arena);
	pen_name(&pen, t->plan->graph->program->name, chart_title(&c));
	if (c.line->events.n) {
		pen_puts(&pen, "\n", PLAIN);
		draw_chart(&c, pen.width, &cells, NULL);
		cells_print(&cells, pen.flags, out);
		put_legend(&c, &pen);
	}
	pen_puts(&pen, "\n", PLAIN);
	put_use(t, c.line, &pen);
	pen_puts(&pen, "\n", PLAIN);
	pen_line(&pen, timeline_total(pen.arena, t));
	pen_line(&pen, timeline_no_power(t));
	pen_line(&pen, timeline_ii(pen.arena, t, c.line));
	pen_line(&pen, timeline_waits(pen.arena, t, c.line));
	pen_line(&pen, timeline_unpriced(pen.arena, t));
}
