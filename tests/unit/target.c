/* A target outside of src, made as docs/internals/adding.md says with emit.h alone: its names only count. The counts must
 * be those of the plan. */
#include <sys/wait.h>
#include <unistd.h>

#include "emit/print.h"
#include "lower/lower.h"
#include "lower/stamps.h"
#include "lua/lplan.h"
#include "plan/assign.h"
#include "plan/history.h"
#include "tests/unit/script.h"

/* the target ------------------------------------------------------------------ */

static const char *const prelude[] = {
	"#include <math.h>\n",
	"#include <stdbool.h>\n",
	"#include <stdio.h>\n",
	"#include <string.h>\n",
	"typedef unsigned char u8;\n",
	"typedef unsigned short u16;\n",
	"typedef unsigned int u32;\n",
	"typedef unsigned long long u64;\n",
	"static int me, mine;\n",
	"static long long sums, copies, bytes, arrivals, flags, stamps_made;\n",
	"static struct { const char *task; long long n; } seen[64];\n",
	"static void saw(const char *task)\n",
	"{\n",
	"\tint i = 0;\n",
	"\twhile (seen[i].task && strcmp(seen[i].task, task)) i++;\n",
	"\tseen[i].task = task;\n",
	"\tseen[i].n++;\n",
	"}\n",
	"#define DEV static\n",
	"#define KERNEL(name, threads) static void name\n",
	"#define CLUSTER_KERNEL(name, threads, blocks) static void name\n",
	"#define CLUSTER_SYNC() ((void)0)\n",
	"#define flag_arrive_at(a, block) (arrivals++)\n",
	"#define flag_tell_at(a, block) (arrivals++)\n",
	"#define flag_wait_peers(a, phase) flag_wait(a, phase)\n",
	"#define peer_put_16(a, block, x) ((void)0)\n",
	"#define MAP const void *const\n",
	"#define EACH(i, n) for (int i = 0; i < (n); i++)\n",
	"#define LOOP for\n",
	"#define THREAD me\n",
	"#define BLOCK mine\n",
	"#define BLOCK_SYNC() ((void)0)\n",
	"#define NEXT_PHASE_MAY_BEGIN() ((void)0)\n",
	"#define LAST_PHASE_WAIT() ((void)0)\n",
	"#define WARP_SYNC() ((void)0)\n",
	"#define UNIFORM(x) (x)\n",
	"#define SET_REGISTERS(how, n) ((void)0)\n",
	"#define AT(task, iteration) saw(task)\n",
	"#define opaque(x) (x)\n",
	"#define recomputed(x, n) (x)\n",
	"#define INFINITE INFINITY\n",
	"#define max_of(a, b) ((a) > (b) ? (a) : (b))\n",
	"#define min_of(a, b) ((a) < (b) ? (a) : (b))\n",
	"#define elect() (me % 32 == 0)\n",
	"#define lane_sync(id, threads) ((void)0)\n",
	"#define shared_base() 0\n",
	"#define flag_init(a, n, name, index) (flags++)\n",
	"#define flags_ready() ((void)0)\n",
	"#define flag_arrive_warp(a) (arrivals += me % 32 == 0)\n",
	"#define quo(a, b) ((a) / (b))\n",
	"#define rem(a, b) ((a) % (b))\n",
	"#define flag_expect(a, n) (arrivals++, bytes += (n))\n",
	"#define flag_wait(a, phase) ((void)0)\n",
	"#define fence_async() ((void)0)\n",
	"#define tma_load_1d(...) (copies++)\n",
	"#define tma_load_once_1d(...) (copies++)\n",
	"#define tma_load_all_1d(...) (copies++)\n",
	"#define tma_load_all_2d(...) (copies++)\n",
	"#define tma_load_all_3d(...) (copies++)\n",
	"#define tma_load_all_4d(...) (copies++)\n",
	"#define tma_load_all_5d(...) (copies++)\n",
	"#define tma_load_2d(...) (copies++)\n",
	"#define tma_load_once_2d(...) (copies++)\n",
	"#define tma_load_3d(...) (copies++)\n",
	"#define tma_load_once_3d(...) (copies++)\n",
	"#define tma_load_4d(...) (copies++)\n",
	"#define tma_load_once_4d(...) (copies++)\n",
	"#define tma_load_5d(...) (copies++)\n",
	"#define tma_load_once_5d(...) (copies++)\n",
	"#define tma_store_1d(...) (copies++)\n",
	"#define tma_store_2d(...) (copies++)\n",
	"#define tma_store_3d(...) (copies++)\n",
	"#define tma_store_4d(...) (copies++)\n",
	"#define tma_store_5d(...) (copies++)\n",
	"#define tma_add_1d(...) (copies++)\n",
	"#define tma_add_2d(...) (copies++)\n",
	"#define tma_add_3d(...) (copies++)\n",
	"#define tma_add_4d(...) (copies++)\n",
	"#define tma_add_5d(...) (copies++)\n",
	"#define add_to(to, x) (*(to) += (x))\n",
	"#define add_to_2(to, y) ((void)(to), (void)(y))\n",
	"#define add_to_4(to, y) ((void)(to), (void)(y))\n",
	"#define swap_halves(x, odd) ((void)(x), (void)(odd))\n",
	"#define stores_commit() ((void)0)\n",
	"#define STORES_READ(n) ((void)0)\n",
	"#define in_block(at) (at)\n",
	"#define descriptor(bits, from, by) ((bits) + (from) + (by))\n",
	"#define groups_fence() ((void)0)\n",
	"#define groups_commit() ((void)0)\n",
	"#define GROUPS_WAIT(n) ((void)0)\n",
	"#define PIN_F(x, n) ((void)(x))\n",
	"#define PIN_U(x, n) ((void)(x))\n",
	"#define FRESH_F(x, n) ((void)(x))\n",
	"#define FRESH_U(x, n) ((void)(x))\n",
	"#define shared_u8(a) 0\n",
	"#define shared_u16(a) 0\n",
	"#define shared_u32(a) 0\n",
	"#define shared_f32(a) 0.f\n",
	"#define shared_matrices(x, a) ((void)(a), (x)[0] = (x)[1] = (x)[2] = (x)[3] = 0)\n",
	"#define shared_matrices_across(x, a) shared_matrices(x, a)\n",
	"#define shared_put_u8(a, x) ((void)(x))\n",
	"#define shared_put_u16(a, x) ((void)(x))\n",
	"#define shared_put_u32(a, x) ((void)(x))\n",
	"#define shared_put_f32(a, x) ((void)(x))\n",
	"#define copy_4(to, from, inside) ((void)(from), (void)(inside), (void)(to))\n",
	"#define copy_8(to, from, inside) ((void)(from), (void)(inside), (void)(to))\n",
	"#define copy_16(to, from, inside) ((void)(from), (void)(inside), (void)(to))\n",
	"#define load_4(x, from, inside) ((void)(x), (void)(from), (void)(inside))\n",
	"#define load_8(x, from, inside) ((void)(x), (void)(from), (void)(inside))\n",
	"#define load_16(x, from, inside) ((void)(x), (void)(from), (void)(inside))\n",
	"#define load_4_of(x, tensor, at, inside) ((void)(x), (void)(tensor), (void)(at), (void)(inside))\n",
	"#define load_8_of load_4_of\n",
	"#define load_16_of load_4_of\n",
	"#define shared_put_8(a, x) ((void)(a), (void)(x))\n",
	"#define dma_4(to, tensor, at, inside) ((void)(to), (void)(tensor), (void)(at), (void)(inside))\n",
	"#define DMA_WAIT(n) ((void)0)\n",
	"#define copies_wait() ((void)0)\n",
	"#define copies_arrive(flag) ((void)(flag))\n",
	"#define read_shifted(x, from) ((void)(x), (void)(from))\n",
	"#define shared_put_16(a, x) ((void)(a), (void)(x))\n",
	"#define store_16(to, y) ((void)(y))\n",
	"#define shuffle_xor(x, mask) (x)\n",
	"#define shuffle_from(x, lane) (x)\n",
	"#define shuffle_xor_i(x, mask) (x)\n",
	"#define shuffle_from_i(x, lane) (x)\n",
	"#define quad_transpose(y, q) ((void)(y))\n",
	"#define matrix_transpose(x) (x)\n",
	"#define op_div(x, y) ((x) / (y))\n",
	"#define op_exp2(x) exp2f(x)\n",
	"#define op_log2(x) log2f(x)\n",
	"#define op_rsqrt(x) (1.f / sqrtf(x))\n",
	"#define op_tanh(x) tanhf(x)\n",
	"#define op_sin(x) sinf(x)\n",
	"#define op_cos(x) cosf(x)\n",
	"#define op_popcount(x) (x)\n",
	"#define pack_bf16(lo, hi) ((u32)(lo) + (u32)(hi))\n",
	"#define pack_f16(lo, hi) ((u32)(lo) + (u32)(hi))\n",
	"#define half_of(x, e) (x)\n",
	"#define from_bf16(x) ((float)(x))\n",
	"#define from_f16(x) ((float)(x))\n",
	"#define from_e4m3(x) ((float)(x))\n",
	"#define from_e5m2(x) ((float)(x))\n",
	"#define from_e2m1(x) ((float)(x))\n",
	"#define from_e8m0(x) ((float)(x))\n",
	"#define from_i4(x, at) ((int)((x) >> (at)))\n",
	"#define from_i8(x, at) ((int)((x) >> (at)))\n",
	"#define e2m1_at(x, at) ((float)((x) >> (at)))\n",
	"#define pack_short_bf16(lo, hi) ((u32)(lo) + (u32)(hi))\n",
	"#define mul_pair_bf16(x, y) ((x) * (y))\n",
	"#define mul_pair_f16(x, y) ((x) * (y))\n",
	"#define i4_pair_bf16(x, at) ((x) >> (at))\n",
	"#define i4_pair_f16(x, at) ((x) >> (at))\n",
	"#define i8_pair_bf16(x, at) ((x) >> (at))\n",
	"#define i8_pair_f16(x, at) ((x) >> (at))\n",
	"#define e2m1_pair_bf16(x, at) ((x) >> (at))\n",
	"#define e2m1_pair_f16(x, at) ((x) >> (at))\n",
	"#define to_e4m3(x) ((u8)(x))\n",
	"#define to_e5m2(x) ((u8)(x))\n",
	"#define to_e8m0(x) ((u8)(x))\n",
	"#define to_i8(x) ((u8)(x))\n",
	"#define to_i4(x) ((u32)(x))\n",
	"#define to_e2m1(x) ((u32)(x))\n",
	"#define to_tf32(x) (x)\n",
	"#define to_i32(x) ((int)(x))\n",
	NULL
};

