/* The assignment of output tiles to EUs: a map of the tiles, or a row for each EU with its tiles in order. Letters and
 * colours show the waves: `a` are the tiles that their EUs take first, `b` those that they take second, ... */
#include <string.h>

#include "draw/label.h"
#include "draw/pen.h"
#include "draw/units.h"
#include "explore/page.h"
#include "explore/view.h"
#include "plan/cluster.h"
#include "plan/assign.h"
#include "plan/order.h"

/* In columns and rows of the terminal. The texts about the selected tile stand in a panel, at the side of a wide view
 * or below a high one. */
enum {
	SIDE_COLUMNS = 44, BELOW_ROWS = 9,		/* of the panel */
	SIDE_MIN_COLUMNS = 110, BELOW_MIN_ROWS = 18,	/* of a view that has one */
	LABEL_MAX_COLUMNS = 14,		/* of a row's label in the map */
	EU_LABEL_COLUMNS = 9, EU_LABEL_MIN_COLUMNS = 25,	/* of an EU's label; of a view that has them */
	TILE_COLUMNS = 6,		/* at least, of an average tile in the row of an EU */
	TILES_DRAWN_MAX = 1 << 22, TILES_LISTED = 24,	/* of a grid that is drawn; of an EU in the panel */
};

struct map {
	int64_t tile_columns;		/* tiles of a row */
	int label, wide;		/* terminal columns of a label, and of one tile */
	int in_sight;			/* tiles of a row that are */
	int y, h;			/* first row of the terminal, number of rows */
};

struct own {
	struct computed computed;	/* whether what follows, up to most_work, is of the present plan */
	struct arena *arena;
	int phase;			/* of the program */
	const struct grid *grid;
	struct tile_assignment assignment;
	struct cluster cluster;
	int32_t *eu, *nth;		/* by tile: its EU, and its position in the order of that EU */
	struct eu_class *classes;
	int nclasses;
	int waves;			/* most tiles of an EU */
	int eus_in_last_wave;		/* EUs that have that many */
	int64_t most_work;		/* of an EU (tile_iterations summed over its tiles) */
	int64_t selected;		/* tile */
	bool by_eu;
	int64_t top, left;		/* first row and column in sight */
	struct map map;			/* when it was drawn last */
};

static int phase_of(const struct model *m)
{
	const struct phase_line *l = model_line(m);
	int n = m->now->graph->program->phases.n;

	return l ? l->phase : m->sel.phase >= 0 && m->sel.phase < n ? m->sel.phase : 0;
}

static const char *lacks(const struct model *m)
{
	if (!m->now->plan)
		return "there is no plan, so no EU has tiles";
	if (m->now->graph->grids[phase_of(m)].total > TILES_DRAWN_MAX)
		return "the grid has too many tiles to be drawn";
	return NULL;
}

/* ---- computed from the plan ------------------------------------------------------ */

static void index_tiles(struct own *own)
{
	int64_t total = own->grid->total;

	own->eu = ARENA_ARRAY(own->arena, total, int32_t);
	own->nth = ARENA_ARRAY(own->arena, total, int32_t);
	for (int64_t t = 0; t < total; t++)
		own->eu[t] = own->nth[t] = NONE;
	for (int u = 0; u < own->assignment.eus; u++) {
		int n = (int)(own->assignment.start[u + 1] - own->assignment.start[u]);

		for (int i = 0; i < n; i++) {
			int64_t t = own->assignment.order[own->assignment.start[u] + i];

			if (own->eu[t] != NONE)
				continue;	/* computed once more, as an EU of the last cluster has no other tile */
			own->eu[t] = u;
			own->nth[t] = i;
		}
		own->eus_in_last_wave = n > own->waves ? 1 : own->eus_in_last_wave + (n == own->waves);
		own->waves = n > own->waves ? n : own->waves;
	}
}

