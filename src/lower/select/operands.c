/* Synchronous matrix products with operands in registers: for each k step the lane's threads load the operands from
 * shared memory into fragments in the layout of the instruction (mma), which is complete when the lane goes on. */
#include "lower/select/lowering.h"

enum { WOVEN_AT_ONCE = 4, WORD_BYTES = 4 };

struct step_product {
	struct lowering *c;
	const struct stask *s;
	const struct sync_product *p;
	const struct matrix_instruction *by;
	int from[2];			/* buffers of the operands in shared memory, or of what another sTask fetches; NONE */
	bool fetched;			/* another sTask fetches one of them */
	bool made[2];			/* another sTask makes it where it is taken */
	int together;			/* instructions along the contracted axis whose operands are fetched at once */
	int woven;			/* groups of columns that are interwoven for that; 0: none */
	int depth, steps;		/* contracted elements of a k step, which is `together` instructions; how many k steps */
};

/* The operand as a matrix: its rows are the axes it shares with the result, its columns the contracted axes. */
static struct shape2 operand_shape(const struct step_product *x, int arg)
{
	const struct sync_product *p = x->p;
	struct shape2 v = { .nrow = arg ? p->at.ncol : p->at.nrow, .ncol = p->along.nrow,
		.rows = arg ? p->at.cols : p->at.rows, .cols = p->along.rows, .full_axes = p->at.full_axes };

	for (int i = 0; i < v.nrow; i++) {
		v.row[i] = arg ? p->at.col[i] : p->at.row[i];
		v.row_share[i] = 1;
	}
	for (int i = 0; i < v.ncol; i++) {
		v.col[i] = p->along.row[i];
		v.col_share[i] = 1;
	}
	return v;
}

/* The layout of an operand for one instruction, or for several whose operands a thread fetches at once. For several, a
 * group has that many times as many columns, and a thread that many times as many neighbours: those of the first
 * instruction, then those of the next. So the instructions contract the columns in another order than they lie, the
 * same for both operands, which leaves the sum as it is. Interwoven groups do the same where an instruction takes several
 * groups of each row. Where parts of the lane divide the result's columns, each has all that is contracted of the first
 * operand's rows, and of the second operand those rows that are its columns. */
static const struct frag_layout *step_layout(const struct step_product *x, int arg)
{
	const struct frag_layout *l = arg ? x->by->b_layout : x->by->a_layout, *values = x->c->lane->layout;
	struct frag_layout *wide;

	if (!l)
		l = values;
	if (x->together == 1 && (arg || layout_parts(values) == 1))
		return l;
	wide = ARENA_NEW(x->c->a, struct frag_layout);
	*wide = *l;
	wide->parts = arg ? l->parts : values->parts;
	wide->every_part = !arg;
	if (x->woven) {
		wide->woven = x->woven;
		wide->col.step *= x->woven;
		wide->deep *= x->together;
		return wide;
	}
	wide->cols *= x->together;
	wide->col.step *= x->together;
	wide->pair *= x->together;
	wide->deep *= x->together;
	return wide;
}

/* The registers of an operand for one k step, which have the bits that memory has. */
static struct frag operand_frag(const struct step_product *x, int arg)
{
	const struct frag *sum = x->p->sum.frag;
	struct frag f = { .name = arena_strf(x->c->a, "%c%d", arg ? 'b' : 'a', x->p->node), .kind = FRAG_FULL,
		.type = x->s->work.operand[arg], .buffer = NONE, .packed = true, .layout = step_layout(x, arg) };

	f.rows = f.height = arg ? frag_part_cols(sum) : sum->rows;
	f.cols = f.width = x->depth;
	f.blocks = (int)(f.rows / layout_block_rows(f.layout, x->c->lane->warps));
	return f;
}

static struct frag_at declare_step(const struct step_product *x, int arg)
{
	struct frag *f = ARENA_NEW(x->c->a, struct frag);

	*f = operand_frag(x, arg);
	add_op(x->c, DO_FRAGMENT)->u.frag.at.frag = f;
	return (struct frag_at){ f, 0 };
}

/* Has the ring zeros beyond the end of a contracted axis? Threads that load it write them, where the axis ends for them as it
 * does for the product. */
