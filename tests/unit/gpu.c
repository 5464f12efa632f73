/* Compiling, the worker process and its protocol, against tests/fake/fake_cuda.c in
 * place of the driver and fake_nvml.c in place of the management library. Compiling is
 * skipped where there is no NVRTC. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "gpu/cubin_cache.h"
#include "gpu/cuda_api.h"
#include "gpu/gpu.h"
#include "gpu/proto.h"
#include "tap.h"
#include "unit/leftovers.h"

/* ---- our declarations against NVIDIA's ---- */

#ifdef __has_include
#if __has_include(<cuda.h>)
#include <cuda.h>
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(CUDA_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(CUDA_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
SAME(CUDA_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(CUDA_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(CUDA_ASSERT, CUDA_ERROR_ASSERT);
SAME(CUDA_HARDWARE_STACK, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CUDA_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(CUDA_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(CUDA_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(CUDA_INVALID_PC, CUDA_ERROR_INVALID_PC);
SAME(CUDA_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_COOPERATIVE_TOO_LARGE, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SAME(CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(CUDA_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(CUDA_COMPAT_NOT_SUPPORTED, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME(CUDA_INVALID_CLUSTER_SIZE, CUDA_ERROR_INVALID_CLUSTER_SIZE);
SAME(CUDA_UNKNOWN, CUDA_ERROR_UNKNOWN);
SAME(CUDA_DEV_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUDA_DEV_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(CUDA_DEV_SM_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_DEV_MEMORY_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CUDA_DEV_BUS_WIDTH, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CUDA_DEV_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CUDA_DEV_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_DEV_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_DEV_SMEM_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CUDA_DEV_REGISTERS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(CUDA_DEV_SMEM_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CUDA_FUNC_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUDA_FUNC_STATIC_SMEM, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CUDA_FUNC_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CUDA_FUNC_MAX_DYNAMIC_SMEM, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CUDA_FUNC_NON_PORTABLE_CLUSTER, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(CUDA_LAUNCH_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(CUDA_LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(CUDA_LAUNCH_EARLY, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GPU_U8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(GPU_U16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
SAME(GPU_U32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
SAME(GPU_I32, CU_TENSOR_MAP_DATA_TYPE_INT32);
SAME(GPU_U64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
SAME(GPU_I64, CU_TENSOR_MAP_DATA_TYPE_INT64);
SAME(GPU_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(GPU_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(GPU_F64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
SAME(GPU_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(GPU_TF32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
SAME(GPU_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(GPU_SWIZZLE_128, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(GPU_PROMOTE_256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(0, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
SAME(sizeof(struct cuda_launch_attribute), sizeof(CUlaunchAttribute));
SAME(offsetof(struct cuda_launch_attribute, value), offsetof(CUlaunchAttribute, value));
SAME(sizeof(struct cuda_launch_config), sizeof(CUlaunchConfig));
SAME(offsetof(struct cuda_launch_config, block), offsetof(CUlaunchConfig, blockDimX));
SAME(offsetof(struct cuda_launch_config, smem), offsetof(CUlaunchConfig, sharedMemBytes));
SAME(offsetof(struct cuda_launch_config, stream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(struct cuda_launch_config, attributes), offsetof(CUlaunchConfig, attrs));
SAME(offsetof(struct cuda_launch_config, nattributes), offsetof(CUlaunchConfig, numAttrs));
SAME(sizeof(struct cuda_tensor_map), sizeof(CUtensorMap));
SAME(sizeof(cuda_ptr), sizeof(CUdeviceptr));
#endif
#if __has_include(<nvml.h>)
#include <nvml.h>
SAME(NVML_CLOCK_SETTING, nvmlClocksThrottleReasonApplicationsClocksSetting);
SAME(NVML_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME(NVML_SYNC_BOOST, nvmlClocksThrottleReasonSyncBoost);
SAME(NVML_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME(NVML_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(NVML_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME(NVML_OF_SM, NVML_CLOCK_SM);
SAME(sizeof(struct nvml_use), sizeof(nvmlUtilization_t));
SAME(sizeof(struct nvml_process), sizeof(nvmlProcessInfo_t));
#endif
#endif

/* ---- helpers ---- */

static struct mem mem;
static struct arena arena;
static struct err err;
static char fake[PATH_MAX];		/* the driver that is none */
static char board[PATH_MAX], old_board[PATH_MAX];	/* likewise the management library */

/* Seconds: what takes so long hangs, however busy the machine is. */
#define PATIENT 60.0

static const char FAKE_BINARY[] = "FAKE";
static const struct gpu_binary BINARIES[] = {
	{ FAKE_BINARY, sizeof(FAKE_BINARY) },
	{ "FAKE:pid", 9 },		/* has this kernel alone */
};

static struct gpu *open_gpu(void)
{
	struct gpu *g;

	gpu_new(&mem, 0, &g);
	return g;
}

static double seconds_since(double start)
{
	return clock_seconds() - start;
}

/* A job of one step, to be changed by each test. */
struct simple {
	float x[100], y[100];
	struct gpu_buffer buffers[2];
	struct gpu_param params[4];
	struct gpu_step step;
	struct gpu_job job;
};

static void simple_init(struct simple *s, const char *entry)
{
	*s = (struct simple){ .step = { .entry = entry, .grid = { 1 }, .block = { 128 } } };
	for (int i = 0; i < 100; i++) {
		s->x[i] = (float)i;
		s->y[i] = 1000;
	}
	s->buffers[0] = (struct gpu_buffer){ .name = "x", .bytes = sizeof(s->x),
		.init = GPU_INIT_HOST, .from = s->x };
	s->buffers[1] = (struct gpu_buffer){ .name = "y", .bytes = sizeof(s->y),
		.init = GPU_INIT_HOST, .from = s->y, .to = s->y };
	s->step.params = s->params;
	s->job = (struct gpu_job){ .binaries = BINARIES, .nbinaries = 1, .buffers = s->buffers, .nbuffers = 2, .steps = &s->step, .nsteps = 1 };
}

static void saxpy_init(struct simple *s)
{
	simple_init(s, "saxpy");
	s->params[0] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 100 };
	s->params[1] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 0x40000000 /* 2.0f */ };
	s->params[2] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 0 };
	s->params[3] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s->step.nparams = 4;
}

static bool saxpy_right(const struct simple *s, int times)
{
	for (int i = 0; i < 100; i++)
		if (s->y[i] != 1000 + 2.0f * (float)(i * times))
			return false;
	return true;
}

static enum err_code run(struct gpu *g, const struct gpu_job *job, double limit)
{
	struct gpu_result r;

	err = (struct err){ 0 };
	return gpu_run(g, job, limit, NULL, &arena, &r, &err);
}

/* The next job after a failure. */
static bool still_works(struct gpu *g)
{
	struct simple s;

	saxpy_init(&s);
	if (run(g, &s.job, PATIENT))
		diag("%s", err.msg);
	return !gpu_failure(g) && saxpy_right(&s, 1);
}

/* ---- logs ---- */

static void test_log(void)
{
	struct compile_result r = { .log =
		"k.cu(4): warning #177-D: variable \"unused\" was declared but never referenced\n"
		"  \tint unused;\n\n"
		"ptxas info    : (C7519) warpgroup.arrive is injected in around line 164 by "
		"compiler to allow use of registers in GMMA in function 'wg'\n"
		"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions "
		"are serialized due to insufficient register resources for the wgmma pipeline in "
		"the function 'wg'\n"
		"ptxas info    : 0 bytes gmem\n"
		"ptxas info    : Compiling entry function 'sp' for 'sm_90a'\n"
		"ptxas info    : Function properties for sp\n"
		"ptxas         .     992 bytes stack frame, 1216 bytes spill stores, 2116 bytes "
		"spill loads\n"
		"ptxas info    : Used 64 registers, used 3 barriers, 992 bytes cumulative stack "
		"size, 4096 bytes smem\n"
		"ptxas info    : Compiling entry function 'wg' for 'sm_90a'\n"
		"ptxas info    : Function properties for wg\n"
		"    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
		"ptxas info    : Used 168 registers, 400 bytes cmem[0]\n"
		"ptxas info    : Function properties for _Z5otherf\n"
		"    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n" };

	compile_parse_log(&r, &arena);
	is_int(r.nuses, 2, "two kernels in the log");
	is_str(r.uses[0].entry, "sp", "their names");
	is_int(r.uses[0].registers, 64, "registers");
	is_int(r.uses[0].spill_stores, 1216, "spill stores");
	is_int(r.uses[0].spill_loads, 2116, "spill loads");
	is_int(r.uses[0].stack, 992, "stack frame");
	is_int(r.uses[0].smem, 4096, "shared memory");
	is_int(r.uses[0].barriers, 3, "barriers");
	is_int(r.uses[1].registers, 168, "registers in the older form");
	is_int(r.uses[1].spill_stores, 0, "a function that is no kernel is not counted in");
	is_int(r.ndiags, 3, "three remarks");
	is_int(r.diags[0].line, 4, "a line of the source");
	is_str(r.diags[0].file, "k.cu", "and its file");
	is_str(r.diags[0].text, "variable \"unused\" was declared but never referenced",
		"the text of a warning");
	is_int(r.diags[1].ptx_line, 164, "a line of the PTX");
	ok(r.diags[1].severity == COMPILE_NOTE && !r.diags[1].serialized,
		"an injected arrive is a note");
	ok(r.diags[2].severity == COMPILE_WARNING && r.diags[2].serialized,
		"serialized wgmma is a warning and marked");
}

static void test_error_log(void)
{
	struct compile_result r = { .log =
		"dir(1)/a.cu(5): error: identifier \"z\" is undefined\n"
		"a.cu(6): catastrophic error: cannot open source file \"none.h\"\n"
		"a.cu(7): error #20: with a number\n"
		"          detected during instantiation of \"f(3): error\" at line 4\n"
		"ptxas application ptx input, line 29; error   : Unknown modifier '.thing'\n"
		"ptxas fatal   : Ptx assembly aborted due to errors\n"
		"ptxas error   : Entry function 'x' uses too much shared data (0x61a80 bytes, "
		"0x38c00 max)\n"
		"nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
		"3 errors detected in the compilation of \"a.cu\".\n" };
	int errors = 0;

	compile_parse_log(&r, &arena);
	for (int i = 0; i < r.ndiags; i++)
		errors += r.diags[i].severity == COMPILE_ERROR;
	is_int(errors, 6, "errors of both compilers");
	is_str(r.diags[0].file, "dir(1)/a.cu", "a file name with parentheses");
	is_int(r.diags[2].line, 7, "an error with a number");
	is_str(r.diags[2].text, "with a number", "which is not in its text");
	is_int(r.diags[3].ptx_line, 29, "a line of the PTX");
	compile_map_ptx(&r, "\t.file\t1 \"/tmp/a.cu\"\n\n\n.loc 1 3 5\n.loc\t1 12 2, x\n"
		"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n.loc 1 99 1\n", &arena);
	is_int(r.diags[3].line, 12, "which leads to a line of the source");
	is_str(r.diags[3].file, "/tmp/a.cu", "and to its file");
	is_int(r.diags[4].line, 0, "an error without a place has none");
}

/* ---- compiling ---- */

static const char source[] =
	"extern \"C\" __global__ void saxpy(int n, float a, const float *x, float *y)\n"
	"{\n"
	"	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	if (i < n) y[i] += a * x[i];\n"
	"}\n";

/* Make the files of the cache shorter, or change a byte. */
static int damage_cache(const char *dir, bool cut)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "%s/millrace/cubin", dir);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		int fd = entry->d_name[0] == '.' ? -1 : openat(dirfd(d), entry->d_name, O_RDWR);
		struct stat st;

		if (fd < 0)
			continue;
		if (fstat(fd, &st) || (cut ? ftruncate(fd, st.st_size - 7) :
				pwrite(fd, "damaged", 7, st.st_size - 50) != 7))
			diag("cannot damage %s", entry->d_name);
		close(fd);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void test_compile_errors(struct gpu *g, struct compile_job *job)
{
	struct compile_result r;

	job->name = "made.cu";
	job->source = "__global__ void k(float *y)\n{\n\ty[0] = zz;\n\ty[1] = \"s\";\n}\n";
	is_int(gpu_compile(g, job, NULL, &arena, &r, &err), ERR_INPUT, "a wrong source");
	ok(err.line == 3 && !strcmp(err.file, "made.cu"), "has its line and file in the error");
	ok(says(&err, "\"zz\" is undefined (and 1 more)"), "and what is wrong");
	ok(r.ndiags == 2 && r.diags[1].line == 4 && !r.cubin, "the second error is there too");
	is_int(gpu_failure(g), GPU_FAIL_JOB, "as a failure of the job");

	job->source = "#line 70 \"gemm.lua\"\n__device__ int f() { return q; }\n";
	ok(gpu_compile(g, job, NULL, &arena, &r, &err) && err.line == 70 &&
		!strcmp(err.file, "gemm.lua"), "#line is obeyed");

	job->source = "extern \"C\" __global__ void k(float *y)\n{\n\ty[0] = 1;\n"
		"\tasm volatile(\"bogus.thing;\");\n\ty[1] = 2;\n}\n";
	ok(gpu_compile(g, job, NULL, &arena, &r, &err) && err.line == 4 &&
		!strcmp(err.file, "made.cu"), "an error in inline PTX has its line of the source");

	job->source = "extern \"C\" __global__ void k(float *y)\n{\n"
		"\t__shared__ volatile float s[80000];\n\ts[threadIdx.x * 200] = 1;\n\ty[0] = s[5];\n}\n";
	ok(gpu_compile(g, job, NULL, &arena, &r, &err) && says(&err, "'k' uses too much shared data"),
		"an error of ptxas without a line");

	job->arch = "sm_9q";
	is_int(gpu_compile(g, job, NULL, &arena, &r, &err), ERR_INPUT, "no such architecture");
	ok(says(&err, "sm_9q"), "is named");
	job->arch = NULL;
	is_int(gpu_compile(g, job, NULL, &arena, &r, &err), ERR_INPUT, "none at all is refused");
}

static void test_compile(const char *cache)
{
	struct compile_job job = { .source = source, .arch = "sm_90a" };
	struct compile_result r, again;
	struct gpu *g = open_gpu();
	enum err_code code = gpu_compile(g, &job, NULL, &arena, &r, &err);

	if (code && gpu_failure(g) == GPU_FAIL_MISSING) {
		diag("%s", err.msg);
		for (int i = 0; i < 19; i++)
			skip("no NVRTC");
		gpu_free(g);
		return;
	}
	if (code)
		diag("%s", err.msg);
	ok(!code && r.cubin_bytes > 500 && !memcmp(r.cubin, "\177ELF", 4), "a binary is made");
	ok(r.nuses == 1 && !strcmp(r.uses[0].entry, "saxpy") && r.uses[0].registers > 3,
		"with the registers of its kernel");
	ok(!r.cached && r.nvrtc_major >= 11, "it is fresh");
	code = gpu_compile(g, &job, NULL, &arena, &again, &err);
	ok(!code && again.cached && again.cubin_bytes == r.cubin_bytes &&
		!memcmp(again.cubin, r.cubin, r.cubin_bytes), "the second time it is kept");
	ok(again.nuses == 1 && again.uses[0].registers == r.uses[0].registers, "with its log");
	job.fast_math = true;
	ok(!gpu_compile(g, &job, NULL, &arena, &again, &err) && !again.cached,
		"other options are another binary");
	job.fast_math = false;
	ok(damage_cache(cache, true) == 2 &&
		!gpu_compile(g, &job, NULL, &arena, &again, &err) && !again.cached,
		"a file cut short is ignored");
	damage_cache(cache, false);
	ok(!gpu_compile(g, &job, NULL, &arena, &again, &err) && !again.cached,
		"so is one that was changed");
	ok(!gpu_compile(g, &job, NULL, &arena, &again, &err) && again.cached, "both are replaced");
	test_compile_errors(g, &job);
	gpu_free(g);
}

static void test_cache(void)
{
	struct cubin_entry in = { "log", "binary", 6 }, out;

	ok(!cubin_cache_find("key", &out, &arena), "the cache has nothing");
	cubin_cache_keep("key", &in, &arena);
	ok(cubin_cache_find("key", &out, &arena) && !strcmp(out.log, "log") &&
		out.cubin_bytes == 6 && !memcmp(out.cubin, "binary", 6), "then what was put there");
	ok(!cubin_cache_find("keys", &out, &arena), "and nothing else");
}

/* ---- jobs that are wrong ---- */

static bool refused(const struct gpu_job *job, const char *text)
{
	err = (struct err){ 0 };
	return gpu_job_check(job, &err) == ERR_INPUT && says(&err, text);
}

static void test_job_check(void)
{
	struct gpu_tensor t = { .element = GPU_BF16, .rank = 2, .dims = { 8, 4 },
		.strides = { 0, 16 }, .box = { 8, 2 }, .swizzle = GPU_SWIZZLE_32 };
	struct simple s;

	saxpy_init(&s);
	ok(!gpu_job_check(&s.job, &err), "a good job");
	s.params[2].buffer = 2;
	ok(refused(&s.job, "names buffer 2 of 2"), "no such buffer");
	s.params[2].buffer = 0;
	s.params[2].offset = 400;
	ok(refused(&s.job, "starts at byte 400 of 400"), "an offset beyond the end");
	s.params[2].offset = 0;
	s.step.block[0] = 1025;
	ok(refused(&s.job, "1025 threads"), "too many threads");
	s.step.block[0] = 128;
	s.step.grid[0] = 3;
	s.step.cluster[0] = 2;
	ok(refused(&s.job, "not made of clusters of 2"), "a grid that clusters do not divide");
	s.step.cluster[0] = 0;
	s.params[2] = (struct gpu_param){ .kind = GPU_PARAM_TENSOR, .tensor = &t };
	ok(!gpu_job_check(&s.job, &err), "a tensor map");
	t.dims[1] = 26;
	ok(refused(&s.job, "reaches to byte 416 of a buffer of 400"), "one beyond its buffer");
	t.dims[1] = 4;
	t.box[0] = 24;
	ok(refused(&s.job, "more than its swizzle's 32"), "one wider than its swizzle");
	t.box[0] = 7;
	ok(refused(&s.job, "no multiple of 16"), "one of 14 bytes");
	t.box[0] = 8;
	t.strides[1] = 24;
	ok(refused(&s.job, "stride 24"), "one with an odd stride");
	saxpy_init(&s);
	s.step.binary = 1;
	ok(refused(&s.job, "'saxpy' is of binary 1 of 1"), "no such binary");
	s.job.binaries = (struct gpu_binary[]){ { FAKE_BINARY, sizeof(FAKE_BINARY) },
		{ FAKE_BINARY, 0 } };
	s.job.nbinaries = 2;
	ok(refused(&s.job, "binary 1 is empty"), "one without contents");
	saxpy_init(&s);
	s.job.nsteps = 0;
	ok(refused(&s.job, "1 to"), "a job that does nothing");
}

/* ---- the protocol ---- */

static void make_message(struct wire *w, struct simple *s, struct gpu_tensor *t)
{
	saxpy_init(s);
	s->params[2] = (struct gpu_param){ .kind = GPU_PARAM_TENSOR, .tensor = t };
	s->job.nbinaries = 2;
	s->step.binary = 1;
	*w = (struct wire){ .arena = &arena };
	put_gpu_job(w, &s->job);
}

static bool within(const void *p, size_t n, const unsigned char *share, size_t bytes)
{
	const unsigned char *start = p;

	return !p || (start >= share && start <= share + bytes &&
		n <= bytes - (size_t)(start - share));
}

/* All of a job's memory is in the mapping. */
static bool in_place(const struct gpu_job *job, const unsigned char *share, size_t bytes)
{
	bool good = true;

	for (int i = 0; i < job->nbinaries; i++)
		good = good && within(job->binaries[i].image, job->binaries[i].bytes, share, bytes);
	for (int i = 0; i < job->nbuffers; i++)
		good = good && within(job->buffers[i].from, job->buffers[i].bytes, share, bytes) &&
			within(job->buffers[i].to, job->buffers[i].bytes, share, bytes);
	return good;
}

/* No message, cut or changed anywhere, makes the reader leave its bounds: the address
 * sanitizer watches. What it lets through is a job of which every part is in place. */
static void test_messages(void)
{
	static unsigned char share[4096];
	struct gpu_tensor t = { .element = GPU_BF16, .rank = 1 };
	struct prng rng = { 1 };
	struct simple s;
	struct gpu_job job;
	struct wire w, copy;
	int taken = 0, astray = 0;

	make_message(&w, &s, &t);
	for (size_t n = 0; n < w.len; n++) {
		unsigned char *exact = malloc(n ? n : 1);

		memcpy(exact, w.data, n);
		copy = (struct wire){ .data = exact, .len = n };
		get_shared_job(&copy, &job, share, sizeof(share), &arena);
		taken += !copy.bad;
		free(exact);
	}
	is_int(taken, 0, "a message that is cut is refused");
	copy = (struct wire){ .data = w.data, .len = w.len };
	get_shared_job(&copy, &job, share, sizeof(share), &arena);
	ok(!copy.bad && copy.pos == w.len && job.nsteps == 1 && job.steps[0].nparams == 4 &&
		job.steps[0].binary == 1 && job.nbinaries == 2 &&
		job.binaries[1].bytes == BINARIES[1].bytes && !strcmp(job.buffers[1].name, "y"), "a whole one is understood");
	for (int i = 0; i < 20000; i++) {
		unsigned char *one = &w.data[prng_below(&rng, (uint32_t)w.len)], was = *one;
		struct arena_mark mark = arena_mark(&arena);

		*one = (unsigned char)prng_next(&rng);
		copy = (struct wire){ .data = w.data, .len = w.len };
		get_shared_job(&copy, &job, share, sizeof(share), &arena);
		astray += !copy.bad && !in_place(&job, share, sizeof(share));
		if (!copy.bad && gpu_job_check(&job, &err))
			taken++;
		arena_reset(&arena, mark);
		*one = was;
	}
	is_int(astray, 0, "20000 damaged ones did no harm");
	ok(taken > 0, "some were only seen to be wrong by what they say");
}

/* ---- running ---- */

static void test_run(void)
{
	struct simple s;
	struct gpu *g = open_gpu();
	struct gpu_info info;
	struct gpu_result r;

	is_int(gpu_probe(g, NULL, &info, &err), OK, "there is a device");
	is_str(info.name, "Fake H200", "it has a name");
	is_str(info.arch, "sm_90a", "and an architecture");
	ok(info.sms == 132 && info.l2 == 4 << 20 && info.memory_total == 256 << 20 &&
		info.memory_free == 256 << 20 && info.driver_major == 13, "and its numbers");
	saxpy_init(&s);
	err.msg[0] = '\0';
	is_int(gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err), OK, "a kernel runs");
	ok(saxpy_right(&s, 1), "and computes");
	ok(r.runs == 1 && r.ms[0] > 0, "it has a time");
	saxpy_init(&s);
	struct gpu_step twice[] = { s.step, { .kind = GPU_STEP_FILL, .buffer = 0 }, s.step };
	s.job.steps = twice;
	s.job.nsteps = 3;
	ok(!run(g, &s.job, PATIENT) && saxpy_right(&s, 1), "steps run in order, fills among them");
	saxpy_init(&s);
	struct gpu_step before[] = { s.step, { .kind = GPU_STEP_FILL, .once = true, .buffer = 1 } };
	s.job.steps = before;
	s.job.nsteps = 2;
	ok(!run(g, &s.job, PATIENT) && s.y[0] == 0 && s.y[99] == 198, "but those that come once, before");
	s.job.mode = GPU_BENCH;
	s.buffers[1].rotate = true;
	s.job.bench = (struct gpu_bench){ .runs_min = 4, .runs_max = 4, .copies = 2 };
	ok(!run(g, &s.job, PATIENT) && s.y[1] > 0 && s.y[1] < 1000 && s.y[99] == 99 * s.y[1],
		"for each copy of what rotates");
	saxpy_init(&s);
	s.buffers[0].init = GPU_INIT_WORD;
	s.buffers[0].word = 0x3f000000;	/* 0.5f */
	ok(!run(g, &s.job, PATIENT) && s.y[0] == 1001 && s.y[99] == 1001, "a buffer of one word");
	gpu_free(g);
}

/* A step runs a kernel of its own binary; all binaries are gone after the job. */
static void test_binaries(void)
{
	struct gpu *g = open_gpu();
	struct gpu_step steps[2];
	struct gpu_buffer buffers[3];
	struct gpu_param who = { .kind = GPU_PARAM_POINTER, .buffer = 2 };
	struct gpu_info info;
	uint64_t y = 0;
	struct simple s;

	saxpy_init(&s);
	memcpy(buffers, s.buffers, sizeof(s.buffers));
	buffers[2] = (struct gpu_buffer){ .bytes = sizeof(y), .to = &y };
	steps[0] = s.step;
	steps[1] = (struct gpu_step){ .binary = 1, .entry = "pid", .params = &who, .nparams = 1 };
	s.job = (struct gpu_job){ .binaries = BINARIES, .nbinaries = 2, .buffers = buffers,
		.nbuffers = 3, .steps = steps, .nsteps = 2 };
	ok(!run(g, &s.job, PATIENT) && saxpy_right(&s, 1) && y, "kernels of two binaries run");
	steps[0].binary = 1;
	ok(run(g, &s.job, PATIENT) && gpu_failure(g) == GPU_FAIL_BINARY && says(&err, "'saxpy'"),
		"a kernel is looked for in its step's binary");
	ok(!gpu_probe(g, NULL, &info, &err) && info.memory_free == info.memory_total,
		"and no binary stays loaded");
	gpu_free(g);
}

static void test_launch_numbers(void)
{
	struct gpu_tensor t = { .element = GPU_BF16, .rank = 3, .dims = { 8, 4, 2 },
		.strides = { 0, 16, 64 }, .box = { 8, 2, 1 }, .step = { 0, 2 },
		.swizzle = GPU_SWIZZLE_128, .promotion = GPU_PROMOTE_256 };
	struct gpu *g = open_gpu();
	uint32_t y[12] = { 0 };
	uint64_t m[16] = { 0 };
	struct simple s;

	simple_init(&s, "shape");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER };
	s.step.nparams = 1;
	s.step = (struct gpu_step){ .entry = "shape", .grid = { 8, 6, 2 }, .block = { 64, 4 },
		.cluster = { 2, 3 }, .smem = 200000, .cooperative = true, .early = true, .params = s.params,
		.nparams = 1 };
	s.buffers[0] = (struct gpu_buffer){ .bytes = sizeof(y), .to = y };
	static const uint32_t want[] = { 8, 6, 2, 64, 4, 1, 200000, 2, 3, 1, 1, 1 };
	ok(!run(g, &s.job, PATIENT) && !memcmp(y, want, sizeof(y)),
		"grid, block, shared memory, cluster, cooperation and an early start arrive");

	simple_init(&s, "map");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_TENSOR, .tensor = &t, .offset = 16 };
	s.params[1] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s.step.nparams = 2;
	s.buffers[1] = (struct gpu_buffer){ .bytes = sizeof(m), .to = m };
	ok(!run(g, &s.job, PATIENT) && m[0] % 256 == 16 &&
		m[1] == (9u | 3u << 8 | 3u << 16 | 3u << 24) && m[2] == 8 && m[4] == 2 &&
		m[7] == 16 && m[8] == 64 && m[12] == (2ull << 32 | 2) &&
		m[13] == (1ull << 32 | 1), "so does a tensor map");
	gpu_free(g);
}

static void test_bench(void)
{
	struct gpu *g = open_gpu();
	static char zeros[2 << 20];
	uint64_t y[64] = { 0 };
	struct gpu_result r;
	struct simple s;
	int distinct = 1;

	simple_init(&s, "where");
	s.buffers[0] = (struct gpu_buffer){ .bytes = sizeof(zeros), .init = GPU_INIT_HOST,
		.from = zeros, .rotate = true };
	s.buffers[1] = (struct gpu_buffer){ .bytes = sizeof(y), .init = GPU_INIT_WORD, .to = y };
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER };
	s.params[1] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s.step.nparams = 2;
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .warmup = 1e-3, .seconds = 0.01, .runs_min = 300 };
	is_int(gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err), OK, "a benchmark");
	ok(r.runs >= 300, "takes as many runs as asked");
	ok(fabs(r.ms[0] - 0.05) < 1e-6 && fabs(r.ms[r.runs - 1] - 0.05) < 1e-6,
		"each with its time");
	is_int(r.copies, 5, "of inputs that together exceed twice the L2");
	while (distinct < 60 && y[1 + distinct] != y[1])
		distinct++;
	is_int(distinct, 5, "and that the runs take in turn");
	s.job.bench = (struct gpu_bench){ .seconds = 1e9, .runs_max = 7, .copies = 2 };
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.runs == 7 && r.copies == 2,
		"it stops after as many runs as asked");
	gpu_free(g);
}

/* What a benchmark of two runs, over so many copies of an input, finds in an L2 of 4 MiB. */
static enum gpu_cache cache_of(struct gpu *g, size_t input, int copies)
{
	struct gpu_result r = { 0 };
	struct simple s;

	saxpy_init(&s);
	s.buffers[0] = (struct gpu_buffer){ .bytes = input, .init = GPU_INIT_WORD, .rotate = true };
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .runs_min = 2, .runs_max = 2, .copies = copies };
	if (gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err))
		diag("%s", err.msg);
	return r.cache;
}

static void test_cache_state(void)
{
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct simple s;

	is_int(cache_of(g, 1 << 20, 0), GPU_CACHE_COLD, "copies beyond the L2 leave it cold");
	is_int(cache_of(g, 1 << 20, 3), GPU_CACHE_WARM, "too few of them, warm");
	is_int(cache_of(g, 5 << 20, 1), GPU_CACHE_COLD, "an input beyond it needs none");
	saxpy_init(&s);
	ok(!gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err) && r.cache == GPU_CACHE_UNKNOWN,
		"of a single run nothing is known");
	is_str(gpu_cache_name(GPU_CACHE_COLD), "cold L2", "by name");
	ok(!gpu_cache_name(GPU_CACHE_UNKNOWN), "or by none");
	gpu_free(g);
}

/* Of three runs that take so long each, by a new worker. */
static double watts_of(int us)
{
	struct gpu *g = open_gpu();
	struct gpu_result r = { 0 };
	struct simple s;

	simple_init(&s, "last");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = (uint64_t)us };
	s.step.nparams = 1;
	s.job.mode = GPU_BENCH;
	s.job.bench = (struct gpu_bench){ .runs_min = 3, .runs_max = 3 };
	if (gpu_run(g, &s.job, PATIENT, NULL, &arena, &r, &err))
		diag("%s", err.msg);
	gpu_free(g);
	return r.watts;
}

static void test_watts(void)
{
	ok(fabs(watts_of(1000000) - 7 / 3.0) < 1e-6, "mean power is energy over time");
	ok(watts_of(90000) == 0, "of 0.27 s it is not known");
	setenv("FAKE_NVML_MIG", "1", 1);
	ok(watts_of(1000000) == 0, "nor of a partition");
	unsetenv("FAKE_NVML_MIG");
	setenv("MILLRACE_LIBNVML", old_board, 1);
	ok(watts_of(1000000) == 0, "nor without a counter");
	setenv("MILLRACE_LIBNVML", board, 1);
}

/* ---- what goes wrong ---- */

static void fails(struct gpu *g, const char *entry, enum gpu_failure want, const char *text)
{
	struct simple s;
	char name[80];

	simple_init(&s, entry);
	ok(run(g, &s.job, PATIENT) && says(&err, text), entry);
	snprintf(name, sizeof(name), "'%s' is a failure of its kind", entry);
	is_int(gpu_failure(g), want, name);
	snprintf(name, sizeof(name), "after '%s' the next job works", entry);
	ok(still_works(g), name);
}

static void test_failures(void)
{
	struct gpu *g = open_gpu();
	struct simple s;
	double start;

	simple_init(&s, "hang");
	start = clock_seconds();
	is_int(run(g, &s.job, 0.2), ERR_LIMIT, "a kernel that hangs");
	ok(seconds_since(start) < PATIENT, "is stopped");
	ok(says(&err, "'hang' did not finish within 0.2 s"), "and said to be");
	is_int(gpu_failure(g), GPU_FAIL_TIMEOUT, "as a time-out");
	ok(still_works(g), "after it the next job works");
	s.job.mode = GPU_BENCH;
	ok(run(g, &s.job, 0.1) && gpu_failure(g) == GPU_FAIL_TIMEOUT, "benchmarking it, too");

	fails(g, "fault", GPU_FAIL_FAULT, "cuStreamSynchronize after 'fault' failed with "
		"CUDA_ERROR_ILLEGAL_ADDRESS (the fake driver says so); a kernel touched memory");
	fails(g, "refuse", GPU_FAIL_LAUNCH, "cuLaunchKernelEx of 'refuse' failed");
	fails(g, "crash", GPU_FAIL_WORKER, "an assertion failed (while running 'crash')");
	fails(g, "quit", GPU_FAIL_WORKER, "ended with status 7");
	fails(g, "babble", GPU_FAIL_WORKER, "a malformed message");
	fails(g, "none", GPU_FAIL_BINARY, "cuModuleGetFunction of 'none'");
	gpu_free(g);
}

static void test_refusals(void)
{
	struct gpu *g = open_gpu();
	struct simple s;

	saxpy_init(&s);
	s.buffers[0] = (struct gpu_buffer){ .name = "big", .bytes = (size_t)1 << 30 };
	is_int(run(g, &s.job, PATIENT), ERR_LIMIT, "more memory than there is");
	ok(says(&err, "cuMemAlloc of 1.0 GiB for 'big' failed with CUDA_ERROR_OUT_OF_MEMORY") &&
		says(&err, "256.0 MiB of 256.0 MiB are free"), "is told with what there is");
	is_int(gpu_failure(g), GPU_FAIL_MEMORY, "as a failure of memory");
	ok(still_works(g), "after it the next job works");

	saxpy_init(&s);
	s.job.binaries = &(struct gpu_binary){ "FAKE80", 7 };
	ok(run(g, &s.job, PATIENT) && gpu_failure(g) == GPU_FAIL_BINARY && says(&err, "architecture"),
		"a binary for another device");
	saxpy_init(&s);
	s.params[1].kind = GPU_PARAM_BITS64;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "parameter 1 of 'saxpy' has 4 bytes"),
		"a parameter of another size");
	saxpy_init(&s);
	s.step.nparams = 3;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "takes 4 parameters, the job gives it 3"),
		"one too few");
	saxpy_init(&s);
	s.step.smem = 232000;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "232448"),
		"more shared memory than there is");
	saxpy_init(&s);
	s.step.block[0] = 1024;
	ok(run(g, &s.job, PATIENT) == ERR_INPUT && says(&err, "at most 512 threads"),
		"more threads than it was compiled for");

	simple_init(&s, "overrun");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	s.params[1] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 100 };
	s.step.nparams = 2;
	ok(run(g, &s.job, PATIENT) && gpu_failure(g) == GPU_FAIL_OVERRUN &&
		says(&err, "'y' was written to beyond its end, first at byte 0"), "a write past the end");
	ok(still_works(g), "after all of it the next job works");

	mem.cap = mem.used + 100000;
	saxpy_init(&s);
	s.buffers[0] = (struct gpu_buffer){ .bytes = 1 << 20, .init = GPU_INIT_HOST,
		.from = s.x };
	ok(run(g, &s.job, PATIENT) == ERR_LIMIT && gpu_failure(g) == GPU_FAIL_MEMORY,
		"the cap on the shell's memory holds for a job's");
	mem.cap = 0;
	gpu_free(g);
}

static void test_no_driver(void)
{
	struct gpu_info info;
	struct gpu *g = open_gpu();

	setenv("FAKE_CUDA_INIT", "100", 1);
	ok(gpu_probe(g, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING &&
		says(&err, "cuInit failed with CUDA_ERROR_NO_DEVICE"), "a driver without a device");
	unsetenv("FAKE_CUDA_INIT");
	gpu_close(g);
	setenv("MILLRACE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
	ok(gpu_probe(g, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING &&
		says(&err, "MILLRACE_LIBCUDA") && says(&err, "/nowhere/libcuda.so.1"),
		"a library that is none");
	gpu_close(g);
	unsetenv("MILLRACE_LIBCUDA");
	if (gpu_probe(g, NULL, &info, &err) && gpu_failure(g) == GPU_FAIL_MISSING) {
		diag("%s", err.msg);
		ok(*err.msg, "without a driver there is a reason");
	} else {
		skip("there is a driver");
	}
	setenv("MILLRACE_LIBCUDA", fake, 1);
	gpu_close(g);
	ok(!gpu_probe(g, NULL, &info, &err), "the next worker looks again");
	gpu_free(g);
	gpu_new(&mem, 3, &g);
	ok(gpu_probe(g, NULL, &info, &err) && says(&err, "there is no device 3"), "a device too many");
	gpu_free(g);
}

/* ---- the state of the board ---- */

/* "NAME=VALUE;NAME=VALUE" */
static void set_variables(const char *variables, bool on)
{
	char text[200], *at = text, *one;

	snprintf(text, sizeof(text), "%s", variables);
	while ((one = strsep(&at, ";")) && *one) {
		char *value = strchr(one, '=');

		*value++ = '\0';
		if (on)
			setenv(one, value, 1);
		else
			unsetenv(one);
	}
}

/* By a new worker, which sees these variables. */
static struct gpu_info probe_with(const char *variables)
{
	struct gpu *g = open_gpu();
	struct gpu_info info;

	set_variables(variables, true);
	if (gpu_probe(g, NULL, &info, &err))
		diag("%s", err.msg);
	set_variables(variables, false);
	gpu_free(g);
	return info;
}

static void trouble_is(const char *variables, const char *want, const char *title)
{
	struct gpu_info info = probe_with(variables);
	char text[GPU_TROUBLE_MAX];
	bool any = gpu_trouble(&info, text);

	is_str(text, want, title);
	if (any != (*want != '\0'))
		ok(false, "and it says that there is any");
}

static void test_board(void)
{
	struct gpu_info info = probe_with("");

	is_str(info.board.driver, "580.159.03", "the driver's version");
	ok(info.board.power_limit == 700 && info.board.clock == 1980e6, "limit and clock");
	ok(info.board.others_known && !info.board.others && !info.board.partition && !info.board.utilisation,
		"a board that is ours alone");
	info = probe_with("FAKE_NVML_PIDS=71 72;FAKE_NVML_USE=40");
	ok(info.board.others_known && info.board.others == 2 && info.board.utilisation == 40,
		"other processes, and the use before ours");
}

static void test_trouble(void)
{
	trouble_is("", "", "no trouble");
	trouble_is("FAKE_NVML_PIDS=71;FAKE_NVML_USE=40",
		"another process (pid 71) is on it, 40 % in use", "another process");
	trouble_is("FAKE_NVML_PIDS=71", "another process (pid 71) is on it", "one that idles");
	trouble_is("FAKE_NVML_PIDS=71 72", "2 other processes (one is pid 72) are on it", "two");
	trouble_is("FAKE_NVML_PIDS=71;FAKE_NVML_HIDDEN=1", "",
		"where our process is not seen, no other is believed");
	trouble_is("FAKE_NVML_PIDS=71;FAKE_NVML_HIDDEN=1;FAKE_NVML_USE=40",
		"something else is on it, 40 % in use", "but its work is");
	trouble_is("FAKE_NVML_HIDDEN=1;FAKE_NVML_USE=9", "", "unless there is little");
	trouble_is("FAKE_NVML_USE=40", "", "with nobody there it was work that has ended");
	trouble_is("FAKE_NVML_MIG=1;FAKE_CUDA_SMS=60;FAKE_NVML_PIDS=71",
		"it is a part of a board (MIG), with 60 SMs", "a partition");
	trouble_is("FAKE_CUDA_NAME=NVIDIA H200 MIG 3g.71gb;FAKE_CUDA_SMS=60;FAKE_NVML_REFUSES=1",
		"it is a part of a board (MIG), with 60 SMs", "by its name alone");
	trouble_is("FAKE_NVML_REASONS=0x5", "", "idle, or at its power limit");
	trouble_is("FAKE_NVML_REASONS=0x48", "its clock is held down: it is too hot", "heat");
	trouble_is("FAKE_NVML_REASONS=0x20", "its clock is held down: it is too hot",
		"heat that software sees");
	trouble_is("FAKE_NVML_REASONS=0x88",
		"its clock is held down: the machine's power supply asks for it", "a brake");
	trouble_is("FAKE_NVML_REASONS=0x8",
		"its clock is held down: the hardware does so, without a reason", "neither");
	trouble_is("FAKE_NVML_REASONS=0x10",
		"its clock is held down: it goes with that of other devices (sync boost)",
		"sync boost");
	trouble_is("FAKE_NVML_REASONS=0x2;FAKE_NVML_MHZ=1200", "its clock is set to 1200 of 1980 "
		"MHz (nvidia-smi -rac and -rgc reset it)", "a clock that was set");
	trouble_is("FAKE_NVML_REASONS=0x2", "", "to the highest");
}

static bool nothing_known(const struct gpu_info *info)
{
	return info->sms == 132 && !info->board.driver[0] && !info->board.power_limit &&
		!info->board.clock && !info->board.throttle && !info->board.others_known &&
		!info->board.utilisation && !info->board.partition;
}

/* Whatever the management library lacks, there is a device. */
static void test_board_unknown(void)
{
	struct gpu_info info;

	setenv("MILLRACE_LIBNVML", "/nowhere/libnvidia-ml.so.1", 1);
	info = probe_with("");
	ok(nothing_known(&info), "without the library, nothing is known of the board");
	setenv("MILLRACE_LIBNVML", fake, 1);
	info = probe_with("");
	ok(nothing_known(&info), "nor by one that is none");
	setenv("MILLRACE_LIBNVML", old_board, 1);
	trouble_is("FAKE_NVML_REASONS=0x40", "its clock is held down: it is too hot",
		"an old one says what it can");
	info = probe_with("");
	ok(nothing_known(&info), "and no more");
	setenv("MILLRACE_LIBNVML", board, 1);
	info = probe_with("FAKE_NVML_INIT=9");
	ok(nothing_known(&info), "one that does not begin says nothing");
	info = probe_with("FAKE_NVML_REFUSES=1");
	ok(nothing_known(&info), "nor one that refuses everything");
}

/* What we did ourselves is not taken for another's work. */
static void test_own_use(void)
{
	struct gpu *g = open_gpu();
	struct gpu_info info;

	setenv("FAKE_NVML_USE", "90", 1);
	ok(still_works(g) && !gpu_probe(g, NULL, &info, &err) && info.board.utilisation == 0,
		"after a job, the use is ours");
	unsetenv("FAKE_NVML_USE");
	gpu_free(g);
}

/* ---- interrupts, deaths and jumps ---- */

static volatile int stop_flag;

static void set_stop(int sig)
{
	(void)sig;
	stop_flag = 1;
}

static void test_interrupt(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 100000 } };
	struct stop stop = { &stop_flag };
	struct gpu *g = open_gpu();
	struct gpu_result r;
	struct simple s;
	double start = clock_seconds();

	simple_init(&s, "hang");
	signal(SIGALRM, set_stop);
	setitimer(ITIMER_REAL, &soon, NULL);
	is_int(gpu_run(g, &s.job, 1000, &stop, &arena, &r, &err), ERR_INTERRUPTED, "an interrupt");
	ok(seconds_since(start) < PATIENT, "ends the wait");
	is_int(gpu_failure(g), GPU_FAIL_STOPPED, "and is no failure of the job");
	stop_flag = 0;
	ok(still_works(g), "after it the next job works");
	gpu_free(g);
}

static pid_t worker_pid(struct gpu *g)
{
	int64_t y = 0;
	struct simple s;

	simple_init(&s, "pid");
	s.params[0] = (struct gpu_param){ .kind = GPU_PARAM_POINTER };
	s.step.nparams = 1;
	s.buffers[0] = (struct gpu_buffer){ .bytes = sizeof(y), .to = &y };
	return run(g, &s.job, PATIENT) ? 0 : (pid_t)y;
}

static void test_idle_death(void)
{
	struct gpu *g = open_gpu();
	pid_t pid = worker_pid(g);

	ok(pid > 0 && worker_pid(g) == pid, "one worker serves job after job");
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	ok(worker_pid(g) > 0 && worker_pid(g) != pid, "one that was killed idle is replaced");
	gpu_free(g);
}

/* The shell is killed while a kernel hangs, which makes a file when it does. */
static void test_orphan(const char *cache)
{
	int ends[2], status;
	pid_t shell, worker = 0;
	double start = clock_seconds();
	char hangs[PATH_MAX];

	snprintf(hangs, sizeof(hangs), "%s/hangs", cache);
	setenv("FAKE_CUDA_HANGS", hangs, 1);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe(ends))
		BUG("no pipe");
	fflush(stdout);
	shell = fork();
	if (!shell) {
		struct gpu *g = open_gpu();
		struct simple s;

		worker = worker_pid(g);
		if (write(ends[1], &worker, sizeof(worker)) < 0)
			_exit(1);
		simple_init(&s, "hang");
		_exit(run(g, &s.job, 1000) ? 1 : 0);
	}
	ok(read(ends[0], &worker, sizeof(worker)) == sizeof(worker) && worker > 0,
		"a shell has a worker");
	close(ends[0]);
	close(ends[1]);
	while (access(hangs, F_OK) && seconds_since(start) < PATIENT)
		usleep(1000);
	unsetenv("FAKE_CUDA_HANGS");
	kill(shell, SIGKILL);
	waitpid(shell, &status, 0);
	while (waitpid(worker, &status, WNOHANG) == 0 && seconds_since(start) < PATIENT)
		usleep(1000);
	ok(seconds_since(start) < PATIENT, "which does not outlive it");
}

static jmp_buf out_of_memory;

static void jump(void *ud, size_t want)
{
	(void)ud;
	(void)want;
	longjmp(out_of_memory, 1);
}

/* Every allocation of opening, probing and running fails in turn; freeing the object
 * is enough then. */
static void test_jumps(void)
{
	static struct mem small;
	static struct gpu *g;
	static struct arena results;
	static volatile uint64_t k;
	volatile bool leaked = false, done = false;
	int files = open_files();
	static struct simple s;

	for (k = 1; !done && k < 100; k++) {
		small = (struct mem){ .fail = jump, .fail_at = k };
		arena_init(&results, &small);
		saxpy_init(&s);
		g = NULL;
		if (!setjmp(out_of_memory)) {
			struct gpu_info info;
			struct gpu_result r;

			gpu_new(&small, 0, &g);
			if (gpu_probe(g, NULL, &info, &err) ||
			    gpu_run(g, &s.job, PATIENT, NULL, &results, &r, &err))
				diag("%s", err.msg);
			done = true;
		}
		if (k % 2 && g && !done) {	/* or go on with it */
			struct gpu_result r;

			small.fail_at = 0;
			saxpy_init(&s);
			if (gpu_run(g, &s.job, PATIENT, NULL, &results, &r, &err) ||
			    !saxpy_right(&s, 1))
				diag("%s", err.msg);
		}
		arena_release(&results);
		gpu_free(g);
		leaked = leaked || small.used || open_files() != files || have_children();
	}
	ok(done && k > 5, "every allocation failed once");
	ok(!leaked, "and nothing was left over");
}

/* ---- all ---- */

/* The fake libraries lie in fake/ beside the folder of this program. */
static void find_fake(void)
{
	ssize_t n = readlink("/proc/self/exe", fake, sizeof(fake) - 32);

	fake[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 2 && strrchr(fake, '/'); i++)
		*strrchr(fake, '/') = '\0';
	strcat(fake, "/fake/");
	strcpy(board, fake);
	strcpy(old_board, fake);
	strcat(fake, "fake_cuda.so");
	strcat(board, "fake_nvml.so");
	strcat(old_board, "fake_nvml_old.so");
}

static void remove_tree(const char *dir)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command))
		diag("cannot remove %s", dir);
}

int main(int argc, char **argv)
{
	char cache[] = "/tmp/millrace-test-XXXXXX";
	int files;

	if (gpu_worker_asked(argc, argv))
		return gpu_worker_main(argc, argv);
	find_fake();
	if (!mkdtemp(cache))
		BUG("no folder for the test");
	setenv("XDG_CACHE_HOME", cache, 1);
	setenv("MILLRACE_LIBCUDA", fake, 1);
	setenv("MILLRACE_LIBNVML", board, 1);
	arena_init(&arena, &mem);
	files = open_files();

	test_log();
	test_error_log();
	test_compile(cache);
	test_cache();
	test_job_check();
	test_messages();
	test_run();
	test_binaries();
	test_launch_numbers();
	test_bench();
	test_cache_state();
	test_watts();
	test_failures();
	test_refusals();
	test_no_driver();
	test_board();
	test_trouble();
	test_board_unknown();
	test_own_use();
	test_interrupt();
	test_idle_death();
	test_orphan(cache);
	test_jumps();

	is_int(open_files(), files, "no descriptor is left over");
	ok(!have_children(), "no process is left over");
	arena_release(&arena);
	is_int((long long)mem.used, 0, "no memory is left over");
	remove_tree(cache);
	return tap_done();
}
