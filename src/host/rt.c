/* The runtime of kernels on the CPU: deadlock reports, running all blocks, and the table of functions that
 * kernels call. It runs one kernel in a child process, so its state is global. */
#include "host/rt_async.h"
#include "host/rt_warp_products.h"

/* ---- deadlocks --------------------------------------------------------------------------- */

static inline void host_say_wait(const struct host_thread *t)
{
	static const char *const together[] = { "shuffle", "UNIFORM", "WARP_SYNC", "elect",
		"groups_fence", "GROUPS_WAIT" };		/* ORDER host_together */

	const struct host_flag *f;

	switch (t->wait) {
	case HOST_WAIT_FLAG:
		f = host_flag_at(t->a);
		host_say("phase %u of %s (now in phase %u: %d of %d arrivals to come, %lld bytes)", t->b,
			host_flag_location(f).text, f->phase, f->pending, f->arrivals, (long long)f->bytes);
		break;
	case HOST_WAIT_BARRIER:
		host_say("barrier %u, where %d of %u threads are", t->a,
			host_sync.barrier[t->thread / host.threads * HOST_BARRIERS + (int)t->a].meeting.arrived, t->b);
		break;
	case HOST_WAIT_BLOCK:
		host_say("the other threads of the block");
		break;
	case HOST_WAIT_CLUSTER:
		host_say("the other threads of the cluster");
		break;
	case HOST_WAIT_WARP:
		host_say("the other threads of the warp in %s", together[t->a]);
		break;
	case HOST_WAIT_GROUPS:
		host_say("group %u of matrix products", t->a);
		break;
	case HOST_WAIT_STORES:
		host_say("its stores to have read shared memory");
		break;
	}
}

static inline bool host_waits_alike(const struct host_thread *a, const struct host_thread *b)
{
	return a->state == b->state && a->on == b->on && a->a == b->a && a->b == b->b &&
		a->task == b->task && a->iteration == b->iteration;
}

/* All threads wait, and no asynchronous work is left. */
static inline void host_deadlock(void)
{
	if (host.cluster > 1)
		host_say("blocks %d to %d, a cluster: deadlock", host.block, host.block + host.cluster - 1);
	else
		host_say("block %d: deadlock", host.block);
	for (int i = 0, n; i < host.all; i += n) {
		const struct host_thread *t = &host.thread[i];
		int first = i % host.threads;

		for (n = 1; first + n < host.threads && host_waits_alike(t, t + n); n++)
			;
		if (t->state == HOST_DONE)
			continue;
		if (host.cluster > 1)
			host_say("\n  block %d,", host_block_of(t));
		else
			host_say("\n ");
		host_say(" threads %d to %d at %s wait for ", first, first + n - 1, HOST_WHERE(*t));
		host_say_wait(t);
	}
	host_stop();
}

/* ---- tiles by a counter ------------------------------------------------------------------ */

/* On a device all blocks ask at once. Here one block runs after the other, so what a block gets is chosen at random: it passes over
 * some of the tiles that nobody has, as if others had asked for them, which then get them. The last block gets all that are left.
 * Each sequence of numbers that grow is one that a block may get. */
static inline void host_ask_start(void)
{
	static const uint32_t passed[] = { 0, 128, 192, 240 };

	host.ask_at = 0;
	host.ask_passes = host.block + host.cluster < host.launch->blocks ? passed[host_random(4)] : 0;
}

static int host_ask(uint32_t *counter, int last)
{
	int n = last + 1 - host.launch->blocks, got = n;	/* tiles of the counter; none */

	if (!host.asked)
		host.asked = host_alloc((size_t)n + 1, 1);
	if (host.ask_counter && host.ask_counter != counter)
		host_fail("tiles are asked for at two counters");
	host.ask_counter = counter;
	*counter = *counter >= (uint32_t)last ? 0 : *counter + 1;
	for (; got == n && host.ask_at < n; host.ask_at++)
		if (!host.asked[host.ask_at] && host_random(256) >= host.ask_passes)
			got = host.ask_at;
	host.asked[got] = 1;
	return got;
}

static inline void host_ask_end(void)
{
	if (host.ask_counter && *host.ask_counter)
		host_fail("the counter of tiles is %u at the end of the launch, not 0", *host.ask_counter);
}

/* ---- running ----------------------------------------------------------------------------- */

/* Start the cluster whose first block is `block`. */
static inline void host_block_start(int block)
{
	host.block = block;
	host.nready = host.ndone = 0;
	host_memory_start();
	host_sync_start();
	host_async_start();
	host_ask_start();
	host_change();
	for (int i = 0; i < host.cluster; i++)
		host.left[i] = host.threads;
	for (int i = 0; i < host.all; i++) {
		struct host_thread *t = &host.thread[i];

		t->thread = i;
		t->rank = (uint32_t)(i / host.threads);
		t->task = NULL;
		t->fences = 0;
		t->deposits = t->commits = t->registers = t->stores = 0;
		t->fenced = false;
		host_thread_start(t);
		host_make_ready(t);
	}
}

