#include "tile/program.h"

#include <math.h>
#include <stdlib.h>

#include "tests/tap.h"

/* Where everything below stands, for messages that name a line. */
static const struct srcloc here = { "test.lua", 7 };

/* Axes b h m n k of sizes 2 4 16 32 8, inputs X[m, k], Y[n, k], I[m, k] of i32, an
 * output O[m, n] and a temporary T[m, n]. */
struct bench {
	struct mem mem;
	struct arena arena;
	struct program *p;
	int b, h, m, n, k, kw;
	int tx, ty, ti, to, tt;
	struct err e;
};

static void must(const struct bench *b, enum err_code code)
{
	if (code == OK)
		return;
	printf("Bail out! %s\n", b->e.msg);
	exit(1);
}

static int axis(struct bench *b, const char *name, int64_t size)
{
	int id = NONE;

	must(b, program_axis(b->p, name, size, here, &id, &b->e));
	return id;
}

static int tensor(struct bench *b, enum tensor_role role, const char *name, enum dtype t, int x,
		  int y)
{
	int dims[2] = { x, y }, id = NONE;

	must(b, program_tensor(b->p, role, name, t, (x != NONE) + (y != NONE), dims, here, &id,
		&b->e));
	return id;
}

static void bench_init(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	b->p = program_new(&b->mem, "test");
	arena_init(&b->arena, &b->mem);
	b->b = axis(b, "b", 2);
	b->h = axis(b, "h", 4);
	b->m = axis(b, "m", 16);
	b->n = axis(b, "n", 32);
	b->k = axis(b, "k", 8);
	b->kw = axis(b, "kw", 1);
	b->tx = tensor(b, TENSOR_INPUT, "X", DT_BF16, b->m, b->k);
	b->ty = tensor(b, TENSOR_INPUT, "Y", DT_BF16, b->n, b->k);
	b->ti = tensor(b, TENSOR_INPUT, "I", DT_I32, b->m, b->kw);
	b->to = tensor(b, TENSOR_OUTPUT, "O", DT_F32, b->m, b->n);
	b->tt = tensor(b, TENSOR_TEMP, "T", DT_F32, b->m, b->n);
}

static void bench_release(struct bench *b)
{
	arena_release(&b->arena);
	program_free(b->p);
	is_int((long long)b->mem.used, 0, "all memory is given back");
}

static int load(struct bench *b, int t)
{
	int id = NONE;

	must(b, program_load(b->p, NULL, t, NULL, here, &id, &b->e));
	return id;
}

static void store(struct bench *b, int t, int value)
{
	must(b, program_store(b->p, NULL, t, NULL, value, here, &b->e));
}

static int mma(struct bench *b, const char *name, int x, int y)
{
	int id = NONE;

	must(b, program_mma(b->p, name, x, y, here, &id, &b->e));
	return id;
}

static int op3(struct bench *b, enum op op, int x, int y, int z)
{
	int args[3] = { x, y, z }, id = NONE;

	must(b, program_op(b->p, op, args, here, &id, &b->e));
	return id;
}

static int op2(struct bench *b, enum op op, int x, int y)
{
	return op3(b, op, x, y, NONE);
}

static int constant(struct bench *b, double k)
{
	int id = NONE;

	must(b, program_const(b->p, k, here, &id, &b->e));
	return id;
}

static int cast(struct bench *b, int x, enum dtype t)
{
	int id = NONE;

	must(b, program_cast(b->p, x, t, here, &id, &b->e));
	return id;
}

static int carry(struct bench *b, const char *name, int naxes, int x, int y, double init)
{
	int axes[2] = { x, y }, id = NONE;

	must(b, program_carry(b->p, name, naxes, axes, init, here, &id, &b->e));
	return id;
}

static int get(struct bench *b, int c)
{
	int id = NONE;

	must(b, program_get(b->p, c, here, &id, &b->e));
	return id;
}

static void set(struct bench *b, int c, int value)
{
	must(b, program_set(b->p, c, value, here, &b->e));
}

static void loop(struct bench *b, int a)
{
	must(b, program_loop_begin(b->p, 1, &a, NULL, NULL, here, &b->e));
}

static void end(struct bench *b)
{
	must(b, program_loop_end(b->p, here, &b->e));
}

static void task(struct bench *b, const char *name)
{
	must(b, program_task_begin(b->p, name, here, &b->e));
}

static void task_end(struct bench *b)
{
	must(b, program_task_end(b->p, here, &b->e));
}

static void phase(struct bench *b, const char *name)
{
	must(b, program_phase_begin(b->p, name, here, &b->e));
}

static void phase_end(struct bench *b)
{
	must(b, program_phase_end(b->p, here, &b->e));
}

/* Everything that a call could have changed, as text. */
static const char *state(struct bench *b)
{
	const struct program *p = b->p;
	struct buf t;

	buf_init(&t, &b->arena);
	program_print(p, &t);
	buf_printf(&t, "%d %d %d %d, %d nodes %d tasks %d loops %d carries", p->cur_phase,
		p->cur_loop, p->cur_task, p->task_is_open, p->nodes.n, p->tasks.n, p->loops.n,
		p->carries.n);
	return t.text;
}

/* A call fails with that code and message, names its line, and changes nothing. */
#define REFUSED(b, call, want_code, want_msg) do { \
	const char *before_ = state(b); \
	enum err_code code_; \
	\
	memset(&(b)->e, 0, sizeof((b)->e)); \
	code_ = (call); \
	ok(code_ == (want_code) && (b)->e.code == (want_code), "refused: " #call); \
	is_str((b)->e.msg, want_msg, "with its message"); \
	ok((b)->e.line == here.line && !strcmp((b)->e.file, "test.lua"), "and its line"); \
	is_str(state(b), before_, "nothing changed"); \
} while (0)

