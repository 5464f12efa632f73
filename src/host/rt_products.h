/* rt_products.h - asynchronous matrix products of a warpgroup (wgmma).
 *
 * The products of a warpgroup are executed in order. From the issue of a product to its end the
 * thread's accumulators hold a NaN pattern: reading them too early shows in the result, and writing
 * them is detected. Operands are addressed by the bits of descriptors, as on the hardware (PTX ISA,
 * matrix descriptor format).
 */
#ifndef HOST_RT_PRODUCTS_H
#define HOST_RT_PRODUCTS_H

#include "host/rt_number.h"
#include "host/rt_sync.h"

enum {
	HOST_ROWS = 64, HOST_DEPTH_BYTES = 32, HOST_COLUMNS_MAX = 256,	/* of an instruction */
	HOST_DEPTH_MAX = 2 * HOST_DEPTH_BYTES,	/* of a sparse one, on bytes */
	HOST_QUEUE_MAX = 1024,		/* instructions of a warpgroup in flight */
	HOST_IN_FLIGHT = 0x7fc0dead,	/* a NaN */
};

/* Accumulators of a warpgroup while products on them are in flight. */
struct host_sums {
	int products, columns;		/* 0 products: free */
	float *in[HOST_GROUP];
	float v[HOST_ROWS][HOST_COLUMNS_MAX];
};

struct host_product {
	int arrived;
	bool commit;			/* the end of a group, no product */
	bool registers, add, ta, tb;	/* A in registers; ta, tb: rows contiguous, not depth */
	bool sparse;			/* A has two of each four elements, at the indices of the threads' `pairs` */
	uint32_t pairs[HOST_GROUP];
	uint64_t a, b;
	int columns, group;
	uint32_t block;			/* of the cluster */
	enum host_type type_a, type_b;	/* as wide as each other */
	struct host_sums *sums;
	struct host_access who;
	const uint32_t *from[HOST_GROUP];	/* A's registers, and their values at the issue */
	uint32_t held[HOST_GROUP][4];
	uint32_t *clock, *warp_clock[HOST_GROUP_WARPS];
	uint32_t *fenced;		/* the minimum of all threads' clocks at their last fences */
	bool unfenced;			/* a thread has had no fence */
};

enum { HOST_SUMS_MAX = 64 };

struct host_group {
	int issued, done;		/* instructions; those in between are in the queue */
	int groups;			/* complete ones */
	struct host_product *queue[HOST_QUEUE_MAX];
	struct host_sums sums[HOST_SUMS_MAX];
};

static struct host_group *host_groups[HOST_GROUPS_MAX * HOST_CLUSTER_MAX];

/* ---- operands ----------------------------------------------------------------------- */

struct host_matrix {
	uint32_t start, leading, stride;	/* LBO, SBO */
	int swizzle;				/* bytes */
};

static inline struct host_matrix host_descriptor(uint64_t d)
{
	static const int swizzle[] = { 0, 128, 64, 32 };
	struct host_matrix m = { .start = (uint32_t)(d & 0x3fff) << 4, .leading = (uint32_t)(d >> 16 & 0x3fff) << 4,
		.stride = (uint32_t)(d >> 32 & 0x3fff) << 4, .swizzle = swizzle[d >> 62] };

	if (d & 0x3ff1c000c000c000)
		host_fail("a matrix descriptor 0x%llx has bits where none belong", (unsigned long long)d);
	if (m.swizzle && ((m.start / 128) & (uint32_t)(m.swizzle / 16 - 1)) != (d >> 49 & 7))
		host_fail("a matrix descriptor 0x%llx begins in the middle of a swizzled group", (unsigned long long)d);
	return m;
}

/* Address of element (i, k), i along the operand's own axis, k along the depth. */
static inline uint32_t host_element(const struct host_matrix *m, bool transposed, int i, int k, int bytes)
{
	uint32_t at;
	int span = m->swizzle / 2;	/* elements of a swizzled row; transposed have two bytes */
	int atom = 16 / bytes;		/* elements of 16 bytes */

	if (!transposed && m->swizzle)
		at = (uint32_t)(i % 8 * m->swizzle) + (uint32_t)(i / 8) * m->stride + (uint32_t)(k * bytes);
	else if (!transposed)
		at = (uint32_t)(i % 8 * 16) + (uint32_t)(i / 8) * m->stride +
			(uint32_t)(k / atom) * m->leading + (uint32_t)(k % atom * bytes);
	else if (m->swizzle)
		at = (uint32_t)(k % 8 * m->swizzle) + (uint32_t)(k / 8) * m->stride +
			(uint32_t)(i / span) * m->leading + (uint32_t)(i % span) * 2;
	else
		at = (uint32_t)(k % 8 * 16) + (uint32_t)(k / 8) * m->leading +
			(uint32_t)(i / 8) * m->stride + (uint32_t)(i % 8) * 2;
	return host_swizzled(m->start + at, m->swizzle);
}

