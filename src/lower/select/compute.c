/* Element-wise sTasks. Consecutive nodes of a task whose fragments have the same layout are fused: one loop over the
 * elements computes them all. Reductions, scans, casts to packed fragments (two elements in a register) and OP_SET,
 * which gives a carry its next value, are never fused. A value that nothing but one reduction uses takes no fragment:
 * the reduction computes its elements. Results are then written to registers or rings. */
#include "lower/select/lowering.h"

enum {
	INLINE_DEPTH_MOST = 32,		/* longest chain of nodes that a reduction computes in its loop */
	INDEX_OPERATIONS_MOST = 16,	/* operations on indices that each user of their result computes by itself */
};

/* A reduction or scan? */
static bool is_fold(enum op op)
{
	return op_class(op) == CLASS_REDUCE || op_class(op) == CLASS_SCAN;
}

/* Does the value enter a loop of which products add to it? */
static bool enters_loop_of_products(const struct lowering *c, const struct kentry *x, int buffer)
{
	int loop = stask_of(c, x)->loop;

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = stask_of(c, &c->lane->entries.v[i]);

		if (is_in_flight(c, c->lane->entries.v[i].task) && ints_hold(s->writes.v, s->writes.n, buffer) &&
		    s->loop != loop && program_loop_within(c->p, s->loop, loop))
			return true;
	}
	return false;
}

/* A carry to which products of an inner loop add is pinned where it is set: what sets it must not be moved behind the issue of a product,
 * and the registers that enter the loop must be those with which an iteration ends, as ptxas would copy them while the product is
 * under way, and serialize it. */
static enum err_code set_carry(struct lowering *c, const struct kentry *x, int node, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	int buffer = buffer_of_carry(c, stask_of(c, x), n->ref);
	const struct val *value;
	struct frag_at to;

	if (has_ring(c, buffer))
		return set_shared_carry(c, x, node, e);
	if (find_converted(c, node, n->arg[0], NONE))	/* lies in the scratch, to be read in the carry's layout */
		TRY(converted_value(c, x, node, n->arg[0], NONE, &value, e));
	else
		TRY(operand_value(c, x, n->arg[0], n->arg[0], &value, e));
	TRY(use_registers(c, x, buffer, TOUCH_WRITE, &to, e));
	add_map(c, to, node, value);
	if (enters_loop_of_products(c, x, buffer))
		add_pin(c, to.frag, to.version, frag_block_words(to.frag));
	return OK;
}

/* Constants and indices are computed where they are used. */
static bool is_made_at_use(enum op op)
{
	return op == OP_CONST || op == OP_INDEX;
}

bool is_left_out(const struct lowering *c, const struct stask *s, int node)
{
	return is_made_at_use(c->p->nodes.v[node].op) || c->inline_depth[node] || at_is_skipped(c->k, s, node);
}

/* Can the node be computed in one loop over the elements with a node whose fragment is `with`? If it has no layout the
 * error is not lost: select_compute finds it again where the next loop begins. */
static bool can_fuse(struct lowering *c, const struct stask *s, int node, const struct frag *with)
{
	const struct node *n = &c->p->nodes.v[node];
	struct frag f;
	struct err e;

	if (at_is_skipped(c->k, s, node))
		return true;
	return n->op != OP_SET && !is_fold(n->op) && !lay_out_node(c, s, node, &f, &e) &&
		f.kind == with->kind && f.blocks == with->blocks && f.cols == with->cols && !f.packed;
}

/* Is the node's value written to a buffer, or read by nodes of its task from position `from` on? An inlined node reads it
 * where the node that uses that one stands. */
static bool is_used_from(const struct lowering *c, const struct stask *s, int node, int from)
{
	const struct task *t = &c->p->tasks.v[s->task];

	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];

		for (int k = 0; k < node_arity(n); k++)
			if (n->arg[k] == node && (i >= from || ((c->inline_depth[t->nodes.v[i]] ||
			    at_is_skipped(c->k, s, t->nodes.v[i])) && is_used_from(c, s, t->nodes.v[i], from))))
				return true;
	}
	return buffer_of_node(c, s, node) != NONE;
}