static bool is_filled(const struct step_product *x, const struct ring *r, int axis)
{
	const struct lowering *c = x->c;
	const struct stask *load = &c->g->tasks.v[c->g->buffers.v[r->buffer].first];

	return load->kind == TASK_LOAD && !r->engine && (!ends_within_tile(c->g, x->s->loop, axis) ||
		program_loop_within(c->p, load->loop, program_length_loop(c->p, x->s->loop, axis)));
}

/* Set of the axes that the product contracts beyond whose ends the ring may have anything. */
static uint64_t unfilled_axes(const struct step_product *x, const struct ring *r)
{
	uint64_t axes = 0;

	for (int i = 0; i < x->p->along.nrow; i++)
		if (!is_filled(x, r, x->p->along.row[i]))
			axes |= (uint64_t)1 << x->p->along.row[i];
	return axes;
}

/* Are each n elements along the axis, from a multiple of n on, neighbours in the ring? */
static bool has_neighbours(const struct step_product *x, const struct ring *r, int axis, int n)
{
	const struct lowering *c = x->c;
	int64_t tile = c->g->extents.tile[axis];

	if (axis == x->s->split_axis)
		tile /= x->s->slices;
	return r->shape.ncol == 1 && r->shape.col[0] == axis && r->shape.col_share[0] == 1 && tile % n == 0 &&
		r->panel_cols % n == 0;
}

/* Can the n elements of a register be loaded as one word? They must be neighbours, and all within the contracted axis or
 * all beyond it. */
static bool can_fetch_words(const struct step_product *x, const struct ring *r, int n)
{
	int axis = x->p->along.row[x->p->along.nrow - 1];

	return !ends_within_tile(x->c->g, x->s->loop, axis) && axis_divisor(&x->c->p->axes.v[axis]) % n == 0 &&
		has_neighbours(x, r, axis, n);
}

/* Has each thread the same elements in both, whatever the parts of its lane? */
static bool has_same_elements(const struct frag_layout *x, const struct frag_layout *y)
{
	struct frag_layout made = *x;

	made.row_parts = y->row_parts;
	return layout_is(&made, y);
}

/* How the operand comes to registers. */
static enum fetch_by fetch_operand_by(const struct step_product *x, const struct ring *r, const struct frag *to,
	const struct shape2 *shape)
{
	int cols = to->layout->cols;	/* of a matrix's row, whatever the width of elements */
	bool matrices = x->by->ldmatrix && x->depth % (2 * cols) == 0;

	if (to->layout->woven)
		return FETCH_WORDS;
	if (matrices && has_neighbours(x, r, shape->col[shape->ncol - 1], cols))
		return FETCH_MATRICES;
	if (matrices && dtype_bits(to->type) == 16 && shape->nrow && has_neighbours(x, r, shape->row[shape->nrow - 1], MATRIX_ROWS))
		return FETCH_MATRICES_ACROSS;
	return can_fetch_words(x, r, to->layout->pair) ? FETCH_WORDS : FETCH_ELEMENTS;
}

/* Addresses of a thread that differ by no constants: chunks of a swizzled row, which are exchanged. Those in a step of
 * columns, or of rows that a warp fetches at once, differ by thread. */
static int count_patterns(const struct step_product *x, const struct ring *r, const struct role_op *fetch)
{
	const struct frag *f = fetch->u.fetch.to.frag;
	bool across = fetch->u.fetch.by == FETCH_MATRICES_ACROSS;
	int64_t at_once = across ? max_i64(f->rows / f->blocks, 2 * MATRIX_ROWS) : x->depth;
	int64_t all = across ? f->rows : (int64_t)x->steps * x->depth;

	return r->swizzle ? (int)max_i64(min_i64(all, r->panel_cols) / at_once, 1) : 1;
}

/* Loads a k step of an operand from its ring, with zeros beyond the ends of contracted axes if the ring has none there, and
 * of axes that the ring but not the result has in full: there the tile may reach beyond the ring.
 *
 * Threads that fetch matrices give addresses of eight elements, so they need two conditions: `inside` says which addresses
 * are in the ring, by rows and columns; the others are replaced by one that is. `contracted` says which elements count, by the
 * contracted axes alone: the others become zero. Rows beyond the end need no zeros, as nothing is stored of them. */
