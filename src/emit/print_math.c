/* Prints products, element-wise loops, reductions and scans.
 *
 * A row of a fragment is spread over several threads of a warp (a quad, on sm_90a), each of which has a pair of columns
 * of every group; a column is spread over other threads, in every warp of the lane. */
#include "emit/print.h"
#include "role/live.h"

/* products --------------------------------------------------------------------- */

const char *product_name(struct arena *a, const struct product_form *f)
{
	return arena_strf(a, "mma_%s%s%s_%s_%d_%d_%d", f->sparse ? "sparse_" : "", dtype_name(f->a_type),
		f->a_type == f->b_type ? "" : arena_strf(a, "_%s", dtype_name(f->b_type)), f->b_registers ? "rr" :
		f->registers ? "rs" : "ss", f->cols, f->a_rows, f->b_rows);
}

static void put_descriptor(struct print *c, const char *name, const struct matrix_operand *at)
{
	put(c, c->r->cluster > 1 ? "\tconst u64 %s = descriptor(0x%llxull, in_block(%s), %s);" : "\tconst u64 %s = "
		"descriptor(0x%llxull, %s, %s);", name, (unsigned long long)at->bits, num(c, at->from), num(c, at->by));
}

/* Where the words of an operand's step KS begin, if it has all steps; and of instruction i of those in the step. */
static const char *step_offset(struct print *c, const struct role_op *o, const struct frag *operand)
{
	int steps = o->u.product.steps, depth = o->u.product.form.depth * steps, words = frag_step_words(operand, depth);

	return arena_strf(c->a, "%s%s", operand->cols > depth ? arena_strf(c->a, " + ks * %d", words) : "", steps > 1 ?
		arena_strf(c->a, " + i * %d", words / steps) : "");
}

/* Both operands are in registers, of one step or of all; or, where they are fetched at once, of several. */
static void print_product_of_registers(struct print *c, const struct role_op *o)
{
	const struct product_form *f = &o->u.product.form;
	const struct frag *sum = o->u.product.sum.frag;
	int steps = o->u.product.steps;

	put(c, "%s%sEACH(cb, %d) %s(%s[rb] + cb * %d, %s[rb]%s, %s[cb]%s, %s);", steps > 1 ? arena_strf(c->a, "EACH(i, %d) ",
		steps) : "", each(c, sum, "b"), o->u.product.col_steps, product_name(c->a, f),
		frag_name(c, o->u.product.sum), frag_step_words(sum, f->cols), frag_name(c, o->u.product.a),
		step_offset(c, o, o->u.product.a.frag), frag_name(c, o->u.product.b), step_offset(c, o, o->u.product.b.frag),
		num(c, o->u.product.adds));
}

static void print_product(struct print *c, const struct role_op *o)
{
	const struct product_form *f = &o->u.product.form;
	const struct frag *sum = o->u.product.sum.frag;
	bool many_cols = o->u.product.col_steps > 1;

	if (f->b_registers) {
		print_product_of_registers(c, o);
		return;
	}
	put(c, "%s%sEACH(ks, %d) {", each(c, sum, "b"), many_cols ? arena_strf(c->a, "EACH(cb, %d) ",
		o->u.product.col_steps) : "", o->u.product.steps);
	if (!f->registers)
		put_descriptor(c, "da", &o->u.product.a_at);
	put_descriptor(c, "db", &o->u.product.b_at);
	put(c, "\t%s(%s[rb]%s%s, %s, db%s, %s);", product_name(c->a, f), frag_name(c, o->u.product.sum),
		o->u.product.first ? arena_strf(c->a, " + %d", frag_step_words(sum, o->u.product.first)) : "",
		many_cols ? arena_strf(c->a, " + cb * %d", frag_step_words(sum, f->cols)) : "",
		f->registers ? arena_strf(c->a, "&%s[rb][%d * ks]", frag_name(c, o->u.product.a),
		frag_step_words(o->u.product.a.frag, f->depth)) : "da", f->sparse ? ", pairs[rb][ks]" : "",
		num(c, o->u.product.adds));
	put(c, "}");
}

/* In each step along the contracted axis a thread computes the first operand for all of its rows, then goes through its
 * columns and adds their products. */
