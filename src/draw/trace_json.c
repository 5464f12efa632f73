/* A process for each timeline, or for each kernel of a sequence; a thread for each lane and for each row of an
 * asynchronous sEU. Instances are complete events, and those of a thread do not overlap. Flows go from an issue to the work that it starts, and from a cause to
 * the instance that waited for it. Counters say how many slots of each ring are being filled and are full. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/sequences.h"
#include "draw/text.h"
#include "sim/moments.h"

enum { QUEUE_THREADS = 64, THREADS_LANE = 1, THREADS_SEU = 1000, LIVES_MAX = 1 << 22 };

/* Where an instance is in the trace; begin == end: it is not in it. */
struct slice {
	int thread;
	int64_t begin, end;		/* picoseconds */
};

struct trace {
	struct buf *out;
	struct arena *a;
	const struct timeline *t;
	const struct phase_line *line;
	struct lookup lookup;
	int pid, flows;
	double scale;			/* picoseconds a cycle */
	int64_t offset;			/* cycles of the phases before */
	int64_t base;			/* picoseconds: where the first phase begins */
	struct slice *work, *issue;	/* by event; then by part of one (phase_line.parts) */
	int64_t queue[SEU_MAX][QUEUE_THREADS];
	int depth[SEU_MAX];
	bool lane[LANES_MAX][REPLICAS_MAX];
	bool split[LANES_MAX];		/* its warpgroups have threads of their own, instead of replicas */
	bool any;
};

static int64_t time_of(const struct trace *r, int64_t cycle)
{
	return r->base + llround((double)(cycle + r->offset) * r->scale);
}

/* Picoseconds as the format's microseconds, exactly. */
static void put_time(struct trace *r, const char *key, int64_t ps)
{
	buf_printf(r->out, ",\"%s\":%lld.%06lld", key, (long long)(ps / 1000000), (long long)(ps % 1000000));
}

