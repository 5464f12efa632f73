/* The cost model: cycles of work on a unit (device_cost), energy (device_effort), and the clock that the limit
 * of power allows (device_clock). Costs of product, vector and copy units are computed from the rates of the
 * device file; each function states its formula. */
#include "device/device.h"

#include <math.h>

/* The warps (waves) that a lane needs to use all of an EU: SMs and CUs consist of four quarters, each with its own
 * issue, vector and matrix unit, and warp w runs in quarter w mod 4 (CUDA programming guide, compute
 * capability 8 and 9; CDNA 3 ISA). */
enum { QUARTERS = 4 };

/* A line of L2, and the least that is read of one. */
#define LINE_BYTES 128.0
#define SECTOR_BYTES 32.0

int64_t device_launched_registers(const struct vdevice *d, int64_t threads)
{
	int64_t four = QUARTERS * (int64_t)d->warp, all = (threads + four - 1) / four * four;

	return all ? d->registers / all / d->register_step * d->register_step : 0;
}

static bool is_valid_type(enum dtype t)
{
	return (int)t >= 0 && (int)t < RATE_TYPES;
}

/* Matrix instructions name the type of each operand only where both are floats of 8 bits, or both integers (PTX ISA, wgmma
 * and mma.sync; CDNA 3 ISA, MFMA: floats alone); all others read both operands as one type. */
static bool is_float_8(enum dtype t)
{
	return t == DT_E4M3 || t == DT_E5M2;
}
static bool is_integer_8(enum dtype t)
{
	return t == DT_I8 || t == DT_U8;
}

static bool can_multiply(const struct seu *s, const struct work *w)
{
	bool can = is_valid_type(w->type) && s->flops[w->type] > 0;

	for (int i = 0; i < LEN(w->operand) && w->mixed; i++)
		can &= s->flops[w->operand[i]] > 0;
	if (w->mixed)
		can &= (is_float_8(w->operand[0]) && is_float_8(w->operand[1])) ||
			(is_integer_8(w->operand[0]) && is_integer_8(w->operand[1]));
	return can;
}

bool device_can(const struct vdevice *d, int seu, const struct work *w)
{
	if (seu < 0 || seu >= d->nseus)
		return false;
	switch (d->seu[seu].kind) {
	case SEU_COPY:
		return w->kind == WORK_LOAD || w->kind == WORK_STORE;
	case SEU_MATRIX:
		return w->kind == WORK_MMA && can_multiply(&d->seu[seu], w);
	case SEU_VECTOR:
		return true;
	case SEU_KINDS:
		break;
	}
	return false;
}

/* The kind of unit that executes each kind of work by default. ORDER work_kind */
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

static double round_up_real(double x, int64_t step)
{
	return step > 1 ? ceil(x / (double)step) * (double)step : x;
}

/* The number of EUs of a cluster that each load a part of the bytes, for all of them. */
static double sharers(const struct work *w)
{
	return w->sharers > 1 ? w->sharers : 1;
}

/* Bytes a cycle that an addition in memory can bring, of which the device's rate is *of_device: a read, a sum and a
 * write in L2, and what other EUs add to the same bytes waits for it. */
static double add_rate(const struct vdevice *d, const struct work *w, double *of_device)
{
	*of_device = d->l2_add_rate;
	if (w->region > 0 && d->l2_add_interval > 0)
		*of_device = fmin(*of_device, w->region / d->l2_add_interval);
	return d->l2_add_eu_rate;
}

/* A bus that has read takes a while before it can write, and the other way round. If requests come in any order, a byte is behind one
 * of the other kind with probability 2 w (1 - w). */
double device_switching(const struct vdevice *d, double written)
{
	return 1 + d->global_switching * 2 * written * (1 - written);
}

/* Cycles of the EU's share of L2 and of device memory. L2: bytes / min(rate of one EU or of its threads, the EU's
 * share of the device's rate, which is less where EUs of clusters load at different positions of a loop). Device memory:
 * bytes * unique_share / its share of that rate, which is in seconds and less where reads and writes mix.
 * The two are pipelined, so the slower one counts. Bytes that EUs of a cluster share leave L2 once for all of
 * them, but each EU receives all of them. Sums that device memory has are read there and written back. */
