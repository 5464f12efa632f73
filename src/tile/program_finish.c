#include <string.h>

#include "tile/extent.h"
#include "tile/program_build.h"

/* What reaches a store. */
struct live {
	bool *node, *carry;
	const bool *length;		/* what makes lengths of loops; it needs no task */
};

static void mark_node(const struct program *p, struct live *l, int id, bool *again)
{
	const struct node *n = &p->nodes.v[id];

	if (n->op == OP_STORE)
		l->node[id] = true;
	if (node_sets_carry(n) && l->carry[n->ref])
		l->node[id] = true;
	if (!l->node[id])
		return;
	for (int i = 0; i < node_arity(n); i++)
		l->node[n->arg[i]] = true;
	if (node_gets_carry(n) && !l->carry[n->ref])
		*again = l->carry[n->ref] = true;
}

/* Backward from the stores; a carry that is read makes what is set to it live, so
 * another pass follows whenever one more carry was found to be read. */
static void mark_live(const struct program *p, struct live *l)
{
	bool again = true;

	while (again) {
		again = false;
		for (int i = p->nodes.n - 1; i >= 0; i--)
			mark_node(p, l, i, &again);
	}
}

static enum err_code check_ended(const struct program *p, struct err *e)
{
	if (p->task_is_open)
		return err_set(e, ERR_INPUT, p->tasks.v[p->cur_task].loc, "task '%s' has no end; end it before the "
			"program ends", p->tasks.v[p->cur_task].name);
	return p->cur_loop == NONE ? OK : err_set(e, ERR_INPUT, p->loops.v[p->cur_loop].loc, "%s has no end; end it "
		"before the program ends", loop_phrase(p, p->cur_loop).s);
}

static enum err_code check_stores(const struct program *p, struct err *e)
{
	bool any = false;

	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];
		bool stored = false;

		for (int k = 0; k < p->nodes.n; k++)
			stored |= p->nodes.v[k].op == OP_STORE && p->nodes.v[k].ref == i;
		any |= t->role == TENSOR_OUTPUT;
		if (t->role == TENSOR_OUTPUT && !stored)
			return err_set(e, ERR_INPUT, t->loc, "output '%s' is never stored; store "
				"it or remove it", t->name);
	}
	if (!any)
		return err_set(e, ERR_INPUT, NOWHERE, "program '%s' has no output; declare one and store it", p->name);
	return OK;
}

/* Every phase must have a store, which gives it a grid, and few enough axes for it. */
static enum err_code check_phases(const struct program *p, struct err *e)
{
	for (int i = 0; i < p->phases.n; i++) {
		const struct phase *ph = &p->phases.v[i];
		enum axis_role role[AXES_MAX];
		bool stores = false;
		int axes = 0;

		for (int j = 0; j < p->nodes.n; j++)
			stores |= p->nodes.v[j].op == OP_STORE && p->tasks.v[p->nodes.v[j].task].phase == i;
		if (!stores)
			return err_set(e, ERR_INPUT, ph->loc, "phase '%s' stores nothing; store "
				"what it computes or remove it", ph->name);
		axis_roles(p, i, role);
		for (int a = 0; a < p->axes.n; a++)
			axes += p->axes.v[a].packs == NONE && (role[a] == AXIS_BATCH || role[a] == AXIS_GRID);
		if (axes > 2 * RANK_MAX)
			return err_set(e, ERR_LIMIT, ph->loc, "phase '%s' stores over %d axes in "
				"all; at most %d are possible", ph->name, axes, 2 * RANK_MAX);
	}
	return OK;
}

/* A loop of the phase over the axis; NONE: there is none, and the axis has one tile wherever the phase is. */
static int find_loop_over(const struct program *p, int phase, int axis)
{
	for (int i = 0; i < p->loops.n; i++)
		if (p->loops.v[i].body.n && p->loops.v[i].phase == phase && ints_hold(p->loops.v[i].axis, p->loops.v[i].naxes, axis))
			return i;
	return NONE;
}

/* What a loop's bounds depend on must have a tile where the loop begins. Loops of which nothing is left do not count. */
static enum err_code check_bounds(const struct program *p, struct err *e)
{
	for (int i = 0; i < p->loops.n; i++) {
		const struct loop *l = &p->loops.v[i];

		for (int a = 0; a < p->axes.n && l->body.n; a++) {
			bool from = l->has_from && index_uses(&l->from, a);
			int over = find_loop_over(p, l->phase, a);

			if ((!from && !(l->has_upto && index_uses(&l->upto, a))) || over == NONE ||
			    program_axis_bound(p, l->parent, a))
				continue;
			return err_set(e, ERR_INPUT, l->loc, "'%s' of the loop over '%s' depends on '%s', but this "
				"loop is not inside %s, so '%s' has no tile here; put it inside that loop, or bound it "
				"by an axis from outside", from ? "from" : "upto", p->axes.v[l->axis[0]].name,
				p->axes.v[a].name, loop_phrase(p, over).s, p->axes.v[a].name);
		}
	}
	return OK;
}

