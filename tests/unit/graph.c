/* The sTask-graph: dependences worked out by hand, and what Propagate refuses. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const struct srcloc here = { "test.lua", 3 };
#define HERE here
#include "tests/unit/make_program.h"

static struct mem mem;

/* ---- building ----------------------------------------------------------------------- */

/* The program at hand. Axes: m of 8 is tiled by 4, n of 6 and r of 4 by 2; k and j are
 * not tiled. Errors of the program itself are not what is tested here. */
static struct program *p;
static struct tiling tiling;
enum { M, N, R, K, J };

static void begin(void)
{
	static const char *const names[] = { "m", "n", "r", "k", "j" };
	static const int sizes[] = { 8, 6, 4, 3, 3 }, tiles[] = { 4, 2, 2, 0, 0 };
	
	p = program_new(&mem, "test");
	memset(&tiling, 0, sizeof(tiling));
	for (int i = 0; i < LEN(names); i++)
		tiling.extent[make_axis(p, names[i], sizes[i])] = tiles[i];
}

static int input(const char *name, int a, int b)
{
	return make_load(p, make_tensor(p, TENSOR_INPUT, name, DT_BF16, 2, (int[]){ a, b }), NULL);
}

static int carry(const char *name, int a, int b)
{
	return make_carry(p, name, b == NONE ? 1 : 2, (int[]){ a, b }, 0);
}

/* upto: an axis, or NONE. */
static void loop(int axis, int upto)
{
	struct index_expr x = index_axis(upto == NONE ? 0 : upto);
	
	x.k = -4;			/* so that the first tile of m has none */
	begin_loop_over(p, 1, &axis, upto == NONE ? NULL : &x);
}

static void end_loop(void)
{
	end_loop_of(p);
}

static void task(const char *name)
{
	begin_task_of(p, name);
}

static void end_task(void)
{
	end_task_of(p);
}

static int get(int id)
{
	return make_get(p, id);
}

static void set(int id, int value)
{
	make_set(p, id, value);
}

static void accumulate(int id, int value)
{
	make_accumulate(p, id, value);
}

static int add(int a, int b)
{
	return make_op(p, OP_ADD, a, b, NONE);
}

static int sum(int value, int axis)
{
	return make_reduce(p, OP_SUM, value, axis);
}

static int mma(const char *name, int a, int b)
{
	return make_mma(p, name, a, b);
}

static void store(const char *name, int value)
{
	const struct node *n = &p->nodes.v[value];
	
	make_store(p, make_tensor(p, TENSOR_OUTPUT, name, DT_F32, n->naxes, n->axis), value);
}

/* Ends the program. */
static struct graph *build(const struct split *splits, int nsplits)
{
	struct graph *g;
	struct err e;

	must_make(program_finish(p, &e), &e);
	must_make(graph_build(&mem, p, &tiling, &(struct shaping){ .splits = splits, .nsplits = nsplits }, &g,
		&e), &e);
	return g;
}

static void end(struct graph *g)
{
	graph_free(g);
	program_free(p);
}

/* ---- looking ------------------------------------------------------------------------- */

/* The edges of a buffer, one a line: "from -> to kind axis distance", where the axis is
 * that of the loop ("tile": of the tile loop). */
static void edges_are(const struct graph *g, const char *buffer, const char *want)
{
	int b = graph_find_buffer(g, buffer);
	struct arena a;
	struct buf text;

	arena_init(&a, &mem);
	buf_init(&text, &a);
	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];

		if (e->buffer == b)
			buf_printf(&text, "%s -> %s %s %s %d%s%s\n", g->tasks.v[e->from].name,
				g->tasks.v[e->to].name, edge_kind_name(e->kind),
				e->loop == NONE ? "tile" :
				p->axes.v[p->loops.v[e->loop].axis[0]].name, e->distance,
				e->reuse ? " reuse" : "", e->chain ? " chain" : "");
	}
	is_str(text.text, want, arena_strf(&a, "dependences of %s", buffer));
	arena_release(&a);
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Names of buffers, sorted: C may evaluate arguments in any order, and so make nodes. */
static const char *names_of(const struct graph *g, const int *buffers, int n, struct arena *a)
{
	const char **names = ARENA_ARRAY(a, n, const char *);
	struct buf text;

	buf_init(&text, a);
	for (int i = 0; i < n; i++)
		names[i] = g->buffers.v[buffers[i]].name;
	qsort(names, (size_t)n, sizeof(*names), by_name);
	for (int i = 0; i < n; i++)
		buf_printf(&text, "%s%s", i ? " " : "", names[i]);
	return text.text;
}

