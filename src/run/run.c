#include "run/run.h"

#include <string.h>

#include "lower/lower.h"
#include "lower/stamps.h"
#include "plan/deal.h"

enum { POISON = 0x7fc07fc0 };		/* NaN in f32, in both halves in bf16 */

void built_new(struct mem *mem, struct built **out)
{
	struct arena a;

	arena_init(&a, mem);
	*out = ARENA_NEW(&a, struct built);
	(*out)->arena = a;
}

void built_free(struct built *b)
{
	struct arena a;

	if (!b)
		return;
	kernel_free(b->kernel);
	for (int i = 0; i < b->nphases; i++)
		kernel_free(b->phases[i].kernel);
	for (int i = 0; i < b->nphases; i++)
		pool_drop(b->phases[i].compiling);
	plan_free(b->plan);
	if (!b->traced)
		graph_free(b->graph);
	a = b->arena;
	arena_release(&a);
}

void built_new_traced(struct mem *mem, const struct built *of, struct built **out)
{
	built_new(mem, out);
	(*out)->traced = true;
	(*out)->graph = of->graph;
	plan_copy(mem, of->plan, &(*out)->plan);
}

/* Where a traced kernel's stamps go, and what it is needed for later. */
static void make_stamps(struct built *b, int phase)
{
	struct built_phase *p = &b->phases[phase];
	struct dealing d;

	p->kernel = b->kernel;
	b->kernel = NULL;
	plan_deal(&b->arena, b->plan, phase, &d);
	p->stamps = ARENA_ARRAY(&b->arena, p->kernel->traced.words * d.eus, uint32_t);
}

enum err_code built_emit(struct built *b, struct err *e)
{
	int n = b->graph->program->phases.n;

	b->phases = ARENA_ARRAY(&b->arena, n, struct built_phase);
	b->nphases = n;
	for (int i = 0; i < n; i++) {
		TRY(lower_plan(b->arena.mem, b->plan, i, &b->kernel, e));
		if (b->traced)
			TRY(lower_stamps(b->kernel, e));
		emit_cuda_sm90(b->kernel->role, &b->arena, &b->phases[i].source);
		if (b->traced)
			make_stamps(b, i);
		kernel_free(b->kernel);
		b->kernel = NULL;
	}
	return OK;
}

static struct compile_job job_of(struct built *b, int phase)
{
	const struct source *s = &b->phases[phase].source;

	return (struct compile_job){ .name = arena_strf(&b->arena, "%s.cu", s->entry),
		.source = s->text.text, .arch = b->plan->device->arch };
}

enum err_code built_compile(struct built *b, struct gpu *g, const struct stop *stop, struct err *e)
{
	for (int i = 0; i < b->nphases; i++) {
		struct compile_job job = job_of(b, i);

		TRY(gpu_compile(g, &job, stop, &b->arena, &b->phases[i].binary, e));
	}
	return OK;
}

void built_begin(struct built *b, struct pool *p)
{
	for (int i = 0; i < b->nphases; i++) {
		struct compile_job job = job_of(b, i);

		pool_begin(p, &job, &b->phases[i].compiling);
	}
}

bool built_ready(const struct built *b)
{
	for (int i = 0; i < b->nphases; i++)
		if (b->phases[i].compiling && !pool_done(b->phases[i].compiling))
			return false;
	return true;
}

enum err_code built_end(struct built *b, struct err *e)
{
	for (int i = 0; i < b->nphases; i++) {
		struct built_phase *p = &b->phases[i];

		if (!p->compiling)
			continue;
		TRY(pool_result(p->compiling, &b->arena, &p->binary, e));
		pool_drop(p->compiling);
		p->compiling = NULL;
	}
	return OK;
}

static enum gpu_element element_of(enum dtype t)
{
	if (t == DT_BF16)
		return GPU_BF16;
	if (t == DT_F16)
		return GPU_F16;
	if (t == DT_F32 || t == DT_TF32)
		return GPU_F32;
	return t == DT_I32 ? GPU_I32 : GPU_U8;
}

const struct gpu_tensor *built_map(struct arena *a, const struct program *p,
	const struct param *x)
{
	struct gpu_tensor *t = ARENA_NEW(a, struct gpu_tensor);

	t->element = element_of(p->tensors.v[x->tensor].type);
	t->rank = x->rank;
	for (int i = 0; i < x->rank; i++) {
		t->dims[i] = (uint64_t)x->dim[i];
		t->strides[i] = (uint64_t)x->stride[i];
		t->box[i] = (uint32_t)x->box[i];
	}
	t->swizzle = x->swizzle == 128 ? GPU_SWIZZLE_128 : x->swizzle == 64 ? GPU_SWIZZLE_64 :
		x->swizzle == 32 ? GPU_SWIZZLE_32 : GPU_SWIZZLE_NONE;
	t->promotion = (enum gpu_promotion)MAP_PROMOTION;
	return t;
}

static int *narrow(struct arena *a, const int64_t *v, int64_t n)
{
	int *out = ARENA_ARRAY(a, n, int);

	for (int64_t i = 0; i < n; i++)
		out[i] = (int)v[i];
	return out;
}

