/* recorder.c - a CUDA driver that writes down what it is asked to launch, and a compiler
 * that compiles nothing, for tests/cli/export.t.
 *
 * As a driver it adds lines to the file $RECORDER_LOG. What it cannot know of a kernel,
 * the kinds of its parameters, $RECORDER_PARAMS says: "gemm_main=ppm;..." with p for a
 * pointer, m for a tensor map, i for an int. $RECORDER_FAIL is "FUNCTION=CODE": that one fails.
 * $RECORDER_ARCH: the device, "90" by default. $RECORDER_CAPTURING, if set: streams are being captured.
 *
 * A binary begins with its size in decimal, or is an ELF file that ends with the table of its sections.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/libraries.h"

#define PUBLIC __attribute__((visibility("default")))

#define DECLARE(needed, name, suffix, parameters) PUBLIC int name##suffix parameters;
#define DECLARE_SHARED(name, cuda, suffix, hip, parameters) PUBLIC int cuda##suffix parameters;
DRIVER_SYMBOLS(DECLARE_SHARED)
CUDA_ONLY_SYMBOLS(DECLARE)
RTC_SYMBOLS(DECLARE_SHARED)
NVRTC_ONLY_SYMBOLS(DECLARE)

/* What only exported kernels use, as in cuda.h. */
PUBLIC int cuDevicePrimaryCtxRelease_v2(int device);
PUBLIC int cuCtxGetDevice(int *device);
PUBLIC int cuMemcpyHtoD_v2(device_ptr to, const void *from, size_t bytes);
PUBLIC int cuMemsetD32Async(device_ptr to, unsigned value, size_t n, struct CUstream_st *stream);
PUBLIC int cuStreamIsCapturing(struct CUstream_st *stream, int *status);
PUBLIC int cuStreamGetId(struct CUstream_st *stream, unsigned long long *id);
PUBLIC int cuMemAllocAsync(device_ptr *p, size_t bytes, struct CUstream_st *stream);
PUBLIC int cuMemFreeAsync(device_ptr p, struct CUstream_st *stream);
PUBLIC int cuGraphExecUpdate_v2(struct CUgraphExec_st *exec, struct CUgraph_st *graph, void *info);
PUBLIC int hipGraphExecUpdate(struct CUgraphExec_st *exec, struct CUgraph_st *graph, void **node, int *result);
PUBLIC int cuLaunchKernel(struct CUfunc_st *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, struct CUstream_st *stream, void **params,
	void **extra);

enum { FUNCTIONS_MOST = 16, MEMORIES_MOST = 64, MAPS_MOST = 64, MAP_TEXT = 512, COUNTERS_LEAST = 1 << 16 };

struct CUfunc_st {
	char name[128];
};

static struct CUfunc_st functions[FUNCTIONS_MOST];
static struct {
	device_ptr at;
	size_t bytes;
	int temporary;
} memories[MEMORIES_MOST];		/* at 0: free */
static char maps[MAPS_MOST][MAP_TEXT];
static int nfunctions, nmaps, context_of_mine, modules, contexts;
/* Stream number n, from 1, is at n times 0x1000, event number n at n times 0x100000; those made and not destroyed are counted. */
static int streams_made, streams_left, events_made, events_left, graphs_made, execs_made, graphs_left;
static int capturing;
#ifndef CURRENT_AT_FIRST
#define CURRENT_AT_FIRST 0		/* CUDA's threads have no context until they take one */
#endif
static _Thread_local int current = CURRENT_AT_FIRST;

static FILE *record(void)
{
	static FILE *file;
	const char *path = getenv("RECORDER_LOG");

	if (!file) {
		file = path ? fopen(path, "a") : stderr;
		if (!file)
			abort();
		setvbuf(file, NULL, _IOLBF, 0);
	}
	return file;
}

static int fails(const char *function)
{
	const char *fail = getenv("RECORDER_FAIL");
	size_t n = strlen(function);

	return fail && !strncmp(fail, function, n) && fail[n] == '=' ? atoi(fail + n + 1) : 0;
}

/* ---- the device ---- */

int cuInit(unsigned flags)
{
	(void)flags;
	return fails("cuInit");
}

