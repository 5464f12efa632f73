/* The cost of one operation of a kernel to its lane (price_op).
 *
 * Instructions are counted as src/emit prints them, and take lane_share of the vector unit's issue slots;
 * accesses to shared memory are also limited by its bandwidth; dependent instructions by their latency
 * (struct seu's `chain`, `latency`). The result is the largest of these, in cycles. */
#include "sim/price.h"

#include <math.h>

#include "role/operands.h"

/* Instructions of the printed text (src/emit), without those of its index expressions. */
enum {
	ACCESS = 2,			/* to or from shared memory, per access: address, access */
	ROUND = 8,			/* of a loop over elements, per round: count, compare, branch, row, column,
					 * guard, conversion, access */
	COPY = 3,			/* of a chunk, by incremented addresses: two halves of the address, copy */
	SHIFT = 16,			/* of an unaligned chunk: three words, five selects, four shifts, store */
	TOGETHER = 8,			/* elements loaded to registers before the first is used */
	DIMENSION = 3,			/* of an index in 64 bits: multiply, add, carry */
	LONG_DIVIDE = 20,		/* by a number that is no constant */
	SHORT_DIVIDE = 4,		/* by a constant: multiply, shift; multiply, subtract for the remainder */
	STORE = 3,			/* of a chunk of a row: guard, address, access */
	LINE_LENGTH = 64,		/* assumed length of a line whose end is not a constant */
	ROW_BOX = 10,			/* of a box of a row: choose a thread, three moves to registers of the warp, the copy,
					 * leave out the thread, branch; one warp was measured to need 28 ns on an H100 */
	TRANSPOSE = 6,			/* within four threads, per word: select and shuffle, twice */
	MOVE_MATRIX = 2,		/* of 8 x 8 elements, a word of each thread; estimate: a shuffle and a permutation */
	/* Of a word of four elements, for MFMA of gfx942. In what clang 22 makes of products of 64 x 64 x 32 to
	 * 128 x 128 x 64, disassembled, a word takes just so many more than one of a type that is multiplied as it is: it is
	 * converted once, however many instructions multiply it */
	FNUZ_OF_E4M3 = 9,		/* mask, five to find NaN and -0, and what keeps or sets bits */
	HALVES_OF_E5M2 = 2,		/* a permutation of bytes for each two elements */
	HALVES_OF_E4M3 = 20,		/* for each two elements: that, six to find NaN and move the exponent, a product of
					 * two f16, two to set NaN */
};

/* ... and of a sum: two are multiplied at once by the powers of two that FNUZ leaves, for each operation at most. */
#define FNUZ_OF_SUM 0.5

enum { QUARTERS = 4, BANK_BYTES = 4, MATRIX_ROW_BYTES = 16, CHUNK_BYTES = 16, BANKS_BYTES = 128, SWIZZLED_ROWS = 8,
	SECTOR_BYTES = 32 };

#define SHIFTED_ASKED 1.5		/* bytes of the words that a chunk which is not aligned reads, over its own */

static double lane_threads(const struct cost_context *x)
{
	return x->warps * x->program->target->warp;
}

/* ---- expressions ---------------------------------------------------------------------- */

static bool is_power_of_two(const struct num *x)
{
	return num_is_const(x) && x->k > 0 && !(x->k & (x->k - 1));
}

/* Instructions of the expression's own operation, without its arguments. */
static double own_instructions(const struct num *x)
{
	if (x->op == NUM_CONST || x->op == NUM_VAR)
		return 0;
	if ((x->op != NUM_DIV && x->op != NUM_MOD) || is_power_of_two(x->b))
		return 1;
	return num_is_const(x->b) ? SHORT_DIVIDE : LONG_DIVIDE;
}

/* Instructions to evaluate an index expression. */
static double num_instructions(const struct num *x)
{
	return !x ? 0 : own_instructions(x) + num_instructions(x->a) + num_instructions(x->b) + num_instructions(x->c);
}

/* How many of these depend on each other, one after the other. */
static double num_depth(const struct num *x)
{
	return !x ? 0 : own_instructions(x) + fmax(num_depth(x->a), fmax(num_depth(x->b), num_depth(x->c)));
}

/* Is it the same in all iterations? So is what a thread's position in the tile alone says. */
static bool is_invariant(const struct num *x)
{
	if (!x)
		return true;
	if (x->op == NUM_VAR)
		return x->var >= VAR_THREAD && x->var <= VAR_EACH;
	return x->op != NUM_ELEMENT && x->op != NUM_TILE_AT && is_invariant(x->a) && is_invariant(x->b) && is_invariant(x->c);
}

