#include "seq/sequence.h"

#include <string.h>

#include "base/buf.h"
#include "tile/elements.h"

const char *const seq_role_names[] = { "input", "output", "state", "temp" };

void sequence_new(struct mem *mem, const char *name, struct sequence **out)
{
	*out = ARENA_OWNER(mem, struct sequence);
	(*out)->name = arena_strdup(&(*out)->arena, name);
}

void sequence_free(struct sequence *s)
{
	if (s)
		arena_release(&s->arena);
}

/* ---- tensors ---- */

int sequence_find_tensor(const struct sequence *s, const char *name)
{
	int i;

	FIND_FIRST(i, s->tensors.n, !strcmp(s->tensors.v[i].name, name));
	return i;
}

int sequence_find_call(const struct sequence *s, const char *name)
{
	int i;

	FIND_FIRST(i, s->calls.n, !strcmp(s->calls.v[i].name, name));
	return i;
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < 64 && strspn(name, NAME_LETTERS) == n && !(name[0] >= '0' && name[0] <= '9');
}

static enum err_code check_name(const char *what, const char *name, bool taken, struct srcloc loc, struct err *e)
{
	if (!is_name(name))
		return err_set(e, ERR_INPUT, loc, "%s: '%s' cannot be a name; use letters, digits and '_', no digit first, 63 at "
			"most", what, name);
	if (taken)
		return err_set(e, ERR_INPUT, loc, "%s: there is a %s '%s' already", what, strcmp(what, "call") ? "tensor" : "call",
			name);
	return OK;
}

/* Plans have arrays for the tensors and calls that there are. */
static enum err_code check_open(const struct sequence *s, const char *what, struct srcloc loc, struct err *e)
{
	if (s->finished)
		return err_set(e, ERR_INPUT, loc, "%s: sequence '%s' is complete; only its function adds to it", what, s->name);
	return OK;
}

enum err_code sequence_tensor(struct sequence *s, enum seq_role role, const char *name, enum dtype type,
	int rank, const int64_t *dim, struct srcloc loc, int *out, struct err *e)
{
	const char *what = seq_role_names[role];
	struct seq_tensor t = { .role = role, .type = type, .rank = rank, .call = NONE, .own = NONE, .loc = loc };
	int64_t n = 1;

	TRY(check_open(s, what, loc, e));
	TRY(check_name(what, name, sequence_find_tensor(s, name) != NONE, loc, e));
	if (s->tensors.n == SEQ_TENSORS_MAX)
		return err_set(e, ERR_LIMIT, loc, "%s: a sequence has at most %d tensors", what, SEQ_TENSORS_MAX);
	for (int i = 0; i < rank; i++) {
		if (dim[i] < 1)
			return err_set(e, ERR_INPUT, loc, "%s: '%s' has size %lld in dimension %d; sizes are at least 1", what,
				name, (long long)dim[i], i + 1);
		if (dim[i] > ((int64_t)1 << 40) / n)
			return err_set(e, ERR_LIMIT, loc, "%s: '%s' has more than 2^40 elements", what, name);
		t.dim[i] = dim[i];
		n *= dim[i];
	}
	t.name = arena_strdup(&s->arena, name);
	t.bytes = dtype_bytes(type, (size_t)n);
	*out = s->tensors.n;
	VEC_PUSH(&s->arena, &s->tensors, t);
	return OK;
}

static int64_t elements(const struct seq_tensor *t)
{
	int64_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= t->dim[i];
	return n;
}

/* ---- calls ---- */

/* Elements of a program's tensor as it is declared. */
static int64_t program_elements(const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];
	int64_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= p->axes.v[tensor_declared_axis(t, i)].size;
	return n;
}

