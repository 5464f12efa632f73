/* Registers: how many the threads of each lane are granted (setmaxnreg), and whether their values fit. */
#include "lower/passes.h"
#include "role/live.h"

/* The plan's number, rounded down to the granularity of the machine. */
static int granted(const struct granting *g, int registers)
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

static enum work_on find_work(const struct kernel *k, const struct klane *l)
{
	enum work_on most = ON_NOTHING;

	for (int i = 0; i < l->entries.n; i++) {
		const struct stask *s = stask_at(k, l->entries.v[i].task);

		if (s->kind == TASK_MMA || s->kind == TASK_COMPUTE)
			return ON_VALUES;
		for (int b = 0; b < s->reads.n; b++)
			if (k->ring_of[s->reads.v[b]] == NONE)
				return ON_VALUES;
		for (int b = 0; b < s->writes.n; b++)
			if (!k->rings.v[k->ring_of[s->writes.v[b]]].engine)
				most = ON_BYTES;
		if (s->kind == TASK_STORE && l->entries.v[i].outbox == NONE)
			most = ON_BYTES;
	}
	return most;
}

/* Lanes that work on values share the registers that the plan does not grant; if there are none, those that copy. */
static enum work_on sharing_work(const struct kernel *k)
{
	for (int i = 0; i < k->lanes.n; i++)
		if (k->lanes.v[i].work == ON_VALUES)
			return ON_VALUES;
	return ON_BYTES;
}

/* Grants each lane what the plan says; without that, few registers to lanes that do not share, and an equal
 * share of the remainder to the others, or what an attempt before has found (lower_share_by_need). The pool is what all
 * threads have at launch: setmaxnreg for more would wait for ever. */
static void share_pool(struct kernel *k, int pool)
{
	const struct granting *r = &k->target->registers;
	int given = 0, groups[ON_VALUES + 1] = { 0 }, few;
	enum work_on sharing = sharing_work(k);

	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *x = &k->lanes.v[i];

		given += groups_of(k, x) * granted(r, x->registers);
		if (!x->registers)
			groups[x->work] += groups_of(k, x);
	}
	given += sharing == ON_VALUES ? groups[ON_BYTES] * r->producer : 0;
	few = given + groups[ON_NOTHING] * r->producer + groups[sharing] * r->most > pool ? r->least : r->producer;
	given += groups[ON_NOTHING] * few;
	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *x = &k->lanes.v[i];
		enum work_on on = x->work;

		if (x->registers)
			x->given = granted(r, x->registers);
		else if (on != sharing)
			x->given = on == ON_BYTES ? r->producer : few;
		else if (k->share_of[x->lane])
			x->given = k->share_of[x->lane];
		else
			x->given = (int)min_i64((pool - given) / groups[sharing] / r->step * r->step, r->most);
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
		k->lanes.v[i].given = (int)min_i64(lower_launched(k), d->thread_registers);
	}
	k->shares_registers = groups > 1 && k->target->registers.step;
	if (!k->shares_registers)
		return OK;
	share_pool(k, lower_launched(k) * groups);
	for (int i = 0; i < k->lanes.n; i++) {
		sum += groups_of(k, &k->lanes.v[i]) * k->lanes.v[i].given;
		least &= k->lanes.v[i].given >= k->target->registers.least;
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

/* Counts registers that a thread of the lane needs: for values, for addresses of slots, and reserved ones. */
static void count_needed(struct kernel *k, int lane)
{
	const struct role *r = &k->role->roles.v[lane];
	struct arena_mark mark = arena_mark(&k->arena);
	int others = k->plan->device->reserved_registers;

	if (k->lanes.v[lane].work == ON_VALUES)
		others += role_slot_words(r, &k->arena);
	arena_reset(&k->arena, mark);
	k->lanes.v[lane].needed = r->words + others;
	/* this account leaves nothing out that takes many registers, so half of those that are reserved do */
	k->lanes.v[lane].needed_apart = (int)max_i64(r->words + others,
		r->words_apart + others - k->plan->device->reserved_registers / 2);
}

/* Does an equal share of the registers decide what the lane has? */
static bool has_share(const struct kernel *k, const struct klane *l)
{
	return !l->registers && l->work == sharing_work(k);
}

/* What the lane needs, as much as can be granted. */
static int64_t need_in_steps(const struct kernel *k, const struct klane *l)
{
	return max_i64(round_up(l->needed, k->target->registers.step), k->target->registers.least);
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
		is_short |= l->needed > l->given;
		has_spare |= l->needed <= l->given / 2;
		pool += groups_of(k, l) * l->given;
		needed += groups_of(k, l) * need_in_steps(k, l);
		groups += groups_of(k, l);
	}
	if (!is_short || !has_spare || needed > pool)
		return false;
	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];
		int64_t more = has_share(k, l) ? (pool - needed) / groups / r->step * r->step : 0;

		if (has_share(k, l))
			k->share_of[l->lane] = (int)min_i64(need_in_steps(k, l) + more, r->most);
	}
	return true;
}

