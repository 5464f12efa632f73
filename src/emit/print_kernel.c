/* A kernel: one role a lane, lanes that do the same sharing one text. */
#include "emit/print.h"

static void put_signature(const struct role_program *r, const struct source *s, struct buf *out)
{
	if (r->cluster > 1)
		buf_printf(out, "CLUSTER_KERNEL(%s, %d, %d)\n(", s->entry, r->threads, r->cluster);
	else
		buf_printf(out, "KERNEL(%s, %d)\n(", s->entry, r->threads);
	for (int i = 0; i < s->params.n; i++) {
		const struct param *p = &s->params.v[i];
		const struct role_tensor *t = p->tensor == NONE ? NULL : &r->tensors.v[p->tensor];

		buf_puts(out, i ? ",\n\t" : "");
		switch (p->kind) {
		case PARAM_POINTER:
			buf_printf(out, "%s%s *__restrict__ tensor_%s", t->input ? "const " : "",
				bits_type(t->type), t->name);
			break;
		case PARAM_ORDER:
			buf_puts(out, "const int *__restrict__ order");
			break;
		case PARAM_START:
			buf_puts(out, "const int *__restrict__ start");
			break;
		case PARAM_TRACE:
			buf_puts(out, "u32 *__restrict__ trace");
			break;
		case PARAM_MAP:
			buf_printf(out, "MAP map%d", i);
			break;
		}
	}
	buf_puts(out, ")\n");
}

static void put_start(struct print *c)
{
	put(c, "const u32 shared = shared_base();");
	put(c, "const int warp = UNIFORM(THREAD / %d);", warp_threads(c));
	put(c, "if (THREAD == 0) {");
	for (int f = 0; f < c->r->flags.n; f++)
		put(c, "\tEACH(i, %d) flag_init(shared + %lld + %d * i, %d, \"%s\", i);",
			c->r->flags.v[f].depth, (long long)c->r->flags.v[f].offset,
			c->r->target->shared.flag, c->r->flags.v[f].arrivals, c->r->flags.v[f].name);
	put(c, "\tflags_ready();");
	put(c, "}");
	print_block_stamp(c);
	if (c->r->cluster > 1)
		put(c, "const int rank = BLOCK %% %d;\t/* in the cluster */", c->r->cluster);
	put(c, c->r->cluster > 1 ? "CLUSTER_SYNC();" : "BLOCK_SYNC();");
	/* All blocks are there at once, so none of the next phase can take the place of one. */
	if (!c->r->last)
		put(c, "NEXT_PHASE_MAY_BEGIN();");
	if (!c->r->first)
		put(c, "LAST_PHASE_WAIT();");
}

/* A role has whole groups of its own. */
static int warps_of(const struct print *c, const struct role *l)
{
	return target_warps(c->r->target, l->warps);
}

/* Roles by their first warp. */
static const struct role *role_at(const struct role_program *r, int warp)
{
	for (int i = 0; i < r->roles.n; i++)
		if (r->roles.v[i].first_warp == warp)
			return &r->roles.v[i];
	BUG("no lane begins at warp %d", warp);
}

static const char *role_text(struct print *c, const struct role *l)
{
	struct buf text, *whole = c->out;

	buf_init(&text, c->a);
	c->role = l;
	c->out = &text;
	c->indent++;
	print_body(c, &l->body);
	c->indent--;
	c->out = whole;
	return text.text;
}

/* The lanes from `warp` on that can share one text; it goes into *merged. */
static int merge_lanes(struct print *c, int warp, struct buf *merged)
{
	const char *text[LANES_MERGED];
	const struct role *first = role_at(c->r, warp), *l;
	int count;

	text[0] = role_text(c, first);
	buf_init(merged, c->a);
	buf_puts(merged, text[0]);
	for (count = 1; count < LANES_MERGED; ++count) {
		struct buf more;

		warp += warps_of(c, first);
		if (warp * warp_threads(c) >= c->r->threads || first->warps % c->r->target->group)
			break;
		l = role_at(c->r, warp);
		text[count] = role_text(c, l);
		buf_init(&more, c->a);
		if (l->warps != first->warps || !merge_texts(c->a, text, count + 1, &more))
			break;
		*merged = more;
	}
	return count;
}

