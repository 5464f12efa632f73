/* names.h - checks of a role program that need no execution; for use inside src/verify.
 *
 * The tree is read once, top down, because these rules are the same in each iteration. An error is
 *
 *  - a variable or a fragment that is used where it is not declared, declared twice, or declared as a constant and
 *    changed;
 *  - a fragment of one sTask that is read before it is written; an operation that reads what it writes, because a
 *    second execution would have another result;
 *  - a product without a fence after the pins of its registers, or of pairs that a compiler may move to where the previous product has
 *    not read its registers; columns of an sTask's result that two of its products
 *    compute, or none; the result of a product in a fragment of the sTask that is read before it is complete and
 *    pinned;
 *  - a value in the lane's scratch that is read before it is there, or overwritten while it may be read;
 *  - an sTask that does not write or store what it must;
 *  - a lane that does not begin with its number of registers and the end of warps that it does not need.
 *
 * names.c goes through the tree and checks variables and sTasks, names_frag.c fragments and the lane's scratch.
 */
#ifndef VERIFY_NAMES_H
#define VERIFY_NAMES_H

#include "verify/acts.h"

/* ERR_ILLEGAL, with the lane, the sTask and the operation. `a` is scratch. */
NODISCARD enum err_code names_check(struct arena *a, const struct setting *s, struct err *e);

/* ---- for names.c and names_frag.c alone ----------------------------------------------------- */

/* A variable as it is visible here. */
struct name {
	int body;			/* number of the body that declares it; 0: it is not declared */
	int id;				/* number of the declaration */
	int used;			/* last; times are operations counted */
	bool changes;			/* it may be set again */
	int deps, ndeps;		/* in names.deps: declarations that it was computed from */
};

struct dep {
	int name, id;
};

struct shadow {
	int name;
	struct name was;
};

/* A fragment as it is visible here. Time 0 is never. */
struct seen_frag {
	const struct frag *frag;
	int body;
	int written;			/* first time, if it belongs to a single sTask */
	int read, version;		/* last time, and the version then */
	int pinned, pinned_version;	/* last */
	int changed;			/* last, by ordinary code or a product */
	bool pairs;			/* pairs that were computed at once (role_op.u.pack.pairs) */
	bool unordered;			/* pairs that may be executed before the wait that precedes the copy to a product's
					 * operand: compilers may move them there, or they were written before that wait */
	enum { SUM_THERE, SUM_UNDER_WAY, SUM_UNPINNED } sum;	/* if it belongs to a single sTask */
};

/* A value in the scratch. */
struct scratched {
	int64_t at, end;		/* its first byte, and the one behind its last */
	bool there;			/* the threads of the lane have met since it was written */
};

struct names {
	struct arena *a;
	const struct setting *set;
	const struct role_program *r;
	const struct role *role;
	const struct role_op *op;	/* at hand */
	int now, body, bodies, ids;
	int begin;			/* when the body at hand began */
	int first[VAR_COUNT + 1];	/* by variable: the first of its names, one for each index */
	struct name *name;
	VEC(struct shadow) shadowed;	/* hidden declarations, visible again after the bodies at hand */
	VEC(struct dep) deps;
	int hiding;			/* how many names hide others */
	VEC(struct seen_frag) frags;
	/* of the sTask at hand */
	int task_began, product, fenced;
	const struct frag *sum;		/* of its products; the columns that they have so far */
	int64_t multiplied;
	bool indices;			/* a sparse product may be under way */
	int depth;			/* bodies around, within the sTask, that may not be executed */
	bool stores, may_store;		/* may_store: in a body that is left out where a tensor has nothing of the tile */
	VEC(int) wrote;			/* buffers */
	VEC(struct scratched) scratch;
	bool scratch_read;		/* it may have been read since the threads last met */
	bool scratch_read_before;	/* the same, when the operation at hand began */
	bool in_scratch;		/* the address at hand is in the scratch, not in a slot */
	enum err_code code;		/* of the first error */
	struct err *e;
};

void names_fail(struct names *c, const char *fmt, ...) PRINTF(2, 3);

/* names_frag.c */
void names_declare_frag(struct names *c, const struct frag *f);
void names_read(struct names *c, struct frag_at at);
void names_write(struct names *c, struct frag_at at);
void names_pin(struct names *c, struct frag_at at);
void names_groups_wait(struct names *c, int n);
/* PACK, KEEP: what it has written. */
void names_pack(struct names *c, const struct role_op *o);
void names_product(struct names *c, const struct role_op *o);
/* Fragments that were first written since then may not have been written. */
void names_forget(struct names *c, int since);
void names_scratch_read(struct names *c, const struct num *address);
void names_scratch_write(struct names *c, const struct num *address);
void names_scratch_all(struct names *c);
void names_met(struct names *c);

#endif
