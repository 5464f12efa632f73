#include "plan/plan.h"

#include <string.h>

#include "plan/cluster.h"
#include "plan/keep.h"
#include "plan/names.h"
#include "target/target.h"

struct plan *plan_new(struct mem *mem, const struct graph *g, const struct vdevice *d)
{
	struct arena a;
	struct plan *p;

	arena_init(&a, mem);
	p = arena_alloc(&a, sizeof(*p) + (size_t)g->buffers.n * sizeof(int));
	p->arena = a;
	p->graph = g;
	p->device = d;
	p->versions = (int *)(p + 1);
	for (int i = 0; i < g->buffers.n; i++)
		p->versions[i] = 1;
	p->grid = (struct grid_plan){ .group = 1, .cluster = 1, .keep = 1, .along = NONE, .chiplets = 1 };
	return p;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	arena_release(&p->arena);
}

void plan_copy(struct mem *mem, const struct plan *p, struct plan **out)
{
	struct plan *q = *out = plan_new(mem, p->graph, p->device);

	memcpy(q->versions, p->versions, (size_t)p->graph->buffers.n * sizeof(int));
	q->grid = p->grid;
	q->made_at = p->made_at;
	q->versions_loc = p->versions_loc;
	q->grid_loc = p->grid_loc;
	q->launch.next = p->launch.next;
	q->launch_loc = p->launch_loc;
	for (int i = 0; i < p->launch.ready.n; i++)
		VEC_PUSH(&q->arena, &q->launch.ready, p->launch.ready.v[i]);
	q->without = p->without;
	for (int i = 0; i < p->lanes.n; i++) {
		struct lane l = p->lanes.v[i];

		l.name = arena_strdup(&q->arena, l.name);
		VEC_PUSH(&q->arena, &q->lanes, l);
	}
	for (int i = 0; i < p->entries.n; i++)
		VEC_PUSH(&q->arena, &q->entries, p->entries.v[i]);
	for (int i = 0; i < p->waits.n; i++)
		VEC_PUSH(&q->arena, &q->waits, p->waits.v[i]);
}

int plan_find_lane(const struct plan *p, const char *name)
{
	int i;

	FIND_FIRST(i, p->lanes.n, !strcmp(p->lanes.v[i].name, name));
	return i;
}

int plan_entry_of(const struct plan *p, int task)
{
	int i;

	FIND_FIRST(i, p->entries.n, p->entries.v[i].task == task);
	return i;
}

int plan_find_wait(const struct plan *p, const struct wait *w)
{
	const struct wait *v = p->waits.v;
	int i;

	FIND_FIRST(i, p->waits.n, v[i].task == w->task && v[i].on == w->on && v[i].distance == w->distance &&
		v[i].when == w->when);
	return i;
}

static bool is_async_load(const struct plan *p, int task, int seu)
{
	return p->device->seu[seu].kind == SEU_COPY && p->device->seu[seu].async &&
		p->graph->tasks.v[task].kind == TASK_LOAD;
}

int lane_warps(const struct plan *p, int lane)
{
	bool copies = true;

	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].lane == lane)
			copies &= is_async_load(p, p->entries.v[i].task, p->entries.v[i].seu);
	return p->lanes.v[lane].warps ? p->lanes.v[lane].warps : copies ? 1 : 4;
}

int plan_product_parts(const struct target *t, const struct matrix_instruction *x, int64_t rows, int64_t cols,
	int warps)
{
	int groups = warps / x->warps, parts = 1;

	for (int i = 2; i <= groups; i++)
		if (groups % i == 0 && rows <= (int64_t)x->rows * (groups / i) && cols % (i * t->frag.deep) == 0)
			parts = i;
	return parts;
}

int plan_lane_parts(const struct plan *p, int lane, int phase)
{
	const struct target *t = target_of(p->device);
	int warps = lane_warps(p, lane), columns = p->lanes.v[lane].columns, parts = INT32_MAX;

	if (warps == 1 || (columns && warps % columns))	/* of the latter problem_add_columns says that it cannot be */
		return 1;
	for (int i = 0; i < p->entries.n && parts > 1; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];
		const struct seu *unit = &p->device->seu[p->entries.v[i].seu];
		const struct matrix_instruction *x;

		if (p->entries.v[i].lane != lane || s->phase != phase || s->kind != TASK_MMA ||
		    unit->kind != SEU_MATRIX)
			continue;
		if (columns)
			return columns;
		x = target_matrix(t, unit->async, s->work.sparse, s->work.type);
		parts = x ? (int)gcd_i64(parts == INT32_MAX ? 0 : parts,
			plan_product_parts(t, x, s->work.m, s->work.n, warps)) : 1;
	}
	return parts == INT32_MAX ? 1 : parts;
}

