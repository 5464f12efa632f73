/* space.h - the space that a search covers: all choices for a program and a device.
 *
 * A choice holds what a person decides who writes a plan: tile extents, how work is split over lanes, which sTasks run
 * ahead, how deep rings are, in which order tiles are computed. It is a plain value. What follows from these decisions
 * (waits, the versions that an order needs) is not in it: build.h works that out.
 *
 * The space knows which extents and orders there are. This depends on how the program uses each axis (axis_use.h), never on
 * its name. neighbours.h walks through the space. */
#ifndef SEARCH_SPACE_H
#define SEARCH_SPACE_H

#include "search/orders.h"

enum {
	CHOICE_REGIONS = 8,		/* loops and phases whose orders are chosen; others keep the program's */
	EXTENTS_MAX = 24,		/* of an axis */
	CONVERSIONS_MAX = 4,
	SPACE_LEVELS = 24,		/* most halvings of smaller shapes */
	LOADS_MAX = 16,
	GROUPS_MOST = 3,		/* lanes with sTasks of their own */
	SPACE_ROWS = 64,		/* rows of a product: those of a warpgroup's matrix instruction */
	SPACE_COLUMNS = 16,		/* columns of a product come in steps of so many */
	SPACE_PRODUCT_MOST = 256,	/* rows or columns of a tile: the most columns of a matrix instruction */
	SECTION_TILES = 4,		/* of an EU in a section of the first choice */
	SPACE_SHORT_AXIS = 64,		/* below this size, an axis of the grid gets a few small extents */
};

/* What is split over the computing lanes: rows or columns of products; or the axis that products contract: then each lane
 * makes a slice of the operands, and one lane computes the products. Or nothing is split, and each lane has sTasks of its
 * own (task_groups.h). */
enum split_kind { SPLIT_ROWS, SPLIT_COLUMNS, SPLIT_DEPTH, SPLIT_TASKS };

/* How two lanes divide what is loaded: not at all, there is one; each has every other load of loops (of a program without loops,
 * of tiles); or the second has what a tile loads ahead of its loops, or behind them: a full slot of one then does not keep the
 * other from loading ahead; or it has loads that leave out what their slots have (plan/keep.h). */
enum load_division { LOADS_TOGETHER, LOADS_ALTERNATE, LOADS_AHEAD, LOADS_BEHIND, LOADS_KEPT, LOAD_DIVISIONS };

struct choice {
	struct tiling tiling;
	bool split_off;			/* conversions of what products read are sTasks of their own */
	int ways, warps, replicas;	/* computing lanes, of which each has one slice; warps and replicas of each */
	int columns;			/* of these warps, where products are synchronous; 0: limit_columns decides */
	enum split_kind split;
	bool second_split;		/* what the split leaves undivided is split along another axis (second_split.h) */
	/* The lanes that load. Threads copy what no copy engine can bring: then it matters how many there are. */
	enum load_division load_lanes;
	int load_warps;			/* of each; 0: the plan does not say, so one */
	int load_registers;		/* of their threads; 0: the plan does not say */
	/* bits, by space_load_index: what threads copy although the plan gives it to an engine. Lanes without any, and
	 * without loads_by_threads, have one warp. */
	unsigned copied_loads;
	unsigned loads_by_threads;	/* bits, by space_load_index: loads that threads copy, not a copy engine */
	bool loads_by_dma;		/* the others are on the space's unit of copies without registers */
	unsigned loads_by_rows;		/* ... that an engine brings row by row (entry.by_rows) */
	int order[CHOICE_REGIONS];	/* by region (space_order_index): index into the space's orders */
	bool issue_order;		/* lanes agree on who issues products next */
	unsigned extra_versions;	/* bits, by order_value: values with 2 versions, or what the order needs */
	/* Shared memory that the plan may take, where a kernel needs more than the plan says: for layout conversions
	 * and stores. 0: all. Another tile, other lanes or stores need something else, so these begin with 0. */
	int64_t ring_bytes;
	int ring_depth;			/* most versions of rings that loads of loops fill (else of tiles) ... */
	unsigned deeper_rings;		/* ... and bits: which of these rings get one version more */
	int tile_versions;		/* most versions of what is loaded once a tile and read by a loop */
	bool stores_by_threads;		/* threads store results, not a copy engine */
	bool products_by_threads;	/* threads compute products, not the matrix unit */
	bool on_second;			/* products are on the space's second matrix unit */
	struct grid_plan grid;
};

/* The extents of one tiled axis, in increasing order. */
struct dim {
	int axis, n;
	int multiple;			/* of which all extents are, or the axis's size: elements of a packed word */
	bool few;			/* tiles: fewer than EUs, if extents are usual ones */
	bool wanted;			/* the caller has given the extents */
	bool contracted;		/* by products; of these no rows or columns */
	bool product;			/* rows or columns of products */
	bool is_short;			/* ... that have a few small extents */
	int64_t extent[EXTENTS_MAX];
	uint32_t starts;		/* bits: the extents that the search starts from */
	const struct side *side;	/* together with other axes (sides.h); NULL */
	int at;				/* ... its position there */
};

