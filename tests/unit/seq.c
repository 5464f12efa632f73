/* Plans of sequences: the relation of what comes before what, against a closure by brute force; where temporaries are; and that
 * check finds what is wrong there. */
#include "base/prng.h"
#include "seq/seqplan.h"
#include "tests/fuzz/sequence_edits.h"

enum { SESSIONS = 20000, BYTES_MOST = 300, CALLS = 7, TENSORS = 6, CASES = 3000, ELEMENTS = 64 };

static struct program *programs[2];	/* with one input and with two */

/* Y[n] = X0[n] + ... */
static struct program *make(struct mem *m, int inputs)
{
	struct program *p = program_new(m, "work");
	int n = make_axis(p, "n", ELEMENTS), sum = NONE;
	struct err e;

	for (int i = 0; i < inputs; i++) {
		int x = make_load(p, make_tensor(p, TENSOR_INPUT, i ? "X1" : "X0", DT_F32, 1, &n), NULL);

		sum = i ? make_op(p, OP_ADD, sum, x, NONE) : x;
	}
	make_store(p, make_tensor(p, TENSOR_OUTPUT, "Y", DT_F32, 1, &n), sum);
	must_make(program_finish(p, &e), &e);
	return p;
}

/* A random sequence: an input, temporaries of one or two parts of ELEMENTS, an output. */
static struct sequence *draw(struct mem *m, struct prng *r)
{
	struct sequence *s;
	bool written[TENSORS][2] = { { true, true } };
	struct err e;

	sequence_new(m, "drawn", &s);
	for (int i = 0; i < TENSORS; i++) {
		static const char *const names[TENSORS] = { "in", "a", "b", "c", "d", "out" };
		int64_t dim[2] = { 1 + prng_below(r, 2), ELEMENTS };
		int id;

		must_make(sequence_tensor(s, i == 0 ? SEQ_INPUT : i == TENSORS - 1 ? SEQ_OUTPUT : SEQ_TEMP, names[i], DT_F32, 2,
			dim, NOWHERE, &id, &e), &e);
	}
	for (int i = 0; i < CALLS; i++) {
		int inputs = 1 + (int)prng_below(r, 2), to = 1 + (int)prng_below(r, TENSORS - 1);
		int part = (int)prng_below(r, (uint32_t)s->tensors.v[to].dim[0]);
		struct seq_given given[3] = { { "Y", to, part, 1, 0, 0 } };
		char name[8];

		for (int k = 0; k < inputs; k++) {
			int from, at;

			do {
				from = (int)prng_below(r, TENSORS);
				at = (int)prng_below(r, (uint32_t)s->tensors.v[from].dim[0]);
			} while (!written[from][at] || (from == to && at == part));
			given[1 + k] = (struct seq_given){ k ? "X1" : "X0", from, at, 1, 0, 0 };
		}
		written[to][part] = true;
		snprintf(name, sizeof(name), "c%d", i);
		must_make(sequence_call(s, name, programs[inputs - 1], given, 1 + inputs, NOWHERE, &e), &e);
	}
	return sequence_finish(s, &e) ? sequence_free(s), NULL : s;	/* a tensor that no call uses */
}

static void draw_plan(struct seqplan *p, struct prng *r)
{
	int order[CALLS], waits[CALLS], streams = 1 + (int)prng_below(r, 3);
	struct err e;

	for (int i = 0; i < CALLS; i++)
		order[i] = i;
	for (int i = CALLS - 1; i > 0 && !prng_below(r, 4); i--) {
		int k = (int)prng_below(r, (uint32_t)i + 1), x = order[i];

		order[i] = order[k];
		order[k] = x;
	}
	must_make(seqplan_order(p, order, CALLS, NOWHERE, &e), &e);
	for (int i = 0; i < CALLS; i++) {
		int n = 0;

		for (int k = 0; k < CALLS; k++)
			if (k < i ? !prng_below(r, 2) : k > i && !prng_below(r, 64))
				waits[n++] = k;
		must_make(seqplan_launch(p, i, (int)prng_below(r, (uint32_t)streams), false, waits, n, NOWHERE, &e), &e);
	}
}

/* i before j, by edges of streams and waits and all ways along them. */
static void close_by_force(const struct seqplan *p, bool before[CALLS][CALLS])
{
	int position[CALLS];

	memset(before, 0, sizeof(bool[CALLS][CALLS]));
	for (int i = 0; i < CALLS; i++)
		position[p->order[i]] = i;
	for (int i = 0; i < CALLS; i++)
		for (int j = 0; j < CALLS; j++)
			before[i][j] = position[i] < position[j] && (p->launches[i].stream == p->launches[j].stream ||
				ints_hold(p->launches[j].waits.v, p->launches[j].waits.n, i));
	for (int k = 0; k < CALLS; k++)
		for (int i = 0; i < CALLS; i++)
			for (int j = 0; j < CALLS; j++)
				before[i][j] |= before[i][k] && before[k][j];
}

