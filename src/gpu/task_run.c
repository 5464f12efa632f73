/* task_run.c - one run of a job, a benchmark with many runs, or a race of several contestants.
 *
 * Runs are timed in batches. The runs of a batch are put on the stream one after the other, with an event between each
 * two. A run's time is the time between two events on the device, so launches are hidden behind earlier work. Each
 * batch begins with a run that does not count, unless runs are so long that it makes no difference. If a run is shorter
 * than its launch, the device would wait for the host; then each batch begins with fills of a large buffer, the
 * blocker, which keep the device busy until all of the batch is on the stream. In a race, those of all contestants do.
 */
#include "gpu/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_MAX = 256,		/* runs */
	BATCH_SHORT = 32,		/* runs of a batch that begins with a blocker */
	LAUNCH_SHARE = 4,		/* runs shorter than so many launches need a blocker */
	CALIBRATION_RUNS = 4,		/* timed, of which the shortest counts; two of long ones */
	BLOCKER_MAX = 64,		/* fills before a batch */
	RUNS_MIN = 3,
	TREND_ROUNDS = 6,		/* of a race's warm-up, the later half is compared with the earlier one */
	SAMPLE_BATCHES = 4,		/* of a sample, unless runs are too short for batches of that length */
	SAMPLE_BATCHES_MAX = 8,
};

#define LEAD_SECONDS 0.002		/* batches of shorter runs begin with one that does not count */
#define BLOCKER_BYTES ((size_t)256 << 20)
#define BATCH_SECONDS 0.1		/* about the time between two reports of progress */
#define BATCH_SECONDS_MIN 0.01
#define STABLE_SLOWDOWN 0.004		/* warm-up ends when the later rounds are slower by no more than this share */
#define WARMUP_FACTOR_MAX 12		/* the longest warm-up of a race, relative to what was asked for */
#define POWER_SECONDS 0.3		/* the energy counter is too coarse for shorter measurements */
/* Seconds of the host after which a benchmark ends, even if the device reports times that sum up to less: a device that
 * reports zeros must not block the worker. */
#define HOST_SECONDS(seconds) (20 * (seconds) + 10)

/* ---- batches ---- */

/* What batches of one job share. */
struct batcher {
	struct gpu_task *t;
	const struct progress *progress;
	struct CUevent_st *events[BATCH_MAX + 1];
	device_ptr blocker;
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

/* Milliseconds between two events that the device has reached. */
static enum err_code elapsed_ms(struct gpu_context *d, struct CUevent_st *from, struct CUevent_st *to, double *ms)
{
	float x = 0;

	TRY(CALL(d, event_elapsed, &x, from, to));
	*ms = (double)x;
	return OK;
}

static enum err_code span_begin(struct gpu_context *d)
{
	return CALL(d, event_record, d->span[0], d->stream);
}

/* Wait for all work since span_begin, and get the time that it took. `what`: as for driver_check. */
static enum err_code span_end(struct gpu_context *d, const char *what, double *ms)
{
	TRY(CALL(d, event_record, d->span[1], d->stream));
	TRY(CALL_FOR(d, what, stream_synchronize, d->stream));
	return elapsed_ms(d, d->span[0], d->span[1], ms);
}

/* n runs; with `timed`, events before, between and after them. */
static enum err_code enqueue_runs(struct batch *b, int n, bool timed)
{
	struct gpu_task *t = b->by->t;
	struct gpu_context *d = t->d;

	if (timed)
		TRY(CALL(d, event_record, b->by->events[0], d->stream));
	for (int i = 0; i < n; i++, b->run++) {
		TRY(gpu_task_run(t, b->contestant, b->run % t->copies));
		if (timed)
			TRY(CALL(d, event_record, b->by->events[i + 1], d->stream));
	}
	return OK;
}

/* How long a run and its launch take, and how many runs make a batch of about `seconds`. The first run also loads code and wakes
 * the device, so later ones are timed, of which the fastest counts: a launch may be interrupted. */
static enum err_code calibrate_batch(struct batch *b, double seconds)
{
	struct batcher *by = b->by;
	struct gpu_context *d = by->t->d;
	double sum = 0;

