/* The explorer's binding to Lua: core.explore. */
#include <lauxlib.h>
#include <string.h>
#include <unistd.h>

#include "explore/actions.h"
#include "explore/explore.h"
#include "explore/explorer.h"
#include "explore/layer.h"
#include "explore/watch.h"
#include "lua/lplan.h"

#define EXPLORER_CLASS "millrace.explorer"

static const struct term_setup *setup;

void explore_setup(const struct term_setup *s)
{
	setup = s;
}

bool explore_has_term(void)
{
	return setup || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
}

bool explore_open_term(lua_State *L, struct term **out)
{
	struct host *h = host_of(L);
	struct err e;

	if (!term_open(&h->mem, setup, &h->interrupted, out, &e))
		return true;
	lua_pushnil(L);
	lua_pushstring(L, e.msg);
	return false;
}

static int explorer_close_l(lua_State *L)
{
	struct explorer *s = luaL_checkudata(L, 1, EXPLORER_CLASS);

	if (s->m.mem)
		explorer_close(s);
	s->m.mem = NULL;
	return 0;
}

/* ---- functions of the Lua side ---- */

/* A message without the line that called the explorer. */
static const char *without_location(const char *s)
{
	for (const char *p = strchr(s, ':'); p; p = strchr(p + 1, ':')) {
		size_t n = strspn(p + 1, "0123456789");

		if (n && p[n + 1] == ':' && p[n + 2] == ' ')
			return p + n + 3;
	}
	return s;
}

/* Call options.NAME(word), protected, and leave its two results on the stack. False if it failed: the message says
 * why. */
static bool call_option(struct model *m, const char *name, const char *word)
{
	struct explorer *s = m->calls.arg;
	lua_State *L = s->L;
	int top = lua_gettop(L);

	if (lua_getfield(L, s->options, name) != LUA_TFUNCTION) {
		lua_settop(L, top);
		return model_refuse(m, "%s is not possible here", name);
	}
	lua_pushstring(L, word);
	if (lua_pcall(L, 1, 2, 0) == LUA_OK && lua_toboolean(L, -2))
		return true;
	if (*m->interrupted)
		model_refuse(m, "interrupted");
	else
		model_refuse(m, "%s", lua_type(L, -1) == LUA_TSTRING ? without_location(lua_tostring(L, -1)) : name);
	*m->interrupted = 0;		/* Ctrl-C was meant for this call, not for the explorer */
	lua_settop(L, top);
	enter(L);
	return false;
}

/* Call an option that returns a text (here in m->frame) and whether the plan was changed; changed may be NULL. */
static const char *call_text(struct model *m, const char *name, const char *word, bool *changed)
{
	struct explorer *s = m->calls.arg;
	const char *text;
	int top = lua_gettop(s->L);

	if (!call_option(m, name, word))
		return NULL;
	enter(s->L);
	text = arena_strdup(&m->frame, luaL_checkstring(s->L, -2));
	if (changed)
		*changed = lua_toboolean(s->L, -1);
	lua_settop(s->L, top);
	return text;
}

static const char *changes(struct model *m)
{
	return call_text(m, "changes", NULL, NULL);
}

static bool apply(struct model *m, const char *number)
{
	return call_text(m, "apply", number, NULL);
}

static const char *repair(struct model *m, bool *changed)
{
	return call_text(m, "repair", NULL, changed);
}

static const char *problems(struct model *m)
{
	return call_text(m, "problems", NULL, NULL);
}

static const char *path_of(struct model *m)
{
	return call_text(m, "path", NULL, NULL);
}

static const char *asks(struct model *m, const char *path)
{
	return call_text(m, "asks", path, NULL);
}

static const char *save(struct model *m, const char *path, bool overwrite)
{
	return call_text(m, overwrite ? "overwrite" : "save", path, NULL);
}

static const char *improve(struct model *m, const char *pinned, bool *changed)
{
	return call_text(m, "improve", pinned, changed);
}

/* The table of options keeps the timeline alive. */
static const struct timeline *measure(struct model *m)
{
	struct explorer *s = m->calls.arg;
	const struct timeline *t;
	int top = lua_gettop(s->L);

	if (!call_option(m, "measure", NULL))
		return NULL;
	t = check_timeline(s->L, -2, "measure");
	lua_pushvalue(s->L, -2);
	lua_rawseti(s->L, s->options, (lua_Integer)lua_rawlen(s->L, s->options) + 1);
	if (lua_type(s->L, -1) == LUA_TSTRING)
		model_say(m, "%s", lua_tostring(s->L, -1));
	lua_settop(s->L, top);
	enter(s->L);
	return t;
}

/* ---- opening ---- */

/* Push options.NAME; returns its object, or NULL if it is nil. */
static const void *object(lua_State *L, int options, const char *name)
{
	return lua_getfield(L, options, name) == LUA_TNIL ? NULL : lua_touserdata(L, -1);
}

/* The statements of the plan at options.NAME, in m->arena; NULL if it has been edited since p was made of it. */
static const char *script_if_same(struct explorer *s, const char *name, const struct plan *p)
{
	struct model *m = &s->m;
	struct history *h;
	struct buf a, b;

	if (!object(s->L, s->options, name))
		return NULL;
	h = check_plan(s->L, -1, "show");
	buf_init(&a, &m->arena);
	buf_init(&b, &m->arena);
	plan_script(history_plan(h), &a);
	plan_script(p, &b);
	if (strcmp(a.text, b.text) || memcmp(&history_plan(h)->graph->tiling, &p->graph->tiling,
		sizeof(p->graph->tiling)))
		return NULL;
	buf_init(&a, &m->arena);
	plan_script(history_plan(h), &a);
	return a.text;
}