static const char *const stamps[] = {
	"#define stamp(here, at) (stamps_made += (here))\n",
	"#define stamp_watch(out, n, flag, depth, from) ((void)0)\n",
	"#define stamp_block(at) ((void)0)\n",
	"#define stamp_end(at) ((void)0)\n",
	"#define stamps_out(to, from, n, lane) ((void)0)\n",
	NULL
};

static void put_product(struct buf *o, const struct product_form *f)
{
	buf_printf(o, "\tsums += %d * %d * %d;\n", f->by->rows, f->cols, f->depth);
}

static void put_call(struct buf *o, const struct source *s)
{
	buf_printf(o, "static void call(void *const *args)\n{\n\t%s(", s->entry);
	for (int i = 0; i < s->params.n; i++)
		buf_printf(o, "%sargs[%d]", i ? ", " : "", i);
	buf_puts(o, ");\n}\n");
}

static void emit_counting(const struct role_program *r, struct arena *a, struct source *out)
{
	static const struct printer counting = { .prelude = prelude, .stamps = stamps,
		.product = put_product, .behind = put_call };

	emit_text(r, &counting, a, out);
}

/* a program around it ----------------------------------------------------------- */

static void put_list(struct buf *o, const char *name, const int64_t *v, int64_t n)
{
	buf_printf(o, "static const int %s[] = {", name);
	for (int64_t i = 0; i < n; i++)
		buf_printf(o, " %lld,", (long long)v[i]);
	buf_puts(o, " };\n");
}

