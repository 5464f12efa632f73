#include "device/device.h"

#include <math.h>

/* Warps (waves) of a lane that reaches every part of an EU: SMs and CUs are four
 * quarters, each with its own issue, vector and matrix unit, and warp w lives in
 * quarter w mod 4 (CUDA programming guide, compute capability 8 and 9; CDNA 3 ISA). */
enum { QUARTERS = 4 };

static bool is_valid_type(enum dtype t)
{
	return (int)t >= 0 && (int)t < RATE_TYPES;
}

bool device_can(const struct vdevice *d, int seu, const struct work *w)
{
	if (seu < 0 || seu >= d->nseus)
		return false;
	switch (d->seu[seu].kind) {
	case SEU_COPY:
		return w->kind == WORK_LOAD || w->kind == WORK_STORE;
	case SEU_MATRIX:
		return w->kind == WORK_MMA && is_valid_type(w->type) &&
			d->seu[seu].flops[w->type] > 0;
	case SEU_VECTOR:
		return true;
	case SEU_KINDS:
		break;
	}
	return false;
}

/* ORDER work_kind */
static const enum seu_kind home[] = { SEU_COPY, SEU_COPY, SEU_MATRIX, SEU_VECTOR };
_Static_assert(LEN(home) == WORK_COMPUTE + 1, "a home for every kind of work");

int device_seu_for(const struct vdevice *d, const struct work *w)
{
	int slow = NONE;

	for (int i = 0; i < d->nseus; i++) {
		if (!device_can(d, i, w))
			continue;
		if (d->seu[i].kind == home[w->kind])
			return i;
		if (slow == NONE)
			slow = i;
	}
	return slow;
}

/* A cost is never negative and never NaN, whatever the work says. */
static double positive(double x)
{
	return x > 0 ? x : 0;
}

static double round_up(double x, int64_t step)
{
	return step > 1 ? ceil(x / (double)step) * (double)step : x;
}

/* EUs of a cluster each bring their part of what they share. */
static double sharers(const struct work *w)
{
	return w->sharers > 1 ? w->sharers : 1;
}

/* The part of an EU's memory time that this work takes: it draws from L2 no faster
 * than one EU, or its threads, can, nor than its share when all draw; of that, what no
 * other EU has brought to L2 comes from device memory, whose rate is in seconds. The two are
 * pipelined, so the slower one counts. What EUs share leaves L2 once for all of them,
 * but each must take in all of it. */
static void memory_cycles(const struct vdevice *d, const struct work *w, int warps,
	struct pace pace, struct cost *c)
{
	double own = w->by_threads ? fmin(d->l2_thread_rate, warps * d->l2_warp_rate) : d->l2_eu_rate;
	double longer = d->clock_hz / pace.clock_hz;
	double l2 = fmin(own, sharers(w) * d->l2_rate * longer / pace.active);
	double global = d->global_rate / pace.clock_hz / pace.active;
	double bytes = positive(w->global_bytes);

	c->l2 = bytes / l2;
	c->global = bytes * fmin(positive(w->unique_share) * fmax(w->times, 1), 1) / global;
	c->memory = fmax(c->l2, c->global);
}

/* A tile is complete when its last byte is. If any EU must fetch a part of it from
 * device memory, the EUs that share the part ask for it at about the same time (they
 * run the same loop) and wait for the same line: so the longest latency counts, not
 * the mean. A store is complete, for its lane, when its source may be written again,
 * which takes no memory latency. */
static double memory_latency(const struct vdevice *d, const struct work *w)
{
	if (w->kind != WORK_LOAD || !(w->global_bytes > 0))
		return 0;
	return w->unique_share > 0 ? d->global_latency : d->l2_latency;
}

/* 2 m n k with the extents rounded up to what an instruction computes: a part of an
 * instruction costs as much as all of it. */
static double product_flops(const struct seu *s, const struct work *w)
{
	double m = round_up(positive((double)w->m), s->min_m);
	double n = round_up(positive((double)w->n), s->min_n);
	double bytes = round_up(positive((double)w->k) * dtype_bits(w->type) / 8, s->min_k);

	return fmax(2 * m * n * bytes * 8 / dtype_bits(w->type), positive(w->flops));
}

/* Bytes that the instructions of an asynchronous unit read from shared memory: each
 * takes min_m rows of the first operand, if that is not in registers, and all of the
 * second. A product of more rows reads the second once for each min_m of them.
 * (wgmma, PTX ISA: the second operand always lies in shared memory.) A synchronous
 * unit has both in registers; bringing them there is w->shared_bytes. */
