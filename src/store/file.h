/* file.h - the file of a store: found, made, brought up to date, set aside. */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/err.h"

/* Of the tables; the number of steps in file.c that lead to it. */
enum { STORE_VERSION = 2 };

enum { STATEMENTS_MAX = 8, NOTICE_MAX = 10000 };

struct store_file {
	const char *path;		/* borrowed */
	sqlite3 *db;			/* NULL: not open */
	sqlite3_stmt *statement[STATEMENTS_MAX];	/* prepared, NULL if not; go with db */
	struct stat seen;		/* which file that is */
	char notice[NOTICE_MAX];	/* what the user should know; "" */
};

/* Open it if it is there, or if `make`, and if it is not the file at the path any more, that
 * one. OK with no db: there is none. */
NODISCARD enum err_code file_open(struct store_file *f, bool make, struct err *e);
void file_close(struct store_file *f);

/* Does SQLite's answer mean that the file is not what it should be? Then it is to be set
 * aside. */
bool file_is_damage(int rc);
/* Close and rename it to PATH.WHY-N, unless somebody else did. */
NODISCARD enum err_code file_set_aside(struct store_file *f, const char *why, struct err *e);
/* A message about SQLite's answer. */
enum err_code file_error(const struct store_file *f, int rc, struct err *e);

#endif
