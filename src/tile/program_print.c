#include "tile/program_build.h"

#include <stdio.h>
#include <stdlib.h>

/* As few digits as give the number again. */
static void print_number(double x, struct buf *out)
{
	char text[32];
	int digits = 6;

	do
		snprintf(text, sizeof(text), "%.*g", digits, x);
	while (strtod(text, NULL) != x && ++digits <= 17);
	buf_puts(out, text);
}

static void print_index(const struct program *p, const struct index_expr *x, struct buf *out)
{
	const char *names[AXES_MAX];
	const struct node *v = x->value ? &p->nodes.v[index_value(x)] : NULL;

	if (v && v->op == OP_CONST)
		print_number(v->k, out);
	else if (v)
		buf_printf(out, "%%%d", index_value(x));
	if (v && !x->n && !x->k)
		return;
	if (v)
		buf_puts(out, " + ");
	for (int i = 0; i < p->axes.n; i++)
		names[i] = p->axes.v[i].name;
	index_print(x, names, out);
}

/* T[m, k // 8] */
static void print_indices(const struct program *p, const struct node *n, struct buf *out)
{
	const struct tensor *t = &p->tensors.v[n->ref];

	buf_printf(out, "%s[", t->name);
	for (int i = 0; i < t->rank; i++) {
		buf_puts(out, i ? ", " : "");
		print_index(p, &n->index[i], out);
	}
	buf_putc(out, ']');
}

static void print_args(const struct program *p, const struct node *n, struct buf *out)
{
	for (int i = 0; i < op_arity(n->op); i++) {
		const struct node *a = &p->nodes.v[n->arg[i]];

		buf_putc(out, ' ');
		if (a->op == OP_CONST)
			print_number(a->k, out);
		else
			buf_printf(out, "%%%d", n->arg[i]);
	}
}

/* What the node computes, without its name and type. */
static void print_work(const struct program *p, const struct node *n, struct buf *out)
{
	enum op_class class = op_class(n->op);

	if (n->op == OP_GET) {
		buf_printf(out, "get %s", p->carries.v[n->ref].name);
	} else if (n->op == OP_INDEX) {
		buf_printf(out, "index %s", p->axes.v[n->ref].name);
	} else if (n->op == OP_LOAD) {
		buf_puts(out, "load ");
		print_indices(p, n, out);
	} else {
		if (node_adds_to_carry(n))
			buf_printf(out, "%s += ", p->carries.v[n->ref].name);
		buf_puts(out, op_name(n->op));
		print_args(p, n, out);
		if (class == CLASS_REDUCE || class == CLASS_SCAN)
			buf_printf(out, " over %s", p->axes.v[n->ref].name);
		if (n->op == OP_UNPACK || n->op == OP_EXPAND)
			buf_printf(out, " to %s", p->axes.v[n->ref].name);
		if (n->op == OP_AT) {
			buf_printf(out, " at %s = ", p->axes.v[n->ref].name);
			print_index(p, &n->index[0], out);
		}
	}
}

static void print_node(const struct program *p, int id, int depth, struct buf *out)
{
	const struct node *n = &p->nodes.v[id];

	buf_repeat(out, "  ", depth);
	if (n->op == OP_SET) {
		buf_printf(out, "%s :=", p->carries.v[n->ref].name);
		print_args(p, n, out);
	} else if (n->op == OP_STORE) {
		print_indices(p, n, out);
		buf_puts(out, n->adds ? " +=" : " :=");
		print_args(p, n, out);
	} else {
		buf_printf(out, "%%%d %s ", id, dtype_name(n->type));
		buf_puts(out, axes_phrase(p, n->naxes, n->axis).s);
		buf_puts(out, " = ");
		print_work(p, n, out);
	}
	buf_putc(out, '\n');
}

static void print_carries(const struct program *p, int phase, int loop, int depth, struct buf *out)
{
	for (int i = 0; i < p->carries.n; i++) {
		const struct carry *c = &p->carries.v[i];

		if (c->phase != phase || c->loop != loop)
			continue;
		buf_repeat(out, "  ", depth);
		buf_printf(out, "carry %s %s ", c->name, dtype_name(c->type));
		buf_puts(out, axes_phrase(p, c->naxes, c->axis).s);
		buf_puts(out, " = ");
		print_number(c->init, out);
		buf_putc(out, '\n');
	}
}

static void print_length(const struct program *p, const struct index_expr *x, struct buf *out);

/* The nodes that a length is computed from may be in no task, so that they are printed here alone. */
static void print_length_node(const struct program *p, int node, struct buf *out)
{
	const struct node *n = &p->nodes.v[node];

	if (n->op == OP_CONST) {
		print_number(n->k, out);
	} else if (n->op == OP_INDEX) {
		buf_puts(out, p->axes.v[n->ref].name);
	} else if (n->op == OP_LOAD) {
		buf_printf(out, "%s[", p->tensors.v[n->ref].name);
		for (int d = 0; d < p->tensors.v[n->ref].rank; d++) {
			buf_puts(out, d ? ", " : "");
			print_length(p, &n->index[d], out);
		}
		buf_putc(out, ']');
	} else {
		buf_printf(out, "%s(", op_name(n->op));
		for (int i = 0; i < op_arity(n->op); i++) {
			buf_puts(out, i ? ", " : "");
			print_length_node(p, n->arg[i], out);
		}
		buf_putc(out, ')');
	}
}

