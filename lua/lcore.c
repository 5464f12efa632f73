#include "lcore.h"
#include "lplan.h"

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* host ------------------------------------------------------------------- */

struct host *host_of(lua_State *L)
{
	return *(struct host **)lua_getextraspace(L);
}

/* The registry's field of this address has host.holder, so that it lives as long. */
static const char holder_key;

/* holder: L or NULL. */
static void set_holder(lua_State *L, lua_State *holder)
{
	if (holder)
		lua_pushthread(L);
	else
		lua_pushboolean(L, false);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &holder_key);
	host_of(L)->holder = holder;
}

/* The next collection is due when as much again has been allocated as is in use now, in and outside of Lua; with a cap
 * earlier, when half of what is left is used. */
static void plan_collection(struct host *h)
{
	size_t used = h->mem.used, least = 8 << 20, more = used > least ? used : least;

	if (h->mem.cap) {
		size_t left = h->mem.cap > used ? h->mem.cap - used : 0;

		more = more < left / 2 ? more : left / 2;
	}
	h->collect_at = used + more;
}

/* A restart makes Lua collect at once, however recent the last collection is. So tell it how much of the pause is left.
 * The manual describes LUA_GCSTEP only for sizes above zero; of Lua 5.4 nothing it describes sets what may be allocated
 * until the next step, as the pause counts from the end of a cycle only. If another Lua takes a negative size otherwise,
 * it collects too often, which tests/lua/errors.t.lua finds, but nothing goes wrong. */
static void end_hold(lua_State *L)
{
	struct host *h = host_of(L);
	size_t kib = h->collect_at > h->mem.used ? (h->collect_at - h->mem.used) >> 10 : 0;

	set_holder(L, NULL);
	lua_gc(L, LUA_GCRESTART);
	if (kib > 0)
		lua_gc(L, LUA_GCSTEP, -(int)(kib < INT_MAX >> 10 ? kib : INT_MAX >> 10));
}

struct host *enter(lua_State *L)
{
	struct host *h = host_of(L);

	h->L = L;
	if (h->holder && lua_status(h->holder) > LUA_YIELD)
		end_hold(L);		/* a coroutine that ended with an error and that nobody closed */
	return h;
}

struct stop stop_of(const struct host *h)
{
	return (struct stop){ &h->interrupted };
}

void check_stop(lua_State *L)
{
	if (host_of(L)->interrupted)
		throw_msg(L, "interrupted");
}

/* mem.fail: a request of the core for memory failed. If this returns, the program aborts. */
static void host_fail(void *ud, size_t want)
{
	struct host *h = ud;
	bool small = want < 1 << 20;

	if (h->L)
		throw_msg(h->L, "not enough memory (%zu %s wanted)", want >> (small ? 10 : 20), small ? "KiB" : "MiB");
}

/* Of a new object Lua gives its type as the old size. */
static void *host_alloc(void *ud, void *p, size_t old_size, size_t new_size)
{
	struct host *h = ud;

	return mem_resize(&h->mem, p, p ? old_size : 0, new_size);
}

/* Run the std chunk named by the upvalue; its result is the module. Of a document it is the text. */
static int chunk_l(lua_State *L)
{
	const char *name = lua_tostring(L, lua_upvalueindex(1));
	const struct std_chunk *c = std_chunks;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	if (!c->name)
		return luaL_error(L, "no chunk '%s' in this program", name);
	if (strstr(name, ".md")) {
		lua_pushlstring(L, c->text, c->len);
		return 1;
	}
	lua_pushfstring(L, "=[millrace.%s]", name);
	if (luaL_loadbufferx(L, c->text, c->len, lua_tostring(L, -1), "t") != LUA_OK)
		return lua_error(L);
	lua_call(L, 0, 1);
	return 1;
}

/* preload = package.preload: "millrace" is the chunk init, the others millrace.NAME. */
static void preload_chunks(lua_State *L, int preload)
{
	for (const struct std_chunk *c = std_chunks; c->name; c++) {
		lua_pushstring(L, c->name);
		lua_pushcclosure(L, chunk_l, 1);
		if (strcmp(c->name, "init") == 0)
			lua_pushstring(L, "millrace");
		else
			lua_pushfstring(L, "millrace.%s", c->name);
		lua_insert(L, -2);
		lua_settable(L, preload);
	}
}

