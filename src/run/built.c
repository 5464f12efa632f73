#include "run/built.h"

#include <stdio.h>
#include <string.h>

#include "lower/lower.h"
#include "lower/stamps.h"
#include "plan/sized.h"

const struct backend_info backends[BACKEND_COUNT] = {
	[BACKEND_CUDA] = { "cuda", "CUDA", { &target_sm_90a, &target_mma_sync, &target_sm_80 }, emit_cuda },
	[BACKEND_HIP] = { "hip", "HIP", { &target_gfx942 }, emit_hip },
	[BACKEND_HOST] = { "host", "C", { NULL }, emit_host },
};

bool backend_prints(enum backend backend, const struct vdevice *d)
{
	const struct target *const *t = backends[backend].targets, *of = target_of(d);

	if (!*t)
		return true;
	while (*t && *t != of)
		t++;
	return *t;
}

enum backend backend_for(const struct vdevice *d)
{
	int i = 0;

	while (!backend_prints((enum backend)i, d))
		i++;
	return (enum backend)i;
}

void built_new(struct mem *mem, enum backend backend, struct built **out)
{
	*out = NULL;
	*out = ARENA_OWNER(mem, struct built);
	(*out)->backend = backend;
}

void built_free(struct built *b)
{
	if (!b)
		return;
	kernel_free(b->kernel);
	for (int i = 0; i < b->nphases; i++) {
		kernel_free(b->phases[i].kernel);
		pool_drop(b->phases[i].compiling);
		host_free(b->phases[i].object);
	}
	plan_free(b->plan);
	if (!b->traced)
		graph_free(b->graph);
	arena_release(&b->arena);
}

void built_new_traced(struct mem *mem, const struct built *of, struct built **out)
{
	built_new(mem, of->backend, out);
	(*out)->traced = true;
	(*out)->arch = of->arch;
	(*out)->graph = of->graph;
	plan_copy(mem, of->plan, &(*out)->plan);
}

/* ---- building ---- */

/* Keep the kernel, which says where its stamps lie, and make memory for them. */
static void make_stamps(struct built *b, struct built_phase *p, int phase)
{
	struct tile_assignment d;

	p->kernel = b->kernel;
	b->kernel = NULL;
	plan_assign_tiles(&b->arena, b->plan, phase, &d);
	p->stamps = ARENA_ARRAY(&b->arena, p->kernel->traced.words * d.eus, uint32_t);
}

enum err_code built_emit(struct built *b, lower_fn *lower, void *ud, const struct stop *stop, struct err *e)
{
	int n = b->plan->graph->program->phases.n;

	b->phases = ARENA_ARRAY(&b->arena, n, struct built_phase);
	b->nphases = n;
	for (int i = 0; i < n; i++) {
		TRY(lower ? lower(b->arena.mem, b->plan, i, ud, &b->kernel, e) :
			lower_plan(b->arena.mem, b->plan, i, stop, &b->kernel, e));
		if (b->traced)
			TRY(lower_stamps(b->kernel, e));
		kernel_finish(b->kernel);
		backends[b->backend].emit(b->kernel->role, &b->arena, &b->phases[i].source);
		if (b->traced)
			make_stamps(b, &b->phases[i], i);
		kernel_free(b->kernel);
		b->kernel = NULL;
	}
	return OK;
}

void built_print(const struct built *b, struct buf *out)
{
	const struct source **all = ARENA_ARRAY(out->arena, b->nphases, const struct source *);

	for (int i = 0; i < b->nphases; i++) {
		all[i] = &b->phases[i].source;
		emit_join(out, all, i, all[i]);
	}
}

const char *built_arch(const struct built *b)
{
	return b->arch ? b->arch : b->plan->device->arch;
}

static struct compile_job make_job(struct built *b, const struct source *s)
{
	return (struct compile_job){ .api = b->backend == BACKEND_HIP ? GPU_HIP : GPU_CUDA, .name = b->backend == BACKEND_HIP ? s->entry : arena_strf(&b->arena, "%s.cu", s->entry),
		.source = s->text.text, .arch = built_arch(b) };
}

