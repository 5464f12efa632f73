/* cuda_run.c - one run, or many with the clock on them.
 *
 * How times are taken. Runs are put on the stream in batches, an event between each
 * two, so that a time is what lies between two events on the device and the host's
 * launches are hidden behind earlier work. Each batch begins with a run that does not
 * count, unless runs are so long that it makes no difference. A run that is over
 * sooner than the host can launch the next would leave the device waiting; then each
 * batch begins with a fill that keeps it busy while the batch is put on the stream.
 */
#include "gpu/cuda_run.h"

#include <math.h>
#include <string.h>

enum {
	BATCH_MAX = 256,		/* runs */
	BATCH_SHORT = 32,		/* of runs that end sooner than they are launched */
	LAUNCH_SHARE = 4,		/* runs shorter than so many launches are such */
	PLUG_MAX = 64,			/* fills before a batch */
	RUNS_MIN = 3,
};

/* Events: before, between and after the runs of a batch; around all that is measured. */
enum { SPAN_FROM = BATCH_MAX + 1, SPAN_TO, EVENTS };

#define BATCH_SECONDS 0.1		/* about what lies between two signs of progress */
#define LEAD_SECONDS 0.01		/* runs shorter than this have one before them */
#define POWER_SECONDS 0.3		/* of less, the energy counter knows too little */
#define PLUG_BYTES ((size_t)256 << 20)
/* Host seconds after which a benchmark ends whatever its runs sum up to: a device that
 * reports no time must not keep us. */
#define PATIENCE(seconds) (20 * (seconds) + 10)

/* ---- once ---- */

static enum err_code elapsed(struct cuda_device *d, struct CUevent_st *from,
	struct CUevent_st *to, double *ms)
{
	float x = 0;

	TRY(CU(d, cuEventElapsedTime, &x, from, to));
	*ms = (double)x;
	return OK;
}

/* Step by step, so that what goes wrong has a name. */
static enum err_code run_steps(struct cuda_task *t, struct CUevent_st *event[2], double *ms)
{
	struct cuda_device *d = t->d;

	for (int i = 0; i < t->job->nsteps; i++) {
		const char *after = t->launches[i].after;
		double x;

		if (t->job->steps[i].once)
			continue;
		TRY(CU(d, cuEventRecord, event[0], d->stream));
		TRY(cuda_task_step(t, i, 0));
		TRY(CU(d, cuEventRecord, event[1], d->stream));
		TRY(CU_FOR(d, after, cuStreamSynchronize, d->stream));
		TRY(elapsed(d, event[0], event[1], &x));
		*ms += x;
		if (t->job->steps[i].kind == GPU_STEP_KERNEL)
			TRY(cuda_task_check_ends(t, after));
	}
	return OK;
}

static enum err_code run_once(struct cuda_task *t, struct gpu_result *r)
{
	struct CUevent_st *event[2] = { NULL, NULL };
	enum err_code code;

	r->ms = ARENA_ARRAY(t->arena, 1, double);
	r->runs = 1;
	code = CU(t->d, cuEventCreate, &event[0], 0);
	code = code ? code : CU(t->d, cuEventCreate, &event[1], 0);
	code = code ? code : run_steps(t, event, r->ms);
	for (int i = 0; i < 2; i++)
		if (event[i])
			t->d->api.cuEventDestroy(event[i]);
	return code;
}

/* ---- many times ---- */

struct bench {
	struct cuda_task *t;
	const struct progress *progress;
	struct CUevent_st *events[EVENTS];
	const char *after;		/* "after 'gemm'", of the last kernel */
	cuda_ptr plug;
	double plug_seconds;		/* that filling it takes */
	double run_seconds;		/* of the device, a run */
	double launch_seconds;		/* of the host, putting a run on the stream */
	int batch;			/* runs */
	int run;			/* number of the next, for the rotation */
};

