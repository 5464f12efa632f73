/* Legality by brute force: random plans of random small programs, judged by plan_check
 * and by a machine that tries every execution (oracle_machine.h). What the checker
 * calls legal must go right for all lists of tiles that an EU may get; what it calls
 * illegal must go wrong for some trip counts that the program's bounds allow. On the
 * way the order of every lane and the meaning of every wait are compared with the
 * machine's own reading of plan.h. */
#include <string.h>
#include <time.h>

#include "plan/order.h"
#include "tests/tap.h"
#include "tests/unit/oracle_draw.h"

enum { LISTS_MOST = 70, COMBINATIONS_MOST = 3000, SHOWN_MOST = 5 };

struct tally {
	int plans, legal, illegal, skipped, deadlocks;
	int unsound, too_strict, orders, spans, capped, waits_wrong, loose;
	long long states, runs;
	int trips[5];
};

static struct mem mem;
static struct states states;
static struct machine machine;
static struct exploration found;
static struct tally tally;
static int plans_wanted = 20000;

struct subject {
	const struct drawing *d;
	struct plan *p;
};

/* ---- what the checker says --------------------------------------------------------- */

static bool is_capacity(enum problem_code c)
{
	return c == PROBLEM_REGISTERS || c == PROBLEM_SHARED_MEMORY || c == PROBLEM_BARRIERS ||
		c == PROBLEM_THREADS;
}

static bool check_says_legal(const struct plan *p, bool *deadlock)
{
	struct problems problems;
	struct arena a;
	bool legal = true;

	arena_init(&a, &mem);
	plan_check(p, &a, &problems, NULL);
	*deadlock = false;
	for (int i = 0; i < problems.v.n; i++) {
		legal &= is_capacity(problems.v.v[i].code);
		*deadlock |= problems.v.v[i].code == PROBLEM_DEADLOCK;
	}
	arena_release(&a);
	return legal;
}

/* ---- what the machine says --------------------------------------------------------- */

static enum verdict play(const struct plan *p, const struct scenario *s)
{
	enum verdict v;

	if (!machine_build(&machine, p, s, 0))
		return TOO_LARGE;
	v = machine_explore(&machine, &states, &found);
	tally.states += states.n;
	tally.runs++;
	return v;
}

/* The next list of tiles of the grid, none of them twice: those of most tiles first.
 * *at counts through all tuples of tiles. */
static bool next_list(const struct drawing *d, int *at, int64_t *list, int *length)
{
	int base = d->ntiles + 1, all = 1;

	for (int i = 0; i < d->ntiles; i++)
		all *= base;
	while (++*at < all) {
		int x = all - *at;
		bool good = true;

		*length = 0;
		for (int i = 0; i < d->ntiles; i++, x /= base) {
			int tile = x % base - 1;

			good &= tile < 0 || *length == i;
			for (int k = 0; k < *length && tile >= 0; k++)
				good &= list[k] != tile;
			if (tile >= 0)
				list[(*length)++] = tile;
		}
		if (good && *length)
			return true;
	}
	return false;
}

/* The same, but each list of trip counts once. */
struct lists {
	int at, nseen, length;
	int64_t list[LIST];
	struct scenario seen[LISTS_MOST];
};

static bool next_scenario(const struct drawing *d, struct lists *l, struct scenario *out)
{
	while (next_list(d, &l->at, l->list, &l->length)) {
		bool again = false;

		scenario_of_tiles(d, l->length, l->list, out);
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
				out->trips[l][t][i] = most - c % (most - least + 1);
			c /= most - least + 1;
		}
	}
	return c == 0;
}

/* FINE if all is fine for all trip counts. */
static enum verdict play_combinations(const struct subject *s, struct scenario *at)
{
	enum verdict worst = FINE;

	for (int n = s->d->ntiles; n > 0; n--) {
		for (int c = 0; combination(s, n, c, at); c++) {
			enum verdict v = c < COMBINATIONS_MOST ? play(s->p, at) : TOO_LARGE;

			if (v != FINE && v != TOO_LARGE)
				return v;
			if (v == TOO_LARGE)
				worst = v;
			if (c == COMBINATIONS_MOST)
				break;
		}
	}
	return worst;
}

/* FINE if all is fine for all that the tiles of the grid can give. */
static enum verdict play_lists(const struct subject *s, struct scenario *at)
{
	struct lists lists = { 0 };

	while (next_scenario(s->d, &lists, at)) {
		enum verdict v = play(s->p, at);

		if (v != FINE)
			return v;
	}
	return FINE;
}

/* ---- two readings of order and waits ------------------------------------------------ */

