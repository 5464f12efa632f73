/* Skipping: where a mask leaves nothing of a row, as in the tiles on the diagonal of a causal product, what it removes need not be
 * computed. A thread has only a few rows, but all columns, and the rows of a warp are neighbours. So an element-wise loop whose
 * result is masked goes through its columns in chunks, and computes a chunk only if for some thread of the warp the mask leaves
 * some element of it. The loop that computes and the one that masks become one, so that nothing is left to do for the others.
 *
 * In iterations that unmask.c finds the mask leaves all, and specialize.c drops the question with the mask. */
#include "lower/pass/pass.h"
#include "role/operands.h"

enum {
	CHUNK_GROUPS = 4,		/* groups of columns of a chunk: as many as hide the latency of a read */
	OPERATIONS_LEAST = 4,		/* of an element: fewer cost less than the question */
};

/* x with another number for a variable; NULL: it is used in a way that is not known here. */
static const struct num *with_var(struct lowering *c, const struct num *x, enum var v, const struct num *by)
{
	const struct num *a, *b;

	if (!num_uses(x, v))
		return x;
	if (x->op == NUM_VAR)
		return by;
	if (x->op != NUM_ADD && x->op != NUM_SUB && x->op != NUM_MUL)
		return NULL;
	a = with_var(c, x->a, v, by);
	b = with_var(c, x->b, v, by);
	return a && b ? num_make(c->a, x->op, a, b) : NULL;
}

static int operations_of(const struct role_op *map)
{
	int n = 0;

	for (int i = 0; i < map->u.map.steps.n; i++)
		for (const struct val *v = map->u.map.steps.v[i].value; v; v = v->arg[0])
			n += v->kind == VAL_OP;
	return n;
}

/* What the sTask computes as the elements of a fragment that has one version; NULL: it does not. */
static const struct val *made_as(const struct role_body *b, const struct frag *f)
{
	for (int i = 0; i < b->v.n && f->versions <= 1; i++) {
		const struct role_op *o = b->v.v[i];

		for (int k = 0; o->what == DO_MAP && k < o->u.map.steps.n; k++)
			if (o->u.map.steps.v[k].to == f)
				return o->u.map.steps.v[k].value;
	}
	return NULL;
}

/* The integer as a number; NULL: it is not made of numbers alone. */
static const struct num *number_of(struct lowering *c, const struct role_body *body, const struct val *v)
{
	const struct num *a, *b;

	if (v->kind == VAL_FRAG && v->frag.frag->kind == FRAG_ROW)
		v = made_as(body, v->frag.frag);
	if (!v)
		return NULL;
	if (v->kind == VAL_NUM)
		return v->num;
	if (v->kind == VAL_CONST && !dtype_is_float(v->type))
		return N(c, (int64_t)v->k);
	if (v->kind != VAL_OP || dtype_is_float(v->type) || (v->op != OP_ADD && v->op != OP_SUB))
		return NULL;
	a = number_of(c, body, v->arg[0]);
	b = number_of(c, body, v->arg[1]);
	return !a || !b ? NULL : v->op == OP_ADD ? ADD(a, b) : SUB(a, b);
}

/* Is there an element in the chunk of columns from the group at hand on for which the comparison holds, in a row that the thread
 * has in the block? NULL: not known. */
static const struct num *holds_for_some(struct lowering *c, const struct role_body *b, const struct val *v, const struct frag_layout *l, int chunk)
{
	bool below = v->compare == NUM_LT || v->compare == NUM_LE, above = v->compare == NUM_GT || v->compare == NUM_GE;
	const struct num *column = v->num, *row = number_of(c, b, v->arg[0]);
	int64_t by = 0;

	if ((!below && !above) || !row || num_uses(row, VAR_E) || num_uses(row, VAR_COL_GROUP) ||
	    (num_uses(row, VAR_H) && !num_slope(row, VAR_H, &by)))
		return NULL;
	if (above)
		column = with_var(c, column, VAR_COL_GROUP, ADD(V(c, VAR_COL_GROUP, NONE), N(c, chunk - 1)));
	column = column ? with_var(c, column, VAR_E, N(c, above ? l->pair - 1 : 0)) : NULL;
	row = with_var(c, row, VAR_H, N(c, (by >= 0) == below ? l->halves - 1 : 0));
	return column && row ? num_make(c->a, v->compare, column, SUB(row, v->less)) : NULL;
}

/* The comparison of a map that masks the fragment, and does nothing else: where it does not hold the result is a constant. */
static const struct val *mask_of(const struct role_op *map, const struct frag *masked)
{
	int n = map->u.map.steps.n;
	const struct role_step *last = &map->u.map.steps.v[n - 1];
	const struct val *v = last->value, *when;

	if (n > 2 || map->u.map.to.frag || !last->to || v->kind != VAL_OP || v->op != OP_WHERE || !v->unmasked)
		return NULL;
	when = v->arg[0];
	if (n == 2 && (when->kind != VAL_NODE || when->node != map->u.map.steps.v[0].node || map->u.map.steps.v[0].to))
		return NULL;
	when = n == 2 ? map->u.map.steps.v[0].value : when;
	return when->kind == VAL_COLUMN && v->arg[1]->kind == VAL_FRAG && v->arg[1]->frag.frag == masked &&
		v->arg[2]->kind == VAL_CONST ? when : NULL;
}

struct use_count {
	const struct frag *of;
	int n;
};

