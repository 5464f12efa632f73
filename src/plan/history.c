/* The log of a history: replaying it, undoing and redoing edits, marks, copies, and the log as a script. */
#include "plan/record.h"

#include <string.h>

#include "plan/names.h"

void history_new(struct mem *mem, const struct graph *g, const struct vdevice *d, struct history **out)
{
	*out = ARENA_OWNER(mem, struct history);
	(*out)->mem = mem;
	(*out)->base = g;
	(*out)->device = d;
	(*out)->plan = plan_new(mem, g, d);
}

static void set_made_at(struct plan *p, struct srcloc loc)
{
	p->made_at = p->versions_loc = p->grid_loc = p->launch_loc = loc;
}

void history_made_at(struct history *h, struct srcloc loc)
{
	h->made_at = (struct srcloc){ loc.file ? arena_strdup(&h->arena, loc.file) : NULL, loc.line };
	set_made_at(h->plan, h->made_at);
}

void history_free(struct history *h)
{
	if (!h)
		return;
	plan_free(h->plan);
	plan_free(h->next_plan);
	graph_free(h->graph);
	graph_free(h->next_graph);
	arena_release(&h->arena);
}

const struct program *history_program(const struct history *h)
{
	return h->base->program;
}

struct plan *history_plan(struct history *h)
{
	return h->plan;
}

static bool reshapes_graph(const struct record *r)
{
	return r->kind >= EDIT_WINDOW || (r->kind == EDIT_GRID && r->a);
}

/* Do something to a plan for each slice that a record's name means. */
typedef enum err_code (*task_edit)(struct history *h, struct plan *p, int task, const struct record *r, struct err *e);

const char *matching_slice(struct history *h, const struct graph *g, const char *name, const struct stask *s, bool last)
{
	int first = name ? graph_find_task(g, name_of_slice(&h->arena, name, 0)) : NONE;
	int n = first == NONE ? 1 : g->tasks.v[first].slices;

	if (first == NONE)
		return name;
	return g->tasks.v[first + (s->slices == n ? s->slice : last ? n - 1 : 0)].name;
}

static enum err_code append_one(struct history *h, struct plan *p, int task, const struct record *r, struct err *e)
{
	(void)h;
	TRY(plan_check_by_rows(p, task, r->b, r->loc, e));
	TRY(plan_append(p, task, r->other, r->lane, r->a, r->loc, e));
	p->entries.v[p->entries.n - 1].by_rows = r->b;
	return OK;
}

static enum err_code move_one(struct history *h, struct plan *p, int task, const struct record *r, struct err *e)
{
	struct move m = *r->move;

	m.before = matching_slice(h, p->graph, m.before, &p->graph->tasks.v[task], false);
	m.after = matching_slice(h, p->graph, m.after, &p->graph->tasks.v[task], true);
	return plan_move(p, task, &m, r->loc, e);
}

/* To the n sTasks from the first one on; where each comes after another one, backwards, so that they keep their order. */
static enum err_code edit_each(struct history *h, struct plan *p, int first, int n, task_edit edit,
	const struct record *r, struct err *e)
{
	bool back = r->move && r->move->after;

	for (int i = 0; i < n; i++)
		TRY(edit(h, p, first + (back ? n - 1 - i : i), r, e));
	return OK;
}

static bool depends(const struct graph *g, int task, int on)
{
	int i = g->first_in[task];

	while (i != NONE && g->edges.v[i].from != on)
		i = g->next_in.v[i];
	return i != NONE;
}

/* A wait between split tasks by the names of all their slices: each slice waits for those that it depends on; if there
 * are none, for the one with its number, or for all if their numbers differ. */
static bool slice_waits(const struct graph *g, int task, int on, int first_on, int n_on)
{
	const struct stask *s = &g->tasks.v[task];

	for (int i = 0; i < n_on; i++)
		if (depends(g, task, first_on + i))
			return depends(g, task, on);
	return s->slices != n_on || s->slice == g->tasks.v[on].slice;
}

static enum err_code add_wait(struct plan *p, int task, int on, const struct record *r, struct err *e)
{
	struct wait w = { .task = task, .on = on, .distance = r->a, .when = (enum wait_when)r->b };

