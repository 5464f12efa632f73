/* Pictures: their lists of shapes against tests/draw/picture_NAME.txt (BLESS=1 writes those
 * files), the writers, some pixels, and files that cannot be written. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "draw/pictures.h"
#include "tests/draw/fixture.h"
#include "tests/golden.h"
#include "tests/tap.h"

static void golden(const char *name, const char *text)
{
	char file[64];

	snprintf(file, sizeof(file), "picture_%s", name);
	golden_is(name, "draw", file, text);
}

/* A line for each shape, in integer pixels. */
static void list(const struct picture *p, struct buf *out)
{
	static const char *const kinds[] = { "rect", "line", "path", "text" };

	buf_printf(out, "%s: %.0f x %.0f\n%s\n", p->title, p->width, p->height, p->about);
	for (int i = 0; i < p->shapes.n; i++) {
		const struct shape *s = &p->shapes.v[i];

		buf_printf(out, "%s %d/%d", kinds[s->kind], s->fill, s->stroke);
		if (s->kind == SHAPE_PATH)
			buf_printf(out, " %.0f,%.0f .. %.0f,%.0f", s->point[0].x, s->point[0].y,
				s->point[s->npoints - 1].x, s->point[s->npoints - 1].y);
		else
			buf_printf(out, " %.0f,%.0f", s->x, s->y);
		if (s->kind == SHAPE_RECT || s->kind == SHAPE_LINE)
			buf_printf(out, " %.0f,%.0f", s->w, s->h);
		if (s->text)
			buf_printf(out, " '%s' %.0f", s->text, s->size);
		if (s->motion)
			buf_printf(out, " @%d %.0f-%.0f", s->motion, s->begin, s->end);
		buf_printf(out, "%s%s\n", s->tip ? " | " : "", s->tip ? s->tip : "");
	}
}

static void check_list(struct fixture *f, const char *name, void (*draw)(struct fixture *, struct picture *))
{
	struct picture p;
	struct buf b;

	picture_init(&p, &f->arena, "");
	draw(f, &p);
	buf_init(&b, &f->arena);
	list(&p, &b);
	golden(name, b.text);
}

static void timeline(struct fixture *f, struct picture *p)
{
	picture_timeline(p, &f->timeline, NULL, NULL);
}

static void seus(struct fixture *f, struct picture *p)
{
	picture_timeline(p, &f->timeline, &(struct timeline_view){ .by = TIMELINE_SEUS },
		&(struct picture_options){ .width = 640, .title = "as units <&>" });
}

static void plan(struct fixture *f, struct picture *p)
{
	picture_plan(p, &f->plan, NULL);
}

static void graph(struct fixture *f, struct picture *p)
{
	picture_graph(p, &f->graph, NULL);
}

static void roofline(struct fixture *f, struct picture *p)
{
	static const struct roof_point v[] = { { "one", 1e12, 1e9, 2e-3, false },
		{ "other", 1e12, 1e9, 2.1e-3, true }, { "thin", 1e9, 1e9, 1e-3, true } };

	picture_roofline(p, &f->device, DT_BF16, v, LEN(v), NULL);
}

/* Numbers of points that lie upon and next to each other: none is missing, none is on another or on a dot,
 * and all are within the picture. */
