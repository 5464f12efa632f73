/* run.h - running a built plan's kernels on the attached device, and races between plans.
 *
 * Makes gpu jobs (gpu/job.h) of built plans: one launch for each phase, tensors in device memory,
 * tiles in the order that the plan assigns them.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "plan/check.h"
#include "run/built.h"
#include "run/fill.h"
#include "run/reference.h"

/* at: b's plan, or that plan at sizes (plan/sized.h), which tensors then have. Inputs are those of in->data, or
 * random (fill.h); outputs are written to in->data; temporaries are NULL there. Outputs and temporaries are filled
 * with NaN first. bench NULL: one run. limit: seconds, as for gpu_run. *r lies in `a`. */
NODISCARD enum err_code built_run(struct built *b, const struct plan *at, struct gpu *g, const struct feed *in,
	double limit,
	const struct gpu_bench *bench, const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e);

/* A built plan in a race, and its name in messages. */
struct racer {
	const struct built *built;
	const char *name;
};

/* Do both have the same inputs and outputs? Only then can they be compared. */
bool built_same_tensors(const struct built *a, const struct built *b);

/* Time n built plans of the same tensors alternately, on the same inputs, each with outputs of its own.
 * names and n of `race` are ignored, as is in->data of outputs. *r lies in `a`. */
NODISCARD enum err_code built_race(const struct racer *racers, int n, struct gpu *g,
	const struct feed *in, double limit, const struct gpu_race *race, const struct stop *stop,
	struct arena *a, struct gpu_result *r, struct err *e);

/* What an output is compared with. */
struct verified_by {
	struct reference *reference;	/* printed, with the comparisons of all outputs' types; the program with its roundings */
	const int *allowance;		/* by tensor of the plan's program: the one of the reference's that has its allowance */
	bool computes;			/* false: the reference is not computed, and outputs are compared with the other's alone */
};

/* What was found about an output: elements compared with those of the reference, and chunks with those of the other
 * kernel. */
struct verified {
	struct plain_found reference, other;
};

/* Run the plan on random inputs, and compare its outputs in the device's memory with the reference and with those of
 * another plan of the same tensors (other; NULL: with none). out: by tensor of the plan's program; in `a`, as are larger
 * arrays. */
NODISCARD enum err_code built_verify(const struct built *b, const struct built *other, const struct verified_by *by, struct gpu *g,
	const struct feed *in, double limit, const struct stop *stop, struct arena *a, struct verified *out, struct err *e);

/* How much L2 fetches at once for a box. The rows of tiles are read once and in order, so more does not
 * help: on an H200, 256 bytes slow a stream from device memory down by 6 % (4.17 TB/s against 4.45). */
enum { MAP_PROMOTION = GPU_PROMOTE_128 };

/* A PARAM_MAP as a tensor of a gpu job. In `a`. */
const struct gpu_tensor *built_map(struct arena *a, const struct program *p, const struct param *x);

/* The problems of a compiled kernel, like those of plan_check, in `a`: spills, and products that the compiler
 * serialized, each with its sTask. Without the compiler's other warnings. */
void built_problems(const struct built *b, struct arena *a, struct problems *out);

#endif
