#include "lower/play.h"

#include <string.h>

enum {
	WARPS = 2,			/* of a lane: its first, which issues copies, and another */
	BLOCKS_MOST = 16,		/* of a cluster */
};
_Static_assert(WARPS * BLOCKS_MOST <= 32, "a bit a warp");

/* Something that happened to a place. It is over for those whose clock has at least
 * `until` of component `of`. */
struct access {
	int of, until;
	int instance;
	int warp;			/* who did it with ordinary instructions; NONE: an engine */
	int fence;			/* of that warp after it; 0: none yet */
	bool writes, sums;
};

struct cell {
	int writer;			/* instance that wrote last */
	bool written;
	VEC(struct access) now, before;	/* since that instance wrote, and since the one before */
};

struct waiter {
	int warp, event, next;
};

/* A phase of a barrier: the one that instance n of a flag completes in one block. */
struct round {
	uint32_t arrived;		/* a bit a warp, by block */
	int *event;			/* when they did, by bit */
	int copies;			/* under way to it, by block of the cluster */
	bool complete;
	int waiter;			/* list */
	int *clock;			/* joined as they come */
};

struct warp {
	int block, lane, number;	/* 0: the lane's first */
	int at;				/* next action */
	int event;			/* that is under way */
	int groups;			/* issued */
	bool meets;			/* stands at an ACT_SYNC or ACT_CLUSTER */
	int *clock;
	VEC(int) group;			/* accesses of the group that is next */
	VEC(int) unfenced;		/* places */
};

struct play {
	struct arena *a;
	const struct script *s;
	const struct kernel *k;
	int blocks, nwarps, nclock;
	struct warp *warp;
	/* Flags are numbered through over the blocks, those of the first as in the kernel. */
	int *first_barrier;		/* by flag: component of the clock */
	int *awaited;			/* by component, of barriers: phases up to the last that
					 * somebody waits for */
	int *ninstances;		/* by flag */
	struct round **round;		/* by flag and instance */
	struct cell *cell;		/* by block; registers: one a warp of the lane */
	VEC(struct waiter) waiters;
	struct err *e;
};

static int warp_index(const struct play *p, const struct warp *w)
{
	return (int)(w - p->warp);
}

static int warps_of(const struct play *p, const struct warp *w)
{
	return p->k->lanes.v[w->lane].warps > 1 ? WARPS : 1;
}

/* Of block `block`. */
static int flag_in(const struct play *p, int block, int flag)
{
	return block * p->k->flags.n + flag;
}

static int kernel_flag(const struct play *p, int flag)
{
	return flag % p->k->flags.n;
}

static const struct flag *flag_at(const struct play *p, int flag)
{
	return &p->k->flags.v[kernel_flag(p, flag)];
}

static int depth_of(const struct play *p, int flag)
{
	return flag_at(p, flag)->depth;
}

/* The first warp of the lane that completes instance n of a flag, in its own block. */
static const struct warp *completer(const struct play *p, int flag, int n)
{
	const struct warp *w = p->warp + flag / p->k->flags.n * (p->nwarps / p->blocks);

	while (w->lane != script_lane(p->s, kernel_flag(p, flag), n))
		w++;
	return w;
}

/* Its bit among those who arrive. */
static int bit_of(const struct warp *w)
{
	return w->block * WARPS + w->number;
}

/* The bits of those who must arrive for instance n. */
static uint32_t arrivals_of(const struct play *p, int flag, int n)
{
	const struct warp *w = completer(p, flag, n);
	uint32_t bits = flag_at(p, flag)->bytes ? 1 : (1u << warps_of(p, w)) - 1, all = 0;

	if (!flag_at(p, flag)->all)
		return bits << w->block * WARPS;
	for (int i = 0; i < p->blocks; i++)
		all |= bits << i * WARPS;
	return all;
}

/* clocks: events of each warp, groups of each warp that are over, phases of barriers. */