static void check_crowded(struct fixture *f)
{
	enum { POINTS = 14, NUMBER = 15 };
	struct roof_point v[POINTS];
	const struct shape *number[POINTS] = { 0 };
	struct picture p;
	int missing = 0, touching = 0, outside = 0;

	for (int i = 0; i < POINTS; i++)
		v[i] = (struct roof_point){ arena_strf(&f->arena, "point %d", i),
			1e12, 1e10 * (1 + i % 3 * 0.02), 0.1 + i / 3 * 0.004, i % 2 };
	picture_init(&p, &f->arena, "");
	picture_roofline(&p, &f->device, DT_BF16, v, LEN(v), NULL);
	for (int i = 0; i < p.shapes.n; i++) {
		const struct shape *s = &p.shapes.v[i];
		int n = s->kind == SHAPE_TEXT && s->bold && strspn(s->text, "0123456789") == strlen(s->text) ?
			atoi(s->text) : 0;

		if (n >= 1 && n <= POINTS)
			number[n - 1] = s;
	}
	for (int i = 0; i < POINTS; i++) {
		const struct shape *a = number[i];

		missing += !a;
		outside += a && (a->x < 0 || a->x > p.width || a->y < NUMBER || a->y > p.height);
		for (int k = 0; a && k < i; k++)
			touching += number[k] && fabs(a->x - number[k]->x) < NUMBER / 2.0 &&
				fabs(a->y - number[k]->y) < NUMBER - 2;
		for (int k = 0; a && k < p.shapes.n; k++) {
			const struct shape *s = &p.shapes.v[k];

			/* a path begins at the right of its dot */
			touching += s->kind == SHAPE_PATH && fabs(a->x - (s->point[0].x - 7)) < 7 &&
				fabs(a->y - 5 - s->point[0].y) < 7;
		}
	}
	is_int(0, missing, "every point of a crowd has its number");
	is_int(0, touching, "no number is on another or on a dot");
	is_int(0, outside, "nor out of the picture");
}

/* ---- searches ------------------------------------------------------------------- */

static struct progress_entry searched[] = {
	{ 1, 3e-3, 0, 0, PROGRESS_PREDICTED, false, "m=64 n=64" },
	{ 2, 1.2e-3, 0, 0, PROGRESS_PREDICTED, false, "m=128 n=128" },
	{ 3, 5e-3, 0, 0, PROGRESS_FAILED, false, "m=16 n=16" },
	{ 4, 1.3e-3, 0, 0, PROGRESS_SKIPPED, true, "" },
	{ 5, 1.2e-3, 1.5e-3, 0, PROGRESS_OK, true, "m=128 n=128" },
	{ 6, 1.25e-3, 1.1e-3, 0, PROGRESS_WRONG, true, "m=128 n=96" },
	{ 7, 1.25e-3, 1.4e-3, 0, PROGRESS_OK, true, "m=128 n=112" },
};
static struct progress_entry by_chance[] = { { 1, 0, 9e-3, 0, PROGRESS_OK, true, "" },
	{ 40, 0, 2e-3, 0, PROGRESS_OK, true, "" }, { 300, 0, 1.405e-3, 0, PROGRESS_OK, true, "" } };

static void progress(struct fixture *f, struct picture *p)
{
	struct progress_curve c = { "two products on toy", searched, LEN(searched), 1e-3 };

	(void)f;
	progress_fill(searched, LEN(searched));
	picture_progress(p, &c, 1, NULL);
}

static void progresses(struct fixture *f, struct picture *p)
{
	struct progress_curve c[] = { { "by chance", by_chance, LEN(by_chance), 0 },
		{ "by model <&>", searched, LEN(searched), 1e-3 } };

	(void)f;
	progress_fill(by_chance, LEN(by_chance));
	picture_progress(p, c, LEN(c), &(struct picture_options){ .width = 800, .title = "both" });
}

/* The end of a search comes near to its bound, whose name must not hide that. */
static void test_name_of_bound(struct fixture *f)
{
	enum { TRIALS = 100 };
	struct progress_entry *v = ARENA_ARRAY(&f->arena, TRIALS, struct progress_entry);
	struct progress_curve c = { "", v, TRIALS, 1.95e-4 };
	const struct shape *name = NULL;
	struct picture p;
	int hidden = 0;

	for (int i = 0; i < TRIALS; i++)
		v[i] = (struct progress_entry){ .trial = i + 1, .predicted = i < 60 ? 3e-4 + 1e-6 * (60 - i) :
			1.97e-4 + 5e-7 * (i * 7 % 20), .status = PROGRESS_PREDICTED, .text = "" };
	progress_fill(v, TRIALS);
	picture_init(&p, &f->arena, "");
	picture_progress(&p, &c, 1, &(struct picture_options){ .width = 512, .height = 288, .brief = true });
	for (int i = 0; i < p.shapes.n && !name; i++)
		if (p.shapes.v[i].kind == SHAPE_TEXT && p.shapes.v[i].text[0] == 'b' && p.shapes.v[i].text[1] == 'o')
			name = &p.shapes.v[i];
	if (!ok(name != NULL, "a bound has a name"))
		return;
	for (int i = 0; i < p.shapes.n; i++) {
		const struct shape *s = &p.shapes.v[i];

		hidden += s->tip && s->x + s->w > name->x - picture_width(name->text, name->size, false) && s->x < name->x &&
			s->y + s->h > name->y - 12 && s->y < name->y + 3;
	}
	is_int(hidden, 0, "  which hides no trial");
}

