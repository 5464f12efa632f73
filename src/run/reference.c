#include "run/reference.h"


enum { BLOCKS_AN_SM = 4 };

static const int64_t SCRATCH_MOST = (int64_t)8 << 30;

void reference_new(struct mem *mem, const struct program *p, struct reference **out)
{
	*out = ARENA_OWNER(mem, struct reference);
	(*out)->program = p;
}

void reference_free(struct reference *r)
{
	if (!r)
		return;
	host_free(r->object);
	arena_release(&r->arena);
}

enum err_code reference_emit(struct reference *r, const struct tiling *t, unsigned flags,
	const struct plain_sample *sample, struct err *e)
{
	struct extents x;

	if (t)
		TRY(extents_infer(&r->arena, r->program, t, &x, e));
	else
		TRY(plain_extents(&r->arena, r->program, &x, e));
	return plain_print(&x, flags, sample, &r->arena, &r->plain, e);
}

static size_t tensor_bytes(const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];

	return dtype_bytes(t->role == TENSOR_INPUT ? t->type : DT_F64, (size_t)tensor_elements(p, tensor));
}

/* Elements of i32 that were added up hold sums that do not wrap around yet. */
static void wrap_sums(const struct program *p, void *const *data)
{
	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];
		double *v = data[i];

		if (t->role != TENSOR_OUTPUT || t->type != DT_I32 || !tensor_is_added_to(p, i))
			continue;
		for (int64_t k = 0; k < tensor_elements(p, i); k++)
			v[k] = (double)(int32_t)(uint32_t)(int64_t)v[k];
	}
}

/* on the device ------------------------------------------------------------- */

static void device_buffers(const struct reference *r, const struct feed *in, size_t scratch, struct gpu_buffer *out)
{
	const struct program *p = r->program;

	for (int i = 0; i < p->tensors.n; i++) {
		out[i] = (struct gpu_buffer){ .name = p->tensors.v[i].name,
			.bytes = tensor_bytes(p, i), .init = GPU_INIT_WORD };
		if (p->tensors.v[i].role == TENSOR_INPUT)
			feed_buffer(in, i, &out[i]);
		else
			out[i].to = in->data[i];
	}
	/* NaN, so that reading before writing shows in the result */
	out[p->tensors.n] = (struct gpu_buffer){ .name = "values", .bytes = scratch,
		.init = GPU_INIT_WORD, .word = UINT32_MAX };
}

struct compile_job reference_job(struct reference *r, const struct gpu_info *on)
{
	/* each operation rounds, as the reference's does */
	static const char *const options[] = { [GPU_CUDA] = "--fmad=false", [GPU_HIP] = "-ffp-contract=off" };

	return (struct compile_job){ .api = on->api, .name = "reference.cu", .source = text_for_api(&r->arena, on->api,
		r->plain.text.text), .arch = on->arch, .options = &options[on->api], .noptions = 1 };
}

enum err_code reference_binary(struct reference *r, struct gpu *g, const struct gpu_info *on,
	const struct stop *stop, struct gpu_binary *out, struct err *e)
{
	struct compile_job compile = reference_job(r, on);
	struct compile_result binary;

	TRY(gpu_compile(g, &compile, stop, &r->arena, &binary, e));
	*out = (struct gpu_binary){ binary.cubin, binary.cubin_bytes };
	return OK;
}

int64_t reference_blocks(const struct reference *r, const struct gpu_info *on)
{
	int64_t blocks = min_i64(on->memory_free / 4, SCRATCH_MOST) / max_i64(1, r->plain.scratch_bytes);

	return max_i64(1, min_i64(blocks, (int64_t)on->sms * BLOCKS_AN_SM));
}

/* A launch of at most `blocks` blocks for each phase. Returns the largest grid. */
int64_t reference_steps(const struct reference *r, int64_t blocks, int binary, const int *buffers, struct arena *a,
	struct gpu_step *out)
{
	int n = r->program->tensors.n + 1;
	struct gpu_param *params = ARENA_ARRAY(a, n, struct gpu_param);
	int64_t most = 1;

