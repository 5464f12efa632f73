/* Clusters whose EUs have one tile together and divide the iterations of a loop: which carries are partial sums then,
 * and what a program must not do with them. */
#include "plan/cluster.h"

#include "plan/problem.h"

static int region_of(const struct program *p, const struct node *n)
{
	return p->tasks.v[n->task].loop;
}

/* The divided loop that region `loop` is, or is in; NONE: there is none. */
static int divided_around(const struct graph *g, int loop)
{
	while (loop != NONE && loop_parts(&g->extents, loop) == 1)
		loop = g->program->loops.v[loop].parent;
	return loop;
}

/* Is `by` the only node that takes the node? */
static bool is_only_user(const struct program *p, int node, int by)
{
	for (int i = 0; i < p->nodes.n; i++)
		for (int k = 0; i != by && p->nodes.v[i].task != NONE && k < node_arity(&p->nodes.v[i]); k++)
			if (p->nodes.v[i].arg[k] == node)
				return false;
	return true;
}

/* Does the node add something to the carry, and nothing else use either its old value or the new one? */
static bool adds_to(const struct program *p, int node, int carry)
{
	const struct node *n = &p->nodes.v[node];
	const struct node *sum = n->op == OP_SET ? &p->nodes.v[n->arg[0]] : NULL;

	if (node_adds_to_carry(n))
		return is_only_user(p, node, NONE);
	if (!sum || sum->op != OP_ADD || sum->task != n->task || !is_only_user(p, n->arg[0], node))
		return false;
	for (int i = 0; i < 2; i++) {
		const struct node *old = &p->nodes.v[sum->arg[i]];

		if (old->op == OP_GET && old->ref == carry && old->task == n->task && sum->arg[0] != sum->arg[1] &&
		    is_only_user(p, sum->arg[i], n->arg[0]))
			return true;
	}
	return false;
}

/* How divided loops use a carry of the region around them. */
struct carry_use {
	int sets, gets;			/* by nodes in divided loops */
	int additions;			/* of those that set it, which only add */
	bool elsewhere;			/* it is set in another region */
	int readers, reader;		/* tasks in no divided loop that get it */
};

static struct carry_use use_of(const struct graph *g, int carry)
{
	const struct program *p = g->program;
	struct carry_use u = { .reader = NONE };

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		bool inside;

		if (n->task == NONE || !(node_gets_carry(n) || node_sets_carry(n)) || n->ref != carry)
			continue;
		inside = divided_around(g, region_of(p, n)) != NONE;
		if (node_sets_carry(n)) {
			u.sets += inside;
			u.additions += inside && adds_to(p, i, carry);
			u.elsewhere |= !inside;
		}
		u.gets += inside && n->op == OP_GET;
		if (!inside && n->op == OP_GET && n->task != u.reader) {
			u.readers++;
			u.reader = n->task;
		}
	}
	return u;
}

/* Does a divided loop set a carry of the region around it? */
static bool is_set_inside(const struct graph *g, int carry, struct carry_use *u)
{
	*u = use_of(g, carry);
	return u->sets > 0 && divided_around(g, g->program->carries.v[carry].loop) == NONE;
}

bool cluster_sums(const struct graph *g, int carry)
{
	struct carry_use u;

	return g->extents.divided && is_set_inside(g, carry, &u);
}

bool *cluster_find_shares(struct arena *a, const struct graph *g)
{
	const struct program *p = g->program;
	bool *shared = ARENA_ARRAY(a, p->nodes.n, bool);

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task == NONE)
			continue;
		if (n->op == OP_GET)
			shared[i] = divided_around(g, region_of(p, n)) == NONE && cluster_sums(g, n->ref);
		for (int k = 0; k < node_arity(n); k++)
			shared[i] |= shared[n->arg[k]];
	}
	return shared;
}

/* ---- what is refused ---------------------------------------------------------------- */

struct divided_check {
	const struct plan *p;
	const struct graph *g;
	const char *axis;
	int parts;
	struct arena *a;
	struct problems *out;
};

static const char undivided[] = "plan:grid{cluster=1}";

#define REFUSE(c, hint, ...) problem_add((c)->a, (c)->out, PROBLEM_CLUSTER, (c)->p->grid_loc, hint, __VA_ARGS__)