/* Elements of the contracted axis that an instruction takes of A, as that is stored; and of B. */
static inline int host_depth_of_a(const struct host_product *p)
{
	return HOST_DEPTH_BYTES / host_type_bytes(p->type_a);
}

static inline int host_depth(const struct host_product *p)
{
	return host_depth_of_a(p) * (p->sparse ? 2 : 1);
}

/* Read the 16 bytes that begin at element (i, k): elements along the own axis if `transposed`, else along the depth. */
static inline void host_fetch(const struct host_product *p, const struct host_matrix *m, enum host_type type,
	bool transposed, int i, int k, const struct host_actor *actor, float *to)
{
	int bytes = host_type_bytes(type);
	const unsigned char *from = host_access(host_address_in(p->block, host_element(m, transposed, i, k, bytes)), 16,
		false, actor);

	for (int e = 0; e < 16 / bytes; e++) {
		uint16_t half;
		uint32_t word;

		memcpy(&half, from + e * bytes / 2 * 2, sizeof(half));	/* of a size that the compiler knows: see host_move */
		memcpy(&word, from + e * bytes / 4 * 4, sizeof(word));
		to[e] = host_from_bits(type, bytes == 1 ? from[e] : bytes == 2 ? half : word);
	}
}

static inline void host_fetch_a(const struct host_product *p, const struct host_actor *actor,
	float a[HOST_ROWS][HOST_DEPTH_MAX])
{
	struct host_matrix m;
	int atom = 16 / host_type_bytes(p->type_a);
	float own[16];

	if (!p->registers) {
		m = host_descriptor(p->a);
		for (int i = 0; i < HOST_ROWS && !p->ta; i++)
			for (int k = 0; k < host_depth_of_a(p); k += atom)
				host_fetch(p, &m, p->type_a, false, i, k, actor, a[i] + k);
		for (int i = 0; i < HOST_ROWS && p->ta; i += atom)
			for (int k = 0; k < host_depth_of_a(p); k++) {
				host_fetch(p, &m, p->type_a, true, i, k, actor, own);
				for (int e = 0; e < atom; e++)
					a[i + e][k] = own[e];
			}
		return;
	}
	for (int t = 0; t < HOST_GROUP; t++)
		for (int r = 0; r < 4; r++)
			for (int e = 0; e < 2; e++)
				a[t / 32 * 16 + t % 32 / 4 + 8 * (r & 1)]
					[2 * (t % 4) + e + 8 * (r >> 1)] = host_from_bits(p->type_a,
					p->held[t][r] >> 16 * e & 0xffff);
}

/* The index, among four, of the element that is stored in column k of row i. A thread's word has four bits for each four
 * elements, the lowest first; of elements of 16 bits those of its rows t / 4 and t / 4 + 8, in half of the depth; of bytes
 * those of one of the rows, in half of the depth. The threads are the first two of a quad, or all (PTX ISA, sparse wgmma). */
static inline int host_pair_index(const struct host_product *p, int i, int k)
{
	int four = k / 2, quad = i / 16 * 32 + i % 8 * 4, high = i % 16 / 8, at;

	if (host_type_bytes(p->type_a) == 2)
		at = (int)(p->pairs[quad + four / 4] >> (16 * high + four % 4 * 4));
	else
		at = (int)(p->pairs[quad + high + four / 8 * 2] >> four % 8 * 4);
	return at >> k % 2 * 2 & 3;
}

static inline void host_expand_a(const struct host_product *p, float a[HOST_ROWS][HOST_DEPTH_MAX])
{
	float stored[HOST_DEPTH_MAX];

	for (int i = 0; i < HOST_ROWS && p->sparse; i++) {
		memcpy(stored, a[i], sizeof(stored));
		memset(a[i], 0, sizeof(a[i]));
		for (int k = 0; k < host_depth_of_a(p); k++)
			a[i][k / 2 * 4 + host_pair_index(p, i, k)] += stored[k];
	}
}

