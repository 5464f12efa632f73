/* Kernels with one operation changed: left out, executed twice, exchanged with the next, or a wait that leaves one more of a
 * lane's copies under way. verify refuses them, or they
 * are harmless: the CPU target, which does not depend on verify, finds no race in them and the result is the same. A
 * sample of the refused ones runs on the CPU, too, to see how many are refused without need. */
#include "lower/passes.h"
#include "verify/verify.h"
#include "tests/unit/bench.h"

/* It takes a hundred times as long to compile and run a kernel as to check it. So of kernels with similar changes (the
 * same operation and the same next one) only a few run: numbers 0, 1, MORE, MORE * MORE, and so on; of refused ones,
 * which have a reason already, fewer.
 *
 * In the environment: MILLRACE_PLANS, less than MANY on slow machines, tries fewer changes; MUTANTS runs all accepted
 * kernels; MUTANTS_OF takes only plans whose name contains its value; MUTANTS_SAY prints each kernel that runs. */
enum { MANY = 500, MORE = 6, MORE_REFUSED = 24 };

enum change { DROP, DOUBLE, EXCHANGE, LOOSEN, CHANGES };
static const char *const change_names[] = { "without", "twice", "after the next", "for one copy less" };

struct tally {
	const char *name;
	int made, refused, same, harmless, alike, missed, rule;
	int tried, strict;		/* of refused ones: run on the CPU, nothing found */
};

static struct tally all;
static bool saying;			/* print the result of each that runs */

/* Similar changes so far: accepted, refused. */
static int alike[2][CHANGES][DO_COUNT][DO_COUNT + 1];

/* Is this one in the sample? */
static bool is_chosen(int n, int more)
{
	while (n > 1 && n % more == 0)
		n /= more;
	return n <= 1;
}

/* Has the operation no effect on the CPU? */
static bool is_rule(enum role_do what)
{
	return what == DO_PIN || what == DO_OPAQUE || what == DO_GROUPS_FENCE || what == DO_AT || what == DO_REGISTERS;
}

static const char *describe(struct bench *b, const struct role *l, const struct role_op *o,
	const struct role_op *next, enum change how)
{
	const char *task = o->task == NONE ? "" : arena_strf(&b->arena, " of '%s'",
		b->plan->graph->tasks.v[o->task].name);

	if (how == EXCHANGE)
		return arena_strf(&b->arena, "%s: %s%s after %s", l->name, role_op_info[o->what].name,
			task, role_op_info[next->what].name);
	return arena_strf(&b->arena, "%s: %s%s %s", l->name, role_op_info[o->what].name, task,
		change_names[how]);
}

/* A kernel with a change. */
struct mutant {
	const char *what;
	enum change how;
	enum role_do at, next;		/* DO_COUNT: there is none, or it makes no difference */
	bool rule;			/* what the CPU knows nothing of */
};

static int *count_of(const struct mutant *m, bool refused)
{
	return &alike[refused][m->how][m->at][m->how == EXCHANGE ? m->next : DO_COUNT];
}

/* On the CPU, although it is refused. */
static void try_refused(struct bench *b, struct tally *t, const struct mutant *m, const char *why)
{
	struct source now;
	const char *report;

	t->refused++;
	if (m->rule || !is_chosen((*count_of(m, true))++, MORE_REFUSED))
		return;
	emit_host(b->k->role, &b->arena, &now);
	report = strcmp(now.text.text, b->was.text.text) ? bench_run(b, &now, false) : NULL;
	t->tried++;
	t->strict += !report;
	if (!report || saying)
		diag("%s: %s: refused, %s; on the CPU %s", t->name, m->what, why, report ? report :
			"nothing");
}

