/* rt_copies.h - asynchronous copies of boxes of tensors into shared memory and out of it.
 *
 * A copy proceeds by rows of its box, some rows at a time, whenever the scheduler chooses it; from its
 * issue on its destination holds NaN. A store (out of shared memory) belongs to a group of the thread
 * that issues it; only this thread can wait until the group has been read.
 */
#ifndef HOST_RT_COPIES_H
#define HOST_RT_COPIES_H

#include "host/rt_number.h"
#include "host/rt_sync.h"

enum { HOST_STEP_ROWS = 48 };		/* the most rows of a box that are copied in one step */

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
	uint32_t *fenced;		/* what the starting thread knew at its last fence; in race mode */
	bool has_fenced;		/* that thread */
	bool within;			/* its block, and nothing of another */
};

/* A store that its thread has not waited for. */
struct host_stored {
	struct host_stored *next;
	int thread, group;
	struct host_access who;
	bool read;
};

static struct {
	struct host_copy copy[HOST_COPIES_MAX * HOST_CLUSTER_MAX];
	/* which copies are under way; an array of its own, because each step looks for one */
	bool busy[HOST_COPIES_MAX * HOST_CLUSTER_MAX];
	struct host_stored *stored;
	int next_copy;
} host_engine;

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
		.fenced = c->has_fenced ? c->fenced : NULL, .within = c->within, .async = true };
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
	host_engine.busy[c - host_engine.copy] = c->row < c->rows;
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
		int at = (host_engine.next_copy + i) % host_copies();

		if (!host_engine.busy[at])
			return at;
	}
	return -1;
}

/* A copy that is not under way. If all are, the engine works on those it has until one ends, as on the hardware, whose
 * threads wait while its queue is full. So a kernel may start any number of copies. */
static inline struct host_copy *host_copy_new(void)
{
	int at = host_copy_free();

	while (at < 0 || host_engine.busy[at]) {
		at = (int)host_random((uint32_t)host_copies());
		host_copy_step(&host_engine.copy[at]);
	}
	host_engine.next_copy = at + 1;
	return &host_engine.copy[at];
}

/* A copy between the box at these coordinates and an address in the cluster. */
static inline struct host_copy *host_copy_make(uint32_t to, const struct host_map *map, int rank, const int *at)
{
	const struct host_thread *t = host.self;
	struct host_copy *c = host_copy_new();
	struct host_access who = { .task = t->task, .iteration = t->iteration, .time = c->who.time + 1,
		.thread = host_copy_entry((int)(c - host_engine.copy)) };

	*c = (struct host_copy){ .map = map, .to = to, .clock = c->clock, .fenced = c->fenced, .rows = 1, .who = who };
	host_engine.busy[c - host_engine.copy] = true;
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
		c->has_fenced = t->fence_seen != NULL;
		c->within = to / host_shared.window == host_rank();
		c->fenced = c->fenced ? c->fenced : host_clock_new();
		if (c->has_fenced)	/* that clock goes on while the copy is under way */
			host_clock_copy(c->fenced, t->fence_seen);
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

	*s = (struct host_stored){ .next = host_engine.stored, .thread = host.self->thread,
		.group = host.self->stores, .who = c->who };
	host_engine.stored = c->stored = s;
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
	for (const struct host_stored *s = host_engine.stored; s; s = s->next)
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
	for (struct host_stored **p = &host_engine.stored, *s; (s = *p) != NULL;) {
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
/* ---- the scheduler's part -------------------------------------------------------------- */

/* Do one step of the first copy under way of those numbered from `first` on and below `end`; false if there is none. */
static inline bool host_some_copy_step(int first, int end)
{
	const bool *busy = first < end ? memchr(host_engine.busy + first, true, (size_t)(end - first)) : NULL;

	if (busy)
		host_copy_step(&host_engine.copy[busy - host_engine.busy]);
	return busy;
}
static inline void host_copies_start(void)
{
	for (int i = 0; i < host_copies(); i++)
		host_engine.copy[i].who.time = 0;
}

/* After all threads have ended no copy may be under way. */
static inline void host_copies_end(void)
{
	for (int i = 0; i < host_copies(); i++)
		if (host_engine.busy[i])
			host_fail("the kernel ends while the copy of %s is under way",
				HOST_WHERE(host_engine.copy[i].who));
	if (host_engine.stored)
		host_fail("the kernel ends without a wait until the store of %s has been read",
			HOST_WHERE(host_engine.stored->who));
}

#endif
