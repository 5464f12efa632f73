/* The explorer's views, drawn without a terminal, compared with tests/explore/views/NAME.txt;
 * BLESS=1 writes those files. After each grid, its reversed cells are listed. */
#include <lauxlib.h>
#include <stdlib.h>

#include "base/prng.h"
#include "explore/view.h"
#include "lua/lcore.h"
#include "lua/lplan.h"
#include "tests/golden.h"
#include "tests/tap.h"

/* ---- a model -------------------------------------------------------------------- */

static void must(enum err_code code, const struct err *e)
{
	if (!code)
		return;
	printf("Bail out! %s\n", e->msg);
	exit(1);
}

static void model_open(struct model *m, struct mem *mem, struct history *h)
{
	struct err e;

	model_init(m, mem);
	m->history = h;
	must(state_of_history(m, h, true, &m->now, &e), &e);
	m->base = m->now;
}

/* After an edit. */
static void model_again(struct model *m, struct history *h)
{
	struct err e;

	if (m->base != m->now)
		state_free(m->now);
	must(state_of_history(m, h, true, &m->now, &e), &e);
}

struct scene {
	struct host host;
	lua_State *L;
	struct model m;
	struct view view;
	struct buf out;
	struct arena arena;		/* of out */
};

/* Lua that returns a plan, or a timeline. */
static void scene_open(struct scene *s, const char *chunk)
{
	memset(s, 0, sizeof(*s));
	s->host.home = getenv("MILLRACE_HOME") ? getenv("MILLRACE_HOME") : ".";
	s->L = host_open(&s->host);
	arena_init(&s->arena, &s->host.mem);
	buf_init(&s->out, &s->arena);
	if (luaL_loadstring(s->L, chunk) || lua_pcall(s->L, 0, 1, 0)) {
		printf("Bail out! %s\n", lua_tostring(s->L, -1));
		exit(1);
	}
	model_open(&s->m, &s->host.mem, check_plan(s->L, -1, "test"));
}

static void scene_look(struct scene *s, const struct view_ops *ops);

/* Another plan, in the same view. */
static void scene_again(struct scene *s, const char *chunk)
{
	const struct view_ops *ops = s->view.ops;

	scene_look(s, NULL);
	model_free(&s->m);
	if (luaL_loadstring(s->L, chunk) || lua_pcall(s->L, 0, 1, 0)) {
		printf("Bail out! %s\n", lua_tostring(s->L, -1));
		exit(1);
	}
	model_open(&s->m, &s->host.mem, check_plan(s->L, -1, "test"));
	scene_look(s, ops);
}

static void scene_look(struct scene *s, const struct view_ops *ops)
{
	free(s->view.own);
	s->view = (struct view){ .ops = ops, .m = &s->m, .own = calloc(1, ops ? ops->size + 1 : 1) };
}

static void scene_close(struct scene *s)
{
	scene_look(s, NULL);
	free(s->view.own);
	model_free(&s->m);
	arena_release(&s->arena);
	host_close(s->L);
	is_int((long long)s->host.mem.used, 0, "all memory is given back");
}

/* Runs of reversed cells, as "x,y 'text'". */
static void put_reversed(const struct cells *c, struct buf *out)
{
	size_t start = out->len;

	for (int y = 0; y < c->h; y++) {
		for (int x = 0; x < c->w; x++) {
			if (!(cells_at(c, x, y)->style.attr & STYLE_REVERSE))
				continue;
			buf_printf(out, "%s%d,%d '", out->len > start ? " " : "reversed: ", x, y);
			for (; x < c->w && (cells_at(c, x, y)->style.attr & STYLE_REVERSE); x++)
				buf_puts(out, cells_at(c, x, y)->utf8[0] ? cells_at(c, x, y)->utf8 : " ");
			buf_putc(out, '\'');
		}
	}
	if (out->len > start)
		buf_putc(out, '\n');
}

