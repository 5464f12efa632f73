/* A kernel for the GPU as files: the tables of the launcher and of the Python module. */
#include "run/export_kit.h"

#include <stdio.h>

#include "plan/assign.h"

/* tensors ------------------------------------------------------------------ */

static const char *torch_type(enum dtype t)
{
	switch (t) {
	case DT_F64:	return "torch.float64";
	case DT_F32:
	case DT_TF32:	return "torch.float32";
	case DT_F16:	return "torch.float16";
	case DT_BF16:	return "torch.bfloat16";
	case DT_E4M3:	return "torch.float8_e4m3fn";
	case DT_E5M2:	return "torch.float8_e5m2";
	case DT_I32:	return "torch.int32";
	case DT_I8:	return "torch.int8";
	case DT_BOOL:	return "torch.bool";
	case DT_E2M1:
	case DT_I4:
	case DT_COUNT:	break;
	}
	return "torch.uint8";		/* two elements a byte */
}

/* "(4096, 64)". Two 4-bit elements are a byte; if rows end within a byte, the tensor is flat. */
static const char *python_shape(const struct export_kit *k, int tensor)
{
	const struct tensor *t = &k->p->tensors.v[tensor];
	bool packed = dtype_bits(t->type) < 8;
	struct buf b;

	if (packed && (!t->rank || k->p->axes.v[t->dim[t->rank - 1]].size % 2))
		return arena_strf(k->a, "(%lld,)", (long long)export_bytes(k, tensor));
	buf_init(&b, k->a);
	buf_putc(&b, '(');
	for (int d = 0; d < t->rank; d++)
		buf_printf(&b, "%s%lld", d ? ", " : "", (long long)(k->p->axes.v[t->dim[d]].size /
			(packed && d == t->rank - 1 ? 2 : 1)));
	buf_puts(&b, t->rank == 1 ? ",)" : ")");
	return b.text;
}

/* The elements of a tuple, one Tensor(...) a line. */
static const char *python_tensors(const struct export_kit *k, int first, int n)
{
	struct buf b;

	buf_init(&b, k->a);
	for (int i = first; i < first + n; i++) {
		const struct tensor *t = &k->p->tensors.v[k->tensors[i]];

		buf_printf(&b, "\n    Tensor(\"%s\", %s, %s),", t->name,
			python_shape(k, k->tensors[i]), torch_type(t->type));
	}
	if (n)
		buf_putc(&b, '\n');
	return b.text;
}

static void python_words(struct export_kit *k)
{
	struct buf parameters, tuple, results, shapes, files;
	int nargs = k->ninputs + k->noutputs;

	buf_init(&parameters, k->a);
	buf_init(&tuple, k->a);
	buf_init(&results, k->a);
	buf_init(&shapes, k->a);
	buf_init(&files, k->a);
	for (int i = 0; i < nargs; i++) {
		const struct tensor *t = &k->p->tensors.v[k->tensors[i]];
		const char *name = export_python_name(k->a, t->name);

		buf_printf(&shapes, "%s    %s  %-20s %s  %s", i ? "\n" : "", i < k->ninputs ? "in " : "out", name,
			torch_type(t->type), export_shape(k, k->tensors[i]));
		if (i < k->ninputs)
			buf_printf(&tuple, "%s%s", i ? ", " : "", name);
		else
			buf_printf(&results, "%s%s", i > k->ninputs ? ", " : "", name);
	}
	for (int i = 0; i < k->p->phases.n; i++)
		buf_printf(&files, "%s%s.cubin", i ? ", " : "", export_stem(k, i));
	export_word(k, "TENSORS", shapes.text);
	export_word(k, "RESULTS", results.text);
	export_word(k, "FILES", files.text);
	export_word(k, "CALL", tuple.text);
	export_word(k, "TUPLE", k->ninputs == 1 ? arena_strf(k->a, "%s,", tuple.text) : tuple.text);
	export_word(k, "PARAMETERS", arena_strf(k->a, "%s%s*, out=None", tuple.text, k->ninputs ? ", " : ""));
	export_word(k, "INPUTS", python_tensors(k, 0, k->ninputs));
	export_word(k, "OUTPUTS", python_tensors(k, k->ninputs, k->noutputs));
	export_word(k, "TEMPS", python_tensors(k, nargs, k->ntensors - nargs));
}

/* phases ------------------------------------------------------------------- */

struct table {
	struct buf python, params, phases, data;	/* the last three: C */
	int params_most;
};

/* "4096, 64" of a map's dimensions from `first` on; for Python a tuple of one needs a comma. */
static const char *list(struct arena *a, const uint64_t *v, const uint32_t *w, int first, int n)
{
	struct buf b;

	buf_init(&b, a);
	for (int i = first; i < n; i++)
		buf_printf(&b, "%s%llu", i > first ? ", " : "", v ? (unsigned long long)v[i] : w[i]);
	return b.text;
}

