/* gpu_setup.h - tests of src/gpu with the fake libraries of tests/fake instead of the driver and others. */
#ifndef UNIT_GPU_SETUP_H
#define UNIT_GPU_SETUP_H

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "tap.h"
#include "unit/leftovers.h"

static struct mem mem;
static struct arena arena;
static struct err err;
static char folder[] = "/tmp/millrace-test-XXXXXX";	/* of the caches; removed at the end */

/* Seconds: what takes longer hangs, however busy the machine is. */
#define PATIENT 60.0

static const char FAKE_BINARY[] = "FAKE";
static const struct gpu_binary BINARIES[] = {
	{ FAKE_BINARY, sizeof(FAKE_BINARY) },
	{ "FAKE:pid", 9 },		/* has only this kernel */
};

static inline struct gpu *open_gpu(void)
{
	struct gpu *g;

	gpu_new(&mem, 0, &g);
	return g;
}

static inline double seconds_since(double start)
{
	return clock_seconds() - start;
}

/* A job of one step, to be changed by each test. */
struct simple {
	float x[100], y[100];
	struct gpu_buffer buffers[2];
	struct gpu_param params[4];
	struct gpu_step step;
	struct gpu_job job;
};

static inline void simple_init(struct simple *s, const char *entry)
{
	*s = (struct simple){ .step = { .entry = entry, .grid = { 1 }, .block = { 128 } } };
	for (int i = 0; i < 100; i++) {
		s->x[i] = (float)i;
		s->y[i] = 1000;
	}
	s->buffers[0] = (struct gpu_buffer){ .name = "x", .bytes = sizeof(s->x),
		.init = GPU_INIT_HOST, .from = s->x };
	s->buffers[1] = (struct gpu_buffer){ .name = "y", .bytes = sizeof(s->y),
		.init = GPU_INIT_HOST, .from = s->y, .to = s->y };
	s->step.params = s->params;
	s->job = (struct gpu_job){ .binaries = BINARIES, .nbinaries = 1, .buffers = s->buffers, .nbuffers = 2,
		.steps = &s->step, .nsteps = 1 };
}

static inline void saxpy_init(struct simple *s)
{
	simple_init(s, "saxpy");
	s->params[0] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 100 };
	s->params[1] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 0x40000000 /* 2.0f */ };
	s->params[2] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 0 };
	s->params[3] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s->step.nparams = 4;
}

static inline bool saxpy_right(const struct simple *s, int times)
{
	for (int i = 0; i < 100; i++)
		if (s->y[i] != 1000 + 2.0f * (float)(i * times))
			return false;
	return true;
}

static inline enum err_code run(struct gpu *g, const struct gpu_job *job, double limit)
{
	struct gpu_result r;

	err = (struct err){ 0 };
	return gpu_run(g, job, limit, NULL, &arena, &r, &err);
}

/* The next job after a failure. */
static inline bool still_works(struct gpu *g)
{
	struct simple s;

	saxpy_init(&s);
	if (run(g, &s.job, PATIENT))
		diag("%s", err.msg);
	return !gpu_failure(g) && saxpy_right(&s, 1);
}

/* Let an environment variable name a fake library, which is in fake/ next to the folder of this program. */
static inline void use_fake(const char *variable, const char *name)
{
	char path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 2 && strrchr(path, '/'); i++)
		*strrchr(path, '/') = '\0';
	strcat(path, "/fake/");
	strcat(path, name);
	setenv(variable, path, 1);
}

/* Run tests with the fake driver and management library, and check that they leave nothing behind. */
static inline int gpu_tests(int argc, char **argv, void (*const *tests)(void), int n)
{
	char command[64];
	int files;

	if (gpu_worker_asked(argc, argv))
		return gpu_worker_main(argc, argv);
	if (!mkdtemp(folder))
		BUG("no folder for the test");
	setenv("XDG_CACHE_HOME", folder, 1);
	use_fake("MILLRACE_LIBCUDA", "fake_cuda.so");
	use_fake("MILLRACE_LIBNVML", "fake_nvml.so");
	arena_init(&arena, &mem);
	files = open_files();
	for (int i = 0; i < n; i++)
		tests[i]();
	is_int(open_files(), files, "no descriptor is left over");
	ok(!have_children(), "no process is left over");
	arena_release(&arena);
	is_int((long long)mem.used, 0, "no memory is left over");
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		diag("cannot remove %s", folder);
	return tap_done();
}

#endif
