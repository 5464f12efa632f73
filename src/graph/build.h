/* build.h - what the files of graph_build share; nobody else includes it. */
#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "graph/graph.h"

struct builder {
	struct graph *g;
	const struct program *p;
	int *slices;			/* by program task: 1 if not split */
	int *split_axis;		/* by program task; NONE */
	int *first_stask;		/* by program task: id of slice 0; NONE if the task is empty */
	int *node_buffer;		/* by node: buffer of slice 0; NONE */
	int *node_slices;		/* by node: buffers of it */
	bool *apart;			/* by node: is it read by a task that is split otherwise? */
	int *carry_buffer, *carry_slices, *carry_split;	/* by carry; the axis of its split */
	int *task_order;		/* program tasks in program order */
	int ntasks;
	int first_split_off;		/* program tasks from here on are split off from others ... */
	const struct split_off *split_offs;	/* ... by these */
	int first_fetch;		/* ... and from here on fetch operands */
};

/* Constants and indices are computed again wherever they are used: they need no buffer. */
static inline bool node_is_free(const struct node *n)
{
	return n->op == OP_CONST || n->op == OP_INDEX;
}

/* Extent along position i of node's axes in one slice of `task`. */
int64_t slice_extent(const struct builder *b, int task, int node, int i);
int64_t slice_elements(const struct builder *b, int task, int node);

/* Fill work of one sTask; buffers must be known. */
void build_work(const struct builder *b, struct stask *s);
/* Derive g->edges from what the sTasks read and write; those of one program task stand together. */
void build_edges(struct graph *g, const int *first_stask);
/* Make buffers aliases; before the edges, which depend on it. */
NODISCARD enum err_code build_aliases(struct graph *g, const struct alias *v, int n, struct err *e);
/* Refuse aliases that overwrite what is still read; after the edges. */
NODISCARD enum err_code build_check_aliases(struct graph *g, const struct alias *v, struct err *e);
/* Fill g->trips and g->grids. */
NODISCARD enum err_code build_trips(struct graph *g, struct err *e);

#endif
