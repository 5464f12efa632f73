/* Random edits of a plan, right and wrong, with undo and redo in between: the text is
 * always what it must be (tests/fuzz/plan_edits.h has the edits and the rules). Before them, moves
 * of which it is known what comes of them. */
#include <time.h>

#include "base/prng.h"
#include "plan/diff.h"
#include "tests/fuzz/plan_edits.h"
#include "tests/tap.h"

enum { SEQUENCES = 5000, BYTES_MOST = 400 };

/* A plan on the stage. */
struct desk {
	struct history *h;
	struct arena texts;
	struct err e;
};

static void desk_init(struct desk *d, const struct stage *stage, bool split)
{
	const struct graph *g;
	struct err e;
	int added;

	*d = (struct desk){ 0 };
	arena_init(&d->texts, stage->mem);
	history_new(stage->mem, stage->graph, &stage->device, &d->h);
	if (split)
		edit_must(history_split(d->h, "m", 2, NULL, 0, edit_here, &e), &e);
	g = history_plan(d->h)->graph;
	for (int i = 0; i < g->tasks.n; i++)
		edit_must(history_append(d->h, g->tasks.v[i].name, NULL,
			g->tasks.v[i].slice ? "c1" : NULL, 0, false, edit_here, &e), &e);
	edit_must(history_fill_waits(d->h, NULL, edit_here, &added, &e), &e);
}

static void desk_release(struct desk *d)
{
	history_free(d->h);
	arena_release(&d->texts);
}

static const char *desk_text(struct desk *d)
{
	struct buf b;

	buf_init(&b, &d->texts);
	plan_script(history_plan(d->h), &b);
	return b.text;
}

static bool desk_has(struct desk *d, const char *line)
{
	return strstr(desk_text(d), line) != NULL;
}

static int desk_problems(struct desk *d)
{
	struct problems problems;
	struct err e;

	edit_must(plan_check_order(history_plan(d->h), &d->texts, NULL, &problems, NULL, &e), &e);
	return problems.v.n;
}

static enum err_code desk_move(struct desk *d, const char *task, struct move m)
{
	return history_move(d->h, &task, 1, &m, true, NULL, edit_here, &d->e);
}

static void refused(struct desk *d, const char *task, struct move m, const char *message)
{
	const char *before = desk_text(d);

	is_int(desk_move(d, task, m), ERR_INPUT, "a move that is refused");
	is_str(d->e.msg, message, "  with this message");
	is_str(desk_text(d), before, "  and nothing is changed");
}

static void test_moves(const struct stage *stage)
{
	struct desk d;
	const char *first;
	int edits, mark;

	desk_init(&d, stage, false);
	first = desk_text(&d);
	edits = history_edits(d.h);
	mark = history_mark(d.h);
	is_int(desk_problems(&d), 0, "a plan in the order of the program");
	ok(desk_move(&d, "load_K", (struct move){ .before = "load_Q" }) == ERR_INPUT,
		"nothing moves out of its loop");
	is_int(desk_move(&d, "mma_qk", (struct move){ .set_at = true, .at = 1 }), OK, "an offset moves");
	is_int(history_edits(d.h), edits + 1, "  as one edit");
	ok(desk_has(&d, "plan:append(\"mma_qk\", {seu=\"matrix\", lane=\"c0\", at=1})"), "  to the "
		"given one");
	ok(desk_has(&d, "mma_qk=2"), "  the scores get the versions that they need");
	is_int(desk_problems(&d), 0, "  and the plan is good");
	is_int(desk_move(&d, "mma_qk", (struct move){ .after = "rescale", .lane = "c0" }), OK,
		"the order moves");
	is_int(desk_problems(&d), 0, "  and the plan is good");
	is_int(desk_move(&d, "rescale", (struct move){ .lane = "c7" }), OK, "a lane moves");
	is_int(desk_problems(&d), 0, "  and the values get there");
	ok(!history_is_at(d.h, mark), "this is another plan");
	for (int i = 0; i < 3; i++)
		ok(history_undo(d.h), "undo");
	is_str(desk_text(&d), first, "undone, it is as it was");
	ok(history_is_at(d.h, mark), "  and is known to be");
	ok(history_redo(d.h) && history_redo(d.h) && history_redo(d.h), "again");
	history_return(d.h, mark);
	is_str(desk_text(&d), first, "back at the mark");
	ok(!history_redo(d.h), "  where there was nothing to redo");
	desk_release(&d);
}

