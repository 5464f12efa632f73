/* A kernel: parameters, what all threads do first, then the roles. */
#include "emit/print.h"

#include <string.h>

/* Where a kernel waits for what runs in front of it, tensors are not restricted: a compiler may load through a restricted pointer ahead of
 * the wait, as no statement in between can change what it leads to. */
static void put_signature(const struct role_program *r, const struct source *s, struct buf *out)
{
	const char *restricted = s->waits ? "" : "__restrict__ ";

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
			buf_printf(out, "%s%s *%s%stensor_%s", t->input ? "const " : "",
				bits_type(t->type), t->by_address ? "const *" : "", restricted, t->name);
			break;
		case PARAM_ORDER:
			buf_puts(out, "const int *__restrict__ order");
			break;
		case PARAM_START:
			buf_puts(out, r->names.taken ? "u32 *counter" : "const int *__restrict__ start");
			break;
		case PARAM_SIZE:
			buf_printf(out, "const int size_%s", r->names.axes[p->axis]);
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

/* waits: the kernel may be launched before what runs in front of it has ended. */
static void put_start(struct print *c, bool waits)
{
	const struct role_taken *x = &c->r->taken;

	put(c, "const u32 shared = shared_base();");
	if (c->r->ncounters)
		put(c, "const u32 counters = shared + %lld;", (long long)c->r->counters);
	put(c, "const int warp = UNIFORM(THREAD / %d);", warp_threads(c));
	put(c, "if (THREAD == 0) {");
	for (int f = 0; f < c->r->flags.n; f++)
		put(c, "\tEACH(i, %d) flag_init(shared + %lld + %d * i, %d, \"%s\", i);",
			c->r->flags.v[f].depth, (long long)c->r->flags.v[f].offset,
			c->r->target->shared.flag, c->r->flags.v[f].arrivals, c->r->flags.v[f].name);
	for (int i = 0; i < c->r->rings.n; i++)
		if (c->r->rings.v[i].words)
			put(c, "\tEACH(i, %d) shared_put_u32(shared + %lld + 4 * i, 0);", c->r->rings.v[i].versions,
				(long long)c->r->rings.v[i].words);
	if (x->lane != NONE) {
		put(c, "\tEACH(i, %d) flag_init(shared + %lld + 8 * i, 1, \"tile taken\", i);", x->slots, (long long)x->offset);
		put(c, "\tEACH(i, %d) flag_init(shared + %lld + 8 * i, %d, \"tile read\", i);", x->slots,
			(long long)(x->offset + 8 * x->slots), x->warps);
	}
	if (c->r->ncounters)
		put(c, "\tEACH(i, %d) shared_put_u32(counters + %d * i, 0);", c->r->ncounters, ROLE_COUNTER_BYTES);
	put(c, "\tflags_ready();");
	put(c, "}");
	print_block_stamp(c);
	if (c->r->cluster > 1)
		put(c, "const int rank = BLOCK %% %d;\t/* in the cluster */", c->r->cluster);
	put(c, c->r->cluster > 1 ? "CLUSTER_SYNC();" : "BLOCK_SYNC();");
	/* What was launched before may still use all tensors. */
	if (waits && c->r->waits_first)
		put(c, "LAST_PHASE_WAIT();");
	/* Behind that wait, if there is one: further phases load inputs without one of their own. All blocks are there at once, so a block
	 * of what is launched next cannot keep one of them out. */
	if (c->r->next_at_start && (waits || !c->r->last))
		put(c, "NEXT_PHASE_MAY_BEGIN();");
}

/* Roles by their first warp. */
static const struct role *role_at(const struct role_program *r, int warp)
{
	for (int i = 0; i < r->roles.n; i++)
		if (r->roles.v[i].first_warp == warp)
			return &r->roles.v[i];
	BUG("no lane begins at warp %d", warp);
}

static void put_roles(struct print *c)
{
	for (int warp = 0; warp * warp_threads(c) < c->r->threads;) {
		const struct role *l = role_at(c->r, warp);
		int warps = target_warps(c->r->target, l->warps), end = warp + l->nmerged * warps;

		put(c, "%sif (warp < %d) {\t/* lane%s %s */", warp ? "else " : "", end, l->nmerged > 1 ? "s" : "",
			l->name);
		if (l->nmerged > 1)
			put(c, "\tconst int who = (warp - %d) / %d;", warp, warps);
		c->role = l;
		c->indent++;
		print_body(c, &l->body);
		c->indent--;
		put(c, "}");
		warp = end;
	}
	if (role_meets_at_end(c->r))
		put(c, "CLUSTER_SYNC();\t/* no block ends while others may still arrive at its flags */");
}

static void begin_definition(struct arena *a, struct source *s)
{
	VEC_PUSH(a, &s->definitions, s->text.len);
}

static bool is_machine_mark(const char *line)
{
	return *line == *ONLY_SM_90 || *line == *ONLY_SM_80 || *line == *FOR_ALL;
}

/* The lines that are for the printer's machine. */
static void put_lines(struct arena *a, struct source *s, const struct printer *printer, const char *const *line)
{
	char now = *FOR_ALL;

	if (line)
		begin_definition(a, s);
	for (; line && *line; line++)
		if (is_machine_mark(*line))
			now = **line;
		else if (now == *FOR_ALL || (printer->machine && now == *printer->machine))
			buf_puts(&s->text, *line);
}

static void put_products(const struct role_program *r, const struct printer *printer, struct arena *a, struct source *s)
{
	struct buf *out = &s->text;

	for (int i = 0; i < r->products.n; i++) {
		const struct product_form *f = &r->products.v[i];

		begin_definition(a, s);
		buf_printf(out, "DEV void %s(%s *d, %s, %s%s, int add)\n{\n", product_name(a, f),
			register_type(f->b_type), f->registers ? "const u32 *a" : "u64 a", f->b_registers ? "const u32 *b" :
			"u64 b", f->sparse ? ", u32 pairs" : "");
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
			p->dim_of[d] = m->dim_of[d];
			p->stride_of[d] = m->stride_of[d];
			p->dim_factor[d] = m->dim_factor[d];
			p->stride_factor[d] = m->stride_factor[d];
		}
	}
	for (int i = 0; i < r->sizes.n; i++)
		add_param(a, s, PARAM_SIZE, NONE)->axis = r->sizes.v[i];
	if (r->stamp_words)
		add_param(a, s, PARAM_TRACE, NONE);
}

