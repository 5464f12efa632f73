/* rt_async.h - asynchronous work of all kinds, as the scheduler sees it. */
#ifndef HOST_RT_ASYNC_H
#define HOST_RT_ASYNC_H

#include "host/rt_copies.h"
#include "host/rt_dma.h"
#include "host/rt_products.h"

/* Do one step of asynchronous work; false if there is none. */
static inline bool host_async_step(void)
{
	int copies = host_copies(), groups = host.all / HOST_GROUP;
	int first = (int)host_random((uint32_t)(copies + groups));

	if (host_some_copy_step(first, copies))
		return true;
	for (int i = 0; i < groups; i++) {
		struct host_group *g = host_groups[(first + i) % groups];

		if (host_product_ready(g)) {
			host_product_step(g);
			return true;
		}
	}
	return host_some_copy_step(0, first < copies ? first : copies);
}
static inline void host_async_start(void)
{
	host_copies_start();
	host_dma_start();
	host_products_start();
}

static inline void host_async_end(void)
{
	host_copies_end();
	host_dma_end();
	host_products_end();
}

#endif
