/* fake_cuda.c - a CUDA driver without a device, for the tests of src/gpu.
 *
 * "Device memory" is the host's, kernels are chosen by name and run at their launch,
 * and what goes wrong goes wrong where a real driver would say so: at the next
 * synchronisation. Time goes on by a fixed step at each launch, so that times are the
 * same on every machine.
 *
 * A binary is the text "FAKE"; "FAKE80" is one for another architecture, "FAKE:pid" one
 * that has the kernel pid alone. "FAKESRC" comes of fake_nvrtc.c, with the source: its kernels
 * write zeros to all that they are given. The variable FAKE_CUDA_INIT is what cuInit returns,
 * FAKE_CUDA_NAME the device's name, FAKE_CUDA_SMS how many SMs it has, FAKE_CUDA_BUS its
 * PCI address (fake_bus.h), FAKE_CUDA_VERSION the version of CUDA, 13000.
 *
 * FAKE_CUDA_KERNELS tells kernels of sources apart by the shared memory that they are launched
 * with: "98304=120 131072=wrong" are microseconds that one takes, and another that writes nothing;
 * others: fault, hang, corner and inside (the last element, or one in the middle, is wrong). FAKE_CUDA_DRIFT: by how much
 * more everything takes after each second; FAKE_CUDA_BURST: in the end, of which two thirds are there after 0.3 s. With
 * FAKE_CUDA_LOG each launch of such a kernel adds a line to that file: its name and shared memory.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_bus.h"
#include "fake_source.h"
#include "gpu/libraries.h"

#define PUBLIC __attribute__((visibility("default")))

#ifdef FAKE_HIP
#define ENV "FAKE_HIP"
#define IF_HIP(hip, cuda) (hip)
#else
#define ENV "FAKE_CUDA"
#define IF_HIP(hip, cuda) (cuda)
#endif

/* The prototypes of the table, so that they are as the program believes. */
#define DECLARE(needed, name, suffix, parameters) PUBLIC int name##suffix parameters;
#ifdef FAKE_HIP
#define DECLARE_SHARED(name, cuda, suffix, hip, parameters) PUBLIC int hip parameters;
#else
#define DECLARE_SHARED(name, cuda, suffix, hip, parameters) PUBLIC int cuda##suffix parameters;
#endif
DRIVER_SYMBOLS(DECLARE_SHARED)
CUDA_ONLY_SYMBOLS(DECLARE)

enum { MEMORY = 256 << 20, L2 = 4 << 20, CODE = 1 << 20, SMEM = 232448, STEP_US = 50 };

struct CUevent_st {
	int64_t us;
};

struct CUfunc_st {
	const char *name;
	int (*run)(const struct cuda_launch_config *c, void **params);	/* NULL: of a source */
	int nparams;
	size_t sizes[FAKE_PARAMS_MAX];
	char pointer[FAKE_PARAMS_MAX];
	int threads;			/* of its bounds; 0: 512 */
};

struct CUmod_st {
	char only[32];			/* the kernel that it has; "": all */
	char *source;			/* or those of this */
	struct CUfunc_st found[8];	/* those that were asked for */
	int nfound;
	bool code_object;		/* its kernels are of any name */
};

/* The state of the one device. */
static int64_t now_us;
static size_t used;
static int pending, lost;		/* errors: at the next synchronisation, for ever */
static int hanging;

/* What was captured: launches, and fills, whose function is NULL. Their parameters must stay where they are. */
struct CUgraph_st {
	struct node {
		struct CUfunc_st *function;
		struct cuda_launch_config config;
		void **params;
		device_ptr at;
		unsigned value;
		size_t words;
	} *nodes;
	int n;
};

static struct CUgraph_st *capturing;	/* NULL: launches are done at once */

/* Time that a launch of so many microseconds takes now. */
static int64_t takes(int64_t us)
{
	const char *drift = getenv("FAKE_CUDA_DRIFT"), *burst = getenv("FAKE_CUDA_BURST");
	double seconds = (double)now_us * 1e-6;

	return us + (int64_t)((double)us * ((drift ? atof(drift) * seconds : 0) +
		(burst ? atof(burst) * (1 - exp(-seconds / 0.3)) : 0)));
}

/* ---- kernels ---- */

