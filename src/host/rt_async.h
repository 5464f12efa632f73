/* rt_async.h - asynchronous work: copies of boxes of tensors into shared memory and out of
 * it, and matrix products of a warpgroup.
 *
 * A copy proceeds by rows of its box, some rows at a time, whenever the scheduler chooses it; from its
 * issue on its destination holds NaN. A store (out of shared memory) belongs to a group of the thread
 * that issues it; only this thread can wait until the group has been read. The products of a warpgroup
 * are executed in order. From the issue of a product to its end the thread's accumulators hold a NaN
 * pattern: reading them too early shows in the result, and writing them is detected. Operands are
 * addressed by the bits of descriptors, as on the hardware (PTX ISA, matrix descriptor format).
 */
#ifndef HOST_RT_ASYNC_H
#define HOST_RT_ASYNC_H

#include "host/rt_number.h"
#include "host/rt_sync.h"

enum {
	HOST_ROWS = 64, HOST_DEPTH_BYTES = 32, HOST_COLUMNS_MAX = 256,	/* of an instruction */
	HOST_DEPTH_MAX = 2 * HOST_DEPTH_BYTES,	/* of a sparse one, on bytes */
	HOST_STEP_ROWS = 48,		/* the most rows of a box that are copied in one step */
	HOST_QUEUE_MAX = 1024,		/* instructions of a warpgroup in flight */
	HOST_IN_FLIGHT = 0x7fc0dead,	/* a NaN */
};

/* ---- copies ------------------------------------------------------------------------ */

struct host_copy {
	struct host_stored *stored;	/* of a copy out of shared memory; else NULL */
	bool adds;			/* such a copy: to what the tensor holds */
	const struct host_map *map;
	uint32_t to;			/* in shared memory */
	struct host_flag *flag;		/* of a load */
	int at[HOST_DIMS_MAX];
	int64_t row, rows;		/* the next row; how many there are */
	struct host_access who;		/* its time increases with each copy in the same slot */
	uint32_t *clock;
	const uint32_t *fenced;		/* the starting thread's clock at its last fence; NULL: no fence */
};

