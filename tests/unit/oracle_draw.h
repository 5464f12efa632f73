/* oracle_draw.h - random small programs and random plans for them.
 *
 * A program has at most STASKS_MOST sTasks, around no loop, one, two in sequence or two
 * nested, in one phase or two; values are tiles over {m}, {m, k}, {k, j} or {m, j}, so
 * small that nothing but their order matters. How often a loop runs may depend on the
 * tile, and on the iteration of the loop around it; that is worked out a second time.
 */
#ifndef ORACLE_DRAW_H
#define ORACLE_DRAW_H

#include "base/prng.h"
#include "plan/check.h"
#include "tests/unit/oracle_machine.h"

enum { STASKS_MOST = 7, VALUES = 32 };


/* What a value is over: ROW {m}, LEFT {m, k}, RIGHT {k, j}, FULL {m, j}; OUTER: {m}
 * and the axes of the loops around it, as a store inside a loop wants it. */
enum shape { ROW, LEFT, RIGHT, FULL, OUTER };

/* first <= iteration <= last, where the bound is k + coef * (p mod `mod`), and p is
 * the tile or the iteration of the loop around. */
struct bound {
	bool given, by_loop;
	int k, coef, mod;
};

struct value {
	int node, loop;
	enum shape shape;
	bool used;
};

struct drawn_carry {
	int id, loop;
	enum shape shape;
	bool set;
};

struct drawing {
	struct prng *r;
	struct program *p;
	int m, k, j;			/* axes */
	int ntiles;			/* along m */
	int size;			/* about how often a loop runs, at most */
	int nloops, loop_axis[LOOPS], loop_parent[LOOPS], loop_size[LOOPS];
	struct bound from[LOOPS], upto[LOOPS];
	int loop;			/* the present one */
	int nvalues, ncarries, names;
	struct value value[VALUES];
	struct drawn_carry carry[8];
	bool failed;			/* the program refused something: draw again */
};

static const struct srcloc oracle_here = { "oracle.lua", 1 };

/* Drawn plans are small, and nobody stops the test. */
static inline void look(const struct plan *p, struct arena *a, struct problems *out)
{
	struct err e;

	if (plan_check(p, a, NULL, out, NULL, &e))
		BUG("%s", e.msg);
}

static inline void fill(struct plan *p)
{
	struct err e;
	int added;

	if (plan_fill_waits(p, NULL, &added, &e))
		BUG("%s", e.msg);
}

static bool chance(struct prng *r, uint32_t percent)
{
	return prng_below(r, 100) < percent;
}

/* 0 to most. */
static int pick(struct prng *r, int most)
{
	return (int)prng_below(r, (uint32_t)most + 1);
}

static void took(struct drawing *d, enum err_code code)
{
	d->failed |= code != OK;
}

static const char *new_name(struct drawing *d, const char *stem)
{
	return arena_strf(&d->p->arena, "%s%d", stem, d->names++);
}

static bool in_scope(const struct drawing *d, int loop)
{
	for (int l = d->loop; l != loop; l = d->loop_parent[l])
		if (l == NONE)
			return false;
	return true;
}

static void add_value(struct drawing *d, int node, enum shape shape)
{
	if (d->nvalues < VALUES)
		d->value[d->nvalues++] = (struct value){ .node = node, .loop = d->loop,
			.shape = shape };
}

/* A value in scope, not used yet if there is one; NULL if none has the shape. */
static struct value *pick_value(struct drawing *d, unsigned shapes)
{
	struct value *best = NULL;
	int n = 0;

	for (int fresh = 1; fresh >= 0 && !best; fresh--) {
		for (int i = 0; i < d->nvalues; i++) {
			struct value *v = &d->value[i];

			if (!(shapes >> v->shape & 1) || !in_scope(d, v->loop) ||
			    (fresh && v->used))
				continue;
			if (prng_below(d->r, (uint32_t)++n) == 0)
				best = v;
		}
	}
	if (best)
		best->used = true;
	return best;
}

static struct drawn_carry *pick_carry(struct drawing *d, unsigned shapes)
{
	struct drawn_carry *best = NULL;
	int n = 0;

	for (int i = 0; i < d->ncarries; i++) {
		struct drawn_carry *c = &d->carry[i];

		if ((shapes >> c->shape & 1) && in_scope(d, c->loop) &&
		    prng_below(d->r, (uint32_t)++n) == 0)
			best = c;
	}
	return best;
}