/* The instructions that are left in a loop from which a compiler moves those that are the same in all iterations. */
static double varying_instructions(const struct num *x)
{
	return is_invariant(x) ? 0 : own_instructions(x) + varying_instructions(x->a) + varying_instructions(x->b) +
		varying_instructions(x->c);
}

/* Elements of the fragment that all threads of the lane hold; one that several threads hold counts for each. */
static double frag_elements(const struct cost_context *x, const struct frag *f)
{
	switch (f->kind) {
	case FRAG_FULL: return (double)(f->rows * f->cols) * (f->layout->every_warp && !f->layout->across_warps ? x->warps /
		max_i64(f->layout->row_parts, 1) : f->layout->every_part ? max_i64(f->layout->parts, 1) : 1);
	case FRAG_ROW: return (double)f->layout->halves * f->blocks * lane_threads(x);
	case FRAG_COL: return (double)(frag_groups(f) * f->layout->pair) * lane_threads(x);
	case FRAG_WORDS: return (double)f->cols * lane_threads(x);
	case FRAG_SCALAR: break;
	}
	return lane_threads(x);
}

/* The different values that an operation reads from shared memory: the compiler reads each once. */
struct reads {
	struct arena *a;
	VEC(const struct val *) v;
};

/* Add the values that v reads. */
static void collect_reads(struct reads *r, const struct val *v)
{
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		collect_reads(r, v->arg[i]);
	if (v->kind != VAL_SHARED)
		return;
	for (int i = 0; i < r->v.n; i++)
		if (r->v.v[i]->from == v->from && num_alike(r->v.v[i]->num, v->num))
			return;
	VEC_PUSH(r->a, &r->v, v);
}

static void collect_operand(void *ctx, const struct operand *x)
{
	if (x->kind == OPERAND_VALUE)
		collect_reads(ctx, x->value);
}

/* Elements of v that all threads read for a fragment: a thread reads an element once for all of its rows, or
 * columns, if v does not depend on these. */
static double distinct_elements(const struct cost_context *x, const struct frag *f, const struct val *v)
{
	if (f->kind != FRAG_FULL)
		return frag_elements(x, f);
	return frag_elements(x, f) /
		(num_uses(v->num, VAR_RB) ? 1 : f->blocks) / (num_uses(v->num, VAR_H) ? 1 : f->layout->halves) /
		(num_uses(v->num, VAR_COL_GROUP) ? 1 : frag_groups(f)) /
		(num_uses(v->num, VAR_E) ? 1 : f->layout->pair);
}

/* A thread of a lane's first warp, for an address: all other variables are as at the first element. */
struct bank_thread {
	struct num_env env;
	const struct frag_layout *layout;
	int thread;
};

static int64_t number_in_spread(int thread, const struct spread *s)
{
	return (int64_t)(thread / s->div % s->mod) * s->step;
}

static int64_t bank_var(const struct num_env *env, enum var v, int of)
{
	const struct bank_thread *t = (const struct bank_thread *)env;

	(void)of;
	return v == VAR_THREAD ? t->thread : v == VAR_ROW0 ? number_in_spread(t->thread, &t->layout->row) :
		v == VAR_COL0 ? number_in_spread(t->thread, &t->layout->col) : 0;
}

/* Can its value be found although variables are 0? */
static bool has_value(const struct num *x)
{
	if (!x || x->op == NUM_CONST || x->op == NUM_VAR)
		return true;
	if (x->op == NUM_ELEMENT || ((x->op == NUM_DIV || x->op == NUM_MOD) && !num_is_const(x->b)))
		return false;
	return has_value(x->a) && has_value(x->b) && has_value(x->c);
}

/* How many times as long a warp's read of one element a thread takes as one of which each bank has one word, because threads
 * read different words of one bank. */
static double bank_conflicts(const struct cost_context *x, const struct frag_layout *layout, const struct num *address)
{
	enum { BANKS = BANKS_BYTES / BANK_BYTES, WARP_MOST = 64 };
	struct bank_thread t = { .env.var = bank_var, .layout = layout };
	int warp = x->program->target->warp, of_bank[BANKS] = { 0 }, most = 1;
	int64_t word[WARP_MOST];

	if (warp > WARP_MOST || (!num_uses(address, VAR_ROW0) && !num_uses(address, VAR_COL0)) || !has_value(address))
		return 1;
	for (t.thread = 0; t.thread < warp; t.thread++) {
		int known = 0, bank;

		word[t.thread] = num_value(address, &t.env) / BANK_BYTES;
		while (word[known] != word[t.thread])
			known++;
		if (known < t.thread)
			continue;
		bank = (int)floor_mod(word[t.thread], BANKS);
		of_bank[bank]++;
		most = of_bank[bank] > most ? of_bank[bank] : most;
	}
	return most / fmax(1, warp / (double)BANKS);
}

