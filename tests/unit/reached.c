/* Stores that are left out in tiles of which the tensor has nothing (src/verify/reached.h). The oracle looks at
 * all elements of a tile: a kernel that leaves out a tile with elements is refused, one that leaves out another
 * tile is not. And boxes that begin in front of their tensor are refused, of whichever warp, round, panel and tile
 * they are. */
#include "lower/passes.h"
#include "verify/reached.h"
#include "tests/unit/bench.h"

/* The first such operation; of branches (DO_IF) one of the section, of repetitions (DO_EACH) one of the variable. */
static struct role_op *find_op(struct role_body *b, enum role_do what, int kind)
{
	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i], *found = NULL;

		if (o->what == what && (what == DO_IF ? (int)o->u.region.section == kind :
		    what != DO_EACH || (int)o->u.region.var == kind))
			return o;
		if (role_is_region(o->what))
			found = find_op(&o->u.region.body, what, kind);
		if (!found && role_is_region(o->what))
			found = find_op(&o->u.region.other, what, kind);
		if (found)
			return found;
	}
	return NULL;
}

static struct role_op *find(struct bench *b, enum role_do what, int kind)
{
	struct role_op *found = NULL;

	for (int i = 0; i < b->k->role->roles.n && !found; i++)
		found = find_op(&b->k->role->roles.v[i].body, what, kind);
	if (!found)
		script_stop("the kernel has no such operation");
	return found;
}

/* OK, or why it is refused. */
static const char *verdict(struct bench *b)
{
	return reached_check(b->k->role, b->plan, &b->e) ? b->e.msg : "accepted";
}

static void refused(struct bench *b, const char *why, const char *what)
{
	const char *v = verdict(b);

	if (!ok(strstr(v, why) != NULL, what))
		diag("%s", v);
}

static const struct node *stored(const struct bench *b, const struct role_op *o)
{
	const struct program *p = b->plan->graph->program;
	const struct task *t = &p->tasks.v[b->plan->graph->tasks.v[o->task].task];

	return &p->nodes.v[t->nodes.v[t->nodes.n - 1]];
}

/* Is the element at these indices of the axes stored inside of the tensor? */
static bool is_inside(const struct program *p, const struct node *n, const int64_t *at)
{
	for (int d = 0; d < p->tensors.v[n->ref].rank; d++) {
		int64_t i = index_eval(&n->index[d], at);

		if (n->index[d].value)		/* may be anything */
			continue;
		if (i < 0 || i >= p->axes.v[p->tensors.v[n->ref].dim[d]].size)
			return false;
	}
	return true;
}

/* One after the other, all indices of a tile that begins at lo[axis]; of axes that are not stored the first one. */
static bool has_elements(const struct bench *b, const struct node *n, const int64_t *lo)
{
	const struct program *p = b->plan->graph->program;
	int64_t at[AXES_MAX];
	int a;

	memcpy(at, lo, sizeof(at));
	do {
		if (is_inside(p, n, at))
			return true;
		for (a = 0; a < p->axes.n; a++) {
			bool used = false;

			for (int d = 0; d < p->tensors.v[n->ref].rank; d++)
				used |= index_uses(&n->index[d], a);
			if (used && ++at[a] < min_i64(lo[a] + b->plan->graph->extents.tile[a], p->axes.v[a].size))
				break;
			at[a] = lo[a];
		}
	} while (a < p->axes.n);
	return false;
}

/* Where tile i of all begins. */
static void tile_at(const struct graph *g, int i, int64_t *lo)
{
	for (int a = 0; a < AXES_MAX; a++) {
		int n = a < g->program->axes.n ? (int)extent_tiles(&g->extents, a) : 1;

		lo[a] = a < g->program->axes.n ? i % n * g->extents.tile[a] : 0;
		i /= n;
	}
}

