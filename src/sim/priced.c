/* Makes the kernels of a plan for their price, and frees them after the simulation. */
#include "sim/priced.h"

#include "lower/lower.h"
#include "plan/sized.h"

enum { MANY = 64 };			/* registers of a thread that make a lane count */

struct kernels {
	struct arena arena;
	int nphases;
	struct kernel **of;		/* by phase */
	struct price price;
};

static void kernels_new(struct mem *mem, const struct plan *p, struct kernels **out)
{
	struct kernels *k = *out = ARENA_OWNER(mem, struct kernels);
	k->of = ARENA_ARRAY(&k->arena, p->graph->program->phases.n, struct kernel *);
	k->nphases = p->graph->program->phases.n;
	price_init(&k->arena, p, &k->price);
}

void kernels_free(struct kernels *k)
{
	if (!k)
		return;
	for (int i = 0; i < k->nphases; i++)
		kernel_free(k->of[i]);
	arena_release(&k->arena);
}

static enum err_code lower_phases(struct mem *mem, const struct plan *p, const struct plan *at, bool rough,
	const struct stop *stop,
	struct kernels *k, int64_t *shared_bytes, struct err *e)
{
	*shared_bytes = 0;
	for (int i = 0; i < k->nphases; i++) {
		if (rough)
			TRY(lower_for_price(mem, p, i, stop, &k->of[i], shared_bytes, e));
		else
			TRY(lower_plan(mem, p, i, stop, &k->of[i], e));
		price_add(&k->price, at ? plan_at_same_sizes(&k->arena, k->of[i]->plan, at) : k->of[i]->plan, i,
			k->of[i]->role);
	}
	return OK;
}

/* The least number of registers that values leave to a thread, for addresses and the compiler's temporaries, over
 * the lanes that need many. */
static int spare_registers(const struct kernels *k)
{
	int least = INT32_MAX;

	for (int i = 0; i < k->nphases; i++)
		for (int l = 0; l < k->of[i]->lanes.n; l++) {
			const struct klane *x = &k->of[i]->lanes.v[l];

			if (x->needed_apart > MANY)
				least = (int)min_i64(least, x->granted - x->needed_apart);
		}
	return least;
}

enum err_code priced_run(struct mem *mem, const struct plan *p, const struct plan *at, const struct sim_options *o,
	const struct stop *stop, struct kernels **k, struct timeline **out, struct err *e)
{
	struct sim_options with = o ? *o : (struct sim_options){ .keep = -1 };
	struct err why;
	int64_t shared_bytes;

	kernels_new(mem, p, k);
	enum err_code code = lower_phases(mem, p, at, with.rough, stop, *k, &shared_bytes, &why);

	with.price = code ? NULL : &(*k)->price;
	if (code == ERR_INTERRUPTED)
		*e = why;
	else
		code = sim_run(mem, at ? at : p, &with, stop, out, e);
	if (!code && !with.price)
		(*out)->unpriced = arena_strf(&(*out)->arena, "%s", why.msg);
	if (!code)
		(*out)->unpriced_bytes = shared_bytes;
	if (!code && with.price)
		(*out)->spare_registers = spare_registers(*k);
	kernels_free(*k);
	*k = NULL;
	return code;
}
