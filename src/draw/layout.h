/* layout.h - positions of the boxes of a layered drawing.
 *
 * After Sugiyama, Tagawa, Toda (1981): the caller gives each node a layer; a link over several layers becomes a
 * chain of passing nodes, one in each layer, which all links of a box share; the order within each layer is
 * chosen to have few crossings (barycentres), and columns to be near those of neighbours. Columns are those of
 * a character grid.
 */
#ifndef DRAW_LAYOUT_H
#define DRAW_LAYOUT_H

#include "base/arena.h"
#include "tile/program.h"

struct layout_node {
	int item;			/* of the caller; a passing node has that of its source */
	bool passing;
	int layer;
	int width;
	int below;			/* next passing node of the chain; NONE */
	int first_down, first_up;	/* links; NONE */
	int pos;			/* in its layer, from the left */
	int x;				/* leftmost column */
};

/* From a node to a node in the next layer. */
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

/* Graphs with more nodes are not laid out: they would be illegible and take long. */
enum { LAYOUT_NODES_MAX = 400 };

void layout_init(struct layout *l, struct arena *a);
/* Returns the id of the new node. */
int layout_add(struct layout *l, int item, int layer, int width);
/* Link two nodes, unless they are linked; `from` must be in a layer above that of `to`. */
void layout_join(struct layout *l, int from, int to);
/* Choose order and columns; false if `width` columns are too few. */
bool layout_arrange(struct layout *l, int width);

#endif
