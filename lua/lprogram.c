#include "lplan.h"

#include <string.h>

const struct program *check_program(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, PROGRAM_CLASS, what);
}

BOX_GC(program_gc, PROGRAM_CLASS, program_free)

/* fields ------------------------------------------------------------------ */

RETURNS(program_name, lua_pushstring(L, check_program(L, 1, "name")->name))

/* name -> size */
static int program_axes_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "axes");

	lua_createtable(L, 0, p->axes.n);
	for (int i = 0; i < p->axes.n; i++)
		set_integer(L, p->axes.v[i].name, p->axes.v[i].size);
	copy_close(L, "bound.axes", "prog:bind{", "}");
	return 1;
}

/* core.axis_names(bound) -> list of the names of its axes, as they were declared */
static int axis_names_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "axes");

	PUSH_LIST(L, i, p->axes.n, lua_pushstring(L, p->axes.v[i].name));
	return 1;
}

void tensor_dims(const struct program *p, int tensor, int64_t dim[RANK_MAX])
{
	const struct tensor *t = &p->tensors.v[tensor];

	for (int i = 0; i < t->rank; i++)
		dim[i] = p->axes.v[tensor_declared_axis(t, i)].size;
}

/* ORDER tensor_role */
static const char *const role_names[] = { "input", "output", "temp" };

static void push_tensor(lua_State *L, const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];

	lua_createtable(L, 0, 5);
	set_text(L, "name", t->name);
	set_text(L, "role", role_names[t->role]);
	set_text(L, "dtype", dtype_name(t->element));
	if (t->by_address)
		set_bool(L, "pointers", true);
	lua_createtable(L, t->rank, 0);
	lua_createtable(L, t->rank, 0);
	for (int i = 0; i < t->rank; i++) {	/* -- tensor shape axes */
		const struct axis *axis = &p->axes.v[tensor_declared_axis(t, i)];

		lua_pushinteger(L, axis->size);
		lua_rawseti(L, -3, i + 1);
		lua_pushstring(L, axis->name);
		lua_rawseti(L, -2, i + 1);
	}
	lua_setfield(L, -3, "axes");
	lua_setfield(L, -2, "shape");
}

/* list of {name=, role=, dtype=, shape=, axes=} */
static int program_tensors_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "tensors");

	PUSH_LIST(L, i, p->tensors.n, push_tensor(L, p, i));
	return 1;
}

RETURNS_TEXT(program_tostring, const struct program *, check_program(L, 1, "tostring"), program_print_options(o, &text))

/* inputs ------------------------------------------------------------------ */

#define ARRAYS_CLASS "millrace.arrays"	/* the metatable of inputs and outputs by name, which are plain tables otherwise */

/* Push the first name after `last` of the table at 1 (NULL: the first of all); false, and push nothing, at the end. */
static bool push_next_name(lua_State *L, const char *last)
{
	const char *first = NULL;

	for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
		const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;

		if (name && (!last || strcmp(name, last) > 0) && (!first || strcmp(name, first) < 0))
			first = name;
	}
	if (first)
		lua_pushstring(L, first);
	return first != NULL;
}

/* "A: bf16 {512, 256}", a line for each, by name; values that the user has put there by their types. */
static int arrays_tostring_l(lua_State *L)
{
	const char *last = NULL;
	char thing[160];

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lua_pushliteral(L, "");
	while (push_next_name(L, last)) {
		const struct array *a;

		last = lua_tostring(L, -1);
		lua_pushvalue(L, -1);
		lua_rawget(L, 1);
		a = luaL_testudata(L, -1, ARRAY_CLASS);
		if (a)
			array_show(thing, sizeof(thing), a);
		else
			snprintf(thing, sizeof(thing), "%s", luaL_typename(L, -1));
		lua_pushfstring(L, "%s%s%s: %s", lua_tostring(L, 2), *lua_tostring(L, 2) ? "\n" : "", last, thing);
		lua_replace(L, 2);
		lua_settop(L, 2);
	}
	return 1;
}

void arrays_describe(lua_State *L)
{
	if (luaL_newmetatable(L, ARRAYS_CLASS)) {
		lua_pushcfunction(L, arrays_tostring_l);
		lua_setfield(L, -2, "__tostring");
	}
	lua_setmetatable(L, -2);
}

/* bound:inputs{seed=1} -> name -> array of random values; print shows names, types and shapes */
static int program_inputs_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "inputs");
	int64_t dim[RANK_MAX], seed = 1;

	OPTIONS_CHECK(L, 2, "inputs", "seed");
	option_integer(L, 2, "inputs", "seed", INT64_MIN, INT64_MAX, &seed);
	lua_newtable(L);
	arrays_describe(L);
	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];

		if (t->role != TENSOR_INPUT)
			continue;
		tensor_dims(p, i, dim);
		array_random(L, array_new(L, "inputs", t->element, t->rank, dim), t->type, (uint64_t)seed, t->name,
			t->index_below, t->index_distinct, tensor_sorted_row(p, i));
		lua_setfield(L, -2, t->name);
	}
	return 1;
}

