/* What waits for the phase before: the kernel's stores, and lanes that load what earlier phases store; and verify
 * refuses kernels in which such a wait is missing. The CPU runs phases one after the other, so only the tree shows
 * it. */
#include <math.h>

#include "emit/emit.h"
#include "lower/passes.h"
#include "plan/phases.h"
#include "sim/follow.h"
#include "sim/sim.h"
#include "verify/launch.h"
#include "verify/verify.h"
#include "tests/unit/bench.h"

/* Waits in the body, and the first of them, which is *at of *in. */
static int count_waits(struct role_body *body, struct role_body **in, int *at)
{
	int n = 0;

	for (int i = 0; i < body->v.n; i++) {
		struct role_op *o = body->v.v[i];

		if (o->what == DO_PHASE_WAIT && !n++ && !*in) {
			*in = body;
			*at = i;
		}
		if (role_is_region(o->what))
			n += count_waits(&o->u.region.body, in, at) + count_waits(&o->u.region.other, in, at);
	}
	return n;
}

static bool touches_memory(const struct bench *b, const struct role_body *body, enum task_kind kind)
{
	for (int i = 0; i < body->v.n; i++) {
		const struct role_op *o = body->v.v[i];

		if (o->task != NONE && b->plan->graph->tasks.v[o->task].kind == kind)
			return true;
		if (role_is_region(o->what) && (touches_memory(b, &o->u.region.body, kind) ||
		    touches_memory(b, &o->u.region.other, kind)))
			return true;
	}
	return false;
}

/* What was launched before the program may still run where its first phase begins. That lets the next one begin
 * only behind its wait, as a second phase loads inputs without one. */
static void check_start(struct bench *b, int phase)
{
	const char *first = "BLOCK_SYNC();\n\tLAST_PHASE_WAIT();\n\tNEXT_PHASE_MAY_BEGIN();\n";
	const char *further = "BLOCK_SYNC();\n\tNEXT_PHASE_MAY_BEGIN();\n";
	struct source s;

	emit_cuda(b->k->role, &b->arena, &s);
	ok(s.waits && strstr(s.text.text, phase ? further : first), phase ? "  the next launch may begin" :
		"  waits for what was launched before, then the next launch may begin");
}

/* Does the operation, or one inside of it, access what is not ready: a tensor that is stored, or loaded but for
 * those of `ready`? */
static bool accesses(const struct bench *b, const struct role_op *o, const char *ready)
{
	const struct stask *s = o->task != NONE ? &b->plan->graph->tasks.v[o->task] : NULL;
	const struct role_body *in[] = { &o->u.region.body, &o->u.region.other };
	bool found = false;

	switch ((int)o->what) {
	case DO_LOAD_BOXES: case DO_LOAD_THREADS: case DO_LOAD_WORDS:
		return !strstr(ready, s->name);
	case DO_STORE_BOXES: case DO_STORE_THREADS: case DO_STORE_RING: case DO_PUT_PANELS:
		return true;
	}
	for (int k = 0; role_is_region(o->what) && k < 2; k++)
		for (int i = 0; i < in[k]->v.n; i++)
			found |= accesses(b, in[k]->v.v[i], ready);
	return found;
}

/* Of the body that has the wait: the wait behind each operation that follows, and in regions that may not be
 * executed. */
