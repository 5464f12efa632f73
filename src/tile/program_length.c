/* Lengths of loops: what the value of a length may be computed from. It is known where a run of the loop begins, to every
 * lane by itself, because it comes from inputs, or temporaries of earlier phases, at indices that all elements of a tile
 * share. */
#include "tile/coverage.h"
#include "tile/program_build.h"

/* How messages begin, and what they say of a value that has to be one for a tile: of a length, or of the steps that `when`
 * keeps, of which the length is 0 or 1. */
static const char *subject(const struct program *p)
{
	return p->loops.v[p->cur_loop].keeps_steps ? "what 'when' gives" : "the length of a loop";
}

static const char *only_one(const struct program *p)
{
	return p->loops.v[p->cur_loop].keeps_steps ? "a step is kept or left out in a tile as one" :
		"a loop has one length in a tile";
}

/* An operation as users write it. */
static const char *written(enum op op)
{
	return op == OP_AND ? "'&' or '%'" : op == OP_OR ? "'|'" : op == OP_SHR ? "'>>' or '//'" : op_name(op);
}

/* Has a tile one index of the axis where the loop at hand begins? */
static bool is_one_index(const struct program *p, int axis)
{
	return axis_is_batch_in(p, p->cur_phase, p->loops.v[p->cur_loop].parent, axis);
}

static enum err_code check_one_index(const struct program *p, const struct index_expr *x, struct srcloc loc, struct err *e)
{
	for (int i = 0; i < x->n; i++) {
		const char *name = p->axes.v[x->term[i].axis].name;

		if (!is_one_index(p, x->term[i].axis))
			return err_set(e, ERR_INPUT, loc, "%s depends on axis '%s', of which a tile has several indices, and %s; "
				"declare p:batch(%s)", subject(p), name, only_one(p), name);
	}
	return OK;
}

static enum err_code check_length_load(struct program *p, const struct node *n, struct srcloc loc, struct err *e)
{
	if (p->tensors.v[n->ref].by_address)
		return err_set(e, ERR_INPUT, loc,
			"loop: a length is not read from '%s', which is given by addresses; let another "
			"input have the lengths", p->tensors.v[n->ref].name);
	for (int d = 0; d < p->tensors.v[n->ref].rank; d++)
		TRY(check_one_index(p, &n->index[d], loc, e));
	if (p->tensors.v[n->ref].role != TENSOR_INPUT)
		return coverage_check_load(&p->arena, p, n, e);
	return OK;
}

/* Is the i32 node x >> k, as x // 2^k is, or x & k, as x % 2^k is? */
static bool is_floor(const struct program *p, const struct node *n)
{
	const struct node *by = op_arity(n->op) == 2 ? node_at(p, n->arg[1]) : NULL;

	return by && by->op == OP_CONST && (n->op == OP_SHR ? by->k >= 0 && by->k < 32 : n->op == OP_AND && by->k >= 0);
}

/* Recursion is as deep as expressions are, and LENGTH_DEPTH at most. */
static enum err_code check_length_node(struct program *p, int node, int depth, struct srcloc loc, struct err *e)
{
	const struct node *n = node_at(p, node);