static void test_declarations(void)
{
	struct bench b;
	struct program *p;
	int id, nine[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, twice[2];
	char name[16];

	bench_init(&b);
	p = b.p;
	twice[0] = twice[1] = b.m;
	REFUSED(&b, program_axis(p, "m", 4, here, &id, &b.e), ERR_INPUT,
		"axis 'm' exists already, since line 7; choose another name");
	REFUSED(&b, program_axis(p, "a b", 4, here, &id, &b.e), ERR_INPUT,
		"'a b' cannot name an axis; use letters, digits and '_', at most 63, no digit "
		"first");
	REFUSED(&b, program_axis(p, "", 4, here, &id, &b.e), ERR_INPUT,
		"'' cannot name an axis; use letters, digits and '_', at most 63, no digit first");
	REFUSED(&b, program_axis(p, "z", 0, here, &id, &b.e), ERR_INPUT,
		"axis 'z' has size 0; sizes are 1 to 2^40");
	REFUSED(&b, program_axis(p, "z", ((int64_t)1 << 40) + 1, here, &id, &b.e), ERR_LIMIT,
		"axis 'z' has size 1099511627777; sizes are 1 to 2^40");
	REFUSED(&b, program_tensor(p, TENSOR_INPUT, "X", DT_F32, 1, twice, here, &id, &b.e),
		ERR_INPUT, "tensor 'X' exists already, since line 7; choose another name");
	REFUSED(&b, program_tensor(p, TENSOR_INPUT, "2X", DT_F32, 1, twice, here, &id, &b.e),
		ERR_INPUT,
		"'2X' cannot name a tensor; use letters, digits and '_', at most 63, no digit "
		"first");
	REFUSED(&b, program_tensor(p, TENSOR_INPUT, "Z", DT_F32, 9, nine, here, &id, &b.e),
		ERR_LIMIT, "tensor 'Z' has 9 dimensions; at most 8 are possible");
	REFUSED(&b, program_tensor(p, TENSOR_INPUT, "Z", DT_F32, 2, twice, here, &id, &b.e),
		ERR_INPUT, "tensor 'Z' has axis 'm' twice; give each dimension an axis of its own");
	twice[0] = axis(&b, "long1", (int64_t)1 << 40);
	twice[1] = axis(&b, "long2", (int64_t)1 << 40);
	REFUSED(&b, program_tensor(p, TENSOR_INPUT, "Z", DT_F32, 2, twice, here, &id, &b.e),
		ERR_LIMIT, "tensor 'Z' has 1.21e+24 elements; at most 2^48 are possible");
	is_int(program_find_axis(p, "n"), b.n, "find an axis");
	is_int(program_find_tensor(p, "O"), b.to, "find a tensor");
	is_int(program_find_tensor(p, "o"), NONE, "find none");
	is_int(tensor_elements(p, b.to), 512, "elements");
	while (p->axes.n < AXES_MAX) {
		snprintf(name, sizeof(name), "x%d", p->axes.n);
		axis(&b, name, 1);
	}
	REFUSED(&b, program_axis(p, "z", 4, here, &id, &b.e), ERR_LIMIT,
		"axis 'z' is one too many; a program has at most 64");
	REFUSED(&b, program_carry(p, "c", 9, nine, 0, here, &id, &b.e), ERR_LIMIT,
		"carry 'c' has 9 axes; at most 8 are possible");
	bench_release(&b);
}

static void test_phases(void)
{
	struct bench b;
	struct program *p;
	int id, x, c;

	bench_init(&b);
	p = b.p;
	REFUSED(&b, program_phase_end(p, here, &b.e), ERR_INPUT,
		"no phase has begun that could end here");
	phase(&b, "first");
	REFUSED(&b, program_phase_begin(p, "second", here, &b.e), ERR_INPUT,
		"phase 'second' begins inside phase 'first'; end that one first (statements before "
		"any phase begin 'main')");
	must(&b, program_batch(p, b.b, here, &b.e));
	REFUSED(&b, program_batch(p, b.b, here, &b.e), ERR_INPUT,
		"axis 'b' is batch already; declare it once");
	REFUSED(&b, program_loop_begin(p, 1, &b.b, NULL, NULL, here, &b.e), ERR_INPUT,
		"axis 'b' is batch, so a tile has one value of it and no loop can run over it");
	x = load(&b, b.tx);
	REFUSED(&b, program_batch(p, b.h, here, &b.e), ERR_INPUT,
		"batch axis 'h' comes after task 'load_X'; declare batch axes first");
	c = carry(&b, "c", 1, b.m, NONE, 0);
	REFUSED(&b, program_batch(p, b.h, here, &b.e), ERR_INPUT,
		"batch axis 'h' comes after carry 'c'; declare batch axes first");
	loop(&b, b.k);
	REFUSED(&b, program_phase_end(p, here, &b.e), ERR_INPUT,
		"a phase ends inside the loop over {k} at line 7; end the loop first");
	end(&b);
	task(&b, "t");
	REFUSED(&b, program_phase_end(p, here, &b.e), ERR_INPUT,
		"a phase ends inside task 't'; end the task first");
	get(&b, c);
	task_end(&b);
	phase_end(&b);
	REFUSED(&b, program_load(p, NULL, b.ty, NULL, here, &id, &b.e), ERR_INPUT,
		"load stands between phases; put it inside one");
	REFUSED(&b, program_batch(p, b.h, here, &b.e), ERR_INPUT,
		"a batch axis stands between phases; put it inside one");
	REFUSED(&b, program_index(p, b.h, here, &id, &b.e), ERR_INPUT,
		"an index stands between phases; put it inside one");
	REFUSED(&b, program_phase_begin(p, "first", here, &b.e), ERR_INPUT,
		"phase 'first' exists already, since line 7; choose another name");
	REFUSED(&b, program_phase_begin(p, "1", here, &b.e), ERR_INPUT,
		"'1' cannot name a phase; use letters, digits and '_', at most 63, no digit first");
	phase(&b, "second");
	loop(&b, b.k);
	end(&b);
	REFUSED(&b, program_batch(p, b.h, here, &b.e), ERR_INPUT,
		"batch axis 'h' comes after a loop; declare batch axes first");
	REFUSED(&b, program_cast(p, x, DT_F32, here, &id, &b.e), ERR_INPUT,
		"'load_X' was made in phase 'first' and ends with it; store it to a temporary "
		"there and load that here");
	REFUSED(&b, program_get(p, c, here, &id, &b.e), ERR_INPUT,
		"carry 'c' ends with phase 'first'; store it to a temporary there and load that "
		"here");
	bench_release(&b);

	bench_init(&b);
	phase(&b, "many");
	for (int i = 0; i < RANK_MAX; i++) {
		char name[2] = { (char)('A' + i), 0 };

		must(&b, program_batch(b.p, axis(&b, name, 2), here, &b.e));
	}
	REFUSED(&b, program_batch(b.p, b.h, here, &b.e), ERR_LIMIT,
		"batch axis 'h' is one too many; a phase has at most 8");
	bench_release(&b);
}

static void test_loops_and_tasks(void)
{
	struct bench b;
	struct index_expr at = index_axis(2), own = index_axis(4);
	struct program *p;
	int two[2], five[5] = { 0, 1, 2, 3, 4 }, id, x;

	bench_init(&b);
	p = b.p;
	two[0] = b.m;
	two[1] = b.k;
	REFUSED(&b, program_loop_end(p, here, &b.e), ERR_INPUT,
		"no loop has begun that could end here");
	REFUSED(&b, program_task_end(p, here, &b.e), ERR_INPUT,
		"no task has begun that could end here");
	REFUSED(&b, program_loop_begin(p, 0, NULL, NULL, NULL, here, &b.e), ERR_INPUT,
		"a loop runs over 1 to 4 axes, not 0");
	REFUSED(&b, program_loop_begin(p, 5, five, NULL, NULL, here, &b.e), ERR_LIMIT,
		"a loop runs over 1 to 4 axes, not 5");
	REFUSED(&b, program_loop_begin(p, 2, two, NULL, &at, here, &b.e), ERR_INPUT,
		"'upto' needs a loop over one axis; nest a loop for each of the 2 axes");
	REFUSED(&b, program_loop_begin(p, 1, &b.k, &own, NULL, here, &b.e), ERR_INPUT,
		"'from' of the loop over 'k' depends on 'k' itself; use axes from outside the "
		"loop");
	at.term[0].coef = (int64_t)1 << 58;
	REFUSED(&b, program_loop_begin(p, 1, &b.k, NULL, &at, here, &b.e), ERR_LIMIT,
		"an index reaches 4.61e+18; at most 2^60 is possible");
	two[0] = b.k;
	REFUSED(&b, program_loop_begin(p, 2, two, NULL, NULL, here, &b.e), ERR_INPUT,
		"a loop runs over axis 'k' twice; name it once");
	loop(&b, b.k);
	REFUSED(&b, program_loop_begin(p, 1, &b.k, NULL, NULL, here, &b.e), ERR_INPUT,
		"a loop runs over axis 'k', and so does a loop around it; use another axis");
	x = load(&b, b.tx);
	task(&b, "soft");
	REFUSED(&b, program_task_begin(p, "softer", here, &b.e), ERR_INPUT,
		"task 'softer' begins inside task 'soft'; tasks do not nest, so end that one "
		"first");
	REFUSED(&b, program_task_end(p, here, &b.e), ERR_INPUT,
		"task 'soft' computes nothing; put element-wise operations into it or remove it");
	REFUSED(&b, program_loop_begin(p, 1, &b.n, NULL, NULL, here, &b.e), ERR_INPUT,
		"a loop stands inside task 'soft'; a task is one pass over its tile, so put the "
		"task into the loop");
	REFUSED(&b, program_loop_end(p, here, &b.e), ERR_INPUT,
		"a loop ends inside task 'soft'; end the task first");
	REFUSED(&b, program_load(p, NULL, b.ty, NULL, here, &id, &b.e), ERR_INPUT,
		"load 'load_Y' stands inside task 'soft'; it is a task of its own, so put it "
		"before or after that one");
	REFUSED(&b, program_mma(p, "mma_qk", x, x, here, &id, &b.e), ERR_INPUT,
		"mma 'mma_qk' stands inside task 'soft'; it is a task of its own, so put it before "
		"or after that one");
	REFUSED(&b, program_store(p, NULL, b.to, NULL, x, here, &b.e), ERR_INPUT,
		"store 'store_O' stands inside task 'soft'; it is a task of its own, so put it "
		"before or after that one");
	cast(&b, x, DT_F32);
	task_end(&b);
	REFUSED(&b, program_task_begin(p, "soft", here, &b.e), ERR_INPUT,
		"task 'soft' exists already, since line 7; choose another name");
	REFUSED(&b, program_load(p, "soft", b.ty, NULL, here, &id, &b.e), ERR_INPUT,
		"task 'soft' exists already, since line 7; choose another name");
	REFUSED(&b, program_task_begin(p, "so ft", here, &b.e), ERR_INPUT,
		"'so ft' cannot name a task; use letters, digits and '_', at most 63, no digit "
		"first");
	end(&b);
	REFUSED(&b, program_cast(p, x, DT_F32, here, &id, &b.e), ERR_INPUT,
		"'load_X' was made inside the loop over {k} at line 7 and cannot be used outside "
		"it; keep it in a carry");
	REFUSED(&b, program_cast(p, x + 1, DT_F32, here, &id, &b.e), ERR_INPUT,
		"the cast in 'soft' was made inside the loop over {k} at line 7 and cannot be used "
		"outside it; keep it in a carry");
	bench_release(&b);
}

static void test_memory(void)
{
	struct bench b;
	struct index_expr at[2], huge[2];
	struct program *p;
	int id, x, v, i8, flags;

	bench_init(&b);
	p = b.p;
	i8 = tensor(&b, TENSOR_OUTPUT, "Q", DT_I8, b.m, b.k);
	flags = tensor(&b, TENSOR_OUTPUT, "F", DT_BOOL, b.m, b.kw);
	REFUSED(&b, program_load(p, NULL, b.to, NULL, here, &id, &b.e), ERR_INPUT,
		"output 'O' is loaded before any phase stores it; store it in an earlier phase");
	REFUSED(&b, program_load(p, NULL, b.tt, NULL, here, &id, &b.e), ERR_INPUT,
		"temporary 'T' is loaded before any phase stores it; store it in an earlier phase");
	huge[0] = huge[1] = index_axis(b.m);
	huge[1].term[0].coef = INT64_MAX;
	REFUSED(&b, program_load(p, NULL, b.tx, huge, here, &id, &b.e), ERR_LIMIT,
		"an index reaches 1.48e+20; at most 2^60 is possible");
	x = load(&b, b.tx);
	v = op2(&b, OP_ADD, x, constant(&b, 1));
	REFUSED(&b, program_store(p, NULL, b.tx, NULL, v, here, &b.e), ERR_INPUT,
		"'X' is an input and cannot be stored; declare an output or a temporary");
	REFUSED(&b, program_store(p, NULL, b.to, NULL, v, here, &b.e), ERR_INPUT,
		"a value over {m, k} cannot be stored to 'O', which is indexed by {m, n}; reduce "
		"or broadcast it to the same axes");
	REFUSED(&b, program_store(p, NULL, i8, NULL, v, here, &b.e), ERR_INPUT,
		"'Q' holds i8 and the value is f32; cast it first");
	id = load(&b, b.ti);
	REFUSED(&b, program_store(p, NULL, flags, NULL, id, here, &b.e), ERR_INPUT,
		"'F' holds bool and the value is i32; cast it first");
	must(&b, program_store(p, NULL, i8, NULL, cast(&b, v, DT_I32), here, &b.e));
	at[0] = index_axis(b.m);
	at[1] = index_axis(b.k);
	at[1].term[0].div = 2;
	REFUSED(&b, program_store(p, NULL, b.to, at, v, here, &b.e), ERR_INPUT,
		"several elements along 'k' would be stored to the same element of 'O'; index it by 'k' "
		"itself");
	at[1] = index_const(0);
	at[0].term[at[0].n++] = index_axis(b.k).term[0];
	REFUSED(&b, program_store(p, NULL, b.to, at, v, here, &b.e), ERR_INPUT,
		"two elements would be stored at one index of dimension 'm' of 'O'; give them "
		"different indices");
	at[0].term[0].coef = 8;			/* 8*m + k, with k below 8 */
	must(&b, program_store(p, "flat", b.to, at, v, here, &b.e));
	at[0] = index_axis(b.m);
	at[0].term[0].mod = 4;
	at[1] = index_axis(b.m);
	at[1].term[0].div = 4;
	at[1].term[at[1].n++] = index_axis(b.k).term[0];
	at[1].term[1].coef = -4;		/* m % 4 and m // 4 - 4*k */
	must(&b, program_store(p, "folded", b.to, at, v, here, &b.e));
	bench_release(&b);

	bench_init(&b);
	p = b.p;
	phase(&b, "one");
	must(&b, program_batch(p, b.b, here, &b.e));
	x = load(&b, b.tx);
	v = mma(&b, NULL, x, load(&b, b.ty));
	REFUSED(&b, program_store(p, NULL, b.to, NULL, v, here, &b.e), ERR_INPUT,
		"all tiles along batch axis 'b' would be stored to the same elements of 'O'; let its index "
		"depend on 'b'");
	phase_end(&b);
	phase(&b, "two");
	v = mma(&b, NULL, load(&b, b.tx), load(&b, b.ty));
	store(&b, b.tt, v);
	REFUSED(&b, program_load(p, NULL, b.tt, NULL, here, &id, &b.e), ERR_INPUT,
		"temporary 'T' is stored in this phase, whose tiles run in any order; load it in a "
		"later phase");
	phase_end(&b);
	phase(&b, "three");
	v = load(&b, b.tt);
	REFUSED(&b, program_store(p, NULL, b.tt, NULL, v, here, &b.e), ERR_INPUT,
		"temporary 'T' is loaded in this phase by 'load_T', and its tiles run in any "
		"order; store it in an earlier phase");
	bench_release(&b);
}

static void test_operations(void)
{
	struct bench b;
	struct program *p;
	int id, x, y, i, f, t, q[4], big, carried;

	bench_init(&b);
	p = b.p;
	x = load(&b, b.tx);
	y = load(&b, b.ty);
	i = load(&b, b.ti);
	f = op2(&b, OP_ADD, x, x);
	t = op2(&b, OP_LT, i, i);
	REFUSED(&b, program_op(p, OP_WHERE, ((int[]){ f, x, x }), here, &id, &b.e), ERR_INPUT,
		"where needs a bool condition, and this one is f32; compare it with something");
	REFUSED(&b, program_op(p, OP_AND, ((int[]){ f, i }), here, &id, &b.e), ERR_INPUT,
		"and needs two values of type i32 or bool, and these are f32 and i32; cast them "
		"to i32");
	REFUSED(&b, program_op(p, OP_SHL, ((int[]){ t, t }), here, &id, &b.e), ERR_INPUT,
		"shl needs two values of type i32, and these are bool and bool; cast them to i32");
	carried = get(&b, carry(&b, "state", 0, NONE, NONE, 0));
	REFUSED(&b, program_op(p, OP_XOR, ((int[]){ carried, i }), here, &id, &b.e),
		ERR_INPUT, "xor needs two values of type i32 or bool, and these are f32 and i32; cast them to i32, or declare "
		"carry 'state' with \"i32\" behind the initial number");
	REFUSED(&b, program_op(p, OP_NOT, ((int[]){ x }), here, &id, &b.e), ERR_INPUT,
		"not needs an i32 or bool value, and this one is bf16; cast it to i32");
	REFUSED(&b, program_mma(p, "mma_qk", i, y, here, &id, &b.e), ERR_INPUT,
		"mma 'mma_qk': its operands share no axis; one has {m, kw}, the other {n, k}");
	REFUSED(&b, program_mma(p, NULL, i, y, here, &id, &b.e), ERR_INPUT,
		"mma: its operands share no axis; one has {m, kw}, the other {n, k}");
	REFUSED(&b, program_mma(p, "bits", t, i, here, &id, &b.e), ERR_INPUT,
		"mma 'bits': an operand is bool; cast it first");
	REFUSED(&b, program_mma(p, "load_X", x, y, here, &id, &b.e), ERR_INPUT,
		"task 'load_X' exists already, since line 7; choose another name");
	REFUSED(&b, program_reduce(p, OP_SUM, x, b.n, here, &id, &b.e), ERR_INPUT,
		"sum over 'n': the value has axes {m, k}; name one of them");
	big = axis(&b, "big", ((int64_t)1 << 31) + 1);
	REFUSED(&b, program_index(p, big, here, &id, &b.e), ERR_LIMIT,
		"axis 'big' has 2147483649 elements, too many for an index of type i32; at most "
		"2^31 are possible");
	for (int j = 0; j < 4; j++) {
		char name[3] = { 'q', (char)('0' + j), 0 }, other[3] = { 'r', name[1], 0 };

		q[j] = load(&b, tensor(&b, TENSOR_INPUT, name, DT_F32, axis(&b, name, 2),
			axis(&b, other, 2)));
	}
	x = op2(&b, OP_ADD, op2(&b, OP_ADD, q[0], q[1]), op2(&b, OP_ADD, q[2], q[3]));
	REFUSED(&b, program_op(p, OP_ADD, ((int[]){ x, f }), here, &id, &b.e), ERR_LIMIT,
		"add: the result would have more than 8 axes");
	y = op2(&b, OP_ADD, op2(&b, OP_ADD, q[0], f), op2(&b, OP_ADD, q[1], q[2]));
	x = op2(&b, OP_ADD, q[3], i);
	REFUSED(&b, program_mma(p, NULL, y, x, here, &id, &b.e), ERR_LIMIT,
		"mma: its result would have 10 axes, at most 8 are possible; one operand has "
		"{q0, r0, m, k, q1, r1, q2, r2}, the other {q3, r3, m, kw}");
	bench_release(&b);

	bench_init(&b);
	must(&b, program_batch(b.p, b.k, here, &b.e));
	x = load(&b, b.tx);
	is_int(b.p->nodes.v[x].naxes, 1, "a batch axis is none of the value");
	REFUSED(&b, program_reduce(b.p, OP_RMAX, x, b.k, here, &id, &b.e), ERR_INPUT,
		"rmax over 'k': a tile has one value of a batch axis; do not declare 'k' batch, or "
		"leave this out");
	bench_release(&b);
}

static void test_too_many_axes(void)
{
	struct bench b;
	struct index_expr at[2] = { { 0 }, { 0 } };
	int id;

	bench_init(&b);
	for (int i = 0; i < 9; i++) {
		char name[3] = { 'q', (char)('0' + i), 0 };

		at[i / 5].term[at[i / 5].n++] = index_axis(axis(&b, name, 2)).term[0];
	}
	REFUSED(&b, program_load(b.p, NULL, b.tx, at, here, &id, &b.e), ERR_LIMIT,
		"tensor 'X' is indexed by more than 8 axes; a value has at most that many");
	bench_release(&b);
}

static void test_carries(void)
{
	struct bench b;
	struct program *p;
	int id, x, c, inner, full, count, pi, v;

	bench_init(&b);
	p = b.p;
	c = carry(&b, "c", 1, b.m, NONE, 0);
	full = carry(&b, "full", 2, b.m, b.k, 0);
	count = carry(&b, "count", 0, NONE, NONE, 0);
	REFUSED(&b, program_carry(p, "c", 1, &b.m, 0, here, &id, &b.e), ERR_INPUT,
		"carry 'c' exists already, since line 7; choose another name");
	REFUSED(&b, program_carry(p, "c c", 1, &b.m, 0, here, &id, &b.e), ERR_INPUT,
		"'c c' cannot name a carry; use letters, digits and '_', at most 63, no digit "
		"first");
	REFUSED(&b, program_carry(p, "d", 2, ((int[]){ b.m, b.m }), 0, here, &id, &b.e), ERR_INPUT,
		"carry 'd' has axis 'm' twice; name it once");
	loop(&b, b.k);
	x = load(&b, b.tx);
	inner = carry(&b, "inner", 1, b.m, NONE, 0);
	REFUSED(&b, program_set(p, c, x, here, &b.e), ERR_INPUT,
		"carry 'c' has axes {m}, and the value also 'k'; reduce the value over 'k' or "
		"declare the carry with it");
	REFUSED(&b, program_accumulate(p, c, x, here, &b.e), ERR_INPUT,
		"carry 'c' has axes {m}, and the value also 'k'; reduce the value over 'k' or "
		"declare the carry with it");
	loop(&b, b.n);
	REFUSED(&b, program_set(p, full, x, here, &b.e), ERR_INPUT,
		"carry 'full' holds all of axis 'k', but the loop over {k} at line 7 sets a "
		"tile of it at a time; declare the carry inside the loop or without 'k'");
	end(&b);
	end(&b);
	REFUSED(&b, program_get(p, inner, here, &id, &b.e), ERR_INPUT,
		"carry 'inner' was declared inside the loop over {k} at line 7 and cannot be used "
		"outside it; declare it before the loop");
	must(&b, program_index(p, b.m, here, &v, &b.e));
	must(&b, program_reduce(p, OP_SUM, v, b.m, here, &v, &b.e));
	is_int(p->nodes.v[v].type, DT_I32, "a sum of i32");
	set(&b, count, constant(&b, 4));
	set(&b, count, v);
	is_int(p->carries.v[count].type, DT_I32, "a carry set to integers first holds i32");
	pi = constant(&b, 3.14);
	REFUSED(&b, program_set(p, count, pi, here, &b.e), ERR_INPUT,
		"carry 'count' holds i32, for it was set to integers first, and the value is f32; "
		"cast this value to i32, or declare the carry with \"f32\" behind the initial number");
	REFUSED(&b, program_accumulate(p, count, pi, here, &b.e), ERR_INPUT,
		"carry 'count' holds i32, for it was set to integers first, and the value is f32; "
		"cast this value to i32, or declare the carry with \"f32\" behind the initial number");
	v = cast(&b, v, DT_I8);
	REFUSED(&b, program_accumulate(p, count, v, here, &b.e), ERR_INPUT,
		"carry 'count' holds i32, for it was set to integers first, and the value is f32; "
		"cast this value to i32, or declare the carry with \"f32\" behind the initial number");
	set(&b, count, v);
	count = carry(&b, "number", 0, NONE, NONE, 0);
	must(&b, program_type_carry(p, count, DT_I32, here, &b.e));
	must(&b, program_get(p, count, here, &v, &b.e));
	is_int(p->nodes.v[v].type, DT_I32, "a carry declared as i32 holds i32 before it is set");
	REFUSED(&b, program_set(p, count, pi, here, &b.e), ERR_INPUT,
		"carry 'number' holds i32, and the value is f32; cast this value to i32");
	REFUSED(&b, program_type_carry(p, count, DT_BF16, here, &b.e), ERR_INPUT,
		"carry 'number' cannot hold bf16; a carry holds f32 or i32");
	count = carry(&b, "half", 0, NONE, NONE, 0.5);
	REFUSED(&b, program_type_carry(p, count, DT_I32, here, &b.e), ERR_INPUT,
		"carry 'half' holds i32 and cannot begin with 0.5; begin with an integer from -2^31 to 2^31 - 1");
	count = carry(&b, "real", 0, NONE, NONE, 0);
	must(&b, program_type_carry(p, count, DT_F32, here, &b.e));
	must(&b, program_index(p, b.m, here, &v, &b.e));
	must(&b, program_reduce(p, OP_SUM, v, b.m, here, &v, &b.e));
	set(&b, count, v);
	is_int(p->carries.v[count].type, DT_F32, "a carry declared as f32 holds f32 whatever it is set to");
	bench_release(&b);
}

static void test_unpack(void)
{
	struct bench b;
	struct program *p;
	int id, w, x, both, other, u;

	bench_init(&b);
	p = b.p;
	w = load(&b, b.ti);
	x = load(&b, b.tx);
	REFUSED(&b, program_unpack(p, x, b.k, b.n, DT_I4, here, &id, &b.e), ERR_INPUT,
		"unpack takes i32 words, and this value is bf16; load the packed tensor as i32");
	REFUSED(&b, program_unpack(p, w, b.kw, b.k, DT_F32, here, &id, &b.e), ERR_INPUT,
		"unpack: a word of 32 bits cannot hold several f32; use a type of 4, 8 or 16 bits");
	REFUSED(&b, program_unpack(p, w, b.n, b.k, DT_I4, here, &id, &b.e), ERR_INPUT,
		"unpack over 'n': the value has axes {m, kw}; name one of them");
	REFUSED(&b, program_unpack(p, w, b.kw, b.m, DT_I4, here, &id, &b.e), ERR_INPUT,
		"unpack: the value has axis 'm' already; unpack to another one");
	REFUSED(&b, program_unpack(p, w, b.kw, b.k, DT_I8, here, &id, &b.e), ERR_INPUT,
		"unpack: 1 words along 'kw' hold 4 i8, not the 8 of 'k'; make 'kw' at least 2 "
		"long");
	loop(&b, b.kw);
	REFUSED(&b, program_unpack(p, w, b.kw, b.k, DT_I4, here, &id, &b.e), ERR_INPUT,
		"unpack: the words along 'kw' follow the tiles of 'k', so 'kw' cannot be batch, "
		"stored or looped over; use 'k' there");
	bench_release(&b);

	bench_init(&b);
	p = b.p;
	w = load(&b, b.ti);
	must(&b, program_unpack(p, w, b.kw, b.k, DT_I4, here, &u, &b.e));
	must(&b, program_unpack(p, w, b.kw, b.k, DT_E2M1, here, &u, &b.e));
	ok(p->axes.v[b.kw].packs == b.k && p->axes.v[b.kw].per == 8, "kw counts words of k");
	other = axis(&b, "other", 4);
	REFUSED(&b, program_unpack(p, w, b.kw, other, DT_I4, here, &id, &b.e), ERR_INPUT,
		"unpack: axis 'kw' already counts words of 8 'k'; use an axis of its own for each "
		"packing");
	x = cast(&b, u, DT_I32);
	REFUSED(&b, program_unpack(p, x, b.k, other, DT_I4, here, &id, &b.e), ERR_INPUT,
		"unpack: 'k' to 'other' would be words of words; unpack to an axis that counts "
		"none");
	REFUSED(&b, program_loop_begin(p, 1, &b.kw, NULL, NULL, here, &b.e), ERR_INPUT,
		"axis 'kw' counts words of 'k' and follows it, so it cannot be looped over; use "
		"'k'");
	both = tensor(&b, TENSOR_OUTPUT, "W2", DT_I32, b.m, b.kw);
	REFUSED(&b, program_store(p, NULL, both, NULL, w, here, &b.e), ERR_INPUT,
		"axis 'kw' counts words of 'k' and follows it, so it cannot be stored over; use "
		"'k'");
	must(&b, program_phase_end(p, here, &b.e));
	phase(&b, "next");
	REFUSED(&b, program_batch(p, b.kw, here, &b.e), ERR_INPUT,
		"axis 'kw' counts words of 'k' and follows it, so it cannot be batch; use 'k'");
	REFUSED(&b, program_batch(p, b.k, here, &b.e), ERR_INPUT,
		"axis 'k' is unpacked from words, several at a time, so it cannot be batch");
	must(&b, program_batch(p, other, here, &b.e));
	x = load(&b, tensor(&b, TENSOR_INPUT, "I2", DT_I32, b.m, axis(&b, "more", 2)));
	REFUSED(&b, program_unpack(p, x, program_find_axis(p, "more"), other, DT_I4, here, &id,
		&b.e), ERR_INPUT, "unpack: axis 'other' is batch in phase 'next', but words hold "
		"several of it; do not declare it batch");
	bench_release(&b);
}

static void test_finish(void)
{
	struct bench b;
	struct program *p;
	int x, y, v, c;

	bench_init(&b);
	p = b.p;
	x = load(&b, b.tx);
	task(&b, "open");
	REFUSED(&b, program_finish(p, &b.e), ERR_INPUT,
		"task 'open' has no end; end it before the program ends");
	cast(&b, x, DT_F32);
	task_end(&b);
	loop(&b, b.k);
	REFUSED(&b, program_finish(p, &b.e), ERR_INPUT,
		"the loop over {k} at line 7 has no end; end it before the program ends");
	end(&b);
	REFUSED(&b, program_finish(p, &b.e), ERR_INPUT,
		"output 'O' is never stored; store it or remove it");
	y = load(&b, b.ty);
	store(&b, b.to, mma(&b, NULL, x, y));
	load(&b, b.ti);
	REFUSED(&b, program_finish(p, &b.e), ERR_INPUT,
		"nothing that is stored depends on 'load_I'; use its value or remove it");
	bench_release(&b);

	bench_init(&b);
	p = b.p;
	x = load(&b, b.tx);
	y = load(&b, b.ty);
	c = carry(&b, "acc", 2, b.m, b.n, 0);
	v = mma(&b, "lost", x, y);
	must(&b, program_accumulate(p, c, v, here, &b.e));
	store(&b, b.to, mma(&b, NULL, x, y));
	REFUSED(&b, program_finish(p, &b.e), ERR_INPUT,
		"'lost' adds to carry 'acc', which nothing that is stored depends on; store the "
		"carry or remove both");
	bench_release(&b);

	bench_init(&b);
	p = b.p;
	phase(&b, "idle");
	cast(&b, load(&b, b.tx), DT_F32);
	phase_end(&b);
	phase(&b, "busy");
	store(&b, b.to, mma(&b, NULL, load(&b, b.tx), load(&b, b.ty)));
	REFUSED(&b, program_finish(p, &b.e), ERR_INPUT,
		"phase 'idle' stores nothing; store what it computes or remove it");
	bench_release(&b);

	bench_init(&b);
	b.p->tensors.n--;			/* no output but O, which goes as well */
	b.p->tensors.n--;
	memset(&b.e, 0, sizeof(b.e));
	is_int(program_finish(b.p, &b.e), ERR_INPUT, "a program without outputs");
	is_str(b.e.msg, "program 'test' has no output; declare one and store it", "is refused");
	bench_release(&b);
}

static void test_grid_limit(void)
{
	struct bench b;
	int a, t, v;

	bench_init(&b);
	store(&b, b.to, mma(&b, NULL, load(&b, b.tx), load(&b, b.ty)));
	for (int i = 0; i < 15; i++) {
		char name[3] = { 'q', (char)('A' + i), 0 };

		a = axis(&b, name, 2);
		v = load(&b, tensor(&b, TENSOR_INPUT, name, DT_F32, a, NONE));
		name[0] = 'r';
		t = tensor(&b, TENSOR_OUTPUT, name, DT_F32, a, NONE);
		store(&b, t, v);
	}
	memset(&b.e, 0, sizeof(b.e));
	is_int(program_finish(b.p, &b.e), ERR_LIMIT, "a grid over 17 axes");
	is_str(b.e.msg, "phase 'main' stores over 17 axes in all; at most 16 are possible",
	       "is refused");
	bench_release(&b);
}

static void test_types(void)
{
	struct bench b;
	int i, f, d, t, h, e8, none = NONE;
	const struct program *p;

	bench_init(&b);
	p = b.p;
	i = load(&b, b.ti);
	h = load(&b, b.tx);
	f = op2(&b, OP_MUL, h, h);
	d = cast(&b, h, DT_F64);
	t = op2(&b, OP_LT, i, h);
	e8 = cast(&b, i, DT_I8);
#define TYPE(node, want, what) do { \
	int id_ = (node);		/* before the nodes are looked at */ \
	\
	is_str(dtype_name(p->nodes.v[id_].type), want, what); \
} while (0)
	TYPE(f, "f32", "bf16 * bf16");
	TYPE(t, "bool", "i32 < bf16");
	TYPE(op2(&b, OP_ADD, i, i), "i32", "i32 + i32");
	TYPE(op2(&b, OP_ADD, i, constant(&b, 1)), "i32", "i32 + 1");
	TYPE(op2(&b, OP_ADD, i, constant(&b, 0.5)), "f32", "i32 + 0.5");
	TYPE(op2(&b, OP_ADD, i, constant(&b, 3e9)), "f32", "i32 + 3e9");
	TYPE(op2(&b, OP_ADD, i, f), "f32", "i32 + f32");
	TYPE(op2(&b, OP_MAX, i, d), "f64", "max of i32 and f64");
	TYPE(op2(&b, OP_DIV, i, i), "f32", "i32 / i32");
	TYPE(op2(&b, OP_ADD, e8, e8), "f32", "i8 + i8");
	TYPE(op2(&b, OP_SHR, i, constant(&b, 4)), "i32", "i32 >> 4");
	TYPE(op2(&b, OP_AND, t, t), "bool", "bool and bool");
	TYPE(op3(&b, OP_NOT, t, none, none), "bool", "not bool");
	TYPE(op3(&b, OP_NEG, i, none, none), "i32", "- i32");
	TYPE(op3(&b, OP_FLOOR, i, none, none), "f32", "floor of i32");
	TYPE(op3(&b, OP_EXP2, d, none, none), "f64", "exp2 of f64");
	TYPE(op3(&b, OP_WHERE, t, h, h), "bf16", "where of bf16 and bf16");
	TYPE(op3(&b, OP_WHERE, t, h, constant(&b, 0)), "f32", "where of bf16 and 0");
	TYPE(op3(&b, OP_WHERE, t, i, constant(&b, 0)), "i32", "where of i32 and 0");
	TYPE(mma(&b, NULL, h, load(&b, b.ty)), "f32", "mma of bf16");
	TYPE(mma(&b, NULL, d, h), "f64", "mma of f64");
	TYPE(mma(&b, NULL, e8, i), "i32", "mma of integers");
#undef TYPE
	is_int(op_find(OP_ELEMENTWISE, "exp2"), OP_EXP2, "find an operation");
	is_int(op_find(OP_ELEMENTWISE, "load"), OP_COUNT, "that is not element-wise");
	is_int(op_find(OP_ELEMENTWISE, "sum"), OP_COUNT, "nor is this");
	is_int(op_find(OP_REDUCTION, "sum"), OP_SUM, "find a reduction");
	bench_release(&b);
}

