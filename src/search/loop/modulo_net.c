#include "search/loop/modulo_net.h"

#include <math.h>
#include <string.h>

#include "search/loop/modulo_ratio.h"

/* ---- arcs ---- */

static double cycles_after(const struct modulo_problem *p, int task, bool from_start, double lag)
{
	return fmax((from_start ? 0 : p->tasks[task].latency) + lag, 0);
}

static void add_arcs(struct arena *a, struct modulo_net *net)
{
	const struct modulo_problem *p = net->p;

	for (int i = 0; i < p->ndeps; i++) {
		const struct modulo_dep *d = &p->deps[i];

		VEC_PUSH(a, &net->arcs, ((struct modulo_arc){ d->from, d->to,
			cycles_after(p, d->from, d->from_start, d->lag), d->cross, d->distance,
			MODULO_DEP, i, false }));
	}
	for (int i = 0; i < p->nvalues; i++) {
		for (int k = 0; k < p->values[i].nuses; k++) {
			const struct modulo_use *u = &p->values[i].uses[k];

			VEC_PUSH(a, &net->arcs, ((struct modulo_arc){ u->task, p->values[i].def,
				cycles_after(p, u->task, u->from_start, u->lag), u->cross,
				-u->distance, MODULO_VALUE, i, false }));
		}
	}
	for (int i = 0; i < p->npins; i++) {
		const struct modulo_pin *x = &p->pins[i];

		VEC_PUSH(a, &net->arcs, ((struct modulo_arc){ x->other, x->task, 0, 0, -x->ahead,
			MODULO_PIN, i, false }));
		VEC_PUSH(a, &net->arcs, ((struct modulo_arc){ x->task, x->other, 0, 0, x->ahead + 1,
			MODULO_PIN, i, false }));
	}
}

/* ---- parts ---- */

struct reach {
	uint64_t v[MODULO_TASKS_MAX][(MODULO_TASKS_MAX + 63) / 64];
};

static bool reaches(const struct reach *r, int i, int j)
{
	return r->v[i][j / 64] >> (j % 64) & 1;
}

static void close_reach(struct reach *r, int n)
{
	for (int k = 0; k < n; k++)
		for (int i = 0; i < n; i++)
			if (reaches(r, i, k))
				for (int w = 0; w < LEN(r->v[0]); w++)
					r->v[i][w] |= r->v[k][w];
}

static void find_parts(struct arena *a, struct modulo_net *net)
{
	struct arena_mark scratch;
	int n = net->p->ntasks;
	struct reach *r;

	net->part = ARENA_ARRAY(a, n, int);
	net->anchor = ARENA_ARRAY(a, n, int);
	scratch = arena_mark(a);
	r = ARENA_NEW(a, struct reach);
	for (int k = 0; k < net->arcs.n; k++)
		r->v[net->arcs.v[k].from][net->arcs.v[k].to / 64] |= (uint64_t)1 << (net->arcs.v[k].to % 64);
	close_reach(r, n);
	for (int i = 0; i < n; i++) {
		net->anchor[i] = i;
		for (int j = 0; j < i && net->anchor[i] == i; j++)
			if (reaches(r, i, j) && reaches(r, j, i))
				net->anchor[i] = net->anchor[j];
		net->part[i] = net->anchor[i];
	}
	arena_reset(a, scratch);
	for (int k = 0; k < net->arcs.n; k++)
		net->arcs.v[k].within = net->part[net->arcs.v[k].from] == net->part[net->arcs.v[k].to];
}

/* ---- pairs ---- */

/* Gaps because of a unit that both tasks use. */
static void unit_gaps(const struct modulo_net *net, struct modulo_pair *x)
{
	const struct modulo_task *i = &net->p->tasks[x->i], *j = &net->p->tasks[x->j];
	enum modulo_share share;

	if (i->unit == MODULO_NONE || i->unit != j->unit || !(i->busy > 0) || !(j->busy > 0))
		return;
	share = net->p->units[i->unit].share;
	if (share == MODULO_UNLIMITED || (share == MODULO_MIX && !net->exclusive))
		return;
	x->together[0] = i->busy;
	x->together[1] = j->busy;
	if (share == MODULO_EXCLUSIVE || net->exclusive)
		memcpy(x->apart, x->together, sizeof(x->apart));
}