static bool adds_in_memory(const struct role_program *r)
{
	for (int t = 0; t < r->tensors.n; t++)
		if (r->tensors.v[t].added)
			return true;
	return false;
}

/* Numbers of tiles, from the thread that asks for them to all warps (lower/sync/taken.c). ptxas waits for what the
 * counter has given at the first operation on it, which it moves ahead of the tile's loads. `if_elected` makes that
 * operation depend on an elect.sync behind the loads, too, so that it stays there. */
static const char *const numbers[] = {
	"/* Numbers of tiles go through a ring: flags that one is there, flags that all warps have read it, the numbers. */\n",
	"DEV int number_put(int given, int first, int tiles, u32 ring, int n, int slots)\n",
	"{\n",
	"\tconst int at = rem(n, slots), number = if_elected(given) + first;\n",
	"\tif (number < first) return 0;\t/* nothing was asked for */\n",
	"\tif (n >= slots) flag_wait(ring + 8 * (slots + at), quo(n, slots) - 1);\n",
	"\tshared_put_u32(ring + 16 * slots + 4 * at, (u32)number);\n",
	"\tflag_arrive_thread(ring + 8 * at);\n",
	"\treturn number < tiles;\n",
	"}\n",
	"DEV int number_get(u32 ring, int n, int slots)\n",
	"{\n",
	"\tconst int at = rem(n, slots);\n",
	"\tflag_wait(ring + 8 * at, quo(n, slots));\n",
	"\tconst int number = (int)shared_u32(ring + 16 * slots + 4 * at);\n",
	"\tWARP_SYNC();\n",
	"\tflag_arrive_warp(ring + 8 * (slots + at));\n",
	"\treturn number;\n",
	"}\n",
	NULL
};

/* The function of a position that raster_tile is (tile/raster.h), without what is 0 or 1 of it. */
static void put_raster(const struct tile_raster *r, const char *name, struct arena *a, struct source *s)
{
	long long per_plane = (long long)(r->slow * r->fast), per_group = (long long)(r->group * r->fast);
	long long group = (long long)r->group, last = (long long)(r->slow % r->group);
	struct buf *out = &s->text;

	begin_definition(a, s);
	buf_printf(out, "/* The tile at a position of their order. */\nDEV int %s(int at)\n{\n", name);
	buf_printf(out, r->size > 1 ? "\tconst int cluster = quo(at, %lld);\n" : "\tconst int cluster = at;\n", (long long)r->size);
	buf_printf(out, r->positions > r->size * per_plane ? "\tconst int plane = quo(cluster, %lld);\n\tconst int in_plane = "
		"rem(cluster, %lld);\n" : "\tconst int plane = 0;\n\tconst int in_plane = cluster;\n", per_plane, per_plane);
	buf_printf(out, r->group < r->slow ? "\tconst int first = quo(in_plane, %lld) * %lld;\n\tconst int x = rem(in_plane, %lld);\n" :
		"\tconst int first = 0;\n\tconst int x = in_plane;\n", per_group, group, per_group);
	if (last) {
		buf_printf(out, "\tconst int full = first + %lld <= %lld;\n", group, (long long)r->slow);
		buf_printf(out, "\tconst int slow = first + (full ? rem(x, %lld) : rem(x, %lld));\n", group, last);
		buf_printf(out, "\tconst int fast = full ? quo(x, %lld) : quo(x, %lld);\n", group, last);
	} else
		buf_printf(out, "\tconst int slow = first + rem(x, %lld);\n\tconst int fast = quo(x, %lld);\n", group, group);
	buf_printf(out, "\treturn plane * %lld + slow * %lld + fast * %lld", (long long)r->plane_stride, (long long)r->slow_stride,
		(long long)r->fast_stride);
	if (r->member_stride)
		buf_printf(out, " + rem(at, %lld) * %lld", (long long)r->size, (long long)r->member_stride);
	buf_puts(out, ";\n}\n");
}

