/* Prints values and numbers as C text. */
#include "emit/print.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void put(struct print *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *s = arena_vstrf(c->a, fmt, ap);
	va_end(ap);
	buf_repeat(c->out, "\t", c->indent);
	buf_puts(c->out, s);
	buf_putc(c->out, '\n');
}

/* Is it a sum of numbers that are not negative, whatever part of it is left out? */
static bool adds_counts(const struct num *x)
{
	static const enum var counts[] = { VAR_COL_GROUP, VAR_COL0, VAR_ROW0, VAR_RB, VAR_H, VAR_E, VAR_LO };
	bool is = false;

	for (int i = 0; x->op == NUM_VAR && i < LEN(counts); i++)
		is |= x->var == counts[i];
	if (x->op == NUM_ADD || x->op == NUM_MUL)
		return adds_counts(x->a) && adds_counts(x->b);
	return is || (x->op == NUM_CONST && x->k >= 0) || x->op == NUM_MOD || x->op == NUM_DIV;
}

/* The sum, of which multiples of the period do not matter. */
static const struct num *without_periods(struct arena *a, const struct num *x, int64_t period)
{
	bool constant = x->op == NUM_MUL && num_uses(x, VAR_COL_GROUP) && (num_is_const(x->a) || num_is_const(x->b));

	if (x->op == NUM_ADD)
		return num_make(a, NUM_ADD, without_periods(a, x->a, period), without_periods(a, x->b, period));
	return constant ? num_make(a, NUM_MOD, x, num_const(a, period)) : x;
}

/* Quotients and remainders of elements of a thread repeat from group to group of columns. Which of them are the same,
 * nvcc does not know of numbers that are no powers of two: a remainder says so, which is a constant once the loop over
 * groups is unrolled. */
static const struct num *expose_periods(struct arena *a, const struct num *x)
{
	const struct num *sum, *divided, *parts[] = { x->a, x->b, x->c };
	struct num *n;
	int64_t period;

	for (int i = 0; i < LEN(parts); i++)
		parts[i] = parts[i] ? expose_periods(a, parts[i]) : NULL;
	if (parts[0] != x->a || parts[1] != x->b || parts[2] != x->c) {
		n = arena_copy(a, x, 1, sizeof(*x));
		n->a = parts[0];
		n->b = parts[1];
		n->c = parts[2];
		x = n;
	}
	if (x->op != NUM_MOD || !num_is_const(x->b))
		return x;
	divided = x->a->op == NUM_DIV && num_is_const(x->a->b) ? x->a : NULL;
	sum = divided ? divided->a : x->a;
	period = x->b->k * (divided ? divided->b->k : 1);
	if (sum->op != NUM_ADD || !adds_counts(sum) || !num_uses(sum, VAR_COL_GROUP) || period < 1 ||
	    !(period & (period - 1)))
		return x;
	sum = without_periods(a, sum, period);
	return num_make(a, NUM_MOD, divided ? num_make(a, NUM_DIV, sum, divided->b) : sum, x->b);
}

const char *num(struct print *c, const struct num *x)
{
	return num_text(c->a, expose_periods(c->a, x), &c->r->names);
}

const char *by_lane(struct print *c, int64_t first, int64_t second)
{
	if (first == second)
		return arena_strf(c->a, "%lld", (long long)first);
	return arena_strf(c->a, "(%lld + who * %lld)", (long long)first, (long long)(second - first));
}

/* fragments -------------------------------------------------------------------- */

const char *register_type(enum dtype t)
{
	return dtype_is_float(t) ? "float" : t == DT_BOOL ? "bool" : "int";
}

const char *frag_type(const struct frag *f)
{
	return f->packed ? "u32" : f->versions && f->type == DT_BOOL ? "int" : register_type(f->type);
}

const char *frag_dims(struct print *c, const struct frag *f)
{
	switch (f->kind) {
	case FRAG_FULL: return arena_strf(c->a, "[%d][%d]", f->blocks, frag_block_words(f));
	case FRAG_ROW: return arena_strf(c->a, "[%d][%d]", f->blocks, f->layout->halves);
	case FRAG_COL: case FRAG_WORDS: return arena_strf(c->a, "[%d]", frag_words(f));
	case FRAG_SCALAR:
		break;
	}
	return "[1]";
}

