/* Details of the selected event and sTask. The most important lines are first. */
#include <string.h>

#include "draw/label.h"
#include "draw/units.h"
#include "explore/page.h"
#include "explore/pane.h"

enum { WRAP_LEAST = 12, KERNEL_ROWS = 3 };

struct lines {
	struct model *m;
	struct cells *out;
	int y;
};

/* "head    s", with s wrapped. */
static void put_line(struct lines *x, const char *head, const char *s)
{
	int at = text_width(head);
	struct buf b = buf_new(&x->m->frame);

	if (!s[0])
		return;
	text_wrap(&b, s, at, at, (int)max_i64(x->out->w, at + WRAP_LEAST), 0);
	cells_text(x->out, 0, x->y, x->out->w, head, FAINT);
	for (char *row = b.text, *end; row && x->y < x->out->h; row = end) {
		end = strchr(row, '\n');
		if (end)
			*end++ = '\0';
		row += row == b.text ? 0 : strspn(row, " ");
		cells_text(x->out, at, x->y++, x->out->w - at, row, PLAIN);
	}
}

static const char *task_name(const struct model *m, int task)
{
	return task >= 0 && task < m->now->graph->tasks.n ? m->now->graph->tasks.v[task].name : "?";
}

static const char *number(struct model *m, int64_t n)
{
	return unit_keep(&m->frame, unit_count(n));
}

/* ---- the event ---- */

static const char *held_text(struct model *m, const struct event *e)
{
	struct buf b = buf_new(&m->frame);

	if (e->issue > e->ready) {
		struct reason r = event_held_by(m->now->tl, e);

		buf_printf(&b, ", waits %s", number(m, e->issue - e->ready));
		if (r.task != NONE)
			buf_printf(&b, " %s", reason_text(&m->frame, m->now->tl->plan, r));
	}
	buf_printf(&b, ", issued %s", number(m, e->issue));
	if (e->start > e->issue) {
		buf_printf(&b, ", queues %s", number(m, e->start - e->issue));
		if (e->cause_task != NONE && (e->cause == CAUSE_SEU || e->cause == CAUSE_MEMORY))
			buf_printf(&b, " %s", reason_text(&m->frame, m->now->tl->plan,
				(struct reason){ e->cause, e->cause_task }));
	}
	return b.text;
}

/* Slack: by how many cycles the event could complete later without delaying any event that depends on it. */
static const char *slack_text(struct model *m, const struct event *e)
{
	const struct graph *g = m->now->graph;
	const struct lookup *l = model_lookup(m);
	int64_t least = INT64_MAX;
	int first = NONE;

	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *edge = &g->edges.v[i];
		const struct lookup_list *list;
		int near;

		if (edge->from != e->task)
			continue;
		list = &l->of_task[edge->to];
		near = lookup_near(l, list, e->end);
		if (near != NONE && l->line->events.v[near].issue < e->end)
			near = lookup_next_of_task(l, near, 1);
		if (near != NONE && l->line->events.v[near].issue - e->end < least) {
			least = l->line->events.v[near].issue - e->end;
			first = near;
		}
	}
	if (first == NONE)
		return "";
	return arena_strf(&m->frame, "%s cycles, then %s %d is issued", number(m, least),
		task_name(m, l->line->events.v[first].task), (int)l->line->events.v[first].seq);
}

/* Are the warpgroups of the event's lane at different times? */
static bool is_apart(const struct phase_line *line, int event)
{
	for (int g = 0; g < line->events.v[event].nparts; g++)
		if (event_part(line, event, g)->issue != line->events.v[event].issue)
			return true;
	return false;
}

/* "wg0 issued 5,275, starts 5,275, complete 5,559; wg1 ..."; "": all do it at the same time. */
static const char *warpgroups_text(struct model *m)
{
	const struct phase_line *line = model_line(m);
	struct buf b = buf_new(&m->frame);

	if (!is_apart(line, m->sel.event))
		return "";
	for (int g = 0; g <= line->events.v[m->sel.event].nparts; g++) {
		const struct event *e = event_part(line, m->sel.event, g);

		buf_printf(&b, "%swg%d issued %s, starts %s, complete %s", g ? "; " : "", g, number(m, e->issue),
			number(m, e->start), number(m, e->end));
	}
	return b.text;
}

