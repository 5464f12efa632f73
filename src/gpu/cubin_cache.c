#include "gpu/cubin_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/hash.h"

enum { ENTRIES_MAX = 4096, ENTRIES_LEFT = 3072 };

#define SUFFIX ".cubin"

/* At the start of a file; key, log and binary follow. */
struct header {
	char magic[8];
	uint64_t key_bytes, log_bytes, cubin_bytes;
	uint64_t sum;			/* hash of what follows */
};

static const char magic[8] = "MRCUBIN1";

/* ---- paths ---- */

/* NULL if neither variable is set. */
static char *cache_dir(struct arena *a)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (xdg && *xdg == '/')		/* the standard says to ignore relative paths */
		return arena_strf(a, "%s/millrace/cubin", xdg);
	if (home && *home)
		return arena_strf(a, "%s/.cache/millrace/cubin", home);
	return NULL;
}

static char *entry_path(const char *key, struct arena *a)
{
	char *dir = cache_dir(a), name[HASH_TEXT];

	hash_text(key, strlen(key), name);
	return dir ? arena_strf(a, "%s/%s" SUFFIX, dir, name) : NULL;
}

/* ---- files ---- */

bool cubin_cache_find(const char *key, struct cubin_entry *found, struct arena *a)
{
	size_t key_bytes = strlen(key), left = 0;
	char *path = entry_path(key, a), *data = path ? read_file(path, a, &left) : NULL;
	struct header h;

	if (!data || left < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	data += sizeof(h);
	left -= sizeof(h);
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.key_bytes != key_bytes || h.log_bytes > left ||
	    h.cubin_bytes > left || h.key_bytes + h.log_bytes + h.cubin_bytes != left ||
	    hash_bytes(hash_basis(0), data, left) != h.sum || memcmp(data, key, key_bytes) != 0)
		return false;
	found->log = arena_strf(a, "%.*s", (int)h.log_bytes, data + key_bytes);
	found->cubin = data + key_bytes + h.log_bytes;
	found->cubin_bytes = h.cubin_bytes;
	utimensat(AT_FDCWD, path, NULL, 0);	/* the time of last use, for remove_old_entries() */
	return true;
}

/* ---- removing old entries ---- */

struct old_file {
	struct timespec used;
	char name[64];
};

static int by_age(const void *a, const void *b)
{
	const struct timespec *s = &((const struct old_file *)a)->used;
	const struct timespec *t = &((const struct old_file *)b)->used;

	if (s->tv_sec != t->tv_sec)
		return s->tv_sec < t->tv_sec ? -1 : 1;
	return (s->tv_nsec > t->tv_nsec) - (s->tv_nsec < t->tv_nsec);
}

static void remove_old_entries(const char *dir, struct arena *a)
{
	DIR *d = opendir(dir);
	VEC(struct old_file) files = { 0 };
	const struct dirent *entry;

	while (d && (entry = readdir(d))) {
		size_t n = strlen(entry->d_name);
		struct old_file f = { 0 };
		struct stat st;

		if (n >= sizeof(f.name) || !strstr(entry->d_name, SUFFIX) || fstatat(dirfd(d), entry->d_name, &st, 0))
			continue;
		f.used = st.st_mtim;
		memcpy(f.name, entry->d_name, n);
		VEC_PUSH(a, &files, f);
	}
	if (files.n > ENTRIES_MAX) {
		qsort(files.v, (size_t)files.n, sizeof(*files.v), by_age);
		for (int i = 0; i < files.n - ENTRIES_LEFT; i++)
			unlinkat(dirfd(d), files.v[i].name, 0);
	}
	if (d)
		closedir(d);
}

void cubin_cache_keep(const char *key, const struct cubin_entry *entry, struct arena *a)
{
	struct header h = { .key_bytes = strlen(key), .log_bytes = strlen(entry->log),
		.cubin_bytes = entry->cubin_bytes };
	char *path = entry_path(key, a);
	struct buf b = buf_new(a);

	if (!path || !make_folders(path))
		return;
	memcpy(h.magic, magic, sizeof(magic));
	buf_putn(&b, (const char *)&h, sizeof(h));
	buf_puts(&b, key);
	buf_puts(&b, entry->log);
	buf_putn(&b, entry->cubin, entry->cubin_bytes);
	h.sum = hash_bytes(hash_basis(0), b.text + sizeof(h), b.len - sizeof(h));
	memcpy(b.text, &h, sizeof(h));
	replace_file(path, b.text, b.len);
	remove_old_entries(cache_dir(a), a);
}
