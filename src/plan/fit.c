#include "plan/fit.h"

#include <string.h>

#include "graph/repeats.h"
#include "plan/problem.h"
#include "target/target.h"

/* A store from registers by a copy engine that moves boxes goes through shared memory in panels, of which at least one must
 * fit: it has all rows of the tile, and is as wide as possible. Of several axes that are not the contiguous one, one numbers
 * the rows. */
static int64_t staging_of(const struct plan *p, int task)
{
	const struct stask *s = &p->graph->tasks.v[task];
	int entry = plan_entry_of(p, task);
	int64_t rows = 1, row_bytes;

	if (!target_of(p->device)->shared.box_rank ||
	    (entry != NONE && p->device->seu[p->entries.v[entry].seu].kind != SEU_COPY))
		return 0;
	for (int i = 0; i < s->reads.n; i++)
		if (plan_scope(p, s->reads.v[i]) == SCOPE_SHARED)
			return 0;
	if (s->kind != TASK_STORE || !s->naxes)
		return 0;
	for (int i = 0; i < s->naxes - 1; i++)
		rows = max_i64(rows, s->extent[i]);
	row_bytes = s->extent[s->naxes - 1] * dtype_bits(s->work.type) / 8;
	return rows * min_i64(row_bytes, target_of(p->device)->shared.widest);
}

/* Are both stores of one lane that can have a staging in common? Of those that have no lane yet, those of one slice. */
static bool share_staging(const struct plan *p, int a, int b)
{
	const struct stask *x = &p->graph->tasks.v[a], *y = &p->graph->tasks.v[b];
	int ea = plan_entry_of(p, a), eb = plan_entry_of(p, b);

	if (x->phase != y->phase || x->loop != NONE || y->loop != NONE)
		return false;
	return ea == NONE || eb == NONE ? ea == eb && x->slice == y->slice : p->entries.v[ea].lane == p->entries.v[eb].lane;
}

int64_t fit_staging(const struct plan *p, int phase)
{
	int64_t sum = 0;

	for (int i = 0; i < p->graph->tasks.n; i++) {
		int64_t bytes = p->graph->tasks.v[i].phase == phase ? staging_of(p, i) : 0;

		for (int j = 0; j < p->graph->tasks.n && bytes; j++) {
			int64_t other = j != i && share_staging(p, i, j) ? staging_of(p, j) : 0;

			if (other > bytes || (other == bytes && j < i))
				bytes = 0;		/* the other one's is counted */
		}
		sum += bytes;
	}
	return sum;
}

/* Bytes of rows that a product's instructions read beyond those of its first operand: each warp of the lane
 * reads a complete block. */
static int64_t spare_rows(const struct plan *p, int buffer)
{
	const struct graph *g = p->graph;
	const struct buffer *b = &g->buffers.v[buffer];
	int64_t most = 0;

	for (int i = 0; i < g->program->nodes.n && b->matrix_a && !b->together; i++) {
		const struct node *mma = &g->program->nodes.v[i];
		int64_t rows = 1, unit = target_of(p->device)->frag.rows;
		int entry = NONE, lane;

		if (mma->op != OP_MMA || product_operand(g->program, mma, 0) != b->node)
			continue;
		for (int t = 0; t < g->tasks.n && entry == NONE; t++)
			if (g->tasks.v[t].task == mma->task && g->tasks.v[t].slice == b->slice)
				entry = plan_entry_of(p, t);
		if (entry == NONE)
			continue;
		lane = p->entries.v[entry].lane;
		unit *= lane_warps(p, lane) / plan_lane_parts(p, lane, b->phase);
		for (int k = 0; k < b->naxes; k++)
			rows *= node_has_axis(mma, b->axis[k]) ? b->extent[k] : 1;
		most = max_i64(most, (ceil_div(rows, unit) * unit - rows) * (b->bytes / rows));
	}
	return most;
}

