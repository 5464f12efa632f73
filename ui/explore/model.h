/* model.h - what the explorer is about: a plan and all that follows from it.
 *
 * A state is one plan, with what check, simulation and lowering say of it; each edit makes
 * a new one. Views read states and the selection, and edit through the functions here.
 * Names of sTasks are how things are kept from one state to the next, since an edit may
 * change the graph.
 */
#ifndef UI_EXPLORE_MODEL_H
#define UI_EXPLORE_MODEL_H

#include "draw/draw.h"
#include "lower/lower.h"
#include "plan/check.h"
#include "plan/history.h"
#include "sim/lookup.h"
#include "sim/priced.h"

struct state {
	struct arena arena;
	const struct graph *graph;	/* never NULL */
	const struct plan *plan;	/* NULL: there is only a graph */
	const struct timeline *tl;	/* simulated, or, if there is no plan to simulate, measured;
					 * NULL: the plan is not legal */
	struct lookup *lookup;		/* by phase of tl */
	struct overview **overview;	/* likewise; NULL until it is asked for */
	bool checked;			/* problems and usage are filled in */
	bool legal;
	bool model_only;		/* no kernel is made for the device */
	struct problems problems;
	struct usage usage;
	const char *unchecked;		/* why it could not be checked; NULL */
	const char *script;		/* statements of the plan; "" */
	const char *kernel;		/* what state_kernel_text found; NULL */
	/* what is freed with it; views do not look here */
	struct graph *own_graph;
	struct plan *own_plan;
	struct timeline *own_tl;
	struct kernels *kernels;
	struct kernel *held;
};

struct model;

/* Where the user is. */
struct selection {
	int phase;			/* of the timeline shown */
	int event;			/* of that phase's events; NONE */
	int task;			/* of the graph; NONE */
	bool marked;			/* the second cursor */
	int64_t cursor, mark;		/* cycles */
};

/* What the user asks for in words, in the line at the bottom. */
struct question {
	const char *text;		/* "save as: "; NULL: nothing is asked */
	char answer[256];
	void (*then)(struct model *m, const char *answer);	/* not called if the question is called off */
	bool may_be_empty;		/* the answer "" means something */
	bool one_key;			/* it is answered by one key, without Enter */
};

/* What only Lua can do, with the plan at hand; each leaves a message. */
struct model_calls {
	void *arg;
	/* The whole script of the present plan; in m->frame; NULL after a message. */
	const char *(*script)(struct model *m);
	/* Compile, check and trace the present plan on the device; NULL after a message. */
	const struct timeline *(*measure)(struct model *m);
	/* Search from the present plan, which is then what was found, by one edit or none if *changed is
	 * false; `pinned` are names of what stays. What was done, in m->frame; NULL after a message. */
	const char *(*improve)(struct model *m, const char *pinned, bool *changed);
};

struct places;

struct model {
	struct mem *mem;
	struct stop stop;		/* of what takes long */
	volatile int *interrupted;	/* ... the flag that it looks at: Ctrl-C */
	struct arena arena;		/* of the model */
	struct arena frame;		/* for one drawing, or one key */
	VEC(struct arena *) kept;	/* see model_arena */
	unsigned flags;			/* enum draw_flags of the terminal */
	const char *title;		/* "flash_attention on h200" */
	struct history *history;	/* borrowed; NULL: nothing can be edited */
	struct state *now;
	struct state *next;		/* in the making, where whoever is left by a jump finds it */
	struct state *base;		/* what comparisons are with; never NULL, may be `now` */
	bool base_given;		/* it is another object of the user's, not an earlier state */
	const struct timeline *measured;	/* borrowed; of the plan `measured_of`; NULL */
	const char *measured_of;	/* its statements */
	int opened, at;			/* marks of the history: when it was opened, of `now` */
	bool each_part;			/* parts of a split sTask are moved one by one */
	const char *saved;		/* statements as they were opened or saved last */
	struct selection sel;
	struct places *places;		/* of the sTask that is picked up; NULL: none is */
	struct question ask;
	char message[512];		/* for the user, until the next key */
	bool wrong;			/* ... that something cannot be done */
	char wanted[64];		/* what was searched for last; "" */
	int go;				/* enum view_id that a view asks to be shown; -1 */
	struct model_calls calls;
};

