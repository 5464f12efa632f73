/* @NAME@.c - launches @PROGRAM@; see @NAME@.h. Made by Millrace from a plan for @DEVICE@.
 *
 * The binaries at the end were made of @SOURCES@, as by
 *
@CUDA@ *	nvcc -arch=@ARCH@ -std=c++17 -lineinfo -cubin @FIRSTSOURCE@
@HIP@ *	clang -x hip --cuda-device-only --no-gpu-bundle-output --offload-arch=@ARCH@ -O3 \
@HIP@ *		-nogpuinc -nogpulib @FIRSTSOURCE@
 */
#include "@NAME@.h"

#include <dlfcn.h>
@ANY@#include <stdatomic.h>
@COUNTED@#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
@ANY@#include <stdlib.h>
@COUNTED@#include <stdlib.h>
@ANY@@CUDA@#include <string.h>
@HIP@#include <string.h>

/* ---- what the plan says --------------------------------------------------------- */

enum {
@CUDA@	MAJOR = @MAJOR@, MINOR = @MINOR@,	/* compute capability */
	ARGUMENTS = @NARGUMENTS@,		/* tensors that the caller has */
	TENSORS = @NTENSORS@,		/* with the temporaries between phases */
	PHASES = @NPHASES@,		/* launches */
	PARAMS_MOST = @PARAMS_MOST@,		/* of a launch */
@ANY@	SIZES = @NSIZES@,			/* of axes, which a launch gives */
@CUDA@	RANK_MOST = 5,
};

enum kind {
	POINTER,			/* to a tensor */
@CUDA@	MAP,				/* a tensor map: how the copy engine finds boxes of a tensor */
	ORDER,				/* output tiles as they are taken */
@UNCOUNTED@	START,				/* where in it the tiles of each block begin */
@COUNTED@	START,				/* the counter by which blocks take them */
@ANY@	SIZE,				/* the size of an axis */
};

@CUDA@/* A parameter of a kernel. Dimensions of a map are innermost first. */
@HIP@/* A parameter of a kernel. */
struct param {
	enum kind kind;
@FIXED@	int tensor;
@ANY@	int tensor;			/* SIZE: its number */
@CUDA@	int element;			/* CUtensorMapDataType */
@CUDA@	int swizzle;			/* CUtensorMapSwizzle */
@CUDA@	unsigned rank;
@CUDA@	uint64_t dim[RANK_MOST];	/* elements */
@CUDA@	uint64_t stride[RANK_MOST];	/* bytes, of dimension 1 and up */
@CUDA@	uint32_t box[RANK_MOST];	/* elements */
@ANY@@CUDA@	/* bits of sizes by which dim and stride are to be multiplied */
@ANY@@CUDA@	uint64_t dim_by[RANK_MOST], stride_by[RANK_MOST];
};

@TILES@struct phase {
	const char *entry;
	const void *binary;
@FIXED@	unsigned grid, threads, shared;	/* blocks; threads of one, bytes of one */
@ANY@	unsigned threads, shared;	/* of a block; bytes of one */
	const struct param *params;
	int nparams;
@TABLED@	const int *order, *start;
@TABLED@	int norder, nstart;
@COUNTED@	const int *order;
@COUNTED@	int norder;
@ANY@	const struct grid *grid;
};

/* The data are at the end. */
@TABLES@
/* Bytes of each tensor: inputs, outputs, temporaries. */
static const uint64_t tensor_bytes[TENSORS] = { @TENSORBYTES@ };
@ANY@/* ... to be multiplied by these sizes, of which bits are here. */
@ANY@static const uint64_t tensor_by[TENSORS] = { @TENSORBY@ };
@ANY@
@ANY@/* Sizes are 1 to max, multiples of `multiple`. */
@ANY@static const struct {
@ANY@	const char *name;
@ANY@	int max, multiple;
@ANY@} ranges[SIZES] = { @RANGES@ };
@ANY@
@ANY@static uint64_t times_sizes(uint64_t x, uint64_t by, const int *sizes)
@ANY@{
@ANY@	for (int i = 0; i < SIZES; i++)
@ANY@		x *= by >> i & 1 ? (uint64_t)sizes[i] : 1;
@ANY@	return x;
@ANY@}