static void begin_record(struct trace *r, const char *kind, int thread)
{
	buf_printf(r->out, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", r->any ? "," : "", kind, r->pid, thread);
	r->any = true;
}

static void put_name(struct trace *r, const char *what, int thread, const char *name, int order)
{
	bool process = strcmp(what, "process_name") == 0;

	begin_record(r, "M", thread);
	buf_printf(r->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	text_put_quoted(r->out, name);
	buf_puts(r->out, "}}");
	begin_record(r, "M", thread);
	buf_printf(r->out, ",\"name\":\"%s\",\"args\":{\"sort_index\":%d}}",
		process ? "process_sort_index" : "thread_sort_index", order);
}

static int lane_thread(const struct event *e, int replica)
{
	return THREADS_LANE + e->lane * REPLICAS_MAX + replica;
}

/* A complete event, without what overlaps an earlier one of its thread; false if nothing is left of it. */
static bool put_slice(struct trace *r, int64_t *until, int thread, int64_t from, int64_t to,
	const char *name, const char *category, struct slice *out)
{
	from = from > *until ? from : *until;
	if (to <= from)
		return false;
	*until = to;
	if (out)
		*out = (struct slice){ thread, from, to };
	begin_record(r, "X", thread);
	buf_puts(r->out, ",\"name\":");
	text_put_quoted(r->out, name);
	buf_printf(r->out, ",\"cat\":\"%s\"", category);
	put_time(r, "ts", from);
	put_time(r, "dur", to - from);
	return true;
}

static void put_args(struct trace *r, const struct event *e)
{
	static const char *const causes[] = { NULL, "completion", "issue order", "sEU", "memory", "drain", "barrier" };
	const struct graph *g = r->t->plan->graph;

	buf_printf(r->out, ",\"args\":{\"iteration\":%d,\"tile\":%d,\"cycles\":%lld", e->seq, e->tile,
		(long long)(e->end - e->issue));
	if (e->cause != CAUSE_NONE)
		buf_printf(r->out, ",\"waited for\":\"%s\"", causes[e->cause]);
	if (e->cause_task != NONE) {
		buf_puts(r->out, ",\"on\":");
		text_put_quoted(r->out, g->tasks.v[e->cause_task].name);
	}
	buf_puts(r->out, "}}");
}

/* The events of a lane, or of a warpgroup that drifts from the others: it waits, issues or executes. */
static void put_lane(struct trace *r, int lane, int replica)
{
	int groups = r->lookup.drifts[lane];
	const struct lookup_list none = { 0 }, *list = !groups ? &r->lookup.of_lane[lane][replica] :
		replica < groups ? &r->lookup.of_lane[lane][0] : &none;
	const struct plan *p = r->t->plan;
	int64_t until = INT64_MIN;

	for (int i = 0; i < list->n; i++) {
		const struct event *e = event_part(r->line, list->v[i], groups ? replica : REPLICAS_MAX);
		bool is_part = groups && replica < groups - 1;
		int at = is_part ? r->line->events.n + r->line->events.v[list->v[i]].part + replica : list->v[i];
		const struct event *next = i + 1 < list->n ?
			event_part(r->line, list->v[i + 1], groups ? replica : REPLICAS_MAX) : NULL;
		bool async = p->device->seu[e->seu].async;
		const char *name = p->graph->tasks.v[e->task].name;
		int64_t begins = async ? e->issue : e->start, ends = e->end;

		if (async)
			ends = e->issue + (next && next->ready > e->issue ? min_i64(next->ready - e->issue, 64) : 1);
		if (put_slice(r, &until, lane_thread(e, replica), time_of(r, e->ready), time_of(r, begins),
		    arena_strf(r->a, "wait of %s", name), "wait", NULL))
			put_args(r, e);
		if (put_slice(r, &until, lane_thread(e, replica), time_of(r, begins), time_of(r, ends),
		    arena_strf(r->a, async ? "issue %s %d" : "%s %d", name, e->seq),
		    async ? "issue" : "work", async ? &r->issue[at] : &r->work[at]))
			put_args(r, e);
	}
	r->lane[lane][replica] |= list->n > 0;
	r->split[lane] |= groups > 0;
}

/* The work of an asynchronous sEU, on as many threads as it has events at a time. */
static void put_queue(struct trace *r, int seu)
{
	int events = r->line->events.n, n = 0;
	struct event_time *v = ARENA_ARRAY(r->a, events + r->line->parts.n, struct event_time);
	const struct plan *p = r->t->plan;

	for (int i = 0; i < events; i++) {
		const struct event *e = &r->line->events.v[i];
		bool split;

		if (!event_is_placed(p, e) || e->seu != seu)
			continue;
		split = r->lookup.drifts[e->lane];
		v[n++] = (struct event_time){ split ? e->start : e->start - e->before, i };
		for (int g = 0; split && g < e->nparts; g++)
			v[n++] = (struct event_time){ event_part(r->line, i, g)->start, events + e->part + g };
	}
	qsort(v, (size_t)n, sizeof(*v), event_time_compare);
	for (int i = 0; i < n; i++) {
		bool is_part = v[i].event >= events;
		const struct event *e = is_part ? &r->line->parts.v[v[i].event - events] :
			&r->line->events.v[v[i].event];
		int64_t from = time_of(r, v[i].at), to = time_of(r, e->end);
		int k = 0;

		while (k < QUEUE_THREADS - 1 && r->queue[seu][k] > from)
			k++;
		if (put_slice(r, &r->queue[seu][k], THREADS_SEU + seu * QUEUE_THREADS + k, from,
		    to > from ? to : from + 1, arena_strf(r->a, "%s %d", p->graph->tasks.v[e->task].name,
		    e->seq), "work", &r->work[v[i].event]))
			put_args(r, e);
		r->depth[seu] = (int)max_i64(r->depth[seu], k + 1);
	}
}

/* A flow from one slice to another, in which it ends at `arrives`, or at its begin if that is later. From an issue it
 * starts where the issue begins; from work, as late as possible. */
static void put_flow(struct trace *r, const struct slice *from, const struct slice *to,
	int64_t arrives, const char *name)
{
	int64_t leaves;

	arrives = max_i64(arrives, to->begin);
	leaves = strcmp(name, "issue") ? min_i64(from->end - 1, arrives) : from->begin;
	if (from->end <= from->begin || arrives >= to->end || leaves < from->begin || leaves > arrives)
		return;
	r->flows++;
	for (int end = 0; end < 2; end++) {
		begin_record(r, end ? "f" : "s", end ? to->thread : from->thread);
		buf_printf(r->out, ",\"id\":%d,\"name\":\"%s\",\"cat\":\"flow\"", r->pid * 100000000 + r->flows, name);
		put_time(r, "ts", end ? arrives : leaves);
		buf_puts(r->out, end ? ",\"bp\":\"e\"}" : "}");
	}
}

static void put_flows(struct trace *r)
{
	for (int i = 0; i < r->line->parts.n; i++)
		put_flow(r, &r->issue[r->line->events.n + i], &r->work[r->line->events.n + i],
			time_of(r, r->line->parts.v[i].start), "issue");
	for (int i = 0; i < r->line->events.n; i++) {
		const struct event *e = &r->line->events.v[i];
		int cause;

		if (!event_is_placed(r->t->plan, e))
			continue;
		/* the work that this issue started may begin later than the event */
		put_flow(r, &r->issue[i], &r->work[i], time_of(r, e->start), "issue");
		cause = lookup_cause(&r->lookup, i);
		if (cause != NONE)
			put_flow(r, &r->work[cause], r->issue[i].end > 0 && e->cause != CAUSE_SEU &&
				e->cause != CAUSE_MEMORY ? &r->issue[i] : &r->work[i], 0, "cause");
	}
}

/* ---- rings ---------------------------------------------------------------------- */

struct change {
	int64_t cycle;
	int filling, full;
};

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->cycle > y->cycle) - (x->cycle < y->cycle);
}

