#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "store/file.h"

struct store {
	struct arena arena;		/* owns this struct, too */
	struct store_file file;		/* path NULL: nothing is kept */
	sqlite3_stmt *reading;		/* of store_find, until its last row; else NULL */
	int64_t generation;		/* how many calls have ended a reading */
	char last_notice[NOTICE_MAX];	/* the result of store_notice */
};

const struct store_column_info store_columns[STORE_COLUMN_COUNT] = {
#define X(name, type) { #name, STORE_##type },
	STORE_COLUMNS(X)
#undef X
};

/* ---- statements ---- */

/* The numbers of the parameters, in all statements: those of a filter, in this order, and P_KEEP. */
enum parameter { P_PROGRAM = 1, P_DEVICE, P_KIND, P_STATUS, P_VERSION, P_HASH, P_FAMILY, P_SIZES,
	P_BEFORE, P_LIMIT, P_KEEP };

#define CHOSEN \
	"(?1 IS NULL OR program = ?1) AND (?2 IS NULL OR device = ?2) AND " \
	"(?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR status = ?4) AND " \
	"(?5 IS NULL OR version = ?5) AND (?6 IS NULL OR hash = ?6) AND " \
	"(?7 IS NULL OR family = ?7) AND (?8 IS NULL OR has_sizes(sizes, ?8)) AND " \
	"(?9 IS NULL OR time < ?9)"
#define TIMED "status = 'ok' AND coalesce(ms, predicted) IS NOT NULL"
#define FASTEST "ms IS NULL, ms, predicted, id"

#define X(name, type) ", " #name
#define COLUMNS "id" STORE_COLUMNS(X)
static const char put_columns[] = "INSERT INTO measured (" COLUMNS ") VALUES (NULL"
#undef X
#define X(name, type) ", ?"
	STORE_COLUMNS(X) ")";
#undef X

#define X(name, type) ", " #name
/* Indices below PUT are those of enum store_query. A condition that always applies (hash = ?6) comes first, so
 * that an index is used. */
enum { PUT = STORE_NEAR + 1, COUNT, PRUNE, LIST_OF_HASH };
static const char *const sql[] = {
	[STORE_LIST] = "SELECT " COLUMNS " FROM measured WHERE " CHOSEN " ORDER BY id DESC LIMIT ?10",
	[LIST_OF_HASH] = "SELECT " COLUMNS " FROM measured WHERE hash = ?6 AND " CHOSEN " ORDER BY id DESC LIMIT ?10",
	[STORE_BEST] = "SELECT " COLUMNS " FROM measured WHERE hash = ?6 AND " TIMED " AND " CHOSEN
		" ORDER BY " FASTEST " LIMIT ?10",
	[STORE_NEAR] = "SELECT " COLUMNS " FROM (SELECT *, row_number() OVER "
		"(PARTITION BY sizes ORDER BY " FASTEST ") AS rank FROM measured "
		"WHERE family = ?7 AND " TIMED " AND " CHOSEN ") WHERE rank = 1 LIMIT ?10",
	[PUT] = put_columns,
	[COUNT] = "SELECT count(*) FROM measured",
	[PRUNE] = "DELETE FROM measured WHERE " CHOSEN " AND id NOT IN (SELECT id FROM "
		"(SELECT id, row_number() OVER (PARTITION BY hash, device ORDER BY " FASTEST ") "
		"AS rank FROM measured WHERE " TIMED ") WHERE rank <= ?11)",
};
#undef X

/* has_sizes("m=4096 n=64 k=64", "k=64 m=4096"): is every word of the second text in the first? */
static void has_sizes(sqlite3_context *c, int n, sqlite3_value **v)
{
	const char *has = (const char *)sqlite3_value_text(v[0]);
	const char *want = (const char *)sqlite3_value_text(v[1]);
	bool all = has && want;

	(void)n;
	while (all && *(want += strspn(want, " "))) {
		size_t len = strcspn(want, " ");
		const char *s = has;

		for (all = false; !all && *(s += strspn(s, " ")); s += strcspn(s, " "))
			all = strcspn(s, " ") == len && !memcmp(s, want, len);
		want += len;
	}
	sqlite3_result_int(c, all);
}

static int prepare(struct store *s, int which, sqlite3_stmt **out)
{
	sqlite3_stmt **q = &s->file.statement[which];
	int rc = SQLITE_OK;

	if (!*q)
		rc = sqlite3_create_function(s->file.db, "has_sizes", 2,
			SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, has_sizes, NULL, NULL);
	if (!*q && !rc)
		rc = sqlite3_prepare_v3(s->file.db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, q, NULL);
	*out = *q;
	return rc;
}

