/* Drawings, compared with tests/draw/NAME.txt; BLESS=1 writes those files. */
#include <stdlib.h>
#include <time.h>

#include "draw/layout.h"
#include "draw/table.h"
#include "draw/units.h"
#include "tests/draw/fixture.h"
#include "tests/draw/trace.h"
#include "tests/golden.h"
#include "tests/tap.h"

static void golden(const char *name, const char *text)
{
	golden_is(name, "draw", name, text);
}

/* Every drawing of the fixture by one set of options, one after the other. */
static void draw_all(const struct fixture *f, const struct draw_options *o, struct buf *out)
{
	struct timeline_view seus = { .by = TIMELINE_SEUS };
	struct usage u = { .threads = 288, .shared_bytes = 200000, .registers = 64512,
		.lane_registers = { 24, 236 }, .named_barriers = 2, .flags = 8 };
	struct problem list[] = { { .code = PROBLEM_MISSING_TASK, .task = T_STORE_O,
		.message = "sTask 'store_o' is in no lane, so that nothing would be stored",
		.hint = "plan:append(\"store_o\")", .loc = { "plan.lua", 12 } } };
	struct problems problems = { .v = LIST(list) };

	draw_graph_table(&f->graph, o, out);
	draw_graph_layers(&f->graph, o, out);
	draw_plan(&f->plan, &u, &problems, o, out);
	draw_timeline(&f->timeline, NULL, o, out);
	draw_timeline(&f->timeline, &seus, o, out);
	draw_timeline_summary(&f->timeline, o, out);
}

static int widest_line(const char *text)
{
	int most = 0, n = 0;
	struct glyph g;

	while (*text) {
		if (*text == '\n') {
			n = 0;
			text++;
			continue;
		}
		text = glyph_next(text, &g);
		n += g.width;
		most = n > most ? n : most;
	}
	return most;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 128)
			return false;
	return true;
}

static void test_units(void)
{
	is_str(unit_bytes(16384).s, "16 KiB", "bytes");
	is_str(unit_bytes(1.5 * 1024 * 1024).s, "1.5 MiB", "bytes with a fraction");
	is_str(unit_bytes(1023.9).s, "1 KiB", "bytes that round up to the next prefix");
	is_str(unit_bytes(0).s, "0 B", "no bytes");
	is_str(unit_si(4194304, "flop").s, "4.19 Mflop", "flop");
	is_str(unit_si(999.7, "").s, "1 k", "a count that rounds up");
	is_str(unit_si(128, "").s, "128", "a plain count");
	is_str(unit_si(-2500, "B").s, "-2.5 kB", "below zero");
	is_str(unit_si(0.0 / 0.0, "B").s, "?", "not a number");
	is_str(unit_seconds(6.86e-4).s, "686 µs", "seconds");
	is_str(unit_seconds(2e-9).s, "2 ns", "nanoseconds");
	is_str(unit_count(1234567).s, "1,234,567", "a long count");
	is_str(unit_count(-1234).s, "-1,234", "a negative count");
	is_str(unit_count(999).s, "999", "a short count");
	is_str(unit_percent(0.042).s, "4.2 %", "a small share");
	is_str(unit_percent(0.87).s, "87 %", "a share");
}

static void test_text(struct arena *a)
{
	struct buf b;

	is_int(text_width("a→b"), 3, "an arrow is one column");
	is_int(text_width("日本"), 4, "wide characters are two");
	is_int(text_width("e\xcc\x81"), 1, "an accent is none");
	buf_init(&b, a);
	text_fit(&b, "abcdef", 4, ALIGN_LEFT, 0);
	text_fit(&b, "ab", 4, ALIGN_RIGHT, 0);
	text_fit(&b, "日本語", 4, ALIGN_LEFT, 0);
	is_str(b.text, "abc…  ab日… ", "shortened and padded");
	buf_init(&b, a);
	text_put(&b, "a\x1b[1m\xff\xc0\x80\xed\xa0\x80z", 0);
	is_str(b.text, "a?[1m??????z", "control characters and broken UTF-8");
	buf_init(&b, a);
	text_put(&b, "é ─→▓µ日", DRAW_ASCII);
	is_str(b.text, "? ->#u??", "ASCII");
	buf_init(&b, a);
	text_wrap(&b, "one two  three averyverylongword x", 4, 2, 12, 0);
	is_str(b.text, "one two\n  three\n  averyverylongword\n  x", "wrapped");
}

