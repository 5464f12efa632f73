/* libraries.h - the functions of CUDA and HIP that Millrace calls, loaded at run time.
 *
 * CUDA's driver (libcuda.so.1), its run-time compiler (libnvrtc) and the management library (NVML, libnvidia-ml.so.1),
 * AMD's runtime (libamdhip64.so) and its compiler (libhiprtc.so) are opened with dlopen. So the program runs where they are missing, and is built
 * without their headers. The declarations here cover only what is used; tests/unit/cuda_declarations.c compares them
 * with cuda.h and nvml.h where those are installed. Handles are pointers to the structs of the same names; results are
 * ints, 0 for success.
 *
 * Only the worker process opens the drivers and NVML. Libraries are never closed.
 */
#ifndef GPU_LIBRARIES_H
#define GPU_LIBRARIES_H

#include "base/arena.h"
#include "base/err.h"
#include "gpu/job.h"

struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUstream_st;
struct _nvrtcProgram;
struct nvmlDevice_st;

typedef uint64_t device_ptr;		/* CUdeviceptr */

/* ---- constants of the driver ---- */

/* HIP has the same numbers for those that it has. */
enum cuda_result {
	CUDA_OK = 0,
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_STUB_LIBRARY = 34,
	CUDA_DEVICE_UNAVAILABLE = 46,
	CUDA_NO_DEVICE = 100,
	CUDA_INVALID_DEVICE = 101,
	CUDA_INVALID_IMAGE = 200,
	CUDA_NO_BINARY_FOR_GPU = 209,
	CUDA_ECC_UNCORRECTABLE = 214,
	CUDA_INVALID_PTX = 218,
	CUDA_UNSUPPORTED_PTX_VERSION = 222,
	CUDA_NOT_FOUND = 500,
	CUDA_ILLEGAL_ADDRESS = 700,
	CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
	CUDA_LAUNCH_TIMEOUT = 702,
	CUDA_ASSERT = 710,
	CUDA_HARDWARE_STACK = 714,
	CUDA_ILLEGAL_INSTRUCTION = 715,
	CUDA_MISALIGNED_ADDRESS = 716,
	CUDA_INVALID_ADDRESS_SPACE = 717,
	CUDA_INVALID_PC = 718,
	CUDA_LAUNCH_FAILED = 719,
	CUDA_COOPERATIVE_TOO_LARGE = 720,
	CUDA_NOT_SUPPORTED = 801,
	CUDA_SYSTEM_NOT_READY = 802,
	CUDA_DRIVER_MISMATCH = 803,
	CUDA_COMPAT_NOT_SUPPORTED = 804,
	CUDA_CAPTURE_INVALID = 901,
	CUDA_INVALID_CLUSTER_SIZE = 912,
	CUDA_UNKNOWN = 999,
};

enum cuda_device_attribute {
	CUDA_DEV_MAX_THREADS_PER_BLOCK = 1,
	CUDA_DEV_CLOCK_RATE = 13,	/* kHz */
	CUDA_DEV_SM_COUNT = 16,
	CUDA_DEV_MEMORY_CLOCK_RATE = 36,	/* kHz */
	CUDA_DEV_BUS_WIDTH = 37,	/* bits */
	CUDA_DEV_L2_BYTES = 38,
	CUDA_DEV_MAJOR = 75,
	CUDA_DEV_MINOR = 76,
	CUDA_DEV_SMEM_PER_SM = 81,
	CUDA_DEV_REGISTERS_PER_SM = 82,
	CUDA_DEV_SMEM_OPTIN = 97,
};

/* hipDeviceAttribute_t, whose numbers are the same since ROCm 5. */
enum hip_device_attribute {
	HIP_DEV_CLOCK_RATE = 5,		/* kHz */
	HIP_DEV_L2_BYTES = 19,
	HIP_DEV_BUS_WIDTH = 59,		/* bits */
	HIP_DEV_MEMORY_CLOCK_RATE = 60,	/* kHz */
	HIP_DEV_CU_COUNT = 63,
	HIP_DEV_SMEM_PER_BLOCK = 74,
};