static void frame(struct scene *s, int w, int h, struct cells *c)
{
	const char *lacks = s->view.ops->lacks ? s->view.ops->lacks(&s->m) : NULL;

	arena_release(&s->m.frame);
	cells_init(c, &s->m.frame, w, h);
	if (lacks)
		cells_text(c, 0, 0, w, lacks, PLAIN);
	else
		s->view.ops->draw(&s->view, c);
}

static void picture(struct scene *s, const char *what, int w, int h)
{
	struct cells c;

	frame(s, w, h, &c);
	buf_printf(&s->out, "==== %s, %d x %d\n", what, w, h);
	cells_print(&c, s->m.flags, &s->out);
	put_reversed(&c, &s->out);
	if (s->m.message[0])
		buf_printf(&s->out, "message: %s\n", s->m.message);
	s->m.message[0] = '\0';
}

static void act(struct scene *s, enum action a)
{
	static const struct key none;
	struct cells c;

	if (!s->view.ops->act(&s->view, a, &none))
		buf_printf(&s->out, "(not taken: %s)\n", action_rows[a].id);
	frame(s, 80, 24, &c);
}

/* Sizes from one cell to a wall, with and without colour, and every action at each: whether the
 * sanitizers have something to say. */
static void shake(struct scene *s, const char *name)
{
	static const int size[][2] = { { 1, 1 }, { 2, 3 }, { 7, 1 }, { 1, 40 }, { 20, 5 }, { 40, 12 },
		{ 80, 24 }, { 132, 43 }, { 300, 100 } };
	struct prng r;
	struct cells c;

	r = (struct prng){ 7 };
	for (int i = 0; i < LEN(size); i++) {
		s->m.flags = i % 2 ? DRAW_COLOUR : 0;
		for (int k = 0; k < 40; k++) {
			enum action a = (enum action)(1 + prng_below(&r, ACTION_COUNT - 1));
			struct key key = { .code = k % 3 ? KEY_CODE_NONE : KEY_CODE_CLICK,
				.x = (int)prng_below(&r, 100), .y = (int)prng_below(&r, 40) };

			if (s->view.ops->lacks && s->view.ops->lacks(&s->m))
				break;
			frame(s, size[i][0], size[i][1], &c);
			s->view.ops->act(&s->view, key.code ? ACT_NONE : a, &key);
			if (k % 8 == 7 && s->view.ops->changed)
				s->view.ops->changed(&s->view);
			if (k % 8 == 3 && s->view.ops->find)
				s->view.ops->find(&s->view, "load", k % 3 - 1);
		}
		frame(s, size[i][0], size[i][1], &c);
	}
	s->m.flags = 0;
	s->m.message[0] = '\0';
	ok(true, name);
}

static void golden(struct scene *s, const char *name)
{
	golden_is(name, "explore/views", name, s->out.text);
	buf_init(&s->out, &s->arena);
}

/* ---- plans ---------------------------------------------------------------------- */

/* Of the example, on a device of our own: what is shown changes with no measurement. */
static const char attention[] = "local mr = require 'millrace'\n"
	"local f = assert(io.open 'examples/attention_pingpong.lua')\n"
	"local text = f:read 'a':gsub('\"h200\"', '\"tests/explore/round.lua\"')\n"
	"f:close()\n"
	"return load(text, '@pingpong.lua')(mr.examples.flash_attention{b=1, h=4, m=1024, n=1024, d=128})";
static const char on_h200[] = "local mr = require 'millrace'\n"
	"local b = mr.examples.flash_attention{b=1, h=1, m=256, n=1024, d=128}\n"
	"return mr.load_plan('examples/attention_pingpong.lua', b)";
static const char serial[] = "local mr = require 'millrace'\n"
	"local f = assert(io.open 'examples/attention_serial.lua')\n"
	"local text = f:read 'a':gsub('\"h200\"', '\"tests/explore/round.lua\"')\n"
	"f:close()\n"
	"return load(text, '@serial.lua')(mr.examples.flash_attention{b=1, h=4, m=1024, n=1024, d=128})";
