#include "draw/layout.h"

#include <math.h>
#include <string.h>

enum {
	BOX_GAP = 3,
	LINE_GAP = 2,			/* next to a passing node */
	ORDER_SWEEPS = 12,
	COLUMN_SWEEPS = 12,
	LINE_WEIGHT = 4,		/* a bent line is worse than a box that is not centred */
};

void layout_init(struct layout *l, struct arena *a)
{
	*l = (struct layout){ .arena = a };
}

static int add_node(struct layout *l, struct layout_node n)
{
	n.below = n.first_down = n.first_up = NONE;
	VEC_PUSH(l->arena, &l->nodes, n);
	if (n.layer >= l->nlayers)
		l->nlayers = n.layer + 1;
	return l->nodes.n - 1;
}

int layout_add(struct layout *l, int item, int layer, int width)
{
	return add_node(l, (struct layout_node){ .item = item, .layer = layer, .width = width });
}

static void link_nodes(struct layout *l, int from, int to)
{
	struct layout_node *a = &l->nodes.v[from], *b = &l->nodes.v[to];

	for (int i = a->first_down; i != NONE; i = l->links.v[i].next_down)
		if (l->links.v[i].to == to)
			return;
	VEC_PUSH(l->arena, &l->links, ((struct layout_link){ from, to, a->first_down, b->first_up }));
	a->first_down = b->first_up = l->links.n - 1;
}

void layout_join(struct layout *l, int from, int to)
{
	int item = l->nodes.v[from].item, last = l->nodes.v[to].layer;

	for (int k = l->nodes.v[from].layer + 1; k < last && l->nodes.n <= LAYOUT_NODES_MAX; k++) {
		if (l->nodes.v[from].below == NONE) {
			int next = add_node(l, (struct layout_node){ .item = item, .passing = true,
				.layer = k, .width = 1 });

			l->nodes.v[from].below = next;
			link_nodes(l, from, next);
		}
		from = l->nodes.v[from].below;
	}
	if (l->nodes.v[from].layer == last - 1)
		link_nodes(l, from, to);
}

static void number_layers(struct layout *l)
{
	l->order = ARENA_ARRAY(l->arena, l->nlayers, int *);
	l->count = ARENA_ARRAY(l->arena, l->nlayers, int);
	for (int k = 0; k < l->nlayers; k++)
		l->order[k] = ARENA_ARRAY(l->arena, l->nodes.n, int);
	for (int i = 0; i < l->nodes.n; i++) {
		struct layout_node *n = &l->nodes.v[i];

		n->pos = l->count[n->layer]++;
		l->order[n->layer][n->pos] = i;
	}
}

/* At which positions of the next layer the links seen so far end, as a binary indexed tree (Fenwick 1994). */
struct ends {
	int *sum;
	int n, all;
};

static void add_end(struct ends *e, int pos)
{
	e->all++;
	for (pos++; pos <= e->n; pos += pos & -pos)
		e->sum[pos]++;
}

static int ends_right_of(const struct ends *e, int pos)
{
	int sum = e->all;

	for (pos++; pos > 0; pos -= pos & -pos)
		sum -= e->sum[pos];
	return sum;
}

/* Crossings below a layer: each link crosses those links of boxes further left that end further right. */
static int64_t crossings_below(const struct layout *l, int layer)
{
	int below = l->count[layer + 1];
	struct ends e = { ARENA_ARRAY(l->arena, below + 1, int), below, 0 };
	int64_t sum = 0;

	for (int i = 0; i < l->count[layer]; i++) {
		int first = l->nodes.v[l->order[layer][i]].first_down;

		for (int k = first; k != NONE; k = l->links.v[k].next_down)
			sum += ends_right_of(&e, l->nodes.v[l->links.v[k].to].pos);
		for (int k = first; k != NONE; k = l->links.v[k].next_down)
			add_end(&e, l->nodes.v[l->links.v[k].to].pos);
	}
	return sum;
}

static int64_t crossings(const struct layout *l)
{
	struct arena_mark mark = arena_mark(l->arena);
	int64_t sum = 0;

	for (int k = 0; k + 1 < l->nlayers; k++)
		sum += crossings_below(l, k);
	arena_reset(l->arena, mark);
	return sum;
}

/* Mean position (or centre column, if `centres`) of a node's neighbours above or below; `otherwise` if there are
 * none. */
static double mean_position(const struct layout *l, int node, bool above, bool centres, double otherwise)
{
	const struct layout_node *here = &l->nodes.v[node];
	double sum = 0;
	int n = 0;

	for (int i = above ? here->first_up : here->first_down; i != NONE;
	     i = above ? l->links.v[i].next_up : l->links.v[i].next_down) {
		const struct layout_node *o = &l->nodes.v[above ? l->links.v[i].from : l->links.v[i].to];

		sum += centres ? o->x + (o->width - 1) / 2.0 : o->pos;
		n++;
	}
	return n ? sum / n : otherwise;
}

/* Sort by barycentres. Stable, so that nodes with equal ones keep the order of the program. */
static void order_layer(struct layout *l, int layer, bool above)
{
	int *order = l->order[layer], n = l->count[layer];
	struct arena_mark mark = arena_mark(l->arena);
	double *key = ARENA_ARRAY(l->arena, n, double);

	for (int i = 0; i < n; i++)
		key[i] = mean_position(l, order[i], above, false, i);
	for (int i = 1; i < n; i++) {
		double k = key[i];
		int node = order[i], j = i;

		for (; j > 0 && key[j - 1] > k; j--) {
			key[j] = key[j - 1];
			order[j] = order[j - 1];
		}
		key[j] = k;
		order[j] = node;
	}
	for (int i = 0; i < n; i++)
		l->nodes.v[order[i]].pos = i;
	arena_reset(l->arena, mark);
}

