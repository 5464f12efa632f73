/* verify: kernels of plans pass. Kernels with one decision changed are refused, or are harmless: their text is the
 * same, or the CPU target, which does not depend on verify, runs them without a race and with the same result. */
#include "lower/passes.h"
#include "verify/verify.h"
#include "tests/unit/bench.h"
#include "tests/unit/oracle_states.h"

/* Mutations -------------------------------------------------------------------- */

struct tally {
	const char *name;		/* of the bench */
	void (*try)(struct bench *b, struct tally *t, const char *what);
	int made, refused, same, harmless, missed;
	int tiles, trips;		/* for the oracle */
	int strict, unknown;		/* refused without need; too many states */
};

static enum err_code check_kernel(struct bench *b, struct verified *v, struct err *e)
{
	return verify(b->k->role, b->k->plan, 0, &b->arena, v, e);
}

/* By the CPU. */
static void try_on_host(struct bench *b, struct tally *t, const char *what)
{
	struct arena_mark mark = arena_mark(&b->arena);
	struct source now;
	const char *report;
	struct err e;

	t->made++;
	must(b, lower_body(b->k, &b->e));
	if (check_kernel(b, NULL, &e)) {
		t->refused++;
		if (getenv("PROTOCOL_SAY")) {
			emit_host(b->k->role, &b->arena, &now);
			report = !strcmp(now.text.text, b->was.text.text) ? "SAME" : bench_run(b, &now, false);
			diag("%s: %s: %s\n#   host: %s", t->name, what, e.msg, report ? report : "NOTHING");
		}
		return;
	}
	emit_host(b->k->role, &b->arena, &now);
	if (!strcmp(now.text.text, b->was.text.text)) {
		t->same++;
	} else {
		report = bench_run(b, &now, false);
		t->harmless += !report;
		t->missed += report != NULL;
		diag("%s: %s: %s", t->name, what, report ? report : "harmless");
	}
	arena_reset(&b->arena, mark);
}

/* By all states of one play. */
static void try_all_states(struct bench *b, struct tally *t, const char *what)
{
	struct arena_mark mark = arena_mark(&b->arena);
	const struct graph *g = b->plan->graph;
	int64_t *trips = ARENA_ARRAY(&b->arena, g->program->loops.n * t->tiles, int64_t);
	enum err_code code;
	struct setting set;
	struct scenario s;
	struct walk w;
	bool strict;
	struct counterexample counterexample;
	enum verdict v;
	const char *why;
	struct err e;
	int states;

	t->made++;
	for (int i = 0; i < g->program->loops.n * t->tiles; i++)
		trips[i] = t->trips;
	walk_init_counts(&b->arena, &w, g, 0, t->tiles, trips);
	must(b, lower_body(b->k, &b->e));
	setting_init(&b->arena, b->k->role, b->k->plan, 0, &set);
	code = scenario_init(&b->arena, &set, &w, &s, &e);
	if (code) {			/* no play comes of it */
		t->refused++;
		arena_reset(&b->arena, mark);
		return;
	}
	code = play_scenario(&b->arena, &s, &counterexample, &e);
	v = explore(&s, &why, &states);
	t->refused += code && v == X_WRONG;
	t->harmless += !code && v == X_GOOD;
	strict = code && v == X_GOOD;
	t->strict += strict;
	if (!code)	/* what no play shows */
		code = check_kernel(b, NULL, &e);
	t->missed += !code && v == X_WRONG;
	t->unknown += v == X_UNKNOWN;
	if (strict || (!code && v == X_WRONG) || getenv("PROTOCOL_SAY"))
		diag("%s: %s: %s; in %d states: %s", t->name, what, code ? e.msg : "good", states,
			v == X_WRONG ? why : v == X_GOOD ? "good" : "too many");
	arena_reset(&b->arena, mark);
}

static const char *task_name(const struct bench *b, int task)
{
	return b->plan->graph->tasks.v[task].name;
}