/* Element-wise work that nothing needs is dropped; a load or product must have been meant for something. */
static enum err_code check_used(const struct program *p, const struct live *l, struct err *e)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (l->node[i] || l->length[i] || (n->op != OP_LOAD && n->op != OP_MMA))
			continue;
		if (node_adds_to_carry(n))
			return err_set(e, ERR_INPUT, n->loc, "'%s' adds to carry '%s', which "
				"nothing that is stored depends on; store the carry or remove "
				"both", p->tasks.v[n->task].name, p->carries.v[n->ref].name);
		return err_set(e, ERR_INPUT, n->loc, "nothing that is stored depends on '%s'; use its value or remove "
			"it", p->tasks.v[n->task].name);
	}
	return OK;
}

/* The type of a node whose arguments' or carry's type may have become f64. */
static enum dtype final_type(const struct program *p, const struct node *n)
{
	enum dtype t[3] = { n->type, n->type, n->type }, out = n->type;
	enum op_class class = op_class(n->op);
	bool widened = node_adds_to_carry(n) && p->carries.v[n->ref].type == DT_F64;

	for (int i = 0; i < node_arity(n); i++)
		t[i] = p->nodes.v[n->arg[i]].type;
	if (n->op == OP_GET || n->op == OP_SET)
		return p->carries.v[n->ref].type;
	if (n->op == OP_AT || n->op == OP_EXPAND)
		return t[0];
	if (n->op == OP_MMA)
		return widened || t[0] == DT_F64 || t[1] == DT_F64 ? DT_F64 : n->type;
	if (op_kind(n->op) == OP_ELEMENTWISE || class == CLASS_REDUCE || class == CLASS_SCAN) {
		if (!op_result_type(n->op, t, &out))
			BUG("widening to f64 made a %s illegal", op_name(n->op));
	}
	return out;
}

/* A carry becomes f64 when it is set to an f64 value, which may be long after it
 * was read: let the types follow, until no more changes. */
static void widen_types(struct program *p)
{
	bool again = true;

	while (again) {
		again = false;
		for (int i = 0; i < p->nodes.n; i++) {
			struct node *n = &p->nodes.v[i];
			enum dtype t;

			if ((n->op == OP_SET && p->nodes.v[n->arg[0]].type == DT_F64) ||
			    (node_adds_to_carry(n) && n->type == DT_F64)) {
				again |= p->carries.v[n->ref].type != DT_F64;
				p->carries.v[n->ref].type = DT_F64;
			}
			t = final_type(p, n);
			again |= t != n->type;
			n->type = t;
		}
	}
}

/* A carry that an index is made of may have become f64 after that. */
static enum err_code check_index_types(const struct program *p, const struct live *l, struct err *e)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int d = 0; l->node[i] && has_index_values(n) && d < p->tensors.v[n->ref].rank; d++)
			if (n->index[d].value)
				TRY(check_index_type(p, &p->tensors.v[n->ref], d, index_value(&n->index[d]), n->loc,
					e));
	}
	return OK;
}

static void drop_nodes(struct program *p, const struct live *l)
{
	for (int i = 0; i < p->tasks.n; i++) {
		struct task *t = &p->tasks.v[i];

		for (int j = 0; j < t->nodes.n; j++)
			if (!l->node[t->nodes.v[j]])
				p->nodes.v[t->nodes.v[j]].task = NONE;
		VEC_FILTER(&t->nodes, j, l->node[t->nodes.v[j]]);
	}
}

/* The first argument of the node that is held back; NONE. */
static int held_argument(const struct node *x, const bool *held)
{
	for (int i = 0; i < node_arity(x); i++)
		if (held[x->arg[i]])
			return x->arg[i];
	return NONE;
}

/* Append the node behind those of its task that it needs and that were held back. They may be a chain as long as the
 * program, so the nodes that still need others stand on `path`, not on the stack of calls. */
static void append_needed(const struct program *p, int *out, int *n, bool *held, int *path, int node)
{
	int depth = 0;

	path[depth++] = node;
	while (depth) {
		int last = path[depth - 1], needed = held_argument(&p->nodes.v[last], held);

		if (needed != NONE) {
			path[depth++] = needed;
			continue;
		}
		held[last] = false;
		out[(*n)++] = last;
		depth--;
	}
}

