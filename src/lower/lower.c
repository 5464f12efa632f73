/* From a plan to a kernel: the passes, in order. */
#include "lower/lower.h"

#include "lower/passes.h"
#include "lower/protocol.h"

/* What the plan's account of shared memory leaves out: room that fills blocks up. */
static enum err_code check_room(const struct kernel *k, struct err *e)
{
	const struct vdevice *d = k->plan->device;
	int64_t bytes = k->shared_bytes + SLOT_ALIGN;

	return bytes <= d->shared_bytes ? OK : err_set(e, ERR_ILLEGAL, NOWHERE, "with operands "
		"filled up to whole blocks the kernel needs %lld bytes of shared memory, '%s' has "
		"%lld; lower a ring with plan:buffers, or take a smaller tile", (long long)bytes,
		d->name, (long long)d->shared_bytes);
}

enum err_code lower_unchecked(struct mem *mem, const struct plan *p, int phase, struct kernel **out,
	struct err *e)
{
	struct arena a;
	enum err_code code;

	arena_init(&a, mem);
	*out = ARENA_NEW(&a, struct kernel);
	(*out)->arena = a;
	(*out)->plan = p;
	(*out)->phase = phase;
	(*out)->cluster = 1;
	code = lower_shapes(*out, e);
	if (!code)
		code = lower_rings(*out, e);
	if (!code)
		code = lower_flags(*out, e);
	if (!code)
		lower_cluster(*out);
	if (!code)
		code = lower_depths(*out, e);
	if (!code)
		code = lower_lanes(*out, e);
	if (code) {
		kernel_free(*out);
		*out = NULL;
	}
	return code;
}

enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase, struct kernel **out,
	struct err *e)
{
	enum err_code code = lower_unchecked(mem, p, phase, out, e);

	if (!code)
		code = check_room(*out, e);
	if (!code)
		code = protocol_check(*out, NULL, e);
	if (code) {
		kernel_free(*out);
		*out = NULL;
	}
	return code;
}

void kernel_free(struct kernel *k)
{
	struct arena a;

	if (!k)
		return;
	a = k->arena;
	arena_release(&a);
}