static void check_moved(struct bench *b, struct role_body *in, int at, const char *ready)
{
	static const struct {
		enum role_do what;
		bool counts;
	} around[] = { { DO_BLOCK, true }, { DO_EACH, true }, { DO_TASK, true }, { DO_IF, false }, { DO_LOOP, false }, { DO_TILES, false } };
	struct role_body was = *in;
	struct role_op *wait = was.v.v[at];
	int wrong = 0, passed = 0;
	struct err e;

	in->v.v = arena_copy(&b->arena, was.v.v, (size_t)was.v.n, sizeof(*was.v.v));
	for (int i = at; i + 1 < was.v.n; i++) {
		in->v.v[i] = was.v.v[i + 1];
		in->v.v[i + 1] = wait;
		passed += accesses(b, was.v.v[i + 1], ready);
		if ((launch_check(b->k->role, b->k->plan, b->phase, &e) != OK) != (passed > 0))
			wrong++;
	}
	ok(passed > 0, "    something is accessed behind the wait");
	is_int(wrong, 0, "    the wait may not come after it, but anywhere before");
	memcpy(in->v.v, was.v.v, (size_t)was.v.n * sizeof(*was.v.v));
	for (size_t i = 0; i < LEN(around); i++) {
		struct role_op *region = arena_copy(&b->arena, wait, 1, sizeof(*wait));
		bool good;

		region->what = around[i].what;
		memset(&region->u, 0, sizeof(region->u));
		VEC_PUSH(&b->arena, &region->u.region.body.v, wait);
		in->v.v[at] = region;
		good = launch_check(b->k->role, b->k->plan, b->phase, &e) == OK;
		is_int(good, around[i].counts, role_op_info[around[i].what].name);
	}
	for (int first = 0; first < 2; first++) {	/* one branch waits, and what follows is in this one, or in the other one */
		struct role_op *branch = arena_copy(&b->arena, wait, 1, sizeof(*wait));
		struct role_body *there;

		memset(&branch->u, 0, sizeof(branch->u));
		branch->what = DO_IF;
		there = first ? &branch->u.region.body : &branch->u.region.other;
		VEC_PUSH(&b->arena, &branch->u.region.body.v, wait);
		for (int i = at + 1; i < was.v.n; i++)
			VEC_PUSH(&b->arena, &there->v, was.v.v[i]);
		in->v.v[at] = branch;
		in->v.n = at + 1;
		is_int(launch_check(b->k->role, b->k->plan, b->phase, &e) == OK, first, first ? "    behind the wait in one branch" :
			"    not in the branch that does not wait");
		in->v.n = was.v.n;
	}
	*in = was;
}

/* Takes out the wait of one lane after the other. */
static void check_ready(const char *name, const char *script, const char *ready, int waiting, const char *const *lanes_waiting)
{
	struct bench b;

	bench_open(&b, script, 0);
	diag("%s", name);
	ok(!b.k->role->waits_first, "  not all threads wait first");
	for (int i = 0; i < b.k->role->roles.n; i++) {
		struct role_body *body = &b.k->role->roles.v[i].body, *in = NULL, was;
		int at = NONE, n = count_waits(body, &in, &at), listed;
		struct err e = { 0 };

		FIND_FIRST(listed, waiting, !strcmp(lanes_waiting[listed], b.k->role->roles.v[i].name));
		is_int(n > 0, listed != NONE, b.k->role->roles.v[i].name);
		if (!n)
			continue;
		was = *in;
		*in = (struct role_body){ 0 };
		for (int k = 0; k < was.v.n; k++)
			if (k != at)
				VEC_PUSH(&b.arena, &in->v, was.v.v[k]);
		if (!ok(verify(b.k->role, b.k->plan, 0, &b.arena, NULL, &e) == ERR_ILLEGAL &&
		    strstr(e.msg, "waits for the kernels in front"), "  verify refuses the kernel without its wait"))
			diag("%s", e.msg);
		*in = was;
		is_int(verify(b.k->role, b.k->plan, 0, &b.arena, NULL, &e), OK, "  and accepts it as it is");
		check_moved(&b, in, at, ready);
	}
	bench_close(&b);
}

/* A load that is ready is so because the plan says it: the same kernel is wrong for the plan without that. And a
 * kernel of which no lane waits could end before what is in front of it. */
static void check_said(const char *script)
{
	struct bench b;
	struct err e = { 0 };

	bench_open(&b, script, 0);
	struct plan *p = NULL;
	plan_copy(&b.mem, b.k->plan, &p);
	p->launch.ready.n = 0;
	p->launch.next = NEXT_START;
	ok(verify(b.k->role, p, 0, &b.arena, NULL, &e) == ERR_ILLEGAL && strstr(e.msg, "waits for the kernels in front"),
		"verify refuses a load before the wait of what is not ready");
	plan_free(p);
	bench_close(&b);
}