/* ---- accumulators -------------------------------------------------------------------- */

/* Register i of thread t of a warpgroup is an element of the accumulator. */
static inline float *host_sum(struct host_sums *s, int t, int i)
{
	return &s->v[t / 32 * 16 + t % 32 / 4 + 8 * (i >> 1 & 1)][i / 4 * 8 + 2 * (t % 4) + (i & 1)];
}

static inline struct host_sums *host_find_sums(struct host_group *g, int t, const float *d, int columns)
{
	for (int i = 0; i < HOST_SUMS_MAX; i++)
		if (g->sums[i].products && g->sums[i].in[t] == d && g->sums[i].columns == columns)
			return &g->sums[i];
	for (int i = 0; i < HOST_SUMS_MAX; i++)
		if (!g->sums[i].products) {
			memset(g->sums[i].in, 0, sizeof(g->sums[i].in));
			g->sums[i].columns = columns;
			return &g->sums[i];
		}
	host_fail("products on more than %d accumulators are under way", HOST_SUMS_MAX);
}

/* Move thread t's accumulators to the product, and leave NaN in the registers. */
static inline void host_take_sums(struct host_sums *s, int t, float *d)
{
	if (s->in[t] == d)
		return;
	if (s->in[t])
		host_fail("the threads of a warpgroup disagree about its accumulators");
	s->in[t] = d;
	for (int i = 0; i < s->columns / 2; i++) {
		*host_sum(s, t, i) = d[i];
		d[i] = host_float(HOST_IN_FLIGHT);
	}
}

static inline void host_give_sums(const struct host_product *p, struct host_sums *s)
{
	for (int t = 0; t < HOST_GROUP; t++)
		for (int i = 0; i < s->columns / 2; i++) {
			if (host_bits(s->in[t][i]) != HOST_IN_FLIGHT)
				host_fail("%s: thread %d of the warpgroup wrote to its accumulators "
					"while the product was under way",
					HOST_WHERE(p->who), t);
			s->in[t][i] = *host_sum(s, t, i);
		}
}

/* ---- products ------------------------------------------------------------------------ */

/* A row of sums of products of integers: d has the bits of 32-bit integers, which wrap around. */
static inline void host_add_integers(const struct host_product *p, float *d, const float *a,
	float (*b)[HOST_COLUMNS_MAX])
{
	for (int j = 0; j < p->columns; j++) {
		uint32_t sum = host_bits(d[j]);

		for (int k = 0; k < host_depth(p); k++)
			sum += (uint32_t)((int32_t)a[k] * (int32_t)b[k][j]);
		d[j] = host_float(sum);
	}
}

/* A row of sums of products, each summed in the order of the depth, which is a multiple of 4. */
static inline void host_add_products(float *restrict d, const float *a, float (*b)[HOST_COLUMNS_MAX], int depth, int columns)
{
	for (int k = 0; k < depth; k += 4) {
		const float *b0 = b[k], *b1 = b[k + 1], *b2 = b[k + 2], *b3 = b[k + 3];

		for (int j = 0; j < columns; j++)
			d[j] = d[j] + a[k] * b0[j] + a[k + 1] * b1[j] + a[k + 2] * b2[j] + a[k + 3] * b3[j];
	}
}

static inline void host_multiply(struct host_product *p)
{
	static float a[HOST_ROWS][HOST_DEPTH_MAX], b[HOST_DEPTH_MAX][HOST_COLUMNS_MAX];
	struct host_actor actor = { .who = p->who, .clock = p->clock, .fenced = p->unfenced ? NULL :
		p->fenced, .async = true };
	struct host_matrix m = host_descriptor(p->b);
	int atom = 16 / host_type_bytes(p->type_b);
	float depth[16];

	host_fetch_a(p, &actor, a);
	host_expand_a(p, a);
	for (int j = 0; j < p->columns && !p->tb; j++)
		for (int k = 0; k < host_depth(p); k += atom) {
			host_fetch(p, &m, p->type_b, false, j, k, &actor, depth);
			for (int e = 0; e < atom; e++)
				b[k + e][j] = depth[e];
		}
	for (int k = 0; k < host_depth(p) && p->tb; k++)
		for (int j = 0; j < p->columns; j += atom)
			host_fetch(p, &m, p->type_b, true, j, k, &actor, b[k] + j);
	for (int i = 0; i < HOST_ROWS; i++) {
		float *d = p->sums->v[i];

		if (!p->add)
			memset(d, 0, (size_t)p->columns * sizeof(*d));
		if (host_is_integer(p->type_b))
			host_add_integers(p, d, a[i], b);
		else
			host_add_products(d, a[i], b, host_depth(p), p->columns);
	}
}

