/* fake_hip.c - AMD's runtime without a device, for tests: the fake CUDA driver under HIP's names, with what differs.
 *
 * A module may also be a code object, as clang makes it. None of its code is executed: its kernels, by any name, do
 * what the variable FAKE_HIP_KERNEL says: zero (all that they are given; the default), copy (their first buffer to
 * their second), fault, hang, refuse, errorN (their launch returns N), abort (as the runtime does after a fault).
 * FAKE_HIP_ARCH is the name of the architecture, FAKE_HIP_NAME the device's, FAKE_HIP_INIT what hipInit returns.
 */
#include "hip_names.h"
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