/* The first wait of a lane; *n of them. */
static struct role_body *wait_of(struct bench *b, const char *lane, int *at, int *n)
{
	struct role_body *in = NULL;

	*n = 0;
	for (int i = 0; i < b->k->role->roles.n; i++)
		if (!strcmp(b->k->role->roles.v[i].name, lane))
			*n = count_waits(&b->k->role->roles.v[i].body, &in, at);
	return in;
}

static void refused(struct bench *b, const char *why, const char *what)
{
	struct err e = { 0 };
	enum err_code code = launch_check(b->k->role, b->k->plan, b->phase, &e);

	if (!ok(code == ERR_ILLEGAL && strstr(e.msg, why), what))
		diag("%s", code ? e.msg : "accepted");
}

/* A kernel all of whose waits are in iterations of a loop may be over before what is in front of it. */
static void check_end(const char *script)
{
	int at[2] = { NONE, NONE }, n[2], task;
	struct role_body *in[2];
	struct bench b;
	struct err e;

	bench_open(&b, script, 0);
	in[0] = wait_of(&b, "c0", &at[0], &n[0]);
	in[1] = wait_of(&b, "p0", &at[1], &n[1]);
	if (ok(n[0] == 1 && n[1] > 0, "a lane that stores waits, and one that loads what is ready and what is not does in its loop")) {
		struct role_op *o = in[0]->v.v[at[0]];

		task = o->task;
		ok(b.plan->graph->tasks.v[in[1]->v.v[at[1]]->task].loop != NONE, "  which may have no iteration");
		o->task = in[1]->v.v[at[1]]->task;
		refused(&b, "may end before what is in front", "  if all waits were such, the kernel could end before what is in front of it");
		o->task = NONE;
		is_int(launch_check(b.k->role, b.plan, 0, &e), OK, "  but not if a lane waits as it begins");
		o->task = task;
	}
	bench_close(&b);
}

/* Lengths and indices are read by all that a lane does; and a counter of tiles is the same for launches that
 * overlap. */
static void check_at_once(const char *name, const char *script, const char *why, const char *lane)
{
	struct role_body *in;
	int at = NONE, n;
	struct bench b;
	struct err e;

	bench_open(&b, script, 0);
	in = wait_of(&b, lane, &at, &n);
	is_int(launch_check(b.k->role, b.plan, 0, &e), OK, name);
	if (ok(in && b.k->role->roles.n > 1, "  a lane waits as it begins")) {
		in->v.n--;
		memmove(&in->v.v[at], &in->v.v[at + 1], (size_t)(in->v.n - at) * sizeof(*in->v.v));
		refused(&b, why, "  refused without its wait");
	}
	bench_close(&b);
}

static void check_phase(const char *name, const char *script, int phase, bool loads_wait)
{
	int storing = 0;
	struct bench b;

	bench_open(&b, script, phase);
	diag("%s, phase %d", name, phase);
	for (int i = 0; i < b.k->role->roles.n; i++) {
		struct role_body *body = &b.k->role->roles.v[i].body, *in = NULL, was;
		bool stores = touches_memory(&b, body, TASK_STORE), loads = touches_memory(&b, body, TASK_LOAD);
		int at = NONE, n = count_waits(body, &in, &at);
		struct err e = { 0 };

		is_int(n > 0, phase > 0 && (stores || (loads && loads_wait)), "  lanes wait that store, or load what is stored");
		storing += stores;
		if (!n)
			continue;
		is_int(in == body, loads && loads_wait, "  as they begin, if their loads wait");
		was = *in;
		*in = (struct role_body){ 0 };
		for (int k = 0; k < was.v.n; k++)
			if (k != at)
				VEC_PUSH(&b.arena, &in->v, was.v.v[k]);
		if (!ok(verify(b.k->role, b.k->plan, phase, &b.arena, NULL, &e) == ERR_ILLEGAL &&
		    strstr(e.msg, "waits for the phase before"), "  verify refuses the kernel without the wait"))
			diag("%s", e.msg);
		*in = was;
		is_int(verify(b.k->role, b.k->plan, phase, &b.arena, NULL, &e), OK, "  and accepts it as it is");
	}
	ok(storing > 0, "  something is stored");
	check_start(&b, phase);
	is_int(phase_begins_early(b.plan, phase, &target_sm_90a), phase > 0 && !loads_wait, "  its start is hidden if no load waits");
	is_int(phase_begins_early(b.plan, phase, &target_sm_80), false, "  but not where phases are launched one after the other");
	bench_close(&b);
}

