#include "plan/history.h"

#include <string.h>

#include "plan/check.h"

enum edit_kind { EDIT_LANE, EDIT_APPEND, EDIT_REMOVE, EDIT_WAIT, EDIT_UNWAIT, EDIT_VERSIONS,
	EDIT_GRID, EDIT_CUT, EDIT_SPLIT, EDIT_PLACE, EDIT_PROPAGATE };

/* One line of the log. Which fields mean what depends on the kind. */
struct record {
	enum edit_kind kind;
	int step;			/* records of one edit share it */
	const char *name, *other, *lane;
	int a, b, c;
	struct grid_plan grid;
	const struct tiling *tiling;
	const char *const *names;
	struct srcloc loc;
};

struct history {
	struct arena arena;		/* the log */
	struct mem *mem;
	const struct graph *base;
	const struct vdevice *device;
	VEC(struct record) log;
	int done;			/* records in force; the rest can be redone */
	int step;
	const char *file;		/* of the last record: most come from one file */
	/* what the log makes; next_*: under construction, so that they can be freed */
	struct plan *plan, *next_plan;
	struct graph *graph, *next_graph;	/* NULL: base */
};

void history_new(struct mem *mem, const struct graph *g, const struct vdevice *d,
	struct history **out)
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

static enum err_code unknown(const char *what, const char *name, const char *const *names, int n,
	struct srcloc loc, struct err *e)
{
	const char *near = nearest_name(name, names, n);

	return err_set(e, ERR_INPUT, loc, "there is no %s '%s'%s%s%s", what, name,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static enum err_code find_task(struct history *h, const struct plan *p, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	const struct graph *g = p->graph;
	struct arena_mark mark = arena_mark(&h->arena);
	const char **names;
	enum err_code code;

	*out = graph_find_task(g, name);
	if (*out != NONE)
		return OK;
	if (graph_find_task(g, arena_strf(&h->arena, "%s.0", name)) != NONE)
		return err_set(e, ERR_INPUT, loc, "'%s' is split: name a part, as in '%s.0'", name,
			name);
	names = ARENA_ARRAY(&h->arena, g->tasks.n, const char *);
	for (int i = 0; i < g->tasks.n; i++)
		names[i] = g->tasks.v[i].name;
	code = unknown("sTask", name, names, g->tasks.n, loc, e);
	arena_reset(&h->arena, mark);
	return code;
}

static enum err_code find_buffer(struct history *h, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	struct arena_mark mark = arena_mark(&h->arena);
	const char **names;
	enum err_code code;

	*out = graph_find_buffer(g, name);
	if (*out != NONE)
		return OK;
	names = ARENA_ARRAY(&h->arena, g->buffers.n, const char *);
	for (int i = 0; i < g->buffers.n; i++)
		names[i] = g->buffers.v[i].name;
	code = unknown("buffer", name, names, g->buffers.n, loc, e);
	arena_reset(&h->arena, mark);
	return code;
}

static enum err_code apply(struct history *h, struct plan *p, const struct record *r,
	struct err *e)
{
	int task = NONE, other = NONE;

	switch (r->kind) {
	case EDIT_LANE:
		return plan_lane(p, r->name, r->a, r->b, r->c, r->loc, e);
	case EDIT_APPEND:
		TRY(find_task(h, p, r->name, r->loc, &task, e));
		return plan_append(p, task, r->other, r->lane, r->a, r->loc, e);
	case EDIT_REMOVE:
		TRY(find_task(h, p, r->name, r->loc, &task, e));
		return plan_remove(p, task, r->loc, e);
	case EDIT_WAIT:
		TRY(find_task(h, p, r->name, r->loc, &task, e));
		TRY(find_task(h, p, r->other, r->loc, &other, e));
		return plan_wait(p, task, other, r->a, (enum wait_when)r->b, r->loc, e);
	case EDIT_UNWAIT:
		TRY(find_task(h, p, r->name, r->loc, &task, e));
		TRY(find_task(h, p, r->other, r->loc, &other, e));
		return plan_unwait(p, task, other, r->loc, e);
	case EDIT_VERSIONS:
		TRY(find_buffer(h, p->graph, r->name, r->loc, &task, e));
		return plan_versions(p, task, r->a, r->loc, e);
	case EDIT_GRID:
		return plan_grid(p, &r->grid, r->loc, e);
	case EDIT_CUT: case EDIT_SPLIT: case EDIT_PLACE: case EDIT_PROPAGATE:
		break;
	}
	return OK;
}

static bool reshapes(const struct record *r)
{
	return r->kind == EDIT_CUT || r->kind == EDIT_SPLIT || r->kind == EDIT_PLACE ||
		r->kind == EDIT_PROPAGATE;
}

/* What the records so far say of tasks and values. */
struct shapings {
	VEC(struct cutting) cuts;
	VEC(struct split) splits;
	VEC(struct placing) places;
};

static enum err_code read_cut(struct history *h, const struct record *r, struct shapings *x,
	struct err *e)
{
	const struct graph *g = h->base;
	int b;

	TRY(find_buffer(h, g, r->name, r->loc, &b, e));
	if (x->splits.n)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is cut off behind a split: cut first, as the "
			"split shares out what was cut off, too", r->name);
	if (g->buffers.v[b].node == NONE)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is a carry, whose last step stands where it is "
			"set", r->name);
	for (int i = 0; i < x->cuts.n; i++)
		if (x->cuts.v[i].node == g->buffers.v[b].node)
			return err_set(e, ERR_INPUT, r->loc, "'%s' is cut off already", r->name);
	VEC_PUSH(&h->arena, &x->cuts, ((struct cutting){ g->buffers.v[b].node, r->name, r->other,
		r->loc }));
	return OK;
}

