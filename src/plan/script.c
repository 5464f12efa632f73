/* A plan as Lua statements. */
#include "plan/plan.h"

#include <ctype.h>
#include <string.h>

/* Print an option that is not 0, and the comma before it if another one precedes. */
static void print_number(struct buf *out, const char *name, int n, const char **comma)
{
	if (!n)
		return;
	buf_printf(out, "%s%s=%d", *comma, name, n);
	*comma = ", ";
}

static void print_lanes(const struct plan *p, struct buf *out)
{
	for (int i = 0; i < p->lanes.n; i++) {
		const struct lane *l = &p->lanes.v[i];
		const char *comma = "";

		buf_printf(out, "plan:lane(\"%s\", {", l->name);
		print_number(out, "warps", l->warps, &comma);
		print_number(out, "columns", l->columns, &comma);
		print_number(out, "registers", l->registers, &comma);
		print_number(out, "spare", l->spare, &comma);
		print_number(out, "replicas", l->replicas > 1 ? l->replicas : 0, &comma);
		print_number(out, "priority", l->priority, &comma);
		buf_puts(out, "})\n");
	}
}

bool script_is_key(const char *name)
{
	static const char *const words[] = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function",
		"goto", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" };
	int i;

	FIND_FIRST(i, LEN(words), !strcmp(name, words[i]));
	return i < 0 && !strchr(name, '.') && !isdigit((unsigned char)*name);	/* load_0 fills "0" */
}

/* ---- what shapes the graph -------------------------------------------------------------------- */

static const struct task *task_of(const struct graph *g, int stask)
{
	return &g->program->tasks.v[g->tasks.v[stask].task];
}

static void print_windows(const struct graph *g, struct buf *out)
{
	for (int i = 0; i < g->nwindows; i++)
		for (int k = 0; k < g->windows[i].n; k++)
			buf_printf(out, "%s\"%s\"%s", k ? ", " : "plan:window{", g->windows[i].names[k],
				k + 1 == g->windows[i].n ? "}\n" : "");
}

/* What is split off from one sTask stands behind it, the last one split off first; so it is printed from behind. */
static void print_split_offs(const struct graph *g, struct buf *out)
{
	int behind = g->program->tasks.n - g->nfetches, first = behind - g->nsplit_offs;

	for (int i = 0, end; i < g->tasks.n; i = end + 1) {
		for (end = i; end < g->tasks.n && g->tasks.v[end].task >= first && g->tasks.v[end].task < behind; end++)
			;
		for (int k = end - 1; k >= i; k--)
			if (g->tasks.v[k].slice == 0) {
				buf_printf(out, "plan:split_off(\"%s\", \"%s\"", g->split_offs[g->tasks.v[k].task - first],
					task_of(g, k)->name);
				buf_printf(out, task_of(g, k)->nodes.n > 1 ? ", %d)\n" : ")\n", task_of(g, k)->nodes.n);
			}
	}
}

/* One statement for each product. */
static void print_fetches(const struct graph *g, struct buf *out)
{
	int first = g->program->tasks.n - g->nfetches, arg;

	for (int t = 0; t < g->tasks.n; t++) {
		const char *comma = "", *last = "";

		for (int i = 0; i < g->tasks.n && g->tasks.v[t].kind == TASK_MMA && g->tasks.v[t].slice == 0; i++) {
			const struct stask *s = &g->tasks.v[i];
			const char *value = s->task < first ? NULL : g->fetches[s->task - first];

			if (!value || s->slice || graph_fetched_for(g, s, &arg)->task != g->tasks.v[t].task || !strcmp(value, last))
				continue;
			if (!*last)
				buf_printf(out, "plan:fetch(\"%s\", {", task_of(g, t)->name);
			buf_printf(out, "%s\"%s\"", comma, value);
			comma = ", ";
			last = value;
		}
		buf_puts(out, *last ? "})\n" : "");
	}
}

