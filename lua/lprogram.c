#include "lcore.h"

#include <string.h>

#include "tile/interp.h"

const struct program *check_program(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, PROGRAM_CLASS, what);
}

static int program_gc_l(lua_State *L)
{
	program_free(box_take(L, PROGRAM_CLASS));
	return 0;
}

/* fields ------------------------------------------------------------------ */

static int program_name_l(lua_State *L)
{
	lua_pushstring(L, check_program(L, 1, "name")->name);
	return 1;
}

/* name -> size */
static int program_axes_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "axes");

	lua_createtable(L, 0, p->axes.n);
	for (int i = 0; i < p->axes.n; i++) {
		lua_pushinteger(L, p->axes.v[i].size);
		lua_setfield(L, -2, p->axes.v[i].name);
	}
	return 1;
}

void tensor_dims(const struct program *p, int tensor, int64_t dim[RANK_MAX])
{
	const struct tensor *t = &p->tensors.v[tensor];

	for (int i = 0; i < t->rank; i++)
		dim[i] = p->axes.v[t->dim[i]].size;
}

/* ORDER tensor_role */
static const char *const role_names[] = { "input", "output", "temp" };

static void push_tensor(lua_State *L, const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];

	lua_createtable(L, 0, 5);
	lua_pushstring(L, t->name);
	lua_setfield(L, -2, "name");
	lua_pushstring(L, role_names[t->role]);
	lua_setfield(L, -2, "role");
	lua_pushstring(L, dtype_name(t->type));
	lua_setfield(L, -2, "dtype");
	lua_createtable(L, t->rank, 0);
	lua_createtable(L, t->rank, 0);
	for (int i = 0; i < t->rank; i++) {	/* -- tensor shape axes */
		lua_pushinteger(L, p->axes.v[t->dim[i]].size);
		lua_rawseti(L, -3, i + 1);
		lua_pushstring(L, p->axes.v[t->dim[i]].name);
		lua_rawseti(L, -2, i + 1);
	}
	lua_setfield(L, -3, "axes");
	lua_setfield(L, -2, "shape");
}

/* list of {name=, role=, dtype=, shape=, axes=} */
static int program_tensors_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "tensors");

	lua_createtable(L, p->tensors.n, 0);
	for (int i = 0; i < p->tensors.n; i++) {
		push_tensor(L, p, i);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

static int program_tostring_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "tostring");
	struct buf text;

	enter(L);
	buf_init(&text, scratch_push(L));
	program_print(p, &text);
	return push_buf(L, &text);
}

/* inputs ------------------------------------------------------------------ */

/* bound:inputs{seed=1} -> name -> array of random values */
static int program_inputs_l(lua_State *L)
{
	static const char *const names[] = { "seed" };
	const struct program *p = check_program(L, 1, "inputs");
	int64_t dim[RANK_MAX], seed = 1;

	options_check(L, 2, "inputs", names, LEN(names));
	option_whole(L, 2, "inputs", "seed", INT64_MIN, INT64_MAX, &seed);
	lua_newtable(L);
	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];

		if (t->role != TENSOR_INPUT)
			continue;
		tensor_dims(p, i, dim);
		array_random(L, array_new(L, "inputs", t->type, t->rank, dim), (uint64_t)seed,
			t->name);
		lua_setfield(L, -2, t->name);
	}
	return 1;
}

/* Push the array that the table at idx has for an input. */
static void push_checked(lua_State *L, int idx, const char *what, const struct program *p,
	int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];
	char got[SHOW_MAX], has[128], wants[128];
	int64_t dim[RANK_MAX];
	const struct array *a;

	if (lua_getfield(L, idx, t->name) == LUA_TNIL)
		throw_msg(L, "%s: input '%s' is missing", what, t->name);
	a = luaL_testudata(L, -1, ARRAY_CLASS);
	if (!a || !a->data)
		throw_msg(L, "%s: input '%s' must be an array, got %s", what, t->name,
			show(L, -1, got));
	tensor_dims(p, tensor, dim);
	array_show_shape(has, sizeof(has), a->rank, a->dim);
	array_show_shape(wants, sizeof(wants), t->rank, dim);
	if (strcmp(has, wants) != 0)
		throw_msg(L, "%s: input '%s' has shape %s, the program wants %s", what, t->name,
			has, wants);
}

