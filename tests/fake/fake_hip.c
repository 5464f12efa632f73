/* fake_hip.c - AMD's runtime without a device, for tests: the fake CUDA driver under HIP's names, with what differs.
 *
 * A module may also be a code object, as clang makes it. None of its code is executed: its kernels, by any name, do
 * what the variable FAKE_HIP_KERNEL says: zero (all that they are given; the default), copy (their first buffer to
 * their second), fault, hang, refuse, abort (as the runtime does after a fault). FAKE_HIP_ARCH is the name of the
 * architecture, FAKE_HIP_NAME the device's, FAKE_HIP_INIT what hipInit returns.
 */
#define cuInit hipInit
#define cuDriverGetVersion hipDriverGetVersion
#define cuGetErrorName hipDrvGetErrorName
#define cuGetErrorString hipDrvGetErrorString
#define cuDeviceGetCount hipGetDeviceCount
#define cuDeviceGet hipDeviceGet
#define cuDeviceGetName hipDeviceGetName
#define cuDeviceGetPCIBusId hipDeviceGetPCIBusId
#define cuDeviceTotalMem_v2 hipDeviceTotalMem
#define cuDeviceGetAttribute hipDeviceGetAttribute
#define cuCtxSynchronize hipDeviceSynchronize
#define cuMemGetInfo_v2 hipMemGetInfo
#define cuMemAlloc_v2 hipMalloc
#define cuMemFree_v2 hipFree
#define cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync
#define cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync
#define cuMemcpyDtoDAsync_v2 hipMemcpyDtoDAsync
#define cuMemsetD8Async hipMemsetD8Async
#define cuMemsetD32Async hipMemsetD32Async
#define cuModuleLoadData hipModuleLoadData
#define cuModuleUnload hipModuleUnload
#define cuModuleGetFunction hipModuleGetFunction
#define cuFuncGetAttribute hipFuncGetAttribute
#define cuStreamCreate hipStreamCreateWithFlags
#define cuStreamSynchronize hipStreamSynchronize
#define cuEventCreate hipEventCreateWithFlags
#define cuEventDestroy_v2 hipEventDestroy
#define cuEventRecord hipEventRecord
#define cuEventElapsedTime hipEventElapsedTime
#define FAKE_HIP 1
#include "fake_cuda.c"

PUBLIC int hipSetDevice(int device);
PUBLIC int hipGetDevicePropertiesR0600(void *properties, int device);
PUBLIC int hipModuleLaunchKernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem, struct CUstream_st *stream, void **params,
	void **extra);

int hipSetDevice(int device)
{
	return device ? CUDA_INVALID_DEVICE : 0;
}

int hipGetDevicePropertiesR0600(void *properties, int device)
{
	const char *arch = getenv("FAKE_HIP_ARCH");

	(void)device;
	memset(properties, 0, HIP_PROPERTIES_BYTES);
	strncpy((char *)properties + HIP_PROPERTIES_ARCH, arch ? arch : "gfx942:sramecc+:xnack-",
		HIP_PROPERTIES_ARCH_BYTES - 1);
	return 0;
}

int hipModuleLaunchKernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem, struct CUstream_st *stream, void **params,
	void **extra)
{
	struct cuda_launch_config c = { .grid = { grid_x, grid_y, grid_z }, .block = { block_x, block_y, block_z },
		.smem = smem, .stream = stream };

	return cuLaunchKernelEx(&c, function, params, extra);
}
