#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "store/file.h"

struct store {
	struct arena arena;		/* owns this struct, too */
	struct store_file file;		/* path NULL: keeps nothing */
	sqlite3_stmt *walk;		/* of store_find, not at its end yet; NULL */
	int64_t turn;			/* calls so far that end what was begun */
	char told[NOTICE_MAX];		/* the last notice that was read */
};

const struct store_column_info store_columns[STORE_COLUMN_COUNT] = {
#define X(name, type) { #name, STORE_##type },
	STORE_COLUMNS(X)
#undef X
};

/* ---- statements ---- */

/* All have the same parameters, by number: what a filter says, in this order. */
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
/* The first ones are those of enum store_query. Where one value is asked for, it is told plainly,
 * so that an index serves. */
enum { PUT = STORE_NEAR + 1, COUNT, PRUNE };
static const char *const sql[] = {
	[STORE_LIST] = "SELECT " COLUMNS " FROM measured WHERE " CHOSEN " ORDER BY id DESC LIMIT ?10",
	[STORE_BEST] = "SELECT " COLUMNS " FROM measured WHERE hash = ?6 AND " TIMED " AND " CHOSEN
		" ORDER BY " FASTEST " LIMIT ?10",
	[STORE_NEAR] = "SELECT " COLUMNS " FROM (SELECT *, row_number() OVER "
		"(PARTITION BY sizes ORDER BY " FASTEST ") AS place FROM measured "
		"WHERE family = ?7 AND " TIMED " AND " CHOSEN ") WHERE place = 1 LIMIT ?10",
	[PUT] = put_columns,
	[COUNT] = "SELECT count(*) FROM measured",
	[PRUNE] = "DELETE FROM measured WHERE " CHOSEN " AND id NOT IN (SELECT id FROM "
		"(SELECT id, row_number() OVER (PARTITION BY hash, device ORDER BY " FASTEST ") "
		"AS place FROM measured WHERE " TIMED ") WHERE place <= ?11)",
};
#undef X

/* has_sizes("m=4096 n=64 k=64", "k=64 m=4096"): is every word of the second among the first? */
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

/* A NULL is told as one. */
static int bind_text(sqlite3_stmt *q, int at, const char *text)
{
	if (at > sqlite3_bind_parameter_count(q))
		return SQLITE_OK;
	return sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
}