static void mutate_waits(struct bench *b, struct tally *t, struct kentry *x)
{
	for (int i = 0; i < x->waits.n; i++) {
		struct flag_wait w = x->waits.v[i];
		const char *on = task_name(b, b->k->flags.v[w.flag].task);

		x->waits.n--;
		memmove(x->waits.v + i, x->waits.v + i + 1, (size_t)(x->waits.n - i) * sizeof(w));
		t->try(b, t, arena_strf(&b->arena, "'%s' without its wait for '%s'",
			task_name(b, x->task), on));
		memmove(x->waits.v + i + 1, x->waits.v + i, (size_t)(x->waits.n - i) * sizeof(w));
		x->waits.n++;
		x->waits.v[i] = w;
		x->waits.v[i].back++;
		t->try(b, t, arena_strf(&b->arena, "'%s' waits for '%s' of an iteration more back",
			task_name(b, x->task), on));
		x->waits.v[i] = w;
	}
}

static void mutate_groups(struct bench *b, struct tally *t, struct kentry *x, struct group_wait *w,
	const char *which)
{
	for (int c = 0; c < ITERATION_CLASSES; c++) {
		if (w->groups_left[c] < 0)
			continue;
		w->groups_left[c]++;
		t->try(b, t, arena_strf(&b->arena, "one group more under way %s '%s', class %d",
			which, task_name(b, x->task), c));
		w->groups_left[c]--;
		for (int m = 0; m < b->plan->graph->tasks.n; m++) {
			if (!w->instances_left[c][m])
				continue;
			w->instances_left[c][m]--;
			t->try(b, t, arena_strf(&b->arena, "'%s' is signaled too early %s '%s', class "
				"%d", task_name(b, m), which, task_name(b, x->task), c));
			w->instances_left[c][m]++;
		}
	}
}

static void mutate_switch(struct bench *b, struct tally *t, struct kentry *x, bool *at,
	const char *what)
{
	if (!*at)
		return;
	*at = false;
	t->try(b, t, arena_strf(&b->arena, "'%s' does not %s", task_name(b, x->task), what));
	*at = true;
}

static void mutate_begins(struct bench *b, struct tally *t, struct kentry *x)
{
	int n = x->carry_starts.n;

	if (!n)
		return;
	x->carry_starts.n = 0;
	t->try(b, t, arena_strf(&b->arena, "'%s' begins no carry", task_name(b, x->task)));
	x->carry_starts.n = n;
	for (int i = 0; i < n; i++) {
		struct carry_start *v = &x->carry_starts.v[i];
		int empty = v->loops_before.n;

		v->loops_before.n = 0;
		t->try(b, t, arena_strf(&b->arena, "'%s' begins '%s' although it may not be the first",
			task_name(b, x->task), b->plan->graph->buffers.v[v->buffer].name));
		v->loops_before.n = empty;
	}
}

static void mutate_entry(struct bench *b, struct tally *t, struct kentry *x)
{
	int flag = x->flag, issue = x->issue_flag;

	mutate_begins(b, t, x);
	mutate_waits(b, t, x);
	if (x->waits_groups)
		mutate_groups(b, t, x, &x->before, "before");
	if (x->drains)
		mutate_groups(b, t, x, &x->after, "after");
	mutate_switch(b, t, x, &x->waits_groups, "wait for its groups");
	mutate_switch(b, t, x, &x->drains, "drain");
	if (issue != NONE) {
		x->issue_flag = NONE;
		t->try(b, t, arena_strf(&b->arena, "'%s' does not signal its issue",
			task_name(b, x->task)));
		x->issue_flag = issue;
	}
	if (flag != NONE && b->plan->graph->tasks.v[x->task].kind != TASK_LOAD) {
		x->flag = NONE;
		t->try(b, t, arena_strf(&b->arena, "'%s' does not signal its completion",
			task_name(b, x->task)));
		x->flag = flag;
	}
}

static void mutate_step(struct bench *b, struct tally *t, struct kstep *s)
{
	int handover = s->handover_flag;

	if (s->groups_left != NONE) {
		s->groups_left++;
		t->try(b, t, arena_strf(&b->arena, "one group more under way behind loop %d", s->id));
		s->groups_left--;
	}
	if (handover == NONE)
		return;
	s->handover_flag = NONE;
	t->try(b, t, arena_strf(&b->arena, "step %d does not wait for the other replica", s->id));
	s->handover_flag = handover;
}

