/* Prints operations that move data between global memory, shared memory and registers by the instructions of threads;
 * print_boxes.c has those that copy engines execute. */
#include "emit/print.h"

enum {
	LOADS = 8,			/* elements loaded at once */
	RUNS = 32,			/* unrolled copies of runs, at most */
	RUNS_TESTED = 16,		/* ... if each row is tested for being inside, which takes registers */
	RUNS_BY_VALUES = ROLE_UNROLLED_ACCESSES,	/* ... if where they are, or end, is a value */
	TESTED = 2,			/* shifted chunks at once if each is tested for being inside */
};

const char *guard_text(struct print *c, const struct num *when)
{
	return is_tested(when) ? arena_strf(c->a, "if (%s) ", num(c, when)) : "";
}

const char *each_panel(struct print *c, int panels)
{
	return panels > 1 ? arena_strf(c->a, "EACH(p, %d) ", panels) : "";
}

/* by threads ------------------------------------------------------------------- */

/* The index of the element at hand along a dimension. */
static const char *index_text(struct print *c, const struct role_index *x)
{
	if (!x->value)
		return num(c, x->at);
	return num_is(x->at, 0) ? value(c, x->value) : arena_strf(c->a, "(long)%s + (%s)", value(c, x->value), num(c,
		x->at));
}

/* The size of the dimension: a parameter, if it is known at launch, else a number with that suffix. */
static const char *size_text(struct print *c, const struct role_index *x, const char *suffix)
{
	return x->axis != NONE ? var_text(c->a, VAR_SIZE, x->axis, &c->r->names) :
		arena_strf(c->a, "%lld%s", (long long)x->size, suffix);
}

/* The part of the tensor that has the index i0. There is no address to be read where that may be outside, whatever
 * it is in which `inside` tests it: the index, or the end of the axis. */
static const char *part_text(struct print *c, const struct role_op *o)
{
	return num_is(o->u.move.inside, 1) ? "[i0]" :
		arena_strf(c->a, "[i0 >= 0 && i0 < %s ? i0 : 0]", size_text(c, &o->u.move.index[0], ""));
}

/* Declare the indices i0, i1 ... of the element at hand in the tensor; C text of it. */
static const char *put_indices(struct print *c, const struct role_op *o)
{
	bool by_address = c->r->tensors.v[o->u.move.tensor].by_address;
	int first = by_address ? 1 : 0;		/* dimension of what lies at one address */
	const char *at = "0";

	for (int d = 0; d < o->u.move.rank; d++) {
		const struct role_index *x = &o->u.move.index[d];

		put(c, "\tconst long i%d = %s;", d, index_text(c, x));
		if (d == first)
			at = arena_strf(c->a, "i%d", d);
		else if (d > first)
			at = arena_strf(c->a, "(%s) * %s + i%d", at, size_text(c, x, "l"), d);
	}
	if (dtype_bits(o->u.move.type) == 4)	/* two to a byte */
		at = arena_strf(c->a, "(%s) / 2", at);
	return arena_strf(c->a, "tensor_%s%s[%s]", c->r->tensors.v[o->u.move.tensor].name,
		by_address ? part_text(c, o) : "", at);
}

/* Declare the variables of fragments for element `at` of a ring, or for the first element of a run. */
static void put_element_coordinates(struct print *c, const struct role_op *o, const char *indent, int run)
{
	long long rows = (long long)(o->u.move.elements / o->u.move.cols);

	if (o->u.move.down) {
		put(c, "%s\tconst int rb = 0, h = 0, j = 0, e = 0, row0 = at %% %lld, col0 = at / %lld;", indent,
			rows, rows);
		return;
	}
	put(c, "%s\tconst int rb = 0, h = 0, j = 0, e = 0, row0 = at / %lld, col0 = at %% %lld%s;",
		indent, (long long)o->u.move.cols / run, (long long)o->u.move.cols / run, run > 1 ?
		arena_strf(c->a, " * %d", run) : "");
}

/* Begin a loop over the elements of a ring, or runs of them, which the lane's threads share. */
static void put_each_of_ring(struct print *c, const struct role_op *o, const char *loop, int run)
{
	put(c, "%s (int at = thread; at < %lld; at += %lld) {", loop,
		(long long)o->u.move.elements / run, (long long)lane_threads(c));
	put_element_coordinates(c, o, "", run);
}

/* So many rows are unrolled, and a loop makes so many rounds over them. */
struct strided {
	long long n, rounds;
};

/* Begin a loop over the rows at which a thread begins, up to the point from where it only increments the addresses `to`
 * and `from`; and in it, if there is more than one round, a loop over the rounds. */
