#include "seq/seqplan.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "target/target.h"

void seqplan_new(struct mem *mem, const struct sequence *s, const struct vdevice *d, struct seqplan **out)
{
	struct seqplan *p = *out = ARENA_OWNER(mem, struct seqplan);

	p->s = s;
	p->device = d;
	p->order = arena_ints(&p->arena, s->calls.n, 0);
	p->launches = ARENA_ARRAY(&p->arena, s->calls.n, struct seq_launch);
	p->offset = ARENA_ARRAY(&p->arena, s->tensors.n, int64_t);
	p->placed_at = ARENA_ARRAY(&p->arena, s->tensors.n, struct srcloc);
	p->order_loc = s->calls.v[0].loc;
	for (int i = 0; i < s->calls.n; i++) {
		p->order[i] = i;
		p->launches[i].early = i > 0 && target_of(d)->phases_overlap;
		p->launches[i].loc = s->calls.v[i].loc;
	}
	seqplan_allocate(p);
}

void seqplan_free(struct seqplan *p)
{
	if (p)
		arena_release(&p->arena);
}

static struct srcloc copy_loc(struct seqplan *p, struct srcloc loc)
{
	return (struct srcloc){ loc.file ? arena_strdup(&p->arena, loc.file) : NULL, loc.line };
}

/* A copy for s, which has the same tensors and calls as p->s. */
static void copy_for(struct mem *mem, const struct seqplan *p, const struct sequence *s, struct seqplan **out)
{
	int calls = p->s->calls.n, tensors = p->s->tensors.n;
	struct seqplan *q;

	seqplan_new(mem, s, p->device, out);
	q = *out;
	memcpy(q->order, p->order, (size_t)calls * sizeof(*q->order));
	memcpy(q->offset, p->offset, (size_t)tensors * sizeof(*q->offset));
	q->order_loc = copy_loc(q, p->order_loc);
	q->arena_bytes = p->arena_bytes;
	for (int i = 0; i < tensors; i++)
		q->placed_at[i] = copy_loc(q, p->placed_at[i]);
	for (int i = 0; i < calls; i++) {
		const struct seq_launch *from = &p->launches[i];
		struct seq_launch *to = &q->launches[i];

		*to = (struct seq_launch){ .plan = from->plan, .stream = from->stream, .early = from->early, .loc = copy_loc(q,
			from->loc) };
		for (int k = 0; k < from->waits.n; k++)
			VEC_PUSH(&q->arena, &to->waits, from->waits.v[k]);
	}
}

void seqplan_copy(struct mem *mem, const struct seqplan *p, struct seqplan **out)
{
	copy_for(mem, p, p->s, out);
}

void seqplan_at_sizes(struct mem *mem, const struct seqplan *p, const struct sequence *s, struct seqplan **out)
{
	copy_for(mem, p, s, out);
	(*out)->fixed = true;
}

/* ---- edits ---- */

static enum err_code check_edit(const struct seqplan *p, const char *what, struct srcloc loc, struct err *e)
{
	if (p->fixed)
		return err_set(e, ERR_INPUT, loc, "%s: this plan is that of compiled kernels or of a timeline, and stays as it "
			"is; edit a copy of it, sp:copy()", what);
	return OK;
}

/* Have both the same inputs and outputs, of the same sizes? */
static bool same_tensors(const struct program *p, const struct program *q)
{
	if (p->tensors.n != q->tensors.n)
		return false;
	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *s = &p->tensors.v[i], *t = &q->tensors.v[i];

		if (strcmp(s->name, t->name) != 0 || s->role != t->role || s->type != t->type || s->rank != t->rank)
			return false;
		for (int k = 0; k < s->rank; k++)
			if (p->axes.v[s->dim[k]].size != q->axes.v[t->dim[k]].size)
				return false;
	}
	return true;
}

/* Do both compute the same? */
static bool same_program(struct arena *a, const struct program *p, const struct program *q)
{
	struct arena_mark mark = arena_mark(a);
	struct buf x = buf_new(a), y = buf_new(a);
	bool same;

	if (p == q)
		return true;
	program_print(p, &x);
	program_print(q, &y);
	same = !strcmp(x.text, y.text);
	arena_reset(a, mark);
	return same;
}

enum err_code seqplan_use(struct seqplan *p, int call, const struct plan *plan, const struct program *program,
	struct srcloc loc, struct err *e)
{
	const struct seq_call *c = &p->s->calls.v[call];