static void mutate_order(struct bench *b, struct tally *t, struct klane *l)
{
	for (int v = 0; v <= b->plan->graph->program->loops.n; v++) {
		for (int i = 0; i < l->regions[v].steps.n; i++)
			mutate_step(b, t, &l->regions[v].steps.v[i]);
		for (int i = 0; i + 1 < l->regions[v].steps.n; i++) {
			struct kstep *s = l->regions[v].steps.v, was = s[i];

			s[i] = s[i + 1];
			s[i + 1] = was;
			t->try(b, t, arena_strf(&b->arena, "lane %d, region %d: step %d after step "
				"%d", l->lane, v, i, i + 1));
			s[i + 1] = s[i];
			s[i] = was;
		}
	}
}

static void mutate_number(struct bench *b, struct tally *t, int *at, int by, int task,
	const char *what)
{
	if (*at + by < 1)
		return;
	*at += by;
	t->try(b, t, arena_strf(&b->arena, "%s of '%s' %+d", what, task_name(b, task), by));
	*at -= by;
}

static void mutate_flag_of_all(struct bench *b, struct tally *t, struct flag *f)
{
	if (!f->all_blocks)
		return;
	f->all_blocks = false;
	t->try(b, t, arena_strf(&b->arena, "'%s' is signaled to its own block alone",
		task_name(b, f->task)));
	f->arrivals /= b->k->cluster;
	t->try(b, t, arena_strf(&b->arena, "'%s' is signaled by and to its own block alone",
		task_name(b, f->task)));
	f->arrivals *= b->k->cluster;
	f->all_blocks = true;
}

static void mutate_share(struct bench *b, struct tally *t, struct ring *r)
{
	struct ring was = *r;
	const char *name = b->plan->graph->buffers.v[r->buffer].name;

	if (b->k->cluster == 1 || !r->engine)
		return;
	r->share = was.share == SHARE_NONE ? SHARE_PANELS : SHARE_NONE;
	r->box_rows = r->full_rows;
	t->try(b, t, arena_strf(&b->arena, "'%s' is %s", name, was.share == SHARE_NONE ? "shared" :
		"each block's own"));
	*r = was;
	if (r->share == SHARE_ROWS) {
		r->share = SHARE_PANELS;
		t->try(b, t, arena_strf(&b->arena, "'%s' is divided otherwise than its boxes", name));
	}
	*r = was;
	r->box_rows /= 2;
	t->try(b, t, arena_strf(&b->arena, "'%s' has half a box", name));
	*r = was;
}

static void mutate_parts(struct bench *b, struct tally *t, struct parts_sum *x)
{
	int read = x->read;

	if (read == NONE)
		return;
	x->read = NONE;
	t->try(b, t, arena_strf(&b->arena, "nobody says that the parts of '%s' have been read", task_name(b, x->task)));
	x->read = read;
}

static void mutate_all(struct bench *b, struct tally *t)
{
	struct kernel *k = b->k;

	for (int i = 0; i < k->lanes.n; i++) {
		for (int j = 0; j < k->lanes.v[i].entries.n; j++)
			mutate_entry(b, t, &k->lanes.v[i].entries.v[j]);
		mutate_order(b, t, &k->lanes.v[i]);
	}
	for (int i = 0; i < k->parts.n; i++)
		mutate_parts(b, t, &k->parts.v[i]);
	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];
		int64_t bytes = f->bytes;

		mutate_number(b, t, &f->depth, -1, f->task, "depth of the flag");
		mutate_number(b, t, &f->arrivals, 1, f->task, "arrivals");
		mutate_number(b, t, &f->arrivals, -1, f->task, "arrivals");
		for (int by = -16; by <= 16 && bytes; by += 32) {
			f->bytes = bytes + by;
			t->try(b, t, arena_strf(&b->arena, "bytes of '%s' %+d",
				task_name(b, f->task), by));
		}
		f->bytes = bytes;
		mutate_flag_of_all(b, t, f);
	}
	for (int i = 0; i < k->outboxes.n; i++) {
		struct outbox *o = &k->outboxes.v[i];

		for (int n = 0; n < 2; n++) {
			o->unread[n]++;
			t->try(b, t, arena_strf(&b->arena, "'%s' waits for one store less, %s",
				task_name(b, o->task), n ? "later" : "at first"));
			o->unread[n]--;
		}
		mutate_number(b, t, &o->batches, -1, o->task, "batches");
	}
	for (int i = 0; i < k->rings.n; i++) {
		mutate_number(b, t, &k->rings.v[i].versions, -1,
			b->plan->graph->buffers.v[k->rings.v[i].buffer].first, "versions of the ring");
		mutate_share(b, t, &k->rings.v[i]);
	}
}