static enum err_code synchronize(struct bench *b)
{
	return CU_FOR(b->t->d, b->after, cuStreamSynchronize, b->t->d->stream);
}

/* n runs; with `timed`, events before, between and after them. */
static enum err_code enqueue(struct bench *b, int n, bool timed)
{
	struct cuda_device *d = b->t->d;

	if (timed)
		TRY(CU(d, cuEventRecord, b->events[0], d->stream));
	for (int i = 0; i < n; i++, b->run++) {
		TRY(cuda_task_run(b->t, b->run % b->t->copies));
		if (timed)
			TRY(CU(d, cuEventRecord, b->events[i + 1], d->stream));
	}
	return OK;
}

/* The first run also loads code and wakes the device, so a second one is the measure. */
static enum err_code first_runs(struct bench *b)
{
	double batch = fmin(BATCH_SECONDS, fmax(b->t->job->bench.seconds, LEAD_SECONDS)), start, ms;

	TRY(enqueue(b, 1, false));
	TRY(synchronize(b));
	b->progress->tell(b->progress->ud, STAGE_RUNNING);
	start = wire_clock();
	TRY(enqueue(b, 1, true));
	b->launch_seconds = wire_clock() - start;
	TRY(synchronize(b));
	TRY(elapsed(b->t->d, b->events[0], b->events[1], &ms));
	b->run_seconds = fmax(ms * 1e-3, 1e-6);
	b->batch = (int)fmin(fmax(batch / b->run_seconds, 1), BATCH_MAX);
	return OK;
}

static enum err_code fill_plug(struct bench *b)
{
	return CU(b->t->d, cuMemsetD32Async, b->plug, 0, PLUG_BYTES / 4, b->t->d->stream);
}

/* For runs that need it, and if there is memory for it: without, times of very short
 * runs are those of launching them. */
static enum err_code make_plug(struct bench *b)
{
	struct cuda_device *d = b->t->d;
	double ms;

	if (b->run_seconds > LAUNCH_SHARE * b->launch_seconds)
		return OK;
	if (b->batch > BATCH_SHORT)
		b->batch = BATCH_SHORT;
	if (d->api.cuMemAlloc(&b->plug, PLUG_BYTES)) {
		b->plug = 0;
		return OK;
	}
	TRY(fill_plug(b));
	TRY(CU(d, cuEventRecord, b->events[0], d->stream));
	TRY(fill_plug(b));
	TRY(CU(d, cuEventRecord, b->events[1], d->stream));
	TRY(CU(d, cuStreamSynchronize, d->stream));
	TRY(elapsed(d, b->events[0], b->events[1], &ms));
	b->plug_seconds = fmax(ms * 1e-3, 1e-5);
	return OK;
}

static enum err_code put_plug(struct bench *b)
{
	double need = b->launch_seconds * (b->batch + 1);

	for (int i = 0; b->plug && i < PLUG_MAX && need > 0; i++, need -= b->plug_seconds)
		TRY(fill_plug(b));
	return OK;
}

/* One batch; its times are added to r if that is given. */
static enum err_code run_batch(struct bench *b, int n, struct gpu_result *r, double *sum)
{
	TRY(put_plug(b));
	if (b->run_seconds < LEAD_SECONDS)
		TRY(enqueue(b, 1, false));
	TRY(enqueue(b, n, true));
	TRY(synchronize(b));
	b->progress->tell(b->progress->ud, STAGE_RUNNING);
	for (int i = 0; i < n; i++) {
		double ms;

		TRY(elapsed(b->t->d, b->events[i], b->events[i + 1], &ms));
		*sum += ms * 1e-3;
		if (r)
			r->ms[r->runs++] = ms;
	}
	return OK;
}

static enum err_code warm_up(struct bench *b)
{
	double seconds = b->t->job->bench.warmup, end = wire_clock() + PATIENCE(seconds), sum = 0;

	while (sum < seconds && wire_clock() < end)
		TRY(run_batch(b, b->batch, NULL, &sum));
	return OK;
}