static void touches(const struct graph *g, const char *name, const char *reads, const char *writes)
{
	const struct stask *t = &g->tasks.v[graph_find_task(g, name)];
	struct arena a;

	arena_init(&a, &mem);
	is_str(names_of(g, t->reads.v, t->reads.n, &a), reads,
		arena_strf(&a, "what %s reads", name));
	is_str(names_of(g, t->writes.v, t->writes.n, &a), writes,
		arena_strf(&a, "what %s writes", name));
	arena_release(&a);
}

/* ---- dependences --------------------------------------------------------------------- */

/* A value made in a loop is read there, and overwritten in the next iteration; a carry
 * is kept from one to the next. */
static void test_loop(void)
{
	struct graph *g;
	int c, x;

	begin();
	c = carry("c", M, NONE);
	loop(N, NONE);
	x = input("X", M, N);
	task("add");
	set(c, add(get(c), sum(x, N)));
	end_task();
	end_loop();
	task("out");
	x = get(c);
	x = add(x, x);
	end_task();
	store("Y", x);
	g = build(NULL, 0);
	touches(g, "add", "X c", "c");
	edges_are(g, "X",
		"load_X -> add flow n 0\n"
		"load_X -> load_X output n 1 reuse\n"
		"add -> load_X anti n 1 reuse\n");
	edges_are(g, "c",
		"add -> add flow n 1\n"
		"add -> out flow tile 0\n"
		"add -> add output tile 1 reuse\n"
		"out -> add anti tile 1 reuse\n");
	edges_are(g, "out",
		"out -> store_Y flow tile 0\n"
		"out -> out output tile 1 reuse\n"
		"store_Y -> out anti tile 1 reuse\n");
	is_int(g->buffers.v[graph_find_buffer(g, "c")].loop, NONE, "a life of c is a tile");
	is_int(g->buffers.v[graph_find_buffer(g, "c")].first, graph_find_task(g, "add"),
		"it begins with the first who touches it");
	is_int(g->buffers.v[graph_find_buffer(g, "X")].loop, 0, "one of X is an iteration");
	end(g);
}

/* Products that add to a carry form a chain; the rescaling between them does not. */
static void test_chain(void)
{
	struct graph *g;
	int o, x;

	begin();
	o = carry("o", M, J);
	loop(N, NONE);
	accumulate(o, mma("mma1", input("A", M, K), input("B", K, J)));
	accumulate(o, mma("mma2", input("C", M, K), input("D", K, J)));
	end_loop();
	loop(R, NONE);
	accumulate(o, mma("mma3", input("E", M, K), input("F", K, J)));
	task("rescale");
	x = get(o);
	set(o, add(x, x));
	end_task();
	end_loop();
	store("Y", get(o));
	g = build(NULL, 0);
	edges_are(g, "o",
		"mma1 -> mma2 flow n 0 chain\n"
		"mma2 -> mma1 flow n 1 chain\n"
		"mma2 -> mma3 flow tile 0 chain\n"
		"mma3 -> rescale flow r 0\n"
		"rescale -> mma3 flow r 1\n"
		"rescale -> ew1 flow tile 0\n"
		"mma1 -> mma1 output tile 1 reuse chain\n"
		"mma2 -> mma1 output tile 1 reuse chain\n"
		"mma3 -> mma1 output tile 1 reuse chain\n"
		"rescale -> mma1 output tile 1 reuse\n"
		"ew1 -> mma1 anti tile 1 reuse\n");
	ok(g->buffers.v[graph_find_buffer(g, "A")].matrix_a &&
		g->buffers.v[graph_find_buffer(g, "B")].matrix_b, "operands are known as such");
	end(g);
}