static void print_sum_product(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.sum_product.sum.frag;
	const char *type = register_type(f->type), *sum = frag_name(c, o->u.sum_product.sum);
	bool rows = has_rows(f);
	const char *each_row = each(c, f, rows ? "bh" : "");
	const char *x = rows ? "x[rb][h]" : "x[0][0]", *at = frag_element(c, f);

	put(c, "LOOP (int ks = 0; ks < %lld; ks++) {", (long long)o->u.sum_product.depth);
	if (is_tested(o->u.sum_product.inside))
		put(c, "\tif (!(%s)) continue;", num(c, o->u.sum_product.inside));
	put(c, "\t%s x[%d][%d];", type, rows ? f->blocks : 1, f->layout->halves);
	put(c, "\t%s%s = %s;", each_row, x, value(c, o->u.sum_product.a));
	put(c, "\t%s{", each(c, f, has_cols(f) ? "je" : ""));
	put(c, "\t\tconst %s y = %s;", type, value(c, o->u.sum_product.b));
	if (dtype_is_float(f->type))
		put(c, "\t\t%s%s%s += %s * y;", each_row, sum, at, x);
	else
		put(c, "\t\t%s%s%s = (int)((u32)%s%s + (u32)%s * (u32)y);", each_row, sum, at, sum, at, x);
	put(c, "\t}");
	put(c, "}");
}

/* element-wise ----------------------------------------------------------------- */

static void print_init(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.frag.at.frag;
	bool rows = has_rows(f);
	int n = f->kind == FRAG_FULL ? frag_block_words(f) : f->kind == FRAG_ROW ? f->layout->halves :
		f->kind == FRAG_COL ? frag_groups(f) * f->layout->pair : 1;

	put(c, "EACH(rb, %d) EACH(i, %d) %s%s = %s;", rows ? f->blocks : 1, n,
		frag_name(c, o->u.frag.at), rows ? "[rb][i]" : "[i]", value(c, o->u.frag.value));
}

/* The loops over a fragment's elements without the last one, over the neighbours of a thread. */
static const char *loops_of_neighbours(struct print *c, const struct frag *f)
{
	return each(c, f, has_rows(f) ? "bjh" : "j");
}

/* Stores the element at hand, of a fragment with the layout of another one. */
static const char *stored(struct print *c, struct frag_at to, const struct frag *over, const char *element)
{
	if (is_in_bits(c, to.frag))
		return arena_strf(c->a, "%s |= (u32)(%s) << %s", bits_word(c, to.frag), element,
			bits_number(c, to.frag));
	return arena_strf(c->a, "%s%s = %s", frag_name(c, to), frag_element(c, over), element);
}

/* Compilers do not compute the bits of truth values later. */
static void pin_bits(struct print *c, const struct frag *f)
{
	if (f && is_in_bits(c, f))
		put(c, "EACH(rb, %d) PIN_U(%s[rb], %d);", f->blocks, f->name, bits_block_words(f));
}

/* A loop over chunks of columns, of which a warp computes those that a thread of it needs. */
static void begin_chunks(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.map.over;

	put(c, "%sEACH(jj, %d) {", each(c, f, "b"), frag_groups(f) / o->u.map.chunk);
	c->indent++;
	c->skips = true;
	put(c, "bool some;");
	put(c, "{ const int j = %d * jj; some = ANY_OF_WARP(%s); }", o->u.map.chunk, num(c, o->u.map.some));
	put(c, "if (some) EACH(g, %d) {", o->u.map.chunk);
	c->indent++;
	put(c, "const int j = %d * jj + g;", o->u.map.chunk);
}

static void end_chunks(struct print *c, const struct role_op *o)
{
	const struct role_step *s = &o->u.map.steps.v[o->u.map.steps.n - 1];

	c->indent--;
	put(c, "} else EACH(g, %d) {", o->u.map.chunk);
	put(c, "\tconst int j = %d * jj + g;", o->u.map.chunk);
	put(c, "\t%s%s;", each(c, o->u.map.over, "he"), stored(c, (struct frag_at){ s->to, 0 }, s->to, value(c, s->value->arg[2])));
	put(c, "}");
	c->indent--;
	put(c, "}");
}

/* An element-wise loop, into one fragment or of several steps. Values that only later steps use take one register,
 * since an element passes through all steps before the next one. */