static void test_join(const struct stage *stage)
{
	struct desk d;
	const char *first, *last;
	int edits;

	desk_init(&d, stage, false);
	first = desk_text(&d);
	edits = history_edits(d.h);
	is_int(desk_move(&d, "mma_qk", (struct move){ .set_at = true, .at = 1 }), OK, "one edit");
	is_int(desk_move(&d, "mma_qk", (struct move){ .after = "rescale" }), OK, "and another");
	last = desk_text(&d);
	history_join(d.h, 2);
	is_int(history_edits(d.h), edits + 1, "joined they are one");
	ok(history_undo(d.h), "which is undone");
	is_str(desk_text(&d), first, "  completely");
	ok(history_redo(d.h), "and done again");
	is_str(desk_text(&d), last, "  completely");
	ok(history_undo(d.h) && history_undo(d.h), "the edit before them");
	is_int(history_edits(d.h), edits - 1, "  stays one of its own");
	desk_release(&d);
}

/* A plan becomes another one, of another shape and tile, by one edit. */
static void test_become(const struct stage *stage)
{
	struct tiling t = { 0 };
	struct desk d, o;
	const char *before;
	struct err e;
	int edits, axis = program_find_axis(stage->graph->program, "m"), mark;

	desk_init(&d, stage, false);
	desk_init(&o, stage, true);
	t.extent[axis] = stage->graph->tiling.extent[axis] / 2;
	edit_must(history_propagate(o.h, &t, edit_here, &e), &e);
	before = desk_text(&d);
	edits = history_edits(d.h);
	mark = history_mark(d.h);
	is_int(history_become(d.h, o.h, edit_here, &e), OK, "a plan becomes another one");
	is_str(desk_text(&d), desk_text(&o), "  with its statements");
	is_int(history_plan(d.h)->graph->tiling.extent[axis], t.extent[axis], "  and its tile");
	is_int(history_edits(d.h), edits + 1, "  by one edit");
	is_int(desk_move(&d, "mma_qk", (struct move){ .set_at = true, .at = 1 }), OK, "it can be edited");
	ok(history_undo(d.h), "  and that undone");
	is_str(desk_text(&d), desk_text(&o), "  with everything else as it was");
	ok(history_undo(d.h), "it is undone");
	is_str(desk_text(&d), before, "  completely");
	is_int(history_plan(d.h)->graph->tiling.extent[axis], stage->graph->tiling.extent[axis],
		"  with the tile");
	ok(history_redo(d.h), "and done again");
	is_str(desk_text(&d), desk_text(&o), "  completely");
	edit_must(history_become(o.h, d.h, edit_here, &e), &e);
	is_str(desk_text(&o), desk_text(&d), "one that became another is what others become");
	history_return(d.h, mark);
	is_str(desk_text(&d), before, "a mark before it is come back to");
	edit_must(history_become(d.h, d.h, edit_here, &e), &e);
	is_str(desk_text(&d), before, "itself is no change");
	desk_release(&d);
	desk_release(&o);
}

