#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "store/store.h"

enum {
	APPLICATION_ID = 0x4d696c6c,	/* "Mill" */
	BUSY_MS = 10000,		/* how long to wait for another writer */
	CHECKED_MAX = 64 << 20,		/* bytes: larger files are not checked when they are opened */
	PATH_SPARE = 64,		/* bytes for what is appended to a path */
};

/* steps[i] upgrades from version i to i + 1; the first one makes an empty file a store. Released steps never
 * change. */
#define X(name, type) ", " #name " " SQL_##type
#define SQL_TEXT "TEXT"
#define SQL_REAL "REAL"
#define SQL_INTEGER "INTEGER"
#define SQL_FLAG "INTEGER"
static const char *const steps[STORE_VERSION] = {
	"CREATE TABLE measured (id INTEGER PRIMARY KEY AUTOINCREMENT" STORE_COLUMNS(X) ");"
	"PRAGMA application_id = 1298754668;"
	"PRAGMA user_version = 1;",
	"CREATE INDEX by_hash ON measured (hash, device, status);"
	"CREATE INDEX by_family ON measured (family, device, status);"
	"PRAGMA user_version = 2;",
};
#undef X

/* ---- messages ---- */

bool file_is_damage(int rc)
{
	rc &= 0xff;			/* SQLITE_ERROR: the tables are other ones */
	return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_ERROR;
}

enum err_code file_error(const struct store_file *f, int rc, struct err *e)
{
	int os = f->db ? sqlite3_system_errno(f->db) : errno;
	int kind = rc & 0xff;
	bool by_os = kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN;
	const char *why = by_os && os ? strerror(os) : sqlite3_errstr(rc);

	switch (kind) {
	case SQLITE_NOMEM:
		return err_set(e, ERR_LIMIT, NOWHERE, "store: not enough memory");
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_IO, NOWHERE, "store: another program has held %s for %d seconds; "
			"end it, or set MILLRACE_STORE to another file", f->path, BUSY_MS / 1000);
	case SQLITE_FULL:
		return err_set(e, ERR_IO, NOWHERE, "store: the disk is full, so %s cannot grow; free "
			"some space, or set MILLRACE_STORE to another file", f->path);
	case SQLITE_READONLY:
		return err_set(e, ERR_IO, NOWHERE, "store: %s is not writable; set MILLRACE_STORE to "
			"one that is, or to \"none\"", f->path);
	default:
		return err_set(e, ERR_IO, NOWHERE, "store: %s: %s; set MILLRACE_STORE to another file, "
			"or to \"none\"", f->path, why);
	}
}

/* ---- set aside ---- */

static bool file_exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* Rename SQLite's additional files and then the file itself: SQLite would apply an old log to a new file. */
static bool rename_all(const char *from, const char *to)
{
	static const char *const ends[] = { "-wal", "-journal", "-shm", "" };
	char old[PATH_MAX], new[PATH_MAX];
	bool good = true;

	for (int i = 0; i < LEN(ends); i++) {
		snprintf(old, sizeof(old), "%s%s", from, ends[i]);
		snprintf(new, sizeof(new), "%s%s", to, ends[i]);
		if (file_exists(old))
			good = !rename(old, new);
	}
	return good;
}

/* Is the file at the path still the one that was opened? */
static bool is_open_file(const struct store_file *f)
{
	struct stat st;

	return !stat(f->path, &st) && st.st_ino == f->seen.st_ino && st.st_dev == f->seen.st_dev;
}

/* Has the file the first bytes of every SQLite database? If not, it may be anything that somebody needs. */
static bool is_database(int fd)
{
	static const char magic[] = "SQLite format 3";
	char head[sizeof(magic)] = { 0 };

	return pread(fd, head, sizeof(head), 0) == sizeof(head) && !memcmp(head, magic, sizeof(magic));
}

/* If two processes find the damage, the second one gets the lock when another file is at the path. */
enum err_code file_set_aside(struct store_file *f, const char *why, struct err *e)
{
	enum err_code code = OK;
	char to[PATH_MAX];
	int fd, n = 1;

