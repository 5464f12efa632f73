#include "tile/interp.h"

#include <math.h>
#include <stdlib.h>

#include "base/prng.h"
#include "tests/unit/make_program.h"

enum { TENSORS = 8, MANY = 4 };

/* A program under construction and the data of its tensors. Calls that fail end
 * the test program: the tests of failures are in program.c. */
struct bench {
	struct mem mem;
	struct arena arena;
	struct program *p;
	struct tiling tiling;
	double *data[TENSORS];
	struct prng r;
	struct err e;
};

static void must(const struct bench *b, enum err_code code)
{
	must_make(code, &b->e);
}

static void bench_init(struct bench *b, const char *name)
{
	memset(b, 0, sizeof(*b));
	b->r.state = 42;
	b->p = program_new(&b->mem, name);
	arena_init(&b->arena, &b->mem);
}

static void bench_release(struct bench *b, const char *what)
{
	arena_release(&b->arena);
	program_free(b->p);
	is_int((long long)b->mem.used, 0, what);
}

static int axis(struct bench *b, const char *name, int64_t size, int64_t tile)
{
	int id = make_axis(b->p, name, size);
	
	b->tiling.extent[id] = tile;
	return id;
}

/* Ids up to the first NONE. */
struct ids {
	int v[RANK_MAX + 1];
	int n;
};

static struct ids ids(int a, int c, int d, int f)
{
	struct ids x = { { a, c, d, f }, 0 };

	while (x.n < MANY && x.v[x.n] != NONE)
		x.n++;
	return x;
}

#define IDS1(a) ids(a, NONE, NONE, NONE)
#define IDS2(a, c) ids(a, c, NONE, NONE)
#define IDS3(a, c, d) ids(a, c, d, NONE)
#define IDS4(a, c, d, f) ids(a, c, d, f)

/* Random data for inputs: multiples of 1/8, so that most sums are exact. */
static int tensor(struct bench *b, enum tensor_role role, const char *name, enum dtype t,
		  struct ids dims)
{
	int64_t n;
	int id = NONE;

	must(b, program_tensor(b->p, role, name, t, dims.n, dims.v, NOWHERE, &id, &b->e));
	n = tensor_elements(b->p, id);
	b->data[id] = ARENA_ARRAY(&b->arena, n, double);
	for (int64_t i = 0; i < n; i++)
		b->data[id][i] = role == TENSOR_INPUT ? (prng_below(&b->r, 65) - 32.0) / 8 : -999;
	return id;
}

static int load(struct bench *b, int t, const struct index_expr *index)
{
	struct index_expr own[RANK_MAX];
	
	for (int i = 0; i < b->p->tensors.v[t].rank; i++)
		own[i] = index_axis(b->p->tensors.v[t].dim[i]);
	return make_load(b->p, t, index ? index : own);
}

static void store(struct bench *b, int t, int value)
{
	make_store(b->p, t, value);
}

static int op3(struct bench *b, enum op op, int x, int y, int z)
{
	return make_op(b->p, op, x, y, z);
}

static int op2(struct bench *b, enum op op, int x, int y)
{
	return op3(b, op, x, y, NONE);
}

static int op1(struct bench *b, enum op op, int x)
{
	return op3(b, op, x, NONE, NONE);
}

static int constant(struct bench *b, double k)
{
	return make_const(b->p, k);
}

static int index_of(struct bench *b, int a)
{
	return make_index(b->p, a);
}

static int reduce(struct bench *b, enum op op, int value, int a)
{
	return make_reduce(b->p, op, value, a);
}

static int mma(struct bench *b, int x, int y)
{
	return make_mma(b->p, NULL, x, y);
}

static int cast(struct bench *b, int value, enum dtype t)
{
	return make_cast(b->p, value, t);
}

static int carry(struct bench *b, const char *name, struct ids axes, double init)
{
	return make_carry(b->p, name, axes.n, axes.v, init);
}

static int get(struct bench *b, int c)
{
	return make_get(b->p, c);
}

static void set(struct bench *b, int c, int value)
{
	make_set(b->p, c, value);
}

static void accumulate(struct bench *b, int c, int value)
{
	make_accumulate(b->p, c, value);
}

static void loop(struct bench *b, struct ids axes, const struct index_expr *upto)
{
	begin_loop_over(b->p, axes.n, axes.v, upto);
}

static void end(struct bench *b)
{
	end_loop_of(b->p);
}

static void batch(struct bench *b, int a)
{
	must(b, program_batch(b->p, a, NOWHERE, &b->e));
}

static void run_as(struct bench *b, unsigned flags)
{
	struct extents x;

	must(b, program_finish(b->p, &b->e));
	must(b, extents_infer(&b->arena, b->p, &b->tiling, &x, &b->e));
	must(b, interp_run(&b->arena, &x, b->data, flags, NULL, &b->e));
}

