/* Sequences as text: what lua/std/sequence_show.lua makes the methods of. */
#include "lsequence.h"

#include "draw/sequences.h"

/* core.sequence_timeline_text(timeline, options) */
static int timeline_text_l(lua_State *L)
{
	const struct seqline *l = check_seqline(L, 1, "text");
	struct draw_options o;
	struct buf text;

	lua_settop(L, 2);
	check_drawing(L, 2, "text", &o);
	enter(L);
	buf_init(&text, scratch_push(L));
	draw_seqline(l, &o, &text);
	return push_buf(L, &text);
}

/* core.sequence_pair_text(timeline, other, name, name of the other, options) */
static int pair_text_l(lua_State *L)
{
	const struct seqline *l[2] = { check_seqline(L, 1, "compare"), check_seqline(L, 2, "compare") };
	const char *names[2] = { check_text(L, 3, "compare", "name"), check_text(L, 4, "compare", "name") };
	struct draw_options o;
	struct buf text;

	lua_settop(L, 5);
	check_drawing(L, 5, "text", &o);
	enter(L);
	buf_init(&text, scratch_push(L));
	draw_seqline_pair(l, names, &o, &text);
	return push_buf(L, &text);
}

/* core.sequence_bounds(timeline) -> what binds each kernel, in order of launches; "" if that is not known */
static int bounds_l(lua_State *L)
{
	const struct seqline *l = check_seqline(L, 1, "kernels");
	struct arena *a = scratch_push(L);

	enter(L);
	PUSH_LIST(L, i, l->n, lua_pushstring(L, seq_span_bound(a, &l->spans[i])));
	return 1;
}

/* core.sequence_utilization(timeline) -> share of the time in which each unit and memory is at work, by name */
static int utilization_l(lua_State *L)
{
	const struct seqline *l = check_seqline(L, 1, "utilization");
	int rows[SEU_MAX + 1], n = seqline_rows(l, rows);
	struct arena *a = scratch_push(L);

	enter(L);
	lua_createtable(L, 0, n);
	for (int i = 0; i < n; i++)
		set_real(L, seqline_row_name(l, rows[i]), *seqline_busy(a, l, rows[i], 0, l->seconds, 1));
	return 1;
}

void lua_open_seqdraw(lua_State *L)
{
	static const luaL_Reg functions[] = { { "sequence_timeline_text", timeline_text_l },
		{ "sequence_pair_text", pair_text_l }, { "sequence_bounds", bounds_l }, { "sequence_utilization", utilization_l }, { NULL, NULL } };

	luaL_setfuncs(L, functions, 0);
}
