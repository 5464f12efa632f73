/* The store: rows out are rows in; problems of a file are reported and nothing of it is lost; and
 * if any request for memory or write to the disk fails, accepted rows stay. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "store/store.h"
#include "tap.h"

enum { PATH = 200, WRITERS = 4, EACH = 25 };

/* ---- what fails ---- */

/* The k-th call from now on fails, and so do all after it; 0: none. */
struct trap {
	long fail_at, calls;
};

static struct trap memory, disk;

static bool trapped(struct trap *t)
{
	return ++t->calls >= t->fail_at && t->fail_at;
}

static void trap_set(struct trap *t, long at)
{
	*t = (struct trap){ .fail_at = at };
}

static sqlite3_mem_methods real_memory;
static long blocks;

static void *trap_malloc(int n)
{
	void *p = trapped(&memory) ? NULL : real_memory.xMalloc(n);

	blocks += p != NULL;
	return p;
}

static void *trap_realloc(void *p, int n)
{
	return trapped(&memory) ? NULL : real_memory.xRealloc(p, n);
}

static void trap_free(void *p)
{
	blocks -= p != NULL;
	real_memory.xFree(p);
}

static void trap_memory(void)
{
	sqlite3_mem_methods m;

	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
	m = real_memory;
	m.xMalloc = trap_malloc;
	m.xRealloc = trap_realloc;
	m.xFree = trap_free;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &m);
}

static ssize_t trap_pwrite(int fd, const void *p, size_t n, off_t at)
{
	errno = ENOSPC;
	return trapped(&disk) ? -1 : pwrite(fd, p, n, at);
}

static ssize_t trap_write(int fd, const void *p, size_t n)
{
	errno = ENOSPC;
	return trapped(&disk) ? -1 : write(fd, p, n);
}

/* The power does not go here. */
static int trap_sync(int fd)
{
	(void)fd;
	errno = EIO;
	return trapped(&disk) ? -1 : 0;
}

static int trap_truncate(int fd, off_t n)
{
	errno = EIO;
	return trapped(&disk) ? -1 : ftruncate(fd, n);
}

static void trap_disk(void)
{
	sqlite3_vfs *v = sqlite3_vfs_find(NULL);

	v->xSetSystemCall(v, "pwrite", (sqlite3_syscall_ptr)trap_pwrite);
	v->xSetSystemCall(v, "pwrite64", (sqlite3_syscall_ptr)trap_pwrite);
	v->xSetSystemCall(v, "write", (sqlite3_syscall_ptr)trap_write);
	v->xSetSystemCall(v, "fsync", (sqlite3_syscall_ptr)trap_sync);
	v->xSetSystemCall(v, "ftruncate", (sqlite3_syscall_ptr)trap_truncate);
}

/* ---- paths ---- */

static char dir[] = "/tmp/storeXXXXXX", path[PATH];
static struct mem mem;

/* A new path, in a folder that is not there yet. */
static void fresh(void)
{
	static int n;

	snprintf(path, sizeof(path), "%s/%d/deep/store.db", dir, ++n);
}

static bool there(const char *end)
{
	char name[PATH + 32];

	snprintf(name, sizeof(name), "%s%s", path, end);
	return !access(name, F_OK);
}

/* A command, in which $F is the path. */
static void shell(const char *command)
{
	if (setenv("F", path, 1) || system(command))
		diag("failed: %s", command);
}

/* The complete file: its length, at most n bytes in buf. */
static size_t slurp(const char *end, char *buf, size_t n)
{
	char name[PATH + 32];
	size_t got = 0;
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", path, end);
	f = fopen(name, "rb");
	if (f)
		got = fread(buf, 1, n, f);
	if (f)
		fclose(f);
	return got;
}

static void spill(const char *buf, size_t n)
{
	FILE *f;

	shell("mkdir -p $(dirname $F)");
	f = fopen(path, "wb");
	if (!f || fwrite(buf, 1, n, f) != n)
		diag("cannot write %s", path);
	if (f)
		fclose(f);
}

