#define _GNU_SOURCE			/* sched_getaffinity */
#include "gpu/pool.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpu/process.h"
#include "gpu/proto.h"

enum {
	WORKERS_MAX = 64,
	TICK_MS = 20,			/* how late an interrupt may be noticed */
	NICE = 5,			/* of workers, so that measuring comes before compiling */
};

#define AWAIT_SECONDS 1.0		/* between two looks at a job */
#define FRAME_SECONDS 10.0		/* a worker may take for a frame, from its first byte to its last */

enum job_state { JOB_WAITING, JOB_COMPILING, JOB_DONE };

struct pool_job {
	struct arena arena;		/* owns this struct, too */
	struct pool *pool;		/* NULL: the pool was freed */
	struct pool_job *prev, *next;	/* in the order of pool_begin */
	struct compile_job job;
	enum job_state state;
	struct compile_result result;
	enum err_code code;
	struct err err;
};

enum slot_state { SLOT_NONE, SLOT_STARTING, SLOT_IDLE, SLOT_COMPILING };

struct slot {
	struct process worker;
	enum slot_state state;
	bool in_frame;			/* while a frame is sent or received; stays true if a
					 * failure handler jumps out of that */
	double deadline;
	struct pool_job *job;
};

struct pool {
	struct mem *mem;
	struct arena scratch;		/* of one frame */
	struct pool_job *first, *last;
	int nslots;
	struct slot slots[WORKERS_MAX];
};

static int count_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return CPU_COUNT(&set);
	return (int)max_i64(1, sysconf(_SC_NPROCESSORS_ONLN));
}

void pool_new(struct mem *m, int workers, struct pool **out)
{
	int most = count_cores();
	struct pool *p;

	*out = NULL;
	p = mem_get(m, sizeof(*p));
	*p = (struct pool){ .mem = m };
	p->nslots = workers < 1 || workers > most ? most : workers;
	p->nslots = p->nslots < WORKERS_MAX ? p->nslots : WORKERS_MAX;
	for (int i = 0; i < WORKERS_MAX; i++)
		p->slots[i].worker = PROCESS_NONE;
	arena_init(&p->scratch, m);
	*out = p;
}

int pool_workers(const struct pool *p)
{
	return p->nslots;
}

/* ---- jobs ---- */

static void finish_job(struct pool_job *j, enum err_code code)
{
	j->code = code;
	j->state = JOB_DONE;
}

void pool_begin(struct pool *p, const struct compile_job *job, struct pool_job **out)
{
	struct wire w = { .arena = &p->scratch };
	struct pool_job *j;

	*out = NULL;
	put_compile_job(&w, job);	/* to a message and back: a copy of all that the job has */
	j = ARENA_OWNER(p->mem, struct pool_job);
	*out = j;
	j->result.log = "";
	get_compile_job(&w, &j->job, &j->arena);
	j->pool = p;			/* from here on nothing can fail */
	j->prev = p->last;
	*(p->last ? &p->last->next : &p->first) = j;
	p->last = j;
	if (compile_check(job, &j->err))
		finish_job(j, j->err.code);
}

static void end_slot(struct slot *s)
{
	process_end(&s->worker);
	s->state = SLOT_NONE;
	s->in_frame = false;
	s->job = NULL;
}

static void leave_pool(struct pool_job *j)
{
	struct pool *p = j->pool;

	*(j->prev ? &j->prev->next : &p->first) = j->next;
	*(j->next ? &j->next->prev : &p->last) = j->prev;
	j->prev = j->next = NULL;
	j->pool = NULL;
}

void pool_drop(struct pool_job *j)
{
	if (!j)
		return;
	for (int i = 0; j->pool && i < j->pool->nslots; i++)
		if (j->pool->slots[i].job == j)
			end_slot(&j->pool->slots[i]);
	if (j->pool)
		leave_pool(j);
	arena_release(&j->arena);
}

bool pool_done(const struct pool_job *j)
{
	return j->state == JOB_DONE;
}

enum err_code pool_result(struct pool_job *j, struct arena *a, struct compile_result *r, struct err *e)
{
	struct wire w = { .arena = &j->arena };

	/* To a message and back: a copy that does not use the job's memory. */
	put_compile_result(&w, &j->result);
	get_compile_result(&w, r, a);
	if (j->code)
		*e = j->err;
	return j->code;
}

const struct compile_job *pool_missing(const struct pool_job *j, const char **tool)
{
	if (j->state != JOB_DONE || !j->result.missing)
		return NULL;
	*tool = j->result.tool;
	return &j->job;
}

