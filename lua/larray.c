#include "lcore.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tile/random.h"


enum {
	STOP_EVERY = 1 << 16,		/* elements between two looks at Ctrl-C */
	BLOCK = 1 << 10,		/* elements that are compared at a time */
	SHOW_ELEMENTS = 8,
};

struct array *check_array(lua_State *L, int idx, const char *what)
{
	struct array *a = luaL_testudata(L, idx, ARRAY_CLASS);

	if (!a || !a->data)
		throw_type(L, idx, what, "array");
	return a;
}

void array_show_shape(char *buf, size_t size, int rank, const int64_t *dim)
{
	size_t used = (size_t)snprintf(buf, size, "{");

	for (int i = 0; i < rank && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%lld", i ? ", " : "", (long long)dim[i]);
	if (used < size)
		snprintf(buf + used, size - used, "}");
}

/* "bf16 {64, 128}" */
void array_show(char *buf, size_t size, const struct array *a)
{
	size_t n = (size_t)snprintf(buf, size, "%s ", dtype_name(a->type));

	array_show_shape(buf + n, size - n, a->rank, a->dim);
}

/* Elements of a shape; 0 if they are more than any memory. */
static int64_t count_elements(int rank, const int64_t *dim)
{
	int64_t n = 1;

	for (int i = 0; i < rank; i++) {
		if (dim[i] > INT64_MAX / 64 / n)
			return 0;
		n *= dim[i];
	}
	return n;
}

struct array *array_new(lua_State *L, const char *what, enum dtype type, int rank, const int64_t *dim)
{
	struct host *h = enter(L);
	struct array *a = lua_newuserdatauv(L, sizeof(*a), 0);
	char thing[160];

	*a = (struct array){ .mem = &h->mem, .type = type, .rank = rank };
	luaL_setmetatable(L, ARRAY_CLASS);
	memcpy(a->dim, dim, (size_t)rank * sizeof(*dim));
	a->n = count_elements(rank, dim);
	array_show(thing, sizeof(thing), a);
	if (a->n == 0)
		throw_msg(L, "%s: %s is too large", what, thing);
	a->bytes = dtype_bytes(type, (size_t)a->n);
	check_memory(L, what, thing, a->bytes);
	account(L, a->bytes);
	enter(L);
	a->data = mem_get(a->mem, a->bytes);
	memset(a->data, 0, a->bytes);
	return a;
}

static int array_gc_l(lua_State *L)
{
	struct array *a = luaL_checkudata(L, 1, ARRAY_CLASS);

	if (!by_collector(L))
		return 0;
	if (a->data)
		mem_put(a->mem, a->data, a->bytes);
	a->data = NULL;
	return 0;
}

/* elements --------------------------------------------------------------- */

static void push_element(lua_State *L, const struct array *a, int64_t i)
{
	double v = dtype_load(a->type, a->data, (size_t)i);

	if (a->type == DT_BOOL)
		lua_pushboolean(L, v != 0);
	else if (dtype_is_float(a->type))
		lua_pushnumber(L, v);
	else
		lua_pushinteger(L, (lua_Integer)v);
}

static double check_element(lua_State *L, int idx, const char *what, const struct array *a)
{
	if (a->type == DT_BOOL && lua_isboolean(L, idx))
		return lua_toboolean(L, idx);
	return check_real(L, idx, what, "an element");
}

/* How an element is set: "; it is array:set(value, i, j), with the value first". */
static void signature_of_set(char *out, size_t size, const struct array *a)
{
	int n = snprintf(out, size, "; it is array:set(value");

	for (int i = 0; i < a->rank && n < (int)size; i++)
		n += snprintf(out + n, size - (size_t)n, i < 4 ? ", %c" : ", i%d", i < 4 ? 'i' + i : i + 1);
	if (n < (int)size)
		snprintf(out + n, size - (size_t)n, "), with the value first");
}

/* Arguments first, ... are one position a dimension; the flat one, from 0. */
static int64_t check_position(lua_State *L, const struct array *a, int first, const char *what)
{
	char got[SHOW_MAX], call[128] = "";
	int64_t at = 0, v;
	int n = lua_gettop(L) - first + 1;

	if (first > 2)
		signature_of_set(call, sizeof(call), a);
	if (n != a->rank)
		throw_msg(L, "%s: the array has %d dimension%s, %d position%s given%s", what, a->rank, a->rank == 1 ?
			"" : "s",
			n < 0 ? 0 : n, n == 1 ? " is" : "s are", call);
	for (int i = 0; i < a->rank; i++) {
		if (!is_integer(L, first + i, &v) || v < 1 || v > a->dim[i])
			throw_msg(L, "%s: position %d must be an integer from 1 to %lld, got %s%s", what, i + 1,
				(long long)a->dim[i], show(L, first + i, got), call);
		at = at * a->dim[i] + v - 1;
	}
	return at;
}

static int array_get_l(lua_State *L)
{
	const struct array *a = check_array(L, 1, "get");

	push_element(L, a, check_position(L, a, 2, "get"));
	return 1;
}

static int array_set_l(lua_State *L)
{
	struct array *a = check_array(L, 1, "set");
	double v = 0;
	int64_t at;

	if (lua_gettop(L) > 1)
		v = check_element(L, 2, "set", a);
	at = check_position(L, a, 3, "set");
	dtype_store(a->type, a->data, (size_t)at, v);
	return 0;
}

/* a[i] outside of the array is nil, as of a table. */
static int array_index_l(lua_State *L)
{
	const struct array *a = check_array(L, 1, "index");
	int64_t i;

	if (!is_integer(L, 2, &i))
		return class_index(L);
	if (i < 1 || i > a->n)
		return 0;
	push_element(L, a, i - 1);
	return 1;
}

static int array_newindex_l(lua_State *L)
{
	struct array *a = check_array(L, 1, "index");
	int64_t i = check_integer(L, 2, "array", "position", 1, a->n);

	dtype_store(a->type, a->data, (size_t)i - 1, check_element(L, 3, "array", a));
	return 0;
}

RETURNS(array_len, lua_pushinteger(L, check_array(L, 1, "length")->n))

static int array_shape_l(lua_State *L)
{
	const struct array *a = check_array(L, 1, "shape");

	PUSH_LIST(L, i, a->rank, lua_pushinteger(L, a->dim[i]));
	return 1;
}

RETURNS(array_dtype, lua_pushstring(L, dtype_name(check_array(L, 1, "dtype")->type)))

/* filling ---------------------------------------------------------------- */

static void fill_number(lua_State *L, struct array *a, double v)
{
	for (int64_t i = 0; i < a->n; i++) {
		if (i % STOP_EVERY == 0)
			check_stop(L);
		dtype_store(a->type, a->data, (size_t)i, v);
	}
}

static void fill_table(lua_State *L, struct array *a, int idx, const char *what)
{
	if ((int64_t)lua_rawlen(L, idx) != a->n)
		throw_msg(L, "%s: %lld elements are wanted, the table has %lld", what,
			(long long)a->n, (long long)lua_rawlen(L, idx));
	for (int64_t i = 0; i < a->n; i++) {
		lua_rawgeti(L, idx, i + 1);
		dtype_store(a->type, a->data, (size_t)i, check_element(L, -1, what, a));
		lua_pop(L, 1);
	}
}

static void fill_function(lua_State *L, struct array *a, int idx, const char *what)
{
	int64_t pos[RANK_MAX] = { 0 };

	luaL_checkstack(L, RANK_MAX + 2, NULL);
	for (int64_t i = 0; i < a->n; i++) {
		lua_pushvalue(L, idx);
		for (int d = 0; d < a->rank; d++)
			lua_pushinteger(L, pos[d] + 1);
		lua_call(L, a->rank, 1);
		dtype_store(a->type, a->data, (size_t)i, check_element(L, -1, what, a));
		lua_pop(L, 1);
		for (int d = a->rank - 1; d >= 0 && ++pos[d] == a->dim[d]; d--)	/* the last position runs fastest */
			pos[d] = 0;
	}
}

static void fill_from(lua_State *L, struct array *a, int idx, const char *what)
{
	switch (lua_type(L, idx)) {
	case LUA_TNONE:
	case LUA_TNIL:
		break;
	case LUA_TTABLE:
		fill_table(L, a, idx, what);
		break;
	case LUA_TFUNCTION:
		fill_function(L, a, idx, what);
		break;
	default:
		fill_number(L, a, check_element(L, idx, what, a));
		break;
	}
}

static int array_fill_l(lua_State *L)
{
	struct array *a = check_array(L, 1, "fill");

	if (lua_isnoneornil(L, 2))
		throw_type(L, 2, "fill", "number, table or function");
	fill_from(L, a, 2, "fill");
	lua_settop(L, 1);
	return 1;
}

/* core.array(dtype, {shape}[, number | table | function]) */
static int array_new_l(lua_State *L)
{
	enum dtype type = check_dtype(L, 1, "array");
	int64_t dim[RANK_MAX];
	char name[SHOW_MAX];
	int64_t rank;
	struct array *a;

	if (lua_type(L, 2) != LUA_TTABLE)
		throw_type(L, 2, "array", "shape {size, ...}");
	rank = (int64_t)lua_rawlen(L, 2);
	if (rank > RANK_MAX)
		throw_msg(L, "array: a shape has at most %d dimensions, got %lld", RANK_MAX, (long long)rank);
	for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1))
		if (!lua_isinteger(L, -2))
			throw_msg(L, "array: a shape is a list of sizes, as in {128, 64}");
	for (int i = 0; i < rank; i++) {
		lua_rawgeti(L, 2, i + 1);
		snprintf(name, sizeof(name), "dimension %d", i + 1);
		dim[i] = check_integer(L, -1, "array", name, 1, INT64_MAX);
		lua_pop(L, 1);
	}
	lua_settop(L, 3);
	a = array_new(L, "array", type, (int)rank, dim);
	fill_from(L, a, 3, "array");
	return 1;
}

