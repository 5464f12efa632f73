/* A plan as Lua statements. */
#include "plan/plan.h"

#include <string.h>

static void print_lanes(const struct plan *p, struct buf *out)
{
	for (int i = 0; i < p->lanes.n; i++) {
		const struct lane *l = &p->lanes.v[i];
		bool more = l->registers || l->replicas > 1;

		buf_printf(out, "plan:lane(\"%s\", {", l->name);
		if (l->warps)
			buf_printf(out, "warps=%d%s", l->warps, more ? ", " : "");
		if (l->registers)
			buf_printf(out, "registers=%d%s", l->registers, l->replicas > 1 ? ", " : "");
		if (l->replicas > 1)
			buf_printf(out, "replicas=%d", l->replicas);
		buf_puts(out, "})\n");
	}
}

bool script_is_key(const char *name)
{
	static const char *const words[] = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function",
		"goto", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" };
	int i;

	FIND_FIRST(i, LEN(words), !strcmp(name, words[i]));
	return i < 0 && !strchr(name, '.');
}

void script_alias(const char *what, const char *of, struct buf *out)
{
	buf_printf(out, script_is_key(what) ? "plan:alias{%s=\"%s\"}\n" : "plan:alias{[\"%s\"]=\"%s\"}\n", what, of);
}

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

	if (!g->eus && g->raster == RASTER_ROWS && g->group == 1 && !g->longest_first && g->cluster == 1)
		return;
	buf_printf(out, "plan:grid{raster=\"%s\", group=%d", g->raster == RASTER_ROWS ? "rows" : "columns", g->group);
	if (g->eus)
		buf_printf(out, ", eus=%d", g->eus);
	if (g->longest_first)
		buf_puts(out, ", longest_first=true");
	if (g->cluster > 1)
		buf_printf(out, ", cluster=%d", g->cluster);
	buf_puts(out, "}\n");
}

static void print_entries(const struct plan *p, struct buf *out)
{
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];

		buf_printf(out, "plan:append(\"%s\", {seu=\"%s\", lane=\"%s\"", p->graph->tasks.v[e->task].name,
			p->device->seu[e->seu].name, p->lanes.v[e->lane].name);
		if (e->at)
			buf_printf(out, ", at=%d", e->at);
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
	print_lanes(p, out);
	print_buffers(p, out);
	print_grid(p, out);
	print_entries(p, out);
	print_waits(p, out);
}