/* Two temporaries share bytes, and a call that uses one is not ordered with one that uses the other, or both ways around. */
static bool clash(const struct seqplan *p, bool before[CALLS][CALLS], int x, int y)
{
	const struct seq_tensor *s = &p->s->tensors.v[x], *t = &p->s->tensors.v[y];
	bool first = true, then = true;

	if (p->offset[x] >= p->offset[y] + (int64_t)t->bytes || p->offset[y] >= p->offset[x] + (int64_t)s->bytes)
		return false;
	for (int i = 0; i < s->uses.n; i++)
		for (int j = 0; j < t->uses.n; j++) {
			first &= before[s->uses.v[i].call][t->uses.v[j].call];
			then &= before[t->uses.v[j].call][s->uses.v[i].call];
		}
	return !first && !then;
}

/* Is there a wait for a later launch, an edge without order, a clash? */
static bool is_wrong(const struct seqplan *p, bool before[CALLS][CALLS])
{
	bool wrong = false;

	for (int i = 0; i < CALLS; i++)
		for (int k = 0; k < p->launches[i].waits.n; k++)
			wrong |= !before[p->launches[i].waits.v[k]][i];
	for (int i = 0; i < p->s->edges.n; i++)
		wrong |= !before[p->s->edges.v[i].from][p->s->edges.v[i].to];
	for (int i = 0; i < p->s->tensors.n; i++)
		for (int k = 0; k < i; k++)
			wrong |= p->offset[i] != NONE && p->offset[k] != NONE && clash(p, before, i, k);
	return wrong;
}

static bool finds(const struct seqplan *p, struct arena *a)
{
	struct seq_problems problems;
	bool wrong = false;
	struct err e;

	must_make(seqplan_check(p, a, NULL, &problems, &e), &e);
	for (int i = 0; i < problems.v.n; i++)
		wrong |= problems.v.v[i].code != SEQ_NO_PLAN;
	return wrong;
}

static struct {
	int drawn, relations, clashes, verdicts, legal;
} seen;

static void try_one(struct mem *m, struct vdevice *d, struct prng *r)
{
	struct sequence *s = draw(m, r);
	bool before[CALLS][CALLS], *relation;
	struct seqplan *p;
	struct arena a;

	if (!s)
		return;
	arena_init(&a, m);
	seqplan_new(m, s, d, &p);
	draw_plan(p, r);
	seqplan_allocate(p);
	close_by_force(p, before);
	relation = seqplan_relation(&a, p);
	seen.drawn++;
	seen.relations += memcmp(relation, before, sizeof(before)) != 0;
	for (int i = 0; i < s->tensors.n; i++)
		for (int k = 0; k < i; k++)
			seen.clashes += p->offset[i] != NONE && p->offset[k] != NONE && clash(p, before, i, k);
	for (int i = 0; i < s->tensors.n && prng_below(r, 2); i++)	/* anywhere else */
		if (p->offset[i] != NONE)
			p->offset[i] = (int64_t)prng_below(r, 4) * SEQ_ALIGN;
	p->arena_bytes = 1 << 20;
	seen.verdicts += finds(p, &a) != is_wrong(p, before);
	seen.legal += !is_wrong(p, before);
	seqplan_free(p);
	sequence_free(s);
	arena_release(&a);
}

static bool has_problem(const struct seqplan *p, struct mem *m, enum seq_problem_code code, int call)
{
	struct seq_problems problems;
	bool found = false;
	struct arena a;
	struct err e;

	arena_init(&a, m);
	must_make(seqplan_check(p, &a, NULL, &problems, &e), &e);
	for (int i = 0; i < problems.v.n; i++)
		found |= problems.v.v[i].code == code && (call == NONE || problems.v.v[i].call == call);
	arena_release(&a);
	return found;
}

