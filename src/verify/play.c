/* Executes the actions of all warps, and checks the end: deadlocks, and work that is still under way. */
#include "verify/play_state.h"

#include <string.h>

/* messages ------------------------------------------------------------------- */

static const struct stask *stask_of(const struct play *p, int instance)
{
	return &p->s->set->plan->graph->tasks.v[p->s->task[instance]];
}

const char *play_name(const struct play *p, int instance)
{
	if (instance == NONE)
		return "the end of a tile";
	const struct stask *s = stask_of(p, instance);
	int64_t seq = instance - p->s->first[p->s->task[instance]];
	int64_t tile = walk_outer(p->s->walk, s->loop, seq, NONE);
	if (s->loop == NONE)
		return arena_strf(p->a, "'%s' of tile %lld", s->name, (long long)tile);
	return arena_strf(p->a, "'%s' in iteration %lld of tile %lld", s->name, (long long)(seq -
		walk_inner(p->s->walk, NONE, tile, s->loop)), (long long)tile);
}

const char *play_flag_name(const struct play *p, int flag, int n)
{
	const struct role_flag *f = flag_at(p, flag);

	if (f->runs)
		return arena_strf(p->a, "run %d of the loop of '%s'", n, p->s->set->plan->graph->tasks.v[f->task].name);
	return play_name(p, scenario_instance(p->s, f->task, n));
}

struct srcloc play_line(const struct play *p, int instance)
{
	int entry = instance == NONE ? NONE : plan_entry_of(p->s->set->plan, p->s->task[instance]);

	return entry == NONE ? NOWHERE : p->s->set->plan->entries.v[entry].loc;
}

struct srcloc play_flag_line(const struct play *p, int flag)
{
	const struct plan *plan = p->s->set->plan;

	return plan->entries.v[plan_entry_of(plan, flag_at(p, flag)->task)].loc;
}

/* the play ------------------------------------------------------------------- */

static int issued_by_all(const struct play *p, const struct warp *w)
{
	const struct warp *first = w - w->number;
	int n = first->groups;

	for (int i = 1; i < warps_of(p, w); i++)
		n = first[i].groups < n ? first[i].groups : n;
	return n;
}

/* The warp comes to a point where n warps meet. Are all there? Then their clocks are joined. */
static bool meet_warps(struct play *p, struct warp *w, struct warp *first, int n)
{
	w->meets = true;
	for (int i = 0; i < n; i++)
		if (!first[i].meets)
			return false;
	for (int i = 1; i < n; i++)
		join(p, first->clock, first[i].clock);
	for (int i = 1; i < n; i++)
		memcpy(first[i].clock, first->clock, (size_t)p->nclock * sizeof(int));
	for (int i = 0; i < n; i++) {
		first[i].meets = false;
		first[i].at += &first[i] != w;	/* the caller counts the action of w */
	}
	return true;
}

/* Can the warp do its next action now? */
static bool is_ready(struct play *p, struct warp *w, const struct act *a)
{
	int flag = flag_in(p, w->block, a->at);

	if (a->kind == ACT_WAIT)
		return a->n >= p->ninstances[flag] || p->generation[flag][a->n].complete;
	if (a->kind == ACT_GROUPS)
		return issued_by_all(p, w) >= w->groups - a->n;
	if (a->kind == ACT_SYNC)
		return !w->meets && meet_warps(p, w, w - w->number, warps_of(p, w));
	if (a->kind == ACT_CLUSTER)
		return !w->meets && meet_warps(p, w, p->warp, p->nwarps);
	return true;			/* also ACT_STORES: the engine always completes its reads */
}

static enum err_code do_act(struct play *p, struct warp *w, const struct act *a)
{
	int me = warp_index(p, w);

