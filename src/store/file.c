#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/store.h"

enum {
	OURS = 0x4d696c6c,		/* application_id: "Mill" */
	PATIENCE = 10000,		/* ms for which another writer is waited for */
	LOOKED_THROUGH = 64 << 20,	/* bytes: larger files are not read when they are opened */
	PATH_ENDS = 64,			/* bytes for what is put behind a path */
};

/* steps[i] leads from version i to i + 1; the first one makes an empty file a store. A step that
 * was once in use never changes. */
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
	rc &= 0xff;			/* SQLITE_ERROR: other tables than ours */
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
			"end it, or set MILLRACE_STORE to another file", f->path, PATIENCE / 1000);
	case SQLITE_FULL:
		return err_set(e, ERR_IO, NOWHERE, "store: there is no room on the disk for %s; make "
			"some, or set MILLRACE_STORE to another file", f->path);
	case SQLITE_READONLY:
		return err_set(e, ERR_IO, NOWHERE, "store: %s may not be written; set MILLRACE_STORE to "
			"a file that may, or to \"none\"", f->path);
	default:
		return err_set(e, ERR_IO, NOWHERE, "store: %s: %s; set MILLRACE_STORE to another file, "
			"or to \"none\"", f->path, why);
	}
}

/* ---- set aside ---- */

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* What SQLite keeps beside it, and then the file itself: a new file that found an old log would
 * take it for its own. */
static bool rename_all(const char *from, const char *to)
{
	static const char *const ends[] = { "-wal", "-journal", "-shm", "" };
	char old[PATH_MAX], new[PATH_MAX];
	bool good = true;

	for (int i = 0; i < LEN(ends); i++) {
		snprintf(old, sizeof(old), "%s%s", from, ends[i]);
		snprintf(new, sizeof(new), "%s%s", to, ends[i]);
		if (is_there(old))
			good = !rename(old, new);
	}
	return good;
}

/* Of the file at the path. */
static bool is_seen(const struct store_file *f)
{
	struct stat st;

	return !stat(f->path, &st) && st.st_ino == f->seen.st_ino && st.st_dev == f->seen.st_dev;
}

/* Of two who find the damage the second finds another file there, once it has the lock. */
enum err_code file_set_aside(struct store_file *f, const char *why, struct err *e)
{
	enum err_code code = OK;
	char to[PATH_MAX];
	int fd, n = 1;

