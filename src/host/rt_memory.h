/* rt_memory.h - shared memory, and the checks of its accesses.
 *
 * Addresses are 32-bit offsets, as on the GPU; dynamic shared memory begins at 1024. Each block of a
 * cluster has a window of its own, and the runtime adds the start of the window to the addresses that
 * its threads use. Memory holds NaN until it is written. Rules are checked for each byte:
 *
 * The asynchronous proxy (copies, matrix instructions) sees an ordinary write only after a fence by
 * the thread that wrote. A byte that a thread copied (cp.async) it also sees after a fence by a thread
 * that knows of the copy's end and then starts the asynchronous access; this is checked in race mode only.
 *
 * The other way round, in race mode: the asynchronous proxy may overwrite what a thread read by ordinary loads only
 * after a fence by that thread, or by the thread that starts the asynchronous access, once it knows of the read, and in its own block. Else
 * loads may still be under way, whatever the thread has signaled since.
 *
 * In race mode, vector clocks tell which accesses are ordered (FastTrack, Flanagan and Freund, PLDI 2009). Each thread
 * has a clock, and so has each warpgroup's queue of matrix instructions and each copy in flight. An access is ordered
 * after an earlier one if its clock has reached the time of the earlier one.
 */
#ifndef HOST_RT_MEMORY_H
#define HOST_RT_MEMORY_H

#include "host/rt_machine.h"

#define HOST_COPIED UINT32_MAX

/* An access: `thread` is a thread of the cluster, or stands for an asynchronous queue. */
struct host_access {
	const char *task;
	int iteration;
	uint32_t time;
	int thread;			/* -1: there was no access yet */
	uint32_t fences;		/* an ordinary access: the thread's fences before it */
};

/* The history of a word of four bytes, of a half or of a byte: a line of the cache. Most accesses are of complete words, whose
 * bytes have one history. Once one half or one byte is accessed alone, the word has parts with histories of their own, until
 * it is written completely. */
struct host_unit {
	/* of an ordinary write: thread + 1, and its fences before that; HOST_COPIED: a cp.async */
	uint32_t writer, fences;
	struct host_access write, *reads;
	uint32_t nreads, cap;		/* reads since the last write, and those there is memory for */
	struct {			/* of the last of `reads`, which is looked at most */
		uint32_t time, fences;
		int thread;
	} last;
	int nparts;			/* of a word: 2 or 4; 0: it has none */
};

/* A thread or an asynchronous queue that accesses shared memory. */
struct host_actor {
	struct host_access who;
	const uint32_t *clock;		/* NULL unless in race mode */
	const uint32_t *fenced;		/* async: the clock of the starting thread at its last fence */
	bool within;			/* async: all that it accesses is of that thread's block */
	bool async;
};

struct host_memory {
	unsigned char *bytes;
	struct host_unit *words;
	struct host_unit **parts;	/* four of each word, the halves' at 0 and 2, or NULL */
	uint32_t end;			/* one past a block's last address */
	uint32_t window;		/* from a block's memory to the next one's */
	int nclock;			/* entries of a clock */
	uint32_t *seen, trims;		/* scratch of host_trim_reads for each entry of a clock; its calls so far */
};

static struct host_memory host_shared;

/* ---- clocks ----------------------------------------------------------------------- */

static inline bool host_racing(void)
{
	return host.launch->race != 0;
}

/* The entries of a clock for asynchronous work. */
static inline int host_group_entry(int group)
{
	return host.all + group;
}

static inline int host_copy_entry(int copy)
{
	return host.all + HOST_GROUPS_MAX * host.cluster + copy;
}

static inline uint32_t *host_clock_new(void)
{
	return host_alloc((size_t)host_shared.nclock, sizeof(uint32_t));
}

/* These do nothing unless in race mode. */
static inline void host_clock_join(uint32_t *a, const uint32_t *b)
{
	int n = host_racing() ? host_shared.nclock : 0;

	for (int i = 0; i < n; i++)
		a[i] = a[i] > b[i] ? a[i] : b[i];
}

static inline void host_clock_meet(uint32_t *a, const uint32_t *b)
{
	for (int i = 0; i < host_shared.nclock; i++)
		a[i] = a[i] < b[i] ? a[i] : b[i];
}