#define PARAM(type, i) (*(type *)params[i])
#define POINTER(type, i) ((type *)(uintptr_t)PARAM(device_ptr, i))

static int saxpy(const struct cuda_launch_config *c, void **params)
{
	int n = PARAM(int, 0);
	const float *x = POINTER(float, 2);
	float *y = POINTER(float, 3);

	(void)c;
	for (int i = 0; i < n; i++)
		y[i] += PARAM(float, 1) * x[i];
	return 0;
}

/* Writes one element more than it should. */
static int overrun(const struct cuda_launch_config *c, void **params)
{
	(void)c;
	memset(POINTER(float, 0), 0, (size_t)PARAM(int, 1) * sizeof(float) + 1);
	return 0;
}

/* With the variable FAKE_CUDA_HANGS it makes this file. */
static int hang(const struct cuda_launch_config *c, void **params)
{
	const char *file = getenv("FAKE_CUDA_HANGS");

	(void)c;
	(void)params;
	hanging = 1;
	if (file)
		close(creat(file, 0666));
	return 0;
}

static int fault(const struct cuda_launch_config *c, void **params)
{
	(void)c;
	(void)params;
	pending = CUDA_ILLEGAL_ADDRESS;
	return 0;
}

static int refuse(const struct cuda_launch_config *c, void **params)
{
	(void)c;
	(void)params;
	return CUDA_LAUNCH_OUT_OF_RESOURCES;
}

static int crash(const struct cuda_launch_config *c, void **params)
{
	static const char words[] = "fake driver: an assertion failed\n";

	(void)c;
	(void)params;
	if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0)
		_exit(9);
	signal(SIGABRT, SIG_DFL);
	abort();
}

static int quit(const struct cuda_launch_config *c, void **params)
{
	(void)c;
	(void)params;
	_exit(7);
}

/* Writes to the socket instead of the protocol. */
static int babble(const struct cuda_launch_config *c, void **params)
{
	static const char words[64] = "what is no message of ours";

	(void)c;
	(void)params;
	if (write(3, words, sizeof(words)) < 0)
		_exit(9);
	return 0;
}

/* Takes so many microseconds. */
static int last(const struct cuda_launch_config *c, void **params)
{
	(void)c;
	now_us += takes(PARAM(int, 0)) - STEP_US;
	return 0;
}

/* The same, whose launch takes a millisecond of the host. */
static int launch_slowly(const struct cuda_launch_config *c, void **params)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return last(c, params);
}

static int pid(const struct cuda_launch_config *c, void **params)
{
	(void)c;
	*POINTER(int64_t, 0) = getpid();
	return 0;
}

/* Which copy of its input a run got: counts in y[0], pointers from y[1] on. */
static int where(const struct cuda_launch_config *c, void **params)
{
	uint64_t *y = POINTER(uint64_t, 1);

	(void)c;
	if (y[0] < 60)
		y[1 + y[0]++] = PARAM(device_ptr, 0);
	return 0;
}

/* The launch, as numbers. */
static int shape(const struct cuda_launch_config *c, void **params)
{
	uint32_t *y = POINTER(uint32_t, 0);

	for (int i = 0; i < 3; i++) {
		y[i] = c->grid[i];
		y[3 + i] = c->block[i];
	}
	y[6] = c->smem;
	for (unsigned i = 0; i < c->nattributes; i++) {
		const struct cuda_launch_attribute *a = &c->attributes[i];

		if (a->id == CUDA_LAUNCH_CLUSTER)
			memcpy(y + 7, &a->value.cluster, sizeof(a->value.cluster));
		if (a->id == CUDA_LAUNCH_COOPERATIVE)
			y[10] = (uint32_t)a->value.cooperative;
		if (a->id == CUDA_LAUNCH_EARLY)
			y[11] = (uint32_t)a->value.early;
	}
	return 0;
}

/* The tensor map that it was given, as cuTensorMapEncodeTiled below wrote it. */
static int map(const struct cuda_launch_config *c, void **params)
{
	(void)c;
	if ((uintptr_t)params[0] % CUDA_TENSOR_MAP_ALIGN)
		return CUDA_INVALID_VALUE;
	memcpy(POINTER(char, 1), params[0], sizeof(struct cuda_tensor_map));
	return 0;
}

