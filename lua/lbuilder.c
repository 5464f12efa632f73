#include "lcore.h"

#include <string.h>

#include "tile/coverage.h"

/* The builder that lua/std/tile*.lua call. Errors of the user are found there and in the core; here it is only
 * checked that ids are in range. */

#define BUILDER_CLASS "millrace.builder"
#define INDEX_CLASS "millrace.index"

struct builder {
	struct program *p;		/* owned; NULL before, and once it is finished */
	const char *file;		/* last source file, in the program's arena */
	bool busy;			/* in a core call, or left one for want of memory */
};

static struct builder *check_builder(lua_State *L)
{
	struct builder *b = luaL_testudata(L, 1, BUILDER_CLASS);

	enter(L);
	if (!b)
		throw_type(L, 1, "builder", "builder");
	if (!b->p)
		throw_msg(L, "the program is complete; p is of use only while its function runs");
	if (b->busy)
		throw_msg(L, "memory ran out while the program was built; bind it again");
	return b;
}

/* Every core call that changes the program is enclosed in begin_call, which gives the user's line, and done, which
 * raises its error. A call that runs out of memory does not return, and leaves the builder busy. */
static struct srcloc begin_call(lua_State *L, struct builder *b)
{
	b->busy = true;
	return here(L, &b->p->arena, &b->file);
}

static void done(lua_State *L, struct builder *b, enum err_code code, const struct err *e)
{
	b->busy = false;
	if (code)
		throw_err(L, e);
}

static int check_id(lua_State *L, int arg, int n)
{
	lua_Integer id = luaL_checkinteger(L, arg);

	luaL_argcheck(L, id >= 0 && id < n, arg, "no such id");
	return (int)id;
}

static int check_value(lua_State *L, int arg, const struct builder *b)
{
	return check_id(L, arg, b->p->nodes.n);
}

static int check_axis(lua_State *L, int arg, const struct builder *b)
{
	return check_id(L, arg, b->p->axes.n);
}

/* A list of axis ids. */
static int check_axes(lua_State *L, int arg, const struct builder *b, int ids[RANK_MAX])
{
	lua_Integer n;

	luaL_checktype(L, arg, LUA_TTABLE);
	n = (lua_Integer)lua_rawlen(L, arg);
	if (n > RANK_MAX)
		throw_msg(L, "%d axes at most, got %d", RANK_MAX, (int)n);
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, arg, i + 1);
		ids[i] = check_axis(L, -1, b);
		lua_pop(L, 1);
	}
	return (int)n;
}

/* A name, which the program checks; NULL if it is nil and may be. */
static const char *check_name(lua_State *L, int arg, bool optional)
{
	size_t len;
	const char *s;

	if (optional && lua_isnoneornil(L, arg))
		return NULL;
	s = luaL_checklstring(L, arg, &len);
	if (strlen(s) != len)
		throw_msg(L, "a name has no zero bytes, and '%.40s...' has", s);
	return s;
}

static int push_id(lua_State *L, int id)
{
	lua_pushinteger(L, id);
	return 1;
}

/* index expressions: values of their own, by copy ------------------------- */

static int push_index(lua_State *L, const struct index_expr *x)
{
	struct index_expr *box = lua_newuserdatauv(L, sizeof(*box), 0);

	*box = *x;
	luaL_setmetatable(L, INDEX_CLASS);
	return 1;
}

static struct index_expr check_index(lua_State *L, int arg)
{
	const struct index_expr *x = luaL_testudata(L, arg, INDEX_CLASS);

	return x ? *x : index_const(luaL_checkinteger(L, arg));
}

/* An expression whose axes are the builder's. */
static struct index_expr check_own_index(lua_State *L, int arg, const struct builder *b)
{
	struct index_expr x = check_index(L, arg);

	for (int i = 0; i < x.n; i++)
		luaL_argcheck(L, x.term[i].axis < b->p->axes.n, arg, "no such axis");
	luaL_argcheck(L, x.value <= b->p->nodes.n, arg, "no such value");
	return x;
}

/* core.index_axis(id) */
static int index_axis_l(lua_State *L)
{
	struct index_expr x = index_axis(check_id(L, 1, AXES_MAX));

	return push_index(L, &x);
}

/* core.index_value(id) */
static int index_value_l(lua_State *L)
{
	struct index_expr x = index_of_value(check_id(L, 1, INT_MAX));

	return push_index(L, &x);
}

