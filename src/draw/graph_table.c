/* The sTask-graph as tables. */
#include "draw/draw.h"
#include "draw/label.h"
#include "draw/pen.h"
#include "draw/table.h"
#include "draw/units.h"
#include "graph/repeats.h"

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

/* Roles of the axis in the phases: "grid", or "grid, loop" if they differ. */
static const char *axis_roles(struct arena *a, const struct program *p, int axis)
{
	static const char *const names[] = { [AXIS_UNUSED] = NULL, [AXIS_BATCH] = "batch", [AXIS_GRID] = "grid",
		[AXIS_LOOP] = "loop", [AXIS_FULL] = "full" };
	const char *all = NULL, *last = NULL;

	for (int i = 0; i < p->phases.n; i++) {
		const char *name = names[program_axis_role(p, i, axis)];

		if (!name || name == last)
			continue;
		all = all ? STR(a, "%s, %s", all, name) : name;
		last = name;
	}
	return all;
}

static void put_axes(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = { { "axis", ALIGN_LEFT, 4, 0 }, { "size", ALIGN_RIGHT, 0, 0 },
		{ "tile", ALIGN_RIGHT, 0, 0 }, { "tiles", ALIGN_RIGHT, 0, 0 }, { "role", ALIGN_LEFT, 5, 1 } };
	struct arena *a = pen->arena;
	struct table t = table_new(a, col, LEN(col));

	for (int i = 0; i < g->program->axes.n; i++) {
		int64_t size = g->program->axes.v[i].size, tile = g->extents.tile[i];

		TABLE_ROW(&t, g->program->axes.v[i].name, STR(a, "%lld", (long long)size),
			STR(a, "%lld", (long long)tile),
			tile > 0 ? STR(a, "%lld", (long long)ceil_div(size, tile)) : "", axis_roles(a, g->program, i));
	}
	pen_table(pen, "axes", &t);
}

/* "main: 512 tiles (h 16 × m 32)" */
static const char *grid_text(const struct graph *g, int phase, struct arena *a)
{
	const struct grid *grid = &g->grids[phase];
	const char *before = " (";
	struct buf b = buf_new(a);

	buf_puts(&b, label_tiles(a, g, phase));
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
				trips = STR(pen->arena, p->loops.v[l].has_length ? "%s by its length, %.4g assumed" :
					"%s, %.4g on average", trips, g->trips[l].mean);
			pen_wrap(pen, "  ", 4, trips);
		}
		for (int a = 0; a < p->axes.n; a++) {
			const char *repeats = graph_repeats_text(g, i, a, pen->arena);

			if (repeats)
				pen_wrap(pen, "  ", 4, repeats);
		}
	}
}

/* "n", or "main, n" where there are several phases. */
static const char *region_name(struct arena *a, const struct program *p, int phase, int loop)
{
	const char *name = label_loop(a, p, loop);

	return p->phases.n == 1 ? name : STR(a, "%s, %s", p->phases.v[phase].name, name);
}

static const char *count_or_empty(struct arena *a, double n)
{
	return n > 0 ? unit_keep(a, unit_si(n, "")) : NULL;
}

static void put_tasks(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = { { "sTask", ALIGN_LEFT, 16, 0 }, { "kind", ALIGN_LEFT, 0, 4 },
		{ "loop", ALIGN_LEFT, 4, 3 }, { "shape", ALIGN_LEFT, 12, 2 }, { "sEU", ALIGN_LEFT, 0, 5 },
		{ "bytes", ALIGN_RIGHT, 0, 1 }, { "flop", ALIGN_RIGHT, 0, 0 }, { "sfu", ALIGN_RIGHT, 0, 6 } };
	struct arena *a = pen->arena;
	struct table t = table_new(a, col, LEN(col));

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		TABLE_ROW(&t, s->name, task_kind_name(s->kind), region_name(a, g->program, s->phase, s->loop),
			label_shape(a, g, i), label_seu(s->kind), s->work.global_bytes > 0 ?
			unit_keep(a, unit_bytes(s->work.global_bytes)) : NULL, count_or_empty(a, s->work.flops),
			count_or_empty(a, s->work.ops[CLASS_SFU]))->style = style_of_kind(s->kind);
	}
	pen_table(pen, "sTasks", &t);
}

static void put_buffers(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = { { "buffer", ALIGN_LEFT, 16, 0 }, { "type", ALIGN_LEFT, 0, 2 },
		{ "shape", ALIGN_LEFT, 12, 3 }, { "bytes", ALIGN_RIGHT, 0, 0 }, { "home", ALIGN_LEFT, 0, 1 },
		{ "life", ALIGN_LEFT, 4, 4 }, { "made by", ALIGN_LEFT, 8, 5 } };
	struct arena *a = pen->arena;
	struct table t = table_new(a, col, LEN(col));

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];

		TABLE_ROW(&t, b->name, dtype_name(b->type), label_extents(a, g->program, b->naxes, b->axis, b->extent),
			unit_keep(a, unit_bytes((double)b->bytes)), b->scope == SCOPE_SHARED ? "shared" : "registers",
			region_name(a, g->program, b->phase, b->loop), b->carry != NONE ? "carry" :
			b->first >= 0 && b->first < g->tasks.n ? g->tasks.v[b->first].name : NULL);
	}
	pen_table(pen, "buffers", &t);
}

static void add_edge_row(const struct graph *g, int i, struct arena *a, struct table *t)
{
	const struct edge *e = &g->edges.v[i];
	const char *buffers = label_edge_buffers(a, g, i);
	struct table_cell *row;

	if (!buffers)
		return;
	row = TABLE_ROW(t, g->tasks.v[e->from].name, g->tasks.v[e->to].name, e->chain ? STR(a, "%s, chain",
		edge_kind_name(e->kind)) : edge_kind_name(e->kind), label_distance(a, e),
		label_loop(a, g->program, e->loop), buffers);
	for (int c = 0; c < t->ncols && e->kind != EDGE_FLOW; c++)
		row[c].style = FAINT;
}

/* Flow first, then other dependences within a life of a buffer, then reuse. */
static void put_edges(const struct graph *g, struct pen *pen)
{
	static const struct column col[] = { { "from", ALIGN_LEFT, 16, 0 }, { "to", ALIGN_LEFT, 16, 0 },
		{ "kind", ALIGN_LEFT, 0, 1 }, { "distance", ALIGN_LEFT, 0, 0 }, { "loop", ALIGN_LEFT, 4, 3 },
		{ "buffers", ALIGN_LEFT, 8, 2 } };
	struct table t = table_new(pen->arena, col, LEN(col));

	for (int rank = 0; rank < 3; rank++)
		for (int i = 0; i < g->edges.n; i++)
			if (rank == (g->edges.v[i].reuse ? 2 : g->edges.v[i].kind != EDGE_FLOW))
				add_edge_row(g, i, pen->arena, &t);
	pen_table(pen, "dependences", &t);
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
