#include "plan/history.h"

#include <string.h>

#include "plan/check.h"
#include "plan/names.h"

enum edit_kind { EDIT_LANE, EDIT_APPEND, EDIT_MOVE, EDIT_REMOVE, EDIT_WAIT, EDIT_UNWAIT, EDIT_DROP_WAIT, EDIT_VERSIONS,
	EDIT_GRID, EDIT_SPLIT_OFF, EDIT_SPLIT, EDIT_ALIAS, EDIT_PROPAGATE, EDIT_RESTART };

/* One line of the log. Which fields mean what depends on the kind. */
struct record {
	enum edit_kind kind;
	int step;			/* records of one edit share it */
	const char *name, *other, *lane;
	int a, b, c;
	struct grid_plan grid;
	const struct move *move;
	const struct tiling *tiling;
	const char *const *names;	/* b of them */
	struct srcloc loc;
};

/* A log as it was. No record of it is written over: commit. */
struct mark {
	struct record *log;
	int n, done;
};

struct history {
	struct arena arena;		/* the log */
	struct mem *mem;
	const struct graph *base;
	const struct vdevice *device;
	VEC(struct record) log;
	int done;			/* records in force; the rest can be redone */
	int step;
	VEC(struct mark) marks;
	const char *file;		/* of the last record: most come from one file */
	/* what the log makes; next_*: under construction, so that they can be freed */
	struct plan *plan, *next_plan;
	struct graph *graph, *next_graph;	/* NULL: base */
};

void history_new(struct mem *mem, const struct graph *g, const struct vdevice *d, struct history **out)
{
	struct arena a;

	arena_init(&a, mem);
	*out = ARENA_NEW(&a, struct history);
	(*out)->arena = a;
	(*out)->mem = mem;
	(*out)->base = g;
	(*out)->device = d;
	(*out)->plan = plan_new(mem, g, d);
}

void history_free(struct history *h)
{
	struct arena a;

	if (!h)
		return;
	plan_free(h->plan);
	plan_free(h->next_plan);
	graph_free(h->graph);
	graph_free(h->next_graph);
	a = h->arena;
	arena_release(&a);
}

struct plan *history_plan(struct history *h)
{
	return h->plan;
}

static enum err_code apply(struct history *h, struct plan *p, const struct record *r, struct err *e)
{
	int task = NONE, other = NONE;

	switch (r->kind) {
	case EDIT_LANE:
		return plan_lane(p, r->name, r->a, r->b, r->c, r->loc, e);
	case EDIT_APPEND:
		TRY(named_task(&h->arena, p->graph, r->name, r->loc, &task, e));
		return plan_append(p, task, r->other, r->lane, r->a, r->loc, e);
	case EDIT_MOVE:
		TRY(named_task(&h->arena, p->graph, r->name, r->loc, &task, e));
		return plan_move(p, task, r->move, r->loc, e);
	case EDIT_REMOVE:
		TRY(named_task(&h->arena, p->graph, r->name, r->loc, &task, e));
		return plan_remove(p, task, r->loc, e);
	case EDIT_WAIT:
		TRY(named_task(&h->arena, p->graph, r->name, r->loc, &task, e));
		TRY(named_task(&h->arena, p->graph, r->other, r->loc, &other, e));
		return plan_wait(p, task, other, r->a, (enum wait_when)r->b, r->loc, e);
	case EDIT_UNWAIT:
		TRY(named_task(&h->arena, p->graph, r->name, r->loc, &task, e));
		TRY(named_task(&h->arena, p->graph, r->other, r->loc, &other, e));
		return plan_unwait(p, task, other, r->loc, e);
	case EDIT_DROP_WAIT:
		TRY(named_task(&h->arena, p->graph, r->name, r->loc, &task, e));
		TRY(named_task(&h->arena, p->graph, r->other, r->loc, &other, e));
		plan_drop_wait(p, &(struct wait){ .task = task, .on = other, .distance = r->a,
			.when = (enum wait_when)r->b });
		return OK;
	case EDIT_VERSIONS:
		TRY(named_buffer(&h->arena, p->graph, r->name, r->loc, &task, e));
		return plan_versions(p, task, r->a, r->loc, e);
	case EDIT_GRID:
		return plan_grid(p, &r->grid, r->loc, e);
	case EDIT_SPLIT_OFF: case EDIT_SPLIT: case EDIT_ALIAS: case EDIT_PROPAGATE: case EDIT_RESTART:
		break;
	}
	return OK;
}