static inline void host_run_block(int block)
{
	host_block_start(block);
	while (host.ndone < host.all) {
		host_cluster_check();
		if (!host_random(HOST_CHANGE_EVERY))
			host_change();
		if (host.nready && host_random(256) >= host.eager)
			host_step_thread();
		else if (!host_async_step()) {
			if (!host.nready)
				host_deadlock();
			host_step_thread();
		}
	}
	host_async_end();
}

static inline void host_play(const struct host_launch *launch, void (*kernel)(void *const *args), int threads)
{
	host.launch = launch;
	host.kernel = kernel;
	host.threads = launch->threads;
	host.cluster = launch->cluster > 1 ? launch->cluster : 1;
	host.all = host.threads * host.cluster;
	host.random = launch->seed;
	host.warp = launch->warp;
	host.group = launch->group;
	host_catch_faults();
	if ((host.warp != HOST_WARP_LEAST && host.warp != HOST_WARP_MOST) || host.group < host.warp ||
	    host.group % host.warp)
		host_fail("a launch with warps of %d threads in groups of %d", host.warp, host.group);
	if (threads != launch->threads || threads < 1 || threads > HOST_THREADS_MAX ||
	    threads % host.warp || launch->shared_bytes < 1024 || launch->shared_bytes > 228 << 10)
		host_fail("a launch with %d threads and %lld bytes of shared memory", launch->threads,
			(long long)launch->shared_bytes);
	if (host.cluster > HOST_CLUSTER_MAX || launch->blocks % host.cluster)
		host_fail("a launch of %d blocks in clusters of %d", launch->blocks, host.cluster);
	host.elected = (int)host_random((uint32_t)host.warp);
	host_make_stacks();
	host_memory_open();
	host_products_open();
	for (int i = 0; i < launch->blocks; i += host.cluster)
		host_run_block(i);
	host_ask_end();
}

/* ---- the table --------------------------------------------------------------------------- */

static int host_thread_number(void)
{
	return host.self->thread % host.threads;
}

static int host_block_number(void)
{
	return host_block_of(host.self);
}

static void host_flag_new(uint32_t a, uint32_t arrivals, const char *name, int index)
{
	struct host_flag *f;

	a = host_here(a);
	host_flag_init(a, arrivals);
	f = host_flag_at(a);
	f->name = name;
	f->index = index;
}

static void host_warp_sync(void)
{
	host_meet(HOST_WARP_SYNC, 0, 0);
}

/* All warpgroups of a block together have 64 Ki registers. */
static void host_set_registers(int n)
{
	int all = 0, first = host.self->thread / host.threads * host.threads;

	if (n < 24 || n > 256 || n % 8)
		host_fail("setmaxnreg takes multiples of 8 from 24 to 256, not %d", n);
	host.self->registers = n;
	for (int i = 0; i < host.threads; i += host.group)
		all += host.group * host.thread[first + i].registers;
	if (all > 65536 / host.threads / 8 * 8 * host.threads)
		host_fail("the block's warpgroups ask for %d registers; their launch gave them %d", all,
			65536 / host.threads / 8 * 8 * host.threads);
}

const struct host_runtime host_runtime = {
	.play = host_play,
	.thread = host_thread_number,
	.block = host_block_number,
	.shared_base = host_shared_base,
	.at = host_at,
	.flag_init = host_flag_new,
	.flag_arrive = host_flag_arrive,
	.flag_arrive_at = host_flag_arrive_at,
	.flag_wait = host_flag_wait,
	.barrier_wait = host_barrier_wait,
	.barrier_pass = host_barrier_pass,
	.block_sync = host_block_sync,
	.cluster_sync = host_cluster_sync,
	.warp_sync = host_warp_sync,
	.uniform = host_uniform,
	.elect = host_elect,
	.shuffle = host_shuffle_from,
	.set_registers = host_set_registers,
	.fence = host_fence,
	.copy = host_copy_start,
	.store = host_store_start,
	.add = host_add_start,
	.stores_commit = host_stores_commit,
	.stores_read = host_stores_read,
	.groups_fence = host_groups_fence,
	.groups_commit = host_groups_commit,
	.groups_wait = host_groups_wait,
	.product = host_product,
	.sparse_product = host_sparse_product,
	.warp_product = host_warp_product,
	.mfma = host_mfma,
	.matrices = host_matrices,
	.get = host_get, .put_at = host_put_at,
	.put = host_put, .put_copied = host_put_copied,
	.ask = host_ask,
	.copy_dma = host_copy_dma, .dma_wait = host_dma_wait,
};