	for (int i = 0; i < n; i++)
		params[i] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = buffers[i] };
	for (int i = 0; i < r->plain.nphases; i++) {
		const struct plain_phase *phase = &r->plain.phases[i];
		int64_t grid = min_i64(blocks, phase->tiles);

		most = max_i64(most, grid);
		out[i] = (struct gpu_step){ .kind = GPU_STEP_KERNEL, .binary = binary, .entry = phase->entry,
			.grid = { (unsigned)grid }, .block = { PLAIN_THREADS }, .params = params, .nparams = n };
	}
	return most;
}

enum err_code reference_on_device(struct reference *r, struct gpu *g, const struct feed *in,
	double limit, const struct stop *stop, struct err *e)
{
	int n = r->program->tensors.n + 1, fills = feed_randoms(r->program, in);
	struct arena *a = &r->arena;
	struct gpu_buffer *buffers = ARENA_ARRAY(a, n, struct gpu_buffer);
	int *own = ARENA_ARRAY(a, n, int);
	struct gpu_step *steps = ARENA_ARRAY(a, fills + r->plain.nphases, struct gpu_step);
	struct gpu_binary binary[2];
	struct gpu_job job = { .binaries = binary, .nbinaries = 1 + (fills > 0), .buffers = buffers,
		.nbuffers = n, .steps = steps, .nsteps = fills + r->plain.nphases, .mode = GPU_RUN };
	int64_t bytes = max_i64(1, r->plain.scratch_bytes), blocks;
	struct gpu_result result;
	struct gpu_info info;

	TRY(gpu_probe(g, GPU_APIS, stop, &info, e));
	job.api = info.api;
	TRY(reference_binary(r, g, &info, stop, &binary[0], e));
	if (fills)
		TRY(feed_binary(g, info.api, info.arch, stop, a, &binary[1], e));
	feed_steps(r->program, in, 1, a, steps);
	for (int i = 0; i < n; i++)
		own[i] = i;
	blocks = reference_steps(r, reference_blocks(r, &info), 0, own, a, steps + fills);
	device_buffers(r, in, (size_t)(blocks * bytes), buffers);
	TRY(gpu_run(g, &job, limit, stop, a, &result, e));
	wrap_sums(r->program, in->data);
	return OK;
}

/* on the CPU ---------------------------------------------------------------- */

/* The most operations on elements, about, that take less time in a text that is not optimised than optimising it takes. */
static const double FEW_OPERATIONS = 2e7;

/* No value has more elements than there are combinations of indices of all axes. */
static bool is_short(const struct program *p)
{
	double operations = p->nodes.n;

	for (int i = 0; i < p->axes.n; i++)
		operations *= (double)p->axes.v[i].size;
	return operations <= FEW_OPERATIONS;
}

enum err_code reference_on_host(struct reference *r, void *const *data, double limit,
	const struct stop *stop, struct err *e)
{
	const struct program *p = r->program;
	int n = p->tensors.n + 1;
	struct arena *a = &r->arena;
	struct host_buffer *buffers = ARENA_ARRAY(a, n, struct host_buffer);
	struct host_arg *args = ARENA_ARRAY(a, n, struct host_arg);
	struct host_job job = { .buffers = buffers, .nbuffers = n, .args = args, .nargs = n,
		.blocks = 1, .threads = 1, .seconds = limit };
	const char *report;

	for (int i = 0; i < n; i++)
		args[i].buffer = i;
	for (int i = 0; i < p->tensors.n; i++) {
		enum tensor_role role = p->tensors.v[i].role;

		buffers[i].bytes = tensor_bytes(p, i);
		buffers[i].from = role == TENSOR_TEMP ? arena_alloc(a, buffers[i].bytes) : data[i];
		buffers[i].to = role == TENSOR_OUTPUT ? data[i] : NULL;
	}
	buffers[p->tensors.n].bytes = (size_t)r->plain.scratch_bytes;
	TRY(host_compile(a->mem, r->plain.text.text, r->plain.text.len, !is_short(p), stop, &r->object, e));
	TRY(host_run(r->object, &job, stop, a, &report, e));
	if (report)
		return err_set(e, ERR_IO, NOWHERE, "the reference failed: %.400s", report);
	wrap_sums(p, data);
	return OK;
}
