/* on_host.h - a plan's kernels on the CPU, one launch a phase (host.h). */
#ifndef RUN_ON_HOST_H
#define RUN_ON_HOST_H

#include "emit/emit.h"
#include "plan/plan.h"
#include "host/host.h"

/* A plan compiled for the host. graph and plan are its own (history_snapshot), filled
 * by the caller before on_host_compile. */
struct on_host {
	struct arena arena;
	struct graph *graph;
	struct plan *plan;
	struct kernel *kernel;		/* under construction */
	bool traced;			/* its kernels leave stamps (lower/stamps.h), and its
					 * graph is another's */
	int nphases;
	struct source *sources;
	struct host_kernel **kernels;
	/* by phase, of a traced one */
	struct kernel **lowered;
	uint32_t **stamps;		/* that the last run left */
};

struct on_host_options {
	uint64_t seed;			/* of the order of whatever the plan leaves open */
	bool race;			/* look for accesses that nothing orders; slower */
	double limit;			/* seconds a phase; 0: none */
};

/* *out is set first. */
void on_host_new(struct mem *mem, struct on_host **out);
void on_host_free(struct on_host *h);
/* The same plan, to be compiled with stamps; `of` outlives it. *out is set first. */
void on_host_new_traced(struct mem *mem, const struct on_host *of, struct on_host **out);
/* Texts, and shared objects by the system's C compiler. */
NODISCARD enum err_code on_host_compile(struct on_host *h, const struct stop *stop, struct err *e);
/* The same of kernels that `lower` makes as lower_plan does, which is what it is otherwise;
 * `ud` is its own. */
typedef enum err_code lower_fn(struct mem *mem, const struct plan *p, int phase, void *ud,
	struct kernel **out, struct err *e);
NODISCARD enum err_code on_host_compile_by(struct on_host *h, lower_fn *lower, void *ud,
	const struct stop *stop, struct err *e);
/* data[t]: packed elements of tensor t, temporaries NULL. *report, in `a`: NULL, or what
 * the kernel did wrong. */
NODISCARD enum err_code on_host_run(struct on_host *h, void *const *data,
	const struct on_host_options *o, const struct stop *stop, struct arena *a,
	const char **report, struct err *e);

/* A PARAM_MAP as the runtime takes it, without its base. */
struct host_map on_host_map(const struct program *p, const struct param *x);

#endif
