/* Can pictures be read? No text lies on another one or outside, no line runs behind a box, colours of sTasks differ for all
 * people, and no letter looks like another. */
#include <math.h>

#include "draw/pictures.h"
#include "tests/draw/fixture.h"
#include "tests/tap.h"

/* ---- geometry -------------------------------------------------------------------- */

struct area {
	double x0, y0, x1, y1;
};

/* Where the letters of a text are, without its descenders. */
static struct area area_of(const struct shape *s)
{
	double w = fmin(picture_width(s->text, s->size, s->bold), s->max_width);
	double x = s->x - (s->anchor == ANCHOR_MIDDLE ? w / 2 : s->anchor == ANCHOR_RIGHT ? w : 0);

	return (struct area){ x, s->y - 0.7 * s->size, x + w, s->y };
}

static bool touch(struct area a, struct area b)
{
	return a.x0 < b.x1 - 0.5 && b.x0 < a.x1 - 0.5 && a.y0 < b.y1 - 0.5 && b.y0 < a.y1 - 0.5;
}

/* Pairs of texts that lie upon each other, and texts that leave the picture. `what` names the first one. */
static int collisions(const struct picture *p, const char **what)
{
	int n = 0;

	for (int i = 0; i < p->shapes.n; i++) {
		const struct shape *s = &p->shapes.v[i];
		struct area a;

		if (s->kind != SHAPE_TEXT || !*s->text)
			continue;
		a = area_of(s);
		if (a.x0 < -0.5 || a.x1 > p->width + 0.5 || a.y1 > p->height || a.y0 < 0) {
			*what = n++ ? *what : arena_strf(p->arena, "'%s' at %.0f, %.0f leaves the picture", s->text, a.x0, a.y1);
			continue;
		}
		for (int k = 0; k < i; k++) {
			const struct shape *o = &p->shapes.v[k];

			if (o->kind != SHAPE_TEXT || !*o->text || !touch(a, area_of(o)))
				continue;
			*what = n++ ? *what : arena_strf(p->arena, "'%s' and '%s' at %.0f, %.0f", o->text, s->text, a.x0, a.y1);
		}
	}
	return n;
}

/* Does a line from a to b enter the area? */
static bool enters(struct point a, struct point b, struct area r)
{
	for (int i = 0; i <= 40; i++) {
		double t = i / 40.0, x = a.x + (b.x - a.x) * t, y = a.y + (b.y - a.y) * t;

		if (x > r.x0 + 1 && x < r.x1 - 1 && y > r.y0 + 1 && y < r.y1 - 1)
			return true;
	}
	return false;
}

/* Lines of a graph that run behind a box, or through a text. */
static int crossings(const struct picture *p, const char **what)
{
	int n = 0;

	for (int i = 0; i < p->shapes.n; i++) {
		const struct shape *s = &p->shapes.v[i];
		struct point ends[] = { { s->x, s->y }, { s->w, s->h } };
		const struct point *v = s->kind == SHAPE_PATH ? s->point : ends;
		int npoints = s->kind == SHAPE_PATH && !s->closed ? s->npoints : s->kind == SHAPE_LINE ? 2 : 0;

		for (int k = 0; k < p->shapes.n; k++) {
			const struct shape *o = &p->shapes.v[k];
			bool is_box = o->kind == SHAPE_RECT && o->fill >= INK_TASK && o->h > 50;
			struct area r = is_box ? (struct area){ o->x, o->y, o->x + o->w, o->y + o->h } :
				o->kind == SHAPE_TEXT ? area_of(o) : (struct area){ 0 };

			for (int m = 0; m + 1 < npoints && (is_box || o->kind == SHAPE_TEXT); m++) {
				if (!enters(v[m], v[m + 1], r))
					continue;
				*what = n++ ? *what : arena_strf(p->arena, "a line from %.0f, %.0f crosses %s", v[0].x, v[0].y,
					is_box ? "a box" : o->text);
				break;
			}
		}
	}
	return n;
}

/* Is there something between a line and a text that hides the line? */
static bool is_hidden(const struct picture *p, int line, int text, struct area a)
{
	for (int i = line + 1; i < text; i++) {
		const struct shape *s = &p->shapes.v[i];

		if (s->kind == SHAPE_RECT && s->fill != INK_NONE && s->x <= a.x0 + 0.5 && s->x + s->w >= a.x1 - 0.5 &&
		    s->y <= a.y0 + 0.5 && s->y + s->h >= a.y1 - 0.5)
			return true;
	}
	return false;
}