	w->clock[component(me, EVENTS)] = ++w->event;
	switch (a->kind) {
	case ACT_WAIT: return play_wait(p, w, a);
	case ACT_ARRIVE: return w->number && a->leader ? OK : play_arrive(p, w, a);
	case ACT_COPY: case ACT_COPY_THREADS: return play_copy(p, w, a);
	case ACT_COPY_COUNTED: return play_counted_copy(p, w, a);
	case ACT_COPIES:
		if (w->clock[component(me, COPIES)] < w->copies - a->n)
			w->clock[component(me, COPIES)] = w->copies - a->n;
		break;
	case ACT_SYNC: case ACT_CLUSTER:
		break;
	case ACT_FENCE:
		play_fence(p, w);
		break;
	case ACT_GROUP_READ: case ACT_GROUP_SUM:
		w->multiplies = true;
		return play_access(p, w, a);
	case ACT_READ: case ACT_WRITE: return w->number && a->leader ? OK : play_access(p, w, a);
	case ACT_STORE:
		if (w->number && a->at < p->s->set->nslots)
			break;
		w->stores_on = true;
		return play_access(p, w, a);
	case ACT_STORE_COMMIT:
		if (w->number && a->leader)
			break;
		w->stores_on = false;
		w->stores++;
		break;
	case ACT_STORES:
		if (w->clock[component(me, STORES)] < w->stores - a->n)
			w->clock[component(me, STORES)] = w->stores - a->n;
		break;
	case ACT_COMMIT:
		w->multiplies = false;
		w->groups++;
		break;
	case ACT_GROUPS:
		if (w->clock[component(me, GROUPS)] < w->groups - a->n)
			w->clock[component(me, GROUPS)] = w->groups - a->n;
		break;
	}
	return OK;
}

static enum err_code go_on(struct play *p, struct warp *w, bool *moved)
{
	while (w->at < p->s->nacts[w->lane]) {
		const struct act *a = &p->s->acts[w->lane][w->at];

		if (!is_ready(p, w, a))
			return OK;
		w->at++;
		*moved = true;
		TRY(do_act(p, w, a));
	}
	return OK;
}

/* The last instance of the flag's sTask in generation n; NONE: a run without instances. */
static int last_of(const struct play *p, int flag, int n)
{
	const struct role_flag *f = &p->r->flags.v[flag];
	int loop = p->s->set->plan->graph->tasks.v[f->task].loop, around = p->r->flags.v[kernel_flag(p, flag)].loop;

	if (!f->runs)
		return scenario_instance(p->s, f->task, n);
	if (walk_inner(p->s->walk, around, n, loop) == walk_inner(p->s->walk, around, n + 1, loop))
		return NONE;
	return scenario_instance(p->s, f->task, walk_inner(p->s->walk, around, n + 1, loop) - 1);
}

/* Is there an action of the instance, or if `committed` its commit, before action `end` of the lane? */
static bool has_come(const struct play *p, int lane, int end, int instance, bool committed)
{
	for (int i = 0; i < end; i++)
		if (p->s->acts[lane][i].instance == instance && (!committed ||
		    p->s->acts[lane][i].kind == ACT_COMMIT))
			return true;
	return false;
}

/* Does the warp wait for something that is complete, or for an issued product, whose lane waits itself before it
 * signals it? Then *r says for what. */
static bool is_unsignalled(const struct play *p, const struct warp *w, struct counterexample *r)
{
	const struct act *a = &p->s->acts[w->lane][w->at];
	const struct role_flag *f = &p->r->flags.v[a->at];
	const struct program *g = p->s->set->plan->graph->program;

	if (a->kind != ACT_WAIT || f->issued || (!f->runs && !p->s->set->matrix[f->task]))
		return false;
	const struct warp *by = completer(p, flag_in(p, w->block, a->at), a->n);
	const struct act *b = &p->s->acts[by->lane][by->at];
	int last = last_of(p, a->at, a->n);
	if (by->at == p->s->nacts[by->lane] || b->kind != ACT_WAIT || (last != NONE &&
	    (b->instance == last || !has_come(p, by->lane, by->at, last, p->s->set->matrix[f->task]))))
		return false;
	bool inside = f->runs && b->instance != NONE &&
		program_loop_within(g, stask_of(p, b->instance)->loop, f->run_of);
	if (f->runs && !f->early && (inside || last == NONE))
		r->run = a->at;
	else if (p->s->set->matrix[f->task] && f->runs && !inside)
		r->unsignalled = (struct unsignalled){ f->task, NONE };
	else if (p->s->set->matrix[f->task] && b->instance != NONE)
		r->unsignalled = (struct unsignalled){ f->task, p->s->task[b->instance] };
	return r->run != NONE || r->unsignalled.product != NONE;
}

