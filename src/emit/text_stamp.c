/* The stamps of a traced kernel, see lower/stamps.h: nothing else tells it from the one
 * that is not. */
#include "emit/gpu_text.h"

#include "lower/stamps.h"

static bool is_traced(const struct text *c)
{
	return c->k->stamp_words > 0;
}

void put_stamp(struct text *c, const struct kentry *x, int n)
{
	const struct record *r = &x->stamps;
	int loop = c->g->tasks.v[x->task].loop;
	const char *at = "", *guard = "";

	if (!is_traced(c) || n == NONE)
		return;
	if (loop != NONE) {
		const char *i = arena_strf(c->a, c->p->loops.v[loop].parent == NONE ? "i_%d" :
			"(seq_%d - tile_base_%d)", loop, loop);

		at = arena_strf(c->a, " + %d * %s", 4 * r->words, i);
		if (r->keep < c->g->trips[loop].most || c->p->loops.v[loop].parent != NONE)
			guard = arena_strf(c->a, " && %s < %lld", i, (long long)r->keep);
	}
	put(c, "stamp(warp == %d%s, stamps + %lld%s);", c->lane->first_warp, guard,
		(long long)(4 * (r->at + n)), at);
}

void put_block_stamp(struct text *c)
{
	for (int i = 0; i < c->k->watches.n; i++)
		put(c, "if (THREAD == 0) shared_put_u32(shared + %lld, 0);\t/* stamp until then */",
			(long long)c->k->watches.v[i].ended);
	if (is_traced(c))
		put(c, "if (THREAD == 0) stamp_block(trace + %lld * BLOCK);",
			(long long)c->k->stamp_words);
}

static bool is_ours(const struct text *c, const struct watch *w)
{
	int task = c->k->flags.v[w->flag].task;

	return c->plan->entries.v[plan_entry_of(c->plan, task)].lane == c->lane->lane;
}

void put_watches(struct text *c)
{
	for (int i = 0; i < c->k->watches.n; i++) {
		const struct watch *w = &c->k->watches.v[i];
		const struct flag *f = &c->k->flags.v[w->flag];

		if (is_ours(c, w))
			put(c, "if (warp == %d && elect()) stamp_watch(trace + %lld * BLOCK + %lld, %lld, "
				"shared + %lld, %d, shared + %lld);\t/* %s */", w->warp,
				(long long)c->k->stamp_words, (long long)w->at, (long long)w->keep,
				(long long)f->offset, f->depth, (long long)w->ended,
				c->g->tasks.v[f->task].name);
	}
}

/* Brings tiles that are held to device memory, if `when`; `first`: number of the first. */
static void put_stamps_out(struct text *c, const char *when, const char *first, const char *tiles)
{
	const struct klane *l = c->lane;

	put(c, "if (warp == %d && %s) stamps_out(trace + %lld * BLOCK + %lld + %lld * (%s), stamps_held, "
		"%lld * %s, thread);", l->first_warp, when, (long long)c->k->stamp_words,
		(long long)(l->stamps_out + STAMP_LANE_HEAD), (long long)l->tile_words, first,
		(long long)l->tile_words, tiles);
}

void put_lane_stamps(struct text *c)
{
	if (!is_traced(c))
		return;
	put(c, "const u32 stamps_held = shared + %lld;", (long long)c->lane->stamps);
	put(c, "u32 stamps = stamps_held;");
	put(c, "int tiles_stamped = 0;");
}

void put_tile_stamps(struct text *c)
{
	const struct klane *l = c->lane;
	long long held = (long long)l->tiles_held;

	if (!is_traced(c))
		return;
	put_stamps_out(c, arena_strf(c->a, "tiles_stamped > 0 && tiles_stamped %% %lld == 0 && "
		"tiles_stamped <= %lld", held, (long long)l->tiles_out),
		arena_strf(c->a, "tiles_stamped - %lld", held), arena_strf(c->a, "%lld", held));
	put(c, "stamps = stamps_held + tiles_stamped++ %% %lld * %lld;", held,
		(long long)(4 * l->tile_words));
}

/* Iterations of a loop within a loop are counted from the tile's first. */
void put_tile_bases(struct text *c)
{
	for (int i = 0; is_traced(c) && i < c->p->loops.n; i++)
		if (c->p->loops.v[i].phase == c->k->phase && c->p->loops.v[i].parent != NONE)
			put(c, "const int tile_base_%d = base_%d;\t/* for stamps */", i, i);
}

void put_tile_end_stamp(struct text *c)
{
	if (is_traced(c))
		put(c, "stamp(warp == %d, stamps + %d);", c->lane->first_warp, 4 * STAMP_TILE_END);
}

void put_end_stamp(struct text *c)
{
	const struct klane *l = c->lane;
	long long held = (long long)l->tiles_held;

	for (int i = 0; i < c->k->watches.n; i++)
		if (is_ours(c, &c->k->watches.v[i]))
			put(c, "if (leader) shared_put_u32(shared + %lld, 1);\t/* stamp no more */",
				(long long)c->k->watches.v[i].ended);
	if (!is_traced(c))
		return;
	put(c, "if (leader) stamp_end(trace + %lld * BLOCK + %lld);", (long long)c->k->stamp_words,
		(long long)l->stamps_out);
	put(c, "const int stamps_left = (tiles_stamped + %lld) %% %lld + 1;", held - 1, held);
	put_stamps_out(c, arena_strf(c->a, "tiles_stamped > 0 && tiles_stamped <= %lld",
		(long long)l->tiles_out), "tiles_stamped - stamps_left", "stamps_left");
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
