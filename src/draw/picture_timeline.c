/* A timeline as a picture. */
#include <math.h>
#include <string.h>

#include "draw/panel.h"
#include "draw/units.h"

enum { USE = 170, GAP = 28, BRACKETS = 40 };	/* a higher strip shows the interval and its bound */

/* "predicted: 71,000 cycles, 0.68 ms at 1.65 GHz, ...; shown: cycles 0 to 6,400" */
static const char *first_line(struct picture *p, const struct panel *n)
{
	const struct timeline *t = n->c.t;
	struct buf b = buf_new(p->arena);

	buf_printf(&b, "%s: %s", t->measured ? "measured" : "predicted", timeline_total(p->arena, t));
	if (t->clock_hz > 0)
		buf_printf(&b, "; at %s", unit_si(t->clock_hz, "Hz").s);
	return b.text;
}

static const char *second_line(struct picture *p, const struct panel *n)
{
	struct buf b = buf_new(p->arena);

	if (n->c.t->nphases > 1)
		buf_printf(&b, "phase %s, ", n->c.g->program->phases.v[n->c.line->phase].name);
	buf_printf(&b, "%s %s to %s of %s on EU %d%s; ", timeline_unit(n->c.t), unit_count(n->c.from).s,
		unit_count(n->c.to).s, unit_count(n->c.line->cycles).s, n->c.line->eu,
		n->c.steady ? ", the steady state" : "");
	buf_puts(&b, timeline_ii(p->arena, n->c.t, n->c.line));
	return b.text;
}

/* Of a program with several phases: which one is shown, and its part of the time. */
static const char *phase_part(struct picture *p, const struct panel *n)
{
	if (n->c.t->nphases < 2)
		return "";
	return arena_strf(p->arena, "phase %s, %s %s", n->c.g->program->phases.v[n->c.line->phase].name,
		unit_count(n->c.line->cycles).s, timeline_unit(n->c.t));
}

/* Below the time of all, where words are few: the phase and, unless the strip shows it, the interval. */
static const char *brief_line(struct picture *p, const struct panel *n, const char *interval)
{
	const char *phase = phase_part(p, n);

	return arena_strf(p->arena, "%s%s%s", phase, *phase && *interval ? "; " : "", interval);
}

/* What stands before the first semicolon. */
static const char *first_part(struct picture *p, const char *text)
{
	return arena_strf(p->arena, "%.*s", (int)strcspn(text, ";"), text);
}

void picture_timeline(struct picture *p, const struct timeline *t, const struct timeline_view *v,
	const struct picture_options *o)
{
	struct panel *n = ARENA_NEW(p->arena, struct panel);
	double y, rows, top, use, strip, side;

	o = picture_begin(p, o);
	p->height = o->height;
	if (!t->nphases || !t->phases[v ? v->phase : 0].events.n) {
		y = picture_top(p, o, picture_title(p, t->plan, o), 1, (const char *[]){ "no events were recorded" });
		p->height = fmax(p->height, y + MARGIN);
		return;
	}
	side = p->width > 700 && !o->brief ? USE + GAP : 0;
	panel_init(n, p, t, v, o, MARGIN + panel_labels(p, t, v, o->rings || o->only_rings) + 10,
		p->width - MARGIN - side);
	if (o->brief)
		y = picture_top(p, o, picture_title(p, t->plan, o), 3, (const char *[]){
			picture_sizes(p, n->c.g->program, n->c.d, o), first_part(p, first_line(p, n)),
			brief_line(p, n, panel_strip_height(n) > BRACKETS ? "" :
			first_part(p, timeline_ii(p->arena, t, n->c.line))) });
	else
		y = picture_top(p, o, picture_title(p, t->plan, o), 3, (const char *[]){
			picture_sizes(p, n->c.g->program, n->c.d, o), first_line(p, n), second_line(p, n) });
	strip = panel_strip_height(n);
	top = o->brief ? y - 13 : y + 6;
	if (o->height > 0)
		panel_stretch(&n, 1, o->height - top - strip - panel_below(n));
	y = panel_arrange(n, top + strip);
	panel_strip(n, top);
	panel_ground(n);
	rows = panel_axis(n, y + 6, top + strip);
	panel_draw(n);
	shape_move(picture_line(p, n->x0, top + strip - 4, n->x0, y + 6, INK_BOUND, 1.5), MOTION_SWEEP,
		(double)n->c.from,
		n->x1 - n->x0);		/* in animations, a line moves with time */
	use = side > 0 ? panel_use(n, n->x1 + GAP, USE, top + strip) : 0;
	y = panel_legend(n, fmax(rows, use) + panel_legend_gap(n));
	p->height = fmax(p->height, y);
}
