/* Positions of an sTask that is picked up, as a table: a row for each gap in an order, a column for each offset. */
#include "explore/positions.h"
#include "explore/page.h"

enum { WIDE = 11, ORDER_COLUMNS = 26 };

/* "+3.2 %", "deadlock", "...". */
static const char *cell_text(struct model *m, const struct position *p)
{
	if (p->here)
		return "here";
	if (!p->tried)
		return "...";
	if (!p->legal)
		return p->why;
	if (!m->now->tl || m->now->tl->seconds <= 0)
		return "legal";
	return arena_strf(&m->frame, "%+.1f %%%s", 100 * (p->seconds / m->now->tl->seconds - 1), p->deeper ? " +" : "");
}

static struct style cell_style(const struct model *m, const struct position *p)
{
	double before = m->now->tl ? m->now->tl->seconds : 0;

	if (!p->tried || !p->legal)
		return FAINT;
	if (before > 0 && p->seconds < before * 0.9995)
		return (struct style){ .fg = 114, .attr = STYLE_BOLD };
	return p->here ? BOLD : PLAIN;
}

static void draw_position(struct model *m, struct cells *out, int x, int y, const struct position *p)
{
	struct style style = cell_style(m, p);

	if (p == positions_held(m))
		style.attr |= STYLE_REVERSE;
	cells_text(out, x, y, WIDE - 1, cell_text(m, p), style);
}

static const char *order_text(struct model *m, const struct position *p, int lane)
{
	const struct plan *plan = m->now->plan;
	const char *name = p->lane == lane ? "" : plan->lanes.v[p->lane].name;

	if (p->before == NONE)
		return arena_strf(&m->frame, "%-4s last", name);
	return arena_strf(&m->frame, "%-4s before %s", name, plan->graph->tasks.v[p->before].name);
}

void positions_draw(struct model *m, struct cells *out, int y)
{
	const struct positions *s = m->positions;
	const struct position *held = positions_held(m);
	int least = s->v.v[0].at, row = 0, held_row = 0, rows = out->h - y - 2, skip, lane = NONE;

	for (int i = 0; i < s->v.n; i++) {
		least = (int)min_i64(least, s->v.v[i].at);
		row += i && (s->v.v[i].before != s->v.v[i - 1].before || s->v.v[i].lane != s->v.v[i - 1].lane);
		held_row = &s->v.v[i] == held ? row : held_row;
	}
	skip = (int)max_i64(0, held_row - rows + 1);
	cells_text(out, 0, y, out->w, arena_strf(&m->frame, "%s at: %s", model_moved_name(m, s->task),
		position_text(m, held)), BOLD);
	row = -1;
	for (int i = 0; i < s->v.n; i++) {
		const struct position *p = &s->v.v[i];
		int x = ORDER_COLUMNS + (p->at - least) * WIDE;

		if (!i || p->before != s->v.v[i - 1].before || p->lane != s->v.v[i - 1].lane) {
			row++;
			if (row >= skip && row - skip < rows)
				cells_text(out, 0, y + 2 + row - skip, ORDER_COLUMNS - 1, order_text(m, p, lane),
					PLAIN);
			lane = p->lane;
		}
		cells_text(out, x, y + 1, WIDE - 1, arena_strf(&m->frame, "at %+d", p->at), FAINT);
		if (row >= skip && row - skip < rows)
			draw_position(m, out, x, y + 2 + row - skip, p);
	}
}