#define KERNEL(f, n, ...) { .name = #f, .run = f, .nparams = n, .sizes = { __VA_ARGS__ } }

static struct CUfunc_st kernels[] = {
	KERNEL(saxpy, 4, 4, 4, 8, 8),
	KERNEL(overrun, 2, 8, 4),
	KERNEL(hang, 0, 0),
	KERNEL(fault, 0, 0),
	KERNEL(refuse, 0, 0),
	KERNEL(crash, 0, 0),
	KERNEL(quit, 0, 0),
	KERNEL(babble, 0, 0),
	KERNEL(last, 1, 4),
	KERNEL(launch_slowly, 1, 4),
	KERNEL(pid, 1, 8),
	KERNEL(where, 2, 8, 8),
	KERNEL(shape, 1, 8),
	KERNEL(map, 2, 128, 8),
};

/* What FAKE_CUDA_KERNELS says of kernels with so much shared memory; "" if nothing. */
static void manner(unsigned smem, char text[16])
{
	const char *s = getenv("FAKE_CUDA_KERNELS");
	unsigned of;
	int n;

	text[0] = '\0';
	for (; s && sscanf(s, " %u=%15s%n", &of, text, &n) == 2; s += n)
		if (of == smem)
			return;
	text[0] = '\0';
}

static void note_launch(const char *name, unsigned smem)
{
	const char *path = getenv("FAKE_CUDA_LOG");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%s %u\n", name, smem);
	fclose(f);
}

/* What stands before each allocation. A kernel's zeros are not written again while nothing else has written to any
 * memory, as timed kernels run hundreds of times. */
struct header {
	size_t bytes;
	uint64_t filled_at;		/* `writes` when a kernel filled it last */
	int fill;
};

static uint64_t writes = 1;		/* how often memory was written otherwise than by of_source */

enum { BEFORE = 256, MAP_BYTES = 128, END = 512 };	/* END: what the program puts behind */

static struct header *header_of(device_ptr p)
{
	return (struct header *)(uintptr_t)(p - BEFORE);
}

enum { LIVE_MOST = 4096 };
static device_ptr live[LIVE_MOST];	/* what is allocated */

/* The beginning of the block that the address is in. */
static device_ptr block_of(device_ptr p)
{
	for (int i = 0; i < LIVE_MOST; i++)
		if (live[i] && p >= live[i] && p < live[i] + header_of(live[i])->bytes)
			return live[i];
	return p;
}

static bool sampled;			/* the reference that was loaded last computes only some tiles */

/* What a comparison of the reference's text finds (struct plain_found): elements that are not those of kernels here, which write zeros, are wrong. */
static int compare(const struct CUfunc_st *f, void **params)
{
	bool with_reference = !strncmp(f->name, "compare_", 8), anywhere;
	const char *got = POINTER(const char, 0), *other = POINTER(const char, 1);
	double *found = POINTER(double, f->nparams - 1);
	int64_t *counts = POINTER(int64_t, f->nparams - 1) + 9, n = PARAM(int, f->nparams - 2);

	size_t bytes = header_of(PARAM(device_ptr, 0))->bytes - END;
	char first = got[0], last = got[bytes - 2], middle = got[bytes / 2];

	anywhere = first || last || (middle && !(with_reference && sampled));
	counts[1] = n;
	if (with_reference) {
		found[1] = anywhere ? NAN : 0;
		found[2] = 1;
		found[8] = 1e-4;
		counts[0] = anywhere ? 1 : 0;
	} else {
		found[4] = first != other[0] || last != other[bytes - 2] || middle != other[bytes / 2] ? INFINITY : 0;
		counts[5] = anywhere && !(found[4] > 0) ? 1 : 0;
	}
	writes++;
	return 0;
}

/* Zeros to what the parameters point to. The reference writes numbers just above zero instead, because an allowance of
 * zero would say that the program stores nothing there. */
