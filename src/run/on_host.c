#include "run/on_host.h"

#include <string.h>

#include "lower/lower.h"
#include "lower/stamps.h"
#include "plan/deal.h"

void on_host_new(struct mem *mem, struct on_host **out)
{
	struct arena a;

	arena_init(&a, mem);
	*out = ARENA_NEW(&a, struct on_host);
	(*out)->arena = a;
}

void on_host_free(struct on_host *h)
{
	struct arena a;

	if (!h)
		return;
	kernel_free(h->kernel);
	for (int i = 0; i < h->nphases; i++) {
		host_free(h->kernels[i]);
		kernel_free(h->lowered[i]);
	}
	plan_free(h->plan);
	if (!h->traced)
		graph_free(h->graph);
	a = h->arena;
	arena_release(&a);
}

void on_host_new_traced(struct mem *mem, const struct on_host *of, struct on_host **out)
{
	on_host_new(mem, out);
	(*out)->traced = true;
	(*out)->graph = of->graph;
	plan_copy(mem, of->plan, &(*out)->plan);
}

/* Where a traced kernel's stamps go, and what it is needed for later. */
static void make_stamps(struct on_host *h, int phase)
{
	struct dealing d;

	h->lowered[phase] = h->kernel;
	h->kernel = NULL;
	plan_deal(&h->arena, h->plan, phase, &d);
	h->stamps[phase] = ARENA_ARRAY(&h->arena, h->lowered[phase]->traced.words * d.eus, uint32_t);
}

enum err_code on_host_compile_by(struct on_host *h, lower_fn *lower, void *ud,
	const struct stop *stop, struct err *e)
{
	int n = h->plan->graph->program->phases.n;

	h->sources = ARENA_ARRAY(&h->arena, n, struct source);
	h->kernels = ARENA_ARRAY(&h->arena, n, struct host_kernel *);
	h->lowered = ARENA_ARRAY(&h->arena, n, struct kernel *);
	h->stamps = ARENA_ARRAY(&h->arena, n, uint32_t *);
	h->nphases = n;
	for (int i = 0; i < n; i++) {
		struct source *s = &h->sources[i];

		TRY(lower(h->arena.mem, h->plan, i, ud, &h->kernel, e));
		if (h->traced)
			TRY(lower_stamps(h->kernel, e));
		emit_host(h->kernel->role, &h->arena, s);
		if (h->traced)
			make_stamps(h, i);
		kernel_free(h->kernel);
		h->kernel = NULL;
		TRY(host_compile(h->arena.mem, s->text.text, s->text.len, stop, &h->kernels[i], e));
	}
	return OK;
}

static enum err_code lower_as_is(struct mem *mem, const struct plan *p, int phase, void *ud,
	struct kernel **out, struct err *e)
{
	(void)ud;
	return lower_plan(mem, p, phase, out, e);
}

enum err_code on_host_compile(struct on_host *h, const struct stop *stop, struct err *e)
{
	return on_host_compile_by(h, lower_as_is, NULL, stop, e);
}

static int *narrow(struct arena *a, const int64_t *v, int64_t n)
{
	int *out = ARENA_ARRAY(a, n, int);

	for (int64_t i = 0; i < n; i++)
		out[i] = (int)v[i];
	return out;
}

struct host_map on_host_map(const struct program *p, const struct param *x)
{
	struct host_map m = { .rank = x->rank, .swizzle = x->swizzle,
		.element_bytes = dtype_bits(p->tensors.v[x->tensor].type) / 8 };

	for (int i = 0; i < x->rank && i < HOST_DIMS_MAX; i++) {
		m.dim[i] = x->dim[i];
		m.box[i] = x->box[i];
		m.stride[i] = x->stride[i];
	}
	return m;
}

enum { PHASE_BUFFERS = 3 };		/* after the tensors': order, start, stamps */

static int buffer_of(const struct program *p, const struct param *x)
{
	switch (x->kind) {
	case PARAM_ORDER:
		return p->tensors.n;
	case PARAM_START:
		return p->tensors.n + 1;
	case PARAM_TRACE:
		return p->tensors.n + 2;
	case PARAM_POINTER:
	case PARAM_MAP:
		break;
	}
	return x->tensor;
}

/* One phase's launch; its tiles are two buffers after the tensors'. */
static void describe(const struct on_host *h, int phase, const struct on_host_options *o,
	struct host_buffer *buffers, struct arena *a, struct host_job *job)
{
	const struct program *p = h->plan->graph->program;
	const struct source *s = &h->sources[phase];
	struct host_arg *args = ARENA_ARRAY(a, s->params.n, struct host_arg);
	int order = p->tensors.n, start = order + 1;
	struct dealing d;

	plan_deal(a, h->plan, phase, &d);
	buffers[order] = (struct host_buffer){ .bytes = (size_t)d.total * sizeof(int),
		.from = narrow(a, d.order, d.total) };
	buffers[start] = (struct host_buffer){ .bytes = (size_t)(d.eus + 1) * sizeof(int),
		.from = narrow(a, d.start, d.eus + 1) };
	buffers[start + 1] = (struct host_buffer){ 0 };
	if (h->traced) {
		buffers[start + 1].bytes = (size_t)(h->lowered[phase]->traced.words * d.eus) *
			sizeof(uint32_t);
		buffers[start + 1].from = buffers[start + 1].to = h->stamps[phase];
		memset(h->stamps[phase], 0, buffers[start + 1].bytes);
	}
	for (int i = 0; i < s->params.n; i++) {
		const struct param *x = &s->params.v[i];

		args[i].buffer = buffer_of(p, x);
		args[i].is_map = x->kind == PARAM_MAP;
		if (args[i].is_map)
			args[i].map = on_host_map(p, x);
	}
	*job = (struct host_job){ .buffers = buffers, .nbuffers = p->tensors.n + PHASE_BUFFERS, .args = args,
		.nargs = s->params.n, .blocks = d.eus, .threads = s->threads,
		.cluster = s->cluster,
		.shared_bytes = s->shared_bytes, .seed = o->seed, .race = o->race,
		.seconds = o->limit };
}

enum err_code on_host_run(struct on_host *h, void *const *data, const struct on_host_options *o,
	const struct stop *stop, struct arena *a, const char **report, struct err *e)
{
	const struct program *p = h->plan->graph->program;
	struct host_buffer *buffers = ARENA_ARRAY(a, p->tensors.n + PHASE_BUFFERS,
		struct host_buffer);

	for (int t = 0; t < p->tensors.n; t++) {
		buffers[t].bytes = dtype_bytes(p->tensors.v[t].type, (size_t)tensor_elements(p, t));
		if (p->tensors.v[t].role == TENSOR_INPUT)
			buffers[t].from = data[t];
		else
			buffers[t].to = data[t] ? data[t] : arena_alloc(a, buffers[t].bytes);
	}
	*report = NULL;
	for (int i = 0; i < h->nphases && !*report; i++) {
		struct host_job job;

		describe(h, i, o, buffers, a, &job);
		TRY(host_run(h->kernels[i], &job, stop, a, report, e));
		for (int t = 0; t < p->tensors.n; t++)	/* what one phase made, the next one reads */
			if (buffers[t].to)
				buffers[t].from = buffers[t].to;
	}
	return OK;
}
