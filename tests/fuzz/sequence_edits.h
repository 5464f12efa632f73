/* sequence_edits.h - a sequence and edits of its plan, read from bytes.
 *
 * * Tensors and calls, right and wrong; then orders, streams, waits and offsets. An edit that fails must leave the
 * plan as it was, a copy must have the same text, and check must find something wrong just where a search by brute
 * force does. The fuzz target and the unit test share this.
 */
#ifndef SEQUENCE_EDITS_H
#define SEQUENCE_EDITS_H

#include "base/buf.h"
#include "seq/seqplan.h"
#include "target/target.h"
#include "tests/unit/make_program.h"

enum { SEQ_EDITS_MOST = 64, SEQ_FEW = 8 };

/* What all sessions use: programs of up to two inputs, with and without a temporary, and devices with and without
 * early launches. */
struct seq_stage {
	struct mem *mem;
	struct program *program[4];
	struct vdevice *device[2];
};

struct seq_session {
	const struct seq_stage *stage;
	struct arena texts;
	const uint8_t *data;
	size_t size;
	struct sequence *s;
	struct seqplan *p;
	int finished, edits, refused, legal, illegal;
	const char *wrong;		/* the first difference; NULL if all is as it must be */
};

/* Y[n] of 32 elements, of X0 and perhaps X1; with a temporary, or stored to a part of Y alone. */
static struct program *seq_program(struct mem *m, int inputs, bool temp, bool partly)
{
	struct program *p = program_new(m, "work");
	int n = make_axis(p, "n", 32), x, y = NONE;
	struct index_expr by = index_axis(n);
	struct err e;

	if (partly)			/* its output is declared first, too */
		y = make_tensor(p, TENSOR_OUTPUT, "Y", DT_F32, 1, &n);
	x = make_tensor(p, TENSOR_INPUT, "X0", DT_F32, 1, &n);
	if (inputs > 1)
		make_tensor(p, TENSOR_INPUT, "X1", DT_F32, 1, &n);
	if (temp)
		make_tensor(p, TENSOR_TEMP, "T", DT_F32, 1, &n);
	if (!partly)
		y = make_tensor(p, TENSOR_OUTPUT, "Y", DT_F32, 1, &n);
	by.k = partly ? 4 : 0;
	must_make(program_store(p, NULL, y, &by, make_load(p, x, NULL), HERE, &e), &e);
	return p;
}

static void seq_stage_init(struct seq_stage *s, struct mem *m)
{
	static const char *const arch[] = { "gfx942", "sm_90a" };

	s->mem = m;
	for (int i = 0; i < 4; i++)
		s->program[i] = seq_program(m, i == 1 ? 2 : 1, i == 2, i == 3);
	for (int i = 0; i < 2; i++) {
		s->device[i] = device_new(m, arch[i]);
		s->device[i]->arch = arch[i];
	}
}

static void seq_stage_release(struct seq_stage *s)
{
	for (int i = 0; i < 4; i++)
		program_free(s->program[i]);
	for (int i = 0; i < 2; i++)
		device_free(s->device[i]);
}

static int seq_number(struct seq_session *x, int least, int most)
{
	if (!x->size)
		return least;
	x->size--;
	return least + (int)(*x->data++ % (unsigned)(most - least + 1));
}

#define SEQ_PICK(x, list) ((list)[seq_number(x, 0, LEN(list) - 1)])

static void seq_differs(struct seq_session *x, const char *what)
{
	if (!x->wrong)
		x->wrong = what;
}

/* ---- the sequence -------------------------------------------------------------------- */

