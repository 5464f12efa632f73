/* rt_abi.h - the interface between the program and a kernel compiled for the host.
 *
 * This header, rt_number.h and millrace_host.h are also inside the program as text, which the
 * system's C compiler reads with a kernel's text; so are the other files of the runtime, rt.c and rt_*.h, for
 * exported kernels. Therefore they include nothing of this project but each other.
 */
#ifndef HOST_RT_ABI_H
#define HOST_RT_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	HOST_DIMS_MAX = 8,
	HOST_FIRST = 1024,		/* address of a block's dynamic shared memory */
	HOST_CLUSTER_MAX = 8,		/* blocks */
	HOST_RANK_BIT = 24,		/* from this bit on, addresses have the block's rank in its cluster */
	HOST_IN_BLOCK = (1 << HOST_RANK_BIT) - 1,	/* the bits below: the address in the block */
};

/* A tensor map: boxes of a tensor, dimensions innermost first. */
struct host_map {
	unsigned char *base;
	int rank, element_bytes, swizzle;
	int integer;				/* elements are of i32: where they are added to */
	int64_t dim[HOST_DIMS_MAX], box[HOST_DIMS_MAX];
	int64_t stride[HOST_DIMS_MAX];		/* bytes */
};

struct host_launch;

/* The functions that a kernel can call; millrace_host.h defines the names that texts use. */
struct host_runtime {
	void (*play)(const struct host_launch *l, void (*kernel)(void *const *args), int threads);
	int (*thread)(void);
	int (*block)(void);
	uint32_t (*shared_base)(void);
	void (*at)(const char *task, int iteration);
	void (*flag_init)(uint32_t flag, uint32_t arrivals, const char *name, int index);
	void (*flag_arrive)(uint32_t flag, uint32_t bytes);
	void (*flag_arrive_at)(uint32_t flag, int block);	/* of the cluster, from 0 */
	void (*flag_wait)(uint32_t flag, uint32_t phase);
	void (*barrier_wait)(int id, int threads);
	void (*barrier_pass)(int id, int threads);
	void (*block_sync)(void);
	void (*cluster_sync)(void);
	void (*warp_sync)(void);
	int (*uniform)(int x);
	int (*elect)(void);
	float (*shuffle)(float x, int lane);	/* x of that thread of the warp */
	void (*set_registers)(int n);
	void (*fence)(void);
	/* blocks: a bit for each block of the cluster that gets the copy; 0: only this block */
	void (*copy)(uint32_t to, const struct host_map *map, uint32_t flag, unsigned blocks, int rank, const int *at);
	/* copy shared memory at `from` to a box of the tensor; it belongs to the thread's next group */
	void (*store)(const struct host_map *map, uint32_t from, int rank, const int *at);
	/* likewise, but add it to what the tensor holds */
	void (*add)(const struct host_map *map, uint32_t from, int rank, const int *at);
	void (*stores_commit)(void);
	void (*stores_read)(int n);
	void (*groups_fence)(void);
	void (*groups_commit)(void);
	void (*groups_wait)(int n);
	/* regs NULL: the first operand is in shared memory at descriptor a */
	void (*product)(float *d, const uint32_t *regs, uint64_t a, uint64_t b, int add,
		int columns, int ta, int tb, int type_a, int type_b);
	/* ... of which two of each four elements are there, at the indices that the threads' words have */
	void (*sparse_product)(float *d, uint64_t a, uint64_t b, uint32_t pairs, int add, int columns, int ta, int tb,
		int type_a, int type_b);
	/* of a warp, synchronous: 16 x 8 sums, 32 bytes deep */
	void (*warp_product)(float *d, const uint32_t *a, const uint32_t *b, int add, int type_a,
		int type_b);
	/* likewise of AMD's matrix cores, n rows and columns: 16, and 16 deep, or 32, and 8 deep */
	void (*mfma)(float *d, const uint32_t *a, const uint32_t *b, int add, int n, int type_a, int type_b);
	void (*matrices)(uint32_t *x, uint32_t address, int across);	/* of a warp */
	void (*get)(uint32_t address, void *to, uint32_t n);
	void (*put)(uint32_t address, const void *from, uint32_t n);
	void (*put_at)(uint32_t address, int block, const void *from, uint32_t n);	/* of another block of the cluster */
	/* copy a word, or zeros if `from` is NULL, until the thread waits; wait until so many of its words are under way */
	void (*copy_dma)(uint32_t address, const void *from);
	void (*dma_wait)(int n);
	/* the next number for this block, chosen at random as if other blocks asked, too; behind `last` the counter is 0 again */
	int (*ask)(uint32_t *counter, int last);
	void (*put_copied)(uint32_t address, const void *from, uint32_t n);
};
extern const struct host_runtime host_runtime;	/* rt.c's */

struct host_launch {
	const struct host_runtime *runtime;
	void *const *args;		/* pointers to tensors and to maps */
	int blocks, threads;
	int cluster;			/* blocks that run together, a divisor of `blocks`; 0: 1 */
	int warp, group;		/* threads of a warp; of a group of warps, which is granted registers */
	int64_t shared_bytes;		/* 1024 more than needed, to align it to 1024 */
	uint64_t seed;
	int race;			/* report accesses that nothing orders */
	char *report;			/* filled before the process ends with failure */
	size_t report_size;
	void (*stopped)(const char *report);	/* called at failure, before the process ends; or NULL */
};

/* The name of the function in the shared object. It returns if the kernel is right; otherwise it writes a
 * report and ends the process with HOST_FAILED. */
#define HOST_RUN_SYMBOL "millrace_host_run"
enum { HOST_FAILED = 3 };
typedef void host_run_function(const struct host_launch *launch);

#endif
