/* Registers: how many the threads of each lane are granted (setmaxnreg), and whether their values fit. */
#include "lower/passes.h"
#include "role/live.h"

/* The registers that the plan asks for, rounded down to the granularity of the machine. */
static int round_grant(const struct granting *g, int registers)
{
	return registers ? (int)max_i64(registers / g->step * g->step, g->least) : 0;
}

static int groups_of(const struct kernel *k, const struct klane *l)
{
	return target_warps(k->target, l->warps) / k->target->group;
}

int lower_launched(const struct kernel *k)
{
	int64_t step = max_i64(k->target->registers.step, k->plan->device->register_step);

	return (int)(device_launched_registers(k->plan->device, k->threads) / step * step);
}

static enum lane_work find_work(const struct kernel *k, const struct klane *l)
{
	enum lane_work work = LANE_ISSUES;

	for (int i = 0; i < l->entries.n; i++) {
		const struct stask *s = stask_at(k, l->entries.v[i].task);

		if (s->kind == TASK_MMA || s->kind == TASK_COMPUTE)
			return LANE_COMPUTES;
		for (int b = 0; b < s->reads.n; b++)
			if (k->ring_of[s->reads.v[b]] == NONE)
				return LANE_COMPUTES;
		for (int b = 0; b < s->writes.n; b++)
			if (k->ring_of[s->writes.v[b]] == NONE || !k->rings.v[k->ring_of[s->writes.v[b]]].engine)
				work = LANE_COPIES;
		if (s->kind == TASK_STORE && l->entries.v[i].outbox == NONE)
			work = LANE_COPIES;
	}
	return work;
}

/* Which lanes share the registers that remain once the plan's numbers and the fixed grants of other lanes are subtracted:
 * those that compute; if there are none, those that copy. */
static enum lane_work sharing_work(const struct kernel *k)
{
	for (int i = 0; i < k->lanes.n; i++)
		if (k->lanes.v[i].work == LANE_COMPUTES)
			return LANE_COMPUTES;
	return LANE_COPIES;
}

/* Grants each lane the registers that the plan asks for. A lane for which the plan asks for none gets few if its work does
 * not need many, or else an equal share of the remainder, unless an earlier attempt has found how much each lane needs
 * (lower_share_by_need). `pool` is what all threads have at launch, in registers of a thread times groups of warps:
 * setmaxnreg for more than that would never return. */
static void share_pool(struct kernel *k, int pool)
{
	const struct granting *r = &k->target->registers;
	int taken = 0, groups[LANE_COMPUTES + 1] = { 0 }, few;
	enum lane_work sharing = sharing_work(k);
	int copying = k->copying_registers ? k->copying_registers : r->producer;

	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *x = &k->lanes.v[i];

		taken += groups_of(k, x) * round_grant(r, x->registers);
		if (!x->registers)
			groups[x->work] += groups_of(k, x);
	}
	taken += sharing == LANE_COMPUTES ? groups[LANE_COPIES] * copying : 0;
	few = taken + groups[LANE_ISSUES] * r->producer + groups[sharing] * r->most > pool ? r->least : r->producer;
	taken += groups[LANE_ISSUES] * few;
	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *x = &k->lanes.v[i];

		if (x->registers)
			x->granted = round_grant(r, x->registers);
		else if (x->work != sharing)
			x->granted = x->work == LANE_COPIES ? copying : few;
		else if (k->share_of[x->lane])
			x->granted = k->share_of[x->lane];
		else
			x->granted = (int)min_i64((pool - taken) / groups[sharing] / r->step * r->step, r->most);
	}
}

/* The location of a lane whose registers the plan says, for messages. */
static struct srcloc location_of_grant(const struct kernel *k)
{
	struct srcloc loc = k->plan->lanes.v[k->lanes.v[k->lanes.n - 1].lane].loc;

	for (int i = 0; i < k->lanes.n; i++)
		if (k->lanes.v[i].registers)
			loc = k->plan->lanes.v[k->lanes.v[i].lane].loc;
	return loc;
}

enum err_code lower_grant(struct kernel *k, struct err *e)
{
	const struct vdevice *d = k->plan->device;
	int groups = k->threads / (k->target->group * k->target->warp), sum = 0;
	bool least = true;