/* "q {4096, 32, 128}", or "rows 0 to 31 of q {...}", for messages; in `a`. */
static const char *given_text(struct arena *a, const struct sequence *s, const struct seq_given *g)
{
	const struct seq_tensor *t = &s->tensors.v[g->tensor];
	struct buf b = buf_new(a);

	if (g->count)
		buf_printf(&b, "%lld rows of ", (long long)g->count);
	buf_printf(&b, "'%s' {", t->name);
	for (int i = 0; i < t->rank; i++)
		buf_printf(&b, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
	buf_puts(&b, "}");
	return b.text;
}

/* Resolve what is given for tensor `own` of the program. */
static enum err_code make_arg(struct sequence *s, const char *call, const struct program *p, int own,
	const struct seq_given *g, struct srcloc loc, struct seq_arg *out, struct err *e)
{
	const struct tensor *wants = &p->tensors.v[own];
	const struct seq_tensor *t = &s->tensors.v[g->tensor];
	int64_t all = elements(t), rows = t->rank ? t->dim[0] : 1, row = all / rows, n = program_elements(p, own);
	int64_t first = g->first * row + g->skip, has = g->count ? g->count * row : all;
	bool writes = wants->role == TENSOR_OUTPUT;

	if (g->first < 0 || g->count < 0 || g->first > (g->count ? rows - g->count : 0))
		return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' would be rows %lld to %lld of '%s', which has %lld", g->name,
			call, (long long)g->first, (long long)(g->first + g->count - 1), t->name, (long long)rows);
	if (t->type != wants->element)
		return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' is of %s, '%s' of %s", g->name, call,
			dtype_name(wants->element), t->name, dtype_name(t->type));
	if (g->skip < 0 || g->take < 0 || g->skip > has - g->take)
		return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' would be elements %lld to %lld of %s", g->name, call,
			(long long)g->skip, (long long)(g->skip + g->take - 1), given_text(&s->arena, s, g));
	if ((g->take ? g->take : has - g->skip) != n)
		return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' has %lld elements, %s has %lld", g->name, call, (long long)n,
			given_text(&s->arena, s, g), (long long)(g->take ? g->take : has - g->skip));
	if (wants->by_address)
		return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' is given by the addresses of its parts, which a sequence "
			"has not", g->name, call);
	if (writes && t->role == SEQ_INPUT)
		return err_set(e, ERR_INPUT, loc, "call: '%s' would write '%s', which is an input; s:state is read and written by "
			"calls", call, t->name);
	if (dtype_bits(t->type) < 8 && first % 2)
		return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' would begin inside a byte of '%s'", g->name, call, t->name);
	*out = (struct seq_arg){ .tensor = g->tensor, .offset = dtype_bytes(t->type, (size_t)first),
		.bytes = dtype_bytes(t->type, (size_t)n), .reads = !writes, .writes = writes };
	if (out->offset % 16)
		return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' would begin at byte %zu of '%s', which is no multiple of 16: "
			"kernels could not copy it", g->name, call, out->offset, t->name);
	return OK;
}

bool seq_args_overlap(const struct seq_arg *a, const struct seq_arg *b)
{
	return a->tensor == b->tensor && a->tensor != NONE && a->offset < b->offset + b->bytes &&
		b->offset < a->offset + a->bytes;
}

/* No two arguments of the call are the same bytes, one of which it writes: its kernels may access them in any order. */
static enum err_code check_aliases(const struct sequence *s, const struct seq_call *c, struct err *e)
{
	const struct program *p = c->program;

	for (int i = 0; i < p->tensors.n; i++)
		for (int j = i + 1; j < p->tensors.n; j++)
			if (seq_args_overlap(&c->args[i], &c->args[j]) && (c->args[i].writes || c->args[j].writes))
				return err_set(e, ERR_INPUT, c->loc, "call: '%s' and '%s' of '%s' are the same bytes of '%s', and one of "
					"them is written: a kernel may do so before it has read them", p->tensors.v[i].name,
					p->tensors.v[j].name, c->name, s->tensors.v[c->args[i].tensor].name);
	return OK;
}