enum err_code plan_lane(struct plan *p, const struct lane *l, struct err *e)
{
	const char *name = l->name;
	struct srcloc loc = l->loc;
	int lane = plan_find_lane(p, name);

	if (!name[0] || strlen(name) >= 64 || strspn(name, NAME_LETTERS) != strlen(name))
		return err_set(e, ERR_INPUT, loc, "'%.60s' is no name for a lane: use letters, digits and _", name);
	if (l->warps < 0 || l->warps > 32)
		return err_set(e, ERR_INPUT, loc, "lane '%s': 1 to 32 warps, not %d", name, l->warps);
	if (l->columns < 0 || l->columns > 32)
		return err_set(e, ERR_INPUT, loc, "lane '%s': its warps are in 1 to 32 columns, not %d", name, l->columns);
	if (l->registers < 0 || l->registers > p->device->thread_registers)
		return err_set(e, ERR_INPUT, loc, "lane '%s': a thread has at most %d registers, "
			"not %d", name, p->device->thread_registers, l->registers);
	if (l->spare < 0 || l->spare >= p->device->thread_registers)
		return err_set(e, ERR_INPUT, loc, "lane '%s': of the %d registers of a thread at most %d can be spare, "
			"not %d", name, p->device->thread_registers, p->device->thread_registers - 1, l->spare);
	if (l->replicas < 1 || l->replicas > REPLICAS_MAX)
		return err_set(e, ERR_INPUT, loc, "lane '%s': 1 to %d replicas, not %d", name, REPLICAS_MAX,
			l->replicas);
	if (l->priority < 0 || l->priority > target_of(p->device)->priorities)
		return err_set(e, ERR_INPUT, loc, target_of(p->device)->priorities ? "lane '%s': a priority on '%s' is 1 to %d, not "
			"%d" : "lane '%s': warps of '%s' have no priorities, %d at most, so it is not %d", name, p->device->name,
			target_of(p->device)->priorities, l->priority);
	if (lane == NONE && p->lanes.n == LANES_MAX)
		return err_set(e, ERR_LIMIT, loc, "a plan has at most %d lanes", LANES_MAX);
	if (lane == NONE) {
		name = arena_strdup(&p->arena, name);
		*VEC_ADD(&p->arena, &p->lanes) = (struct lane){ .name = name };
		lane = p->lanes.n - 1;
	}
	name = p->lanes.v[lane].name;
	p->lanes.v[lane] = *l;
	p->lanes.v[lane].name = name;
	return OK;
}

bool lane_is_used(const struct plan *p, int lane)
{
	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].lane == lane)
			return true;
	return false;
}

bool plan_shows_unit(const struct plan *p, int seu)
{
	const struct vdevice *d = p->device;
	bool second = false;

	for (int i = 0; i < seu; i++)
		second |= d->seu[i].kind == d->seu[seu].kind;
	for (int i = 0; i < p->entries.n && second; i++)
		second &= p->entries.v[i].seu != seu;
	return !second;
}

enum err_code plan_drop_lane(struct plan *p, const char *name, struct srcloc loc, struct err *e)
{
	int lane = plan_find_lane(p, name);

	if (lane == NONE)
		return err_set(e, ERR_INPUT, loc, "there is no lane '%.60s'", name);
	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].lane == lane)
			return err_set(e, ERR_INPUT, loc, "lane '%s' has sTasks, such as '%s': only one without any can be "
				"taken out; plan:move gives them to another lane", name,
				p->graph->tasks.v[p->entries.v[i].task].name);
	for (int i = lane + 1; i < p->lanes.n; i++)
		p->lanes.v[i - 1] = p->lanes.v[i];
	p->lanes.n--;
	for (int i = 0; i < p->entries.n; i++)
		p->entries.v[i].lane -= p->entries.v[i].lane > lane;
	return OK;
}

static enum err_code choose_seu(const struct plan *p, int task, const char *name,
	struct srcloc loc, int *out, struct err *e)
{
	const struct stask *s = &p->graph->tasks.v[task];
	const char *names[SEU_MAX];

