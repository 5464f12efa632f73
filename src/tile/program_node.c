#include "tile/program_build.h"

#include <stdio.h>
#include <string.h>

/* The longest axis with indices of type i32. */
static const int64_t INDEX_AXIS_MAX = (int64_t)1 << 31;

struct node blank_node(enum op op, enum dtype type, struct srcloc loc)
{
	return (struct node){ .op = op, .type = type, .arg = { NONE, NONE, NONE }, .ref = NONE,
		.task = NONE, .loc = loc };
}

bool same_axes(int na, const int *a, int nb, const int *b)
{
	for (int i = 0; i < na; i++)
		if (!ints_hold(b, nb, a[i]))
			return false;
	return na == nb;
}

enum err_code check_value(const struct program *p, int value, struct srcloc loc, struct err *e)
{
	const struct node *n = node_at(p, value);
	struct phrase what = value_phrase(p, value);
	const struct task *t;

	if (n->op == OP_SET || n->op == OP_STORE)
		BUG("node %d has no value", value);
	if (n->task == NONE)
		return OK;
	if (node_adds_to_carry(n))
		return err_set(e, ERR_INPUT, loc, "%s was added to carry '%s' and has no value of its own any more; "
			"read the carry, or use the product before it is added", what.s, p->carries.v[n->ref].name);
	t = &p->tasks.v[n->task];
	if (t->phase != p->cur_phase)
		return err_set(e, ERR_INPUT, loc, "%s was made in phase '%s' and ends with it; store it to a temporary "
			"there and load that here", what.s, p->phases.v[t->phase].name);
	return program_loop_within(p, p->cur_loop, t->loop) ? OK : err_set(e, ERR_INPUT, loc, "%s was made inside %s "
		"and cannot be used outside it; keep it in a carry", what.s, loop_phrase(p, t->loop).s);
}

/* A load, product or store forms a task. */
static int build_alone(struct program *p, const char *name, enum task_kind kind, const struct node *n)
{
	int id;

	p->cur_task = build_task(p, name, kind, n->loc);
	id = build_node(p, n);
	p->cur_task = NONE;
	return id;
}

static void take_access(struct program *p, const struct tensor *t, const struct access *x, struct node *n)
{
	n->index = arena_copy(&p->arena, x->index, (size_t)t->rank, sizeof(*x->index));
	n->naxes = x->naxes;
	memcpy(n->axis, x->axis, sizeof(n->axis));
}

/* The first task with a load or store of the tensor in phases [first, last]; or NULL. */
static const struct task *find_access(const struct program *p, enum op op, int tensor, int first, int last)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		const struct task *t = n->task == NONE ? NULL : &p->tasks.v[n->task];

		if (n->op == op && n->ref == tensor && t && t->phase >= first && t->phase <= last)
			return t;
	}
	return NULL;
}

static enum err_code check_readable(const struct program *p, int tensor, struct srcloc loc, struct err *e)
{
	const struct tensor *t = tensor_at(p, tensor);
	const char *role = t->role == TENSOR_TEMP ? "temporary" : "output";
	int phase = p->cur_phase;

	if (t->role == TENSOR_INPUT)
		return OK;
	if (phase != NONE && find_access(p, OP_STORE, tensor, phase, phase))
		return err_set(e, ERR_INPUT, loc, "%s '%s' is stored in this phase, whose "
			"tiles run in any order; load it in a later phase", role, t->name);
	if (phase == NONE || !find_access(p, OP_STORE, tensor, 0, phase))
		return err_set(e, ERR_INPUT, loc, "%s '%s' is loaded before any phase "
			"stores it; store it in an earlier phase", role, t->name);
	return OK;
}

/* The index of the word that begins at an index of elements: an axis, whose words there are, plus multiples of the
 * elements of a word. */
static enum err_code index_word(struct program *p, const struct tensor *t, const struct index_expr *x,
				struct srcloc loc, struct index_expr *out, struct err *e)
{
	int per = p->axes.v[t->dim[t->rank - 1]].per, along = NONE;
	bool fits = !x->value && x->k % per == 0;