static void test_progress(struct fixture *f)
{
	struct progress_curve c = { "", searched, LEN(searched), 1e-3 };
	struct progress_axes a = progress_axes_of(&c, 1);
	double tick[PROGRESS_TICKS];
	struct picture p;
	int n, outside = 0;

	is_near(searched[2].best, 1.2e-3, 1e-12, "what failed is no best");
	is_near(searched[4].best, 1.5e-3, 1e-12, "what is measured replaces what was predicted");
	is_near(searched[5].best, 1.5e-3, 1e-12, "unless it is wrong");
	is_near(progress_best(&c), 1.4e-3, 1e-12, "the best is at the end");
	is_int(progress_reaches(&c, 1.4e-3), 6, "where it was found");
	is_int(progress_reaches(&c, 1.3e-3), NONE, "predictions do not count once something was measured");
	ok(a.log && !a.log_trials, "times that are far apart want logarithms");
	ok(progress_up(&a, 1e-3) > 0 && progress_up(&a, 5e-3) < 1, "nothing lies on the edge");
	n = progress_ticks(1, 10, true, 9, tick);
	ok(n == 9 && tick[0] == 1 && is_near(tick[n - 1], 10, 1e-9, "marks of a decade"), "has its end");
	n = progress_ticks(0.93, 2.11, false, 6, tick);
	ok(n == 6 && is_near(tick[0], 1, 1e-9, "the first is round"), "steps of 0.2");
	n = progress_ticks(1e-9, 1e9, true, 6, tick);
	ok(n >= 2 && n <= 7, "many decades have few marks");
	for (int width = PICTURE_WIDTH_MIN; width < PICTURE_WIDTH; width += 40) {
		picture_init(&p, &f->arena, "");
		picture_progress(&p, &c, 1, &(struct picture_options){ .width = width, .height = 100 });
		for (int i = 0; i < p.shapes.n; i++)
			outside += p.shapes.v[i].kind == SHAPE_TEXT && p.shapes.v[i].anchor == ANCHOR_LEFT &&
				p.shapes.v[i].size < 15 && (p.shapes.v[i].y > p.height || p.shapes.v[i].x +
				picture_width(p.shapes.v[i].text, p.shapes.v[i].size, false) > p.width);
	}
	is_int(outside, 0, "the list is within the picture, however narrow or low that is");
	picture_init(&p, &f->arena, "");
	picture_progress(&p, &(struct progress_curve){ "", NULL, 0, 0 }, 1, NULL);
	is_str(p.shapes.v[p.shapes.n - 1].text, "nothing was tried", "a search of nothing");
}

/* ---- SVG ------------------------------------------------------------------------ */

/* Does every element end, and are the bytes those of XML? */
static bool is_well_formed(const char *s)
{
	const char *open[64];
	int n = 0;

	while (*s) {
		const char *end;

		if (*s == '&' && strncmp(s, "&lt;", 4) && strncmp(s, "&gt;", 4) && strncmp(s, "&amp;", 5) &&
		    strncmp(s, "&quot;", 6))
			return false;
		if ((unsigned char)*s < ' ' && *s != '\n')
			return false;
		if (*s++ != '<')
			continue;
		end = strchr(s, '>');
		if (!end)
			return false;
		if (*s == '/') {
			size_t len = (size_t)(end - s - 1);

			if (!n || strncmp(open[--n], s + 1, len) || strcspn(open[n], " >/\n") != len)
				return false;
		} else if (end[-1] != '/') {
			if (n == LEN(open))
				return false;
			open[n++] = s;
		}
		s = end + 1;
	}
	return n == 0;
}

