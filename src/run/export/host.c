/* @NAME@_host.c - runs @PROGRAM@ on the CPU, thread by thread. Made by Millrace from a plan
 * for @DEVICE@.
 *
 *	make -f @NAME@_host.mk
@FIXED@ *	./@NAME@_host [-s SEED] [-r] [TENSOR=FILE ...]
@ANY@ *	./@NAME@_host [-s SEED] [-r] [-n @FIRSTSIZE@=SIZE ...] [TENSOR=FILE ...]
 *
@TENSORS@
 *
@ANY@ * Sizes: @RANGETEXT@; the largest unless given.
 * A FILE holds the elements of a tensor, packed, the last index fastest. An input without one
 * is random; an output is written to its file if it has one, and its first elements are
 * printed. SEED (1) also decides the order of all that the plan leaves open: threads, copies,
 * products. -r looks for accesses that nothing orders. What the kernel does wrong is printed,
 * and the exit status 3.
 *
 *	gdb -ex 'break @ENTRY@' -ex run ./@NAME@_host
 *
 * stops at each thread's start. All of them are one OS thread; `print host.self->thread`
 * says which one is at work, `break stopped` stops at what it does wrong.@FORKNOTE@
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/rt_abi.h"

/* ---- what the plan says --------------------------------------------------------- */

@FIXED@enum { TENSORS = @NTENSORS@, PHASES = @NPHASES@, PARAMS_MOST = @PARAMS_MOST@ };
@ANY@enum { TENSORS = @NTENSORS@, PHASES = @NPHASES@, PARAMS_MOST = @PARAMS_MOST@, SIZES = @NSIZES@ };

enum role { INPUT, OUTPUT, TEMPORARY };

struct tensor {
	const char *name;
	enum role role;
	long elements;
	int bits, exponent, mantissa;	/* of an element; an integer has no exponent */
	const char *what;
};