static void check_loop(const struct divided_check *c, int loop)
{
	const struct program *p = c->g->program;
	const struct loop *l = &p->loops.v[loop];
	int64_t tiles = extent_tiles(&c->g->extents, l->axis[0]);
	int parts = c->parts;

	if (l->has_from || l->has_upto || l->has_length || p->axes.v[l->axis[0]].multiple) {
		REFUSE(c, undivided, "a cluster cannot divide the loop over '%s', which has bounds or a size that is known at "
			"launch", c->axis);
		return;
	}
	for (int i = 0; i < p->loops.n; i++)
		if (i != loop && program_loop_within(p, i, loop) && loop_bounds_use(p, &p->loops.v[i], l->axis[0]))
			REFUSE(c, undivided, "a cluster cannot divide the loop over '%s', as the bounds of a loop inside depend on it",
				c->axis);
	if (tiles % parts == 0)
		return;
	while (tiles % parts)
		parts--;
	REFUSE(c, parts == 1 ? undivided : arena_strf(c->a, "plan:grid{cluster=%d}", parts), "the %lld iterations of the loop "
		"over '%s' are no multiple of the %d EUs of a cluster, which divide them", (long long)tiles, c->axis, c->parts);
}

static void check_carry(const struct divided_check *c, int carry)
{
	const struct program *p = c->g->program;
	const struct carry *x = &p->carries.v[carry];
	struct carry_use u;
	const char *why = NULL;

	if (!is_set_inside(c->g, carry, &u))
		return;
	if (u.additions < u.sets || u.gets > u.additions)
		why = "is not just added to in the loop";
	else if (x->init != 0)
		why = "does not begin at 0, so that each EU would add where it begins";
	else if (x->type != DT_F32 && x->type != DT_I32)
		why = "is neither of f32 nor of i32";
	else if (u.elsewhere)
		why = "is set outside of the loop, too";
	else if (u.readers > 1)
		why = "is used by several sTasks behind the loop";
	else if (u.reader != NONE && p->tasks.v[u.reader].loop != NONE)
		why = "is used in another loop";
	if (why)
		REFUSE(c, undivided, "a cluster that divides the loop over '%s' cannot add up '%s', which %s", c->axis, x->name, why);
}

/* Of what is made of a sum, each EU has a share: it must be element-wise, and stored. */
static void check_shares(const struct divided_check *c)
{
	const struct program *p = c->g->program;
	const bool *shared = cluster_find_shares(c->a, c->g);

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		bool element_wise = n->op == OP_GET || n->op == OP_CAST || op_kind(n->op) == OP_ELEMENTWISE;

		if (n->task == NONE || !shared[i])
			continue;
		if (n->op == OP_STORE)
			element_wise = shared[n->arg[0]] && node_arity(n) == 1;
		if (region_of(p, n) != NONE || !element_wise)
			REFUSE(c, undivided, "of a sum over '%s' each EU of a cluster has a share of the elements, but '%s' takes "
				"more of them: only element-wise sTasks and stores may follow", c->axis, p->tasks.v[n->task].name);
	}
}

/* What every EU of a cluster adds in memory is added several times. */
static void check_additions(const struct divided_check *c)
{
	const struct program *p = c->g->program;
	const bool *shared = cluster_find_shares(c->a, c->g);

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && n->adds && plan_cluster(c->p, p->tasks.v[n->task].phase).size > 1 &&
		    divided_around(c->g, region_of(p, n)) == NONE && !shared[i])
			REFUSE(c, undivided, "each EU of a cluster that divides the loop over '%s' would add all that '%s' adds",
				c->axis, p->tasks.v[n->task].name);
	}
}

void cluster_check_divided(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;
	int eus = p->grid.eus ? p->grid.eus : (int)min_i64(p->device->eus, p->device->cluster_eus);
	struct divided_check c = { .p = p, .g = g, .parts = p->grid.cluster, .a = a, .out = out };
	int loops = 0;

	if (g->extents.divided != p->grid.divided || (p->grid.divided && g->extents.parts != p->grid.cluster)) {
		REFUSE(&c, NULL, "the plan's graph divides loops otherwise than the plan does: make the plan of the program's own "
			"graph");
		return;
	}
	if (!p->grid.divided)
		return;
	c.axis = g->program->axes.v[p->grid.divided - 1].name;
	if (eus < c.parts)
		REFUSE(&c, arena_strf(a, "plan:grid{eus=%d}", c.parts), "a cluster of %d takes as many EUs, the plan uses %d",
			c.parts, eus);
	for (int l = 0; l < g->program->loops.n; l++)
		if (loop_parts(&g->extents, l) > 1) {
			check_loop(&c, l);
			loops++;
		}
	if (!loops) {
		REFUSE(&c, undivided, "clusters have nothing to divide: no loop over '%s' alone stands directly in a phase", c.axis);
		return;
	}
	for (int i = 0; i < g->program->carries.n; i++)
		check_carry(&c, i);
	check_shares(&c);
	check_additions(&c);
}
