/* The sTask-graph as tables. */
#include "draw/draw.h"
#include "draw/label.h"
#include "draw/pen.h"
#include "draw/table.h"
#include "draw/units.h"

#define STR(a, ...) arena_strf((a), __VA_ARGS__)

static void put_heading(const struct graph *g, struct pen *pen)
{
	double flops = graph_flops(g), bytes = graph_bytes(g);
	struct arena *a = pen->arena;
	const char *work = STR(a, "%s, %s of tensors", unit_si(flops, "flop").s, unit_bytes(bytes).s);

	pen_name(pen, STR(a, "%s:", g->program->name), STR(a,
		"%d sTasks, %d buffers, %d dependences", g->tasks.n, g->buffers.n, g->edges.n));
	if (bytes > 0 && flops > 0)
		work = STR(a, "%s: %s", work, unit_si(flops / bytes, "flop/B").s);
	pen_wrap(pen, "", 2, work);
}

static const char *role_name(enum axis_role r)
{
	switch (r) {
	case AXIS_UNUSED: return NULL;
	case AXIS_BATCH: return "batch";
	case AXIS_GRID: return "grid";
	case AXIS_LOOP: return "loop";
	case AXIS_FULL: return "full";
	}
	return NULL;
}

/* Roles of the axis in the phases: "grid", or "grid, loop" if they differ. */
static const char *axis_roles(struct arena *a, const struct program *p, int axis)
{
	const char *all = NULL, *last = NULL;

	for (int i = 0; i < p->phases.n; i++) {
		const char *name = role_name(program_axis_role(p, i, axis));

		if (!name || name == last)
			continue;
		all = all ? STR(a, "%s, %s", all, name) : name;
		last = name;
	}
	return all;
}

static void put_axes(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = {
		{ "axis", ALIGN_LEFT, 4, 0 }, { "size", ALIGN_RIGHT, 0, 0 },
		{ "tile", ALIGN_RIGHT, 0, 0 }, { "tiles", ALIGN_RIGHT, 0, 0 },
		{ "role", ALIGN_LEFT, 5, 1 },
	};
	struct arena *a = pen->arena;
	struct table t;

	table_init(&t, a, col, LEN(col));
	for (int i = 0; i < g->program->axes.n; i++) {
		struct table_cell *row = table_row(&t);
		int64_t size = g->program->axes.v[i].size, tile = g->extents.tile[i];

		row[0].text = g->program->axes.v[i].name;
		row[1].text = STR(a, "%lld", (long long)size);
		row[2].text = STR(a, "%lld", (long long)tile);
		row[3].text = tile > 0 ? STR(a, "%lld", (long long)ceil_div(size, tile)) : "";
		row[4].text = axis_roles(a, g->program, i);
	}
	pen_section(pen, "axes");
	pen_table(pen, &t);
}

/* "main: 512 tiles (h 16 × m 32)" */
static const char *grid_text(const struct graph *g, int phase, struct arena *a)
{
	const struct grid *grid = &g->grids[phase];
	const char *before = " (";
	struct buf b;

	buf_init(&b, a);
	buf_printf(&b, "%s: %s tile%s", g->program->phases.v[phase].name,
		unit_count(grid->total).s, grid->total == 1 ? "" : "s");
	for (int i = 0; i < grid->n; i++) {
		if (grid->tiles[i] == 1)
			continue;
		buf_printf(&b, "%s%s %lld", before, g->program->axes.v[grid->axis[i]].name, (long long)grid->tiles[i]);
		before = " × ";
	}
	buf_puts(&b, before[1] == '(' ? "" : ")");
	return b.text;
}

static void put_counts(const struct graph *g, struct pen *pen)
{
	const struct program *p = g->program;

	pen_section(pen, "grid and loops");
	for (int i = 0; i < p->phases.n; i++) {
		pen_wrap(pen, "  ", 4, grid_text(g, i, pen->arena));
		for (int l = 0; l < p->loops.n; l++) {
			const char *trips = label_loop_trips(pen->arena, g, l);

			if (p->loops.v[l].phase != i)
				continue;
			if (g->trips[l].least != g->trips[l].most)
				trips = STR(pen->arena, "%s, %.4g on average", trips, g->trips[l].mean);
			pen_wrap(pen, "  ", 4, trips);
		}
	}
}

/* "n", or "main, n" where there are several phases. */
static const char *region_name(struct arena *a, const struct program *p, int phase, int loop)
{
	const char *name = label_loop(a, p, loop);

	return p->phases.n == 1 ? name : STR(a, "%s, %s", p->phases.v[phase].name, name);
}

static const char *count_or_empty(struct arena *a, double n, const char *unit)
{
	return n > 0 ? STR(a, "%s", unit_si(n, unit).s) : NULL;
}