/* A carry of the outer loop's body is filled by the inner loop: its life is an iteration
 * of the outer one. A carry of the complete tile is only kept there. */
static void test_nested(void)
{
	struct graph *g;
	int c, all, x;

	begin();
	all = carry("all", M, NONE);
	loop(N, NONE);
	c = carry("c", M, NONE);
	loop(R, NONE);
	x = input("X", M, R);
	task("inner");
	set(c, add(get(c), sum(x, R)));
	end_task();
	end_loop();
	task("outer");
	set(all, add(get(all), get(c)));
	end_task();
	end_loop();
	store("Y", get(all));
	g = build(NULL, 0);
	edges_are(g, "c",
		"inner -> inner flow r 1\n"
		"inner -> outer flow n 0\n"
		"inner -> inner output n 1 reuse\n"
		"outer -> inner anti n 1 reuse\n");
	edges_are(g, "all",
		"outer -> outer flow n 1\n"
		"outer -> ew1 flow tile 0\n"
		"outer -> outer output tile 1 reuse\n"
		"ew1 -> outer anti tile 1 reuse\n");
	edges_are(g, "X",
		"load_X -> inner flow r 0\n"
		"load_X -> load_X output r 1 reuse\n"
		"inner -> load_X anti r 1 reuse\n");
	is_int(graph_common_loop(g, graph_find_task(g, "inner"), graph_find_task(g, "outer")), 0,
		"the two meet in the outer loop");
	is_int(graph_common_loop(g, graph_find_task(g, "inner"), graph_find_task(g, "store_Y")),
		NONE, "and with the store in the tile loop");
	end(g);
}

/* Two loops in sequence: what the first has left is what the second finds. */
static void test_sequence(int upto)
{
	struct graph *g;
	int c, x;

	begin();
	c = carry("c", M, NONE);
	x = input("X", M, K);
	task("before");
	set(c, sum(x, K));
	end_task();
	loop(N, NONE);
	task("first");
	set(c, add(get(c), get(c)));
	end_task();
	end_loop();
	loop(R, upto);
	x = input("Z", M, K);
	task("second");
	set(c, sum(x, K));
	end_task();
	end_loop();
	store("Y", get(c));
	g = build(NULL, 0);
	if (upto == NONE)
		edges_are(g, "c",
			"before -> first flow tile 0\n"
			"first -> first flow n 1\n"
			"first -> second output tile 0\n"
			"second -> second output r 1\n"
			"second -> ew1 flow tile 0\n"
			"before -> before output tile 1 reuse\n"
			"first -> before output tile 1 reuse\n"
			"second -> before output tile 1 reuse\n"
			"ew1 -> before anti tile 1 reuse\n");
	else
		edges_are(g, "c",
			"before -> first flow tile 0\n"
			"first -> first flow n 1\n"
			"first -> second output tile 0\n"
			"second -> second output r 1\n"
			"second -> ew1 flow tile 0\n"
			"first -> ew1 flow tile 0\n"		/* past the second loop */
			"before -> before output tile 1 reuse\n"
			"first -> before output tile 1 reuse\n"
			"second -> before output tile 1 reuse\n"
			"ew1 -> before anti tile 1 reuse\n");
	is_int(g->trips[1].least, upto == NONE ? 2 : 0, "least iterations of the second loop");
	is_int(g->trips[1].most, 2, "most of them");
	end(g);
}

/* If nobody touches the carry before a loop that may not run, whoever comes next begins
 * its life, too. */