static inline void host_clock_copy(uint32_t *a, const uint32_t *b)
{
	if (host_racing())
		memcpy(a, b, (size_t)host_shared.nclock * sizeof(*a));
}

/* Release: whoever acquires `to` is ordered after all that the thread did so far. */
static inline void host_release(uint32_t *to)
{
	if (!host_racing())
		return;
	host_clock_join(to, host.self->clock);
	host.self->clock[host.self->thread]++;
}

static inline void host_acquire(const uint32_t *from)
{
	host_clock_join(host.self->clock, from);
}

/* The clocks of an object by which threads wait for others. */
struct host_clocks {
	uint32_t *now, *passed;		/* of the arrivals so far; at the end of the last phase */
};

static inline void host_clocks_free(struct host_clocks *c)
{
	free(c->now);
	free(c->passed);
	*c = (struct host_clocks){ 0 };
}

static inline void host_clocks_make(struct host_clocks *c)
{
	host_clocks_free(c);
	if (host_racing())
		*c = (struct host_clocks){ host_clock_new(), host_clock_new() };
}

/* ---- addresses ---------------------------------------------------------------------- */

/* In a kernel, the high bits of an address are the block's rank, as on the hardware; in the runtime, the
 * windows of all blocks of the cluster follow each other. */
static inline uint32_t host_rank(void)
{
	return host.self->rank;
}

static inline uint32_t host_shared_base(void)
{
	return host_rank() << HOST_RANK_BIT | HOST_FIRST;
}

/* Address `at` of block number `block` of the cluster. */
static inline uint32_t host_address_in(uint32_t block, uint32_t at)
{
	if (at >= host_shared.window)
		host_fail("address %d in shared memory is outside of its %u bytes",
			(int)at - HOST_FIRST, host_shared.end - HOST_FIRST);
	return block * host_shared.window + at;
}

/* The thread's address `at`, but in block number `block` of the cluster. */
static inline uint32_t host_address(uint32_t block, uint32_t at)
{
	if (at >> HOST_RANK_BIT != host_rank())
		host_fail("address 0x%x is not one of the thread's block, %u of its cluster", at, host_rank());
	return host_address_in(block, at & HOST_IN_BLOCK);
}

static inline uint32_t host_here(uint32_t at)
{
	return host_address(host_rank(), at);
}

/* The block that owns an address, and its offset in that block's dynamic memory. */
static inline int host_owner(uint32_t at)
{
	return host.block + (int)(at / host_shared.window);
}

static inline int host_offset(uint32_t at)
{
	return (int)(at < host_shared.window ? at : at % host_shared.window) - HOST_FIRST;
}

/* The address to which a swizzle of so many bytes moves a byte; a swizzle of 0 moves none. */
static inline uint32_t host_swizzled(uint32_t address, int swizzle)
{
	uint32_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;

	return address ^ ((address >> 7 & mask) << 4);
}

/* ---- checking --------------------------------------------------------------------- */

static inline bool host_before(const struct host_access *a, const uint32_t *clock)
{
	return a->thread < 0 || a->time <= clock[a->thread];
}

static inline void host_unfenced(const struct host_actor *a, const char *what_a, int thread,
	const struct host_access *b, const char *what_b, uint32_t at)
{
	host_say("block %d: %s %s shared memory at %u asynchronously, which thread %d %s in %s without a fence "
		"(fence_async) in between", host_owner(at), HOST_WHERE(a->who), what_a, (unsigned)host_offset(at),
		thread % host.threads, what_b, HOST_WHERE(*b));
	host_stop();
}

#define host_race(a, what_a, b, what_b, address) do { \
	host_say("block %d: race in shared memory at %u: %s %s what %s %s, and nothing orders them", \
		host_owner(address), (unsigned)host_offset(address), HOST_WHERE(*(a)), what_a, \
		HOST_WHERE(*(b)), what_b); \
	host_stop(); \
} while (0)

/* Has the thread fenced after an access, before which it had executed `fences` fences, and did that fence happen before
 * `clock`? */
static inline bool host_knows_fence(int thread, uint32_t fences, const uint32_t *clock)
{
	const struct host_thread *t = &host.thread[thread];

	return t->fences > fences && t->fence_clock[fences] <= clock[thread];
}