static void put_roles(struct print *c)
{
	for (int warp = 0; warp * warp_threads(c) < c->r->threads;) {
		const char *otherwise = warp ? "else " : "";
		struct buf names, text;
		int first = warp, count = merge_lanes(c, warp, &text);

		buf_init(&names, c->a);
		for (int i = 0; i < count; i++) {
			const struct role *l = role_at(c->r, warp);

			buf_printf(&names, "%s%s", i ? ", " : " ", l->name);
			warp += warps_of(c, l);
		}
		put(c, "%sif (warp < %d) {\t/* lane%s%s */", otherwise, warp, count > 1 ? "s" : "",
			names.text);
		if (count > 1)
			put(c, "\tconst int who = (warp - %d) / %d;", first, (warp - first) / count);
		buf_putn(c->out, text.text, text.len);
		put(c, "}");
	}
	if (c->r->cluster > 1)
		put(c, "CLUSTER_SYNC();\t/* no block ends before all others have told it all */");
}

static void put_lines(struct buf *out, const char *const *line)
{
	for (; line && *line; line++)
		buf_puts(out, *line);
}

static void put_products(const struct role_program *r, const struct printer *printer,
	struct arena *a, struct buf *out)
{
	for (int i = 0; i < r->products.n; i++) {
		const struct product_form *f = &r->products.v[i];

		buf_printf(out, "DEV void %s(float *d, %s, %s, int add)\n{\n", product_name(a, f),
			f->registers ? "const u32 *a" : "u64 a", f->b_registers ? "const u32 *b" :
			"u64 b");
		printer->product(out, f);
		buf_puts(out, "}\n");
	}
}

static struct param *add_param(struct arena *a, struct source *s, enum param_kind kind, int tensor)
{
	struct param *p = VEC_ADD(a, &s->params);

	*p = (struct param){ .kind = kind, .tensor = tensor };
	return p;
}

static void list_params(const struct role_program *r, struct arena *a, struct source *s)
{
	for (int t = 0; t < r->tensors.n; t++)
		add_param(a, s, PARAM_POINTER, t);
	add_param(a, s, PARAM_ORDER, NONE);
	add_param(a, s, PARAM_START, NONE);
	for (int i = 0; i < r->maps.n; i++) {
		const struct role_map *m = &r->maps.v[i];
		struct param *p = add_param(a, s, PARAM_MAP, m->tensor);

		p->task = m->task;
		p->rank = m->rank;
		p->swizzle = m->swizzle;
		for (int d = 0; d < m->rank; d++) {
			p->dim[d] = m->dim[d];
			p->box[d] = m->box[d];
			p->stride[d] = m->stride[d];
		}
	}
	if (r->stamp_words)
		add_param(a, s, PARAM_TRACE, NONE);
}

void emit_text(const struct role_program *r, const struct printer *printer, struct arena *a,
	struct source *out)
{
	struct print c = { .r = r, .a = a, .indent = 1 };

	*out = (struct source){ .threads = r->threads, .cluster = r->cluster,
		.shared_bytes = r->shared_bytes + r->target->shared.align };
	out->entry = arena_strf(a, "%s_%s", r->program, r->phase);
	list_params(r, a, out);
	buf_init(&out->text, a);
	c.out = &out->text;
	buf_printf(c.out, "/* %s, phase %s, generated by Millrace from a plan for %s. */\n",
		r->program, r->phase, r->device);
	put_lines(c.out, printer->prelude);
	if (r->cluster > 1)
		put_lines(c.out, printer->cluster);
	if (r->stamp_words)
		put_lines(c.out, printer->stamps);
	put_products(r, printer, a, c.out);
	put_signature(r, out, c.out);
	buf_puts(c.out, "{\n");
	put_start(&c);
	put_roles(&c);
	buf_puts(c.out, "}\n");
	if (printer->behind)
		printer->behind(c.out, out);
}