static void order_layers(struct layout *l)
{
	int *best = ARENA_ARRAY(l->arena, l->nodes.n, int);
	int64_t least = INT64_MAX;

	for (int sweep = 0; sweep <= ORDER_SWEEPS; sweep++) {
		int64_t now = crossings(l);

		if (now < least) {
			least = now;
			for (int i = 0; i < l->nodes.n; i++)
				best[i] = l->nodes.v[i].pos;
		}
		if (sweep % 2 == 0)
			for (int k = 1; k < l->nlayers; k++)
				order_layer(l, k, true);
		else
			for (int k = l->nlayers - 2; k >= 0; k--)
				order_layer(l, k, false);
	}
	for (int i = 0; i < l->nodes.n; i++) {
		l->nodes.v[i].pos = best[i];
		l->order[l->nodes.v[i].layer][best[i]] = i;
	}
}

/* Columns that the nodes of a layer before position i need. */
static int width_before(const struct layout *l, int layer, int i)
{
	int sum = 0;

	for (int j = 0; j < i; j++) {
		const struct layout_node *a = &l->nodes.v[l->order[layer][j]];

		sum += a->width;
		if (j + 1 < l->count[layer])
			sum += a->passing || l->nodes.v[l->order[layer][j + 1]].passing ? LINE_GAP : BOX_GAP;
	}
	return sum;
}

/* Nodes that are as close together as they may be. */
struct block {
	double sum, weight;
	int n;
};

/* Choose columns nearest to the wanted ones (least squares) that keep the order and the least distances: pool adjacent
 * violators (Ayer et al. 1955) on columns minus width_before. */
static void choose_columns(struct layout *l, int layer, const double *want, int width)
{
	int n = l->count[layer], nblocks = 0, at = 0;
	struct arena_mark mark = arena_mark(l->arena);
	struct block *b = ARENA_ARRAY(l->arena, n, struct block);
	double slack = width - width_before(l, layer, n);

	for (int i = 0; i < n; i++) {
		double w = l->nodes.v[l->order[layer][i]].passing ? LINE_WEIGHT : 1;

		b[nblocks++] = (struct block){ w * (want[i] - width_before(l, layer, i)), w, 1 };
		while (nblocks > 1 && b[nblocks - 2].sum / b[nblocks - 2].weight >
		       b[nblocks - 1].sum / b[nblocks - 1].weight) {
			b[nblocks - 2].sum += b[nblocks - 1].sum;
			b[nblocks - 2].weight += b[nblocks - 1].weight;
			b[nblocks - 2].n += b[nblocks - 1].n;
			nblocks--;
		}
	}
	for (int i = 0; i < nblocks; i++) {
		double y = b[i].sum / b[i].weight;

		y = y < 0 ? 0 : y > slack ? slack : y;
		for (int j = 0; j < b[i].n; j++, at++)
			l->nodes.v[l->order[layer][at]].x = (int)floor(y + 0.5) + width_before(l, layer, at);
	}
	arena_reset(l->arena, mark);
}

static void move_towards(struct layout *l, int layer, bool above, int width)
{
	struct arena_mark mark = arena_mark(l->arena);
	double *want = ARENA_ARRAY(l->arena, l->count[layer], double);

	for (int i = 0; i < l->count[layer]; i++) {
		const struct layout_node *n = &l->nodes.v[l->order[layer][i]];
		double half = (n->width - 1) / 2.0;

		want[i] = mean_position(l, l->order[layer][i], above, true, n->x + half) - half;
	}
	choose_columns(l, layer, want, width);
	arena_reset(l->arena, mark);
}

static void shift_left(struct layout *l)
{
	int least = INT32_MAX;

	for (int i = 0; i < l->nodes.n; i++)
		least = (int)min_i64(least, l->nodes.v[i].x);
	for (int i = 0; i < l->nodes.n; i++) {
		l->nodes.v[i].x -= least;
		l->width = (int)max_i64(l->width, l->nodes.v[i].x + l->nodes.v[i].width);
	}
}

/* Could the layers fit in any order? */
static bool may_fit(const struct layout *l, int width)
{
	for (int k = 0; k < l->nlayers; k++) {
		int64_t least = (int64_t)(l->count[k] - 1) * LINE_GAP;

		for (int i = 0; i < l->count[k]; i++)
			least += l->nodes.v[l->order[k][i]].width;
		if (least > width)
			return false;
	}
	return true;
}

bool layout_arrange(struct layout *l, int width)
{
	if (!l->nodes.n || l->nodes.n > LAYOUT_NODES_MAX)
		return false;
	number_layers(l);
	if (!may_fit(l, width))
		return false;
	order_layers(l);
	for (int k = 0; k < l->nlayers; k++) {
		double *centre = ARENA_ARRAY(l->arena, l->count[k], double);
		int least = width_before(l, k, l->count[k]);

		if (least > width)
			return false;
		for (int i = 0; i < l->count[k]; i++)
			centre[i] = (width - least) / 2.0 + width_before(l, k, i);
		choose_columns(l, k, centre, width);
	}
	for (int sweep = 0; sweep < COLUMN_SWEEPS; sweep++) {
		for (int k = 1; k < l->nlayers; k++)
			move_towards(l, k, true, width);
		for (int k = l->nlayers - 2; k >= 0; k--)
			move_towards(l, k, false, width);
	}
	shift_left(l);
	return true;
}
