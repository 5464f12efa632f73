/* names_state.h - the state of reading a tree (names.h); for names*.c alone.
 *
 * names.c goes through the tree and checks variables, names_frag.c fragments and the lane's scratch, names_task.c what
 * an sTask must do and how a lane must begin.
 */
#ifndef VERIFY_NAMES_STATE_H
#define VERIFY_NAMES_STATE_H

#include "verify/names.h"

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
	enum { SUM_THERE, SUM_UNDER_WAY, SUM_UNPINNED } sum;	/* if it belongs to a single sTask */
};

/* A value in the scratch. */
struct scratched {
	int64_t at;
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
	int depth;			/* bodies around that may not be executed */
	bool stores;
	VEC(int) wrote;			/* buffers */
	VEC(struct scratched) scratch;
	bool scratch_read;		/* it may have been read since the threads last met */
	bool scratch_read_before;	/* the same, when the operation at hand began */
	bool absolute;			/* the address at hand is not in a slot */
	enum err_code code;		/* of the first error */
	struct err *e;
};

void names_fail(struct names *c, const char *fmt, ...) PRINTF(2, 3);

void names_num(struct names *c, const struct num *x);
void names_val(struct names *c, const struct val *v);

/* names_frag.c */
void names_declare_frag(struct names *c, const struct frag *f);
void names_read(struct names *c, struct frag_at at);
void names_write(struct names *c, struct frag_at at);
void names_pin(struct names *c, struct frag_at at);
void names_groups_wait(struct names *c, int n);
void names_product(struct names *c, const struct role_op *o);
/* Fragments that were first written since then may not have been written. */
void names_forget(struct names *c, int since);
void names_scratch_read(struct names *c, const struct num *address);
void names_scratch_write(struct names *c, const struct num *address);
void names_scratch_all(struct names *c);
void names_met(struct names *c);

/* names_task.c */
void names_begin_task(struct names *c);
void names_note_work(struct names *c, const struct role_op *o);
void names_end_task(struct names *c, const struct role_op *task);
void names_lane_head(struct names *c);

#endif
