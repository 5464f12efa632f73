/* plan:check: can a plan be lowered to kernels, and what do they take of an EU? */
#include "lower/lower.h"

#include <string.h>

#include "graph/repeats.h"
#include "lower/passes.h"
#include "plan/fit.h"
#include "plan/problem.h"
#include "target/target.h"

bool lower_has_target(const struct vdevice *d)
{
	const struct target *t = target_find(d);

	return t && t->lowers;
}

/* The lane of the sTask with as many warps as the target takes; NULL if it has. */
static const char *warps_text(const struct plan *p, int task, struct arena *a)
{
	int lane = task == NONE ? NONE : p->entries.v[plan_entry_of(p, task)].lane;
	int warps = lane == NONE ? 0 : target_warps(target_of(p->device), lane_warps(p, lane));

	if (lane == NONE || warps == lane_warps(p, lane))
		return NULL;
	return arena_strf(a, "plan:lane(\"%s\", {warps=%d})", p->lanes.v[lane].name, warps);
}

/* The statement by which all values in registers of a lane that live in one region have as many versions. */
static const char *equal_versions_text(const struct plan *p, struct arena *a)
{
	const struct graph *g = p->graph;
	const char *text = "";

	for (int b = 0; b < g->buffers.n; b++) {
		const struct buffer *x = &g->buffers.v[b];
		int most = p->versions[b], lane = p->entries.v[plan_entry_of(p, x->first)].lane;

		for (int c = 0; c < g->buffers.n; c++) {
			const struct buffer *y = &g->buffers.v[c];

			if (y->loop == x->loop && y->phase == x->phase && plan_scope(p, c) == SCOPE_REGISTERS &&
			    p->entries.v[plan_entry_of(p, y->first)].lane == lane && p->versions[c] > most)
				most = p->versions[c];
		}
		if (p->versions[b] > 1 && p->versions[b] < most && plan_scope(p, b) == SCOPE_REGISTERS)
			text = arena_strf(a, script_is_key(x->name) ? "%s%s%s=%d" : "%s%s[\"%s\"]=%d", text,
				*text ? ", " : "", x->name, most);
	}
	return arena_strf(a, "plan:buffers{%s}", text);
}

/* The statement by which no ring that the sTask fills asynchronously has too many versions; NULL: none has. */
static const char *shorter_rings_text(const struct plan *p, int task, struct arena *a)
{
	const struct graph *g = p->graph;
	const char *text = "";

	for (int b = 0; b < g->buffers.n && task != NONE && g->tasks.v[task].kind == TASK_LOAD; b++) {
		int first = g->buffers.v[b].first;
		const struct entry *x = &p->entries.v[plan_entry_of(p, first)];

		if (p->versions[b] > DEPTH_MAX && g->tasks.v[first].kind == TASK_LOAD && p->device->seu[x->seu].async)
			text = arena_strf(a, script_is_key(g->buffers.v[b].name) ? "%s%s%s=%d" : "%s%s[\"%s\"]=%d", text,
				*text ? ", " : "", g->buffers.v[b].name, DEPTH_MAX);
	}
	return *text ? arena_strf(a, "plan:buffers{%s}", text) : NULL;
}

/* What to write instead of a type that no kernel has, as no plan helps; NULL: all types have kernels. */
static const char *type_text(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task == NONE || has_lowering(p, n))
			continue;
		if (n->type == DT_F64)
			return "change the program: f64 is for the interpreter alone, kernels compute in f32";
		if (n->op == OP_LOAD)
			return "change the program: kernels load elements of 4 bits in words of eight; let the tensor be an input whose "
				"last dimension is a multiple of 8";
		return n->op == OP_STORE ?
			"change the program: kernels store elements of 4 bits as bytes of two; let the last dimension of "
			"the output be even" :
				"change the program: convert elements of 4 bits to another type before this";
	}
	return NULL;
}

