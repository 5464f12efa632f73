/* rt_sync.h - flags, named barriers, and the collective operations of warps and clusters. */
#ifndef HOST_RT_SYNC_H
#define HOST_RT_SYNC_H

#include "host/rt_memory.h"

enum {
	HOST_FLAGS_MAX = 4096,
	HOST_BARRIERS = 16,		/* of a block; number 0 is that of __syncthreads */
	HOST_BYTES_MAX = (1 << 20) - 1,	/* the most that a flag can expect (PTX ISA, mbarrier) */
	HOST_PENDING_MAX = (1 << 20) - 1,
};

/* An mbarrier. */
struct host_flag {
	uint32_t address;
	const char *name;		/* "load_a complete", or NULL */
	int index, arrivals, pending;
	int64_t bytes;			/* still expected; below 0: they came before flag_expect */
	uint32_t phase;			/* the present one, counted from 0 */
	uint32_t *clock, *passed;	/* of arrivals so far; at the end of the last phase */
};

struct host_barrier {
	int threads, arrived;
	uint32_t generation;
	uint32_t came[HOST_THREADS_MAX];	/* 1 + the last generation at which a thread arrived */
	uint32_t *clock, *passed;
};

enum host_together {
	HOST_SHUFFLE, HOST_UNIFORM, HOST_WARP_SYNC, HOST_ELECT, HOST_GROUPS_FENCE, HOST_GROUPS_WAIT,
	HOST_PRODUCT,
};

struct host_warp {
	int arrived;
	enum host_together what;
	uint32_t generation;
	union {
		float f;
		int i;
	} value[2][HOST_WARP];
	struct {
		uint32_t a[4], b[2];	/* operands of a product */
	} words[2][HOST_WARP];
	uint32_t *clock, *passed;
};

static struct {
	struct host_flag flag[HOST_FLAGS_MAX];
	int nflags;
	struct host_barrier barrier[HOST_BARRIERS * HOST_CLUSTER_MAX];
	struct host_warp warp[HOST_WARPS_MAX * HOST_CLUSTER_MAX];
	uint32_t generation, *clock, *passed;	/* of cluster_sync */
} host_sync;

/* ---- flags ------------------------------------------------------------------------- */

static inline struct host_flag *host_find_flag(uint32_t address)
{
	for (int i = 0; i < host_sync.nflags; i++)
		if (host_sync.flag[i].address == address)
			return &host_sync.flag[i];
	return NULL;
}

static inline struct host_location host_flag_location(const struct host_flag *f)
{
	struct host_location p;

	if (f->name && host.cluster > 1)
		snprintf(p.text, sizeof(p.text), "flag '%s'[%d] of block %d", f->name, f->index,
			host_owner(f->address));
	else if (f->name)
		snprintf(p.text, sizeof(p.text), "flag '%s'[%d]", f->name, f->index);
	else
		snprintf(p.text, sizeof(p.text), "flag at %d", host_offset(f->address));
	return p;
}

static inline struct host_flag *host_flag_at(uint32_t address)
{
	struct host_flag *f = host_find_flag(address);

	if (!f)
		host_fail("there is no flag at %d%s", host_offset(address), host.cluster == 1 ? "" : " in that block");
	return f;
}

static inline void host_flag_init(uint32_t address, uint32_t arrivals)
{
	struct host_flag *f = host_find_flag(address);

	if (address % 8 || host_offset(address) < 0 || address % host_shared.window + 8 > host_shared.end)
		host_fail("a flag at %d is outside of shared memory or not aligned to 8", host_offset(address));
	if (f || !arrivals || arrivals > HOST_PENDING_MAX)
		host_fail("the flag at %d is made %s", host_offset(address), f ? "twice" :
			"for an impossible number of arrivals");
	if (host_sync.nflags == HOST_FLAGS_MAX)
		host_fail("more than %d flags", HOST_FLAGS_MAX);
	f = &host_sync.flag[host_sync.nflags++];
	*f = (struct host_flag){ .address = address, .arrivals = (int)arrivals, .pending = (int)arrivals };
	if (!host_racing())
		return;
	f->clock = host_clock_new();
	f->passed = host_clock_new();
}

/* The phase ends when all arrivals and all bytes have come. */
static inline void host_flag_check(struct host_flag *f)
{
	if (f->pending || f->bytes > 0)
		return;
	if (f->bytes < 0)
		host_fail("%s: %lld bytes more have come than were expected in phase %u",
			host_flag_location(f).text, (long long)-f->bytes, f->phase);
	f->phase++;
	f->pending = f->arrivals;
	if (host_racing())
		host_clock_copy(f->passed, f->clock);
	host_wake(f, (int)(f->address / host_shared.window) * host.threads, host.threads);
}

