/* cuda_run.c - one run of a job, a benchmark with many runs, or a race of several contestants. */
#include "gpu/cuda_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_batch.h"

enum {
	RUNS_MIN = 3,
	ROUNDS_MIN = 3,
	TREND_ROUNDS = 6,		/* of a race's warm-up, the later half is compared with the earlier one */
	SAMPLE_BATCHES = 4,		/* of a sample, unless runs are too short for batches of that length */
	SAMPLE_BATCHES_MAX = 8,
};

#define BATCH_SECONDS 0.1		/* about the time between two reports of progress */
#define BATCH_SECONDS_MIN 0.01
#define STABLE_SLOWDOWN 0.004		/* warm-up ends when the later rounds are slower by no more than this share */
#define WARMUP_FACTOR_MAX 12		/* the longest warm-up of a race, relative to what was asked for */
#define POWER_SECONDS 0.3		/* the energy counter is too coarse for shorter measurements */
/* Seconds of the host after which a benchmark ends, even if the device reports times that sum up to
 * less: a device that reports zeros must not block the worker. */
#define HOST_SECONDS(seconds) (20 * (seconds) + 10)

/* ---- once ---- */

/* Synchronize after each step, so that an error names the kernel that caused it. */
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
		TRY(batch_elapsed(d, event[0], event[1], &x));
		*ms += x;
		if (t->job->steps[i].kind == GPU_STEP_KERNEL)
			TRY(cuda_task_check_guards(t, after));
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

/* Batches whose times do not count. */
static enum err_code warm_up(struct batch *b, double seconds)
{
	double end = wire_clock() + HOST_SECONDS(seconds), sum = 0;

	while (sum < seconds && wire_clock() < end)
		TRY(batch_run(b, b->runs, NULL, &sum));
	return OK;
}

static enum err_code measure(struct batch *b, struct gpu_result *r)
{
	const struct gpu_bench *want = &b->by->t->job->bench;
	int most = want->runs_max ? want->runs_max : GPU_RUNS_MAX;
	int least = want->runs_min ? want->runs_min : RUNS_MIN;
	double sum = 0, end = wire_clock() + HOST_SECONDS(want->seconds);

	r->ms = ARENA_ARRAY(b->by->t->arena, most, double);
	while (r->runs < most && (r->runs < least || sum < want->seconds)) {
		int n = most - r->runs < b->runs ? most - r->runs : b->runs;

		if (r->runs >= RUNS_MIN && wire_clock() > end)
			break;
		TRY(batch_run(b, n, r->ms + r->runs, &sum));
		r->runs += n;
	}
	return OK;
}

/* The same, and the mean power, unless fills between batches would add to it. */
static enum err_code measure_power(struct batch *b, struct gpu_result *r, struct CUevent_st *span[2])
{
	struct cuda_device *d = b->by->t->d;
	struct cuda_board *board = cuda_device_board(d);
	double before = cuda_board_joules(board), after, ms;

	TRY(CU(d, cuEventRecord, span[0], d->stream));
	TRY(measure(b, r));
	after = cuda_board_joules(board);
	TRY(CU(d, cuEventRecord, span[1], d->stream));
	TRY(CU_FOR(d, b->after, cuStreamSynchronize, d->stream));
	TRY(batch_elapsed(d, span[0], span[1], &ms));
	if (!b->blocked && before > 0 && after > before && ms * 1e-3 >= POWER_SECONDS)
		r->watts = (after - before) / (ms * 1e-3);
	return OK;
}

static enum err_code run_bench(struct batcher *by, struct gpu_result *r, int *last_copy)
{
	const struct gpu_bench *want = &by->t->job->bench;
	double seconds = fmin(BATCH_SECONDS, fmax(want->seconds, BATCH_SECONDS_MIN));
	struct CUevent_st *span[2] = { NULL, NULL };
	struct batch b;
	enum err_code code;

	TRY(batch_init(&b, by, 0, seconds));
	TRY(warm_up(&b, want->warmup));
	code = CU(by->t->d, cuEventCreate, &span[0], 0);
	code = code ? code : CU(by->t->d, cuEventCreate, &span[1], 0);
	code = code ? code : measure_power(&b, r, span);
	for (int i = 0; i < 2; i++)
		if (span[i])
			by->t->d->api.cuEventDestroy(span[i]);
	*last_copy = (b.run + by->t->copies - 1) % by->t->copies;
	return code;
}

/* ---- races ---- */

struct race {
	struct batch *contestants;
	int n;
	double ms[BATCH_MAX * SAMPLE_BATCHES_MAX];	/* of one sample */
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The i-th contestant of a round. Every second round has the reverse order, and each pair of rounds
 * begins with the next contestant; so a clock that rises or falls steadily affects all alike. */
static int contestant_at(int n, int round, int i)
{
	return (round / 2 + (round % 2 ? n - 1 - i : i)) % n;
}

static int batches_of_sample(const struct batch *b, double seconds)
{
	double n = ceil(seconds / (b->runs * b->run_seconds) - 0.5);

	return (int)fmin(fmax(n, 1), SAMPLE_BATCHES_MAX);
}

/* Only the later half of a sample counts: at first, a board at its power limit still has the clock that the
 * previous contestant left. */
static enum err_code take_sample(struct race *race, int c, double seconds, struct gpu_result *r, double *sum)
{
	struct batch *b = &race->contestants[c];
	int batches = batches_of_sample(b, seconds), n = 0;

