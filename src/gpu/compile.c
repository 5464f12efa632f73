#define _GNU_SOURCE			/* memmem */
#include "gpu/compile.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "gpu/compile_clang.h"
#include "gpu/cubin_cache.h"
#include "gpu/libraries.h"

enum { NVRTC_INVALID_OPTION = 5 };

enum { OPTIONS_MAX = 64, OPTIONS_OURS = 10, LOG_SHOWN = 400 };

#define VERBOSE "--ptxas-options=-v"

struct compiler {
	const struct compile_job *job;
	const char *name;		/* of the source */
	const char *tool;		/* which compiler, with its version */
	const char *clang;		/* its file; NULL: the library compiles */
	struct rtc rtc;
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

/* Without clang's headers, and without a device library where one need not be there. */
static void set_hip_options(struct compiler *c)
{
	static const char *const for_clang[] = { "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc",
		"-nogpulib", "-fno-color-diagnostics" };

	for (int i = 0; c->clang && i < LEN(for_clang); i++)
		add_option(c, for_clang[i]);
	add_option(c, arena_strf(c->arena, "--offload-arch=%s", c->job->arch));
	add_option(c, "-O3");
	add_option(c, "-w");
}

/* -lineinfo does not change the kernel, and gives ptxas's messages and profilers the source's lines. */
static void set_cuda_options(struct compiler *c, const struct compile_result *r)
{
	const struct compile_job *job = c->job;

	add_option(c, arena_strf(c->arena, "--gpu-architecture=%s", job->arch));
	add_option(c, "-std=c++17");
	add_option(c, "-default-device");
	add_option(c, "-lineinfo");
	add_option(c, VERBOSE);
	/* Since 12.9 NVRTC has a cache of its own on machines with a driver. For a binary from there it writes no
	 * log, from which registers and spills are read. */
	if (r->major > 12 || (r->major == 12 && r->minor >= 9))
		add_option(c, "--no-cache");
	if (job->fast_math)
		add_option(c, "--use_fast_math");
	if (*c->rtc.include)
		add_option(c, arena_strf(c->arena, "--include-path=%s", c->rtc.include));
}

static enum err_code set_options(struct compiler *c, const struct compile_result *r, struct err *e)
{
	const struct compile_job *job = c->job;

	if (job->noptions > OPTIONS_MAX - OPTIONS_OURS)
		return err_set(e, ERR_LIMIT, NOWHERE, "%d options for the compiler are more than %d",
			job->noptions, OPTIONS_MAX - OPTIONS_OURS);
	if (job->api == GPU_HIP)
		set_hip_options(c);
	else
		set_cuda_options(c, r);
	for (int i = 0; i < job->noptions; i++)
		add_option(c, job->options[i]);
	return OK;
}

/* Everything that the binary depends on. */
static char *cache_key(const struct compiler *c)
{
	struct buf b = buf_new(c->arena);

	buf_printf(&b, "%s\n", c->tool);
	for (int i = 0; i < c->noptions; i++)
		buf_printf(&b, "%s\n", c->options[i]);
	buf_printf(&b, "\n%s\n%s", c->name, c->job->source);
	return b.text;
}

/* ---- compiling ---- */

#define RTC_ERROR(c, member, result, e) rtc_error(c, offsetof(struct rtc, member), result, e)
static enum err_code rtc_error(const struct compiler *c, size_t member, int result, struct err *e)
{
	return err_set(e, ERR_IO, NOWHERE, "%s failed with %s's error %d", rtc_call_name(&c->rtc, member),
		c->rtc.api == GPU_HIP ? "hiprtc" : "NVRTC", result);
}

static enum err_code get_log(struct compiler *c, struct _nvrtcProgram *p, struct compile_result *r, struct err *e)
{
	size_t n = 0;
	int result = c->rtc.log_bytes(p, &n);
	char *log = arena_alloc(c->arena, n + 1);