/* When each life of a buffer begins to be filled, is full, and has been read by all readers. */
static int lives_of(struct trace *r, const struct moments *m, int buffer, struct change **out)
{
	const struct graph *g = r->t->plan->graph;
	int64_t (*life)[3], most = -1;
	int n = 0, first = g->buffers.v[buffer].first;

	for (int t = 0; t < g->tasks.n; t++)
		for (int i = 0; stask_touches(&g->tasks.v[t], buffer) && i < r->lookup.of_task[t].n; i++)
			most = max_i64(most, moments_life(m, &r->line->events.v[r->lookup.of_task[t].v[i]], buffer));
	most = min_i64(most, LIVES_MAX - 1);
	life = arena_alloc(r->a, (size_t)(most + 1) * sizeof(*life));
	for (int64_t s = 0; s <= most; s++)
		life[s][0] = INT64_MAX;
	for (int t = 0; t < g->tasks.n; t++) {
		for (int i = 0; stask_touches(&g->tasks.v[t], buffer) && i < r->lookup.of_task[t].n; i++) {
			const struct event *e = &r->line->events.v[r->lookup.of_task[t].v[i]];
			int64_t s = moments_life(m, e, buffer);

			if (s < 0 || s > most)
				continue;
			if (t == first) {
				life[s][0] = min_i64(life[s][0], e->issue);
				life[s][1] = max_i64(life[s][1], e->end);
			}
			life[s][2] = max_i64(life[s][2], e->end);
		}
	}
	*out = ARENA_ARRAY(r->a, 3 * (most + 1), struct change);
	for (int64_t s = 0; s <= most; s++) {
		if (life[s][0] == INT64_MAX)
			continue;
		(*out)[n++] = (struct change){ life[s][0], 1, 0 };
		(*out)[n++] = (struct change){ life[s][1], -1, 1 };
		(*out)[n++] = (struct change){ life[s][2], 0, -1 };
	}
	qsort(*out, (size_t)n, sizeof(**out), compare_changes);
	return n;
}

static void put_rings(struct trace *r)
{
	struct moments m;

	moments_init(r->a, &m, &r->lookup);
	for (int i = 0; i < m.nrings; i++) {
		struct change *v;
		int n = lives_of(r, &m, m.ring[i], &v), filling = 0, full = 0;

		for (int k = 0; k < n; k++) {
			filling += v[k].filling;
			full += v[k].full;
			if (k + 1 < n && v[k + 1].cycle == v[k].cycle)
				continue;
			begin_record(r, "C", 0);
			buf_puts(r->out, ",\"name\":");
			text_put_quoted(r->out, arena_strf(r->a, "ring %s",
				r->t->plan->graph->buffers.v[m.ring[i]].name));
			put_time(r, "ts", time_of(r, v[k].cycle));
			buf_printf(r->out, ",\"args\":{\"full\":%d,\"being filled\":%d}}", full, filling);
		}
	}
}

/* ---- the trace ------------------------------------------------------------------- */

static void put_names(struct trace *r, const char *name)
{
	const struct plan *p = r->t->plan;

	put_name(r, "process_name", 0, name, r->pid);
	for (int l = 0; l < p->lanes.n && l < LANES_MAX; l++)
		for (int c = 0; c < REPLICAS_MAX; c++)
			if (r->lane[l][c])
				put_name(r, "thread_name", THREADS_LANE + l * REPLICAS_MAX + c,
					arena_strf(r->a, "lane %s", r->split[l] ? warpgroup_label(r->a, p, l, c) :
						lane_label(r->a, p, l, c)), l * REPLICAS_MAX + c);
	for (int s = 0; s < p->device->nseus; s++)
		for (int k = 0; k < r->depth[s]; k++)
			put_name(r, "thread_name", THREADS_SEU + s * QUEUE_THREADS + k, k ?
				arena_strf(r->a, "%s (%d)", unit_label(r->a, &r->t->phases[0], p->device, s), k + 1) :
				unit_label(r->a, &r->t->phases[0], p->device, s), THREADS_SEU + s * QUEUE_THREADS + k);
}