static void test_cells(struct arena *a)
{
	const struct style red = { .fg = 9, .bg = 16, .attr = STYLE_BOLD };
	struct cells c;
	struct buf b;

	cells_init(&c, a, 6, 1);
	is_int(cells_text(&c, 0, 0, 4, "abcdef", PLAIN), 4, "text takes its columns");
	cells_grow(&c, 2);
	cells_put(&c, 1, 1, "█", red);
	cells_put(&c, 6, 0, "x", red);
	cells_put(&c, 0, -1, "x", red);
	cells_text(&c, 2, 1, 4, "日", PLAIN);
	buf_init(&b, a);
	cells_print(&c, 0, &b);
	is_str(b.text, "abc…\n █日\n", "a grid without colour");
	buf_init(&b, a);
	cells_print(&c, DRAW_COLOUR | DRAW_ASCII, &b);
	is_str(b.text, "abc~\n \033[0;1;38;5;9;48;5;16m#\033[0m??\n", "a grid with colour");
}

/* What a grid prints is read back as it was. */
static void test_scan(struct arena *a)
{
	const struct style red = { .fg = 9, .bg = 16, .attr = STYLE_BOLD | STYLE_REVERSE };
	struct cells c, back;
	struct buf one, two;
	int w, h;

	cells_init(&c, a, 8, 3);
	cells_text(&c, 1, 0, 7, "ab日c", red);
	cells_text(&c, 0, 2, 8, "plain", PLAIN);
	cells_mark(&c, 2, 2, 2, STYLE_REVERSE);
	buf_init(&one, a);
	buf_init(&two, a);
	cells_print(&c, DRAW_COLOUR, &one);
	cells_measure(one.text, &w, &h);
	is_int(w, 6, "a text is as wide as its widest line");
	is_int(h, 3, "... and as high as it has lines");
	cells_init(&back, a, 8, 3);
	cells_scan(&back, 0, 0, 8, 3, one.text);
	cells_print(&back, DRAW_COLOUR, &two);
	is_str(two.text, one.text, "... and is a grid again");
	buf_init(&two, a);
	cells_init(&back, a, 8, 3);
	cells_scan(&back, 1, 1, 3, 1, one.text);
	cells_print(&back, 0, &two);
	is_str(two.text, "\n  ab\n\n", "... or a part of one");
}

static void test_table(struct arena *a)
{
	static const struct column col[] = { { "name", ALIGN_LEFT, 4, 0 },
		{ "n", ALIGN_RIGHT, 0, 1 }, { "none", ALIGN_LEFT, 0, 0 },
		{ "text", ALIGN_LEFT, 6, 0 } };
	struct table_cell *row;
	struct table t = table_new(a, col, LEN(col));
	struct buf b;

	buf_init(&b, a);
	table_print(&t, 0, 80, 0, &b);
	is_str(b.text, "", "a table without rows");
	row = table_row(&t);
	row[0].text = "longname";
	row[1].text = "7";
	row[3].text = "some words here";
	table_row(&t)[0].text = "x";
	table_print(&t, 1, 80, 0, &b);
	is_str(b.text, " name      n  text\n longname  7  some words here\n x\n",
		"a wide table");
	buf_init(&b, a);
	table_print(&t, 0, 20, 0, &b);
	is_str(b.text, "name     n  text\nlongna…  7  some\n            words\n"
		"            here\nx\n", "a narrow table");
}

static void test_goldens(const struct fixture *f, struct arena *a)
{
	static const struct { const char *name; struct draw_options o; } size[] = {
		{ "all80", { 80, 0 } }, { "all40", { 40, DRAW_ASCII } },
		{ "all132", { 132, DRAW_ASCII } }, { "all20", { 20, 0 } },
		{ "colour", { 60, DRAW_COLOUR } },
	};
	struct buf b;

	for (int i = 0; i < LEN(size); i++) {
		buf_init(&b, a);
		draw_all(f, &size[i].o, &b);
		golden(size[i].name, b.text);
	}
	buf_init(&b, a);
	draw_graph_dot(&f->graph, &b);
	golden("dot", b.text);
}

