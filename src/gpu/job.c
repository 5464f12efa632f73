#include "gpu/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits that CUDA's programming guide gives for all devices. The driver checks those that depend on the device. */
enum {
	BINARIES_MAX = 4096,
	BUFFERS_MAX = 1 << 15,
	STEPS_MAX = 8192,
	THREADS_MAX = 1024,		/* a block */
	BLOCK_Z_MAX = 64,
	GRID_YZ_MAX = 65535,
	CLUSTER_MAX = 16,		/* blocks; beyond 8 is not portable */
	PARAM_BYTES_MAX = 32764,
	BOX_MAX = 256,			/* elements a dimension */
	STEP_MAX = 8,
	TENSOR_ALIGN = 16,		/* bytes: start, strides, innermost extent of the box */
};

#define GRID_X_MAX 0x7fffffffu
#define DIM_MAX ((uint64_t)1 << 32)
#define STRIDE_MAX ((uint64_t)1 << 40)

/* Bytes of one element; 0: no such type. */
static size_t element_bytes(enum gpu_element t)
{
	static const uint8_t bytes[] = {
		[GPU_U8] = 1, [GPU_U16] = 2, [GPU_F16] = 2, [GPU_BF16] = 2, [GPU_U32] = 4, [GPU_I32] = 4,
		[GPU_F32] = 4, [GPU_TF32] = 4, [GPU_U64] = 8, [GPU_I64] = 8, [GPU_F64] = 8,
	};

	return (unsigned)t < (unsigned)LEN(bytes) ? bytes[t] : 0;
}

unsigned gpu_dim(unsigned n)
{
	return n ? n : 1;
}

size_t gpu_param_bytes(const struct gpu_param *p)
{
	return p->kind == GPU_PARAM_TENSOR ? 128 : p->kind == GPU_PARAM_BITS32 ? 4 : 8;
}

/* The part of the job that a message is about. */
struct where {
	char text[160];
};

static struct where buffer_name(const struct gpu_job *job, int i)
{
	struct where w;

	if (job->buffers[i].name)
		snprintf(w.text, sizeof(w.text), "buffer '%s'", job->buffers[i].name);
	else
		snprintf(w.text, sizeof(w.text), "buffer %d", i);
	return w;
}

#define WRONG(...) err_set(e, ERR_INPUT, NOWHERE, __VA_ARGS__)

/* ---- buffers ---- */

static enum err_code check_buffer(const struct gpu_job *job, int i, struct err *e)
{
	const struct gpu_buffer *b = &job->buffers[i];
	struct where name = buffer_name(job, i);

	if (!b->bytes)
		return WRONG("%s is empty", name.text);
	if (b->bytes > SIZE_MAX / 8)
		return WRONG("%s has an impossible size", name.text);
	if ((unsigned)b->init > GPU_INIT_WORD)
		return WRONG("%s has an unknown kind of initial contents", name.text);
	if (b->init == GPU_INIT_HOST && !b->from)
		return WRONG("%s has nothing to be filled from", name.text);
	return OK;
}

/* ---- parameters ---- */

/* One past the last byte that the tensor map reaches. A double is exact enough to compare it with
 * the size of a buffer, and does not overflow. */
static double tensor_reach(const struct gpu_tensor *t, size_t offset)
{
	double end = (double)offset + (double)element_bytes(t->element) * (double)t->dims[0];

	for (int d = 1; d < t->rank; d++)
		end += (double)(t->dims[d] - 1) * (double)t->strides[d];
	return end;
}

