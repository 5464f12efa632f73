/* Reads of shared memory for several groups of columns at once.
 *
 * A thread that makes an operand reads for each group of columns its own few elements. Packed weights of several groups are
 * neighbouring words, or one, and a scale serves many groups: one access brings what would take four. What serves more than the
 * groups of an access of something else is read once for several of these rounds. */
#include "lower/select/lowering.h"

enum { GROUPS_AT_ONCE = 4, ROUNDS_MOST = 8, ACCESS_WORDS = 4 };

/* Words of an access for one group: those of the thread's neighbours, or one of 32 bits; 0: it is less than a word. */
static int words_of_read(const struct val *v)
{
	return v->together > 1 ? v->together * dtype_bits(v->from) / 32 : dtype_bits(v->from) == 32 ? 1 : 0;
}

/* In how many groups at once, up to `most`, can the value be read? *same: from one address. `when`: a condition around it that
 * differs by group. */
static int groups_of_read(const struct lowering *c, const struct val *v, bool when, int pair, int most, bool *same)
{
	int words = words_of_read(v);
	int64_t by, aligned;

	*same = false;
	if (when || (v->together == 1 && num_uses(v->num, VAR_E)) || (v->together > 1 && (v->together != pair || !words)))
		return 1;
	for (int n = most; n > 1; n /= 2) {
		if (!address_steps(c, v->num, n, &by, &aligned))
			continue;
		*same = by == 0;
		if (*same || (by == 4 * words && n * words <= ACCESS_WORDS && aligned % (4 * n * words) == 0))
			return n;
	}
	return 1;
}

static const struct val *widen(struct lowering *c, const struct val *v, bool when, int pair, int groups)
{
	struct val *copy = arena_copy(c->a, v, 1, sizeof(*v));

	if (v->kind == VAL_SHARED && groups_of_read(c, v, when, pair, groups, &copy->same) >= groups)
		copy->groups = groups;
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		copy->arg[i] = widen(c, v->arg[i], when || (v->kind == VAL_GUARD && num_uses(v->num, VAR_COL_GROUP)), pair, groups);
	return copy;
}

/* Has a value that is read for `groups` groups at once one address in n times as many? */
static bool serves_rounds(const struct lowering *c, const struct val *v, int groups, int n)
{
	int64_t by, aligned;

	return v->kind == VAL_SHARED && v->groups && v->same && address_steps(c, v->num, groups * n, &by, &aligned) && by == 0;
}

/* In how many rounds, up to `most`, can some of the values be read once? `fewer`: can others not? Else they are no rounds. */
static int most_rounds(const struct lowering *c, const struct val *v, int groups, int most, bool *fewer)
{
	int n = 1;

	if (v->kind == VAL_SHARED && v->groups) {
		for (n = most; n > 1 && !serves_rounds(c, v, groups, n); n /= 2)
			;
		*fewer |= n == 1;
	}
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		n = (int)max_i64(n, most_rounds(c, v->arg[i], groups, most, fewer));
	return n;
}

static const struct val *with_rounds(struct lowering *c, const struct val *v, int groups, int rounds)
{
	struct val *copy = arena_copy(c->a, v, 1, sizeof(*v));

	if (serves_rounds(c, v, groups, rounds))
		copy->rounds = rounds;
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		copy->arg[i] = with_rounds(c, v->arg[i], groups, rounds);
	return copy;
}

/* The most groups in which some value can be read at once. */
static int most_groups(const struct lowering *c, const struct val *v, bool when, int pair, int most)
{
	int n = 1;
	bool same;

	if (v->kind == VAL_SHARED)
		n = groups_of_read(c, v, when, pair, most, &same);
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		n = (int)max_i64(n, most_groups(c, v->arg[i], when || (v->kind == VAL_GUARD && num_uses(v->num, VAR_COL_GROUP)), pair, most));
	return n;
}

void widen_reads(struct lowering *c, struct role_op *pack)
{
	const struct frag *f = pack->u.pack.to.frag;
	int most = GROUPS_AT_ONCE, groups, rounds = ROUNDS_MOST;
	bool fewer = false;

	while (frag_groups(f) % most)
		most /= 2;
	groups = most_groups(c, pack->u.pack.value, false, f->layout->pair, most);
	if (groups < 2)
		return;
	pack->u.pack.groups = groups;
	pack->u.pack.value = widen(c, pack->u.pack.value, false, f->layout->pair, groups);
	while (frag_groups(f) % (groups * rounds))
		rounds /= 2;
	rounds = most_rounds(c, pack->u.pack.value, groups, rounds, &fewer);
	if (rounds < 2 || !fewer)
		return;
	pack->u.pack.rounds = rounds;
	pack->u.pack.value = with_rounds(c, pack->u.pack.value, groups, rounds);
}