static inline bool host_is_ordinary(const struct host_access *a)
{
	return a->thread >= 0 && a->thread < host.all;
}

/* Can read r be forgotten once the actor's read is recorded? Yes if r happened before it, and r is asynchronous, or of the
 * same thread, or its thread has fenced since and the actor knows that. Then a write that is wrong because of r is wrong
 * because of the actor's read, too. */
static inline bool host_is_covered(const struct host_access *r, const struct host_actor *a)
{
	return host_before(r, a->clock) && (!host_is_ordinary(r) || r->thread == a->who.thread ||
		host_knows_fence(r->thread, r->fences, a->clock));
}

/* Forget reads that a later write need not be compared with: those that the caller's read covers, and all but the last of
 * each thread. If these are few the full list becomes longer, too. */
static inline void host_trim_reads(struct host_unit *u, const struct host_actor *a)
{
	uint32_t first = u->nreads;	/* of those that stay, which move to the end */

	host_shared.trims++;
	for (uint32_t i = u->nreads; i-- > 0;) {
		const struct host_access r = u->reads[i];

		if (host_is_covered(&r, a) || host_shared.seen[r.thread] == host_shared.trims)
			continue;
		host_shared.seen[r.thread] = host_shared.trims;
		u->reads[--first] = r;
	}
	u->nreads -= first;
	if (first)
		memmove(u->reads, u->reads + first, u->nreads * sizeof(*u->reads));
	if (first && first >= u->cap / 4)
		return;
	u->cap = u->cap ? 2 * u->cap : 2;
	u->reads = realloc(u->reads, u->cap * sizeof(*u->reads));
	if (!u->reads)
		host_fail("out of memory");
}

/* Many threads read the same byte between two writes. Each read is added to the list at once, and old ones are
 * forgotten when the list is full: to look for one at each read would take a time that grows with their number. */
static inline void host_watch_read(struct host_unit *u, const struct host_actor *a, uint32_t at)
{
	struct host_access last;

	if (!host_before(&u->write, a->clock))
		host_race(&a->who, "reads", &u->write, "writes", at);
	last = (struct host_access){ .time = u->last.time, .thread = u->last.thread, .fences = u->last.fences };
	u->last.time = a->who.time;
	u->last.thread = a->who.thread;
	u->last.fences = a->who.fences;
	if (u->nreads && host_is_covered(&last, a)) {
		u->reads[u->nreads - 1] = a->who;
		return;
	}
	if (u->nreads == u->cap)
		host_trim_reads(u, a);
	u->reads[u->nreads++] = a->who;
}

static inline void host_watch_write(struct host_unit *u, const struct host_actor *a, uint32_t at)
{
	if (!host_before(&u->write, a->clock))
		host_race(&a->who, "overwrites", &u->write, "writes", at);
	for (uint32_t i = 0; i < u->nreads; i++) {
		const struct host_access *r = &u->reads[i];

		if (!host_before(r, a->clock))
			host_race(&a->who, "overwrites", r, "reads", at);
		if (a->async && host_is_ordinary(r) && !host_knows_fence(r->thread, r->fences, a->clock) &&
		    !(a->fenced && a->within && r->time <= a->fenced[r->thread]))
			host_unfenced(a, "overwrites", r->thread, r, "read", at);
	}
	u->nreads = 0;
	u->write = a->who;
}

static inline bool host_fenced(const struct host_unit *u, const struct host_actor *a)
{
	const struct host_thread *t = &host.thread[u->writer - 1];
	uint32_t i = 0;

	if (u->fences == HOST_COPIED && (!a->clock || (a->fenced && u->write.time <= a->fenced[u->writer - 1])))
		return true;
	if (u->fences == HOST_COPIED) {
		while (i < t->fences && t->fence_clock[i] < u->write.time)
			i++;
		return i < t->fences && t->fence_clock[i] <= a->clock[u->writer - 1];
	}
	return t->fences > u->fences && (!a->clock || t->fence_clock[u->fences] <= a->clock[u->writer - 1]);
}