/* The farthest that the tensor is from an array. NaN is infinitely far. */
static double distance(const struct bench *b, int t, const double *want)
{
	double most = 0;

	for (int64_t i = 0; i < tensor_elements(b->p, t); i++) {
		double d = fabs(b->data[t][i] - want[i]);

		if (b->data[t][i] != want[i] && !(d <= most))
			most = isnan(d) ? (double)INFINITY : d;
	}
	return most;
}

static double *scratch(struct bench *b, int t)
{
	return ARENA_ARRAY(&b->arena, tensor_elements(b->p, t), double);
}

static void test_gemm(int64_t tm, int64_t tn, int64_t tk)
{
	enum { M = 37, N = 29, K = 53 };
	struct bench b;
	int m, n, k, ta, tb, tc, acc, x, y;
	double *want;

	bench_init(&b, "gemm");
	m = axis(&b, "m", M, tm);
	n = axis(&b, "n", N, tn);
	k = axis(&b, "k", K, tk);
	ta = tensor(&b, TENSOR_INPUT, "A", DT_F32, IDS2(m, k));
	tb = tensor(&b, TENSOR_INPUT, "B", DT_F32, IDS2(n, k));
	tc = tensor(&b, TENSOR_OUTPUT, "C", DT_F32, IDS2(m, n));
	acc = carry(&b, "acc", IDS2(n, m), 0);	/* not the order of the product */
	loop(&b, IDS1(k), NULL);
	x = load(&b, ta, NULL);
	y = load(&b, tb, NULL);
	accumulate(&b, acc, mma(&b, x, y));
	end(&b);
	store(&b, tc, get(&b, acc));
	run_as(&b, 0);
	want = scratch(&b, tc);
	for (int i = 0; i < M * N; i++) {
		for (int l = 0; l < K; l++)
			want[i] += b.data[ta][i / N * K + l] * b.data[tb][i % N * K + l];
	}
	is_near(distance(&b, tc, want), 0, 0, "a product with ragged tiles");
	bench_release(&b, "gives all memory back");
}

/* Q and K in, P V out; the reference computes each row in full. */
static void attention_reference(const struct bench *b, int64_t bh, int64_t len, int64_t dim,
				bool causal, double *want)
{
	double *s = calloc((size_t)len, sizeof(*s));

	for (int64_t i = 0; i < bh * len; i++) {
		int64_t head = i / len, n = causal ? i % len + 1 : len;
		double most = -(double)INFINITY, sum = 0;

		for (int64_t j = 0; j < n; j++) {
			s[j] = 0;
			for (int64_t d = 0; d < dim; d++)
				s[j] += b->data[0][i * dim + d] *
					b->data[1][(head * len + j) * dim + d] * 0.125;
			most = fmax(most, s[j]);
		}
		for (int64_t j = 0; j < n; j++)
			sum += s[j] = exp2(s[j] - most);
		for (int64_t d = 0; d < dim; d++) {
			want[i * dim + d] = 0;
			for (int64_t j = 0; j < n; j++)
				want[i * dim + d] += s[j] / sum *
					b->data[2][(head * len + j) * dim + d];
		}
	}
	free(s);
}

static void test_attention(bool causal, int64_t tm, int64_t tn)
{
	enum { B = 2, H = 3, LEN = 45, D = 8 };
	struct bench b;
	struct index_expr row;
	int ab, ah, m, n, d, q, kk, v, o, mx, l, acc, s, fresh, old, pr, x;
	double *want;

	bench_init(&b, "attention");
	ab = axis(&b, "b", B, 0);
	ah = axis(&b, "h", H, 1);
	m = axis(&b, "m", LEN, tm);
	n = axis(&b, "n", LEN, tn);
	d = axis(&b, "d", D, 0);
	q = tensor(&b, TENSOR_INPUT, "Q", DT_F32, IDS4(ab, ah, m, d));
	kk = tensor(&b, TENSOR_INPUT, "K", DT_F32, IDS4(ab, ah, n, d));
	v = tensor(&b, TENSOR_INPUT, "V", DT_F32, IDS4(ab, ah, n, d));
	o = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, IDS4(ab, ah, m, d));
	batch(&b, ab);
	batch(&b, ah);
	x = load(&b, q, NULL);
	mx = carry(&b, "mx", IDS1(m), -(double)INFINITY);
	l = carry(&b, "l", IDS1(m), 0);
	acc = carry(&b, "o", IDS2(m, d), 0);
	row = index_axis(m);
	loop(&b, IDS1(n), causal ? &row : NULL);
	s = op2(&b, OP_MUL, mma(&b, x, load(&b, kk, NULL)), constant(&b, 0.125));
	if (causal)
		s = op3(&b, OP_WHERE, op2(&b, OP_LE, index_of(&b, n), index_of(&b, m)), s,
			constant(&b, -(double)INFINITY));
	fresh = op2(&b, OP_MAX, get(&b, mx), reduce(&b, OP_RMAX, s, n));
	pr = op1(&b, OP_EXP2, op2(&b, OP_SUB, s, fresh));
	old = op1(&b, OP_EXP2, op2(&b, OP_SUB, get(&b, mx), fresh));
	set(&b, l, op2(&b, OP_ADD, op2(&b, OP_MUL, get(&b, l), old), reduce(&b, OP_SUM, pr, n)));
	set(&b, acc, op2(&b, OP_MUL, get(&b, acc), old));
	pr = cast(&b, pr, DT_BF16);
	accumulate(&b, acc, mma(&b, pr, load(&b, v, NULL)));
	set(&b, mx, fresh);
	end(&b);
	store(&b, o, op2(&b, OP_DIV, get(&b, acc), get(&b, l)));
	run_as(&b, 0);
	want = scratch(&b, o);
	attention_reference(&b, B * H, LEN, D, causal, want);
	is_near(distance(&b, o, want), 0, 1e-12,
		causal ? "causal attention with an online softmax" : "attention in full");
	bench_release(&b, "gives all memory back");
}

