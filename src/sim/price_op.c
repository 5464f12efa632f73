/* What one operation of a kernel takes of the lane that does it. */
#include "sim/price.h"

#include <math.h>

/* Instructions of the printed text (src/emit), beside those of its expressions. */
enum {
	ACCESS = 2,			/* an element to or from shared memory: address, access */
	ROUND = 8,			/* of a loop over elements: count, compare, branch, row, column, guard,
					 * conversion, access */
	COPY = 3,			/* of a piece by adding to addresses: two halves, copy */
	SHIFT = 16,			/* of one that is shifted: three words, five choices, four shifts, store */
	TOGETHER = 8,			/* elements that go through registers before the next are asked for */
	DIMENSION = 3,			/* of an index in 64 bits: multiply, add, carry */
	LONG_DIVIDE = 20,		/* by a number that the compiler does not know */
	SHORT_DIVIDE = 4,		/* by one that it does: multiply, shift, and back for the rest */
	STORE = 3,			/* of a piece of a row: guard, address, access */
	LINE_LENGTH = 64,		/* of a line whose end is known when it runs alone */
	TRANSPOSE = 6,			/* of a quad's four words, a word: select and shuffle, twice */
};

enum { QUARTERS = 4, BANK_BYTES = 4, SECTOR_BYTES = 32 };

#define SHIFTED_ASKED 1.5		/* of a shifted piece's bytes its words have so many times as many */

static double threads(const struct payer *x)
{
	return x->warps * x->program->target->warp;
}

/* expressions ------------------------------------------------------------------ */

static bool is_power(const struct num *x)
{
	return num_is_const(x) && x->k > 0 && !(x->k & (x->k - 1));
}

/* Instructions to evaluate it. */
static double num_instructions(const struct num *x)
{
	double inner;

	if (!x || x->op == NUM_CONST || x->op == NUM_VAR)
		return 0;
	inner = num_instructions(x->a) + num_instructions(x->b) + num_instructions(x->c);
	if (x->op != NUM_DIV && x->op != NUM_MOD)
		return inner + 1;
	if (is_power(x->b))
		return inner + 1;
	return inner + (num_is_const(x->b) ? SHORT_DIVIDE : LONG_DIVIDE);
}

/* Elements that a lane goes through, those held by several threads as often. */
static double elements(const struct payer *x, const struct frag *f)
{
	switch (f->kind) {
	case FRAG_FULL: return (double)(f->rows * f->cols) * (f->layout->every_warp ? x->warps : 1);
	case FRAG_ROW: return (double)f->layout->halves * f->blocks * threads(x);
	case FRAG_COL: return (double)(frag_groups(f) * f->layout->pair) * threads(x);
	case FRAG_SCALAR: break;
	}
	return threads(x);
}

/* What an operation reads of shared memory, each once: the compiler keeps what it has. */
struct reads {
	struct arena *a;
	VEC(const struct val *) v;
};

static void collect(struct reads *r, const struct val *v)
{
	if (!v)
		return;
	for (int i = 0; i < LEN(v->arg); i++)
		collect(r, v->arg[i]);
	if (v->kind != VAL_SHARED)
		return;
	for (int i = 0; i < r->v.n; i++)
		if (r->v.v[i]->from == v->from && num_alike(r->v.v[i]->num, v->num))
			return;
	VEC_PUSH(r->a, &r->v, v);
}

/* Elements of a value that is made for each of the fragment: a thread has once what does not differ
 * along its rows, or columns. */
static double distinct(const struct payer *x, const struct frag *f, const struct val *v)
{
	if (f->kind != FRAG_FULL)
		return elements(x, f);
	return elements(x, f) / (num_uses(v->num, VAR_RB) ? 1 : f->blocks) /
		(num_uses(v->num, VAR_H) ? 1 : f->layout->halves) /
		(num_uses(v->num, VAR_EIGHT) ? 1 : frag_groups(f)) /
		(num_uses(v->num, VAR_E) ? 1 : f->layout->pair);
}

/* Of those, how many one access brings: neighbours of a pair. */
static double together(const struct frag *f, const struct val *v)
{
	int64_t by;

	return f->kind == FRAG_FULL && num_uses(v->num, VAR_E) && num_slope(v->num, VAR_E, &by) &&
		by == dtype_bits(v->from) / 8 ? f->layout->pair : 1;
}

/* costs ------------------------------------------------------------------------ */

/* So many cycles of waiting. */
static struct spent cycles(double n)
{
	return (struct spent){ .lane = n };
}

