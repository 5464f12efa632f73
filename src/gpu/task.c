#include "gpu/task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Guard bytes follow each buffer, with a pattern that is NaN in every float format. A kernel that reads
 * them gets a wrong result; one that writes them is reported. */
enum { GUARD_BYTES = 512, GUARD_PATTERN = 0xff };

enum { PORTABLE_CLUSTER = 8, PARAMS_EXTRA = 16 };

/* The value of a kernel's parameter. */
union argument {
	uint32_t low;
	uint64_t bits;
	struct cuda_tensor_map map;
};

device_ptr gpu_task_memory(const struct gpu_task *t, int buffer, int copy)
{
	bool rotate = t->job->buffers[buffer].rotate;

	return t->memory[buffer * t->copies + (rotate ? copy : 0)];
}

static char *buffer_text(const struct gpu_task *t, int i)
{
	const char *name = t->job->buffers[i].name;

	return name ? arena_strf(t->arena, "'%s'", name) : arena_strf(t->arena, "buffer %d", i);
}

/* ---- memory ---- */

/* The bytes of buffers that a contestant uses, those of no contestant included; ALL_CONTESTANTS: of all buffers. */
enum { ALL_CONTESTANTS = -1 };

static void sum_buffers(const struct gpu_job *job, int contestant, double *rotate, double *fixed)
{
	*rotate = *fixed = 0;
	for (int i = 0; i < job->nbuffers; i++) {
		const struct gpu_buffer *b = &job->buffers[i];

		if (!b->contestant || contestant == ALL_CONTESTANTS || b->contestant == contestant)
			*(b->rotate ? rotate : fixed) += (double)b->bytes;
	}
}

/* Rotating bytes of the contestant that has fewest. */
static double min_rotating_bytes(const struct gpu_job *job)
{
	double least = HUGE_VAL, rotate, fixed;

	for (int c = job->mode == GPU_RACE; c <= (job->mode == GPU_RACE ? job->race.n : 0); c++) {
		sum_buffers(job, c, &rotate, &fixed);
		least = fmin(least, rotate);
	}
	return least;
}

/* As many copies as together exceed twice the L2, so that a run's inputs were evicted since they were
 * last read. No more than fit into the device's memory. */
static enum err_code count_copies(struct gpu_task *t)
{
	const struct gpu_job *job = t->job;
	double rotate, fixed, fit, least = min_rotating_bytes(job);
	size_t left, total;
	int copies = job->bench.copies;

	t->copies = 1;
	sum_buffers(job, ALL_CONTESTANTS, &rotate, &fixed);
	if (job->mode == GPU_RUN || !(least > 0))
		return OK;
	TRY(CALL(t->d, memory_info, &left, &total));
	if (!copies)
		copies = (int)fmin(2.0 * (double)t->d->info.l2 / least, GPU_COPIES_MAX) + 1;
	fit = ((double)left * 0.8 - fixed) / rotate;
	if (copies > fit)
		copies = fit < 1 ? 1 : (int)fit;
	t->copies = copies < GPU_COPIES_MAX ? copies : GPU_COPIES_MAX;
	return OK;
}

/* Runs find a cold L2 if more bytes than it holds are used between two uses of the same byte: all copies
 * of a contestant's rotating buffers, or all bytes of one run. */
static void predict_cache(struct gpu_task *t)
{
	const struct gpu_job *job = t->job;
	int64_t l2 = t->d->info.l2;
	double rotate, fixed;

	if (job->mode == GPU_RUN || l2 <= 0 || job->api == GPU_HIP)	/* HIP does not tell of the cache behind the L2 */
		return;
	t->cache = GPU_CACHE_COLD;
	for (int c = job->mode == GPU_RACE; c <= (job->mode == GPU_RACE ? job->race.n : 0); c++) {
		sum_buffers(job, c, &rotate, &fixed);
		if (rotate * t->copies <= (double)l2 && rotate + fixed <= (double)l2)
			t->cache = GPU_CACHE_WARM;
	}
}