static void try_accepted(struct bench *b, struct tally *t, const struct mutant *m)
{
	const char *report = NULL;
	struct source now;

	emit_host(b->k->role, &b->arena, &now);
	if (!strcmp(now.text.text, b->was.text.text)) {
		t->same++;
		report = m->how == DROP ? "it does not print" : NULL;
	} else if (m->rule) {
		t->rule++;
		if (saying)
			diag("%s: %s: accepted", t->name, m->what);
	} else if (!getenv("MUTANTS") && !is_chosen((*count_of(m, false))++, MORE)) {
		t->alike++;
	} else {
		report = bench_run(b, &now, false);
		t->harmless += !report;
		if (saying && !report)
			diag("%s: %s: harmless", t->name, m->what);
	}
	t->missed += report != NULL;
	if (report)
		diag("%s: %s: MISSED, %s", t->name, m->what, report);
}

static void try(struct bench *b, struct tally *t, const struct mutant *m)
{
	struct arena_mark mark = arena_mark(&b->arena);
	struct err e;

	t->made++;
	if (verify(b->k->role, b->k->plan, b->phase, &b->arena, NULL, &e))
		try_refused(b, t, m, e.msg);
	else
		try_accepted(b, t, m);
	arena_reset(&b->arena, mark);
}

/* The body's operations with number i changed. */
static int changed(struct arena *a, const struct role_body *was, int i, enum change how, struct role_op **to)
{
	int n = 0;

	for (int k = 0; k < was->v.n; k++) {
		struct role_op *o = was->v.v[k];

		if (k == i && how == DROP)
			continue;
		if (how == EXCHANGE && (k == i || k == i + 1))
			o = was->v.v[2 * i + 1 - k];
		if (how == LOOSEN && k == i) {
			o = arena_copy(a, o, 1, sizeof(*o));
			o->u.count++;
		}
		to[n++] = o;
		if (k == i && how == DOUBLE)
			to[n++] = o;
	}
	return n;
}

static void mutate(struct bench *b, struct tally *t, const struct role *l, struct role_body *body,
	int i, enum change how)
{
	struct arena_mark mark = arena_mark(&b->arena);
	struct role_body was = *body;
	const struct role_op *o = was.v.v[i], *next = i + 1 < was.v.n ? was.v.v[i + 1] : NULL;
	struct mutant m = { .how = how, .at = o->what, .next = next ? next->what : DO_COUNT };

	if ((how == EXCHANGE && !next) || (how == LOOSEN && o->what != DO_COPIES_WAIT))
		return;
	m.what = describe(b, l, o, next, how);
	m.rule = is_rule(o->what) || (how == EXCHANGE && is_rule(next->what));
	body->v.v = ARENA_ARRAY(&b->arena, was.v.n + 1, struct role_op *);
	body->v.n = changed(&b->arena, &was, i, how, body->v.v);
	try(b, t, &m);
	*body = was;
	arena_reset(&b->arena, mark);
}

static int stride(void)
{
	const char *plans = getenv("MILLRACE_PLANS");
	int n = plans ? atoi(plans) : MANY;

	return n >= MANY || n < 1 ? 1 : MANY / n;
}

static void mutate_body(struct bench *b, struct tally *t, const struct role *l,
	struct role_body *body, int *count)
{
	for (int i = 0; i < body->v.n; i++) {
		struct role_op *o = body->v.v[i];

		for (int how = 0; how < (o->what == DO_COPIES_WAIT ? CHANGES : LOOSEN); how++)
			if (++*count % stride() == 0)
				mutate(b, t, l, body, i, how);
		if (!role_is_region(o->what))
			continue;
		mutate_body(b, t, l, &o->u.region.body, count);
		mutate_body(b, t, l, &o->u.region.other, count);
	}
}

static void say(const struct tally *t)
{
	diag("%s: %d changed: %d refused, %d with the same text, %d harmless, %d like those, %d "
		"accepted by rule alone, %d missed; of %d refused that ran %d without need", t->name,
		t->made, t->refused, t->same, t->harmless, t->alike, t->rule, t->missed, t->tried,
		t->strict);
}