/* 2-D convolution with stride 2 and padding 1. */
static void test_conv(void)
{
	enum { N = 2, C = 3, H = 9, W = 10, F = 5, R = 3, S = 3, P = 5, Q = 5 };
	struct bench b;
	struct index_expr at[4], one = index_const(-1);
	int n, c, h, w, f, r, s, p, q, in, filter, out, acc, x, y;
	double *want;

	bench_init(&b, "conv2d");
	n = axis(&b, "n", N, 0);
	c = axis(&b, "c", C, 2);
	h = axis(&b, "h", H, 0);
	w = axis(&b, "w", W, 0);
	f = axis(&b, "f", F, 4);
	r = axis(&b, "r", R, 1);
	s = axis(&b, "s", S, 2);
	p = axis(&b, "p", P, 2);
	q = axis(&b, "q", Q, 3);
	in = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS4(n, c, h, w));
	filter = tensor(&b, TENSOR_INPUT, "F", DT_F32, IDS4(f, c, r, s));
	out = tensor(&b, TENSOR_OUTPUT, "Y", DT_F32, IDS4(n, f, p, q));
	batch(&b, n);
	acc = carry(&b, "acc", IDS3(f, p, q), 0);
	loop(&b, IDS3(c, r, s), NULL);
	at[0] = index_axis(n);
	at[1] = index_axis(c);
	at[2] = index_axis(p);
	must(&b, index_scale(&at[2], 2, &at[2], &b.e));
	must(&b, index_add(&at[2], &one, &at[2], &b.e));
	at[3] = at[2];
	at[3].term[0].axis = q;
	for (int i = 0; i < 2; i++) {
		struct index_expr tap = index_axis(i ? s : r);

		must(&b, index_add(&at[2 + i], &tap, &at[2 + i], &b.e));
	}
	x = load(&b, in, at);
	y = load(&b, filter, NULL);
	accumulate(&b, acc, mma(&b, y, x));
	end(&b);
	store(&b, out, get(&b, acc));
	run_as(&b, 0);
	want = scratch(&b, out);
	for (int i = 0; i < N * F * P * Q; i++) {
		int in_n = i / (F * P * Q), of = i / (P * Q) % F, y0 = i / Q % P, x0 = i % Q;

		for (int j = 0; j < C * R * S; j++) {
			int ic = j / (R * S), yy = y0 * 2 - 1 + j / S % R, xx = x0 * 2 - 1 + j % S;

			if (yy < 0 || yy >= H || xx < 0 || xx >= W)
				continue;
			want[i] += b.data[in][((in_n * C + ic) * H + yy) * W + xx] *
				b.data[filter][of * C * R * S + j];
		}
	}
	is_near(distance(&b, out, want), 0, 0, "a strided convolution with padding");
	bench_release(&b, "gives all memory back");
}

static int32_t random_word(struct prng *r)
{
	return (int32_t)(uint32_t)prng_next(r);
}

