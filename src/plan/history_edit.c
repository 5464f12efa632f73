/* Edits of a plan under a history, each put together as records and committed to its log. */
#include "plan/record.h"

#include <string.h>

#include "plan/check.h"
#include "plan/names.h"

/* An edit that is put together on next_plan. */
struct change {
	VEC(struct record) records;
	VEC(int) tasks;
};

static enum err_code commit_one(struct history *h, struct record r, struct err *e)
{
	return history_commit(h, &r, 1, e);
}

enum err_code history_lane(struct history *h, const char *name, const struct lane *numbers, struct srcloc loc,
	struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_LANE, .name = name, .numbers = *numbers, .loc = loc }, e);
}

enum err_code history_drop_lane(struct history *h, const char *name, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_DROP_LANE, .name = name, .loc = loc }, e);
}

enum err_code history_append(struct history *h, const char *task, const char *seu, const char *lane,
	int at, bool by_rows, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_APPEND, .name = task, .other = seu, .lane = lane, .a = at,
		.b = by_rows, .loc = loc }, e);
}

enum err_code history_remove(struct history *h, const char *task, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_REMOVE, .name = task, .loc = loc }, e);
}

enum err_code history_wait(struct history *h, const char *task, const struct wait_on *on, int n,
	struct srcloc loc, struct err *e)
{
	struct record *r = ARENA_ARRAY(&h->arena, n, struct record);

	for (int i = 0; i < n; i++)
		r[i] = (struct record){ .kind = EDIT_WAIT, .name = task, .other = on[i].task,
			.a = on[i].distance, .b = on[i].when, .loc = loc };
	return history_commit(h, r, n, e);
}

enum err_code history_unwait(struct history *h, const char *task, const char *on, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_UNWAIT, .name = task, .other = on, .loc = loc }, e);
}

enum err_code history_grid(struct history *h, const struct grid_plan *g, struct srcloc loc, struct err *e)
{
	const struct extents *x = &h->plan->graph->extents;
	bool reshapes = g->divided != x->divided || (g->divided && g->cluster != x->parts);

	return commit_one(h, (struct record){ .kind = EDIT_GRID, .grid = *g, .a = reshapes, .loc = loc }, e);
}

enum err_code history_launch(struct history *h, enum launch_next next, const char *const *ready, int n, struct srcloc loc,
	struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_LAUNCH, .a = (int)next, .names = ready, .b = n, .loc = loc }, e);
}

enum err_code history_split_off(struct history *h, const char *value, const char *task, int steps, struct srcloc loc,
	struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_SPLIT_OFF, .name = value, .other = task, .a = steps, .loc = loc }, e);
}

enum err_code history_fetch(struct history *h, const char *product, const char *const *values, int n, struct srcloc loc,
	struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_FETCH, .name = product, .b = n, .names = values, .loc = loc }, e);
}

enum err_code history_direct(struct history *h, const char *const *values, int n, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_DIRECT, .b = n, .names = values, .loc = loc }, e);
}

enum err_code history_window(struct history *h, const char *const *loads, int n, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_WINDOW, .b = n, .names = loads, .loc = loc }, e);
}

enum err_code history_swap(struct history *h, const char *product, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_SWAP, .name = product, .loc = loc }, e);
}

enum err_code history_alias(struct history *h, const struct alias *v, int n, struct srcloc loc, struct err *e)
{
	struct record *r = ARENA_ARRAY(&h->arena, n, struct record);

	for (int i = 0; i < n; i++)
		r[i] = (struct record){ .kind = EDIT_ALIAS, .name = v[i].what, .other = v[i].of, .loc = loc };
	return history_commit(h, r, n, e);
}

enum err_code history_split(struct history *h, const char *axis, int ways,
	const char *const *tasks, int ntasks, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_SPLIT, .name = axis, .a = ways, .b = ntasks, .names = tasks,
		.loc = loc }, e);
}

enum err_code history_propagate(struct history *h, const struct tiling *t, struct srcloc loc, struct err *e)
{
	return commit_one(h, (struct record){ .kind = EDIT_PROPAGATE, .tiling = t, .loc = loc }, e);
}

