/* operators.c - torch.ops.millrace.@NAME@, made by Millrace.
 *
 * The operators of this package, for LibTorch's stable ABI: C functions of PyTorch 2.10 and later, which are found in
 * the libraries that torch has loaded. So one shared object is for all these versions, and its making needs neither
 * torch's headers nor a C++ compiler:
 *
 *	cc -O2 -fPIC -fexceptions -shared -o @NAME@.so @SOURCES@ -ldl -lpthread
 *
 * Loading it (dlopen, torch.ops.load_library) registers the operators; torch must have been loaded before.
 */
@INCLUDES@
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- what the operators are ----------------------------------------------------- */

enum {
	OPERATORS = @NOPERATORS@,
	TENSORS_MOST = @TENSORS_MOST@,		/* of an operator */
	SIZES_MOST = @SIZES_MOST@,
	RANK_MOST = 8,
	DEVICES_MOST = 64,
};

#define TYPES(T) \
	T(bfloat16, aoti_torch_dtype_) T(float16, aoti_torch_dtype_) T(float32, aoti_torch_dtype_) \
	T(float64, aoti_torch_dtype_) T(float8_e4m3fn, aoti_torch_dtype_) T(float8_e5m2, aoti_torch_dtype_) \
	T(float8_e8m0fnu, torch_dtype_) T(uint8, aoti_torch_dtype_) T(int8, aoti_torch_dtype_) \
	T(int16, aoti_torch_dtype_) T(int32, aoti_torch_dtype_) T(int64, aoti_torch_dtype_) T(bool, aoti_torch_dtype_)

enum type {
#define TYPE(name, prefix) TYPE_##name,
	TYPES(TYPE)
	NTYPES
};

enum role { INPUT, CHANGED, OUTPUT };

struct dimension {
	int64_t size;
	int of;				/* number of the size of a call; -1: it is `size` */
};

struct tensor {
	const char *name;
	enum role role;
	enum type type;
	int rank;
	struct dimension dims[RANK_MOST];
};

/* Sizes of a call are 1 to max, multiples of `multiple`. */
struct size {
	const char *name;
	int64_t max, multiple;
	bool given;			/* an argument of the operator, as no tensor that it is given has it */
};

struct operator {
	const char *name, *schema, *schema_out;
	const char *schema_forward;	/* the same as `schema`, but without gradients, which cost time; NULL: there are none */
	const struct tensor *tensors;
	const struct size *sizes;
	int ntensors, nsizes;
	int (*load)(int device);
	int64_t (*workspace)(const int *sizes);	/* bytes, behind the tensors; NULL: it needs none */
	int (*launch)(void *stream, void *const *at, const int *sizes);
	const char *(*error)(void);
};

/* Temporaries begin at multiples of 256 bytes. */
#define PADDED(bytes) (((bytes) + 255) / 256 * 256)

@TABLES@
/* ---- LibTorch ------------------------------------------------------------------- */

/* Functions that return an int return 0 if all is well. A tensor is a handle, which who has it deletes. */
typedef void boxed_kernel(uint64_t *stack, uint64_t ninputs, uint64_t noutputs);

