/* roundings_build.h - what the files of roundings.h share. */
#ifndef TILE_ROUNDINGS_BUILD_H
#define TILE_ROUNDINGS_BUILD_H

#include "tile/program.h"

/* Bounds of the error of a value, as nodes; NONE: there is no such error. A bound may lack axes of its value. */
struct deviation {
	int joint;			/* errors that elements may have in common: they add up in a sum */
	int lone;			/* errors of roundings, each of its own element */
	/* Is `lone` made by conversions alone, and not by sums of such errors? Only then have elements along every axis
	 * errors that do not know of each other. */
	bool fresh;
};

/* Another value of the same shape, for the error of each kind. */
struct twins {
	int joint, lone;		/* ids of carries or tensors; NONE */
};

struct roundings {
	struct arena *arena;
	const struct program *from;
	struct program *to;
	bool has_f64;
	struct deviation *of;		/* by node of `from` */
	int *value;			/* by node of `from`: the node of `to` that its users read */
	struct twins *carry, *tensor;
	int *allowed;			/* by tensor: what outputs may be off by; NONE */
	/* Which twins are wanted: all is built again until no more are. */
	struct twins_wanted {
		bool joint, lone;
	} *carry_wanted, *tensor_wanted;
	bool *scattered;		/* by tensor: may a store of it have other indices than the reference's? */
	bool more_wanted;
	int task;			/* that nodes are added to */
	uint64_t partial;		/* of the node at hand, and so of sums for its error */
	struct srcloc loc;
};

/* roundings.c */
int rounding_const(struct roundings *r, double k);
/* A node of the present task; its axes are all that its arguments have. NONE for arguments that the operation lacks. */
int rounding_apply(struct roundings *r, enum op op, enum dtype type, int x, int y, int z);
int rounding_sum(struct roundings *r, int x, int y);	/* of two bounds, each perhaps NONE */
int rounding_ones(struct roundings *r, int axis);	/* 1 for each position along the axis */
/* The bound of an argument of a node. What is broadcast is an error in common. */
struct deviation rounding_argument(struct roundings *r, const struct node *n, int arg);
int rounding_total(struct roundings *r, struct deviation d);	/* NONE: it is exact */
int rounding_node(struct roundings *r, struct node n);	/* of the present task */
int rounding_or_zero(struct roundings *r, int x);	/* 0 for NONE */
/* x where the condition holds, else y; either may be NONE. */
int rounding_chosen(struct roundings *r, int condition, int x, int y);
/* The error of a factor, times the other factor, which may have an error, too. */
int rounding_scaled(struct roundings *r, int other, int error, int of_other);
/* The error of i32 values that become f32: none of those up to 2^24. */
int rounding_converted(struct roundings *r, int value, int error);
/* To a float: a rounding of each element on its own. Returns what users read. */
int rounding_to_float(struct roundings *r, int value, enum dtype from, enum dtype to, struct deviation *d);

/* The share by which a step in f32 may be off, or of a type t of f64. */
double rounding_unit(enum dtype t);

/* roundings_tensors.c: bounds of what carries and tensors hold. */
void rounding_want(struct roundings *r, struct twins_wanted *w, struct deviation d);
/* A get, set, load or store like `like` of a twin; value NONE for those that have none. */
int rounding_move(struct roundings *r, const struct node *like, int twin, int value);
/* What a get or a load reads. fresh: of the deviation. */
struct deviation rounding_read(struct roundings *r, const struct node *n, const struct twins *t, bool fresh);
struct deviation rounding_load(struct roundings *r, const struct node *n);
void rounding_set(struct roundings *r, const struct node *n);
void rounding_store(struct roundings *r, const struct node *n, int node);	/* also of the node itself */

/* roundings_sum.c: bounds of products, reductions and scans. before: what the carry held; NONE: there is none. */
struct deviation rounding_mma(struct roundings *r, int node, int before);
struct deviation rounding_reduce(struct roundings *r, int node);
struct deviation rounding_scan(struct roundings *r, int node);

#endif