static int events_of(const struct play *p, int warp)
{
	(void)p;
	return warp;
}

static int groups_of(const struct play *p, int warp)
{
	return p->nwarps + warp;
}

static int barrier_of(const struct play *p, int flag, int n)
{
	return p->first_barrier[flag] + n % depth_of(p, flag);
}

static void join(const struct play *p, int *into, const int *from)
{
	for (int i = 0; i < p->nclock; i++)
		into[i] = into[i] > from[i] ? into[i] : from[i];
}

/* messages ------------------------------------------------------------------- */

static const struct stask *stask_of(const struct play *p, int instance)
{
	return &p->k->plan->graph->tasks.v[p->s->task[instance]];
}

static const char *name_of(const struct play *p, int instance)
{
	const struct stask *s;
	int64_t seq, tile;

	if (instance == NONE)
		return "the end of a tile";
	s = stask_of(p, instance);
	seq = instance - p->s->first[p->s->task[instance]];
	tile = walk_outer(p->s->walk, s->loop, seq, NONE);
	if (s->loop == NONE)
		return arena_strf(p->a, "'%s' of tile %lld", s->name, (long long)tile);
	return arena_strf(p->a, "'%s' in iteration %lld of tile %lld", s->name, (long long)(seq -
		walk_inner(p->s->walk, NONE, tile, s->loop)), (long long)tile);
}

static const char *flag_name(const struct play *p, int flag, int n)
{
	const struct flag *f = flag_at(p, flag);

	if (f->runs)
		return arena_strf(p->a, "run %d of the loop of '%s'", n,
			p->k->plan->graph->tasks.v[f->task].name);
	return name_of(p, script_instance(p->s, f->task, n));
}

static struct srcloc line_of(const struct play *p, int instance)
{
	int entry = instance == NONE ? NONE : plan_entry_of(p->k->plan, p->s->task[instance]);

	return entry == NONE ? NOWHERE : p->k->plan->entries.v[entry].loc;
}

static struct srcloc flag_line(const struct play *p, int flag)
{
	const struct plan *plan = p->k->plan;

	return plan->entries.v[plan_entry_of(plan, flag_at(p, flag)->task)].loc;
}

/* places --------------------------------------------------------------------- */

static const char *verb(const struct access *x)
{
	return x->writes ? "writes" : "reads";
}

static enum err_code race(const struct play *p, const char *buffer, const struct access *x,
	const struct access *old)
{
	return err_set(p->e, ERR_ILLEGAL, line_of(p, x->instance), "%s %s '%s' while %s may still be "
		"about to %s it", name_of(p, x->instance), verb(x), buffer, name_of(p, old->instance),
		old->writes ? "write" : "read");
}

/* Is the earlier access over for the one at hand, whose start has this clock? */
static enum err_code check_order(const struct play *p, int place, const struct access *x,
	const struct access *old, const int *clock)
{
	const char *buffer = p->k->plan->graph->buffers.v[p->s->set->buffer[place]].name;

	if ((!x->writes && !old->writes) || (x->instance == old->instance && x->instance != NONE))
		return OK;
	if (x->sums && old->sums)	/* the matrix unit adds in order */
		return OK;
	if (clock[old->of] < old->until)
		return race(p, buffer, x, old);
	if (place < p->s->set->shared && x->warp == NONE && old->warp != NONE && old->writes &&
	    (!old->fence || clock[events_of(p, old->warp)] < old->fence))
		return err_set(p->e, ERR_ILLEGAL, line_of(p, x->instance), "%s %s '%s' by an engine, "
			"without a fence after %s wrote it", name_of(p, x->instance), verb(x), buffer,
			name_of(p, old->instance));
	return OK;
}

/* In each block: slots, then registers of either warp. */
static int cells_of_block(const struct play *p)
{
	return p->s->set->shared + (p->s->set->nplaces - p->s->set->shared) * WARPS;
}