static void print_directs(const struct graph *g, struct buf *out)
{
	for (int i = 0; i < g->ndirects; i++)
		buf_printf(out, "%s\"%s\"%s", i ? ", " : "plan:direct{", g->directs[i], i + 1 == g->ndirects ? "}\n" : "");
}

static void print_swaps(const struct graph *g, struct buf *out)
{
	for (int i = 0; i < g->nswaps; i++)
		buf_printf(out, "plan:swap(\"%s\")\n", g->swaps[i]);
}

static bool is_split_alike(const struct graph *g, int a, int b)
{
	const struct stask *x = &g->tasks.v[a], *y = &g->tasks.v[b];

	return y->slice == 0 && x->slices == y->slices && x->split_axis == y->split_axis;
}

/* One statement for all sTasks that are split alike; it names them if they are not all that it would split. */
static void print_splits(const struct plan *p, struct buf *out)
{
	const struct graph *g = p->graph;
	int *all = ARENA_ARRAY(out->arena, g->program->tasks.n, int);

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		const char *comma = ", {";
		int first, n = 0;

		FIND_FIRST(first, i + 1, is_split_alike(g, i, first));
		if (s->slices == 1 || first != i)
			continue;
		for (int k = i; k < g->tasks.n; k++)
			n += is_split_alike(g, i, k);
		buf_printf(out, "plan:split(\"%s\", %d", g->program->axes.v[s->split_axis].name, s->slices);
		if (n != split_all(g->program, NULL, s->split_axis, all))
			for (int k = i; k < g->tasks.n; k++)
				if (is_split_alike(g, i, k)) {
					buf_printf(out, "%s\"%s\"", comma, task_of(g, k)->name);
					comma = ", ";
				}
		buf_puts(out, comma[2] ? ")\n" : "})\n");
	}
}

/* Is each slice of the value, of which b is one, an alias of the same slice of another one? */
static bool are_all_aliases(const struct graph *g, int b)
{
	const struct buffer *x = &g->buffers.v[b];
	int first = b - x->slice;

	for (int i = 0; i < x->slices; i++)
		if (g->buffers.v[first + i].alias_of != g->buffers.v[first].alias_of + i)
			return false;
	return g->buffers.v[first].alias_of != NONE && g->buffers.v[g->buffers.v[first].alias_of].slice == 0;
}

static void print_aliases(const struct graph *g, struct buf *out)
{
	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		bool all = b->slices > 1 && are_all_aliases(g, i);
		const char *what = b->name, *of;

		if (b->alias_of == NONE || (all && b->slice))
			continue;
		of = g->buffers.v[b->alias_of].name;
		if (all) {
			what = arena_strf(out->arena, "%.*s", (int)strcspn(what, "."), what);
			of = arena_strf(out->arena, "%.*s", (int)strcspn(of, "."), of);
		}
		buf_printf(out, script_is_key(what) ? "plan:alias{%s=\"%s\"}\n" : "plan:alias{[\"%s\"]=\"%s\"}\n", what, of);
	}
}

/* ---- the plan itself --------------------------------------------------------------------------- */

static void print_buffers(const struct plan *p, struct buf *out)
{
	const char *comma = "";

	for (int i = 0; i < p->graph->buffers.n; i++) {
		if (p->versions[i] == 1)
			continue;
		buf_puts(out, *comma ? comma : "plan:buffers{");
		buf_printf(out, script_is_key(p->graph->buffers.v[i].name) ? "%s=%d" : "[\"%s\"]=%d",
			p->graph->buffers.v[i].name, p->versions[i]);
		comma = ", ";
	}
	if (*comma)
		buf_puts(out, "}\n");
}

