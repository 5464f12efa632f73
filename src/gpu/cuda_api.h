/* cuda_api.h - the CUDA functions that Millrace calls, loaded at run time.
 *
 * The driver (libcuda.so.1), the run-time compiler (libnvrtc) and the management library (NVML, libnvidia-ml.so.1) are
 * opened with dlopen. So the program runs where they are missing, and is built without NVIDIA's headers. The
 * declarations here cover only what is used; tests/unit/cuda_declarations.c compares them with cuda.h and nvml.h where those are
 * installed. Handles are pointers to the structs of the same names; results are ints, 0 for success.
 *
 * Only the worker process opens the driver and NVML. Libraries are never closed.
 */
#ifndef GPU_CUDA_API_H
#define GPU_CUDA_API_H

#include "base/arena.h"
#include "base/err.h"

struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUmod_st;
struct CUstream_st;
struct _nvrtcProgram;
struct nvmlDevice_st;

typedef uint64_t cuda_ptr;		/* CUdeviceptr */

/* ---- constants of the driver ---- */

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

enum { CUDA_TENSOR_MAP_ALIGN = 64, CUDA_STREAM_NON_BLOCKING = 1 };

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

/* ---- functions ----
 * SYM(needed, name, suffix, parameters): the library exports name##suffix. It is an error if
 * a needed one is missing: all are in drivers since CUDA 11.8 and in NVRTC since 11. */

#define CUDA_DRIVER_SYMBOLS(SYM) \
	SYM(1, cuInit, , (unsigned flags)) \
	SYM(1, cuDriverGetVersion, , (int *version)) \
	SYM(1, cuGetErrorName, , (int error, const char **name)) \
	SYM(1, cuGetErrorString, , (int error, const char **text)) \
	SYM(1, cuDeviceGetCount, , (int *count)) \
	SYM(1, cuDeviceGet, , (int *device, int ordinal)) \
	SYM(1, cuDeviceGetName, , (char *name, int size, int device)) \
	SYM(1, cuDeviceGetPCIBusId, , (char *id, int size, int device)) \
	SYM(1, cuDeviceTotalMem, _v2, (size_t *bytes, int device)) \
	SYM(1, cuDeviceGetAttribute, , (int *value, int attribute, int device)) \
	SYM(1, cuDevicePrimaryCtxRetain, , (struct CUctx_st **context, int device)) \
	SYM(1, cuCtxSetCurrent, , (struct CUctx_st *context)) \
	SYM(1, cuCtxSynchronize, , (void)) \
	SYM(1, cuMemGetInfo, _v2, (size_t *free_bytes, size_t *total)) \
	SYM(1, cuMemAlloc, _v2, (cuda_ptr *p, size_t bytes)) \
	SYM(1, cuMemFree, _v2, (cuda_ptr p)) \
	SYM(1, cuMemcpyHtoDAsync, _v2, (cuda_ptr to, const void *from, size_t bytes, struct CUstream_st *stream)) \
	SYM(1, cuMemcpyDtoHAsync, _v2, (void *to, cuda_ptr from, size_t bytes, struct CUstream_st *stream)) \
	SYM(1, cuMemcpyDtoDAsync, _v2, (cuda_ptr to, cuda_ptr from, size_t bytes, struct CUstream_st *stream)) \
	SYM(1, cuMemsetD8Async, , (cuda_ptr p, unsigned char value, size_t bytes, struct CUstream_st *stream)) \
	SYM(1, cuMemsetD32Async, , (cuda_ptr p, unsigned value, size_t words, struct CUstream_st *stream)) \
	SYM(1, cuModuleLoadData, , (struct CUmod_st **module, const void *image)) \
	SYM(1, cuModuleUnload, , (struct CUmod_st *module)) \
	SYM(1, cuModuleGetFunction, , (struct CUfunc_st **function, struct CUmod_st *module, const char *name)) \
	SYM(1, cuFuncGetAttribute, , (int *value, int attribute, struct CUfunc_st *function)) \
	SYM(1, cuFuncSetAttribute, , (struct CUfunc_st *function, int attribute, int value)) \
	SYM(0, cuFuncGetParamInfo, , (struct CUfunc_st *function, size_t index, size_t *offset, size_t *bytes)) \
	SYM(1, cuLaunchKernelEx, , (const struct cuda_launch_config *config, struct CUfunc_st *function, \
		void **params, void **extra)) \
	SYM(0, cuTensorMapEncodeTiled, , (struct cuda_tensor_map *map, int element, unsigned rank, void *address, \
		const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps, \
		int interleave, int swizzle, int promotion, int fill)) \
	SYM(1, cuStreamCreate, , (struct CUstream_st **stream, unsigned flags)) \
	SYM(1, cuStreamSynchronize, , (struct CUstream_st *stream)) \
	SYM(1, cuEventCreate, , (struct CUevent_st **event, unsigned flags)) \
	SYM(1, cuEventDestroy, _v2, (struct CUevent_st *event)) \
	SYM(1, cuEventRecord, , (struct CUevent_st *event, struct CUstream_st *stream)) \
	SYM(1, cuEventElapsedTime, , (float *ms, struct CUevent_st *from, struct CUevent_st *to))

#define CUDA_NVRTC_SYMBOLS(SYM) \
	SYM(1, nvrtcVersion, , (int *major, int *minor)) \
	SYM(1, nvrtcCreateProgram, , (struct _nvrtcProgram **program, const char *source, const char *name, \
		int nheaders, const char *const *headers, const char *const *include_names)) \
	SYM(1, nvrtcDestroyProgram, , (struct _nvrtcProgram **program)) \
	SYM(1, nvrtcCompileProgram, , (struct _nvrtcProgram *program, int noptions, const char *const *options)) \
	SYM(1, nvrtcGetProgramLogSize, , (struct _nvrtcProgram *program, size_t *bytes)) \
	SYM(1, nvrtcGetProgramLog, , (struct _nvrtcProgram *program, char *log)) \
	SYM(1, nvrtcGetCUBINSize, , (struct _nvrtcProgram *program, size_t *bytes)) \
	SYM(1, nvrtcGetCUBIN, , (struct _nvrtcProgram *program, char *cubin)) \
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
struct cuda_driver {
	void *lib;
	CUDA_DRIVER_SYMBOLS(CUDA_MEMBER)
};
struct cuda_nvrtc {
	void *lib;
	char include[256];		/* folder of CUDA's headers; "" if not found */
	CUDA_NVRTC_SYMBOLS(CUDA_MEMBER)
};
struct cuda_nvml {
	void *lib;
	CUDA_NVML_SYMBOLS(CUDA_MEMBER)
};
#undef CUDA_MEMBER

/* Open the library that $MILLRACE_LIBCUDA, $MILLRACE_LIBNVRTC or $MILLRACE_LIBNVML names, or else
 * that of the loader's path or of the usual folders. Calls none of its functions. */
NODISCARD enum err_code cuda_driver_open(struct cuda_driver *d, struct err *e);
NODISCARD enum err_code cuda_nvrtc_open(struct cuda_nvrtc *n, struct err *e);
NODISCARD enum err_code cuda_nvml_open(struct cuda_nvml *n, struct err *e);

/* "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)", or "error 12345" for a code that the
 * driver does not know. */
char *cuda_error_text(const struct cuda_driver *d, int result, struct arena *a);

#endif