/* Arrive at a flag by its address in the cluster. */
static inline void host_flag_arrive_for(uint32_t address, uint32_t bytes)
{
	struct host_flag *f = host_flag_at(address);

	host_pause();
	if (!host.left[address / host_shared.window])
		host_fail("%s: an arrival after all threads of that block have ended", host_flag_location(f).text);
	if (!f->pending)
		host_fail("%s: an arrival too many in phase %u, which takes %d and waits only for %lld bytes",
			host_flag_location(f).text, f->phase, f->arrivals, (long long)f->bytes);
	f->bytes += bytes;
	if (f->bytes > HOST_BYTES_MAX)
		host_fail("%s: %lld bytes expected in a phase; the most is %d",
			host_flag_location(f).text, (long long)f->bytes, HOST_BYTES_MAX);
	if (host_racing())
		host_release(f->clock);
	f->pending--;
	host_flag_check(f);
}

static inline void host_flag_arrive(uint32_t address, uint32_t bytes)
{
	host_flag_arrive_for(host_here(address), bytes);
}

static inline void host_flag_arrive_at(uint32_t address, int block)
{
	if (block < 0 || block >= host.cluster)
		host_fail("the cluster has no block %d", block);
	host_flag_arrive_for(host_address((uint32_t)block, address), 0);
}

/* n bytes of a copy have come. */
static inline void host_flag_bytes(struct host_flag *f, int64_t n, const uint32_t *clock)
{
	f->bytes -= n;
	if (f->bytes < -HOST_BYTES_MAX)
		host_fail("%s: %lld bytes more have come than were expected in phase %u",
			host_flag_location(f).text, (long long)-f->bytes, f->phase);
	if (host_racing())
		host_clock_join(f->clock, clock);
	host_flag_check(f);
}

/* Wait until phase number `phase` has passed. The hardware compares only its parity: a thread that comes
 * after another phase has passed, too, would wait for the wrong one, so that is an error. */
static inline void host_flag_wait(uint32_t address, uint32_t phase)
{
	struct host_flag *f = host_flag_at(host_here(address));

	host_pause();
	while (f->phase <= phase)
		host_block(f, HOST_WAIT_FLAG, f->address, phase);
	if (f->phase > phase + 1)
		host_fail("%s: a wait for phase %u, but phase %u has passed as well; by its parity "
			"this would wait for the wrong one", host_flag_location(f).text, phase,
			f->phase - 1);
	host_acquire(f->passed);
}

/* ---- named barriers ---------------------------------------------------------------- */

static inline void host_barrier_arrive(struct host_barrier *b, int id, int threads)
{
	int me = host.self->thread % host.threads;

	if (b->came[me] == b->generation + 1)
		host_fail("barrier %d: the thread comes twice before the %d others have come once", id, threads - 1);
	if (b->arrived && b->threads != threads)
		host_fail("barrier %d: %d threads are given here, %d by the threads that came before", id,
			threads, b->threads);
	b->came[me] = b->generation + 1;
	b->threads = threads;
	if (host_racing())
		host_release(b->clock);
	if (++b->arrived < threads)
		return;
	b->arrived = 0;
	b->generation++;
	if (host_racing())
		host_clock_copy(b->passed, b->clock);
	host_wake(b, host.self->thread - me, host.threads);
}

static inline struct host_barrier *host_own_barrier(int id)
{
	return &host_sync.barrier[host.self->thread / host.threads * HOST_BARRIERS + id];
}

static inline struct host_barrier *host_barrier_at(int id, int threads)
{
	if (id < 1 || id >= HOST_BARRIERS || threads < HOST_WARP || threads % HOST_WARP || threads > host.threads)
		host_fail("there is no barrier %d of %d threads", id, threads);
	host_pause();
	return host_own_barrier(id);
}

static inline void host_barrier_pass(int id, int threads)
{
	host_barrier_arrive(host_barrier_at(id, threads), id, threads);
}

static inline void host_barrier_wait(int id, int threads)
{
	struct host_barrier *b = host_barrier_at(id, threads);
	uint32_t generation = b->generation;

	host_barrier_arrive(b, id, threads);
	while (b->generation == generation)
		host_block(b, HOST_WAIT_BARRIER, (uint32_t)id, (uint32_t)threads);
	host_acquire(b->passed);
}

