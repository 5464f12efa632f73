/* How long a person waits for the explorer: until the first view of a timeline of a million events,
 * from a key to the frame that it leads to, after an edit, and for all occurrences of an sTask. From
 * when the key is typed to when all is written to a terminal (a pty that a thread reads) and the
 * explorer waits for the next one. Asserts nothing; the targets are printed behind the numbers. */
#include <stdlib.h>
#include <time.h>

#include "tests/unit/screen.h"
#include "tests/unit/session.h"

enum { KEYS_MAX = 4096 };

struct run {
	struct screen screen;
	const char *const *keys;	/* typed one after the other; NULL ends */
	int nkeys, at;
	double typed, begun, took[KEYS_MAX + 1];
	double first;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The explorer has nothing to do: the last key is done with. */
static bool idle(void *arg)
{
	struct run *r = arg;
	double t = now();

	if (r->at == 0)
		r->first = t;
	else
		r->took[r->at - 1] = t - r->typed;
	if (r->at == r->nkeys + 1)
		return false;
	r->typed = now();
	return screen_type(&r->screen, r->at++ < r->nkeys ? r->keys[r->at - 1] : "qn");
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* When the chunk says that the explorer was opened. */
static double begun(void)
{
	FILE *f = fopen("begin", "r");
	double t = 0;

	if (f && fscanf(f, "%lf", &t) != 1)
		t = 0;
	if (f)
		fclose(f);
	return t;
}

/* Run a chunk, whose explorer gets the keys. What each took, in order of length. */
static void run(struct run *r, const char *chunk, const char *const *keys, int n)
{
	static struct session session;
	struct term_setup setup;
	const char *wrong;

	memset(r, 0, sizeof(*r));
	if (!session_enter(&session) || !screen_open(&r->screen, 200, 60))
		exit(1);
	setup = screen_setup(&r->screen, "xterm-256color");
	setup.idle = idle;
	setup.arg = r;
	r->keys = keys;
	r->nkeys = n < KEYS_MAX ? n : KEYS_MAX;
	wrong = session_run(&session, chunk, "bench", &setup);
	if (wrong[0])
		fprintf(stderr, "bench_explore: %s\n", wrong);
	r->begun = begun();
	screen_close(&r->screen);
	session_leave(&session);
	qsort(r->took, (size_t)r->nkeys, sizeof(*r->took), by_value);
}

/* Keys of a pool, drawn at random behind the first ones. */
static void draw_keys(const char **keys, int n, const char *const *pool, int npool)
{
	uint64_t seed = 7;

	for (int i = 0; i < n; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		keys[i] = pool[(seed >> 33) % (uint64_t)npool];
	}
}

static void print_frames(const char *what, const struct run *r)
{
	printf("%-44s %8.1f ms, 99 %% %.1f ms, worst %.1f ms (16)\n", what, r->took[r->nkeys / 2] * 1e3,
		r->took[r->nkeys * 99 / 100] * 1e3, r->took[r->nkeys - 1] * 1e3);
}

/* A timeline of a million events, made before the clock starts: a file says when that was. */
static void bench_many(void)
{
	static const char chunk[] =
		"local bound = mr.examples.gemm{m=16384, n=16384, k=262144}\n"
		"local plan = mr.load_plan(mr.home .. '/examples/gemm_cooperative.lua', bound)\n"
		"local tl = plan:simulate{events=1100000}\n"
		"io.open('begin', 'w'):write(require 'millrace.core'.clock()):close()\n"
		"tl:show()\n"
		"print(#tl.events .. ' events')";
	static const char *const pool[] = { "+", "+", "-", "-", "[", "]", "\033[5~", "\033[6~", "0", "l",
		"h", "w", "c", "z", "v", "j" };
	static const char *const grid[] = { "l", "h", "j", "k", "\033[5~", "\033[6~", "g", "G", "v" };
	static const char *keys[1000];
	static struct run r;

	draw_keys(keys, LEN(keys), pool, LEN(pool));
	for (int i = 0; i < 40; i++)
		keys[i] = "0";
	run(&r, chunk, keys, LEN(keys));
	if (r.begun > 0)
		printf("%-44s %8.1f ms (300)\n", "first view of a million events", (r.first - r.begun) * 1e3);
	print_frames("a frame of a million events, median", &r);
	draw_keys(keys, LEN(keys), grid, LEN(grid));
	keys[0] = "5";
	run(&r, chunk, keys, LEN(keys));
	print_frames("... of the grid of that plan", &r);
}

static void bench_edit(const char *what, const char *const *keys, int n, double target)
{
	static struct run r;

	run(&r, "mr.load_plan 'attention_d128':simulate():show()", keys, n);
	printf("%-44s %8.1f ms, worst %.1f ms (%g)\n", what, r.took[r.nkeys / 2] * 1e3,
		r.took[r.nkeys - 1] * 1e3, target);
}

int main(void)
{
	static const char *const edits[] = { "2", "/", "load_k\r", "}", "{", "}", "{", "}", "{", "}", "{",
		"}", "{", "}", "{", "}", "{" };
	static const char *const find[] = { "/", "softmax\r", " ", "\033" };

	bench_many();
	bench_edit("an edit of flash attention, median", edits, LEN(edits), 50);
	bench_edit("... all occurrences of an sTask, worst", find, LEN(find), 300);
	return 0;
}
