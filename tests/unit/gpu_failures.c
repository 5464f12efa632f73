/* Failures of jobs and of the worker process: each is an error, and the next job works. */
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "unit/gpu_setup.h"

/* ---- what goes wrong ---- */

static void fails(struct gpu *g, const char *entry, enum gpu_failure want, const char *text)
{
	struct simple s;
	char name[80];

	simple_init(&s, entry);
	ok(run(g, &s.job, PATIENT) && says(&err, text), entry);
	snprintf(name, sizeof(name), "'%s' is a failure of its kind", entry);
	is_int(gpu_failure(g), want, name);
	snprintf(name, sizeof(name), "after '%s' the next job works", entry);
	ok(still_works(g), name);
}

static void test_failures(void)
{
	struct gpu *g = open_gpu();
	struct simple s;
	double start;

	simple_init(&s, "hang");
	start = clock_seconds();
	is_int(run(g, &s.job, 0.2), ERR_LIMIT, "a kernel that hangs");
	ok(seconds_since(start) < PATIENT, "is stopped");
	ok(says(&err, "'hang' did not finish within 0.2 s"), "and the message says so");
	is_int(gpu_failure(g), GPU_FAIL_TIMEOUT, "as a time-out");
	ok(still_works(g), "after it the next job works");
	s.job.mode = GPU_BENCH;
	ok(run(g, &s.job, 0.1) && gpu_failure(g) == GPU_FAIL_TIMEOUT, "benchmarking it, too");

	fails(g, "fault", GPU_FAIL_FAULT, "cuStreamSynchronize after 'fault' failed with "
		"CUDA_ERROR_ILLEGAL_ADDRESS (the fake driver says so); a kernel touched memory");
	fails(g, "refuse", GPU_FAIL_LAUNCH, "cuLaunchKernelEx of 'refuse' failed");
	fails(g, "crash", GPU_FAIL_WORKER, "an assertion failed (while running 'crash')");
	fails(g, "quit", GPU_FAIL_WORKER, "ended with status 7");
	fails(g, "babble", GPU_FAIL_WORKER, "a malformed message");
	fails(g, "none", GPU_FAIL_BINARY, "cuModuleGetFunction of 'none'");
	gpu_free(g);
}

static void test_refusals(void)
{
	struct gpu *g = open_gpu();
	struct simple s;

	saxpy_init(&s);
	s.buffers[0] = (struct gpu_buffer){ .name = "big", .bytes = (size_t)1 << 30 };
	is_int(run(g, &s.job, PATIENT), ERR_LIMIT, "more memory than there is");
	ok(says(&err, "cuMemAlloc of 1.0 GiB for 'big' failed with CUDA_ERROR_OUT_OF_MEMORY") &&
		says(&err, "256.0 MiB of 256.0 MiB are free"), "and the message says how much there is");
	is_int(gpu_failure(g), GPU_FAIL_MEMORY, "as a failure of memory");
	ok(still_works(g), "after it the next job works");

	saxpy_init(&s);
	s.job.binaries = &(struct gpu_binary){ "FAKE80", 7 };
	ok(run(g, &s.job, PATIENT) && gpu_failure(g) == GPU_FAIL_BINARY && says(&err, "architecture"),
		"a binary for another device");
	saxpy_init(&s);
	s.params[1].kind = GPU_PARAM_BITS64;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "parameter 1 of 'saxpy' has 4 bytes"),
		"a parameter of another size");
	saxpy_init(&s);
	s.step.nparams = 3;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "takes 4 parameters, the job gives it 3"),
		"one too few");
	saxpy_init(&s);
	s.step.smem = 232000;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "232448"),
		"more shared memory than there is");
	saxpy_init(&s);
	s.step.block[0] = 1024;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "at most 512 threads"),
		"more threads than it was compiled for");

	simple_init(&s, "overrun");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s.params[1] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 100 };
	s.step.nparams = 2;
	ok(run(g, &s.job, PATIENT) && gpu_failure(g) == GPU_FAIL_OVERRUN &&
		says(&err, "'y' was written to beyond its end, first at byte 0"), "a write past the end");
	ok(still_works(g), "after all of it the next job works");

	mem.cap = mem.used + 100000;
	saxpy_init(&s);
	s.buffers[0] = (struct gpu_buffer){ .bytes = 1 << 20, .init = GPU_INIT_HOST,
		.from = s.x };
	ok(run(g, &s.job, PATIENT) == ERR_LIMIT && gpu_failure(g) == GPU_FAIL_MEMORY,
		"the cap on the shell's memory holds for a job's");
	mem.cap = 0;
	gpu_free(g);
}