/* Numbers that HIP has alone. */
enum hip_result {
	HIP_INVALID_CONFIGURATION = 9,
	HIP_RUNTIME_MEMORY = 1052,	/* of ROCr, which HIP's runtime calls */
	HIP_RUNTIME_OTHER = 1053,
};

/* hipDeviceProp_tR0600, of which only the name of the architecture is read, "gfx942:sramecc+:xnack-": no attribute has
 * it. */
enum { HIP_PROPERTIES_BYTES = 1472, HIP_PROPERTIES_ARCH = 1160, HIP_PROPERTIES_ARCH_BYTES = 256 };

/* The first of these have the same numbers in HIP. */
enum cuda_function_attribute {
	CUDA_FUNC_MAX_THREADS = 0,
	CUDA_FUNC_STATIC_SMEM = 1,
	CUDA_FUNC_REGISTERS = 4,
	CUDA_FUNC_MAX_DYNAMIC_SMEM = 8,
	CUDA_FUNC_NON_PORTABLE_CLUSTER = 14,
};

enum cuda_launch_attribute_id {
	CUDA_LAUNCH_COOPERATIVE = 2,
	CUDA_LAUNCH_CLUSTER = 4,
	CUDA_LAUNCH_EARLY = 6,		/* "programmatic stream serialization" */
};

struct cuda_launch_attribute {
	int id;				/* enum cuda_launch_attribute_id */
	char pad[4];
	union {
		char all[64];
		struct {
			unsigned x, y, z;
		} cluster;
		int cooperative, early;
		uint64_t aligned;
	} value;
};

struct cuda_launch_config {
	unsigned grid[3], block[3];
	unsigned smem;
	struct CUstream_st *stream;
	struct cuda_launch_attribute *attributes;
	unsigned nattributes;
};

enum { CUDA_TENSOR_MAP_ALIGN = 64, CUDA_STREAM_NON_BLOCKING = 1, CUDA_CAPTURE_OF_THREAD = 1 };

struct cuda_tensor_map {
	_Alignas(CUDA_TENSOR_MAP_ALIGN) uint64_t opaque[16];
};

/* NVML's reasons why the clock is not higher; bits. */
enum nvml_reason {
	NVML_CLOCK_SETTING = 0x2,	/* "applications clocks setting" */
	NVML_HW_SLOWDOWN = 0x8,
	NVML_SYNC_BOOST = 0x10,
	NVML_SW_THERMAL = 0x20,
	NVML_HW_THERMAL = 0x40,
	NVML_POWER_BRAKE = 0x80,
};

enum { NVML_OF_SM = 1 };

struct nvml_use {
	unsigned gpu, memory;		/* % of the last sample, a second or less */
};

struct nvml_process {
	unsigned pid;
	uint64_t memory;
	unsigned gpu_instance, compute_instance;
};

/* ---- functions of the drivers ----
 * CUDA's driver and AMD's runtime have most of what the worker calls under two names, with the same parameters and the
 * same numbers for errors; handles and addresses are as wide. SYM(name, cuda, suffix, hip, parameters): the member
 * `name` is what the one library exports as cuda##suffix, and the other as hip. All are in CUDA's drivers since 11.8 and
 * in ROCm since 6, and needed. Handles have CUDA's names. */

