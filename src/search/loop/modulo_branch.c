#include "search/loop/modulo_branch.h"

#include <math.h>
#include <string.h>

#include "base/prng.h"

static const double EMPTY = 1e-11;	/* iterations that a window may lack */
static const double NEAR = 1e-11;	/* of a window's end to an integer's edge */
static const double MOVED = 1e-14;	/* less is no news */
static const double NEVER = -1e18;	/* no bound */

/* What is known at a node. */
struct state {
	double *least;			/* n * n */
	uint32_t *lanes;
	int *low, *most;
};

struct branch {
	struct arena *arena;
	const struct modulo_net *net;
	int n;
	double ii;
	struct modulo_try *t;
	struct prng prng;
	struct modulo_found *best;
	double *load;			/* by memory or lane; scratch */
	double *y;			/* scratch */
	int *integers;			/* by pair; scratch */
	int memory;			/* that was too small last */
	VEC(struct state) states;	/* by depth; kept for the next node there */
};

static double *least_of(const struct branch *b, struct state *s, int i, int j)
{
	return &s->least[i * b->n + j];
}

/* ---- bounds ---- */

/* y[to] - y[from] >= w, and all that follows by addition. False: nothing satisfies it. */
static bool bound(struct branch *b, struct state *s, int from, int to, double w)
{
	const double *onward = least_of(b, s, to, 0);

	if (w <= *least_of(b, s, from, to) + MOVED)
		return true;
	if (w + onward[from] > EMPTY)
		return false;
	for (int i = 0; i < b->n; i++) {
		double *row = least_of(b, s, i, 0);
		double start = row[from] + w;

		if (row[from] <= NEVER || start <= row[to] + MOVED)
			continue;
		for (int j = 0; j < b->n; j++)
			if (start + onward[j] > row[j])
				row[j] = start + onward[j];
	}
	return true;
}

static bool bound_arc(struct branch *b, struct state *s, const struct modulo_arc *x)
{
	double cycles = x->cycles;
	int distance = x->distance;

	if (!x->within)
		return true;
	if (lane_crossed(s->lanes[x->from], s->lanes[x->to]))
		cycles += x->cross;
	if (x->kind == MODULO_VALUE)
		distance += s->most[x->index];
	return bound(b, s, x->from, x->to, cycles / b->ii - distance);
}

static bool bound_arcs(struct branch *b, struct state *s)
{
	for (int k = 0; k < b->net->arcs.n; k++)
		if (!bound_arc(b, s, &b->net->arcs.v[k]))
			return false;
	return true;
}

static bool bound_root(struct branch *b, struct state *s)
{
	const struct modulo_problem *p = b->net->p;

	for (int i = 0; i < b->n * b->n; i++)
		s->least[i] = NEVER;
	for (int i = 0; i < b->n; i++) {
		*least_of(b, s, i, i) = 0;
		s->lanes[i] = p->tasks[i].lanes;
	}
	for (int i = 0; i < p->nvalues; i++) {
		s->low[i] = p->values[i].least;
		s->most[i] = b->net->most[i];
	}
	for (int i = 1; i < b->n; i++)
		if (b->net->anchor[i] == i && (!bound(b, s, 0, i, 0) || !bound(b, s, i, 0, -1)))
			return false;
	return bound_arcs(b, s);
}

/* ---- pairs ---- */

static bool gaps(const struct branch *b, const struct state *s, int pair, double gap[2])
{
	bool counts = modulo_pair_gaps(&b->net->pairs.v[pair], s->lanes, gap);

	gap[0] /= b->ii;
	gap[1] /= b->ii;
	return counts;
}

void modulo_integers(const double gap[2], double lo, double hi, int *first, int *last)
{
	double f = floor(lo - gap[0] + NEAR), l = ceil(hi + gap[1] - NEAR) - 1;

	if (lo > f + 1 - gap[1] + NEAR)
		f++;
	if (hi < l + gap[0] - NEAR)
		l--;
	*first = (int)f;
	*last = (int)l;
}

