/* recorder_hip.c - the recorder as AMD's runtime: the same under HIP's names, with what differs. RECORDER_ARCH is the name
 * of the architecture. What is left when the process ends is written then. */
#include "hip_names.h"
#define cuCtxGetDevice hipGetDevice
#define cuMemcpyHtoD_v2 hipMemcpyHtoD
#define cuStreamIsCapturing hipStreamIsCapturing
#define cuMemAllocAsync hipMallocAsync
#define cuMemFreeAsync hipFreeAsync
#define cuLaunchKernel hipModuleLaunchKernel
#define CURRENT_AT_FIRST 1
#include "recorder.c"

PUBLIC int hipSetDevice(int device);
PUBLIC int hipGetDevicePropertiesR0600(void *properties, int device);

int hipSetDevice(int device)
{
	return device ? CUDA_INVALID_DEVICE : fails("hipSetDevice");
}

int hipGetDevicePropertiesR0600(void *properties, int device)
{
	const char *arch = getenv("RECORDER_ARCH");

	memset(properties, 0, HIP_PROPERTIES_BYTES);
	strncpy((char *)properties + HIP_PROPERTIES_ARCH, arch ? arch : "gfx942:sramecc+:xnack-",
		HIP_PROPERTIES_ARCH_BYTES - 1);
	return device ? CUDA_INVALID_DEVICE : 0;
}

__attribute__((destructor)) static void end_record(void)
{
	put_left();
}
