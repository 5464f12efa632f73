#include "run/parts.h"

#include <string.h>

enum { POISON = 0x7fc07fc0 };		/* NaN in f32, and in both halves in bf16 */
static const uint32_t OTHER_POISON = UINT32_MAX;	/* so, too, but other bits in types that have no NaN */

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

const struct gpu_tensor *built_map(struct arena *a, const struct program *p, const struct param *x)
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

/* The buffer of a tensor. Outputs and the temporaries between phases are filled with NaN first, so that
 * reading before writing shows in the result. */
static void describe_tensor(const struct program *p, const struct feed *in, int tensor, struct gpu_buffer *out)
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

/* ---- jobs ---- */

/* What there will be beyond the plans' own. */
struct more {
	int buffers, binaries, steps;
};

/* Begin the job of n built plans with their inputs: buffer i is tensor i if that is an input; the others are
 * placeholders. Behind them are the buffers of addresses. */
static enum err_code begin_job(struct parts *x, const struct racer *racers, int n, const struct program *p,
	struct gpu *g,
	const struct feed *in, const struct stop *stop, struct more more, struct arena *a, struct err *e)
{
	int fills = feed_randoms(p, in), addresses = feed_addresses(p), phases = 0;
	bool hip = racers[0].built->backend == BACKEND_HIP;

	for (int i = 0; i < n; i++)
		phases += racers[i].built->nphases;
	x->buffers = ARENA_ARRAY(a, p->tensors.n * (n + 1) + addresses + PHASE_BUFFERS * phases + more.buffers, struct gpu_buffer);
	x->binaries = ARENA_ARRAY(a, phases + 1 + more.binaries, struct gpu_binary);
	x->steps = ARENA_ARRAY(a, phases + fills + addresses + more.steps, struct gpu_step);
	x->job = (struct gpu_job){ .api = hip ? GPU_HIP : GPU_CUDA, .arch = hip ? built_arch(racers[0].built) : NULL,
		.binaries = x->binaries, .buffers = x->buffers, .steps = x->steps,
		.nbinaries = fills + addresses > 0, .nbuffers = p->tensors.n + addresses, .nsteps = fills + addresses };
	for (int i = 0; i < p->tensors.n; i++) {
		x->buffers[i] = (struct gpu_buffer){ .name = "placeholder", .bytes = 1 };
		if (p->tensors.v[i].role == TENSOR_INPUT)
			describe_tensor(p, in, i, &x->buffers[i]);
	}
	if (fills + addresses)
		TRY(feed_binary(g, x->job.api, built_arch(racers[0].built), stop, a, &x->binaries[0], e));
	feed_steps(p, in, 0, a, x->steps);
	feed_address_steps(p, p->tensors.n, 0, a, x->buffers, x->steps + fills);
	return OK;
}

void parts_add_phase(struct parts *x, const struct built *b, const struct plan *at, int phase, int contestant,
	const int *tensors, const size_t *offsets, bool early, struct arena *a)
{
	static const char *const names[] = { "order of tiles", "first tiles", "stamps" };	/* ORDER PHASE_ORDER */
	const struct source *s = &b->phases[phase].source;
	const struct compile_result *binary = &b->phases[phase].binary;
	struct gpu_param *params = ARENA_ARRAY(a, s->params.n, struct gpu_param);
	struct gpu_job *job = &x->job;
	struct phase_buffer own[PHASE_BUFFERS];
	int eus = built_phase_buffers(b, at, phase, a, own);

	for (int i = 0; i < s->params.n; i++) {
		struct param p = built_param_at(&s->params.v[i], at->graph->program);

		if (p.kind == PARAM_SIZE) {
			params[i].kind = GPU_PARAM_BITS32;
			params[i].bits = (uint64_t)at->graph->program->axes.v[p.axis].size;
			continue;
		}
		params[i].kind = p.kind == PARAM_MAP ? GPU_PARAM_TENSOR : GPU_PARAM_POINTER;
		params[i].buffer = built_buffer_of(&p, tensors, job->nbuffers);
		if (p.kind == PARAM_POINTER && built_parts(at->graph->program, p.tensor))
			params[i].buffer = feed_address_buffer(at->graph->program, p.tensor,
				at->graph->program->tensors.n);
		if (p.kind == PARAM_MAP)
			params[i].tensor = built_map(a, at->graph->program, &p);
		if (offsets && (p.kind == PARAM_MAP || p.kind == PARAM_POINTER))
			params[i].offset = offsets[p.tensor];
	}
	x->steps[job->nsteps++] = (struct gpu_step){ .kind = GPU_STEP_KERNEL, .binary = job->nbinaries,
		.contestant = contestant, .early = job->api == GPU_CUDA && early && s->waits, .entry = s->entry, .grid = { (unsigned)eus },
		.block = { (unsigned)s->threads }, .smem = (unsigned)s->shared_bytes, .params = params,
		.nparams = s->params.n };
	x->binaries[job->nbinaries++] = (struct gpu_binary){ binary->cubin, binary->cubin_bytes };
	for (int i = 0; i < PHASE_BUFFERS; i++)
		x->buffers[job->nbuffers++] = (struct gpu_buffer){ .name = names[i], .contestant = contestant,
			.bytes = own[i].bytes ? own[i].bytes : sizeof(uint32_t),
			.init = own[i].from ? GPU_INIT_HOST : GPU_INIT_WORD, .from = own[i].from, .to = own[i].to };
}

