/* Merging: lanes that do the same share one tree, whose text has a variable `who` that says which of them runs.
 *
 * The lanes of a split sTask differ only in numbers (offsets in shared memory, first rows) and in which rings, flags and
 * fragments they use. A text for each lane would take as much of the instruction cache as the first. So the trees of
 * neighbouring lanes are compared, operation by operation. Numbers may differ where compilers need not know them, as a term
 * or a side of an equality, if they grow by the same from lane to lane: they become NUM_OF_LANE. What one lane uses of rings,
 * flags and fragments must always stand for the same of another. All else must be equal.
 *
 * An operation of a merged tree keeps those that it was made of (role_op.merged), from which emit takes names, and offsets of rings
 * and flags. */
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
};

struct merging {
	struct arena *a;
	const struct role_program *r;
	int n;				/* lanes */
	VEC(struct counterpart) counterparts;
};

/* numbers that grow by the same ----------------------------------------------------- */

static bool is_progression(const struct merging *m, const int64_t *v)
{
	for (int l = 1; l < m->n; l++)
		if (v[l] - v[l - 1] != v[1] - v[0])
			return false;
	return true;
}

/* counterparts ---------------------------------------------------------------------- */

static bool are_counterparts(struct merging *m, enum counterpart_kind kind, const intptr_t *of)
{
	struct counterpart x = { .kind = kind };

	for (int i = 0; i < m->counterparts.n; i++) {
		const struct counterpart *known = &m->counterparts.v[i];
		int same = 0;

		for (int l = 0; l < m->n && known->kind == kind; l++)
			same += known->of[l] == of[l];
		if (same)
			return same == m->n;
	}
	for (int l = 0; l < m->n; l++)
		x.of[l] = of[l];
	VEC_PUSH(m->a, &m->counterparts, x);
	return true;
}

static bool same_form(const struct frag *f, const struct frag *g)
{
	return f->kind == g->kind && f->height == g->height && f->width == g->width && f->rows == g->rows &&
		f->cols == g->cols && f->layout == g->layout && f->blocks == g->blocks && f->packed == g->packed &&
		f->type == g->type && f->versions == g->versions;
}

static bool merge_frags(struct merging *m, const struct frag *const *f)
{
	intptr_t of[LANES_MERGED];

	for (int l = 0; l < m->n; l++) {
		of[l] = (intptr_t)f[l];
		if (!f[l] != !f[0] || (f[0] && !same_form(f[0], f[l])))
			return false;
	}
	return !f[0] || are_counterparts(m, COUNTERPART_FRAGMENT, of);
}

static bool merge_frags_at(struct merging *m, const struct frag_at *const *at)
{
	const struct frag *f[LANES_MERGED];

	for (int l = 0; l < m->n; l++) {
		f[l] = at[l]->frag;
		if (at[l]->version != at[0]->version)
			return false;
	}
	return merge_frags(m, f);
}

/* Indices of rings or flags. */
static bool merge_indices(struct merging *m, enum counterpart_kind kind, const int *const *index)
{
	int64_t offset[LANES_MERGED];
	intptr_t of[LANES_MERGED];

	for (int l = 0; l < m->n; l++) {
		of[l] = *index[l];
		offset[l] = 0;
		if ((of[l] == NONE) != (of[0] == NONE))
			return false;
		if (of[l] == NONE)
			continue;
		if (kind == COUNTERPART_RING) {
			const struct role_ring *x = &m->r->rings.v[of[0]], *y = &m->r->rings.v[of[l]];

			offset[l] = y->offset;
			if (x->slot_bytes != y->slot_bytes || x->versions != y->versions || x->shared != y->shared)
				return false;
		} else {
			const struct role_flag *x = &m->r->flags.v[of[0]], *y = &m->r->flags.v[of[l]];

			offset[l] = y->offset;
			if (x->depth != y->depth || x->all != y->all || x->bytes != y->bytes)
				return false;
		}
	}
	return is_progression(m, offset) && are_counterparts(m, kind, of);
}