const char *frag_name(struct print *c, struct frag_at at)
{
	return at.frag->versions ? arena_strf(c->a, "%s[%d]", at.frag->name, at.version) : at.frag->name;
}

/* Index of the element at hand in its array of registers. */
const char *frag_element(struct print *c, const struct frag *f)
{
	const struct frag_layout *l = f->layout;

	switch (f->kind) {
	case FRAG_FULL: return arena_strf(c->a, "[rb][(j * %d + h) * %d + e]", l->halves, l->pair);
	case FRAG_ROW: return "[rb][h]";
	case FRAG_COL: return arena_strf(c->a, "[j * %d + e]", l->pair);
	case FRAG_WORDS: BUG("words are not elements");
	case FRAG_SCALAR:
		break;
	}
	return "[0]";
}

bool is_in_bits(const struct print *c, const struct frag *f)
{
	for (int i = 0; i < c->role->bits.n; i++)
		if (c->role->bits.v[i] == f)
			return true;
	return false;
}

int bits_block_words(const struct frag *f)
{
	return (int)ceil_div(frag_block_words(f), 32);
}

const char *bits_number(struct print *c, const struct frag *f)
{
	const struct frag_layout *l = f->layout;

	return arena_strf(c->a, "((j * %d + h) * %d + e) %% 32", l->halves, l->pair);
}

const char *bits_word(struct print *c, const struct frag *f)
{
	const struct frag_layout *l = f->layout;

	return arena_strf(c->a, "%s[rb][((j * %d + h) * %d + e) / 32]", f->name, l->halves, l->pair);
}

const char *frag_word(struct print *c, const struct frag *f, const char *group)
{
	int words = frag_words_together(f);

	if (f->kind == FRAG_COL)
		return words == 1 ? arena_strf(c->a, "[%s]", group) :
			arena_strf(c->a, "[%s * %d + e / %d]", group, words, frag_word_cols(f));
	return words == 1 ? arena_strf(c->a, "[rb][%s * %d + h]", group, f->layout->halves) :
		arena_strf(c->a, "[rb][(%s * %d + h) * %d + e / %d]", group, f->layout->halves, words,
			frag_word_cols(f));
}

const char *half_at(struct print *c, struct frag_at at)
{
	return arena_strf(c->a, "half_of(%s%s, e%s)", frag_name(c, at), frag_word(c, at.frag, "j"),
		frag_words_together(at.frag) > 1 ? " & 1" : "");
}

const char *each_word(struct print *c, const struct frag *f)
{
	int words = frag_words_together(f);

	return words == 1 ? "{ const int e = 0;" : arena_strf(c->a, "EACH(i, %d) { const int e = %d * i;", words,
		frag_word_cols(f));
}

const char *each(struct print *c, const struct frag *f, const char *loops)
{
	const char *text = "";

	for (; *loops; loops++)
		text = arena_strf(c->a,
			"%sEACH(%s%c, %d) ", text, *loops == 'b' ? "r" : "", *loops, *loops == 'b' ? f->blocks :
			*loops == 'j' ? frag_groups(f) : *loops == 'h' ? f->layout->halves : f->layout->pair);
	return text;
}

const char *frag_loops(struct print *c, const struct frag *f)
{
	return each(c, f, has_rows(f) ? has_cols(f) ? "bjhe" : "bh" : has_cols(f) ? "je" : "");
}

/* threads ---------------------------------------------------------------------- */

const char *spread_digit(struct print *c, const struct spread *s)
{
	int warp = warp_threads(c);

	if (spread_is_top(s, c->r->target))
		return arena_strf(c->a, s->div > 1 ? "thread %% %d / %d" : "thread %% %d", warp, s->div);
	return s->div > 1 ? arena_strf(c->a, "thread / %d %% %d", s->div, s->mod) :
		arena_strf(c->a, "thread %% %d", s->mod);
}

const char *spread_text(struct print *c, const struct spread *s)
{
	const char *digit = spread_digit(c, s);

	return s->step > 1 ? arena_strf(c->a, "%d * (%s)", s->step, digit) : digit;
}