	TRY(enqueue_runs(b, 1, false));
	TRY(CALL_FOR(d, b->after, stream_synchronize, d->stream));
	by->progress->report(by->progress->ud, STAGE_RUNNING);
	b->run_seconds = b->launch_seconds = HUGE_VAL;
	for (int i = 0; i < 2 || (i < CALIBRATION_RUNS && sum < LEAD_SECONDS); i++) {
		double start = clock_seconds(), ms;

		TRY(span_begin(d));
		TRY(enqueue_runs(b, 1, false));
		b->launch_seconds = fmin(b->launch_seconds, clock_seconds() - start);
		TRY(span_end(d, b->after, &ms));
		b->run_seconds = fmin(b->run_seconds, fmax(ms * 1e-3, 1e-6));
		sum += b->run_seconds;
	}
	b->runs = (int)fmin(fmax(seconds / b->run_seconds, 1), BATCH_MAX);
	return OK;
}

static enum err_code fill_blocker(struct batcher *by)
{
	struct gpu_context *d = by->t->d;

	return CALL(d, fill_words, by->blocker, 0, BLOCKER_BYTES / 4, d->stream);
}

/* Goes on without a blocker if there is no memory for it: then the times of very short runs are those of
 * their launches. */
static enum err_code init_blocker(struct batcher *by)
{
	struct gpu_context *d = by->t->d;
	double ms;

	if (by->blocker)
		return OK;
	if (d->api.allocate(&by->blocker, BLOCKER_BYTES)) {
		by->blocker = 0;
		return OK;
	}
	TRY(fill_blocker(by));
	TRY(span_begin(d));
	TRY(fill_blocker(by));
	TRY(span_end(d, NULL, &ms));
	by->blocker_seconds = fmax(ms * 1e-3, 1e-5);
	return OK;
}

/* n runs, at most b->runs. Adds their seconds to *sum; stores their milliseconds in ms[] unless that is NULL. */
static enum err_code batch_run(struct batch *b, int n, double *ms, double *sum)
{
	struct batcher *by = b->by;
	struct gpu_context *d = by->t->d;
	double need = 2 * b->launch_seconds * (b->runs + 1);	/* twice, as it is of the fastest launch */

	for (int i = 0; b->blocked && i < BLOCKER_MAX && need > 0; i++, need -= by->blocker_seconds)
		TRY(fill_blocker(by));
	if (b->run_seconds < LEAD_SECONDS)
		TRY(enqueue_runs(b, 1, false));
	TRY(enqueue_runs(b, n, true));
	TRY(CALL_FOR(d, b->after, stream_synchronize, d->stream));
	by->progress->report(by->progress->ud, STAGE_RUNNING);
	for (int i = 0; i < n; i++) {
		double x;

		TRY(elapsed_ms(d, by->events[i], by->events[i + 1], &x));
		*sum += x * 1e-3;
		if (ms)
			ms[i] = x;
	}
	return OK;
}

/* Choose how many runs make a batch of about `seconds`. */
static enum err_code batch_init(struct batch *b, struct batcher *by, int contestant, double seconds)
{
	const struct gpu_job *job = by->t->job;

	*b = (struct batch){ .by = by, .contestant = contestant };
	for (int i = 0; i < job->nsteps; i++)
		if (by->t->launches[i].after && !job->steps[i].once &&
		    (!job->steps[i].contestant || job->steps[i].contestant == contestant))
			b->after = by->t->launches[i].after;
	return calibrate_batch(b, seconds);
}

/* If a run of any of n batches is too short for its launch, have all of them begin with a blocker, as it changes times: runs
 * of 36 us take 2 to 4 % longer. */
static enum err_code choose_blockers(struct batch *b, int n)
{
	bool too_short = false;