/* Tasks that a split without a list means: all that have the axis in their result, but loads.
 * What is cut off has it if its value does. */
static int default_tasks(const struct program *p, const struct shapings *x, int axis, int *out)
{
	int n = 0;

	for (int t = 0; t < p->tasks.n; t++) {
		bool has = false;

		if (p->tasks.v[t].kind == TASK_LOAD)
			continue;
		for (int i = 0; i < p->tasks.v[t].nodes.n; i++)
			has |= node_has_axis(&p->nodes.v[p->tasks.v[t].nodes.v[i]], axis);
		if (has)
			out[n++] = t;
	}
	for (int i = 0; i < x->cuts.n; i++)
		if (node_has_axis(&p->nodes.v[x->cuts.v[i].node], axis))
			out[n++] = p->tasks.n + i;
	return n;
}

/* A task of the program, or one that is cut off; NONE. */
static int split_task(const struct program *p, const struct shapings *x, const char *name)
{
	int t = program_find_task(p, name);

	for (int i = 0; i < x->cuts.n && t == NONE; i++)
		if (!strcmp(x->cuts.v[i].name, name))
			t = p->tasks.n + i;
	return t;
}

static enum err_code read_split(struct history *h, const struct record *r, struct shapings *x,
	struct err *e)
{
	const struct program *p = h->base->program;
	int *tasks = ARENA_ARRAY(&h->arena, p->tasks.n + x->cuts.n, int);
	struct split s = { .axis = program_find_axis(p, r->name), .ways = r->a, .tasks = tasks };

	if (s.axis == NONE)
		return err_set(e, ERR_INPUT, r->loc, "program '%s' has no axis '%s'", p->name,
			r->name);
	for (int i = 0; i < r->b; i++) {
		int t = split_task(p, x, r->names[i]);

		if (t == NONE)
			return err_set(e, ERR_INPUT, r->loc, "program '%s' has no task '%s'",
				p->name, r->names[i]);
		tasks[s.ntasks++] = t;
	}
	if (!r->b)
		s.ntasks = default_tasks(p, x, s.axis, tasks);
	if (!s.ntasks)
		return err_set(e, ERR_INPUT, r->loc, "nothing but loads of '%s' has axis '%s' in its "
			"result: there is nothing to split", p->name, r->name);
	VEC_PUSH(&h->arena, &x->splits, s);
	return OK;
}

