/* Fragments: how values are spread over a lane's registers, which fragments live beyond an sTask, and whether the lane
 * has registers to spare. */
#include "lower/pass/pass.h"

enum { FRAGMENT_MOST = 4096 };		/* elements a thread: no target has that many registers */

/* Where warps share rows and no value that the phase computes has any rows, each value is taken for one row, so that two of its
 * columns are a word if its type has 16 bits. */
static bool is_one_row(struct lowering *c)
{
	if (c->one_row == ROW_UNKNOWN) {
		c->one_row = c->k->target->frag.across_warps ? ONE_ROW : ROWS;
		for (int i = 0; i < c->p->nodes.n; i++) {
			int task = c->p->nodes.v[i].task;

			/* what is loaded is in shared memory, and read in the shape of its users */
			if (task != NONE && c->p->tasks.v[task].kind != TASK_LOAD && c->p->tasks.v[task].phase == c->k->phase &&
			    c->k->node_shape[i].nrow)
				c->one_row = ROWS;
		}
		for (int i = 0; i < c->p->carries.n; i++)
			if (c->p->carries.v[i].phase == c->k->phase && c->k->carry_shape[i].nrow)
				c->one_row = ROWS;
	}
	return c->one_row == ONE_ROW;
}

enum err_code lay_out_shape_as(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	enum dtype type, const struct frag_layout *l, struct frag *f, struct err *e)
{
	int warps = c->lane->warps, cols = layout_group_cols(l), high = layout_block_rows(l, warps);
	int row_parts = l->row_parts > 1 ? l->row_parts : 1;
	bool has_rows;

	*f = (struct frag){ .height = shape->rows, .width = shape->cols, .type = type, .buffer = NONE,
		.layout = l };
	for (int i = 0; i < shape_rank(shape); i++) {
		int axis = shape_axis(shape, i);

		if (axis == s->split_axis)
			*(i < shape->nrow ? &f->height : &f->width) /= s->slices;
		if (i >= shape->nrow && c->k->contracted >> axis & 1)
			cols = l->deep * layout_parts(l);
	}
	has_rows = shape->nrow || is_one_row(c);
	f->kind = has_rows ? (shape->ncol ? FRAG_FULL : FRAG_ROW) :
		shape->ncol ? FRAG_COL : FRAG_SCALAR;
	f->blocks = (int)ceil_div(f->height, high * row_parts);
	f->rows = has_rows ? (int64_t)f->blocks * high * row_parts : 1;
	f->cols = shape->ncol ? ceil_div(f->width, cols) * cols : 1;
	f->packed = f->kind == FRAG_FULL && (type == DT_BF16 || type == DT_F16);
	if (f->rows * f->cols / (c->k->target->warp * warps) > FRAGMENT_MOST)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' has a value of %lld x %lld, too large "
			"for the registers of %d warp%s", s->name, (long long)f->height,
			(long long)f->width, warps, warps == 1 ? "" : "s");
	return OK;
}

enum err_code lay_out_shape(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	enum dtype type, struct frag *f, struct err *e)
{
	return lay_out_shape_as(c, s, shape, type, c->lane->layout, f, e);
}

enum err_code lay_out_node(struct lowering *c, const struct stask *s, int node, struct frag *f, struct err *e)
{
	return lay_out_shape(c, s, &c->k->node_shape[node], c->p->nodes.v[node].type, f, e);
}

/* The words of a load that its threads keep until another sTask writes them to shared memory: all threads have as many
 * accesses, of complete words. */
static enum err_code lay_out_words(struct lowering *c, const struct buffer *b, struct frag *f, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[b->first];
	const struct ring *r = lower_loaded_ring(c->k, b->first);
	int64_t threads = (int64_t)c->lane->warps * c->k->target->warp, run = lower_copy_width(c->k, b->first);
	struct frag slice = lower_ring_slice(s, r);
	int64_t bits = run * dtype_bits(b->type), accesses = slice.rows * slice.cols / run;

	if (bits < 32)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' cannot keep in registers what it loads: a thread does not copy "
			"at least 4 bytes at once, as neighbours of the tile are not neighbours in memory, or rows begin anywhere",
			s->name);
	if (accesses % threads)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' cannot keep in registers what it loads: %lld accesses of %lld bytes "
			"are no multiple of the lane's %lld threads", s->name, (long long)accesses, (long long)bits / 8,
			(long long)threads);
	*f = (struct frag){ .kind = FRAG_WORDS, .height = 1, .width = accesses / threads * bits / 32, .rows = 1,
		.cols = accesses / threads * bits / 32, .layout = c->lane->layout, .blocks = 1, .packed = true,
		.type = b->type, .buffer = NONE };
	return OK;
}

