/* past.h - the history file of the shell.
 *
 * An entry is a chunk of one or more lines. In the file it is one line, in which the byte 036 stands for a newline.
 * A shell without history is still usable, so nothing here is an error. Does not use the terminal.
 */
#ifndef UI_PAST_H
#define UI_PAST_H

#include <stdbool.h>
#include <stddef.h>

/* Find the path: $MILLRACE_HISTORY ("" or "/dev/null": no history), or $XDG_STATE_HOME/millrace/history, or
 * ~/.local/state/millrace/history. The folders of the latter two are created. False: there is something else than a
 * file, such as a pipe, where reading or writing might never end. */
bool past_find(char *path, size_t size);
/* Call f(ud, entry) for the last entries of the file, oldest first. */
void past_load(const char *path, void (*f)(void *ud, const char *entry), void *ud);
void past_append(const char *path, const char *entry);

#endif
