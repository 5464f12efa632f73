/* plan.h - which lane runs which sTask, when, and what it waits for.
 *
 * A plan is a value: for each lane an order of entries, waits, versions of buffers, and how output tiles go over the
 * EUs. The checker, the simulator, the search and the lowering all read this one record, by the rules written here, so
 * that they cannot disagree. history.h adds undo.
 *
 * Lanes. A lane is a context of an EU that issues: a producer warp, a consumer warpgroup. It runs the tile loop on its
 * own; only waits bind it to other lanes. In each region it has the entries appended to it for sTasks of that region,
 * in order of appending; a nested loop stands among them where the program has it. A lane without entries in a loop
 * skips it.
 *
 * Iterations. For a region with T iterations, in iteration j the lane executes its entries in order, each for iteration
 * i = j + at, if 0 <= i < T. j runs from -(greatest at) to T - 1 - (least at), so the first and last ones are prologue
 * and epilogue. In the tile loop, T is the number of tiles that the lane gets.
 *
 * Executing. On a synchronous sEU the lane goes on when the sTask is complete, on an asynchronous one as soon as it is
 * issued. On an ordered sEU the sTasks of one lane start and complete in order of issue.
 *
 * Waits. An entry is issued only when each of its sTask's waits is satisfied: with WAIT_COMPLETE when the awaited
 * instances are complete, with WAIT_ISSUED when they are issued. Which instances: let c be the innermost region that
 * holds both; for the waiting instance in iteration s of c's sequence (numbered through over tiles), all instances of
 * the awaited sTask in iteration s - distance; none if that is before the start. Two sTasks of one lane with replicas
 * (below) count only the tiles of their own replica. A wait whose distance is left open (DISTANCE_AUTO) is for those
 * instances that the graph's dependences from the awaited sTask to the waiting one name (a reuse edge with the buffer's
 * versions); if there is none, distance 0. order.h's walk_wait_spans is this rule.
 *
 * Buffers. A buffer has `versions` slots; life s is in slot s mod versions.
 *
 * Tiles. With `replicas` = n, a lane stands for n lanes alike ("c.0", "c.1", ...) of which number t takes the tiles t,
 * t + n, ... that the EU gets. Several EUs may take neighbouring tiles in lockstep, or one tile together: cluster.h.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "graph/graph.h"

struct target;
struct matrix_instruction;

enum { DISTANCE_AUTO = -1, LANES_MAX = 16, VERSIONS_MAX = 64, OFFSET_MAX = 16, SECTION_MOST = 1 << 20, KEEP_MOST = 1024 };
enum { REPLICAS_MAX = 8 };		/* of a lane */

struct lane {
	const char *name;
	int warps;
	int columns;			/* of its warps, each with columns of its own of every value; 0: as products need */
	int registers;			/* of a thread; 0: what the lane needs */
	int spare;			/* registers of a thread that lowering leaves to the compiler, where it has a
					 * choice */
	int replicas;			/* 1 to REPLICAS_MAX */
	int priority;			/* that its warps have while they multiply; 0: that of all others */
	struct srcloc loc;
};

struct entry {
	int task, lane, seu;
	int at;				/* iteration offset */
	struct srcloc loc;
	bool by_rows;			/* a load by the copy engine, which copies each row of the tile by itself, as
					 * indices name the rows (gather) */
};

enum wait_when { WAIT_COMPLETE, WAIT_ISSUED };

struct wait {
	int task, on;
	int distance;			/* or DISTANCE_AUTO */
	enum wait_when when;
	bool added;			/* an edit of versions has added it, and later ones may remove it */
	struct srcloc loc;
};

/* How output tiles go over the EUs. */
enum raster { RASTER_ROWS, RASTER_COLUMNS };