/* Make the first state: of a timeline, a plan, or a graph, whichever options has. */
static void first_state(struct explorer *s)
{
	lua_State *L = s->L;
	struct model *m = &s->m;
	const struct timeline *tl = object(L, s->options, "timeline") ? check_timeline(L, -1, "show") : NULL;
	struct err e;

	if (object(L, s->options, "plan"))
		m->history = check_plan(L, -1, "show");
	if (tl) {
		const char *script = script_if_same(s, m->history ? "plan" : "plan_of_timeline", tl->plan);

		m->history = script ? m->history : NULL;
		state_of_timeline(m, tl, script, &m->now);
	} else if (!m->history) {
		object(L, s->options, "graph");
		state_of_graph(m, check_graph(L, lua_gettop(L), "show"), &m->now);
	} else if (state_of_history(m, m->history, true, &m->now, &e)) {
		throw_err(L, &e);
	}
	m->base = m->now;
	if (object(L, s->options, "base")) {
		const struct timeline *base = check_timeline(L, -1, "show");

		state_of_timeline(m, base, script_if_same(s, "plan_of_base", base->plan), &m->base);
		m->base_given = true;
	}
	if (object(L, s->options, "measured")) {
		m->measured = check_timeline(L, -1, "show");
		m->measured_of = m->now->script;
	}
	m->saved = arena_strdup(&m->arena, m->now->script);
	m->saved_tile = m->now->graph->tiling;
	if (m->history)
		m->opened = m->at = history_mark(m->history);
}

static int first_view(lua_State *L, int options)
{
	static const char *const names[] = {
#define X(name) #name,
		VIEWS(X)
#undef X
		NULL };

	lua_getfield(L, options, "view");
	return luaL_checkoption(L, -1, "timeline", names);
}

/* core.explore{plan=, timeline=, plan_of_timeline=, graph=, base=, plan_of_base=, measured=, title=, name=, base_name=, view=,
 * difference=, keeps_edits=, changes=f, apply=f, repair=f, problems=f, path=f, asks=f, save=f, overwrite=f, measure=f,
 * improve=f} -> edited, interrupted
 * Shows the explorer until the user leaves; without keeps_edits it asks before edits are lost. Returns whether the plan was
 * edited, and whether Ctrl-C ended it. Without a terminal it returns nothing; with one that cannot be used, nil and the
 * reason. */
static int explore_l(lua_State *L)
{
	struct host *h = enter(L);
	struct explorer *s;
	struct model *m;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	if (!explore_has_term())
		return 0;
	s = lua_newuserdatauv(L, sizeof(*s), 0);
	memset(s, 0, sizeof(*s));
	luaL_setmetatable(L, EXPLORER_CLASS);
	lua_toclose(L, -1);
	luaL_checkstack(L, 40, NULL);
	s->L = L;
	s->options = 1;
	m = &s->m;
	model_init(m, &h->mem);
	m->interrupted = &h->interrupted;
	m->stop = stop_of(h);
	m->calls = (struct model_calls){ s, changes, apply, repair, problems, path_of, asks, save, measure, improve };
	lua_getfield(L, 1, "title");
	m->title = luaL_optstring(L, -1, "");
	lua_getfield(L, 1, "base_name");
	m->base_name = luaL_optstring(L, -1, "first");
	lua_getfield(L, 1, "name");
	m->name = luaL_optstring(L, -1, "second");
	lua_getfield(L, 1, "difference");
	m->difference = luaL_optstring(L, -1, NULL);
	lua_getfield(L, 1, "keeps_edits");
	m->keeps_edits = lua_toboolean(L, -1);
	hold_finalizers(L);
	enter(L);
	first_state(s);
	if (!explore_open_term(L, &s->term))
		return 2;
	m->flags = term_flags(s->term);
	explorer_open_views(s, first_view(L, 1));
	settings_read(&m->settings);
	if (m->settings.wrong[0])
		model_refuse(m, "%s", m->settings.wrong);
	explorer_run(s);
	lua_pushboolean(L, model_is_changed(m));
	lua_pushboolean(L, s->interrupted);
	if (s->interrupted)
		h->interrupted = 0;
	return 2;
}

/* core.keys() -> list of all actions, {group=, keys=, help=}, in the order of the help */
static int keys_l(lua_State *L)
{
	lua_createtable(L, ACTION_COUNT, 0);
	for (int a = ACT_NONE + 1; a < ACTION_COUNT; a++) {
		lua_createtable(L, 0, 3);
		lua_pushstring(L, action_group_name(action_rows[a].group));
		lua_setfield(L, -2, "group");
		lua_pushstring(L, action_rows[a].keys);
		lua_setfield(L, -2, "keys");
		lua_pushstring(L, action_rows[a].help);
		lua_setfield(L, -2, "help");
		lua_rawseti(L, -2, a);
	}
	return 1;
}

void lua_open_explore(lua_State *L)
{
	static const luaL_Reg functions[] = { { "explore", explore_l }, { "keys", keys_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", explorer_close_l }, { "__close", explorer_close_l }, { NULL, NULL } };

	lua_getglobal(L, "require");
	lua_pushliteral(L, "millrace.core");
	lua_call(L, 1, 1);
	class_new(L, &(struct class_def){ .name = EXPLORER_CLASS, .meta = meta });
	luaL_setfuncs(L, functions, 0);
	lua_open_watch(L);
	lua_open_layer(L);
	lua_pop(L, 1);
}
