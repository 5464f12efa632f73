/* on_host.h - running a plan's kernels on the CPU, one launch for each phase (host.h). */
#ifndef RUN_ON_HOST_H
#define RUN_ON_HOST_H

#include "run/built.h"

struct on_host_options {
	uint64_t seed;			/* of the random choices wherever the plan leaves the order open */
	bool race;			/* also report accesses that nothing orders; slower */
	double limit;			/* seconds for each phase; 0: no limit */
	bool keep;			/* outputs begin with what data[] has, else with NaN */
};

/* b: built for BACKEND_HOST. at: its plan, or that plan at sizes (plan/sized.h), which tensors then have. data[t]:
 * the packed elements of tensor t, NULL for temporaries; outputs are written. *report: NULL, or in `a` what the
 * kernel did wrong. */
NODISCARD enum err_code on_host_run(const struct built *b, const struct plan *at, void *const *data,
	const struct on_host_options *o,
	const struct stop *stop, struct arena *a, const char **report, struct err *e);

/* A PARAM_MAP as the runtime takes it, without its base address. */
struct host_map on_host_map(const struct program *p, const struct param *x);

#endif