static enum err_code index_arith(const char *op, const struct index_expr *a,
	const struct index_expr *b, struct index_expr *out, struct err *e)
{
	struct index_expr minus;

	if (op[0] == '+')
		return index_add(a, b, out, e);
	if (op[0] == '-') {
		TRY(index_scale(b, -1, &minus, e));
		return index_add(a, &minus, out, e);
	}
	if (op[0] == '*' && a->n == 0)
		return index_scale(b, a->k, out, e);
	if (b->n > 0)
		return err_set(e, ERR_INPUT, NOWHERE,
			"an index expression is a sum of axes times numbers: '%s' needs a number", op);
	if (op[0] == '*')
		return index_scale(a, b->k, out, e);
	return op[0] == '%' ? index_mod(a, b->k, out, e) : index_div(a, b->k, out, e);
}

/* core.index_op(op, a, b), op one of + - * // % */
static int index_op_l(lua_State *L)
{
	const char *op = luaL_checkstring(L, 1);
	struct index_expr a = check_index(L, 2), b = check_index(L, 3), out;
	struct err e;

	raise_if(L, index_arith(op, &a, &b, &out, &e), &e);
	return push_index(L, &out);
}

/* b:show_index(x) -> text */
static int builder_show_index_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	struct index_expr x = check_own_index(L, 2, b);
	const char *names[AXES_MAX];
	struct buf text;

	for (int i = 0; i < b->p->axes.n; i++)
		names[i] = b->p->axes.v[i].name;
	buf_init(&text, scratch_push(L));
	if (x.value)
		buf_puts(&text, x.n || x.k ? "a value + " : "a value");
	if (!x.value || x.n || x.k)
		index_print(&x, names, &text);
	return push_buf(L, &text);
}

/* axes, tensors, phases --------------------------------------------------- */

/* b:axis(name, size[, multiple[, like]]) -> id. multiple: the size is known at launch, as that of axis `like` */
static int builder_axis_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	const char *name = check_name(L, 2, false);
	lua_Integer size = luaL_checkinteger(L, 3), multiple = luaL_optinteger(L, 4, 0);
	struct err e;
	int id;

	done(L, b, program_axis(b->p, name, size, begin_call(L, b), &id, &e), &e);
	if (!lua_isnoneornil(L, 4))
		done(L, b, program_axis_any(b->p, id, multiple, lua_isnoneornil(L, 5) ? NONE : check_axis(L, 5, b),
			begin_call(L,
			b), &e), &e);
	return push_id(L, id);
}

/* b:tensor(role, name, dtype, axes, sorted) -> id */
static int builder_tensor_l(lua_State *L)
{
	/* ORDER tensor_role */
	static const char *const roles[] = { "input", "output", "temp", NULL };
	struct builder *b = check_builder(L);
	enum tensor_role role = (enum tensor_role)luaL_checkoption(L, 2, NULL, roles);
	const char *name = check_name(L, 3, false);
	enum dtype type = check_dtype(L, 4, roles[role]);
	int dims[RANK_MAX], rank = check_axes(L, 5, b, dims), id;
	struct err e;

	done(L, b, program_tensor(b->p, role, name, type, rank, dims, begin_call(L, b), &id, &e), &e);
	if (lua_toboolean(L, 6))
		done(L, b, program_sorted(b->p, id, begin_call(L, b), &e), &e);
	return push_id(L, id);
}

/* b:by_address(tensor) */
static int builder_by_address_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int tensor = check_id(L, 2, b->p->tensors.n);
	struct err e;

	done(L, b, program_by_address(b->p, tensor, begin_call(L, b), &e), &e);
	return 0;
}

static int builder_batch_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int axis = check_axis(L, 2, b);
	struct err e;

	done(L, b, program_batch(b->p, axis, begin_call(L, b), &e), &e);
	return 0;
}

