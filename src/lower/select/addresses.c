/* Addresses of elements in shared memory, and in global memory where threads store, or load. They are the same in all
 * tiles, or in all iterations, but for the slot or the coordinates of the tile, so compilers compute them before
 * the loop, and keep them. Those of a swizzled ring, or of elements that several axes number, differ by no
 * constant from each other: each takes a register. So do the parts of a swizzled row that threads fetch operands
 * from. Where a lane does not have so many, compilers spill them: so each sTask that has some computes the coordinates
 * of the thread again, and what is made of them (DO_OPAQUE). In a lane that
 * has no registers to spare, sTasks that only compare coordinates do so, too, but without a mask: compilers keep more
 * for comparisons with what is behind one. */
#include "lower/select/lowering.h"
#include "role/live.h"
#include "role/operands.h"

struct addresses {
	const struct frag *over;	/* of the operation at hand */
	int64_t n;
};

/* How many addresses the thread has that differ by no constants. */
static int64_t count_addresses(const struct frag *f, const struct num *at, bool together)
{
	bool rows = f->kind == FRAG_FULL || f->kind == FRAG_ROW, cols = f->kind == FRAG_FULL || f->kind == FRAG_COL;
	struct { enum var var; int64_t n; } along[] = { { VAR_RB, rows ? f->blocks : 1 },
		{ VAR_H, rows ? f->layout->halves : 1 }, { VAR_COL_GROUP, cols ? frag_groups(f) : 1 },
		{ VAR_E, cols && !together ? f->layout->pair : 1 } };
	int64_t n = 1, by;

	for (int i = 0; i < LEN(along); i++)
		if (!num_slope(at, along[i].var, &by))
			n *= along[i].n;
	return n;
}

/* How many different numbers the elements of a thread have. */
static int64_t count_numbers(const struct frag *f, const struct num *x)
{
	bool rows = f->kind == FRAG_FULL || f->kind == FRAG_ROW, cols = f->kind == FRAG_FULL || f->kind == FRAG_COL;
	int64_t n = 1;

	n *= rows && num_uses(x, VAR_RB) ? f->blocks : 1;
	n *= rows && num_uses(x, VAR_H) ? f->layout->halves : 1;
	n *= cols && num_uses(x, VAR_COL_GROUP) ? frag_groups(f) : 1;
	return n * (cols && num_uses(x, VAR_E) ? f->layout->pair : 1);
}

static void count_in_value(struct addresses *x, const struct val *v)
{
	if (v->kind == VAL_SHARED)
		x->n += count_addresses(x->over, v->num, v->together > 1);
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		count_in_value(x, v->arg[i]);
}

static void count_operand(void *ctx, const struct operand *o)
{
	struct addresses *x = ctx;

	if (o->kind == OPERAND_VALUE)
		count_in_value(x, o->value);
	else if (o->kind == OPERAND_ADDRESS || o->kind == OPERAND_OWN_ADDRESS)
		x->n += count_addresses(x->over, o->num, false);
}

/* Registers for the addresses in global memory of the thread's elements. Although they differ by constants, the
 * index of an iteration is added to all of them, and compilers compute the others' sums before the loop: two
 * registers for each access. */
static int64_t global_addresses(const struct role_op *store)
{
	const struct frag *f = store->u.move.from.frag;
	bool rows = f->kind == FRAG_FULL || f->kind == FRAG_ROW, cols = f->kind == FRAG_FULL || f->kind == FRAG_COL;
	int64_t n = rows ? (int64_t)f->blocks * f->layout->halves : 1;

	return 2 * n * (cols ? ceil_div((int64_t)frag_groups(f) * f->layout->pair, store->u.move.width) : 1);
}

/* Registers for the accesses of a thread that loads, if they are unrolled: for each, the offset in the ring, and what
 * the thread's number adds to each index. Compilers do not know that the number is not negative, so these do not
 * differ by constants where the number is divided, unless a mask says so, as it does where it is computed again. */
static int64_t load_addresses(const struct role_op *load, int64_t threads)
{
	const struct role_index *x = load->u.move.index;
	int64_t n = 1;

	if (load->u.move.dma)	/* the offset in the tensor alone */
		return role_dma_copies(load, threads);
	if (load->u.move.stride.rows || !role_unrolls_accesses(load, threads))
		return 0;
	for (int d = 0; d < load->u.move.rank; d++)
		n += x[d].value || num_uses(x[d].at, VAR_ROW0) || num_uses(x[d].at, VAR_COL0);
	return n * (load->u.move.elements / load->u.move.run / threads);
}

/* The fragment whose elements the operation goes through; NULL: none. */
static const struct frag *goes_over(const struct role_op *o)
{
	const struct role_operand *p = role_op_info[o->what].operands;

	while (p->kind != OPERAND_OVER && p->kind != OPERAND_END)
		p++;
	return p->kind == OPERAND_OVER ? *(const struct frag *const *)role_field(o, p) : NULL;
}