@CUDA@/* ---- CUDA's driver -------------------------------------------------------------- */
@CUDA@
@CUDA@struct tensor_map {
@CUDA@	_Alignas(64) uint64_t opaque[16];
@CUDA@};
@CUDA@
@EARLY@struct launch_attribute {
@EARLY@	int id;				/* enum CUlaunchAttributeID */
@EARLY@	union {
@EARLY@		int early;
@EARLY@		_Alignas(8) char all[64];
@EARLY@	} value;
@EARLY@};
@EARLY@
@EARLY@struct launch_config {
@EARLY@	unsigned grid[3], block[3], shared;
@EARLY@	void *stream;
@EARLY@	struct launch_attribute *attributes;
@EARLY@	unsigned nattributes;
@EARLY@};
@EARLY@
@CUDA@/* As in cuda.h: results and enumerations are ints, handles pointers, device addresses
@CUDA@ * 64-bit numbers. The driver exports name##suffix. */
@HIP@/* ---- AMD's runtime -------------------------------------------------------------- */
@HIP@
@HIP@/* As in hip_runtime_api.h of ROCm 6 and later: results are ints, handles pointers, device
@HIP@ * addresses 64-bit numbers. The runtime exports name##suffix. */
#define DRIVER(F) \
@HIP@	F(hipInit, , (unsigned flags)) \
@HIP@	F(hipDrvGetErrorName, , (int error, const char **name)) \
@HIP@	F(hipDrvGetErrorString, , (int error, const char **text)) \
@HIP@	F(hipGetDeviceProperties, R0600, (void *properties, int device)) \
@HIP@	F(hipSetDevice, , (int device)) \
@HIP@	F(hipGetDevice, , (int *device)) \
@HIP@	F(hipMalloc, , (uint64_t *address, size_t bytes)) \
@HIP@	F(hipFree, , (uint64_t address)) \
@HIP@	F(hipMallocAsync, , (uint64_t *address, size_t bytes, void *stream)) \
@HIP@	F(hipFreeAsync, , (uint64_t address, void *stream)) \
@HIP@	F(hipMemcpyHtoD, , (uint64_t to, const void *from, size_t bytes)) \
@ANY@@HIP@	F(hipStreamIsCapturing, , (void *stream, int *status)) \
@HIP@	F(hipModuleLoadData, , (void **module, const void *image)) \
@HIP@	F(hipModuleUnload, , (void *module)) \
@HIP@	F(hipModuleGetFunction, , (void **function, void *module, const char *name)) \
@HIP@	F(hipModuleLaunchKernel, , (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
@HIP@		unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, \
@HIP@		void *stream, void **params, void **extra))
@CUDA@	F(cuInit, , (unsigned flags)) \
@CUDA@	F(cuGetErrorName, , (int error, const char **name)) \
@CUDA@	F(cuGetErrorString, , (int error, const char **text)) \
@CUDA@	F(cuDeviceGet, , (int *device, int ordinal)) \
@CUDA@	F(cuDeviceGetAttribute, , (int *value, int attribute, int device)) \
@CUDA@	F(cuDevicePrimaryCtxRetain, , (void **context, int device)) \
@CUDA@	F(cuDevicePrimaryCtxRelease, _v2, (int device)) \
@CUDA@	F(cuCtxSetCurrent, , (void *context)) \
@CUDA@	F(cuCtxGetDevice, , (int *device)) \
@CUDA@	F(cuMemAlloc, _v2, (uint64_t *address, size_t bytes)) \
@CUDA@	F(cuMemFree, _v2, (uint64_t address)) \
@CUDA@	F(cuMemAllocAsync, , (uint64_t *address, size_t bytes, void *stream)) \
@CUDA@	F(cuMemFreeAsync, , (uint64_t address, void *stream)) \
@CUDA@	F(cuMemcpyHtoD, _v2, (uint64_t to, const void *from, size_t bytes)) \
@ANY@@CUDA@	F(cuStreamIsCapturing, , (void *stream, int *status)) \
@COUNTED@	F(cuMemsetD32Async, , (uint64_t to, unsigned value, size_t n, void *stream)) \
@COUNTED@	F(cuStreamIsCapturing, , (void *stream, int *status)) \
@COUNTED@	F(cuStreamGetId, , (void *stream, unsigned long long *id)) \
@CUDA@	F(cuModuleLoadData, , (void **module, const void *image)) \
@CUDA@	F(cuModuleUnload, , (void *module)) \
@CUDA@	F(cuModuleGetFunction, , (void **function, void *module, const char *name)) \
@CUDA@	F(cuFuncSetAttribute, , (void *function, int attribute, int value)) \
@CUDA@	F(cuTensorMapEncodeTiled, , (struct tensor_map *map, int element, unsigned rank, \
@CUDA@		void *address, const uint64_t *dim, const uint64_t *stride, \
@CUDA@		const uint32_t *box, const uint32_t *step, int interleave, int swizzle, \
@CUDA@		int promotion, int fill)) \
@EARLY@	F(cuLaunchKernelEx, , (const struct launch_config *config, void *function, void **params, \
@EARLY@		void **extra))
@LATE@@CUDA@	F(cuLaunchKernel, , (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
@LATE@@CUDA@		unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, \
@LATE@@CUDA@		void *stream, void **params, void **extra))

