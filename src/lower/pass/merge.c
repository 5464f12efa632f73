/* Merging: lanes that do the same share one tree, whose text has a variable `who` that says which of them runs.
 *
 * The lanes of a split sTask differ only in numbers (offsets in shared memory, first rows) and in which rings, flags
 * and fragments they use. A text for each lane would take as much of the instruction cache as the first. So the tree of
 * a lane is compared, operation by operation, with that of the lane whose warps follow, which joins it if it can. The
 * lane after that may join the shared tree, and so on.
 *
 * Some numbers may differ if they grow by the same from lane to lane: first, first + step, first + 2 step, ... In a
 * formula such a number becomes NUM_OF_LANE, `first + who * step`. Allowed are terms of sums, right sides of equalities
 * and values of let variables: there the generated code gets no worse because the compiler does not know the number. A
 * ring, flag or fragment of one lane must always correspond to the same one of another. All else must be equal.
 *
 * A shared tree names the rings, flags and fragments of its first lane. Each of its operations keeps the operations
 * that it was merged from (role_op.merged): emit takes names from them, and offsets of rings and flags. */
#include <stdlib.h>
#include <string.h>

#include "lower/pass/pass.h"
#include "role/operands.h"

enum { LANES_MERGED = 8 };		/* lanes that share a tree, at most */

/* Of each lane the fragment, ring or flag that it uses where the others use theirs. */
enum counterpart_kind { COUNTERPART_FRAGMENT, COUNTERPART_RING, COUNTERPART_FLAG };
struct counterpart {
	enum counterpart_kind kind;
	intptr_t of[LANES_MERGED];	/* by lane: index of a ring or flag, or address of a struct frag */
	int n;				/* lanes of which it is known: the first ones */
};

struct merging {
	struct arena *a;
	const struct role_program *r;
	int n;				/* lanes that share the tree so far; lane number n is the joining lane */
	VEC(struct counterpart) counterparts;
};

/* counterparts ---------------------------------------------------------------------- */

/* Notes that the joining lane uses `next` where the first lane uses `first`. NULL: it cannot be, as the joining lane
 * has used another one for `first` before, or has used `next` for another one than `first`. The text names what the
 * first lane uses, so each of these names must mean one thing in each lane. */
static const struct counterpart *add_counterpart(struct merging *m, enum counterpart_kind kind, intptr_t first,
	intptr_t next)
{
	struct counterpart *found = NULL;

	for (int i = 0; i < m->counterparts.n; i++) {
		struct counterpart *x = &m->counterparts.v[i];

		if (x->kind != kind)
			continue;
		if (x->n > m->n && (x->of[0] == first) != (x->of[m->n] == next))	/* noted of this lane, too */
			return NULL;
		if (x->of[0] == first)
			found = x;
	}
	if (!found) {
		found = VEC_ADD(m->a, &m->counterparts);
		*found = (struct counterpart){ kind, { first }, 0 };
	}
	found->of[m->n] = next;
	found->n = m->n + 1;
	return found;
}

static bool merge_frags(struct merging *m, const struct frag *f, const struct frag *g)
{
	if (!f || !g)
		return f == g;
	return f->kind == g->kind && f->height == g->height && f->width == g->width && f->rows == g->rows &&
		f->cols == g->cols && layout_is(f->layout, g->layout) && f->blocks == g->blocks && f->packed == g->packed &&
		f->type == g->type && f->versions == g->versions &&
		add_counterpart(m, COUNTERPART_FRAGMENT, (intptr_t)f, (intptr_t)g);
}

static bool merge_frags_at(struct merging *m, const struct frag_at *x, const struct frag_at *y)
{
	return x->version == y->version && merge_frags(m, x->frag, y->frag);
}

/* Is the step from the last lane that shares the tree to the joining one the step from the first lane to the second? If
 * only one lane has the tree so far, the joining lane is the second (second == next, last == first): any number is
 * accepted, and decides the step for the lanes that follow. */