/* Texts through which a line of a colour runs, or the edge of a frame. */
static int struck(const struct picture *p, const char **what)
{
	int n = 0;

	for (int i = 0; i < p->shapes.n; i++) {
		const struct shape *s = &p->shapes.v[i];
		bool is_line = s->kind == SHAPE_LINE && (s->stroke >= INK_TASK || s->stroke == INK_BOUND);
		bool is_frame = s->kind == SHAPE_RECT && s->stroke == INK_LINE;

		for (int k = 0; k < p->shapes.n && (is_line || is_frame) && s->motion != MOTION_SWEEP; k++) {
			const struct shape *o = &p->shapes.v[k];
			struct area a;

			if (o->kind != SHAPE_TEXT || !*o->text)
				continue;
			a = area_of(o);
			if (is_line ? !enters((struct point){ s->x, s->y }, (struct point){ s->w, s->h }, a) ||
			    is_hidden(p, i, k, a) : !(a.x0 < s->x + s->w && s->x < a.x1 && a.y0 < s->y + 1.5 && s->y < a.y1))
				continue;
			*what = n++ ? *what : arena_strf(p->arena, "%s crosses '%s' at %.0f, %.0f", is_line ? "a line" :
				"the edge of a frame", o->text, a.x0, a.y1);
		}
	}
	return n;
}

static void is_clear(int n, const char *what, const char *name)
{
	ok(n == 0, name);
	if (n)
		diag("%s: %s", name, what);
}

/* Graphs whose flow goes anywhere downward, with values for later iterations between any two. */
static void test_random_graphs(struct fixture *f)
{
	const char *what = "";
	struct prng r = { 7 };
	int n = 0;

	for (int round = 0; round < 60; round++) {
		struct edge edges[24];
		struct picture p;
		int nedges = 0;

		for (int i = 0; i < LEN(edges); i++) {
			int from = (int)prng_below(&r, NTASKS), to = (int)prng_below(&r, NTASKS);
			bool later = from >= to || !prng_below(&r, 6);
			bool inside = from > T_LOAD_Q && from < T_NORMALISE && to > T_LOAD_Q && to < T_NORMALISE;

			if (later && !inside)
				continue;
			edges[nedges++] = (struct edge){ from, to, EDGE_FLOW, inside ? 0 : NONE, later, false, false,
				(int)prng_below(&r, NBUFFERS) };
		}
		set_edges(f, edges, nedges);
		picture_init(&p, &f->arena, "");
		picture_graph(&p, &f->graph, &(struct picture_options){ .theme = round % 2 });
		n += collisions(&p, &what) + crossings(&p, &what);
	}
	is_clear(n, what, "lines of any graph run past boxes and texts");
	set_edges(f, fixture_edges, LEN(fixture_edges));
}

/* Two sTasks of one layer read what they wrote themselves: these lines do not run around the others. */
static void test_own_values(struct fixture *f)
{
	static struct edge edges[] = { { T_LOAD_K, T_MMA_QK, EDGE_FLOW, 0, 0, false, false, B_K },
		{ T_LOAD_K, T_SOFTMAX, EDGE_FLOW, 0, 0, false, false, B_K },
		{ T_MMA_QK, T_MMA_QK, EDGE_FLOW, 0, 1, false, false, B_S },
		{ T_SOFTMAX, T_SOFTMAX, EDGE_FLOW, 0, 1, false, false, B_MX },
		/* the same value, for the next tile */
		{ T_SOFTMAX, T_SOFTMAX, EDGE_FLOW, NONE, 1, false, false, B_MX },
		{ T_SOFTMAX, T_SOFTMAX, EDGE_FLOW, NONE, 1, false, false, B_L } };
	const char *what = "";
	int dashed = 0, high = 0;
	struct picture p;

	set_edges(f, edges, LEN(edges));
	picture_init(&p, &f->arena, "");
	picture_graph(&p, &f->graph, NULL);
	for (int i = 0; i < p.shapes.n; i++) {
		const struct shape *s = &p.shapes.v[i];
		double least = INFINITY, most = 0;

		if (s->kind != SHAPE_PATH || s->stroke != INK_BOUND)
			continue;
		for (int k = 0; k < s->npoints; k++) {
			least = fmin(least, s->point[k].y);
			most = fmax(most, s->point[k].y);
		}
		dashed++;
		high += most - least > 62;
	}
	is_int(dashed, 2, "values of their own are dashed lines");
	is_int(high, 0, "which are no higher than their boxes");
	is_clear(collisions(&p, &what) + crossings(&p, &what), what, "and no text lies on another one's line");
	set_edges(f, fixture_edges, LEN(fixture_edges));
}

static const struct picture_options *options;

static void timeline(struct fixture *f, struct picture *p)
{
	picture_timeline(p, &f->timeline, NULL, options);
}