int64_t fit_shared(const struct plan *p, int phase)
{
	const struct graph *g = p->graph;
	int64_t bytes = 0, align = target_of(p->device)->shared.copy_align;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].phase == phase && plan_scope(p, i) == SCOPE_SHARED &&
		    g->buffers.v[i].alias_of == NONE)
			bytes += ceil_div(g->buffers.v[i].bytes + spare_rows(p, i), align) * align * p->versions[i];
	return bytes + fit_staging(p, phase);
}

/* A wait for another lane needs a named barrier if it is for an issue, otherwise a flag for each version of the
 * value. */
static void count_barriers(const struct plan *p, int phase, struct usage *u)
{
	const struct graph *g = p->graph;
	int named = 0, flags = 0;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		int a = plan_entry_of(p, w->task), b = plan_entry_of(p, w->on), versions = 1;

		if (a == NONE || b == NONE || g->tasks.v[w->task].phase != phase ||
		    p->entries.v[a].lane == p->entries.v[b].lane)
			continue;
		if (w->when == WAIT_ISSUED) {
			named++;
			continue;
		}
		for (int k = 0; k < g->edges.n; k++)
			if (g->edges.v[k].from == w->on && g->edges.v[k].to == w->task &&
			    p->versions[g->edges.v[k].buffer] > versions)
				versions = p->versions[g->edges.v[k].buffer];
		flags += versions;
	}
	u->named_barriers = named > u->named_barriers ? named : u->named_barriers;
	u->flags = flags > u->flags ? flags : u->flags;
}

/* The issue order that was written last. */
static const struct wait *last_issue_order(const struct plan *p)
{
	const struct wait *last = NULL;

	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].when == WAIT_ISSUED && (!last || p->waits.v[i].loc.line >= last->loc.line))
			last = &p->waits.v[i];
	return last;
}

/* What takes so many bytes in all: ": 196608 for rings, 32768 to stage stores, 96 for mbarriers". */
static const char *parts_text(const struct plan *p, int phase, int64_t bytes, int64_t flags, struct arena *a)
{
	int64_t staging = fit_staging(p, phase);

	return arena_strf(a, ": %lld for rings%s%s", (long long)(bytes - staging - flags), staging ?
		arena_strf(a, ", %lld to stage stores", (long long)staging) : "",
		flags ? arena_strf(a, ", %lld for %ss", (long long)flags, target_flag_name(target_of(p->device))) : "");
}

/* If a buffer has all of an axis in every tile, as a task needs that: so, and in *hint what changes it. No other
 * tile does. */
static const char *full_axis_text(const struct graph *g, const struct buffer *b, struct arena *a, const char **hint)
{
	const struct program *p = g->program;
	int most = NONE;

	for (int i = 0; i < b->naxes; i++)
		if (b->extent[i] == p->axes.v[b->axis[i]].size && b->extent[i] > 1 &&
		    graph_needs_all(g, b->phase, b->axis[i]) != NONE && (most == NONE ||
			b->extent[i] > b->extent[most]))
			most = i;
	if (most == NONE)
		return "";
	*hint = arena_strf(a,
		"change the program: a loop over '%s' with carries, or '%s' in a phase of its own that loops over it, has less of it "
		"at a time", p->axes.v[b->axis[most]].name, p->tasks.v[graph_needs_all(g, b->phase,
			b->axis[most])].name);
	return arena_strf(a, ", as every tile has all %lld of '%s': '%s' needs them", (long long)b->extent[most],
		p->axes.v[b->axis[most]].name, p->tasks.v[graph_needs_all(g, b->phase, b->axis[most])].name);
}

static void blame_shared(const struct plan *p, int phase, int64_t bytes, int64_t flags, struct arena *a,
	struct problems *out)
{
	const struct graph *g = p->graph;
	struct problem *found;
	int64_t one = bytes;		/* with one version of each */
	const char *hint = "take a smaller tile", *name = "", *why = "", *full = "";
	int task = NONE, buffer = NONE;
	int64_t most = -1, size = 0, over;

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		int64_t spare, each;

