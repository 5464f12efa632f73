/* Kernels that compare outputs in the device's memory, in the text of a plain kernel. What counts as wrong is what
 * lua/lreference.c says of elements in the host's memory, statement by statement. */
#include "reference/plain_text.h"

static const char common[] =
	"\n/* comparing */\n"
	"struct found {\n"
	"\tdouble greatest, off, size, most, worst, got, want, allowed, chunk;\n"
	"\ti64 wrong, compared, at, unlimited, telling, unwritten;\n"
	"};\n"
	"#define CHUNK %d\n"
	"FN int is_nan(double x) { return x != x; }\n"
	"FN int is_finite(double x) { return x - x == 0; }\n"
	"FN double compare_element(found *f, i64 at, double got, double want, double allowed)\n"
	"{\n"
	"\tdouble d = got == want || (is_nan(got) && is_nan(want)) ? 0 : fabs(got - want), share;\n"
	"\tint any;\n"
	"\n"
	"\tif (allowed == 0)\n"
	"\t\treturn -1;\n"
	"\tany = is_nan(allowed) || allowed == INF;\n"
	"\tshare = d == 0 || any ? 0 : is_nan(d) ? INF : d / allowed;\n"
	"\tf->telling += !any && is_finite(want) && want != 0;\n"
	"\tif (any) {\n"
	"\t\tf->unlimited++;\n"
	"\t\td = 0;\n"
	"\t} else {\n"
	"\t\tf->most += allowed * allowed;\n"
	"\t}\n"
	"\tf->greatest = d <= f->greatest ? f->greatest : d;\n"
	"\tf->off += d * d;\n"
	"\tf->size += is_finite(want) ? want * want : 0;\n"
	"\tf->wrong += share > 1;\n"
	"\tif (f->compared++ && share <= f->worst)\n"
	"\t\treturn any ? -1 : d;\n"
	"\tf->worst = share;\n"
	"\tf->at = at;\n"
	"\tf->got = got;\n"
	"\tf->want = want;\n"
	"\tf->allowed = allowed;\n"
	"\treturn any ? -1 : d;\n"
	"}\n";

/* Chunks in which few elements are compared say little of how far others may be off. */
static const char of_type[] =
	"KERNEL compare_%s(const void *got, const double *want, const double *allowed, i64 n, found *to)\n"
	"{\n"
	"\tfound f = {};\n"
	"\n"
	"\tfor (i64 at = BLOCK * THREADS + THREAD; at * CHUNK < n; at += BLOCKS * THREADS) {\n"
	"\t\tdouble off = 0, size = 0;\n"
	"\t\tint few = 0;\n"
	"\n"
	"\t\tfor (i64 i = at * CHUNK; i < n && i < at * CHUNK + CHUNK; i++) {\n"
	"\t\t\tconst double d = compare_element(&f, i, load_%s(got, i), want[i], allowed[i]);\n"
	"\n"
	"\t\t\tif (d < 0 || !is_finite(want[i]))\n"
	"\t\t\t\tcontinue;\n"
	"\t\t\tfew++;\n"
	"\t\t\toff += d * d;\n"
	"\t\t\tsize += want[i] * want[i];\n"
	"\t\t}\n"
	"\t\tif (4 * few >= CHUNK && size > 0)\n"
	"\t\t\tf.chunk = greater(f.chunk, off / size);\n"
	"\t}\n"
	"\tto[BLOCK * THREADS + THREAD] = f;\n"
	"}\n"
	"KERNEL agree_%s(const void *got, const void *other, i64 n, found *to)\n"
	"{\n"
	"\tfound f = {};\n"
	"\n"
	"\tfor (i64 at = BLOCK * THREADS + THREAD; at * CHUNK < n; at += BLOCKS * THREADS) {\n"
	"\t\tdouble off = 0, ours = 0, others = 0;\n"
	"\n"
	"\t\tfor (i64 i = at * CHUNK; i < n && i < at * CHUNK + CHUNK; i++) {\n"
	"\t\t\tconst double x = load_%s(got, i), y = load_%s(other, i);\n"
	"\n"
	"\t\t\tf.compared++;\n"
	"\t\t\tif (is_nan(x) && is_nan(y))\n"
	"\t\t\t\tf.unwritten++;\n"
	"\t\t\telse if (is_finite(x) && is_finite(y))\n"
	"\t\t\t\toff += (x - y) * (x - y), ours += x * x, others += y * y;\n"
	"\t\t\telse if (x != y)\n"
	"\t\t\t\toff = INF;\n"
	"\t\t}\n"
	"\t\tif (off > 0)\n"
	"\t\t\toff = off < INF ? off / greater(ours, others) : off;\n"
	"\t\tif (off > f.worst)\n"
	"\t\t\tf.worst = off, f.at = at * CHUNK;\n"
	"\t}\n"
	"\tto[BLOCK * THREADS + THREAD] = f;\n"
	"}\n";

/* The text is CUDA C++ alone: on the CPU nothing is gained. */
void plain_put_comparisons(struct plain *out, enum dtype t)
{
	const char *name = dtype_name(t);

	buf_puts(&out->text, "\n#ifdef __CUDACC__\n");
	if (!out->compares)
		buf_printf(&out->text, common, PLAIN_CHUNK);
	out->compares = true;
	buf_printf(&out->text, of_type, name, name, name, name, name);
	buf_puts(&out->text, "#endif\n");
}
