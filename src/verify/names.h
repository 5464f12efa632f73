/* names.h - checks of a role program that need no execution; for use inside src/verify.
 *
 * The tree is read once, top down, because these rules are the same in each iteration. An error is
 *
 *  - a variable or a fragment that is used where it is not declared, declared twice, or declared as a constant and
 *    changed;
 *  - a fragment of one sTask that is read before it is written; an operation that reads what it writes, because a
 *    second execution would have another result;
 *  - a product without a fence after the pins of its registers; columns of an sTask's result that two of its products
 *    compute, or none; the result of a product in a fragment of the sTask that is read before it is complete and pinned;
 *  - a value in the lane's scratch that is read before it is there, or overwritten while it may be read;
 *  - an sTask that does not write or store what it must;
 *  - a lane that does not begin with its number of registers and the end of warps that it does not need.
 */
#ifndef VERIFY_NAMES_H
#define VERIFY_NAMES_H

#include "verify/acts.h"

/* ERR_ILLEGAL, with the lane, the sTask and the operation. `a` is scratch. */
NODISCARD enum err_code names_check(struct arena *a, const struct setting *s, struct err *e);

#endif
