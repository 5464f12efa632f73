/* plain_text.h - what the files of plain.h share. */
#ifndef REFERENCE_PLAIN_TEXT_H
#define REFERENCE_PLAIN_TEXT_H

#include "reference/plain.h"

extern const char plain_prelude[];

/* Set of the nodes, by id, that have no array of their own: the one node that takes such a value computes its elements where
 * it reads them. A text of arrays alone takes a compiler twice as long. */
const bool *plain_inlined(struct arena *a, const struct extents *x);

/* Offsets of the values of a phase in a block's memory, in doubles. */
struct plain_memory {
	int64_t *node, *carry;		/* by id; NONE: is not there */
	int64_t a, b;			/* operands of the present product, rearranged */
	int64_t total;
};
NODISCARD enum err_code plain_memory(struct arena *arena, const struct extents *x, int phase,
	struct plain_memory *out, struct err *e);

struct plain_text {
	const struct program *p;
	const struct extents *x;
	struct arena *a;
	struct buf *out;
	const bool *inlined;		/* by node, of plain_inlined */
	const char *shared;		/* the loops that plain_begin opened; NULL: none are open */
	unsigned flags;
	int indent;
	/* Of the axes that the loops at hand run over: does i_AXIS count along all of the axis, or from lo_AXIS on? */
	bool full_axis[AXES_MAX];
};

/* A line at the present indentation, which a line with `{` at its end or `}` at its start changes; an empty one; "TO = FROM;" under the line before. */
void plain_line(struct plain_text *t, const char *fmt, ...) PRINTF(2, 3);
void plain_gap(struct plain_text *t);
void plain_statement(struct plain_text *t, const char *to, const char *from);

const char *plain_number(struct arena *a, double x);
const char *plain_axis(const struct plain_text *t, int axis);
/* Position along all of the axis, in a loop over it, or outside of one (then the axis has one value). */
const char *plain_position(struct plain_text *t, int axis, bool looped);
/* The element of a node or of a carry for the indices of the loops around; of an inlined node what computes it. */
const char *plain_value(struct plain_text *t, int node);
const char *plain_carry_element(struct plain_text *t, int carry);

/* A length of a loop, as an expression of inputs where the run begins. */
const char *plain_length_index(struct plain_text *t, const struct index_expr *x);

/* Loops over some axes: each over all of the axis, or over the present tile. */
struct plain_loops {
	int n;
	int axis[2 * RANK_MAX];
	bool full_axis[2 * RANK_MAX];
};
void plain_loop(struct plain_loops *l, int axis, bool full);
int64_t plain_nominal(const struct plain_text *t, int axis, bool full);
const char *plain_length(struct plain_text *t, int axis, bool full);
struct plain_loops plain_loops_of_node(const struct plain_text *t, int node);
struct plain_loops plain_loops_of_carry(const struct plain_text *t, int carry);

/* Begin statements of an element, in braces, unless the same loops are open already: a thread has the same elements of
 * all that is in them, so nothing waits in between. plain_end closes them, if any are open. */
void plain_begin(struct plain_text *t, const struct plain_loops *l);
void plain_end(struct plain_text *t);

/* "EACH(...) AXIS(...)": the threads share what follows. */
void plain_each(struct plain_text *t, const struct plain_loops *l, const char *after);
void plain_each_of_node(struct plain_text *t, int node, const char *after);
void plain_each_of_carry(struct plain_text *t, int carry);

/* What computes an element of an element-wise node, from elements of its arguments. */
const char *plain_formula(struct plain_text *t, int node);

/* All of a node. */
void plain_node(struct plain_text *t, int node);

#endif