	file_close(f);
	fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !flock(fd, LOCK_EX) && is_seen(f)) {
		do
			snprintf(to, sizeof(to), "%s.%s-%d", f->path, why, n++);
		while (is_there(to));
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

static int run(const struct store_file *f, const char *sql)
{
	return sqlite3_exec(f->db, sql, NULL, NULL, NULL);
}

/* The number that a statement gives. */
static int ask(const struct store_file *f, const char *sql, int *out)
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

/* Every page is read: where damage is found late, rows were written into it. */
static int look_through(const struct store_file *f)
{
	sqlite3_stmt *q;
	int rc;

	if (f->seen.st_size > LOOKED_THROUGH)
		return SQLITE_OK;
	rc = sqlite3_prepare_v2(f->db, "PRAGMA quick_check(1)", -1, &q, NULL);
	if (rc)
		return rc;
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		rc = strcmp((const char *)sqlite3_column_text(q, 0), "ok") ? SQLITE_CORRUPT : SQLITE_OK;
	sqlite3_finalize(q);
	return rc;
}

/* All steps at once or none; of two processes that come to it the second finds it done. */
static int bring_up_to_date(const struct store_file *f)
{
	int version, rc = run(f, "BEGIN IMMEDIATE");

	if (rc)
		return rc;
	rc = ask(f, "PRAGMA user_version", &version);
	while (!rc && version < STORE_VERSION)
		rc = run(f, steps[version++]);
	if (!rc)
		rc = run(f, "COMMIT");
	if (rc)
		run(f, "ROLLBACK");
	return rc;
}

/* SQLITE_OK and what stands in the file at one moment. */
static int look(const struct store_file *f, int *version, int *owner, int *tables)
{
	int rc = run(f, "BEGIN");

	if (!rc)
		rc = ask(f, "PRAGMA user_version", version);
	if (!rc)
		rc = ask(f, "PRAGMA application_id", owner);
	if (!rc)
		rc = ask(f, "SELECT count(*) FROM sqlite_master", tables);
	run(f, "ROLLBACK");
	return rc;
}

/* A connection is there: make sure of what it leads to. *rc: SQLite's answer, if that is what
 * is wrong. */
static enum err_code examine(struct store_file *f, int *rc, struct err *e)
{
	int version, owner, tables;

	*rc = look(f, &version, &owner, &tables);
	if (*rc)
		return OK;
	if (tables && owner != OURS)
		return err_set(e, ERR_IO, NOWHERE, "store: %s is a database of another program; set "
			"MILLRACE_STORE to another file", f->path);
	if (version > STORE_VERSION)
		return err_set(e, ERR_IO, NOWHERE, "store: %s was written by a newer Millrace (version %d, "
			"this one knows %d) and stays as it is; use that one, or set MILLRACE_STORE to "
			"another file", f->path, version, STORE_VERSION);
	*rc = look_through(f);
	if (*rc || version == STORE_VERSION)
		return OK;
	if (tables && version < 1)
		return file_set_aside(f, "older", e);
	run(f, "PRAGMA journal_mode = WAL");	/* where that cannot be, the usual one will do */
	*rc = bring_up_to_date(f);
	if (*rc == SQLITE_ERROR)
		return file_set_aside(f, "older", e);
	return OK;
}

/* "file:PATH?immutable=1" */
static void write_uri(char *out, const char *path)
{
	out += sprintf(out, "file:");
	for (const char *s = path; *s; s++)
		out += sprintf(out, strchr("%?#", *s) ? "%%%02x" : "%c", *s);
	sprintf(out, "?immutable=1");
}

/* Frozen: for reading, where nobody can write. */
static int connect(struct store_file *f, bool make, bool frozen)
{
	int flags = make ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE, rc;
	char uri[3 * PATH_MAX + PATH_ENDS];

	if (frozen)
		flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
	write_uri(uri, f->path);
	rc = sqlite3_open_v2(frozen ? uri : f->path, &f->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc)
		return rc;
	sqlite3_extended_result_codes(f->db, 1);
	sqlite3_busy_timeout(f->db, PATIENCE);
	return run(f, "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; "
		"PRAGMA cell_size_check = ON;");
}

static bool make_folder(const struct store_file *f)
{
	char path[PATH_MAX];
	bool good = true;

	snprintf(path, sizeof(path), "%s", f->path);
	for (char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		good = !mkdir(path, 0777) || errno == EEXIST;
		*s = '/';
	}
	return good;
}

static bool is_closed(int rc)
{
	rc &= 0xff;
	return rc == SQLITE_CANTOPEN || rc == SQLITE_READONLY;
}

static enum err_code open_once(struct store_file *f, bool make, int *rc, struct err *e)
{
	enum err_code code;

	*rc = connect(f, make, false);
	if (!*rc && stat(f->path, &f->seen))
		*rc = SQLITE_CANTOPEN;
	code = *rc ? OK : examine(f, rc, e);
	if (!code && !make && is_closed(*rc)) {
		/* SQLite's log needs a folder that can be written, even to be read */
		file_close(f);
		*rc = connect(f, false, true);
		code = *rc ? OK : examine(f, rc, e);
	}
	return code;
}

/* What is known of a file before SQLite sees it. */
static enum err_code check_place(struct store_file *f, bool make, bool *there, struct err *e)
{
	if (strlen(f->path) > PATH_MAX - PATH_ENDS)
		return err_set(e, ERR_IO, NOWHERE, "store: the path that MILLRACE_STORE gives is too long");
	*there = !stat(f->path, &f->seen);
	if (*there && !S_ISREG(f->seen.st_mode))
		return err_set(e, ERR_IO, NOWHERE, "store: %s is not a file; set MILLRACE_STORE to one",
			f->path);
	if (!*there && make && !make_folder(f))
		return err_set(e, ERR_IO, NOWHERE, "store: the folder of %s cannot be made: %s; set "
			"MILLRACE_STORE to another file, or to \"none\"", f->path, strerror(errno));
	return OK;
}

enum err_code file_open(struct store_file *f, bool make, struct err *e)
{
	enum err_code code = OK;
	bool there = false;
	int rc = 0;

	if (f->db && !is_seen(f))
		file_close(f);
	for (int tries = 0; !f->db && !code && tries < 3; tries++) {
		code = check_place(f, make, &there, e);
		if (code || (!there && !make))
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