static double operand_bytes(const struct seu *s, const struct work *w)
{
	double m, n, k;

	if (!s->async)
		return positive(w->shared_bytes);
	m = round_up(positive((double)w->m), s->min_m);
	n = round_up(positive((double)w->n), s->min_n);
	k = round_up(positive((double)w->k) * dtype_bits(w->type) / 8, s->min_k);
	return fmax((w->a_in_registers ? 0 : m * k) + n * k * m / (double)max_i64(s->min_m, 1),
		positive(w->shared_bytes));
}

/* A matrix unit computes at its rate or waits for shared memory to bring operands,
 * whichever is slower: m64n64k16 of bf16 reads 4 KiB in 32 cycles, which is all that
 * an SM's shared memory gives. The loss of efficiency is the unit's own (bubbles
 * between instructions), so it does not slow the reading. Fewer than four warps
 * reach fewer than the four units. */
static void matrix_cost(const struct vdevice *d, const struct seu *s, const struct work *w,
	int warps, struct cost *c)
{
	double own = product_flops(s, w) / (s->flops[w->type] * s->efficiency);

	c->busy = fmax(own, operand_bytes(s, w) / d->shared_rate);
	c->shared = c->busy - own;
	c->alone = c->busy * fmax(1, QUARTERS / (double)warps);
}

/* Is an operation of this class a sequence of instructions? Then the rate in the
 * device file already counts its issue slots (a reduction: one operation an element
 * in registers, and its part of the shuffles at the end of the row), and it overlaps
 * with nothing else of the same lane; the simple classes share the slots, each bound
 * by its own pipe. */
static bool is_sequence(int class)
{
	return class == CLASS_DIV || class == CLASS_REDUCE || class == CLASS_SCAN;
}

/* Cycles of the vector unit: the busiest pipe, or the issue slots if they run out
 * first; then its traffic with shared memory, which its own instructions wait for. */
static double vector_cycles(const struct seu *s, const double *ops)
{
	double pipe = 0, issued = 0, sequences = 0;

	for (int i = 0; i < CLASS_COUNT; i++) {
		double n = positive(ops[i]);

		if (!(s->ops[i] > 0))
			continue;		/* FREE; MMA is counted as FMA */
		if (is_sequence(i)) {
			sequences += n / s->ops[i];
		} else {
			pipe = fmax(pipe, n / s->ops[i]);
			issued += n / s->slots;
		}
	}
	return fmax(pipe, issued + sequences);
}

/* One warp in each quarter cannot fill every slot (dependent instructions wait): it draws lane_share;
 * a lane of eight warps draws twice that, up to all, one of two warps half of it. */
static double vector_alone(const struct seu *s, double busy, int warps)
{
	return busy / fmin(1, s->lane_share * warps / QUARTERS);
}

struct cost device_vector(const struct seu *s, const double *ops, int warps)
{
	struct cost c = { .busy = vector_cycles(s, ops) };

	c.alone = vector_alone(s, c.busy, warps);
	return c;
}

/* Anything runs here. A product without a matrix unit is its multiply-adds; a load or
 * store without a copy engine is a move for each element. One warp in each quarter
 * cannot fill every slot (dependent instructions wait): it draws lane_share; a lane
 * of eight warps draws twice that, up to all, one of two warps half of it. */
static void vector_cost(const struct vdevice *d, const struct seu *s, const struct work *w,
	int warps, struct cost *c)
{
	double ops[CLASS_COUNT];

	for (int i = 0; i < CLASS_COUNT; i++)
		ops[i] = w->ops[i];
	if (w->kind == WORK_MMA)
		ops[CLASS_FMA] = positive(ops[CLASS_FMA]) + fmax(positive(w->flops) / 2,
			positive((double)w->m * (double)w->n * (double)w->k));
	if (w->kind == WORK_LOAD || w->kind == WORK_STORE)
		ops[CLASS_MOVE] = fmax(positive(ops[CLASS_MOVE]),
			positive(w->global_bytes) * 8 / dtype_bits(w->type));
	c->busy = vector_cycles(s, ops) + positive(w->shared_bytes) / d->shared_rate;
	c->alone = vector_alone(s, c->busy, warps);
}

/* The engine starts a box every box_interval, whatever its size; the bytes are the
 * memory's time. One thread issues all boxes of a piece, so the lane goes on only
 * when it has issued the last. A store's tile comes from registers: the lane itself
 * writes it to shared memory first. (Without an engine the lane stays for all of it.)
 * Of a shared load's boxes each EU brings some, or a part of each. */
static void copy_cost(const struct vdevice *d, const struct seu *s, const struct work *w,
	struct cost *c)
{
	double bytes = positive(w->global_bytes) / sharers(w);
	double boxes = fmax(ceil(bytes / s->box_bytes), ceil(positive(w->boxes) / sharers(w)));

