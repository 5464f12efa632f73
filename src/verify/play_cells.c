/* Slots, stagings and registers: which accesses are ordered, and which value a read finds. */
#include "verify/play_state.h"

#include <string.h>

/* Has the warp that has the engine overwrite what was read fenced since it knows of that? The engine then writes behind it, as the
 * fence is on the path from one to the other. For what threads wrote they fence themselves. */
static bool fenced_by_issuer(const struct play *p, const struct access *x, const struct access *old)
{
	return !old->writes && x->within && p->warp[x->by].fenced[old->of] >= old->until;
}

/* An error unless `old` happened before x, whose warp has this vector clock, and is visible to it: with a fence of the
 * proxy in between, where an engine does x and threads did `old`. */
static enum err_code check_order(const struct play *p, int cell, const struct access *x,
	const struct access *old, const int *clock)
{
	const char *buffer = p->s->set->plan->graph->buffers.v[p->s->set->buffer.v[cell]].name;
	const char *verb = x->writes ? "writes" : "reads";
	bool by_engine = cell < p->s->set->nshared && x->warp == NONE;

	if ((!x->writes && !old->writes) || (x->instance == old->instance && x->instance != NONE && !x->peer &&
	    (x->warp == NONE) == (old->warp == NONE)))
		return OK;
	if (x->sums && old->sums)	/* the matrix unit adds in order */
		return OK;
	if (clock[old->of] < old->until)
		return err_set(p->e, ERR_ILLEGAL, play_line(p, x->instance), "%s %s '%s' while %s may still be "
			"about to %s it", play_name(p, x->instance), verb, buffer, play_name(p, old->instance),
			old->writes ? "write" : "read");
	/* a cp.async (copied) is no access by the async proxy: it may overwrite what threads have read once that is signaled */
	if (by_engine && old->warp != NONE && (old->writes || !x->copied) &&
	    (!old->fence || clock[component(old->warp, EVENTS)] < old->fence) && !fenced_by_issuer(p, x, old))
		return err_set(p->e, ERR_ILLEGAL, play_line(p, x->instance), "%s %s '%s' by an engine, without a fence "
			"after %s %s it", play_name(p, x->instance), verb, buffer, play_name(p, old->instance),
			old->writes ? "wrote" : "read");
	/* a warp that has an engine read what threads have copied must fence after it has seen the copies complete */
	if (by_engine && !x->copied && old->copied && p->warp[x->by].fenced[old->of] < old->until)
		return err_set(p->e, ERR_ILLEGAL, play_line(p, x->instance), "%s %s '%s' by an engine, without a fence "
			"after it has seen what %s copied", play_name(p, x->instance), verb, buffer,
			play_name(p, old->instance));
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

/* A read must find the value of the instance that the program says. */
static enum err_code check_value(const struct play *p, const struct cell_state *at, int cell, const struct act *a)
{
	int instance = a->instance, want = a->want;

	if ((want == NONE && !a->initial) || (at->written && at->writer == want))
		return OK;
	return err_set(p->e, ERR_ILLEGAL, play_line(p, instance), "%s reads '%s' as %s left it, not %s",
		play_name(p, instance), p->s->set->plan->graph->buffers.v[p->s->set->buffer.v[cell]].name,
		at->written && at->writer != NONE ? play_name(p, at->writer) : "nobody",
		want == NONE ? "its initial value" : play_name(p, want));
}

enum err_code play_add_access(struct play *p, int block, struct warp *w, int cell, struct access x)
{
	struct cell_state *at = cell_at(p, block, w, cell);
	int writer = x.initial ? NONE : x.instance;

	for (int i = 0; i < at->now.n; i++)
		TRY(check_order(p, cell, &x, &at->now.v[i], w->clock));
	for (int i = 0; i < at->before.n && x.writes; i++)
		TRY(check_order(p, cell, &x, &at->before.v[i], w->clock));
	if (x.writes && !(at->written && at->writer == writer)) {
		struct cell_state old = *at;

		*at = (struct cell_state){ .writer = writer, .written = true, .before = old.now, .now = old.before };
		at->now.n = 0;			/* its memory is used again */
	}
	VEC_PUSH(p->a, &at->now, x);
	return OK;
}

enum err_code play_access(struct play *p, struct warp *w, const struct act *a)
{
	bool sums = a->kind == ACT_GROUP_SUM, writes = a->kind == ACT_WRITE || sums;
	enum warp_component of = sums || a->kind == ACT_GROUP_READ ? GROUPS : a->kind == ACT_STORE ? STORES : EVENTS;
	int me = warp_index(p, w);
	struct access x = { .of = component(me, of), .instance = a->instance, .by = me,
		.until = of == GROUPS ? w->groups + 1 : of == STORES ? w->stores + 1 : w->event,
		.warp = of == EVENTS ? me : NONE, .writes = writes, .sums = sums,
		.initial = writes && a->initial && !sums, .fence = a->fenced ? w->event : 0 };

	for (int b = 0; b < p->blocks; b++) {
		if (b != w->block && !a->peers)
			continue;
		x.peer = b != w->block;
		if (!writes || sums)
			TRY(check_value(p, cell_at(p, b, w, a->at), a->at, a));
		TRY(play_add_access(p, b, w, a->at, x));
	}
	if (of == EVENTS && a->at < p->s->set->nshared && !a->fenced)
		VEC_PUSH(p->a, &w->unfenced, a->at);
	return OK;
}

enum err_code play_counted_copy(struct play *p, struct warp *w, const struct act *a)
{
	int me = warp_index(p, w);

	w->copies += a->n;
	return play_add_access(p, w->block, w, a->to, (struct access){ .of = component(me, COPIES), .until = w->copies,
		.instance = a->instance, .warp = NONE, .by = me, .copied = true, .writes = true });
}

void play_fence(struct play *p, struct warp *w)
{
	int me = warp_index(p, w);

	memcpy(w->fenced, w->clock, (size_t)p->nclock * sizeof(int));
	for (int i = 0; i < w->unfenced.n; i++) {
		struct cell_state *at = cell_at(p, w->block, w, w->unfenced.v[i]);

		for (int k = 0; k < at->now.n; k++)
			if (at->now.v[k].warp == me && !at->now.v[k].fence)
				at->now.v[k].fence = w->event;
	}
	w->unfenced.n = 0;
}