static struct cell *place_at(const struct play *p, int block, const struct warp *w, int place)
{
	int shared = p->s->set->shared, first = block * cells_of_block(p);

	return &p->cell[first + (place < shared ? place : shared + (place - shared) * WARPS +
		w->number)];
}

static enum err_code check_place(const struct play *p, const struct cell *at, int place,
	const struct access *x, const int *clock)
{
	for (int i = 0; i < at->now.n; i++)
		TRY(check_order(p, place, x, &at->now.v[i], clock));
	for (int i = 0; i < at->before.n && x->writes; i++)
		TRY(check_order(p, place, x, &at->before.v[i], clock));
	return OK;
}

/* What is read must be what the program says. */
static enum err_code check_value(const struct play *p, const struct cell *at, int place,
	const struct act *a)
{
	int instance = a->instance, want = a->want;

	if ((want == NONE && !a->initial) || (at->written && at->writer == want))
		return OK;
	return err_set(p->e, ERR_ILLEGAL, line_of(p, instance), "%s reads '%s' as %s left it, "
		"not %s", name_of(p, instance),
		p->k->plan->graph->buffers.v[p->s->set->buffer[place]].name,
		at->written && at->writer != NONE ? name_of(p, at->writer) : "nobody",
		want == NONE ? "its initial value" : name_of(p, want));
}

/* An access that begins where the warp stands, to a place of this block. */
static enum err_code add_access(struct play *p, int block, struct warp *w, int place,
	struct access x)
{
	struct cell *at = place_at(p, block, w, place);

	TRY(check_place(p, at, place, &x, w->clock));
	if (x.writes && !(at->written && at->writer == x.instance)) {
		struct access *v = at->before.v;
		int cap = at->before.cap;

		at->before.v = at->now.v;
		at->before.n = at->now.n;
		at->before.cap = at->now.cap;
		at->now.v = v;
		at->now.n = 0;
		at->now.cap = cap;
		at->written = true;
		at->writer = x.instance;
	}
	VEC_PUSH(p->a, &at->now, x);
	return OK;
}

/* READ, WRITE, GROUP_READ and GROUP_SUM. */
static enum err_code do_access(struct play *p, struct warp *w, const struct act *a)
{
	bool group = a->kind == ACT_GROUP_READ || a->kind == ACT_GROUP_SUM;
	int me = warp_index(p, w);
	struct access x = { .of = group ? groups_of(p, me) : events_of(p, me),
		.until = group ? w->groups + 1 : w->event, .instance = a->instance,
		.warp = group ? NONE : me, .writes = a->kind == ACT_WRITE || a->kind == ACT_GROUP_SUM,
		.sums = a->kind == ACT_GROUP_SUM };

	if (!x.writes || x.sums)
		TRY(check_value(p, place_at(p, w->block, w, a->at), a->at, a));
	TRY(add_access(p, w->block, w, a->at, x));
	if (x.writes && !group && a->at < p->s->set->shared)
		VEC_PUSH(p->a, &w->unfenced, a->at);
	return OK;
}

static void do_fence(struct play *p, struct warp *w)
{
	int me = warp_index(p, w);

	for (int i = 0; i < w->unfenced.n; i++) {
		struct cell *at = place_at(p, w->block, w, w->unfenced.v[i]);

		for (int k = 0; k < at->now.n; k++)
			if (at->now.v[k].warp == me && at->now.v[k].writes && !at->now.v[k].fence)
				at->now.v[k].fence = w->event;
	}
	w->unfenced.n = 0;
}

/* flags ---------------------------------------------------------------------- */

static enum err_code check_number(const struct play *p, int flag, int n, int instance,
	const char *what)
{
	if (n < p->ninstances[flag])
		return OK;
	return err_set(p->e, ERR_ILLEGAL, line_of(p, instance), "%s %s an instance of '%s' that "
		"never comes", name_of(p, instance), what,
		p->k->plan->graph->tasks.v[flag_at(p, flag)->task].name);
}