static void check_plan_of(const char *name, const char *script)
{
	struct tally t = { .name = name, .try = try_on_host };
	struct verified p;
	struct bench b;

	bench_open(&b, script, 0);
	if (!ok(!check_kernel(&b, &p, &b.e), name))
		diag("%s", b.e.msg);
	diag("%d plays of %lld actions, period %d, %s", p.plays, (long long)p.actions, p.period,
		p.complete ? "complete" : "a sample");
	bench_data(&b);
	ok(!bench_run(&b, &b.was, true), "it runs on the CPU");
	mutate_all(&b, &t);
	is_int(t.missed, 0, "verify refuses every mistake that the CPU finds");
	diag("%d changed kernels: %d refused, %d with the same text, %d harmless on the CPU", t.made,
		t.refused, t.same, t.harmless);
	bench_close(&b);
}

static void check_states_of(const char *name, const char *script, int tiles, int trips,
	bool mutants)
{
	struct tally t = { .name = name, .try = try_all_states, .tiles = tiles, .trips = trips };
	struct bench b;

	bench_open(&b, script, 0);
	try_all_states(&b, &t, "as it is");
	is_int(t.harmless, 1, name);
	if (mutants)
		mutate_all(&b, &t);
	is_int(t.missed, 0, "verify refuses every mistake that some state shows");
	diag("%d kernels: %d refused, %d harmless, %d refused without need, %d with too many states",
		t.made, t.refused, t.harmless, t.strict, t.unknown);
	bench_close(&b);
}

/* 33 versions in registers: 99 trip counts differ, of which 64 are tried. That is a sample, with the greatest in it. */
static void test_sample(void)
{
	struct verified v;
	struct bench b;

	bench_open(&b, "return many_versions(33)", 0);
	if (!ok(!check_kernel(&b, &v, &b.e), "a kernel with 33 versions in registers"))
		diag("%s", b.e.msg);
	ok(v.actions < VERIFY_ACTIONS && v.period < 60 && !v.complete, "  of which not all trip counts are played");
	bench_close(&b);
	bench_open(&b, "return many_versions(3)", 0);
	ok(!check_kernel(&b, &v, &b.e) && v.complete, "a kernel with 3 versions, of which all are played");
	bench_close(&b);
}

/* The least iterations of the second loop in a window in which the first makes many. */
static bool note_window(void *ctx, const struct relation *r)
{
	int64_t *least = ctx, tiles = r->walk->ntiles;

	if (walk_count(r->walk, 0) >= 6 * tiles)
		*least = min_i64(*least, walk_count(r->walk, 1) / tiles);
	return true;
}

/* Flags are as deep as windows ask for; those of a kernel that is made for its price are seen by nobody else. */
static void test_windows(void)
{
	int64_t least = INT64_MAX;
	struct bench b;

	bench_open(&b, "return two_loops()", 0);
	ok(lower_all_windows(b.k, note_window, &least), "all windows are looked at");
	is_int(least, 1, "  also short runs of one loop next to long ones of another");
	bench_close(&b);
}

/* Interrupts lowering at its n-th request for memory, for ever greater n, until it is through. */
static volatile int interrupted;
static uint64_t interrupt_at;

static void interrupt_late(struct mem *m)
{
	interrupted |= m->calls >= interrupt_at;
}

static void test_interrupted(void)
{
	const struct stop stop = { &interrupted };
	int interruptions = 0, others = 0;
	uint64_t most_left = 0;
	struct kernel *k;
	struct bench b;

	bench_open(&b, "return attention{overlap=true, causal=true, k=3}", 0);
	b.mem.fine = true;
	for (uint64_t n = 1;; n += 1 + n / 4) {
		uint64_t before = b.mem.calls;
		enum err_code code;

		interrupted = 0;
		interrupt_at = before + n;
		b.mem.on_request = interrupt_late;
		code = lower_plan(&b.mem, b.plan, 0, &stop, &k, &b.e);
		b.mem.on_request = NULL;
		interruptions += code == ERR_INTERRUPTED;
		others += code && code != ERR_INTERRUPTED;
		if (code && b.mem.calls - interrupt_at > most_left)
			most_left = b.mem.calls - interrupt_at;
		if (!code)
			break;
	}
	ok(interruptions > 10 && !others, "lowering can be interrupted");
	diag("%d times; at most %llu requests for memory later", interruptions, (unsigned long long)most_left);
	kernel_free(k);
	b.mem.fine = false;
	bench_close(&b);
}

