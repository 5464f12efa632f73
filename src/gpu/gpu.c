#define _GNU_SOURCE			/* memfd_create, fallocate, seals */
#include "gpu/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/process.h"
#include "gpu/proto.h"

/* Seconds that the worker may take for anything but a kernel; HELLO_SECONDS and COMPILE_SECONDS are in process.h. */
#define START_SECONDS 60.0
#define COPY_SECONDS 60.0
#define COPY_BYTES_A_SECOND 1e8		/* a lower bound for any bus */
#define BENCH_SECONDS 1.0		/* added to a run's limit for a batch of a benchmark */

enum { MEANWHILE_MS = 20 };		/* between two calls of g->meanwhile */

#define RECEIVE_SECONDS 0.1		/* for a message that has come */

#define CHUNK ((size_t)64 << 20)	/* bytes that are reserved or copied before the next look at `stop` */

struct gpu {
	struct mem *mem;
	int device;
	struct process worker;
	bool busy;			/* a request was sent and not answered yet */
	unsigned char *share;		/* memory of the current job, shared with the worker; NULL: none */
	size_t share_bytes;
	int share_fd;			/* open if share_bytes > 0 */
	struct arena scratch;		/* of the current call */
	enum gpu_failure failure;
	struct gpu_info probed[GPU_APIS + 1];	/* by what was asked for; without a name: not probed */
	void (*meanwhile)(void *ud);	/* called while a call waits; may be NULL */
	void *meanwhile_ud;
	bool in_meanwhile;
};

void gpu_new(struct mem *m, int device, struct gpu **out)
{
	struct gpu *g;

	*out = NULL;
	g = mem_get(m, sizeof(*g));
	*g = (struct gpu){ .mem = m, .device = device, .worker = PROCESS_NONE };
	arena_init(&g->scratch, m);
	*out = g;
}

static void share_release(struct gpu *g)
{
	if (g->share)
		munmap(g->share, g->share_bytes);
	if (g->share_bytes)
		close(g->share_fd);
	g->mem->used -= g->share_bytes;
	g->share_bytes = 0;
	g->share = NULL;
}

/* Release what an earlier call left, if a failure handler jumped out of it. */
static void release_last_call(struct gpu *g)
{
	if (g->busy)
		process_end(&g->worker);
	g->busy = false;
	share_release(g);
	arena_release(&g->scratch);
}

void gpu_close(struct gpu *g)
{
	release_last_call(g);
	process_end(&g->worker);
}

void gpu_free(struct gpu *g)
{
	if (!g)
		return;
	gpu_close(g);
	mem_put(g->mem, g, sizeof(*g));
}

enum gpu_failure gpu_failure(const struct gpu *g)
{
	return g->failure;
}

void gpu_meanwhile(struct gpu *g, void (*f)(void *ud), void *ud)
{
	g->meanwhile = f;
	g->meanwhile_ud = ud;
}

const char *gpu_cache_name(enum gpu_cache c)
{
	static const char *const names[] = { NULL, "warm L2", "cold L2" };	/* ORDER gpu_cache */

	return names[c];
}

static enum err_code set_failure(struct gpu *g, enum gpu_failure failure, enum err_code code)
{
	g->failure = failure;
	return code;
}

/* ---- asking the worker ---- */

struct request {
	enum message kind;
	struct wire body;
	int fd;				/* sent along; -1: none */
	double limit[NSTAGES];		/* seconds for each stage */
	const char *running;		/* the kernels' names, for the message at a timeout */
	const struct stop *stop;
	struct wire reply;		/* of the worker; behind the verdict */
};

/* Every request begins with the device. */
static void request_init(struct request *q, struct gpu *g, enum message kind, const struct stop *stop)
{
	*q = (struct request){ .kind = kind, .fd = -1, .stop = stop, .running = "", .body = { .arena = &g->scratch },
		.limit = { [STAGE_STARTING] = START_SECONDS, [STAGE_COMPILING] = COMPILE_SECONDS } };
	wire_put_u32(&q->body, (uint32_t)g->device);
}

