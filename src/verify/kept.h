/* kept.h - loads that leave out what their slots have already (plan/keep.h). */
#ifndef VERIFY_KEPT_H
#define VERIFY_KEPT_H

#include "plan/plan.h"
#include "role/role.h"

/* A slot has what its word says: nothing but one load writes to the ring. Two loads with one key bring the same bytes: keys number the
 * combinations of what the boxes depend on. Memory of words is checked with all other memory. ERR_ILLEGAL: not so. */
NODISCARD enum err_code kept_check(const struct role_program *r, const struct plan *p, struct err *e);

#endif
