/* The text of one node: what interp.c does for it, element by element. */
#include "reference/plain_text.h"

/* Does a contraction or reduction go over all of the axis, not only the present tile of it? */
static bool contracts_full_axis(const struct plain_text *t, const struct node *n, int axis)
{
	return !program_reduces_tile(t->p, n, axis);
}

/* loads and stores ---------------------------------------------------------- */

static const char *index_text(struct plain_text *t, const struct node *n, const struct index_expr *x)
{
	const char *s = arena_strf(t->a, "%lldll", (long long)x->k);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *term = &x->term[i];
		const char *at = plain_position(t, term->axis, ints_hold(n->axis, n->naxes, term->axis));

		if (term->div > 1)
			at = arena_strf(t->a, "%s / %lld", at, (long long)term->div);
		if (term->mod)
			at = arena_strf(t->a, "%s %% %lld", at, (long long)term->mod);
		if (term->coef != 1 && (term->div > 1 || term->mod))
			at = arena_strf(t->a, "(%s)", at);
		if (term->coef != 1)
			at = arena_strf(t->a, "%s * %lldll", at, (long long)term->coef);
		s = i == 0 && x->k == 0 ? at : arena_strf(t->a, "%s + %s", s, at);
	}
	if (x->value)
		s = arena_strf(t->a, "(i64)%s + %s", plain_value(t, index_value(x)), s);
	return s;
}

/* The function of put_operations that computes the element-wise operation. (A comparison of integers gives a bool.) */
static const char *function_of(struct plain_text *t, enum op op, enum dtype type)
{
	return arena_strf(t->a, "%c_%s", type == DT_I32 ? 'i' : 'f', op_name(op));
}

/* lengths of loops ----------------------------------------------------------- */

static const char *length_node_text(struct plain_text *t, int node);

/* What the program stores is kept in f64. */
static enum dtype held_type(const struct tensor *t)
{
	return t->role == TENSOR_INPUT ? t->type : DT_F64;
}

/* The axes stand where the tile is, and have one index there. */
const char *plain_length_index(struct plain_text *t, const struct index_expr *x)
{
	const char *s = arena_strf(t->a, "%lldll", (long long)x->k);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *term = &x->term[i];

		s = arena_strf(t->a, "%s + %lldll * (lo_%s / %lld", s, (long long)term->coef, plain_axis(t, term->axis),
			(long long)term->div);
		s = arena_strf(t->a, term->mod ? "%s %% %lld)" : "%s)", s, (long long)term->mod);
	}
	return x->value ? arena_strf(t->a, "(i64)%s + %s", length_node_text(t, index_value(x)), s) : s;
}

/* The element at an index. Sums of i32 in memory wrap around where they are read. */
static const char *element_text(struct plain_text *t, int tensor, const char *at)
{
	const struct tensor *x = &t->p->tensors.v[tensor];
	const char *element = arena_strf(t->a, "load_%s(t_%s, %s)", dtype_name(held_type(x)), x->name, at);

	return x->type == DT_I32 && tensor_is_added_to(t->p, tensor) ? arena_strf(t->a, "wrapped(%s)", element) :
		element;
}

/* An element of a tensor; 0 outside of it. */
static const char *length_element_text(struct plain_text *t, const struct node *n)
{
	const struct tensor *x = &t->p->tensors.v[n->ref];
	const char *inside = "1", *at = "0ll";

	for (int d = 0; d < x->rank; d++) {
		const char *i = arena_strf(t->a, "(%s)", plain_length_index(t, &n->index[d]));
		long long size = (long long)t->p->axes.v[x->dim[d]].size;

		inside = arena_strf(t->a, "%s && %s >= 0 && %s < %lld", inside, i, i, size);
		at = arena_strf(t->a, "(%s) * %lld + %s", at, size, i);
	}
	return arena_strf(t->a, "(%s ? %s : 0)", inside, element_text(t, n->ref, at));
}

