/* Builds the program of modulo_milp.h from a net, and reads the schedule and the bound off its solution. */
#include "search/loop/modulo_milp.h"

#include <math.h>
#include <string.h>

#include "search/loop/milp.h"
#include "search/loop/modulo_propagate.h"

static const double TOLERANCE = 1e-6;	/* of CBC's objective, relative */

struct builder {
	struct arena *arena;
	const struct modulo_net *net;
	const struct modulo_problem *p;
	struct modulo_state w;		/* holds for all better schedules */
	double scale;			/* cycles: the column alpha is scale / II */
	double at_most;			/* cycles: the windows hold for intervals up to this */
	struct milp m;
	int alpha;
	int *y, *versions;		/* columns, by task and value */
	int *integer;			/* column by pair; MODULO_NONE: only one integer is possible, ... */
	int *fixed;			/* ... this one */
	int (*on)[MODULO_LANES_MAX];	/* column by task and lane; MODULO_NONE: the lane is decided */
};

static void row(struct builder *b, double lo, double hi)
{
	milp_row(b->arena, &b->m, lo, hi);
}

static void term(struct builder *b, int column, double factor)
{
	milp_term(b->arena, &b->m, column, factor);
}

static int column(struct builder *b, double lo, double hi, bool integer)
{
	return milp_column(b->arena, &b->m, lo, hi, integer, 0);
}

static double window(const struct builder *b, int i, int j)
{
	return b->w.least[i * b->p->ntasks + j];
}

/* ---- columns ---- */

static void add_lanes(struct builder *b, int task)
{
	uint32_t lanes = b->p->tasks[task].lanes;

	for (int l = 0; l < MODULO_LANES_MAX; l++)
		b->on[task][l] = MODULO_NONE;
	if (!lanes || lane_known(lanes))
		return;
	for (int l = 0; l < b->p->nlanes; l++)
		if (lanes >> l & 1)
			b->on[task][l] = column(b, 0, 1, true);
	row(b, 1, 1);
	for (int l = 0; l < b->p->nlanes; l++)
		if (lanes >> l & 1)
			term(b, b->on[task][l], 1);
}

/* Of lanes that are alike, a task is on the second only if an earlier task is on the first, and so on. */
static void break_symmetry(struct builder *b, int task, int lane)
{
	int before = MODULO_NONE;

	for (int l = 0; l < lane; l++)
		if (b->net->twin[l] == b->net->twin[lane])
			before = l;
	if (before == MODULO_NONE || b->on[task][lane] == MODULO_NONE)
		return;
	row(b, -INFINITY, 0);
	term(b, b->on[task][lane], 1);
	for (int i = 0; i < task; i++)
		if (b->on[i][before] != MODULO_NONE)
			term(b, b->on[i][before], -1);
}

static void add_columns(struct builder *b)
{
	const struct modulo_problem *p = b->p;
	int n = p->ntasks;

	b->alpha = milp_column(b->arena, &b->m, fmin(b->scale / b->at_most, 1), 1, false, 1);
	b->y = ARENA_ARRAY(b->arena, n, int);
	b->versions = ARENA_ARRAY(b->arena, p->nvalues + 1, int);
	b->on = arena_array(b->arena, (size_t)n, sizeof(*b->on));
	for (int i = 0; i < n; i++)
		b->y[i] = column(b, window(b, 0, i), fmax(-window(b, i, 0), window(b, 0, i)), false);
	for (int i = 0; i < p->nvalues; i++)
		b->versions[i] = column(b, b->w.low[i], b->w.most[i], true);
	for (int i = 0; i < n; i++)
		add_lanes(b, i);
	for (int i = 0; i < n; i++)
		for (int l = 0; l < p->nlanes; l++)
			break_symmetry(b, i, l);
}

/* ---- rows ---- */

/* Add factor * (task is on lane) to the row: as a term, or if it is decided, as the number that is returned. */
static double lane_term(struct builder *b, int task, int lane, double factor)
{
	if (b->on[task][lane] == MODULO_NONE)
		return b->p->tasks[task].lanes >> lane & 1 ? factor : 0;
	term(b, b->on[task][lane], factor);
	return 0;
}

static bool lanes_open(const struct builder *b, int i, int j)
{
	uint32_t x = b->p->tasks[i].lanes, y = b->p->tasks[j].lanes;

	return x && y && !(lane_known(x) && lane_known(y));
}

/* A column that is at least cross * alpha if the tasks are on different lanes: for some lane, one task is on it and the
 * other is not. */
static int crossing(struct builder *b, int i, int j, double cross)
{
	int differ = column(b, 0, 1, false), z = column(b, 0, fmax(cross / b->scale, 0), false);

	for (int l = 0; l < b->p->nlanes; l++) {
		row(b, -INFINITY, 0);
		term(b, differ, -1);
		b->m.rows.v[b->m.rows.n - 1].hi = -(lane_term(b, i, l, 1) + lane_term(b, j, l, -1));
	}
	row(b, -cross / b->scale, INFINITY);
	term(b, z, 1);
	term(b, b->alpha, -cross / b->scale);
	term(b, differ, -cross / b->scale);
	return z;
}