void array_random(lua_State *L, struct array *a, enum dtype as, uint64_t seed, const char *name, int64_t below,
	bool distinct, int64_t row)
{
	struct fill_type type = random_type(as, below, distinct, row);
	uint64_t held = (uint64_t)a->n / (uint64_t)(dtype_bits(as) / dtype_bits(a->type));
	uint64_t state = random_state(seed, name), n = fill_units(type, held);

	for (uint64_t i = 0; i < n; i++) {
		if (i % STOP_EVERY == 0)
			check_stop(L);
		fill_unit(type, a->data, held, state, i);
	}
}

void array_read(lua_State *L, const struct array *a, enum dtype as, double *out)
{
	for (int64_t i = 0; i < a->n; i++) {
		if (i % STOP_EVERY == 0)
			check_stop(L);
		out[i] = dtype_load(a->type, a->data, (size_t)i);
		if (as != a->type)
			out[i] = dtype_round(as, out[i]);
	}
}

/* complete arrays ----------------------------------------------------------------- */

static int array_copy_l(lua_State *L)
{
	const struct array *a = check_array(L, 1, "copy");
	enum dtype type = lua_isnoneornil(L, 2) ? a->type : check_dtype(L, 2, "copy");
	struct array *b = array_new(L, "copy", type, a->rank, a->dim);

	if (type == a->type) {
		memcpy(b->data, a->data, a->bytes);
		return 1;
	}
	for (int64_t i = 0; i < a->n; i++) {
		if (i % STOP_EVERY == 0)
			check_stop(L);
		dtype_store(type, b->data, (size_t)i, dtype_load(a->type, a->data, (size_t)i));
	}
	return 1;
}