#define TORCH(F) \
	F(uint64_t, aoti_torch_abi_version, (void)) \
	F(int, aoti_torch_library_init_fragment, (const char *ns, const char *file, uint32_t line, void **library)) \
	F(int, aoti_torch_library_init_impl, (const char *ns, const char *key, const char *file, uint32_t line, \
		void **library)) \
	F(int, aoti_torch_library_def, (void *library, const char *schema)) \
	F(int, torch_library_impl, (void *library, const char *name, boxed_kernel *kernel, uint64_t version)) \
	F(int32_t, aoti_torch_device_type_cuda, (void)) \
	F(int, aoti_torch_delete_tensor_object, (void *tensor)) \
	F(int, aoti_torch_get_data_ptr, (void *tensor, void **at)) \
	F(int, aoti_torch_get_dim, (void *tensor, int64_t *rank)) \
	F(int, aoti_torch_get_sizes, (void *tensor, int64_t **sizes)) \
	F(int, aoti_torch_get_dtype, (void *tensor, int32_t *type)) \
	F(int, aoti_torch_get_device_type, (void *tensor, int32_t *kind)) \
	F(int, aoti_torch_get_device_index, (void *tensor, int32_t *index)) \
	F(int, aoti_torch_is_contiguous, (void *tensor, bool *contiguous)) \
	F(int, aoti_torch_empty_strided, (int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t type, \
		int32_t device_type, int32_t device, void **tensor)) \
	F(int, aoti_torch_get_current_device_index, (int32_t *device)) \
	F(int, aoti_torch_create_device_guard, (int32_t device, void **guard)) \
	F(int, aoti_torch_delete_device_guard, (void *guard)) \
	/* raises an exception, unless `holds` */ \
	F(void, aoti_torch_check, (bool holds, const char *function, const char *file, uint32_t line, const char *text))

#define MEMBER(result, name, parameters) result (*name) parameters;
static struct {
	TORCH(MEMBER)
	/* of its library for the GPU */
	int (*aoti_torch_get_current_cuda_stream)(int32_t device, void **stream);
} torch;

static struct {
	const char *name, *function;
	int32_t code;			/* -1: this torch does not have it */
} types[NTYPES] = {
#define TYPE_ROW(name, prefix) { "torch." #name, #prefix #name, -1 },
	TYPES(TYPE_ROW)
};

static int32_t cuda;			/* the type of its devices */

/* ---- a call --------------------------------------------------------------------- */

struct call {
	const struct operator *op;
	uint64_t *stack;		/* arguments, then results: handles and integers */
	void *tensor[TENSORS_MOST];	/* by number; NULL: it is not there yet */
	void *at[TENSORS_MOST + 1];	/* addresses; the last one behind them of the workspace */
	int64_t size[SIZES_MOST];	/* -1: no tensor has said it */
	int32_t device;			/* -1: no tensor has said it */
	char text[512];			/* what is wrong */
};

static bool wrong(struct call *c, const char *format, ...)
{
	va_list list;
	int n = snprintf(c->text, sizeof(c->text), "%s: ", c->op->name);

	va_start(list, format);
	vsnprintf(c->text + n, sizeof(c->text) - (size_t)n, format, list);
	va_end(list);
	return false;
}

static const char *type_name(int32_t code)
{
	for (int i = 0; i < NTYPES; i++)
		if (types[i].code == code)
			return types[i].name;
	return "another dtype";
}

static void put_shape(char *out, size_t most, const int64_t *sizes, int64_t rank)
{
	size_t n = (size_t)snprintf(out, most, "(");

	for (int64_t d = 0; d < rank && n < most; d++)
		n += (size_t)snprintf(out + n, most - n, "%s%lld", d ? ", " : "", (long long)sizes[d]);
	if (n < most)
		snprintf(out + n, most - n, rank == 1 ? ",)" : ")");
}

static bool wrong_shape(struct call *c, const struct tensor *x, const int64_t *sizes, int64_t rank)
{
	char got[128], want[128];
	size_t n = (size_t)snprintf(want, sizeof(want), "(");

	for (int d = 0; d < x->rank && n < sizeof(want); d++) {
		const struct dimension *k = &x->dims[d];

		if (k->of >= 0)
			n += (size_t)snprintf(want + n, sizeof(want) - n, "%s%s", d ? ", " : "",
				c->op->sizes[k->of].name);
		else
			n += (size_t)snprintf(want + n, sizeof(want) - n, "%s%lld", d ? ", " : "", (long long)k->size);
	}
	if (n < sizeof(want))
		snprintf(want + n, sizeof(want) - n, x->rank == 1 ? ",)" : ")");
	put_shape(got, sizeof(got), sizes, rank);
	return wrong(c, "%s must have shape %s, got %s", x->name, want, got);
}

