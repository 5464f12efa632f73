/* Lists the actions of each lane: executes its tree with the trip counts of a scenario. */
#include "verify/acts.h"

/* The value of a variable before a region declared it again. */
struct scoped {
	int64_t *var, was;
};

/* The registers of one version of a buffer, which a product may have written. */
struct sum {
	int group;			/* of the last product */
	bool loose;			/* the compiler may move reads before the wait for that group */
};

enum { ITERATIONS_MOST = 1 << 14 };	/* of a loop: no scenario has more */

/* The execution of a lane. VAR_TILE is the number of the tile among those of the EU. */
struct run {
	struct num_env env;		/* first, so that var_value() can cast */
	struct arena *a;
	struct scenario *s;
	const struct role *role;
	VEC(struct act) acts;
	int64_t *vars[VAR_COUNT];	/* by index, NONE too; NULL: the variable has no index, and is in one[] */
	int64_t one[VAR_COUNT];
	VEC(struct scoped) scoped;	/* declarations that end with the regions at hand */
	int instance, task;		/* at hand; NONE */
	enum { ON, BREAKS, CONTINUES } goes;
	/* Since the threads of a warp last met, some of them may not have touched shared memory, written to it,
	 * looked at a flag, although the warp has */
	bool scattered, writing, looking;
	bool unfenced, written;		/* the warp has touched shared memory, has written to it, with no fence since */
	int unread;			/* stores that may be unread, as the thread that issues them knows; NONE:
					 * it has not waited since the threads met */
	int issued, complete;		/* groups of products */
	struct sum *sums;		/* by cell, from the first in registers on */
	struct err *e;
};

static int64_t *var_at(struct run *x, enum var v, int of)
{
	return x->vars[v] ? &x->vars[v][of] : &x->one[v];
}

static int64_t var_value(const struct num_env *env, enum var v, int of)
{
	return *var_at((struct run *)(void *)env, v, of);
}

static int64_t value(struct run *x, const struct num *n)
{
	return num_value(n, &x->env);
}

static struct act *add_act(struct run *x, enum act_kind kind, int at, int64_t n)
{
	VEC_PUSH(x->a, &x->acts, ((struct act){ .kind = kind, .instance = x->instance, .at = at,
		.n = (int)n, .want = NONE }));
	return &x->acts.v[x->acts.n - 1];
}

static const struct graph *graph_of(const struct run *x)
{
	return x->s->set->plan->graph;
}

/* counters --------------------------------------------------------------------- */

/* The number of the iteration at hand among all that the scenario has of a region; NONE: it has no such iteration. It
 * follows from the counters of the loops around, because a lane may pass through them again only to count. */
static int64_t iteration_of(struct run *x, int loop)
{
	int64_t at = *var_at(x, loop == NONE ? VAR_TILE : VAR_I, loop), first = 0, end = x->s->walk->ntiles;

	if (loop != NONE) {
		int64_t outer = iteration_of(x, graph_of(x)->program->loops.v[loop].parent);

		if (outer == NONE)
			return NONE;
		first = x->s->walk->cum[loop][outer];
		end = x->s->walk->cum[loop][outer + 1] - first;
	}
	return at >= 0 && at < end ? first + at : NONE;
}

/* Where a loop with a length ends: it makes the iterations of the scenario from tile 0 of its axis on, and ends within
 * the last one in every other run (setting.even_ends). */
static int64_t end_of(struct run *x, int loop)
{
	const struct loop *l = &graph_of(x)->program->loops.v[loop];
	int64_t at = iteration_of(x, l->parent), n;

	if (at == NONE)
		return 0;
	n = (x->s->walk->cum[loop][at + 1] - x->s->walk->cum[loop][at]) * graph_of(x)->extents.tile[l->axis[0]];
	return n - (n && at % 2 == (x->s->set->even_ends ? 0 : 1));
}

