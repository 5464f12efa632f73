#include "search/sides.h"

#include <math.h>

#include "search/axis_use.h"
#include "search/build.h"
#include "search/limits.h"

enum {
	KEPT = 2,			/* splits of each number of rows to start from */
	RATED_MOST = 512,		/* splits of a side that are compared */
};

/* Has a product rows along one of the axes, and columns along the other? Then an extent of one does not make up for the
 * other's. */
static bool are_opposite(const struct program *p, int a, int b)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i], *x, *y;

		if (n->op != OP_MMA || n->task == NONE)
			continue;
		x = &p->nodes.v[n->arg[0]];
		y = &p->nodes.v[n->arg[1]];
		if ((node_has_axis(x, a) && node_has_axis(y, b)) || (node_has_axis(x, b) && node_has_axis(y, a)))
			return true;
	}
	return false;
}

/* Can a tile have any part of the dimension's axis, which is one of the product's rows or columns? */
static bool may_share(const struct program *p, const struct dim *d, const struct node *mma)
{
	return d->starts && !d->wanted && !d->side && d->multiple == 1 && node_has_axis(mma, d->axis) &&
		!axis_is_reduced(p, d->axis) && !axis_is_contracted_again(p, d->axis) &&
		program_axis_role(p, p->tasks.v[mma->task].phase, d->axis) == AXIS_GRID;
}

/* The axes along which the product's operand has rows or columns. False if fewer than two are long. */
static bool find_side(const struct space *s, const struct node *mma, bool rows, struct side *out)
{
	const struct program *p = s->program;
	const struct node *x = &p->nodes.v[mma->arg[!rows]];
	int many = 0;

	*out = (struct side){ .rows = rows };
	for (int k = x->naxes - 1; k >= 0; k--)
		for (int i = 0; i < s->ndims; i++) {
			const struct dim *d = &s->dims[i];

			if (d->axis != x->axis[k] || !may_share(p, d, mma))
				continue;
			out->least[out->n] = d->extent[__builtin_ctz(d->starts)];
			out->dim[out->n++] = i;
			many += p->axes.v[d->axis].size >= SPACE_SHORT_AXIS;
		}
	for (int i = 0; i < out->n; i++)
		for (int k = 0; k < i; k++)
			if (are_opposite(p, s->dims[out->dim[i]].axis, s->dims[out->dim[k]].axis))
				return false;
	return many > 1;
}

void sides_set(const struct space *s, const struct side *x, int i, struct tiling *out)
{
	for (int k = 0; k < x->n && i < x->nsplits; k++)
		out->extent[s->dims[x->dim[k]].axis] = x->split[i][k];
}

/* ---- which splits promise most ----------------------------------------------------------- */

/* A split, and bounds of what the tiles of all of it take. */
struct rated {
	int64_t split[AXES_MAX];
	double seconds, bytes;		/* seconds in steps */
};

/* Those of one number of rows that are best so far. */
struct best {
	int n;
	struct rated v[KEPT];
};

/* What is looked through. */
struct splits {
	struct space *s;
	const struct side *side;
	struct graph **graph;
	int rated;
	int64_t now[AXES_MAX];
	struct best best[SIDE_SPLITS_MOST / KEPT];
};

static void note(struct best *b, const struct rated *x)
{
	int at = b->n;

	while (at > 0 && (x->seconds < b->v[at - 1].seconds ||
	    (x->seconds == b->v[at - 1].seconds && x->bytes < b->v[at - 1].bytes)))
		at--;
	if (at == KEPT)
		return;
	b->n += b->n < KEPT;
	for (int i = b->n - 1; i > at; i--)
		b->v[i] = b->v[i - 1];
	b->v[at] = *x;
}

/* Rate the split at hand, with the first extents of all other axes. */
static void rate(struct splits *x, struct best *best)
{
	const struct space *s = x->s;
	struct choice c = space_first_choice(s);
	struct rated r;
	struct err e;

	x->rated++;
	for (int k = 0; k < x->side->n; k++)
		c.tiling.extent[s->dims[x->side->dim[k]].axis] = r.split[k] = x->now[k];
	if (!build_graph(s, &c, x->graph, &e) && !limit_sums(*x->graph)) {
		r.bytes = limit_traffic(*x->graph);
		r.seconds = limit_in_steps(fmax(limit_seconds(s, NULL, *x->graph),
			r.bytes / s->device->l2_rate / s->device->clock_hz));
		note(best, &r);
	}
	graph_free(*x->graph);
	*x->graph = NULL;
}

/* Go through all splits whose first k extents are as they are, and have so many rows: the axis's own size, or powers of
 * two. */