static enum err_code timeout_error(const struct request *q, enum stage stage, struct err *e)
{
	static const char *const what[NSTAGES] = {
		[STAGE_STARTING] = "the driver did not open the device within",
		[STAGE_COMPILING] = "the source was not compiled within",
		[STAGE_PREPARING] = "copying to the device took more than",
		[STAGE_RETURNING] = "copying from the device took more than",
	};

	if (stage == STAGE_RUNNING)
		return err_set(e, ERR_LIMIT, NOWHERE, "%s did not finish within %g s and was stopped: it waits for "
			"something that never happens, or the limit is too short", q->running, q->limit[stage]);
	return err_set(e, ERR_LIMIT, NOWHERE, "%s %g s", what[stage], q->limit[stage]);
}

static enum err_code worker_failed(struct gpu *g, enum err_code code, const struct err *e)
{
	return set_failure(g, strstr(e->msg, PROCESS_GPU_FAULT) ? GPU_FAIL_FAULT : GPU_FAIL_WORKER, code);
}

/* The exchange failed for the reason `why`. Ends the worker. */
static enum err_code fail_exchange(struct gpu *g, const struct request *q, enum wire_status why,
	enum stage stage, struct err *e)
{
	static const char *const doing[NSTAGES] = {
		"opening the device", "compiling", "preparing", "running", "copying results",
	};

	if (why == WIRE_CLOSED || why == WIRE_GARBLED)
		return worker_failed(g, process_failed(&g->worker, why == WIRE_CLOSED, doing[stage],
			stage == STAGE_RUNNING ? q->running : "", e), e);
	process_end(&g->worker);
	if (why == WIRE_STOPPED)
		return set_failure(g, GPU_FAIL_STOPPED, err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted"));
	return set_failure(g, GPU_FAIL_TIMEOUT, timeout_error(q, stage, e));
}

static enum err_code start_worker(struct gpu *g, const struct stop *stop, struct err *e)
{
	enum wire_status status;
	struct frame f;

	if (process_is_quiet(&g->worker))
		return OK;
	process_end(&g->worker);
	if (process_start(&g->worker, &g->scratch, e))
		return set_failure(g, GPU_FAIL_WORKER, e->code);
	g->busy = true;
	status = wire_receive(g->worker.socket, &f, &g->scratch, clock_seconds() + HELLO_SECONDS, stop);
	g->busy = false;
	if (status == WIRE_OK && f.kind == MSG_HELLO)
		return OK;
	if (status == WIRE_LATE) {	/* perhaps main() does not call gpu_worker_asked() */
		process_end(&g->worker);
		return set_failure(g, GPU_FAIL_WORKER, err_set(e, ERR_IO, NOWHERE,
			"the worker process did not answer within %g s", HELLO_SECONDS));
	}
	return fail_exchange(g, NULL, status ? status : WIRE_GARBLED, STAGE_STARTING, e);
}

/* Call g->meanwhile until there is a message, or the deadline has passed. Returns the deadline of receiving the message: a call of it may
 * have lasted beyond the first one, while the message came. */
static double wait_meanwhile(struct gpu *g, double deadline, const struct stop *stop)
{
	struct pollfd p = { .fd = g->worker.socket, .events = POLLIN };

	while (g->meanwhile && !stop_asked(stop) && clock_seconds() < deadline && poll(&p, 1, MEANWHILE_MS) == 0) {
		g->in_meanwhile = true;
		g->meanwhile(g->meanwhile_ud);
		g->in_meanwhile = false;
	}
	return g->meanwhile ? fmax(deadline, clock_seconds() + RECEIVE_SECONDS) : deadline;
}

/* Send the request and receive messages until the reply, whose verdict goes to *v. *stage is the last
 * stage that the worker reported. */
static enum wire_status exchange_messages(struct gpu *g, struct request *q, enum stage *stage, struct verdict *v)
{
	double deadline = clock_seconds() + q->limit[*stage];
	enum wire_status status = wire_send(g->worker.socket, (int)q->kind, &q->body, q->fd, deadline, q->stop);
	uint32_t reported;
	struct frame f;