static enum err_code let_value(struct run *x, const struct role_let *l, int64_t *out)
{
	if (l->var == VAR_TRIPS && l->of != NONE) {	/* the scenario has the trip counts */
		int64_t at = iteration_of(x, graph_of(x)->program->loops.v[l->of].parent);
		const int64_t *cum = x->s->walk->cum[l->of];

		if (at == NONE)
			return err_set(x->e, ERR_ILLEGAL, NOWHERE, "lane '%s' begins a loop that is not there",
				x->role->name);
		*out = cum[at + 1] - cum[at];
		return OK;
	}
	/* coordinates and addresses make no difference here */
	*out = l->var == VAR_LO || l->var == VAR_FIRST || l->var == VAR_TO ? 0 : l->var == VAR_END ? end_of(x, l->of) :
		value(x, l->to);
	return OK;
}

static enum err_code run_let(struct run *x, const struct role_op *o)
{
	for (int i = 0; i < o->u.let.v.n; i++) {
		const struct role_let *l = &o->u.let.v.v[i];
		int64_t *v = var_at(x, l->var, l->of), to = 0;

		TRY(let_value(x, l, &to));
		if (o->what == DO_LET)
			VEC_PUSH(x->a, &x->scoped, ((struct scoped){ v, *v }));
		*v = o->what == DO_ADVANCE ? *v + to : to;
	}
	return OK;
}

/* cells ------------------------------------------------------------------------ */

static int cell_of_frag(const struct run *x, int buffer, int version)
{
	const struct setting *set = x->s->set;

	return set->first[buffer] + x->role->replica * set->versions[buffer] + version;
}

static int cell_of(struct run *x, const struct touch *t)
{
	const struct setting *set = x->s->set;

	switch (t->what) {
	case TOUCH_SLOT: return set->first[t->of] + (int)*var_at(x, VAR_SLOT, set->ring_of[t->of]);
	case TOUCH_FRAG: return cell_of_frag(x, t->of, t->version);
	case TOUCH_STAGING: break;
	}
	return set->staging[t->of] + (int)(*var_at(x, VAR_ROUND, NONE) % t->version);
}

/* Does a product that adds to nothing begin each life of the carry? Then the matrix unit does not read the
 * registers. */
static bool begins_by_product(const struct run *x, const struct buffer *b)
{
	const struct graph *g = graph_of(x);

	for (int l = g->tasks.v[b->first].loop; l != b->loop; l = g->program->loops.v[l].parent)
		if (g->trips[l].least == 0)
			return false;
	return x->s->set->matrix[b->first] && g->program->carries.v[b->carry].init == 0;
}

/* Notes which instance must have written what the sTask at hand reads. A carry has an initial value unless its lives in
 * registers begin with a product. */
static void note_expected(struct run *x, struct act *a, int buffer)
{
	const struct stask *s = &graph_of(x)->tasks.v[x->task];
	const struct buffer *b = &graph_of(x)->buffers.v[buffer];
	int64_t seq = x->instance - x->s->first[x->task];

	for (int i = 0; i < s->reads.n; i++) {
		if (s->reads.v[i] != buffer)
			continue;
		a->want = x->s->want[x->task][seq * s->reads.n + i];
		a->initial = b->carry != NONE && (x->s->set->ring_of[buffer] != NONE || !begins_by_product(x, b));
	}
}

/* The result of a product must be pinned after the wait for it: else the compiler may read the registers before. */
static enum err_code check_pinned(struct run *x, const struct role_op *o, const struct touch *t, bool product)
{
	struct sum *s = &x->sums[cell_of_frag(x, t->of, t->version) - x->s->set->nshared];
	const struct stask *task = &graph_of(x)->tasks.v[o->task];

	if (t->how == TOUCH_READ && s->loose && !product)
		return err_set(x->e, ERR_ILLEGAL, task->loc, "'%s' reads '%s', which is not pinned behind the wait for "
			"its product", task->name, graph_of(x)->buffers.v[t->of].name);
	if (t->how == TOUCH_WRITE)
		*s = (struct sum){ .loose = product, .group = x->issued + 1 };
	return OK;
}

static enum err_code run_touch(struct run *x, const struct role_op *o, const struct touch *t)
{
	bool product = o->what == DO_PRODUCT && o->u.product.form.by->async;
	bool writes = t->how == TOUCH_WRITE, in_shared = t->what != TOUCH_FRAG && !product;
	struct act *a = add_act(x, product ? (writes ? ACT_GROUP_SUM : ACT_GROUP_READ) :
		writes ? ACT_WRITE : ACT_READ, cell_of(x, t), 0);