const char *warp_row_text(struct print *c, const struct frag_layout *l)
{
	const char *in_part = l->parts > 1 ? arena_strf(c->a, " %% %d", layout_row_warps(l, c->role->warps) *
		warp_threads(c)) : "";

	return l->every_warp ? NULL : arena_strf(c->a, "thread%s / %d * %d", in_part, warp_threads(c), l->rows);
}

void put_coordinates(struct print *c, const struct frag_layout *l)
{
	const char *warp = warp_row_text(c, l);

	put(c, "const int row0 = %s%s%s, col0 = %s;", warp ? warp : "", warp ? " + " : "", spread_text(c, &l->row),
		spread_text(c, &l->col));
}

const char *spread_is_first(struct print *c, const struct spread *s)
{
	if (spread_is_top(s, c->r->target))
		return arena_strf(c->a, "thread %% %d < %d", warp_threads(c), s->div);
	return arena_strf(c->a, "%s == 0", spread_digit(c, s));
}

const char *each_exchange(struct print *c, const struct spread *s)
{
	return arena_strf(c->a, "EACH(o, %d) ", log2_of(s->mod < warp_threads(c) ? s->mod : warp_threads(c)));
}

const char *spread_mask(struct print *c, const struct spread *s)
{
	return arena_strf(c->a, "%d << o", s->div);
}

/* what memory holds of an element, and a register ------------------------------ */

static bool in_float(enum dtype t)
{
	return t == DT_F32 || t == DT_TF32;
}

const char *bits_type(enum dtype t)
{
	return dtype_bits(t) == 16 ? "u16" : dtype_bits(t) <= 8 ? "u8" : in_float(t) ? "float" : "u32";
}

static const char *from_bits(struct print *c, enum dtype t, const char *bits)
{
	return in_float(t) ? bits : t == DT_I32 || t == DT_U8 ? arena_strf(c->a, "(int)%s", bits) :
		arena_strf(c->a, t == DT_I8 ? "from_%s(%s, 0)" : "from_%s(%s)", dtype_name(t), bits);
}

const char *to_bits(struct print *c, enum dtype t, const char *x)
{
	if (t == DT_BF16 || t == DT_F16)
		return arena_strf(c->a, "(u16)pack_%s(%s, 0.f)", dtype_name(t), x);
	if (t == DT_BOOL || t == DT_U8)
		return arena_strf(c->a, "(u8)(%s)", x);
	c->nibbles |= dtype_bits(t) == 4;
	return in_float(t) ? x : t == DT_I32 ? arena_strf(c->a, "(u32)%s", x) :
		arena_strf(c->a, "to_%s(%s)", dtype_name(t), x);
}

const char *shared_type(enum dtype t)
{
	return in_float(t) ? "f32" : dtype_bits(t) == 16 ? "u16" : dtype_bits(t) == 8 ? "u8" : "u32";
}

const char *shared_get(struct print *c, enum dtype t, const char *address)
{
	return arena_strf(c->a, "shared_%s(%s)", shared_type(t), address);
}

const char *shared_put(struct print *c, enum dtype t, const char *address, const char *x)
{
	return arena_strf(c->a, "shared_put_%s(%s, %s);", shared_type(t), address, to_bits(c, t, x));
}

/* values ----------------------------------------------------------------------- */

static const char *constant_text(struct print *c, const struct val *v)
{
	if (v->type == DT_BOOL || !dtype_is_float(v->type))
		return v->k == INT32_MIN ? "(-2147483647 - 1)" : arena_strf(c->a, "%lld", (long long)v->k);
	if (isinf(v->k))
		return v->k < 0 ? "(-INFINITE)" : "INFINITE";
	const char *s = arena_strf(c->a, "%.9g", v->k);
	return arena_strf(c->a, strpbrk(s, ".e") ? "%sf" : "%s.f", s);
}

/* The text of an element-wise operation on these arguments. */
static const char *op_text(struct print *c, enum op op, enum dtype t, const char *const *arg)
{
	const char *text = op_kernel_text(op, t);
	struct buf b;

	if (!text)
		BUG("kernels have no '%s' of %s", op_name(op), dtype_name(t));
	c->vectors |= op == OP_TO_BITS || op == OP_OF_BITS;
	c->rare |= op == OP_SIN || op == OP_COS || op == OP_POPCOUNT;
	buf_init(&b, c->a);
	for (; *text; text++) {
		if (*text == '$')
			buf_puts(&b, arg[*++text - '0']);
		else
			buf_putc(&b, *text);
	}
	return b.text;
}

