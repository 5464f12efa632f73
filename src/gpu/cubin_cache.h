/* cubin_cache.h - binaries that were compiled before, on disk.
 *
 * One file an entry, in $XDG_CACHE_HOME/millrace/cubin (~/.cache without it), named by
 * a hash of the key. The whole key stands in the file and is compared, so a collision
 * is a miss; so is anything cut short or altered. Files appear complete, by renaming,
 * and the oldest go when there are thousands. A cache that cannot be written is none.
 */
#ifndef GPU_CUBIN_CACHE_H
#define GPU_CUBIN_CACHE_H

#include "base/arena.h"

struct cubin_entry {
	const char *log;
	const void *cubin;
	size_t cubin_bytes;
};

/* False: not there. What is found is in `a`. */
bool cubin_cache_find(const char *key, struct cubin_entry *found, struct arena *a);
void cubin_cache_keep(const char *key, const struct cubin_entry *entry, struct arena *a);

#endif