static void print_map(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.map.over;
	const char *loops = frag_loops(c, f);
	bool reads = false;

	for (int i = 0; i < o->u.map.steps.n; i++)
		note_nibbles(c, o->u.map.steps.v[i].value);
	/* without columns, as of a value with one element a row, no thread has neighbours */
	for (int i = 0; i < o->u.map.steps.n && has_cols(f); i++)
		reads |= begin_reads(c, o->u.map.steps.v[i].value);
	if (o->u.map.some)
		begin_chunks(c, o);
	if (reads) {
		put(c, "%s{", o->u.map.some ? each(c, f, "h") : loops_of_neighbours(c, f));
		c->indent++;
		if (o->u.map.apart)
			put(c, "if (j %% %d == 0%s) WARP_SYNC();", o->u.map.apart, has_rows(f) ? " && h == 0" : "");
		put_reads(c, "");
		loops = each(c, f, "e");
	} else if (o->u.map.some) {
		loops = each(c, f, "he");
	}
	if (o->u.map.to.frag) {
		put(c, "%s%s;", loops, stored(c, o->u.map.to, f, value(c, o->u.map.steps.v[0].value)));
	} else {
		put(c, "%s{", loops);
		for (int i = 0; i < o->u.map.steps.n; i++) {
			const struct role_step *s = &o->u.map.steps.v[i];

			put(c, "\tconst %s e%d = %s;", register_type(s->value->type), s->node, value(c, s->value));
			if (s->to)
				put(c, "\t%s;", stored(c, (struct frag_at){ s->to, 0 }, s->to,
					arena_strf(c->a, "e%d", s->node)));
		}
		put(c, "}");
	}
	end_reads(c);
	if (reads) {
		c->indent--;
		put(c, "}");
	}
	if (o->u.map.some)
		end_chunks(c, o);
	pin_bits(c, o->u.map.to.frag);
	for (int i = 0; i < o->u.map.steps.n; i++)
		pin_bits(c, o->u.map.steps.v[i].to);
}

static void put_pack_end(struct print *c, const struct role_op *o)
{
	put(c, "}");
	for (int i = 0; i < (o->u.pack.groups > 1) + (o->u.pack.rounds > 1); i++) {
		c->indent--;
		put(c, "}");
	}
}

/* The word of a pair. One that no product makes, but that must stand where it is, is multiplied by 1. */
static const char *pair_word(struct print *c, const struct role_op *o)
{
	const char *text = pair_text(c, o->u.pack.type, o->u.pack.value, o->u.pack.ordered);

	if (!o->u.pack.ordered || o->u.pack.value->kind == VAL_OP)
		return text;
	c->ordered_pairs = true;
	return arena_strf(c->a, "mul_pair_%s_here(%s, %s)", dtype_name(o->u.pack.type), text,
		o->u.pack.type == DT_BF16 ? "0x3f803f80u" : "0x3c003c00u");
}

static void print_pack(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.pack.to.frag;
	const char *word = arena_strf(c->a, "%s%s", frag_name(c, o->u.pack.to), frag_word(c, f, "j"));
	const char *pack = o->u.pack.short_nans ? "short_bf16" : dtype_name(o->u.pack.type);

	if (o->u.pack.rounds > 1) {
		put(c, "%sEACH(round, %d) %s{", each(c, f, "b"), frag_groups(f) / (o->u.pack.groups * o->u.pack.rounds),
			each(c, f, "h"));
		begin_reads(c, o->u.pack.value);
		put(c, "\tconst int first = %d * round;", o->u.pack.groups * o->u.pack.rounds);
		put_wide_reads(c, "\t", true);
		c->indent++;
		put(c, "EACH(jj, %d) {", o->u.pack.rounds);
		put(c, "\tconst int first = %d * round + %d * jj;", o->u.pack.groups * o->u.pack.rounds, o->u.pack.groups);
		put_wide_reads(c, "\t", false);
		c->indent++;
		put(c, "EACH(g, %d) {", o->u.pack.groups);
		put(c, "\tconst int j = first + g;");
	} else if (o->u.pack.groups > 1) {
		put(c, "%sEACH(jj, %d) %s{", each(c, f, "b"), frag_groups(f) / o->u.pack.groups, each(c, f, "h"));
		begin_reads(c, o->u.pack.value);
		put(c, "\tconst int first = %d * jj;", o->u.pack.groups);
		put_wide_reads(c, "\t", false);
		c->indent++;
		put(c, "EACH(g, %d) {", o->u.pack.groups);
		put(c, "\tconst int j = first + g;");
	} else {
		put(c, "%s{", each(c, f, "bjh"));
	}
	if (begin_reads(c, o->u.pack.value))
		put_reads(c, "\t");
	if (o->u.pack.pairs) {
		put(c, "\t%s %s = %s; }", each_word(c, f), word, pair_word(c, o));
		if (is_tested(o->u.pack.inside))
			put(c, "\t%sif (!(%s)) %s &= e%s ? 0xffffu : 0xffff0000u;", each(c, f, "e"), num(c, o->u.pack.inside), word,
				frag_words_together(f) > 1 ? " & 1" : "");
		end_reads(c);
		put_pack_end(c, o);
		return;
	}
	c->pairs |= o->u.pack.short_nans;
	put(c, "\tfloat y[%d]; %sy[e] = %s;", f->layout->pair, each(c, f, "e"), is_tested(o->u.pack.inside) ?
		arena_strf(c->a, "(%s ? %s : 0.f)", num(c, o->u.pack.inside), value(c, o->u.pack.value)) :
		value(c, o->u.pack.value));
	end_reads(c);
	if (frag_words_together(f) == 1)
		put(c, "\t%s = pack_%s(y[0], y[1]);", word, pack);
	else
		put(c, "\t%s %s = pack_%s(y[e], y[e + 1]); }", each_word(c, f), word, pack);
	put_pack_end(c, o);
}