	while (!status) {
		deadline = wait_meanwhile(g, deadline, q->stop);
		status = wire_receive(g->worker.socket, &f, &g->scratch, deadline, q->stop);
		if (f.fd >= 0)
			close(f.fd);	/* none is expected */
		if (status)
			break;
		if (f.kind == MSG_REPLY) {
			get_verdict(&f.body, v, &g->scratch);
			q->reply = f.body;
			return f.body.bad ? WIRE_GARBLED : WIRE_OK;
		}
		reported = wire_get_u32(&f.body);
		if (f.kind != MSG_STAGE || f.body.bad || reported >= NSTAGES)
			return WIRE_GARBLED;
		*stage = (enum stage)reported;
		deadline = clock_seconds() + q->limit[*stage];
	}
	return status;
}

/* Send the request and get an error or a reply. After an error of the worker itself there is a reply, too. */
static enum err_code ask_worker(struct gpu *g, struct request *q, struct err *e)
{
	enum stage stage = STAGE_STARTING;
	enum wire_status status;
	struct verdict v;

	TRY(start_worker(g, q->stop, e));
	process_forget_output(&g->worker);
	g->busy = true;
	status = exchange_messages(g, q, &stage, &v);
	g->busy = false;
	if (status)
		return fail_exchange(g, q, status, stage, e);
	if (v.worker_lost)
		process_end(&g->worker);
	g->failure = v.failure;
	if (v.failure == GPU_FAIL_NONE)
		return OK;
	*e = v.err;
	return e->code;
}

/* After the reply was read: an error if it was truncated or malformed. */
static enum err_code check_reply(struct gpu *g, struct request *q, struct err *e)
{
	if (!q->reply.bad)
		return OK;
	return fail_exchange(g, q, WIRE_GARBLED, STAGE_RETURNING, e);
}

/* An error if another call waits for the worker. */
static enum err_code check_free(const struct gpu *g, struct err *e)
{
	return g->in_meanwhile ? err_set(e, ERR_INPUT, NOWHERE, "the device works for another call") : OK;
}

/* ---- probing and compiling ---- */

enum err_code gpu_probe(struct gpu *g, enum gpu_api api, const struct stop *stop, struct gpu_info *info,
	struct err *e)
{
	struct request q;

	*info = (struct gpu_info){ 0 };
	if (g->in_meanwhile && *g->probed[api].name) {
		*info = g->probed[api];
		return OK;
	}
	TRY(check_free(g, e));
	release_last_call(g);
	request_init(&q, g, MSG_PROBE, stop);
	wire_put_u32(&q.body, api);
	TRY(ask_worker(g, &q, e));
	get_gpu_info(&q.reply, info, &g->scratch);
	TRY(check_reply(g, &q, e));
	g->probed[api] = *info;
	return OK;
}

enum err_code gpu_compile(struct gpu *g, const struct compile_job *job, const struct stop *stop,
	struct arena *a, struct compile_result *r, struct err *e)
{
	struct request q;
	enum err_code code;

	*r = (struct compile_result){ .log = "" };
	TRY(check_free(g, e));
	release_last_call(g);
	if (compile_check(job, e))
		return set_failure(g, GPU_FAIL_JOB, e->code);
	request_init(&q, g, MSG_COMPILE, stop);
	put_compile_job(&q.body, job);
	code = ask_worker(g, &q, e);
	if (!q.reply.data)
		return code;
	get_compile_result(&q.reply, r, a);
	TRY(check_reply(g, &q, e));
	return code;
}

/* ---- running ---- */

/* Allocate the pages now: writing to a mapping without memory behind it raises a signal instead of an error. Chunk by
 * chunk, so that it can be interrupted. */
static enum err_code reserve_pages(int fd, size_t bytes, const struct stop *stop, struct err *e)
{
	int failed = ftruncate(fd, (off_t)bytes);

