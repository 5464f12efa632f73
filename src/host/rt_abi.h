/* rt_abi.h - what the core and a kernel compiled for the host say to each other.
 *
 * The runtime headers rt_*.h and millrace_host.h travel inside the program as text and
 * are compiled with a kernel's text by the system's C compiler; this one is also
 * included by the core. No dependency.
 */
#ifndef HOST_RT_ABI_H
#define HOST_RT_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { HOST_DIMS_MAX = 8 };

/* A tensor map: boxes of a tensor, dimensions innermost first. */
struct host_map {
	unsigned char *base;
	int rank, element_bytes, swizzle;
	int64_t dim[HOST_DIMS_MAX], box[HOST_DIMS_MAX];
	int64_t stride[HOST_DIMS_MAX];		/* bytes */
};

struct host_launch {
	void *const *args;		/* pointers to tensors and to maps */
	int blocks, threads;
	int64_t shared_bytes;		/* with room to align it to 1024 */
	uint64_t seed;
	int race;			/* look for accesses that nothing orders */
	char *report;			/* filled before the process ends with failure */
	size_t report_size;
};

/* Name of the function in the shared object; returns if all went well, and ends the
 * process with this status after writing a report if not. */
#define HOST_RUN_SYMBOL "millrace_host_run"
enum { HOST_FAILED = 3 };
typedef void host_run_function(const struct host_launch *launch);

#endif
