#include "tile/program_build.h"

#include <string.h>

enum err_code program_carry(struct program *p, const char *name, int naxes, const int *axes,
			    double init, struct srcloc loc, int *out, struct err *e)
{
	struct carry c = { .type = DT_F32, .init = init, .loop = p->cur_loop, .loc = loc };

	TRY(check_in_phase(p, "a carry", loc, e));
	TRY(check_name("carry", name, loc, e));
	for (int i = 0; i < p->carries.n; i++)
		if (!strcmp(p->carries.v[i].name, name))
			return err_set(e, ERR_INPUT, loc, "carry '%s' exists already, since line %d; choose another "
				"name", name, p->carries.v[i].loc.line);
	if (naxes < 0 || naxes > RANK_MAX)
		return err_set(e, ERR_LIMIT, loc, "carry '%s' has %d axes; at most %d are "
			"possible", name, naxes, RANK_MAX);
	for (int i = 0; i < naxes; i++) {
		const char *axis = axis_at(p, axes[i])->name;

		if (ints_hold(axes, i, axes[i]))
			return err_set(e, ERR_INPUT, loc, "carry '%s' has axis '%s' twice; name it once", name, axis);
		/* A tile has one value of a batch axis, as in what is loaded. */
		if (!axis_is_batch_here(p, axes[i]))
			c.axis[c.naxes++] = axes[i];
	}
	build_enter_phase(p, loc);
	c.phase = p->cur_phase;
	c.name = arena_strdup(&p->arena, name);
	*out = p->carries.n;
	VEC_PUSH(&p->arena, &p->carries, c);
	return OK;
}

enum err_code program_type_carry(struct program *p, int carry, enum dtype type, struct srcloc loc, struct err *e)
{
	struct carry *c = &p->carries.v[carry];

	if (type != DT_F32 && type != DT_I32)
		return err_set(e, ERR_INPUT, loc, "carry '%s' cannot hold %s; a carry holds f32 or i32", c->name,
			dtype_name(type));
	if (type == DT_I32 && !is_i32_value(c->init))
		return err_set(e, ERR_INPUT, loc, "carry '%s' holds i32 and cannot begin with %.9g; begin with an integer "
			"from -2^31 to 2^31 - 1", c->name, c->init);
	c->type = type;
	c->is_typed = true;
	return OK;
}

/* May the carry be read and set here? */
static enum err_code check_carry(const struct program *p, int carry, struct srcloc loc, struct err *e)
{
	const struct carry *c = carry_at(p, carry);

	if (c->phase != p->cur_phase)
		return err_set(e, ERR_INPUT, loc, "carry '%s' ends with phase '%s'; store it to a temporary there and "
			"load that here", c->name, p->phases.v[c->phase].name);
	return program_loop_within(p, p->cur_loop, c->loop) ? OK : err_set(e, ERR_INPUT, loc, "carry '%s' was declared "
		"inside %s and cannot be used outside it; declare it before the loop", c->name, loop_phrase(p,
		c->loop).s);
}

static struct node node_of_carry(const struct program *p, enum op op, int carry, struct srcloc loc)
{
	const struct carry *c = carry_at(p, carry);
	struct node n = blank_node(op, c->type, loc);

	n.ref = carry;
	n.naxes = c->naxes;
	memcpy(n.axis, c->axis, sizeof(n.axis));
	return n;
}

enum err_code program_get(struct program *p, int carry, struct srcloc loc, int *out, struct err *e)
{
	struct node n;

	TRY(check_carry(p, carry, loc, e));
	n = node_of_carry(p, OP_GET, carry, loc);
	*out = build_node(p, &n);
	return OK;
}

/* Has anything but a set to an integer constant happened to the carry? Until then its type is open. */
static bool carry_is_typed(const struct program *p, int carry)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->ref != carry)
			continue;
		if (n->op == OP_GET || n->op == OP_MMA)
			return true;
		if (n->op == OP_SET && (p->nodes.v[n->arg[0]].op != OP_CONST || p->nodes.v[n->arg[0]].type != DT_I32))
			return true;
	}
	return false;
}

/* The type of the carry once it was set to a value of type t. */
static enum err_code check_carry_type(const struct program *p, int carry, enum dtype t, bool is_const,
				      struct srcloc loc, enum dtype *out, struct err *e)
{
	const struct carry *c = carry_at(p, carry);

