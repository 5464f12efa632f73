/* Asynchronous matrix products: wgmma with the second operand, and often the first, read from
 * swizzled shared memory through matrix descriptors. */
#include "lower/select/lowering.h"

/* An operand in shared memory. */
struct operand {
	const struct matrix_instruction *by;	/* the instruction that reads it */
	int k_bytes;			/* ... of what is contracted, so many bytes of it */
	const struct ring *ring;
	bool k_major;			/* the contracted axis is the contiguous one */
	const struct num *k_first;	/* k step at which this iteration begins; NULL: 0 */
};

/* Is the axis the outermost of the columns, or the rows? Then *below is how many of these each of its elements has. */
static bool find_lines_below(const struct lowering *c, const struct stask *s, const struct shape2 *v, bool columns,
	int axis, int64_t *below)
{
	const int *axes = columns ? v->col : v->row;
	int n = columns ? v->ncol : v->nrow, first = 0;

	*below = 1;
	while (first < n && axes[first] != axis && axis_extent(c, s, v, axes[first]) == 1)
		first++;
	for (int i = first + 1; i < n; i++)
		*below *= axis_extent(c, s, v, axes[i]);
	return first < n && axes[first] == axis;
}

/* Finds the k step at which the current iteration begins, of an operand that holds the full contracted axis. */
static enum err_code find_first_step(struct lowering *c, const struct stask *s, const struct buffer *b,
	struct operand *o, struct err *e)
{
	int64_t step = o->k_bytes * 8 / dtype_bits(b->type), below;

	for (int i = 0; i < b->naxes; i++) {
		int axis = b->axis[i];

		if (!(o->ring->shape.full_axes >> axis & 1) || !program_reduces_tile(c->p, last_node_of(c->k, s), axis))
			continue;
		if (!find_lines_below(c, s, &o->ring->shape, o->k_major, axis, &below) ||
		    c->g->extents.tile[axis] * below % step)
			return err_set(e,
				ERR_ILLEGAL, b->loc, "'%s' holds all of '%s', of which each iteration multiplies "
				"%lld; the matrix unit finds them where they are a multiple of %lld and lie together",
				b->name, c->p->axes.v[axis].name, (long long)c->g->extents.tile[axis], (long long)step);
		o->k_first = below > 1 ? DIV(MUL(axis_first(c, s, NULL, axis), N(c, below)), N(c, step)) :
			DIV(axis_first(c, s, NULL, axis), N(c, step));
	}
	return OK;
}

/* The matrix unit reads all elements of a tile along the axes that it contracts. Those behind the end of a loop with a
 * length are zero in what is made in that loop alone. */
static enum err_code check_length(const struct lowering *c, const struct stask *s, const struct buffer *b, struct err *e)
{
	for (int i = 0; i < b->naxes; i++) {
		int axis = b->axis[i], loop = program_length_loop(c->p, s->loop, axis);

		if (!ends_within_tile(c->g, s->loop, axis) || node_has_axis(last_node_of(c->k, s), axis) ||
		    program_loop_within(c->p, c->g->tasks.v[b->first].loop, loop))
			continue;
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' is made before the loop over '%s', whose length may end within a "
			"tile, and the matrix unit would multiply what lies behind for '%s'; make it inside of the loop", b->name,
			c->p->axes.v[axis].name, s->name);
	}
	return OK;
}

static enum err_code find_operand(struct lowering *c, const struct kentry *x, int arg, struct operand *o, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	int buffer = buffer_of_node(c, s, product_operand(c->p, last_node_of(c->k, s), arg));
	const struct buffer *b = &c->g->buffers.v[buffer];

	o->k_bytes = o->by->k_bytes * (o->by->sparse && arg ? EXPANDED_BY_VALUE : 1);
	TRY(check_length(c, s, b, e));
	o->ring = ring_of(c, buffer);
	if (!lower_reads_operand(c->k, s, arg, &o->ring->shape, &o->k_major))
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' lies in shared memory as another product reads it, and "
			"the matrix unit cannot read that for '%s': load or compute it once more", b->name, s->name);
	return find_first_step(c, s, b, o, e);
}

