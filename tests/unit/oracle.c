/* Legality by brute force: random plans of random small programs, judged by plan_check
 * and by a machine that tries every execution (oracle_machine.h). What the checker
 * calls legal must go right for all lists of tiles that an EU may get; what it calls
 * illegal must go wrong for some trip counts that the program's bounds allow. On the
 * way the order of every lane and the meaning of every wait are compared with the
 * machine's own reading of plan.h, and plan_fill_waits is held to its promise. Longer
 * runs are judged by one execution, after it was seen to tell the same of short ones.
 *
 *   oracle [plans [first seed]]
 */
#include <time.h>

#include "plan/order.h"
#include "tests/tap.h"
#include "tests/unit/oracle_draw.h"

enum {
	LISTS_MOST = 72,		/* that are distinguished */
	COMBINATIONS_MOST = 3000,	/* of trip counts */
	SHOWN_MOST = 3,			/* disagreements printed in full */
};

static struct mem mem;
static struct states states;
static struct machine machine;
static struct exploration found;
static struct closure closure;

static struct {
	int plans, legal, illegal, skipped, undecided, lists, longer;
	int unsound, strict, first_readers, deadlocks, orders, spans, conclusions;
	int unfilled, needless;
	long long states, runs;
} tally;

/* A plan for a program whose trip counts we know. */
struct subject {
	const struct drawing *d;
	struct plan *p;
	uint64_t seed;
};

/* ---- what the checker says --------------------------------------------------------- */

struct opinion {
	bool legal, deadlock, missing;
	bool first_readers;		/* it objects only to reading at once, see below */
};

static bool is_capacity(enum problem_code c)
{
	return c == PROBLEM_REGISTERS || c == PROBLEM_SHARED_MEMORY || c == PROBLEM_BARRIERS ||
		c == PROBLEM_THREADS;
}

/* Is the edge about two that only read? The one that may come first in the life of a
 * carry counts as its writer, even where it does not come first. */
static bool is_of_first_reader(const struct plan *p, int edge)
{
	const struct edge *e = edge == NONE ? NULL : &p->graph->edges.v[edge];

	return e && e->kind == EDGE_FLOW && !e->reuse &&
		!list_has(&p->graph->tasks.v[e->from], e->buffer, true) &&
		!list_has(&p->graph->tasks.v[e->to], e->buffer, true);
}

static struct opinion ask(const struct plan *p)
{
	struct opinion o = { .legal = true, .first_readers = true };
	struct problems problems;
	struct arena a;

	arena_init(&a, &mem);
	look(p, &a, &problems);
	for (int i = 0; i < problems.v.n; i++) {
		const struct problem *pr = &problems.v.v[i];

		if (is_capacity(pr->code))
			continue;
		o.legal = false;
		o.deadlock |= pr->code == PROBLEM_DEADLOCK;
		o.missing |= pr->code == PROBLEM_MISSING_WAIT ||
			pr->code == PROBLEM_MISPLACED_WAIT;
		o.first_readers &= is_of_first_reader(p, pr->edge);
	}
	arena_release(&a);
	return o;
}

/* ---- what the machine says --------------------------------------------------------- */

/* Every execution; FINE or what goes wrong. */
static enum verdict play(const struct plan *p, const struct scenario *s, int phase)
{
	enum verdict v;

	if (!machine_build(&machine, p, s, phase))
		return TOO_LARGE;
	v = machine_explore(&machine, &states, &found);
	tally.states += states.n;
	tally.runs++;
	return v;
}

/* Lists of tiles of the grid, none of them twice, longest first. */
struct lists {
	int at;				/* tuple of tiles, as a number */
	int length;
	int64_t tile[LIST];
	int nseen;
	struct scenario seen[LISTS_MOST];
};

static bool next_list(const struct drawing *d, struct lists *l)
{
	int base = d->ntiles + 1, all = 1;

	for (int i = 0; i < d->ntiles; i++)
		all *= base;
	while (++l->at < all) {
		int x = all - l->at;
		bool good = true;

		l->length = 0;
		for (int i = 0; i < d->ntiles; i++, x /= base) {
			int tile = x % base - 1;

			good &= tile < 0 || l->length == i;
			for (int k = 0; k < l->length && tile >= 0; k++)
				good &= l->tile[k] != tile;
			if (tile >= 0)
				l->tile[l->length++] = tile;
		}
		if (good && l->length)
			return true;
	}
	return false;
}