/* Lua 5.4 makes the metatable of its large buffers on first use, and it stays incomplete if memory runs out then.
 * So make it before anything else. */
static void make_buffer_class(lua_State *L)
{
	luaL_Buffer b;

	luaL_buffinitsize(L, &b, LUAL_BUFFERSIZE + 1);
	luaL_pushresultsize(&b, 0);
	lua_pop(L, 1);
}

static int setup_l(lua_State *L)
{
	luaL_checkversion(L);
	luaL_openlibs(L);
	lua_guard(L);
	make_buffer_class(L);
	plan_collection(host_of(L));
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
	lua_pushcfunction(L, luaopen_millrace_core);
	lua_setfield(L, -2, "millrace.core");
	preload_chunks(L, lua_gettop(L));
	return 0;
}

lua_State *host_open(struct host *h)
{
	lua_State *L;

	h->L = NULL;
	h->mem.fail = host_fail;
	h->mem.ud = h;
	L = lua_newstate(host_alloc, h);
	if (!L)
		return NULL;
	*(struct host **)lua_getextraspace(L) = h;
	lua_pushcfunction(L, setup_l);
	if (lua_pcall(L, 0, 0, 0) != LUA_OK) {
		host_close(L);
		return NULL;
	}
	return L;
}

void host_close(lua_State *L)
{
	struct host *h;

	if (!L)
		return;
	h = host_of(L);
	lua_close(L);
	h->L = NULL;
}

void host_set_mr(lua_State *L)
{
	lua_getglobal(L, "require");
	lua_pushliteral(L, "millrace");
	lua_call(L, 1, 1);
	lua_setglobal(L, "mr");
}

/* locations -------------------------------------------------------------- */

/* Find the innermost Lua function on the stack that is not of lua/std. */
static bool user_frame(lua_State *L, lua_Debug *ar)
{
	for (int level = 0; lua_getstack(L, level, ar); level++) {
		lua_getinfo(L, "Sl", ar);
		if (ar->currentline > 0 && strncmp(ar->source, OUR_CHUNKS, strlen(OUR_CHUNKS)) != 0)
			return true;
	}
	return false;
}

struct srcloc here_now(lua_State *L, char file[LUA_IDSIZE])
{
	lua_Debug ar;
	const char *name;

	if (!user_frame(L, &ar))
		return NOWHERE;
	name = ar.short_src;
	if (strncmp(name, "./", 2) == 0)
		name += 2;
	snprintf(file, LUA_IDSIZE, "%.*s", LUA_IDSIZE - 1, name);
	return (struct srcloc){ file, ar.currentline };
}

struct srcloc here(lua_State *L, struct arena *a, const char **last)
{
	char file[LUA_IDSIZE];
	struct srcloc loc = here_now(L, file);

	if (!loc.file)
		return loc;
	if (!*last || strcmp(*last, file) != 0)
		*last = arena_strdup(a, file);
	loc.file = *last;
	return loc;
}

/* errors ----------------------------------------------------------------- */

NORETURN static void throw_at(lua_State *L, const char *file, int line, const char *msg)
{
	if (file[0] && line > 0)
		lua_pushfstring(L, "%s:%d: %s", file, line, msg);
	else if (file[0])
		lua_pushfstring(L, "%s: %s", file, msg);
	else
		lua_pushstring(L, msg);
	lua_error(L);
	BUG("lua_error returned");
}

void throw_err(lua_State *L, const struct err *e)
{
	char file[LUA_IDSIZE] = "";
	struct srcloc loc;

	if (e->file[0] && e->code != ERR_LIMIT)
		throw_at(L, e->file, e->line, e->msg);
	loc = here_now(L, file);
	throw_at(L, file, loc.line, e->msg);
}

void raise_if(lua_State *L, enum err_code code, const struct err *e)
{
	if (code)
		throw_err(L, e);
}

void throw_msg(lua_State *L, const char *fmt, ...)
{
	struct err e = { 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.msg, sizeof(e.msg), fmt, ap);
	va_end(ap);
	throw_err(L, &e);
}

