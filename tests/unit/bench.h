/* bench.h - a plan made by a script of plans.lua, one of its kernels, which a test changes, and the CPU target, which
 * shows what the changed kernel does. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include "emit/emit.h"
#include "lower/lower.h"
#include "lua/lplan.h"
#include "plan/check.h"
#include "run/on_host.h"
#include "tests/unit/script.h"

enum { SEEDS = 3, BENCH_PHASES = 4, BENCH_SECONDS = 20 };

/* A plan as a script makes it, and the kernel of the phase at hand. */
struct bench {
	struct host h;
	lua_State *L;
	struct mem mem;
	const struct plan *plan;
	int phase, nphases;
	struct kernel *k;
	struct arena arena;
	struct source was;		/* text of the kernel as it is */
	/* by phase; that of the one at hand is made for each run */
	struct built_phase phases[BENCH_PHASES];
	void **data;			/* of tensors */
	void **good;			/* outputs of the kernel as it is */
	int seeds;			/* of a run */
	struct err e;
};

static inline void must(const struct bench *b, enum err_code code)
{
	if (!code)
		return;
	script_stop(b->e.msg);
}

/* The kernels of all other phases. */
static inline void bench_others(struct bench *b)
{
	for (int i = 0; i < b->nphases; i++) {
		struct kernel *k;

		if (i == b->phase)
			continue;
		must(b, lower_plan(&b->mem, b->plan, i, NULL, &k, &b->e));
		emit_host(k->role, &b->arena, &b->phases[i].source);
		kernel_free(k);
		must(b, host_compile(&b->mem, b->phases[i].source.text.text, b->phases[i].source.text.len, false, NULL,
			&b->phases[i].object, &b->e));
	}
}

/* script: an expression over plans.lua, or statements that return a plan. */
static inline void bench_open(struct bench *b, const char *script, int phase)
{
	struct problems problems = { 0 };

	*b = (struct bench){ .h.home = script_home(), .phase = phase, .seeds = SEEDS };
	b->L = host_open(&b->h);
	arena_init(&b->arena, &b->mem);
	script_run(b->L, "plans", script);
	b->plan = history_plan(check_plan(b->L, -1, "test"));
	must(b, plan_check(b->plan, &b->arena, NULL, &problems, NULL, &b->e));
	if (problems.v.n)
		script_stop(problems.v.v[0].message);
	b->nphases = b->plan->graph->program->phases.n;
	if (b->nphases > BENCH_PHASES)
		script_stop("too many phases");
	bench_others(b);
	must(b, lower_plan(&b->mem, b->plan, phase, NULL, &b->k, &b->e));
	emit_host(b->k->role, &b->arena, &b->was);
}

static inline void bench_close(struct bench *b)
{
	for (int i = 0; i < b->nphases; i++)
		host_free(b->phases[i].object);
	kernel_free(b->k);
	arena_release(&b->arena);
	host_close(b->L);
	is_int((long long)b->mem.used, 0, "all memory is given back");
}

/* The CPU ------------------------------------------------------------------- */

/* A small number of bf16 whose size grows along the tensor, so that maxima move. */
static inline uint16_t bench_bf16(size_t i, size_t n)
{
	static const uint16_t scale[] = { 0x3e00, 0x3e80, 0x3f00, 0x3f40 };	/* 1/8 ... 3/4 */
	uint16_t x = scale[i * 4 / n];

	return (uint16_t)((i * 7 + i / 64) % 13 < 6 ? x : i % 3 ? x | 0x8000 : 0x3d80);
}

static inline void bench_fill(enum dtype t, void *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (t == DT_BF16)
			((uint16_t *)v)[i] = bench_bf16(i, n);
		else if (t == DT_F32)
			((float *)v)[i] = (float)((i * 5 + i / 32) % 11) / 16 - 0.25f;
		else if (t == DT_I32)
			((uint32_t *)v)[i] = (uint32_t)i * 2654435761u;
	}
}

static inline void bench_data(struct bench *b)
{
	const struct program *p = b->plan->graph->program;

	b->data = ARENA_ARRAY(&b->arena, p->tensors.n, void *);
	b->good = ARENA_ARRAY(&b->arena, p->tensors.n, void *);
	for (int t = 0; t < p->tensors.n; t++) {
		size_t n = (size_t)tensor_elements(p, t);
		size_t bytes = dtype_bytes(p->tensors.v[t].type, n);

		b->data[t] = arena_alloc(&b->arena, bytes);
		b->good[t] = arena_alloc(&b->arena, bytes);
		if (p->tensors.v[t].role == TENSOR_INPUT)
			bench_fill(p->tensors.v[t].type, b->data[t], n);
	}
}

static inline const char *bench_compare(struct bench *b, bool first)
{
	const struct program *p = b->plan->graph->program;

	for (int t = 0; t < p->tensors.n; t++) {
		size_t bytes = dtype_bytes(p->tensors.v[t].type, (size_t)tensor_elements(p, t));

		if (p->tensors.v[t].role != TENSOR_OUTPUT)
			continue;
		if (first)
			memcpy(b->good[t], b->data[t], bytes);
		else if (memcmp(b->good[t], b->data[t], bytes) != 0)
			return "the result is another";
	}
	return NULL;
}

/* What the kernel at hand does wrong on the CPU; NULL if nothing. */
static inline const char *bench_run(struct bench *b, const struct source *s, bool first)
{
	struct built h = { .backend = BACKEND_HOST, .plan = (struct plan *)b->plan,
		.nphases = b->nphases, .phases = b->phases };
	const char *report = NULL;
	struct err e;

	b->phases[b->phase].source = *s;
	if (host_compile(&b->mem, s->text.text, s->text.len, false, NULL, &b->phases[b->phase].object, &e)) {
		host_free(b->phases[b->phase].object);
		b->phases[b->phase].object = NULL;
		return arena_strf(&b->arena, "%s", e.msg);
	}
	for (int seed = 0; seed < b->seeds && !report; seed++) {
		struct on_host_options o = { .seed = (uint64_t)seed, .race = seed != 1,
			.limit = BENCH_SECONDS };

		must(b, on_host_run(&h, h.plan, b->data, &o, NULL, &b->arena, &report, &b->e));
		if (!report)
			report = bench_compare(b, first);
	}
	host_free(b->phases[b->phase].object);
	b->phases[b->phase].object = NULL;
	return report;
}

#endif