/* The seconds of a prediction that are not cycles are the starts of phases. */
static void check_starts(const char *name, const char *script, int starts)
{
	struct bench b;
	struct timeline *t;
	double seconds;

	bench_open(&b, script, 0);
	must(&b, sim_run(&b.mem, b.plan, NULL, NULL, &t, &b.e));
	seconds = t->seconds - (double)t->cycles / t->clock_hz;
	if (!ok(fabs(seconds - starts * b.plan->device->launch_seconds) < 1e-12, name))
		diag("%g s, not %d starts", seconds, starts);
	is_int(phases_launched(b.plan, target_of(b.plan->device)), starts, "  as many as are counted");
	timeline_free(t);
	bench_close(&b);
}

/* A kernel behind another one of the same plan, of two and a half tiles for each EU. */
static void check_follow(const char *ready)
{
	char text[1024];
	struct bench b;
	struct timeline *t;
	struct follow f, late, shallow, even;
	struct plan *p = NULL;
	const struct vdevice *d;

	snprintf(text, sizeof(text), "local plan = mr.plan(mr.examples.gemm{m=64*330, n=64, k=128}:graph{tile={m=64, n=64, k=64}}, device) "
		"plan:lane('p0', {warps=1}) plan:lane('p1', {warps=1}) plan:lane('c0', {warps=4}) "
		"for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.name == 'load_a' and 'p1' or t.name == 'load_b' and 'p0' "
		"or 'c0'}) end plan:buffers{a=3, b=3} plan:fill_waits() plan:launch{ready={%s}} return plan", ready);
	bench_open(&b, text, 0);
	d = b.plan->device;
	must(&b, sim_run(&b.mem, b.plan, NULL, NULL, &t, &b.e));
	sim_follow(&b.arena, t, t, true, &f);
	sim_follow(&b.arena, t, t, false, &late);
	ok(late.start == d->launch_seconds && late.saved == 0, "a launch that is not early takes its time");
	ok(f.start == d->early_seconds && f.start < late.start, "an early one takes less");
	if (!*ready) {
		ok(f.ahead == 0 && f.saved == 0 && f.bytes == 0, "  and nothing is ahead if nothing is ready");
		timeline_free(t);
		bench_close(&b);
		return;
	}
	/* 3 slots of 132 EUs, of 2 in each of 330 tiles, which load the same 16 KiB */
	ok(fabs(f.bytes - 16384.0 * 3 * 132 / (2 * 330)) < 1e-6, "  bytes of several EUs count once");
	ok(fabs(f.ahead - d->ahead_seconds - (1 - 2.5 / 3) * (double)t->cycles / t->clock_hz) < 1e-12,
		"  ready loads are on their way as EUs end before the last one");
	ok(f.saved > 0 && f.saved <= f.ahead, "  which saves so much at most");
	plan_copy(&b.mem, b.plan, &p);
	t->plan = p;
	p->launch.next = NEXT_END;
	sim_follow(&b.arena, t, t, true, &even);
	ok(even.ahead == d->ahead_seconds, "  unless the kernel in front lets nothing begin");
	for (int i = 0; i < p->graph->buffers.n; i++)
		p->versions[i] = 1;
	sim_follow(&b.arena, t, t, true, &shallow);
	ok(fabs(3 * shallow.bytes - f.bytes) < 1e-6 && shallow.saved <= even.saved, "  and with one slot each a third of the bytes is ahead");
	plan_free(p);
	timeline_free(t);
	bench_close(&b);
}