static bool has_same_step(int64_t first, int64_t second, int64_t last, int64_t next)
{
	return next - last == second - first;
}

static bool merge_rings(struct merging *m, int first, int next)
{
	const struct role_ring *v = m->r->rings.v, *x = &v[first], *y = &v[next];
	const struct counterpart *c = add_counterpart(m, COUNTERPART_RING, first, next);

	return c && x->slot_bytes == y->slot_bytes && x->versions == y->versions && x->shared == y->shared &&
		has_same_step(x->offset, v[c->of[1]].offset, v[c->of[m->n - 1]].offset, y->offset);
}

static bool merge_flags(struct merging *m, int first, int next)
{
	const struct role_flag *v = m->r->flags.v, *x = &v[first], *y = &v[next];
	const struct counterpart *c = add_counterpart(m, COUNTERPART_FLAG, first, next);

	return c && x->depth == y->depth && x->all == y->all && x->parts == y->parts && x->bytes == y->bytes &&
		has_same_step(x->offset, v[c->of[1]].offset, v[c->of[m->n - 1]].offset, y->offset);
}

/* expressions ----------------------------------------------------------------------- */

/* Can variable `v` of ring, flag, loop or axis `first` be that of `next` in the joining lane? Slots and the counters of
 * products can, if their rings or flags correspond. All other variables must be the same. */
static bool merge_vars(struct merging *m, enum var v, int first, int next)
{
	if (v == VAR_SLOT)
		return add_counterpart(m, COUNTERPART_RING, first, next);
	if (v == VAR_ISSUED || v == VAR_RELEASED)
		return add_counterpart(m, COUNTERPART_FLAG, first, next);
	return first == next;
}

/* Merges y, of the joining lane, into *x, of the shared tree; both may be NULL. False: they differ. may_grow: if it is
 * a constant, it may grow from lane to lane. */
static bool merge_nums(struct merging *m, const struct num **x, const struct num *y, bool may_grow)
{
	const struct num *old = *x;
	struct num *n;
	bool is_sum;

	if (!old || !y)
		return old == y;
	if (old->op == NUM_OF_LANE)
		return y->op == NUM_CONST && y->k == old->a->k + m->n * old->b->k;
	if (old->op != y->op)
		return false;
	if (old->op == NUM_VAR)
		return old->var == y->var && merge_vars(m, old->var, old->of, y->of);
	if (old->op == NUM_CONST) {
		/* With several lanes a number that grows is NUM_OF_LANE already: here all lanes have the same one. */
		if (old->k != y->k && may_grow && m->n == 1)
			*x = num_of_lane(m->a, old->k, y->k - old->k);
		return old->k == y->k || *x != old;
	}
	is_sum = old->op == NUM_ADD || old->op == NUM_SUB;
	*x = n = arena_copy(m->a, old, 1, sizeof(*n));
	return merge_nums(m, &n->a, y->a, is_sum) && merge_nums(m, &n->b, y->b, is_sum || n->op == NUM_EQ) &&
		merge_nums(m, &n->c, y->c, false);
}

/* The same for values. A number in a value may not grow. */
static bool merge_vals(struct merging *m, const struct val **x, const struct val *y)
{
	struct val *v;

	if (!*x || !y)
		return *x == y;
	*x = v = arena_copy(m->a, *x, 1, sizeof(*v));
	if (y->kind != v->kind || y->type != v->type || y->from != v->from || y->op != v->op || y->together != v->together ||
	    y->groups != v->groups || y->same != v->same || y->rounds != v->rounds ||
	    y->compare != v->compare || y->k != v->k || y->node != v->node || y->per != v->per || !merge_frags_at(m,
	    &v->frag, &y->frag) || !merge_nums(m, &v->num, y->num, false) || !merge_nums(m, &v->less, y->less, false))
		return false;
	for (int i = 0; i < LEN(v->arg); i++)
		if (!merge_vals(m, &v->arg[i], y->arg[i]))
			return false;
	return true;
}

/* operations ------------------------------------------------------------------------ */

