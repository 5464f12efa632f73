/* names_state.h - where a reading of the tree stands; for names*.c alone.
 *
 * names.c goes through the tree and knows variables, names_frag.c fragments and the lane's
 * scratch, names_task.c what an sTask and a lane must have.
 */
#ifndef VERIFY_NAMES_STATE_H
#define VERIFY_NAMES_STATE_H

#include "verify/names.h"

/* A variable as it can be seen. */
struct name {
	int body;			/* in which it is let, counted; 0: nowhere */
	int id;				/* of this let of it */
	int used;			/* when, last */
	bool changes;
	int deps, ndeps;		/* variables that it was computed from */
};

struct dep {
	int name, id;
};

struct shadow {
	int name;
	struct name was;
};

/* A fragment as it can be seen. Times are operations counted; 0: never. */
struct seen_frag {
	const struct frag *frag;
	int body;
	int written;			/* first, if it is a single sTask's */
	int read, version;		/* last */
	int pinned, pinned_version;
	int changed;			/* by ordinary code or a product */
	enum { SUM_THERE, SUM_UNDER_WAY, SUM_UNPINNED } sum;	/* a single sTask's */
};

/* A value in the scratch. */
struct scratched {
	int64_t at;
	bool there;			/* all have met since */
};

struct names {
	struct arena *a;
	const struct setting *set;
	const struct role_program *r;
	const struct role *role;
	const struct role_op *op;	/* at hand */
	int now, body, bodies, ids;
	int begin;			/* when the body at hand began */
	int first[VAR_COUNT + 1];	/* by variable, of which there is one a loop, flag ... */
	struct name *name;
	VEC(struct shadow) shadowed;	/* to be seen again behind the bodies at hand */
	VEC(struct dep) deps;
	int hiding;			/* names that hide others */
	VEC(struct seen_frag) frags;
	/* of the sTask at hand */
	int task_began, product, fenced;
	const struct frag *sum;		/* of its products; the columns that they have so far */
	int64_t multiplied;
	int depth;			/* bodies around that need not be done */
	bool stores;
	VEC(int) wrote;			/* buffers */
	VEC(struct scratched) scratch;
	bool scratch_read;		/* since all have met, or may have been */
	bool scratch_read_before;	/* that, when the operation at hand began */
	bool absolute;			/* the address at hand is none in a slot */
	enum err_code code;		/* of what was wrong first */
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
/* What was first written since then may not have been. */
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
