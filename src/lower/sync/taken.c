/* Tiles that blocks take by a counter in memory (plan:grid{dynamic=true}).
 *
 * The tiles of the phase have an order, and a block begins with `own` of it that are its own: BLOCK, BLOCK + blocks and so on. One
 * thread of one lane, which asks, takes the number of each further one and hands it to all warps of the block through a ring of
 * numbers in shared memory. At the end of its tile t, from the last of its own on, it writes the number of the block's tile t + 1,
 * and asks for the one behind it, so that a number has as long to come as that lane needs for a tile; the first one, as long as for
 * all of the block's own. A warp that goes on reads its number, and says that it has.
 *
 * Nothing waits for ever: whatever the block does in tile t depends on what it does in tiles up to t, as no lane works on several
 * tiles at a time, and on having read the number of tile t. That is written when the asking lane has ended tile t - 1, and
 * space for it is free when all warps have read the number of tile t - slots, thus ended tile t - slots - 1.
 *
 * A wait for an mbarrier can test only the parity of a phase, so no warp may be two phases behind. None is: a slot is written
 * again only when all warps have read it, and every warp reads every number.
 *
 * Each block stops at the first number behind the last tile. So a launch fetches exactly (tiles that are not blocks' own) +
 * (blocks) numbers. `atom.inc` wraps to 0 after that many, which leaves the counter at 0 for the next launch. */
#include "lower/passes.h"
#include "plan/assign.h"

enum { SLOTS_LEAST = 4, SLOT_BYTES = 4 };

/* The index of the lane that asks: one that loads, as it is ahead of others. NONE: replicas take tiles in round robin, so none of
 * them ends each tile. */
static int asking_lane(const struct kernel *k)
{
	int found = NONE;

	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];

		if (l->replicas > 1)
			continue;
		if (found == NONE)
			found = i;
		for (int x = 0; x < l->entries.n; x++)
			if (stask_at(k, l->entries.v[x].task)->kind == TASK_LOAD)
				return i;
	}
	return found;
}

/* The lane that asks may be ahead of others by as many tiles as a ring has versions. */
static int slots_needed(const struct kernel *k)
{
	int most = SLOTS_LEAST, slots = SLOTS_LEAST;

	for (int i = 0; i < k->rings.n; i++)
		most = (int)max_i64(most, k->rings.v[i].versions);
	while (slots < most + 1)
		slots *= 2;
	return slots;
}

static enum err_code refuse(const struct kernel *k, const char *why, struct err *e)
{
	return err_set(e, ERR_ILLEGAL, k->plan->grid_loc, "tiles cannot be dynamic: %s", why);
}

enum err_code lower_taken(struct kernel *k, struct err *e)
{
	struct role_taken *x = &k->taken;
	int own = plan_own_tiles(&k->arena, k->plan, k->phase);

	*x = (struct role_taken){ .lane = NONE };
	if (!k->plan->grid.dynamic)
		return OK;
	if (k->target->shared.polled)
		return refuse(k, "their numbers go through mbarriers, which the machine does not have", e);
	for (int i = 0; i < k->lanes.n; i++)
		if (shifts_tiles(&k->lanes.v[i]))
			return refuse(k, arena_strf(&k->arena, "lane '%s' has offsets in the tile loop, and works on a tile before the one "
				"in front of it ends", k->plan->lanes.v[k->lanes.v[i].lane].name), e);
	x->lane = asking_lane(k);
	if (x->lane == NONE)
		return refuse(k, "all lanes have replicas, and one lane that has each tile must ask for the next", e);
	x->own = own;
	x->blocks = plan_eus(k->plan, k->phase);
	x->tiles = k->plan->graph->grids[k->phase].total;
	x->slots = slots_needed(k);
	for (int i = 0; i < k->lanes.n; i++)
		x->warps += k->lanes.v[i].warps;
	k->shared_bytes = round_up(k->shared_bytes, k->target->shared.flag);
	x->offset = k->shared_bytes;
	k->shared_bytes += (int64_t)x->slots * (2 * k->target->shared.flag + SLOT_BYTES);
	return OK;
}