struct field {
	enum operand_kind kind;
	void *at;
};
struct fields {
	struct arena *a;
	VEC(struct field) v;
};

static void list_field(void *ctx, enum operand_kind kind, void *field)
{
	struct fields *list = ctx;

	VEC_PUSH(list->a, &list->v, ((struct field){ kind, field }));
}

static struct fields fields_of(struct merging *m, const struct role_op *o)
{
	struct fields list = { .a = m->a };

	role_each_field((struct role_op *)o, list_field, &list);
	return list;
}

/* Merges an operand of the joining lane, `next`, into that of the shared tree, `to`. `second`, `last`: those of the
 * second lane and of the last one that shares the tree. All point to the field that the kind says. */
static bool merge_field(struct merging *m, enum operand_kind kind, void *to, const void *second, const void *last,
	const void *next)
{
	int x, y;

	switch ((int)kind) {
	case OPERAND_NUM: case OPERAND_ADDRESS: case OPERAND_OWN_ADDRESS: case OPERAND_LETS:
		return merge_nums(m, to, *(const struct num *const *)next, kind == OPERAND_LETS);
	case OPERAND_VALUE:
		return merge_vals(m, to, *(const struct val *const *)next);
	case OPERAND_USE: case OPERAND_DEF: case OPERAND_SUM: case OPERAND_FRAG:
		return merge_frags_at(m, to, next);
	case OPERAND_USE_FRAG: case OPERAND_DEF_FRAG: case OPERAND_OVER:
		return merge_frags(m, *(const struct frag **)to, *(const struct frag *const *)next);
	case OPERAND_FLAG: case OPERAND_RING:
		x = *(int *)to;
		y = *(const int *)next;
		if (x == NONE || y == NONE)
			return x == y;
		return kind == OPERAND_FLAG ? merge_flags(m, x, y) : merge_rings(m, x, y);
	case OPERAND_OFFSET:
		return has_same_step(*(int *)to, *(const int *)second, *(const int *)last, *(const int *)next);
	case OPERAND_INT:
		return *(int *)to == *(const int *)next;
	case OPERAND_COUNTER:		/* enum var, and behind it an int */
		return *(enum var *)to == *(const enum var *)next && merge_vars(m, *(enum var *)to,
			*(const int *)((const enum var *)to + 1), *(const int *)((const enum var *)next + 1));
	default:
		/* Settings: role_same_settings has compared them. Strings are comments of the kernel, and a staging's number
		 * does not occur in the text, but for those of merge_parts: both may differ. */
		return true;
	}
}

static bool merge_bodies(struct merging *m, const struct role_body *x, const struct role_body *y, struct role_body *to);

/* Where blocks of a cluster put what others add up: the text has an address that steps from lane to lane. */
static bool merge_parts(const struct merging *m, const struct role_op *const *ops, const struct role_op *next)
{
	const struct role_staging *v = m->r->stagings.v;

	if (next->what != DO_PUT_PARTS && next->what != DO_SUM_PARTS)
		return true;
	return has_same_step(v[ops[0]->u.parts.staging].offset, v[ops[1]->u.parts.staging].offset,
		v[ops[m->n - 1]->u.parts.staging].offset, v[next->u.parts.staging].offset);
}

/* Operation x of the shared tree and y of the joining lane as one operation; NULL: they differ. */
static struct role_op *merge_ops(struct merging *m, const struct role_op *x, const struct role_op *y)
{
	const struct role_op *ops[LANES_MERGED + 1] = { x };	/* by lane; a NULL ends them */
	struct role_op *to = role_copy_op(m->a, x);
	struct fields all = fields_of(m, to), second, last, next = fields_of(m, y);