/* The axis that a reduction or scan of the lane runs along: a tile has all of it, whatever its size. NONE: there is none. */
static int complete_axis_of(const struct plan *p, int lane)
{
	const struct program *q = p->graph->program;

	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *t = &p->graph->tasks.v[p->entries.v[i].task];
		const struct task *made = &q->tasks.v[t->task];

		for (int j = 0; p->entries.v[i].lane == lane && j < made->nodes.n; j++) {
			const struct node *n = &q->nodes.v[made->nodes.v[j]];

			if (n->ref >= 0 && node_goes_along(n, n->ref) && !(n->partial >> n->ref & 1))
				return n->ref;
		}
	}
	return NONE;
}

static const char *fewer_registers_text(const struct plan *p, int task, struct arena *a)
{
	const char *usual = "split the tile over more lanes, take a smaller tile, or give the lane more warps";
	int axis = task == NONE ? NONE : complete_axis_of(p, p->entries.v[plan_entry_of(p, task)].lane);

	if (axis == NONE)
		return usual;
	return arena_strf(a, "%s; each tile has all of '%s', as it is reduced along it: if tile and warps do not help, keep fewer "
		"values (:to \"bf16\"), or reduce in a loop or phase over '%s'", usual, p->graph->program->axes.v[axis].name,
		p->graph->program->axes.v[axis].name);
}

/* Is the location that of the error? */
static bool is_at(const struct srcloc *own, const struct srcloc *loc)
{
	return own->file && loc->file && own->line == loc->line && !strcmp(own->file, loc->file);
}

/* Where the error is about a load that is divided in two; else NULL. */
static const char *divided_load_text(const struct plan *p, const struct srcloc *at, struct arena *a)
{
	const struct graph *g = p->graph;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].staged && is_at(&g->tasks.v[g->buffers.v[i].first].loc, at))
			return arena_strf(a, "leave '%s' one sTask, which writes to shared memory itself: without plan:split_off",
				g->buffers.v[i].name);
	return NULL;
}

static const char *hint_of(const struct plan *p, const struct refusal *why, const struct srcloc *at, struct arena *a)
{
	enum problem_code code = why->code;
	const char *warps = code == PROBLEM_PRODUCT ? warps_text(p, why->task, a) : NULL;
	const char *shorter = code == PROBLEM_WAITS ? shorter_rings_text(p, why->task, a) : NULL;

	if (warps)
		return warps;
	if (code == PROBLEM_PRODUCT)
		return "take another tile, split, or number of warps of the lane; or let CUDA cores do it";
	if (code == PROBLEM_WAITS && shorter)
		return shorter;
	if (code == PROBLEM_WAITS)
		return "wait for an sTask that reads what is loaded, or give the ring fewer versions";
	if (code == PROBLEM_COPIES)
		return why->equal_versions ? equal_versions_text(p, a) :
			"use fewer versions of values in registers (plan:buffers), or smaller offsets (plan:move)";
	if (code == PROBLEM_BARRIERS || code == PROBLEM_THREADS)
		return "use fewer lanes, or give them fewer warps";
	if (code == PROBLEM_SHARED_MEMORY)
		return "give a ring fewer versions with plan:buffers, or take a smaller tile";
	if (code == PROBLEM_REGISTERS)
		return fewer_registers_text(p, why->task, a);
	if (code == PROBLEM_DYNAMIC)
		return "plan:grid{dynamic=false}";
	if (code == PROBLEM_KERNEL)
		return "this is a fault of Millrace; please report it with plan:script()";
	/* PROBLEM_LAYOUT */
	if (divided_load_text(p, at, a))
		return divided_load_text(p, at, a);
	if (type_text(p->graph->program))
		return type_text(p->graph->program);
	return "let another lane make the value, so that it lies in shared memory, or take another tile";
}

/* A location in the program is of no use to somebody who writes a plan for it: that of the entry, or of the plan. */
static void add_refusal(const struct plan *p, const struct refusal *why, const struct err *e, struct arena *a,
	struct problems *out)
{
	struct srcloc at = e->line ? (struct srcloc){ arena_strdup(a, e->file), e->line } : p->made_at, loc = at;

