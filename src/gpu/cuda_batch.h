/* cuda_batch.h - batches of timed runs.
 *
 * The runs of a batch are put on the stream one after the other, with an event between each two. A run's time is the
 * time between two events on the device, so launches are hidden behind earlier work. Each batch begins with a run that
 * does not count, unless runs are so long that it makes no difference. If a run is shorter than its launch, the device
 * would wait for the host; then each batch begins with fills of a large buffer, the blocker, which keep the device busy
 * until all of the batch is on the stream.
 */
#ifndef GPU_CUDA_BATCH_H
#define GPU_CUDA_BATCH_H

#include "gpu/cuda_run.h"

enum { BATCH_MAX = 256 };		/* runs */

/* What batches of one job share. */
struct batcher {
	struct cuda_task *t;
	const struct progress *progress;
	struct CUevent_st *events[BATCH_MAX + 1];
	cuda_ptr blocker;
	double blocker_seconds;		/* of one fill */
};

/* The batches of one contestant, or of a benchmark. */
struct batch {
	struct batcher *by;
	int contestant;			/* of a race, from 1; else 0 */
	const char *after;		/* "after 'gemm'" of the last kernel, for messages */
	double run_seconds;		/* how long the device runs it */
	double launch_seconds;		/* how long the host takes to launch it */
	bool blocked;			/* begins with fills of the blocker */
	int runs;			/* of a batch */
	int run;			/* the number of the next run, which says which copies it uses */
};

/* *by is valid even after an error, for batcher_release. */
NODISCARD enum err_code batcher_init(struct batcher *by, struct cuda_task *t, const struct progress *p);
void batcher_release(struct batcher *by);

/* Run it twice, and choose how many runs make a batch of about `seconds`. */
NODISCARD enum err_code batch_init(struct batch *b, struct batcher *by, int contestant, double seconds);
/* n runs, at most b->runs. Adds their seconds to *sum; stores their milliseconds in ms[] unless that is NULL. */
NODISCARD enum err_code batch_run(struct batch *b, int n, double *ms, double *sum);

/* Milliseconds between two events that the device has reached. */
NODISCARD enum err_code batch_elapsed(struct cuda_device *d, struct CUevent_st *from,
	struct CUevent_st *to, double *ms);

#endif