static void memory_cycles(const struct vdevice *d, const struct work *w, int warps, struct pace pace, struct cost *c)
{
	double longer = d->clock_hz / pace.clock_hz, of_device = w->apart ? fmin(d->l2_apart_rate, d->l2_rate) : d->l2_rate;
	double own = w->by_threads ? fmin(d->l2_thread_rate, warps * d->l2_warp_rate) : d->l2_eu_rate;

	if (w->adds)
		own = fmin(own, add_rate(d, w, &of_device));
	double l2 = fmin(own, sharers(w) * of_device * longer / pace.active);
	double global = d->global_rate * (1 + pace.regained) / device_switching(d, pace.written) / pace.clock_hz / pace.active;
	double bytes = positive(w->global_bytes);

	c->l2 = bytes / l2;
	c->global = (w->adds ? 2 : 1) * bytes * fmin(positive(w->unique_share) * fmax(w->times, 1), 1) / global;
	c->memory = fmax(c->l2, c->global);
}

/* The larger of flops / (rate * efficiency) and operand bytes / rate of shared memory: m64n64k16 of bf16 reads 4 KiB in
 * 32 cycles, which is all that an SM's shared memory delivers. `efficiency` stands for gaps between instructions, which
 * do not slow the reads. Fewer than four warps use fewer than the four units.
 *
 * Flops: 2 m n k, with the extents rounded up to those of an instruction: a part of an instruction costs as much as all
 * of it. Bytes: each instruction of an asynchronous unit reads min_m rows of the first operand, if that is not in
 * registers, and all of the second, so a product of more rows reads the second once for each min_m of them (wgmma, PTX
 * ISA: the second operand is always in shared memory), and parts of a lane that divide columns each read the first. A
 * synchronous unit has both in registers; loading them there is w->shared_bytes. Each warp of a part has rows of its own
 * there, so those of all are padded. A sparse instruction contracts twice as much in the same time, of which it reads half
 * of the first operand and all of the second. A product of two types has the rate of the slower one. */
static void matrix_cost(const struct vdevice *d, const struct seu *s, const struct work *w, int warps, struct cost *c)
{
	int64_t groups = s->async || !w->parts ? 1 : max_i64(warps / w->parts, 1);
	double m = round_up_real(positive((double)w->m), s->min_m * groups), n = round_up_real(positive((double)w->n), s->min_n);
	double k = round_up_real(positive((double)w->k) * dtype_bits(w->type) / 8, s->min_k);	/* bytes */
	double kept = w->sparse ? 0.5 : 1;	/* of what is contracted */
	double flops = fmax(2 * m * n * k * kept * 8 / dtype_bits(w->type), positive(w->flops));
	double rate = w->mixed ? fmin(s->flops[w->operand[0]], s->flops[w->operand[1]]) : s->flops[w->type];
	double own = flops / (rate * s->efficiency), bytes = positive(w->shared_bytes);

	if (s->async)
		bytes = fmax((w->a_in_registers ? 0 : m * k * kept * (double)max_i64(w->parts, 1)) +
			n * k * m / (double)max_i64(s->min_m, 1), bytes);
	c->busy = fmax(own, bytes / d->shared_rate);
	c->shared = c->busy - own;
	c->alone = c->busy * fmax(1, QUARTERS / (double)warps);
}

/* Cycles of the vector unit: the larger of the busiest pipe and the issue slots with the sequences. An operation that
 * is a sequence of instructions has a rate in the device file that includes its issue slots (a reduction: one operation
 * per element, and its share of the shuffles at the end of the row), and it overlaps with nothing else of the same
 * lane. The other classes share the issue slots, and each is limited by its own pipe. */
static double vector_cycles(const struct seu *s, const double *ops)
{
	double pipe = 0, issued = 0, sequences = 0;

	for (int i = 0; i < CLASS_COUNT; i++) {
		double n = positive(ops[i]);

		if (!(s->ops[i] > 0))
			continue;		/* FREE costs nothing; MMA is counted as FMA */
		if (i == CLASS_DIV || i == CLASS_REDUCE || i == CLASS_SCAN) {
			sequences += n / s->ops[i];
		} else {
			pipe = fmax(pipe, n / s->ops[i]);
			issued += n / s->slots;
		}
	}
	return fmax(pipe, issued + sequences);
}

/* One warp per quarter cannot fill every slot, since instructions depend on each other: it draws lane_share of them.
 * A lane of eight warps draws twice that, up to all; one of two warps draws half. */
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

