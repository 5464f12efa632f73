#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "plan/check.h"
#include "plan/deal.h"
#include "search/build.h"
#include "search/exact.h"
#include "search/limits.h"
#include "sim/priced.h"

enum {
	REFINED = 6,			/* of the usual choices, so many are gone on from ... */
	SHAPES = 5,			/* ... of so many tiles and lanes at least */
	TRIALS_MAX = 900,
	CODES = 32,			/* kinds of problems */
};

#define MEASURED 1.25			/* of the best time: what is slower will not turn out best */
#define MUCH 1e6				/* more than a plan has problems */
#define FAR 1.25				/* from the best time: no order makes that good */
#define NOTHING 0.002			/* of a time: what the model does not know */

/* A choice that was tried. */
struct tried {
	uint64_t hash;
	struct choice choice;
	double seconds;			/* INFINITY: nothing came of it */
	bool priced;
	int spare;			/* registers of a thread, if priced */
	uint64_t plan;			/* build_hash; 0: none was built */
	bool again;			/* an earlier one has the same plan, and its time */
};

/* What plan_settle made of a plan that is legal. */
struct settled {
	uint64_t order;			/* build_order_hash, before */
	struct wait *waits;
	int nwaits, *versions;
};

struct objection {
	int times;
	const char *message;		/* of the first */
};

struct search {
	struct arena arena;
	struct mem *mem;
	const struct program *program;
	const struct vdevice *device;
	struct space space;
	struct choices batch;		/* to be tried, from `next` on */
	int next;
	VEC(struct tried) tried;
	int *slots, nslots;		/* of tried, by hash; NONE */
	VEC(struct settled) settled;
	VEC(uint64_t) shapes;		/* their tilings, each once */
	bool ahead;			/* of the choices to begin with, other orders are being tried */
	/* refining */
	bool refining;
	int nstarts, start;
	int starts[REFINED];
	int at;				/* the choice gone on from */
	int coordinate, idle;		/* the next one, and how many in a row brought nothing */
	int before;			/* choices tried before the batch */
	/* pricing what was only played roughly */
	bool measured, pricing;
	bool neighbours_only;	/* what is in the batch is the last that is tried */
	int priced;			/* of tried, those before it are done with */
	/* the candidate in the making */
	struct graph *graph;
	struct plan *plan;
	struct timeline *line;
	struct kernels *kernels;
	bool has_target;		/* kernels can be made for the device */
	struct deals deals;
	int best;			/* of tried; NONE */
	int nearest;			/* of what is no plan, that with the least against it; NONE */
	double against;			/* problems of its plan; 0: no kernel comes of it */
	const struct tried **ranks;	/* those that are legal, the best first ... */
	bool sorted;			/* ... if nothing was tried since */
	struct objection objections[CODES];
	struct search_result result;
};

enum err_code search_new(struct mem *mem, const struct program *p, const struct vdevice *d,
	const struct wanted *want, struct search **out, struct err *e)
{
	struct arena a;
	struct search *s;

	arena_init(&a, mem);
	s = *out = ARENA_NEW(&a, struct search);
	s->arena = a;
	s->mem = mem;
	s->program = p;
	s->device = d;
	s->best = s->nearest = NONE;
	deals_init(&s->deals, mem);
	s->has_target = lower_has_target(d);
	s->measured = want && want->measured;
	s->result.bound_seconds = INFINITY;
	if (!p->phases.n)
		return err_set(e, ERR_INPUT, NOWHERE, "program '%s' has nothing to schedule",
			p->name);
	TRY(space_init(&s->space, &s->arena, mem, p, d, want, &s->graph, e));
	space_starts(&s->space, &s->arena, &s->batch);
	return OK;
}

static void free_candidate(struct search *s)
{
	timeline_free(s->line);
	s->line = NULL;
	kernels_free(s->kernels);
	s->kernels = NULL;
	plan_free(s->plan);
	s->plan = NULL;
	graph_free(s->graph);
	s->graph = NULL;
}

/* Before every attempt, and after it. */
static void drop_candidate(struct search *s)
{
	free_candidate(s);
	s->sorted = false;
}