static struct strided begin_strides(struct print *c, const struct role_op *o, int most)
{
	const struct role_stride *s = &o->u.move.stride;
	long long run = o->u.move.run, across = (long long)o->u.move.cols / run;
	long long total = (long long)(o->u.move.elements / o->u.move.cols / s->rows);
	struct strided x = { .n = most };

	while (total % x.n)
		x.n--;
	x.rounds = total / x.n;
	put(c, "LOOP (int first = thread / %lld; first < %lld; first += %lld) {", across,
		(long long)s->rows, (long long)lane_threads(c) / across);
	put(c, "\tconst int rb = 0, h = 0, j = 0, e = 0, row0 = first, col0 = thread %% %lld * %lld;", across, run);
	const char *element = put_indices(c, o);
	put(c, "\tu32 to = %s;", num(c, o->u.move.address));
	put(c, "\tconst %s *from = &%s;", bits_type(o->u.move.type), element);
	c->indent++;
	if (x.rounds > 1)
		put(c, "LOOP (int v = 0; v < %lld; v++, to += %lld, from += %lldl) {", x.rounds,
			x.n * (long long)s->to, x.n * (long long)s->from);
	return x;
}

static void end_strides(struct print *c, const struct strided *x)
{
	if (x->rounds > 1)
		put(c, "}");
	c->indent--;
	put(c, "}");
}

/* The indices of the element at hand that `inside` tests: begin_strides declared those of the thread's first
 * element. */
static void put_tested_indices(struct print *c, const struct role_op *o, const char *indent)
{
	for (int d = 0; d < o->u.move.rank; d++)
		if (num_uses_of(o->u.move.inside, VAR_INDEX, d))
			put(c, "%sconst long i%d = %s;", indent, d, index_text(c, &o->u.move.index[d]));
}

/* Begin a loop over the rows that are unrolled. The row at hand, and its indices in the tensor, are declared if
 * `inside` tests them. */
static void begin_row(struct print *c, const struct role_op *o, const struct strided *x)
{
	const struct num *inside = o->u.move.inside;

	put(c, "EACH(u, %lld) {", x->n);
	if (num_uses(inside, VAR_ROW0) || num_uses(inside, VAR_INDEX))
		put(c, "\tconst int row0 = first + (%su) * %lld;", x->rounds > 1 ? arena_strf(c->a,
			"%lld * v + ", x->n) : "", (long long)o->u.move.stride.rows);
	put_tested_indices(c, o, "\t");
}

static bool indexed_by_values(const struct role_op *o)
{
	for (int d = 0; d < o->u.move.rank; d++)
		if (o->u.move.index[d].value)
			return true;
	return false;
}

/* The most copies of a thread that are unrolled. */
static int most_unrolled(const struct role_op *o)
{
	const struct num *inside = o->u.move.inside;

	if (num_uses(inside, VAR_END) || (indexed_by_values(o) && num_uses(inside, VAR_INDEX)))
		return RUNS_BY_VALUES;
	return num_uses(inside, VAR_ROW0) || num_uses(inside, VAR_INDEX) ? RUNS_TESTED : RUNS;
}

static void copy_strides(struct print *c, const struct role_op *o, int bytes)
{
	const struct role_stride *s = &o->u.move.stride;
	struct strided x = begin_strides(c, o, most_unrolled(o));

	begin_row(c, o, &x);
	put(c, "\tcopy_%d(to + u * %lld, from + u * %lldl, %s);", bytes, (long long)s->to,
		(long long)s->from, num(c, o->u.move.inside));
	put(c, "}");
	end_strides(c, &x);
}

/* If both ends of a chunk are inside, all of it is. */
static void read_tested(struct print *c, const struct role_op *o)
{
	const char *inside = num(c, o->u.move.inside), *type = bits_type(o->u.move.type);
	long long from = (long long)o->u.move.stride.from;

	put(c, "\tbool all = %s;", inside);
	put(c, "\t{");
	put(c, "\t\tconst int e = %d;", o->u.move.run - 1);
	put_tested_indices(c, o, "\t\t");
	put(c, "\t\tall &= %s;", inside);
	put(c, "\t}");
	put(c, "\tif (all) {");
	put(c, "\t\tread_shifted(x[u], from + u * %lldl);", from);
	put(c, "\t} else {");
	put(c, "\t\t%s y[%d];", type, o->u.move.run);
	put(c, "\t\tEACH(e, %d) {", o->u.move.run);
	put_tested_indices(c, o, "\t\t\t");
	put(c, "\t\t\ty[e] = %s ? from[u * %lldl + e] : (%s)0;", inside, from, type);
	put(c, "\t\t}");
	put(c, "\t\tmemcpy(x[u], y, 16);");
	put(c, "\t}");
}

