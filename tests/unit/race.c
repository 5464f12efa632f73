/* Compiling in a pool of workers, with tests/fake/fake_nvrtc.c instead of NVRTC, and races on
 * fake_cuda.c instead of the driver. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/libraries.h"
#include "gpu/pool.h"
#include "gpu/wire.h"
#include "unit/gpu_setup.h"

/* ---- the gate: compilations that have begun wait for it ---- */

static char gate[64];

static void path_in_gate(char path[128], const char *name)
{
	snprintf(path, 128, "%s/%s", gate, name);
}

static void open_gate(void)
{
	char path[128];

	path_in_gate(path, "open");
	close(open(path, O_CREAT | O_WRONLY, 0666));
}

/* Processes that are at it, the last of them in *pid. */
static int at_gate(pid_t *pid)
{
	DIR *d = opendir(gate);
	const struct dirent *entry;
	int n = 0;

	while ((entry = readdir(d))) {
		if (atoi(entry->d_name) <= 0)
			continue;
		*pid = atoi(entry->d_name);
		n++;
	}
	closedir(d);
	return n;
}

/* For workers that are started from now on. */
static void close_gate(void)
{
	static int gates;

	snprintf(gate, sizeof(gate), "%s/gate%d", folder, gates++);
	mkdir(gate, 0777);
	setenv("FAKE_NVRTC_GATE", gate, 1);
}

/* Calls pool_step until so many processes are at the gate. */
static bool step_until_at_gate(struct pool *p, int n, pid_t *pid)
{
	double end = clock_seconds() + PATIENT;

	while (at_gate(pid) < n && clock_seconds() < end)
		if (pool_step(p, 0.01, NULL, &err))
			return false;
	return at_gate(pid) == n;
}

static bool step_until_done(struct pool *p, const struct pool_job *j)
{
	double end = clock_seconds() + PATIENT;

	while (!pool_done(j) && clock_seconds() < end)
		if (pool_step(p, 1, NULL, &err))
			return false;
	return pool_done(j);
}

static struct compile_job job_of(const char *text, char source[200])
{
	snprintf(source, 200, "KERNEL(k, 128)\n(int n)\n{ /* %s */ }\n", text);
	return (struct compile_job){ .name = "k.cu", .source = source, .arch = "sm_90a", .no_cache = true };
}

static struct pool_job *begin(struct pool *p, const char *text)
{
	char source[200];
	struct compile_job job = job_of(text, source);
	struct pool_job *j;

	pool_begin(p, &job, &j);
	return j;
}

/* Is the answer that of this text? */
static bool right(struct pool_job *j, const char *text)
{
	struct compile_result r;

	err = (struct err){ 0 };
	if (pool_result(j, &arena, &r, &err)) {
		diag("%s", err.msg);
		return false;
	}
	return r.cubin && strstr(r.cubin, text) && r.nuses == 1 && r.uses[0].registers == 168;
}

static enum err_code result_of(struct pool_job *j)
{
	struct compile_result r;

	err = (struct err){ 0 };
	return pool_result(j, &arena, &r, &err);
}

/* ---- the pool ---- */

static void test_pool(void)
{
	struct pool_job *j[5];
	struct pool *p;
	pid_t pid;
	int n;

	pool_new(&mem, 2, &p);
	n = pool_workers(p);
	ok(n >= 1 && n <= 2, "at most two workers, or one where there is one core");
	close_gate();
	for (int i = 0; i < 5; i++)
		j[i] = begin(p, (const char *[]){ "first", "second", "third", "fourth", "fifth" }[i]);
	is_int(pool_waiting(p), 5, "five texts wait");
	is_int(pool_running(p), 0, "and no worker exists before the first step");
	ok(step_until_at_gate(p, n, &pid), "as many compile at the same time as there are workers");
	is_int(pool_running(p), n, "and no more");
	ok(!pool_done(j[0]) && !pool_step(p, 0, NULL, &err) && !pool_done(j[0]),
		"meanwhile the caller goes on");
	open_gate();
	for (int i = 0; i < 5; i++)
		step_until_done(p, j[i]);
	ok(right(j[0], "first") && right(j[4], "fifth") && right(j[2], "third"),
		"each gets its own binary, and what the compiler said");
	is_int(pool_waiting(p), 0, "nothing is left");
	ok(!pool_step(p, PATIENT, NULL, &err), "a step with nothing to do ends at once");
	pool_end_idle(p);
	is_int(pool_running(p), 0, "idle workers can be sent home");
	for (int i = 0; i < 5; i++)
		pool_drop(j[i]);
	pool_free(p);
	ok(!have_children(), "and no process is left");
}