	for (int t = 0; t < p->graph->tasks.n; t++) {
		if (is_at(&p->graph->tasks.v[t].loc, &loc))
			loc = p->entries.v[plan_entry_of(p, why->task == NONE ? t : why->task)].loc;
	}

	problem_add(a, out, why->code, loc, hint_of(p, why, &at, a), "%s", e->msg)->task = why->task;
}

/* Raises the usage to what this kernel takes of an EU, which executes one phase at a time. */
static void raise_usage(const struct kernel *k, struct usage *u)
{
	int64_t registers = 0;
	int flags = 0;

	for (int i = 0; i < k->flags.n; i++)
		flags += k->flags.v[i].depth;
	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];

		registers += (int64_t)l->granted * target_warps(k->target, l->warps) * k->target->warp;
		u->lane_registers[l->lane] = (int)max_i64(u->lane_registers[l->lane], l->needed);
	}
	u->registers = max_i64(u->registers, registers);
	u->threads = (int)max_i64(u->threads, k->threads);
	u->shared_bytes = max_i64(u->shared_bytes, k->shared_bytes + shared_slack(&k->target->shared));
	u->flags = (int)max_i64(u->flags, flags);
	u->named_barriers = (int)max_i64(u->named_barriers, k->lanes.n);	/* one synchronises a lane */
}

/* The extent of the rows of what a ring loads, and the axis that they lie along, whose tile the user can choose; else
 * NONE. rows: or of its columns. */
static int tiled_axis(const struct kernel *k, const struct ring *r, bool rows)
{
	const struct graph *g = k->plan->graph;
	const struct program *p = g->program;
	const struct buffer *b = &g->buffers.v[r->buffer];
	const struct node *n = &p->nodes.v[b->node];
	enum axis_role role;
	int n_side = rows ? r->shape.nrow : r->shape.ncol, found = NONE, rank = p->tensors.v[n->ref].rank;
	int first = rows ? 0 : rank ? rank - 1 : 0, end = rows ? rank - 1 : rank;

	if (n_side > 1)
		return NONE;
	if (n_side == 1)
		found = rows ? r->shape.row[0] : r->shape.col[0];
	/* of one element: the last axis that can have more */
	for (int d = first; d < end && !n_side; d++)
		for (int i = 0; i < n->index[d].n; i++)
			if (!p->axes.v[n->index[d].term[i].axis].single)
				found = n->index[d].term[i].axis;
	if (found == NONE || r->shape.full_axes >> found & 1)
		return NONE;
	role = program_axis_role(p, b->phase, found);
	return role == AXIS_GRID || role == AXIS_LOOP ? found : NONE;
}

/* Does shared memory hold one version of everything of the kernel's phase, if the tile has such an extent? */
static bool tile_fits(const struct kernel *k, int axis, int64_t extent)
{
	const struct graph *g = k->plan->graph;
	int64_t now = g->tiling.extent[axis], sum = 0;

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		bool has = ints_hold(b->axis, b->naxes, axis);

		if (b->phase == k->phase && b->scope == SCOPE_SHARED && b->alias_of == NONE && b->carry == NONE)
			sum += has && now ? b->bytes / now * extent : b->bytes;
	}
	return sum <= k->plan->device->shared_bytes;
}

/* "plan:propagate{m=8}", with what else would help behind it; only that if there is no such axis, or if it has no
 * such extent, or none that fits. */
static const char *with_tile(const struct kernel *k, int axis, int64_t extent, const char *else_do, struct arena *a)
{
	const struct axis *x = axis == NONE ? NULL : &k->plan->graph->program->axes.v[axis];

	if (!x || extent > x->size || extent == k->plan->graph->tiling.extent[axis])
		return else_do;
	if (!tile_fits(k, axis, extent))
		return arena_strf(a, "%s; the copy engine could load a tile of %s=%lld, which does not fit shared memory",
			else_do, x->name, (long long)extent);
	return arena_strf(a, script_is_key(x->name) ? "plan:propagate{%s=%lld}  -- or %s" :
		"plan:propagate{[\"%s\"]=%lld}  -- or %s", x->name, (long long)extent, else_do);
}

