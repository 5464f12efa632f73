#include "plan/problem.h"

#include <stdarg.h>
#include <string.h>

#include "target/target.h"

const char *problem_name(enum problem_code c)
{
	static const char *const names[] = { "missing_wait", "misplaced_wait", "deadlock", "wrong_seu", "versions",
		"registers", "shared_memory", "barriers", "threads", "missing_task", "duplicate_task", "offset",
		"cluster", "keep", "alias", "layout", "product", "waits", "copies", "dynamic", "kernel", "spills", "serialized",
		"ungranted", "events", "by_threads", "redundant_wait", "repeated", "on_vector_unit", "unused_lane", "tied" };

	return names[c];
}

struct problem *problem_add(struct arena *a, struct problems *out, enum problem_code code, struct srcloc loc,
	const char *hint, const char *fmt, ...)
{
	struct problem *pr = VEC_ADD(a, &out->v);
	va_list ap;

	va_start(ap, fmt);
	*pr = (struct problem){ .code = code, .task = NONE, .other = NONE, .edge = NONE, .from_iteration = NONE,
		.to_iteration = NONE, .loc = loc, .hint = hint,
		.message = arena_vstrf(a, fmt, ap) };
	va_end(ap);
	return pr;
}

bool problems_have(const struct problems *list, enum problem_code code)
{
	int i;

	FIND_FIRST(i, list->v.n, list->v.v[i].code == code);
	return i != NONE;
}

/* Where the append of an sTask belongs: before the first one of its lane and region that the program has behind it, with
 * the offset of the one before it. */
static const char *append_text(const struct plan *p, struct arena *a, int task)
{
	const struct graph *g = p->graph;
	const struct stask *s = &g->tasks.v[task];
	int seu = device_seu_for(p->device, &s->work), at = 0, before = NONE;
	const char *lane = NULL, *where;

	for (int i = 0; i < p->entries.n; i++) {	/* that of another slice with its number, or of what is alike */
		const struct stask *t = &g->tasks.v[p->entries.v[i].task];
		bool alike = (t->kind == TASK_LOAD) == (s->kind == TASK_LOAD) && t->slice == s->slice;

		if (alike && t->phase == s->phase)
			lane = p->lanes.v[p->entries.v[i].lane].name;
	}
	if (!lane)
		lane = s->kind == TASK_LOAD && seu != NONE && p->device->seu[seu].kind == SEU_COPY &&
			p->device->seu[seu].async ? "p0" : arena_strf(a, "c%d", s->slice);
	for (int i = 0; i < p->entries.n && before == NONE; i++) {
		const struct stask *t = &g->tasks.v[p->entries.v[i].task];

		if (strcmp(p->lanes.v[p->entries.v[i].lane].name, lane) || t->phase != s->phase || t->loop != s->loop)
			continue;
		if (t->position > s->position)
			before = i;
		else
			at = p->entries.v[i].at;
	}
	where = arena_strf(a, "seu=\"%s\", lane=\"%s\"%s", seu == NONE ? "" : p->device->seu[seu].name, lane,
		at ? arena_strf(a, ", at=%d", at) : "");
	if (seu == NONE)
		return "no sEU of this device can do it: another type of elements, or another device";
	if (before == NONE)
		return arena_strf(a, "plan:append(\"%s\", {%s})", s->name, where);
	return arena_strf(a, "plan:insert(\"%s\", {before=\"%s\", %s})", s->name,
		g->tasks.v[p->entries.v[before].task].name, where);
}

/* Has each sTask of the phase that is in the plan been appended n times, but for loads? */
static bool all_appended(const struct plan *p, int phase, int n)
{
	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];
		int count = 0;

		for (int k = 0; k < p->entries.n; k++)
			count += p->entries.v[k].task == p->entries.v[i].task;
		if (s->phase == phase && s->kind != TASK_LOAD && count != n)
			return false;
	}
	return true;
}

/* How a task that was appended n times becomes one that was appended once: as its slices, if it is on as many lanes and so
 * is all that goes with it, as otherwise one of the appends was a mistake. */