/* The constant part of a descriptor (PTX ISA, matrix descriptor format): strides
 * between groups of 8 rows, between panels, and the swizzle. */
static uint64_t descriptor_bits(const struct operand *o)
{
	uint64_t swizzle = o->ring->swizzle == 128 ? 1 : o->ring->swizzle == 64 ? 2 : 3;
	uint64_t sbo = (uint64_t)o->ring->swizzle * 8 / 16;	/* in units of 16 bytes */
	uint64_t lbo = o->k_major ? 1 : (uint64_t)o->ring->panel_bytes / 16;

	return swizzle << 62 | sbo << 32 | lbo << 16;
}

/* Byte offset of k step ks, and of row or column `line`, in the slot. Only for those at which the matrix unit can
 * start: the offset of a sum is the sum of the offsets then. */
static const struct num *k_step_bytes(struct lowering *c, const struct operand *o, const struct num *ks)
{
	const struct ring *r = o->ring;
	const struct num *per_panel = N(c, r->swizzle / o->k_bytes);

	if (!o->k_major)
		return MUL(ks, N(c, o->k_bytes * 8 / dtype_bits(c->g->buffers.v[r->buffer].type) * r->swizzle));
	return ADD(MUL(DIV(ks, per_panel), N(c, r->panel_bytes)), MUL(MOD(ks, per_panel), N(c, o->k_bytes)));
}

static const struct num *line_bytes(struct lowering *c, const struct operand *o, const struct num *line)
{
	const struct ring *r = o->ring;

	if (o->k_major)
		return MUL(line, N(c, r->swizzle));
	return MUL(DIV(line, N(c, r->panel_cols)), N(c, r->panel_bytes));
}

/* The matrix descriptor of an operand, from line `first` on: .from is the same for all instructions of the sTask, .by
 * is the constant offset of each, for its block of rows or columns and its k step KS. */
static struct matrix_operand descriptor_of(struct lowering *c, const struct operand *o, const struct num *first,
	const struct num *block)
{
	const struct num *ks = V(c, VAR_KS, NONE);
	struct matrix_operand at = { .bits = descriptor_bits(o),
		.from = ADD(slot_address(c, o->ring), line_bytes(c, o, first)),
		.by = line_bytes(c, o, block) };

	if (o->k_first && !o->k_major)
		at.from = ADD(at.from, k_step_bytes(c, o, o->k_first));
	else if (o->k_first)		/* both may lie in one panel */
		ks = ADD(ks, o->k_first);
	at.by = ADD(at.by, k_step_bytes(c, o, ks));
	return at;
}

/* Condition: the instruction adds to the accumulator. Not in the first product of a life that starts with zero. */
static const struct num *accumulate_condition(struct lowering *c, const struct kentry *x, const struct node *mma,
	int buffer)
{
	const struct stask *s = stask_of(c, x);
	const struct num *later = NUM2(GT, V(c, VAR_KS, NONE), N(c, 0));
	const struct carry *carry;

	if (mma->ref == NONE)
		return later;
	carry = &c->p->carries.v[mma->ref];
	if (carry->init != 0 || x->result_shared || c->g->buffers.v[buffer].first != x->task)
		return N(c, 1);
	for (int l = s->loop; l != carry->loop && l != NONE; l = c->p->loops.v[l].parent)
		later = NUM2(EITHER, later, NUM2(GT, V(c, VAR_I, l), N(c, 0)));
	return later;
}

/* The rows or columns of a slice are contiguous only if the axis is the outermost of them. */
static enum err_code check_contiguous_part(const struct lowering *c, const struct stask *s,
	const struct operand *o, const struct buffer *b, int axis, struct err *e)
{
	const struct shape2 *v = &o->ring->shape;
	const int *axes = o->k_major ? v->row : v->col;
	int n = o->k_major ? v->nrow : v->ncol;

	for (int i = 0; i < n && axes[i] != axis; i++)
		if (axis_extent(c, s, v, axes[i]) > 1)
			return err_set(e, ERR_ILLEGAL, s->loc, "'%s' reads "
				"a slice along '%s' of '%s', whose rows are not contiguous, as each '%s' has some "
				"of them; split '%s', or choose a tile of 1 along it", s->name, c->p->axes.v[axis].name,
				b->name, c->p->axes.v[axes[i]].name, c->p->axes.v[axes[i]].name);
	return OK;
}