static struct record record_of_wait(const struct graph *g, const struct wait *w, enum edit_kind kind, struct srcloc loc)
{
	return (struct record){ .kind = kind, .name = g->tasks.v[w->task].name, .other = g->tasks.v[w->on].name,
		.a = w->distance, .b = w->when, .c = kind == EDIT_WAIT, .loc = loc };
}

/* Does the present plan, which is complete, lack waits? Not known of one that is incomplete: then no. */
static enum err_code lacks_waits(struct history *h, bool *out, struct err *e)
{
	int added = 0;

	history_copy_to_next(h);	/* which is freed even if memory runs out in here */
	TRY(plan_fill_waits(h->next_plan, NULL, &added, e));
	*out = added > 0;
	return OK;
}

/* Record the waits that differ between the present plan and next_plan. */
static void add_wait_changes(struct history *h, struct change *c, struct srcloc loc)
{
	const struct plan *plans[] = { h->plan, h->next_plan };

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < plans[k]->waits.n; i++) {
			const struct wait *w = &plans[k]->waits.v[i];

			if (plan_find_wait(plans[!k], w) == NONE)
				VEC_PUSH(&h->arena, &c->records, record_of_wait(h->plan->graph, w,
					k ? EDIT_WAIT : EDIT_DROP_WAIT, loc));
		}
}

/* Waits that other versions make necessary come with them, and those that edits had added and that they make needless go, if
 * none was missing before. */
static enum err_code build_versions(struct history *h, struct change *c, struct srcloc loc, struct err *e)
{
	bool lacks;

	TRY(lacks_waits(h, &lacks, e));
	history_copy_to_next(h);
	for (int i = 0; i < c->records.n; i++)
		TRY(record_apply(h, h->next_plan, &c->records.v[i], e));
	if (lacks)
		return OK;
	TRY(plan_adapt_waits(h->next_plan, e));
	add_wait_changes(h, c, loc);
	return OK;
}

enum err_code history_versions(struct history *h, const struct versions_of *v, int n, struct srcloc loc, struct err *e)
{
	struct change c = { 0 };
	enum err_code code;

	for (int i = 0; i < n; i++)
		VEC_PUSH(&h->arena, &c.records, ((struct record){ .kind = EDIT_VERSIONS, .name = v[i].buffer,
			.a = v[i].versions, .loc = loc }));
	code = build_versions(h, &c, loc, e);
	if (code) {
		history_drop_next(h);
		return code;
	}
	return history_commit(h, c.records.v, c.records.n, e);
}

enum err_code history_fill_waits(struct history *h, const struct stop *stop, struct srcloc loc,
	int *added, struct err *e)
{
	struct record *r;
	int had = h->plan->waits.n;
	enum err_code code;

	history_copy_to_next(h);
	code = plan_fill_waits(h->next_plan, stop, added, e);
	if (code) {
		history_drop_next(h);
		return code;
	}
	r = ARENA_ARRAY(&h->arena, *added, struct record);
	for (int i = 0; i < *added; i++)
		r[i] = record_of_wait(h->plan->graph, &h->next_plan->waits.v[had + i], EDIT_WAIT, loc);
	return history_commit(h, r, *added, e);
}

/* ---- moves --------------------------------------------------------------------------------- */

/* The lane for an sTask that is inserted: the named one, else that of the sTask that it comes before or after. */
static const char *lane_to_insert(const struct history *h, const struct move *m)
{
	const struct plan *p = h->next_plan;
	const char *name = m->before ? m->before : m->after;
	int t = name ? graph_find_task(p->graph, name) : NONE, i = t == NONE ? NONE : plan_entry_of(p, t);

	return m->lane || i == NONE ? m->lane : p->lanes.v[p->entries.v[i].lane].name;
}

