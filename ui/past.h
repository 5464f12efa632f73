/* past.h - the file that keeps what was typed from one run of the shell to the next.
 *
 * An entry is a chunk, of one line or several; in the file it is one line, in which the
 * byte 036 stands for the end of a line. A shell without history is still a shell, so
 * nothing here is an error. Knows nothing of the terminal.
 */
#ifndef UI_PAST_H
#define UI_PAST_H

#include <stddef.h>

/* $MILLRACE_HISTORY, "" for none, or $XDG_STATE_HOME/millrace/history, ~/.local/state unless
 * that is given; the folders of the latter two are made. */
void past_find(char *path, size_t size);
/* Call f(ud, entry) for the last entries of the file, the oldest first. */
void past_load(const char *path, void (*f)(void *ud, const char *entry), void *ud);
void past_append(const char *path, const char *entry);

#endif