static bool check_shape(struct call *c, int i)
{
	const struct tensor *x = &c->op->tensors[i];
	int64_t rank, *sizes;

	torch.aoti_torch_get_dim(c->tensor[i], &rank);
	torch.aoti_torch_get_sizes(c->tensor[i], &sizes);
	if (rank != x->rank)
		return wrong_shape(c, x, sizes, rank);
	for (int d = 0; d < x->rank; d++) {
		const struct dimension *k = &x->dims[d];

		if (k->of < 0 && sizes[d] != k->size)
			return wrong_shape(c, x, sizes, rank);
		if (k->of < 0)
			continue;
		if (c->size[k->of] < 0)
			c->size[k->of] = sizes[d];
		if (c->size[k->of] != sizes[d])
			return wrong(c, "dimension %d of %s is %lld, and %s is %lld in front of it", d, x->name,
				(long long)sizes[d], c->op->sizes[k->of].name, (long long)c->size[k->of]);
	}
	return true;
}

/* A tensor that the caller has given. */
static bool check_tensor(struct call *c, int i)
{
	const struct tensor *x = &c->op->tensors[i];
	void *t = c->tensor[i];
	int32_t type, kind, device;
	bool contiguous;

	torch.aoti_torch_get_dtype(t, &type);
	if (type != types[x->type].code)
		return wrong(c, "%s must have dtype %s, got %s", x->name, types[x->type].name, type_name(type));
	if (!check_shape(c, i))
		return false;
	torch.aoti_torch_get_device_type(t, &kind);
	if (kind != cuda)
		return wrong(c, "%s must be on a CUDA device", x->name);
	torch.aoti_torch_get_device_index(t, &device);
	if (c->device < 0)
		c->device = device;
	if (device != c->device)
		return wrong(c, "%s is on cuda:%d, other tensors are on cuda:%d", x->name, device, c->device);
	torch.aoti_torch_is_contiguous(t, &contiguous);
	if (!contiguous)
		return wrong(c, "%s must be contiguous, as %s.contiguous() is", x->name, x->name);
	torch.aoti_torch_get_data_ptr(t, &c->at[i]);
	if (!c->at[i] || (uintptr_t)c->at[i] % 16)
		return wrong(c, "%s must begin at a multiple of 16 bytes, as a clone does", x->name);
	return true;
}

static bool check_sizes(struct call *c, int *sizes)
{
	for (int i = 0; i < c->op->nsizes; i++) {
		const struct size *s = &c->op->sizes[i];

		if (c->size[i] < 1 || c->size[i] > s->max || c->size[i] % s->multiple)
			return wrong(c, "%s is %lld; it must be from 1 to %lld, and a multiple of %lld", s->name,
				(long long)c->size[i], (long long)s->max, (long long)s->multiple);
		sizes[i] = (int)c->size[i];
	}
	return true;
}

/* Take the arguments from the stack: given tensors, sizes, outputs if they are given, too. */
static void take(struct call *c, bool into)
{
	int n = 0;

	for (int i = 0; i < c->op->ntensors; i++)
		c->tensor[i] = c->op->tensors[i].role == OUTPUT ? NULL : (void *)(uintptr_t)c->stack[n++];
	for (int i = 0; i < c->op->nsizes; i++)
		c->size[i] = c->op->sizes[i].given ? (int64_t)c->stack[n++] : -1;
	for (int i = 0; i < c->op->ntensors && into; i++)
		if (c->op->tensors[i].role == OUTPUT)
			c->tensor[i] = (void *)(uintptr_t)c->stack[n++];
}

static bool make_output(struct call *c, int i)
{
	const struct tensor *x = &c->op->tensors[i];
	int64_t sizes[RANK_MOST], strides[RANK_MOST], stride = 1;

	for (int d = x->rank - 1; d >= 0; d--) {
		sizes[d] = x->dims[d].of < 0 ? x->dims[d].size : c->size[x->dims[d].of];
		strides[d] = stride;
		stride *= sizes[d];
	}
	if (torch.aoti_torch_empty_strided(x->rank, sizes, strides, types[x->type].code, cuda, c->device, &c->tensor[i]))
		return wrong(c, "there is no memory for %s", x->name);
	torch.aoti_torch_get_data_ptr(c->tensor[i], &c->at[i]);
	return true;
}

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static uint64_t loaded[OPERATORS];	/* bits of devices */
static _Thread_local uint64_t ready[OPERATORS];	/* ... whose context this thread has, too */

