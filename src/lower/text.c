/* How long the text of a kernel becomes, before any of it is made: check refuses what no compiler takes in reasonable time.
 *
 * Two numbers make it long: how many copies of sTasks there are, and how many instructions each of them is for a thread,
 * whose loops over elements are unrolled. Both follow from the plan. */
#include "lower/passes.h"

#include <math.h>

enum { COPIES_MOST = 2048 };		/* sTasks in the text of all lanes: check takes 50 us and 15 KB for each */

/* Instructions of a thread, roughly: for one copy of an sTask (what it waits for and signals, conditions, addresses), for
 * one access to memory, and for an operation on an element by its class. Compilers' output for random plans has between
 * half and twice as many. */
enum { OF_COPY = 24, OF_ACCESS = 6, ACCESS_BYTES = 16 };

static const double of_class[CLASS_COUNT] = {
	[CLASS_FMA] = 1, [CLASS_ALU] = 1, [CLASS_SFU] = 2, [CLASS_CVT] = 2, [CLASS_DIV] = 8, [CLASS_REDUCE] = 2,
	[CLASS_SCAN] = 4, [CLASS_MOVE] = 2,
};

/* Instructions of a warp for a product; those that fetch its operands are about as many where it is synchronous. */
static double product_instructions(const struct kernel *k, const struct klane *l, const struct stask *s, const struct seu *u)
{
	const struct work *w = &s->work;
	const struct matrix_instruction *x = u->kind == SEU_MATRIX ?
		target_matrix(k->target, u->async, w->sparse, w->type) : NULL;
	double blocks;

	if (!x)
		return w->flops / (l->warps * k->target->warp);	/* two for each fma, which one reads for */
	blocks = fmax((double)w->m / x->rows * x->warps / l->warps, 1) * ceil((double)w->n / x->cols_most);
	return blocks * ceil((double)w->k / matrix_depth(x, w->type)) * (u->async ? 1 : 2);
}

/* Instructions of a thread for one copy of an entry. */
static double copy_instructions(const struct kernel *k, const struct klane *l, const struct kentry *x)
{
	const struct stask *s = stask_at(k, x->task);
	const struct work *w = &s->work;
	const struct seu *u = &k->plan->device->seu[k->plan->entries.v[x->entry].seu];
	double threads = l->warps * k->target->warp, n = OF_COPY;

	if (w->kind == WORK_MMA)
		n += product_instructions(k, l, s, u);
	for (int c = 0; c < CLASS_COUNT; c++)
		n += w->ops[c] / threads * of_class[c];
	if (u->kind == SEU_COPY && target_has_copy_engine(k->target) && u->async)
		return n + w->boxes;
	return n + ceil(fmax(w->global_bytes, w->shared_bytes) / (ACCESS_BYTES * threads)) * OF_ACCESS;
}

/* How often the text has what stands at offset `at` of a region: in the prologue, in each copy of the steady state and
 * in the epilogue of each, and once for each iteration of runs that are too short for a steady state (peel.c,
 * unroll.c). */
static int64_t copies_at(const struct kernel *k, const struct klane *l, int loop, int at)
{
	const struct kregion *v = &l->regions[loop + 1];
	int64_t least = loop == NONE ? 1 : max_i64(k->plan->graph->trips[loop].least, 1), n = 0;
	int64_t most = loop == NONE ? INT64_MAX : k->plan->graph->trips[loop].most;

	if (loop == NONE && !shifts_tiles(l))
		return 1;
	if (most > v->max_offset)
		n = at + v->unroll * ((int64_t)v->max_offset - at + 1);
	for (int64_t trips = least; trips <= most && trips < v->max_offset + (most <= v->max_offset); trips++)
		n += trips;
	return n;
}

/* What the text has: sTasks and loops, COPIES_MOST + 1 at most; and instructions of a thread, in all copies and in one copy of
 * each sTask. */
struct length {
	int64_t copies;
	double instructions, once;
};

/* Of a region, those of its loops included. */
static struct length region_length(const struct kernel *k, const struct klane *l, int loop)
{
	const struct kregion *v = &l->regions[loop + 1];
	struct length sum = { 0 };

	for (int i = 0; i < v->steps.n; i++) {
		const struct kstep *s = &v->steps.v[i];
		struct length x = { 0 };
		int64_t n = copies_at(k, l, loop, s->at);

		if (s->is_loop)
			x = region_length(k, l, s->id);
		else
			x.instructions = x.once = copy_instructions(k, l, &l->entries.v[s->id]);
		sum.copies = min_i64(sum.copies + n * (1 + x.copies), COPIES_MOST + 1);
		sum.instructions += (double)n * x.instructions;
		sum.once += x.once;
	}
	return sum;
}

static struct length lane_length(const struct kernel *k, const struct klane *l)
{
	return region_length(k, l, NONE);
}

static struct length kernel_length(const struct kernel *k)
{
	struct length sum = { 0 };

	for (int i = 0; i < k->lanes.n; i++) {
		struct length x = lane_length(k, &k->lanes.v[i]);

		sum.copies += x.copies;
		sum.instructions += x.instructions;
		sum.once += x.once;
	}
	return sum;
}