static const char *argument(struct arena *a, const struct param *p)
{
	switch (p->kind) {
	case PARAM_POINTER:
		return arena_strf(a, "tensor%d", p->tensor);
	case PARAM_ORDER:
		return "(void *)order";
	case PARAM_START:
		return "(void *)start";
	case PARAM_MAP:
	case PARAM_SIZE:
	case PARAM_TRACE:
		break;
	}
	return "0";
}

static void put_main(struct arena *a, struct source *s, const struct plan *plan,
	const struct tile_assignment *d)
{
	const struct program *p = plan->graph->program;
	struct buf *o = &s->text;

	put_list(o, "order", d->order, d->total);
	put_list(o, "start", d->start, d->eus + 1);
	for (int t = 0; t < p->tensors.n; t++)
		buf_printf(o, "static char tensor%d[%zu];\n", t,
			dtype_bytes(p->tensors.v[t].type, (size_t)tensor_elements(p, t)));
	buf_puts(o, "int main(void)\n{\n\tvoid *args[] = {");
	for (int i = 0; i < s->params.n; i++)
		buf_printf(o, " %s,", argument(a, &s->params.v[i]));
	buf_printf(o, " };\n\tfor (mine = 0; mine < %d; mine++)\n\t\tfor (me = 0; me < %d; me++) "
		"call(args);\n", d->eus, s->threads);
	buf_puts(o, "\tprintf(\"sums %lld\\ncopies %lld\\nbytes %lld\\narrivals %lld\\nflags %lld\\n"
		"stamps %lld\\n\", sums, copies, bytes, arrivals, flags, stamps_made);\n"
		"\tfor (int i = 0; seen[i].task; i++) printf(\"%s %lld\\n\", seen[i].task, seen[i].n);\n"
		"\treturn 0;\n}\n");
}