/* The task's only node that uses the node's value, and that once; NONE: there is none, or more. */
static int only_user(const struct lowering *c, const struct stask *s, int node)
{
	const struct task *t = &c->p->tasks.v[s->task];
	int user = NONE;

	if (buffer_of_node(c, s, node) != NONE)
		return NONE;
	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];

		for (int k = 0; k < node_arity(n); k++) {
			if (n->arg[k] == node && user != NONE)
				return NONE;
			if (n->arg[k] == node)
				user = t->nodes.v[i];
		}
	}
	return user;
}

/* Does the text of the operation have an operand twice, which would then be computed twice? */
static bool repeats_operand(const struct node *n)
{
	const char *text = op_kernel_text(n->op, n->type);
	int operands = 0;

	for (; text && *text; text++)
		operands += *text == '$';
	return operands > op_arity(n->op);
}

bool multiplies_pairs(const struct lowering *c, const struct stask *s, int node)
{
	const struct node *n = &c->p->nodes.v[node];

	return program_is_pair_product(c->p, node) && c->p->nodes.v[n->arg[0]].task == s->task &&
		only_user(c, s, n->arg[0]) == node && c->k->target->pairs >> n->type & 1;
}

/* Does the sTask read the buffer, or another one in the same registers? */
static bool reads_registers(const struct graph *g, const struct stask *s, int buffer)
{
	int owner = g->buffers.v[buffer].alias_of == NONE ? buffer : g->buffers.v[buffer].alias_of;

	for (int i = 0; i < s->reads.n; i++)
		if (s->reads.v[i] == owner || g->buffers.v[s->reads.v[i]].alias_of == owner)
			return true;
	return false;
}

/* Are the elements of the node, or of its buffer, what an asynchronous product of the lane takes out of registers? */
static bool is_operand_in_registers(const struct lowering *c, const struct stask *s, int node)
{
	int buffer = buffer_of_node(c, s, node);
	bool is = false;

	for (int i = 0; i < c->lane->entries.n && buffer != NONE && !has_ring(c, buffer); i++)
		is |= is_async_product(c->k, c->lane->entries.v[i].task) &&
			reads_registers(c->g, stask_of(c, &c->lane->entries.v[i]), buffer);
	return is;
}

/* Does the task make the node of fields of packed words? */
static bool is_of_fields(const struct lowering *c, const struct stask *s, int node)
{
	const struct task *t = &c->p->tasks.v[s->task];
	bool *is = ARENA_ARRAY(c->a, c->p->nodes.n, bool);

	for (int i = 0; i < t->nodes.n && t->nodes.v[i] <= node; i++) {	/* behind its arguments */
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];

		is[t->nodes.v[i]] = n->op == OP_UNPACK;
		for (int k = 0; k < node_arity(n) && op_class(n->op) != CLASS_MOVE; k++)
			is[t->nodes.v[i]] |= is[n->arg[k]];
	}
	return is[node];
}

/* Is the node a conversion of what an instruction makes of two elements at once, or of fields of packed words, for a
 * product that reads it in registers? */
static bool is_operand_of_pairs(const struct lowering *c, const struct stask *s, int node)
{
	return c->k->target->pairs >> c->p->nodes.v[node].type & 1 && is_operand_in_registers(c, s, node) &&
		(multiplies_pairs(c, s, node) || is_of_fields(c, s, node));
}

/* Is the node a conversion to pairs whose only user is the result of its sTask in registers, of a row that warps share, or an
 * operand of products? Then it is made there, and takes no registers of its own. Long rows take all that there are. */