/* A carry that becomes f64 late takes with it what was read before. */
static void test_late_f64(void)
{
	struct bench b;
	const struct program *p;
	int c, x, g, s, other;

	bench_init(&b);
	p = b.p;
	c = carry(&b, "c", 1, b.m, NONE, 0);
	other = carry(&b, "other", 1, b.m, NONE, 0);
	loop(&b, b.k);
	g = get(&b, c);
	s = op2(&b, OP_ADD, g, constant(&b, 1));
	set(&b, other, s);
	must(&b, program_reduce(b.p, OP_SUM, cast(&b, load(&b, b.tx), DT_F64), b.k, here, &x,
		&b.e));
	is_int(p->nodes.v[g].type, DT_F32, "read as f32");
	set(&b, c, x);
	end(&b);
	b.to = tensor(&b, TENSOR_OUTPUT, "P", DT_F64, b.m, NONE);
	store(&b, b.to, op2(&b, OP_ADD, get(&b, c), get(&b, other)));
	b.p->tensors.v[program_find_tensor(p, "O")].role = TENSOR_TEMP;
	must(&b, program_finish(b.p, &b.e));
	is_int(p->nodes.v[g].type, DT_F64, "then f64");
	is_int(p->nodes.v[s].type, DT_F64, "and all that follows");
	is_int(p->carries.v[other].type, DT_F64, "through another carry");
	bench_release(&b);
}