static enum err_code fill_memory(struct gpu_task *t, device_ptr p, size_t bytes, uint32_t word)
{
	struct CUstream_st *stream = t->d->stream;
	size_t words = bytes / sizeof(word);

	if (words)
		TRY(CALL(t->d, fill_words, p, word, words, stream));
	for (size_t at = words * sizeof(word); at < bytes; at++, word >>= 8)
		TRY(CALL(t->d, fill_bytes, p + at, (unsigned char)word, 1, stream));
	return OK;
}

static enum err_code allocate_buffer(struct gpu_task *t, int buffer, device_ptr *p)
{
	size_t bytes = t->job->buffers[buffer].bytes;
	int result = t->d->api.allocate(p, bytes + GUARD_BYTES);

	if (result) {
		*p = 0;
		return driver_check(t->d, result, offsetof(struct driver, allocate), arena_strf(t->arena, "of %s for %s",
			size_text(t->d, (double)bytes), buffer_text(t, buffer)));
	}
	return CALL(t->d, fill_bytes, *p + bytes, GUARD_PATTERN, GUARD_BYTES, t->d->stream);
}

static enum err_code fill_buffer(struct gpu_task *t, int buffer, int copy)
{
	const struct gpu_buffer *b = &t->job->buffers[buffer];
	device_ptr first = t->memory[buffer * t->copies], p = t->memory[buffer * t->copies + copy];

	if (b->init == GPU_INIT_WORD)
		return fill_memory(t, p, b->bytes, b->word);
	if (b->init != GPU_INIT_HOST)
		return OK;
	if (copy)			/* faster than to copy from the host again */
		return CALL(t->d, copy, p, first, b->bytes, t->d->stream);
	return CALL(t->d, copy_in, p, b->from, b->bytes, t->d->stream);
}

static enum err_code make_memory(struct gpu_task *t)
{
	TRY(count_copies(t));
	predict_cache(t);
	t->memory = ARENA_ARRAY(t->arena, t->job->nbuffers * t->copies, device_ptr);
	for (int i = 0; i < t->job->nbuffers; i++) {
		int copies = t->job->buffers[i].rotate ? t->copies : 1;

		for (int c = 0; c < copies; c++) {
			TRY(allocate_buffer(t, i, &t->memory[i * t->copies + c]));
			TRY(fill_buffer(t, i, c));
		}
	}
	return CALL_FOR(t->d, "after filling the buffers", stream_synchronize, t->d->stream);
}

/* ---- parameters ---- */

static enum err_code make_map(struct gpu_task *t, const struct gpu_launch *l,
	const struct gpu_tensor *g, device_ptr at, struct cuda_tensor_map *map)
{
	uint32_t steps[GPU_RANK_MAX];

	if (!t->d->api.cuTensorMapEncodeTiled)
		return context_fail(t->d, GPU_FAIL_MISSING, ERR_IO, "this driver (for CUDA %d.%d) "
			"knows no tensor maps: update it to one for CUDA 12",
			t->d->info.driver_major, t->d->info.driver_minor);
	for (int i = 0; i < g->rank; i++)
		steps[i] = g->step[i] ? g->step[i] : 1;
	return CALL_FOR(t->d, l->what, cuTensorMapEncodeTiled, map, (int)g->element,
		(unsigned)g->rank, (void *)(uintptr_t)at, g->dims, g->strides + 1, g->box, steps,
		0, (int)g->swizzle, (int)g->promotion, 0);
}

static enum err_code make_param(struct gpu_task *t, const struct gpu_launch *l,
	const struct gpu_param *p, int copy, union argument *out)
{
	device_ptr at = 0;

	if (p->kind == GPU_PARAM_POINTER || p->kind == GPU_PARAM_TENSOR)
		at = gpu_task_memory(t, p->buffer, copy) + p->offset;
	if (p->kind == GPU_PARAM_TENSOR)
		return make_map(t, l, p->tensor, at, &out->map);
	if (p->kind == GPU_PARAM_BITS32)
		out->low = (uint32_t)p->bits;
	else
		out->bits = p->kind == GPU_PARAM_POINTER ? at : p->bits;
	return OK;
}

