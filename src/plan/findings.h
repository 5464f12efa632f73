/* findings.h - what is wrong with the order of a plan, before it is put in words.
 *
 * Inside check.c's reach only. Deadlocks and dependences that are not kept are found in relations (events.h), each of
 * which is about one list: so many tiles, with so many iterations of each loop in each iteration around it. Which lists
 * to look at is the matter of lists.c; what one of them shows, of findings.c.
 */
#ifndef PLAN_FINDINGS_H
#define PLAN_FINDINGS_H

#include "plan/check.h"
#include "plan/order.h"

enum { CYCLE_SHOWN = 12 };		/* sTasks of a deadlock that are named */

/* The first breach of one dependence: `to` of it may come before `from` is complete. */
struct breach {
	bool found;
	enum problem_code code;
	int64_t from, to;		/* sequence numbers */
};

/* Lists and edges that showed no breach. Further waits cannot break them, so plan_fill_waits, which only adds
 * waits, does not examine them again. */
enum { LISTS_NOTED = 4096 };		/* lists with greater numbers are always examined */
struct sound {
	bool *edge;			/* by edge: in the list with most of everything */
	bool list[LISTS_NOTED];		/* of the others, by number in the order in which they are examined */
	bool all_looked_at;		/* once; lists that are not sound then are always examined */
};

/* For all phases together. */
struct findings {
	const struct plan *plan;
	struct breach *edge;		/* by edge */
	int ncycle;			/* sTasks of a deadlock; 0: there is none */
	int cycle[CYCLE_SHOWN];
	bool any;
	bool *needed;			/* by wait, as relation_build's; NULL: of no interest */
	bool reads;			/* look at dependences of readers on writers alone */
	struct sound *sound;		/* is left out; what is found to be sound is added. NULL: nothing is */
	int broken, most;		/* dependences that are; more than so many are not looked for */
	const struct stop *stop;
	enum err_code code;		/* why there is no answer; *e says more */
	struct err *e;
};

/* With nothing found so far, and all to be found. The breaches are in `a`. */
struct findings findings_new(const struct plan *p, struct arena *a, const struct stop *stop, struct err *e);

/* Add what a phase shows. quick: in one list alone, where every deadlock shows but perhaps
 * not every breach. Raises u->lane_registers to what the phase needs, unless there are
 * findings; u may be NULL. Scratch in `a`, as it was when it returns. */
void findings_add_phase(struct findings *f, int phase, bool quick, struct arena *a, struct usage *u);

/* Add what one list shows; the same. Edges that are `sound` in it are left out, and those found to be are added;
 * NULL: none. Returns whether no edge is broken, as far as f->sound asks for that. */
bool findings_add_list(struct findings *f, const struct walk *w, bool *sound, struct arena *a, struct usage *u);

#endif
