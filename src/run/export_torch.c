/* A package of PyTorch operators: the tables of operators.c and of the Python module. */
#include "run/export_torch.h"

#include <string.h>

const char *torch_type(enum dtype t)
{
	static const char *const types[DT_COUNT] = {
		[DT_F64] = "float64", [DT_F32] = "float32", [DT_TF32] = "float32",
		[DT_F16] = "float16", [DT_BF16] = "bfloat16", [DT_E4M3] = "float8_e4m3fn",
		[DT_E5M2] = "float8_e5m2", [DT_I32] = "int32", [DT_I8] = "int8",
		[DT_E8M0] = "float8_e8m0fnu", [DT_U8] = "uint8", [DT_BOOL] = "bool",
	};

	return types[t] ? types[t] : "uint8";	/* two elements a byte */
}

/* An operator, and what follows from its description. */
struct package {
	struct arena *a;
	const struct torch_operator *op;
	const struct torch_backward *backward;
	/* of `op`, and of its backward operator: */
	VEC(const char *) inputs;	/* ("in", 0): where the backward operator's inputs come from */
	VEC(int) gradients;		/* the argument of which each of its outputs is the gradient */
};

/* One of the tensors that the caller gives has it. */
static bool size_is_seen(const struct torch_operator *op, int size)
{
	for (int i = 0; i < op->tensors.n; i++)
		for (int d = 0; d < op->tensors.v[i].rank; d++)
			if (op->tensors.v[i].role != TORCH_OUTPUT && op->tensors.v[i].dims[d].of == size)
				return true;
	return false;
}

/* schemas ------------------------------------------------------------------- */

/* The parameters of an operator, in the order of its stack (take() in torch.c): with types of the schema, or names alone. */
static const char *parameters(struct arena *a, const struct torch_operator *op, bool into, bool typed)
{
	struct buf b = buf_new(a);
	int mutated = 0;

	for (int pass = 0; pass < 3; pass++) {
		for (int i = 0; i < op->tensors.n && pass != 1; i++) {
			const struct torch_tensor *t = &op->tensors.v[i];

			if ((t->role == TORCH_OUTPUT) != (pass == 2) || (pass == 2 && !into))
				continue;
			buf_puts(&b, b.len ? ", " : "");
			if (typed && t->role == TORCH_INPUT)
				buf_puts(&b, "Tensor ");
			else if (typed)
				buf_printf(&b, mutated < 26 ? "Tensor(%c!) " : "Tensor(%c%d!) ", 'a' + mutated % 26, mutated / 26);
			mutated += typed && t->role != TORCH_INPUT;
			buf_puts(&b, t->name);
		}
		for (int i = 0; i < op->sizes.n && pass == 1; i++)
			if (!size_is_seen(op, i))
				buf_printf(&b, "%s%s%s", b.len ? ", " : "", typed ? "int " : "", op->sizes.v[i].name);
	}
	return b.text;
}

static const char *schema(struct arena *a, const struct torch_operator *op, const char *ending, bool into)
{
	struct buf results = buf_new(a);

	for (int i = 0; i < op->tensors.n && !into; i++)
		if (op->tensors.v[i].role == TORCH_OUTPUT)
			buf_printf(&results, "%sTensor", results.len ? ", " : "");
	return arena_strf(a, strchr(results.text, ',') || !results.len ? "%s%s(%s) -> (%s)" : "%s%s(%s) -> %s", op->name,
		ending, parameters(a, op, into, true), results.text);
}

/* the table in C ------------------------------------------------------------ */

static const char *bytes_of(struct arena *a, const struct torch_temporary *t, int nsizes)
{
	struct buf b = buf_new(a);

	buf_printf(&b, "PADDED((int64_t)%lld", (long long)t->known);
	for (int i = 0; i < nsizes; i++)
		for (int n = 0; n < t->times[i]; n++)
			buf_printf(&b, " * sizes[%d]", i);
	buf_puts(&b, ")");
	return b.text;
}