static void assign_and_index_tiles(struct view *v)
{
	struct own *own = v->own;
	const struct plan *p = v->m->now->plan;
	int phase = phase_of(v->m);

	if (!computed_begin(&own->computed, v->m, hash_mix(key_of_state(v->m->now), (uint64_t)phase)))
		return;
	own->arena = own->computed.arena;
	own->phase = phase;
	own->grid = &p->graph->grids[phase];
	own->waves = own->eus_in_last_wave = 0;
	own->most_work = 1;
	plan_assign_tiles(own->arena, p, phase, &own->assignment);
	own->cluster = plan_cluster(p, phase);
	index_tiles(own);
	own->nclasses = eu_classes(own->arena, p, phase, &own->assignment, &own->classes);
	for (int i = 0; i < own->nclasses; i++)
		own->most_work = max_i64(own->most_work, own->classes[i].work);
	own->selected = max_i64(0, min_i64(own->selected, own->grid->total - 1));
	own->computed.made = true;
}

static int64_t tiles_of(const struct own *own, int eu)
{
	return own->assignment.start[eu + 1] - own->assignment.start[eu];
}

static int64_t tile_of(const struct own *own, int eu, int64_t nth)
{
	return own->assignment.order[own->assignment.start[eu] + max_i64(0, min_i64(nth, tiles_of(own, eu) - 1))];
}

/* EUs whose tiles make the same iterations in the same order are a class, and the simulated timeline is of the first EU
 * of a class. The class with this first EU; NULL: there is none, as the timeline was measured. */
static const struct eu_class *class_of_first_eu(const struct own *own, int eu)
{
	for (int i = 0; i < own->nclasses; i++)
		if (own->classes[i].eu == eu)
			return &own->classes[i];
	return NULL;
}

/* ---- letters and colours --------------------------------------------------------- */

/* a to z, A to Z, and a again, without those that look like digits or like each other. */
static const char *wave_letter(int nth)
{
	static const char letters[] = "a\0b\0c\0d\0e\0f\0g\0h\0k\0m\0n\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z"
		"\0A\0B\0C\0D\0E\0F\0G\0H\0K\0M\0N\0P\0Q\0R\0S\0T\0U\0V\0W\0X\0Y\0Z";

	return nth < 0 ? "·" : &letters[nth % (LEN(letters) / 2) * 2];
}

static struct style wave_style(int nth)
{
	static const uint8_t colour[] = { 74, 179, 114, 173, 140, 108 };

	return nth < 0 ? FAINT : (struct style){ .fg = 16, .bg = colour[nth % LEN(colour)] };
}

/* Tiles of the cursor's EU are underlined, the one at the cursor is reversed. */
static struct style tile_style(const struct own *own, int64_t tile)
{
	struct style s = wave_style(own->nth[tile]);

	if (own->eu[tile] == own->eu[own->selected])
		s.attr |= STYLE_UNDERLINE | STYLE_BOLD;
	if (tile == own->selected)
		s.attr |= STYLE_REVERSE;
	return s;
}

/* ---- the map -------------------------------------------------------------------- */

/* The last axis that has more than one tile, and how many such axes there are. */
static int last_axis(const struct grid *g, int *n)
{
	int last = 0;

	*n = 0;
	for (int i = 0; i < g->n; i++) {
		last = g->tiles[i] > 1 ? i : last;
		*n += g->tiles[i] > 1;
	}
	return last;
}

/* Columns of tiles: the tiles of the last axis; if there is only one axis, as many as fit. */
static int64_t map_columns(const struct own *own, int width)
{
	const struct grid *g = own->grid;
	int64_t fit = width > LABEL_MAX_COLUMNS + 8 ? (width - LABEL_MAX_COLUMNS) / 8 * 8 : 8;
	int n, last = last_axis(g, &n);

	return n > 1 ? g->tiles[last] : max_i64(1, min_i64(g->total, fit));
}

/* "b 0 h 3": coordinates of a row on the other axes; if there is only one axis, its first tile. */
static const char *row_label(const struct view *v, int64_t row, int64_t columns)
{
	const struct own *own = v->own;
	const struct grid *g = own->grid;
	const struct program *p = v->m->now->graph->program;
	int64_t tile = row * columns, step = g->total;
	int n, last = last_axis(g, &n);
	struct buf b = buf_new(&v->m->frame);

	if (n < 2)
		return unit_keep(&v->m->frame, unit_count(tile));
	for (int i = 0; i < last; i++) {
		step /= g->tiles[i];
		if (g->tiles[i] > 1)
			buf_printf(&b, "%s%s %lld", b.len ? " " : "", p->axes.v[g->axis[i]].name,
				(long long)(tile / step % g->tiles[i]));
	}
	return b.text;
}