	if (x->merged)
		memcpy(ops, x->merged, (size_t)m->n * sizeof(*ops));
	ops[m->n] = y;
	if (!role_same_settings(y, x) || next.v.n != all.v.n || (y->task == NONE) != (x->task == NONE))
		return NULL;
	second = fields_of(m, ops[1]);
	last = fields_of(m, ops[m->n - 1]);
	for (int i = 0; i < all.v.n; i++)
		if (!merge_field(m, all.v.v[i].kind, all.v.v[i].at, second.v.v[i].at, last.v.v[i].at, next.v.v[i].at))
			return NULL;
	if (!merge_parts(m, ops, y))
		return NULL;
	if (role_is_region(to->what) && !(merge_bodies(m, &x->u.region.body, &y->u.region.body, &to->u.region.body) &&
	    merge_bodies(m, &x->u.region.other, &y->u.region.other, &to->u.region.other)))
		return NULL;
	to->merged = arena_copy(m->a, ops, (size_t)m->n + 2, sizeof(*ops));	/* n lanes, the joining one, NULL */
	return to;
}

static bool merge_bodies(struct merging *m, const struct role_body *x, const struct role_body *y, struct role_body *to)
{
	*to = (struct role_body){ 0 };
	for (int i = 0; i < x->v.n && x->v.n == y->v.n; i++) {
		struct role_op *o = merge_ops(m, x->v.v[i], y->v.v[i]);

		if (!o)
			return false;
		VEC_PUSH(m->a, &to->v, o);
	}
	return x->v.n == y->v.n;
}

/* lanes ----------------------------------------------------------------------------- */

/* Lets lane l[m->n] share `to`, the tree of the lanes l[0] .. l[m->n - 1], if it can. False: `to` is as before. */
static bool join_role(struct merging *m, const struct role *l, struct role *to)
{
	const struct role *x = l, *second = l + 1, *y = l + m->n, *last = y - 1;
	const struct target *t = m->r->target;
	struct role_body body;

	if (x->warps != y->warps || x->priority != y->priority || x->layout != y->layout || x->tile_words != y->tile_words ||
	    x->tiles_held != y->tiles_held ||
	    x->tiles_out != y->tiles_out || role_is_aligned(x, t) != role_is_aligned(y, t) ||
	    !has_same_step(x->first_warp, second->first_warp, last->first_warp, y->first_warp) ||
	    !has_same_step(x->barrier, second->barrier, last->barrier, y->barrier) ||
	    !has_same_step(x->stamps, second->stamps, last->stamps, y->stamps) || !has_same_step(x->stamps_out,
	    second->stamps_out, last->stamps_out, y->stamps_out) || !merge_bodies(m, &to->body, &y->body, &body))
		return false;
	to->body = body;
	to->name = arena_strf(m->a, "%s, %s", to->name, y->name);
	return true;
}

/* For qsort: in the order of their warps. Only neighbours can merge, as `who` is computed from the warp. */
static int compare_roles(const void *x, const void *y)
{
	return ((const struct role *)x)->first_warp - ((const struct role *)y)->first_warp;
}

enum err_code pass_merge(struct lowering *c, struct err *e)
{
	struct merging m = { .a = c->a, .r = c->r };
	int n = c->r->roles.n;
	struct role *lane = arena_copy(c->a, c->r->roles.v, (size_t)n, sizeof(*lane));

	(void)e;
	qsort(lane, (size_t)n, sizeof(*lane), compare_roles);
	c->r->roles.n = 0;
	for (int i = 0; i < n; i += m.n) {
		const struct role *l[LANES_MERGED] = { &lane[i] };
		struct role merged = lane[i];

		/* A lane whose last group of warps is not full stays alone: it begins with a LEAVE of the warps beyond
		 * its own, and the number of the first of these is a constant of the text. */
		m.counterparts.n = 0;
		for (m.n = 1; m.n < LANES_MERGED && i + m.n < n && lane[i].warps % c->r->target->group == 0 &&
		     join_role(&m, &lane[i], &merged); m.n++)
			l[m.n] = &lane[i + m.n];
		merged.nmerged = m.n;
		if (m.n > 1)
			merged.merged = arena_copy(c->a, l, (size_t)m.n, sizeof(*l));
		VEC_PUSH(c->a, &c->r->roles, merged);
	}
	return OK;
}
