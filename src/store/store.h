/* store.h - every measurement that was ever made, in a file.
 *
 * A row is one candidate: which program, sizes and device, the plan as a script that builds
 * it again, what was predicted, what was measured, whether the answer was right. Rows are
 * only ever added, or pruned on request.
 *
 * When store_put returns OK, the row is on the disk: whatever ends the process afterwards
 * does not take it back. Several processes may write one file at once. A file that is
 * damaged, or older than what can be brought up to date, is renamed and a new one begun; one
 * that a newer Millrace wrote, or another program, is an error and stays as it is. The file
 * is looked for at every call, and made by the first row.
 *
 * SQLite has its memory from malloc; what is ours comes from `mem`. No call is left by a
 * jump while a file is being changed.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/err.h"

/* What a row has, in the order of the file: first what rows are chosen by. docs/internals/store.md
 * tells each column and its unit. X(name, type) */
#define STORE_COLUMNS(X) \
	X(time, TEXT) X(kind, TEXT) X(status, TEXT) X(program, TEXT) X(sizes, TEXT) X(hash, TEXT) \
	X(family, TEXT) X(device, TEXT) X(title, TEXT) X(driver, TEXT) X(version, TEXT) \
	X(kernel, TEXT) X(tile, TEXT) X(predicted, REAL) X(bound, REAL) X(ms, REAL) X(min, REAL) \
	X(max, REAL) X(runs, INTEGER) X(cache, TEXT) X(clock_hz, REAL) X(watts, REAL) \
	X(correct, FLAG) X(error, REAL) X(seed, INTEGER) X(message, TEXT) X(script, TEXT)

enum store_column {
#define X(name, type) STORE_##name,
	STORE_COLUMNS(X)
#undef X
	STORE_COLUMN_COUNT
};

enum store_type { STORE_TEXT, STORE_REAL, STORE_INTEGER, STORE_FLAG };

struct store_column_info {
	const char *name;
	enum store_type type;
};
extern const struct store_column_info store_columns[STORE_COLUMN_COUNT];

struct store_value {
	bool set;
	const char *text;		/* TEXT: any bytes, `len` of them */
	size_t len;
	int64_t integer;			/* INTEGER, FLAG */
	double real;
};

struct store_row {
	int64_t id;			/* in order of writing; not used by store_put */
	struct store_value at[STORE_COLUMN_COUNT];
};

/* Which rows. A NULL matches all. */
struct store_filter {
	const char *program, *device, *kind, *status, *version, *hash, *family;
	const char *sizes;		/* "m=4096 n=64": rows that have all of these */
	const char *before;		/* rows with a lesser time */
	int64_t limit;			/* so many of the first; 0: all */
};

struct store;

/* Where the store is unless somebody says so: by MILLRACE_STORE, XDG_DATA_HOME, HOME. NULL:
 * there is to be none. */
const char *store_place(struct arena *a);

/* No file is touched. path NULL: a store that keeps nothing. */
void store_new(struct mem *m, const char *path, struct store **out);
void store_free(struct store *s);	/* NULL is fine */
const char *store_path(const struct store *s);

/* What happened to the file during the last call that the user should know, or "": cleared
 * by being read. */
const char *store_notice(struct store *s);

NODISCARD enum err_code store_put(struct store *s, const struct store_row *row, struct err *e);

/* Rows one after the other, until *more is false. Another call ends what was begun, and changes
 * store_generation; store_end ends it, too, and is due if not all are read. The texts of a row hold
 * until the next call, those of the filter must until the last.
 *
 * STORE_LIST: the newest first. Of the other two only rows that are "ok" with a time: for
 * STORE_BEST the fastest first, measured ones before those that are only predicted;
 * STORE_NEAR has the best one of each sizes. */
enum store_query { STORE_LIST, STORE_BEST, STORE_NEAR };
NODISCARD enum err_code store_find(struct store *s, enum store_query q,
	const struct store_filter *f, struct err *e);
NODISCARD enum err_code store_next(struct store *s, struct store_row *row, bool *more,
	struct err *e);
void store_end(struct store *s);
int64_t store_generation(const struct store *s);

NODISCARD enum err_code store_count(struct store *s, int64_t *n, struct err *e);

/* Removes rows, except the `keep` best of each program, sizes and device (0: none). */
NODISCARD enum err_code store_prune(struct store *s, const struct store_filter *f, int64_t keep,
	int64_t *removed, struct err *e);

#endif