/* The matrix unit can start to read only where the swizzle pattern repeats. */
static enum err_code check_first_line(const struct lowering *c, const struct stask *s,
	const struct operand *o, const struct buffer *b, int axis, int64_t at, struct err *e)
{
	int64_t grain = o->k_major ? shared_pattern_rows(&c->k->target->shared) : o->ring->panel_cols;

	if (at % grain == 0)
		return OK;
	return err_set(e, ERR_ILLEGAL, s->loc, "'%s' begins at %lld of '%s' along '%s'; the matrix "
		"unit takes multiples of %lld there: take other parts or tiles, or split '%s' too, if "
		"nobody reads all of it", s->name, (long long)at, b->name, c->p->axes.v[axis].name,
		(long long)grain, c->g->tasks.v[b->first].name);
}

/* First row or column of the operand that the product takes, of `extent` at a time. It is not 0 where the operand has
 * more of an axis than the slice that a split product computes, or more than the current tile. */
static enum err_code find_first_line(struct lowering *c, const struct stask *s, const struct operand *o,
	const struct buffer *b, const struct shape2 *result, int64_t extent, const struct num **begin, struct err *e)
{
	const struct ring *r = o->ring;

	*begin = N(c, 0);
	for (int i = 0; i < b->naxes; i++) {
		int axis = b->axis[i];
		int64_t tile = c->g->extents.tile[axis], inner = tile;
		bool own = false;

		for (int k = 0; k < shape_rank(result); k++)
			own |= shape_axis(result, k) == axis;
		if (own && s->slices > 1 && axis == s->split_axis && !r->one_slice) {
			TRY(check_contiguous_part(c, s, o, b, axis, e));
			TRY(check_first_line(c, s, o, b, axis, extent * s->slice, e));
			*begin = ADD(*begin, N(c, extent * s->slice));
			inner /= s->slices;
		}
		if (own && (r->shape.full_axes & ~result->full_axes) >> axis & 1 && tile < c->p->axes.v[axis].size) {
			TRY(check_contiguous_part(c, s, o, b, axis, e));
			TRY(check_first_line(c, s, o, b, axis, extent / inner * tile, e));
			*begin = ADD(*begin, MUL(axis_first(c, s, result, axis), N(c, extent / inner)));
		}
	}
	return OK;
}

struct product {
	const struct matrix_instruction *by;
	const struct node *mma;
	int result;			/* buffer */
	const struct frag *sum;
	bool registers;			/* the first operand is in registers, of buffer pa */
	int pa, pb;
	int indices;			/* buffer: those of elements of four of the first operand; NONE */
	int depth;			/* elements that an instruction contracts, those that are 0 with them */
	struct operand a, b;
	const struct num *first_a, *first_b;
	int steps, cols;		/* of an instruction */
	int instructions;		/* of `cols` columns */
	int last_cols;			/* of one more instruction; 0: none */
	const struct num *adds;
};

/* Columns of the widest instruction that the registers of a launched thread allow. */
static int widest_instruction(const struct lowering *c, const struct product *p)
{
	const struct matrix_instruction *x = p->by;
	int threads = x->warps * c->k->target->warp, words = x->rows * x->k_bytes / 4 / threads;
	int words_left = lower_launched(c->k) - x->more_registers - (p->registers ? words : 0) - x->sparse, cols;

	if (!x->more_registers)
		return x->cols_most;
	cols = (int)min_i64(words_left * threads / x->rows, x->cols_most);
	if (!p->b.k_major && cols > p->b.ring->panel_cols)	/* instructions begin with panels */
		return cols / (int)p->b.ring->panel_cols * (int)p->b.ring->panel_cols;
	return cols / x->cols_step * x->cols_step;
}

/* Splits the columns into the fewest equal instructions, if that is at most twice the least number; else into the
 * widest ones that leave a remainder for one more. */
