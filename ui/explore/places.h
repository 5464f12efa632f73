/* places.h - where an sTask that is picked up may go, each place with what it would do.
 *
 * Places are the orders and offsets of its lane, and of other lanes that may have it. They
 * are tried one by one, on a copy of the plan, while no key comes.
 */
#ifndef UI_EXPLORE_PLACES_H
#define UI_EXPLORE_PLACES_H

#include "explore/model.h"

struct spot {
	int lane;			/* of the plan */
	int before;			/* the entry's sTask that it would stand before; NONE: at the end */
	int at;
	bool here;			/* it is there now */
	bool tried, legal;
	double seconds;			/* if legal */
	enum deeper deeper;		/* ... with one version more of these */
	const char *why;		/* not legal: the problem's name */
};

struct places {
	struct arena arena;
	struct history *copy;
	struct state *state;		/* of the place being tried */
	int mark;			/* of the copy */
	int task;			/* of the plan */
	VEC(struct spot) v;		/* by lane, place in the order, offset */
	int next;			/* to be tried */
	int at;				/* where the user holds it */
};

/* Pick the selected sTask up; or say why not. */
void places_open(struct model *m);
/* Put it down: where it is held, or where it was. Nothing if none is picked up. */
void places_drop(struct model *m);
void places_close(struct model *m);
/* Try one more; false: all are. */
bool places_step(struct model *m);
/* Hold it over the next place in the order (dy), at the next offset (dx). */
void places_hold(struct model *m, int dx, int dy);
const struct spot *places_held(const struct model *m);	/* NULL */
/* "before mma_qk at +1: -3.2 %"; in m->frame */
const char *place_text(struct model *m, const struct spot *p);

#endif