static enum err_code make_params(struct gpu_task *t, struct gpu_launch *l, const struct gpu_step *s)
{
	/* Tensor maps need more than the arena's alignment. */
	const size_t align = _Alignof(union argument);
	size_t n = (size_t)s->nparams * (size_t)t->copies;
	uintptr_t raw = (uintptr_t)arena_alloc(t->arena, n * sizeof(union argument) + align);
	union argument *arguments = (union argument *)((raw + align - 1) / align * align);

	l->params = ARENA_ARRAY(t->arena, t->copies, void **);
	for (int c = 0; c < t->copies; c++) {
		l->params[c] = ARENA_ARRAY(t->arena, s->nparams + PARAMS_EXTRA, void *);
		for (int i = 0; i < s->nparams; i++, arguments++) {
			l->params[c][i] = arguments;
			TRY(make_param(t, l, &s->params[i], c, arguments));
		}
	}
	return OK;
}

/* The driver reads as many parameters as the kernel has, so their number and sizes must be right. */
static enum err_code check_params(struct gpu_task *t, const struct gpu_launch *l, const struct gpu_step *s)
{
	size_t offset, bytes;
	int n = 0;

	if (!t->d->api.cuFuncGetParamInfo)	/* HIP has none */
		return OK;
	for (; !t->d->api.cuFuncGetParamInfo(l->function, (size_t)n, &offset, &bytes); n++)
		if (n < s->nparams && bytes != gpu_param_bytes(&s->params[n]))
			return context_fail(t->d, GPU_FAIL_JOB, ERR_INPUT, "parameter %d of '%s' has "
				"%zu bytes, the job gives it %zu", n, s->entry, bytes,
				gpu_param_bytes(&s->params[n]));
	if (n != s->nparams)
		return context_fail(t->d, GPU_FAIL_JOB, ERR_INPUT,
			"'%s' takes %d parameters, the job gives it %d", s->entry, n, s->nparams);
	return OK;
}

/* ---- launches ---- */

static enum err_code set_smem(struct gpu_task *t, struct gpu_launch *l, const struct gpu_step *s)
{
	int fixed = 0;

	TRY(CALL_FOR(t->d, l->what, function_attribute, &fixed, CUDA_FUNC_STATIC_SMEM, l->function));
	if ((int64_t)s->smem + fixed > t->d->info.smem_block)
		return context_fail(t->d, GPU_FAIL_LAUNCH, ERR_INPUT,
			"'%s' needs %lld bytes of shared memory a block; this device has %lld: "
			"take smaller tiles or fewer versions", s->entry,
			(long long)s->smem + fixed, (long long)t->d->info.smem_block);
	if (t->d->kind == GPU_HIP)
		return OK;
	return CALL_FOR(t->d, l->what, cuFuncSetAttribute, l->function, CUDA_FUNC_MAX_DYNAMIC_SMEM, (int)s->smem);
}

static struct cuda_launch_attribute *add_attribute(struct gpu_launch *l, enum cuda_launch_attribute_id id)
{
	struct cuda_launch_attribute *a = &l->attributes[l->config.nattributes++];

	a->id = (int)id;
	return a;
}

static enum err_code set_cluster(struct gpu_task *t, struct gpu_launch *l, const struct gpu_step *s)
{
	unsigned x = gpu_dim(s->cluster[0]), y = gpu_dim(s->cluster[1]), z = gpu_dim(s->cluster[2]);
	struct cuda_launch_attribute *a;

	if (x * y * z <= 1)
		return OK;
	a = add_attribute(l, CUDA_LAUNCH_CLUSTER);
	a->value.cluster.x = x;
	a->value.cluster.y = y;
	a->value.cluster.z = z;
	return x * y * z <= PORTABLE_CLUSTER ? OK :
		CALL_FOR(t->d, l->what, cuFuncSetAttribute, l->function, CUDA_FUNC_NON_PORTABLE_CLUSTER, 1);
}