static void test_no_driver(void)
{
	struct gpu_info info;
	struct gpu *g = open_gpu();

	setenv("FAKE_CUDA_INIT", "100", 1);
	ok(gpu_probe(g, GPU_CUDA, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING &&
		says(&err, "cuInit failed with CUDA_ERROR_NO_DEVICE"), "a driver without a device");
	unsetenv("FAKE_CUDA_INIT");
	gpu_close(g);
	setenv("MILLRACE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
	ok(gpu_probe(g, GPU_CUDA, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING &&
		says(&err, "MILLRACE_LIBCUDA") && says(&err, "/nowhere/libcuda.so.1"),
		"a file that is no library");
	gpu_close(g);
	unsetenv("MILLRACE_LIBCUDA");
	if (gpu_probe(g, GPU_CUDA, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING) {
		diag("%s", err.msg);
		ok(*err.msg, "without a driver there is a reason");
	} else {
		skip("there is a driver");
	}
	use_fake("MILLRACE_LIBCUDA", "fake_cuda.so");
	gpu_close(g);
	ok(!gpu_probe(g, GPU_CUDA, NULL, &info, &err), "the next worker looks again");
	gpu_free(g);
	gpu_new(&mem, 3, &g);
	ok(gpu_probe(g, GPU_CUDA, NULL, &info, &err) && says(&err, "there is no device 3"), "a device too many");
	gpu_free(g);
}

/* ---- interrupts, deaths and jumps ---- */

static volatile int stop_flag;

static void set_stop(int sig)
{
	(void)sig;
	stop_flag = 1;
}

static void test_interrupt(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 100000 } };
	struct stop stop = { &stop_flag };
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct simple s;
	double start = clock_seconds();

	simple_init(&s, "hang");
	signal(SIGALRM, set_stop);
	setitimer(ITIMER_REAL, &soon, NULL);
	is_int(gpu_run(g, &s.job, 1000, &stop, &arena, &r, &err), ERR_INTERRUPTED, "an interrupt");
	ok(seconds_since(start) < PATIENT, "ends the wait");
	is_int(gpu_failure(g), GPU_FAIL_STOPPED, "and is no failure of the job");
	stop_flag = 0;
	ok(still_works(g), "after it the next job works");
	gpu_free(g);
}

static pid_t worker_pid(struct gpu *g)
{
	int64_t y = 0;
	struct simple s;

	simple_init(&s, "pid");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER };
	s.step.nparams = 1;
	s.buffers[0] = (struct gpu_buffer){ .bytes = sizeof(y), .to = &y };
	return run(g, &s.job, PATIENT) ? 0 : (pid_t)y;
}

static void test_idle_death(void)
{
	struct gpu *g = open_gpu();
	pid_t pid = worker_pid(g);

	ok(pid > 0 && worker_pid(g) == pid, "one worker serves job after job");
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	ok(worker_pid(g) > 0 && worker_pid(g) != pid, "one that was killed idle is replaced");
	gpu_free(g);
}

/* The shell is killed while a kernel hangs, which makes a file when it begins to. */
static void test_orphan(void)
{
	int ends[2], status;
	pid_t shell, worker = 0;
	double start = clock_seconds();
	char hangs[PATH_MAX];

	snprintf(hangs, sizeof(hangs), "%s/hangs", folder);
	setenv("FAKE_CUDA_HANGS", hangs, 1);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe(ends))
		BUG("no pipe");
	fflush(stdout);
	shell = fork();
	if (!shell) {
		struct gpu *g = open_gpu();
		struct simple s;

		worker = worker_pid(g);
		if (write(ends[1], &worker, sizeof(worker)) < 0)
			_exit(1);
		simple_init(&s, "hang");
		_exit(run(g, &s.job, 1000) ? 1 : 0);
	}
	ok(read(ends[0], &worker, sizeof(worker)) == sizeof(worker) && worker > 0,
		"a shell has a worker");
	close(ends[0]);
	close(ends[1]);
	while (access(hangs, F_OK) && seconds_since(start) < PATIENT)
		usleep(1000);
	unsetenv("FAKE_CUDA_HANGS");
	kill(shell, SIGKILL);
	waitpid(shell, &status, 0);
	while (waitpid(worker, &status, WNOHANG) == 0 && seconds_since(start) < PATIENT)
		usleep(1000);
	ok(seconds_since(start) < PATIENT, "which does not outlive it");
}

static jmp_buf out_of_memory;

static void jump(void *ud, size_t want)
{
	(void)ud;
	(void)want;
	longjmp(out_of_memory, 1);
}

/* Each allocation of opening, probing and running fails once; freeing the object
 * is enough then. */
static void test_jumps(void)
{
	static struct mem small;
	static struct gpu *g;
	static struct arena results;
	static volatile uint64_t k;
	volatile bool leaked = false, done = false;
	int files = open_files();
	static struct simple s;

	for (k = 1; !done && k < 100; k++) {
		small = (struct mem){ .fail = jump, .fail_at = k };
		arena_init(&results, &small);
		saxpy_init(&s);
		g = NULL;
		if (!setjmp(out_of_memory)) {
			struct gpu_info info;
			struct gpu_result r;

			gpu_new(&small, 0, &g);
			if (gpu_probe(g, GPU_CUDA, NULL, &info, &err) ||
			    gpu_run(g, &s.job, PATIENT, NULL, &results, &r, &err))
				diag("%s", err.msg);
			done = true;
		}
		if (k % 2 && g && !done) {	/* or use it again */
			struct gpu_result r;

			small.fail_at = 0;
			saxpy_init(&s);
			if (gpu_run(g, &s.job, PATIENT, NULL, &results, &r, &err) ||
			    !saxpy_right(&s, 1))
				diag("%s", err.msg);
		}
		arena_release(&results);
		gpu_free(g);
		leaked = leaked || small.used || open_files() != files || have_children();
	}
	ok(done && k > 5, "every allocation failed once");
	ok(!leaked, "and nothing was left over");
}

int main(int argc, char **argv)
{
	static void (*const tests[])(void) = { test_failures, test_refusals, test_no_driver, test_interrupt,
		test_idle_death,
		test_orphan, test_jumps };

	return gpu_tests(argc, argv, tests, LEN(tests));
}