	*out = *x;
	out->k = x->k / per;
	for (int i = 0; i < x->n; i++) {
		struct index_term *term = &out->term[i];

		if (term->coef % per == 0) {
			term->coef /= per;
			continue;
		}
		fits &= along == NONE && term->coef == 1 && term->div == 1 && !term->mod;
		along = term->axis;
		fits &= p->axes.v[along].size % per == 0 && p->axes.v[along].packs == NONE;
		if (fits)
			TRY(find_words(p, along, per, loc, &term->axis, e));
	}
	if (fits && along != NONE)
		return OK;
	return err_set(e, ERR_INPUT, loc, "the last index of '%s' must be an axis whose size is a multiple of %d, plus "
		"multiples of %d, because its %s are loaded as words of %d", t->name, per, per,
			dtype_name(t->element), per);
}

enum err_code program_load(struct program *p, const char *name, int tensor, const struct index_expr *index,
			   struct srcloc loc, int *out, struct err *e)
{
	const struct tensor *t = tensor_at(p, tensor);
	struct node n = blank_node(OP_LOAD, t->type, loc);
	struct index_expr of_words[RANK_MAX];
	struct access x;
	char stem[80];

	snprintf(stem, sizeof(stem), "load_%s", t->name);
	TRY(check_own_task(p, "load", name, stem, loc, e));
	TRY(check_readable(p, tensor, loc, e));
	if (t->unpacked != NONE && index) {
		int last = t->rank - 1;

		memcpy(of_words, index, (size_t)last * sizeof(*index));
		TRY(check_index(p, &index[last], loc, e));
		TRY(index_word(p, t, &index[last], loc, &of_words[last], e));
		index = of_words;
	}
	TRY(check_access(p, t, index, loc, &x, e));
	n.ref = tensor;
	take_access(p, t, &x, &n);
	memcpy(n.arg, x.value, (size_t)x.nvalues * sizeof(*x.value));
	*out = build_alone(p, build_task_name(p, name, stem, false), TASK_LOAD, &n);
	return OK;
}

bool program_load_unpacks(const struct program *p, int load, int *from, int *to, enum dtype *type)
{
	const struct node *n = &p->nodes.v[load];
	const struct tensor *t = n->op == OP_LOAD ? &p->tensors.v[n->ref] : NULL;
	const struct index_expr *last;

	if (!t || t->unpacked == NONE)
		return false;
	last = &n->index[t->rank - 1];
	for (int i = 0; i < last->n; i++)
		if (p->axes.v[last->term[i].axis].packs != NONE)
			*from = last->term[i].axis;
	*to = p->axes.v[*from].packs;
	*type = t->element;
	return true;
}

static enum err_code check_writable(const struct program *p, int tensor, int value, struct srcloc loc, struct err *e)
{
	const struct tensor *t = tensor_at(p, tensor);
	enum dtype type = node_at(p, value)->type;
	bool fits = dtype_has_mantissa(t->type) || (t->type == DT_BOOL || t->type == DT_E8M0 ? type == t->type :
		!dtype_is_float(type));
	const struct task *load;

	if (t->role == TENSOR_INPUT)
		return err_set(e, ERR_INPUT, loc, "'%s' is an input and cannot be stored; "
			"declare an output or a temporary", t->name);
	load = p->cur_phase == NONE ? NULL : find_access(p, OP_LOAD, tensor, p->cur_phase, p->cur_phase);
	if (load)
		return err_set(e, ERR_INPUT, loc, "temporary '%s' is loaded in this phase by '%s', and its tiles run "
			"in any order; store it in an earlier phase", t->name, load->name);
	if (!fits)
		return err_set(e, ERR_INPUT, loc, "'%s' holds %s and the value is %s; cast it "
			"first", t->name, dtype_name(t->type), dtype_name(type));
	return OK;
}

/* Is the tensor stored in this phase, or added to? */
static bool is_stored_here(const struct program *p, int tensor, bool adds)
{
	for (int i = 0; i < p->nodes.n && p->cur_phase != NONE; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op == OP_STORE && n->ref == tensor && n->adds == adds && p->tasks.v[n->task].phase == p->cur_phase)
			return true;
	}
	return false;
}

/* The tiles of a phase run in any order, so no store may come between additions. */
static enum err_code check_addable(const struct program *p, int tensor, struct srcloc loc, struct err *e)
{
	const struct tensor *t = tensor_at(p, tensor);