/* What the compiled program prints. */
static const char *run_text(struct arena *a, const char *text)
{
	char dir[] = "/tmp/millrace-target-XXXXXX", *out = arena_alloc(a, 4096);
	const char *path;
	size_t n;
	FILE *f;
	int status;

	if (!mkdtemp(dir))
		script_stop("no folder for the text");
	path = arena_strf(a, "%s/count.c", dir);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		script_stop("cannot write the text");
	f = popen(arena_strf(a, "cd %s && ${CC:-cc} -std=c11 -w -Werror=implicit-function-declaration "
		"-o count count.c -lm && ./count; rm -rf %s", dir, dir), "r");
	n = f ? fread(out, 1, 4095, f) : 0;
	out[n] = 0;
	status = f ? pclose(f) : 1;
	return status ? "" : out;
}

static long long counted(struct arena *a, const char *out, const char *what)
{
	const char *line = strstr(arena_strf(a, "\n%s", out), arena_strf(a, "\n%s ", what));

	return line ? atoll(line + strlen(what) + 2) : -1;
}

/* The functions that few kernels have, on this machine: the greatest error of sines and cosines of many angles, some next
 * to multiples of a quarter of the circle, in hundredths of what is allowed; and bits that are set. */
static void check_rare(const char *const *lines, const char *what)
{
	static const char behind[] = "int main(void)\n{\n\tdouble most = 0;\n"
		"\tfor (int i = -1 << 20; i <= 1 << 20; i += 37)\n\t\tfor (int k = 0; k < 4; k++) {\n"
		"\t\t\tconst double by[] = { 1, 0.37, 1.5707963267948966 / 1.6, 1e-5 };\n"
		"\t\t\tconst float x = (float)(i * by[k]);\n"
		"\t\t\tconst double s = sin(x), c = cos(x);\n"
		"\t\t\tmost = fmax(most, fabs(op_sin(x) - s) / (fabs(s) + 1e-30));\n"
		"\t\t\tmost = fmax(most, fabs(op_cos(x) - c) / (fabs(c) + 1e-30));\n"
		"\t\t}\n\tprintf(\"share %lld\\nbits %d\\nnan %d\\n\", (long long)(most * 419430400),\n"
		"\t\top_popcount(-3) * 100 + op_popcount(5),\n"
		"\t\tisnan(op_sin(INFINITY)) && isnan(op_cos(-INFINITY)) && isnan(op_sin(NAN)));\n\treturn 0;\n}\n";
	struct mem mem = { 0 };
	const char *text, *out;
	struct arena a;

	arena_init(&a, &mem);
	text = "#include <math.h>\n#include <stdio.h>\ntypedef unsigned int u32;\n#define DEV static\n"
		"#define __popc __builtin_popcount\n";
	for (; *lines; lines++)
		text = arena_strf(&a, "%s%s", text, *lines);
	out = run_text(&a, arena_strf(&a, "%s%s", text, behind));
	ok(counted(&a, out, "share") >= 0 && counted(&a, out, "share") <= 100,
		arena_strf(&a, "%s: sines and cosines are right to 2^-22", what));
	is_int(counted(&a, out, "bits"), 3102, arena_strf(&a, "%s: bits are counted", what));
	is_int(counted(&a, out, "nan"), 1, arena_strf(&a, "%s: an infinite angle has no sine", what));
	if (counted(&a, out, "share") > 100)
		printf("# %s: %lld%% of what is allowed\n", what, counted(&a, out, "share"));
	arena_release(&a);
}

