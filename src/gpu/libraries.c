#define _GNU_SOURCE			/* dladdr */
#include "gpu/libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct symbol {
	const char *name;
	size_t member;			/* offset of the function pointer */
	bool needed;
	const char *call;		/* the name without its version, for messages */
};

#define IN_CUDA(name, cuda, suffix, hip, parameters) { #cuda #suffix, offsetof(struct driver, name), true, #cuda },
#define IN_HIP(name, cuda, suffix, hip, parameters) { #hip, offsetof(struct driver, name), true, #hip },
#define IN_ONE(needed, name, suffix, parameters) { #name #suffix, offsetof(struct driver, name), needed, #name },
#define IN_NVRTC(name, cuda, suffix, hip, parameters) { #cuda #suffix, offsetof(struct rtc, name), true, #cuda },
#define IN_HIPRTC(name, cuda, suffix, hip, parameters) { #hip, offsetof(struct rtc, name), true, #hip },
#define NVRTC_SYMBOL(needed, name, suffix, parameters) { #name #suffix, offsetof(struct rtc, name), needed, #name },
#define NVML_SYMBOL(needed, name, suffix, parameters) \
	{ #name #suffix, offsetof(struct cuda_nvml, name), needed, #name },
static const struct symbol cuda_symbols[] = { DRIVER_SYMBOLS(IN_CUDA) CUDA_ONLY_SYMBOLS(IN_ONE) };
static const struct symbol hip_symbols[] = { DRIVER_SYMBOLS(IN_HIP) HIP_ONLY_SYMBOLS(IN_ONE) };
static const struct symbol nvrtc_symbols[] = { RTC_SYMBOLS(IN_NVRTC) NVRTC_ONLY_SYMBOLS(NVRTC_SYMBOL) };
static const struct symbol hiprtc_symbols[] = { RTC_SYMBOLS(IN_HIPRTC) };
static const struct symbol nvml_symbols[] = { CUDA_NVML_SYMBOLS(NVML_SYMBOL) };

_Static_assert(sizeof(void *) == sizeof(int (*)(void)), "dlsym's result is a function");

/* A library and where to look for it. Patterns are for glob; of several matches the last one, which has
 * the highest version, is tried first. $NAME at the start is an environment variable. */
struct library {
	const char *what;
	const char *variable;		/* environment variable; if set, only its file is tried */
	const char *const *names;	/* for the loader's own search */
	const char *const *patterns;
	const char *advice;
	const struct symbol *symbols;
	int nsymbols;
};

static const struct library drivers[GPU_APIS] = { [GPU_CUDA] = {
	.what = "NVIDIA driver (libcuda.so.1)",
	.variable = "MILLRACE_LIBCUDA",
	.names = (const char *const[]){ "libcuda.so.1", NULL },
	.patterns = (const char *const[]){
		"/usr/local/nvidia/lib64/libcuda.so.1",
		"/usr/local/nvidia/lib/libcuda.so.1",
		"/usr/lib/wsl/lib/libcuda.so.1",
		"/run/opengl-driver/lib/libcuda.so.1",
		NULL },
	.advice = "install the driver",
	.symbols = cuda_symbols, .nsymbols = LEN(cuda_symbols),
}, [GPU_HIP] = {
	.what = "AMD runtime (libamdhip64.so)",
	.variable = "MILLRACE_LIBHIP",
	.names = (const char *const[]){ "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so", NULL },
	.patterns = (const char *const[]){
		"$ROCM_PATH/lib/libamdhip64.so",
		"/opt/rocm/lib/libamdhip64.so",
		"/opt/rocm-*/lib/libamdhip64.so",
		NULL },
	.advice = "install ROCm 6 or later",
	.symbols = hip_symbols, .nsymbols = LEN(hip_symbols),
} };

static const struct library compilers[GPU_APIS] = { [GPU_CUDA] = {
	.what = "CUDA run-time compiler (libnvrtc)",
	.variable = "MILLRACE_LIBNVRTC",
	.names = (const char *const[]){ "libnvrtc.so.13", "libnvrtc.so.12", NULL },
	.patterns = (const char *const[]){
		"$CUDA_HOME/lib64/libnvrtc.so.1[23]",
		"$CUDA_PATH/lib64/libnvrtc.so.1[23]",
		"/usr/local/cuda/lib64/libnvrtc.so.1[23]",
		"/usr/local/cuda/targets/*/lib/libnvrtc.so.1[23]",
		"/usr/local/cuda-*/lib64/libnvrtc.so.1[23]",
		"/opt/cuda/lib64/libnvrtc.so.1[23]",
		"$CONDA_PREFIX/lib/libnvrtc.so.1[23]",
		"$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/c*/lib/libnvrtc.so.1[23]",
		"$HOME/.local/lib/python3*/site-packages/nvidia/c*/lib/libnvrtc.so.1[23]",
		"/usr/local/lib/python3*/*-packages/nvidia/c*/lib/libnvrtc.so.1[23]",
		"/usr/lib/python3*/*-packages/nvidia/c*/lib/libnvrtc.so.1[23]",
		NULL },
	.advice = "install the CUDA toolkit, or the Python package nvidia-cuda-nvrtc",
	.symbols = nvrtc_symbols, .nsymbols = LEN(nvrtc_symbols),
}, [GPU_HIP] = {
	.what = "HIP run-time compiler (libhiprtc.so)",
	.variable = "MILLRACE_LIBHIPRTC",
	.names = (const char *const[]){ "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so", NULL },
	.patterns = (const char *const[]){
		"$ROCM_PATH/lib/libhiprtc.so",
		"/opt/rocm/lib/libhiprtc.so",
		"/opt/rocm-*/lib/libhiprtc.so",
		NULL },
	.advice = "install ROCm 6 or later",
	.symbols = hiprtc_symbols, .nsymbols = LEN(hiprtc_symbols),
} };

static const struct library nvml_library = {
	.what = "NVIDIA management library (libnvidia-ml.so.1)",
	.variable = "MILLRACE_LIBNVML",
	.names = (const char *const[]){ "libnvidia-ml.so.1", NULL },
	.patterns = (const char *const[]){
		"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
		"/usr/local/nvidia/lib/libnvidia-ml.so.1",
		"/usr/lib/wsl/lib/libnvidia-ml.so.1",
		"/run/opengl-driver/lib/libnvidia-ml.so.1",
		NULL },
	.advice = "it comes with the driver",
	.symbols = nvml_symbols, .nsymbols = LEN(nvml_symbols),
};

/* ---- opening ---- */

/* Replace $NAME at the start of a pattern; false: the variable is not set. */
static bool expand(const char *pattern, char *out, size_t size)
{
	const char *slash = strchr(pattern, '/');
	char name[32];
	const char *value;

	if (pattern[0] != '$' || !slash) {
		snprintf(out, size, "%s", pattern);
		return true;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(slash - pattern - 1), pattern + 1);
	value = getenv(name);
	if (!value || !*value)
		return false;
	return (size_t)snprintf(out, size, "%s%s", value, slash) < size;
}

/* `why` gets the first reason why a file that exists cannot be opened. */
static void *open_file(const char *path, char *why, size_t size)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *text = lib ? NULL : dlerror();

	if (text && !*why && !access(path, F_OK))
		snprintf(why, size, "%s", text);
	return lib;
}