/* NULL for a text that any value meets. A statement may lack the last parameters. */
static int bind_filter(sqlite3_stmt *q, const struct store_filter *f, int64_t keep)
{
	const char *const text[] = {	/* ORDER parameter */
		f->program, f->device, f->kind, f->status, f->version, f->hash, f->family, f->sizes,
		f->before };
	int n = sqlite3_bind_parameter_count(q), rc = SQLITE_OK;

	for (int i = 0; i < LEN(text) && !rc && P_PROGRAM + i <= n; i++)
		rc = sqlite3_bind_text(q, P_PROGRAM + i, text[i], -1, SQLITE_STATIC);
	if (!rc && n >= P_LIMIT)
		rc = sqlite3_bind_int64(q, P_LIMIT, f->limit ? f->limit : -1);
	if (!rc && n >= P_KEEP)
		rc = sqlite3_bind_int64(q, P_KEEP, keep);
	return rc;
}

static int bind_value(sqlite3_stmt *q, int at, enum store_type type, const struct store_value *v)
{
	if (!v->set)
		return sqlite3_bind_null(q, at);
	switch (type) {
	case STORE_TEXT:
		return sqlite3_bind_text64(q, at, v->text, v->len, SQLITE_STATIC, SQLITE_UTF8);
	case STORE_REAL:
		return sqlite3_bind_double(q, at, v->real);
	case STORE_INTEGER:
	case STORE_FLAG:
		return sqlite3_bind_int64(q, at, v->integer);
	}
	BUG("a column of type %d", (int)type);
}

/* False: out of memory. */
static bool read_value(sqlite3_stmt *q, int at, enum store_type type, struct store_value *v)
{
	v->set = sqlite3_column_type(q, at) != SQLITE_NULL;
	if (type == STORE_TEXT && v->set) {
		v->text = (const char *)sqlite3_column_text(q, at);
		v->len = (size_t)sqlite3_column_bytes(q, at);
		return v->text;
	}
	v->integer = sqlite3_column_int64(q, at);
	v->real = sqlite3_column_double(q, at);
	return true;
}

static int read_row(sqlite3_stmt *q, struct store_row *row)
{
	*row = (struct store_row){ .id = sqlite3_column_int64(q, 0) };
	for (int i = 0; i < STORE_COLUMN_COUNT; i++)
		if (!read_value(q, i + 1, store_columns[i].type, &row->at[i]))
			return SQLITE_NOMEM;
	return SQLITE_ROW;
}

/* ---- the store ---- */

const char *store_default_path(struct arena *a)
{
	const char *given = getenv("MILLRACE_STORE"), *xdg = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");

	if (given && *given)
		return strcmp(given, "none") ? arena_strdup(a, given) : NULL;
	if (xdg && *xdg == '/')		/* the standard says to ignore relative paths */
		return arena_strf(a, "%s/millrace/store.db", xdg);
	if (home && *home == '/')
		return arena_strf(a, "%s/.local/share/millrace/store.db", home);
	return NULL;
}

void store_new(struct mem *m, const char *path, struct store **out)
{
	*out = ARENA_OWNER(m, struct store);
	if (path)
		(*out)->file.path = arena_strdup(&(*out)->arena, path);
}

void store_free(struct store *s)
{
	if (!s)
		return;
	file_close(&s->file);
	arena_release(&s->arena);
}

const char *store_path(const struct store *s)
{
	return s->file.path;
}

const char *store_notice(struct store *s)
{
	char *notice = s->file.notice;

	memcpy(s->last_notice, notice, sizeof(s->last_notice));
	*notice = '\0';
	return s->last_notice;
}

int64_t store_generation(const struct store *s)
{
	return s->generation;
}

void store_end(struct store *s)
{
	sqlite3_reset(s->reading);
	s->reading = NULL;
}

/* Open the file if it exists, or if `make`, and end what is being read. */
static enum err_code open_for_call(struct store *s, bool make, struct err *e)
{
	store_end(s);
	s->generation++;
	return s->file.path ? file_open(&s->file, make, e) : OK;
}

/* Make of SQLite's result an error or OK. *again: the file was damaged and set aside; the call may be tried again. */
static enum err_code conclude_call(struct store *s, int rc, bool *again, struct err *e)
{
	*again = file_is_damage(rc);
	if (*again)
		return file_set_aside(&s->file, "damaged", e);
	return rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW ? OK : file_error(&s->file, rc, e);
}