	*out = name ? device_find_seu(p->device, name) : device_seu_for(p->device, &s->work);
	if (*out != NONE)
		return OK;
	if (!name)
		return err_set(e, ERR_INPUT, loc, "no sEU of '%s' can run '%s' (%s of %s)", p->device->name, s->name,
			task_kind_name(s->kind), dtype_name(s->work.type));
	for (int i = 0; i < p->device->nseus; i++)
		names[i] = p->device->seu[i].name;
	return err_set(e, ERR_INPUT, loc, "'%s' has no sEU '%s'%s", p->device->name, name,
		nearest_hint(name, names, p->device->nseus).text);
}

static enum err_code check_offset(const struct plan *p, int task, int at, struct srcloc loc, struct err *e)
{
	if (at >= -OFFSET_MAX && at <= OFFSET_MAX)
		return OK;
	return err_set(e, ERR_INPUT, loc, "'%s': an iteration offset is within %d, not %d",
		p->graph->tasks.v[task].name, OFFSET_MAX, at);
}

/* The lane of that name, declared if it was not. */
static enum err_code need_lane(struct plan *p, const char *name, struct srcloc loc, int *out, struct err *e)
{
	*out = plan_find_lane(p, name);
	if (*out != NONE)
		return OK;
	TRY(plan_lane(p, &(struct lane){ .name = name, .replicas = 1, .loc = loc }, e));
	*out = p->lanes.n - 1;
	return OK;
}

enum err_code plan_append(struct plan *p, int task, const char *seu, const char *lane, int at,
	struct srcloc loc, struct err *e)
{
	int unit, l;

	TRY(choose_seu(p, task, seu, loc, &unit, e));
	TRY(check_offset(p, task, at, loc, e));
	if (!lane)
		lane = is_async_load(p, task, unit) ? "p0" : "c0";
	TRY(need_lane(p, lane, loc, &l, e));
	VEC_PUSH(&p->arena, &p->entries, ((struct entry){ .task = task, .lane = l, .seu = unit,
		.at = at, .loc = loc }));
	return OK;
}

enum err_code plan_check_by_rows(const struct plan *p, int task, bool by_rows, struct srcloc loc, struct err *e)
{
	const struct stask *s = &p->graph->tasks.v[task];

	return !by_rows || s->kind == TASK_LOAD ? OK : err_set(e, ERR_INPUT, loc,
		"'%s' is no load: by_rows= says how a copy engine loads a tile", s->name);
}

static enum err_code need_entry(const struct plan *p, int task, struct srcloc loc, int *out, struct err *e)
{
	*out = plan_entry_of(p, task);
	return *out != NONE ? OK : err_set(e, ERR_INPUT, loc, "'%s' is not in the plan", p->graph->tasks.v[task].name);
}

/* Find the entry to move; refuse a move that has no meaning. */
static enum err_code find_moved(const struct plan *p, int task, const struct move *m,
	struct srcloc loc, int *out, struct err *e)
{
	const char *name = p->graph->tasks.v[task].name;
	int n = 0;

	TRY(need_entry(p, task, loc, out, e));
	for (int i = 0; i < p->entries.n; i++)
		n += p->entries.v[i].task == task;
	if (n > 1)
		return err_set(e, ERR_INPUT, loc, "'%s' is appended %d times: remove it, and append it once", name, n);
	if (m->before && m->after)
		return err_set(e, ERR_INPUT, loc, "'%s': before= or after=, not both", name);
	if (!m->before && !m->after && !m->lane && !m->seu && !m->set_at && !m->set_by_rows)
		return err_set(e, ERR_INPUT, loc, "'%s': nothing to change: give at=, before=, after=, "
			"lane=, seu= or by_rows=", name);
	return OK;
}

/* The entry to come before or after; it must be on this lane (NONE: a new one), in the sTask's region. */
static enum err_code find_neighbour(struct plan *p, int task, int lane, const struct move *m,
	struct srcloc loc, int *out, struct err *e)
{
	const struct stask *own = &p->graph->tasks.v[task], *other;
	const char *name = m->before ? m->before : m->after, *where;
	int t;