static const char two_phases[] = "local mr = require 'millrace'\n"
	"local f = assert(io.open 'examples/decoding_split.lua')\n"
	"local text = f:read 'a':gsub('\"h200\"', '\"tests/explore/round.lua\"')\n"
	"f:close()\n"
	"return load(text, '@split.lua')()";
static const char replicas[] = "local mr = require 'millrace'\n"
	"local b = mr.examples.gemm{m=2048, n=2048, k=512}\n"
	"local p = mr.plan(b:graph{tile={m=128, n=128, k=64}}, mr.device 'tests/explore/round.lua')\n"
	"p:buffers{a=4, b=4}\n"
	"p:lane('c0', {warps=4, replicas=2})\n"
	"for _, t in ipairs{'load_a', 'load_b', 'mma', 'epilogue', 'store_c'} do p:append(t) end\n"
	"p:fill_waits()\n"
	"return p";
static const char gemm[] = "local mr = require 'millrace'\n"
	"local b = mr.examples.gemm{m=4096, n=4096, k=1024}\n"
	"local p = mr.plan(b:graph{tile={m=128, n=128, k=64}}, mr.device 'tests/explore/round.lua')\n"
	"p:buffers{a=3, b=3}\n"
	"for _, t in ipairs{'load_a', 'load_b', 'mma', 'epilogue', 'store_c'} do p:append(t) end\n"
	"p:grid{raster='columns', group=4}\n"
	"p:fill_waits()\n"
	"return p";

/* Tiles with 1, 2, 3 ... iterations, those with most first. */
static const char causal[] = "local mr = require 'millrace'\n"
	"local f = assert(io.open 'examples/attention_pingpong.lua')\n"
	"local text = f:read 'a':gsub('\"h200\"', '\"tests/explore/round.lua\"')\n"
	"f:close()\n"
	"local b = mr.examples.flash_attention{b=1, h=4, m=2048, n=2048, d=128, causal=true}\n"
	"local p = load(text, '@pingpong.lua')(b)\n"
	"p:grid{longest_first=true}\n"
	"return p";

static void edit(struct scene *s, const char *statement)
{
	if (luaL_loadstring(s->L, statement))
		exit(1);
	lua_pushvalue(s->L, -2);
	if (lua_pcall(s->L, 1, 0, 0)) {
		printf("Bail out! %s\n", lua_tostring(s->L, -1));
		exit(1);
	}
	model_again(&s->m, check_plan(s->L, -1, "test"));
}

static void test_compare(void)
{
	struct scene s;

	scene_open(&s, attention);
	scene_look(&s, &view_compare);
	picture(&s, "nothing to compare", 80, 3);
	edit(&s, "local p = ...; p:unwait('mma_qk.0', 'mma_pv.1'); p:unwait('mma_qk.1', 'mma_pv.0')");
	picture(&s, "without issue order", 100, 70);
	picture(&s, "the same", 80, 24);
	act(&s, ACT_ZOOM_IN);
	act(&s, ACT_PAGE_DOWN);
	picture(&s, "closer, a page down", 80, 24);
	shake(&s, "compare at any size");
	scene_look(&s, &view_compare);
	edit(&s, "local p = ...; p:unwait('mma_qk.0', 'load_k')");
	picture(&s, "not legal", 80, 24);
	golden(&s, "compare");
	scene_close(&s);
}

/* What the Lua side would say of two missing waits: one problem, which begins with the second. */
static const char *one_problem(struct model *m)
{
	(void)m;
	return "2\t2 dependences are not kept\tplan:fill_waits()\n";
}

