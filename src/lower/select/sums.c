/* Synchronous products, which are complete when the lane goes on. A synchronous matrix unit computes them in k steps
 * (operands.c). On CUDA cores each thread computes its own elements of the result, and reads both operands from shared
 * memory (plan_scope). */
#include "lower/select/lowering.h"

void find_contracted_axes(const struct lowering *c, const struct stask *s, struct sync_product *p)
{
	int first = buffer_of_node(c, s, product_operand(c->p, p->mma, 0));
	const struct node *a = &c->p->nodes.v[p->mma->arg[0]];
	const struct shape2 *v = &c->k->node_shape[p->mma->arg[0]];
	const int *axes = has_ring(c, first) ? a->axis : v->col;
	int n = has_ring(c, first) ? a->naxes : v->ncol;

	p->at = c->k->node_shape[p->node];
	p->along = (struct shape2){ .rows = 1, .cols = 1 };
	for (int i = 0; i < n; i++) {
		bool bound = program_reduces_tile(c->p, p->mma, axes[i]);

		if (node_has_axis(p->mma, axes[i]))
			continue;
		shape_add_axis(&p->along, true, axes[i], (bound ? c->g->extents.tile[axes[i]] : c->p->axes.v[axes[i]].size) /
			(axes[i] == s->split_axis ? s->slices : 1));
		if (!bound)
			p->along.full_axes |= (uint64_t)1 << axes[i];
	}
	p->at.full_axes |= p->along.full_axes;
}

enum err_code check_contiguous(const struct lowering *c, const struct stask *s, const struct ring *r, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[r->buffer];

	if (r->one_slice && s->split_axis != c->g->tasks.v[b->first].split_axis)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' reads all of '%s', which is made in "
			"%d slices: split both alike, or neither", s->name, b->name, b->slices);
	return OK;
}

/* An operand's element of step KS, in the row (first operand) or column of the result's current element. */
static enum err_code operand_in_step(struct lowering *c, const struct kentry *x,
	const struct sync_product *p, int arg, const struct val **out, struct err *e)
{
	const struct frag *f = p->sum.frag;
	struct frag side = { .height = arg ? 1 : f->height, .rows = arg ? 1 : f->rows,
		.width = arg ? f->width : 1, .cols = arg ? f->cols : 1 };
	const struct stask *s = stask_of(c, x);
	int buffer = buffer_of_node(c, s, product_operand(c->p, p->mma, arg));
	const struct buffer *b = &c->g->buffers.v[buffer];
	const struct ring *r;

	if (!is_number_type(b->type))
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s': a product of %s is not lowered: "
			"threads multiply f32, tf32, f16, bf16, e4m3, e5m2, e8m0, i32, i8 and u8", s->name, dtype_name(b->type));
	r = ring_of(c, buffer);
	TRY(check_contiguous(c, s, r, e));
	if (arg == 0 && s->work.sparse)
		return expanded_value(c, x, p->mma->arg[0], &p->at, &side, out, e);
	add_ring_touch(c, s, buffer);
	*out = val_guard(c, inside_condition(c, s, &p->at, &side, r->shape.full_axes & ~p->at.full_axes),
		val_shared(c, b->type, b->type, ring_address(c, s, r, &p->at)), val_const(c, DT_I32, 0));
	return OK;
}

/* Finds the accumulator and gives it its initial value. */
static enum err_code prepare_accumulator(struct lowering *c, const struct kentry *x, struct sync_product *p,
	struct err *e)
{
	struct role_op *o;

	p->result = product_buffer(c, stask_of(c, x));
	if (x->result_shared) {
		TRY(stored_result_frag(c, x, &p->sum.frag, e));
		TRY(load_accumulator(c, x, p->node, p->result, p->sum.frag, e));
	} else {
		TRY(find_buffer_frag(c, p->result, &p->sum.frag, e));
		p->sum.version = register_version(c, x, p->result);
	}
	if (p->mma->ref != NONE)
		return OK;
	if (!x->result_shared)
		add_touch(c, TOUCH_WRITE, TOUCH_FRAG, p->result, p->sum.version);
	o = add_op(c, DO_INIT);
	o->u.frag.at = p->sum;
	o->u.frag.value = val_const(c, dtype_is_float(p->sum.frag->type) ? DT_F32 : DT_I32, 0);
	return OK;
}

enum err_code select_thread_product(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct sync_product p = { .node = last_node(c->g, s), .mma = last_node_of(c->k, s) };
	const struct num *inside;
	const struct val *of[2];
	struct role_op *o;

	find_contracted_axes(c, s, &p);
	TRY(prepare_accumulator(c, x, &p, e));
	if (seu_of(c->k, x->task)->kind == SEU_MATRIX)
		return select_step_products(c, x, &p, e);
	c->contracted = &p.along;
	inside = within_ends(c, s, &p.at, p.along.row, p.along.nrow);
	for (int arg = 0; arg < 2; arg++)
		TRY(operand_in_step(c, x, &p, arg, &of[arg], e));
	c->contracted = NULL;
	if (!x->result_shared) {
		add_touch(c, TOUCH_READ, TOUCH_FRAG, p.result, p.sum.version);
		add_touch(c, TOUCH_WRITE, TOUCH_FRAG, p.result, p.sum.version);
	}
	o = add_op(c, DO_SUM_PRODUCT);
	o->u.sum_product.sum = p.sum;
	o->u.sum_product.depth = p.along.rows;
	o->u.sum_product.inside = inside;
	o->u.sum_product.a = of[0];
	o->u.sum_product.b = of[1];
	return OK;
}