/* Gaps because of lanes that both tasks may have. */
static void lane_gaps(const struct modulo_net *net, struct modulo_pair *x)
{
	const struct modulo_task *i = &net->p->tasks[x->i], *j = &net->p->tasks[x->j];

	for (int l = 0; l < net->p->nlanes; l++)
		if ((i->lanes & j->lanes) >> l & 1 && !net->p->lanes[l].unlimited)
			x->held |= (uint32_t)1 << l;
	if (x->held) {
		x->together[0] = fmax(x->together[0], i->hold);
		x->together[1] = fmax(x->together[1], j->hold);
	} else {
		memcpy(x->together, x->apart, sizeof(x->together));
	}
}

/* Does an order need the integer of this pair? */
static bool is_ordered(const struct modulo_problem *p, int i, int j)
{
	for (int k = 0; k < p->norders; k++) {
		const int v[3] = { p->orders[k].a, p->orders[k].b, p->orders[k].c };

		if (ints_hold(v, 3, i) && ints_hold(v, 3, j))
			return true;
	}
	return false;
}

static void find_pairs(struct arena *a, struct modulo_net *net)
{
	for (int j = 0; j < net->p->ntasks; j++) {
		for (int i = 0; i < j; i++) {
			struct modulo_pair x = { .i = i, .j = j,
				.ordered = is_ordered(net->p, i, j) };

			unit_gaps(net, &x);
			lane_gaps(net, &x);
			if (x.together[0] > 0 || x.together[1] > 0 || x.ordered)
				VEC_PUSH(a, &net->pairs, x);
		}
	}
}

int modulo_net_pair(const struct modulo_net *net, int i, int j)
{
	for (int k = 0; k < net->pairs.n; k++)
		if ((net->pairs.v[k].i == i && net->pairs.v[k].j == j) ||
		    (net->pairs.v[k].i == j && net->pairs.v[k].j == i))
			return k;
	return MODULO_NONE;
}

bool modulo_pair_gaps(const struct modulo_pair *x, const uint32_t *lanes, double gap[2])
{
	bool shared = lane_shared(lanes[x->i], lanes[x->j]) && (lanes[x->i] & x->held);
	const double *from = shared ? x->together : x->apart;

	gap[0] = from[0];
	gap[1] = from[1];
	return x->ordered || gap[0] > 0 || gap[1] > 0;
}

/* ---- versions and lanes ---- */

int modulo_memory_of(const struct modulo_problem *p, const struct modulo_value *v, uint32_t lanes)
{
	if (v->memory != MODULO_NONE)
		return v->memory;
	return lane_known(lanes) ? p->lanes[__builtin_ctz(lanes)].memory : MODULO_NONE;
}

void modulo_memory_loads(const struct modulo_problem *p, const uint32_t *lanes, const int *versions, double *load)
{
	memset(load, 0, (size_t)p->nmemories * sizeof(*load));
	for (int i = 0; i < p->nvalues; i++) {
		int memory = modulo_memory_of(p, &p->values[i], lanes[p->values[i].def]);

		if (memory != MODULO_NONE)
			load[memory] += versions[i] * p->values[i].bytes;
	}
}

/* The versions that a memory can hold of a value if all others have their least. */
static int most_versions(const struct modulo_problem *p, int value)
{
	const struct modulo_value *v = &p->values[value];
	int most = v->most ? v->most : MODULO_VERSIONS_MAX;
	int memory = modulo_memory_of(p, v, p->tasks[v->def].lanes);
	double left;

	if (memory == MODULO_NONE || !(v->bytes > 0) || isinf(p->memories[memory].capacity))
		return most;
	left = modulo_memory_limit(&p->memories[memory]);
	for (int i = 0; i < p->nvalues; i++)
		if (i != value && modulo_memory_of(p, &p->values[i], p->tasks[p->values[i].def].lanes) == memory)
			left -= p->values[i].bytes * p->values[i].least;
	if (left / v->bytes >= most)
		return most;
	return (int)fmax(floor(left / v->bytes), v->least);
}

/* Can the two lanes be exchanged in every schedule? */
static bool lanes_alike(const struct modulo_problem *p, int x, int y)
{
	int r = p->lanes[x].memory, s = p->lanes[y].memory;

	for (int i = 0; i < p->ntasks; i++)
		if ((p->tasks[i].lanes >> x & 1) != (p->tasks[i].lanes >> y & 1))
			return false;
	if (p->lanes[x].unlimited != p->lanes[y].unlimited)
		return false;
	if (r == s)
		return true;
	if (r == MODULO_NONE || s == MODULO_NONE || p->memories[r].capacity != p->memories[s].capacity)
		return false;
	for (int i = 0; i < p->nvalues; i++)
		if (p->values[i].memory == r || p->values[i].memory == s)
			return false;
	for (int l = 0; l < p->nlanes; l++)
		if (l != x && l != y && (p->lanes[l].memory == r || p->lanes[l].memory == s))
			return false;
	return true;
}

