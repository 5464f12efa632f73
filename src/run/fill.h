/* fill.h - random inputs that the device makes itself, the same as tile/fill.h makes. */
#ifndef RUN_FILL_H
#define RUN_FILL_H

#include "gpu/gpu.h"
#include "tile/program.h"

/* The initial contents of a program's tensors. */
struct feed {
	void *const *data;		/* by tensor: packed elements; NULL for an input: random */
	uint64_t seed;			/* of random inputs */
};

/* A text in CUDA C++ that includes nothing; for HIP with what it uses in front of it (hip_names.h). */
const char *text_for_api(struct arena *a, enum gpu_api api, const char *text);

/* How many inputs are random. */
int feed_randoms(const struct program *p, const struct feed *f);
/* The text of the kernel that fills a tensor, CUDA C++, in `a`. */
const char *feed_text(struct arena *a);
/* What compiles it. */
struct compile_job feed_job(enum gpu_api api, const char *arch, struct arena *a);
/* Compile it, unless the cache has it. *out lies in `a`. */
NODISCARD enum err_code feed_binary(struct gpu *g, enum gpu_api api, const char *arch, const struct stop *stop,
	struct arena *a, struct gpu_binary *out, struct err *e);
/* How many tensors are by_address. Their buffers of addresses, in order, are `first` and those behind it, and as many
 * steps of the binary fill them. */
int feed_addresses(const struct program *p);
void feed_address_steps(const struct program *p, int first, int binary, struct arena *a, struct gpu_buffer *buffers,
	struct gpu_step *out);
/* The buffer of a tensor's addresses. */
int feed_address_buffer(const struct program *p, int tensor, int first);
/* A step for each random input. `binary` is the index of feed_binary's result; tensor t must be buffer t of the
 * job. Parameters lie in `a`. */
void feed_steps(const struct program *p, const struct feed *f, int binary, struct arena *a, struct gpu_step *out);
/* Set the initial contents of the buffer of a tensor. */
void feed_buffer(const struct feed *f, int tensor, struct gpu_buffer *out);

#endif
