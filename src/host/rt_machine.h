/* rt_machine.h - the threads of a block as coroutines, and their scheduler.
 *
 * The blocks of a cluster run together. Threads, warps, warpgroups and bytes of shared memory are
 * numbered across all blocks of the cluster.
 *
 * All coroutines run in one OS thread. A coroutine runs until it blocks; then the scheduler chooses at
 * random, by the seed, another that is ready or a step of asynchronous work. Warps have priorities
 * that change from time to time, so that some run far ahead of others. Asynchronous work is sometimes
 * done early, sometimes only when no thread can go on without it.
 */
#ifndef HOST_RT_MACHINE_H
#define HOST_RT_MACHINE_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/rt_abi.h"

/* A coroutine's registers, while another one runs. */
#if defined(__x86_64__)
typedef void *host_context;		/* the stack pointer; the registers are on the stack */
void host_switch(host_context *from, host_context *to) __attribute__((visibility("hidden")));
__asm__(".text\n"
	"host_switch:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n"
	"	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq (%rsi), %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n"
	"	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	popq %rcx\n	jmpq *%rcx\n");
#else
#include <ucontext.h>
typedef ucontext_t host_context;
#define host_switch swapcontext
#endif

enum {
	HOST_THREADS_MAX = 1024,
	HOST_WARP_LEAST = 32, HOST_WARP_MOST = 64,	/* threads of a warp, which the launch says */
	HOST_WARPS_MAX = HOST_THREADS_MAX / HOST_WARP_LEAST,
	HOST_GROUP = 128,		/* threads that issue an asynchronous product together: */
	HOST_GROUP_WARPS = HOST_GROUP / HOST_WARP_LEAST,
	HOST_GROUPS_MAX = HOST_THREADS_MAX / HOST_GROUP,
	HOST_ALL_MAX = HOST_THREADS_MAX * HOST_CLUSTER_MAX,
	HOST_COPIES_MAX = 256,		/* under way at once, for each block of a cluster; others wait */
	HOST_STACK = 512 << 10, HOST_GUARD = 4096,
	HOST_CHANGE_EVERY = 256,	/* steps between changes of priorities, on average */
	HOST_PAUSE_EVERY = 16,		/* points passed between pauses, on average */
};

enum host_state { HOST_READY, HOST_BLOCKED, HOST_DONE };

/* What a blocked thread waits for. The comments say what its numbers a and b are. */
enum host_wait {
	HOST_WAIT_FLAG,			/* address, phase */
	HOST_WAIT_BARRIER,		/* id, threads */
	HOST_WAIT_BLOCK,
	HOST_WAIT_CLUSTER,
	HOST_WAIT_WARP,			/* kind of instruction */
	HOST_WAIT_GROUPS,		/* groups */
	HOST_WAIT_STORES,
};

struct host_thread {
	host_context context;
	int thread, ready_at;		/* its number; its index in host.ready */
	uint32_t rank;			/* of its block in the cluster */
	enum host_state state;
	const void *on;			/* the object that wakes it */
	enum host_wait wait;
	uint32_t a, b;
	const char *task;		/* the sTask that it is in, set by AT */
	int iteration;
	uint32_t *clock;		/* vector clock; race mode */
	uint32_t fences, fences_cap;	/* fences of the asynchronous proxy so far */
	uint32_t *fence_clock, *fence_seen;	/* its own time at each fence; its clock at the last one */
	int deposits, commits, registers;
	int waited;			/* groups of products that it has waited for, */
	int sparse;			/* and up to its latest one with a sparse product */
	int stores;			/* groups of stores that it has committed */
	bool fenced;			/* groups_fence since it last waited for groups */
};

struct host_machine {
	const struct host_launch *launch;
	void (*kernel)(void *const *args);
	struct host_thread *self, thread[HOST_ALL_MAX];
	host_context context;
	char *stacks;
	int threads, block;		/* threads of a block; the first block that runs */
	int cluster, all;		/* how many blocks run, and threads of all of them */
	int warp, group;		/* threads of a warp, of a group of warps */
	int ready[HOST_ALL_MAX], nready, ndone;
	int left[HOST_CLUSTER_MAX];	/* threads of each block that are not done */
	uint32_t priority[HOST_WARPS_MAX * HOST_CLUSTER_MAX];
	uint32_t eager;			/* how often of 256 asynchronous work comes first */
	int elected;			/* lane */
	/* tiles that blocks ask for: which are taken; from which on the block that runs may get one; how often of 256 it
	 * passes over one */
	unsigned char *asked;
	uint32_t *ask_counter, ask_passes;
	int ask_at;
	uint64_t random;
};

static struct host_machine host;

/* ---- random numbers ---------------------------------------------------------------------- */

static inline uint32_t host_random(uint32_t n)
{
	uint64_t z = host.random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((((z ^ (z >> 31)) >> 32) * n) >> 32);
}

/* ---- reports --------------------------------------------------------------------- */

struct host_location {
	char text[160];
};

static inline struct host_location host_location(const char *task, int iteration)
{
	struct host_location p;

	if (task)
		snprintf(p.text, sizeof(p.text), "'%s' iteration %d", task, iteration);
	else
		snprintf(p.text, sizeof(p.text), "its start");
	return p;
}

static inline void host_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void host_say(const char *fmt, ...)
{
	size_t used = strlen(host.launch->report);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(host.launch->report + used, host.launch->report_size - used, fmt, ap);
	va_end(ap);
}

