/* share.h - memory that the shell and its worker both see.
 *
 * It counts as memory of the shell's `struct mem`, whose cap holds for it; a request
 * beyond is an error and not a call of the failure handler.
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

/* memcpy for much: looks at `stop`, and gives up when it is set. */
NODISCARD enum err_code share_copy(void *to, const void *from, size_t n, const struct stop *stop,
	struct err *e);

#endif
