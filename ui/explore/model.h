/* model.h - the data that all views of the explorer show and edit.
 *
 * A state is one plan with the results of checking, simulating and lowering it; each edit makes a new
 * state. Views read states and the selection, and edit through the functions here. An edit may change
 * the graph, so that sTasks of two states are matched by name.
 */
#ifndef UI_EXPLORE_MODEL_H
#define UI_EXPLORE_MODEL_H

#include "draw/draw.h"
#include "explore/settings.h"
#include "lower/lower.h"
#include "plan/check.h"
#include "plan/history.h"
#include "sim/lookup.h"
#include "sim/priced.h"

/* A change of the plan that was tried: what plan:suggest() says of it. */
struct change_tried {
	const char *gain;		/* "4.2 % less time"; "" of a plan that was not legal */
	const char *statements;		/* "plan:buffers{k=3}" */
	const char *reason;
};

struct state {
	struct arena arena;
	const struct graph *graph;	/* never NULL */
	const struct plan *plan;	/* NULL: there is only a graph */
	const struct timeline *tl;	/* simulated, or, if there is no plan to simulate, measured;
					 * NULL: the plan is not legal */
	struct lookup *lookup;		/* by phase of tl */
	bool checked;			/* problems and usage are filled in */
	bool legal;
	bool model_only;		/* no kernels are generated for the device */
	struct problems problems;
	struct problems shown;		/* as plan:check() shows them: in fewer, with statements as hints; by model_problems */
	bool shown_made;
	struct usage usage;
	const char *unchecked;		/* why it could not be checked; NULL */
	const char *script;		/* statements of the plan; "" */
	const char *kernel;		/* cached by state_kernel_text; NULL */
	const char *why;		/* what binds it, or that no change would help; NULL until changes are tried */
	VEC(struct change_tried) changes;	/* that would help, or make it legal, best first */
	/* owned, freed by state_free; views do not use these */
	struct graph *own_graph;
	struct plan *own_plan;
	struct timeline *own_tl;
	struct kernels *kernels;
	struct kernel *held;
};

struct model;

/* What is selected, in all views. */
struct selection {
	int phase;			/* of the timeline shown */
	int event;			/* of that phase's events; NONE */
	int task;			/* of the graph; NONE */
	bool marked;			/* the second cursor */
	int64_t cursor, mark;		/* cycles */
};

/* A question to the user, in the line above the keys. */
struct question {
	const char *text;		/* "save as: "; NULL: there is no question */
	char answer[256];
	bool offered;			/* the answer is a proposal: the first character that is typed replaces it */
	void (*then)(struct model *m, const char *answer);	/* not called if the question is called off */
	bool may_be_empty;		/* the answer "" means something */
	void (*off)(struct model *m);	/* called if it is called off; NULL */
	const char *hint;		/* what Enter and Esc do, for the line of keys; NULL: confirm and cancel */
	const char *keys;		/* it is answered by one of these, without Enter; NULL: by a text */
	bool others_stay;		/* any other key calls it off, as Esc does */
	bool repeats;			/* after an answer that was refused it stays, with the answer and the message */
	bool repeated;			/* that has happened */
};

/* Functions of the Lua side, for the present plan. Each leaves a message if it fails. */
struct model_calls {
	void *arg;
	/* Which changes of the plan would help, or make it legal: struct state's `why` in the first line, then a line for each
	 * with tabs between its texts. In m->frame; NULL if it failed. */
	const char *(*changes)(struct model *m);
	/* Apply the change of that number, "1" for the first, as one edit; false if it failed. */
	bool (*apply)(struct model *m, const char *number);
	/* Make the plan legal, as one edit, by the changes that come first, and return them; if they cannot, *changed is false
	 * and it says what would. In m->frame; NULL if it failed. */
	const char *(*repair)(struct model *m, bool *changed);
	/* The problems of the plan as plan:check() shows them: for each a line with the number of the problem that it begins
	 * with, from 1, its message and its hint, with tabs between them. In m->frame; NULL if it failed. */
	const char *(*problems)(struct model *m);
	/* A path to propose for the plan, in m->frame; NULL if it failed. */
	const char *(*path)(struct model *m);
	/* "exists, and is not the file of this plan": why to ask before the plan is saved there; "": no need to. In
	 * m->frame; NULL if it failed. */
	const char *(*asks)(struct model *m, const char *path);
	/* Save the plan's script; a file that exists is replaced only if `overwrite`. The statement that loads it again,
	 * in m->frame; NULL if it failed. */
	const char *(*save)(struct model *m, const char *path, bool overwrite);
	/* Compile, check and trace the plan on the device; NULL if it failed. */
	const struct timeline *(*measure)(struct model *m);
	/* Search from the plan, and replace it by what was found, as one edit; *changed: something better was found.
	 * `pinned`: names that must stay as they are. Returns a summary in m->frame; NULL if it failed. */
	const char *(*improve)(struct model *m, const char *pinned, bool *changed);
};