static enum err_code check_dim(const struct gpu_tensor *t, int d, const char *at, struct err *e)
{
	if (t->dims[d] < 1 || t->dims[d] > DIM_MAX)
		return WRONG("%s: dimension %d has %llu elements, not 1 to 2^32", at, d,
			(unsigned long long)t->dims[d]);
	if (t->box[d] < 1 || t->box[d] > BOX_MAX)
		return WRONG("%s: the box has %u elements in dimension %d, not 1 to %d", at, t->box[d], d, BOX_MAX);
	if (t->step[d] > STEP_MAX)
		return WRONG("%s: step %u in dimension %d is more than %d", at, t->step[d], d, STEP_MAX);
	if (d > 0 && (t->strides[d] % TENSOR_ALIGN || t->strides[d] >= STRIDE_MAX))
		return WRONG("%s: stride %llu of dimension %d is no multiple of %d bytes "
			"below 2^40", at, (unsigned long long)t->strides[d], d, TENSOR_ALIGN);
	return OK;
}

static enum err_code check_tensor(const struct gpu_tensor *t, size_t offset, size_t bytes,
	const char *at, struct err *e)
{
	static const size_t span[] = { 0, 32, 64, 128 };
	size_t inner;

	if (!t || t->rank < 1 || t->rank > GPU_RANK_MAX)
		return WRONG("%s is a tensor without 1 to %d dimensions", at, GPU_RANK_MAX);
	if (!element_bytes(t->element) || (unsigned)t->swizzle >= (unsigned)LEN(span) ||
	    (unsigned)t->promotion > GPU_PROMOTE_256)
		return WRONG("%s has no such element type, swizzle or promotion", at);
	for (int d = 0; d < t->rank; d++)
		TRY(check_dim(t, d, at, e));
	inner = t->box[0] * element_bytes(t->element);
	if (inner % TENSOR_ALIGN)
		return WRONG("%s: the box is %zu bytes wide, no multiple of %d", at, inner, TENSOR_ALIGN);
	if (t->swizzle && inner > span[t->swizzle])
		return WRONG("%s: the box is %zu bytes wide, more than its swizzle's %zu", at, inner, span[t->swizzle]);
	if (offset % TENSOR_ALIGN)
		return WRONG("%s starts at byte %zu, no multiple of %d", at, offset, TENSOR_ALIGN);
	if (tensor_reach(t, offset) > (double)bytes)
		return WRONG("%s reaches to byte %.0f of a buffer of %zu", at, tensor_reach(t, offset), bytes);
	return OK;
}

/* Adds the parameter's bytes to *total, after its alignment. */
static enum err_code check_param(const struct gpu_job *job, const struct gpu_step *s, int i,
	size_t *total, struct err *e)
{
	const struct gpu_param *p = &s->params[i];
	size_t size = gpu_param_bytes(p);
	size_t align = p->kind == GPU_PARAM_TENSOR ? 64 : size;
	struct where at;

	*total = (*total + align - 1) / align * align + size;
	if ((unsigned)p->kind > GPU_PARAM_TENSOR)
		return WRONG("parameter %d of '%s' is of no known kind", i, s->entry);
	if (p->kind == GPU_PARAM_BITS32 || p->kind == GPU_PARAM_BITS64)
		return OK;
	if (p->kind == GPU_PARAM_TENSOR && job->api == GPU_HIP)
		return WRONG("parameter %d of '%s': there are no tensor maps through HIP", i, s->entry);
	if (p->buffer < 0 || p->buffer >= job->nbuffers)
		return WRONG("parameter %d of '%s' names buffer %d of %d", i, s->entry, p->buffer, job->nbuffers);
	snprintf(at.text, sizeof(at.text), "parameter %d of '%s' (%.80s)", i, s->entry,
		buffer_name(job, p->buffer).text);
	if (p->offset >= job->buffers[p->buffer].bytes)
		return WRONG("%s starts at byte %zu of %zu", at.text, p->offset, job->buffers[p->buffer].bytes);
	return p->kind == GPU_PARAM_TENSOR ? check_tensor(p->tensor, p->offset,
		job->buffers[p->buffer].bytes, at.text, e) : OK;
}

/* ---- steps ---- */

static enum err_code check_shape(const struct gpu_step *s, struct err *e)
{
	double threads = 1, blocks = 1;