	x->scattered |= in_shared;
	x->writing |= in_shared && writes;
	x->unfenced |= in_shared;
	x->written |= in_shared && writes;
	if (t->own)
		a->want = x->instance;
	else if (!writes || t->sums)
		note_expected(x, a, t->of);
	else
		a->initial = t->initial;
	return t->what == TOUCH_FRAG ? check_pinned(x, o, t, product) : OK;
}

static enum err_code run_touches(struct run *x, const struct role_op *o)
{
	for (int i = 0; i < o->touches.n; i++)
		TRY(run_touch(x, o, &o->touches.v[i]));
	return OK;
}

static void note_pin(struct run *x, const struct role_op *o)
{
	const struct frag_at *at = &o->u.frag.at;

	if (at->frag->buffer == NONE)
		return;
	struct sum *s = &x->sums[cell_of_frag(x, at->frag->buffer, at->version) - x->s->set->nshared];
	s->loose &= s->group > x->complete;
}

/* synchronisation -------------------------------------------------------------- */

/* One thread acts for its warp. What it allows others to do may end the generation that the other threads still wait
 * for, or change what they still read. A store allows nobody anything, and only reads what the warp has written. */
static enum err_code check_together(struct run *x, const struct role_op *o)
{
	if (o->what == DO_STORE_BOXES ? !x->writing : !x->scattered && !x->looking)
		return OK;
	return err_set(x->e, ERR_ILLEGAL, NOWHERE, "lane '%s': a thread goes on to %s for its warp, of which others "
		"may not have %s yet ('%s')", x->role->name, role_op_info[o->what].name,
		x->scattered ? "touched shared memory" : "looked at a flag",
		o->task == NONE ? "the end of a loop" : graph_of(x)->tasks.v[o->task].name);
}

static void run_wait(struct run *x, const struct role_op *o)
{
	int f = o->u.flag.flag;
	int64_t n = value(x, o->u.flag.n), *seen = var_at(x, VAR_SEEN, f);

	if (n < 0 || (o->u.flag.when && !value(x, o->u.flag.when)) || (o->u.flag.once && *seen > n))
		return;
	add_act(x, ACT_WAIT, f, n);
	x->looking = true;
	if (o->u.flag.once)
		*seen = n + 1;
}

static enum err_code run_signal(struct run *x, const struct role_op *o)
{
	int flag = o->u.flag.flag;

	TRY(check_together(x, o));
	if (o->what == DO_RELEASE) {
		int64_t end = value(x, o->u.flag.n), *n = var_at(x, VAR_RELEASED, flag);

		for (; *n < end; ++*n)
			add_act(x, ACT_ARRIVE, flag, *n);
	} else if (!o->u.flag.when || value(x, o->u.flag.when)) {
		add_act(x, ACT_ARRIVE, flag, value(x, o->u.flag.n))->leader = x->s->set->r->flags.v[flag].bytes > 0;
	}
	return OK;
}

/* What the issuing thread knows of its stores, the warp knows when its threads meet. */
static void know_stores(struct run *x)
{
	if (x->unread != NONE)
		add_act(x, ACT_STORES, NONE, x->unread);
	x->unread = NONE;
}

static void run_stores(struct run *x, const struct role_op *o)
{
	int n = *var_at(x, VAR_ROUND, NONE) > 0 ? o->u.stores.other : o->u.stores.first;

	if (o->what == DO_STORES_WAIT) {
		x->unread = x->unread == NONE || n < x->unread ? n : x->unread;
		return;
	}
	x->unread += x->unread != NONE;
	add_act(x, ACT_STORE_COMMIT, NONE, 0)->leader = !o->u.stores.elected;
}

/* engines ---------------------------------------------------------------------- */

/* By the engine, or copies that their threads do not wait for. Indices are read when the copies are issued. */
static enum err_code run_load(struct run *x, const struct role_op *o)
{
	bool unfenced = x->unfenced;
	struct act *a;