/* expressions ----------------------------------------------------------------------- */

/* The same number for each lane; NULL: there is none. is_term: the number may be one that grows from lane to lane. */
static const struct num *merge_nums(struct merging *m, const struct num *const *x, bool is_term);

static const struct num *merge_consts(struct merging *m, const struct num *const *x, bool is_term)
{
	int64_t v[LANES_MERGED] = { 0 };

	for (int l = 0; l < m->n; l++)
		v[l] = x[l]->k;
	if (!is_progression(m, v))
		return NULL;
	return v[0] == v[1] ? x[0] : is_term ? num_of_lane(m->a, v[0], v[1] - v[0]) : NULL;
}

/* The lanes' variables v, of[]; those of rings and flags are counterparts. */
static bool merge_vars(struct merging *m, const enum var *v, const intptr_t *of)
{
	bool same = true;

	for (int l = 0; l < m->n; l++) {
		same &= of[l] == of[0];
		if (v[l] != v[0])
			return false;
	}
	if (v[0] == VAR_SLOT)
		return are_counterparts(m, COUNTERPART_RING, of);
	if (v[0] == VAR_ISSUED || v[0] == VAR_RELEASED)
		return are_counterparts(m, COUNTERPART_FLAG, of);
	return same;
}

/* An argument of the numbers x; `arg` is its offset in struct num. False: it differs. */
static bool merge_args(struct merging *m, const struct num *const *x, size_t arg, bool is_term, const struct num **out)
{
	const struct num *v[LANES_MERGED] = { NULL };

	for (int l = 0; l < m->n; l++)
		v[l] = *(const struct num *const *)(const void *)((const char *)x[l] + arg);
	if (!v[0])
		return true;
	*out = merge_nums(m, v, is_term);
	return *out;
}

static const struct num *merge_nums(struct merging *m, const struct num *const *x, bool is_term)
{
	enum var v[LANES_MERGED] = { 0 };
	intptr_t of[LANES_MERGED] = { 0 };
	struct num *n;
	bool is_sum = x[0]->op == NUM_ADD || x[0]->op == NUM_SUB;

	for (int l = 1; l < m->n; l++)
		if (x[l]->op != x[0]->op || !x[l]->a != !x[0]->a || !x[l]->b != !x[0]->b || !x[l]->c != !x[0]->c)
			return NULL;
	if (x[0]->op == NUM_CONST)
		return merge_consts(m, x, is_term);
	for (int l = 0; l < m->n && x[0]->op == NUM_VAR; l++) {
		v[l] = x[l]->var;
		of[l] = x[l]->of;
	}
	if (x[0]->op == NUM_VAR)
		return merge_vars(m, v, of) ? x[0] : NULL;
	n = arena_copy(m->a, x[0], 1, sizeof(*n));
	return merge_args(m, x, offsetof(struct num, a), is_sum, &n->a) && merge_args(m, x, offsetof(struct num, b),
		is_sum || n->op == NUM_EQ, &n->b) && merge_args(m, x, offsetof(struct num, c), false, &n->c) ? n : NULL;
}

static const struct val *merge_vals(struct merging *m, const struct val *const *x)
{
	const struct frag_at *frag[LANES_MERGED];
	const struct num *num[LANES_MERGED], *less[LANES_MERGED];
	struct val *v = arena_copy(m->a, x[0], 1, sizeof(*v));

	for (int l = 0; l < m->n; l++) {
		const struct val *y = x[l];

		if (y->kind != v->kind || y->type != v->type || y->from != v->from || y->op != v->op ||
		    y->compare != v->compare || y->k != v->k || y->node != v->node || y->per != v->per ||
		    !y->num != !v->num || !y->less != !v->less)
			return NULL;
		frag[l] = &y->frag;
		num[l] = y->num;
		less[l] = y->less;
	}
	if (!merge_frags_at(m, frag) || (num[0] && !(v->num = merge_nums(m, num, false))) ||
	    (less[0] && !(v->less = merge_nums(m, less, false))))
		return NULL;
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++) {
		const struct val *arg[LANES_MERGED];

		for (int l = 0; l < m->n; l++) {
			arg[l] = x[l]->arg[i];
			if (!arg[l])
				return NULL;
		}
		v->arg[i] = merge_vals(m, arg);
		if (!v->arg[i])
			return NULL;
	}
	return v;
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