/* what the plan says --------------------------------------------------------------- */

static int64_t instances(const struct plan *p, int task, int64_t tiles)
{
	const struct graph *g = p->graph;

	for (int l = g->tasks.v[task].loop; l != NONE; l = g->program->loops.v[l].parent)
		tiles *= g->trips[l].most;
	return tiles;
}

static int lane_of(const struct plan *p, int task)
{
	return p->entries.v[plan_entry_of(p, task)].lane;
}

/* Does some lane see instances of the sTask by a flag? */
static bool is_flagged(const struct plan *p, int task, enum wait_when when)
{
	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].on == task && p->waits.v[i].when == when &&
		    (lane_of(p, p->waits.v[i].task) != lane_of(p, task) ||
		    p->graph->tasks.v[task].kind == TASK_LOAD))
			return true;
	return false;
}

struct expected {
	int64_t sums, bytes, arrivals;
};

/* All tiles are interior, and each load is done by one copy engine. */
static void expect(const struct plan *p, int64_t tiles, struct expected *x)
{
	*x = (struct expected){ 0 };
	for (int i = 0; i < p->graph->tasks.n; i++) {
		const struct stask *s = &p->graph->tasks.v[i];
		int64_t n = instances(p, i, tiles);
		int warps = lane_warps(p, lane_of(p, i));

		if (s->kind == TASK_MMA)
			x->sums += n * s->work.m * s->work.n * s->work.k;
		if (s->kind == TASK_LOAD)
			x->bytes += n * p->graph->buffers.v[s->writes.v[0]].bytes;
		if (is_flagged(p, i, WAIT_COMPLETE))
			x->arrivals += n * (s->kind == TASK_LOAD ? 1 : warps);
		if (is_flagged(p, i, WAIT_ISSUED))
			x->arrivals += n * warps;
	}
}

/* Names of sTasks that were not done as often as the plan says, by each thread of their
 * lane. */
static const char *others(struct arena *a, const struct plan *p, int64_t tiles, const char *out)
{
	const char *names = "";

	for (int i = 0; i < p->graph->tasks.n; i++)
		if (counted(a, out, p->graph->tasks.v[i].name) != instances(p, i, tiles) * 32 *
		    lane_warps(p, lane_of(p, i)))
			names = arena_strf(a, "%s %s", names, p->graph->tasks.v[i].name);
	return names;
}

static const struct plan *plan_of(lua_State *L, const char *script)
{
	script_run(L, "plans", script);
	return history_plan(check_plan(L, -1, "test"));
}

/* All threads of an instruction count it. */
static int product_threads(const struct kernel *k)
{
	return k->role->products.v[0].by->warps * k->target->warp;
}

static void count(lua_State *L, const char *name, const char *script, bool traced)
{
	const struct plan *p = plan_of(L, script);
	struct mem mem = { 0 };
	struct kernel *k;
	struct expected x;
	struct tile_assignment d;
	struct source s;
	struct arena a;
	struct err e;
	const char *out;

	arena_init(&a, &mem);
	if (lower_plan(&mem, p, 0, NULL, &k, &e) || (traced && lower_stamps(k, &e)))
		script_stop(e.msg);
	emit_counting(k->role, &a, &s);
	plan_assign_tiles(&a, p, 0, &d);
	put_main(&a, &s, p, &d);
	out = run_text(&a, s.text.text);
	expect(p, d.total, &x);
	is_int(counted(&a, out, "sums"), x.sums * product_threads(k), arena_strf(&a, "%s: products",
		name));
	is_int(counted(&a, out, "bytes"), x.bytes, arena_strf(&a, "%s: copied bytes", name));
	is_int(counted(&a, out, "arrivals"), x.arrivals, arena_strf(&a, "%s: arrivals", name));
	is_str(others(&a, p, d.total, out), "", arena_strf(&a, "%s: instances of all sTasks", name));
	ok(counted(&a, out, "copies") > 0, arena_strf(&a, "%s: copies", name));
	ok((counted(&a, out, "stamps") > 0) == traced, arena_strf(&a, "%s: stamps", name));
	kernel_free(k);
	arena_release(&a);
}

/* the page ------------------------------------------------------------------------- */