static void split_columns(const struct lowering *c, struct product *p)
{
	int cols = (int)frag_part_cols(p->sum), most = widest_instruction(c, p), least = (int)ceil_div(cols, most);
	int unit = least > 1 && !p->b.k_major ? (int)p->b.ring->panel_cols : 1;

	p->last_cols = 0;
	for (p->instructions = least; p->instructions <= 2 * least; p->instructions++) {
		p->cols = cols / p->instructions;
		if (cols % p->instructions == 0 && p->cols % unit == 0 && matrix_has_width(p->by, p->cols))
			return;
	}
	for (p->cols = most; p->cols > p->by->cols_step; p->cols -= p->by->cols_step)
		if (p->cols <= cols && matrix_has_width(p->by, p->cols) && (cols % p->cols == 0 ||
		    matrix_has_width(p->by, cols % p->cols)))
			break;
	p->instructions = cols / p->cols;
	p->last_cols = cols % p->cols;
}

/* The types that the target multiplies, as a list for messages. */
static const char *matrix_type_names(struct lowering *c)
{
	const char *names = "", *last = NULL;

	for (int t = 0; t < DT_COUNT; t++) {
		bool any = false;

		for (int i = 0; i < c->k->target->nmatrix; i++)
			any |= c->k->target->matrix[i].types >> t & 1;
		if (!any)
			continue;
		if (last)
			names = arena_strf(c->a, "%s%s%s", names, *names ? ", " : "", last);
		last = dtype_name((enum dtype)t);
	}
	return arena_strf(c->a, "%s%s%s", names, *names ? " or " : "", last ? last : "nothing");
}

enum err_code find_matrix_instruction(struct lowering *c, const struct stask *s, const struct frag *f,
	const struct matrix_instruction **out, struct err *e)
{
	const struct target *t = c->k->target;
	const struct matrix_instruction *by = instruction_for(c->k, seu_of(c->k, (int)(s -
		c->g->tasks.v)), &s->work);

	*out = by;
	if (!by && s->work.sparse && instruction_for(c->k, seu_of(c->k, (int)(s - c->g->tasks.v)), &(struct work){
	    .type = s->work.type }))
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' expands its first operand itself, for which %s has no "
			"instructions: expand it in a task, p:task(\"expand\", function() return a:expand(e, axis) end)",
			s->name, t->name);
	if (!by || f->kind != FRAG_FULL || c->lane->warps % by->warps)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s': "
			"a product of %s, %lld x %lld on %d warp%s, is not lowered for %s, which multiplies %s, by %s",
			s->name, dtype_name(s->work.type), (long long)f->height, (long long)f->width, c->lane->warps,
			c->lane->warps == 1 ? "" : "s", t->name, matrix_type_names(c), t->matrix[0].warps > 1 ?
			arena_strf(c->a, "groups of %d warps", t->matrix[0].warps) : "single warps");
	return OK;
}

/* Only operands of some types may be in registers. */
static enum err_code check_registers(const struct lowering *c, const struct stask *s, const struct product *p,
	struct err *e)
{
	const char *name = c->g->buffers.v[p->pa].name;

	if (p->by->loose >> s->work.type & 1 && p->by->a & FROM_REGISTERS)
		return OK;
	return err_set(e, ERR_ILLEGAL, s->loc, "'%s' takes '%s' out of registers, and the matrix unit takes operands "
		"of %s out of shared memory alone: let another lane make '%s'", s->name, name,
		dtype_name(s->work.type), name);
}

/* Does the second operand have the columns of each part of the lane where the matrix unit can begin to read? */
static enum err_code check_first_part(const struct lowering *c, const struct stask *s, const struct product *p,
	struct err *e)
{
	int64_t grain = p->b.k_major ? shared_pattern_rows(&c->k->target->shared) : p->b.ring->panel_cols;

	if (layout_parts(c->lane->layout) == 1 || frag_part_cols(p->sum) % grain == 0)
		return OK;
	return err_set(e, ERR_ILLEGAL, s->loc, "the lane of '%s' divides its columns into parts of %lld, and the "
		"matrix unit takes multiples of %lld of '%s': take another tile, or fewer warps", s->name,
		(long long)frag_part_cols(p->sum), (long long)grain, c->g->buffers.v[p->pb].name);
}