const char *show(lua_State *L, int idx, char buf[SHOW_MAX])
{
	int type = lua_type(L, idx);

	if (type == LUA_TNONE)
		snprintf(buf, SHOW_MAX, "nothing");
	else if (lua_isinteger(L, idx))
		snprintf(buf, SHOW_MAX, "%lld", (long long)lua_tointeger(L, idx));
	else if (type == LUA_TNUMBER)
		snprintf(buf, SHOW_MAX, "%.14g", lua_tonumber(L, idx));
	else if (type == LUA_TSTRING)
		snprintf(buf, SHOW_MAX, "'%.40s'", lua_tostring(L, idx));
	else if (type == LUA_TBOOLEAN)
		snprintf(buf, SHOW_MAX, "%s", lua_toboolean(L, idx) ? "true" : "false");
	else if (luaL_getmetafield(L, idx, "__name") == LUA_TSTRING) {
		snprintf(buf, SHOW_MAX, "%.60s", lua_tostring(L, -1));
		lua_pop(L, 1);
	} else {
		snprintf(buf, SHOW_MAX, "%s", lua_typename(L, type));
	}
	return buf;
}

/* How what was given becomes what is expected, where that is one step; "". got: as show() writes it. */
static const char *cure(lua_State *L, int idx, const char *expected, const char *got)
{
	if (strcmp(expected, "device") == 0 && lua_type(L, idx) == LUA_TSTRING)
		return lua_pushfstring(L, "; mr.device %s gives it", got);
	if (strcmp(expected, "graph") == 0 && strcmp(got, "millrace.program") == 0)
		return "; prog:graph{tile={...}} makes one of it";
	if (strcmp(expected, "graph") == 0 && strcmp(got, "program") == 0)
		return "; with sizes and a tile it gives one, as in prog{m=4096, n=4096}:graph{tile={m=128}}";
	if (strcmp(expected, "program with sizes") == 0 && strcmp(got, "program") == 0)
		return "; give it sizes, as in prog{m=4096, n=4096}";
	if (strcmp(expected, "timeline") == 0 && strcmp(got, PLAN_CLASS) == 0)
		return "; plan:simulate() gives one";
	if (strcmp(expected, "value") == 0 && strcmp(got, "tensor") == 0)
		return "; p:load gives its tile";
	return "";
}

void throw_type(lua_State *L, int idx, const char *what, const char *expected)
{
	char got[SHOW_MAX];

	show(L, idx, got);
	throw_msg(L, "%s: %s expected, got %s%s", what, expected, got, cure(L, idx, expected, got));
}

static bool class_has(lua_State *L, const char *class_name, const char *kind, const char *name);

bool is_object(lua_State *L, int idx)
{
	if (lua_isuserdata(L, idx))
		return true;
	if (luaL_getmetafield(L, idx, "__name") == LUA_TNIL)
		return false;
	lua_pop(L, 1);
	return true;
}

void throw_self(lua_State *L, int idx, const char *what, const char *expected)
{
	if (idx == 1 && lua_isnone(L, 1))
		throw_msg(L, "%s: %s expected, got nothing; it is called with a colon, as in %s:%s()", what, expected, expected,
			what);
	char class_name[SHOW_MAX];

	snprintf(class_name, sizeof(class_name), "millrace.%s", expected);
	if (idx == 1 && !is_object(L, 1) && class_has(L, class_name, "methods", what)) {
		char got[SHOW_MAX];

		throw_msg(L, "%s: %s expected, got %s; it is called with a colon, as in %s:%s%s", what, expected,
			show(L, 1, got), expected, what, lua_istable(L, 1) ? "{...}" : "(...)");
	}
	throw_type(L, idx, what, expected);
}

/* classes and boxes ------------------------------------------------------ */

/* How an object that has a member is made of one that has it not. */
static const struct way { const char *of, *class_name, *made; } ways[] = {
	{ PLAN_CLASS, TIMELINE_CLASS, "plan:simulate()" }, { PLAN_CLASS, KERNEL_CLASS, "plan:compile()" },
	{ PLAN_CLASS, GRAPH_CLASS, "plan.graph" }, { GRAPH_CLASS, PROGRAM_CLASS, "graph.program" },
	{ PROGRAM_CLASS, GRAPH_CLASS, "prog:graph{tile={...}}" },
	{ GRAPH_CLASS, PLAN_CLASS, "mr.plan(graph, device)" },
	{ PROGRAM_CLASS, PLAN_CLASS, "mr.plan(prog:graph{tile={...}}, device)" },
};