/* Loads several chunks to registers, then stores them to shared memory. */
static void shift_strides(struct print *c, const struct role_op *o)
{
	bool tested = is_tested(o->u.move.inside);
	struct strided x = begin_strides(c, o, tested ? TESTED : o->u.move.in_flight);

	put(c, "u32 x[%lld][4];", x.n);
	begin_row(c, o, &x);
	if (tested)
		read_tested(c, o);
	else
		put(c, "\tread_shifted(x[u], from + u * %lldl);", (long long)o->u.move.stride.from);
	put(c, "}");
	put(c, "EACH(u, %lld) shared_put_16(to + u * %lld, x[u]);", x.n, (long long)o->u.move.stride.to);
	end_strides(c, &x);
}

/* Begin the accesses of a thread to a ring: unrolled, if there are as many of each and few, or in a loop. */
static void begin_accesses(struct print *c, const struct role_op *o)
{
	long long threads = lane_threads(c);

	if (!role_unrolls_accesses(o, threads)) {
		put_each_of_ring(c, o, "LOOP", o->u.move.run);
		return;
	}
	put(c, "EACH(u, %lld) {", (long long)(o->u.move.elements / o->u.move.run / threads));
	put(c, "\tconst int at = thread + u * %lld;", threads);
	put_element_coordinates(c, o, "", o->u.move.run);
}

/* If the lane waits, then after it has issued all copies. */
static void load_runs(struct print *c, const struct role_op *o, int bytes)
{
	if (o->u.move.stride.rows) {
		copy_strides(c, o, bytes);
	} else {
		begin_accesses(c, o);
		const char *element = put_indices(c, o);
		put(c, "\tcopy_%d(%s, &%s, %s);", bytes, num(c, o->u.move.address), element, num(c, o->u.move.inside));
		put(c, "}");
	}
	if (o->u.move.arrives && indexed_by_values(o))	/* the slots of these may be filled again */
		put(c, "fence_async();");
	if (o->u.move.arrives)
		put(c, "copies_arrive(%s);", flag_barrier(c, o, num(c, o->u.move.n)));
	else
		put(c, "copies_wait();");
}

/* Elements too small for asynchronous copies: loads several to registers, then stores them to shared memory. Threads
 * whose element is behind the last one take its index from a table's last element: behind it there may be no memory. */
static void load_elements(struct print *c, const struct role_op *o)
{
	const char *type = bits_type(o->u.move.type), *mine = "at";
	long long threads = lane_threads(c), n = o->u.move.elements;

	put(c, "LOOP (int first = thread; first < %lld; first += %lld) {", n, LOADS * threads);
	put(c, "\t%s value[%d];", type, LOADS);
	put(c, "\tEACH(u, %d) {", LOADS);
	if (indexed_by_values(o) && n % (LOADS * threads)) {
		mine = "mine";
		put(c, "\t\tconst int mine = first + u * %lld, at = mine < %lld ? mine : %lld;", threads, n, n - 1);
	} else {
		put(c, "\t\tconst int at = first + u * %lld;", threads);
	}
	put_element_coordinates(c, o, "\t", 1);
	c->indent++;
	const char *element = put_indices(c, o);
	c->indent--;
	put(c, "\t\tvalue[u] = %s < %lld%s ? %s : (%s)0;", mine, n, is_tested(o->u.move.inside) ?
		arena_strf(c->a, " && %s", num(c, o->u.move.inside)) : "", element, type);
	put(c, "\t}");
	put(c, "\tEACH(u, %d) {", LOADS);
	put(c, "\t\tconst int at = first + u * %lld;", threads);
	put_element_coordinates(c, o, "\t", 1);
	put(c, "\t\tif (at < %lld) shared_put_%s(%s, value[u]);", n, shared_type(o->u.move.type), num(c,
		o->u.move.address));
	put(c, "\t}");
	put(c, "}");
}

/* Copies without registers: `at` is the number of one, that of the warp's first thread is `first`; `in_row` is a byte
 * of the row of a panel that it fills, row0 and col0 the first element that belongs there. */