/* Instructions, each of a thread, that do not wait for each other. */
static struct spent instructions(const struct payer *x, double n)
{
	double share = fmin(1, x->vector->lane_share * x->warps / QUARTERS);

	return (struct spent){ .lane = n / (x->vector->slots * share), .unit = n / x->vector->slots };
}

/* n accesses to shared memory. A bank gives four bytes at a time, asked for less or not. */
static struct spent accesses(const struct payer *x, double n, double bytes)
{
	struct spent s = instructions(x, n * ACCESS);
	double bank = n * fmax(bytes, BANK_BYTES) / x->device->shared_rate;

	return (struct spent){ .lane = fmax(s.lane, bank), .unit = s.unit };
}

/* Reads of shared memory; the first is waited for. */
static struct spent gets(const struct payer *x, double reads)
{
	struct spent s = accesses(x, reads, BANK_BYTES);

	if (reads > 0)
		s.lane += x->vector->latency;
	return s;
}

/* ... so many times for values of elements of the fragment, and to make of them what is computed with. */
static struct spent gets_all(const struct payer *x, const struct frag *f, const struct reads *r,
	double times)
{
	double casts = 0, n = 0;
	struct spent s;

	for (int i = 0; i < r->v.n; i++) {
		const struct val *v = r->v.v[i];

		n += times * distinct(x, f, v) / together(f, v);
		if (v->from != v->type)
			casts += times * distinct(x, f, v);
	}
	s = gets(x, n);
	s.ops[0][CLASS_ALU] += casts;
	return s;
}

static struct spent gets_for(const struct payer *x, const struct frag *f, const struct val *v)
{
	struct reads r = { .a = x->a };

	collect(&r, v);
	return gets_all(x, f, &r, 1);
}

static struct spent sum(struct spent a, struct spent b)
{
	return spent_sum(a, &b);
}

/* movement --------------------------------------------------------------------- */

static double index_instructions(const struct role_op *o)
{
	double n = num_instructions(o->u.move.inside);

	for (int d = 0; d < o->u.move.rank; d++)
		n += num_instructions(o->u.move.index[d].at) + DIMENSION;
	return n;
}

/* A loop over a ring's elements, one for each thread at a time. Each round is a chain from the
 * element's number to its place: nothing of the next one is begun before. */
static struct spent store_ring(const struct payer *x, const struct role_op *o)
{
	double rounds = ceil((double)o->u.move.elements / threads(x));
	double n = ROUND + index_instructions(o) + num_instructions(o->u.move.address);
	struct spent s = instructions(x, rounds * n * threads(x));

	s.lane = fmax(s.lane, rounds * (n * x->vector->chain + x->vector->latency));
	return s;
}

/* Pieces of neighbours. Of those that are copied asynchronously all are on their way before the lane
 * waits, if it does; of single elements a few go through registers at once. */
static struct spent load_threads(const struct payer *x, const struct role_op *o)
{
	double bytes = o->u.move.run * dtype_bits(o->u.move.type) / 8.0;
	double pieces = (double)o->u.move.elements / o->u.move.run, rounds = ceil(pieces / threads(x));
	double n = o->u.move.shifted ? SHIFT : o->u.move.stride.rows ? COPY : ROUND + index_instructions(o) +
		num_instructions(o->u.move.address);
	struct spent s = instructions(x, rounds * n * threads(x));

	s.lane = fmax(s.lane, accesses(x, pieces, bytes).lane);
	if (!o->u.move.stride.rows)
		s.lane = fmax(s.lane, rounds * n * x->vector->chain);
	if (o->u.move.shifted)
		s.rounds = ceil(rounds / o->u.move.together);
	else
		s.rounds = o->u.move.arrives ? 0 : bytes < BANK_BYTES ? ceil(rounds / TOGETHER) : 1;
	return s;
}

/* Out of a fragment, unrolled: pieces do not wait for each other, and those of a row differ in
 * one number. */
static struct spent store_threads(const struct payer *x, const struct role_op *o)
{
	double pieces = elements(x, o->u.move.from.frag) / (double)o->u.move.piece;
	double rows = 2.0 * o->u.move.from.frag->blocks * threads(x);
	double n = STORE + (o->u.move.piece == PIECE_EIGHT ? 4 * TRANSPOSE : 0);

	return instructions(x, pieces * n + rows * index_instructions(o));
}