int cuGetErrorName(int error, const char **name)
{
	static char text[32];

	snprintf(text, sizeof(text), "CUDA_ERROR_%d", error);
	*name = text;
	return 0;
}

int cuGetErrorString(int error, const char **text)
{
	(void)error;
	*text = "as the test set it";
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal ? CUDA_INVALID_DEVICE : 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	const char *arch = getenv("RECORDER_ARCH");
	int version = arch ? atoi(arch) : 90;

	(void)device;
	*value = attribute == CUDA_DEV_MAJOR ? version / 10 : attribute == CUDA_DEV_MINOR ?
		version % 10 : 0;
	return 0;
}

int cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device)
{
	(void)device;
	contexts++;
	*context = (struct CUctx_st *)(void *)&context_of_mine;
	return 0;
}

static void put_left(void)
{
	fprintf(record(), "released: %d contexts, %d modules", contexts, modules);
	for (int i = 0; i < MEMORIES_MOST; i++)
		if (memories[i].at)
			fprintf(record(), ", %zu bytes", memories[i].bytes);
	if (streams_left || events_left || graphs_left)
		fprintf(record(), ", %d streams, %d events, %d graphs", streams_left, events_left, graphs_left);
	fprintf(record(), " left\n");
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	contexts--;
	put_left();
	return 0;
}

int cuCtxSetCurrent(struct CUctx_st *context)
{
	current = (void *)context == (void *)&context_of_mine;
	return current ? 0 : CUDA_INVALID_VALUE;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return current ? 0 : 201;
}

/* ---- memory ---- */

static int allocate(device_ptr *p, size_t bytes, int temporary)
{
	for (int i = 0; i < MEMORIES_MOST; i++) {
		if (memories[i].at)
			continue;
		*p = (device_ptr)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
		memories[i].at = *p;
		memories[i].bytes = bytes;
		memories[i].temporary = temporary;
		return *p ? 0 : CUDA_OUT_OF_MEMORY;
	}
	return CUDA_OUT_OF_MEMORY;
}

static int release(device_ptr p, int temporary)
{
	for (int i = 0; i < MEMORIES_MOST; i++) {
		if (!p || memories[i].at != p || memories[i].temporary != temporary)
			continue;
		free((void *)(uintptr_t)p);
		memories[i].at = 0;
		return 0;
	}
	return CUDA_INVALID_VALUE;
}

int cuMemAlloc_v2(device_ptr *p, size_t bytes)
{
	int code = fails("cuMemAlloc");

	return code ? code : !current ? 201 : allocate(p, bytes, 0);
}

int cuMemFree_v2(device_ptr p)
{
	return release(p, 0);
}

int cuMemAllocAsync(device_ptr *p, size_t bytes, struct CUstream_st *stream)
{
	(void)stream;
	return allocate(p, bytes, 1);
}

int cuMemFreeAsync(device_ptr p, struct CUstream_st *stream)
{
	(void)stream;
	return release(p, 1);
}

int cuMemcpyHtoD_v2(device_ptr to, const void *from, size_t bytes)
{
	int code = fails("cuMemcpyHtoD");

	if (!code)
		memcpy((void *)(uintptr_t)to, from, bytes);
	return code;
}

int cuMemsetD32Async(device_ptr to, unsigned value, size_t n, struct CUstream_st *stream)
{
	int code = fails("cuMemsetD32Async");

	for (size_t i = 0; i < n && !code; i++)
		((unsigned *)(uintptr_t)to)[i] = value;
	if (!code)
		fprintf(record(), "set %zu to %u, stream 0x%llx\n", n, value, (unsigned long long)(uintptr_t)stream);
	return code;
}

/* A stream is its number. */
int cuStreamGetId(struct CUstream_st *stream, unsigned long long *id)
{
	*id = (unsigned long long)(uintptr_t)stream;
	return fails("cuStreamGetId");
}

int cuStreamIsCapturing(struct CUstream_st *stream, int *status)
{
	(void)stream;
	*status = capturing || getenv("RECORDER_CAPTURING") != NULL;
	return 0;
}

/* ---- streams and events ---- */

int cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
	int code = fails("cuStreamCreate");

	if (code || !current || flags != CUDA_STREAM_NON_BLOCKING)
		return code ? code : !current ? 201 : CUDA_INVALID_VALUE;
	*stream = (struct CUstream_st *)(uintptr_t)(0x1000 * ++streams_made);
	streams_left++;
	return 0;
}