static enum err_code measure(struct bench *b, struct gpu_result *r)
{
	const struct gpu_bench *want = &b->t->job->bench;
	int most = want->runs_max ? want->runs_max : GPU_RUNS_MAX;
	int least = want->runs_min ? want->runs_min : RUNS_MIN;
	double sum = 0, end = wire_clock() + PATIENCE(want->seconds);

	r->ms = ARENA_ARRAY(b->t->arena, most, double);
	while (r->runs < most && (r->runs < least || sum < want->seconds)) {
		int n = most - r->runs < b->batch ? most - r->runs : b->batch;

		if (r->runs >= RUNS_MIN && wire_clock() > end)
			break;
		TRY(run_batch(b, n, r, &sum));
	}
	return OK;
}

/* The same, and the mean power. Fills between batches draw a power of their own. */
static enum err_code measure_power(struct bench *b, struct gpu_result *r)
{
	struct cuda_device *d = b->t->d;
	struct cuda_board *board = cuda_device_board(d);
	double before = cuda_board_joules(board), after, ms;

	TRY(CU(d, cuEventRecord, b->events[SPAN_FROM], d->stream));
	TRY(measure(b, r));
	after = cuda_board_joules(board);
	TRY(CU(d, cuEventRecord, b->events[SPAN_TO], d->stream));
	TRY(synchronize(b));
	TRY(elapsed(d, b->events[SPAN_FROM], b->events[SPAN_TO], &ms));
	if (!b->plug && before > 0 && after > before && ms * 1e-3 >= POWER_SECONDS)
		r->watts = (after - before) / (ms * 1e-3);
	return OK;
}

static enum err_code run_bench(struct bench *b, struct gpu_result *r)
{
	for (int i = 0; i < LEN(b->events); i++)
		TRY(CU(b->t->d, cuEventCreate, &b->events[i], 0));
	cuda_device_board(b->t->d);	/* here, for the device must not idle later */
	TRY(first_runs(b));
	TRY(make_plug(b));
	TRY(warm_up(b));
	return measure_power(b, r);
}

static enum err_code run_many(struct cuda_task *t, const struct progress *p,
	struct gpu_result *r, int *last_copy)
{
	struct bench b = { .t = t, .progress = p };
	enum err_code code;

	for (int i = 0; i < t->job->nsteps; i++)
		if (t->launches[i].after)
			b.after = t->launches[i].after;
	code = run_bench(&b, r);
	for (int i = 0; i < LEN(b.events); i++)
		if (b.events[i])
			t->d->api.cuEventDestroy(b.events[i]);
	if (b.plug)
		t->d->api.cuMemFree(b.plug);
	*last_copy = (b.run + t->copies - 1) % t->copies;
	return code;
}

/* ---- all of it ---- */

static enum err_code run_task(struct cuda_task *t, const struct progress *p,
	struct gpu_result *r, struct arena *a)
{
	int copy = 0;

	p->tell(p->ud, STAGE_PREPARING);
	TRY(cuda_task_init(t, t->d, t->job, a));
	p->tell(p->ud, STAGE_RUNNING);
	r->copies = t->copies;
	r->cache = t->cache;
	TRY(cuda_task_begin(t));
	if (t->job->mode == GPU_BENCH)
		TRY(run_many(t, p, r, &copy));
	else
		TRY(run_once(t, r));
	p->tell(p->ud, STAGE_RETURNING);
	return cuda_task_return(t, copy);
}

enum err_code cuda_run_job(struct cuda_device *d, const struct gpu_job *job,
	const struct progress *p, struct gpu_result *r, struct arena *a)
{
	struct cuda_task t = { .d = d, .job = job };
	enum err_code code;

	*r = (struct gpu_result){ 0 };
	code = run_task(&t, p, r, a);
	d->used_at = wire_clock();
	if (!d->verdict.lost)
		cuda_task_release(&t);
	return code;
}