static void add_arc(struct builder *b, const struct modulo_arc *x)
{
	int z = MODULO_NONE;

	if (!x->within)
		return;
	if (x->cross > 0 && lanes_open(b, x->from, x->to))
		z = crossing(b, x->from, x->to, x->cross);
	row(b, -x->distance, INFINITY);
	term(b, b->y[x->to], 1);
	term(b, b->y[x->from], -1);
	term(b, b->alpha, -arc_cycles(x, b->net->lanes) / b->scale);
	if (x->kind == MODULO_VALUE)
		term(b, b->versions[x->index], 1);
	if (z != MODULO_NONE)
		term(b, z, -1);
}

/* gap[0] alpha <= y[j] - y[i] - k <= 1 - gap[1] alpha. If a lane is given, this must hold only if both tasks are on it: no
 * gap is longer than an interval, so subtracting 1 for each task that is not relaxes it (big M). */
static void add_gaps(struct builder *b, int pair, const double gap[2], int lane)
{
	const struct modulo_pair *x = &b->net->pairs.v[pair];

	for (int side = 0; side < 2; side++) {
		struct milp_row *r;
		double sign = side ? -1 : 1, known = side ? -1 : 0;

		row(b, 0, INFINITY);
		term(b, b->y[x->j], sign);
		term(b, b->y[x->i], -sign);
		term(b, b->alpha, -gap[side] / b->scale);
		if (b->integer[pair] != MODULO_NONE)
			term(b, b->integer[pair], -sign);
		else
			known += sign * b->fixed[pair];
		if (lane != MODULO_NONE)
			known += -2 - (lane_term(b, x->i, lane, -1) + lane_term(b, x->j, lane, -1));
		r = &b->m.rows.v[b->m.rows.n - 1];
		r->lo = known;
	}
}

static void add_pair(struct builder *b, int pair)
{
	const struct modulo_pair *x = &b->net->pairs.v[pair];
	const struct modulo_task *t = b->p->tasks;
	int first, last;
	double gap[2], share[2];

	modulo_pair_gaps(x, b->net->lanes, gap);
	share[0] = gap[0] / b->at_most;
	share[1] = gap[1] / b->at_most;
	modulo_integers(share, window(b, x->i, x->j), -window(b, x->j, x->i), &first, &last);
	b->fixed[pair] = first;
	b->integer[pair] = first < last ? column(b, first, last, true) : MODULO_NONE;
	add_gaps(b, pair, gap, MODULO_NONE);
	if (lane_shared(t[x->i].lanes, t[x->j].lanes))
		return;
	for (int l = 0; l < b->p->nlanes; l++)
		if (x->held >> l & 1)
			add_gaps(b, pair, x->together, l);
}

/* The integers from a to b, b to c and c to a add up to -1. That of a reversed pair is -1 - k. */
static void add_order(struct builder *b, const struct modulo_order *o)
{
	const int ends[4] = { o->a, o->b, o->c, o->a };
	double sum = -1;

	row(b, 0, 0);
	for (int i = 0; i < 3; i++) {
		int k = modulo_net_pair(b->net, ends[i], ends[i + 1]);
		bool along = b->net->pairs.v[k].i == ends[i];

		sum += along ? 0 : 1;
		if (b->integer[k] == MODULO_NONE)
			sum -= along ? b->fixed[k] : -b->fixed[k];
		else
			term(b, b->integer[k], along ? 1 : -1);
	}
	b->m.rows.v[b->m.rows.n - 1].lo = b->m.rows.v[b->m.rows.n - 1].hi = sum;
}

/* A column with the versions of a value if its task is on the lane, otherwise 0. MODULO_NONE: it is never on it. */
static int versions_on(struct builder *b, int value, int lane)
{
	int def = b->p->values[value].def, w;

	if (lane_known(b->p->tasks[def].lanes))
		return b->p->tasks[def].lanes >> lane & 1 ? b->versions[value] : MODULO_NONE;
	if (b->on[def][lane] == MODULO_NONE)
		return MODULO_NONE;
	w = column(b, 0, b->w.most[value], false);
	row(b, -b->w.most[value], INFINITY);
	term(b, w, 1);
	term(b, b->versions[value], -1);
	term(b, b->on[def][lane], -b->w.most[value]);
	return w;
}

