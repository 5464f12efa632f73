/* seqline.h - what the kernels of a sequence did when: predicted, or measured.
 *
 * Seconds from the launch of the first kernel on one axis. What is inside a kernel is in its own timeline
 * (sim/timeline.h).
 */
#ifndef SEQ_SEQLINE_H
#define SEQ_SEQLINE_H

#include "seq/seqplan.h"
#include "sim/timeline.h"

struct seq_span {
	int call, stream;
	double launch;			/* seconds: it could start, as what it waits for had ended */
	double begin, end;		/* seconds: its blocks run */
	int after;			/* the call whose end it waited for; NONE */
	const struct timeline *timeline;	/* borrowed */
	double flops, bytes;		/* of the call: operations, and bytes of its inputs and outputs */
};

struct seqline {
	struct arena arena;
	const struct seqplan *plan;	/* borrowed */
	bool measured;
	int n;
	struct seq_span *spans;		/* in order of launches */
	double seconds;			/* from the first launch to the end of the last kernel */
	double idle;			/* seconds of that in which no kernel runs */
	double flops, bytes;		/* of all calls */
	double clock_hz, watts;		/* of all; 0: not known */
};

/* Which tensors of a call's program are in L2 when it starts: those that a call before it has accessed, if they
 * and all that calls in between have accessed fit into the part of L2 that is of use (sim/traffic.h). By tensor of
 * the program; in `a`. */
bool *seqplan_warm(struct arena *a, const struct seqplan *p, int call);

/* Compose the timeline of a legal plan from those of its kernels, timelines[call]; these and the plan are
 * borrowed. A kernel starts when what is in front of it in its stream, and what it waits for, has ended, and a
 * launch has passed. Kernels of several streams divide the EUs: if together they have more blocks than there are
 * EUs, each is slower by that ratio. The clock follows from the power of all kernels together, as a layer is
 * shorter than the time that a board takes to change it. *out is set before anything that can fail. */
void seqline_simulate(struct mem *mem, const struct seqplan *p, const struct timeline *const *timelines,
	struct seqline **out);
void seqline_free(struct seqline *l);

/* A measured one, with begin[call] and end[call] seconds from the first launch. */
void seqline_measured(struct mem *mem, const struct seqplan *p, const struct timeline *const *timelines,
	const double *begin, const double *end, struct seqline **out);

#endif