static void load_by_dma(struct print *c, const struct role_op *o)
{
	const struct shared_layout *l = &c->r->target->shared;
	int bytes = dtype_bits(o->u.move.type) / 8, size = o->u.move.run * bytes;
	long long rows = (long long)(o->u.move.elements / o->u.move.cols), pitch = (long long)o->u.move.panel_cols * bytes;
	long long across = pitch / size, swizzle = o->u.move.swizzle, first_row = (long long)o->u.move.first_row;
	long long threads = lane_threads(c), beyond = (long long)o->u.move.panel_bytes - rows * pitch;
	bool panels = o->u.move.cols > o->u.move.panel_cols;
	const char *element, *warp = c->role->warps > 1 ? arena_strf(c->a, "UNIFORM(thread / %d) * %d + ", warp_threads(c),
		warp_threads(c)) : "";

	put(c, "EACH(u, %lld) {", (long long)role_dma_copies(o, threads));
	put(c, "\tconst int first = %su * %lld, at = thread + u * %lld;", warp, threads, threads);
	if (panels)
		put(c, "\tconst int panel = first / %lld;", rows * across);
	put(c, "\tconst int rb = 0, h = 0, j = 0, e = 0, row0 = at / %lld%s;", across, panels ? arena_strf(c->a, " %% %lld", rows) : "");
	put(c, "\tconst int in_row = at %% %lld * %d;", across, size);
	put(c, "\tconst int col0 = %s%s / %d;", panels ? arena_strf(c->a, "panel * %lld + ", (long long)o->u.move.panel_cols) : "",
		swizzle ? arena_strf(c->a, "(in_row ^ (%srow0%s * %lld / %d & %lld) << %d)", first_row ? "(" : "", first_row ?
		arena_strf(c->a, " + %lld)", first_row) : "", swizzle, l->line, swizzle / l->chunk - 1, log2_of(l->chunk)) : "in_row", bytes);
	element = put_indices(c, o);
	put(c, "\tdma_%d(%s + first * %d%s, tensor_%s, (const char *)&%s - (const char *)tensor_%s, %s);", size,
		num(c, o->u.move.to), size, panels && beyond ? arena_strf(c->a, " + panel * %lld", beyond) : "",
		c->r->tensors.v[o->u.move.tensor].name, element, c->r->tensors.v[o->u.move.tensor].name, num(c, o->u.move.inside));
	put(c, "}");
	c->dma = true;
}

static void print_load_threads(struct print *c, const struct role_op *o)
{
	int bytes = o->u.move.run * dtype_bits(o->u.move.type) / 8;

	if (o->u.move.dma) {
		load_by_dma(c, o);
		return;
	}
	if (o->u.move.shifted)
		shift_strides(c, o);
	else if (bytes >= 4)
		load_runs(c, o, bytes);
	else
		load_elements(c, o);
}

/* Words of an access of the load. */
static int words_at_once(const struct role_op *o)
{
	return o->u.move.run * dtype_bits(o->u.move.type) / 32;
}

/* How many accesses a thread has. */
static int accesses_of_thread(const struct role_op *o)
{
	return frag_words(o->u.move.staged.frag) / words_at_once(o);
}

/* Declares the row and column of a thread's first access of a load that it strides over. */
static void put_first_of_strides(struct print *c, const struct role_op *o)
{
	long long run = o->u.move.run, across = (long long)o->u.move.cols / run;

	put(c, "const int first = thread / %lld;", across);
	put(c, "const int rb = 0, h = 0, j = 0, e = 0, row0 = first, col0 = thread %% %lld * %lld;", across, run);
}

/* Begins a loop over the accesses of a thread, all of which are unrolled, and declares the coordinates of each. */
static void begin_each_access(struct print *c, const struct role_op *o)
{
	put(c, "EACH(u, %d) {", accesses_of_thread(o));
	put(c, "\tconst int at = thread + u * %d;", lane_threads(c));
	put_element_coordinates(c, o, "", o->u.move.run);
}

/* What a load to registers is given of the element at address `from`: that, or the tensor and how many bytes behind
 * its start. */
static const char *words_from(struct print *c, const struct role_op *o, const char *from)
{
	const char *tensor = c->r->tensors.v[o->u.move.tensor].name;

	return o->u.move.by_offset ? arena_strf(c->a, "tensor_%s, (const char *)(%s) - (const char *)tensor_%s", tensor, from, tensor) :
		from;
}

static void print_load_words(struct print *c, const struct role_op *o)
{
	const char *of = o->u.move.by_offset ? "_of" : "";
	struct strided x = { .n = accesses_of_thread(o), .rounds = 1 };
	const char *to = arena_strf(c->a, "%s + u * %d", frag_name(c, o->u.move.staged), words_at_once(o));
	int bytes = 4 * words_at_once(o);

	c->staged = true;
	if (!o->u.move.stride.rows) {
		begin_each_access(c, o);
		const char *element = put_indices(c, o);
		put(c, "\tload_%d%s(%s, %s, %s);", bytes, of, to, words_from(c, o, arena_strf(c->a, "&%s", element)),
			num(c, o->u.move.inside));
		put(c, "}");
		return;
	}
	put(c, "{");
	c->indent++;
	put_first_of_strides(c, o);
	c->indent--;
	const char *element = put_indices(c, o);
	c->indent++;
	put(c, "const %s *from = &%s;", bits_type(o->u.move.type), element);
	begin_row(c, o, &x);
	put(c, "\tload_%d%s(%s, %s, %s);", bytes, of, to, words_from(c, o, arena_strf(c->a, "from + u * %lldl",
		(long long)o->u.move.stride.from)), num(c, o->u.move.inside));
	put(c, "}");
	c->indent--;
	put(c, "}");
}

