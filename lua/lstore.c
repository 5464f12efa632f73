/* mr.store: rows of the store, and the hashes by which programs are known there. */
#include "lfarm.h"
#include "lplan.h"

#include <string.h>

#include "base/hash.h"
#include "store/store.h"

#define STORE_CLASS "millrace.store"
#define READING_CLASS "millrace.reading"

static struct store *check_store(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, STORE_CLASS, what);
}

BOX_GC(store_gc, STORE_CLASS, store_free)

/* An error of the file is returned as nil and a message, as the caller may go on without the store. Others are
 * raised. */
static int refused(lua_State *L, const struct err *e)
{
	if (e->code != ERR_IO)
		throw_err(L, e);
	lua_pushnil(L);
	lua_pushstring(L, e->msg);
	return 2;
}

/* The registry's field of this address is the only store. */
static const char store_key;

/* core.store() -> the only store of this Lua state; opens no file */
static int store_l(lua_State *L)
{
	struct host *h = enter(L);
	struct arena *a;
	void **box;

	lua_settop(L, 0);
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &store_key) == LUA_TUSERDATA)
		return 1;
	lua_settop(L, 0);
	box = box_new(L, STORE_CLASS, 0);
	a = scratch_push(L);
	enter(L);
	store_new(&h->mem, store_default_path(a), (struct store **)box);
	lua_pushvalue(L, 1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &store_key);
	lua_pushvalue(L, 1);
	return 1;
}

void lua_close_store(lua_State *L)
{
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &store_key) == LUA_TUSERDATA) {
		void **box = lua_touserdata(L, -1);

		store_free(*box);
		*box = NULL;
	}
	lua_pop(L, 1);
}

/* ---- writing rows ---- */

/* The value of a column in the table at idx. A text stays on the stack. */
static struct store_value check_value(lua_State *L, int idx, const struct store_column_info *c)
{
	struct store_value v = { 0 };
	bool yes = false;

	switch (c->type) {
	case STORE_TEXT:
		v.set = option_push(L, idx, "put", c->name, LUA_TSTRING);
		if (v.set)
			v.text = lua_tolstring(L, -1, &v.len);
		break;
	case STORE_REAL:
		v.set = option_real(L, idx, "put", c->name, &v.real);
		break;
	case STORE_INTEGER:
		v.set = option_integer(L, idx, "put", c->name, INT64_MIN, INT64_MAX, &v.integer);
		break;
	case STORE_FLAG:
		option_bool(L, idx, "put", c->name, &yes);
		v.set = lua_getfield(L, idx, c->name) != LUA_TNIL;
		lua_pop(L, 1);
		v.integer = yes;
		break;
	}
	return v;
}

/* The row in the table at idx. Its texts stay on the stack. */
static struct store_row check_row(lua_State *L, int idx)
{
	const char *names[STORE_COLUMN_COUNT];
	struct store_row row = { 0 };

	for (int i = 0; i < STORE_COLUMN_COUNT; i++)
		names[i] = store_columns[i].name;
	luaL_checktype(L, idx, LUA_TTABLE);
	luaL_checkstack(L, STORE_COLUMN_COUNT + LUA_MINSTACK, "row");
	options_check(L, idx, "put", names, STORE_COLUMN_COUNT);
	for (int i = 0; i < STORE_COLUMN_COUNT; i++)
		row.at[i] = check_value(L, idx, &store_columns[i]);
	return row;
}

/* core.store_put(store, {column=, ...}) -> true, or nil and a message */
static int store_put_l(lua_State *L)
{
	struct store *s = check_store(L, 1, "put");
	struct store_row row = check_row(L, 2);
	struct err e;

	enter(L);
	if (store_put(s, &row, &e))
		return refused(L, &e);
	lua_pushboolean(L, true);
	return 1;
}

/* core.store_put_rows(store, {{column=, ...}, ...}): all or none -> true, or nil and a message */
static int store_put_rows_l(lua_State *L)
{
	struct store *s = check_store(L, 1, "put");
	struct store_row *rows;
	struct err e;
	int n;

	luaL_checktype(L, 2, LUA_TTABLE);
	n = (int)lua_rawlen(L, 2);
	rows = lua_newuserdatauv(L, n * sizeof(*rows) + 1, 0);
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, 2, i + 1);
		rows[i] = check_row(L, lua_gettop(L));	/* at most all of Lua's stack, which is checked */
	}
	enter(L);
	if (n && store_put_rows(s, rows, n, &e))
		return refused(L, &e);
	lua_pushboolean(L, true);
	return 1;
}

/* ---- reading rows ---- */

static void push_value(lua_State *L, enum store_type type, const struct store_value *v)
{
	switch (type) {
	case STORE_TEXT:
		lua_pushlstring(L, v->text, v->len);
		break;
	case STORE_REAL:
		lua_pushnumber(L, v->real);
		break;
	case STORE_INTEGER:
		lua_pushinteger(L, v->integer);
		break;
	case STORE_FLAG:
		lua_pushboolean(L, v->integer != 0);
		break;
	}
}

static void push_row(lua_State *L, const struct store_row *row)
{
	lua_createtable(L, 0, STORE_COLUMN_COUNT);
	set_integer(L, "id", row->id);
	for (int i = 0; i < STORE_COLUMN_COUNT; i++) {
		if (!row->at[i].set)
			continue;
		push_value(L, store_columns[i].type, &row->at[i]);
		lua_setfield(L, -2, store_columns[i].name);
	}
}