static bool merge_numbers(struct merging *m, const struct num **to, void *const *field, bool is_term)
{
	const struct num *x[LANES_MERGED] = { NULL };

	for (int l = 0; l < m->n; l++) {
		x[l] = *(const struct num *const *)field[l];
		if (!x[l] != !x[0])
			return false;
	}
	return !x[0] || (*to = merge_nums(m, x, is_term));
}

static bool merge_values(struct merging *m, const struct val **to, void *const *field)
{
	const struct val *x[LANES_MERGED] = { NULL };

	for (int l = 0; l < m->n; l++) {
		x[l] = *(const struct val *const *)field[l];
		if (!x[l] != !x[0])
			return false;
	}
	return !x[0] || (*to = merge_vals(m, x));
}

/* Merges an operand of the lanes into that of the merged operation. */
static bool merge_field(struct merging *m, const struct field *to, void *const *field)
{
	const struct frag *frag[LANES_MERGED];
	int64_t v[LANES_MERGED] = { 0 };
	enum var var[LANES_MERGED];
	intptr_t of[LANES_MERGED];

	switch ((int)to->kind) {
	case OPERAND_NUM: case OPERAND_ADDRESS: case OPERAND_OWN_ADDRESS: case OPERAND_LETS:
		return merge_numbers(m, to->at, field, to->kind == OPERAND_LETS);
	case OPERAND_VALUE:
		return merge_values(m, to->at, field);
	case OPERAND_USE: case OPERAND_DEF: case OPERAND_SUM: case OPERAND_FRAG:
		return merge_frags_at(m, (const struct frag_at *const *)field);
	case OPERAND_USE_FRAG: case OPERAND_DEF_FRAG: case OPERAND_OVER:
		for (int l = 0; l < m->n; l++)
			frag[l] = *(const struct frag *const *)field[l];
		return merge_frags(m, frag);
	case OPERAND_FLAG:
		return merge_indices(m, COUNTERPART_FLAG, (const int *const *)field);
	case OPERAND_RING:
		return merge_indices(m, COUNTERPART_RING, (const int *const *)field);
	case OPERAND_OFFSET: case OPERAND_INT:
		for (int l = 0; l < m->n; l++)
			v[l] = *(const int *)field[l];
		return is_progression(m, v) && (to->kind == OPERAND_OFFSET || v[0] == v[1]);
	case OPERAND_COUNTER:		/* enum var, and behind it an int */
		for (int l = 0; l < m->n; l++) {
			var[l] = *(const enum var *)field[l];
			of[l] = *(const int *)(const void *)((const char *)field[l] + sizeof(enum var));
		}
		return merge_vars(m, var, of);
	default:			/* settings; and what no text shows: notes, numbers of stagings */
		return true;
	}
}

static bool merge_bodies(struct merging *m, const struct role_body *const *b, struct role_body *to);

/* The bodies of regions; `which`: offset of one in struct role_op. */
static bool merge_regions(struct merging *m, const struct role_op *const *o, size_t which, struct role_body *to)
{
	const struct role_body *b[LANES_MERGED];

	for (int l = 0; l < m->n; l++)
		b[l] = (const struct role_body *)(const void *)((const char *)o[l] + which);
	return merge_bodies(m, b, to);
}