int main(void)
{
	static const char parts[] = "local p = mr.program('parts', function(p) local m, n, k, s = p:axes('m', 'n', 'k', 's') "
		"local r = p:axis('r', k.size // s.size) "
		"local A, B, C = p:input('A', {m, k}), p:input('B', {k, n}), p:output('C', {m, n}, 'f32') "
		"p:phase('begin', function() C:store(p:task('zero', function() return (m:index() + n:index()):to 'f32' * 0 end)) end) "
		"p:phase('add', function() p:batch(s) local c = p:carry('c', {m, n}, 0) p:loop(r, function() local at = s * r.size + r "
		"c:add(p:mma('mma', p:load('load_a', A, {m, at}), p:load('load_b', B, {at, n}))) end) C:add(c) end) end) "
		"local plan = mr.plan(p{m=64, n=64, k=128, s=2}:graph{tile={m=64, n=64, r=32}}, device) "
		"plan:lane('p0', {warps=1}) plan:lane('c0', {warps=4}) "
		"for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == 'load' and 'p0' or 'c0'}) end "
		"plan:fill_waits() return plan";
	static const char decoding[] = "return on_one_eu('decoding_split', "
		"mr.examples.flash_decoding{b=1, h=8, hkv=1, n=512, d=64, splits=2})";

	static const char gemm[] = "local plan = mr.plan(mr.examples.gemm{m=64, n=128, k=128}:graph{tile={m=64, n=64, k=32}}, device) "
		"plan:lane('p0', {warps=1}) plan:lane('p1', {warps=1}) plan:lane('c0', {warps=4}) "
		"for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.name == 'load_a' and 'p1' or t.name == 'load_b' and 'p0' "
		"or 'c0'}) end plan:buffers{a=2, b=2} plan:fill_waits() plan:launch{%s} return plan";
	static const char *const stores[] = { "c0", "p1", "p0" };
	char script[sizeof(gemm) + 64];

	snprintf(script, sizeof(script), gemm, "ready={'B'}");
	check_ready("weights are ready", script, "load_b", 2, stores);
	check_said(script);
	snprintf(script, sizeof(script), gemm, "ready={'A', 'B'}, next='loaded'");
	check_ready("all is ready", script, "load_a load_b", 1, stores);
	snprintf(script, sizeof(script), gemm, "next='start'");
	check_ready("the next kernel begins at the start", script, "", 3, stores);
	check_end("local plan = mr.plan(mr.examples.gemm{m=64, n=128, k=128}:graph{tile={m=64, n=64, k=32}}, device) plan:lane('p0', {warps=1}) "
		"for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == 'load' and 'p0' or 'c0'}) end plan:buffers{a=2, b=2} "
		"plan:fill_waits() plan:launch{ready={'B'}} return plan");
	check_at_once("lengths", "local plan = with_lengths('attention', {b=4, m=64, n=160, d=32}, {m=64, n=64}, {k=2, v=2}) "
		"plan:launch{next='start'} return plan", "reads lengths or indices", "c0");
	check_at_once("lengths, for the lane that loads", "local plan = with_lengths('attention', {b=4, m=64, n=160, d=32}, {m=64, n=64}, "
		"{k=2, v=2}) plan:launch{next='start'} return plan", "waits for the kernels in front", "p0");
	check_at_once("a counter of tiles", "local plan = mr.plan(mr.examples.gemm{m=640, n=128, k=128}:graph{tile={m=64, n=64, k=32}}, device) "
		"plan:lane('p0', {warps=1}) for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == 'load' and 'p0' or 'c0'}) end "
		"plan:buffers{a=2, b=2} plan:grid{eus=2, dynamic=true} plan:fill_waits() plan:launch{ready={'A', 'B'}} return plan",
		"takes tiles by a counter", "p0");
	check_follow("'B'");
	check_follow("");
	check_phase("parts of a sum", parts, 0, false);
	check_phase("parts of a sum", parts, 1, false);
	check_phase("decoding", decoding, 1, true);
	check_starts("parts of a sum: one start", parts, 1);
	check_starts("decoding: two starts", decoding, 2);
	return tap_done();
}