static void print_keep(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.pack.to.frag;
	const char *to = frag_name(c, o->u.pack.to), *from = o->u.pack.from->name;

	if (!f->packed) {
		put(c, "%s%s%s = %s%s;", frag_loops(c, f), to, frag_element(c, f), from, frag_element(c, f));
		return;
	}
	put(c, "%sEACH(i, %d) %s[rb][i] = %s[rb][i];", each(c, f, "b"), frag_block_words(f), to, from);
	if (is_tested(o->u.pack.inside))
		put(c, "%sif (!(%s)) %s%s &= e%s ? 0xffffu : 0xffff0000u;", frag_loops(c, f), num(c, o->u.pack.inside),
			to, frag_word(c, f, "j"), frag_words_together(f) > 1 ? " & 1" : "");
}

/* reductions and scans --------------------------------------------------------- */

static const char *shuffled(struct print *c, enum dtype t, const char *how, const char *x, const char *lane)
{
	return arena_strf(c->a, "shuffle_%s%s(%s, %s)", how, dtype_is_float(t) ? "" : "_i", x, lane);
}

/* A loop over a thread's rows, if the fragment has rows. */
static const char *each_row(struct print *c, const struct frag *f)
{
	return each(c, f, has_rows(f) ? "bh" : "");
}

/* Combines y with the value z of each iteration of the loops. */
static void put_join(struct print *c, const char *loops, const struct role_op *o, const char *z)
{
	enum dtype t = o->u.reduce.to->type;

	put(c, "\t%s{ const %s z = %s; y = %s; }", loops, register_type(t), z, joined(c, o->u.reduce.op, t, "y", "z"));
}

static bool chooses(const struct val *v)
{
	bool is = v->kind == VAL_GUARD || (v->kind == VAL_OP && v->op == OP_WHERE);

	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		is |= chooses(v->arg[i]);
	return is;
}

/* The same with the value of an element. A choice inside of another one is made before it: compilers would jump over
 * it. */
static void put_join_value(struct print *c, const char *loops, const struct role_op *o)
{
	const struct val *v = o->u.reduce.value;
	enum dtype t = o->u.reduce.to->type;

	if (v->kind != VAL_GUARD || !is_tested(v->num) || role_reads_shared(v->arg[0]) || !chooses(v->arg[0])) {
		put_join(c, loops, o, value(c, v));
		return;
	}
	put(c, "\t%s{", loops);
	put(c, "\t\tconst %s x = %s;", register_type(t), value(c, v->arg[0]));
	put(c, "\t\tconst %s z = %s ? x : %s; y = %s;", register_type(t), num(c, v->num), value(c, v->arg[1]),
		joined(c, o->u.reduce.op, t, "y", "z"));
	put(c, "\t}");
}

/* Combines y with those of the other threads of the warp in a spread. */
static void put_exchange(struct print *c, const struct role_op *o, const struct spread *across)
{
	put_join(c, each_exchange(c, across), o, shuffled(c, o->u.reduce.to->type, "xor", "y", spread_mask(c, across)));
}