void emit_text(const struct role_program *r, const struct printer *printer, struct arena *a, struct source *out)
{
	struct print c = { .r = r, .a = a, .indent = 1 };
	struct buf body;

	*out = (struct source){ .waits = printer->waits, .threads = r->threads, .cluster = r->cluster,
		.shared_bytes = r->shared_bytes + shared_slack(&r->target->shared) };
	out->entry = arena_strf(a, "%s_%s", r->program, r->phase);
	list_params(r, a, out);
	buf_init(&out->text, a);
	buf_init(&body, a);
	c.out = &body;
	put_start(&c, printer->waits);
	put_roles(&c);
	c.out = &out->text;
	buf_printf(c.out, "/* %s, phase %s, generated by Millrace from a plan for %s. */\n",
		r->program, r->phase, r->device);
	put_lines(a, out, printer, printer->prelude);
	if (r->cluster > 1)
		put_lines(a, out, printer, printer->cluster);
	if (c.parts)
		put_lines(a, out, printer, printer->parts);
	if (adds_in_memory(r))
		put_lines(a, out, printer, printer->additions);
	if (r->names.taken) {
		put_lines(a, out, printer, printer->taken);
		put_lines(a, out, printer, numbers);
	}
	if (c.fresh)
		put_lines(a, out, printer, printer->fresh);
	if (c.skips)
		put_lines(a, out, printer, printer->skips);
	if (c.recomputed)
		put_lines(a, out, printer, printer->recomputed);
	if (c.vectors)
		put_lines(a, out, printer, printer->vectors);
	if (c.staged)
		put_lines(a, out, printer, printer->staged);
	if (c.dma)
		put_lines(a, out, printer, printer->dma);
	if (c.rare)
		put_lines(a, out, printer, printer->rare);
	if (c.transposes)
		put_lines(a, out, printer, printer->transposes);
	if (c.nibbles)
		put_lines(a, out, printer, printer->nibbles);
	if (c.matrices)
		put_lines(a, out, printer, printer->matrices);
	if (c.pairs)
		put_lines(a, out, printer, printer->pairs);
	if (c.ordered_pairs)
		put_lines(a, out, printer, printer->ordered_pairs);
	if (c.priority)
		put_lines(a, out, printer, printer->priority);
	if (r->stamp_words)
		put_lines(a, out, printer, printer->stamps);
	if (r->names.tile_at)
		put_raster(&r->raster, r->names.tile_at, a, out);
	put_products(r, printer, a, out);
	begin_definition(a, out);
	put_signature(r, out, c.out);
	buf_printf(c.out, "{\n%s}\n", body.text);
	if (printer->behind)
		printer->behind(c.out, out);
}

/* Does the text have this definition? */
static bool has_definition(const struct source *s, const char *text, size_t n)
{
	for (int i = 0; i + 1 < s->definitions.n; i++) {
		size_t at = s->definitions.v[i];

		if (s->definitions.v[i + 1] - at == n && memcmp(s->text.text + at, text, n) == 0)
			return true;
	}
	return false;
}

void emit_join(struct buf *out, const struct source *const *before, int n, const struct source *s)
{
	size_t kernel = s->definitions.n ? s->definitions.v[s->definitions.n - 1] : 0;

	buf_putn(out, s->text.text, s->definitions.n ? s->definitions.v[0] : 0);
	for (int i = 0; i + 1 < s->definitions.n; i++) {
		const char *text = s->text.text + s->definitions.v[i];
		size_t len = s->definitions.v[i + 1] - s->definitions.v[i];
		bool had = false;

		for (int k = 0; k < n && !had; k++)
			had = has_definition(before[k], text, len);
		if (!had)
			buf_putn(out, text, len);
	}
	buf_putn(out, s->text.text + kernel, s->text.len - kernel);
}