static const char *length_node_text(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];
	const char *args = "";

	if (n->op == OP_CONST)
		return plain_number(t->a, n->k);
	if (n->op == OP_INDEX)
		return arena_strf(t->a, "(double)lo_%s", plain_axis(t, n->ref));
	if (n->op == OP_LOAD)
		return length_element_text(t, n);
	for (int i = 0; i < op_arity(n->op); i++)
		args = arena_strf(t->a, "%s%s%s", args, i ? ", " : "", length_node_text(t, n->arg[i]));
	return arena_strf(t->a, "%s(%s)", function_of(t, n->op, n->type), args);
}

/* Inside the braces of a load or store: i64 at, and is it inside the tensor? */
static void put_location(struct plain_text *t, const struct node *n)
{
	const struct tensor *x = &t->p->tensors.v[n->ref];
	const char *inside = "", *at = "";

	for (int i = 0; i < x->rank; i++) {
		long long size = (long long)t->p->axes.v[x->dim[i]].size;

		plain_line(t, "const i64 d%d = %s;", i, index_text(t, n, &n->index[i]));
		inside = arena_strf(t->a, "%s%sd%d >= 0 && d%d < %lld", inside, i ? " && " : "", i, i, size);
		at = i == 0 ? "d0" : arena_strf(t->a, i == 1 ? "%s * %lld + d%d" : "(%s) * %lld + d%d", at, size, i);
	}
	plain_line(t, "const int inside = %s;", *inside ? inside : "1");
	plain_line(t, "const i64 at = %s;", *at ? at : "0");
	plain_gap(t);
}

static void put_load(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	plain_each_of_node(t, node, " {");
	put_location(t, n);
	plain_line(t, "%s = inside ? %s : 0;", plain_value(t, node), element_text(t, n->ref, "at"));
	plain_line(t, "}");
}

/* Integers always are what they can be. */
static const char *rounded_text(struct plain_text *t, enum dtype type, const char *x)
{
	if (dtype_has_mantissa(type) && !(t->flags & PLAIN_ROUND))
		return x;
	return arena_strf(t->a, "round_%s(%s)", dtype_name(type), x);
}

static void put_store(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	plain_each_of_node(t, node, " {");
	put_location(t, n);
	plain_line(t, "if (inside)");
	if (n->adds)
		plain_line(t, "\tADD(t_%s[at], %s);", t->p->tensors.v[n->ref].name,
			rounded_text(t, n->type, plain_value(t, n->arg[0])));
	else
		plain_statement(t, arena_strf(t->a, "t_%s[at]", t->p->tensors.v[n->ref].name),
			rounded_text(t, n->type, plain_value(t, n->arg[0])));
	plain_line(t, "}");
}

/* element-wise -------------------------------------------------------------- */

enum { DEPTH_MOST = 16 };	/* of formulas in formulas: compilers limit how deep parentheses nest */

/* Is it what plain_formula makes of values alone? (A carry may be another one where such a value is read.) */
static bool is_formula(const struct node *n)
{
	return op_kind(n->op) == OP_ELEMENTWISE || op_kind(n->op) == OP_ERROR_BOUND || n->op == OP_INDEX || n->op == OP_CAST;
}

/* Does the node read each element of such a value once, and its threads share that? A reduction reads all along its axis
 * in one thread. */
static bool reads_once(const struct program *p, const struct node *reader, const struct node *value)
{
	if (p->tasks.v[reader->task].loop != p->tasks.v[value->task].loop ||
	    p->tasks.v[reader->task].phase != p->tasks.v[value->task].phase)
		return false;
	if (reader->op == OP_MMA)
		return true;
	if (reader->op == OP_SET)
		return p->carries.v[reader->ref].naxes == value->naxes;
	return (reader->op == OP_STORE || is_formula(reader)) && reader->naxes == value->naxes;
}

