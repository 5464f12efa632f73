/* A kernel for the CPU as files: its text, the runtime, and a driver to run and debug it. */
#include "run/export_kit.h"

#include <string.h>

#include "plan/assign.h"

struct table {
	struct buf params, phases, data, objects, rules;
	int params_most;
};

static void put_list(struct buf *out, const char *what, const int64_t *v, int n)
{
	buf_printf(out, ", .%s = { ", what);
	export_numbers(out, v, n, "\t\t");
	buf_puts(out, " }");
}

static void put_param(const struct export_kit *k, const struct param *x, struct buf *out)
{
	const char *name = x->tensor == NONE ? "" : k->p->tensors.v[x->tensor].name;
	struct host_map m;

	switch (x->kind) {
	case PARAM_POINTER:
		buf_printf(out, "\t{ .kind = POINTER, .tensor = %d },\t/* %s */\n", export_number(k, x->tensor), name);
		break;
	case PARAM_MAP:
		m = on_host_map(k->p, x);
		buf_printf(out, "\t/* %s, by %s */\n\t{ .kind = MAP, .tensor = %d, .map = {\n\t\t.rank = %d, "
			".element_bytes = %d, .swizzle = %d", name,
			k->plan->graph->tasks.v[x->task].name, export_number(k, x->tensor), m.rank,
			m.element_bytes, m.swizzle);
		put_list(out, "dim", m.dim, m.rank);
		put_list(out, "box", m.box, m.rank);
		put_list(out, "stride", m.stride, m.rank);
		buf_puts(out, " } },\n");
		break;
	case PARAM_ORDER:
		buf_puts(out, "\t{ .kind = ORDER },\n");
		break;
	case PARAM_START:
		buf_puts(out, "\t{ .kind = START },\n");
		break;
	case PARAM_TRACE:
		BUG("a traced kernel is not exported");
	}
}

static void put_tiles(struct table *t, const char *what, const char *phase, const int64_t *v, int64_t n)
{
	buf_printf(&t->params, "static const int %s_%s[%lld];\n", what, phase, (long long)n);
	buf_printf(&t->data, "static const int %s_%s[%lld] = {\n\t", what, phase, (long long)n);
	export_numbers(&t->data, v, n, "\t");
	buf_puts(&t->data, "\n};\n");
}

static void put_phase(struct export_kit *k, const struct source *s, int i, struct table *t)
{
	const char *name = k->p->phases.v[i].name, *stem = export_stem(k, i);
	struct tile_assignment d;

	plan_assign_tiles(k->a, k->plan, i, &d);
	t->params_most = (int)max_i64(t->params_most, s->params.n);
	buf_printf(&t->params, "host_run_function run_%s;\n", s->entry);
	buf_printf(&t->params, "static const struct param params_%s[%d] = {\n", name, s->params.n);
	for (int n = 0; n < s->params.n; n++)
		put_param(k, &s->params.v[n], &t->params);
	buf_puts(&t->params, "};\n");
	put_tiles(t, "order", name, d.order, d.total);
	put_tiles(t, "start", name, d.start, d.eus + 1);
	buf_printf(&t->phases, "\t{ run_%s, %d, %d, %d, %lld, params_%s, %d, order_%s, start_%s },\n",
		s->entry, d.eus, s->cluster, s->threads, (long long)s->shared_bytes, name, s->params.n, name, name);
	buf_printf(&t->objects, "%s%s_kernel.o", i ? " " : "", stem);
	/* -D, because each text defines the same function; -w, because generated text has warnings */
	buf_printf(&t->rules, "%s_kernel.o: %s_kernel.c\n\t$(CC) $(CFLAGS) $(FLAGS) -w -D%s=run_%s "
		"-c -o $@ $<\n", stem, stem, HOST_RUN_SYMBOL, s->entry);
	export_add(k, arena_strf(k->a, "%s_kernel.c", stem), s->text.text, s->text.len);
}

/* Bits of a float's exponent and mantissa; none for integers. */
static void put_tensors(struct export_kit *k)
{
	static const int exponent[DT_COUNT] = {
#define X(id, name, bits, e, m) e,
		DTYPES(X)
#undef X
	};
	static const int mantissa[DT_COUNT] = {
#define X(id, name, bits, e, m) m,
		DTYPES(X)
#undef X
	};
	static const char *const roles[] = { "INPUT", "OUTPUT", "TEMPORARY" };	/* ORDER tensor_role */
	struct buf table, list;

	buf_init(&table, k->a);
	buf_init(&list, k->a);
	for (int i = 0; i < k->ntensors; i++) {
		const struct tensor *t = &k->p->tensors.v[k->tensors[i]];
		const char *shape = export_shape(k, k->tensors[i]);

		buf_printf(&table, "\t{ \"%s\", %s, %lld, %d, %d, %d, \"%s\" },\n", t->name,
			roles[t->role], (long long)tensor_elements(k->p, k->tensors[i]),
			dtype_bits(t->type), exponent[t->type], mantissa[t->type], shape);
		if (t->role != TENSOR_TEMP)
			buf_printf(&list, "%s *	%s %s", i ? "\n" : "", t->role == TENSOR_INPUT ? "in " : "out", shape);
	}
	export_word(k, "TENSORTABLE", table.text);
	export_word(k, "TENSORS", list.text);
}

void export_host(const struct built *b, const char *name, struct arena *a, struct export_set *out)
{
	struct table t = { .params_most = 0 };
	struct export_kit k;

	export_begin(&k, b->plan, name, a, out);
	buf_init(&t.params, a);
	buf_init(&t.phases, a);
	buf_init(&t.data, a);
	buf_init(&t.objects, a);
	buf_init(&t.rules, a);
	for (int i = 0; i < b->nphases; i++)
		put_phase(&k, &b->phases[i].source, i, &t);
	put_tensors(&k);
	export_word(&k, "ENTRY", b->phases[b->nphases - 1].source.entry);
	export_word(&k, "FORKNOTE", b->nphases == 1 ? "" : " Phases\n * before the last run in a "
		"process of their own: `set follow-fork-mode child`.");
	export_word(&k, "NTENSORS", arena_strf(a, "%d", k.ntensors));
	export_word(&k, "NPHASES", arena_strf(a, "%d", b->nphases));
	export_word(&k, "PARAMS_MOST", arena_strf(a, "%d", t.params_most));
	export_word(&k, "TABLES", t.params.text);
	export_word(&k, "PHASES", t.phases.text);
	export_word(&k, "DATA", t.data.text);
	export_word(&k, "OBJECTS", t.objects.text);
	export_word(&k, "RULES", t.rules.text);
	export_fill(&k, arena_strf(a, "%s_host.c", k.name), "host.c");
	export_fill(&k, arena_strf(a, "%s_host.mk", k.name), "host.mk");
	for (const struct export_template *r = export_templates; r->name; r++)
		if (!strncmp(r->name, "rt", 2) || !strcmp(r->name, "millrace_host.h"))
			export_add(&k, arena_strf(a, "millrace/host/%s", r->name), r->text, r->len);
}
