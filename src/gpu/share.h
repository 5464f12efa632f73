/* share.h - memory that the shell and its worker share.
 *
 * It counts towards the cap of the shell's `struct mem`. A request beyond the cap is ERR_LIMIT; the
 * failure handler is not called.
 */
#ifndef GPU_SHARE_H
#define GPU_SHARE_H

#include "base/err.h"
#include "base/mem.h"

struct share {
	struct mem *mem;		/* borrowed */
	unsigned char *map;		/* NULL: none */
	size_t bytes;
	int fd;
};

NODISCARD enum err_code share_init(struct share *s, struct mem *m, size_t bytes,
	const struct stop *stop, struct err *e);
void share_release(struct share *s);	/* idempotent; fine on a zeroed one */

/* memcpy of much memory, which `stop` interrupts. */
NODISCARD enum err_code share_copy(void *to, const void *from, size_t n, const struct stop *stop, struct err *e);

#endif