/* The first of n rows in sight, such that row `at` is among the `height` that are. */
static int64_t scrolled(int64_t first, int64_t at, int64_t n, int64_t height)
{
	if (at < first)
		first = at;
	if (at >= first + height)
		first = at - height + 1;
	return max_i64(0, min_i64(first, n - height));
}

static void draw_map(struct view *v, struct cells *out, int y, int w, int h)
{
	struct own *own = v->own;
	int64_t columns = map_columns(own, w), rows = ceil_div(own->grid->total, columns);
	/* the longest label is that of the last row */
	int label = w <= 2 * LABEL_MAX_COLUMNS ? 0 :
		(int)min_i64(text_width(row_label(v, rows - 1, columns)) + 1, LABEL_MAX_COLUMNS);
	int wide = label + 2 * columns <= w ? 2 : 1, width = (w - label) / wide;

	own->map = (struct map){ columns, label, wide, width, y, h };
	if (width < 1 || h < 1)
		return;
	own->top = scrolled(own->top, own->selected / columns, rows, h);
	own->left = scrolled(own->left, own->selected % columns, columns, width);
	for (int r = 0; r < h && own->top + r < rows; r++) {
		cells_text(out, 0, y + r, label - 1, label ? row_label(v, own->top + r, columns) : "", FAINT);
		for (int c = 0; c < width && own->left + c < columns; c++) {
			int64_t t = (own->top + r) * columns + own->left + c;

			if (t >= own->grid->total)
				break;
			cells_put(out, label + c * wide, y + r, wave_letter(own->nth[t]), tile_style(own, t));
			if (wide == 2)
				cells_put(out, label + c * wide + 1, y + r, " ",
					(struct style){ .bg = wave_style(own->nth[t]).bg });
		}
	}
}

/* ---- by EU ---------------------------------------------------------------------- */

static int eu_label_columns(int w)
{
	return w >= EU_LABEL_MIN_COLUMNS ? EU_LABEL_COLUMNS : 0;
}

/* A tile in the columns [x, end), of which [0, width) are in sight. */
static void draw_tile(const struct view *v, struct cells *out, int y, int left, int width, int64_t x,
	int64_t end, int64_t tile, int nth)
{
	const struct own *own = v->own;
	struct style s = wave_style(nth);
	int from = (int)max_i64(x, 0), to = (int)min_i64(end, width);
	const char *text;

	if (from >= to)
		return;
	if (tile == own->selected)
		s.attr |= STYLE_REVERSE;
	cells_fill(out, left + from, y, to - from, " ", s);
	cells_put(out, left + from, y, "▏", s);
	text = arena_strf(&v->m->frame, "%s %lld", wave_letter(nth), (long long)tile);
	cells_text(out, left + from + 1, y, to - from - 1, text_width(text) < to - from ? text : wave_letter(nth), s);
}

static void draw_eu(struct view *v, struct cells *out, int y, int w, int eu, int line_eu)
{
	const struct own *own = v->own;
	int label = eu_label_columns(w), width = w - label;
	int64_t done = 0, cols = max_i64(width, (int64_t)own->waves * TILE_COLUMNS);

	if (label)
		cells_text(out, 0, y, label - 1, arena_strf(&v->m->frame, "EU %-4d%s", eu, eu == line_eu ?
			"◂" : ""), eu == own->eu[own->selected] ? BOLD : FAINT);
	for (int64_t i = 0; i < tiles_of(own, eu); i++) {
		int64_t t = tile_of(own, eu, i), work = tile_iterations(v->m->now->graph, own->phase, t);

		draw_tile(v, out, y, label, width, done * cols / own->most_work - own->left,
			(done + work) * cols / own->most_work - own->left, t, (int)i);
		done += work;
	}
}

