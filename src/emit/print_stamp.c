/* Prints the stamps of a traced kernel (lower/stamps.h). */
#include "emit/print.h"

enum { LANE_HEAD = 3 };			/* words of a lane before those of its tiles */

static long long stamp_words(const struct print *c)
{
	return (long long)c->r->stamp_words;
}

static const char *first_warp(struct print *c)
{
	return by_lane(c, c->role->first_warp, second_role(c)->first_warp);
}

/* First word of the lane among those of the block, and `n` more. */
static const char *words_out(struct print *c, int64_t n)
{
	return by_lane(c, c->role->stamps_out + n, second_role(c)->stamps_out + n);
}

static void print_one_stamp(struct print *c, const struct role_op *o)
{
	const char *at = "", *when = "";

	if (o->u.stamp.iteration)
		at = arena_strf(c->a, " + %d * (%s)", o->u.stamp.step, num(c, o->u.stamp.iteration));
	if (o->u.stamp.when)
		when = arena_strf(c->a, " && %s", num(c, o->u.stamp.when));
	put(c, "stamp(warp == %s%s, stamps + %s%s);", first_warp(c), when, by_lane(c, o->u.stamp.at,
		second_of(o)->u.stamp.at), at);
}

void print_block_stamp(struct print *c)
{
	for (int i = 0; i < c->r->watched.n; i++)
		put(c, "if (THREAD == 0) shared_put_u32(shared + %lld, 0);\t/* stamp until then */",
			(long long)c->r->watched.v[i]);
	if (c->r->stamp_words)
		put(c, "if (THREAD == 0) stamp_block(trace + %lld * BLOCK);", stamp_words(c));
}

static void print_one_watch(struct print *c, const struct role_op *o)
{
	const struct role_flag *f = &c->r->flags.v[o->u.watch.flag];

	put(c, "if (warp == %d && elect()) stamp_watch(trace + %lld * BLOCK + %lld, %lld, "
		"shared + %lld, %d, shared + %lld);\t/* %s */", o->u.watch.warp, stamp_words(c),
		(long long)o->u.watch.at, (long long)o->u.watch.keep, (long long)f->offset, f->depth,
		(long long)o->u.watch.ended, c->r->tasks[f->task]);
}

/* Copy the stamps of the tiles that shared memory holds to device memory, if `when`; `first`: number of the first
 * tile. */
static void put_stamps_out(struct print *c, const char *when, const char *first, const char *tiles)
{
	const struct role *l = c->role;

	put(c, "if (warp == %s && %s) stamps_out(trace + %lld * BLOCK + %s + %lld * (%s), stamps_held, %lld * %s, "
		"thread);", first_warp(c), when, stamp_words(c), words_out(c, LANE_HEAD), (long long)l->tile_words,
		first, (long long)l->tile_words, tiles);
}

static void print_stamps_begin(struct print *c)
{
	put(c, "const u32 stamps_held = shared + %s;", by_lane(c, c->role->stamps, second_role(c)->stamps));
	put(c, "u32 stamps = stamps_held;");
	put(c, "int tiles_stamped = 0;");
}

static void print_stamps_tile(struct print *c)
{
	const struct role *l = c->role;
	long long held = (long long)l->tiles_held;

	put_stamps_out(c, arena_strf(c->a, "tiles_stamped > 0 && tiles_stamped %% %lld == 0 && "
		"tiles_stamped <= %lld", held, (long long)l->tiles_out),
		arena_strf(c->a, "tiles_stamped - %lld", held), arena_strf(c->a, "%lld", held));
	put(c, "stamps = stamps_held + tiles_stamped++ %% %lld * %lld;", held, (long long)(4 * l->tile_words));
}

static void print_stamps_end(struct print *c)
{
	const struct role *l = c->role;
	long long held = (long long)l->tiles_held;

	put(c, "if (leader) stamp_end(trace + %lld * BLOCK + %s);", stamp_words(c), words_out(c, 0));
	put(c, "const int stamps_left = (tiles_stamped + %lld) %% %lld + 1;", held - 1, held);
	put_stamps_out(c, arena_strf(c->a, "tiles_stamped > 0 && tiles_stamped <= %lld",
		(long long)l->tiles_out), "tiles_stamped - stamps_left", "stamps_left");
}

void print_stamp(struct print *c, const struct role_op *o)
{
	switch ((int)o->what) {
	case DO_STAMP: print_one_stamp(c, o); break;
	case DO_STAMPS_BEGIN: print_stamps_begin(c); break;
	case DO_STAMPS_TILE: print_stamps_tile(c); break;
	case DO_STAMPS_END: print_stamps_end(c); break;
	case DO_WATCH: print_one_watch(c, o); break;
	case DO_WATCH_ENDS:
		put(c, "if (leader) shared_put_u32(shared + %lld, 1);\t/* stamp no more */",
			(long long)o->u.watch.ended);
		break;
	default: BUG("'%s' has no text", role_op_info[o->what].name);
	}
}