static bool packs_result(struct lowering *c, const struct stask *s, int node)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct task *t = &c->p->tasks.v[s->task];
	int buffer = buffer_of_node(c, s, node), none = 0;
	struct layout_conversion d;
	struct frag f, to;
	struct err e;

	if (n->op != OP_CAST || buffer == NONE || has_ring(c, buffer) || (!c->k->target->frag.across_warps && !c->makes &&
	    !is_operand_of_pairs(c, s, node)))
		return false;
	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *other = &c->p->nodes.v[t->nodes.v[i]];

		if (other->op == OP_SET)	/* the elements would be computed behind it */
			return false;
		for (int k = 0; k < node_arity(other); k++)
			if (other->arg[k] == node)
				return false;
	}
	return !lay_out_node(c, s, node, &f, &e) && f.packed && !lay_out_buffer(c, buffer, &to, &e) && to.packed &&
		!conversion_next(c->k, s, node, &none, &d);
}

/* Is the node's value made where the task's result is packed? */
static bool is_made_in_pack(struct lowering *c, const struct stask *s, int node)
{
	for (int user = only_user(c, s, node); user != NONE; user = only_user(c, s, user))
		if (packs_result(c, s, user))
			return true;
	return false;
}

/* Nodes from this one to the reduction in registers, or the result in pairs, that can compute its elements, as its only user
 * is that, or an inlined node. 0: there is none. If the node has no layout the error is not lost, as in can_fuse. */
static int find_inline_depth(struct lowering *c, const struct stask *s, int node)
{
	const struct node *n = &c->p->nodes.v[node];
	int user = only_user(c, s, node), none = 0;
	struct layout_conversion d;
	struct frag f;
	struct err e;
	struct fold fold;

	if (user == NONE || is_made_at_use(n->op) || is_fold(n->op) || n->op == OP_SET || n->op == OP_GET ||
	    (n->op == OP_UNPACK && !c->makes && !is_made_in_pack(c, s, node)) || n->op == OP_EXPAND || lay_out_node(c, s, node, &f, &e) || f.packed || conversion_next(c->k, s, node, &none, &d))
		return 0;
	if (c->inline_depth[user])	/* its own arguments need no conversion */
		return c->inline_depth[user] < INLINE_DEPTH_MOST && !repeats_operand(&c->p->nodes.v[user]) ?
			1 + c->inline_depth[user] : 0;
	if (packs_result(c, s, user) || multiplies_pairs(c, s, user))
		return 1;
	if (op_class(c->p->nodes.v[user].op) != CLASS_REDUCE)
		return 0;
	fold_of(c->k, s, user, &fold);
	return !fold.shared && (fold.way == FOLD_COLUMNS || fold.way == FOLD_ROWS);
}

/* Is the node's value made of indices and constants alone, by no more than `left` cheap operations? Those of a node
 * that is an operand twice count twice, as its text stands there twice: that of i = i + i, again and again, doubles
 * with each. */
static bool is_made_of_indices(const struct lowering *c, const struct stask *s, int node, int *left)
{
	const struct node *n = &c->p->nodes.v[node];

	if (is_made_at_use(n->op))
		return true;
	return n->task == s->task && n->type == DT_I32 && (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) &&
		--*left >= 0 && is_made_of_indices(c, s, n->arg[0], left) && is_made_of_indices(c, s, n->arg[1], left);
}

/* Do all users of the node compute with its elements where these lie? */
static bool is_used_by_elements(const struct lowering *c, const struct stask *s, int node)
{
	const struct task *t = &c->p->tasks.v[s->task];

	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];
		struct layout_conversion d;
		bool uses = false;

		for (int k = 0; k < node_arity(n); k++)
			uses |= n->arg[k] == node;
		if (uses && (op_class(n->op) == CLASS_MOVE || is_fold(n->op) || n->op == OP_SET || n->op == OP_CAST))
			return false;
		for (int x = 0; uses && conversion_next(c->k, s, t->nodes.v[i], &x, &d);)
			if (d.arg == node)
				return false;
	}
	return buffer_of_node(c, s, node) == NONE;
}

/* From the last node on: users come behind what they use. Numbers of many elements are computed by each user: as a
 * fragment they would take a register each, which differ by constants. */