const bool *plain_inlined(struct arena *a, const struct extents *x)
{
	const struct program *p = x->program;
	bool *out = ARENA_ARRAY(a, p->nodes.n, bool);
	int *reads = ARENA_ARRAY(a, p->nodes.n, int), *depth = ARENA_ARRAY(a, p->nodes.n, int);

	for (int i = 0; i < p->nodes.n; i++)
		out[i] = p->nodes.v[i].task != NONE && is_formula(&p->nodes.v[i]);
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int k = 0; n->task != NONE && k < node_arity(n); k++) {
			int arg = n->arg[k];

			if (++reads[arg] > 1 || (out[arg] && !reads_once(p, n, &p->nodes.v[arg])))
				out[arg] = false;
		}
		if (n->op == OP_AT && n->index[0].value)
			out[index_value(&n->index[0])] = false;
	}
	for (int i = 0; i < p->nodes.n; i++) {		/* arguments come first */
		for (int k = 0; out[i] && k < node_arity(&p->nodes.v[i]); k++) {
			int arg = p->nodes.v[i].arg[k];

			if (out[arg] && depth[arg] >= depth[i])
				depth[i] = depth[arg] + 1;
		}
		out[i] &= depth[i] < DEPTH_MOST;
	}
	return out;
}

static const char *apply_text(struct plain_text *t, const struct node *n)
{
	const char *args = "";

	for (int i = 0; i < op_arity(n->op); i++)
		args = arena_strf(t->a, "%s%s%s", args, i ? ", " : "", plain_value(t, n->arg[i]));
	return arena_strf(t->a, "%s(%s)", function_of(t, n->op, n->type), args);
}

static const char *cast_text(struct plain_text *t, const struct node *n)
{
	const char *x = plain_value(t, n->arg[0]);

	if (n->type == DT_BOOL)
		return arena_strf(t->a, "(%s != 0)", x);
	return rounded_text(t, n->type, dtype_is_float(n->type) ? x : arena_strf(t->a, "trunc(%s)", x));
}

const char *plain_formula(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	if (n->op == OP_GET)
		return plain_carry_element(t, n->ref);
	if (n->op == OP_INDEX)
		return arena_strf(t->a, "(double)%s", plain_position(t, n->ref, n->naxes > 0));
	return n->op == OP_CAST ? cast_text(t, n) : apply_text(t, n);
}

/* Set an element of the node's value, or of the carry that it sets. */
static void put_statement(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];
	bool sets = n->op == OP_SET;
	struct plain_loops l = sets ? plain_loops_of_carry(t, n->ref) : plain_loops_of_node(t, node);

	plain_begin(t, &l);
	plain_line(t, "%s = %s;\t/* %s, line %d */", sets ? plain_carry_element(t, n->ref) : plain_value(t, node),
		sets ? plain_value(t, n->arg[0]) : plain_formula(t, node), t->p->tasks.v[n->task].name, n->loc.line);
}

static void put_unpack(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];
	const char *to = plain_axis(t, n->ref), *from = "";
	int per = 32 / dtype_bits(n->type), words = NONE;

	for (int i = 0; i < n->naxes; i++)
		if (n->axis[i] == n->ref)
			words = t->p->nodes.v[n->arg[0]].axis[i];
	from = plain_axis(t, words);
	plain_each_of_node(t, node, " {");
	t->full_axis[words] = t->full_axis[n->ref];
	plain_line(t, "const i64 at = %s;", plain_position(t, n->ref, true));
	plain_line(t, t->full_axis[words] ? "const int i_%s = (int)(at / %d);" :
		"const int i_%s = (int)(at / %d - lo_%s);", from, per, from);
	plain_gap(t);
	plain_line(t, "%s = unpack_%s(%s, (int)(at %% %d));\t/* %s in %s */", plain_value(t, node),
		dtype_name(n->type), plain_value(t, n->arg[0]), per, to, from);
	plain_line(t, "}");
}

/* Lets i_AXIS be where the argument has what stands for `from`, along its axis that counts `per` of n->ref. */
static void put_packed_position(struct plain_text *t, const struct node *n, int arg, int per, const char *from)
{
	const struct node *a = &t->p->nodes.v[n->arg[arg]];
	int axis = find_packed_axis(t->p, a->axis, a->naxes, n->ref, per);

	t->full_axis[axis] = t->full_axis[n->ref];
	plain_line(t, t->full_axis[axis] ? "const int i_%s = (int)(%s);" : "const int i_%s = (int)(%s - lo_%s);",
		plain_axis(t, axis), from, plain_axis(t, axis));
}

