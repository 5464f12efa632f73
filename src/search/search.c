#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/build.h"
#include "search/evaluate.h"
#include "search/exact.h"
#include "search/limits.h"
#include "search/neighbours.h"
#include "search/starts.h"
#include "search/swaps.h"
#include "target/target.h"

enum {
	CLIMBS = 6,			/* choices to climb from ... */
	OVERLOOKED = 4,			/* candidates of other tiles that are nearly as fast: the first that has a kernel is one more */
	CLIMB_SHAPES = 5,		/* ... so many of which differ in tile or lanes */
	LOAD_WARPS = 4,			/* that copy, to start from */
	SMALLER_MOST = 400,		/* candidates of smaller shapes, with products on one unit, that an EU may hold, ... */
	TOO_LARGE_MOST = 4000,		/* ... and of those that it does not, which take no time but that of a graph */
	MORE_TRIALS = 200,		/* behind a plan that is much better, whatever the limit */
};

#define MEASURED 1.25			/* of the best time: slower plans are not the best when measured */
#define FAR 1.25			/* of the best time: no order makes slower plans the best */
#define NEAR 1.03			/* of the best time: what seems so fast is worth a climb */
#define MUCH_BETTER 0.05		/* of the best time, to go on behind the limit */
#define EQUAL 0.002			/* relative: times nearer than this are equal to the model */

enum policy_phase { PHASE_STARTS, PHASE_AHEAD, PHASE_SMALLER, PHASE_CLIMB };

struct search {
	struct arena arena;
	struct space space;
	struct tried_list tried;
	struct evaluator ev;
	struct choices batch;		/* choices to try, from `next` on */
	int next;
	VEC(uint64_t) shapes;		/* hashes of the tile shapes in `tried` */
	enum policy_phase phase;
	/* smaller shapes, if none of the usual ones has a plan */
	int level, smaller, too_large;	/* halvings so far; candidates so far, with products on one unit */
	bool by_threads;		/* products are now tried on the vector unit */
	/* climbing */
	int nstarts, start;
	int starts[CLIMBS + 1];
	int at;				/* the candidate whose neighbours are tried */
	int coordinate;			/* the next one to try */
	int idle;			/* coordinates in a row that brought nothing; one more: exact orders, too */
	bool neighbours_only;		/* search_neighbours: nothing follows the batch */
	/* plans that will be measured get the price of their kernels */
	bool measured, pricing;
	int priced;			/* candidates before it are done */
	int best;			/* candidate; NONE */
	int found;
	int most;			/* plans that may be simulated */
	struct swap *swaps;		/* of the program's products; the space has the program that these make */
	int nswaps;
	int nwindows;			/* of the program's loads, which plans have */
};

bool search_swaps(const struct program *p, const struct vdevice *d)
{
	return swaps_find(NULL, p, d, NULL) > 0;
}

bool search_has_windows(const struct search *s)
{
	return s->nwindows;
}

enum err_code search_new(struct mem *mem, const struct program *p, const struct vdevice *d,
	const struct wanted *want, struct search **out, struct err *e)
{
	struct search *s;
	struct window *windows = NULL;

	s = *out = ARENA_OWNER(mem, struct search);
	s->best = NONE;
	s->most = SEARCH_TRIALS_MAX;
	s->tried.a = &s->arena;
	evaluator_init(&s->ev, &s->arena, mem, d, &s->space, &s->tried);
	s->measured = want && want->measured;
	if (!p->phases.n)
		return err_set(e, ERR_INPUT, NOWHERE, "program '%s' has nothing to schedule", p->name);
	if (want && want->swapped) {
		s->nswaps = swaps_find(&s->arena, p, d, &s->swaps);
		if (!s->nswaps)
			return err_set(e, ERR_INPUT, NOWHERE, "no product of '%s' has a second operand that is made of loads", p->name);
		TRY(program_swap(&s->arena, p, s->swaps, s->nswaps, &p, e));
	}
	if (want && want->windowed)
		s->nwindows = program_find_windows(&s->arena, p, &windows);
	if (want && want->windowed && !s->nwindows)
		return OK;
	TRY(space_init(&s->space, &s->arena, mem, p, d, want, windows, s->nwindows, &s->ev.graph, e));
	space_starts(&s->space, &s->arena, &s->batch);
	starts_choose(&s->space, &s->arena, &s->ev.graph, &s->batch);
	return OK;
}