/* The next list with trip counts that were not there before. */
static bool next_scenario(const struct drawing *d, struct lists *l, struct scenario *out)
{
	while (next_list(d, l)) {
		bool again = false;

		scenario_of_tiles(d, l->length, l->tile, out);
		for (int i = 0; i < l->nseen; i++)
			again |= !memcmp(&l->seen[i], out, sizeof(*out));
		if (again)
			continue;
		if (l->nseen < LISTS_MOST)
			l->seen[l->nseen++] = *out;
		return true;
	}
	return false;
}

/* Trip counts within the bounds: combination c, in a mixed radix. False beyond the
 * last. The greatest counts come first, as they show most. */
static bool combination(const struct subject *s, int ntiles, int c, struct scenario *out)
{
	const struct graph *g = s->p->graph;

	*out = (struct scenario){ .ntiles = ntiles };
	for (int t = 0; t < ntiles; t++) {
		for (int l = 0; l < g->program->loops.n; l++) {
			int least = (int)g->trips[l].least, most = (int)g->trips[l].most;

			for (int i = 0; i < TRIPS; i++)
				out->trips[l][t][i] = (int8_t)(most - c % (most - least + 1));
			c /= most - least + 1;
		}
	}
	return c == 0;
}

/* FINE if all is fine for all trip counts, in all phases. */
static enum verdict play_combinations(const struct subject *s, struct scenario *at)
{
	enum verdict worst = FINE;

	for (int n = s->d->ntiles; n > 0; n--) {
		for (int c = 0; combination(s, n, c, at); c++) {
			for (int ph = 0; ph < s->p->graph->program->phases.n; ph++) {
				enum verdict v = c < COMBINATIONS_MOST ? play(s->p, at, ph) :
					TOO_LARGE;

				if (v != FINE && v != TOO_LARGE)
					return v;
				worst = v == TOO_LARGE ? v : worst;
			}
			if (c == COMBINATIONS_MOST)
				break;
		}
	}
	return worst;
}

/* FINE if all is fine for all lists of tiles; else what goes wrong, where. */
static enum verdict play_lists(const struct subject *s, struct scenario *at, int *phase)
{
	struct lists lists = { 0 };

	while (next_scenario(s->d, &lists, at)) {
		for (*phase = 0; *phase < s->p->graph->program->phases.n; ++*phase) {
			enum verdict v = play(s->p, at, *phase);

			if (v != FINE)
				return v;
		}
	}
	return FINE;
}

/* ---- telling of a disagreement ------------------------------------------------------ */

static void print_text(const struct buf *b)
{
	const char *s = b->text;

	while (*s) {
		int n = (int)strcspn(s, "\n");

		diag("  %.*s", n, s);
		s += n + (s[n] == '\n');
	}
}

static void name_instance(int i, struct buf *out)
{
	const struct happening *h = &machine.at[i];
	const struct stask *t = &machine.g->tasks.v[h->task];

	buf_printf(out, "%s[tile %d", t->name, h->seq[0]);
	if (t->loop != NONE)
		buf_printf(out, ", %d", h->seq[t->loop + 1]);
	buf_putc(out, ']');
}

static void print_trace(struct buf *out)
{
	const struct happening *h = found.depth ? &machine.at[found.trace[found.depth - 1] / 2] :
		NULL;

	for (int i = 0; i < found.depth; i++) {
		int who = found.trace[i] / 2;

		buf_puts(out, found.trace[i] % 2 ? "    end of " : "  issue of ");
		name_instance(who, out);
		buf_printf(out, " by %s\n", machine.p->lanes.v[machine.at[who].lane].name);
	}
	for (int i = 0; i < machine.n && found.verdict == RACE; i++) {
		if (!bit_get(&h->rivals, i) || !bit_get(&found.issued, i) || bit_get(&found.done, i))
			continue;
		buf_puts(out, "  while under way: ");
		name_instance(i, out);
		buf_putc(out, '\n');
	}
	for (int i = 0; h && i < h->ntouches && found.verdict == STALE; i++) {
		const struct touch *t = &h->touch[i];

		if (t->slot != found.slot || !t->reads)
			continue;
		buf_printf(out, "  '%s' should be of ", machine.g->buffers.v[t->buffer].name);
		name_instance(t->expect, out);
		buf_puts(out, ", is of ");
		if (found.content[t->slot] == NONE)
			buf_puts(out, "nobody");
		else
			name_instance(found.content[t->slot], out);
		buf_putc(out, '\n');
	}
}