static enum err_code add_tensor(struct seq_session *x, struct err *e)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "a", "", "no name" };
	static const int64_t sizes[] = { 1, 2, 2, 3, 4, 32, 32, 8, 0, -1, (int64_t)1 << 30 };
	const char *name = SEQ_PICK(x, names);
	enum seq_role role = (enum seq_role)seq_number(x, 0, 3);
	enum dtype type = seq_number(x, 0, 7) ? DT_F32 : DT_BF16;
	int rank = seq_number(x, 0, 9) ? 2 : 1, id;
	int64_t dim[2] = { SEQ_PICK(x, sizes), seq_number(x, 0, 5) ? 32 : SEQ_PICK(x, sizes) };

	return sequence_tensor(x->s, role, name, type, rank, dim, NOWHERE, &id, e);
}

static enum err_code add_call(struct seq_session *x, struct err *e)
{
	static const char *const names[] = { "X0", "Y", "X1", "T", "Z", "Y", "X0" };
	const struct program *p = x->stage->program[seq_number(x, 0, 3)];
	bool has_two = p == x->stage->program[1];
	int n = seq_number(x, 0, 9) ? 2 + has_two : seq_number(x, 0, 4);
	struct seq_given given[5];
	char name[8];

	snprintf(name, sizeof(name), "c%d", seq_number(x, 0, 19) ? x->s->calls.n : 0);
	for (int i = 0; i < n; i++) {
		given[i] = (struct seq_given){ .name = seq_number(x, 0, 9) ? names[i] : SEQ_PICK(x, names),
			.tensor = seq_number(x, 0, x->s->tensors.n - 1),
			.first = seq_number(x, 0, 9) ? seq_number(x, 0, 1) : seq_number(x, -2, 9),
			.count = seq_number(x, 0, 9) ? 1 : seq_number(x, -1, 3) };
		if (seq_number(x, 0, 5))
			continue;
		given[i].skip = seq_number(x, -1, 40);
		given[i].take = seq_number(x, 0, 9) ? 32 : seq_number(x, -1, 40);
		given[i].count = seq_number(x, 0, 1) ? 0 : given[i].count;
		given[i].first = given[i].count ? given[i].first : 0;
	}
	return sequence_call(x->s, name, p, given, n, NOWHERE, e);
}

/* Each argument is a part of its tensor where kernels can copy it, and none that is written has a byte of another one. */
static void seq_look_at_call(struct seq_session *x, const struct seq_call *c)
{
	for (int i = 0; i < c->program->tensors.n; i++) {
		const struct seq_arg *a = &c->args[i];

		if (a->offset % 16 || a->offset + a->bytes > x->s->tensors.v[a->tensor].bytes)
			seq_differs(x, "an argument is a part of its tensor, and begins at a multiple of 16 bytes");
		for (int k = 0; k < c->program->tensors.n; k++) {
			const struct seq_arg *b = &c->args[k];

			if (k != i && a->writes && b->tensor == a->tensor && a->offset + a->bytes > b->offset && b->offset + b->bytes > a->offset)
				seq_differs(x, "what a call writes is nothing else of it");
		}
	}
}

/* ---- the plan ------------------------------------------------------------------------ */

static const char *seq_text(struct seq_session *x, const struct seqplan *p)
{
	struct buf b;

	buf_init(&b, &x->texts);
	seqplan_script(p, &b);
	return b.text;
}

static enum err_code seq_edit(struct seq_session *x, struct err *e)
{
	static const int64_t offsets[] = { 0, 0, 256, 256, 512, 768, 1024, 128, -256, (int64_t)1 << 51 };
	int what = seq_number(x, 0, 7), calls = x->s->calls.n, list[SEQ_CALLS_MAX], n = 0;
	int64_t at[SEQ_FEW];