#define MEMBER(name, suffix, parameters) int (*name) parameters;
static struct {
	DRIVER(MEMBER)
} cu;

@CUDA@enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, MAX_DYNAMIC_SHARED = 8, PROMOTION = @PROMOTION@ };
@EARLY@enum { LAUNCH_EARLY = 6 };
@HIP@/* hipDeviceProp_t, of which only gcnArchName is read, "gfx942:sramecc+:xnack-". */
@HIP@enum { PROPERTIES_BYTES = @PROPERTIES@, ARCH_AT = @ARCHAT@ };

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
@CUDA@	static const char *const libraries[] = { "libcuda.so.1",
@CUDA@		"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1" };
@HIP@	static const char *const libraries[] = { "libamdhip64.so.7", "libamdhip64.so.6",
@HIP@		"/opt/rocm/lib/libamdhip64.so" };
	static void *library;

	if (library)
		return 0;
	for (int i = 0; i < 3 && !library; i++)
		library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
@CUDA@		snprintf(error_text, sizeof(error_text), "@NAME@: NVIDIA's driver cannot be "
@HIP@		snprintf(error_text, sizeof(error_text), "@NAME@: AMD's runtime cannot be "
			"loaded: %s", dlerror());
		return -1;
	}
#define FIND(name, suffix, parameters) \
	if (!(*(void **)&cu.name = dlsym(library, #name #suffix))) { \
@CUDA@		snprintf(error_text, sizeof(error_text), "@NAME@: the driver is too old: it " \
@HIP@		snprintf(error_text, sizeof(error_text), "@NAME@: the runtime is too old: it " \
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

@ANY@/* The tiles of all phases at these sizes, and others with the same numbers of tiles, on a device. */
@ANY@struct tiles {
@ANY@	int sizes[SIZES];
@ANY@	uint64_t order[PHASES], start[PHASES];
@ANY@	unsigned grid[PHASES];		/* blocks */
@ANY@	struct tiles *next;
@ANY@};
@ANY@
@COUNTED@/* The blocks of a launch take the tiles of each phase by a number in memory, which is 0 before the launch and behind
@COUNTED@ * it. These numbers are a counter. The launches of a stream run one after the other, so they share a counter. A
@COUNTED@ * captured launch has one of its own, as a graph may run next to others of the same stream. */
@COUNTED@enum { COUNTERS = 4096, COUNTER_BYTES = (PHASES * (int)sizeof(int) + 31) / 32 * 32 };
@COUNTED@
@COUNTED@struct counter {
@COUNTED@	unsigned long long stream;	/* its number, which no later stream has */
@COUNTED@	uint64_t at;
@COUNTED@	struct counter *next;
@COUNTED@};
@COUNTED@
static struct loaded {
	int ready;
@CUDA@	void *context;
	void *module[PHASES], *function[PHASES];
@TABLED@	uint64_t order[PHASES], start[PHASES];
@COUNTED@	uint64_t order[PHASES], counters;
@COUNTED@	atomic_uint used;		/* counters */
@COUNTED@	_Atomic(struct counter *) of_streams;
@ANY@	_Atomic(struct tiles *) tiles;	/* of all sizes so far; none is changed once it is in the list */
} loaded[DEVICES_MOST];

static int upload(const int *numbers, int n, uint64_t *address)
{
	TRY(cuMemAlloc, address, (size_t)n * sizeof(*numbers));
	TRY(cuMemcpyHtoD, *address, numbers, (size_t)n * sizeof(*numbers));
	return 0;
}

static int load_phase(const struct phase *p, struct loaded *l, int i)
{
@TABLED@	int code;
@TABLED@
	TRY(cuModuleLoadData, &l->module[i], p->binary);
	TRY(cuModuleGetFunction, &l->function[i], l->module[i], p->entry);
@CUDA@	TRY(cuFuncSetAttribute, l->function[i], MAX_DYNAMIC_SHARED, (int)p->shared);
@TABLED@	code = upload(p->order, p->norder, &l->order[i]);
@TABLED@	return code ? code : upload(p->start, p->nstart, &l->start[i]);
@COUNTED@	return upload(p->order, p->norder, &l->order[i]);
@ANY@	return 0;
}
@ANY@
@ANY@static int upload_tiles(const struct grid *g, int *memory, struct tiles *t, int i)
@ANY@{
@ANY@	int *order = memory, *start = order + g->ngroups * g->cluster;
@ANY@	int code;
@ANY@
@ANY@	t->grid[i] = (unsigned)assign_tiles(g, t->sizes, order, start, start + g->blocks + 1);
@ANY@	code = upload(order, start[t->grid[i]], &t->order[i]);
@ANY@	return code ? code : upload(start, (int)t->grid[i] + 1, &t->start[i]);
@ANY@}
@ANY@
@ANY@static void free_tiles(struct tiles *t)
@ANY@{
@ANY@	for (int i = 0; i < PHASES; i++) {
@ANY@		if (t->order[i])
@ANY@			cu.cuMemFree(t->order[i]);
@ANY@		if (t->start[i])
@ANY@			cu.cuMemFree(t->start[i]);
@ANY@	}
@ANY@	free(t);
@ANY@}
@ANY@
@ANY@static int out_of_memory(void)
@ANY@{
@ANY@	snprintf(error_text, sizeof(error_text), "@NAME@: out of memory");
@ANY@	return -1;
@ANY@}
@ANY@
@ANY@/* Threads that make the same tiles at once keep what each has made; none waits for another. */
@ANY@static int add_tiles(struct loaded *l, const int *sizes, const struct tiles **out)
@ANY@{
@ANY@	struct tiles *t = calloc(1, sizeof(*t));
@ANY@	int code = 0;
@ANY@
@ANY@	if (!t)
@ANY@		return out_of_memory();
@ANY@	memcpy(t->sizes, sizes, sizeof(t->sizes));
@ANY@	for (int i = 0; i < PHASES && !code; i++) {
@ANY@		const struct grid *g = phases[i].grid;
@ANY@		int *memory = malloc((size_t)(g->ngroups * (g->cluster + 1) + g->blocks + 1) * sizeof(int));
@ANY@
@ANY@		code = memory ? upload_tiles(g, memory, t, i) : out_of_memory();
@ANY@		free(memory);
@ANY@	}
@ANY@	if (code) {
@ANY@		free_tiles(t);
@ANY@		return code;
@ANY@	}
@ANY@	t->next = atomic_load(&l->tiles);
@ANY@	while (!atomic_compare_exchange_weak(&l->tiles, &t->next, t))
@ANY@		;
@ANY@	*out = t;
@ANY@	return 0;
@ANY@}
@ANY@
@ANY@static int same_tiles(const int *x, const int *y)
@ANY@{
@ANY@	for (int i = 0; i < PHASES; i++) {
@ANY@		const struct grid *g = phases[i].grid;
@ANY@
@ANY@		for (int d = 0; d < g->ndims; d++)
@ANY@			if (tiles_of(&g->dims[d], x) != tiles_of(&g->dims[d], y))
@ANY@				return 0;
@ANY@	}
@ANY@	return 1;
@ANY@}
@ANY@
@ANY@/* The tiles at these sizes; NULL: they were not made yet. */
@ANY@static const struct tiles *find_tiles(struct loaded *l, const int *sizes)
@ANY@{
@ANY@	const struct tiles *t = atomic_load(&l->tiles);
@ANY@
@ANY@	while (t && !same_tiles(t->sizes, sizes))
@ANY@		t = t->next;
@ANY@	return t;
@ANY@}
@ANY@
@ANY@/* The tiles of a launch. What makes them cannot be captured. */
@ANY@static int launch_tiles(struct loaded *l, const int *sizes, struct CUstream_st *stream,
@ANY@	const struct tiles **out)
@ANY@{
@ANY@	int capturing = 0;
@ANY@
@ANY@	*out = find_tiles(l, sizes);
@ANY@	if (*out)
@ANY@		return 0;
@ANY@	TRY(cuStreamIsCapturing, stream, &capturing);
@ANY@	if (capturing) {
@ANY@		snprintf(error_text, sizeof(error_text), "@NAME@: call @NAME@_prepare with these sizes "
@ANY@			"before capturing a CUDA graph");
@ANY@		return -1;
@ANY@	}
@ANY@	return add_tiles(l, sizes, out);
@ANY@}
@ANY@
@ANY@static int check_sizes(const int *sizes)
@ANY@{
@ANY@	for (int i = 0; i < SIZES; i++) {
@ANY@		if (sizes[i] >= 1 && sizes[i] <= ranges[i].max && sizes[i] % ranges[i].multiple == 0)
@ANY@			continue;
@ANY@		snprintf(error_text, sizeof(error_text), "@NAME@: %s is %d; it is to be from 1 to %d, and a "
@ANY@			"multiple of %d", ranges[i].name, sizes[i], ranges[i].max, ranges[i].multiple);
@ANY@		return -1;
@ANY@	}
@ANY@	return 0;
@ANY@}

static int load(int device, struct loaded *l)
{
@COUNTED@	static const int zeros[COUNTERS * COUNTER_BYTES / sizeof(int)];
@CUDA@	int handle, major, minor, code = 0;
@CUDA@
@CUDA@	TRY(cuInit, 0);
@CUDA@	TRY(cuDeviceGet, &handle, device);
@CUDA@	TRY(cuDeviceGetAttribute, &major, ATTRIBUTE_MAJOR, handle);
@CUDA@	TRY(cuDeviceGetAttribute, &minor, ATTRIBUTE_MINOR, handle);
@CUDA@	if (major != MAJOR || minor != MINOR) {
@CUDA@		snprintf(error_text, sizeof(error_text), "@NAME@: the binary is for compute "
@CUDA@			"capability %d.%d, device %d has %d.%d", MAJOR, MINOR, device, major, minor);
@CUDA@		return -1;
@CUDA@	}
@CUDA@	TRY(cuDevicePrimaryCtxRetain, &l->context, handle);
@CUDA@	TRY(cuCtxSetCurrent, l->context);
@HIP@	char properties[PROPERTIES_BYTES];
@HIP@	const char *arch = properties + ARCH_AT;
@HIP@	int code = 0;
@HIP@
@HIP@	TRY(hipInit, 0);
@HIP@	TRY(hipGetDeviceProperties, properties, device);
@HIP@	if (strcspn(arch, ":") != strlen("@ARCH@") || strncmp(arch, "@ARCH@", strlen("@ARCH@"))) {
@HIP@		snprintf(error_text, sizeof(error_text), "@NAME@: the binary is for @ARCH@, device %d "
@HIP@			"is a %.32s", device, arch);
@HIP@		return -1;
@HIP@	}
@HIP@	TRY(hipSetDevice, device);
	for (int i = 0; i < PHASES && !code; i++)
		code = load_phase(&phases[i], l, i);
@COUNTED@	code = code ? code : upload(zeros, COUNTERS * COUNTER_BYTES / (int)sizeof(*zeros), &l->counters);
	return code;
}

static void unload(int device, struct loaded *l)
{
	static const struct loaded nothing;

@CUDA@	if (l->context) {
@CUDA@		cu.cuCtxSetCurrent(l->context);
@HIP@	if (!hip.hipSetDevice(device)) {
		for (int i = 0; i < PHASES; i++) {
@FIXED@			if (l->order[i])
@FIXED@				cu.cuMemFree(l->order[i]);
@TABLED@			if (l->start[i])
@TABLED@				cu.cuMemFree(l->start[i]);
			if (l->module[i])
				cu.cuModuleUnload(l->module[i]);
		}
@ANY@		for (struct tiles *t = atomic_load(&l->tiles), *next; t; t = next) {
@ANY@			next = t->next;
@ANY@			free_tiles(t);
@ANY@		}
@COUNTED@		if (l->counters)
@COUNTED@			cu.cuMemFree(l->counters);
@COUNTED@		for (struct counter *c = atomic_load(&l->of_streams), *next; c; c = next) {
@COUNTED@			next = c->next;
@COUNTED@			free(c);
@COUNTED@		}
@CUDA@		cu.cuDevicePrimaryCtxRelease(device);
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
@CUDA@		TRY(cuCtxSetCurrent, loaded[device].context);
@HIP@		TRY(hipSetDevice, device);
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

@FIXED@@CUDA@static int make_map(const struct param *x, uint64_t address, struct tensor_map *map)
@ANY@@CUDA@static int make_map(const struct param *x, uint64_t address, const int *sizes,
@ANY@@CUDA@	struct tensor_map *map)
@CUDA@{
@CUDA@	static const uint32_t step[RANK_MOST] = { 1, 1, 1, 1, 1 };
@ANY@@CUDA@	uint64_t dim[RANK_MOST] = { 0 }, stride[RANK_MOST] = { 0 };
@CUDA@
@FIXED@@CUDA@	TRY(cuTensorMapEncodeTiled, map, x->element, x->rank, (void *)(uintptr_t)address, x->dim,
@FIXED@@CUDA@		x->stride, x->box, step, 0, x->swizzle, PROMOTION, 0);
@ANY@@CUDA@	for (unsigned i = 0; i < x->rank; i++) {
@ANY@@CUDA@		dim[i] = times_sizes(x->dim[i], x->dim_by[i], sizes);
@ANY@@CUDA@		stride[i] = times_sizes(x->stride[i], x->stride_by[i], sizes);
@ANY@@CUDA@	}
@ANY@@CUDA@	TRY(cuTensorMapEncodeTiled, map, x->element, x->rank, (void *)(uintptr_t)address, dim,
@ANY@@CUDA@		stride, x->box, step, 0, x->swizzle, PROMOTION, 0);
@CUDA@	return 0;
@CUDA@}
@CUDA@
@COUNTED@/* The next counter that nobody has; 0: there is none. */
@COUNTED@static uint64_t new_counter(struct loaded *l)
@COUNTED@{
@COUNTED@	unsigned n = atomic_load(&l->used);
@COUNTED@
@COUNTED@	while (n < COUNTERS && !atomic_compare_exchange_weak(&l->used, &n, n + 1))
@COUNTED@		;
@COUNTED@	return n < COUNTERS ? l->counters + (uint64_t)n * COUNTER_BYTES : 0;
@COUNTED@}
@COUNTED@
@COUNTED@/* The counter of a launch; 0: it has to get one that is its alone. */
@COUNTED@static int find_counter(struct loaded *l, struct CUstream_st *stream, uint64_t *at)
@COUNTED@{
@COUNTED@	struct counter *c;
@COUNTED@	unsigned long long id = 0;
@COUNTED@	int capturing = 0;
@COUNTED@
@COUNTED@	TRY(cuStreamIsCapturing, stream, &capturing);
@COUNTED@	if (capturing) {
@COUNTED@		*at = new_counter(l);
@COUNTED@		return 0;
@COUNTED@	}
@COUNTED@	TRY(cuStreamGetId, stream, &id);
@COUNTED@	for (c = atomic_load(&l->of_streams); c && c->stream != id; c = c->next)
@COUNTED@		;
@COUNTED@	if (!c && (*at = new_counter(l)) && (c = malloc(sizeof(*c)))) {
@COUNTED@		*c = (struct counter){ id, *at, atomic_load(&l->of_streams) };
@COUNTED@		while (!atomic_compare_exchange_weak(&l->of_streams, &c->next, c))
@COUNTED@			;
@COUNTED@	}
@COUNTED@	*at = c ? c->at : 0;
@COUNTED@	return 0;
@COUNTED@}
@COUNTED@
@LATE@/* at: addresses of all tensors. */
@EARLY@/* at: addresses of all tensors. early: may it begin while what is in front of it runs? It waits in the kernel until that has
@EARLY@ * ended: that is "programmatic stream serialization". */
@TABLED@static int launch_phase(struct loaded *l, int i, struct CUstream_st *stream, uint64_t *at@C_EARLY@)
@COUNTED@static int launch_phase(struct loaded *l, uint64_t counter, int i, struct CUstream_st *stream,
@COUNTED@	uint64_t *at@C_EARLY@)
@ANY@static int launch_phase(struct loaded *l, const struct tiles *t, const int *given, int i,
@ANY@	struct CUstream_st *stream, uint64_t *at@C_EARLY@)
{
	const struct phase *p = &phases[i];
@COUNTED@	uint64_t number = counter + (uint64_t)i * sizeof(int);
@ANY@	uint64_t order = t->order[i], start = t->start[i];
@ANY@	int sizes[SIZES];
@CUDA@	struct tensor_map maps[PARAMS_MOST];
	void *params[PARAMS_MOST];

@ANY@	memcpy(sizes, given, sizeof(sizes));
	for (int k = 0; k < p->nparams; k++) {
		const struct param *x = &p->params[k];
@CUDA@		int code;

		switch (x->kind) {
		case POINTER:
			params[k] = &at[x->tensor];
			break;
@CUDA@		case MAP:
@FIXED@@CUDA@			code = make_map(x, at[x->tensor], &maps[k]);
@ANY@@CUDA@			code = make_map(x, at[x->tensor], sizes, &maps[k]);
@CUDA@			if (code)
@CUDA@				return code;
@CUDA@			params[k] = &maps[k];
@CUDA@			break;
		case ORDER:
@FIXED@			params[k] = &l->order[i];
@ANY@			params[k] = &order;
			break;
		case START:
@TABLED@			params[k] = &l->start[i];
@COUNTED@			params[k] = &number;
@ANY@			params[k] = &start;
			break;
@ANY@		case SIZE:
@ANY@			params[k] = &sizes[x->tensor];
@ANY@			break;
		}
	}
@EARLY@	struct launch_attribute attribute = { .id = LAUNCH_EARLY, .value.early = 1 };
@EARLY@	struct launch_config config = { .grid = { @BLOCKS@, 1, 1 }, .block = { p->threads, 1, 1 },
@EARLY@		.shared = p->shared, .stream = stream, .attributes = &attribute, .nattributes = (unsigned)early };
@EARLY@
@EARLY@	TRY(cuLaunchKernelEx, &config, l->function[i], params, NULL);
@LATE@	TRY(cuLaunchKernel, l->function[i], @BLOCKS@, 1, 1, p->threads, 1, 1, p->shared, stream,
@LATE@		params, NULL);
	return 0;
}

@TABLED@static int launch_all(struct loaded *l, struct CUstream_st *stream, uint64_t *at@C_EARLY@)
@COUNTED@static int launch_all(struct loaded *l, uint64_t counter, struct CUstream_st *stream, uint64_t *at@C_EARLY@)
@ANY@static int launch_all(struct loaded *l, const struct tiles *tiles, const int *sizes,
@ANY@	struct CUstream_st *stream, uint64_t *at@C_EARLY@)
{
	int code = 0;

	for (int t = ARGUMENTS; t < TENSORS; t++)
@FIXED@		if (!at[t])
@FIXED@			TRY(cuMemAllocAsync, &at[t], tensor_bytes[t], stream);
@ANY@		if (!at[t])
@ANY@			TRY(cuMemAllocAsync, &at[t], times_sizes(tensor_bytes[t], tensor_by[t], sizes),
@ANY@				stream);
	for (int i = 0; i < PHASES && !code; i++)
@TABLED@		code = launch_phase(l, i, stream, at@C_PHASE_EARLY@);
@COUNTED@		code = launch_phase(l, counter, i, stream, at@C_PHASE_EARLY@);
@ANY@		code = launch_phase(l, tiles, sizes, i, stream, at@C_PHASE_EARLY@);
	return code;
}

@ANY@int @NAME@_prepare(@C_SIZES@)
@ANY@{
@ANY@	const int sizes[SIZES] = { @SIZETUPLE@ };
@ANY@	const struct tiles *tiles;
@ANY@	int device = -1;
@ANY@
@ANY@	if (!cu.cuCtxGetDevice || cu.cuCtxGetDevice(&device) || device < 0 ||
@ANY@	    device >= DEVICES_MOST || !loaded[device].ready) {
@ANY@		snprintf(error_text, sizeof(error_text), "@NAME@: not loaded on the device that is "
@ANY@			"current: call @NAME@_load first");
@ANY@		return -1;
@ANY@	}
@ANY@	if (check_sizes(sizes))
@ANY@		return -1;
@ANY@	return find_tiles(&loaded[device], sizes) ? 0 : add_tiles(&loaded[device], sizes, &tiles);
@ANY@}
@ANY@
@WRAPPED@static int launch(@C_HOW@struct CUstream_st *stream,
@PLAIN@int @NAME@_launch(struct CUstream_st *stream,
@C_PARAMETERS@
{
	const void *const arguments[ARGUMENTS] = { @C_TUPLE@ };
	uint64_t at[TENSORS] = { 0 };
@COUNTED@	uint64_t counter = 0, alone = 0;
	int device = -1, code;
@ANY@	const int sizes[SIZES] = { @SIZETUPLE@ };
@ANY@	const struct tiles *tiles;

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
@BETWEEN@	for (int t = ARGUMENTS; t < TENSORS && given; t++)
@BETWEEN@		at[t] = (uint64_t)(uintptr_t)given[t - ARGUMENTS];
@TABLED@	code = launch_all(&loaded[device], stream, at@C_FIRST_EARLY@);
@COUNTED@	code = find_counter(&loaded[device], stream, &counter);
@COUNTED@	if (!code && !counter) {
@COUNTED@		TRY(cuMemAllocAsync, &alone, PHASES * sizeof(int), stream);
@COUNTED@		counter = alone;
@COUNTED@		code = cu.cuMemsetD32Async(alone, 0, PHASES, stream);
@COUNTED@		code = code ? failed("cuMemsetD32Async", code) : 0;
@COUNTED@	}
@COUNTED@	code = code ? code : launch_all(&loaded[device], counter, stream, at@C_FIRST_EARLY@);
@COUNTED@	if (alone)
@COUNTED@		cu.cuMemFreeAsync(alone, stream);
@ANY@	code = check_sizes(sizes) ? -1 : launch_tiles(&loaded[device], sizes, stream, &tiles);
@ANY@	code = code ? code : launch_all(&loaded[device], tiles, sizes, stream, at@C_FIRST_EARLY@);
@BETWEEN@	for (int t = ARGUMENTS; t < TENSORS && !given; t++)
@BETWEEN@		if (at[t])
@BETWEEN@			cu.cuMemFreeAsync(at[t], stream);
	return code;
}
@WRAPPED@
@WRAPPED@int @NAME@_launch(struct CUstream_st *stream,
@WRAPPED@@C_PARAMETERS@
@WRAPPED@{
@WRAPPED@@FIXED@	return launch(@C_HOW_EARLY@stream, @C_TUPLE@);
@WRAPPED@@ANY@	return launch(@C_HOW_EARLY@stream, @C_TUPLE@, @SIZENAMES@);
@WRAPPED@}
@EARLY@
@EARLY@int @NAME@_launch_late(struct CUstream_st *stream,
@EARLY@@C_PARAMETERS@
@EARLY@{
@EARLY@@FIXED@	return launch(@C_HOW_LATE@stream, @C_TUPLE@);
@EARLY@@ANY@	return launch(@C_HOW_LATE@stream, @C_TUPLE@, @SIZENAMES@);
@EARLY@}
@BETWEEN@
@BETWEEN@int @NAME@_launch_with(int early, void *const *given, struct CUstream_st *stream,
@BETWEEN@@C_PARAMETERS@
@BETWEEN@{
@BETWEEN@@LATE@	(void)early;
@BETWEEN@@FIXED@	return launch(@C_HOW_GIVEN@stream, @C_TUPLE@);
@BETWEEN@@ANY@	return launch(@C_HOW_GIVEN@stream, @C_TUPLE@, @SIZENAMES@);
@BETWEEN@}

/* ---- tiles and binaries --------------------------------------------------------- */

@DATA@