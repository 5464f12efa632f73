#include "lcore.h"

#include <string.h>

#include "draw/draw.h"
#include "draw/speed.h"
#include "lplan.h"

#define TASK_RECORD "millrace.stask"
#define BUFFER_RECORD "millrace.buffer"
#define EDGE_RECORD "millrace.dependence"

static const char *const task_fields[] = { "name", "kind", "phase", "loop", "shape", "dtype", "bytes",
	"shared_bytes", "flops", "m", "n", "k", "reads", "writes", "location", "place" /* deprecated */ };
static const char *const buffer_fields[] = { "name", "dtype", "scope", "phase", "loop", "shape", "bytes", "carry" };
static const char *const edge_fields[] = { "from", "to", "kind", "buffer", "distance", "loop", "reuse" };

const struct graph *check_graph(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, GRAPH_CLASS, what);
}

BOX_GC(graph_gc, GRAPH_CLASS, graph_free)

void push_graph(lua_State *L, int owner, const struct tiling *t)
{
	struct host *h = enter(L);
	const struct program *p = check_program(L, owner, "graph");
	struct err e;
	void **box;

	owner = lua_absindex(L, owner);
	box = box_new(L, GRAPH_CLASS, 1);
	keep(L, -1, 1, owner);
	raise_if(L, graph_build(&h->mem, p, t, NULL, (struct graph **)box, &e), &e);
}

/* Extents that were given as options: graph{m=128}. */
static void check_extents(lua_State *L, const struct program *p)
{
	for (int i = 0; i < p->axes.n && lua_istable(L, 2); i++) {
		const char *name = p->axes.v[i].name;

		lua_pushstring(L, name);
		if (strcmp(name, "tile") && lua_rawget(L, 2) == LUA_TNUMBER)
			throw_msg(L, "graph: '%s' is an axis, whose extent belongs in tile=: graph{tile={%s=%d, ...}}",
				name, name, (int)lua_tonumber(L, -1));
		lua_pop(L, 1);
	}
}

/* bound:graph{tile={m=128, ...}} */
static int program_graph_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "graph");
	struct tiling t = { 0 };

	lua_settop(L, 2);
	check_extents(L, p);
	OPTIONS_CHECK(L, 2, "graph", "tile");
	if (option_push(L, 2, "graph", "tile", LUA_TTABLE))
		check_tiling(L, -1, "graph", p, &t);
	push_graph(L, 1, &t);
	return 1;
}

/* tables ------------------------------------------------------------------ */

static const char *loop_name(const struct graph *g, int loop, char *buf, size_t size)
{
	const struct loop *l;
	int len = 0;

	if (loop == NONE)
		return NULL;
	l = &g->program->loops.v[loop];
	buf[0] = '\0';
	for (int i = 0; i < l->naxes && len < (int)size; i++)
		len += snprintf(buf + len, size - (size_t)len, "%s%s", i ? "," : "",
			g->program->axes.v[l->axis[i]].name);
	return buf;
}

static void set_loop(lua_State *L, const struct graph *g, int loop)
{
	char buf[128];

	set_text(L, "loop", loop_name(g, loop, buf, sizeof(buf)));
}

static void set_shape(lua_State *L, const struct graph *g, int n, const int *axis, const int64_t *extent)
{
	lua_createtable(L, 0, n);
	for (int i = 0; i < n; i++)
		set_integer(L, g->program->axes.v[axis[i]].name, extent[i]);
	lua_setfield(L, -2, "shape");
}

static void set_buffers(lua_State *L, const struct graph *g, const char *key, const int *v, int n)
{
	PUSH_LIST(L, i, n, lua_pushstring(L, g->buffers.v[v[i]].name));
	lua_setfield(L, -2, key);
}

void set_location(lua_State *L, struct srcloc loc)
{
	if (!loc.line)
		return;
	lua_pushfstring(L, "%s:%d", loc.file ? loc.file : "?", loc.line);
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "location");
	lua_setfield(L, -2, "place");		/* deprecated */
}

static void push_task(lua_State *L, const struct graph *g, const struct stask *s)
{
	lua_createtable(L, 0, 15);
	set_text(L, "name", s->name);
	set_text(L, "kind", task_kind_name(s->kind));
	set_text(L, "phase", g->program->phases.v[s->phase].name);
	set_loop(L, g, s->loop);
	set_shape(L, g, s->naxes, s->axis, s->extent);
	set_text(L, "dtype", dtype_name(s->work.type));
	set_real(L, "bytes", s->work.global_bytes);
	set_real(L, "shared_bytes", s->work.shared_bytes);
	set_real(L, "flops", s->work.flops);
	if (s->kind == TASK_MMA) {
		set_integer(L, "m", s->work.m);
		set_integer(L, "n", s->work.n);
		set_integer(L, "k", s->work.k);
	}
	set_buffers(L, g, "reads", s->reads.v, s->reads.n);
	set_buffers(L, g, "writes", s->writes.v, s->writes.n);
	set_location(L, s->loc);
	luaL_setmetatable(L, TASK_RECORD);
}

static void push_buffer(lua_State *L, const struct graph *g, const struct buffer *b)
{
	lua_createtable(L, 0, 8);
	set_text(L, "name", b->name);
	set_text(L, "dtype", dtype_name(b->type));
	set_text(L, "scope", b->scope == SCOPE_SHARED ? "shared" : "registers");
	set_text(L, "phase", g->program->phases.v[b->phase].name);
	set_loop(L, g, b->loop);
	set_shape(L, g, b->naxes, b->axis, b->extent);
	set_integer(L, "bytes", b->bytes);
	set_bool(L, "carry", b->carry != NONE);
	luaL_setmetatable(L, BUFFER_RECORD);
}