	TRY(plan_wait(p, task, on, r->a, w.when, r->loc, e));
	p->waits.v[plan_find_wait(p, &w)].added = r->c;
	return OK;
}

static enum err_code apply_wait(struct history *h, struct plan *p, const struct record *r, struct err *e)
{
	const struct graph *g = p->graph;
	int task, ntasks, on, non, had = p->waits.n;

	TRY(named_tasks(&h->arena, g, r->name, r->loc, &task, &ntasks, e));
	TRY(named_tasks(&h->arena, g, r->other, r->loc, &on, &non, e));
	for (int i = task; i < task + ntasks; i++)
		for (int k = on; k < on + non; k++) {
			struct wait w = { .task = i, .on = k, .distance = r->a, .when = (enum wait_when)r->b };
			bool any = false;

			for (int x = 0; x < p->waits.n; x++)
				any |= p->waits.v[x].task == i && p->waits.v[x].on == k;
			if (r->kind == EDIT_DROP_WAIT)
				plan_drop_wait(p, &w);
			else if (r->kind == EDIT_UNWAIT && (any || ntasks * non == 1))
				TRY(plan_unwait(p, i, k, r->loc, e));
			else if (r->kind == EDIT_WAIT &&
				 (ntasks == 1 || non == 1 || slice_waits(g, i, k, on, non)))
				TRY(add_wait(p, i, k, r, e));
		}
	if (r->kind == EDIT_UNWAIT && p->waits.n == had)
		return err_set(e, ERR_INPUT, r->loc, "'%s' does not wait for '%s'", r->name, r->other);
	return OK;
}

/* Of a buffer, or of all slices of a split one. */
static enum err_code apply_versions(struct history *h, struct plan *p, const struct record *r, struct err *e)
{
	const struct graph *g = p->graph;
	int buffer = graph_find_buffer(g, name_of_slice(&h->arena, r->name, 0)), n;

	if (buffer == NONE) {
		TRY(named_buffer(&h->arena, g, r->name, r->loc, &buffer, e));
		return plan_versions(p, buffer, r->a, r->loc, e);
	}
	n = g->buffers.v[buffer].slices;
	for (int i = 0; i < n; i++) {
		TRY(named_buffer(&h->arena, g, name_of_slice(&h->arena, r->name, i), r->loc, &buffer, e));
		TRY(plan_versions(p, buffer, r->a, r->loc, e));
	}
	return OK;
}

/* Those slices that are in the plan; it is a mistake if none is. */
static enum err_code apply_remove(struct history *h, struct plan *p, const struct record *r, struct err *e)
{
	int first, n, last = NONE;

	TRY(named_tasks(&h->arena, p->graph, r->name, r->loc, &first, &n, e));
	for (int t = first; t < first + n; t++)
		last = plan_entry_of(p, t) != NONE || n == 1 ? t : last;
	if (last == NONE)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is not in the plan", r->name);
	for (int t = first; t <= last; t++)
		if (plan_entry_of(p, t) != NONE || n == 1)
			TRY(plan_remove(p, t, r->loc, e));
	return OK;
}

enum err_code record_apply(struct history *h, struct plan *p, const struct record *r, struct err *e)
{
	task_edit edit = r->kind == EDIT_APPEND ? append_one : r->kind == EDIT_MOVE ? move_one : NULL;
	struct lane lane = r->numbers;
	int first, n;