static void print_put_words(struct print *c, const struct role_op *o)
{
	int words = words_at_once(o);
	const char *x = arena_strf(c->a, "%s + u * %d", frag_name(c, o->u.move.staged), words);
	const char *write = words == 1 ? "u32" : words == 2 ? "8" : "16";

	c->staged = true;
	if (!o->u.move.stride.rows) {
		begin_each_access(c, o);
		put(c, "\tshared_put_%s(%s, %s%s);", write, num(c, o->u.move.address), words == 1 ? "*" : "", words == 1 ?
			arena_strf(c->a, "(%s)", x) : x);
		put(c, "}");
		return;
	}
	put(c, "{");
	c->indent++;
	put_first_of_strides(c, o);
	put(c, "const u32 to = %s;", num(c, o->u.move.address));
	put(c, "EACH(u, %d) shared_put_%s(to + u * %lld, %s%s);", accesses_of_thread(o), write, (long long)o->u.move.stride.to,
		words == 1 ? "*" : "", words == 1 ? arena_strf(c->a, "(%s)", x) : x);
	c->indent--;
	put(c, "}");
}

/* Store to the element of the tensor, or add to it. */
static void put_element(struct print *c, const struct role_op *o, const char *element, const char *x)
{
	if (o->u.move.adds)
		put(c, "\t%sadd_to(&%s, %s);", guard_text(c, o->u.move.inside), element, x);
	else
		put(c, "\t%s%s = %s;", guard_text(c, o->u.move.inside), element, x);
}

/* Stores `width` neighbours of 4 bits, whose bits are y[0 .. width): one, two or four bytes. */
static void put_nibbles(struct print *c, const struct role_op *o, const char *element)
{
	int width = o->u.move.width;
	const char *word = "y[0]";

	for (int i = 1; i < width; i++)
		word = arena_strf(c->a, "%s | y[%d] << %d", word, i, 4 * i);
	put(c, "\t%s*(u%d *)&%s = (u%d)(%s);", guard_text(c, o->u.move.inside), 4 * width, element, 4 * width, word);
}

/* The threads walk over groups of neighbours. The index is that of the first one. */
static void store_ring_nibbles(struct print *c, const struct role_op *o)
{
	int width = o->u.move.width;

	put_each_of_ring(c, o, "for", width);
	put(c, "\tu32 y[%d]; const int first = col0;", width);
	put(c, "\tEACH(i, %d) { const int col0 = first + i; y[i] = %s; }", width,
		to_bits(c, o->u.move.type, value(c, o->u.move.value)));
	put_nibbles(c, o, put_indices(c, o));
	put(c, "}");
}

static void store_fragment_nibbles(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.move.from.frag;
	int parts = f->layout->pair / o->u.move.width;

	put(c, "%s{", each(c, f, has_rows(f) ? "bhj" : "j"));
	if (parts > 1)
		put(c, "EACH(part, %d) {", parts);
	put(c, "\tu32 y[%d];", o->u.move.width);
	put(c, "\tEACH(i, %d) { const int e = %s; y[i] = %s; }", o->u.move.width, parts > 1 ?
		arena_strf(c->a, "%d * part + i", o->u.move.width) : "i",
		to_bits(c, o->u.move.type, value(c, o->u.move.value)));
	put(c, parts > 1 ? "\tconst int e = %d * part;" : "\tconst int e = 0;", o->u.move.width);
	put_nibbles(c, o, put_indices(c, o));
	put(c, parts > 1 ? "} }" : "}");
}

/* Stores words of a thread to neighbouring elements of global memory: 4, 8 or 16 bytes. */
static const char *word_store(struct print *c, int words, const char *element, const char *word)
{
	return words == 1 ? arena_strf(c->a, "*(u32 *)&%s = %s;", element, word) :
		arena_strf(c->a, "store_%d(&%s, &%s);", 4 * words, element, word);
}