/* As part of another expression. */
static const char *operand_text(struct print *c, const struct val *v)
{
	bool compound = v->kind == VAL_OP || v->kind == VAL_CAST;

	return compound ? arena_strf(c->a, "(%s)", value(c, v)) : value(c, v);
}

static const char *operation_text(struct print *c, const struct val *v)
{
	const char *arg[3] = { NULL };

	for (int i = 0; i < LEN(arg) && v->arg[i]; i++)
		arg[i] = operand_text(c, v->arg[i]);
	return op_text(c, v->op, v->type, arg);
}

/* A register holds the value that an element of the type would have. */
static const char *cast_text(struct print *c, const struct val *v)
{
	const char *x = operand_text(c, v->arg[0]);

	if (dtype_is_float(v->type) && !dtype_is_float(v->from))
		x = arena_strf(c->a, "(float)(%s)", x);
	switch (v->type) {
	case DT_BOOL: return arena_strf(c->a, "%s != 0", x);
	case DT_F32: return x;
	case DT_BF16: case DT_F16: case DT_E4M3: case DT_E5M2: case DT_E2M1: case DT_E8M0:
		return from_bits(c, v->type, to_bits(c, v->type, x));
	case DT_I32: case DT_I8: case DT_U8: case DT_I4:
		x = dtype_is_float(v->from) ? arena_strf(c->a, "to_i32(%s)", x) : x;
		return v->type == DT_I32 ? x : arena_strf(c->a, v->type == DT_I8 ? "max_of(-128, min_of(127, %s))" :
			v->type == DT_U8 ? "max_of(0, min_of(255, %s))" : "max_of(-8, min_of(7, %s))", x);
	case DT_TF32: return arena_strf(c->a, "to_tf32(%s)", x);
	case DT_F64: case DT_COUNT:
		break;
	}
	BUG("no cast to %s", dtype_name(v->type));
}

/* reads of neighbours ----------------------------------------------------------- */

static bool has_nibbles(const struct val *v)
{
	bool has = v->kind == VAL_FIELD && dtype_bits(v->type) == 4;

	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		has |= has_nibbles(v->arg[i]);
	return has;
}

/* Do all elements of the group at hand need one read, because it has their neighbours, or has the same address for
 * all? */
static bool is_read_once(const struct print *c, const struct val *v, const struct num *when)
{
	return v->together > 1 || v->groups > 1 || (c->shares_reads && !num_uses(v->num, VAR_E) && !(when && num_uses(when, VAR_E)));
}

/* Number of the read among those of the block; NONE. */
static int number_of_read(const struct print *c, const struct val *v, const struct num *when)
{
	for (int i = 0; i < c->reads.n; i++)
		if (c->reads.v[i].of->from == v->from && num_alike(c->reads.v[i].of->num, v->num) &&
		    num_alike(c->reads.v[i].when, when))
			return i;
	return NONE;
}

/* When argument i of the value is needed, which itself is where `when` holds; NULL: always. */
static const struct num *when_needed(struct print *c, const struct val *v, int i, const struct num *when)
{
	if (v->kind != VAL_GUARD || i > 0 || !is_tested(v->num) || (when && num_has_conjunct(when, v->num)))
		return when;
	return when ? num_make(c->a, NUM_BOTH, when, v->num) : v->num;
}

static void note_reads(struct print *c, const struct val *v, const struct num *when)
{
	if (v->kind == VAL_SHARED && is_read_once(c, v, when) && number_of_read(c, v, when) == NONE)
		VEC_PUSH(c->a, &c->reads, ((struct read){ v, when }));
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		note_reads(c, v->arg[i], when_needed(c, v, i, when));
}

void note_nibbles(struct print *c, const struct val *v)
{
	c->shares_reads |= has_nibbles(v);
}

bool begin_reads(struct print *c, const struct val *v)
{
	note_nibbles(c, v);
	note_reads(c, v, NULL);
	return c->reads.n > 0;
}

void end_reads(struct print *c)
{
	c->reads.n = 0;
	c->shares_reads = false;
}

