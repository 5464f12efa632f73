#include "run/run.h"

#include <string.h>

enum { POISON = 0x7fc07fc0 };		/* NaN in f32, and in both halves in bf16 */

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

/* Where the buffers and binaries of a built plan are in a job. */
struct job_layout {
	const int *tensors;		/* the buffer of each tensor */
	int phases;			/* the first of PHASE_BUFFERS buffers for each phase */
	int binaries;			/* the first of the phases' binaries */
	int contestant;			/* of a race, from 1; else 0 */
};

/* The launch of a phase, and the phase's own buffers. */
static void add_step(const struct built *b, int phase, const struct job_layout *at, struct arena *a,
	struct gpu_buffer *buffers, struct gpu_step *step)
{
	static const char *const names[] = { "order of tiles", "first tiles", "stamps" };	/* ORDER PHASE_ORDER */
	const struct source *s = &b->phases[phase].source;
	struct gpu_param *params = ARENA_ARRAY(a, s->params.n, struct gpu_param);
	int first = at->phases + PHASE_BUFFERS * phase, eus;
	struct phase_buffer own[PHASE_BUFFERS];

	eus = built_phase_buffers(b, phase, a, own);
	for (int i = 0; i < PHASE_BUFFERS; i++)
		buffers[first + i] = (struct gpu_buffer){ .name = names[i], .contestant = at->contestant,
			.bytes = own[i].bytes ? own[i].bytes : sizeof(uint32_t), .init = own[i].from ? GPU_INIT_HOST :
			GPU_INIT_WORD, .from = own[i].from, .to = own[i].to };
	for (int i = 0; i < s->params.n; i++) {
		const struct param *x = &s->params.v[i];

		params[i].kind = x->kind == PARAM_MAP ? GPU_PARAM_TENSOR : GPU_PARAM_POINTER;
		params[i].buffer = built_buffer_of(x, at->tensors, first);
		if (x->kind == PARAM_MAP)
			params[i].tensor = built_map(a, b->graph->program, x);
	}
	*step = (struct gpu_step){ .kind = GPU_STEP_KERNEL, .binary = at->binaries + phase,
		.contestant = at->contestant, .early = phase > 0, .entry = s->entry,
		.grid = { (unsigned)eus }, .block = { (unsigned)s->threads },
		.smem = (unsigned)s->shared_bytes, .params = params, .nparams = s->params.n };
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

static void add_binaries(const struct built *b, struct gpu_binary *out)
{
	for (int i = 0; i < b->nphases; i++) {
		const struct compile_result *x = &b->phases[i].binary;

		out[i] = (struct gpu_binary){ x->cubin, x->cubin_bytes };
	}
}

enum err_code built_run(struct built *b, struct gpu *g, const struct feed *in, double limit,
	const struct gpu_bench *bench, const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e)
{
	const struct program *p = b->graph->program;
	int n = p->tensors.n + PHASE_BUFFERS * b->nphases, fills = feed_randoms(p, in);
	struct gpu_buffer *buffers = ARENA_ARRAY(a, n, struct gpu_buffer);
	struct gpu_binary *binaries = ARENA_ARRAY(a, b->nphases + 1, struct gpu_binary);
	struct gpu_step *steps = ARENA_ARRAY(a, fills + b->nphases, struct gpu_step);
	int *tensors = ARENA_ARRAY(a, p->tensors.n, int);
	struct job_layout at = { .tensors = tensors, .phases = p->tensors.n };
	struct gpu_job job = { .binaries = binaries, .nbinaries = b->nphases + (fills > 0), .buffers = buffers,
		.nbuffers = n, .steps = steps, .nsteps = fills + b->nphases, .mode = bench ? GPU_BENCH : GPU_RUN };

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
		if (strcmp(s->name, t->name) != 0 || s->role != t->role || s->type != t->type || s->rank != t->rank)
			return false;
		for (int k = 0; k < s->rank; k++)
			if (p->axes.v[s->dim[k]].size != q->axes.v[t->dim[k]].size)
				return false;
	}
	return true;
}

/* The sizes of a race's job: the inputs once; for each contestant its other tensors and its phases. */
struct race_size {
	int buffers, binaries, steps;
};

static struct race_size size_of(const struct racer *racers, int n, const struct program *p, int fills)
{
	struct race_size size = { .buffers = p->tensors.n * (n + 1), .binaries = fills > 0, .steps = fills };

	for (int i = 0; i < n; i++) {
		size.buffers += PHASE_BUFFERS * racers[i].built->nphases;
		size.binaries += racers[i].built->nphases;
		size.steps += racers[i].built->nphases;
	}
	return size;
}

/* Add contestant c, from 1, to the job. */
static void add_racer(const struct built *b, int c, const struct feed *in, struct arena *a, struct gpu_buffer *buffers,
	struct gpu_binary *binaries, struct gpu_step *steps, struct gpu_job *job)
{
	const struct program *p = b->graph->program;
	int *tensors = ARENA_ARRAY(a, p->tensors.n, int);
	struct job_layout at = { .tensors = tensors, .binaries = job->nbinaries, .contestant = c };

	for (int i = 0; i < p->tensors.n; i++) {
		tensors[i] = i;		/* inputs are shared: see built_race */
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

enum err_code built_race(const struct racer *racers, int n, struct gpu *g, const struct feed *in, double limit,
	const struct gpu_race *race, const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e)
{
	const struct built *first = racers[0].built;
	const struct program *p = first->graph->program;
	int fills = feed_randoms(p, in);
	struct race_size size = size_of(racers, n, p, fills);
	struct gpu_buffer *buffers = ARENA_ARRAY(a, size.buffers, struct gpu_buffer);
	struct gpu_binary *binaries = ARENA_ARRAY(a, size.binaries, struct gpu_binary);
	struct gpu_step *steps = ARENA_ARRAY(a, size.steps, struct gpu_step);
	const char **names = ARENA_ARRAY(a, n, const char *);
	struct gpu_job job = { .binaries = binaries, .buffers = buffers, .steps = steps, .nbuffers = p->tensors.n,
		.nbinaries = fills > 0, .nsteps = fills, .mode = GPU_RACE, .race = *race };

	/* Buffer i is tensor i if that is an input; the others are placeholders. */
	for (int i = 0; i < p->tensors.n; i++) {
		buffers[i] = (struct gpu_buffer){ .name = "placeholder", .bytes = 1 };
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