/* A product with weights of a 4-bit type in words and a scale for each group. */
static void test_dequant(enum dtype t, int64_t tk)
{
	enum { M = 9, N = 11, K = 50, KW = 7, G = 16, GS = 4 };
	struct bench b;
	struct index_expr at[2];
	int m, n, k, kw, g, ta, tw, ts, tc, acc, x, w, s;
	double *want;

	bench_init(&b, "dequant");
	m = axis(&b, "m", M, 4);
	n = axis(&b, "n", N, 3);
	k = axis(&b, "k", K, tk);
	kw = axis(&b, "kw", KW, 0);
	g = axis(&b, "g", GS, 0);
	ta = tensor(&b, TENSOR_INPUT, "A", DT_F32, IDS2(m, k));
	tw = tensor(&b, TENSOR_INPUT, "W", DT_I32, IDS2(n, kw));
	ts = tensor(&b, TENSOR_INPUT, "S", DT_F32, IDS2(n, g));
	tc = tensor(&b, TENSOR_OUTPUT, "C", DT_F32, IDS2(m, n));
	for (int i = 0; i < N * KW; i++)
		b.data[tw][i] = random_word(&b.r);
	acc = carry(&b, "acc", IDS2(m, n), 0);
	loop(&b, IDS1(k), NULL);
	x = load(&b, ta, NULL);
	at[0] = index_axis(n);
	at[1] = index_axis(k);
	must(&b, index_div(&at[1], G, &at[1], &b.e));
	s = load(&b, ts, at);
	must(&b, program_unpack(b.p, load(&b, tw, NULL), kw, k, t, NOWHERE, &w, &b.e));
	w = op2(&b, OP_MUL, cast(&b, w, DT_F32), s);
	accumulate(&b, acc, mma(&b, x, w));
	end(&b);
	store(&b, tc, get(&b, acc));
	run_as(&b, 0);
	want = scratch(&b, tc);
	for (int i = 0; i < M * N; i++) {
		for (int l = 0; l < K; l++) {
			uint32_t word = (uint32_t)(int32_t)b.data[tw][i % N * KW + l / 8];
			uint8_t nibble = word >> l % 8 * 4 & 15;

			want[i] += b.data[ta][i / N * K + l] * dtype_load(t, &nibble, 0) *
				b.data[ts][i % N * GS + l / G];
		}
	}
	is_near(distance(&b, tc, want), 0, 0, "a product with packed weights");
	bench_release(&b, "gives all memory back");
}

/* out[m] = sum over i of the greatest x[m, i, j] + y[i, j] over j <= i. */
static void test_nested(void)
{
	enum { M = 7, I = 10, J = 12 };
	struct bench b;
	struct index_expr upto;
	int m, i, j, tx, ty, to, sum, most, x, w;
	double *want;

	bench_init(&b, "nested");
	m = axis(&b, "m", M, 3);
	i = axis(&b, "i", I, 1);
	j = axis(&b, "j", J, 4);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS3(m, i, j));
	ty = tensor(&b, TENSOR_INPUT, "Y", DT_F32, IDS2(i, j));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, IDS1(m));
	upto = index_axis(i);
	sum = carry(&b, "sum", IDS1(m), 0);
	loop(&b, IDS1(i), NULL);
	most = carry(&b, "most", IDS2(i, m), -(double)INFINITY);
	w = op2(&b, OP_MUL, index_of(&b, i), constant(&b, 0.5));
	loop(&b, IDS1(j), &upto);
	x = op2(&b, OP_ADD, load(&b, tx, NULL), load(&b, ty, NULL));
	x = op3(&b, OP_WHERE, op2(&b, OP_LE, index_of(&b, j), index_of(&b, i)), x,
		constant(&b, -100));
	set(&b, most, op2(&b, OP_MAX, get(&b, most), reduce(&b, OP_RMAX, x, j)));
	end(&b);
	accumulate(&b, sum, reduce(&b, OP_SUM, op2(&b, OP_ADD, get(&b, most), w), i));
	end(&b);
	store(&b, to, get(&b, sum));
	run_as(&b, 0);
	want = scratch(&b, to);
	for (int k = 0; k < M * I; k++) {
		double best = -(double)INFINITY;

		for (int l = 0; l <= k % I; l++)
			best = fmax(best, b.data[tx][k * J + l] + b.data[ty][k % I * J + l]);
		want[k / I] += best + k % I * 0.5;
	}
	is_near(distance(&b, to, want), 0, 1e-12, "nested loops with a carry inside the outer one");
	bench_release(&b, "gives all memory back");
}

/* Partial sums over a batch axis in one phase, added up in the next; and a
 * normalisation, which needs a value with the full axis and by tiles. */