enum err_code lay_out_buffer(struct lowering *c, int buffer, struct frag *f, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	const struct stask *s = &c->g->tasks.v[b->first];

	if (b->staged)
		return lay_out_words(c, b, f, e);
	if (b->node != NONE)
		return lay_out_shape(c, s, &c->k->node_shape[b->node], b->type, f, e);
	return lay_out_shape(c, s, &c->k->carry_shape[b->carry], b->type, f, e);
}

const char *c_identifier(struct lowering *c, const char *prefix, const char *name)
{
	char *s = arena_strf(c->a, "%s%s", prefix, name);

	for (char *p = s; *p; p++)
		if (*p == '.')
			*p = '_';
	return s;
}

/* An alias has the registers of the other buffer, whose layout must be the same. */
static enum err_code use_alias_frag(struct lowering *c, int buffer, int alias, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer], *of = &c->g->buffers.v[alias];

	if (stask_makes_operand(c->g, &c->g->tasks.v[b->first]) || stask_makes_operand(c->g, &c->g->tasks.v[of->first]) ||
	    !has_same_layout(c->k, buffer_shape(c, b), buffer_shape(c, of)))
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' cannot be an alias of '%s': their axes "
			"lie differently in registers", b->name, of->name);
	return find_buffer_frag(c, alias, &c->buffer_frags[buffer], e);
}

enum err_code find_buffer_frag(struct lowering *c, int buffer, const struct frag **f, struct err *e)
{
	int alias = c->g->buffers.v[buffer].alias_of;
	const struct stask *first = &c->g->tasks.v[c->g->buffers.v[buffer].first];
	struct frag *new;

	if (!c->buffer_frags[buffer] && alias != NONE)
		TRY(use_alias_frag(c, buffer, alias, e));
	if (!c->buffer_frags[buffer]) {
		new = ARENA_NEW(c->a, struct frag);
		TRY(fetches_steps(c, first) ? lay_out_fetched(c, first, new, e) : makes_steps(c, first) ?
			lay_out_made(c, first, new, e) : lay_out_buffer(c, buffer, new, e));
		new->name = c_identifier(c, "r_", c->g->buffers.v[buffer].name);
		new->type = c->g->buffers.v[buffer].type;
		new->versions = c->plan->versions[buffer];
		new->buffer = buffer;
		c->buffer_frags[buffer] = new;
	}
	*f = c->buffer_frags[buffer];
	return OK;
}

enum err_code find_node_frag(struct lowering *c, const struct stask *s, int node, const struct frag **f, struct err *e)
{
	struct frag *new;

	if (!c->node_frags[node]) {
		new = ARENA_NEW(c->a, struct frag);
		TRY(lay_out_node(c, s, node, new, e));
		new->name = arena_strf(c->a, "x%d", node);
		c->node_frags[node] = new;
	}
	*f = c->node_frags[node];
	return OK;
}

/* A value of the entry's own region belongs to the iteration at the entry's offset, so its version is known in each
 * copy of the unrolled loop. */
int register_version(const struct lowering *c, const struct kentry *x, int buffer)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	int versions = c->plan->versions[buffer];

	if (b->loop == c->g->tasks.v[x->task].loop)
		return (int)floor_mod(c->point->number + x->at, versions);
	return (int)floor_mod(c->point->around[b->loop], versions);
}

enum err_code use_registers(struct lowering *c,
	const struct kentry *x, int buffer, enum touch_how how, struct frag_at *at, struct err *e)
{
	TRY(find_buffer_frag(c, buffer, &at->frag, e));
	at->version = register_version(c, x, buffer);
	add_touch(c, how, TOUCH_FRAG, buffer, at->version);
	return OK;
}

/* the lane's registers ---------------------------------------------------------------- */

/* Does the lane have registers for the buffer? An alias uses those of the other buffer. */
static bool has_own_registers(const struct lowering *c, int buffer)
{
	const struct buffer *b = &c->g->buffers.v[buffer];

	return b->phase == c->k->phase && !has_ring(c, buffer) && in_lane(c, b->first) && b->alias_of == NONE;
}