	if (edit) {
		TRY(named_tasks(&h->arena, p->graph, r->name, r->loc, &first, &n, e));
		return edit_each(h, p, first, n, edit, r, e);
	}
	switch (r->kind) {
	case EDIT_LANE:
		lane.name = r->name;
		lane.loc = r->loc;
		return plan_lane(p, &lane, e);
	case EDIT_DROP_LANE:
		return plan_drop_lane(p, r->name, r->loc, e);
	case EDIT_WAIT: case EDIT_UNWAIT: case EDIT_DROP_WAIT:
		return apply_wait(h, p, r, e);
	case EDIT_VERSIONS:
		return apply_versions(h, p, r, e);
	case EDIT_GRID:
		return plan_grid(p, &r->grid, r->loc, e);
	case EDIT_LAUNCH:
		return plan_launch(p, (enum launch_next)r->a, r->names, r->b, r->loc, e);
	case EDIT_REMOVE:
		return apply_remove(h, p, r, e);
	case EDIT_APPEND: case EDIT_MOVE:
	case EDIT_WINDOW: case EDIT_SPLIT_OFF: case EDIT_FETCH: case EDIT_DIRECT: case EDIT_SWAP:
	case EDIT_SPLIT: case EDIT_ALIAS: case EDIT_PROPAGATE: case EDIT_RESTART:
		break;			/* of the graph: replay_graph */
	}
	return OK;
}

int records_first(const struct record *log, int n)
{
	while (n > 0 && log[n - 1].kind != EDIT_RESTART)
		n--;
	return n;
}

/* What the records so far say of tasks and values. */
struct shapings {
	VEC(struct window) windows;
	VEC(struct split_off) split_offs;
	VEC(struct fetch) fetches;
	VEC(struct direct) directs;
	VEC(struct swap) swaps;
	VEC(struct split) splits;
	VEC(struct alias) aliases;
};

static enum err_code read_window(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct program *p = h->base->program;
	int *loads = ARENA_ARRAY(&h->arena, r->b, int);

	if (!r->b)
		return err_set(e, ERR_INPUT, r->loc, "a window needs a load, at least");
	for (int i = 0; i < r->b; i++) {
		int task = program_find_task(p, r->names[i]);

		if (task == NONE)
			return err_set(e, ERR_INPUT, r->loc, "program '%s' has no task '%s'", p->name, r->names[i]);
		loads[i] = p->tasks.v[task].nodes.v[p->tasks.v[task].nodes.n - 1];
	}
	VEC_PUSH(&h->arena, &x->windows, ((struct window){ r->b, loads, r->names, r->loc }));
	return OK;
}

static enum err_code read_split_off(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct graph *g = h->base;
	int b;

	TRY(named_buffer(&h->arena, g, r->name, r->loc, &b, e));
	if (g->buffers.v[b].node == NONE)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is a carry, whose last step stands where it is "
			"set", r->name);
	for (int i = 0; i < x->split_offs.n; i++)
		if (x->split_offs.v[i].node == g->buffers.v[b].node)
			return err_set(e, ERR_INPUT, r->loc, "'%s' is split off already", r->name);
	VEC_PUSH(&h->arena, &x->split_offs, ((struct split_off){ g->buffers.v[b].node, r->name, r->other, r->loc, r->a }));
	return OK;
}

static bool is_fetch_named(const struct shapings *x, const char *name)
{
	for (int i = 0; i < x->fetches.n; i++)
		if (!strcmp(x->fetches.v[i].name, name))
			return true;
	return false;
}

/* A fetch of one operand: "fetch_" and its name, with a number if another product fetches it, too. */
static void add_fetch(struct history *h, const struct record *r, int product, int arg, const char *value,
	struct shapings *x)
{
	const char *name = arena_strf(&h->arena, "fetch_%s", value), *first = name;

	for (int i = 2; is_fetch_named(x, name); i++)
		name = arena_strf(&h->arena, "%s_%d", first, i);
	VEC_PUSH(&h->arena, &x->fetches, ((struct fetch){ product, arg, value, name, r->loc }));
}

static enum err_code read_fetched(struct history *h, const struct record *r, int product, const char *value,
	struct shapings *x, struct err *e)
{
	const struct graph *g = h->base;
	const struct node *n = &g->program->nodes.v[product];
	bool found = false;
	int b;