static void find_inlined(struct lowering *c, const struct stask *s)
{
	const struct task *t = &c->p->tasks.v[s->task];

	for (int i = t->nodes.n - 1; i >= 0; i--) {
		int node = t->nodes.v[i], *depth = &c->inline_depth[node], left = INDEX_OPERATIONS_MOST;

		*depth = find_inline_depth(c, s, node);
		if (!*depth && !is_made_at_use(c->p->nodes.v[node].op) && c->k->node_shape[node].ncol &&
		    is_made_of_indices(c, s, node, &left) && is_used_by_elements(c, s, node))
			*depth = 1;
	}
}

/* Nodes [first, last) of the task become one loop, so that a value that only they use takes one register, not a
 * fragment. c->fused says which nodes the loop has computed before the one whose value is being made. */
static enum err_code select_fused(struct lowering *c, const struct kentry *x, int first, int last, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	VEC(struct role_step) steps = { 0 };
	const struct frag *over;

	TRY(find_node_frag(c, s, t->nodes.v[first], &over, e));
	for (int i = first; i < last; i++) {
		struct role_step step = { .node = t->nodes.v[i] };

		if (is_left_out(c, s, step.node))
			continue;
		if (is_used_from(c, s, step.node, last)) {
			TRY(find_node_frag(c, s, step.node, &step.to, e));
			add_op(c, DO_FRAGMENT)->u.frag.at.frag = step.to;
		}
		VEC_PUSH(c->a, &steps, step);
	}
	for (int i = 0; i < steps.n; i++) {
		TRY(element_value(c, x, steps.v[i].node, &steps.v[i].value, e));
		c->fused[steps.v[i].node] = true;
	}
	struct role_op *o = add_op(c, DO_MAP);
	o->u.map.over = over;
	for (int i = 0; i < steps.n; i++) {
		VEC_PUSH(c->a, &o->u.map.steps, steps.v[i]);
		c->fused[steps.v[i].node] = false;
	}
	return OK;
}

/* Does node number `at` of the task read, in another layout, a value that one of the nodes from `first` on computes?
 * The layout conversion needs the complete value, so the loop of those nodes ends before this one. */
static bool converts_fused_value(struct lowering *c, const struct stask *s, const struct task *t, int first, int at)
{
	struct layout_conversion d;

	for (int x = 0; conversion_next(c->k, s, t->nodes.v[at], &x, &d);)
		for (int i = first; i < at; i++)
			if (t->nodes.v[i] == d.arg)
				return true;
	return false;
}

static enum err_code select_single_node(struct lowering *c, const struct kentry *x, int node, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	const struct val *value;
	const struct frag *f;

	if (n->op == OP_SET)
		return set_carry(c, x, node, e);
	TRY(find_node_frag(c, s, node, &f, e));
	add_op(c, DO_FRAGMENT)->u.frag.at.frag = f;
	if (is_fold(n->op))
		return select_fold(c, x, node, e);
	if (!f->packed)
		return refuse_node(n, e);
	if (n->op == OP_CAST)			/* packing is the cast */
		TRY(operand_value(c, x, node, n->arg[0], &value, e));
	else
		TRY(element_value(c, x, node, &value, e));
	struct role_op *o = add_op(c, DO_PACK);
	o->u.pack.to.frag = f;
	o->u.pack.value = value;
	o->u.pack.type = n->type;
	if (multiplies_pairs(c, s, node)) {
		pair_arithmetic(c, o);
		o->u.pack.ordered = o->u.pack.pairs && is_operand_in_registers(c, s, node);
	}
	return OK;
}

/* The node behind the last one that is computed in one loop with node number `at` of the task, which has the fragment. */
static int end_of_fused(struct lowering *c, const struct stask *s, const struct task *t, int at, const struct frag *f)
{
	int end = at;

	while (end < t->nodes.n && can_fuse(c, s, t->nodes.v[end], f) && !converts_fused_value(c, s, t, at, end))
		end++;
	return end;
}