/* ---- costs ---------------------------------------------------------------------------- */

/* n cycles of waiting. */
static struct op_cost cycles(double n)
{
	return (struct op_cost){ .lane = n };
}

/* n instructions, summed over the threads, that do not depend on each other. */
static struct op_cost instructions(const struct cost_context *x, double n)
{
	double share = fmin(1, x->vector->lane_share * x->warps / QUARTERS);

	return (struct op_cost){ .lane = n / (x->vector->slots * share), .unit = n / x->vector->slots };
}

/* n accesses of `bytes` to shared memory; a bank delivers four bytes at a time, even if fewer are needed. */
static struct op_cost accesses(const struct cost_context *x, double n, double bytes)
{
	struct op_cost s = instructions(x, n * ACCESS);
	double bank = n * fmax(bytes, BANK_BYTES) / x->device->shared_rate;

	return (struct op_cost){ .lane = fmax(s.lane, bank), .unit = s.unit, .shared = bank };
}

/* Reads of shared memory; the lane waits for the first one. */
static struct op_cost shared_reads(const struct cost_context *x, double reads, double bytes)
{
	struct op_cost s = accesses(x, reads, bytes);

	if (reads > 0)
		s.lane += x->vector->latency;
	return s;
}

/* Read what the operation needs from shared memory for each element of the fragment, `times` times, and convert it to
 * the type that is computed with. */
static struct op_cost shared_reads_of(const struct cost_context *x, const struct role_op *o, const struct frag *f,
	double times)
{
	struct reads r = { .a = x->a };
	double casts = 0, n = 0, banks = 0;

	role_visit(o, collect_operand, &r);
	for (int i = 0; i < r.v.n; i++) {
		const struct val *v = r.v.v[i];

		double accesses = times * distinct_elements(x, f, v) / v->together / fmax(v->groups, 1) / fmax(v->rounds, 1);

		n += accesses;
		banks += accesses * (val_at_once(v) > 1 ? fmax(BANK_BYTES, val_at_once(v) * dtype_bits(v->from) / 8.0) :
			BANK_BYTES * bank_conflicts(x, f->layout, v->num));
		if (v->from != v->type)
			casts += times * distinct_elements(x, f, v);
	}
	struct op_cost s = shared_reads(x, n, n > 0 ? banks / n : BANK_BYTES);
	s.ops[0][CLASS_ALU] += casts;
	return s;
}

/* ---- copies --------------------------------------------------------------------------- */

/* Instructions to compute the address of an element in global memory, and whether it is inside. */
static double index_instructions(const struct role_op *o)
{
	double n = num_instructions(o->u.move.inside);

	for (int d = 0; d < o->u.move.rank; d++)
		n += num_instructions(o->u.move.index[d].at) + DIMENSION +
			(o->u.move.index[d].value ? DIMENSION + ACCESS : 0);
	return n;
}

/* Threads of a warp that read neighbours of a column, one below the other, from the same bank: those of rows that are a
 * multiple of all banks apart, of swizzled rows every eighth. */
static double column_conflicts(const struct cost_context *x, const struct role_op *o)
{
	double warp = x->program->target->warp;
	int64_t by;

	if (!num_slope(o->u.move.address, VAR_ROW0, &by))
		return warp / SWIZZLED_ROWS;
	return fmax(1, warp * (double)gcd_i64(by, BANKS_BYTES) / BANKS_BYTES);
}

/* A loop over a ring's elements, one access per thread and round. The instructions of a round depend on each other
 * (from the element's number to its address), and rounds do not overlap. */
static struct op_cost price_store_ring(const struct cost_context *x, const struct role_op *o)
{
	double rounds = ceil((double)o->u.move.elements / fmax(1, o->u.move.width) / lane_threads(x));
	double n = ROUND + index_instructions(o) + num_instructions(o->u.move.address);
	struct op_cost s = instructions(x, rounds * n * lane_threads(x));

	s.lane = fmax(s.lane, rounds * (n * x->vector->chain + x->vector->latency));
	if (o->u.move.down)
		s.lane = fmax(s.lane, (double)o->u.move.elements * BANK_BYTES * column_conflicts(x,
			o) / x->device->shared_rate);
	return s;
}

/* How many of the instructions that compute an element's address depend on each other: those of the index that takes the
 * longest, then a multiplication and an addition for each dimension. */
