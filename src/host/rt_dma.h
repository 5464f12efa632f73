/* rt_dma.h - copies of words from global to shared memory for which a thread waits by a count.
 *
 * They complete in order, and as late as may be: when the thread waits for them. From its issue on the destination holds NaN. In race
 * mode the thread writes there when it issues a copy, and again when the copy is complete, as what follows that wait alone
 * is ordered after it. So a read that comes too early is found, and so is an issue that comes too early for another
 * thread's read.
 */
#ifndef HOST_RT_DMA_H
#define HOST_RT_DMA_H

#include "host/rt_memory.h"

struct host_word {
	uint32_t to;
	const void *from;		/* NULL: zeros */
};

/* Words of a thread that are under way: those from `first` on. */
struct host_words {
	struct host_word *v;
	int first, end, cap;
};

static struct host_words host_words[HOST_ALL_MAX];

static inline void host_copy_dma(uint32_t to, const void *from)
{
	struct host_words *w = &host_words[host.self->thread];

	if (w->first == w->end)
		w->first = w->end = 0;
	if (w->end == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 64;
		w->v = realloc(w->v, (size_t)w->cap * sizeof(*w->v));
		if (!w->v)
			host_fail("out of memory");
	}
	host_put(to, &(uint32_t){ UINT32_MAX }, sizeof(uint32_t));
	w->v[w->end++] = (struct host_word){ to, from };
	host_pause();
}

static inline void host_dma_wait(int n)
{
	struct host_words *w = &host_words[host.self->thread];

	for (; w->end - w->first > n; w->first++)
		host_put(w->v[w->first].to, w->v[w->first].from ? w->v[w->first].from : &(uint32_t){ 0 }, sizeof(uint32_t));
}

static inline void host_dma_start(void)
{
	for (int i = 0; i < host.all; i++)
		host_words[i].first = host_words[i].end = 0;
}

/* After all threads have ended none may be under way. */
static inline void host_dma_end(void)
{
	for (int i = 0; i < host.all; i++)
		if (host_words[i].first < host_words[i].end)
			host_fail("the kernel ends while %d words that thread %d copies are under way", host_words[i].end -
				host_words[i].first, i % host.threads);
}

#endif
