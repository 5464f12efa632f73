#include "past.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LINE_END = 036,			/* stands for a newline in an entry */
	BYTES_READ = 1 << 17,		/* at most, from the end of the file */
};

static void find_path(char *path, size_t size)
{
	const char *given = getenv("MILLRACE_HISTORY"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	path[0] = '\0';
	if (given) {
		snprintf(path, size, "%s", strcmp(given, "/dev/null") ? given : "");
		return;
	}
	if (state && *state == '/')
		snprintf(path, size, "%s/millrace/history", state);
	else if (home && *home == '/')
		snprintf(path, size, "%s/.local/state/millrace/history", home);
	for (char *p = path; *p && (p = strchr(p + 1, '/')); ) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
}

bool past_find(char *path, size_t size)
{
	struct stat st;

	find_path(path, size);
	return !*path || stat(path, &st) || S_ISREG(st.st_mode);
}

void past_load(const char *path, void (*f)(void *ud, const char *entry), void *ud)
{
	FILE *file = *path ? fopen(path, "r") : NULL;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (!file)
		return;
	if (!fseek(file, -BYTES_READ, SEEK_END))
		n = getline(&line, &cap, file);	/* skip the incomplete line */
	else
		rewind(file);
	while ((n = getline(&line, &cap, file)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		for (char *s = line; *s; s++)
			if (*s == LINE_END)
				*s = '\n';
		if (*line)
			f(ud, line);
	}
	free(line);
	fclose(file);
}

void past_append(const char *path, const char *entry)
{
	FILE *file = *path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	for (const char *s = entry; *s; s++)
		putc(*s == '\n' ? LINE_END : *s, file);
	putc('\n', file);
	fclose(file);
}
