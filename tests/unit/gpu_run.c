/* Running jobs in the worker process: what is refused, the protocol, launches, benchmarks. */
#include <sys/stat.h>

#include "base/prng.h"
#include "gpu/proto.h"
#include "unit/gpu_setup.h"

/* ---- wrong jobs ---- */

static bool refused(const struct gpu_job *job, const char *text)
{
	err = (struct err){ 0 };
	return gpu_job_check(job, &err) == ERR_INPUT && says(&err, text);
}

static void test_job_check(void)
{
	struct gpu_tensor t = { .element = GPU_BF16, .rank = 2, .dims = { 8, 4 },
		.strides = { 0, 16 }, .box = { 8, 2 }, .swizzle = GPU_SWIZZLE_32 };
	struct simple s;

	saxpy_init(&s);
	ok(!gpu_job_check(&s.job, &err), "a good job");
	s.params[2].buffer = 2;
	ok(refused(&s.job, "names buffer 2 of 2"), "no such buffer");
	s.params[2].buffer = 0;
	s.params[2].offset = 400;
	ok(refused(&s.job, "starts at byte 400 of 400"), "an offset beyond the end");
	s.params[2].offset = 0;
	s.step.block[0] = 1025;
	ok(refused(&s.job, "1025 threads"), "too many threads");
	s.step.block[0] = 128;
	s.step.grid[0] = 3;
	s.step.cluster[0] = 2;
	ok(refused(&s.job, "not made of clusters of 2"), "a grid that clusters do not divide");
	s.step.cluster[0] = 0;
	s.params[2] = (struct gpu_param){ .kind = GPU_PARAM_TENSOR, .tensor = &t };
	ok(!gpu_job_check(&s.job, &err), "a tensor map");
	t.dims[1] = 26;
	ok(refused(&s.job, "reaches to byte 416 of a buffer of 400"), "one beyond its buffer");
	t.dims[1] = 4;
	t.box[0] = 24;
	ok(refused(&s.job, "more than its swizzle's 32"), "one wider than its swizzle");
	t.box[0] = 7;
	ok(refused(&s.job, "no multiple of 16"), "one of 14 bytes");
	t.box[0] = 8;
	t.strides[1] = 24;
	ok(refused(&s.job, "stride 24"), "one with an odd stride");
	saxpy_init(&s);
	s.step.binary = 1;
	ok(refused(&s.job, "'saxpy' is of binary 1 of 1"), "no such binary");
	s.job.binaries = (struct gpu_binary[]){ { FAKE_BINARY, sizeof(FAKE_BINARY) },
		{ FAKE_BINARY, 0 } };
	s.job.nbinaries = 2;
	ok(refused(&s.job, "binary 1 is empty"), "one without contents");
	saxpy_init(&s);
	s.job.nsteps = 0;
	ok(refused(&s.job, "1 to"), "a job that does nothing");
}

/* ---- the protocol ---- */

static void make_message(struct wire *w, struct simple *s, struct gpu_tensor *t)
{
	saxpy_init(s);
	s->params[2] = (struct gpu_param){ .kind = GPU_PARAM_TENSOR, .tensor = t };
	s->job.nbinaries = 2;
	s->step.binary = 1;
	*w = (struct wire){ .arena = &arena };
	put_gpu_job(w, &s->job);
}

static bool within(const void *p, size_t n, const unsigned char *share, size_t bytes)
{
	const unsigned char *start = p;

	return !p || (start >= share && start <= share + bytes &&
		n <= bytes - (size_t)(start - share));
}

/* Is all of a job's memory in the mapping? */
static bool is_in_mapping(const struct gpu_job *job, const unsigned char *share, size_t bytes)
{
	bool good = true;

	for (int i = 0; i < job->nbinaries; i++)
		good = good && within(job->binaries[i].image, job->binaries[i].bytes, share, bytes);
	for (int i = 0; i < job->nbuffers; i++)
		good = good && within(job->buffers[i].from, job->buffers[i].bytes, share, bytes) &&
			within(job->buffers[i].to, job->buffers[i].bytes, share, bytes);
	return good;
}

/* No message that is truncated or changed makes the reader leave its bounds, which the address sanitizer would see. All
 * memory of a job that the reader accepts is in the mapping. */