struct grid_plan {
	int eus;			/* used; 0: all that can be */
	enum raster raster;		/* along which of the last two grid axes consecutive tiles lie */
	int group;			/* so many tiles of the other of these axes are taken in each step along it; 1:
					 * one */
	bool longest_first;		/* tiles with most iterations first */
	int section;			/* longest_first orders so many consecutive tiles, then the next ones; 0: all */
	bool dynamic;			/* an EU takes the next tile of the order when it comes free, by a counter in memory */
	int cluster;			/* EUs of a cluster; 1: there are none */
	int keep;			/* so many neighbouring tiles an EU takes one after the other, and copies what they share once
					 * (keep.h); 1: tiles one by one */
	int along;			/* axis along which these tiles, or a cluster's, are neighbours; NONE: that along which the
					 * raster goes first */
	int divided;			/* axis + 1: EUs of a cluster have one tile together, and divide the iterations of loops
					 * over it; 0: they have neighbouring tiles */
	int chiplets;			/* those of the device, each of which takes consecutive tiles; 1: tiles go round them */
};

/* When a kernel lets the one behind it be launched. NEXT_AUTO: as the block begins, if inputs are ready; else as soon as it has waited for
 * what is in front of it, or if each block has one tile whose bytes L2 brings to others, too, when it ends. */
enum launch_next { NEXT_AUTO, NEXT_START, NEXT_LOADED, NEXT_END };	/* ORDER launch next */

/* What kernels of the plan do while what is in front of them runs, where the target lets them (phases.h). */
struct launch_plan {
	enum launch_next next;
	VEC(int) ready;			/* inputs that nothing in front writes, by number: their loads do not wait */
};

/* What changes of an entry; a field that is NULL or not set changes nothing. */
struct move {
	/* the neighbour in the new order, an sTask of the same lane and region. Without one the entry keeps its
	 * position; on another lane it becomes the last of its region */
	const char *before, *after;
	const char *lane, *seu;
	bool set_at;
	int at;				/* if set_at */
	bool set_by_rows, by_rows;	/* likewise */
};

struct plan {
	struct arena arena;
	const struct graph *graph;	/* borrowed */
	const struct vdevice *device;	/* borrowed */
	const struct plan *largest;	/* borrowed: of a plan at sizes (sized.h), that of the largest ones; NULL */
	VEC(struct lane) lanes;
	VEC(struct entry) entries;	/* in order of appending, or as plan_sort says */
	VEC(struct wait) waits;		/* in order of adding, or as plan_sort says */
	int *versions;			/* by buffer */
	struct grid_plan grid;
	struct launch_plan launch;
	struct srcloc made_at;		/* where the plan began */
	/* of the last statements about versions, the grid and the launch; made_at before */
	struct srcloc versions_loc, grid_loc, launch_loc;
	unsigned without;		/* passes of lowering that are left out, to measure what they gain; no
					 * statement of the plan, so it is not in a script */
};

/* graph and device outlive the plan. Free with plan_free. */
struct plan *plan_new(struct mem *mem, const struct graph *g, const struct vdevice *d);
void plan_free(struct plan *p);
/* A copy in memory of its own. *out is set first, so that the caller can free it if memory runs out in here. */
void plan_copy(struct mem *mem, const struct plan *p, struct plan **out);

/* Edits. On failure the plan is as it was. They refuse only what has no meaning; plan_check finds what is wrong. */

/* Take out a lane, which must have no sTasks. */
NODISCARD enum err_code plan_drop_lane(struct plan *p, const char *name, struct srcloc loc, struct err *e);
/* Declare or change a lane: its name, numbers and location. warps 0: 4, or 1 if all it has is copies. */
NODISCARD enum err_code plan_lane(struct plan *p, const struct lane *l, struct err *e);
/* seu NULL: the device's choice for such work. lane NULL: "p0" for an asynchronous
 * copy unit, else "c0". The lane is declared if it was not. */
NODISCARD enum err_code plan_append(struct plan *p, int task, const char *seu, const char *lane,
	int at, struct srcloc loc, struct err *e);