static void print_grid(const struct plan *p, struct buf *out)
{
	const struct grid_plan *g = &p->grid;

	if (!g->eus && g->raster == RASTER_ROWS && g->group == 1 && !g->longest_first && !g->dynamic && g->cluster == 1 && g->keep == 1 &&
	    g->chiplets <= 1)
		return;
	buf_printf(out, "plan:grid{raster=\"%s\", group=%d", g->raster == RASTER_ROWS ? "rows" : "columns", g->group);
	if (g->eus)
		buf_printf(out, ", eus=%d", g->eus);
	if (g->longest_first)
		buf_puts(out, ", longest_first=true");
	if (g->section)
		buf_printf(out, ", section=%d", g->section);
	if (g->dynamic)
		buf_puts(out, ", dynamic=true");
	if (g->cluster > 1)
		buf_printf(out, ", cluster=%d", g->cluster);
	if (g->keep > 1)
		buf_printf(out, ", keep=%d", g->keep);
	if (g->along != NONE)
		buf_printf(out, ", along=\"%s\"", p->graph->program->axes.v[g->along].name);
	if (g->divided)
		buf_printf(out, ", divide=\"%s\"", p->graph->program->axes.v[g->divided - 1].name);
	if (g->chiplets > 1)
		buf_printf(out, ", chiplets=%d", g->chiplets);
	buf_puts(out, "}\n");
}

static void print_launch(const struct plan *p, struct buf *out)
{
	const struct launch_plan *l = &p->launch;
	const char *comma = "";

	if (plan_launches_as_usual(p))
		return;
	buf_puts(out, "plan:launch{");
	if (l->next != NEXT_AUTO) {
		buf_printf(out, "next=\"%s\"", launch_next_names[l->next]);
		comma = ", ";
	}
	if (l->ready.n)
		buf_printf(out, "%sready={", comma);
	for (int i = 0; i < l->ready.n; i++)
		buf_printf(out, "%s\"%s\"", i ? ", " : "", p->graph->program->tensors.v[l->ready.v[i]].name);
	buf_puts(out, l->ready.n ? "}}\n" : "}\n");
}

static void print_entries(const struct plan *p, struct buf *out)
{
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];

		buf_printf(out, "plan:append(\"%s\", {seu=\"%s\", lane=\"%s\"", p->graph->tasks.v[e->task].name,
			p->device->seu[e->seu].name, p->lanes.v[e->lane].name);
		if (e->at)
			buf_printf(out, ", at=%d", e->at);
		if (e->by_rows)
			buf_puts(out, ", by_rows=true");
		buf_puts(out, "})\n");
	}
}

static void print_wait(const struct plan *p, const struct wait *w, struct buf *out)
{
	const char *on = p->graph->tasks.v[w->on].name;

	if (w->distance == DISTANCE_AUTO && w->when == WAIT_COMPLETE) {
		buf_printf(out, "\"%s\"", on);
		return;
	}
	buf_printf(out, "{\"%s\"", on);
	if (w->distance != DISTANCE_AUTO)
		buf_printf(out, ", distance=%d", w->distance);
	if (w->when == WAIT_ISSUED)
		buf_puts(out, ", when=\"issued\"");
	buf_putc(out, '}');
}

/* One statement a waiting sTask, in order of its first wait. */
static void print_waits(const struct plan *p, struct buf *out)
{
	for (int i = 0; i < p->waits.n; i++) {
		int task = p->waits.v[i].task, first;
		const char *comma = "";

		FIND_FIRST(first, i, p->waits.v[first].task == task);
		if (first != NONE)
			continue;
		buf_printf(out, "plan:wait(\"%s\", {", p->graph->tasks.v[task].name);
		for (int j = i; j < p->waits.n; j++) {
			if (p->waits.v[j].task != task)
				continue;
			buf_puts(out, comma);
			print_wait(p, &p->waits.v[j], out);
			comma = ", ";
		}
		buf_puts(out, "})\n");
	}
}

void plan_script(const struct plan *p, struct buf *out)
{
	print_windows(p->graph, out);
	print_split_offs(p->graph, out);
	print_fetches(p->graph, out);
	print_directs(p->graph, out);
	print_swaps(p->graph, out);
	print_splits(p, out);
	print_aliases(p->graph, out);
	print_lanes(p, out);
	print_buffers(p, out);
	print_grid(p, out);
	print_launch(p, out);
	print_entries(p, out);
	print_waits(p, out);
}