int fragment_words(struct lowering *c, const struct stask *s)
{
	const struct task *t = &c->p->tasks.v[s->task];
	int words = 0;

	for (int i = 0, end; i < t->nodes.n; i = end) {
		int node = t->nodes.v[i];
		struct frag f;
		struct err e;

		end = i + 1;
		if (is_left_out(c, s, node) || packs_result(c, s, node) || c->p->nodes.v[node].op == OP_SET || lay_out_node(c, s, node, &f, &e))
			continue;
		end = (int)max_i64(end, end_of_fused(c, s, t, i, &f));
		for (int k = i; k < end; k++) {
			int value = t->nodes.v[k];

			if (!is_left_out(c, s, value) && buffer_of_node(c, s, value) == NONE && is_used_from(c, s, value, end) &&
			    !lay_out_node(c, s, value, &f, &e))
				words += frag_words(&f);
		}
	}
	return words;
}

enum err_code select_compute(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];

	for (int i = 0; i < t->nodes.n; i++)
		c->node_frags[t->nodes.v[i]] = NULL;
	find_inlined(c, s);
	TRY(fetch_values(c, x, e));
	for (int i = 0, next; i < t->nodes.n; i = next) {
		int node = t->nodes.v[i], fused_end = i;
		enum op op = c->p->nodes.v[node].op;
		struct frag f;

		next = i + 1;
		if (is_left_out(c, s, node) || packs_result(c, s, node))
			continue;
		if (op != OP_SET)
			TRY(lay_out_node(c, s, node, &f, e));
		if (op != OP_SET)
			fused_end = end_of_fused(c, s, t, i, &f);
		next = fused_end > i ? fused_end : next;
		TRY(add_layout_conversions(c, x, i, next, e));
		TRY(fused_end > i ? select_fused(c, x, i, next, e) : select_single_node(c, x, node, e));
	}
	for (int i = 0; i < s->writes.n; i++)
		if (c->g->buffers.v[s->writes.v[i]].node != NONE)
			TRY(write_result(c, x, s->writes.v[i], e));
	return OK;
}

/* results ---------------------------------------------------------------------- */

static bool writes_what_is_read(const struct lowering *c, int by, int of)
{
	const struct stask *w = &c->g->tasks.v[by], *r = &c->g->tasks.v[of];

	for (int i = 0; i < w->writes.n; i++)
		if (!has_ring(c, w->writes.v[i]) && stask_reads(r, w->writes.v[i]))
			return true;
	return false;
}

/* Is a product into registers that x reads issued between x and an sTask of its loop that reads what x has made? Compilers would move
 * the computation behind the issue, and ptxas would serialize the product, as its registers were read while it is under way. What a product
 * reads is pinned there. */
static bool is_read_behind_product(const struct lowering *c, const struct kentry *x, int buffer)
{
	const struct kentry *all = c->lane->entries.v;
	int n = c->lane->entries.n, loop = stask_of(c, x)->loop;

	for (const struct kentry *r = all; r < all + n; r++) {
		if (stask_of(c, r)->loop != loop || r == x || is_async_product(c->k, r->task) || !stask_reads(stask_of(c, r), buffer))
			continue;
		for (const struct kentry *m = all; m < all + n; m++)
			if (is_in_flight(c, m->task) && stask_of(c, m)->loop == loop && writes_what_is_read(c, m->task, x->task) &&
			    (x->at > r->at ? m > x || m < r : m > x && m < r))
				return true;
	}
	return false;
}

/* The operation that packs the fragment's elements, if the sTask also adds them up, without those beyond an end: the
 * selection of elements or zeros that the sum takes can be packed, too. NULL: there is none. */
static struct role_op *find_summed_pack(const struct lowering *c, const struct frag *packed)
{
	struct role_op *pack = NULL, *const *all = c->body->v.v;
	int n = c->body->v.n;

