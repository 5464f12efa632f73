#include "run/export_kit.h"

#include <errno.h>
#include <string.h>

#include "base/files.h"
#include "plan/cluster.h"
#include "plan/sized.h"

/* identifiers -------------------------------------------------------------- */

static bool listed(const char *name, const char *const *list, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

/* Names that neither a parameter of run() nor a module may have. */
const char *export_python_name(struct arena *a, const char *name)
{
	static const char *const words[] = { "False", "None", "True", "and", "as", "assert", "async", "await", "break",
		"class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
		"import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
		"with", "yield", "_addresses", "_call", "early", "out", "sizes", "torch" };

	return listed(name, words, LEN(words)) ? arena_strf(a, "%s_", name) : name;
}

static const char *identifier(struct arena *a, const char *name)
{
	/* modules that the exported one imports, itself or by torch, and must not hide */
	static const char *const modules[] = { "collections", "ctypes", "heapq", "os", "sys",
		"threading", "torch", "math", "types", "typing", "numpy" };
	char *s = arena_strdup(a, name);

	for (char *c = s; *c; c++)
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9'))
			*c = '_';
	if (!*s || (*s >= '0' && *s <= '9'))
		s = arena_strf(a, "k%s", s);
	return listed(s, modules, LEN(modules)) ? arena_strf(a, "%s_", s) : export_python_name(a, s);
}

/* tensors ------------------------------------------------------------------ */

static int add_role(struct export_kit *k, enum tensor_role role)
{
	int n = k->ntensors;

	for (int i = 0; i < k->p->tensors.n; i++)
		if (k->p->tensors.v[i].role == role)
			k->tensors[k->ntensors++] = i;
	return k->ntensors - n;
}

int export_number(const struct export_kit *k, int tensor)
{
	for (int i = 0; i < k->ntensors; i++)
		if (k->tensors[i] == tensor)
			return i;
	BUG("there is no tensor %d", tensor);
}

int64_t export_bytes(const struct export_kit *k, int tensor)
{
	return (int64_t)dtype_bytes(k->p->tensors.v[tensor].type, (size_t)tensor_elements(k->p, tensor));
}

int64_t export_product(const struct export_kit *k, int tensor, unsigned dims, int64_t factor, uint64_t *sizes)
{
	const struct tensor *t = &k->p->tensors.v[tensor];

	*sizes = 0;
	for (int d = 0; d < t->rank; d++) {
		int size = k->size_of[t->dim[d]];

		if (dims >> d & 1 && size == NONE)
			factor *= k->p->axes.v[t->dim[d]].size;
		else if (dims >> d & 1)
			*sizes |= (uint64_t)1 << size;
	}
	return factor;
}

const char *export_shape(const struct export_kit *k, int tensor)
{
	const struct tensor *t = &k->p->tensors.v[tensor];
	struct buf b = buf_new(k->a);

	buf_printf(&b, "%s %s", dtype_name(t->element), t->name);
	for (int d = 0; d < t->rank; d++) {
		const struct axis *x = &k->p->axes.v[tensor_declared_axis(t, d)];

		buf_printf(&b, x->multiple ? "[%s]" : "[%s=%lld]", x->like != NONE ? k->p->axes.v[x->like].name :
			x->name,
			(long long)x->size);
	}
	if (t->by_address)
		buf_printf(&b, ", by the addresses of its %lld parts", (long long)k->p->axes.v[t->dim[0]].size);
	if (dtype_bits(t->element) < 8)
		buf_puts(&b, ", two to a byte, even indices low");
	return b.text;
}

/* files -------------------------------------------------------------------- */

bool export_launches_early(const struct built *b)
{
	return b->backend == BACKEND_CUDA && b->phases[0].source.waits;
}

void export_begin(struct export_kit *k, const struct built *b, const char *name,
	struct arena *a, struct export_set *out)
{
	const struct plan *plan = b->plan;
	const struct program *p = plan->graph->program;

	*out = (struct export_set){ .files = { 0 } };
	*k = (struct export_kit){ .a = a, .plan = plan, .p = p, .out = out, .hip = b->backend == BACKEND_HIP,
		.early = export_launches_early(b) };
	k->name = identifier(a, name ? name : p->name);
	for (int i = 0; i < p->axes.n; i++) {
		const struct axis *x = &p->axes.v[i];

		k->size_of[i] = x->multiple ? k->nsizes : NONE;
		if (x->multiple)
			k->sizes[k->nsizes++] = i;
	}
	k->tensors = ARENA_ARRAY(a, p->tensors.n, int);
	k->ninputs = add_role(k, TENSOR_INPUT);
	k->noutputs = add_role(k, TENSOR_OUTPUT);
	add_role(k, TENSOR_TEMP);
	export_word(k, "NAME", k->name);
	export_word(k, "PROGRAM", p->name);
	export_word(k, "DEVICE", plan->device->name);
	k->arch = built_arch(b);
	export_word(k, "ARCH", k->arch);
}

const char *export_stem(const struct export_kit *k, int phase)
{
	return k->p->phases.n == 1 ? k->name : arena_strf(k->a, "%s_%s", k->name, k->p->phases.v[phase].name);
}

void export_word(struct export_kit *k, const char *word, const char *text)
{
	VEC_PUSH(k->a, &k->words, ((struct export_word){ word, text }));
}

void export_integer(struct export_kit *k, const char *word, int64_t value)
{
	export_word(k, word, arena_strf(k->a, "%lld", (long long)value));
}

void export_add(struct export_kit *k, const char *name, const char *text, size_t len)
{
	VEC_PUSH(k->a, &k->out->files, ((struct export_file){ name, text, len }));
}

/* The text of the word that begins with '@' at s, and its length in the template. */
static const char *word_at(const struct export_kit *k, const char *s, size_t *len)
{
	size_t letters = strspn(s + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

	if (!letters || s[letters + 1] != '@') {
		*len = 1;
		return "@";
	}
	for (int i = 0; i < k->words.n; i++) {
		size_t n = strlen(k->words.v[i].word);

		if (!strncmp(s + 1, k->words.v[i].word, n) && s[n + 1] == '@') {
			*len = n + 2;
			return k->words.v[i].text;
		}
	}
	BUG("no template has the word %.40s", s);
}

const char *export_template_text(const char *name)
{
	const struct export_template *t = export_templates;

	while (t->name && strcmp(t->name, name))
		t++;
	if (!t->name)
		BUG("there is no template %s", name);
	return t->text;
}

static bool in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* What is said instead of the name at s; NULL: none begins there. */
static const char *name_at(const struct export_kit *k, const char *text, const char *s, size_t *len)
{
	for (const char *const (*n)[2] = k->names->names; (*n)[0]; n++) {
		*len = strlen((*n)[0]);
		if (!strncmp(s, (*n)[0], *len) && !(in_name(*s) && s > text && in_name(s[-1])) &&
		    !(in_name(s[*len - 1]) && in_name(s[*len])))
			return (*n)[1];
	}
	return NULL;
}

const char *export_named(const struct export_kit *k, const char *text)
{
	struct buf b = buf_new(k->a);

	if (!k->names || !k->names->names[0][0])
		return text;
	for (const char *s = text; *s; ) {
		size_t len;
		const char *name = name_at(k, text, s, &len);

		if (name)
			buf_puts(&b, name);
		else
			buf_putc(&b, *s);
		s += name ? len : 1;
	}
	return b.text;
}

/* If a line's condition is at s, its length, and whether it holds; else 0. */
static size_t condition_at(const struct export_kit *k, const char *s, bool *holds)
{
	bool dynamic = k->plan && k->plan->grid.dynamic, chiplets = k->plan && k->plan->grid.chiplets > 1;
	bool temps = k->ntensors > k->ninputs + k->noutputs;
	const struct { const char *word; bool holds; } conditions[] = { { "@ANY@", k->nsizes > 0 },
		{ "@FIXED@", !k->nsizes }, { "@CUDA@", k->names && !k->hip }, { "@HIP@", k->hip },
		{ "@EARLY@", k->early }, { "@LATE@", !k->early }, { "@BETWEEN@", temps }, { "@WRAPPED@", temps || k->early },
		{ "@PLAIN@", !temps && !k->early }, { "@COUNTED@", dynamic },
		{ "@UNCOUNTED@", !dynamic }, { "@TABLED@", !k->nsizes && !dynamic },
		{ "@CHIPLETS@", chiplets }, { "@ROUND@", !chiplets },
		{ "@GRADIENT@", k->gradient }, { "@WITHOUT@", !k->gradient } };

	for (int i = 0; i < LEN(conditions); i++) {
		*holds = conditions[i].holds;
		if (!strncmp(s, conditions[i].word, strlen(conditions[i].word)))
			return strlen(conditions[i].word);
	}
	return 0;
}

static struct buf filled(const struct export_kit *k, const char *template)
{
	struct buf b = buf_new(k->a);
	const char *s, *at;
	bool holds;
	size_t len;

	for (s = export_named(k, export_template_text(template)); (at = strchr(s, '@')); s = at + len) {
		buf_putn(&b, s, (size_t)(at - s));
		len = condition_at(k, at, &holds);
		if (len)
			len = holds ? len : strcspn(at, "\n") + 1;
		else
			buf_puts(&b, word_at(k, at, &len));
	}
	buf_puts(&b, s);
	return b;
}

void export_fill(struct export_kit *k, const char *name, const char *template)
{
	struct buf b = filled(k, template);

	export_add(k, name, b.text, b.len);
}

const char *export_size_parameters(const struct export_kit *k)
{
	struct buf b = buf_new(k->a);

	for (int i = 0; i < k->nsizes; i++)
		if (k->p->axes.v[k->sizes[i]].like == NONE)
			buf_printf(&b, "%sint size_%s", i ? ", " : "", k->p->axes.v[k->sizes[i]].name);
	return b.text;
}

void export_size_words(struct export_kit *k)
{
	struct buf tuple = buf_new(k->a), ranges = buf_new(k->a), text = buf_new(k->a), by = buf_new(k->a);
	struct buf python = buf_new(k->a), load = buf_new(k->a), likes = buf_new(k->a), names = buf_new(k->a);

	for (int i = 0; i < k->nsizes; i++) {
		const struct axis *x = &k->p->axes.v[k->sizes[i]];
		const char *like = x->like != NONE ? k->p->axes.v[x->like].name : NULL;

		buf_printf(&tuple, "%ssize_%s", i ? ", " : "", like ? like : x->name);
		buf_printf(&ranges, "%s{ \"%s\", %lld, %lld }", i ? ", " : "", x->name, (long long)x->size,
			(long long)x->multiple);
		if (!like)
			buf_printf(&names, "%ssize_%s", i ? ", " : "", x->name);
		if (!like)
			buf_printf(&text, "%s%s from 1 to %lld", i ? "; " : "", x->name, (long long)x->size);
		buf_printf(&likes, "%s{ \"%s\", %lld, %lld, %d }", i ? ", " : "", x->name, (long long)x->size,
			(long long)x->multiple, like ? k->size_of[x->like] : -1);
		if (!like)
			buf_printf(&load, "%s%s=...", i ? ", " : "", x->name);
		if (!like && x->multiple > 1)
			buf_printf(&text, ", a multiple of %lld", (long long)x->multiple);
		buf_printf(&python, "\n    Size(\"%s\", %lld, %lld, ", x->name, (long long)x->size,
			(long long)x->multiple);
		buf_printf(&python, like ? "\"%s\")," : "None),", like);
	}
	for (int i = 0; i < k->ntensors; i++) {
		uint64_t bits;

		(void)export_product(k, k->tensors[i], ~0u, 1, &bits);
		buf_printf(&by, "%s%llu", i ? ", " : "", (unsigned long long)bits);
	}
	export_word(k, "OUTPUTS_AT", k->nsizes ? "at.outputs" : "OUTPUTS");
	export_word(k, "TEMPS_AT", k->nsizes ? "at.temps" : "_TEMPS");
	export_word(k, "SIZES_TOO", k->nsizes ? ", sizes" : "");
	export_word(k, "BLOCKS", k->nsizes ? "t->grid[i]" : "p->grid");
	export_word(k, "COUNTER_TOO", k->plan->grid.dynamic ? ", counter" : "");
	export_word(k, "GRID", k->nsizes ? "grid" : "p[\"grid\"]");
	export_word(k, "FIRSTSIZE", k->nsizes ? k->p->axes.v[k->sizes[0]].name : "");
	export_word(k, "LOADSIZES", load.text);
	export_integer(k, "NSIZES", k->nsizes);
	export_word(k, "SIZETUPLE", tuple.text);
	export_word(k, "SIZENAMES", names.text);
	export_word(k, "RANGES", ranges.text);
	export_word(k, "RANGESLIKE", likes.text);
	export_word(k, "RANGETEXT", text.text);
	export_word(k, "TENSORBY", by.text);
	export_word(k, "SIZES", python.text);
	export_word(k, "C_SIZES", export_size_parameters(k));
	export_integer(k, "NCHIPLETS", k->plan->grid.chiplets);
	export_word(k, "TILES", k->nsizes ? filled(k, "tiles.c").text : "");
}

void export_numbers(struct buf *out, const int64_t *v, int64_t n, const char *indent)
{
	size_t line = out->len;

	for (int64_t i = 0; i < n; i++) {
		if (out->len - line > 80) {
			buf_printf(out, "\n%s", indent);
			line = out->len;
		}
		buf_printf(out, "%lld%s", (long long)v[i], i + 1 == n ? "" : ",");
		if (i + 1 < n && out->len - line <= 80)
			buf_putc(out, ' ');
	}
}

const char *export_param_text(const struct export_kit *k, const struct param *x)
{
	const char *name = k->p->tensors.v[x->tensor].name;

	return x->kind == PARAM_MAP ? arena_strf(k->a, "%s, by %s", name, k->plan->graph->tasks.v[x->task].name) : name;
}

static void put_tiles(struct export_tables *t, const char *what, const char *phase, const int64_t *v, int64_t n)
{
	buf_printf(&t->params, "static const int %s_%s[%lld];\n", what, phase, (long long)n);
	buf_printf(&t->data, "static const int %s_%s[%lld] = {\n\t", what, phase, (long long)n);
	export_numbers(&t->data, v, n, "\t");
	buf_printf(&t->data, "\n};\n%s", t->gap);
}

void export_find_groups(const struct export_kit *k, int phase, struct export_groups *out)
{
	struct plan alone = *k->plan;	/* on one cluster: all tiles in their order */
	struct cluster c = plan_cluster(k->plan, phase);
	struct tile_assignment d;

	alone.grid.eus = c.size;
	plan_assign_tiles(k->a, &alone, phase, &d);
	*out = (struct export_groups){ .n = d.start[1] - d.start[0], .first = d.order, .grid =
		k->plan->graph->grids[phase],
		.cluster = c.size, .along = NONE, .blocks = plan_eus(k->plan, phase) };
	for (int i = 0; i < out->grid.n; i++)
		if (c.size > 1 && out->grid.axis[i] == c.axis)
			out->along = i;
	if (k->plan->grid.longest_first)
		out->work = ARENA_ARRAY(k->a, out->n, int64_t);
	for (int64_t i = 0; out->work && i < out->n; i++)
		out->work[i] = tile_iterations(k->plan->graph, phase, out->first[i]);
}

static void put_groups(const struct export_kit *k, struct export_tables *t, int phase, struct tile_assignment *tiles)
{
	const char *name = k->p->phases.v[phase].name;
	struct export_groups g;

	export_find_groups(k, phase, &g);
	put_tiles(t, "first", name, g.first, g.n);
	if (g.work)
		put_tiles(t, "work", name, g.work, g.n);
	buf_printf(&t->params, "static const struct dimension dims_%s[%d] = {", name, (int)max_i64(g.grid.n, 1));
	for (int i = 0; i < g.grid.n; i++) {
		int axis = g.grid.axis[i];

		buf_printf(&t->params, " { %lld, %lld, %d },", (long long)g.grid.tiles[i],
			(long long)k->plan->graph->extents.tile[axis], k->size_of[axis]);
	}
	if (!g.grid.n)
		buf_puts(&t->params, " { 1, 1, -1 },");
	buf_printf(&t->params, " };\n");
	buf_printf(&t->params,
		"static const struct grid grid_%s = { first_%s, %s, %lld, dims_%s, %d, %d, %d, %d };\n", name, name,
		g.work ? arena_strf(k->a, "work_%s", name) : "0", (long long)g.n, name, (int)max_i64(g.grid.n, 1),
			g.cluster,
		g.along, g.blocks);
	*tiles = (struct tile_assignment){ .eus = g.blocks, .cluster = g.cluster, .total = g.n * g.cluster };
}

void export_phase(const struct export_kit *k, const struct source *s, int phase, export_map_fn *put_map,
	struct export_tables *t, struct tile_assignment *tiles)
{
	const char *name = k->p->phases.v[phase].name;

	t->params_most = (int)max_i64(t->params_most, s->params.n);
	buf_printf(&t->params, "static const struct param params_%s[%d] = {\n", name, s->params.n);
	for (int i = 0; i < s->params.n; i++) {
		const struct param *x = &s->params.v[i];

		if (x->kind == PARAM_POINTER)
			buf_printf(&t->params, "\t{ .kind = POINTER, .tensor = %d },\t/* %s */\n",
				export_number(k, x->tensor), export_param_text(k, x));
		else if (x->kind == PARAM_MAP)
			put_map(k, x, &t->params);
		else if (x->kind == PARAM_TRACE)
			BUG("a traced kernel is not exported");
		else if (x->kind == PARAM_SIZE)
			buf_printf(&t->params, "\t{ .kind = SIZE, .tensor = %d },\t/* %s */\n", k->size_of[x->axis],
				k->p->axes.v[x->axis].name);
		else
			buf_printf(&t->params, "\t{ .kind = %s },\n", x->kind == PARAM_ORDER ? "ORDER" : "START");
	}
	buf_puts(&t->params, "};\n");
	if (k->nsizes) {
		put_groups(k, t, phase, tiles);
		return;
	}
	plan_launch_tiles(k->a, k->plan, phase, tiles);
	put_tiles(t, "order", name, tiles->order, tiles->total);
	if (!k->plan->grid.dynamic)	/* else the launcher has a counter instead */
		put_tiles(t, "start", name, tiles->start, tiles->eus + 1);
}

enum err_code export_write(const struct export_set *set, const char *dir, struct arena *a, struct err *e)
{
	for (int i = 0; i < set->files.n && !files_discard; i++) {
		const struct export_file *f = &set->files.v[i];
		char *path = arena_strf(a, "%s/%s", dir, f->name);

		if (!make_folders(path))
			return err_set(e, ERR_IO, NOWHERE, "export: cannot make the folder '%.300s': %s", path,
				strerror(errno));
		if (!replace_file(path, f->text, f->len))
			return err_set(e, ERR_IO, NOWHERE, "export: cannot write '%.300s': %s", path, strerror(errno));
	}
	return OK;
}