/* All threads of the block. */
static inline void host_block_sync(void)
{
	struct host_barrier *b = host_own_barrier(0);
	uint32_t generation = b->generation;

	host_barrier_arrive(b, 0, host.threads);
	while (b->generation == generation)
		host_block(b, HOST_WAIT_BLOCK, 0, 0);
	host_acquire(b->passed);
}

/* All threads of the cluster that have not ended. */
static inline void host_cluster_sync(void)
{
	uint32_t generation = host_sync.generation;

	if (host_racing())
		host_release(host_sync.clock);
	host.meeting++;
	while (host_sync.generation == generation)
		host_block(&host_sync.generation, HOST_WAIT_CLUSTER, 0, 0);
	host_acquire(host_sync.passed);
}

/* Called by the scheduler: wakes the cluster when all of its threads have come. */
static inline void host_cluster_check(void)
{
	if (!host.meeting || host.meeting + host.ndone < host.all)
		return;
	host.meeting = 0;
	host_sync.generation++;
	if (host_racing())
		host_clock_copy(host_sync.passed, host_sync.clock);
	host_wake(&host_sync.generation, 0, host.all);
}

/* ---- warps -------------------------------------------------------------------------- */

/* All 32 threads exchange values. Returns the half of `value` that has them, which is valid until the
 * exchange after the next one. */
static inline int host_meet(enum host_together what, float f, int i)
{
	int me = host.self->thread, first = me / HOST_WARP * HOST_WARP;
	struct host_warp *w = &host_sync.warp[me / HOST_WARP];
	uint32_t generation = w->generation;
	int half = generation & 1;

	if (w->arrived && w->what != what)
		host_fail("the threads of warp %d come together in different instructions", me / HOST_WARP);
	w->what = what;
	if (what == HOST_SHUFFLE)
		w->value[half][me - first].f = f;
	else
		w->value[half][me - first].i = i;
	if (host_racing() && what == HOST_WARP_SYNC)
		host_release(w->clock);
	if (++w->arrived == HOST_WARP) {
		w->arrived = 0;
		w->generation++;
		if (host_racing())
			host_clock_copy(w->passed, w->clock);
		host_wake(w, first, HOST_WARP);
	}
	while (w->generation == generation)
		host_block(w, HOST_WAIT_WARP, (uint32_t)what, 0);
	if (host_racing() && what == HOST_WARP_SYNC)
		host_acquire(w->passed);
	return half;
}

static inline float host_shuffle_from(float x, int lane)
{
	int me = host.self->thread;
	int half = host_meet(HOST_SHUFFLE, x, 0);

	return host_sync.warp[me / HOST_WARP].value[half][lane & 31].f;
}

static inline int host_uniform(int x)
{
	int me = host.self->thread;
	int half = host_meet(HOST_UNIFORM, 0, x);

	return host_sync.warp[me / HOST_WARP].value[half][0].i;
}

/* The hardware always elects the same thread, but does not say which: here a random one. */
static inline int host_elect(void)
{
	host_meet(HOST_ELECT, 0, 0);
	return host.self->thread % HOST_WARP == host.elected;
}

/* ---- a block's ------------------------------------------------------------------------ */

static inline void host_new_clocks(uint32_t **clock, uint32_t **passed)
{
	free(*clock);
	free(*passed);
	*clock = host_clock_new();
	*passed = host_clock_new();
}

static inline void host_sync_start(void)
{
	for (int i = 0; i < host_sync.nflags; i++) {
		free(host_sync.flag[i].clock);
		free(host_sync.flag[i].passed);
	}
	host_sync.nflags = 0;
	for (int i = 0; i < HOST_BARRIERS * host.cluster && host_racing(); i++)
		host_new_clocks(&host_sync.barrier[i].clock, &host_sync.barrier[i].passed);
	for (int i = 0; i < HOST_WARPS_MAX * host.cluster && host_racing(); i++)
		host_new_clocks(&host_sync.warp[i].clock, &host_sync.warp[i].passed);
	if (host_racing())
		host_new_clocks(&host_sync.clock, &host_sync.passed);
	host.meeting = 0;
	for (int i = 0; i < HOST_BARRIERS * host.cluster; i++) {
		host_sync.barrier[i].arrived = 0;
		host_sync.barrier[i].generation = 0;
		memset(host_sync.barrier[i].came, 0, sizeof(host_sync.barrier[i].came));
	}
	for (int i = 0; i < HOST_WARPS_MAX * host.cluster; i++)
		host_sync.warp[i].arrived = 0;
}

#endif
