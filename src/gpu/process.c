#define _GNU_SOURCE			/* environ, memfd_create */
#include "gpu/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	FD_MIN = 16,			/* descriptors are moved up to here, away from 0 to 3 */
	KILLED_MS = 10000,		/* to wait for the end of a killed worker */
	ENDING_MS = 2000,		/* to wait for the end of one that ends by itself */
	TAIL_BYTES = 4096,		/* of its stderr, in which a message is looked for */
};

/* ---- starting ---- */

static char **worker_environment(struct arena *a)
{
	int n = 0;
	char **env;

	while (environ[n])
		n++;
	env = ARENA_ARRAY(a, n + 2, char *);
	memcpy(env, environ, (size_t)n * sizeof(*env));
	env[n] = arena_strdup(a, WORKER_VARIABLE "=1");
	return env;
}

/* The same descriptor with a number that none of the worker's descriptors gets. */
static int move_clear(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);

	if (fd >= 0)
		close(fd);
	return moved;
}

/* Default signal handling, and a process group of its own: Ctrl-C and Ctrl-Z at the terminal must
 * reach the shell only. */
static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	return posix_spawnattr_setsigmask(attr, &none) || posix_spawnattr_setsigdefault(attr, &all) ||
		posix_spawnattr_setpgroup(attr, 0) || posix_spawnattr_setflags(attr,
		POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int set_descriptors(posix_spawn_file_actions_t *files, int socket, int errors)
{
	int failed = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0) ||
		posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0) ||
		posix_spawn_file_actions_adddup2(files, socket, WORKER_SOCKET);

	if (failed)
		return failed;
	return errors >= 0 ? posix_spawn_file_actions_adddup2(files, errors, 2) :
		posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
}

/* Returns an errno. */
static int spawn_worker(pid_t *pid, int socket, int errors, char **env)
{
	char name[] = "millrace", argument[] = WORKER_ARGUMENT;
	char *argv[] = { name, argument, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int failed = ENOMEM;

	if (posix_spawn_file_actions_init(&files))
		return failed;
	if (!posix_spawnattr_init(&attr)) {
		if (!set_attributes(&attr) && !set_descriptors(&files, socket, errors))
			failed = posix_spawn(pid, "/proc/self/exe", &files, &attr, argv, env);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	return failed;
}

enum err_code process_start(struct process *p, struct arena *scratch, struct err *e)
{
	char **env = worker_environment(scratch);
	int pair[2] = { -1, -1 }, failed;

	*p = PROCESS_NONE;
	if (getenv(WORKER_VARIABLE))
		return err_set(e, ERR_IO, NOWHERE, "a worker cannot start a worker: the main() of "
			"this program lacks gpu_worker_asked()");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(e, ERR_IO, NOWHERE, "cannot start the worker process: %s", strerror(errno));
	p->socket = move_clear(pair[0]);
	pair[1] = move_clear(pair[1]);
	p->errors = move_clear(memfd_create("millrace-worker-errors", MFD_CLOEXEC));
	if (p->errors >= 0)
		fcntl(p->errors, F_SETFL, O_APPEND);
	failed = p->socket < 0 || pair[1] < 0 ? EMFILE : spawn_worker(&p->pid, pair[1], p->errors, env);
	if (pair[1] >= 0)
		close(pair[1]);
	if (!failed)
		return OK;
	p->pid = 0;
	process_end(p);
	return err_set(e, ERR_IO, NOWHERE, "cannot start the worker process: %s", strerror(failed));
}

/* ---- ending ---- */

/* Wait for the end of the process. False: it still runs after `ms` milliseconds. *status is -1 if it
 * is unknown, as where the parent ignores SIGCHLD. */
static bool await_end(pid_t pid, int ms, int *status)
{
	*status = -1;
	for (int waited = 0; ; waited++) {
		pid_t got = waitpid(pid, status, WNOHANG);

		if (got == pid || (got < 0 && errno == ECHILD))
			return true;
		if (waited >= ms)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

void process_end(struct process *p)
{
	int status;

	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		await_end(p->pid, KILLED_MS, &status);
	}
	if (p->socket >= 0)
		close(p->socket);
	if (p->errors >= 0)
		close(p->errors);
	*p = PROCESS_NONE;
}

bool process_is_quiet(const struct process *p)
{
	struct pollfd f = { .fd = p->socket, .events = POLLIN };

	return p->pid > 0 && poll(&f, 1, 0) == 0;
}

void process_forget_output(struct process *p)
{
	if (p->errors >= 0 && ftruncate(p->errors, 0))
		return;			/* then a reason may quote an older line */
}

/* The last line of its stderr, or the one in which AMD's runtime says that a kernel faulted: it writes more behind
 * that. "" if none. */
static void telling_line(const struct process *p, char *text, size_t size)
{
	char all[TAIL_BYTES];
	off_t end = p->errors < 0 ? 0 : lseek(p->errors, 0, SEEK_END);
	off_t start = end > (off_t)sizeof(all) - 1 ? end - (off_t)sizeof(all) + 1 : 0;
	ssize_t n = end > 0 ? pread(p->errors, all, sizeof(all) - 1, start) : 0;
	const char *fault, *newline, *line;
	size_t len;

	all[n > 0 ? n : 0] = '\0';
	while (n > 0 && (all[n - 1] == '\n' || all[n - 1] == ' '))
		all[--n] = '\0';
	fault = strstr(all, PROCESS_GPU_FAULT);
	newline = strrchr(all, '\n');
	line = fault ? fault : newline ? newline + 1 : all;
	len = strcspn(line, "\n");
	if (!fault && len > size - 1)	/* of a long line the end says most */
		line += len - (size - 1);
	snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
}

enum err_code process_failed(struct process *p, bool closed, const char *doing, const char *what, struct err *e)
{
	char line[160] = "", end[120] = "sent a malformed message";
	bool ended;
	int status;

	if (closed) {
		telling_line(p, line, sizeof(line));
		ended = await_end(p->pid, ENDING_MS, &status);
		p->pid = ended ? 0 : p->pid;
		if (!ended)
			snprintf(end, sizeof(end), "closed its connection");
		else if (status >= 0 && WIFSIGNALED(status))
			snprintf(end, sizeof(end), "was killed by signal %d (%s)%s", WTERMSIG(status),
				strsignal(WTERMSIG(status)), WTERMSIG(status) == SIGKILL ?
				", as happens when the machine's memory is short" : "");
		else if (status >= 0)
			snprintf(end, sizeof(end), "ended with status %d", WEXITSTATUS(status));
		else
			snprintf(end, sizeof(end), "ended");
	}
	process_end(p);
	return err_set(e, ERR_IO, NOWHERE, "the worker process %s%s%s (while %s%s%s)", end, *line ? ": " : "", line,
		doing, *what ? " " : "", what);
}