		if (b->phase != phase || plan_scope(p, i) != SCOPE_SHARED)
			continue;
		spare = spare_rows(p, i);
		each = b->bytes + spare;
		if (b->alias_of == NONE)
			one -= each * (p->versions[i] - 1);
		if (each * p->versions[i] <= most)
			continue;
		most = each * p->versions[i];
		task = b->first;
		buffer = i;
		name = b->name;
		size = each;
		why = spare > b->bytes ? ", as a product's instructions read more rows than it has" : "";
		over = ceil_div(bytes - p->device->shared_bytes, max_i64(each, 1));
		hint = over < p->versions[i] ? arena_strf(a, script_is_key(b->name) ? "plan:buffers{%s=%d}" :
			"plan:buffers{[\"%s\"]=%d}", b->name, (int)(p->versions[i] - over)) : arena_strf(a, "'%s' takes most: "
			"%lld bytes, %d version%s; lower it with plan:buffers, or take a smaller tile", b->name,
			(long long)each, p->versions[i], p->versions[i] == 1 ? "" : "s");
	}
	if (one > p->device->shared_bytes && buffer != NONE) {
		hint = "take a smaller tile";	/* fewer versions do not suffice */
		full = full_axis_text(g, &g->buffers.v[buffer], a, &hint);
	}
	if (one > p->device->shared_bytes)
		found = problem_add(a, out, PROBLEM_SHARED_MEMORY, p->versions_loc, hint, "the tile does not fit: with one "
			"version of each value it needs %lld bytes of shared memory, '%s' has %lld; '%s' takes most, %lld%s%s",
			(long long)one, p->device->name, (long long)p->device->shared_bytes, name, (long long)size,
				why, full);
	else
		found = problem_add(a, out, PROBLEM_SHARED_MEMORY, p->versions_loc, hint, "the plan needs %lld bytes of shared "
			"memory, '%s' has %lld%s", (long long)bytes, p->device->name, (long long)p->device->shared_bytes,
			parts_text(p, phase, bytes, flags, a));
	found->task = task;
}

/* Statements that leave a wait out. */
static const char *without(const struct plan *p, const struct wait *w, struct arena *a)
{
	const struct stask *tasks = p->graph->tasks.v;

	return arena_strf(a, "plan:unwait(\"%s\", \"%s\"); plan:fill_waits()", tasks[w->task].name, tasks[w->on].name);
}

/* The statement that gives the lane with most threads half of its warps. */
static const char *smaller_lane(const struct plan *p, struct arena *a)
{
	const struct lane *l = &p->lanes.v[0];
	int most = 0;

	for (int i = 0; i < p->lanes.n; i++)
		if (lane_is_used(p, i) && lane_warps(p, i) * p->lanes.v[i].replicas > most) {
			most = lane_warps(p, i) * p->lanes.v[i].replicas;
			l = &p->lanes.v[i];
		}
	most /= l->replicas;
	return arena_strf(a, "plan:lane(\"%s\", {warps=%d%s%s%s})", l->name, most > 1 ? most / 2 : 1,
		l->columns > 1 && (most == 1 || most / 2 % l->columns) ? ", columns=false" : "",
		l->registers ? arena_strf(a, ", registers=%d", l->registers) : "",
		l->replicas > 1 ? arena_strf(a, ", replicas=%d", most > 1 ? l->replicas : l->replicas - 1) : "");
}

void fit_memory(const struct plan *p, struct arena *a, struct problems *out, struct usage *u)
{
	const struct vdevice *d = p->device;

	for (int phase = 0; phase < p->graph->program->phases.n; phase++) {
		int64_t bytes = fit_shared(p, phase), flags;

		count_barriers(p, phase, u);
		/* where flags are counters, lanes may meet instead: only the kernel says which */
		flags = target_of(p->device)->shared.polled ? 0 : (int64_t)u->flags * target_of(p->device)->shared.flag;
		bytes += flags;
		if (bytes > d->shared_bytes)
			blame_shared(p, phase, bytes, flags, a, out);
		u->shared_bytes = max_i64(u->shared_bytes, bytes);
	}
	for (int i = 0; i < p->lanes.n; i++)
		if (lane_is_used(p, i))
			u->threads += lane_warps(p, i) * p->lanes.v[i].replicas * d->warp;
	if (u->threads > d->max_threads)
		problem_add(a, out, PROBLEM_THREADS, p->lanes.v[p->lanes.n - 1].loc, smaller_lane(p, a), "the lanes have %d threads, an EU of '%s' takes %d", u->threads, d->name,
			d->max_threads);
	if (u->named_barriers > d->named_barriers)
		problem_add(a, out, PROBLEM_BARRIERS, last_issue_order(p)->loc, without(p, last_issue_order(p), a),
			"the issue orders need %d named barriers, '%s' has %d", u->named_barriers, d->name, d->named_barriers);
}