static void print_graph(const struct graph *g, struct buf *out)
{
	program_print(g->program, out);
	for (int l = 0; l < g->program->loops.n; l++)
		buf_printf(out, "loop %d: in %d, trips %d..%d\n", l, g->program->loops.v[l].parent,
			(int)g->trips[l].least, (int)g->trips[l].most);
	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];

		buf_printf(out, "edge %s -> %s %s '%s' loop %d distance %d%s%s\n",
			g->tasks.v[e->from].name, g->tasks.v[e->to].name, edge_kind_name(e->kind),
			g->buffers.v[e->buffer].name, e->loop, e->distance, e->reuse ? " reuse" : "",
			e->chain ? " chain" : "");
	}
}

static void print_plan(const struct plan *p, struct arena *a, struct buf *out)
{
	struct problems problems;

	for (int u = 0; u < p->device->nseus; u++)
		buf_printf(out, "sEU %s:%s%s\n", p->device->seu[u].name,
			p->device->seu[u].async ? " async" : " sync",
			p->device->seu[u].ordered ? " ordered" : "");
	plan_script(p, out);
	look(p, a, &problems);
	for (int i = 0; i < problems.v.n; i++)
		buf_printf(out, "checker: %s: %s\n", problem_name(problems.v.v[i].code),
			problems.v.v[i].message);
	if (!problems.v.n)
		buf_puts(out, "checker: legal\n");
}

/* at NULL: no scenario is to blame. */
static void print_subject(const struct subject *s, const struct scenario *at, int phase,
	const char *what)
{
	struct arena a;
	struct buf b;

	arena_init(&a, &mem);
	buf_init(&b, &a);
	buf_printf(&b, "%s (seed %llu)\n", what, (unsigned long long)s->seed);
	print_graph(s->p->graph, &b);
	print_plan(s->p, &a, &b);
	for (int l = 0; at && l < s->p->graph->program->loops.n; l++) {
		buf_printf(&b, "trips of loop %d:", l);
		for (int t = 0; t < at->ntiles; t++) {
			buf_puts(&b, "  ");
			for (int i = 0; i < TRIPS; i++)
				buf_printf(&b, "%d", at->trips[l][t][i]);
		}
		buf_putc(&b, '\n');
	}
	if (at) {
		buf_printf(&b, "oracle, %d tiles: %s\n", at->ntiles,
			verdict_names[play(s->p, at, phase)]);
		print_trace(&b);
	}
	print_text(&b);
	arena_release(&a);
}

/* ---- making a disagreement small ---------------------------------------------------- */

typedef bool (*stands_fn)(const struct subject *s, struct scenario *at, int *phase);

static bool still_unsound(const struct subject *s, struct scenario *at, int *phase)
{
	enum verdict v = ask(s->p).legal ? play_lists(s, at, phase) : FINE;

	return v != FINE && v != TOO_LARGE;
}

static bool still_strict(const struct subject *s, struct scenario *at, int *phase)
{
	struct opinion o = ask(s->p);

	return !o.legal && !o.first_readers && play_lists(s, at, phase) == FINE &&
		play_combinations(s, at) == FINE;
}

static bool try_plan(struct subject *s, struct plan *q, stands_fn stands)
{
	struct subject t = *s;
	struct scenario at;
	int phase;

	t.p = q;
	if (!stands(&t, &at, &phase)) {
		plan_free(q);
		return false;
	}
	plan_free(s->p);
	s->p = q;
	return true;
}

static bool shrink_waits(struct subject *s, stands_fn stands)
{
	bool shrunk = false;

	for (int i = s->p->waits.n - 1; i >= 0; i--) {
		struct plan *q;

		plan_copy(&mem, s->p, &q);
		drop_wait(q, i);
		shrunk |= try_plan(s, q, stands);
	}
	return shrunk;
}

/* Set a number of the plan to a plainer one. */
static bool shrink_number(struct subject *s, stands_fn stands, int kind, int i)
{
	struct plan *q;
	int *x, plain = kind >= 2;

	plan_copy(&mem, s->p, &q);
	x = kind == 0 ? &q->entries.v[i].at : kind == 1 ? &q->entries.v[i].lane :
		kind == 2 ? &q->versions[i] : &q->lanes.v[i].replicas;
	if (*x == plain) {
		plan_free(q);
		return false;
	}
	*x = plain;
	return try_plan(s, q, stands);
}

static void shrink(struct subject *s, stands_fn stands)
{
	bool again = true;

	while (again) {
		const int n[] = { s->p->entries.n, s->p->entries.n, s->p->graph->buffers.n,
			s->p->lanes.n };

		again = shrink_waits(s, stands);
		for (int kind = 0; kind < LEN(n); kind++)
			for (int i = 0; i < n[kind]; i++)
				again |= shrink_number(s, stands, kind, i);
	}
}