static inline void host_product_end(struct host_product *p)
{
	for (int t = 0; t < HOST_GROUP && p->registers; t++)
		if (memcmp(p->from[t], p->held[t], sizeof(p->held[t])) != 0)
			host_fail("%s: thread %d of the warpgroup wrote to the registers of the first "
				"operand while the product was under way",
				HOST_WHERE(p->who), t);
	if (--p->sums->products == 0)
		host_give_sums(p, p->sums);
}

static inline bool host_product_ready(const struct host_group *g)
{
	return g->done < g->issued && g->queue[g->done % HOST_QUEUE_MAX]->arrived == HOST_GROUP;
}

/* The product's clock: the minimum of those of its warps, as each warp's part may begin on its own. */
static inline void host_product_clock(struct host_product *p)
{
	if (!host_racing())
		return;
	p->clock = p->warp_clock[0];
	for (int i = 1; i < HOST_GROUP_WARPS; i++)
		host_clock_meet(p->clock, p->warp_clock[i]);
	p->clock[p->who.thread] = p->who.time;
}

static inline void host_product_step(struct host_group *g)
{
	struct host_product *p = g->queue[g->done % HOST_QUEUE_MAX];

	if (p->commit) {
		g->groups++;
		host_wake(g, 0, host.all);
	} else {
		host_product_clock(p);
		host_multiply(p);
		host_product_end(p);
	}
	g->done++;
	for (int i = 0; i < HOST_GROUP_WARPS; i++)
		free(p->warp_clock[i]);
	free(p->fenced);
	free(p);
}

/* Add this thread's next instruction to its warpgroup's queue. It is ready when all 128 threads have issued
 * the same. */
static inline struct host_product *host_deposit(const struct host_product *what)
{
	int group = host.self->thread / HOST_GROUP;
	struct host_group *g = host_groups[group];
	struct host_product *p;

	if (host.group != HOST_GROUP || (group + 1) * HOST_GROUP > host.all ||
	    (host.cluster > 1 && host.threads % HOST_GROUP))
		host_fail("a product on a warpgroup of less than %d threads", HOST_GROUP);
	if (host.self->deposits - g->done >= HOST_QUEUE_MAX)
		host_fail("more than %d products are under way", HOST_QUEUE_MAX);
	if (host.self->deposits == g->issued) {
		p = host_alloc(1, sizeof(*p));
		*p = *what;
		p->group = host.self->commits;
		p->block = host_rank();
		p->who = (struct host_access){ .task = host.self->task, .iteration = host.self->iteration,
			.time = (uint32_t)p->group + 1, .thread = host_group_entry(group) };
		g->queue[g->issued++ % HOST_QUEUE_MAX] = p;
	}
	p = g->queue[host.self->deposits++ % HOST_QUEUE_MAX];
	p->pairs[host.self->thread % HOST_GROUP] = what->pairs[0];
	if (p->commit != what->commit || p->a != what->a || p->b != what->b || p->add != what->add ||
	    p->columns != what->columns || p->registers != what->registers || p->sparse != what->sparse ||
	    p->ta != what->ta || p->tb != what->tb)
		host_fail("the threads of a warpgroup disagree about its next matrix instruction, %s",
			HOST_WHERE(p->who));
	p->arrived++;
	return p;
}

static inline void host_deposit_clock(struct host_product *p)
{
	int warp = host.self->thread % HOST_GROUP / host.warp;

	if (!host_racing())
		return;
	if (!p->warp_clock[warp])
		p->warp_clock[warp] = host_clock_new();
	host_release(p->warp_clock[warp]);
	if (!host.self->fence_seen) {
		p->unfenced = true;
	} else if (!p->fenced) {
		p->fenced = host_clock_new();
		host_clock_copy(p->fenced, host.self->fence_seen);
	} else {
		host_clock_meet(p->fenced, host.self->fence_seen);
	}
}