/* "bind 'k' with mr.any{max=512, multiple=8}" for an axis whose size is known at launch, with what else would help. */
static const char *with_multiple(const struct kernel *k, const struct axis *x, int64_t multiple, const char *else_do,
	struct arena *a)
{
	const struct axis *axes = k->plan->graph->program->axes.v, *of = x->packs == NONE ? x : &axes[x->packs];

	multiple *= x->packs == NONE ? 1 : x->per;
	of = of->like == NONE ? of : &axes[of->like];
	multiple = of->multiple / gcd_i64(of->multiple, multiple) * multiple;
	return arena_strf(a, "bind '%s' with mr.any{max=%lld, multiple=%lld}, if all its sizes are multiples of that; or %s",
		of->name, (long long)round_up(of->size, multiple), (long long)multiple, else_do);
}

/* Why the copy engine cannot load a tile whose tensor it could load: *why as a part of a sentence, *hint what would
 * change it. */
static void explain_threads(const struct kernel *k, const struct ring *r, const char *more_warps, struct arena *a,
	const char **why, const char **hint)
{
	const struct shared_layout *l = &k->target->shared;
	const struct buffer *b = &k->plan->graph->buffers.v[r->buffer];
	int bits = dtype_bits(b->type), chunk = 8 * l->chunk / bits;
	int row = tiled_axis(k, r, true), col = tiled_axis(k, r, false);
	long long rows = r->shape.rows, cols = r->shape.cols;
	const struct tensor *t = &k->plan->graph->program->tensors.v[k->plan->graph->program->nodes.v[b->node].ref];
	const struct axis *last = t->rank ? &k->plan->graph->program->axes.v[t->dim[t->rank - 1]] : NULL;
	long long wide = l->widest * 8 / bits;

	*why = "the copy engine cannot follow its indices";
	*hint = more_warps;
	switch (r->obstacle) {
	case OBSTACLE_INDICES:
		if (r->panel_cols * bits / 8 % l->copy_align == 0 &&
		    lower_goes_by_rows(k, b, &r->shape, &(enum engine_obstacle){ 0 }))
			*hint = arena_strf(a, "let it copy each row by itself, by plan:move(\"%s\", {by_rows=true}), or %s",
				k->plan->graph->tasks.v[b->first].name, more_warps);
		break;
	case OBSTACLE_ROW_INDICES:
		*why = "the copy engine copies rows one by one only where they are contiguous, along the last dimension of the "
			"tensor";
		break;
	case OBSTACLE_ROW_BYTES:
		*why = arena_strf(a, "the copy engine begins rows at multiples of %d bytes of shared memory, rows of its tile "
			"have %lld", l->copy_align, (long long)(r->panel_cols * bits / 8));
		*hint = with_tile(k, col, round_up(cols, l->copy_align * 8 / bits), more_warps, a);
		break;
	case OBSTACLE_ADDRESSES:
		*why = "the copy engine's map has one address, and the tensor is given by several";
		break;
	case OBSTACLE_ZEROS:
		*why = "there must be zeros beyond the end of an axis that a product contracts, where the copy engine "
			"writes none";
		*hint = arena_strf(a, "take tiles that divide that axis, and are multiples of 32; or %s", more_warps);
		break;
	case OBSTACLE_BEGIN:
		*why = arena_strf(a, "the copy engine begins at multiples of %d bytes, not all of its tiles do",
			l->chunk);
		*hint = with_tile(k, col, round_up(cols, chunk), more_warps, a);
		break;
	case OBSTACLE_ROWS:
		*why = arena_strf(a, "the copy engine takes %d rows, its tile has %lld", l->box_rows, rows);
		*hint = with_tile(k, row, l->box_rows, more_warps, a);
		break;
	case OBSTACLE_CHUNKS:
		*why = arena_strf(a, "rows of its tile have %lld bytes, the copy engine takes multiples of %d",
			cols * bits / 8, l->chunk);
		*hint = with_tile(k, col, round_up(cols, chunk), more_warps, a);
		break;
	case OBSTACLE_LAUNCH:
		*why = arena_strf(a, "its rows may have only %lld elements at launch, boxes of the copy engine with the layout that "
			"readers need have more", (long long)last->multiple);
		*hint = with_multiple(k, last, l->narrowest * 8 / bits, more_warps, a);
		break;
	case OBSTACLE_LAYOUT:
		*why = "the copy engine cannot write the layout that readers need";
		*hint = arena_strf(a, "take another tile, or %s", more_warps);
		break;
	case OBSTACLE_COLS:
		*why = arena_strf(a, "rows of more than %d elements are loaded in parts of a multiple of %lld, its tile has "
			"%lld", l->box_cols, wide, cols);
		*hint = with_tile(k, col, round_up(cols, wide), more_warps, a);
		if (col == NONE || round_up(cols, wide) > axis_divisor(&k->plan->graph->program->axes.v[col]))
			*hint = arena_strf(a, "pad rows with zeros to a multiple of %lld elements, or %s", wide,
				more_warps);
		break;
	}
}

