/* graph.h - the sTask-graph: what one tile shape makes of a program.
 *
 * graph_build is Propagate: it takes a bound program and a tile shape and says which sTasks there are, what each costs
 * (struct work), which buffers carry values between them, and which dependences bind them. It knows nothing of lanes,
 * orders or devices; those are the plan's.
 *
 * Regions. The sTasks of a phase stand in a tree of sequential loops. The root is the *tile loop*: an EU works through
 * its output tiles one after the other. A region is named by its loop id, the root by NONE.
 *
 * Instances. An sTask runs once an iteration of its region. The iterations of a region are numbered through over all
 * tiles that an EU gets: its *sequence*.
 *
 * Dependences. An edge from -> to with (loop, distance) says: every instance of `from` in iteration s - distance of
 * region `loop` comes before every instance of `to` in iteration s of that region. Edges are of two sorts:
 *   - within one life of a buffer: iterations are counted within one output tile (or surrounding iteration); nothing is
 *     owed where s - distance is before its start;
 *   - reuse: the buffer's versions form a ring over the sequence of its region, and the writer of life s must wait for
 *     the users of life s - versions. For these `distance` counts lives for each version the plan gives the buffer
 *     (it is 1).
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/buf.h"
#include "device/device.h"
#include "tile/extent.h"

enum edge_kind { EDGE_FLOW, EDGE_ANTI, EDGE_OUTPUT };

/* Where a value is stored if its producer and its users are on one lane: in shared memory if it is loaded, if it is a
 * second operand, if its users have other slices than its producer, or if products have different axes of it as rows.
 * In a plan, a value in registers moves to shared memory if another lane uses it. */
enum scope { SCOPE_REGISTERS, SCOPE_SHARED };

struct stask {
	const char *name;		/* program task's, with ".0", ".1" for the slices of a split */
	int task;			/* program task */
	int slice, slices;		/* 0 of 1 if not split */
	int split_axis;			/* NONE */
	enum task_kind kind;
	int phase, loop;
	int position;			/* in program order */
	int naxes;			/* shape of the output tile */
	int axis[RANK_MAX];
	int64_t extent[RANK_MAX];
	struct work work;
	struct ints reads, writes;	/* buffers */
	struct srcloc loc;
};

struct buffer {
	const char *name;		/* the producing task's or carry's, made unique */
	int node, carry;		/* what it holds: a node's value or a carry; the other NONE */
	int slice, slices;
	bool together;			/* an sTask reads several slices, which are then stored as one tile */
	enum scope scope;
	bool staged;			/* loaded: in registers, each thread has what it copies until another sTask
					 * writes it to shared memory */
	bool matrix_b;			/* read as the second operand of a product */
	bool matrix_a;			/* ... as the first */
	enum dtype type;		/* of the node or carry, or that of the tensors to which it is only stored */
	int naxes;
	int axis[RANK_MAX];
	int64_t extent[RANK_MAX];
	int64_t elements, bytes;	/* of a loaded value, neighbours that are one element of the tensor take its
					 * bytes once */
	int phase, loop;		/* region whose iterations are its lives */
	int first;			/* the task that begins a life */
	int alias_of;			/* the buffer whose registers or slots it reuses after that was read; NONE */
	struct srcloc loc;
};

struct edge {
	int from, to;			/* sTasks */
	enum edge_kind kind;
	int loop;			/* region that distance counts iterations of */
	int distance;
	bool reuse;			/* distance is multiplied by the buffer's versions */
	bool chain;			/* both accumulate into the same carry on a matrix unit:
					 * the unit's own order is enough */
	int buffer;
};

/* Divide the named program tasks into `ways` slices along an axis. */
struct split {
	int axis, ways;
	int ntasks;
	const int *tasks;		/* program task ids */
};

/* Trip counts of a loop over the tiles of its phase's grid. */
struct trips {
	int64_t least, most;
	double mean;
};

/* Let value `what` use the registers or the memory of value `of`; names without the slice's number. */
struct alias {
	const char *what, *of;
	struct srcloc loc;
};

/* What a plan changes of a program's tasks and values, apart from tile extents. */
struct shaping {
	const struct window *windows;	/* of the program's loads, before all else */
	int nwindows;
	const struct split_off *split_offs;		/* of values, in the order of their new tasks */
	int nsplit_offs;
	const struct fetch *fetches;	/* of operands, likewise; their tasks come behind those */
	int nfetches;
	const struct direct *directs;	/* values that tasks make where products take them */
	int ndirects;
	const struct swap *swaps;	/* products whose operands are exchanged */
	int nswaps;
	const struct split *splits;	/* of the tasks, those that are split off or fetch among them */
	int nsplits;
	const struct alias *aliases;
	int naliases;
};

/* The tasks that a split along an axis means if it names none: all that have the axis in their result, but loads and what
 * is split off from them; and those that `how` adds, if their values have it (those ids follow the program's). how NULL:
 * none. out is large enough for all tasks. Returns how many. */
int split_all(const struct program *p, const struct shaping *how, int axis, int *out);

