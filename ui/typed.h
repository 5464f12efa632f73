/* typed.h - the chunks that were typed in this run and did not fail, and the script that
 * does the same.
 *
 * A chunk that only looks something up, which is an expression but no statement, is not
 * in the script, unless a later chunk reads it as `_`. Pure text; needs no terminal.
 */
#ifndef UI_TYPED_H
#define UI_TYPED_H

#include <stdbool.h>

struct typed {
	struct typed_chunk *v;
	int n, cap;
};

/* Keep a copy of a chunk. `statement`: it is one as it stands; `value`: it gave a value,
 * which is `_` from then on. Without memory it is left out. */
void typed_add(struct typed *t, const char *text, bool statement, bool value);
void typed_free(struct typed *t);
/* Write the script; over a file that is there only with `over`. Gives how many chunks it
 * has, or -1 with errno set. */
int typed_save(const struct typed *t, const char *path, bool over);

/* The name of a local that the chunk declares in vain, as nothing after reads it, or NULL;
 * in name[], cut if it is longer. */
const char *typed_lost_local(const char *text, char name[64]);

#endif
