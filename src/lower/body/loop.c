/* Loops: a region's turns, from prologue to epilogue. */
#include "lower/body/body.h"

/* Least or greatest value of (axis / div) mod mod over the tile at hand. Where its elements
 * go past a multiple of `mod`, there is one of 0 among them, and one of mod - 1. */
static const struct num *term_bound(struct body *c, const struct stask *s,
	const struct index_term *t, bool greatest)
{
	int64_t tile = c->g->extents.tile[t->axis];
	const struct num *least = body_lo(c, s, NULL, t->axis);
	const struct num *most = SUB(NUM2(MIN, ADD(least, N(c, tile)),
		N(c, c->p->axes.v[t->axis].size)), N(c, 1));
	const struct num *at;

	least = DIV(least, N(c, t->div));
	most = DIV(most, N(c, t->div));
	at = greatest ? most : least;
	if (!t->mod)
		return at;
	at = MOD(at, N(c, t->mod));
	if (t->div % tile == 0 || t->mod % tile == 0)
		return at;		/* no tile does */
	return num_select(c->a, NUM2(EQ, DIV(least, N(c, t->mod)), DIV(most, N(c, t->mod))), at,
		N(c, greatest ? t->mod - 1 : 0));
}

/* Least or greatest value of a bound over the tile at hand. */
static const struct num *bound(struct body *c, const struct stask *s, const struct index_expr *x,
	bool greatest)
{
	const struct num *sum = N(c, x->k);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		sum = ADD(sum, MUL(N(c, t->coef), term_bound(c, s, t, (t->coef > 0) == greatest)));
	}
	return sum;
}

static const struct stask *task_in(const struct body *c, int loop)
{
	for (int i = 0; i < c->g->tasks.n; i++)
		if (program_loop_within(c->p, c->g->tasks.v[i].loop, loop))
			return &c->g->tasks.v[i];
	BUG("loop %d is empty", loop);
}

void body_trips(struct body *c, int loop)
{
	const struct loop *l = &c->p->loops.v[loop];
	const struct stask *any = task_in(c, loop);
	const struct num *tile = N(c, c->g->extents.tile[l->axis[0]]), *zero = N(c, 0);
	const struct num *first = zero, *end;
	struct role_op *let;
	int64_t tiles = 1;

	for (int i = 0; i < l->naxes; i++)
		tiles *= extent_tiles(&c->g->extents, l->axis[i]);
	end = N(c, tiles);
	if (l->has_from)
		first = NUM2(MAX, zero, DIV(bound(c, any, &l->from, false), tile));
	if (l->has_upto) {
		const struct num *most = bound(c, any, &l->upto, true);

		end = NUM2(MIN, end, num_select(c->a, NUM2(LT, most, zero), zero, ADD(DIV(most, tile),
			N(c, 1))));
	}
	let = body_let(c, VAR_FIRST, loop, first);
	body_let_more(c, let, VAR_TRIPS, loop, NUM2(MAX, zero, SUB(end, V(c, VAR_FIRST, loop))));
}

/* A nested loop's iterations, in one iteration of the region around it. */
static enum err_code nested(struct body *c, int loop, const struct kstep *s,
	const struct num *iteration, struct err *e)
{
	int turn = c->turn, last = c->last;
	struct role_body *outer = body_enter(c, &body_block(c, NULL)->u.region.body);
	struct role_op *let;

	let = body_let(c, VAR_I, loop, iteration);
	body_let_more(c, let, VAR_SEQ, loop, ADD(V(c, VAR_BASE, loop), V(c, VAR_I, loop)));
	body_loop_axes(c, loop);
	c->around[loop] = turn + s->at;
	TRY(body_initial_nested(c, loop, s->id, e));
	TRY(body_region(c, s->id, e));
	TRY(body_missed(c, loop, s->id, e));
	TRY(body_run(c, s, e));
	c->turn = turn;
	c->last = last;
	body_leave(c, outer);
	return OK;
}

static enum err_code step(struct body *c, int loop, const struct kstep *s, int class,
	const struct num *iteration, struct err *e)
{
	if (loop == NONE)
		return body_tile_step(c, s, class, iteration, e);
	if (s->is_loop)
		return nested(c, loop, s, iteration, e);
	return body_task(c, &c->lane->entries.v[s->id], class, iteration, e);
}

/* A turn, as far as it is known here: which entries have an iteration, and how that is
 * called. */
struct turn {
	const struct num *from;		/* its number is `add` more */
	int add, class;
	int least, end;			/* entries at these offsets have one */
};

static const struct num *iteration_of(struct body *c, const struct turn *t, int at)
{
	int add = t->add + at;

	if (!add)
		return t->from;
	return add < 0 ? SUB(t->from, N(c, -add)) : ADD(t->from, N(c, add));
}