/* Define a method that begins a phase or an sTask with a name, and one that ends a phase, a loop or an sTask. */
#define BEGIN(name) \
	static int builder_##name##_l(lua_State *L) \
	{ \
		struct builder *b = check_builder(L); \
		const char *text = check_name(L, 2, false); \
		struct err e; \
		done(L, b, program_##name(b->p, text, begin_call(L, b), &e), &e); \
		return 0; \
	}
#define END(name) \
	static int builder_##name##_l(lua_State *L) \
	{ \
		struct builder *b = check_builder(L); \
		struct err e; \
		done(L, b, program_##name(b->p, begin_call(L, b), &e), &e); \
		return 0; \
	}

BEGIN(phase_begin)
BEGIN(task_begin)
END(phase_end)
END(loop_end)
END(task_end)

/* b:loop_begin(axes, from or nil, upto or nil, batch) */
static int builder_loop_begin_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int axes[RANK_MAX], n = check_axes(L, 2, b, axes);
	bool has_from = !lua_isnoneornil(L, 3), has_upto = !lua_isnoneornil(L, 4);
	struct index_expr from, upto;
	struct err e;

	if (has_from)
		from = check_own_index(L, 3, b);
	if (has_upto)
		upto = check_own_index(L, 4, b);
	done(L, b, program_loop_begin(b->p, n, axes, has_from ? &from : NULL,
		has_upto ? &upto : NULL, begin_call(L, b), &e), &e);
	if (lua_toboolean(L, 5))
		done(L, b, program_loop_batch(b->p, begin_call(L, b), &e), &e);
	return 0;
}

/* b:loop_length(length, typical): behind loop_begin; typical 0: none is given */
static int builder_loop_length_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	struct index_expr length = check_own_index(L, 2, b);
	int64_t typical = luaL_checkinteger(L, 3);
	struct err e;

	done(L, b, program_loop_length(b->p, &length, typical, begin_call(L, b), &e), &e);
	return 0;
}

/* b:loop_keeps_steps(typical): before loop_length; typical 0: none is given */
static int builder_loop_keeps_steps_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	struct err e;

	done(L, b, program_loop_keeps_steps(b->p, luaL_checkinteger(L, 2), begin_call(L, b), &e), &e);
	return 0;
}

/* loads, stores, products ------------------------------------------------- */

/* The list of index expressions at arg, one for each dimension of the tensor. */
static void check_indices(lua_State *L, int arg, const struct builder *b, int tensor, struct index_expr out[RANK_MAX])
{
	luaL_checktype(L, arg, LUA_TTABLE);
	for (int i = 0; i < b->p->tensors.v[tensor].rank; i++) {
		lua_rawgeti(L, arg, i + 1);
		out[i] = check_own_index(L, -1, b);
		lua_pop(L, 1);
	}
}

