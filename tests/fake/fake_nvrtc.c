/* fake_nvrtc.c - a compiler whose binaries fake_cuda.c accepts, and whose results the test sets.
 *
 * The binary is "FAKESRC\n", or what FAKE_BINARY says, and the source. Variables: FAKE_NVRTC_GATE, a folder: each compilation
 * makes a file there, named by its process, with the name of its first kernel, and goes on when there is one named "open".
 * FAKE_NVRTC_LOG, a file: each compilation adds a line, the rank of the process in a farm and the name of its first kernel.
 * FAKE_NVRTC_CRASH, _ERROR, _SPILLS, _SERIALIZES, _UNGRANTED: of a source that has this text the worker dies,
 * the compilation fails, registers go to memory, products wait for each other, lanes keep the registers of the launch.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fake_source.h"
#include "gpu/libraries.h"

#define PUBLIC __attribute__((visibility("default")))
#define DECLARE(needed, name, suffix, parameters) PUBLIC int name##suffix parameters;
#define DECLARE_SHARED(name, cuda, suffix, hip, parameters) PUBLIC int cuda##suffix parameters;
RTC_SYMBOLS(DECLARE_SHARED)
NVRTC_ONLY_SYMBOLS(DECLARE)

#ifndef FAKE_BINARY
#define FAKE_BINARY "FAKESRC\n"
#endif

enum { FAILED = 6, LOG_MAX = 4096 };

struct _nvrtcProgram {
	char *source;
	char log[LOG_MAX];
};

int nvrtcVersion(int *major, int *minor)
{
	*major = 13;
	*minor = 0;
	return 0;
}

int nvrtcCreateProgram(struct _nvrtcProgram **program, const char *source, const char *name,
	int nheaders, const char *const *headers, const char *const *names)
{
	struct _nvrtcProgram *p = calloc(1, sizeof(*p));

	(void)name, (void)nheaders, (void)headers, (void)names;
	if (!p)
		return 1;
	p->source = strdup(source);
	*program = p;
	return 0;
}

int nvrtcDestroyProgram(struct _nvrtcProgram **program)
{
	free((*program)->source);
	free(*program);
	*program = NULL;
	return 0;
}

/* What the variable names is in the source. */
static int has(const struct _nvrtcProgram *p, const char *variable)
{
	const char *text = getenv(variable);

	return text && *text && strstr(p->source, text);
}

static void pass_gate(const char *gate, const char *source)
{
	struct fake_kernel k = { .name = "" };
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%ld", gate, (long)getpid());
	fake_next_kernel(source, &k);
	fd = open(path, O_CREAT | O_WRONLY, 0666);
	if (fd >= 0) {
		if (write(fd, k.name, strlen(k.name)) < 0)
			_exit(9);
		close(fd);
	}
	snprintf(path, sizeof(path), "%s/open", gate);
	while (access(path, F_OK))
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static void note(const char *path, const char *source)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	struct fake_kernel k = { .name = "" };
	char line[256];
	int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0666);

	fake_next_kernel(source, &k);
	snprintf(line, sizeof(line), "%s %s\n", rank ? rank : "-", k.name);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		_exit(9);
	close(fd);
}

int nvrtcCompileProgram(struct _nvrtcProgram *p, int noptions, const char *const *options)
{
	const char *s = p->source, *gate = getenv("FAKE_NVRTC_GATE"), *log = getenv("FAKE_NVRTC_LOG");
	struct fake_kernel k;
	size_t n = 0;

	(void)noptions, (void)options;
	if (log)
		note(log, s);
	if (gate)
		pass_gate(gate, s);
	if (has(p, "FAKE_NVRTC_CRASH"))
		raise(SIGKILL);
	if (has(p, "FAKE_NVRTC_ERROR")) {
		snprintf(p->log, LOG_MAX, "kernel.cu(7): error: the fake compiler says so\n");
		return FAILED;
	}
	if (has(p, "FAKE_NVRTC_SERIALIZES"))
		n += (size_t)snprintf(p->log, LOG_MAX, "ptxas info    : (C7510) Potential "
			"Performance Loss: wgmma.mma_async instructions are serialized due to "
			"the fake compiler in the function 'it'\n");
	if (has(p, "FAKE_NVRTC_UNGRANTED"))
		n += (size_t)snprintf(p->log + n, LOG_MAX - n, "ptxas info    : (C7508) Potential Performance Loss: "
			"'setmaxnreg' ignored to maintain minimum register requirements.\n");
	while ((s = fake_next_kernel(s, &k)) && n < LOG_MAX - 512)
		n += (size_t)snprintf(p->log + n, LOG_MAX - n,
			"ptxas info    : Compiling entry function '%s' for 'sm_90a'\n"
			"ptxas info    : Function properties for %s\n"
			"    0 bytes stack frame, %d bytes spill stores, %d bytes spill loads\n"
			"ptxas info    : Used 168 registers, used 1 barriers\n", k.name, k.name,
			has(p, "FAKE_NVRTC_SPILLS") ? 64 : 0, has(p, "FAKE_NVRTC_SPILLS") ? 96 : 0);
	return 0;
}

int nvrtcGetProgramLogSize(struct _nvrtcProgram *p, size_t *bytes)
{
	*bytes = strlen(p->log) + 1;
	return 0;
}

int nvrtcGetProgramLog(struct _nvrtcProgram *p, char *log)
{
	strcpy(log, p->log);
	return 0;
}

int nvrtcGetCUBINSize(struct _nvrtcProgram *p, size_t *bytes)
{
	*bytes = strlen(p->source) + sizeof(FAKE_BINARY);
	return 0;
}

int nvrtcGetCUBIN(struct _nvrtcProgram *p, char *cubin)
{
	memcpy(cubin, FAKE_BINARY, sizeof(FAKE_BINARY) - 1);
	strcpy(cubin + sizeof(FAKE_BINARY) - 1, p->source);
	return 0;
}

int nvrtcGetPTXSize(struct _nvrtcProgram *p, size_t *bytes)
{
	(void)p;
	*bytes = 1;
	return 0;
}

int nvrtcGetPTX(struct _nvrtcProgram *p, char *ptx)
{
	(void)p;
	*ptx = '\0';
	return 0;
}