static enum err_code report_deadlock(const struct play *p)
{
	const char *text = "";
	int instance = NONE, n = 0;

	for (int i = 0; i < p->nwarps && n < 4; i++) {
		const struct warp *w = &p->warp[i];
		const struct act *a;

		if (w->number || w->at == p->s->nacts[w->lane])
			continue;
		a = &p->s->acts[w->lane][w->at];
		text = arena_strf(p->a, "%s%s%s waits for %s", text, n++ ? ", " : "", play_name(p, a->instance),
			a->kind == ACT_WAIT ? play_flag_name(p, a->at, a->n) : a->kind == ACT_GROUPS ?
			"its products" : a->kind == ACT_CLUSTER ? p->blocks > 1 ? "the cluster" : "the other lanes" : "the other warps of its lane");
		instance = a->instance;
	}
	return err_set(p->e, ERR_ILLEGAL, play_line(p, instance), "nobody can go on: %s", text);
}

/* Has a warp of the block, when it ends, at least that value of the component in its clock? */
static bool block_knows(const struct play *p, int block, int component, int least)
{
	for (int i = 0; i < p->nwarps; i++)
		if (p->warp[i].block == block && p->warp[i].clock[component] >= least)
			return true;
	return false;
}

/* No warp may arrive at a barrier of a block that has ended. */
static enum err_code check_peers(const struct play *p, int flag, int n)
{
	const struct generation_state *ph = &p->generation[flag][n];
	int block = flag / p->r->flags.n, lane = completer(p, flag, n)->lane;

	for (int i = 0; i < p->nwarps && flag_at(p, flag)->all; i++) {
		const struct warp *w = &p->warp[i];

		if (w->lane == lane && w->block != block &&
		    !block_knows(p, block, component(i, EVENTS), ph->event[bit_of(w)]))
			return err_set(p->e, ERR_ILLEGAL, play_flag_line(p, flag), "a block of the cluster "
				"may end before another signals %s to it", play_flag_name(p, flag, n));
	}
	return OK;
}

/* A block may not end while products, stores or copies are under way in it. */
static enum err_code check_end(const struct play *p)
{
	for (int i = 0; i < p->nwarps; i++) {
		const struct warp *w = &p->warp[i];
		bool multiplies = w->multiplies || w->clock[component(i, GROUPS)] < w->groups;

		if (w->clock[component(i, COPIES)] < w->copies)
			return err_set(p->e, ERR_ILLEGAL, NOWHERE, "lane '%s' ends while its copies are under way",
				p->s->set->plan->lanes.v[p->r->roles.v[w->lane].lane].name);
		if (multiplies || w->stores_on || w->clock[component(i, STORES)] < w->stores)
			return err_set(p->e, ERR_ILLEGAL, NOWHERE, "lane '%s' ends while its %s are under way",
				p->s->set->plan->lanes.v[p->r->roles.v[w->lane].lane].name,
				multiplies ? "products" : "stores");
	}
	for (int f = 0; f < p->r->flags.n * p->blocks; f++) {
		const struct role_flag *flag = flag_at(p, f);

		for (int n = 0; n < p->ninstances[f]; n++) {
			if (!p->generation[f][n].complete)
				return err_set(p->e, ERR_ILLEGAL, play_flag_line(p, f), "%s is not signalled",
					play_flag_name(p, f, n));
			/* a warp of the block must know that the generation, and so its copies, is over */
			if ((flag->bytes || flag->copies) && !block_knows(p, f / p->r->flags.n,
			    barrier_of(p, f, n), n / flag->depth + 1))
				return err_set(p->e, ERR_ILLEGAL, play_flag_line(p, f), "the kernel may "
					"end while %s is under way", play_flag_name(p, f, n));
			TRY(check_peers(p, f, n));
		}
	}
	return OK;
}