	for (int i = 0; i < n; i++)
		too_short |= b[i].run_seconds <= LAUNCH_SHARE * b[i].launch_seconds;
	if (!too_short)
		return OK;
	TRY(init_blocker(b->by));
	for (int i = 0; i < n; i++) {
		b[i].blocked = b->by->blocker != 0;
		if (b[i].runs > BATCH_SHORT)
			b[i].runs = BATCH_SHORT;
	}
	return OK;
}

/* ---- once ---- */

/* Synchronize after each step, so that an error names the kernel that caused it. */
static enum err_code run_once(struct gpu_task *t, struct gpu_result *r)
{
	struct gpu_context *d = t->d;

	r->ms = ARENA_ARRAY(t->arena, 1, double);
	r->runs = 1;
	for (int i = 0; i < t->job->nsteps; i++) {
		const char *after = t->launches[i].after;
		double ms;

		if (t->job->steps[i].once)
			continue;
		TRY(span_begin(d));
		TRY(gpu_task_step(t, i, 0));
		TRY(span_end(d, after, &ms));
		*r->ms += ms;
		if (t->job->steps[i].kind == GPU_STEP_KERNEL)
			TRY(gpu_task_check_guards(t, after));
	}
	return OK;
}

/* All steps together; an error names the last kernel, whichever caused it. */
static enum err_code run_together(struct gpu_task *t, struct gpu_result *r)
{
	const char *after = NULL;

	r->ms = ARENA_ARRAY(t->arena, 1, double);
	r->runs = 1;
	for (int i = 0; i < t->job->nsteps; i++)
		if (t->launches[i].after && !t->job->steps[i].once)
			after = arena_strf(t->arena, "%s, or before", t->launches[i].after);
	TRY(span_begin(t->d));
	TRY(gpu_task_run(t, 0, 0));
	TRY(span_end(t->d, after, r->ms));
	return after ? gpu_task_check_guards(t, after) : OK;
}

/* ---- many times ---- */

/* Batches whose times do not count. */
static enum err_code warm_up(struct batch *b, double seconds)
{
	double end = clock_seconds() + HOST_SECONDS(seconds), sum = 0;

	while (sum < seconds && clock_seconds() < end)
		TRY(batch_run(b, b->runs, NULL, &sum));
	return OK;
}

static enum err_code run_measured(struct batch *b, struct gpu_result *r)
{
	const struct gpu_bench *want = &b->by->t->job->bench;
	int most = want->runs_max ? want->runs_max : GPU_RUNS_MAX;
	int least = want->runs_min ? want->runs_min : RUNS_MIN;
	double sum = 0, end = clock_seconds() + HOST_SECONDS(want->seconds);

	r->ms = ARENA_ARRAY(b->by->t->arena, most, double);
	while (r->runs < most && (r->runs < least || sum < want->seconds)) {
		int n = most - r->runs < b->runs ? most - r->runs : b->runs;

		if (r->runs >= RUNS_MIN && clock_seconds() > end)
			break;
		TRY(batch_run(b, n, r->ms + r->runs, &sum));
		r->runs += n;
	}
	return OK;
}

/* The same, and the mean power, unless fills between batches would add to it. */
static enum err_code measure_power(struct batch *b, struct gpu_result *r)
{
	struct gpu_context *d = b->by->t->d;
	struct cuda_board *board = context_board(d);
	double before = cuda_board_joules(board), after, ms;

	TRY(span_begin(d));
	TRY(run_measured(b, r));
	after = cuda_board_joules(board);
	TRY(span_end(d, b->after, &ms));
	if (!b->blocked && before > 0 && after > before && ms * 1e-3 >= POWER_SECONDS)
		r->watts = (after - before) / (ms * 1e-3);
	return OK;
}

static enum err_code run_bench(struct batcher *by, struct gpu_result *r, int *last_copy)
{
	const struct gpu_bench *want = &by->t->job->bench;
	double seconds = fmin(BATCH_SECONDS, fmax(want->seconds, BATCH_SECONDS_MIN));
	struct batch b;