void modulo_net_make(struct arena *a, const struct modulo_problem *p, bool exclusive, struct modulo_net *out)
{
	*out = (struct modulo_net){ .p = p, .exclusive = exclusive };
	add_arcs(a, out);
	find_parts(a, out);
	find_pairs(a, out);
	out->lanes = ARENA_ARRAY(a, p->ntasks, uint32_t);
	for (int i = 0; i < p->ntasks; i++)
		out->lanes[i] = p->tasks[i].lanes;
	out->most = ARENA_ARRAY(a, p->nvalues + 1, int);
	for (int i = 0; i < p->nvalues; i++)
		out->most[i] = most_versions(p, i);
	for (int l = 0; l < p->nlanes; l++) {
		out->twin[l] = l;
		for (int k = 0; k < l && out->twin[l] == l; k++)
			if (out->twin[k] == k && lanes_alike(p, k, l))
				out->twin[l] = k;
	}
	for (int i = 0; i < p->ntasks; i++)
		out->total += p->tasks[i].busy + p->tasks[i].hold;
	for (int k = 0; k < out->arcs.n; k++)
		out->total += out->arcs.v[k].cycles + out->arcs.v[k].cross;
}

/* ---- the least interval of a choice ---- */

struct fixed {
	struct modulo_arc *v;
	int n;
};

/* The arc with what the choice adds to it. */
static struct modulo_arc fix_arc(const struct modulo_arc *x, const uint32_t *lanes, const int *versions)
{
	struct modulo_arc y = *x;

	y.cycles = arc_cycles(x, lanes);
	if (x->kind == MODULO_VALUE)
		y.distance += versions[x->index];
	return y;
}

static struct fixed fix_arcs(struct arena *a, const struct modulo_net *net, const struct modulo_choice *c)
{
	struct fixed f = { ARENA_ARRAY(a, net->arcs.n + 2 * net->pairs.n + 1, struct modulo_arc), 0 };

	for (int k = 0; k < net->arcs.n; k++)
		if (net->arcs.v[k].within)
			f.v[f.n++] = fix_arc(&net->arcs.v[k], c->lanes, c->versions);
	for (int k = 0; k < net->pairs.n; k++) {
		const struct modulo_pair *x = &net->pairs.v[k];
		double gap[2];

		if (!modulo_pair_gaps(x, c->lanes, gap))
			continue;
		f.v[f.n++] = (struct modulo_arc){ x->i, x->j, gap[0], 0, -c->integers[k], MODULO_PAIR, k, true };
		f.v[f.n++] = (struct modulo_arc){ x->j, x->i, gap[1], 0, c->integers[k] + 1, MODULO_PAIR, k, true };
	}
	return f;
}

double modulo_task_least(const struct modulo_problem *p, int task)
{
	const struct modulo_task *t = &p->tasks[task];
	bool works = t->unit != MODULO_NONE && p->units[t->unit].share != MODULO_UNLIMITED;
	bool held = t->lanes;

	for (int l = 0; l < p->nlanes; l++)
		held = held && !(t->lanes >> l & 1 && p->lanes[l].unlimited);
	return fmax(works ? t->busy : 0, held ? t->hold : 0);
}

/* A bound of II without any cycle; never 0, as ratios are divided by it. */
static double longest_task(const struct modulo_net *net)
{
	double most = net->total * 1e-6;

	for (int i = 0; i < net->p->ntasks; i++)
		most = fmax(most, modulo_task_least(net->p, i));
	return most;
}

static bool has_capacity_left(const struct modulo_net *net, const struct modulo_choice *c, int value)
{
	const struct modulo_problem *p = net->p;
	int memory = modulo_memory_of(p, &p->values[value], c->lanes[p->values[value].def]);
	double used;

	if (c->versions[value] >= net->most[value])
		return false;
	if (memory == MODULO_NONE)
		return true;
	used = p->values[value].bytes;
	for (int i = 0; i < p->nvalues; i++)
		if (modulo_memory_of(p, &p->values[i], c->lanes[p->values[i].def]) == memory)
			used += p->values[i].bytes * c->versions[i];
	return used <= modulo_memory_limit(&p->memories[memory]);
}

