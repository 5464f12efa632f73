/* input.h - wait for input and for signals at once. */
#ifndef UI_INPUT_H
#define UI_INPUT_H

#include <stdbool.h>

/* Return when there is input on fd, a signal has come, or `ms` have passed (-1: however long it takes); at once if
 * is_pending(arg), which looks at the flags that the handlers of SIGINT, SIGWINCH, SIGCONT and SIGTSTP set. These
 * signals are blocked between that look and the wait, so that none can come unnoticed. */
void input_wait(int fd, int ms, bool (*is_pending)(const void *arg), const void *arg);

#endif