	if (t->type != DT_F32 && t->type != DT_I32)
		return err_set(e, ERR_INPUT, loc, "'%s' holds %s, and only f32 and i32 are added to in memory; declare it "
			"f32, and cast it in a later phase", t->name, dtype_name(t->type));
	if (p->cur_phase == NONE || p->cur_phase == 0 || !find_access(p, OP_STORE, tensor, 0, p->cur_phase - 1))
		return err_set(e, ERR_INPUT, loc, "'%s' is added to before any phase stores it; store what it begins with, "
			"such as zeros, in an earlier phase", t->name);
	return OK;
}

/* Constants and indices belong to no task, but what is stored must have been made by one: adds 0 to such a value. */
static enum err_code make_in_task(struct program *p, int *value, struct srcloc loc, struct err *e)
{
	enum op op = p->nodes.v[*value].op;
	int args[3] = { *value, NONE, NONE };

	if (op != OP_CONST && op != OP_INDEX)
		return OK;
	TRY(program_const(p, 0, loc, &args[1], e));
	return program_op(p, OP_ADD, args, loc, value, e);
}

static enum err_code build_store(struct program *p, const char *name, int tensor, const struct index_expr *index,
				 int value, bool adds, struct srcloc loc, struct err *e)
{
	const struct tensor *t = tensor_at(p, tensor);
	const struct node *v = node_at(p, value);
	struct node n = blank_node(OP_STORE, t->type, loc);
	struct access x;
	char stem[80];

	snprintf(stem, sizeof(stem), "%s_%s", adds ? "add" : "store", t->name);
	TRY(check_own_task(p, adds ? "add" : "store", name, stem, loc, e));
	TRY(check_value(p, value, loc, e));
	TRY(check_writable(p, tensor, value, loc, e));
	if (is_stored_here(p, tensor, !adds))
		return err_set(e, ERR_INPUT, loc, "'%s' is stored and added to in one phase, whose tiles run in any order; "
			"store it in an earlier phase", t->name);
	if (adds)
		TRY(check_addable(p, tensor, loc, e));
	TRY(check_access(p, t, index, loc, &x, e));
	if (x.nvalues > LEN(n.arg) - 1)
		return err_set(e, ERR_LIMIT, loc, "'%s' is %s at indices of more than %d values; let one value give "
			"several of them, or reshape the tensor", t->name, adds ? "added to" : "stored", LEN(n.arg) - 1);
	if (!same_axes(v->naxes, v->axis, x.naxes, x.axis))
		return err_set(e, ERR_INPUT, loc, "a value over %s cannot be %s to '%s', which is indexed by %s; "
			"reduce or broadcast it to the same axes", axes_phrase(p, v->naxes, v->axis).s, adds ? "added" : "stored",
			t->name, axes_phrase(p, x.naxes, x.axis).s);
	if (!adds && !x.nvalues)
		TRY(check_apart(p, t, &x, loc, e));
	for (int i = 0; i < x.naxes; i++)
		TRY(check_not_words(p, x.axis[i], "stored over", loc, e));
	TRY(make_in_task(p, &value, loc, e));
	n.ref = tensor;
	n.arg[0] = value;
	n.adds = adds;
	memcpy(n.arg + 1, x.value, (size_t)x.nvalues * sizeof(*x.value));
	take_access(p, t, &x, &n);
	build_alone(p, build_task_name(p, name, stem, false), TASK_STORE, &n);
	return OK;
}

enum err_code program_store(struct program *p, const char *name, int tensor, const struct index_expr *index, int value,
			    struct srcloc loc, struct err *e)
{
	return build_store(p, name, tensor, index, value, false, loc, e);
}

enum err_code program_add(struct program *p, const char *name, int tensor, const struct index_expr *index, int value,
			  struct srcloc loc, struct err *e)
{
	return build_store(p, name, tensor, index, value, true, loc, e);
}

/* The axes of a product: those of one operand only. */
static enum err_code check_mma_axes(const struct program *p, const char *what, int a, int b,
				    struct srcloc loc, struct node *n, struct err *e)
{
	const struct node *x = node_at(p, a), *y = node_at(p, b);
	struct phrase xs = axes_phrase(p, x->naxes, x->axis), ys = axes_phrase(p, y->naxes, y->axis);
	int axis[2 * RANK_MAX], count = 0, total = x->naxes + y->naxes;