static void test_widths(const struct fixture *f, struct arena *a)
{
	int wide = 0, foreign = 0;

	for (int w = 40; w <= 140; w++) {
		struct draw_options o = { w, w % 2 ? DRAW_ASCII : 0 };
		struct buf b;

		buf_init(&b, a);
		draw_all(f, &o, &b);
		if (widest_line(b.text) > w && !wide++)
			printf("# %d columns:\n%s", w, b.text);
		foreign += w % 2 && !is_ascii(b.text);
	}
	is_int(wide, 0, "no line is wider than asked for, from 40 to 140 columns");
	is_int(foreign, 0, "ASCII drawings are ASCII");
}

/* Names that no one would choose: all of them still end in the right column. */
static void test_names(struct arena *a)
{
	static const char *const names[] = {
		"a_name_that_is_far_longer_than_any_column_of_any_table_will_ever_be",
		"Überlänge_日本語", "x\033[31m\xff\n", "\"quoted\\\"", "", "q" };
	struct fixture f;
	int wide = 0, foreign = 0, escapes = 0;

	fixture_init(&f);
	for (int i = 0; i < LEN(names); i++)
		f.graph.tasks.v[i].name = names[i];
	for (int w = 60; w <= 132; w += 12) {
		struct draw_options o = { w, w == 72 ? DRAW_ASCII : 0 };
		struct buf b;

		buf_init(&b, a);
		draw_all(&f, &o, &b);
		foreign += w == 72 && !is_ascii(b.text);
		escapes += strchr(b.text, '\033') != NULL;
		buf_init(&b, a);
		draw_graph_layers(&f.graph, &o, &b);
		wide += widest_line(b.text) > w;
		buf_init(&b, a);
		timeline_cells(&f.timeline, NULL, w, o.flags, a, &(struct cells){ 0 }, NULL);
		draw_graph_dot(&f.graph, &b);
		escapes += strchr(b.text, '\033') != NULL;
	}
	is_int(wide, 0, "strange names do not make a drawing wider");
	is_int(foreign, 0, "strange names in ASCII");
	is_int(escapes, 0, "no name reaches the terminal as a command");
	fixture_release(&f);
}

static void test_few_events(struct fixture *f, struct arena *a)
{
	struct event one[] = { { 0, 5, 5, 105, 0, 0, T_SOFTMAX, T_MMA_QK, 1, 0, SEU_CUDA,
		CAUSE_WAIT, 0, 0, NONE, 0, 0, 0, 0 } };
	struct event zero[] = { { 0, 0, 0, 0, 0, 0, T_SOFTMAX, NONE, 1, 0, SEU_CUDA, 0, 0, 0, NONE, 0, 0, 0, 0 },
		{ 0, 0, 0, 95, 0, 0, T_MMA_QK, NONE, 1, 0, SEU_TENSOR, 0, 0, 0, NONE, 0, 0, 0, 0 },
		{ 50, 50, 50, 50, 1, 0, T_SOFTMAX, NONE, 1, 0, SEU_CUDA, 0, 0, 0, NONE, 0, 0, 0, 0 },
		{ 100, 100, 100, 100, 2, 0, T_SOFTMAX, NONE, 1, 0, SEU_CUDA, 0, 0, 0, NONE, 0, 0, 0, 0 } };
	struct event bad[] = { { 0, 0, 0, 9, 0, 0, 77, 78, 99, 99, 99, 99, 9, 99, 300, -9, 0, 0, 0 },
		{ 0, 0, 9, 0, 0, 0, -1, NONE, 0, 0, 0, 0, 0, 0, NONE, 0, 0, 0, 0 },
		{ -5, INT64_MIN, INT64_MIN, INT64_MAX, 0, -1, T_SOFTMAX, 300, 1, 0, SEU_CUDA, 7, 1, 7, 300, INT32_MAX, 0, 0, 0 } };
	struct { const char *name; struct event *e; int n; } cases[] = { { "none", one, 0 },
		{ "one", one, 1 }, { "zero", zero, LEN(zero) }, { "bad", bad, LEN(bad) } };
	struct phase_line keep = f->line;

	for (int i = 0; i < LEN(cases); i++) {
		struct draw_options o = { 60, 0 };
		struct buf b;

		f->line.events.v = cases[i].e;
		f->line.events.n = cases[i].n;
		buf_init(&b, a);
		draw_timeline(&f->timeline, NULL, &o, &b);
		draw_timeline(&f->timeline, &(struct timeline_view){ .phase = 9, .tile = 3,
			.from = INT64_MAX, .to = INT64_MAX }, &o, &b);
		golden(cases[i].name, b.text);
	}
	f->line = keep;
	f->timeline.nphases = 0;
	for (int i = 0; i < 2; i++) {
		struct cells c;
		struct buf b;

		buf_init(&b, a);
		if (i == 0)
			draw_timeline(&f->timeline, NULL, NULL, &b);
		else
			draw_timeline_summary(&f->timeline, NULL, &b);
		timeline_cells(&f->timeline, NULL, 80, 0, a, &c, NULL);
		ok(b.len > 0 && c.h == 0, "a timeline without phases");
	}
	f->timeline.nphases = 1;
}