/* The string at `key` is the name of an input. */
static void check_input_name(lua_State *L, int key, const char *what, const struct program *p,
	const char **names)
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

/* reference --------------------------------------------------------------- */

/* The tiling that the option asks for, or the reference's own. */
static void reference_extents(lua_State *L, int opts, const struct program *p, struct arena *a,
	struct extents *out)
{
	struct tiling tiling;
	enum err_code code;
	struct err e;

	if (option_push(L, opts, "reference", "tile", LUA_TTABLE)) {
		check_tiling(L, -1, "reference", p, &tiling);
		lua_pop(L, 1);
		code = extents_infer(a, p, &tiling, out, &e);
	} else {
		code = interp_extents(a, p, out, &e);
	}
	if (code)
		throw_err(L, &e);
}

/* Before any time is spent on converting inputs. */
static void check_reference_room(lua_State *L, const struct program *p)
{
	size_t bytes = 0;

	for (int i = 0; i < p->tensors.n; i++)
		bytes += dtype_bytes(DT_F64, (size_t)tensor_elements(p, i));
	check_room(L, "reference", "every tensor in f64", bytes);
}

/* The elements of a tensor as doubles: those of the input, or room for the others.
 * An output is a new array in the table at `results`. */
static double *tensor_data(lua_State *L, int inputs, int results, const struct program *p,
	int tensor, struct arena *a)
{
	const struct tensor *t = &p->tensors.v[tensor];
	int64_t dim[RANK_MAX];
	struct array *array;
	double *data;

	if (t->role == TENSOR_OUTPUT) {
		tensor_dims(p, tensor, dim);
		array = array_new(L, "reference", DT_F64, t->rank, dim);
		lua_setfield(L, results, t->name);
		return array->data;
	}
	enter(L);
	data = ARENA_ARRAY(a, tensor_elements(p, tensor), double);
	if (t->role == TENSOR_INPUT) {
		array_read(L, push_input(L, inputs, "reference", t->name), t->type, data);
		lua_pop(L, 1);
	}
	return data;
}

/* bound:reference(inputs[, {tile=, round=}]) -> name -> array of f64 */
static int program_reference_l(lua_State *L)
{
	static const char *const names[] = { "tile", "round" };
	struct host *h = enter(L);
	const struct program *p = check_program(L, 1, "reference");
	struct stop stop = stop_of(h);
	struct extents extents;
	bool round = false;
	struct arena *a;
	double **data;
	struct err e;

	lua_settop(L, 3);
	check_inputs(L, 2, "reference", p);
	options_check(L, 3, "reference", names, LEN(names));
	option_bool(L, 3, "reference", "round", &round);
	check_reference_room(L, p);
	lua_newtable(L);			/* -- program inputs options results */
	a = scratch_push(L);
	reference_extents(L, 3, p, a, &extents);
	data = ARENA_ARRAY(a, p->tensors.n, double *);
	for (int i = 0; i < p->tensors.n; i++)
		data[i] = tensor_data(L, 2, 4, p, i, a);
	enter(L);
	if (interp_run(a, &extents, data, round ? INTERP_ROUND : 0, &stop, &e))
		throw_err(L, &e);
	lua_pushvalue(L, 4);
	return 1;
}

void lua_open_program(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "inputs", program_inputs_l }, { "reference", program_reference_l },
		{ NULL, NULL } };
	static const luaL_Reg fields[] = {
		{ "name", program_name_l }, { "axes", program_axes_l },
		{ "tensors", program_tensors_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = {
		{ "__gc", program_gc_l }, { "__tostring", program_tostring_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ PROGRAM_CLASS, methods, fields, meta });
}