	for (int i = 0; i < n; i++)
		if (all[i]->what == DO_PACK && all[i]->u.pack.to.frag == packed &&
		    all[i]->u.pack.value->kind == VAL_FRAG)
			pack = all[i];
	for (int i = 0; pack && i < n; i++) {
		const struct role_op *o = all[i];
		const struct val *v = o->what == DO_REDUCE && o->u.reduce.op == OP_SUM ? o->u.reduce.value : NULL;

		if (v && v->kind == VAL_GUARD && v->arg[0]->kind == VAL_FRAG &&
		    v->arg[0]->frag.frag == pack->u.pack.value->frag.frag)
			return pack;
	}
	return NULL;
}

static enum err_code keep_in_registers(struct lowering *c, const struct kentry *x, int buffer, const struct num *inside,
	struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	struct frag_at to;
	const struct frag *from;

	if (packs_result(c, stask_of(c, x), b->node)) {
		const struct val *value;
		struct role_op *o;

		TRY(operand_value(c, x, b->node, c->p->nodes.v[b->node].arg[0], &value, e));
		TRY(use_registers(c, x, buffer, TOUCH_WRITE, &to, e));
		o = add_op(c, DO_PACK);
		o->u.pack.to = to;
		o->u.pack.value = value;
		o->u.pack.type = b->type;
		o->u.pack.inside = inside;
		if (c->makes || is_of_fields(c, stask_of(c, x), b->node))
			widen_reads(c, o);
		if (c->makes || is_operand_of_pairs(c, stask_of(c, x), b->node))
			pair_arithmetic(c, o);
		o->u.pack.ordered = o->u.pack.pairs && is_operand_in_registers(c, stask_of(c, x), b->node);
		return OK;
	}
	TRY(find_node_frag(c, stask_of(c, x), b->node, &from, e));
	TRY(use_registers(c, x, buffer, TOUCH_WRITE, &to, e));
	if (to.frag->packed && !from->packed) {		/* kept in the type in which it is only stored */
		struct role_op *o = add_op(c, DO_PACK);

		o->u.pack.to = to;
		o->u.pack.value = val_frag(c, (struct frag_at){ .frag = from });
		o->u.pack.type = b->type;
	} else {
		struct role_op *pack = to.frag->packed ? find_summed_pack(c, from) : NULL, *o = add_op(c, DO_KEEP);

		o->u.pack.to = to;
		o->u.pack.from = from;
		/* Matrix instructions read only packed fragments from registers; others need no zeros, so all is
		 * inside. Behind a sum, compilers would keep the conditions of all columns in registers to set pairs to
		 * zero. */
		o->u.pack.inside = to.frag->packed && !pack ? inside : N(c, 1);
		if (pack)
			pack->u.pack.inside = inside;
	}
	if (is_read_behind_product(c, x, buffer))
		add_pin(c, to.frag, to.version, frag_block_words(to.frag));
	return OK;
}

/* Are the rows and columns of the ring those of the value's fragment, so that its padding is that of the fragment? */
static bool has_fragment_padding(const struct kernel *k, const struct shape2 *shape, const struct ring *r)
{
	return shape->nrow == r->shape.nrow && shape->ncol == r->shape.ncol && has_same_layout(k, &r->shape, shape);
}

/* Zeros in rows [row, row + rows) and columns [col, col + cols) of the ring's slot. */
static void zero_rectangle(struct lowering *c, const struct ring *r, int64_t row, int64_t rows, int64_t col,
	int64_t cols)
{
	enum dtype type = c->g->buffers.v[r->buffer].type;
	const struct num *at = V(c, VAR_EACH, NONE);
	struct role_op *o;

	if (rows < 1 || cols < 1)
		return;
	o = add_op(c, DO_FILL);
	o->u.fill.ring = c->k->ring_of[r->buffer];
	o->u.fill.elements = rows * cols;
	o->u.fill.address = ring_element_address(c, r, ADD(N(c, row), DIV(at, N(c, cols))),
		ADD(N(c, col), MOD(at, N(c, cols))));
	o->u.fill.value = val_const(c, dtype_is_float(type) ? DT_F32 : DT_I32, 0);
	o->u.fill.type = type;
}

