#include "search/loop/modulo_branch.h"

#include <math.h>
#include <string.h>

#include "base/prng.h"
#include "search/loop/modulo_propagate.h"

struct branch {
	struct arena *arena;
	struct modulo_propagator g;
	struct modulo_try *t;
	struct prng prng;
	struct modulo_found *found;	/* what this try finds */
	double *y;			/* by task: earliest starts; scratch */
	int *integers;			/* by pair; scratch */
	VEC(struct modulo_state) states;	/* by depth, reused */
};

/* ---- decisions ---- */

/* The next decision at a node. */
struct decision {
	enum { DECIDED_ALL, DECIDE_LANE, DECIDE_PAIR, DECIDE_VERSIONS, CANNOT_DECIDE } what;
	int index;			/* task, pair, value */
	int integer;			/* y[j] - y[i] is below the gap at integer + 1, or above; versions at most */
	bool later;			/* try first that it is above the gap */
};

/* The task that holds its lane longest, of those whose lane is not decided. */
static bool pick_lane(const struct branch *b, const struct modulo_state *s, struct decision *d)
{
	const struct modulo_task *t = b->g.net->p->tasks;
	int best = MODULO_NONE;

	for (int i = 0; i < b->g.n; i++)
		if (s->lanes[i] && !lane_known(s->lanes[i]) && (best == MODULO_NONE || t[i].hold > t[best].hold))
			best = i;
	*d = (struct decision){ .what = DECIDE_LANE, .index = best };
	return best != MODULO_NONE;
}

/* The violated pair with the least slack; of similar ones, the pair both of whose orders have little (the bslack of
 * Smith and Cheng). */
