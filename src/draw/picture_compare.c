/* Two timelines over one axis, and below, how long each sTask takes in both. */
#include <math.h>
#include <string.h>

#include "draw/panel.h"
#include "draw/units.h"
#include "sim/timeline.h"

enum { USE = 170, GAP = 28, HEAD = 24, TASK_ROW = 30, COLUMNS_AT = 1000, HALF_GAP = 20 };

struct pair {
	const struct timeline *t[2];
	struct panel *panel[2];
	const char *name[2];
	int phase;
};

static void choose_names(struct pair *c, const struct picture_options *o)
{
	for (int i = 0; i < 2; i++)
		c->name[i] = c->t[i]->measured ? "measured" : "predicted";
	if (c->t[0]->measured == c->t[1]->measured) {
		c->name[0] = "first";
		c->name[1] = "second";
	}
	for (int i = 0; i < 2; i++)
		c->name[i] = o->names[i] ? o->names[i] : c->name[i];
}

static bool have_one_device(const struct pair *c)
{
	return strcmp(c->t[0]->plan->device->name, c->t[1]->plan->device->name) == 0;
}

/* How much longer the second one takes: in time where cycles are not of equal length. */
static const char *ratio_text(struct arena *a, const struct timeline *one, const struct timeline *other)
{
	if (one->clock_hz > 0 && other->clock_hz > 0 && one->seconds > 0 &&
	    strcmp(one->plan->device->name, other->plan->device->name) != 0)
		return arena_strf(a, "%.2f times as long", other->seconds / one->seconds);
	return arena_strf(a, "%.2f times as many %s", (double)other->cycles / (double)max_i64(one->cycles, 1),
		timeline_unit(one));
}

/* The program, and the device if both have the same. */
static const char *pair_title(struct picture *p, const struct pair *c, const struct picture_options *o)
{
	const struct program *program = c->t[1]->plan->graph->program;

	if (o->title || have_one_device(c))
		return picture_title(p, c->t[1]->plan, o);
	return o->brief ? program->name : program_text(p->arena, program);
}

/* "predicted: 71,000 cycles, II 1,312" */
static const char *head_of(struct picture *p, const struct pair *c, int i)
{
	struct buf b = buf_new(p->arena);

	buf_printf(&b, "%s: %s", c->name[i], timeline_total(p->arena, c->t[i]));
	if (c->t[i]->phases[c->phase].ii > 0)
		buf_printf(&b, "; II %s", unit_rounded(c->t[i]->phases[c->phase].ii).s);
	return b.text;
}

/* Of a picture with few words, the headings have the interval, too. */
static double strip_height(const struct panel *n)
{
	return n->brief ? 0 : panel_strip_height(n);
}

/* Let the rows of both fill the height; `top`: where the first heading begins. */
static void choose_stretch(struct pair *c, double height, double top)
{
	double others = top + HALF_GAP + panel_below(c->panel[1]);

	for (int i = 0; i < 2; i++)
		others += HEAD + 4 + strip_height(c->panel[i]);
	panel_stretch(c->panel, 2, height - others);
}

/* Shorten the headings alike until both fit; returns their size. */
static double fit_heads(struct picture *p, const char *head[2])
{
	double space = p->width - 2 * MARGIN - 16, size = TEXT;
	bool shorten = false;

	for (int i = 0; i < 2; i++)
		shorten |= picture_width(head[i], TEXT, true) > space;
	for (int i = 0; i < 2; i++) {
		if (shorten)
			head[i] = arena_strf(p->arena, "%.*s", (int)strcspn(head[i], ";"), head[i]);
		size = fmin(size, fmax(TEXT * space / picture_width(head[i], TEXT, true), SMALL));
	}
	for (int i = 0; i < 2; i++)
		head[i] = picture_fit(p, head[i], size * 1.12, space + 1);
	return size;
}

/* Draw one timeline with its heading from y down; returns where its rows end. The colour before the heading is
 * that of its bars of sTasks, which a brief picture does not have. */
