/* plan_edits.h - edits of a plan, read from bytes.
 *
 * A causal attention of a few small tiles, a GPU of three units, and a history over
 * them: every few bytes are one edit, right or wrong, or an undo or redo. After each the
 * text of the plan is compared with what it must be: as before if the edit failed, as it
 * was at that number of edits after an undo or redo. The fuzz target and the unit test
 * share this; whoever includes it says what to do about a difference.
 */
#ifndef PLAN_EDITS_H
#define PLAN_EDITS_H

#include <stdlib.h>
#include <string.h>

#include "plan/check.h"
#include "plan/history.h"

enum { EDITS_MOST = 64 };

/* The program, its graph and the device: made once. */
struct stage {
	struct mem *mem;
	struct program *program;
	struct graph *graph;
	struct vdevice device;
};

struct session {
	const struct stage *stage;
	struct history *history;
	struct arena texts;
	const char *text[EDITS_MOST + 1];	/* after so many edits */
	int known;			/* the greatest number that can be redone */
	const uint8_t *data;
	size_t size;
	int good, refused, undone, checked;
	const char *wrong;		/* the first difference; NULL if all is as it must be */
};

static const struct srcloc edit_here = { "edits.lua", 1 };

/* ---- the stage ---------------------------------------------------------------------- */

static void edit_must(enum err_code code, const struct err *e)
{
	if (code)
		BUG("%s", e->msg);
}

static int stage_load(struct program *p, const char *name, int rank, const int *dims)
{
	int tensor, node;
	struct err e;

	edit_must(program_tensor(p, TENSOR_INPUT, name, DT_BF16, rank, dims, edit_here, &tensor, &e),
		&e);
	edit_must(program_load(p, NULL, tensor, NULL, edit_here, &node, &e), &e);
	return node;
}

static int stage_op(struct program *p, enum op op, int a, int b)
{
	int args[2] = { a, b }, node;
	struct err e;

	edit_must(program_op(p, op, args, edit_here, &node, &e), &e);
	return node;
}

/* One iteration: scores, softmax, the product with the values. */
static void stage_body(struct program *p, int q, int mx, int o, int n, int d)
{
	int k, s, old, top, pr, v, acc;
	struct err e;

	k = stage_load(p, "K", 2, (int[]){ n, d });
	edit_must(program_mma(p, "mma_qk", q, k, edit_here, &s, &e), &e);
	edit_must(program_task_begin(p, "softmax", edit_here, &e), &e);
	edit_must(program_get(p, mx, edit_here, &old, &e), &e);
	edit_must(program_reduce(p, OP_RMAX, s, n, edit_here, &top, &e), &e);
	top = stage_op(p, OP_MAX, old, top);
	edit_must(program_op(p, OP_EXP2, (int[]){ stage_op(p, OP_SUB, s, top) }, edit_here, &pr, &e),
		&e);
	edit_must(program_set(p, mx, top, edit_here, &e), &e);
	edit_must(program_task_end(p, edit_here, &e), &e);
	edit_must(program_task_begin(p, "rescale", edit_here, &e), &e);
	edit_must(program_get(p, o, edit_here, &acc, &e), &e);
	edit_must(program_set(p, o, stage_op(p, OP_MUL, acc, top), edit_here, &e), &e);
	edit_must(program_task_end(p, edit_here, &e), &e);
	v = stage_load(p, "V", 2, (int[]){ n, d });
	edit_must(program_cast(p, pr, DT_BF16, edit_here, &pr, &e), &e);
	edit_must(program_mma(p, "mma_pv", pr, v, edit_here, &acc, &e), &e);
	edit_must(program_accumulate(p, o, acc, edit_here, &e), &e);
}