/* A vector unit can execute any work: a product as multiply-adds, a load or store as a move per element. Its traffic
 * with shared memory adds to that, since its own instructions wait for it. */
static void vector_cost(const struct vdevice *d, const struct seu *s, const struct work *w, int warps, struct cost *c)
{
	double ops[CLASS_COUNT];

	for (int i = 0; i < CLASS_COUNT; i++)
		ops[i] = w->ops[i];
	if (w->kind == WORK_MMA)
		ops[CLASS_FMA] = positive(ops[CLASS_FMA]) + fmax(positive(w->flops) / 2,
			positive((double)w->m * (double)w->n * (double)w->k) * (w->sparse ? 0.5 : 1));
	if (w->kind == WORK_LOAD || w->kind == WORK_STORE)
		ops[CLASS_MOVE] = fmax(positive(ops[CLASS_MOVE]), positive(w->global_bytes) * 8 / dtype_bits(w->type));
	c->busy = vector_cycles(s, ops) + positive(w->shared_bytes) / d->shared_rate;
	c->alone = vector_alone(s, c->busy, warps);
}

/* The engine starts a box every box_interval cycles, whatever its size; the time for the bytes is that of memory
 * (memory_cycles). One thread issues all boxes of a copy, so the lane continues after it has issued the last. The lane
 * itself first writes the tile of a store from registers to shared memory. (Without an engine the lane is occupied all
 * the time.) Of the boxes that a cluster shares, each EU loads its part. That boxes which are added take longer
 * (add_interval) counts with a kernel alone: without one it is not known whether there are any, or threads add. */
static void copy_cost(const struct vdevice *d, const struct seu *s, const struct work *w, struct cost *c)
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
	/* the exact extents: the padding of an instruction is zeros, which take almost no energy */
	if (w->kind == WORK_MMA && s->kind == SEU_MATRIX)
		e.of[EFFORT_PRODUCT] = 2.0 * (double)(w->m * w->n * w->k) * dtype_bits(w->type) / (w->sparse ? 32 : 16);
	if (w->kind == WORK_LOAD || w->kind == WORK_STORE) {
		e.of[EFFORT_L2] = bytes;	/* of shared bytes, too: each EU receives all of them */
		/* of what threads copy, complete sectors are counted already */
		if (w->kind == WORK_LOAD && !w->by_threads && w->row_bytes > 0 && w->row_bytes < LINE_BYTES)
			e.of[EFFORT_L2] *= 1 + d->l2_row_energy * (LINE_BYTES / fmax(w->row_bytes, SECTOR_BYTES) - 1);
		e.of[EFFORT_GLOBAL] = bytes * share;
	}
	return e;
}

struct cost device_cost(const struct vdevice *d, int seu, const struct work *w, int warps, struct pace pace)
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
	/* A load is complete when its last byte has arrived. EUs that share bytes request them at about the same time
	 * (they run the same loop) and wait for the same line, so if any part comes from device memory its latency
	 * counts, not the mean. A store is complete for its lane when its source may be overwritten: no latency of
	 * memory. */
	c.latency = s->latency;
	if (w->kind == WORK_LOAD && w->global_bytes > 0)
		c.latency += w->unique_share > 0 ? d->global_latency : d->l2_latency;
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

/* Joules of all kinds together, at the full clock. */
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

/* At clock x f, where f is the device's clock, the work takes x E joules and C / (x f) + W seconds. If P is the limit
 * of power minus the idle power, the highest clock solves x E = P (C / (x f) + W). (Voltage rises with the clock
 * and energy with its square; in the range that the limit leaves, a linear law fits the measurements better.) */
double device_clock(const struct vdevice *d, const struct effort *e, double cycles, double waits, double *watts)
{
	double left = d->power_limit - d->power_idle, all = energy(d, e), seconds;
	double work = fmax(cycles, 1) / d->clock_hz, x = device_full_clock(d, e) / d->clock_hz;

	if (d->power_limit > 0 && x * all > left * (work / x + waits))
		x = (left * waits + sqrt(left * waits * left * waits + 4 * all * left * work)) / (2 * all);
	seconds = work / x + waits;
	*watts = d->power_limit > 0 ? d->power_idle + x * all / seconds : 0;
	return x * d->clock_hz;
}