/* Texts stay on the stack. */
static struct store_filter check_filter(lua_State *L, int idx, const char *what, int64_t *keep)
{
	static const char *const names[] = { "program", "device", "kind", "status", "version", "hash",
		"family", "sizes", "before", "limit", "keep" };
	struct store_filter f = { 0 };
	const char **const text[] = { &f.program, &f.device, &f.kind, &f.status, &f.version, &f.hash,
		&f.family, &f.sizes, &f.before };

	luaL_checkstack(L, LEN(names) + LUA_MINSTACK, "filter");
	options_check(L, idx, what, names, LEN(names));
	for (int i = 0; i < LEN(text); i++)
		option_text(L, idx, what, names[i], text[i]);
	option_integer(L, idx, what, "limit", 1, INT64_MAX, &f.limit);
	option_integer(L, idx, what, "keep", 0, INT64_MAX, keep);
	return f;
}

static int reading_end_l(lua_State *L)
{
	struct store **s = luaL_checkudata(L, 1, READING_CLASS);

	if (*s)
		store_end(*s);
	*s = NULL;
	return 0;
}

/* core.store_find(store, "list", "best" or "near", filter, f): calls f(row) for each row -> true, or nil and a
 * message */
static int store_find_l(lua_State *L)
{
	static const char *const queries[] = { "list", "best", "near" };	/* ORDER store_query */
	struct store *s = check_store(L, 1, "list");
	int q = check_choice(L, 2, "list", "query", queries, LEN(queries));
	struct store_filter f;
	struct store_row row;
	int64_t generation, keep;
	struct err e;
	bool more;

	lua_settop(L, 4);
	f = check_filter(L, 3, "list", &keep);
	*box_new(L, READING_CLASS, 0) = s;
	lua_toclose(L, -1);	/* ends the query, also after an error */
	enter(L);
	if (store_find(s, (enum store_query)q, &f, &e))
		return refused(L, &e);
	generation = store_generation(s);
	for (;;) {
		if (store_generation(s) != generation)
			throw_msg(L, "store: it was used while its rows were being read");
		if (store_next(s, &row, &more, &e))
			return refused(L, &e);
		if (!more)
			break;
		lua_pushvalue(L, 4);
		push_row(L, &row);
		lua_call(L, 1, 0);
		enter(L);
		check_stop(L);
	}
	lua_pushboolean(L, true);
	return 1;
}

/* core.store_count(store) -> the number of rows, or nil and a message */
static int store_count_l(lua_State *L)
{
	struct store *s = check_store(L, 1, "store");
	struct err e;
	int64_t n;

	enter(L);
	if (store_count(s, &n, &e))
		return refused(L, &e);
	lua_pushinteger(L, n);
	return 1;
}

/* core.store_prune(store, filter) -> the number of rows removed, or nil and a message */
static int store_prune_l(lua_State *L)
{
	struct store *s = check_store(L, 1, "prune");
	struct store_filter f;
	int64_t keep = 0, n;
	struct err e;

	f = check_filter(L, 2, "prune", &keep);
	enter(L);
	if (store_prune(s, &f, keep, &n, &e))
		return refused(L, &e);
	lua_pushinteger(L, n);
	return 1;
}

/* core.store_notice(store) -> what the user should know about the file, or "" */
RETURNS(store_notice, lua_pushstring(L, store_notice(check_store(L, 1, "store"))))

/* core.store_columns() -> list of names */
RETURNS(store_columns, PUSH_LIST(L, i, STORE_COLUMN_COUNT, lua_pushstring(L, store_columns[i].name)))

RETURNS(store_path, lua_pushstring(L, store_path(check_store(L, 1, "path"))))

/* ---- identities of programs ---- */

static void push_hash(lua_State *L, const char *text, size_t n)
{
	char hash[HASH_TEXT];

	hash_text(text, n, hash);
	lua_pushstring(L, hash);
}

/* core.hash(text) -> 32 digits */
static int hash_l(lua_State *L)
{
	size_t n;
	const char *text = luaL_checklstring(L, 1, &n);

	push_hash(L, text, n);
	return 1;
}

/* core.identity(bound) -> hash of the program, hash without its sizes, sizes as text, options as text */
static int identity_l(lua_State *L)
{
	static void (*const print[])(const struct program *, struct buf *) = {
		program_print, program_print_family };
	const struct program *p = check_program(L, 1, "store");
	struct arena *a = scratch_push(L);
	struct buf b;

	enter(L);
	for (int i = 0; i < LEN(print); i++) {
		buf_init(&b, a);
		print[i](p, &b);
		push_hash(L, b.text, b.len);
	}
	buf_init(&b, a);
	program_print_sizes(p, &b);
	push_buf(L, &b);
	buf_init(&b, a);
	for (int i = 0; i < p->options.n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", p->options.v[i]);
	push_buf(L, &b);
	return 4;
}

void lua_open_store(lua_State *L)
{
	static const luaL_Reg fields[] = { { "path", store_path_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", store_gc_l }, { NULL, NULL } };
	static const luaL_Reg reading[] = { { "__close", reading_end_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = {
		{ "store", store_l }, { "store_put", store_put_l }, { "store_put_rows", store_put_rows_l }, { "store_find", store_find_l },
		{ "store_count", store_count_l }, { "store_prune", store_prune_l },
		{ "store_notice", store_notice_l }, { "store_columns", store_columns_l },
		{ "hash", hash_l }, { "identity", identity_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ STORE_CLASS, NULL, fields, meta });
	class_new(L, &(struct class_def){ .name = READING_CLASS, .meta = reading });
	luaL_setfuncs(L, functions, 0);
}