	TRY(named_buffer(&h->arena, g, value, r->loc, &b, e));
	for (int i = 0; i < x->fetches.n; i++)
		if (x->fetches.v[i].node == product && !strcmp(x->fetches.v[i].value, value))
			return err_set(e, ERR_INPUT, r->loc, "'%s' is fetched for '%s' already", value, r->name);
	for (int arg = 0; arg < 2; arg++) {
		if (g->buffers.v[b].node == NONE || product_operand(g->program, n, arg) != g->buffers.v[b].node)
			continue;
		found = true;
		if (g->buffers.v[b].scope != SCOPE_SHARED)
			return err_set(e, ERR_INPUT, r->loc, "'%s' is made in registers, where '%s' takes it: there is nothing "
				"to fetch", value, r->name);
		add_fetch(h, r, product, arg, value, x);
	}
	return found ? OK : err_set(e, ERR_INPUT, r->loc, "'%s' is no operand of '%s'", value, r->name);
}

static enum err_code read_fetch(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct program *p = h->base->program;
	int task = program_find_task(p, r->name);

	if (task == NONE)
		return err_set(e, ERR_INPUT, r->loc, "program '%s' has no task '%s'", p->name, r->name);
	if (p->tasks.v[task].kind != TASK_MMA)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is no product: it has no operands to fetch", r->name);
	for (int i = 0; i < r->b; i++)
		TRY(read_fetched(h, r, p->tasks.v[task].nodes.v[p->tasks.v[task].nodes.n - 1], r->names[i], x, e));
	return OK;
}

static enum err_code read_direct(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct graph *g = h->base;
	int b;

	for (int i = 0; i < r->b; i++) {
		TRY(named_buffer(&h->arena, g, r->names[i], r->loc, &b, e));
		for (int k = 0; k < x->directs.n; k++)
			if (x->directs.v[k].node == g->buffers.v[b].node)
				return err_set(e, ERR_INPUT, r->loc, "'%s' is made where products take it already", r->names[i]);
		for (int k = 0; k < x->fetches.n; k++)
			if (!strcmp(x->fetches.v[k].value, r->names[i]))
				return err_set(e, ERR_INPUT, r->loc, "'%s' is fetched for '%s', out of shared memory", r->names[i],
					g->program->tasks.v[g->program->nodes.v[x->fetches.v[k].node].task].name);
		if (g->buffers.v[b].node == NONE)
			return err_set(e, ERR_INPUT, r->loc, "'%s' is a carry, which no single task makes", r->names[i]);
		VEC_PUSH(&h->arena, &x->directs, ((struct direct){ g->buffers.v[b].node, r->names[i], r->loc }));
	}
	return OK;
}

static enum err_code read_swap(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct program *p = h->base->program;
	int task = program_find_task(p, r->name), node;

	if (task == NONE)
		return err_set(e, ERR_INPUT, r->loc, "program '%s' has no task '%s'", p->name, r->name);
	if (p->tasks.v[task].kind != TASK_MMA)
		return err_set(e, ERR_INPUT, r->loc, "'%s' is no product: it has no operands to exchange", r->name);
	node = p->tasks.v[task].nodes.v[p->tasks.v[task].nodes.n - 1];
	for (int i = 0; i < x->swaps.n; i++)
		if (x->swaps.v[i].node == node)
			return err_set(e, ERR_INPUT, r->loc, "the operands of '%s' are exchanged already", r->name);
	VEC_PUSH(&h->arena, &x->swaps, ((struct swap){ node, r->name, r->loc }));
	return OK;
}

static struct shaping shaping_of(const struct shapings *x)
{
	return (struct shaping){ .windows = x->windows.v, .nwindows = x->windows.n,
		.split_offs = x->split_offs.v, .nsplit_offs = x->split_offs.n, .fetches = x->fetches.v,
		.nfetches = x->fetches.n, .directs = x->directs.v, .ndirects = x->directs.n, .swaps = x->swaps.v, .nswaps = x->swaps.n,
		.splits = x->splits.v,
		.nsplits = x->splits.n, .aliases = x->aliases.v, .naliases = x->aliases.n };
}

static enum err_code read_split(struct history *h, const struct record *r, struct shapings *x, struct err *e)
{
	const struct program *p = h->base->program;
	struct shaping how = shaping_of(x);
	int *tasks = ARENA_ARRAY(&h->arena, p->tasks.n + x->split_offs.n + x->fetches.n, int);
	struct split s = { .axis = program_find_axis(p, r->name), .ways = r->a, .tasks = tasks };

