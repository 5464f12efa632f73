/* Modulo schedules: random small problems against an enumeration, every schedule
 * replayed, and loops as they are met. */
#include "search/loop/modulo.h"

#include <stdlib.h>
#include <time.h>

#include "base/prng.h"
#include "search/loop/milp.h"
#include "search/loop/modulo_what_if.h"
#include "search/loop/modulo_why.h"
#include "tests/tap.h"

enum { MANY = 40, UNITS = 4, VALUES = 12 };

/* MODULO_CASES=1000 MODULO_FIRST=300: others; MODULO_LARGE=30: more large ones, each printed. */
#ifdef ADDRESS_SANITIZER
enum { CASES = 60 };
#else
enum { CASES = 300 };
#endif

/* ---- a problem that can be changed ---- */

struct bench {
	struct mem mem;
	struct arena arena;
	struct modulo_task tasks[MANY];
	struct modulo_unit units[UNITS];
	struct modulo_lane lanes[5];
	struct modulo_memory memories[4];
	struct modulo_dep deps[2 * MANY];
	struct modulo_value values[VALUES];
	struct modulo_use uses[VALUES][3];
	struct modulo_pin pins[4];
	struct modulo_order orders[4];
	struct modulo_problem p;
};

static void bench_init(struct bench *b, int units, int lanes)
{
	*b = (struct bench){ 0 };
	arena_init(&b->arena, &b->mem);
	b->p = (struct modulo_problem){ .tasks = b->tasks, .units = b->units, .nunits = units,
		.lanes = b->lanes, .nlanes = lanes, .memories = b->memories, .deps = b->deps,
		.values = b->values, .pins = b->pins, .orders = b->orders };
	for (int l = 0; l < LEN(b->lanes); l++)
		b->lanes[l].memory = MODULO_NONE;
}

static int add_task(struct bench *b, int unit, double busy, uint32_t lanes, double hold, double latency)
{
	b->tasks[b->p.ntasks] = (struct modulo_task){ unit, busy, lanes, hold, latency };
	return b->p.ntasks++;
}

static void add_dep(struct bench *b, int from, int to, int distance, double lag, double cross)
{
	b->deps[b->p.ndeps++] = (struct modulo_dep){ from, to, distance, false, lag, cross };
}

static int add_value(struct bench *b, int def, int memory, double bytes, int least, int most)
{
	int v = b->p.nvalues++;

	b->values[v] = (struct modulo_value){ def, b->uses[v], 0, memory, bytes, least, most };
	return v;
}

static void add_use(struct bench *b, int v, int task, int distance, double lag)
{
	b->uses[v][b->values[v].nuses++] = (struct modulo_use){ task, distance, false, lag, 0 };
}

static int add_memory(struct bench *b, double capacity)
{
	b->memories[b->p.nmemories].capacity = capacity;
	return b->p.nmemories++;
}

static struct modulo_answer solve(struct bench *b, const struct modulo_effort *effort)
{
	struct modulo_answer x;
	struct err e = { 0 };

	if (modulo_solve(&b->arena, &b->p, effort, NULL, &x, &e))
		diag("%s", e.msg);
	return x;
}

/* ---- the checker: iterations side by side ---- */

static double task_start(const struct modulo_answer *x, int task, int iteration)
{
	return (x->start[task] + iteration) * x->ii;
}

static double time_after(const struct bench *b, const struct modulo_answer *x, int task, bool from_start,
	double lag, double cross, int other)
{
	return (from_start ? 0 : b->tasks[task].latency) + lag +
		(x->lane[task] != x->lane[other] ? cross : 0);
}

static bool overlap(double s, double n, double t, double m, double slack)
{
	return s + slack < t + m && t + slack < s + n;
}

/* One starts while the other holds. Tasks that hold nothing never do. */
static bool collide(double s, double n, double t, double m, double slack)
{
	return (n > 0 && t > s + slack && t < s + n - slack) ||
		(m > 0 && s > t + slack && s < t + m - slack) ||
		(n > 0 && m > 0 && overlap(s, n, t, m, slack));
}

static const char *wrong_tasks(const struct bench *b, const struct modulo_answer *x, int i, int j, int n)
{
	const struct modulo_task *t = &b->tasks[i], *u = &b->tasks[j];
	double s = task_start(x, i, 20), r = task_start(x, j, n), slack = 1e-6 * x->ii;

	if (i == j && n == 20)
		return NULL;
	if (t->unit != MODULO_NONE && t->unit == u->unit &&
	    b->units[t->unit].share != MODULO_UNLIMITED &&
	    overlap(s, t->busy, r, u->busy, slack))
		return "two tasks on one unit";
	if (x->lane[i] != MODULO_NONE && x->lane[i] == x->lane[j] && !b->lanes[x->lane[i]].unlimited &&
	    collide(s, t->hold, r, u->hold, slack))
		return "two tasks on one lane";
	return NULL;
}

static const char *wrong_values(const struct bench *b, const struct modulo_answer *x)
{
	double used[4] = { 0 };

	for (int v = 0; v < b->p.nvalues; v++) {
		const struct modulo_value *w = &b->values[v];
		int c = x->versions[v];
		int memory = w->memory != MODULO_NONE ? w->memory :
			x->lane[w->def] == MODULO_NONE ? MODULO_NONE : b->lanes[x->lane[w->def]].memory;

		if (c < w->least || (w->most && c > w->most))
			return "versions out of range";
		if (memory != MODULO_NONE)
			used[memory] += c * w->bytes;
		for (int k = 0; k < w->nuses; k++) {
			const struct modulo_use *u = &w->uses[k];
			double read = task_start(x, u->task, 20 + u->distance) + time_after(b, x, u->task,
				u->from_start, u->lag, u->cross, w->def);

			if (task_start(x, w->def, 20 + c) < read - 1e-6 * x->ii)
				return "a version is overwritten";
		}
	}
	for (int r = 0; r < b->p.nmemories; r++)
		if (used[r] > b->memories[r].capacity * (1 + 1e-9))
			return "a memory overflows";
	return NULL;
}

