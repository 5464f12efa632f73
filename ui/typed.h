/* typed.h - the chunks that were typed and did not fail, and a script that does the same (:save).
 *
 * An expression that is no statement only shows a value; it is left out of the script, unless a later chunk reads it
 * as `_`. Works on text; needs no terminal.
 */
#ifndef UI_TYPED_H
#define UI_TYPED_H

#include <stdbool.h>

struct typed {
	struct typed_chunk *v;
	int n, cap;
};

/* Keep a copy of a chunk. `statement`: it is valid as a statement; `value`: it has a value, which is `_` from then on.
 * If memory is short, it is left out. */
void typed_add(struct typed *t, const char *text, bool statement, bool value);
void typed_free(struct typed *t);
/* Write the script; an existing file is overwritten only with `over`. Returns how many chunks it has, or -1 with
 * errno. */
int typed_save(const struct typed *t, const char *path, bool over);

/* The name of a local that the chunk declares and does not use, in name[], shortened if it is longer; NULL if there is
 * none. */
const char *typed_lost_local(const char *text, char name[64]);

#endif
