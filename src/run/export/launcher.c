/* @NAME@.c - launches @PROGRAM@; see @NAME@.h. Made by Millrace from a plan for @DEVICE@.
 *
 * The binaries at the end were made of @SOURCES@, as by
 *
 *	nvcc -arch=@ARCH@ -std=c++17 -lineinfo -cubin @FIRSTSOURCE@
 */
#include "@NAME@.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

/* ---- what the plan says --------------------------------------------------------- */

enum {
	MAJOR = @MAJOR@, MINOR = @MINOR@,	/* compute capability */
	ARGUMENTS = @NARGUMENTS@,		/* tensors that the caller has */
	TENSORS = @NTENSORS@,		/* with the temporaries between phases */
	PHASES = @NPHASES@,		/* launches */
	PARAMS_MOST = @PARAMS_MOST@,		/* of a launch */
	RANK_MOST = 5,
};

enum kind {
	POINTER,			/* to a tensor */
	MAP,				/* a tensor map: how the copy engine finds boxes of a tensor */
	ORDER,				/* output tiles as they are taken */
	START,				/* where in it the tiles of each block begin */
};

/* A parameter of a kernel. Dimensions of a map are innermost first. */
struct param {
	enum kind kind;
	int tensor;
	int element;			/* CUtensorMapDataType */
	int swizzle;			/* CUtensorMapSwizzle */
	unsigned rank;
	uint64_t dim[RANK_MOST];	/* elements */
	uint64_t stride[RANK_MOST];	/* bytes, of dimension 1 and up */
	uint32_t box[RANK_MOST];	/* elements */
};

struct phase {
	const char *entry;
	const void *binary;
	unsigned grid, threads, shared;	/* blocks; threads of one, bytes of one */
	const struct param *params;
	int nparams;
	const int *order, *start;
	int norder, nstart;
};

/* The data are at the end. */
@TABLES@
/* Bytes of each tensor: inputs, outputs, temporaries. */
static const uint64_t tensor_bytes[TENSORS] = { @TENSORBYTES@ };

/* ---- CUDA's driver -------------------------------------------------------------- */

struct tensor_map {
	_Alignas(64) uint64_t opaque[16];
};

/* As in cuda.h: results and enumerations are ints, handles pointers, device addresses
 * 64-bit numbers. The driver exports name##suffix. */
#define DRIVER(F) \
	F(cuInit, , (unsigned flags)) \
	F(cuGetErrorName, , (int error, const char **name)) \
	F(cuGetErrorString, , (int error, const char **text)) \
	F(cuDeviceGet, , (int *device, int ordinal)) \
	F(cuDeviceGetAttribute, , (int *value, int attribute, int device)) \
	F(cuDevicePrimaryCtxRetain, , (void **context, int device)) \
	F(cuDevicePrimaryCtxRelease, _v2, (int device)) \
	F(cuCtxSetCurrent, , (void *context)) \
	F(cuCtxGetDevice, , (int *device)) \
	F(cuMemAlloc, _v2, (uint64_t *address, size_t bytes)) \
	F(cuMemFree, _v2, (uint64_t address)) \
	F(cuMemAllocAsync, , (uint64_t *address, size_t bytes, void *stream)) \
	F(cuMemFreeAsync, , (uint64_t address, void *stream)) \
	F(cuMemcpyHtoD, _v2, (uint64_t to, const void *from, size_t bytes)) \
	F(cuModuleLoadData, , (void **module, const void *image)) \
	F(cuModuleUnload, , (void *module)) \
	F(cuModuleGetFunction, , (void **function, void *module, const char *name)) \
	F(cuFuncSetAttribute, , (void *function, int attribute, int value)) \
	F(cuTensorMapEncodeTiled, , (struct tensor_map *map, int element, unsigned rank, \
		void *address, const uint64_t *dim, const uint64_t *stride, \
		const uint32_t *box, const uint32_t *step, int interleave, int swizzle, \
		int promotion, int fill)) \
	F(cuLaunchKernel, , (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
		unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, \
		void *stream, void **params, void **extra))