static bool pick_pair(struct branch *b, struct modulo_state *s, struct decision *d)
{
	double urgent = INFINITY;

	for (int k = 0; k < b->g.net->pairs.n; k++) {
		const struct modulo_pair *x = &b->g.net->pairs.v[k];
		double gap[2], at = b->y[x->j] - b->y[x->i], m, before, after, slack;

		if (!modulo_gaps(&b->g, s, k, gap))
			continue;
		m = floor(at - gap[0] + MODULO_NEAR);
		b->integers[k] = (int)m;
		if (at <= m + 1 - gap[1] + MODULO_NEAR)
			continue;
		before = m + 1 - gap[1] - *least_of(&b->g, s, x->i, x->j);
		after = -*least_of(&b->g, s, x->j, x->i) - (m + 1 + gap[0]);
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

/* The versions that the earliest starts need. Between parts (modulo_net.h) the least suffice: a part can be delayed. */
static int versions_needed(const struct branch *b, const struct modulo_state *s, int value)
{
	double most = s->low[value];

	for (int k = 0; k < b->g.net->arcs.n; k++) {
		const struct modulo_arc *x = &b->g.net->arcs.v[k];

		if (x->kind == MODULO_VALUE && x->index == value && x->within)
			most = fmax(most, ceil(b->y[x->from] - x->distance + arc_cycles(x, s->lanes) / b->g.ii -
				b->y[x->to] - MODULO_NEAR));
	}
	return (int)min_i64((int64_t)most, s->most[value]);
}

/* The earliest starts violate no pair. If memories do not hold the versions that these need, pick a value to decide:
 * one has more than its least, as modulo_tighten refutes states whose memories do not hold those. */
static bool pick_versions(struct branch *b, struct modulo_state *s, struct decision *d)
{
	const struct modulo_problem *p = b->g.net->p;

	for (int i = 0; i < p->nvalues; i++)
		b->found->versions[i] = versions_needed(b, s, i);
	modulo_memory_loads(p, s->lanes, b->found->versions, b->g.load);
	for (int i = 0; i < p->nvalues; i++) {
		int memory = modulo_state_memory(&b->g, s, i);

		if (memory != MODULO_NONE && b->found->versions[i] > s->low[i] &&
		    b->g.load[memory] > modulo_memory_limit(&p->memories[memory])) {
			*d = (struct decision){ .what = DECIDE_VERSIONS, .index = i, .integer = s->low[i] };
			return true;
		}
	}
	return false;
}

/* The integer of y[to] - y[from]; the pair may be reversed. */
static int integer_of(const struct branch *b, int from, int to)
{
	int k = modulo_net_pair(b->g.net, from, to);

	return b->g.net->pairs.v[k].i == from ? b->integers[k] : -b->integers[k] - 1;
}

/* Modulo II, the way from a to b, to c, and back to a is II or 2 II long: the integers sum up to -1 or -2. The order is
 * kept if it is II. Otherwise decide a pair of it of which several integers are left. A pair of an order always has
 * gaps (modulo_pair.ordered), so pick_pair has set its integer. */
static bool pick_order(struct branch *b, struct modulo_state *s, struct decision *d)
{
	for (int k = 0; k < b->g.net->p->norders; k++) {
		const struct modulo_order *o = &b->g.net->p->orders[k];
		const int ends[4] = { o->a, o->b, o->c, o->a };

		if (integer_of(b, o->a, o->b) + integer_of(b, o->b, o->c) + integer_of(b, o->c, o->a) == -1)
			continue;
		d->what = CANNOT_DECIDE;
		for (int i = 0; i < 3; i++) {
			int pair = modulo_net_pair(b->g.net, ends[i], ends[i + 1]), first, last;
			const struct modulo_pair *x = &b->g.net->pairs.v[pair];
			double gap[2];

			(void)modulo_gaps(&b->g, s, pair, gap);
			modulo_integers(gap, *least_of(&b->g, s, x->i, x->j),
				-*least_of(&b->g, s, x->j, x->i), &first, &last);
			if (first < last)
				*d = (struct decision){ DECIDE_PAIR, pair, first, false };
		}
		return true;
	}
	return false;
}

/* Of pairs whose tasks touch, the integer may lie outside of the window: move it inside. */
static void clamp_integers(struct branch *b, struct modulo_state *s)
{
	for (int k = 0; k < b->g.net->pairs.n; k++) {
		const struct modulo_pair *x = &b->g.net->pairs.v[k];
		int first, last;
		double gap[2];

		if (!modulo_gaps(&b->g, s, k, gap))
			continue;
		modulo_integers(gap, *least_of(&b->g, s, x->i, x->j), -*least_of(&b->g, s, x->j, x->i), &first, &last);
		b->integers[k] = (int)max_i64(first, min_i64(last, b->integers[k]));
	}
}

static struct decision decide(struct branch *b, struct modulo_state *s)
{
	struct decision d = { DECIDED_ALL, 0, 0, false };

	if (pick_lane(b, s, &d))
		return d;
	d.what = DECIDED_ALL;
	memcpy(b->y, least_of(&b->g, s, 0, 0), (size_t)b->g.n * sizeof(*b->y));	/* earliest starts, of task 0: 0 */
	if (pick_pair(b, s, &d))
		return d;
	clamp_integers(b, s);
	if (!pick_order(b, s, &d))
		(void)pick_versions(b, s, &d);
	return d;
}

/* ---- the tree ---- */

static struct modulo_state *state_at(struct branch *b, int depth)
{
	if (depth == b->states.n)
		VEC_PUSH(b->arena, &b->states, modulo_state_new(b->arena, b->g.net->p));
	return &b->states.v[depth];
}

static enum modulo_end explore(struct branch *b, int depth);

/* The earliest starts are a schedule. Keep it, with the least interval for its orders. */
static enum modulo_end keep_schedule(struct branch *b, const struct modulo_state *s)
{
	const struct modulo_net *net = b->g.net;
	struct modulo_found *f = b->found;
	struct modulo_choice c = { s->lanes, f->versions, b->integers };
	double ii = modulo_choice_ii(b->arena, net, &c, b->y, f->links, &f->nlinks);

	f->ii = ii;
	memcpy(f->y, b->y, (size_t)b->g.n * sizeof(*f->y));
	memcpy(f->lanes, s->lanes, (size_t)b->g.n * sizeof(*f->lanes));
	return MODULO_END_FOUND;
}

static bool apply_pair(struct branch *b, struct modulo_state *s, const struct decision *d, bool later)
{
	const struct modulo_pair *x = &b->g.net->pairs.v[d->index];
	double gap[2];

	modulo_gaps(&b->g, s, d->index, gap);
	if (later)
		return modulo_bound(&b->g, s, x->i, x->j, d->integer + 1 + gap[0]);
	return modulo_bound(&b->g, s, x->j, x->i, gap[1] - (d->integer + 1));
}

static bool apply_versions(struct branch *b, struct modulo_state *s, const struct decision *d, bool more)
{
	if (more) {
		s->low[d->index] = d->integer + 1;
		return s->low[d->index] <= s->most[d->index];
	}
	s->most[d->index] = d->integer;
	return modulo_bound_arcs(&b->g, s);
}

/* Explore the first or the second alternative of a decision. */
static enum modulo_end follow(struct branch *b, int depth, const struct decision *d, bool second)
{
	struct modulo_state *s = state_at(b, depth + 1);
	bool fits;

	modulo_state_copy(b->g.net->p, s, &b->states.v[depth]);
	fits = d->what == DECIDE_PAIR ? apply_pair(b, s, d, second != d->later) : apply_versions(b, s, d, second);
	return fits && modulo_tighten(&b->g, s) ? explore(b, depth + 1) : MODULO_END_REFUTED;
}

/* Of lanes that are alike, only the first one without tasks is tried. */
static bool is_worth_trying(const struct branch *b, const struct modulo_state *s, int lane)
{
	for (int l = 0; l < lane; l++) {
		bool used = false;

		for (int i = 0; i < b->g.n && !used; i++)
			used = s->lanes[i] == (uint32_t)1 << l;
		if (!used && b->g.net->twin[l] == b->g.net->twin[lane])
			return false;
	}
	return true;
}

/* The lanes that a task may have: those with the fewest cycles held, and dependences that cross lanes, first. */
static int rank_lanes(const struct branch *b, const struct modulo_state *s, int task, int *lanes)
{
	const struct modulo_problem *p = b->g.net->p;
	double cost[MODULO_LANES_MAX] = { 0 };
	int n = 0;

	for (int i = 0; i < b->g.n; i++)
		if (lane_known(s->lanes[i]))
			cost[__builtin_ctz(s->lanes[i])] += p->tasks[i].hold;
	for (int k = 0; k < b->g.net->arcs.n; k++) {
		const struct modulo_arc *x = &b->g.net->arcs.v[k];
		int other = x->from == task ? x->to : x->to == task ? x->from : MODULO_NONE;

		if (other != MODULO_NONE && lane_known(s->lanes[other]))
			cost[__builtin_ctz(s->lanes[other])] -= x->cross;
	}
	for (int l = 0; l < p->nlanes; l++) {
		int at = n;

		if (!(s->lanes[task] >> l & 1) || !is_worth_trying(b, s, l))
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
		struct modulo_state *s = state_at(b, depth + 1);
		enum modulo_end end = MODULO_END_REFUTED;

		modulo_state_copy(b->g.net->p, s, &b->states.v[depth]);
		s->lanes[task] = (uint32_t)1 << lanes[i];
		if (modulo_bound_arcs(&b->g, s) && modulo_tighten(&b->g, s))
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
		return keep_schedule(b, &b->states.v[depth]);
	if (d.what == CANNOT_DECIDE)
		return MODULO_END_REFUTED;
	if (d.what == DECIDE_LANE)
		return explore_lanes(b, depth, d.index);
	if (b->t->seed && d.what == DECIDE_PAIR && prng_below(&b->prng, 6) == 0)
		d.later = !d.later;
	end = follow(b, depth, &d, false);
	return end == MODULO_END_REFUTED ? follow(b, depth, &d, true) : end;
}

/* ---- the interface ---- */

void modulo_found_init(struct arena *a, const struct modulo_problem *p, struct modulo_found *out)
{
	*out = (struct modulo_found){ .ii = INFINITY, .y = ARENA_ARRAY(a, p->ntasks, double),
		.lanes = ARENA_ARRAY(a, p->ntasks, uint32_t),
		.versions = ARENA_ARRAY(a, p->nvalues + 1, int) };
}

void modulo_found_copy(const struct modulo_problem *p, struct modulo_found *to, const struct modulo_found *from)
{
	to->ii = from->ii;
	memcpy(to->y, from->y, (size_t)p->ntasks * sizeof(*to->y));
	memcpy(to->lanes, from->lanes, (size_t)p->ntasks * sizeof(*to->lanes));
	memcpy(to->versions, from->versions, (size_t)p->nvalues * sizeof(*to->versions));
	memcpy(to->links, from->links, sizeof(to->links));
	to->nlinks = from->nlinks;
}

enum modulo_end modulo_branch(struct arena *a, const struct modulo_net *net, struct modulo_try *t,
	struct modulo_found *best, int *memory)
{
	struct branch b = { .arena = a, .t = t, .prng = { t->seed } };
	struct arena_mark scratch = arena_mark(a);
	enum modulo_end end = MODULO_END_REFUTED;
	struct modulo_found found;

	modulo_propagator_init(a, net, t->ii, &b.g);
	b.y = ARENA_ARRAY(a, net->p->ntasks, double);
	b.integers = ARENA_ARRAY(a, net->pairs.n + 1, int);
	modulo_found_init(a, net->p, &found);
	b.found = &found;
	if (stop_asked(t->stop))
		end = MODULO_END_STOPPED;
	else if (modulo_root(&b.g, state_at(&b, 0)) && modulo_tighten(&b.g, &b.states.v[0])) {
		end = explore(&b, 0);
		b.g.memory = MODULO_NONE;	/* one that was too small only after decisions */
	}
	if (end == MODULO_END_FOUND && found.ii < best->ii)
		modulo_found_copy(net->p, best, &found);
	if (memory)
		*memory = b.g.memory;
	arena_reset(a, scratch);
	return end;
}
