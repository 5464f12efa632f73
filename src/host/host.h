/* host.h - kernels compiled for this machine's CPU, and run on it.
 *
 * The text of emit_host becomes a shared object by the system's C compiler ($CC, else
 * cc). It runs in a child process with a time limit, every thread of a block as its own
 * thread of control (millrace_host.h), so that a kernel that faults, hangs or breaks a
 * rule of the machine costs one message.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "base/arena.h"
#include "base/err.h"
#include "host/rt_abi.h"

struct host_kernel;

/* Memory that arguments point to. */
struct host_buffer {
	size_t bytes;
	const void *from;		/* what it holds at first; NULL: NaN */
	void *to;			/* where what it holds in the end goes; NULL: nowhere */
};

struct host_arg {
	int buffer;
	bool is_map;			/* of this map, whose base is the buffer's */
	struct host_map map;
};

struct host_job {
	const struct host_buffer *buffers;
	const struct host_arg *args;
	int nbuffers, nargs;
	int blocks, threads;
	int cluster;			/* blocks that run together; 0: 1 */
	int64_t shared_bytes;		/* as struct source has it */
	uint64_t seed;			/* of the order of everything whose order is open */
	bool race;			/* look for accesses that nothing orders; slower */
	double seconds;			/* time limit; 0: none */
};

/* Compile a text that includes "millrace_host.h" and ends with HOST_ENTRY. *out is set
 * first, so that a caller whose failure handler jumps out of here can free what there is. */
NODISCARD enum err_code host_compile(struct mem *mem, const char *text, size_t len,
	const struct stop *stop, struct host_kernel **out, struct err *e);
/* The same for a text whose own work is most of its time: optimised. It
 * may also be any C over "rt_abi.h" that defines HOST_RUN_SYMBOL itself. */
NODISCARD enum err_code host_compile_fast(struct mem *mem, const char *text, size_t len,
	const struct stop *stop, struct host_kernel **out, struct err *e);
void host_free(struct host_kernel *k);

/* Run all blocks. *report, in `a`, is NULL if all went well, else tells what the kernel
 * did wrong; outputs then hold what it left. */
NODISCARD enum err_code host_run(struct host_kernel *k, const struct host_job *job,
	const struct stop *stop, struct arena *a, const char **report, struct err *e);

#endif