	file_close(f);
	fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !is_database(fd)) {
		code = err_set(e, ERR_IO, NOWHERE, "store: %s is no SQLite database and stays as it is, so nothing is "
			"stored; move it away, or set MILLRACE_STORE to another file", f->path);
	} else if (fd >= 0 && !flock(fd, LOCK_EX) && is_open_file(f)) {
		do
			snprintf(to, sizeof(to), "%s.%s-%d", f->path, why, n++);
		while (file_exists(to));
		if (rename_all(f->path, to))
			snprintf(f->notice, sizeof(f->notice), "store: %s is %s; it was set aside as %s, "
				"and a new one is begun", f->path, why, to);
		else
			code = err_set(e, ERR_IO, NOWHERE, "store: %s is %s and cannot be set aside: %s; set "
				"MILLRACE_STORE to another file", f->path, why, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	return code;
}

/* ---- opening ---- */

static int run_sql(const struct store_file *f, const char *sql)
{
	return sqlite3_exec(f->db, sql, NULL, NULL, NULL);
}

/* The integer that a statement yields; 0 if it yields none. */
static int read_integer(const struct store_file *f, const char *sql, int *out)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(f->db, sql, -1, &q, NULL);

	if (rc)
		return rc;
	rc = sqlite3_step(q);
	*out = rc == SQLITE_ROW ? sqlite3_column_int(q, 0) : 0;
	sqlite3_finalize(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Check all pages: damage that is found later would lose the rows written until then. */
static int check_pages(const struct store_file *f)
{
	int good = 1, rc = f->seen.st_size > CHECKED_MAX ? SQLITE_OK :
		read_integer(f, "SELECT quick_check = 'ok' FROM pragma_quick_check(1)", &good);

	return rc || good ? rc : SQLITE_CORRUPT;
}

/* All steps in one transaction. If two processes upgrade, the second one finds that it is done. */
static int upgrade_tables(const struct store_file *f)
{
	int version, rc = run_sql(f, "BEGIN IMMEDIATE");

	if (rc)
		return rc;
	rc = read_integer(f, "PRAGMA user_version", &version);
	while (!rc && version < STORE_VERSION)
		rc = run_sql(f, steps[version++]);
	if (!rc)
		rc = run_sql(f, "COMMIT");
	if (rc)
		run_sql(f, "ROLLBACK");
	return rc;
}

/* Read the file's version, application id and number of tables in one transaction. */
static int read_versions(const struct store_file *f, int *version, int *owner, int *tables)
{
	int rc = run_sql(f, "BEGIN");

	if (!rc)
		rc = read_integer(f, "PRAGMA user_version", version);
	if (!rc)
		rc = read_integer(f, "PRAGMA application_id", owner);
	if (!rc)
		rc = read_integer(f, "SELECT count(*) FROM sqlite_master", tables);
	run_sql(f, "ROLLBACK");
	return rc;
}

/* After connecting: check whose file it is and upgrade it. *rc: SQLite's result code if that is the error. */
static enum err_code examine_file(struct store_file *f, int *rc, struct err *e)
{
	int version, owner, tables;

	*rc = read_versions(f, &version, &owner, &tables);
	if (*rc)
		return OK;
	if (tables && owner != APPLICATION_ID)
		return err_set(e, ERR_IO, NOWHERE, "store: %s is a database of another program; set "
			"MILLRACE_STORE to another file", f->path);
	if (version > STORE_VERSION)
		return err_set(e, ERR_IO, NOWHERE, "store: %s was written by a newer Millrace (version %d, "
			"this one knows %d) and stays as it is; use that one, or set MILLRACE_STORE to "
			"another file", f->path, version, STORE_VERSION);
	*rc = check_pages(f);
	if (*rc || version == STORE_VERSION)
		return OK;
	if (tables && version < 1)
		return file_set_aside(f, "older", e);
	run_sql(f, "PRAGMA journal_mode = WAL");	/* if it fails, the default mode works, too */
	*rc = upgrade_tables(f);
	if (*rc == SQLITE_ERROR)
		return file_set_aside(f, "older", e);
	return OK;
}

/* "file:PATH?immutable=1" */
static void print_uri(char *out, const char *path)
{
	out += sprintf(out, "file:");
	for (const char *s = path; *s; s++)
		out += sprintf(out, strchr("%?#", *s) ? "%%%02x" : "%c", *s);
	sprintf(out, "?immutable=1");
}

/* frozen: read-only, for a file in a folder that is not writable. */
static int open_database(struct store_file *f, bool make, bool frozen)
{
	int flags = make ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE, rc;
	char uri[3 * PATH_MAX + PATH_SPARE];

	if (frozen)
		flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
	print_uri(uri, f->path);
	rc = sqlite3_open_v2(frozen ? uri : f->path, &f->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc)
		return rc;
	sqlite3_extended_result_codes(f->db, 1);
	sqlite3_busy_timeout(f->db, BUSY_MS);
	return run_sql(f, "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;");
}

static enum err_code open_once(struct store_file *f, bool make, int *rc, struct err *e)
{
	enum err_code code;

	*rc = open_database(f, make, false);
	if (!*rc && stat(f->path, &f->seen))
		*rc = SQLITE_CANTOPEN;
	code = *rc ? OK : examine_file(f, rc, e);
	if (!code && !make && ((*rc & 0xff) == SQLITE_CANTOPEN || (*rc & 0xff) == SQLITE_READONLY)) {
		/* even to read, SQLite's log needs a writable folder */
		file_close(f);
		*rc = open_database(f, false, true);
		code = *rc ? OK : examine_file(f, rc, e);
	}
	return code;
}

/* Check the path before SQLite opens it, and make its folder. */
static enum err_code check_path(struct store_file *f, bool make, bool *exists, struct err *e)
{
	char path[PATH_MAX];

	if (strlen(f->path) > PATH_MAX - PATH_SPARE)
		return err_set(e, ERR_IO, NOWHERE, "store: the path that MILLRACE_STORE gives is too long");
	snprintf(path, sizeof(path), "%s", f->path);
	*exists = !stat(path, &f->seen);
	if (*exists && !S_ISREG(f->seen.st_mode))
		return err_set(e, ERR_IO, NOWHERE, "store: %s is not a file; set MILLRACE_STORE to one", f->path);
	if (!*exists && make && !make_folders(path))
		return err_set(e, ERR_IO, NOWHERE, "store: the folder of %s cannot be made: %s; set "
			"MILLRACE_STORE to another file, or to \"none\"", f->path, strerror(errno));
	return OK;
}

enum err_code file_open(struct store_file *f, bool make, struct err *e)
{
	enum err_code code = OK;
	bool exists = false;
	int rc = 0;

	if (f->db && !is_open_file(f))
		file_close(f);
	for (int tries = 0; !f->db && !code && tries < 3; tries++) {
		code = check_path(f, make, &exists, e);
		if (code || (!exists && !make))
			break;
		code = open_once(f, make, &rc, e);
		if (!code && file_is_damage(rc))
			code = file_set_aside(f, "damaged", e);
		else if (!code && rc)
			code = file_error(f, rc, e);
		if (code)
			file_close(f);
	}
	return code;
}

void file_close(struct store_file *f)
{
	for (int i = 0; i < STATEMENTS_MAX; i++)
		sqlite3_finalize(f->statement[i]);
	memset(f->statement, 0, sizeof(f->statement));
	sqlite3_close(f->db);
	f->db = NULL;
}