static enum err_code fetch_operand(const struct step_product *x, int arg, const struct stask *reader, struct frag_at to,
	struct err *e)
{
	struct lowering *c = x->c;
	const struct frag *sum = x->p->sum.frag;
	const struct ring *r = ring_of(c, x->from[arg]);
	struct shape2 v = operand_shape(x, arg);
	struct frag deep = { .width = x->p->along.rows, .cols = x->steps * x->depth }, all = deep;
	uint64_t beyond = unfilled_axes(x, r) | (r->shape.full_axes & ~x->p->at.full_axes);
	const struct num *inside, *contracted, *address;
	struct role_op *o;
	int groups = 0;
	int64_t by, aligned;

	all.height = arg ? sum->width : sum->height;
	all.rows = arg ? sum->cols : sum->rows;
	TRY(check_contiguous(c, x->s, r, e));
	c->element_layout = to.frag->layout;
	c->k_step_cols = x->steps > 1 ? x->depth : 0;
	c->first_row = arg ? first_column_of_part(c, sum) : NULL;
	inside = inside_condition(c, x->s, &v, &all, beyond);
	contracted = inside_condition(c, x->s, &v, &deep, beyond);
	c->fetches = true;
	address = ring_address(c, x->s, r, &v);
	c->fetches = false;
	if (to.frag->layout->woven && address_steps(c, address, WOVEN_AT_ONCE, &by, &aligned) && by == WORD_BYTES &&
	    aligned % (WOVEN_AT_ONCE * WORD_BYTES) == 0)
		groups = WOVEN_AT_ONCE;
	c->element_layout = NULL;
	c->k_step_cols = 0;
	c->first_row = NULL;
	add_ring_touch(c, reader, x->from[arg]);
	o = add_op(c, DO_FETCH);
	o->u.fetch.to = to;
	o->u.fetch.address = address;
	o->u.fetch.inside = inside;
	o->u.fetch.by = fetch_operand_by(x, r, to.frag, &v);
	o->u.fetch.groups = groups;
	o->u.fetch.slot = slot_address(c, r);
	o->u.fetch.contracted = contracted;
	o->u.fetch.patterns = count_patterns(x, r, o);
	return OK;
}

static const struct stask *maker_of(const struct lowering *c, int buffer)
{
	return &c->g->tasks.v[c->g->buffers.v[buffer].first];
}

static bool is_fetched(const struct lowering *c, int buffer)
{
	return stask_fetches(c->g, maker_of(c, buffer));
}

/* The operand has been made where another product takes it: does this one take it there, too? */
static enum err_code check_made(const struct step_product *x, int arg, const struct frag *f, struct err *e)
{
	struct step_product all = *x;
	struct frag want;

	all.depth *= all.steps;
	want = operand_frag(&all, arg);
	if (f->blocks == want.blocks && f->cols == want.cols && f->type == want.type && has_same_elements(f->layout, want.layout))
		return OK;
	return err_set(e, ERR_ILLEGAL, x->s->loc, "'%s' takes '%s' in another way than the product for which '%s' makes it",
		x->s->name, x->c->g->buffers.v[f->buffer].name, maker_of(x->c, f->buffer)->name);
}

/* An operand of a k step: from its ring, or from registers, which then have the columns of all steps: a product
 * takes those of step VAR_KS if an operand has more columns than the step (print_product_of_registers). */
static enum err_code step_operand(const struct step_product *x, const struct kentry *entry, int arg,
	struct frag_at *out, struct err *e)
{
	struct lowering *c = x->c;
	int buffer = buffer_of_node(c, x->s, x->p->mma->arg[arg]);

	if (has_ring(c, buffer)) {
		*out = declare_step(x, arg);
		return fetch_operand(x, arg, x->s, *out, e);
	}
	if (x->by->a_layout && !is_fetched(c, buffer) && !makes_steps(c, maker_of(c, buffer)))
		return err_set(e, ERR_ILLEGAL, x->s->loc, "'%s' takes '%s' out of registers, where it "
			"does not lie as '%s' wants it; let another lane make it", x->s->name,
			c->g->buffers.v[buffer].name, x->by->name);
	TRY(use_registers(c, entry, buffer, TOUCH_READ, out, e));
	return makes_steps(c, maker_of(c, buffer)) ? check_made(x, arg, out->frag, e) : OK;
}

/* Registers of a thread for both operands of an instruction, of all rows and columns. */
static int operand_words(const struct step_product *x)
{
	const struct frag *sum = x->p->sum.frag;
	int pair_words = x->by->b_layout->pair * dtype_bits(x->s->work.type) / 32;

	return (int)(sum->blocks + frag_part_cols(sum) / x->by->b_layout->rows) * pair_words;
}