/* A store that its thread has not waited for. */
struct host_stored {
	struct host_stored *next;
	int thread, group;
	struct host_access who;
	bool read;
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

static struct {
	struct host_copy copy[HOST_COPIES_MAX * HOST_CLUSTER_MAX];
	bool busy[HOST_COPIES_MAX * HOST_CLUSTER_MAX];	/* copies under way; apart from them, because each step looks for one */
	struct host_stored *stored;
	int next_copy;
	struct host_group *group[HOST_GROUPS_MAX * HOST_CLUSTER_MAX];
} host_async;

static inline void host_copy_check(const struct host_copy *c)
{
	const struct host_map *m = c->map;

	if (m->rank < 1 || m->rank > 5 || c->to % 128 || m->box[0] * m->element_bytes % 16)
		host_fail("a copy of a box of rank %d, %lld bytes wide, to %d: shared memory must be "
			"aligned to 128 bytes, the box be a multiple of 16 wide", m->rank,
			(long long)(m->box[0] * m->element_bytes), host_offset(c->to));
	if (m->swizzle && m->box[0] * m->element_bytes > m->swizzle)
		host_fail("a box of %lld bytes is wider than its swizzle of %d",
			(long long)(m->box[0] * m->element_bytes), m->swizzle);
	for (int d = 0; d < m->rank; d++)
		if (m->box[d] < 1 || m->box[d] > 256)
			host_fail("a box with %lld elements in dimension %d; the most is 256", (long long)m->box[d], d);
}

static inline int host_copies(void)
{
	return HOST_COPIES_MAX * host.cluster;
}

static inline uint32_t host_swizzled(uint32_t address, int swizzle)
{
	uint32_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;

	return address ^ ((address >> 7 & mask) << 4);
}

/* The offset of the row of the box in the tensor; false if the row is outside. */
static inline bool host_copy_row(const struct host_copy *c, int64_t row, int64_t *offset)
{
	*offset = 0;
	for (int d = 1; d < c->map->rank; d++) {
		int64_t i = c->at[d] + row % c->map->box[d];

		row /= c->map->box[d];
		if (i < 0 || i >= c->map->dim[d])
			return false;
		*offset += i * c->map->stride[d];
	}
	return true;
}

/* Add an element to one of a tensor. */
static inline void host_add_element(const struct host_map *m, unsigned char *to, const unsigned char *from)
{
	uint32_t x, y;

	memcpy(&x, to, sizeof(x));
	memcpy(&y, from, sizeof(y));
	x = m->integer ? x + y : host_bits(host_float(x) + host_float(y));
	memcpy(to, &x, sizeof(x));
}

/* n elements from x on along the first dimension: those at p in shared memory, and `at` in the tensor. */
static inline void host_copy_elements(const struct host_copy *c, bool inside, int64_t x, int64_t n,
	unsigned char *p, unsigned char *at)
{
	const struct host_map *m = c->map;
	uint32_t bytes = (uint32_t)m->element_bytes;

	for (int64_t i = 0; i < n; i++, p += bytes, at += m->stride[0]) {
		bool there = inside && x + i >= 0 && x + i < m->dim[0];

		if (there && c->adds)
			host_add_element(m, at, p);
		else if (there)
			host_move(c->stored ? at : p, c->stored ? p : at, bytes);
		else if (!c->stored)
			memset(p, 0, bytes);
	}
}

static inline void host_copy_one_row(const struct host_copy *c, int64_t row)
{
	const struct host_map *m = c->map;
	struct host_actor actor = { .who = c->who, .clock = host_racing() ? c->clock : NULL,
		.fenced = c->fenced, .async = true };
	int64_t offset, width = m->box[0] * m->element_bytes, n = 16 / m->element_bytes;
	bool inside = host_copy_row(c, row, &offset);

	for (int64_t i = 0; i < m->box[0]; i += n) {	/* no swizzle moves these 16 bytes apart */
		int64_t x = c->at[0] + i, byte = row * width + i * m->element_bytes;
		unsigned char *p = host_access(host_swizzled(c->to + (uint32_t)byte, m->swizzle), 16, !c->stored, &actor);
		unsigned char *at = m->base + offset + x * m->stride[0];

		if (m->stride[0] == m->element_bytes && inside && x >= 0 && x + n <= m->dim[0] && !c->adds)
			memcpy(c->stored ? at : p, c->stored ? p : at, 16);
		else
			host_copy_elements(c, inside, x, n, p, at);
	}
}

static inline void host_copy_step(struct host_copy *c)
{
	int64_t n = 1 + host_random(HOST_STEP_ROWS), width = c->map->box[0] * c->map->element_bytes;
	struct host_flag *flag = c->flag;

	if (!host.left[c->to / host_shared.window])
		host_fail("block %d has ended while the copy of %s %s its memory is under way", host_owner(c->to),
			HOST_WHERE(c->who), c->stored ? "out of" : "into");
	n = n < c->rows - c->row ? n : c->rows - c->row;
	for (int64_t i = 0; i < n; i++)
		host_copy_one_row(c, c->row + i);
	c->row += n;
	host_async.busy[c - host_async.copy] = c->row < c->rows;
	if (!c->stored) {
		host_flag_bytes(flag, n * width, c->clock);
	} else if (c->row == c->rows) {
		c->stored->read = true;
		host_wake(&host.thread[c->stored->thread], c->stored->thread, 1);
	}
}

/* The number of a copy that is not under way; -1: all are. */
static inline int host_copy_free(void)
{
	for (int i = 0; i < host_copies(); i++) {
		int at = (host_async.next_copy + i) % host_copies();

		if (!host_async.busy[at])
			return at;
	}
	return -1;
}

/* A copy that is not under way. If all are, the engine works on those it has until one ends, as on the hardware, whose
 * threads wait while its queue is full. So a kernel may start any number of copies. */
static inline struct host_copy *host_copy_new(void)
{
	int at = host_copy_free();

	while (at < 0 || host_async.busy[at]) {
		at = (int)host_random((uint32_t)host_copies());
		host_copy_step(&host_async.copy[at]);
	}
	host_async.next_copy = at + 1;
	return &host_async.copy[at];
}

/* A copy between the box at these coordinates and an address in the cluster. */
static inline struct host_copy *host_copy_make(uint32_t to, const struct host_map *map, int rank, const int *at)
{
	const struct host_thread *t = host.self;
	struct host_copy *c = host_copy_new();
	struct host_access who = { .task = t->task, .iteration = t->iteration, .time = c->who.time + 1,
		.thread = host_copy_entry((int)(c - host_async.copy)) };

	*c = (struct host_copy){ .map = map, .to = to, .clock = c->clock, .rows = 1, .who = who,
		.fenced = t->fence_seen };
	host_async.busy[c - host_async.copy] = true;
	if (rank != map->rank)
		host_fail("a copy by %d coordinates of a tensor of rank %d", rank, map->rank);
	host_copy_check(c);
	memcpy(c->at, at, (size_t)rank * sizeof(*at));
	for (int d = 1; d < rank; d++)
		c->rows *= map->box[d];
	if (host_racing()) {
		c->clock = c->clock ? c->clock : host_clock_new();
		host_clock_copy(c->clock, t->clock);
		c->clock[who.thread] = who.time;
	}
	if (host_offset(to) < 0 || to % host_shared.window + c->rows * map->box[0] *
	    map->element_bytes > host_shared.end)
		host_fail("a copy at %d reaches beyond shared memory", host_offset(to));
	return c;
}

static inline void host_copy_one(uint32_t to, const struct host_map *map, uint32_t flag, int rank, const int *at)
{
	struct host_copy *c = host_copy_make(to, map, rank, at);

	c->flag = host_flag_at(flag);
	memset(host_shared.bytes + to, 0xff, (size_t)(c->rows * map->box[0] * map->element_bytes));
}

static inline void host_copy_start(uint32_t to, const struct host_map *map, uint32_t flag,
	unsigned blocks, int rank, const int *at)
{
	if (blocks >> host.cluster)
		host_fail("a copy to blocks 0x%x of a cluster of %d", blocks, host.cluster);
	for (uint32_t i = 0; i < (uint32_t)host.cluster; i++)
		if (blocks >> i & 1)
			host_copy_one(host_address(i, to), map, host_address(i, flag), rank, at);
	if (!blocks)
		host_copy_one(host_here(to), map, host_here(flag), rank, at);
	if (host_racing())
		host.self->clock[host.self->thread]++;
	host_pause();
}

/* ---- stores ------------------------------------------------------------------------ */

static inline void host_copy_out(const struct host_map *map, uint32_t from, int rank, const int *at, bool adds)
{
	struct host_copy *c = host_copy_make(host_here(from), map, rank, at);
	struct host_stored *s = host_alloc(1, sizeof(*s));

	*s = (struct host_stored){ .next = host_async.stored, .thread = host.self->thread,
		.group = host.self->stores, .who = c->who };
	host_async.stored = c->stored = s;
	c->adds = adds;
	if (host_racing())
		host.self->clock[host.self->thread]++;
	host_pause();
}

static inline void host_store_start(const struct host_map *map, uint32_t from, int rank, const int *at)
{
	host_copy_out(map, from, rank, at, false);
}

static inline void host_add_start(const struct host_map *map, uint32_t from, int rank, const int *at)
{
	if (map->element_bytes != 4)
		host_fail("an addition to elements of %d bytes", map->element_bytes);
	host_copy_out(map, from, rank, at, true);
}

static inline void host_stores_commit(void)
{
	host.self->stores++;
}

/* A store of the thread's groups before `end` that has not been read yet. */
static inline const struct host_stored *host_store_unread(int end)
{
	for (const struct host_stored *s = host_async.stored; s; s = s->next)
		if (s->thread == host.self->thread && s->group < end && !s->read)
			return s;
	return NULL;
}

static inline void host_stores_read(int n)
{
	struct host_thread *t = host.self;
	int end = t->stores - n;

	while (host_store_unread(end))
		host_block(t, HOST_WAIT_STORES, 0, 0);
	for (struct host_stored **p = &host_async.stored, *s; (s = *p) != NULL;) {
		if (s->thread != t->thread || s->group >= end) {
			p = &s->next;
			continue;
		}
		if (host_racing() && t->clock[s->who.thread] < s->who.time)
			t->clock[s->who.thread] = s->who.time;
		*p = s->next;
		free(s);
	}
}

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
		if (p->type_b == HOST_i8)
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
	struct host_group *g = host_async.group[group];
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
	struct host_group *g = host_async.group[host.self->thread / HOST_GROUP];

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

/* Elements x and y of two operands, as bits: their product, added to a sum, or to the bits of an integer. */
static inline void host_add_product(float *sum, enum host_type type_a, uint32_t x, enum host_type type_b, uint32_t y)
{
	uint32_t bits;

	if (type_a != HOST_i8) {
		*sum += host_from_bits(type_a, x) * host_from_bits(type_b, y);
		return;
	}
	memcpy(&bits, sum, 4);
	bits += (uint32_t)((int8_t)x * (int8_t)y);
	memcpy(sum, &bits, 4);
}

/* mma.sync.m16n8k8, k16 and k32, by the width of elements: of the first operand, thread t has rows t / 4 and t / 4 + 8,
 * of the second one column t / 4, and along what is contracted word t mod 4 of the first 16 bytes, and the same of the
 * second 16; of the sums its rows in columns 2 (t mod 4) and the next. Integers add up modulo 2^32. */
static inline void host_warp_product(float *d, const uint32_t *a, const uint32_t *b, int add, int type_a,
	int type_b)
{
	int me = host.self->thread, t = me % host.warp, bytes = host_type_bytes((enum host_type)type_a), each = 4 / bytes;
	struct host_warp *w = &host_sync.warp[me / host.warp];
	int half = w->meeting.generation & 1;
	uint32_t mask = (uint32_t)0xffffffff >> (32 - 8 * bytes);

	if (host_type_bytes((enum host_type)type_b) != bytes || (type_a == HOST_i8) != (type_b == HOST_i8))
		host_fail("a product of a warp on operands of different widths, or of integers and floats");
	memcpy(w->words[half][t].a, a, sizeof(w->words[half][t].a));
	memcpy(w->words[half][t].b, b, sizeof(w->words[half][t].b));
	half = host_meet(HOST_PRODUCT, 0, 0);
	for (int i = 0; i < 4; i++) {
		int row = t / 4 * 4, col = (2 * (t % 4) + i % 2) * 4;	/* their first threads */
		float sum = add ? d[i] : 0;

		for (int k = 0; k < 8 * each; k++) {
			int from = k / each % 4, group = k / (4 * each), shift = k % each * 8 * bytes;
			uint32_t x = w->words[half][row + from].a[group * 2 + i / 2] >> shift & mask;
			uint32_t y = w->words[half][col + from].b[group] >> shift & mask;

			host_add_product(&sum, (enum host_type)type_a, x, (enum host_type)type_b, y);
		}
		d[i] = sum;
	}
}

/* MFMA of CDNA 3, n rows and columns: of the first operand, thread t has row t mod n, of the second one column t mod n,
 * and along what is contracted 8 bytes: of e elements, e (t / n) and the next. Of the sums it has column
 * t mod n, and register i is row 4 (64 / n) (i / 4) + 4 (t / n) + i mod 4. */
static inline void host_mfma(float *d, const uint32_t *a, const uint32_t *b, int add, int n, int type_a, int type_b)
{
	int me = host.self->thread, t = me % host.warp;
	struct host_warp *w = &host_sync.warp[me / host.warp];
	int half = w->meeting.generation & 1, bytes = host_type_bytes((enum host_type)type_a);

	if (host.warp != 64 || (n != 16 && n != 32))
		host_fail("an MFMA of %d x %d by a warp of %d threads", n, n, host.warp);
	if (host_type_bytes((enum host_type)type_b) != bytes || bytes > 2 || (type_a == HOST_i8) != (type_b == HOST_i8))
		host_fail("an MFMA on operands of types that do not go together");
	memcpy(w->words[half][t].a, a, 8);
	memcpy(w->words[half][t].b, b, 8);
	half = host_meet(HOST_PRODUCT, 0, 0);
	for (int i = 0; i < n * n / 64; i++) {
		int row = 4 * (64 / n) * (i / 4) + 4 * (t / n) + i % 4, col = t % n;
		float sum = add ? d[i] : 0;

		for (int at = 0; at < 512 / n; at += bytes) {
			int from = at / 8 * n, word = at % 8 / 4, shift = at % 4 * 8;
			uint32_t x = w->words[half][from + row].a[word] >> shift, y = w->words[half][from + col].b[word] >> shift;
			uint32_t mask = bytes == 2 ? 0xffff : 0xff;

			host_add_product(&sum, (enum host_type)type_a, x & mask, (enum host_type)type_b, y & mask);
		}
		d[i] = sum;
	}
}

/* ldmatrix: four matrices of 8 x 8 elements of 16 bits. Thread t gives the address of row t mod 8 of matrix t / 8, and
 * gets of each matrix row t / 4, columns 2 (t mod 4) and the next; across: column t / 4, of these rows. */
static inline void host_matrices(uint32_t *x, uint32_t at, int across)
{
	int me = host.self->thread, t = me % host.warp;
	struct host_warp *w = &host_sync.warp[me / host.warp];
	int half = w->meeting.generation & 1;

	if (at % 16)
		host_fail("a row of a matrix begins at address %u, which is no multiple of 16", at);
	w->words[half][t].a[0] = at;
	half = host_meet(HOST_MATRICES, 0, across);
	for (int i = 0; i < 4; i++) {
		uint16_t y[2];

		if (w->value[half][0].i != across)
			host_fail("the threads of warp %d fetch matrices in different ways", me / host.warp);
		for (int e = 0; e < 2; e++) {
			int row = across ? 2 * (t % 4) + e : t / 4, col = across ? t / 4 : 2 * (t % 4) + e;

			host_get(w->words[half][8 * i + row].a[0] + 2 * (uint32_t)col, &y[e], sizeof(y[e]));
		}
		x[i] = y[0] | (uint32_t)y[1] << 16;
	}
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
	struct host_group *g = host_async.group[group];

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

/* Do one step of the first copy under way of those numbered from `first` on and below `end`; false if there is none. */
static inline bool host_some_copy_step(int first, int end)
{
	const bool *busy = first < end ? memchr(host_async.busy + first, true, (size_t)(end - first)) : NULL;

	if (busy)
		host_copy_step(&host_async.copy[busy - host_async.busy]);
	return busy;
}

/* Do one step of asynchronous work; false if there is none. */
static inline bool host_async_step(void)
{
	int copies = host_copies(), groups = host.all / HOST_GROUP;
	int first = (int)host_random((uint32_t)(copies + groups));

	if (host_some_copy_step(first, copies))
		return true;
	for (int i = 0; i < groups; i++) {
		struct host_group *g = host_async.group[(first + i) % groups];

		if (host_product_ready(g)) {
			host_product_step(g);
			return true;
		}
	}
	return host_some_copy_step(0, first < copies ? first : copies);
}

static inline void host_async_open(void)
{
	for (int i = 0; i < HOST_GROUPS_MAX * host.cluster; i++)
		host_async.group[i] = host_alloc(1, sizeof(struct host_group));
}

static inline void host_async_start(void)
{
	for (int i = 0; i < host_copies(); i++)
		host_async.copy[i].who.time = 0;
	for (int i = 0; i < HOST_GROUPS_MAX * host.cluster; i++) {
		struct host_group *g = host_async.group[i];

		g->issued = g->done = g->groups = 0;
	}
}

/* After all threads have ended no asynchronous work may be left. */
static inline void host_async_end(void)
{
	for (int i = 0; i < host_copies(); i++)
		if (host_async.busy[i])
			host_fail("the kernel ends while the copy of %s is under way",
				HOST_WHERE(host_async.copy[i].who));
	if (host_async.stored)
		host_fail("the kernel ends without a wait until the store of %s has been read",
			HOST_WHERE(host_async.stored->who));
	for (int i = 0; i < HOST_GROUPS_MAX * host.cluster; i++) {
		const struct host_group *g = host_async.group[i];

		if (g->done < g->issued)
			host_fail("the kernel ends while the product of %s is under way",
				HOST_WHERE(g->queue[g->done % HOST_QUEUE_MAX]->who));
	}
}

#endif
