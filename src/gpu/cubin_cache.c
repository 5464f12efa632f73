#include "gpu/cubin_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool make_dirs(char *dir)
{
	for (char *s = strchr(dir + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		mkdir(dir, 0777);
		*s = '/';
	}
	return !mkdir(dir, 0777) || errno == EEXIST;
}

/* ---- files ---- */

static bool read_all(int fd, void *to, size_t n)
{
	for (size_t done = 0; done < n; ) {
		ssize_t got = read(fd, (char *)to + done, n - done);

		if (got <= 0 && !(got < 0 && errno == EINTR))
			return false;
		done += got > 0 ? (size_t)got : 0;
	}
	return true;
}

static bool write_all(int fd, const void *from, size_t n)
{
	for (size_t done = 0; done < n; ) {
		ssize_t put = write(fd, (const char *)from + done, n - done);

		if (put < 0 && errno != EINTR)
			return false;
		done += put > 0 ? (size_t)put : 0;
	}
	return true;
}

/* Does the header fit this size of file and this length of key? */
static bool is_plausible(const struct header *h, off_t size, size_t key_bytes)
{
	uint64_t left = (uint64_t)size - sizeof(*h);

	return size >= (off_t)sizeof(*h) && !memcmp(h->magic, magic, sizeof(magic)) &&
		h->key_bytes == key_bytes && h->key_bytes <= left && h->log_bytes <= left &&
		h->cubin_bytes <= left && h->key_bytes + h->log_bytes + h->cubin_bytes == left;
}

static bool read_entry(int fd, const char *key, struct cubin_entry *found, struct arena *a)
{
	size_t key_bytes = strlen(key), left;
	struct header h = { 0 };
	struct stat st;
	char *data, *log;

	if (fstat(fd, &st) || !read_all(fd, &h, sizeof(h)) || !is_plausible(&h, st.st_size, key_bytes))
		return false;
	left = (size_t)st.st_size - sizeof(h);
	data = arena_alloc(a, left);
	if (!read_all(fd, data, left) || hash_bytes(hash_basis(0), data, left) != h.sum ||
	    memcmp(data, key, key_bytes) != 0)
		return false;
	log = arena_alloc(a, h.log_bytes + 1);
	memcpy(log, data + key_bytes, h.log_bytes);
	found->log = log;
	found->cubin = data + key_bytes + h.log_bytes;
	found->cubin_bytes = h.cubin_bytes;
	return true;
}

bool cubin_cache_find(const char *key, struct cubin_entry *found, struct arena *a)
{
	char *path = entry_path(key, a);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool good;

	if (fd < 0)
		return false;
	good = read_entry(fd, key, found, a);
	if (good)
		futimens(fd, NULL);	/* the time of last use, for prune() */
	close(fd);
	return good;
}

static bool write_entry(int fd, const char *key, const struct cubin_entry *entry)
{
	struct header h = {
		.key_bytes = strlen(key),
		.log_bytes = strlen(entry->log),
		.cubin_bytes = entry->cubin_bytes,
		.sum = hash_basis(0),
	};

	memcpy(h.magic, magic, sizeof(magic));
	h.sum = hash_bytes(h.sum, key, h.key_bytes);
	h.sum = hash_bytes(h.sum, entry->log, h.log_bytes);
	h.sum = hash_bytes(h.sum, entry->cubin, h.cubin_bytes);
	return write_all(fd, &h, sizeof(h)) && write_all(fd, key, h.key_bytes) &&
		write_all(fd, entry->log, h.log_bytes) && write_all(fd, entry->cubin, h.cubin_bytes);
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

static void prune(const char *dir, struct arena *a)
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
	char *path = entry_path(key, a), *dir = cache_dir(a), *part;
	bool good;
	int fd;

	if (!path || !make_dirs(dir))
		return;
	part = arena_strf(a, "%s.%ld.part", path, (long)getpid());
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	good = write_entry(fd, key, entry);
	good = !close(fd) && good;
	if (!good || rename(part, path))
		unlink(part);
	prune(dir, a);
}