static void put_shared_read(struct print *c, const char *indent, int i)
{
	const struct read *r = &c->reads.v[i];
	const char *type = bits_type(r->of->from), *get = shared_get(c, r->of->from, num(c, r->of->num));

	put(c, "%sconst %s v%d = %s;", indent, type, i, !r->when ? get :
		arena_strf(c->a, "%s ? %s : 0", num(c, r->when), get));
}

/* The slot in which the address is, of a ring whose slots are filled by one sTask; NULL: it is in none. */
static const struct num *slot_in(const struct print *c, const struct num *x)
{
	bool is_slot = x && x->op == NUM_VAR && x->var == VAR_SLOT;
	const struct num *slot = is_slot && !c->r->rings.v[x->of].in_slices ? x : NULL;

	for (int i = 0; x && i < 3 && !slot; i++)
		slot = slot_in(c, (const struct num *[]){ x->a, x->b, x->c }[i]);
	return slot;
}

/* A thread that does not use what it reads reads where the slot begins. Compilers would join branches around the reads
 * of all elements, behind which all are in registers. */
void put_reads(struct print *c, const char *indent)
{
	for (int i = 0; i < c->reads.n; i++) {
		const struct val *v = c->reads.v[i].of;

		if (v->groups > 1)
			continue;
		if (v->together == 1) {
			put_shared_read(c, indent, i);
			continue;
		}
		int pair = layout(c)->pair, bits = dtype_bits(v->from), parts = pair / v->together;
		int words = v->together * bits / 32;
		const struct num *when = c->reads.v[i].when, *slot = when ? slot_in(c, v->num) : NULL;
		const char *from = slot ? arena_strf(c->a, "%s ? %s : %s", num(c, when), num(c, v->num), num(c, slot)) :
			num(c, v->num);
		const char *part = parts == 1 ? "" : arena_strf(c->a, "EACH(part, %d) ", parts);
		const char *first = parts == 1 ? "0" : arena_strf(c->a, "%d * part", v->together);
		const char *to = parts == 1 ? arena_strf(c->a, "v%d", i) : arena_strf(c->a, "v%d + %d * part", i, words);
		const char *read = words <= 1 ? arena_strf(c->a, "*(%s) = shared_u%d(%s)", to, words ? 32 : 16, from) :
			arena_strf(c->a, "shared_%d(%s, %s)", 4 * words, to, from);

		c->vectors |= words > 1 || in_float(v->from);
		put(c, "%su32 v%d[%d]; %s{ const int e = %s; %s%s; }", indent, i, (int)max_i64(pair * bits / 32, 1), part, first,
			when && !slot ? arena_strf(c->a, "if (%s) ", num(c, when)) : "", read);
	}
}

/* Do both elements of a pair have other values? */
static bool value_differs(const struct val *v)
{
	bool differs = (v->num && num_uses(v->num, VAR_E)) || (v->less && num_uses(v->less, VAR_E));

	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		differs |= value_differs(v->arg[i]);
	return differs;
}

/* Words of a read of a group: several neighbours, or one number of at most 32 bits. */
static int words_of_group(const struct val *v)
{
	return v->together > 1 ? v->together * dtype_bits(v->from) / 32 : 1;
}

void put_wide_reads(struct print *c, const char *indent, bool rounds)
{
	for (int i = 0; i < c->reads.n; i++) {
		const struct val *v = c->reads.v[i].of;
		int words = words_of_group(v) * (v->same ? 1 : v->groups);
		const char *get = words > 1 ? arena_strf(c->a, "shared_%d(v%d, %s)", 4 * words, i, num(c, v->num)) :
			v->together > 1 ? arena_strf(c->a, "v%d[0] = shared_u32(%s)", i, num(c, v->num)) :
			arena_strf(c->a, "v%d[0] = %s", i, shared_get(c, v->from, num(c, v->num)));

		if (v->groups < 2 || (v->rounds > 1) != rounds)
			continue;
		c->vectors |= words > 1 || in_float(v->from);
		if (c->reads.v[i].when)
			get = arena_strf(c->a, "if (%s) %s; else EACH(i, %d) v%d[i] = 0", num(c, c->reads.v[i].when), get, words, i);
		put(c, "%s%s v%d[%d]; { const int j = first, e = 0; %s; }", indent, v->together > 1 || words > 1 ? "u32" :
			bits_type(v->from), i, words, get);
	}
}