/* What a product that expands its first operand needs, as its instructions have it. */
static enum err_code check_sparse(const struct lowering *c, const struct stask *s, const struct product *p, struct err *e)
{
	const struct node *expanded = &c->p->nodes.v[p->mma->arg[0]];
	const struct buffer *b = &c->g->buffers.v[p->pb];

	for (int i = 0; i < expanded->naxes; i++)
		if (expanded->axis[i] != expanded->ref && !node_has_axis(p->mma, expanded->axis[i]))
			return err_set(e, ERR_ILLEGAL, expanded->loc, "'%s' expands along '%s' and contracts '%s', too, and "
				"instructions contract what they expand alone; expand in a task", s->name,
				c->p->axes.v[expanded->ref].name, c->p->axes.v[expanded->axis[i]].name);
	if (s->work.k % p->depth)
		return err_set(e, ERR_ILLEGAL, expanded->loc, "'%s' has %lld of '%s' in a tile; instructions that expand an "
			"operand of %s contract %d: choose a multiple of that", s->name, (long long)s->work.k,
			c->p->axes.v[expanded->ref].name, dtype_name(s->work.type), p->depth);
	if (p->registers || !has_ring(c, p->indices))
		return err_set(e, ERR_ILLEGAL, expanded->loc, "'%s' expands what is in registers, and instructions expand what "
			"is in shared memory; let another lane make it", s->name);
	if (p->b.k_major && p->b.ring->swizzle < p->b.k_bytes)
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' lies in panels of %d bytes, and instructions of '%s' contract %d: "
			"let a tile have more of '%s'", b->name, p->b.ring->swizzle, s->name, p->b.k_bytes,
			c->p->axes.v[expanded->ref].name);
	return OK;
}

static enum err_code find_product(struct lowering *c, const struct kentry *x, struct product *p, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct shape2 *shape = &c->k->node_shape[last_node(c->g, s)];

	p->mma = last_node_of(c->k, s);
	p->result = product_buffer(c, s);
	TRY(x->result_shared ? stored_result_frag(c, x, &p->sum, e) : find_buffer_frag(c, p->result, &p->sum, e));
	TRY(find_matrix_instruction(c, s, p->sum, &p->by, e));
	p->a.by = p->b.by = p->by;
	p->pa = buffer_of_node(c, s, product_operand(c->p, p->mma, 0));
	p->pb = buffer_of_node(c, s, product_operand(c->p, p->mma, 1));
	p->indices = p->by->sparse ? buffer_of_node(c, s, product_indices(c->p, p->mma)) : NONE;
	p->registers = !has_ring(c, p->pa);
	p->depth = matrix_depth(p->by, s->work.type) * (p->by->sparse ? EXPANDED_BY_VALUE : 1);
	p->steps = (int)ceil_div(s->work.k, p->depth);
	TRY(find_operand(c, x, 1, &p->b, e));
	TRY(find_first_line(c, s, &p->b, &c->g->buffers.v[p->pb], shape, p->sum->width, &p->first_b, e));
	TRY(check_first_part(c, s, p, e));
	split_columns(c, p);
	if (p->by->sparse)
		TRY(check_sparse(c, s, p, e));
	if (p->registers)
		return check_registers(c, s, p, e);
	TRY(find_operand(c, x, 0, &p->a, e));
	return find_first_line(c, s, &p->a, &c->g->buffers.v[p->pa], shape, p->sum->height, &p->first_a, e);
}

void note_product_form(struct lowering *c, const struct product_form *f)
{
	for (int i = 0; i < c->r->products.n; i++) {
		const struct product_form *x = &c->r->products.v[i];

		if (x->registers == f->registers && x->b_registers == f->b_registers &&
		    x->a_rows == f->a_rows && x->b_rows == f->b_rows && x->cols == f->cols && x->a_type == f->a_type &&
		    x->b_type == f->b_type)
			return;
	}
	VEC_PUSH(c->a, &c->r->products, *f);
}