	switch (what) {
	case 0:				/* two of the order exchanged, or one twice or left out */
		for (int i = 0; i < calls; i++)
			list[i] = x->p->order[i];
		n = seq_number(x, 0, calls - 1);
		what = seq_number(x, 0, calls - 1);
		list[n] = x->p->order[what];
		if (seq_number(x, 0, 9))
			list[what] = x->p->order[n];
		return seqplan_order(x->p, list, seq_number(x, 0, 19) ? calls : calls - 1, NOWHERE, e);
	case 1:
		for (int i = seq_number(x, 0, 3); i > 0 && x->s->tensors.n; i--, n++) {
			list[n] = seq_number(x, 0, x->s->tensors.n - 1);
			at[n] = SEQ_PICK(x, offsets);
		}
		return seqplan_at(x->p, list, at, n, seq_number(x, 0, 3) ? 0 : SEQ_PICK(x, offsets), NOWHERE, e);
	case 2:
		seqplan_allocate(x->p);
		return OK;
	}
	for (int i = seq_number(x, 0, 3); i > 0; i--)
		list[n++] = seq_number(x, 0, calls - 1);
	return seqplan_launch(x->p, seq_number(x, 0, calls - 1), seq_number(x, 0, 19) ? seq_number(x, 0, 2) : seq_number(x, -1, 17),
		seq_number(x, 0, 3) == 0, list, n, NOWHERE, e);
}

/* before[i * n + j]: by streams, waits and all ways along them. */
static void seq_close(const struct seqplan *p, bool *before)
{
	int n = p->s->calls.n, position[SEQ_CALLS_MAX];

	for (int i = 0; i < n; i++)
		position[p->order[i]] = i;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			before[i * n + j] = position[i] < position[j] && (p->launches[i].stream == p->launches[j].stream ||
				ints_hold(p->launches[j].waits.v, p->launches[j].waits.n, i));
	for (int k = 0; k < n; k++)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				before[i * n + j] |= before[i * n + k] && before[k * n + j];
}

/* Where a call's argument is: of temporaries in the arena, of others each far from all else. */
static int64_t seq_address(const struct seqplan *p, const struct seq_arg *a)
{
	int64_t at = p->s->tensors.v[a->tensor].role == SEQ_TEMP ? p->offset[a->tensor] : (int64_t)(a->tensor + 1) << 52;

	return at + (int64_t)a->offset;
}

/* Do two calls access the same bytes of a tensor, and one of them writes it? */
static bool seq_depend(const struct seqplan *p, int i, int j)
{
	const struct seq_call *a = &p->s->calls.v[i], *b = &p->s->calls.v[j];

	for (int k = 0; k < a->program->tensors.n; k++)
		for (int l = 0; l < b->program->tensors.n; l++)
			for (int64_t byte = 0; byte < (int64_t)a->args[k].bytes && a->args[k].tensor == b->args[l].tensor; byte++) {
				int64_t at = seq_address(p, &a->args[k]) + byte - seq_address(p, &b->args[l]);

				if (at >= 0 && at < (int64_t)b->args[l].bytes && (a->args[k].writes || b->args[l].writes))
					return true;
			}
	return false;
}

static bool seq_uses(const struct seqplan *p, int call, int tensor)
{
	for (int k = 0; k < p->s->calls.v[call].program->tensors.n; k++)
		if (p->s->calls.v[call].args[k].tensor == tensor)
			return true;
	return false;
}

/* Two temporaries that have a byte in common, and neither is done with before the other is begun. */
static bool seq_clash(const struct seqplan *p, const bool *before, int x, int y)
{
	int64_t first = max_i64(p->offset[x], p->offset[y]), n = p->s->calls.n;
	bool one = true, other = true;

	if (first >= p->offset[x] + (int64_t)p->s->tensors.v[x].bytes || first >= p->offset[y] + (int64_t)p->s->tensors.v[y].bytes)
		return false;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			if (seq_uses(p, i, x) && seq_uses(p, j, y)) {
				one &= before[i * n + j];
				other &= before[j * n + i];
			}
	return !one && !other;
}