static void put_tasks(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = {
		{ "sTask", ALIGN_LEFT, 16, 0 }, { "kind", ALIGN_LEFT, 0, 4 },
		{ "loop", ALIGN_LEFT, 4, 3 }, { "shape", ALIGN_LEFT, 12, 2 },
		{ "sEU", ALIGN_LEFT, 0, 5 }, { "bytes", ALIGN_RIGHT, 0, 1 },
		{ "flop", ALIGN_RIGHT, 0, 0 }, { "sfu", ALIGN_RIGHT, 0, 6 },
	};
	struct arena *a = pen->arena;
	struct table t;

	table_init(&t, a, col, LEN(col));
	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		struct table_cell *row = table_row(&t);

		row[0] = (struct table_cell){ s->name, style_of_kind(s->kind) };
		row[1].text = task_kind_name(s->kind);
		row[2].text = region_name(a, g->program, s->phase, s->loop);
		row[3].text = label_shape(a, g, i);
		row[4].text = label_seu(s->kind);
		if (s->work.global_bytes > 0)
			row[5].text = STR(a, "%s", unit_bytes(s->work.global_bytes).s);
		row[6].text = count_or_empty(a, s->work.flops, "");
		row[7].text = count_or_empty(a, s->work.ops[CLASS_SFU], "");
	}
	pen_section(pen, "sTasks");
	pen_table(pen, &t);
}

static void put_buffers(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = {
		{ "buffer", ALIGN_LEFT, 16, 0 }, { "type", ALIGN_LEFT, 0, 2 },
		{ "shape", ALIGN_LEFT, 12, 3 }, { "bytes", ALIGN_RIGHT, 0, 0 },
		{ "home", ALIGN_LEFT, 0, 1 }, { "life", ALIGN_LEFT, 4, 4 },
		{ "made by", ALIGN_LEFT, 8, 5 },
	};
	struct arena *a = pen->arena;
	struct table t;

	table_init(&t, a, col, LEN(col));
	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		struct table_cell *row = table_row(&t);

		row[0].text = b->name;
		row[1].text = dtype_name(b->type);
		row[2].text = label_extents(a, g->program, b->naxes, b->axis, b->extent);
		row[3].text = STR(a, "%s", unit_bytes((double)b->bytes).s);
		row[4].text = b->scope == SCOPE_SHARED ? "shared" : "registers";
		row[5].text = region_name(a, g->program, b->phase, b->loop);
		if (b->carry != NONE)
			row[6].text = "carry";
		else if (b->first >= 0 && b->first < g->tasks.n)
			row[6].text = g->tasks.v[b->first].name;
	}
	pen_section(pen, "buffers");
	pen_table(pen, &t);
}

static void add_edge_row(const struct graph *g, int i, struct arena *a, struct table *t)
{
	const struct edge *e = &g->edges.v[i];
	const char *buffers = label_edge_buffers(a, g, i);
	struct table_cell *row;

	if (!buffers)
		return;
	row = table_row(t);
	row[0].text = g->tasks.v[e->from].name;
	row[1].text = g->tasks.v[e->to].name;
	row[2].text = e->chain ? STR(a, "%s, chain", edge_kind_name(e->kind)) : edge_kind_name(e->kind);
	row[3].text = label_distance(a, e);
	row[4].text = label_loop(a, g->program, e->loop);
	row[5].text = buffers;
	for (int c = 0; c < t->ncols && e->kind != EDGE_FLOW; c++)
		row[c].style = FAINT;
}

/* Flow first, then other dependences within a life of a buffer, then reuse. */
static void put_edges(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = {
		{ "from", ALIGN_LEFT, 16, 0 }, { "to", ALIGN_LEFT, 16, 0 },
		{ "kind", ALIGN_LEFT, 0, 1 }, { "distance", ALIGN_LEFT, 0, 0 },
		{ "loop", ALIGN_LEFT, 4, 3 }, { "buffers", ALIGN_LEFT, 8, 2 },
	};
	struct table t;

	table_init(&t, pen->arena, col, LEN(col));
	for (int rank = 0; rank < 3; rank++) {
		for (int i = 0; i < g->edges.n; i++) {
			const struct edge *e = &g->edges.v[i];

			if (rank == (e->reuse ? 2 : e->kind != EDGE_FLOW))
				add_edge_row(g, i, pen->arena, &t);
		}
	}
	pen_section(pen, "dependences");
	pen_table(pen, &t);
}

void draw_graph_table(const struct graph *g, const struct draw_options *o, struct buf *out)
{
	struct pen pen = pen_new(o, out);

	put_heading(g, &pen);
	put_axes(g, &pen);
	put_counts(g, &pen);
	put_tasks(g, &pen);
	put_buffers(g, &pen);
	put_edges(g, &pen);
}
