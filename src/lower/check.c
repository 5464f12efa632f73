/* plan:check: can a plan be lowered to kernels, and what do they take of an EU? */
#include "lower/lower.h"

#include <string.h>

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

static const char *hint_of(const struct plan *p, const struct refusal *why, struct arena *a)
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
		return "split the tile over more lanes, take a smaller tile, or give the lane more warps";
	if (code == PROBLEM_KERNEL)
		return "this is a fault of Millrace; please report it with plan:script()";
	/* PROBLEM_LAYOUT */
	return "let another lane make the value, so that it lies in shared memory, or take another tile";
}

/* A location in the program is of no use to somebody who writes a plan for it: that of the entry, or of the plan. */
static void add_refusal(const struct plan *p, const struct refusal *why, const struct err *e, struct arena *a,
	struct problems *out)
{
	struct srcloc loc = e->line ? (struct srcloc){ arena_strdup(a, e->file), e->line } : p->made_at;

	for (int t = 0; t < p->graph->tasks.n; t++) {
		struct srcloc own = p->graph->tasks.v[t].loc;

		if (own.file && loc.file && own.line == loc.line && !strcmp(own.file, loc.file))
			loc = p->entries.v[plan_entry_of(p, why->task == NONE ? t : why->task)].loc;
	}

	problem_add(a, out, why->code, loc, hint_of(p, why, a), "%s", e->msg)->task = why->task;
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

		registers += (int64_t)l->given * target_warps(k->target, l->warps) * k->target->warp;
		u->lane_registers[l->lane] = (int)max_i64(u->lane_registers[l->lane], l->needed);
	}
	u->registers = max_i64(u->registers, registers);
	u->threads = (int)max_i64(u->threads, k->threads);
	/* `align` more, because the kernel aligns the memory that it is given */
	u->shared_bytes = max_i64(u->shared_bytes, k->shared_bytes + k->target->shared.align);
	u->flags = (int)max_i64(u->flags, flags);
	u->named_barriers = (int)max_i64(u->named_barriers, k->lanes.n);	/* one synchronises a lane */
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
	int width = lower_copy_width(k, task) * bits / 8;
	const char *by_threads = arena_strf(a, "'%s' is copied by the threads of its lane, %s", s->name,
		width >= 4 ? arena_strf(a, "%d bytes at a time", width) : "through registers");

	if (last && last->size * bits % (8 * chunk)) {
		n.message = arena_strf(a, "%s: rows of '%s' have %lld bytes, the copy engine takes multiples of %d",
			by_threads, x->name, (long long)(last->size * bits / 8), chunk);
		n.hint = arena_strf(a, "pad axis '%s' with zeros to a multiple of %d, or give lane '%s' more warps", last->name,
			8 * chunk / bits, k->plan->lanes.v[k->plan->entries.v[plan_entry_of(k->plan, task)].lane].name);
	} else if (lower_ends_by_length(k, &g->buffers.v[s->writes.v[0]])) {
		n.message = arena_strf(a, "%s: the copy engine does not write zeros behind the length of the loop, and threads "
			"of several warps, or tiles that are no multiple of what a matrix instruction takes, cannot do it for it",
			by_threads);
		n.hint = "give the lane one warp, or take a tile that is a multiple of 32";
	} else {
		n.message = arena_strf(a, "%s: the copy engine cannot follow its indices, or "
			"cannot write the layout that readers need", by_threads);
		n.hint = "take another tile, or give the lane more warps";
	}
	VEC_PUSH(a, &out->notes, n);
}

static void note_loads(const struct kernel *k, struct arena *a, struct problems *out)
{
	const struct graph *g = k->plan->graph;

	for (int t = 0; t < g->tasks.n; t++)
		if (g->tasks.v[t].phase == k->phase && is_async_load(k, t) &&
		    !k->rings.v[k->ring_of[g->tasks.v[t].writes.v[0]]].engine)
			note_load(k, t, a, out);
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
	if (usage)
		*usage = u;
	return OK;
}
