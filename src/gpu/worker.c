/* worker.c - the process that kernels run in.
 *
 * It serves one shell over descriptor 3 until the shell ends. While a kernel hangs, the main thread
 * hangs with it; so a second thread watches for the end of the shell and then kills the process.
 */
#define _GNU_SOURCE			/* POLLRDHUP */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/task.h"
#include "gpu/process.h"

enum { WORKER_USAGE = 2 };		/* exit status if not started by a shell */

struct worker {
	int socket;
	struct mem mem;
	struct arena arena;		/* of the current request */
	struct gpu_context devices[GPU_APIS];
	struct gpu_context *device;	/* of the current request */
	bool without_hip;		/* its library was not there when a device of any kind was looked for */
	int wanted;			/* the shell's device */
	bool opening;			/* open_in_background was started */
};

/* End the worker when the shell is gone. _exit, because the driver's atexit handlers may wait for a kernel. */
NORETURN static void exit_worker(void)
{
	_exit(0);
}

static void send_message(struct worker *w, enum message kind, const struct wire *body)
{
	if (wire_send(w->socket, (int)kind, body, -1, 0, NULL))
		exit_worker();
}

static void report_stage(void *ud, enum stage stage)
{
	struct worker *w = ud;
	struct wire body = { .arena = &w->arena };

	wire_put_u32(&body, stage);
	send_message(w, MSG_STAGE, &body);
}

/* ---- requests ---- */

static void use_api(struct worker *w, enum gpu_api api)
{
	w->device = &w->devices[api];
	w->device->kind = api;
	w->device->arena = &w->arena;
	w->device->verdict = (struct verdict){ 0 };
}

/* CUDA's device, or else HIP's. If there is neither, the error is that of the driver that is there, or CUDA's. */
static enum err_code probe_any(struct worker *w, int ordinal, struct gpu_info *info)
{
	enum err_code code = context_info(w->device, ordinal, info), hip;

	if (!code || w->device->verdict.failure != GPU_FAIL_MISSING || w->without_hip)
		return code;
	use_api(w, GPU_HIP);
	hip = context_info(w->device, ordinal, info);
	w->without_hip = !w->device->present;
	if (!hip || (w->device->present && !w->devices[GPU_CUDA].present))
		return hip;
	w->device = &w->devices[GPU_CUDA];
	return code;
}

static enum err_code serve_probe(struct worker *w, struct frame *f, struct wire *result)
{
	int ordinal = (int)wire_get_u32(&f->body);
	uint32_t api = wire_get_u32(&f->body);
	struct gpu_info info;

	if (f->body.bad || api > GPU_APIS)
		exit_worker();
	report_stage(w, STAGE_STARTING);
	if (api < GPU_APIS)
		use_api(w, (enum gpu_api)api);
	TRY(api < GPU_APIS ? context_info(w->device, ordinal, &info) : probe_any(w, ordinal, &info));
	put_gpu_info(result, &info);
	return OK;
}

/* A kernel that is compiled for a device will run on it. The driver takes 0.2 s to make a context, so
 * that is done while the compiler works. A process has one context for each device, whichever thread
 * made it. An error is ignored here: the next request that needs the context meets it again. */
static void *open_device_thread(void *ud)
{
	struct mem mem = { 0 };
	struct arena arena;
	struct gpu_context device = { .arena = &arena };

	arena_init(&arena, &mem);
	device.opened = !context_open(&device, *(const int *)ud);
	arena_release(&arena);
	return NULL;
}

static void open_in_background(struct worker *w, int ordinal)
{
	pthread_t thread;

	if (w->opening)
		return;
	w->opening = true;
	w->wanted = ordinal;
	if (!pthread_create(&thread, NULL, open_device_thread, &w->wanted))
		pthread_detach(thread);
}

/* Has a result, with the log, also after an error. */
static enum err_code serve_compile(struct worker *w, struct frame *f, struct wire *result)
{
	uint32_t ordinal = wire_get_u32(&f->body);
	struct verdict *v = &w->device->verdict;
	struct compile_result r;
	struct compile_job job;
	enum err_code code;