static enum err_code check_threads(struct gpu_task *t, const struct gpu_launch *l, const struct gpu_step *s)
{
	const unsigned *b = l->config.block;
	int most = 0;

	TRY(CALL_FOR(t->d, l->what, function_attribute, &most, CUDA_FUNC_MAX_THREADS, l->function));
	if (b[0] * b[1] * b[2] > (unsigned)most)
		return context_fail(t->d, GPU_FAIL_LAUNCH, ERR_INPUT,
			"'%s' was compiled for at most %d threads a block, the job asks for %u: "
			"set its __launch_bounds__", s->entry, most, b[0] * b[1] * b[2]);
	return OK;
}

static enum err_code make_launch(struct gpu_task *t, struct gpu_launch *l, const struct gpu_step *s)
{
	const char *whose = s->contestant ? arena_strf(t->arena, " (%s)", t->job->race.names[s->contestant - 1]) : "";

	l->what = arena_strf(t->arena, "of '%s'%s", s->entry, whose);
	l->after = arena_strf(t->arena, "after '%s'%s", s->entry, whose);
	TRY(CALL_FOR(t->d, l->what, module_function, &l->function, t->modules[s->binary], s->entry));
	for (int i = 0; i < 3; i++) {
		l->config.grid[i] = gpu_dim(s->grid[i]);
		l->config.block[i] = gpu_dim(s->block[i]);
	}
	l->config.smem = s->smem;
	l->config.attributes = l->attributes;
	TRY(check_threads(t, l, s));
	TRY(set_smem(t, l, s));
	TRY(set_cluster(t, l, s));
	if (s->cooperative)
		add_attribute(l, CUDA_LAUNCH_COOPERATIVE)->value.cooperative = 1;
	if (s->early)
		add_attribute(l, CUDA_LAUNCH_EARLY)->value.early = 1;
	TRY(check_params(t, l, s));
	return make_params(t, l, s);
}

/* ---- streams ---- */

static enum err_code make_streams(struct gpu_task *t)
{
	const struct gpu_job *job = t->job;

	t->streams[0] = t->d->stream;
	t->events = ARENA_ARRAY(t->arena, job->nsteps, struct CUevent_st *);
	for (int i = 0; i < job->nsteps; i++) {
		const struct gpu_step *s = &job->steps[i];

		if (!t->streams[s->stream]) {
			TRY(CALL(t->d, stream_create, &t->streams[s->stream], CUDA_STREAM_NON_BLOCKING));
			TRY(CALL(t->d, event_create, &t->ends[s->stream], 0));
		}
		for (int k = 0; k < s->nafter; k++)
			if (!t->events[s->after[k]])
				TRY(CALL(t->d, event_create, &t->events[s->after[k]], 0));
		if (s->stream && !t->start)
			TRY(CALL(t->d, event_create, &t->start, 0));
	}
	return OK;
}

static void release_streams(struct gpu_task *t)
{
	for (int i = 0; t->events && i < t->job->nsteps; i++)
		if (t->events[i])
			t->d->api.event_destroy(t->events[i]);
	for (int i = 1; i < GPU_STREAMS_MAX; i++) {
		if (t->ends[i])
			t->d->api.event_destroy(t->ends[i]);
		if (t->streams[i])
			t->d->api.stream_destroy(t->streams[i]);
	}
	if (t->start)
		t->d->api.event_destroy(t->start);
}

/* The other streams wait for what is on the context's. */
static enum err_code fork_streams(struct gpu_task *t)
{
	if (!t->start)
		return OK;
	TRY(CALL(t->d, event_record, t->start, t->streams[0]));
	for (int i = 1; i < GPU_STREAMS_MAX; i++)
		if (t->streams[i])
			TRY(CALL(t->d, stream_wait, t->streams[i], t->start, 0));
	return OK;
}

