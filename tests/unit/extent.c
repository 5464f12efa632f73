#include "reference/plain.h"
#include "tile/extent.h"

#include "tests/unit/make_program.h"

/* A program with its axes and tiles; calls that must not fail end the test. */
struct bench {
	struct mem mem;
	struct arena arena;
	struct program *p;
	struct tiling tiling;
	struct extents x;
	struct err e;
};

static void must(const struct bench *b, enum err_code code)
{
	must_make(code, &b->e);
}

static void bench_init(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	b->p = program_new(&b->mem, "test");
	arena_init(&b->arena, &b->mem);
}

static void bench_release(struct bench *b)
{
	arena_release(&b->arena);
	program_free(b->p);
	is_int((long long)b->mem.used, 0, "all memory is given back");
}

static int axis(struct bench *b, const char *name, int64_t size, int64_t tile)
{
	int id = make_axis(b->p, name, size);
	
	b->tiling.extent[id] = tile;
	return id;
}

/* dims: ids up to the first NONE. */
static int tensor(struct bench *b, enum tensor_role role, const char *name, enum dtype t,
		  const int dims[4])
{
	int rank = 0;

	while (rank < 4 && dims[rank] != NONE)
		rank++;
	return make_tensor(b->p, role, name, t, rank, dims);
}

#define DIMS(...) ((const int[4]){ __VA_ARGS__ })

static int load(struct bench *b, int t)
{
	return make_load(b->p, t, NULL);
}

static void store(struct bench *b, int t, int value)
{
	make_store(b->p, t, value);
}

static int mma(struct bench *b, int x, int y)
{
	return make_mma(b->p, NULL, x, y);
}

static int op(struct bench *b, enum op which, int x, int y)
{
	return make_op(b->p, which, x, y, NONE);
}

static int reduce(struct bench *b, enum op which, int x, int a)
{
	return make_reduce(b->p, which, x, a);
}

static int carry(struct bench *b, const char *name, int naxes, const int *axes)
{
	return make_carry(b->p, name, naxes, axes, 0);
}

static int get(struct bench *b, int c)
{
	return make_get(b->p, c);
}

static void loop(struct bench *b, int naxes, const int *axes)
{
	begin_loop_over(b->p, naxes, axes, NULL);
}

static void end(struct bench *b)
{
	end_loop_of(b->p);
}

static enum err_code infer(struct bench *b)
{
	memset(&b->e, 0, sizeof(b->e));
	return extents_infer(&b->arena, b->p, &b->tiling, &b->x, &b->e);
}

static void finish(struct bench *b)
{
	must(b, program_finish(b->p, &b->e));
	must(b, infer(b));
}

/* "m full, n 8": the extents of a node's value. */
static const char *shape(struct bench *b, int node)
{
	const struct node *n = &b->p->nodes.v[node];
	struct buf t;

	buf_init(&t, &b->arena);
	for (int i = 0; i < n->naxes; i++)
		buf_printf(&t, "%s%s %lld%s", i ? ", " : "", b->p->axes.v[n->axis[i]].name,
			(long long)extent_of_node(&b->x, node, i),
			b->x.full_axis[node * RANK_MAX + i] ? " full" : "");
	return t.text;
}