static void test_problems(void)
{
	struct scene s;

	scene_open(&s, attention);
	scene_look(&s, &view_problems);
	picture(&s, "no problem", 80, 3);
	edit(&s, "local p = ...; p:unwait('mma_qk.0', 'load_k'); p:buffers{v=1}\n"
		"p:unwait('load_v', 'mma_pv.1')");
	picture(&s, "two races", 100, 40);
	act(&s, ACT_DOWN);
	picture(&s, "the second", 80, 24);
	act(&s, ACT_GO);
	is_int(s.m.go, VIEW_plan, "Enter leads to the plan");
	static const char *const said[][2] = {
		{ "mma_pv.0", "'mma_pv.0' continues 'o.0' of the iteration before, so that it has one version; } on 'load_v' is for "
			"'v', which it reads" },
		{ "store_o.0", "'store_o.0' writes memory, and no buffer" },
		{ "load_q", "'q' is written once a tile; plan:buffers{q=2} in the shell gives it versions" },
	};
	for (int i = 0; i < LEN(said); i++) {
		s.m.sel.task = graph_find_task(s.m.now->graph, said[i][0]);
		model_deepen(&s.m, 1);
		is_str(s.m.message, said[i][1], said[i][0]);
		s.m.message[0] = '\0';
	}
	shake(&s, "problems at any size");
	s.m.calls.problems = one_problem;
	scene_look(&s, &view_problems);
	edit(&s, "local p = ...; p:buffers{k=3}");
	picture(&s, "as check() shows them", 100, 12);
	s.m.calls.problems = NULL;
	scene_look(&s, &view_problems);
	edit(&s, "local p = ...; p:buffers{k=8}; p:fill_waits()");
	picture(&s, "too much memory", 80, 40);
	scene_again(&s, gemm);
	edit(&s, "local p = ...; p:wait('load_b', {{'mma', distance=0}})");
	picture(&s, "a deadlock", 160, 24);
	golden(&s, "problems");
	scene_close(&s);
}

static void test_graph(void)
{
	struct scene s;

	scene_open(&s, attention);
	scene_look(&s, &view_graph);
	picture(&s, "nothing selected", 80, 24);
	act(&s, ACT_DOWN);
	act(&s, ACT_DOWN);
	act(&s, ACT_DOWN);
	picture(&s, "three down", 80, 30);
	act(&s, ACT_RIGHT);
	picture(&s, "and one to the right", 140, 50);
	model_filter(&s.m, "c0");
	picture(&s, "only lane c0", 140, 50);
	is_int(s.m.sel.task, NONE, "an sTask that is not shown is not selected");
	model_filter(&s.m, "");
	picture(&s, "without a filter again", 80, 24);
	act(&s, ACT_DOWN);
	act(&s, ACT_GO);
	is_int(s.m.go, VIEW_plan, "Enter leads to the plan");
	scene_again(&s, gemm);
	s.m.sel.task = graph_find_task(s.m.now->graph, "mma");
	picture(&s, "another program", 120, 30);
	shake(&s, "graph at any size");
	golden(&s, "graph");
	scene_close(&s);
}

static void test_step(void)
{
	struct scene s;

	scene_open(&s, attention);
	scene_look(&s, &view_step);
	picture(&s, "the beginning", 80, 30);
	for (int i = 0; i < 40; i++)
		act(&s, ACT_STEP_NEXT);
	picture(&s, "40 on", 100, 36);
	act(&s, ACT_STEP_NEXT);
	picture(&s, "and one", 80, 24);
	for (int i = 0; i < 41; i++)
		act(&s, ACT_STEP_BACK);
	is_int(s.m.sel.cursor, 0, "as many back is the beginning");
	act(&s, ACT_END);
	picture(&s, "the end", 80, 30);
	shake(&s, "step at any size");
	golden(&s, "step");
	scene_close(&s);
}

static void test_grid(void)
{
	struct scene s;

	scene_open(&s, gemm);
	scene_look(&s, &view_grid);
	picture(&s, "as a map", 100, 50);
	act(&s, ACT_DOWN);
	act(&s, ACT_RIGHT);
	act(&s, ACT_RIGHT);
	act(&s, ACT_PAGE_DOWN);
	picture(&s, "elsewhere", 80, 24);
	act(&s, ACT_OTHER_SIDE);
	picture(&s, "by EU", 120, 20);
	shake(&s, "grid at any size");
	edit(&s, "local p = ...; p:grid{cluster=2, eus=10, raster='rows', group=1}");
	picture(&s, "clusters", 120, 40);
	scene_again(&s, causal);
	picture(&s, "tiles that differ", 120, 30);
	act(&s, ACT_OTHER_SIDE);
	act(&s, ACT_END);
	picture(&s, "by EU", 120, 20);
	shake(&s, "grid of tiles that differ at any size");
	golden(&s, "grid");
	scene_close(&s);
}