struct graph {
	struct arena arena;
	const struct program *program;	/* borrowed, outlives the graph; with windows, split_offs, fetches, directs and swaps applied */
	const struct program *source;	/* borrowed; the program without these: what the plan is to compute */
	struct window *windows;		/* whose loads are one load; names alone */
	int nwindows;
	const char **split_offs;	/* of its last tasks but nfetches, which are split off from others: the values' names */
	int nsplit_offs;
	const char **fetches;		/* of its last tasks, which fetch operands: the values' names */
	int nfetches;
	const char **directs;		/* names of values that are made where products take them */
	int ndirects;
	const char **swaps;		/* names of products whose operands are exchanged */
	int nswaps;
	struct tiling tiling;		/* as asked for */
	struct extents extents;
	VEC(struct stask) tasks;	/* in program order */
	VEC(struct buffer) buffers;
	VEC(struct edge) edges;
	int *first_in;			/* by sTask: the first edge that ends there; NONE */
	VEC(int) next_in;		/* by edge: the next one that ends at the same sTask */
	struct trips *trips;		/* by loop id */
	struct grid *grids;		/* by phase */
};

/* Can the loads of the window be one load in tiles of that extent, and do they read anything twice? Scratch memory in `a`. */
bool graph_has_window(struct arena *a, const struct program *p, const struct tiling *t, const struct window *w);
/* how NULL: tasks and values as they are. ERR_INPUT names the axis, task or value; ERR_LIMIT if the
 * grid has more than 2^31 tiles. */
NODISCARD enum err_code graph_build(struct mem *mem, const struct program *p,
	const struct tiling *t, const struct shaping *how, struct graph **out, struct err *e);
void graph_free(struct graph *g);
/* The same graph where axis a has sizes[a] elements (program_at_sizes): the tiles and what sTasks are stay; the
 * grids and the trip counts are those of the sizes. It borrows from g, is in `a`, and is not to be freed. */
const struct graph *graph_at_sizes(struct arena *a, const struct graph *g, const int64_t *sizes);

/* Append an edge, to first_in and next_in, too; first_in is NONE where there is none yet. */
void graph_add_edge(struct graph *g, struct edge e);

/* Does the list have the buffer, or an alias of it? */
static inline bool graph_holds_storage(const struct graph *g, const struct ints *list, int buffer)
{
	for (int i = 0; i < list->n; i++)
		if (list->v[i] == buffer || g->buffers.v[list->v[i]].alias_of == buffer)
			return true;
	return false;
}

int graph_find_task(const struct graph *g, const char *name);		/* NONE */
int graph_find_buffer(const struct graph *g, const char *name);	/* NONE */
static inline bool stask_reads(const struct stask *s, int buffer)
{
	return ints_hold(s->reads.v, s->reads.n, buffer);
}

static inline bool stask_touches(const struct stask *s, int buffer)
{
	return stask_reads(s, buffer) || ints_hold(s->writes.v, s->writes.n, buffer);
}

/* The last node of the sTask's task: a product, a load, a store; NULL if the task has none. */
static inline const struct node *stask_last_node(const struct graph *g, const struct stask *s)
{
	const struct task *t = &g->program->tasks.v[s->task];

	return t->nodes.n ? &g->program->nodes.v[t->nodes.v[t->nodes.n - 1]] : NULL;
}

/* Does the sTask fetch an operand of a product? Then which product, and which operand of it. */
static inline bool stask_fetches(const struct graph *g, const struct stask *s)
{
	return g->program->tasks.v[s->task].fetches;
}
/* Does it make an operand of products itself, where these take it? */
static inline bool stask_is_direct(const struct graph *g, const struct stask *s)
{
	return g->program->tasks.v[s->task].direct;
}
static inline bool stask_makes_operand(const struct graph *g, const struct stask *s)
{
	return stask_fetches(g, s) || stask_is_direct(g, s);
}
/* Of either kind: a product that takes the operand, and which operand of it. */
const struct node *graph_fetched_for(const struct graph *g, const struct stask *s, int *arg);

/* Does the sTask stand in a loop that makes no iteration in any tile? */
bool graph_never_runs(const struct graph *g, int task);
/* How often region `loop` runs in one iteration of `outer`, in the mean; NONE: in a tile. */
double graph_runs(const struct graph *g, int loop, int outer);
/* How often the sTask runs in all tiles: of a loop that EUs of a cluster divide, the parts of all of them. */
double graph_all_runs(const struct graph *g, const struct stask *s);
/* Innermost region that holds both sTasks. */
int graph_common_loop(const struct graph *g, int a, int b);
/* Total flops of the program's products, without those of elements that a ragged tile does not have, and once of what
 * several tiles multiply again as they share an axis (repeats.h); and the bytes
 * that device memory must move: each element once that is loaded or stored. If values name elements, those of
 * different indices are taken to differ, as far as the tensor has so many. */
double graph_flops(const struct graph *g);
double graph_bytes(const struct graph *g);
/* The part of them that is stored, but for additions, which may stay in L2. */
double graph_stored_bytes(const struct graph *g);
const char *edge_kind_name(enum edge_kind k);
const char *task_kind_name(enum task_kind k);

#endif