static void draw_carry(struct drawing *d)
{
	int axes[2] = { d->m, d->j }, id;
	bool full = chance(d->r, 50);

	if (d->ncarries == LEN(d->carry))
		return;
	took(d, program_carry(d->p, new_name(d, "c"), full ? 2 : 1, axes, 0, oracle_here, &id,
		&(struct err){ 0 }));
	if (!d->failed)
		d->carry[d->ncarries++] = (struct drawn_carry){ id, d->loop, full ? FULL : ROW,
			false };
}

static void draw_load(struct drawing *d)
{
	bool left = chance(d->r, 60);
	int dims[2] = { left ? d->m : d->k, left ? d->k : d->j }, tensor, node;
	struct err e;

	took(d, program_tensor(d->p, TENSOR_INPUT, new_name(d, "X"), DT_BF16, 2, dims, oracle_here,
		&tensor, &e));
	if (d->failed)
		return;
	took(d, program_load(d->p, new_name(d, "load"), tensor, NULL, oracle_here, &node, &e));
	if (!d->failed)
		add_value(d, node, left ? LEFT : RIGHT);
}

static void draw_product(struct drawing *d)
{
	struct value *a = pick_value(d, 1 << LEFT), *b = pick_value(d, 1 << RIGHT);
	struct drawn_carry *c = pick_carry(d, 1 << FULL);
	struct err e;
	int node;

	if (!a || !b)
		return;
	took(d, program_mma(d->p, new_name(d, "mma"), a->node, b->node, oracle_here, &node, &e));
	if (d->failed)
		return;
	if (c && chance(d->r, 75)) {
		took(d, program_accumulate(d->p, c->id, node, oracle_here, &e));
		c->set = true;
	} else {
		add_value(d, node, FULL);
	}
}

/* a + b; a NONE: b. */
static int draw_sum(struct drawing *d, int a, int b)
{
	struct err e;
	int args[2] = { a, b }, node = b;

	if (a != NONE)
		took(d, program_op(d->p, OP_ADD, args, oracle_here, &node, &e));
	return d->failed ? b : node;
}

static int draw_index(struct drawing *d, int axis)
{
	struct err e;
	int node = NONE;

	took(d, program_index(d->p, axis, oracle_here, &node, &e));
	return node;
}

/* Reduce a value to {m} or less and add it. */
static int draw_reduced(struct drawing *d, int sum, int node)
{
	struct err e;

	for (;;) {
		const struct node *n = &d->p->nodes.v[node];
		int axis = NONE;

		for (int i = 0; i < n->naxes; i++)
			if (n->axis[i] != d->m)
				axis = n->axis[i];
		if (axis == NONE || d->failed)
			return draw_sum(d, sum, node);
		took(d, program_reduce(d->p, OP_SUM, node, axis, oracle_here, &node, &e));
	}
}

/* Element-wise work on `inputs` values and carries; `all`: on all that nobody used. */
static void draw_compute(struct drawing *d, int inputs, bool all)
{
	int sum = NONE, node;
	struct err e;
	struct drawn_carry *c;

	took(d, program_task_begin(d->p, new_name(d, "ew"), oracle_here, &e));
	if (d->failed)
		return;
	for (int i = 0; i < d->nvalues && all; i++) {
		if (d->value[i].used || !in_scope(d, d->value[i].loop))
			continue;
		d->value[i].used = true;
		sum = draw_reduced(d, sum, d->value[i].node);
	}
	for (int i = 0; i < d->ncarries && all && d->loop == NONE && !d->failed; i++) {
		if (d->carry[i].loop != NONE)
			continue;
		took(d, program_get(d->p, d->carry[i].id, oracle_here, &node, &e));
		if (!d->failed)
			sum = draw_reduced(d, sum, node);
	}
	for (int i = 0; i < inputs && !d->failed; i++) {
		struct value *v = NULL;

		c = chance(d->r, 50) ? pick_carry(d, 1 << ROW | 1 << FULL) : NULL;
		if (c) {
			took(d, program_get(d->p, c->id, oracle_here, &node, &e));
			if (!d->failed)
				sum = draw_reduced(d, sum, node);
			continue;
		}
		v = pick_value(d, 31);
		if (v)
			sum = draw_reduced(d, sum, v->node);
	}
	sum = draw_sum(d, sum, draw_index(d, d->m));
	if (!d->failed)
		took(d, program_cast(d->p, sum, DT_F32, oracle_here, &sum, &e));
	c = pick_carry(d, 1 << ROW | 1 << FULL);
	if (!d->failed && c && chance(d->r, all ? 90 : 60)) {
		took(d, program_set(d->p, c->id, sum, oracle_here, &e));
		c->set = true;
	}
	if (!d->failed && (!c || chance(d->r, 60))) {
		if (d->loop != NONE && chance(d->r, 15)) {
			for (int l = d->loop; l != NONE; l = d->loop_parent[l])
				sum = draw_sum(d, sum, draw_index(d, d->loop_axis[l]));
			add_value(d, sum, OUTER);
		} else if (chance(d->r, 40)) {
			add_value(d, draw_sum(d, sum, draw_index(d, d->k)), LEFT);
		} else {
			add_value(d, sum, ROW);
		}
	}
	took(d, program_task_end(d->p, oracle_here, &e));
}