#define DRIVER_SYMBOLS(SYM) \
	SYM(init, cuInit, , hipInit, (unsigned flags)) \
	SYM(version, cuDriverGetVersion, , hipDriverGetVersion, (int *version)) \
	SYM(error_name, cuGetErrorName, , hipDrvGetErrorName, (int error, const char **name)) \
	SYM(error_string, cuGetErrorString, , hipDrvGetErrorString, (int error, const char **text)) \
	SYM(device_count, cuDeviceGetCount, , hipGetDeviceCount, (int *count)) \
	SYM(device_get, cuDeviceGet, , hipDeviceGet, (int *device, int ordinal)) \
	SYM(device_name, cuDeviceGetName, , hipDeviceGetName, (char *name, int size, int device)) \
	SYM(device_bus, cuDeviceGetPCIBusId, , hipDeviceGetPCIBusId, (char *id, int size, int device)) \
	SYM(device_memory, cuDeviceTotalMem, _v2, hipDeviceTotalMem, (size_t *bytes, int device)) \
	SYM(device_attribute, cuDeviceGetAttribute, , hipDeviceGetAttribute, (int *value, int attribute, int device)) \
	SYM(synchronize, cuCtxSynchronize, , hipDeviceSynchronize, (void)) \
	SYM(memory_info, cuMemGetInfo, _v2, hipMemGetInfo, (size_t *free_bytes, size_t *total)) \
	SYM(allocate, cuMemAlloc, _v2, hipMalloc, (device_ptr *p, size_t bytes)) \
	SYM(release, cuMemFree, _v2, hipFree, (device_ptr p)) \
	SYM(copy_in, cuMemcpyHtoDAsync, _v2, hipMemcpyHtoDAsync, (device_ptr to, const void *from, size_t bytes, \
		struct CUstream_st *stream)) \
	SYM(copy_out, cuMemcpyDtoHAsync, _v2, hipMemcpyDtoHAsync, (void *to, device_ptr from, size_t bytes, \
		struct CUstream_st *stream)) \
	SYM(copy, cuMemcpyDtoDAsync, _v2, hipMemcpyDtoDAsync, (device_ptr to, device_ptr from, size_t bytes, \
		struct CUstream_st *stream)) \
	SYM(fill_bytes, cuMemsetD8Async, , hipMemsetD8Async, (device_ptr p, unsigned char value, size_t bytes, \
		struct CUstream_st *stream)) \
	SYM(fill_words, cuMemsetD32Async, , hipMemsetD32Async, (device_ptr p, unsigned value, size_t words, \
		struct CUstream_st *stream)) \
	SYM(module_load, cuModuleLoadData, , hipModuleLoadData, (struct CUmod_st **module, const void *image)) \
	SYM(module_unload, cuModuleUnload, , hipModuleUnload, (struct CUmod_st *module)) \
	SYM(module_function, cuModuleGetFunction, , hipModuleGetFunction, (struct CUfunc_st **function, \
		struct CUmod_st *module, const char *name)) \
	SYM(function_attribute, cuFuncGetAttribute, , hipFuncGetAttribute, (int *value, int attribute, \
		struct CUfunc_st *function)) \
	SYM(stream_create, cuStreamCreate, , hipStreamCreateWithFlags, (struct CUstream_st **stream, unsigned flags)) \
	SYM(stream_destroy, cuStreamDestroy, _v2, hipStreamDestroy, (struct CUstream_st *stream)) \
	SYM(stream_synchronize, cuStreamSynchronize, , hipStreamSynchronize, (struct CUstream_st *stream)) \
	SYM(stream_wait, cuStreamWaitEvent, , hipStreamWaitEvent, (struct CUstream_st *stream, struct CUevent_st *event, \
		unsigned flags)) \
	SYM(event_create, cuEventCreate, , hipEventCreateWithFlags, (struct CUevent_st **event, unsigned flags)) \
	SYM(event_destroy, cuEventDestroy, _v2, hipEventDestroy, (struct CUevent_st *event)) \
	SYM(event_record, cuEventRecord, , hipEventRecord, (struct CUevent_st *event, struct CUstream_st *stream)) \
	SYM(event_elapsed, cuEventElapsedTime, , hipEventElapsedTime, (float *ms, struct CUevent_st *from, \
		struct CUevent_st *to)) \
	SYM(capture_begin, cuStreamBeginCapture, _v2, hipStreamBeginCapture, (struct CUstream_st *stream, int mode)) \
	SYM(capture_end, cuStreamEndCapture, , hipStreamEndCapture, (struct CUstream_st *stream, struct CUgraph_st **graph)) \
	SYM(graph_instantiate, cuGraphInstantiateWithFlags, , hipGraphInstantiateWithFlags, (struct CUgraphExec_st **exec, \
		struct CUgraph_st *graph, unsigned long long flags)) \
	SYM(graph_launch, cuGraphLaunch, , hipGraphLaunch, (struct CUgraphExec_st *exec, struct CUstream_st *stream)) \
	SYM(graph_destroy, cuGraphDestroy, , hipGraphDestroy, (struct CUgraph_st *graph)) \
	SYM(graph_exec_destroy, cuGraphExecDestroy, , hipGraphExecDestroy, (struct CUgraphExec_st *exec))