static bool seq_is_wrong(const struct seqplan *p)
{
	static bool before[SEQ_CALLS_MAX * SEQ_CALLS_MAX];
	int n = p->s->calls.n;
	bool wrong = false, begun[SEQ_STREAMS_MAX] = { false };

	seq_close(p, before);
	for (int at = 0; at < n; at++) {
		const struct seq_launch *l = &p->launches[p->order[at]];

		wrong |= l->early && (!begun[l->stream] || l->waits.n || !target_of(p->device)->phases_overlap);
		begun[l->stream] = true;
		for (int k = 0; k < l->waits.n; k++)
			wrong |= !before[l->waits.v[k] * n + p->order[at]];
	}
	for (int j = 0; j < n; j++)
		for (int i = 0; i < j; i++)
			wrong |= seq_depend(p, i, j) && !before[i * n + j];
	for (int x = 0; x < p->s->tensors.n; x++) {
		if (p->s->tensors.v[x].role != SEQ_TEMP)
			continue;
		wrong |= p->offset[x] + (int64_t)p->s->tensors.v[x].bytes > p->arena_bytes;
		for (int y = 0; y < x; y++)
			wrong |= p->s->tensors.v[y].role == SEQ_TEMP && seq_clash(p, before, x, y);
	}
	return wrong;
}

static void seq_check(struct seq_session *x)
{
	struct seq_problems problems;
	bool wrong = false;
	struct arena a;
	struct err e;

	arena_init(&a, x->stage->mem);
	if (seqplan_check(x->p, &a, NULL, &problems, &e))
		seq_differs(x, "a check has an answer");
	for (int i = 0; i < problems.v.n; i++) {
		wrong |= problems.v.v[i].code != SEQ_NO_PLAN;
		if (!problems.v.v[i].message || !problems.v.v[i].message[0] || !problems.v.v[i].hint)
			seq_differs(x, "every problem has a message and a hint");
	}
	if (wrong != seq_is_wrong(x->p))
		seq_differs(x, wrong ? "check refuses what is right" : "check accepts what is wrong");
	*(wrong ? &x->illegal : &x->legal) += 1;
	arena_release(&a);
}

static void seq_try_edit(struct seq_session *x)
{
	const char *was = seq_text(x, x->p);
	struct seqplan *copy;
	struct err e = { 0 };

	x->edits++;
	if (seq_edit(x, &e)) {
		x->refused++;
		if (!e.msg[0] || strcmp(was, seq_text(x, x->p)) != 0)
			seq_differs(x, "an edit that fails says why, and changes nothing");
	}
	seqplan_copy(x->stage->mem, x->p, &copy);
	if (strcmp(seq_text(x, copy), seq_text(x, x->p)) != 0)
		seq_differs(x, "a copy has the same text");
	seqplan_free(copy);
	seq_check(x);
}

static void seq_session_run(struct seq_session *x, const struct seq_stage *stage, const uint8_t *data, size_t size)
{
	struct err e = { 0 };

	*x = (struct seq_session){ .stage = stage, .data = data, .size = size };
	arena_init(&x->texts, stage->mem);
	sequence_new(stage->mem, "drawn", &x->s);
	for (int i = seq_number(x, 2, 7); i > 0; i--)
		if (add_tensor(x, &e) && !e.msg[0])
			seq_differs(x, "a tensor that is refused has a reason");
	for (int i = seq_number(x, 1, 9); i > 0 && x->s->tensors.n; i--)
		if (!add_call(x, &e))
			seq_look_at_call(x, &x->s->calls.v[x->s->calls.n - 1]);
		else if (!e.msg[0])
			seq_differs(x, "a call that is refused has a reason");
	if (!sequence_finish(x->s, &e)) {
		x->finished = 1;
		seqplan_new(stage->mem, x->s, stage->device[seq_number(x, 0, 1)], &x->p);
		seq_check(x);
		if (x->illegal)
			seq_differs(x, "the plan that a sequence begins with is legal");
		while (x->size && x->edits < SEQ_EDITS_MOST)
			seq_try_edit(x);
		seqplan_free(x->p);
	}
	sequence_free(x->s);
	arena_release(&x->texts);
}

#endif
