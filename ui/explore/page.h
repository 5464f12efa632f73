/* page.h - text that one can read up and down: the drawings of src/draw on a grid of cells.
 *
 * A page is made anew when what it tells has changed, and not for each frame; where the
 * reader was stays. A place where the name of an sTask stands is known, so that all
 * places of the selected one can be marked and the cursor's line can lead to one.
 */
#ifndef UI_EXPLORE_PAGE_H
#define UI_EXPLORE_PAGE_H

#include "draw/pen.h"
#include "explore/actions.h"
#include "explore/model.h"

struct page_name {
	int x, y, n;
	int task;
};

struct page {
	struct arena *arena;		/* of what follows */
	bool made;
	uint64_t key;			/* of what it was made for */
	int width;
	unsigned flags;
	struct cells cells;		/* a row a line */
	VEC(struct page_name) names;	/* in reading order */
	bool still;			/* there is no cursor to be seen: keys move the text itself */
	int cursor;			/* line */
	int top, left;			/* first line and column in sight */
	int room;			/* lines that were in sight last */
};

void page_init(struct page *p, struct model *m);
/* What a page is of, as a number: mix in all that its text follows from. A state is known by
 * its address and its statements, as an address alone may be used again. */
uint64_t key_mix(uint64_t key, uint64_t x);
uint64_t key_of_state(const struct state *s);
/* A pen that writes into a new buffer in m->frame, with the colours of the terminal; and its text onto a grid. */
struct pen frame_pen(struct model *m, int width);
void pen_show(const struct pen *pen, struct cells *out, int x, int y);
/* False if the page is of this key and width already. Else the caller writes its text with the pen, and page_end
 * makes the page of it; names of the graph's sTasks are looked for, unless g is NULL. */
bool page_begin(struct page *p, struct model *m, uint64_t key, int width, struct pen *pen);
void page_end(struct page *p, const struct pen *pen, const struct graph *g);
/* Into a part of the grid, with the cursor in its line, names of the sTask (or NONE) reversed.
 * page_mark reverses those of another one there. */
void page_draw(struct page *p, struct cells *out, int x, int y, int w, int h, int task);
void page_mark(const struct page *p, struct cells *out, int x, int y, int w, int h, int task);
/* Up, down, pages, home, end, left, right. */
bool page_act(struct page *p, enum action a);
/* As view_ops.find. */
bool page_find(struct page *p, const char *text, int direction);
/* So that it can be seen. */
void page_go(struct page *p, int line);

#endif