static double index_depth(const struct role_op *o)
{
	double depth = 0;

	for (int d = 0; d < o->u.move.rank; d++)
		depth = fmax(depth, num_depth(o->u.move.index[d].at) + (o->u.move.index[d].value ? ACCESS : 0));
	return depth + o->u.move.rank;
}

static bool is_indexed_by_value(const struct role_op *o)
{
	for (int d = 0; d < o->u.move.rank; d++)
		if (o->u.move.index[d].value)
			return true;
	return false;
}

/* Copies by threads whose addresses do not go on by strides. If they are unrolled, the compiler computes before the loop
 * what a thread's position adds to their addresses, and for all of them together what the iteration adds; so each
 * takes an addition and its condition. In a loop rounds do not overlap, and the longest chain of a round's instructions
 * counts; all of them, where an index is read from shared memory, as these reads and the copies keep their order, and for
 * single elements, which go through registers. */
static struct op_cost price_addressed_copies(const struct cost_context *x, const struct role_op *o, double rounds)
{
	bool unrolled = role_unrolls_accesses(o, (int64_t)lane_threads(x)), by_value = is_indexed_by_value(o);
	double depth = index_depth(o), n = ROUND + index_instructions(o) + num_instructions(o->u.move.address);
	bool elements = (double)o->u.move.run * dtype_bits(o->u.move.type) / 8.0 < BANK_BYTES;
	struct op_cost s;

	if (unrolled && !by_value && !elements) {
		s = instructions(x, rounds * (COPY + varying_instructions(o->u.move.inside)) * lane_threads(x));
		s.lane += depth * x->vector->chain;
		return s;
	}
	double chain = elements || by_value ? n : ROUND + depth;	/* instructions that depend on each other */
	s = instructions(x, rounds * n * lane_threads(x));
	/* measured: a gather of 128 x 32 bf16 with two, four, eight warps, unrolled, takes 810, 510, 350 cycles, flags
	 * included, which leaves no latency for its reads of indices */
	s.lane = fmax(s.lane, rounds * (chain * x->vector->chain + (unrolled ? 0 : x->vector->latency)));
	return s;
}

/* Copies of chunks, `run` contiguous elements each. Asynchronous copies are all in flight before the lane waits
 * for them, if it does; single elements go through registers, TOGETHER at a time. */
static struct op_cost price_load_threads(const struct cost_context *x, const struct role_op *o)
{
	double bytes = o->u.move.run * dtype_bits(o->u.move.type) / 8.0;
	double chunks = (double)o->u.move.elements / o->u.move.run, rounds = ceil(chunks / lane_threads(x));
	struct op_cost s = o->u.move.shifted || o->u.move.stride.rows ?
		instructions(x, rounds * (o->u.move.shifted ? SHIFT : COPY) * lane_threads(x)) :
		price_addressed_copies(x, o, rounds);

	s.lane = fmax(s.lane, accesses(x, chunks, bytes).lane);
	if (o->u.move.shifted)
		s.global_reads = ceil(rounds / o->u.move.in_flight);
	else
		s.global_reads = o->u.move.arrives ? 0 : bytes < BANK_BYTES ? ceil(rounds / TOGETHER) : 1;
	if (x->program->tensors.v[o->u.move.tensor].by_address)
		s.global_reads++;	/* the address comes first */
	return s;
}

double price_dma(const struct cost_context *x, const struct role_op *o)
{
	return (double)role_dma_copies(o, (int64_t)lane_threads(x)) * x->warps;
}

/* Copies without registers, unrolled: each takes an addition, its condition, and what sets where it goes, and is under way
 * when the lane goes on. */
static struct op_cost price_load_dma(const struct cost_context *x, const struct role_op *o)
{
	struct op_cost s = instructions(x, (COPY + varying_instructions(o->u.move.inside)) * price_dma(x, o) *
		x->program->target->warp);

	if (is_indexed_by_value(o))
		s = op_cost_sum(s, price_addressed_copies(x, o, (double)role_dma_copies(o, (int64_t)lane_threads(x))));
	return s;
}

/* The halves of such a load. The lane waits for what comes from memory where it writes it. */
static struct op_cost price_words(const struct cost_context *x, const struct role_op *o)
{
	double bytes = o->u.move.run * dtype_bits(o->u.move.type) / 8.0, chunks = (double)o->u.move.elements / o->u.move.run;
	double each = o->what == DO_LOAD_WORDS ? index_instructions(o) : num_instructions(o->u.move.address);
	struct op_cost s = instructions(x, chunks * (1 + (o->u.move.stride.rows ? 0 : each)));