/* Lanes whose threads copy compute addresses, and bounds where a tile is ragged, for several accesses at once. That
 * took up to 56 registers. Lanes that load many boxes one after the other compute the coordinates of several at once,
 * for which the least that can be granted is not enough; a store of many panels did not need more. Both get more if
 * the lanes that share the registers keep what they need and a tenth more, as compilers use more than that, or what the
 * plan leaves to the compiler, and what they need if operands are apart: the search refuses plans without that. */
enum { COPY_REGISTERS = 56, BOXES_FEW = 4, SPARE_SHARE = 10 };

/* The most boxes that one operation of the tree loads. */
static int most_boxes(const struct role_body *b)
{
	int64_t most = 0;

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_LOAD_BOXES)
			most = max_i64(most, o->u.boxes.boxes.n);
		if (role_is_region(o->what))
			most = max_i64(most, max_i64(most_boxes(&o->u.region.body), most_boxes(&o->u.region.other)));
	}
	return (int)most;
}

/* How many more registers each thread of a lane that copies can use. */
static int wanted_for_copies(const struct kernel *k, int lane)
{
	const struct granting *r = &k->target->registers;
	const struct klane *l = &k->lanes.v[lane];
	enum work_on on = l->work;

	if (l->registers || has_share(k, l))
		return 0;
	if (on == ON_BYTES)
		return COPY_REGISTERS - l->given;
	return most_boxes(&k->role->roles.v[lane].body) > BOXES_FEW ? r->producer - l->given : 0;
}

/* How many registers each of the `sharing` groups of warps gives, so that each lane that wants more gets all that it
 * wants but `withheld`. 0: no lane wants more than that. */
static int taken_for_copies(const struct kernel *k, int withheld, int sharing)
{
	int64_t more = 0;

	for (int i = 0; i < k->lanes.n; i++)
		more += groups_of(k, &k->lanes.v[i]) * max_i64(wanted_for_copies(k, i) - withheld, 0);
	return (int)round_up(ceil_div(more, sharing), k->target->registers.step);
}

/* Do the lanes that share the registers keep enough without so many? */
static bool can_spare(const struct kernel *k, int less)
{
	for (int i = 0; i < k->lanes.n; i++) {
		const struct klane *l = &k->lanes.v[i];
		int64_t keeps = max_i64(l->needed + max_i64(l->needed / SPARE_SHARE, l->spare), l->needed_apart);

		if (l->work == ON_BYTES)	/* the account leaves its addresses out */
			keeps = max_i64(keeps, COPY_REGISTERS);
		if (has_share(k, l) && keeps > l->given - less)
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

void lower_spare_for_copies(struct kernel *k)
{
	int sharing = 0, withheld = 0, less;

	for (int i = 0; i < k->lanes.n; i++)
		sharing += has_share(k, &k->lanes.v[i]) ? groups_of(k, &k->lanes.v[i]) : 0;
	if (!k->shares_registers || !sharing)
		return;
	while ((less = taken_for_copies(k, withheld, sharing)) && !can_spare(k, less))
		withheld += k->target->registers.step;
	for (int i = 0; i < k->lanes.n && less; i++) {
		struct klane *l = &k->lanes.v[i];

		l->given += has_share(k, l) ? -less : (int)max_i64(wanted_for_copies(k, i) - withheld, 0);
		set_grants(&k->role->roles.v[i].body, l->given, lower_launched(k));
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

		if (l->needed <= l->given)
			continue;
		k->refusal.task = task;
		if (task != NONE)
			where = arena_strf(&k->arena, ", for what it has in '%s'", stask_at(k, task)->name);
		if (task != NONE && !plan->registers)
			loc = stask_at(k, task)->loc;
		return err_set(e, ERR_ILLEGAL, loc, "lane '%s' needs %d registers a thread%s; it has %d",
			plan->name, l->needed, where, l->given);
	}
	return OK;
}