	*out = t == DT_F64 ? DT_F64 : c->type;
	if (c->type == DT_I32 && dtype_is_float(t))
		return err_set(e, ERR_INPUT, loc, c->is_typed ? "carry '%s' holds i32, and the value is %s; cast this value "
			"to i32" : "carry '%s' holds i32, for it was set to integers first, and the value is %s; cast this "
			"value to i32, or declare the carry with \"f32\" behind the initial number", c->name, dtype_name(t));
	if (t == DT_I32 && !is_const && is_i32_value(c->init) && !c->is_typed && !carry_is_typed(p, carry))
		*out = DT_I32;
	return OK;
}

/* Do the value's axes and the present loop allow the carry to be set? */
static enum err_code check_set(const struct program *p, int carry, int value, struct srcloc loc, struct err *e)
{
	const struct carry *c = carry_at(p, carry);
	const struct node *v = node_at(p, value);

	TRY(check_carry(p, carry, loc, e));
	TRY(check_value(p, value, loc, e));
	for (int i = 0; i < v->naxes; i++) {
		const char *name = p->axes.v[v->axis[i]].name;

		if (!ints_hold(c->axis, c->naxes, v->axis[i]))
			return err_set(e, ERR_INPUT, loc, "carry '%s' has axes %s, and the value also '%s'; reduce the "
				"value over '%s' or declare the carry with it", c->name, axes_phrase(p, c->naxes,
				c->axis).s, name, name);
	}
	for (int i = 0; i < c->naxes; i++) {
		const char *name = p->axes.v[c->axis[i]].name;

		if (!program_axis_bound(p, c->loop, c->axis[i]) && program_axis_bound(p, p->cur_loop, c->axis[i]))
			return err_set(e, ERR_INPUT, loc, "carry '%s' holds all of axis '%s', but %s sets a tile of it "
				"at a time; declare the carry inside the loop or without '%s'", c->name, name,
				loop_phrase(p, loop_over(p, p->cur_loop, c->axis[i])).s, name);
	}
	return OK;
}

static void build_set(struct program *p, int carry, int value, enum dtype type, struct srcloc loc)
{
	struct node n;

	p->carries.v[carry].type = type;
	n = node_of_carry(p, OP_SET, carry, loc);
	n.arg[0] = value;
	build_node(p, &n);
}

enum err_code program_set(struct program *p, int carry, int value, struct srcloc loc, struct err *e)
{
	const struct node *v = node_at(p, value);
	enum dtype type;

	TRY(check_set(p, carry, value, loc, e));
	TRY(check_carry_type(p, carry, v->type, v->op == OP_CONST, loc, &type, e));
	build_set(p, carry, value, type, loc);
	return OK;
}

/* Is the value a product that stands last in the present body and that nothing has
 * used, so that it may as well begin from the carry's value? */
static bool can_accumulate(const struct program *p, int carry, int value, enum dtype type)
{
	const struct node *v = node_at(p, value);
	const struct carry *c = carry_at(p, carry);
	struct items body = program_body(p, p->cur_phase, p->cur_loop);
	const struct item *last = body.n ? &body.v[body.n - 1] : NULL;

	if (v->op != OP_MMA || v->ref != NONE || v->type != type)
		return false;
	/* No later task: so no later node but constants, and no get or set between. */
	if (!last || last->is_loop || last->id != v->task)
		return false;
	return same_axes(v->naxes, v->axis, c->naxes, c->axis);
}

enum err_code program_accumulate(struct program *p, int carry, int value, struct srcloc loc, struct err *e)
{
	const struct node *v = node_at(p, value);
	enum dtype type, of[2];
	struct node get, add;

	TRY(check_set(p, carry, value, loc, e));
	TRY(check_carry_type(p, carry, v->type, v->op == OP_CONST, loc, &type, e));
	if (can_accumulate(p, carry, value, type)) {
		p->carries.v[carry].type = type;
		p->nodes.v[value].ref = carry;
		return OK;
	}
	of[0] = type;
	of[1] = v->type;
	get = node_of_carry(p, OP_GET, carry, loc);
	get.type = type;
	add = get;
	add.op = OP_ADD;
	add.ref = NONE;
	op_result_type(OP_ADD, of, &add.type);
	if (type == DT_I32)
		TRY(check_carry_type(p, carry, add.type, false, loc, &type, e));
	p->carries.v[carry].type = type;
	add.arg[1] = value;
	add.arg[0] = build_node(p, &get);
	build_set(p, carry, build_node(p, &add), type, loc);
	return OK;
}