void built_choose_arch(struct built *b, struct gpu *g, const struct stop *stop)
{
	const char *own = b->plan->device->arch;
	struct gpu_info info;
	int version;
	struct err none = { 0 };		/* without a device it stays the plan's */

	b->arch = own;
	if (b->backend != BACKEND_CUDA || !own || sscanf(own, "sm_%d", &version) != 1 || own[strlen(own) - 1] > '9')
		return;
	if (!gpu_probe(g, GPU_CUDA, stop, &info, &none) && 10 * info.major + info.minor > version)
		b->arch = arena_strdup(&b->arena, info.arch);
}

enum err_code built_compile(struct built *b, struct gpu *g, const struct stop *stop, struct err *e)
{
	for (int i = 0; i < b->nphases; i++) {
		struct built_phase *p = &b->phases[i];
		struct compile_job job = make_job(b, &p->source);

		if (b->backend == BACKEND_HOST)
			TRY(host_compile(b->arena.mem, p->source.text.text, p->source.text.len, false, stop, &p->object, e));
		else
			TRY(gpu_compile(g, &job, stop, &b->arena, &p->binary, e));
	}
	return OK;
}

void built_begin(struct built *b, struct pool *p, bool only_cached)
{
	for (int i = 0; i < b->nphases; i++) {
		struct compile_job job = make_job(b, &b->phases[i].source);

		job.only_cached = only_cached;
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

/* ---- launches ---- */

static struct phase_buffer int_buffer(struct arena *a, const int64_t *v, int64_t n)
{
	int *out = ARENA_ARRAY(a, n, int);

	for (int64_t i = 0; i < n; i++)
		out[i] = (int)v[i];
	return (struct phase_buffer){ .bytes = (size_t)n * sizeof(int), .from = out };
}

/* The product of the sizes of some dimensions of a tensor. */
static int64_t product_of(const struct program *p, const struct tensor *t, unsigned dims)
{
	int64_t n = 1;

	for (int d = 0; d < t->rank; d++)
		n *= dims >> d & 1 ? p->axes.v[t->dim[d]].size : 1;
	return n;
}

struct param built_param_at(const struct param *x, const struct program *p)
{
	struct param at = *x;

	for (int i = 0; i < x->rank; i++) {
		const struct tensor *t = &p->tensors.v[x->tensor];

		at.dim[i] = x->dim_factor[i] * product_of(p, t, x->dim_of[i]);
		at.stride[i] = dtype_bits(t->type) / 8 * x->stride_factor[i] * product_of(p, t, x->stride_of[i]);
	}
	return at;
}

int built_phase_buffers(const struct built *b, const struct plan *at, int phase, struct arena *a,
	struct phase_buffer out[PHASE_BUFFERS])
{
	const struct built_phase *p = &b->phases[phase];
	struct tile_assignment d;

	plan_launch_tiles(a, at, phase, &d);
	out[PHASE_ORDER] = int_buffer(a, d.order, d.total);
	out[PHASE_START] = int_buffer(a, d.start, d.eus + 1);
	out[PHASE_STAMPS] = (struct phase_buffer){ .to = p->stamps };
	if (b->traced)
		out[PHASE_STAMPS].bytes = (size_t)(p->kernel->traced.words * d.eus) * sizeof(uint32_t);
	return d.eus;
}

int built_parts(const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];

	return t->by_address ? (int)p->axes.v[t->dim[0]].size : 0;
}

int built_buffer_of(const struct param *x, const int *tensors, int first)
{
	if (x->kind != PARAM_POINTER && x->kind != PARAM_MAP)
		return first + (x->kind == PARAM_ORDER ? PHASE_ORDER : x->kind == PARAM_START ? PHASE_START :
			PHASE_STAMPS);
	return tensors ? tensors[x->tensor] : x->tensor;
}
