/* diff.h - what is different between the scripts of two plans, statement by statement. */
#ifndef PLAN_DIFF_H
#define PLAN_DIFF_H

#include "base/arena.h"

enum diff_kind { DIFF_SAME, DIFF_GONE, DIFF_NEW };

struct diff_line {
	enum diff_kind kind;
	const char *text;		/* without its newline */
};

struct diff {
	VEC(struct diff_line) v;	/* all lines of both; what is gone before what is new */
	int gone, added;
};

/* The fewest lines gone and new that lead from one text to the other (unless that is too many to look for); in `a`. */
void script_diff(struct arena *a, const char *one, const char *other, struct diff *out);

#endif