	for (int d = 0; d < 3; d++) {
		unsigned grid = gpu_dim(s->grid[d]), cluster = gpu_dim(s->cluster[d]);

		threads *= gpu_dim(s->block[d]);
		blocks *= cluster;
		if (grid > (d ? GRID_YZ_MAX : GRID_X_MAX))
			return WRONG("'%s' has a grid of %u in dimension %d", s->entry, grid, d);
		if (grid % cluster)
			return WRONG("'%s': a grid of %u is not made of clusters of %u", s->entry, grid, cluster);
	}
	if (threads > THREADS_MAX || s->block[2] > BLOCK_Z_MAX)
		return WRONG("'%s' has %.0f threads in a block of %u x %u x %u; %d is the most", s->entry, threads,
			gpu_dim(s->block[0]), gpu_dim(s->block[1]), gpu_dim(s->block[2]), THREADS_MAX);
	if (blocks > CLUSTER_MAX)
		return WRONG("'%s' has a cluster of %.0f blocks; %d is the most", s->entry, blocks, CLUSTER_MAX);
	return OK;
}

static enum err_code check_step(const struct gpu_job *job, int i, struct err *e)
{
	const struct gpu_step *s = &job->steps[i];
	size_t total = 0;

	if (s->stream < 0 || s->stream >= GPU_STREAMS_MAX || s->nafter < 0 || s->nafter > i)
		return WRONG("step %d is on no stream, or waits for too many steps", i);
	for (int k = 0; k < s->nafter; k++)
		if (s->after[k] < 0 || s->after[k] >= i || job->steps[s->after[k]].once)
			return WRONG("step %d waits for step %d, which is not before it", i, s->after[k]);
	if (s->kind == GPU_STEP_FILL)
		return s->buffer >= 0 && s->buffer < job->nbuffers ? OK :
			WRONG("step %d fills buffer %d of %d", i, s->buffer, job->nbuffers);
	if (s->kind != GPU_STEP_KERNEL)
		return WRONG("step %d is of no known kind", i);
	if (!s->entry || !*s->entry)
		return WRONG("step %d names no kernel", i);
	if (s->binary < 0 || s->binary >= job->nbinaries)
		return WRONG("'%s' is of binary %d of %d", s->entry, s->binary, job->nbinaries);
	TRY(check_shape(s, e));
	if (job->api == GPU_HIP && (s->cooperative ||
	    gpu_dim(s->cluster[0]) * gpu_dim(s->cluster[1]) * gpu_dim(s->cluster[2]) > 1))
		return WRONG("'%s': there are no clusters or cooperative launches through HIP", s->entry);
	if (s->nparams < 0 || s->nparams > PARAM_BYTES_MAX)
		return WRONG("'%s' has an impossible number of parameters", s->entry);
	for (int p = 0; p < s->nparams; p++)
		TRY(check_param(job, s, p, &total, e));
	if (total > PARAM_BYTES_MAX)
		return WRONG("the parameters of '%s' take %zu bytes; %d is the most", s->entry, total, PARAM_BYTES_MAX);
	return OK;
}

static enum err_code check_bench(const struct gpu_bench *b, struct err *e)
{
	if (!(b->warmup >= 0 && b->warmup < HUGE_VAL && b->seconds >= 0 && b->seconds < HUGE_VAL))
		return WRONG("the seconds of a benchmark are a number from 0");
	if (b->runs_min < 0 || b->runs_max < 0 || b->runs_min > GPU_RUNS_MAX ||
	    b->runs_max > GPU_RUNS_MAX || (b->runs_max && b->runs_max < b->runs_min))
		return WRONG("a benchmark has 0 to %d runs; at least %d, at most %d is no range",
			GPU_RUNS_MAX, b->runs_min, b->runs_max);
	if (b->copies < 0 || b->copies > GPU_COPIES_MAX)
		return WRONG("a benchmark rotates over 1 to %d copies, not %d", GPU_COPIES_MAX, b->copies);
	return OK;
}