static void print_store_ring(struct print *c, const struct role_op *o)
{
	if (dtype_bits(o->u.move.type) == 4) {
		store_ring_nibbles(c, o);
		return;
	}
	int width = o->u.move.width, words = width * dtype_bits(o->u.move.type) / 32;

	put_each_of_ring(c, o, "for", width);
	if (width > 1) {
		const char *to = put_indices(c, o), *address = num(c, o->u.move.address);

		c->vectors |= words > 1;
		put(c, "\tu32 y[%d]; %s", words, words == 1 ? arena_strf(c->a, "y[0] = shared_u32(%s);", address) :
			arena_strf(c->a, "shared_%d(y, %s);", 4 * words, address));
		put(c, "\t%s%s", guard_text(c, o->u.move.inside), word_store(c, words, to, "y[0]"));
		put(c, "}");
		return;
	}
	const char *element = put_indices(c, o);
	put_element(c, o, element, o->u.move.value ? to_bits(c, o->u.move.type, value(c, o->u.move.value)) :
		shared_get(c, o->u.move.type, num(c, o->u.move.address)));
	put(c, "}");
}

/* Adds words of a thread, which are floats, to neighbouring elements of global memory: two or four. */
static const char *word_addition(struct print *c, int words, const char *element, const char *word)
{
	return arena_strf(c->a, "add_to_%d(&%s, &%s);", words, element, word);
}

/* Two threads have eight neighbours each, of which an instruction adds four: each gives the other one a half, so that
 * both add first to those that one of them had, then to the other's. Sectors are then added to once. */
static void add_swapped(struct print *c, const struct role_op *o)
{
	int pair = o->u.move.from.frag->layout->pair, width = o->u.move.width;

	put(c, "\tswap_halves(z, thread & 1);");
	put(c, "\tconst int first = col0 - %d * (thread & 1);", pair);
	put(c, "\tEACH(part, 2) { const int col0 = first + %d * part, e = %d * (thread & 1);", pair, width);
	const char *element = put_indices(c, o);
	put(c, "\t%s%s }", guard_text(c, o->u.move.inside), word_addition(c, width, element,
		arena_strf(c->a, "z[%d * part]", width)));
	put(c, "}");
}

/* Several columns at once. Those of a fragment that is not packed become words first. */
static void store_vectors(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.move.from.frag;
	enum dtype t = o->u.move.type;
	int pair = f->layout->pair, width = o->u.move.width, words = width * dtype_bits(t) / 32;
	const char *name = frag_name(c, o->u.move.from), *word = arena_strf(c->a, "%s%s", name, frag_word(c, f, "j"));

	put(c, "%s{", each(c, f, has_rows(f) ? "bhj" : "j"));
	if (!f->packed) {
		put(c, "\t%s y[%d]; %sy[e] = %s%s;", register_type(t), pair, each(c, f, "e"), name, frag_element(c, f));
		word = dtype_bits(t) == 16 ? arena_strf(c->a, "pack_%s(y[e], y[e + 1])", dtype_name(t)) :
			arena_strf(c->a, t == DT_I32 ? "(u32)y[e]" : "float_bits(y[e])");
		c->vectors |= dtype_bits(t) != 16 && t != DT_I32;
		if (words > 1) {
			put(c, "\tu32 z[%d]; EACH(i, %d) { const int e = %d * i; z[i] = %s; }", pair * words / width,
				pair * words / width, width / words, word);
			word = arena_strf(c->a, words == width ? "z[e]" : "z[e / %d]", width / words);
		}
	}
	if (o->u.move.swaps) {
		add_swapped(c, o);
		return;
	}
	put(c, pair == width ? "\tconst int e = 0;" : "\tEACH(part, %d) { const int e = %d * part;", pair / width, width);
	c->vectors |= words == 2;
	const char *element = put_indices(c, o);
	put(c, "\t%s%s%s", guard_text(c, o->u.move.inside), o->u.move.adds ? word_addition(c, words, element, word) :
		word_store(c, words, element, word), pair == width ? "" : " }");
	put(c, "}");
}

/* Store the thread's 16 bytes `y` at the element at hand; spare: only if its `part` is one of so many `parts`. */
static void put_store_16(struct print *c, const struct role_op *o, bool spare, const char *part, int parts)
{
	const char *element = put_indices(c, o);

	put(c, "\t%s%sstore_16(&%s, y);", spare ? arena_strf(c->a, "if (%s < %d) ", part, parts) : "",
		guard_text(c, o->u.move.inside), element);
}

/* Each thread of a quad takes one of four groups of eight columns, so that it stores 16 bytes at once, and the quad 64
 * contiguous bytes. `j` is the thread's group. If fewer than four groups are left, some threads hold a group again and
 * do not store it. */
