/* Slots, stagings and registers: which accesses are ordered, and which value a read finds. */
#include "verify/play_state.h"

#include <string.h>

static const char *verb(const struct access *x)
{
	return x->writes ? "writes" : "reads";
}

static enum err_code race(const struct play *p, const char *buffer, const struct access *x, const struct access *old)
{
	return err_set(p->e, ERR_ILLEGAL, play_line(p, x->instance), "%s %s '%s' while %s may still be "
		"about to %s it", play_name(p, x->instance), verb(x), buffer, play_name(p, old->instance),
		old->writes ? "write" : "read");
}

/* Is access `old` over for access x, which starts with this clock? */
static enum err_code check_order(const struct play *p, int cell, const struct access *x,
	const struct access *old, const int *clock)
{
	const char *buffer = p->s->set->plan->graph->buffers.v[p->s->set->buffer[cell]].name;

	if ((!x->writes && !old->writes) || (x->instance == old->instance && x->instance != NONE &&
	    (x->warp == NONE) == (old->warp == NONE)))
		return OK;
	if (x->sums && old->sums)	/* the matrix unit adds in order */
		return OK;
	if (clock[old->of] < old->until)
		return race(p, buffer, x, old);
	if (cell < p->s->set->nshared && x->warp == NONE && old->warp != NONE && old->writes &&
	    (!old->fence || clock[events_of(p, old->warp)] < old->fence))
		return err_set(p->e, ERR_ILLEGAL, play_line(p, x->instance), "%s %s '%s' by an engine, "
			"without a fence after %s wrote it", play_name(p, x->instance), verb(x), buffer,
			play_name(p, old->instance));
	/* a warp that has an engine read what threads have copied must fence after it has seen the copies complete */
	if (cell < p->s->set->nshared && x->warp == NONE && !x->copied && old->copied &&
	    p->warp[x->by].fenced[old->of] < old->until)
		return err_set(p->e, ERR_ILLEGAL, play_line(p, x->instance), "%s %s '%s' by an engine, "
			"without a fence after it has seen what %s copied", play_name(p, x->instance), verb(x),
			buffer, play_name(p, old->instance));
	return OK;
}

int play_ncells(const struct play *p)
{
	return p->s->set->nslots + (p->s->set->ncells - p->s->set->nslots) * WARPS;
}

static struct cell_state *cell_at(const struct play *p, int block, const struct warp *w, int cell)
{
	int shared = p->s->set->nslots, first = block * play_ncells(p);

	return &p->cell[first + (cell < shared ? cell : shared + (cell - shared) * WARPS + w->number)];
}

static enum err_code check_accesses(const struct play *p, const struct cell_state *at, int cell,
	const struct access *x, const int *clock)
{
	for (int i = 0; i < at->now.n; i++)
		TRY(check_order(p, cell, x, &at->now.v[i], clock));
	for (int i = 0; i < at->before.n && x->writes; i++)
		TRY(check_order(p, cell, x, &at->before.v[i], clock));
	return OK;
}

/* A read must find the value of the instance that the program says. */
static enum err_code check_value(const struct play *p, const struct cell_state *at, int cell, const struct act *a)
{
	int instance = a->instance, want = a->want;

	if ((want == NONE && !a->initial) || (at->written && at->writer == want))
		return OK;
	return err_set(p->e, ERR_ILLEGAL, play_line(p, instance), "%s reads '%s' as %s left it, not %s", play_name(p,
		instance), p->s->set->plan->graph->buffers.v[p->s->set->buffer[cell]].name, at->written && at->writer !=
		NONE ? play_name(p, at->writer) : "nobody", want == NONE ? "its initial value" : play_name(p, want));
}

enum err_code play_add_access(struct play *p, int block, struct warp *w, int cell, struct access x)
{
	struct cell_state *at = cell_at(p, block, w, cell);
	int writer = x.initial ? NONE : x.instance;

	TRY(check_accesses(p, at, cell, &x, w->clock));
	if (x.writes && !(at->written && at->writer == writer)) {
		struct access *v = at->before.v;
		int cap = at->before.cap;

		at->before.v = at->now.v;
		at->before.n = at->now.n;
		at->before.cap = at->now.cap;
		at->now.v = v;
		at->now.n = 0;
		at->now.cap = cap;
		at->written = true;
		at->writer = writer;
	}
	VEC_PUSH(p->a, &at->now, x);
	return OK;
}

enum err_code play_access(struct play *p, struct warp *w, const struct act *a)
{
	bool group = a->kind == ACT_GROUP_READ || a->kind == ACT_GROUP_SUM;
	int me = warp_index(p, w);
	struct access x = { .of = group ? groups_of(p, me) : events_of(p, me),
		.until = group ? w->groups + 1 : w->event, .instance = a->instance,
		.warp = group ? NONE : me, .by = me, .writes = a->kind == ACT_WRITE || a->kind == ACT_GROUP_SUM,
		.sums = a->kind == ACT_GROUP_SUM, .initial = a->kind == ACT_WRITE && a->initial };

	if (!x.writes || x.sums)
		TRY(check_value(p, cell_at(p, w->block, w, a->at), a->at, a));
	TRY(play_add_access(p, w->block, w, a->at, x));
	if (x.writes && !group && a->at < p->s->set->nshared)
		VEC_PUSH(p->a, &w->unfenced, a->at);
	return OK;
}

enum err_code play_store(struct play *p, struct warp *w, const struct act *a)
{
	int me = warp_index(p, w);
	struct access x = { .of = stores_of(p, me), .until = w->stores + 1, .instance = a->instance,
		.warp = NONE, .by = me };

	TRY(check_value(p, cell_at(p, w->block, w, a->at), a->at, a));
	return play_add_access(p, w->block, w, a->at, x);
}

void play_fence(struct play *p, struct warp *w)
{
	int me = warp_index(p, w);

	memcpy(w->fenced, w->clock, (size_t)p->nclock * sizeof(int));
	for (int i = 0; i < w->unfenced.n; i++) {
		struct cell_state *at = cell_at(p, w->block, w, w->unfenced.v[i]);

		for (int k = 0; k < at->now.n; k++)
			if (at->now.v[k].warp == me && at->now.v[k].writes && !at->now.v[k].fence)
				at->now.v[k].fence = w->event;
	}
	w->unfenced.n = 0;
}