/* Processor time, the best of three: what else runs here must not matter. */
static void test_many_events(struct fixture *f)
{
	struct phase_line keep = f->line;
	enum { MANY = 100000 };
	double best = 1e9, limit = 0.05;

	f->line.events.n = 0;
	for (int i = 0; i < MANY; i++) {
		struct event e = keep.events.v[i % keep.events.n];
		int64_t shift = (int64_t)(i / keep.events.n) * 1800;

		e.ready += shift;
		e.issue += shift;
		e.start += shift;
		e.end += shift;
		VEC_PUSH(&f->arena, &f->line.events, e);
	}
	for (int i = 0; i < 3; i++) {
		struct timeline_view all = { .to = 12000000 };
		clock_t begin = clock();
		struct arena a;
		struct buf b;

		arena_init(&a, &f->mem);
		buf_init(&b, &a);
		draw_timeline(&f->timeline, &all, NULL, &b);
		best = fmin(best, (double)(clock() - begin) / CLOCKS_PER_SEC);
		arena_release(&a);
	}
#if defined(ADDRESS_SANITIZER) || defined(THREAD_SANITIZER) || !defined(__OPTIMIZE__)
	limit *= 20;
#endif
	diag("%d events: %.1f ms", MANY, best * 1e3);
	ok(best < limit, "100,000 events are drawn within 50 ms");
	f->line = keep;
}

/* ---- layered drawings of random graphs, read back --------------------------------- */

enum { RANDOM_MAX = 10 };

/* 2 to RANDOM_MAX sTasks, some of them in a loop, with flow from lower to higher ones. */
static void random_graph(struct fixture *f, struct prng *r, struct edge *edges)
{
	static const char *const names[] = { "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8",
		"t9" };
	struct item *top = ARENA_ARRAY(&f->arena, RANDOM_MAX + 1, struct item);
	struct item *inside = ARENA_ARRAY(&f->arena, RANDOM_MAX, struct item);
	struct stask *tasks = ARENA_ARRAY(&f->arena, RANDOM_MAX, struct stask);
	int n = 2 + (int)prng_below(r, RANDOM_MAX - 1), first, last, ntop = 0, nin = 0, nedges = 0;

	first = (int)prng_below(r, (uint32_t)n);
	last = first + (int)prng_below(r, (uint32_t)(n - first));
	for (int i = 0; i < n; i++) {
		bool in = i >= first && i <= last;

		tasks[i] = (struct stask){ .name = names[i], .task = i, .position = i, .slices = 1,
			.kind = (enum task_kind)prng_below(r, 4), .loop = in ? 0 : NONE };
		if (in)
			inside[nin++].id = i;
		if (i == first)
			top[ntop++] = (struct item){ true, 0 };
		if (!in)
			top[ntop++].id = i;
		for (int j = 0; j < i; j++)
			if (prng_below(r, 3) == 0 && nedges < 24)
				edges[nedges++] = (struct edge){ .from = j, .to = i, .loop = NONE };
	}
	f->graph.tasks.v = tasks;
	f->graph.tasks.n = n;
	set_edges(f, edges, nedges);
	f->program.loops.v[0].body.v = inside;
	f->program.loops.v[0].body.n = nin;
	f->program.phases.v[0].body.v = top;
	f->program.phases.v[0].body.n = ntop;
}