/* Push the array that the table at idx has for an input. */
static void push_checked(lua_State *L, int idx, const char *what, const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];
	char got[SHOW_MAX], has[128], wants[128];
	int64_t dim[RANK_MAX];
	const struct array *a;

	if (lua_getfield(L, idx, t->name) == LUA_TNIL)
		throw_msg(L, "%s: input '%s' is missing", what, t->name);
	a = luaL_testudata(L, -1, ARRAY_CLASS);
	tensor_dims(p, tensor, dim);
	array_show_shape(wants, sizeof(wants), t->rank, dim);
	if (!a || !a->data)
		throw_msg(L, "%s: input '%s' must be an array, got %s; mr.array(\"%s\", %s, {...}) makes one of its elements in "
			"row-major order", what, t->name, show(L, -1, got), dtype_name(t->type), wants);
	array_show_shape(has, sizeof(has), a->rank, a->dim);
	if (strcmp(has, wants) != 0)
		throw_msg(L, "%s: input '%s' has shape %s, the program wants %s", what, t->name, has, wants);
}

/* The string at `key` is the name of an input. */
static void check_input_name(lua_State *L, int key, const char *what, const struct program *p, const char **names)
{
	int n = 0;

	if (lua_type(L, key) != LUA_TSTRING)
		throw_msg(L, "%s: inputs are given by name", what);
	for (int i = 0; i < p->tensors.n; i++)
		if (p->tensors.v[i].role == TENSOR_INPUT)
			names[n++] = p->tensors.v[i].name;
	check_choice(L, key, what, "input", names, n);
}

void check_inputs(lua_State *L, int idx, const char *what, const struct program *p)
{
	const char **names;

	if (lua_type(L, idx) != LUA_TTABLE)
		throw_type(L, idx, what, "table of inputs");
	names = lua_newuserdatauv(L, sizeof(*names) * (size_t)(p->tensors.n + 1), 0);
	lua_pushnil(L);
	while (lua_next(L, idx)) {
		lua_pop(L, 1);
		check_input_name(L, lua_gettop(L), what, p, names);
	}
	lua_pop(L, 1);
	lua_newtable(L);
	for (int i = 0; i < p->tensors.n; i++) {
		if (p->tensors.v[i].role != TENSOR_INPUT)
			continue;
		push_checked(L, idx, what, p, i);
		lua_setfield(L, -2, p->tensors.v[i].name);
	}
	lua_replace(L, idx);
}

struct array *push_input(lua_State *L, int idx, const char *what, const char *name)
{
	lua_getfield(L, idx, name);
	return check_array(L, -1, what);
}

/* core.any_axes(bound) -> {m={max=, multiple=, like=}} of axes whose sizes are known at launch; nil: there are none */
static int any_axes_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "bind");

	if (!program_has_any(p))
		return 0;
	lua_newtable(L);
	for (int i = 0; i < p->axes.n; i++) {
		if (!p->axes.v[i].multiple)
			continue;
		lua_createtable(L, 0, 2);
		set_integer(L, "max", p->axes.v[i].size);
		set_integer(L, "multiple", p->axes.v[i].multiple);
		if (p->axes.v[i].like != NONE)
			set_text(L, "like", p->axes.v[p->axes.v[i].like].name);
		lua_setfield(L, -2, p->axes.v[i].name);
	}
	return 1;
}

/* core.check_sizes(bound, what, {sizes={m=512}}) raises for sizes that the program is not for */
static int check_sizes_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "at_sizes");
	const char *what = luaL_checkstring(L, 2);
	int64_t sizes[AXES_MAX];

	sizes_option(L, 3, what, p, sizes);
	return 0;
}

/* core.check_same(bound, other): raises, at the line, if they differ in more than sizes that `bound` leaves to the
 * launch */
static int check_same_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "bind"), *q = check_program(L, 2, "bind");
	struct err e;

	raise_if(L, program_check_same(scratch_push(L), p, q, &e), &e);
	return 0;
}

void lua_open_program(lua_State *L)
{
	static const luaL_Reg methods[] = { { "inputs", program_inputs_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = {
		{ "name", program_name_l }, { "axes", program_axes_l },
		{ "tensors", program_tensors_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = {
		{ "__gc", program_gc_l }, { "__tostring", program_tostring_l }, { NULL, NULL } };

	static const luaL_Reg functions[] = { { "any_axes", any_axes_l }, { "axis_names", axis_names_l }, { "check_same", check_same_l },
		{ "check_sizes", check_sizes_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ PROGRAM_CLASS, methods, fields, meta });
	luaL_setfuncs(L, functions, 0);
}
