/* compare.h - how two plans and their timelines differ, as text; for view_compare.c. */
#ifndef UI_EXPLORE_COMPARE_H
#define UI_EXPLORE_COMPARE_H

#include "draw/pen.h"
#include "explore/model.h"

/* The first and the second of what is compared: plans of one program, as they were and are, or one plan as it was
 * predicted and measured. */
struct pair {
	const char *name[2];
	const struct plan *plan[2];
	const struct timeline *tl[2];	/* NULL: there is none */
	const struct lookup *lookup[2];
	const char *script[2];
	const struct usage *usage[2];
	bool measured;
	const char *difference;		/* they are plans of different problems, as a sentence; NULL */
};

/* The phase of a timeline, or its first phase if it has not so many; NULL without a timeline. */
const struct phase_line *pair_line(const struct timeline *t, int phase);
/* Can both timelines be drawn over one axis: do both have a clock, or neither? */
bool pair_has_one_time_axis(const struct pair *p);
/* Sections of text: the statements that differ; numbers, causes of waiting, sTasks. */
void put_statements(const struct pair *p, struct pen *pen);
void put_comparison(const struct pair *p, int phase, struct pen *pen);

#endif