/* Move the ends of the pair's window out of what it forbids. */
static bool tighten_pair(struct branch *b, struct state *s, int pair)
{
	const struct modulo_pair *x = &b->net->pairs.v[pair];
	double gap[2], lo, hi;
	int first, last;

	if (!gaps(b, s, pair, gap))
		return true;
	if (gap[0] + gap[1] > 1 + EMPTY)
		return false;
	lo = *least_of(b, s, x->i, x->j);
	hi = -*least_of(b, s, x->j, x->i);
	modulo_integers(gap, lo, hi, &first, &last);
	if (first > last)
		return false;
	return bound(b, s, x->i, x->j, first + gap[0]) &&
		bound(b, s, x->j, x->i, gap[1] - 1 - last);
}

static bool tighten_pairs(struct branch *b, struct state *s)
{
	for (int k = 0; k < b->net->pairs.n; k++)
		if (!tighten_pair(b, s, k))
			return false;
	return true;
}

/* ---- memories and lanes ---- */

static int memory_of(const struct branch *b, const struct state *s, int value)
{
	const struct modulo_value *v = &b->net->p->values[value];

	return modulo_memory_of(b->net->p, v, s->lanes[v->def]);
}

/* Versions that every schedule here needs, and what the memories then leave. */
static bool tighten_values(struct branch *b, struct state *s)
{
	const struct modulo_problem *p = b->net->p;

	for (int k = 0; k < b->net->arcs.n; k++) {
		const struct modulo_arc *x = &b->net->arcs.v[k];
		double cycles = x->cycles, life = *least_of(b, s, x->to, x->from);
		int need;

		if (x->kind != MODULO_VALUE || !x->within || life <= NEVER)
			continue;
		if (lane_crossed(s->lanes[x->from], s->lanes[x->to]))
			cycles += x->cross;
		need = (int)ceil(life - x->distance + cycles / b->ii - NEAR);
		if (need > s->most[x->index])
			return false;
		s->low[x->index] = (int)max_i64(s->low[x->index], need);
	}
	memset(b->load, 0, (size_t)p->nmemories * sizeof(*b->load));
	for (int i = 0; i < p->nvalues; i++)
		if (memory_of(b, s, i) != MODULO_NONE)
			b->load[memory_of(b, s, i)] += s->low[i] * p->values[i].bytes;
	for (int r = 0; r < p->nmemories; r++) {
		if (b->load[r] > p->memories[r].capacity * (1 + 1e-12)) {
			b->memory = r;
			return false;
		}
	}
	return true;
}

/* The most versions that the memories leave to each. */
static bool tighten_most(struct branch *b, struct state *s, bool *moved)
{
	const struct modulo_problem *p = b->net->p;

	for (int i = 0; i < p->nvalues; i++) {
		int memory = memory_of(b, s, i);
		double more;

		if (memory == MODULO_NONE || !(p->values[i].bytes > 0) ||
		    isinf(p->memories[memory].capacity))
			continue;
		more = floor((p->memories[memory].capacity * (1 + 1e-12) - b->load[memory]) /
			p->values[i].bytes);
		if (s->low[i] + more < s->most[i]) {
			s->most[i] = s->low[i] + (int)more;
			*moved = true;
		}
	}
	return !*moved || bound_arcs(b, s);
}

/* The cycles that hold a lane, where lanes are already chosen. */
static bool lanes_fit(struct branch *b, const struct state *s)
{
	const struct modulo_problem *p = b->net->p;
	double load[MODULO_LANES_MAX] = { 0 };

	for (int i = 0; i < b->n; i++)
		if (lane_known(s->lanes[i]))
			load[__builtin_ctz(s->lanes[i])] += p->tasks[i].hold / b->ii;
	for (int l = 0; l < p->nlanes; l++)
		if (!p->lanes[l].unlimited && load[l] > 1 + EMPTY)
			return false;
	return true;
}

/* All that follows from what is decided. False: a contradiction. */
static bool tighten(struct branch *b, struct state *s)
{
	double before, after = 0;
	bool moved;

	if (!lanes_fit(b, s))
		return false;
	for (int round = 0; round < 1000; round++) {
		if (!tighten_pairs(b, s) || !tighten_values(b, s))
			return false;
		moved = false;
		if (!tighten_most(b, s, &moved))
			return false;
		before = after;
		after = 0;
		for (int i = 0; i < b->n * b->n; i++)
			if (s->least[i] > NEVER)
				after += s->least[i];
		if (!moved && round && after <= before + 1e-9)
			return true;
	}
	return true;
}