static void put_map(const struct export_kit *k, const struct param *x, const char *what, struct table *t)
{
	const struct gpu_tensor *m = built_map(k->a, k->p, x);
	const char *dims = list(k->a, m->dims, NULL, 0, m->rank);
	const char *strides = list(k->a, m->strides, NULL, 1, m->rank);
	const char *box = list(k->a, NULL, m->box, 0, m->rank);
	const char *one = m->rank == 1 ? "," : "", *two = m->rank == 2 ? "," : "";
	int number = export_number(k, x->tensor);

	buf_printf(&t->python, "            # %s\n            (\"map\", %d, %d, (%s%s), (%s%s), (%s%s), %d),\n",
		what, number, m->element, dims, one, strides, two, box, one, m->swizzle);
	buf_printf(&t->params, "\t/* %s */\n\t{ .kind = MAP, .tensor = %d, .element = %d, "
		".swizzle = %d, .rank = %d,\n\t\t.dim = { %s },\n", what, number, m->element,
		m->swizzle, m->rank, dims);
	if (m->rank > 1)
		buf_printf(&t->params, "\t\t.stride = { %s },\n", strides);
	buf_printf(&t->params, "\t\t.box = { %s } },\n", box);
}

static void put_param(const struct export_kit *k, const struct param *x, struct table *t)
{
	const char *name = x->tensor == NONE ? "" : k->p->tensors.v[x->tensor].name;

	switch (x->kind) {
	case PARAM_POINTER:
		buf_printf(&t->python, "            (\"pointer\", %d),  # %s\n", export_number(k, x->tensor), name);
		buf_printf(&t->params, "\t{ .kind = POINTER, .tensor = %d },\t/* %s */\n",
			export_number(k, x->tensor), name);
		break;
	case PARAM_MAP:
		put_map(k, x, arena_strf(k->a, "%s, by %s", name, k->plan->graph->tasks.v[x->task].name), t);
		break;
	case PARAM_ORDER:
		buf_puts(&t->python, "            (\"order\",),\n");
		buf_puts(&t->params, "\t{ .kind = ORDER },\n");
		break;
	case PARAM_START:
		buf_puts(&t->python, "            (\"start\",),\n");
		buf_puts(&t->params, "\t{ .kind = START },\n");
		break;
	case PARAM_TRACE:
		BUG("a traced kernel is not exported");
	}
}

static void put_tiles(struct table *t, const char *what, const char *phase, const int64_t *v, int64_t n)
{
	buf_printf(&t->python, "        \"%s\": (\n            ", what);
	export_numbers(&t->python, v, n, "            ");
	buf_puts(&t->python, ",\n        ),\n");
	buf_printf(&t->params, "static const int %s_%s[%lld];\n", what, phase, (long long)n);
	buf_printf(&t->data, "static const int %s_%s[%lld] = {\n\t", what, phase, (long long)n);
	export_numbers(&t->data, v, n, "\t");
	buf_puts(&t->data, "\n};\n\n");
}

static void put_binary(struct table *t, const char *phase, const struct compile_result *r)
{
	const unsigned char *v = r->cubin;

	buf_printf(&t->params, "static const _Alignas(16) unsigned char binary_%s[%zu];\n", phase, r->cubin_bytes);
	buf_printf(&t->data, "static const _Alignas(16) unsigned char binary_%s[%zu] = {", phase, r->cubin_bytes);
	for (size_t i = 0; i < r->cubin_bytes; i++)
		buf_printf(&t->data, "%s%d,", i % 32 ? "" : "\n\t", v[i]);
	buf_puts(&t->data, "\n};\n\n");
}

static void put_phase(const struct export_kit *k, const struct built_phase *b, int i, struct table *t)
{
	const struct source *s = &b->source;
	const char *name = k->p->phases.v[i].name;
	struct tile_assignment d;

	plan_assign_tiles(k->a, k->plan, i, &d);
	t->params_most = (int)max_i64(t->params_most, s->params.n);
	buf_printf(&t->python, "    {\n        \"entry\": \"%s\", \"binary\": \"%s.cubin\",\n"
		"        \"grid\": %d, \"threads\": %d, \"smem\": %lld,\n        \"params\": (\n",
		s->entry, export_stem(k, i), d.eus, s->threads, (long long)s->shared_bytes);
	buf_printf(&t->params, "static const struct param params_%s[%d] = {\n", name, s->params.n);
	for (int n = 0; n < s->params.n; n++)
		put_param(k, &s->params.v[n], t);
	buf_puts(&t->python, "        ),\n");
	buf_puts(&t->params, "};\n");
	put_tiles(t, "order", name, d.order, d.total);
	put_tiles(t, "start", name, d.start, d.eus + 1);
	buf_puts(&t->python, "    },\n");
	put_binary(t, name, &b->binary);
	buf_putc(&t->params, '\n');
	buf_printf(&t->phases, "\t{ \"%s\", binary_%s, %d, %d, %lld, params_%s, %d, order_%s, start_%s, "
		"%lld, %d },\n", s->entry, name, d.eus, s->threads, (long long)s->shared_bytes, name,
		s->params.n, name, name, (long long)d.total, d.eus + 1);
}