	c->busy = boxes * s->box_interval;
	c->alone = c->busy;
	if (s->async)
		c->issue += fmax(boxes - 1, 0) * s->box_interval;
	if (s->async && w->kind == WORK_STORE)
		c->issue += positive(w->shared_bytes) / d->shared_rate;
}

struct effort device_effort(const struct vdevice *d, int seu, const struct work *w)
{
	const struct seu *s = &d->seu[seu];
	struct effort e = { 0 };
	double share = fmin(positive(w->unique_share), 1), bytes = positive(w->global_bytes);

	for (int i = 0; i < CLASS_COUNT; i++)
		e.of[EFFORT_VECTOR] += positive(w->ops[i]);
	/* what an instruction is filled up with is zeros, which draw next to nothing */
	if (w->kind == WORK_MMA && s->kind == SEU_MATRIX)
		e.of[EFFORT_PRODUCT] = 2.0 * (double)(w->m * w->n * w->k) * dtype_bits(w->type) / 16;
	if (w->kind == WORK_LOAD || w->kind == WORK_STORE) {
		e.of[EFFORT_L2] = bytes;	/* also of what EUs share: each takes all of it in */
		e.of[EFFORT_GLOBAL] = bytes * share;
	}
	return e;
}

struct cost device_cost(const struct vdevice *d, int seu, const struct work *w, int warps,
	struct pace pace)
{
	const struct seu *s;
	struct cost c = { 0 };

	if (!device_can(d, seu, w))
		BUG("sEU %d cannot do work of kind %d", seu, (int)w->kind);
	if (!is_valid_type(w->type))
		BUG("work on elements of type %d", (int)w->type);
	s = &d->seu[seu];
	warps = warps < 1 ? 1 : warps;
	pace.active = pace.active < 1 ? 1 : pace.active;
	c.issue = s->issue;
	memory_cycles(d, w, warps, pace, &c);
	c.latency = s->latency + memory_latency(d, w);
	switch (s->kind) {
	case SEU_COPY: copy_cost(d, s, w, &c); break;
	case SEU_MATRIX: matrix_cost(d, s, w, warps, &c); break;
	case SEU_VECTOR: vector_cost(d, s, w, warps, &c); break;
	case SEU_KINDS: BUG("sEU '%s' has no kind", s->name);
	}
	return c;
}

/* ---- power ------------------------------------------------------------------------------- */

/* ORDER effort_kind */
const char *const effort_names[] = { "product", "vector", "l2", "global", "eu" };
_Static_assert(LEN(effort_names) == EFFORT_KINDS, "a name for every kind");

struct effort device_energy(const struct vdevice *d, const struct effort *e, double clock_hz)
{
	struct effort joules;

	for (int i = 0; i < EFFORT_KINDS; i++)
		joules.of[i] = positive(e->of[i]) * d->energy[i] * 1e-12 * clock_hz / d->clock_hz;
	return joules;
}

/* Joules of all work at the full clock. */
static double energy(const struct vdevice *d, const struct effort *e)
{
	struct effort joules = device_energy(d, e, d->clock_hz);
	double sum = 0;

	for (int i = 0; i < EFFORT_KINDS; i++)
		sum += joules.of[i];
	return sum;
}

double device_full_clock(const struct vdevice *d, const struct effort *e)
{
	double clock = d->clock_hz;

	for (int i = 0; i < d->nseus && e->of[EFFORT_PRODUCT] > 0; i++)
		if (d->seu[i].kind == SEU_MATRIX)
			clock = fmin(clock, d->seu[i].clock_hz);
	return clock;
}

/* At clock x of the highest, the work takes x E and lasts C / (x f) + W: where that draws all that is
 * left beside the idle power P, x E = P (C / (x f) + W). (Voltage goes with the clock, energy with its
 * square; over the range that power leaves, one power less fits what was measured.) */
double device_clock(const struct vdevice *d, const struct effort *e, double cycles, double waits,
	double *watts)
{
	double left = d->power_limit - d->power_idle, all = energy(d, e), seconds;
	double work = fmax(cycles, 1) / d->clock_hz, x = device_full_clock(d, e) / d->clock_hz;

	if (d->power_limit > 0 && x * all > left * (work / x + waits))
		x = (left * waits + sqrt(left * waits * left * waits + 4 * all * left * work)) / (2 * all);
	seconds = work / x + waits;
	*watts = d->power_limit > 0 ? d->power_idle + x * all / seconds : 0;
	return x * d->clock_hz;
}
