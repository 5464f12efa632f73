/* launch.h - the wait of a kernel for what was launched before it, as early launches need it. */
#ifndef VERIFY_LAUNCH_H
#define VERIFY_LAUNCH_H

#include "base/err.h"
#include "plan/plan.h"
#include "role/role.h"

/* No lane accesses what kernels or phases in front may still use before it waits for their end (DO_PHASE_WAIT),
 * and the kernel does not end before theirs. ERR_ILLEGAL: it is not so. */
NODISCARD enum err_code launch_check(const struct role_program *r, const struct plan *p, int phase, struct err *e);

#endif