static void test_phases(void)
{
	enum { S = 3, L = 5, M = 6, N = 14 };
	struct bench b;
	struct index_expr at[2], tail;
	int s, l, m, n, tx, tt, to, tn, acc, x, total;
	double *want, *norm;

	bench_init(&b, "phases");
	s = axis(&b, "s", S, 0);
	l = axis(&b, "l", L, 2);
	m = axis(&b, "m", M, 4);
	n = axis(&b, "n", N, 5);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS2(m, n));
	tt = tensor(&b, TENSOR_TEMP, "T", DT_F32, IDS2(s, m));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, IDS1(m));
	tn = tensor(&b, TENSOR_OUTPUT, "Norm", DT_F32, IDS2(m, n));
	must(&b, program_phase_begin(b.p, "split", NOWHERE, &b.e));
	batch(&b, s);
	acc = carry(&b, "acc", IDS1(m), 0);
	loop(&b, IDS1(l), NULL);
	/* n = s * 5 + l: past the end of n it is zero */
	at[0] = index_axis(m);
	at[1] = index_axis(s);
	tail = index_axis(l);
	must(&b, index_scale(&at[1], L, &at[1], &b.e));
	must(&b, index_add(&at[1], &tail, &at[1], &b.e));
	accumulate(&b, acc, reduce(&b, OP_SUM, load(&b, tx, at), l));
	end(&b);
	store(&b, tt, get(&b, acc));
	must(&b, program_phase_end(b.p, NOWHERE, &b.e));
	must(&b, program_phase_begin(b.p, "join", NOWHERE, &b.e));
	store(&b, to, reduce(&b, OP_SUM, load(&b, tt, NULL), s));
	must(&b, program_phase_end(b.p, NOWHERE, &b.e));
	must(&b, program_phase_begin(b.p, "norm", NOWHERE, &b.e));
	x = load(&b, tx, NULL);
	total = reduce(&b, OP_SUM, op2(&b, OP_MUL, x, x), n);
	store(&b, tn, op2(&b, OP_DIV, x, total));
	run_as(&b, 0);
	want = scratch(&b, to);
	norm = scratch(&b, tn);
	for (int i = 0; i < M; i++) {
		double squares = 0;

		for (int j = 0; j < N; j++) {
			want[i] += b.data[tx][i * N + j];
			squares += pow(b.data[tx][i * N + j], 2);
		}
		for (int j = 0; j < N; j++)
			norm[i * N + j] = b.data[tx][i * N + j] / squares;
	}
	is_near(distance(&b, to, want), 0, 0, "a reduction split over a batch axis");
	is_near(distance(&b, tn, norm), 0, 1e-12, "a row that is needed with the full axis and by tiles");
	bench_release(&b, "gives all memory back");
}

static void test_scans(void)
{
	enum { M = 5, N = 13 };
	struct bench b;
	int m, n, tx, out[4], x, v[4];
	double *want[4];
	int bad = 0;

	bench_init(&b, "scans");
	m = axis(&b, "m", M, 2);
	n = axis(&b, "n", N, 4);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS2(m, n));
	out[0] = tensor(&b, TENSOR_OUTPUT, "Sum", DT_F32, IDS2(m, n));
	out[1] = tensor(&b, TENSOR_OUTPUT, "Max", DT_F32, IDS2(n, m));
	out[2] = tensor(&b, TENSOR_OUTPUT, "Min", DT_F32, IDS2(m, n));
	out[3] = tensor(&b, TENSOR_OUTPUT, "Least", DT_F32, IDS1(n));
	x = load(&b, tx, NULL);
	v[0] = reduce(&b, OP_CUMSUM, x, n);
	v[1] = reduce(&b, OP_CUMMAX, x, n);
	v[2] = reduce(&b, OP_CUMMIN, x, m);
	v[3] = reduce(&b, OP_RMIN, x, m);
	for (int i = 0; i < LEN(out); i++)
		store(&b, out[i], v[i]);
	run_as(&b, 0);
	for (int i = 0; i < LEN(out); i++)
		want[i] = scratch(&b, out[i]);
	for (int i = 0; i < M * N; i++) {
		double here = b.data[tx][i];
		int t = i % N * M + i / N;

		want[0][i] = i % N ? want[0][i - 1] + here : here;
		want[1][t] = i % N ? fmax(want[1][t - M], here) : here;
		want[2][i] = i / N ? fmin(want[2][i - N], here) : here;
	}
	for (int i = 0; i < N; i++)
		want[3][i] = want[2][(M - 1) * N + i];
	for (int i = 0; i < LEN(out); i++)
		bad += distance(&b, out[i], want[i]) > 1e-12;
	is_int(bad, 0, "scans and reductions along tiled axes");
	bench_release(&b, "gives all memory back");
}

/* Scans inside a loop, carried from tile to tile, as in chunked recurrences. */
static void test_loop_scan(void)
{
	enum { M = 4, N = 11 };
	struct bench b;
	int m, n, tx, to, sum, x, y;
	double *want;

	bench_init(&b, "loop_scan");
	m = axis(&b, "m", M, 0);
	n = axis(&b, "n", N, 3);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS2(m, n));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, IDS2(m, n));
	sum = carry(&b, "sum", IDS1(m), 0);
	loop(&b, IDS1(n), NULL);
	x = load(&b, tx, NULL);
	y = op2(&b, OP_ADD, reduce(&b, OP_CUMSUM, x, n), get(&b, sum));
	store(&b, to, y);
	accumulate(&b, sum, reduce(&b, OP_SUM, x, n));
	end(&b);
	run_as(&b, 0);
	want = scratch(&b, to);
	for (int i = 0; i < M * N; i++)
		want[i] = (i % N ? want[i - 1] : 0) + b.data[tx][i];
	is_near(distance(&b, to, want), 0, 1e-12, "a scan in a loop, stored there by tiles");
	bench_release(&b, "gives all memory back");
}