/* Waits written by hand stay; waits that an order makes unnecessary are removed, and added again. */
static void test_repaired_waits(const struct stage *stage)
{
	const struct wait_on issue_order = { "mma_pv", 3, WAIT_ISSUED }, far = { "softmax", 2, WAIT_COMPLETE };
	struct desk d;
	const char *before;
	struct err e;

	desk_init(&d, stage, false);
	edit_must(history_wait(d.h, "mma_qk", &issue_order, 1, edit_here, &e), &e);
	edit_must(history_wait(d.h, "mma_qk", &far, 1, edit_here, &e), &e);
	before = desk_text(&d);
	is_int(desk_move(&d, "mma_qk", (struct move){ .set_at = true }), OK, "a move to where it is");
	is_str(desk_text(&d), before, "  changes nothing");
	is_int(desk_move(&d, "mma_qk", (struct move){ .after = "mma_pv" }), OK, "an order that cannot be");
	ok(desk_problems(&d) > 0, "  stands, and is wrong");
	ok(!desk_has(&d, "buffers"), "  whatever the versions, which stay");
	ok(desk_has(&d, "{\"mma_pv\", distance=3, when=\"issued\"}") &&
		desk_has(&d, "{\"softmax\", distance=2}"), "  and so do waits with a distance");
	is_int(desk_move(&d, "mma_qk", (struct move){ .before = "softmax" }), OK, "and back");
	is_int(desk_problems(&d), 0, "  all is well");
	edit_must(history_undo(d.h) ? OK : ERR_INPUT, &e);
	edit_must(history_undo(d.h) ? OK : ERR_INPUT, &e);
	is_str(desk_text(&d), before, "undone, it is as it was");
	is_int(history_move(d.h, (const char *const[]){ "mma_qk" }, 1, &(struct move){ .set_at = true,
		.at = 1 }, false, NULL, edit_here, &e), OK, "an offset alone");
	ok(!desk_has(&d, "buffers"), "  without repair of waits changes no versions");
	desk_release(&d);
}

static void test_parts(const struct stage *stage)
{
	const char *const names[] = { "softmax", "rescale" };
	struct desk d;

	desk_init(&d, stage, true);
	is_int(desk_problems(&d), 0, "a split plan");
	is_int(desk_move(&d, "rescale", (struct move){ .after = "mma_qk", .set_at = true, .at = -1 }), OK,
		"the name of a split sTask moves its parts");
	ok(desk_has(&d, "plan:append(\"mma_qk.0\", {seu=\"matrix\", lane=\"c0\"})\n"
		"plan:append(\"rescale.0\", {seu=\"vector\", lane=\"c0\", at=-1})") &&
		desk_has(&d, "plan:append(\"mma_qk.1\", {seu=\"matrix\", lane=\"c1\"})\n"
		"plan:append(\"rescale.1\", {seu=\"vector\", lane=\"c1\", at=-1})"),
		"  each next to the slice of its number");
	is_int(desk_move(&d, "softmax.1", (struct move){ .before = "mma_qk" }), OK, "one part alone");
	ok(desk_has(&d, "\"softmax.1\", {seu=\"vector\", lane=\"c1\"})\nplan:append(\"mma_qk.1\"") &&
		!desk_has(&d, "lane=\"c0\"})\nplan:append(\"mma_qk.0\", {seu=\"matrix\"}"),
		"  next to the slice of its number, too");
	is_int(history_move(d.h, names, 2, &(struct move){ .after = "mma_pv" }, true, NULL, edit_here,
		&d.e), OK, "several after one");
	ok(desk_has(&d, "plan:append(\"mma_pv.0\", {seu=\"matrix\", lane=\"c0\"})\n"
		"plan:append(\"softmax.0\", {seu=\"vector\", lane=\"c0\"})\n"
		"plan:append(\"rescale.0\", {seu=\"vector\", lane=\"c0\", at=-1})"),
		"  come in the order of their names");
	is_int(desk_move(&d, "softmax", (struct move){ .lane = "c0" }), OK, "all to one lane");
	ok(!desk_has(&d, "\"softmax.1\", {seu=\"vector\", lane=\"c1\"") &&
		desk_has(&d, "\"softmax.1\", {seu=\"vector\", lane=\"c0\""), "  go there");
	desk_release(&d);
}

