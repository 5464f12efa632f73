/* build.h - what the plain tree is built of: waits (waits.c), runs of loops (runs.c), initial values
 * (initial.c), and tiles of a lane's other replicas (replicas.c). */
#ifndef LOWER_PASS_BUILD_H
#define LOWER_PASS_BUILD_H

#include "lower/pass/pass.h"

/* build.c */
void build_tile_axes(struct lowering *c);			/* where the axes of tile TILE stand */
void build_all_products(struct lowering *c, bool last_only);

/* waits.c: what an entry waits for. */
void build_flag_waits(struct lowering *c, const struct kentry *x);
bool build_waits_once(const struct lowering *c, int flag);
const char *build_awaited_products(struct lowering *c, const struct kentry *x);
NODISCARD enum err_code build_read_pins(struct lowering *c, const struct kentry *x, struct err *e);
/* After a loop that may have had no iteration: the waits and signals that its entries would have made. */
void build_skipped_loop(struct lowering *c, int loop, int nested);

/* runs.c: signals that a run of a loop is over. */
void build_early_runs(struct lowering *c, const struct kentry *x);
void build_run_end(struct lowering *c, const struct kstep *nested);
void build_signal_run_if(struct lowering *c, int flag, const struct num *when);

/* initial.c: initial values of carries, of the tile, and of those lives of region `loop` that begin in the
 * loop `nested`. */
NODISCARD enum err_code build_initial_tile(struct lowering *c, struct err *e);
NODISCARD enum err_code build_initial_nested(struct lowering *c, int loop, int nested, struct err *e);

/* replicas.c: lanes that take tiles in round robin; all but the last do nothing where there is one replica. The first
 * is for a lane without offsets in the tile loop, the next three for a lane with offsets. */
void build_skip_tiles(struct lowering *c);
void build_other_tile_counters(struct lowering *c);
void build_count_tiles_before(struct lowering *c, const struct kstep *s);
void build_count_remaining_tiles(struct lowering *c);
void build_handover_wait(struct lowering *c, int flag);		/* only called if there are several */
void build_last_copies(struct lowering *c);

#endif