	if (s.axis == NONE)
		return err_set(e, ERR_INPUT, r->loc, "program '%s' has no axis '%s'", p->name, r->name);
	for (int i = 0; i < r->b; i++) {
		int t = program_find_task(p, r->names[i]);

		for (int k = 0; k < x->split_offs.n && t == NONE; k++)
			if (!strcmp(x->split_offs.v[k].name, r->names[i]))
				t = p->tasks.n + k;
		for (int k = 0; k < x->fetches.n && t == NONE; k++)
			if (!strcmp(x->fetches.v[k].name, r->names[i]))
				t = p->tasks.n + x->split_offs.n + k;
		if (t == NONE)
			return err_set(e, ERR_INPUT, r->loc, "program '%s' has no task '%s'", p->name, r->names[i]);
		tasks[s.ntasks++] = t;
	}
	if (!r->b)
		s.ntasks = split_all(p, &how, s.axis, tasks);
	if (!s.ntasks)
		return err_set(e, ERR_INPUT, r->loc, "nothing but loads of '%s' has axis '%s' in its "
			"result: there is nothing to split", p->name, r->name);
	VEC_PUSH(&h->arena, &x->splits, s);
	return OK;
}

/* The graph that the first n records make. *out stays NULL if that is the base and no copy of it is wanted. */
static enum err_code replay_graph(struct history *h, const struct record *log, int n, bool copy,
	struct graph **out, struct err *e)
{
	struct tiling t = h->base->tiling;
	struct shapings x = { 0 };
	struct shaping how;
	bool changed = false;

	for (int i = records_first(log, n); i < n; i++)
		if (log[i].kind == EDIT_WINDOW)
			TRY(read_window(h, &log[i], &x, e));
	for (int i = records_first(log, n); i < n; i++)	/* before all splits, which divide what was split off, too */
		if (log[i].kind == EDIT_SPLIT_OFF)
			TRY(read_split_off(h, &log[i], &x, e));
	for (int i = records_first(log, n); i < n; i++)	/* ... or is fetched */
		if (log[i].kind == EDIT_FETCH)
			TRY(read_fetch(h, &log[i], &x, e));
	for (int i = records_first(log, n); i < n; i++)
		if (log[i].kind == EDIT_DIRECT)
			TRY(read_direct(h, &log[i], &x, e));
	for (int i = records_first(log, n); i < n; i++)
		if (log[i].kind == EDIT_SWAP)
			TRY(read_swap(h, &log[i], &x, e));
	for (int i = records_first(log, n); i < n; i++) {
		const struct record *r = &log[i];

		changed |= reshapes_graph(r);
		if (r->kind == EDIT_SPLIT)
			TRY(read_split(h, r, &x, e));
		if (r->kind == EDIT_ALIAS)
			VEC_PUSH(&h->arena, &x.aliases, ((struct alias){ r->name, r->other, r->loc }));
		for (int a = 0; r->kind == EDIT_PROPAGATE && a < AXES_MAX; a++)
			if (r->tiling->extent[a])
				t.extent[a] = r->tiling->extent[a];
		if (r->kind == EDIT_GRID) {
			t.divided = r->grid.divided;
			t.parts = r->grid.divided ? r->grid.cluster : 0;
		}
	}
	if (!changed && !copy)
		return OK;
	how = shaping_of(&x);
	return graph_build(h->mem, h->base->program, &t, &how, out, e);
}

void history_drop_next(struct history *h)
{
	plan_free(h->next_plan);
	graph_free(h->next_graph);
	h->next_plan = NULL;
	h->next_graph = NULL;
}

void history_copy_to_next(struct history *h)
{
	history_drop_next(h);
	plan_copy(h->mem, h->plan, &h->next_plan);
}

/* The error of an edit of the graph, at the edit's line: record r failed after it, or, if r is NULL, the graph
 * itself. */
static enum err_code blame(enum err_code code, const struct record *last, const struct record *r, struct err *e)
{
	struct err cause = *e;