/* Scroll so that the selected tile is in sight. */
static void scroll_eus(struct view *v, int width, int h)
{
	struct own *own = v->own;
	int eu = own->eu[own->selected];
	int64_t done = 0, cols = max_i64(width, (int64_t)own->waves * TILE_COLUMNS), end;

	for (int i = 0; i <= own->nth[own->selected]; i++)
		done += tile_iterations(v->m->now->graph, own->phase, tile_of(own, eu, i));
	end = done * cols / own->most_work;
	own->top = scrolled(own->top, eu, own->assignment.eus, h);
	if (end < own->left + TILE_COLUMNS || end > own->left + width)
		own->left = end - width / 2;
	own->left = max_i64(0, min_i64(own->left, cols - width));
}

static void draw_eus(struct view *v, struct cells *out, int y, int w, int h)
{
	struct own *own = v->own;
	const struct phase_line *l = model_line(v->m);

	if (h < 1)
		return;
	scroll_eus(v, w - eu_label_columns(w), h);
	for (int r = 0; r < h && own->top + r < own->assignment.eus; r++)
		draw_eu(v, out, y + r, w, (int)own->top + r, l ? l->eu : NONE);
}

/* ---- texts ----------------------------------------------------------------------- */

/* "by columns, groups of 4 columns, clusters of 2 EUs along m" */
static const char *order_text(const struct view *v)
{
	const struct own *own = v->own;
	const struct plan *p = v->m->now->plan;
	bool rows = p->grid.raster == RASTER_ROWS;
	struct buf b = buf_new(&v->m->frame);

	buf_printf(&b, "by %s", rows ? "rows" : "columns");
	if (p->grid.group > 1)
		buf_printf(&b, ", groups of %d %s", p->grid.group, rows ? "rows" : "columns");
	if (p->grid.longest_first)
		buf_printf(&b, ", those with the most iterations first%s, each to the EU with the fewest", p->grid.section ?
			arena_strf(&v->m->frame, " of each %d", p->grid.section) : "");
	if (p->grid.dynamic)
		buf_puts(&b, ", taken as EUs come free");
	if (own->cluster.size > 1 && own->cluster.axis == NONE)
		buf_printf(&b, ", clusters of %d EUs that divide %s", own->cluster.size,
			p->graph->program->axes.v[p->grid.divided - 1].name);
	else if (own->cluster.size > 1)
		buf_printf(&b, ", clusters of %d EUs along %s", own->cluster.size,
			p->graph->program->axes.v[own->cluster.axis].name);
	if (p->grid.keep > 1)
		buf_printf(&b, ", %d neighbours one after the other on an EU", p->grid.keep);
	if (p->grid.chiplets > 1)
		buf_printf(&b, ", neighbours on one of %d chiplets", p->grid.chiplets);
	return b.text;
}

static const char *tail_text(const struct view *v)
{
	const struct own *own = v->own;
	const struct plan *p = v->m->now->plan;
	struct buf b = buf_new(&v->m->frame);

	if (own->eus_in_last_wave == own->assignment.eus && own->assignment.eus == p->device->eus)
		buf_printf(&b, "all %d EUs have %d tile%s: no tail", own->assignment.eus, own->waves,
			own->waves == 1 ? "" : "s");
	else
		buf_printf(&b, "wave %d of %d: %d of %d EUs have work", own->waves, own->waves, own->eus_in_last_wave,
			p->device->eus);
	if (own->nclasses > 1)
		buf_printf(&b, "; EUs perform %s to %s iterations: those of loops, and one for each tile",
			unit_count(own->classes[own->nclasses - 1].work).s, unit_count(own->most_work).s);
	return b.text;
}

/* Coordinates of a tile: "b 0, m 640 to 767". */
static const char *coordinates(const struct view *v, int64_t tile)
{
	const struct own *own = v->own;
	const struct graph *g = v->m->now->graph;
	struct axis_ranges at;
	struct buf b = buf_new(&v->m->frame);

	ranges_set_tile(&g->extents, own->grid, tile, &at);
	for (int i = 0; i < own->grid->n; i++) {
		int a = own->grid->axis[i];

		buf_printf(&b, "%s%s %lld", b.len ? ", " : "", g->program->axes.v[a].name, (long long)at.lo[a]);
		if (at.hi[a] > at.lo[a])
			buf_printf(&b, " to %lld", (long long)at.hi[a]);
	}
	return b.text ? b.text : "the only one";
}