	if (o->what == DO_LOAD_BOXES)
		TRY(check_together(x, o));
	for (int i = 1; i < o->touches.n; i++) {
		TRY(run_touch(x, o, &o->touches.v[i]));
		x->acts.v[x->acts.n - 1].fenced = true;
		x->acts.v[x->acts.n - 1].leader = o->what == DO_LOAD_BOXES && !o->u.boxes.rows;
	}
	x->unfenced = unfenced;
	if (o->what == DO_LOAD_THREADS && o->u.move.dma) {
		a = add_act(x, ACT_COPY_COUNTED, NONE, role_dma_copies(o, (int64_t)x->role->warps * x->s->set->r->target->warp));
		x->scattered = x->writing = true;
	} else if (o->what == DO_LOAD_THREADS) {
		a = add_act(x, ACT_COPY_THREADS, o->u.move.flag, value(x, o->u.move.n));
		x->scattered = x->writing = true;
	} else {
		/* the thread that issues the copy reads the values itself */
		x->scattered = o->u.boxes.rows > 0 && o->touches.n > 1;
		a = add_act(x, ACT_COPY, o->u.boxes.flag, value(x, o->u.boxes.n));
		a->multicast = o->u.boxes.multicast;
		a->each = o->u.boxes.rows > 0;
	}
	a->to = cell_of(x, &o->touches.v[0]);
	return OK;
}

static enum err_code run_store(struct run *x, const struct role_op *o)
{
	const struct touch *t = &o->touches.v[0];

	TRY(check_together(x, o));
	struct act *a = add_act(x, ACT_STORE, cell_of(x, t), 0);
	if (t->what == TOUCH_SLOT)
		note_expected(x, a, t->of);
	else
		a->want = x->instance;
	return OK;
}

/* Reads what the same sTask has written in each block. */
static enum err_code run_sum_parts(struct run *x, const struct role_op *o)
{
	TRY(run_touches(x, o));
	for (int i = 1; i <= o->touches.n; i++) {
		struct act *a = &x->acts.v[x->acts.n - i];

		if (o->touches.v[o->touches.n - i].what != TOUCH_STAGING)
			continue;
		a->peers = true;
	}
	return OK;
}

/* regions ---------------------------------------------------------------------- */

static enum err_code run_body(struct run *x, const struct role_body *b);

/* Here an instance of the sTask begins. */
static enum err_code begin_task(struct run *x)
{
	int loop = graph_of(x)->tasks.v[x->task].loop;
	int64_t seq = loop == NONE ? *var_at(x, VAR_T, NONE) : *var_at(x, VAR_SEQ, loop);

	if (seq < 0 || seq >= walk_count(x->s->walk, loop))
		return err_set(x->e, ERR_ILLEGAL, NOWHERE, "lane '%s' does an instance of '%s' that is not there",
			x->role->name, graph_of(x)->tasks.v[x->task].name);
	x->instance = scenario_instance(x->s, x->task, seq);
	x->s->ran[x->instance]++;
	return OK;
}

static bool goes_on(struct run *x, const struct role_op *o, int64_t i)
{
	return (!o->u.region.end || i < value(x, o->u.region.end)) && (!o->u.region.run_while ||
		value(x, o->u.region.run_while)) && !(o->u.region.run_until && value(x, o->u.region.run_until));
}

static enum err_code run_loop(struct run *x, const struct role_op *o)
{
	int64_t *i = var_at(x, o->u.region.var, o->u.region.of);
	int iterations = 0;

	if (o->u.region.from)
		*i = value(x, o->u.region.from);
	for (; goes_on(x, o, *i); *i += o->u.region.step) {
		if (iterations++ == ITERATIONS_MOST)
			return err_set(x->e, ERR_ILLEGAL, NOWHERE, "lane '%s' has a loop without end", x->role->name);
		TRY(run_body(x, &o->u.region.body));
		if (x->goes == BREAKS)
			break;
		x->goes = ON;
	}
	x->goes = ON;
	return OK;
}

/* Does a store leave out the tile at hand, as the tensor has nothing of it? Tiles are played of which all stores have something, and
 * between them some of which every second one has. */
static bool is_skipped(struct run *x, const struct role_op *o)
{
	int64_t tile = *var_at(x, VAR_TILE, NONE) % 4;

	return (tile == 1 || tile == 2) && o->task % 2 == tile - 1;
}