/* ---- decisions ---- */

/* One of two or more ways to go on. */
struct decision {
	enum { DECIDED_ALL, DECIDE_LANE, DECIDE_PAIR, DECIDE_VERSIONS, DECIDE_NOTHING } what;
	int index;			/* task, pair, value */
	int integer;			/* of the pair, before the gap; versions at most, or one more */
	bool later;			/* the pair's second task after the gap, first */
};

static bool pick_lane(const struct branch *b, const struct state *s, struct decision *d)
{
	const struct modulo_task *t = b->net->p->tasks;
	int best = MODULO_NONE;

	for (int i = 0; i < b->n; i++)
		if (s->lanes[i] && !lane_known(s->lanes[i]) &&
		    (best == MODULO_NONE || t[i].hold > t[best].hold))
			best = i;
	*d = (struct decision){ .what = DECIDE_LANE, .index = best };
	return best != MODULO_NONE;
}

/* The least slack first, and of alike the ones where both ways have little (bslack of
 * Smith and Cheng). */
static bool pick_pair(struct branch *b, struct state *s, struct decision *d)
{
	double urgent = INFINITY;

	for (int k = 0; k < b->net->pairs.n; k++) {
		const struct modulo_pair *x = &b->net->pairs.v[k];
		double gap[2], at = b->y[x->j] - b->y[x->i], m, before, after, slack;

		if (!gaps(b, s, k, gap))
			continue;
		m = floor(at - gap[0] + NEAR);
		b->integers[k] = (int)m;
		if (at <= m + 1 - gap[1] + NEAR)
			continue;
		before = m + 1 - gap[1] - *least_of(b, s, x->i, x->j);
		after = -*least_of(b, s, x->j, x->i) - (m + 1 + gap[0]);
		slack = fmax(fmin(before, after), 0) /
			sqrt(fmax(fmin(before, after), 1e-6) / fmax(fmax(before, after), 1e-6));
		if (b->t->seed)
			slack *= 1 + prng_unit(&b->prng) / 4;
		if (slack < urgent) {
			urgent = slack;
			*d = (struct decision){ DECIDE_PAIR, k, (int)m, after > before };
		}
	}
	return urgent < INFINITY;
}

/* By the uses of its part: others never need more than the least. */
static int needed(const struct branch *b, const struct state *s, int value)
{
	double most = s->low[value];

	for (int k = 0; k < b->net->arcs.n; k++) {
		const struct modulo_arc *x = &b->net->arcs.v[k];
		double cycles = x->cycles;

		if (x->kind != MODULO_VALUE || x->index != value || !x->within)
			continue;
		if (lane_crossed(s->lanes[x->from], s->lanes[x->to]))
			cycles += x->cross;
		most = fmax(most, ceil(b->y[x->from] - x->distance + cycles / b->ii -
			b->y[x->to] - NEAR));
	}
	return (int)min_i64((int64_t)most, s->most[value]);
}

/* y keeps all pairs; do the values fit? If not, one decides how many versions it may have. */
static bool pick_versions(struct branch *b, struct state *s, struct decision *d)
{
	const struct modulo_problem *p = b->net->p;

	memset(b->load, 0, (size_t)p->nmemories * sizeof(*b->load));
	for (int i = 0; i < p->nvalues; i++) {
		b->best->versions[i] = needed(b, s, i);
		if (memory_of(b, s, i) != MODULO_NONE)
			b->load[memory_of(b, s, i)] += b->best->versions[i] * p->values[i].bytes;
	}
	for (int i = 0; i < p->nvalues; i++) {
		int memory = memory_of(b, s, i);

		if (memory != MODULO_NONE && b->best->versions[i] > s->low[i] &&
		    b->load[memory] > p->memories[memory].capacity * (1 + 1e-12)) {
			*d = (struct decision){ .what = DECIDE_VERSIONS, .index = i,
				.integer = s->low[i] };
			return true;
		}
	}
	return false;
}