/* Address in the scratch of a partial result: number `at` of the `n` of a warp, or in a scan of a row. */
static const char *scratch_address(struct print *c, const struct role_op *o, const char *of, const char *at, int64_t n)
{
	return arena_strf(c->a, "shared + %s + 4 * (%s * %lld + %s)",
		by_lane(c, o->u.reduce.scratch, second_of(o)->u.reduce.scratch), of, (long long)n, at);
}

/* Each warp writes its partial results to the scratch, and behind a barrier every thread combines those of all warps.
 * `loops`: over a thread's partial results; `element`: subscript of one in its registers; `holds`: condition of the
 * threads that write it; `at`: its number among the warp's n in the scratch. Where parts of the lane divide columns,
 * the results of a row are joined over all parts, and those of a column over the warps of one. */
static void join_warps(struct print *c, const struct role_op *o, const char *loops, const char *element,
	const char *holds, const char *at, int64_t n)
{
	enum dtype t = o->u.reduce.to->type, kept = dtype_is_float(t) ? DT_F32 : DT_I32;
	const char *name = o->u.reduce.to->name, *warp = "w";
	int parts = layout_parts(o->u.reduce.over->layout), rows = c->role->warps / parts;
	int joined = parts == 1 ? c->role->warps : o->u.reduce.along_rows ? rows : parts;

	if (parts > 1 && o->u.reduce.along_rows)
		warp = arena_strf(c->a, "(thread / %d * %d + w)", rows * warp_threads(c), rows);
	else if (parts > 1)
		warp = arena_strf(c->a, "(thread %% %d / %d + w * %d)", rows * warp_threads(c), warp_threads(c), rows);
	put_lane_sync(c);
	put(c, "if (%s) %s%s", holds, loops, shared_put(c, kept, scratch_address(c, o, arena_strf(c->a,
		"(thread / %d)", warp_threads(c)), at, n), arena_strf(c->a, "%s%s", name, element)));
	put_lane_sync(c);
	put(c, "%s{", loops);
	put(c, "\t%s y = %s;", register_type(t), value(c, o->u.reduce.zero));
	put_join(c, arena_strf(c->a, "EACH(w, %d) ", joined), o,
		shared_get(c, kept, scratch_address(c, o, warp, at, n)));
	put(c, "\t%s%s = y;", name, element);
	put(c, "}");
}

/* Along columns, to one result a row: each thread reduces its own elements of the row, then the threads of its warp that
 * have the row combine their results, then, where a row is spread over them, the lane's warps. */
static void print_reduce_columns(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	const char *type = register_type(o->u.reduce.to->type);

	put(c, "%s{", each_row(c, f));
	put(c, "\t%s y = %s;", type, value(c, has_cols(f) ? o->u.reduce.zero : o->u.reduce.value));
	if (has_cols(f) && begin_reads(c, o->u.reduce.value)) {
		put(c, "\t%s{", each(c, f, "j"));
		put_reads(c, "\t\t");
		put_join_value(c, arena_strf(c->a, "\t%s", each(c, f, "e")), o);
		put(c, "\t}");
	} else if (has_cols(f)) {
		put_join_value(c, each(c, f, "je"), o);
	}
	end_reads(c);
	if (!o->u.reduce.partial)
		put_exchange(c, o, &f->layout->col);
	put(c, "\t%s%s = y;", o->u.reduce.to->name, has_rows(f) ? "[rb][h]" : "[0]");
	put(c, "}");
	if (!role_joins_warps(o, c->role->warps))
		return;
	if (layout_parts(f->layout) > 1 && has_rows(f))
		join_warps(c, o, each_row(c, f), "[rb][h]", spread_is_first(c, &f->layout->col), arena_strf(c->a,
			"(rb * %d + %s + %d * h)", f->layout->rows, spread_text(c, &f->layout->row), f->layout->half),
			(int64_t)f->blocks * f->layout->rows);
	else
		join_warps(c, o, each_row(c, f), has_rows(f) ? "[rb][h]" : "[0]", arena_strf(c->a, "thread %% %d < 1",
			warp_threads(c)), has_rows(f) ? arena_strf(c->a, "(rb * %d + h)", f->layout->halves) : "0",
			has_rows(f) ? (int64_t)f->blocks * f->layout->halves : 1);
}

