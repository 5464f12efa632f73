/* A kernel for the GPU as files: the tables of the launcher and of the Python module. */
#include "run/export_torch.h"

#include <stdio.h>
#include <string.h>

#include "gpu/libraries.h"

static const struct export_names cuda_names = { ".cu", ".cubin", (const char *const[][2]){ { NULL, NULL } } };

static const struct export_names hip_names = { ".hip", ".co", (const char *const[][2]){
	{ "cu", "hip" }, { "self.cuda", "self.hip" }, { "cuGetErrorName", "hipDrvGetErrorName" },
	{ "cuGetErrorString", "hipDrvGetErrorString" }, { "cuCtxGetDevice", "hipGetDevice" },
	{ "cuMemAlloc", "hipMalloc" }, { "cuMemAlloc_v2", "hipMalloc" }, { "cuMemFree", "hipFree" },
	{ "cuMemAllocAsync", "hipMallocAsync" }, { "cuMemFreeAsync", "hipFreeAsync" },
	{ "cuMemcpyHtoD", "hipMemcpyHtoD" }, { "cuMemcpyHtoD_v2", "hipMemcpyHtoD" },
	{ "cuStreamIsCapturing", "hipStreamIsCapturing" }, { "cuModuleLoadData", "hipModuleLoadData" },
	{ "cuModuleUnload", "hipModuleUnload" }, { "cuModuleGetFunction", "hipModuleGetFunction" },
	{ "cuLaunchKernel", "hipModuleLaunchKernel" }, { "CUstream_st", "ihipStream_t" },
	{ "the driver (libcuda.so.1)", "AMD's runtime (libamdhip64.so)" }, { "CUDA's", "HIP's" },
	{ "a CUDA graph", "a HIP graph" }, { "one CUDA device", "one GPU" }, { "a CUDA device", "a GPU" },
	{ NULL, NULL } } };

const struct export_names *export_names_of(bool hip)
{
	return hip ? &hip_names : &cuda_names;
}

/* tensors ------------------------------------------------------------------ */

/* "(4096, 64)", from dimension `first` on. Two 4-bit elements are a byte; if rows end within a byte, the tensor is
 * flat. */
static const char *python_shape(const struct export_kit *k, int tensor, int first)
{
	const struct tensor *t = &k->p->tensors.v[tensor];
	bool packed = dtype_bits(t->element) < 8;
	struct buf b = buf_new(k->a);

	if (packed && (!t->rank || k->p->axes.v[tensor_declared_axis(t, t->rank - 1)].size % 2))
		return arena_strf(k->a, "(%lld,)", (long long)export_bytes(k, tensor));
	buf_putc(&b, '(');
	for (int d = first; d < t->rank; d++)
		if (k->size_of[t->dim[d]] != NONE)
			buf_printf(&b, "%s\"%s\"", d > first ? ", " : "", k->p->axes.v[t->dim[d]].name);
		else
			buf_printf(&b, "%s%lld", d > first ? ", " : "",
				(long long)(k->p->axes.v[tensor_declared_axis(t, d)].size /
			(packed && d == t->rank - 1 ? 2 : 1)));
	buf_puts(&b, t->rank - first == 1 ? ",)" : ")");
	return b.text;
}

/* The elements of a tuple, one Tensor(...) a line. */
static const char *python_tensors(const struct export_kit *k, int first, int n)
{
	struct buf b = buf_new(k->a);

	for (int i = first; i < first + n; i++) {
		const struct tensor *t = &k->p->tensors.v[k->tensors[i]];

		if (t->by_address)
			buf_printf(&b, "\n    Tensor(\"%s\", (%lld,), torch.int64),", t->name,
				(long long)k->p->axes.v[t->dim[0]].size);
		else
			buf_printf(&b, "\n    Tensor(\"%s\", %s, torch.%s),", t->name,
				python_shape(k, k->tensors[i], 0), torch_type(t->element));
	}
	if (n)
		buf_putc(&b, '\n');
	return b.text;
}