	return o->what == DO_LOAD_WORDS ? s : op_cost_sum(s, accesses(x, chunks, bytes));
}

/* Stores from a fragment, unrolled: chunks do not depend on each other, and those of a row share its index
 * computation. */
static struct op_cost price_store_threads(const struct cost_context *x, const struct role_op *o)
{
	double chunks = frag_elements(x, o->u.move.from.frag) / (double)o->u.move.width;
	double rows = 2.0 * o->u.move.from.frag->blocks * lane_threads(x);
	double n = STORE + (o->u.move.quads ? 4 * TRANSPOSE : o->u.move.down ? 4 * (TRANSPOSE + MOVE_MATRIX) :
		o->u.move.swaps ? 2 * TRANSPOSE : 0);

	return instructions(x, chunks * n + rows * index_instructions(o));
}

static struct op_cost price_put(const struct cost_context *x, const struct role_op *o)
{
	double together = fmax(o->u.put.together, 1), n = frag_elements(x, o->u.put.over) / (o->u.put.pairs ? 2 : together);
	double conflicts = together > 1 ? together : bank_conflicts(x, o->u.put.over->layout, o->u.put.address);

	return op_cost_sum(accesses(x, n, fmax(BANK_BYTES, dtype_bits(o->u.put.type) / 8.0) * conflicts),
		shared_reads_of(x, o, o->u.put.over, 1));
}

/* Each warp writes its rows of a batch of panels, two columns of 16 bits per access. */
static struct op_cost price_put_panels(const struct cost_context *x, const struct role_op *o)
{
	double rows = (double)x->warps * x->program->target->frag.rows;
	double n = o->u.panels.batch * rows * (double)o->u.panels.panel_cols;

	return accesses(x, dtype_bits(o->u.panels.type) == 16 ? n / 2 : n, BANK_BYTES);
}

/* Lanes of the block that exchange parts share the rate at which an EU writes to others. */
static struct op_cost price_parts(const struct cost_context *x, const struct role_op *o)
{
	double n = (double)o->u.parts.chunks * (x->program->cluster - 1) * lane_threads(x), lanes = 0;
	struct op_cost s = accesses(x, n, CHUNK_BYTES);

	if (o->what == DO_PUT_PARTS) {
		for (int i = 0; i < x->program->flags.n; i++)
			lanes += x->program->flags.v[i].parts / (x->program->ends_apart ? 1 : 2.0);
		s.lane = fmax(s.lane, n * CHUNK_BYTES * fmax(lanes, 1) / x->device->peer_rate);
		return s;
	}
	s.lane += x->device->peer_latency;
	return op_cost_sum(s, instructions(x, n * CHUNK_BYTES / BANK_BYTES));
}

/* The lane waits for the first word. */
static struct op_cost price_fetch(const struct cost_context *x, const struct role_op *o)
{
	const struct frag *f = o->u.fetch.to.frag;
	double words = fmax(frag_words_together(f), o->u.fetch.groups);
	double bytes = o->u.fetch.by == FETCH_WORDS ? BANK_BYTES * words : o->u.fetch.by == FETCH_ELEMENTS ?
		dtype_bits(f->type) / 8.0 : MATRIX_ROW_BYTES;
	struct op_cost s = accesses(x, frag_elements(x, f) * dtype_bits(f->type) / 8 / bytes, bytes);

	s.lane += x->vector->latency;
	return s;
}

/* Boxes of rows: the threads of a warp each read the values of a row, and fence; then they issue the boxes one after the
 * other, as instructions of the copy engine take what they need from registers that a warp has once. */
static struct op_cost price_row_boxes(const struct cost_context *x, const struct role_op *o, int values)
{
	double rows = ceil((double)o->u.boxes.rows / x->warps), rounds = ceil(rows / x->program->target->warp);
	double reads = values ? values * x->vector->latency + x->device->fence_cost : 0;

	return cycles(rounds * reads + rows * o->u.boxes.boxes.n * ROW_BOX * x->vector->chain);
}

/* Of a word of an operand. */
static double conversion_instructions(const struct product_form *f, enum dtype type)
{
	uint32_t types = 1u << f->a_type | 1u << f->b_type;

	if (!(f->by->as_f16 & types))
		return f->by->fnuz & types ? FNUZ_OF_E4M3 : 0;
	return type == DT_E4M3 ? HALVES_OF_E4M3 : HALVES_OF_E5M2;
}