static void test_kernel(void)
{
	struct scene s;

	scene_open(&s, attention);
	scene_look(&s, &view_kernel);
	picture(&s, "of a device that no kernel is made for", 80, 5);
	scene_again(&s, on_h200);
	for (int i = 0; i < 4; i++)
		act(&s, ACT_RIGHT);
	picture(&s, "an sTask", 120, 24);
	act(&s, ACT_OTHER_SIDE);
	picture(&s, "its source", 120, 24);
	shake(&s, "kernel at any size");
	golden(&s, "kernel");
	scene_close(&s);
}

static void test_help(void)
{
	struct scene s;

	scene_open(&s, attention);
	scene_look(&s, &view_help);
	picture(&s, "one column", 80, 24);
	act(&s, ACT_PAGE_DOWN);
	picture(&s, "a page down", 80, 24);
	picture(&s, "two columns", 160, 60);
	shake(&s, "help at any size");
	golden(&s, "help");
	scene_close(&s);
}

/* A timeline next to the prediction, as if it had been measured. */
static void test_measured(void)
{
	struct scene s;
	struct state *other;
	struct err e;

	scene_open(&s, attention);
	scene_look(&s, &view_compare);
	if (luaL_dostring(s.L, serial))
		exit(1);
	must(state_of_history(&s.m, check_plan(s.L, -1, "test"), true, &other, &e), &e);
	lua_settop(s.L, 1);
	other->own_tl->measured = true;
	other->own_tl->overhead = 0.012;
	s.m.measured = other->tl;
	s.m.measured_of = s.m.now->script;
	picture(&s, "predicted and measured", 100, 70);
	act(&s, ACT_ZOOM_ALL);
	picture(&s, "all of it", 80, 24);
	shake(&s, "compare with what is measured at any size");
	other->own_tl->logical = true;
	picture(&s, "a trace without a clock", 80, 12);
	golden(&s, "measured");
	scene_look(&s, NULL);
	state_free(other);
	scene_close(&s);
}

static const struct view_ops *const others[] = { &view_graph, &view_kernel, &view_grid, &view_step,
	&view_compare, &view_problems, &view_help };

/* Whatever there is of a model. */
static void test_less(void)
{
	static const char *const chunk[] = { two_phases, gemm, causal, on_h200 };
	struct state *graph;
	struct scene s;

	scene_open(&s, attention);
	state_of_graph(&s.m, s.m.now->graph, &graph);
	for (int i = 0; i < LEN(others); i++) {
		struct state *now = s.m.now;

		s.m.now = s.m.base = graph;
		scene_look(&s, others[i]);
		picture(&s, others[i]->name, 80, 3);
		shake(&s, "a graph alone");
		s.m.now = s.m.base = now;
	}
	scene_look(&s, NULL);
	state_free(graph);
	golden(&s, "less");
	for (int k = 0; k < LEN(chunk); k++) {
		scene_again(&s, chunk[k]);
		for (int i = 0; i < LEN(others); i++) {
			scene_look(&s, others[i]);
			shake(&s, others[i]->name);
		}
	}
	scene_look(&s, &view_grid);
	scene_again(&s, two_phases);
	s.m.sel.phase = 1;
	picture(&s, "the second phase", 100, 20);
	scene_look(&s, &view_step);
	s.m.sel.cursor = 1000;
	picture(&s, "the second phase", 100, 30);
	scene_again(&s, replicas);
	s.m.sel.cursor = 4000;
	picture(&s, "replicas", 100, 30);
	shake(&s, "step of replicas");
	golden(&s, "phases");
	scene_close(&s);
}

int main(void)
{
	test_measured();
	test_less();
	test_help();
	test_kernel();
	test_grid();
	test_step();
	test_graph();
	test_problems();
	test_compare();
	return tap_done();
}