static void test_messages(void)
{
	static unsigned char share[4096];
	struct gpu_tensor t = { .element = GPU_BF16, .rank = 1 };
	struct prng rng = { 1 };
	struct simple s;
	struct gpu_job job;
	struct wire w, copy;
	int taken = 0, astray = 0;

	make_message(&w, &s, &t);
	for (size_t n = 0; n < w.len; n++) {
		unsigned char *exact = malloc(n ? n : 1);

		memcpy(exact, w.data, n);
		copy = (struct wire){ .data = exact, .len = n };
		get_shared_job(&copy, &job, share, sizeof(share), &arena);
		taken += !copy.bad;
		free(exact);
	}
	is_int(taken, 0, "a truncated message is refused");
	copy = (struct wire){ .data = w.data, .len = w.len };
	get_shared_job(&copy, &job, share, sizeof(share), &arena);
	ok(!copy.bad && copy.pos == w.len && job.nsteps == 1 && job.steps[0].nparams == 4 &&
		job.steps[0].binary == 1 && job.nbinaries == 2 &&
		job.binaries[1].bytes == BINARIES[1].bytes && !strcmp(job.buffers[1].name, "y"),
		"a complete one is understood");
	for (int i = 0; i < 20000; i++) {
		unsigned char *one = &w.data[prng_below(&rng, (uint32_t)w.len)], was = *one;
		struct arena_mark mark = arena_mark(&arena);

		*one = (unsigned char)prng_next(&rng);
		copy = (struct wire){ .data = w.data, .len = w.len };
		get_shared_job(&copy, &job, share, sizeof(share), &arena);
		astray += !copy.bad && !is_in_mapping(&job, share, sizeof(share));
		if (!copy.bad && gpu_job_check(&job, &err))
			taken++;
		arena_reset(&arena, mark);
		*one = was;
	}
	is_int(astray, 0, "20000 damaged ones do no harm");
	ok(taken > 0, "some are recognised as wrong only by their content");
}

/* ---- running ---- */

static void test_run(void)
{
	struct simple s;
	struct gpu *g = open_gpu();
	struct gpu_info info;
	struct gpu_result r;

	is_int(gpu_probe(g, GPU_CUDA, NULL, &info, &err), OK, "there is a device");
	is_str(info.name, "Fake H200", "it has a name");
	is_str(info.arch, "sm_90a", "and an architecture");
	ok(info.sms == 132 && info.l2 == 4 << 20 && info.memory_total == 256 << 20 &&
		info.memory_free == 256 << 20 && info.driver_major == 13, "and its numbers");
	saxpy_init(&s);
	err.msg[0] = '\0';
	is_int(gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err), OK, "a kernel runs");
	ok(saxpy_right(&s, 1), "and computes");
	ok(r.runs == 1 && r.ms[0] > 0, "it has a time");
	saxpy_init(&s);
	struct gpu_step twice[] = { s.step, { .kind = GPU_STEP_FILL, .buffer = 0 }, s.step };
	s.job.steps = twice;
	s.job.nsteps = 3;
	ok(!run(g, &s.job, PATIENT) && saxpy_right(&s, 1), "steps run in order, fills among them");
	saxpy_init(&s);
	struct gpu_step before[] = { s.step, { .kind = GPU_STEP_FILL, .once = true, .buffer = 1 } };
	s.job.steps = before;
	s.job.nsteps = 2;
	ok(!run(g, &s.job, PATIENT) && s.y[0] == 0 && s.y[99] == 198, "but those that come once, before");
	s.job.mode = GPU_BENCH;
	s.buffers[1].rotate = true;
	s.job.bench = (struct gpu_bench){ .runs_min = 4, .runs_max = 4, .copies = 2 };
	ok(!run(g, &s.job, PATIENT) && s.y[1] > 0 && s.y[1] < 1000 && s.y[99] == 99 * s.y[1],
		"for each copy of what rotates");
	saxpy_init(&s);
	s.buffers[0].init = GPU_INIT_WORD;
	s.buffers[0].word = 0x3f000000;	/* 0.5f */
	ok(!run(g, &s.job, PATIENT) && s.y[0] == 1001 && s.y[99] == 1001, "a buffer of one word");
	gpu_free(g);
}

/* A step runs a kernel of its own binary; all binaries are unloaded after the job. */
static void test_binaries(void)
{
	struct gpu *g = open_gpu();
	struct gpu_step steps[2];
	struct gpu_buffer buffers[3];
	struct gpu_param who = { .kind = GPU_PARAM_POINTER, .buffer = 2 };
	struct gpu_info info;
	uint64_t y = 0;
	struct simple s;

	saxpy_init(&s);
	memcpy(buffers, s.buffers, sizeof(s.buffers));
	buffers[2] = (struct gpu_buffer){ .bytes = sizeof(y), .to = &y };
	steps[0] = s.step;
	steps[1] = (struct gpu_step){ .binary = 1, .entry = "pid", .params = &who, .nparams = 1 };
	s.job = (struct gpu_job){ .binaries = BINARIES, .nbinaries = 2, .buffers = buffers,
		.nbuffers = 3, .steps = steps, .nsteps = 2 };
	ok(!run(g, &s.job, PATIENT) && saxpy_right(&s, 1) && y, "kernels of two binaries run");
	steps[0].binary = 1;
	ok(run(g, &s.job, PATIENT) && gpu_failure(g) == GPU_FAIL_BINARY && says(&err, "'saxpy'"),
		"a kernel is looked for in its step's binary");
	ok(!gpu_probe(g, GPU_CUDA, NULL, &info, &err) && info.memory_free == info.memory_total,
		"and no binary stays loaded");
	gpu_free(g);
}