	if (n->naxes)
		return err_set(e, ERR_INPUT, loc, "%s is %s, which has an element for each %s; %s: declare p:batch(%s)",
			subject(p), value_phrase(p, node).s, p->axes.v[n->axis[0]].name, only_one(p), p->axes.v[n->axis[0]].name);
	if (n->type != DT_I32 && !(depth && n->type == DT_BOOL))
		return err_set(e, ERR_INPUT, loc, "%s, of which %s is made, is %s; %s: keep it as i32 in the tensor",
			value_phrase(p, node).s, subject(p), dtype_name(n->type), p->loops.v[p->cur_loop].keeps_steps ?
			"it is made of i32 and bool values" : "a length is i32");
	if (depth == LENGTH_DEPTH)
		return err_set(e, ERR_LIMIT, loc, "%s is an expression of more than %d operations one behind the other; make it "
			"an input, or store it in an earlier phase", subject(p), LENGTH_DEPTH);
	switch ((int)n->op) {
	case OP_CONST:
		return OK;
	case OP_INDEX:
		return check_one_index(p, &(struct index_expr){ .n = 1, .term[0].axis = n->ref }, loc, e);
	case OP_LOAD:
		TRY(check_length_load(p, n, loc, e));
		break;
	case OP_ADD: case OP_SUB: case OP_NEG: case OP_MUL: case OP_MIN: case OP_MAX:
	case OP_WHERE: case OP_LT: case OP_LE: case OP_EQ: case OP_NE:
		break;
	case OP_AND: case OP_OR: case OP_NOT: case OP_SHR:
		if (n->type == DT_BOOL || is_floor(p, n))
			break;
		/* fallthrough */
	default:
		return err_set(e, ERR_INPUT, loc, "%s is made of %s in '%s'; it may be made of elements of tensors, constants and "
			"indices by + - * min max, // and %% by powers of two, comparisons and where: make it an input, or store it in an earlier phase",
			subject(p), written(n->op), p->tasks.v[n->task].name);
	}
	for (int i = 0; i < node_arity(n); i++)
		TRY(check_length_node(p, n->arg[i], depth + 1, loc, e));
	return OK;
}

enum err_code program_loop_length(struct program *p, const struct index_expr *length, int64_t typical,
				  struct srcloc loc, struct err *e)
{
	struct loop *l;

	if (p->cur_loop == NONE || p->loops.v[p->cur_loop].body.n)
		BUG("a length is given where no loop has just begun");
	l = &p->loops.v[p->cur_loop];
	if (l->naxes > 1)
		return err_set(e, ERR_INPUT, loc, "'length' needs a loop over one axis; nest a loop for each of the %d axes",
			l->naxes);
	if (index_value(length) == NONE)
		return err_set(e, ERR_INPUT, loc, "'length' of the loop over '%s' is no value that is loaded; for a bound "
			"that follows from the tile, write upto", p->axes.v[l->axis[0]].name);
	TRY(check_value(p, index_value(length), loc, e));
	TRY(check_length_node(p, index_value(length), 0, loc, e));
	TRY(check_one_index(p, length, loc, e));
	TRY(check_index(p, length, loc, e));
	if (typical < 0)
		return err_set(e, ERR_INPUT, loc, "'typical' is %lld; a length that is typical is at least 1",
			(long long)typical);
	l->has_length = true;
	l->length = *length;
	if (!l->keeps_steps)
		l->typical = typical;
	return OK;
}

int64_t program_steps_around(const struct program *p, const struct loop *l)
{
	const struct loop *outer = &p->loops.v[l->parent];
	int64_t n = 1;

	for (int i = 0; i < outer->naxes; i++)
		n *= p->axes.v[outer->axis[i]].size;
	return n;
}

enum err_code program_loop_keeps_steps(struct program *p, int64_t typical, struct srcloc loc, struct err *e)
{
	struct loop *l = &p->loops.v[p->cur_loop];
	int64_t steps = program_steps_around(p, l);

	if (typical < 0 || typical > steps)
		return err_set(e, ERR_INPUT, loc,
			"'typical' is %lld of the steps of the loop over '%s', which has %lld",
			(long long)typical, p->axes.v[p->loops.v[l->parent].axis[0]].name, (long long)steps);
	l->keeps_steps = true;
	l->typical = typical;
	return OK;
}

static void mark_node(const struct program *p, int node, bool *mark)
{
	mark[node] = true;
	for (int i = 0; i < node_arity(&p->nodes.v[node]); i++)
		mark_node(p, p->nodes.v[node].arg[i], mark);
}

void mark_lengths(const struct program *p, bool *mark)
{
	for (int i = 0; i < p->loops.n; i++)
		if (p->loops.v[i].has_length)
			mark_node(p, index_value(&p->loops.v[i].length), mark);
}