static void stage_program(struct program *p, struct tiling *t)
{
	int m, n, d, q, mx, o, out, acc;
	struct index_expr upto;
	struct err e;

	edit_must(program_axis(p, "m", 16, edit_here, &m, &e), &e);
	edit_must(program_axis(p, "n", 16, edit_here, &n, &e), &e);
	edit_must(program_axis(p, "d", 4, edit_here, &d, &e), &e);
	upto = index_axis(m);
	q = stage_load(p, "Q", 2, (int[]){ m, d });
	edit_must(program_carry(p, "mx", 1, &m, -1e30, edit_here, &mx, &e), &e);
	edit_must(program_carry(p, "o", 2, (int[]){ m, d }, 0, edit_here, &o, &e), &e);
	edit_must(program_loop_begin(p, 1, &n, NULL, &upto, edit_here, &e), &e);
	stage_body(p, q, mx, o, n, d);
	edit_must(program_loop_end(p, edit_here, &e), &e);
	edit_must(program_task_begin(p, "normalise", edit_here, &e), &e);
	edit_must(program_get(p, o, edit_here, &acc, &e), &e);
	acc = stage_op(p, OP_ADD, acc, acc);
	edit_must(program_task_end(p, edit_here, &e), &e);
	edit_must(program_tensor(p, TENSOR_OUTPUT, "O", DT_F32, 2, (int[]){ m, d }, edit_here, &out,
		&e), &e);
	edit_must(program_store(p, NULL, out, NULL, acc, edit_here, &e), &e);
	edit_must(program_finish(p, &e), &e);
	t->extent[m] = t->extent[n] = 4;
}

static void stage_init(struct stage *s, struct mem *mem)
{
	static const char *const names[] = { "copy", "matrix", "vector" };
	struct tiling t = { 0 };
	struct err e;

	*s = (struct stage){ .mem = mem, .program = program_new(mem, "attention"),
		.device = { .name = "small", .title = "small", .arch = "none", .eus = 2,
			.clock_hz = 1e9, .nseus = 3, .warp = 32, .max_threads = 1024,
			.registers = 65536, .thread_registers = 255, .register_step = 8,
			.reserved_registers = 24, .shared_bytes = 4096, .named_barriers = 4,
			.max_cluster = 2, .cluster_eus = 132 } };
	for (int i = 0; i < 3; i++) {
		s->device.seu[i] = (struct seu){ .name = names[i], .kind = (enum seu_kind)i,
			.async = i < 2, .ordered = i == 1 };
		s->device.seu[i].flops[DT_BF16] = i == 1;
	}
	stage_program(s->program, &t);
	edit_must(graph_build(mem, s->program, &t, NULL, &s->graph, &e), &e);
}

static void stage_release(struct stage *s)
{
	graph_free(s->graph);
	program_free(s->program);
}

/* ---- reading bytes ------------------------------------------------------------------- */

static unsigned next_byte(struct session *s)
{
	if (!s->size)
		return 0;
	s->size--;
	return *s->data++;
}

static int next_number(struct session *s, int least, int most)
{
	return least + (int)(next_byte(s) % (unsigned)(most - least + 1));
}

#define NEXT_OF(s, list) ((list)[next_byte(s) % (unsigned)LEN(list)])

/* Mostly names that there are. */
static const char *next_task(struct session *s)
{
	static const char *const names[] = { "load_Q", "load_K", "mma_qk", "softmax", "rescale",
		"load_V", "mma_pv", "normalise", "store_O", "softmax.0", "softmax.1", "mma_qk.1",
		"rescale.0", "last", "last.1", "load_X", "" };

	return NEXT_OF(s, names);
}

static const char *next_lane(struct session *s)
{
	static const char *const names[] = { NULL, "c0", "c1", "p0", "two", "no lane", "" };

	return NEXT_OF(s, names);
}

/* ---- edits ---------------------------------------------------------------------------- */

static enum err_code edit_lane(struct session *s, struct err *e)
{
	const char *name = next_lane(s);

	struct lane numbers = { .warps = next_number(s, -1, 9), .columns = next_number(s, -1, 4), .registers = next_number(s, -1, 3) * 100,
		.spare = next_number(s, -1, 3) * 100, .replicas = next_number(s, 0, 3) };

	return history_lane(s->history, name ? name : "c0", &numbers, edit_here, e);
}

