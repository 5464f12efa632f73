/* A loop on a lane: its trips and its turns, those of the prologue, the steady state and
 * the epilogue. */
#include "emit/gpu_text.h"

/* Least or greatest value of an index over the tile at hand. */
static const char *bound_text(struct text *c, const struct stask *s, const struct index_expr *x,
	bool greatest)
{
	struct buf b;

	buf_init(&b, c->a);
	buf_printf(&b, "%lld", (long long)x->k);
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		const struct axis *a = &c->p->axes.v[t->axis];
		const char *lo = axis_lo(c, s, NULL, t->axis);

		if ((t->coef > 0) == greatest)
			lo = arena_strf(c->a, "(min_of(%s + %lld, %lld) - 1)", lo,
				(long long)c->g->extents.tile[t->axis], (long long)a->size);
		buf_printf(&b, " + %lld * (%s / %lld)", (long long)t->coef, lo, (long long)t->div);
	}
	return b.text;
}

static const struct stask *task_in(const struct text *c, int loop)
{
	for (int i = 0; i < c->g->tasks.n; i++)
		if (program_loop_within(c->p, c->g->tasks.v[i].loop, loop))
			return &c->g->tasks.v[i];
	BUG("loop %d is empty", loop);
}

void put_trips(struct text *c, int loop)
{
	const struct loop *l = &c->p->loops.v[loop];
	const struct stask *any = task_in(c, loop);
	int64_t tiles = 1, tile = c->g->extents.tile[l->axis[0]];
	const char *first = "0", *end;

	for (int i = 0; i < l->naxes; i++)
		tiles *= extent_tiles(&c->g->extents, l->axis[i]);
	end = arena_strf(c->a, "%lld", (long long)tiles);
	if (l->has_from)
		first = arena_strf(c->a, "max_of(0, (%s) / %lld)", bound_text(c, any, &l->from, false),
			(long long)tile);
	if (l->has_upto) {
		const char *most = bound_text(c, any, &l->upto, true);

		end = arena_strf(c->a, "min_of(%lld, (%s) < 0 ? 0 : (%s) / %lld + 1)", (long long)tiles,
			most, most, (long long)tile);
	}
	put(c, "const int first_%d = %s, trips_%d = max_of(0, %s - first_%d);", loop, first, loop, end,
		loop);
}

/* Name of a variable of a loop, or of the tile loop. */
static const char *var(struct text *c, const char *name, int loop)
{
	return loop == NONE ? arena_strf(c->a, "%s_tile", name) :
		arena_strf(c->a, "%s_%d", name, loop);
}

/* A nested loop's iterations, in one iteration of the region around it. */
static enum err_code put_nested(struct text *c, int loop, const struct kstep *s,
	const char *iteration, struct err *e)
{
	int turn = c->turn, last = c->last;

	put(c, "{");
	c->indent++;
	put(c, "const int i_%d = %s, seq_%d = base_%d + i_%d;", loop, iteration, loop, loop, loop);
	put_loop_axes(c, loop);
	c->around[loop] = turn + s->at;
	TRY(put_initial_nested(c, loop, s->id, e));
	TRY(put_region(c, s->id, e));
	put_missed_waits(c, loop, s->id);
	put_run(c, s);
	c->turn = turn;
	c->last = last;
	c->indent--;
	put(c, "}");
	return OK;
}

static enum err_code put_step(struct text *c, int loop, const struct kstep *s, int class,
	const char *iteration, struct err *e)
{
	if (loop == NONE)
		return put_tile_step(c, s, class, iteration, e);
	if (s->is_loop)
		return put_nested(c, loop, s, iteration, e);
	return put_entry(c, &c->lane->entries.v[s->id], class, iteration, e);
}

/* A turn, as far as it is known when it is printed: which entries have an iteration, and
 * how that is called. */
struct turn {
	enum { TURN_STEADY, TURN_KNOWN, TURN_LATE } kind;
	int number;			/* KNOWN: its own; LATE: iterations that follow its first */
	const char *j;			/* STEADY: C text of its number */
	int class;
	int first, end;			/* entries at these offsets have one */
};

static const char *iteration_text(struct text *c, int loop, const struct turn *t, int at)
{
	switch (t->kind) {
	case TURN_STEADY:
		return at ? arena_strf(c->a, "%s + %d", t->j, at) : t->j;
	case TURN_KNOWN:
		return arena_strf(c->a, "%d", t->number + at);
	case TURN_LATE:
		break;
	}
	return arena_strf(c->a, "%s - %d", var(c, "trips", loop), t->number - at);
}

static enum err_code put_turn(struct text *c, int loop, const struct turn *t, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	if (loop == NONE)
		put_tile_stamps(c);
	for (int i = 0; i < v->steps.n; i++) {
		const struct kstep *s = &v->steps.v[i];

		if (s->at >= t->first && s->at < t->end)
			TRY(put_step(c, loop, s, t->class, iteration_text(c, loop, t, s->at), e));
	}
	if (loop == NONE)
		put_tile_turn_end(c, t->end == 1);
	return OK;
}

/* A turn of the steady state. */
static enum err_code put_steady_turn(struct text *c, int loop, int turn, const char *j,
	struct err *e)
{
	c->turn = turn;
	c->last = INT32_MAX;
	return put_turn(c, loop, &(struct turn){ .kind = TURN_STEADY, .j = j,
		.end = c->lane->regions[loop + 1].most + 1 }, e);
}