static void disagree(const struct subject *s, stands_fn stands, int count, const char *what)
{
	struct subject small = *s;
	struct scenario at;
	int phase;

	if (count > SHOWN_MOST)
		return;
	plan_copy(&mem, s->p, &small.p);
	shrink(&small, stands);
	stands(&small, &at, &phase);
	print_subject(&small, stands == still_strict ? NULL : &at, phase, what);
	plan_free(small.p);
}

/* ---- two readings of order and waits ------------------------------------------------ */

static bool same_order(const struct plan *p, const struct walk *w, struct arena *a)
{
	for (int l = 0; l < p->lanes.n; l++) {
		for (int t = 0; t < p->lanes.v[l].replicas; t++) {
			struct cursor *c = cursor_new(a, p, w, l, t);
			int copy = machine.copy_first[l] + t, k = 0;
			struct instance i;

			for (; cursor_next(c, &i); k++) {
				const struct happening *h;

				if (k == machine.norder[copy])
					return false;
				h = &machine.at[machine.order[copy][k]];
				if (h->entry != i.entry ||
				    h->seq[p->graph->tasks.v[h->task].loop + 1] != i.seq)
					return false;
			}
			if (k != machine.norder[copy])
				return false;
		}
	}
	return true;
}

/* Does wait `wt` of instance y mean the same in both? */
static bool same_span(const struct plan *p, const struct walk *w, const struct wait *wt, int y)
{
	int to = p->graph->tasks.v[wt->task].loop + 1, from = p->graph->tasks.v[wt->on].loop + 1;
	struct span spans[SPANS_MAX];
	int n = walk_wait_spans(w, p, wt, machine.at[y].seq[to], spans);

	for (int x = 0; x < machine.n; x++) {
		int64_t seq = machine.at[x].seq[from];
		bool in = false;

		if (machine.at[x].task != wt->on)
			continue;
		for (int i = 0; i < n; i++)
			in |= seq >= spans[i].first && seq < spans[i].last;
		if (in != wait_means(&machine, wt, x, y))
			return false;
	}
	return true;
}

static bool same_spans(const struct plan *p, const struct walk *w)
{
	for (int k = 0; k < p->waits.n; k++)
		for (int y = 0; y < machine.n; y++)
			if (machine.at[y].task == p->waits.v[k].task &&
			    !same_span(p, w, &p->waits.v[k], y))
				return false;
	return true;
}

/* Of the list that the machine has just played. */
static void compare_readings(const struct subject *s, const struct lists *l,
	const struct scenario *at, int phase)
{
	struct arena a;
	struct walk w;

	arena_init(&a, &mem);
	walk_init(&a, &w, s->p->graph, phase, l->length, l->tile);
	if (!same_order(s->p, &w, &a)) {
		if (++tally.orders <= SHOWN_MOST)
			print_subject(s, at, phase, "the lanes' order is not the same");
	} else if (!same_spans(s->p, &w)) {
		if (++tally.spans <= SHOWN_MOST)
			print_subject(s, at, phase, "what a wait is for is not the same");
	}
	arena_release(&a);
}

/* ---- one plan ------------------------------------------------------------------------ */

/* FINE if all goes right for all lists of tiles. */
static enum verdict judge_lists(const struct subject *s, struct opinion o)
{
	struct lists lists = { 0 };
	struct scenario at;

	while (next_scenario(s->d, &lists, &at)) {
		for (int ph = 0; ph < s->p->graph->program->phases.n; ph++) {
			enum verdict v = play(s->p, &at, ph), w;

			if (v == TOO_LARGE)
				return v;
			w = machine_conclude(&machine, &closure);
			tally.conclusions += (v == FINE) != (w == FINE);
			tally.deadlocks += w == DEADLOCK && !o.deadlock;
			compare_readings(s, &lists, &at, ph);
			tally.lists++;
			if (v != FINE)
				return v;
		}
	}
	return FINE;
}

static void judge(const struct subject *s)
{
	struct opinion o = ask(s->p);
	enum verdict v = judge_lists(s, o);
	struct scenario at;

	if (v == TOO_LARGE) {
		tally.skipped++;
		return;
	}
	tally.plans++;
	tally.legal += o.legal;
	tally.illegal += !o.legal;
	if (o.legal && v != FINE)
		disagree(s, still_unsound, ++tally.unsound, "legal, says the checker");
	if (o.legal || v != FINE)
		return;
	v = play_combinations(s, &at);
	tally.undecided += v == TOO_LARGE;
	if (v == FINE && o.first_readers)
		tally.first_readers++;
	else if (v == FINE)
		disagree(s, still_strict, ++tally.strict, "illegal, says the checker");
}