/* Leaves out the tiles that begin as tile i does along the axes of `with`. */
static void leave_out(struct bench *b, struct role_op *o, int i, const bool *with, int *wrong, int *strict, int *has)
{
	const struct graph *g = b->plan->graph;
	const struct num *other = num_const(&b->arena, 0), *was = o->u.region.when;
	int64_t left[AXES_MAX], lo[AXES_MAX];
	int tiles = 1;
	bool any = false;

	tile_at(g, i, left);
	for (int a = 0; a < g->program->axes.n; a++) {
		tiles *= (int)extent_tiles(&g->extents, a);
		if (with[a] && extent_tiles(&g->extents, a) > 1)
			other = num_make(&b->arena, NUM_EITHER, other, num_make(&b->arena, NUM_NE, num_var(&b->arena, VAR_LO, a),
				num_const(&b->arena, left[a])));
	}
	for (int k = 0; k < tiles && !any; k++) {
		bool same = true;

		tile_at(g, k, lo);
		for (int a = 0; a < g->program->axes.n; a++)
			same &= !with[a] || lo[a] == left[a];
		any = same && has_elements(b, stored(b, o), lo);
	}
	o->u.region.when = other;
	*has += any;
	*wrong += any && !reached_check(b->k->role, b->plan, &b->e);
	*strict += !any && reached_check(b->k->role, b->plan, &b->e);
	o->u.region.when = was;
}

/* Leaves out each tile of the axes of which there are several, one at a time, and each part of one axis. exact:
 * nothing else is refused. */
static void check_tiles(const char *name, const char *script, bool exact)
{
	int wrong = 0, strict = 0, with = 0, none = 0, tiles = 1;
	const struct graph *g;
	struct role_op *o;
	struct bench b;

	bench_open(&b, script, 0);
	g = b.plan->graph;
	o = find(&b, DO_IF, SECTION_REACHED);
	is_str(verdict(&b), "accepted", name);
	for (int a = 0; a < g->program->axes.n; a++)
		tiles *= (int)extent_tiles(&g->extents, a);
	for (int i = 0; i < tiles; i++) {
		bool all[AXES_MAX], one[AXES_MAX];

		memset(all, true, sizeof(all));
		leave_out(&b, o, i, all, &wrong, &strict, &with);
		for (int a = 0; a < g->program->axes.n; a++) {
			memset(one, false, sizeof(one));
			one[a] = extent_tiles(&g->extents, a) > 1;
			if (one[a])
				leave_out(&b, o, i, one, &wrong, &strict, &none);
		}
	}
	is_int(wrong, 0, "  no tile of which the tensor has elements can be left out");
	if (exact)
		is_int(strict, 0, "  any other tile can");
	ok(with > 0 && with < tiles, "  there are tiles of both kinds");
	bench_close(&b);
}

static void check_form(const char *script)
{
	struct role_op *o, *extra;
	struct bench b;

	bench_open(&b, script, 0);
	o = find(&b, DO_IF, SECTION_REACHED);
	const struct num *was = o->u.region.when;
	int task = o->task, other = NONE;

	o->u.region.when = num_make(&b.arena, NUM_EITHER, was, num_make(&b.arena, NUM_GE, num_var(&b.arena, VAR_THREAD, NONE),
		num_const(&b.arena, 0)));
	refused(&b, "depends on more than the tile", "a condition of threads is refused");
	o->u.region.when = was;
	for (int i = 0; i < b.plan->graph->tasks.n; i++)
		if (b.plan->graph->tasks.v[i].kind != TASK_STORE)
			other = i;
	o->task = other;
	refused(&b, "what is left out is no store", "what is no store cannot be left out");
	o->task = NONE;
	refused(&b, "what is left out is no store", "  nor what belongs to no sTask");
	o->task = task;
	extra = o->u.region.body.v.v[0];
	VEC_PUSH(&b.arena, &o->u.region.other.v, extra);
	refused(&b, "what is left out is no store", "  and nothing is done instead of it");
	o->u.region.other.v.n = 0;

	/* somewhere in a branch that is not taken else */
	struct role_op *around = arena_copy(&b.arena, o, 1, sizeof(*o));
	struct role_body body = o->u.region.body;

	o->u.region.section = SECTION_NONE;
	o->u.region.when = num_const(&b.arena, 0);
	o->u.region.body = (struct role_body){ 0 };
	around->u.region.when = num_const(&b.arena, 0);
	VEC_PUSH(&b.arena, &o->u.region.other.v, around);
	refused(&b, "does not store a tile", "and in a second branch, too");
	o->u.region.other.v.n = 0;
	VEC_PUSH(&b.arena, &o->u.region.body.v, around);
	refused(&b, "does not store a tile", "  as in a first one");
	o->u.region.body = body;
	bench_close(&b);
}