static void put_launch(struct arena *a, const struct torch_operator *op, struct buf *out)
{
	struct buf sizes = buf_new(a);

	for (int i = 0; i < op->sizes.n; i++)
		buf_printf(&sizes, "%ssizes[%d]", i ? ", " : "", i);
	if (op->temporaries.n) {
		buf_printf(out, "static int64_t workspace_%s(const int *sizes)\n{\n\t(void)sizes;\n\treturn 0", op->name);
		for (int i = 0; i < op->temporaries.n; i++)
			buf_printf(out, " + %s", bytes_of(a, &op->temporaries.v[i], op->sizes.n));
		buf_puts(out, ";\n}\n\n");
	}
	buf_printf(out, "static int launch_%s(void *stream, void *const *at, const int *sizes)\n{\n", op->name);
	if (op->temporaries.n)
		buf_printf(out, "\tvoid *between[%d] = { at[%d] };\n\n", op->temporaries.n, op->tensors.n);
	for (int i = 1; i < op->temporaries.n; i++)
		buf_printf(out, "\tbetween[%d] = (char *)between[%d] + %s;\n", i, i - 1,
			bytes_of(a, &op->temporaries.v[i - 1], op->sizes.n));
	buf_printf(out, "\t(void)sizes;\n\treturn %s_launch%s(%sstream", op->name, op->temporaries.n ? "_with" : "",
		op->temporaries.n ? "1, between, " : "");
	for (int i = 0; i < op->tensors.n; i++)
		buf_printf(out, ", at[%d]", i);
	buf_printf(out, "%s%s);\n}\n\n", op->sizes.n ? ", " : "", sizes.text);
}

static void put_operator(struct arena *a, const struct torch_operator *op, bool forward, struct buf *tables, struct buf *rows)
{
	static const char *const roles[] = { "INPUT", "CHANGED", "OUTPUT" };

	buf_printf(tables, "static const struct tensor tensors_%s[%d] = {\n", op->name, op->tensors.n);
	for (int i = 0; i < op->tensors.n; i++) {
		const struct torch_tensor *t = &op->tensors.v[i];

		buf_printf(tables, "\t{ \"%s\", %s, TYPE_%s, %d, {", t->name, roles[t->role], t->type, t->rank);
		for (int d = 0; d < t->rank; d++)
			buf_printf(tables, " { %lld, %d },", (long long)t->dims[d].size, t->dims[d].of);
		buf_puts(tables, t->rank ? " } },\n" : " { 0, -1 } } },\n");
	}
	buf_puts(tables, "};\n\n");
	if (op->sizes.n) {
		buf_printf(tables, "static const struct size sizes_%s[%d] = {\n", op->name, op->sizes.n);
		for (int i = 0; i < op->sizes.n; i++)
			buf_printf(tables, "\t{ \"%s\", %lld, %lld, %s },\n", op->sizes.v[i].name,
				(long long)op->sizes.v[i].max, (long long)op->sizes.v[i].multiple,
				size_is_seen(op, i) ? "false" : "true");
		buf_puts(tables, "};\n\n");
	}
	put_launch(a, op, tables);
	buf_printf(rows, "\t{ \"%s\",\n\t\t\"%s\",\n\t\t\"%s\",\n", op->name, schema(a, op, "", false),
		schema(a, op, "_out", true));
	buf_printf(rows, forward ? "\t\t\"%s\",\n" : "\t\t%s,\n", forward ? schema(a, op, "_forward", false) : "NULL");
	buf_printf(rows, "\t\ttensors_%s, %s, %d, %d,\n\t\t%s_load, %s, launch_%s, %s_error },\n", op->name,
		op->sizes.n ? arena_strf(a, "sizes_%s", op->name) : "NULL", op->tensors.n, op->sizes.n, op->name,
		op->temporaries.n ? arena_strf(a, "workspace_%s", op->name) : "NULL", op->name, op->name);
}

static void put_kernels(int n, struct buf *out)
{
	for (int i = 0; i < n; i++)
		for (int into = 0; into < 2; into++)
			buf_printf(out, "static void %s_%d(uint64_t *stack, uint64_t ninputs, uint64_t noutputs)\n{\n"
				"\t(void)ninputs;\n\t(void)noutputs;\n\tcall(&operators[%d], stack, %s);\n}\n\n",
				into ? "given" : "made", i, i, into ? "true" : "false");
	buf_puts(out, "/* They make their outputs, or are given them. */\nstatic const struct {\n\tboxed_kernel *made, *given;\n"
		"} kernels[OPERATORS] = {");
	for (int i = 0; i < n; i++)
		buf_printf(out, " { made_%d, given_%d },", i, i);
	buf_puts(out, " };\n");
}

/* the table in Python ------------------------------------------------------- */

static const char *python_shape(struct arena *a, const struct torch_operator *op, const struct torch_tensor *t)
{
	struct buf b = buf_new(a);

	for (int d = 0; d < t->rank; d++)
		if (t->dims[d].of == NONE)
			buf_printf(&b, "%s%lld", d ? ", " : "", (long long)t->dims[d].size);
		else
			buf_printf(&b, "%s\"%s\"", d ? ", " : "", op->sizes.v[t->dims[d].of].name);
	return arena_strf(a, t->rank == 1 ? "(%s,)" : "(%s)", b.text);
}