static enum err_code edit_append(struct session *s, struct err *e)
{
	static const char *const seus[] = { NULL, NULL, NULL, "copy", "matrix", "vector", "vektor" };
	const char *task = next_task(s), *seu = NEXT_OF(s, seus), *lane = next_lane(s);
	int at = next_number(s, 0, 15);

	return history_append(s->history, task, seu, lane, at < 10 ? 0 : at == 15 ? 17 : at - 12,
		false, edit_here, e);
}

/* The first sTask that is not there yet: without this, no plan would ever be complete. */
static enum err_code edit_append_next(struct session *s, struct err *e)
{
	const struct plan *p = history_plan(s->history);
	const char *lane = next_byte(s) % 4 ? NULL : "c1";

	for (int t = 0; t < p->graph->tasks.n; t++)
		if (plan_entry_of(p, t) == NONE)
			return history_append(s->history, p->graph->tasks.v[t].name, NULL, lane, 0,
				false, edit_here, e);
	return edit_append(s, e);
}

/* Slices of it, if it is split; with or without repair of waits, moved or inserted. */
static enum err_code edit_move(struct session *s, struct err *e)
{
	static const char *const seus[] = { NULL, NULL, NULL, NULL, "copy", "matrix", "vector", "vektor" };
	const char *tasks[2] = { next_task(s), next_task(s) };
	unsigned what = next_byte(s);
	struct move m = { .lane = next_lane(s), .seu = NEXT_OF(s, seus), .set_at = what & 1,
		.at = next_number(s, -2, 3) };
	int n = what & 2 && what & 4 ? 2 : 1;

	if (what & 8)
		m.before = next_task(s);
	else if (what & 16)
		m.after = next_task(s);
	if (what & 32)
		return history_insert(s->history, tasks, n, &m, !(what & 64), NULL, edit_here, e);
	return history_move(s->history, tasks, n, &m, !(what & 64), NULL, edit_here, e);
}

static enum err_code edit_wait(struct session *s, struct err *e)
{
	const char *task = next_task(s);
	struct wait_on on[3];
	int n = next_number(s, 0, 3);

	for (int i = 0; i < n; i++) {
		int d = next_number(s, 0, 19);

		on[i] = (struct wait_on){ .task = next_task(s), .distance = d < 14 ? DISTANCE_AUTO :
			d == 19 ? 65 : d - 14, .when = next_byte(s) % 4 ? WAIT_COMPLETE :
			WAIT_ISSUED };
	}
	return history_wait(s->history, task, on, n, edit_here, e);
}

static enum err_code edit_versions(struct session *s, struct err *e)
{
	static const char *const buffers[] = { "Q", "K", "V", "mx", "o", "mma_qk", "softmax",
		"softmax_2", "normalise", "softmax.0", "o.1", "nothing" };
	struct versions_of v[2];
	int n = next_number(s, 0, 2);

	for (int i = 0; i < n; i++) {
		v[i].buffer = NEXT_OF(s, buffers);
		v[i].versions = next_number(s, 0, 7);
		if (v[i].versions == 7)
			v[i].versions = 65;
	}
	return history_versions(s->history, v, n, edit_here, e);
}

static enum err_code edit_grid(struct session *s, struct err *e)
{
	struct grid_plan g = { .eus = next_number(s, -1, 3), .raster = (enum raster)
		next_number(s, 0, 1), .group = next_number(s, 0, 3), .longest_first =
		next_number(s, 0, 1), .section = next_number(s, -1, 4), .dynamic = next_number(s, 0, 1), .cluster = next_number(s, 0, 3),
		.along = NONE };

	if (g.cluster > 1)
		g.along = next_number(s, NONE, 2);
	g.divided = next_number(s, 0, 4) > 3 ? next_number(s, 0, 3) : 0;

	return history_grid(s->history, &g, edit_here, e);
}

static enum err_code edit_split(struct session *s, struct err *e)
{
	static const char *const axes[] = { "m", "m", "n", "d", "x" };
	const char *axis = NEXT_OF(s, axes), *tasks[3];
	int ways = next_number(s, 0, 4), n = next_number(s, 0, 3);