static void test_attention(void)
{
	struct bench b;
	int h, m, n, d, tq, tk, to, q, k, s, o, acc, again;
	struct index_expr upto;
	struct axis_ranges at;
	struct grid g;
	int64_t lo, hi;

	bench_init(&b);
	h = axis(&b, "h", 3, 0);
	m = axis(&b, "m", 100, 32);
	n = axis(&b, "n", 90, 16);
	d = axis(&b, "d", 24, 0);
	tq = tensor(&b, TENSOR_INPUT, "Q", DT_BF16, DIMS(h, m, d, NONE));
	tk = tensor(&b, TENSOR_INPUT, "K", DT_BF16, DIMS(h, n, d, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_BF16, DIMS(h, m, d, NONE));
	must(&b, program_batch(b.p, h, NOWHERE, &b.e));
	q = load(&b, tq);
	acc = carry(&b, "acc", 2, DIMS(m, d));
	upto = index_axis(m);
	must(&b, program_loop_begin(b.p, 1, &n, &upto, &upto, NOWHERE, &b.e));
	k = load(&b, tk);
	s = mma(&b, q, k);
	again = load(&b, tk);
	o = mma(&b, s, again);
	must(&b, program_accumulate(b.p, acc, o, NOWHERE, &b.e));
	end(&b);
	store(&b, to, get(&b, acc));
	finish(&b);

	is_str(shape(&b, q), "m 32, d 24 full", "a query: contracted over d, though d is stored");
	is_str(shape(&b, k), "n 16, d 24 full", "a key: contracted over d");
	is_str(shape(&b, s), "m 32, n 16", "scores");
	is_int(extent_elements(&b.x, s), 512, "elements");
	is_int(extent_of_carry(&b.x, acc, 0), 32, "the carry");
	is_int(b.x.tile[h], 1, "a batch axis");
	is_int(extent_tiles(&b.x, m), 4, "tiles of m");

	g = extents_grid(&b.x, 0);
	is_int(g.total, 12, "the grid");
	ok(g.n == 3 && g.axis[0] == h && g.axis[1] == m && g.axis[2] == d, "batch axes first");
	ranges_set_tile(&b.x, &g, 7, &at);
	ok(at.lo[h] == 1 && at.hi[h] == 1 && at.lo[m] == 96 && at.hi[m] == 99,
	   "the last, ragged tile of a row of the grid");
	ok(at.lo[n] == 0 && at.hi[n] == 89 && at.lo[d] == 0 && at.hi[d] == 23, "others are full axes");
	visited_iterations(&b.x, 0, &at, &lo, &hi);
	ok(lo == 6 && hi == 6, "from the tile past the end: nothing");
	ranges_set_tile(&b.x, &g, 5, &at);
	visited_iterations(&b.x, 0, &at, &lo, &hi);
	ok(lo == 2 && hi == 4, "from 32 to 63 in tiles of 16");
	ranges_set_iteration(&b.x, 0, 5, &at);
	ok(at.lo[n] == 80 && at.hi[n] == 89, "the last tile of the loop is ragged");
	is_int(program_axis_role(b.p, 0, m), AXIS_GRID, "m is of the grid");
	is_int(program_axis_role(b.p, 0, h), AXIS_BATCH, "h is batch");

	b.tiling.extent[m] = 1000;
	must(&b, infer(&b));
	is_int(b.x.tile[m], 100, "a tile is clamped to the size");
	bench_release(&b);
}

/* Needs pass through carries: the total over m of what a loop collects. */
static void test_carries(void)
{
	struct bench b;
	int m, n, k, tx, ty, to, ts, x, y, c, late, v, w;

	bench_init(&b);
	m = axis(&b, "m", 40, 8);
	n = axis(&b, "n", 12, 4);
	k = axis(&b, "k", 30, 10);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, DIMS(m, k, NONE, NONE));
	ty = tensor(&b, TENSOR_INPUT, "Y", DT_F32, DIMS(n, k, NONE, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(m, n, NONE, NONE));
	ts = tensor(&b, TENSOR_OUTPUT, "S", DT_F32, DIMS(n, NONE, NONE, NONE));
	c = carry(&b, "c", 2, DIMS(n, m));
	late = carry(&b, "late", 2, DIMS(m, n));
	loop(&b, 1, &k);
	x = load(&b, tx);
	y = load(&b, ty);
	v = mma(&b, x, y);
	must(&b, program_accumulate(b.p, c, v, NOWHERE, &b.e));
	w = get(&b, c);
	must(&b, program_set(b.p, late, w, NOWHERE, &b.e));
	end(&b);
	store(&b, to, get(&b, c));
	store(&b, ts, reduce(&b, OP_SUM, get(&b, late), m));
	finish(&b);
	is_str(shape(&b, x), "m 40 full, k 10", "an operand of what is summed over m");
	is_str(shape(&b, y), "n 4, k 10", "the other operand");
	is_str(shape(&b, v), "m 40 full, n 4", "the product");
	is_str(shape(&b, w), "n 4, m 40 full", "what is read of the carry");
	ok(extent_of_carry(&b.x, c, 1) == 40 && extent_of_carry(&b.x, c, 0) == 4, "the carry");
	ok(extent_of_carry(&b.x, late, 0) == 40, "and the carry behind it");
	bench_release(&b);
}

/* A value before a loop has the full axis, in the loop a tile; scans need what comes before. */
static void test_regions(void)
{
	struct bench b;
	int m, n, tx, ty, to, x, y, z, sum, before;

	bench_init(&b);
	m = axis(&b, "m", 20, 5);
	n = axis(&b, "n", 18, 6);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, DIMS(m, n, NONE, NONE));
	ty = tensor(&b, TENSOR_INPUT, "Y", DT_F32, DIMS(n, NONE, NONE, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(m, n, NONE, NONE));
	y = load(&b, ty);
	before = reduce(&b, OP_SUM, y, n);
	loop(&b, 1, &n);
	x = load(&b, tx);
	z = op(&b, OP_MUL, op(&b, OP_ADD, x, y), before);
	sum = reduce(&b, OP_CUMSUM, z, n);
	store(&b, to, reduce(&b, OP_CUMSUM, sum, m));
	end(&b);
	finish(&b);
	is_str(shape(&b, y), "n 18 full", "in front of the loop");
	is_str(shape(&b, z), "m 20 full, n 6", "inside, but scanned along m of the grid");
	is_str(shape(&b, sum), "m 20 full, n 6", "a scan along the loop's axis is of the tile");
	is_int(program_axis_role(b.p, 0, n), AXIS_LOOP, "n is of the loop");
	is_int(program_axis_role(b.p, 0, m), AXIS_GRID, "m is of the grid");
	bench_release(&b);
}

static void test_words(void)
{
	struct bench b;
	int n, k, kw, tw, to, w, u;
	struct axis_ranges at;

	bench_init(&b);
	n = axis(&b, "n", 10, 4);
	k = axis(&b, "k", 60, 16);
	kw = axis(&b, "kw", 8, 0);
	tw = tensor(&b, TENSOR_INPUT, "W", DT_I32, DIMS(n, kw, NONE, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(n, k, NONE, NONE));
	loop(&b, 1, &k);
	w = load(&b, tw);
	must(&b, program_unpack(b.p, w, kw, k, DT_I4, NOWHERE, &u, &b.e));
	store(&b, to, u);
	end(&b);
	finish(&b);
	is_str(shape(&b, w), "n 4, kw 2", "words are tiled with what they hold");
	is_str(shape(&b, u), "n 4, k 16", "the elements");
	is_int(extents_grid(&b.x, 0).n, 1, "and are not of the grid");
	memset(&at, 0, sizeof(at));
	ranges_set_iteration(&b.x, 0, 3, &at);
	ok(at.lo[k] == 48 && at.hi[k] == 59 && at.lo[kw] == 6 && at.hi[kw] == 7, "they stand "
	       "there");
	b.tiling.extent[k] = 12;
	is_int(infer(&b), ERR_INPUT, "a tile that ends inside a word");
	is_str(b.e.msg, "the tile of axis 'k' is 12, but a word along 'kw' holds 8 of it; use a "
	       "multiple of 8", "is refused");
	b.tiling.extent[k] = 0;
	must(&b, infer(&b));
	is_str(shape(&b, w), "n 4, kw 8", "all of k: all the words");
	b.tiling.extent[kw] = 2;
	is_int(infer(&b), ERR_INPUT, "a tile of words");
	is_str(b.e.msg, "axis 'kw' counts words of 'k' and is tiled with it; leave it out of tile=",
	       "is refused");
	bench_release(&b);
}

static void test_errors(void)
{
	struct bench b;
	int a, m, d, unused, tx, to;

	bench_init(&b);
	a = axis(&b, "b", 4, 0);
	m = axis(&b, "m", 16, 0);
	d = axis(&b, "d", 8, 0);
	unused = axis(&b, "unused", 8, 2);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, DIMS(a, m, d, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(a, m, NONE, NONE));
	must(&b, program_batch(b.p, a, NOWHERE, &b.e));
	store(&b, to, reduce(&b, OP_SUM, load(&b, tx), d));
	finish(&b);
	is_int(program_axis_role(b.p, 0, unused), AXIS_UNUSED, "an axis that nothing has");
	is_int(program_axis_role(b.p, 0, d), AXIS_FULL, "an axis inside");
	b.tiling.extent[d] = 8;
	is_int(infer(&b), OK, "its size may be given");
	b.tiling.extent[d] = 4;
	is_int(infer(&b), ERR_INPUT, "but nothing less");
	is_str(b.e.msg, "axis 'd' is complete in every tile because no loop runs over it and no "
	       "store has it; leave it out of tile=", "with the reason");
	b.tiling.extent[d] = 0;
	b.tiling.extent[a] = 2;
	is_int(infer(&b), ERR_INPUT, "a batch axis has one value");
	is_str(b.e.msg, "axis 'b' is batch, so a tile has one value of it; leave it out of tile=",
	       "with the reason");
	b.tiling.extent[a] = 1;
	is_int(infer(&b), OK, "which may be given");
	b.tiling.extent[m] = -5;
	is_int(infer(&b), ERR_INPUT, "a tile is positive");
	is_str(b.e.msg, "the tile of axis 'm' is -5; it must be positive", "with the value");
	bench_release(&b);
}

/* Axes so long that tiles, trips or values cannot be counted. */
static void test_limits(void)
{
	const int64_t huge = (int64_t)1 << 40;
	struct bench b;
	int m, n, tx, ty, to, x, y;

	bench_init(&b);
	m = axis(&b, "m", huge, 1);
	n = axis(&b, "n", huge, 1);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, DIMS(m, NONE, NONE, NONE));
	ty = tensor(&b, TENSOR_INPUT, "Y", DT_F32, DIMS(n, NONE, NONE, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(m, NONE, NONE, NONE));
	x = load(&b, tx);
	y = load(&b, ty);
	store(&b, to, reduce(&b, OP_SUM, op(&b, OP_ADD, x, y), n));
	must(&b, program_finish(b.p, &b.e));
	is_int(infer(&b), ERR_INPUT, "n is inside");
	b.tiling.extent[n] = 0;
	b.tiling.extent[m] = 2;
	is_int(infer(&b), ERR_LIMIT, "a value too large");
	is_str(b.e.msg, "a value in task 'ew1' has 2.2e+12 elements in every tile; use smaller "
	       "tiles or a loop", "is named");
	b.tiling.extent[m] = 1;
	is_int(infer(&b), OK, "one that just is not");
	bench_release(&b);

	bench_init(&b);
	m = axis(&b, "m", huge, 1);
	n = axis(&b, "n", huge, 1);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, DIMS(m, NONE, NONE, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(m, NONE, NONE, NONE));
	ty = tensor(&b, TENSOR_OUTPUT, "P", DT_F32, DIMS(n, NONE, NONE, NONE));
	store(&b, to, load(&b, tx));
	must(&b, program_load(b.p, "again", tx, &(struct index_expr){ .n = 1, .term[0] = {
		.axis = n, .coef = 1, .div = 1 } }, NOWHERE, &x, &b.e));
	store(&b, ty, x);
	must(&b, program_finish(b.p, &b.e));
	is_int(infer(&b), ERR_LIMIT, "too many tiles");
	is_str(b.e.msg, "phase 'main' has 1.21e+24 tiles; use larger ones", "are counted");
	bench_release(&b);

	bench_init(&b);
	m = axis(&b, "m", huge, 1);
	n = axis(&b, "n", huge, 1);
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(NONE, NONE, NONE, NONE));
	x = carry(&b, "c", 0, NULL);
	loop(&b, 2, DIMS(m, n, NONE, NONE));
	must(&b, program_const(b.p, 1, NOWHERE, &y, &b.e));
	must(&b, program_accumulate(b.p, x, y, NOWHERE, &b.e));
	end(&b);
	store(&b, to, get(&b, x));
	must(&b, program_finish(b.p, &b.e));
	is_int(infer(&b), ERR_LIMIT, "too many trips");
	is_str(b.e.msg, "the loop over 'm' has 1.21e+24 iterations; use larger tiles", "are "
	       "counted");
	bench_release(&b);
}

/* An axis that is found to be of words only after a carry was set along it. */
static void test_late_words(void)
{
	struct bench b;
	int k, kw, tw, to, ts, w, u, c;

	bench_init(&b);
	k = axis(&b, "k", 64, 16);
	kw = axis(&b, "kw", 8, 0);
	tw = tensor(&b, TENSOR_INPUT, "W", DT_I32, DIMS(kw, NONE, NONE, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(k, NONE, NONE, NONE));
	ts = tensor(&b, TENSOR_OUTPUT, "S", DT_I32, DIMS(NONE, NONE, NONE, NONE));
	c = carry(&b, "c", 1, &kw);
	loop(&b, 1, &k);
	w = load(&b, tw);
	must(&b, program_set(b.p, c, w, NOWHERE, &b.e));
	must(&b, program_unpack(b.p, w, kw, k, DT_I4, NOWHERE, &u, &b.e));
	store(&b, to, u);
	end(&b);
	store(&b, ts, reduce(&b, OP_SUM, get(&b, c), kw));
	must(&b, program_finish(b.p, &b.e));
	is_int(infer(&b), ERR_INPUT, "a value in a loop of which the full axis is needed");
	is_str(b.e.msg, "task 'load_W' is inside a loop over 'kw' but is needed for all of it; "
	       "move it out of the loop, or keep what is needed in a carry", "is refused");
	bench_release(&b);
}

static void test_two_axes(void)
{
	struct bench b;
	int c, r, tx, to, acc, x;
	struct axis_ranges at;
	int64_t first, last;
	const int axes[2] = { 0, 1 };

	bench_init(&b);
	c = axis(&b, "c", 10, 4);
	r = axis(&b, "r", 3, 1);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, DIMS(c, r, NONE, NONE));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, DIMS(NONE, NONE, NONE, NONE));
	acc = carry(&b, "acc", 0, NULL);
	loop(&b, 2, axes);
	x = reduce(&b, OP_SUM, reduce(&b, OP_SUM, load(&b, tx), r), c);
	must(&b, program_accumulate(b.p, acc, x, NOWHERE, &b.e));
	end(&b);
	store(&b, to, get(&b, acc));
	finish(&b);
	memset(&at, 0, sizeof(at));
	visited_iterations(&b.x, 0, &at, &first, &last);
	ok(first == 0 && last == 9, "trips over two axes");
	ranges_set_iteration(&b.x, 0, 7, &at);
	ok(at.lo[c] == 8 && at.hi[c] == 9 && at.lo[r] == 1 && at.hi[r] == 1,
	   "the last axis runs fastest");
	is_int(extents_grid(&b.x, 0).total, 1, "a grid of one tile");
	bench_release(&b);
}