static void put_expand(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	plain_each_of_node(t, node, " {");
	plain_line(t, "const i64 at = %s;", plain_position(t, n->ref, true));
	put_packed_position(t, n, 1, EXPANDED_BY_BYTE, arena_strf(t->a, "at / %d", EXPANDED_BY_BYTE));
	plain_line(t, "const int which = (int)%s >> at %% %d / 4 * 4, second = (which & 3) != at %% 4;",
		plain_value(t, n->arg[1]), EXPANDED_BY_BYTE);
	put_packed_position(t, n, 0, EXPANDED_BY_VALUE, "at / 4 * 2 + second");
	plain_gap(t);
	plain_line(t, "%s = second && (which >> 2 & 3) != at %% 4 ? 0 : %s;", plain_value(t, node), plain_value(t, n->arg[0]));
	plain_line(t, "}");
}

static void put_at(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];
	const char *axis = plain_axis(t, n->ref), *from;

	plain_each_of_node(t, node, " {");
	plain_line(t, "const i64 at = %s;", index_text(t, n, &n->index[0]));
	plain_line(t, "double x = 0;");
	plain_gap(t);
	plain_line(t, "if (at >= 0 && at < %lld) {", (long long)t->p->axes.v[n->ref].size);
	plain_line(t, "\tconst int i_%s = (int)at;", axis);
	t->full_axis[n->ref] = true;
	from = plain_value(t, n->arg[0]);
	plain_line(t, "\tx = %s;", from);
	plain_line(t, "}");
	t->full_axis[n->ref] = extent_is_full(t->x, node, n->ref);
	plain_line(t, "%s = x;", plain_value(t, node));
	plain_line(t, "}");
}

/* along an axis ------------------------------------------------------------- */

static void put_serial_loop(struct plain_text *t, int axis, bool full)
{
	t->full_axis[axis] = full;
	plain_line(t, "for (int i_%s = 0; i_%s < %s; i_%s++)", plain_axis(t, axis),
		plain_axis(t, axis), plain_length(t, axis, full), plain_axis(t, axis));
}

static void put_reduce(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	plain_each_of_node(t, node, " {");
	plain_line(t, "double s = %s;", plain_number(t->a, op_identity(n->op, n->type)));
	plain_gap(t);
	put_serial_loop(t, n->ref, contracts_full_axis(t, n, n->ref));
	plain_statement(t, "s", arena_strf(t->a, "%s(s, %s)", function_of(t, op_pair(n->op), n->type),
		plain_value(t, n->arg[0])));
	plain_line(t, "%s = s;", plain_value(t, node));
	plain_line(t, "}");
}

static void put_scan(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];
	const uint8_t *full_axis = t->x->full_axis + node * RANK_MAX;
	struct plain_loops l = { 0 };
	bool along = false;

	for (int i = 0; i < n->naxes; i++) {
		if (n->axis[i] == n->ref)
			along = full_axis[i];
		else
			plain_loop(&l, n->axis[i], full_axis[i]);
	}
	plain_each(t, &l, " {");
	plain_line(t, "double s = 0;");
	plain_gap(t);
	put_serial_loop(t, n->ref, along);
	plain_statement(t, plain_value(t, node), arena_strf(t->a, "s = i_%s ? %s(s, %s) : %s",
		plain_axis(t, n->ref), function_of(t, op_pair(n->op), n->type), plain_value(t, n->arg[0]),
			plain_value(t, n->arg[0])));
	plain_line(t, "}");
}

/* products ------------------------------------------------------------------ */

/* The axes of an operand: those of the product, then those that both operands have. */
struct operand {
	int nown, own[RANK_MAX];
	int64_t size;			/* of its own axes, nominal */
	bool own_full[RANK_MAX];
};

static struct operand operand_of(const struct plain_text *t, int product, int which)
{
	const struct node *n = &t->p->nodes.v[product];
	const struct node *a = &t->p->nodes.v[n->arg[which]];
	struct operand o = { .size = 1 };

	for (int i = 0; i < n->naxes; i++) {
		if (!ints_hold(a->axis, a->naxes, n->axis[i]))
			continue;
		o.own[o.nown] = n->axis[i];
		o.own_full[o.nown++] = t->x->full_axis[product * RANK_MAX + i];
		o.size *= extent_of_node(t->x, product, i);
	}
	return o;
}