static void test_accumulate(void)
{
	struct bench b;
	const struct program *p;
	int c, x, y, v, w, r;

	bench_init(&b);
	p = b.p;
	c = carry(&b, "c", 2, b.n, b.m, 0);
	r = carry(&b, "r", 1, b.m, NONE, 0);
	x = load(&b, b.tx);
	y = load(&b, b.ty);
	v = mma(&b, "fused", x, y);
	constant(&b, 3);			/* no task, so no matter */
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	is_int(p->nodes.v[v].ref, c, "a product that nothing used yet adds to the carry itself");
	is_int(p->nodes.n, 4, "with no node more");
	REFUSED(&b, program_accumulate(b.p, c, v, here, &b.e), ERR_INPUT,
		"'fused' was added to carry 'c' and has no value of its own any more; read the "
		"carry, or use the product before it is added");
	v = mma(&b, "used", x, y);
	op2(&b, OP_ADD, v, v);
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	is_int(p->nodes.v[v].ref, NONE, "a product that was used");
	v = mma(&b, "before", x, y);
	w = mma(&b, "after", x, y);
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	is_int(p->nodes.v[v].ref, NONE, "a product that another follows");
	must(&b, program_accumulate(b.p, c, w, here, &b.e));
	is_int(p->nodes.v[w].ref, NONE, "a product that element-wise work follows");
	v = mma(&b, "outer", x, y);
	loop(&b, b.h);
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	is_int(p->nodes.v[v].ref, NONE, "a product outside the loop");
	end(&b);
	v = mma(&b, "in_task", x, y);
	task(&b, "add");
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	task_end(&b);
	is_int(p->nodes.v[v].ref, NONE, "in a task the user asked for element-wise work");
	is_int(p->tasks.v[program_find_task(p, "add")].nodes.n, 3, "of three nodes");
	v = mma(&b, "wide", cast(&b, x, DT_F64), y);
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	is_int(p->carries.v[c].type, DT_F64, "an f64 product makes the carry f64");
	is_int(p->nodes.v[v].ref, c, "and adds to it");
	v = mma(&b, "narrow", x, y);
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	is_int(p->nodes.v[v].ref, NONE, "an f32 product does not, then");
	must(&b, program_reduce(b.p, OP_SUM, v, b.n, here, &v, &b.e));
	must(&b, program_accumulate(b.p, r, v, here, &b.e));
	is_int(p->nodes.v[p->nodes.n - 1].op, OP_SET, "a sum is set");
	bench_release(&b);
}