static double draw_half(struct panel *n, const char *head, double size, int ink, double y)
{
	double strip = strip_height(n), end;

	if (!n->brief)
		picture_rect(n->p, MARGIN, y + 2, 8, HEAD - 6, ink, INK_NONE);
	picture_bold(n->p, MARGIN + (n->brief ? 0 : 16), y + 16, ANCHOR_LEFT, size, INK_TEXT, head);
	y += HEAD + 4;
	end = panel_arrange(n, y + strip);
	if (strip > 0)
		panel_strip(n, y);
	panel_ground(n);
	return end;
}

/* One sTask's two bars, and their ratio. */
static void draw_pair(struct picture *p, const char *name, const double mean[2], double most,
	double x, double y, double w, double label)
{
	double bar = w - label - 150;

	picture_text(p, x + label - 10, y + 18, ANCHOR_RIGHT, 13, INK_TEXT, picture_fit(p, name, 13, label - 10));
	for (int i = 0; i < 2; i++)
		if (mean[i] >= 0)
			picture_rect(p, x + label, y + 3 + 11 * i, fmax(bar * mean[i] / most, 1), 10,
				INK_FIRST + i, INK_NONE);
	picture_text(p, x + label + bar + 8, y + 18, ANCHOR_LEFT, 13, INK_FAINT, arena_strf(p->arena, "%s | %s",
		mean[0] < 0 ? "-" : unit_rounded(mean[0]).s, mean[1] < 0 ? "-" : unit_rounded(mean[1]).s));
	if (mean[0] > 0 && mean[1] >= 0)
		picture_bold(p, x + w - 8, y + 18, ANCHOR_RIGHT, 13, INK_TEXT,
			arena_strf(p->arena, "%.2f", mean[1] / mean[0]));
}

static double draw_tasks(struct picture *p, const struct pair *c, double y)
{
	const struct graph *g[2] = { c->t[0]->plan->graph, c->t[1]->plan->graph };
	const struct task_sum *sum[2] = { phase_sums(p->arena, c->t[0], c->phase),
		phase_sums(p->arena, c->t[1], c->phase) };
	int columns = p->width >= COLUMNS_AT ? 2 : 1, n = 0, rows;
	double w = (p->width - 2 * MARGIN) / columns, most = 1, label = 60;
	int *task = ARENA_ARRAY(p->arena, g[0]->tasks.n + g[1]->tasks.n, int);
	double (*mean)[2] = arena_alloc(p->arena, (size_t)(g[0]->tasks.n + g[1]->tasks.n) * sizeof(*mean));

	/* in program order: sTasks of the second, then those that only the first has */
	for (int side = 1; side >= 0; side--) {
		for (int i = 0; i < g[side]->tasks.n; i++) {
			const char *name = g[side]->tasks.v[i].name;
			int there = graph_find_task(g[!side], name);
			double here = sum[side][i].n ? sum[side][i].duration / (double)sum[side][i].n : -1;

			if (here < 0 || (!side && there != NONE && sum[1][there].n))
				continue;
			task[n] = side ? i : -1 - i;
			mean[n][side] = here;
			mean[n][!side] = there != NONE && sum[!side][there].n ?
				sum[!side][there].duration / (double)sum[!side][there].n : -1;
			most = fmax(most, fmax(mean[n][0], mean[n][1]));
			label = fmax(label, picture_width(name, 13, false) + 14);
			n++;
		}
	}
	label = fmin(label, w / 3);
	rows = (n + columns - 1) / columns;
	y = picture_wrap(p, MARGIN, y, p->width - 2 * MARGIN, 13, INK_FAINT, arena_strf(p->arena, "mean %s of an "
		"sTask from issue to completion: %s | %s, and how many times as long", timeline_unit(c->t[0]),
		c->name[0], c->name[1])) - 8;
	for (int i = 0; i < n; i++)
		draw_pair(p, g[task[i] >= 0]->tasks.v[task[i] >= 0 ? task[i] : -1 - task[i]].name, mean[i],
			most, MARGIN + (i / rows) * w, y + (i % rows) * TASK_ROW, w, label);
	return y + rows * TASK_ROW;
}

