#include "gpu/compile.h"

#include <string.h>

#include "base/buf.h"
#include "gpu/cubin_cache.h"
#include "gpu/libraries.h"

enum { NVRTC_INVALID_OPTION = 5 };

enum { OPTIONS_MAX = 64 };

#define VERBOSE "--ptxas-options=-v"

struct compiler {
	const struct compile_job *job;
	const char *name;		/* of the source */
	struct cuda_nvrtc nvrtc;
	const char *options[OPTIONS_MAX];
	int noptions;
	struct arena *arena;
};

/* ---- options ---- */

static void add_option(struct compiler *c, const char *option)
{
	c->options[c->noptions++] = option;
}

enum err_code compile_check(const struct compile_job *job, struct err *e)
{
	return job->source && job->arch ? OK : err_set(e, ERR_INPUT, NOWHERE,
		"nothing to compile: the %s is missing", job->source ? "architecture" : "source");
}

/* -lineinfo does not change the kernel, and gives ptxas's messages and profilers the source's lines. */
static enum err_code set_options(struct compiler *c, const struct compile_result *r, struct err *e)
{
	const struct compile_job *job = c->job;

	TRY(compile_check(job, e));
	if (job->noptions > OPTIONS_MAX - 9)
		return err_set(e, ERR_LIMIT, NOWHERE, "%d options for NVRTC are more than %d",
			job->noptions, OPTIONS_MAX - 9);
	add_option(c, arena_strf(c->arena, "--gpu-architecture=%s", job->arch));
	add_option(c, "-std=c++17");
	add_option(c, "-default-device");
	add_option(c, "-lineinfo");
	add_option(c, VERBOSE);
	/* Since 12.9 NVRTC has a cache of its own on machines with a driver. For a binary from there it writes no
	 * log, from which registers and spills are read. */
	if (r->nvrtc_major > 12 || (r->nvrtc_major == 12 && r->nvrtc_minor >= 9))
		add_option(c, "--no-cache");
	if (job->fast_math)
		add_option(c, "--use_fast_math");
	if (*c->nvrtc.include)
		add_option(c, arena_strf(c->arena, "--include-path=%s", c->nvrtc.include));
	for (int i = 0; i < job->noptions; i++)
		add_option(c, job->options[i]);
	return OK;
}

/* Everything that the binary depends on. */
static char *cache_key(const struct compiler *c, const struct compile_result *r)
{
	struct buf b = buf_new(c->arena);

	buf_printf(&b, "nvrtc %d.%d\n", r->nvrtc_major, r->nvrtc_minor);
	for (int i = 0; i < c->noptions; i++)
		buf_printf(&b, "%s\n", c->options[i]);
	buf_printf(&b, "\n%s\n%s", c->name, c->job->source);
	return b.text;
}

/* ---- compiling ---- */

static enum err_code nvrtc_error(const char *call, int result, struct err *e)
{
	return err_set(e, ERR_IO, NOWHERE, "%s failed with NVRTC's error %d", call, result);
}

static enum err_code get_log(struct compiler *c, struct _nvrtcProgram *p, struct compile_result *r, struct err *e)
{
	size_t n = 0;
	int result = c->nvrtc.nvrtcGetProgramLogSize(p, &n);
	char *log = arena_alloc(c->arena, n + 1);

	result = result ? result : c->nvrtc.nvrtcGetProgramLog(p, log);
	r->log = log;
	return result ? nvrtc_error("nvrtcGetProgramLog", result, e) : OK;
}

static enum err_code get_cubin(struct compiler *c, struct _nvrtcProgram *p, struct compile_result *r, struct err *e)
{
	size_t n = 0;
	int result = c->nvrtc.nvrtcGetCUBINSize(p, &n);
	char *cubin;

	if (!result && !n)
		return err_set(e, ERR_INPUT, NOWHERE,
			"NVRTC makes no binary for '%s': name a real architecture, as sm_90a", c->job->arch);
	cubin = arena_alloc(c->arena, n);
	result = result ? result : c->nvrtc.nvrtcGetCUBIN(p, cubin);
	r->cubin = cubin;
	r->cubin_bytes = n;
	return result ? nvrtc_error("nvrtcGetCUBIN", result, e) : OK;
}

/* In the PTX the source's name has the working folder before it, where the source is not. */
static void strip_folders(const struct compiler *c, struct compile_result *r)
{
	size_t n = strlen(c->name);

	for (int i = 0; i < r->ndiags; i++) {
		const char *file = r->diags[i].file;
		size_t len = strlen(file);

		if (len > n && file[len - n - 1] == '/' && !strcmp(file + len - n, c->name))
			r->diags[i].file = c->name;
	}
}

/* ptxas names lines of the PTX. Compile again, only to PTX, to find the lines of the source; after an
 * error the messages stay without them. */