/* Does a thread have the same columns of both? */
static bool has_equal_columns(const struct frag_layout *a, const struct frag_layout *b)
{
	return a->pair == b->pair && a->cols == b->cols && spread_is(&a->col, &b->col);
}

/* Is it an operand of this product alone, whatever its slices? */
static bool is_taken_once(const struct step_product *x, int buffer)
{
	const struct graph *g = x->c->g;

	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].task != x->s->task && stask_reads(&g->tasks.v[i], buffer))
			return false;
	return true;
}

/* Has the lane registers for the sum, the operand that is made, in all its versions, and so many columns of the other one? */
static bool has_registers_for(const struct step_product *x, int made, int cols)
{
	struct step_product all = *x, step = *x;
	struct frag f, g;
	int buffer = buffer_of_node(x->c, x->s, x->p->mma->arg[made]);

	all.depth *= (int)ceil_div(x->p->along.rows, x->depth);
	step.depth = cols;
	f = operand_frag(&all, made);
	g = operand_frag(&step, !made);
	return frag_words(x->p->sum.frag) + frag_words(&f) * x->c->plan->versions[buffer] + frag_words(&g) +
		x->c->plan->device->reserved_registers <= lane_usable_registers(x->c->lane);
}

/* How many groups of columns are interwoven where an operand is made in registers; 0: none. A thread that makes an operand reads
 * what it makes it of: of packed words it needs a part of each, of neighbouring columns all of few. So its pairs of several groups
 * are neighbours, which leaves the sum as it is, and those of the other operand, whose ring has them in a line of shared
 * memory, are fetched several at once. With as many groups as a line has, the threads of two rows read different banks. */
static int count_woven(const struct step_product *x)
{
	const struct shared_layout *shared = &x->c->k->target->shared;
	const struct frag_layout *a = step_layout(x, 0), *b = step_layout(x, 1);
	int axis = x->p->along.row[x->p->along.nrow - 1], cols = b->cols;
	int bits = dtype_bits(x->s->work.type), line = bits ? (int)shared->line * 8 / bits : 0, other = x->made[0];
	const struct ring *r = x->from[other] != NONE ? ring_of(x->c, x->from[other]) : NULL;

	if (!x->by->ldmatrix || bits != 16 || b->pair != 2 || x->fetched || x->made[0] == x->made[1] || !r ||
	    !has_equal_columns(a, b) || x->p->along.nrow != 1 || line % cols || line % x->depth || x->p->along.rows % line || r->swizzle != shared->line ||
	    (r->shape.full_axes & ~x->p->at.full_axes) >> axis & 1 || !can_fetch_words(x, r, line) ||
	    !is_taken_once(x, buffer_of_node(x->c, x->s, x->p->mma->arg[!other])) || !has_registers_for(x, !other, line))
		return 0;
	return line / cols;
}

/* For how many instructions a thread fetches operands at once: as many as `fetch_bytes` hold, if both operands come from
 * rings where these elements are neighbours, or are made in any order, the tile is a multiple of so many steps, and there are
 * registers for them; else 1. */
static int count_together(const struct step_product *x, int task)
{
	int n = 1, axis = x->p->along.row[x->p->along.nrow - 1], pair = x->by->b_layout->pair;

	if (x->by->fetch_bytes)
		n = x->by->fetch_bytes * 8 / (pair * dtype_bits(x->s->work.type));
	if (n < 2 || step_layout(x, 0)->halves > 1 || step_layout(x, 1)->halves > 1 ||
	    !has_equal_columns(step_layout(x, 0), step_layout(x, 1)) || x->p->along.rows % ((int64_t)n * x->depth))
		return 1;
	for (int arg = 0; arg < 2; arg++) {
		const struct ring *r = x->from[arg] != NONE ? ring_of(x->c, x->from[arg]) : NULL;

		if (x->made[arg])
			continue;
		/* not if the ring has all of the axis, of which the product takes a tile */
		if (!r || (r->shape.full_axes & ~x->p->at.full_axes) >> axis & 1 || !can_fetch_words(x, r, n * pair))
			return 1;
	}
	/* what is fetched has the registers of all steps as it is */
	return x->fetched || x->made[0] || x->made[1] || has_registers_for_all(x->c, task, n * operand_words(x)) ? n : 1;
}

