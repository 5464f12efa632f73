/* Writing files into a folder. */
#include "run/export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err_code fail(struct err *e, const char *what, const char *path)
{
	return err_set(e, ERR_IO, NOWHERE, "export: cannot %s '%.300s': %s", what, path, strerror(errno));
}

/* Make the folders of the path up to its last '/'. */
static enum err_code make_folders(const char *path, struct arena *a, struct err *e)
{
	char *dir = arena_strdup(a, path);
	struct stat st;

	for (char *c = dir + 1; *dir && (c = strchr(c, '/')); c++) {
		*c = '\0';
		if (mkdir(dir, 0777)) {
			int code = errno;

			if (stat(dir, &st) || !S_ISDIR(st.st_mode)) {
				errno = code == EEXIST ? ENOTDIR : code;
				return fail(e, "make the folder", dir);
			}
		}
		*c = '/';
	}
	return OK;
}

/* Write another file and rename it, so that no reader sees an incomplete one. */
static enum err_code write_file(const struct export_file *f, const char *path, struct arena *a, struct err *e)
{
	const char *part = arena_strf(a, "%s.part%ld", path, (long)getpid());
	FILE *file = fopen(part, "w");
	bool bad;
	int code;

	if (!file)
		return fail(e, "write", path);
	bad = fwrite(f->text, 1, f->len, file) != f->len;
	code = errno;
	if (fclose(file) && !bad) {
		bad = true;
		code = errno;
	}
	if (!bad && rename(part, path)) {
		bad = true;
		code = errno;
	}
	if (!bad)
		return OK;
	unlink(part);
	errno = code;
	return fail(e, "write", path);
}

enum err_code export_write(const struct export_set *set, const char *dir, struct arena *a, struct err *e)
{
	for (int i = 0; i < set->files.n; i++) {
		const struct export_file *f = &set->files.v[i];
		const char *path = arena_strf(a, "%s/%s", dir, f->name);

		TRY(make_folders(path, a, e));
		TRY(write_file(f, path, a, e));
	}
	return OK;
}
