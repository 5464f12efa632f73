/* store.h - a file with all measurements, an SQLite database.
 *
 * A row is one candidate: program, sizes and device, the plan as a script, the predicted and the
 * measured time, and whether the result was right. Rows are added, and removed only by store_prune.
 *
 * When store_put or store_put_rows returns OK, the rows are on the disk. Several processes may use one file at once. A store that is
 * damaged, or too old to be upgraded, is renamed, and a new one is begun; a file of a newer Millrace or of another
 * program, or that is no SQLite database, is an error and stays unchanged. Every call looks whether the file exists; the first row creates it.
 *
 * SQLite takes memory from malloc, everything else is from `mem`. No failure handler is called while
 * the file is being changed.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/err.h"

/* The columns, in the order of the file; docs/internals/store.md has meaning and unit of each. X(name, type) */
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
	int64_t integer;		/* INTEGER, FLAG */
	double real;
};

struct store_row {
	int64_t id;			/* increases with each row; ignored by store_put */
	struct store_value at[STORE_COLUMN_COUNT];
};

/* Conditions that rows must meet; NULL: any value. */
struct store_filter {
	const char *program, *device, *kind, *status, *version, *hash, *family;
	const char *sizes;		/* "m=4096 n=64": rows that have all of these */
	const char *before;		/* rows with an earlier time */
	int64_t limit;			/* the most rows to read; 0: all */
};

struct store;

/* The path of the store, from MILLRACE_STORE, XDG_DATA_HOME or HOME, in `a`. NULL: no store. */
const char *store_default_path(struct arena *a);

/* Opens no file. path NULL: a store that keeps nothing. *out is set first. */
void store_new(struct mem *m, const char *path, struct store **out);
void store_free(struct store *s);	/* NULL is fine */
const char *store_path(const struct store *s);

/* What the user should know about the file since the last call of this function, or "". Valid until the next call. */
const char *store_notice(struct store *s);

NODISCARD enum err_code store_put(struct store *s, const struct store_row *row, struct err *e);
/* All of n rows, or none: the disk is waited for once. */
NODISCARD enum err_code store_put_rows(struct store *s, const struct store_row *rows, int n, struct err *e);

/* store_find begins a query; store_next reads a row, until *more is false. Any other call on the store
 * ends the query and changes store_generation. Call store_end unless all rows are read. The texts of a
 * row are valid until the next call; those of the filter must be valid until the last one.
 *
 * STORE_LIST: the newest rows first. The other queries have only rows with status "ok" and a time. STORE_BEST: the
 * fastest first, measured rows before those that are only predicted. STORE_NEAR: the best row of each set of sizes. */
enum store_query { STORE_LIST, STORE_BEST, STORE_NEAR };
NODISCARD enum err_code store_find(struct store *s, enum store_query q, const struct store_filter *f, struct err *e);
NODISCARD enum err_code store_next(struct store *s, struct store_row *row, bool *more, struct err *e);
void store_end(struct store *s);
int64_t store_generation(const struct store *s);

NODISCARD enum err_code store_count(struct store *s, int64_t *n, struct err *e);

/* Remove the rows that meet the filter, except the `keep` best of each program, sizes and device. */
NODISCARD enum err_code store_prune(struct store *s, const struct store_filter *f, int64_t keep,
	int64_t *removed, struct err *e);

#endif