static bool capturing(void *stream)
{
	int (*is_capturing)(void *stream, int *status) = NULL;
	int status = 0;
@CUDA@	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
@HIP@	void *driver = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_NOLOAD);

@HIP@	if (!driver)
@HIP@		driver = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
	if (driver)
		*(void **)&is_capturing = dlsym(driver, "cuStreamIsCapturing");
	return is_capturing && !is_capturing(stream, &status) && status;
}

/* What launches on the device need. In each thread once, as a thread may have no context yet. */
static bool load(struct call *c, void *stream)
{
	int n = (int)(c->op - operators), code = 0;
	uint64_t bit = (uint64_t)1 << c->device;
	bool early;

	if (ready[n] & bit)
		return true;
	pthread_mutex_lock(&loading);
	early = !(loaded[n] & bit) && capturing(stream);
	if (!early)
		code = c->op->load(c->device);
	if (!early && !code)
		loaded[n] |= bit;
	pthread_mutex_unlock(&loading);
	if (early)
		return wrong(c, "call it once on cuda:%d before capturing a CUDA graph", c->device);
	if (code) {
		snprintf(c->text, sizeof(c->text), "%s", c->op->error());
		return false;
	}
	ready[n] |= bit;
	return true;
}

/* torch's current device is that of the tensors. */
static bool launch(struct call *c, const int *sizes)
{
	static const int64_t one = 1;
	void *stream, *workspace = NULL;
	int64_t bytes;
	bool done = true;

	if (torch.aoti_torch_get_current_cuda_stream(c->device, &stream))
		return wrong(c, "torch has no stream on cuda:%d", c->device);
	if (!load(c, stream))
		return false;
	for (int i = 0; i < c->op->ntensors; i++)
		if (!c->tensor[i] && !make_output(c, i))
			return false;
	if (c->op->workspace && (bytes = c->op->workspace(sizes))) {
		if (torch.aoti_torch_empty_strided(1, &bytes, &one, types[TYPE_uint8].code, cuda, c->device, &workspace))
			return wrong(c, "there is no memory for what is between its launches");
		torch.aoti_torch_get_data_ptr(workspace, &c->at[c->op->ntensors]);
	}
	if (c->op->launch(stream, c->at, sizes)) {
		snprintf(c->text, sizeof(c->text), "%s", c->op->error());
		done = false;
	}
	if (workspace)			/* what takes this memory next runs behind the launch, on its stream */
		torch.aoti_torch_delete_tensor_object(workspace);
	return done;
}

static bool run(struct call *c)
{
	int sizes[SIZES_MOST];
	int32_t current;
	void *guard = NULL;
	bool done;

	for (int i = 0; i < c->op->ntensors; i++)
		if (c->tensor[i] && !check_tensor(c, i))
			return false;
	if (!check_sizes(c, sizes))
		return false;
	if (c->device < 0 || c->device >= DEVICES_MOST)
		return wrong(c, "there is no device cuda:%d", c->device);
	torch.aoti_torch_get_current_device_index(&current);
	if (current != c->device && torch.aoti_torch_create_device_guard(c->device, &guard))
		return wrong(c, "cuda:%d cannot be made the current device", c->device);
	done = launch(c, sizes);
	if (guard)
		torch.aoti_torch_delete_device_guard(guard);
	return done;
}