static enum err_code join_streams(struct gpu_task *t)
{
	for (int i = 1; i < GPU_STREAMS_MAX && t->start; i++) {
		if (!t->streams[i])
			continue;
		TRY(CALL(t->d, event_record, t->ends[i], t->streams[i]));
		TRY(CALL(t->d, stream_wait, t->streams[0], t->ends[i], 0));
	}
	return OK;
}

static enum err_code make_launches(struct gpu_task *t)
{
	const struct gpu_job *job = t->job;

	TRY(make_streams(t));
	t->launches = ARENA_ARRAY(t->arena, job->nsteps, struct gpu_launch);
	t->modules = ARENA_ARRAY(t->arena, job->nbinaries, struct CUmod_st *);
	for (int i = 0; i < job->nbinaries; i++)
		TRY(CALL(t->d, module_load, &t->modules[i], job->binaries[i].image));
	for (int i = 0; i < job->nsteps; i++)
		if (job->steps[i].kind == GPU_STEP_KERNEL)
			TRY(make_launch(t, &t->launches[i], &job->steps[i]));
	return OK;
}

enum err_code gpu_task_init(struct gpu_task *t, struct gpu_context *d, const struct gpu_job *job, struct arena *a)
{
	*t = (struct gpu_task){ .d = d, .job = job, .arena = a, .copies = 1 };
	if (job->arch && strcmp(job->arch, d->info.arch))
		return context_fail(d, GPU_FAIL_BINARY, ERR_INPUT, "the kernel was compiled for %s, and the attached "
			"%s is %s: plan for that device, or run the plan on the CPU with target=\"host\"", job->arch,
			d->info.name, d->info.arch);
	TRY(make_memory(t));
	return make_launches(t);
}

void gpu_task_release(struct gpu_task *t)
{
	for (int i = 0; t->graphs && i < t->copies; i++)
		if (t->graphs[i])
			t->d->api.graph_exec_destroy(t->graphs[i]);
	t->graphs = NULL;
	for (int i = 0; t->memory && i < t->job->nbuffers * t->copies; i++)
		if (t->memory[i])
			t->d->api.release(t->memory[i]);
	t->memory = NULL;
	release_streams(t);
	for (int i = 0; t->modules && i < t->job->nbinaries; i++)
		if (t->modules[i])
			t->d->api.module_unload(t->modules[i]);
	t->modules = NULL;
}

/* ---- running ---- */

static enum err_code launch(struct gpu_task *t, struct gpu_launch *l, struct CUstream_st *stream, void **params)
{
	const unsigned *grid = l->config.grid, *block = l->config.block;

	l->config.stream = stream;
	if (t->d->kind == GPU_HIP)
		return CALL_FOR(t->d, l->what, hipModuleLaunchKernel, l->function, grid[0], grid[1], grid[2], block[0],
			block[1], block[2], l->config.smem, l->config.stream, params, NULL);
	return CALL_FOR(t->d, l->what, cuLaunchKernelEx, &l->config, l->function, params, NULL);
}

enum err_code gpu_task_step(struct gpu_task *t, int step, int copy)
{
	const struct gpu_step *s = &t->job->steps[step];
	struct gpu_launch *l = &t->launches[step];

	if (s->kind == GPU_STEP_FILL)
		return fill_memory(t, gpu_task_memory(t, s->buffer, copy), t->job->buffers[s->buffer].bytes, s->word);
	return launch(t, l, t->streams[0], l->params[copy]);
}

static enum err_code launch_all(struct gpu_task *t, int contestant, int copy)
{
	TRY(fork_streams(t));
	for (int i = 0; i < t->job->nsteps; i++) {
		const struct gpu_step *s = &t->job->steps[i];

		if (s->once || (s->contestant && s->contestant != contestant))
			continue;
		for (int k = 0; k < s->nafter; k++)
			TRY(CALL(t->d, stream_wait, t->streams[s->stream], t->events[s->after[k]], 0));
		if (s->kind == GPU_STEP_FILL)
			TRY(gpu_task_step(t, i, copy));
		else
			TRY(launch(t, &t->launches[i], t->streams[s->stream], t->launches[i].params[copy]));
		if (t->events[i])
			TRY(CALL(t->d, event_record, t->events[i], t->streams[s->stream]));
	}
	return join_streams(t);
}

