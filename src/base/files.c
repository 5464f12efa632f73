#include "base/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