static bool reshapes(const struct record *r)
{
	return r->kind == EDIT_SPLIT_OFF || r->kind == EDIT_SPLIT || r->kind == EDIT_ALIAS ||
		r->kind == EDIT_PROPAGATE || r->kind == EDIT_RESTART;
}

/* The first of n records in force: the one after the last EDIT_RESTART. Records before it are kept for undo alone. */
static int first_of(const struct record *log, int n)
{
	while (n > 0 && log[n - 1].kind != EDIT_RESTART)
		n--;
	return n;
}

/* What the records so far say of tasks and values. */
struct shapings {
	VEC(struct split_off) split_offs;
	VEC(struct split) splits;
	VEC(struct alias) aliases;
};

static enum err_code read_split_off(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct graph *g = h->base;
	int b;

	TRY(named_buffer(&h->arena, g, r->name, r->loc, &b, e));
	if (x->splits.n)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is split off after a split: split it off first, as "
			"the split divides what was split off, too", r->name);
	if (g->buffers.v[b].node == NONE)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is a carry, whose last step stands where it is "
			"set", r->name);
	for (int i = 0; i < x->split_offs.n; i++)
		if (x->split_offs.v[i].node == g->buffers.v[b].node)
			return err_set(e, ERR_INPUT, r->loc, "'%s' is split off already", r->name);
	VEC_PUSH(&h->arena, &x->split_offs, ((struct split_off){ g->buffers.v[b].node, r->name, r->other, r->loc }));
	return OK;
}

/* A task of the program, or one that is split off; NONE. */
static int split_task(const struct program *p, const struct shapings *x, const char *name)
{
	int t = program_find_task(p, name);

	for (int i = 0; i < x->split_offs.n && t == NONE; i++)
		if (!strcmp(x->split_offs.v[i].name, name))
			t = p->tasks.n + i;
	return t;
}

static enum err_code read_split(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct program *p = h->base->program;
	int *tasks = ARENA_ARRAY(&h->arena, p->tasks.n + x->split_offs.n, int);
	struct split s = { .axis = program_find_axis(p, r->name), .ways = r->a, .tasks = tasks };

	if (s.axis == NONE)
		return err_set(e, ERR_INPUT, r->loc, "program '%s' has no axis '%s'", p->name, r->name);
	for (int i = 0; i < r->b; i++) {
		int t = split_task(p, x, r->names[i]);

		if (t == NONE)
			return err_set(e, ERR_INPUT, r->loc, "program '%s' has no task '%s'", p->name, r->names[i]);
		tasks[s.ntasks++] = t;
	}
	if (!r->b)
		s.ntasks = split_all(p, x->split_offs.v, x->split_offs.n, s.axis, tasks);
	if (!s.ntasks)
		return err_set(e, ERR_INPUT, r->loc, "nothing but loads of '%s' has axis '%s' in its "
			"result: there is nothing to split", p->name, r->name);
	VEC_PUSH(&h->arena, &x->splits, s);
	return OK;
}

static enum err_code read_shaping(struct history *h, const struct record *r, struct shapings *x,
	struct tiling *t, struct err *e)
{
	if (r->kind == EDIT_SPLIT_OFF)
		TRY(read_split_off(h, r, x, e));
	if (r->kind == EDIT_SPLIT)
		TRY(read_split(h, r, x, e));
	if (r->kind == EDIT_ALIAS)
		VEC_PUSH(&h->arena, &x->aliases, ((struct alias){ r->name, r->other, r->loc }));
	for (int a = 0; r->kind == EDIT_PROPAGATE && a < AXES_MAX; a++)
		if (r->tiling->extent[a])
			t->extent[a] = r->tiling->extent[a];
	return OK;
}