static const char *once_text(const struct plan *p, struct arena *a, int task, int n)
{
	const struct graph *g = p->graph;
	const struct stask *s = &g->tasks.v[task];
	int first = plan_entry_of(p, task), after = NONE, axis = 0;
	const struct entry *e = &p->entries.v[first];
	bool lanes = true;

	for (int i = 0; i < p->entries.n; i++)
		for (int k = 0; k < i; k++)
			lanes &= p->entries.v[i].task != task || p->entries.v[k].task != task ||
				p->entries.v[i].lane != p->entries.v[k].lane;
	while (axis < s->naxes && s->extent[axis] % n)
		axis++;
	if (lanes && s->slices == 1 && s->kind != TASK_LOAD && axis < s->naxes && all_appended(p, s->phase, n))
		return arena_strf(a, "plan:split(\"%s\", %d)", g->program->axes.v[s->axis[axis]].name, n);
	for (int i = 0; i < first; i++)
		if (p->entries.v[i].lane == e->lane && g->tasks.v[p->entries.v[i].task].phase == s->phase &&
		    g->tasks.v[p->entries.v[i].task].loop == s->loop)
			after = p->entries.v[i].task;
	return arena_strf(a, "plan:remove(\"%s\"); plan:%s(\"%s\", {seu=\"%s\", lane=\"%s\"%s%s})", s->name,
		after == NONE ? "append" : "insert", s->name, p->device->seu[e->seu].name, p->lanes.v[e->lane].name,
		e->at ? arena_strf(a, ", at=%d", e->at) : "", after == NONE ? "" :
		arena_strf(a, ", after=\"%s\"", g->tasks.v[after].name));
}

/* The sTask has an sEU that cannot do its work. Of a product that the unit could do if one of its operands was cast, the
 * message names the cast. */
static struct problem *add_wrong_seu(const struct plan *p, struct arena *a, const struct stask *s, const struct entry *x,
	struct problems *out)
{
	const struct work *w = &s->work;
	const struct seu *seu = &p->device->seu[x->seu];
	int able = device_seu_for(p->device, w);
	const char *hint = able == NONE ? "no sEU of this device can" : arena_strf(a, "plan:move(\"%s\", {seu=\"%s\"})",
		s->name, p->device->seu[able].name);
	const enum dtype types[] = { w->type, w->operand[0], w->operand[1] };
	struct work cast = *w;

	cast.mixed = false;
	for (int i = 0; i < LEN(types) && w->mixed; i++) {
		cast.type = types[i];
		if (dtype_is_float(cast.type) && device_can(p->device, x->seu, &cast))
			return problem_add(a, out, PROBLEM_WRONG_SEU, x->loc, hint, "'%s' multiplies %s by %s, and sEU "
				"'%s' multiplies operands of one type: cast one of them, :to \"%s\", or take another sEU",
				s->name, dtype_name(w->operand[0]), dtype_name(w->operand[1]), seu->name,
				dtype_name(cast.type));
	}
	return problem_add(a, out, PROBLEM_WRONG_SEU, x->loc, hint, "'%s' (%s of %s) cannot run on sEU '%s'", s->name,
		task_kind_name(s->kind), dtype_name(w->type), seu->name);
}

void problem_add_entries(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];
		const struct entry *last = NULL;
		struct problem *pr = NULL;
		int n = 0;

		for (int i = 0; i < p->entries.n; i++)
			if (p->entries.v[i].task == t) {
				n++;
				last = &p->entries.v[i];
			}
		if (n == 0)
			pr = problem_add(a, out, PROBLEM_MISSING_TASK, p->made_at, append_text(p, a, t),
				"sTask '%s' is not in the plan", s->name);
		else if (n > 1)
			pr = problem_add(a, out, PROBLEM_DUPLICATE_TASK, last->loc, once_text(p, a, t, n),
				"sTask '%s' is appended %d times", s->name, n);
		else if (!device_can(p->device, last->seu, &s->work))
			pr = add_wrong_seu(p, a, s, last, out);
		if (pr)
			pr->task = t;
	}
}

/* The lane of the sTask that makes the value; a life of its storage may begin on another one. */
static int lane_of_value(const struct plan *p, int buffer)
{
	const struct graph *g = p->graph;
	int t = 0;

	while (!ints_hold(g->tasks.v[t].writes.v, g->tasks.v[t].writes.n, buffer))
		t++;
	return p->entries.v[plan_entry_of(p, t)].lane;
}

/* Why a value cannot share the storage of another under this plan; NULL: it can. */
static const char *alias_conflict(const struct plan *p, struct arena *a, int buffer, int of)
{
	const struct buffer *v = p->graph->buffers.v;

	if (v[of].scope == SCOPE_SHARED)
		return p->versions[buffer] == p->versions[of] ? NULL : arena_strf(a, "'%s' has versions: %d, "
			"'%s': %d", v[buffer].name, p->versions[buffer], v[of].name, p->versions[of]);
	for (int i = 0; i < 2; i++) {
		int b = i ? of : buffer;

		if (plan_scope(p, b) == SCOPE_SHARED)
			return arena_strf(a, "'%s' is in shared memory, for other lanes or as an operand", v[b].name);
		if (p->versions[b] > 1)
			return arena_strf(a, "'%s' has %d versions, in registers", v[b].name, p->versions[b]);
	}
	return lane_of_value(p, buffer) == lane_of_value(p, of) ? NULL : "they are in registers of different lanes";
}