void search_free(struct search *s)
{
	struct arena a;

	if (!s)
		return;
	drop_candidate(s);
	deals_free(&s->deals);
	a = s->arena;
	arena_release(&a);
}

/* ---- what was tried -------------------------------------------------------------------- */

static int *slot_of(const struct search *s, uint64_t hash)
{
	int i = (int)(hash % (uint64_t)s->nslots);

	while (s->slots[i] != NONE && s->tried.v[s->slots[i]].hash != hash)
		i = (i + 1) % s->nslots;
	return &s->slots[i];
}

static void grow_slots(struct search *s)
{
	s->nslots = s->nslots ? 2 * s->nslots : 1024;
	s->slots = ARENA_ARRAY(&s->arena, s->nslots, int);
	for (int i = 0; i < s->nslots; i++)
		s->slots[i] = NONE;
	for (int i = 0; i < s->tried.n; i++)
		*slot_of(s, s->tried.v[i].hash) = i;
}

static void note_shape(struct search *s, const struct choice *c)
{
	uint64_t hash = choice_hash(&(struct choice){ .tiling = c->tiling });

	for (int i = 0; i < s->shapes.n; i++)
		if (s->shapes.v[i] == hash)
			return;
	VEC_PUSH(&s->arena, &s->shapes, hash);
}

/* Its number among what was tried; *known: it was there before. */
static int note(struct search *s, const struct choice *c, bool *known)
{
	uint64_t hash = choice_hash(c);
	int *slot;

	if (2 * s->tried.n >= s->nslots)
		grow_slots(s);
	slot = slot_of(s, hash);
	*known = *slot != NONE;
	if (!*known) {
		*slot = s->tried.n;
		note_shape(s, c);
		VEC_PUSH(&s->arena, &s->tried, ((struct tried){ .hash = hash, .choice = *c,
			.seconds = INFINITY }));
	}
	return *slot;
}

static double best_seconds(const struct search *s)
{
	return s->best == NONE ? INFINITY : s->tried.v[s->best].seconds;
}

/* Did a plan come of it that no other has? */
static bool is_plan(const struct tried *x)
{
	return isfinite(x->seconds) && !x->again;
}

/* A plan that makes a kernel is better than one that does not, and a faster one is better. */
static bool is_better(const struct tried *x, const struct tried *y)
{
	return x->priced != y->priced ? x->priced : x->seconds < y->seconds;
}

/* ---- one candidate --------------------------------------------------------------------- */

/* One more for the same reason; true if it is the first, whose message is kept. */
static bool object(struct search *s, enum problem_code code, struct objection **out)
{
	*out = &s->objections[(int)code < CODES ? (int)code : 0];
	return !(*out)->times++;
}

static void refuse(struct search *s, enum problem_code code, const char *message)
{
	struct objection *o;

	if (object(s, code, &o))
		o->message = arena_strf(&s->arena, "%s", message);
}

/* So much is against the candidate, the last that was tried. */
static void note_against(struct search *s, double against)
{
	if (s->nearest != NONE && against >= s->against)
		return;
	s->nearest = s->tried.n - 1;
	s->against = against;
}

/* Has a ring that loads fill one version, for want of room? */
static bool is_shallow(const struct search *s)
{
	const struct graph *g = s->graph;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].loop != NONE && s->plan->versions[i] == 1 &&
		    plan_scope(s->plan, i) == SCOPE_SHARED &&
		    g->tasks.v[g->buffers.v[i].first].kind == TASK_LOAD)
			return true;
	return false;
}

/* Find the waits of the plan in the making, or take those of one with the same order. *known: it did. */
static enum err_code settle(struct search *s, uint64_t order, bool *known, const struct stop *stop, struct err *e)
{
	struct plan *p = s->plan;

	for (int i = 0; i < s->settled.n; i++) {
		const struct settled *x = &s->settled.v[i];

		if (x->order != order)
			continue;
		p->waits.v = arena_copy(&p->arena, x->waits, (size_t)x->nwaits, sizeof(*x->waits));
		p->waits.n = p->waits.cap = x->nwaits;
		memcpy(p->versions, x->versions, (size_t)p->graph->buffers.n * sizeof(*x->versions));
		*known = true;
		return OK;
	}
	*known = false;
	return plan_settle(p, NULL, NULL, 0, stop, e);
}