/* Of modules with tensors that are given by the addresses of their parts. */
static const char python_addresses[] =
	"\n\n\n"
	"_address_tensors = {}\n"
	"_captured_addresses = {}  # which graphs read whenever they are replayed: they stay\n"
	"\n\n"
	"def _addresses(name, parts, n, shape, dtype):\n"
	"    \"\"\"The addresses of a list of n tensors, in device memory. A tensor of addresses (int64) is taken as it is.\"\"\"\n"
	"    if isinstance(parts, torch.Tensor):\n"
	"        return parts\n"
	"    if len(parts) != n:\n"
	"        raise ValueError(f\"{NAME}: {name} has {len(parts)} tensors, expected {n}\")\n"
	"    for i, x in enumerate(parts):\n"
	"        if not isinstance(x, torch.Tensor):\n"
	"            raise TypeError(f\"{NAME}: {name}[{i}] must be a torch tensor, got {type(x).__name__}\")\n"
	"        if x.dtype != dtype or tuple(x.shape) != shape or not x.is_contiguous():\n"
	"            raise ValueError(f\"{NAME}: {name}[{i}] must be a contiguous tensor of {dtype} and shape {shape}, \"\n"
	"                             f\"got {x.dtype} {tuple(x.shape)}\")\n"
	"        if x.device != parts[0].device or x.get_device() < 0:\n"
	"            raise ValueError(f\"{NAME}: {name}[{i}] is on {x.device}; all must be on one CUDA device\")\n"
	"        if x.data_ptr() == 0 or x.data_ptr() % 16:\n"
	"            raise ValueError(f\"{NAME}: {name}[{i}] must begin at a multiple of 16 bytes, and not at address 0\")\n"
	"    key = (parts[0].device, tuple([x.data_ptr() for x in parts]))\n"
	"    made = _address_tensors.get(key, _captured_addresses.get(key))\n"
	"    if torch.cuda.is_current_stream_capturing():\n"
	"        if made is None:\n"
	"            raise RuntimeError(f\"{NAME}: before capturing a CUDA graph, call {NAME}.run() with these tensors of {name}, \"\n"
	"                               \"or give an int64 tensor of their addresses\")\n"
	"        _captured_addresses[key] = made\n"
	"        return made\n"
	"    if made is None:\n"
	"        if len(_address_tensors) >= _CACHED_MOST:\n"
	"            _address_tensors.clear()\n"
	"        made = _address_tensors[key] = torch.tensor(key[1], dtype=torch.int64, device=key[0])\n"
	"    # A kernel on this stream may read it after it was dropped.\n"
	"    made.record_stream(torch.cuda.current_stream(key[0]))\n"
	"    return made";

static void python_words(struct export_kit *k)
{
	struct buf tuple = buf_new(k->a), results = buf_new(k->a), shapes = buf_new(k->a), files = buf_new(k->a);
	struct buf parameters = buf_new(k->a);
	int nargs = k->ninputs + k->noutputs;
	bool by_address = false;

	for (int i = 0; i < nargs; i++) {
		const struct tensor *t = &k->p->tensors.v[k->tensors[i]];
		const char *name = export_python_name(k->a, t->name);

		buf_printf(&shapes, "%s    %s  %-20s torch.%s  %s", i ? "\n" : "", i < k->ninputs ? "in " : "out", name,
			torch_type(t->element), export_shape(k, k->tensors[i]));
		if (i < k->ninputs) {
			buf_printf(&parameters, "%s%s", i ? ", " : "", name);
			buf_printf(&tuple, "%s%s", i ? ", " : "", !t->by_address ? name :
				arena_strf(k->a, "_addresses(\"%s\", %s, %lld, %s, torch.%s)", t->name, name,
				(long long)k->p->axes.v[t->dim[0]].size, python_shape(k, k->tensors[i], 1),
					torch_type(t->element)));
			by_address |= t->by_address;
		}
		else
			buf_printf(&results, "%s%s", i > k->ninputs ? ", " : "", name);
	}
	for (int i = 0; i < k->p->phases.n; i++)
		buf_printf(&files, "%s%s%s", i ? ", " : "", export_stem(k, i), k->names->binary);
	export_word(k, "TENSORS", shapes.text);
	export_word(k, "RESULTS", results.text);
	export_word(k, "FILES", files.text);
	export_word(k, "CALL", parameters.text);
	export_word(k, "ADDRESSES", by_address ? export_named(k, python_addresses) : "");
	export_word(k, "TUPLE", k->ninputs == 1 ? arena_strf(k->a, "%s,", tuple.text) : tuple.text);
	export_word(k, "EARLY_PARAMETER", k->early ? ", early=True" : "");
	export_word(k, "EARLY_NAME", k->early ? ", early" : "");
	export_word(k, "EARLY_GIVEN", k->early ? ", 1 if early else 0" : "");
	export_word(k, "PARAMETERS", arena_strf(k->a, "%s%s*, out=None", parameters.text, k->ninputs ? ", " : ""));
	export_word(k, "INPUTS", python_tensors(k, 0, k->ninputs));
	export_word(k, "OUTPUTS", python_tensors(k, k->ninputs, k->noutputs));
	export_word(k, "TEMPS", python_tensors(k, nargs, k->ntensors - nargs));
}

