/* cuda_batch.h - batches of runs with the clock on them.
 *
 * Runs are put on the stream in batches, an event between each two, so that a time is what lies
 * between two events on the device and the host's launches are hidden behind earlier work. Each
 * batch begins with a run that does not count, unless runs are so long that it makes no
 * difference. A run that is over sooner than the host can launch the next would leave the device
 * waiting; then each batch begins with a fill that keeps it busy while the batch is put on the
 * stream.
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
	cuda_ptr plug;
	double plug_seconds;		/* that filling it takes */
};

/* What is run in them. */
struct batch {
	struct batcher *by;
	int contestant;			/* of a race, from 1; else 0 */
	const char *after;		/* "after 'gemm'", of the last kernel */
	double run_seconds;		/* of the device, a run */
	double launch_seconds;		/* of the host, putting a run on the stream */
	bool plugged;
	int runs;			/* of a batch */
	int run;			/* number of the next, for the rotation */
};

/* Everything is set first: after a failure batcher_release frees what there is. */
NODISCARD enum err_code batcher_init(struct batcher *by, struct cuda_task *t,
	const struct progress *p);
void batcher_release(struct batcher *by);

/* Try it, and choose how many runs make a batch of about so many seconds. */
NODISCARD enum err_code batch_init(struct batch *b, struct batcher *by, int contestant,
	double seconds);
/* n runs, at most b->runs; adds their seconds to *sum, their milliseconds go to ms[] if that is
 * given. */
NODISCARD enum err_code batch_run(struct batch *b, int n, double *ms, double *sum);

/* Milliseconds between two events that are behind us. */
NODISCARD enum err_code batch_elapsed(struct cuda_device *d, struct CUevent_st *from,
	struct CUevent_st *to, double *ms);

#endif