/* The graph that the first n records make. *out stays NULL if that is the base and no copy of it is wanted. */
static enum err_code replay_graph(struct history *h, const struct record *log, int n, bool copy,
	struct graph **out, struct err *e)
{
	struct tiling t = h->base->tiling;
	struct shapings x = { 0 };
	bool changed = false;

	for (int i = first_of(log, n); i < n; i++) {
		changed |= reshapes(&log[i]);
		TRY(read_shaping(h, &log[i], &x, &t, e));
	}
	if (!changed && !copy)
		return OK;
	return graph_build(h->mem, h->base->program, &t, &(struct shaping){ .split_offs = x.split_offs.v,
		.nsplit_offs = x.split_offs.n, .splits = x.splits.v, .nsplits = x.splits.n,
		.aliases = x.aliases.v, .naliases = x.aliases.n }, out, e);
}

static void drop_next(struct history *h)
{
	plan_free(h->next_plan);
	graph_free(h->next_graph);
	h->next_plan = NULL;
	h->next_graph = NULL;
}

/* Tell what stands in the way of an edit of the graph, r's failure, or that of the graph if r is
 * NULL, at the edit's line. */
static enum err_code blame(enum err_code code, const struct record *last, const struct record *r, struct err *e)
{
	struct err cause = *e;

	if (!reshapes(last))
		return code;
	if (r && r != last)
		return err_set(e, code, last->loc, "after this, line %d would fail: %s", r->loc.line, cause.msg);
	return err_set(e, code, last->loc, "%s", cause.msg);
}

/* Make the plan of the first n records of a log the present one; on failure nothing changes. */
static enum err_code replay(struct history *h, const struct record *log, int n, struct err *e)
{
	struct arena_mark mark = arena_mark(&h->arena);
	enum err_code code;
	int i = first_of(log, n) - 1;

	drop_next(h);
	code = replay_graph(h, log, n, false, &h->next_graph, e);
	if (!code)
		h->next_plan = plan_new(h->mem, h->next_graph ? h->next_graph : h->base, h->device);
	while (!code && ++i < n)
		code = apply(h, h->next_plan, &log[i], e);
	arena_reset(&h->arena, mark);
	if (code) {
		drop_next(h);
		return blame(code, &log[n - 1], i < first_of(log, n) ? NULL : &log[i], e);
	}
	plan_free(h->plan);
	graph_free(h->graph);
	h->plan = h->next_plan;
	h->graph = h->next_graph;
	h->next_plan = NULL;
	h->next_graph = NULL;
	h->done = n;
	return OK;
}

static const char *keep_text(struct history *h, const char *s)
{
	return s ? arena_strdup(&h->arena, s) : NULL;
}

static const struct move *keep_move(struct history *h, const struct move *m)
{
	struct move *kept = ARENA_NEW(&h->arena, struct move);

	*kept = *m;
	kept->before = keep_text(h, m->before);
	kept->after = keep_text(h, m->after);
	kept->lane = keep_text(h, m->lane);
	kept->seu = keep_text(h, m->seu);
	return kept;
}

static const char *const *keep_names(struct history *h, const char *const *names, int n)
{
	const char **kept = ARENA_ARRAY(&h->arena, n, const char *);

	for (int i = 0; i < n; i++)
		kept[i] = arena_strdup(&h->arena, names[i]);
	return kept;
}

static const struct tiling *keep_tiling(struct history *h, const struct tiling *t)
{
	struct tiling *kept = ARENA_NEW(&h->arena, struct tiling);

	*kept = *t;
	return kept;
}

/* What the record is made of does not live as long as the log. */
static struct record keep(struct history *h, struct record r)
{
	r.name = keep_text(h, r.name);
	r.other = keep_text(h, r.other);
	r.lane = keep_text(h, r.lane);
	if (r.move)
		r.move = keep_move(h, r.move);
	if (r.names)
		r.names = keep_names(h, r.names, r.b);
	if (r.tiling)
		r.tiling = keep_tiling(h, r.tiling);
	if (r.loc.file && h->file && strcmp(r.loc.file, h->file) == 0)
		r.loc.file = h->file;
	else if (r.loc.file)
		r.loc.file = h->file = arena_strdup(&h->arena, r.loc.file);
	return r;
}