	if (!reshapes_graph(last))
		return code;
	if (r && r != last)
		return err_set(e, code, last->loc, "after this, line %d would fail: %s", r->loc.line, cause.msg);
	return err_set(e, code, last->loc, "%s", cause.msg);
}

/* Which slice an append from before a split is for: if a task was appended as often as it is split into slices, the first
 * time is for the first slice, and so on, each on the lane it was given. NONE: all slices. */
static int slice_of_append(const struct record *log, int n, int at, int slices)
{
	const struct record *r = &log[at];
	int split = n, first = records_first(log, n), count = 0, slice = NONE;

	while (split > at && log[split - 1].kind != EDIT_SPLIT)
		split--;
	for (int i = first; i < split; i++)
		if (log[i].kind == EDIT_REMOVE && !strcmp(log[i].name, r->name))
			first = i + 1;
	for (int i = first; i < split; i++)
		if (log[i].kind == EDIT_APPEND && !strcmp(log[i].name, r->name)) {
			slice = i == at ? count : slice;
			count++;
		}
	return count == slices ? slice : NONE;
}

/* Record i of the log, with the name of the slice if it is an append for one. */
static struct record record_to_replay(struct history *h, const struct record *log, int n, int i)
{
	struct record r = log[i];
	int t = r.kind == EDIT_APPEND ? graph_find_task(h->next_plan->graph, name_of_slice(&h->arena, r.name, 0)) : NONE;
	int slice = t == NONE ? NONE : slice_of_append(log, n, i, h->next_plan->graph->tasks.v[t].slices);

	if (slice != NONE)
		r.name = name_of_slice(&h->arena, r.name, slice);
	return r;
}

/* Make the plan of the first n records of a log the present one; on failure nothing changes. */
/* Is it the name of a load, or of what it loads? */
static bool names_load(const char *name, const char *load)
{
	return name && (!strcmp(name, load) || (!strncmp(load, "load_", 5) && !strcmp(name, load + 5)));
}

/* Does record i, of an sTask or a ring, say something of a load that a later one has put in a window, in which another load brings what
 * it did? The plan then has neither. */
static bool is_about_dropped(const struct graph *g, const struct record *log, int n, int i)
{
	const struct record *r = &log[i];
	bool is = false;

	if (!g || !(r->kind == EDIT_APPEND || r->kind == EDIT_MOVE || r->kind == EDIT_REMOVE || r->kind == EDIT_WAIT ||
	    r->kind == EDIT_UNWAIT || r->kind == EDIT_DROP_WAIT || r->kind == EDIT_VERSIONS))
		return false;
	for (int k = i + 1; k < n; k++)
		for (int j = 0; j < log[k].b && log[k].kind == EDIT_WINDOW; j++)
			is |= graph_find_task(g, log[k].names[j]) == NONE && (names_load(r->name, log[k].names[j]) ||
				names_load(r->other, log[k].names[j]));
	return is;
}

static enum err_code replay(struct history *h, const struct record *log, int n, struct err *e)
{
	struct arena_mark mark = arena_mark(&h->arena);
	enum err_code code;
	int i = records_first(log, n) - 1;