static enum err_code take_turn(struct body *c, int loop, const struct turn *t, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	if (loop == NONE)
		body_tile_stamps(c);
	for (int i = 0; i < v->steps.n; i++) {
		const struct kstep *s = &v->steps.v[i];

		if (s->at >= t->least && s->at < t->end)
			TRY(step(c, loop, s, t->class, iteration_of(c, t, s->at), e));
	}
	if (loop == NONE)
		body_tile_turn_end(c, t->end == 1);
	return OK;
}

/* A turn of the steady state, the `turn`-th of those unrolled. */
static enum err_code steady_turn(struct body *c, int loop, int turn, struct err *e)
{
	c->kind = TURN_STEADY;
	c->turn = turn;
	c->last = INT32_MAX;
	return take_turn(c, loop, &(struct turn){ .from = V(c, VAR_J, loop), .add = turn,
		.end = c->lane->regions[loop + 1].most + 1 }, e);
}

/* A turn whose number is known; there are at least so many trips, or just so many. */
static enum err_code known_turn(struct body *c, int loop, int j, int class, int trips,
	struct err *e)
{
	c->kind = TURN_KNOWN;
	c->turn = j;
	c->last = trips - 1;
	return take_turn(c, loop, &(struct turn){ .from = N(c, j), .class = class, .least = -j,
		.end = trips - j }, e);
}

/* The turns after the steady state, where r is the number of those modulo the unrolling. */
static enum err_code epilogue(struct body *c, int loop, int r, struct err *e)
{
	int most = c->lane->regions[loop + 1].most;

	for (int n = 1; n <= most; n++) {
		c->kind = TURN_LATE;
		c->turn = r - 1 + n;
		c->last = c->turn + most - n;
		TRY(take_turn(c, loop, &(struct turn){ .from = V(c, VAR_TRIPS, loop),
			.add = n - most - 1, .class = most + n, .end = most + 1 - n }, e));
	}
	body_told_end(c, loop, r + most, false);
	return OK;
}

static struct role_op *loop_of_turns(struct body *c, int loop, const struct num *end, int by)
{
	struct role_op *o = body_op(c, DO_LOOP);

	o->u.region.var = VAR_J;
	o->u.region.of = loop;
	o->u.region.end = end;
	o->u.region.step = by;
	return o;
}

/* The last product of the loop that may be under way when a turn ends; NULL: there is none. */
static const struct kentry *last_product(const struct body *c, int loop)
{
	const struct kentry *last = NULL;

	for (int i = 0; i < c->lane->entries.n && loop != NONE; i++)
		if (under_way(c, c->lane->entries.v[i].task) && program_loop_within(c->p,
		    c->g->tasks.v[c->lane->entries.v[i].task].loop, loop))
			last = &c->lane->entries.v[i];
	return last;
}

/* Where texts for other numbers of trips meet, compilers do not know what is under way, and may
 * move registers on their ways there. */
static enum err_code meet(struct body *c, int loop, struct err *e)
{
	const struct kentry *multiplies = last_product(c, loop);

	if (!multiplies)
		return OK;
	body_groups_wait(c, 0, "the compiler sees branches meet");
	return body_pin_all(c, multiplies, e);
}

/* The end of the loop before the k-th of the turns that are unrolled. */
static enum err_code early_end(struct body *c, int loop, int k, struct err *e)
{
	const struct num *j = k ? ADD(V(c, VAR_J, loop), N(c, k)) : V(c, VAR_J, loop);
	struct role_body *in = body_enter(c, &body_if(c, NUM2(EQ, j, V(c, VAR_STEADY, loop)),
		NULL)->u.region.body);
	int *told = c->told;

	c->told = body_told_copy(c);
	TRY(epilogue(c, loop, k, e));
	c->told = told;
	TRY(meet(c, loop, e));
	body_op(c, DO_BREAK);
	body_leave(c, in);
	return OK;
}

/* The steady state and, if it is unrolled, what comes after: it can end before each of its
 * turns. So a turn has one text for each version of a register that it uses, and no second one
 * for the turns that are left over. Compiling takes as long as there is text. Made again until
 * it begins with what it ends with (release.c). */
static enum err_code steady_state(struct body *c, int loop, struct err *e)
{
	int u = c->lane->regions[loop + 1].unroll, *first = body_told_copy(c);
	int *begin = body_told_copy(c);
	struct role_op *o = loop_of_turns(c, loop, u > 1 ? NULL : V(c, VAR_STEADY, loop), u);
	struct role_body *outer = body_enter(c, &o->u.region.body);

