/* golden.h - texts that are kept in files below tests/: BLESS=1 writes them anew. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum { GOLDEN_MAX = 1 << 18 };

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
		printf("# got:\n%s", text);
}

#endif
