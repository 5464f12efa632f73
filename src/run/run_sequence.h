/* run_sequence.h - running the kernels of a sequence, by its plan. */
#ifndef RUN_RUN_SEQUENCE_H
#define RUN_RUN_SEQUENCE_H

#include "run/on_host.h"
#include "run/run.h"
#include "seq/seqplan.h"

/* What outputs and temporaries are filled with before a run: many such bytes are NaN in bf16 and f32. */
enum { SEQUENCE_POISON_BYTE = 0x7f };

struct sequence_job {
	const struct seqplan *plan;	/* legal */
	/* By call: built of its plan, all for one backend. Of a program that leaves sizes to the launch it runs at
	 * those of the call. */
	struct built *const *kernels;
	/* By tensor: the packed elements of inputs and states; outputs and states are written. Temporaries: NULL,
	 * or, for a call that runs alone, their elements. */
	void *const *data;
	bool graph;			/* on a device: launch all of it as a graph, where the driver can */
};

/* On the CPU: a call after the other, in an order that o->seed chooses among all that the plan allows. *report:
 * NULL, or in `a` what a kernel did wrong. */
NODISCARD enum err_code sequence_on_host(const struct sequence_job *j, const struct on_host_options *o,
	const struct stop *stop,
	struct arena *a, const char **report, struct err *e);

/* One call alone, which reads and writes the bytes of its tensors in data[]; what a program keeps between its
 * phases is in memory of its own. */
NODISCARD enum err_code sequence_call_on_host(const struct sequence_job *j, int call, const struct on_host_options *o,
	const struct stop *stop, struct arena *a, const char **report, struct err *e);

/* On the attached device, as planned. bench NULL: one run. limit: seconds, as for gpu_run. *r lies in `a`. */
NODISCARD enum err_code sequence_on_device(const struct sequence_job *j, struct gpu *g, double limit,
	const struct gpu_bench *bench,
	const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e);

/* One call alone, as on the CPU. */
NODISCARD enum err_code sequence_call_on_device(const struct sequence_job *j, int call, struct gpu *g, double limit,
	const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e);

#endif
