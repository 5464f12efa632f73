#include "search/loop/modulo_propagate.h"

#include <math.h>
#include <string.h>

static const double EMPTY = 1e-11;	/* iterations: a window that lacks no more is not empty */
static const double MOVED = 1e-14;	/* iterations: a smaller change is none */
static const double NEVER = -1e18;	/* no bound */

void modulo_propagator_init(struct arena *a, const struct modulo_net *net, double ii, struct modulo_propagator *out)
{
	*out = (struct modulo_propagator){ .net = net, .n = net->p->ntasks, .ii = ii, .memory = MODULO_NONE,
		.load = ARENA_ARRAY(a, net->p->nmemories + 1, double) };
}

struct modulo_state modulo_state_new(struct arena *a, const struct modulo_problem *p)
{
	return (struct modulo_state){ ARENA_ARRAY(a, p->ntasks * p->ntasks, double),
		ARENA_ARRAY(a, p->ntasks, uint32_t), ARENA_ARRAY(a, p->nvalues + 1, int),
		ARENA_ARRAY(a, p->nvalues + 1, int) };
}

void modulo_state_copy(const struct modulo_problem *p, struct modulo_state *to, const struct modulo_state *from)
{
	size_t n = (size_t)p->ntasks, nv = (size_t)p->nvalues;

	memcpy(to->least, from->least, n * n * sizeof(*to->least));
	memcpy(to->lanes, from->lanes, n * sizeof(*to->lanes));
	memcpy(to->low, from->low, nv * sizeof(*to->low));
	memcpy(to->most, from->most, nv * sizeof(*to->most));
}

/* ---- differences of starts ---- */

bool modulo_bound(struct modulo_propagator *g, struct modulo_state *s, int from, int to, double w)
{
	const double *onward = least_of(g, s, to, 0);

	if (w <= *least_of(g, s, from, to) + MOVED)
		return true;
	if (w + onward[from] > EMPTY)
		return false;
	for (int i = 0; i < g->n; i++) {
		double *row = least_of(g, s, i, 0);
		double start = row[from] + w;

		if (row[from] <= NEVER || start <= row[to] + MOVED)
			continue;
		for (int j = 0; j < g->n; j++)
			if (start + onward[j] > row[j])
				row[j] = start + onward[j];
	}
	return true;
}

static bool bound_arc(struct modulo_propagator *g, struct modulo_state *s, const struct modulo_arc *x)
{
	int distance = x->distance;

	if (!x->within)
		return true;
	if (x->kind == MODULO_VALUE)
		distance += s->most[x->index];
	return modulo_bound(g, s, x->from, x->to, arc_cycles(x, s->lanes) / g->ii - distance);
}

bool modulo_bound_arcs(struct modulo_propagator *g, struct modulo_state *s)
{
	for (int k = 0; k < g->net->arcs.n; k++)
		if (!bound_arc(g, s, &g->net->arcs.v[k]))
			return false;
	return true;
}

bool modulo_root(struct modulo_propagator *g, struct modulo_state *s)
{
	const struct modulo_problem *p = g->net->p;

	for (int i = 0; i < g->n * g->n; i++)
		s->least[i] = NEVER;
	for (int i = 0; i < g->n; i++) {
		*least_of(g, s, i, i) = 0;
		s->lanes[i] = p->tasks[i].lanes;
	}
	for (int i = 0; i < p->nvalues; i++) {
		s->low[i] = p->values[i].least;
		s->most[i] = g->net->most[i];
	}
	for (int i = 1; i < g->n; i++)
		if (g->net->anchor[i] == i && (!modulo_bound(g, s, 0, i, 0) || !modulo_bound(g, s, i, 0, -1)))
			return false;
	return modulo_bound_arcs(g, s);
}

/* ---- pairs ---- */

bool modulo_gaps(const struct modulo_propagator *g, const struct modulo_state *s, int pair, double gap[2])
{
	bool counts = modulo_pair_gaps(&g->net->pairs.v[pair], s->lanes, gap);

	gap[0] /= g->ii;
	gap[1] /= g->ii;
	return counts;
}

void modulo_integers(const double gap[2], double lo, double hi, int *first, int *last)
{
	double f = floor(lo - gap[0] + MODULO_NEAR), l = ceil(hi + gap[1] - MODULO_NEAR) - 1;

	if (lo > f + 1 - gap[1] + MODULO_NEAR)
		f++;
	if (hi < l + gap[0] - MODULO_NEAR)
		l--;
	*first = (int)f;
	*last = (int)l;
}

