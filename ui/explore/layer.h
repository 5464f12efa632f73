/* layer.h - the screen that lists the kernels of a sequence on one axis; one of them is opened in the explorer.
 *
 * Drawn from a struct layer each time. llayer.c shows it on the terminal; lua/std/sequence_show.lua opens the kernels.
 */
#ifndef UI_EXPLORE_LAYER_H
#define UI_EXPLORE_LAYER_H

#include <lua.h>

#include "draw/sequences.h"
#include "explore/term.h"

struct layer {
	const struct seqline *line;	/* borrowed */
	int at;				/* the span that is selected */
	double from, to;		/* seconds in sight */
	int top;			/* first span of the list in sight */
	int list, rows;			/* of the last drawing: where the list begins, and its rows */
	bool help;
	unsigned flags;			/* enum draw_flags of the terminal */
};

/* What a key asks for. */
enum layer_wish { LAYER_STAY, LAYER_TIMELINE, LAYER_PLAN, LAYER_LEAVE };

void layer_init(struct layer *s, const struct seqline *l, int at);
/* Draw onto all of the grid, which is blank and of any size. */
void layer_draw(struct layer *s, struct cells *out);
enum layer_wish layer_key(struct layer *s, struct key k);
/* Add core.layer_screen to the table on top of the stack. May raise. */
void lua_open_layer(lua_State *L);

#endif