/* phases ------------------------------------------------------------------- */

/* "4096, 64" of a map's dimensions from `first` on; for Python a tuple of one needs a comma. */
static const char *number_list(struct arena *a, const uint64_t *v, const uint32_t *w, int first, int n)
{
	struct buf b = buf_new(a);

	for (int i = first; i < n; i++)
		buf_printf(&b, "%s%llu", i > first ? ", " : "", v ? (unsigned long long)v[i] : w[i]);
	return b.text;
}

/* A dimension of a map, or its stride, at the sizes of a launch. */
struct map_number {
	int64_t known;			/* is to be multiplied by the sizes */
	uint64_t sizes;			/* bits */
};

static struct map_number map_number(const struct export_kit *k, const struct param *x, int i, bool stride)
{
	struct map_number n;
	int bytes = dtype_bits(k->p->tensors.v[x->tensor].type) / 8;

	n.known = export_product(k, x->tensor, (stride ? x->stride_of : x->dim_of)[i],
		stride ? bytes * x->stride_factor[i] : x->dim_factor[i], &n.sizes);
	return n;
}

/* For C the known factors, or the bits; for Python tuples of a factor and numbers of sizes. */
static const char *map_numbers(const struct export_kit *k, const struct param *x, bool stride, bool bits)
{
	struct buf b = buf_new(k->a);

	for (int i = stride; i < x->rank; i++) {
		struct map_number n = map_number(k, x, i, stride);

		buf_printf(&b, "%s%lld", i > stride ? ", " : "", (long long)(bits ? (int64_t)n.sizes : n.known));
	}
	return b.text;
}

static const char *python_numbers(const struct export_kit *k, const struct param *x, bool stride)
{
	struct buf b = buf_new(k->a);

	for (int i = stride; i < x->rank; i++) {
		struct map_number n = map_number(k, x, i, stride);

		buf_printf(&b, "%s(%lld,", i > stride ? ", " : "", (long long)n.known);
		for (int s = 0; s < k->nsizes; s++)
			if (n.sizes >> s & 1)
				buf_printf(&b, " %d,", s);
		buf_puts(&b, ")");
	}
	return b.text;
}

static void put_map_by(const struct export_kit *k, const struct param *x, struct buf *out)
{
	const struct gpu_tensor *m = built_map(k->a, k->p, x);

	buf_printf(out, "\t/* %s */\n\t{ .kind = MAP, .tensor = %d, .element = %d, .swizzle = %d, .rank = %d,\n"
		"\t\t.dim = { %s }, .dim_by = { %s },\n", export_param_text(k, x), export_number(k, x->tensor),
			m->element,
		m->swizzle, m->rank, map_numbers(k, x, false, false), map_numbers(k, x, false, true));
	if (m->rank > 1)
		buf_printf(out, "\t\t.stride = { %s }, .stride_by = { %s },\n", map_numbers(k, x, true, false),
			map_numbers(k, x, true, true));
	buf_printf(out, "\t\t.box = { %s } },\n", number_list(k->a, NULL, m->box, 0, m->rank));
}

