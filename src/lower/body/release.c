/* Whom a lane tells of its products, and when: as straight code where the turn at hand says
 * which instances are due, by a counter otherwise.
 *
 * Along a loop's turns the number of instances that others have been told of is followed here,
 * in the count of c->turn: told[f] of this run. In the steady state it must come to the same
 * at the end of a turn as it was at its beginning; where the loop begins with less because
 * nothing was issued before iteration 0, the first arrivals have a guard. What is left when
 * the loop is over (left[f]) is told of behind it. Where all that does not work out, the lane
 * counts (released_N), and is made again. */
#include "lower/body/body.h"

static int loop_of(const struct body *c, int flag)
{
	return c->g->tasks.v[c->k->flags.v[flag].task].loop;
}

/* Does the lane issue the flag's products and learn later that they are complete? */
bool body_tells_later(const struct body *c, int flag)
{
	const struct flag *f = &c->k->flags.v[flag];

	return !f->issued && in_lane(c, f->task) && under_way(c, f->task);
}

static bool is_straight(const struct body *c, int flag)
{
	int loop = loop_of(c, flag);

	return !c->k->flags.v[flag].runs && loop != NONE && c->p->loops.v[loop].parent == NONE &&
		!shifts_tiles(c->lane) && !c->by_count[flag];
}

/* It does not work out: once more, with a counter. */
static void give_up(struct body *c, int flag)
{
	c->by_count[flag] = true;
	c->again = true;
}

/* by a counter ----------------------------------------------------------------- */

static const struct num *moved(struct body *c, const struct num *x, int by)
{
	if (!by)
		return x;
	return by < 0 ? SUB(x, N(c, -by)) : ADD(x, N(c, by));
}

/* Behind the latest instance that is issued when the lane stands at x, in the count of
 * c->turn. */
static int issued_end(const struct body *c, const struct kentry *x, int flag)
{
	int task = c->k->flags.v[flag].task;

	if (x->task == task && !c->done)
		return c->turn + x->at;
	return body_latest_issued(c, x, body_entry_of(c, task)) + 1;
}

/* How many instances of a flag's product the lane has issued when it stands at x, but for so
 * many; x NULL: between sTasks. Where the iteration at hand tells, no counter is kept: it would
 * take a register all through the loop. */
static const struct num *issued(struct body *c, int flag, const struct kentry *x, int but)
{
	int loop = loop_of(c, flag);
	bool counted = c->k->flags.v[flag].runs || loop == NONE || shifts_tiles(c->lane) ||
		(!x && c->task != NONE);

	if (!counted && x && loop == c->region)
		return moved(c, V(c, VAR_SEQ, loop), issued_end(c, x, flag) - (c->turn + x->at) - but);
	if (!counted && loop != c->region && program_loop_within(c->p, loop, c->region))
		return moved(c, V(c, VAR_BASE, loop), -but);	/* it is over, or has not begun */
	c->counted[flag] = true;
	return SUB(V(c, VAR_ISSUED, flag), N(c, but));
}

static void by_count(struct body *c, int flag, const struct kentry *x, int behind)
{
	struct role_op *o = body_op(c, DO_RELEASE);

	o->u.flag.flag = flag;
	o->u.flag.n = issued(c, flag, x, behind);
	c->released[flag] = true;
}

/* straight --------------------------------------------------------------------- */

static void arrive(struct body *c, int flag, const struct num *n, const struct num *when)
{
	struct role_op *o = body_op(c, DO_ARRIVE);

	o->u.flag.flag = flag;
	o->u.flag.n = n;
	o->u.flag.when = when;
}

/* May the iteration with that number, in the count of c->turn, be none of this run? */
static bool may_be_none(const struct body *c, int n)
{
	switch (c->kind) {
	case TURN_KNOWN:
		return false;
	case TURN_STEADY:
		return n < c->turn;
	case TURN_LATE:
		break;
	}
	return c->lane->regions[c->region + 1].most - 1 - (c->last - n) < 0;
}

/* In the loop's own turns. */
static void in_turn(struct body *c, int flag, const struct kentry *x, int behind)
{
	int end = issued_end(c, x, flag) - behind, at = c->turn + x->at;

	for (int n = c->told[flag]; n < end; n++) {
		const struct num *when = may_be_none(c, n) ? NUM2(GE, V(c, VAR_I, c->region), N(c,
			at - n)) : NULL;

		if (c->kind != TURN_KNOWN || n >= 0)
			arrive(c, flag, moved(c, V(c, VAR_SEQ, c->region), n - at), when);
	}
	if (end > c->told[flag])
		c->told[flag] = end;
}

/* Before or behind the loop. */
static void outside(struct body *c, int flag, int behind)
{
	for (; c->left[flag] > behind; c->left[flag]--)
		arrive(c, flag, SUB(V(c, VAR_BASE, loop_of(c, flag)), N(c, c->left[flag])), NULL);
}

void body_release(struct body *c, int flag, const struct kentry *x, int behind)
{
	int loop = loop_of(c, flag);
	bool in_turns = x && c->region == loop;

	/* somewhere else in the loop, or in another one, which comes here again and again */
	if (is_straight(c, flag) && c->region != NONE && !in_turns &&
	    (program_loop_within(c->p, c->region, loop) || c->left[flag] > behind))
		give_up(c, flag);
	if (!is_straight(c, flag))
		by_count(c, flag, x, behind);
	else if (in_turns)
		in_turn(c, flag, x, behind);
	else
		outside(c, flag, behind);
}

/* along a loop ----------------------------------------------------------------- */

void body_told_begin(struct body *c, int loop)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		if (!body_tells_later(c, f) || loop_of(c, f) != loop)
			continue;
		c->told[f] = 0;
		if (is_straight(c, f) && c->left[f])
			give_up(c, f);
		c->left[f] = NONE;	/* not known yet */
	}
}

/* At the loop's end there are so many iterations, in the count of told; exact: and no others.
 * All ways through it must leave the same, or all that few iterations can. */
void body_told_end(struct body *c, int loop, int trips, bool exact)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		int left = trips - c->told[f];

		if (!body_tells_later(c, f) || loop_of(c, f) != loop || !is_straight(c, f))
			continue;
		if (c->left[f] == NONE)
			c->left[f] = left;
		else if (left != (exact && trips < c->left[f] ? trips : c->left[f]))
			give_up(c, f);
		if (c->left[f] > c->g->trips[loop].least)
			give_up(c, f);
	}
}

int *body_told_copy(struct body *c)
{
	int *v = ARENA_ARRAY(c->a, c->k->flags.n, int);

	for (int f = 0; f < c->k->flags.n; f++)
		v[f] = c->told[f];
	return v;
}

/* The steady state of u turns began with `begin`: is that what it comes to? Else what it should
 * begin with is put there. `first`: what the loop begins with. */
bool body_told_steady(struct body *c, int loop, int u, const int *first, int *begin)
{
	bool settled = true;

	for (int f = 0; f < c->k->flags.n; f++) {
		int end = c->told[f] - u;

		if (!body_tells_later(c, f) || loop_of(c, f) != loop || !is_straight(c, f) ||
		    end == begin[f])
			continue;
		/* or it never ends, as nobody is told in some turn */
		if (begin[f] != first[f] || first[f] != (end > 0 ? end : 0))
			give_up(c, f);
		begin[f] = end;
		settled = false;
	}
	return settled;
}
