/* core.search_screen: the Lua binding of watch.h. */
#include <lauxlib.h>
#include <string.h>

#include "explore/explore.h"
#include "explore/watch.h"
#include "lua/lcore.h"
#include "lua/lprogress.h"

#define SCREEN_CLASS "millrace.search_screen"

struct screen {
	struct host *host;
	struct arena frame;		/* of one drawing */
	struct term *term;		/* NULL: the screen is closed */
	bool open;			/* the arena is in use */
	bool gone;			/* the terminal is gone */
};

static struct screen *check_screen(lua_State *L)
{
	struct screen *s = luaL_checkudata(L, 1, SCREEN_CLASS);

	if (!s->term)
		throw_msg(L, "search: the screen is closed");
	return s;
}

static void close_screen(struct screen *s)
{
	term_close(s->term);
	s->term = NULL;
	if (s->open)
		arena_release(&s->frame);
	s->open = false;
}

static int screen_close_l(lua_State *L)
{
	close_screen(luaL_checkudata(L, 1, SCREEN_CLASS));
	return 0;
}

/* Read the table at 2 into s->frame. */
static void read_watched(lua_State *L, struct screen *s, struct watched *w)
{
	const char *title = raw_text(L, 2, "title", &s->frame), *phase = raw_text(L, 2, "phase", &s->frame);
	const char *keys = raw_text(L, 2, "keys", &s->frame), **fact;
	double bound = raw_number(L, 2, "bound");

	*w = (struct watched){ .title = title ? title : "", .phase = phase ? phase : "", .keys = keys ? keys : "" };
	lua_getfield(L, 2, "facts");
	w->nfacts = lua_type(L, -1) == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
	fact = ARENA_ARRAY(&s->frame, w->nfacts + 1, const char *);
	for (int i = 0; i < w->nfacts; i++) {
		lua_rawgeti(L, -1, i + 1);
		fact[i] = arena_strdup(&s->frame, lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "");
		lua_pop(L, 1);
	}
	w->fact = fact;
	w->curve.name = "";
	w->curve.bound = bound > 0 ? bound : 0;
	lua_getfield(L, 2, "history");
	read_history(L, lua_gettop(L), &s->frame, &w->curve);
	lua_pop(L, 2);
}

static void show_watched(struct screen *s, const struct watched *w)
{
	struct arena_mark mark = arena_mark(&s->frame);
	struct cells out;
	int width, height;

	term_size(s->term, &width, &height);
	cells_init(&out, &s->frame, width, height);
	watch_draw(w, &out);
	term_show(s->term, &out, -1, -1);
	arena_reset(&s->frame, mark);
}

/* The screen at 1, with the table at 2 read. */
static struct screen *begin_drawing(lua_State *L, struct watched *w)
{
	struct screen *s = check_screen(L);

	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	enter(L);
	arena_release(&s->frame);
	read_watched(L, s, w);
	return s;
}

/* screen:update{title=, phase=, facts={text, ...}, keys=, bound=, history={...}} -> true if the user wants to stop the search */
static int screen_update_l(lua_State *L)
{
	struct watched w;
	struct screen *s = begin_drawing(L, &w);
	struct key k;
	bool stop = false;

	show_watched(s, &w);
	while (!s->gone && (k = term_key(s->term, false)).code != KEY_CODE_NONE) {
		stop |= k.code == 'q' || k.code == KEY_CODE_INTERRUPT || k.code == KEY_CODE_CLOSED;
		s->gone = k.code == KEY_CODE_CLOSED;
		if (k.code == KEY_CODE_RESIZE || k.code == 12)	/* Ctrl-L */
			show_watched(s, &w);
	}
	lua_pushboolean(L, stop);
	return 1;
}

/* screen:stop() -> true. Acts as if Ctrl-C had been pressed, so the caller must return at once. */
static int screen_stop_l(lua_State *L)
{
	check_screen(L)->host->interrupted = 1;
	lua_pushboolean(L, true);
	return 1;
}

/* screen:finish{...} -> true if Enter was pressed. Shows the result, waits for a key, and gives the terminal back. */
static int screen_finish_l(lua_State *L)
{
	struct watched w;
	struct screen *s = begin_drawing(L, &w);
	int code;

	do {
		show_watched(s, &w);
		code = term_key(s->term, true).code;
	} while (code == KEY_CODE_RESIZE || code == KEY_CODE_NONE || code == 12);
	close_screen(s);
	lua_pushboolean(L, code == '\r');
	return 1;
}

/* core.search_screen() -> a screen, which the caller closes. Without a terminal it returns nothing; with one that
 * cannot be used, nil and the reason. */
static int search_screen_l(lua_State *L)
{
	struct host *h = enter(L);
	struct screen *s;

	if (!explore_has_term())
		return 0;
	s = lua_newuserdatauv(L, sizeof(*s), 0);
	*s = (struct screen){ .host = h };
	luaL_setmetatable(L, SCREEN_CLASS);
	arena_init(&s->frame, &h->mem);
	s->open = true;
	if (explore_open_term(L, &s->term))
		return 1;
	close_screen(s);
	return 2;
}

void lua_open_watch(lua_State *L)
{
	static const luaL_Reg methods[] = { { "update", screen_update_l }, { "stop", screen_stop_l },
		{ "finish", screen_finish_l }, { "close", screen_close_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", screen_close_l }, { "__close", screen_close_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ SCREEN_CLASS, methods, NULL, meta });
	lua_pushcfunction(L, search_screen_l);
	lua_setfield(L, -2, "search_screen");
}