static void test_awaiting(void)
{
	char source[200];
	struct compile_job job = job_of("same", source), other;
	struct pool_job *j, *k;
	char text[200];
	struct pool *p;
	pid_t pid;

	pool_new(&mem, 1, &p);
	close_gate();
	j = begin(p, "same");
	k = begin(p, "next");
	other = job_of("next", text);
	ok(step_until_at_gate(p, 1, &pid) && !pool_await(p, &other, NULL, &err) && !pool_done(j) && !pool_done(k),
		"a text that no worker has is not waited for");
	open_gate();
	ok(!pool_await(p, &job, NULL, &err) && pool_done(j) && right(j, "same"), "one that is being compiled is");
	ok(step_until_done(p, k) && !pool_await(p, &job, NULL, &err), "and not any more when it is done");
	pool_drop(j);
	pool_drop(k);
	pool_free(p);
}

static void test_deaths(void)
{
	struct pool_job *j, *k;
	struct pool *p;
	pid_t pid;

	pool_new(&mem, 1, &p);
	close_gate();
	j = begin(p, "killed");
	k = begin(p, "next");
	step_until_at_gate(p, 1, &pid);
	kill(pid, SIGKILL);
	open_gate();
	ok(step_until_done(p, j) && result_of(j) == ERR_IO && says(&err, "was killed by signal 9") &&
		says(&err, "(while compiling)"), "a worker that is killed costs one message");
	ok(step_until_done(p, k) && right(k, "next"), "and the next text gets another");
	pool_drop(j);
	pool_drop(k);

	setenv("FAKE_NVRTC_CRASH", "poison", 1);
	pool_end_idle(p);
	j = begin(p, "poison");
	k = begin(p, "food");
	ok(step_until_done(p, j) && result_of(j) == ERR_IO && step_until_done(p, k) &&
		right(k, "food"), "a text that kills its worker does not kill the others");
	unsetenv("FAKE_NVRTC_CRASH");
	pool_drop(j);
	pool_drop(k);

	setenv("FAKE_NVRTC_ERROR", "nonsense", 1);
	pool_end_idle(p);
	j = begin(p, "nonsense");
	ok(step_until_done(p, j) && result_of(j) == ERR_INPUT && says(&err, "the fake compiler says so"),
		"an error of the source comes back");
	unsetenv("FAKE_NVRTC_ERROR");
	pool_drop(j);
	pool_begin(p, &(struct compile_job){ .source = "x" }, &j);
	ok(pool_done(j) && result_of(j) == ERR_INPUT && says(&err, "the architecture is missing"),
		"so does what is no job");
	pool_drop(j);

	setenv("MILLRACE_GPU_WORKER", "1", 1);	/* which forbids to start one */
	pool_end_idle(p);
	j = begin(p, "nobody");
	ok(step_until_done(p, j) && result_of(j) == ERR_IO && says(&err, "cannot start a worker"),
		"nor does one wait that no worker can be started for");
	unsetenv("MILLRACE_GPU_WORKER");
	pool_drop(j);
	pool_free(p);
}

/* What a job that only looks into the cache finds. */
static struct pool_job *look(struct pool *p, const char *text, enum gpu_api api)
{
	char source[200];
	struct compile_job job = job_of(text, source);
	struct pool_job *j;

	job.no_cache = false;
	job.only_cached = true;
	job.api = api;
	pool_begin(p, &job, &j);
	step_until_done(p, j);
	return j;
}