struct op_case {
	enum op op;
	double x, y, want;
};

/* Element-wise operations on one element each. */
static void test_ops(enum dtype t, const struct op_case *c, int n, const char *what)
{
	int bad = 0;

	for (int i = 0; i < n; i++) {
		struct bench b;
		int one, x, y, o, v;
		bool is_test = c[i].op >= OP_LT && c[i].op <= OP_NE;

		bench_init(&b, "op");
		one = axis(&b, "one", 1, 0);
		x = tensor(&b, TENSOR_INPUT, "X", t, IDS1(one));
		y = tensor(&b, TENSOR_INPUT, "Y", t, IDS1(one));
		o = tensor(&b, TENSOR_OUTPUT, "O", is_test ? DT_BOOL : t, IDS1(one));
		b.data[x][0] = c[i].x;
		b.data[y][0] = c[i].y;
		v = op_arity(c[i].op) == 1 ? op1(&b, c[i].op, load(&b, x, NULL))
			: op2(&b, c[i].op, load(&b, x, NULL), load(&b, y, NULL));
		store(&b, o, v);
		run_as(&b, 0);
		if (fabs(b.data[o][0] - c[i].want) > 1e-15 && b.data[o][0] != c[i].want) {
			diag("%s of %g and %g is %g, not %g", op_name(c[i].op), c[i].x, c[i].y,
			     b.data[o][0], c[i].want);
			bad++;
		}
		arena_release(&b.arena);
		program_free(b.p);
	}
	is_int(bad, 0, what);
}

static const double inf = (double)INFINITY, nan_ = (double)NAN;

static void test_all_ops(void)
{
	const struct op_case floats[] = {
		{ OP_ADD, 1, 0.5, 1.5 }, { OP_SUB, 1, 0.5, 0.5 }, { OP_MUL, 3, 0.5, 1.5 },
		{ OP_DIV, 1, 4, 0.25 }, { OP_DIV, 1, 0, inf }, { OP_DIV, -1, 0, -inf },
		{ OP_NEG, 2, 0, -2 }, { OP_ABS, -2, 0, 2 }, { OP_MIN, 1, 2, 1 },
		{ OP_MIN, nan_, 2, 2 }, { OP_MIN, 1, nan_, 1 }, { OP_MAX, 1, 2, 2 },
		{ OP_MAX, nan_, 2, 2 }, { OP_MAX, 1, nan_, 1 }, { OP_FLOOR, -1.5, 0, -2 },
		{ OP_EXP2, 3, 0, 8 }, { OP_LOG2, 8, 0, 3 }, { OP_RSQRT, 4, 0, 0.5 },
		{ OP_SQRT, 9, 0, 3 }, { OP_TANH, 0, 0, 0 }, { OP_LT, 1, 2, 1 },
		{ OP_LT, 2, 2, 0 }, { OP_LE, 2, 2, 1 }, { OP_EQ, 2, 2, 1 }, { OP_NE, 2, 2, 0 },
		{ OP_EQ, nan_, nan_, 0 }, { OP_NE, nan_, nan_, 1 }, { OP_EXP2, -inf, 0, 0 }, { OP_SIN, 0, 0, 0 },
		{ OP_COS, 0, 0, 1 },
	};
	const double big = 2147483647, small = -2147483648.0;
	const struct op_case words[] = {
		{ OP_ADD, big, 1, small }, { OP_SUB, small, 1, big }, { OP_MUL, 65536, 65536, 0 },
		{ OP_MUL, 123456789, 987654321, -67153019 }, { OP_NEG, small, 0, small },
		{ OP_ABS, small, 0, small }, { OP_ABS, -5, 0, 5 }, { OP_MIN, -3, 2, -3 },
		{ OP_MAX, -3, 2, 2 }, { OP_AND, -1, 255, 255 }, { OP_OR, 8, 5, 13 },
		{ OP_XOR, -1, 1, -2 }, { OP_NOT, 0, 0, -1 }, { OP_SHL, 1, 31, small },
		{ OP_SHL, 3, 4, 48 }, { OP_SHR, -16, 2, -4 }, { OP_SHR, 16, 2, 4 },
		{ OP_SHR, small, 31, -1 }, { OP_SHR, -7, 0, -7 }, { OP_LT, -1, 0, 1 },
		{ OP_LSHR, -1, 28, 15 }, { OP_LSHR, 16, 2, 4 }, { OP_LSHR, small, 31, 1 }, { OP_LSHR, -7, 0, -7 },
		{ OP_LSHR, -1, 33, big }, { OP_POPCOUNT, 0, 0, 0 }, { OP_POPCOUNT, -1, 0, 32 }, { OP_POPCOUNT, small, 0, 1 },
		{ OP_POPCOUNT, 123456789, 0, 16 },
	};
	const struct op_case bools[] = {
		{ OP_AND, 1, 1, 1 }, { OP_AND, 1, 0, 0 }, { OP_OR, 0, 1, 1 }, { OP_OR, 0, 0, 0 },
		{ OP_XOR, 1, 1, 0 }, { OP_XOR, 1, 0, 1 }, { OP_NOT, 1, 0, 0 }, { OP_NOT, 0, 0, 1 },
	};

	test_ops(DT_F32, floats, LEN(floats), "operations on floats");
	test_ops(DT_I32, words, LEN(words), "operations on i32 wrap around");
	test_ops(DT_BOOL, bools, LEN(bools), "operations on bool");
}

