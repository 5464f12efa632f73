/* leftovers.h - what a call said went wrong, and what it left behind in this process. */
#ifndef UNIT_LEFTOVERS_H
#define UNIT_LEFTOVERS_H

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "tap.h"

static inline bool says(const struct err *e, const char *text)
{
	if (strstr(e->msg, text))
		return true;
	diag("'%s' is not in: %s", text, e->msg);
	return false;
}

/* Not inline: it may be called in a function with setjmp. */
__attribute__((noinline, unused)) static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline bool have_children(void)
{
	return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

#endif