static void put_event(struct lines *x, const struct event *e)
{
	struct model *m = x->m;
	const struct timeline *t = m->now->tl;
	const struct task_cost *cost = model_line(m)->costs ? &model_line(m)->costs[e->task] : NULL;
	struct buf b = buf_new(&m->frame);

	put_line(x, "warps   ", warpgroups_text(m));
	put_line(x, "when    ", arena_strf(&m->frame, "%slane free %s%s, starts %s, complete %s (%s later)",
		is_apart(model_line(m), m->sel.event) ? arena_strf(&m->frame, "wg%d, the last: ", e->nparts) : "",
		number(m, e->ready), held_text(m, e), number(m, e->start), number(m, e->end), number(m, e->end - e->start)));
	put_line(x, "slack   ", slack_text(m, e));
	if (cost) {
		const struct {
			double cycles;
			const char *of;
		} parts[] = { { cost->lane, "of its lane" }, { cost->shared, "waiting for shared memory" },
			{ cost->l2, "of L2" }, { cost->global, "of device memory" }, { cost->latency, "of latency" } };

		for (int i = 0; i < LEN(parts); i++)
			if (parts[i].cycles > 0)
				buf_printf(&b, ", %s %s", number(m, (int64_t)parts[i].cycles), parts[i].of);
		if (cost->handover > 0)
			buf_printf(&b, " (%s to hand over)", number(m, (int64_t)cost->handover));
	}
	put_line(x, "cycles  ", b.len ? b.text + 2 : "");
	if (m->sel.marked) {
		int64_t span = m->sel.cursor > m->sel.mark ? m->sel.cursor - m->sel.mark : m->sel.mark - m->sel.cursor;
		double ii = model_line(m)->ii;

		buf_init(&b, &m->frame);
		buf_printf(&b, "%s cycles", number(m, span));
		if (t->clock_hz > 0)
			buf_printf(&b, ", %s", unit_seconds((double)span / t->clock_hz).s);
		if (ii > 0)
			buf_printf(&b, ", %.2f intervals", (double)span / ii);
		put_line(x, "span    ", b.text);
	}
}

/* ---- the sTask ---- */

static const char *work_text(struct model *m, const struct stask *s, int task)
{
	struct buf b = buf_new(&m->frame);

	buf_printf(&b, "%s", label_shape(&m->frame, m->now->graph, task));
	if (s->work.flops > 0)
		buf_printf(&b, ", %s", unit_si(s->work.flops, "flop").s);
	if (s->work.global_bytes > 0)
		buf_printf(&b, ", %s of memory", unit_bytes(s->work.global_bytes).s);
	if (s->work.shared_bytes > 0)
		buf_printf(&b, ", %s of shared memory", unit_bytes(s->work.shared_bytes).s);
	return b.text;
}

/* "k (slot 1 of 2), v (2 versions)": buffers, with the slot that the instance uses or how many versions there are. */
static const char *buffers_text(struct model *m, const int *v, int n, const struct event *e)
{
	const struct graph *g = m->now->graph;
	struct buf b = buf_new(&m->frame);

	for (int i = 0; i < n; i++) {
		const struct buffer *buf = &g->buffers.v[v[i]];
		int versions = m->now->plan ? m->now->plan->versions[v[i]] : 1;

		buf_printf(&b, "%s%s", i ? ", " : "", buf->name);
		if (versions > 1 && e && g->tasks.v[e->task].loop == buf->loop)
			buf_printf(&b, " (slot %d of %d)", (int)floor_mod(e->seq, versions), versions);
		else if (versions > 1)
			buf_printf(&b, " (%d versions)", versions);
	}
	return b.text;
}