static void put_map(const struct export_kit *k, const struct param *x, struct buf *out)
{
	const struct gpu_tensor *m = built_map(k->a, k->p, x);

	buf_printf(out, "\t/* %s */\n\t{ .kind = MAP, .tensor = %d, .element = %d, .swizzle = %d, .rank = %d,\n"
		"\t\t.dim = { %s },\n", export_param_text(k, x), export_number(k, x->tensor), m->element, m->swizzle,
		m->rank, number_list(k->a, m->dims, NULL, 0, m->rank));
	if (m->rank > 1)
		buf_printf(out, "\t\t.stride = { %s },\n", number_list(k->a, m->strides, NULL, 1, m->rank));
	buf_printf(out, "\t\t.box = { %s } },\n", number_list(k->a, NULL, m->box, 0, m->rank));
}

static void python_param(const struct export_kit *k, const struct param *x, struct buf *out)
{
	const struct gpu_tensor *m;
	const char *one, *two;

	if (x->kind == PARAM_POINTER) {
		buf_printf(out, "            (\"pointer\", %d),  # %s\n", export_number(k, x->tensor),
			export_param_text(k, x));
	} else if (x->kind == PARAM_SIZE) {
		buf_printf(out, "            (\"size\", %d),  # %s\n", k->size_of[x->axis], k->p->axes.v[x->axis].name);
	} else if (x->kind == PARAM_MAP && k->nsizes) {
		m = built_map(k->a, k->p, x);
		buf_printf(out, "            # %s\n            (\"map\", %d, %d, (%s,), (%s%s), (%s,), %d),\n",
			export_param_text(k, x), export_number(k, x->tensor), m->element, python_numbers(k, x, false),
			python_numbers(k, x, true), m->rank > 1 ? "," : "", number_list(k->a, NULL, m->box, 0,
				m->rank), m->swizzle);
	} else if (x->kind == PARAM_MAP) {
		m = built_map(k->a, k->p, x);
		one = m->rank == 1 ? "," : "";
		two = m->rank == 2 ? "," : "";
		buf_printf(out, "            # %s\n            (\"map\", %d, %d, (%s%s), (%s%s), (%s%s), %d),\n",
			export_param_text(k, x), export_number(k, x->tensor), m->element,
			number_list(k->a, m->dims, NULL, 0, m->rank), one,
			number_list(k->a, m->strides, NULL, 1, m->rank), two,
			number_list(k->a, NULL, m->box, 0, m->rank), one, m->swizzle);
	} else {
		buf_printf(out, "            (\"%s\",),\n", x->kind == PARAM_ORDER ? "order" : "start");
	}
}

static void python_tiles(struct buf *out, const char *what, const int64_t *v, int64_t n)
{
	buf_printf(out, "        \"%s\": (\n            ", what);
	export_numbers(out, v, n, "            ");
	buf_puts(out, ",\n        ),\n");
}

static void python_groups(const struct export_kit *k, int phase, struct buf *out)
{
	struct export_groups g;

	export_find_groups(k, phase, &g);
	buf_puts(out, "        \"dims\": (");
	for (int i = 0; i < g.grid.n; i++)
		buf_printf(out, "(%lld, %lld, %d), ", (long long)g.grid.tiles[i],
			(long long)k->plan->graph->extents.tile[g.grid.axis[i]], k->size_of[g.grid.axis[i]]);
	buf_printf(out, "),\n        \"cluster\": %d, \"along\": %d,\n", g.cluster, g.along);
	python_tiles(out, "first", g.first, g.n);
	if (g.work)
		python_tiles(out, "work", g.work, g.n);
	else
		buf_puts(out, "        \"work\": None,\n");
}

static void put_phase(const struct export_kit *k, const struct built_phase *b, int i, struct export_tables *t,
	struct buf *python)
{
	const struct source *s = &b->source;
	const unsigned char *binary = b->binary.cubin;
	const char *name = k->p->phases.v[i].name;
	const char *head = arena_strf(k->a, "static const _Alignas(16) unsigned char binary_%s[%zu]", name,
		b->binary.cubin_bytes);
	struct tile_assignment d;

