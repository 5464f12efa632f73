/* traced.h - what a traced kernel has more than another: room for time stamps, and who leaves
 * them. Filled in by lower_stamps (stamps.h), zero in other kernels.
 */
#ifndef LOWER_TRACED_H
#define LOWER_TRACED_H

#include "base/arena.h"

/* The time stamps of an sTask. */
struct record {
	int64_t at;			/* in words from the tile's */
	int words;			/* of one iteration */
	int64_t keep;			/* iterations of a tile that leave some */
	int groups, body, drain;	/* positions in it; NONE */
};

struct traced_lane {
	int64_t held_at;		/* of the tiles held: bytes, of shared memory */
	int64_t out_at;			/* of all its tiles: words, from the block's */
	int64_t tile_words;
	int64_t tiles_held;		/* of its own tiles so many at a time, before they go out */
	int64_t tiles_out;		/* so many go out at most; a multiple */
};

/* A warp that has nothing else to do stamps when copies complete. */
struct watch {
	int flag, warp;
	int64_t ended;			/* in shared memory: a word that ends it */
	int64_t at, keep;		/* its words, from the block's: one an instance */
};

struct traced {
	int64_t words;			/* of a block; 0: the kernel is not traced */
	int64_t tiles;			/* so many tiles of a block are kept */
	VEC(struct watch) watches;
};

#endif