static int pair_of(const struct modulo_net *net, int i, int j)
{
	for (int k = 0; k < net->pairs.n; k++)
		if ((net->pairs.v[k].i == i && net->pairs.v[k].j == j) ||
		    (net->pairs.v[k].i == j && net->pairs.v[k].j == i))
			return k;
	return MODULO_NONE;
}

/* The integer of y[y] - y[x]; a pair may have its tasks the other way around. */
static int integer_of(const struct branch *b, int x, int y)
{
	int k = pair_of(b->net, x, y);

	return b->net->pairs.v[k].i == x ? b->integers[k] : -b->integers[k] - 1;
}

/* From a to b, on to c, and back to a is one interval or two; an order wants one. */
static bool pick_order(struct branch *b, struct state *s, struct decision *d)
{
	for (int k = 0; k < b->net->p->norders; k++) {
		const struct modulo_order *o = &b->net->p->orders[k];
		const int ends[4] = { o->a, o->b, o->c, o->a };

		if (integer_of(b, o->a, o->b) + integer_of(b, o->b, o->c) +
		    integer_of(b, o->c, o->a) == -1)
			continue;
		d->what = DECIDE_NOTHING;
		for (int i = 0; i < 3; i++) {
			int pair = pair_of(b->net, ends[i], ends[i + 1]), first, last;
			const struct modulo_pair *x = &b->net->pairs.v[pair];
			double gap[2];

			gaps(b, s, pair, gap);
			modulo_integers(gap, *least_of(b, s, x->i, x->j),
				-*least_of(b, s, x->j, x->i), &first, &last);
			if (first < last)
				*d = (struct decision){ DECIDE_PAIR, pair, first, false };
		}
		return true;
	}
	return false;
}

/* For pairs that touch: an integer that their window has. */
static void settle_integers(struct branch *b, struct state *s)
{
	for (int k = 0; k < b->net->pairs.n; k++) {
		const struct modulo_pair *x = &b->net->pairs.v[k];
		int first, last;
		double gap[2];

		if (!gaps(b, s, k, gap))
			continue;
		modulo_integers(gap, *least_of(b, s, x->i, x->j), -*least_of(b, s, x->j, x->i),
			&first, &last);
		b->integers[k] = (int)max_i64(first, min_i64(last, b->integers[k]));
	}
}

static struct decision decide(struct branch *b, struct state *s)
{
	struct decision d = { DECIDED_ALL, 0, 0, false };

	if (pick_lane(b, s, &d))
		return d;
	d.what = DECIDED_ALL;
	memcpy(b->y, least_of(b, s, 0, 0), (size_t)b->n * sizeof(*b->y));
	if (pick_pair(b, s, &d))
		return d;
	settle_integers(b, s);
	if (pick_order(b, s, &d) || pick_versions(b, s, &d))
		return d;
	return d;
}

/* ---- the tree ---- */

static struct state *state_at(struct branch *b, int depth)
{
	size_t nv = (size_t)b->net->p->nvalues + 1;

	if (depth == b->states.n) {
		struct state s = {
			ARENA_ARRAY(b->arena, b->n * b->n, double),
			ARENA_ARRAY(b->arena, b->n, uint32_t),
			ARENA_ARRAY(b->arena, nv, int), ARENA_ARRAY(b->arena, nv, int),
		};

		VEC_PUSH(b->arena, &b->states, s);
	}
	return &b->states.v[depth];
}

static void copy_state(const struct branch *b, struct state *to, const struct state *from)
{
	size_t nv = (size_t)b->net->p->nvalues;

	memcpy(to->least, from->least, (size_t)b->n * (size_t)b->n * sizeof(*to->least));
	memcpy(to->lanes, from->lanes, (size_t)b->n * sizeof(*to->lanes));
	memcpy(to->low, from->low, nv * sizeof(*to->low));
	memcpy(to->most, from->most, nv * sizeof(*to->most));
}

static enum modulo_end explore(struct branch *b, int depth);