static void store_eights(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.move.from.frag;
	int groups = frag_groups(f), missing = (4 - groups % 4) % 4;
	const char *group = "(4 * jj + i)";

	if (missing)
		group = arena_strf(c->a, "((4 * jj + i) %% %d)", groups);
	put(c, "%sEACH(jj, %d) {", each(c, f, "bh"), (groups + missing) / 4);
	put(c, "\tu32 y[4]; EACH(i, 4) y[i] = %s%s;", frag_name(c, o->u.move.from), frag_word(c, f, group));
	put(c, "\tquad_transpose(y, thread & 3);");
	put(c, "\tconst int j = 4 * jj + (thread & 3), e = 0, col0 = 0;");
	put_store_16(c, o, missing, "j", groups);
	put(c, "}");
}

/* The threads of a warp have matrices of eight rows and columns, a word each. Transposed, a thread has two neighbours
 * of a column of each; and after the quad's threads have exchanged theirs, eight of one matrix in four, which are 16
 * contiguous bytes. `w` is the thread's matrix. */
static void store_down(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.move.from.frag;
	int halves = f->layout->halves, words = frag_groups(f) * halves, missing = (4 - words % 4) % 4;
	int warp = c->r->target->warp;

	put(c, "%sEACH(jj, %d) {", each(c, f, "b"), (words + missing) / 4);
	put(c, "\tu32 y[4]; EACH(i, 4) y[i] = matrix_transpose(%s[rb][%s]);", frag_name(c, o->u.move.from),
		missing ? arena_strf(c->a, "(4 * jj + i) %% %d", words) : "4 * jj + i");
	put(c, "\tquad_transpose(y, thread & 3);");
	put(c, "\tconst int w = 4 * jj + (thread & 3), j = w / %d, h = w %% %d, e = 0, column = thread %% %d / 4;", halves, halves, warp);
	put(c, "\tconst int first = row0 - column;");
	put(c, "\t{ const int row0 = first, col0 = column;");
	put_store_16(c, o, missing, "w", words);
	put(c, "\t} }");
	c->transposes = true;
}

/* The bits that memory holds of type t: of the element at hand of a fragment or, if there is one, of another value. */
static const char *element_bits(struct print *c, struct frag_at at, enum dtype t, const struct val *other)
{
	if (other)
		return to_bits(c, t, value(c, other));
	if (at.frag->packed)
		return half_at(c, at);
	return to_bits(c, t, arena_strf(c->a, "%s%s", frag_name(c, at), frag_element(c, at.frag)));
}

static void store_elements(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.move.from.frag;

	put(c, "%s{", frag_loops(c, f));
	const char *element = put_indices(c, o);
	put_element(c, o, element, element_bits(c, o->u.move.from, o->u.move.type, o->u.move.value));
	put(c, "}");
}

/* registers to shared memory --------------------------------------------------- */

/* Neighbours of a thread go into one access of shared memory: its banks then serve threads that are several words
 * apart. */
static void put_neighbours(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.put.over;
	int n = o->u.put.together, parts = f->layout->pair / n;
	const char *bits = dtype_is_float(o->u.put.type) ? "float_bits" : "(u32)", *x = element_bits(c, o->u.put.from,
		o->u.put.type, o->u.put.value);

	c->vectors = true;
	put(c, "%s%s{", each(c, f, has_rows(f) ? "bjh" : "j"), parts > 1 ? arena_strf(c->a, "EACH(part, %d) ", parts) : "");
	put(c, "\tu32 x[%d]; EACH(i, %d) { const int e = %si; x[i] = %s(%s); }", n, n, parts > 1 ? arena_strf(c->a, "%d * part + ",
		n) : "", bits, x);
	put(c, "\tconst int e = %s;", parts > 1 ? arena_strf(c->a, "%d * part", n) : "0");
	put(c, "\t%sshared_put_16(%s, x);", guard_text(c, o->u.put.when), num(c, o->u.put.address));
	put(c, "}");
}

static void print_put(struct print *c, const struct role_op *o)
{
	if (o->u.put.together > 1) {
		put_neighbours(c, o);
		return;
	}
	const struct frag *f = o->u.put.over;
	const char *to = num(c, o->u.put.address), *when = guard_text(c, o->u.put.when);
	const char *x = element_bits(c, o->u.put.from, o->u.put.type, o->u.put.value);
	bool tested = o->u.put.from.frag && is_tested(o->u.put.inside);

	if (o->u.put.pairs)
		put(c, "%s%s %sshared_put_u32(%s, %s%s); }",
			each(c, f, "bjh"), each_word(c, f), when, to, frag_name(c, o->u.put.from), frag_word(c, f, "j"));
	else
		put(c, "%s%sshared_put_%s(%s, %s);", frag_loops(c, f), when, shared_type(o->u.put.type), to,
			tested ? arena_strf(c->a, "(%s ? %s : 0)", num(c, o->u.put.inside), x) : x);
}