static int of_source(const struct CUfunc_st *f, const struct cuda_launch_config *c, void **params)
{
	char how[16];

	manner(c->smem, how);
	note_launch(f->name, c->smem);
	if (!strncmp(f->name, "compare_", 8) || !strncmp(f->name, "agree_", 6))
		return compare(f, params);
	if (!strcmp(how, "fault")) {
		writes++;
		return fault(c, params);
	}
	if (!strcmp(how, "hang"))
		return hang(c, params);
	now_us += takes(atoi(how) ? atoi(how) : STEP_US) - STEP_US;
	for (int i = 0; i < f->nparams && strcmp(how, "wrong"); i++) {
		struct header *h;
		device_ptr p;
		int fill = !strncmp(f->name, "plain", 5);

		if (!f->pointer[i])
			continue;
		p = block_of(PARAM(device_ptr, i));	/* a map begins with its address */
		h = header_of(p);
		if (h->filled_at == writes && h->fill == fill)
			continue;
		memset((void *)(uintptr_t)p, fill, h->bytes - END);
		if (!strcmp(how, "corner") || !strcmp(how, "inside"))	/* an element is not written */
			memset((char *)(uintptr_t)p + (*how == 'c' ? h->bytes - END - 2 : (h->bytes - END) / 2), 0x7f, 2);
		h->filled_at = writes;
		h->fill = fill;
	}
	return 0;
}

/* ---- code objects ---- */

static const char *launched;		/* the kernel's name */

/* The buffer that a parameter points to; 0: it is a number. */
static device_ptr buffer_of(void **params, int i)
{
	device_ptr p = PARAM(device_ptr, i);

	for (int k = 0; k < LIVE_MOST; k++)
		if (p && live[k] == p)
			return p;
	return 0;
}

/* A file whose image is code that nothing here can execute. */
static int of_code_object(const struct cuda_launch_config *c, void **params)
{
	const char *how = getenv("FAKE_HIP_KERNEL");
	device_ptr first = 0;

	if (!strncmp(launched, "fill", 4) || !strncmp(launched, "plain", 5))
		how = "zero";
	how = how ? how : "zero";
	if (!strcmp(how, "fault"))
		return fault(c, params);
	if (!strcmp(how, "hang"))
		return hang(c, params);
	if (!strcmp(how, "refuse"))
		return refuse(c, params);
	if (!strncmp(how, "error", 5))
		return atoi(how + 5);
	if (!strcmp(how, "abort")) {
		static const char words[] = "Memory access fault by GPU node-1 on address 0x7f0000000000. "
			"Reason: Page not present.\nGPU core dump failed\n";

		if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0)
			_exit(9);
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	for (int i = 0; params[i]; i++) {
		device_ptr p = buffer_of(params, i);

		if (!p)
			continue;
		if (!strcmp(how, "zero"))
			memset((void *)(uintptr_t)p, !strncmp(launched, "plain", 5), header_of(p)->bytes - END);
		if (!strcmp(how, "copy") && first) {
			memcpy((void *)(uintptr_t)p, (void *)(uintptr_t)first, header_of(p)->bytes - END);
			break;
		}
		first = first ? first : p;
	}
	return 0;
}

/* ---- errors and synchronisation ---- */

static int synchronize(void)
{
	if (capturing)
		return CUDA_CAPTURE_INVALID;
	while (hanging)
		pause();
	lost = lost ? lost : pending;
	return lost;
}

int cuGetErrorName(int error, const char **name)
{
	*name = error == CUDA_ILLEGAL_ADDRESS ? IF_HIP("hipErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS") :
		error == CUDA_OUT_OF_MEMORY ? IF_HIP("hipErrorOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY") :
		error == CUDA_NO_DEVICE ? IF_HIP("hipErrorNoDevice", "CUDA_ERROR_NO_DEVICE") :
		IF_HIP("hipErrorOther", "CUDA_ERROR_OTHER");
	return 0;
}

int cuGetErrorString(int error, const char **text)
{
	(void)error;
	*text = "the fake driver says so";
	return 0;
}

int cuCtxSynchronize(void)
{
	return synchronize();
}

int cuStreamSynchronize(struct CUstream_st *stream)
{
	(void)stream;
	return synchronize();
}

/* ---- the device ---- */

int cuInit(unsigned flags)
{
	const char *result = getenv(ENV "_INIT");

	(void)flags;
	return result ? atoi(result) : 0;
}