static void put_python(struct arena *a, const struct torch_operator *op, struct buf *out)
{
	static const char *const roles[] = { "in", "inout", "out" };

	buf_printf(out, "\n    \"%s\": Operator((", op->name);
	for (int i = 0; i < op->tensors.n; i++) {
		const struct torch_tensor *t = &op->tensors.v[i];

		buf_printf(out, "\n        Tensor(\"%s\", \"%s\", torch.%s, %s),", t->name, roles[t->role], t->type,
			python_shape(a, op, t));
	}
	buf_puts(out, "\n    ), (");
	for (int i = 0; i < op->sizes.n; i++)
		buf_printf(out, "\n        Size(\"%s\", %lld, %lld, %s),", op->sizes.v[i].name, (long long)op->sizes.v[i].max,
			(long long)op->sizes.v[i].multiple, size_is_seen(op, i) ? "False" : "True");
	buf_puts(out, op->sizes.n ? "\n    ))," : ")),");
}

static const char *python_backward(const struct package *p)
{
	struct buf b = buf_new(p->a);

	if (!p->backward)
		return "None";
	buf_printf(&b, "Backward(\"%s\", (", p->backward->op->name);
	for (int i = 0; i < p->inputs.n; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", p->inputs.v[i]);
	buf_puts(&b, p->inputs.n == 1 ? ",), (" : "), (");
	for (int i = 0; i < p->gradients.n; i++)
		buf_printf(&b, "%s%d", i ? ", " : "", p->gradients.v[i]);
	buf_puts(&b, p->gradients.n == 1 ? ",))" : "))");
	return b.text;
}

/* gradients ----------------------------------------------------------------- */

static const struct torch_tensor *find(const struct torch_operator *op, const char *name)
{
	for (int i = 0; i < op->tensors.n; i++)
		if (!strcmp(op->tensors.v[i].name, name))
			return &op->tensors.v[i];
	return NULL;
}

/* Its number among the tensors that are given (inputs), or among the others. */
static int position(const struct torch_operator *op, const struct torch_tensor *t)
{
	int n = 0;

	for (const struct torch_tensor *x = op->tensors.v; x < t; x++)
		n += (x->role == TORCH_OUTPUT) == (t->role == TORCH_OUTPUT);
	return n;
}

/* The name of the forward operator's tensor that `list` has for x; NULL: it has none. */
static const char *listed(const struct torch_pair *list, int n, const char *x)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(list[i].of, x))
			return list[i].is;
	return NULL;
}

static bool fits(const struct torch_operator *p, const struct torch_tensor *x, const struct torch_operator *q,
	const struct torch_tensor *y)
{
	bool same = x->rank == y->rank && !strcmp(x->type, y->type);

	for (int d = 0; d < x->rank && same; d++) {
		const struct torch_dimension *m = &x->dims[d], *n = &y->dims[d];

		same = (m->of == NONE) == (n->of == NONE) && (m->of == NONE ? m->size == n->size :
			p->sizes.v[m->of].max == q->sizes.v[n->of].max &&
			p->sizes.v[m->of].multiple == q->sizes.v[n->of].multiple);
	}
	return same;
}

static const char *shape_text(struct arena *a, const struct torch_operator *op, const struct torch_tensor *t)
{
	return arena_strf(a, "%s %s", t->type, python_shape(a, op, t));
}

/* What the tensor x of the backward operator is: a tensor of the forward one, or its gradient. */
static enum err_code find_meaning(const struct package *p, const struct torch_tensor *x, bool *gradient,
	const struct torch_tensor **out, struct err *e)
{
	const struct torch_backward *w = p->backward;
	const char *of = listed(w->gradients.v, w->gradients.n, x->name), *is = listed(w->saved.v, w->saved.n, x->name);

	*gradient = of || (!is && !find(p->op, x->name));
	if (*gradient && !of && x->name[0] == 'd')
		of = x->name + 1;
	*out = *gradient ? of ? find(p->op, of) : NULL : find(p->op, is ? is : x->name);
	if (!*out)
		return err_set(e, ERR_INPUT, NOWHERE, "export: '%s' of %s is neither a tensor of %s nor the gradient of one, which would "
			"be called d and its name; say which: gradients={%s=\"...\"} or saved={%s=\"...\"}", x->name, w->op->name,
			p->op->name, x->name, x->name);
	if (!fits(w->op, x, p->op, *out))
		return err_set(e, ERR_INPUT, NOWHERE, "export: '%s' of %s is %s, and '%s' of %s, %s, is %s", x->name, w->op->name,
			shape_text(p->a, w->op, x), (*out)->name, p->op->name, *gradient ? "of which it is the gradient" : "which it is",
			shape_text(p->a, p->op, *out));
	return OK;
}