	export_phase(k, s, i, k->nsizes ? put_map_by : put_map, t, &d);
	buf_printf(&t->params, "%s;\n\n", head);
	buf_printf(&t->data, "%s = {", head);
	for (size_t n = 0; n < b->binary.cubin_bytes; n++)
		buf_printf(&t->data, "%s%d,", n % 32 ? "" : "\n\t", binary[n]);
	buf_puts(&t->data, "\n};\n\n");
	if (k->nsizes)
		buf_printf(&t->phases, "\t{ \"%s\", binary_%s, %d, %lld, params_%s, %d, &grid_%s },\n", s->entry, name,
			s->threads, (long long)s->shared_bytes, name, s->params.n, name);
	else
		buf_printf(&t->phases, "\t{ \"%s\", binary_%s, %d, %d, %lld, params_%s, %d, order_%s, %s },\n", s->entry,
			name, d.eus, s->threads, (long long)s->shared_bytes, name, s->params.n, name, k->plan->grid.dynamic ?
			arena_strf(k->a, "%lld", (long long)d.total) :
			arena_strf(k->a, "start_%s, %lld, %d", name, (long long)d.total, d.eus + 1));
	buf_printf(python, "    {\n        \"entry\": \"%s\", \"binary\": \"%s%s\",\n"
		"        \"grid\": %d, \"threads\": %d, \"smem\": %lld,\n        \"params\": (\n",
		s->entry, export_stem(k, i), k->names->binary, d.eus, s->threads, (long long)s->shared_bytes);
	for (int n = 0; n < s->params.n; n++)
		python_param(k, &s->params.v[n], python);
	buf_puts(python, "        ),\n");
	if (k->nsizes) {
		python_groups(k, i, python);
	} else {
		python_tiles(python, "order", d.order, d.total);
		if (!k->plan->grid.dynamic)
			python_tiles(python, "start", d.start, d.eus + 1);
	}
	buf_puts(python, "    },\n");
}

/* the C launcher ----------------------------------------------------------- */

/* One parameter a line, the last one followed by `end`. */
static const char *c_parameters(const struct export_kit *k, const char *end, bool comments)
{
	int n = k->ninputs + k->noutputs;
	struct buf b = buf_new(k->a);

	for (int i = 0; i < n; i++) {
		buf_printf(&b, "%s\t%svoid *d_%s%s", i ? "\n" : "", i < k->ninputs ? "const " : "",
			k->p->tensors.v[k->tensors[i]].name, i + 1 < n || k->nsizes ? "," : end);
		if (comments)
			buf_printf(&b, "\t/* %s */", export_shape(k, k->tensors[i]));
	}
	if (k->nsizes)
		buf_printf(&b, "\n\t%s%s", export_size_parameters(k), end);
	return b.text;
}

/* The bytes of a tensor; what of them is to be multiplied by the sizes of a launch. Elements of 4 bits, two to a
 * byte, have no last axis of such a size (check_packed). */
static int64_t known_bytes(const struct export_kit *k, int tensor)
{
	const struct tensor *t = &k->p->tensors.v[tensor];
	uint64_t sizes;
	int64_t elements = export_product(k, tensor, ~0u, 1, &sizes);

	return sizes ? (int64_t)dtype_bytes(t->type, (size_t)elements) : export_bytes(k, tensor);
}

static enum err_code check_packed(const struct export_kit *k, struct err *e)
{
	for (int i = 0; i < k->p->tensors.n; i++) {
		const struct tensor *t = &k->p->tensors.v[i];
		uint64_t sizes;

		(void)export_product(k, i, ~0u, 1, &sizes);
		if (dtype_bits(t->type) < 8 && sizes && (k->size_of[t->dim[t->rank - 1]] != NONE ||
		    k->p->axes.v[t->dim[t->rank - 1]].size % 2))
			return err_set(e, ERR_INPUT, t->loc,
				"export: '%s' has two elements to a byte, so its last axis must be of "
				"a size that is known, and even", t->name);
	}
	return OK;
}