/* The number of a column's partial result in the scratch. Where a warp has a row the first neighbours of all threads come
 * first, then the second ones, so that they are in different banks. */
static const char *column_in_scratch(struct print *c, const struct frag_layout *l)
{
	if (l->col.mod < warp_threads(c))
		return arena_strf(c->a, "%d * j + col0 + e", l->cols);
	return arena_strf(c->a, "%d * j + %d * e + col0 / %d", l->cols, l->cols / l->pair, l->pair);
}

/* Along rows, where a thread reads several neighbouring columns at once: it reduces all of them together. */
static void put_columns_together(struct print *c, const struct role_op *o, const char *element)
{
	const struct frag *f = o->u.reduce.over;
	enum dtype t = o->u.reduce.to->type;

	put(c, "%s{", each(c, f, "j"));
	put(c, "\t%s x[%d]; %sx[e] = %s;", register_type(t), f->layout->pair, each(c, f, "e"), value(c, o->u.reduce.zero));
	put(c, "\t%s{", each(c, f, "bh"));
	put_reads(c, "\t\t");
	put(c, "\t\t%s{ const %s z = %s; x[e] = %s; }", each(c, f, "e"), register_type(t), value(c, o->u.reduce.value),
		joined(c, o->u.reduce.op, t, "x[e]", "z"));
	put(c, "\t}");
	put(c, "\t%s{", each(c, f, "e"));
	put(c, "\t\t%s y = x[e];", register_type(t));
	c->indent++;
	put_exchange(c, o, &f->layout->row);
	c->indent--;
	put(c, "\t\t%s%s = y;", o->u.reduce.to->name, element);
	put(c, "\t}");
	put(c, "}");
}

/* Along rows: each thread reduces its own elements of a column, then the threads of its warp that have the column
 * combine their results, then the lane's warps. */
static void print_reduce_rows(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	bool full = f->kind == FRAG_FULL;
	const char *columns = each(c, f, full ? "je" : "");
	const char *element = full ? arena_strf(c->a, "[j * %d + e]", f->layout->pair) : "[0]";

	if (o->u.reduce.to->kind == FRAG_FULL)	/* of a single row, as values of one axis may lie */
		element = arena_strf(c->a, "[0][j * %d + e]", f->layout->halves * f->layout->pair);
	if (full && begin_reads(c, o->u.reduce.value)) {
		put_columns_together(c, o, element);
	} else {
		put(c, "%s{", columns);
		put(c, "\t%s y = %s;", register_type(o->u.reduce.to->type), value(c, o->u.reduce.zero));
		put_join_value(c, each(c, f, "bh"), o);
		put_exchange(c, o, &f->layout->row);
		put(c, "\t%s%s = y;", o->u.reduce.to->name, element);
		put(c, "}");
	}
	end_reads(c);
	if (role_joins_warps(o, c->role->warps))
		join_warps(c, o, columns, element, full ? spread_is_first(c, &f->layout->row) : arena_strf(c->a,
			"thread %% %d < 1", warp_threads(c)), full ? column_in_scratch(c, f->layout) : "0",
			full ? frag_part_cols(f) : 1);
}

/* The part of a row's spread that is within a warp. */
static struct spread within_warp(struct print *c, const struct spread *s)
{
	struct spread part = *s;

	part.mod = s->div * s->mod > warp_threads(c) ? warp_threads(c) / s->div : s->mod;
	return part;
}

/* y becomes the running value over the threads of a spread, from y of each of them. */
static void put_scan_threads(struct print *c, const struct role_op *o, const struct spread *s, const char *indent,
	const char *y)
{
	enum dtype t = o->u.reduce.to->type;

	put(c, "%s%s{ up = %s; if (%s >= 1 << o) %s = %s; }", indent, each_exchange(c, s), shuffled(c, t, "from",
		y, arena_strf(c->a, "(thread - (%s)) & %d", spread_mask(c, s), warp_threads(c) - 1)),
		spread_digit(c, s), y, joined(c, o->u.reduce.op, t, "up", y));
	put(c, "%sup = %s;", indent, shuffled(c, t, "from", y, arena_strf(c->a, "(thread - %d) & %d", s->div,
		warp_threads(c) - 1)));
	put(c, "%sif (%s) up = %s;", indent, spread_is_first(c, s), value(c, o->u.reduce.zero));
}

