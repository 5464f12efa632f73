/* run_sequence.h - running the kernels of a sequence, by its plan. */
#ifndef RUN_RUN_SEQUENCE_H
#define RUN_RUN_SEQUENCE_H

#include "run/on_host.h"
#include "run/run.h"
#include "seq/seqplan.h"

struct sequence_job {
	const struct seqplan *plan;	/* legal */
	struct built *const *kernels;	/* by call: built of its plan, all for one backend */
	/* By tensor: the packed elements of inputs and states; outputs and states are written. Temporaries: NULL, or, with `first`,
	 * where their elements belong when all is over. */
	void *const *data;
	/* Run the first so many calls alone, one after the other in the order of the sequence, each temporary in memory of its own;
	 * 0: all, as planned. */
	int first;
	bool graph;			/* on a device: launch all of it as a graph, where the driver can */
};

/* On the CPU: a call after the other, in an order that o->seed chooses among all that the plan allows. *report: NULL, or in `a`
 * what a kernel did wrong. */
NODISCARD enum err_code sequence_on_host(const struct sequence_job *j, const struct on_host_options *o, const struct stop *stop,
	struct arena *a, const char **report, struct err *e);

/* On the attached device. bench NULL: one run; of the first so many calls each alone, of all together as planned. limit: seconds, as for gpu_run. *r lies in `a`. */
NODISCARD enum err_code sequence_on_device(const struct sequence_job *j, struct gpu *g, double limit, const struct gpu_bench *bench,
	const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e);

#endif
