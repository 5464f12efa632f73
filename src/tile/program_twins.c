/* Axes that some phases have as batch, and others tile.
 *
 * A tile has one index of a batch axis, and an axis has one tile extent in all of a program. So where a phase has an axis as batch, or
 * a loop of it does, and another phase tiles it, the first gets an axis of its own: a twin of the same name and size. Otherwise the
 * other phase would have tiles of one index, and products of one row. */
#include "tile/meaning.h"
#include "tile/program_build.h"

static bool is_batch_in_phase(const struct program *p, int phase, int axis)
{
	for (int i = 0; i < p->loops.n; i++) {
		const struct loop *l = &p->loops.v[i];

		if (l->phase == phase && l->batch && ints_hold(l->axis, l->naxes, axis))
			return true;
	}
	return axis_is_batch(p, phase, axis);
}

/* Do some phases have the axis as batch, and others tile it? */
static bool needs_twin(const struct program *p, int axis)
{
	bool tiled = false;

	/* kernels are given the size of an axis that is known at launch by its number */
	if (!p->axes.v[axis].single || p->axes.v[axis].multiple || is_packed(p, axis))
		return false;
	for (int i = 0; i < p->phases.n; i++) {
		enum axis_role role = program_axis_role(p, i, axis);

		tiled |= !is_batch_in_phase(p, i, axis) && (role == AXIS_GRID || role == AXIS_LOOP);
	}
	return tiled;
}

static void replace_axis(int *axes, int n, int axis, int twin)
{
	for (int i = 0; i < n; i++)
		axes[i] = axes[i] == axis ? twin : axes[i];
}

static void replace_in_index(struct index_expr *x, int axis, int twin)
{
	for (int i = 0; i < x->n; i++)
		x->term[i].axis = x->term[i].axis == axis ? twin : x->term[i].axis;
}

static void replace_in_node(struct program *p, struct node *n, int axis, int twin)
{
	int nindex = n->op == OP_LOAD || n->op == OP_STORE ? p->tensors.v[n->ref].rank : n->op == OP_AT;
	enum op_class class = op_class(n->op);

	replace_axis(n->axis, n->naxes, axis, twin);
	if (n->op == OP_INDEX || n->op == OP_AT || class == CLASS_REDUCE || class == CLASS_SCAN)
		replace_axis(&n->ref, 1, axis, twin);
	if (nindex && n->index) {
		struct index_expr *x = arena_copy(&p->arena, n->index, (size_t)nindex, sizeof(*x));

		for (int d = 0; d < nindex; d++)
			replace_in_index(&x[d], axis, twin);
		n->index = x;
	}
}

static void replace_in_phase(struct program *p, int phase, int axis, int twin)
{
	struct phase *ph = &p->phases.v[phase];

	replace_axis(ph->batch, ph->nbatch, axis, twin);
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].task != NONE && p->tasks.v[p->nodes.v[i].task].phase == phase)
			replace_in_node(p, &p->nodes.v[i], axis, twin);
	for (int i = 0; i < p->carries.n; i++)
		if (p->carries.v[i].phase == phase)
			replace_axis(p->carries.v[i].axis, p->carries.v[i].naxes, axis, twin);
	for (int i = 0; i < p->loops.n; i++) {
		struct loop *l = &p->loops.v[i];

		if (l->phase != phase)
			continue;
		replace_axis(l->axis, l->naxes, axis, twin);
		replace_in_index(&l->from, axis, twin);
		replace_in_index(&l->upto, axis, twin);
		replace_in_index(&l->length, axis, twin);
	}
}

enum err_code make_twins(struct program *p, struct err *e)
{
	for (int a = 0, n = p->axes.n; a < n; a++) {
		struct axis twin = p->axes.v[a];

		if (!needs_twin(p, a))
			continue;
		if (p->axes.n == AXES_MAX)
			return err_set(e, ERR_LIMIT, twin.loc, "axis '%s' is batch in some phases and tiled in others, which takes "
				"two axes, one too many; a program has at most %d", twin.name, AXES_MAX);
		twin.is_twin = true;
		twin.twin_of = a;
		VEC_PUSH(&p->arena, &p->axes, twin);
		for (int i = 0; i < p->phases.n; i++)
			if (is_batch_in_phase(p, i, a))
				replace_in_phase(p, i, a, p->axes.n - 1);
		p->axes.v[a].single = false;
	}
	return OK;
}

enum err_code program_check_meaning(struct program *p, struct err *e)
{
	enum err_code code = meaning_check(&p->arena, p, e);
	bool any = false;
	struct err again;

	/* one axis alone, then all */
	for (int a = 0; a < p->axes.n && code == ERR_INPUT; a++) {
		if (!p->axes.v[a].is_twin)
			continue;
		any = true;
		p->axes.v[p->axes.v[a].twin_of].single = true;
		code = meaning_check(&p->arena, p, &again);
		p->axes.v[p->axes.v[a].twin_of].single = !code;
	}
	if (code != ERR_INPUT || !any)
		return code;
	for (int a = 0; a < p->axes.n; a++)
		if (p->axes.v[a].is_twin)
			p->axes.v[p->axes.v[a].twin_of].single = true;
	return meaning_check(&p->arena, p, &again);
}