static bool is_contestant(const struct gpu_job *job, int i)
{
	return i >= 0 && i <= (job->mode == GPU_RACE ? job->race.n : 0);
}

static enum err_code check_contestants(const struct gpu_job *job, struct err *e)
{
	for (int i = 0; i < job->nbuffers; i++)
		if (!is_contestant(job, job->buffers[i].contestant))
			return WRONG("%s is of no contestant", buffer_name(job, i).text);
	for (int i = 0; i < job->nsteps; i++) {
		const struct gpu_step *s = &job->steps[i];

		if (!is_contestant(job, s->contestant) || (s->once && s->contestant))
			return WRONG("step %d is of no contestant", i);
	}
	return OK;
}

static enum err_code check_race(const struct gpu_job *job, struct err *e)
{
	const struct gpu_race *r = &job->race;
	bool found;
	int least;

	if (r->n < 1 || r->n > GPU_CONTESTANTS_MAX)
		return WRONG("a race has 1 to %d contestants, not %d", GPU_CONTESTANTS_MAX, r->n);
	if (!(r->warmup >= 0 && r->warmup < HUGE_VAL && r->sample_seconds >= 0 && r->sample_seconds < HUGE_VAL &&
	    r->seconds >= 0 && r->seconds < HUGE_VAL))
		return WRONG("the seconds of a race are a number from 0");
	if (r->rounds_min < 0 || r->rounds_min > GPU_RUNS_MAX / r->n)
		return WRONG("a race of %d has 0 to %d rounds, not %d", r->n, GPU_RUNS_MAX / r->n, r->rounds_min);
	least = r->rounds_min ? r->rounds_min : GPU_ROUNDS_MIN;
	if (r->rounds_max && r->rounds_max < least)
		return WRONG("the most rounds of a race are 0 or at least %d, not %d", least, r->rounds_max);
	for (int c = 1; c <= r->n; c++) {
		found = false;
		for (int i = 0; i < job->nsteps; i++)
			found = found || job->steps[i].contestant == c;
		if (!r->names || !r->names[c - 1] || !found)
			return WRONG("contestant %d of a race has no %s", c, found ? "name" : "steps");
	}
	return OK;
}

enum err_code gpu_job_check(const struct gpu_job *job, struct err *e)
{
	if (job->nbinaries < 0 || job->nbinaries > BINARIES_MAX)
		return WRONG("a job has 0 to %d binaries, not %d", BINARIES_MAX, job->nbinaries);
	if (job->nbuffers < 0 || job->nbuffers > BUFFERS_MAX)
		return WRONG("a job has 0 to %d buffers, not %d", BUFFERS_MAX, job->nbuffers);
	if ((unsigned)job->api >= GPU_APIS)
		return WRONG("a job is for CUDA or for HIP");
	if ((unsigned)job->mode > GPU_RACE)
		return WRONG("a job is to be run, benchmarked or raced");
	if (job->nsteps < 1 || job->nsteps > STEPS_MAX)
		return WRONG("a job has 1 to %d steps, not %d", STEPS_MAX, job->nsteps);
	for (int i = 0; i < job->nbinaries; i++)
		if (!job->binaries[i].image || !job->binaries[i].bytes)
			return WRONG("binary %d is empty", i);
	for (int i = 0; i < job->nbuffers; i++)
		TRY(check_buffer(job, i, e));
	for (int i = 0; i < job->nsteps; i++)
		TRY(check_step(job, i, e));
	if (job->mode == GPU_RACE && job->graph)
		return WRONG("a race has no graphs");
	if (job->mode == GPU_RACE)
		TRY(check_race(job, e));
	TRY(check_contestants(job, e));
	return job->mode == GPU_BENCH ? check_bench(&job->bench, e) : OK;
}