/* Instructions beyond those of one copy of each sTask: what one copy takes is a matter of tiles and registers, not of copies. */
static double copied(const struct length *x)
{
	return x->instructions - x->once;
}

static bool is_short(const struct kernel *k, const struct length *x)
{
	return x->copies <= COPIES_MOST && copied(x) <= k->target->copied_most;
}

/* Lane i has more of what makes the text too long than lane j. */
static bool is_longer_lane(const struct kernel *k, int i, int j)
{
	struct length x = lane_length(k, &k->lanes.v[i]), y = lane_length(k, &k->lanes.v[j]);

	return copied(&x) > copied(&y);
}

/* With equal versions in each region, a loop is unrolled as often as the most of them. */
static void equal_versions(struct kernel *k)
{
	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *l = &k->lanes.v[i];

		for (int r = 0; r <= k->plan->graph->program->loops.n; r++)
			l->regions[r].unroll = 1;
		for (int b = 0; b < k->plan->graph->buffers.n; b++) {
			struct kregion *r = &l->regions[k->plan->graph->buffers.v[b].loop + 1];

			if (lower_unrolls_for(k, l, b) && r->unroll < k->plan->versions[b])
				r->unroll = k->plan->versions[b];
		}
	}
}

/* The versions in registers that multiply in region `loop` of the lane: "'s' (2), 'p' (3)". */
static const char *list_versions(struct kernel *k, const struct klane *l, int loop)
{
	const char *text = "";

	for (int b = 0; b < k->plan->graph->buffers.n; b++) {
		const struct buffer *x = &k->plan->graph->buffers.v[b];

		if (x->loop == loop && k->plan->versions[b] > 1 && lower_unrolls_for(k, l, b))
			text = arena_strf(&k->arena, "%s%s'%s' (%d)", text, *text ? ", " : "", x->name,
				k->plan->versions[b]);
	}
	return text;
}

/* All regions of the lane that are there several times for versions: "those of 's' (2), 'p' (3) meet again only after 6
 * iterations of the loop over 'n'"; NULL: none is. */
static const char *list_unrolled(struct kernel *k, const struct klane *l)
{
	const struct program *p = k->plan->graph->program;
	const char *text = NULL;

	for (int loop = NONE; loop < p->loops.n; loop++) {
		int n = l->regions[loop + 1].unroll;

		if (n > 1 && (loop == NONE || p->loops.v[loop].phase == k->phase))
			text = arena_strf(&k->arena, "%s%s meet again only after %s%d %s%s%s", text ?
				arena_strf(&k->arena, "%s, those of ", text) : "those of ", list_versions(k, l, loop),
				n == UNROLL_MOST ? "more than " : "", n, loop == NONE ? "tiles" : "iterations over '",
				loop == NONE ? "" : p->axes.v[p->loops.v[loop].axis[0]].name, loop == NONE ? "" : "'");
	}
	return text;
}

/* The entry of the lane that is farthest ahead in its region. */
static const struct kentry *farthest_ahead(const struct klane *l)
{
	const struct kentry *x = &l->entries.v[0];

	for (int i = 1; i < l->entries.n; i++)
		if (l->entries.v[i].at > x->at)
			x = &l->entries.v[i];
	return x;
}

/* Versions of values in registers multiply: a loop is unrolled as often as their least common multiple says. Offsets multiply
 * with that, and those of loops in one another with each other. */
enum err_code lower_count_text(struct kernel *k, struct err *e)
{
	struct length x = kernel_length(k);
	const struct klane *most;
	const struct kentry *ahead;
	const char *too_much, *unrolled, *name;
	int longest = 0;

	if (is_short(k, &x))
		return OK;
	for (int i = 1; i < k->lanes.n; i++)
		if (is_longer_lane(k, i, longest))
			longest = i;
	most = &k->lanes.v[longest];
	name = k->plan->lanes.v[most->lane].name;
	unrolled = list_unrolled(k, most);
	too_much = x.copies > COPIES_MOST ? arena_strf(&k->arena, "more than %d copies of sTasks", COPIES_MOST) :
		arena_strf(&k->arena, "%d copies of sTasks, of about %.0f instructions more than one of each where %d are what "
			"compilers take in a minute", (int)x.copies, copied(&x), k->target->copied_most);
	k->refusal = (struct refusal){ .code = PROBLEM_COPIES, .task = NONE };
	if (unrolled) {
		err_set(e, ERR_ILLEGAL, k->plan->versions_loc, "the kernel would have %s: lane '%s' has a copy of its loop for "
			"each of the versions in registers that meet, and %s", too_much, name, unrolled);
		equal_versions(k);
		x = kernel_length(k);
		k->refusal.equal_versions = is_short(k, &x);
		return ERR_ILLEGAL;
	}
	ahead = farthest_ahead(most);
	k->refusal.task = ahead->task;
	return err_set(e, ERR_ILLEGAL, k->plan->entries.v[ahead->entry].loc, "the kernel would have %s: lane '%s' needs "
		"copies for the first and last iterations, in which its offsets leave out some of them", too_much, name);
}
