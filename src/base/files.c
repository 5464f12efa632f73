#include "base/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool files_discard;

bool make_folders(char *path)
{
	struct stat st;

	for (char *c = path; *c && (c = strchr(c + 1, '/')); *c = '/') {
		int code;

		*c = '\0';
		code = mkdir(path, 0777) ? errno : 0;
		if (code && (stat(path, &st) || !S_ISDIR(st.st_mode))) {
			errno = code == EEXIST ? ENOTDIR : code;
			return false;
		}
	}
	return true;
}

bool replace_file(const char *path, const void *data, size_t n)
{
	char part[PATH_MAX];
	struct stat old;
	FILE *file;
	bool good;
	int code;

	snprintf(part, sizeof(part), "%s.part%ld", path, (long)getpid());
	file = fopen(part, "w");
	if (!file)
		return false;
	good = fwrite(data, 1, n, file) == n && (stat(path, &old) || !fchmod(fileno(file), old.st_mode & 07777));
	code = errno;
	if (fclose(file) && good) {
		good = false;
		code = errno;
	}
	if (good && !rename(part, path))
		return true;
	code = good ? errno : code;
	unlink(part);
	errno = code;
	return false;
}

char *read_file(const char *path, struct arena *a, size_t *n)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	char *data = NULL;

	if (file && !fstat(fileno(file), &st)) {
		*n = (size_t)st.st_size;
		data = arena_alloc(a, *n + 1);
		data[*n] = '\0';
		if (fread(data, 1, *n, file) != *n)
			data = NULL;
	}
	if (file)
		fclose(file);
	return data;
}