int cuStreamDestroy_v2(struct CUstream_st *stream)
{
	(void)stream;
	streams_left--;
	return contexts ? 0 : 201;
}

int cuEventCreate(struct CUevent_st **event, unsigned flags)
{
	int code = fails("cuEventCreate");

	if (code || !current || flags != 2)	/* without times */
		return code ? code : !current ? 201 : CUDA_INVALID_VALUE;
	*event = (struct CUevent_st *)(uintptr_t)(0x100000 * ++events_made);
	events_left++;
	return 0;
}

int cuEventDestroy_v2(struct CUevent_st *event)
{
	(void)event;
	events_left--;
	return contexts ? 0 : 201;
}

static int event_number(struct CUevent_st *event)
{
	return (int)((uintptr_t)event / 0x100000);
}

int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	int code = fails("cuEventRecord");

	if (!code)
		fprintf(record(), "record event %d on 0x%llx\n", event_number(event), (unsigned long long)(uintptr_t)stream);
	return code;
}

int cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)
{
	int code = fails("cuStreamWaitEvent");

	if (code || flags)
		return code ? code : CUDA_INVALID_VALUE;
	fprintf(record(), "wait on 0x%llx for event %d\n", (unsigned long long)(uintptr_t)stream, event_number(event));
	return 0;
}

/* ---- graphs ---- */

int cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode)
{
	int code = fails("cuStreamBeginCapture");

	if (code || capturing || mode != CUDA_CAPTURE_OF_THREAD)
		return code ? code : CUDA_INVALID_VALUE;
	capturing = 1;
	fprintf(record(), "capture on 0x%llx\n", (unsigned long long)(uintptr_t)stream);
	return 0;
}

int cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
	int code = fails("cuStreamEndCapture");

	(void)stream;
	capturing = 0;
	if (code)
		return code;
	*graph = (struct CUgraph_st *)(uintptr_t)++graphs_made;
	graphs_left++;
	return 0;
}

int cuGraphInstantiateWithFlags(struct CUgraphExec_st **exec, struct CUgraph_st *graph, unsigned long long flags)
{
	int code = fails("cuGraphInstantiate");

	if (code || flags)
		return code ? code : CUDA_INVALID_VALUE;
	*exec = (struct CUgraphExec_st *)(uintptr_t)++execs_made;
	graphs_left++;
	fprintf(record(), "instantiate graph %d as %d\n", (int)(uintptr_t)graph, execs_made);
	return 0;
}

static int update(struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
	int code = fails("cuGraphExecUpdate");

	if (!code)
		fprintf(record(), "update %d to graph %d\n", (int)(uintptr_t)exec, (int)(uintptr_t)graph);
	return code;
}

int cuGraphExecUpdate_v2(struct CUgraphExec_st *exec, struct CUgraph_st *graph, void *info)
{
	memset(info, 0xa5, 24);
	return update(exec, graph);
}

int hipGraphExecUpdate(struct CUgraphExec_st *exec, struct CUgraph_st *graph, void **node, int *result)
{
	*node = NULL;
	*result = 0;
	return update(exec, graph);
}

int cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	int code = fails("cuGraphLaunch");

	if (!code)
		fprintf(record(), "run %d on 0x%llx\n", (int)(uintptr_t)exec, (unsigned long long)(uintptr_t)stream);
	return code;
}

int cuGraphDestroy(struct CUgraph_st *graph)
{
	(void)graph;
	graphs_left--;
	return 0;
}

int cuGraphExecDestroy(struct CUgraphExec_st *exec)
{
	(void)exec;
	graphs_left--;
	return contexts ? 0 : 201;
}

/* ---- binaries ---- */

static int image_size(const void *image)
{
	Elf64_Ehdr h;

	if (memcmp(image, ELFMAG, SELFMAG))
		return atoi(image);
	memcpy(&h, image, sizeof(h));
	return (int)(h.e_shoff + (size_t)h.e_shentsize * h.e_shnum);
}

