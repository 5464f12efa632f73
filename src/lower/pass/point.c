/* Walks that rewrite bodies, points of operations, and copies of operations with the points moved. */
#include "lower/pass/pass.h"

enum err_code rewrite_body(struct lowering *c, struct role_body *b, rewrite_fn *rewrite, struct err *e)
{
	struct role_body *outer, old = reopen_body(c, b, &outer);

	for (int i = 0; i < old.v.n; i++)
		TRY(rewrite(c, old.v.v[i], e));
	leave_body(c, outer);
	return OK;
}

enum err_code rewrite_inside(struct lowering *c, struct role_op *o, rewrite_fn *rewrite, struct err *e)
{
	if (!role_is_region(o->what))
		return OK;
	TRY(rewrite_body(c, &o->u.region.body, rewrite, e));
	return rewrite_body(c, &o->u.region.other, rewrite, e);
}

struct point *point_new(struct lowering *c, const struct point *like)
{
	struct point *p = ARENA_NEW(c->a, struct point);
	int n = c->p->loops.n + 1;

	*p = *like;
	p->around = ARENA_ARRAY(c->a, n, int) + 1;
	for (int i = 0; like->around && i < n; i++)
		p->around[i - 1] = like->around[i - 1];
	return p;
}

const struct num *num_offset(struct lowering *c, const struct num *from, int n)
{
	if (!n)
		return from;
	return n < 0 ? SUB(from, N(c, -n)) : ADD(from, N(c, n));
}

struct point *add_groups_wait(struct lowering *c, int n, const struct point *like, const char *why)
{
	struct point *p = point_new(c, like);

	add_groups_wait_op(c, n, why);
	c->body->v.v[c->body->v.n - 1]->point = p;
	return p;
}

/* The version of a buffer that lives for an iteration of the loop is that of the iteration. An INIT or a PIN touches one
 * buffer at most (promises.c). */
static void move_version(const struct lowering *c, struct role_op *o, const struct copying *how)
{
	int buffer = o->touches.n ? o->touches.v[0].of : o->u.frag.at.frag->buffer;
	int versions = c->plan->versions[buffer];

	if (c->g->buffers.v[buffer].loop != how->loop)
		return;
	o->u.frag.at.version = (int)floor_mod(o->u.frag.at.version + how->shift, versions);
	if (!o->touches.n)
		return;
	o->touches.v = arena_copy(c->a, o->touches.v, 1, sizeof(*o->touches.v));
	o->touches.v[0].version = o->u.frag.at.version;
}

/* How many groups a wait leaves in flight follows from the class of the iteration. Negative: no iteration of the class
 * makes the wait. If its instruction cannot name so many, it waits for more than instances_left says. */
void group_wait_set_class(struct role_op *o, struct point *p, int class)
{
	int younger;

	p->class = class;
	if (!p->wait)
		return;
	younger = p->wait->groups_left[class];
	p->instances_left = younger < 0 ? NULL : p->wait->instances_left[class];
	o->u.count = younger < 0 ? 0 : younger > GROUPS_MOST ? GROUPS_MOST : younger;
}

static void move_point(struct lowering *c, struct role_op *o, const struct copying *how)
{
	struct point *p = point_new(c, o->point);

	o->point = p;
	if (p->region != how->loop) {
		p->around[how->loop] += how->shift;
		return;
	}
	p->number += how->shift;
	p->kind = how->kind;
	p->last = how->last;
	group_wait_set_class(o, p, how->class);
	if (!p->iteration)
		return;
	p->iteration = num_offset(c, how->from, how->add + p->at);
	if (o->what == DO_TASK && o->u.region.iteration)
		o->u.region.iteration = p->iteration;
}

const struct num *tile_number(struct lowering *c, const struct num *n)
{
	if (c->lane->replicas == 1)
		return n;
	return ADD(MUL(n, N(c, c->lane->replicas)), N(c, c->lane->replica));
}

/* An iteration begins with its number. */
static void set_iteration(struct lowering *c, struct role_op *o, const struct num *iteration)
{
	struct role_let *v = arena_copy(c->a, o->u.let.v.v, (size_t)o->u.let.v.n, sizeof(*v));

	v[0].to = v[0].var == VAR_T ? tile_number(c, iteration) : iteration;
	o->u.let.v.v = v;
}

static void copy_body(struct lowering *c, const struct role_body *from, struct role_body *to,
	const struct copying *how, const struct num *iteration)
{
	struct role_body *outer = enter_body(c, to);

	for (int i = 0; i < from->v.n; i++) {
		const struct role_op *o = from->v.v[i];

		copy_op(c, o, how);
		if (o->what == DO_LET && iteration && o->u.let.v.v[0].of == how->loop &&
		    o->u.let.v.v[0].var == (how->loop == NONE ? VAR_T : VAR_I))
			set_iteration(c, to->v.v[to->v.n - 1], iteration);
	}
	leave_body(c, outer);
}

/* Sets how many copies a wait leaves under way in the iteration. False: the iteration has no such wait. */
static bool copies_wait_set_class(struct role_op *o, const struct copying *how)
{
	int left = o->point && o->point->copies && o->point->region == how->loop ? o->point->copies->left[how->class] : o->u.count;

	o->u.count = left;
	return left >= 0;
}

void copy_op(struct lowering *c, const struct role_op *o, const struct copying *how)
{
	struct role_op *n = ARENA_NEW(c->a, struct role_op);
	const struct num *iteration = NULL;

	*n = *o;
	if (n->what == DO_COPIES_WAIT && !copies_wait_set_class(n, how))
		return;
	if (n->point)
		move_point(c, n, how);
	if (n->point && n->point->region == how->loop)
		iteration = n->point->iteration;
	if (n->what == DO_INIT || n->what == DO_PIN)
		move_version(c, n, how);
	if (n->what == DO_LOOP_END && n->u.loop_end.loop == how->loop && !n->u.loop_end.exact)
		n->u.loop_end.trips += how->shift;
	if (role_is_region(n->what)) {
		n->u.region.body = n->u.region.other = (struct role_body){ 0 };
		copy_body(c, &o->u.region.body, &n->u.region.body, how, iteration);
		copy_body(c, &o->u.region.other, &n->u.region.other, how, NULL);
	}
	VEC_PUSH(c->a, &c->body->v, n);
}

/* products in flight ----------------------------------------------------------- */

const struct kentry *last_product(const struct lowering *c, int loop)
{
	const struct kentry *last = NULL;

	/* Not of the tile loop: the lane waits for its products when its last tile ends (build_all_products). */
	for (int i = 0; i < c->lane->entries.n && loop != NONE; i++)
		if (is_in_flight(c, c->lane->entries.v[i].task) && program_loop_within(c->p,
		    c->g->tasks.v[c->lane->entries.v[i].task].loop, loop))
			last = &c->lane->entries.v[i];
	return last;
}

void add_join(struct lowering *c, const struct point *p, const struct kentry *entry)
{
	struct point *at = add_groups_wait(c, 0, p, "the compiler sees branches meet");

	at->entry = entry;
	at->pins = true;
	at->signals = SIGNAL_NOTHING;
}

void add_join_wait(struct lowering *c, const struct point *p)
{
	const struct kentry *last = last_product(c, p->region);

	if (last)
		add_join(c, p, last);
}
