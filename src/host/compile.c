/* Compiling a kernel's text to a shared object, an open file without a name. */
#include "host/object.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/child.h"
#include "host/runtime.h"

enum { COMPILE_SECONDS = 300, WORDS_MAX = 64, LOG_SHOWN = 400 };

/* A temporary folder for the compiler. */
struct folder {
	char path[256];
};

static enum err_code fail_io(struct err *e, const char *what, const char *path)
{
	return err_set(e, ERR_IO, NOWHERE, "host: cannot %s '%s'", what, path);
}

static enum err_code write_file(const struct folder *f, const char *name, const char *text, size_t len, struct err *e)
{
	char path[PATH_MAX];
	FILE *file;
	bool bad;

	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	file = fopen(path, "w");
	if (!file)
		return fail_io(e, "write", path);
	bad = fwrite(text, 1, len, file) != len;
	bad |= fclose(file) != 0;
	return bad ? fail_io(e, "write", path) : OK;
}

static enum err_code write_all(const struct folder *f, const char *text, size_t len, struct err *e)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/host", f->path);
	if (mkdir(path, 0700))
		return fail_io(e, "make", path);
	for (const struct runtime_file *r = runtime_files; r->name; r++) {
		snprintf(path, sizeof(path), "host/%s", r->name);
		TRY(write_file(f, path, r->text, r->len, e));
	}
	return write_file(f, "kernel.c", text, len, e);
}

static void remove_all(const struct folder *f)
{
	static const char *const ours[] = { "kernel.c", "kernel.so", "log" };
	char path[PATH_MAX];

	for (const struct runtime_file *r = runtime_files; r->name; r++) {
		snprintf(path, sizeof(path), "%s/host/%s", f->path, r->name);
		unlink(path);
	}
	for (int i = 0; i < LEN(ours); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->path, ours[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/host", f->path);
	rmdir(path);
	rmdir(f->path);
}

/* Most texts run only a few times and spend that time in the runtime; optimising them takes longer than it saves. */
static const char *const efforts[] = { "-O0", "-O3" };	/* quick, fast */

/* In the child: execute the compiler. CC may have several words, as "ccache gcc". The kernel is not linked
 * with libraries: this program has loaded them, and linking them takes a tenth of a quick compilation. */
static void exec_compiler(const struct folder *f, bool fast)
{
	const char *cc = getenv("CC");
	char *argv[WORDS_MAX + 1], words[2048];
	int n = 0, log;

	snprintf(words, sizeof(words), "%s -std=gnu11 %s -w -fPIC -shared -I. -Ihost "
		"-fvisibility=hidden -fno-strict-aliasing -fwrapv -ffp-contract=off "
		"-nostdlib -o kernel.so kernel.c -lgcc", cc && *cc && strlen(cc) < 1024 ? cc : "cc",
		efforts[fast]);
	for (char *w = strtok(words, " \t"); w && n < WORDS_MAX; w = strtok(NULL, " \t"))
		argv[n++] = w;
	argv[n] = NULL;
	if (chdir(f->path))
		_exit(127);
	log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(127);
	execvp(argv[0], argv);
	dprintf(2, "there is no C compiler '%s'; set CC to one", argv[0]);
	_exit(127);
}

/* The error, with the beginning of the compiler's output. */
static enum err_code compiler_failed(const struct folder *f, struct err *e)
{
	char path[PATH_MAX], log[LOG_SHOWN + 1];
	size_t n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/log", f->path);
	file = fopen(path, "r");
	if (file) {
		n = fread(log, 1, LOG_SHOWN, file);
		fclose(file);
	}
	while (n && log[n - 1] == '\n')
		n--;
	log[n] = '\0';
	return err_set(e, ERR_IO, NOWHERE, "host: the C compiler failed: %s", n ? log : "it did not say why");
}

static enum err_code compile_in(const struct folder *f, const char *text, size_t len, bool fast,
	const struct stop *stop, int *object, struct err *e)
{
	char path[PATH_MAX];
	struct child child;
	enum child_end end;
	int pid, status = 0;

	TRY(write_all(f, text, len, e));
	pid = child_fork(&child);
	if (pid < 0)
		return err_set(e, ERR_IO, NOWHERE, "host: cannot start a process");
	if (pid == 0)
		exec_compiler(f, fast);
	end = child_wait(&child, COMPILE_SECONDS, stop, &status);
	if (end == CHILD_STOPPED)
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	if (end == CHILD_LATE)
		return err_set(e, ERR_LIMIT, NOWHERE, "host: the C compiler took more than %d s", COMPILE_SECONDS);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return compiler_failed(f, e);
	snprintf(path, sizeof(path), "%s/kernel.so", f->path);
	*object = open(path, O_RDONLY | O_CLOEXEC);
	return *object < 0 ? fail_io(e, "open", path) : OK;
}

static enum err_code compile(struct mem *mem, const char *text, size_t len, bool fast,
	const struct stop *stop, struct host_kernel **out, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	struct host_kernel *k;
	struct folder f;
	enum err_code code;

	k = mem_get(mem, sizeof(*k));
	*k = (struct host_kernel){ .mem = mem, .object = -1 };
	*out = k;
	snprintf(f.path, sizeof(f.path), "%s/millrace-XXXXXX", tmp && *tmp && strlen(tmp) < 200 ? tmp : "/tmp");
	if (!mkdtemp(f.path))
		return fail_io(e, "make a folder", f.path);
	code = compile_in(&f, text, len, fast, stop, &k->object, e);
	remove_all(&f);
	return code;
}

enum err_code host_compile(struct mem *mem, const char *text, size_t len, const struct stop *stop,
	struct host_kernel **out, struct err *e)
{
	return compile(mem, text, len, false, stop, out, e);
}

enum err_code host_compile_fast(struct mem *mem, const char *text, size_t len,
	const struct stop *stop, struct host_kernel **out, struct err *e)
{
	return compile(mem, text, len, true, stop, out, e);
}

void host_free(struct host_kernel *k)
{
	if (!k)
		return;
	if (k->object >= 0)
		close(k->object);
	mem_put(k->mem, k, sizeof(*k));
}