static void init_warps(struct play *p)
{
	p->warp = ARENA_ARRAY(p->a, p->blocks * p->r->roles.n * WARPS, struct warp);
	for (int b = 0; b < p->blocks; b++)
		for (int i = 0; i < p->r->roles.n; i++)
			for (int n = 0; n < (p->r->roles.v[i].warps > 1 ? WARPS : 1); n++)
				p->warp[p->nwarps++] = (struct warp){ .block = b, .lane = i, .number = n };
	p->nclock = p->nwarps * WARP_COMPONENTS;
}

static void init_flags(struct play *p)
{
	int n = p->r->flags.n * p->blocks;

	p->first_barrier = ARENA_ARRAY(p->a, n, int);
	p->ninstances = ARENA_ARRAY(p->a, n, int);
	p->generation = ARENA_ARRAY(p->a, n, struct generation_state *);
	for (int f = 0; f < n; f++) {
		p->ninstances[f] = (int)walk_count(p->s->walk, flag_at(p, f)->loop);
		p->generation[f] = ARENA_ARRAY(p->a, p->ninstances[f], struct generation_state);
		for (int i = 0; i < p->ninstances[f]; i++)
			p->generation[f][i].waiter = NONE;
		p->first_barrier[f] = p->nclock;
		p->nclock += depth_of(p, f);
	}
}

/* Find which generations of each barrier a lane waits for. */
static void find_awaited(struct play *p)
{
	p->awaited = ARENA_ARRAY(p->a, p->nclock, int);
	for (int l = 0; l < p->r->roles.n; l++)
		for (int i = 0; i < p->s->nacts[l]; i++) {
			const struct act *a = &p->s->acts[l][i];

			for (int b = 0; b < p->blocks && a->kind == ACT_WAIT; b++) {
				int *last = &p->awaited[barrier_of(p, flag_in(p, b, a->at), a->n)];

				*last = (int)max_i64(*last, a->n / p->r->flags.v[a->at].depth + 1);
			}
		}
}

enum err_code play_scenario(struct arena *a, const struct scenario *s, struct counterexample *counterexample,
	struct err *e)
{
	struct play p = { .a = a, .s = s, .r = s->set->r, .blocks = s->set->r->cluster,
		.counterexample = counterexample, .e = e };
	bool moved = true, is_blocked = false;

	*counterexample = COUNTEREXAMPLE_NONE;
	init_warps(&p);
	init_flags(&p);
	find_awaited(&p);
	for (int i = 0; i < p.nwarps; i++) {
		p.warp[i].clock = ARENA_ARRAY(a, p.nclock, int);
		p.warp[i].fenced = ARENA_ARRAY(a, p.nclock, int);
	}
	p.cell = ARENA_ARRAY(a, p.blocks * play_ncells(&p), struct cell_state);
	for (int i = 0; i < s->ninstances; i++)
		if (s->ran[i] != 1)
			return err_set(e, ERR_ILLEGAL, play_line(&p, i), "%s is done %d times", play_name(&p, i),
				s->ran[i]);
	while (moved) {
		moved = false;
		for (int i = 0; i < p.nwarps; i++)
			TRY(go_on(&p, &p.warp[i], &moved));
	}
	for (int i = 0; i < p.nwarps; i++)
		if (p.warp[i].at < s->nacts[p.warp[i].lane]) {
			is_blocked = true;
			if (is_unsignalled(&p, &p.warp[i], counterexample))
				break;
		}
	return is_blocked ? report_deadlock(&p) : check_end(&p);
}