	history_drop_next(h);
	code = replay_graph(h, log, n, false, &h->next_graph, e);
	if (!code) {
		h->next_plan = plan_new(h->mem, h->next_graph ? h->next_graph : h->base, h->device);
		set_made_at(h->next_plan, h->made_at);
	}
	while (!code && ++i < n) {
		struct record r = record_to_replay(h, log, n, i);

		if (is_about_dropped(h->next_graph, log, n, i))
			continue;
		code = record_apply(h, h->next_plan, &r, e);
		if (!code)
			plan_sort(h->next_plan);	/* as apply_to_present: the next may go by the first of several entries */
	}
	arena_reset(&h->arena, mark);
	if (code) {
		history_drop_next(h);
		return blame(code, &log[n - 1], i < records_first(log, n) ? NULL : &log[i], e);
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

/* Apply a record that leaves the graph as it is; on failure, also of memory, nothing changes. */
static enum err_code apply_to_present(struct history *h, const struct record *r, struct err *e)
{
	enum err_code code;

	history_copy_to_next(h);
	code = record_apply(h, h->next_plan, r, e);
	if (code) {
		history_drop_next(h);
		return code;
	}
	plan_sort(h->next_plan);
	plan_free(h->plan);
	h->plan = h->next_plan;
	h->next_plan = NULL;
	return OK;
}

static const char *keep_text(struct history *h, const char *s)
{
	return s ? arena_strdup(&h->arena, s) : NULL;
}

/* The record with copies of what it points to, which may not live as long as the log. */
static struct record keep(struct history *h, struct record r)
{
	r.name = keep_text(h, r.name);
	r.other = keep_text(h, r.other);
	r.lane = keep_text(h, r.lane);
	if (r.move) {
		struct move *m = arena_copy(&h->arena, r.move, 1, sizeof(*m));

		m->before = keep_text(h, m->before);
		m->after = keep_text(h, m->after);
		m->lane = keep_text(h, m->lane);
		m->seu = keep_text(h, m->seu);
		r.move = m;
	}
	if (r.names) {
		const char **names = arena_copy(&h->arena, r.names, (size_t)r.b, sizeof(*names));

		for (int i = 0; i < r.b; i++)
			names[i] = keep_text(h, names[i]);
		r.names = names;
	}
	if (r.tiling)
		r.tiling = arena_copy(&h->arena, r.tiling, 1, sizeof(*r.tiling));
	if (r.loc.file && h->file && strcmp(r.loc.file, h->file) == 0)
		r.loc.file = h->file;
	else if (r.loc.file)
		r.loc.file = h->file = arena_strdup(&h->arena, r.loc.file);
	return r;
}

enum err_code history_commit(struct history *h, struct record *r, int n, struct err *e)
{
	bool simple = n == 1 && !reshapes_graph(r);
	int total = h->done + n, cap = h->log.cap;
	struct record *log = h->log.v;
	enum err_code code;

	if (n == 0)
		return OK;
	if (h->done < h->log.n || total > cap) {
		cap = total * 2;
		log = ARENA_ARRAY(&h->arena, cap, struct record);
		if (h->done)
			memcpy(log, h->log.v, (size_t)h->done * sizeof(*log));
	}
	for (int i = 0; i < n; i++) {
		log[h->done + i] = keep(h, r[i]);
		log[h->done + i].step = h->step + 1;
	}
	code = simple ? apply_to_present(h, &log[h->done], e) : replay(h, log, total, e);
	if (code)
		return code;
	h->log.v = log;
	h->log.cap = cap;
	h->log.n = h->done = total;
	h->step++;
	return OK;
}

/* ---- undo, marks and copies ----------------------------------------------------------------- */

/* Make the plan of a log the present one that has been present before, so it cannot fail. */
static void replay_again(struct history *h, const struct record *log, int n)
{
	struct err e;

	if (replay(h, log, n, &e))
		BUG("a log that was good cannot be replayed: %s", e.msg);
}

void history_loaded(struct history *h)
{
	h->loaded = h->done;
}

bool history_is_loaded(const struct history *h)
{
	return h->loaded > 0;
}

bool history_undo(struct history *h)
{
	int n = h->done;

	if (n <= h->loaded)
		return false;
	while (n > 0 && h->log.v[n - 1].step == h->log.v[h->done - 1].step)
		n--;
	replay_again(h, h->log.v, n);
	return true;
}

bool history_redo(struct history *h)
{
	int n = h->done;

	if (n == h->log.n)
		return false;
	while (n < h->log.n && h->log.v[n].step == h->log.v[h->done].step)
		n++;
	replay_again(h, h->log.v, n);
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

	replay_again(h, m.log, m.done);
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

	history_new(h->mem, h->base, h->device, out);
	c = *out;
	history_made_at(c, h->made_at);
	c->log.v = ARENA_ARRAY(&c->arena, h->done, struct record);
	for (int i = 0; i < h->done; i++)
		c->log.v[i] = keep(c, h->log.v[i]);
	c->log.n = c->log.cap = h->done;
	c->step = h->step;
	c->loaded = h->loaded;
	if (h->done)
		replay_again(c, c->log.v, h->done);
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
