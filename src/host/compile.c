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

#include "base/files.h"

enum { COMPILE_SECONDS = 300, WORDS_MAX = 64, LOG_SHOWN = 400 };

static enum err_code fail_io(struct err *e, const char *what, const char *path)
{
	return err_set(e, ERR_IO, NOWHERE, "host: cannot %s '%s'", what, path);
}

/* sub: "" or "host/". */
static char *path_in(char path[PATH_MAX], const char *folder, const char *sub, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s%s", folder, sub, name);
	return path;
}

static enum err_code write_file(const char *folder, const char *sub, const char *name, const char *text, size_t len,
	struct err *e)
{
	char path[PATH_MAX];

	return make_folders(path_in(path, folder, sub, name)) && replace_file(path, text, len) ? OK :
		fail_io(e, "write", path);
}

static void remove_all(const char *folder)
{
	static const char *const ours[] = { "kernel.c", "kernel.so", "log", "host" };
	char path[PATH_MAX];

	for (const struct runtime_file *r = runtime_files; r->name; r++)
		unlink(path_in(path, folder, "host/", r->name));
	for (int i = 0; i < LEN(ours); i++)
		remove(path_in(path, folder, "", ours[i]));
	rmdir(folder);
}

/* Most texts run only a few times and spend that time in the runtime; optimising them takes longer than it saves. tcc,
 * which cannot optimise, compiles ten times as fast as others. */
static const char *const efforts[] = { "-O0", "-O3" };	/* quick, fast */

/* In the child: execute the compiler `cc`, if there is one. It may have several words, as "ccache gcc". The kernel is not
 * linked with libraries: this program has loaded them, and linking them takes a tenth of a quick compilation. tcc has no
 * libgcc and needs none. */
static void exec_compiler(const char *cc, bool fast)
{
	char *argv[WORDS_MAX + 1], words[2048];
	int n = 0;

	snprintf(words, sizeof(words), "%.1024s -std=gnu11 %s -w -fPIC -shared -I. -Ihost "
		"-fvisibility=hidden -fno-strict-aliasing -fwrapv -ffp-contract=off "
		"-nostdlib -o kernel.so kernel.c%s", cc, efforts[fast], strstr(cc, "tcc") ? "" : " -lgcc");
	for (char *w = strtok(words, " \t"); w && n < WORDS_MAX; w = strtok(NULL, " \t"))
		argv[n++] = w;
	argv[n] = NULL;
	execvp(argv[0], argv);
}

/* In the child. */
static void compile_here(const char *folder, bool fast)
{
	const char *cc = getenv("CC");
	int log;

	if (chdir(folder))
		_exit(127);
	log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(127);
	if (cc && *cc) {
		exec_compiler(cc, fast);
	} else {
		if (!fast)
			exec_compiler("tcc", fast);
		exec_compiler(cc = "cc", fast);
	}
	dprintf(2, "there is no C compiler '%s'; set CC to one", cc);
	_exit(127);
}

/* The error, with the beginning of the compiler's output. */
static enum err_code compiler_failed(const char *folder, struct err *e)
{
	char path[PATH_MAX], log[LOG_SHOWN + 1];
	size_t n = 0;
	FILE *file;

	file = fopen(path_in(path, folder, "", "log"), "r");
	if (file) {
		n = fread(log, 1, LOG_SHOWN, file);
		fclose(file);
	}
	while (n && log[n - 1] == '\n')
		n--;
	log[n] = '\0';
	return err_set(e, ERR_IO, NOWHERE, "host: the C compiler failed: %s", n ? log : "it did not say why");
}

static enum err_code compile_in(const char *folder, const char *text, size_t len, bool fast,
	const struct stop *stop, int *object, struct err *e)
{
	char path[PATH_MAX];
	struct child child;
	enum child_end end;
	int pid, status = 0;

	for (const struct runtime_file *r = runtime_files; r->name; r++)
		TRY(write_file(folder, "host/", r->name, r->text, r->len, e));
	TRY(write_file(folder, "", "kernel.c", text, len, e));
	pid = child_fork(&child);
	if (pid < 0)
		return err_set(e, ERR_IO, NOWHERE, "host: cannot start a process");
	if (pid == 0)
		compile_here(folder, fast);
	end = child_wait(&child, COMPILE_SECONDS, stop, &status);
	if (end == CHILD_STOPPED)
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	if (end == CHILD_LATE)
		return err_set(e, ERR_LIMIT, NOWHERE, "host: the C compiler took more than %d s", COMPILE_SECONDS);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return compiler_failed(folder, e);
	*object = open(path_in(path, folder, "", "kernel.so"), O_RDONLY | O_CLOEXEC);
	return *object < 0 ? fail_io(e, "open", path) : OK;
}

enum err_code host_compile(struct mem *mem, const char *text, size_t len, bool fast, const struct stop *stop,
	struct host_kernel **out, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	char folder[256];
	enum err_code code;

	*out = mem_get(mem, sizeof(**out));
	**out = (struct host_kernel){ .mem = mem, .object = -1 };
	snprintf(folder, sizeof(folder), "%s/millrace-XXXXXX", tmp && *tmp && strlen(tmp) < 200 ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return fail_io(e, "make a folder", folder);
	code = compile_in(folder, text, len, fast, stop, &(*out)->object, e);
	remove_all(folder);
	return code;
}

void host_free(struct host_kernel *k)
{
	if (!k)
		return;
	if (k->object >= 0)
		close(k->object);
	mem_put(k->mem, k, sizeof(*k));
}