void search_free(struct search *s)
{
	if (!s)
		return;
	evaluator_free(&s->ev);
	arena_release(&s->arena);
}

/* ---- tiles ------------------------------------------------------------------------------- */

static int compare_tiles(const void *a, const void *b)
{
	const struct search_tile *x = a, *y = b;

	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return memcmp(x->tiling.extent, y->tiling.extent, sizeof(x->tiling.extent));
}

enum err_code search_tiles(struct search *s, const struct stop *stop, struct search_tile **out, int *n, struct err *e)
{
	const struct vdevice *d = s->space.device;
	VEC(struct search_tile) list = { 0 };
	const struct choice *last = NULL;

	for (int i = 0; i < s->batch.v.n; i++) {
		const struct choice *c = &s->batch.v.v[i];
		const struct graph *g;
		bool fits;

		if (c->ways > 1 || c->split_off || (last && !memcmp(&last->tiling, &c->tiling, sizeof(c->tiling))))
			continue;
		if (stop_asked(stop))
			return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
		last = c;
		evaluator_release(&s->ev);
		if (build_graph(&s->space, c, &s->ev.graph, e))
			continue;
		g = s->ev.graph;
		fits = !limit_sums(g) && limit_shared(g) <= d->shared_bytes;
		if (fits) {
			double bytes = limit_traffic(g), l2 = bytes / d->l2_rate / d->clock_hz;

			VEC_PUSH(&s->arena, &list, ((struct search_tile){ c->tiling,
				fmax(limit_seconds(&s->space, NULL, g), l2), bytes }));
		}
	}
	evaluator_release(&s->ev);
	if (list.n)
		qsort(list.v, (size_t)list.n, sizeof(*list.v), compare_tiles);
	*out = list.v;
	*n = list.n;
	return OK;
}

/* ---- one candidate ----------------------------------------------------------------------- */

static double best_seconds(const struct search *s)
{
	return s->best == NONE ? INFINITY : s->tried.v.v[s->best].seconds;
}

static void count_shape(struct search *s, const struct choice *c)
{
	uint64_t hash = choice_hash(&(struct choice){ .tiling = c->tiling });

	for (int i = 0; i < s->shapes.n; i++)
		if (s->shapes.v[i] == hash)
			return;
	VEC_PUSH(&s->arena, &s->shapes, hash);
}

static int add_candidate(struct search *s, const struct choice *c, bool *known)
{
	int i = tried_add(&s->tried, c, known);

	if (!*known)
		count_shape(s, c);
	return i;
}

/* A search that finds much better plans as it comes to its limit has not arrived: it may go on, as long as it finds them. */
static void go_on(struct search *s, double seconds, double before)
{
	if (seconds < (1 - MUCH_BETTER) * before && s->ev.simulated + MORE_TRIALS > s->most)
		s->most = s->ev.simulated + MORE_TRIALS;
}

static void note_best(struct search *s, int i)
{
	if (s->best != NONE && !tried_is_better(&s->tried.v.v[i], &s->tried.v.v[s->best]))
		return;
	if (s->best != NONE)
		go_on(s, s->tried.v.v[i].seconds, s->tried.v.v[s->best].seconds);
	s->best = i;
}

/* Variants of a candidate that shared memory does not hold: stores by threads, which need no staging there, and then
 * no deeper rings; if its kernel needs more than the plan says, rings of no more than ring_bytes. Of one that is
 * refused for any reason: without registers for loads, or extra versions, which take some, or with fewer warps that load. */