	for (int i = 0; i < batches; i++) {
		bool counts = i >= batches / 2;

		TRY(batch_run(b, b->runs, counts ? race->ms + n : NULL, sum));
		n += counts ? b->runs : 0;
	}
	qsort(race->ms, (size_t)n, sizeof(*race->ms), by_size);
	r->ms[r->runs + c] = (race->ms[n / 2] + race->ms[(n - 1) / 2]) / 2;
	r->min_ms[c] = fmin(r->min_ms[c], race->ms[0]);
	r->max_ms[c] = fmax(r->max_ms[c], race->ms[n - 1]);
	return OK;
}

/* After two rounds: are all others slower than the first one by more than `ratio`, in the mean of both? */
static bool first_has_won(const struct race *race, double ratio, const double *ms)
{
	for (int c = 1; c < race->n && ratio > 0; c++)
		if (ms[c] * ms[race->n + c] <= ratio * ratio * ms[0] * ms[race->n])
			return false;
	return ratio > 0 && race->n > 1;
}

static enum err_code race_rounds(struct race *race, const struct gpu_race *want, struct gpu_result *r)
{
	int most = GPU_RUNS_MAX / race->n, round = 0;
	int least = want->rounds_min ? want->rounds_min : ROUNDS_MIN;
	double sum = 0, total = want->seconds * race->n, end = wire_clock() + HOST_SECONDS(total);

	while (round < most && (round < least || sum < total)) {
		if (round >= ROUNDS_MIN && wire_clock() > end)
			break;
		for (int i = 0; i < race->n; i++)
			TRY(take_sample(race, contestant_at(race->n, round, i), want->sample_seconds, r, &sum));
		r->runs += race->n;
		round++;
		if (round == 2 && first_has_won(race, want->give_up_ratio, r->ms))
			break;
	}
	return OK;
}

/* Are the later rounds slower than the earlier ones? */
static bool slows_down(const double *round)
{
	double before = 0, after = 0;

	for (int i = 0; i < TREND_ROUNDS / 2; i++) {
		before += round[i];
		after += round[i + TREND_ROUNDS / 2];
	}
	return after > before * (1 + STABLE_SLOWDOWN);
}

/* Rounds of a batch of each contestant that do not count. They go on until a board at its power limit has
 * reached a stable clock: before that, runs are up to 15 % faster, most of all those that draw most power. */
static enum err_code race_warm_up(struct race *race, double warmup)
{
	double round[TREND_ROUNDS] = { 0 }, sum = 0, least = warmup * race->n;
	double most = WARMUP_FACTOR_MAX * least, end = wire_clock() + HOST_SECONDS(least);

	for (int n = 0; sum < most && wire_clock() < end; n++) {
		if (sum >= least && n >= TREND_ROUNDS && !slows_down(round))
			break;
		memmove(round, round + 1, sizeof(round) - sizeof(*round));
		round[TREND_ROUNDS - 1] = -sum;
		for (int i = 0; i < race->n; i++)
			TRY(batch_run(&race->contestants[i], race->contestants[i].runs, NULL, &sum));
		round[TREND_ROUNDS - 1] += sum;
	}
	return OK;
}

static enum err_code run_race(struct batcher *by, struct gpu_result *r)
{
	const struct gpu_race *want = &by->t->job->race;
	struct arena *a = by->t->arena;
	struct race *race = ARENA_NEW(a, struct race);

	race->n = r->contestants = want->n;
	race->contestants = ARENA_ARRAY(a, want->n, struct batch);
	r->ms = ARENA_ARRAY(a, GPU_RUNS_MAX, double);
	r->min_ms = ARENA_ARRAY(a, want->n, double);
	r->max_ms = ARENA_ARRAY(a, want->n, double);
	r->sample_runs = ARENA_ARRAY(a, want->n, int);
	for (int i = 0; i < want->n; i++) {
		struct batch *b = &race->contestants[i];

		TRY(batch_init(b, by, i + 1, want->sample_seconds / SAMPLE_BATCHES));
		r->sample_runs[i] = b->runs * batches_of_sample(b, want->sample_seconds);
		r->min_ms[i] = HUGE_VAL;
	}
	TRY(race_warm_up(race, want->warmup));
	return race_rounds(race, want, r);
}

/* ---- all of it ---- */

static enum err_code run_timed(struct cuda_task *t, const struct progress *p, struct gpu_result *r, int *last_copy)
{
	struct batcher by;
	enum err_code code = batcher_init(&by, t, p);

	if (!code)
		code = t->job->mode == GPU_RACE ? run_race(&by, r) : run_bench(&by, r, last_copy);
	batcher_release(&by);
	return code;
}

static enum err_code run_task(struct cuda_task *t, const struct progress *p, struct gpu_result *r, struct arena *a)
{
	int copy = 0;

	p->report(p->ud, STAGE_PREPARING);
	TRY(cuda_task_init(t, t->d, t->job, a));
	p->report(p->ud, STAGE_RUNNING);
	r->copies = t->copies;
	r->cache = t->cache;
	TRY(cuda_task_begin(t));
	if (t->job->mode == GPU_RUN)
		TRY(run_once(t, r));
	else
		TRY(run_timed(t, p, r, &copy));
	p->report(p->ud, STAGE_RETURNING);
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
	if (!d->verdict.worker_lost)
		cuda_task_release(&t);
	return code;
}