static struct role_op *merge_ops(struct merging *m, const struct role_op *const *o)
{
	struct role_op *to = role_copy_op(m->a, o[0]);
	struct fields list = fields_of(m, to), of[LANES_MERGED];

	for (int l = 0; l < m->n; l++) {
		of[l] = fields_of(m, o[l]);
		if (!role_same_settings(o[l], o[0]) || of[l].v.n != list.v.n || (o[l]->task == NONE) != (to->task == NONE))
			return NULL;
	}
	for (int i = 0; i < list.v.n; i++) {
		void *field[LANES_MERGED];

		for (int l = 0; l < m->n; l++)
			field[l] = of[l].v.v[i].at;
		if (!merge_field(m, &list.v.v[i], field))
			return NULL;
	}
	if (role_is_region(to->what) && !(merge_regions(m, o, offsetof(struct role_op, u.region.body), &to->u.region.body) &&
	    merge_regions(m, o, offsetof(struct role_op, u.region.other), &to->u.region.other)))
		return NULL;
	to->merged = arena_copy(m->a, o, (size_t)m->n + 1, sizeof(*o));
	return to;
}

static bool merge_bodies(struct merging *m, const struct role_body *const *b, struct role_body *to)
{
	*to = (struct role_body){ 0 };
	for (int l = 1; l < m->n; l++)
		if (b[l]->v.n != b[0]->v.n)
			return false;
	for (int i = 0; i < b[0]->v.n; i++) {
		const struct role_op *o[LANES_MERGED + 1] = { NULL };
		struct role_op *x;

		for (int l = 0; l < m->n; l++)
			o[l] = b[l]->v.v[i];
		x = merge_ops(m, o);
		if (!x)
			return false;
		VEC_PUSH(m->a, &to->v, x);
	}
	return true;
}

/* lanes ----------------------------------------------------------------------------- */

/* Of what the printed text takes from a role, may these differ by lane? */
static bool same_roles(const struct merging *m, const struct role *const *l)
{
	int64_t v[4][LANES_MERGED];

	for (int i = 0; i < m->n; i++) {
		const struct role *x = l[i], *y = l[0];

		if (x->warps != y->warps || x->tile_words != y->tile_words || x->tiles_held != y->tiles_held ||
		    x->tiles_out != y->tiles_out || role_is_aligned(x, m->r->target) != role_is_aligned(y, m->r->target))
			return false;
		v[0][i] = x->first_warp;
		v[1][i] = x->barrier;
		v[2][i] = x->stamps;
		v[3][i] = x->stamps_out;
	}
	for (int i = 0; i < LEN(v); i++)
		if (!is_progression(m, v[i]))
			return false;
	return true;
}

/* Merges n roles into *out. */
static bool merge_roles(struct merging *m, const struct role *const *l, int n, struct role *out)
{
	const struct role_body *b[LANES_MERGED];
	const char *name = l[0]->name;

	m->n = n;
	m->counterparts.n = 0;
	for (int i = 0; i < n; i++)
		b[i] = &l[i]->body;
	for (int i = 1; i < n; i++)
		name = arena_strf(m->a, "%s, %s", name, l[i]->name);
	*out = *l[0];
	out->name = name;
	out->nmerged = n;
	out->merged = arena_copy(m->a, l, (size_t)n, sizeof(*l));
	return same_roles(m, l) && merge_bodies(m, b, &out->body);
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
	for (int i = 0, count; i < n; i += count) {
		const struct role *l[LANES_MERGED] = { &lane[i] };
		struct role merged = lane[i], more;

		for (count = 1; count < LANES_MERGED && i + count < n && lane[i].warps % c->r->target->group == 0; count++) {
			l[count] = &lane[i + count];
			if (!merge_roles(&m, l, count + 1, &more))
				break;
			merged = more;
		}
		VEC_PUSH(c->a, &c->r->roles, merged);
	}
	return OK;
}