/* Do the arrows that enter box `to` come from just the sTasks that it has edges from? */
static bool arrows_agree(const struct fixture *f, const struct picture *p, const struct box *b,
	int to, struct arena *a)
{
	const struct graph *g = &f->graph;
	bool drawn[RANDOM_MAX] = { 0 }, want[RANDOM_MAX] = { 0 };

	for (int x = b[to].x0; x <= b[to].x1; x++) {
		bool reached[RANDOM_MAX] = { 0 };
		int n = 0;

		if (strcmp(glyph_at(p, x, b[to].y - 1)->utf8, "▼") != 0)
			continue;
		trace(p, b, g->tasks.n, x, b[to].y - 2, ARENA_ARRAY(a, p->w * p->h, bool), reached);
		for (int i = 0; i < g->tasks.n; i++) {
			n += reached[i];
			if (reached[i] && drawn[i])
				return false;
			drawn[i] |= reached[i];
		}
		if (n != 1)
			return false;
	}
	for (int i = 0; i < g->edges.n; i++)
		if (g->edges.v[i].to == to)
			want[g->edges.v[i].from] = true;
	return memcmp(drawn, want, sizeof(want)) == 0;
}

static bool drawing_agrees(const struct fixture *f, const char *text, struct arena *a)
{
	struct box b[RANDOM_MAX];
	struct picture p;

	picture_read(&p, a, text);
	for (int i = 0; i < f->graph.tasks.n; i++)
		if (!find_box(&p, f->graph.tasks.v[i].name, &b[i]))
			return false;
	for (int i = 0; i < f->graph.tasks.n; i++)
		if (!arrows_agree(f, &p, b, i, a))
			return false;
	return true;
}

static void test_random_layers(void)
{
	enum { RUNS = 1000 };
	struct prng r = { 42 };
	int wrong = 0, wide = 0, lists = 0;

	for (int i = 0; i < RUNS; i++) {
		struct draw_options o = { 30 + (int)prng_below(&r, 80), 0 };
		struct edge edges[32];
		struct fixture f;
		struct arena a;
		struct buf b;

		fixture_init(&f);
		random_graph(&f, &r, edges);
		f.graph.buffers.n = 0;	/* nothing to list below */
		arena_init(&a, &f.mem);
		buf_init(&b, &a);
		draw_graph_layers(&f.graph, &o, &b);
		wide += widest_line(b.text) > o.width;
		if (!strstr(b.text, "╮") && !strstr(b.text, "┐") && !strstr(b.text, "╗")) {
			lists++;
		} else if (!drawing_agrees(&f, b.text, &a)) {
			if (!wrong++)
				printf("# run %d:\n%s", i, b.text);
		}
		arena_release(&a);
		fixture_release(&f);
	}
	diag("%d of %d random graphs as lists", lists, RUNS);
	is_int(wrong, 0, "every line of a random drawing joins the right boxes");
	is_int(wide, 0, "random drawings keep their width");
	ok(lists < RUNS / 10, "most random graphs are drawn");
}

int main(void)
{
	struct fixture f;
	struct arena a;

	fixture_init(&f);
	arena_init(&a, &f.mem);
	test_units();
	test_text(&a);
	test_cells(&a);
	test_scan(&a);
	test_table(&a);
	test_goldens(&f, &a);
	test_widths(&f, &a);
	test_names(&a);
	test_few_events(&f, &a);
	test_many_events(&f);
	arena_release(&a);
	fixture_release(&f);
	test_random_layers();
	return tap_done();
}