/* Why the engine cannot load the complete tiles of a loop whose length ends within one, and what to change. */
static void explain_end(const struct kernel *k, enum end_obstacle obstacle, int axis, int64_t multiple,
	const char *more_warps, struct arena *a, const char **why, const char **hint)
{
	const char *name = k->plan->graph->program->axes.v[axis].name;

	switch (obstacle) {
	case END_LOOP:
		*why = arena_strf(a, "as the loop over '%s', which has the length, is not the one that it is loaded in", name);
		*hint = arena_strf(a, "load it in the loop over '%s', or %s", name, more_warps);
		break;
	case END_TILE:
		*why = arena_strf(a, "as its tile of '%s' is no multiple of the %lld elements that a matrix instruction "
			"contracts", name, (long long)multiple);
		*hint = arena_strf(a, "take a tile of '%s' that is a multiple of %lld, or %s", name, (long long)multiple,
			more_warps);
		break;
	case END_CLUSTER:
		*why = "as the blocks of a cluster load together";
		*hint = arena_strf(a, "leave out cluster= of plan:grid{}, or %s", more_warps);
		break;
	case END_NONE:
		break;
	}
}

/* Adds a note to a load that the plan gives to the copy engine but threads copy: why, and what to change. */
static void note_load(const struct kernel *k, int task, struct arena *a, struct problems *out)
{
	const struct graph *g = k->plan->graph;
	const struct stask *s = &g->tasks.v[task];
	const struct tensor *x = &g->program->tensors.v[last_node_of(k, s)->ref];
	const struct axis *last = x->rank ? &g->program->axes.v[x->dim[x->rank - 1]] : NULL;
	int chunk = k->target->shared.chunk, bits = dtype_bits(x->type);
	struct problem n = { .code = NOTE_BY_THREADS, .task = task, .other = NONE, .edge = NONE,
		.loc = k->plan->entries.v[plan_entry_of(k->plan, task)].loc };
	int width = lower_copy_width(k, task) * bits / 8, axis;
	enum end_obstacle obstacle;
	int64_t multiple;
	const char *by_threads = arena_strf(a, "'%s' is copied by the threads of its lane, %s", s->name,
		width >= 4 ? arena_strf(a, "%d bytes at a time", width) : "through registers");
	const char *more_warps = arena_strf(a, "give lane '%s' more warps",
		k->plan->lanes.v[k->plan->entries.v[plan_entry_of(k->plan, task)].lane].name), *why = "";

	if (last && last->multiple && last->multiple * bits % (8 * chunk)) {
		int least = lower_is_shared_operand(k, s->writes.v[0]) ? (int)max_i64(chunk, k->target->shared.narrowest) : chunk;

		n.message = arena_strf(a, "%s: its rows may have any multiple of %lld bytes at launch, the copy engine takes "
			"multiples of %d", by_threads, (long long)(last->multiple * bits / 8), chunk);
		n.hint = with_multiple(k, last, 8 * least / bits, more_warps, a);
	} else if (last && last->size * bits % (8 * chunk)) {
		n.message = arena_strf(a, "%s: rows of '%s' have %lld bytes, the copy engine takes multiples of %d",
			by_threads, x->name, (long long)(last->size * bits / 8), chunk);
		n.hint = arena_strf(a, "pad axis '%s' with zeros to a multiple of %d, or %s", last->name,
			8 * chunk / bits, more_warps);
	} else if ((obstacle = lower_end_obstacle(k, &g->buffers.v[s->writes.v[0]], &axis, &multiple)) != END_NONE) {
		explain_end(k, obstacle, axis, multiple, more_warps, a, &why, &n.hint);
		n.message = arena_strf(a, "%s: the copy engine does not write zeros behind the length of the loop, and threads "
			"cannot do it for it alone where the length ends, %s", by_threads, why);
	} else {
		explain_threads(k, &k->rings.v[k->ring_of[s->writes.v[0]]], more_warps, a, &why, &n.hint);
		n.message = arena_strf(a, "%s: %s", by_threads, why);
	}
	VEC_PUSH(a, &out->notes, n);
}

