/* Rows of a chart where dozens of events share a column: the height of a block is the share of time in which the row is
 * busy, its colour that of the sTask which takes most of it. */
#include <string.h>

#include "draw/chart.h"

enum { BUCKETS = 1 << 17, LEVELS = 18, ROWS = LANES_MAX * REPLICAS_MAX + SEU_MAX };

/* What a row does during a range of cycles. */
struct bucket {
	int32_t event;			/* that takes most of it; NONE */
	float most;			/* cycles of that event */
	float work;			/* cycles of all events */
};

struct overview {
	int64_t step;			/* cycles of a bucket of level 0 */
	int n;				/* buckets of level 0 */
	struct bucket *row[ROWS][LEVELS];	/* NULL: the row has no events */
	uint8_t split[LANES_MAX];	/* as in struct chart */
};

static void add_work(struct overview *o, struct bucket *v, int event, int64_t from, int64_t to)
{
	from = max_i64(from, 0);
	to = min_i64(to, o->step * o->n);
	for (int64_t k = from / o->step; k * o->step < to; k++) {
		int64_t begin = max_i64(from, k * o->step), end = min_i64(to, (k + 1) * o->step);
		struct bucket *b = &v[k];

		b->work += (float)(end - begin);
		if (b->event == NONE || b->most < (float)(end - begin)) {
			b->event = event;
			b->most = (float)(end - begin);
		}
	}
}

/* The bucket of two neighbouring ones. */
static struct bucket join(struct bucket a, struct bucket b)
{
	struct bucket c = a.event != NONE && (b.event == NONE || a.most >= b.most) ? a : b;

	c.work = a.work + b.work;
	return c;
}

static void add_levels(struct arena *a, struct overview *o, struct bucket **level)
{
	int n = o->n;

	for (int l = 1; l < LEVELS; l++, n = (n + 1) / 2) {
		int half = (n + 1) / 2;

		level[l] = ARENA_ARRAY(a, half, struct bucket);
		for (int i = 0; i < half; i++)
			level[l][i] = 2 * i + 1 < n ? join(level[l - 1][2 * i], level[l - 1][2 * i + 1]) :
				level[l - 1][2 * i];
	}
}

/* Add event `i`, whose work is `e`: all of it, or what one warpgroup did. */
static void add_event(struct arena *a, struct overview *o, const struct chart *c, int i, const struct event *e, int replica)
{
	bool async = event_is_async(c, e);
	int row = async ? LANES_MAX * REPLICAS_MAX + e->seu : e->lane * REPLICAS_MAX + replica;

	if (!o->row[row][0]) {
		o->row[row][0] = ARENA_ARRAY(a, o->n, struct bucket);
		for (int k = 0; k < o->n; k++)
			o->row[row][0][k].event = NONE;
	}
	add_work(o, o->row[row][0], i, async && !o->split[e->lane] ? event_seu_begin(e) : e->start,
		async ? event_seu_end(c, e) : e->end);
}

struct overview *overview_new(struct arena *a, const struct timeline *t, int phase, const bool *shown)
{
	const struct phase_line *line = &t->phases[phase];
	const struct chart c = { .t = t, .line = line, .g = t->plan->graph, .d = t->plan->device };
	struct overview *o = ARENA_NEW(a, struct overview);
	int64_t last = 1;

	for (int i = 0; i < line->events.n; i++)
		if (event_is_placed(t->plan, &line->events.v[i]))
			last = max_i64(last, line->events.v[i].end);
	for (int i = 0; i < line->events.n; i++)
		if (event_is_placed(t->plan, &line->events.v[i]) && lookup_drifts(line, i))
			o->split[line->events.v[i].lane] = (uint8_t)(line->events.v[i].nparts + 1);
	o->step = max_i64(1, ceil_div(last, BUCKETS));
	o->n = (int)ceil_div(last, o->step);
	for (int i = 0; i < line->events.n; i++) {
		const struct event *e = &line->events.v[i];

		if (!event_is_placed(t->plan, e) || (shown && !shown[e->task]))
			continue;
		for (int g = 0; g < o->split[e->lane]; g++)
			add_event(a, o, &c, i, event_part(line, i, g), g);
		if (!o->split[e->lane])
			add_event(a, o, &c, i, e, e->replica);
	}
	for (int r = 0; r < ROWS; r++)
		if (o->row[r][0])
			add_levels(a, o, o->row[r]);
	return o;
}

/* ---- drawing ---- */

/* The bucket between two cycles, from the level whose buckets are just not longer. */
static struct bucket sum(const struct overview *o, int row, int64_t from, int64_t to)
{
	struct bucket s = { .event = NONE };
	int level = 0, n = o->n;
	int64_t step = o->step;

	while (level + 1 < LEVELS && step * 2 <= to - from) {
		level++;
		step *= 2;
		n = (n + 1) / 2;
	}
	for (int64_t k = from / step; k * step < to && k < n; k++)
		s = join(s, o->row[row][level][k]);
	s.work *= (float)(to - from) / (float)(step * max_i64(1, ceil_div(to, step) - from / step));
	return s;
}

static void draw_row(const struct chart *c, struct cells *out, int y, int row, int *event)
{
	static const char *const height[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	int64_t span = c->to - c->from;

	for (int x = 0; x < c->cols; x++) {
		int64_t from = c->from + span * x / c->cols, to = max_i64(c->from + span * (x + 1) / c->cols, from + 1);
		struct bucket b = sum(c->overview, row, from, to);
		double share = (double)b.work / (double)(to - from);

		event[x] = b.event;
		if (b.event == NONE || share < 0.02)
			continue;
		cells_put(out, c->left + x, y, height[share >= 1 ? 7 : (int)(share * 8)],
			(struct style){ .fg = c->key[c->line->events.v[b.event].task].bar.bg });
	}
}

/* An asynchronous sEU has one row here, however many of its events overlap. */
int chart_many(const struct chart *c, struct cells *out, int y, struct chart_map *map)
{
	struct chart lanes = *c;
	struct chart_layout layout;
	struct chart_map own;

	lanes.by = TIMELINE_LANES;
	memcpy(lanes.split, c->overview->split, sizeof(lanes.split));
	chart_lay_out(&lanes, 0, 0, &layout);
	map = map ? map : &own;
	*map = (struct chart_map){ .left = c->left, .cols = c->cols, .from = c->from, .to = c->to,
		.nrows = layout.rows.n, .row = ARENA_ARRAY(c->arena, layout.rows.n, struct chart_row) };
	cells_grow(out, y + layout.rows.n + 1);
	for (int r = 0; r < layout.rows.n; r++) {
		const struct layout_row *x = &layout.rows.v[r];
		int *event = ARENA_ARRAY(c->arena, c->cols, int);
		int index = x->lane == NONE ? LANES_MAX * REPLICAS_MAX + x->seu : x->lane * REPLICAS_MAX + x->replica;

		for (int i = 0; i < c->cols; i++)
			event[i] = NONE;
		map->row[r] = (struct chart_row){ .y = y + r + (r >= layout.nlanes), .event = event,
			.part = ARENA_ARRAY(c->arena, c->cols, uint8_t) };
		cells_text(out, 0, map->row[r].y, c->left - 1, x->label, BOLD);
		if (c->overview->row[index][0])
			draw_row(c, out, map->row[r].y, index, event);
	}
	return y + layout.rows.n + 1;
}