static void check_phase_of(const char *name, const char *script, int phase)
{
	struct tally t = { .name = name };
	struct bench b;
	int count = 0;

	if (getenv("MUTANTS_OF") && !strstr(name, getenv("MUTANTS_OF")))
		return;
	bench_open(&b, script, phase);
	bench_data(&b);
	b.seeds = 2;
	if (!ok(!bench_run(&b, &b.was, true), name))
		diag("it does not run on the CPU");
	for (int i = 0; i < b.k->role->roles.n; i++)
		mutate_body(&b, &t, &b.k->role->roles.v[i], &b.k->role->roles.v[i].body, &count);
	is_int(t.missed, 0, "verify refuses every mistake that the CPU finds");
	say(&t);
	all.made += t.made;
	all.refused += t.refused;
	all.same += t.same;
	all.harmless += t.harmless;
	all.alike += t.alike;
	all.rule += t.rule;
	all.missed += t.missed;
	all.tried += t.tried;
	all.strict += t.strict;
	bench_close(&b);
}

static void check_plan_of(const char *name, const char *script)
{
	check_phase_of(name, script, 0);
}

/* The body with the first operation of pairs that stand where they must, behind a wait for groups: a number in it; NONE. */
static int find_ordered(struct role_body *body, struct role_body **in)
{
	int at = NONE;

	for (int i = 0; i < body->v.n && at == NONE; i++) {
		struct role_op *o = body->v.v[i];

		*in = body;
		if (o->what == DO_PACK && o->u.pack.ordered)
			return i;
		if (role_is_region(o->what))
			at = find_ordered(&o->u.region.body, in);
	}
	return at;
}

static void refused_for(struct bench *b, const char *why, const char *what)
{
	struct err e = { 0 };
	enum err_code code = verify(b->k->role, b->k->plan, 0, &b->arena, NULL, &e);

	if (!ok(code == ERR_ILLEGAL && strstr(e.msg, why), what))
		diag("%s", code ? e.msg : "accepted");
}

static bool follows_from_wait(const struct role_op *o)
{
	return o->what == DO_PIN || o->what == DO_WARP_SYNC || o->what == DO_ARRIVE || o->what == DO_RELEASE;
}

/* The operand of a product is made of pairs in the registers that the product before reads: not before the wait for that one, and
 * by an operation that compilers leave behind it. */
static void check_order_of(const char *name, const char *script, const char *why)
{
	struct bench b;
	struct role_body *in = NULL, was;
	int at = NONE, wait;

	if (getenv("MUTANTS_OF") && !strstr(name, getenv("MUTANTS_OF")))
		return;
	bench_open(&b, script, 0);
	for (int i = 0; i < b.k->role->roles.n && at == NONE; i++)
		at = find_ordered(&b.k->role->roles.v[i].body, &in);
	for (wait = at; wait >= 0 && in->v.v[wait]->what != DO_GROUPS_WAIT; wait--)
		;
	if (ok(at != NONE && wait >= 0, name)) {
		in->v.v[at]->u.pack.ordered = false;
		refused_for(&b, "which a compiler may overwrite", "  refused if compilers may move them");
		in->v.v[at]->u.pack.ordered = true;
		was = *in;
		*in = (struct role_body){ 0 };
		for (int i = 0; i < wait; i++)
			VEC_PUSH(&b.arena, &in->v, was.v.v[i]);
		for (int i = wait + 1; i <= at; i++)	/* the wait, and what follows from it, behind the pairs */
			if (!follows_from_wait(was.v.v[i]))
				VEC_PUSH(&b.arena, &in->v, was.v.v[i]);
		for (int i = wait; i < was.v.n; i++)
			if (i == wait || i > at || follows_from_wait(was.v.v[i]))
				VEC_PUSH(&b.arena, &in->v, was.v.v[i]);
		refused_for(&b, why, "  refused before the wait");
		*in = was;
		is_int(verify(b.k->role, b.k->plan, 0, &b.arena, NULL, &b.e), OK, "  and accepted as they are");
	}
	bench_close(&b);
}