static void add_product(const struct step_product *x, struct frag_at a, struct frag_at b)
{
	struct lowering *c = x->c;
	struct role_op *o = add_op(c, DO_PRODUCT);

	o->u.product.form = (struct product_form){ .by = x->by, .registers = true, .b_registers = true,
		.cols = x->by->cols_most, .depth = x->depth / x->together, .a_type = x->s->work.operand[0],
		.b_type = x->s->work.operand[1] };
	note_product_form(c, &o->u.product.form);
	o->u.product.sum = x->p->sum;
	o->u.product.a = a;
	o->u.product.b = b;
	o->u.product.steps = x->together;
	o->u.product.col_steps = (int)frag_part_cols(x->p->sum.frag) / x->by->cols_most;
	o->u.product.adds = N(c, 1);
}

/* The instruction, where the operands come from, and how deep a k step is. */
static enum err_code find_steps(struct step_product *x, struct err *e)
{
	struct lowering *c = x->c;

	TRY(find_matrix_instruction(c, x->s, x->p->sum.frag, &x->by, e));
	for (int arg = 0; arg < 2; arg++) {
		int operand = x->p->mma->arg[arg], buffer = buffer_of_node(c, x->s, operand);

		x->from[arg] = has_ring(c, buffer) ? buffer : NONE;
		x->made[arg] = !has_ring(c, buffer) && makes_steps(c, maker_of(c, buffer));
		if (has_ring(c, buffer) || !is_fetched(c, buffer))
			continue;
		x->fetched = true;
		x->from[arg] = buffer_of_node(c, &c->g->tasks.v[c->g->buffers.v[buffer].first], c->p->nodes.v[operand].arg[0]);
	}
	x->together = 1;
	x->depth = matrix_depth(x->by, x->s->work.type);
	x->woven = count_woven(x);
	x->together = x->woven ? x->woven * step_layout(x, 1)->cols / x->depth : count_together(x, (int)(x->s - c->g->tasks.v));
	x->depth *= x->together;
	x->steps = (int)ceil_div(x->p->along.rows, x->depth);
	return OK;
}

/* The product for which an sTask fetches, or makes an operand, of the same slice if it is split likewise. */
static const struct stask *product_of_fetch(const struct lowering *c, const struct stask *s, int *arg)
{
	int task = graph_fetched_for(c->g, s, arg)->task, first = 0;

	while (c->g->tasks.v[first].task != task)
		first++;
	return &c->g->tasks.v[first + (c->g->tasks.v[first].slices == s->slices ? s->slice : 0)];
}

static bool serves_steps(const struct lowering *c, const struct stask *s)
{
	const struct seu *unit;
	int arg;

	unit = seu_of(c->k, (int)(product_of_fetch(c, s, &arg) - c->g->tasks.v));
	return unit->kind == SEU_MATRIX && !unit->async;
}

bool fetches_steps(const struct lowering *c, const struct stask *s)
{
	return stask_fetches(c->g, s) && serves_steps(c, s);
}

bool makes_steps(const struct lowering *c, const struct stask *s)
{
	return stask_is_direct(c->g, s) && !has_ring(c, s->writes.v[0]) && serves_steps(c, s);
}

/* The product for which an sTask fetches or makes an operand, and its steps. */
static enum err_code find_fetched_for(struct lowering *c, const struct stask *s, struct sync_product *p, struct step_product *x,
	int *arg, struct err *e)
{
	struct frag *sum = ARENA_NEW(c->a, struct frag);

	*x = (struct step_product){ .c = c, .p = p, .s = product_of_fetch(c, s, arg) };
	*p = (struct sync_product){ .mma = last_node_of(c->k, x->s) };
	p->node = last_node(c->g, x->s);
	find_contracted_axes(c, x->s, p);
	TRY(lay_out_node(c, x->s, p->node, sum, e));
	p->sum.frag = sum;
	return find_steps(x, e);
}

enum err_code lay_out_fetched(struct lowering *c, const struct stask *s, struct frag *f, struct err *e)
{
	struct sync_product p;
	struct step_product x;
	int arg;

	TRY(find_fetched_for(c, s, &p, &x, &arg, e));
	x.depth *= x.steps;
	*f = operand_frag(&x, arg);
	return OK;
}