/* How the elements of a computed value get into its ring. */
struct placement {
	const struct num *inside;	/* condition: the element is itself, not zero */
	bool padded;			/* the fragment's padding holds the zeros behind the value; otherwise they are
					 * written in addition */
};

static enum err_code store_in_ring(struct lowering *c, const struct kentry *x, int buffer, struct placement p,
	struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	const struct stask *s = stask_of(c, x);
	const struct ring *r = ring_of(c, buffer);
	const struct shape2 *shape = &c->k->node_shape[b->node];
	const struct frag *from;
	struct role_op *o;
	struct frag written, slice;	/* written: the part of the fragment that the slice takes */

	TRY(find_node_frag(c, s, b->node, &from, e));
	slice = lower_ring_slice(s, r);
	written = *from;
	if (p.padded) {
		written.height = min_i64(from->rows, slice.rows);
		written.width = min_i64(from->cols, slice.cols);
	}
	add_touch(c, TOUCH_WRITE, TOUCH_SLOT, buffer, 0);
	o = add_op(c, DO_PUT);
	o->u.put.over = from;
	o->u.put.from.frag = from;
	o->u.put.type = b->type;
	o->u.put.address = ring_address(c, s, r, shape);
	o->u.put.when = NUM2(BOTH, one_holder_condition(c, from->kind), inside_condition(c, s, shape, &written, 0));
	/* Two elements are written as one word if the fragment holds them so, none is set to zero alone, they are
	 * neighbours in the ring because its columns are those of the value, and no word crosses the last column. */
	o->u.put.pairs = from->packed && num_is(p.inside, 1) && has_fragment_padding(c->k, shape, r) &&
		from->width % 2 == 0;
	o->u.put.inside = p.inside;
	if (!p.padded && (r->one_slice || s->slice == s->slices - 1)) {
		zero_rectangle(c, r, r->shape.rows, r->full_rows - r->shape.rows, 0, r->full_cols);
		zero_rectangle(c, r, 0, r->shape.rows, r->shape.cols, r->full_cols - r->shape.cols);
	}
	add_op(c, DO_FENCE)->why = "engines may read it";
	return OK;
}

/* Condition: the element of an operand is before the end of each contracted axis. Matrix instructions read complete
 * steps along these axes and add up the products, so all that they read beyond the end must be zero. Beyond the end of
 * another axis an operand only makes rows or columns of the result that nobody uses, so the condition holds there. */
static const struct num *within_contracted(struct lowering *c, const struct stask *s, int node, const struct frag *f)
{
	const struct shape2 *shape = &c->k->node_shape[node];
	struct frag tested = *f;	/* ends with the padding where that need not be zero */
	uint64_t rows = 0, cols = 0;

	for (int i = 0; i < shape_rank(shape); i++)
		*(i < shape->nrow ? &rows : &cols) |= c->k->contracted & (uint64_t)1 << shape_axis(shape, i);
	if (!rows)
		tested.height = tested.rows;
	if (!cols)
		tested.width = tested.cols;
	return inside_condition(c, s, shape, &tested, rows | cols);
}

enum err_code write_result(struct lowering *c, const struct kentry *x, int buffer, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	struct placement p = { .inside = N(c, 1) };
	const struct ring *r;
	struct frag f, part;

	TRY(lay_out_buffer(c, buffer, &f, e));
	if (lower_is_matrix_operand(c->k, buffer))
		p.inside = within_contracted(c, stask_of(c, x), b->node, &f);
	if (!has_ring(c, buffer))
		return keep_in_registers(c, x, buffer, p.inside, e);
	r = ring_of(c, buffer);
	part = lower_ring_slice(stask_of(c, x), r);
	p.padded = !lower_is_shared_operand(c->k, buffer) || (f.rows >= part.rows && f.cols >= part.cols &&
		has_fragment_padding(c->k, &c->k->node_shape[b->node], r));
	return store_in_ring(c, x, buffer, p, e);
}