static bool same_order(const struct plan *p, const struct walk *w, struct arena *a)
{
	for (int l = 0; l < p->lanes.n; l++) {
		for (int t = 0; t < p->lanes.v[l].turns; t++) {
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

static bool same_spans(const struct plan *p, const struct walk *w, int *wait)
{
	struct span spans[SPANS_MAX];

	for (int k = 0; k < p->waits.n; k++) {
		const struct wait *wt = &p->waits.v[k];
		int to = p->graph->tasks.v[wt->task].loop + 1;
		int from = p->graph->tasks.v[wt->on].loop + 1;

		*wait = k;
		for (int y = 0; y < machine.n; y++) {
			int n;

			if (machine.at[y].task != wt->task)
				continue;
			n = walk_wait_spans(w, p, wt, machine.at[y].seq[to], spans);
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
		}
	}
	return true;
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
	for (int i = 0; i < found.depth; i++) {
		buf_puts(out, found.trace[i] % 2 ? "    end of " : "  issue of ");
		name_instance(found.trace[i] / 2, out);
		buf_printf(out, " by %s\n", machine.p->lanes.v[machine.at[found.trace[i] / 2].lane].name);
	}
	if (found.verdict == RACE) {
		const struct happening *h = &machine.at[found.trace[found.depth - 1] / 2];

		buf_puts(out, "  while under way:");
		for (int i = 0; i < machine.n; i++) {
			if (!bit_get(&h->rivals, i) || !bit_get(&found.at.issued, i) ||
			    bit_get(&found.at.done, i))
				continue;
			buf_putc(out, ' ');
			name_instance(i, out);
		}
		buf_putc(out, '\n');
	}
	if (found.verdict == STALE) {
		const struct happening *h = &machine.at[found.trace[found.depth - 1] / 2];

		for (int i = 0; i < h->ntouches; i++) {
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
}

static void print_graph(const struct graph *g, struct buf *out)
{
	program_print(g->program, out);
	for (int l = 0; l < g->program->loops.n; l++)
		buf_printf(out, "loop %d: parent %d, trips %d..%d\n", l, g->program->loops.v[l].parent,
			(int)g->trips[l].least, (int)g->trips[l].most);
	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];

		buf_printf(out, "edge %s -> %s %s '%s' loop %d distance %d%s%s\n",
			g->tasks.v[e->from].name, g->tasks.v[e->to].name, edge_kind_name(e->kind),
			g->buffers.v[e->buffer].name, e->loop, e->distance, e->reuse ? " reuse" : "",
			e->chain ? " chain" : "");
	}
}

static void print_subject(const struct subject *s, const struct scenario *at, const char *what,
	uint64_t seed)
{
	struct arena a;
	struct buf b;
	struct problems problems;

	arena_init(&a, &mem);
	buf_init(&b, &a);
	buf_printf(&b, "%s (seed %llu)\n", what, (unsigned long long)seed);
	print_graph(s->p->graph, &b);
	for (int u = 0; u < s->p->device->nseus; u++)
		buf_printf(&b, "sEU %s:%s%s\n", s->p->device->seu[u].name,
			s->p->device->seu[u].async ? " async" : " sync",
			s->p->device->seu[u].ordered ? " ordered" : "");
	plan_script(s->p, &b);
	plan_check(s->p, &a, &problems, NULL);
	for (int i = 0; i < problems.v.n; i++)
		buf_printf(&b, "checker: %s: %s\n", problem_name(problems.v.v[i].code),
			problems.v.v[i].message);
	if (!problems.v.n)
		buf_puts(&b, "checker: legal\n");
	if (at) {
		for (int l = 0; l < s->p->graph->program->loops.n; l++) {
			buf_printf(&b, "trips of loop %d:", l);
			for (int t = 0; t < at->ntiles; t++)
				buf_printf(&b, " %d(%d)", at->trips[l][t][0], at->trips[l][t][1]);
			buf_putc(&b, '\n');
		}
		buf_printf(&b, "oracle, %d tiles: %s\n", at->ntiles, verdict_names[play(s->p, at)]);
		print_trace(&b);
	}
	print_text(&b);
	arena_release(&a);
}

/* ---- making a disagreement small ---------------------------------------------------- */

/* Does the disagreement of this sort still stand? */
static bool still_unsound(const struct subject *s, struct scenario *at)
{
	bool deadlock;
	enum verdict v;

	if (!check_says_legal(s->p, &deadlock))
		return false;
	v = play_lists(s, at);
	return v != FINE && v != TOO_LARGE;
}

static bool still_too_strict(const struct subject *s, struct scenario *at)
{
	bool deadlock;

	return !check_says_legal(s->p, &deadlock) && play_lists(s, at) == FINE &&
		play_combinations(s, at) == FINE;
}

typedef bool (*stands_fn)(const struct subject *s, struct scenario *at);

static bool try_plan(struct subject *s, struct plan *q, stands_fn stands, struct scenario *at)
{
	struct subject t = { s->d, q };

	if (!stands(&t, at)) {
		plan_free(q);
		return false;
	}
	plan_free(s->p);
	s->p = q;
	return true;
}

static void shrink(struct subject *s, stands_fn stands, struct scenario *at)
{
	bool again = true;

	while (again) {
		struct plan *q;

		again = false;
		for (int i = s->p->waits.n - 1; i >= 0; i--) {
			plan_copy(&mem, s->p, &q);
			drop_wait(q, i);
			again |= try_plan(s, q, stands, at);
		}
		for (int i = 0; i < s->p->entries.n; i++) {
			if (s->p->entries.v[i].at) {
				plan_copy(&mem, s->p, &q);
				q->entries.v[i].at = 0;
				again |= try_plan(s, q, stands, at);
			}
			if (s->p->entries.v[i].lane) {
				plan_copy(&mem, s->p, &q);
				q->entries.v[i].lane = 0;
				again |= try_plan(s, q, stands, at);
			}
		}
		for (int i = 0; i < s->p->graph->buffers.n; i++) {
			if (s->p->versions[i] == 1)
				continue;
			plan_copy(&mem, s->p, &q);
			q->versions[i]--;
			again |= try_plan(s, q, stands, at);
		}
		for (int i = 0; i < s->p->lanes.n; i++) {
			if (s->p->lanes.v[i].turns == 1)
				continue;
			plan_copy(&mem, s->p, &q);
			q->lanes.v[i].turns = 1;
			again |= try_plan(s, q, stands, at);
		}
	}
	stands(s, at);
}

static void disagree(const struct subject *s, stands_fn stands, const char *what, uint64_t seed)
{
	struct scenario at;
	struct subject small = { s->d, NULL };

	if (tally.unsound + tally.too_strict + tally.orders + tally.spans > SHOWN_MOST)
		return;
	plan_copy(&mem, s->p, &small.p);
	shrink(&small, stands, &at);
	print_subject(&small, stands == still_too_strict ? NULL : &at, what, seed);
	plan_free(small.p);
}

/* ---- one plan ------------------------------------------------------------------------ */

/* FINE if both readings agree for all lists of tiles and all goes right. */
static enum verdict judge_lists(const struct subject *s, uint64_t seed)
{
	struct lists lists = { 0 };
	enum verdict v = FINE;
	struct scenario at;
	int wait;

	while (v == FINE && next_scenario(s->d, &lists, &at)) {
		struct arena a;
		struct walk w;

		v = play(s->p, &at);
		if (v == TOO_LARGE)
			break;
		arena_init(&a, &mem);
		walk_init(&a, &w, s->p->graph, 0, lists.length, lists.list);
		if (!same_order(s->p, &w, &a)) {
			if (++tally.orders + tally.spans < SHOWN_MOST)
				print_subject(s, &at, "the lanes' order differs", seed);
		} else if (!same_spans(s->p, &w, &wait)) {
			if (tally.orders + ++tally.spans < SHOWN_MOST)
				print_subject(s, &at, arena_strf(&a, "what '%s' waits for of '%s' differs",
					s->p->graph->tasks.v[s->p->waits.v[wait].task].name,
					s->p->graph->tasks.v[s->p->waits.v[wait].on].name), seed);
		}
		arena_release(&a);
	}
	return v;
}

static void judge(const struct subject *s, uint64_t seed)
{
	bool deadlock;
	bool legal = check_says_legal(s->p, &deadlock);
	enum verdict v = judge_lists(s, seed);
	struct scenario at;

	if (v == TOO_LARGE) {
		tally.skipped++;
		return;
	}
	tally.plans++;
	tally.legal += legal;
	tally.illegal += !legal;
	if (legal && v != FINE) {
		tally.unsound++;
		disagree(s, still_unsound, "legal, says the checker", seed);
	}
	if (legal || v != FINE)
		return;
	v = play_combinations(s, &at);
	if (v == TOO_LARGE)
		tally.capped++;
	if (v == FINE) {
		tally.too_strict++;
		disagree(s, still_too_strict, "illegal, says the checker", seed);
	}
}

static bool judge_program(uint64_t seed)
{
	struct prng r = { seed };
	struct drawing d;
	struct vdevice device;
	struct graph *g;

	if (!draw_program(&mem, &r, &d))
		return false;
	g = draw_graph(&mem, &d);
	for (int i = 0; g && i < 4 && tally.plans < plans_wanted; i++) {
		struct subject s = { .d = &d };

		draw_device(&r, &device);
		s.p = plan_new(&mem, g, &device);
		draw_entries(&r, s.p);
		draw_waits(&r, s.p);
		judge(&s, seed);
		plan_free(s.p);
	}
	graph_free(g);
	program_free(d.p);
	return true;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	clock_t began = clock();

	if (argc > 1)
		plans_wanted = atoi(argv[1]);
	if (argc > 2)
		seed = (uint64_t)atoll(argv[2]);
	for (; tally.plans < plans_wanted; seed++)
		judge_program(seed);
	is_int(tally.orders, 0, "a lane's order is the same in both readings");
	is_int(tally.spans, 0, "so is what a wait is for");
	is_int(tally.unsound, 0, "what the checker calls legal always goes right");
	is_int(tally.too_strict, 0, "what it calls illegal can go wrong");
	diag("%d plans: %d legal, %d illegal, %d too large; %d not decided", tally.plans, tally.legal,
		tally.illegal, tally.skipped, tally.capped);
	diag("%lld states in %lld runs, %.1f s, %llu seeds", tally.states, tally.runs,
		(double)(clock() - began) / CLOCKS_PER_SEC, (unsigned long long)seed);
	free(states.v);
	free(states.stamp);
	is_int((long long)mem.used, 0, "all memory is given back");
	return tap_done();
}