int main(void)
{
	all.name = "all";
	saying = getenv("MUTANTS_SAY") != NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	check_plan_of("gemm", "return simple(mr.examples.gemm{m=128, n=64, k=64}, {m=64, n=64, k=32}, "
		"{a=2, b=2})");
	check_plan_of("gemm, a cluster divides its loop", "local plan = simple(mr.examples.gemm{m=128, n=64, k=128}, "
		"{m=64, n=64, k=32}, {a=2, b=2}) plan:grid{cluster=2, divide='k', eus=2} return plan");
	check_plan_of("gemm_cooperative", "return on_one_eu('gemm_cooperative', "
		"mr.examples.gemm{m=128, n=256, k=128})");
	check_plan_of("attention_serial", "return on_one_eu('attention_serial', "
		"attention_of{m=128, n=256, d=64})");
	check_plan_of("attention_serial, causal", "return on_one_eu('attention_serial', "
		"attention_of{m=256, n=256, d=64, causal=true})");
	check_plan_of("attention_overlap", "return on_one_eu('attention_overlap', "
		"attention_of{m=128, n=256, d=64})");
	check_plan_of("attention_overlap, causal", "return on_one_eu('attention_overlap', "
		"attention_of{m=256, n=256, d=64, causal=true})");
	check_plan_of("attention_pingpong", "return on_one_eu('attention_pingpong', "
		"attention_of{m=128, n=256, d=64})");
	check_plan_of("attention_pingpong, causal", "return on_one_eu('attention_pingpong', "
		"attention_of{m=256, n=256, d=64, causal=true})");
	check_plan_of("decoding_split", "return on_one_eu('decoding_split', mr.examples.flash_decoding{"
		"b=1, h=8, hkv=1, n=512, d=64, splits=2})");
	check_phase_of("decoding_split, second phase", "return on_one_eu('decoding_split', "
		"mr.examples.flash_decoding{b=1, h=8, hkv=1, n=512, d=64, splits=2})", 1);
	check_plan_of("chunk_state", "return simple(mr.examples.chunk_state{b=1, s=128, h=1, p=64, "
		"n=64, chunk=64}, {})");
	check_plan_of("chunk_scan", "return simple(mr.examples.chunk_scan{b=1, s=128, h=1, p=64, "
		"n=64, chunk=64}, {})");
	check_plan_of("dequant_gemm", "return simple(mr.examples.dequant_gemm{m=64, n=64, k=128, "
		"group=64}, {m=64, n=64, k=64})");
	/* pairs that are multiplied behind the wait for the product before */
	check_plan_of("rmsnorm_gemm", "return simple(mr.examples.rmsnorm_gemm{m=64, n=64, k=128}, {m=64, n=64, k=32}, "
		"{x=2, g=2, w=2})");
	check_plan_of("rmsnorm_gemm, split off", "return split_off(mr.examples.rmsnorm_gemm{m=64, n=64, k=128}, "
		"{m=64, n=64, k=32}, 'squares', 'convert', 2, {x=2, g=2, w=2})");
	check_plan_of("dequant_gemm, swapped", "return swapped(mr.examples.dequant_gemm{m=64, n=64, k=128, group=64}, "
		"{m=64, n=64, k=64}, 'mma', {w=2, scale=2, a=2})");
	check_order_of("dequant_gemm, swapped", "return swapped(mr.examples.dequant_gemm{m=64, n=64, k=128, group=64}, "
		"{m=64, n=64, k=64}, 'mma', {w=2, scale=2, a=2})", "writes 'dequant' while 'mma'");
	check_order_of("rmsnorm_gemm", "return simple(mr.examples.rmsnorm_gemm{m=64, n=64, k=128}, {m=64, n=64, k=32}, "
		"{x=2, g=2, w=2})", "which a compiler may overwrite");
	check_order_of("rmsnorm_gemm, split off", "return split_off(mr.examples.rmsnorm_gemm{m=64, n=64, k=128}, "
		"{m=64, n=64, k=32}, 'squares', 'convert', 2, {x=2, g=2, w=2})", "writes 'squares' while 'mma'");
	check_plan_of("conv2d", "return simple(mr.examples.conv2d{n=1, c=64, h=8, w=8, k=64, r=1, "
		"s=3, pad=1}, {c=64, k=64, r=1, s=1})");
	check_plan_of("gemm, columns kept", "local p = simple(mr.examples.gemm{m=192, n=64, k=64}, {m=64, n=64, k=32}, {a=2, b=2}) "
		"p:grid{keep=3, along='m'} return p");
	check_plan_of("matmul_sum", "return simple(mr.examples.matmul_sum{m=64, n=128, k=64}, "
		"{m=64, n=64, k=32})");
	check_plan_of("gemm, copied by threads", "return simple(mr.examples.gemm{m=64, n=64, k=68}, "
		"{m=64, n=64, k=32}, {a=2, b=2})");
	check_plan_of("gemm, shifted by threads", "return simple(mr.examples.gemm{m=64, n=64, k=67}, "
		"{m=64, n=64, k=32}, {a=2, b=2})");
	check_plan_of("gemm of warps", "return of_warps(mr.examples.gemm{m=64, n=48, k=64}, "
		"{m=32, n=48, k=32}, {a=2, b=2})");
	check_plan_of("attention of warps", "return of_warps(attention_of{m=64, n=96, d=32}, "
		"{m=32, n=32}, {k=2, v=2})");
	check_plan_of("gemm on sm_80", "return on_device('a100', mr.examples.gemm{m=64, n=48, k=96}, {m=32, n=48, k=32}, "
		"{a=2, b=2})");
	check_plan_of("gemm on sm_80, one lane", "return on_one_lane('a100', mr.examples.gemm{m=64, n=48, k=96}, "
		"{m=32, n=48, k=32}, {a=2, b=2}, {load_a=1, load_b=1})");
	check_plan_of("attention on sm_80", "return on_device('a100', attention_of{m=64, n=96, d=32}, {m=32, n=32}, "
		"{k=2, v=2})");
	check_plan_of("gemm on gfx942", "return on_device('mi300x', mr.examples.gemm{m=64, n=48, k=96}, {m=32, n=48, k=32}, "
		"{a=2, b=2})");
	check_plan_of("gemm on gfx942, one lane", "return on_one_lane('mi300x', mr.examples.gemm{m=64, n=64, k=96}, "
		"{m=64, n=64, k=32}, {a=2, b=2}, {load_a=1, load_b=1})");
	check_plan_of("attention on gfx942", "return on_device('mi300x', attention_of{m=64, n=96, d=32}, {m=32, n=32}, "
		"{k=2, v=2})");
	check_plan_of("gemm on gfx942, without registers", "return by_dma(mr.examples.gemm{m=64, n=64, k=128}, "
		"{m=64, n=64, k=32}, {a=3, b=3}, {load_a=2, load_b=2})");
	check_plan_of("gemm on gfx942, without registers on a lane of its own", "return by_dma(mr.examples.gemm{m=64, n=64, k=128}, "
		"{m=64, n=64, k=32}, {a=3, b=3}, nil, true)");
	check_plan_of("attention on gfx942, without registers", "return by_dma(attention_of{m=64, n=128, d=32}, {m=64, n=32}, "
		"{k=3, v=3}, {load_k=2, load_v=2})");
	check_plan_of("attention with lengths", "return with_lengths('attention', {b=4, m=64, n=160, d=32}, {m=64, n=64}, "
		"{k=2, v=2})");
	/* an EU has one tile, and so one run of the loop, whose last tile is copied by several warps */
	check_plan_of("attention with lengths, two warps load", "return with_lengths('attention', {b=4, m=64, n=160, d=32}, "
		"{m=64, n=64}, {k=2, v=2}, 2, false)");
	say(&all);
	return tap_done();
}
