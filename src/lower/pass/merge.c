/* Merging: lanes that do the same share one tree, whose text has a variable `who` that says which of them runs.
 *
 * The lanes of a split sTask differ only in numbers (offsets in shared memory, first rows) and in which rings, flags
 * and fragments they use. A text for each lane would take as much of the instruction cache as the first. So the tree of
 * a lane is compared, operation by operation, with that of its neighbours, and joins it. Numbers may differ where
 * compilers need not know them, as a term or a side of an equality, if they grow by the same from lane to lane: they
 * become NUM_OF_LANE. A ring, flag or fragment of one lane must always stand for the same one of another. All else must
 * be equal.
 *
 * A shared tree names the rings, flags and fragments of its first lane. Its operations keep those that they were made
 * of (role_op.merged), from which emit takes names, and offsets of rings and flags. */
#include <stdlib.h>
#include <string.h>

#include "lower/pass/pass.h"
#include "role/operands.h"

enum { LANES_MERGED = 8 };		/* at most */

/* What the lanes use for the same purpose. */
enum counterpart_kind { COUNTERPART_FRAGMENT, COUNTERPART_RING, COUNTERPART_FLAG };
struct counterpart {
	enum counterpart_kind kind;
	intptr_t of[LANES_MERGED];	/* by lane: index, or address of a struct frag */
	int n;				/* lanes of which it is known */
};

struct merging {
	struct arena *a;
	const struct role_program *r;
	int n;				/* lanes that share the tree; the next one is to join them */
	VEC(struct counterpart) counterparts;
};

/* counterparts ---------------------------------------------------------------------- */

/* Notes that the joining lane uses `next` where the first lane uses `first`. NULL: one of them stands for another. */
static const struct counterpart *add_counterpart(struct merging *m, enum counterpart_kind kind, intptr_t first,
	intptr_t next)
{
	struct counterpart *found = NULL;

	for (int i = 0; i < m->counterparts.n; i++) {
		struct counterpart *x = &m->counterparts.v[i];

		if (x->kind != kind)
			continue;
		if (x->n > m->n && (x->of[0] == first) != (x->of[m->n] == next))
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
		f->cols == g->cols && f->layout == g->layout && f->blocks == g->blocks && f->packed == g->packed &&
		f->type == g->type && f->versions == g->versions &&
		add_counterpart(m, COUNTERPART_FRAGMENT, (intptr_t)f, (intptr_t)g);
}

static bool merge_frags_at(struct merging *m, const struct frag_at *x, const struct frag_at *y)
{
	return x->version == y->version && merge_frags(m, x->frag, y->frag);
}

/* Does the joining lane's number continue those of the lanes before it: `first`, `second`, ... `last`? */
static bool continues(int64_t first, int64_t second, int64_t last, int64_t next)
{
	return next - last == second - first;
}

static bool merge_rings(struct merging *m, int first, int next)
{
	const struct role_ring *v = m->r->rings.v, *x, *y;
	const struct counterpart *c;

	if (first == NONE || next == NONE)
		return first == next;
	x = &v[first];
	y = &v[next];
	c = add_counterpart(m, COUNTERPART_RING, first, next);
	return c && x->slot_bytes == y->slot_bytes && x->versions == y->versions && x->shared == y->shared &&
		continues(x->offset, v[c->of[1]].offset, v[c->of[m->n - 1]].offset, y->offset);
}

static bool merge_flags(struct merging *m, int first, int next)
{
	const struct role_flag *v = m->r->flags.v, *x, *y;
	const struct counterpart *c;

	if (first == NONE || next == NONE)
		return first == next;
	x = &v[first];
	y = &v[next];
	c = add_counterpart(m, COUNTERPART_FLAG, first, next);
	return c && x->depth == y->depth && x->all == y->all && x->bytes == y->bytes &&
		continues(x->offset, v[c->of[1]].offset, v[c->of[m->n - 1]].offset, y->offset);
}

/* expressions ----------------------------------------------------------------------- */

/* Variable v of x for the lanes, of y for the joining one. */
static bool merge_vars(struct merging *m, enum var v, int x, int y)
{
	if (v == VAR_SLOT)
		return add_counterpart(m, COUNTERPART_RING, x, y);
	if (v == VAR_ISSUED || v == VAR_RELEASED)
		return add_counterpart(m, COUNTERPART_FLAG, x, y);
	return x == y;
}

/* Merges y into *x; both may be NULL. False: they differ. is_term: it may be a number that grows from lane to lane. */
static bool merge_nums(struct merging *m, const struct num **x, const struct num *y, bool is_term)
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
		if (old->k != y->k && is_term && m->n == 1)
			*x = num_of_lane(m->a, old->k, y->k - old->k);
		return old->k == y->k || *x != old;
	}
	is_sum = old->op == NUM_ADD || old->op == NUM_SUB;
	*x = n = arena_copy(m->a, old, 1, sizeof(*n));
	return merge_nums(m, &n->a, y->a, is_sum) && merge_nums(m, &n->b, y->b, is_sum || n->op == NUM_EQ) &&
		merge_nums(m, &n->c, y->c, false);
}