static void *open_patterns(const struct library *l, char *why, size_t size)
{
	void *lib = NULL;

	for (const char *const *p = l->patterns; *p && !lib; p++) {
		char pattern[1024];
		glob_t found;

		if (!expand(*p, pattern, sizeof(pattern)) || glob(pattern, 0, NULL, &found))
			continue;
		for (size_t i = found.gl_pathc; i-- > 0 && !lib; )
			lib = open_file(found.gl_pathv[i], why, size);
		globfree(&found);
	}
	return lib;
}

static enum err_code find_library(const struct library *l, void **lib, struct err *e)
{
	const char *given = getenv(l->variable);
	char why[300] = "";

	*lib = NULL;
	if (given && *given) {
		*lib = dlopen(given, RTLD_NOW | RTLD_LOCAL);
		return *lib ? OK : err_set(e, ERR_IO, NOWHERE, "cannot open what %s names: %s", l->variable, dlerror());
	}
	for (const char *const *n = l->names; *n && !*lib; n++)
		*lib = dlopen(*n, RTLD_NOW | RTLD_LOCAL);
	if (!*lib)
		*lib = open_patterns(l, why, sizeof(why));
	if (*lib)
		return OK;
	if (*why)
		return err_set(e, ERR_IO, NOWHERE, "cannot open the %s: %s", l->what, why);
	return err_set(e, ERR_IO, NOWHERE, "there is no %s on this machine: %s, or name the library's file in %s",
		l->what, l->advice, l->variable);
}