/* Add a built plan: alone with buffer i for tensor i; `own`: with outputs and temporaries of its own, which are not
 * returned. Returns the buffer of each tensor. */
static const int *add_built(struct parts *x, const struct built *b, const struct plan *at, int contestant, bool own,
	const struct feed *in, struct arena *a)
{
	const struct program *p = at->graph->program;
	int *tensors = ARENA_ARRAY(a, p->tensors.n, int);

	for (int i = 0; i < p->tensors.n; i++) {
		tensors[i] = i;
		if (p->tensors.v[i].role == TENSOR_INPUT)
			continue;
		if (own)
			tensors[i] = x->job.nbuffers++;
		describe_tensor(p, in, i, &x->buffers[tensors[i]]);
		x->buffers[tensors[i]].contestant = contestant;
		if (own)
			x->buffers[tensors[i]].to = NULL;
	}
	for (int i = 0; i < b->nphases; i++)
		parts_add_phase(x, b, at, i, contestant, tensors, NULL, i > 0, a);
	return tensors;
}

enum err_code built_run(struct built *b, const struct plan *at, struct gpu *g, const struct feed *in, double limit,
	const struct gpu_bench *bench, const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e)
{
	struct parts x;

	TRY(begin_job(&x, &(struct racer){ .built = b }, 1, at->graph->program, g, in, stop, (struct more){ 0 }, a, e));
	add_built(&x, b, at, 0, false, in, a);
	x.job.mode = bench ? GPU_BENCH : GPU_RUN;
	if (bench)
		x.job.bench = *bench;
	return gpu_run(g, &x.job, limit, stop, a, r, e);
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
		if (strcmp(s->name, t->name) != 0 || s->role != t->role || s->type != t->type || s->rank != t->rank ||
		    s->by_address != t->by_address)
			return false;
		for (int k = 0; k < s->rank; k++)
			if (p->axes.v[s->dim[k]].size != q->axes.v[t->dim[k]].size)
				return false;
	}
	return true;
}

enum err_code built_race(const struct racer *racers, int n, struct gpu *g, const struct feed *in,
	double limit, const struct gpu_race *race, const struct stop *stop, struct arena *a,
	struct gpu_result *r, struct err *e)
{
	const char **names = ARENA_ARRAY(a, n, const char *);
	struct parts x;

	TRY(begin_job(&x, racers, n, racers[0].built->graph->program, g, in, stop, (struct more){ 0 }, a, e));
	for (int i = 0; i < n; i++) {
		names[i] = racers[i].name;
		add_built(&x, racers[i].built, racers[i].built->plan, i + 1, true, in, a);
	}
	x.job.mode = GPU_RACE;
	x.job.race = *race;
	x.job.race.names = names;
	x.job.race.n = n;
	return gpu_run(g, &x.job, limit, stop, a, r, e);
}

/* ---- verifying ---- */

/* The tensor of that name and role. */
static int tensor_named(const struct program *p, const struct tensor *x)
{
	int i;

	FIND_FIRST(i, p->tensors.n, p->tensors.v[i].role == x->role && !strcmp(p->tensors.v[i].name, x->name));
	return i;
}

/* Add the reference on the inputs of the job, whose binary comes next. Returns the buffer of each of its tensors. */
static const int *add_reference(struct parts *x, const struct program *p, const struct reference *r, int64_t most,
	struct arena *a)
{
	const struct program *q = r->program;
	int *own = ARENA_ARRAY(a, q->tensors.n + 1, int), steps = r->plain.nphases;
	int64_t blocks;

	for (int i = 0; i < q->tensors.n; i++) {
		const struct tensor *t = &q->tensors.v[i];

		own[i] = t->role == TENSOR_INPUT ? tensor_named(p, t) : x->job.nbuffers++;
		if (t->role != TENSOR_INPUT)
			x->buffers[own[i]] = (struct gpu_buffer){ .name = t->name, .init = GPU_INIT_WORD,
				.bytes = dtype_bytes(DT_F64, (size_t)tensor_elements(q, i)) };
	}
	own[q->tensors.n] = x->job.nbuffers++;
	blocks = reference_steps(r, most, x->job.nbinaries, own, a, x->steps + x->job.nsteps);
	x->job.nsteps += steps;
	x->buffers[own[q->tensors.n]] = (struct gpu_buffer){ .name = "values", .init = GPU_INIT_WORD, .word = UINT32_MAX,
		.bytes = (size_t)max_i64(1, blocks * r->plain.scratch_bytes) };
	return own;
}