static void test_names(void)
{
	struct bench b;
	const struct program *p;
	int x, y;

	bench_init(&b);
	p = b.p;
	x = load(&b, b.tx);
	y = load(&b, b.tx);
	cast(&b, x, DT_F32);
	task(&b, "ew2");
	cast(&b, x, DT_F32);
	task_end(&b);
	cast(&b, x, DT_F32);
	cast(&b, x, DT_F32);
	mma(&b, NULL, x, y);
	mma(&b, NULL, x, y);
	is_str(p->tasks.v[1].name, "load_X2", "a second load of a tensor");
	is_str(p->tasks.v[2].name, "ew1", "element-wise work");
	is_str(p->tasks.v[4].name, "ew3", "skips a name that is taken");
	is_int(p->tasks.v[4].nodes.n, 2, "and goes on");
	is_str(p->tasks.v[6].name, "mma2", "products");
	is_int(program_find_task(p, "mma1"), 5, "find a task");
	bench_release(&b);
}

static void test_drop(void)
{
	struct bench b;
	const struct program *p;
	struct buf t;
	struct index_expr upto;
	int x, y, v, c, dead, idle;

	bench_init(&b);
	p = b.p;
	must(&b, program_batch(b.p, b.b, here, &b.e));
	b.to = tensor(&b, TENSOR_OUTPUT, "P", DT_BF16, b.b, b.n);
	b.p->tensors.v[program_find_tensor(p, "O")].role = TENSOR_TEMP;
	x = load(&b, b.tx);
	c = carry(&b, "c", 1, b.n, NONE, 1);
	dead = carry(&b, "dead", 1, b.m, NONE, 0);
	idle = cast(&b, x, DT_F32);
	upto = index_axis(b.m);
	must(&b, program_loop_begin(b.p, 1, &b.n, NULL, &upto, here, &b.e));
	set(&b, dead, op2(&b, OP_ADD, get(&b, dead), constant(&b, 1)));
	end(&b);
	loop(&b, b.m);
	y = load(&b, b.ty);
	v = mma(&b, "dot", x, y);
	must(&b, program_reduce(b.p, OP_SUM, v, b.m, here, &v, &b.e));
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	cast(&b, v, DT_F16);
	end(&b);
	store(&b, b.to, cast(&b, get(&b, c), DT_BF16));
	must(&b, program_finish(b.p, &b.e));
	is_int(p->nodes.v[idle].task, NONE, "a dropped node is in no task");
	is_int(p->tasks.v[program_find_task(p, "ew1")].nodes.n, 0, "an empty task stays");
	is_int(p->phases.v[0].body.n, 4, "but in no body, like an empty loop");
	buf_init(&t, &b.arena);
	program_print(p, &t);
	is_str(t.text,
	       "program test\n"
	       "axis b 2\n"
	       "axis h 4\n"
	       "axis m 16\n"
	       "axis n 32\n"
	       "axis k 8\n"
	       "axis kw 1\n"
	       "input X bf16 [m, k]\n"
	       "input Y bf16 [n, k]\n"
	       "input I i32 [m, kw]\n"
	       "temp O f32 [m, n]\n"
	       "temp T f32 [m, n]\n"
	       "output P bf16 [b, n]\n"
	       "phase main\n"
	       "  batch b\n"
	       "  carry c f32 {n} = 1\n"
	       "  carry dead f32 {m} = 0\n"
	       "  task load_X\n"
	       "    %0 bf16 {m, k} = load X[m, k]\n"
	       "  loop m\n"
	       "    task load_Y\n"
	       "      %6 bf16 {n, k} = load Y[n, k]\n"
	       "    task dot\n"
	       "      %7 f32 {m, n} = mma %0 %6\n"
	       "    task ew3\n"
	       "      %8 f32 {n} = sum %7 over m\n"
	       "      %9 f32 {n} = get c\n"
	       "      %10 f32 {n} = add %9 %8\n"
	       "      c := %10\n"
	       "  task ew4\n"
	       "    %13 f32 {n} = get c\n"
	       "    %14 bf16 {n} = cast %13\n"
	       "  task store_P\n"
	       "    P[b, n] := %14\n",
	       "the listing of what is left");
	is_int(program_axis_role(p, 0, b.m), AXIS_LOOP, "roles: a loop");
	is_int(program_axis_role(p, 0, b.n), AXIS_GRID, "the loop over n is gone");
	is_int(program_axis_role(p, 0, b.b), AXIS_BATCH, "batch");
	is_int(program_axis_role(p, 0, b.k), AXIS_FULL, "inner");
	is_int(program_axis_role(p, 0, b.h), AXIS_UNUSED, "unused");
	bench_release(&b);
}