/* api: a struct of `size` bytes that begins with the library's handle. */
static enum err_code open_library(const struct library *l, void *api, size_t size, struct err *e)
{
	void **lib = memset(api, 0, size);

	TRY(find_library(l, lib, e));
	for (int i = 0; i < l->nsymbols; i++) {
		const struct symbol *s = &l->symbols[i];
		void *p = dlsym(*lib, s->name);

		if (!p && s->needed)
			return err_set(e, ERR_IO, NOWHERE,
				"the %s has no function %s: it is too old, or not what it seems", l->what, s->name);
		/* ISO C has no cast from a pointer to data to one to a function. */
		memcpy((char *)api + s->member, &p, sizeof(p));
	}
	return OK;
}

enum err_code driver_open(struct driver *d, enum gpu_api api, struct err *e)
{
	enum err_code code = open_library(&drivers[api], d, sizeof(*d), e);

	d->api = api;
	return code;
}

static const char *call_name(const struct symbol *s, size_t member)
{
	while (s->member != member)
		s++;
	return s->call;
}

const char *driver_call_name(const struct driver *d, size_t member)
{
	return call_name(drivers[d->api].symbols, member);
}

const char *rtc_call_name(const struct rtc *r, size_t member)
{
	return call_name(compilers[r->api].symbols, member);
}

enum err_code cuda_nvml_open(struct cuda_nvml *n, struct err *e)
{
	return open_library(&nvml_library, n, sizeof(*n), e);
}

/* ---- NVRTC's headers ---- */

static bool has_headers(const char *dir, char *out, size_t size)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/cuda_fp16.h", dir);
	if (strlen(dir) >= size || access(path, R_OK))
		return false;
	snprintf(out, size, "%s", dir);
	return true;
}

/* NVRTC lacks headers such as cuda_fp16.h. They are in a folder near the library, in a toolkit or among
 * Python packages. */
static void find_include(struct rtc *n)
{
	static const char *const near_library[] = { "../include", "../../../include", "../../cuda_runtime/include" };
	static const char *const usual[] = { "$CUDA_HOME/include", "$CUDA_PATH/include",
		"/usr/local/cuda/include", "/opt/cuda/include", "/usr/include" };
	char dir[sizeof(n->include)], path[512];
	const char *slash;
	Dl_info info;
	void *symbol;

	memcpy(&symbol, &n->version, sizeof(symbol));
	if (dladdr(symbol, &info) && info.dli_fname && (slash = strrchr(info.dli_fname, '/'))) {
		for (int i = 0; i < LEN(near_library); i++) {
			snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - info.dli_fname),
				info.dli_fname, near_library[i]);
			if (has_headers(path, n->include, sizeof(n->include)))
				return;
		}
	}
	for (int i = 0; i < LEN(usual); i++)
		if (expand(usual[i], dir, sizeof(dir)) && has_headers(dir, n->include, sizeof(n->include)))
			return;
}

enum err_code rtc_open(struct rtc *r, enum gpu_api api, struct err *e)
{
	TRY(open_library(&compilers[api], r, sizeof(*r), e));
	r->api = api;
	if (api == GPU_CUDA)
		find_include(r);
	return OK;
}

char *driver_error_text(const struct driver *d, int result, struct arena *a)
{
	const char *name = NULL, *text = NULL;

	if (d->error_name(result, &name) || !name)
		return arena_strf(a, "error %d", result);
	if (d->error_string(result, &text) || !text)
		return arena_strf(a, "%s", name);
	return arena_strf(a, "%s (%s)", name, text);
}