/* "loop n: 26 iterations (others 1 to 64)": trip counts of a tile's loops. */
static const char *trips_text(const struct view *v, int64_t tile)
{
	const struct own *own = v->own;
	const struct graph *g = v->m->now->graph;
	struct walk w;
	struct buf b = buf_new(&v->m->frame);

	walk_init(&v->m->frame, &w, g, own->phase, 1, &tile);
	for (int l = 0; l < g->program->loops.n; l++) {
		if (g->program->loops.v[l].phase != own->phase)
			continue;
		buf_printf(&b, "%sloop %s: %s iteration%s", b.len ? ", " : "", label_loop(&v->m->frame, g->program, l),
			unit_count(walk_count(&w, l)).s, walk_count(&w, l) == 1 ? "" : "s");
		if (g->trips[l].least != g->trips[l].most)
			buf_printf(&b, " (others %lld to %lld)", (long long)g->trips[l].least,
				(long long)g->trips[l].most);
	}
	return b.len ? b.text : "no loops";
}

/* Tiles of an EU, around the selected one. */
static const char *list_text(const struct view *v, int eu)
{
	const struct own *own = v->own;
	int64_t n = tiles_of(own, eu);
	int64_t from = max_i64(0, min_i64(own->nth[own->selected] - TILES_LISTED / 2, n - TILES_LISTED));
	struct buf b = buf_new(&v->m->frame);

	buf_puts(&b, from ? "… " : "");
	for (int64_t i = from; i < n && i < from + TILES_LISTED; i++)
		buf_printf(&b, i == own->nth[own->selected] ? "%s[%lld]" : "%s%lld", i > from ? " " : "",
			(long long)tile_of(own, eu, i));
	buf_puts(&b, from + TILES_LISTED < n ? " …" : "");
	return b.text;
}

static void put_words(const struct view *v, struct pen *pen)
{
	const struct own *own = v->own;
	const struct phase_line *l = model_line(v->m);
	const struct eu_class *c = l ? class_of_first_eu(own, l->eu) : NULL;
	int eu = own->eu[own->selected];

	pen_puts(pen, arena_strf(pen->arena, "tile %s", unit_count(own->selected).s), BOLD);
	pen_wrap(pen, "", 2, arena_strf(pen->arena, ": %s", coordinates(v, own->selected)));
	pen_wrap(pen, "  ", 2, trips_text(v, own->selected));
	pen_wrap(pen, "  ", 2, arena_strf(pen->arena, "of EU %d, number %d of its %lld (wave %s)", eu,
		own->nth[own->selected] + 1, (long long)tiles_of(own, eu), wave_letter(own->nth[own->selected])));
	pen_wrap(pen, arena_strf(pen->arena, "EU %d ", eu), 4, list_text(v, eu));
	if (own->cluster.size > 1)
		pen_wrap(pen, "", 2, arena_strf(pen->arena, "EUs %d to %d are a cluster", eu / own->cluster.size *
			own->cluster.size, eu / own->cluster.size * own->cluster.size + own->cluster.size - 1));
	if (l)
		pen_wrap(pen, "", 2, arena_strf(pen->arena, "the timeline is of EU %d%s", l->eu,
			c && c->members > 1 ? arena_strf(pen->arena, ": %d EUs do the same", c->members) : ""));
	pen_wrap(pen, "", 2,
		"PgDn, PgUp: next and previous tile of the EU; Home: the EU of the timeline; End: the last tile");
}