/* The model is zero but for what the caller sets afterwards. */
void model_init(struct model *m, struct mem *mem);
/* Give back all memory, also that of states and of model_arena; idempotent. */
void model_free(struct model *m);
/* An arena that model_free releases; its owner may release it earlier and fill it again. */
struct arena *model_arena(struct model *m);

/* ---- states ---- */

/* A state of the history's present plan, its timeline with events or without; of a timeline and its
 * plan, whose statements are `script` (NULL: those that leave out what shaped the graph); of a graph
 * alone. The two latter borrow. *out is set before anything that can fail; ERR_INTERRUPTED if it took
 * too long for the user. */
NODISCARD enum err_code state_of_history(struct model *m, struct history *h, bool events,
	struct state **out, struct err *e);
void state_of_timeline(struct model *m, const struct timeline *t, const char *script,
	struct state **out);
void state_of_graph(struct model *m, const struct graph *g, struct state **out);
void state_free(struct state *s);	/* NULL is fine */

/* Role programs of the state's plan as text (role_print), phase by phase; a sentence if there are
 * none. Made once, and kept with the state. */
const char *state_kernel_text(struct model *m, struct state *s);
/* The source printed for the plan's device; in m->frame. */
const char *model_source_text(struct model *m);

/* ---- what is said to the user ---- */

void model_say(struct model *m, const char *fmt, ...) PRINTF(2, 3);
void model_refuse(struct model *m, const char *fmt, ...) PRINTF(2, 3);
void model_ask(struct model *m, const char *text, const char *answer,
	void (*then)(struct model *m, const char *answer));

/* ---- selection ---- */

/* The phase of the timeline shown; NULL without a timeline. */
const struct phase_line *model_line(const struct model *m);
const struct lookup *model_lookup(const struct model *m);
const struct event *model_event(const struct model *m);	/* NULL */
/* Of the phase shown, if it has so many events that one is wanted; NULL. */
struct overview *model_overview(struct model *m);
void model_select_event(struct model *m, int event);	/* its sTask, too */
/* Of an sTask, the event nearest to the cursor. */
void model_select_task(struct model *m, int task);
/* The next sTask whose name holds the text; direction as in view_ops.find. */
bool model_find_task(struct model *m, const char *text, int direction);

/* ---- edits: each is one of the history, makes the new state, and says what came of it ---- */

bool model_can_edit(struct model *m);	/* or says why not */
/* The selected sTask, or all parts of it likewise; with one version more of values, as one edit.
 * before= and after= are full names. */
enum deeper { DEEPER_NONE, DEEPER_READS, DEEPER_WRITES };
void model_move(struct model *m, const struct move *how, enum deeper deeper);
/* One version more of the values in registers that the moved sTask reads in its loop, or writes;
 * returns how many, at most `room`. */
int model_deeper(const struct model *m, int task, enum deeper which, struct versions_of *out, int room);
void model_shift(struct model *m, int by);	/* the selected sTask's offset */
void model_reorder(struct model *m, int by);	/* ... and place in its lane's order */
void model_change_lane(struct model *m);
void model_deepen(struct model *m, int by);	/* ring of the selected sTask's value */
void model_wait(struct model *m, const char *on, bool add);
void model_tile(struct model *m, const char *words);	/* "m=128 n=64" */
void model_repair(struct model *m);
void model_improve(struct model *m, const char *pinned);	/* "softmax tile": names of what stays */
void model_undo(struct model *m);
void model_redo(struct model *m);
void model_save(struct model *m, const char *path);
void model_run(struct model *m);
void model_set_base(struct model *m);		/* compare with the present state from here on */
/* The name by which the selected sTask is moved: its own, or that of all its parts; in m->frame. */
const char *model_moved_name(struct model *m, int task);
bool model_is_changed(const struct model *m);	/* since it was opened or saved */
void model_discard(struct model *m);		/* all edits since it was opened */

#endif