static const char *wrong_pins(const struct bench *b, const struct modulo_answer *x)
{
	for (int k = 0; k < b->p.npins; k++) {
		const struct modulo_pin *q = &b->pins[k];
		double d = x->start[q->task] - x->start[q->other] - q->ahead;

		if (d < -1e-6 || d > 1 + 1e-6)
			return "a pin";
	}
	for (int k = 0; k < b->p.norders; k++) {
		double ab = x->start[b->orders[k].b] - x->start[b->orders[k].a];
		double ac = x->start[b->orders[k].c] - x->start[b->orders[k].a];

		ab -= floor(ab + 1e-9);
		ac -= floor(ac - 1e-9);
		if (ab > ac + 1e-6)
			return "an order";
	}
	return NULL;
}

/* What is wrong with a schedule; NULL: nothing in 40 iterations. */
static const char *wrong(const struct bench *b, const struct modulo_answer *x)
{
	const char *w;

	for (int i = 0; i < b->p.ntasks; i++) {
		uint32_t lanes = b->tasks[i].lanes;

		if (lanes ? x->lane[i] < 0 || !(lanes >> x->lane[i] & 1) : x->lane[i] != MODULO_NONE)
			return "a lane";
		for (int j = 0; j < b->p.ntasks; j++)
			for (int n = 0; n < 40; n++)
				if ((w = wrong_tasks(b, x, i, j, n)))
					return w;
	}
	for (int k = 0; k < b->p.ndeps; k++) {
		const struct modulo_dep *d = &b->deps[k];
		double ready = task_start(x, d->from, 20 - d->distance) + time_after(b, x, d->from,
			d->from_start, d->lag, d->cross, d->to);

		if (task_start(x, d->to, 20) < ready - 1e-6 * x->ii)
			return "a dependence";
	}
	if ((w = wrong_values(b, x)))
		return w;
	if (x->bound > x->exclusive * (1 + 1e-12) || x->exclusive > x->ii * (1 + 1e-12))
		return "a bound above the interval";
	return wrong_pins(b, x);
}

/* ---- the oracle: all integers of all pairs, all versions, all lanes ---- */

struct oracle {
	const struct bench *b;
	bool exclusive;
	int lane[MANY];
	int versions[VALUES];
	struct { int from, to; double w; int d; } arc[400];
	int narc;
	struct { int i, j; double gap[2]; } pair[200];
	int npair, k[200];
	double best;
};

static void oracle_arc(struct oracle *o, int from, int to, double w, int d)
{
	o->arc[o->narc].from = from;
	o->arc[o->narc].to = to;
	o->arc[o->narc].w = w;
	o->arc[o->narc++].d = d;
}

/* Do starts in cycles satisfy the arcs at this interval? */
static bool holds(const struct oracle *o, double ii)
{
	double at[MANY] = { 0 };

	for (int round = 0; round <= o->b->p.ntasks; round++) {
		bool moved = false;

		for (int k = 0; k < o->narc; k++) {
			double t = at[o->arc[k].from] + o->arc[k].w - ii * o->arc[k].d;

			if (t > at[o->arc[k].to] + 1e-9) {
				at[o->arc[k].to] = t;
				moved = true;
			}
		}
		if (!moved)
			return true;
	}
	return false;
}

static void oracle_leaf(struct oracle *o)
{
	double lo = 0, hi = o->best;

	for (int i = 0; i < 60 && hi - lo > 1e-10 * hi; i++) {
		double mid = (lo + hi) / 2;

		if (holds(o, mid))
			hi = mid;
		else
			lo = mid;
	}
	o->best = hi;
}

static bool oracle_ordered(const struct oracle *o)
{
	for (int q = 0; q < o->b->p.norders; q++) {
		const int e[4] = { o->b->orders[q].a, o->b->orders[q].b, o->b->orders[q].c,
			o->b->orders[q].a };
		int sum = 0;

		for (int s = 0; s < 3; s++)
			for (int k = 0; k < o->npair; k++)
				sum += o->pair[k].i == e[s] && o->pair[k].j == e[s + 1] ? o->k[k] :
					o->pair[k].j == e[s] && o->pair[k].i == e[s + 1] ?
					-1 - o->k[k] : 0;
		if (sum != -1)
			return false;
	}
	return true;
}

static void oracle_pairs(struct oracle *o, int at)
{
	int narc = o->narc;

	if (!holds(o, o->best * (1 - 1e-9)))
		return;
	if (at == o->npair) {
		if (oracle_ordered(o))
			oracle_leaf(o);
		return;
	}
	for (int n = 0; n <= 10; n++) {
		int k = n % 2 ? (n + 1) / 2 : -n / 2;

		o->narc = narc;
		o->k[at] = k;
		oracle_arc(o, o->pair[at].i, o->pair[at].j, o->pair[at].gap[0], -k);
		oracle_arc(o, o->pair[at].j, o->pair[at].i, o->pair[at].gap[1], k + 1);
		oracle_pairs(o, at + 1);
	}
	o->narc = narc;
}

static void oracle_gap(const struct oracle *o, int i, int j, double gap[2])
{
	const struct modulo_task *t = &o->b->tasks[i], *u = &o->b->tasks[j];
	bool same = o->lane[i] == o->lane[j] && o->lane[i] >= 0 && !o->b->lanes[o->lane[i]].unlimited;

	gap[0] = gap[1] = 0;
	if (same) {
		gap[0] = t->hold;
		gap[1] = u->hold;
	}
	if (t->unit >= 0 && t->unit == u->unit) {
		enum modulo_share s = o->b->units[t->unit].share;

		if (s != MODULO_UNLIMITED && (o->exclusive || s == MODULO_EXCLUSIVE ||
		    (s == MODULO_LANES_MIX && same))) {
			gap[0] = fmax(gap[0], t->busy);
			gap[1] = fmax(gap[1], u->busy);
		}
	}
}