int cuDriverGetVersion(int *version)
{
	const char *s = getenv(ENV "_VERSION");

	*version = s ? atoi(s) : IF_HIP(60342131, 13000);
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = 1;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
	const char *given = getenv(ENV "_NAME");

	(void)device;
	strncpy(name, given ? given : IF_HIP("Fake MI300X", "Fake H200"), (size_t)size);
	return 0;
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	(void)device;
	fake_bus(id, (size_t)size);
	return id[0] ? 0 : CUDA_INVALID_VALUE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	(void)device;
	*bytes = MEMORY;
	return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
#ifdef FAKE_HIP
	static const int values[][2] = {
		{ HIP_DEV_CLOCK_RATE, 2100000 },
		{ HIP_DEV_CU_COUNT, 304 },
		{ HIP_DEV_MEMORY_CLOCK_RATE, 1300000 },
		{ HIP_DEV_BUS_WIDTH, 8192 },
		{ HIP_DEV_L2_BYTES, L2 },
		{ HIP_DEV_SMEM_PER_BLOCK, 65536 },
	};
#else
	static const int values[][2] = {
		{ CUDA_DEV_MAX_THREADS_PER_BLOCK, 1024 },
		{ CUDA_DEV_CLOCK_RATE, 1980000 },
		{ CUDA_DEV_SM_COUNT, 132 },
		{ CUDA_DEV_MEMORY_CLOCK_RATE, 3201000 },
		{ CUDA_DEV_BUS_WIDTH, 6144 },
		{ CUDA_DEV_L2_BYTES, L2 },
		{ CUDA_DEV_MAJOR, 9 },
		{ CUDA_DEV_MINOR, 0 },
		{ CUDA_DEV_SMEM_PER_SM, 233472 },
		{ CUDA_DEV_REGISTERS_PER_SM, 65536 },
		{ CUDA_DEV_SMEM_OPTIN, SMEM },
	};
#endif

	const char *sms = getenv("FAKE_CUDA_SMS");

	(void)device;
	if (attribute == CUDA_DEV_SM_COUNT && sms) {
		*value = atoi(sms);
		return 0;
	}
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (values[i][0] == attribute) {
			*value = values[i][1];
			return 0;
		}
	}
	return CUDA_INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device)
{
	(void)device;
	*context = NULL;
	return 0;
}

int cuCtxSetCurrent(struct CUctx_st *context)
{
	(void)context;
	return 0;
}

int cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
	static char one;

	*stream = (struct CUstream_st *)&one;
	return flags != CUDA_STREAM_NON_BLOCKING;
}

static int add_node(struct node x)
{
	capturing->nodes = realloc(capturing->nodes, (size_t)(capturing->n + 1) * sizeof(x));
	capturing->nodes[capturing->n++] = x;
	return 0;
}

/* ---- memory: each block has its size before it ---- */

int cuMemGetInfo_v2(size_t *left, size_t *total)
{
	*left = MEMORY - used;
	*total = MEMORY;
	return lost;
}

int cuMemAlloc_v2(device_ptr *p, size_t bytes)
{
	char *block;

	if (lost)
		return lost;
	if (bytes > MEMORY - used)
		return CUDA_OUT_OF_MEMORY;
	block = aligned_alloc(BEFORE, (bytes / BEFORE + 2) * BEFORE);
	if (!block)
		return CUDA_OUT_OF_MEMORY;
	used += bytes;
	*p = (uintptr_t)block + BEFORE;
	*header_of(*p) = (struct header){ .bytes = bytes };
	for (int i = 0; i < LIVE_MOST; i++) {
		if (!live[i]) {
			live[i] = *p;
			break;
		}
	}
	return 0;
}

int cuMemFree_v2(device_ptr p)
{
	for (int i = 0; i < LIVE_MOST; i++)
		live[i] = live[i] == p ? 0 : live[i];
	used -= header_of(p)->bytes;
	free(header_of(p));
	return lost;
}

int cuMemcpyHtoDAsync_v2(device_ptr to, const void *from, size_t bytes, struct CUstream_st *stream)
{
	(void)stream;
	writes++;
	memcpy((void *)(uintptr_t)to, from, bytes);
	return lost;
}

