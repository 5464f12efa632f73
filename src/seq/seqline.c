#include "seq/seqline.h"

#include <math.h>

#include "plan/phases.h"
#include "sim/follow.h"
#include "sim/traffic.h"
#include "target/target.h"

/* Where memory binds, a kernel's time does not follow the clock: the share of its longest phase. */
#define MEMORY_BINDS 0.6

/* Of the inputs and outputs of a call, each once. */
static double accessed_bytes(const struct sequence *s, int call)
{
	const struct seq_call *c = &s->calls.v[call];
	double bytes = 0;

	for (int i = 0; i < c->program->tensors.n; i++)
		if (c->program->tensors.v[i].role != TENSOR_TEMP)
			bytes += (double)c->args[i].bytes;
	return bytes;
}

static struct seqline *new_line(struct mem *mem, const struct seqplan *p, const struct timeline *const *timelines,
	struct seqline **out)
{
	struct seqline *l = *out = ARENA_OWNER(mem, struct seqline);

	l->plan = p;
	l->n = p->s->calls.n;
	l->spans = ARENA_ARRAY(&l->arena, l->n, struct seq_span);
	for (int i = 0; i < l->n; i++) {
		int call = p->order[i];

		l->spans[i] = (struct seq_span){ .call = call, .stream = p->launches[call].stream, .after = NONE,
			.timeline = timelines[call], .flops = timelines[call]->flops, .bytes = graph_bytes(p->launches[call].plan->graph) };
		l->flops += l->spans[i].flops;
		l->bytes += l->spans[i].bytes;
	}
	return l;
}

void seqline_free(struct seqline *l)
{
	if (l)
		arena_release(&l->arena);
}

/* ---- L2 ---- */

bool *seqplan_warm(struct arena *a, const struct seqplan *p, int call)
{
	const struct seq_call *c = &p->s->calls.v[call];
	bool *warm = ARENA_ARRAY(a, c->program->tensors.n, bool);
	double between = 0, fits = L2_USABLE * (double)p->device->l2_bytes;
	int at = ints_find(p->order, p->s->calls.n, call);

	while (at-- > 0 && between <= fits) {
		const struct seq_call *before = &p->s->calls.v[p->order[at]];

		for (int i = 0; i < c->program->tensors.n; i++)
			for (int k = 0; k < before->program->tensors.n && between + (double)c->args[i].bytes <= fits; k++)
				warm[i] |= seq_args_overlap(&c->args[i], &before->args[k]);
		between += accessed_bytes(p->s, p->order[at]);
	}
	return warm;
}

/* ---- alone ---- */

/* What the start of kernels takes of a kernel's own prediction. */
static double launch_seconds(const struct plan *p)
{
	return p->device->launch_seconds * phases_launched(p, target_of(p->device));
}

/* Seconds from the end of what a kernel waits for to its start; less what its loads ahead of that save. */
static double start_seconds(struct seqline *l, const struct seq_span *s)
{
	const struct timeline *front = NULL;
	struct follow f;

	for (int i = 0; i < l->n; i++)
		if (l->spans[i].call == s->after)
			front = l->spans[i].timeline;
	if (!front)
		return s->timeline->plan->device->launch_seconds;
	sim_follow(&l->arena, front, s->timeline, l->plan->launches[s->call].early, &f);
	return fmax(f.start - f.saved, 0);
}

/* Seconds that the blocks of a call run if they are alone, at the clock of the complete sequence. */
static double alone(const struct timeline *t, double clock_hz)
{
	double seconds = t->seconds - launch_seconds(t->plan);

	if (clock_hz > 0 && t->clock_hz > 0 && timeline_longest(t)->memory_share <= MEMORY_BINDS)
		seconds *= t->clock_hz / clock_hz;
	return fmax(seconds, 0) + launch_seconds(t->plan) - t->plan->device->launch_seconds;
}

/* The clock at which the board executes all of it again and again. */
static double common_clock(const struct seqline *l, double *watts)
{
	const struct vdevice *d = l->plan->device;
	struct effort sum = { { 0 } };
	double cycles = 0, launches = 0;

	for (int i = 0; i < l->n; i++) {
		const struct timeline *t = l->spans[i].timeline;

		for (int k = 0; k < EFFORT_KINDS; k++)
			sum.of[k] += t->effort.of[k];
		cycles += (double)t->cycles;
		launches += launch_seconds(t->plan);
	}
	return device_clock(d, &sum, cycles, launches, watts);
}