static void c_words(struct export_kit *k, const struct export_tables *t)
{
	int nargs = k->ninputs + k->noutputs, version;
	struct buf tuple = buf_new(k->a), bytes = buf_new(k->a), sources = buf_new(k->a), temps = buf_new(k->a);

	for (int i = 0; i < k->ntensors; i++) {
		if (i < nargs)
			buf_printf(&tuple, "%sd_%s", i ? ", " : "", k->p->tensors.v[k->tensors[i]].name);
		buf_printf(&bytes, "%s%lld", i ? ", " : "", (long long)known_bytes(k, k->tensors[i]));
	}
	for (int i = 0; i < k->p->phases.n; i++)
		buf_printf(&sources, "%s%s%s", i ? ", " : "", export_stem(k, i), k->names->source);
	if (k->hip) {
		export_integer(k, "PROPERTIES", HIP_PROPERTIES_BYTES);
		export_integer(k, "ARCHAT", HIP_PROPERTIES_ARCH);
	} else if (sscanf(k->arch, "sm_%d", &version) != 1) {
		BUG("%s is no architecture", k->arch);
	} else {
		export_integer(k, "MAJOR", version / 10);
		export_integer(k, "MINOR", version % 10);
		export_integer(k, "PROMOTION", MAP_PROMOTION);
	}
	export_word(k, "C_PARAMETERS", c_parameters(k, ")", false));
	export_word(k, "C_ARGUMENTS", c_parameters(k, ");", true));
	export_word(k, "C_TUPLE", tuple.text);
	for (int i = nargs; i < k->ntensors; i++)
		buf_printf(&temps, "%s%s", i > nargs ? ", " : "", export_shape(k, k->tensors[i]));
	export_word(k, "TEMPSHAPES", temps.text);
	export_integer(k, "NTEMPS", k->ntensors - nargs);
	export_word(k, "C_HOW", arena_strf(k->a, "%s%s", k->early ? "int early, " : "",
		nargs < k->ntensors ? "void *const *given, " : ""));
	export_word(k, "C_HOW_EARLY", arena_strf(k->a, "%s%s", k->early ? "1, " : "", nargs < k->ntensors ? "NULL, " : ""));
	export_word(k, "C_HOW_LATE", arena_strf(k->a, "0, %s", nargs < k->ntensors ? "NULL, " : ""));
	export_word(k, "C_HOW_GIVEN", k->early ? "early, given, " : "given, ");
	export_word(k, "C_EARLY", k->early ? ", int early" : "");
	export_word(k, "C_FIRST_EARLY", k->early ? ", early" : "");
	export_word(k, "C_PHASE_EARLY", k->early ? ", i > 0 || early" : "");
	export_word(k, "TENSORBYTES", bytes.text);
	export_word(k, "SOURCES", sources.text);
	export_word(k, "FIRSTSOURCE", arena_strf(k->a, "%s%s", export_stem(k, 0), k->names->source));
	export_integer(k, "NARGUMENTS", nargs);
	export_integer(k, "NTENSORS", k->ntensors);
	export_integer(k, "NPHASES", k->p->phases.n);
	export_integer(k, "PARAMS_MOST", t->params_most);
	export_word(k, "TEMPNOTE", nargs == k->ntensors ? "" : export_named(k, " *\n * Tensors between phases "
		"are in memory that each call takes from the stream's\n * pool and gives back "
		"(cuMemAllocAsync).\n"));
	export_word(k, "TABLES", arena_strf(k->a, "%sstatic const struct phase phases[PHASES] = {\n%s};\n",
		t->params.text, t->phases.text));
	export_word(k, "DATA", t->data.text);
}

/* all ---------------------------------------------------------------------- */

/* Everything but the Python module: to `folder`, which ends with '/' or is empty. binaries: as files, too. */
static enum err_code put_files(struct export_kit *k, const struct built *b, const char *folder, bool binaries,
	struct buf *python, struct err *e)
{
	struct export_tables t = { buf_new(k->a), buf_new(k->a), buf_new(k->a), "\n", 0 };