/* What only one of them has. SYM(needed, name, suffix, parameters): the library exports name##suffix. It is an error if
 * a needed one is missing. */

#define CUDA_ONLY_SYMBOLS(SYM) \
	SYM(1, cuDevicePrimaryCtxRetain, , (struct CUctx_st **context, int device)) \
	SYM(1, cuCtxSetCurrent, , (struct CUctx_st *context)) \
	SYM(1, cuFuncSetAttribute, , (struct CUfunc_st *function, int attribute, int value)) \
	SYM(0, cuFuncGetParamInfo, , (struct CUfunc_st *function, size_t index, size_t *offset, size_t *bytes)) \
	SYM(1, cuLaunchKernelEx, , (const struct cuda_launch_config *config, struct CUfunc_st *function, \
		void **params, void **extra)) \
	SYM(0, cuTensorMapEncodeTiled, , (struct cuda_tensor_map *map, int element, unsigned rank, void *address, \
		const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps, \
		int interleave, int swizzle, int promotion, int fill))

/* The properties have had this layout, and the function this name, since ROCm 6. */
#define HIP_ONLY_SYMBOLS(SYM) \
	SYM(1, hipSetDevice, , (int device)) \
	SYM(1, hipGetDevicePropertiesR0600, , (void *properties, int device)) \
	SYM(1, hipModuleLaunchKernel, , (struct CUfunc_st *function, \
		unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem, struct CUstream_st *stream, \
		void **params, void **extra))

/* ---- functions of the run-time compilers ----
 * NVRTC and hiprtc, as for the drivers. */

#define RTC_SYMBOLS(SYM) \
	SYM(version, nvrtcVersion, , hiprtcVersion, (int *major, int *minor)) \
	SYM(create, nvrtcCreateProgram, , hiprtcCreateProgram, (struct _nvrtcProgram **program, const char *source, \
		const char *name, int nheaders, const char *const *headers, const char *const *include_names)) \
	SYM(destroy, nvrtcDestroyProgram, , hiprtcDestroyProgram, (struct _nvrtcProgram **program)) \
	SYM(compile, nvrtcCompileProgram, , hiprtcCompileProgram, (struct _nvrtcProgram *program, int noptions, \
		const char *const *options)) \
	SYM(log_bytes, nvrtcGetProgramLogSize, , hiprtcGetProgramLogSize, (struct _nvrtcProgram *program, size_t *bytes)) \
	SYM(log, nvrtcGetProgramLog, , hiprtcGetProgramLog, (struct _nvrtcProgram *program, char *log)) \
	SYM(binary_bytes, nvrtcGetCUBINSize, , hiprtcGetCodeSize, (struct _nvrtcProgram *program, size_t *bytes)) \
	SYM(binary, nvrtcGetCUBIN, , hiprtcGetCode, (struct _nvrtcProgram *program, char *binary))