/* Show the same cycles in both: all that either would show. */
static void choose_window(struct pair *c, struct picture *p, const struct timeline_view *v,
	const struct picture_options *o, double x0, double x1)
{
	for (int i = 0; i < 2; i++)
		panel_init(c->panel[i], p, c->t[i], v, o, x0, x1);
	for (int i = 1; i >= 0; i--)
		chart_set_window(&c->panel[i]->c, min_i64(c->panel[0]->c.from, c->panel[1]->c.from),
			max_i64(c->panel[0]->c.to, c->panel[1]->c.to));
	p->from = (double)c->panel[0]->c.from;
	p->to = (double)c->panel[0]->c.to;
}

void picture_compare(struct picture *p, const struct timeline *a, const struct timeline *b,
	const struct timeline_view *v, const struct picture_options *o)
{
	struct pair c = { .t = { a, b }, .phase = v && v->phase < a->nphases && v->phase < b->nphases ? v->phase : 0 };
	double y, end[2], side, labels, size;
	const char *line, *title, *head[2];

	o = picture_begin(p, o);
	choose_names(&c, o);
	line = arena_strf(p->arena, "%s above %s, which takes %s", c.name[0], c.name[1],
		ratio_text(p->arena, a, b));
	if (strcmp(program_text(p->arena, a->plan->graph->program), program_text(p->arena,
		b->plan->graph->program)) != 0)
		line = arena_strf(p->arena, "%s; %s is of %s", line, c.name[0], program_text(p->arena,
			a->plan->graph->program));
	if (b->nphases > 1)
		line = arena_strf(p->arena, "%s; phase %s", line,
			b->plan->graph->program->phases.v[b->phases[c.phase].phase].name);
	title = pair_title(p, &c, o);
	if (o->names[0] && o->names[1] && !o->title && !o->brief)
		title = arena_strf(p->arena, "%s and %s: %s", o->names[0], o->names[1], title);
	y = picture_top(p, o, title, 2, (const char *[]){ picture_sizes(p, b->plan->graph->program,
		have_one_device(&c) ? b->plan->device : NULL, o), line }) +
		(o->brief ? -8 : 4);
	side = p->width > 700 && !o->brief ? USE + GAP : 0;
	labels = fmax(panel_labels(p, a, v, o->rings || o->only_rings),
		panel_labels(p, b, v, o->rings || o->only_rings));
	for (int i = 0; i < 2; i++)
		c.panel[i] = ARENA_NEW(p->arena, struct panel);
	choose_window(&c, p, v, o, MARGIN + labels + 10, p->width - MARGIN - side);
	c.panel[1]->above = c.panel[0];
	panel_strips_alike(c.panel[0], c.panel[1]);
	c.panel[1]->no_seconds |= fabs(a->clock_hz - b->clock_hz) > 1e-3 * b->clock_hz;
	if (o->brief && o->height > 0)
		choose_stretch(&c, o->height, y);
	for (int i = 0; i < 2; i++)
		head[i] = head_of(p, &c, i);
	size = fit_heads(p, head);
	end[0] = draw_half(c.panel[0], head[0], size, INK_FIRST, y);
	end[0] = fmax(end[0], side > 0 ? panel_use(c.panel[0], c.panel[0]->x1 + GAP, USE, c.panel[0]->top) : 0);
	end[1] = draw_half(c.panel[1], head[1], size, INK_SECOND, end[0] + HALF_GAP);
	y = panel_axis(c.panel[1], end[1] + 6, c.panel[1]->top);
	panel_grid(c.panel[0], c.panel[0]->top, c.panel[0]->bottom);
	panel_draw(c.panel[0]);
	panel_draw(c.panel[1]);
	end[1] = side > 0 ? panel_use(c.panel[1], c.panel[1]->x1 + GAP, USE, c.panel[1]->top) : 0;
	y = o->brief ? fmax(y, end[1]) : draw_tasks(p, &c, fmax(y, end[1]) + 26);
	p->height = fmax(panel_legend(c.panel[1], y + panel_legend_gap(c.panel[1])), o->height);
}