/* Of all operations that do so. */
static int64_t addresses_in(const struct role_body *b, int64_t threads)
{
	struct addresses x = { 0 };

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (role_is_region(o->what))
			x.n += addresses_in(&o->u.region.body, threads) + addresses_in(&o->u.region.other, threads);
		if (o->what == DO_LOAD_THREADS || o->what == DO_LOAD_WORDS)
			x.n += load_addresses(o, threads);
		if (o->what == DO_STORE_THREADS)
			x.n += global_addresses(o);
		x.over = goes_over(o);
		if (x.over)
			role_visit(o, count_operand, &x);
	}
	return x.n;
}

static bool fetches_operands(const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_FETCH || (role_is_region(o->what) &&
			(fetches_operands(&o->u.region.body) || fetches_operands(&o->u.region.other))))
			return true;
	}
	return false;
}

static bool is_hidden(const struct role_op *task)
{
	for (int i = 0; i < task->u.region.body.v.n; i++)
		if (task->u.region.body.v.v[i]->what == DO_OPAQUE)
			return true;
	return false;
}

/* Addresses of all sTasks of the lane that do not compute them again. */
static int64_t kept_addresses(const struct role_body *b, int64_t threads)
{
	int64_t n = 0;

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_TASK)
			n += is_hidden(o) ? 0 : addresses_in(&o->u.region.body, threads);
		else if (role_is_region(o->what))
			n += kept_addresses(&o->u.region.body, threads) + kept_addresses(&o->u.region.other, threads);
	}
	return n;
}

static void find_coordinate(void *ctx, const struct operand *o)
{
	static const enum var coordinates[] = { VAR_ROW0, VAR_COL0 };
	bool *uses = ctx;

	for (int i = 0; i < LEN(coordinates); i++)
		*uses |= o->kind == OPERAND_VALUE ? value_uses(o->value, coordinates[i]) :
			operand_is_number(o->kind) && num_uses(o->num, coordinates[i]);
}

/* Does an operation use the thread's coordinates in a fragment? */
static bool uses_coordinates(const struct role_body *b)
{
	bool uses = false;

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		role_visit(o, find_coordinate, &uses);
		uses |= role_is_region(o->what) &&
			(uses_coordinates(&o->u.region.body) || uses_coordinates(&o->u.region.other));
	}
	return uses;
}

/* What sTasks compute again. */
struct hiding {
	struct lowering *c;
	int64_t threads;
	int64_t spare;			/* registers that values leave */
	bool tasks;			/* sTasks do so that have addresses */
	bool coordinates;		/* also those that only compare coordinates */
	int again;			/* operations that do so, too, by now */
};

/* A part of addresses that differs from element to element by no constant, as a quotient does, or what a swizzle
 * gives. */
struct part {
	const struct num *of;
	const struct role_op *op;	/* the last one */
	bool shared;			/* there are several */
	int64_t values;			/* a number that is a value, or the address of one: elements; else 0 */
};

struct parts {
	struct arena *a;
	const struct role_op *op;	/* at hand */
	const struct frag *over;
	VEC(struct part) v;
};

static void note_part(struct parts *x, const struct num *of, int64_t values)
{
	for (int i = 0; i < x->v.n; i++)
		if (num_alike(x->v.v[i].of, of)) {
			x->v.v[i].shared |= x->v.v[i].op != x->op;
			x->v.v[i].op = x->op;
			return;
		}
	VEC_PUSH(x->a, &x->v, ((struct part){ .of = of, .op = x->op, .values = values }));
}

static void find_parts(struct parts *x, const struct num *of)
{
	bool sums = of->op == NUM_ADD || of->op == NUM_SUB || of->op == NUM_MUL;

	if (!sums && (num_uses(of, VAR_ROW0) || num_uses(of, VAR_COL0)) && count_addresses(x->over, of, false) > 1)
		note_part(x, of, 0);
	else
		for (int i = 0; i < 3; i++)
			if ((const struct num *[]){ of->a, of->b, of->c }[i])
				find_parts(x, (const struct num *[]){ of->a, of->b, of->c }[i]);
}

static void find_parts_of_value(struct parts *x, const struct val *v)
{
	if (v->kind == VAL_SHARED) {
		find_parts(x, v->num);
		note_part(x, v->num, count_numbers(x->over, v->num));
	}
	if (v->kind == VAL_NUM && (num_uses(v->num, VAR_ROW0) || num_uses(v->num, VAR_COL0)))
		note_part(x, v->num, count_numbers(x->over, v->num));
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		find_parts_of_value(x, v->arg[i]);
}

static void find_parts_of_operand(void *ctx, const struct operand *o)
{
	struct parts *x = ctx;

	if (o->kind == OPERAND_VALUE)
		find_parts_of_value(x, o->value);
	else if (o->kind == OPERAND_ADDRESS || o->kind == OPERAND_OWN_ADDRESS)
		find_parts(x, o->num);
}

/* Compilers keep what two operations of an sTask compute or read alike from one to the other, and compute the second
 * one's addresses from it ahead of time. Is there something like that, and are there no registers for the addresses?
 * Values that are read alike are kept in what registers there are, also those of the reserve: are they more than
 * that? addresses: all of the sTask. */