__attribute__((noreturn)) static inline void host_stop(void)
{
	if (host.launch->stopped)
		host.launch->stopped(host.launch->report);
	_exit(HOST_FAILED);
}

/* The number of the thread's block in the grid. */
static inline int host_block_of(const struct host_thread *t)
{
	return host.block + t->thread / host.threads;
}

/* As text: where a thread is, or where an access comes from. */
#define HOST_WHERE(x) host_location((x).task, (x).iteration).text

/* Report an error of the thread that runs, and end the process. */
#define host_fail(...) do { \
	if (host.self) \
		host_say("block %d, thread %d at %s: ", host_block_of(host.self), \
			host.self->thread % host.threads, host_location(host.self->task, host.self->iteration).text); \
	else \
		host_say("block %d: ", host.block); \
	host_say(__VA_ARGS__); \
	host_stop(); \
} while (0)

static inline void *host_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		host_fail("out of memory");
	return p;
}

/* ---- switching ------------------------------------------------------------------- */

static inline void host_to_scheduler(void)
{
	host_switch(&host.self->context, &host.context);
}

static void host_thread_main(void)
{
	host.kernel(host.launch->args);
	host.self->state = HOST_DONE;
	host.ndone++;
	host.left[host.self->thread / host.threads]--;
	host_to_scheduler();
	abort();
}

static inline void host_thread_start(struct host_thread *t)
{
	char *stack = host.stacks + (size_t)t->thread * (HOST_STACK + HOST_GUARD) + HOST_GUARD;
#if defined(__x86_64__)
	void **top = (void **)(stack + HOST_STACK - 64);

	*--top = NULL;			/* the stack is 8 past a multiple of 16 on entry */
	*--top = (void *)(uintptr_t)host_thread_main;
	t->context = top - 6;
#else
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = stack;
	t->context.uc_stack.ss_size = HOST_STACK;
	makecontext(&t->context, host_thread_main, 0);
#endif
}

static inline void host_run_thread(struct host_thread *t)
{
	host.self = t;
	host_switch(&host.context, &t->context);
	host.self = NULL;
}

/* ---- blocking and waking ----------------------------------------------------------- */

static inline void host_make_ready(struct host_thread *t)
{
	t->state = HOST_READY;
	t->ready_at = host.nready;
	host.ready[host.nready++] = t->thread;
}

/* Block until host_wake is called for `on`. The caller must check its condition again. */
static inline void host_block(const void *on, enum host_wait wait, uint32_t a, uint32_t b)
{
	struct host_thread *t = host.self;

	t->on = on;
	t->wait = wait;
	t->a = a;
	t->b = b;
	t->state = HOST_BLOCKED;
	host_to_scheduler();
}

static inline void host_wake(const void *on, int first, int n)
{
	for (int i = first; i < first + n && i < host.all; i++)
		if (host.thread[i].state == HOST_BLOCKED && host.thread[i].on == on)
			host_make_ready(&host.thread[i]);
}

/* A point at which another coroutine may run. */
static inline void host_pause(void)
{
	if (!host_random(HOST_PAUSE_EVERY))
		host_to_scheduler();
}

static inline void host_at(const char *task, int iteration)
{
	host.self->task = task;
	host.self->iteration = iteration;
	host_pause();
}

/* ---- scheduling -------------------------------------------------------------------- */

static inline void host_change(void)
{
	static const uint32_t eager[] = { 0, 16, 128, 250 };

	for (int i = 0; i < HOST_WARPS_MAX * host.cluster; i++)
		host.priority[i] = host_random(1 << 16);
	host.eager = eager[host_random(4)];
}

/* The thread of highest priority among a few that are ready. */
static inline struct host_thread *host_pick(void)
{
	struct host_thread *best = NULL;

	for (int i = 0; i < 4; i++) {
		struct host_thread *t = &host.thread[host.ready[host_random((uint32_t)host.nready)]];

		if (!best || host.priority[t->thread / host.warp] > host.priority[best->thread / host.warp])
			best = t;
	}
	return best;
}

static inline void host_step_thread(void)
{
	struct host_thread *t = host_pick();
	int last;

	host_run_thread(t);
	if (t->state == HOST_READY)
		return;
	last = host.ready[--host.nready];
	host.ready[t->ready_at] = last;
	host.thread[last].ready_at = t->ready_at;
}

/* ---- setting up -------------------------------------------------------------------- */

static inline void host_fault(int sig)
{
	host_fail("the kernel's code faulted (%s): an address outside of every tensor, or a stack of more than %d KiB",
		sig == SIGFPE ? "SIGFPE" : sig == SIGBUS ? "SIGBUS" : "SIGSEGV", HOST_STACK >> 10);
}

static inline void host_catch_faults(void)
{
	static char stack[64 << 10];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_handler = host_fault, .sa_flags = SA_ONSTACK };

	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	sigaction(SIGFPE, &act, NULL);
}

static inline void *host_map_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		host_fail("no memory for %d threads", host.all);
	return p;
}

static inline void host_make_stacks(void)
{
	size_t each = HOST_STACK + HOST_GUARD;

	host.stacks = host_map_memory(each * (size_t)host.all);
	for (int i = 0; i < host.all; i++)
		mprotect(host.stacks + each * (size_t)i, HOST_GUARD, PROT_NONE);
}

#endif
