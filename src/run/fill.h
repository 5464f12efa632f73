/* fill.h - inputs that a job's device makes itself: random ones, as tile/fill.h says. */
#ifndef RUN_FILL_H
#define RUN_FILL_H

#include "gpu/gpu.h"
#include "tile/program.h"

/* What a program's tensors hold at first. */
struct feed {
	void *const *data;		/* by tensor: packed elements; of an input NULL: random */
	uint64_t seed;			/* of those */
};

int feed_randoms(const struct program *p, const struct feed *f);
/* The binary with the kernel that fills a tensor, compiled unless it is known. In `a`. */
NODISCARD enum err_code feed_binary(struct gpu *g, const char *arch, const struct stop *stop,
	struct arena *a, struct gpu_binary *out, struct err *e);
/* A step for each random input, of which tensor t is buffer t of the job, by that binary. In `a`. */
void feed_steps(const struct program *p, const struct feed *f, int binary, struct arena *a,
	struct gpu_step *out);
/* What buffer `tensor` begins with. */
void feed_buffer(const struct feed *f, int tensor, struct gpu_buffer *out);

#endif
