/* traced.h - what a traced kernel has in addition: memory for time stamps, and which warps store them. Filled in by
 * lower_stamps (stamps.h), zero in other kernels. */
#ifndef LOWER_TRACED_H
#define LOWER_TRACED_H

#include "base/arena.h"

/* The time stamps of an sTask. */
struct record {
	int64_t at;			/* offset from the tile's first word, in words */
	int words;			/* of one iteration */
	int64_t keep;			/* iterations of a tile that are recorded: the first ones */
	int groups, body, drain;	/* positions in it; NONE */
};

struct traced_lane {
	int64_t held_at;		/* of the tiles held: bytes, of shared memory */
	int64_t out_at;			/* of all its tiles: words, from the block's */
	int64_t tile_words;
	int64_t tiles_held;		/* of its own tiles so many at a time, before they go out */
	int64_t tiles_out;		/* so many go out at most; a multiple */
};

/* An otherwise idle warp that waits on a flag of a load and stamps when each copy completes. */
struct watch {
	int flag, warp;
	int64_t ended;			/* offset in shared memory of a word that tells the warp to end */
	int64_t at, keep;		/* its words, from the block's: one an instance */
};

struct traced {
	int64_t words;			/* of a block; 0: the kernel is not traced */
	int64_t tiles;			/* so many tiles of a block are kept */
	VEC(struct watch) watches;
};

#endif
