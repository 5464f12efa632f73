/* Prints waits and signals. */
#include "emit/print.h"

const char *flag_barrier(struct print *c, const struct role_op *o, const char *n)
{
	const struct role_flag *f = &c->r->flags.v[role_flag(o)];

	return arena_strf(c->a, "shared + %s + %d * rem(%s, %d)", by_lane(c, f->offset,
		c->r->flags.v[role_flag(second_of(o))].offset), c->r->target->shared.flag, n, f->depth);
}

static void put_wait(struct print *c, const struct role_op *o)
{
	const struct role_flag *f = &c->r->flags.v[o->u.flag.flag];
	const char *guard = is_tested(o->u.flag.when) ? arena_strf(c->a, "%s && ", num(c,
		o->u.flag.when)) : "", *seen = "", *least = "0";

	if (o->u.flag.once) {
		least = var_text(c->a, VAR_SEEN, o->u.flag.flag, &c->r->names);
		seen = arena_strf(c->a, " %s = n + 1;", least);
	}
	put(c, "{ const int n = %s; if (%sn >= %s) { %s(%s, quo(n, %d));%s } }", num(c, o->u.flag.n),
		guard, least, f->parts ? "flag_wait_peers" : "flag_wait", flag_barrier(c, o, "n"), f->depth, seen);
}

/* The warp arrives once at a flag; at a flag of all blocks, one thread arrives in each block; at a flag that counts bytes,
 * where the engine arrives once for a copy, the lane's first warp does so for all. Also for a single arrival
 * all threads compute the address: compilers would move a computation that only some threads need behind a branch, for
 * which the others wait. */
static void put_arrive(struct print *c, const struct role_op *o, const char *before, const char *n)
{
	if (c->r->flags.v[o->u.flag.flag].all)
		put(c, "%sif (thread %% %d < %d) %s(%s, thread %% %d);", before, warp_threads(c), c->r->cluster,
			c->r->flags.v[o->u.flag.flag].parts ? "flag_tell_at" : "flag_arrive_at", flag_barrier(c, o, n), warp_threads(c));
	else if (c->r->flags.v[o->u.flag.flag].bytes && c->role->warps > 1)
		put(c, "%sif (thread < %d) flag_arrive_warp(%s);", before, warp_threads(c), flag_barrier(c, o, n));
	else
		put(c, "%sflag_arrive_warp(%s);", before, flag_barrier(c, o, n));
}

void put_lane_sync(struct print *c)
{
	if (c->r->target->shared.polled && !role_meets_at_counter(c->r, c->role))
		put(c, c->role->warps > 1 ? "BLOCK_SYNC();" : "WARP_SYNC();");
	else
		put(c, "lane_sync(%s, %d);", barrier(c), lane_threads(c));
}

static const char *issuer(bool elected)
{
	return elected ? "elected" : "leader";
}

void print_sync(struct print *c, const struct role_op *o)
{
	const struct role_flag *f;
	const char *n;

	switch ((int)o->what) {
	case DO_WAIT: put_wait(c, o); break;
	case DO_WAIT_LAST:
		f = &c->r->flags.v[o->u.flag.flag];
		put(c, "{ const int end = %s; LOOP (int n = max_of(0, end - %d); n < end; n++) flag_wait(%s, "
			"quo(n, %d)); }", num(c, o->u.flag.n), f->depth, flag_barrier(c, o, "n"), f->depth);
		break;
	case DO_ARRIVE:
		put_arrive(c, o, is_tested(o->u.flag.when) ? arena_strf(c->a, "if (%s) ", num(c, o->u.flag.when)) : "",
			num(c, o->u.flag.n));
		break;
	case DO_RELEASE:
		n = var_text(c->a, VAR_RELEASED, o->u.flag.flag, &c->r->names);
		put(c, "LOOP (; %s < %s; %s++)", n, num(c, o->u.flag.n), n);
		put_arrive(c, o, "\t", n);
		break;
	case DO_WARP_SYNC: put(c, "WARP_SYNC();"); break;
	case DO_LANE_SYNC: put_lane_sync(c); break;
	case DO_BLOCK_SYNC: put(c, "BLOCK_SYNC();"); break;
	case DO_FENCE: put(c, "fence_async();"); break;
	case DO_PHASE_WAIT: put(c, "LAST_PHASE_WAIT();"); break;
	case DO_NEXT_BEGINS: put(c, "NEXT_PHASE_MAY_BEGIN();"); break;
	case DO_GROUPS_FENCE: put(c, "groups_fence();"); break;
	case DO_GROUPS_COMMIT: put(c, "groups_commit();"); break;
	case DO_GROUPS_WAIT: put(c, "GROUPS_WAIT(%d);", o->u.count); break;
	case DO_COPIES_WAIT:
		put(c, "DMA_WAIT(%d);", o->u.count);
		c->dma = true;
		break;
	case DO_STORES_COMMIT: put(c, "if (%s) stores_commit();", issuer(o->u.stores.elected)); break;
	case DO_STORES_WAIT:
		if (o->u.stores.first != o->u.stores.other)
			put(c, "if (%s) { if (n) STORES_READ(%d); else STORES_READ(%d); }", issuer(o->u.stores.elected),
				o->u.stores.other, o->u.stores.first);
		else
			put(c, "if (%s) STORES_READ(%d);", issuer(o->u.stores.elected), o->u.stores.first);
		break;
	default: BUG("'%s' has no text", role_op_info[o->what].name);
	}
}