	for (int i = 0; i < n; i++)
		tasks[i] = next_task(s);
	return history_split(s->history, axis, ways, tasks, n, edit_here, e);
}

static const char *next_value(struct session *s)
{
	static const char *const names[] = { "softmax", "softmax_2", "softmax_3", "normalise", "normalise_2",
		"mma_qk", "Q", "K", "o", "nothing", "" };

	return NEXT_OF(s, names);
}

static enum err_code edit_split_off(struct session *s, struct err *e)
{
	static const char *const names[] = { "last", "last", "another", "softmax", "no name", "" };
	const char *value = next_value(s), *task = NEXT_OF(s, names);

	return history_split_off(s->history, value, task, next_number(s, 1, 3), edit_here, e);
}

static enum err_code edit_alias(struct session *s, struct err *e)
{
	struct alias v[2];
	int n = next_number(s, 0, 2);

	for (int i = 0; i < n; i++) {
		v[i].what = next_value(s);
		v[i].of = next_value(s);
		v[i].loc = edit_here;
	}
	return history_alias(s->history, v, n, edit_here, e);
}

static enum err_code edit_propagate(struct session *s, struct err *e)
{
	struct tiling t = { 0 };
	int axis = next_number(s, 0, 2);

	t.extent[axis] = next_number(s, -1, 18);
	return history_propagate(s->history, &t, edit_here, e);
}

static enum err_code edit_any(struct session *s, struct err *e)
{
	const char *task, *on;
	int added;

	switch (next_number(s, 0, 24)) {
	case 0:
		return edit_lane(s, e);
	case 1:
		return history_remove(s->history, next_task(s), edit_here, e);
	case 2: case 3: case 4:
		return edit_wait(s, e);
	case 5:
		task = next_task(s);
		on = next_task(s);
		return history_unwait(s->history, task, on, edit_here, e);
	case 6: case 7:
		return edit_versions(s, e);
	case 8:
		return edit_grid(s, e);
	case 9:
		return edit_split(s, e);
	case 10:
		return edit_propagate(s, e);
	case 11:
		return history_fill_waits(s->history, NULL, edit_here, &added, e);
	case 12: case 13: case 14:
		return edit_append(s, e);
	case 20:
		return edit_split_off(s, e);
	case 21:
		return edit_alias(s, e);
	case 22: case 23: case 24:
		return edit_move(s, e);
	default:
		return edit_append_next(s, e);
	}
}

/* ---- what must hold ------------------------------------------------------------------- */

static void differs(struct session *s, const char *what)
{
	if (!s->wrong)
		s->wrong = what;
}

/* The text of the plan, kept until the session ends. */
static const char *session_text(struct session *s)
{
	struct buf b;

	buf_init(&b, &s->texts);
	plan_script(history_plan(s->history), &b);
	return b.text;
}

static void session_compare(struct session *s, const char *what)
{
	struct arena_mark mark = arena_mark(&s->texts);

	if (strcmp(session_text(s), s->text[history_edits(s->history)]) != 0)
		differs(s, what);
	arena_reset(&s->texts, mark);
}

static void session_edit(struct session *s)
{
	int before = history_edits(s->history);
	struct err e = { 0 };
	enum err_code code = edit_any(s, &e);
	int after = history_edits(s->history);

	if (code) {
		s->refused++;
		if (e.code != code || !e.msg[0] || strcmp(e.file, edit_here.file) != 0)
			differs(s, "an edit that fails tells why, and where");
		if (after != before)
			differs(s, "an edit that fails is none");
		session_compare(s, "an edit that fails leaves the plan");
		return;
	}
	s->good++;
	if (after == before) {
		session_compare(s, "an edit that does nothing leaves the plan");
		return;
	}
	if (after != before + 1)
		differs(s, "an edit is one");
	s->text[after] = session_text(s);
	s->known = after;
}

