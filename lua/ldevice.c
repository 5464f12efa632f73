/* Devices in Lua: read from a file of hw/, or from one of the user. The setters of device.h check the fields. */
#include "lcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIELDS_MAX = 64,		/* in one table of a file */
	DEPTH_MAX = 8,
	PATH_MAX_LEN = 128,
};

const struct vdevice *check_device(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, DEVICE_CLASS, what);
}

BOX_GC(device_gc, DEVICE_CLASS, device_free)

/* reading a file ---------------------------------------------------------- */

struct reader {
	struct vdevice *device;
	struct srcloc file;
	char path[PATH_MAX_LEN];	/* of the field in hand: "memory.l2.rate" */
};

NORETURN static void throw_field(lua_State *L, const struct reader *r, const char *problem)
{
	struct err e;

	err_set(&e, ERR_INPUT, r->file, "field '%s' %s", r->path, problem);
	throw_err(L, &e);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Append a name to the path; returns the length of the path before. */
static size_t enter_field(struct reader *r, const char *name)
{
	size_t base = strlen(r->path);

	snprintf(r->path + base, sizeof(r->path) - base, "%s%s", base ? "." : "", name);
	return base;
}

/* The keys of the table on top of the stack, sorted, so that every run makes the same device; without `name` if the
 * table is one of a list. They are valid while they are in the table. */
static int sorted_keys(lua_State *L, const struct reader *r, bool listed, const char *keys[FIELDS_MAX])
{
	int n = 0;

	lua_pushnil(L);
	while (lua_next(L, -2)) {
		lua_pop(L, 1);
		if (lua_type(L, -1) != LUA_TSTRING)
			throw_field(L, r, "must have names for keys");
		if (n == FIELDS_MAX)
			throw_field(L, r, "has too many fields");
		keys[n] = lua_tostring(L, -1);
		n += !(listed && strcmp(keys[n], "name") == 0);
	}
	qsort(keys, (size_t)n, sizeof(*keys), compare_names);
	return n;
}

/* Set the field r->path to the value on top of the stack. */
static void read_leaf(lua_State *L, struct reader *r)
{
	enum err_code code;
	struct err e;

	switch (lua_type(L, -1)) {
	case LUA_TNUMBER:
		code = device_set_number(r->device, r->path, lua_tonumber(L, -1), r->file, &e);
		break;
	case LUA_TBOOLEAN:
		code = device_set_number(r->device, r->path, lua_toboolean(L, -1), r->file, &e);
		break;
	case LUA_TSTRING:
		code = device_set_text(r->device, r->path, lua_tostring(L, -1), r->file, &e);
		break;
	default:
		throw_field(L, r, "must be a number, a text, true, false or a table");
	}
	if (code)
		throw_err(L, &e);
}

static void read_table(lua_State *L, struct reader *r, int depth, bool listed);

/* Read a list of tables, each with a name, in their order: "seu.tma" is the table with name = "tma" of the list
 * `seu`. */
static void read_list(lua_State *L, struct reader *r, int depth)
{
	lua_Integer n = (lua_Integer)lua_rawlen(L, -1);

	for (lua_Integer i = 1; i <= n; i++) {
		size_t base;

		if (lua_rawgeti(L, -1, i) != LUA_TTABLE)
			throw_field(L, r, "must be a list of tables");
		lua_pushliteral(L, "name");
		if (lua_rawget(L, -2) != LUA_TSTRING)
			throw_field(L, r, "has an entry without a name");
		base = enter_field(r, lua_tostring(L, -1));
		lua_pop(L, 1);
		read_table(L, r, depth + 1, true);
		lua_pop(L, 1);
		r->path[base] = '\0';
	}
}

/* Read every field of the table on top of the stack. */
static void read_table(lua_State *L, struct reader *r, int depth, bool listed)
{
	const char *keys[FIELDS_MAX];
	int n;

	luaL_checkstack(L, LUA_MINSTACK, NULL);
	if (depth >= DEPTH_MAX)
		throw_field(L, r, "is nested too deep");
	if (lua_rawlen(L, -1) > 0) {
		read_list(L, r, depth);
		return;
	}
	n = sorted_keys(L, r, listed, keys);
	for (int i = 0; i < n; i++) {
		size_t base = enter_field(r, keys[i]);

		lua_pushstring(L, keys[i]);
		lua_rawget(L, -2);
		if (lua_type(L, -1) == LUA_TTABLE)
			read_table(L, r, depth + 1, false);
		else
			read_leaf(L, r);
		lua_pop(L, 1);
		r->path[base] = '\0';
	}
}

/* luaL_loadfilex failed, its message is on top. */
NORETURN static void throw_load(lua_State *L, int status, const char *path, const char *shown)
{
	const char *msg = lua_tostring(L, -1);
	struct err e;

	if (status == LUA_ERRFILE)
		throw_msg(L, "device: %s", msg);
	if (status == LUA_ERRMEM || strncmp(msg, path, strlen(path)) == 0)
		lua_error(L);
	err_set(&e, ERR_INPUT, (struct srcloc){ shown, 0 }, "%s", msg);
	throw_err(L, &e);
}

/* Push the table that the file returns. The file is data: it cannot access globals. */
static void push_file(lua_State *L, const char *path, const char *shown)
{
	int status = luaL_loadfilex(L, path, "t");
	char got[SHOW_MAX];
	struct err e;

	if (status != LUA_OK)
		throw_load(L, status, path, shown);
	lua_newtable(L);
	lua_setupvalue(L, -2, 1);
	lua_call(L, 0, 1);
	if (lua_type(L, -1) == LUA_TTABLE)
		return;
	err_set(&e, ERR_INPUT, (struct srcloc){ shown, 0 }, "the file must return a table, got %s", show(L, -1, got));
	throw_err(L, &e);
}

/* Set the fields that the table on top of the stack has, by path. */
static void read_changes(lua_State *L, struct reader *r)
{
	const char *paths[FIELDS_MAX];
	int n = sorted_keys(L, r, false, paths);

	for (int i = 0; i < n; i++) {
		snprintf(r->path, sizeof(r->path), "%s", paths[i]);
		lua_getfield(L, -1, paths[i]);
		read_leaf(L, r);
		lua_pop(L, 1);
	}
	r->path[0] = '\0';
}

/* core.device(name, path, path as messages show it, [changes]) */
static int device_new_l(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1), *path = luaL_checkstring(L, 2);
	struct reader r = { .file = { luaL_checkstring(L, 3), 0 } };
	struct host *h = enter(L);
	void **box = box_new(L, DEVICE_CLASS, 0);
	struct err e;

	push_file(L, path, r.file.file);
	enter(L);
	*box = r.device = device_new(&h->mem, name);
	read_table(L, &r, 0, false);
	if (lua_istable(L, 4)) {
		r.file = NOWHERE;
		lua_pushvalue(L, 4);
		read_changes(L, &r);
		lua_pop(L, 1);
	}
	raise_if(L, device_finish(r.device, r.file, &e), &e);
	lua_pop(L, 1);
	return 1;
}