static const char *read_text(struct arena *a, const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = arena_alloc(a, 1 << 16);
	size_t n = f ? fread(text, 1, (1 << 16) - 1, f) : 0;

	text[n] = 0;
	if (f)
		fclose(f);
	return text;
}

static int word_length(const char *s)
{
	return (int)strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

/* A list of names, each between spaces. */
static bool has_name(struct arena *a, const char *list, const char *name)
{
	return strstr(list, arena_strf(a, " %s ", name)) != NULL;
}

static void add_name(struct arena *a, const char **list, const char *at, int len)
{
	const char *name = arena_strf(a, "%.*s", len, at);

	if (len && !has_name(a, *list, name))
		*list = arena_strf(a, "%s%s ", *list, name);
}

/* What the text in front of a kernel defines: macros, and functions that stand in a line
 * of their own. */
static const char *defined_names(struct arena *a, const char *text)
{
	const char *names = " ", *end = strstr(text, "\nKERNEL("), *paren;

	for (const char *p = text; p && (!end || p < end); p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!*p)
			break;
		if (!strncmp(p, "#define ", 8)) {
			add_name(a, &names, p + 8, word_length(p + 8));
		} else if (!strncmp(p, "DEV ", 4) || !strncmp(p, "static inline ", 14)) {
			paren = strchr(p, '(');
			while (paren > p && word_length(paren - 1) > 0 && paren[-1] != ' ')
				paren--;
			add_name(a, &names, paren, word_length(paren));
		}
	}
	return names;
}

/* First cells of the rows of the page's table. */
static const char *listed_names(struct arena *a, const char *page)
{
	const char *at = strstr(page, "## The names of a body"), *names = " ";
	const char *end = at ? strstr(at + 3, "\n## ") : NULL;

	for (; at && at < end; at = strchr(at, '\n') + 1) {
		if (strncmp(at, "| `", 3) != 0)
			continue;
		for (const char *p = at + 1; *p != '|'; p++)
			if (p[0] == ' ' && p[1] == '`')
				add_name(a, &names, p + 2, word_length(p + 2));
	}
	return names;
}

/* Those of list x that are, or are not, in list y; without types. */
static const char *names_in(struct arena *a, const char *x, const char *y, bool in)
{
	const char *out = " ";

	for (const char *p = x + 1; *p; p += word_length(p) + 1)
		if (has_name(a, y, arena_strf(a, "%.*s", word_length(p), p)) == in && *p != 'u')
			add_name(a, &out, p, word_length(p));
	return out;
}