static void test_print(void)
{
	struct bench b;
	struct buf t;
	struct index_expr at[2], from = index_const(2), upto;
	int x, w, u, i, c, v;

	bench_init(&b);
	upto = index_axis(b.m);
	upto.k = -1;
	c = carry(&b, "acc", 2, b.m, b.n, -(double)INFINITY);
	w = load(&b, b.ti);
	must(&b, program_loop_begin(b.p, 1, &b.k, &from, &upto, here, &b.e));
	at[0] = index_axis(b.n);
	at[1] = index_axis(b.k);
	must(&b, index_div(&at[1], 2, &at[1], &b.e));
	must(&b, program_load(b.p, "padded", b.ty, at, here, &x, &b.e));
	must(&b, program_unpack(b.p, w, b.kw, b.k, DT_I4, here, &u, &b.e));
	v = mma(&b, "dot", u, x);
	must(&b, program_accumulate(b.p, c, v, here, &b.e));
	end(&b);
	must(&b, program_index(b.p, b.m, here, &i, &b.e));
	v = op2(&b, OP_MUL, i, constant(&b, 0.5));
	store(&b, b.to, op2(&b, OP_ADD, get(&b, c), v));
	must(&b, program_finish(b.p, &b.e));
	buf_init(&t, &b.arena);
	program_print(b.p, &t);
	is_str(strstr(t.text, "axis kw"),
	       "axis kw 1 words of 8 k\n"
	       "input X bf16 [m, k]\n"
	       "input Y bf16 [n, k]\n"
	       "input I i32 [m, kw]\n"
	       "output O f32 [m, n]\n"
	       "temp T f32 [m, n]\n"
	       "phase main\n"
	       "  carry acc f32 {m, n} = -inf\n"
	       "  task load_I\n"
	       "    %0 i32 {m, kw} = load I[m, kw]\n"
	       "  loop k from 2 upto m - 1\n"
	       "    task padded\n"
	       "      %1 bf16 {n, k} = load Y[n, k // 2]\n"
	       "    task ew1\n"
	       "      %2 i4 {m, k} = unpack %0 to k\n"
	       "    task dot\n"
	       "      %3 f32 {m, n} = acc += mma %2 %1\n"
	       "  task ew2\n"
	       "    %7 f32 {m, n} = get acc\n"
	       "    %4 i32 {m} = index m\n"
	       "    %6 f32 {m} = mul %4 0.5\n"
	       "    %8 f32 {m, n} = add %7 %6\n"
	       "  task store_O\n"
	       "    O[m, n] := %8\n",
	       "the listing");
	ok(program_loop_within(b.p, 0, NONE) && program_loop_within(b.p, 0, 0) &&
	   !program_loop_within(b.p, NONE, 0), "loops within loops");
	ok(program_axis_bound(b.p, 0, b.k) && program_axis_bound(b.p, 0, b.kw) &&
	   !program_axis_bound(b.p, NONE, b.k), "axes that loops run over, and their words");
	bench_release(&b);
}

int main(void)
{
	test_declarations();
	test_phases();
	test_loops_and_tasks();
	test_memory();
	test_operations();
	test_too_many_axes();
	test_carries();
	test_unpack();
	test_finish();
	test_grid_limit();
	test_types();
	test_late_f64();
	test_accumulate();
	test_names();
	test_drop();
	test_print();
	program_free(NULL);
	return tap_done();
}
