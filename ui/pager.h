/* pager.h - long text, a screen at a time.
 *
 * Only in a terminal, and only what is longer than that. The pager is $MILLRACE_PAGER,
 * which turns paging off if it is empty, else $PAGER, else less, as `less -FRX`, if it is
 * there.
 */
#ifndef UI_PAGER_H
#define UI_PAGER_H

#include <stddef.h>

/* Print the text on the standard output and end its last line. While the pager runs Ctrl-C is
 * the pager's. */
void pager_print(const char *text, size_t len);

#endif