static bool merge_vals(struct merging *m, const struct val **x, const struct val *y)
{
	struct val *v;

	if (!*x || !y)
		return *x == y;
	*x = v = arena_copy(m->a, *x, 1, sizeof(*v));
	if (y->kind != v->kind || y->type != v->type || y->from != v->from || y->op != v->op ||
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

/* Merges an operand of the joining lane, `next`, into that of the shared tree. `second`, `last`: those of the second
 * lane and of the last one that shares it. */
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
		return continues(*(int *)to, *(const int *)second, *(const int *)last, *(const int *)next);
	case OPERAND_INT:
		return *(int *)to == *(const int *)next;
	case OPERAND_COUNTER:		/* enum var, and behind it an int */
		return *(enum var *)to == *(const enum var *)next && merge_vars(m, *(enum var *)to,
			*(const int *)((const enum var *)to + 1), *(const int *)((const enum var *)next + 1));
	default:			/* settings; and what no text shows: notes, numbers of stagings */
		return true;
	}
}

static bool merge_bodies(struct merging *m, const struct role_body *x, const struct role_body *y, struct role_body *to);

/* x in the shared tree and y of the joining lane as one; NULL: they differ. */
static struct role_op *merge_ops(struct merging *m, const struct role_op *x, const struct role_op *y)
{
	const struct role_op *ops[LANES_MERGED + 1] = { x };
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
	if (role_is_region(to->what) && !(merge_bodies(m, &x->u.region.body, &y->u.region.body, &to->u.region.body) &&
	    merge_bodies(m, &x->u.region.other, &y->u.region.other, &to->u.region.other)))
		return NULL;
	to->merged = arena_copy(m->a, ops, (size_t)m->n + 2, sizeof(*ops));
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

/* Lets lane l[m->n] share the tree of those before it, if it can. */
static bool join_role(struct merging *m, const struct role *l, struct role *to)
{
	const struct role *x = l, *second = l + 1, *y = l + m->n, *last = y - 1;
	const struct target *t = m->r->target;
	struct role_body body;

	if (x->warps != y->warps || x->tile_words != y->tile_words || x->tiles_held != y->tiles_held ||
	    x->tiles_out != y->tiles_out || role_is_aligned(x, t) != role_is_aligned(y, t) ||
	    !continues(x->first_warp, second->first_warp, last->first_warp, y->first_warp) ||
	    !continues(x->barrier, second->barrier, last->barrier, y->barrier) ||
	    !continues(x->stamps, second->stamps, last->stamps, y->stamps) || !continues(x->stamps_out,
	    second->stamps_out, last->stamps_out, y->stamps_out) || !merge_bodies(m, &to->body, &y->body, &body))
		return false;
	to->body = body;
	to->name = arena_strf(m->a, "%s, %s", to->name, y->name);
	return true;
}

/* Roles by their first warp. */
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