	for (size_t at = 0; !failed && at < bytes; ) {
		size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;

		if (stop_asked(stop))
			return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
		if (!fallocate(fd, 0, (off_t)at, (off_t)n))
			at += n;
		else if (errno == ENOSPC || errno == ENOMEM)
			failed = -1;
		else if (errno != EINTR)
			break;		/* not supported here: the pages come when they are used */
	}
	if (failed)
		return err_set(e, ERR_LIMIT, NOWHERE, "no %zu bytes of shared memory for the job: %s", bytes,
			strerror(errno));
	/* Neither process can change the size any more. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return OK;
}

/* The memory counts towards the cap of the shell; a request beyond the cap is an error, without a call of the failure
 * handler. share_release is called also after an error. */
static enum err_code share_init(struct gpu *g, size_t bytes, const struct stop *stop, struct err *e)
{
	struct mem *m = g->mem;
	void *p;

	if (m->cap && (bytes > m->cap || m->used > m->cap - bytes))
		return err_set(e, ERR_LIMIT, NOWHERE, "the job's memory, %.1f MiB, exceeds what the shell "
			"may still take (%.1f MiB)", (double)bytes / 0x1p20, (double)(m->cap - m->used) / 0x1p20);
	g->share_fd = memfd_create("millrace-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (g->share_fd < 0)
		return err_set(e, ERR_IO, NOWHERE, "cannot make shared memory: %s", strerror(errno));
	g->share_bytes = bytes;
	m->used += bytes;
	TRY(reserve_pages(g->share_fd, bytes, stop, e));
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->share_fd, 0);
	if (p == MAP_FAILED)
		return err_set(e, ERR_LIMIT, NOWHERE, "cannot map %zu bytes: %s", bytes, strerror(errno));
	g->share = p;
	return OK;
}

/* memcpy of much memory, which `stop` interrupts. */
static enum err_code share_copy(unsigned char *to, const void *from, size_t n, const struct stop *stop, struct err *e)
{
	for (size_t at = 0; at < n; at += CHUNK) {
		if (stop_asked(stop))
			return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
		memcpy(to + at, (const char *)from + at, n - at < CHUNK ? n - at : CHUNK);
	}
	return OK;
}

/* "'gemm'", or "one of 'zero', 'gemm'"; of a race "one of 'gemm' (first), 'gemm' (second)". */
static const char *kernel_names(struct gpu *g, const struct gpu_job *job)
{
	const char *text = NULL;
	int n = 0;

	for (int i = 0; i < job->nsteps; i++) {
		const struct gpu_step *s = &job->steps[i];
		const char *name;

		if (s->kind != GPU_STEP_KERNEL || s->once || ++n > 4)
			continue;
		name = s->contestant ? arena_strf(&g->scratch, "'%.80s' (%.40s)", s->entry,
			job->race.names[s->contestant - 1]) : arena_strf(&g->scratch, "'%.80s'", s->entry);
		text = text ? arena_strf(&g->scratch, "%s, %s", text, name) : name;
	}
	if (!text)
		return "a fill";
	return n == 1 ? text : arena_strf(&g->scratch, "one of %s%s", text, n > 4 ? ", ..." : "");
}

/* Make the request of a job, and the shared memory with its binaries and inputs. */
static enum err_code prepare_job(struct gpu *g, const struct gpu_job *job, double limit,
	struct share_layout *l, struct request *q, struct err *e)
{
	double copy_seconds = COPY_SECONDS;