static void test_inserts(const struct stage *stage)
{
	const char *const softmax[] = { "softmax" };
	struct desk d;

	desk_init(&d, stage, false);
	edit_must(history_remove(d.h, "softmax", edit_here, &d.e), &d.e);
	is_int(history_insert(d.h, softmax, 1, &(struct move){ .before = "rescale" }, true, NULL, edit_here,
		&d.e), OK, "an sTask is put in");
	ok(desk_has(&d, "plan:append(\"softmax\", {seu=\"vector\", lane=\"c0\"})\n"
		"plan:append(\"rescale\""), "  at the given position");
	is_int(desk_problems(&d), 0, "  and the plan is good");
	is_int(history_insert(d.h, softmax, 1, &(struct move){ 0 }, true, NULL, edit_here, &d.e), ERR_INPUT,
		"it is there");
	is_str(d.e.msg, "'softmax' is in the plan already: plan:move changes it", "  as the message says");
	desk_release(&d);
}

/* The first of two entries of an sTask is another one once the plan is in order: of a plan that is replayed, too. */
static void test_replayed_order(const struct stage *stage)
{
	const char *const lanes[] = { "p0", "c0", "c0", "p0" }, *const tasks[] = { "load_Q", "normalise", "store_O", "store_O" };
	struct desk d;
	struct history *copy;
	const char *before;

	d = (struct desk){ 0 };
	arena_init(&d.texts, stage->mem);
	history_new(stage->mem, stage->graph, &stage->device, &d.h);
	for (int i = 0; i < 4; i++)
		edit_must(history_append(d.h, tasks[i], NULL, lanes[i], 0, false, edit_here, &d.e), &d.e);
	is_int(history_move(d.h, &tasks[1], 1, &(struct move){ .after = "store_O", .lane = "p0" }, false, NULL, edit_here,
		&d.e), OK, "a move after the first of two entries");
	before = desk_text(&d);
	edit_must(history_lane(d.h, "c0", &(struct lane){ .warps = 4, .replicas = 1 }, edit_here, &d.e), &d.e);
	ok(history_undo(d.h), "  is replayed");
	is_str(desk_text(&d), before, "  to the same plan");
	history_copy(d.h, &copy);
	is_int(history_edits(copy), history_edits(d.h), "  in a copy, too");
	history_free(copy);
	desk_release(&d);
}

static void test_refused(const struct stage *stage)
{
	struct desk d;
	struct err e;

	desk_init(&d, stage, false);
	refused(&d, "sofmax", (struct move){ .lane = "c1" }, "there is no sTask 'sofmax'; did you mean "
		"'softmax'?");
	refused(&d, "softmax", (struct move){ 0 }, "'softmax': nothing to change: give at=, before=, "
		"after=, lane=, seu= or by_rows=");
	refused(&d, "softmax", (struct move){ .before = "mma_qk", .after = "mma_qk" },
		"'softmax': before= or after=, not both");
	refused(&d, "softmax", (struct move){ .before = "softmax" }, "'softmax' cannot come before itself");
	refused(&d, "softmax", (struct move){ .after = "mma_qq" }, "there is no sTask 'mma_qq'; did you "
		"mean 'mma_qk'?");
	refused(&d, "softmax", (struct move){ .after = "load_K" }, "'load_K' is on lane 'p0', and 'softmax' "
		"is to be on 'c0': before= and after= name an sTask of the same lane; or give "
		"lane=\"p0\", too");
	refused(&d, "softmax", (struct move){ .after = "mma_qk", .lane = "new" }, "'mma_qk' is on lane "
		"'c0', and 'softmax' is to be on 'new': before= and after= name an sTask of the same "
		"lane; or give lane=\"c0\", too");
	refused(&d, "softmax", (struct move){ .before = "normalise" }, "'softmax' and 'normalise' are not in "
		"the same loop: before= and after= name an sTask that runs as often");
	refused(&d, "softmax", (struct move){ .seu = "vektor" }, "'small' has no sEU 'vektor'; did you mean "
		"'vector'?");
	refused(&d, "softmax", (struct move){ .lane = "no lane" }, "'no lane' is no name for a lane: use "
		"letters, digits and _");
	refused(&d, "softmax", (struct move){ .set_at = true, .at = 17 }, "'softmax': an iteration offset is "
		"within 16, not 17");
	edit_must(history_append(d.h, "softmax", NULL, NULL, 0, false, edit_here, &e), &e);
	refused(&d, "softmax", (struct move){ .lane = "c1" }, "'softmax' is appended 2 times: remove it, "
		"and append it once");
	edit_must(history_remove(d.h, "softmax", edit_here, &e), &e);
	refused(&d, "softmax", (struct move){ .lane = "c1" }, "'softmax' is not in the plan");
	refused(&d, "rescale", (struct move){ .after = "softmax" }, "'softmax' is not in the plan");
	desk_release(&d);
}