/* a:max_error(b) -> greatest |a - b|, norm of a - b over norm of b. NaN anywhere,
 * in one array or in both, makes both results NaN; equal infinities do not differ. */
static int array_max_error_l(lua_State *L)
{
	const struct array *a = check_array(L, 1, "max_error");
	const struct array *b = check_array(L, 2, "max_error");
	double most = 0, diff = 0, norm = 0, x[BLOCK], y[BLOCK];
	char sa[128], sb[128];

	if (a->rank != b->rank || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(*a->dim)) != 0) {
		array_show_shape(sa, sizeof(sa), a->rank, a->dim);
		array_show_shape(sb, sizeof(sb), b->rank, b->dim);
		throw_msg(L, "max_error: the arrays have shapes %s and %s", sa, sb);
	}
	for (int64_t from = 0; from < a->n; from += BLOCK) {
		size_t n = (size_t)min_i64(BLOCK, a->n - from);

		if (from % STOP_EVERY == 0)
			check_stop(L);
		dtype_load_many(a->type, a->data, (size_t)from, n, x);
		dtype_load_many(b->type, b->data, (size_t)from, n, y);
		for (size_t i = 0; i < n; i++) {
			double d = x[i] == y[i] ? 0 : fabs(x[i] - y[i]);

			most = d > most ? d : most;
			diff += d * d;		/* NaN if one is */
			norm += isinf(y[i]) ? 0 : y[i] * y[i];
		}
	}
	lua_pushnumber(L, isnan(diff) ? diff : most);
	lua_pushnumber(L, diff == 0 ? 0 : sqrt(diff) / sqrt(norm));
	return 2;
}

/* array bf16 {64, 128}: 0.5 -0.25 ... */
static int array_tostring_l(lua_State *L)
{
	const struct array *a = check_array(L, 1, "tostring");
	char thing[160], element[32];
	luaL_Buffer b;

	array_show(thing, sizeof(thing), a);
	luaL_buffinit(L, &b);
	luaL_addstring(&b, "array ");
	luaL_addstring(&b, thing);
	luaL_addchar(&b, ':');
	for (int64_t i = 0; i < a->n && i < SHOW_ELEMENTS; i++) {
		snprintf(element, sizeof(element), " %.6g", dtype_load(a->type, a->data, (size_t)i));
		luaL_addstring(&b, element);
	}
	if (a->n > SHOW_ELEMENTS)
		luaL_addstring(&b, " ...");
	luaL_pushresult(&b);
	return 1;
}

void lua_open_array(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "get", array_get_l }, { "set", array_set_l }, { "shape", array_shape_l }, { "copy", array_copy_l },
		{ "fill", array_fill_l }, { "max_error", array_max_error_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = { { "dtype", array_dtype_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = {
		{ "__gc", array_gc_l }, { "__index", array_index_l }, { "__newindex", array_newindex_l },
		{ "__len", array_len_l }, { "__tostring", array_tostring_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ ARRAY_CLASS, methods, fields, meta });
	set_function(L, "array", array_new_l);
}