/* The temporary of the next call's program gets a tensor of the sequence: "down.Part". */
static void add_own(struct sequence *s, const struct seq_call *c, int own)
{
	const struct program *p = c->program;
	const struct tensor *t = &p->tensors.v[own];
	struct seq_tensor x = { .role = SEQ_TEMP, .type = t->element, .rank = t->rank, .call = s->calls.n, .own = own,
		.loc = c->loc };

	for (int i = 0; i < t->rank; i++)
		x.dim[i] = p->axes.v[tensor_declared_axis(t, i)].size;
	x.bytes = dtype_bytes(t->element, (size_t)program_elements(p, own));
	x.name = arena_strf(&s->arena, "%s.%s", c->name, t->name);
	c->args[own] = (struct seq_arg){ .tensor = s->tensors.n, .bytes = x.bytes, .reads = true, .writes = true };
	VEC_PUSH(&s->arena, &s->tensors, x);
}

static enum err_code find_own(const struct program *p, const char *call, const char *name, struct srcloc loc, int *out,
	struct err *e)
{
	const char *names[64];
	int n = 0;

	FIND_FIRST(*out, p->tensors.n, !strcmp(p->tensors.v[*out].name, name) && p->tensors.v[*out].role != TENSOR_TEMP);
	if (*out != NONE)
		return OK;
	for (int i = 0; i < p->tensors.n && n < LEN(names); i++)
		if (p->tensors.v[i].role != TENSOR_TEMP)
			names[n++] = p->tensors.v[i].name;
	return err_set(e, ERR_INPUT, loc, "call: program '%s' of '%s' has no input or output '%s'%s", p->name, call, name,
		nearest_hint(name, names, n).text);
}

enum err_code sequence_call(struct sequence *s, const char *name, const struct program *p,
	const struct seq_given *given, int n, struct srcloc loc, struct err *e)
{
	struct seq_call c = { .program = p, .loc = loc };
	int own;

	TRY(check_open(s, "call", loc, e));
	TRY(check_name("call", name, sequence_find_call(s, name) != NONE, loc, e));
	if (s->calls.n == SEQ_CALLS_MAX)
		return err_set(e, ERR_LIMIT, loc, "call: a sequence has at most %d calls", SEQ_CALLS_MAX);
	if (s->tensors.n > SEQ_TENSORS_MAX - p->tensors.n)
		return err_set(e, ERR_LIMIT, loc, "call: a sequence has at most %d tensors", SEQ_TENSORS_MAX);
	c.name = arena_strdup(&s->arena, name);
	c.args = ARENA_ARRAY(&s->arena, p->tensors.n, struct seq_arg);
	for (int i = 0; i < p->tensors.n; i++)
		c.args[i].tensor = NONE;
	for (int i = 0; i < n; i++) {
		TRY(find_own(p, name, given[i].name, loc, &own, e));
		if (c.args[own].tensor != NONE)
			return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' is given twice", given[i].name, name);
		TRY(make_arg(s, name, p, own, &given[i], loc, &c.args[own], e));
	}
	for (int i = 0; i < p->tensors.n; i++)
		if (c.args[i].tensor == NONE && p->tensors.v[i].role != TENSOR_TEMP)
			return err_set(e, ERR_INPUT, loc, "call: '%s' of '%s' is not given: {%s=...}", p->tensors.v[i].name, name,
				p->tensors.v[i].name);
	TRY(check_aliases(s, &c, e));
	for (int i = 0; i < p->tensors.n; i++)
		if (p->tensors.v[i].role == TENSOR_TEMP)
			add_own(s, &c, i);
	VEC_PUSH(&s->arena, &s->calls, c);
	return OK;
}

/* ---- what is written ---- */

/* Which elements a program accesses, by its tensors; found once for all calls of it. */
struct accessed {
	const struct program *program;
	struct elements *of;
};

/* By tensor of the sequence, of the calls so far: the elements of what they are given to write, and those of these
 * that their programs surely store. Both are kept of outputs and of temporaries that are not a program's own. */
struct written {
	struct elements given, stored;
};

struct writing {
	struct sequence *s;
	struct arena *a;
	struct written *of;
	VEC(struct accessed) programs;
};

static bool is_followed(const struct seq_tensor *t)
{
	return t->call == NONE && (t->role == SEQ_OUTPUT || t->role == SEQ_TEMP);
}