static void put_phase(struct trace *r, int phase)
{
	r->line = &r->t->phases[phase];
	lookup_init(r->a, &r->lookup, r->t, phase);
	r->work = ARENA_ARRAY(r->a, r->line->events.n + r->line->parts.n, struct slice);
	r->issue = ARENA_ARRAY(r->a, r->line->events.n + r->line->parts.n, struct slice);
	for (int l = 0; l < LANES_MAX; l++)
		for (int c = 0; c < REPLICAS_MAX; c++)
			put_lane(r, l, c);
	for (int s = 0; s < r->t->plan->device->nseus; s++)
		if (r->t->plan->device->seu[s].async)
			put_queue(r, s);
	put_flows(r);
	put_rings(r);
	r->offset += r->line->cycles;
}

static void begin_trace(struct buf *out, const char *script)
{
	buf_puts(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"made by\":\"Millrace\",\"script\":");
	text_put_quoted(out, script ? script : "");
	buf_puts(out, "},\"traceEvents\":[");
}

void trace_json(const struct timeline *const *t, const char *const *names, int n, const char *script, struct buf *out)
{
	bool any = false;

	begin_trace(out, script);
	for (int i = 0; i < n; i++) {
		double clock = t[i]->clock_hz > 0 ? t[i]->clock_hz : t[i]->plan->device->clock_hz;
		struct trace *r = ARENA_NEW(out->arena, struct trace);

		*r = (struct trace){ .out = out, .a = out->arena, .t = t[i], .pid = i + 1, .any = any,
			.scale = t[i]->logical || !(clock > 0) ? 1e6 : 1e12 / clock };
		for (int k = 0; k < t[i]->nphases; k++)
			put_phase(r, k);
		put_names(r, names[i]);
		any = r->any;
	}
	buf_puts(out, "\n]}\n");
}

/* ---- sequences ------------------------------------------------------------------- */

static int64_t picoseconds(double seconds)
{
	return llround(seconds * 1e12);
}

/* The kernels as slices of the threads of their streams. */
static void put_streams(struct trace *r, const struct seqline *l)
{
	int streams[SEQ_STREAMS_MAX], n = seqline_streams(l, streams);

	put_name(r, "process_name", 0, l->plan->s->name, r->pid);
	for (int k = 0; k < n; k++) {
		int64_t until = INT64_MIN;

		put_name(r, "thread_name", THREADS_LANE + streams[k], arena_strf(r->a, "stream %d", streams[k]), k);
		for (int i = 0; i < l->n; i++) {
			const struct seq_span *s = &l->spans[i];

			if (s->stream != streams[k] || !put_slice(r, &until, THREADS_LANE + s->stream,
			    picoseconds(s->begin), picoseconds(s->end), l->plan->s->calls.v[s->call].name, "kernel", NULL))
				continue;
			buf_puts(r->out, ",\"args\":{\"bound by\":");
			text_put_quoted(r->out, seq_span_bound(r->a, s));
			if (s->after != NONE) {
				buf_puts(r->out, ",\"after\":");
				text_put_quoted(r->out, l->plan->s->calls.v[s->after].name);
			}
			buf_puts(r->out, "}}");
		}
	}
}

void trace_json_sequence(const struct seqline *l, const char *script, struct buf *out)
{
	struct trace *r = ARENA_NEW(out->arena, struct trace);
	bool any;

	begin_trace(out, script);
	*r = (struct trace){ .out = out, .a = out->arena, .pid = 1 };
	put_streams(r, l);
	any = r->any;
	for (int i = 0; i < l->n; i++) {
		const struct seq_span *s = &l->spans[i];

		r = ARENA_NEW(out->arena, struct trace);
		*r = (struct trace){ .out = out, .a = out->arena, .t = s->timeline, .pid = 2 + i, .any = any,
			.base = picoseconds(s->begin),
			.scale = (s->end - s->begin) * 1e12 / (double)max_i64(s->timeline->cycles, 1) };
		for (int k = 0; k < s->timeline->nphases; k++)
			put_phase(r, k);
		if (s->timeline->nphases)
			put_names(r, arena_strf(r->a, "%s: %s", l->plan->s->calls.v[s->call].name,
				s->timeline->plan->graph->program->name));
		any = r->any;
	}
	buf_puts(out, "\n]}\n");
}