/* A text with clusters, and what ones that add in memory, make elements of 4 bits, and fetch matrices add to it. */
static const char *cuda_text(lua_State *L, struct arena *a)
{
	const struct plan *p = plan_of(L, "local plan = mr.load_plan('gemm_cooperative') "
		"plan:grid{cluster=2} return plan");
	struct mem mem = { 0 };
	struct kernel *k;
	const char *text;
	struct source s;
	struct err e;

	if (lower_plan(&mem, p, 0, NULL, &k, &e) || lower_stamps(k, &e))
		script_stop(e.msg);
	emit_cuda(k->role, a, &s);
	kernel_free(k);
	text = s.text.text;
	for (int i = 0; cuda_additions[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_additions[i]);
	for (int i = 0; cuda_nibbles[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_nibbles[i]);
	for (int i = 0; cuda_staged[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_staged[i]);
	for (int i = 0; cuda_rare[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_rare[i]);
	for (int i = 0; cuda_fresh[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_fresh[i]);
	for (int i = 0; cuda_recomputed[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_recomputed[i]);
	for (int i = 0; cuda_transposes[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_transposes[i]);
	for (int i = 0; cuda_matrices[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_matrices[i]);
	for (int i = 0; cuda_pairs[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_pairs[i]);
	for (int i = 0; cuda_parts[i]; i++)
		text = arena_strf(a, "%s%s", text, cuda_parts[i]);
	return text;
}

#define HIP_LACKS " CLUSTER_KERNEL MAP CLUSTER_SYNC SET_REGISTERS flag_expect flag_tell_at flag_wait_peers peer_put_16 flag_arrive_at STORES_READ in_block " \
	"descriptor GROUPS_WAIT PIN_F PIN_U FRESH_F FRESH_U quad_transpose matrix_transpose "

/* The page tells all names that both shipped targets define, and those of copies and loads that only gfx942 has, and no others. */
static void compare_with_page(lua_State *L, const char *home)
{
	const char *listed, *shipped, *host, *ours = "", *hip = "", *dma = "", *missing = " ";
	struct mem mem = { 0 };
	struct arena a;

	arena_init(&a, &mem);
	listed = listed_names(&a, read_text(&a, arena_strf(&a, "%s/docs/internals/adding.md", home)));
	host = defined_names(&a, read_text(&a, arena_strf(&a, "%s/src/host/millrace_host.h", home)));
	for (int i = 0; hip_dma[i]; i++)
		dma = arena_strf(&a, "%s%s", dma, hip_dma[i]);
	for (int i = 0; hip_staged[i]; i++)
		dma = arena_strf(&a, "%s%s", dma, hip_staged[i]);
	shipped = arena_strf(&a, "%s%s", names_in(&a, defined_names(&a, cuda_text(L, &a)), host, true),
		names_in(&a, defined_names(&a, dma), host, true) + 1);
	for (int i = 0; prelude[i]; i++)
		ours = arena_strf(&a, "%s%s", ours, prelude[i]);
	for (int i = 0; stamps[i]; i++)
		ours = arena_strf(&a, "%s%s", ours, stamps[i]);
	ours = defined_names(&a, ours);
	for (int i = 0; hip_prelude[i]; i++)
		hip = arena_strf(&a, "%s%s", hip, hip_prelude[i]);
	for (int i = 0; hip_additions[i]; i++)
		hip = arena_strf(&a, "%s%s", hip, hip_additions[i]);
	for (int i = 0; hip_rare[i]; i++)
		hip = arena_strf(&a, "%s%s", hip, hip_rare[i]);
	for (int i = 0; hip_nibbles[i]; i++)
		hip = arena_strf(&a, "%s%s", hip, hip_nibbles[i]);
	for (int i = 0; hip_pairs[i]; i++)
		hip = arena_strf(&a, "%s%s", hip, hip_pairs[i]);
	for (int i = 0; hip_recomputed[i]; i++)
		hip = arena_strf(&a, "%s%s", hip, hip_recomputed[i]);
	hip = defined_names(&a, arena_strf(&a, "%s%s", hip, dma));
	ok(strlen(shipped) > 400, "there are names");
	is_str(names_in(&a, shipped, listed, false), " ", "the page lists all names of the targets");
	is_str(names_in(&a, listed, shipped, false), " ", "and no others");
	is_str(names_in(&a, listed, ours, false), " ", "the target here has all that the page lists");
	is_str(names_in(&a, ours, listed, false), " ", "and no others");
	/* gfx942 has no copy engine, no clusters, no products under way, no arithmetic in pairs, and no traces */
	for (const char *p = names_in(&a, listed, hip, false) + 1; *p; p += word_length(p) + 1)
		if (strncmp(p, "tma_", 4) && strncmp(p, "stamp", 5) && strncmp(p, "groups_", 7) && strncmp(p, "stores_", 7) &&
		    strncmp(p, "shared_matrices", 15) && !strstr(arena_strf(&a, "%.*s", (int)word_length(p), p), "_pair_"))
			add_name(&a, &missing, p, word_length(p));
	is_str(missing, HIP_LACKS, "HIP defines all but those of engines");
	arena_release(&a);
}

int main(void)
{
	struct host h = { .home = script_home() };
	lua_State *L = host_open(&h);

	compare_with_page(L, h.home);
	check_rare(cuda_rare, "cuda");
	check_rare(hip_rare, "hip");
	count(L, "gemm", "return mr.load_plan('gemm_cooperative', "
		"mr.examples.gemm{m=512, n=512, k=256})", false);
	count(L, "traced gemm", "return mr.load_plan('gemm_cooperative', "
		"mr.examples.gemm{m=256, n=512, k=320})", true);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "serial", "overlap", "pingpong" };
		char script[200];

		snprintf(script, sizeof(script), "return mr.load_plan('attention_%s', "
			"mr.examples.flash_attention{b=1, h=2, m=256, n=384, d=128})", names[i]);
		count(L, names[i], script, false);
	}
	count(L, "products of warps",
		"return of_warps(mr.examples.gemm{m=128, n=128, k=96}, {m=64, n=32, k=48}, {})", false);
	count(L, "attention of warps", "return of_warps(attention_of{m=64, n=96}, {m=32, n=48}, {})", true);
	host_close(L);
	return tap_done();
}