static void test_svg(struct fixture *f)
{
	struct picture_how how = { .animate = true };
	struct picture p;
	struct buf b;

	picture_init(&p, &f->arena, "");
	seus(f, &p);
	p.script = "a < b\nc \x01 & d";
	buf_init(&b, &f->arena);
	picture_svg(&p, &how, &b);
	ok(is_well_formed(b.text), "an animated SVG is well formed");
	ok(strstr(b.text, "<metadata>a &lt; b\nc ? &amp; d</metadata>") != NULL, "it has the script");
	ok(strstr(b.text, "<title>as units &lt;&amp;&gt;</title>") != NULL, "it has its title");
	ok(strstr(b.text, ">as units &lt;&amp;&gt;</text>") != NULL, "text stays text");
	ok(strstr(b.text, "<animate ") != NULL, "it moves");
	how = (struct picture_how){ .still = true, .at = -1 };
	buf_init(&b, &f->arena);
	picture_svg(&p, &how, &b);
	ok(is_well_formed(b.text) && !strstr(b.text, "<animate"), "a still one does not");
	ok(!strstr(b.text, "of c0 on"), "before the first cycle nothing is at work");
}

static void test_text(struct fixture *f)
{
	struct picture p;

	picture_init(&p, &f->arena, "");
	is_str(picture_fit(&p, "softmax", 10, 200), "softmax", "a text that fits is complete");
	is_str(picture_fit(&p, "softmax", 10, 40), "softm…", "one that does not is shortened");
	is_str(picture_fit(&p, "softmax", 10, 15), "", "or left out");
	ok(picture_width("W", 10, true) > picture_width("W", 10, false), "bold is wider");
	is_near(picture_width("", 10, false), 0, 0, "no text has no width");
}

/* ---- pixels ---------------------------------------------------------------------- */

static unsigned pixel(const unsigned char *v, int w, int x, int y)
{
	const unsigned char *p = v + 4 * ((size_t)y * (size_t)w + (size_t)x);

	return (unsigned)p[2] << 16 | (unsigned)p[1] << 8 | p[0];
}

static void test_pixels(struct fixture *f)
{
	struct picture_how how = { .format = PICTURE_PNG, .theme = THEME_DARK, .scale = 2 };
	const char *error;
	struct picture p;
	struct shape *s;
	unsigned char *v;
	int w, h, ink = 0;

	picture_init(&p, &f->arena, "");
	p.width = 100;
	p.height = 50;
	p.from = 0;
	p.to = 100;
	s = picture_rect(&p, 10, 10, 40, 10, INK_BOUND, INK_NONE);
	s->motion = MOTION_GROW;
	s->begin = 0;
	s->end = 100;
	picture_bold(&p, 60, 40, ANCHOR_LEFT, 20, INK_TEXT, "MM");
	how.still = true;
	how.at = 50;
	v = cairo_pixels(&p, &how, &w, &h, &error);
	ok(v && w == 200 && h == 100, "two pixels for one");
	if (!v)
		return;
	ok(pixel(v, w, 2, 2) == ink_colour(THEME_DARK, INK_PAPER), "paper is dark");
	ok(pixel(v, w, 40, 30) == ink_colour(THEME_DARK, INK_BOUND), "a bar is there");
	ok(pixel(v, w, 80, 30) == ink_colour(THEME_DARK, INK_PAPER), "its half to come is not");
	for (int y = 50; y < 84; y++)
		for (int x = 120; x < 180; x++)
			ink += pixel(v, w, x, y) == ink_colour(THEME_DARK, INK_TEXT);
	ok(ink > 100, "a text is there");
	free(v);
}

/* ---- files ----------------------------------------------------------------------- */