/* ... of the element at hand, in group number g of those that are read at once. */
static const char *wide_bits(struct print *c, const struct val *v, int i)
{
	int bits = dtype_bits(v->from), words = words_of_group(v), per = 32 / bits;
	const char *group = v->same ? "" : words > 1 ? arena_strf(c->a, "g * %d + ", words) : "g + ", *word;

	if (v->together == 1 && v->same)
		return arena_strf(c->a, "v%d[0]", i);
	if (v->together == 1)
		return arena_strf(c->a, in_float(v->from) ? "bits_float(v%d[g])" : "v%d[g]", i);
	word = arena_strf(c->a, "v%d[%se / %d]", i, group, per);
	if (bits == 32)
		return arena_strf(c->a, in_float(v->from) ? "bits_float(%s)" : "%s", word);
	return bits == 16 ? arena_strf(c->a, "half_of(%s, e & 1)", word) : arena_strf(c->a, "(u8)(%s >> 8 * (e & 3))", word);
}

/* What shared memory holds of the element at hand. */
static const char *shared_bits(struct print *c, const struct val *v)
{
	int i = is_read_once(c, v, c->when) ? number_of_read(c, v, c->when) : NONE, bits = dtype_bits(v->from);

	if (i == NONE)
		return shared_get(c, v->from, num(c, v->num));
	if (v->groups > 1)
		return wide_bits(c, v, i);
	if (c->reads.v[i].of->together == 1)
		return arena_strf(c->a, "v%d", i);
	if (bits == 32)
		return arena_strf(c->a, in_float(v->from) ? "bits_float(v%d[e])" : "v%d[e]", i);
	return bits == 16 ? arena_strf(c->a, "half_of(v%d[e / 2], e & 1)", i) :
		arena_strf(c->a, "(u8)(v%d[e / 4] >> 8 * (e & 3))", i);
}

/* The word of two neighbours of 16 bits, which have been read at once. */
static const char *shared_pair(struct print *c, const struct val *v)
{
	int i = number_of_read(c, v, c->when), words = words_of_group(v);

	if (v->groups > 1 && !v->same)
		return arena_strf(c->a, "v%d[g * %d + e / 2]", i, words);
	return arena_strf(c->a, "v%d[e / 2]", i);
}

const char *pair_text(struct print *c, enum dtype type, const struct val *v, bool ordered)
{
	const char *name = dtype_name(type), *x;

	c->pairs = true;
	if (v->kind == VAL_OP) {
		c->ordered_pairs |= ordered;
		return arena_strf(c->a, "mul_pair_%s%s(%s, %s)", name, ordered ? "_here" : "", pair_text(c, type, v->arg[0], false),
			pair_text(c, type, v->arg[1], false));
	}
	if (v->kind == VAL_FRAG && v->frag.frag->packed)
		return arena_strf(c->a, "%s%s", frag_name(c, v->frag), frag_word(c, v->frag.frag, "j"));
	if (!value_differs(v) && v->kind == VAL_SHARED && v->from == type)
		return arena_strf(c->a, "(u32)%s * 0x10001u", shared_bits(c, v));
	if (!value_differs(v)) {
		x = value(c, v);
		return arena_strf(c->a, dtype_is_float(v->type) ? "pack_%s(%s, %s)" : "pack_%s((float)%s, (float)%s)", name, x, x);
	}
	if (v->kind == VAL_CAST)
		return pair_text(c, type, v->arg[0], ordered);
	if (v->kind == VAL_SHARED && v->from == type)
		return shared_pair(c, v);
	if (v->kind == VAL_SHARED)
		return arena_strf(c->a, "%s_pair_%s(v%d[0], 0)", dtype_name(v->from), name, number_of_read(c, v, c->when));
	return arena_strf(c->a, "%s_pair_%s((u32)%s, ((%s) & %d) * %d)", dtype_name(v->type), name, value(c, v->arg[0]),
		num(c, v->num), v->per - 1, 32 / v->per);
}

static const char *shared_value(struct print *c, const struct val *v)
{
	const char *bits = shared_bits(c, v);

	return v->type == DT_BOOL ? arena_strf(c->a, "(%s != 0)", bits) : from_bits(c, v->from, bits);
}

