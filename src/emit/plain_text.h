/* plain_text.h - what the files of plain.h share. */
#ifndef EMIT_PLAIN_TEXT_H
#define EMIT_PLAIN_TEXT_H

#include "emit/plain.h"

extern const char *const plain_prelude[];	/* line by line, then NULL */

/* Where the values of a phase lie in a block's memory, in doubles. */
struct plain_room {
	int64_t *node, *carry;		/* by id; NONE: has no place */
	int64_t a, b;			/* operands of the product at hand, rearranged */
	int64_t total;
};
NODISCARD enum err_code plain_room(struct arena *arena, const struct extents *x, int phase,
	struct plain_room *out, struct err *e);

struct plain_text {
	const struct program *p;
	const struct extents *x;
	struct arena *a;
	struct buf *out;
	unsigned flags;
	int indent;
	/* Of the axes that the loops at hand run over: does i_AXIS count along all of the
	 * axis, or from lo_AXIS on? */
	bool whole[AXES_MAX];
};

/* A line at the present indentation. */
void plain_line(struct plain_text *t, const char *fmt, ...) PRINTF(2, 3);
void plain_gap(struct plain_text *t);
void plain_node(struct plain_text *t, int node);
/* "for each element" of a carry: the line that the statement follows. */
void plain_each_of_carry(struct plain_text *t, int carry);
/* The element of a carry at the loops' place. */
const char *plain_carry_element(struct plain_text *t, int carry);
const char *plain_number(struct arena *a, double x);

#endif