static bool oracle_fits(const struct oracle *o)
{
	double used[4] = { 0 };

	for (int v = 0; v < o->b->p.nvalues; v++) {
		int lane = o->lane[o->b->values[v].def], memory = o->b->values[v].memory;

		if (memory < 0 && lane >= 0)
			memory = o->b->lanes[lane].memory;
		if (memory >= 0)
			used[memory] += o->versions[v] * o->b->values[v].bytes;
	}
	for (int r = 0; r < o->b->p.nmemories; r++)
		if (used[r] > o->b->memories[r].capacity)
			return false;
	return true;
}

static double oracle_after(const struct oracle *o, int task, bool from_start, double lag, double cross, int other)
{
	return (from_start ? 0 : o->b->tasks[task].latency) + lag +
		(o->lane[task] != o->lane[other] ? cross : 0);
}

static void oracle_lanes_done(struct oracle *o)
{
	const struct bench *b = o->b;
	double sum[UNITS] = { 0 }, least = 0;

	if (!oracle_fits(o))
		return;
	o->narc = o->npair = 0;
	for (int i = 0; i < b->p.ndeps; i++) {
		const struct modulo_dep *d = &b->deps[i];

		oracle_arc(o, d->from, d->to, oracle_after(o, d->from, d->from_start, d->lag,
			d->cross, d->to), d->distance);
	}
	for (int v = 0; v < b->p.nvalues; v++)
		for (int k = 0; k < b->values[v].nuses; k++) {
			const struct modulo_use *u = &b->values[v].uses[k];

			oracle_arc(o, u->task, b->values[v].def, oracle_after(o, u->task,
				u->from_start, u->lag, u->cross, b->values[v].def),
				o->versions[v] - u->distance);
		}
	for (int k = 0; k < b->p.npins; k++) {
		oracle_arc(o, b->pins[k].other, b->pins[k].task, 0, -b->pins[k].ahead);
		oracle_arc(o, b->pins[k].task, b->pins[k].other, 0, b->pins[k].ahead + 1);
	}
	for (int i = 0; i < b->p.ntasks; i++) {
		double own = b->tasks[i].lanes ? b->tasks[i].hold : 0;

		if (b->tasks[i].unit >= 0 && b->units[b->tasks[i].unit].share != MODULO_UNLIMITED) {
			own = fmax(own, b->tasks[i].busy);
			sum[b->tasks[i].unit] += b->tasks[i].busy;
		}
		least = fmax(least, own);
		for (int j = i + 1; j < b->p.ntasks; j++) {
			double gap[2];

			oracle_gap(o, i, j, gap);
			if (gap[0] > 0 || gap[1] > 0 || b->p.norders) {
				o->pair[o->npair].i = i;
				o->pair[o->npair].j = j;
				o->pair[o->npair].gap[0] = gap[0];
				o->pair[o->npair++].gap[1] = gap[1];
			}
		}
	}
	for (int u = 0; u < b->p.nunits; u++)
		least = fmax(least, sum[u]);
	oracle_arc(o, 0, 0, least, 1);
	oracle_pairs(o, 0);
}

static void oracle_lanes(struct oracle *o, int task)
{
	if (task == o->b->p.ntasks) {
		oracle_lanes_done(o);
		return;
	}
	o->lane[task] = MODULO_NONE;
	if (!o->b->tasks[task].lanes)
		oracle_lanes(o, task + 1);
	for (int l = 0; l < o->b->p.nlanes; l++) {
		if (!(o->b->tasks[task].lanes >> l & 1))
			continue;
		o->lane[task] = l;
		oracle_lanes(o, task + 1);
	}
}

static void oracle_versions(struct oracle *o, int value)
{
	if (value == o->b->p.nvalues) {
		oracle_lanes(o, 0);
		return;
	}
	for (int c = o->b->values[value].most; c >= o->b->values[value].least; c--) {
		o->versions[value] = c;
		oracle_versions(o, value + 1);
	}
}

/* The least interval by enumeration; more than 1e5: there is none. Longer intervals than
 * that of the schedule found (which is checked elsewhere) are skipped, so this tests only the bounds. */
static double enumerate(const struct bench *b, bool exclusive, double found)
{
	struct oracle o = { .b = b, .exclusive = exclusive, .best = fmin(found * (1 + 1e-7), 2e5) };

	oracle_versions(&o, 0);
	return o.best;
}

/* ---- random problems ---- */

static void random_value(struct bench *b, struct prng *r, int def, int use)
{
	int least = 1 + (prng_below(r, 6) == 0), v;

	if (b->p.nvalues == 2)
		return;
	v = add_value(b, def, b->p.nmemories == 1 ? 0 : MODULO_NONE, 1 + prng_below(r, 3), least,
		least + (int)prng_below(r, 3));
	add_use(b, v, use, prng_below(r, 8) == 0, prng_below(r, 3));
	b->uses[v][0].cross = prng_below(r, 2) * 3;
	b->uses[v][0].from_start = prng_below(r, 4) == 0;
}