struct positions;
struct pane;
struct cached_overview;

struct model {
	struct mem *mem;
	struct stop stop;		/* ends long computations */
	volatile int *interrupted;	/* Ctrl-C sets this flag, which `stop` reads */
	struct arena arena;		/* lives as long as the model */
	struct arena frame;		/* lives for one drawing, or one key */
	VEC(struct arena *) kept;	/* see model_arena */
	unsigned flags;			/* enum draw_flags of the terminal */
	const char *title;		/* "flash_attention on h200" */
	bool keeps_edits;		/* the plan outlives the explorer, so that its edits need not be saved */
	const char *name, *base_name;	/* of the plan, and of another object of the user that is the baseline */
	const char *difference;		/* why the two cannot be compared: they are plans of different problems; NULL */
	struct history *history;	/* borrowed; NULL: nothing can be edited */
	struct state *now;
	struct state *next;		/* under construction; kept here so that it is freed also after an error of Lua */
	struct state *base;		/* baseline of comparisons; never NULL, may be `now` */
	bool base_given;		/* the baseline is another object of the user, not an earlier state */
	const struct timeline *measured;	/* borrowed; NULL: nothing was measured */
	const char *measured_of;	/* statements of the plan that was measured */
	int opened, at;			/* marks of the history: at the beginning, and of `now` */
	bool each_part;			/* slices of a split sTask are moved one by one */
	const char *saved;		/* statements when it was opened or saved last */
	struct tiling saved_tile;	/* and its tile, which no statement gives */
	struct selection sel;
	struct positions *positions;	/* of the sTask that is picked up; NULL: none is */
	struct settings settings;
	char filter[64];		/* words; only lanes, units and sTasks whose names have one of them are shown */
	struct cached_overview *overview;	/* NULL until it is drawn */
	struct pane *pane;		/* NULL until it is drawn */
	struct question ask;
	char message[1024];		/* shown until the next key */
	bool wrong;			/* the message is an error */
	char wanted[64];		/* text that was searched for last; "" */
	int go;				/* enum view_id to be shown next, set by a view; -1 */
	struct model_calls calls;
};

/* The model is zero but for what the caller sets afterwards. */
void model_init(struct model *m, struct mem *mem);
/* Give back all memory, also that of states and of model_arena; idempotent. */
void model_free(struct model *m);
/* An arena that model_free releases; its owner may release it earlier and fill it again. */
struct arena *model_arena(struct model *m);

/* ---- states ---- */

/* New states: of the history's present plan (`events`: with all events of its timeline); of a timeline and its plan,
 * whose statements are `script` (NULL: they are made from the plan, without those that shaped the graph); of a graph
 * alone. The latter two borrow their argument. *out is set before anything that can fail; ERR_INTERRUPTED if the
 * user stopped it. */
NODISCARD enum err_code state_of_history(struct model *m, struct history *h, bool events,
	struct state **out, struct err *e);
void state_of_timeline(struct model *m, const struct timeline *t, const char *script, struct state **out);
void state_of_graph(struct model *m, const struct graph *g, struct state **out);
void state_free(struct state *s);	/* NULL is fine */

/* The role programs of the plan as text (role_print), phase by phase, or a sentence that says why there are none.
 * Cached in the state. */
const char *state_kernel_text(struct model *m, struct state *s);
/* The source code for the plan's device, in m->frame. */
const char *model_source_text(struct model *m);