void pool_again(struct pool_job *j, const struct compile_given *given)
{
	struct compile_job job = j->job;
	struct wire w = { .arena = &j->arena };

	job.only_cached = false;
	job.given = given ? *given : (struct compile_given){ 0 };
	put_compile_job(&w, &job);
	get_compile_job(&w, &j->job, &j->arena);
	j->result = (struct compile_result){ .log = "" };
	if (j->pool)			/* else the error stays that it looked for nothing but the cache's */
		j->state = JOB_WAITING;
}

static int count_jobs(const struct pool *p, enum job_state state)
{
	int n = 0;

	for (const struct pool_job *j = p->first; j; j = j->next)
		n += j->state == state;
	return n;
}

int pool_waiting(const struct pool *p)
{
	return count_jobs(p, JOB_WAITING) + count_jobs(p, JOB_COMPILING);
}

int pool_running(const struct pool *p)
{
	int n = 0;

	for (int i = 0; i < p->nslots; i++)
		n += p->slots[i].state != SLOT_NONE;
	return n;
}

void pool_end_idle(struct pool *p)
{
	for (int i = 0; i < p->nslots; i++)
		if (p->slots[i].state == SLOT_IDLE || p->slots[i].state == SLOT_STARTING)
			end_slot(&p->slots[i]);
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->nslots; i++)
		end_slot(&p->slots[i]);
	while (p->first) {
		struct pool_job *j = p->first;

		leave_pool(j);
		if (j->state != JOB_DONE)
			finish_job(j, err_set(&j->err, ERR_IO, NOWHERE, "not compiled: its workers were ended"));
	}
	arena_release(&p->scratch);
	mem_put(p->mem, p, sizeof(*p));
}

/* ---- workers ---- */

static struct pool_job *next_job(const struct pool *p)
{
	struct pool_job *j = p->first;

	while (j && j->state != JOB_WAITING)
		j = j->next;
	return j;
}

/* A worker failed: end it. The error goes to the job that it had. If it never started, the first
 * waiting job gets the error; otherwise workers would be started endlessly. */
static void fail_worker(struct pool *p, struct slot *s, enum wire_status why)
{
	bool starting = s->state == SLOT_STARTING;
	struct pool_job *j = starting ? next_job(p) : s->job;
	struct err ignored, *e = j ? &j->err : &ignored;

	if (why != WIRE_LATE)
		process_failed(&s->worker, why == WIRE_CLOSED, starting ? "starting" : "compiling", "", e);
	else if (starting)
		err_set(e, ERR_IO, NOWHERE, "the worker process did not answer within %g s", HELLO_SECONDS);
	else
		err_set(e, ERR_LIMIT, NOWHERE, "the source was not compiled within %g s", COMPILE_SECONDS);
	if (j)
		finish_job(j, e->code);
	end_slot(s);
}

/* If the worker cannot be started, that is the answer to job j. */
static void start_slot(struct pool *p, struct slot *s, struct pool_job *j)
{
	if (process_start(&s->worker, &p->scratch, &j->err)) {
		finish_job(j, j->err.code);
		return;
	}
	setpriority(PRIO_PROCESS, (id_t)s->worker.pid, NICE);	/* may fail without harm */
	s->state = SLOT_STARTING;
	s->deadline = clock_seconds() + HELLO_SECONDS;
}

static void send_job(struct pool *p, struct slot *s, struct pool_job *j)
{
	struct wire body = { .arena = &p->scratch };
	enum wire_status status;

	wire_put_u32(&body, NO_DEVICE);
	put_compile_job(&body, &j->job);
	process_forget_output(&s->worker);
	s->job = j;
	s->state = SLOT_COMPILING;
	s->deadline = clock_seconds() + COMPILE_SECONDS;
	j->state = JOB_COMPILING;
	s->in_frame = true;
	status = wire_send(s->worker.socket, MSG_COMPILE, &body, -1, clock_seconds() + FRAME_SECONDS, NULL);
	s->in_frame = false;
	if (status)
		fail_worker(p, s, status);
}

static void take_reply(struct pool *p, struct slot *s, struct frame *f)
{
	struct pool_job *j = s->job;
	struct verdict v;

	get_verdict(&f->body, &v, &p->scratch);
	get_compile_result(&f->body, &j->result, &j->arena);
	if (f->body.bad) {
		fail_worker(p, s, WIRE_GARBLED);
		return;
	}
	j->err = v.err;
	finish_job(j, v.failure == GPU_FAIL_NONE ? OK : v.err.code);
	s->job = NULL;
	s->state = SLOT_IDLE;
}

