#include "lprogress.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

double raw_number(lua_State *L, int idx, const char *key)
{
	double v;

	lua_pushstring(L, key);
	lua_rawget(L, idx);
	v = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : NAN;
	lua_pop(L, 1);
	return v;
}

const char *raw_text(lua_State *L, int idx, const char *key, struct arena *a)
{
	const char *text = NULL;

	lua_pushstring(L, key);
	lua_rawget(L, idx);
	if (lua_type(L, -1) == LUA_TSTRING)
		text = arena_strdup(a, lua_tostring(L, -1));
	lua_pop(L, 1);
	return text;
}

/* A time of the table on top; 0: not known. */
static double seconds_at(lua_State *L, const char *key)
{
	double v = raw_number(L, lua_gettop(L), key);

	return v > 0 && isfinite(v) ? v : 0;
}

static enum progress_status status_of(const char *name, bool measured)
{
	static const char *const statuses[] = { "ok", "predicted", "skipped", "wrong", "failed" };

	for (int i = 0; name && i < LEN(statuses); i++)	/* ORDER progress_status */
		if (!strcmp(name, statuses[i]))
			return (enum progress_status)i;
	return measured ? PROGRESS_OK : PROGRESS_PREDICTED;
}

static struct progress_entry read_entry(lua_State *L, int64_t i, struct arena *a)
{
	struct progress_entry e = { .predicted = seconds_at(L, "predicted"),
		.measured = seconds_at(L, "measured"), .best = seconds_at(L, "best") };
	double trial = raw_number(L, lua_gettop(L), "trial");
	const char *phase = raw_text(L, lua_gettop(L), "phase", a);
	const char *text = raw_text(L, lua_gettop(L), "text", a);

	e.trial = trial >= 0 && trial < 1e15 ? (int64_t)trial : i;
	e.status = status_of(raw_text(L, lua_gettop(L), "status", a), e.measured > 0);
	e.device = phase && !strcmp(phase, "device");
	e.text = text ? text : "";
	return e;
}

void read_history(lua_State *L, int idx, struct arena *a, struct progress_curve *out)
{
	int n = lua_type(L, idx) == LUA_TTABLE ? (int)lua_rawlen(L, idx) : 0;
	struct progress_entry *v = ARENA_ARRAY(a, n + 1, struct progress_entry);

	int64_t last = 0, before = 0;	/* `before`: trials of earlier phases, if a phase counts from 1 again */

	out->v = v;
	out->n = 0;
	for (int i = 1; i <= n; i++) {
		if (lua_rawgeti(L, idx, i) == LUA_TTABLE) {
			struct progress_entry *e = &v[out->n++];

			*e = read_entry(L, i, a);
			if (e->trial + before < last)
				before = last;
			last = e->trial += before;
		}
		lua_pop(L, 1);
	}
	progress_fill(v, out->n);
}