	for (int i = 0; i < x->naxes; i++)
		if (!ints_hold(y->axis, y->naxes, x->axis[i]))
			axis[count++] = x->axis[i];
	for (int i = 0; i < y->naxes; i++)
		if (!ints_hold(x->axis, x->naxes, y->axis[i]))
			axis[count++] = y->axis[i];
	if (count == total)
		return err_set(e, ERR_INPUT, loc, "%s: its operands share no axis; one has %s, "
			"the other %s", what, xs.s, ys.s);
	if (count > RANK_MAX)
		return err_set(e, ERR_LIMIT, loc, "%s: its result would have %d axes, at most %d are possible; one "
			"operand has %s, the other %s", what, count, RANK_MAX, xs.s, ys.s);
	n->naxes = count;
	memcpy(n->axis, axis, (size_t)count * sizeof(*axis));
	return OK;
}

/* Does a product of the value and another expand the value itself? Instructions do that along what they contract. */
static bool is_expanded_by_product(const struct program *p, int value, int other)
{
	const struct node *n = &p->nodes.v[value];

	return n->op == OP_EXPAND && !p->tasks.v[n->task].named && node_has_axis(&p->nodes.v[other], n->ref);
}

enum err_code program_mma(struct program *p, const char *name, int a, int b, struct srcloc loc, int *out, struct err *e)
{
	enum dtype x = node_at(p, a)->type, y = node_at(p, b)->type;
	enum dtype type = !dtype_is_float(x) && !dtype_is_float(y) ? DT_I32 :
		x == DT_F64 || y == DT_F64 ? DT_F64 : DT_F32;
	struct node n = blank_node(OP_MMA, type, loc);
	struct phrase what = { "mma" };
	struct node expanded;

	if (name)
		snprintf(what.s, sizeof(what.s), "mma '%.80s'", name);
	TRY(check_own_task(p, "mma", name, "mma", loc, e));
	TRY(check_value(p, a, loc, e));
	TRY(check_value(p, b, loc, e));
	if (x == DT_BOOL || y == DT_BOOL)
		return err_set(e, ERR_INPUT, loc, "%s: an operand is bool; cast it first", what.s);
	if (is_expanded_by_product(p, b, a) && !is_expanded_by_product(p, a, b)) {
		int first = b;

		b = a;
		a = first;
	}
	TRY(check_mma_axes(p, what.s, a, b, loc, &n, e));
	n.arg[0] = a;
	n.arg[1] = b;
	p->cur_task = build_task(p, build_task_name(p, name, "mma", true), TASK_MMA, loc);
	if (is_expanded_by_product(p, a, b)) {
		expanded = p->nodes.v[a];
		n.arg[0] = build_node(p, &expanded);
	}
	*out = build_node(p, &n);
	p->cur_task = NONE;
	return OK;
}

enum err_code program_const(struct program *p, double k, struct srcloc loc, int *out, struct err *e)
{
	struct node n = blank_node(OP_CONST, is_i32_value(k) ? DT_I32 : DT_F32, loc);

	(void)e;
	n.k = k;
	*out = p->nodes.n;
	VEC_PUSH(&p->arena, &p->nodes, n);
	return OK;
}

enum err_code program_index(struct program *p, int axis, struct srcloc loc, int *out, struct err *e)
{
	const struct axis *a = axis_at(p, axis);
	struct node n = blank_node(OP_INDEX, DT_I32, loc);

	TRY(check_in_phase(p, "an index", loc, e));
	if (a->size > INDEX_AXIS_MAX)
		return err_set(e, ERR_LIMIT, loc, "axis '%s' has %lld elements, too many for an index of type i32; at "
			"most 2^31 are possible", a->name, (long long)a->size);
	n.ref = axis;
	if (!axis_is_batch_here(p, axis))
		n.axis[n.naxes++] = axis;
	*out = build_node(p, &n);
	return OK;
}

/* The union of the arguments' axes. The widest argument gives the order, so that
 * most values of a program lie the same way. */
static enum err_code check_union(const struct program *p, struct node *n, struct err *e)
{
	int arity = op_arity(n->op), widest = 0;

