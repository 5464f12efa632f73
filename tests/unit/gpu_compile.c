/* Compiling: the logs of compilers, errors, and the cache of binaries. Compiling itself is skipped without NVRTC. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "gpu/cubin_cache.h"
#include "unit/gpu_setup.h"

/* ---- logs ---- */

static void test_log(void)
{
	struct compile_result r = { .log =
		"k.cu(4): warning #177-D: variable \"unused\" was declared but never referenced\n"
		"  \tint unused;\n\n"
		"ptxas info    : (C7519) warpgroup.arrive is injected in around line 164 by "
		"compiler to allow use of registers in GMMA in function 'wg'\n"
		"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions "
		"are serialized due to insufficient register resources for the wgmma pipeline in "
		"the function 'wg'\n"
		"ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
		"requirements.\n"
		"ptxas info    : 0 bytes gmem\n"
		"ptxas info    : Compiling entry function 'sp' for 'sm_90a'\n"
		"ptxas info    : Function properties for sp\n"
		"ptxas         .     992 bytes stack frame, 1216 bytes spill stores, 2116 bytes "
		"spill loads\n"
		"ptxas info    : Used 64 registers, used 3 barriers, 992 bytes cumulative stack "
		"size, 4096 bytes smem\n"
		"ptxas info    : Compiling entry function 'wg' for 'sm_90a'\n"
		"ptxas info    : Function properties for wg\n"
		"    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
		"ptxas info    : Used 168 registers, 400 bytes cmem[0]\n"
		"ptxas info    : Function properties for _Z5otherf\n"
		"    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n" };

	compile_parse_log(&r, &arena);
	is_int(r.nuses, 2, "two kernels in the log");
	is_str(r.uses[0].entry, "sp", "their names");
	is_int(r.uses[0].registers, 64, "registers");
	is_int(r.uses[0].spill_stores, 1216, "spill stores");
	is_int(r.uses[0].spill_loads, 2116, "spill loads");
	is_int(r.uses[0].stack, 992, "stack frame");
	is_int(r.uses[0].smem, 4096, "shared memory");
	is_int(r.uses[0].barriers, 3, "barriers");
	is_int(r.uses[1].registers, 168, "registers in the older form");
	is_int(r.uses[1].spill_stores, 0, "a function that is no kernel is not counted in");
	is_int(r.ndiags, 4, "four remarks");
	is_int(r.diags[0].line, 4, "a line of the source");
	is_str(r.diags[0].file, "k.cu", "and its file");
	is_str(r.diags[0].text, "variable \"unused\" was declared but never referenced",
		"the text of a warning");
	is_int(r.diags[1].ptx_line, 164, "a line of the PTX");
	ok(r.diags[1].severity == COMPILE_NOTE && !r.diags[1].serialized,
		"an injected arrive is a note");
	ok(r.diags[2].severity == COMPILE_WARNING && r.diags[2].serialized,
		"serialized wgmma is a warning and marked");
	ok(r.diags[3].severity == COMPILE_WARNING && r.diags[3].ungranted && !r.diags[2].ungranted,
		"registers that lanes are not granted, too");
}

static void test_error_log(void)
{
	struct compile_result r = { .log =
		"dir(1)/a.cu(5): error: identifier \"z\" is undefined\n"
		"a.cu(6): catastrophic error: cannot open source file \"none.h\"\n"
		"a.cu(7): error #20: with a number\n"
		"          detected during instantiation of \"f(3): error\" at line 4\n"
		"ptxas application ptx input, line 29; error   : Unknown modifier '.thing'\n"
		"ptxas fatal   : Ptx assembly aborted due to errors\n"
		"ptxas error   : Entry function 'x' uses too much shared data (0x61a80 bytes, "
		"0x38c00 max)\n"
		"nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
		"3 errors detected in the compilation of \"a.cu\".\n" };
	int errors = 0;

	compile_parse_log(&r, &arena);
	for (int i = 0; i < r.ndiags; i++)
		errors += r.diags[i].severity == COMPILE_ERROR;
	is_int(errors, 6, "errors of both compilers");
	is_str(r.diags[0].file, "dir(1)/a.cu", "a file name with parentheses");
	is_int(r.diags[2].line, 7, "an error with a number");
	is_str(r.diags[2].text, "with a number", "which is not in its text");
	is_int(r.diags[3].ptx_line, 29, "a line of the PTX");
	compile_map_ptx(&r, "\t.file\t1 \"/tmp/a.cu\"\n\n\n.loc 1 3 5\n.loc\t1 12 2, x\n"
		"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n.loc 1 99 1\n", &arena);
	is_int(r.diags[3].line, 12, "which leads to a line of the source");
	is_str(r.diags[3].file, "/tmp/a.cu", "and to its file");
	is_int(r.diags[4].line, 0, "an error without a location has no line");
}

/* ---- compiling ---- */

static const char source[] =
	"extern \"C\" __global__ void saxpy(int n, float a, const float *x, float *y)\n"
	"{\n"
	"	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	if (i < n) y[i] += a * x[i];\n"
	"}\n";