	o->u.region.late = loop != NONE && c->p->loops.v[loop].has_from;
	o->u.region.meets = last_product(c, loop);
	do {
		o->u.region.body.v.n = 0;
		for (int f = 0; f < c->k->flags.n; f++)
			c->told[f] = begin[f];
		body_clear_begin(c, loop);
		for (int k = 0; k < u; k++) {
			if (u > 1)
				TRY(early_end(c, loop, k, e));
			TRY(steady_turn(c, loop, k, e));
		}
		body_clear_end(c, o);
	} while (!body_told_steady(c, loop, u, first, begin) && !c->again);
	for (int f = 0; f < c->k->flags.n; f++)
		c->told[f] = begin[f];
	body_leave(c, outer);
	return u > 1 ? OK : epilogue(c, loop, 0, e);
}

/* All turns where there are at least as many trips as the greatest offset. */
static enum err_code turns(struct body *c, int loop, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	for (int n = -v->most; n < 0; n++)
		TRY(known_turn(c, loop, n, -n, v->most, e));
	/* nvcc would write out all turns of some loops, asked or not, if it knew how many there are,
	 * and keep more in registers */
	body_let(c, VAR_STEADY, loop, SUB(V(c, VAR_TRIPS, loop), N(c, v->most)))->u.let.hidden = true;
	body_let(c, VAR_J, loop, N(c, 0))->u.let.changes = true;
	if (loop != NONE)
		body_waits_before_loop(c, loop);
	return steady_state(c, loop, e);
}

/* All turns of so many trips, at most the greatest offset: there is no steady state. */
static enum err_code few_turns(struct body *c, int loop, int trips, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	for (int j = -v->most; j < trips; j++)
		TRY(known_turn(c, loop, j, j < 0 ? -j : v->most + j - (trips - 1 - v->most), trips, e));
	body_told_end(c, loop, trips, true);
	return OK;
}

/* All turns of the most trips that there can be, or of any number from `most` on. */
static enum err_code most_turns(struct body *c, int loop, int most, struct err *e)
{
	if (loop == NONE || c->g->trips[loop].most > most)
		return turns(c, loop, e);
	return few_turns(c, loop, most, e);
}

static enum err_code all_turns(struct body *c, int loop, struct err *e)
{
	int64_t least = loop == NONE ? 0 : c->g->trips[loop].least;
	const struct num *trips = V(c, VAR_TRIPS, loop);
	int most = c->lane->regions[loop + 1].most, *told = c->told, *first = body_told_copy(c);
	struct role_body *outer = c->into;
	struct role_op *o;

	if (loop != NONE)
		most = (int)min_i64(most, c->g->trips[loop].most);
	if (least >= most)
		return most_turns(c, loop, most, e);
	o = body_if(c, NUM2(GE, trips, N(c, most)), NULL);
	body_enter(c, &o->u.region.body);
	TRY(most_turns(c, loop, most, e));
	TRY(meet(c, loop, e));
	for (int n = least > 1 ? (int)least : 1; n < most; n++) {
		body_enter(c, &o->u.region.other);
		o = body_if(c, NUM2(EQ, trips, N(c, n)), NULL);
		body_enter(c, &o->u.region.body);
		c->told = first;
		first = body_told_copy(c);
		TRY(few_turns(c, loop, n, e));
		TRY(meet(c, loop, e));
	}
	c->told = told;
	body_leave(c, outer);
	return OK;
}

enum err_code body_region(struct body *c, int loop, struct err *e)
{
	enum turn_kind kind = c->kind;
	struct role_body *outer;
	int around = c->region;

	if (loop == NONE)
		return all_turns(c, loop, e);
	outer = body_enter(c, &body_block(c, NULL)->u.region.body);
	body_trips(c, loop);
	body_told_begin(c, loop);
	body_begins_late(c, loop, false);
	c->region = loop;
	TRY(all_turns(c, loop, e));
	c->region = around;
	c->kind = kind;
	body_begins_late(c, loop, true);
	body_advance(c, VAR_BASE, loop, V(c, VAR_TRIPS, loop));
	body_leave(c, outer);
	return OK;
}

/* Tiles of a lane's other copies: only their iterations are counted. */
void body_passed(struct body *c, int loop)
{
	struct role_body *outer = body_enter(c, &body_block(c, NULL)->u.region.body), *inner = c->into;

	body_trips(c, loop);
	for (int l = 0; l < c->p->loops.n; l++) {
		struct role_op *o;

		if (c->p->loops.v[l].parent != loop)
			continue;
		o = body_op(c, DO_LOOP);
		o->u.region.var = VAR_I;
		o->u.region.of = loop;
		o->u.region.from = N(c, 0);
		o->u.region.end = V(c, VAR_TRIPS, loop);
		o->u.region.step = 1;
		body_enter(c, &o->u.region.body);
		body_loop_axes(c, loop);
		body_passed(c, l);
		body_leave(c, inner);
	}
	body_advance(c, VAR_BASE, loop, V(c, VAR_TRIPS, loop));
	body_leave(c, outer);
}
