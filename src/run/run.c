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

enum err_code built_compile(struct built *b, struct gpu *g, const struct stop *stop, struct err *e)
{
	for (int i = 0; i < b->nphases; i++) {
		struct built_phase *p = &b->phases[i];
		struct compile_job job = { .name = arena_strf(&b->arena, "%s.cu", p->source.entry),
			.source = p->source.text.text, .arch = b->plan->device->arch };

		TRY(gpu_compile(g, &job, stop, &b->arena, &p->binary, e));
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

enum { PHASE_BUFFERS = 3 };		/* after the tensors': order, start, stamps */

static int buffer_of(const struct built *b, int phase, const struct param *x)
{
	int first = b->graph->program->tensors.n + PHASE_BUFFERS * phase;

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
	return x->tensor;
}

/* One phase: its tiles as two buffers after the tensors', and its launch. */
static void add_step(struct built *b, int phase, struct arena *a, struct gpu_buffer *buffers,
	struct gpu_step *step)
{
	const struct program *p = b->graph->program;
	const struct source *s = &b->phases[phase].source;
	int order = p->tensors.n + PHASE_BUFFERS * phase, start = order + 1;
	struct gpu_param *params = ARENA_ARRAY(a, s->params.n, struct gpu_param);
	struct dealing d;

	plan_deal(a, b->plan, phase, &d);
	buffers[order] = (struct gpu_buffer){ .name = "order of tiles", .init = GPU_INIT_HOST,
		.bytes = (size_t)d.total * sizeof(int), .from = narrow(a, d.order, d.total) };
	buffers[start] = (struct gpu_buffer){ .name = "first tiles", .init = GPU_INIT_HOST,
		.bytes = (size_t)(d.eus + 1) * sizeof(int), .from = narrow(a, d.start, d.eus + 1) };
	buffers[start + 1] = (struct gpu_buffer){ .name = "stamps", .init = GPU_INIT_WORD,
		.bytes = sizeof(uint32_t), .to = NULL };
	if (b->traced) {
		buffers[start + 1].bytes *= (size_t)(b->phases[phase].kernel->traced.words * d.eus);
		buffers[start + 1].to = b->phases[phase].stamps;
	}
	for (int i = 0; i < s->params.n; i++) {
		const struct param *x = &s->params.v[i];

		params[i].kind = x->kind == PARAM_MAP ? GPU_PARAM_TENSOR : GPU_PARAM_POINTER;
		params[i].buffer = buffer_of(b, phase, x);
		if (x->kind == PARAM_MAP)
			params[i].tensor = built_map(a, p, x);
	}
	*step = (struct gpu_step){ .kind = GPU_STEP_KERNEL, .binary = phase, .early = phase > 0,
		.entry = s->entry,
		.grid = { (unsigned)d.eus }, .block = { (unsigned)s->threads },
		.smem = (unsigned)s->shared_bytes, .params = params, .nparams = s->params.n };
}

/* What one phase leaves for another stays on the device, poisoned at first like an output,
 * so that what is read before it is written shows. */
static void describe_tensors(const struct program *p, const struct feed *in, struct gpu_buffer *out)
{
	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];

		out[i] = (struct gpu_buffer){ .name = t->name, .rotate = true,
			.bytes = dtype_bytes(t->type, (size_t)tensor_elements(p, i)) };
		if (t->role == TENSOR_INPUT) {
			feed_buffer(in, i, &out[i]);
			continue;
		}
		out[i].init = GPU_INIT_WORD;
		out[i].word = POISON;
		out[i].to = t->role == TENSOR_OUTPUT ? in->data[i] : NULL;
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
	struct gpu_job job = { .binaries = binaries, .nbinaries = b->nphases + (fills > 0),
		.buffers = buffers, .nbuffers = n, .steps = steps, .nsteps = fills + b->nphases,
		.mode = bench ? GPU_BENCH : GPU_RUN };

	describe_tensors(p, in, buffers);
	if (fills)
		TRY(feed_binary(g, b->plan->device->arch, stop, a, &binaries[b->nphases], e));
	feed_steps(p, in, b->nphases, a, steps);
	for (int i = 0; i < b->nphases; i++) {
		const struct compile_result *x = &b->phases[i].binary;

		binaries[i] = (struct gpu_binary){ x->cubin, x->cubin_bytes };
		add_step(b, i, a, buffers, &steps[fills + i]);
	}
	if (bench)
		job.bench = *bench;
	return gpu_run(g, &job, limit, stop, a, r, e);
}