/* y keeps everything at this interval. What is the least one with its orders? */
static enum modulo_end take(struct branch *b, const struct state *s)
{
	const struct modulo_net *net = b->net;
	struct modulo_found *f = b->best;
	struct modulo_choice c = { s->lanes, f->versions, b->integers };
	double ii = modulo_choice_ii(b->arena, net, &c, b->y, f->links, &f->nlinks);

	f->ii = ii;
	memcpy(f->y, b->y, (size_t)b->n * sizeof(*f->y));
	memcpy(f->lanes, s->lanes, (size_t)b->n * sizeof(*f->lanes));
	return MODULO_END_FOUND;
}

static bool apply_pair(struct branch *b, struct state *s, const struct decision *d, bool later)
{
	const struct modulo_pair *x = &b->net->pairs.v[d->index];
	double gap[2];

	gaps(b, s, d->index, gap);
	if (later)
		return bound(b, s, x->i, x->j, d->integer + 1 + gap[0]);
	return bound(b, s, x->j, x->i, gap[1] - (d->integer + 1));
}

static bool apply_versions(struct branch *b, struct state *s, const struct decision *d, bool more)
{
	if (more) {
		s->low[d->index] = d->integer + 1;
		return s->low[d->index] <= s->most[d->index];
	}
	s->most[d->index] = d->integer;
	return bound_arcs(b, s);
}

/* Go on one way. */
static enum modulo_end follow(struct branch *b, int depth, const struct decision *d, bool second)
{
	struct state *s = state_at(b, depth + 1);
	bool fits;

	copy_state(b, s, &b->states.v[depth]);
	fits = d->what == DECIDE_PAIR ? apply_pair(b, s, d, second != d->later) :
		apply_versions(b, s, d, second);
	return fits && tighten(b, s) ? explore(b, depth + 1) : MODULO_END_REFUTED;
}

/* Of lanes that nothing distinguishes, only the first that is still empty is tried. */
static bool lane_worth(const struct branch *b, const struct state *s, int lane)
{
	for (int l = 0; l < lane; l++) {
		bool used = false;

		for (int i = 0; i < b->n && !used; i++)
			used = s->lanes[i] == (uint32_t)1 << l;
		if (!used && b->net->twin[l] == b->net->twin[lane])
			return false;
	}
	return true;
}

/* The lanes that a task may still be on, best first: few cycles held, few to cross. */
static int rank_lanes(const struct branch *b, const struct state *s, int task, int *lanes)
{
	const struct modulo_problem *p = b->net->p;
	double cost[MODULO_LANES_MAX] = { 0 };
	int n = 0;

	for (int i = 0; i < b->n; i++)
		if (lane_known(s->lanes[i]))
			cost[__builtin_ctz(s->lanes[i])] += p->tasks[i].hold;
	for (int k = 0; k < b->net->arcs.n; k++) {
		const struct modulo_arc *x = &b->net->arcs.v[k];
		int other = x->from == task ? x->to : x->to == task ? x->from : MODULO_NONE;

		if (other != MODULO_NONE && lane_known(s->lanes[other]))
			cost[__builtin_ctz(s->lanes[other])] -= x->cross;
	}
	for (int l = 0; l < p->nlanes; l++) {
		int at = n;

		if (!(s->lanes[task] >> l & 1) || !lane_worth(b, s, l))
			continue;
		for (; at > 0 && cost[lanes[at - 1]] > cost[l]; at--)
			lanes[at] = lanes[at - 1];
		lanes[at] = l;
		n++;
	}
	return n;
}

static enum modulo_end explore_lanes(struct branch *b, int depth, int task)
{
	int lanes[MODULO_LANES_MAX], n = rank_lanes(b, &b->states.v[depth], task, lanes);

	if (b->t->seed && n > 1 && prng_below(&b->prng, 4) == 0) {
		int swap = lanes[0];

		lanes[0] = lanes[1];
		lanes[1] = swap;
	}
	for (int i = 0; i < n; i++) {
		struct state *s = state_at(b, depth + 1);
		enum modulo_end end = MODULO_END_REFUTED;

		copy_state(b, s, &b->states.v[depth]);
		s->lanes[task] = (uint32_t)1 << lanes[i];
		if (bound_arcs(b, s) && tighten(b, s))
			end = explore(b, depth + 1);
		if (end != MODULO_END_REFUTED)
			return end;
	}
	return MODULO_END_REFUTED;
}

