/* lplan.h - what the bindings of graphs, plans and timelines share. */
#ifndef LUA_LPLAN_H
#define LUA_LPLAN_H

#include <stdio.h>

#include "lcore.h"
#include "draw/draw.h"
#include "lower/lower.h"
#include "plan/check.h"
#include "plan/history.h"

#define GRAPH_CLASS "millrace.graph"
#define PLAN_CLASS "millrace.plan"
#define PROBLEMS_CLASS "millrace.problems"
#define TIMELINE_CLASS "millrace.timeline"
#define KERNEL_CLASS "millrace.kernel"
#define LOWERED_CLASS "millrace.lowered"
#define ON_HOST_CLASS "millrace.on_host"

/* What a plan keeps in its uservalues: the graph that it was made of, and its device; the path of its file; the
 * program and sizes that the file is for, if it was loaded for others; the hash of the file's text; the graph of the
 * present tile, if that differs and was asked for. The last four may be nil. */
enum { PLAN_PATH = 3, PLAN_MADE_FOR, PLAN_HASH, PLAN_GRAPH, PLAN_SLOTS = PLAN_GRAPH };

const struct graph *check_graph(lua_State *L, int idx, const char *what);
/* Push the graph of the program at `owner` with these extents, without splits. */
void push_graph(lua_State *L, int owner, const struct tiling *t);
struct history *check_plan(lua_State *L, int idx, const char *what);
/* The present plan of the one at 1, which no edit changes until the C function ends. */
const struct plan *plan_present(lua_State *L, const char *what);

/* Lists of tables; see docs/reference.md for their fields. */
void push_tasks(lua_State *L, const struct graph *g);
void push_buffers(lua_State *L, const struct graph *g);
void push_edges(lua_State *L, const struct graph *g);
void push_edge(lua_State *L, const struct graph *g, const struct edge *e);
/* location= of the table on top, "FILE:LINE", if it is known; place=, its deprecated name, too. */
void set_location(lua_State *L, struct srcloc loc);
void push_tile(lua_State *L, const struct program *p, const struct tiling *t);	/* axis -> extent */
void push_problems(lua_State *L, const struct plan *p, const struct problems *list);

/* What the standard output is: 80 columns of ASCII unless it is a terminal. */
struct terminal {
	int width;
	bool utf8, color;
};
struct terminal terminal_get(void);

/* {width=, ascii=, color=}, by default what the terminal can show, without colour */
void check_drawing(lua_State *L, int idx, const char *what, struct draw_options *o);

/* Raise if the plan, which is argument 1, is not legal, telling its first problem as plan:check() shows it. */
void check_legal(lua_State *L, const struct plan *p, const char *what);
/* The size of each axis of the program: the largest, or what the option sizes= of the table at idx, {m=512}, says. */
void sizes_option(lua_State *L, int idx, const char *what, const struct program *p, int64_t sizes[AXES_MAX]);

/* A new timeline of a plan that the object at `owner` owns, which it keeps; returns where to put it. */
struct timeline **timeline_box(lua_State *L, int owner);
struct timeline *check_timeline(lua_State *L, int idx, const char *what);
/* Which of t->phases the option phase= of the table at idx means, a number from 1 or a name, counted from 0; the
 * one that takes longest unless it is given. */
int option_phase(lua_State *L, int idx, const char *what, const struct timeline *t);
/* Raises unless that phase of the timeline has cycle `from`. */
void check_from(lua_State *L, const char *what, const struct timeline *t, int phase, int64_t from);
/* plan:simulate(), plan:check(), plan:table(), tostring(plan), plan.usage */
int plan_simulate_l(lua_State *L);
int plan_check_l(lua_State *L);
int plan_table_l(lua_State *L);
int plan_tostring_l(lua_State *L);
int plan_usage_l(lua_State *L);

#endif