/* Receive a frame whose first bytes are there. */
static void receive_frame(struct pool *p, struct slot *s)
{
	enum wire_status status;
	struct frame f;

	s->in_frame = true;
	status = wire_receive(s->worker.socket, &f, &p->scratch, clock_seconds() + FRAME_SECONDS, NULL);
	if (f.fd >= 0)
		close(f.fd);		/* none is expected */
	if (status)
		fail_worker(p, s, status);
	else if (s->state == SLOT_STARTING && f.kind == MSG_HELLO)
		s->state = SLOT_IDLE;
	else if (s->state == SLOT_COMPILING && f.kind == MSG_REPLY)
		take_reply(p, s, &f);
	else if (s->state != SLOT_COMPILING || f.kind != MSG_STAGE)
		fail_worker(p, s, WIRE_GARBLED);
	s->in_frame = false;
}

/* ---- steps ---- */

/* Send jobs to idle workers, and start workers for the jobs that are left. */
static void assign_jobs(struct pool *p)
{
	struct pool_job *j;
	int starting = 0;

	for (int i = 0; i < p->nslots; i++) {
		struct slot *s = &p->slots[i];

		if (s->state == SLOT_IDLE && !process_is_quiet(&s->worker))
			end_slot(s);	/* it ended while it was idle */
		if (s->state == SLOT_IDLE && (j = next_job(p)))
			send_job(p, s, j);
		starting += s->state == SLOT_STARTING;
	}
	for (int i = 0; i < p->nslots && starting < count_jobs(p, JOB_WAITING); i++) {
		if (p->slots[i].state != SLOT_NONE)
			continue;
		start_slot(p, &p->slots[i], next_job(p));
		starting += p->slots[i].state == SLOT_STARTING;
	}
}

/* Wait for frames of any worker, `ms` milliseconds at most, and receive them. */
static void receive_frames(struct pool *p, int ms)
{
	struct pollfd fds[WORKERS_MAX];
	int which[WORKERS_MAX], n = 0;

	for (int i = 0; i < p->nslots; i++) {
		const struct slot *s = &p->slots[i];

		if (s->state != SLOT_STARTING && s->state != SLOT_COMPILING)
			continue;
		which[n] = i;
		fds[n++] = (struct pollfd){ .fd = s->worker.socket, .events = POLLIN };
	}
	if (poll(fds, (nfds_t)n, ms) <= 0)
		return;
	for (int i = 0; i < n; i++)
		if (fds[i].revents)
			receive_frame(p, &p->slots[which[i]]);
}

static void check_deadlines(struct pool *p)
{
	double now = clock_seconds();

	for (int i = 0; i < p->nslots; i++) {
		struct slot *s = &p->slots[i];

		if ((s->state == SLOT_STARTING || s->state == SLOT_COMPILING) && now >= s->deadline)
			fail_worker(p, s, WIRE_LATE);
	}
}

enum err_code pool_step(struct pool *p, double seconds, const struct stop *stop, struct err *e)
{
	double end = clock_seconds() + seconds;
	int done;

	for (int i = 0; i < p->nslots; i++)	/* a failure handler interrupted a frame with these */
		if (p->slots[i].in_frame)
			fail_worker(p, &p->slots[i], WIRE_GARBLED);
	arena_release(&p->scratch);
	done = count_jobs(p, JOB_DONE);
	for (bool first = true; ; first = false) {
		double left = end - clock_seconds();

		if (stop_asked(stop))
			return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
		assign_jobs(p);
		if (!first && left <= 0)
			break;
		if (count_jobs(p, JOB_DONE) > done || !pool_waiting(p))
			left = 0;
		receive_frames(p, left <= 0 ? 0 : left * 1e3 < TICK_MS ? (int)(left * 1e3) + 1 : TICK_MS);
		check_deadlines(p);
		assign_jobs(p);		/* at once to the workers that have finished */
		arena_release(&p->scratch);
		if (count_jobs(p, JOB_DONE) > done || !pool_waiting(p))
			break;
	}
	return OK;
}

static bool same_job(const struct compile_job *a, const struct compile_job *b)
{
	if (a->api != b->api || strcmp(a->arch, b->arch) || a->fast_math != b->fast_math || a->noptions != b->noptions ||
	    strcmp(a->source, b->source))
		return false;
	for (int i = 0; i < a->noptions; i++)
		if (strcmp(a->options[i], b->options[i]))
			return false;
	return true;
}

enum err_code pool_await(struct pool *p, const struct compile_job *job, const struct stop *stop, struct err *e)
{
	struct pool_job *j = p->first;

	while (j && (j->state != JOB_COMPILING || !same_job(&j->job, job)))
		j = j->next;
	while (j && j->state != JOB_DONE)
		TRY(pool_step(p, AWAIT_SECONDS, stop, e));
	return OK;
}
