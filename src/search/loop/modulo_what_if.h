/* modulo_what_if.h - what would a little more of something bring?
 *
 * The problem with one thing made easier is solved again; nothing is estimated.
 */
#ifndef SEARCH_LOOP_MODULO_WHAT_IF_H
#define SEARCH_LOOP_MODULO_WHAT_IF_H

#include "search/loop/modulo.h"

enum modulo_ease_kind {
	MODULO_EASE_VERSIONS,		/* value `index` may have `amount` more */
	MODULO_EASE_CAPACITY,		/* memory `index` is `amount` times as large */
	MODULO_EASE_UNIT,		/* unit `index` is `amount` times as fast */
	MODULO_EASE_LATENCY,		/* task `index` takes `amount` cycles less until it is complete */
	MODULO_EASE_HOLD,		/* ... and holds its lane so much less */
	MODULO_EASE_LANE,		/* tasks that may be on lane `index` may be on a further one like it */
};

struct modulo_ease {
	enum modulo_ease_kind kind;
	int index;
	double amount;
};

/* The problem made easier, in `a`; what is not changed is shared with p. Of a unit's
 * tasks `busy` is divided, and what `latency` counts of it goes, and what `hold` does
 * if that is no less. No latency falls below what a negative lag takes off it. */
NODISCARD enum err_code modulo_ease(struct arena *a, const struct modulo_problem *p,
	const struct modulo_ease *x, struct modulo_problem *out, struct err *e);

/* That, solved. ERR_INPUT: no such thing, or no ease; ERR_LIMIT: too many lanes; else as modulo_solve. */
NODISCARD enum err_code modulo_what_if(struct arena *a, const struct modulo_problem *p,
	const struct modulo_ease *x, const struct modulo_effort *effort, const struct stop *stop,
	struct modulo_answer *out, struct err *e);

#endif