#define NVRTC_ONLY_SYMBOLS(SYM) \
	SYM(1, nvrtcGetPTXSize, , (struct _nvrtcProgram *program, size_t *bytes)) \
	SYM(1, nvrtcGetPTX, , (struct _nvrtcProgram *program, char *ptx))

/* Functions that are not needed are missing in some versions, and fail on some devices. */
#define CUDA_NVML_SYMBOLS(SYM) \
	SYM(1, nvmlInit, _v2, (void)) \
	SYM(1, nvmlDeviceGetHandleByPciBusId, _v2, (const char *id, struct nvmlDevice_st **device)) \
	SYM(0, nvmlSystemGetDriverVersion, , (char *version, unsigned size)) \
	SYM(0, nvmlDeviceGetEnforcedPowerLimit, , (struct nvmlDevice_st *device, unsigned *milliwatts)) \
	SYM(0, nvmlDeviceGetTotalEnergyConsumption, , (struct nvmlDevice_st *device, unsigned long long *millijoules)) \
	SYM(0, nvmlDeviceGetMigMode, , (struct nvmlDevice_st *device, unsigned *now, unsigned *later)) \
	SYM(0, nvmlDeviceGetCurrentClocksEventReasons, , (struct nvmlDevice_st *device, unsigned long long *reasons)) \
	SYM(0, nvmlDeviceGetCurrentClocksThrottleReasons, , (struct nvmlDevice_st *device, \
		unsigned long long *reasons)) \
	SYM(0, nvmlDeviceGetClockInfo, , (struct nvmlDevice_st *device, int clock, unsigned *mhz)) \
	SYM(0, nvmlDeviceGetUtilizationRates, , (struct nvmlDevice_st *device, struct nvml_use *use)) \
	SYM(0, nvmlDeviceGetComputeRunningProcesses, _v3, (struct nvmlDevice_st *device, unsigned *n, \
		struct nvml_process *processes))

#define CUDA_MEMBER(needed, name, suffix, parameters) int (*name) parameters;
#define DRIVER_MEMBER(name, cuda, suffix, hip, parameters) int (*name) parameters;
struct driver {
	void *lib;
	enum gpu_api api;
	DRIVER_SYMBOLS(DRIVER_MEMBER)
	CUDA_ONLY_SYMBOLS(CUDA_MEMBER)	/* NULL in the other's driver, as are the next ones in CUDA's */
	HIP_ONLY_SYMBOLS(CUDA_MEMBER)
};
struct rtc {
	void *lib;
	enum gpu_api api;
	char include[256];		/* folder of CUDA's headers; "" if not found */
	RTC_SYMBOLS(DRIVER_MEMBER)
	NVRTC_ONLY_SYMBOLS(CUDA_MEMBER)	/* NULL in the other */
};
struct cuda_nvml {
	void *lib;
	CUDA_NVML_SYMBOLS(CUDA_MEMBER)
};
#undef CUDA_MEMBER
#undef DRIVER_MEMBER

/* Open the library that $MILLRACE_LIBCUDA, $MILLRACE_LIBHIP, $MILLRACE_LIBNVRTC, $MILLRACE_LIBHIPRTC or $MILLRACE_LIBNVML
 * names, or else that of the loader's path or of the usual folders. Calls none of its functions. */
NODISCARD enum err_code driver_open(struct driver *d, enum gpu_api api, struct err *e);
NODISCARD enum err_code rtc_open(struct rtc *r, enum gpu_api api, struct err *e);
NODISCARD enum err_code cuda_nvml_open(struct cuda_nvml *n, struct err *e);

/* "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)", or "error 12345" for a code that the
 * driver does not know. */
char *driver_error_text(const struct driver *d, int result, struct arena *a);
/* What the library calls the member of struct driver, or of struct rtc, at this offset: "cuMemAlloc". */
const char *driver_call_name(const struct driver *d, size_t member);
const char *rtc_call_name(const struct rtc *r, size_t member);

#endif