static void add_memory(struct builder *b, int memory)
{
	const struct modulo_problem *p = b->p;
	double capacity = p->memories[memory].capacity;
	struct { int column; double bytes; } *part;
	int n = 0;

	if (isinf(capacity))
		return;
	part = arena_array(b->arena, (size_t)(p->nvalues * (p->nlanes + 1) + 1), sizeof(*part));
	for (int i = 0; i < p->nvalues; i++) {
		part[n].bytes = p->values[i].bytes / fmax(capacity, 1);
		if (p->values[i].memory == memory) {
			part[n++].column = b->versions[i];
			continue;
		}
		for (int l = 0; l < p->nlanes && p->values[i].memory == MODULO_NONE; l++) {
			int w = p->lanes[l].memory == memory ? versions_on(b, i, l) : MODULO_NONE;

			if (w == MODULO_NONE)
				continue;
			part[n].bytes = p->values[i].bytes / fmax(capacity, 1);
			part[n++].column = w;
		}
	}
	row(b, -INFINITY, capacity / fmax(capacity, 1));
	for (int i = 0; i < n; i++)
		term(b, part[i].column, part[i].bytes);
}

static void build(struct builder *b)
{
	b->integer = ARENA_ARRAY(b->arena, b->net->pairs.n + 1, int);
	b->fixed = ARENA_ARRAY(b->arena, b->net->pairs.n + 1, int);
	add_columns(b);
	for (int k = 0; k < b->net->arcs.n; k++)
		add_arc(b, &b->net->arcs.v[k]);
	for (int k = 0; k < b->net->pairs.n; k++)
		add_pair(b, k);
	for (int k = 0; k < b->p->norders; k++)
		add_order(b, &b->p->orders[k]);
	for (int r = 0; r < b->p->nmemories; r++)
		add_memory(b, r);
}

/* ---- the solution ---- */

/* Take lanes, versions and integers from the solution, and compute the interval that they give. */
static void take(struct builder *b, const double *x, struct modulo_found *best)
{
	const struct modulo_problem *p = b->p;
	int *integers = ARENA_ARRAY(b->arena, b->net->pairs.n + 1, int);
	struct modulo_choice c = { .integers = integers };
	struct modulo_found found;

	modulo_found_init(b->arena, p, &found);
	c.lanes = found.lanes;
	c.versions = found.versions;
	for (int i = 0; i < p->ntasks; i++) {
		found.lanes[i] = p->tasks[i].lanes;
		for (int l = 0; l < p->nlanes; l++)
			if (b->on[i][l] != MODULO_NONE && x[b->on[i][l]] > 0.5)
				found.lanes[i] = (uint32_t)1 << l;
	}
	for (int i = 0; i < p->nvalues; i++)
		found.versions[i] = (int)lround(x[b->versions[i]]);
	for (int k = 0; k < b->net->pairs.n; k++)
		integers[k] = b->integer[k] == MODULO_NONE ? b->fixed[k] : (int)lround(x[b->integer[k]]);
	found.ii = modulo_choice_ii(b->arena, b->net, &c, found.y, found.links, &found.nlinks);
	if (found.ii < best->ii)
		modulo_found_copy(p, best, &found);
}

static enum modulo_end conclude(struct builder *b, const struct milp_result *r,
	struct modulo_found *best, double *least)
{
	double bound = r->bound > 0 ? b->scale / fmin(r->bound, 1) : *least;

	if (r->status == MILP_INTERRUPTED)
		return MODULO_END_STOPPED;
	if (r->status == MILP_INFEASIBLE && isinf(best->ii))
		return MODULO_END_REFUTED;
	if (r->x)
		take(b, r->x, best);
	if (r->status != MILP_OPTIMAL && r->status != MILP_LIMIT)
		return MODULO_END_LIMIT;
	if (fabs(bound - best->ii) <= TOLERANCE * bound)
		bound = best->ii;
	else
		bound *= 1 - TOLERANCE;
	*least = fmax(*least, fmin(bound, best->ii));
	return r->status == MILP_OPTIMAL ? MODULO_END_FOUND : MODULO_END_LIMIT;
}

enum { TERMS_VISITED = 400000 };	/* in all nodes together: a node of a program with a thousand terms takes 15 ms */

static int affordable_nodes(int nodes, int terms)
{
	return (int)min_i64(nodes, 1 + TERMS_VISITED / max_i64(terms, 1));
}

enum modulo_end modulo_milp(struct arena *a, const struct modulo_net *net, int nodes,
	struct modulo_found *best, double *least)
{
	struct arena_mark scratch = arena_mark(a);
	struct builder b = { .arena = a, .net = net, .p = net->p, .scale = *least };
	enum modulo_end end = MODULO_END_REFUTED;
	struct milp_result r;
	struct err e;

	/* a little more than the best, so that the best is inside in spite of CBC's tolerance */
	b.at_most = isinf(best->ii) ? net->total * 1.01 : best->ii * (1 + TOLERANCE);
	if (modulo_windows(a, net, b.at_most, &b.w)) {
		build(&b);
		end = milp_solve(a, &b.m, affordable_nodes(nodes, b.m.terms.n), &r, &e) ? MODULO_END_LIMIT : conclude(&b, &r, best, least);
	}
	arena_reset(a, scratch);
	return end;
}