static void look_through(struct splits *x, int k, int64_t rows)
{
	int64_t unit = x->side->rows ? SPACE_ROWS : SPACE_COLUMNS, size, most;
	int class = 0;

	if (rows > SPACE_PRODUCT_MOST || x->rated == RATED_MOST)
		return;
	if (k == x->side->n) {
		while (class < LEN(x->best) && rows >> (class + 1) >= SPACE_ROWS)
			class++;
		if (rows >= SPACE_ROWS && rows % unit == 0)
			rate(x, &x->best[class]);
		return;
	}
	size = x->s->program->axes.v[x->s->dims[x->side->dim[k]].axis].size;
	for (most = 1; most * 2 <= size && most < SPACE_PRODUCT_MOST;)
		most *= 2;
	if (size != most && size < SPACE_PRODUCT_MOST) {
		x->now[k] = size;
		look_through(x, k + 1, rows * size);
	}
	for (int64_t extent = most; extent >= 1; extent /= 2) {
		x->now[k] = extent;
		look_through(x, k + 1, rows * extent);
	}
}

/* Let the search start from some splits, and reach all powers of two from there. */
static void fill_dim(const struct program *p, const struct side *x, int k, struct dim *d)
{
	int64_t size = p->axes.v[d->axis].size;

	d->n = 0;
	d->starts = 0;
	for (int64_t extent = 1; extent <= SPACE_PRODUCT_MOST && extent < size * 2; extent *= 2) {
		int64_t now = min_i64(extent, size);

		for (int i = 0; i < x->nsplits; i++)
			d->starts |= (uint32_t)(x->split[i][k] == now) << d->n;
		d->extent[d->n++] = now;
	}
}

/* Let the search start from the splits that promise most, if any split has a graph. */
static void choose_splits(struct space *s, struct side *x, struct graph **graph)
{
	struct splits all = { .s = s, .side = x, .graph = graph };
	int n = 0;

	look_through(&all, 0, 1);
	for (int class = 0; class < LEN(all.best); class++)
		for (int i = 0; i < all.best[class].n; i++, n++)
			for (int k = 0; k < x->n; k++)
				x->split[n][k] = all.best[class].v[i].split[k];
	x->nsplits = n ? n : x->nsplits;
	for (int k = 0; k < x->n; k++)
		fill_dim(s->program, x, k, &s->dims[x->dim[k]]);
}

/* While the splits of one side are compared, those of others are rows along the innermost long axis. */
static void take_side(struct space *s, const struct side *found)
{
	const struct program *p = s->program;
	struct side *x = &s->sides[s->nsides++];
	bool given = false;

	*x = *found;
	x->nsplits = 1;
	for (int k = 0; k < x->n; k++) {
		struct dim *d = &s->dims[x->dim[k]];

		x->split[0][k] = !given && p->axes.v[d->axis].size >= SPACE_SHORT_AXIS ? SPACE_ROWS : 1;
		given |= x->split[0][k] > 1;
		d->side = x;
		d->at = k;
	}
}

void sides_find(struct space *s, struct graph **graph)
{
	const struct program *p = s->program;
	struct side found;

	s->sides = ARENA_ARRAY(s->a, AXES_MAX, struct side);	/* of each, two axes at least are on no other */
	for (int i = 0; i < p->nodes.n; i++)
		for (int rows = 1; rows >= 0 && p->nodes.v[i].op == OP_MMA && p->nodes.v[i].task != NONE; rows--)
			if (find_side(s, &p->nodes.v[i], rows, &found))
				take_side(s, &found);
	for (int i = 0; i < s->nsides; i++)
		choose_splits(s, &s->sides[i], graph);
}

/* Has a product rows along both axes, or columns? */
static bool are_together(const struct program *p, int a, int b)
{
	bool together = false;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int k = 0; k < 2 && n->op == OP_MMA && n->task != NONE && node_has_axis(n, a) && node_has_axis(n, b); k++)
			together |= node_has_axis(&p->nodes.v[n->arg[k]], a) && node_has_axis(&p->nodes.v[n->arg[k]], b);
	}
	return together && !are_opposite(p, a, b);
}

/* The dimension whose extent makes up for one of d's: the k-th other one of its side; or, of short axes, the space's k-th, if it is one.
 * NULL: there is none. */
static const struct dim *partner(const struct space *s, const struct dim *d, int k)
{
	const struct dim *x = &s->dims[k];

	if (d->side)
		return k < d->side->n - 1 ? &s->dims[d->side->dim[k < d->at ? k : k + 1]] : NULL;
	return d->is_short && x->is_short && x != d && are_together(s->program, d->axis, x->axis) ? x : NULL;
}

bool sides_exchange(const struct space *s, const struct dim *d, int64_t extent, int k,
	const struct tiling *now, struct tiling *out)
{
	const struct dim *other = partner(s, d, k);
	int64_t both;
	int axis;

	if (!other)
		return false;
	axis = other->axis;
	both = now->extent[axis] * now->extent[d->axis];
	*out = *now;
	out->extent[d->axis] = extent;
	out->extent[axis] = both / extent;
	return both % extent == 0 && both / extent <= s->program->axes.v[axis].size;
}
