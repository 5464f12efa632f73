/* Compiling a kernel's text for AMD's GPUs: by clang, in a child process. */
#include "run/compile_hip.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "host/object.h"
#include "run/export_kit.h"

enum { COMPILE_SECONDS = 300, LOG_SHOWN = 400, NO_COMPILER = 127 };

/* In the child: execute the first clang that is there. ROCm's hipcc reads the variable, too. */
static void exec_clang(const char *arch)
{
	const char *folder = getenv("HIP_CLANG_PATH");
	char own[PATH_MAX], offload[64];
	const char *const names[] = { own, "clang-22", "/opt/rocm/llvm/bin/clang" };

	snprintf(own, sizeof(own), "%s/clang", folder ? folder : "");
	snprintf(offload, sizeof(offload), "--offload-arch=%s", arch);
	for (int i = folder && *folder ? 0 : 1; i < LEN(names); i++)
		execlp(names[i], "clang", "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", offload, "-O3",
			"-nogpuinc", "-nogpulib", "-w", "-Rpass-analysis=kernel-resource-usage", "-fno-color-diagnostics",
			"-o", "kernel.co", "kernel.hip", (char *)NULL);
	_exit(NO_COMPILER);
}

static void in_folder(const char *folder, const char *arch)
{
	int log;

	if (chdir(folder))
		_exit(1);
	log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(1);
	exec_clang(arch);
}

static void path_in(char path[PATH_MAX], const char *folder, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* The number behind a remark's title, in the part of the log that is about one kernel. */
static int remark(const char *log, const char *title)
{
	const char *at = strstr(log, title);

	return at ? atoi(at + strlen(title)) : 0;
}

static void read_use(const char *log, const char *entry, struct arena *a, struct compile_result *r)
{
	struct compile_use *u = ARENA_NEW(a, struct compile_use);

	u->entry = entry;
	u->registers = remark(log, " VGPRs: ") + remark(log, " AGPRs: ");
	u->stack = u->spill_stores = remark(log, " ScratchSize [bytes/lane]: ");
	r->uses = u;
	r->nuses = 1;
}

static enum err_code compiler_ended(const char *folder, const char *entry, int status, struct arena *a,
	struct compile_result *r, struct err *e)
{
	char path[PATH_MAX];
	size_t n = 0;
	const char *log;

	path_in(path, folder, "log");
	log = read_file(path, a, &n);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_COMPILER)
		return err_set(e, ERR_IO, NOWHERE, "compile: HIP needs clang, and neither clang-22 nor ROCm's is "
			"there: install it, set HIP_CLANG_PATH to its folder, or say text=true");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(e, ERR_IO, NOWHERE, "compile: clang failed: %.*s", LOG_SHOWN, log && *log ? log :
			"it did not say why");
	r->log = log ? log : "";
	path_in(path, folder, "kernel.co");
	r->cubin = read_file(path, a, &r->cubin_bytes);
	if (!r->cubin)
		return err_set(e, ERR_IO, NOWHERE, "compile: cannot read what clang made");
	read_use(r->log, entry, a, r);
	return OK;
}

static enum err_code compile_in(const char *folder, const struct compile_job *job, const struct stop *stop,
	struct arena *a, struct compile_result *r, struct err *e)
{
	char path[PATH_MAX];
	struct child child;
	enum child_end end;
	int pid, status = 0;

	path_in(path, folder, "kernel.hip");
	if (!replace_file(path, job->source, strlen(job->source)))
		return err_set(e, ERR_IO, NOWHERE, "compile: cannot write '%s'", path);
	pid = child_fork(&child);
	if (pid < 0)
		return err_set(e, ERR_IO, NOWHERE, "compile: cannot start a process");
	if (pid == 0)
		in_folder(folder, job->arch);
	end = child_wait(&child, COMPILE_SECONDS, stop, &status);
	if (end == CHILD_STOPPED)
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	if (end == CHILD_LATE)
		return err_set(e, ERR_LIMIT, NOWHERE, "compile: clang took more than %d s", COMPILE_SECONDS);
	return compiler_ended(folder, job->name, status, a, r, e);
}

enum err_code compile_hip(const struct compile_job *job, const struct stop *stop, struct arena *a,
	struct compile_result *r, struct err *e)
{
	static const char *const ours[] = { "kernel.hip", "kernel.co", "log" };
	const char *tmp = getenv("TMPDIR");
	char folder[256], path[PATH_MAX];
	enum err_code code;

	memset(r, 0, sizeof(*r));
	snprintf(folder, sizeof(folder), "%s/millrace-XXXXXX", tmp && *tmp && strlen(tmp) < 200 ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return err_set(e, ERR_IO, NOWHERE, "compile: cannot make a folder '%s'", folder);
	code = compile_in(folder, job, stop, a, r, e);
	for (int i = 0; i < LEN(ours); i++) {
		path_in(path, folder, ours[i]);
		unlink(path);
	}
	rmdir(folder);
	return code;
}

enum err_code compile_as_hip(const struct compile_job *job, const struct stop *stop, struct arena *a,
	struct compile_result *r, struct err *e)
{
	struct compile_job named = *job;

	named.source = arena_strf(a, "%s%s", export_template_text("hip_names.h"), job->source);
	return compile_hip(&named, stop, a, r, e);
}