void problem_add_aliases(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		const char *why = b->alias_of == NONE ? NULL : alias_conflict(p, a, i, b->alias_of);

		if (why) {
			struct problem *pr = problem_add(a, out, PROBLEM_ALIAS, p->entries.v[plan_entry_of(p, b->first)].loc,
				"in registers, let one lane make and use both, in one version each; in shared memory, "
				"give both as many versions; or take out plan:alias", "'%s' cannot be an alias of "
				"'%s': %s", b->name, g->buffers.v[b->alias_of].name, why);

			pr->task = b->first;
			pr->other = g->buffers.v[b->alias_of].first;
		}
	}
}

/* An sTask that reads the buffer; each has one. */
static int reader_of(const struct graph *g, int buffer)
{
	int t = 0;

	while (!stask_reads(&g->tasks.v[t], buffer))
		t++;
	return t;
}

/* Why no sTask can fetch the operand for the product under this plan; NULL: it can. */
static const char *fetch_conflict(const struct plan *p, struct arena *a, int fetch, int product, int arg)
{
	const struct graph *g = p->graph;
	const struct seu *unit = &p->device->seu[p->entries.v[plan_entry_of(p, product)].seu];
	const char *name = g->tasks.v[product].name;
	const struct buffer *value = &g->buffers.v[g->tasks.v[fetch].writes.v[0]];

	if (unit->kind != SEU_MATRIX)
		return arena_strf(a, "the threads of '%s' read operands from shared memory as they multiply '%s'", unit->name, name);
	if (unit->async && arg)
		return arena_strf(a, "'%s' is asynchronous, and reads the second operand of '%s' from shared memory itself",
			unit->name, name);
	if (unit->async && stask_is_direct(g, &g->tasks.v[fetch]))
		return arena_strf(a, "'%s' is asynchronous, and takes it out of registers without that", unit->name);
	if (stask_is_direct(g, &g->tasks.v[fetch]) && dtype_bits(value->type) != 16)
		return arena_strf(a, "it is of %s, and one of 16 bits can be made there", dtype_name(value->type));
	if (plan_scope(p, g->tasks.v[fetch].writes.v[0]) != SCOPE_SHARED)
		return NULL;
	return stask_is_direct(g, &g->tasks.v[fetch]) ? "that takes the operand out of registers of its own lane, in the slices in "
		"which it is made" : arena_strf(a, "what is fetched is in registers of one lane, in the slices in which '%s' takes it",
		name);
}

/* Is the sTask a product of a part of what its tile contracts, on an asynchronous unit? */
static bool is_async_part(const struct plan *p, int task)
{
	const struct stask *s = &p->graph->tasks.v[task];

	return s->kind == TASK_MMA && s->slices > 1 && !ints_hold(s->axis, s->naxes, s->split_axis) &&
		p->device->seu[p->entries.v[plan_entry_of(p, task)].seu].async;
}

void problem_add_products(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int t = 0; t < g->tasks.n; t++)
		if (is_async_part(p, t))
			problem_add(a, out, PROBLEM_PRODUCT, p->entries.v[plan_entry_of(p, t)].loc, "take a tile with less of it, or "
				"leave the split out", "'%s' multiplies a part of what its tile has of '%s', which '%s', an asynchronous unit, "
				"does for all of it at once", g->tasks.v[t].name, g->program->axes.v[g->tasks.v[t].split_axis].name,
				p->device->seu[p->entries.v[plan_entry_of(p, t)].seu].name)->task = t;

	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];
		int product, arg;
		const char *why;

		if (!stask_makes_operand(g, s))
			continue;
		graph_fetched_for(g, s, &arg);
		product = reader_of(g, s->writes.v[0]);
		why = fetch_conflict(p, a, t, product, arg);
		if (why) {
			struct problem *pr = problem_add(a, out, PROBLEM_PRODUCT, p->entries.v[plan_entry_of(p, t)].loc,
				stask_is_direct(g, s) ? "make operands for a synchronous matrix unit, on the lane of the product, and "
				"split both alike; or take out plan:direct" : "fetch operands for a synchronous matrix unit, on the "
				"lane of the product, and split both alike; or take out plan:fetch", stask_is_direct(g, s) ?
				"'%s' cannot make an operand where '%s' takes it: %s" : "'%s' cannot fetch an operand of '%s': %s",
				s->name, g->tasks.v[product].name, why);

			pr->task = t;
			pr->other = product;
		}
	}
}