static void print_put_panels(struct print *c, const struct role_op *o)
{
	const char *name = frag_name(c, o->u.panels.from), *to = num(c, o->u.panels.to);
	const struct frag *f = o->u.panels.from.frag;
	const struct shared_layout *l = &c->r->target->shared;
	int bytes = dtype_bits(o->u.panels.type) / 8, group = f->layout->cols * bytes;
	int groups = (int)(o->u.panels.panel_cols / f->layout->cols);

	if (o->u.panels.batch > 1)
		to = arena_strf(c->a, "%s + p * %lld", to, (long long)o->u.panels.panel_bytes);
	put(c, "%s%sEACH(j, %d) {", each_panel(c, o->u.panels.batch), each(c, f, "h"), groups);
	put(c, "\tconst int rb = %s, i = (%s) * %d + j, row = %s + %d * h;", num(c, o->u.panels.block),
		num(c, o->u.panels.column), groups, spread_text(c, &f->layout->row), f->layout->half);
	put(c, "\tconst u32 x = (row * %d / %d & %d) << %d;", o->u.panels.swizzle, l->line,
		o->u.panels.swizzle / l->chunk - 1, log2_of(l->chunk));
	put(c, group > l->chunk ? "\tconst u32 at = %s + row * %d + ((%d * j + col0 * %d) ^ x);" :
		"\tconst u32 at = %s + row * %d + ((%d * j ^ x) + col0 * %d);", to, o->u.panels.swizzle, group, bytes);
	if (f->packed)
		put(c, "\tshared_put_u32(at, %s%s);", name, frag_word(c, f, "i"));
	else
		put(c, "\t%s%s", each(c, f, "e"), shared_put(c, o->u.panels.type, "at + 4 * e",
			arena_strf(c->a, "%s[rb][(i * %d + h) * %d + e]", name, f->layout->halves, f->layout->pair)));
	put(c, "}");
}

/* Declares the words, which the products behind read. */
static void print_pairs(struct print *c, const struct role_op *o)
{
	int bits = 32 / o->u.pairs.parts;
	const char *read = arena_strf(c->a, o->u.pairs.bytes ? "shared_u8(%s)" : bits == 16 ? "shared_u16(%s)" :
		"shared_u32(%s)", num(c, o->u.pairs.address));

	put(c, "u32 pairs[%d][%d];", o->u.pairs.blocks, o->u.pairs.steps);
	put(c, "EACH(rb, %d) EACH(ks, %d) {", o->u.pairs.blocks, o->u.pairs.steps);
	put(c, "\tu32 word = 0;");
	if (o->u.pairs.parts == 1)		/* neighbours have different rows */
		put(c, "\tconst int h = thread %% 2;");
	put(c, "\t%sEACH(e, %d) %sword |= (u32)%s << (%s8 * e);", o->u.pairs.parts == 1 ? "" : "EACH(h, 2) ", o->u.pairs.bytes ?
		bits / 8 : 1, num_is(o->u.pairs.inside, 1) ? "" : arena_strf(c->a, "if (%s) ", num(c, o->u.pairs.inside)), read,
		o->u.pairs.parts == 1 ? "" : "16 * h + ");
	put(c, "\tpairs[rb][ks] = word;");
	put(c, "}");
}

void print_move(struct print *c, const struct role_op *o)
{
	switch ((int)o->what) {
	case DO_LOAD_BOXES:
	case DO_STORE_BOXES: print_boxes(c, o); break;
	case DO_LOAD_THREADS: print_load_threads(c, o); break;
	case DO_LOAD_WORDS: print_load_words(c, o); break;
	case DO_PUT_WORDS: print_put_words(c, o); break;
	case DO_STORE_THREADS:
		(dtype_bits(o->u.move.type) == 4 ? store_fragment_nibbles : o->u.move.quads ? store_eights :
			o->u.move.down ? store_down : o->u.move.width > 1 ? store_vectors : store_elements)(c, o);
		break;
	case DO_STORE_RING: print_store_ring(c, o); break;
	case DO_PUT: print_put(c, o); break;
	case DO_PUT_PARTS: print_parts(c, o); break;
	case DO_PUT_PANELS: print_put_panels(c, o); break;
	case DO_FILL:
		put(c, "for (int at = thread; at < %lld; at += %d) %s", (long long)o->u.fill.elements, lane_threads(c),
			shared_put(c, o->u.fill.type, num(c, o->u.fill.address), value(c, o->u.fill.value)));
		break;
	case DO_FETCH: print_fetch(c, o); break;
	case DO_PAIRS: print_pairs(c, o); break;
	default: BUG("'%s' has no text", role_op_info[o->what].name);
	}
}
