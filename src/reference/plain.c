/* The frame of a plain kernel: tiles, loops, carries; see plain_node.c for what is in it. */
#include "reference/plain_text.h"
#include "base/prng.h"

enum { CORNER_AXES = 4 };		/* of whose first and last tiles all combinations are sampled */

static const struct item *body_of(const struct plain_text *t, int phase, int loop, int *n)
{
	if (loop != NONE) {
		*n = t->p->loops.v[loop].body.n;
		return t->p->loops.v[loop].body.v;
	}
	*n = t->p->phases.v[phase].body.n;
	return t->p->phases.v[phase].body.v;
}

/* Where an axis, and those of words of it, stand when it is at the tile that `tile` is the text of, and ends at `end`. */
static void put_axis(struct plain_text *t, int axis, const char *tile, const char *end)
{
	const struct program *p = t->p;
	const char *name = plain_axis(t, axis);

	plain_line(t, "const i64 lo_%s = %s * %lld, hi_%s = min_of(lo_%s + %lld, %s) - 1;", name, tile,
		(long long)t->x->tile[axis], name, name, (long long)t->x->tile[axis], end);
	plain_line(t, "const int len_%s = (int)(hi_%s - lo_%s + 1);", name, name, name);
	for (int a = 0; a < p->axes.n; a++) {
		const char *words = plain_axis(t, a);

		if (p->axes.v[a].packs != axis)
			continue;
		plain_line(t, "const i64 lo_%s = lo_%s / %d, hi_%s = hi_%s / %d;", words, name,
			p->axes.v[a].per, words, name, p->axes.v[a].per);
		plain_line(t, "const int len_%s = (int)(hi_%s - lo_%s + 1);", words, words, words);
	}
}

static const char *size_text(struct plain_text *t, int axis)
{
	return arena_strf(t->a, "%lldll", (long long)t->p->axes.v[axis].size);
}

static void put_carries(struct plain_text *t, int phase, int loop)
{
	for (int i = 0; i < t->p->carries.n; i++) {
		const struct carry *c = &t->p->carries.v[i];
		struct plain_loops l;

		if (c->phase != phase || c->loop != loop)
			continue;
		l = plain_loops_of_carry(t, i);
		plain_begin(t, &l);
		plain_line(t, "%s = %s;", plain_carry_element(t, i), plain_number(t->a, c->init));
	}
}

static void put_body(struct plain_text *t, int phase, int loop);

/* Least or greatest value of a bound over the tiles at hand. */
static const char *bound_text(struct plain_text *t, int loop, const struct index_expr *x, bool upper)
{
	const char *s = arena_strf(t->a, "%lldll", (long long)x->k);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *term = &x->term[i];
		const char *name = plain_axis(t, term->axis), *range = arena_strf(t->a, "lo_%s, hi_%s", name, name);

		if (loop_bounded_by_all(t->x, loop, term->axis))
			range = arena_strf(t->a, "0ll, %lldll", (long long)t->p->axes.v[term->axis].size - 1);
		s = arena_strf(t->a, "%s + %lldll * %s(%s, %lld, %lld)", s, (long long)term->coef,
			(term->coef > 0) == upper ? "most" : "least", range, (long long)term->div, (long long)term->mod);
	}
	return s;
}

/* Tiles [first, last) of the loop, as visited_before has them. */
static void put_trips(struct plain_text *t, int loop)
{
	const struct loop *l = &t->p->loops.v[loop];
	long long n = 1, tile = (long long)t->x->tile[l->axis[0]];
	const char *last;

	for (int i = 0; i < l->naxes; i++)
		n *= (long long)extent_tiles(t->x, l->axis[i]);
	last = arena_strf(t->a, "%lldll", n);
	if (l->has_from)
		plain_line(t, "const i64 first = max_of(0, min_of(%lldll, floor_div(%s, %lld)));", n,
			bound_text(t, loop, &l->from, false), tile);
	else
		plain_line(t, "const i64 first = 0;");
	if (l->has_length)
		plain_line(t, "const i64 end_%d = max_of(0, min_of(%lldll, %s));", loop,
			(long long)t->p->axes.v[l->axis[0]].size, plain_length_index(t, &l->length));
	if (l->has_upto)
		last = arena_strf(t->a, "max_of(0, min_of(%s, floor_div(%s, %lld) + 1))", last,
			bound_text(t, loop, &l->upto, true), tile);
	if (l->has_length)
		last = arena_strf(t->a, "min_of(%s, (end_%d + %lld) / %lld)", last, loop, tile - 1, tile);
	plain_line(t, "const i64 last = %s;", last);
}

