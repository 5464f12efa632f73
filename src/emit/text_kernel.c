/* A kernel: one role a lane, lanes that do the same sharing one text. */
#include "emit/gpu_text.h"

static void put_signature(struct text *c, struct buf *out)
{
	if (c->k->cluster > 1)
		buf_printf(out, "CLUSTER_KERNEL(%s, %d, %d)\n(", c->src->entry, c->k->threads,
			c->k->cluster);
	else
		buf_printf(out, "KERNEL(%s, %d)\n(", c->src->entry, c->k->threads);
	for (int i = 0; i < c->src->params.n; i++) {
		const struct param *p = &c->src->params.v[i];
		const struct tensor *t = p->tensor == NONE ? NULL : &c->p->tensors.v[p->tensor];

		buf_puts(out, i ? ",\n\t" : "");
		switch (p->kind) {
		case PARAM_POINTER:
			buf_printf(out, "%s%s *__restrict__ tensor_%s", t->role == TENSOR_INPUT ?
				"const " : "", bits_type(t->type), t->name);
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

static void put_start(struct text *c)
{
	put(c, "const u32 shared = shared_base();");
	put(c, "const int warp = UNIFORM(THREAD / 32);");
	put(c, "if (THREAD == 0) {");
	for (int f = 0; f < c->k->flags.n; f++)
		put(c, "\tEACH(i, %d) flag_init(shared + %lld + 8 * i, %d, \"%s %s\", i);",
			c->k->flags.v[f].depth, (long long)c->k->flags.v[f].offset,
			c->k->flags.v[f].arrivals, c->g->tasks.v[c->k->flags.v[f].task].name,
			c->k->flags.v[f].issued ? "issued" : c->k->flags.v[f].runs ? "run" :
			"complete");
	put(c, "\tflags_ready();");
	put(c, "}");
	put_block_stamp(c);
	if (c->k->cluster > 1)
		put(c, "const int rank = BLOCK %% %d;\t/* in the cluster */", c->k->cluster);
	put(c, c->k->cluster > 1 ? "CLUSTER_SYNC();" : "BLOCK_SYNC();");
	/* All blocks are there at once, so none of the next phase can take the place of one. */
	if (c->k->phase + 1 < c->p->phases.n)
		put(c, "NEXT_PHASE_MAY_BEGIN();");
	if (c->k->phase)
		put(c, "LAST_PHASE_WAIT();");
}

static int warps_of(const struct klane *l)
{
	return (int)ceil_div(l->warps, GROUP_WARPS) * GROUP_WARPS;
}

/* Lanes by their first warp. */
static const struct klane *lane_at(const struct kernel *k, int warp)
{
	for (int i = 0; i < k->lanes.n; i++)
		if (k->lanes.v[i].first_warp == warp)
			return &k->lanes.v[i];
	BUG("no lane begins at warp %d", warp);
}

static enum err_code lane_text(struct text *c, const struct klane *l, const char **out,
	struct err *e)
{
	struct buf text, *whole = c->out;
	enum err_code code;

	buf_init(&text, c->a);
	c->lane = l;
	c->out = &text;
	code = put_lane(c, e);
	c->out = whole;
	*out = text.text;
	return code;
}

/* The lanes from `warp` on that can share one text; it goes into *merged. */
static enum err_code merge_lanes(struct text *c, int warp, int *count, struct buf *merged,
	struct err *e)
{
	const char *text[LANES_MERGED];
	const struct klane *first = lane_at(c->k, warp), *l;

	TRY(lane_text(c, first, &text[0], e));
	buf_init(merged, c->a);
	buf_puts(merged, text[0]);
	for (*count = 1; *count < LANES_MERGED; ++*count) {
		struct buf more;

		warp += warps_of(first);
		if (warp * 32 >= c->k->threads || first->warps % GROUP_WARPS)
			break;
		l = lane_at(c->k, warp);
		TRY(lane_text(c, l, &text[*count], e));
		buf_init(&more, c->a);
		if (l->warps != first->warps || !merge_texts(c->a, text, *count + 1, &more))
			break;
		*merged = more;
	}
	return OK;
}

static enum err_code put_kernel(struct text *c, struct err *e)
{
	int warp = 0, count;

	put_start(c);
	while (warp * 32 < c->k->threads) {
		const char *otherwise = warp ? "else " : "";
		int first = warp;
		struct buf names, text;

		buf_init(&names, c->a);
		TRY(merge_lanes(c, warp, &count, &text, e));
		for (int i = 0; i < count; i++) {
			const struct klane *l = lane_at(c->k, warp);

			buf_printf(&names, "%s%s", i ? ", " : " ", c->plan->lanes.v[l->lane].name);
			warp += warps_of(l);
		}
		put(c, "%sif (warp < %d) {\t/* lane%s%s */", otherwise, warp, count > 1 ? "s" : "",
			names.text);
		if (count > 1)
			put(c, "\tconst int who = (warp - %d) / %d;", first, (warp - first) / count);
		buf_putn(c->out, text.text, text.len);
		put(c, "}");
	}
	if (c->k->cluster > 1)
		put(c, "CLUSTER_SYNC();\t/* no block ends before all others have told it all */");
	return OK;
}

static void put_lines(struct buf *out, const char *const *line)
{
	for (; line && *line; line++)
		buf_puts(out, *line);
}

static void list_params(struct text *c)
{
	struct source *s = c->src;

	for (int t = 0; t < c->p->tensors.n; t++)
		VEC_PUSH(c->a, &s->params, ((struct param){ .kind = PARAM_POINTER, .tensor = t }));
	VEC_PUSH(c->a, &s->params, ((struct param){ .kind = PARAM_ORDER, .tensor = NONE }));
	VEC_PUSH(c->a, &s->params, ((struct param){ .kind = PARAM_START, .tensor = NONE }));
}

/* Types that a register can hold; others only pass, as what is unpacked. */
static bool is_known(const struct node *n, enum dtype t)
{
	switch (t) {
	case DT_F32: case DT_TF32: case DT_F16: case DT_BF16: case DT_E4M3: case DT_E5M2:
	case DT_I32: case DT_I8:
		return true;
	case DT_BOOL:
		return n->op != OP_LOAD && n->op != OP_STORE;
	case DT_I4: case DT_E2M1:
		return n->op == OP_UNPACK;
	case DT_F64: case DT_COUNT:
		break;
	}
	return false;
}

static enum err_code check_types(const struct text *c, struct err *e)
{
	for (int i = 0; i < c->g->tasks.n; i++) {
		const struct task *t = &c->p->tasks.v[c->g->tasks.v[i].task];

		for (int k = 0; k < t->nodes.n && t->phase == c->k->phase; k++) {
			const struct node *n = &c->p->nodes.v[t->nodes.v[k]];
			enum dtype type = n->op == OP_STORE ? c->p->tensors.v[n->ref].type : n->type;

			if (n->op != OP_SET && !is_known(n, type))
				return err_set(e, ERR_ILLEGAL, n->loc, "'%s' works on %s, which is not "
					"lowered", t->name, dtype_name(type));
		}
	}
	return OK;
}

enum err_code emit_text(const struct kernel *k, const struct target *target, struct arena *a,
	struct source *out, struct err *e)
{
	struct text c = { .k = k, .plan = k->plan, .g = k->plan->graph, .a = a, .src = out,
		.p = k->plan->graph->program, .indent = 1, .target = target };
	struct buf body;

	c.fused = ARENA_ARRAY(a, c.p->nodes.n, bool);
	c.around = ARENA_ARRAY(a, c.p->loops.n + 1, int) + 1;
	*out = (struct source){ .threads = k->threads, .cluster = k->cluster,
		.shared_bytes = k->shared_bytes + 1024 };
	out->entry = arena_strf(a, "%s_%s", c.p->name, c.p->phases.v[k->phase].name);
	buf_init(&body, a);
	buf_init(&c.functions, a);
	buf_init(&out->text, a);
	c.out = &body;
	list_params(&c);
	TRY(check_types(&c, e));
	TRY(put_kernel(&c, e));
	if (k->stamp_words)
		VEC_PUSH(a, &out->params, ((struct param){ .kind = PARAM_TRACE, .tensor = NONE }));
	buf_printf(&out->text, "/* %s, phase %s, generated by Millrace from a plan for %s. */\n",
		c.p->name, c.p->phases.v[k->phase].name, k->plan->device->name);
	put_lines(&out->text, target->prelude);
	if (k->cluster > 1)
		put_lines(&out->text, target->cluster);
	if (k->stamp_words)
		put_lines(&out->text, target->stamps);
	buf_puts(&out->text, c.functions.text);
	put_signature(&c, &out->text);
	buf_puts(&out->text, "{\n");
	buf_putn(&out->text, body.text, body.len);
	buf_puts(&out->text, "}\n");
	if (target->behind)
		target->behind(&out->text, out);
	return OK;
}