static inline void host_mma(float *d, const struct host_product *what, const uint32_t *a)
{
	int t = host.self->thread % HOST_GROUP;
	struct host_product *p;
	struct host_group *g = host_groups[host.self->thread / HOST_GROUP];

	host_pause();
	if (!host.self->fenced)
		host_fail("a product without groups_fence since the last wait for groups");
	if (what->columns % 8 || what->columns < 8 || what->columns > HOST_COLUMNS_MAX)
		host_fail("a product of %d columns", what->columns);
	if (host_type_bytes(what->type_a) != host_type_bytes(what->type_b))
		host_fail("a product of operands that are not as wide as each other");
	if (host_type_bytes(what->type_a) != 2 && (what->registers || what->ta || what->tb))
		host_fail("a product of operands that are not of 16 bits, in registers or transposed");
	p = host_deposit(what);
	if (!p->sums) {
		p->sums = host_find_sums(g, t, d, what->columns);
		p->sums->products++;
	}
	host_take_sums(p->sums, t, d);
	if (what->registers) {
		p->from[t] = a;
		memcpy(p->held[t], a, sizeof(p->held[t]));
	}
	host_deposit_clock(p);
}

static inline void host_product(float *d, const uint32_t *regs, uint64_t a, uint64_t b, int add,
	int columns, int ta, int tb, int type_a, int type_b)
{
	host_mma(d, &(struct host_product){ .a = a, .b = b, .add = add != 0, .ta = ta != 0, .tb = tb != 0,
		.columns = columns, .type_a = (enum host_type)type_a, .type_b = (enum host_type)type_b,
		.registers = regs != NULL }, regs);
}

static inline void host_sparse_product(float *d, uint64_t a, uint64_t b, uint32_t pairs, int add, int columns, int ta, int tb,
	int type_a, int type_b)
{
	struct host_thread *t = host.self;

	/* Compilers give the registers of the words to others behind the instruction, which reads them while it is under way. */
	if (t->sparse > t->waited && t->sparse <= t->commits)
		host_fail("the words of indices are new while a sparse product may still read the ones before");
	t->sparse = t->commits + 1;
	host_mma(d, &(struct host_product){ .a = a, .b = b, .add = add != 0, .ta = ta != 0, .tb = tb != 0,
		.columns = columns, .type_a = (enum host_type)type_a, .type_b = (enum host_type)type_b,
		.sparse = true, .pairs = { pairs } }, NULL);
}

static inline void host_groups_fence(void)
{
	host_meet(HOST_GROUPS_FENCE, 0, 0);
	host.self->fenced = true;
}

static inline void host_groups_commit(void)
{
	host_deposit(&(struct host_product){ .commit = true });
	host.self->commits++;
}

static inline void host_groups_wait(int n)
{
	int group = host.self->thread / HOST_GROUP, need = host.self->commits - n;
	struct host_group *g = host_groups[group];

	host_meet(HOST_GROUPS_WAIT, 0, 0);
	while (g->groups < need)
		host_block(g, HOST_WAIT_GROUPS, (uint32_t)need, 0);
	host.self->fenced = false;
	if (need > host.self->waited)
		host.self->waited = need;
	if (host_racing() && need > 0 && host.self->clock[host_group_entry(group)] < (uint32_t)need)
		host.self->clock[host_group_entry(group)] = (uint32_t)need;
}
/* ---- the scheduler's part -------------------------------------------------------------- */

static inline void host_products_open(void)
{
	for (int i = 0; i < HOST_GROUPS_MAX * host.cluster; i++)
		host_groups[i] = host_alloc(1, sizeof(struct host_group));
}

static inline void host_products_start(void)
{
	for (int i = 0; i < HOST_GROUPS_MAX * host.cluster; i++) {
		struct host_group *g = host_groups[i];

		g->issued = g->done = g->groups = 0;
	}
}

/* After all threads have ended no product may be under way. */
static inline void host_products_end(void)
{
	for (int i = 0; i < HOST_GROUPS_MAX * host.cluster; i++) {
		const struct host_group *g = host_groups[i];

		if (g->done < g->issued)
			host_fail("the kernel ends while the product of %s is under way",
				HOST_WHERE(g->queue[g->done % HOST_QUEUE_MAX]->who));
	}
}

#endif
