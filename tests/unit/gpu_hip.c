/* Jobs through AMD's runtime, by a fake one: what goes wrong is an error each, and the next job works. */
#include "unit/gpu_setup.h"

static void hip_init(struct simple *s, const char *entry)
{
	simple_init(s, entry);
	s->job.api = GPU_HIP;
	s->job.arch = "gfx942";
}

static void hip_saxpy(struct simple *s)
{
	saxpy_init(s);
	s->job.api = GPU_HIP;
	s->job.arch = "gfx942";
}

static bool hip_works(struct gpu *g)
{
	struct simple s;

	hip_saxpy(&s);
	if (run(g, &s.job, PATIENT))
		diag("%s", err.msg);
	return !gpu_failure(g) && saxpy_right(&s, 1);
}

static void fails(struct gpu *g, const char *entry, enum gpu_failure want, const char *text)
{
	struct simple s;
	char name[80];

	hip_init(&s, entry);
	ok(run(g, &s.job, PATIENT) && says(&err, text), entry);
	if (!says(&err, text))
		diag("%s", err.msg);
	snprintf(name, sizeof(name), "'%s' is a failure of its kind", entry);
	is_int(gpu_failure(g), want, name);
	snprintf(name, sizeof(name), "after '%s' the next job works", entry);
	ok(hip_works(g), name);
}

static void test_device(void)
{
	struct gpu *g = open_gpu();
	struct gpu_info info;

	is_int(gpu_probe(g, GPU_HIP, NULL, &info, &err), OK, "there is a device");
	ok(!strcmp(info.arch, "gfx942") && !strcmp(info.name, "Fake MI300X") && info.sms == 304 &&
		info.api == GPU_HIP && info.smem_block == 65536, "its properties; its architecture without the features");
	ok(!strcmp(info.board.driver, "HIP 6.3") && info.memory_free > 0, "the version, and its memory");
	ok(!gpu_probe(g, GPU_APIS, NULL, &info, &err) && info.api == GPU_CUDA, "CUDA's comes first");
	ok(hip_works(g) && still_works(g) && hip_works(g), "one worker runs kernels of both");
	setenv("MILLRACE_LIBCUDA", "/nowhere", 1);
	gpu_close(g);
	ok(!gpu_probe(g, GPU_APIS, NULL, &info, &err) && info.api == GPU_HIP,
		"without CUDA's driver there is AMD's device");
	use_fake("MILLRACE_LIBCUDA", "fake_cuda.so");
	gpu_free(g);
}

static void test_failures(void)
{
	struct gpu *g = open_gpu();
	struct simple s;

	hip_init(&s, "hang");
	is_int(run(g, &s.job, 0.2), ERR_LIMIT, "a kernel that hangs");
	ok(says(&err, "'hang' did not finish within 0.2 s") && gpu_failure(g) == GPU_FAIL_TIMEOUT, "is stopped");
	ok(hip_works(g), "after it the next job works");
	fails(g, "fault", GPU_FAIL_FAULT, "hipStreamSynchronize after 'fault' failed with hipErrorIllegalAddress");
	fails(g, "refuse", GPU_FAIL_LAUNCH, "exceed what a CU has");
	fails(g, "crash", GPU_FAIL_WORKER, "an assertion failed (while running 'crash')");
	fails(g, "none", GPU_FAIL_BINARY, "hipModuleGetFunction of 'none'");
	hip_saxpy(&s);
	s.buffers[0] = (struct gpu_buffer){ .name = "big", .bytes = (size_t)1 << 30 };
	ok(run(g, &s.job, PATIENT) == ERR_LIMIT &&
		says(&err, "hipMalloc of 1.0 GiB for 'big' failed with hipErrorOutOfMemory") &&
		gpu_failure(g) == GPU_FAIL_MEMORY, "more memory than there is");
	ok(hip_works(g), "after it the next job works");
	gpu_free(g);
}

static void test_refusals(void)
{
	static const struct gpu_tensor tensor;
	struct gpu *g = open_gpu();
	struct simple s;

	hip_saxpy(&s);
	s.job.arch = "gfx90a";
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && gpu_failure(g) == GPU_FAIL_BINARY &&
		says(&err, "the kernel was compiled for gfx90a, and the attached Fake MI300X is gfx942: plan for "
		"that device"),
		"a kernel for another architecture");
	hip_saxpy(&s);
	s.step.cluster[0] = 2;
	s.step.grid[0] = 2;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "no clusters"), "a cluster");
	hip_saxpy(&s);
	s.params[2] = (struct gpu_param){ .kind = GPU_PARAM_TENSOR, .tensor = &tensor };
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "no tensor maps"), "a tensor map");
	hip_saxpy(&s);
	s.step.smem = 100000;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "65536"), "more shared memory than there is");
	ok(hip_works(g), "after all of it the next job works");
	gpu_free(g);
}

static void test_missing(void)
{
	struct gpu *g = open_gpu();
	struct gpu_info info;

	setenv("FAKE_HIP_INIT", "100", 1);
	ok(gpu_probe(g, GPU_HIP, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING &&
		says(&err, "hipInit failed with hipErrorNoDevice") && says(&err, "/dev/kfd"),
		"a runtime without a device");
	unsetenv("FAKE_HIP_INIT");
	gpu_close(g);
	use_fake("MILLRACE_LIBHIP", "fake_cuda.so");
	ok(gpu_probe(g, GPU_HIP, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING &&
		says(&err, "AMD runtime (libamdhip64.so) has no function hipInit: it is too old"),
		"a library without its functions");
	setenv("MILLRACE_LIBCUDA", "/nowhere", 1);
	gpu_close(g);
	ok(gpu_probe(g, GPU_APIS, NULL, &info, &err) && says(&err, "hipInit"),
		"which is reported rather than that another one is missing");
	setenv("MILLRACE_LIBHIP", "/nowhere", 1);
	gpu_close(g);
	ok(gpu_probe(g, GPU_APIS, NULL, &info, &err) && says(&err, "MILLRACE_LIBCUDA"),
		"if both are missing, it is CUDA's");
	use_fake("MILLRACE_LIBCUDA", "fake_cuda.so");
	use_fake("MILLRACE_LIBHIP", "fake_hip.so");
	gpu_close(g);
	ok(hip_works(g), "the next worker looks again");
	gpu_free(g);
}

static void test_bench(void)
{
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct simple s;

	hip_init(&s, "last");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 3000 };
	s.step.nparams = 1;
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .warmup = 0.01, .runs_min = 5, .runs_max = 5 };
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.runs == 5 && r.ms[0] > 2.9 && r.ms[0] < 3.1,
		"a benchmark");
	is_int(r.cache, GPU_CACHE_UNKNOWN, "of which it is not said what the cache held");
	ok(r.watts == 0, "nor how much power it drew");
	s.job.graph = true;
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.runs == 5 && r.graph && r.ms[0] > 1.4 && r.ms[0] < 1.6,
		"a benchmark of graphs");
	gpu_free(g);
}

static void (*const tests[])(void) = { test_device, test_failures, test_refusals, test_missing, test_bench };

int main(int argc, char **argv)
{
	if (!gpu_worker_asked(argc, argv))	/* a worker has what the test set last */
		use_fake("MILLRACE_LIBHIP", "fake_hip.so");
	return gpu_tests(argc, argv, tests, LEN(tests));
}