	TRY(check_edit(p, "use", loc, e));
	if (strcmp(plan->graph->program->name, c->program->name) != 0)
		return err_set(e, ERR_INPUT, loc, "use: the plan is for program '%s', call '%s' runs '%s'",
			plan->graph->program->name, c->name, c->program->name);
	if (!same_tensors(plan->graph->program, c->program))
		return err_set(e, ERR_INPUT, loc, "use: the plan is for other sizes than those of call '%s'", c->name);
	if (!same_program(&p->arena, program, c->program))
		return err_set(e, ERR_INPUT, loc, "use: the plan is for another program of the name '%s' than that of call '%s'",
			program->name, c->name);
	if (strcmp(plan->device->name, p->device->name) != 0)
		return err_set(e, ERR_INPUT, loc, "use: the plan is for device '%s', this one for '%s'", plan->device->name,
			p->device->name);
	p->launches[call].plan = plan;
	return OK;
}

enum err_code seqplan_order(struct seqplan *p, const int *calls, int n, struct srcloc loc, struct err *e)
{
	TRY(check_edit(p, "order", loc, e));
	for (int i = 0; i < n; i++)
		if (ints_hold(calls, i, calls[i]))
			return err_set(e, ERR_INPUT, loc, "order: call '%s' is there twice", p->s->calls.v[calls[i]].name);
	for (int i = 0; i < p->s->calls.n; i++)
		if (!ints_hold(calls, n, i))
			return err_set(e, ERR_INPUT, loc, "order: call '%s' is missing", p->s->calls.v[i].name);
	memcpy(p->order, calls, (size_t)n * sizeof(*calls));
	p->order_loc = loc;
	return OK;
}

enum err_code seqplan_launch(struct seqplan *p, int call, int stream, bool early, const int *waits, int nwaits,
	struct srcloc loc, struct err *e)
{
	struct seq_launch l = p->launches[call];

	TRY(check_edit(p, "launch", loc, e));
	if (stream < 0 || stream >= SEQ_STREAMS_MAX)
		return err_set(e, ERR_INPUT, loc, "launch: streams are numbered from 0 to %d, not %d", SEQ_STREAMS_MAX - 1, stream);
	for (int i = 0; i < nwaits; i++)
		if (waits[i] == call)
			return err_set(e, ERR_INPUT, loc, "launch: '%s' cannot wait for itself", p->s->calls.v[call].name);
	l = (struct seq_launch){ .plan = l.plan, .stream = stream, .early = early, .loc = loc };
	for (int i = 0; i < p->s->calls.n; i++)
		if (ints_hold(waits, nwaits, i))
			VEC_PUSH(&p->arena, &l.waits, i);
	p->launches[call] = l;		/* memory may have run out before: then nothing has changed */
	return OK;
}

enum err_code seqplan_at(struct seqplan *p, const int *tensors, const int64_t *offsets, int n, int64_t bytes,
	struct srcloc loc, struct err *e)
{
	int64_t end = 0;

	TRY(check_edit(p, "arena", loc, e));
	for (int i = 0; i < n; i++) {
		const struct seq_tensor *t = &p->s->tensors.v[tensors[i]];

		if (t->role != SEQ_TEMP)
			return err_set(e, ERR_INPUT, loc, "arena: '%s' is no temporary, but %s %s of the sequence", t->name,
				t->role == SEQ_STATE ? "a" : "an", seq_role_names[t->role]);
		if (offsets[i] < 0 || offsets[i] > (int64_t)1 << 50 || offsets[i] % SEQ_ALIGN)
			return err_set(e, ERR_INPUT, loc, "arena: '%s' would begin at byte %lld; a multiple of %d is needed", t->name,
				(long long)offsets[i], SEQ_ALIGN);
	}
	for (int i = 0; i < n; i++) {
		p->offset[tensors[i]] = offsets[i];
		p->placed_at[tensors[i]] = loc;
	}
	for (int i = 0; i < p->s->tensors.n; i++)
		if (p->offset[i] != NONE)
			end = max_i64(end, p->offset[i] + (int64_t)p->s->tensors.v[i].bytes);
	p->arena_bytes = bytes ? bytes : round_up(end, SEQ_ALIGN);
	return OK;
}

/* ---- what comes before what ---- */

bool *seqplan_relation(struct arena *a, const struct seqplan *p)
{
	int n = p->s->calls.n, last[SEQ_STREAMS_MAX];
	bool *before = ARENA_ARRAY(a, n * n, bool);
	int *position = arena_ints(a, n, 0);

	for (int i = 0; i < SEQ_STREAMS_MAX; i++)
		last[i] = NONE;
	for (int at = 0; at < n; at++)
		position[p->order[at]] = at;
	/* In order of launches, what comes before a call is known when those in front of it are. */
	for (int at = 0; at < n; at++) {
		int call = p->order[at];
		const struct seq_launch *l = &p->launches[call];

		for (int k = -1; k < l->waits.n; k++) {
			int in_front = k < 0 ? last[l->stream] : l->waits.v[k];

			if (in_front == NONE || position[in_front] > at)
				continue;
			before[in_front * n + call] = true;
			for (int i = 0; i < n; i++)
				before[i * n + call] |= before[i * n + in_front];
		}
		last[l->stream] = call;
	}
	return before;
}