	result = result ? result : c->rtc.log(p, log);
	r->log = log;
	return result ? RTC_ERROR(c, log, result, e) : OK;
}

static enum err_code get_binary(struct compiler *c, struct _nvrtcProgram *p, struct compile_result *r, struct err *e)
{
	size_t n = 0;
	int result = c->rtc.binary_bytes(p, &n);
	char *cubin;

	if (!result && !n)
		return err_set(e, ERR_INPUT, NOWHERE,
			"NVRTC makes no binary for '%s': name a real architecture, as sm_90a", c->job->arch);
	cubin = arena_alloc(c->arena, n);
	result = result ? result : c->rtc.binary(p, cubin);
	r->cubin = cubin;
	r->cubin_bytes = n;
	return result ? RTC_ERROR(c, binary, result, e) : OK;
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
	    c->rtc.create(&p, c->job->source, c->name, 0, NULL, NULL))
		return;
	memcpy(options, c->options, sizeof(options));
	options[0] = arena_strf(c->arena, "--gpu-architecture=compute_%s", c->job->arch + 3);
	if (!c->rtc.compile(p, c->noptions, options) && !c->rtc.nvrtcGetPTXSize(p, &n)) {
		ptx = arena_alloc(c->arena, n + 1);
		if (!c->rtc.nvrtcGetPTX(p, ptx))
			compile_map_ptx(r, ptx, c->arena);
	}
	c->rtc.destroy(&p);
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

	if (c->rtc.create(&p, c->job->source, c->name, 0, NULL, NULL))
		return;
	for (int i = 0; i < c->noptions; i++)
		if (strcmp(c->options[i], VERBOSE) != 0)
			options[n++] = c->options[i];
	if (c->rtc.compile(p, n, options) && !get_log(c, p, r, &ignored))
		compile_parse_log(r, c->arena);
	c->rtc.destroy(&p);
}

/* The first error as the message, and how many there are. */
static enum err_code source_error(struct compiler *c, struct compile_result *r, int result, struct err *e)
{
	const struct compile_diag *first = NULL;
	int errors = 0;

	if (c->rtc.api == GPU_HIP)
		return compile_refused("hiprtc", r->log, e);
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
		return RTC_ERROR(c, compile, result, e);
	if (result == NVRTC_INVALID_OPTION)
		return err_set(e, ERR_INPUT, NOWHERE, "NVRTC %d.%d takes no such option: %s (for %s)", r->major,
			r->minor, first->text, c->job->arch);
	return err_set(e, ERR_INPUT, (struct srcloc){ *first->file ? first->file : c->name, first->line },
		errors > 1 ? "%s (and %d more)" : "%s", first->text, errors - 1);
}

static enum err_code compile_fresh(struct compiler *c, struct compile_result *r, struct err *e)
{
	struct _nvrtcProgram *p;
	enum err_code code;
	int result = c->rtc.create(&p, c->job->source, c->name, 0, NULL, NULL);

	if (result)
		return RTC_ERROR(c, create, result, e);
	result = c->rtc.compile(p, c->noptions, c->options);
	code = get_log(c, p, r, e);
	if (!code) {
		if (c->rtc.api == GPU_CUDA)
			compile_parse_log(r, c->arena);
		code = result ? source_error(c, r, result, e) : get_binary(c, p, r, e);
	}
	c->rtc.destroy(&p);
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
	return true;
}

/* What came with the job. */
static bool from_given(const struct compiler *c, struct compile_result *r)
{
	const struct compile_given *g = &c->job->given;

	if (!g->tool || !g->cubin_bytes || strcmp(g->tool, c->tool))
		return false;
	r->log = g->log;
	r->cubin = g->cubin;
	r->cubin_bytes = g->cubin_bytes;
	return true;
}

/* Compile, or take what was given. */
static enum err_code make_binary(struct compiler *c, const char *key, struct compile_result *r, struct err *e)
{
	if (from_given(c, r)) {
		if (c->job->api == GPU_CUDA)
			compile_parse_log(r, c->arena);
	} else if (c->clang) {
		TRY(clang_compile(c->clang, c->options, c->noptions, c->job->source, c->arena, r, e));
	} else {
		TRY(compile_fresh(c, r, e));
	}
	if (!c->job->no_cache)
		cubin_cache_keep(key, &(struct cubin_entry){ r->log, r->cubin, r->cubin_bytes }, c->arena);
	return OK;
}

