/* From a plan to a kernel: the passes, in order. */
#include "lower/lower.h"

#include "lower/lessons.h"
#include "lower/passes.h"
#include "plan/deal.h"

static enum err_code check_threads(struct kernel *k, struct err *e)
{
	const struct vdevice *d = k->plan->device;

	k->refusal.code = PROBLEM_THREADS;
	if (k->threads <= d->max_threads)
		return OK;
	return err_set(e, ERR_ILLEGAL, NOWHERE, "the lanes, each filled up to whole groups of %d "
		"warps, have %d threads; an EU of '%s' takes %d", k->target->group, k->threads,
		d->name, d->max_threads);
}

static enum err_code check_bytes(struct kernel *k, struct err *e)
{
	const struct vdevice *d = k->plan->device;
	int64_t bytes = k->shared_bytes + k->target->shared.align;

	k->refusal.code = PROBLEM_SHARED_MEMORY;
	if (bytes <= d->shared_bytes)
		return OK;
	return err_set(e, ERR_ILLEGAL, NOWHERE, "the kernel needs %lld bytes of shared memory, '%s' "
		"has %lld", (long long)bytes, d->name, (long long)d->shared_bytes);
}

static int most_tiles(struct kernel *k)
{
	struct arena_mark mark = arena_mark(&k->arena);
	struct dealing d;
	int64_t most = 1;

	plan_deal(&k->arena, k->plan, k->phase, &d);
	for (int i = 0; i < d.eus; i++)
		most = max_i64(most, d.start[i + 1] - d.start[i]);
	arena_reset(&k->arena, mark);
	return (int)most;
}

/* The flags by which lanes see each other, of such a depth that nobody takes a phase for another.
 * The plan's waits may not be enough for that: then one is added that holds back who runs ahead,
 * and as that changes the relation of all events, depths are found anew. Each adds a wait, and the
 * waits are limited. */
static enum err_code lower_waiting(struct kernel *k, struct err *e)
{
	int64_t bytes = k->shared_bytes;
	enum err_code code;
	int unserved;

	TRY(lower_showable_waits(k, e));
	do {
		k->shared_bytes = bytes;
		k->flags.n = 0;
		lower_flags(k);
		lower_cluster(k);
		code = lower_depths(k, &unserved, e);
	} while (unserved != NONE && lower_hold_back(k, unserved));
	return code;
}

/* One attempt, from the plan's waits and the lessons of those before. *wrong: what the check of
 * the kernel that came of it says, or of its room; *counterexample: what may mend it. */
static enum err_code attempt(struct kernel *k, enum err_code *wrong, struct counterexample *counterexample,
	struct err *e)
{
	struct verified v;

	k->lanes.n = k->outboxes.n = k->begins = 0;
	*counterexample = COUNTEREXAMPLE_NONE;
	k->refusal.code = PROBLEM_WAITS;
	TRY(lower_waiting(k, e));
	k->refusal.code = PROBLEM_BARRIERS;
	TRY(lower_lanes(k, e));
	TRY(check_threads(k, e));
	k->refusal.code = PROBLEM_REGISTERS;
	TRY(lower_grant(k, e));
	lower_stores(k);
	*wrong = check_bytes(k, e);
	if (*wrong)
		return OK;
	k->refusal.code = PROBLEM_LAYOUT;
	TRY(lower_body(k, e));
	k->refusal.code = PROBLEM_KERNEL;
	if (k->unproven)
		return OK;
	*wrong = verify(k->role, k->plan, k->phase, &k->arena, &v, e);
	*counterexample = v.counterexample;
	return OK;
}

/* *wrong: what is wrong with the kernel in the end. Why there may be several attempts: lessons.h. */
static enum err_code lower_all(struct kernel *k, enum err_code *wrong, struct err *e)
{
	struct counterexample counterexample;
	int64_t bytes;
	int n = 0;

	k->most_tiles = most_tiles(k);
	k->lessons = ARENA_NEW(&k->arena, struct lessons);
	k->refusal = (struct refusal){ PROBLEM_LAYOUT, NONE };
	TRY(lower_shapes(k, e));
	TRY(lower_rings(k, e));
	bytes = k->shared_bytes;
	lower_own_waits(k);
	do {
		k->shared_bytes = bytes;
		TRY(attempt(k, wrong, &counterexample, e));
	} while (*wrong && ++n < ATTEMPTS_MOST && lessons_add(k, &counterexample));
	if (*wrong)
		return OK;
	k->refusal.code = PROBLEM_REGISTERS;
	*wrong = lower_fit_registers(k, e);
	return OK;
}