static void touch_operand(struct lowering *c, const struct kentry *x, int buffer, int version)
{
	if (has_ring(c, buffer))
		add_ring_touch(c, stask_of(c, x), buffer);
	else
		add_touch(c, TOUCH_READ, TOUCH_FRAG, buffer, version);
}

/* Notes what the product reads and writes, as part of the lane's next group. */
static void touch_product(struct lowering *c, const struct kentry *x, const struct product *p,
	int version_a, int version)
{
	touch_operand(c, x, p->pa, version_a);
	touch_operand(c, x, p->pb, 0);
	if (x->result_shared)			/* its accumulator is no buffer's */
		return;
	add_touch(c, TOUCH_WRITE, TOUCH_FRAG, p->result, version);
	c->touches.v[c->touches.n - 1].sums = true;
}

/* Groups of warps of the instruction that have rows of their own: so many of a part of the lane. */
static int row_groups(const struct lowering *c, const struct product *p)
{
	return layout_row_warps(c->lane->layout, c->lane->warps) / p->by->warps;
}

/* Number of the group of warps among those of its part. */
static const struct num *row_group(struct lowering *c, const struct product *p)
{
	const struct num *group = V(c, VAR_GROUP, NONE);
	int groups = row_groups(c, p);

	if (layout_parts(c->lane->layout) == 1)
		return group;
	return groups > 1 ? MOD(group, N(c, groups)) : N(c, 0);
}

/* First column of the second operand that the part of the lane takes. */
static const struct num *first_of_b(struct lowering *c, const struct product *p)
{
	const struct num *part;

	if (layout_parts(c->lane->layout) == 1)
		return p->first_b;
	part = MUL(DIV(V(c, VAR_GROUP, NONE), N(c, row_groups(c, p))), N(c, frag_part_cols(p->sum)));
	return num_is(p->first_b, 0) ? part : ADD(p->first_b, part);
}

/* `instructions` instructions of `cols` columns, from column `first` of the result on. */
static void add_product(struct lowering *c, const struct stask *s, const struct product *p,
	struct frag_at sum, struct frag_at a, int first, int cols, int instructions)
{
	struct role_op *o = add_op(c, DO_PRODUCT);
	const struct num *b_first = first_of_b(c, p);
	int rows = layout_block_rows(c->lane->layout, c->lane->warps);

	if (first)
		b_first = ADD(b_first, N(c, first));
	o->u.product.form = (struct product_form){ .by = p->by, .registers = p->registers,
		.a_rows = !p->registers && !p->a.k_major, .b_rows = !p->b.k_major, .cols = cols,
		.depth = p->depth, .a_type = s->work.operand[0], .b_type = s->work.operand[1], .sparse = p->by->sparse };
	note_product_form(c, &o->u.product.form);
	o->u.product.sum = sum;
	o->u.product.first = first;
	o->u.product.a = a;
	o->u.product.steps = p->steps;
	o->u.product.col_steps = instructions;
	if (!p->registers)
		o->u.product.a_at = descriptor_of(c, &p->a, ADD(p->first_a, MUL(row_group(c, p), N(c, p->by->rows))),
			MUL(V(c, VAR_RB, NONE), N(c, rows)));
	o->u.product.b_at = descriptor_of(c, &p->b, b_first, instructions > 1 ? MUL(V(c, VAR_CB, NONE),
		N(c, cols)) : N(c, 0));
	o->u.product.adds = p->adds;
}

/* Reads the indices among four of the first operand's elements, a word of each thread, as instructions take them (PTX
 * ISA, sparse wgmma). Where elements have 16 bits, a step has four bytes of indices for each row: a word has two of them
 * for the thread's first row, and above these two for its second row; threads with even numbers have the first half of a
 * step, the others the second. Where elements have 8 bits, a step has eight bytes for each row: a word has four of them,
 * for one of the thread's two rows. */