/* What the caller asks for: n[axis] extents of an axis; n[axis] 0: the space decides. */
struct wanted {
	bool measured;			/* plans will be measured: good ones get the price of their kernels */
	bool swapped;			/* products have their operands exchanged where that may pay (swaps.h) */
	bool windowed;			/* loads whose windows overlap are one load (program_window) */
	uint64_t ready;			/* bit t: plans say that input t of the program is ready (struct launch_plan) */
	int n[AXES_MAX];
	int64_t extent[AXES_MAX][EXTENTS_MAX];
};

/* The orders of each region, for one value of choice.split_off. */
struct variant {
	bool exists;
	struct orders orders[CHOICE_REGIONS];
};

struct space {
	struct arena *a;		/* all pointers here are borrowed */
	struct mem *mem;
	const struct program *program;
	const struct vdevice *device;
	int ndims;
	struct dim *dims;
	int nsides;
	struct side *sides;		/* sides.h */
	int nconversions;
	struct split_off conversions[CONVERSIONS_MAX];
	int nwindows;			/* of loads, which each choice has whose tile lets several of them read the same */
	struct window *windows;
	int naliases;			/* of values that conversions read */
	struct alias aliases[CONVERSIONS_MAX];
	uint64_t ready;			/* as wanted */
	bool has_products;		/* with rows: not of a vector and a matrix */
	bool has_warp_products;		/* a synchronous matrix unit makes some of them */
	bool wants_rows;		/* the caller has given extents of such rows */
	/* A matrix unit that takes less time for the products than the one that such work goes to, as they have so few rows;
	 * NONE. And whether choices to start from have products there. */
	int second_unit;
	bool on_second;
	int dma_unit;			/* of copies without registers, which a lane counts; NONE */
	int nloads;			/* the program's, LOADS_MAX at most */
	int ngroups;			/* of sTasks that lanes can have for themselves, GROUPS_MOST at most */
	bool uneven;			/* loops of some tiles have more iterations than those of others */
	uint64_t kept_axes;		/* bit a: tiles that are neighbours along it load much of the same bytes (plan/keep.h) */
	bool finer;			/* neighbours include those that seldom pay: for the best plan alone */
	int copy_registers;		/* lower_copy_registers of the device */
	bool has_boxes;			/* the device's engine copies boxes, so also rows one by one */
	struct err unbuilt;		/* why there is no graph, if no variant exists */
	struct variant variants[2];	/* by choice.split_off */
};

/* Find the space, in `a`. want: NULL, or what the caller asks for. windows: of loads, which are borrowed.
 * *graph is NULL when this returns; if `a` runs out of
 * memory and the caller is left by a jump, it must free the graph that *graph then points to. ERR_INPUT if extents are
 * wanted of an axis that is not tiled. */
NODISCARD enum err_code space_init(struct space *s, struct arena *a, struct mem *mem,
	const struct program *p, const struct vdevice *d, const struct wanted *want, struct window *windows, int nwindows,
	struct graph **graph,
	struct err *e);

/* Does a tile load anything ahead of the loops of a phase, or behind one? */
bool space_has_tile_loads(const struct program *p, bool behind);
/* Equal choices have equal hashes; different ones hardly ever do. */
uint64_t choice_hash(const struct choice *c);

/* The choice with the space's first extents, and usual values of everything else. */
struct choice space_first_choice(const struct space *s);
/* Shapes that are smaller than all that the search starts from: dimension d has its least start halved[d] times. Goes
 * over those with `level` halvings in all, for which *halved begins as zeros; false: there is no further one. *c gets
 * the extents. */
bool space_next_smaller(const struct space *s, int level, int halved[AXES_MAX], bool *begun, struct choice *c);
/* Adds the extents of such a shape to the space, so that neighbours lead from it. */
void space_add_extents(struct space *s, const struct choice *c);

/* The unit of such work in plans of the choice, if no bit of it says otherwise; NONE. c NULL: the usual choice. */
int space_unit(const struct space *s, const struct choice *c, const struct work *w);

/* The bit of choice.loads_by_threads of an sTask of the graph; NONE: it is no load, or has no bit. */
int space_load_index(const struct graph *g, int task);

/* The index in choice.order of a loop, or (loop NONE) of the tiles of a phase without loops. NONE if its order is not
 * chosen. */
int space_order_index(const struct program *p, int phase, int loop);
/* The axis that a choice splits over lanes: a tiled output axis of the products' rows or columns, or an axis that they
 * contract. Of several axes it is the outermost, as a slice must be contiguous. NONE if there is none. */
int space_split_axis(const struct program *p, const struct choice *c);

#endif
