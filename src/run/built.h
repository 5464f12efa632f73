/* built.h - a plan, lowered, printed and compiled for a backend.
 *
 * A backend is what users name by target=: how role programs are printed (emit) and compiled. Kernels are started by
 * run.h on the attached device, by on_host.h on the CPU. A built plan has one kernel for each phase of its program. It
 * can be built with stamps (lower/stamps.h), which each of its runs then leaves for trace.h.
 */
#ifndef RUN_BUILT_H
#define RUN_BUILT_H

#include "emit/emit.h"
#include "gpu/pool.h"
#include "host/host.h"
#include "plan/plan.h"

enum backend { BACKEND_CUDA, BACKEND_HIP, BACKEND_HOST, BACKEND_COUNT };

struct backend_info {
	const char *name;		/* "cuda", "hip", "host" */
	const char *language;		/* "CUDA" */
	const struct target *targets[4];	/* that it prints kernels for, then NULL; none: all */
	void (*emit)(const struct role_program *r, struct arena *a, struct source *out);
};
extern const struct backend_info backends[BACKEND_COUNT];
/* Does it print kernels for plans on the device? */
bool backend_prints(enum backend backend, const struct vdevice *d);
/* The first that does: what a plan is compiled for unless a user says otherwise. */
enum backend backend_for(const struct vdevice *d);

struct built_phase {
	struct source source;
	/* CUDA, HIP */
	struct compile_result binary;
	struct pool_job *compiling;	/* between built_begin and built_end; else NULL */
	/* host */
	struct host_kernel *object;
	/* of a traced plan */
	struct kernel *kernel;
	uint32_t *stamps;		/* of all blocks, as the last run left them */
};

struct built {
	struct arena arena;		/* owns this struct and all that is in it but graph and plan */
	enum backend backend;
	struct graph *graph;		/* owned, as is the plan, unless the plan is traced */
	struct plan *plan;
	bool traced;			/* its kernels leave stamps; the graph is borrowed */
	struct kernel *kernel;		/* under construction */
	const char *arch;		/* as built_choose_arch says; NULL: it was not called. built_arch reads it */
	int nphases;
	struct built_phase *phases;
};

/* *out is set before anything is allocated. The caller fills graph and plan (history_snapshot). */
void built_new(struct mem *mem, enum backend backend, struct built **out);
void built_free(struct built *b);	/* NULL is fine */
/* The same plan, to be built with stamps. `of` must outlive it. *out is set first. */
void built_new_traced(struct mem *mem, const struct built *of, struct built **out);

/* Print the sources of all phases. lower: instead of lower_plan, unless NULL; `ud` is passed on to it.
 * stop: interrupts lower_plan; may be NULL. */
typedef enum err_code lower_fn(struct mem *mem, const struct plan *p, int phase, void *ud,
	struct kernel **out, struct err *e);
NODISCARD enum err_code built_emit(struct built *b, lower_fn *lower, void *ud, const struct stop *stop, struct err *e);

/* Append what built_emit printed, of all phases, as one translation unit: what several define is there once. A text that
 * was edited is appended as it is. */
void built_print(const struct built *b, struct buf *out);

/* Compile what built_emit printed. CUDA: by NVRTC in the worker of g. HIP: by clang; host: by the system's C compiler;
 * g is not used. */
NODISCARD enum err_code built_compile(struct built *b, struct gpu *g, const struct stop *stop, struct err *e);

/* CUDA: compile for the board of g rather than the plan's device, if that is of a later generation that runs the
 * same text: text for sm_80 is of instructions that all later boards have, that for sm_90a is not. Without a
 * board, or if this is not called, it is the plan's device. */
void built_choose_arch(struct built *b, struct gpu *g, const struct stop *stop);
/* What it is compiled for: as chosen, or the plan's device. */
const char *built_arch(const struct built *b);

/* CUDA, in the background: after built_emit call built_begin, then pool_step until built_ready, then
 * built_end, which has the errors of the compiler. only_cached: phases whose binary is not in the cache are not compiled
 * before pool_again is called for them (pool_missing). */
void built_begin(struct built *b, struct pool *p, bool only_cached);
bool built_ready(const struct built *b);
NODISCARD enum err_code built_end(struct built *b, struct err *e);

/* ---- for run.c and on_host.c ---- */

/* The buffers of a phase's launch that are not tensors. */
enum { PHASE_ORDER, PHASE_START, PHASE_STAMPS, PHASE_BUFFERS };

struct phase_buffer {
	size_t bytes;			/* 0: the kernel does not use it */
	const void *from;		/* contents; NULL: zeros */
	void *to;			/* where the contents after the run belong; NULL: nowhere */
};

/* at: b's plan, or that plan at sizes (plan/sized.h). In `a`. Returns how many EUs are at work, which is the number of
 * blocks. */
int built_phase_buffers(const struct built *b, const struct plan *at, int phase, struct arena *a,
	struct phase_buffer out[PHASE_BUFFERS]);
/* A parameter as it is at the sizes of the program: those of a map are in its dimensions and strides. */
struct param built_param_at(const struct param *x, const struct program *p);
/* The parts of a tensor whose pointer leads to the addresses of them (by_address); else 0. */
int built_parts(const struct program *p, int tensor);
/* The number of the buffer of a parameter that is not PARAM_SIZE, where the phase's buffers begin with `first` and
 * tensor t is buffer tensors[t]; tensors NULL: buffer t. */
int built_buffer_of(const struct param *x, const int *tensors, int first);

#endif