/* Dependences into or out of an sTask: "load_k, softmax +1". */
static const char *edges_text(struct model *m, int task, bool in)
{
	const struct graph *g = m->now->graph;
	const char *last = "";
	struct buf b = buf_new(&m->frame);

	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];
		int d = m->now->plan ? edge_distance(m->now->plan, e) : e->distance;
		const char *s;

		if ((in ? e->to : e->from) != task || e->chain || e->from == e->to)
			continue;
		s = arena_strf(&m->frame, "%s%s%s%s%s", task_name(m, in ? e->from : e->to),
			e->reuse ? " (slot of " : "", e->reuse ? g->buffers.v[e->buffer].name : "",
			e->reuse ? ")" : "", d ? arena_strf(&m->frame, " %+d", d) : "");
		if (strcmp(s, last))
			buf_printf(&b, "%s%s", b.len ? ", " : "", s);
		last = s;
	}
	return b.text;
}

static void put_task(struct lines *x, int task, const struct event *e)
{
	struct model *m = x->m;
	const struct stask *s = &m->now->graph->tasks.v[task];
	int entry = m->now->plan ? plan_entry_of(m->now->plan, task) : NONE;

	put_line(x, "work    ", work_text(m, s, task));
	put_line(x, "reads   ", buffers_text(m, s->reads.v, s->reads.n, e));
	put_line(x, "writes  ", buffers_text(m, s->writes.v, s->writes.n, e));
	put_line(x, "waits   ", m->now->plan ? waits_text(&m->frame, m->now->plan, task) : "");
	put_line(x, "needs   ", edges_text(m, task, true));
	put_line(x, "feeds   ", edges_text(m, task, false));
	if (entry != NONE)
		put_line(x, "append  ", loc_text(&m->frame, m->now->plan->entries.v[entry].loc));
	put_line(x, "program ", loc_text(&m->frame, s->loc));
}

/* The lines of the role program for the sTask, with its waits. */
static void put_kernel(struct lines *x, const char *name)
{
	struct model *m = x->m;
	const char *all = state_kernel_text(m, m->now);
	const char *at = strstr(all, arena_strf(&m->frame, " task '%s'", name));
	size_t indent = 0;

	if (!at || x->out->h - x->y < KERNEL_ROWS)
		return;
	cells_text(x->out, 0, x->y, x->out->w, "kernel  ", FAINT);
	while (at > all && at[-1] != '\n')
		at--;
	for (indent = strspn(at, " "); *at && x->y < x->out->h; x->y++) {
		size_t n = strcspn(at, "\n"), skip = strspn(at, " ");

		cells_text(x->out, 8, x->y, x->out->w - 8, arena_strf(&m->frame, "%.*s",
			(int)(n - (indent < n ? indent : n)), at + indent), skip == indent ? PLAIN : FAINT);
		at += n + (at[n] == '\n');
		if (strspn(at, " ") <= indent)
			return;
	}
}

static const char *title_text(struct model *m, const struct event *e)
{
	const struct plan *p = m->now->plan;
	struct buf b = buf_new(&m->frame);
	int entry = p ? plan_entry_of(p, m->sel.task) : NONE;

	buf_printf(&b, "%s", task_name(m, m->sel.task));
	if (e)
		buf_printf(&b, " %d, tile %d", (int)e->seq, (int)e->tile);
	if (entry != NONE) {
		const struct entry *n = &p->entries.v[entry];

		buf_printf(&b, "  %s on %s", p->lanes.v[n->lane].name, p->device->seu[n->seu].name);
		if (n->at)
			buf_printf(&b, ", at %+d", n->at);
	}
	return b.text;
}

int details_draw(struct model *m, struct cells *out)
{
	struct lines x = { m, out, 0 };
	const struct event *e = model_event(m);

	cells_text(out, 0, x.y++, out->w, title_text(m, e), BOLD);
	if (e && m->now->tl)
		put_event(&x, e);
	put_task(&x, m->sel.task, e);
	put_kernel(&x, m->now->graph->tasks.v[m->sel.task].name);
	return x.y;
}