static void keep_settled(struct search *s, uint64_t order)
{
	const struct plan *p = s->plan;
	const struct settled x = { .order = order, .nwaits = p->waits.n,
		.waits = arena_copy(&s->arena, p->waits.v, (size_t)p->waits.n, sizeof(*p->waits.v)),
		.versions = arena_copy(&s->arena, p->versions, (size_t)p->graph->buffers.n, sizeof(*p->versions)) };

	VEC_PUSH(&s->arena, &s->settled, x);
}

/* Is the plan in the making legal? *full: shared memory does not hold it, or not more than one version of
 * what is loaded. */
static enum err_code check(struct search *s, const struct stop *stop, bool *legal, bool *full,
	struct err *e)
{
	struct arena_mark mark = arena_mark(&s->plan->arena);
	struct problems problems;

	TRY(plan_check(s->plan, &s->plan->arena, stop, &problems, NULL, e));
	*legal = problems.v.n == 0;
	*full = problems.v.n ? problems.v.v[0].code == PROBLEM_SHARED_MEMORY : is_shallow(s);
	if (problems.v.n) {
		refuse(s, problems.v.v[0].code, problems.v.v[0].message);
		note_against(s, problems.v.n);
	}
	arena_reset(&s->plan->arena, mark);
	return OK;
}

/* Simulate it: by its entries, and if that puts it before the best, with its kernel, which takes
 * longer and makes few plans faster than their entries alone would be. */
static enum err_code play(struct search *s, const struct stop *stop, struct tried *x, struct err *e)
{
	struct sim_options few = { .keep = 0, .rough = true, .deals = &s->deals };

	TRY(sim_run(s->mem, s->plan, &few, stop, &s->line, e));
	x->seconds = s->line->seconds;
	if ((x->seconds >= best_seconds(s) && !s->pricing) || !s->has_target)
		return OK;
	timeline_free(s->line);
	s->line = NULL;
	TRY(priced_run(s->mem, s->plan, &few, stop, &s->kernels, &s->line, e));
	x->priced = s->line->priced;
	x->seconds = x->priced ? s->line->seconds : INFINITY;
	x->spare = s->line->spare_registers;
	if (!x->priced) {
		refuse(s, PROBLEM_KERNEL, s->line->unpriced);
		note_against(s, 0);
	}
	return OK;
}

/* Is the shape's bound no better than what there is? */
static bool is_cut_off(struct search *s)
{
	double bound = limit_seconds(s->program, s->device, s->graph);

	s->result.bound_seconds = fmin(s->result.bound_seconds, bound);
	if (bound < best_seconds(s))
		return false;
	s->result.pruned++;
	return true;
}

/* Does a capacity forbid every plan of the graph? */
static bool is_too_large(struct search *s)
{
	int64_t bytes = limit_shared(s->graph), sums = limit_sums(s->graph);
	struct objection *o;

	if (!sums && bytes <= s->device->shared_bytes)
		return false;
	note_against(s, MUCH + (double)bytes + (double)sums);
	if (object(s, sums ? PROBLEM_REGISTERS : PROBLEM_SHARED_MEMORY, &o))
		o->message = sums ? arena_strf(&s->arena, "a product of this tile has %lld sums, the registers of "
			"an EU of '%s' hold %d", (long long)sums, s->device->name, ACCUMULATORS_MAX) :
			arena_strf(&s->arena, "one version of everything takes %lld bytes of shared memory, "
			"'%s' has %lld", (long long)bytes, s->device->name,
			(long long)s->device->shared_bytes);
	return true;
}

/* Does x come to the plan of an earlier candidate? Then all is known of it. */
static bool is_again(struct search *s, struct tried *x)
{
	uint64_t hash = build_hash(&x->choice, s->plan);

	for (int i = 0; i < s->tried.n && !s->pricing && !x->again; i++) {
		const struct tried *y = &s->tried.v[i];

		x->again = y->plan == hash && y != x;
		if (x->again) {
			x->seconds = y->seconds;
			x->priced = y->priced;
		}
	}
	x->plan = hash;
	return x->again;
}

