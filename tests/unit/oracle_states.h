/* oracle_states.h - all that can happen in one play of a kernel's lanes.
 *
 * Every interleaving of the warps, of copies and of groups that end is tried, with
 * barriers that know no more than the hardware's: arrivals that are due and a parity. No
 * clocks, no order that is thought to be enough: only states. For tiny kernels.
 */
#ifndef TESTS_ORACLE_STATES_H
#define TESTS_ORACLE_STATES_H

#include <stdlib.h>
#include <string.h>

#include "verify/acts.h"

enum { X_WARPS = 8, X_LANES = 4, X_BARRIERS = 24, X_CELLS = 32, X_COPIES = 32, X_STATES = 1 << 20 };

enum verdict { X_GOOD, X_WRONG, X_UNKNOWN };

struct x_state {
	uint8_t at[X_WARPS];			/* next action */
	uint8_t retired[X_LANES];		/* groups that are over */
	uint8_t phase[X_BARRIERS], due[X_BARRIERS];
	int16_t tag[X_CELLS];			/* instance that wrote it + 1; 0: a carry's initial
						 * value; -1: nothing */
	uint32_t flying;			/* copies under way */
};

struct x_warp {
	int lane, number, reps;
	const struct act *acts;
	int nacts;
	int *group;			/* by action: groups issued before it */
	int *copy;			/* by action: which copy or store it is */
	int *stores;			/* by action: stores before it */
};

struct explorer {
	const struct scenario *s;
	const struct role_program *r;
	struct x_warp warp[X_WARPS];
	int nwarps, nbarriers, ncopies;
	int first_barrier[16];
	/* into a slot, or out of it (a store: then the n-th of its warp) */
	struct { int cell, barrier, instance, warp, n; bool out; } copy[X_COPIES];
	struct x_state *seen;		/* a set by hash */
	int *stack;			/* which of them are left to look at */
	bool *used;
	int nseen, nstack;
	bool wrong, full;
	const char *why;
};

static inline void x_wrong(struct explorer *x, const char *why)
{
	x->wrong = true;
	x->why = why;
}

static inline int x_barrier(const struct explorer *x, const struct act *a)
{
	return x->first_barrier[a->at] + a->n % x->r->flags.v[a->at].depth;
}

/* Is it an access with ordinary instructions, or a group's? */
static inline bool x_touches(const struct act *a)
{
	return a->kind == ACT_READ || a->kind == ACT_WRITE || a->kind == ACT_GROUP_READ ||
		a->kind == ACT_GROUP_SUM;
}

static inline bool x_shared(const struct explorer *x, int cell)
{
	return cell < x->s->set->nshared;
}

/* Registers and staging are each warp's own: the second warp's come after all cells. */
static inline int x_cell(const struct explorer *x, const struct x_warp *v, int cell)
{
	const struct setting *set = x->s->set;

	return !v->number || cell < set->nslots || cell >= set->nshared ? cell :
		set->ncells + cell - set->nslots;
}

/* The instance that wrote a slot, or staging of stores. */
static inline int16_t *x_tag(const struct explorer *x, struct x_state *s, int cell)
{
	const struct setting *set = x->s->set;

	return &s->tag[cell < set->nshared ? cell : cell - set->ncells + set->nshared];
}

/* Does the warp do it, or only the first of its lane? */
static inline bool x_idle(const struct explorer *x, const struct x_warp *v, const struct act *a)
{
	return v->number && (a->kind == ACT_COPY || (a->kind == ACT_STORE &&
		a->at < x->s->set->nslots));
}

/* Does an action of a group of warp w that is under way access the cell? sums: such that
 * add to it do not count. */
static inline bool x_in_group(const struct explorer *x, const struct x_state *s, int w, int cell,
	bool writes, bool sums)
{
	const struct x_warp *v = &x->warp[w];

	for (int i = 0; i < s->at[w]; i++) {
		const struct act *a = &v->acts[i];

		if ((a->kind != ACT_GROUP_READ && a->kind != ACT_GROUP_SUM) || a->at != cell ||
		    v->group[i] < s->retired[v->lane])
			continue;
		if (a->kind == ACT_GROUP_SUM ? !sums : writes)
			return true;
	}
	return false;
}

static inline bool x_written(const struct explorer *x, const struct x_state *s, int cell)
{
	for (int i = 0; i < x->ncopies; i++)
		if (s->flying >> i & 1 && x->copy[i].cell == cell && !x->copy[i].out)
			return true;
	return false;
}

static inline bool x_stored(const struct explorer *x, const struct x_state *s, int cell)
{
	for (int i = 0; i < x->ncopies; i++)
		if (s->flying >> i & 1 && x->copy[i].cell == cell && x->copy[i].out)
			return true;
	return false;
}