/* What another process has compiled; here, every compilation of these sources is an error. */
static void test_given(enum gpu_api api)
{
	static const char binary[] = "FAKESRC\nKERNEL(k, 128) given", log[] = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
		"ptxas info    : Used 168 registers, used 1 barriers\n";
	struct compile_given given = { NULL, log, binary, sizeof(binary) };
	const struct compile_job *wanted;
	struct pool_job *j;
	const char *tool;
	struct pool *p;

	pool_new(&mem, 1, &p);
	setenv("FAKE_NVRTC_ERROR", "given", 1);
	j = look(p, "given", api);
	wanted = pool_missing(j, &tool);
	ok(wanted && strstr(wanted->source, "given") && result_of(j) == ERR_INPUT, "what is not in the cache is not compiled");
	is_str(tool, api == GPU_HIP ? "hiprtc 13.0" : "nvrtc 13.0", "the compiler that would do it");

	given.tool = "nvrtc 1.0";
	pool_again(j, &given);
	ok(!pool_done(j) && !pool_missing(j, &tool), "the job is begun again");
	ok(step_until_done(p, j) && result_of(j) == ERR_INPUT && !pool_missing(j, &tool),
		"with a binary of another compiler it is compiled");
	pool_drop(j);

	j = look(p, "given", api);
	ok(pool_missing(j, &tool), "which the cache did not keep");
	given.tool = tool;
	pool_again(j, &given);
	ok(step_until_done(p, j) && !result_of(j), "with a binary of this compiler it is not");
	pool_drop(j);

	j = look(p, "given", api);
	ok(!pool_missing(j, &tool) && (api == GPU_HIP ? !result_of(j) : right(j, "given")), "that is now in the cache, with its log");
	pool_drop(j);

	j = look(p, "compiled", api);
	pool_again(j, NULL);
	ok(step_until_done(p, j) && !result_of(j), "without a binary the job is compiled");
	pool_drop(j);
	unsetenv("FAKE_NVRTC_ERROR");

	j = look(p, "never", api);
	pool_free(p);
	pool_again(j, NULL);
	ok(pool_done(j) && result_of(j), "when the pool has ended the job has failed");
	pool_drop(j);
}

static void test_given_cuda(void)
{
	test_given(GPU_CUDA);
}

static void test_given_hip(void)
{
	use_fake("MILLRACE_LIBHIPRTC", "fake_hiprtc.so");
	test_given(GPU_HIP);
	unsetenv("MILLRACE_LIBHIPRTC");
}

static void test_endings(void)
{
	struct pool_job *j, *k;
	volatile int flag = 1;
	struct pool *p;
	pid_t pid;

	pool_new(&mem, 1, &p);
	close_gate();
	j = begin(p, "interrupted");
	step_until_at_gate(p, 1, &pid);
	is_int(pool_step(p, PATIENT, &(struct stop){ &flag }, &err), ERR_INTERRUPTED,
		"Ctrl-C ends a step");
	ok(!pool_done(j), "and no job");
	pool_drop(j);
	ok(kill(pid, 0) && errno == ESRCH, "a job that is dropped ends its worker");
	k = begin(p, "late");
	open_gate();
	ok(step_until_done(p, k) && right(k, "late"), "after which others go on");
	pool_drop(k);

	close_gate();
	pool_end_idle(p);
	j = begin(p, "left");
	k = begin(p, "waiting");
	step_until_at_gate(p, 1, &pid);
	pool_free(p);
	ok(kill(pid, 0) && errno == ESRCH, "the end of the pool is that of its workers");
	ok(pool_done(j) && result_of(j) == ERR_IO && result_of(k) == ERR_IO &&
		says(&err, "its workers were ended"), "its jobs say so");
	pool_drop(j);
	pool_drop(k);
	unsetenv("FAKE_NVRTC_GATE");
}