/* -1 for the box at which all of these variables have these values; else as it is. */
struct at {
	enum var var;
	int of;
	int64_t k;
};

static const struct num *spoil(struct bench *b, const struct num *corner, const struct at *at, int n)
{
	const struct num *here = num_const(&b->arena, 1);

	for (int i = 0; i < n; i++)
		here = num_make(&b->arena, NUM_BOTH, here, num_make(&b->arena, NUM_EQ, num_var(&b->arena, at[i].var, at[i].of),
			num_const(&b->arena, at[i].k)));
	return num_select(&b->arena, here, num_const(&b->arena, -1), corner);
}

static void check_boxes(const char *name, const char *script, int warps, int rounds, int panels, int tiles)
{
	struct role_op *o, *each;
	struct role_box *box;
	const struct num *was;
	int n = 0;
	struct bench b;

	bench_open(&b, script, 0);
	o = find(&b, DO_STORE_BOXES, SECTION_NONE);
	box = &o->u.boxes.boxes.v[0];
	n = b.k->role->maps.v[o->u.boxes.map].rank;
	is_str(verdict(&b), "accepted", name);
	if (rounds > 1) {
		each = find(&b, DO_EACH, VAR_ROUND);
		is_int(each->u.region.step, rounds, "  in so many rounds");
	}
	is_int(o->u.boxes.panels, panels, "  of so many panels");
	for (int d = 0; d < n; d++) {
		was = box->corner[d];
		for (int w = 0; w < warps; w++)
			for (int r = 0; r < rounds; r++)
				for (int p = 0; p < o->u.boxes.panels; p++) {
					const struct at at[] = { { VAR_THREAD, NONE, w * b.k->target->warp }, { VAR_ROUND, NONE, r },
						{ VAR_PANEL, NONE, p } };

					box->corner[d] = spoil(&b, was, at, LEN(at));
					if (!strstr(verdict(&b), "begins in front"))
						ok(false, arena_strf(&b.arena, "  dimension %d, warp %d, round %d, panel %d", d, w, r, p));
				}
		for (int a = 0; a < b.plan->graph->program->axes.n && d == 0; a++)
			for (int t = 0; t < extent_tiles(&b.plan->graph->extents, a) && extent_tiles(&b.plan->graph->extents, a) == tiles; t++) {
				const struct at at = { VAR_LO, a, t * b.plan->graph->extents.tile[a] };

				box->corner[d] = spoil(&b, was, &at, 1);
				if (!strstr(verdict(&b), "begins in front"))
					ok(false, arena_strf(&b.arena, "  tile %d", t));
			}
		box->corner[d] = num_const(&b.arena, -1);
		const struct num *when = box->when;

		refused(&b, "begins in front", "  refused where all boxes do, in each dimension");
		box->when = num_const(&b.arena, 0);
		is_str(verdict(&b), "accepted", "    unless they are not stored");
		box->when = when;
		box->corner[d] = was;
	}
	bench_close(&b);
}

/* The first and the last tile of very many. */
static void check_last(const char *script)
{
	struct role_op *o;
	struct bench b;

	bench_open(&b, script, 0);
	o = find(&b, DO_STORE_BOXES, SECTION_NONE);
	for (int a = 0; a < b.plan->graph->program->axes.n; a++)
		for (int last = 0; last < 2 && extent_tiles(&b.plan->graph->extents, a) > 1000; last++) {
			const struct num **corner = &o->u.boxes.boxes.v[0].corner[0], *was = *corner;
			const struct at at = { VAR_LO, a, last * (extent_tiles(&b.plan->graph->extents, a) - 1) * b.plan->graph->extents.tile[a] };

			*corner = spoil(&b, was, &at, 1);
			refused(&b, "begins in front", last ? "the last tile of very many" : "the first tile of very many");
			*corner = was;
		}
	bench_close(&b);
}

