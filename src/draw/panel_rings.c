/* Rows for the slots of rings: which life of the buffer each slot holds, and in which state. */
#include <math.h>

#include "draw/panel.h"
#include "draw/units.h"

enum { SLOT_ROW = 22, MOMENTS_SHOWN = 1500, LINE = 22 };

static const uint8_t inks[] = { [SLOT_EMPTY] = INK_NONE, [SLOT_FILLING] = INK_FILLING,
	[SLOT_FULL] = INK_FULL, [SLOT_READ] = INK_READ, [SLOT_FREE] = INK_FREE };
static const char *const words[] = { [SLOT_EMPTY] = "empty", [SLOT_FILLING] = "being filled",
	[SLOT_FULL] = "full", [SLOT_READ] = "being read", [SLOT_FREE] = "read by all: free" };

/* The state of a slot since its last change. */
struct slot_span {
	enum slot_state state;
	int64_t life, since;
	int row;
};

double panel_arrange_rings(struct panel *n, double y)
{
	const struct plan *p = n->c.t->plan;

	if (!n->moments) {
		n->moments = ARENA_NEW(n->p->arena, struct moments);
		moments_init(n->p->arena, n->moments, n->c.lookup);
	}
	for (int i = 0; i < n->moments->nrings; i++) {
		int b = n->moments->ring[i];

		for (int k = 0; k < p->versions[b]; k++) {
			VEC_PUSH(n->p->arena, &n->rows, ((struct panel_row){ .ring = b, .slot = k,
				.label = k ? "" : p->graph->buffers.v[b].name, .y = y, .h = SLOT_ROW * n->stretch }));
			y += SLOT_ROW * n->stretch + 1;
		}
		y += ROW_GAP;
	}
	return y;
}

static void draw_span(struct panel *n, const struct slot_span *h, int64_t until)
{
	const struct panel_row *r = &n->rows.v[h->row];
	double x = fmax(panel_x(n, h->since), n->x0), w = fmin(panel_x(n, until), n->x1) - x;
	const char *text;
	struct shape *s;

	if (h->state == SLOT_EMPTY || w <= 0)
		return;
	s = picture_rect(n->p, x, r->y, w, r->h, inks[h->state], INK_NONE);
	shape_move(s, MOTION_GROW, (double)h->since, (double)until);
	s->tip = arena_strf(n->p->arena, "%s, slot %d: life %lld %s, cycles %s to %s", n->c.g->buffers.v[r->ring].name,
		r->slot, (long long)h->life, words[h->state], unit_count(h->since).s, unit_count(until).s);
	text = arena_strf(n->p->arena, "%lld", (long long)h->life);
	if (h->state == SLOT_FREE || picture_width(text, SMALL, false) > w - 4)
		return;
	s = picture_text(n->p, x + w / 2, r->y + r->h / 2 + SMALL * 0.36, ANCHOR_MIDDLE, SMALL,
		picture_on(n->theme, inks[h->state]), text);
	shape_move(s, MOTION_APPEAR, panel_appears(s->max_width, w, h->since, until), 0);
}

/* Draw the ring whose slots begin at this row, moment by moment. */
static void draw_ring(struct panel *n, int row, int first, int last, int step)
{
	int buffer = n->rows.v[row].ring, versions = n->c.t->plan->versions[buffer];
	struct slot slots[VERSIONS_MAX];
	struct slot_span span[VERSIONS_MAX];

	for (int k = 0; k < versions; k++)
		span[k] = (struct slot_span){ SLOT_EMPTY, NONE, n->c.from, row + k };
	for (int at = first; at <= last; at += step) {
		int64_t now = n->moments->v[at].cycle;

		/* several moments in one cycle are drawn as one */
		if (at + step <= last && n->moments->v[at + step].cycle == now)
			continue;
		moments_slots(n->moments, at, buffer, slots);
		for (int k = 0; k < versions && row + k < n->rows.n; k++) {
			if (slots[k].state == span[k].state && slots[k].life == span[k].life)
				continue;
			draw_span(n, &span[k], now);
			span[k] = (struct slot_span){ slots[k].state, slots[k].life, max_i64(now, n->c.from), row + k };
		}
	}
	for (int k = 0; k < versions && row + k < n->rows.n; k++)
		draw_span(n, &span[k], n->c.to);
}

void panel_draw_rings(struct panel *n)
{
	int first, last, step;

	if (!n->moments->n)
		return;
	first = moments_at(n->moments, n->c.from);
	last = moments_at(n->moments, n->c.to);
	step = (last - first) / MOMENTS_SHOWN + 1;
	for (int i = 0; i < n->rows.n; i++)
		if (n->rows.v[i].ring != NONE && n->rows.v[i].slot == 0)
			draw_ring(n, i, first, last, step);
}

double panel_legend_rings(struct panel *n, double y)
{
	double x = MARGIN;

	for (int i = SLOT_FILLING; i <= SLOT_FREE + 1; i++) {
		bool sample = i <= SLOT_FREE;		/* the last words have none */
		const char *text = sample ? words[i] : "number: which life of the buffer";
		double w = picture_width(text, 13, false) + (sample ? 28 : 0);

		if (x > MARGIN && x + w > n->p->width - MARGIN) {
			x = MARGIN;
			y += LINE;
		}
		if (sample)
			picture_rect(n->p, x, y - 12, 22, 15, inks[i], INK_NONE);
		picture_text(n->p, x + (sample ? 28 : 0), y + 1, ANCHOR_LEFT, 13, INK_FAINT, text);
		x += w + 18;
	}
	return y + LINE;
}