/* The shell is killed, not ended: its workers go with it. */
static void test_orphans(void)
{
	pid_t child, worker = 0;
	double end = clock_seconds() + PATIENT;

	close_gate();
	child = fork();
	if (!child) {
		struct pool *p;

		pool_new(&mem, 1, &p);
		begin(p, "orphan");
		step_until_at_gate(p, 1, &worker);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	is_int(at_gate(&worker), 1, "a worker was compiling when the shell was killed");
	while (worker && !kill(worker, 0) && clock_seconds() < end)
		usleep(1000);
	ok(worker && kill(worker, 0), "it ended, too");
	open_gate();
	unsetenv("FAKE_NVRTC_GATE");
}

static jmp_buf out_of_memory;

static void jump(void *ud, size_t want)
{
	(void)ud, (void)want;
	longjmp(out_of_memory, 1);
}

/* Each allocation fails once; freeing is enough then. */
static void test_jumps(void)
{
	static struct mem small;
	static struct pool *p;
	static struct pool_job *j;
	static volatile uint64_t k;
	volatile bool leaked = false, done = false;
	int files = open_files();

	for (k = 1; !done && k < 100; k++) {
		small = (struct mem){ .fail = jump, .fail_at = k };
		p = NULL;
		j = NULL;
		if (!setjmp(out_of_memory)) {
			pool_new(&small, 1, &p);
			j = begin(p, "much");
			done = step_until_done(p, j) && right(j, "much");
		}
		pool_drop(j);
		pool_free(p);
		leaked = leaked || small.used || open_files() != files || have_children();
	}
	ok(done && k > 4, "every allocation of the pool failed once");
	ok(!leaked, "and nothing was left over");
}

/* ---- races ---- */

static const char FAKE[] = "FAKE";

/* Contestants that take so many microseconds each. */
struct field {
	struct gpu_binary binary;
	struct gpu_param us[4];
	struct gpu_step steps[5];
	uint64_t where[4][61];
	struct gpu_buffer buffers[9];
	const char *names[4];
	struct gpu_job job;
};

static void field_init(struct field *f, int n, const int *us)
{
	static const char *const names[] = { "one", "two", "three", "four" };

	*f = (struct field){ .binary = { FAKE, sizeof(FAKE) } };
	for (int i = 0; i < n; i++) {
		f->names[i] = names[i];
		f->us[i] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = (uint64_t)us[i] };
		f->steps[i] = (struct gpu_step){ .entry = "last", .contestant = i + 1, .grid = { 1 },
			.params = &f->us[i], .nparams = 1 };
	}
	f->job = (struct gpu_job){ .binaries = &f->binary, .nbinaries = 1, .steps = f->steps,
		.nsteps = n, .buffers = f->buffers, .mode = GPU_RACE,
		.race = { .names = f->names, .n = n, .sample_seconds = 0.002, .seconds = 0.02, .rounds_min = 6 } };
}

static enum err_code race(struct gpu *g, const struct gpu_job *job, struct gpu_result *r)
{
	err = (struct err){ 0 };
	*r = (struct gpu_result){ 0 };
	return gpu_run(g, job, PATIENT, NULL, &arena, r, &err);
}

static void test_race(void)
{
	static const int us[] = { 400, 200, 1000 };
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct field f;
	bool right = true;
	int rounds;

	field_init(&f, 3, us);
	ok(!race(g, &f.job, &r), "a race of three");
	is_int(r.contestants, 3, "has three contestants");
	rounds = r.runs / 3;
	ok(rounds >= 6 && r.runs % 3 == 0, "in complete rounds");
	for (int i = 0; i < r.runs; i++)
		right = right && fabs(r.ms[i] - us[i % 3] * 1e-3) < 1e-6;
	ok(right, "every sample has the time of its kernel");
	ok(fabs(r.min_ms[1] - 0.2) < 1e-6 && fabs(r.max_ms[2] - 1) < 1e-6, "and so have the extremes");
	is_int(r.sample_runs[2], 2, "a sample has as many runs as fit into its time");
	f.job.race.seconds = 0;
	f.job.race.rounds_min = 0;
	ok(!race(g, &f.job, &r) && r.runs == 9, "three rounds there are at least");
	f.job.race.seconds = 10;
	f.job.race.rounds_max = 4;
	ok(!race(g, &f.job, &r) && r.runs == 12, "and no more than are allowed");
	f.job.race.rounds_min = 5;
	ok(race(g, &f.job, &r), "which are not fewer than the least");
	gpu_free(g);
}

/* Runs that are shorter than their launch are timed in another way, which changes their time; then those of all contestants are. */
static void test_short(void)
{
	static const int us[] = { 2000, 1000 };
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct field f;

	field_init(&f, 2, us);
	f.job.race.sample_seconds = 1;
	f.job.race.seconds = 0;
	f.job.race.rounds_min = 1;
	ok(!race(g, &f.job, &r), "a race of runs that are longer than their launch");
	is_int(r.sample_runs[0], 4 * 125, "has batches of a quarter of a sample");
	f.steps[1].entry = "launch_slowly";
	ok(!race(g, &f.job, &r), "a race of two, one of which is shorter");
	is_int(r.sample_runs[0], 8 * 32, "has short batches of both");
	is_int(r.sample_runs[1], 8 * 32, "which begin with a blocker");
	gpu_free(g);
}

/* Of (a, b), the median over rounds of b's time over a's, less what it should be. */
static double off(const struct gpu_result *r, double want)
{
	double sum = 0;

	for (int i = 0; i + 3 < r->runs; i += 4)
		sum += (r->ms[i + 1] / r->ms[i] + r->ms[i + 3] / r->ms[i + 2]) / 2;
	return sum / (r->runs / 4) - want;
}