/* Move the ends of a pair's window out of the intervals in which the tasks would overlap. */
static bool tighten_pair(struct modulo_propagator *g, struct modulo_state *s, int pair)
{
	const struct modulo_pair *x = &g->net->pairs.v[pair];
	double gap[2], lo, hi;
	int first, last;

	if (!modulo_gaps(g, s, pair, gap))
		return true;
	if (gap[0] + gap[1] > 1 + EMPTY)
		return false;
	lo = *least_of(g, s, x->i, x->j);
	hi = -*least_of(g, s, x->j, x->i);
	modulo_integers(gap, lo, hi, &first, &last);
	if (first > last)
		return false;
	return modulo_bound(g, s, x->i, x->j, first + gap[0]) && modulo_bound(g, s, x->j, x->i, gap[1] - 1 - last);
}

/* ---- memories and lanes ---- */

int modulo_state_memory(const struct modulo_propagator *g, const struct modulo_state *s, int value)
{
	const struct modulo_value *v = &g->net->p->values[value];

	return modulo_memory_of(g->net->p, v, s->lanes[v->def]);
}

/* Raise the versions that every schedule here needs. False: a value or a memory cannot have them. */
static bool tighten_values(struct modulo_propagator *g, struct modulo_state *s)
{
	const struct modulo_problem *p = g->net->p;

	for (int k = 0; k < g->net->arcs.n; k++) {
		const struct modulo_arc *x = &g->net->arcs.v[k];
		double life = *least_of(g, s, x->to, x->from);
		int need;

		if (x->kind != MODULO_VALUE || !x->within || life <= NEVER)
			continue;
		need = (int)ceil(life - x->distance + arc_cycles(x, s->lanes) / g->ii - MODULO_NEAR);
		if (need > s->most[x->index])
			return false;
		s->low[x->index] = (int)max_i64(s->low[x->index], need);
	}
	modulo_memory_loads(p, s->lanes, s->low, g->load);
	for (int r = 0; r < p->nmemories; r++) {
		if (g->load[r] > modulo_memory_limit(&p->memories[r])) {
			g->memory = r;
			return false;
		}
	}
	return true;
}

/* Lower the most versions of each value to what its memory can hold. */
static bool tighten_most(struct modulo_propagator *g, struct modulo_state *s, bool *moved)
{
	const struct modulo_problem *p = g->net->p;

	for (int i = 0; i < p->nvalues; i++) {
		int memory = modulo_state_memory(g, s, i);
		double more;

		if (memory == MODULO_NONE || !(p->values[i].bytes > 0) || isinf(p->memories[memory].capacity))
			continue;
		more = floor((modulo_memory_limit(&p->memories[memory]) - g->load[memory]) / p->values[i].bytes);
		if (s->low[i] + more < s->most[i]) {
			s->most[i] = s->low[i] + (int)more;
			*moved = true;
		}
	}
	return !*moved || modulo_bound_arcs(g, s);
}

/* Do the tasks whose lane is decided hold no lane longer than an interval? */
static bool lanes_fit(struct modulo_propagator *g, const struct modulo_state *s)
{
	const struct modulo_problem *p = g->net->p;
	double load[MODULO_LANES_MAX] = { 0 };

	for (int i = 0; i < g->n; i++)
		if (lane_known(s->lanes[i]))
			load[__builtin_ctz(s->lanes[i])] += p->tasks[i].hold / g->ii;
	for (int l = 0; l < p->nlanes; l++)
		if (!p->lanes[l].unlimited && load[l] > 1 + EMPTY)
			return false;
	return true;
}

bool modulo_tighten(struct modulo_propagator *g, struct modulo_state *s)
{
	double before, after = 0;
	bool moved;

	if (!lanes_fit(g, s))
		return false;
	for (int round = 0; round < 1000; round++) {
		for (int k = 0; k < g->net->pairs.n; k++)
			if (!tighten_pair(g, s, k))
				return false;
		if (!tighten_values(g, s))
			return false;
		moved = false;
		if (!tighten_most(g, s, &moved))
			return false;
		before = after;
		after = 0;
		for (int i = 0; i < g->n * g->n; i++)
			if (s->least[i] > NEVER)
				after += s->least[i];
		if (!moved && round && after <= before + 1e-9)
			return true;
	}
	return true;
}

bool modulo_windows(struct arena *a, const struct modulo_net *net, double ii, struct modulo_state *out)
{
	struct modulo_propagator g;

	modulo_propagator_init(a, net, ii, &g);
	*out = modulo_state_new(a, net->p);
	return modulo_root(&g, out) && modulo_tighten(&g, out);
}