	for (int i = 1; i < arity; i++)
		if (p->nodes.v[n->arg[i]].naxes > p->nodes.v[n->arg[widest]].naxes)
			widest = i;
	for (int i = 0; i < arity; i++) {
		/* The widest, then the others in order. */
		int which = i == 0 ? widest : i <= widest ? i - 1 : i;
		const struct node *a = &p->nodes.v[n->arg[which]];

		for (int j = 0; j < a->naxes; j++) {
			if (ints_hold(n->axis, n->naxes, a->axis[j]))
				continue;
			if (n->naxes == RANK_MAX)
				return err_set(e, ERR_LIMIT, n->loc, "%s: the result would have more than %d axes",
					op_name(n->op), RANK_MAX);
			n->axis[n->naxes++] = a->axis[j];
		}
	}
	return OK;
}

/* The f32 carry among the arguments whose type was not declared; NULL. */
static const struct carry *untyped_carry(const struct program *p, const int *args, int n)
{
	for (int i = 0; i < n; i++) {
		const struct node *x = &p->nodes.v[args[i]];

		if (x->op == OP_GET && x->type == DT_F32 && !p->carries.v[x->ref].is_typed)
			return &p->carries.v[x->ref];
	}
	return NULL;
}

static enum err_code wrong_types(const struct program *p, enum op op, const int *args, const enum dtype *t,
	struct srcloc loc, struct err *e)
{
	const struct carry *c = untyped_carry(p, args, op_arity(op));

	if (op == OP_WHERE)
		return err_set(e, ERR_INPUT, loc, "where needs a bool condition, and this one is "
			"%s; compare it with something", dtype_name(t[0]));
	if (op_arity(op) == 1)
		return err_set(e, ERR_INPUT, loc, "%s needs an i32%s value, and this one is %s; cast it to i32",
			op_name(op), op == OP_NOT ? " or bool" : "", dtype_name(t[0]));
	return err_set(e, ERR_INPUT, loc, "%s needs two values of type i32%s, and these are %s and %s; cast them to "
		"i32%s%s%s", op_name(op), op == OP_SHL || op == OP_SHR || op == OP_LSHR ? "" : " or bool",
		dtype_name(t[0]), dtype_name(t[1]), c ? ", or declare carry '" : "", c ? c->name : "",
		c ? "' with \"i32\" behind the initial number" : "");
}

enum err_code program_op(struct program *p, enum op op, const int *args, struct srcloc loc, int *out, struct err *e)
{
	struct node n = blank_node(op, DT_F32, loc);
	enum dtype types[3] = { DT_F32, DT_F32, DT_F32 };

	if (op_kind(op) != OP_ELEMENTWISE)
		BUG("program_op does not make operation %d", (int)op);
	TRY(check_in_phase(p, "an operation", loc, e));
	for (int i = 0; i < op_arity(op); i++) {
		TRY(check_value(p, args[i], loc, e));
		n.arg[i] = args[i];
		types[i] = p->nodes.v[args[i]].type;
	}
	if (!op_result_type(op, types, &n.type))
		return wrong_types(p, op, args, types, loc, e);
	TRY(check_union(p, &n, e));
	*out = build_node(p, &n);
	return OK;
}

/* A node with the argument's axes. */
static struct node unary(const struct program *p, enum op op, int value, enum dtype type, struct srcloc loc)
{
	const struct node *v = node_at(p, value);
	struct node n = blank_node(op, type, loc);

	n.arg[0] = value;
	n.naxes = v->naxes;
	memcpy(n.axis, v->axis, sizeof(n.axis));
	return n;
}

enum err_code program_cast(struct program *p, int value, enum dtype type, struct srcloc loc, int *out, struct err *e)
{
	struct node n = unary(p, OP_CAST, value, type, loc);

	TRY(check_in_phase(p, "a cast", loc, e));
	TRY(check_value(p, value, loc, e));
	*out = build_node(p, &n);
	return OK;
}

static enum err_code check_has_axis(const struct program *p, int value, int axis, const char *what,
				    struct srcloc loc, struct err *e)
{
	const struct node *v = node_at(p, value);
	const char *name = axis_at(p, axis)->name;