int cuMemcpyDtoHAsync_v2(void *to, device_ptr from, size_t bytes, struct CUstream_st *stream)
{
	(void)stream;
	memcpy(to, (const void *)(uintptr_t)from, bytes);
	return lost;
}

int cuMemcpyDtoDAsync_v2(device_ptr to, device_ptr from, size_t bytes, struct CUstream_st *stream)
{
	(void)stream;
	writes++;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return lost;
}

int cuMemsetD8Async(device_ptr p, unsigned char value, size_t bytes, struct CUstream_st *stream)
{
	(void)stream;
	writes++;
	memset((void *)(uintptr_t)p, value, bytes);
	return lost;
}

int cuMemsetD32Async(device_ptr p, unsigned value, size_t words, struct CUstream_st *stream)
{
	unsigned *to = (unsigned *)(uintptr_t)p;

	(void)stream;
	if (capturing)
		return add_node((struct node){ .at = p, .value = value, .words = words });
	writes++;
	now_us += STEP_US;
	while (words-- > 0)
		*to++ = value;
	return lost;
}

/* ---- code ---- */

int cuModuleLoadData(struct CUmod_st **module, const void *image)
{
	if (IF_HIP(!memcmp(image, "\177ELF", 4), false)) {
		*module = calloc(1, sizeof(**module));
		if (!*module)
			return CUDA_OUT_OF_MEMORY;
		(*module)->code_object = true;
		used += CODE;
		return 0;
	}
	if (!strncmp(image, "FAKE80", 6))
		return CUDA_NO_BINARY_FOR_GPU;
	if (strncmp(image, "FAKE", 4))
		return CUDA_INVALID_IMAGE;
	*module = calloc(1, sizeof(**module));
	if (!*module)
		return CUDA_OUT_OF_MEMORY;
	if (!strncmp(image, "FAKE:", 5))
		strncpy((*module)->only, (const char *)image + 5, sizeof((*module)->only) - 1);
	if (!strncmp(image, "FAKESRC\n", 8))
		(*module)->source = strdup((const char *)image + 8);
	if ((*module)->source && strstr((*module)->source, "KERNEL plain_"))
		sampled = strstr((*module)->source, "\nTABLE i64 sample_") != NULL;
	used += CODE;
	return 0;
}

int cuModuleUnload(struct CUmod_st *module)
{
	free(module->source);
	free(module);
	used -= CODE;
	return 0;
}

int cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module, const char *name)
{
	struct fake_kernel k;
	const char *s = module->source;

	if (module->code_object) {
		struct CUfunc_st *f = &module->found[module->nfound++ % 8];

		*f = (struct CUfunc_st){ .name = strdup(name), .run = of_code_object, .threads = 1024 };
		*function = f;
		return 0;
	}
	while (s && (s = fake_next_kernel(s, &k))) {
		struct CUfunc_st *f = &module->found[module->nfound % 8];

		if (strcmp(k.name, name))
			continue;
		*f = (struct CUfunc_st){ .name = strdup(name), .nparams = k.nparams,
			.threads = k.threads };
		memcpy(f->sizes, k.sizes, sizeof(k.sizes));
		memcpy(f->pointer, k.pointer, sizeof(k.pointer));
		module->nfound++;
		*function = f;
		return 0;
	}
	if (module->source || (*module->only && strcmp(module->only, name)))
		return CUDA_NOT_FOUND;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		if (!strcmp(kernels[i].name, name)) {
			*function = &kernels[i];
			return 0;
		}
	}
	return CUDA_NOT_FOUND;
}

int cuFuncGetAttribute(int *value, int attribute, struct CUfunc_st *function)
{
	*value = attribute == CUDA_FUNC_MAX_THREADS ? function->threads ? function->threads : 512 :
		attribute == CUDA_FUNC_STATIC_SMEM ? IF_HIP(0, 1024) : 32;
	return 0;
}

int cuFuncSetAttribute(struct CUfunc_st *function, int attribute, int value)
{
	(void)function;
	return attribute == CUDA_FUNC_MAX_DYNAMIC_SMEM && value > SMEM - 1024 ?
		CUDA_INVALID_VALUE : 0;
}

int cuFuncGetParamInfo(struct CUfunc_st *function, size_t index, size_t *offset, size_t *bytes)
{
	if (index >= (size_t)function->nparams)
		return CUDA_INVALID_VALUE;
	*offset = 0;
	*bytes = function->sizes[index];
	return 0;
}