/* fields ------------------------------------------------------------------ */

#define FIELD(name, push) GETTER(device_##name, const struct vdevice *, check_device(L, 1, #name), push)

FIELD(name, lua_pushstring(L, o->name))
FIELD(title, lua_pushstring(L, o->title))
FIELD(arch, lua_pushstring(L, o->arch))
FIELD(eus, lua_pushinteger(L, o->eus))
FIELD(clock_hz, lua_pushnumber(L, o->clock_hz))

static void push_seu(lua_State *L, const struct seu *s)
{
	/* ORDER seu_kind */
	static const char *const kinds[] = { "copy", "matrix", "vector" };

	lua_createtable(L, 0, 4);
	set_text(L, "name", s->name);
	set_text(L, "kind", kinds[s->kind]);
	set_bool(L, "async", s->async);
}

/* list of {name=, kind=, async=} */
static int device_seus_l(lua_State *L)
{
	const struct vdevice *d = check_device(L, 1, "seus");

	PUSH_LIST(L, i, d->nseus, push_seu(L, &d->seu[i]));
	return 1;
}

/* device:number(path) */
static int device_number_l(lua_State *L)
{
	const struct vdevice *d = check_device(L, 1, "number");
	struct err e;
	double v;

	if (lua_type(L, 2) != LUA_TSTRING)
		throw_msg(L, "number: path of a field expected");
	raise_if(L, device_number(d, lua_tostring(L, 2), &v, NOWHERE, &e), &e);
	lua_pushnumber(L, v);
	return 1;
}

RETURNS_TEXT(device_tostring, const struct vdevice *, check_device(L, 1, "tostring"), device_print(o, &text))

void lua_open_device(lua_State *L)
{
	static const luaL_Reg fields[] = {
		{ "name", device_name_l }, { "title", device_title_l }, { "arch", device_arch_l },
		{ "eus", device_eus_l }, { "clock_hz", device_clock_hz_l },
		{ "seus", device_seus_l }, { NULL, NULL } };
	static const luaL_Reg methods[] = { { "number", device_number_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", device_gc_l }, { "__tostring", device_tostring_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ DEVICE_CLASS, methods, fields, meta });
	set_function(L, "device", device_new_l);
}