#define MEMBER(name, suffix, parameters) int (*name) parameters;
static struct {
	DRIVER(MEMBER)
} cu;

enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, MAX_DYNAMIC_SHARED = 8, PROMOTION = @PROMOTION@ };

static _Thread_local char error_text[256];

const char *@NAME@_error(void)
{
	return error_text;
}

static int failed(const char *function, int code)
{
	const char *name = "", *text = "";

	cu.cuGetErrorName(code, &name);
	cu.cuGetErrorString(code, &text);
	snprintf(error_text, sizeof(error_text), "@NAME@: %s: %s (%s)", function,
		name ? name : "error", text ? text : "");
	return code;
}

/* Call a function of the driver; if it fails, return its error. */
#define TRY(name, ...) do { \
	int code_ = cu.name(__VA_ARGS__); \
	if (code_) \
		return failed(#name, code_); \
} while (0)

static int open_driver(void)
{
	static const char *const libraries[] = { "libcuda.so.1",
		"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1" };
	static void *library;

	if (library)
		return 0;
	for (int i = 0; i < 3 && !library; i++)
		library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(error_text, sizeof(error_text), "@NAME@: NVIDIA's driver cannot be "
			"loaded: %s", dlerror());
		return -1;
	}
#define FIND(name, suffix, parameters) \
	if (!(*(void **)&cu.name = dlsym(library, #name #suffix))) { \
		snprintf(error_text, sizeof(error_text), "@NAME@: the driver is too old: it " \
			"has no " #name #suffix); \
		dlclose(library); \
		library = NULL; \
		return -1; \
	}
	DRIVER(FIND)
	return 0;
}

/* ---- loading -------------------------------------------------------------------- */

enum { DEVICES_MOST = 64 };

static struct loaded {
	int ready;
	void *context;
	void *module[PHASES], *function[PHASES];
	uint64_t order[PHASES], start[PHASES];
} loaded[DEVICES_MOST];

static int upload(const int *numbers, int n, uint64_t *address)
{
	TRY(cuMemAlloc, address, (size_t)n * sizeof(*numbers));
	TRY(cuMemcpyHtoD, *address, numbers, (size_t)n * sizeof(*numbers));
	return 0;
}

static int load_phase(const struct phase *p, struct loaded *l, int i)
{
	int code;

	TRY(cuModuleLoadData, &l->module[i], p->binary);
	TRY(cuModuleGetFunction, &l->function[i], l->module[i], p->entry);
	TRY(cuFuncSetAttribute, l->function[i], MAX_DYNAMIC_SHARED, (int)p->shared);
	code = upload(p->order, p->norder, &l->order[i]);
	return code ? code : upload(p->start, p->nstart, &l->start[i]);
}

static int load(int device, struct loaded *l)
{
	int handle, major, minor, code = 0;

	TRY(cuInit, 0);
	TRY(cuDeviceGet, &handle, device);
	TRY(cuDeviceGetAttribute, &major, ATTRIBUTE_MAJOR, handle);
	TRY(cuDeviceGetAttribute, &minor, ATTRIBUTE_MINOR, handle);
	if (major != MAJOR || minor != MINOR) {
		snprintf(error_text, sizeof(error_text), "@NAME@: the binary is for compute "
			"capability %d.%d, device %d has %d.%d", MAJOR, MINOR, device, major, minor);
		return -1;
	}
	TRY(cuDevicePrimaryCtxRetain, &l->context, handle);
	TRY(cuCtxSetCurrent, l->context);
	for (int i = 0; i < PHASES && !code; i++)
		code = load_phase(&phases[i], l, i);
	return code;
}

static void unload(int device, struct loaded *l)
{
	static const struct loaded nothing;

	if (l->context) {
		cu.cuCtxSetCurrent(l->context);
		for (int i = 0; i < PHASES; i++) {
			if (l->order[i])
				cu.cuMemFree(l->order[i]);
			if (l->start[i])
				cu.cuMemFree(l->start[i]);
			if (l->module[i])
				cu.cuModuleUnload(l->module[i]);
		}
		cu.cuDevicePrimaryCtxRelease(device);
	}
	*l = nothing;
}

int @NAME@_load(int device)
{
	int code = open_driver();

	if (code)
		return code;
	if (device < 0 || device >= DEVICES_MOST) {
		snprintf(error_text, sizeof(error_text), "@NAME@: there is no device %d", device);
		return -1;
	}
	if (loaded[device].ready) {
		TRY(cuCtxSetCurrent, loaded[device].context);
		return 0;
	}
	code = load(device, &loaded[device]);
	if (code)
		unload(device, &loaded[device]);
	else
		loaded[device].ready = 1;
	return code;
}

void @NAME@_unload(int device)
{
	if (device >= 0 && device < DEVICES_MOST && loaded[device].ready)
		unload(device, &loaded[device]);
}

/* ---- launching ------------------------------------------------------------------ */

static int make_map(const struct param *x, uint64_t address, struct tensor_map *map)
{
	static const uint32_t step[RANK_MOST] = { 1, 1, 1, 1, 1 };

	TRY(cuTensorMapEncodeTiled, map, x->element, x->rank, (void *)(uintptr_t)address, x->dim,
		x->stride, x->box, step, 0, x->swizzle, PROMOTION, 0);
	return 0;
}

/* at: addresses of all tensors. */
static int launch_phase(struct loaded *l, int i, struct CUstream_st *stream, uint64_t *at)
{
	const struct phase *p = &phases[i];
	struct tensor_map maps[PARAMS_MOST];
	void *params[PARAMS_MOST];

	for (int k = 0; k < p->nparams; k++) {
		const struct param *x = &p->params[k];
		int code;

		switch (x->kind) {
		case POINTER:
			params[k] = &at[x->tensor];
			break;
		case MAP:
			code = make_map(x, at[x->tensor], &maps[k]);
			if (code)
				return code;
			params[k] = &maps[k];
			break;
		case ORDER:
			params[k] = &l->order[i];
			break;
		case START:
			params[k] = &l->start[i];
			break;
		}
	}
	TRY(cuLaunchKernel, l->function[i], p->grid, 1, 1, p->threads, 1, 1, p->shared, stream,
		params, NULL);
	return 0;
}

static int launch_all(struct loaded *l, struct CUstream_st *stream, uint64_t *at)
{
	int code = 0;

	for (int t = ARGUMENTS; t < TENSORS; t++)
		TRY(cuMemAllocAsync, &at[t], tensor_bytes[t], stream);
	for (int i = 0; i < PHASES && !code; i++)
		code = launch_phase(l, i, stream, at);
	return code;
}

int @NAME@_launch(struct CUstream_st *stream,
@C_PARAMETERS@
{
	const void *const arguments[ARGUMENTS] = { @C_TUPLE@ };
	uint64_t at[TENSORS] = { 0 };
	int device = -1, code;

	if (!cu.cuCtxGetDevice || cu.cuCtxGetDevice(&device) || device < 0 ||
	    device >= DEVICES_MOST || !loaded[device].ready) {
		snprintf(error_text, sizeof(error_text), "@NAME@: not loaded on the device that is "
			"current: call @NAME@_load first");
		return -1;
	}
	for (int t = 0; t < ARGUMENTS; t++) {
		at[t] = (uint64_t)(uintptr_t)arguments[t];
		if (!at[t] || at[t] % 16) {
			snprintf(error_text, sizeof(error_text), "@NAME@: the address of argument "
				"%d is no multiple of 16, or NULL", t + 1);
			return -1;
		}
	}
	code = launch_all(&loaded[device], stream, at);
	for (int t = ARGUMENTS; t < TENSORS; t++)
		if (at[t])
			cu.cuMemFreeAsync(at[t], stream);
	return code;
}

/* ---- tiles and binaries --------------------------------------------------------- */

@DATA@