/* Append the records of one edit to the log, forgetting what was undone, and bring
 * the plan up to date. A single record that does not reshape the graph is applied to
 * the plan at hand; all else is replayed. The old log stays until the edit is good. */
static enum err_code commit(struct history *h, struct record *r, int n, struct err *e)
{
	bool simple = n == 1 && !reshapes(r), copy = h->done < h->log.n;
	int total = h->done + n, cap = h->log.cap;
	struct record *log = h->log.v;
	enum err_code code;

	if (n == 0)
		return OK;
	if (copy || total > cap) {
		cap = total * 2;
		log = ARENA_ARRAY(&h->arena, cap, struct record);
		if (h->done)
			memcpy(log, h->log.v, (size_t)h->done * sizeof(*log));
	}
	for (int i = 0; i < n; i++) {
		log[h->done + i] = keep(h, r[i]);
		log[h->done + i].step = h->step + 1;
	}
	code = simple ? apply(h, h->plan, &log[h->done], e) : replay(h, log, total, e);
	if (code)
		return code;
	h->log.v = log;
	h->log.cap = cap;
	h->log.n = h->done = total;
	h->step++;
	return OK;
}

enum err_code history_lane(struct history *h, const char *name, int warps, int registers, int replicas,
	struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_LANE, .name = name, .a = warps, .b = registers, .c = replicas, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_append(struct history *h, const char *task, const char *seu, const char *lane,
	int at, struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_APPEND, .name = task, .other = seu, .lane = lane, .a = at, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_remove(struct history *h, const char *task, struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_REMOVE, .name = task, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_wait(struct history *h, const char *task, const struct wait_on *on, int n,
	struct srcloc loc, struct err *e)
{
	struct record *r = ARENA_ARRAY(&h->arena, n, struct record);

	for (int i = 0; i < n; i++)
		r[i] = (struct record){ .kind = EDIT_WAIT, .name = task, .other = on[i].task,
			.a = on[i].distance, .b = on[i].when, .loc = loc };
	return commit(h, r, n, e);
}

enum err_code history_unwait(struct history *h, const char *task, const char *on, struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_UNWAIT, .name = task, .other = on, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_versions(struct history *h, const struct versions_of *v, int n, struct srcloc loc, struct err *e)
{
	struct record *r = ARENA_ARRAY(&h->arena, n, struct record);

	for (int i = 0; i < n; i++)
		r[i] = (struct record){ .kind = EDIT_VERSIONS, .name = v[i].buffer, .a = v[i].versions, .loc = loc };
	return commit(h, r, n, e);
}

enum err_code history_grid(struct history *h, const struct grid_plan *g, struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_GRID, .grid = *g, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_split_off(struct history *h, const char *value, const char *task, struct srcloc loc,
	struct err *e)
{
	struct record r = { .kind = EDIT_SPLIT_OFF, .name = value, .other = task, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_alias(struct history *h, const struct alias *v, int n, struct srcloc loc, struct err *e)
{
	struct record *r = ARENA_ARRAY(&h->arena, n, struct record);

	for (int i = 0; i < n; i++)
		r[i] = (struct record){ .kind = EDIT_ALIAS, .name = v[i].what, .other = v[i].of, .loc = loc };
	return commit(h, r, n, e);
}

enum err_code history_split(struct history *h, const char *axis, int ways,
	const char *const *tasks, int ntasks, struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_SPLIT, .name = axis, .a = ways, .b = ntasks, .names = tasks, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_propagate(struct history *h, const struct tiling *t, struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_PROPAGATE, .tiling = t, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_fill_waits(struct history *h, const struct stop *stop, struct srcloc loc,
	int *added, struct err *e)
{
	const struct graph *g = h->plan->graph;
	struct record *r;
	int had = h->plan->waits.n;
	enum err_code code;

	drop_next(h);
	plan_copy(h->mem, h->plan, &h->next_plan);
	code = plan_fill_waits(h->next_plan, stop, added, e);
	if (code) {
		drop_next(h);
		return code;
	}
	r = ARENA_ARRAY(&h->arena, *added, struct record);
	for (int i = 0; i < *added; i++) {
		const struct wait *w = &h->next_plan->waits.v[had + i];

		r[i] = (struct record){ .kind = EDIT_WAIT, .name = g->tasks.v[w->task].name,
			.other = g->tasks.v[w->on].name, .a = w->distance, .b = w->when, .loc = loc };
	}
	return commit(h, r, *added, e);
}

/* ---- moves --------------------------------------------------------------------------------- */

/* An edit that is put together on next_plan. */
struct change {
	VEC(struct record) records;
	VEC(int) tasks;
};

static void add_record(struct history *h, struct change *c, struct record r)
{
	VEC_PUSH(&h->arena, &c->records, r);
}

/* The sTask to come before or after: of a split one, the slice of that number. */
static const char *beside_of(struct history *h, const char *name, const struct stask *s)
{
	const struct graph *g = h->plan->graph;
	const char *slice;

	if (!name || s->slices == 1 || graph_find_task(g, name) != NONE)
		return name;
	slice = arena_strf(&h->arena, "%s.%d", name, s->slice);
	return graph_find_task(g, slice) == NONE ? name : slice;
}

/* The lane of what an sTask is inserted beside, unless one is named. */
static const char *lane_beside(const struct history *h, const struct move *m)
{
	const struct plan *p = h->next_plan;
	const char *name = m->before ? m->before : m->after;
	int t = name ? graph_find_task(p->graph, name) : NONE;
	int i = t == NONE ? NONE : plan_entry_of(p, t);

	return m->lane || i == NONE ? m->lane : p->lanes.v[p->entries.v[i].lane].name;
}

/* Records that append one sTask at its place. */
static enum err_code insert_one(struct history *h, struct change *c, const struct stask *s,
	const struct move *m, struct srcloc loc, struct err *e)
{
	struct move *place = ARENA_NEW(&h->arena, struct move);

	if (plan_entry_of(h->next_plan, graph_find_task(h->plan->graph, s->name)) != NONE)
		return err_set(e, ERR_INPUT, loc, "'%s' is in the plan already: plan:move changes it", s->name);
	add_record(h, c, (struct record){ .kind = EDIT_APPEND, .name = s->name, .other = m->seu,
		.lane = lane_beside(h, m), .a = m->set_at ? m->at : 0, .loc = loc });
	*place = (struct move){ .before = m->before, .after = m->after };
	if (m->before || m->after)
		add_record(h, c, (struct record){ .kind = EDIT_MOVE, .name = s->name, .move = place, .loc = loc });
	return OK;
}

/* Note what is done to one sTask, and do it to next_plan. */
static enum err_code change_one(struct history *h, struct change *c, int task, const struct move *m,
	bool insert, struct srcloc loc, struct err *e)
{
	const struct stask *s = &h->plan->graph->tasks.v[task];
	struct move *own = ARENA_NEW(&h->arena, struct move);
	int done = c->records.n;

	*own = *m;
	own->before = beside_of(h, m->before, s);
	own->after = beside_of(h, m->after, s);
	if (insert)
		TRY(insert_one(h, c, s, own, loc, e));
	else
		add_record(h, c, (struct record){ .kind = EDIT_MOVE, .name = s->name, .move = own, .loc = loc });
	for (; done < c->records.n; done++)
		TRY(apply(h, h->next_plan, &c->records.v[done], e));
	return OK;
}

/* The sTasks that a name means. */
static enum err_code add_named(struct history *h, struct change *c, const char *name, struct srcloc loc, struct err *e)
{
	const struct graph *g = h->plan->graph;
	int t = graph_find_task(g, name), slices = 1;

	if (t == NONE)
		t = graph_find_task(g, arena_strf(&h->arena, "%s.0", name));
	if (t == NONE)
		return named_task(&h->arena, g, name, loc, &t, e);
	if (strcmp(g->tasks.v[t].name, name) != 0)
		slices = g->tasks.v[t].slices;
	for (int i = 0; i < slices; i++) {
		if (slices > 1)
			t = graph_find_task(g, arena_strf(&h->arena, "%s.%d", name, i));
		VEC_PUSH(&h->arena, &c->tasks, t);
	}
	return OK;
}

/* Record the waits and versions that differ between the present plan and next_plan. */
static void add_repairs(struct history *h, struct change *c, struct srcloc loc)
{
	const struct plan *was = h->plan, *now = h->next_plan;
	const struct graph *g = now->graph;

	for (int i = 0; i < 2; i++) {
		const struct plan *of = i ? now : was;

		for (int k = 0; k < of->waits.n; k++) {
			const struct wait *w = &of->waits.v[k];

			if (plan_find_wait(i ? was : now, w) == NONE)
				add_record(h, c, (struct record){ .kind = i ? EDIT_WAIT : EDIT_DROP_WAIT,
					.name = g->tasks.v[w->task].name, .other = g->tasks.v[w->on].name,
					.a = w->distance, .b = w->when, .loc = loc });
		}
	}
	for (int b = 0; b < g->buffers.n; b++)
		if (was->versions[b] != now->versions[b])
			add_record(h, c, (struct record){ .kind = EDIT_VERSIONS,
				.name = g->buffers.v[b].name, .a = now->versions[b], .loc = loc });
}

/* Put the change together; the last of several comes nearest to what all come after. */
static enum err_code make_change(struct history *h, struct change *c, const char *const *tasks,
	int n, const struct move *m, bool insert, struct srcloc loc, struct err *e)
{
	for (int i = 0; i < n; i++)
		TRY(add_named(h, c, tasks[i], loc, e));
	for (int i = 0; i < c->tasks.n; i++)
		TRY(change_one(h, c, c->tasks.v[m->after ? c->tasks.n - 1 - i : i], m, insert, loc, e));
	return OK;
}

static enum err_code change_entries(struct history *h, const char *const *tasks, int n, const struct move *m,
	bool insert, bool repair_waits, const struct stop *stop, struct srcloc loc, struct err *e)
{
	struct change c = { 0 };
	enum err_code code;

	drop_next(h);
	plan_copy(h->mem, h->plan, &h->next_plan);
	code = make_change(h, &c, tasks, n, m, insert, loc, e);
	if (!code && repair_waits)
		code = plan_repair_waits(h->next_plan, h->plan, c.tasks.v, c.tasks.n, stop, e);
	if (code) {
		drop_next(h);
		return code;
	}
	add_repairs(h, &c, loc);
	return commit(h, c.records.v, c.records.n, e);
}

enum err_code history_move(struct history *h, const char *const *tasks, int n, const struct move *m, bool repair_waits,
	const struct stop *stop, struct srcloc loc, struct err *e)
{
	return change_entries(h, tasks, n, m, false, repair_waits, stop, loc, e);
}

enum err_code history_insert(struct history *h, const char *const *tasks, int n, const struct move *m,
	bool repair_waits, const struct stop *stop, struct srcloc loc, struct err *e)
{
	return change_entries(h, tasks, n, m, true, repair_waits, stop, loc, e);
}

enum err_code history_become(struct history *h, const struct history *other, struct srcloc loc, struct err *e)
{
	int from = first_of(other->log.v, other->done);
	struct change c = { 0 };

	if (h->base->program != other->base->program || h->device != other->device)
		return err_set(e, ERR_INPUT, loc, "the plans are of different programs or devices");
	add_record(h, &c, (struct record){ .kind = EDIT_RESTART });
	add_record(h, &c, (struct record){ .kind = EDIT_PROPAGATE, .tiling = &other->base->tiling });
	for (int i = from; i < other->done; i++)
		add_record(h, &c, other->log.v[i]);
	for (int i = 0; i < c.records.n; i++)
		c.records.v[i].loc = loc;
	return commit(h, c.records.v, c.records.n, e);
}

bool history_undo(struct history *h)
{
	int n = h->done;
	struct err e;

	if (!n)
		return false;
	while (n > 0 && h->log.v[n - 1].step == h->log.v[h->done - 1].step)
		n--;
	if (replay(h, h->log.v, n, &e))
		BUG("a log that was good cannot be replayed: %s", e.msg);
	return true;
}

bool history_redo(struct history *h)
{
	int n = h->done;
	struct err e;

	if (n == h->log.n)
		return false;
	while (n < h->log.n && h->log.v[n].step == h->log.v[h->done].step)
		n++;
	if (replay(h, h->log.v, n, &e))
		BUG("a log that was good cannot be replayed: %s", e.msg);
	return true;
}

void history_join(struct history *h, int n)
{
	int i = h->done, last = i ? h->log.v[i - 1].step : 0;

	for (int step = last; i > 0; i--) {
		if (h->log.v[i - 1].step != step && --n == 0)
			break;
		step = h->log.v[i - 1].step;
		h->log.v[i - 1].step = last;
	}
}

int history_mark(struct history *h)
{
	VEC_PUSH(&h->arena, &h->marks, ((struct mark){ h->log.v, h->log.n, h->done }));
	return h->marks.n - 1;
}

void history_return(struct history *h, int mark)
{
	struct mark m = h->marks.v[mark];
	struct err e;

	if (replay(h, m.log, m.done, &e))
		BUG("a log that was good cannot be replayed: %s", e.msg);
	h->log.v = m.log;
	h->log.n = h->log.cap = m.n;	/* of which other marks may have more: the next edit copies it */
}

bool history_is_at(const struct history *h, int mark)
{
	const struct mark *m = &h->marks.v[mark];

	return h->done == m->done && (!m->done || h->log.v[m->done - 1].step == m->log[m->done - 1].step);
}

int history_edits(const struct history *h)
{
	int n = 0;

	for (int i = 0; i < h->done; i++)
		n += i == 0 || h->log.v[i].step != h->log.v[i - 1].step;
	return n;
}

void history_copy(struct history *h, struct history **out)
{
	struct history *c;
	struct err e;

	history_new(h->mem, h->base, h->device, out);
	c = *out;
	c->log.v = ARENA_ARRAY(&c->arena, h->done, struct record);
	for (int i = 0; i < h->done; i++)
		c->log.v[i] = keep(c, h->log.v[i]);
	c->log.n = c->log.cap = h->done;
	c->step = h->step;
	if (h->done && replay(c, c->log.v, h->done, &e))
		BUG("a log that was good cannot be replayed: %s", e.msg);
}

enum err_code history_snapshot(struct history *h, struct graph **g, struct plan **p, struct err *e)
{
	struct arena_mark mark = arena_mark(&h->arena);
	enum err_code code = replay_graph(h, h->log.v, h->done, true, g, e);

	arena_reset(&h->arena, mark);
	if (code)
		return code;
	plan_copy(h->mem, h->plan, p);
	(*p)->graph = *g;
	return OK;
}

/* Print the records of one kind that are in force. Statements of the graph stand in the order of kinds, not of edits, as
 * a split_off comes before any split. */
static void print_shapings(const struct history *h, enum edit_kind kind, struct buf *out)
{
	for (int i = first_of(h->log.v, h->done); i < h->done; i++) {
		const struct record *r = &h->log.v[i];

		if (r->kind != kind)
			continue;
		if (kind == EDIT_SPLIT_OFF)
			buf_printf(out, "plan:split_off(\"%s\", \"%s\")\n", r->name, r->other);
		if (kind == EDIT_ALIAS)
			script_alias(r->name, r->other, out);
		if (kind != EDIT_SPLIT)
			continue;
		buf_printf(out, "plan:split(\"%s\", %d", r->name, r->a);
		for (int k = 0; k < r->b; k++)
			buf_printf(out, "%s\"%s\"", k ? ", " : ", {", r->names[k]);
		buf_puts(out, r->b ? "})\n" : ")\n");
	}
}

void history_script(struct history *h, struct buf *out)
{
	print_shapings(h, EDIT_SPLIT_OFF, out);
	print_shapings(h, EDIT_SPLIT, out);
	print_shapings(h, EDIT_ALIAS, out);
	plan_script(h->plan, out);
}