/* Has the class such a method (or field)? */
static bool class_has(lua_State *L, const char *class_name, const char *kind, const char *name)
{
	int top = lua_gettop(L);
	bool has = luaL_getmetatable(L, class_name) == LUA_TTABLE && lua_getfield(L, -1, kind) == LUA_TTABLE &&
		lua_getfield(L, -1, name) != LUA_TNIL;

	lua_settop(L, top);
	return has;
}

const char *push_way_to(lua_State *L, const char *of, const char *name)
{
	for (int i = 0; i < LEN(ways); i++) {
		bool method = class_has(L, ways[i].class_name, "methods", name);

		if ((!of || !strcmp(of, ways[i].of)) && (method || class_has(L, ways[i].class_name, "fields", name)))
			return lua_pushfstring(L, "%s%s%s%s", ways[i].made, method ? ":" : ".", name, method ? "()" : "");
	}
	return NULL;
}

/* Kernels for the CPU are kernels. */
static int missing_member(lua_State *L)
{
	const char *kind = "object", *point, *way = NULL;

	if (lua_type(L, 2) == LUA_TSTRING && is_strict(L) && luaL_getmetafield(L, 1, "__name") == LUA_TSTRING)
		way = push_way_to(L, lua_tostring(L, -1), lua_tostring(L, 2));
	if (way)
		throw_msg(L, "%s has no '%s'; did you mean %s?", strchr(lua_tostring(L, -2), '.') + 1, lua_tostring(L, 2), way);
	lua_settop(L, 2);
	if (luaL_getmetafield(L, 1, "__name") == LUA_TSTRING) {
		kind = lua_tostring(L, -1);	/* which the metatable keeps */
		point = strchr(kind, '.');
		kind = strcmp(kind, "millrace.on_host") ? point ? point + 1 : kind : "kernel for the CPU";
	}
	return missing_field(L, kind, lua_upvalueindex(1), lua_upvalueindex(2));
}

/* Upvalues 1, 2 of every metamethod: methods, fields. */
int class_index(lua_State *L)
{
	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
		return 1;
	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(2)) == LUA_TNIL)
		return missing_member(L);
	lua_pushvalue(L, 1);
	lua_call(L, 1, 1);
	return 1;
}

static void push_functions(lua_State *L, const luaL_Reg *r)
{
	lua_newtable(L);
	if (r)
		luaL_setfuncs(L, r, 0);
}

/* As __newindex of a class whose fields are read only. Upvalue: what its objects are called. */
static int read_only_l(lua_State *L)
{
	const char *kind = lua_tostring(L, lua_upvalueindex(1));
	char key[SHOW_MAX];

	throw_msg(L, "%s: %s cannot be set, its fields are read only%s", kind, show(L, 2, key),
		strcmp(kind, "plan") == 0 ? "; methods change a plan: help \"Plans\"" : "");
}

void class_new(lua_State *L, const struct class_def *c)
{
	static const luaL_Reg index[] = { { "__index", class_index }, { NULL, NULL } };

	luaL_newmetatable(L, c->name);
	lua_newtable(L);
	for (const luaL_Reg *r = c->methods; r && r->name; r++) {
		push_method(L, c->name, r->name, r->func);
		lua_setfield(L, -2, r->name);
	}
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "methods");
	push_functions(L, c->fields);
	lua_pushvalue(L, -1);
	lua_setfield(L, -4, "fields");
	/* -- metatable methods fields */
	lua_pushvalue(L, -3);
	lua_pushvalue(L, -3);
	lua_pushvalue(L, -3);
	luaL_setfuncs(L, index, 2);
	if (c->meta) {
		lua_pushvalue(L, -3);
		lua_pushvalue(L, -3);
		luaL_setfuncs(L, c->meta, 2);
	}
	set_bool(L, "__metatable", false);
	lua_pop(L, 3);
	if (lua_getfield(L, -1, "__newindex") == LUA_TNIL) {
		const char *kind = strchr(c->name, '.');

		lua_pushstring(L, !kind ? c->name : !strcmp(kind, ".on_host") ? "kernel" : kind + 1);
		lua_pushcclosure(L, read_only_l, 1);
		lua_setfield(L, -3, "__newindex");
	}
	lua_pop(L, 2);
}

