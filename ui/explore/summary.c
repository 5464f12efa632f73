/* The summary of a plan, while nothing is selected: what binds it, where the time of its lanes goes, what would help,
 * what it takes of an EU, and its rings. In two columns if there is space. */
#include <stdlib.h>
#include <string.h>

#include "draw/units.h"
#include "explore/page.h"
#include "explore/pane.h"

enum { WIDE = 100, GAP = 4, PARTS = 3, PROBLEMS = 6, CHANGES = 3 };

static int by_share(const void *x, const void *y)
{
	double a = ((const struct blame_part *)x)->share, b = ((const struct blame_part *)y)->share;

	return (a < b) - (a > b);
}

/* Of each lane the largest parts of its time. */
static void put_lanes(const struct timeline *t, struct pen *pen)
{
	static const struct column col[] = { { "lane", ALIGN_LEFT, 0, 0 }, { "time", ALIGN_RIGHT, 0, 0 },
		{ "goes to", ALIGN_LEFT, 20, 0 } };
	struct table table = table_new(pen->arena, col, LEN(col));
	struct blames b = { 0 };

	timeline_blame(pen->arena, t, !(t->clock_hz > 0), &b);
	qsort(b.v.v, (size_t)b.v.n, sizeof(*b.v.v), by_share);
	for (int l = 0; l < t->plan->lanes.n; l++) {
		int n = 0;

		for (int i = 0; i < b.v.n && n < PARTS; i++) {
			const struct blame_part *x = &b.v.v[i];

			if (x->lane != l || lane_only_feeds(t->plan, l))
				continue;
			TABLE_ROW(&table, n++ ? NULL : t->plan->lanes.v[l].name,
				unit_keep(pen->arena, unit_percent(x->share)), blame_text(pen->arena, t->plan, x, false));
		}
	}
	pen_table(pen, "where the time of lanes goes", &table);
}

/* Those that y found. */
static void put_changes(const struct model *m, struct pen *pen)
{
	const struct state *s = m->now;

	pen_section(pen, s->legal ? "what would help" : "what would make it legal");
	pen_line(pen, s->why ? s->why : "y tries changes of the plan, and lists which would help");
	for (int i = 0; i < s->changes.n && i < CHANGES; i++)
		pen_wrap(pen, arena_strf(pen->arena, "  %d ", i + 1), 4, arena_strf(pen->arena, "%s%s%s",
			s->changes.v[i].gain, s->changes.v[i].gain[0] ? ": " : "", s->changes.v[i].statements));
	if (s->changes.n)
		pen_line(pen, "y lists them all, to be applied");
}

static void put_time(struct model *m, struct pen *pen)
{
	const struct timeline *t = m->now->tl;

	pen_section(pen, "what binds");
	pen_line(pen, timeline_total(pen->arena, t));
	pen_line(pen, timeline_ii(pen->arena, t, model_line(m)));
	pen_line(pen, timeline_waits(pen->arena, t, model_line(m)));
	put_changes(m, pen);
	if (t->phases[0].events.n)
		put_lanes(t, pen);
}

static void put_problems(struct model *m, struct pen *pen)
{
	const struct problems *all = model_problems(m);

	pen_section(pen, arena_strf(pen->arena, "not legal: %d problem%s; 8 shows where, f tries to repair the plan, y lists repairs",
		all->v.n, all->v.n == 1 ? "" : "s"));
	for (int i = 0; i < all->v.n && i < PROBLEMS; i++)
		pen_line(pen, all->v.v[i].message);
	if (all->v.n > PROBLEMS)
		pen_line(pen, arena_strf(pen->arena, "and %d more", all->v.n - PROBLEMS));
	if (m->now->why)
		put_changes(m, pen);
}

static void put_column(struct model *m, bool left, bool right, struct pen *pen)
{
	if (left && m->now->tl)
		put_time(m, pen);
	else if (left && m->now->checked && !m->now->legal)
		put_problems(m, pen);
	if (right && m->now->checked)
		pen_usage(pen, m->now->plan, &m->now->usage);
}

static void put_columns(struct model *m, struct pen *pen)
{
	int each = (pen->width - GAP) / 2, w, h[2];
	struct pen column[2] = { frame_pen(m, each), frame_pen(m, each) };
	struct cells c;

	for (int i = 0; i < 2; i++) {
		put_column(m, !i, i, &column[i]);
		cells_measure(column[i].out->len ? column[i].out->text : "", &w, &h[i]);
	}
	cells_init(&c, pen->arena, pen->width, (int)max_i64(h[0], h[1]));
	pen_show(&column[0], &c, 0, 0);
	pen_show(&column[1], &c, each + GAP, 0);
	cells_print(&c, pen->flags, pen->out);
}

void summary_write(struct model *m, struct pen *pen)
{
	pen_puts(pen, "nothing is selected: use the arrows, or click\n", FAINT);
	if (!m->now->plan)
		return;
	if (pen->width >= WIDE)
		put_columns(m, pen);
	else
		put_column(m, true, true, pen);
}