static void units(struct fixture *f, struct picture *p)
{
	picture_timeline(p, &f->timeline, &(struct timeline_view){ .by = TIMELINE_SEUS, .from = 900 }, options);
}

static void compare(struct fixture *f, struct picture *p)
{
	picture_compare(p, &f->timeline, &f->timeline, NULL, options);
}

static void plan(struct fixture *f, struct picture *p)
{
	picture_plan(p, &f->plan, options);
}

static void graph(struct fixture *f, struct picture *p)
{
	picture_graph(p, &f->graph, options);
}

/* Points that lie upon each other and next to each other. */
static void roofline(struct fixture *f, struct picture *p)
{
	enum { POINTS = 14 };
	struct roof_point v[POINTS];

	for (int i = 0; i < POINTS; i++)
		v[i] = (struct roof_point){ arena_strf(&f->arena, "attention %d", i),
			1e12, 1e10 * (1 + i % 3 * 0.02), 0.1 + i / 3 * 0.004, i % 2 };
	picture_roofline(p, &f->device, DT_BF16, v, LEN(v), options);
}

/* Two searches with bounds that are near to each other. */
static void progress(struct fixture *f, struct picture *p)
{
	enum { TRIALS = 40 };
	struct progress_entry *v = ARENA_ARRAY(&f->arena, TRIALS, struct progress_entry);

	for (int i = 0; i < TRIALS; i++)
		v[i] = (struct progress_entry){ .trial = i + 1, .predicted = 1e-3 + 1e-2 / (i + 1),
			.best = 1e-3 + 1e-2 / (i + 1), .text = "" };
	picture_progress(p, (struct progress_curve[]){ { "by model", v, TRIALS, 8e-4 }, { "at random", v, TRIALS, 8.2e-4 } }, 2,
		options);
}

static void (*const draw[])(struct fixture *, struct picture *) = { timeline, units, compare, plan, graph, roofline, progress };

struct subject {
	struct fixture *f;
	int kind;
};

static void draw_subject(struct picture *p, const void *what, const struct picture_options *o)
{
	const struct subject *s = what;

	options = o;
	draw[s->kind](s->f, p);
}

/* On a screen all has the shape of a screen, and texts lie apart, too. */
static void test_screens(struct fixture *f)
{
	static const char *const names[] = { "a timeline has the shape of a screen", "units", "a comparison", "a plan", "a graph",
		"a roofline", "a search" };
	for (int i = 0; i < LEN(draw); i++) {
		const char *what = "";
		int n = 0;

		for (int look = 0; look < 8; look++) {
			double width = 400 + 60 * look;
			struct picture p;

			picture_init(&p, &f->arena, "");
			picture_on_screen(&p, draw_subject, &(struct subject){ f, i }, &(struct picture_options){ .width = width,
				.height = width * 9 / 16, .brief = true, .rings = look % 2 });
			n += fabs(p.width - width) > 0.01 || fabs(p.height - width * 9 / 16) > 0.01;
			n += collisions(&p, &what) + struck(&p, &what);
		}
		is_clear(n, what, names[i]);
	}
}

static void test_geometry(struct fixture *f)
{
	static const char *const names[] = { "texts of a timeline lie apart",
		"texts of units", "texts of a comparison", "texts of a plan", "texts of a graph",
		"texts of a roofline", "texts of a search" };
	const char *what = "";

	for (int i = 0; i < LEN(draw); i++) {
		int n = 0;

		for (int look = 0; look < 3 * 13; look++) {
			double width = 480 + 80 * (look / 3);
			struct picture p;

			options = &(struct picture_options){ .width = width, .height = look % 3 == 1 ? width * 9 / 16 : 0,
				.brief = look % 3 == 1, .rings = look % 3 == 2 };
			picture_init(&p, &f->arena, "");
			draw[i](f, &p);
			n += collisions(&p, &what) + struck(&p, &what);
		}
		is_clear(n, what, names[i]);
	}
	test_screens(f);
	test_random_graphs(f);
	test_own_values(f);
}

/* ---- colours -------------------------------------------------------------------- */