/* Where nobody waits any more, it makes no difference in which order the warps of a lane
 * bring their arrivals. The phase after the last that somebody waits for may not end too
 * early, so it may not take the next one's. */
static bool is_awaited(const struct play *p, int flag, int n)
{
	int last = p->awaited[barrier_of(p, flag, n)];

	return last && n / depth_of(p, flag) < last + 2;
}

/* Is the phase of instance n over for the warp? It has seen it or a later one, or knows
 * that all have arrived. */
static bool is_over(const struct play *p, const struct warp *w, int flag, int n)
{
	const struct round *ph = &p->round[flag][n];
	int lane;

	if (w->clock[barrier_of(p, flag, n)] > n / depth_of(p, flag))
		return true;
	if (!ph->complete || ph->copies)
		return false;
	lane = completer(p, flag, n)->lane;
	for (int i = 0; i < p->nwarps; i++)
		if (p->warp[i].lane == lane && ph->arrived >> bit_of(&p->warp[i]) & 1 &&
		    w->clock[events_of(p, i)] < ph->event[bit_of(&p->warp[i])])
			return false;
	return true;
}

/* The phase before on the same barrier must be over for whoever comes, or it would take
 * that for this one. */
static enum err_code check_turn(const struct play *p, const struct warp *w, int flag, int n,
	int instance, const char *what)
{
	int depth = depth_of(p, flag);

	if (n < depth || is_over(p, w, flag, n - depth))
		return OK;
	return err_set(p->e, ERR_ILLEGAL, line_of(p, instance), "%s %s %s on a flag of %d phases, on "
		"which %s may not be over", name_of(p, instance), what, flag_name(p, flag, n), depth,
		flag_name(p, flag, n - depth));
}

/* No phase may be passed again while somebody may still look at it. */
static enum err_code check_waiters(const struct play *p, int flag, int n, const struct round *ph)
{
	int depth = depth_of(p, flag);

	for (int i = n < depth ? NONE : p->round[flag][n - depth].waiter; i != NONE;
	     i = p->waiters.v[i].next) {
		const struct waiter *w = &p->waiters.v[i];

		if (ph->clock[events_of(p, w->warp)] < w->event)
			return err_set(p->e, ERR_ILLEGAL, flag_line(p, flag), "%s may be over before lane '%s' has "
				"seen that %s is, on the same barrier of %d", flag_name(p, flag, n),
				p->k->plan->lanes.v[p->k->lanes.v[p->warp[w->warp].lane].lane].name,
				flag_name(p, flag, n - depth), depth);
	}
	return OK;
}

static struct round *round_at(const struct play *p, int flag, int n)
{
	struct round *ph = &p->round[flag][n];

	if (!ph->clock) {
		ph->clock = ARENA_ARRAY(p->a, p->nclock, int);
		ph->event = ARENA_ARRAY(p->a, p->blocks * WARPS, int);
	}
	return ph;
}

/* The phase is over when all have arrived and all parts that are copied have come: of an
 * own load one, of a shared load one from each block. */
static enum err_code try_complete(struct play *p, int flag, int n, int copies)
{
	struct round *ph = &p->round[flag][n];

	if (ph->arrived != arrivals_of(p, flag, n) || ph->copies < copies)
		return OK;
	ph->complete = true;
	ph->clock[barrier_of(p, flag, n)] = n / depth_of(p, flag) + 1;
	return check_waiters(p, flag, n, ph);
}

static enum err_code arrive(struct play *p, struct warp *w, int flag, int n, int instance)
{
	struct round *ph;