/* Add a version of a value on the cycle. False: none can have more. */
static bool raise_version(const struct modulo_net *net, const struct modulo_choice *c,
	struct fixed *f, const int *cycle, int ncycle)
{
	for (int k = 0; k < ncycle; k++) {
		const struct modulo_arc *x = &f->v[cycle[k]];
		int value = x->index;

		if (x->kind != MODULO_VALUE || !has_capacity_left(net, c, value))
			continue;
		c->versions[value]++;
		for (int i = 0; i < f->n; i++)
			if (f->v[i].kind == MODULO_VALUE && f->v[i].index == value)
				f->v[i].distance++;
		return true;
	}
	return false;
}

/* Delay parts by complete iterations until the arcs between them hold. These arcs form no cycle, so this ends. A value all
 * of whose uses are in other parts needs no more than its least versions. */
static void delay_parts(const struct modulo_net *net, const struct modulo_choice *c, double ii, double *y)
{
	for (bool moved = true; moved; ) {
		moved = false;
		for (int k = 0; k < net->arcs.n; k++) {
			struct modulo_arc x = fix_arc(&net->arcs.v[k], c->lanes, c->versions);
			double late;

			if (x.within)
				continue;
			if (x.kind == MODULO_VALUE)
				x.distance += net->p->values[x.index].least - c->versions[x.index];
			late = y[x.from] + x.cycles / ii - x.distance - y[x.to];
			if (late <= 1e-9)
				continue;
			for (int i = 0; i < net->p->ntasks; i++)
				if (net->part[i] == net->part[x.to])
					y[i] += ceil(late - 1e-9);
			moved = true;
		}
	}
}

static void normalise(double *y, int n)
{
	double least = INFINITY;

	for (int i = 0; i < n; i++)
		least = fmin(least, y[i]);
	for (int i = 0; i < n; i++)
		y[i] -= floor(least);
}

int modulo_versions_needed(const struct modulo_problem *p, int value, const uint32_t *lanes, const double *y, double ii)
{
	const struct modulo_value *v = &p->values[value];
	double most = v->least;

	for (int k = 0; k < v->nuses; k++) {
		const struct modulo_use *u = &v->uses[k];
		double cycles = cycles_after(p, u->task, u->from_start, u->lag);

		if (lane_crossed(lanes[u->task], lanes[v->def]))
			cycles += u->cross;
		most = fmax(most, ceil(y[u->task] + u->distance + cycles / ii - y[v->def] - 1e-9));
	}
	return (int)most;
}

static void copy_links(const struct fixed *f, const int *cycle, int ncycle, struct modulo_link *links, int *nlinks)
{
	if (!links)
		return;
	*nlinks = ncycle;
	for (int k = 0; k < ncycle; k++) {
		const struct modulo_arc *x = &f->v[cycle[k]];

		links[k] = (struct modulo_link){ x->kind, x->index, x->from, x->to };
	}
}

double modulo_choice_ii(struct arena *a, const struct modulo_net *net, const struct modulo_choice *c,
	double *y, struct modulo_link *links, int *nlinks)
{
	struct arena_mark scratch = arena_mark(a);
	int n = net->p->ntasks, *cycle = ARENA_ARRAY(a, n, int), ncycle;
	struct fixed f = fix_arcs(a, net, c);
	double ii;

	do
		ii = modulo_ratio(a, f.v, f.n, n, longest_task(net), y, cycle, &ncycle);
	while (raise_version(net, c, &f, cycle, ncycle));
	copy_links(&f, cycle, ncycle, links, nlinks);
	if (!isinf(ii)) {
		delay_parts(net, c, ii, y);
		normalise(y, n);
		for (int i = 0; i < net->p->nvalues; i++)
			c->versions[i] = modulo_versions_needed(net->p, i, c->lanes, y, ii);
	}
	arena_reset(a, scratch);
	return ii;
}

double modulo_net_recurrence(struct arena *a, const struct modulo_net *net, struct modulo_link *links, int *nlinks)
{
	struct arena_mark scratch = arena_mark(a);
	int n = net->p->ntasks, *cycle = ARENA_ARRAY(a, n, int), ncycle;
	struct fixed f = { ARENA_ARRAY(a, net->arcs.n + 1, struct modulo_arc), 0 };
	double *y = ARENA_ARRAY(a, n, double), ii;

	for (int k = 0; k < net->arcs.n; k++)
		if (net->arcs.v[k].within)
			f.v[f.n++] = fix_arc(&net->arcs.v[k], net->lanes, net->most);
	/* far below any ratio; not 0, as ratios are divided by it */
	ii = modulo_ratio(a, f.v, f.n, n, net->total * 1e-6, y, cycle, &ncycle);
	copy_links(&f, cycle, ncycle, links, nlinks);
	if (!ncycle)
		ii = 0;
	arena_reset(a, scratch);
	return ii;
}