/* Build, check and simulate; x->seconds stays INFINITY if it fails. *full as of check. */
static enum err_code make(struct search *s, const struct stop *stop, struct tried *x, bool *full,
	struct err *e)
{
	bool known, legal;
	uint64_t order;

	TRY(build_graph(&s->space, &x->choice, &s->graph, e));
	if (is_too_large(s) ||
	    !limit_suits(s->device, s->graph, &x->choice) || is_cut_off(s))
		return OK;
	s->plan = plan_new(s->mem, s->graph, s->device);
	TRY(build_plan(&s->space, &x->choice, s->plan, e));
	if (is_again(s, x))
		return OK;
	order = build_order_hash(&x->choice, s->plan);
	TRY(settle(s, order, &known, stop, e));
	if (known) {
		*full = is_shallow(s);
	} else {
		TRY(check(s, stop, &legal, full, e));
		if (!legal)
			return OK;
		keep_settled(s, order);
	}
	TRY(play(s, stop, x, e));
	s->result.trials++;
	return OK;
}

/* Where shared memory does not hold it, there are also stores by threads, which stage nothing there, and
 * less deep rings: for the same batch. */
static void relieve(struct search *s, struct choice c)
{
	if (!c.by_threads)
		c.by_threads = true;
	else if (c.deeper)
		c.deeper = 0;
	else
		return;
	VEC_PUSH(&s->arena, &s->batch.v, c);
}

/* Registers may not hold it, with versions that are not needed. */
static void spare_versions(struct search *s, struct choice c)
{
	c.versions = 0;
	VEC_PUSH(&s->arena, &s->batch.v, c);
}

static enum err_code try_candidate(struct search *s, const struct choice *c, const struct stop *stop,
	struct err *e)
{
	enum err_code code;
	struct tried *x;
	bool known, full = false;
	int i;

	drop_candidate(s);		/* of a step that memory ended */
	i = note(s, c, &known);
	if (known)
		return OK;
	x = &s->tried.v[i];
	code = make(s, stop, x, &full, e);
	drop_candidate(s);
	if (code == ERR_INTERRUPTED)
		return code;
	if (full)
		relieve(s, x->choice);
	if (isinf(x->seconds) && x->choice.versions)
		spare_versions(s, x->choice);
	if (isinf(x->seconds) || x->again)
		return OK;
	s->result.found++;
	if (s->best == NONE || is_better(x, &s->tried.v[s->best]))
		s->best = i;
	return OK;
}

/* ---- the way through the space ----------------------------------------------------------- */

static bool same_shape(const struct choice *x, const struct choice *y)
{
	for (int i = 0; i < AXES_MAX; i++)
		if (x->tiling.extent[i] != y->tiling.extent[i])
			return false;
	return x->ways == y->ways && x->warps == y->warps && x->replicas == y->replicas &&
		x->parts == y->parts;
}

/* Is it one, or, at first, one of a start's tile and lanes? */
static bool is_start(const struct search *s, int i)
{
	const struct choice *c = &s->tried.v[i].choice;

	for (int k = 0; k < s->nstarts; k++) {
		const struct choice *x = &s->tried.v[s->starts[k]].choice;

		if (same_shape(x, c) && (s->nstarts < SHAPES || x->cut == c->cut))
			return true;
	}
	return false;
}

/* Of the choices to begin with, those again that are not far from the best, with most that runs ahead. */
static void run_ahead(struct search *s)
{
	s->ahead = true;
	s->batch.v.n = s->next = 0;
	for (int i = 0; i < s->tried.n; i++) {
		struct choice c;

		if (s->tried.v[i].seconds < FAR * best_seconds(s) &&
		    space_ahead(&s->space, &s->tried.v[i].choice, &c))
			VEC_PUSH(&s->arena, &s->batch.v, c);
	}
}

static void find_starts(struct search *s)
{
	while (s->nstarts < REFINED) {
		int best = NONE;

		for (int i = 0; i < s->tried.n; i++)
			if (is_plan(&s->tried.v[i]) && !is_start(s, i) &&
			    (best == NONE || is_better(&s->tried.v[i], &s->tried.v[best])))
				best = i;
		if (best == NONE)
			return;
		s->starts[s->nstarts++] = best;
	}
}

