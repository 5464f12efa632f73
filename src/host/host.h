/* host.h - compiling and running kernels on this machine's CPU.
 *
 * A C compiler ($CC; or tcc, if there is one, else cc) makes a shared object of the text of emit_host. It runs in a
 * child process with a time limit, where every thread of a block is a coroutine (millrace_host.h). A
 * kernel that faults, hangs or breaks a rule of the machine is reported in one message.
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
	const void *from;		/* initial contents; NULL: NaN */
	void *to;			/* gets the final contents; NULL: not wanted */
};

struct host_arg {
	int buffer;
	bool is_map;			/* pass this map, with the buffer as its base */
	struct host_map map;
	/* pass the addresses of so many parts of the buffer, equally long; 0: its own */
	int parts;
	bool is_number;			/* pass a pointer to this number */
	int number;
};

struct host_job {
	const struct host_buffer *buffers;
	const struct host_arg *args;
	int nbuffers, nargs;
	int blocks, threads;
	int cluster;			/* blocks that run together; 0: 1 */
	int warp, group;		/* threads of a warp, of a group of warps; of a plan, as its target has them */
	int64_t shared_bytes;		/* as in struct source */
	uint64_t seed;			/* of the random choices wherever the order is open */
	bool race;			/* report accesses that nothing orders; slower */
	double seconds;			/* time limit; 0: none */
};

/* Compile a text that includes "millrace_host.h" and ends with HOST_ENTRY. *out is set first; the caller frees it also
 * after an error or a jump of the failure handler. fast: optimise, for a text that spends most time in its own code, not
 * in the runtime. The text may also be any C that includes "rt_abi.h" and defines HOST_RUN_SYMBOL itself. */
NODISCARD enum err_code host_compile(struct mem *mem, const char *text, size_t len, bool fast,
	const struct stop *stop, struct host_kernel **out, struct err *e);
void host_free(struct host_kernel *k);

/* Run all blocks. *report, in `a`: NULL, or what the kernel did wrong; the buffers' `to` are filled in either case. */
NODISCARD enum err_code host_run(struct host_kernel *k, const struct host_job *job,
	const struct stop *stop, struct arena *a, const char **report, struct err *e);

#endif
