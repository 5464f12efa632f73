/* Others are signaled that a run of a loop is over: behind the loop, or, where a flag is early, behind the last
 * instance in it. */
#include "lower/pass/build.h"

/* A run is over: signals its flag, or counts it, to be signaled once its products are known to be complete. */
static void signal_run(struct lowering *c, int f)
{
	const struct flag *fl = &c->k->flags.v[f];
	const struct num *seq = instance_number(c, c->p->loops.v[fl->loop].parent);
	struct point *p;

	if (fl->in_loop)
		add_set(c, VAR_SIGNALLED, f, ADD(seq, N(c, 1)));
	if (!is_in_flight(c, fl->task) || fl->issued) {
		add_arrive(c, f, seq, "the run is over");
		return;
	}
	add_advance(c, VAR_ISSUED, f, N(c, 1));
	if (!fl->ends_complete)
		return;
	p = add_groups_wait(c, 0, c->point, "others wait for the end of the run");
	p->entry = NULL;
	p->iteration = NULL;
	p->pins = true;
	p->signals = SIGNAL_COMPLETE;
}

void build_signal_run_if(struct lowering *c, int f, const struct num *when)
{
	struct role_body *outer = enter_body(c, &add_if(c, when, NULL)->u.region.body);

	signal_run(c, f);
	leave_body(c, outer);
}

/* Behind sTask x, which may be the last instance of a run. */
void build_early_runs(struct lowering *c, const struct kentry *x)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];
		const struct num *last = N(c, 1);

		if (!fl->in_loop || fl->task != x->task)
			continue;
		for (int l = stask_of(c, x)->loop; l != c->p->loops.v[fl->loop].parent; l = c->p->loops.v[l].parent)
			last = NUM2(BOTH, last, NUM2(EQ, V(c, VAR_I, l), SUB(V(c, VAR_TRIPS, l), N(c, 1))));
		build_signal_run_if(c, f, last);
	}
}

/* A run of loop `nested` is over. */
void build_run_end(struct lowering *c, const struct kstep *nested)
{
	struct point *p;

	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];

		if (fl->runs && fl->loop == nested->id && in_lane(c, fl->task) && !fl->in_loop)
			signal_run(c, f);
	}
	if (nested->groups_left == NONE)
		return;
	p = add_groups_wait(c, nested->groups_left > GROUPS_MOST ? GROUPS_MOST : nested->groups_left, c->point,
		"others wait for the end of the run");
	p->entry = NULL;
	p->signals = SIGNAL_RUNS;
	p->run_of = nested->id;
}