/* Is the node made of indices and constants alone, as masks are? held: the nodes of the task that are, and were not used yet. */
static bool is_of_indices(const struct program *p, const struct node *n, const bool *held)
{
	for (int i = 0; i < node_arity(n); i++)
		if (!held[n->arg[i]] && p->nodes.v[n->arg[i]].task != NONE)
			return false;
	return n->op == OP_INDEX || (op_kind(n->op) == OP_ELEMENTWISE && node_arity(n) > 0);
}

/* Within a task, compute what is made of indices alone right before it is first used, so that it takes no registers until then. */
static void sink_indices(struct program *p)
{
	bool *held = ARENA_ARRAY(&p->arena, p->nodes.n, bool);

	for (int t = 0; t < p->tasks.n; t++) {
		struct task *task = &p->tasks.v[t];
		int *out = ARENA_ARRAY(&p->arena, task->nodes.n, int), n = 0;
		int *path = ARENA_ARRAY(&p->arena, task->nodes.n, int);

		for (int i = 0; i < task->nodes.n; i++) {
			int node = task->nodes.v[i];

			if (is_of_indices(p, &p->nodes.v[node], held))
				held[node] = true;
			else
				append_needed(p, out, &n, held, path, node);
		}
		for (int i = 0; i < task->nodes.n; i++)		/* what other tasks use */
			if (held[task->nodes.v[i]])
				append_needed(p, out, &n, held, path, task->nodes.v[i]);
		memcpy(task->nodes.v, out, (size_t)n * sizeof(*out));
	}
}

/* Keep the items that still have work in them. */
static void drop_items(const struct program *p, struct item *v, int *n)
{
	int kept = 0;

	for (int i = 0; i < *n; i++)
		if (v[i].is_loop ? p->loops.v[v[i].id].body.n : p->tasks.v[v[i].id].nodes.n)
			v[kept++] = v[i];
	*n = kept;
}

/* What a size that is known at launch cannot be that of yet. Extents are found as for a tile of one element of each
 * axis: which axes are needed in full does not depend on it. */
static enum err_code check_any(struct program *p, struct err *e)
{
	struct tiling t = { 0 };
	struct extents x;

	for (int i = 0; i < p->axes.n; i++) {
		const struct axis *a = &p->axes.v[i];
		const struct axis *of = a->packs == NONE ? a : &p->axes.v[a->packs];

		if ((a->multiple || of->multiple) && a->packs != NONE)
			return err_set(e, ERR_INPUT, a->multiple ? a->loc : of->loc,
				"the size of axis '%s', whose elements are packed "
				"in words along '%s', cannot be known at launch only; bind a size", of->name, a->name);
		for (int phase = 0; phase < p->phases.n; phase++) {
			enum axis_role role = program_axis_role(p, phase, i);

			t.extent[i] = role == AXIS_GRID || role == AXIS_LOOP ? 1 : t.extent[i];
		}
	}
	for (int i = 0; i < p->axes.n; i++)	/* tiles do not end within a word */
		if (p->axes.v[i].packs != NONE)
			t.extent[i] = t.extent[p->axes.v[i].packs] = 0;
	return extents_infer(&p->arena, p, &t, &x, e);
}

enum err_code program_finish(struct program *p, struct err *e)
{
	struct live l = { 0 };
	struct arena_mark mark;
	enum err_code code;
	bool *length;

	TRY(check_ended(p, e));
	TRY(check_stores(p, e));
	TRY(check_phases(p, e));
	TRY(make_twins(p, e));		/* what this allocates stays */
	mark = arena_mark(&p->arena);
	l.length = length = ARENA_ARRAY(&p->arena, p->nodes.n, bool);
	l.node = ARENA_ARRAY(&p->arena, p->nodes.n, bool);
	l.carry = ARENA_ARRAY(&p->arena, p->carries.n, bool);
	mark_live(p, &l);
	mark_lengths(p, length);
	code = check_used(p, &l, e);
	if (!code) {
		widen_types(p);
		code = check_index_types(p, &l, e);
	}
	if (!code) {
		drop_nodes(p, &l);
		sink_indices(p);
		/* Loops after those inside them, which have greater ids. */
		for (int i = p->loops.n - 1; i >= 0; i--)
			drop_items(p, p->loops.v[i].body.v, &p->loops.v[i].body.n);
		for (int i = 0; i < p->phases.n; i++)
			drop_items(p, p->phases.v[i].body.v, &p->phases.v[i].body.n);
		find_index_ranges(p);
		p->cur_phase = p->cur_loop = p->cur_task = NONE;
		find_additions(p);
		code = check_bounds(p, e);
		if (!code && program_has_any(p))
			code = check_any(p, e);
	}
	arena_reset(&p->arena, mark);
	return code;
}