/* y of the spread's last thread. */
static const char *of_last(struct print *c, enum dtype t, const struct spread *s, const char *y)
{
	return shuffled(c, t, "from", y, arena_strf(c->a, "thread & %d | %d", warp_threads(c) - 1,
		(s->mod - 1) * s->div));
}

/* Behind a barrier, each warp goes over the parts of all warps in the order of the columns, group by group and in each
 * warp by warp, and adds to its elements what is before them. A round has the parts of as many groups as a warp has
 * threads for. */
static void put_scan_warps(struct print *c, const struct role_op *o, const char *row)
{
	const struct frag *f = o->u.reduce.over;
	enum dtype t = o->u.reduce.to->type, kept = dtype_is_float(t) ? DT_F32 : DT_I32;
	const char *type = register_type(t), *zero = value(c, o->u.reduce.zero);
	const struct spread all = { 1, warp_threads(c), 1 };
	int warps = c->role->warps, groups = frag_groups(f), together = warp_threads(c) / warps;
	int64_t parts = (int64_t)groups * warps;

	put_lane_sync(c);
	put(c, "%s{", each_row(c, f));
	put(c, "\t%s before = %s;", type, zero);
	put(c, "\tEACH(i, %d) {", (groups + together - 1) / together);
	put(c, "\t\tconst int part = i * %d + thread %% %d;", together * warps, warp_threads(c));
	put(c, "\t\t%s y = %s, up;", type, zero);
	put(c, "\t\tif (%spart < %lld) y = %s;", together * warps < warp_threads(c) ? arena_strf(c->a,
		"thread %% %d < %d && ", warp_threads(c), together * warps) : "", (long long)parts, shared_get(c, kept,
		scratch_address(c, o, row, "part", parts)));
	put_scan_threads(c, o, &all, "\t\t", "y");
	put(c, "\t\tup = %s;", joined(c, o->u.reduce.op, t, "before", "up"));
	put(c, "\t\tbefore = %s;", joined(c, o->u.reduce.op, t, "before", of_last(c, t, &all, "y")));
	put(c, "\t\tEACH(k, %d) {", together);
	put(c, "\t\t\tconst int j = i * %d + k;", together);
	put(c, "\t\t\tconst %s z = %s;", type, shuffled(c, t, "from", "up", arena_strf(c->a, "k * %d + thread / %d",
		warps, warp_threads(c))));
	put(c, "\t\t\tif (j < %d) %s%s%s = %s;", groups, each(c, f, "e"), o->u.reduce.to->name, frag_element(c, f),
		joined(c, o->u.reduce.op, t, "z", arena_strf(c->a, "%s%s", o->u.reduce.to->name, frag_element(c, f))));
	put(c, "\t\t}");
	put(c, "\t}");
	put(c, "}");
}

/* The running value along the columns combines a thread's own neighbours, those before them in the threads of its warp
 * that have the row, and the groups of columns before. If a row is spread over the lane's warps, each keeps its part of
 * each group for the others instead. */
static void print_scan(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	enum dtype t = o->u.reduce.to->type;
	enum op op = o->u.reduce.op;
	const char *type = register_type(t), *zero = value(c, o->u.reduce.zero);
	const struct spread s = within_warp(c, &f->layout->col);
	const char *row = has_rows(f) ? arena_strf(c->a, "(rb * %d + h)", f->layout->halves) : "0";
	bool joins = role_joins_warps(o, c->role->warps);
	int pair = f->layout->pair;

	if (joins)
		put_lane_sync(c);
	put(c, "%s{", each_row(c, f));
	if (!joins)
		put(c, "\t%s before = %s;", type, zero);
	put(c, "\t%s{", each(c, f, "j"));
	if (begin_reads(c, o->u.reduce.value))
		put_reads(c, "\t\t");
	put(c, "\t\t%s y[%d], up, quad;", type, pair);
	put(c, "\t\t%sy[e] = %s;", each(c, f, "e"), value(c, o->u.reduce.value));
	end_reads(c);
	for (int e = 1; e < pair; e++)
		put(c, "\t\ty[%d] = %s;", e, joined(c, op, t, arena_strf(c->a, "y[%d]", e - 1),
			arena_strf(c->a, "y[%d]", e)));
	put(c, "\t\tquad = y[%d];", pair - 1);
	put_scan_threads(c, o, &s, "\t\t", "quad");
	if (!joins)
		put(c, "\t\tup = %s;", joined(c, op, t, "before", "up"));
	put(c, "\t\t%s%s%s = %s;", each(c, f, "e"), o->u.reduce.to->name, frag_element(c, f),
		joined(c, op, t, "up", "y[e]"));
	if (joins) {
		put(c, "\t\tif (thread %% %d == %d) %s", warp_threads(c), warp_threads(c) - 1, shared_put(c,
			dtype_is_float(t) ? DT_F32 : DT_I32, scratch_address(c, o, row, arena_strf(c->a,
			"j * %d + thread / %d", c->role->warps, warp_threads(c)),
			(int64_t)frag_groups(f) * c->role->warps), "quad"));
	} else {
		put(c, "\t\tquad = %s;", of_last(c, t, &s, "quad"));
		put(c, "\t\tbefore = %s;", joined(c, op, t, "before", "quad"));
	}
	put(c, "\t}");
	put(c, "}");
	if (joins)
		put_scan_warps(c, o, row);
}