static void add_smaller(struct search *s, struct choice c, int64_t ring_bytes, bool full, bool refused)
{
	struct choice smaller = c;

	if (ring_bytes > 0) {
		smaller.ring_bytes = ring_bytes;
		VEC_PUSH(&s->arena, &s->batch.v, smaller);
	}
	smaller = c;
	if (!c.stores_by_threads) {
		smaller.stores_by_threads = true;
		smaller.ring_bytes = 0;
	} else {
		smaller.deeper_rings = 0;
	}
	if (full && (!c.stores_by_threads || c.deeper_rings))
		VEC_PUSH(&s->arena, &s->batch.v, smaller);
	if (refused && c.load_registers) {
		smaller = c;
		smaller.load_registers = 0;
		VEC_PUSH(&s->arena, &s->batch.v, smaller);
	}
	/* all threads have as many registers as the launch gives: fewer that copy leave more to each */
	if (refused && !full && c.load_warps > 1 && !target_of(s->space.device)->registers.step) {
		smaller = c;
		smaller.load_warps /= 2;
		VEC_PUSH(&s->arena, &s->batch.v, smaller);
	}
	if (refused && c.extra_versions) {
		c.extra_versions = 0;
		VEC_PUSH(&s->arena, &s->batch.v, c);
	}
}

/* Where threads load, one warp can hardly ever keep the memory busy: the same choice with the usual number of them, and with
 * registers for what they have in flight. Where an engine loads, one warp is enough. */
static struct choice usual_loaders(const struct search *s, const struct tried *x)
{
	struct choice c = x->choice;

	c.load_warps = x->by_threads ? LOAD_WARPS : 0;
	c.load_registers = x->by_threads && x->shifted ? s->space.copy_registers : 0;
	c.copied_loads = x->by_threads ? x->copied : 0;
	return c;
}

/* Candidates to start from whose loads are copied otherwise than their lanes are made for are tried again, and those
 * still to come get such lanes at once: loads that differ from tile to tile are rare. */
static void set_loaders(struct search *s, const struct tried *x)
{
	struct choice c = usual_loaders(s, x);

	if (!x->priced || x->by_threads == (x->choice.load_warps > 0))
		return;
	for (int i = s->next; i < s->batch.v.n; i++) {
		s->batch.v.v[i].load_warps = c.load_warps;
		s->batch.v.v[i].load_registers = c.load_registers;
		s->batch.v.v[i].copied_loads = c.copied_loads;
	}
	VEC_PUSH(&s->arena, &s->batch.v, c);
}

/* Count a candidate of a smaller shape. Those that follow with the same graph, if no EU holds it, are left out. */
static void count_smaller(struct search *s, const struct tried *x)
{
	const struct choice *c = &x->choice, *next;

	s->smaller += !x->too_large;
	s->too_large += x->too_large;
	for (; x->too_large && s->next < s->batch.v.n; s->next++) {
		next = &s->batch.v.v[s->next];
		if (next->split_off != c->split_off || memcmp(&next->tiling, &c->tiling, sizeof(c->tiling)))
			return;
	}
}

static enum err_code try_candidate(struct search *s, const struct choice *c, const struct stop *stop, struct err *e)
{
	const struct tried *x;
	bool known, full;
	int i = add_candidate(s, c, &known);

	if (known)
		return OK;
	s->tried.sorted = false;
	if (evaluate(&s->ev, i, best_seconds(s), false, stop, &full, e) == ERR_INTERRUPTED)
		return ERR_INTERRUPTED;
	x = &s->tried.v.v[i];
	add_smaller(s, x->choice, x->ring_bytes, full, isinf(x->seconds));
	if (s->phase == PHASE_SMALLER)
		count_smaller(s, x);
	if (s->phase != PHASE_CLIMB)
		set_loaders(s, x);
	if (tried_is_plan(x)) {
		s->found++;
		note_best(s, i);
	}
	return OK;
}