int cuLaunchKernelEx(const struct cuda_launch_config *config, struct CUfunc_st *function,
	void **params, void **extra)
{
	if (extra || lost)
		return lost ? lost : CUDA_INVALID_VALUE;
	if (capturing)
		return add_node((struct node){ .function = function, .config = *config, .params = params });
	now_us += STEP_US;
	if (!function->run)
		return of_source(function, config, params);
	writes++;
	launched = function->name;
	return function->run(config, params);
}

/* ---- graphs ---- */

int cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode)
{
	(void)stream;
	if (capturing || mode != CUDA_CAPTURE_OF_THREAD)
		return CUDA_INVALID_VALUE;
	capturing = calloc(1, sizeof(*capturing));
	return 0;
}

int cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
	(void)stream;
	*graph = capturing;
	capturing = NULL;
	return *graph ? lost : CUDA_INVALID_VALUE;
}

int cuGraphInstantiateWithFlags(struct CUgraphExec_st **exec, struct CUgraph_st *graph, unsigned long long flags)
{
	struct CUgraph_st *g = calloc(1, sizeof(*g));

	g->n = graph->n;
	g->nodes = malloc((size_t)g->n * sizeof(*g->nodes));
	memcpy(g->nodes, graph->nodes, (size_t)g->n * sizeof(*g->nodes));
	*exec = (struct CUgraphExec_st *)(void *)g;
	return flags ? CUDA_INVALID_VALUE : lost;
}

/* Its steps take half as long as when they are launched one by one. */
int cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	struct CUgraph_st *g = (struct CUgraph_st *)(void *)exec;
	int64_t before = now_us;
	int code = lost;

	for (int i = 0; i < g->n && !code; i++) {
		struct node *x = &g->nodes[i];

		code = x->function ? cuLaunchKernelEx(&x->config, x->function, x->params, NULL) :
			cuMemsetD32Async(x->at, x->value, x->words, stream);
	}
	now_us = before + (now_us - before) / 2;
	return code;
}

int cuGraphDestroy(struct CUgraph_st *graph)
{
	free(graph->nodes);
	free(graph);
	return 0;
}

int cuGraphExecDestroy(struct CUgraphExec_st *exec)
{
	return cuGraphDestroy((struct CUgraph_st *)(void *)exec);
}

/* Not NVIDIA's format; what the kernel "map" gives back. */
int cuTensorMapEncodeTiled(struct cuda_tensor_map *m, int element, unsigned rank, void *address,
	const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
	int interleave, int swizzle, int promotion, int fill)
{
	if (interleave || fill || rank < 1 || rank > 5)
		return CUDA_INVALID_VALUE;
	memset(m, 0, sizeof(*m));
	m->opaque[0] = (uintptr_t)address;
	m->opaque[1] = (uint64_t)element | (uint64_t)rank << 8 | (uint64_t)swizzle << 16 |
		(uint64_t)promotion << 24;
	for (unsigned i = 0; i < rank; i++) {
		m->opaque[2 + i] = dims[i];
		m->opaque[11 + i] = (uint64_t)box[i] << 32 | steps[i];
		if (i > 0)
			m->opaque[6 + i] = strides[i - 1];
	}
	return 0;
}

/* ---- events ---- */

int cuEventCreate(struct CUevent_st **event, unsigned flags)
{
	(void)flags;
	*event = calloc(1, sizeof(**event));
	return *event ? 0 : CUDA_OUT_OF_MEMORY;
}

int cuEventDestroy_v2(struct CUevent_st *event)
{
	free(event);
	return 0;
}

int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	(void)stream;
	event->us = now_us;
	return lost;
}

/* All streams are one: what was launched before is over. */
int cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)
{
	(void)stream;
	(void)flags;
	return event ? lost : CUDA_INVALID_VALUE;
}

int cuStreamDestroy_v2(struct CUstream_st *stream)
{
	(void)stream;
	return lost;
}

int cuEventElapsedTime(float *ms, struct CUevent_st *from, struct CUevent_st *to)
{
	*ms = (float)(to->us - from->us) * 1e-3f;
	return lost;
}
