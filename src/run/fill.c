#include "run/fill.h"

#include "run/export_kit.h"
#include "tile/random.h"

enum { THREADS = 256, UNITS_A_THREAD = 16 };

static const char kernel[] =
	"extern \"C\" __global__ void __launch_bounds__(256) fill(void *data, fill_word n,\n"
	"\tfill_word state, int bits, int exponent, int mantissa, unsigned below, unsigned step, unsigned row)\n"
	"{\n"
	"\tstruct fill_type t = { bits, exponent, mantissa, below, step, row };\n"
	"\tfill_word units = fill_units(t, n), threads = (fill_word)gridDim.x * blockDim.x;\n"
	"\n"
	"\tfor (fill_word i = (fill_word)blockIdx.x * blockDim.x + threadIdx.x; i < units; i += threads)\n"
	"\t\tfill_unit(t, data, n, state, i);\n"
	"}\n";

/* The addresses of the parts of a buffer. */
static const char addresses[] =
	"extern \"C\" __global__ void __launch_bounds__(256) addresses(fill_word *to, void *data, fill_word bytes, int parts)\n"
	"{\n"
	"\tfor (int i = threadIdx.x; i < parts; i += blockDim.x)\n"
	"\t\tto[i] = (fill_word)data + bytes * i;\n"
	"}\n";

static bool is_random(const struct program *p, const struct feed *f, int tensor)
{
	return p->tensors.v[tensor].role == TENSOR_INPUT && !f->data[tensor];
}

int feed_randoms(const struct program *p, const struct feed *f)
{
	int n = 0;

	for (int i = 0; i < p->tensors.n; i++)
		n += is_random(p, f, i);
	return n;
}

const char *text_for_api(struct arena *a, enum gpu_api api, const char *text)
{
	return api == GPU_HIP ? arena_strf(a, "%s%s", export_template_text("hip_names.h"), text) : text;
}

const char *feed_text(struct arena *a)
{
	return arena_strf(a, "%s%s%s", export_template_text("fill.h"), kernel, addresses);
}

struct compile_job feed_job(enum gpu_api api, const char *arch, struct arena *a)
{
	return (struct compile_job){ .api = api, .name = "fill.cu", .arch = arch, .source = text_for_api(a, api, feed_text(a)) };
}

enum err_code feed_binary(struct gpu *g, enum gpu_api api, const char *arch, const struct stop *stop, struct arena *a,
	struct gpu_binary *out, struct err *e)
{
	struct compile_job job = feed_job(api, arch, a);
	struct compile_result r;

	TRY(gpu_compile(g, &job, stop, a, &r, e));
	*out = (struct gpu_binary){ r.cubin, r.cubin_bytes };
	return OK;
}

static struct gpu_param bits_param(enum gpu_param_kind kind, uint64_t x)
{
	return (struct gpu_param){ .kind = kind, .bits = x };
}

static struct gpu_step fill_step(const struct program *p, int tensor, uint64_t seed, int binary, struct arena *a)
{
	const struct tensor *t = &p->tensors.v[tensor];
	struct fill_type type = random_type(t->type, t->index_below, t->index_distinct, tensor_sorted_row(p, tensor));
	struct gpu_param *v = ARENA_ARRAY(a, 9, struct gpu_param);
	uint64_t n = (uint64_t)tensor_elements(p, tensor);
	uint64_t blocks = fill_units(type, n) / (THREADS * UNITS_A_THREAD) + 1;

	v[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = tensor };
	v[1] = bits_param(GPU_PARAM_BITS64, n);
	v[2] = bits_param(GPU_PARAM_BITS64, random_state(seed, t->name));
	v[3] = bits_param(GPU_PARAM_BITS32, (uint64_t)type.bits);
	v[4] = bits_param(GPU_PARAM_BITS32, (uint64_t)type.exponent);
	v[5] = bits_param(GPU_PARAM_BITS32, (uint64_t)type.mantissa);
	v[6] = bits_param(GPU_PARAM_BITS32, type.below);
	v[7] = bits_param(GPU_PARAM_BITS32, type.step);
	v[8] = bits_param(GPU_PARAM_BITS32, type.row);
	return (struct gpu_step){ .kind = GPU_STEP_KERNEL, .once = true, .binary = binary, .entry = "fill",
		.grid = { (unsigned)(blocks < 1 << 20 ? blocks : 1 << 20) }, .block = { THREADS },
		.params = v, .nparams = 9 };
}

int feed_addresses(const struct program *p)
{
	int n = 0;

	for (int i = 0; i < p->tensors.n; i++)
		n += p->tensors.v[i].by_address;
	return n;
}

/* The step that writes the addresses of a tensor's parts to a buffer. */
static struct gpu_step addresses_step(const struct program *p, int tensor, int buffer, int binary, struct arena *a)
{
	const struct tensor *t = &p->tensors.v[tensor];
	struct gpu_param *v = ARENA_ARRAY(a, 4, struct gpu_param);
	uint64_t parts = (uint64_t)p->axes.v[t->dim[0]].size;

	v[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = buffer };
	v[1] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = tensor };
	v[2] = bits_param(GPU_PARAM_BITS64, dtype_bytes(t->type, (size_t)tensor_elements(p, tensor)) / parts);
	v[3] = bits_param(GPU_PARAM_BITS32, parts);
	return (struct gpu_step){ .kind = GPU_STEP_KERNEL, .once = true, .binary = binary, .entry = "addresses",
		.grid = { 1 }, .block = { THREADS }, .params = v, .nparams = 4 };
}

void feed_address_steps(const struct program *p, int first, int binary, struct arena *a, struct gpu_buffer *buffers,
	struct gpu_step *out)
{
	for (int i = 0, n = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];

		if (!t->by_address)
			continue;
		buffers[first + n] = (struct gpu_buffer){ .name = "addresses", .rotate = true, .init = GPU_INIT_WORD,
			.bytes = (size_t)p->axes.v[t->dim[0]].size * sizeof(uint64_t) };
		out[n] = addresses_step(p, i, first + n, binary, a);
		n++;
	}
}

int feed_address_buffer(const struct program *p, int tensor, int first)
{
	for (int i = 0; i < tensor; i++)
		first += p->tensors.v[i].by_address;
	return first;
}

void feed_steps(const struct program *p, const struct feed *f, int binary, struct arena *a, struct gpu_step *out)
{
	int n = 0;

	for (int i = 0; i < p->tensors.n; i++)
		if (is_random(p, f, i))
			out[n++] = fill_step(p, i, f->seed, binary, a);
}

void feed_buffer(const struct feed *f, int tensor, struct gpu_buffer *out)
{
	out->init = f->data[tensor] ? GPU_INIT_HOST : GPU_INIT_NONE;
	out->from = f->data[tensor];
}