static int put_once(struct store *s, const struct store_row *row)
{
	sqlite3_stmt *q;
	int rc = prepare(s, PUT, &q);

	for (int i = 0; i < STORE_COLUMN_COUNT && !rc; i++)
		rc = bind_value(q, i + 1, store_columns[i].type, &row->at[i]);
	if (!rc)
		rc = sqlite3_step(q);	/* a transaction of its own, unless one has begun */
	sqlite3_reset(q);
	return rc;
}

static int put_all_once(struct store *s, const struct store_row *rows, int n)
{
	int rc;

	if (n == 1)
		return put_once(s, rows);
	rc = sqlite3_exec(s->file.db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (rc)
		return rc;
	for (int i = 0; i < n && (rc == SQLITE_OK || rc == SQLITE_DONE); i++)
		rc = put_once(s, &rows[i]);
	if (rc == SQLITE_OK || rc == SQLITE_DONE)
		rc = sqlite3_exec(s->file.db, "COMMIT", NULL, NULL, NULL);
	if (rc)
		sqlite3_exec(s->file.db, "ROLLBACK", NULL, NULL, NULL);	/* SQLite may have done so */
	return rc;
}

enum err_code store_put(struct store *s, const struct store_row *row, struct err *e)
{
	return store_put_rows(s, row, 1, e);
}

enum err_code store_put_rows(struct store *s, const struct store_row *rows, int n, struct err *e)
{
	bool again = true;

	for (int tries = 0; again && tries < 2; tries++) {
		TRY(open_for_call(s, true, e));
		if (!s->file.db)
			return OK;
		TRY(conclude_call(s, put_all_once(s, rows, n), &again, e));
	}
	return OK;
}

/* A statement with its parameters, ready to be run. *q is NULL if there is no file; *rc is SQLite's result. */
static enum err_code begin_statement(struct store *s, int which, const struct store_filter *f, int64_t keep,
	sqlite3_stmt **q, int *rc, struct err *e)
{
	*q = NULL;
	*rc = SQLITE_OK;
	TRY(open_for_call(s, false, e));
	if (s->file.db)
		*rc = prepare(s, which, q);
	if (*q && !*rc)
		*rc = bind_filter(*q, f, keep);
	return OK;
}

enum err_code store_find(struct store *s, enum store_query query, const struct store_filter *f, struct err *e)
{
	int which = query == STORE_LIST && f->hash ? LIST_OF_HASH : (int)query, rc;
	sqlite3_stmt *q;
	bool again;

	TRY(begin_statement(s, which, f, 0, &q, &rc, e));
	s->reading = rc ? NULL : q;
	return conclude_call(s, rc, &again, e);
}

enum err_code store_next(struct store *s, struct store_row *row, bool *more, struct err *e)
{
	bool again;
	int rc;

	*more = false;
	if (!s->reading)
		return OK;
	rc = sqlite3_step(s->reading);
	if (rc == SQLITE_ROW)
		rc = read_row(s->reading, row);
	*more = rc == SQLITE_ROW;
	if (!*more)
		store_end(s);
	return conclude_call(s, rc, &again, e);
}

/* Run a statement that has one row or none. *n: the first column of its row, or else the rows that it
 * changed; 0 if there is no file. */
static enum err_code run_once(struct store *s, int which, const struct store_filter *f, int64_t keep,
	int64_t *n, struct err *e)
{
	sqlite3_stmt *q;
	bool again;
	int rc;

	*n = 0;
	TRY(begin_statement(s, which, f, keep, &q, &rc, e));
	if (q && !rc)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*n = sqlite3_column_int64(q, 0);
	else if (rc == SQLITE_DONE)
		*n = sqlite3_changes(s->file.db);
	sqlite3_reset(q);
	return conclude_call(s, rc, &again, e);
}

enum err_code store_count(struct store *s, int64_t *n, struct err *e)
{
	return run_once(s, COUNT, &(struct store_filter){ 0 }, 0, n, e);
}

enum err_code store_prune(struct store *s, const struct store_filter *f, int64_t keep, int64_t *removed, struct err *e)
{
	TRY(run_once(s, PRUNE, f, keep, removed, e));
	if (*removed)			/* makes the file smaller; an error does no harm */
		sqlite3_exec(s->file.db, "VACUUM", NULL, NULL, NULL);
	return OK;
}
