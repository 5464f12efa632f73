#include "verify/kept.h"

#include "base/prng.h"
#include "plan/keep.h"

enum {
	TRIED_AROUND = 64,		/* combinations of tiles of all axes, around which each axis is moved */
	TILES_TRIED = 64,		/* of an axis */
};

struct kept_check {
	const struct role_program *r;
	const struct plan *p;
	struct err *e;
};

static enum err_code report(const struct kept_check *c, int task, const char *what)
{
	const struct stask *s = &c->p->graph->tasks.v[task];

	return err_set(c->e, ERR_ILLEGAL, s->loc, "the kernel is wrong: '%s' leaves out copies, but %s", s->name, what);
}

/* Numbers where tiles begin at lo[axis]. */
struct tile_env {
	struct num_env env;
	int64_t lo[AXES_MAX];
	bool *other;			/* set if anything else is asked for */
};

static int64_t tile_var(const struct num_env *env, enum var v, int of)
{
	const struct tile_env *x = (const struct tile_env *)env;

	*x->other |= v != VAR_LO;
	return v == VAR_LO ? x->lo[of] : 0;
}

/* Do all boxes begin at the same indices for both? */
static bool same_boxes(const struct role_op *o, int rank, const struct tile_env *x, const struct tile_env *y)
{
	for (int i = 0; i < o->u.boxes.boxes.n; i++)
		for (int d = 0; d < rank; d++) {
			const struct num *at = o->u.boxes.boxes.v[i].corner[d];

			if (num_value(at, &x->env) != num_value(at, &y->env))
				return false;
		}
	return true;
}

/* Move one axis after the other: the key says by how much, and boxes of the same key are the same. */
static enum err_code try_around(const struct kept_check *c, const struct role_op *o, const struct keep_part *part, int parts,
	const struct tile_env *at)
{
	const struct program *g = c->p->graph->program;
	int rank = c->r->maps.v[o->u.boxes.map].rank;

	for (int axis = 0; axis < g->axes.n; axis++) {
		int64_t tile = c->p->graph->extents.tile[axis], n = ceil_div(g->axes.v[axis].size, tile);
		int64_t step = ceil_div(n, TILES_TRIED);
		struct tile_env to = *at;

		for (int64_t t = 0; t < n; t += step) {
			int64_t key;

			to.lo[axis] = t * tile;
			key = num_value(o->u.boxes.key, &to.env);
			if (key != keep_key(part, parts, to.lo) || key < 1 || key > INT32_MAX)
				return report(c, o->task, "the number that says what a slot has is another one");
			if (key == num_value(o->u.boxes.key, &at->env) && !same_boxes(o, rank, at, &to))
				return report(c, o->task, "other bytes have the same number");
		}
	}
	return OK;
}

static enum err_code check_key(const struct kept_check *c, const struct role_op *o)
{
	const struct program *g = c->p->graph->program;
	struct keep_part part[AXES_MAX];
	int parts = keep_parts(c->p->graph, o->task, part);
	bool other = false;
	struct tile_env at = { .env.var = tile_var, .other = &other };
	struct prng random = { 1 };

	for (int i = 0; i < TRIED_AROUND; i++) {
		TRY(try_around(c, o, part, parts, &at));
		for (int axis = 0; axis < g->axes.n; axis++) {
			int64_t tile = c->p->graph->extents.tile[axis];

			at.lo[axis] = prng_below(&random, (uint32_t)min_i64(ceil_div(g->axes.v[axis].size, tile), INT32_MAX)) * tile;
		}
	}
	return other ? report(c, o->task, "what it copies depends on more than the tile") : OK;
}

static bool has_values(const struct role_op *o)
{
	for (int i = 0; i < o->u.boxes.boxes.n; i++)
		for (int d = 0; d < RANK_MAX; d++)
			if (o->u.boxes.boxes.v[i].value[d])
				return true;
	return false;
}

/* The ring whose slots have words that the operation writes to; NULL. */
static const struct role_ring *written_ring(const struct role_program *r, const struct role_op *o)
{
	for (int i = 0; i < r->rings.n; i++)
		for (int k = 0; k < o->touches.n && r->rings.v[i].words; k++)
			if (o->touches.v[k].how == TOUCH_WRITE && o->touches.v[k].what == TOUCH_SLOT &&
			    o->touches.v[k].of == r->rings.v[i].buffer)
				return &r->rings.v[i];
	return NULL;
}

static enum err_code check_body(const struct kept_check *c, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];
		const struct role_ring *ring = written_ring(c->r, o);

		if (ring && (o->what != DO_LOAD_BOXES || !o->u.boxes.key))
			return report(c, o->task, "something else writes to its slots");
		if (o->what == DO_LOAD_BOXES && o->u.boxes.key) {
			if (ring != &c->r->rings.v[o->u.boxes.ring] || o->u.boxes.multicast || o->u.boxes.rows || has_values(o) ||
			    c->p->graph->buffers.v[ring->buffer].first != o->task)
				return report(c, o->task, "nothing says what its slots have");
			TRY(check_key(c, o));
		}
		if (role_is_region(o->what)) {
			TRY(check_body(c, &o->u.region.body));
			TRY(check_body(c, &o->u.region.other));
		}
	}
	return OK;
}

enum err_code kept_check(const struct role_program *r, const struct plan *p, struct err *e)
{
	struct kept_check c = { .r = r, .p = p, .e = e };

	for (int i = 0; i < r->roles.n; i++)
		TRY(check_body(&c, &r->roles.v[i].body));
	return OK;
}
