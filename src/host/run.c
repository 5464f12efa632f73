/* Running a kernel in a child process, on shared memory. */
#include "host/object.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT_BYTES = 1 << 16, ALIGN = 16 };

/* Memory shared with the child: the report, then the buffers, each of which ends at an inaccessible page. */
struct shared {
	unsigned char *base;
	size_t bytes;
	size_t *at;			/* of each buffer */
};

static size_t round_up_size(size_t x, size_t to)
{
	return (x + to - 1) / to * to;
}

static void share_layout(const struct host_job *job, size_t page, struct arena *a, struct shared *s)
{
	s->at = ARENA_ARRAY(a, job->nbuffers + 1, size_t);
	s->bytes = REPORT_BYTES + page;
	for (int i = 0; i < job->nbuffers; i++) {
		size_t n = round_up_size(job->buffers[i].bytes, ALIGN);
		size_t pages = round_up_size(n ? n : 1, page);

		s->at[i] = s->bytes + pages - n;
		s->bytes += pages + page;
	}
}

static enum err_code share_memory(const struct host_job *job, size_t page, struct shared *s, struct err *e)
{
	s->base = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->base == MAP_FAILED)
		return err_set(e, ERR_LIMIT, NOWHERE, "host: no memory for %zu MiB of tensors", s->bytes >> 20);
	mprotect(s->base + REPORT_BYTES, page, PROT_NONE);
	for (int i = 0; i < job->nbuffers; i++) {
		const struct host_buffer *b = &job->buffers[i];

		mprotect(s->base + s->at[i] + round_up_size(b->bytes, ALIGN), page, PROT_NONE);
		if (b->from)
			memcpy(s->base + s->at[i], b->from, b->bytes);
		else
			memset(s->base + s->at[i], 0xff, b->bytes);
	}
	return OK;
}

/* The kernel, which runs in a process forked from this one, only reads them. */
static void *part_addresses(unsigned char *base, const struct host_arg *x, size_t bytes, struct arena *a)
{
	void **out = ARENA_ARRAY(a, x->parts, void *);

	for (int i = 0; i < x->parts; i++)
		out[i] = base + bytes / (size_t)x->parts * (size_t)i;
	return out;
}

static void set_arguments(const struct host_job *job, const struct shared *s, void **args, struct host_map *maps,
	struct arena *a)
{
	for (int i = 0; i < job->nargs; i++) {
		if (job->args[i].is_number) {	/* the kernel only reads it */
			args[i] = (void *)(uintptr_t)&job->args[i].number;
			continue;
		}
		args[i] = s->base + s->at[job->args[i].buffer];
		if (job->args[i].parts)
			args[i] = part_addresses(args[i], &job->args[i], job->buffers[job->args[i].buffer].bytes, a);
		if (!job->args[i].is_map)
			continue;
		maps[i] = job->args[i].map;
		maps[i].base = args[i];
		args[i] = &maps[i];
	}
}

/* In the child. */
NORETURN static void play_kernel(const struct host_kernel *k, const struct host_launch *launch)
{
	struct rlimit none = { 0, 0 };
	host_run_function *run;
	char path[64];
	void *object;

	setrlimit(RLIMIT_CORE, &none);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", k->object);
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (object)
		*(void **)&run = dlsym(object, HOST_RUN_SYMBOL);
	if (!object || !run) {
		snprintf(launch->report, launch->report_size, "the kernel cannot be loaded: %s", dlerror());
		_exit(HOST_FAILED);
	}
	run(launch);
	_exit(0);
}

/* The report of what the kernel did wrong; NULL if it ended well. */
static const char *kernel_report(const struct host_job *job, enum child_end end, int status,
	const char *report, struct arena *a)
{
	if (end == CHILD_LATE)
		return arena_strf(a, "the kernel did not finish within %g s", job->seconds);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	if (*report)
		return arena_strf(a, "%.*s", REPORT_BYTES - 1, report);
	if (WIFSIGNALED(status))
		return arena_strf(a, "the kernel died of signal %d", WTERMSIG(status));
	return arena_strf(a, "the kernel ended with status %d", WEXITSTATUS(status));
}

enum err_code host_run(struct host_kernel *k, const struct host_job *job, const struct stop *stop,
	struct arena *a, const char **report, struct err *e)
{
	struct host_launch launch = { .runtime = &host_runtime, .blocks = job->blocks, .threads = job->threads,
		.cluster = job->cluster, .warp = job->warp, .group = job->group, .shared_bytes = job->shared_bytes,
		.seed = job->seed, .race = job->race,
		.report_size = REPORT_BYTES };
	/* Allocate before the mapping exists: a failure handler may jump, and would leak it. */
	char *said = arena_alloc(a, REPORT_BYTES);
	void **args = ARENA_ARRAY(a, job->nargs + 1, void *);
	struct host_map *maps = ARENA_ARRAY(a, job->nargs + 1, struct host_map);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	enum child_end end = CHILD_EXITED;
	struct child child;
	struct shared s;
	int pid, status = 0;

	*report = NULL;
	share_layout(job, page, a, &s);
	TRY(share_memory(job, page, &s, e));
	launch.report = (char *)s.base;
	set_arguments(job, &s, args, maps, a);
	launch.args = args;
	pid = child_fork(&child);
	if (pid == 0)
		play_kernel(k, &launch);
	if (pid > 0)
		end = child_wait(&child, job->seconds, stop, &status);
	memcpy(said, s.base, REPORT_BYTES - 1);
	for (int i = 0; i < job->nbuffers; i++)
		if (job->buffers[i].to)
			memcpy(job->buffers[i].to, s.base + s.at[i], job->buffers[i].bytes);
	munmap(s.base, s.bytes);
	if (pid < 0)
		return err_set(e, ERR_IO, NOWHERE, "host: cannot start a process");
	if (end == CHILD_STOPPED)
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	*report = kernel_report(job, end, status, said, a);
	return OK;
}
