/* names.h - what a role program says of names, registers and scratch; inside src/verify.
 *
 * Here the tree is read as a text, from the top down and once: what a play need not be asked
 * for, as it is the same in each turn. Wrong is
 *
 *  - a variable or a fragment that is used where nothing has let it, let twice, or let as a
 *    constant and changed;
 *  - a fragment of one sTask that is read before it is written; an operation that reads what
 *    it writes, as that would make a difference if it were done again;
 *  - a product without a fence behind the pins of its registers; columns of an sTask's result
 *    that two of its products have, or none; a result in a fragment of the sTask that is
 *    read before it is there and pinned;
 *  - a value in the lane's scratch read before it is there, or written while that may be read;
 *  - an sTask that does not write or store what it should;
 *  - a lane that does not begin with its registers and with who leaves.
 */
#ifndef VERIFY_NAMES_H
#define VERIFY_NAMES_H

#include "verify/acts.h"

NODISCARD enum err_code names_check(struct arena *a, const struct setting *s, struct err *e);

#endif