/* The problems and notes of `now` as plan:check() shows them, if the Lua side says so, else as they were found. Cached in
 * the state. */
const struct problems *model_problems(struct model *m);

/* "legal; 384 of 1,024 threads, ...": what the plan takes of an EU; "" if it is not known. In m->frame. */
const char *model_usage_text(struct model *m);

/* ---- messages ---- */

/* Set the message, or an error message; ask a question. */
bool model_message(struct model *m, bool wrong, const char *fmt, ...) PRINTF(3, 4);	/* returns !wrong */
#define model_say(m, ...) model_message((m), false, __VA_ARGS__)
#define model_refuse(m, ...) model_message((m), true, __VA_ARGS__)
void model_ask(struct model *m, const char *text, const char *answer,
	void (*then)(struct model *m, const char *answer));

/* ---- selection ---- */

/* The phase of the timeline shown; NULL without a timeline. */
const struct phase_line *model_line(const struct model *m);
const struct lookup *model_lookup(const struct model *m);
const struct event *model_event(const struct model *m);	/* NULL */
/* Of the phase shown; NULL if it has so few events that none is needed. */
struct overview *model_overview(struct model *m);
void model_select_event(struct model *m, int event);	/* and its sTask */
/* Select an sTask, and its event that is nearest to the cursor. */
void model_select_task(struct model *m, int task);
/* Does the filter show the sTask, by its own name or that of its lane or unit? By sTask of a plan, in m->frame: which are
 * shown; NULL if all are. */
bool model_shows(const struct model *m, const struct plan *p, int task);
const bool *model_shown(struct model *m, const struct plan *p);
void model_filter(struct model *m, const char *words);	/* "": show all */
/* Select the next sTask that is shown and whose name contains the text; direction as in view_ops.find. */
bool model_find_task(struct model *m, const char *text, int direction);

/* ---- edits: each is one edit of the history, makes the new state, and says how it differs ---- */

bool model_can_edit(struct model *m);	/* if not, the message says why */
/* Move the selected sTask, or all its slices alike, and give values a version more; both are one edit. `before`
 * and `after` of the move are full names. */
enum extra_versions { EXTRA_NONE, EXTRA_OF_READS, EXTRA_OF_WRITES };
void model_move(struct model *m, const struct move *how, enum extra_versions extra);
/* Values in registers that the sTask reads in its loop, or writes, each with one version more than now; returns how
 * many, at most `max`. */
int model_extra_versions(const struct model *m, int task, enum extra_versions which, struct versions_of *out, int max);
void model_shift(struct model *m, int by);	/* change the offset of the selected sTask */
void model_reorder(struct model *m, int by);	/* move it up or down in its lane's order */
void model_change_lane(struct model *m);
void model_deepen(struct model *m, int by);	/* change the versions of the values that it writes */
/* Names of what the selected sTask waits for, with spaces between them, in m->frame; NULL after a message: none is selected. */
const char *model_waits(struct model *m);
void model_wait(struct model *m, const char *on, bool add);
void model_tile(struct model *m, const char *words);	/* "m=128 n=64" */
void model_repair(struct model *m);
void model_improve(struct model *m, const char *pinned);	/* "softmax tile": names that must stay as they are */
bool model_try_changes(struct model *m);	/* find out which changes would help; false: the message says why not */
void model_apply(struct model *m, int change);	/* of m->now->changes */
void model_undo(struct model *m, bool redo);	/* or redo */
bool model_save(struct model *m, const char *path, bool overwrite);	/* false: the message says why not */
void model_run(struct model *m);
void model_set_base(struct model *m);		/* the present state becomes the baseline */
/* Is the entry in the phase and loop of the sTask, and not moved with it? */
bool model_is_neighbour(const struct model *m, const struct entry *e, const struct stask *s);
extern const struct srcloc model_loc;		/* of all edits */
/* The name by which an sTask is moved: its own, or that of all its slices; in m->frame. */
const char *model_moved_name(struct model *m, int task);
bool model_is_changed(const struct model *m);	/* since it was opened or saved */
void model_discard(struct model *m);		/* undo all edits since it was opened */

#endif