/* What converts operands in registers to the machine's encoding. All else that a product takes is its unit's. */
static struct op_cost price_conversions(const struct cost_context *x, const struct role_op *o)
{
	const struct product_form *f = &o->u.product.form;
	const struct frag *sum = o->u.product.sum.frag;
	double steps = (double)o->u.product.steps * f->by->k_bytes / BANK_BYTES;	/* words of a row */
	double a = (double)sum->blocks * f->by->rows * x->warps, b = (double)o->u.product.col_steps * f->cols * x->warps;
	double n = steps * (a * conversion_instructions(f, f->a_type) + b * conversion_instructions(f, f->b_type));

	if (n > 0 && !(f->by->as_f16 & (1u << f->a_type | 1u << f->b_type)))
		n += FNUZ_OF_SUM * a * (double)o->u.product.col_steps * f->cols;
	return n > 0 ? instructions(x, n) : (struct op_cost){ 0 };
}

/* Reads of half a word, or of bytes, that are joined. */
static struct op_cost price_pairs(const struct cost_context *x, const struct role_op *o)
{
	double parts = o->u.pairs.parts * (o->u.pairs.bytes ? 4.0 / o->u.pairs.parts : 1);
	struct op_cost s = accesses(x, o->u.pairs.blocks * o->u.pairs.steps * parts * lane_threads(x), BANK_BYTES);

	s.lane += x->vector->latency;
	return s;
}

/* The thread that issues a box reads from shared memory, one after the other, the values that its indices add, and then
 * fences. */
static struct op_cost price_box_values(const struct cost_context *x, const struct role_op *o)
{
	int n = 0;

	for (int i = 0; i < o->u.boxes.boxes.n; i++)
		for (int d = 0; d < RANK_MAX; d++)
			n += o->u.boxes.boxes.v[i].value[d] != NULL;
	if (o->u.boxes.rows)
		return price_row_boxes(x, o, n / o->u.boxes.boxes.n);
	return cycles(n ? n * x->vector->latency + x->device->fence_cost : 0);
}

double price_boxes(const struct cost_context *x, const struct role_op *o, double *issued)
{
	*issued = 0;
	if (o->what == DO_LOAD_BOXES && !o->u.boxes.rows)	/* for rows: price_row_boxes */
		*issued = o->u.boxes.boxes.n;
	else if (o->what == DO_STORE_BOXES)
		*issued = o->u.boxes.panels;
	return *issued * (o->what == DO_STORE_BOXES && o->u.boxes.elected ? x->warps : 1);
}

/* Of the neighbours that a thread has, one instruction moves only `width`, so that those of the warp's threads are
 * apart. */
static double fragment_ratio(const struct cost_context *x, const struct role_op *o, double bytes)
{
	const struct frag_layout *l = o->u.move.from.frag->layout;
	double threads = fmin(l->col.mod, x->program->target->warp), moved = threads * o->u.move.width * bytes;
	double sectors = fmin(threads * l->pair * bytes / SECTOR_BYTES,
		threads * ceil(o->u.move.width * bytes / SECTOR_BYTES));

	return fmax(1, ceil(sectors) * SECTOR_BYTES / moved);
}

/* Of what a last index is made of: a tile begins at a multiple of its columns, and chunks go on from there. */
static int64_t alignment_of_column(const void *ctx, enum var v, int of)
{
	(void)of;
	return v == VAR_LO ? *(const int64_t *)ctx : SECTOR_BYTES;
}

/* Do copies of chunks begin and end where sectors do? If the rows of the tensor, those of the tile, and where these begin are
 * multiples of a sector. */
static bool copies_sectors(const struct cost_context *x, const struct role_op *o, double bytes)
{
	const struct tensor *t = &x->source->tensors.v[o->u.move.tensor];
	const struct role_index *last = &o->u.move.index[o->u.move.rank - 1];
	const struct axis *axis = &x->source->axes.v[t->dim[t->rank - 1]];
	double row = (double)(axis->multiple ? axis->multiple : axis->size) * bytes;

	return o->what == DO_LOAD_THREADS && !o->u.move.shifted && !o->u.move.down && !last->value &&
		(double)num_alignment(last->at, SECTOR_BYTES, alignment_of_column, &o->u.move.cols) * bytes >= SECTOR_BYTES &&
		(double)o->u.move.run * bytes >= MATRIX_ROW_BYTES && fmod(row, SECTOR_BYTES) == 0 &&
		fmod((double)o->u.move.cols * bytes, SECTOR_BYTES) == 0;
}

/* A warp moves in one instruction a contiguous run: up to 32 elements of a row; from a fragment what the threads of a
 * row have together, each an element or several neighbours; or elements of a column of a ring. A run that is not
 * aligned touches one sector more. */
