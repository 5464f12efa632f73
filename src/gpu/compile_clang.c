/* Compiling a kernel's text for AMD's GPUs: by clang, in a child process. */
#include "gpu/compile_clang.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/files.h"

enum { CLANG_SECONDS = 300 };

/* Is it a program? */
static bool is_there(const char *path, struct arena *a, const char **clang, const char **tool)
{
	struct stat st;

	if (access(path, X_OK) || stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	*clang = arena_strdup(a, path);
	*tool = arena_strf(a, "%s %lld %lld.%09ld", path, (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		st.st_mtim.tv_nsec);
	return true;
}

bool clang_find(struct arena *a, const char **clang, const char **tool)
{
	const char *folder = getenv("HIP_CLANG_PATH"), *path = getenv("PATH");

	if (folder && *folder && is_there(arena_strf(a, "%s/clang", folder), a, clang, tool))
		return true;
	while (path && *path) {
		size_t n = strcspn(path, ":");

		if (n && is_there(arena_strf(a, "%.*s/clang-22", (int)n, path), a, clang, tool))
			return true;
		path += n + (path[n] == ':');
	}
	return is_there("/opt/rocm/llvm/bin/clang", a, clang, tool);
}

static NORETURN void run_clang(const char *folder, const char *clang, const char *const *args)
{
	int log;

	if (chdir(folder))
		_exit(1);
	log = open("log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (log >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
		execv(clang, (char **)(uintptr_t)args);
	_exit(1);
}

static void path_in(char path[PATH_MAX], const char *folder, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

static enum err_code clang_ended(const char *folder, int status, struct arena *a, struct compile_result *r, struct err *e)
{
	char path[PATH_MAX];
	size_t n = 0;
	const char *log;

	path_in(path, folder, "log");
	log = read_file(path, a, &n);
	r->log = log ? log : "";
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return compile_refused("clang", log, e);
	path_in(path, folder, "kernel.co");
	r->cubin = read_file(path, a, &r->cubin_bytes);
	return r->cubin ? OK : err_set(e, ERR_IO, NOWHERE, "compile: cannot read what clang made");
}

static enum err_code compile_in(const char *folder, const char *clang, const char *const *args, const char *source,
	struct arena *a, struct compile_result *r, struct err *e)
{
	char path[PATH_MAX];
	struct child child;
	int pid, status = 0;

	path_in(path, folder, "kernel.hip");
	if (!replace_file(path, source, strlen(source)))
		return err_set(e, ERR_IO, NOWHERE, "compile: cannot write '%s'", path);
	pid = child_fork(&child);
	if (pid < 0)
		return err_set(e, ERR_IO, NOWHERE, "compile: cannot start a process");
	if (pid == 0)
		run_clang(folder, clang, args);
	if (child_wait(&child, CLANG_SECONDS, NULL, &status) == CHILD_LATE)
		return err_set(e, ERR_LIMIT, NOWHERE, "compile: clang took more than %d s", CLANG_SECONDS);
	return clang_ended(folder, status, a, r, e);
}

enum err_code clang_compile(const char *clang, const char *const *options, int noptions, const char *source,
	struct arena *a, struct compile_result *r, struct err *e)
{
	static const char *const ours[] = { "kernel.hip", "kernel.co", "log" };
	const char **args = ARENA_ARRAY(a, noptions + 5, const char *), *tmp = getenv("TMPDIR");
	char folder[256], path[PATH_MAX];
	enum err_code code;
	int n = 0;

	args[n++] = "clang";
	for (int i = 0; i < noptions; i++)
		args[n++] = options[i];
	args[n++] = "-o";
	args[n++] = "kernel.co";
	args[n++] = "kernel.hip";
	snprintf(folder, sizeof(folder), "%s/millrace-XXXXXX", tmp && *tmp && strlen(tmp) < 200 ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return err_set(e, ERR_IO, NOWHERE, "compile: cannot make a folder '%s'", folder);
	code = compile_in(folder, clang, args, source, a, r, e);
	for (int i = 0; i < LEN(ours); i++) {
		path_in(path, folder, ours[i]);
		unlink(path);
	}
	rmdir(folder);
	return code;
}