static const struct elements *accessed_by(struct writing *w, const struct program *p)
{
	struct elements *of;
	int i;

	FIND_FIRST(i, w->programs.n, w->programs.v[i].program == p);
	if (i != NONE)
		return w->programs.v[i].of;
	of = ARENA_ARRAY(w->a, p->tensors.n, struct elements);
	for (i = 0; i < p->tensors.n; i++) {
		if (p->tensors.v[i].role == TENSOR_INPUT)
			of[i] = find_loaded_elements(w->a, p, i);
		else if (p->tensors.v[i].role == TENSOR_OUTPUT)
			of[i] = find_stored_elements(w->a, p, i);
	}
	VEC_PUSH(w->a, &w->programs, ((struct accessed){ p, of }));
	return of;
}

/* The number of elements in so many bytes of the tensor. */
static int64_t elements_in(const struct seq_tensor *t, size_t bytes)
{
	return (int64_t)bytes * 8 / dtype_bits(t->type);
}

/* "[3, 0, 64]", the indices of an element, counted from 0; in `a`. */
static const char *element_text(struct arena *a, const struct seq_tensor *t, int64_t element)
{
	struct buf b = buf_new(a);
	int64_t inner = elements(t);

	buf_puts(&b, "[");
	for (int i = 0; i < t->rank; i++) {
		inner /= t->dim[i];
		buf_printf(&b, "%s%lld", i ? ", " : "", (long long)(element / inner % t->dim[i]));
	}
	buf_puts(&b, "]");
	return b.text;
}

/* Who is given the element to write, and does not store it: the last call before `call`. "'up' (layer.lua:12)"; in
 * w->a. */
static const char *not_storing(struct writing *w, int tensor, int64_t element, int call)
{
	const struct seq_tensor *t = &w->s->tensors.v[tensor];

	while (call-- > 0) {
		const struct seq_call *c = &w->s->calls.v[call];

		for (int i = 0; i < c->program->tensors.n; i++) {
			int64_t from = elements_in(t, c->args[i].offset);

			if (c->args[i].tensor == tensor && c->args[i].writes && element >= from &&
			    element < from + elements_in(t, c->args[i].bytes))
				return arena_strf(w->a, "'%s' (%s:%d)", c->name, c->loc.file ? c->loc.file : "?", c->loc.line);
		}
	}
	return "";
}

/* What the call reads has been written before it. */
static enum err_code check_reads(struct writing *w, int call, struct err *e)
{
	const struct seq_call *c = &w->s->calls.v[call];
	const struct elements *reads = accessed_by(w, c->program);

	for (int i = 0; i < c->program->tensors.n; i++) {
		const struct seq_arg *x = &c->args[i];
		const struct seq_tensor *t = &w->s->tensors.v[x->tensor];
		const struct written *has = &w->of[x->tensor];
		int64_t from = elements_in(t, x->offset), at;
		struct elements all = elements_all(w->a, elements_in(t, x->bytes));

		if (!x->reads || !is_followed(t))
			continue;
		if (find_missing_elements(&all, from, &has->given) != NONE)
			return err_set(e, ERR_INPUT, c->loc, "call: '%s' reads '%s', and no call before it has written %s", c->name,
				t->name, has->given.v.n && has->given.v.v[0].from == 0 ? "all of that" : "it");
		at = find_missing_elements(&reads[i], from, &has->stored);
		if (at != NONE)
			return err_set(e, ERR_INPUT, c->loc, "call: '%s' reads element %s of '%s' (counted from 0), and no call before it "
				"stores that: %s is given it, but its program stores only other elements", c->name,
				element_text(w->a, t, at), t->name, not_storing(w, x->tensor, at, call));
	}
	return OK;
}

static void add_writes(struct writing *w, int call)
{
	const struct seq_call *c = &w->s->calls.v[call];
	const struct elements *stores = accessed_by(w, c->program);

	for (int i = 0; i < c->program->tensors.n; i++) {
		const struct seq_arg *x = &c->args[i];
		const struct seq_tensor *t = &w->s->tensors.v[x->tensor];
		struct elements all = elements_all(w->a, elements_in(t, x->bytes));
		struct written *to = &w->of[x->tensor];

		if (!x->writes || !is_followed(t))
			continue;
		to->given = elements_join(w->a, &to->given, &all, elements_in(t, x->offset));
		to->stored = elements_join(w->a, &to->stored, &stores[i], elements_in(t, x->offset));
	}
}

