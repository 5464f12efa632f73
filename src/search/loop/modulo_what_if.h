/* modulo_what_if.h - how much would a little more of something help?
 *
 * One thing of the problem is eased, and the problem is solved again; nothing is estimated. */
#ifndef SEARCH_LOOP_MODULO_WHAT_IF_H
#define SEARCH_LOOP_MODULO_WHAT_IF_H

#include "search/loop/modulo.h"

enum modulo_ease_kind {
	MODULO_EASE_VERSIONS,		/* value `index` may have `amount` more */
	MODULO_EASE_CAPACITY,		/* the capacity of memory `index` is `amount` times as large */
	MODULO_EASE_UNIT,		/* unit `index` is `amount` times as fast */
	MODULO_EASE_LATENCY,		/* task `index` completes `amount` cycles earlier */
	MODULO_EASE_HOLD,		/* task `index` holds its lane `amount` cycles less */
	MODULO_EASE_LANE,		/* tasks that may be on lane `index` may be on a further one like it */
};

struct modulo_ease {
	enum modulo_ease_kind kind;
	int index;
	double amount;
};

/* Ease a problem. *out is in `a` and shares with p what is not changed. Of the tasks of a faster unit, `busy` is divided;
 * latency, and hold if it is not less than busy, decrease by as much. No latency becomes less than what a negative lag
 * subtracts from it. ERR_INPUT: an index or amount out of range. ERR_LIMIT: there are MODULO_LANES_MAX lanes already. */
NODISCARD enum err_code modulo_ease(struct arena *a, const struct modulo_problem *p,
	const struct modulo_ease *x, struct modulo_problem *out, struct err *e);

/* Ease a problem and solve it. Errors of both. */
NODISCARD enum err_code modulo_what_if(struct arena *a, const struct modulo_problem *p,
	const struct modulo_ease *x, const struct modulo_effort *effort, const struct stop *stop,
	struct modulo_answer *out, struct err *e);

#endif