	TRY(named_task(&p->arena, p->graph, name, loc, &t, e));
	if (t == task)
		return err_set(e, ERR_INPUT, loc, "'%s' cannot come %s itself", name, m->before ? "before" : "after");
	TRY(need_entry(p, t, loc, out, e));
	other = &p->graph->tasks.v[t];
	where = p->lanes.v[p->entries.v[*out].lane].name;
	if (p->entries.v[*out].lane != lane)
		return err_set(e, ERR_INPUT, loc, "'%s' is on lane '%s', and '%s' is to be on '%s': before= "
			"and after= name an sTask of the same lane; or give lane=\"%s\", too", name, where,
			own->name, lane == NONE ? m->lane : p->lanes.v[lane].name, where);
	if (own->phase != other->phase || own->loop != other->loop)
		return err_set(e, ERR_INPUT, loc, "'%s' and '%s' are not in the same loop: before= and "
			"after= name an sTask that runs as often", own->name, name);
	return OK;
}

/* The last entry of the lane in the region of an sTask that is not its own; NONE. */
static int last_of_region(const struct plan *p, int lane, int task)
{
	const struct stask *own = &p->graph->tasks.v[task];
	int last = NONE;

	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];

		if (p->entries.v[i].lane == lane && s != own && s->phase == own->phase && s->loop == own->loop)
			last = i;
	}
	return last;
}

/* Take entry i out, and put `now` before what was entry `at`. */
static void put_entry(struct plan *p, int i, int at, struct entry now)
{
	struct entry *v = p->entries.v;

	if (at > i)
		memmove(&v[i], &v[i + 1], (size_t)(--at - i) * sizeof(now));
	else
		memmove(&v[at + 1], &v[at], (size_t)(i - at) * sizeof(now));
	v[at] = now;
}

enum err_code plan_move(struct plan *p, int task, const struct move *m, struct srcloc loc, struct err *e)
{
	int i, neighbour = NONE, lane;
	struct entry now;

	TRY(find_moved(p, task, m, loc, &i, e));
	now = p->entries.v[i];
	now.loc = loc;
	lane = m->lane ? plan_find_lane(p, m->lane) : now.lane;
	if (m->seu)
		TRY(choose_seu(p, task, m->seu, loc, &now.seu, e));
	if (m->set_at) {
		TRY(check_offset(p, task, m->at, loc, e));
		now.at = m->at;
	}
	if (m->set_by_rows) {
		TRY(plan_check_by_rows(p, task, m->by_rows, loc, e));
		now.by_rows = m->by_rows;
	}
	if (m->before || m->after)
		TRY(find_neighbour(p, task, lane, m, loc, &neighbour, e));
	if (m->lane)
		TRY(need_lane(p, m->lane, loc, &lane, e));
	if (neighbour == NONE && lane != now.lane)
		neighbour = last_of_region(p, lane, task);
	now.lane = lane;
	put_entry(p, i, neighbour == NONE ? i : m->before ? neighbour : neighbour + 1, now);
	return OK;
}

enum err_code plan_remove(struct plan *p, int task, struct srcloc loc, struct err *e)
{
	int first;

	TRY(need_entry(p, task, loc, &first, e));
	VEC_FILTER(&p->entries, i, p->entries.v[i].task != task);
	return OK;
}

enum err_code plan_wait(struct plan *p, int task, int on, int distance, enum wait_when when,
	struct srcloc loc, struct err *e)
{
	const struct graph *g = p->graph;
	struct wait w = { .task = task, .on = on, .distance = distance, .when = when, .loc = loc };

	if (distance < DISTANCE_AUTO || distance > VERSIONS_MAX)
		return err_set(e, ERR_INPUT, loc, "'%s' waits for '%s': a distance is 0 to %d iterations, not %d",
			g->tasks.v[task].name, g->tasks.v[on].name, VERSIONS_MAX, distance);
	if (g->tasks.v[task].phase != g->tasks.v[on].phase)
		return err_set(e, ERR_INPUT, loc, "'%s' and '%s' are in different phases, which run one after the "
			"other: there is nothing to wait for", g->tasks.v[task].name, g->tasks.v[on].name);
	if (plan_find_wait(p, &w) == NONE)
		VEC_PUSH(&p->arena, &p->waits, w);
	return OK;
}

enum err_code plan_unwait(struct plan *p, int task, int on, struct srcloc loc, struct err *e)
{
	int had = p->waits.n;

	VEC_FILTER(&p->waits, i, p->waits.v[i].task != task || p->waits.v[i].on != on);
	return p->waits.n < had ? OK : err_set(e, ERR_INPUT, loc, "'%s' does not wait for '%s'",
		p->graph->tasks.v[task].name, p->graph->tasks.v[on].name);
}