static void draw_store(struct drawing *d)
{
	struct value *v = pick_value(d, d->loop == NONE ? 1 << ROW | 1 << LEFT | 1 << FULL :
		1 << OUTER);
	const struct node *n;
	struct err e;
	int tensor;

	if (!v || v->loop != d->loop)
		return;
	n = &d->p->nodes.v[v->node];
	took(d, program_tensor(d->p, TENSOR_OUTPUT, new_name(d, "Y"), DT_F32, n->naxes, n->axis,
		oracle_here, &tensor, &e));
	if (!d->failed)
		took(d, program_store(d->p, new_name(d, "store"), tensor, NULL, v->node, oracle_here,
			&e));
}

static void draw_task(struct drawing *d)
{
	uint32_t x = prng_below(d->r, 100);

	if (d->failed)
		return;
	if (x < 30)
		draw_load(d);
	else if (x < 55)
		draw_product(d);
	else if (x < 90)
		draw_compute(d, 1 + pick(d->r, 1), false);
	else
		draw_store(d);
}

static struct bound draw_bound(struct prng *r, int size, int parent, uint32_t percent)
{
	struct bound b = { .given = chance(r, percent), .k = pick(r, size) - 1,
		.coef = pick(r, 4) - 2, .mod = 2 + pick(r, 2) };

	b.by_loop = parent != NONE && chance(r, 40);
	return b;
}

static struct index_expr bound_expr(const struct drawing *d, const struct bound *b, int parent)
{
	struct index_expr x = { .k = b->k, .n = b->coef != 0 };

	x.term[0] = (struct index_term){ .axis = b->by_loop ? d->loop_axis[parent] : d->m,
		.coef = b->coef, .div = b->by_loop ? 1 : 2, .mod = b->mod };
	return x;
}

static void draw_loop_begin(struct drawing *d)
{
	int l = d->nloops++, parent = d->loop;
	struct index_expr from, upto;
	struct err e;

	d->loop_parent[l] = parent;
	d->loop_size[l] = 1 + pick(d->r, d->size - 1 - (parent != NONE));
	d->from[l] = draw_bound(d->r, d->size, parent, 15);
	d->upto[l] = draw_bound(d->r, d->size, parent, 50);
	took(d, program_axis(d->p, new_name(d, "n"), d->loop_size[l], oracle_here, &d->loop_axis[l],
		&e));
	if (d->failed)
		return;
	from = bound_expr(d, &d->from[l], parent);
	upto = bound_expr(d, &d->upto[l], parent);
	took(d, program_loop_begin(d->p, 1, &d->loop_axis[l], d->from[l].given ? &from : NULL,
		d->upto[l].given ? &upto : NULL, oracle_here, &e));
	d->loop = l;
}

/* What a loop made and nobody used is kept in a carry, or lost. */
static void draw_loop_end(struct drawing *d)
{
	bool left = false;

	for (int i = 0; i < d->nvalues; i++)
		left |= !d->value[i].used && d->value[i].loop == d->loop;
	if (left && !d->failed)
		draw_compute(d, 0, true);
	if (!d->failed)
		took(d, program_loop_end(d->p, oracle_here, &(struct err){ 0 }));
	d->loop = d->loop_parent[d->loop];
}

/* A skeleton: t a task, u perhaps one, c perhaps a carry, ( and ) a loop. At the end all
 * that is left goes into one store. */
static void draw_skeleton(struct drawing *d, const char *s)
{
	d->nvalues = d->ncarries = 0;
	for (; *s && !d->failed; s++) {
		if (*s == 't' || (*s == 'u' && chance(d->r, 40)))
			draw_task(d);
		else if (*s == 'c' && chance(d->r, 60))
			draw_carry(d);
		else if (*s == '(')
			draw_loop_begin(d);
		else if (*s == ')')
			draw_loop_end(d);
	}
	if (!d->failed)
		draw_compute(d, 0, true);
	if (!d->failed)
		draw_store(d);
}