static void test_launch_numbers(void)
{
	struct gpu_tensor t = { .element = GPU_BF16, .rank = 3, .dims = { 8, 4, 2 },
		.strides = { 0, 16, 64 }, .box = { 8, 2, 1 }, .step = { 0, 2 },
		.swizzle = GPU_SWIZZLE_128, .promotion = GPU_PROMOTE_256 };
	struct gpu *g = open_gpu();
	uint32_t y[12] = { 0 };
	uint64_t m[16] = { 0 };
	struct simple s;

	simple_init(&s, "shape");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER };
	s.step.nparams = 1;
	s.step = (struct gpu_step){ .entry = "shape", .grid = { 8, 6, 2 }, .block = { 64, 4 },
		.cluster = { 2, 3 }, .smem = 200000, .cooperative = true, .early = true, .params = s.params,
		.nparams = 1 };
	s.buffers[0] = (struct gpu_buffer){ .bytes = sizeof(y), .to = y };
	static const uint32_t want[] = { 8, 6, 2, 64, 4, 1, 200000, 2, 3, 1, 1, 1 };
	ok(!run(g, &s.job, PATIENT) && !memcmp(y, want, sizeof(y)),
		"grid, block, shared memory, cluster, cooperation and an early start arrive");

	simple_init(&s, "map");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_TENSOR, .tensor = &t, .offset = 16 };
	s.params[1] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s.step.nparams = 2;
	s.buffers[1] = (struct gpu_buffer){ .bytes = sizeof(m), .to = m };
	ok(!run(g, &s.job, PATIENT) && m[0] % 256 == 16 &&
		m[1] == (9u | 3u << 8 | 3u << 16 | 3u << 24) && m[2] == 8 && m[4] == 2 &&
		m[7] == 16 && m[8] == 64 && m[12] == (2ull << 32 | 2) &&
		m[13] == (1ull << 32 | 1), "so does a tensor map");
	gpu_free(g);
}

static void test_bench(void)
{
	struct gpu *g = open_gpu();
	static char zeros[2 << 20];
	uint64_t y[64] = { 0 };
	struct gpu_result r;
	struct simple s;
	int distinct = 1;

	simple_init(&s, "where");
	s.buffers[0] = (struct gpu_buffer){ .bytes = sizeof(zeros), .init = GPU_INIT_HOST,
		.from = zeros, .rotate = true };
	s.buffers[1] = (struct gpu_buffer){ .bytes = sizeof(y), .init = GPU_INIT_WORD, .to = y };
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER };
	s.params[1] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s.step.nparams = 2;
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .warmup = 1e-3, .seconds = 0.01, .runs_min = 300 };
	is_int(gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err), OK, "a benchmark");
	ok(r.runs >= 300, "takes as many runs as asked");
	ok(fabs(r.ms[0] - 0.05) < 1e-6 && fabs(r.ms[r.runs - 1] - 0.05) < 1e-6,
		"each with its time");
	is_int(r.copies, 5, "of inputs that together exceed twice the L2");
	while (distinct < 60 && y[1 + distinct] != y[1])
		distinct++;
	is_int(distinct, 5, "which the runs use round robin");
	s.job.bench = (struct gpu_bench){ .seconds = 1e9, .runs_max = 7, .copies = 2 };
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.runs == 7 && r.copies == 2,
		"it stops after as many runs as asked");
	gpu_free(g);
}

/* Three times saxpy, the second on a stream of its own, behind the first. */
static void three_steps(struct simple *s, struct gpu_step steps[3])
{
	static const int first = 0, second = 1;

	saxpy_init(s);
	for (int i = 0; i < 3; i++)
		steps[i] = s->step;
	steps[1].stream = 2;
	steps[1].after = &first;
	steps[2].after = &second;
	steps[1].nafter = steps[2].nafter = 1;
	steps[0].early = true;
	s->job.steps = steps;
	s->job.nsteps = 3;
	s->job.graph = true;
}