static void put_loop(struct plain_text *t, int phase, int loop)
{
	const struct loop *l = &t->p->loops.v[loop];
	int64_t below = 1;

	plain_line(t, "{");
	put_trips(t, loop);
	plain_gap(t);
	plain_line(t, "for (i64 j%d = first; j%d < last; j%d++) {", loop, loop, loop);
	for (int i = l->naxes - 1; i >= 0; i--) {
		int64_t n = extent_tiles(t->x, l->axis[i]);

		put_axis(t, l->axis[i], arena_strf(t->a, "(j%d / %lld %% %lld)", loop, (long long)below, (long long)n),
			l->has_length ? arena_strf(t->a, "end_%d", loop) : size_text(t, l->axis[i]));
		below *= n;
	}
	plain_gap(t);
	put_body(t, phase, loop);
	plain_line(t, "}");
	plain_line(t, "}");
}

/* Recursion is as deep as loops nest. */
static void put_body(struct plain_text *t, int phase, int loop)
{
	int n;
	const struct item *body = body_of(t, phase, loop, &n);

	put_carries(t, phase, loop);
	for (int i = 0; i < n; i++) {
		const struct task *task;

		if (body[i].is_loop) {
			plain_end(t);
			put_loop(t, phase, body[i].id);
			continue;
		}
		task = &t->p->tasks.v[body[i].id];
		for (int j = 0; j < task->nodes.n; j++)
			plain_node(t, task->nodes.v[j]);
	}
	plain_end(t);
}

/* The block's arrays. */
static void put_arrays(struct plain_text *t, const struct plain_memory *r)
{
	plain_line(t, "double *const own = scratch + BLOCK * %lldll;", (long long)r->total);
	plain_line(t, "double *const a = own + %lld, *const b = own + %lld;", (long long)r->a, (long long)r->b);
	for (int i = 0; i < t->p->nodes.n; i++)
		if (r->node[i] != NONE && !t->inlined[i])
			plain_line(t, "double *const v%d = own + %lld;", i, (long long)r->node[i]);
	for (int i = 0; i < t->p->carries.n; i++)
		if (r->carry[i] != NONE)
			plain_line(t, "double *const c_%s = own + %lld;", t->p->carries.v[i].name,
				(long long)r->carry[i]);
}

static const char *param_type(const struct tensor *x)
{
	return x->role == TENSOR_INPUT ? "const void *" : "double *";
}

/* Does the phase have a twin instead of the axis, or the axis instead of its twin? Both have the same name. */
static bool has_other_twin(const struct program *p, int phase, int axis)
{
	for (int i = 0; i < p->axes.n; i++)
		if (((p->axes.v[i].is_twin && p->axes.v[i].twin_of == axis) ||
		     (p->axes.v[axis].is_twin && p->axes.v[axis].twin_of == i)) && program_axis_role(p, phase, i) != AXIS_UNUSED)
			return true;
	return p->axes.v[axis].is_twin && program_axis_role(p, phase, axis) == AXIS_UNUSED;
}

/* Are the results of a phase those of the program alone, each from one tile? */
static bool is_last(const struct program *p, int phase)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op != OP_STORE || p->tasks.v[n->task].phase != phase)
			continue;
		if (n->adds || p->tensors.v[n->ref].role != TENSOR_OUTPUT)
			return false;
		for (int k = 0; k < p->nodes.n; k++)
			if (p->nodes.v[k].op == OP_LOAD && p->nodes.v[k].ref == n->ref)
				return false;
	}
	return true;
}

/* The tile at a corner of the grid: bit i of `which` says that it is last along axis i. */
static int64_t corner_tile(const struct grid *g, unsigned which)
{
	int64_t tile = 0;

	for (int i = 0; i < g->n; i++)
		tile = tile * g->tiles[i] + (which >> i & 1 ? g->tiles[i] - 1 : 0);
	return tile;
}

/* The numbers of the tiles to be computed, as a table; false: all are. */
static bool put_sample(struct plain_text *t, int phase, const struct plain_sample *s, struct plain_phase *out)
{
	struct grid g = extents_grid(t->x, phase);
	unsigned corners = 1u << (g.n < CORNER_AXES ? g.n : CORNER_AXES);
	struct prng rng;

	if (!s || s->tiles <= 0 || g.total <= s->tiles + corners || !is_last(t->p, phase))
		return false;
	rng.state = s->seed + (uint64_t)phase;
	out->tiles = s->tiles + corners;
	buf_printf(t->out, "\nTABLE i64 sample_%d[%lld] = {", phase, (long long)out->tiles);
	for (unsigned c = 0; c < corners; c++)		/* the last one, of all axes */
		buf_printf(t->out, "%s%lldll, ", c % 16 ? "" : "\n\t", (long long)corner_tile(&g, c == corners - 1 ? ~0u : c));
	for (int64_t i = 0; i < s->tiles; i++) {
		int64_t from = g.total / s->tiles * i, n = i == s->tiles - 1 ? g.total - from : g.total / s->tiles;

		buf_printf(t->out, "%s%lldll, ", i % 16 ? "" : "\n\t", (long long)(from + (int64_t)(prng_next(&rng) % (uint64_t)n)));
	}
	buf_puts(t->out, "\n};\n");
	return true;
}

