/* Waiting, and telling others. */
#include "emit/print.h"

const char *flag_barrier(struct print *c, const struct role_flag *f, const char *n)
{
	return arena_strf(c->a, "shared + %lld + %d * rem(%s, %d)", (long long)f->offset,
		c->r->target->shared.flag, n, f->depth);
}

static void put_wait(struct print *c, const struct role_op *o)
{
	const struct role_flag *f = &c->r->flags.v[o->u.flag.flag];
	const char *guard = asks(c, o->u.flag.when) ? arena_strf(c->a, "%s && ", num(c,
		o->u.flag.when)) : "", *seen = "", *least = "0";

	if (o->u.flag.once) {
		least = var_text(c->a, VAR_SEEN, o->u.flag.flag, &c->r->names);
		seen = arena_strf(c->a, " %s = n + 1;", least);
	}
	put(c, "{ const int n = %s; if (%sn >= %s) { flag_wait(%s, quo(n, %d));%s } }", num(c, o->u.flag.n),
		guard, least, flag_barrier(c, f, "n"), f->depth, seen);
}

static void put_wait_last(struct print *c, const struct role_op *o)
{
	const struct role_flag *f = &c->r->flags.v[o->u.flag.flag];

	put(c, "{ const int end = %s; LOOP (int n = max_of(0, end - %d); n < end; n++) "
		"flag_wait(%s, quo(n, %d)); }", num(c, o->u.flag.n), f->depth, flag_barrier(c, f, "n"), f->depth);
}

/* One arrival of the warp at a flag, in each block whose it is: a thread for each. Where it is one
 * thread, all find the address: compilers keep what only some need for later, and others wait. */
static void put_arrive(struct print *c, const struct role_flag *f, const char *before,
	const char *n)
{
	if (f->all)
		put(c, "%sif (thread %% %d < %d) flag_arrive_at(%s, thread %% %d);", before,
			warp_threads(c), c->r->cluster, flag_barrier(c, f, n), warp_threads(c));
	else
		put(c, "%sflag_arrive_warp(%s);", before, flag_barrier(c, f, n));
}

static void put_release(struct print *c, const struct role_op *o)
{
	const char *n = var_text(c->a, VAR_RELEASED, o->u.flag.flag, &c->r->names);

	put(c, "LOOP (; %s < %s; %s++)", n, num(c, o->u.flag.n), n);
	put_arrive(c, &c->r->flags.v[o->u.flag.flag], "\t", n);
}

static void put_lane_sync(struct print *c)
{
	put(c, "lane_sync(%d, %d);", c->role->barrier, lane_threads(c));
}

static const char *issuer(bool elected)
{
	return elected ? "elected" : "leader";
}

static void put_stores_wait(struct print *c, const struct role_op *o)
{
	const char *who = issuer(o->u.stores.elected);

	if (o->u.stores.first != o->u.stores.other)
		put(c, "if (%s) { if (n) STORES_READ(%d); else STORES_READ(%d); }", who,
			o->u.stores.other, o->u.stores.first);
	else
		put(c, "if (%s) STORES_READ(%d);", who, o->u.stores.first);
}

void print_sync(struct print *c, const struct role_op *o)
{
	if (o->what == DO_WAIT)
		put_wait(c, o);
	else if (o->what == DO_WAIT_LAST)
		put_wait_last(c, o);
	else if (o->what == DO_ARRIVE)
		put_arrive(c, &c->r->flags.v[o->u.flag.flag], asks(c, o->u.flag.when) ? arena_strf(c->a,
			"if (%s) ", num(c, o->u.flag.when)) : "", num(c, o->u.flag.n));
	else if (o->what == DO_RELEASE)
		put_release(c, o);
	else if (o->what == DO_WARP_SYNC)
		put(c, "WARP_SYNC();");
	else if (o->what == DO_LANE_SYNC)
		put_lane_sync(c);
	else if (o->what == DO_FENCE)
		put(c, "fence_async();");
	else if (o->what == DO_GROUPS_FENCE)
		put(c, "groups_fence();");
	else if (o->what == DO_GROUPS_COMMIT)
		put(c, "groups_commit();");
	else if (o->what == DO_GROUPS_WAIT)
		put(c, "GROUPS_WAIT(%d);", o->u.count);
	else if (o->what == DO_STORES_COMMIT)
		put(c, "if (%s) stores_commit();", issuer(o->u.stores.elected));
	else
		put_stores_wait(c, o);
}