/* The same machine, on which values lie in lines. */
static const struct target *in_lines(struct arena *a, const struct target *t)
{
	struct target *x = ARENA_NEW(a, struct target);

	*x = *t;
	x->frag = t->lines;
	return x;
}

/* How a kernel is made. */
struct making {
	bool unproven, lines;
};

static enum err_code lower(struct mem *mem, const struct plan *p, int phase, struct making how,
	struct kernel **out, enum err_code *wrong, struct refusal *why, struct err *e)
{
	struct arena a;
	enum err_code code;

	*wrong = OK;
	arena_init(&a, mem);
	*out = ARENA_NEW(&a, struct kernel);
	(*out)->arena = a;
	(*out)->plan = p;
	(*out)->target = how.lines ? in_lines(&(*out)->arena, target_of(p->device)) : target_of(p->device);
	(*out)->phase = phase;
	(*out)->unproven = how.unproven;
	(*out)->cluster = 1;
	code = lower_all(*out, wrong, e);
	*why = (*out)->refusal;
	if (code) {
		kernel_free(*out);
		*out = NULL;
	}
	return code;
}

enum err_code lower_unchecked(struct mem *mem, const struct plan *p, int phase, struct kernel **out,
	struct err *e)
{
	enum err_code wrong;
	struct refusal why;

	return lower(mem, p, phase, (struct making){ 0 }, out, &wrong, &why, e);
}

static bool has_products(const struct plan *p, int phase)
{
	for (int i = 0; i < p->graph->tasks.n; i++)
		if (p->graph->tasks.v[i].phase == phase && p->graph->tasks.v[i].work.kind == WORK_MMA)
			return true;
	return false;
}

static enum err_code lower_checked(struct mem *mem, const struct plan *p, int phase, struct making how,
	struct kernel **out, struct refusal *why, struct err *e)
{
	enum err_code wrong, code = lower(mem, p, phase, how, out, &wrong, why, e);

	if (!code && wrong) {
		kernel_free(*out);
		*out = NULL;
	}
	return code ? code : wrong;
}

static enum err_code try_lower(struct mem *mem, const struct plan *p, int phase, bool unproven,
	struct kernel **out, struct refusal *why, struct err *e)
{
	enum err_code code;
	struct refusal other;
	struct err others;

	*out = NULL;
	*why = (struct refusal){ PROBLEM_KERNEL, NONE };
	if (!lower_has_target(p->device))
		return err_set(e, ERR_INPUT, NOWHERE, "plans for '%s' are model_only: they are checked, "
			"simulated and searched, but no kernels are printed for it", p->device->name);
	code = lower_checked(mem, p, phase, (struct making){ unproven, false }, out, why, e);
	if (code != ERR_ILLEGAL || (why->code != PROBLEM_REGISTERS && why->code != PROBLEM_LAYOUT) ||
	    has_products(p, phase))
		return code;
	/* a row of few lanes may be too long for their registers, and not for a warp's */
	return lower_checked(mem, p, phase, (struct making){ unproven, true }, out, &other, &others) ? code : OK;
}

enum err_code lower_or_refuse(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct refusal *why, struct err *e)
{
	return try_lower(mem, p, phase, false, out, why, e);
}

const struct pass_info lower_passes[OPTION_COUNT] = {
#define PASS(id, name, optional, needs, promises) { #name, optional, needs, promises },
#include "lower/passes.def"
#undef PASS
	{ "partial_sums", true, "shapes and rings", "the threads of a row each add up their own part of a sum" },
};

enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase, struct kernel **out,
	struct err *e)
{
	struct refusal why;

	return lower_or_refuse(mem, p, phase, out, &why, e);
}

enum err_code lower_for_price(struct mem *mem, const struct plan *p, int phase, struct kernel **out,
	struct err *e)
{
	struct refusal why;

	return try_lower(mem, p, phase, true, out, &why, e);
}

void kernel_free(struct kernel *k)
{
	struct arena a;

	if (!k)
		return;
	a = k->arena;
	arena_release(&a);
}