/* the C launcher ----------------------------------------------------------- */

static const char *integer_text(const struct export_kit *k, int64_t v)
{
	return arena_strf(k->a, "%lld", (long long)v);
}

/* One parameter a line, the last one followed by `end`. */
static const char *c_parameters(const struct export_kit *k, const char *end, bool comments)
{
	int n = k->ninputs + k->noutputs;
	struct buf b;

	buf_init(&b, k->a);
	for (int i = 0; i < n; i++) {
		buf_printf(&b, "%s\t%svoid *d_%s%s", i ? "\n" : "", i < k->ninputs ? "const " : "",
			k->p->tensors.v[k->tensors[i]].name, i + 1 < n ? "," : end);
		if (comments)
			buf_printf(&b, "\t/* %s */", export_shape(k, k->tensors[i]));
	}
	return b.text;
}

static void c_words(struct export_kit *k, const struct table *t)
{
	int nargs = k->ninputs + k->noutputs, version;
	struct buf tuple, bytes, sources;
	const char *arch = k->plan->device->arch;

	buf_init(&tuple, k->a);
	buf_init(&bytes, k->a);
	buf_init(&sources, k->a);
	for (int i = 0; i < k->ntensors; i++) {
		if (i < nargs)
			buf_printf(&tuple, "%sd_%s", i ? ", " : "", k->p->tensors.v[k->tensors[i]].name);
		buf_printf(&bytes, "%s%lld", i ? ", " : "", (long long)export_bytes(k, k->tensors[i]));
	}
	for (int i = 0; i < k->p->phases.n; i++)
		buf_printf(&sources, "%s%s.cu", i ? ", " : "", export_stem(k, i));
	if (sscanf(arch, "sm_%d", &version) != 1)
		BUG("%s is no architecture", arch);
	export_word(k, "C_PARAMETERS", c_parameters(k, ")", false));
	export_word(k, "C_ARGUMENTS", c_parameters(k, ");", true));
	export_word(k, "C_TUPLE", tuple.text);
	export_word(k, "TENSORBYTES", bytes.text);
	export_word(k, "SOURCES", sources.text);
	export_word(k, "FIRSTSOURCE", arena_strf(k->a, "%s.cu", export_stem(k, 0)));
	export_word(k, "MAJOR", integer_text(k, version / 10));
	export_word(k, "MINOR", integer_text(k, version % 10));
	export_word(k, "NARGUMENTS", integer_text(k, nargs));
	export_word(k, "NTENSORS", integer_text(k, k->ntensors));
	export_word(k, "NPHASES", integer_text(k, k->p->phases.n));
	export_word(k, "PARAMS_MOST", integer_text(k, t->params_most));
	export_word(k, "TEMPNOTE", nargs == k->ntensors ? "" : " *\n * Tensors between phases "
		"are in memory that each call takes from the stream's\n * pool and gives back "
		"(cuMemAllocAsync).\n");
	export_word(k, "TABLES", arena_strf(k->a, "%sstatic const struct phase phases[PHASES] = {\n%s};\n",
		t->params.text, t->phases.text));
	export_word(k, "DATA", t->data.text);
}

/* all ---------------------------------------------------------------------- */

enum err_code export_cuda(const struct built *b, const char *name, struct arena *a,
	struct export_set *out, struct err *e)
{
	struct export_kit k;
	struct table t = { .params_most = 0 };

	export_begin(&k, b->plan, name, a, out);
	buf_init(&t.python, a);
	buf_init(&t.params, a);
	buf_init(&t.data, a);
	buf_init(&t.phases, a);
	for (int i = 0; i < b->nphases; i++) {
		const struct built_phase *p = &b->phases[i];

		if (!p->binary.cubin_bytes)
			return err_set(e, ERR_INPUT, NOWHERE, "export: this kernel is text alone; "
				"compile it without text=true");
		put_phase(&k, p, i, &t);
		export_add(&k, arena_strf(a, "%s.cu", export_stem(&k, i)), p->source.text.text, p->source.text.len);
		export_add(&k, arena_strf(a, "%s.cubin", export_stem(&k, i)), p->binary.cubin, p->binary.cubin_bytes);
	}
	export_word(&k, "FLOPS", integer_text(&k, (int64_t)graph_flops(b->graph)));
	export_word(&k, "BYTES", integer_text(&k, (int64_t)graph_bytes(b->graph)));
	export_word(&k, "PROMOTION", integer_text(&k, MAP_PROMOTION));
	export_word(&k, "PHASES", t.python.text);
	python_words(&k);
	c_words(&k, &t);
	export_fill(&k, arena_strf(a, "%s.h", k.name), "launcher.h");
	export_fill(&k, arena_strf(a, "%s.c", k.name), "launcher.c");
	export_fill(&k, arena_strf(a, "%s.py", k.name), "loader.py");
	return OK;
}