static void session_undo(struct session *s)
{
	int before = history_edits(s->history);

	s->undone++;
	if (history_undo(s->history) != (before > 0) ||
	    history_edits(s->history) != before - (before > 0))
		differs(s, "an undo takes one edit back");
	session_compare(s, "an undo restores the plan");
}

static void session_redo(struct session *s)
{
	int before = history_edits(s->history), more = before < s->known;

	if (history_redo(s->history) != (bool)more || history_edits(s->history) != before + more)
		differs(s, "a redo brings one edit back");
	session_compare(s, "a redo restores the plan");
}

/* Whatever comes after a mark, going back there restores plan, undo and redo; so does a copy. */
static void session_mark(struct session *s)
{
	int mark = history_mark(s->history), edits = history_edits(s->history);
	struct history *copy;
	struct buf a, b;
	struct err e = { 0 };

	for (int i = next_number(s, 0, 5); i > 0; i--)
		if (next_byte(s) % 3)
			(void)!edit_any(s, &e);
		else if (next_byte(s) % 2)
			history_undo(s->history);
		else
			history_redo(s->history);
	history_return(s->history, mark);
	if (!history_is_at(s->history, mark) || history_edits(s->history) != edits)
		differs(s, "a mark is come back to");
	session_compare(s, "a mark restores the plan");
	history_copy(s->history, &copy);
	buf_init(&a, &s->texts);
	buf_init(&b, &s->texts);
	plan_script(history_plan(s->history), &a);
	plan_script(history_plan(copy), &b);
	if (strcmp(a.text, b.text) != 0 || history_edits(copy) != edits)
		differs(s, "a copy is the same plan of the same edits");
	while (history_undo(copy))
		;
	history_free(copy);
}

/* Checking must come to an end, and change nothing. */
static void session_check(struct session *s)
{
	struct problems problems;
	struct usage usage;
	struct arena a;
	struct err e;

	s->checked++;
	arena_init(&a, s->stage->mem);
	if (plan_check(history_plan(s->history), &a, NULL, &problems, &usage, &e) &&
	    e.code != ERR_LIMIT)
		differs(s, "a check has an answer, or is too large");
	for (int i = 0; i < problems.v.n; i++)
		if (!problems.v.v[i].message || !problems.v.v[i].message[0] || !problems.v.v[i].hint)
			differs(s, "every problem has a message and a hint");
	arena_release(&a);
	session_compare(s, "a check leaves the plan");
}

static void session_snapshot(struct session *s)
{
	struct graph *g = NULL;
	struct plan *p = NULL;
	struct buf a, b;
	struct err e;

	if (history_snapshot(s->history, &g, &p, &e))
		differs(s, "a good plan can be copied");
	buf_init(&a, &s->texts);
	buf_init(&b, &s->texts);
	plan_script(history_plan(s->history), &a);
	if (p)
		plan_script(p, &b);
	if (!p || p->graph != g || strcmp(a.text, b.text) != 0)
		differs(s, "a copy is the same plan");
	plan_free(p);
	graph_free(g);
}

/* Play the bytes; then take back all edits, and bring them back. */
static void session_run(struct session *s, const struct stage *stage, const uint8_t *data,
	size_t size)
{
	*s = (struct session){ .stage = stage, .data = data, .size = size };
	arena_init(&s->texts, stage->mem);
	history_new(stage->mem, stage->graph, &stage->device, &s->history);
	s->text[0] = session_text(s);
	while (s->size && history_edits(s->history) < EDITS_MOST) {
		unsigned what = next_byte(s) % 32;

		if (what < 2)
			session_undo(s);
		else if (what == 2)
			session_redo(s);
		else if (what == 3)
			session_check(s);
		else if (what == 4)
			session_snapshot(s);
		else if (what == 5)
			session_mark(s);
		else
			session_edit(s);
	}
	while (history_edits(s->history))
		session_undo(s);
	for (int i = 0; i < s->known; i++)
		session_redo(s);
	session_redo(s);
	session_check(s);
	history_free(s->history);
	arena_release(&s->texts);
}

#endif