void class_method(lua_State *L, const char *name, const char *method, lua_CFunction f)
{
	luaL_getmetatable(L, name);
	lua_getfield(L, -1, "methods");
	push_method(L, name, method, f);
	lua_setfield(L, -2, method);
	lua_pop(L, 2);
}

void **box_new(lua_State *L, const char *class_name, int uservalues)
{
	void **box = lua_newuserdatauv(L, sizeof(*box), uservalues);

	*box = NULL;
	luaL_setmetatable(L, class_name);
	return box;
}

void *box_get(lua_State *L, int idx, const char *class_name, const char *what)
{
	void **box = luaL_testudata(L, idx, class_name);
	const char *kind = strchr(class_name, '.') + 1;

	if (!box)
		throw_self(L, idx, what, kind);
	if (!*box)
		throw_msg(L, "%s: this %s was never completed", what, kind);
	return *box;
}

bool by_collector(lua_State *L)
{
	lua_Debug ar;

	if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "n", &ar) || !ar.name)
		return false;
	/* Lua names a finalizer so if the collector starts between a hook and the function it calls. A finalizer that is itself the
	 * hook gets the name of an event, never an object. */
	if (strcmp(ar.namewhat, "hook") == 0)
		return true;
	return strcmp(ar.name, "__gc") == 0 && strcmp(ar.namewhat, "metamethod") == 0;
}

void *box_take(lua_State *L, const char *class_name)
{
	void **box = luaL_checkudata(L, 1, class_name);
	void *p = *box;

	if (!by_collector(L))
		return NULL;
	*box = NULL;
	return p;
}

void keep(lua_State *L, int owner, int slot, int value)
{
	owner = lua_absindex(L, owner);
	lua_pushvalue(L, value);
	lua_setiuservalue(L, owner, slot);
}

#define SCRATCH_CLASS "millrace.scratch"

static int scratch_gc_l(lua_State *L)
{
	arena_release(luaL_checkudata(L, 1, SCRATCH_CLASS));
	return 0;
}

#define HOLD_CLASS "millrace.hold"

static int hold_end_l(lua_State *L)
{
	struct host *h = host_of(L);

	end_hold(L);
	if (h->mem.used >= h->collect_at) {
		lua_gc(L, LUA_GCCOLLECT);
		plan_collection(h);
	}
	return 0;
}

void hold_finalizers(lua_State *L)
{
	if (lua_gc(L, LUA_GCISRUNNING) != 1)
		return;			/* stopped by the user, or in a finalizer */
	lua_newuserdatauv(L, 0, 0);
	luaL_setmetatable(L, HOLD_CLASS);
	set_holder(L, L);
	lua_toclose(L, -1);
	lua_gc(L, LUA_GCSTOP);
}

struct arena *scratch_push(lua_State *L)
{
	struct arena *a = lua_newuserdatauv(L, sizeof(*a), 0);

	arena_init(a, &host_of(L)->mem);
	luaL_setmetatable(L, SCRATCH_CLASS);
	lua_toclose(L, -1);
	return a;
}

void check_memory(lua_State *L, const char *what, const char *thing, size_t bytes)
{
	const struct mem *m = &host_of(L)->mem;
	size_t left;

	if (m->cap == 0)
		return;
	if (m->used > m->cap || bytes > m->cap - m->used)
		lua_gc(L, LUA_GCCOLLECT);
	left = m->used < m->cap ? m->cap - m->used : 0;
	if (bytes > left)
		throw_msg(L, "%s: %s takes %zu MiB, but only %zu of %zu MiB are left", what, thing,
			(bytes >> 20) + 1, left >> 20, m->cap >> 20);
}

void account(lua_State *L, size_t bytes)
{
	size_t kib = bytes >> 10;

	if (kib > 0)
		lua_gc(L, LUA_GCSTEP, kib < INT_MAX ? (int)kib : INT_MAX);
}

int push_buf(lua_State *L, const struct buf *b)
{
	lua_pushlstring(L, b->text, b->len);
	return 1;
}

void open_core_classes(lua_State *L)
{
	static const luaL_Reg scratch[] = { { "__gc", scratch_gc_l }, { "__close", scratch_gc_l }, { NULL, NULL } };
	static const luaL_Reg hold[] = { { "__close", hold_end_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = SCRATCH_CLASS, .meta = scratch });
	class_new(L, &(struct class_def){ .name = HOLD_CLASS, .meta = hold });
}