/* into: the outputs are given. */
static void call(const struct operator *op, uint64_t *stack, bool into)
{
	struct call c = { .op = op, .stack = stack, .device = -1 };
	int nresults = 0;
	bool done;

	take(&c, into);
	done = run(&c);
	for (int i = 0; i < op->ntensors; i++)
		if (done && !into && op->tensors[i].role == OUTPUT)
			stack[nresults++] = (uint64_t)(uintptr_t)c.tensor[i];
		else if (c.tensor[i])
			torch.aoti_torch_delete_tensor_object(c.tensor[i]);
	if (!done)
		torch.aoti_torch_check(false, op->name, "@NAME@", 0, c.text);
}

/* ---- registration --------------------------------------------------------------- */

@KERNELS@
static char error_text[512];

/* What went wrong when the operators were registered; "": nothing. */
const char *@NAME@_torch_error(void)
{
	return error_text;
}

static void *loaded_library(const char *name)
{
	return dlopen(name, RTLD_NOW | RTLD_NOLOAD);
}

static bool find_torch(void)
{
	void *cpu = loaded_library("libtorch_cpu.so"), *gpu = loaded_library("libtorch_cuda.so");

	gpu = gpu ? gpu : loaded_library("libtorch_hip.so");
	if (!cpu || !gpu) {
		snprintf(error_text, sizeof(error_text), "@NAME@: torch, with CUDA or ROCm, must be loaded first");
		return false;
	}
#define FIND(result, name, parameters) \
	if (!(*(void **)&torch.name = dlsym(cpu, #name))) { \
		snprintf(error_text, sizeof(error_text), "@NAME@: this torch has no " #name ": version 2.10 or later is needed"); \
		return false; \
	}
	TORCH(FIND)
	*(void **)&torch.aoti_torch_get_current_cuda_stream = dlsym(gpu, "aoti_torch_get_current_cuda_stream");
	if (!torch.aoti_torch_get_current_cuda_stream) {
		snprintf(error_text, sizeof(error_text), "@NAME@: this torch does not say its current stream");
		return false;
	}
	for (int i = 0; i < NTYPES; i++) {
		int32_t (*code)(void);

		*(void **)&code = dlsym(cpu, types[i].function);
		types[i].code = code ? code() : -1;
	}
	cuda = torch.aoti_torch_device_type_cuda();
	return true;
}

/* The kernel of an operator, under its name or that of its variant for given outputs. On tensors of the CPU it says
 * that they are not on a GPU. */
static int implement(void *const libraries[2], const char *name, const char *ending, boxed_kernel *kernel)
{
	static const uint64_t version = (uint64_t)2 << 56 | (uint64_t)10 << 48;	/* of the ABI that is used here */
	char full[256];
	int code = 0;

	snprintf(full, sizeof(full), "%s%s", name, ending);
	for (int i = 0; i < 2 && !code; i++)
		code = torch.torch_library_impl(libraries[i], full, kernel, version);
	return code;
}

__attribute__((constructor)) static void register_operators(void)
{
	void *library, *libraries[2];
	int code;

	if (!find_torch())
		return;
	code = torch.aoti_torch_library_init_fragment("millrace", __FILE__, __LINE__, &library);
	code = code ? code : torch.aoti_torch_library_init_impl("millrace", "CUDA", __FILE__, __LINE__, &libraries[0]);
	code = code ? code : torch.aoti_torch_library_init_impl("millrace", "CPU", __FILE__, __LINE__, &libraries[1]);
	for (int i = 0; i < OPERATORS && !code; i++) {
		const struct operator *op = &operators[i];

		code = torch.aoti_torch_library_def(library, op->schema);
		code = code ? code : torch.aoti_torch_library_def(library, op->schema_out);
		code = code ? code : implement(libraries, op->name, "", kernels[i].made);
		code = code ? code : implement(libraries, op->name, "_out", kernels[i].given);
		if (op->schema_forward && !code) {
			code = torch.aoti_torch_library_def(library, op->schema_forward);
			code = code ? code : implement(libraries, op->name, "_forward", kernels[i].made);
		}
	}
	if (code)
		snprintf(error_text, sizeof(error_text), "@NAME@: torch did not take the operators: another library may have "
			"defined them");
}