/* Longer runs of a plan that the checker calls legal: all tiles in order, in reverse, and
 * some of them. */
static void judge_longer(const struct subject *s, struct prng *r)
{
	struct scenario at;
	int64_t tiles[LIST];

	if (!ask(s->p).legal)
		return;
	for (int k = 0; k < 4; k++) {
		int n = 0;

		for (int t = 0; t < s->d->ntiles; t++)
			if (k < 2 || chance(r, 50))
				tiles[n++] = k % 2 ? s->d->ntiles - 1 - t : t;
		scenario_of_tiles(s->d, n, tiles, &at);
		for (int ph = 0; ph < s->p->graph->program->phases.n; ph++) {
			if (!machine_build(&machine, s->p, &at, ph))
				continue;
			tally.longer++;
			if (machine_conclude(&machine, &closure) != FINE &&
			    ++tally.unsound <= SHOWN_MOST)
				print_subject(s, &at, ph, "legal in a long run, says the checker");
		}
	}
}

/* plan_fill_waits on a plan without waits: nothing is missing afterwards, and if the
 * plan is legal, no wait is needless. */
static void judge_filling(const struct subject *s)
{
	struct subject t = *s;
	struct opinion o;

	plan_copy(&mem, s->p, &t.p);
	t.p->waits.n = 0;
	fill(t.p);
	o = ask(t.p);
	if (o.missing && ++tally.unfilled <= SHOWN_MOST)
		print_subject(&t, NULL, 0, "plan_fill_waits leaves something missing");
	for (int i = 0; i < t.p->waits.n && o.legal; i++) {
		struct plan *q;

		plan_copy(&mem, t.p, &q);
		drop_wait(q, i);
		if (ask(q).legal && ++tally.needless <= SHOWN_MOST)
			print_subject(&t, NULL, 0, "plan_fill_waits adds a needless wait");
		plan_free(q);
	}
	plan_free(t.p);
}

static void judge_program(uint64_t seed, int plans, bool longer)
{
	struct prng r = { seed };
	struct drawing d;
	struct vdevice device;
	struct graph *g;

	if (!draw_program(&mem, &r, &d, longer ? LIST : 4, longer ? TRIPS : 4))
		return;
	g = draw_graph(&mem, &d);
	for (int i = 0; g && i < 4 && tally.plans < plans; i++) {
		struct subject s = { .d = &d, .seed = seed };

		draw_device(&r, &device);
		s.p = plan_new(&mem, g, &device);
		draw_entries(&r, s.p, longer ? 8 : 4);
		draw_waits(&r, s.p);
		if (longer)
			judge_longer(&s, &r);
		else
			judge(&s);
		if (chance(&r, 5))
			judge_filling(&s);
		plan_free(s.p);
	}
	graph_free(g);
	program_free(d.p);
}

int main(int argc, char **argv)
{
	int plans = argc > 1 ? atoi(argv[1]) : 20000;
	uint64_t first = argc > 2 ? (uint64_t)atoll(argv[2]) : 1, seed = first;
	clock_t began = clock();

	for (; tally.plans < plans; seed++) {
		judge_program(seed, plans, false);
		if (seed % 4 == 0)
			judge_program(seed, plans, true);
	}
	is_int(tally.orders, 0, "a lane's order is the same in both readings");
	is_int(tally.spans, 0, "so is what a wait is for");
	is_int(tally.conclusions, 0, "one execution tells what all of them do");
	is_int(tally.unsound, 0, "what the checker calls legal always goes right");
	is_int(tally.strict, 0, "what it calls illegal can go wrong");
	is_int(tally.deadlocks, 0, "it names every deadlock");
	is_int(tally.unfilled, 0, "after plan_fill_waits no wait is missing");
	is_int(tally.needless, 0, "and none is needless");
	diag("%d plans: %d legal, %d illegal (%d for a first reader); %d too large, %d undecided",
		tally.plans, tally.legal, tally.illegal, tally.first_readers, tally.skipped,
		tally.undecided);
	diag("%d lists of tiles, %lld states in %lld runs; %d long lists; %.1f s",
		tally.lists, tally.states, tally.runs, tally.longer,
		(double)(clock() - began) / CLOCKS_PER_SEC);
	states_free(&states);
	is_int((long long)mem.used, 0, "all memory is given back");
	return tap_done();
}
