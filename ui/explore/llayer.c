/* core.layer_screen: the Lua binding of layer.h. */
#include <lauxlib.h>

#include "explore/explore.h"
#include "explore/layer.h"
#include "lua/lsequence.h"

#define SCREEN_CLASS "millrace.layer_screen"

struct screen {
	struct arena frame;		/* of one drawing */
	struct term *term;
	bool open;
};

static int close_l(lua_State *L)
{
	struct screen *s = luaL_checkudata(L, 1, SCREEN_CLASS);

	term_close(s->term);
	s->term = NULL;
	if (s->open)
		arena_release(&s->frame);
	s->open = false;
	return 0;
}

static void show_layer(struct screen *s, struct layer *layer)
{
	struct cells out;
	int width, height;

	arena_release(&s->frame);
	term_size(s->term, &width, &height);
	cells_init(&out, &s->frame, width, height);
	layer_draw(layer, &out);
	term_show(s->term, &out, -1, -1);
}

/* core.layer_screen(timeline, number) -> number of the kernel to open, from 1, and "timeline" or "plan"; nothing if the
 * user leaves. Shows the kernels with that one selected. Without a terminal it returns false, and why if there is one
 * that cannot be used. */
static int layer_screen_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct seqline *l = check_seqline(L, 1, "show");
	int at = (int)luaL_optinteger(L, 2, 1) - 1;
	enum layer_wish wish = LAYER_STAY;
	struct layer layer;
	struct screen *s;

	lua_settop(L, 2);
	lua_pushboolean(L, false);
	if (!explore_has_term())
		return 1;
	s = lua_newuserdatauv(L, sizeof(*s), 0);
	*s = (struct screen){ 0 };
	luaL_setmetatable(L, SCREEN_CLASS);
	lua_toclose(L, -1);
	arena_init(&s->frame, &h->mem);
	s->open = true;
	hold_finalizers(L);
	enter(L);
	if (!explore_open_term(L, &s->term)) {
		lua_pushboolean(L, false);
		lua_replace(L, -3);
		return 2;
	}
	layer_init(&layer, l, at);
	layer.flags = term_flags(s->term);
	while (wish == LAYER_STAY) {
		show_layer(s, &layer);
		wish = layer_key(&layer, term_key(s->term, true));
	}
	if (wish == LAYER_LEAVE)
		return 0;
	lua_pushinteger(L, layer.at + 1);
	lua_pushstring(L, wish == LAYER_PLAN ? "plan" : "timeline");
	return 2;
}

void lua_open_layer(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", close_l }, { "__close", close_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = SCREEN_CLASS, .meta = meta });
	lua_pushcfunction(L, layer_screen_l);
	lua_setfield(L, -2, "layer_screen");
}