/* Add a comparison of n elements: of `buffers` with each other. Returns where its threads' findings will be. */
static struct plain_found *add_comparison(struct parts *x, const char *entry, int64_t n, const int *buffers, int nbuffers,
	struct arena *a)
{
	struct plain_found *found = ARENA_ARRAY(a, PLAIN_COMPARERS, struct plain_found);
	struct gpu_param *v = ARENA_ARRAY(a, nbuffers + 2, struct gpu_param);

	for (int i = 0; i < nbuffers; i++)
		v[i] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = buffers[i] };
	v[nbuffers] = (struct gpu_param){ .kind = GPU_PARAM_BITS64, .bits = (uint64_t)n };
	v[nbuffers + 1] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = x->job.nbuffers };
	x->buffers[x->job.nbuffers++] = (struct gpu_buffer){ .name = "what is found", .init = GPU_INIT_WORD, .to = found,
		.bytes = PLAIN_COMPARERS * sizeof(*found) };
	x->steps[x->job.nsteps++] = (struct gpu_step){ .kind = GPU_STEP_KERNEL, .binary = x->job.nbinaries - 1, .entry = entry,
		.grid = { PLAIN_COMPARERS / PLAIN_THREADS }, .block = { PLAIN_THREADS }, .params = v, .nparams = nbuffers + 2 };
	return found;
}

/* What all threads found. */
static struct plain_found join(const struct plain_found *parts)
{
	struct plain_found all = { 0 };

	for (int i = 0; parts && i < PLAIN_COMPARERS; i++) {
		const struct plain_found *f = &parts[i];

		if (f->compared && (!all.compared || f->worst > all.worst)) {
			all.worst = f->worst;
			all.at = f->at;
			all.got = f->got;
			all.want = f->want;
			all.allowed = f->allowed;
		}
		all.greatest = f->greatest <= all.greatest ? all.greatest : f->greatest;
		all.chunk = f->chunk <= all.chunk ? all.chunk : f->chunk;
		all.off += f->off;
		all.size += f->size;
		all.most += f->most;
		all.wrong += f->wrong;
		all.compared += f->compared;
		all.unlimited += f->unlimited;
		all.telling += f->telling;
		all.unwritten += f->unwritten;
	}
	return all;
}

enum err_code built_verify(const struct built *b, const struct built *other, const struct verified_by *by, struct gpu *g,
	const struct feed *in, double limit, const struct stop *stop, struct arena *a, struct verified *out, struct err *e)
{
	const struct program *p = b->graph->program;
	struct racer racers[] = { { b, "" }, { other, "" } };
	struct plain_found **found = ARENA_ARRAY(a, 2 * p->tensors.n, struct plain_found *);
	const int *ours, *others = NULL, *wants = NULL;
	struct gpu_binary binary;
	struct gpu_result result;
	struct gpu_info info;
	struct parts x;

	TRY(gpu_probe(g, GPU_APIS, stop, &info, e));
	TRY(reference_binary(by->reference, g, &info, stop, &binary, e));
	TRY(begin_job(&x, racers, 1 + (other != NULL), p, g, in, stop, (struct more){
		.buffers = by->reference->program->tensors.n + 1 + 2 * p->tensors.n, .binaries = 1,
		.steps = by->reference->plain.nphases + 2 * p->tensors.n }, a, e));
	ours = add_built(&x, b, b->plan, 0, true, in, a);
	if (other)
		others = add_built(&x, other, other->plan, 0, true, in, a);
	/* what neither writes differs */
	for (int i = 0; other && i < p->tensors.n; i++)
		if (p->tensors.v[i].role == TENSOR_OUTPUT)
			x.buffers[others[i]].word = OTHER_POISON;
	if (by->computes)
		wants = add_reference(&x, p, by->reference, reference_blocks(by->reference, &info), a);
	x.binaries[x.job.nbinaries++] = binary;
	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];
		const char *type = dtype_name(t->type);
		int64_t n = tensor_elements(p, i);

		if (t->role != TENSOR_OUTPUT)
			continue;
		if (wants)
			found[2 * i] = add_comparison(&x, arena_strf(a, "compare_%s", type), n, (const int[]){ ours[i],
			wants[tensor_named(by->reference->program, t)], wants[by->allowance[i]] }, 3, a);
		if (other)
			found[2 * i + 1] = add_comparison(&x, arena_strf(a, "agree_%s", type), n,
				(const int[]){ ours[i], others[i] }, 2, a);
	}
	TRY(gpu_run(g, &x.job, limit, stop, a, &result, e));
	for (int i = 0; i < p->tensors.n; i++)
		out[i] = (struct verified){ join(found[2 * i]), join(found[2 * i + 1]) };
	return OK;
}