enum { PHASE_BUFFERS = 3 };		/* order, start, stamps */

/* Where a kernel's buffers are in a job: tensor t is at tensors[t], those of its phases from
 * `phases` on; its binaries from `binaries` on. */
struct places {
	const int *tensors;
	int phases, binaries;
	int contestant;			/* of a race, from 1; else 0 */
};

static int buffer_of(const struct places *at, int phase, const struct param *x)
{
	int first = at->phases + PHASE_BUFFERS * phase;

	switch (x->kind) {
	case PARAM_ORDER:
		return first;
	case PARAM_START:
		return first + 1;
	case PARAM_TRACE:
		return first + 2;
	case PARAM_POINTER:
	case PARAM_MAP:
		break;
	}
	return at->tensors[x->tensor];
}

/* One phase: its tiles as two buffers, what stamps need as a third, and its launch. */
static void add_step(const struct built *b, int phase, const struct places *at, struct arena *a,
	struct gpu_buffer *buffers, struct gpu_step *step)
{
	const struct program *p = b->graph->program;
	const struct source *s = &b->phases[phase].source;
	struct gpu_buffer *own = &buffers[at->phases + PHASE_BUFFERS * phase];
	struct gpu_param *params = ARENA_ARRAY(a, s->params.n, struct gpu_param);
	struct dealing d;

	plan_deal(a, b->plan, phase, &d);
	own[0] = (struct gpu_buffer){ .name = "order of tiles", .init = GPU_INIT_HOST,
		.bytes = (size_t)d.total * sizeof(int), .from = narrow(a, d.order, d.total) };
	own[1] = (struct gpu_buffer){ .name = "first tiles", .init = GPU_INIT_HOST,
		.bytes = (size_t)(d.eus + 1) * sizeof(int), .from = narrow(a, d.start, d.eus + 1) };
	own[2] = (struct gpu_buffer){ .name = "stamps", .init = GPU_INIT_WORD,
		.bytes = sizeof(uint32_t), .to = NULL };
	if (b->traced) {
		own[2].bytes *= (size_t)(b->phases[phase].kernel->traced.words * d.eus);
		own[2].to = b->phases[phase].stamps;
	}
	for (int i = 0; i < PHASE_BUFFERS; i++)
		own[i].contestant = at->contestant;
	for (int i = 0; i < s->params.n; i++) {
		const struct param *x = &s->params.v[i];

		params[i].kind = x->kind == PARAM_MAP ? GPU_PARAM_TENSOR : GPU_PARAM_POINTER;
		params[i].buffer = buffer_of(at, phase, x);
		if (x->kind == PARAM_MAP)
			params[i].tensor = built_map(a, p, x);
	}
	*step = (struct gpu_step){ .kind = GPU_STEP_KERNEL, .binary = at->binaries + phase,
		.contestant = at->contestant, .early = phase > 0, .entry = s->entry,
		.grid = { (unsigned)d.eus }, .block = { (unsigned)s->threads },
		.smem = (unsigned)s->shared_bytes, .params = params, .nparams = s->params.n };
}

/* What one phase leaves for another stays on the device, poisoned at first like an output,
 * so that what is read before it is written shows. */
static void describe_tensor(const struct program *p, const struct feed *in, int tensor,
	struct gpu_buffer *out)
{
	const struct tensor *t = &p->tensors.v[tensor];

	*out = (struct gpu_buffer){ .name = t->name, .rotate = true,
		.bytes = dtype_bytes(t->type, (size_t)tensor_elements(p, tensor)) };
	if (t->role == TENSOR_INPUT) {
		feed_buffer(in, tensor, out);
		return;
	}
	out->init = GPU_INIT_WORD;
	out->word = POISON;
	out->to = t->role == TENSOR_OUTPUT ? in->data[tensor] : NULL;
}

static void add_binaries(const struct built *b, struct gpu_binary *out)
{
	for (int i = 0; i < b->nphases; i++) {
		const struct compile_result *x = &b->phases[i].binary;

		out[i] = (struct gpu_binary){ x->cubin, x->cubin_bytes };
	}
}

enum err_code built_run(struct built *b, struct gpu *g, const struct feed *in, double limit,
	const struct gpu_bench *bench, const struct stop *stop, struct arena *a,
	struct gpu_result *r, struct err *e)
{
	const struct program *p = b->graph->program;
	int n = p->tensors.n + PHASE_BUFFERS * b->nphases, fills = feed_randoms(p, in);
	struct gpu_buffer *buffers = ARENA_ARRAY(a, n, struct gpu_buffer);
	struct gpu_binary *binaries = ARENA_ARRAY(a, b->nphases + 1, struct gpu_binary);
	struct gpu_step *steps = ARENA_ARRAY(a, fills + b->nphases, struct gpu_step);
	int *tensors = ARENA_ARRAY(a, p->tensors.n, int);
	struct places at = { .tensors = tensors, .phases = p->tensors.n };
	struct gpu_job job = { .binaries = binaries, .nbinaries = b->nphases + (fills > 0),
		.buffers = buffers, .nbuffers = n, .steps = steps, .nsteps = fills + b->nphases,
		.mode = bench ? GPU_BENCH : GPU_RUN };