static enum modulo_end explore(struct branch *b, int depth)
{
	enum modulo_end end;
	struct decision d;

	if (b->t->nodes-- <= 0)
		return MODULO_END_LIMIT;
	if (b->t->nodes % 64 == 0 && stop_asked(b->t->stop))
		return MODULO_END_STOPPED;
	d = decide(b, &b->states.v[depth]);
	if (d.what == DECIDED_ALL)
		return take(b, &b->states.v[depth]);
	if (d.what == DECIDE_NOTHING)
		return MODULO_END_REFUTED;
	if (d.what == DECIDE_LANE)
		return explore_lanes(b, depth, d.index);
	if (b->t->seed && d.what == DECIDE_PAIR && prng_below(&b->prng, 6) == 0)
		d.later = !d.later;
	end = follow(b, depth, &d, false);
	return end == MODULO_END_REFUTED ? follow(b, depth, &d, true) : end;
}

/* ---- from outside ---- */

void modulo_found_init(struct arena *a, const struct modulo_problem *p, struct modulo_found *out)
{
	*out = (struct modulo_found){ .ii = INFINITY, .y = ARENA_ARRAY(a, p->ntasks, double),
		.lanes = ARENA_ARRAY(a, p->ntasks, uint32_t),
		.versions = ARENA_ARRAY(a, p->nvalues + 1, int) };
}

void modulo_found_copy(const struct modulo_problem *p, struct modulo_found *to,
	const struct modulo_found *from)
{
	to->ii = from->ii;
	memcpy(to->y, from->y, (size_t)p->ntasks * sizeof(*to->y));
	memcpy(to->lanes, from->lanes, (size_t)p->ntasks * sizeof(*to->lanes));
	memcpy(to->versions, from->versions, (size_t)p->nvalues * sizeof(*to->versions));
	memcpy(to->links, from->links, sizeof(to->links));
	to->nlinks = from->nlinks;
}

static void start(struct arena *a, struct branch *b)
{
	const struct modulo_problem *p = b->net->p;

	b->arena = a;
	b->n = p->ntasks;
	b->memory = MODULO_NONE;
	b->load = ARENA_ARRAY(a, p->nmemories + 1, double);
	b->y = ARENA_ARRAY(a, p->ntasks, double);
	b->integers = ARENA_ARRAY(a, b->net->pairs.n + 1, int);
}

enum modulo_end modulo_branch(struct arena *a, const struct modulo_net *net, struct modulo_try *t,
	struct modulo_found *best, int *memory)
{
	struct branch b = { .net = net, .ii = t->ii, .t = t, .prng = { t->seed } };
	struct arena_mark scratch = arena_mark(a);
	enum modulo_end end = MODULO_END_REFUTED;
	struct modulo_found found;

	start(a, &b);
	modulo_found_init(a, net->p, &found);
	b.best = &found;
	if (stop_asked(t->stop))
		end = MODULO_END_STOPPED;
	else if (bound_root(&b, state_at(&b, 0)) && tighten(&b, &b.states.v[0])) {
		b.memory = MODULO_NONE;
		end = explore(&b, 0);
		b.memory = MODULO_NONE;
	}
	if (end == MODULO_END_FOUND && found.ii < best->ii)
		modulo_found_copy(net->p, best, &found);
	if (memory)
		*memory = b.memory;
	arena_reset(a, scratch);
	return end;
}

bool modulo_windows(struct arena *a, const struct modulo_net *net, double ii,
	struct modulo_windows *out)
{
	struct modulo_try t = { 0 };
	struct branch b = { .net = net, .ii = ii, .t = &t };
	struct state *s;

	start(a, &b);
	s = state_at(&b, 0);
	*out = (struct modulo_windows){ s->least, s->low, s->most };
	return bound_root(&b, s) && tighten(&b, s);
}