enum err_code select_fetch(struct lowering *c, const struct kentry *entry, struct err *e)
{
	const struct stask *s = stask_of(c, entry);
	struct sync_product p;
	struct step_product x;
	struct frag_at to;
	int arg;

	TRY(find_fetched_for(c, s, &p, &x, &arg, e));
	x.depth *= x.steps;		/* all at once */
	x.steps = 1;
	TRY(use_registers(c, entry, s->writes.v[0], TOUCH_WRITE, &to, e));
	return fetch_operand(&x, arg, s, to, e);
}

/* The layout of all values of an sTask that makes an operand: that of the operand, of which each part of the lane has its rows. */
static enum err_code find_made_layout(struct lowering *c, const struct stask *s, const struct frag_layout **out, struct err *e)
{
	struct sync_product p;
	struct step_product x;
	struct frag_layout *l;
	int arg;

	TRY(find_fetched_for(c, s, &p, &x, &arg, e));
	if (dtype_bits(x.s->work.operand[arg]) != 16)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' makes an operand of %s; where a product takes it, one of 16 bits can be "
			"made", s->name, dtype_name(x.s->work.operand[arg]));
	l = arena_copy(c->a, step_layout(&x, arg), 1, sizeof(*l));
	if (arg && layout_parts(c->lane->layout) > 1)
		l->row_parts = layout_parts(c->lane->layout);
	for (int i = 0; i < c->made_layouts.n; i++)
		if (layout_is(c->made_layouts.v[i], l)) {
			*out = c->made_layouts.v[i];
			return OK;
		}
	VEC_PUSH(c->a, &c->made_layouts, l);
	*out = l;
	return OK;
}

enum err_code lay_out_made(struct lowering *c, const struct stask *s, struct frag *f, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[s->writes.v[0]];
	const struct frag_layout *l;

	TRY(find_made_layout(c, s, &l, e));
	return lay_out_shape_as(c, s, &c->k->node_shape[b->node], b->type, l, f, e);
}

/* The sTask computes as any other, in a lane whose values lie as the operand. */
enum err_code select_made(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct klane *lane = c->lane;
	struct klane *as = arena_copy(c->a, lane, 1, sizeof(*lane));
	const struct frag *to;
	struct role_body *outer;
	struct role_op *block;
	enum err_code code;

	TRY(find_buffer_frag(c, stask_of(c, x)->writes.v[0], &to, e));
	as->layout = to->layout;
	block = add_block(c, "in the layout of an operand");
	block->u.region.layout = as->layout;
	outer = enter_body(c, &block->u.region.body);
	c->lane = as;
	c->makes = true;
	if (to->layout->row_parts > 1)
		c->first_row = MUL(DIV(V(c, VAR_THREAD, NONE), N(c, layout_row_warps(lane->layout, lane->warps) *
			c->k->target->warp)), N(c, to->rows / to->layout->row_parts));
	code = select_compute(c, x, e);
	c->first_row = NULL;
	c->makes = false;
	c->lane = lane;
	leave_body(c, outer);
	return code;
}

enum err_code select_step_products(struct lowering *c, const struct kentry *entry,
	const struct sync_product *p, struct err *e)
{
	struct step_product x = { .c = c, .s = stask_of(c, entry), .p = p };
	struct frag_at a = { 0 }, b;
	struct role_body *outer;
	struct role_op *each;

	TRY(find_steps(&x, e));
	if (!entry->result_shared) {	/* else the accumulator is no buffer's */
		/* These touches become the DO_EACH's, which verify plays once. As the product's, once for each step,
		 * step 2 would find what step 1 wrote. Operands are the same in each step, so their touches stay. */
		add_touch(c, TOUCH_READ, TOUCH_FRAG, p->result, p->sum.version);
		add_touch(c, TOUCH_WRITE, TOUCH_FRAG, p->result, p->sum.version);
	}
	each = add_op(c, DO_EACH);
	each->u.region.var = VAR_KS;
	each->u.region.of = NONE;
	each->u.region.step = x.steps;	/* DO_EACH: how many, not a stride */
	outer = enter_body(c, &each->u.region.body);
	TRY(step_operand(&x, entry, 1, &b, e));
	TRY(step_operand(&x, entry, 0, &a, e));
	add_product(&x, a, b);
	leave_body(c, outer);
	return OK;
}