/* Takes the condition of each box away, one at a time: how many are refused. */
static void try_boxes(struct bench *b, struct role_body *body, int *conditions, int *unfit)
{
	for (int i = 0; i < body->v.n; i++) {
		struct role_op *o = body->v.v[i];

		if (role_is_region(o->what)) {
			try_boxes(b, &o->u.region.body, conditions, unfit);
			try_boxes(b, &o->u.region.other, conditions, unfit);
		}
		if (o->what != DO_STORE_BOXES || !o->u.boxes.boxes.v[0].when)
			continue;
		const struct num *when = o->u.boxes.boxes.v[0].when;

		o->u.boxes.boxes.v[0].when = NULL;
		++*conditions;
		*unfit += strstr(verdict(b), "begins in front") != NULL;
		o->u.boxes.boxes.v[0].when = when;
	}
}

/* The indices of keys and values are in front of their tensors in tiles of queries. */
static void check_when(const char *script)
{
	int conditions = 0, unfit = 0;
	struct bench b;

	bench_open(&b, script, 0);
	is_str(verdict(&b), "accepted", "boxes with conditions");
	for (int i = 0; i < b.k->role->roles.n; i++)
		try_boxes(&b, &b.k->role->roles.v[i].body, &conditions, &unfit);
	is_int(conditions, 6, "  all six stores have one, as heads may be elsewhere");
	is_int(unfit, 4, "  without theirs those of keys and values are refused");
	bench_close(&b);
}

/* A value over m and n with X and Y of these dimensions, stored at `index`. */
#define PROGRAM(sizes, dims, index) "local p = mr.program('moved', function(p) local m, n = p:axes('m', 'n') " \
	"local x = p:load('load_x', p:input('X', {m, n})) local y = p:task('twice', function() return (x:to 'f32' * 2):to 'bf16' end) " \
	"p:output('Y', " dims "):store('store_y', y, " index ") end)" sizes " "

#define DIM(name, size) "p:axis('" name "', " #size ")"

/* A product whose result the copy engine stores; loads are on the lane `loading`. */
#define ENGINE(sizes, tile, loading) "local plan = mr.plan(mr.examples.gemm" sizes ":graph{tile=" tile "}, device) " \
	"plan:lane('p0', {warps=1}) plan:lane('c0', {warps=4}) plan:buffers{a=2, b=2} for _, t in ipairs(plan.tasks) do plan:append(t.name, " \
	"{lane = t.kind == 'load' and '" loading "' or 'c0', seu = t.kind == 'store' and 'tma' or nil}) end plan:fill_waits() return plan"