static enum err_code check_output(struct writing *w, int tensor, struct err *e)
{
	const struct seq_tensor *t = &w->s->tensors.v[tensor];
	const struct written *has = &w->of[tensor];
	struct elements all = elements_all(w->a, elements(t));
	int64_t at = find_missing_elements(&all, 0, &has->given);

	if (at != NONE)
		return err_set(e, ERR_INPUT, t->loc, "output: no call writes %s'%s'", at ? "all of " : "", t->name);
	at = find_missing_elements(&all, 0, &has->stored);
	if (at == NONE)
		return OK;
	return err_set(e, ERR_INPUT, t->loc, "output: no call stores element %s of '%s' (counted from 0): %s is given it, "
		"but its program "
		"stores only other elements", element_text(w->a, t, at), t->name, not_storing(w, tensor, at, w->s->calls.n));
}

/* Each call reads what those before it have written; outputs are written completely; each tensor is used. */
static enum err_code check_writing(struct sequence *s, struct err *e)
{
	struct writing w = { .s = s, .a = &s->arena, .of = ARENA_ARRAY(&s->arena, s->tensors.n, struct written) };

	for (int i = 0; i < s->calls.n; i++) {
		TRY(check_reads(&w, i, e));
		add_writes(&w, i);
	}
	for (int i = 0; i < s->tensors.n; i++) {
		const struct seq_tensor *t = &s->tensors.v[i];

		if (!t->uses.n)
			return err_set(e, ERR_INPUT, t->loc, "%s: no call uses '%s'", seq_role_names[t->role], t->name);
		if (t->role == SEQ_OUTPUT)
			TRY(check_output(&w, i, e));
	}
	return OK;
}

/* ---- dependences ---- */

static void add_uses(struct sequence *s, int call)
{
	const struct seq_call *c = &s->calls.v[call];

	for (int i = 0; i < c->program->tensors.n; i++) {
		struct seq_tensor *t = &s->tensors.v[c->args[i].tensor];

		if (!t->uses.n || t->uses.v[t->uses.n - 1].call != call)
			VEC_PUSH(&s->arena, &t->uses, ((struct seq_use){ .call = call }));
		t->uses.v[t->uses.n - 1].reads |= c->args[i].reads;
		t->uses.v[t->uses.n - 1].writes |= c->args[i].writes;
	}
}

static void add_edges(struct sequence *s, int from, int to)
{
	const struct seq_call *a = &s->calls.v[from], *b = &s->calls.v[to];
	int first = s->edges.n;

	for (int i = 0; i < a->program->tensors.n; i++) {
		for (int j = 0; j < b->program->tensors.n; j++) {
			const struct seq_arg *x = &a->args[i], *y = &b->args[j];
			int known;

			if (!seq_args_overlap(x, y) || !(x->writes || y->writes))
				continue;
			FIND_FIRST(known, s->edges.n - first, s->edges.v[first + known].tensor == x->tensor);
			if (known == NONE) {
				known = s->edges.n - first;
				VEC_PUSH(&s->arena, &s->edges, ((struct seq_edge){ .from = from, .to = to, .tensor = x->tensor }));
			}
			s->edges.v[first + known].from_writes |= x->writes;
			s->edges.v[first + known].to_writes |= y->writes;
		}
	}
}

enum err_code sequence_finish(struct sequence *s, struct err *e)
{
	struct arena_mark mark;
	enum err_code code;

	if (!s->calls.n)
		return err_set(e, ERR_INPUT, NOWHERE, "sequence '%s' has no call", s->name);
	for (int i = 0; i < s->calls.n; i++)
		add_uses(s, i);
	mark = arena_mark(&s->arena);
	code = check_writing(s, e);
	arena_reset(&s->arena, mark);
	TRY(code);
	for (int j = 0; j < s->calls.n; j++)
		for (int i = 0; i < j; i++)
			add_edges(s, i, j);
	s->finished = true;
	return OK;
}