	TRY(batch_init(&b, by, 0, seconds));
	TRY(choose_blockers(&b, 1));
	TRY(warm_up(&b, want->warmup));
	TRY(measure_power(&b, r));
	*last_copy = (b.run + by->t->copies - 1) % by->t->copies;
	return OK;
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

static enum err_code race_rounds(struct race *race, const struct gpu_race *want, struct gpu_result *r)
{
	int most = GPU_RUNS_MAX / race->n, round = 0;
	int least = want->rounds_min ? want->rounds_min : GPU_ROUNDS_MIN;
	double sum = 0, total = want->seconds * race->n, end = clock_seconds() + HOST_SECONDS(total);

	if (want->rounds_max && want->rounds_max < most)
		most = want->rounds_max;
	/* Ratios are taken over pairs of rounds, so beyond `least` the last pair is completed. */
	while (round < most && (round < least || sum < total || (round > least && round % 2))) {
		if (round >= GPU_ROUNDS_MIN && clock_seconds() > end)
			break;
		/* Every second round has the reverse order, and each pair of rounds begins with the next contestant;
		 * so a clock that rises or falls steadily affects all alike. */
		for (int i = 0; i < race->n; i++) {
			int contestant = (round / 2 + (round % 2 ? race->n - 1 - i : i)) % race->n;

			TRY(take_sample(race, contestant, want->sample_seconds, r, &sum));
		}
		r->runs += race->n;
		round++;
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
	double most = WARMUP_FACTOR_MAX * least, end = clock_seconds() + HOST_SECONDS(least);

	for (int n = 0; sum < most && clock_seconds() < end; n++) {
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
		r->min_ms[i] = HUGE_VAL;
	}
	TRY(choose_blockers(race->contestants, race->n));
	for (int i = 0; i < race->n; i++)
		r->sample_runs[i] = race->contestants[i].runs * batches_of_sample(&race->contestants[i], want->sample_seconds);
	TRY(race_warm_up(race, want->warmup));
	return race_rounds(race, want, r);
}

/* ---- all of it ---- */

static enum err_code run_timed(struct batcher *by, struct gpu_result *r, int *last_copy)
{
	struct gpu_task *t = by->t;

	for (int i = 0; i < LEN(by->events); i++)
		TRY(CALL(t->d, event_create, &by->events[i], 0));
	context_board(t->d);	/* opens NVML now, so that the device does not idle later */
	return t->job->mode == GPU_RACE ? run_race(by, r) : run_bench(by, r, last_copy);
}

static enum err_code run_task(struct gpu_task *t, const struct progress *p, struct gpu_result *r, struct arena *a)
{
	struct batcher by = { .t = t, .progress = p };
	enum err_code code;
	int copy = 0;

	p->report(p->ud, STAGE_PREPARING);
	TRY(gpu_task_init(t, t->d, t->job, a));
	p->report(p->ud, STAGE_RUNNING);
	r->copies = t->copies;
	r->cache = t->cache;
	TRY(gpu_task_begin(t));
	r->graph = t->graphs != NULL;
	code = t->job->mode != GPU_RUN ? run_timed(&by, r, &copy) : t->job->graph ? run_together(t, r) : run_once(t, r);
	for (int i = 0; i < LEN(by.events); i++)
		if (by.events[i])
			t->d->api.event_destroy(by.events[i]);
	if (by.blocker)
		t->d->api.release(by.blocker);
	TRY(code);
	p->report(p->ud, STAGE_RETURNING);
	return gpu_task_return(t, copy);
}

enum err_code gpu_task_run_job(struct gpu_context *d, const struct gpu_job *job,
	const struct progress *p, struct gpu_result *r, struct arena *a)
{
	struct gpu_task t = { .d = d, .job = job };
	enum err_code code;

	*r = (struct gpu_result){ 0 };
	code = run_task(&t, p, r, a);
	d->used_at = clock_seconds();
	if (!d->verdict.worker_lost)
		gpu_task_release(&t);
	return code;
}