static enum err_code check_lists(const struct torch_backward *w, const struct torch_pair *list, int n, const char *what,
	struct err *e)
{
	for (int i = 0; i < n; i++)
		if (!find(w->op, list[i].of))
			return err_set(e, ERR_INPUT, NOWHERE, "export: %s names '%s', which %s does not have", what, list[i].of,
				w->op->name);
	return OK;
}

static enum err_code check_backward(struct package *p, struct err *e)
{
	const struct torch_backward *w = p->backward;
	bool any = false;

	TRY(check_lists(w, w->gradients.v, w->gradients.n, "gradients", e));
	TRY(check_lists(w, w->saved.v, w->saved.n, "saved", e));
	for (int i = 0; i < p->op->tensors.n; i++)
		if (p->op->tensors.v[i].role == TORCH_CHANGED)
			return err_set(e, ERR_INPUT, NOWHERE, "export: %s changes '%s', so it can have no gradient",
				p->op->name, p->op->tensors.v[i].name);
	for (int i = 0; i < w->op->sizes.n; i++)
		if (!size_is_seen(w->op, i))
			return err_set(e, ERR_INPUT, NOWHERE, "export: no input of %s has its size '%s'", w->op->name,
				w->op->sizes.v[i].name);
	for (int i = 0; i < w->op->tensors.n; i++) {
		const struct torch_tensor *x = &w->op->tensors.v[i], *of;
		bool gradient;

		TRY(find_meaning(p, x, &gradient, &of, e));
		if (x->role == TORCH_INPUT && gradient && of->role != TORCH_OUTPUT)
			return err_set(e, ERR_INPUT, NOWHERE, "export: '%s', an input of %s, would be the gradient of '%s', which is no "
				"output of %s", x->name, w->op->name, of->name, p->op->name);
		if (x->role != TORCH_INPUT && (!gradient || of->role == TORCH_OUTPUT))
			return err_set(e, ERR_INPUT, NOWHERE, "export: '%s', an output of %s, must be the gradient of an input of %s",
				x->name, w->op->name, p->op->name);
		any |= x->role == TORCH_INPUT && gradient;
		if (x->role == TORCH_INPUT) {
			const char *kind = gradient ? "gradient" : of->role == TORCH_OUTPUT ? "out" : "in";

			VEC_PUSH(p->a, &p->inputs, arena_strf(p->a, "(\"%s\", %d)", kind, position(p->op, of)));
			continue;
		}
		for (int k = 0; k < p->gradients.n; k++)
			if (p->gradients.v[k] == position(p->op, of))
				return err_set(e, ERR_INPUT, NOWHERE, "export: %s has two gradients of '%s'", w->op->name, of->name);
		VEC_PUSH(p->a, &p->gradients, position(p->op, of));
	}
	if (!any)
		return err_set(e, ERR_INPUT, NOWHERE, "export: no input of %s is the gradient of an output of %s", w->op->name,
			p->op->name);
	return OK;
}

/* texts --------------------------------------------------------------------- */

static void put_readme(struct arena *a, const struct torch_operator *op, struct buf *out)
{
	static const char *const roles[] = { "in", "in and out", "out" };

	for (int i = 0; i < op->tensors.n; i++) {
		const struct torch_tensor *t = &op->tensors.v[i];

		buf_printf(out, "%s| %s | %s `%s` | %s |", out->len ? "\n" : "", i ? "" : arena_strf(a, "`%s`", op->name), roles[t->role],
			t->name, shape_text(a, op, t));
	}
	for (int i = 0; i < op->sizes.n; i++)
		buf_printf(out, "\n| | size `%s`%s | 1 to %lld, a multiple of %lld |", op->sizes.v[i].name,
			size_is_seen(op, i) ? "" : ", an argument", (long long)op->sizes.v[i].max,
			(long long)op->sizes.v[i].multiple);
}

static const char *result_names(struct arena *a, const struct torch_operator *op)
{
	struct buf b = buf_new(a);

	for (int i = 0; i < op->tensors.n; i++)
		if (op->tensors.v[i].role == TORCH_OUTPUT)
			buf_printf(&b, "%s%s", b.len ? ", " : "", op->tensors.v[i].name);
	return b.len ? b.text : "_";
}