	if (ints_hold(v->axis, v->naxes, axis))
		return OK;
	if (axis_is_batch_here(p, axis))
		return err_set(e, ERR_INPUT, loc, "%s over '%s': a tile has one value of a batch "
			"axis; do not declare '%s' batch, or leave this out", what, name, name);
	return err_set(e, ERR_INPUT, loc, "%s over '%s': the value has axes %s; name one of them", what, name,
		axes_phrase(p, v->naxes, v->axis).s);
}

enum err_code program_reduce(struct program *p, enum op op, int value, int axis,
			     struct srcloc loc, int *out, struct err *e)
{
	struct node n = unary(p, op, value, DT_F32, loc);

	if (op_kind(op) != OP_REDUCTION)
		BUG("program_reduce does not make operation %d", (int)op);
	TRY(check_in_phase(p, "a reduction", loc, e));
	TRY(check_value(p, value, loc, e));
	TRY(check_has_axis(p, value, axis, op_name(op), loc, e));
	op_result_type(op, &p->nodes.v[value].type, &n.type);
	n.ref = axis;
	if (op_class(op) == CLASS_REDUCE) {
		n.naxes = 0;
		for (int i = 0; i < p->nodes.v[value].naxes; i++)
			if (p->nodes.v[value].axis[i] != axis)
				n.axis[n.naxes++] = p->nodes.v[value].axis[i];
	}
	*out = build_node(p, &n);
	return OK;
}

/* Is the axis tiled in a way of its own anywhere: batch, looped over or stored? */
static bool is_tiled_itself(const struct program *p, int axis)
{
	if (p->axes.v[axis].single)
		return true;
	for (int i = 0; i < p->loops.n; i++)
		if (ints_hold(p->loops.v[i].axis, p->loops.v[i].naxes, axis))
			return true;
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_STORE && node_has_axis(&p->nodes.v[i], axis))
			return true;
	return false;
}

/* Is a value read at other indices of the axis, or at indices that it makes? */
static bool is_read_at(const struct program *p, int axis)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_AT && (p->nodes.v[i].ref == axis || index_uses(&p->nodes.v[i].index[0], axis)))
			return true;
	return false;
}

/* Where the axis is batch: "phase 'main'", "the loop over {n} at line 12". */
static struct phrase batch_phrase(const struct program *p, int axis)
{
	struct phrase x = { "" };

	for (int i = 0; i < p->phases.n; i++)
		if (axis_is_batch(p, i, axis))
			snprintf(x.s, sizeof(x.s), "phase '%.150s'", p->phases.v[i].name);
	for (int i = 0; i < p->loops.n; i++)
		if (p->loops.v[i].batch && ints_hold(p->loops.v[i].axis, p->loops.v[i].naxes, axis))
			return loop_phrase(p, i);
	return x;
}

/* May `from` become the axis of words of `to`, for the operation `what`? */
static enum err_code check_packs(const struct program *p, const char *what, int from, int to, int per, struct srcloc loc,
	struct err *e)
{
	const struct axis *f = axis_at(p, from), *t = axis_at(p, to);

	if (f->packs == to && f->per == per)
		return OK;
	if (f->packs != NONE)
		return err_set(e, ERR_INPUT, loc, "%s: axis '%s' already counts words of %d '%s'; use an axis of "
			"its own for each packing", what, f->name, f->per, p->axes.v[f->packs].name);
	if (is_tiled_itself(p, from))
		return err_set(e, ERR_INPUT, loc, "%s: the words along '%s' follow the tiles of '%s', so '%s' "
			"cannot be batch, stored or looped over; use '%s' there", what, f->name, t->name, f->name, t->name);
	if (is_read_at(p, from))
		return err_set(e, ERR_INPUT, loc, "%s: a value is read at other indices along '%s', so '%s' cannot count words; "
			"use an axis of its own for the words", what, f->name, f->name);
	if (t->packs != NONE || is_packed(p, from))
		return err_set(e, ERR_INPUT, loc, "%s: '%s' to '%s' would be words of words; "
			"%s to an axis that counts none", what, f->name, t->name, what);
	return !t->single ? OK : err_set(e, ERR_INPUT, loc, "%s: axis '%s' is batch in %s, but words hold several "
		"of it; do not declare it batch", what, t->name, batch_phrase(p, to).s);
}