/* Line by line in shared memory, each by one thread. */
static void print_lines(struct print *c, const struct role_op *o)
{
	enum dtype t = o->u.lines.type;
	const char *type = register_type(t), *result = shared_put(c, o->u.lines.kept, num(c, o->u.lines.to), "y");
	bool running = o->u.lines.running;

	put(c, "LOOP (int at = thread; at < %lld; at += %d) %s{", (long long)o->u.lines.n, lane_threads(c),
		is_tested(o->u.lines.when) ? arena_strf(c->a, "if (%s) ", num(c, o->u.lines.when)) : "");
	put(c, "\t%s y = %s;", type, value(c, o->u.lines.zero));
	put(c, "\tLOOP (int along = 0; along < %s; along++) {", num(c, o->u.lines.length));
	put(c, "\t\tconst %s z = %s;", type, value(c, o->u.lines.value));
	put(c, "\t\ty = %s;", joined(c, o->u.lines.op, t, "y", "z"));
	if (running)
		put(c, "\t\t%s", result);
	put(c, "\t}");
	if (!running)
		put(c, "\t%s", result);
	put(c, "}");
}

/* The elements of the result are independent, so a thread has one read under way for each. */
static void print_reduce_shared(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.to;
	const struct num *length = o->u.reduce.length;
	bool unrolls = num_is_const(length) && length->k <= REDUCE_SHARED_UNROLLED;
	const char *element = arena_strf(c->a, "%s%s", f->name, frag_element(c, f));
	const char *type = register_type(f->type);

	put(c, "%s%s = %s;", frag_loops(c, f), element, value(c, o->u.reduce.zero));
	put(c, unrolls ? "EACH(along, %s) {" : "LOOP (int along = 0; along < %s; along++) {", num(c, length));
	put(c, "\t%s{", each(c, f, has_rows(f) ? has_cols(f) ? "bjh" : "bh" : has_cols(f) ? "j" : ""));
	if (begin_reads(c, o->u.reduce.value))
		put_reads(c, "\t\t");
	put(c, "\t\t%s{ const %s z = %s; %s = %s; }", each(c, f, has_cols(f) ? "e" : ""), type, value(c, o->u.reduce.value),
		element, joined(c, o->u.reduce.op, f->type, element, "z"));
	end_reads(c);
	put(c, "\t}");
	put(c, "}");
}

void print_math(struct print *c, const struct role_op *o)
{
	switch ((int)o->what) {
	case DO_PRODUCT: print_product(c, o); break;
	case DO_SUM_PRODUCT: print_sum_product(c, o); break;
	case DO_INIT: print_init(c, o); break;
	case DO_MAP: print_map(c, o); break;
	case DO_PACK: print_pack(c, o); break;
	case DO_KEEP: print_keep(c, o); break;
	case DO_REDUCE: (o->u.reduce.along_rows ? print_reduce_rows : print_reduce_columns)(c, o); break;
	case DO_SUM_PARTS: print_parts(c, o); break;
	case DO_REDUCE_SHARED: print_reduce_shared(c, o); break;
	case DO_SCAN: print_scan(c, o); break;
	case DO_LINES: print_lines(c, o); break;
	default: BUG("'%s' has no text", role_op_info[o->what].name);
	}
}