double price_sector_ratio(const struct cost_context *x, const struct role_op *o)
{
	bool is_ring = o->what == DO_LOAD_THREADS || o->what == DO_LOAD_WORDS || o->what == DO_STORE_RING;
	double bytes, run;

	if (!is_ring && o->what != DO_STORE_THREADS)
		return 0;
	bytes = dtype_bits(o->u.move.type) / 8.0;
	if (!o->u.move.rank || !num_uses(o->u.move.index[o->u.move.rank - 1].at, o->u.move.down ? VAR_ROW0 : is_ring ?
	    VAR_COL0 : VAR_COL_GROUP))
		return SECTOR_BYTES / bytes;
	if (copies_sectors(x, o, bytes))
		return 1;
	if (is_ring)
		run = fmin((double)(o->u.move.down ? o->u.move.elements / o->u.move.cols : o->u.move.cols),
			x->program->target->warp * (o->what == DO_STORE_RING ? fmax(1, o->u.move.width) : 1)) * bytes;
	else if (o->u.move.quads || o->u.move.swaps || o->u.move.down)
		return 1;
	else
		return fragment_ratio(x, o, bytes);
	run = (ceil(run / SECTOR_BYTES) + 1) * SECTOR_BYTES / run;
	return is_ring && o->u.move.shifted ? run * SHIFTED_ASKED : run;
}

/* ---- arithmetic ----------------------------------------------------------------------- */

/* Arithmetic on the elements of the fragment, `times` times. */
static struct op_cost price_elements(const struct cost_context *x, const struct role_op *o, const struct frag *f,
	double times)
{
	struct op_cost s = shared_reads_of(x, o, f, times);

	price_arithmetic(x, o, frag_elements(x, f) * times, &s);
	return s;
}

/* Where several warps have parts of rows that are scanned, each writes the sums of its parts to shared memory, of each
 * group of columns one, and then goes over those of all warps, as many at a time as it has threads: a read, shuffles that
 * depend on each other, and one more for each group. The elements are combined once more. */
static struct op_cost price_joined_scan(const struct cost_context *x, const struct role_op *o, struct op_cost s)
{
	const struct frag *f = o->u.reduce.over;
	double rows = f->kind == FRAG_FULL ? (double)f->blocks * f->layout->halves : 1;
	double groups = frag_groups(f), warp = x->program->target->warp;
	double rounds = rows * ceil(groups * x->warps / warp), shuffles = log2(warp) + 2;

	s.ops[0][o->u.reduce.op == OP_CUMSUM ? CLASS_FMA : CLASS_ALU] += frag_elements(x, f);
	s = op_cost_sum(s, accesses(x, rows * groups * x->warps, BANK_BYTES));
	s = op_cost_sum(s, shared_reads(x, rounds * lane_threads(x), BANK_BYTES));
	s = op_cost_sum(s, instructions(x, (rounds * shuffles * 2 + rows * groups) * lane_threads(x)));
	return op_cost_sum(s, cycles(shuffles * (x->vector->latency + x->vector->chain) +
		2 * x->device->issue_order_latency));
}

/* The reads for all elements that a thread holds are under way at once, and where lines are short those of all steps. */
static struct op_cost price_reduce_shared(const struct cost_context *x, const struct role_op *o)
{
	double length = num_is_const(o->u.reduce.length) ? (double)o->u.reduce.length->k : LINE_LENGTH;
	struct op_cost s = price_elements(x, o, o->u.reduce.over, length);

	if (length > REDUCE_SHARED_UNROLLED)
		s.lane = fmax(s.lane, length * (x->vector->latency + x->vector->chain));
	return s;
}

/* Where several warps have a part of what is reduced, each writes its partial results to shared memory, and all combine
 * them. */
static struct op_cost price_reduction(const struct cost_context *x, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	struct op_cost s = price_elements(x, o, f, 1);
	double written, held;		/* results of a warp, and of a thread */
	int parts = layout_parts(f->layout);
	int joined = parts > 1 && !o->u.reduce.along_rows ? parts : x->warps / parts;

	if (!role_joins_warps(o, x->warps))
		return s;
	if (o->what == DO_SCAN)
		return price_joined_scan(x, o, s);
	if (o->u.reduce.along_rows) {
		written = f->kind == FRAG_FULL ? (double)frag_part_cols(f) : 1;
		held = f->kind == FRAG_FULL ? (double)frag_groups(f) * f->layout->pair : 1;
	} else {
		held = f->kind == FRAG_FULL || f->kind == FRAG_ROW ? (double)f->blocks * f->layout->halves : 1;
		written = held * x->program->target->warp / fmin(f->layout->col.mod, x->program->target->warp);
	}
	s = op_cost_sum(s, accesses(x, written * x->warps, BANK_BYTES));
	s = op_cost_sum(s, shared_reads(x, joined * held * lane_threads(x), BANK_BYTES));
	return op_cost_sum(s, cycles(2 * x->device->issue_order_latency));
}