/* Both texts in one: " same\n-gone\n+new\n". */
static const char *diff_text(struct arena *a, const char *one, const char *other)
{
	struct diff d;
	struct buf b;

	script_diff(a, one, other, &d);
	buf_init(&b, a);
	for (int i = 0; i < d.v.n; i++)
		buf_printf(&b, "%c%s\n", " -+"[d.v.v[i].kind], d.v.v[i].text);
	return b.text;
}

static void test_diff(struct mem *mem)
{
	struct arena a;

	arena_init(&a, mem);
	is_str(diff_text(&a, "", ""), "", "empty scripts are the same");
	is_str(diff_text(&a, "a\nb", "a\nb\n"), " a\n b\n", "the last newline does not count");
	is_str(diff_text(&a, "a\nb\nc\n", "a\nx\nc\n"), " a\n-b\n+x\n c\n", "a statement is another one");
	is_str(diff_text(&a, "a\nb\nc\nd\n", "b\nc\na\nd\n"), "-a\n b\n c\n+a\n d\n",
		"one is moved, and the longer part stays");
	is_str(diff_text(&a, "", "a\n"), "+a\n", "all is new");
	is_str(diff_text(&a, "a\na\n", "a\n"), " a\n-a\n", "one of two alike is gone");
	arena_release(&a);
}

int main(void)
{
	struct mem mem = { 0 };
	struct stage stage;
	int wrong = 0, good = 0, refused = 0, undone = 0, checked = 0;
	clock_t began = clock();

	stage_init(&stage, &mem);
	test_diff(&mem);
	test_moves(&stage);
	test_join(&stage);
	test_become(&stage);
	test_repaired_waits(&stage);
	test_parts(&stage);
	test_inserts(&stage);
	test_replayed_order(&stage);
	test_refused(&stage);
	for (int i = 0; i < SEQUENCES; i++) {
		struct prng r = { (uint64_t)i };
		uint8_t data[BYTES_MOST];
		struct session s;
		int n = (int)prng_below(&r, BYTES_MOST);

		for (int k = 0; k < n; k++)
			data[k] = (uint8_t)prng_below(&r, 256);
		session_run(&s, &stage, data, (size_t)n);
		if (s.wrong && ++wrong <= 5)
			diag("sequence %d: not so: %s", i, s.wrong);
		good += s.good;
		refused += s.refused;
		undone += s.undone;
		checked += s.checked;
	}
	is_int(wrong, 0, "after every edit, undo and redo the text is what it must be");
	ok(good > 20 * SEQUENCES / 4 && refused > SEQUENCES && undone > SEQUENCES,
		"there were enough of each");
	diag("%d edits, %d refused, %d undone, %d checks, %.1f s", good, refused, undone, checked,
		(double)(clock() - began) / CLOCKS_PER_SEC);
	stage_release(&stage);
	is_int((long long)mem.used, 0, "all memory is given back");
	return tap_done();
}