void push_edge(lua_State *L, const struct graph *g, const struct edge *e)
{
	lua_createtable(L, 0, 8);
	set_text(L, "from", g->tasks.v[e->from].name);
	set_text(L, "to", g->tasks.v[e->to].name);
	set_text(L, "kind", edge_kind_name(e->kind));
	set_text(L, "buffer", g->buffers.v[e->buffer].name);
	set_integer(L, "distance", e->distance);
	set_loop(L, g, e->loop);
	set_bool(L, "reuse", e->reuse);
	luaL_setmetatable(L, EDGE_RECORD);
}

void push_tasks(lua_State *L, const struct graph *g)
{
	PUSH_LIST(L, i, g->tasks.n, push_task(L, g, &g->tasks.v[i]));
}

void push_buffers(lua_State *L, const struct graph *g)
{
	PUSH_LIST(L, i, g->buffers.n, push_buffer(L, g, &g->buffers.v[i]));
}

void push_edges(lua_State *L, const struct graph *g)
{
	PUSH_LIST(L, i, g->edges.n, push_edge(L, g, &g->edges.v[i]));
}

void push_tile(lua_State *L, const struct program *p, const struct tiling *t)
{
	lua_newtable(L);
	for (int a = 0; a < p->axes.n; a++)
		if (t->extent[a])
			set_integer(L, p->axes.v[a].name, t->extent[a]);
}

static int64_t output_tiles(const struct graph *g)
{
	int64_t n = 0;

	for (int i = 0; i < g->program->phases.n; i++)
		n += g->grids[i].total;
	return n;
}

#define FIELD(name, push) GETTER(graph_##name, const struct graph *, check_graph(L, 1, #name), push)

FIELD(tasks, push_tasks(L, o))
FIELD(buffers, push_buffers(L, o))
FIELD(edges, push_edges(L, o))
FIELD(tile, (push_tile(L, o->program, &o->tiling), copy_close(L, "graph.tile", "bound:graph{tile={", "}}")))
FIELD(flops, lua_pushnumber(L, graph_flops(o)))
FIELD(bytes, lua_pushnumber(L, graph_bytes(o)))
FIELD(tiles, lua_pushinteger(L, output_tiles(o)))
FIELD(program, ((void)o, lua_getiuservalue(L, 1, 1)))

/* drawings ---------------------------------------------------------------- */

void check_drawing(lua_State *L, int idx, const char *what, struct draw_options *o)
{
	struct terminal term = terminal_get();
	bool ascii = !term.utf8, color = false;
	int64_t width = term.width;

	OPTIONS_CHECK(L, idx, what, "width", "ascii", "color");
	option_integer(L, idx, what, "width", 20, 1000, &width);
	option_bool(L, idx, what, "ascii", &ascii);
	option_bool(L, idx, what, "color", &color);
	*o = (struct draw_options){ .width = (int)width,
		.flags = (ascii ? DRAW_ASCII : 0u) | (color ? DRAW_COLOUR : 0u) };
}

/* graph:table{width=}, graph:drawing{width=} -> text */
static int graph_text(lua_State *L, const char *what,
	void (*draw)(const struct graph *, const struct draw_options *, struct buf *))
{
	const struct graph *g = check_graph(L, 1, what);
	struct draw_options o;
	struct buf text;

	lua_settop(L, 2);
	check_drawing(L, 2, what, &o);
	enter(L);
	buf_init(&text, scratch_push(L));
	draw(g, &o, &text);
	return push_buf(L, &text);
}

RETURNS(graph_table, graph_text(L, "table", draw_graph_table))

RETURNS(graph_drawing, graph_text(L, "drawing", draw_graph_layers))

RETURNS_TEXT(graph_dot, const struct graph *, check_graph(L, 1, "dot"), draw_graph_dot(o, &text))

static int graph_tostring_l(lua_State *L)
{
	lua_settop(L, 1);
	return graph_text(L, "tostring", draw_graph_table);
}

/* core.speed_at(graph, device, seconds) -> the speed as text, and the share of the bandwidth */
static int speed_at_l(lua_State *L)
{
	const struct graph *g = check_graph(L, 1, "speed_at");
	const struct vdevice *d = check_device(L, 2, "speed_at");
	double seconds = luaL_checknumber(L, 3);

	enter(L);
	lua_pushstring(L, speed_text(scratch_push(L), g, d, graph_flops(g), seconds));
	lua_pushnumber(L, bandwidth_share(g, d, seconds));
	return 2;
}

void lua_open_graph(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "table", graph_table_l }, { "drawing", graph_drawing_l }, { "dot", graph_dot_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = {
		{ "tasks", graph_tasks_l }, { "buffers", graph_buffers_l }, { "edges", graph_edges_l },
		{ "tile", graph_tile_l }, { "flops", graph_flops_l }, { "bytes", graph_bytes_l },
		{ "tiles", graph_tiles_l }, { "program", graph_program_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", graph_gc_l }, { "__tostring", graph_tostring_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ GRAPH_CLASS, methods, fields, meta });
	class_method(L, PROGRAM_CLASS, "graph", program_graph_l);
	set_function(L, "speed_at", speed_at_l);
	record_class(L, TASK_RECORD, "sTask", task_fields, LEN(task_fields));
	record_class(L, BUFFER_RECORD, "buffer", buffer_fields, LEN(buffer_fields));
	record_class(L, EDGE_RECORD, "dependence", edge_fields, LEN(edge_fields));
}