static void print_length(const struct program *p, const struct index_expr *x, struct buf *out)
{
	const char *names[AXES_MAX];

	if (x->value)
		print_length_node(p, index_value(x), out);
	if (x->value && !x->n && !x->k)
		return;
	if (x->value)
		buf_puts(out, " + ");
	for (int i = 0; i < p->axes.n; i++)
		names[i] = p->axes.v[i].name;
	index_print(x, names, out);
}

static void print_loop_head(const struct program *p, const struct loop *l, struct buf *out)
{
	buf_puts(out, "loop ");
	for (int i = 0; i < l->naxes; i++)
		buf_printf(out, "%s%s", i ? ", " : "", p->axes.v[l->axis[i]].name);
	if (l->has_from) {
		buf_puts(out, " from ");
		print_index(p, &l->from, out);
	}
	if (l->has_upto) {
		buf_puts(out, " upto ");
		print_index(p, &l->upto, out);
	}
	if (l->has_length) {
		buf_puts(out, " length ");
		print_length(p, &l->length, out);
		if (l->typical)
			buf_printf(out, " typical %lld%s", (long long)l->typical, l->keeps_steps ? " of all steps" :
				"");
	}
	buf_puts(out, l->batch ? " batch\n" : "\n");
}

/* Recursion as deep as loops nest: each takes an axis, so at most AXES_MAX. */
static void print_body(const struct program *p, int phase, int loop, int depth, struct buf *out)
{
	struct items body = program_body(p, phase, loop);

	print_carries(p, phase, loop, depth, out);
	for (int i = 0; i < body.n; i++) {
		int id = body.v[i].id;

		buf_repeat(out, "  ", depth);
		if (body.v[i].is_loop) {
			print_loop_head(p, &p->loops.v[id], out);
			print_body(p, phase, id, depth + 1, out);
			continue;
		}
		buf_printf(out, "task %s\n", p->tasks.v[id].name);
		for (int k = 0; k < p->tasks.v[id].nodes.n; k++)
			print_node(p, p->tasks.v[id].nodes.v[k], depth + 1, out);
	}
}

static void print_axis(const struct program *p, const struct axis *a, bool sized, struct buf *out)
{
	buf_printf(out, "axis %s", a->name);
	if (sized && !a->multiple)
		buf_printf(out, " %lld", (long long)a->size);
	if (sized && a->multiple)
		buf_printf(out, ", %lld to %lld at launch", (long long)a->multiple, (long long)a->size);
	if (sized && a->multiple > 1)
		buf_printf(out, ", a multiple of %lld", (long long)a->multiple);
	if (sized && a->like != NONE)
		buf_printf(out, ", as many as %s", p->axes.v[a->like].name);
	if (a->packs != NONE)
		buf_printf(out, " words of %d %s", a->per, p->axes.v[a->packs].name);
	buf_putc(out, '\n');
}

static void print_tensor(const struct program *p, const struct tensor *t, struct buf *out)
{
	static const char *const roles[] = { "input", "output", "temp" };	/* ORDER tensor_role */

	buf_printf(out, "%s %s %s%s%s [", roles[t->role], t->name, dtype_name(t->element),
		t->unpacked == NONE ? "" : " in words of ", t->unpacked == NONE ? "" : dtype_name(t->type));
	for (int i = 0; i < t->rank; i++)
		buf_printf(out, "%s%s", i ? ", " : "", p->axes.v[t->dim[i]].name);
	buf_puts(out, t->by_address ? "] by address\n" : "]\n");
}

static void print_all(const struct program *p, bool sized, bool options, struct buf *out)
{
	buf_printf(out, "program %s\n", p->name);
	for (int i = 0; options && i < p->options.n; i++)
		buf_printf(out, "option %s\n", p->options.v[i]);
	for (int i = 0; i < p->axes.n; i++)
		if (!p->axes.v[i].is_twin)
			print_axis(p, &p->axes.v[i], sized, out);
	for (int i = 0; i < p->tensors.n; i++)
		print_tensor(p, &p->tensors.v[i], out);
	for (int i = 0; i < p->phases.n; i++) {
		const struct phase *ph = &p->phases.v[i];

		buf_printf(out, "phase %s\n", ph->name);
		for (int j = 0; j < ph->nbatch; j++)
			buf_printf(out, "  batch %s\n", p->axes.v[ph->batch[j]].name);
		print_body(p, i, NONE, 1, out);
	}
}

void program_print(const struct program *p, struct buf *out)
{
	print_all(p, true, false, out);
}

void program_print_options(const struct program *p, struct buf *out)
{
	print_all(p, true, true, out);
}

void program_print_family(const struct program *p, struct buf *out)
{
	print_all(p, false, false, out);
}

void program_print_sizes(const struct program *p, struct buf *out)
{
	for (int i = 0; i < p->axes.n; i++)
		if (!p->axes.v[i].is_twin)
			buf_printf(out, p->axes.v[i].multiple ? "%s%s<=%lld" : "%s%s=%lld", i ? " " : "", p->axes.v[i].name,
				(long long)p->axes.v[i].size);
}

void program_print_call(const struct program *p, struct buf *out)
{
	int n = 0;

	buf_puts(out, p->name);
	for (int i = 0; i < p->axes.n; i++)
		if (!p->axes.v[i].is_twin)
			buf_printf(out, p->axes.v[i].multiple ? "%s%s<=%lld" : "%s%s=%lld", n++ ? ", " : "{", p->axes.v[i].name,
				(long long)p->axes.v[i].size);
	for (int i = 0; i < p->options.n; i++)
		buf_printf(out, "%s%s", n++ ? ", " : "{", p->options.v[i]);
	buf_puts(out, n ? "}" : "");
}