static void add_pairs(struct lowering *c, const struct kentry *x, const struct product *p)
{
	const struct stask *s = stask_of(c, x);
	const struct ring *r = ring_of(c, p->indices);
	const struct shape2 *shape = &c->k->node_shape[last_node(c->g, s)];
	const struct num *thread = V(c, VAR_THREAD, NONE), *address, *column, *inside;
	struct shape2 rows = *shape;	/* alone */
	struct frag all = *p->sum;
	bool wide = dtype_bits(s->work.type) == 16;
	int bytes = p->depth / EXPANDED_BY_BYTE;
	const struct buffer *b = &c->g->buffers.v[p->indices];
	int axis = find_packed_axis(c->p, b->axis, b->naxes, c->p->nodes.v[p->mma->arg[0]].ref, EXPANDED_BY_BYTE);
	struct role_op *o;
	int64_t by;

	add_ring_touch(c, s, p->indices);
	column = wide ? MUL(MOD(thread, N(c, 2)), N(c, 2)) : MUL(MOD(DIV(thread, N(c, 2)), N(c, 2)), N(c, 4));
	c->axis_index[axis] = ADD(ADD(MUL(V(c, VAR_KS, NONE), N(c, bytes)), column), V(c, VAR_E, NONE));
	address = ring_address(c, s, r, shape);
	rows.ncol = 0;
	all.width = all.cols;
	inside = inside_condition(c, s, &rows, &all, r->shape.full_axes & ~shape->full_axes);
	if (r->shape.full_axes >> axis & 1 && c->p->axes.v[axis].size % c->g->extents.tile[axis])
		inside = NUM2(BOTH, inside, NUM2(LT, ADD(axis_first(c, s, NULL, axis), c->axis_index[axis]),
			N(c, c->p->axes.v[axis].size)));
	c->axis_index[axis] = NULL;
	o = add_op(c, DO_PAIRS);
	o->u.pairs.blocks = p->sum->blocks;
	o->u.pairs.steps = p->steps;
	o->u.pairs.parts = wide ? 2 : 1;
	o->u.pairs.bytes = !num_slope(address, VAR_E, &by) || by != 1 || r->panel_cols % (wide ? 2 : 4);
	o->u.pairs.address = address;
	o->u.pairs.inside = inside;
}

/* Should the compiler know that what the accumulator holds is of no use? Not where there are registers for all values of
 * the loop: without that word such kernels are compiled well, and with it ptxas made each product of some wait for itself, as
 * if registers were too few. */
static bool begins_fresh(const struct lowering *c, const struct kentry *x, const struct node *mma)
{
	return mma->ref == NONE && !has_registers_for_all(c, x->task, 0);
}

enum err_code select_matrix_product(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct product p = { 0 };
	struct frag_at sum, a = { 0 };

	TRY(find_product(c, x, &p, e));
	sum = (struct frag_at){ p.sum, x->result_shared ? 0 : register_version(c, x, p.result) };
	if (p.registers) {
		TRY(find_buffer_frag(c, p.pa, &a.frag, e));
		a.version = register_version(c, x, p.pa);
	}
	if (x->result_shared)
		TRY(load_accumulator(c, x, (int)(p.mma - c->p->nodes.v), p.result, p.sum, e));
	add_pin(c, sum.frag, sum.version, frag_block_words(sum.frag))->u.frag.fresh = begins_fresh(c, x, p.mma);
	if (p.registers)
		add_pin(c, a.frag, a.version, p.steps * frag_step_words(a.frag, matrix_depth(p.by, s->work.type)));
	if (p.indices != NONE)
		add_pairs(c, x, &p);
	add_op(c, DO_GROUPS_FENCE);
	touch_product(c, x, &p, a.version, sum.version);
	p.adds = accumulate_condition(c, x, p.mma, p.result);
	add_product(c, s, &p, sum, a, 0, p.cols, p.instructions);
	if (p.last_cols)			/* in the same group, so it has no touches of its own */
		add_product(c, s, &p, sum, a, p.cols * p.instructions, p.last_cols, 1);
	add_op(c, DO_GROUPS_COMMIT);
	/* The instruction reads the words of the indices while it is under way, but for ptxas their registers are free
	 * behind it: it would give them to what comes next. */
	if (p.indices != NONE)
		add_groups_wait_op(c, 0, "the registers of the indices are free");
	add_pin(c, sum.frag, sum.version, frag_block_words(sum.frag));
	return OK;
}