static int bind_filter(sqlite3_stmt *q, const struct store_filter *f)
{
	const char *const text[] = {	/* ORDER parameter */
		f->program, f->device, f->kind, f->status, f->version, f->hash, f->family, f->sizes,
		f->before };
	int rc = SQLITE_OK;

	for (int i = 0; i < LEN(text) && !rc; i++)
		rc = bind_text(q, P_PROGRAM + i, text[i]);
	if (!rc && sqlite3_bind_parameter_count(q) >= P_LIMIT)
		rc = sqlite3_bind_int64(q, P_LIMIT, f->limit ? f->limit : -1);
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

/* False: there is no memory for it. */
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

const char *store_place(struct arena *a)
{
	const char *given = getenv("MILLRACE_STORE"), *xdg = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");

	if (given && *given)
		return strcmp(given, "none") ? arena_strdup(a, given) : NULL;
	if (xdg && *xdg == '/')		/* others are to be ignored, says the standard */
		return arena_strf(a, "%s/millrace/store.db", xdg);
	if (home && *home == '/')
		return arena_strf(a, "%s/.local/share/millrace/store.db", home);
	return NULL;
}

void store_new(struct mem *m, const char *path, struct store **out)
{
	struct arena a;

	arena_init(&a, m);
	*out = ARENA_NEW(&a, struct store);
	(*out)->arena = a;
	if (path)
		(*out)->file.path = arena_strdup(&(*out)->arena, path);
}

void store_free(struct store *s)
{
	struct arena a;

	if (!s)
		return;
	file_close(&s->file);
	a = s->arena;
	arena_release(&a);
}

const char *store_path(const struct store *s)
{
	return s->file.path;
}

const char *store_notice(struct store *s)
{
	char *notice = s->file.notice;

	memcpy(s->told, notice, sizeof(s->told));
	*notice = '\0';
	return s->told;
}

int64_t store_generation(const struct store *s)
{
	return s->turn;
}

void store_end(struct store *s)
{
	sqlite3_reset(s->walk);
	s->walk = NULL;
}

/* The file is open, if it is there or to be made; nothing is under way. */
static enum err_code ready(struct store *s, bool make, struct err *e)
{
	store_end(s);
	s->turn++;
	return s->file.path ? file_open(&s->file, make, e) : OK;
}

/* What SQLite's answer comes to. *again: the file was set aside, and the call may be made once
 * more. */
static enum err_code settle(struct store *s, int rc, bool *again, struct err *e)
{
	*again = file_is_damage(rc);
	if (*again)
		return file_set_aside(&s->file, "damaged", e);
	return rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW ? OK :
		file_error(&s->file, rc, e);
}

static int put_once(struct store *s, const struct store_row *row)
{
	sqlite3_stmt *q;
	int rc = prepare(s, PUT, &q);

	for (int i = 0; i < STORE_COLUMN_COUNT && !rc; i++)
		rc = bind_value(q, i + 1, store_columns[i].type, &row->at[i]);
	if (!rc)
		rc = sqlite3_step(q);	/* a transaction of its own */
	sqlite3_reset(q);
	return rc;
}

enum err_code store_put(struct store *s, const struct store_row *row, struct err *e)
{
	bool again = true;

	for (int tries = 0; again && tries < 2; tries++) {
		TRY(ready(s, true, e));
		if (!s->file.db)
			return OK;
		TRY(settle(s, put_once(s, row), &again, e));
	}
	return OK;
}

enum err_code store_find(struct store *s, enum store_query which, const struct store_filter *f,
	struct err *e)
{
	sqlite3_stmt *q;
	bool again;
	int rc;

	TRY(ready(s, false, e));
	if (!s->file.db)
		return OK;
	rc = prepare(s, (int)which, &q);
	if (!rc)
		rc = bind_filter(q, f);
	if (!rc)
		s->walk = q;
	return settle(s, rc, &again, e);
}

enum err_code store_next(struct store *s, struct store_row *row, bool *more, struct err *e)
{
	bool again;
	int rc;

	*more = false;
	if (!s->walk)
		return OK;
	rc = sqlite3_step(s->walk);
	if (rc == SQLITE_ROW)
		rc = read_row(s->walk, row);
	*more = rc == SQLITE_ROW;
	if (!*more)
		store_end(s);
	return settle(s, rc, &again, e);
}

enum err_code store_count(struct store *s, int64_t *n, struct err *e)
{
	sqlite3_stmt *q;
	bool again;
	int rc;

	*n = 0;
	TRY(ready(s, false, e));
	if (!s->file.db)
		return OK;
	rc = prepare(s, COUNT, &q);
	if (!rc)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*n = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return settle(s, rc, &again, e);
}

enum err_code store_prune(struct store *s, const struct store_filter *f, int64_t keep,
	int64_t *removed, struct err *e)
{
	sqlite3_stmt *q;
	bool again;
	int rc;

	*removed = 0;
	TRY(ready(s, false, e));
	if (!s->file.db)
		return OK;
	rc = prepare(s, PRUNE, &q);
	if (!rc)
		rc = bind_filter(q, f);
	if (!rc)
		rc = sqlite3_bind_int64(q, P_KEEP, keep);
	if (!rc)
		rc = sqlite3_step(q);
	if (rc == SQLITE_DONE)
		*removed = sqlite3_changes(s->file.db);
	sqlite3_reset(q);
	if (*removed)			/* gives the room back; if it cannot, that is no loss */
		sqlite3_exec(s->file.db, "VACUUM", NULL, NULL, NULL);
	return settle(s, rc, &again, e);
}