/* ---- together ---- */

/* A kernel that runs: seconds of work that it still has, and the share of the EUs that it takes. */
struct running {
	int span;
	double left, share;
};

/* The share of the EUs that a kernel keeps at work. */
static double share_of(const struct timeline *t)
{
	return (double)timeline_longest(t)->eus / t->plan->device->eus;
}

/* Is all that span i waits for over? *when: since when; *after: what ended last. */
static bool may_start(const struct seqline *l, int i, const bool *ended, double *when, int *after)
{
	const struct seq_launch *x = &l->plan->launches[l->spans[i].call];

	*when = 0;
	*after = NONE;
	for (int k = 0; k < l->n; k++) {
		int call = l->spans[k].call;

		if (!(k < i && l->plan->launches[call].stream == x->stream) && !ints_hold(x->waits.v, x->waits.n, call))
			continue;
		if (!ended[k])
			return false;
		if (l->spans[k].end >= *when) {
			*when = l->spans[k].end;
			*after = call;
		}
	}
	return true;
}

/* Start what may be started, in order of launches; *now is the time. Returns when the next of them begins, if that
 * is later. */
static double start(struct seqline *l, const bool *ended, bool *started, struct running *r, int *n, double now,
	double clock_hz)
{
	double next = HUGE_VAL;

	for (int i = 0; i < l->n; i++) {
		struct seq_span *s = &l->spans[i];

		if (started[i] || !may_start(l, i, ended, &s->launch, &s->after))
			continue;
		s->begin = s->launch + start_seconds(l, s);
		if (s->begin > now) {
			next = fmin(next, s->begin);
			continue;
		}
		started[i] = true;
		r[(*n)++] = (struct running){ i, alone(s->timeline, clock_hz), share_of(s->timeline) };
	}
	return next;
}

static void play(struct seqline *l, double clock_hz)
{
	bool *ended = ARENA_ARRAY(&l->arena, l->n, bool), *started = ARENA_ARRAY(&l->arena, l->n, bool);
	struct running *r = ARENA_ARRAY(&l->arena, l->n, struct running);
	int n = 0, done = 0;
	double now = 0;

	while (done < l->n) {
		double next = start(l, ended, started, r, &n, now, clock_hz), rate = 0, step = next - now;

		for (int i = 0; i < n; i++)
			rate += r[i].share;
		rate = rate > 1 ? 1 / rate : 1;
		for (int i = 0; i < n; i++)
			step = fmin(step, r[i].left / rate);
		if (!n)
			l->idle += step;
		now += step;
		for (int i = n - 1; i >= 0; i--) {
			r[i].left -= step * rate;
			if (r[i].left > 1e-12)
				continue;
			l->spans[r[i].span].end = now;
			ended[r[i].span] = true;
			r[i] = r[--n];
			done++;
		}
	}
	l->seconds = now;
}

void seqline_simulate(struct mem *mem, const struct seqplan *p, const struct timeline *const *timelines,
	struct seqline **out)
{
	struct seqline *l = new_line(mem, p, timelines, out);

	l->clock_hz = common_clock(l, &l->watts);
	play(l, l->clock_hz);
}

/* ---- measured ---- */

void seqline_measured(struct mem *mem, const struct seqplan *p, const struct timeline *const *timelines,
	const double *begin, const double *end, struct seqline **out)
{
	struct seqline *l = new_line(mem, p, timelines, out);
	double busy = 0;

	l->measured = true;
	for (int i = 0; i < l->n; i++) {
		struct seq_span *s = &l->spans[i];

		s->begin = begin[s->call];
		s->end = end[s->call];
		s->launch = s->begin;
		for (int k = 0; k < i; k++)
			if (l->spans[k].end <= s->begin && (s->after == NONE || l->spans[k].end > s->launch)) {
				s->after = l->spans[k].call;
				s->launch = l->spans[k].end;
			}
		l->idle += fmax(0, s->begin - busy);
		busy = fmax(busy, s->end);
	}
	l->seconds = busy;
}