/* ---- graphs ---- */

/* Can the driver make a graph of all that the job launches? Of early launches since CUDA 12.3. */
static bool captures(const struct gpu_task *t)
{
	const struct gpu_info *info = &t->d->info;

	if (t->d->kind == GPU_HIP || info->driver_major > 12 || (info->driver_major == 12 && info->driver_minor >= 3))
		return true;
	for (int i = 0; i < t->job->nsteps; i++)
		if (t->job->steps[i].early)
			return false;
	return true;
}

static enum err_code capture(struct gpu_task *t, int copy, struct CUgraph_st **graph)
{
	enum err_code code;

	TRY(CALL(t->d, capture_begin, t->streams[0], CUDA_CAPTURE_OF_THREAD));
	code = launch_all(t, 0, copy);
	if (!code)
		return CALL(t->d, capture_end, t->streams[0], graph);
	t->d->api.capture_end(t->streams[0], graph);
	return code;
}

static enum err_code make_graphs(struct gpu_task *t)
{
	t->graphs = ARENA_ARRAY(t->arena, t->copies, struct CUgraphExec_st *);
	for (int i = 0; i < t->copies; i++) {
		struct CUgraph_st *graph = NULL;
		enum err_code code = capture(t, i, &graph);

		code = code ? code : CALL(t->d, graph_instantiate, &t->graphs[i], graph, 0);
		if (graph)
			t->d->api.graph_destroy(graph);
		TRY(code);
	}
	return OK;
}

static enum err_code do_once(struct gpu_task *t)
{
	for (int i = 0; i < t->job->nsteps; i++) {
		for (int c = 0; c < t->copies && t->job->steps[i].once; c++)
			TRY(gpu_task_step(t, i, c));
		if (t->job->steps[i].once)
			TRY(CALL_FOR(t->d, t->launches[i].after, stream_synchronize, t->d->stream));
	}
	return OK;
}

enum err_code gpu_task_begin(struct gpu_task *t)
{
	TRY(do_once(t));
	return t->job->graph && captures(t) ? make_graphs(t) : OK;
}

enum err_code gpu_task_run(struct gpu_task *t, int contestant, int copy)
{
	return t->graphs ? CALL(t->d, graph_launch, t->graphs[copy], t->streams[0]) : launch_all(t, contestant, copy);
}

/* ---- what it leaves ---- */

enum err_code gpu_task_check_guards(struct gpu_task *t, const char *what)
{
	unsigned char end[GUARD_BYTES];

	for (int i = 0; i < t->job->nbuffers; i++) {
		size_t bytes = t->job->buffers[i].bytes;
		int at = 0;

		TRY(CALL(t->d, copy_out, end, gpu_task_memory(t, i, 0) + bytes, sizeof(end), t->d->stream));
		TRY(CALL_FOR(t->d, what, stream_synchronize, t->d->stream));
		while (at < GUARD_BYTES && end[at] == GUARD_PATTERN)
			at++;
		if (at < GUARD_BYTES)
			return context_fail(t->d, GPU_FAIL_OVERRUN, ERR_IO,
				"%s: %s was written to beyond its end, first at byte %d after "
				"its %zu", what, buffer_text(t, i), at, bytes);
	}
	return OK;
}

enum err_code gpu_task_return(struct gpu_task *t, int copy)
{
	for (int i = 0; i < t->job->nbuffers; i++) {
		const struct gpu_buffer *b = &t->job->buffers[i];

		if (b->to)
			TRY(CALL(t->d, copy_out, b->to, gpu_task_memory(t, i, copy), b->bytes, t->d->stream));
	}
	return CALL_FOR(t->d, "after copying the results", stream_synchronize, t->d->stream);
}