enum err_code compile_refused(const char *compiler, const char *log, struct err *e)
{
	return err_set(e, ERR_INPUT, NOWHERE, "compile: %s failed: %.*s", compiler, LOG_SHOWN, log && *log ? log :
		"it did not say why");
}

/* ---- what a code object of HIP says of its kernel ----
 * Its metadata are maps of MessagePack, in which the number of a name is behind it. */

static int number_behind(const struct compile_result *r, const char *name)
{
	const unsigned char *binary = r->cubin, *at = memmem(binary, r->cubin_bytes, name, strlen(name)), *end;
	int n = 0;

	end = binary + r->cubin_bytes;
	at = at ? at + strlen(name) : end;
	if (at < end && *at < 0x80)
		return *at;
	for (int i = 1, bytes = at < end && *at >= 0xcc && *at <= 0xce ? 1 << (*at - 0xcc) : 0; i <= bytes && at + i < end; i++)
		n = n << 8 | at[i];
	return n;
}

/* The registers of a thread are those of both kinds; what it keeps in scratch memory counts as spilled. */
static void read_use(const struct compile_job *job, struct compile_result *r, struct arena *a)
{
	struct compile_use *u = ARENA_NEW(a, struct compile_use);

	u->entry = job->name;
	u->registers = number_behind(r, ".vgpr_count");
	u->stack = u->spill_stores = number_behind(r, ".private_segment_fixed_size");
	r->uses = u;
	r->nuses = 1;
}

/* ---- the compiler ---- */

/* A library that a user names comes before clang. */
static enum err_code find_compiler(struct compiler *c, struct compile_result *r, struct err *e)
{
	const char *named = getenv("MILLRACE_LIBHIPRTC");
	bool hip = c->job->api == GPU_HIP;
	int result;

	r->no_compiler = true;
	if (hip && !(named && *named) && clang_find(c->arena, &c->clang, &c->tool)) {
		r->no_compiler = false;
		return OK;
	}
	if (rtc_open(&c->rtc, c->job->api, e))
		return !hip || (named && *named) ? e->code : err_set(e, ERR_IO, NOWHERE, "compile: HIP needs clang (clang-22, "
			"or ROCm's) or hiprtc (libhiprtc.so), and neither is there: install ROCm or clang-22, set "
			"HIP_CLANG_PATH to clang's folder or MILLRACE_LIBHIPRTC to the library, or say text=true");
	r->no_compiler = false;
	result = c->rtc.version(&r->major, &r->minor);
	c->tool = arena_strf(c->arena, "%s %d.%d", hip ? "hiprtc" : "nvrtc", r->major, r->minor);
	return result ? RTC_ERROR(c, version, result, e) : OK;
}

enum err_code compile_here(const struct compile_job *job, struct arena *a, struct compile_result *r, struct err *e)
{
	struct compiler c = { .job = job, .arena = a };
	const char *key;

	*r = (struct compile_result){ .log = "" };
	c.name = job->name ? job->name : "kernel.cu";
	TRY(compile_check(job, e));
	TRY(find_compiler(&c, r, e));
	r->tool = c.tool;
	TRY(set_options(&c, r, e));
	key = cache_key(&c);
	if (!job->no_cache && from_cache(key, r, a)) {
		if (job->api == GPU_CUDA)
			compile_parse_log(r, a);
	} else if (job->only_cached) {
		r->missing = true;
		return err_set(e, ERR_INPUT, NOWHERE, "compile: the binary is not in the cache");
	} else {
		TRY(make_binary(&c, key, r, e));
	}
	if (job->api == GPU_HIP)
		read_use(job, r, a);
	else if (has_diag(r, true))	/* good kernels do not need this second run, for the lines of the source */
		map_ptx(&c, r);
	return OK;
}
