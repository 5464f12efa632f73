/* The farm: messages between processes that run the same script. */
#include "lcore.h"
#include "lfarm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "farm/farm.h"

#define FARM_CLASS "millrace.farm"

/* The registry's field of this address is the only farm. */
static const char farm_key;

static struct farm *check_farm(lua_State *L, const char *what)
{
	return box_get(L, 1, FARM_CLASS, what);
}

static struct farm *check_open(lua_State *L, const char *what)
{
	struct farm *f = check_farm(L, what);

	if (!farm_is_open(f))
		throw_msg(L, "%s: the farm is closed", what);
	return f;
}

/* Push the farm's object, or nil. NULL: there is none. */
static struct farm *push_farm(lua_State *L)
{
	void **box = NULL;

	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &farm_key) == LUA_TUSERDATA)
		box = lua_touserdata(L, -1);
	return box ? *box : NULL;
}

static struct farm *farm_of(lua_State *L)
{
	struct farm *f = push_farm(L);

	lua_pop(L, 1);
	return f;
}

BOX_GC(farm_gc, FARM_CLASS, farm_free)

/* core.farm() -> the open farm, or nil */
static int farm_l(lua_State *L)
{
	struct farm *f = push_farm(L);

	if (!f || !farm_is_open(f))
		lua_pushnil(L);
	return 1;
}

/* core.farm_open() -> the farm, which is opened unless it is open. It cannot be opened again. */
static int farm_open_l(lua_State *L)
{
	struct host *h = enter(L);
	struct farm *f = push_farm(L);
	struct err e;
	void **box;

	if (f && !farm_is_open(f))
		throw_msg(L, "farm_open: a farm that was closed cannot be opened again");
	if (f)
		return 1;
	box = box_new(L, FARM_CLASS, 0);
	lua_pushvalue(L, -1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &farm_key);
	raise_if(L, farm_open(&h->mem, NULL, (struct farm **)box, &e), &e);
	return 1;
}

/* ---- methods ---- */

RETURNS(rank, lua_pushinteger(L, farm_rank(check_farm(L, "rank"))))
RETURNS(size, lua_pushinteger(L, farm_size(check_farm(L, "size"))))
RETURNS(local_rank, lua_pushinteger(L, farm_local_rank(check_farm(L, "local_rank"))))
RETURNS(host, lua_pushstring(L, farm_host(check_farm(L, "host"))))

/* f:with_rank_0() -> is rank 0 on this machine? */
static int with_rank_0_l(lua_State *L)
{
	lua_pushboolean(L, farm_with_rank_0(check_open(L, "with_rank_0")));
	return 1;
}

/* f:send(rank, text): does not wait */
static int send_l(lua_State *L)
{
	struct farm *f = check_open(L, "send");
	int rank = (int)check_integer(L, 2, "send", "rank", 0, farm_size(f) - 1);
	char got[SHOW_MAX];
	struct err e;
	size_t n;

	if (lua_type(L, 3) != LUA_TSTRING)
		throw_msg(L, "send: text must be a string, got %s", show(L, 3, got));
	enter(L);
	lua_tolstring(L, 3, &n);
	raise_if(L, farm_send(f, rank, lua_tostring(L, 3), n, &e), &e);
	return 0;
}

/* f:receive(seconds) -> text, rank; nil if none came in time */
static int receive_l(lua_State *L)
{
	struct farm *f = check_open(L, "receive");
	double seconds = check_real(L, 2, "receive", "seconds");
	struct farm_message message;
	struct stop stop;
	struct err e;

	if (!(seconds >= 0))
		throw_msg(L, "receive: seconds must be 0 or more, got %.14g", seconds);
	stop = stop_of(enter(L));
	raise_if(L, farm_receive(f, seconds, &stop, &message, &e), &e);
	if (!message.body) {
		lua_pushnil(L);
		return 1;
	}
	lua_pushlstring(L, message.body, message.len);
	lua_pushinteger(L, message.rank);
	return 2;
}

/* f:closed_rank() -> a rank that has closed, of which receive has given all messages; nil: none is known */
static int closed_rank_l(lua_State *L)
{
	int rank = farm_closed_rank(check_farm(L, "closed_rank"));

	if (rank < 0)
		lua_pushnil(L);
	else
		lua_pushinteger(L, rank);
	return 1;
}

