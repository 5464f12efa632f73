/* Partial sums: sums over columns that a loop need not finish.
 *
 * The sum along the columns of a row, of which each thread of a quad has some, is joined by the quad's threads in each
 * iteration. A carry to which such sums are added, and which is otherwise only scaled by values that are the same in
 * all of those threads, may as well be what each thread has added up itself: it is linear in its parts, which begin at
 * zero. Then they are joined only where the carry is read. The sum of softmax is one. */
#include "lower/layout/folds.h"

#include "lower/passes.h"

struct chain {
	const struct kernel *k;
	const struct program *p;
	int carry, task;		/* of the program; that sets it */
	int sums;			/* that are added */
	int node;			/* asked for: is it one of them? NONE */
	bool found;
};

static const struct program *program_of(const struct kernel *k)
{
	return k->plan->graph->program;
}

static bool lies_as_carry(const struct chain *x, int node)
{
	return has_same_layout(x->k, &x->k->node_shape[node], &x->k->carry_shape[x->carry]);
}

/* The node that sets the carry; NONE: there are none or several. */
static int find_set(const struct program *p, int carry)
{
	int set = NONE;

	for (int i = 0; i < p->nodes.n; i++) {
		if (p->nodes.v[i].op == OP_MMA && p->nodes.v[i].ref == carry)
			return NONE;
		if (p->nodes.v[i].op != OP_SET || p->nodes.v[i].ref != carry)
			continue;
		if (set != NONE)
			return NONE;
		set = i;
	}
	return set;
}

/* Is `by` the only node that takes the node as an argument? */
static bool is_only_user(const struct program *p, int node, int by)
{
	for (int i = 0; i < p->nodes.n; i++)
		for (int k = 0; i != by && k < node_arity(&p->nodes.v[i]); k++)
			if (p->nodes.v[i].arg[k] == node)
				return false;
	return true;
}

/* Does a chain of nodes lead from the carry to the node and on to `by`, in which each is the only user of the one
 * before? A node with several users ends the search: there can be two at every step of a long sTask. */
static bool leads_to_carry(const struct chain *x, int node, int by)
{
	const struct node *n = &x->p->nodes.v[node];

	if (n->task != x->task || !is_only_user(x->p, node, by))
		return false;
	if (n->op == OP_GET && n->ref == x->carry)
		return true;
	for (int k = 0; k < op_arity(n->op); k++)
		if (leads_to_carry(x, n->arg[k], node))
			return true;
	return false;
}

/* Is the node a sum along columns, which the threads of a row must join, in all sTasks of the task? */
static bool is_joined(const struct chain *x, int node)
{
	const struct graph *g = x->k->plan->graph;
	const struct node *n = &x->p->nodes.v[node];
	struct fold f;

	if (n->op != OP_SUM || n->task != x->task || !dtype_is_float(n->type) || !lies_as_carry(x, node))
		return false;
	for (int i = 0; i < g->tasks.n; i++) {
		if (g->tasks.v[i].task != x->task || g->tasks.v[i].phase != x->k->phase)
			continue;
		fold_of(x->k, &g->tasks.v[i], node, &f);
		if (f.way != FOLD_COLUMNS)
			return false;
	}
	return true;
}

/* Is the node the carry, perhaps scaled and added to, and `by` its only user? */
static bool is_linear(struct chain *x, int node, int by)
{
	const struct node *n = &x->p->nodes.v[node];
	int with;

	if (n->task != x->task || !is_only_user(x->p, node, by) || !lies_as_carry(x, node))
		return false;
	if (n->op == OP_GET)
		return n->ref == x->carry;
	if (n->op != OP_ADD && n->op != OP_MUL)
		return false;
	with = leads_to_carry(x, n->arg[0], node) ? 1 : 0;
	if (leads_to_carry(x, n->arg[with], node) || !is_linear(x, n->arg[1 - with], node))
		return false;
	if (n->op == OP_MUL)
		return lies_as_carry(x, n->arg[with]) || x->p->nodes.v[n->arg[with]].op == OP_CONST;
	x->sums++;
	x->found |= n->arg[with] == x->node;
	return is_joined(x, n->arg[with]) && is_only_user(x->p, n->arg[with], node);
}

/* Does the task that sets the carry read it once, and do other tasks read it only behind the loop? */
static bool is_read_behind(const struct chain *x)
{
	int loop = x->p->tasks.v[x->task].loop, own = 0;

	for (int i = 0; i < x->p->nodes.n; i++) {
		const struct node *n = &x->p->nodes.v[i];

		if (n->op != OP_GET || n->ref != x->carry)
			continue;
		own += n->task == x->task;
		if (n->task != x->task && (n->task == NONE || !lies_as_carry(x, i) ||
		    program_loop_within(x->p, x->p->tasks.v[n->task].loop, loop)))
			return false;
	}
	return loop != NONE && own == 1;
}

static bool in_registers(const struct chain *x)
{
	const struct graph *g = x->k->plan->graph;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].carry == x->carry && x->k->ring_of[i] != NONE)
			return false;
	return true;
}

/* Does each thread keep its own part of the carry? Sets x->task, sums and found. */
static bool is_partial(struct chain *x)
{
	const struct carry *c = &x->p->carries.v[x->carry];
	int set = find_set(x->p, x->carry);

	/* warps that share a row join their sums at once, through shared memory */
	if (!lower_does(x->k, PARTIAL_SUMS) || x->k->target->frag.across_warps || set == NONE ||
	    c->phase != x->k->phase || c->init != 0 ||
	    c->type != DT_F32 || !in_registers(x))
		return false;
	x->task = x->p->nodes.v[set].task;
	return x->task != NONE && is_read_behind(x) && is_linear(x, x->p->nodes.v[set].arg[0], set) && x->sums > 0;
}

bool lower_joins_partial_sums(const struct kernel *k, int node)
{
	const struct node *n = &program_of(k)->nodes.v[node];
	struct chain x = { .k = k, .p = program_of(k), .carry = n->ref, .node = NONE };

	return n->op == OP_GET && is_partial(&x) && n->task != x.task;
}

bool lower_is_partial_sum(const struct kernel *k, int node)
{
	const struct program *p = program_of(k);

	for (int i = 0; i < p->carries.n; i++) {
		struct chain x = { .k = k, .p = p, .carry = i, .node = node };

		if (is_partial(&x) && x.found)
			return true;
	}
	return false;
}