/* Operations whose effect is more than what they touch: OWN in ops.def. */
static enum err_code run_own(struct run *x, const struct role_op *o)
{
	switch ((int)o->what) {
	case DO_BLOCK: return run_body(x, &o->u.region.body);
	case DO_TASK:
		x->task = o->task;
		/* the instance is known at DO_AT, when the counters of the iteration are declared */
		x->instance = NONE;
		TRY(run_body(x, &o->u.region.body));
		x->task = x->instance = NONE;
		return OK;
	case DO_TILES:
		for (int64_t t = 0; t < x->s->walk->ntiles; t++) {
			*var_at(x, VAR_T, NONE) = *var_at(x, VAR_AT, NONE) = *var_at(x, VAR_TILE, NONE) = t;
			TRY(run_body(x, &o->u.region.body));
			x->goes = ON;
		}
		return OK;
	case DO_LOOP: return run_loop(x, o);
	case DO_EACH:
		TRY(run_touches(x, o));		/* of all its rounds together */
		for (int i = 0; i < o->u.region.step; i++) {
			*var_at(x, o->u.region.var, o->u.region.of) = i;
			TRY(run_body(x, &o->u.region.body));
		}
		*var_at(x, o->u.region.var, o->u.region.of) = 0;
		return OK;
	case DO_IF:
		if (o->u.region.section == SECTION_REACHED && !is_skipped(x, o))
			return run_body(x, &o->u.region.body);
		if (o->u.region.section == SECTION_REACHED)
			return OK;
		return run_body(x, value(x, o->u.region.when) ? &o->u.region.body : &o->u.region.other);
	case DO_BREAK: case DO_CONTINUE:
		x->goes = o->what == DO_BREAK ? BREAKS : CONTINUES;
		return OK;
	case DO_AT: return begin_task(x);
	case DO_COUNT_TILES:
		*var_at(x, VAR_TILES, NONE) = x->s->walk->ntiles;
		return OK;
	case DO_LET: case DO_SET: case DO_ADVANCE: return run_let(x, o);
	case DO_SLOT:
		*var_at(x, VAR_SLOT, o->u.slot.ring) = value(x, o->u.slot.life) %
			x->s->set->r->rings.v[o->u.slot.ring].versions;
		return OK;
	case DO_PIN:
		note_pin(x, o);
		return OK;
	case DO_WAIT:
		run_wait(x, o);
		return OK;
	case DO_WAIT_LAST:
		for (int64_t end = value(x, o->u.flag.n),
		     n = max_i64(0, end - x->s->set->r->flags.v[o->u.flag.flag].depth); n < end; n++)
			add_act(x, ACT_WAIT, o->u.flag.flag, n);
		return OK;
	case DO_ARRIVE: case DO_RELEASE: return run_signal(x, o);
	case DO_LANE_SYNC: case DO_WARP_SYNC:
		know_stores(x);
		x->scattered = x->writing = x->looking = false;
		if (o->what == DO_LANE_SYNC)
			add_act(x, ACT_SYNC, NONE, 0);
		return OK;
	case DO_BLOCK_SYNC:
		know_stores(x);
		x->scattered = x->writing = x->looking = false;
		add_act(x, ACT_CLUSTER, NONE, 0);
		return OK;
	case DO_FENCE:			/* is about what its own thread did: the threads have to meet after it */
		x->scattered |= x->unfenced;
		x->writing |= x->written;
		x->unfenced = x->written = false;
		add_act(x, ACT_FENCE, NONE, 0);
		return OK;
	case DO_GROUPS_COMMIT:
		x->issued++;
		add_act(x, ACT_COMMIT, NONE, 0);
		return OK;
	case DO_GROUPS_WAIT:
		x->complete = (int)max_i64(x->complete, x->issued - o->u.count);
		x->looking = false;	/* the threads of a warp wait for groups together */
		add_act(x, ACT_GROUPS, NONE, o->u.count);
		return OK;
	case DO_COPIES_WAIT:
		add_act(x, ACT_COPIES, NONE, o->u.count);
		return OK;
	case DO_STORES_COMMIT: case DO_STORES_WAIT:
		run_stores(x, o);
		return OK;
	case DO_SUM_PARTS: return run_sum_parts(x, o);
	case DO_LOAD_BOXES: return run_load(x, o);
	case DO_STORE_BOXES: return run_store(x, o);
	case DO_LOAD_THREADS: return o->u.move.arrives || o->u.move.dma ? run_load(x, o) : run_touches(x, o);
	default: BUG("verify does not know what '%s' does", role_op_info[o->what].name);
	}
}