/* Tiles by a counter: what its ring is made of, and which lanes take part. */
static void test_taken(void)
{
	struct bench b;
	struct role_taken *x, was;

	bench_open(&b, "local p = gemm({m=256, n=128, k=64}, {m=64, n=64, k=32}, 2, 1) p:grid{dynamic=true, eus=3} return p", 0);
	x = &b.k->role->taken;
	was = *x;
	ok(!check_kernel(&b, NULL, &b.e), "tiles by a counter");
	is_int(x->own, 1, "... of which one is a block's own, as its rings are of a loop");
	bench_data(&b);
	ok(!bench_run(&b, &b.was, true), "... run on the CPU");
	x->warps++;
	ok(check_kernel(&b, NULL, &b.e), "... the ring waits for a warp that is not there: refused");
	*x = was;
	x->slots = 1;
	ok(check_kernel(&b, NULL, &b.e), "... a single slot: refused");
	*x = was;
	x->offset = 0;
	ok(check_kernel(&b, NULL, &b.e), "... numbers in the memory of a ring: refused");
	*x = was;
	x->tiles--;
	ok(check_kernel(&b, NULL, &b.e), "... a tile less than the grid has: refused");
	*x = was;
	x->lane = NONE;
	ok(check_kernel(&b, NULL, &b.e), "... tiles from the start: refused");
	*x = was;
	for (int i = 0; i < b.k->role->roles.n; i++)
		for (int k = 0; k < b.k->role->roles.v[i].body.v.n; k++)
			if (b.k->role->roles.v[i].body.v.v[k]->what == DO_TILES)
				b.k->role->roles.v[i].body.v.v[k]->u.region.asks = true;
	ok(check_kernel(&b, NULL, &b.e), "... several lanes that ask: refused");
	bench_close(&b);
}

/* The first copy below that leaves out what its slot has; NULL. */
static struct role_op *find_kept(const struct role_body *b)
{
	struct role_op *found = NULL;

	for (int i = 0; i < b->v.n && !found; i++) {
		struct role_op *o = b->v.v[i];

		if (o->what == DO_LOAD_BOXES && o->u.boxes.key)
			return o;
		if (role_is_region(o->what))
			found = find_kept(&o->u.region.body);
	}
	return found;
}

/* Copies that are left out: what says which bytes a slot has. */
static void test_kept(void)
{
	struct role_op *o = NULL;
	const struct num *key;
	struct role_ring *ring;
	int64_t words;
	struct bench b;

	bench_open(&b, "local p = gemm({m=320, n=128, k=64}, {m=64, n=64, k=32}, 2, 1) p:grid{eus=3, keep=5, along='m'} return p", 0);
	for (int i = 0; i < b.k->role->roles.n && !o; i++)
		o = find_kept(&b.k->role->roles.v[i].body);
	ok(o && !check_kernel(&b, NULL, &b.e), "copies that are left out");
	bench_data(&b);
	ok(!bench_run(&b, &b.was, true), "... run on the CPU");
	key = o->u.boxes.key;
	o->u.boxes.key = num_const(&b.arena, 1);
	ok(check_kernel(&b, NULL, &b.e), "... the same number for all bytes: refused");
	o->u.boxes.key = num_make(&b.arena, NUM_ADD, key, num_const(&b.arena, -1));
	ok(check_kernel(&b, NULL, &b.e), "... 0, which is what words are at first: refused");
	o->u.boxes.key = NULL;
	ok(check_kernel(&b, NULL, &b.e), "... a copy that leaves the word as it is: refused");
	o->u.boxes.key = key;
	ring = &b.k->role->rings.v[o->u.boxes.ring];
	words = ring->words;
	ring->words = b.k->role->flags.v[0].offset;
	ok(check_kernel(&b, NULL, &b.e), "... words in the memory of a flag: refused");
	ring->words = 0;
	ok(check_kernel(&b, NULL, &b.e), "... slots without words: refused");
	ring->words = words;
	ok(!check_kernel(&b, NULL, &b.e), "... as it was: accepted");
	bench_close(&b);
}