static enum err_code check_unpack(const struct program *p, int value, int from, int to,
				  enum dtype type, struct srcloc loc, struct err *e)
{
	const struct node *v = node_at(p, value);
	const struct axis *f = axis_at(p, from), *t = axis_at(p, to);
	int bits = dtype_bits(type), per = 32 / bits;

	if (v->type != DT_I32)
		return err_set(e, ERR_INPUT, loc, "unpack takes i32 words, and this value is %s; "
			"load the packed tensor as i32", dtype_name(v->type));
	if (bits > 16 || type == DT_BOOL)
		return err_set(e, ERR_INPUT, loc, "unpack: a word of 32 bits cannot hold several "
			"%s; use a type of 4, 8 or 16 bits", dtype_name(type));
	TRY(check_has_axis(p, value, from, "unpack", loc, e));
	if (ints_hold(v->axis, v->naxes, to))
		return err_set(e, ERR_INPUT, loc,
			"unpack: the value has axis '%s' already; unpack to another one", t->name);
	if (t->size > f->size * per)
		return err_set(e, ERR_INPUT, loc, "unpack: %lld words along '%s' hold %lld %s, not the %lld of '%s'; "
			"make '%s' at least %lld long", (long long)f->size, f->name, (long long)f->size * per,
			dtype_name(type), (long long)t->size, t->name, f->name, (long long)ceil_div(t->size, per));
	return check_packs(p, "unpack", from, to, per, loc, e);
}

enum err_code program_unpack(struct program *p, int value, int from, int to, enum dtype type,
			     struct srcloc loc, int *out, struct err *e)
{
	struct node n = unary(p, OP_UNPACK, value, type, loc);

	TRY(check_in_phase(p, "an unpacking", loc, e));
	TRY(check_value(p, value, loc, e));
	TRY(check_unpack(p, value, from, to, type, loc, e));
	for (int i = 0; i < n.naxes; i++)
		if (n.axis[i] == from)
			n.axis[i] = to;
	n.ref = to;
	p->axes.v[from].packs = to;
	p->axes.v[from].per = 32 / dtype_bits(type);
	*out = build_node(p, &n);
	return OK;
}

/* The one axis that a value has and another has not. */
static int axis_apart(const struct node *a, const struct node *b)
{
	int axis = NONE, apart = 0;

	for (int i = 0; i < a->naxes; i++)
		if (!node_has_axis(b, a->axis[i])) {
			axis = a->axis[i];
			apart++;
		}
	return apart == 1 ? axis : NONE;
}

/* Has axis `from` just the elements that stand for `per` of `to` each? */
static enum err_code check_expanded(const struct program *p, int from, int to, int per, const char *has,
	struct srcloc loc, struct err *e)
{
	const struct axis *f = axis_at(p, from), *t = axis_at(p, to);

	if (f->size * per != t->size)
		return err_set(e, ERR_INPUT, loc, "expand: '%s' has %lld elements, of which %s '%s' has one for each %d, %lld; "
			"it has %lld", t->name, (long long)t->size, has, f->name, per, (long long)(t->size / per), (long long)f->size);
	return check_packs(p, "expand", from, to, per, loc, e);
}

static enum err_code check_expand(const struct program *p, int value, int which, int to, int from[2], struct srcloc loc,
	struct err *e)
{
	const struct node *v = node_at(p, value), *w = node_at(p, which);
	const struct axis *t = axis_at(p, to);

	from[0] = axis_apart(v, w);
	from[1] = axis_apart(w, v);
	if (w->type != DT_U8 && w->type != DT_I8)
		return err_set(e, ERR_INPUT, loc, "expand takes indices of u8 or i8, and these are %s", dtype_name(w->type));
	if (dtype_bits(v->type) < 8 || v->type == DT_BOOL)
		return err_set(e, ERR_INPUT, loc, "expand takes numbers of 8 bits or more, and these are %s", dtype_name(v->type));
	if (node_has_axis(v, to) || node_has_axis(w, to))
		return err_set(e, ERR_INPUT, loc, "expand: a value has axis '%s' already; expand along another one", t->name);
	if (from[0] == NONE || from[1] == NONE)
		return err_set(e, ERR_INPUT, loc, "expand: the values have axes %s, their indices %s; each must have one axis "
			"of its own, for '%s', and all others in common", axes_phrase(p, v->naxes, v->axis).s,
			axes_phrase(p, w->naxes, w->axis).s, t->name);
	if (t->size % EXPANDED_BY_BYTE)
		return err_set(e, ERR_INPUT, loc, "expand: '%s' has %lld elements; indices are bytes of %d, so it must have a "
			"multiple of that", t->name, (long long)t->size, EXPANDED_BY_BYTE);
	TRY(check_expanded(p, from[0], to, EXPANDED_BY_VALUE, "the values'", loc, e));
	return check_expanded(p, from[1], to, EXPANDED_BY_BYTE, "the indices'", loc, e);
}