static void test_no_iteration(void)
{
	struct graph *g;
	int c, x;

	begin();
	c = carry("c", M, NONE);
	loop(N, M);
	task("add");
	set(c, add(get(c), get(c)));
	end_task();
	end_loop();
	task("last");
	x = get(c);
	x = add(x, x);
	set(c, x);
	end_task();
	store("Y", x);
	g = build(NULL, 0);
	edges_are(g, "c",
		"add -> add flow n 1\n"
		"add -> last flow tile 0\n"
		"add -> add output tile 1 reuse\n"
		"last -> add output tile 1 reuse\n"
		"add -> last output tile 1 reuse\n"
		"last -> last output tile 1 reuse\n");
	end(g);
}

/* A value that is read and set again without being read in between. */
static void test_overwritten(void)
{
	struct graph *g;
	int c, x;

	begin();
	c = carry("c", M, NONE);
	loop(N, NONE);
	x = input("X", M, N);
	task("set1");
	set(c, sum(x, N));
	end_task();
	task("read");
	x = add(get(c), get(c));
	end_task();
	task("set2");
	set(c, x);
	end_task();
	task("set3");
	set(c, add(x, x));
	end_task();
	end_loop();
	store("Y", get(c));
	g = build(NULL, 0);
	edges_are(g, "c",
		"set1 -> read flow n 0\n"
		"read -> set2 anti n 0\n"
		"set2 -> set3 output n 0\n"
		"set3 -> set1 output n 1\n"
		"set3 -> ew1 flow tile 0\n"
		"set1 -> set1 output tile 1 reuse\n"
		"read -> set1 anti tile 1 reuse\n"
		"set2 -> set1 output tile 1 reuse\n"
		"set3 -> set1 output tile 1 reuse\n"
		"ew1 -> set1 anti tile 1 reuse\n");
	end(g);
}

/* A store inside a loop holds its value until the next iteration makes another. */
static void test_store_in_loop(void)
{
	struct graph *g;
	int x;

	begin();
	loop(N, NONE);
	x = input("X", M, N);
	task("twice");
	x = add(x, x);
	end_task();
	store("Y", x);
	end_loop();
	g = build(NULL, 0);
	edges_are(g, "twice",
		"twice -> store_Y flow n 0\n"
		"twice -> twice output n 1 reuse\n"
		"store_Y -> twice anti n 1 reuse\n");
	end(g);
}

/* Attention: what two products and two element-wise sTasks between them owe one another.
 * The softmax hands on two values. */
static void test_attention(void)
{
	int q, l, o, s, pr, alpha, x;
	struct graph *g;

	begin();
	l = carry("l", M, NONE);
	o = carry("o", M, J);
	q = input("Q", M, K);
	loop(N, NONE);
	s = mma("qk", q, input("K", N, K));
	task("soft");
	alpha = add(get(l), sum(s, N));
	set(l, alpha);
	alpha = add(alpha, alpha);
	pr = add(s, s);
	end_task();
	task("rescale");
	set(o, add(get(o), alpha));
	end_task();
	accumulate(o, mma("pv", pr, input("V", N, J)));
	end_loop();
	task("out");
	x = add(get(o), get(l));
	end_task();
	store("Y", x);
	g = build(NULL, 0);
	touches(g, "soft", "l qk", "l soft soft_2");
	touches(g, "rescale", "o soft", "o");
	touches(g, "pv", "V o soft_2", "o");
	edges_are(g, "Q",
		"load_Q -> qk flow tile 0\n"
		"load_Q -> load_Q output tile 1 reuse\n"
		"qk -> load_Q anti tile 1 reuse\n");
	edges_are(g, "K",
		"load_K -> qk flow n 0\n"
		"load_K -> load_K output n 1 reuse\n"
		"qk -> load_K anti n 1 reuse\n");
	edges_are(g, "qk",
		"qk -> soft flow n 0\n"
		"qk -> qk output n 1 reuse\n"
		"soft -> qk anti n 1 reuse\n");
	edges_are(g, "soft",
		"soft -> rescale flow n 0\n"
		"soft -> soft output n 1 reuse\n"
		"rescale -> soft anti n 1 reuse\n");
	edges_are(g, "soft_2",
		"soft -> pv flow n 0\n"
		"soft -> soft output n 1 reuse\n"
		"pv -> soft anti n 1 reuse\n");
	edges_are(g, "l",
		"soft -> soft flow n 1\n"
		"soft -> out flow tile 0\n"
		"soft -> soft output tile 1 reuse\n"
		"out -> soft anti tile 1 reuse\n");
	edges_are(g, "o",
		"rescale -> pv flow n 0\n"
		"pv -> rescale flow n 1\n"
		"pv -> out flow tile 0\n"
		"rescale -> rescale output tile 1 reuse\n"
		"pv -> rescale output tile 1 reuse\n"
		"out -> rescale anti tile 1 reuse\n");
	end(g);
}

