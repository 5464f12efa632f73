/* pager.h - shows long text a screen at a time.
 *
 * Only on a terminal, and only if the text is longer than the screen. The pager is $MILLRACE_PAGER, or $PAGER, or
 * `less -FRX` if it is installed. With an empty MILLRACE_PAGER there is no paging.
 */
#ifndef UI_PAGER_H
#define UI_PAGER_H

#include <stddef.h>
#include <stdio.h>

/* Print the text on standard output and end its last line. While the pager runs, Ctrl-C is left to it. */
void pager_print(const char *text, size_t len);
/* Write the text to f. Lines of more than `width` columns are broken between words, and go on indented. */
void pager_wrap(FILE *f, const char *text, size_t len, int width);
/* The same as *n bytes that the caller frees; NULL if there is no memory. */
char *pager_wrapped(const char *text, size_t len, int width, size_t *n);

#endif