/* b:load(name or nil, tensor, index) -> id */
static int builder_load_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	const char *name = check_name(L, 2, true);
	int tensor = check_id(L, 3, b->p->tensors.n), id;
	struct index_expr index[RANK_MAX];
	struct err e;

	check_indices(L, 4, b, tensor, index);
	done(L, b, program_load(b->p, name, tensor, index, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:load_unpacks(load) -> axis of words, axis of elements, their dtype: what b:unpack takes; nothing: the load gives no
 * words of elements */
static int builder_load_unpacks_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int load = check_value(L, 2, b), from, to;
	enum dtype type;

	if (!program_load_unpacks(b->p, load, &from, &to, &type))
		return 0;
	lua_pushinteger(L, from);
	lua_pushinteger(L, to);
	lua_pushstring(L, dtype_name(type));
	return 3;
}

/* b:store(name or nil, tensor, index or nil, value), and b:add_to */
static int builder_store(lua_State *L, bool adds)
{
	struct builder *b = check_builder(L);
	const char *name = check_name(L, 2, true);
	int tensor = check_id(L, 3, b->p->tensors.n);
	bool indexed = !lua_isnoneornil(L, 4);
	int value = check_value(L, 5, b);
	struct index_expr index[RANK_MAX];
	struct err e;

	if (indexed)
		check_indices(L, 4, b, tensor, index);
	done(L, b, (adds ? program_add : program_store)(b->p, name, tensor, indexed ? index : NULL, value,
		begin_call(L, b), &e), &e);
	return 0;
}

static int builder_store_l(lua_State *L)
{
	return builder_store(L, false);
}

static int builder_add_l(lua_State *L)
{
	return builder_store(L, true);
}

/* b:mma(name or nil, a, b) -> id */
static int builder_mma_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	const char *name = check_name(L, 2, true);
	int x = check_value(L, 3, b), y = check_value(L, 4, b), id;
	struct err e;

	done(L, b, program_mma(b->p, name, x, y, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* carries ----------------------------------------------------------------- */

/* b:carry(name, axes, init[, dtype]) -> id */
static int builder_carry_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	const char *name = check_name(L, 2, false);
	int axes[RANK_MAX], n = check_axes(L, 3, b, axes), id;
	double init = luaL_checknumber(L, 4);
	bool typed = !lua_isnoneornil(L, 5);
	enum dtype type = typed ? check_dtype(L, 5, "carry") : DT_F32;
	struct err e;

	done(L, b, program_carry(b->p, name, n, axes, init, begin_call(L, b), &id, &e), &e);
	if (typed)
		done(L, b, program_type_carry(b->p, id, type, begin_call(L, b), &e), &e);
	return push_id(L, id);
}

static int builder_get_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int carry = check_id(L, 2, b->p->carries.n), id;
	struct err e;

	done(L, b, program_get(b->p, carry, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:set(carry, value), b:add(carry, value) */
#define UPDATE(name) \
	static int builder_##name##_l(lua_State *L) \
	{ \
		struct builder *b = check_builder(L); \
		int carry = check_id(L, 2, b->p->carries.n), value = check_value(L, 3, b); \
		struct err e; \
		done(L, b, program_##name(b->p, carry, value, begin_call(L, b), &e), &e); \
		return 0; \
	}

UPDATE(set)
UPDATE(accumulate)

/* values ------------------------------------------------------------------ */

static int builder_const_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	double k = luaL_checknumber(L, 2);
	struct err e;
	int id;

	done(L, b, program_const(b->p, k, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:index(axis) -> id of the index along it as a value */
static int builder_index_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int axis = check_axis(L, 2, b), id;
	struct err e;

	done(L, b, program_index(b->p, axis, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:op(name, value, ...) -> id, as many values as the operation takes */
static int builder_op_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	enum op op = op_find(OP_ELEMENTWISE, luaL_checkstring(L, 2));
	int args[3] = { NONE, NONE, NONE }, id;
	struct err e;

	luaL_argcheck(L, op != OP_COUNT, 2, "no such operation");
	for (int i = 0; i < op_arity(op); i++)
		args[i] = check_value(L, 3 + i, b);
	done(L, b, program_op(b->p, op, args, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:cast(value, dtype) -> id */
static int builder_cast_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int value = check_value(L, 2, b), id;
	enum dtype type = check_dtype(L, 3, "to");
	struct err e;

	done(L, b, program_cast(b->p, value, type, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:reduce(name, value, axis) -> id */
static int builder_reduce_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	enum op op = op_find(OP_REDUCTION, luaL_checkstring(L, 2));
	int value = check_value(L, 3, b), axis = check_axis(L, 4, b), id;
	struct err e;

	luaL_argcheck(L, op != OP_COUNT, 2, "no such operation");
	done(L, b, program_reduce(b->p, op, value, axis, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:at(value, axis, index) -> id */
static int builder_at_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int value = check_value(L, 2, b), axis = check_axis(L, 3, b), id;
	struct index_expr index = check_own_index(L, 4, b);
	struct err e;

	done(L, b, program_at(b->p, value, axis, &index, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:unpack(value, from, to, dtype) -> id */
static int builder_unpack_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int value = check_value(L, 2, b), from = check_axis(L, 3, b), to = check_axis(L, 4, b), id;
	enum dtype type = check_dtype(L, 5, "unpack");
	struct err e;

	done(L, b, program_unpack(b->p, value, from, to, type, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:expand(value, which, axis) -> id */
static int builder_expand_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int value = check_value(L, 2, b), which = check_value(L, 3, b), axis = check_axis(L, 4, b), id;
	struct err e;

	done(L, b, program_expand(b->p, value, which, axis, begin_call(L, b), &id, &e), &e);
	return push_id(L, id);
}

/* b:show(value) -> "bf16 {m, k}" */
static int builder_show_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	int id = check_value(L, 2, b), words = NONE, elements = NONE;
	const struct node *v = &b->p->nodes.v[id];
	enum dtype type = v->type;
	struct buf text;

	program_load_unpacks(b->p, id, &words, &elements, &type);
	buf_init(&text, scratch_push(L));
	buf_printf(&text, "%s {", dtype_name(type));
	for (int i = 0; i < v->naxes; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", b->p->axes.v[v->axis[i] == words ? elements :
			v->axis[i]].name);
	buf_putc(&text, '}');
	return push_buf(L, &text);
}

/* b:dtype(value) -> "bf16" */
static int builder_dtype_l(lua_State *L)
{
	struct builder *b = check_builder(L);

	lua_pushstring(L, dtype_name(b->p->nodes.v[check_value(L, 2, b)].type));
	return 1;
}

/* b:first_axis(value) -> the name of an axis of the value; nil: it has none */
static int builder_first_axis_l(lua_State *L)
{
	struct builder *b = check_builder(L);
	const struct node *n = &b->p->nodes.v[check_value(L, 2, b)];

	if (!n->naxes)
		return 0;
	lua_pushstring(L, b->p->axes.v[n->axis[0]].name);
	return 1;
}

/* completion -------------------------------------------------------------- */

/* builder:option(text) */
static int builder_option_l(lua_State *L)
{
	struct builder *b = check_builder(L);

	b->busy = true;
	program_option(b->p, luaL_checkstring(L, 2));
	b->busy = false;
	return 0;
}

/* b:finish() -> bound program */
static int builder_finish_l(lua_State *L)
{
	void **box = box_new(L, PROGRAM_CLASS, 0);
	struct builder *b = check_builder(L);
	enum err_code code;
	struct err e;

	b->busy = true;
	code = program_finish(b->p, &e);
	if (!code)
		code = coverage_check(&b->p->arena, b->p, &e);
	if (!code)
		code = program_check_meaning(b->p, &e);
	done(L, b, code, &e);
	*box = b->p;
	b->p = NULL;
	return 1;
}

static int builder_gc_l(lua_State *L)
{
	struct builder *b = luaL_checkudata(L, 1, BUILDER_CLASS);

	if (!by_collector(L))
		return 0;
	program_free(b->p);
	b->p = NULL;
	return 0;
}

/* core.operations() -> list of {name=, arity=, reduces=, call=, help=}, see tile/ops.def */
static int operations_l(lua_State *L)
{
	lua_newtable(L);
	for (int i = 0; i < OP_COUNT; i++) {
		enum op op = (enum op)i;

		if (op_kind(op) == OP_SPECIAL || op_kind(op) == OP_ERROR_BOUND)
			continue;
		lua_newtable(L);
		set_text(L, "name", op_name(op));
		set_integer(L, "arity", op_arity(op));
		set_bool(L, "reduces", op_kind(op) == OP_REDUCTION);
		set_text(L, "call", op_call(op));
		if (op_help(op))
			set_text(L, "help", op_help(op));
		lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	}
	return 1;
}

/* core.builder(name) */
static int builder_new_l(lua_State *L)
{
	struct host *h = enter(L);
	const char *name = luaL_checkstring(L, 1);
	struct builder *b = lua_newuserdatauv(L, sizeof(*b), 0);

	*b = (struct builder){ 0 };
	luaL_setmetatable(L, BUILDER_CLASS);
	b->p = program_new(&h->mem, name);
	return 1;
}

void lua_open_builder(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "axis", builder_axis_l }, { "tensor", builder_tensor_l }, { "batch", builder_batch_l },
		{ "by_address", builder_by_address_l },
		{ "phase_begin", builder_phase_begin_l }, { "phase_end", builder_phase_end_l },
		{ "loop_begin", builder_loop_begin_l },
		{ "loop_length", builder_loop_length_l }, { "loop_keeps_steps", builder_loop_keeps_steps_l },
			{ "loop_end", builder_loop_end_l },
		{ "task_begin", builder_task_begin_l }, { "task_end", builder_task_end_l },
		{ "load", builder_load_l }, { "load_unpacks", builder_load_unpacks_l }, { "store", builder_store_l },
			{ "add_to", builder_add_l }, { "mma", builder_mma_l },
		{ "carry", builder_carry_l }, { "get", builder_get_l }, { "set", builder_set_l },
		{ "add", builder_accumulate_l }, { "const", builder_const_l }, { "index", builder_index_l },
		{ "op", builder_op_l }, { "cast", builder_cast_l }, { "reduce", builder_reduce_l },
		{ "at", builder_at_l }, { "unpack", builder_unpack_l }, { "expand", builder_expand_l }, { "show", builder_show_l }, { "dtype", builder_dtype_l },
		{ "first_axis", builder_first_axis_l }, { "show_index", builder_show_index_l },
		{ "finish", builder_finish_l }, { "option", builder_option_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", builder_gc_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ BUILDER_CLASS, methods, NULL, meta });
	class_new(L, &(struct class_def){ .name = INDEX_CLASS });
	set_function(L, "builder", builder_new_l);
	set_function(L, "operations", operations_l);
	set_function(L, "index_axis", index_axis_l);
	set_function(L, "index_value", index_value_l);
	set_function(L, "index_op", index_op_l);
}
