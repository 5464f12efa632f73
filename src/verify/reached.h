/* reached.h - stores that are left out in tiles of which the tensor has nothing. */
#ifndef VERIFY_REACHED_H
#define VERIFY_REACHED_H

#include "base/err.h"
#include "plan/plan.h"
#include "role/role.h"

/* Each condition under which something is stored (SECTION_REACHED) holds in all tiles that have an element inside of the tensor. */
NODISCARD enum err_code reached_check(const struct role_program *r, const struct plan *p, struct err *e);

#endif
