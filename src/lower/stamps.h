/* stamps.h - where a traced kernel leaves its time stamps.
 *
 * A traced kernel is the kernel, statement for statement, with stamps in between. A stamp is the low half of the EU's
 * clock, written by the lane's first warp to a word of its own in shared memory, which takes no register for long and
 * waits for nothing. Shared memory holds the words of so many tiles of a lane (tiles_held). Before one more begins, and
 * when the lane has ended, that warp brings their words to device memory: not between any two tiles, since a pause of
 * one warpgroup there changes how those of a lane follow each other from then on.
 *
 * A block's words there are a head, then for each lane a head and the words of its tiles. Those of a tile are the stamp
 * of its end, then for each of the lane's entries a record an iteration. A record holds, in order, a stamp
 *
 *	behind the waits that are seen by flags: behind the last of those in a row that are
 *	for completion, or for issue;
 *	behind the wait for the lane's own groups, if waits_groups;
 *	behind the last statement: what is synchronous is done, what is not is issued;
 *	behind the wait for the groups then under way, if drains.
 *
 * No lane learns that a copy has completed unless it waits for it. But where a lane has fewer warps than a warpgroup, a
 * warp that is left over watches the flag of its loads, and leaves a stamp an instance, straight in device memory.
 *
 * So a word's address says which event it belongs to, and no lane counts anything for the trace. Of each tile the first
 * iterations are recorded, as many as fit into shared memory, and of all tiles of a block the first ones. On a lane
 * with offsets in the tile loop, what is said of a tile holds for an iteration of that loop, in which each entry has an
 * instance of its own tile.
 */
#ifndef LOWER_STAMPS_H
#define LOWER_STAMPS_H

#include "lower/kernel.h"

/* The block's head: number of the SM, its clock when the lanes begin, and the time, in
 * nanoseconds that all blocks share, its low half first. */
enum { STAMP_SM, STAMP_START, STAMP_TIME, STAMP_HEAD = STAMP_TIME + 2 };
/* A lane's head: clock and time of its end. */
enum { STAMP_LANE_END, STAMP_LANE_TIME, STAMP_LANE_HEAD = STAMP_LANE_TIME + 2 };
/* A tile's first word. */
enum { STAMP_TILE_END, STAMP_TILE_HEAD };

enum { STAMP_WORDS_MAX = 1 << 24 };	/* of all blocks: 64 MiB */

/* Assign words for stamps to every entry of a lowered kernel; from here on it is traced.
 * ERR_LIMIT if the plan leaves too little shared memory. */
NODISCARD enum err_code lower_stamps(struct kernel *k, struct err *e);

#endif