static inline void x_look(struct explorer *x, struct x_state *s, const struct act *a,
	int cell)
{
	if (x_written(x, s, cell))
		x_wrong(x, "a slot is read while a copy fills it");
	else if ((a->want != NONE || a->initial) && *x_tag(x, s, cell) != a->want + 1)
		x_wrong(x, "a slot is read that holds something else");
}

static inline void x_change(struct explorer *x, const struct x_state *s, int cell)
{
	bool read = false;

	for (int w = 0; w < x->nwarps; w++)
		read |= x_in_group(x, s, w, cell, true, false);
	if (read || x_written(x, s, cell) || x_stored(x, s, cell))
		x_wrong(x, "a slot is written while something is under way on it");
}

/* Is another part of the same copy under way? */
static inline bool x_joins(const struct explorer *x, const struct x_state *s, int copy)
{
	for (int i = 0; i < x->ncopies; i++)
		if (s->flying >> i & 1 && i != copy && !x->copy[i].out && x->copy[i].cell ==
		    x->copy[copy].cell && x->copy[i].instance == x->copy[copy].instance)
			return true;
	return false;
}

/* Warps that arrive, or the engine. */
static inline uint8_t x_arrivals(const struct explorer *x, int flag)
{
	const struct role_flag *f = &x->r->flags.v[flag];

	return (uint8_t)(f->arrivals / (f->copies ? x->r->target->warp : 1));
}

static inline void x_end_phase(const struct explorer *x, struct x_state *s, int b)
{
	int flag = 0;

	for (int i = 0; i < x->ncopies; i++)
		if (s->flying >> i & 1 && x->copy[i].barrier == b && !x->copy[i].out)
			return;
	while (flag + 1 < x->r->flags.n && x->first_barrier[flag + 1] <= b)
		flag++;
	s->phase[b]++;
	s->due[b] = x_arrivals(x, flag);
}

static inline void x_arrive(struct explorer *x, struct x_state *s, int b, int n)
{
	for (; n > 0; n--) {
		if (!s->due[b])
			x_wrong(x, "an arrival too many");
		else if (!--s->due[b])
			x_end_phase(x, s, b);
	}
}

static inline bool x_ready(const struct explorer *x, const struct x_state *s, int w)
{
	const struct x_warp *v = &x->warp[w];
	const struct act *a = &v->acts[s->at[w]];

	if (s->at[w] == v->nacts)
		return false;
	if (a->kind == ACT_WAIT)
		return (s->phase[x_barrier(x, a)] & 1) != (a->n / x->r->flags.v[a->at].depth & 1);
	if (a->kind == ACT_GROUPS)
		return s->retired[v->lane] >= v->group[s->at[w]] - a->n;
	for (int r = 0; a->kind == ACT_SYNC && r < v->reps; r++)
		if (s->at[w - v->number + r] < s->at[w])
			return false;
	return true;
}

static inline void x_do(struct explorer *x, struct x_state *s, int w)
{
	const struct x_warp *v = &x->warp[w];
	const struct act *a = &v->acts[s->at[w]];
	int copy;

	switch (a->kind) {
	case ACT_ARRIVE:
		x_arrive(x, s, x_barrier(x, a), v->number ? x->r->roles.v[v->lane].warps - 1 : 1);
		break;
	case ACT_COPY:
	case ACT_COPY_THREADS:		/* each warp has a part of it, under way at the same time */
		copy = v->copy[s->at[w]];
		if (!x_joins(x, s, copy))
			x_change(x, s, a->to);
		s->flying |= 1u << copy;
		x_arrive(x, s, x_barrier(x, a), v->number ? x->r->roles.v[v->lane].warps - 1 : 1);
		break;
	case ACT_READ:
	case ACT_GROUP_READ:
		x_look(x, s, a, x_cell(x, v, a->at));
		break;
	case ACT_WRITE:
	case ACT_GROUP_SUM:
		x_change(x, s, x_cell(x, v, a->at));
		*x_tag(x, s, x_cell(x, v, a->at)) = (int16_t)(a->kind == ACT_WRITE &&
			a->initial ? 0 : a->instance + 1);
		break;
	case ACT_STORE:
		x_look(x, s, a, x_cell(x, v, a->at));
		s->flying |= 1u << v->copy[s->at[w]];
		break;
	case ACT_STORES:	/* it lets nobody else go on, so the latest end is the worst */
		for (int i = 0; i < x->ncopies; i++)
			if (x->copy[i].out && x->copy[i].warp == w &&
			    x->copy[i].n < v->stores[s->at[w]] - a->n)
				s->flying &= ~(1u << i);
		break;
	case ACT_WAIT:
	case ACT_SYNC:
	case ACT_FENCE:
	case ACT_COMMIT:
	case ACT_STORE_COMMIT:
	case ACT_GROUPS:
	case ACT_CLUSTER:		/* of one block */
	case ACT_COPY_COUNTED:		/* in kernels whose lanes meet: none of them is tried */
	case ACT_COPIES:
		break;
	}
}