/* in -> a -> b -> out, of 257 bytes each: what one byte more or less decides, and which call is in front of another. */
static void check_borders(struct mem *m, struct vdevice *none, struct vdevice *early)
{
	static const char *const names[] = { "in", "a", "b", "out" };
	struct program *p = program_new(m, "bytes");
	int n = make_axis(p, "n", 257), x = make_tensor(p, TENSOR_INPUT, "X", DT_I8, 1, &n);
	int temps[] = { 1, 2 }, order[] = { 2, 0, 1 };
	int64_t size = 257, at[] = { 0, 256 };
	struct sequence *s;
	struct seqplan *plan;
	struct err e;

	make_store(p, make_tensor(p, TENSOR_OUTPUT, "Y", DT_I8, 1, &n), make_load(p, x, NULL));
	must_make(program_finish(p, &e), &e);
	sequence_new(m, "bytes", &s);
	for (int i = 0; i < 4; i++) {
		int id;

		must_make(sequence_tensor(s, i == 0 ? SEQ_INPUT : i == 3 ? SEQ_OUTPUT : SEQ_TEMP, names[i], DT_I8, 1, &size, NOWHERE, &id, &e), &e);
	}
	for (int i = 0; i < 3; i++) {
		struct seq_given given[] = { { .name = "X", .tensor = i }, { .name = "Y", .tensor = i + 1 } };
		char name[8];

		snprintf(name, sizeof(name), "c%d", i);
		must_make(sequence_call(s, name, p, given, 2, NOWHERE, &e), &e);
	}
	must_make(sequence_finish(s, &e), &e);
	seqplan_new(m, s, early, &plan);
	must_make(seqplan_at(plan, temps, at, 2, 0, NOWHERE, &e), &e);
	ok(has_problem(plan, m, SEQ_ARENA, NONE), "temporaries that have one byte in common");
	at[0] = 256;
	at[1] = 0;
	must_make(seqplan_at(plan, temps, at, 2, 0, NOWHERE, &e), &e);
	ok(has_problem(plan, m, SEQ_ARENA, NONE), "  the other way around, too");
	at[0] = 512;
	must_make(seqplan_at(plan, temps, at, 2, 769, NOWHERE, &e), &e);
	ok(!has_problem(plan, m, SEQ_ARENA, NONE) && !has_problem(plan, m, SEQ_BOUNDS, NONE), "  not if there is a byte between them");
	must_make(seqplan_at(plan, temps, at, 2, 768, NOWHERE, &e), &e);
	ok(has_problem(plan, m, SEQ_BOUNDS, NONE), "an arena that is a byte too short");
	must_make(seqplan_order(plan, order, 3, NOWHERE, &e), &e);
	for (int i = 0; i < 3; i++)
		must_make(seqplan_launch(plan, i, i == 2, i < 2, NULL, 0, NOWHERE, &e), &e);
	ok(has_problem(plan, m, SEQ_EARLY, 0), "a call behind one of another stream alone cannot be early");
	ok(!has_problem(plan, m, SEQ_EARLY, 1), "  one behind it can");
	seqplan_free(plan);
	seqplan_new(m, s, none, &plan);
	must_make(seqplan_launch(plan, 1, 0, true, NULL, 0, NOWHERE, &e), &e);
	ok(has_problem(plan, m, SEQ_EARLY, 1), "nor any where the device has no such launches");
	seqplan_free(plan);
	sequence_free(s);
	program_free(p);
}

/* Sequences and edits of all kinds from random bytes. */
static void try_bytes(struct mem *m, struct prng *r)
{
	int finished = 0, legal = 0, illegal = 0, refused = 0, wrong = 0;
	struct seq_stage stage;

	seq_stage_init(&stage, m);
	for (int i = 0; i < SESSIONS; i++) {
		uint8_t bytes[BYTES_MOST];
		size_t n = prng_below(r, BYTES_MOST);
		struct seq_session x;

		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)prng_below(r, 256);
		seq_session_run(&x, &stage, bytes, n);
		finished += x.finished;
		legal += x.legal;
		illegal += x.illegal;
		refused += x.refused;
		wrong += x.wrong != NULL;
		if (x.wrong)
			printf("# session %d: %s\n", i, x.wrong);
	}
	seq_stage_release(&stage);
	printf("# %d sequences, %d legal plans, %d others, %d edits refused\n", finished, legal, illegal, refused);
	tap_line(finished > SESSIONS / 50 && legal > SESSIONS / 50 && illegal > SESSIONS / 50 && refused > SESSIONS / 50, __FILE__,
		__LINE__, "bytes make sequences and plans of all kinds");
	tap_int(wrong, 0, __FILE__, __LINE__, "edits and check do what they must");
}

int main(void)
{
	struct mem m = { 0 };
	struct vdevice *d;
	struct prng r = { 1 };

	d = device_new(&m, "none");
	d->arch = "none";
	programs[0] = make(&m, 1);
	programs[1] = make(&m, 2);
	for (int i = 0; i < 100 * CASES && seen.drawn < CASES; i++)
		try_one(&m, d, &r);
	tap_line(seen.drawn == CASES && seen.legal > CASES / 10, __FILE__, __LINE__, "many are drawn, and some are legal");
	tap_int(seen.relations, 0, __FILE__, __LINE__, "the relation is the closure");
	tap_int(seen.clashes, 0, __FILE__, __LINE__, "temporaries that share bytes are never in use at once");
	tap_int(seen.verdicts, 0, __FILE__, __LINE__, "check finds what brute force finds, and no more");
	struct seq_stage stage;

	seq_stage_init(&stage, &m);
	check_borders(&m, stage.device[0], stage.device[1]);
	seq_stage_release(&stage);
	try_bytes(&m, &r);
	program_free(programs[0]);
	program_free(programs[1]);
	device_free(d);
	tap_int((long long)m.used, 0, __FILE__, __LINE__, "all memory is given back");
	return tap_done();
}
