/* golden.h - texts that are kept in files below tests/; with BLESS=1 in the environment they are written again. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum { GOLDEN_MAX = 1 << 18 };

/* Prints what `diff` says of the file and the text, at most 60 lines. */
static inline void golden_difference(const char *path, const char *text)
{
	char command[1024];
	FILE *diff;

	fflush(stdout);
	snprintf(command, sizeof(command), "diff -u '%s' - | head -n 60 | sed 's/^/# /'", path);
	diff = popen(command, "w");
	if (!diff)
		return;
	fputs(text, diff);
	pclose(diff);
}

/* A check: the text is that of tests/FOLDER/FILE.txt. `name`: what it is called. */
static inline void golden_is(const char *name, const char *folder, const char *file, const char *text)
{
	static char want[GOLDEN_MAX];
	char path[256], what[256];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%.*s%s/%s.txt", (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__,
		folder, file);
	if (getenv("BLESS") && (f = fopen(path, "w"))) {
		fputs(text, f);
		fclose(f);
	}
	if ((f = fopen(path, "r"))) {
		n = fread(want, 1, sizeof(want) - 1, f);
		fclose(f);
	}
	want[n] = '\0';
	snprintf(what, sizeof(what), "%s is as in tests/%s/%s.txt", name, folder, file);
	if (!ok(strcmp(text, want) == 0, what))
		golden_difference(path, text);
}

#endif