const char *const cuda_stamps[] = {
	"/* Stamps: cycles of this SM; where lanes begin and end, also the time that all SMs have. */\n",
	"/* By a warp. The branch becomes two predicates; by these alone an old t would live on. */\n",
	"DEV void stamp(int here, u32 at)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\n.reg .u32 t;\\nsetp.eq.s32 p, %0, 0;\\n@p bra.uni PAST;\\n\"\n",
	"\t\t\"mov.u32 t, %%clock;\\nst.shared.u32 [%1], t;\\nPAST:\\n}\" :: \"r\"(here), \"r\"(at));\n",
	"}\n",
	"DEV void stamp_time(u32 *clock, u32 *time)\n",
	"{\n",
	"\tu32 t;\n",
	"\tu64 now;\n",
	"\tasm volatile(\"mov.u32 %0, %%clock;\" : \"=r\"(t));\n",
	"\tasm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(now));\n",
	"\tclock[0] = t;\n",
	"\ttime[0] = (u32)now;\n",
	"\ttime[1] = (u32)(now >> 32);\n",
	"}\n",
	"DEV void stamp_block(u32 *at)\n",
	"{\n",
	"\tasm(\"mov.u32 %0, %%smid;\" : \"=r\"(at[0]));\n",
	"\tstamp_time(at + 1, at + 2);\n",
	"}\n",
	"DEV void stamp_end(u32 *at) { stamp_time(at, at + 1); }\n",
	"/* By one warp: a tile's to device memory. */\n",
	"DEV void stamps_out(u32 *to, u32 from, int n, int lane)\n",
	"{\n",
	"\tWARP_SYNC();\n",
	"\t_Pragma(\"unroll 4\") for (int i = lane; i < n; i += 32) to[i] = shared_u32(from + 4 * i);\n",
	"\tWARP_SYNC();\n",
	"}\n",
	"/* By one thread: when each phase of a ring of flags completes. */\n",
	"DEV int flag_passed(u32 a, u32 phase)\n",
	"{\n",
	"\tint yes;\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\n\"\n",
	"\t\t\"selp.s32 %0, 1, 0, p;\\n}\" : \"=r\"(yes) : \"r\"(a), \"r\"(phase & 1) : \"memory\");\n",
	"\treturn yes;\n",
	"}\n",
	"DEV void stamp_watch(u32 *to, int most, u32 flag, int depth, u32 ended)\n",
	"{\n",
	"\tLOOP (int n = 0; n < most; n++) {\n",
	"\t\tu32 t;\n",
	"\t\tint end = 0;\n",
	"\t\twhile (!flag_passed(flag + 8 * (n % depth), n / depth)) {\n",
	"\t\t\tif (end) return;\n",
	"\t\t\tend = (int)shared_u32(ended);\n",
	"\t\t}\n",
	"\t\tasm volatile(\"mov.u32 %0, %%clock;\" : \"=r\"(t));\n",
	"\t\tto[n] = t;\n",
	"\t}\n",
	"}\n",
	"\n",
	NULL
};

const char *const hip_stamps[] = {
	"/* Stamps: cycles of this CU; where lanes begin and end, also the time that all CUs have, which counts 100 million a\n",
	"   second. A stamp waits for the wave's accesses to LDS. */\n",
	"DEV u32 cycles(void) { return (u32)__builtin_amdgcn_s_memtime(); }\n",
	"/* By a warp. */\n",
	"DEV void stamp(int here, u32 at) { if (here) *(LDS word *)at = cycles(); }\n",
	"DEV void stamp_time(u32 *clock, u32 *time)\n",
	"{\n",
	"\tu64 now;\n",
	"\tclock[0] = cycles();\n",
	"\tnow = 10 * __builtin_amdgcn_s_memrealtime();\n",
	"\ttime[0] = (u32)now;\n",
	"\ttime[1] = (u32)(now >> 32);\n",
	"}\n",
	"/* The die, and the CU on it: registers 20 and 4, of which 32 and the low 16 bits are read. */\n",
	"DEV void stamp_block(u32 *at)\n",
	"{\n",
	"\tat[0] = (u32)__builtin_amdgcn_s_getreg(20 | 31 << 11) << 16\n",
	"\t\t| (u32)__builtin_amdgcn_s_getreg(4 | 15 << 11);\n",
	"\tstamp_time(at + 1, at + 2);\n",
	"}\n",
	"DEV void stamp_end(u32 *at) { stamp_time(at, at + 1); }\n",
	"/* By one warp: a tile's to device memory. */\n",
	"DEV void stamps_out(u32 *to, u32 from, int n, int lane)\n",
	"{\n",
	"\tWARP_SYNC();\n",
	"\tLOOP (int i = lane; i < n; i += 64) to[i] = *(LDS word *)(from + 4 * (u32)i);\n",
	"\tWARP_SYNC();\n",
	"}\n",
	"/* By one thread: when each phase of a ring of flags completes. */\n",
	"DEV int flag_passed(u32 a, u32 phase)\n",
	"{\n",
	"\treturn (int)(__scoped_atomic_load_n((LDS u32 *)a, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP)\n",
	"\t\t- (phase + 1) * *(LDS word *)(a + 4)) >= 0;\n",
	"}\n",
	"DEV void stamp_watch(u32 *to, int most, u32 flag, int depth, u32 ended)\n",
	"{\n",
	"\tLOOP (int n = 0; n < most; n++) {\n",
	"\t\tint end = 0;\n",
	"\t\twhile (!flag_passed(flag + 8 * (u32)(n % depth), (u32)(n / depth))) {\n",
	"\t\t\tif (end) return;\n",
	"\t\t\tend = (int)*(volatile LDS word *)ended;\n",
	"\t\t}\n",
	"\t\tto[n] = cycles();\n",
	"\t}\n",
	"}\n",
	"\n",
	NULL
};