/* Why the lane's warps cannot be in so many columns; NULL: they can. *task: a product that is why; NONE. */
static const char *columns_conflict(const struct plan *p, struct arena *a, int lane, int columns, int *task)
{
	const struct target *t = target_of(p->device);
	const char *name = p->lanes.v[lane].name;
	int warps = lane_warps(p, lane);
	bool multiplies = false;

	*task = NONE;
	if (warps % columns)
		return arena_strf(a, "the %d warp%s of lane '%s' cannot be in %d columns", warps, warps == 1 ? "" : "s", name, columns);
	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];
		const struct seu *unit = &p->device->seu[p->entries.v[i].seu];
		const struct matrix_instruction *x;
		int step;

		if (p->entries.v[i].lane != lane || s->kind != TASK_MMA || unit->kind != SEU_MATRIX)
			continue;
		multiplies = true;
		x = target_matrix(t, unit->async, s->work.sparse, s->work.type);
		if (!x)
			continue;
		*task = p->entries.v[i].task;
		step = x->async ? t->frag.deep : x->cols_most;
		if (warps / columns % x->warps)
			return arena_strf(a, "lane '%s' has %d columns of %d warp%s, and %d warps make the products of '%s' together", name,
				columns, warps / columns, warps / columns == 1 ? "" : "s", x->warps, s->name);
		if (s->work.n % ((int64_t)step * columns))
			return arena_strf(a, "'%s' has %lld columns, which lane '%s' divides among %d columns of warps, and each takes a "
				"multiple of %d", s->name, (long long)s->work.n, name, columns, step);
	}
	*task = NONE;
	return multiplies ? NULL : arena_strf(a, "lane '%s' has no product of a matrix unit, whose columns its warps could divide", name);
}

void problem_add_columns(const struct plan *p, struct arena *a, struct problems *out)
{
	for (int i = 0; i < p->lanes.n; i++) {
		const struct lane *l = &p->lanes.v[i];
		int task, other, fewer = l->columns - 1;
		const char *why = l->columns > 1 && lane_is_used(p, i) ? columns_conflict(p, a, i, l->columns, &task) : NULL;

		if (!why)
			continue;
		while (fewer > 1 && columns_conflict(p, a, i, fewer, &other))
			fewer--;
		problem_add(a, out, PROBLEM_PRODUCT, l->loc, fewer > 1 ? arena_strf(a, "plan:lane(\"%s\", {columns=%d})", l->name, fewer) :
			arena_strf(a, "plan:lane(\"%s\", {columns=false})", l->name), "%s", why)->task = task;
	}
}

/* How to bring two sTasks into order of which the second has come first: behind the other in its lane's order, or, on
 * another lane, by an offset that lets it run no further ahead. */
static const char *order_hint(const struct plan *p, struct arena *a, const struct edge *e)
{
	const struct stask *s = &p->graph->tasks.v[e->from], *t = &p->graph->tasks.v[e->to];
	const struct entry *from = &p->entries.v[plan_entry_of(p, e->from)], *to = &p->entries.v[plan_entry_of(p, e->to)];
	int distance = edge_distance(p, e), at = from->at + distance;
	bool same_region = s->phase == t->phase && s->loop == t->loop;

	if (from->lane == to->lane && same_region)
		return arena_strf(a, "plan:move(\"%s\", {%safter=\"%s\"})", t->name, to->at > at ?
			arena_strf(a, "at=%d, ", at) : "", s->name);
	if (same_region && to->at > at)
		return arena_strf(a, "plan:move(\"%s\", {at=%d})", t->name, at);
	return arena_strf(a, "append '%s' after '%s', or give it a smaller at=", t->name, s->name);
}

/* A wait of the cycle that can go: one whose distance was given, or else any. Others are added again where needed. */
static const char *deadlock_hint(const struct findings *f, struct arena *a)
{
	const struct plan *p = f->plan;
	const struct stask *tasks = p->graph->tasks.v;
	const struct wait *best = NULL;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		bool given = w->distance != DISTANCE_AUTO || w->when == WAIT_ISSUED;

		if (ints_hold(f->cycle, f->ncycle, w->task) && ints_hold(f->cycle, f->ncycle, w->on) &&
		    (!best || (given && best->distance == DISTANCE_AUTO && best->when == WAIT_COMPLETE)))
			best = w;
	}
	if (!best)
		return "raise an offset or the versions of a ring, or change the order";
	return arena_strf(a, "plan:unwait(\"%s\", \"%s\"); plan:fill_waits()", tasks[best->task].name, tasks[best->on].name);
}