static bool shares_too_much(const struct hiding *x, const struct role_body *b, int64_t addresses)
{
	struct parts p = { .a = x->c->a };
	int64_t values = 0;
	bool shares = false;

	for (int i = 0; i < b->v.n; i++) {
		p.op = b->v.v[i];
		p.over = goes_over(p.op);
		if (p.over)
			role_visit(p.op, find_parts_of_operand, &p);
	}
	for (int i = 0; i < p.v.n; i++) {
		shares |= p.v.v[i].shared && !p.v.v[i].values;
		values += p.v.v[i].shared ? p.v.v[i].values : 0;
	}
	return (shares && addresses > x->spare) ||
		values > x->spare + x->c->plan->device->reserved_registers;
}

static void find_shared(void *ctx, const struct operand *o)
{
	bool *reads = ctx;

	*reads |= o->kind == OPERAND_VALUE && role_reads_shared(o->value);
}

/* The operation itself computes the coordinates again. Compilers begin with its reads of shared memory while they
 * compute what is before it, for which there are no registers either, but not before the warp is synchronised. */
static void hide_in_op(struct hiding *x, struct role_op *o)
{
	struct role_op *ops[] = { o };
	struct role_body *outer, body = { .v = { .v = ops, .n = 1 } };
	bool reads = false;

	if (!goes_over(o) || !uses_coordinates(&body)) {
		append_op(x->c, o);
		return;
	}
	outer = enter_body(x->c, &add_op(x->c, DO_BLOCK)->u.region.body);
	role_visit(o, find_shared, &reads);
	if (reads)
		add_op(x->c, DO_WARP_SYNC)->why = "no read before it";
	add_op(x->c, DO_OPAQUE)->u.opaque.again = ++x->again;
	append_op(x->c, o);
	leave_body(x->c, outer);
}

/* How often the sTask stands in the tree. */
static int copies_of(const struct role_body *b, int task)
{
	int n = 0;

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_TASK)
			n += o->task == task;
		else if (role_is_region(o->what))
			n += copies_of(&o->u.region.body, task) + copies_of(&o->u.region.other, task);
	}
	return n;
}

/* ptxas finds that the addresses of several copies of an sTask are alike, and keeps them from one to the next. */
static void hide_from_copies(struct hiding *x, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++)
		if (b->v.v[i]->what == DO_OPAQUE && !b->v.v[i]->u.opaque.unmasked)
			b->v.v[i]->u.opaque.again = ++x->again;
}

static void hide_in_task(struct hiding *x, struct role_op *task)
{
	struct role_body *b = &task->u.region.body, old = *b;
	int64_t addresses = addresses_in(b, x->threads);
	bool has_addresses = addresses || fetches_operands(b);
	bool hides = x->tasks && !is_hidden(task) && (has_addresses || (x->coordinates && uses_coordinates(b)));
	bool each = shares_too_much(x, b, addresses);
	bool repeats = addresses > x->spare && copies_of(&x->c->role->body, task->task) > 1;
	struct role_body *outer;

	if (!hides && !each && !repeats)
		return;
	*b = (struct role_body){ 0 };
	outer = enter_body(x->c, b);
	for (int i = 0; i < old.v.n; i++) {
		if (each)
			hide_in_op(x, old.v.v[i]);
		else
			append_op(x->c, old.v.v[i]);
		if (hides && old.v.v[i]->what == DO_AT)
			add_op(x->c, DO_OPAQUE)->u.opaque.unmasked = !has_addresses;
	}
	leave_body(x->c, outer);
	if (repeats)
		hide_from_copies(x, b);
}

/* The numbers of a block's tiles, too, are there during all of its loops, but used once a tile: three registers. Two of
 * them can be read again. */
enum { TILE_WORDS = 3 };

static void hide_tiles(const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++)
		if (b->v.v[i]->what == DO_TILES && !b->v.v[i]->u.region.taken)
			b->v.v[i]->u.region.hidden = true;
}

static void hide_in_body(struct hiding *x, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];

		if (o->what == DO_TASK)
			hide_in_task(x, o);
		else if (role_is_region(o->what)) {
			hide_in_body(x, &o->u.region.body);
			hide_in_body(x, &o->u.region.other);
		}
	}
}

void hide_addresses(struct lowering *c)
{
	struct hiding x = { .c = c, .threads = (int64_t)c->role->warps * c->k->target->warp };
	int64_t kept = kept_addresses(&c->role->body, x.threads) + role_most_fetch_words(c->role, c->a);
	int64_t needed = c->role->words + role_slot_words(c->role, c->a) + c->plan->device->reserved_registers;

	x.spare = lane_usable_registers(c->lane) - needed;
	x.tasks = kept > 0 && kept > x.spare;
	x.coordinates = x.tasks && x.spare < TILE_WORDS;
	hide_in_body(&x, &c->role->body);
	if (x.coordinates)
		hide_tiles(&c->role->body);
}