static void random_problem(struct bench *b, uint64_t seed)
{
	struct prng r = { seed };
	int n = 3 + (int)prng_below(&r, 4), units = 1 + (int)prng_below(&r, 3);
	int lanes = 1 + (int)prng_below(&r, 2), open = 0;

	if (n == 6 && units == 3 && lanes == 2)
		n = 7;
	bench_init(b, units, lanes);
	for (int u = 0; u < units; u++)
		b->units[u].share = (enum modulo_share)(prng_below(&r, 2) ? MODULO_EXCLUSIVE : prng_below(&r, 3));
	if (prng_below(&r, 3) == 0)
		add_memory(b, 2 + prng_below(&r, 8));
	else if (lanes == 2 && prng_below(&r, 2))
		for (int l = 0; l < 2; l++)
			b->lanes[l].memory = add_memory(b, 2 + prng_below(&r, 5));
	for (int i = 0; i < n; i++) {
		double busy = 1 + prng_below(&r, 9), hold = prng_below(&r, 3) ? 1 : busy;
		uint32_t lane = 1u << prng_below(&r, (uint32_t)lanes);

		if (lanes == 2 && open < 3 && prng_below(&r, 4) == 0) {
			lane = 3;
			open++;
		}
		add_task(b, (int)prng_below(&r, (uint32_t)units), busy, lane, hold,
			busy + prng_below(&r, 6));
	}
	for (int j = 1; j < n; j++) {
		int i = (int)prng_below(&r, (uint32_t)j);

		if (prng_below(&r, 5) == 0)
			continue;
		add_dep(b, i, j, 0, prng_below(&r, 3), prng_below(&r, 2) * 4);
		b->deps[b->p.ndeps - 1].from_start = prng_below(&r, 6) == 0;
		if (prng_below(&r, 6) == 0)
			b->deps[b->p.ndeps - 1].lag = -b->tasks[i].latency / 2;
		if (b->deps[b->p.ndeps - 1].from_start)
			b->deps[b->p.ndeps - 1].lag = prng_below(&r, 3);
		if (prng_below(&r, 3) == 0)
			random_value(b, &r, i, j);
	}
	for (int k = (int)prng_below(&r, 4); k > 0; k--) {
		int i = (int)prng_below(&r, (uint32_t)n), j = (int)prng_below(&r, (uint32_t)i + 1);

		add_dep(b, i, j, 1 + (prng_below(&r, 3) == 0), 0, 0);
	}
	if (prng_below(&r, 6) == 0)
		b->pins[b->p.npins++] = (struct modulo_pin){ 0, 1, -(int)prng_below(&r, 2) };
	if (prng_below(&r, 6) == 0 && n <= 5)
		b->orders[b->p.norders++] = (struct modulo_order){ 0, 1, 2 };
}

struct tally {
	int cases, found, impossible, searched;
	int bad_status, bad_ii, bad_exclusive, bad_bound, not_best, invalid, unlike, far;
};

static bool near(double x, double y)
{
	return fabs(x - y) <= 1e-6 * fmax(fabs(x), fabs(y));
}

static bool alike(const struct bench *b, const struct modulo_answer *x, const struct modulo_answer *y)
{
	size_t n = (size_t)b->p.ntasks, v = (size_t)b->p.nvalues;

	return x->ii == y->ii && x->bound == y->bound && x->nodes == y->nodes &&
		x->status == y->status && (x->status != MODULO_FOUND ||
		(!memcmp(x->start, y->start, n * sizeof(double)) &&
		!memcmp(x->lane, y->lane, n * sizeof(int)) &&
		!memcmp(x->versions, y->versions, v * sizeof(int))));
}

static void judge(struct bench *b, uint64_t seed, double ii, double bound,
	const struct modulo_effort *effort, struct tally *t)
{
	struct modulo_answer x = solve(b, effort), y = solve(b, effort);
	const char *w;

	t->cases++;
	t->unlike += !alike(b, &x, &y);
	if (ii > 1e5) {
		t->impossible++;
		t->bad_status += x.status != MODULO_IMPOSSIBLE;
		return;
	}
	if (x.status != MODULO_FOUND) {
		diag("problem %d: status %d, an interval of %g is possible", (int)seed, (int)x.status, ii);
		t->bad_status++;
		return;
	}
	t->found++;
	t->searched += x.floor.ii < bound * (1 - 1e-9) || bound < ii * (1 - 1e-9);
	t->far += x.ii > ii * 1.05;
	t->bad_exclusive += x.exclusive > ii * (1 + 1e-6);
	w = wrong(b, &x);
	t->invalid += w != NULL;
	if (w)
		diag("problem %d: %s", (int)seed, w);
	if (x.bound > bound * (1 + 1e-6))
		t->bad_bound++;
	if (effort && effort->nodes < 0)
		return;
	if (!near(x.ii, ii) || !near(x.bound, bound)) {
		diag("problem %d: %.9g, bound %.9g; enumerated %.9g, %.9g", (int)seed, x.ii, x.bound,
			ii, bound);
		t->bad_ii++;
	}
	t->not_best += !x.best || x.proven != near(x.ii, bound);
}

static void report_tally(const struct tally *t, bool exact, const char *who)
{
	diag("%s: %d problems, %d impossible, %d above ResMII and RecMII, %d more than 5 %% off", who,
		t->cases, t->impossible, t->searched, t->far);
	is_int(t->bad_status, 0, "impossible where there is none, and only there");
	is_int(t->invalid, 0, "... every schedule survives its replay");
	is_int(t->bad_exclusive + t->bad_bound, 0, "... no bound is above what is possible");
	is_int(t->unlike, 0, "... twice the same");
	if (exact) {
		is_int(t->bad_ii, 0, "... the interval and its bound are what enumeration says");
		is_int(t->not_best, 0, "... and they are known to be");
	} else {
		ok(t->far * 20 <= t->found, "... at least 95 of 100 within 5 %");
	}
}

static void test_random(void)
{
	static const struct modulo_effort own = { .milp_nodes = -1 }, few = { .nodes = -1, .milp_nodes = -1 };
	static const struct modulo_effort other = { .nodes = 1 };
	struct tally with = { 0 }, alone = { 0 }, quick = { 0 }, milp = { 0 };
	int count = getenv("MODULO_CASES") ? atoi(getenv("MODULO_CASES")) : CASES;
	int first = getenv("MODULO_FIRST") ? atoi(getenv("MODULO_FIRST")) : 0;

	for (int i = first; i < first + count; i++) {
		struct modulo_answer x;
		double ii, bound;
		struct bench b;

		random_problem(&b, (uint64_t)i + 1);
		x = solve(&b, NULL);
		ii = enumerate(&b, true, x.ii);
		bound = enumerate(&b, false, x.ii);
		judge(&b, (uint64_t)i + 1, ii, bound, NULL, &with);
		judge(&b, (uint64_t)i + 1, ii, bound, &own, &alone);
		judge(&b, (uint64_t)i + 1, ii, bound, &few, &quick);
		if (milp_available())
			judge(&b, (uint64_t)i + 1, ii, bound, &other, &milp);
		arena_release(&b.arena);
	}
	report_tally(&with, true, "all solvers");
	report_tally(&alone, true, "our own search");
	report_tally(&quick, false, "the heuristic");
	if (milp_available())
		report_tally(&milp, true, "CBC");
}

/* ---- a loop of attention ---- */

enum { COPY, TENSOR, VECTOR };