/* ---- where to climb from ----------------------------------------------------------------- */

/* Has the candidate its products on the unit that is tried now? */
static bool is_on_unit(const struct search *s, int i)
{
	return s->tried.v.v[i].choice.on_second == s->space.on_second;
}

/* The usual choices again, with as much as possible running ahead, unless they are too slow. */
static void batch_ahead(struct search *s)
{
	for (int i = 0; i < s->tried.v.n; i++) {
		const struct tried *x = &s->tried.v.v[i];
		struct choice c;

		if (is_on_unit(s, i) && x->seconds < FAR * best_seconds(s) && space_ahead(&s->space, &x->choice, &c))
			VEC_PUSH(&s->arena, &s->batch.v, c);
	}
}

static bool same_tile(const struct choice *x, const struct choice *y)
{
	for (int i = 0; i < AXES_MAX; i++)
		if (x->tiling.extent[i] != y->tiling.extent[i])
			return false;
	return true;
}

static bool same_shape(const struct choice *x, const struct choice *y)
{
	return same_tile(x, y) && x->ways == y->ways && x->warps == y->warps && x->replicas == y->replicas && x->split == y->split;
}

/* Which candidates best_on_unit takes: of all, of those whose tile or lanes no start has, or of those of which no start has the same
 * tile, lanes and split-off conversions. */
enum unlike { ALL, OTHER_SHAPES, OTHER_SHAPES_OR_SPLITS };

static bool is_like_start(const struct search *s, int i, enum unlike unlike)
{
	const struct choice *c = &s->tried.v.v[i].choice;

	for (int k = 0; k < s->nstarts && unlike != ALL; k++) {
		const struct choice *x = &s->tried.v.v[s->starts[k]].choice;

		if (same_shape(x, c) && (unlike == OTHER_SHAPES || x->split_off == c->split_off))
			return true;
	}
	return false;
}

/* The best candidate with products on the unit that is tried now; NONE: there is none. */
static int best_on_unit(const struct search *s, enum unlike unlike)
{
	int best = NONE;

	for (int i = 0; i < s->tried.v.n; i++)
		if (tried_is_plan(&s->tried.v.v[i]) && is_on_unit(s, i) && !is_like_start(s, i, unlike) &&
		    (best == NONE || tried_is_better(&s->tried.v.v[i], &s->tried.v.v[best])))
			best = i;
	return best;
}

/* The candidate of another tile than all starts that seemed nearly as fast as the best, but never was faster, so that its kernel has no
 * price; NONE: there is none. The first candidates have one because they came first, and so are starts, however slow they are. */
static int overlooked_start(const struct search *s)
{
	int best = NONE;

	for (int i = 0; i < s->tried.v.n; i++) {
		const struct tried *x = &s->tried.v.v[i];
		bool other = tried_is_plan(x) && is_on_unit(s, i) && !x->priced && x->seconds >= best_seconds(s) &&
			x->seconds < NEAR * best_seconds(s);

		for (int k = 0; k < s->nstarts && other; k++)
			other = !same_tile(&s->tried.v.v[s->starts[k]].choice, &x->choice);
		if (other && (best == NONE || x->seconds < s->tried.v.v[best].seconds))
			best = i;
	}
	return best;
}

/* First of different tiles or lanes. The last start, and all that are left if there are few tiles and lanes, as in a search of one tile, may
 * differ in nothing but what is split off: a climb, which changes one coordinate at a time, does not pass a slower plan in between. */
static void find_starts(struct search *s)
{
	while (s->nstarts < CLIMBS) {
		int best = s->nstarts < CLIMB_SHAPES ? best_on_unit(s, OTHER_SHAPES) : NONE;

		if (best == NONE)
			best = best_on_unit(s, OTHER_SHAPES_OR_SPLITS);
		if (best == NONE)
			return;
		s->starts[s->nstarts++] = best;
	}
}