int main(void)
{
	check_tiles("in front, and behind", "" PROGRAM("{m=100, n=200}", "{m, " DIM("y", 80) "}", "{m, n - 40}")
		"return simple(p, {m=32, n=16})", true);
	check_tiles("a tile of which the tensor has the last element", "" PROGRAM("{m=100, n=200}", "{m, " DIM("y", 80) "}", "{m, n - 15}")
		"return simple(p, {m=32, n=16})", true);
	check_tiles("what is behind the last tile is in the tensor", "" PROGRAM("{m=4, n=20}", "{" DIM("y", 38) "}", "{m * 20 + n - 41}")
		"return simple(p, {m=1, n=16})", true);
	check_tiles("a short tile", "" PROGRAM("{m=100, n=36}", "{" DIM("x", 80) ", " DIM("y", 64) "}", "{m, n * 2 - 40}")
		"return simple(p, {m=32, n=16})", false);
	check_tiles("indices of a table", "local p = mr.program('moved', function(p) local m, n = p:axes('m', 'n') "
		"local x = p:load('load_x', p:input('X', {m, n})) local t = p:load('load_t', p:input('T', {m}, 'i32')) "
		"local y = p:task('twice', function() return (x:to 'f32' * 2):to 'bf16' end) "
		"p:output('Y', {" DIM("x", 40) ", " DIM("y", 80) "}):store('store_y', y, {t + m - 200, n - 40}) end){m=100, n=200} "
		"return simple(p, {m=32, n=16})", true);
	check_tiles("few rows", "" PROGRAM("{m=100, n=200}", "{" DIM("x", 100) ", n}", "{m + 80, n}")
		"return simple(p, {m=4, n=16})", true);
	check_tiles("half of the rows", "" PROGRAM("{m=128, n=200}", "{" DIM("x", 128) ", n}", "{m * 2, n}")
		"return simple(p, {m=16, n=16})", true);
	check_tiles("few columns, numbered with rows", "" PROGRAM("{m=16, n=32}", "{" DIM("x", 64) "}", "{m + n * 16}")
		"return simple(p, {m=4, n=1})", true);
	check_tiles("behind alone", "" PROGRAM("{m=100, n=200}", "{m, " DIM("y", 160) "}", "{m, n + 100}")
		"return simple(p, {m=32, n=16})", true);
	check_tiles("the axis is longer", "" PROGRAM("{m=100, n=200}", "{" DIM("y", 66) ", n}", "{m, n}")
		"return simple(p, {m=32, n=64})", true);
	check_tiles("each second row", "" PROGRAM("{m=128, n=64}", "{" DIM("y", 128) ", n}", "{m * 2, n}")
		"return simple(p, {m=16, n=64})", true);
	check_tiles("both dimensions", "" PROGRAM("{m=100, n=200}", "{" DIM("x", 70) ", " DIM("y", 80) "}", "{m - 33, n - 90}")
		"return simple(p, {m=32, n=16})", true);
	check_tiles("two axes in one dimension", "" PROGRAM("{m=20, n=48}", "{" DIM("y", 300) "}", "{m * 48 + n - 500}")
		"return simple(p, {m=4, n=16})", true);
	check_tiles("columns that are not divided", "" PROGRAM("{m=100, n=64}", "{" DIM("x", 40) ", n}", "{m - 50, n}")
		"return simple(p, {m=16})", true);
	check_tiles("and a quotient", "" PROGRAM("{m=100, n=64}", "{" DIM("x", 5) ", " DIM("z", 8) ", " DIM("y", 40) "}",
		"{m // 8, m % 8, n - 30}") "return simple(p, {m=16, n=16})", false);
	check_tiles("halves of a tile", "" PROGRAM("{m=256, n=64}", "{" DIM("y", 100) ", n}", "{m - 96, n}")
		"local plan = mr.plan(p:graph{tile={m=64, n=64}}, device) plan:split('m', 2) "
		"for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == 'load' and 'p0' or 'c' .. (t.name:match '%d$' or 0)}) end "
		"plan:grid{eus=1} plan:fill_waits() return plan", true);
	check_form("" PROGRAM("{m=100, n=200}", "{m, " DIM("y", 80) "}", "{m, n - 40}") "return simple(p, {m=32, n=16})");
	check_boxes("boxes of eight warps", "local plan = mr.plan(mr.examples.gemm{m=256, n=128, k=64}:graph{tile={m=128, n=64, k=32}}, device) "
		"plan:lane('p0', {warps=1}) plan:lane('c0', {warps=8}) for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == 'load' "
		"and 'p0' or 'c0', seu = t.kind == 'store' and 'tma' or nil}) end plan:fill_waits() return plan", 8, 1, 1, 2);
	check_boxes("boxes in rounds", "local plan = mr.plan(mr.examples.gemm{m=320, n=256, k=64}:graph{tile={m=64, n=256, k=64}}, device) "
		"plan:lane('p0', {warps=1}) plan:lane('c0', {warps=4}) plan:buffers{a=5, b=5} for _, t in ipairs(plan.tasks) do plan:append(t.name, "
		"{lane = t.kind == 'load' and 'p0' or 'c0', seu = t.kind == 'store' and 'tma' or nil}) end plan:fill_waits() return plan", 4, 4, 1, 5);
	check_boxes("boxes of several panels", ENGINE("{m=256, n=256, k=64}", "{m=64, n=256, k=32}", "p0"), 4, 1, 4, 4);
	check_boxes("boxes of the lane that loads, too", ENGINE("{m=128, n=64, k=64}", "{m=64, n=64, k=32}", "c0"), 4, 1, 1, 2);
	check_last(ENGINE("{m=128000, n=64, k=64}", "{m=64, n=64, k=32}", "p0"));
	check_when("local plan = mr.plan(mr.examples.qkv_rope{b=1, m=64, k=64, hq=2, hkv=1, d=64}:graph{tile={m=64, h=1, k=32}}, device) "
		"for _, t in ipairs(plan.tasks) do plan:append(t.name) end plan:grid{eus=1} plan:fill_waits() return plan");
	return tap_done();
}
