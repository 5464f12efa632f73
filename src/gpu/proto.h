/* proto.h - what the shell and its worker say to each other, as frames of wire.h.
 *
 * The worker says HELLO once. Then the shell asks (PROBE, COMPILE, RUN) and the worker
 * answers each with STAGE as often as it likes and one REPLY: a verdict, and what was
 * asked for if there is any of it. Memory that a job brings or takes back travels in
 * one shared mapping, whose descriptor comes with RUN.
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

/* In place of a device's number: compile, and open none. */
#define NO_DEVICE UINT32_MAX

/* What the worker is about; each has a time limit of its own. */
enum stage {
	STAGE_STARTING,			/* the driver and the context */
	STAGE_COMPILING,
	STAGE_PREPARING,		/* memory, copies to the device, loading the binary */
	STAGE_RUNNING,			/* said again when benchmarking goes on */
	STAGE_RETURNING,		/* copies from the device */
	NSTAGES,
};

struct verdict {
	enum gpu_failure failure;	/* GPU_FAIL_NONE: it went well */
	struct err err;
	bool lost;			/* the worker is of no more use */
};

void put_verdict(struct wire *w, const struct verdict *v);
void get_verdict(struct wire *w, struct verdict *v, struct arena *a);

/* After get_*: w->bad says that it was no such thing. What was got points into the
 * message and the arena. */
void put_compile_job(struct wire *w, const struct compile_job *job);
void get_compile_job(struct wire *w, struct compile_job *job, struct arena *a);
void put_compile_result(struct wire *w, const struct compile_result *r);
void get_compile_result(struct wire *w, struct compile_result *r, struct arena *a);
void put_gpu_info(struct wire *w, const struct gpu_info *info);
void get_gpu_info(struct wire *w, struct gpu_info *info, struct arena *a);
void put_gpu_result(struct wire *w, const struct gpu_result *r);
void get_gpu_result(struct wire *w, struct gpu_result *r, struct arena *a);

/* ---- jobs ---- */

/* Where a job's memory is in the shared mapping: starts, in the order of the job's. */
struct share_layout {
	size_t bytes;			/* of the whole */
	size_t *binary;
	size_t *from, *to;		/* of buffers; looked at only where one has it */
};

/* False: it would be beyond any address space. */
bool share_layout(const struct gpu_job *job, struct share_layout *l, struct arena *a);

void put_job(struct wire *w, const struct gpu_job *job, const struct share_layout *l);
/* The job's host memory points into share[0..bytes). */
void get_job(struct wire *w, struct gpu_job *job, unsigned char *share, size_t bytes,
	struct arena *a);

#endif