/* ---- climbing ---------------------------------------------------------------------------- */

/* Move to the best candidate of the batch, if it is better by more than the model can tell. */
static void move(struct search *s)
{
	int to = s->at;

	for (int i = 0; i < s->batch.v.n; i++) {
		bool known;
		int k = add_candidate(s, &s->batch.v.v[i], &known);
		const struct tried *x = &s->tried.v.v[k], *y = &s->tried.v.v[to];

		if (x->priced != y->priced ? x->priced : x->seconds < y->seconds * (1 - EQUAL))
			to = k;
	}
	if (to != s->at)
		s->idle = 0;
	else if (s->idle < space_coordinates(&s->space))
		s->idle++;
	s->at = to;
}

/* Exact orders of the loops of the candidate at hand. */
static enum err_code batch_exact_orders(struct search *s, const struct stop *stop, struct err *e)
{
	const struct choice c = s->tried.v.v[s->at].choice;
	enum err_code code = evaluator_build(&s->ev, &c, stop, e);

	if (!code)
		code = exact_orders(&s->space, &c, s->ev.plan, &s->ev.plan->arena, stop, &s->batch, e);
	evaluator_release(&s->ev);
	return code;
}

/* Give the candidate the price of its kernel, whatever its time. One without a kernel is no plan. */
static enum err_code price(struct search *s, int i, const struct stop *stop, struct err *e)
{
	bool full;

	s->tried.sorted = false;
	if (evaluate(&s->ev, i, best_seconds(s), true, stop, &full, e) == ERR_INTERRUPTED)
		return ERR_INTERRUPTED;
	if (isinf(s->tried.v.v[i].seconds))
		s->found--;
	else
		note_best(s, i);
	return OK;
}

/* One more start, if a candidate was overlooked that has a kernel. After half of the plans that it may try a search has looked around. */
static enum err_code add_overlooked(struct search *s, const struct stop *stop, struct err *e)
{
	bool few = s->ev.simulated < s->most - SEARCH_TRIALS_MAX / 2;

	for (int tries = 0; tries < OVERLOOKED && few && s->nstarts <= CLIMBS && !s->space.finer; tries++) {
		int i = overlooked_start(s);

		if (i == NONE)
			return OK;
		if (price(s, i, stop, e) == ERR_INTERRUPTED)
			return ERR_INTERRUPTED;
		if (tried_is_plan(&s->tried.v.v[i])) {
			s->starts[s->nstarts++] = i;
			return OK;
		}
	}
	return OK;
}

/* The neighbours along the next coordinate. After all coordinates brought nothing: exact orders, once; then the next
 * start; at last the best plan, whose neighbours are finer. *more is false if there is no start left. */
static enum err_code batch_next(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	int n = space_coordinates(&s->space);

	s->batch.v.n = s->next = 0;
	if (s->idle == n && !s->space.finer) {
		s->idle++;
		return batch_exact_orders(s, stop, e) == ERR_INTERRUPTED ? ERR_INTERRUPTED : OK;
	}
	if (s->idle >= n) {
		if (s->start + 1 == s->nstarts && add_overlooked(s, stop, e) == ERR_INTERRUPTED)
			return ERR_INTERRUPTED;
		if (++s->start < s->nstarts) {
			s->at = s->starts[s->start];
		} else {
			int best = s->space.finer ? NONE : best_on_unit(s, ALL);

			if (best == NONE) {
				*more = false;
				return OK;
			}
			s->space.finer = true;
			s->at = best;
		}
		s->idle = s->coordinate = 0;
	}
	space_neighbours(&s->space, &s->tried.v.v[s->at].choice, s->coordinate, &s->arena, &s->batch);
	s->coordinate = (s->coordinate + 1) % n;
	return OK;
}