static enum err_code read_shaping(struct history *h, const struct record *r, struct shapings *x,
	struct tiling *t, struct err *e)
{
	if (r->kind == EDIT_CUT)
		TRY(read_cut(h, r, x, e));
	if (r->kind == EDIT_SPLIT)
		TRY(read_split(h, r, x, e));
	if (r->kind == EDIT_PLACE)
		VEC_PUSH(&h->arena, &x->places, ((struct placing){ r->name, r->other, r->loc }));
	for (int a = 0; r->kind == EDIT_PROPAGATE && a < AXES_MAX; a++)
		if (r->tiling->extent[a])
			t->extent[a] = r->tiling->extent[a];
	return OK;
}

/* The graph that the first n records make. *out stays NULL if that is the base and
 * no copy of it is wanted. */
static enum err_code replay_graph(struct history *h, const struct record *log, int n, bool copy,
	struct graph **out, struct err *e)
{
	struct tiling t = h->base->tiling;
	struct shapings x = { 0 };
	bool changed = false;

	for (int i = 0; i < n; i++) {
		changed |= reshapes(&log[i]);
		TRY(read_shaping(h, &log[i], &x, &t, e));
	}
	if (!changed && !copy)
		return OK;
	return graph_build(h->mem, h->base->program, &t, &(struct shaping){ .cuts = x.cuts.v,
		.ncuts = x.cuts.n, .splits = x.splits.v, .nsplits = x.splits.n,
		.places = x.places.v, .nplaces = x.places.n }, out, e);
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
static enum err_code blame(enum err_code code, const struct record *last, const struct record *r,
	struct err *e)
{
	struct err cause = *e;

	if (!reshapes(last))
		return code;
	if (r && r != last)
		return err_set(e, code, last->loc, "after this, line %d would fail: %s", r->loc.line,
			cause.msg);
	return err_set(e, code, last->loc, "%s", cause.msg);
}

/* Make the plan of the first n records of a log the present one; on failure nothing
 * changes. */
static enum err_code replay(struct history *h, const struct record *log, int n, struct err *e)
{
	struct arena_mark mark = arena_mark(&h->arena);
	enum err_code code;
	int i = -1;

