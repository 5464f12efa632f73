/* runtime.h - the runtime headers as text, made by the Makefile from src/host; for use inside src/host. */
#ifndef HOST_RUNTIME_H
#define HOST_RUNTIME_H

#include <stddef.h>

struct runtime_file {
	const char *name;		/* "rt_sync.h"; NULL after the last */
	const char *text;
	size_t len;
};
extern const struct runtime_file runtime_files[];

#endif