/* A chunk's scan: a product before the loop, scaled, goes on accumulating in a loop that
 * need not run; a value of the tile is read before and inside it. */
static void test_chunk(void)
{
	int acc, da, w, x;
	struct graph *g;

	begin();
	acc = carry("acc", M, J);
	da = input("DA", M, J);
	accumulate(acc, mma("state", input("C", M, K), input("S", K, J)));
	task("scale");
	set(acc, add(get(acc), da));
	end_task();
	loop(N, M);
	x = input("CB", M, N);
	task("decay");
	w = add(x, sum(da, J));
	end_task();
	accumulate(acc, mma("x", w, input("X", N, J)));
	end_loop();
	task("out");
	x = get(acc);
	x = add(x, x);
	end_task();
	store("Y", x);
	g = build(NULL, 0);
	edges_are(g, "acc",
		"state -> scale flow tile 0\n"
		"scale -> x flow tile 0\n"
		"x -> x flow n 1 chain\n"
		"x -> out flow tile 0\n"
		"scale -> out flow tile 0\n"		/* past the loop */
		"state -> state output tile 1 reuse chain\n"
		"scale -> state output tile 1 reuse\n"
		"x -> state output tile 1 reuse chain\n"
		"out -> state anti tile 1 reuse\n");
	edges_are(g, "DA",
		"load_DA -> scale flow tile 0\n"
		"load_DA -> decay flow tile 0\n"
		"load_DA -> load_DA output tile 1 reuse\n"
		"scale -> load_DA anti tile 1 reuse\n"
		"decay -> load_DA anti tile 1 reuse\n");
	edges_are(g, "decay",
		"decay -> x flow n 0\n"
		"decay -> decay output n 1 reuse\n"
		"x -> decay anti n 1 reuse\n");
	end(g);
}

/* The edges that end at an sTask are those that its list has, in order. */
static void test_lists(void)
{
	struct graph *g;
	int wrong = 0, listed = 0, c;

	begin();
	c = carry("c", M, J);
	loop(N, NONE);
	accumulate(c, mma("mma", input("A", M, N), input("B", N, J)));
	end_loop();
	store("Y", get(c));
	g = build(NULL, 0);
	for (int t = 0; t < g->tasks.n; t++) {
		int last = NONE;

		for (int i = g->first_in[t]; i != NONE; i = g->next_in.v[i]) {
			wrong += g->edges.v[i].to != t || i <= last;
			last = i;
			listed++;
		}
	}
	is_int(wrong, 0, "the lists of edges by target are in order");
	is_int(listed, g->edges.n, "  and have all of them");
	end(g);
}

/* ---- splits ---------------------------------------------------------------------------- */

/* Product, scaling and store of c over {m, j}, with a first operand that is not split. */
static void split_program(void)
{
	int c, a, b, x;

	begin();
	c = carry("c", M, J);
	loop(N, NONE);
	a = input("A", M, N);
	b = input("B", N, J);
	accumulate(c, mma("mma", a, b));
	end_loop();
	task("scale");
	x = get(c);
	x = add(x, x);
	end_task();
	store("Y", x);
}

static int ids[8];