static void sql(const char *text)
{
	sqlite3 *db;

	shell("mkdir -p $(dirname $F)");
	if (sqlite3_open(path, &db) || sqlite3_exec(db, text, NULL, NULL, NULL))
		diag("%s: %s", text, sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* ---- rows ---- */

static struct store *open_store(void)
{
	struct store *s;

	store_new(&mem, path, &s);
	return s;
}

static void set_text(struct store_row *r, enum store_column c, const char *s)
{
	r->at[c] = (struct store_value){ .set = true, .text = s, .len = strlen(s) };
}

static void set_real(struct store_row *r, enum store_column c, double x)
{
	r->at[c] = (struct store_value){ .set = true, .real = x };
}

static struct store_row row_of(const char *program, const char *sizes, double ms)
{
	struct store_row r = { 0 };

	set_text(&r, STORE_time, "2026-01-31T12:00:00Z");
	set_text(&r, STORE_kind, "search");
	set_text(&r, STORE_status, "ok");
	set_text(&r, STORE_program, program);
	set_text(&r, STORE_sizes, sizes);
	set_text(&r, STORE_hash, sizes);
	set_text(&r, STORE_family, program);
	set_text(&r, STORE_device, "h200");
	set_text(&r, STORE_version, "1");
	if (ms > 0)
		set_real(&r, STORE_ms, ms);
	return r;
}

static enum err_code put(struct store *s, const char *program, const char *sizes, double ms)
{
	struct store_row r = row_of(program, sizes, ms);
	struct err e = { 0 };
	enum err_code code = store_put(s, &r, &e);

	if (code && !strstr(e.msg, "store: "))
		diag("a strange message: %s", e.msg);
	return code;
}

static long count(struct store *s)
{
	struct err e;
	int64_t n;

	return store_count(s, &n, &e) ? -1 : (long)n;
}

/* How many rows there are for somebody else. */
static long kept(void)
{
	struct store *s = open_store();
	long n = count(s);

	store_free(s);
	return n;
}

/* The ids of what is found, as text: "3 1 ". */
static const char *found(struct store *s, enum store_query q, struct store_filter f)
{
	static char text[256];
	static struct err e;
	struct store_row r;
	bool more = true;
	size_t len = 0;

	*text = '\0';
	if (store_find(s, q, &f, &e))
		return e.msg;
	for (;;) {
		if (store_next(s, &r, &more, &e))
			return "failed";
		if (!more)
			return text;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d ", (int)r.id);
	}
}

static bool same_value(enum store_type type, const struct store_value *a, const struct store_value *b)
{
	if (a->set != b->set || !a->set)
		return a->set == b->set;
	if (type == STORE_TEXT)
		return a->len == b->len && !memcmp(a->text, b->text, a->len);
	return type == STORE_REAL ? a->real == b->real : a->integer == b->integer;
}

/* ---- rows out are rows in ---- */

static void test_same(void)
{
	enum { LONG = 1 << 20 };
	static const char bytes[] = "a\0b\xff\xfe\xc3\x28'\"; DROP TABLE measured; --\n\r\t\xf0\x9f\x98\x80";
	char *script = malloc(LONG);
	struct store *s;
	struct store_row in[4] = { { 0 } }, out;
	struct prng r = { 7 };
	struct err e;
	int wrong = 0, n = 0;
	bool more;

	fresh();
	s = open_store();
	for (int i = 0; i < LONG; i++)
		script[i] = (char)prng_next(&r);
	for (int c = 0; c < STORE_COLUMN_COUNT; c++) {
		in[1].at[c] = (struct store_value){ true, bytes, sizeof(bytes), INT64_MIN, 1e-300 };
		in[2].at[c] = (struct store_value){ true, script, LONG, INT64_MAX, -0.1 };
		in[3].at[c] = (struct store_value){ true, "", 0, 0, 0 };
	}
	for (int i = 0; i < LEN(in); i++)
		wrong += store_put(s, &in[i], &e) != OK;
	is_int(wrong, 0, "rows are taken");
	wrong = store_find(s, STORE_LIST, &(struct store_filter){ 0 }, &e) != OK;
	while (!wrong && !store_next(s, &out, &more, &e) && more) {
		const struct store_row *want = &in[out.id - 1];

		n++;
		for (int c = 0; c < STORE_COLUMN_COUNT; c++)
			wrong += !same_value(store_columns[c].type, &out.at[c], &want->at[c]);
	}
	is_int(n, LEN(in), "all of them come back");
	is_int(wrong, 0, "as they were: any bytes, a script of a megabyte, nothing at all");
	store_free(s);
	free(script);
}

static void test_nothing(void)
{
	struct store *s;

	fresh();
	s = open_store();
	is_int(count(s), 0, "a store without a file has no rows");
	is_str(found(s, STORE_LIST, (struct store_filter){ 0 }), "", "and finds none");
	ok(access(dir, F_OK) == 0 && !there("") && !there("/.."), "nothing is made by looking");
	is_int(put(s, "gemm", "m=1", 1), OK, "the first row makes it, with its folder");
	is_int(kept(), 1, "and is there for others");
	shell("rm $F*");
	is_int(count(s), 0, "who removes the file has none");
	is_int(put(s, "gemm", "m=1", 1), OK, "and the next row makes one");
	is_int(kept(), 1, "  that has it");
	store_free(s);
	store_new(&mem, NULL, &s);
	ok(!store_path(s) && put(s, "gemm", "m=1", 1) == OK && count(s) == 0, "a store may be none");
	store_free(s);
}

static void test_filters(void)
{
	struct store *s;
	struct store_row r;
	struct err e;
	int64_t gone;

	fresh();
	s = open_store();
	put(s, "gemm", "m=4096 n=64", 2);
	put(s, "gemm", "m=4096 n=64", 1);
	put(s, "gemm", "m=64 n=4096", 3);
	put(s, "gemm", "m=64 n=4096", 0);
	r = row_of("gemm", "m=4096 n=64", 0.5);
	set_text(&r, STORE_status, "wrong");
	ok(!store_put(s, &r, &e), "a wrong one is kept, too");
	r = row_of("gemm", "m=8 n=8", 0);
	set_real(&r, STORE_predicted, 1e-9);
	set_text(&r, STORE_time, "2025-01-01T00:00:00Z");
	ok(!store_put(s, &r, &e), "and one that was never measured");
	r = row_of("attention", "m=4096 n=64", 9);
	set_text(&r, STORE_device, "a100");
	ok(!store_put(s, &r, &e), "and one of another device");
#define LIST(...) found(s, STORE_LIST, (struct store_filter){ __VA_ARGS__ })
	is_str(LIST(.limit = 0), "7 6 5 4 3 2 1 ", "the newest come first");
	is_str(LIST(.limit = 2), "7 6 ", "so many");
	is_str(LIST(.program = "gemm", .limit = 3), "6 5 4 ", "of a program");
	is_str(LIST(.device = "a100"), "7 ", "of a device");
	is_str(LIST(.status = "wrong"), "5 ", "of a status");
	is_str(LIST(.before = "2025-06-01"), "6 ", "before a day");
	is_str(LIST(.sizes = "n=64"), "7 5 2 1 ", "of a size");
	is_str(LIST(.sizes = " n=4096  m=64 "), "4 3 ", "of sizes in any order");
	is_str(LIST(.sizes = "m=40"), "", "a part of a size is none");
	is_str(LIST(.kind = "search' OR 1"), "", "what is asked for is no SQL");
	is_str(found(s, STORE_BEST, (struct store_filter){ .hash = "m=4096 n=64", .device = "h200" }),
		"2 1 ", "the best are right, measured and fast");
	is_str(found(s, STORE_BEST, (struct store_filter){ .hash = "m=8 n=8" }), "6 ",
		"or predicted, if there is nothing else");
	is_str(found(s, STORE_NEAR, (struct store_filter){ .family = "gemm", .device = "h200" }), "2 3 6 ",
		"the best of each sizes");
	ok(!store_prune(s, &(struct store_filter){ .before = "2026-01-01" }, 0, &gone, &e) && gone == 1,
		"old ones are removed");
	ok(!store_prune(s, &(struct store_filter){ .program = "gemm" }, 1, &gone, &e) && gone == 3,
		"all but the best are");
	is_str(LIST(.limit = 0), "7 3 2 ", "  and these stay");
	put(s, "gemm", "m=1", 1);
	is_str(LIST(.limit = 1), "8 ", "a number is not used again");
	store_free(s);
}

static void test_interrupted_walk(void)
{
	struct store *s, *other;
	struct store_row r;
	struct err e;
	int64_t generation;
	bool more;

	fresh();
	s = open_store();
	other = open_store();
	put(s, "gemm", "m=1", 1);
	put(s, "gemm", "m=2", 1);
	ok(!store_find(s, STORE_LIST, &(struct store_filter){ 0 }, &e) &&
		!store_next(s, &r, &more, &e) && more, "rows are being read");
	is_int(put(other, "gemm", "m=3", 1), OK, "another writer does not wait");
	generation = store_generation(s);
	is_int(put(s, "gemm", "m=4", 1), OK, "nor does the reader itself");
	ok(generation != store_generation(s) && !store_next(s, &r, &more, &e) && !more, "  which ends the reading");
	is_int(count(s), 4, "all rows are there");
	store_free(other);
	store_free(s);
}

/* ---- files that are not as they should be ---- */

static char file_before[1 << 20], file_after[1 << 20];

static void make_rows(int n)
{
	struct store *s = open_store();

	for (int i = 0; i < n; i++)
		put(s, "gemm", "m=4096 n=4096 k=4096", i + 1);
	store_free(s);
}

/* The present file is set aside with a message, as it was, and rows are taken. */
static void set_aside(const char *why, const char *what)
{
	size_t n = slurp("", file_before, sizeof(file_before)), m;
	struct store *s = open_store();
	char end[32], message[64];
	const char *notice;

	snprintf(end, sizeof(end), ".%s-1", why);
	snprintf(message, sizeof(message), " is %s; it was set aside as ", why);
	diag("%s", what);
	is_int(put(s, "gemm", "m=1", 1), OK, "a row is taken");
	notice = store_notice(s);
	ok(strstr(notice, message), "  with a message");
	is_str(store_notice(s), "", "  which is reported once");
	is_int(count(s), 1, "  in a new file");
	store_free(s);
	m = slurp(end, file_after, sizeof(file_after));
	ok(n == m && !memcmp(file_before, file_after, n), "  and the old one is there as it was");
}

static void test_damaged(void)
{
	fresh();
	make_rows(100);
	shell("printf garbage%040d 7 | dd of=$F bs=1 seek=12300 conv=notrunc 2>/dev/null");
	set_aside("damaged", "some bytes written over");
	shell("cp $F.damaged-1 $F");
	{
		struct store *s = open_store();

		is_str(found(s, STORE_LIST, (struct store_filter){ 0 }), "", "who only reads finds none");
		ok(strstr(store_notice(s), "damaged-2"), "  and is reported, too");
		ok(!there("") && there(".damaged-1") && there(".damaged-2"), "  with nothing written over");
		store_free(s);
	}
	fresh();
	sql("PRAGMA application_id = 1298754668; PRAGMA user_version = 2; CREATE TABLE measured (x)");
	set_aside("damaged", "other tables than ours");
}

/* Truncated at any length, or with any bytes overwritten: a row is accepted, and either the others
 * are there or the file was set aside. */
static void test_any_damage(void)
{
	size_t n;
	struct prng r = { 1 };
	int lost = 0, refused = 0, aside = 0;

	fresh();
	make_rows(40);
	n = slurp("", file_before, sizeof(file_before));
	for (int i = 0; i < 120; i++) {
		size_t len = i < 60 ? n * (size_t)i / 60 + (size_t)(i % 3) : n;
		struct store *s;

		shell("rm -f $F*");
		memcpy(file_after, file_before, n);
		for (int k = 0; i >= 60 && k < 16; k++) {
			uint32_t at = prng_below(&r, (uint32_t)n);

			if (at >= 16 && (at < 60 || at >= 72))	/* what it is, whose, and its version */
				file_after[at] = (char)prng_next(&r);
		}
		spill(file_after, len);
		s = open_store();
		refused += put(s, "gemm", "m=1", 1) != OK;
		aside += there(".damaged-1") || there(".older-1");
		lost += len && !there(".damaged-1") && !there(".older-1") && count(s) != 41;
		store_free(s);
	}
	is_int(refused, 0, "whatever became of the file, a row is taken");
	is_int(lost, 0, "and none is lost");
	ok(aside > 60, "most of these files are set aside");
	diag("%d of 120", aside);
}

/* The file stays as it is, and the message says why. */
static void left_alone(const char *what, const char *message)
{
	size_t n = slurp("", file_before, sizeof(file_before)), m;
	struct store *s = open_store();
	struct store_row r = row_of("gemm", "m=1", 1);
	struct err e = { 0 };

	diag("%s", what);
	ok(store_put(s, &r, &e) == ERR_IO && strstr(e.msg, message), "a row is not taken");
	if (!strstr(e.msg, message))
		diag("%s", e.msg);
	is_int(count(s), -1, "  nor is there an answer");
	store_free(s);
	m = slurp("", file_after, sizeof(file_after));
	ok(n == m && !memcmp(file_before, file_after, n), "  and the file is as it was");
}

static void test_foreign(void)
{
	struct store *s;
	int64_t n;
	struct err e;

	fresh();
	make_rows(3);
	sql("PRAGMA user_version = 77");
	left_alone("one that a newer Millrace wrote", "newer Millrace (version 77, this one knows 2)");
	fresh();
	sql("CREATE TABLE books (title TEXT); INSERT INTO books VALUES ('Kafka')");
	left_alone("a database of another program", "is a database of another program");
	fresh();
	spill("This is no database, but it is what somebody wrote.\n", 52);
	left_alone("a text", "is no SQLite database and stays as it is");
	spill("short\n", 6);
	left_alone("a short one", "is no SQLite database and stays as it is");
	fresh();
	make_rows(5);
	sql("DROP INDEX by_hash; DROP INDEX by_family; PRAGMA user_version = 1");
	is_int(kept(), 5, "one of the first version is brought up to date");
	s = open_store();
	is_str(found(s, STORE_BEST, (struct store_filter){ .hash = "m=4096 n=4096 k=4096", .limit = 1 }), "1 ",
		"  with all that is in it");
	ok(!store_prune(s, &(struct store_filter){ 0 }, 1, &n, &e) && n == 4, "  and can be used");
	store_free(s);
	fresh();
	sql("PRAGMA application_id = 1298754668; CREATE TABLE measured (x)");
	set_aside("older", "one from before the first version");
	fresh();
	make_rows(2);
	sql("PRAGMA user_version = 1");
	set_aside("older", "one that cannot be brought up to date");
	fresh();
	spill("", 0);
	is_int(kept(), 0, "an empty file becomes a store");
	shell("rm $F; mkdir $F");
	left_alone("a folder", "is not a file");
	snprintf(path, sizeof(path), "/dev/full");
	left_alone("a device", "is not a file");
	snprintf(path, sizeof(path), "/dev/null/store.db");
	s = open_store();
	is_int(put(s, "gemm", "m=1", 1), ERR_IO, "a folder that cannot be");
	is_int(count(s), 0, "  has no rows");
	store_free(s);
}

/* As somebody who may only read. */
static int read_only_child(void)
{
	struct store *s;

	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 9;
	s = open_store();
	if (count(s) != 3 || strcmp(found(s, STORE_LIST, (struct store_filter){ 0 }), "3 2 1 ") != 0)
		return 1;
	if (put(s, "gemm", "m=1", 1) != ERR_IO)
		return 2;
	if (count(s) != 3)
		return 3;
	store_free(s);
	return 0;
}

static void test_read_only(void)
{
	int status;

	fresh();
	make_rows(3);
	shell("chmod 755 $(dirname $(dirname $(dirname $F))); chmod 555 $(dirname $F)");
	shell("chmod 444 $F");
	fflush(stdout);
	if (!fork())
		_exit(read_only_child());
	wait(&status);
	is_int(WEXITSTATUS(status), 0, "what may only be read is read, and a row is refused");
	shell("chmod 755 $(dirname $F); chmod 644 $F");
	is_int(kept(), 3, "and it is as it was");
}

/* ---- many at once ---- */

static void test_writers(void)
{
	int failed = 0, status;

	fresh();
	fflush(stdout);
	for (int i = 0; i < WRITERS; i++) {
		if (fork())
			continue;
		struct store *s = open_store();
		int bad = 0;

		for (int k = 0; k < EACH; k++)
			bad += put(s, "gemm", "m=1", k + 1) != OK;
		store_free(s);
		_exit(bad > 0);
	}
	while (wait(&status) > 0)
		failed += !WIFEXITED(status) || WEXITSTATUS(status);
	is_int(failed, 0, "several writers make the file and write at once");
	is_int(kept(), WRITERS * EACH, "and all their rows are there");
}

/* ---- too little memory, or space on the disk ---- */

/* A new store with a row put, rows read, rows pruned; what was acknowledged is added. */
static void use(long *taken, long *removed)
{
	struct store *s = open_store();
	struct store_row r;
	struct err e;
	int64_t n = 0;
	bool more = true;

	*taken += put(s, "gemm", "m=1", 1) == OK;
	if (!store_find(s, STORE_NEAR, &(struct store_filter){ .family = "gemm" }, &e))
		while (!store_next(s, &r, &more, &e) && more)
			;
	if (!store_prune(s, &(struct store_filter){ .program = "nobody" }, 1, &n, &e))
		*removed += n;
	(void)count(s);
	store_free(s);
}

/* All of the first, then fewer and fewer: an index has more pages than a test has time. */
static long further(long at)
{
	return at + 1 + at / 32;
}

/* Each call of the trap fails once, with all after it. */
static void torture(struct trap *t, const char *what)
{
	long at = 0, rounds = 0, lost = 0, aside = 0, more = 0, before = blocks;

	fresh();
	make_rows(2);
	for (bool failed = true; failed; rounds++) {
		long had = kept(), taken = 0, removed = 0, has;

		at = further(at);
		trap_set(t, at);
		use(&taken, &removed);
		failed = t->calls >= t->fail_at;
		trap_set(t, 0);
		has = kept();
		lost += has < had + taken;
		more += has > had + 1;
		aside += there(".damaged-1");
	}
	diag("%s: %ld rounds", what, rounds);
	ok(rounds > 5, "the last round meets no failure");
	is_int(lost, 0, "no row that was taken is lost");
	is_int(more, 0, "nor is one there twice");
	is_int(aside, 0, "nor is the file taken for damaged");
	is_int(blocks, before, "nor does anything stay behind");
}

/* The same while the file is made. */
static void torture_new(struct trap *t, const char *what)
{
	long lost = 0, at = 0, rounds = 0;

	for (bool failed = true; failed; rounds++) {
		long taken = 0, removed = 0, has;

		fresh();
		at = further(at);
		trap_set(t, at);
		use(&taken, &removed);
		failed = t->calls >= t->fail_at;
		trap_set(t, 0);
		has = kept();
		lost += has < taken || there(".damaged-1") || there(".older-1");
	}
	diag("%s, of a new file: %ld rounds", what, rounds);
	is_int(lost, 0, "no row of a file in the making is lost, nor the file");
}

static jmp_buf back;

static void on_fail(void *ud, size_t want)
{
	(void)ud;
	(void)want;
	longjmp(back, 1);
}

static void test_our_memory(void)
{
	struct mem m = { .fail = on_fail, .fine = true };
	struct store *volatile s = NULL;
	volatile int left = 0, rounds = 0;

	fresh();
	do {
		s = NULL;
		m.fail_at = m.calls + (uint64_t)++rounds;
		if (!setjmp(back)) {
			store_new(&m, path, (struct store **)&s);
			m.fail_at = 0;
		}
		store_free(s);
		left += m.used != 0;
	} while (!s && rounds < 100);
	ok(rounds > 1 && !left, "nothing of ours stays behind when memory ends");
}

/* Rows that are put together: all or none. */
static void test_together(void)
{
	struct store_row rows[3];
	struct store *s;
	struct err e;

	fresh();
	s = open_store();
	put(s, "gemm", "m=1", 1);
	for (int i = 0; i < LEN(rows); i++)
		rows[i] = row_of(i == 1 ? "refused" : "gemm", "m=2", 1 + i);
	ok(!store_put_rows(s, rows, LEN(rows), &e), "rows are put together");
	is_str(found(s, STORE_LIST, (struct store_filter){ .hash = "m=2" }), "4 3 2 ", "and found");
	store_free(s);
	sql("CREATE TRIGGER refuse BEFORE INSERT ON measured WHEN NEW.program = 'refused' BEGIN SELECT RAISE(ABORT, 'no'); END");
	s = open_store();
	ok(store_put_rows(s, rows, LEN(rows), &e) == ERR_IO, "one of them is refused: an error");
	is_int(count(s), 4, "and none is in the file");
	ok(!put(s, "gemm", "m=3", 1) && count(s) == 5, "which takes others then");
	store_free(s);
}

int main(void)
{
	trap_memory();
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return 1;
	trap_disk();
	test_same();
	test_nothing();
	test_filters();
	test_interrupted_walk();
	test_together();
	test_damaged();
	test_any_damage();
	test_foreign();
	test_read_only();
	test_writers();
	torture(&memory, "memory");
	torture(&disk, "the disk");
	torture_new(&memory, "memory");
	torture_new(&disk, "the disk");
	test_our_memory();
	is_int((long long)mem.used, 0, "all memory comes back");
	snprintf(path, sizeof(path), "%s", dir);
	shell("rm -rf $F");
	return tap_done();
}