void problem_add_deadlock(const struct findings *f, struct arena *a, struct problems *out)
{
	const struct plan *p = f->plan;
	int task = f->cycle[0];
	struct problem *pr;
	struct buf b;

	buf_init(&b, a);
	for (int i = 0; i < f->ncycle; i++)
		buf_printf(&b, "'%s' after ", p->graph->tasks.v[f->cycle[i]].name);
	pr = problem_add(a, out, PROBLEM_DEADLOCK, p->entries.v[plan_entry_of(p, task)].loc,
		deadlock_hint(f, a), "the lanes wait for "
		"each other for ever: %s'%s'", b.text, p->graph->tasks.v[task].name);
	pr->task = task;
	pr->other = f->ncycle > 1 ? f->cycle[1] : task;
}

/* " of the iteration before", " of 3 tiles before"; "" if it is the same one. */
static const char *when_text(struct arena *a, const struct edge *e, int distance)
{
	const char *unit = e->loop == NONE ? "tile" : "iteration";

	if (distance <= 1)
		return distance ? arena_strf(a, " of the %s before", unit) : "";
	return arena_strf(a, " of %d %ss before", distance, unit);
}

/* Bytes of a name without the number of its slice: "softmax" of "softmax.1". */
static int task_name_length(const char *name)
{
	const char *dot = strrchr(name, '.');

	return (int)(dot && dot[1] && !dot[1 + strspn(dot + 1, "0123456789")] ? dot - name : (int)strlen(name));
}

/* "'k'", or "the buffer 'softmax'" if an sTask, or one that it is a slice of, has the same name. */
static const char *buffer_text(struct arena *a, const struct graph *g, const char *buffer)
{
	int n = task_name_length(buffer);
	bool same = false;

	for (int t = 0; t < g->tasks.n && !same; t++)
		same = task_name_length(g->tasks.v[t].name) == n && !strncmp(g->tasks.v[t].name, buffer, (size_t)n);
	return arena_strf(a, "%s'%s'", same ? "the buffer " : "", buffer);
}

void problem_add_breach(const struct findings *f, int edge, struct arena *a, struct problems *out)
{
	const struct plan *p = f->plan;
	const struct graph *g = p->graph;
	const struct edge *e = &g->edges.v[edge];
	const struct breach *b = &f->edge[edge];
	enum problem_code code = b->code;
	const char *from = g->tasks.v[e->from].name, *to = g->tasks.v[e->to].name;
	const char *buffer = g->buffers.v[e->buffer].name, *hint, *message;
	const char *does = e->kind == EDGE_FLOW ? "reads" : "overwrites", *done = e->kind == EDGE_ANTI ? "read" : "written";
	int versions = p->versions[e->buffer];
	const char *what = arena_strf(a, "'%s' %s %s%s", to, does, buffer_text(a, g, buffer),
		when_text(a, e, edge_distance(p, e)));
	struct problem *pr;

	if (code == PROBLEM_VERSIONS) {
		hint = arena_strf(a, script_is_key(buffer) ? "plan:buffers{%s=%d}" : "plan:buffers{[\"%s\"]=%d}", buffer,
			versions + 1);
		message = arena_strf(a, "%s although '%s' has not %s that yet: %d version%s of '%s' %s too few for this "
			"order", what, from, done, versions, versions == 1 ? "" : "s", buffer, versions == 1 ? "is" : "are");
	} else if (code == PROBLEM_OFFSET) {
		hint = order_hint(p, a, e);
		message = arena_strf(a, "%s, but the order has it come before '%s' has %s that", what, from, done);
	} else if (code == PROBLEM_MISPLACED_WAIT) {
		hint = arena_strf(a, "plan:wait(\"%s\", {\"%s\"})", to, from);
		message = arena_strf(a, "%s, but its wait for '%s' is for another iteration than the one that has %s that", what,
			from, done);
	} else {
		hint = arena_strf(a, "plan:wait(\"%s\", {\"%s\"})", to, from);
		message = arena_strf(a, "%s, but does not wait until '%s' has %s that", what, from, done);
	}
	pr = problem_add(a, out, code, p->entries.v[plan_entry_of(p, e->to)].loc, hint, "%s", message);
	pr->task = e->to;
	pr->other = e->from;
	pr->edge = edge;
	pr->from_iteration = b->from;
	pr->to_iteration = b->to;
}
