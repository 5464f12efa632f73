/* pool.h - compiling many sources in the background.
 *
 * A pool has worker processes like that of gpu.h, at most one for each core; they open no device.
 * Jobs are compiled in the order of pool_begin. All progress is made in pool_step, so call it now and
 * then: it sends jobs to workers and receives results, for a limited time. Binaries also go to the
 * cache on disk (compile.h), and come from there if they are known. If a worker dies, the job that it
 * had fails, and the next job gets a new worker. Workers end with the pool and with the process.
 */
#ifndef GPU_POOL_H
#define GPU_POOL_H

#include "gpu/gpu.h"

struct pool;
struct pool_job;

/* workers: the most to start; 0: one for each core. `m` is borrowed and outlives the pool. *out is set before anything
 * is allocated, so that a caller whose failure handler jumps out of this or any other call can free the pool. */
void pool_new(struct mem *m, int workers, struct pool **out);
/* Jobs that are not dropped yet stay valid; those without a result fail. */
void pool_free(struct pool *p);

int pool_workers(const struct pool *p);	/* the most there may be */

/* Add a job, which is copied. *out is set first. Nothing is started before pool_step. */
void pool_begin(struct pool *p, const struct compile_job *job, struct pool_job **out);

/* Send jobs and receive results. If none has come, wait for one, `seconds` at most. The only error is
 * ERR_INTERRUPTED, after which all jobs go on. */
NODISCARD enum err_code pool_step(struct pool *p, double seconds, const struct stop *stop, struct err *e);

/* If a worker compiles such a job, wait until it is done: what is compiled then comes from the cache. The only error is
 * ERR_INTERRUPTED. */
NODISCARD enum err_code pool_await(struct pool *p, const struct compile_job *job, const struct stop *stop, struct err *e);

/* Is there a result or an error? */
bool pool_done(const struct pool_job *j);
/* The result of a job that is done, as gpu_compile gives it, in `a`. */
NODISCARD enum err_code pool_result(struct pool_job *j, struct arena *a, struct compile_result *r, struct err *e);
/* What the job is, if it only looked into the cache (only_cached) and found nothing there; else NULL. *tool: the compiler
 * that would compile it. */
const struct compile_job *pool_missing(const struct pool_job *j, const char **tool);
/* Do such a job again, with what another process compiled, which is copied, or by compiling it. */
void pool_again(struct pool_job *j, const struct compile_given *given);
/* Free the job in any state. Ends the worker that compiles it. */
void pool_drop(struct pool_job *j);

/* The number of jobs that are not done, and of worker processes. */
int pool_waiting(const struct pool *p);
int pool_running(const struct pool *p);
/* End the workers without a job. */
void pool_end_idle(struct pool *p);

#endif