static bool has_products(const struct plan *p, int phase)
{
	for (int i = 0; i < p->graph->tasks.n; i++)
		if (p->graph->tasks.v[i].phase == phase && p->graph->tasks.v[i].kind == TASK_MMA)
			return true;
	return false;
}

/* In fragments of products several threads have each element of a vector. Without products each element of a long one can have one
 * thread; if more have it, the kernel shows that. */
static int64_t thread_registers(const struct plan *p, int buffer, int lane)
{
	const struct buffer *b = &p->graph->buffers.v[buffer];
	int64_t threads = (int64_t)lane_warps(p, lane) * p->device->warp;
	int64_t bytes = b->bytes;

	if (!b->naxes)
		bytes = threads * 4;
	else if (b->naxes == 1 && has_products(p, b->phase))
		bytes *= target_of(p->device)->frag.col.mod * plan_lane_parts(p, lane, b->phase);
	return ceil_div(bytes, threads * 4);
}

/* The position in its lane's order up to which an instance holds the registers that it touches. A store has copied them
 * to shared memory when it is issued. */
static int held_until(const struct relation *r, int lane_replica, int i)
{
	const struct plan *p = r->plan;
	int k, n = r->lane_first[lane_replica + 1] - i - 1;

	if (!p->device->seu[p->entries.v[r->inst[i].entry].seu].async ||
	    p->graph->tasks.v[r->inst[i].task].kind == TASK_STORE)
		return r->inst[i].position;
	BISECT(k, n, !relation_before(r, i, AT_END, i + 1 + k, AT_ISSUE));
	return r->inst[i + k].position;
}

/* Registers that a lane replica holds, by position of its order. */
struct held {
	int64_t *step;			/* how many more (or fewer) it holds all along an instance than along the one before */
	/* Element by element, the result of element-wise work takes the registers of what is read there for the last
	 * time: of these two the greater counts. */
	int64_t *last, *first;
	bool *elementwise;
};

/* Add the lives of one buffer and its aliases. */
static void add_lives(const struct relation *r, int lane_replica, int buffer, struct arena *a, const struct held *h)
{
	const struct graph *g = r->plan->graph;
	int first = r->lane_first[lane_replica], end = r->lane_first[lane_replica + 1];
	int loop = g->buffers.v[buffer].loop;
	int64_t lives = walk_count(r->walk, loop);
	int *from = arena_ints(a, (int)lives, NONE), *to = arena_ints(a, (int)lives, NONE);
	int64_t each = thread_registers(r->plan, buffer, r->inst[first].lane);

	for (int i = first; i < end; i++) {
		const struct stask *t = &g->tasks.v[r->inst[i].task];
		int until;
		int64_t s;

		if (!graph_holds_storage(g, &t->reads, buffer) && !graph_holds_storage(g, &t->writes, buffer))
			continue;
		s = walk_outer(r->walk, t->loop, r->inst[i].seq, loop);
		until = held_until(r, lane_replica, i);
		from[s] = from[s] == NONE ? r->inst[i].position : from[s];
		to[s] = until > to[s] ? until : to[s];
	}
	for (int64_t s = 0; s < lives; s++) {
		bool begins, ends;

		if (from[s] == NONE)
			continue;
		begins = from[s] < to[s] && h->elementwise[from[s]];
		ends = from[s] < to[s] && h->elementwise[to[s]];
		h->first[from[s]] += begins ? each : 0;
		h->last[to[s]] += ends ? each : 0;
		h->step[from[s] + begins] += each;
		h->step[to[s] + !ends] -= each;
	}
}