static void count_use(void *ctx, struct frag_at at, bool all)
{
	struct use_count *u = ctx;

	(void)all;
	u->n += at.frag == u->of;
}

static int uses_in(const struct role_body *b, const struct frag *f)
{
	struct use_count u = { .of = f };

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		role_uses(o, NULL, count_use, &u);
		if (role_is_region(o->what))
			u.n += uses_in(&o->u.region.body, f) + uses_in(&o->u.region.other, f);
	}
	return u.n;
}

static bool can_skip(const struct role_op *map, const struct frag *f, int *chunk)
{
	const struct frag_layout *l = f->layout;
	int n = frag_groups(f);

	*chunk = n % CHUNK_GROUPS ? n % 2 ? 1 : 2 : CHUNK_GROUPS;
	for (int i = 0; i < map->u.map.steps.n; i++)
		if (role_reads_flipped(map->u.map.steps.v[i].value) || (i < map->u.map.steps.n - 1 && map->u.map.steps.v[i].to))
			return false;
	return f->kind == FRAG_FULL && !f->packed && n > *chunk && l->parts < 2 && !l->every_warp && !l->across_warps &&
		!map->u.map.apart && operations_of(map) >= OPERATIONS_LEAST;
}

/* Makes one loop of the map and the operation at `at`, if that masks what the map computes. */
static bool join_mask(struct lowering *c, const struct role_body *b, const struct role_op *map, struct role_op *mask)
{
	const struct role_step *last = map->what == DO_MAP && map->u.map.steps.n ? &map->u.map.steps.v[map->u.map.steps.n - 1] :
		NULL;
	const struct val *when = last && last->to && !map->u.map.to.frag ? mask_of(mask, last->to) : NULL;
	const struct num *some;
	struct role_op joined = *mask;
	int chunk;

	if (!when || !can_skip(map, map->u.map.over, &chunk) || mask->u.map.over->kind != FRAG_FULL || uses_in(b, last->to) != 1)
		return false;
	some = holds_for_some(c, b, when, map->u.map.over->layout, chunk);
	if (!some)
		return false;
	joined.u.map.steps.v = NULL;
	joined.u.map.steps.n = joined.u.map.steps.cap = 0;
	joined.touches.v = NULL;
	joined.touches.n = joined.touches.cap = 0;
	joined.u.map.over = map->u.map.over;
	joined.u.map.some = some;
	joined.u.map.chunk = chunk;
	for (int i = 0; i < map->u.map.steps.n; i++)
		VEC_PUSH(c->a, &joined.u.map.steps, ((struct role_step){ map->u.map.steps.v[i].node, map->u.map.steps.v[i].value, NULL }));
	for (int i = 0; i < mask->u.map.steps.n; i++) {
		struct role_step s = mask->u.map.steps.v[i];

		if (s.to) {
			struct val *v = arena_copy(c->a, s.value, 1, sizeof(*v));
			struct val *made = arena_copy(c->a, v->arg[1], 1, sizeof(*made));

			*made = (struct val){ .kind = VAL_NODE, .type = v->arg[1]->type, .node = last->node };
			v->arg[1] = made;
			s.value = v;
		}
		VEC_PUSH(c->a, &joined.u.map.steps, s);
	}
	for (int i = 0; i < map->touches.n; i++)
		VEC_PUSH(c->a, &joined.touches, map->touches.v[i]);
	for (int i = 0; i < mask->touches.n; i++)
		VEC_PUSH(c->a, &joined.touches, mask->touches.v[i]);
	*mask = joined;
	return true;
}

/* The operation before the one at `at` that makes the fragment, with loops over elements between them alone; NONE. What these make is
 * not what it reads, as it stands before them. */
static int find_maker(const struct role_body *b, int at, const struct frag *f)
{
	for (int i = at - 1; i >= 0; i--) {
		const struct role_op *o = b->v.v[i];
		int n = o->what == DO_MAP ? o->u.map.steps.n : 0;

		if (n && o->u.map.steps.v[n - 1].to == f)
			return i;
		if (o->what != DO_MAP && o->what != DO_FRAGMENT)
			break;
	}
	return NONE;
}

static void skip_in_task(struct lowering *c, struct role_body *b)
{
	for (int i = 1; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];
		const struct val *v = o->what == DO_MAP && o->u.map.steps.n ? o->u.map.steps.v[o->u.map.steps.n - 1].value : NULL;
		const struct frag *f = v && v->kind == VAL_OP && v->op == OP_WHERE && v->arg[1]->kind == VAL_FRAG ?
			v->arg[1]->frag.frag : NULL;
		int maker = f ? find_maker(b, i, f) : NONE;

		if (maker == NONE || !join_mask(c, b, b->v.v[maker], o))
			continue;
		role_remove_op(b, b->v.v[maker]);
		i--;
		for (int k = b->v.n - 1; k >= 0; k--)
			if (b->v.v[k]->what == DO_FRAGMENT && b->v.v[k]->u.frag.at.frag == f) {
				role_remove_op(b, b->v.v[k]);
				i--;
			}
	}
}

static enum err_code skip_op(struct lowering *c, struct role_op *o, struct err *e)
{
	if (o->what == DO_TASK)
		skip_in_task(c, &o->u.region.body);
	append_op(c, o);
	return rewrite_inside(c, o, skip_op, e);
}

enum err_code pass_skip(struct lowering *c, struct err *e)
{
	return lower_does(c->k, PASS_SKIP) ? rewrite_body(c, &c->role->body, skip_op, e) : OK;
}