/* Does it concern the warp and the engine alone? */
static inline bool x_private(const struct explorer *x, const struct x_state *s, int w,
	const struct act *a)
{
	bool slot = false;

	for (int i = 0; i < x->ncopies && a->kind == ACT_STORES; i++)
		slot |= s->flying >> i & 1 && x->copy[i].out && x->copy[i].warp == w &&
			x->copy[i].cell < x->s->set->nslots;
	return (a->kind == ACT_STORES && !slot) || ((a->kind == ACT_WRITE || a->kind == ACT_STORE) &&
		a->at >= x->s->set->nslots && a->at < x->s->set->nshared);
}

/* What a warp does to registers and staging of its own needs no choice: the sooner, the more is
 * under way. */
static inline void x_registers(struct explorer *x, struct x_state *s, int w)
{
	struct x_warp *v = &x->warp[w];

	for (; s->at[w] < v->nacts; s->at[w]++) {
		const struct act *a = &v->acts[s->at[w]];
		bool sum = a->kind == ACT_GROUP_SUM;

		if (a->kind == ACT_FENCE || a->kind == ACT_COMMIT || a->kind == ACT_STORE_COMMIT || x_idle(x, v, a))
			continue;
		if (x_private(x, s, w, a)) {
			x_do(x, s, w);
			continue;
		}
		if (!x_touches(a) || x_shared(x, a->at))
			return;
		if (x_in_group(x, s, w, a->at, a->kind == ACT_WRITE || sum, sum))
			x_wrong(x, "a register is touched while a group is under way on it");
	}
}

static inline void x_step(struct explorer *x, struct x_state *s, int w)
{
	x_do(x, s, w);
	s->at[w]++;
	x_registers(x, s, w);
}

static inline void x_copied(const struct explorer *x, struct x_state *s, int copy)
{
	int b = x->copy[copy].barrier;

	s->flying &= ~(1u << copy);
	s->tag[x->copy[copy].cell] = (int16_t)(x->copy[copy].instance + 1);
	if (!s->due[b])
		x_end_phase(x, s, b);
}

static inline bool x_can_retire(const struct explorer *x, const struct x_state *s, int lane)
{
	bool can = false;

	for (int w = 0; w < x->nwarps; w++) {
		const struct x_warp *v = &x->warp[w];

		if (v->lane != lane)
			continue;
		if (v->group[s->at[w]] <= s->retired[lane])
			return false;
		can = true;
	}
	return can;
}

static inline void x_add(struct explorer *x, const struct x_state *s)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ ((const uint8_t *)s)[i]) * 1099511628211u;
	for (h %= X_STATES; x->used[h]; h = (h + 1) % X_STATES)
		if (!memcmp(&x->seen[h], s, sizeof(*s)))
			return;
	if (x->nseen > X_STATES / 2) {
		x->full = true;
		return;
	}
	x->used[h] = true;
	x->seen[h] = *s;
	x->nseen++;
	x->stack[x->nstack++] = (int)h;
}

static inline void x_expand(struct explorer *x, const struct x_state *s)
{
	bool moved = false, done = true;
	struct x_state next;

	for (int w = 0; w < x->nwarps && !x->wrong; w++) {
		done &= s->at[w] == x->warp[w].nacts;
		if (!x_ready(x, s, w))
			continue;
		next = *s;
		x_step(x, &next, w);
		x_add(x, &next);
		moved = true;
	}
	for (int i = 0; i < x->ncopies; i++) {
		if (!(s->flying >> i & 1) || x->copy[i].out)
			continue;
		next = *s;
		x_copied(x, &next, i);
		x_add(x, &next);
		moved = true;
	}
	for (int l = 0; l < x->r->roles.n; l++) {
		if (!x_can_retire(x, s, l))
			continue;
		next = *s;
		next.retired[l]++;
		x_add(x, &next);
		moved = true;
	}
	if (!moved && !done)
		x_wrong(x, "nobody can go on");
	if (done && s->flying)
		x_wrong(x, "the end comes before a copy's");
}

