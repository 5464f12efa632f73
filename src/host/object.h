/* object.h - a compiled kernel; for use inside src/host. */
#ifndef HOST_OBJECT_H
#define HOST_OBJECT_H

#include "base/child.h"
#include "host/host.h"

struct host_kernel {
	struct mem *mem;		/* borrowed */
	int object;			/* open file of the shared object, which has no name */
};

/* The headers that a kernel's text includes, as text made by the Makefile. */
struct runtime_file {
	const char *name;		/* "rt_sync.h"; NULL after the last */
	const char *text;
	size_t len;
};
extern const struct runtime_file runtime_files[];

#endif