	for (int i = 0; i < p->tensors.n; i++) {
		tensors[i] = i;
		describe_tensor(p, in, i, &buffers[i]);
	}
	if (fills)
		TRY(feed_binary(g, b->plan->device->arch, stop, a, &binaries[b->nphases], e));
	feed_steps(p, in, b->nphases, a, steps);
	add_binaries(b, binaries);
	for (int i = 0; i < b->nphases; i++)
		add_step(b, i, &at, a, buffers, &steps[fills + i]);
	if (bench)
		job.bench = *bench;
	return gpu_run(g, &job, limit, stop, a, r, e);
}

/* ---- races ---- */

bool built_same_tensors(const struct built *a, const struct built *b)
{
	const struct program *p = a->graph->program, *q = b->graph->program;

	if (p->tensors.n != q->tensors.n)
		return false;
	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *s = &p->tensors.v[i], *t = &q->tensors.v[i];

		if (s->role == TENSOR_TEMP && t->role == TENSOR_TEMP)
			continue;
		if (strcmp(s->name, t->name) != 0 || s->role != t->role || s->type != t->type ||
		    s->rank != t->rank)
			return false;
		for (int k = 0; k < s->rank; k++)
			if (p->axes.v[s->dim[k]].size != q->axes.v[t->dim[k]].size)
				return false;
	}
	return true;
}

/* How much of each a race has: inputs once, then for each kernel its other tensors, and what
 * its phases need. */
struct race_size {
	int buffers, binaries, steps;
};

static struct race_size size_of(const struct racer *racers, int n, const struct program *p,
	int fills)
{
	struct race_size size = { .buffers = p->tensors.n * (n + 1), .binaries = fills > 0,
		.steps = fills };

	for (int i = 0; i < n; i++) {
		size.buffers += PHASE_BUFFERS * racers[i].built->nphases;
		size.binaries += racers[i].built->nphases;
		size.steps += racers[i].built->nphases;
	}
	return size;
}

/* Contestant c, behind what the job has by now. */
static void add_racer(const struct built *b, int c, const struct feed *in, struct arena *a,
	struct gpu_buffer *buffers, struct gpu_binary *binaries, struct gpu_step *steps,
	struct gpu_job *job)
{
	const struct program *p = b->graph->program;
	int *tensors = ARENA_ARRAY(a, p->tensors.n, int);
	struct places at = { .tensors = tensors, .binaries = job->nbinaries, .contestant = c };

	for (int i = 0; i < p->tensors.n; i++) {
		tensors[i] = i;		/* inputs are where they are in the program */
		if (p->tensors.v[i].role == TENSOR_INPUT)
			continue;
		tensors[i] = job->nbuffers++;
		describe_tensor(p, in, i, &buffers[tensors[i]]);
		buffers[tensors[i]].to = NULL;
		buffers[tensors[i]].contestant = c;
	}
	at.phases = job->nbuffers;
	job->nbuffers += PHASE_BUFFERS * b->nphases;
	add_binaries(b, binaries + job->nbinaries);
	job->nbinaries += b->nphases;
	for (int i = 0; i < b->nphases; i++)
		add_step(b, i, &at, a, buffers, &steps[job->nsteps++]);
}

enum err_code built_race(const struct racer *racers, int n, struct gpu *g, const struct feed *in,
	double limit, const struct gpu_race *race, const struct stop *stop, struct arena *a,
	struct gpu_result *r, struct err *e)
{
	const struct built *first = racers[0].built;
	const struct program *p = first->graph->program;
	int fills = feed_randoms(p, in);
	struct race_size size = size_of(racers, n, p, fills);
	struct gpu_buffer *buffers = ARENA_ARRAY(a, size.buffers, struct gpu_buffer);
	struct gpu_binary *binaries = ARENA_ARRAY(a, size.binaries, struct gpu_binary);
	struct gpu_step *steps = ARENA_ARRAY(a, size.steps, struct gpu_step);
	const char **names = ARENA_ARRAY(a, n, const char *);
	struct gpu_job job = { .binaries = binaries, .buffers = buffers, .steps = steps,
		.nbuffers = p->tensors.n, .nbinaries = fills > 0, .nsteps = fills,
		.mode = GPU_RACE, .race = *race };

	/* Those that are no inputs stand empty, so that inputs are where they are in the program. */
	for (int i = 0; i < p->tensors.n; i++) {
		buffers[i] = (struct gpu_buffer){ .name = "nothing", .bytes = 1 };
		if (p->tensors.v[i].role == TENSOR_INPUT)
			describe_tensor(p, in, i, &buffers[i]);
	}
	if (fills)
		TRY(feed_binary(g, first->plan->device->arch, stop, a, &binaries[0], e));
	feed_steps(p, in, 0, a, steps);
	for (int i = 0; i < n; i++) {
		names[i] = racers[i].name;
		add_racer(racers[i].built, i + 1, in, a, buffers, binaries, steps, &job);
	}
	job.race.names = names;
	job.race.n = n;
	return gpu_run(g, &job, limit, stop, a, r, e);
}