/* Registers hold what they should whatever the others do. */
static inline void x_values(struct explorer *x, const struct x_warp *v)
{
	int tag[256] = { 0 };

	for (int i = 0; i < v->nacts; i++) {
		const struct act *a = &v->acts[i];

		if (!x_touches(a) || x_shared(x, a->at))
			continue;
		if ((a->kind != ACT_WRITE) && ((a->want != NONE && tag[a->at] != a->want + 1) ||
		    (a->want == NONE && a->initial && tag[a->at])))
			x_wrong(x, "a register holds something else");
		if (a->kind == ACT_WRITE || a->kind == ACT_GROUP_SUM)
			tag[a->at] = a->instance + 1;
	}
}

static inline void x_open_copy(struct explorer *x, const struct act *a, int warp, int *stores)
{
	int i = x->ncopies++;

	x->copy[i].out = a->kind == ACT_STORE;
	x->copy[i].instance = a->instance;
	x->copy[i].warp = warp;
	if (x->copy[i].out) {
		x->copy[i].cell = x_cell(x, &x->warp[warp], a->at);
		x->copy[i].n = (*stores)++;
	} else {
		x->copy[i].cell = a->to;
		x->copy[i].barrier = x_barrier(x, a);
	}
}

static inline bool x_open(struct explorer *x)
{
	for (int l = 0; l < x->r->roles.n; l++) {
		int reps = x->r->roles.v[l].warps > 1 ? 2 : 1;

		for (int r = 0; r < reps; r++) {
			struct x_warp *v = &x->warp[x->nwarps++];
			int groups = 0, stores = 0;

			*v = (struct x_warp){ .lane = l, .number = r, .reps = reps,
				.acts = x->s->acts[l], .nacts = x->s->nacts[l] };
			v->group = calloc((size_t)v->nacts + 1, sizeof(int));
			v->copy = calloc((size_t)v->nacts + 1, sizeof(int));
			v->stores = calloc((size_t)v->nacts + 1, sizeof(int));
			for (int i = 0; i < v->nacts; i++) {
				v->group[i] = groups;
				groups += v->acts[i].kind == ACT_COMMIT;
				v->stores[i] = stores;
				if ((v->acts[i].kind != ACT_COPY && v->acts[i].kind != ACT_STORE &&
				    v->acts[i].kind != ACT_COPY_THREADS) ||
				    x_idle(x, v, &v->acts[i]))
					continue;
				if (x->ncopies == X_COPIES)
					return false;
				v->copy[i] = x->ncopies;
				x_open_copy(x, &v->acts[i], x->nwarps - 1, &stores);
			}
			v->group[v->nacts] = groups;
			if (v->nacts > 255 || x->nwarps == X_WARPS)
				return false;
		}
	}
	return x->r->roles.n <= X_LANES && x->nbarriers <= X_BARRIERS &&
		2 * x->s->set->nshared <= X_CELLS && x->s->set->ncells <= 256;
}

static inline void x_explore(struct explorer *x)
{
	struct x_state first = { .flying = 0 };

	for (int f = 0; f < x->r->flags.n; f++)
		for (int i = 0; i < x->r->flags.v[f].depth; i++)
			first.due[x->first_barrier[f] + i] = x_arrivals(x, f);
	for (int i = 0; i < x->s->set->nslots; i++)
		first.tag[i] = -1;
	x->seen = calloc(X_STATES, sizeof(*x->seen));
	x->stack = calloc(X_STATES, sizeof(*x->stack));
	x->used = calloc(X_STATES, sizeof(*x->used));
	for (int w = 0; w < x->nwarps; w++) {
		x_values(x, &x->warp[w]);
		x_registers(x, &first, w);
	}
	x_add(x, &first);
	while (x->nstack && !x->wrong && !x->full) {
		struct x_state s = x->seen[x->stack[--x->nstack]];

		x_expand(x, &s);
	}
	free(x->seen);
	free(x->stack);
	free(x->used);
}

/* *why: what can go wrong, if something can; *states: how many were seen. */
static inline enum verdict explore(const struct scenario *s, const char **why, int *states)
{
	struct explorer x = { .s = s, .r = s->set->r };
	bool fits;

	for (int f = 0; f < x.r->flags.n && f < 16; f++) {
		x.first_barrier[f] = x.nbarriers;
		x.nbarriers += x.r->flags.v[f].depth;
	}
	fits = x.r->flags.n <= 16 && x_open(&x);
	if (fits)
		x_explore(&x);
	for (int w = 0; w < x.nwarps; w++) {
		free(x.warp[w].group);
		free(x.warp[w].copy);
		free(x.warp[w].stores);
	}
	*why = x.why;
	*states = x.nseen;
	return !fits ? X_UNKNOWN : x.wrong ? X_WRONG : x.full ? X_UNKNOWN : X_GOOD;
}

#endif