static const char *guarded_text(struct print *c, const struct val *v)
{
	const struct num *outer = c->when;
	const char *x;

	c->when = when_needed(c, v, 0, outer);
	x = value(c, v->arg[0]);
	c->when = outer;
	return !is_tested(v->num) ? x : arena_strf(c->a, "(%s ? %s : %s)", num(c, v->num), x, value(c, v->arg[1]));
}

/* The register of the thread, or of another one of the warp, that has the column with bits flipped. */
static const char *flipped_text(struct print *c, const struct val *v)
{
	const struct frag *f = v->frag.frag;
	const struct frag_layout *l = f->layout;
	long long e = v->flips & (l->pair - 1), group = v->flips / l->cols, threads = spread_bits(l, v->flips);
	const char *in_group = e ? arena_strf(c->a, "(e ^ %lld)", e) : "e";
	const char *j = group ? arena_strf(c->a, "(j ^ %lld)", group) : "j";
	const char *x = f->kind == FRAG_COL ? arena_strf(c->a, "%s[%s * %d + %s]", frag_name(c, v->frag), j, l->pair, in_group) :
		arena_strf(c->a, "%s[rb][(%s * %d + h) * %d + %s]", frag_name(c, v->frag), j, l->halves, l->pair, in_group);

	if (!threads)
		return x;
	x = arena_strf(c->a, dtype_is_float(v->type) ? "shuffle_xor(%s, %lld)" : "shuffle_xor_i(%s, %lld)", x, threads);
	return v->type == DT_BOOL ? arena_strf(c->a, "(%s != 0)", x) : x;
}

const char *value(struct print *c, const struct val *v)
{
	static const char *const compare[] = { [NUM_LT] = "<", [NUM_LE] = "<=", [NUM_GT] = ">", [NUM_GE] = ">=",
		[NUM_EQ] = "==", [NUM_NE] = "!=" };
	const struct frag *f = v->frag.frag;

	switch (v->kind) {
	case VAL_CONST: return constant_text(c, v);
	case VAL_NUM: return arena_strf(c->a, "(%s)", num(c, v->num));
	case VAL_FRAG:
		if (is_in_bits(c, f))
			return arena_strf(c->a, "((%s >> %s & 1) != 0)", bits_word(c, f), bits_number(c, f));
		return f->packed ? arena_strf(c->a, "from_%s(%s)", dtype_name(f->type), half_at(c, v->frag)) :
			arena_strf(c->a, "%s%s", frag_name(c, v->frag), frag_element(c, f));
	case VAL_FLIPPED: return flipped_text(c, v);
	case VAL_NODE: return arena_strf(c->a, "e%d", v->node);
	case VAL_SHARED:
		return shared_value(c, v);
	case VAL_OP: return operation_text(c, v);
	case VAL_CAST: return cast_text(c, v);
	case VAL_FIELD:
		if (v->type == DT_E2M1) {
			c->nibbles = true;
			return arena_strf(c->a, "e2m1_at((u32)%s, ((%s) & %d) * %d)", value(c, v->arg[0]), num(c,
				v->num),
				v->per - 1, 32 / v->per);
		}
		if (v->type == DT_U8)
			return arena_strf(c->a, "(int)((u32)%s >> ((%s) & %d) * 8 & 255)", value(c, v->arg[0]),
				num(c, v->num), v->per - 1);
		return arena_strf(c->a, dtype_is_float(v->type) ? "from_%s((u32)%s >> ((%s) & %d) * %d)" :
			"from_%s((u32)%s, ((%s) & %d) * %d)", dtype_name(v->type), value(c, v->arg[0]),
			num(c, v->num), v->per - 1, 32 / v->per);
	case VAL_GUARD: return guarded_text(c, v);
	case VAL_COLUMN:
		break;
	}
	return arena_strf(c->a, v->arg[0]->kind == VAL_OP ? "%s %s (%s) - (%s)" : "%s %s %s - (%s)", num(c, v->num),
		compare[v->compare], value(c, v->arg[0]), num(c, v->less));
}

const char *joined(struct print *c, enum op op, enum dtype t, const char *x, const char *y)
{
	return op_text(c, op_pair(op), t, (const char *const[]){ x, y });
}