/* Record what is done to one sTask, and do it to next_plan. */
static enum err_code change_entry(struct history *h, struct change *c, int task, const struct move *m,
	bool insert, struct srcloc loc, struct err *e)
{
	const struct stask *s = &h->plan->graph->tasks.v[task];
	struct move *own = arena_copy(&h->arena, m, 1, sizeof(*m));
	int first = c->records.n;

	own->before = matching_slice(h, h->plan->graph, m->before, s, false);
	own->after = matching_slice(h, h->plan->graph, m->after, s, true);
	if (insert && plan_entry_of(h->next_plan, task) != NONE)
		return err_set(e, ERR_INPUT, loc, "'%s' is in the plan already: plan:move changes it", s->name);
	if (insert) {
		VEC_PUSH(&h->arena, &c->records, ((struct record){ .kind = EDIT_APPEND, .name = s->name,
			.other = m->seu, .lane = lane_to_insert(h, own), .a = m->set_at ? m->at : 0, .b = m->by_rows,
			.loc = loc }));
		*own = (struct move){ .before = own->before, .after = own->after };
	}
	if (!insert || m->before || m->after)
		VEC_PUSH(&h->arena, &c->records, ((struct record){ .kind = EDIT_MOVE, .name = s->name, .move = own,
			.loc = loc }));
	for (int i = first; i < c->records.n; i++)
		TRY(record_apply(h, h->next_plan, &c->records.v[i], e));
	return OK;
}

/* Add the sTasks that a name means: one, or all slices of a split one. */
static enum err_code add_named(struct history *h, struct change *c, const char *name, struct srcloc loc, struct err *e)
{
	int first, n;

	TRY(named_tasks(&h->arena, h->plan->graph, name, loc, &first, &n, e));
	for (int i = 0; i < n; i++)
		VEC_PUSH(&h->arena, &c->tasks, first + i);
	return OK;
}

/* Record the waits and versions that differ between the present plan and next_plan. */
static void add_repairs(struct history *h, struct change *c, struct srcloc loc)
{
	const struct graph *g = h->plan->graph;

	add_wait_changes(h, c, loc);
	for (int b = 0; b < g->buffers.n; b++)
		if (h->plan->versions[b] != h->next_plan->versions[b])
			VEC_PUSH(&h->arena, &c->records, ((struct record){ .kind = EDIT_VERSIONS,
				.name = g->buffers.v[b].name, .a = h->next_plan->versions[b], .loc = loc }));
}

/* Change the entries of the named sTasks in next_plan; the last of several first where all come after one. */
static enum err_code build_change(struct history *h, struct change *c, const char *const *tasks, int n,
	const struct move *m, bool insert, bool repair_waits, const struct stop *stop, struct srcloc loc, struct err *e)
{
	for (int i = 0; i < n; i++)
		TRY(add_named(h, c, tasks[i], loc, e));
	for (int i = 0; i < c->tasks.n; i++)
		TRY(change_entry(h, c, c->tasks.v[m->after ? c->tasks.n - 1 - i : i], m, insert, loc, e));
	return repair_waits ? plan_repair_waits(h->next_plan, h->plan, c->tasks.v, c->tasks.n, NULL, stop, e) : OK;
}

static enum err_code change_entries(struct history *h, const char *const *tasks, int n, const struct move *m,
	bool insert, bool repair_waits, const struct stop *stop, struct srcloc loc, struct err *e)
{
	struct change c = { 0 };
	enum err_code code;

	history_copy_to_next(h);
	code = build_change(h, &c, tasks, n, m, insert, repair_waits, stop, loc, e);
	if (code) {
		history_drop_next(h);
		return code;
	}
	add_repairs(h, &c, loc);
	return history_commit(h, c.records.v, c.records.n, e);
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
	int from = records_first(other->log.v, other->done);
	struct change c = { 0 };

	if (h->base->program != other->base->program || h->device != other->device)
		return err_set(e, ERR_INPUT, loc, "the plans are of different programs or devices");
	VEC_PUSH(&h->arena, &c.records, ((struct record){ .kind = EDIT_RESTART }));
	VEC_PUSH(&h->arena, &c.records, ((struct record){ .kind = EDIT_PROPAGATE, .tiling = &other->base->tiling }));
	for (int i = from; i < other->done; i++)
		VEC_PUSH(&h->arena, &c.records, other->log.v[i]);
	for (int i = 0; i < c.records.n; i++)
		c.records.v[i].loc = loc;
	return history_commit(h, c.records.v, c.records.n, e);
}
