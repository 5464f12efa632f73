/* Carries that are partial sums in each block of a cluster (plan/cluster.h): where the parts are exchanged, and which
 * elements of what is made of the sums a block stores.
 *
 * A thread gets from other blocks what the thread of the same number has there: chunks of 16 bytes, what a thread has
 * of a group of columns in a block of rows. They write it to the shared memory of the block that adds it up, as a write, unlike a
 * read, is not waited for. Chunks lie thread by thread, so that the accesses of a warp have no bank conflicts. */
#include "lower/select/lowering.h"

#include "lower/passes.h"
#include "plan/cluster.h"

enum { CHUNK_WORDS = 4, WORD = 4 };

static struct parts_sum *parts_of(const struct kernel *k, int buffer, int replica)
{
	for (int i = 0; i < k->parts.n; i++)
		if (k->parts.v[i].buffer == buffer && k->parts.v[i].replica == replica)
			return &k->parts.v[i];
	return NULL;
}

/* ---- what they need ----------------------------------------------------------------------- */

static int add_flag(struct kernel *k, int task, int replicas)
{
	/* one barrier for each replica: its phases then complete in the order of that replica's tiles */
	struct flag f = { .task = task, .depth = replicas, .all_blocks = true, .parts = true,
		.offset = round_up(k->shared_bytes, k->target->shared.flag),
		.arrivals = lane_warps(k->plan, lane_of(k, task)) * k->cluster };

	VEC_PUSH(&k->arena, &k->flags, f);
	k->shared_bytes = f.offset + (int64_t)replicas * k->target->shared.flag;
	return k->flags.n - 1;
}

static enum err_code refuse(struct kernel *k, int buffer, const char *why, struct err *e)
{
	return err_set(e, ERR_ILLEGAL, k->plan->grid_loc, "a cluster cannot add up '%s': %s",
		k->plan->graph->buffers.v[buffer].name, why);
}

/* Has each replica of the lane one tile at most, whatever the sizes? Then nothing is overwritten. */
static bool takes_one_tile(const struct kernel *k, const struct klane *l)
{
	return !program_has_any(k->plan->graph->program) && k->most_tiles <= l->replicas;
}

static enum err_code add_parts(struct kernel *k, struct klane *l, int task, int buffer, struct err *e)
{
	struct lowering c = { .k = k, .plan = k->plan, .g = k->plan->graph, .p = k->plan->graph->program,
		.a = &k->arena, .lane = l };
	struct parts_sum x = { .buffer = buffer, .task = task, .replica = l->replica };
	const struct parts_sum *first = parts_of(k, buffer, 0);
	struct frag f;

	if (parts_of(k, buffer, l->replica))
		return refuse(k, buffer, "several sTasks use it", e);
	if (k->ring_of[buffer] != NONE)
		return refuse(k, buffer, "it is in shared memory, as several lanes use it", e);
	TRY(lay_out_buffer(&c, buffer, &f, e));
	if (f.kind != FRAG_FULL || f.layout->pair * f.layout->halves != CHUNK_WORDS || f.layout->across_warps)
		return refuse(k, buffer, "it is not laid out like the result of a product, of which a thread has four "
			"elements of each group of columns", e);
	x.groups = frag_groups(&f);
	x.chunks = (int)ceil_div((int64_t)x.groups * f.blocks, k->cluster);
	x.bytes = (int64_t)x.chunks * (k->cluster - 1) * CHUNK_WORDS * WORD * k->target->warp;
	x.there = first ? first->there : add_flag(k, task, l->replicas);
	x.read = first ? first->read : takes_one_tile(k, l) ? NONE : add_flag(k, task, l->replicas);
	x.offset = round_up(k->shared_bytes, k->target->shared.chunk);
	k->shared_bytes = x.offset + x.bytes * l->warps;
	VEC_PUSH(&k->arena, &k->parts, x);
	return OK;
}

enum err_code lower_cluster_sums(struct kernel *k, struct err *e)
{
	const struct graph *g = k->plan->graph;
	struct cluster clusters = plan_cluster(k->plan, k->phase);

	k->shared_nodes = cluster_divides(&clusters) ? cluster_find_shares(&k->arena, g) : NULL;
	for (int i = 0; i < k->lanes.n && k->shared_nodes; i++)
		for (int j = 0; j < k->lanes.v[i].entries.n; j++) {
			int task = k->lanes.v[i].entries.v[j].task;
			const struct stask *s = stask_at(k, task);

			for (int b = 0; b < s->reads.n && s->loop == NONE; b++) {
				int carry = g->buffers.v[s->reads.v[b]].carry;

				if (carry != NONE && cluster_sums(g, carry))
					TRY(add_parts(k, &k->lanes.v[i], task, s->reads.v[b], e));
			}
		}
	return OK;
}