bool seqplan_apart(const struct sequence *s, const bool *before, int x, int y)
{
	const struct seq_tensor *first = &s->tensors.v[x], *then = &s->tensors.v[y];

	for (int i = 0; i < first->uses.n; i++)
		for (int j = 0; j < then->uses.n; j++)
			if (!before[first->uses.v[i].call * s->calls.n + then->uses.v[j].call])
				return false;
	return true;
}

/* ---- the arena ---- */

struct temporary {
	int tensor;
	int64_t bytes;
};

static int largest_first(const void *a, const void *b)
{
	const struct temporary *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->tensor - y->tensor;
}

/* The lowest offset at which `bytes` bytes are free of the first n items that conflict with the tensor. */
static int64_t lowest(const struct seqplan *p, const struct temporary *items, const bool *conflicts, int n,
	int64_t bytes)
{
	int64_t at = 0;
	bool moved = true;

	while (moved) {
		moved = false;
		for (int i = 0; i < n; i++) {
			int64_t from = p->offset[items[i].tensor];

			if (conflicts[i] && at < from + items[i].bytes && from < at + bytes) {
				at = from + items[i].bytes;
				moved = true;
			}
		}
	}
	return at;
}

void seqplan_allocate(struct seqplan *p)
{
	const struct sequence *s = p->s;
	struct arena_mark mark = arena_mark(&p->arena);
	struct temporary *items = ARENA_ARRAY(&p->arena, s->tensors.n, struct temporary);
	bool *conflicts = ARENA_ARRAY(&p->arena, s->tensors.n, bool);
	bool *before = seqplan_relation(&p->arena, p);
	int n = 0;

	p->arena_bytes = 0;
	for (int i = 0; i < s->tensors.n; i++) {
		p->offset[i] = NONE;
		if (s->tensors.v[i].role == SEQ_TEMP)
			items[n++] = (struct temporary){ i, round_up((int64_t)s->tensors.v[i].bytes, SEQ_ALIGN) };
	}
	if (n)
		qsort(items, (size_t)n, sizeof(*items), largest_first);
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < i; k++)
			conflicts[k] = !seqplan_apart(s, before, items[i].tensor, items[k].tensor) &&
				!seqplan_apart(s, before, items[k].tensor, items[i].tensor);
		p->offset[items[i].tensor] = lowest(p, items, conflicts, i, items[i].bytes);
		p->placed_at[items[i].tensor] = s->tensors.v[items[i].tensor].loc;
		p->arena_bytes = max_i64(p->arena_bytes, p->offset[items[i].tensor] + items[i].bytes);
	}
	arena_reset(&p->arena, mark);
}

/* ---- script ---- */

static void put_launch(const struct seqplan *p, int call, struct buf *out)
{
	const struct seq_launch *l = &p->launches[call];

	buf_printf(out, "sp:launch(\"%s\", {stream=%d, early=%s", p->s->calls.v[call].name, l->stream, l->early ? "true" :
		"false");
	for (int i = 0; i < l->waits.n; i++)
		buf_printf(out, "%s\"%s\"", i ? ", " : ", after={", p->s->calls.v[l->waits.v[i]].name);
	buf_puts(out, l->waits.n ? "}})\n" : "})\n");
}

void seqplan_script(const struct seqplan *p, struct buf *out)
{
	int n = p->s->calls.n, first = 0;

	buf_puts(out, "sp:order{");
	for (int i = 0; i < n; i++)
		buf_printf(out, "%s\"%s\"", i ? ", " : "", p->s->calls.v[p->order[i]].name);
	buf_puts(out, "}\n");
	for (int i = 0; i < n; i++)
		put_launch(p, i, out);
	if (!p->arena_bytes)
		return;
	buf_puts(out, "sp:arena({");
	for (int i = 0; i < p->s->tensors.n; i++)
		if (p->offset[i] != NONE)
			buf_printf(out, "%s[\"%s\"]=%lld", first++ ? ", " : "", p->s->tensors.v[i].name, (long long)p->offset[i]);
	buf_printf(out, "}, {bytes=%lld})\n", (long long)p->arena_bytes);
}