	k->names = export_names_of(k->hip);
	TRY(check_packed(k, e));
	for (int i = 0; i < b->nphases; i++) {
		const struct built_phase *p = &b->phases[i];
		const char *stem = arena_strf(k->a, "%s%s", folder, export_stem(k, i));

		if (!p->binary.cubin_bytes)
			return err_set(e, ERR_INPUT, NOWHERE, "export: this kernel is text alone; "
				"compile it without text=true");
		put_phase(k, p, i, &t, python);
		export_add(k, arena_strf(k->a, "%s%s", stem, k->names->source), p->source.text.text, p->source.text.len);
		if (binaries)
			export_add(k, arena_strf(k->a, "%s%s", stem, k->names->binary), p->binary.cubin,
				p->binary.cubin_bytes);
	}
	export_integer(k, "FLOPS", (int64_t)graph_flops(b->graph));
	export_integer(k, "BYTES", (int64_t)graph_bytes(b->graph));
	export_word(k, "PHASES", python->text);
	export_size_words(k);
	python_words(k);
	c_words(k, &t);
	export_fill(k, arena_strf(k->a, "%s%s.h", folder, k->name), "launcher.h");
	export_fill(k, arena_strf(k->a, "%s%s.c", folder, k->name), "launcher.c");
	return OK;
}

enum err_code export_gpu(const struct built *b, const char *name, struct arena *a,
	struct export_set *out, struct err *e)
{
	struct buf python = buf_new(a);
	struct export_kit k;

	export_begin(&k, b, name, a, out);
	TRY(put_files(&k, b, "", true, &python, e));
	export_fill(&k, arena_strf(a, "%s.py", k.name), "loader.py");
	return OK;
}

/* a PyTorch operator ------------------------------------------------------- */

static void describe_tensor(const struct export_kit *k, const int *number, int tensor, bool output, struct torch_tensor *out)
{
	const struct tensor *t = &k->p->tensors.v[tensor];
	bool packed = dtype_bits(t->element) < 8;

	*out = (struct torch_tensor){ .name = export_python_name(k->a, t->name), .role = output ? TORCH_OUTPUT : TORCH_INPUT,
		.type = t->by_address ? "int64" : torch_type(t->element), .rank = t->by_address ? 1 : t->rank };
	if (packed && (!t->rank || k->p->axes.v[tensor_declared_axis(t, t->rank - 1)].size % 2)) {
		out->rank = 1;		/* rows end within a byte */
		out->dims[0] = (struct torch_dimension){ export_bytes(k, tensor), NONE };
		return;
	}
	for (int d = 0; d < out->rank; d++) {
		int size = k->size_of[t->dim[d]];
		int64_t known = k->p->axes.v[tensor_declared_axis(t, d)].size / (packed && d == t->rank - 1 ? 2 : 1);

		out->dims[d] = (struct torch_dimension){ size == NONE ? known : 0, size == NONE ? NONE : number[size] };
	}
}

static void describe(const struct export_kit *k, struct torch_operator *out)
{
	int number[AXES_MAX];		/* of the operator's sizes, by size of the program */

	*out = (struct torch_operator){ .name = k->name, .arch = k->arch, .hip = k->hip,
		.about = arena_strf(k->a, "%s from a plan for %s", k->p->name, k->plan->device->name) };
	for (int i = 0; i < k->nsizes; i++) {
		const struct axis *x = &k->p->axes.v[k->sizes[i]];

		if (x->like != NONE) {
			number[i] = number[k->size_of[x->like]];
			continue;
		}
		number[i] = out->sizes.n;
		VEC_PUSH(k->a, &out->sizes, ((struct torch_size){ export_python_name(k->a, x->name), x->size, x->multiple }));
	}
	for (int i = 0; i < k->ninputs + k->noutputs; i++) {
		struct torch_tensor t;

		describe_tensor(k, number, k->tensors[i], i >= k->ninputs, &t);
		VEC_PUSH(k->a, &out->tensors, t);
	}
	for (int i = k->ninputs + k->noutputs; i < k->ntensors; i++) {
		struct torch_temporary t = { .known = known_bytes(k, k->tensors[i]) };
		uint64_t bits;

		(void)export_product(k, k->tensors[i], ~0u, 1, &bits);
		for (int s = 0; s < k->nsizes; s++)
			t.times[number[s]] += bits >> s & 1;	/* several may be like one */
		VEC_PUSH(k->a, &out->temporaries, t);
	}
	VEC_PUSH(k->a, &out->sources, arena_strf(k->a, "%s.c", k->name));
}

