/* cuda_run.c - one run, or many with the clock on them, or several contestants in turns. */
#include "gpu/cuda_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_batch.h"

enum {
	RUNS_MIN = 3,
	ROUNDS_MIN = 3,
	SETTLING = 6,			/* rounds that are looked at, half with half */
	TURN_BATCHES = 4,		/* of a turn, but for runs of which no batch is so long ... */
	TURN_BATCHES_MAX = 8,		/* ... and whatever they take */
};

#define BATCH_SECONDS 0.1		/* about what lies between two signs of progress */
#define BATCH_LEAST 0.01		/* whatever is asked for */
#define SETTLED 0.004			/* a board is that from rounds to the next slows down by no more */
#define SETTLES_WITHIN 12		/* times the seconds that are asked for, or never */
#define POWER_SECONDS 0.3		/* of less, the energy counter knows too little */
/* Host seconds after which a benchmark ends whatever its runs sum up to: a device that
 * reports no time must not keep us. */
#define PATIENCE(seconds) (20 * (seconds) + 10)

/* ---- once ---- */

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
		TRY(batch_elapsed(d, event[0], event[1], &x));
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

/* Batches whose times do not count. */
static enum err_code warm_up(struct batch *b, double seconds)
{
	double end = wire_clock() + PATIENCE(seconds), sum = 0;

	while (sum < seconds && wire_clock() < end)
		TRY(batch_run(b, b->runs, NULL, &sum));
	return OK;
}

static enum err_code measure(struct batch *b, struct gpu_result *r)
{
	const struct gpu_bench *want = &b->by->t->job->bench;
	int most = want->runs_max ? want->runs_max : GPU_RUNS_MAX;
	int least = want->runs_min ? want->runs_min : RUNS_MIN;
	double sum = 0, end = wire_clock() + PATIENCE(want->seconds);

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

/* The same, and the mean power. Fills between batches draw a power of their own. */
static enum err_code measure_power(struct batch *b, struct gpu_result *r,
	struct CUevent_st *span[2])
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
	if (!b->plugged && before > 0 && after > before && ms * 1e-3 >= POWER_SECONDS)
		r->watts = (after - before) / (ms * 1e-3);
	return OK;
}

static enum err_code run_bench(struct batcher *by, struct gpu_result *r, int *last_copy)
{
	const struct gpu_bench *want = &by->t->job->bench;
	double seconds = fmin(BATCH_SECONDS, fmax(want->seconds, BATCH_LEAST));
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

/* ---- in turns ---- */

struct race {
	struct batch *contestants;
	int n;
	double ms[BATCH_MAX * TURN_BATCHES_MAX];	/* of one turn */
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Who is the i-th of a round: in pairs of rounds there and back, and each pair begins one
 * further. So a clock that falls or rises steadily is the same for all. */
static int whose_turn(int n, int round, int i)
{
	return (round / 2 + (round % 2 ? n - 1 - i : i)) % n;
}

static int batches_of(const struct batch *b, double turn)
{
	double n = ceil(turn / (b->runs * b->run_seconds) - 0.5);

	return (int)fmin(fmax(n, 1), TURN_BATCHES_MAX);
}

/* The later half of a turn counts: before that, a board that its power limits still has the clock that the
 * one before has left it. */
static enum err_code race_turn(struct race *race, int c, double turn, struct gpu_result *r, double *sum)
{
	struct batch *b = &race->contestants[c];
	int batches = batches_of(b, turn), n = 0;

	for (int i = 0; i < batches; i++) {
		bool counts = i >= batches / 2;

		TRY(batch_run(b, b->runs, counts ? race->ms + n : NULL, sum));
		n += counts ? b->runs : 0;
	}
	qsort(race->ms, (size_t)n, sizeof(*race->ms), by_size);
	r->ms[r->runs + c] = (race->ms[n / 2] + race->ms[(n - 1) / 2]) / 2;
	r->least[c] = fmin(r->least[c], race->ms[0]);
	r->most[c] = fmax(r->most[c], race->ms[n - 1]);
	return OK;
}

/* Have all but the first lost? In the mean of the first two rounds, there and back. */
static bool is_lost(const struct race *race, double lost, const double *ms)
{
	for (int c = 1; c < race->n && lost > 0; c++)
		if (ms[c] * ms[race->n + c] <= lost * lost * ms[0] * ms[race->n])
			return false;
	return lost > 0 && race->n > 1;
}

static enum err_code race_rounds(struct race *race, const struct gpu_race *want,
	struct gpu_result *r)
{
	int most = GPU_RUNS_MAX / race->n, round = 0;
	int least = want->rounds_min ? want->rounds_min : ROUNDS_MIN;
	double sum = 0, total = want->seconds * race->n, end = wire_clock() + PATIENCE(total);

	while (round < most && (round < least || sum < total)) {
		if (round >= ROUNDS_MIN && wire_clock() > end)
			break;
		for (int i = 0; i < race->n; i++)
			TRY(race_turn(race, whose_turn(race->n, round, i), want->turn, r, &sum));
		r->runs += race->n;
		round++;
		if (round == 2 && is_lost(race, want->lost, r->ms))
			break;
	}
	return OK;
}

/* Are the later of these rounds slower than the earlier ones? */
static bool slows_down(const double *round)
{
	double before = 0, after = 0;

	for (int i = 0; i < SETTLING / 2; i++) {
		before += round[i];
		after += round[i + SETTLING / 2];
	}
	return after > before * (1 + SETTLED);
}

/* Rounds of a batch each that do not count, until a board that its power limits has come to the clock that is
 * left to it: a burst is as much as 15 % faster, and favours who draws most. */
static enum err_code race_warm_up(struct race *race, double warmup)
{
	double round[SETTLING] = { 0 }, sum = 0, least = warmup * race->n;
	double most = SETTLES_WITHIN * least, end = wire_clock() + PATIENCE(least);

	for (int n = 0; sum < most && wire_clock() < end; n++) {
		if (sum >= least && n >= SETTLING && !slows_down(round))
			break;
		memmove(round, round + 1, sizeof(round) - sizeof(*round));
		round[SETTLING - 1] = -sum;
		for (int i = 0; i < race->n; i++)
			TRY(batch_run(&race->contestants[i], race->contestants[i].runs, NULL, &sum));
		round[SETTLING - 1] += sum;
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
	r->least = ARENA_ARRAY(a, want->n, double);
	r->most = ARENA_ARRAY(a, want->n, double);
	r->batch = ARENA_ARRAY(a, want->n, int);
	for (int i = 0; i < want->n; i++) {
		struct batch *b = &race->contestants[i];

		TRY(batch_init(b, by, i + 1, want->turn / TURN_BATCHES));
		r->batch[i] = b->runs * batches_of(b, want->turn);
		r->least[i] = HUGE_VAL;
	}
	TRY(race_warm_up(race, want->warmup));
	return race_rounds(race, want, r);
}

/* ---- all of it ---- */

static enum err_code run_timed(struct cuda_task *t, const struct progress *p,
	struct gpu_result *r, int *last_copy)
{
	struct batcher by;
	enum err_code code = batcher_init(&by, t, p);

	if (!code)
		code = t->job->mode == GPU_RACE ? run_race(&by, r) : run_bench(&by, r, last_copy);
	batcher_release(&by);
	return code;
}

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
	if (t->job->mode == GPU_RUN)
		TRY(run_once(t, r));
	else
		TRY(run_timed(t, p, r, &copy));
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
