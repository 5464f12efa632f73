#include "explore/pane.h"

#include <string.h>

#include "explore/page.h"

struct pane {
	int top;			/* first row in sight */
	int height;			/* rows in sight when it was drawn last */
	int task, event;		/* that were selected then */
	struct page summary;
};

static struct pane *pane_of(struct model *m)
{
	if (!m->pane)
		m->pane = ARENA_NEW(&m->arena, struct pane);
	return m->pane;
}

/* The summary as a grid; it is made again only if the state has changed. */
static const struct cells *summary(struct model *m, struct pane *p, int w)
{
	uint64_t key = hash_mix(key_of_state(m->now), (uint64_t)m->sel.phase);
	struct pen pen;

	if (page_begin(&p->summary, m, hash_mix(key, (uintptr_t)m->now->why), w, &pen)) {
		summary_write(m, &pen);
		page_end(&p->summary, &pen, NULL);
	}
	return &p->summary.cells;
}

void pane_draw(struct model *m, struct cells *out, int x, int y, int w, int h)
{
	struct pane *p = pane_of(m);
	struct cells details;
	const struct cells *all = &details;
	int rows;

	if (h < 1 || w < WIDTH_MIN)
		return;
	if (p->task != m->sel.task || p->event != m->sel.event)
		p->top = 0;
	p->task = m->sel.task;
	p->event = m->sel.event;
	p->height = h;
	if (m->sel.task == NONE) {
		all = summary(m, p, w - 1);
		rows = all->h;
	} else {
		cells_init(&details, &m->frame, w, p->top + h + 1);	/* one more, to know whether there is more */
		rows = details_draw(m, &details);
	}
	p->top = (int)max_i64(0, min_i64(p->top, rows - h));
	cells_blit(out, x, y, w, h, all, 0, p->top);
	if (rows > p->top + h)
		cells_text(out, x + w - 6, y + h - 1, 6, " ▼ C-d", BOLD);
	if (p->top)
		cells_text(out, x + w - 6, y, 6, " ▲ C-u", BOLD);
}

void pane_scroll(struct model *m, int by)
{
	struct pane *p = pane_of(m);

	p->top = (int)max_i64(0, p->top + by * max_i64(1, p->height / 2));
}