/* What people see of a colour: all, without red, without green (Machado, Oliveira, Fernandes 2009). */
static const double seen[3][3][3] = {
	{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
	{ { 0.152286, 1.052583, -0.204868 }, { 0.114503, 0.786281, 0.099216 }, { -0.003882, -0.048116, 1.051998 } },
	{ { 0.367322, 0.860646, -0.227968 }, { 0.280085, 0.672501, 0.047413 }, { -0.011820, 0.042940, 0.968881 } },
};

static double cube_root(double v)
{
	return v > 0.008856 ? cbrt(v) : 7.787 * v + 16 / 116.0;
}

/* CIELAB, as such people see it. */
static void lab_of(uint32_t rgb, int people, double out[3])
{
	double v[3], c[3];

	for (int i = 0; i < 3; i++) {
		double s = (rgb >> (16 - 8 * i) & 255) / 255.0;

		v[i] = s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4);
	}
	for (int i = 0; i < 3; i++)
		c[i] = fmin(fmax(seen[people][i][0] * v[0] + seen[people][i][1] * v[1] + seen[people][i][2] * v[2], 0), 1);
	double x = cube_root((0.4124 * c[0] + 0.3576 * c[1] + 0.1805 * c[2]) / 0.9505);
	double y = cube_root(0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]);
	double z = cube_root((0.0193 * c[0] + 0.1192 * c[1] + 0.9505 * c[2]) / 1.089);

	out[0] = 116 * y - 16;
	out[1] = 500 * (x - y);
	out[2] = 200 * (y - z);
}

/* The least difference of two colours that any of these people see: 2.3 is just noticeable. */
static double difference(uint32_t a, uint32_t b)
{
	double least = INFINITY;

	for (int i = 0; i < LEN(seen); i++) {
		double x[3], y[3];

		lab_of(a, i, x);
		lab_of(b, i, y);
		least = fmin(least, sqrt((x[0] - y[0]) * (x[0] - y[0]) + (x[1] - y[1]) * (x[1] - y[1]) +
			(x[2] - y[2]) * (x[2] - y[2])));
	}
	return least;
}

static double hue_of(uint32_t rgb)
{
	double v[3];

	lab_of(rgb, 0, v);
	return atan2(v[2], v[1]) * 180 / 3.14159265;
}

/* Three sTasks of each kind, each in two slices: more than most programs have in a phase. */
static void test_colours(void)
{
	double apart = INFINITY, slices = INFINITY, turned = 0, text = INFINITY, paper = INFINITY, terminal = INFINITY;
	enum { HUES = 3, SLICES = 2, N = INK_KINDS * HUES * SLICES };
	int ink[N], n = 0;

	for (int i = 0; i < N; i++)
		ink[n++] = ink_of_task(i / (HUES * SLICES), i / SLICES % HUES, i % SLICES);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < i; k++) {
			uint32_t a = ink_colour(THEME_LIGHT, ink[i]), b = ink_colour(THEME_LIGHT, ink[k]);

			if (i / SLICES == k / SLICES) {
				slices = fmin(slices, difference(a, b));
				turned = fmax(turned, fabs(remainder(hue_of(a) - hue_of(b), 360)));
				continue;
			}
			apart = fmin(apart, difference(a, b));
			if (i % SLICES == 0 && k % SLICES == 0)
				terminal = fmin(terminal, fabs((double)colour_of_256(a) - colour_of_256(b)));
		}
	}
	for (int i = INK_TASK; i < INKS; i++) {
		for (int theme = 0; theme < THEMES; theme++) {
			uint32_t fill = ink_colour((enum theme)theme, i);

			text = fmin(text, colour_contrast(fill, ink_colour((enum theme)theme,
				picture_on((enum theme)theme, i))));
			paper = fmin(paper, difference(fill, ink_colour((enum theme)theme, INK_PANEL)));
		}
	}
	diag("differences %.1f, slices %.1f, hues turned by %.1f degrees, contrast %.1f, papers %.1f", apart, slices, turned,
		text, paper);
	ok(apart > 6, "two sTasks never look alike, whoever looks");
	ok(slices > 6, "slices of an sTask differ");
	ok(turned < 20, "but have one hue");
	ok(text >= 4.5, "texts on bars can be read");
	ok(paper > 10, "bars stand out on both papers");
	ok(terminal >= 1, "on a terminal sTasks differ, too");
}

static void test_letters(struct fixture *f)
{
	struct task_key *key = task_keys(&f->arena, &f->graph);
	int alike = 0;

	for (int i = 0; i < f->graph.tasks.n; i++) {
		alike += strpbrk(key[i].letter, "iIlLoO01") != NULL;
		for (int k = 0; k < i; k++)
			alike += key[i].letter[0] == key[k].letter[0];
	}
	is_int(alike, 0, "no letter looks like another or like a digit");
}

int main(void)
{
	struct fixture f;

	fixture_init(&f);
	for (int i = 0; i < f.line.events.n; i++)	/* all that a legend can have */
		f.line.events.v[i].held = (uint8_t[]){ CAUSE_WAIT, CAUSE_ISSUE_ORDER, CAUSE_SEU, CAUSE_MEMORY,
			CAUSE_DRAIN, CAUSE_MEETING }[i % 6];
	test_geometry(&f);
	test_colours();
	test_letters(&f);
	fixture_release(&f);
	return tap_done();
}