/* May the buffer be live while the loop runs? `any`: an sTask of the loop. A carry is taken to be. */
static bool may_be_live_in(const struct lowering *c, int buffer, int loop, int any)
{
	bool before = false, behind = false;

	for (int t = 0; t < c->g->tasks.n; t++) {
		const struct stask *s = &c->g->tasks.v[t];
		bool touches = graph_holds_storage(c->g, &s->reads, buffer) || graph_holds_storage(c->g, &s->writes, buffer);

		if (touches && program_loop_within(c->p, s->loop, loop))
			return true;
		before |= touches && s->position < c->g->tasks.v[any].position;
		behind |= touches && s->position > c->g->tasks.v[any].position;
	}
	return c->g->buffers.v[buffer].carry != NONE || (before && behind);
}

/* Words a thread needs for all values that may be live in the loop. *widest: words of the largest value that one
 * iteration makes. */
static int live_words(const struct lowering *c, int loop, int any, int *widest)
{
	int words = 0;

	*widest = 0;
	for (int i = 0; i < c->g->buffers.n; i++) {
		int w;

		if (!has_own_registers(c, i) || !may_be_live_in(c, i, loop, any))
			continue;
		w = frag_words(c->buffer_frags[i]);
		words += w * c->buffer_frags[i]->versions;
		if (c->g->buffers.v[i].carry == NONE && w > *widest)
			*widest = w;
	}
	return words;
}

bool has_registers_for_all(const struct lowering *c, int task, int more)
{
	int widest, words = live_words(c, c->g->tasks.v[task].loop, task, &widest);

	return words + more + c->plan->device->reserved_registers <= lane_usable_registers(c->lane);
}

bool step_ends_in_flight(const struct lowering *c, const struct kstep *s, bool under)
{
	const struct kentry *x;

	if (s->is_loop)
		return under || ends_in_flight(c, s->id);
	x = &c->lane->entries.v[s->id];
	under &= !(x->waits_groups && x->before.groups_left[0] <= 0);
	under |= is_in_flight(c, x->task);
	return under && !(x->drains && x->after.groups_left[0] <= 0);
}

bool ends_in_flight(const struct lowering *c, int loop)
{
	const struct kregion *v = &c->lane->regions[loop + 1];
	bool under = false;

	for (int i = 0; i < v->steps.n; i++)
		under = step_ends_in_flight(c, &v->steps.v[i], under);
	return under;
}

/* Does each loop have registers for all its values at once, although they are not live at once, and is no loop
 * unrolled? Only then may a kernel have several versions of a loop, or partial sums that nothing pins, which make
 * register allocation harder: without this test plans with 170 of 240 words spilled. If products are in flight across
 * iterations the compiler serializes them unless more is free: 54 of 75 plans with less than twice the reserve were
 * serialized, and of 76 with at least that, the 18 that make a value of 80 words or more per iteration and had less
 * than two thirds of it free. */
static bool has_spare_registers(const struct lowering *c)
{
	int reserved = c->plan->device->reserved_registers;

	for (int l = 0; l <= c->p->loops.n; l++)
		if (c->lane->regions[l].unroll > 1)
			return false;
	for (int i = 0; i < c->lane->entries.n; i++) {
		int task = c->lane->entries.v[i].task, loop = c->g->tasks.v[task].loop;
		int words, widest, more = 0, first = 0;

		while (c->g->tasks.v[c->lane->entries.v[first].task].loop != loop)
			first++;
		if (loop == NONE || first < i)	/* each loop once */
			continue;
		words = live_words(c, loop, task, &widest);
		if (ends_in_flight(c, loop))
			more = widest * 2 / 3 > reserved ? widest * 2 / 3 : reserved;
		if (words + reserved + more > lane_usable_registers(c->lane))
			return false;
	}
	return true;
}

enum err_code add_fragments(struct lowering *c, struct err *e)
{
	c->live_words = 0;
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct frag *f;

		if (!has_own_registers(c, i))
			continue;
		TRY(find_buffer_frag(c, i, &f, e));
		add_op(c, DO_FRAGMENT)->u.frag.at.frag = f;
		c->live_words += frag_words(f) * f->versions;
	}
	c->has_spare_registers = has_spare_registers(c);
	return OK;
}