/* A turn whose number is known; there are at least so many trips, or just so many. */
static enum err_code put_known_turn(struct text *c, int loop, int j, int class, int trips,
	struct err *e)
{
	c->turn = j;
	c->last = trips - 1;
	return put_turn(c, loop, &(struct turn){ .kind = TURN_KNOWN, .number = j, .class = class,
		.first = -j, .end = trips - j }, e);
}

/* The turns after the steady state, where r is the number of those modulo the unrolling. */
static enum err_code put_epilogue(struct text *c, int loop, int r, struct err *e)
{
	int most = c->lane->regions[loop + 1].most;

	for (int n = 1; n <= most; n++) {
		c->turn = r - 1 + n;
		c->last = c->turn + most - n;
		TRY(put_turn(c, loop, &(struct turn){ .kind = TURN_LATE, .number = most + 1 - n,
			.class = most + n, .end = most + 1 - n }, e));
	}
	return OK;
}

/* The steady state and what comes after. Unrolled, it can end before each of its turns:
 * so a turn has one text for each version of a register that it uses, and no second one
 * for the turns that are left over. Compiling takes as long as there is text. */
static enum err_code put_steady(struct text *c, int loop, struct err *e)
{
	int u = c->lane->regions[loop + 1].unroll;

	put(c, "LOOP (;; %s += %d) {", var(c, "j", loop), u);
	c->indent++;
	for (int k = 0; k < u; k++) {
		const char *j = k ? arena_strf(c->a, "%s + %d", var(c, "j", loop), k) : var(c, "j", loop);

		put(c, "if (%s == %s) {", j, var(c, "steady", loop));
		c->indent++;
		TRY(put_epilogue(c, loop, k, e));
		put(c, "break;");
		c->indent--;
		put(c, "}");
		TRY(put_steady_turn(c, loop, k, j, e));
	}
	c->indent--;
	put(c, "}");
	return OK;
}

/* All turns where there are at least as many trips as the greatest offset. */
static enum err_code put_turns(struct text *c, int loop, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];
	const char *j = var(c, "j", loop), *steady = var(c, "steady", loop);

	for (int n = -v->most; n < 0; n++)
		TRY(put_known_turn(c, loop, n, -n, v->most, e));
	put(c, "const int %s = %s - %d;", steady, var(c, "trips", loop), v->most);
	put(c, "int %s = 0;", j);
	if (v->unroll > 1)
		return put_steady(c, loop, e);
	put(c, "LOOP (; %s < %s; %s++) {", j, steady, j);
	c->indent++;
	TRY(put_steady_turn(c, loop, 0, j, e));
	c->indent--;
	put(c, "}");
	return put_epilogue(c, loop, 0, e);
}

/* All turns of so many trips, at most the greatest offset: there is no steady state. */
static enum err_code put_few_turns(struct text *c, int loop, int trips, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	for (int j = -v->most; j < trips; j++)
		TRY(put_known_turn(c, loop, j, j < 0 ? -j : v->most + j - (trips - 1 - v->most), trips,
			e));
	return OK;
}

/* All turns of the most trips that there can be, or of any number from `most` on. */
static enum err_code put_most_turns(struct text *c, int loop, int most, struct err *e)
{
	if (loop == NONE || c->g->trips[loop].most > most)
		return put_turns(c, loop, e);
	return put_few_turns(c, loop, most, e);
}

static enum err_code put_loop(struct text *c, int loop, struct err *e)
{
	int64_t least = loop == NONE ? 0 : c->g->trips[loop].least;
	int most = c->lane->regions[loop + 1].most;

	if (loop != NONE)
		most = (int)min_i64(most, c->g->trips[loop].most);
	if (least >= most)
		return put_most_turns(c, loop, most, e);
	put(c, "if (%s >= %d) {", var(c, "trips", loop), most);
	c->indent++;
	TRY(put_most_turns(c, loop, most, e));
	c->indent--;
	put(c, "}");
	for (int trips = least > 1 ? (int)least : 1; trips < most; trips++) {
		put(c, "else if (%s == %d) {", var(c, "trips", loop), trips);
		c->indent++;
		TRY(put_few_turns(c, loop, trips, e));
		c->indent--;
		put(c, "}");
	}
	return OK;
}

enum err_code put_region(struct text *c, int loop, struct err *e)
{
	if (loop == NONE)
		return put_loop(c, loop, e);
	put(c, "{");
	c->indent++;
	put_trips(c, loop);
	TRY(put_loop(c, loop, e));
	put(c, "base_%d += trips_%d;", loop, loop);
	c->indent--;
	put(c, "}");
	return OK;
}

/* Tiles of a lane's other copies: only their iterations are counted. */
void put_passed(struct text *c, int loop)
{
	put(c, "{");
	c->indent++;
	put_trips(c, loop);
	for (int l = 0; l < c->p->loops.n; l++) {
		if (c->p->loops.v[l].parent != loop)
			continue;
		put(c, "LOOP (int i_%d = 0; i_%d < trips_%d; i_%d++) {", loop, loop, loop, loop);
		c->indent++;
		put_loop_axes(c, loop);
		put_passed(c, l);
		c->indent--;
		put(c, "}");
	}
	put(c, "base_%d += trips_%d;", loop, loop);
	c->indent--;
	put(c, "}");
}