/* ---- synchronisation ------------------------------------------------------------------ */

/* The first wait of a store: its staging memory was read long ago, by the store before. A later one waits for
 * what the same store has just issued: the engine's latency, divided by the batches that hide it. */
static struct op_cost price_stores_wait(const struct cost_context *x, const struct role_op *o)
{
	double latency = 0;

	for (int i = 0; i < x->device->nseus; i++)
		if (x->device->seu[i].kind == SEU_COPY)
			latency = fmax(latency, x->device->seu[i].latency);
	if (!x->repetition)
		return cycles(x->device->wait_cost);
	return cycles(fmax(x->device->wait_cost, latency / (o->u.stores.other + 1)));
}

/* Lines in shared memory, each by one thread, element by element: the thread waits for each element. */
static struct op_cost price_lines(const struct cost_context *x, const struct role_op *o)
{
	double length = num_is_const(o->u.lines.length) ? (double)o->u.lines.length->k : LINE_LENGTH;
	double rounds = ceil((double)o->u.lines.n / lane_threads(x));
	struct op_cost s = accesses(x, (double)o->u.lines.n * length * (o->u.lines.running ? 2 : 1), BANK_BYTES);

	s.lane = fmax(s.lane, rounds * length * (ROUND * x->vector->chain + x->vector->latency));
	return s;
}

struct op_cost price_op(const struct cost_context *x, const struct role_op *o)
{
	const struct vdevice *d = x->device;

	if (o->what == DO_LOAD_BOXES)
		return price_box_values(x, o);
	if (o->what == DO_PRODUCT)
		return price_conversions(x, o);
	if (role_op_info[o->what].cost != COST_LANE && role_op_info[o->what].cost != COST_STAGED)
		return (struct op_cost){ 0 };
	switch ((int)o->what) {
	case DO_WAIT: return cycles(o->wait == NONE ? d->wait_cost : 0);
	case DO_WAIT_LAST: return cycles(d->wait_cost * x->program->flags.v[o->u.flag.flag].depth);
	case DO_GROUPS_WAIT: return cycles(d->drain_cost);
	case DO_COPIES_WAIT: return op_cost_sum(cycles(d->wait_cost), (struct op_cost){ .global_reads = o->task != NONE });
	case DO_STORES_WAIT: return price_stores_wait(x, o);
	case DO_ARRIVE: case DO_RELEASE: return cycles(d->tell_cost);
	case DO_WARP_SYNC: return cycles(d->warp_cost);
	case DO_LANE_SYNC: case DO_BLOCK_SYNC: return cycles(d->issue_order_latency);
	case DO_FENCE: return cycles(d->fence_cost);
	case DO_LOAD_THREADS: return o->u.move.dma ? price_load_dma(x, o) : price_load_threads(x, o);
	case DO_LOAD_WORDS: case DO_PUT_WORDS: return price_words(x, o);
	case DO_STORE_RING: return price_store_ring(x, o);
	case DO_STORE_THREADS: return price_store_threads(x, o);
	case DO_PUT: return price_put(x, o);
	case DO_PUT_PANELS: return price_put_panels(x, o);
	case DO_FILL: return op_cost_sum(accesses(x, (double)o->u.fill.elements, dtype_bits(o->u.fill.type) / 8.0),
		instructions(x, (double)o->u.fill.elements * num_instructions(o->u.fill.address)));
	case DO_PUT_PARTS: case DO_SUM_PARTS: return price_parts(x, o);
	case DO_FETCH: return price_fetch(x, o);
	case DO_PAIRS: return price_pairs(x, o);
	case DO_MAP: return price_elements(x, o, o->u.map.over, o->u.map.some && !x->unmasked ? x->needed : 1);
	case DO_PACK: return price_elements(x, o, o->u.pack.to.frag, 1);
	case DO_SUM_PRODUCT:
		return price_elements(x, o, o->u.sum_product.sum.frag, (double)o->u.sum_product.depth);
	case DO_REDUCE: case DO_SCAN: return price_reduction(x, o);
	case DO_REDUCE_SHARED: return price_reduce_shared(x, o);
	case DO_LINES: return price_lines(x, o);
	default: BUG("'%s' has no price", role_op_info[o->what].name);
	}
}