static struct spent put(const struct payer *x, const struct role_op *o)
{
	double n = elements(x, o->u.put.over) / (o->u.put.pairs ? 2 : 1);

	return sum(accesses(x, n, dtype_bits(o->u.put.type) / 8.0), gets_for(x, o->u.put.over,
		o->u.put.value));
}

/* Each warp puts its rows of so many panels, two columns of 16 bits at a time. */
static struct spent put_panels(const struct payer *x, const struct role_op *o)
{
	double rows = (double)x->warps * x->program->target->frag.rows;
	double n = o->u.panels.batch * rows * (double)o->u.panels.panel_cols;

	return accesses(x, dtype_bits(o->u.panels.type) == 16 ? n / 2 : n, BANK_BYTES);
}

static struct spent fill(const struct payer *x, const struct role_op *o)
{
	double n = (double)o->u.fill.elements;

	return sum(accesses(x, n, dtype_bits(o->u.fill.type) / 8.0), instructions(x, n *
		num_instructions(o->u.fill.address)));
}

/* The first word is waited for. */
static struct spent fetch(const struct payer *x, const struct role_op *o)
{
	const struct frag *f = o->u.fetch.to;
	double bytes = o->u.fetch.words ? BANK_BYTES : dtype_bits(f->type) / 8.0;
	struct spent s = accesses(x, elements(x, f) * dtype_bits(f->type) / 8 / bytes, bytes);

	s.lane += x->vector->latency;
	return s;
}

double price_boxes(const struct payer *x, const struct role_op *o, double *issued)
{
	*issued = 0;
	if (o->what == DO_LOAD_BOXES)
		*issued = o->u.boxes.boxes.n;
	else if (o->what == DO_STORE_BOXES)
		*issued = o->u.boxes.panels;
	return *issued * (o->what == DO_STORE_BOXES && o->u.boxes.elected ? x->warps : 1);
}

/* Neighbours that a warp moves in one instruction: whole rows of 32 elements; of a fragment's
 * quad every other one, pairs, or eights. One sector more, as rows begin anywhere. */
double price_spread(const struct payer *x, const struct role_op *o)
{
	bool is_ring = o->what == DO_LOAD_THREADS || o->what == DO_STORE_RING;
	double bytes = dtype_bits(o->u.move.type) / 8.0, run;

	if (!is_ring && o->what != DO_STORE_THREADS)
		return 0;
	if (!o->u.move.rank || !num_uses(o->u.move.index[o->u.move.rank - 1].at, is_ring ?
	    VAR_COL0 : VAR_EIGHT))
		return SECTOR_BYTES / bytes;
	if (is_ring)
		run = fmin((double)o->u.move.cols, x->program->target->warp) * bytes;
	else if (o->u.move.piece == PIECE_EIGHT)
		return 1;
	else
		return SECTOR_BYTES / (4 * bytes * (double)o->u.move.piece);
	run = (ceil(run / SECTOR_BYTES) + 1) * SECTOR_BYTES / run;
	return is_ring && o->u.move.shifted ? run * SHIFTED_ASKED : run;
}

/* arithmetic ------------------------------------------------------------------- */

static struct spent map(const struct payer *x, const struct role_op *o)
{
	struct reads r = { .a = x->a };
	struct spent s;

	for (int i = 0; i < o->u.map.steps.n; i++)
		collect(&r, o->u.map.steps.v[i].value);
	s = gets_all(x, o->u.map.over, &r, 1);
	price_map(x, o, elements(x, o->u.map.over), &s);
	return s;
}

static struct spent pack(const struct payer *x, const struct role_op *o)
{
	struct spent s = gets_for(x, o->u.pack.to.frag, o->u.pack.value);

	price_pack(x, o, elements(x, o->u.pack.to.frag), &s);
	return s;
}

static struct spent sum_product(const struct payer *x, const struct role_op *o)
{
	const struct frag *f = o->u.sum_product.sum.frag;
	double depth = (double)o->u.sum_product.depth;
	struct reads r = { .a = x->a };
	struct spent s;

	collect(&r, o->u.sum_product.a);
	collect(&r, o->u.sum_product.b);
	s = gets_all(x, f, &r, depth);
	price_sum_product(x, o, elements(x, f) * depth, &s);
	return s;
}

