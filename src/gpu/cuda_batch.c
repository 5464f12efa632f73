#include "gpu/cuda_batch.h"

#include <math.h>

enum {
	BATCH_SHORT = 32,		/* runs of a batch that begins with a blocker */
	LAUNCH_SHARE = 4,		/* runs shorter than so many launches need a blocker */
	BLOCKER_MAX = 64,		/* fills before a batch */
};

#define LEAD_SECONDS 0.01		/* batches of shorter runs begin with one that does not count */
#define BLOCKER_BYTES ((size_t)256 << 20)

enum err_code batch_elapsed(struct cuda_device *d, struct CUevent_st *from, struct CUevent_st *to, double *ms)
{
	float x = 0;

	TRY(CU(d, cuEventElapsedTime, &x, from, to));
	*ms = (double)x;
	return OK;
}

static enum err_code synchronize(struct batch *b)
{
	struct cuda_device *d = b->by->t->d;

	return CU_FOR(d, b->after, cuStreamSynchronize, d->stream);
}

/* n runs; with `timed`, events before, between and after them. */
static enum err_code enqueue(struct batch *b, int n, bool timed)
{
	struct cuda_task *t = b->by->t;
	struct cuda_device *d = t->d;

	if (timed)
		TRY(CU(d, cuEventRecord, b->by->events[0], d->stream));
	for (int i = 0; i < n; i++, b->run++) {
		TRY(cuda_task_run(t, b->contestant, b->run % t->copies));
		if (timed)
			TRY(CU(d, cuEventRecord, b->by->events[i + 1], d->stream));
	}
	return OK;
}

/* The first run also loads code and wakes the device, so the second one is timed. */
static enum err_code calibrate(struct batch *b, double seconds)
{
	struct batcher *by = b->by;
	double start, ms;

	TRY(enqueue(b, 1, false));
	TRY(synchronize(b));
	by->progress->report(by->progress->ud, STAGE_RUNNING);
	start = wire_clock();
	TRY(enqueue(b, 1, true));
	b->launch_seconds = wire_clock() - start;
	TRY(synchronize(b));
	TRY(batch_elapsed(by->t->d, by->events[0], by->events[1], &ms));
	b->run_seconds = fmax(ms * 1e-3, 1e-6);
	b->runs = (int)fmin(fmax(seconds / b->run_seconds, 1), BATCH_MAX);
	return OK;
}

static enum err_code fill_blocker(struct batcher *by)
{
	struct cuda_device *d = by->t->d;

	return CU(d, cuMemsetD32Async, by->blocker, 0, BLOCKER_BYTES / 4, d->stream);
}

/* Goes on without a blocker if there is no memory for it: then the times of very short runs are those of
 * their launches. */
static enum err_code init_blocker(struct batcher *by)
{
	struct cuda_device *d = by->t->d;
	double ms;

	if (by->blocker)
		return OK;
	if (d->api.cuMemAlloc(&by->blocker, BLOCKER_BYTES)) {
		by->blocker = 0;
		return OK;
	}
	TRY(fill_blocker(by));
	TRY(CU(d, cuEventRecord, by->events[0], d->stream));
	TRY(fill_blocker(by));
	TRY(CU(d, cuEventRecord, by->events[1], d->stream));
	TRY(CU(d, cuStreamSynchronize, d->stream));
	TRY(batch_elapsed(d, by->events[0], by->events[1], &ms));
	by->blocker_seconds = fmax(ms * 1e-3, 1e-5);
	return OK;
}

static enum err_code enqueue_blocker(struct batch *b)
{
	double need = b->launch_seconds * (b->runs + 1);

	for (int i = 0; b->blocked && i < BLOCKER_MAX && need > 0; i++, need -= b->by->blocker_seconds)
		TRY(fill_blocker(b->by));
	return OK;
}

enum err_code batch_run(struct batch *b, int n, double *ms, double *sum)
{
	struct batcher *by = b->by;

	TRY(enqueue_blocker(b));
	if (b->run_seconds < LEAD_SECONDS)
		TRY(enqueue(b, 1, false));
	TRY(enqueue(b, n, true));
	TRY(synchronize(b));
	by->progress->report(by->progress->ud, STAGE_RUNNING);
	for (int i = 0; i < n; i++) {
		double x;

		TRY(batch_elapsed(by->t->d, by->events[i], by->events[i + 1], &x));
		*sum += x * 1e-3;
		if (ms)
			ms[i] = x;
	}
	return OK;
}

enum err_code batch_init(struct batch *b, struct batcher *by, int contestant, double seconds)
{
	const struct gpu_job *job = by->t->job;

	*b = (struct batch){ .by = by, .contestant = contestant };
	for (int i = 0; i < job->nsteps; i++)
		if (by->t->launches[i].after && !job->steps[i].once &&
		    (!job->steps[i].contestant || job->steps[i].contestant == contestant))
			b->after = by->t->launches[i].after;
	TRY(calibrate(b, seconds));
	if (b->run_seconds > LAUNCH_SHARE * b->launch_seconds)
		return OK;
	if (b->runs > BATCH_SHORT)
		b->runs = BATCH_SHORT;
	TRY(init_blocker(by));
	b->blocked = by->blocker != 0;
	return OK;
}

enum err_code batcher_init(struct batcher *by, struct cuda_task *t, const struct progress *p)
{
	*by = (struct batcher){ .t = t, .progress = p };
	for (int i = 0; i < LEN(by->events); i++)
		TRY(CU(t->d, cuEventCreate, &by->events[i], 0));
	cuda_device_board(t->d);	/* opens NVML now, so that the device does not idle later */
	return OK;
}

void batcher_release(struct batcher *by)
{
	for (int i = 0; i < LEN(by->events); i++)
		if (by->events[i])
			by->t->d->api.cuEventDestroy(by->events[i]);
	if (by->blocker)
		by->t->d->api.cuMemFree(by->blocker);
}