/* Make the files of the cache shorter, or change a byte. */
static int damage_cache(const char *dir, bool shorten)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "%s/millrace/cubin", dir);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		int fd = entry->d_name[0] == '.' ? -1 : openat(dirfd(d), entry->d_name, O_RDWR);
		struct stat st;

		if (fd < 0)
			continue;
		if (fstat(fd, &st) || (shorten ? ftruncate(fd, st.st_size - 7) :
				pwrite(fd, "damaged", 7, st.st_size - 50) != 7))
			diag("cannot damage %s", entry->d_name);
		close(fd);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void test_compile_errors(struct gpu *g, struct compile_job *job)
{
	struct compile_result r;

	job->name = "made.cu";
	job->source = "__global__ void k(float *y)\n{\n\ty[0] = zz;\n\ty[1] = \"s\";\n}\n";
	is_int(gpu_compile(g, job, NULL, &arena, &r, &err), ERR_INPUT, "a wrong source");
	ok(err.line == 3 && !strcmp(err.file, "made.cu"), "has its line and file in the error");
	ok(says(&err, "\"zz\" is undefined (and 1 more)"), "and what is wrong");
	ok(r.ndiags == 2 && r.diags[1].line == 4 && !r.cubin, "the second error is there too");
	is_int(gpu_failure(g), GPU_FAIL_JOB, "as a failure of the job");

	job->source = "#line 70 \"gemm.lua\"\n__device__ int f() { return q; }\n";
	ok(gpu_compile(g, job, NULL, &arena, &r, &err) && err.line == 70 &&
		!strcmp(err.file, "gemm.lua"), "#line is obeyed");

	job->source = "extern \"C\" __global__ void k(float *y)\n{\n\ty[0] = 1;\n"
		"\tasm volatile(\"bogus.thing;\");\n\ty[1] = 2;\n}\n";
	ok(gpu_compile(g, job, NULL, &arena, &r, &err) && err.line == 4 &&
		!strcmp(err.file, "made.cu"), "an error in inline PTX has its line of the source");

	job->source = "extern \"C\" __global__ void k(float *y)\n{\n"
		"\t__shared__ volatile float s[80000];\n\ts[threadIdx.x * 200] = 1;\n\ty[0] = s[5];\n}\n";
	ok(gpu_compile(g, job, NULL, &arena, &r, &err) && says(&err, "'k' uses too much shared data"),
		"an error of ptxas without a line");

	job->arch = "sm_9q";
	is_int(gpu_compile(g, job, NULL, &arena, &r, &err), ERR_INPUT, "no such architecture");
	ok(says(&err, "sm_9q"), "is named");
	job->arch = NULL;
	is_int(gpu_compile(g, job, NULL, &arena, &r, &err), ERR_INPUT, "none at all is refused");
}

static void test_compile(void)
{
	struct compile_job job = { .source = source, .arch = "sm_90a" };
	struct compile_result r, again;
	struct gpu *g = open_gpu();
	enum err_code code = gpu_compile(g, &job, NULL, &arena, &r, &err);

	if (code && gpu_failure(g) == GPU_FAIL_MISSING) {
		diag("%s", err.msg);
		for (int i = 0; i < 19; i++)
			skip("no NVRTC");
		gpu_free(g);
		return;
	}
	if (code)
		diag("%s", err.msg);
	ok(!code && r.cubin_bytes > 500 && !memcmp(r.cubin, "\177ELF", 4), "a binary is made");
	ok(r.nuses == 1 && !strcmp(r.uses[0].entry, "saxpy") && r.uses[0].registers > 3,
		"with the registers of its kernel");
	ok(!r.cached && r.major >= 11, "it is fresh");
	code = gpu_compile(g, &job, NULL, &arena, &again, &err);
	ok(!code && again.cached && again.cubin_bytes == r.cubin_bytes &&
		!memcmp(again.cubin, r.cubin, r.cubin_bytes), "the second time it is kept");
	ok(again.nuses == 1 && again.uses[0].registers == r.uses[0].registers, "with its log");
	job.fast_math = true;
	ok(!gpu_compile(g, &job, NULL, &arena, &again, &err) && !again.cached,
		"other options are another binary");
	job.fast_math = false;
	ok(damage_cache(folder, true) == 2 &&
		!gpu_compile(g, &job, NULL, &arena, &again, &err) && !again.cached,
		"a shortened file is ignored");
	damage_cache(folder, false);
	ok(!gpu_compile(g, &job, NULL, &arena, &again, &err) && !again.cached,
		"so is one that was changed");
	ok(!gpu_compile(g, &job, NULL, &arena, &again, &err) && again.cached, "both are replaced");
	test_compile_errors(g, &job);
	gpu_free(g);
}

static void test_cache(void)
{
	struct cubin_entry in = { "log", "binary", 6 }, out;

	ok(!cubin_cache_find("key", &out, &arena), "the cache has nothing");
	cubin_cache_keep("key", &in, &arena);
	ok(cubin_cache_find("key", &out, &arena) && !strcmp(out.log, "log") &&
		out.cubin_bytes == 6 && !memcmp(out.cubin, "binary", 6), "then what was put there");
	ok(!cubin_cache_find("keys", &out, &arena), "and nothing else");
}

int main(int argc, char **argv)
{
	static void (*const tests[])(void) = { test_log, test_error_log, test_compile, test_cache };

	return gpu_tests(argc, argv, tests, LEN(tests));
}