/* Over rows, warps leave what each has found in shared memory, and all join it. */
static struct spent reduce(const struct payer *x, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	struct spent s = gets_for(x, f, o->u.reduce.value);
	double columns = f->kind == FRAG_FULL ? (double)f->cols : 4;

	price_reduce(x, o, elements(x, f), &s);
	if (o->what != DO_REDUCE || !o->u.reduce.along_rows || x->warps == 1)
		return s;
	s = sum(s, accesses(x, columns * x->warps, BANK_BYTES));
	s = sum(s, gets(x, x->warps * columns / 4 * threads(x)));
	return sum(s, cycles(2 * x->device->issue_order_latency));
}

/* synchronisation -------------------------------------------------------------- */

/* The first wait of a store finds its room free since the one before. One that waits for what
 * it has itself just issued gives the engine's latency its batches to hide behind. */
static struct spent stores_wait(const struct payer *x, const struct role_op *o)
{
	double latency = 0;

	for (int i = 0; i < x->device->nseus; i++)
		if (x->device->seu[i].kind == SEU_COPY)
			latency = fmax(latency, x->device->seu[i].latency);
	if (!x->round)
		return cycles(x->device->wait_cost);
	return cycles(fmax(x->device->wait_cost, latency / (o->u.stores.other + 1)));
}

/* Line by line in shared memory, one by one thread: each element is waited for. */
static struct spent lines(const struct payer *x, const struct role_op *o)
{
	double length = num_is_const(o->u.lines.length) ? (double)o->u.lines.length->k : LINE_LENGTH;
	double rounds = ceil((double)o->u.lines.n / threads(x));
	struct spent s = accesses(x, (double)o->u.lines.n * length * (o->u.lines.running ? 2 : 1),
		BANK_BYTES);

	s.lane = fmax(s.lane, rounds * length * (ROUND * x->vector->chain + x->vector->latency));
	return s;
}

struct spent price_op(const struct payer *x, const struct role_op *o)
{
	const struct vdevice *d = x->device;

	switch (o->what) {
	case DO_WAIT:
		return cycles(o->wait == NONE ? d->wait_cost : 0);
	case DO_WAIT_LAST:
		return cycles(d->wait_cost * x->program->flags.v[o->u.flag.flag].depth);
	case DO_GROUPS_WAIT:
		return cycles(d->drain_cost);
	case DO_STORES_WAIT:
		return stores_wait(x, o);
	case DO_ARRIVE: case DO_RELEASE:
		return cycles(d->tell_cost);
	case DO_WARP_SYNC:
		return cycles(d->warp_cost);
	case DO_LANE_SYNC:
		return cycles(d->issue_order_latency);
	case DO_FENCE:
		return cycles(d->fence_cost);
	case DO_LOAD_THREADS:
		return load_threads(x, o);
	case DO_STORE_RING:
		return store_ring(x, o);
	case DO_STORE_THREADS:
		return store_threads(x, o);
	case DO_PUT:
		return put(x, o);
	case DO_PUT_PANELS:
		return put_panels(x, o);
	case DO_FILL:
		return fill(x, o);
	case DO_FETCH:
		return fetch(x, o);
	case DO_MAP:
		return map(x, o);
	case DO_PACK:
		return pack(x, o);
	case DO_SUM_PRODUCT:
		return sum_product(x, o);
	case DO_REDUCE: case DO_SCAN:
		return reduce(x, o);
	case DO_LINES:
		return lines(x, o);
	/* the unit's work: boxes are counted, products are the sTask's own */
	case DO_LOAD_BOXES: case DO_STORE_BOXES: case DO_PRODUCT:
	/* part of what issuing a product or a copy costs */
	case DO_GROUPS_FENCE: case DO_GROUPS_COMMIT: case DO_STORES_COMMIT:
	/* moves and constants that the compiler puts where they are used */
	case DO_INIT: case DO_KEEP: case DO_PIN: case DO_OPAQUE: case DO_FRAGMENT:
	/* bookkeeping, in tile_overhead */
	case DO_BLOCK: case DO_TASK: case DO_TILES: case DO_LOOP: case DO_EACH: case DO_IF:
	case DO_BREAK: case DO_CONTINUE: case DO_AT: case DO_LANE: case DO_REGISTERS: case DO_LEAVE:
	case DO_COUNT_TILES: case DO_LET: case DO_SET: case DO_ADVANCE: case DO_SLOT:
	/* stamps: what they cost is measured, not predicted */
	case DO_STAMP: case DO_STAMPS_BEGIN: case DO_STAMPS_TILE: case DO_STAMPS_END:
	case DO_WATCH: case DO_WATCH_ENDS: case DO_COUNT:
		break;
	}
	return (struct spent){ 0 };
}