static void draw_two_phases(struct drawing *d)
{
	static const char *const skeletons[] = { "ctt", "c(tt)", "t(tt)" };
	struct err e;

	for (int i = 0; i < 2 && !d->failed; i++) {
		took(d, program_phase_begin(d->p, i ? "second" : "first", oracle_here, &e));
		draw_skeleton(d, skeletons[pick(d->r, LEN(skeletons) - 1)]);
		if (!d->failed)
			took(d, program_phase_end(d->p, oracle_here, &e));
	}
}

/* NULL if this try made no program. */
static struct program *draw_program(struct mem *mem, struct prng *r, struct drawing *d, int ntiles,
	int size)
{
	static const char *const skeletons[] = { "cttttuu", "ccu(ttuu)u", "ccu(ttttu)", "cu(ctttuu)u",
		"ccu(ttu)u(ttu)", "cc(tu)(tu)u", "ccu(u(ttu)u)u", "c(tc(tt)u)", "cc((tttu))u",
		"cc(u(tu)(tu)u)" };
	struct err e;

	*d = (struct drawing){ .r = r, .p = program_new(mem, "random"), .loop = NONE,
		.ntiles = 1 + pick(r, ntiles - 1), .size = size };
	took(d, program_axis(d->p, "m", 2 * d->ntiles, oracle_here, &d->m, &e));
	took(d, program_axis(d->p, "k", 2, oracle_here, &d->k, &e));
	took(d, program_axis(d->p, "j", 2, oracle_here, &d->j, &e));
	if (chance(r, 8))
		draw_two_phases(d);
	else
		draw_skeleton(d, skeletons[pick(r, LEN(skeletons) - 1)]);
	if (!d->failed)
		took(d, program_finish(d->p, &e));
	if (!d->failed)
		return d->p;
	program_free(d->p);
	return NULL;
}

/* NULL if there is none of the wanted size. */
static struct graph *draw_graph(struct mem *mem, struct drawing *d)
{
	struct tiling t = { 0 };
	struct split s = { .axis = d->m, .ways = 2 };
	int tasks[64];
	struct graph *g = NULL;
	struct err e;

	t.extent[d->m] = 2;
	for (int l = 0; l < d->nloops; l++)
		t.extent[d->loop_axis[l]] = 1;
	for (int i = 0; i < d->p->tasks.n; i++)
		if (d->p->tasks.v[i].kind != TASK_LOAD && d->p->tasks.v[i].nodes.n)
			tasks[s.ntasks++] = i;
	s.tasks = tasks;
	if (s.ntasks <= 3 && chance(d->r, 40) &&
	    graph_build(mem, d->p, &t, &(struct shaping){ .splits = &s, .nsplits = 1 }, &g, &e))
		g = NULL;
	if (!g && graph_build(mem, d->p, &t, NULL, &g, &e))
		return NULL;
	if (g->tasks.n <= STASKS_MOST)
		return g;
	graph_free(g);
	return NULL;
}

/* ---- how often the loops run ------------------------------------------------------- */

static int bound_at(const struct bound *b, int tile, int around)
{
	return b->k + b->coef * ((b->by_loop ? around : tile) % b->mod);
}

/* Iterations of a loop in a tile of the grid, in iteration `around` of the next loop. */
static int trips_at(const struct drawing *d, int loop, int tile, int around)
{
	int n = 0;

	for (int i = 0; i < d->loop_size[loop]; i++)
		n += (!d->from[loop].given || i >= bound_at(&d->from[loop], tile, around)) &&
			(!d->upto[loop].given || i <= bound_at(&d->upto[loop], tile, around));
	return n;
}

/* The first of these iterations. */
static int first_at(const struct drawing *d, int loop, int tile, int around)
{
	int i = d->from[loop].given ? bound_at(&d->from[loop], tile, around) : 0;

	return i < 0 ? 0 : i;
}

/* What the tiles of the grid make of the loops, in this order. */
static void scenario_of_tiles(const struct drawing *d, int n, const int64_t *tiles,
	struct scenario *out)
{
	*out = (struct scenario){ .ntiles = n };
	for (int l = 0; l < d->nloops; l++) {
		int parent = d->loop_parent[l];

		for (int t = 0; t < n; t++) {
			for (int i = 0; i < TRIPS; i++) {
				int tile = (int)tiles[t];
				int around = parent == NONE ? i :
					first_at(d, parent, tile, 0) + i;

				out->trips[l][t][i] = (int8_t)trips_at(d, l, tile, around);
			}
		}
	}
}