/* s: the tiles are those of the table. */
static void put_kernel(struct plain_text *t, int phase, const struct plain_memory *r, bool s, const struct plain_phase *out)
{
	const struct program *p = t->p;
	struct grid g = extents_grid(t->x, phase);
	int64_t below = 1;

	buf_printf(t->out, "\nKERNEL %s(", out->entry);
	for (int i = 0; i < p->tensors.n; i++)
		buf_printf(t->out, "%st_%s, ", param_type(&p->tensors.v[i]), p->tensors.v[i].name);
	buf_puts(t->out, "double *scratch)\n{\n");
	t->indent = 1;
	put_arrays(t, r);
	for (int i = 0; i < p->axes.n; i++)
		if (!has_other_twin(p, phase, i))
			plain_line(t, "const i64 lo_%s = 0, hi_%s = %lldll;", plain_axis(t, i), plain_axis(t, i),
				(long long)p->axes.v[i].size - 1);
	plain_gap(t);
	if (s) {
		plain_line(t, "for (i64 at = BLOCK; at < %lldll; at += BLOCKS) {", (long long)out->tiles);
		plain_line(t, "const i64 tile = sample_%d[at];", phase);
	} else {
		plain_line(t, "for (i64 tile = BLOCK; tile < %lldll; tile += BLOCKS) {", (long long)g.total);
	}
	for (int i = g.n - 1; i >= 0; i--) {
		put_axis(t, g.axis[i], arena_strf(t->a, "(tile / %lld %% %lld)", (long long)below,
			(long long)g.tiles[i]), size_text(t, g.axis[i]));
		below *= g.tiles[i];
	}
	plain_gap(t);
	put_body(t, phase, NONE);
	plain_line(t, "}");
	plain_line(t, "}");
}

/* As C the phases are called one after the other. */
static void put_entry(struct plain_text *t, const struct plain *out)
{
	const struct program *p = t->p;

	buf_puts(t->out, "\n#ifndef __CUDACC__\n"
		"__attribute__((visibility(\"default\")))\n"
		"void millrace_host_run(const struct host_launch *launch)\n{\n"
		"\tvoid *const *args = launch->args;\n\n");
	t->indent = 1;
	for (int i = 0; i < out->nphases; i++) {
		const char *args = "";

		for (int j = 0; j <= p->tensors.n; j++)
			args = arena_strf(t->a, "%s%sargs[%d]", args, j ? ", " : "", j);
		plain_line(t, "%s(%s);", out->phases[i].entry, args);
	}
	buf_puts(t->out, "}\n#endif\n");
}

/* f_NAME for floats and bools and i_NAME for i32, of every element-wise operation. */
static void put_operations(struct buf *out)
{
	static const char *const parameters[] = { "void", "double x", "double x, double y",
		"double x, double y, double z" };

	buf_puts(out, "\n/* operations */\n");
	for (int i = 0; i < OP_COUNT; i++) {
		for (int integer = 0; integer < 2; integer++) {
			const char *value = op_value_text((enum op)i, integer);

			if (value)
				buf_printf(out, "FN double %c_%s(%s) { return %s; }\n", integer ? 'i' : 'f',
					op_name((enum op)i), parameters[op_arity((enum op)i)], value);
		}
	}
}

enum err_code plain_print(const struct extents *x, unsigned flags, const struct plain_sample *sample, struct arena *a,
	struct plain *out, struct err *e)
{
	const struct program *p = x->program;
	struct plain_text t = { .p = p, .x = x, .a = a, .inlined = plain_inlined(a, x), .flags = flags };

	*out = (struct plain){ .nphases = p->phases.n };
	out->phases = ARENA_ARRAY(a, p->phases.n, struct plain_phase);
	buf_init(&out->text, a);
	t.out = &out->text;
	buf_printf(t.out, "/* %s, straight from its program */\n#define THREADS %d\n", p->name, PLAIN_THREADS);
	buf_puts(t.out, plain_prelude);
	put_operations(t.out);
	for (int i = 0; i < p->phases.n; i++) {
		struct plain_memory r;
		bool sampled;

		TRY(plain_memory(a, x, i, &r, e));
		out->phases[i].entry = arena_strf(a, "plain_%s", p->phases.v[i].name);
		out->phases[i].tiles = extents_grid(x, i).total;
		out->scratch_bytes = max_i64(out->scratch_bytes, r.total * (int64_t)sizeof(double));
		sampled = put_sample(&t, i, sample, &out->phases[i]);
		out->sampled |= sampled;
		put_kernel(&t, i, &r, sampled, &out->phases[i]);
	}
	put_entry(&t, out);
	return OK;
}
