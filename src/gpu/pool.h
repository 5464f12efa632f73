/* pool.h - compiling many texts at once, while the caller goes on.
 *
 * A pool has workers as gpu.h has one, at most as many as cores; they open no device. Texts wait
 * in the order in which they came. Nothing happens but in pool_step, which starts what can be
 * started, takes what is finished, and waits no longer than it is told: call it now and then.
 * Binaries also go to the cache on disk (compile.h), from where they are taken when they are
 * there. A worker that dies costs the text that it had, with one message; the next text gets
 * another. Workers end with the pool, and with the process, however it ends.
 */
#ifndef GPU_POOL_H
#define GPU_POOL_H

#include "gpu/gpu.h"

struct pool;
struct pool_job;

/* workers: 0 for as many as there are cores for us. `m` is borrowed and outlives the pool. *out is
 * set first, so that a caller whose failure handler jumps out of here or of any call below can
 * free what there is. */
void pool_new(struct mem *m, int workers, struct pool **out);
/* Jobs that are not dropped yet stay, and are failed. */
void pool_free(struct pool *p);

int pool_workers(const struct pool *p);	/* the most there may be */

/* Put a text last; it is copied. *out is set first. Nothing is started before pool_step. */
void pool_begin(struct pool *p, const struct compile_job *job, struct pool_job **out);

/* Start and take what can be; if nothing has finished, wait for it, at most so many seconds. An
 * error is an interrupt, and no job is lost by it. */
NODISCARD enum err_code pool_step(struct pool *p, double seconds, const struct stop *stop,
	struct err *e);

/* Is there an answer? */
bool pool_done(const struct pool_job *j);
/* Of one that is done: as gpu_compile. The result is in `a`. */
NODISCARD enum err_code pool_result(struct pool_job *j, struct arena *a, struct compile_result *r,
	struct err *e);
/* Free it, whatever its state; a worker that has it is ended. */
void pool_drop(struct pool_job *j);

/* Jobs that are not done, and workers that there are. */
int pool_waiting(const struct pool *p);
int pool_running(const struct pool *p);
/* End the workers that have nothing to do. */
void pool_rest(struct pool *p);

#endif
