/* uses.h - which fragments an operation makes, and which it uses. */
#ifndef ROLE_USES_H
#define ROLE_USES_H

#include "role/role.h"

/* Who is to be told; NULL: nobody. */
struct uses {
	void (*made)(void *ctx, struct frag_at at);
	/* whole: more than the element at hand is needed to make an element of the result */
	void (*used)(void *ctx, struct frag_at at, bool whole);
	void *ctx;
};

/* First all that it makes, then all that it uses; what it adds to is both. A pin only keeps
 * compilers from moving others. */
void role_uses(const struct role_op *o, const struct uses *u);

#endif