static int shared_axes(const struct plain_text *t, const struct node *n, int axis[RANK_MAX])
{
	const struct node *a = &t->p->nodes.v[n->arg[0]];
	int count = 0;

	for (int i = 0; i < a->naxes; i++)
		if (!ints_hold(n->axis, n->naxes, a->axis[i]))
			axis[count++] = a->axis[i];
	return count;
}

/* Rows of the array: the shared axes, as many as there are in this tile; columns: the
 * operand's own, as many as there can be, rounded up to fours. */
static void put_operand(struct plain_text *t, int product, int which)
{
	const struct node *n = &t->p->nodes.v[product];
	struct operand o = operand_of(t, product, which);
	int shared[RANK_MAX], nshared = shared_axes(t, n, shared);
	const char *row = "0", *col = "0";
	struct plain_loops l = { 0 };

	for (int i = 0; i < nshared; i++) {
		bool full = contracts_full_axis(t, n, shared[i]);

		plain_loop(&l, shared[i], full);
		row = i == 0 ? arena_strf(t->a, "i_%s", plain_axis(t, shared[i])) : arena_strf(t->a, "(%s) * %s + i_%s",
			row, plain_length(t, shared[i], full), plain_axis(t, shared[i]));
	}
	for (int i = 0; i < o.nown; i++) {
		plain_loop(&l, o.own[i], o.own_full[i]);
		col = i == 0 ? arena_strf(t->a, "i_%s", plain_axis(t, o.own[i])) :
			arena_strf(t->a, "(%s) * %lld + i_%s", col, (long long)plain_nominal(t, o.own[i],
			o.own_full[i]), plain_axis(t, o.own[i]));
	}
	plain_each(t, &l, "");
	plain_statement(t, arena_strf(t->a, "%c[(%s) * %lld + %s]", which ? 'b' : 'a', row,
		(long long)(o.size + 3) / 4 * 4, col), plain_value(t, n->arg[which]));
}

static void put_mma(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];
	int shared[RANK_MAX], nshared = shared_axes(t, n, shared);
	const char *depth = "";

	put_operand(t, node, 0);
	put_operand(t, node, 1);
	plain_each_of_node(t, node, "");
	plain_statement(t, plain_value(t, node), n->ref == NONE ? "0" : plain_carry_element(t, n->ref));
	plain_line(t, "SYNC();");
	for (int i = 0; i < nshared; i++)
		depth = arena_strf(t->a, "%s%s%s", depth, i ? " * " : "",
			plain_length(t, shared[i], contracts_full_axis(t, n, shared[i])));
	plain_line(t, "%s(%lld, %lld, %s, a, b, v%d);", n->type == DT_I32 ? "product_i32" : "product",
		(long long)operand_of(t, node, 0).size, (long long)operand_of(t, node, 1).size, depth, node);
	if (n->ref == NONE)
		return;
	plain_line(t, "SYNC();");
	plain_each_of_carry(t, n->ref);
	plain_statement(t, plain_carry_element(t, n->ref), plain_value(t, node));
}

/* any ----------------------------------------------------------------------- */

void plain_node(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	if (t->inlined[node])
		return;
	if (n->op == OP_SET || n->op == OP_GET || is_formula(n)) {
		put_statement(t, node);
		return;
	}
	plain_end(t);
	plain_line(t, "/* v%d: %s in %s, line %d */", node, op_name(n->op), t->p->tasks.v[n->task].name, n->loc.line);
	switch (op_class(n->op)) {
	case CLASS_MMA:
		put_mma(t, node);
		break;
	case CLASS_REDUCE:
		put_reduce(t, node);
		break;
	case CLASS_SCAN:
		put_scan(t, node);
		break;
	case CLASS_MOVE:
		if (n->op == OP_LOAD)
			put_load(t, node);
		else
			put_store(t, node);
		break;
	case CLASS_FREE: case CLASS_FMA: case CLASS_ALU: case CLASS_SFU: case CLASS_CVT:
	case CLASS_DIV: case CLASS_COUNT:
		if (n->op == OP_UNPACK)
			put_unpack(t, node);
		else if (n->op == OP_EXPAND)
			put_expand(t, node);
		else
			put_at(t, node);
		break;
	}
	plain_line(t, "SYNC();");
}