@FIXED@static const struct tensor tensors[TENSORS] = {
@ANY@static struct tensor tensors[TENSORS] = {	/* elements: to be multiplied by sizes */
@TENSORTABLE@};

@ANY@static const uint64_t tensor_by[TENSORS] = { @TENSORBY@ };	/* bits of these sizes */
@ANY@
@ANY@/* Sizes are 1 to max, multiples of `multiple`; like: the number of the one that it is the same as. */
@ANY@static const struct {
@ANY@	const char *name;
@ANY@	int max, multiple, like;
@ANY@} ranges[SIZES] = { @RANGESLIKE@ };
@ANY@
@ANY@static int sizes[SIZES];
@ANY@
@ANY@static long times_sizes(long x, uint64_t by)
@ANY@{
@ANY@	for (int i = 0; i < SIZES; i++)
@ANY@		x *= by >> i & 1 ? sizes[i] : 1;
@ANY@	return x;
@ANY@}
@ANY@
@FIXED@enum kind { POINTER, MAP, ORDER, START };
@ANY@enum kind { POINTER, MAP, ORDER, START, SIZE };

struct param {
	enum kind kind;
	int tensor;
	struct host_map map;		/* dimensions innermost first */
@ANY@	/* bits of sizes by which dim and stride of the map are to be multiplied */
@ANY@	uint64_t dim_by[HOST_DIMS_MAX], stride_by[HOST_DIMS_MAX];
};

@TILES@@TABLES@
static const struct phase {
	host_run_function *run;
	int blocks, cluster, threads;	/* cluster: blocks that run together */
	long shared;			/* bytes */
	const struct param *params;
	int nparams;
@TABLED@	const int *order, *start;	/* output tiles; where those of each block begin */
@COUNTED@	const int *order;		/* output tiles */
@ANY@	const struct grid *grid;
} phases[PHASES] = {
@PHASES@};

/* ---- tensors -------------------------------------------------------------------- */

static unsigned char *at[TENSORS];
static const char *files[TENSORS];

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "@NAME@: %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

static size_t bytes_of(const struct tensor *t)
{
	return ((size_t)t->elements * (size_t)t->bits + 7) / 8;
}

/* Memory that the phases share, its end at a page that nobody may touch. */
static unsigned char *get_memory(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (bytes + 15) / 16 * 16;
	size_t pages = (n + page - 1) / page * page;
	unsigned char *p = mmap(NULL, pages + page, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("no memory for", "tensors");
	mprotect(p + pages, page, PROT_NONE);
	memset(p, 0xff, pages);
	return p + pages - n;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void put_bits(const struct tensor *t, unsigned char *p, long i, uint64_t bits)
{
	if (t->bits >= 8)
		memcpy(p + i * (t->bits / 8), &bits, (size_t)t->bits / 8);
	else
		p[i / 2] = (unsigned char)(i % 2 ? (p[i / 2] & 15) | bits << 4 : (p[i / 2] & 0xf0) | bits);
}

static uint64_t get_bits(const struct tensor *t, const unsigned char *p, long i)
{
	uint64_t bits = 0;

	if (t->bits < 8)
		return p[i / 2] >> (i % 2 ? 4 : 0) & 15;
	memcpy(&bits, p + i * (t->bits / 8), (size_t)t->bits / 8);
	return bits;
}

/* Floats from -1 to 1, integers of all values. */
static void fill(const struct tensor *t, unsigned char *p, uint64_t seed)
{
	uint64_t bias = t->exponent ? ((uint64_t)1 << (t->exponent - 1)) - 1 : 0;
	int sign = t->mantissa ? 1 : 0;		/* powers of two have none */
	int unused = t->exponent ? t->bits - sign - t->exponent - t->mantissa : 0;	/* tf32 has some */

	for (long i = 0; i < t->elements; i++) {
		uint64_t r = next_random(&seed), down = 1 + (r >> 40) % 4;
		uint64_t exponent = bias > down ? bias - down : 0;

		if (t->exponent)
			r = ((r >> 60 & (uint64_t)sign) << (t->exponent + t->mantissa) | exponent << t->mantissa |
				(r & (((uint64_t)1 << t->mantissa) - 1))) << unused;
		else if (t->bits < 64)
			r = r >> 8 & (((uint64_t)1 << (strncmp(t->what, "bool", 4) ? t->bits : 1)) - 1);
		put_bits(t, p, i, r);
	}
}

static double value(const struct tensor *t, const unsigned char *p, long i)
{
	uint64_t bits = get_bits(t, p, i);
	int unused = t->mantissa ? t->bits - 1 - t->exponent - t->mantissa : 0;
	int most = (1 << t->exponent) - 1, e;
	double m;

	if (!t->exponent)
		return t->bits < 64 && t->what[0] != 'u' && bits >> (t->bits - 1) ? (double)bits - pow(2, t->bits) : (double)bits;
	if (!t->mantissa)		/* a power of two */
		return bits == 255 ? (double)NAN : ldexp(1, (int)bits - 127);
	bits >>= unused;
	e = (int)(bits >> t->mantissa) & most;
	m = (double)(bits & (((uint64_t)1 << t->mantissa) - 1)) / pow(2, t->mantissa);
	if (e == most && t->exponent > 4)	/* smaller ones have no infinity */
		m = m > 0 ? (double)NAN : (double)INFINITY;
	else
		m = e ? ldexp(1 + m, e - (most >> 1)) : ldexp(m, 1 - (most >> 1));
	return bits >> (t->exponent + t->mantissa) & 1 ? -m : m;
}

static void read_file(const struct tensor *t, unsigned char *p, const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		fail("cannot read", path);
	errno = 0;
	if (fread(p, 1, bytes_of(t), f) != bytes_of(t) || getc(f) != EOF) {
		fprintf(stderr, "@NAME@: %s must have %zu bytes: %s\n", path, bytes_of(t), t->what);
		exit(1);
	}
	fclose(f);
}

static void show(const struct tensor *t, const unsigned char *p)
{
	double sum = 0;

	printf("%s:", t->what);
	for (long i = 0; i < t->elements; i++) {
		sum += value(t, p, i);
		if (i < 6)
			printf(" %g", value(t, p, i));
	}
	printf("%s; sum %g\n", t->elements > 6 ? " ..." : "", sum);
}

/* ---- running -------------------------------------------------------------------- */

/* The kernel did something wrong; the process ends after this. */
static void stopped(const char *report)
{
	fflush(stdout);
	fprintf(stderr, "%s\n", report);
}

static void run_phase(const struct phase *p, uint64_t seed, int race)
{
	static struct host_map maps[PARAMS_MOST];
	static char report[1 << 16];
@COUNTED@	static int counter;		/* of the tiles that blocks take: 0 behind a launch, too */
	void *args[PARAMS_MOST];
	struct host_launch launch = { .runtime = &host_runtime, .args = args, .blocks = p->blocks,
		.cluster = p->cluster, .threads = p->threads, .warp = @WARP@, .group = @GROUP@, .shared_bytes = p->shared,
		.seed = seed, .race = race, .report = report, .report_size = sizeof(report), .stopped = stopped };
@ANY@	int *order = calloc((size_t)(p->grid->ngroups * (p->grid->cluster + 1) + p->blocks + 1), sizeof(int));
@ANY@	int *start = order + p->grid->ngroups * p->grid->cluster;

@ANY@	if (!order)
@ANY@		fail("no memory for", "tiles");
@ANY@	launch.blocks = assign_tiles(p->grid, sizes, order, start, start + p->blocks + 1);
	for (int i = 0; i < p->nparams; i++) {
		const struct param *x = &p->params[i];

		maps[i] = x->map;
@ANY@		for (int d = 0; d < x->map.rank; d++) {
@ANY@			maps[i].dim[d] = times_sizes((long)x->map.dim[d], x->dim_by[d]);
@ANY@			maps[i].stride[d] = times_sizes((long)x->map.stride[d], x->stride_by[d]);
@ANY@		}
@ANY@		if (x->kind == SIZE) {
@ANY@			args[i] = &sizes[x->tensor];
@ANY@			continue;
@ANY@		}
		maps[i].base = at[x->tensor];
		args[i] = x->kind == POINTER ? (void *)at[x->tensor] :
			x->kind == MAP ? (void *)&maps[i] :
@TABLED@			x->kind == ORDER ? (void *)(uintptr_t)p->order : (void *)(uintptr_t)p->start;
@COUNTED@			x->kind == ORDER ? (void *)(uintptr_t)p->order : (void *)&counter;
@ANY@			x->kind == ORDER ? (void *)order : (void *)start;
	}
	p->run(&launch);
}

/* The runtime plays one kernel a process: all phases but the last have one of their own. */
static void run_all(uint64_t seed, int race)
{
	for (int i = 0; i < PHASES - 1; i++) {
		int status = 1, pid = fork();

		if (pid == 0) {
			run_phase(&phases[i], seed, race);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
			fprintf(stderr, "@NAME@: phase %d failed\n", i + 1);
			exit(pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
	}
	run_phase(&phases[PHASES - 1], seed, race);
}

@ANY@/* "m=64" */
@ANY@static int take_size(const char *word)
@ANY@{
@ANY@	const char *number = strchr(word, '=');
@ANY@
@ANY@	for (int i = 0; number && i < SIZES; i++) {
@ANY@		int n = atoi(number + 1);
@ANY@
@ANY@		if (ranges[i].like >= 0 || strlen(ranges[i].name) != (size_t)(number - word) ||
@ANY@		    strncmp(ranges[i].name, word, (size_t)(number - word)))
@ANY@			continue;
@ANY@		if (n < 1 || n > ranges[i].max || n % ranges[i].multiple) {
@ANY@			fprintf(stderr, "@NAME@: %s is %d; it is to be from 1 to %d, and a multiple of %d\n", ranges[i].name,
@ANY@				n, ranges[i].max, ranges[i].multiple);
@ANY@			exit(2);
@ANY@		}
@ANY@		sizes[i] = n;
@ANY@		return 1;
@ANY@	}
@ANY@	return 0;
@ANY@}
@ANY@
/* TENSOR=FILE */
static void take_file(char *word)
{
	char *file = strchr(word, '=');

	for (int t = 0; file && t < TENSORS; t++) {
		if (tensors[t].role == TEMPORARY || strlen(tensors[t].name) != (size_t)(file - word) ||
		    strncmp(tensors[t].name, word, (size_t)(file - word)))
			continue;
		files[t] = file + 1;
		return;
	}
@FIXED@	fprintf(stderr, "usage: @NAME@_host [-s SEED] [-r] [TENSOR=FILE ...]\n");
@ANY@	fprintf(stderr, "usage: @NAME@_host [-s SEED] [-r] [-n @FIRSTSIZE@=SIZE ...] [TENSOR=FILE ...]\n");
	for (int t = 0; t < TENSORS; t++)
		if (tensors[t].role != TEMPORARY)
			fprintf(stderr, "  %s %s\n", tensors[t].role == INPUT ? "reads " : "writes",
				tensors[t].what);
	exit(2);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	int race = 0;

@ANY@	for (int i = 0; i < SIZES; i++)
@ANY@		sizes[i] = ranges[i].max;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-r"))
			race = 1;
		else if (!strcmp(argv[i], "-s") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
@ANY@		else if (!strcmp(argv[i], "-n") && i + 1 < argc && take_size(argv[i + 1]))
@ANY@			i++;
		else
			take_file(argv[i]);
	}
@ANY@	for (int i = 0; i < SIZES; i++)
@ANY@		sizes[i] = ranges[i].like < 0 ? sizes[i] : sizes[ranges[i].like];
@ANY@	for (int t = 0; t < TENSORS; t++)
@ANY@		tensors[t].elements = times_sizes(tensors[t].elements, tensor_by[t]);
	for (int t = 0; t < TENSORS; t++) {
		at[t] = get_memory(bytes_of(&tensors[t]));
		if (tensors[t].role == INPUT && files[t])
			read_file(&tensors[t], at[t], files[t]);
		else if (tensors[t].role == INPUT)
			fill(&tensors[t], at[t], seed * 1000 + (uint64_t)t);
	}
	run_all(seed, race);
	for (int t = 0; t < TENSORS; t++) {
		FILE *f;

		if (tensors[t].role != OUTPUT)
			continue;
		show(&tensors[t], at[t]);
		if (!files[t])
			continue;
		f = fopen(files[t], "wb");
		if (!f || fwrite(at[t], 1, bytes_of(&tensors[t]), f) != bytes_of(&tensors[t]) || fclose(f))
			fail("cannot write", files[t]);
	}
	return 0;
}

/* ---- tiles ---------------------------------------------------------------------- */

@DATA@