void plan_drop_wait(struct plan *p, const struct wait *w)
{
	int i = plan_find_wait(p, w);

	if (i == NONE)
		return;
	memmove(&p->waits.v[i], &p->waits.v[i + 1], (size_t)(p->waits.n - i - 1) * sizeof(*w));
	p->waits.n--;
}

enum err_code plan_versions(struct plan *p, int buffer, int versions, struct srcloc loc, struct err *e)
{
	if (versions < 1 || versions > VERSIONS_MAX)
		return err_set(e, ERR_INPUT, loc, "buffer '%s' has 1 to %d versions, not %d",
			p->graph->buffers.v[buffer].name, VERSIONS_MAX, versions);
	p->versions[buffer] = versions;
	p->versions_loc = loc;
	return OK;
}

enum err_code plan_grid(struct plan *p, const struct grid_plan *g, struct srcloc loc, struct err *e)
{
	if (g->eus < 0 || g->eus > p->device->eus)
		return err_set(e, ERR_INPUT, loc, "'%s' has %d EUs, not %d", p->device->name, p->device->eus, g->eus);
	if (g->group < 1 || g->group > 65536)
		return err_set(e, ERR_INPUT, loc, "a group of tiles is 1 to 65536, not %d", g->group);
	if (g->section < 0 || g->section > SECTION_MOST)
		return err_set(e, ERR_INPUT, loc, "a section is 0 to %d tiles, not %d", SECTION_MOST, g->section);
	if (g->section && !g->longest_first)
		return err_set(e, ERR_INPUT, loc, "a section is for longest_first, which orders its tiles");
	if (g->cluster < 1 || g->cluster > p->device->max_cluster)
		return err_set(e, ERR_INPUT, loc, "a cluster on '%s' is 1 to %d EUs, not %d",
			p->device->name, p->device->max_cluster, g->cluster);
	if (g->keep < 1 || g->keep > KEEP_MOST)
		return err_set(e, ERR_INPUT, loc, "an EU takes 1 to %d neighbouring tiles one after the other, not %d", KEEP_MOST, g->keep);
	if (g->along != NONE && g->cluster == 1 && g->keep == 1)
		return err_set(e, ERR_INPUT, loc, "along is for clusters and for keep, whose tiles are neighbours there");
	if (g->keep > 1 && (g->cluster > 1 || g->dynamic))
		return err_set(e, ERR_INPUT, loc, "an EU takes neighbouring tiles one after the other: with keep, %s", g->dynamic ?
			"dynamic is false" : "cluster is 1");
	if (g->keep > 1 && program_has_any(p->graph->program))
		return err_set(e, ERR_INPUT, loc, "keep is for kernels of one size, not for sizes that a launch gives (mr.any)");
	if (g->dynamic && g->cluster > 1)
		return err_set(e, ERR_INPUT, loc, "EUs of a cluster take neighbouring tiles together: with dynamic, cluster is 1, not %d",
			g->cluster);
	if (g->dynamic && g->chiplets > 1)
		return err_set(e, ERR_INPUT, loc, "EUs that take the next tile by a counter are of any chiplet: with dynamic, chiplets "
			"is 1, not %d", g->chiplets);
	if (g->dynamic && program_has_any(p->graph->program))
		return err_set(e, ERR_INPUT, loc, "dynamic is for kernels of one size, not for sizes that a launch gives (mr.any)");
	if (g->divided && g->cluster == 1)
		return err_set(e, ERR_INPUT, loc, "divide is for clusters, whose EUs divide the iterations of a loop: say how "
			"many, as in {cluster=2, divide=...}");
	if (g->divided && g->along != NONE)
		return err_set(e, ERR_INPUT, loc, "a cluster divides a loop, or has neighbouring tiles: give divide or along, "
			"not both");
	if (g->chiplets > 1 && g->chiplets != p->device->chiplets)
		return err_set(e, ERR_INPUT, loc, p->device->chiplets > 1 ? "'%s' has %d chiplets, so chiplets is that or 1, "
			"not %d" : "'%s' has no chiplets, so chiplets is %d, not %d", p->device->name,
			(int)max_i64(p->device->chiplets, 1), g->chiplets);
	p->grid = *g;
	p->grid_loc = loc;
	return OK;
}

const char *const launch_next_names[] = { "auto", "start", "loaded", "end" };	/* ORDER launch next */

bool plan_launches_as_usual(const struct plan *p)
{
	return p->launch.next == NEXT_AUTO && !p->launch.ready.n;
}