/* Load, cast and store one value. */
static double converted(enum dtype in, enum dtype via, enum dtype out, double x, unsigned flags)
{
	struct bench b;
	int one, tx, to;
	double y;

	bench_init(&b, "cast");
	one = axis(&b, "one", 1, 0);
	tx = tensor(&b, TENSOR_INPUT, "X", in, IDS1(one));
	to = tensor(&b, TENSOR_OUTPUT, "O", out, IDS1(one));
	b.data[tx][0] = x;
	store(&b, to, cast(&b, load(&b, tx, NULL), via));
	run_as(&b, flags);
	y = b.data[to][0];
	arena_release(&b.arena);
	program_free(b.p);
	return y;
}

static void test_conversions(void)
{
	double third = 1.0 / 3;

	is_near(converted(DT_F32, DT_BF16, DT_F32, third, 0), third, 0, "casts do not round");
	is_near(converted(DT_F32, DT_BF16, DT_F64, third, INTERP_ROUND),
		dtype_round(DT_BF16, third), 0, "unless asked to");
	is_near(converted(DT_F16, DT_F64, DT_F64, third, INTERP_ROUND),
		dtype_round(DT_F16, third), 0, "loads round to the tensor's type");
	is_near(converted(DT_F64, DT_F64, DT_E4M3, third, INTERP_ROUND),
		dtype_round(DT_E4M3, third), 0, "stores round to the tensor's type");
	is_near(converted(DT_F64, DT_I32, DT_I32, -2.9, 0), -2, 0, "to integers: towards zero");
	is_near(converted(DT_F64, DT_I8, DT_I8, 300, 0), 127, 0, "to integers: saturating");
	is_near(converted(DT_F64, DT_I4, DT_F32, -inf, 0), -8, 0, "to i4: minus infinity");
	is_near(converted(DT_F64, DT_I32, DT_I32, nan_, 0), 0, 0, "to integers: NaN is 0");
	is_near(converted(DT_F64, DT_BOOL, DT_BOOL, 0.25, 0), 1, 0, "to bool: not zero");
	is_near(converted(DT_I32, DT_I32, DT_I8, 1000, 0), 127, 0, "a narrower integer tensor");
	is_near(converted(DT_I8, DT_I32, DT_I32, nan_, 0), 0, 0, "what an integer tensor holds");
}

static void test_integer_mma(void)
{
	enum { M = 3, N = 5, K = 40 };
	struct bench b;
	int m, n, k, x, y, o, w, acc;
	double *want, *wrapped;

	bench_init(&b, "imma");
	m = axis(&b, "m", M, 0);
	n = axis(&b, "n", N, 2);
	k = axis(&b, "k", K, 16);
	x = tensor(&b, TENSOR_INPUT, "X", DT_I8, IDS2(m, k));
	y = tensor(&b, TENSOR_INPUT, "Y", DT_I32, IDS2(n, k));
	o = tensor(&b, TENSOR_OUTPUT, "O", DT_I32, IDS2(m, n));
	w = tensor(&b, TENSOR_OUTPUT, "W", DT_I32, IDS2(m, n));
	for (int i = 0; i < M * K; i++)
		b.data[x][i] = prng_below(&b.r, 256) - 128.0;
	for (int i = 0; i < N * K; i++)
		b.data[y][i] = random_word(&b.r);
	acc = carry(&b, "acc", IDS2(m, n), 7);
	loop(&b, IDS1(k), NULL);
	accumulate(&b, acc, mma(&b, load(&b, x, NULL), load(&b, y, NULL)));
	end(&b);
	is_int(b.p->carries.v[acc].type, DT_I32, "a carry of integer products is i32");
	store(&b, o, get(&b, acc));
	store(&b, w, op2(&b, OP_SHR, get(&b, acc), constant(&b, 3)));
	run_as(&b, 0);
	want = scratch(&b, o);
	wrapped = scratch(&b, w);
	for (int i = 0; i < M * N; i++) {
		uint32_t sum = 7;

		for (int l = 0; l < K; l++)
			sum += (uint32_t)(int32_t)b.data[x][i / N * K + l] *
				(uint32_t)(int32_t)b.data[y][i % N * K + l];
		want[i] = (int32_t)sum;
		wrapped[i] = floor((int32_t)sum / 8.0);
	}
	is_near(distance(&b, o, want), 0, 0, "an integer product, modulo 2^32");
	is_near(distance(&b, w, wrapped), 0, 0, "and its bits");
	bench_release(&b, "gives all memory back");
}