static struct split split_of(int axis, int ways, const char *const *names)
{
	struct split s = { .axis = axis, .ways = ways, .tasks = ids };

	for (; *names; names++)
		ids[s.ntasks++] = program_find_task(p, *names);
	return s;
}

static void test_split(void)
{
	static const char *const all[] = { "mma", "scale", "store_Y", NULL };
	struct graph *g;
	struct split s;

	split_program();
	s = split_of(M, 2, all);
	g = build(&s, 1);
	is_int(g->tasks.n, 8, "two loads and three sTasks of two slices each");
	touches(g, "mma.0", "A B c.0", "c.0");
	touches(g, "mma.1", "A B c.1", "c.1");
	touches(g, "store_Y.1", "scale.1", "");
	edges_are(g, "A",
		"load_A -> mma.0 flow n 0\n"
		"load_A -> mma.1 flow n 0\n"
		"load_A -> load_A output n 1 reuse\n"
		"mma.0 -> load_A anti n 1 reuse\n"
		"mma.1 -> load_A anti n 1 reuse\n");
	edges_are(g, "c.1",
		"mma.1 -> mma.1 flow n 1 chain\n"
		"mma.1 -> scale.1 flow tile 0\n"
		"mma.1 -> mma.1 output tile 1 reuse chain\n"
		"scale.1 -> mma.1 anti tile 1 reuse\n");
	edges_are(g, "scale.0",
		"scale.0 -> store_Y.0 flow tile 0\n"
		"scale.0 -> scale.0 output tile 1 reuse\n"
		"store_Y.0 -> scale.0 anti tile 1 reuse\n");
	is_int(g->tasks.v[graph_find_task(g, "mma.1")].extent[0], 2, "a slice has half of the tile");
	is_int(g->buffers.v[graph_find_buffer(g, "c.0")].elements, 2 * 3, "and so has its carry");
	is_int(graph_find_task(g, "mma"), NONE, "the sTask before the split is gone");
	end(g);
}

/* One way is no split. */
static void test_split_one_way(void)
{
	static const char *const some[] = { "mma", NULL };
	struct graph *g;
	struct split s;

	split_program();
	s = split_of(M, 1, some);
	g = build(&s, 1);
	touches(g, "mma", "A B c", "c");
	touches(g, "scale", "c", "scale");
	end(g);
}

/* Slices of a product along the axis that it contracts add to the same sum. */
static void test_split_contracted(void)
{
	static const char *const some[] = { "mma", NULL };
	struct graph *g;
	struct split s;

	split_program();
	s = split_of(N, 2, some);
	g = build(&s, 1);
	touches(g, "mma.0", "A B c", "c");
	touches(g, "mma.1", "A B c", "c");
	edges_are(g, "c",
		"mma.0 -> mma.1 flow n 0 chain\n"
		"mma.1 -> mma.0 flow n 1 chain\n"
		"mma.1 -> scale flow tile 0\n"
		"mma.0 -> mma.0 output tile 1 reuse chain\n"
		"mma.1 -> mma.0 output tile 1 reuse chain\n"
		"scale -> mma.0 anti tile 1 reuse\n");
	is_int(g->tasks.v[graph_find_task(g, "mma.1")].work.k, 1, "a slice contracts half of the tile");
	end(g);
}

/* One slice writes a part of what the other task reads completely. */
static void test_split_unlike(void)
{
	static const char *const some[] = { "scale", NULL };
	struct graph *g;
	struct split s;
	int x;

	begin();
	x = input("X", M, K);
	task("scale");
	x = add(x, x);
	end_task();
	store("Y", x);
	s = split_of(M, 2, some);
	g = build(&s, 1);
	touches(g, "store_Y", "scale.0 scale.1", "");
	touches(g, "scale.0", "X", "scale.0");
	edges_are(g, "scale.1",
		"scale.1 -> store_Y flow tile 0\n"
		"scale.1 -> scale.1 output tile 1 reuse\n"
		"store_Y -> scale.1 anti tile 1 reuse\n");
	end(g);
}