/* What the model cannot tell apart is not worth going to. */
static bool is_worth(const struct tried *x, const struct tried *than)
{
	return x->priced != than->priced ? x->priced : x->seconds < than->seconds * (1 - NOTHING);
}

/* The best of the batch that was tried for the last coordinate, if it is better than what that went
 * on from. */
static void go_on(struct search *s)
{
	int to = s->at;

	for (int i = 0; i < s->batch.v.n; i++) {
		bool known;
		int k = note(s, &s->batch.v.v[i], &known);

		if (is_worth(&s->tried.v[k], &s->tried.v[to]))
			to = k;
	}
	if (to != s->at)
		s->idle = 0;
	else if (s->idle < space_coordinates(&s->space))
		s->idle++;
	s->at = to;
}

/* The plan of a choice that was tried before, made again. */
static enum err_code build_settled(struct search *s, const struct choice *c, const struct stop *stop, struct err *e)
{
	bool known;

	TRY(build_graph(&s->space, c, &s->graph, e));
	s->plan = plan_new(s->mem, s->graph, s->device);
	TRY(build_plan(&s->space, c, s->plan, e));
	return settle(s, build_order_hash(c, s->plan), &known, stop, e);
}

/* With exact orders of what it came to, from one of the starts. */
static enum err_code solve(struct search *s, const struct stop *stop, struct err *e)
{
	const struct choice c = s->tried.v[s->at].choice;
	enum err_code code;

	drop_candidate(s);
	TRY(build_settled(s, &c, stop, e));
	code = exact_orders(&s->space, &c, s->plan, &s->plan->arena, stop, &s->batch, e);
	drop_candidate(s);
	return code;
}

/* On to the next coordinate, or when none brought anything, to exact orders, and then to the next start;
 * false if there is none left. */
static enum err_code turn_to_next(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	int n = space_coordinates(&s->space);

	s->batch.v.n = s->next = 0;
	if (s->idle == n) {
		s->idle++;		/* whatever comes of this, it is done once for each way that ends */
		return solve(s, stop, e) == ERR_INTERRUPTED ? ERR_INTERRUPTED : OK;
	}
	if (s->idle > n) {
		*more = ++s->start < s->nstarts;
		if (!*more)
			return OK;
		s->at = s->starts[s->start];
		s->idle = s->coordinate = 0;
	}
	space_along(&s->space, &s->tried.v[s->at].choice, s->coordinate, &s->arena, &s->batch);
	s->coordinate = (s->coordinate + 1) % n;
	return OK;
}

/* Fill the batch; *more is false if there is nothing left to try. */
static enum err_code refill(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	*more = true;
	if (!s->ahead) {
		run_ahead(s);
		if (s->batch.v.n)
			return OK;
	}
	if (!s->refining) {
		s->refining = true;
		find_starts(s);
		s->start = -1;
		s->at = 0;
		s->idle = space_coordinates(&s->space) + 1;
		s->batch.v.n = 0;
	}
	do {
		if (s->start >= 0)
			go_on(s);
		TRY(turn_to_next(s, stop, more, e));
	} while (*more && !s->batch.v.n);
	return OK;
}

/* The kernel of one more of those that may turn out best when they are measured; *more is false if there
 * is none. */
static enum err_code price_next(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	double worst = MEASURED * best_seconds(s);
	struct tried *x;
	bool full;

	s->pricing = s->measured;
	for (; s->priced < s->tried.n; s->priced++)
		if (is_plan(&s->tried.v[s->priced]) && !s->tried.v[s->priced].priced &&
		    s->tried.v[s->priced].seconds < worst)
			break;
	*more = s->pricing && s->priced < s->tried.n;
	if (!*more)
		return OK;
	x = &s->tried.v[s->priced++];
	drop_candidate(s);
	if (make(s, stop, x, &full, e) == ERR_INTERRUPTED)
		return ERR_INTERRUPTED;
	drop_candidate(s);
	if (isinf(x->seconds))
		s->result.found--;	/* no kernel comes of it */
	else if (is_better(x, &s->tried.v[s->best]))
		s->best = (int)(x - s->tried.v);
	return OK;
}

