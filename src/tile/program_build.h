/* program_build.h - what the files that build a program share.
 *
 * Not for users of a program: they want program.h. The functions named check_* change nothing; what is named build_*
 * cannot fail, so that each building call is first all its checks and then its change.
 */
#ifndef TILE_PROGRAM_BUILD_H
#define TILE_PROGRAM_BUILD_H

#include "tile/program.h"

enum { LENGTH_DEPTH = 16 };		/* operations one behind the other that a length may have; walks over other values
					 * end there, as these are no trees, and deeper ones could take very long */

/* The entries of a body, borrowed until something is added to it. */
struct items {
	const struct item *v;
	int n;
};
struct items program_body(const struct program *p, int phase, int loop);

/* Text of a part of a message. */
struct phrase {
	char s[192];
};
/* "{m, n}" */
struct phrase axes_phrase(const struct program *p, int n, const int *axes);
/* "the loop over {n} at line 12" */
struct phrase loop_phrase(const struct program *p, int loop);
/* "'load_k'", "the exp2 in 'softmax'", "the constant 3" */
struct phrase value_phrase(const struct program *p, int node);

/* Give axes that are batch in some phases and tiled in others a twin where they are batch; from program_finish. ERR_LIMIT. */
NODISCARD enum err_code make_twins(struct program *p, struct err *e);

/* A copy of what tasks of their own change: nodes, tasks and bodies. It borrows the others from p. */
struct program *build_copy(struct arena *a, const struct program *p);
/* Add a node that casts the value to the type that it has, and nothing else: what hands it on. Returns its number; it is in the
 * value's task until that is set. */
int build_same_value(struct arena *a, struct program *p, int value);
/* ERR_INPUT: a new task cannot have that name. */
NODISCARD enum err_code build_check_new_task(const struct program *p, const char *name, struct srcloc loc, struct err *e);
/* Put a task before or behind another one in the body in which that is. */
void build_insert(struct arena *a, struct program *p, int next_to, int task, bool behind);

/* As sets. */
bool same_axes(int na, const int *a, int nb, const int *b);
bool axis_is_batch(const struct program *p, int phase, int axis);
/* Is the axis batch where the program is being built, so that values do not have it? */
bool axis_is_batch_here(const struct program *p, int axis);
/* The same in region `loop` of a phase: because of the phase, or of a loop around (`loop` itself included). */
bool axis_is_batch_in(const struct program *p, int phase, int loop, int axis);
/* Is there an axis of words that hold elements of this one? */
bool is_packed(const struct program *p, int axis);
/* The axis of words of `per` elements along `axis`, which fill them: one that is there, or a new one. */
NODISCARD enum err_code find_words(struct program *p, int axis, int per, struct srcloc loc, int *out, struct err *e);
/* Can an i32 hold it exactly? */
bool is_i32_value(double x);

NODISCARD enum err_code check_name(const char *kind, const char *name, struct srcloc loc, struct err *e);
/* Not between two phases. */
NODISCARD enum err_code check_in_phase(const struct program *p, const char *what, struct srcloc loc, struct err *e);
/* May a load, store or product stand here, not between phases nor in an open task? name NULL: it is called by its
 * stem. */
NODISCARD enum err_code check_own_task(const struct program *p, const char *what, const char *name, const char *stem,
	struct srcloc loc, struct err *e);
NODISCARD enum err_code check_task_name(const struct program *p, const char *name, struct srcloc loc, struct err *e);
/* An axis of packed words is tiled with what it packs: "it cannot be <verb>". */
NODISCARD enum err_code check_not_words(const struct program *p, int axis, const char *verb,
	struct srcloc loc, struct err *e);
/* Is the value of the expression small enough to compute, for the axes' sizes? */
NODISCARD enum err_code check_index(const struct program *p, const struct index_expr *x,
	struct srcloc loc, struct err *e);

/* The index expressions of a load or store, and the axes its value has. */
struct access {
	struct index_expr index[RANK_MAX];
	int naxes;
	int axis[RANK_MAX];
	int nvalues;
	int value[3];			/* that are added to indices, each once */
};
/* index NULL: each dimension at its own axis. May the values be used here, and are they integers? */
NODISCARD enum err_code check_access(const struct program *p, const struct tensor *t, const struct index_expr *index,
	struct srcloc loc, struct access *out, struct err *e);
/* Is the value of a type that an index of dimension d can have? */
NODISCARD enum err_code check_index_type(const struct program *p, const struct tensor *t, int d, int value,
	struct srcloc loc, struct err *e);
/* Does every element of every tile that is stored so have coordinates of its own? */
NODISCARD enum err_code check_apart(const struct program *p, const struct tensor *t,
	const struct access *x, struct srcloc loc, struct err *e);

/* May the value be used here? */
NODISCARD enum err_code check_value(const struct program *p, int value, struct srcloc loc, struct err *e);

/* The outermost of the loops around region `loop` that run over the axis; there is one. */
int loop_over(const struct program *p, int loop, int axis);
/* A node to fill in: no arguments, no reference, no axes. */
struct node blank_node(enum op op, enum dtype type, struct srcloc loc);
/* Begin phase "main" if there is none. */
void build_enter_phase(struct program *p, struct srcloc loc);
/* name NULL: `stem`, `stem`2, ... or, if numbered, `stem`1, `stem`2, ... */
const char *build_task_name(struct program *p, const char *name, const char *stem, bool numbered);
/* A task at the end of the present body. It becomes the present task only if the
 * caller says so; the one before ends. `name` lives as long as the program. */
int build_task(struct program *p, const char *name, enum task_kind kind, struct srcloc loc);
/* Append to the present task, or to a new "ew" task. */
int build_node(struct program *p, const struct node *n);

/* The axis, node, ... of that id; an id out of range is our bug. */
const struct axis *axis_at(const struct program *p, int id);
const struct tensor *tensor_at(const struct program *p, int id);
const struct node *node_at(const struct program *p, int id);
const struct carry *carry_at(const struct program *p, int id);

/* Marks the nodes that lengths of loops are computed from. */
void mark_lengths(const struct program *p, bool *mark);
/* Sets index_below of all tensors (program_indices.c). */
void find_index_ranges(struct program *p);
/* Notes of which sums each tile of the grid has a part, and which axes are not divided among tiles, because of additions in memory
 * (program_additions.c). Scratch memory in the program's arena. */
void find_additions(struct program *p);
/* Roles of all axes in a phase. */
void axis_roles(const struct program *p, int phase, enum axis_role role[AXES_MAX]);

#endif
