/* cubin_cache.h - a cache of compiled binaries on disk.
 *
 * Each entry is a file in $XDG_CACHE_HOME/millrace/cubin (~/.cache without that variable), named by a
 * hash of the key. The file has the key, too, which is compared; a collision is a miss, and so is a
 * truncated or altered file. Files are renamed into the folder when they are complete. If there are
 * thousands, those not used for longest are removed. Write errors are ignored.
 */
#ifndef GPU_CUBIN_CACHE_H
#define GPU_CUBIN_CACHE_H

#include "base/arena.h"

struct cubin_entry {
	const char *log;
	const void *cubin;
	size_t cubin_bytes;
};

/* False: there is no such entry. *found lies in `a`. */
bool cubin_cache_find(const char *key, struct cubin_entry *found, struct arena *a);
void cubin_cache_keep(const char *key, const struct cubin_entry *entry, struct arena *a);

#endif