	get_compile_job(&f->body, &job, &w->arena);
	if (f->body.bad)
		exit_worker();
	report_stage(w, STAGE_COMPILING);
	if (ordinal != NO_DEVICE && job.api == GPU_CUDA)
		open_in_background(w, (int)ordinal);
	code = compile_here(&job, &w->arena, &r, &v->err);
	v->failure = code != ERR_IO ? GPU_FAIL_JOB : r.no_compiler ? GPU_FAIL_MISSING : GPU_FAIL_OTHER;
	put_compile_result(result, &r);
	return code;
}

/* Map the shared memory that came with the job; NULL: none, or no valid one. */
static unsigned char *map_share(int fd, size_t *bytes)
{
	struct stat st;
	void *p;

	*bytes = 0;
	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0)
		return NULL;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	*bytes = (size_t)st.st_size;
	return p;
}

static enum err_code run_shared(struct worker *w, struct frame *f, unsigned char *share, size_t bytes,
	struct gpu_result *r)
{
	struct progress p = { report_stage, w };
	int ordinal = (int)wire_get_u32(&f->body);
	struct gpu_job job;

	get_shared_job(&f->body, &job, share, bytes, &w->arena);
	if (f->body.bad)
		return context_fail(w->device, GPU_FAIL_WORKER, ERR_IO,
			"the worker process cannot read the job: is its memory short?");
	use_api(w, job.api);
	w->device->verdict.failure = GPU_FAIL_JOB;
	TRY(gpu_job_check(&job, &w->device->verdict.err));
	report_stage(w, STAGE_STARTING);
	TRY(context_open(w->device, ordinal));
	return gpu_task_run_job(w->device, &job, &p, r, &w->arena);
}

static enum err_code serve_run(struct worker *w, struct frame *f, struct wire *result)
{
	struct gpu_result r = { 0 };
	enum err_code code;
	size_t bytes;
	unsigned char *share = map_share(f->fd, &bytes);

	code = run_shared(w, f, share, bytes, &r);
	if (share)
		munmap(share, bytes);
	if (!code)
		put_gpu_result(result, &r);
	return code;
}

static void serve(struct worker *w, struct frame *f)
{
	struct wire reply = { .arena = &w->arena }, result = { .arena = &w->arena };
	enum err_code code = OK;
	struct verdict *v;

	use_api(w, GPU_CUDA);
	if (f->kind == MSG_PROBE)
		code = serve_probe(w, f, &result);
	else if (f->kind == MSG_COMPILE)
		code = serve_compile(w, f, &result);
	else if (f->kind == MSG_RUN)
		code = serve_run(w, f, &result);
	else
		exit_worker();
	v = &w->device->verdict;
	if (!code)
		v->failure = GPU_FAIL_NONE;
	else if (v->failure == GPU_FAIL_NONE)
		v->failure = GPU_FAIL_OTHER;
	put_verdict(&reply, v);
	wire_put(&reply, result.data, result.len);
	send_message(w, MSG_REPLY, &reply);
	if (v->worker_lost)
		exit_worker();
}

/* ---- the process ---- */

static void *watch_shell(void *ud)
{
	struct pollfd p = { .fd = *(int *)ud, .events = POLLRDHUP };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	kill(getpid(), SIGKILL);
	return NULL;
}

bool gpu_worker_asked(int argc, char **argv)
{
	return argc >= 2 && !strcmp(argv[1], WORKER_ARGUMENT);
}

int gpu_worker_main(int argc, char **argv)
{
	struct worker w = { .socket = WORKER_SOCKET };
	struct frame f;
	pthread_t watcher;
	struct stat st;

	(void)argc;
	(void)argv;
	if (!getenv(WORKER_VARIABLE) || fstat(w.socket, &st) || !S_ISSOCK(st.st_mode))
		return WORKER_USAGE;	/* a person typed the hidden argument */
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* when no thread of ours gets to see it */
	arena_init(&w.arena, &w.mem);
	if (pthread_create(&watcher, NULL, watch_shell, &w.socket))
		return WORKER_USAGE;
	send_message(&w, MSG_HELLO, NULL);
	while (!wire_receive(w.socket, &f, &w.arena, 0, NULL)) {
		serve(&w, &f);
		if (f.fd >= 0)
			close(f.fd);
		arena_release(&w.arena);
	}
	exit_worker();
}
