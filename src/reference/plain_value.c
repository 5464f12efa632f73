/* Elements of values as text, and the loops over them. */
#include "reference/plain_text.h"

#include <math.h>
#include <string.h>

/* text ---------------------------------------------------------------------- */

void plain_line(struct plain_text *t, const char *fmt, ...)
{
	const char *line;
	va_list ap;

	va_start(ap, fmt);
	line = arena_vstrf(t->a, fmt, ap);
	va_end(ap);
	t->indent -= *line == '}';
	buf_repeat(t->out, "\t", t->indent);
	buf_puts(t->out, line);
	buf_putc(t->out, '\n');
	t->indent += *line && line[strlen(line) - 1] == '{';
}

void plain_gap(struct plain_text *t)
{
	buf_putc(t->out, '\n');
}

const char *plain_number(struct arena *a, double x)
{
	const char *s = arena_strf(a, "%.17g", x);

	if (isnan(x))
		return "NOT_A_NUMBER";
	if (isinf(x))
		return x < 0 ? "(-INF)" : "INF";
	s = strpbrk(s, ".e") ? s : arena_strf(a, "%s.0", s);
	return signbit(x) ? arena_strf(a, "(%s)", s) : s;
}

const char *plain_axis(const struct plain_text *t, int axis)
{
	return t->p->axes.v[axis].name;
}

/* positions ----------------------------------------------------------------- */

/* Position along the full axis, in a loop over it or outside (then it has one value). */
const char *plain_position(struct plain_text *t, int axis, bool looped)
{
	const char *name = plain_axis(t, axis);

	if (!looped)
		return arena_strf(t->a, "lo_%s", name);
	return arena_strf(t->a, t->full_axis[axis] ? "i_%s" : "(lo_%s + i_%s)", name, name);
}

/* Position in an array that holds all of the axis, or only the present tile. */
static const char *offset_in(struct plain_text *t, int axis, bool array_is_full)
{
	const char *name = plain_axis(t, axis);

	if (array_is_full && !t->full_axis[axis])
		return arena_strf(t->a, "(lo_%s + i_%s)", name, name);
	return arena_strf(t->a, "i_%s", name);
}

/* NAME[i_m * 64 + i_n] */
static const char *element(struct plain_text *t, const char *name, int n, const int *axis, const uint8_t *full_axis)
{
	const char *at = "";
	int64_t stride = 1;

	for (int i = n - 1; i >= 0; i--) {
		const char *term = offset_in(t, axis[i], full_axis[i]);

		if (stride != 1)
			term = arena_strf(t->a, "%s * %lld", term, (long long)stride);
		at = *at ? arena_strf(t->a, "%s + %s", term, at) : term;
		stride *= full_axis[i] ? t->p->axes.v[axis[i]].size : t->x->tile[axis[i]];
	}
	return arena_strf(t->a, "%s[%s]", name, *at ? at : "0");
}

const char *plain_value(struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	if (n->op == OP_CONST)
		return plain_number(t->a, n->k);
	if (t->inlined[node])
		return plain_formula(t, node);
	return element(t, arena_strf(t->a, "v%d", node), n->naxes, n->axis, t->x->full_axis + node * RANK_MAX);
}

const char *plain_carry_element(struct plain_text *t, int carry)
{
	const struct carry *c = &t->p->carries.v[carry];

	return element(t, arena_strf(t->a, "c_%s", c->name), c->naxes, c->axis,
		t->x->carry_full_axis + carry * RANK_MAX);
}

/* loops --------------------------------------------------------------------- */

void plain_loop(struct plain_loops *l, int axis, bool full)
{
	l->axis[l->n] = axis;
	l->full_axis[l->n++] = full;
}

int64_t plain_nominal(const struct plain_text *t, int axis, bool full)
{
	return full ? t->p->axes.v[axis].size : t->x->tile[axis];
}

const char *plain_length(struct plain_text *t, int axis, bool full)
{
	if (full)
		return arena_strf(t->a, "%lld", (long long)t->p->axes.v[axis].size);
	return arena_strf(t->a, "len_%s", plain_axis(t, axis));
}

static const char *each_text(struct plain_text *t, const struct plain_loops *l)
{
	int64_t total = 1;
	const char *text = "";

	for (int i = l->n - 1; i >= 0; i--) {
		int64_t size = plain_nominal(t, l->axis[i], l->full_axis[i]);

		text = arena_strf(t->a, " AXIS(i_%s, %s, %lld, %lld)%s", plain_axis(t, l->axis[i]),
			plain_length(t, l->axis[i], l->full_axis[i]), (long long)size, (long long)total, text);
		total *= size;
		t->full_axis[l->axis[i]] = l->full_axis[i];
	}
	return arena_strf(t->a, "EACH(%lld)%s", (long long)total, text);
}

void plain_each(struct plain_text *t, const struct plain_loops *l, const char *after)
{
	plain_line(t, "%s%s", each_text(t, l), after);
}

void plain_begin(struct plain_text *t, const struct plain_loops *l)
{
	const char *text = each_text(t, l);

	if (t->shared && strcmp(t->shared, text) == 0)
		return;
	plain_end(t);
	plain_line(t, "%s {", text);
	t->shared = text;
}

void plain_end(struct plain_text *t)
{
	if (!t->shared)
		return;
	plain_line(t, "}");
	plain_line(t, "SYNC();");
	t->shared = NULL;
}

static struct plain_loops loops_of(int n, const int *axis, const uint8_t *full_axis)
{
	struct plain_loops l = { 0 };

	for (int i = 0; i < n; i++)
		plain_loop(&l, axis[i], full_axis[i]);
	return l;
}

struct plain_loops plain_loops_of_node(const struct plain_text *t, int node)
{
	const struct node *n = &t->p->nodes.v[node];

	return loops_of(n->naxes, n->axis, t->x->full_axis + node * RANK_MAX);
}

struct plain_loops plain_loops_of_carry(const struct plain_text *t, int carry)
{
	const struct carry *c = &t->p->carries.v[carry];

	return loops_of(c->naxes, c->axis, t->x->carry_full_axis + carry * RANK_MAX);
}

void plain_each_of_node(struct plain_text *t, int node, const char *after)
{
	struct plain_loops l = plain_loops_of_node(t, node);

	plain_each(t, &l, after);
}

void plain_each_of_carry(struct plain_text *t, int carry)
{
	struct plain_loops l = plain_loops_of_carry(t, carry);

	plain_each(t, &l, "");
}

/* A statement of its own under the line before. */
void plain_statement(struct plain_text *t, const char *to, const char *from)
{
	t->indent++;
	plain_line(t, "%s = %s;", to, from);
	t->indent--;
}