static void test_files(struct fixture *f)
{
	static const char *const names[] = { "svg", "png", "pdf" };
	char path[64], what[64];
	struct picture p;
	struct err e;

	picture_init(&p, &f->arena, "");
	timeline(f, &p);
	p.script = "local é = 1";
	for (int i = 0; i < LEN(names); i++) {
		struct picture_how how = { .format = (enum picture_format)i };

		e.msg[0] = '\0';
		snprintf(what, sizeof(what), "%s: a full disk", names[i]);
		ok(picture_save(&p, &how, "/dev/full", &e) == ERR_IO, what);
		is_str(e.msg, "cannot write /dev/full: No space left on device", what);
		ok(picture_save(&p, &how, "/nowhere/x", &e) == ERR_IO, "a folder that is not there");
		is_str(e.msg, "cannot write /nowhere/x: No such file or directory", names[i]);
		snprintf(path, sizeof(path), "/tmp/picture.%d.%s", (int)getpid(), names[i]);
		ok(picture_save(&p, &how, path, &e) == OK, names[i]);
		unlink(path);
	}
}

static void test_pipe(struct fixture *f)
{
	size_t n = 1 << 20;
	char *bytes = arena_alloc(&f->arena, n), path[64];
	struct err e;
	pid_t reader;

	snprintf(path, sizeof(path), "/tmp/picture.%d.pipe", (int)getpid());
	if (mkfifo(path, 0600)) {
		skip("no pipe can be made");
		return;
	}
	reader = fork();
	if (!reader) {
		FILE *in = fopen(path, "r");

		_exit(in && fclose(in) ? 1 : 0);
	}
	ok(picture_save_bytes(bytes, n, path, &e) == ERR_IO, "a closed pipe is an error, not the end");
	ok(strstr(e.msg, "Broken pipe") != NULL, "and says so");
	waitpid(reader, NULL, 0);
	unlink(path);
}

/* Without any font cairo's own strokes stand in: a picture there is. */
static void test_fontless(void)
{
	char path[64];
	int status = 0;
	FILE *conf;
	pid_t child;

	snprintf(path, sizeof(path), "/tmp/picture.%d.conf", (int)getpid());
	conf = fopen(path, "w");
	if (!conf) {
		skip("no space for a file");
		return;
	}
	fputs("<?xml version=\"1.0\"?><fontconfig><dir>/nowhere</dir></fontconfig>\n", conf);
	fclose(conf);
	fflush(stdout);
	child = fork();
	if (!child) {
		struct fixture f;
		struct picture p;
		const char *error;
		unsigned char *v;
		int w, h;

		setenv("FONTCONFIG_FILE", path, 1);
		fixture_init(&f);
		picture_init(&p, &f.arena, "");
		timeline(&f, &p);
		v = cairo_pixels(&p, &(struct picture_how){ .format = PICTURE_PNG }, &w, &h, &error);
		_exit(v && !cairo_has_font() ? 0 : 1);
	}
	waitpid(child, &status, 0);
	unlink(path);
	is_int(status, 0, "a machine without fonts has pictures, and says so");
}

static void test_trace(struct fixture *f)
{
	const struct timeline *t[] = { &f->timeline };
	const char *names[] = { "it \"is\"\n" };
	struct buf b;

	buf_init(&b, &f->arena);
	trace_json(t, names, 0, "x\\y", &b);
	is_str(b.text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"made by\":\"Millrace\",\"script\":\"x\\\\y\"},"
		"\"traceEvents\":[\n]}\n", "a trace of nothing");
}

int main(void)
{
	struct fixture f;

	test_fontless();
	fixture_init(&f);
	check_list(&f, "timeline", timeline);
	check_list(&f, "seus", seus);
	check_list(&f, "plan", plan);
	check_list(&f, "graph", graph);
	check_list(&f, "roofline", roofline);
	check_crowded(&f);
	check_list(&f, "progress", progress);
	check_list(&f, "progresses", progresses);
	test_progress(&f);
	test_name_of_bound(&f);
	test_svg(&f);
	test_text(&f);
	test_pixels(&f);
	test_files(&f);
	test_pipe(&f);
	test_trace(&f);
	fixture_release(&f);
	return tap_done();
}