int cuModuleLoadData(struct CUmod_st **module, const void *image)
{
	const unsigned char *bytes = image;
	int size = image_size(image), code = fails("cuModuleLoadData");
	unsigned sum = 0;

	if (code)
		return code;
	for (int i = 0; i < size; i++)
		sum = sum * 31 + bytes[i];
	fprintf(record(), "load %d bytes, sum %u\n", size, sum);
	modules++;
	*module = (struct CUmod_st *)(void *)&modules;
	return 0;
}

int cuModuleUnload(struct CUmod_st *module)
{
	(void)module;
	modules--;
	return 0;
}

int cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module, const char *name)
{
	(void)module;
	if (nfunctions == FUNCTIONS_MOST)
		return CUDA_OUT_OF_MEMORY;
	*function = &functions[nfunctions++];
	snprintf((*function)->name, sizeof((*function)->name), "%s", name);
	return 0;
}

int cuFuncSetAttribute(struct CUfunc_st *function, int attribute, int value)
{
	fprintf(record(), "attribute %d of %s: %d\n", attribute, function->name, value);
	return 0;
}

/* ---- launches ---- */

static int put_numbers(char *out, size_t size, const char *what, const uint64_t *v,
	const uint32_t *w, unsigned n)
{
	int len = snprintf(out, size, " %s", what);

	for (unsigned i = 0; i < n; i++)
		len += snprintf(out + len, size - (size_t)len, " %llu", v ?
			(unsigned long long)v[i] : w[i]);
	return len;
}

int cuTensorMapEncodeTiled(struct cuda_tensor_map *m, int element, unsigned rank, void *address,
	const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
	int interleave, int swizzle, int promotion, int fill)
{
	char *text = maps[nmaps % MAPS_MOST];
	size_t at = 0;
	int code = fails("cuTensorMapEncodeTiled");

	if (code || !current || interleave || fill || (uintptr_t)m % CUDA_TENSOR_MAP_ALIGN)
		return code ? code : !current ? 201 : CUDA_INVALID_VALUE;
	for (unsigned i = 0; i < rank; i++)
		if (steps[i] != 1)
			return CUDA_INVALID_VALUE;
	at = (size_t)snprintf(text, MAP_TEXT, "map(element %d at 0x%llx", element,
		(unsigned long long)(uintptr_t)address);
	at += (size_t)put_numbers(text + at, MAP_TEXT - at, "dims", dims, NULL, rank);
	at += (size_t)put_numbers(text + at, MAP_TEXT - at, "strides", strides, NULL, rank - 1);
	at += (size_t)put_numbers(text + at, MAP_TEXT - at, "box", NULL, box, rank);
	snprintf(text + at, MAP_TEXT - at, " swizzle %d promotion %d)", swizzle, promotion);
	memset(m, 0xa5, sizeof(*m));
	m->opaque[0] = (uint64_t)(nmaps++ % MAPS_MOST);
	return 0;
}

/* Of a large memory that numbers are in, only the one there. */
static void put_pointer(FILE *out, device_ptr p)
{
	for (int i = 0; i < MEMORIES_MOST; i++) {
		const int *ints = (const int *)(uintptr_t)p;

		if (memories[i].at && memories[i].bytes >= COUNTERS_LEAST && p >= memories[i].at &&
		    p < memories[i].at + memories[i].bytes) {
			fprintf(out, " counter(%llu: %d)", (unsigned long long)(p - memories[i].at), *ints);
			return;
		}
		if (!p || memories[i].at != p)
			continue;
		if (memories[i].temporary) {
			fprintf(out, " temporary(%zu)", memories[i].bytes);
			return;
		}
		fprintf(out, " ints(");
		for (size_t k = 0; k < memories[i].bytes / sizeof(int); k++)
			fprintf(out, "%s%d", k ? " " : "", ints[k]);
		fprintf(out, ")");
		return;
	}
	fprintf(out, " 0x%llx", (unsigned long long)p);
}

static int launch(struct CUfunc_st *f, const unsigned *grid, const unsigned *block, unsigned shared,
	struct CUstream_st *stream, const char *how, void **params, void **extra)
{
	const char *kinds = getenv("RECORDER_PARAMS");
	FILE *out = record();