	drop_next(h);
	code = replay_graph(h, log, n, false, &h->next_graph, e);
	if (!code)
		h->next_plan = plan_new(h->mem, h->next_graph ? h->next_graph : h->base, h->device);
	while (!code && ++i < n)
		code = apply(h, h->next_plan, &log[i], e);
	arena_reset(&h->arena, mark);
	if (code) {
		drop_next(h);
		return blame(code, &log[n - 1], i < 0 ? NULL : &log[i], e);
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

/* The user's strings do not live as long as the log. */
static struct record keep(struct history *h, struct record r)
{
	if (r.name)
		r.name = arena_strdup(&h->arena, r.name);
	if (r.other)
		r.other = arena_strdup(&h->arena, r.other);
	if (r.lane)
		r.lane = arena_strdup(&h->arena, r.lane);
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

enum err_code history_lane(struct history *h, const char *name, int warps, int registers, int turns,
	struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_LANE, .name = name, .a = warps, .b = registers,
		.c = turns, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_append(struct history *h, const char *task, const char *seu, const char *lane,
	int at, struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_APPEND, .name = task, .other = seu, .lane = lane,
		.a = at, .loc = loc };

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

enum err_code history_unwait(struct history *h, const char *task, const char *on,
	struct srcloc loc, struct err *e)
{
	struct record r = { .kind = EDIT_UNWAIT, .name = task, .other = on, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_versions(struct history *h, const struct versions_of *v, int n,
	struct srcloc loc, struct err *e)
{
	struct record *r = ARENA_ARRAY(&h->arena, n, struct record);

	for (int i = 0; i < n; i++)
		r[i] = (struct record){ .kind = EDIT_VERSIONS, .name = v[i].buffer,
			.a = v[i].versions, .loc = loc };
	return commit(h, r, n, e);
}

enum err_code history_grid(struct history *h, const struct grid_plan *g, struct srcloc loc,
	struct err *e)
{
	struct record r = { .kind = EDIT_GRID, .grid = *g, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_cut(struct history *h, const char *value, const char *task, struct srcloc loc,
	struct err *e)
{
	struct record r = { .kind = EDIT_CUT, .name = value, .other = task, .loc = loc };

	return commit(h, &r, 1, e);
}

enum err_code history_place(struct history *h, const struct placing *v, int n, struct srcloc loc,
	struct err *e)
{
	struct record *r = ARENA_ARRAY(&h->arena, n, struct record);

	for (int i = 0; i < n; i++)
		r[i] = (struct record){ .kind = EDIT_PLACE, .name = v[i].what, .other = v[i].of,
			.loc = loc };
	return commit(h, r, n, e);
}

enum err_code history_split(struct history *h, const char *axis, int ways,
	const char *const *tasks, int ntasks, struct srcloc loc, struct err *e)
{
	const char **names = ARENA_ARRAY(&h->arena, ntasks, const char *);
	struct record r = { .kind = EDIT_SPLIT, .name = axis, .a = ways, .b = ntasks,
		.names = names, .loc = loc };

	for (int i = 0; i < ntasks; i++)
		names[i] = arena_strdup(&h->arena, tasks[i]);
	return commit(h, &r, 1, e);
}

enum err_code history_propagate(struct history *h, const struct tiling *t, struct srcloc loc,
	struct err *e)
{
	struct tiling *kept = ARENA_NEW(&h->arena, struct tiling);
	struct record r = { .kind = EDIT_PROPAGATE, .tiling = kept, .loc = loc };

	*kept = *t;
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
			.other = g->tasks.v[w->on].name, .a = w->distance, .b = w->when,
			.loc = loc };
	}
	return commit(h, r, *added, e);
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

int history_edits(const struct history *h)
{
	int n = 0;

	for (int i = 0; i < h->done; i++)
		n += i == 0 || h->log.v[i].step != h->log.v[i - 1].step;
	return n;
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

static void print_split(const struct record *r, struct buf *out)
{
	buf_printf(out, "plan:split(\"%s\", %d", r->name, r->a);
	for (int i = 0; i < r->b; i++)
		buf_printf(out, "%s\"%s\"", i ? ", " : ", {", r->names[i]);
	buf_puts(out, r->b ? "})\n" : ")\n");
}

static void print_cuts(const struct history *h, struct buf *out)
{
	for (int i = 0; i < h->done; i++)
		if (h->log.v[i].kind == EDIT_CUT)
			buf_printf(out, "plan:cut(\"%s\", \"%s\")\n", h->log.v[i].name,
				h->log.v[i].other);
}

static void print_places(const struct history *h, struct buf *out)
{
	for (int i = 0; i < h->done; i++)
		if (h->log.v[i].kind == EDIT_PLACE)
			buf_printf(out, script_is_key(h->log.v[i].name) ? "plan:place{%s=\"%s\"}\n" :
				"plan:place{[\"%s\"]=\"%s\"}\n", h->log.v[i].name, h->log.v[i].other);
}

void history_script(struct history *h, struct buf *out)
{
	print_cuts(h, out);
	for (int i = 0; i < h->done; i++)
		if (h->log.v[i].kind == EDIT_SPLIT)
			print_split(&h->log.v[i], out);
	print_places(h, out);
	plan_script(h->plan, out);
}
