/* layout.h - where the boxes of a layered drawing stand.
 *
 * After Sugiyama, Tagawa, Toda (1981): nodes have layers, given by the caller; a link
 * over several layers becomes a chain of passing nodes, one a layer, shared by all
 * links from the same box; an order within each layer is sought that has few
 * crossings (barycentres), then columns near those of the neighbours. Columns are
 * those of a character grid.
 */
#ifndef DRAW_LAYOUT_H
#define DRAW_LAYOUT_H

#include "base/arena.h"
#include "tile/program.h"

struct layout_node {
	int item;			/* the caller's; of a passing node, its source's */
	bool passing;
	int layer;
	int width;
	int below;			/* passing node that goes on from here; NONE */
	int first_down, first_up;	/* links; NONE */
	int pos;			/* in its layer, from the left */
	int x;				/* leftmost column */
};

/* Between neighbouring layers, downward; node ids. */
struct layout_link {
	int from, to;
	int next_down, next_up;		/* the next with the same `from`, with the same `to` */
};

struct layout {
	struct arena *arena;		/* borrowed */
	VEC(struct layout_node) nodes;
	VEC(struct layout_link) links;
	int nlayers;
	int **order;			/* by layer: node ids from the left */
	int *count;
	int width;			/* columns used, from 0 */
};

/* More nodes are not laid out: nobody could read it, and orders take time. */
enum { LAYOUT_NODES_MAX = 400 };

void layout_init(struct layout *l, struct arena *a);
/* Returns the id. */
int layout_add(struct layout *l, int item, int layer, int width);
/* `from` must be in a layer above that of `to`. Twice is once. */
void layout_join(struct layout *l, int from, int to);
/* False if there is no room in `width` columns. */
bool layout_place(struct layout *l, int width);

#endif
