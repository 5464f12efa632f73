/* pager.h - shows long text a screen at a time.
 *
 * Only on a terminal, and only if the text is longer than the screen. The pager is $MILLRACE_PAGER, or $PAGER, or
 * `less -FRX` if it is installed. With an empty MILLRACE_PAGER there is no paging.
 */
#ifndef UI_PAGER_H
#define UI_PAGER_H

#include <stddef.h>

/* Print the text on standard output and end its last line. While the pager runs, Ctrl-C is left to it. */
void pager_print(const char *text, size_t len);

#endif