static void test_drift(void)
{
	static const int us[] = { 400, 408 };
	struct gpu_result r;
	struct gpu *g;
	struct field f;

	setenv("FAKE_CUDA_DRIFT", "2", 1);
	g = open_gpu();
	field_init(&f, 2, us);
	f.job.race.rounds_min = 20;
	ok(!race(g, &f.job, &r), "a race while everything becomes slower");
	ok(r.ms[r.runs - 2] > 1.15 * r.ms[0], "by much");
	ok(fabs(off(&r, 1.02)) < 0.002, "tells 2 % apart");
	diag("off by %g", off(&r, 1.02));
	unsetenv("FAKE_CUDA_DRIFT");
	gpu_free(g);
}

/* Which copies of the shared buffer, and of its own, each contestant sees. */
static void test_buffers(void)
{
	static const int us[] = { 50, 50 };
	struct gpu *g = open_gpu();
	struct gpu_param params[2][2];
	struct gpu_result r;
	struct field f;
	bool shared = true;

	field_init(&f, 2, us);
	f.job.nbuffers = 3;
	f.buffers[0] = (struct gpu_buffer){ .name = "x", .bytes = 1 << 20, .rotate = true };
	for (int c = 0; c < 2; c++) {
		f.buffers[1 + c] = (struct gpu_buffer){ .name = "seen", .init = GPU_INIT_WORD,
			.bytes = sizeof(f.where[c]), .to = f.where[c], .contestant = c + 1 };
		for (int i = 0; i < 2; i++)
			params[c][i] = (struct gpu_param){ .kind = GPU_PARAM_POINTER,
				.buffer = i ? 1 + c : 0 };
		f.steps[c].entry = "where";
		f.steps[c].params = params[c];
		f.steps[c].nparams = 2;
	}
	ok(!race(g, &f.job, &r), "a race with buffers");
	is_int(r.copies, 9, "which rotate over twice the L2");
	is_int(r.cache, GPU_CACHE_COLD, "and so leave it cold");
	ok(f.where[0][0] > 20 && f.where[1][0] > 20, "each contestant has a buffer of its own");
	for (int i = 1; i < 20; i++)
		shared = shared && f.where[0][i] == f.where[1][i] && f.where[0][i] &&
			(f.where[0][i] == f.where[0][i + 1]) == false;
	ok(shared, "and both get the same copies of what they share, alternately");
	gpu_free(g);
}

static void refused(struct gpu *g, const struct field *f, const char *text)
{
	struct gpu_result r;

	ok(race(g, &f->job, &r) == ERR_INPUT && says(&err, text), text);
}

static void test_faults(void)
{
	static const int us[] = { 100, 100, 100 };
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct field f;

	field_init(&f, 3, us);
	f.steps[1].entry = "fault";
	f.steps[1].nparams = 0;
	ok(race(g, &f.job, &r) && says(&err, "after 'fault' (two)"), "the message of a fault names its kernel");
	f.steps[1].entry = "hang";
	err = (struct err){ 0 };
	ok(gpu_run(g, &f.job, 0.1, NULL, &arena, &r, &err) == ERR_LIMIT &&
		says(&err, "one of 'last' (one), 'hang' (two), 'last' (three) did not finish"),
		"of a hang all of them are");
	field_init(&f, 3, us);
	ok(!race(g, &f.job, &r), "the next race works");
	f.job.race.n = 0;
	refused(g, &f, "a race has 1 to 64 contestants, not 0");
	f.job.race.n = 2;
	refused(g, &f, "step 2 is of no contestant");
	field_init(&f, 2, us);
	f.steps[1].contestant = 1;
	refused(g, &f, "contestant 2 of a race has no steps");
	field_init(&f, 2, us);
	f.job.race.sample_seconds = -1;
	refused(g, &f, "the seconds of a race are a number from 0");
	field_init(&f, 2, us);
	f.steps[0].once = true;
	refused(g, &f, "step 0 is of no contestant");
	field_init(&f, 2, us);
	f.job.mode = GPU_RUN;
	refused(g, &f, "step 0 is of no contestant");
	gpu_free(g);
}

int main(int argc, char **argv)
{
	static void (*const tests[])(void) = { test_pool, test_awaiting, test_deaths, test_given_cuda, test_given_hip, test_endings, test_orphans, test_jumps,
		test_race, test_short, test_drift, test_buffers, test_faults };

	use_fake("MILLRACE_LIBNVRTC", "fake_nvrtc.so");
	return gpu_tests(argc, argv, tests, LEN(tests));
}