/* ERR_INPUT: the sTask is no load, so it cannot have by_rows. */
NODISCARD enum err_code plan_check_by_rows(const struct plan *p, int task, bool by_rows, struct srcloc loc, struct err *e);
/* Change the entry of an sTask, or its position. A lane is declared if it was not. */
NODISCARD enum err_code plan_move(struct plan *p, int task, const struct move *m, struct srcloc loc, struct err *e);
/* Remove all entries of an sTask. */
NODISCARD enum err_code plan_remove(struct plan *p, int task, struct srcloc loc, struct err *e);
/* An equal wait again changes nothing. */
NODISCARD enum err_code plan_wait(struct plan *p, int task, int on, int distance,
	enum wait_when when, struct srcloc loc, struct err *e);
/* Take out every wait of `task` on `on`. */
NODISCARD enum err_code plan_unwait(struct plan *p, int task, int on, struct srcloc loc, struct err *e);
/* Remove the wait that is equal to this one but for its source location, if there is one. */
void plan_drop_wait(struct plan *p, const struct wait *w);
NODISCARD enum err_code plan_versions(struct plan *p, int buffer, int versions, struct srcloc loc, struct err *e);
NODISCARD enum err_code plan_grid(struct plan *p, const struct grid_plan *g, struct srcloc loc, struct err *e);
/* ready: n names of inputs; n < 0: those of before. */
NODISCARD enum err_code plan_launch(struct plan *p, enum launch_next next, const char *const *ready, int n, struct srcloc loc,
	struct err *e);
/* Does it say nothing of launches that is not so without a statement? */
bool plan_launches_as_usual(const struct plan *p);
extern const char *const launch_next_names[];	/* by enum launch_next */

int plan_find_lane(const struct plan *p, const char *name);	/* NONE */
int plan_entry_of(const struct plan *p, int task);		/* first entry of it, or NONE */
int plan_find_wait(const struct plan *p, const struct wait *w);	/* an equal one; NONE */
int lane_warps(const struct plan *p, int lane);			/* default filled in */
/* The warps of a lane divide the rows of its products among them. If no product of the phase has rows for all of them,
 * or the lane has `columns`, it has several parts, each of complete instructions' warps, which divide the columns of all
 * values. Returns how many; 1: the warps divide rows alone. */
int plan_lane_parts(const struct plan *p, int lane, int phase);
/* The same for one product of so many rows and columns, by the instruction. */
int plan_product_parts(const struct target *t, const struct matrix_instruction *x, int64_t rows, int64_t cols,
	int warps);
bool lane_is_used(const struct plan *p, int lane);		/* has it sTasks? Kernels leave out one that has none */
/* Do texts and pictures of the plan show the unit? Not if it has no sTask and the device has another unit of its kind
 * before it, which is the one that such work gets unless the plan names another. */
bool plan_shows_unit(const struct plan *p, int seu);
/* The distance of a wait as messages say it: if it is open, the least distance of the dependences that it serves. */
int wait_distance(const struct plan *p, const struct wait *w);
/* Iterations between the two ends of an edge under the plan's versions. */
int edge_distance(const struct plan *p, const struct edge *e);
/* Where a buffer lives under this plan: shared if its users are not all on the
 * producer's lane, if it is in any plan of the graph (read_value in build.c), or if a
 * product reads it as its first operand on a unit whose threads each need rows of others. */
enum scope plan_scope(const struct plan *p, int buffer);
/* EUs that get tiles in a phase: grid.eus, or all that can be at work at once; at most
 * the number of tiles; complete clusters (cluster.h). */
int plan_eus(const struct plan *p, int phase);

/* Put entries and waits in the order that a script has, so that equal plans are equal in all lists: entries by lane, and
 * of a lane in the order in which it has them; waits by the sTask that waits, in program order, and of an sTask in the
 * order of the dependences that they serve, those that serve none first. What a plan means stays. */
void plan_sort(struct plan *p);
/* Statements that rebuild the plan on a new one for the program's own graph, a line each, with the variable named
 * `plan`. Equal plans that are sorted print equal text. */
void plan_script(const struct plan *p, struct buf *out);
/* May the name be written as {name=...}? */
bool script_is_key(const char *name);

#endif