/* Adds a note to a load that the plan gives to a unit which copies without registers, but which goes through them. */
static void note_dma(const struct kernel *k, int task, enum dma_obstacle obstacle, struct arena *a, struct problems *out)
{
	const struct stask *s = stask_at(k, task);
	const struct lane *lane = &k->plan->lanes.v[lane_of(k, task)];
	int bytes = k->target->dma_bytes;
	struct problem n = { .code = NOTE_BY_THREADS, .task = task, .other = NONE, .edge = NONE,
		.loc = k->plan->entries.v[plan_entry_of(k->plan, task)].loc };
	const char *why[] = {
		[DMA_ADDRESSES] = "its tensor is given by several addresses",
		[DMA_WORDS] = arena_strf(a, "%d bytes are not neighbours in memory and in the tile, or do not begin at multiples of "
			"%d", bytes, bytes),
		[DMA_SIZE] = "its tensor has 2 GiB or more",
		[DMA_PANELS] = "its tile does not fill the rows of its slot",
		[DMA_PARTS] = arena_strf(a, "the warps of lane '%s' do not have equally many copies of %d bytes", lane->name,
			bytes * k->target->warp),
	};

	n.message = arena_strf(a, "'%s' is copied by way of registers: %s", s->name, why[obstacle]);
	if (obstacle == DMA_PARTS)
		n.hint = arena_strf(a, "give lane '%s' another number of warps, or take another tile", lane->name);
	VEC_PUSH(a, &out->notes, n);
}

static void note_loads(const struct kernel *k, struct arena *a, struct problems *out)
{
	const struct graph *g = k->plan->graph;

	for (int t = 0; t < g->tasks.n; t++)
		if (g->tasks.v[t].phase == k->phase && lower_dma_obstacle(k, t) > DMA_UNIT)
			note_dma(k, t, lower_dma_obstacle(k, t), a, out);

	/* without an engine for boxes, all loads are copied by threads */
	for (int t = 0; t < g->tasks.n && k->target->shared.box_rank; t++)
		if (g->tasks.v[t].phase == k->phase && is_async_load(k, t) &&
		    !k->rings.v[k->ring_of[g->tasks.v[t].writes.v[0]]].engine)
			note_load(k, t, a, out);
}