/* Add the launcher of a kernel to the package's folder. */
static enum err_code put_operator(const struct built *b, const char *name, const char *folder, struct arena *a,
	struct export_set *out, struct torch_operator *op, struct err *e)
{
	struct buf python = buf_new(a);
	struct export_set files;
	struct export_kit k;

	export_begin(&k, b, name, a, &files);
	TRY(put_files(&k, b, folder ? folder : arena_strf(a, "%s/", k.name), false, &python, e));
	describe(&k, op);
	for (int i = 0; i < files.files.n; i++)
		VEC_PUSH(a, &out->files, files.files.v[i]);
	return OK;
}

enum err_code export_gpu_torch(const struct export_torch_kernel *x, const char *name, struct arena *a, struct export_set *out,
	struct err *e)
{
	struct torch_operator op, gradient;
	struct torch_backward backward = { .op = &gradient };

	*out = (struct export_set){ .files = { 0 } };
	TRY(put_operator(x->kernel, name, NULL, a, out, &op, e));
	if (!x->backward)
		return export_torch(&op, NULL, a, out, e);
	TRY(put_operator(x->backward, arena_strf(a, "%s_backward", op.name), arena_strf(a, "%s/", op.name), a, out, &gradient, e));
	for (int i = 0; i < x->npairs; i++) {
		struct torch_pair pair = { export_python_name(a, x->pairs[i].of), export_python_name(a, x->pairs[i].is) };

		if (x->pairs[i].gradient)
			VEC_PUSH(a, &backward.gradients, pair);
		else
			VEC_PUSH(a, &backward.saved, pair);
	}
	return export_torch(&op, &backward, a, out, e);
}

enum err_code export_gpu_torch_sequence(const struct export_torch_sequence *x, struct arena *a, struct export_set *out,
	struct err *e)
{
	static const enum torch_role roles[] = { TORCH_INPUT, TORCH_CHANGED, TORCH_OUTPUT };
	const char *folder = arena_strf(a, "%s/", x->name), *texts[] = { x->header, x->launcher };
	struct torch_operator op = { .name = x->name, .about = x->about };

	*out = (struct export_set){ .files = { 0 } };
	VEC_PUSH(a, &op.sources, arena_strf(a, "%s.c", x->name));
	for (int i = 0; i < x->nkernels; i++) {
		struct torch_operator kernel;

		TRY(put_operator(x->kernels[i], x->names[i], folder, a, out, &kernel, e));
		VEC_PUSH(a, &op.sources, kernel.sources.v[0]);
		op.arch = kernel.arch;
		op.hip = kernel.hip;
	}
	for (int i = 0; i < 2; i++)
		VEC_PUSH(a, &out->files, ((struct export_file){ arena_strf(a, "%s%s.%c", folder, x->name, "hc"[i]), texts[i],
			strlen(texts[i]) }));
	for (int i = 0; i < x->ntensors; i++) {
		const struct export_torch_tensor *t = &x->tensors[i];
		struct torch_tensor made = { .name = t->name, .role = roles[t->role], .type = t->type, .rank = t->rank };

		for (int d = 0; d < t->rank; d++)
			made.dims[d] = (struct torch_dimension){ t->shape[d], t->size_of[d] };
		VEC_PUSH(a, &op.tensors, made);
	}
	for (int i = 0; i < x->nsizes; i++)
		VEC_PUSH(a, &op.sizes, ((struct torch_size){ x->sizes[i].name, x->sizes[i].max, x->sizes[i].multiple }));
	VEC_PUSH(a, &op.temporaries, (struct torch_temporary){ .known = x->temporaries });
	return export_torch(&op, NULL, a, out, e);
}