static void test_graphs(void)
{
	struct gpu *g = open_gpu();
	struct gpu_step steps[3];
	struct gpu_result r = { 0 };
	struct gpu_info info;
	struct simple s;
	int64_t left;

	ok(!gpu_probe(g, GPU_CUDA, NULL, &info, &err), "the device");
	left = info.memory_free;
	three_steps(&s, steps);
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && saxpy_right(&s, 3) && r.graph, "one run, as a graph");
	ok(r.runs == 1 && fabs(r.ms[0] - 0.075) < 1e-6, "with the time of all steps");
	three_steps(&s, steps);
	s.buffers[1].rotate = true;
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .runs_min = 4, .runs_max = 4, .copies = 3 };
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.graph && r.copies == 3, "a benchmark of graphs");
	ok(r.runs == 4 && fabs(r.ms[0] - 0.075) < 1e-6 && fabs(r.ms[3] - 0.075) < 1e-6, "times a graph a run");
	ok(s.y[0] == 1000 && s.y[99] > 1000 && fmod(s.y[99] - 1000, 3 * 2 * 99) == 0, "of each copy");
	s.job.graph = false;
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && !r.graph && fabs(r.ms[0] - 0.15) < 1e-6,
		"or the launches of its steps");
	ok(!gpu_probe(g, GPU_CUDA, NULL, &info, &err) && info.memory_free == left, "nothing is left");
	three_steps(&s, steps);
	steps[1].entry = "fault";
	steps[1].nparams = 0;
	is_int(run(g, &s.job, PATIENT), ERR_IO, "a kernel of a graph that fails");
	ok(gpu_failure(g) == GPU_FAIL_FAULT && says(&err, "after 'saxpy', or before"), "is among those named");
	ok(still_works(g), "and does not matter to the next job");
	three_steps(&s, steps);
	s.job.mode = GPU_RACE;
	ok(refused(&s.job, "a race has no graphs"), "a race of graphs");
	setenv("FAKE_CUDA_VERSION", "12020", 1);
	gpu_close(g);
	three_steps(&s, steps);
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && saxpy_right(&s, 3) && !r.graph && fabs(r.ms[0] - 0.15) < 1e-6,
		"a driver that cannot capture early launches");
	steps[0].early = false;
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.graph, "can capture others");
	unsetenv("FAKE_CUDA_VERSION");
	gpu_free(g);
}

/* The state of an L2 of 4 MiB that a benchmark of two runs, over so many copies of an input, reports. */
static enum gpu_cache cache_of(struct gpu *g, size_t input, int copies)
{
	struct gpu_result r = { 0 };
	struct simple s;

	saxpy_init(&s);
	s.buffers[0] = (struct gpu_buffer){ .bytes = input, .init = GPU_INIT_WORD, .rotate = true };
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .runs_min = 2, .runs_max = 2, .copies = copies };
	if (gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err))
		diag("%s", err.msg);
	return r.cache;
}

static void test_cache_state(void)
{
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct simple s;

	is_int(cache_of(g, 1 << 20, 0), GPU_CACHE_COLD, "copies beyond the L2 leave it cold");
	is_int(cache_of(g, 1 << 20, 3), GPU_CACHE_WARM, "too few of them, warm");
	is_int(cache_of(g, 5 << 20, 1), GPU_CACHE_COLD, "an input beyond it needs none");
	saxpy_init(&s);
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.cache == GPU_CACHE_UNKNOWN,
		"of a single run nothing is known");
	is_str(gpu_cache_name(GPU_CACHE_COLD), "cold L2", "by name");
	ok(!gpu_cache_name(GPU_CACHE_UNKNOWN), "or by none");
	gpu_free(g);
}

/* The watts of three runs that take so long each, by a new worker. */
static double watts_of(int us)
{
	struct gpu *g = open_gpu();
	struct gpu_result r = { 0 };
	struct simple s;

	simple_init(&s, "last");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = (uint64_t)us };
	s.step.nparams = 1;
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .runs_min = 3, .runs_max = 3 };
	if (gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err))
		diag("%s", err.msg);
	gpu_free(g);
	return r.watts;
}

static void test_watts(void)
{
	ok(fabs(watts_of(1000000) - 7 / 3.0) < 1e-6, "mean power is energy over time");
	ok(watts_of(90000) == 0, "of 0.27 s it is not known");
	setenv("FAKE_NVML_MIG", "1", 1);
	ok(watts_of(1000000) == 0, "nor of a partition");
	unsetenv("FAKE_NVML_MIG");
	use_fake("MILLRACE_LIBNVML", "fake_nvml_old.so");
	ok(watts_of(1000000) == 0, "nor without a counter");
	use_fake("MILLRACE_LIBNVML", "fake_nvml.so");
}

int main(int argc, char **argv)
{
	static void (*const tests[])(void) = { test_job_check, test_messages, test_run, test_binaries,
		test_launch_numbers,
		test_bench, test_graphs, test_cache_state, test_watts };

	return gpu_tests(argc, argv, tests, LEN(tests));
}