/* Adds notes on what several tiles load and compute alike. */
static void note_repeats(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct program *prog = p->graph->program;

	for (int phase = 0; phase < prog->phases.n; phase++)
		for (int i = 0; i < prog->axes.n; i++) {
			const char *text = graph_repeats_text(p->graph, phase, i, a);
			struct problem n = { .code = NOTE_REPEATED, .task = NONE, .other = NONE, .edge = NONE,
				.loc = p->made_at, .message = text };

			if (!text)
				continue;
			n.hint = arena_strf(a, "let a tile have all of '%s' (%lld), and less of other axes if that is "
				"too large; or reduce it in a loop over '%s'", prog->axes.v[i].name,
				(long long)prog->axes.v[i].size, prog->axes.v[i].name);
			VEC_PUSH(a, &out->notes, n);
		}
}

/* Adds notes on products that the plan gives to a vector unit, and that a matrix unit would do in less than half of the
 * cycles. Whether it has an instruction for the tile is not known: trying it is. */
static void note_products(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct vdevice *d = p->device;
	struct pace pace = { .active = d->eus, .clock_hz = d->clock_hz };

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];
		const struct stask *s = &p->graph->tasks.v[e->task];
		int warps = lane_warps(p, e->lane), best = device_seu_for(d, &s->work);
		struct problem n = { .code = NOTE_ON_VECTOR_UNIT, .task = e->task, .other = NONE, .edge = NONE, .loc = e->loc };
		double now, other;

		if (s->kind != TASK_MMA || best == NONE || d->seu[best].kind != SEU_MATRIX || d->seu[e->seu].kind == SEU_MATRIX)
			continue;
		now = device_cost(d, e->seu, &s->work, warps, pace).busy;
		other = device_cost(d, best, &s->work, warps, pace).busy;
		if (now < 2 * other)
			continue;
		n.message = arena_strf(a, "'%s' is multiplied on sEU '%s', in %.0f cycles; '%s' would take %.0f", s->name,
			d->seu[e->seu].name, now, d->seu[best].name, other);
		n.hint = arena_strf(a, "plan:move(\"%s\", {seu=\"%s\"})", s->name, d->seu[best].name);
		VEC_PUSH(a, &out->notes, n);
	}
}

enum err_code lower_check_plan(const struct plan *p, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *u, struct err *e)
{
	if (!lower_has_target(p->device))
		return plan_check(p, a, stop, out, u, e);
	TRY(plan_check_order(p, a, stop, out, NULL, e));	/* registers are not estimated: kernels say them exactly */
	*u = (struct usage){ 0 };
	if (p->lanes.n && !problems_have(out, PROBLEM_DUPLICATE_TASK))	/* if rings alone do not fit, say which one is large before lowering fails */
		fit_memory(p, a, out, u);
	return OK;
}

enum err_code lower_check(struct mem *mem, const struct plan *p, struct arena *a, const struct stop *stop,
	struct kernel **held, struct problems *out, struct usage *usage, bool *model_only, struct err *e)
{
	struct usage u;

	*held = NULL;
	*model_only = !lower_has_target(p->device);
	TRY(lower_check_plan(p, a, stop, out, &u, e));
	for (int phase = 0; phase < p->graph->program->phases.n && !*model_only && !out->v.n; phase++) {
		struct refusal why;
		enum err_code code = lower_or_refuse(mem, p, phase, false, stop, held, &why, e);

		if (code && code != ERR_ILLEGAL)
			return code;
		if (code) {
			add_refusal(p, &why, e, a, out);
			u.shared_bytes = max_i64(u.shared_bytes, why.shared_bytes);
		} else {
			raise_usage(*held, &u);
			note_loads(*held, a, out);
		}
		kernel_free(*held);
		*held = NULL;
	}
	if (!out->v.n)
		note_products(p, a, out);
	note_repeats(p, a, out);
	if (!out->v.n)
		note_tied(p, a, out);
	if (usage)
		*usage = u;
	return OK;
}