/* Stores through an index: what is outside is dropped, and other elements stay. */
static void test_store_index(void)
{
	enum { N = 6 };
	struct bench b;
	struct index_expr at = index_axis(0), two = index_const(-2);
	double want[N] = { -999, -999, -999, -999, -999, -999 };
	int n, x, o, v;

	bench_init(&b, "shift");
	n = axis(&b, "n", N, 4);
	x = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS1(n));
	o = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, IDS1(n));
	v = load(&b, x, NULL);
	must(&b, index_add(&at, &two, &at, &b.e));
	must(&b, program_store(b.p, NULL, o, &at, v, NOWHERE, &b.e));
	run_as(&b, 0);
	for (int i = 0; i + 2 < N; i++)
		want[i] = b.data[x][i + 2];
	is_near(distance(&b, o, want), 0, 0, "stores outside the tensor are dropped");
	bench_release(&b, "gives all memory back");
}

/* A loop whose range is empty: the carry keeps its initial value. A scalar output. */
static void test_empty_and_scalar(void)
{
	enum { N = 9 };
	struct bench b;
	struct index_expr none = index_const(-1);
	int n, x, o, c, total;
	double sum = 0;

	bench_init(&b, "empty");
	n = axis(&b, "n", N, 2);
	x = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS1(n));
	o = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, ids(NONE, NONE, NONE, NONE));
	c = carry(&b, "c", ids(NONE, NONE, NONE, NONE), 5);
	total = carry(&b, "total", ids(NONE, NONE, NONE, NONE), 0);
	loop(&b, IDS1(n), &none);
	accumulate(&b, c, reduce(&b, OP_SUM, load(&b, x, NULL), n));
	end(&b);
	loop(&b, IDS1(n), NULL);
	accumulate(&b, total, reduce(&b, OP_SUM, load(&b, x, NULL), n));
	end(&b);
	store(&b, o, op2(&b, OP_ADD, get(&b, c), get(&b, total)));
	run_as(&b, 0);
	for (int i = 0; i < N; i++)
		sum += b.data[x][i];
	is_near(b.data[o][0], 5 + sum, 1e-12, "an empty loop, and a scalar");
	bench_release(&b, "gives all memory back");
}

static void test_stop(void)
{
	struct bench b;
	struct extents x;
	const volatile int flag = 1;
	const struct stop stop = { &flag };
	int n, tx, to;
	size_t used;

	bench_init(&b, "stopped");
	n = axis(&b, "n", 1000, 0);
	tx = tensor(&b, TENSOR_INPUT, "X", DT_F32, IDS1(n));
	to = tensor(&b, TENSOR_OUTPUT, "O", DT_F32, IDS1(n));
	store(&b, to, load(&b, tx, NULL));
	must(&b, program_finish(b.p, &b.e));
	must(&b, interp_extents(&b.arena, b.p, &x, &b.e));
	is_int(x.tile[n], 128, "the reference's own tiles");
	used = b.mem.used;
	is_int(interp_run(&b.arena, &x, b.data, 0, &stop, &b.e), ERR_INTERRUPTED, "stop is heard");
	is_str(b.e.msg, "the reference was stopped in phase 'main'", "with a message");
	is_int((long long)b.mem.used, (long long)used, "and scratch memory given back");
	must(&b, interp_run(&b.arena, &x, b.data, 0, NULL, &b.e));
	is_near(distance(&b, to, b.data[tx]), 0, 0, "it can be run again");
	bench_release(&b, "gives all memory back");
}

int main(void)
{
	test_gemm(16, 8, 10);
	test_gemm(0, 0, 0);
	test_gemm(1, 64, 53);
	test_attention(false, 16, 8);
	test_attention(true, 16, 8);
	test_attention(true, 7, 20);
	test_conv();
	test_dequant(DT_I4, 16);
	test_dequant(DT_I4, 8);
	test_dequant(DT_E2M1, 0);
	test_nested();
	test_phases();
	test_scans();
	test_loop_scan();
	test_all_ops();
	test_conversions();
	test_integer_mma();
	test_store_index();
	test_empty_and_scalar();
	test_stop();
	return tap_done();
}