	if (!current || extra)
		return !current ? 201 : CUDA_INVALID_VALUE;
	kinds = kinds ? strstr(kinds, f->name) : NULL;
	if (!kinds)
		return CUDA_NOT_FOUND;
	fprintf(out, "launch %s grid %u %u %u block %u %u %u shared %u stream 0x%llx%s:", f->name, grid[0],
		grid[1], grid[2], block[0], block[1], block[2], shared, (unsigned long long)(uintptr_t)stream, how);
	for (kinds += strlen(f->name) + 1; *kinds == 'p' || *kinds == 'm' || *kinds == 'i'; kinds++, params++) {
		if (*kinds == 'p')
			put_pointer(out, *(device_ptr *)*params);
		else if (*kinds == 'i')
			fprintf(out, " %d", *(int *)*params);
		else
			fprintf(out, " %s", maps[((struct cuda_tensor_map *)*params)->opaque[0]]);
	}
	fprintf(out, "\n");
	return 0;
}

int cuLaunchKernel(struct CUfunc_st *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, struct CUstream_st *stream, void **params,
	void **extra)
{
	int code = fails("cuLaunchKernel");

	return code ? code : launch(f, (const unsigned[]){ gx, gy, gz }, (const unsigned[]){ bx, by, bz }, shared,
		stream, "", params, extra);
}

/* What launches early has no other attribute. */
int cuLaunchKernelEx(const struct cuda_launch_config *c, struct CUfunc_st *f, void **params, void **extra)
{
	int code = fails("cuLaunchKernelEx");

	if (code || c->nattributes > 1 ||
	    (c->nattributes && (c->attributes->id != CUDA_LAUNCH_EARLY || c->attributes->value.early != 1)))
		return code ? code : CUDA_INVALID_VALUE;
	return launch(f, c->grid, c->block, c->smem, c->stream, c->nattributes ? " early" : "", params, extra);
}

/* ---- the compiler ---- */

struct _nvrtcProgram {
	size_t bytes;			/* of the source */
};

int nvrtcVersion(int *major, int *minor)
{
	*major = 12;
	*minor = 9;
	return 0;
}

int nvrtcCreateProgram(struct _nvrtcProgram **program, const char *source, const char *name,
	int nheaders, const char *const *headers, const char *const *include_names)
{
	(void)name;
	(void)nheaders;
	(void)headers;
	(void)include_names;
	*program = malloc(sizeof(**program));
	if (!*program)
		return 1;
	(*program)->bytes = strlen(source);
	return 0;
}

int nvrtcDestroyProgram(struct _nvrtcProgram **program)
{
	free(*program);
	return 0;
}

int nvrtcCompileProgram(struct _nvrtcProgram *program, int noptions, const char *const *options)
{
	(void)program;
	(void)noptions;
	(void)options;
	return 0;
}

/* What the compiler is to say, and the PTX on the way, come from the environment. */
static const char *said(const char *name)
{
	const char *s = getenv(name);

	return s ? s : "";
}

int nvrtcGetProgramLogSize(struct _nvrtcProgram *program, size_t *bytes)
{
	(void)program;
	*bytes = strlen(said("RECORDER_SAYS")) + 1;
	return 0;
}

int nvrtcGetProgramLog(struct _nvrtcProgram *program, char *log)
{
	(void)program;
	strcpy(log, said("RECORDER_SAYS"));
	return 0;
}

/* All byte values; different for different sources. */
int nvrtcGetCUBINSize(struct _nvrtcProgram *program, size_t *bytes)
{
	*bytes = 1000 + program->bytes % 1000;
	return 0;
}

int nvrtcGetCUBIN(struct _nvrtcProgram *program, char *cubin)
{
	size_t bytes;

	nvrtcGetCUBINSize(program, &bytes);
	for (size_t i = 0; i < bytes; i++)
		cubin[i] = (char)(i * 7 + program->bytes);
	snprintf(cubin, bytes, "%zu", bytes);
	return 0;
}

int nvrtcGetPTXSize(struct _nvrtcProgram *program, size_t *bytes)
{
	(void)program;
	*bytes = strlen(said("RECORDER_PTX")) + 1;
	return 0;
}

int nvrtcGetPTX(struct _nvrtcProgram *program, char *ptx)
{
	(void)program;
	strcpy(ptx, said("RECORDER_PTX"));
	return 0;
}