int main(void)
{
	test_taken();
	test_kept();
	check_states_of("all states of a gemm, five iterations",
		"return gemm({m=128, n=128, k=160}, {m=64, n=64, k=32}, 2, 1)", 1, 5, true);
	check_states_of("all states of a gemm, three tiles",
		"return gemm({m=256, n=64, k=32}, {m=64, n=64, k=32}, 1, 1)", 3, 1, true);
	check_states_of("all states of a gemm, two tiles of two iterations",
		"return gemm({m=256, n=64, k=64}, {m=64, n=64, k=32}, 2, 1)", 2, 2, true);
	check_states_of("all states of a gemm, two consumers",
		"return gemm({m=128, n=64, k=64}, {m=128, n=64, k=32}, 1, 2)", 1, 2, true);
	check_states_of("all states of a gemm that looks back at its loads", "return looking_back{m=128, n=64, k=160}",
		1, 4, true);
	check_states_of("all states of a gemm copied by threads",
		"return gemm({m=128, n=64, k=100}, {m=64, n=64, k=32}, 2, 1)", 1, 4, true);
	check_states_of("all states of attention", "return attention{m=128, n=128}", 2, 2, true);
	check_states_of("all states of attention, queries from a lane of their own",
		"return attention{m=192, n=128, p1=true}", 3, 2, true);
	check_states_of("all states of attention with overlap",
		"return attention{m=128, n=128, overlap=true}", 2, 2, true);
	check_states_of("all states of ping-pong", "return example('attention_pingpong', "
		"attention_of{m=128, n=256})", 1, 2, false);
	check_states_of("all states of a gemm whose epilogue is another lane's",
		"return epilogue({m=128, n=64, k=64}, {})", 2, 2, true);
	check_states_of("all states of attention with its statistics on a second lane",
		"return statistics({m=64, n=128, ring=1}, {softmax=true, rescale=true})", 1, 2, true);
	check_states_of("all states of a product that is a tile ahead", "return shifted(project{m=192, n=64, k=32}, "
		"{m=64, n=64}, {a=2, b=2, mma=2}, {mma=1})", 3, 1, true);
	check_states_of("all states of a gemm whose epilogue is a tile behind", "return shifted("
		"mr.examples.gemm{m=128, n=64, k=64}, {m=64, n=64, k=32}, {a=2, b=1, c=2}, "
		"{epilogue=-1, store_c=-1})", 2, 2, true);
	if (getenv("PROTOCOL_STATES"))
		return 0;
	check_plan_of("gemm, two consumers", "return gemm({m=256, n=128, k=192}, {m=128, n=64, k=32}, 3, 2)");
	check_plan_of("gemm, one iteration a tile", "return gemm({m=256, n=128, k=32}, {m=64, n=64, k=32}, 4, 1)");
	check_plan_of("gemm, its lanes look back at loads of slots that are filled again",
		"return looking_back{m=256, n=64, k=160}");
	check_plan_of("gemm, a cluster that looks back at its loads", "local plan = cluster{ring = 1} "
		"plan:wait('mma', {{'load_b', distance = 1}, {'load_a', distance = 2}}) return plan");
	check_plan_of("gemm, stores in two batches",
		"return gemm({m=128, n=256, k=64}, {m=64, n=256, k=64}, 5, 1)");
	check_plan_of("gemm, stores in narrow panels",
		"return gemm({m=256, n=256, k=32}, {m=128, n=256, k=16}, 16, 2)");
	check_plan_of("gemm, a cluster that shares rows of B", "return cluster{}");
	check_plan_of("gemm, a cluster that divides the loop", "local plan = gemm({m=256, n=64, k=192}, {m=64, n=64, k=32}, 2, 1) "
		"plan:grid{cluster=3, divide='k', eus=3} return plan");
	check_plan_of("gemm, a cluster that divides the loop of one tile", "local plan = "
		"gemm({m=64, n=64, k=192}, {m=64, n=64, k=32}, 2, 1) "
		"plan:grid{cluster=3, divide='k', eus=3} return plan");
	check_plan_of("gemm, a cluster that shares A, a ring of one", "return cluster{group = 1, ring = 1}");
	check_plan_of("gemm, a cluster of four, panels of B", "return cluster{size = 4, b = 'kn', k = 64}");
	check_plan_of("a lane that runs ahead of another without end is held back",
		"return apart{{'mma_d', 'mma_c', 0}}");
	check_plan_of("a load whose reader falls behind without end is held back",
		"return apart{warps = 2, {'mma_d', 'load_a', 1}, {'load_b', 'load_a', 1}}");
	check_plan_of("waits over loops", "return apart{{'out_d', 'mma_c', 2}, {'mma_c', 'out_d', 1, 'issued'}, "
		"{'load_e', 'out_c', 2}}");
	check_plan_of("waits over loops that may be empty", "return apart{part = true, {'out_d', 'mma_c', 0}, "
		"{'load_b', 'out_d', 2}, {'store_c', 'store_d', 1}}");
	check_plan_of("a product that its lane looks at in time", "return split()");
	check_plan_of("gemm, a replica waits for the last tile of its own", "local plan = replicas() "
		"plan:wait('store_c', {{'load_a', distance = 0, when = 'issued'}}) return plan");
	check_plan_of("attention in series", "return attention{}");
	check_plan_of("attention, queries from a lane of their own", "return attention{p1=true}");
	check_plan_of("attention, a long loop and queries from a lane of their own",
		"return attention{p1=true, m=128, n=64*20}");
	check_plan_of("attention, queries of two tiles", "return attention{q=2}");
	check_plan_of("attention, tiles without iterations", "return attention{causal=true, m=256, n=128}");
	check_plan_of("gemm by two replicas", "return replicas()");
	check_plan_of("attention, loads ahead of each other", "return attention{load_k=2, load_v=1, k=4, v=3}");
	check_plan_of("attention with overlap", "return attention{overlap=true}");
	check_plan_of("attention with overlap, causal", "return attention{overlap=true, causal=true, k=3}");
	check_plan_of("two products ahead", "return attention{overlap=true, mma_qk=2, scores=2, h=2}");
	check_plan_of("a product that is a tile ahead, a store behind", "return shifted(project{m=448, n=64, k=32}, "
		"{m=64, n=64}, {a=2, b=2, mma=2, scale=2}, {mma=1, store_c=-1})");
	check_plan_of("a product that is a tile ahead, on two replicas", "return shifted(project{m=320, n=64, k=32}, "
		"{m=64, n=64}, {a=3, b=3, mma=2}, {mma=1}, nil, 2)");
	check_plan_of("loads two tiles ahead, a product one, on one lane", "return shifted("
		"project{m=448, n=64, k=32}, {m=64, n=64}, {a=3, b=2, mma=2}, {load_a=2, load_b=1, mma=1}, 'c0')");
	check_plan_of("gemm, its epilogue a tile behind, on two replicas", "return shifted("
		"mr.examples.gemm{m=320, n=64, k=96}, {m=64, n=64, k=32}, {a=2, b=2, c=2}, "
		"{epilogue=-1, store_c=-1}, nil, 2)");
	check_plan_of("attention, queries a tile ahead, the end a tile behind", "return shifted("
		"attention_of{m=256, n=192}, {m=64, n=64}, {q=3, k=2, v=2, "
		"o=2, l=2, normalise=2}, {load_q=1, normalise=-1, store_o=-2})");
	check_plan_of("gemm, its epilogue another lane's", "return epilogue({m=256, n=128, k=96}, {a=2, b=2})");
	check_plan_of("gemm, its epilogue another lane's, a ring of accumulators",
		"return epilogue({m=320, n=128, k=32}, {a=2, b=2, c=3})");
	check_plan_of("attention, its softmax on a second lane",
		"return statistics({m=192, n=192, ring=2}, {softmax=true})");
	check_plan_of("attention, its statistics on a second lane, tiles without iterations",
		"return statistics({m=256, n=128, ring=2, causal=true}, {softmax=true, rescale=true})");
	check_plan_of("ping-pong", "return on_one_eu('attention_pingpong', attention_of{m=384, n=512, d=128})");
	check_plan_of("ping-pong, tiles without iterations", "local plan = on_one_eu('attention_pingpong', "
		"attention_of{m=512, n=200, causal=true}) plan:fill_waits() return plan");
	test_sample();
	test_interrupted();
	test_windows();
	return tap_done();
}
