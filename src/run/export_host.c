/* A kernel for the CPU as files: its text, the runtime, and a driver to run and debug it. */
#include "run/export_kit.h"

#include <string.h>

static void put_list(struct buf *out, const char *what, const int64_t *v, int n)
{
	buf_printf(out, ", .%s = { ", what);
	export_numbers(out, v, n, "\t\t");
	buf_puts(out, " }");
}

static void put_map(const struct export_kit *k, const struct param *x, struct buf *out)
{
	struct host_map m = on_host_map(k->p, x);

	buf_printf(out, "\t/* %s */\n\t{ .kind = MAP, .tensor = %d, .map = {\n\t\t.rank = %d, .element_bytes = %d, "
		".swizzle = %d%s", export_param_text(k, x), export_number(k, x->tensor), m.rank, m.element_bytes, m.swizzle,
		m.integer ? ", .integer = 1" : "");
	put_list(out, "dim", m.dim, m.rank);
	put_list(out, "box", m.box, m.rank);
	put_list(out, "stride", m.stride, m.rank);
	buf_puts(out, " } },\n");
}

/* ... of known factors, and bits of sizes that are to be multiplied by. */
static void put_map_by(const struct export_kit *k, const struct param *x, struct buf *out)
{
	struct host_map m = on_host_map(k->p, x);
	int64_t dim_by[RANK_MAX], stride_by[RANK_MAX];
	uint64_t bits;

	for (int i = 0; i < m.rank; i++) {
		m.dim[i] = export_product(k, x->tensor, x->dim_of[i], x->dim_factor[i], &bits);
		dim_by[i] = (int64_t)bits;
		m.stride[i] = export_product(k, x->tensor, x->stride_of[i], m.element_bytes * x->stride_factor[i],
			&bits);
		stride_by[i] = (int64_t)bits;
	}
	buf_printf(out, "\t/* %s */\n\t{ .kind = MAP, .tensor = %d, .map = {\n\t\t.rank = %d, .element_bytes = %d, "
		".swizzle = %d%s", export_param_text(k, x), export_number(k, x->tensor), m.rank, m.element_bytes,
			m.swizzle,
		m.integer ? ", .integer = 1" : "");
	put_list(out, "dim", m.dim, m.rank);
	put_list(out, "box", m.box, m.rank);
	put_list(out, "stride", m.stride, m.rank);
	buf_puts(out, " }");
	put_list(out, "dim_by", dim_by, m.rank);
	put_list(out, "stride_by", stride_by, m.rank);
	buf_puts(out, " },\n");
}

static void put_phase(struct export_kit *k, const struct source *s, int i, struct export_tables *t,
	struct buf *objects, struct buf *rules)
{
	const char *name = k->p->phases.v[i].name, *stem = export_stem(k, i);
	struct tile_assignment d;

	buf_printf(&t->params, "host_run_function run_%s;\n", s->entry);
	export_phase(k, s, i, k->nsizes ? put_map_by : put_map, t, &d);
	if (k->nsizes)
		buf_printf(&t->phases, "\t{ run_%s, %d, %d, %d, %lld, params_%s, %d, &grid_%s },\n", s->entry, d.eus,
			s->cluster,
			s->threads, (long long)s->shared_bytes, name, s->params.n, name);
	else
		buf_printf(&t->phases, "\t{ run_%s, %d, %d, %d, %lld, params_%s, %d, order_%s%s },\n", s->entry, d.eus,
			s->cluster, s->threads, (long long)s->shared_bytes, name, s->params.n, name,
			k->plan->grid.dynamic ? "" : arena_strf(k->a, ", start_%s", name));
	buf_printf(objects, "%s%s_kernel.o", i ? " " : "", stem);
	/* -D, because each text defines the same function; -w, because generated text has warnings */
	buf_printf(rules, "%s_kernel.o: %s_kernel.c\n\t$(CC) $(CFLAGS) $(FLAGS) -w -D%s=run_%s -c -o $@ $<\n", stem,
		stem, HOST_RUN_SYMBOL, s->entry);
	export_add(k, arena_strf(k->a, "%s_kernel.c", stem), s->text.text, s->text.len);
}

static void put_tensors(struct export_kit *k)
{
#define X(id, name, bits, e, m) { e, m },
	static const struct { int exponent, mantissa; } bits[DT_COUNT] = { DTYPES(X) };	/* of floats; else 0 */
#undef X
	static const char *const roles[] = { "INPUT", "OUTPUT", "TEMPORARY" };	/* ORDER tensor_role */
	struct buf table = buf_new(k->a), list = buf_new(k->a);

	for (int i = 0; i < k->ntensors; i++) {
		const struct tensor *t = &k->p->tensors.v[k->tensors[i]];
		const char *shape = export_shape(k, k->tensors[i]);
		uint64_t by;

		buf_printf(&table, "\t{ \"%s\", %s, %lld, %d, %d, %d, \"%s\" },\n", t->name,
			roles[t->role], (long long)export_product(k, k->tensors[i], ~0u, 1, &by) * dtype_bits(t->type) /
			dtype_bits(t->element), dtype_bits(t->element), bits[t->element].exponent,
			bits[t->element].mantissa, shape);
		if (t->role != TENSOR_TEMP)
			buf_printf(&list, "%s *	%s %s", i ? "\n" : "", t->role == TENSOR_INPUT ? "in " : "out", shape);
	}
	export_word(k, "TENSORTABLE", table.text);
	export_word(k, "TENSORS", list.text);
}

void export_host(const struct built *b, const char *name, struct arena *a, struct export_set *out)
{
	struct export_tables t = { buf_new(a), buf_new(a), buf_new(a), "", 0 };
	const struct target *target = target_of(b->plan->device);
	struct buf objects = buf_new(a), rules = buf_new(a);
	struct export_kit k;

	export_begin(&k, b, name, a, out);
	for (int i = 0; i < b->nphases; i++)
		put_phase(&k, &b->phases[i].source, i, &t, &objects, &rules);
	put_tensors(&k);
	export_size_words(&k);
	export_word(&k, "ENTRY", b->phases[b->nphases - 1].source.entry);
	export_word(&k, "FORKNOTE", b->nphases == 1 ? "" : " Phases\n * before the last run in a "
		"process of their own: `set follow-fork-mode child`.");
	export_integer(&k, "NTENSORS", k.ntensors);
	export_integer(&k, "NPHASES", b->nphases);
	export_integer(&k, "WARP", target->warp);
	export_integer(&k, "GROUP", target->warp * target->group);
	export_integer(&k, "PARAMS_MOST", t.params_most);
	export_word(&k, "TABLES", t.params.text);
	export_word(&k, "PHASES", t.phases.text);
	export_word(&k, "DATA", t.data.text);
	export_word(&k, "OBJECTS", objects.text);
	export_word(&k, "RULES", rules.text);
	export_fill(&k, arena_strf(a, "%s_host.c", k.name), "host.c");
	export_fill(&k, arena_strf(a, "%s_host.mk", k.name), "host.mk");
	for (const struct export_template *r = export_templates; r->name; r++)
		if (!strncmp(r->name, "rt", 2) || !strcmp(r->name, "millrace_host.h"))
			export_add(&k, arena_strf(a, "millrace/host/%s", r->name), r->text, r->len);
}
