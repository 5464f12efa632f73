/* From a plan to a kernel: with or without verify, and with one of two layouts of fragments. */
#include "lower/lower.h"

#include "lower/passes.h"
#include "lower/refine.h"

/* How a kernel is made: without verify; with values spread over threads by lines. */
struct lower_options {
	bool unproven, lines;
	const struct stop *stop;
};

static enum err_code lower(struct mem *mem, const struct plan *p, int phase, struct lower_options how,
	struct kernel **out, enum err_code *wrong, struct refusal *why, struct err *e)
{
	const struct target *t = target_of(p->device);
	struct target *lines;
	enum err_code code;

	*wrong = OK;
	*out = ARENA_OWNER(mem, struct kernel);
	(*out)->plan = p;
	(*out)->target = t;
	if (how.lines) {
		(*out)->target = lines = arena_copy(&(*out)->arena, t, 1, sizeof(*t));
		lines->frag = t->lines;
	}
	(*out)->phase = phase;
	(*out)->unproven = how.unproven;
	(*out)->stop = how.stop;
	(*out)->cluster = 1;
	code = lower_refined(*out, wrong, e);
	*why = (*out)->refusal;
	if (stop_asked(how.stop))	/* what ended early for it may have left anything */
		code = err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	if (code) {
		kernel_free(*out);
		*out = NULL;
	}
	return code;
}

enum err_code lower_unchecked(struct mem *mem, const struct plan *p, int phase, struct kernel **out, struct err *e)
{
	enum err_code wrong;
	struct refusal why;

	return lower(mem, p, phase, (struct lower_options){ 0 }, out, &wrong, &why, e);
}

static bool has_products(const struct plan *p, int phase)
{
	for (int i = 0; i < p->graph->tasks.n; i++)
		if (p->graph->tasks.v[i].phase == phase && p->graph->tasks.v[i].work.kind == WORK_MMA)
			return true;
	return false;
}

static enum err_code lower_checked(struct mem *mem, const struct plan *p, int phase, struct lower_options how,
	struct kernel **out, struct refusal *why, struct err *e)
{
	enum err_code wrong, code = lower(mem, p, phase, how, out, &wrong, why, e);

	if (!code && wrong) {
		kernel_free(*out);
		*out = NULL;
	}
	return code ? code : wrong;
}

enum err_code lower_or_refuse(struct mem *mem, const struct plan *p, int phase, bool unproven,
	const struct stop *stop, struct kernel **out, struct refusal *why, struct err *e)
{
	enum err_code code;
	enum err_code other_code;
	struct refusal other;
	struct err other_error;

	*out = NULL;
	*why = (struct refusal){ .code = PROBLEM_KERNEL, .task = NONE };
	if (!lower_has_target(p->device))
		return err_set(e, ERR_INPUT, NOWHERE, "plans for '%s' are model_only: they are checked, "
			"simulated and searched, but no kernels are printed for it", p->device->name);
	code = lower_checked(mem, p, phase, (struct lower_options){ unproven, false, stop }, out, why, e);
	if (code != ERR_ILLEGAL || (why->code != PROBLEM_REGISTERS && why->code != PROBLEM_LAYOUT) ||
	    has_products(p, phase))
		return code;
	/* a row that is spread over few threads may need too many registers of each; in lines, all of a warp share
	 * it */
	other_code = lower_checked(mem, p, phase, (struct lower_options){ unproven, true, stop }, out, &other,
		&other_error);
	if (other_code == ERR_INTERRUPTED)
		*e = other_error;
	return !other_code || other_code == ERR_INTERRUPTED ? other_code : code;
}

const struct pass_info lower_passes[OPTION_COUNT] = {
#define PASS(id, name, optional, needs, promises) { #name, optional, needs, promises },
#include "lower/passes.def"
#undef PASS
	{ "partial_sums", true, "shapes and rings", "the threads of a row each add up their own part of a sum" },
};

enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase, const struct stop *stop,
	struct kernel **out, struct err *e)
{
	struct refusal why;

	return lower_or_refuse(mem, p, phase, false, stop, out, &why, e);
}

enum err_code lower_for_price(struct mem *mem, const struct plan *p, int phase, const struct stop *stop,
	struct kernel **out, struct err *e)
{
	struct refusal why;

	return lower_or_refuse(mem, p, phase, true, stop, out, &why, e);
}

void kernel_free(struct kernel *k)
{
	if (k)
		arena_release(&k->arena);
}