static inline void host_access_unit(struct host_unit *u, bool write, const struct host_actor *a, uint32_t at)
{
	if (a->async && u->writer && !host_fenced(u, a))
		host_unfenced(a, "reads or overwrites", (int)u->writer - 1, &u->write, "wrote", at);
	if (a->clock && write)
		host_watch_write(u, a, at);
	else if (a->clock)
		host_watch_read(u, a, at);
	if (!write)
		return;
	u->writer = a->async ? 0 : (uint32_t)a->who.thread + 1;
	u->fences = a->async ? 0 : host.self->fences;
	u->write.task = a->who.task;
	u->write.iteration = a->who.iteration;
}

static inline void host_copy_history(struct host_unit *to, const struct host_unit *from)
{
	struct host_unit old = *to;

	*to = *from;
	to->reads = old.reads;
	to->cap = old.cap;
	if (to->cap < to->nreads) {
		to->cap = from->cap;
		to->reads = realloc(to->reads, to->cap * sizeof(*to->reads));
		if (!to->reads)
			host_fail("out of memory");
	}
	if (to->nreads)
		memcpy(to->reads, from->reads, to->nreads * sizeof(*to->reads));
}

static inline void host_split_word(uint32_t word, int nparts)
{
	struct host_unit *w = &host_shared.words[word], *part = host_shared.parts[word];

	if (!part)
		part = host_shared.parts[word] = host_alloc(4, sizeof(*part));
	for (int i = 0; i < 4 && !w->nparts; i += 4 / nparts)
		host_copy_history(&part[i], w);
	for (int i = 1; i < 4 && w->nparts; i += 2)
		host_copy_history(&part[i], &part[i - 1]);
	w->nparts = nparts;
}

/* All bytes of the word have just been written together. */
static inline void host_join_word(uint32_t word)
{
	struct host_unit *w = &host_shared.words[word], old = *w;

	*w = host_shared.parts[word][0];
	w->reads = old.reads;
	w->cap = old.cap;
	w->nparts = 0;
}

/* The history of the byte: its part's, or its word's. */
static inline struct host_unit *host_unit_of(uint32_t at)
{
	struct host_unit *w = &host_shared.words[at / 4];

	return w->nparts ? &host_shared.parts[at / 4][w->nparts == 2 ? at & 2 : at & 3] : w;
}

/* Check an access of n bytes, a power of two, and return its memory. */
static inline unsigned char *host_access(uint32_t at, uint32_t n, bool write, const struct host_actor *a)
{
	if (host_offset(at) < 0 || host_offset(at) + HOST_FIRST + n > host_shared.end || at & (n - 1))
		host_fail("address %d of %u bytes in shared memory is outside of its %u bytes or not "
			"aligned", host_offset(at), n, host_shared.end - HOST_FIRST);
	if (!write && !a->async && !a->clock)
		return host_shared.bytes + at;	/* no rule is about it */
	for (uint32_t i = at, bytes; i < at + n; i += bytes) {
		struct host_unit *w = &host_shared.words[i / 4];
		int needs;

		bytes = at + n - i < 4 - i % 4 ? at + n - i : 4 - i % 4;	/* of this word */
		needs = bytes == 4 ? 0 : bytes == 2 && i % 2 == 0 ? 2 : 4;
		if (w->nparts < needs)
			host_split_word(i / 4, needs);
		if (!w->nparts) {
			host_access_unit(w, write, a, i);
			continue;
		}
		for (uint32_t k = i; k < i + bytes; k += 4 / (uint32_t)w->nparts)
			host_access_unit(host_unit_of(k), write, a, k);
		if (bytes == 4 && write)
			host_join_word(i / 4);
	}
	return host_shared.bytes + at;
}

/* ---- ordinary accesses ------------------------------------------------------------- */

/* The thread that runs. Only what has changed is written: each access is copied to the memory's history by wider loads than
 * these stores, which the processor cannot forward, and would otherwise wait until all earlier stores are in the cache. */
static inline const struct host_actor *host_me(void)
{
	static struct host_actor actors[HOST_ALL_MAX];
	const struct host_thread *t = host.self;
	struct host_actor *a = &actors[t->thread];
	uint32_t time = t->clock ? t->clock[t->thread] : 0;

	if (a->who.task != t->task)
		a->who.task = t->task;
	if (a->who.iteration != t->iteration)
		a->who.iteration = t->iteration;
	if (a->who.time != time)
		a->who.time = time;
	if (a->who.thread != t->thread)
		a->who.thread = t->thread;
	if (a->who.fences != t->fences)
		a->who.fences = t->fences;
	if (a->clock != t->clock)
		a->clock = t->clock;
	return a;
}

