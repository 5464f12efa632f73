/* space.h - what a search chooses from.
 *
 * A choice is what a person decides who writes a plan: tile extents, how rows go over
 * lanes, which sTasks run ahead of others, how deep rings are, how tiles go over the
 * EUs. It is a plain value, and says nothing that build.h could work out itself: waits
 * and the versions that an order needs follow from the order.
 *
 * The space knows, for a program and a device, where to start (space_starts) and what
 * lies beside a choice along one coordinate (space_along). What it offers depends on the
 * kind of each axis (rows or columns of a product, contracted, looped over, or none of
 * it) and never on a name.
 */
#ifndef SEARCH_SPACE_H
#define SEARCH_SPACE_H

#include "search/orders.h"

enum {
	CHOICE_LOOPS = 8,		/* regions whose orders are chosen; of others, the program's */
	CHOICES_MAX = 24,		/* extents of an axis, and choices along any coordinate */
	CUTS_MAX = 4,
};

/* Rows or columns of products; or neither, but of what products contract: those who make their operands work in
 * parts, and one lane has the products. */
enum parts { PARTS_ROWS, PARTS_COLUMNS, PARTS_DEPTH };

struct choice {
	struct tiling tiling;
	bool cut;			/* what products read is converted by sTasks of its own */
	int ways, warps, replicas;		/* of the lanes that compute: slices, warps and replicas of each */
	enum parts parts;		/* what they have a part of each */
	int order[CHOICE_LOOPS];	/* by region (space_region): one of the space's orders */
	bool in_turn;			/* lanes take turns on the matrix unit */
	unsigned versions;		/* bits, by order_value: values with one version more than needed */
	int depth;			/* most versions of rings that loads fill ... */
	int deeper;			/* ... and how many of them get one more than all */
	int tiles;			/* most versions of what is loaded once a tile and read by a loop */
	bool by_threads;		/* stores by threads, not by an engine */
	struct grid_plan grid;
};

/* Extents that make sense for one tiled axis, in order. */
struct dim {
	int axis, n;
	int64_t extent[CHOICES_MAX];
	uint32_t coarse;		/* bits: those to start from */
};

/* What the caller wants: extents of some axes, n of axis a; 0: what suits it. */
struct wanted {
	bool measured;			/* many plans are to be measured: all good ones get a kernel's price */
	int n[AXES_MAX];
	int64_t extent[AXES_MAX][CHOICES_MAX];
};

/* The orders of each region, of the program as it is and with its conversions cut off. */
struct variant {
	bool exists;
	struct orders orders[CHOICE_LOOPS];
};

struct space {
	struct arena *a;		/* borrowed, as all here */
	struct mem *mem;
	const struct program *program;
	const struct vdevice *device;
	int ndims;
	struct dim *dims;
	int ncuts;
	struct cutting cuts[CUTS_MAX];
	int nplaces;			/* of values that are made for those */
	struct placing places[CUTS_MAX];
	bool has_products;
	bool uneven;			/* tiles differ in how often their loops run */
	struct variant variants[2];	/* by choice.cut */
};

/* What the space is, in `a`. want: NULL for what suits. *held is a graph in the making, to be freed by who
 * is left by a jump; NULL when this returns. ERR_INPUT if an axis is wanted that no tile cuts. */
NODISCARD enum err_code space_init(struct space *s, struct arena *a, struct mem *mem,
	const struct program *p, const struct vdevice *d, const struct wanted *want, struct graph **held,
	struct err *e);

/* Choices to begin with, in `a`: usual extents and lanes, every loop in the program's order. */
struct choices {
	VEC(struct choice) v;
};
void space_starts(const struct space *s, struct arena *a, struct choices *out);
/* The same with most that runs ahead in every loop, and versions for it. False: nothing can. */
bool space_ahead(const struct space *s, const struct choice *c, struct choice *out);

/* How many coordinates a choice has, and all that differ from it along one. */
int space_coordinates(const struct space *s);
void space_along(const struct space *s, const struct choice *c, int coordinate, struct arena *a,
	struct choices *out);

/* Equal choices have equal numbers; others hardly ever do. */
uint64_t choice_hash(const struct choice *c);

/* The number of a loop among the regions whose orders are chosen, or of a tile (loop NONE) in a phase that
 * has no loops. NONE: it is none of them. */
int space_region(const struct program *p, int phase, int loop);
/* The axis along which a choice splits work over lanes: the tiled output axis of the products' rows, which first
 * operands have, or of columns; of several the outermost, since those of a part must lie together; or an axis that
 * products contract. NONE. */
int space_split_axis(const struct program *p, const struct choice *c);

#endif
