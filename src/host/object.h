/* object.h - a compiled kernel; for use inside src/host. */
#ifndef HOST_OBJECT_H
#define HOST_OBJECT_H

#include "host/host.h"

struct host_kernel {
	struct mem *mem;		/* borrowed */
	int object;			/* open file of the shared object, which has no name */
};

#endif