/* Are there any products? Also of vectors, which have no rows. */
static bool multiplies(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_MMA)
			return true;
	return false;
}

/* No usual shape has a plan: smaller and smaller ones are tried, first with products on the matrix unit, then with products
 * by threads. False: there is a plan now, or nothing left. */
static bool batch_smaller(struct search *s)
{
	while (!s->found) {
		s->batch.v.n = s->next = 0;
		if (s->level > SPACE_LEVELS || s->smaller > SMALLER_MOST || s->too_large > TOO_LARGE_MOST) {
			if (s->by_threads || !multiplies(s->space.program))
				return false;
			s->by_threads = true;
			s->level = s->smaller = s->too_large = 0;
		}
		space_smaller(&s->space, s->level++, s->by_threads, &s->arena, &s->batch);
		if (s->batch.v.n)
			return true;
	}
	return false;
}

/* The climb leads from the smaller shapes that have plans to others like them. */
static void add_found_extents(struct search *s)
{
	for (int i = 0; i < s->tried.v.n; i++)
		if (tried_is_plan(&s->tried.v.v[i]))
			space_add_extents(&s->space, &s->tried.v.v[i].choice);
}

/* Fill the batch. *more is false if there is nothing left to try. */
static enum err_code refill(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	*more = true;
	if (s->phase == PHASE_STARTS) {
		s->phase = PHASE_AHEAD;
		s->batch.v.n = s->next = 0;
		batch_ahead(s);
		if (s->batch.v.n)
			return OK;
	}
	if (s->phase == PHASE_AHEAD && !s->found)
		s->phase = PHASE_SMALLER;
	if (s->phase == PHASE_SMALLER && batch_smaller(s))
		return OK;
	if (s->phase != PHASE_CLIMB) {
		if (s->phase == PHASE_SMALLER)
			add_found_extents(s);
		s->phase = PHASE_CLIMB;
		find_starts(s);
		s->start = -1;
		s->idle = space_coordinates(&s->space) + 1;
		s->batch.v.n = 0;
	}
	do {
		if (s->start >= 0)
			move(s);
		TRY(batch_next(s, stop, more, e));
	} while (*more && !s->batch.v.n);
	return OK;
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Price the kernel of the next plan that may be the best when it is measured. *more is false if there is none. */
static enum err_code price_next(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	double worst = MEASURED * best_seconds(s);
	int i = s->priced;

	s->pricing = s->measured;
	while (i < s->tried.v.n && !(tried_is_plan(&s->tried.v.v[i]) && !s->tried.v.v[i].priced &&
	    s->tried.v.v[i].seconds < worst))
		i++;
	s->priced = i;
	*more = s->pricing && i < s->tried.v.n;
	if (!*more)
		return OK;
	s->priced++;
	return price(s, i, stop, e);
}

static bool is_at_memory(const struct search *s)
{
	return best_seconds(s) < s->ev.memory_seconds * (1 + s->space.device->uncertainty_order);
}

/* Were there so few tiles that EUs divide loops? Then how each EU keeps up with memory decides, which units change: 16 rows of 8192 x 8192
 * take 0.034 ms on an H200 with products on mma.sync, and 0.037 with the same products on wgmma. */
static bool has_few_tiles(const struct search *s)
{
	for (int i = 0; i < s->tried.v.n; i++)
		if (s->tried.v.v[i].choice.grid.divided)
			return true;
	return false;
}

/* When nothing is left to try, the search begins again with products on the second matrix unit, if there is one for them: so
 * what it finds is never worse than without. False: it has been there, or there is none; or memory takes the time of a grid of many tiles. */
static bool begin_second(struct search *s)
{
	if (s->space.on_second || s->space.second_unit == NONE || s->neighbours_only || s->pricing ||
	    (is_at_memory(s) && !has_few_tiles(s)))
		return false;
	s->space.on_second = true;
	s->space.has_warp_products = !s->space.device->seu[s->space.second_unit].async;
	s->space.finer = false;
	s->phase = PHASE_STARTS;
	s->most = s->ev.simulated + SEARCH_TRIALS_MAX;
	s->nstarts = s->start = s->idle = s->coordinate = 0;
	s->batch.v.n = s->next = 0;
	space_starts(&s->space, &s->arena, &s->batch);
	starts_choose(&s->space, &s->arena, &s->ev.graph, &s->batch);
	return s->batch.v.n > 0;
}

enum err_code search_step(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	*more = (s->neighbours_only || s->ev.simulated < s->most) && !s->pricing;
	if (*more && s->next == s->batch.v.n) {
		*more = !s->neighbours_only;
		if (*more)
			TRY(refill(s, stop, more, e));
	}
	if (!*more && begin_second(s))
		*more = true;
	if (!*more)
		return price_next(s, stop, more, e);
	if (stop_asked(stop))
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	return try_candidate(s, &s->batch.v.v[s->next++], stop, e);
}

void search_neighbours(struct search *s, int trial)
{
	const struct choice c = s->tried.v.v[trial].choice;

	s->batch.v.n = s->next = 0;
	for (int k = 0; k < space_coordinates(&s->space); k++)
		space_neighbours(&s->space, &c, k, &s->arena, &s->batch);
	s->neighbours_only = true;
	s->pricing = false;
}

/* ---- results ----------------------------------------------------------------------------- */

struct search_result search_best(const struct search *s)
{
	return (struct search_result){ .found = s->found, .seconds = s->best == NONE ? 0 : best_seconds(s),
		.trials = s->ev.simulated, .shapes = s->shapes.n, .pruned = s->ev.pruned, .at_memory = is_at_memory(s),
		.at_limit = s->ev.simulated >= s->most,
		.bound_seconds = isfinite(s->ev.bound_seconds) ? s->ev.bound_seconds : 0,
		.counted_seconds = isfinite(s->ev.counted_seconds) ? s->ev.counted_seconds : 0 };
}

const struct program *search_program(const struct search *s)
{
	return s->space.program;
}

struct search_found search_ranked(struct search *s, int rank)
{
	const struct tried *x = tried_ranked(&s->tried, rank);

	return (struct search_found){ &x->choice, x->seconds, x->priced, x->spare, (int)(x - s->tried.v.v) };
}

bool search_next_tried(const struct search *s, int *at, double *seconds)
{
	while (*at < s->tried.v.n && !s->tried.v.v[*at].simulated)
		++*at;
	if (*at == s->tried.v.n)
		return false;
	*seconds = s->tried.v.v[(*at)++].seconds;
	return true;
}

bool search_is_plan(const struct search *s, int trial)
{
	return trial >= 0 && trial < s->tried.v.n && tried_is_plan(&s->tried.v.v[trial]);
}

enum err_code search_script(struct search *s, int trial, const struct stop *stop, struct buf *out,
	struct tiling *tile, struct err *e)
{
	const struct choice *c = &s->tried.v.v[trial].choice;

	TRY(evaluator_build(&s->ev, c, stop, e));
	for (int i = 0; i < s->nswaps; i++)
		buf_printf(out, "plan:swap(\"%s\")\n", s->swaps[i].product);
	plan_script(s->ev.plan, out);
	*tile = c->tiling;
	evaluator_release(&s->ev);
	return OK;
}

enum err_code search_nearest(struct search *s, const struct stop *stop, struct buf *out, struct tiling *tile,
	struct err *e)
{
	*tile = (struct tiling){ 0 };
	return s->ev.nearest == NONE ? OK : search_script(s, s->ev.nearest, stop, out, tile, e);
}

void search_refusals(const struct search *s, struct buf *out)
{
	evaluator_refusals(&s->ev, out);
}