	TRY(gpu_job_check(job, e));
	if (!(limit > 0))
		return err_set(e, ERR_INPUT, NOWHERE, "the time limit is not above 0 s");
	if (!share_layout(job, l, &g->scratch))
		return err_set(e, ERR_LIMIT, NOWHERE, "the job's buffers have impossible sizes");
	put_gpu_job(&q->body, job);
	q->running = kernel_names(g, job);
	for (int i = 0; i < job->nbuffers; i++)
		copy_seconds += (double)job->buffers[i].bytes / COPY_BYTES_A_SECOND;
	q->limit[STAGE_RUNNING] = limit + (job->mode != GPU_RUN ? BENCH_SECONDS : 0);
	q->limit[STAGE_PREPARING] = q->limit[STAGE_RETURNING] = copy_seconds;
	TRY(share_init(g, l->bytes ? l->bytes : 1, q->stop, e));
	q->fd = g->share_fd;
	for (int i = 0; i < job->nbinaries; i++)
		TRY(share_copy(g->share + l->binary[i], job->binaries[i].image, job->binaries[i].bytes, q->stop, e));
	for (int i = 0; i < job->nbuffers; i++)
		if (job->buffers[i].init == GPU_INIT_HOST)
			TRY(share_copy(g->share + l->from[i], job->buffers[i].from, job->buffers[i].bytes, q->stop, e));
	return OK;
}

enum err_code gpu_run(struct gpu *g, const struct gpu_job *job, double limit,
	const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e)
{
	static const enum gpu_failure kinds[] = {
		[ERR_INPUT] = GPU_FAIL_JOB, [ERR_ILLEGAL] = GPU_FAIL_JOB, [ERR_LIMIT] = GPU_FAIL_MEMORY,
		[ERR_INTERRUPTED] = GPU_FAIL_STOPPED, [ERR_IO] = GPU_FAIL_WORKER,
	};
	struct share_layout l;
	struct request q;
	enum err_code code;

	*r = (struct gpu_result){ 0 };
	TRY(check_free(g, e));
	release_last_call(g);
	request_init(&q, g, MSG_RUN, stop);
	code = prepare_job(g, job, limit, &l, &q, e);
	code = code ? set_failure(g, kinds[code], code) : ask_worker(g, &q, e);
	if (!code) {
		get_gpu_result(&q.reply, r, a);
		code = check_reply(g, &q, e);
	}
	for (int i = 0; i < job->nbuffers && !code; i++)
		if (job->buffers[i].to)
			memcpy(job->buffers[i].to, g->share + l.to[i], job->buffers[i].bytes);
	share_release(g);
	return code;
}

/* ---- reasons why times are not reliable ---- */

enum { BUSY = 10 };			/* % of utilisation from which another process is at work */

/* A clock that was set to at least this share of the highest clock does no harm. */
#define FULL_CLOCK 0.99

static void describe_processes(const struct gpu_board *b, char text[GPU_TROUBLE_MAX])
{
	char use[32] = "";

	if (b->utilisation > 0)
		snprintf(use, sizeof(use), ", %d %% in use", b->utilisation);
	if (b->others == 1)
		snprintf(text, GPU_TROUBLE_MAX, "another process (pid %d) is on it%s", b->other_pid, use);
	else
		snprintf(text, GPU_TROUBLE_MAX, "%d other processes (one is pid %d) are on it%s",
			b->others, b->other_pid, use);
}

static void describe_clock(const struct gpu_info *info, char text[GPU_TROUBLE_MAX])
{
	static const char *const why[] = {
		[GPU_THROTTLE_HEAT] = "it is too hot",
		[GPU_THROTTLE_POWER_BRAKE] = "the machine's power supply asks for it",
		[GPU_THROTTLE_HARDWARE] = "the hardware does so, without a reason",
		[GPU_THROTTLE_SYNC] = "it goes with that of other devices (sync boost)",
	};
	const struct gpu_board *b = &info->board;

	if (b->throttle != GPU_THROTTLE_SETTING)
		snprintf(text, GPU_TROUBLE_MAX, "its clock is held down: %s", why[b->throttle]);
	else if (b->clock > 0 && b->clock < FULL_CLOCK * info->clock)
		snprintf(text, GPU_TROUBLE_MAX, "its clock is set to %.0f of %.0f MHz (nvidia-smi "
			"-rac and -rgc reset it)", b->clock * 1e-6, info->clock * 1e-6);
}

bool gpu_trouble(const struct gpu_info *info, char text[GPU_TROUBLE_MAX])
{
	const struct gpu_board *b = &info->board;

	text[0] = '\0';
	if (b->partition)
		snprintf(text, GPU_TROUBLE_MAX, "it is a part of a board (MIG), with %d SMs", info->sms);
	else if (b->others > 0)
		describe_processes(b, text);
	else if (!b->others_known && b->utilisation >= BUSY)
		snprintf(text, GPU_TROUBLE_MAX, "something else is on it, %d %% in use", b->utilisation);
	else if (b->throttle != GPU_THROTTLE_NONE)
		describe_clock(info, text);
	return text[0] != '\0';
}