/* ---- what Propagate refuses ------------------------------------------------------------- */

static void refused(const struct split *s, int n, enum err_code code, const char *msg)
{
	struct graph *g;
	struct err e = { 0 };

	must_make(program_finish(p, &e), &e);
	is_int(graph_build(&mem, p, &tiling, &(struct shaping){ .splits = s, .nsplits = n }, &g, &e), code,
		msg);
	is_str(e.msg, msg, "  in these words");
	ok(!g, "  without a graph");
	program_free(p);
}

static void test_refusals(void)
{
	static const char *const all[] = { "mma", "scale", "store_Y", NULL };
	static const char *const mma_only[] = { "mma", NULL };
	static const char *const twice[] = { "mma", "mma", NULL };
	static const char *const load[] = { "load_A", NULL };
	struct split s;
	int x;

	split_program();
	s = split_of(M, 3, all);
	refused(&s, 1, ERR_INPUT, "'mma' cannot be split 3 ways along 'm': its tile has 4 there");
	split_program();
	s = split_of(R, 2, mma_only);
	refused(&s, 1, ERR_INPUT, "'mma' cannot be split along 'r': its result does not have that "
		"axis");
	split_program();
	s = split_of(N, 3, mma_only);
	refused(&s, 1, ERR_INPUT, "'mma' cannot be split 3 ways along 'n': its tile has 2 there");
	split_program();
	s = split_of(M, 2, mma_only);
	refused(&s, 1, ERR_INPUT, "'scale' uses 'c', which other sTasks use in 2 slices: split all "
		"that use it alike");
	split_program();
	s = split_of(M, 2, twice);
	refused(&s, 1, ERR_INPUT, "'mma' is split already");
	split_program();
	s = split_of(M, 17, load);
	refused(&s, 1, ERR_INPUT, "a split has 1 to 16 ways, not 17");
	begin();
	x = input("X", M, K);
	task("row");
	x = sum(x, K);
	end_task();
	store("Y", x);
	tiling.extent[K] = 2;
	refused(NULL, 0, ERR_INPUT, "axis 'k' is complete in every tile because no loop runs over it "
		"and no store has it; leave it out of tile=");
	split_program();
	tiling.extent[M] = -4;
	refused(NULL, 0, ERR_INPUT, "the tile of axis 'm' is -4; it must be positive");
}

/* Split along the axis that a task reduces over, or along another one than its fellows. */
static void test_refused_reduction(void)
{
	static const char *const row[] = { "row", NULL };
	static const char *const out[] = { "out", NULL };
	struct split s[2];
	int first, c, x;

	begin();
	x = input("X", M, K);
	task("row");
	x = sum(x, K);
	end_task();
	store("Y", x);
	s[0] = split_of(K, 3, row);
	refused(s, 1, ERR_INPUT, "'row' cannot be split along 'k': it reduces along that axis");

	begin();
	tiling.extent[M] = 6;
	c = carry("c", M, J);
	x = input("X", M, J);
	task("row");
	set(c, x);
	end_task();
	task("out");
	x = get(c);
	x = add(x, x);
	end_task();
	store("Y", x);
	s[0] = split_of(M, 3, row);
	first = ids[0];
	s[1] = split_of(J, 3, out);
	s[1].tasks = &ids[1];
	ids[1] = ids[0];
	ids[0] = first;
	refused(s, 2, ERR_INPUT, "'out' uses 'c', which other sTasks split along 'm': split all that "
		"use it alike");
}

int main(void)
{
	test_loop();
	test_chain();
	test_nested();
	test_sequence(NONE);
	test_sequence(M);
	test_no_iteration();
	test_overwritten();
	test_store_in_loop();
	test_attention();
	test_chunk();
	test_lists();
	test_split();
	test_split_one_way();
	test_split_contracted();
	test_split_unlike();
	test_refusals();
	test_refused_reduction();
	is_int((long long)mem.used, 0, "all memory is given back");
	return tap_done();
}