/* A product whose result is in shared memory has it in registers while it runs: the lane loads what it adds to,
 * and stores it back. */
static void add_shared_results(const struct relation *r, int lane_replica, const struct held *h)
{
	const struct graph *g = r->plan->graph;
	int end = r->lane_first[lane_replica + 1];

	for (int i = r->lane_first[lane_replica]; i < end; i++) {
		const struct stask *t = &g->tasks.v[r->inst[i].task];

		for (int k = 0; k < t->writes.n && t->kind == TASK_MMA; k++) {
			int64_t each = thread_registers(r->plan, t->writes.v[k], r->inst[i].lane);

			if (plan_scope(r->plan, t->writes.v[k]) != SCOPE_SHARED)
				continue;
			h->step[r->inst[i].position] += each;
			h->step[r->inst[i].position + 1] -= each;
		}
	}
}

void fit_registers(const struct relation *r, struct arena *a, struct usage *u)
{
	const struct plan *p = r->plan;
	const struct graph *g = p->graph;

	for (int l = 0; l < r->nlanes; l++) {
		int first = r->lane_first[l], n = r->lane_first[l + 1] - first, lane;
		struct held h = { ARENA_ARRAY(a, n + 1, int64_t), ARENA_ARRAY(a, n, int64_t),
			ARENA_ARRAY(a, n, int64_t), ARENA_ARRAY(a, n, bool) };
		int64_t count = 0, most = 0;

		if (!n)
			continue;
		lane = r->inst[first].lane;
		for (int i = first; i < first + n; i++)
			h.elementwise[r->inst[i].position] = g->tasks.v[r->inst[i].task].kind == TASK_COMPUTE;
		for (int b = 0; b < g->buffers.n; b++) {
			bool here = g->buffers.v[b].phase == r->walk->phase &&
				g->buffers.v[b].alias_of == NONE && plan_scope(p, b) == SCOPE_REGISTERS;
			int e = plan_entry_of(p, g->buffers.v[b].first);

			if (here && e != NONE && p->entries.v[e].lane == lane)
				add_lives(r, l, b, a, &h);
		}
		add_shared_results(r, l, &h);
		for (int i = 0; i < n; i++) {
			count += h.step[i];
			most = max_i64(most, count + max_i64(h.last[i], h.first[i]));
		}
		most += p->device->reserved_registers;
		most = ceil_div(most, p->device->register_step) * p->device->register_step;
		if (most > u->lane_registers[lane])
			u->lane_registers[lane] = (int)min_i64(most, 1 << 20);
	}
}

void fit_register_file(const struct plan *p, struct arena *a, struct problems *out, struct usage *u)
{
	const struct vdevice *d = p->device;
	int64_t threads = 0, most;

	for (int i = 0; i < p->lanes.n; i++) {
		const struct lane *l = &p->lanes.v[i];
		int need = u->lane_registers[i], limit = l->registers ? l->registers : d->thread_registers;
		int warps = target_warps(target_of(p->device), lane_warps(p, i));

		if (!lane_is_used(p, i))
			continue;
		if (need > limit)
			problem_add(a, out, PROBLEM_REGISTERS, l->loc, "split the tile over more lanes, take a smaller "
				"tile, or give the lane more warps", "lane '%s' needs %d registers a thread, it has %d",
				l->name, need, limit);
		if (l->registers)
			u->lane_registers[i] = l->registers;
		u->registers += (int64_t)u->lane_registers[i] * warps * d->warp * l->replicas;
		threads += (int64_t)warps * d->warp * l->replicas;
	}
	/* a launch gives all threads alike, in steps; they can exchange them then */
	most = device_launched_registers(d, threads) * threads;
	if (u->registers > most)
		problem_add(a, out, PROBLEM_REGISTERS, p->lanes.v[p->lanes.n - 1].loc, "use fewer lanes or warps, or "
			"lower registers= with plan:lane", "the lanes need %lld registers, an EU of '%s' has %lld for "
			"%lld threads", (long long)u->registers, d->name, (long long)most, (long long)threads);
}