enum err_code search_step(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	*more = (s->neighbours_only || s->result.trials < TRIALS_MAX) && !s->pricing;
	if (*more && s->next == s->batch.v.n) {
		*more = !s->neighbours_only;
		if (*more)
			TRY(refill(s, stop, more, e));
	}
	if (!*more)
		return price_next(s, stop, more, e);
	if (stop_asked(stop))
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	return try_candidate(s, &s->batch.v.v[s->next++], stop, e);
}

void search_neighbours(struct search *s, int trial)
{
	const struct choice c = s->tried.v[trial].choice;

	s->batch.v.n = s->next = 0;
	for (int k = 0; k < space_coordinates(&s->space); k++)
		space_along(&s->space, &c, k, &s->arena, &s->batch);
	s->neighbours_only = true;
	s->pricing = false;
}

/* ---- what was found ---------------------------------------------------------------------- */

struct search_result search_best(const struct search *s)
{
	struct search_result r = s->result;

	r.seconds = s->best == NONE ? 0 : s->tried.v[s->best].seconds;
	r.shapes = s->shapes.n;
	return r;
}

const struct program *search_program(const struct search *s)
{
	return s->program;
}

static int compare(const void *a, const void *b)
{
	const struct tried *const *x = a, *const *y = b;

	if (is_better(*x, *y) || is_better(*y, *x))
		return is_better(*x, *y) ? -1 : 1;
	return *x < *y ? -1 : 1;
}

/* Sorted anew when something was tried since. */
static const struct tried *ranked(struct search *s, int rank)
{
	int n = 0;

	if (!s->sorted) {
		s->ranks = ARENA_ARRAY(&s->arena, s->tried.n, const struct tried *);
		for (int i = 0; i < s->tried.n; i++)
			if (is_plan(&s->tried.v[i]))
				s->ranks[n++] = &s->tried.v[i];
		qsort(s->ranks, (size_t)n, sizeof(*s->ranks), compare);
		s->sorted = true;
	}
	return s->ranks[rank];
}

struct search_found search_ranked(struct search *s, int rank)
{
	const struct tried *x = ranked(s, rank);

	return (struct search_found){ &x->choice, x->seconds, x->priced, x->spare, (int)(x - s->tried.v) };
}

bool search_tried(const struct search *s, int i, double *seconds)
{
	if (i >= s->tried.n)
		return false;
	*seconds = s->tried.v[i].seconds;
	return true;
}

static enum err_code script_of(struct search *s, const struct tried *x, const struct stop *stop, struct buf *out,
	struct tiling *tile, struct err *e)
{
	free_candidate(s);
	TRY(build_settled(s, &x->choice, stop, e));
	build_script(&s->space, &x->choice, out);
	plan_script(s->plan, out);
	*tile = x->choice.tiling;
	free_candidate(s);
	return OK;
}

bool search_is_plan(const struct search *s, int trial)
{
	return trial >= 0 && trial < s->tried.n && is_plan(&s->tried.v[trial]);
}

enum err_code search_script(struct search *s, int trial, const struct stop *stop, struct buf *out,
	struct tiling *tile, struct err *e)
{
	return script_of(s, &s->tried.v[trial], stop, out, tile, e);
}

enum err_code search_nearest(struct search *s, const struct stop *stop, struct buf *out, struct tiling *tile,
	struct err *e)
{
	*tile = (struct tiling){ 0 };
	return s->nearest == NONE ? OK : script_of(s, &s->tried.v[s->nearest], stop, out, tile, e);
}

void search_refusals(const struct search *s, struct buf *out)
{
	bool told[CODES] = { false };

	for (;;) {
		int most = NONE;

		for (int i = 0; i < CODES; i++)
			if (s->objections[i].times && !told[i] &&
			    (most == NONE || s->objections[i].times > s->objections[most].times))
				most = i;
		if (most == NONE)
			return;
		told[most] = true;
		buf_printf(out, "%s%d: %s: %s", out->len ? "\n" : "", s->objections[most].times,
			problem_name((enum problem_code)most), s->objections[most].message);
	}
}
