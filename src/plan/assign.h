/* assign.h - tiles to EUs: which tiles each EU gets, and which EUs are alike.
 *
 * The grid's tiles are assigned in the plan's order, tile t to EU t mod n, or, longest first, to the EU that has the
 * fewest iterations so far: all tiles, or, in sections, those of one after those of the one before; dynamic ones go to the EU
 * that comes free, as the kernel finds out. With chiplets the EUs
 * are taken in another order, those of a chiplet one after the other. Where EUs form clusters (cluster.h), groups of tiles
 * are assigned to clusters in the same way, a tile of the group to each EU; with grid.keep (keep.h) groups are assigned to
 * EUs, each of which takes the tiles of its groups one after the other.
 *
 * EUs differ only in their tiles, and tiles only in how often their loops run. So EUs whose tiles have the same trip
 * counts in the same order do the same, cycle for cycle, and one of them stands for all.
 */
#ifndef PLAN_ASSIGN_H
#define PLAN_ASSIGN_H

#include "plan/plan.h"
#include "tile/raster.h"

/* The order in which the grid's tiles are taken, and how many and which each EU
 * gets: tiles of EU u are order[start[u]] .. order[start[u + 1] - 1]. */
struct tile_assignment {
	int eus;
	int cluster;			/* EUs of a cluster, which have consecutive numbers; 1: there are no clusters */
	int64_t total;			/* tiles, including those that fill up groups of clusters (cluster.h) */
	int64_t *order;
	int64_t *start;			/* eus + 1 */
};

/* In `a`. */
void plan_assign_tiles(struct arena *a, const struct plan *p, int phase, struct tile_assignment *out);

/* With plan:grid{dynamic=true} which EU has a tile is known only when the kernel runs. What is assigned then is what the model
 * assumes: EUs that are equally fast, each of which takes the next tile when it has done its last one.
 *
 * The tiles of such a phase in the order in which they are taken: the first `own` rounds one by each EU, and then by
 * whichever comes free. All tiles of the phase, in `a`. */
int64_t *plan_order_tiles(struct arena *a, const struct plan *p, int phase);

/* How many rounds: an EU need not ask for its first tile, nor, where all tiles have the same work, for those that it begins to load
 * at once, as many as rings have versions: half of its tiles at most, unless rings hold all. */
int plan_own_tiles(struct arena *a, const struct plan *p, int phase);

/* Does EU u get the tiles at the positions u, u + n, u + 2 n, ... of a raster, of n EUs, in this order, at the sizes of the plan, which
 * are those of all launches? If tiles are dynamic: are they taken in the order of a raster? Then *out is that raster, with which a
 * kernel computes its tiles: tables are two reads of memory, one after the other, before it can load anything. */
bool plan_raster(struct arena *a, const struct plan *p, int phase, struct tile_raster *out);

/* An upper bound of the tiles that one EU gets, over all sizes that a launch may give. They are counted without
 * assigning them, unless longest_first is set and tiles differ. */
int64_t plan_most_tiles(struct arena *a, const struct plan *p, int phase);

/* A cache of assignments, for a caller with many plans of one program and device, most of which assign tiles in the
 * same few ways. */
enum {
	ASSIGNMENTS_KEPT = 32,
	TILES_KEPT = 1 << 20,		/* in all of them together; the newest is kept even if it alone has more */
};
struct kept_assignment {
	uint64_t key;			/* 0: this entry is empty */
	struct arena arena;		/* has the memory of the other members */
	struct tile_assignment of;
	/* What the simulator has computed from it; NULL: not yet */
	struct eu_class *classes;	/* as eu_classes finds them */
	int nclasses;
	struct fetched *fetched;	/* by task of the program (sim/traffic.h) */
};
struct assignment_cache {
	struct kept_assignment v[ASSIGNMENTS_KEPT];	/* a ring of n entries, of which `oldest` is the first */
	int n, oldest;
	int64_t tiles;
};
void assignment_cache_init(struct assignment_cache *d, struct mem *mem);
void assignment_cache_free(struct assignment_cache *d);
/* What plan_assign_tiles computes, from the cache if it is there. Valid until the next call. */
struct kept_assignment *assignment_of(struct assignment_cache *d, const struct plan *p, int phase);

/* The work of a tile of the grid: the iterations of all its loops, and 1 for what is outside of loops. */
int64_t tile_iterations(const struct graph *g, int phase, int64_t tile);

struct eu_class {
	int eu;				/* the first of them */
	int members;
	int64_t work;			/* tile_iterations of all tiles of a member */
	bool alike;			/* all tiles of the phase have the same trip counts */
};

/* The classes of an assignment, in `a`, by decreasing work. Returns how many, at least 1. */
int eu_classes(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d,
	struct eu_class **out);

#endif
