/* Pins: compilers must not read the registers of a product before the wait that completes it. They are pinned behind a
 * wait for groups, those of all products that are complete then. */
#include "lower/pass/pass.h"

/* The latest iteration of product m that is issued when the lane stands at the point (or just behind it, if m stands
 * there), counted as the point's number is. Entries of a region are in its order. */
int latest_issued(const struct point *p, const struct kentry *x, const struct kentry *m)
{
	int latest = p->number + m->at - (m > x);

	return latest < p->last ? latest : p->last;
}

/* Pins the versions of a product's result that are complete: all but those of the latest `open` instances. */
static enum err_code pin_finished(struct lowering *c, const struct point *p, const struct kentry *x,
	const struct kentry *m, int buffer, int open, struct err *e)
{
	int versions = c->plan->versions[buffer], latest = 0;
	const struct frag *f;

	TRY(find_buffer_frag(c, buffer, &f, e));
	if (f->kind != FRAG_FULL)
		return OK;
	if (is_pinned_where_read(c, m, buffer) && (open || c->g->buffers.v[buffer].loop == NONE))
		return OK;
	if (shifts_tiles(c->lane) && open && stask_of(c, m)->loop != stask_of(c, x)->loop)
		return OK;		/* nothing reads it after its loop */
	if (stask_of(c, m)->loop == stask_of(c, x)->loop)
		latest = latest_issued(p, x, m);
	for (int k = open; k < versions; k++)
		add_pin(c, f, (int)floor_mod(latest - k, versions), frag_block_words(f));
	return OK;
}

/* A carry has one version, which stays open while any product on it is. */
enum err_code add_pins(struct lowering *c, const struct point *p, struct err *e)
{
	const struct kentry *x = p->entry ? p->entry : &c->lane->entries.v[0];

	for (int k = 0; k < c->lane->entries.n; k++) {
		const struct kentry *m = &c->lane->entries.v[k];
		const struct stask *s = stask_of(c, m);

		for (int w = 0; w < s->writes.n && is_in_flight(c, m->task); w++)
			if (!has_ring(c, s->writes.v[w]))
				TRY(pin_finished(c, p,
					x, m, s->writes.v[w], p->instances_left ? p->instances_left[m->task] : 0, e));
	}
	return OK;
}

static enum err_code pin_op(struct lowering *c, struct role_op *o, struct err *e)
{
	append_op(c, o);
	TRY(rewrite_inside(c, o, pin_op, e));
	c->task = o->task;
	return o->what == DO_GROUPS_WAIT && o->point && o->point->pins ? add_pins(c, o->point, e) : OK;
}

enum err_code pass_pin(struct lowering *c, struct err *e)
{
	enum err_code code = rewrite_body(c, &c->role->body, pin_op, e);

	c->task = NONE;
	return code;
}
