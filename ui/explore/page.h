/* page.h - text that can be scrolled, made from the drawings of src/draw.
 *
 * A page is made again only if its contents have changed, not for each frame; it stays scrolled where it
 * was. It knows at which cells names of sTasks are, so that those of the selected sTask can be marked.
 */
#ifndef UI_EXPLORE_PAGE_H
#define UI_EXPLORE_PAGE_H

#include "base/hash.h"
#include "draw/pen.h"
#include "explore/actions.h"
#include "explore/model.h"

enum { PAGE_EDGE_MIN = 9 };	/* columns from which on one is for the cursor */

struct page_name {
	int x, y, n;
	int task;
};

struct page {
	struct arena *arena;		/* of what follows; NULL: the page is new */
	bool made;
	uint64_t key;			/* hash of all that the text depends on */
	int width;
	unsigned flags;
	struct cells cells;		/* all lines */
	VEC(struct page_name) names;	/* in reading order */
	bool still;			/* no cursor is shown: keys scroll the text */
	int cursor;			/* line */
	int top, left;			/* first line and column in sight */
	int height;			/* lines in sight when it was drawn last */
};

/* A new page is zero. A key of pages: a hash of the state's address and of its statements, because memory of a freed state may be used
 * again. Mix in all else that the text depends on (hash_mix). */
uint64_t key_of_state(const struct state *s);
/* A pen that writes into a new buffer in m->frame, with the colours of the terminal; and its text onto a grid. */
struct pen frame_pen(struct model *m, int width);
void pen_show(const struct pen *pen, struct cells *out, int x, int y);
/* False if the page is of this key and width already. Else the caller writes its text with the pen, and page_end
 * makes the page of it; names of the graph's sTasks are looked for, unless g is NULL. */
bool page_begin(struct page *p, struct model *m, uint64_t key, int width, struct pen *pen);
void page_end(struct page *p, const struct pen *pen, const struct graph *g);
/* Draw into a part of the grid, with names of the sTask (or NONE) reversed. page_mark reverses those of one more
 * sTask. */
void page_draw(struct page *p, struct cells *out, int x, int y, int w, int h, int task);
void page_mark(const struct page *p, struct cells *out, int x, int y, int w, int h, int task);
/* What a view computes of a state, in an arena of its own; new: zero. */
struct computed {
	struct arena *arena;
	bool made;			/* set by the caller when it is computed */
	uint64_t key;
};
/* False if it is of this key already. Else what there was is released. */
bool computed_begin(struct computed *c, struct model *m, uint64_t key);
/* Keys that scroll: up, down, pages, home, end, left, right; false for all others. */
bool page_act(struct page *p, enum action a);
/* See view_ops.find. */
bool page_find(struct page *p, const char *text, int direction);
/* Put the cursor on a line and scroll so that it is in sight. */
void page_go(struct page *p, int line);

/* A line across the grid: upright in column `at`, or in row `at`. */
void draw_separator(struct cells *out, bool upright, int at);
/* In a part of the grid that shows rows from `top` on of `all`: marks where there is more, above and below. */
void draw_scroll_marks(struct cells *out, int x, int y, int w, int h, int top, int all);
/* "attention.lua:12", "explorer", or "" if there is no location; in `a`. Without folders, which differ from machine
 * to machine. */
const char *loc_text(struct arena *a, struct srcloc loc);

#endif