	TRY(check_number(p, flag, n, instance, "arrives for"));
	if (is_awaited(p, flag, n))
		TRY(check_turn(p, w, flag, n, instance, "arrives for"));
	ph = round_at(p, flag, n);
	if (ph->arrived >> bit_of(w) & 1)
		return err_set(p->e, ERR_ILLEGAL, line_of(p, instance), "%s arrives twice for %s",
			name_of(p, instance), flag_name(p, flag, n));
	join(p, ph->clock, w->clock);
	ph->arrived |= 1u << bit_of(w);
	ph->event[bit_of(w)] = w->event;
	return OK;
}

static enum err_code do_arrive(struct play *p, struct warp *w, const struct act *a)
{
	bool all = p->k->flags.v[a->at].all;

	for (int i = all ? 0 : w->block; i < (all ? p->blocks : w->block + 1); i++) {
		TRY(arrive(p, w, flag_in(p, i, a->at), a->n, a->instance));
		TRY(try_complete(p, flag_in(p, i, a->at), a->n, 0));
	}
	return OK;
}

/* Into a slot of one block. */
static enum err_code copy_to(struct play *p, int block, struct warp *w, const struct act *a)
{
	int flag = flag_in(p, block, a->at);
	struct round *ph;

	TRY(check_turn(p, w, flag, a->n, a->instance, "copies for"));
	TRY(add_access(p, block, w, a->to, (struct access){ .of = barrier_of(p, flag, a->n),
		.until = a->n / depth_of(p, flag) + 1, .instance = a->instance, .warp = NONE,
		.writes = true }));
	ph = round_at(p, flag, a->n);
	join(p, ph->clock, w->clock);
	ph->copies++;
	return OK;
}

static enum err_code do_copy(struct play *p, struct warp *w, const struct act *a)
{
	const struct ring *r = &p->k->rings.v[p->k->ring_of[p->s->set->buffer[a->to]]];
	bool all = r->cut != CUT_NONE;
	int first = all ? 0 : w->block, end = all ? p->blocks : w->block + 1;

	if (w->number)
		return OK;
	TRY(check_number(p, flag_in(p, w->block, a->at), a->n, a->instance, "copies for"));
	for (int i = first; i < end; i++)
		TRY(copy_to(p, i, w, a));
	TRY(arrive(p, w, flag_in(p, w->block, a->at), a->n, a->instance));
	for (int i = first; i < end; i++)
		TRY(try_complete(p, flag_in(p, i, a->at), a->n, all ? p->blocks : 1));
	return OK;
}

static enum err_code do_wait(struct play *p, struct warp *w, const struct act *a)
{
	int flag = flag_in(p, w->block, a->at), depth = depth_of(p, flag);
	struct round *ph;

	TRY(check_number(p, flag, a->n, a->instance, "waits for"));
	ph = &p->round[flag][a->n];
	TRY(check_turn(p, w, flag, a->n, a->instance, "waits for"));
	if (a->n + depth < p->ninstances[flag] && p->round[flag][a->n + depth].complete)
		return err_set(p->e, ERR_ILLEGAL, line_of(p, a->instance), "%s waits for %s, but %s "
			"may be over by then too, on the same barrier of %d", name_of(p, a->instance),
			flag_name(p, flag, a->n), flag_name(p, flag, a->n + depth), depth);
	join(p, w->clock, ph->clock);
	VEC_PUSH(p->a, &p->waiters, ((struct waiter){ warp_index(p, w), w->event, ph->waiter }));
	ph->waiter = p->waiters.n - 1;
	return OK;
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

/* All of n warps stand at the same point. */
static bool meet(struct play *p, struct warp *w, struct warp *first, int n)
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
		first[i].at += &first[i] != w;	/* the others have done theirs, too */
	}
	return true;
}