static int draw_head(struct view *v, struct cells *out, int w)
{
	const struct own *own = v->own;
	struct pen pen = frame_pen(v->m, w);
	int cols, rows;

	if (out->h < 6)
		return 0;
	pen_name(&pen, arena_strf(pen.arena, "%s tile%s", unit_count(own->grid->total).s,
		own->grid->total == 1 ? "" : "s"), arena_strf(pen.arena, "on %d of %d EUs, in %d wave%s, %s",
		own->assignment.eus, v->m->now->plan->device->eus, own->waves, own->waves == 1 ? "" : "s",
		order_text(v)));
	pen_wrap(&pen, "", 2, tail_text(v));
	cells_measure(pen.out->text, &cols, &rows);
	pen_show(&pen, out, 0, 0);
	return rows + 1;
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	bool side = out->w >= SIDE_MIN_COLUMNS, below = !side && out->h >= BELOW_MIN_ROWS;
	int w = side ? out->w - SIDE_COLUMNS - 2 : out->w, y, h;
	struct pen pen;

	assign_and_index_tiles(v);
	y = draw_head(v, out, w);
	h = out->h - y - (below ? BELOW_ROWS : 0);
	if (own->by_eu)
		draw_eus(v, out, y, w, h);
	else
		draw_map(v, out, y, w, h);
	if (!side && !below)
		return;
	pen = frame_pen(v->m, side ? SIDE_COLUMNS : out->w);
	put_words(v, &pen);
	draw_separator(out, side, side ? w : out->h - BELOW_ROWS);
	pen_show(&pen, out, side ? w + 2 : 0, side ? 0 : out->h - BELOW_ROWS + 1);
}

/* ---- keys ----------------------------------------------------------------------- */

static void go(struct own *own, int64_t tile)
{
	own->selected = max_i64(0, min_i64(tile, own->grid->total - 1));
}

static void go_eu(struct own *own, int eu, int64_t nth)
{
	eu = (int)max_i64(0, min_i64(eu, own->assignment.eus - 1));
	if (tiles_of(own, eu) > 0)
		go(own, tile_of(own, eu, nth));
}

/* Move in the map, or from EU to EU. */
static void move(struct own *own, int dx, int dy, int64_t columns)
{
	int eu = own->eu[own->selected];

	if (own->by_eu && dx)
		go_eu(own, eu, own->nth[own->selected] + dx);
	else if (own->by_eu)
		go_eu(own, eu + dy, own->nth[own->selected]);
	else if (dx || (own->selected + dy * columns >= 0 && own->selected + dy * columns < own->grid->total))
		go(own, own->selected + dx + dy * columns);
}

static bool click(struct own *own, const struct key *k)
{
	int64_t row = own->top + k->y - own->map.y, column;

	if (own->by_eu || own->map.wide < 1 || k->x < own->map.label || k->y < own->map.y ||
	    k->y >= own->map.y + own->map.h)
		return true;
	column = own->left + (k->x - own->map.label) / own->map.wide;
	if (column < own->map.tile_columns && (k->x - own->map.label) / own->map.wide < own->map.in_sight &&
	    row * own->map.tile_columns + column < own->grid->total)
		go(own, row * own->map.tile_columns + column);
	return true;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;
	const struct phase_line *l = model_line(v->m);
	int64_t columns;
	int eu;

	assign_and_index_tiles(v);
	if (k->code == KEY_CODE_CLICK)
		return click(own, k);
	columns = own->map.tile_columns ? own->map.tile_columns : 1;
	eu = own->eu[own->selected];
	switch ((int)a) {
	case ACT_UP: move(own, 0, -1, columns); return true;
	case ACT_DOWN: move(own, 0, 1, columns); return true;
	case ACT_LEFT: move(own, -1, 0, columns); return true;
	case ACT_RIGHT: move(own, 1, 0, columns); return true;
	case ACT_PAGE_DOWN: go_eu(own, eu, own->nth[own->selected] + 1); return true;
	case ACT_PAGE_UP: go_eu(own, eu, own->nth[own->selected] - 1); return true;
	case ACT_HOME: go_eu(own, l ? l->eu : 0, 0); return true;
	case ACT_END: go(own, own->assignment.order[own->assignment.total - 1]); return true;
	case ACT_OTHER_SIDE:
		own->by_eu = !own->by_eu;
		own->top = own->left = 0;
		return true;
	}
	return false;
}

const struct view_ops view_grid = {
	.name = "grid", .groups = GROUP_SIDES, .size = sizeof(struct own), .lacks = lacks,
	.draw = draw, .act = act,
};
