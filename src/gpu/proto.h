/* proto.h - the protocol of the shell and its worker, as frames of wire.h.
 *
 * The worker sends HELLO once. Then the shell sends requests (PROBE, COMPILE, RUN). The worker
 * answers each with any number of STAGE and one REPLY: a verdict, and the result if there is one.
 * Binaries and the contents of buffers are in shared memory, whose descriptor is sent along with RUN.
 */
#ifndef GPU_PROTO_H
#define GPU_PROTO_H

#include "gpu/gpu.h"
#include "gpu/wire.h"

enum message {
	MSG_HELLO = 1,
	MSG_PROBE, MSG_COMPILE, MSG_RUN,
	MSG_STAGE, MSG_REPLY,
};

/* Instead of a device's ordinal: compile without opening a device. */
#define NO_DEVICE UINT32_MAX

/* What the worker does; each stage has a time limit of its own. */
enum stage {
	STAGE_STARTING,			/* the driver and the context */
	STAGE_COMPILING,
	STAGE_PREPARING,		/* memory, copies to the device, loading the binary */
	STAGE_RUNNING,			/* sent again whenever a benchmark has made progress */
	STAGE_RETURNING,		/* copies from the device */
	NSTAGES,
};

struct verdict {
	enum gpu_failure failure;	/* GPU_FAIL_NONE: success */
	struct err err;
	bool worker_lost;		/* the worker is no longer usable and ends */
};

void put_verdict(struct wire *w, const struct verdict *v);
void get_verdict(struct wire *w, struct verdict *v, struct arena *a);

/* get_* sets w->bad if the message does not hold such a value. The value lies in `a`. */
void put_compile_job(struct wire *w, const struct compile_job *job);
void get_compile_job(struct wire *w, struct compile_job *job, struct arena *a);
void put_compile_result(struct wire *w, const struct compile_result *r);
void get_compile_result(struct wire *w, struct compile_result *r, struct arena *a);
void put_gpu_info(struct wire *w, const struct gpu_info *info);
void get_gpu_info(struct wire *w, struct gpu_info *info, struct arena *a);
void put_gpu_result(struct wire *w, const struct gpu_result *r);
void get_gpu_result(struct wire *w, struct gpu_result *r, struct arena *a);

/* ---- jobs ---- */

/* Where a job's memory starts in the shared mapping, by index of binary or buffer. Shell and worker compute the same. */
struct share_layout {
	size_t bytes;			/* of all */
	size_t *binary;
	size_t *from, *to;		/* of buffers that have a `from` or `to` */
};

/* False: the job needs more than an address space has. */
bool share_layout(const struct gpu_job *job, struct share_layout *l, struct arena *a);

void put_gpu_job(struct wire *w, const struct gpu_job *job);
void get_gpu_job(struct wire *w, struct gpu_job *job, struct arena *a);	/* without its memory */
/* The same, with its memory in share[0..bytes). */
void get_shared_job(struct wire *w, struct gpu_job *job, unsigned char *share, size_t bytes, struct arena *a);

#endif
