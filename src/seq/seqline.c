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
			.timeline = timelines[call], .flops = timelines[call]->flops, .bytes = graph_bytes(timelines[call]->plan->graph) };
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

/* ---- starts ---- */

/* By timelines of kernels and manner of the launch: seconds from the end of the one in front to the start of the
 * other. Kernels of one plan have one timeline, so there are few. */
struct start {
	const struct timeline *front, *behind;
	bool early;
	double seconds;
};

struct starts {
	VEC(struct start) v;
};

/* Seconds from the end of what a kernel waits for, whose timeline is `front`, to the start of the kernel; less
 * what its loads ahead of that save. front NULL: it waits for nothing. */
static double start_seconds(struct seqline *l, struct starts *known, const struct timeline *front,
	const struct seq_span *s)
{
	struct start x = { .front = front, .behind = s->timeline, .early = l->plan->launches[s->call].early };
	struct follow f;

	if (!front)
		return s->timeline->plan->device->launch_seconds;
	for (int i = 0; i < known->v.n; i++)
		if (known->v.v[i].front == x.front && known->v.v[i].behind == x.behind && known->v.v[i].early == x.early)
			return known->v.v[i].seconds;
	sim_follow(&l->arena, x.front, x.behind, x.early, &f);
	x.seconds = fmax(f.start - f.saved, 0);
	VEC_PUSH(&l->arena, &known->v, x);
	return x.seconds;
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

/* A span waits for the one in front of it on its stream, and for those of the calls that its launch names. */
struct waiting {
	int missing;			/* of those, how many have not ended */
	int last;			/* of those that have, the one that did so last; NONE */
	VEC(int) others;		/* spans that wait for this one */
};

struct play {
	struct seqline *l;
	struct waiting *waiting;	/* by span */
	int *ready, nready;		/* spans that miss nothing and have not begun, in order of launches */
	struct running *running;
	int nrunning, done;
	double now, clock_hz;
	struct starts starts;
};

/* The share of the EUs that a kernel keeps at work. */
static double share_of(const struct timeline *t)
{
	return (double)timeline_longest(t)->eus / t->plan->device->eus;
}

/* What span i waits for is over: find when it begins. */
static void make_ready(struct play *p, int i)
{
	struct seq_span *s = &p->l->spans[i];
	int last = p->waiting[i].last, at = p->nready++;

	s->launch = last == NONE ? 0 : p->l->spans[last].end;
	s->after = last == NONE ? NONE : p->l->spans[last].call;
	s->begin = s->launch + start_seconds(p->l, &p->starts, last == NONE ? NULL : p->l->spans[last].timeline, s);
	for (; at > 0 && p->ready[at - 1] > i; at--)
		p->ready[at] = p->ready[at - 1];
	p->ready[at] = i;
}

static void wait_for(struct play *p, int i, int other)
{
	VEC_PUSH(&p->l->arena, &p->waiting[other].others, i);
	p->waiting[i].missing++;
}

static void begin_play(struct play *p, struct seqline *l, double clock_hz)
{
	int front[SEQ_STREAMS_MAX], *span_of = arena_ints(&l->arena, l->n, 0);

	*p = (struct play){ .l = l, .waiting = ARENA_ARRAY(&l->arena, l->n, struct waiting), .ready =
		arena_ints(&l->arena, l->n, 0),
		.running = ARENA_ARRAY(&l->arena, l->n, struct running), .clock_hz = clock_hz };
	for (int i = 0; i < SEQ_STREAMS_MAX; i++)
		front[i] = NONE;
	for (int i = 0; i < l->n; i++)
		span_of[l->spans[i].call] = i;
	for (int i = 0; i < l->n; i++) {
		const struct seq_launch *x = &l->plan->launches[l->spans[i].call];

		p->waiting[i].last = NONE;
		if (front[x->stream] != NONE)
			wait_for(p, i, front[x->stream]);
		for (int k = 0; k < x->waits.n; k++)
			wait_for(p, i, span_of[x->waits.v[k]]);
		front[x->stream] = i;
	}
	for (int i = 0; i < l->n; i++)
		if (!p->waiting[i].missing)
			make_ready(p, i);
}

/* Begin what is ready and whose time has come. Returns when the next one begins. */
static double begin_ready(struct play *p)
{
	double next = HUGE_VAL;
	int kept = 0;

	for (int i = 0; i < p->nready; i++) {
		const struct seq_span *s = &p->l->spans[p->ready[i]];

		if (s->begin > p->now) {
			next = fmin(next, s->begin);
			p->ready[kept++] = p->ready[i];
			continue;
		}
		p->running[p->nrunning++] = (struct running){ p->ready[i], alone(s->timeline, p->clock_hz), share_of(s->timeline) };
	}
	p->nready = kept;
	return next;
}

/* Span i ends now. Of several that end at once the one launched last counts as the last. */
static void end_span(struct play *p, int i)
{
	p->l->spans[i].end = p->now;
	p->done++;
	for (int k = 0; k < p->waiting[i].others.n; k++) {
		int other = p->waiting[i].others.v[k];
		struct waiting *w = &p->waiting[other];

		if (w->last == NONE || p->l->spans[w->last].end < p->now || w->last < i)
			w->last = i;
		if (!--w->missing)
			make_ready(p, other);
	}
}

static void play(struct seqline *l, double clock_hz)
{
	struct play p;

	begin_play(&p, l, clock_hz);
	while (p.done < l->n) {
		double next = begin_ready(&p), rate = 0, step = next - p.now;

		for (int i = 0; i < p.nrunning; i++)
			rate += p.running[i].share;
		rate = rate > 1 ? 1 / rate : 1;
		for (int i = 0; i < p.nrunning; i++)
			step = fmin(step, p.running[i].left / rate);
		if (!p.nrunning)
			l->idle += step;
		p.now += step;
		for (int i = p.nrunning - 1; i >= 0; i--) {
			int span = p.running[i].span;

			p.running[i].left -= step * rate;
			if (p.running[i].left > 1e-12)
				continue;
			p.running[i] = p.running[--p.nrunning];
			end_span(&p, span);
		}
	}
	l->seconds = p.now;
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