bool lower_ends_apart(const struct kernel *k)
{
	for (int i = 0; i < k->flags.n; i++)
		if (k->flags.v[i].all_blocks && !k->flags.v[i].parts)
			return false;
	for (int i = 0; i < k->parts.n; i++)
		if (k->parts.v[i].read != NONE)
			return false;
	return k->parts.n > 0;
}

/* ---- the exchange ---------------------------------------------------------------------- */

static struct role_op *add_parts_op(struct lowering *c, enum role_do what, int buffer, const struct parts_sum *x,
	struct frag_at from, struct frag_at to)
{
	int staging = c->k->outboxes.n + (int)(x - c->k->parts.v);
	struct role_op *o;

	add_touch(c, TOUCH_READ, TOUCH_FRAG, buffer, from.version);
	add_touch(c, what == DO_PUT_PARTS ? TOUCH_WRITE : TOUCH_READ, TOUCH_STAGING, staging, 1);
	o = add_op(c, what);
	o->touches.v[o->touches.n - 1].own = what == DO_SUM_PARTS;
	o->u.parts.from = from;
	o->u.parts.to = to;
	o->u.parts.staging = staging;
	o->u.parts.chunks = x->chunks;
	return o;
}

struct frag_at sum_parts(struct lowering *c, const struct kentry *x, int buffer, struct frag_at from)
{
	const struct parts_sum *parts = parts_of(c->k, buffer, c->lane->replica);
	const struct num *t = instance_number(c, stask_of(c, x)->loop);
	struct role_op *put, *sum;
	struct frag *to;
	/* the touches so far belong to the operation that will use the sum: they are set aside meanwhile */
	int noted = c->touches.n;
	struct touch *touches = arena_copy(c->a, c->touches.v, (size_t)noted, sizeof(*touches));

	if (c->summed[buffer])
		return (struct frag_at){ .frag = c->summed[buffer] };
	to = arena_copy(c->a, from.frag, 1, sizeof(*to));
	to->name = c_identifier(c, "sum_", c->g->buffers.v[buffer].name);
	to->buffer = NONE;
	to->versions = 1;
	c->touches.n = 0;
	if (parts->read != NONE)
		add_flag_op(c, DO_WAIT, parts->read, SUB(t, N(c, c->lane->replicas)),
			"other blocks have read the parts of the tile before");
	put = add_parts_op(c, DO_PUT_PARTS, buffer, parts, from, (struct frag_at){ 0 });
	put->why = "other blocks add them up";
	add_arrive(c, parts->there, t, "the parts are there");
	add_flag_op(c, DO_WAIT, parts->there, t, "the parts of all blocks are there");
	add_op(c, DO_FRAGMENT)->u.frag.at.frag = to;
	sum = add_parts_op(c, DO_SUM_PARTS, buffer, parts, from, (struct frag_at){ .frag = to });
	sum->why = "in the order of the blocks";
	if (parts->read != NONE)
		add_arrive(c, parts->read, t, "other blocks may overwrite their parts");
	for (int i = 0; i < noted; i++)
		VEC_PUSH(c->a, &c->touches, touches[i]);
	c->summed[buffer] = to;
	return (struct frag_at){ .frag = to };
}

/* The sum that the node, of which a block has a share, is made of. */
static int sum_of(const struct kernel *k, int node)
{
	const struct program *p = k->plan->graph->program;

	while (p->nodes.v[node].op != OP_GET) {
		int i = 0;

		while (!k->shared_nodes[p->nodes.v[node].arg[i]])
			i++;
		node = p->nodes.v[node].arg[i];
	}
	return p->nodes.v[node].ref;
}

bool lower_stores_share(const struct kernel *k, const struct stask *s)
{
	return k->shared_nodes && s->kind == TASK_STORE && k->shared_nodes[last_node_of(k, s)->arg[0]];
}

const struct parts_sum *lower_stored_parts(const struct kernel *k, const struct stask *s)
{
	const struct graph *g = k->plan->graph;
	int node = last_node_of(k, s)->arg[0], carry = lower_stores_share(k, s) ? sum_of(k, node) : NONE;

	if (carry == NONE || !has_same_layout(k, &k->node_shape[node], &k->carry_shape[carry]))
		return NULL;
	for (int i = 0; i < k->parts.n; i++)
		if (g->buffers.v[k->parts.v[i].buffer].carry == carry &&
		    lane_of(k, k->parts.v[i].task) == lane_of(k, (int)(s - g->tasks.v)))
			return &k->parts.v[i];
	return NULL;
}

const struct num *is_in_share(struct lowering *c, const struct stask *s, const struct num *row_block,
	const struct num *group)
{
	const struct parts_sum *x = lower_stored_parts(c->k, s);

	return x ? NUM2(EQ, DIV(ADD(MUL(row_block, N(c, x->groups)), group), N(c, x->chunks)), V(c, VAR_RANK, NONE)) :
		NULL;
}