/* One iteration, `parts` times: S = Q K; softmax; rescale O; O += P V. K and V are
 * loaded into rings by a lane of their own; the parts are on a lane each, or choose. */
static void attention(struct bench *b, int parts, bool open, int versions)
{
	uint32_t any = ((1u << parts) - 1) << 1;
	int k, v, smem, ring[2];

	bench_init(b, 3, parts + 1);
	b->units[TENSOR].share = MODULO_LANES_MIX;
	b->units[VECTOR].share = MODULO_MIX;
	smem = add_memory(b, 160e3);
	k = add_task(b, COPY, 310, 1, 20, 900);
	v = add_task(b, COPY, 310, 1, 20, 900);
	ring[0] = add_value(b, k, smem, 32768, 1, 4);
	ring[1] = add_value(b, v, smem, 32768, 1, 4);
	for (int i = 0; i < parts; i++) {
		uint32_t lane = open ? any : 2u << i;
		int regs = add_memory(b, 128 * 128 * 4 * 2 + 65536);
		int qk = add_task(b, TENSOR, 512, lane, 30, 620);
		int max = add_task(b, VECTOR, 140, lane, 180, 180);
		int exp = add_task(b, VECTOR, 580, lane, 610, 610);
		int sum = add_task(b, VECTOR, 120, lane, 150, 150);
		int scale = add_task(b, VECTOR, 160, lane, 200, 200);
		int pv = add_task(b, TENSOR, 512, lane, 30, 640);
		int s = add_value(b, qk, open ? regs : MODULO_NONE, 128 * 64 * 4, 1, versions);
		int p = add_value(b, exp, open ? regs : MODULO_NONE, 128 * 64 * 2, 1, versions);

		b->lanes[i + 1].memory = open ? MODULO_NONE : regs;
		add_dep(b, k, qk, 0, 40, 0);
		add_dep(b, v, pv, 0, 40, 0);
		add_dep(b, qk, max, 0, 0, 400);
		add_dep(b, max, exp, 0, 0, 60);
		add_dep(b, max, max, 1, 0, 0);
		add_dep(b, exp, sum, 0, 0, 300);
		add_dep(b, sum, sum, 1, 0, 0);
		add_dep(b, max, scale, 0, 0, 60);
		add_dep(b, pv, scale, 1, 0, 800);
		add_dep(b, scale, pv, 0, 0, 800);
		add_dep(b, exp, pv, 0, 0, 300);
		add_use(b, ring[0], qk, 0, 40);
		add_use(b, ring[1], pv, 0, 40);
		add_use(b, s, exp, 0, 0);
		add_use(b, p, pv, 0, 0);
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void timed(const char *what, struct bench *b, const struct modulo_effort *f, bool exact)
{
	double begin = seconds();
	struct modulo_answer x = solve(b, f);
	const char *w = x.status == MODULO_FOUND ? wrong(b, &x) : "no schedule";

	diag("%s: %.3f s, %d tasks, II %.1f, exclusive %.1f, bound %.1f, by %d, %lld nodes, %d milp", what,
		seconds() - begin, b->p.ntasks, x.ii, x.exclusive, x.bound, (int)x.solver,
		(long long)x.nodes, x.milp_calls);
	ok(!w, what);
	if (w)
		diag("%s", w);
	if (exact)
		ok(x.best, "... and no schedule has a shorter interval");
}

static void test_attention(void)
{
	static const struct modulo_effort own = { .milp_nodes = -1 }, few = { .nodes = -1, .milp_nodes = -1 };
	static const struct modulo_effort other = { .nodes = 1 };
	static const struct { const char *what; int parts, versions; bool open; } loop[] = {
		{ "attention, two lanes", 2, 2, false },
		{ "attention, two lanes, no second versions", 2, 1, false },
		{ "attention, three lanes, no second versions", 3, 1, false },
		{ "attention, two open lanes", 2, 2, true },
		{ "attention, two open lanes, no second versions", 2, 1, true },
		{ "attention, three open lanes", 3, 2, true },
	};

	for (int i = 0; i < LEN(loop); i++) {
		struct bench b;

		diag("%s", loop[i].what);
		attention(&b, loop[i].parts, loop[i].open, loop[i].versions);
		timed("the heuristic", &b, &few, false);
		timed("all solvers", &b, NULL, i < 3);
		timed("our own search", &b, &own, false);
		if (milp_available() && !loop[i].open)
			timed("CBC", &b, &other, false);
		arena_release(&b.arena);
	}
}

/* As many tasks as a loop by hand has, and more. */
static void large_problem(struct bench *b, int n, uint64_t seed)
{
	struct prng r = { seed };
	int lanes = 3;

	bench_init(b, 3, lanes);
	b->units[1].share = MODULO_LANES_MIX;
	b->units[2].share = MODULO_MIX;
	add_memory(b, 24);
	for (int i = 0; i < n; i++) {
		double busy = 50 + prng_below(&r, 400);

		add_task(b, (int)prng_below(&r, 3), busy, 1u << prng_below(&r, 3),
			prng_below(&r, 2) ? 20 : busy, busy + prng_below(&r, 300));
	}
	for (int j = 1; j < n; j++) {
		int i = (int)max_i64(0, j - 1 - (int)prng_below(&r, 5));

		add_dep(b, i, j, 0, prng_below(&r, 40), 30);
		if (prng_below(&r, 3) == 0)
			add_dep(b, (int)prng_below(&r, (uint32_t)j), j, 0, 0, 30);
		if (b->p.nvalues < VALUES && prng_below(&r, 3) == 0)
			add_use(b, add_value(b, i, 0, 1 + prng_below(&r, 3), 1, 3), j, 0, 20);
	}
	for (int i = 0; i < 2; i++) {
		int from = n / 2 + (int)prng_below(&r, (uint32_t)n / 2);

		add_dep(b, from, (int)max_i64(0, from - 4), 1, 0, 0);
	}
}

/* What became of problems of one size. */
struct large {
	int far, open, alone, bad;
	double quick, quick_longest, full, full_longest;
};

static struct modulo_answer clocked(struct bench *b, const struct modulo_effort *f, double *sum, double *longest)
{
	double begin = seconds();
	struct modulo_answer x = solve(b, f);

	*sum += seconds() - begin;
	*longest = fmax(*longest, seconds() - begin);
	return x;
}

static void solve_large(struct bench *b, bool tell, struct large *l)
{
	static const struct modulo_effort few = { .nodes = -1, .milp_nodes = -1 };
	static const struct modulo_effort own = { .milp_nodes = -1 };
	struct modulo_answer x = clocked(b, &few, &l->quick, &l->quick_longest);
	struct modulo_answer y = clocked(b, NULL, &l->full, &l->full_longest);
	bool found = x.status == MODULO_FOUND;

	l->far += x.ii > y.ii * 1.05;
	l->open += found && !y.best;
	l->bad += x.status != y.status || (found && (wrong(b, &x) || wrong(b, &y)));
	if (!tell)
		return;
	diag("few %.1f, all %.1f (exclusive %.1f, bound %.1f, by %d, %lld nodes, %d milp)", x.ii, y.ii,
		y.exclusive, y.bound, (int)y.solver, (long long)y.nodes, y.milp_calls);
	x = solve(b, &own);
	l->alone += found && !x.best;
}

static void test_large(void)
{
	static const int sizes[] = { 12, 20, 30 };
	const char *large = getenv("MODULO_LARGE");
	int cases = large ? atoi(large) : 10;

	for (int s = 0; s < LEN(sizes); s++) {
		struct large l = { 0 };

		for (int i = 0; i < cases; i++) {
			struct bench b;

			large_problem(&b, sizes[s], (uint64_t)i + 1);
			solve_large(&b, large, &l);
			arena_release(&b.arena);
		}
		diag("%d tasks, %d problems: the heuristic %.4f s, at most %.4f, %d more than 5 %% off",
			sizes[s], cases, l.quick / cases, l.quick_longest, l.far);
		diag("... all %.4f s, at most %.4f; %d not known to be best, %d without CBC",
			l.full / cases, l.full_longest, l.open, l.alone);
		is_int(l.bad, 0, "large problems keep all that is asked");
	}
}

/* ---- by hand ---- */

/* A load into a ring and its use, on a lane each. */
static void ring_problem(struct bench *b, int versions)
{
	bench_init(b, 2, 2);
	add_task(b, 0, 40, 1, 5, 100);
	add_task(b, 1, 30, 2, 30, 30);
	add_dep(b, 0, 1, 0, 10, 0);
	add_use(b, add_value(b, 0, MODULO_NONE, 1, 1, versions), 1, 0, 10);
}

static void test_ring(void)
{
	struct modulo_answer x;
	struct bench b;

	ring_problem(&b, 1);
	x = solve(&b, NULL);
	is_near(x.ii, 150, 1e-9, "a ring of one version is a recurrence");
	ok(x.proven && x.best && x.solver == MODULO_BY_BOUNDS, "... which is proof enough");
	ok(x.floor.nlinks == 2 && x.floor.rec == 150 && x.floor.res == 40, "... RecMII and ResMII");
	arena_release(&b.arena);
	ring_problem(&b, 3);
	x = solve(&b, NULL);
	is_near(x.ii, 50, 1e-9, "a third of it with three");
	arena_release(&b.arena);
	ring_problem(&b, 0);
	x = solve(&b, NULL);
	is_near(x.ii, 40, 1e-9, "with as many as one likes the unit bounds it");
	is_int(x.floor.unit, 0, "... the first");
	is_int(x.versions[0], 4, "... and four are enough");
	arena_release(&b.arena);
}

/* Three tasks of 10 cycles whose chain through two units leaves no time for a fourth of 6. */
static void test_mixed(void)
{
	struct modulo_answer x;
	struct bench b;

	bench_init(&b, 1, 2);
	b.units[0].share = MODULO_LANES_MIX;
	add_task(&b, 0, 10, 1, 1, 10);
	add_task(&b, 0, 10, 1, 1, 10);
	add_task(&b, 0, 6, 2, 1, 6);
	add_task(&b, MODULO_NONE, 0, 2, 13, 13);
	add_dep(&b, 0, 1, 0, 2, 0);
	add_dep(&b, 1, 0, 1, 4, 0);
	add_dep(&b, 2, 3, 0, 0, 0);
	add_dep(&b, 3, 2, 1, 0, 0);
	x = solve(&b, NULL);
	is_near(x.bound, 26, 1e-9, "in parts all fits into the sum");
	is_near(x.ii, 28, 1e-9, "exclusive, a task waits for a gap");
	ok(x.best && !x.proven, "... which is known to be best so");
	ok(!wrong(&b, &x), "... and can be done");
	arena_release(&b.arena);
}

static void test_impossible(void)
{
	struct modulo_answer x;
	struct bench b;

	ring_problem(&b, 3);
	b.values[0].memory = add_memory(&b, 10);
	b.values[0].bytes = 11;
	x = solve(&b, NULL);
	is_int(x.status, MODULO_IMPOSSIBLE, "a memory that is too small for one version");
	is_int(x.memory, 0, "... this one");
	arena_release(&b.arena);

	/* read two iterations later: three versions at any interval, though one is asked for */
	ring_problem(&b, 4);
	b.uses[0][0].distance = 2;
	b.values[0].memory = add_memory(&b, 10);
	b.values[0].bytes = 5;
	b.deps[0].distance = -1;
	x = solve(&b, NULL);
	is_int(x.status, MODULO_IMPOSSIBLE, "a memory that is too small for what is alive at once");
	arena_release(&b.arena);

	bench_init(&b, 1, 1);
	add_task(&b, 0, 10, 1, 10, 10);
	add_task(&b, 0, 10, 1, 10, 10);
	add_dep(&b, 0, 1, 0, 0, 0);
	add_dep(&b, 1, 0, 0, 0, 0);
	x = solve(&b, NULL);
	is_int(x.status, MODULO_IMPOSSIBLE, "a circle in one iteration");
	is_int(x.floor.nlinks, 2, "... of two dependences");
	arena_release(&b.arena);
}

static void test_pins(void)
{
	struct modulo_answer x;
	struct bench b;

	bench_init(&b, 1, 1);
	for (int i = 0; i < 4; i++)
		add_task(&b, 0, 10, 1, 10, 10 + 5 * i);
	x = solve(&b, NULL);
	is_near(x.ii, 40, 1e-9, "four tasks of ten cycles");
	b.orders[b.p.norders++] = (struct modulo_order){ 0, 2, 1 };
	b.orders[b.p.norders++] = (struct modulo_order){ 0, 3, 2 };
	x = solve(&b, NULL);
	ok(x.ii == 40 && !wrong(&b, &x), "in the order that was asked for");
	b.orders[b.p.norders++] = (struct modulo_order){ 0, 1, 3 };
	x = solve(&b, NULL);
	is_int(x.status, MODULO_IMPOSSIBLE, "orders that contradict each other");
	b.p.norders = 0;
	b.pins[b.p.npins++] = (struct modulo_pin){ 2, 1, 3 };
	x = solve(&b, NULL);
	ok(x.ii == 40 && !wrong(&b, &x), "three iterations behind");
	add_dep(&b, 2, 1, 3, 0, 0);
	x = solve(&b, NULL);
	is_int(x.status, MODULO_IMPOSSIBLE, "a pin against a dependence");
	arena_release(&b.arena);

	/* half of the tasks each, or what was said */
	bench_init(&b, 0, 2);
	for (int i = 0; i < 4; i++)
		add_task(&b, MODULO_NONE, 0, 3, 10, 10);
	x = solve(&b, NULL);
	is_near(x.ii, 20, 1e-9, "two lanes share four tasks");
	b.tasks[0].lanes = b.tasks[1].lanes = b.tasks[2].lanes = 1;
	x = solve(&b, NULL);
	is_near(x.ii, 30, 1e-9, "unless three are bound to one");
	is_int(x.floor.lanes, 1, "... which is the bound");
	arena_release(&b.arena);
}

static void test_errors(void)
{
	volatile int flag = 1;
	struct stop stop = { (const volatile int *)&flag };
	struct modulo_answer x;
	struct err e = { 0 };
	struct bench b;

	ring_problem(&b, 1);
	b.deps[0].to = 7;
	is_int(modulo_solve(&b.arena, &b.p, NULL, NULL, &x, &e), ERR_INPUT, "no such task");
	is_str(e.msg, "dependence 0 of a modulo schedule has a number out of its range", "... in words");
	b.deps[0].to = 1;
	b.tasks[0].busy = NAN;
	is_int(modulo_solve(&b.arena, &b.p, NULL, NULL, &x, &e), ERR_INPUT, "not a number");
	b.tasks[0].busy = 0;
	b.tasks[0].hold = b.tasks[1].busy = b.tasks[1].hold = 0;
	is_int(modulo_solve(&b.arena, &b.p, NULL, NULL, &x, &e), ERR_INPUT, "nothing to do");
	b.tasks[0].busy = 1e-6;
	b.tasks[1].latency = 1e6;
	is_int(modulo_solve(&b.arena, &b.p, NULL, NULL, &x, &e), ERR_LIMIT, "times too far apart");
	arena_release(&b.arena);

	random_problem(&b, 8);
	is_int(modulo_solve(&b.arena, &b.p, NULL, &stop, &x, &e), ERR_INTERRUPTED, "stopped");
	ok(x.status == MODULO_UNKNOWN || x.bound <= x.ii, "... with bounds that hold");
	arena_release(&b.arena);
}

/* ---- reasons ---- */

static bool below(struct bench *b, struct modulo_problem *p, double ii)
{
	struct modulo_answer x;
	struct err e;

	return !modulo_solve(&b->arena, p, NULL, NULL, &x, &e) && x.status == MODULO_FOUND &&
		(isinf(ii) || x.ii <= ii * (1 - 1e-6));
}

/* Without any one of its requirements a core leaves an interval that is shorter; with all, none. */
static const char *core_wrong(struct bench *b, const struct modulo_core *c)
{
	struct modulo_need others[200];
	struct modulo_problem *p = modulo_only(&b->arena, &b->p, c->needs, c->nneeds);
	struct modulo_unit *units = arena_array(&b->arena, UNITS + 1, sizeof(*units));

	/* the relaxation has no schedules to solve for */
	if (!c->exclusive)
		for (int u = 0; u < b->p.nunits; u++)
			if (b->units[u].share != MODULO_EXCLUSIVE)
				return NULL;
	if (!c->irreducible)
		return "not known to be irreducible";
	if (below(b, p, c->ii))
		return "the core refutes nothing";
	for (int i = 0; i < c->nneeds; i++) {
		int n = 0;

		for (int k = 0; k < c->nneeds; k++)
			if (k != i)
				others[n++] = c->needs[k];
		p = modulo_only(&b->arena, &b->p, others, n);
		/* something must take time for there to be an interval; a task may alone */
		memcpy(units, p->units, (size_t)p->nunits * sizeof(*units));
		units[p->nunits].share = MODULO_EXCLUSIVE;
		p->units = units;
		p->tasks = memcpy(arena_array(&b->arena, MANY, sizeof(*b->tasks)), b->tasks, sizeof(b->tasks));
		((struct modulo_task *)p->tasks)[p->ntasks++] = (struct modulo_task){ p->nunits++,
			0.01, 0, 0, 0 };
		if (!below(b, p, c->ii))
			return "a requirement is not needed";
	}
	return NULL;
}

static void test_why(void)
{
	struct modulo_answer x;
	struct modulo_core c;
	struct err e;
	struct bench b;
	int bad = 0, cores = 0, most = 0;

	ring_problem(&b, 1);
	x = solve(&b, NULL);
	ok(!modulo_why(&b.arena, &b.p, &x, NULL, NULL, &c, &e) && c.irreducible && c.nneeds == 2 &&
		c.needs[0].kind == MODULO_NEED_DEP && c.needs[1].kind == MODULO_NEED_VERSIONS,
		"a recurrence: the dependence and the one version");
	b.values[0].most = 4;
	b.values[0].memory = add_memory(&b, 2);
	x = solve(&b, NULL);
	ok(!modulo_why(&b.arena, &b.p, &x, NULL, NULL, &c, &e) && c.irreducible && c.nneeds == 2 &&
		c.needs[0].kind == MODULO_NEED_DEP && c.needs[1].kind == MODULO_NEED_CAPACITY,
		"... or the memory that has space for two");
	b.memories[0].capacity = 8;
	x = solve(&b, NULL);
	ok(!modulo_why(&b.arena, &b.p, &x, NULL, NULL, &c, &e) && c.irreducible && c.nneeds == 1 &&
		c.needs[0].kind == MODULO_NEED_UNIT && c.needs[0].index == 0, "... or the unit");
	b.memories[0].capacity = 0.5;
	x = solve(&b, NULL);
	ok(!modulo_why(&b.arena, &b.p, &x, NULL, NULL, &c, &e) && c.irreducible && c.nneeds == 1 &&
		c.needs[0].kind == MODULO_NEED_CAPACITY && isinf(c.ii), "... or why there is none at all");
	arena_release(&b.arena);
	for (int i = 0; i < 120; i++) {
		const char *w = NULL;

		random_problem(&b, (uint64_t)i + 1);
		x = solve(&b, NULL);
		if (modulo_why(&b.arena, &b.p, &x, NULL, NULL, &c, &e))
			w = e.msg;
		else
			w = core_wrong(&b, &c);
		if (w)
			diag("problem %d: %s (%d requirements)", i + 1, w, c.nneeds);
		bad += w != NULL;
		cores += x.floor.ii < x.exclusive * (1 - 1e-9);
		most = (int)max_i64(most, c.nneeds);
		arena_release(&b.arena);
	}
	diag("%d cores took a search; the largest has %d requirements", cores, most);
	is_int(bad, 0, "cores of random problems: enough, and all needed");
}

static double eased(struct bench *b, enum modulo_ease_kind kind, int index, double amount)
{
	struct modulo_answer x;
	struct err e;

	if (modulo_what_if(&b->arena, &b->p, &(struct modulo_ease){ kind, index, amount }, NULL, NULL, &x, &e))
		return -1;
	return x.ii;
}

static void test_what_if(void)
{
	struct bench b;

	ring_problem(&b, 1);
	is_near(eased(&b, MODULO_EASE_VERSIONS, 0, 1), 75, 1e-9, "one more version halves a ring's");
	is_near(eased(&b, MODULO_EASE_UNIT, 0, 2), 130, 1e-9, "a copy of 40 of 100 cycles, twice as fast");
	is_near(eased(&b, MODULO_EASE_LATENCY, 0, 50), 100, 1e-9, "50 cycles less to wait");
	is_near(eased(&b, MODULO_EASE_HOLD, 1, 10), 150, 1e-9, "what does not matter");
	is_near(eased(&b, MODULO_EASE_LANE, 1, 1), 150, 1e-9, "another lane brings nothing");
	b.values[0].most = 4;
	b.values[0].memory = add_memory(&b, 2);
	is_near(eased(&b, MODULO_EASE_CAPACITY, 0, 1.5), 50, 1e-9, "half a memory more is a third version");
	is_near(eased(&b, MODULO_EASE_CAPACITY, 3, 1.5), -1, 0, "no such memory");
	arena_release(&b.arena);
	bench_init(&b, 0, 1);
	add_task(&b, MODULO_NONE, 0, 1, 10, 10);
	add_task(&b, MODULO_NONE, 0, 1, 10, 10);
	is_near(eased(&b, MODULO_EASE_LANE, 0, 1), 10, 1e-9, "a second lane for two tasks");
	arena_release(&b.arena);
}

/* ---- the solver ---- */

static void test_milp(void)
{
	struct milp_result r;
	struct milp m = { 0 };
	struct err e = { 0 };
	struct bench b;

	bench_init(&b, 0, 0);
	milp_column(&b.arena, &m, 0, 10, true, 1);
	milp_column(&b.arena, &m, 0, 10, true, 1);
	milp_row(&b.arena, &m, -INFINITY, 7.5);
	milp_term(&b.arena, &m, 0, 1);
	milp_term(&b.arena, &m, 1, 1);
	milp_term(&b.arena, &m, 0, 1);
	milp_row(&b.arena, &m, -INFINITY, 8.2);
	milp_term(&b.arena, &m, 0, 1);
	milp_term(&b.arena, &m, 1, 3);
	if (milp_available()) {
		ok(!milp_solve(&b.arena, &m, 100, &r, &e) && r.status == MILP_OPTIMAL && r.x, "a small program");
		is_near(r.objective, 4, 1e-9, "... its best");
		is_near(r.bound, 4, 1e-6, "... and bound");
		milp_row(&b.arena, &m, 6, INFINITY);
		milp_term(&b.arena, &m, 0, 1);
		milp_term(&b.arena, &m, 1, 1);
		ok(!milp_solve(&b.arena, &m, 100, &r, &e) && r.status == MILP_INFEASIBLE && !r.x,
			"one that asks too much");
	} else {
		skip("no CBC on this machine");
	}
	m.columns.v[0].hi = NAN;
	is_int(milp_solve(&b.arena, &m, 100, &r, &e), ERR_INPUT, "a bound that is no number");
	m.columns.v[0].hi = 10;
	setenv("MILLRACE_LIBCBC", "none", 1);
	ok(!milp_available(), "MILLRACE_LIBCBC=none: there is no solver");
	is_int(milp_solve(&b.arena, &m, 100, &r, &e), ERR_IO, "... which is an error to ask");
	setenv("MILLRACE_LIBCBC", "/nowhere/libcbc.so", 1);
	ok(!milp_available(), "... nor in a file that is not there");
	unsetenv("MILLRACE_LIBCBC");
	arena_release(&b.arena);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_milp();
	test_ring();
	test_mixed();
	test_impossible();
	test_pins();
	test_errors();
	test_why();
	test_what_if();
	test_attention();
	test_large();
	test_random();
	return tap_done();
}