/* Can the warp do its next action now? */
static bool is_ready(struct play *p, struct warp *w, const struct act *a)
{
	int flag = flag_in(p, w->block, a->at);

	if (a->kind == ACT_WAIT)
		return a->n >= p->ninstances[flag] || p->round[flag][a->n].complete;
	if (a->kind == ACT_GROUPS)
		return issued_by_all(p, w) >= w->groups - a->n;
	if (a->kind == ACT_SYNC)
		return !w->meets && meet(p, w, w - w->number, warps_of(p, w));
	if (a->kind == ACT_CLUSTER)
		return !w->meets && meet(p, w, p->warp, p->nwarps);
	return true;
}

static enum err_code do_act(struct play *p, struct warp *w, const struct act *a)
{
	int me = warp_index(p, w);

	w->clock[events_of(p, me)] = ++w->event;
	switch (a->kind) {
	case ACT_WAIT:
		return do_wait(p, w, a);
	case ACT_ARRIVE:
		return do_arrive(p, w, a);
	case ACT_COPY:
		return do_copy(p, w, a);
	case ACT_SYNC:
	case ACT_CLUSTER:
		break;
	case ACT_FENCE:
		do_fence(p, w);
		break;
	case ACT_READ:
	case ACT_WRITE:
	case ACT_GROUP_READ:
	case ACT_GROUP_SUM:
		return do_access(p, w, a);
	case ACT_COMMIT:
		w->groups++;
		break;
	case ACT_GROUPS:
		if (w->clock[groups_of(p, me)] < w->groups - a->n)
			w->clock[groups_of(p, me)] = w->groups - a->n;
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

static enum err_code deadlock(const struct play *p)
{
	const char *text = "";
	int instance = NONE, n = 0;

	for (int i = 0; i < p->nwarps && n < 4; i++) {
		const struct warp *w = &p->warp[i];
		const struct act *a = &p->s->acts[w->lane][w->at];

		if (w->number || w->at == p->s->nacts[w->lane])
			continue;
		text = arena_strf(p->a, "%s%s%s waits for %s", text, n++ ? ", " : "",
			name_of(p, a->instance), a->kind == ACT_WAIT ? flag_name(p, a->at, a->n) :
			a->kind == ACT_GROUPS ? "its products" : a->kind == ACT_CLUSTER ?
			"the cluster" : "the other warps of its lane");
		instance = a->instance;
	}
	return err_set(p->e, ERR_ILLEGAL, line_of(p, instance), "nobody can go on: %s", text);
}

/* Does the block know of the arrival before its last warp ends? */
static bool is_known(const struct play *p, int block, const struct warp *who, int event)
{
	for (int i = 0; i < p->nwarps; i++)
		if (p->warp[i].block == block && p->warp[i].clock[events_of(p, warp_index(p, who))] >=
		    event)
			return true;
	return false;
}

/* Nobody may arrive at a barrier of a block that has ended. */
static enum err_code check_peers(const struct play *p, int flag, int n)
{
	const struct round *ph = &p->round[flag][n];
	int block = flag / p->k->flags.n, lane = completer(p, flag, n)->lane;

	for (int i = 0; i < p->nwarps && flag_at(p, flag)->all; i++) {
		const struct warp *w = &p->warp[i];

		if (w->lane == lane && w->block != block && !is_known(p, block, w,
		    ph->event[bit_of(w)]))
			return err_set(p->e, ERR_ILLEGAL, flag_line(p, flag), "a block of the cluster "
				"may end before another tells it of %s", flag_name(p, flag, n));
	}
	return OK;
}

/* A block may not end while something is under way in it. */
static enum err_code check_end(const struct play *p)
{
	for (int i = 0; i < p->nwarps; i++) {
		const struct warp *w = &p->warp[i];

		if (w->clock[groups_of(p, i)] < w->groups)
			return err_set(p->e, ERR_ILLEGAL, NOWHERE, "lane '%s' ends while its products "
				"are under way", p->k->plan->lanes.v[p->k->lanes.v[w->lane].lane].name);
	}
	for (int f = 0; f < p->k->flags.n * p->blocks; f++) {
		for (int n = 0; n < p->ninstances[f]; n++) {
			if (!p->round[f][n].complete)
				return err_set(p->e, ERR_ILLEGAL, flag_line(p, f), "nobody is told of %s",
					flag_name(p, f, n));
			if (flag_at(p, f)->bytes && completer(p, f, n)->clock[barrier_of(p, f, n)] <
			    n / depth_of(p, f) + 1)
				return err_set(p->e, ERR_ILLEGAL, flag_line(p, f), "the kernel may "
					"end while %s is under way", flag_name(p, f, n));
			TRY(check_peers(p, f, n));
		}
	}
	return OK;
}

static enum err_code check_ran(const struct play *p)
{
	for (int i = 0; i < p->s->ninstances; i++)
		if (p->s->ran[i] != 1)
			return err_set(p->e, ERR_ILLEGAL, line_of(p, i), "%s is done %d times",
				name_of(p, i), p->s->ran[i]);
	return OK;
}

static void init_warps(struct play *p)
{
	p->warp = ARENA_ARRAY(p->a, p->blocks * p->k->lanes.n * WARPS, struct warp);
	for (int b = 0; b < p->blocks; b++)
		for (int i = 0; i < p->k->lanes.n; i++)
			for (int n = 0; n < (p->k->lanes.v[i].warps > 1 ? WARPS : 1); n++)
				p->warp[p->nwarps++] = (struct warp){ .block = b, .lane = i,
					.number = n };
	p->nclock = 2 * p->nwarps;
}

static void init_flags(struct play *p)
{
	int n = p->k->flags.n * p->blocks;

	p->first_barrier = ARENA_ARRAY(p->a, n, int);
	p->ninstances = ARENA_ARRAY(p->a, n, int);
	p->round = ARENA_ARRAY(p->a, n, struct round *);
	for (int f = 0; f < n; f++) {
		p->ninstances[f] = (int)walk_count(p->s->walk, flag_loop(p->k, kernel_flag(p, f)));
		p->round[f] = ARENA_ARRAY(p->a, p->ninstances[f], struct round);
		for (int i = 0; i < p->ninstances[f]; i++)
			p->round[f][i].waiter = NONE;
		p->first_barrier[f] = p->nclock;
		p->nclock += depth_of(p, f);
	}
}

static void note_awaited(struct play *p, int flag, int n)
{
	int *last = &p->awaited[barrier_of(p, flag, n)];

	if (*last <= n / depth_of(p, flag))
		*last = n / depth_of(p, flag) + 1;
}

static void find_awaited(struct play *p)
{
	p->awaited = ARENA_ARRAY(p->a, p->nclock, int);
	for (int l = 0; l < p->k->lanes.n; l++) {
		for (int i = 0; i < p->s->nacts[l]; i++) {
			const struct act *a = &p->s->acts[l][i];

			for (int b = 0; b < p->blocks && a->kind == ACT_WAIT; b++)
				note_awaited(p, flag_in(p, b, a->at), a->n);
		}
	}
}

enum err_code play_script(struct arena *a, const struct script *s, struct err *e)
{
	struct play p = { .a = a, .s = s, .k = s->set->k, .blocks = s->set->k->cluster, .e = e };
	bool moved = true;

	init_warps(&p);
	init_flags(&p);
	find_awaited(&p);
	for (int i = 0; i < p.nwarps; i++)
		p.warp[i].clock = ARENA_ARRAY(a, p.nclock, int);
	p.cell = ARENA_ARRAY(a, p.blocks * cells_of_block(&p), struct cell);
	TRY(check_ran(&p));
	while (moved) {
		moved = false;
		for (int i = 0; i < p.nwarps; i++)
			TRY(go_on(&p, &p.warp[i], &moved));
	}
	for (int i = 0; i < p.nwarps; i++)
		if (p.warp[i].at < s->nacts[p.warp[i].lane])
			return deadlock(&p);
	return check_end(&p);
}
