/* order.h - a plan's entries in the order in which a lane executes them.
 *
 * The one reading of plan.h's rules on iterations, sequences and awaited instances; the checker and the simulator both
 * walk plans through this cursor.
 *
 * Counting. Over the tiles that one EU gets, region r runs through a sequence of iterations. A `walk` holds, for a list
 * of tiles, how many iterations every loop makes in each iteration of its parent, so that any instance is named by its
 * task and its sequence number in the task's own region.
 */
#ifndef PLAN_ORDER_H
#define PLAN_ORDER_H

#include "plan/plan.h"

/* Iteration counts of one phase over a list of tiles. */
struct walk {
	const struct graph *graph;
	int phase;
	int ntiles;
	/* cum[l][s]: iterations of loop l before iteration s of its parent (tile s, if
	 * the parent is the tile loop); s up to and including the parent's count. */
	int64_t **cum;
	int64_t *count;			/* by loop: iterations in all */
	int64_t **parent;		/* parent[l][i]: parent iteration of iteration i of loop l */
	int *replicas;			/* by edge: edge_replicas of the plan that is walked; 0: not asked for yet */
};

/* Trip counts from the program's bounds for these tiles of the grid (EU order). */
void walk_init(struct arena *a, struct walk *w, const struct graph *g, int phase, int ntiles, const int64_t *tiles);
/* The same, with counts given: of loop l in tile t, trips[l * ntiles + t] (for nested
 * loops, in every parent iteration of the tile). */
void walk_init_counts(struct arena *a, struct walk *w, const struct graph *g, int phase,
	int ntiles, const int64_t *trips);
/* The same, with counts for each iteration of the region around: in iteration s of that region, loop l makes trips[l *
 * steps + s] iterations; the last count of a loop holds from there on. */
void walk_init_trips(struct arena *a, struct walk *w, const struct graph *g, int phase,
	int ntiles, int steps, const int16_t *trips);

/* Iterations of region `loop` (NONE: tiles) in all. */
int64_t walk_count(const struct walk *w, int loop);
/* Iteration of region `outer` that iteration s of `loop` belongs to. */
int64_t walk_outer(const struct walk *w, int loop, int64_t s, int outer);
/* Number of iterations of `loop` in the first n iterations of `outer`. */
int64_t walk_inner(const struct walk *w, int outer, int64_t n, int loop);

/* Instances [first, last) of a task's sequence. */
struct span {
	int64_t first, last;
};
/* The instances of `from` that a wait of `to` means for instance s of `to`, at a distance of d iterations of region c.
 * If both are on one lane with replicas, only that replica's tiles are counted. */
struct span walk_span(const struct walk *w, const struct plan *p, int from, int to, int c, int d, int64_t s);
/* The same for an edge of the graph, by graph.h's rules (life and reuse). The plan is the same, with the same lanes, in all calls for
 * one walk. */
struct span walk_edge_span(const struct walk *w, const struct plan *p, const struct edge *e, int64_t s);
/* Of how many tiles one counts for the lives that a reuse edge is about: a lane's
 * replicas if the buffer is in its registers, else 1. */
int edge_replicas(const struct plan *p, const struct edge *e);

/* Dependences between two sTasks differ in their region or their distance. */
enum { SPANS_MAX = (LOOP_DEPTH_MAX + 1) * (VERSIONS_MAX + 1) };
/* What wait `wt` of instance s of its sTask asks for: up to SPANS_MAX spans of
 * instances of wt->on, none of them empty. Returns how many. */
int walk_wait_spans(const struct walk *w, const struct plan *p, const struct wait *wt, int64_t s, struct span *out);

/* A lane's order in one region, as structure: entries and nested loops. */
struct order_step {
	bool is_loop;
	int id;				/* entry or loop */
};
bool lane_has_loop(const struct plan *p, int lane, int loop);	/* an sTask inside the loop */
/* In `a`; *least and *most: of the entries' offsets and 0. Returns how many. */
int order_steps(struct arena *a, const struct plan *p, int lane, int phase, int loop,
	struct order_step **steps, int *least, int *most);

struct instance {
	int entry;			/* index into plan.entries */
	int64_t seq;			/* in the region of its task */
};

struct cursor;				/* a lane's position in its order */

/* replica: which of the lane's replicas. In `a`; plan and walk outlive it. */
struct cursor *cursor_new(struct arena *a, const struct plan *p, const struct walk *w, int lane, int replica);
/* False at the end. */
bool cursor_next(struct cursor *c, struct instance *out);

#endif
