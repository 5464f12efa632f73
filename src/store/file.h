/* file.h - the file of a store: opening, creating, upgrading and renaming it. For src/store only. */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/err.h"

/* The version of the tables: the number of upgrade steps in file.c. */
enum { STORE_VERSION = 2 };

enum { STATEMENTS_MAX = 8, NOTICE_MAX = 10000 };

struct store_file {
	const char *path;		/* borrowed */
	sqlite3 *db;			/* NULL: not open */
	sqlite3_stmt *statement[STATEMENTS_MAX];	/* prepared statements or NULL; closed with db */
	struct stat seen;		/* of the open file */
	char notice[NOTICE_MAX];	/* what the user should know, or "" */
};

/* Open the file if it exists, or if `make`; again if another file is at the path now. OK with db NULL: there
 * is no file. */
NODISCARD enum err_code file_open(struct store_file *f, bool make, struct err *e);
void file_close(struct store_file *f);

/* Does SQLite's result code mean that the file is damaged? Then it must be set aside. */
bool file_is_damage(int rc);
/* Close the file and rename it to PATH.WHY-N, unless another process did. */
NODISCARD enum err_code file_set_aside(struct store_file *f, const char *why, struct err *e);
/* Fill *e for SQLite's result code rc; returns e->code. */
enum err_code file_error(const struct store_file *f, int rc, struct err *e);

#endif