static const char *needed(struct arena *a, const struct torch_operator *op)
{
	struct buf b = buf_new(a);

	for (int i = 0; i < op->tensors.n; i++)
		if (op->tensors.v[i].role != TORCH_OUTPUT)
			buf_printf(&b, "%s%s.requires_grad", b.len ? " or " : "", op->tensors.v[i].name);
	return b.text;
}

static const char *distribution(struct arena *a, const char *name)
{
	char *s = arena_strdup(a, name);

	for (char *c = s; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return s;
}

static void put_words(const struct package *p, struct export_kit *k)
{
	const struct torch_operator *ops[] = { p->op, p->backward ? p->backward->op : NULL };
	struct buf tables = buf_new(p->a), rows = buf_new(p->a), kernels = buf_new(p->a), includes = buf_new(p->a);
	struct buf python = buf_new(p->a), sources = buf_new(p->a), names = buf_new(p->a), readme = buf_new(p->a);
	int n = p->backward ? 2 : 1, tensors = 1, sizes = 1;

	buf_puts(&sources, "operators.c");
	buf_puts(&names, "\"operators.c\",");
	for (int i = 0; i < n; i++) {
		put_operator(p->a, ops[i], p->backward && !i, &tables, &rows);
		put_python(p->a, ops[i], &python);
		put_readme(p->a, ops[i], &readme);
		buf_printf(&includes, "#include \"%s.h\"\n", ops[i]->name);
		for (int s = 0; s < ops[i]->sources.n; s++) {
			buf_printf(&sources, " %s", ops[i]->sources.v[s]);
			buf_printf(&names, " \"%s\",", ops[i]->sources.v[s]);
		}
		tensors = (int)max_i64(tensors, ops[i]->tensors.n);
		sizes = (int)max_i64(sizes, ops[i]->sizes.n);
	}
	put_kernels(n, &kernels);
	export_word(k, "NAME", p->op->name);
	export_word(k, "ABOUT", p->op->about);
	export_word(k, "ARCH", p->op->arch);
	export_word(k, "DISTRIBUTION", distribution(p->a, p->op->name));
	export_word(k, "INCLUDES", includes.text);
	export_word(k, "TABLES", arena_strf(p->a, "%sstatic const struct operator operators[OPERATORS] = {\n%s};\n", tables.text,
		rows.text));
	export_word(k, "KERNELS", kernels.text);
	export_integer(k, "NOPERATORS", n);
	export_integer(k, "TENSORS_MOST", tensors);
	export_integer(k, "SIZES_MOST", sizes);
	export_word(k, "SOURCES", sources.text);
	export_word(k, "PYSOURCES", names.text);
	export_word(k, "OPERATORS", python.text);
	export_word(k, "BACKWARD", python_backward(p));
	export_word(k, "RESULTS", result_names(p->a, p->op));
	export_word(k, "CALL", parameters(p->a, p->op, false, false));
	export_word(k, "CALLOUT", parameters(p->a, p->op, true, false));
	export_word(k, "NEEDED", needed(p->a, p->op));
	export_word(k, "README_TABLE", readme.text);
	export_word(k, "DESCRIPTION", schema(p->a, p->op, "", false));
	export_word(k, "GRADIENTNOTE", p->backward ? "gradients are those of the backward operator." : "there is no gradient.");
	export_word(k, "GRADIENTTEXT", !p->backward ? "There is no gradient." : arena_strf(p->a, "The gradient of `%s` is `%s`. "
		"`%s.run(...)` is the same operator, but cheaper to call where nothing needs a gradient.", p->op->name,
		p->backward->op->name, p->op->name));
}

enum err_code export_torch(const struct torch_operator *op, const struct torch_backward *backward, struct arena *a,
	struct export_set *out, struct err *e)
{
	struct package p = { .a = a, .op = op, .backward = backward };
	struct export_kit k = { .a = a, .hip = op->hip, .gradient = backward != NULL, .out = out };
	bool any = false;

	for (int i = 0; i < op->tensors.n; i++)
		any |= op->tensors.v[i].role != TORCH_OUTPUT;
	if (!any)
		return err_set(e, ERR_INPUT, NOWHERE, "export: %s has no input, so a PyTorch operator would not know on which device to run",
			op->name);
	if (backward)
		TRY(check_backward(&p, e));
	k.names = export_names_of(op->hip);
	put_words(&p, &k);
	export_fill(&k, arena_strf(a, "%s/__init__.py", op->name), "torch_init.py");
	export_fill(&k, arena_strf(a, "%s/operators.c", op->name), "torch.c");
	export_fill(&k, "pyproject.toml", "torch_project.toml");
	export_fill(&k, "README.md", "torch_readme.md");
	return OK;
}
