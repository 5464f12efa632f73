/* How long the shell takes to start and end, and the most memory that it holds then:
 * the median of 20 runs of $MILLRACE (build/millrace), also with a first command.
 * The targets for an empty script are 20 ms and 30 MB; asserts nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 20 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One run: seconds, and the bytes that it held at most. */
static void run(const char *program, const char *code, double *seconds, double *bytes)
{
	double begin = now();
	struct rusage use;
	pid_t child = fork();
	int status;

	if (child == 0) {
		execl(program, program, "-e", code, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &use) != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status)) {
		fprintf(stderr, "bench_start: %s -e '%s' fails\n", program, code);
		exit(1);
	}
	*seconds = now() - begin;
	*bytes = (double)use.ru_maxrss * 1024;
}

static void bench(const char *what, const char *code)
{
	const char *given = getenv("MILLRACE"), *program = given ? given : "build/millrace";
	double seconds[RUNS], bytes[RUNS];

	for (int i = 0; i < RUNS; i++)
		run(program, code, &seconds[i], &bytes[i]);
	qsort(seconds, RUNS, sizeof(*seconds), by_value);
	qsort(bytes, RUNS, sizeof(*bytes), by_value);
	printf("%-24s %8.2f ms (%.2f to %.2f), %.1f MB at most\n", what, seconds[RUNS / 2] * 1e3,
		seconds[0] * 1e3, seconds[RUNS - 1] * 1e3, bytes[RUNS - 1] * 1e-6);
}

int main(void)
{
	bench("start", "");
	bench("start and load a plan", "mr.load_plan 'attention_pingpong'");
	bench("start and simulate it", "mr.load_plan 'attention_pingpong':simulate()");
	return 0;
}
