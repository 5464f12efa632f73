#include "run/on_host.h"

struct host_map on_host_map(const struct program *p, const struct param *x)
{
	struct host_map m = { .rank = x->rank, .swizzle = x->swizzle, .integer = p->tensors.v[x->tensor].type == DT_I32,
		.element_bytes = dtype_bits(p->tensors.v[x->tensor].type) / 8 };

	for (int i = 0; i < x->rank && i < HOST_DIMS_MAX; i++) {
		m.dim[i] = x->dim[i];
		m.box[i] = x->box[i];
		m.stride[i] = x->stride[i];
	}
	return m;
}

/* The launch of a phase. Its own buffers follow those of tensors. */
static struct host_job make_job(const struct built *b, const struct plan *at, int phase,
	const struct on_host_options *o,
	struct host_buffer *buffers, struct arena *a)
{
	const struct program *p = at->graph->program;
	const struct source *s = &b->phases[phase].source;
	const struct target *t = target_of(at->device);
	struct host_arg *args = ARENA_ARRAY(a, s->params.n, struct host_arg);
	struct phase_buffer own[PHASE_BUFFERS];
	int eus = built_phase_buffers(b, at, phase, a, own);

	if (b->traced)			/* the runtime would fill them with NaN */
		own[PHASE_STAMPS].from = arena_alloc(a, own[PHASE_STAMPS].bytes);
	for (int i = 0; i < PHASE_BUFFERS; i++)
		buffers[p->tensors.n + i] = (struct host_buffer){ .bytes = own[i].bytes,
			.from = own[i].from, .to = own[i].to };
	for (int i = 0; i < s->params.n; i++) {
		struct param x = built_param_at(&s->params.v[i], p);

		if (x.kind == PARAM_SIZE) {
			args[i].is_number = true;
			args[i].number = (int)p->axes.v[x.axis].size;
			continue;
		}
		args[i].buffer = built_buffer_of(&x, NULL, p->tensors.n);
		args[i].parts = x.kind == PARAM_POINTER ? built_parts(p, x.tensor) : 0;
		args[i].is_map = x.kind == PARAM_MAP;
		if (args[i].is_map)
			args[i].map = on_host_map(p, &x);
	}
	return (struct host_job){ .buffers = buffers, .nbuffers = p->tensors.n + PHASE_BUFFERS, .args = args,
		.nargs = s->params.n, .blocks = eus, .threads = s->threads, .cluster = s->cluster,
		.warp = t->warp, .group = t->warp * t->group,
		.shared_bytes = s->shared_bytes, .seed = o->seed, .race = o->race, .seconds = o->limit };
}

enum err_code on_host_run(const struct built *b, const struct plan *at, void *const *data,
	const struct on_host_options *o,
	const struct stop *stop, struct arena *a, const char **report, struct err *e)
{
	const struct program *p = at->graph->program;
	struct host_buffer *buffers = ARENA_ARRAY(a, p->tensors.n + PHASE_BUFFERS, struct host_buffer);

	for (int t = 0; t < p->tensors.n; t++) {
		buffers[t].bytes = dtype_bytes(p->tensors.v[t].type, (size_t)tensor_elements(p, t));
		if (p->tensors.v[t].role == TENSOR_INPUT)
			buffers[t].from = data[t];
		else
			buffers[t].to = data[t] ? data[t] : arena_alloc(a, buffers[t].bytes);
		if (p->tensors.v[t].role == TENSOR_OUTPUT && o->keep)
			buffers[t].from = data[t];
	}
	*report = NULL;
	for (int i = 0; i < b->nphases && !*report; i++) {
		struct host_job job = make_job(b, at, i, o, buffers, a);

		TRY(host_run(b->phases[i].object, &job, stop, a, report, e));
		for (int t = 0; t < p->tensors.n; t++)	/* the next phase reads what this one wrote */
			if (buffers[t].to)
				buffers[t].from = buffers[t].to;
	}
	return OK;
}