	for (int i = 0; i < k->lanes.n; i++) {
		k->lanes.v[i].work = find_work(k, &k->lanes.v[i]);
		k->lanes.v[i].granted = (int)min_i64(lower_launched(k), d->thread_registers);
	}
	k->shares_registers = groups > 1 && k->target->registers.step;
	if (!k->shares_registers)
		return OK;
	share_pool(k, lower_launched(k) * groups);
	for (int i = 0; i < k->lanes.n; i++) {
		sum += groups_of(k, &k->lanes.v[i]) * k->lanes.v[i].granted;
		least &= k->lanes.v[i].granted >= k->target->registers.least;
	}
	if (!least)			/* the plan's numbers leave too few for the other lanes */
		return err_set(e, ERR_ILLEGAL, location_of_grant(k), "the lanes whose registers the plan "
			"says leave less than %d a thread for others", k->target->registers.least);
	if (sum <= lower_launched(k) * groups)
		return OK;
	return err_set(e, ERR_ILLEGAL, location_of_grant(k), "the lanes need %d registers, an EU of '%s' has "
		"%d for %d threads", sum * k->target->group * k->target->warp, d->name,
		lower_launched(k) * k->threads, k->threads);
}

/* Counts the registers that a thread of the lane needs: for values, for addresses of slots, and what the device reserves
 * for the compiler's temporaries. */
static void count_needed(struct kernel *k, int lane)
{
	const struct role *r = &k->role->roles.v[lane];
	struct arena_mark mark = arena_mark(&k->arena);
	int others = k->plan->device->reserved_registers;

	if (k->lanes.v[lane].work == LANE_COMPUTES)
		others += role_slot_words(r, &k->arena);
	arena_reset(&k->arena, mark);
	k->lanes.v[lane].needed = r->words + others;
	/* words_apart leaves out nothing that takes many registers, so half of the reserved ones are enough */
	k->lanes.v[lane].needed_apart = (int)max_i64(r->words + others,
		r->words_apart + others - k->plan->device->reserved_registers / 2);
}

/* Does the lane get a share of the registers that remain? Else the plan or the lane's work decides how many it gets. */
static bool has_share(const struct kernel *k, const struct klane *l)
{
	return !l->registers && l->work == sharing_work(k);
}

/* What the lane needs, rounded up to what can be granted. */
static int64_t need_in_steps(const struct kernel *k, const struct klane *l)
{
	return max_i64(round_up(l->needed, k->target->registers.step), k->target->registers.least);
}

/* Lanes that copy keep fewer registers than usual if those that compute lack no more. */
static bool take_from_copying(struct kernel *k)
{
	const struct granting *r = &k->target->registers;
	int64_t groups = 0, missing = -(int64_t)lower_launched(k) * (k->threads / (k->target->group * k->target->warp));
	int less;

	if (k->copying_registers || sharing_work(k) != LANE_COMPUTES)
		return false;
	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];

		missing += groups_of(k, l) * max_i64(l->granted, has_share(k, l) ? need_in_steps(k, l) : 0);
		if (has_share(k, l))
			continue;
		if (!l->registers && l->work == LANE_COPIES)
			groups += groups_of(k, l);
	}
	if (missing <= 0 || !groups)
		return false;
	less = (int)round_up(ceil_div(missing, groups), r->step);
	if (r->producer - less < r->least)
		return false;
	k->copying_registers = r->producer - less;
	return true;
}

bool lower_share_by_need(struct kernel *k)
{
	const struct granting *r = &k->target->registers;
	int64_t pool = 0, needed = 0, groups = 0;
	bool is_short = false, has_spare = false;

	if (!k->shares_registers)
		return false;
	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];

		if (!has_share(k, l))
			continue;
		if (k->share_of[l->lane])
			return false;
		is_short |= l->needed > l->granted;
		has_spare |= l->needed <= l->granted / 2;
		pool += groups_of(k, l) * l->granted;
		needed += groups_of(k, l) * need_in_steps(k, l);
		groups += groups_of(k, l);
	}
	if (!is_short || !has_spare || needed > pool)
		return is_short && take_from_copying(k);
	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];
		int64_t more = has_share(k, l) ? (pool - needed) / groups / r->step * r->step : 0;

		if (has_share(k, l))
			k->share_of[l->lane] = (int)min_i64(need_in_steps(k, l) + more, r->most);
	}
	return true;
}

/* Two kinds of lanes may need more registers than the few that share_pool gives them:
 *
 *  - Threads that copy compute addresses, and bounds where a tile is ragged, for several accesses at once. Compiled
 *    kernels used up to 56 registers for that.
 *  - Threads that issue loads of many boxes compute the coordinates of several at once, for which the least that can be
 *    granted is too little. A store of many panels did not need more.
 *
 * They get more from the lanes that share the remainder if those keep what they need and a tenth more, as compilers
 * use more than the count says, or more what the plan leaves to the compiler (`spare`). They also keep what they need if
 * operands are copies (needed_apart), without which the search refuses a plan. */