enum err_code program_expand(struct program *p, int value, int which, int axis, struct srcloc loc, int *out, struct err *e)
{
	struct node n = unary(p, OP_EXPAND, value, node_at(p, value)->type, loc);
	int from[2];

	TRY(check_in_phase(p, "an expansion", loc, e));
	TRY(check_value(p, value, loc, e));
	TRY(check_value(p, which, loc, e));
	TRY(check_expand(p, value, which, axis, from, loc, e));
	for (int i = 0; i < n.naxes; i++)
		if (n.axis[i] == from[0])
			n.axis[i] = axis;
	n.arg[1] = which;
	n.ref = axis;
	for (int i = 0; i < 2; i++) {
		p->axes.v[from[i]].packs = axis;
		p->axes.v[from[i]].per = i ? EXPANDED_BY_BYTE : EXPANDED_BY_VALUE;
	}
	*out = build_node(p, &n);
	return OK;
}

/* The axes of a value read at other indices of `axis`: the value's others, and those of the expression; an axis of the
 * expression that is `axis` itself stays where it is. */
static enum err_code set_axes_at(const struct program *p, struct node *n, const struct index_expr *index, struct err *e)
{
	int count = 0;

	for (int i = 0; i < n->naxes; i++)
		if (n->axis[i] != n->ref || index_uses(index, n->ref))
			n->axis[count++] = n->axis[i];
	n->naxes = count;
	for (int i = 0; i < index->n; i++) {
		int axis = index->term[i].axis;

		if (axis_is_batch_here(p, axis) || node_has_axis(n, axis))
			continue;
		if (n->naxes == RANK_MAX)
			return err_set(e, ERR_LIMIT, n->loc, "at: the result would have more than %d axes", RANK_MAX);
		n->axis[n->naxes++] = axis;
	}
	return OK;
}

/* In a loop over the axis a value has the present tile of it alone. */
static enum err_code check_has_all(const struct program *p, int value, int axis, struct srcloc loc, struct err *e)
{
	const struct node *n = &p->nodes.v[value];
	int loop = n->task == NONE ? NONE : p->tasks.v[n->task].loop;
	const char *name = p->axes.v[axis].name;

	if (!program_axis_bound(p, loop, axis))
		return OK;
	return err_set(e, ERR_INPUT, loc, "at over '%s': %s is made in %s, where it has one tile of '%s' at a time; make it "
		"before the loop, or load what is at other indices", name, value_phrase(p, value).s,
		loop_phrase(p, loop_over(p, loop, axis)).s, name);
}

enum err_code program_at(struct program *p, int value, int axis, const struct index_expr *index, struct srcloc loc,
			 int *out, struct err *e)
{
	struct node n = unary(p, OP_AT, value, node_at(p, value)->type, loc);

	TRY(check_in_phase(p, "a read at other indices", loc, e));
	TRY(check_value(p, value, loc, e));
	TRY(check_has_axis(p, value, axis, "at", loc, e));
	TRY(check_has_all(p, value, axis, loc, e));
	TRY(check_not_words(p, axis, "read at other indices", loc, e));
	TRY(check_index(p, index, loc, e));
	for (int i = 0; i < index->n; i++)
		TRY(check_not_words(p, index->term[i].axis, "an index of a value", loc, e));
	n.ref = axis;
	TRY(set_axes_at(p, &n, index, e));
	n.index = arena_copy(&p->arena, index, 1, sizeof(*index));
	*out = build_node(p, &n);
	return OK;
}