/* f:close(): waits until all ranks close; does nothing if it is closed */
static int close_l(lua_State *L)
{
	struct farm *f = check_farm(L, "close");
	struct stop stop = stop_of(enter(L));
	struct err e;

	if (farm_is_open(f))
		raise_if(L, farm_close(f, &stop, &e), &e);
	return 0;
}

/* f:abort(status): ends all ranks */
static int abort_l(lua_State *L)
{
	struct farm *f = check_open(L, "abort");
	int status = (int)check_integer(L, 2, "abort", "status", 1, 255);

	fflush(NULL);
	farm_abort(f, status);
}

/* ---- the command line ---- */

const char *farm_prefix(lua_State *L)
{
	static char text[400];
	struct farm *f = farm_of(L);

	if (!f || !farm_rank(f))
		return "millrace: ";
	snprintf(text, sizeof(text), "millrace: rank %d on %s: ", farm_rank(f), farm_host(f));
	return text;
}

/* Push what ranks.lua, if it was loaded, says of ranks that hang, or nil. */
static void push_hung(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	if (lua_getfield(L, -1, "millrace.ranks") == LUA_TTABLE) {
		lua_getfield(L, -1, "hung");
		lua_call(L, 0, 1);
	}
}

/* Close the farm. If ranks hang, that would wait for ever: then only write the output and close the store, and farm_end ends the job. */
static int leave_l(lua_State *L)
{
	push_hung(L);
	if (lua_isnil(L, -1)) {
		lua_pushcfunction(L, close_l);
		push_farm(L);
		lua_call(L, 1, 0);
		return 0;
	}
	if (fflush(stdout) || ferror(stdout))
		luaL_error(L, "cannot write the output");
	lua_close_store(L);
	fprintf(stderr, "%s%s\n", farm_prefix(L), lua_tostring(L, -1));
	return 0;
}

int farm_end(lua_State *L, int status)
{
	struct farm *f = farm_of(L);

	if (!f || !farm_is_open(f))
		return status;
	if (!status || farm_size(f) == 1) {
		lua_pushcfunction(L, leave_l);
		if (lua_pcall(L, 0, 0, 0) != LUA_OK) {
			fprintf(stderr, "%s%s\n", farm_prefix(L), lua_tostring(L, -1));
			lua_pop(L, 1);
			status = EXIT_FAILURE;
		}
		if (!farm_is_open(f))
			return status;
	}
	fflush(NULL);
	farm_abort(f, status);
}

/* os.exit([status[, close]]); upvalue: Lua's. */
static int exit_l(lua_State *L)
{
	int status = lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, 0);

	lua_settop(L, 2);
	lua_pushinteger(L, farm_end(L, status));
	lua_replace(L, 1);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, 2, 0);
	return 0;
}

int farm_begin(lua_State *L)
{
	int rank;

	lua_getglobal(L, "require");
	lua_pushliteral(L, "millrace.core");
	lua_call(L, 1, 0);
	lua_pushcfunction(L, farm_open_l);
	lua_call(L, 0, 0);
	rank = farm_rank(farm_of(L));
	lua_getglobal(L, "os");
	lua_getfield(L, -1, "exit");
	lua_pushcclosure(L, exit_l, 1);
	lua_setfield(L, -2, "exit");
	lua_pop(L, 1);
	if (rank > 0) {
		files_discard = true;
		lua_discard_files(L);
	}
	return rank;
}

void lua_open_farm(lua_State *L)
{
	static const luaL_Reg methods[] = { { "rank", rank_l }, { "size", size_l }, { "local_rank", local_rank_l },
		{ "host", host_l }, { "with_rank_0", with_rank_0_l }, { "send", send_l }, { "receive", receive_l }, { "closed_rank", closed_rank_l },
		{ "close", close_l },
		{ "abort", abort_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", farm_gc_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = FARM_CLASS, .methods = methods, .meta = meta });
	set_function(L, "farm", farm_l);
	set_function(L, "farm_open", farm_open_l);
}