/* memcpy of the sizes that kernels access at once. For two bytes memcpy of glibc makes two stores, one byte of which overlap;
 * the processor cannot forward them to the load that follows, which then waits until all earlier stores are in the cache. */
static inline void host_move(void *to, const void *from, uint32_t n)
{
	switch (n) {
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	case 16:
		memcpy(to, from, 16);
		break;
	default:
		memcpy(to, from, n);
	}
}

static inline void host_get(uint32_t at, void *to, uint32_t n)
{
	host_move(to, host_access(host_here(at), n, false, host_me()), n);
}

static inline void host_put(uint32_t at, const void *from, uint32_t n)
{
	host_move(host_access(host_here(at), n, true, host_me()), from, n);
}

static inline void host_put_at(uint32_t at, int block, const void *from, uint32_t n)
{
	if (block < 0 || block >= host.cluster)
		host_fail("the cluster has no block %d", block);
	if (!host.left[block])
		host_fail("a write to block %d of the cluster, of which all threads have ended", block);
	host_move(host_access(host_address((uint32_t)block, at), n, true, host_me()), from, n);
}

/* A cp.async. Its completion is tracked in race mode only, by the clocks. */
static inline void host_put_copied(uint32_t at, const void *from, uint32_t n)
{
	host_put(at, from, n);
	for (uint32_t i = host_here(at), end = i + n; i < end; i++)
		host_unit_of(i)->fences = HOST_COPIED;
}

static inline void host_fence(void)
{
	struct host_thread *t = host.self;

	if (t->clock && t->fences == t->fences_cap) {
		t->fences_cap = t->fences_cap ? 2 * t->fences_cap : 16;
		t->fence_clock = realloc(t->fence_clock, t->fences_cap * sizeof(uint32_t));
		if (!t->fence_clock)
			host_fail("out of memory");
	}
	if (t->clock)
		t->fence_clock[t->fences] = t->clock[t->thread];
	t->fences++;
	if (!t->clock)
		return;
	if (!t->fence_seen)
		t->fence_seen = host_clock_new();
	host_clock_copy(t->fence_seen, t->clock);
}

/* ---- a block's ----------------------------------------------------------------------- */

static inline void host_memory_open(void)
{
	size_t nwords;

	host_shared.end = (uint32_t)(host.launch->shared_bytes - 1024 + HOST_FIRST + 15) & ~15u;
	host_shared.window = (host_shared.end + 1023) & ~1023u;	/* swizzling depends on the address */
	host_shared.bytes = host_alloc((size_t)host.cluster, host_shared.window);
	nwords = (size_t)host.cluster * host_shared.window / 4;
	host_shared.words = host_map_memory(nwords * sizeof(*host_shared.words));
	host_shared.parts = host_map_memory(nwords * sizeof(*host_shared.parts));
	madvise(host_shared.words, nwords * sizeof(*host_shared.words), MADV_HUGEPAGE);
	host_shared.nclock = host.all + (HOST_GROUPS_MAX + HOST_COPIES_MAX) * host.cluster;
	host_shared.seen = host_clock_new();
	for (int i = 0; i < host.all && host_racing(); i++)
		host.thread[i].clock = host_clock_new();
}

static inline void host_memory_start(void)
{
	uint32_t bytes = (uint32_t)host.cluster * host_shared.window;

	memset(host_shared.bytes, 0xff, bytes);
	for (uint32_t i = 0; i < bytes / 4; i++) {
		struct host_unit *w = &host_shared.words[i];

		w->write = (struct host_access){ .thread = -1 };
		w->writer = 0;
		w->nreads = 0;
		w->nparts = 0;
	}
	for (int i = 0; i < host.all && host_racing(); i++) {
		memset(host.thread[i].clock, 0, (size_t)host_shared.nclock * sizeof(uint32_t));
		host.thread[i].clock[i] = 1;
	}
}

#endif