/* Tiles of the plain kernel: a row that each tile needs in full is one tile; a longer one would take too much memory. */
static void test_plain_tiles(void)
{
	static const struct {
		int64_t columns;
		bool one;
		const char *what;
	} cases[] = { { 16384, true, "a row is one tile of the plain kernel" },
		{ (int64_t)1 << 22, false, "  unless it takes too much memory" } };

	for (int i = 0; i < LEN(cases); i++) {
		struct bench b;
		struct extents x;
		int r, c, in, out, v;

		bench_init(&b);
		r = axis(&b, "r", 8192, 0);
		c = axis(&b, "c", cases[i].columns, 0);
		in = tensor(&b, TENSOR_INPUT, "X", DT_F32, DIMS(r, c, NONE, NONE));
		out = tensor(&b, TENSOR_OUTPUT, "Y", DT_F32, DIMS(r, c, NONE, NONE));
		v = load(&b, in);
		store(&b, out, op(&b, OP_SUB, v, reduce(&b, OP_RMAX, v, c)));
		must(&b, program_finish(b.p, &b.e));
		must(&b, plain_extents(&b.arena, b.p, &x, &b.e));
		ok((x.tile[c] == cases[i].columns) == cases[i].one, cases[i].what);
		bench_release(&b);
	}
}

int main(void)
{
	test_attention();
	test_carries();
	test_regions();
	test_words();
	test_errors();
	test_limits();
	test_late_words();
	test_two_axes();
	test_plain_tiles();
	return tap_done();
}
