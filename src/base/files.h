/* files.h - folders and files on disk. After a failure errno says why.
 *
 * Of the processes of a farm, which all run the same script, only one writes the files that the script asks for. In the
 * others files_discard is set: whoever writes a file for the user looks at it, and then reports success and writes
 * nothing. What the program needs for itself (caches, the input of compilers, the store) is written by all. */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include "base/arena.h"
#include "base/base.h"

extern bool files_discard;		/* set before the script runs */

/* Make the folders of a path up to its last '/'. After a failure `path` ends with the folder that cannot be made. */
bool make_folders(char *path);
/* Write a file under another name and rename it, so that no reader sees an incomplete one; an existing file is replaced
 * completely or not at all, and keeps its permissions. */
bool replace_file(const char *path, const void *data, size_t n);
/* The n bytes of a file, in `a`, with a 0 behind them; NULL if it cannot be read. */
char *read_file(const char *path, struct arena *a, size_t *n);

#endif
