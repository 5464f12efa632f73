/* Prints fetches of operands from shared memory to the registers of matrix instructions. */
#include "emit/print.h"

/* Loads from shared memory to registers in the layout of an instruction: word by word, with the first element in the
 * low bits. */
static void fetch_by_threads(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.fetch.to.frag;
	const char *from = num(c, o->u.fetch.address);
	const char *word = arena_strf(c->a, "%s%s", frag_name(c, o->u.fetch.to), frag_word(c, f, "j"));
	bool moved = f->layout != layout(c);	/* coordinates are those of its layout */
	bool hides = c->r->target->hides_fetches;
	const char *groups = each(c, f, has_rows(f) ? "bjh" : "j");
	int bits = dtype_bits(f->type), together = frag_words_together(f);

	if (moved || hides) {
		put(c, "{");
		c->indent++;
	}
	if (hides)
		put_thread(c, "opaque(THREAD)", false, f->layout);
	else if (moved)
		put_coordinates(c, f->layout);
	if (o->u.fetch.groups == 4) {
		c->vectors = true;
		put(c, "%sEACH(jj, %d) %s{", each(c, f, "b"), frag_groups(f) / 4, each(c, f, "h"));
		put(c, "\tu32 x[4]%s; { const int j = 4 * jj, e = 0; %sshared_16(x, %s); }",
			is_tested(o->u.fetch.inside) ? " = { 0 }" : "", guard_text(c, o->u.fetch.inside), from);
		put(c, "\tEACH(g, 4) { const int j = 4 * jj + g, e = 0; %s = x[g]; }", word);
	} else if (o->u.fetch.by == FETCH_WORDS && (together == 2 || together == 4)) {
		put(c, "%s{", groups);
		put(c, "\tconst int e = 0;");
		put(c, "\t%sshared_%d(&%s, %s);", guard_text(c, o->u.fetch.inside), 4 * together, word, from);
		if (is_tested(o->u.fetch.inside))
			put(c, "\telse EACH(i, %d) (&%s)[i] = 0;", together, word);
	} else if (o->u.fetch.by == FETCH_WORDS) {
		put(c, together > 1 ? "%s%s" : "%s{", groups, each_word(c, f));
		if (together == 1)
			put(c, "\tconst int e = 0;");
		put(c, "\t%s = %sshared_u32(%s)%s;", word, is_tested(o->u.fetch.inside) ? arena_strf(c->a,
			"%s ? ", num(c, o->u.fetch.inside)) : "", from, is_tested(o->u.fetch.inside) ? " : 0" : "");
	} else {
		put(c, "%s{", groups);
		put(c, "\t%s%s = 0;%s", together > 1 ? each_word(c, f) : "", word, together > 1 ? " }" : "");
		put(c, "\t%s%s%s |= (u32)shared_u%d(%s) << %d * %s;", each(c, f, "e"),
			guard_text(c, o->u.fetch.inside), word, bits, from, bits, together > 1 ?
			arena_strf(c->a, "(e & %d)", frag_word_cols(f) - 1) : "e");
	}
	put(c, "}");
	if (moved || hides) {
		c->indent--;
		put(c, "}");
	}
}

/* Fetches rows of 16, from number `first` of them on and before `end`, in steps of 32 bytes of the columns: four words of a thread. The
 * address of a thread is that of one row, or column, of one of the four matrices. These come in the order of the words: first
 * along the rows' halves of a layout that has these, else along the columns. `single`: there are eight rows alone, so the
 * threads of the other eight give the same addresses again. */
static void fetch_rows(struct print *c, const struct role_op *o, int first, int end, bool single)
{
	const struct frag *f = o->u.fetch.to.frag;
	const struct frag_layout *l = f->layout;
	bool across = o->u.fetch.by == FETCH_MATRICES_ACROSS, halves = l->halves == 2;
	const char *block = first ? arena_strf(c->a, "%d + block", first) : "block";

	if (first == end)
		return;
	put(c, "EACH(block, %d) EACH(step, %lld) {", end - first, (long long)f->cols / (2 * l->cols));
	if (halves)
		put(c, "\tconst int rb = %s, h = thread / 8 %% 2, j = 2 * step + thread / 16 %% 2, e = 0;", block);
	else
		put(c, "\tconst int rb = 2 * (%s)%s, j = 2 * step + thread / 8 %% 2, e = 0;", block, single ? "" :
			" + thread / 16 % 2");
	put(c, "\tu32 x[4]; shared_matrices%s(x, %s%s);", across ? "_across" : "", is_tested(o->u.fetch.inside) ?
		arena_strf(c->a, "!(%s) ? %s : ", num(c, o->u.fetch.inside), num(c, o->u.fetch.slot)) : "",
		num(c, o->u.fetch.address));
	if (halves)
		put(c, "\tEACH(i, 4) %s[%s][4 * step + i] = x[i];", frag_name(c, o->u.fetch.to), block);
	else
		put(c, "\tEACH(i, %d) %s[2 * (%s) + i / 2][2 * step + i %% 2] = x[i];", single ? 2 : 4,
			frag_name(c, o->u.fetch.to), block);
	put(c, "}");
}

/* A warp's operand in matrices of 8 x 8. */
static void fetch_matrices(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.fetch.to.frag;
	const struct frag_layout *l = f->layout;
	bool across = o->u.fetch.by == FETCH_MATRICES_ACROSS;
	const char *warp = warp_row_text(c, l);
	int rows = f->blocks * l->rows / (2 * MATRIX_ROWS), odd = f->blocks * l->rows % (2 * MATRIX_ROWS) != 0;

	c->matrices = true;
	put(c, "{");
	c->indent++;
	if (across)
		put(c, "const int row0 = %s, col0 = thread %% 8;", warp ? warp : "0");
	else
		put(c, "const int row0 = %s%sthread %% 8, col0 = 0;", warp ? warp : "", warp ? " + " : "");
	fetch_rows(c, o, 0, rows, false);
	fetch_rows(c, o, rows, rows + odd, true);
	c->indent--;
	put(c, "}");
	if (!is_tested(o->u.fetch.contracted))
		return;
	put(c, "{");
	c->indent++;
	put_coordinates(c, f->layout);
	put(c, "%sif (!(%s)) %s%s &= %s;", each(c, f, "bjhe"), num(c, o->u.fetch.contracted),
		frag_name(c, o->u.fetch.to), frag_word(c, f, "j"),
		frag_word_cols(f) == 2 ? "e ? 0xffff : 0xffff0000" : frag_word_cols(f) == 4 ? "~(0xffu << 8 * e)" : "0");
	c->indent--;
	put(c, "}");
}

void print_fetch(struct print *c, const struct role_op *o)
{
	if (o->u.fetch.by == FETCH_MATRICES || o->u.fetch.by == FETCH_MATRICES_ACROSS)
		fetch_matrices(c, o);
	else
		fetch_by_threads(c, o);
}