static enum err_code find_ready(const struct plan *p, const char *name, struct srcloc loc, int *out, struct err *e)
{
	const struct program *g = p->graph->program;

	FIND_FIRST(*out, g->tensors.n, !strcmp(g->tensors.v[*out].name, name));
	if (*out == NONE)
		return err_set(e, ERR_INPUT, loc, "'%s' has no tensor '%s' that could be ready", g->name, name);
	if (g->tensors.v[*out].role != TENSOR_INPUT)
		return err_set(e, ERR_INPUT, loc, "'%s' is written by '%s' itself: only inputs can be ready before it begins", name, g->name);
	return OK;
}

/* By number, so that the order of names means nothing. */
enum err_code plan_launch(struct plan *p, enum launch_next next, const char *const *ready, int n, struct srcloc loc,
	struct err *e)
{
	int tensors = p->graph->program->tensors.n, found;
	bool *is_ready = ARENA_ARRAY(&p->arena, tensors, bool);

	for (int i = 0; i < n; i++) {
		TRY(find_ready(p, ready[i], loc, &found, e));
		is_ready[found] = true;
	}
	p->launch.next = next;
	p->launch_loc = loc;
	if (n < 0)
		return OK;
	p->launch.ready.n = 0;
	for (int t = 0; t < tensors; t++)
		if (is_ready[t])
			VEC_PUSH(&p->arena, &p->launch.ready, t);
	return OK;
}

int edge_distance(const struct plan *p, const struct edge *e)
{
	return e->reuse ? e->distance * p->versions[e->buffer] : e->distance;
}

int wait_distance(const struct plan *p, const struct wait *w)
{
	const struct graph *g = p->graph;
	int best = NONE;

	if (w->distance != DISTANCE_AUTO)
		return w->distance;
	for (int i = g->first_in[w->task]; i != NONE; i = g->next_in.v[i]) {
		int d = edge_distance(p, &g->edges.v[i]);

		if (g->edges.v[i].from == w->on && (best == NONE || d < best))
			best = d;
	}
	return best == NONE ? 0 : best;
}

/* Is the sTask a product that contracts the buffer as its first operand? */
static bool is_first_operand(const struct graph *g, const struct stask *s, int buffer)
{
	const struct buffer *b = &g->buffers.v[buffer];
	const struct node *n;

	if (s->kind != TASK_MMA || !b->matrix_a || !stask_reads(s, buffer))
		return false;
	n = stask_last_node(g, s);
	if (b->node != NONE)
		return b->node == product_operand(g->program, n, 0);
	n = &g->program->nodes.v[n->arg[0]];
	return n->op == OP_GET && n->ref == b->carry;
}

enum scope plan_scope(const struct plan *p, int buffer)
{
	const struct graph *g = p->graph;
	int lane = NONE;

	if (g->buffers.v[buffer].scope == SCOPE_SHARED)
		return SCOPE_SHARED;
	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &g->tasks.v[p->entries.v[i].task];
		const struct seu *unit = &p->device->seu[p->entries.v[i].seu];

		if (s->phase != g->buffers.v[buffer].phase || !stask_touches(s, buffer))
			continue;
		if (lane != NONE && lane != p->entries.v[i].lane)
			return SCOPE_SHARED;
		lane = p->entries.v[i].lane;
		/* a part of the lane has some columns of it alone, if they do not lie as its instructions take them */
		if (is_first_operand(g, s, buffer) && plan_lane_parts(p, lane, s->phase) > 1 &&
		    (unit->async || !stask_makes_operand(g, &g->tasks.v[g->buffers.v[buffer].first])))
			return SCOPE_SHARED;
		/* a thread of a product has its own rows of the result, but needs complete operands */
		if (s->kind == TASK_MMA && unit->kind != SEU_MATRIX &&
		    g->buffers.v[buffer].node != NONE && stask_reads(s, buffer))
			return SCOPE_SHARED;
	}
	return SCOPE_REGISTERS;
}

int plan_eus(const struct plan *p, int phase)
{
	const struct vdevice *d = p->device;
	struct cluster c = plan_cluster(p, phase);
	int64_t groups = p->grid.keep > 1 ? plan_keep(p, phase).groups : c.groups;
	int eus = p->grid.eus ? p->grid.eus : c.size > 2 ? (int)min_i64(d->eus, d->cluster_eus) : d->eus;

	return (int)min_i64(max_i64(eus / c.size, 1), groups) * c.size;
}
