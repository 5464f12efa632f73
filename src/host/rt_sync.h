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
	struct host_clocks clocks;
};

/* Threads that wait until all of them have come. */
struct host_meeting {
	int arrived;
	uint32_t generation;		/* how often all have come */
	struct host_clocks clocks;
};

struct host_barrier {
	struct host_meeting meeting;
	int threads;
	uint32_t came[HOST_THREADS_MAX];	/* 1 + the last generation at which a thread arrived */
};

enum host_together {
	HOST_SHUFFLE, HOST_UNIFORM, HOST_WARP_SYNC, HOST_ELECT, HOST_GROUPS_FENCE, HOST_GROUPS_WAIT,
	HOST_PRODUCT, HOST_MATRICES,
};

struct host_warp {
	struct host_meeting meeting;
	enum host_together what;
	union {
		float f;
		int i;
	} value[2][HOST_WARP_MOST];
	struct {
		uint32_t a[4], b[2];	/* operands of a product; a[0]: an address of matrices */
	} words[2][HOST_WARP_MOST];
};

static struct {
	struct host_flag flag[HOST_FLAGS_MAX];
	int nflags;
	struct host_barrier barrier[HOST_BARRIERS * HOST_CLUSTER_MAX];
	struct host_warp warp[HOST_WARPS_MAX * HOST_CLUSTER_MAX];
	struct host_meeting cluster;
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
	host_clocks_make(&f->clocks);
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
	host_clock_copy(f->clocks.passed, f->clocks.now);
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
	host_release(f->clocks.now);
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
	host_clock_join(f->clocks.now, clock);
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
	host_acquire(f->clocks.passed);
}

/* ---- meetings ---------------------------------------------------------------------- */

/* All have come: wake those that wait, among n threads from `first` on. */
static inline void host_meeting_end(struct host_meeting *m, int first, int n)
{
	m->arrived = 0;
	m->generation++;
	host_clock_copy(m->clocks.passed, m->clocks.now);
	host_wake(m, first, n);
}

/* Wait for the end of that generation. */
static inline void host_meeting_wait(struct host_meeting *m, uint32_t generation, enum host_wait wait, int a, int b)
{
	while (m->generation == generation)
		host_block(m, wait, (uint32_t)a, (uint32_t)b);
}

/* Arrive at a barrier of the block, and wait for the others unless that is HOST_NO_WAIT. */
enum { HOST_NO_WAIT = -1 };

static inline void host_barrier_meet(int id, int threads, int wait)
{
	int me = host.self->thread % host.threads;
	struct host_barrier *b = &host_sync.barrier[(int)host_rank() * HOST_BARRIERS + id];
	uint32_t generation = b->meeting.generation;

	if (b->came[me] == generation + 1)
		host_fail("barrier %d: the thread comes twice before the %d others have come once", id, threads - 1);
	if (b->meeting.arrived && b->threads != threads)
		host_fail("barrier %d: %d threads are given here, %d by the threads that came before", id,
			threads, b->threads);
	b->came[me] = generation + 1;
	b->threads = threads;
	host_release(b->meeting.clocks.now);
	if (++b->meeting.arrived == threads)
		host_meeting_end(&b->meeting, host.self->thread - me, host.threads);
	if (wait == HOST_NO_WAIT)
		return;
	host_meeting_wait(&b->meeting, generation, (enum host_wait)wait, id, threads);
	host_acquire(b->meeting.clocks.passed);
}

static inline void host_named_barrier(int id, int threads, int wait)
{
	if (id < 1 || id >= HOST_BARRIERS || threads < host.warp || threads % host.warp || threads > host.threads)
		host_fail("there is no barrier %d of %d threads", id, threads);
	host_pause();
	host_barrier_meet(id, threads, wait);
}

static inline void host_barrier_pass(int id, int threads)
{
	host_named_barrier(id, threads, HOST_NO_WAIT);
}

static inline void host_barrier_wait(int id, int threads)
{
	host_named_barrier(id, threads, HOST_WAIT_BARRIER);
}

/* All threads of the block. */
static inline void host_block_sync(void)
{
	host_barrier_meet(0, host.threads, HOST_WAIT_BLOCK);
}

/* All threads of the cluster that have not ended. */
static inline void host_cluster_sync(void)
{
	struct host_meeting *m = &host_sync.cluster;

	host_release(m->clocks.now);
	m->arrived++;
	host_meeting_wait(m, m->generation, HOST_WAIT_CLUSTER, 0, 0);
	host_acquire(m->clocks.passed);
}

/* Called by the scheduler: wakes the cluster when all of its threads have come. */
static inline void host_cluster_check(void)
{
	if (host_sync.cluster.arrived && host_sync.cluster.arrived + host.ndone >= host.all)
		host_meeting_end(&host_sync.cluster, 0, host.all);
}

/* All threads of a warp exchange values. Returns the half of `value` that has them, which is valid until the
 * exchange after the next one. */
static inline int host_meet(enum host_together what, float f, int i)
{
	int me = host.self->thread, first = me / host.warp * host.warp;
	struct host_warp *w = &host_sync.warp[me / host.warp];
	struct host_meeting *m = &w->meeting;
	uint32_t generation = m->generation;
	int half = generation & 1;

	if (m->arrived && w->what != what)
		host_fail("the threads of warp %d come together in different instructions", me / host.warp);
	w->what = what;
	if (what == HOST_SHUFFLE)
		w->value[half][me - first].f = f;
	else
		w->value[half][me - first].i = i;
	if (what == HOST_WARP_SYNC)
		host_release(m->clocks.now);
	if (++m->arrived == host.warp)
		host_meeting_end(m, first, host.warp);
	host_meeting_wait(m, generation, HOST_WAIT_WARP, (int)what, 0);
	if (what == HOST_WARP_SYNC)
		host_acquire(m->clocks.passed);
	return half;
}

static inline float host_shuffle_from(float x, int lane)
{
	struct host_warp *w = &host_sync.warp[host.self->thread / host.warp];

	return w->value[host_meet(HOST_SHUFFLE, x, 0)][lane & (host.warp - 1)].f;
}

static inline int host_uniform(int x)
{
	struct host_warp *w = &host_sync.warp[host.self->thread / host.warp];

	return w->value[host_meet(HOST_UNIFORM, 0, x)][0].i;
}

/* The hardware always elects the same thread, but does not say which: here a random one. */
static inline int host_elect(void)
{
	host_meet(HOST_ELECT, 0, 0);
	return host.self->thread % host.warp == host.elected;
}

/* ---- a block's ------------------------------------------------------------------------ */

static inline void host_sync_start(void)
{
	for (int i = 0; i < host_sync.nflags; i++)
		host_clocks_free(&host_sync.flag[i].clocks);
	host_sync.nflags = 0;
	for (int i = 0; i < HOST_BARRIERS * host.cluster; i++) {
		struct host_barrier *b = &host_sync.barrier[i];

		b->meeting.arrived = 0;
		b->meeting.generation = 0;
		host_clocks_make(&b->meeting.clocks);
		memset(b->came, 0, sizeof(b->came));
	}
	for (int i = 0; i < HOST_WARPS_MAX * host.cluster; i++) {
		host_sync.warp[i].meeting.arrived = 0;
		host_clocks_make(&host_sync.warp[i].meeting.clocks);
	}
	host_sync.cluster.arrived = 0;
	host_clocks_make(&host_sync.cluster.clocks);
}

#endif