static enum err_code run_body(struct run *x, const struct role_body *b)
{
	int outside = x->scoped.n;

	for (int i = 0; i < b->v.n && x->goes == ON; i++) {
		enum role_play play = role_op_info[b->v.v[i]->what].play;

		if (play != PLAY_NONE)
			TRY((play == PLAY_OWN ? run_own : run_touches)(x, b->v.v[i]));
	}
	for (; x->scoped.n > outside; x->scoped.n--)
		*x->scoped.v[x->scoped.n - 1].var = x->scoped.v[x->scoped.n - 1].was;
	return OK;
}

/* lanes ------------------------------------------------------------------------ */

static enum err_code run_lane(struct arena *a, struct scenario *s, int lane, struct err *e)
{
	struct run x = { .env.var = var_value, .a = a, .s = s, .role = &s->set->r->roles.v[lane],
		.instance = NONE, .task = NONE, .unread = NONE, .e = e,
		.sums = ARENA_ARRAY(a, s->set->ncells - s->set->nshared, struct sum) };

	for (int v = 0; v < VAR_COUNT; v++)
		if (var_info[v].index != OF_NONE)
			x.vars[v] = ARENA_ARRAY(a, setting_vars(s->set, var_info[v].index) + 1, int64_t) + 1;
	x.one[VAR_ALL_TILES] = s->walk->ntiles;
	for (int i = 0; i < graph_of(&x)->program->axes.n; i++)
		x.vars[VAR_SIZE][i] = graph_of(&x)->program->axes.v[i].size;
	TRY(run_body(&x, &x.role->body));
	know_stores(&x);
	if (role_meets_at_end(s->set->r))
		add_act(&x, ACT_CLUSTER, NONE, 0);
	s->acts[lane] = x.acts.v;
	s->nacts[lane] = x.acts.n;
	return OK;
}

int scenario_lane(const struct scenario *s, int flag, int n)
{
	const struct role_program *r = s->set->r;
	int lane = s->set->lane[r->flags.v[flag].task];

	return lane + (int)(walk_outer(s->walk, r->flags.v[flag].loop, n, NONE) % r->roles.v[lane].replicas);
}

static void number_instances(struct arena *a, struct scenario *s)
{
	const struct graph *g = s->set->plan->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		int64_t count = g->tasks.v[t].phase == s->set->phase ? walk_count(s->walk, g->tasks.v[t].loop) : 0;

		s->first[t] = s->ninstances;
		s->ninstances += (int)count;
		s->want[t] = ARENA_ARRAY(a, count * g->tasks.v[t].reads.n, int);
	}
	s->first[g->tasks.n] = s->ninstances;
	s->task = ARENA_ARRAY(a, s->ninstances, int);
	s->ran = ARENA_ARRAY(a, s->ninstances, int);
	for (int t = 0; t < g->tasks.n; t++)
		for (int i = s->first[t]; i < s->first[t + 1]; i++)
			s->task[i] = t;
}

enum err_code scenario_init(struct arena *a, const struct setting *set, const struct walk *w,
	struct scenario *s, struct err *e)
{
	int ntasks = set->plan->graph->tasks.n, nroles = set->r->roles.n;

	*s = (struct scenario){ .set = set, .walk = w, .first = ARENA_ARRAY(a, ntasks + 1, int), .want = ARENA_ARRAY(a,
		ntasks, int *), .acts = ARENA_ARRAY(a, nroles, struct act *), .nacts = ARENA_ARRAY(a, nroles, int) };
	number_instances(a, s);
	scenario_writers(a, s);
	for (int i = 0; i < nroles; i++)
		TRY(run_lane(a, s, i, e));
	return OK;
}