enum { COPY_REGISTERS = 56, BOXES_FEW = 4, RESERVE_DIVISOR = 10 };

/* The number of boxes of the load that has most of them. */
static int most_boxes_of_load(const struct role_body *b)
{
	int64_t most = 0;

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_LOAD_BOXES)
			most = max_i64(most, o->u.boxes.boxes.n);
		if (role_is_region(o->what))
			most = max_i64(most, max_i64(most_boxes_of_load(&o->u.region.body),
				most_boxes_of_load(&o->u.region.other)));
	}
	return (int)most;
}

/* How many more registers each thread of the lane can use; 0 if the lane has a share of the remainder, or the plan's
 * number. */
static int more_wanted(const struct kernel *k, int lane)
{
	const struct granting *r = &k->target->registers;
	const struct klane *l = &k->lanes.v[lane];

	if (l->registers || has_share(k, l))
		return 0;
	if (l->work == LANE_COPIES)
		return (int)max_i64(COPY_REGISTERS - l->granted, 0);
	if (l->granted >= r->producer || most_boxes_of_load(&k->role->roles.v[lane].body) <= BOXES_FEW)
		return 0;
	return r->producer - l->granted;
}

/* Do the lanes that share the remainder keep enough if each thread gives up so many registers? */
static bool can_give_up(const struct kernel *k, int registers)
{
	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];
		int64_t keeps = max_i64(l->needed + max_i64(l->needed / RESERVE_DIVISOR, l->spare), l->needed_apart);

		if (l->work == LANE_COPIES)	/* `needed` counts no addresses of copies */
			keeps = max_i64(keeps, COPY_REGISTERS);
		if (has_share(k, l) && keeps > l->granted - registers)
			return false;
	}
	return true;
}

/* The operations that grant the lane its registers. */
static void set_grants(const struct role_body *b, int given, int launched)
{
	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];

		if (o->what == DO_REGISTERS) {
			o->u.registers.n = given;
			o->u.registers.more = given > launched;
		}
	}
}

/* How many registers each thread of the lanes that share the remainder, `sharing` groups of warps, gives up so that all
 * others get what they want less `withheld`; 0: nobody wants more than that. */
static int given_up(const struct kernel *k, int withheld, int sharing)
{
	int64_t more = 0;

	for (int i = 0; i < k->lanes.n; i++)
		more += groups_of(k, &k->lanes.v[i]) * max_i64(k->lanes.v[i].wanted - withheld, 0);
	return (int)round_up(ceil_div(more, sharing), k->target->registers.step);
}

void lower_grant_more(struct kernel *k)
{
	int sharing = 0, withheld = 0, less;

	for (int i = 0; i < k->lanes.n; i++)
		sharing += has_share(k, &k->lanes.v[i]) ? groups_of(k, &k->lanes.v[i]) : 0;
	if (!k->shares_registers || !sharing)
		return;
	for (int i = 0; i < k->lanes.n; i++)
		k->lanes.v[i].wanted = more_wanted(k, i);
	while ((less = given_up(k, withheld, sharing)) && !can_give_up(k, less))
		withheld += k->target->registers.step;
	for (int i = 0; i < k->lanes.n && less; i++) {
		struct klane *l = &k->lanes.v[i];

		l->granted += has_share(k, l) ? -less : (int)max_i64(l->wanted - withheld, 0);
		set_grants(&k->role->roles.v[i].body, l->granted, lower_launched(k));
	}
}

enum err_code lower_fit_registers(struct kernel *k, struct err *e)
{
	for (int i = 0; i < k->role->roles.n; i++)
		count_needed(k, i);
	for (int i = 0; i < k->role->roles.n; i++) {
		struct klane *l = &k->lanes.v[i];
		const struct lane *plan = &k->plan->lanes.v[l->lane];
		const char *where = "";
		struct srcloc loc = plan->loc;
		int task = k->role->roles.v[i].words_in;

		if (l->needed <= l->granted)
			continue;
		k->refusal.task = task;
		if (task != NONE)
			where = arena_strf(&k->arena, ", for what it has in '%s'", stask_at(k, task)->name);
		if (task != NONE && !plan->registers)
			loc = stask_at(k, task)->loc;
		return err_set(e, ERR_ILLEGAL, loc, "lane '%s' needs %d registers a thread%s; it has %d",
			plan->name, l->needed, where, l->granted);
	}
	return OK;
}
