#include "role/role.h"

const struct role_do_info role_do_info[DO_COUNT] = {
#define X(id, name, unit, completes) { name, unit, completes },
	ROLE_OPS(X)
#undef X
};