/* ---- devices and plans ------------------------------------------------------------- */

static void draw_device(struct prng *r, struct vdevice *d)
{
	static const char *const names[] = { "copy", "matrix", "vector" };

	*d = (struct vdevice){ .name = "random", .title = "random", .arch = "none", .eus = 1,
		.clock_hz = 1e9, .nseus = 3, .warp = 32, .max_threads = 1 << 20,
		.registers = 1 << 30, .thread_registers = 1 << 20, .register_step = 1,
		.shared_bytes = (int64_t)1 << 40, .named_barriers = 1 << 20, .max_cluster = 1 };
	for (int i = 0; i < 3; i++) {
		d->seu[i] = (struct seu){ .name = names[i], .kind = (enum seu_kind)i,
			.async = i < 2, .ordered = i == 1 };
		for (int t = 0; t < RATE_TYPES; t++)
			d->seu[i].flops[t] = 1;
		if (chance(r, 10))
			d->seu[i].async = !d->seu[i].async;
		if (chance(r, 10))
			d->seu[i].ordered = !d->seu[i].ordered;
	}
}

static void must(enum err_code code, const struct err *e)
{
	if (code)
		BUG("an edit of the plan was refused: %s", e->msg);
}

static void draw_entries(struct prng *r, struct plan *p, int versions)
{
	static const char *const lanes[] = { "a", "b", "c" };
	int nlanes = 1 + pick(r, 2), n = p->graph->tasks.n, order[STASKS_MOST];
	bool shifted = chance(r, 45), loads_apart = chance(r, 60);
	int swaps = chance(r, 60) ? 0 : 1 + pick(r, 2);
	struct err e;

	for (int l = 0; l < nlanes; l++)
		must(plan_lane(p, &(struct lane){ .name = lanes[l], .warps = 4, .replicas = chance(r, 15) ? 2 : 1,
			.loc = oracle_here }, &e), &e);
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (; swaps; swaps--) {
		int i = pick(r, n - 1), k = pick(r, n - 1);
		int t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (int i = 0; i < n; i++) {
		static const int offsets[] = { -1, 1, 1, 1, 2 };
		const struct stask *s = &p->graph->tasks.v[order[i]];
		bool load = s->kind == TASK_LOAD && loads_apart;
		int lane = load ? 0 : pick(r, nlanes - 1);
		int at = shifted && chance(r, 35) ? offsets[pick(r, LEN(offsets) - 1)] : 0;

		must(plan_append(p, order[i], chance(r, 10) ? "vector" : NULL, lanes[lane], at,
			oracle_here, &e), &e);
	}
	for (int b = 0; b < p->graph->buffers.n; b++)
		must(plan_versions(p, b, chance(r, 50) ? 1 : 1 + pick(r, versions - 1),
			oracle_here, &e), &e);
}

static void draw_wait(struct prng *r, struct plan *p)
{
	int task = pick(r, p->graph->tasks.n - 1), on = pick(r, p->graph->tasks.n - 1);
	int distance = chance(r, 20) ? DISTANCE_AUTO : pick(r, 3);
	enum wait_when when = chance(r, 30) ? WAIT_ISSUED : WAIT_COMPLETE;
	struct err e;

	if (p->graph->tasks.v[task].phase == p->graph->tasks.v[on].phase)
		must(plan_wait(p, task, on, distance, when, oracle_here, &e), &e);
}

static void drop_wait(struct plan *p, int i)
{
	memmove(&p->waits.v[i], &p->waits.v[i + 1],
		(size_t)(p->waits.n - i - 1) * sizeof(p->waits.v[0]));
	p->waits.n--;
}

static void draw_waits(struct prng *r, struct plan *p)
{
	int extra = chance(r, 70) ? 0 : 1 + pick(r, 2);

	if (chance(r, 30))
		for (; extra; extra--)
			draw_wait(r, p);
	if (chance(r, 92))
		fill(p);
	for (int n = chance(r, 60) ? 0 : 1 + pick(r, 1); n && p->waits.n; n--)
		drop_wait(p, pick(r, p->waits.n - 1));
	for (int n = chance(r, 80) ? 0 : 1; n && p->waits.n; n--) {
		struct wait *w = &p->waits.v[pick(r, p->waits.n - 1)];

		w->distance = pick(r, 3);
		w->when = chance(r, 20) ? WAIT_ISSUED : WAIT_COMPLETE;
	}
	for (; extra; extra--)
		draw_wait(r, p);
}

#endif