static void map_ptx(struct compiler *c, struct compile_result *r)
{
	const char *options[OPTIONS_MAX];
	struct _nvrtcProgram *p;
	size_t n = 0;
	char *ptx;

	if (strncmp(c->job->arch, "sm_", 3) != 0 ||
	    c->nvrtc.nvrtcCreateProgram(&p, c->job->source, c->name, 0, NULL, NULL))
		return;
	memcpy(options, c->options, sizeof(options));
	options[0] = arena_strf(c->arena, "--gpu-architecture=compute_%s", c->job->arch + 3);
	if (!c->nvrtc.nvrtcCompileProgram(p, c->noptions, options) && !c->nvrtc.nvrtcGetPTXSize(p, &n)) {
		ptx = arena_alloc(c->arena, n + 1);
		if (!c->nvrtc.nvrtcGetPTX(p, ptx))
			compile_map_ptx(r, ptx, c->arena);
	}
	c->nvrtc.nvrtcDestroyProgram(&p);
	strip_folders(c, r);
}

/* Is there an error, or if `serialized`, does ptxas make wgmma wait? */
static bool has_diag(const struct compile_result *r, bool serialized)
{
	for (int i = 0; i < r->ndiags; i++)
		if (serialized ? r->diags[i].serialized : r->diags[i].severity == COMPILE_ERROR)
			return true;
	return false;
}

/* With -v, NVRTC 13.0 drops errors of ptxas that have no line ("too much shared data"). Compile again
 * without it to get them. */
static void compile_without_verbose(struct compiler *c, struct compile_result *r)
{
	const char *options[OPTIONS_MAX];
	struct _nvrtcProgram *p;
	struct err ignored;
	int n = 0;

	if (c->nvrtc.nvrtcCreateProgram(&p, c->job->source, c->name, 0, NULL, NULL))
		return;
	for (int i = 0; i < c->noptions; i++)
		if (strcmp(c->options[i], VERBOSE) != 0)
			options[n++] = c->options[i];
	if (c->nvrtc.nvrtcCompileProgram(p, n, options) && !get_log(c, p, r, &ignored))
		compile_parse_log(r, c->arena);
	c->nvrtc.nvrtcDestroyProgram(&p);
}

/* The first error as the message, and how many there are. */
static enum err_code source_error(struct compiler *c, struct compile_result *r, int result, struct err *e)
{
	const struct compile_diag *first = NULL;
	int errors = 0;

	if (!has_diag(r, false))
		compile_without_verbose(c, r);
	for (int i = 0; i < r->ndiags; i++) {
		if (r->diags[i].severity != COMPILE_ERROR)
			continue;
		if (r->diags[i].ptx_line && !r->diags[i].line)
			map_ptx(c, r);
		first = first ? first : &r->diags[i];
		errors++;
	}
	if (!first)
		return nvrtc_error("nvrtcCompileProgram", result, e);
	if (result == NVRTC_INVALID_OPTION)
		return err_set(e, ERR_INPUT, NOWHERE, "NVRTC %d.%d takes no such option: %s (for %s)", r->nvrtc_major,
			r->nvrtc_minor, first->text, c->job->arch);
	return err_set(e, ERR_INPUT, (struct srcloc){ *first->file ? first->file : c->name, first->line },
		errors > 1 ? "%s (and %d more)" : "%s", first->text, errors - 1);
}

static enum err_code compile_fresh(struct compiler *c, struct compile_result *r, struct err *e)
{
	struct _nvrtcProgram *p;
	enum err_code code;
	int result = c->nvrtc.nvrtcCreateProgram(&p, c->job->source, c->name, 0, NULL, NULL);

	if (result)
		return nvrtc_error("nvrtcCreateProgram", result, e);
	result = c->nvrtc.nvrtcCompileProgram(p, c->noptions, c->options);
	code = get_log(c, p, r, e);
	if (!code) {
		compile_parse_log(r, c->arena);
		code = result ? source_error(c, r, result, e) : get_cubin(c, p, r, e);
	}
	c->nvrtc.nvrtcDestroyProgram(&p);
	return code;
}

static bool from_cache(const char *key, struct compile_result *r, struct arena *a)
{
	struct cubin_entry found;

	if (!cubin_cache_find(key, &found, a))
		return false;
	r->cubin = found.cubin;
	r->cubin_bytes = found.cubin_bytes;
	r->log = found.log;
	r->cached = true;
	compile_parse_log(r, a);
	return true;
}

enum err_code compile_here(const struct compile_job *job, struct arena *a, struct compile_result *r, struct err *e)
{
	struct compiler c = { .job = job, .arena = a };
	const char *key;
	int result;

	*r = (struct compile_result){ .log = "" };
	c.name = job->name ? job->name : "kernel.cu";
	TRY(cuda_nvrtc_open(&c.nvrtc, e));
	result = c.nvrtc.nvrtcVersion(&r->nvrtc_major, &r->nvrtc_minor);
	if (result)
		return nvrtc_error("nvrtcVersion", result, e);
	TRY(set_options(&c, r, e));
	key = cache_key(&c, r);
	if (job->no_cache || !from_cache(key, r, a)) {
		TRY(compile_fresh(&c, r, e));
		if (!job->no_cache)
			cubin_cache_keep(key, &(struct cubin_entry){
				r->log, r->cubin, r->cubin_bytes }, a);
	}
	if (has_diag(r, true))		/* good kernels do not need this second run, for the lines of the source */
		map_ptx(&c, r);
	return OK;
}
