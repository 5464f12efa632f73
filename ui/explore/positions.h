/* positions.h - the positions to which an sTask that is picked up can move, and what each would cost.
 *
 * A position is a lane, the entry that follows in its order, and an offset. While no key is pressed, positions are
 * tried one by one, by moving the sTask in a copy of the plan.
 */
#ifndef UI_EXPLORE_POSITIONS_H
#define UI_EXPLORE_POSITIONS_H

#include "explore/model.h"

struct position {
	int lane;			/* of the plan */
	int before;			/* sTask before which it would be issued; NONE: it would be the last */
	int at;				/* offset */
	bool here;			/* the sTask is there now */
	bool tried, legal;
	double seconds;			/* time of the plan, if it is legal */
	enum extra_versions extra;	/* values that have one version more for that time */
	const char *also;		/* "k: 2 versions": what the move and `extra` make deeper; "" */
	const char *brief, *why;	/* the problem, in a word and in a sentence, if it is not legal */
};

struct positions {
	struct arena arena;
	struct history *copy;		/* in which positions are tried */
	struct state *state;		/* of the position being tried */
	int mark;			/* of the unchanged copy */
	int task;			/* of the plan */
	VEC(struct position) v;		/* sorted by lane, order, offset */
	int chosen;			/* index in v */
};

/* Pick the selected sTask up; if that is not possible, the message says why. */
void positions_open(struct model *m);
/* Move it to the chosen position; leave it where it was. Nothing happens if none is picked up. */
void positions_drop(struct model *m);
void positions_close(struct model *m);
/* Try one more position; false if all have been tried. */
bool positions_step(struct model *m);
/* Choose the next position in the order (dy) or the next offset (dx). */
void positions_choose(struct model *m, int dx, int dy);
const struct position *positions_chosen(const struct model *m);	/* NULL */

/* Draw a table from row y on: a row for each gap in an order, a column for each offset. */
void positions_draw(struct model *m, struct cells *out, int y);

#endif
