/* Lines between two layers of boxes: in which columns they leave and enter boxes, and on which row they run sideways.
 *
 * There is one line for each source, with branches to all targets. Rows are found by the constrained left-edge
 * algorithm of channel routing (Hashimoto, Stevens 1971; Yoshimura, Kuh 1982): where one line leaves a box in the
 * column in which another one enters a box, the first must bend above the second. */
#include "draw/layers.h"

static const struct layout_node *node_at(const struct sketch *s, int node)
{
	return &s->layout.nodes.v[node];
}

static int clamp(int x, int lo, int hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

/* First and last column in which lines may touch a box: not its corners. */
static int port_least(const struct layout_node *n)
{
	return n->passing ? n->x : n->x + 1;
}

static int port_most(const struct layout_node *n)
{
	return n->passing ? n->x : n->x + n->width - 2;
}

/* The column in which a line leaves its box: above the middle one of its targets if possible, or in the middle of the
 * box if it branches to both sides. */
static int leave_column(const struct sketch *s, const struct wire *w)
{
	const struct layout_node *n = node_at(s, w->node), *left = node_at(s, w->to[(w->nto - 1) / 2]);
	const struct layout_node *right = node_at(s, w->to[w->nto / 2]);
	int x = clamp(n->x + (n->width - 1) / 2, port_least(left), port_most(right));

	return clamp(x, port_least(n), port_most(n));
}

static void sort_targets(const struct sketch *s, struct wire *w)
{
	for (int i = 1; i < w->nto; i++) {
		int t = w->to[i], j = i;

		for (; j > 0 && node_at(s, w->to[j - 1])->pos > node_at(s, t)->pos; j--)
			w->to[j] = w->to[j - 1];
		w->to[j] = t;
	}
}

static void collect_wires(const struct sketch *s, int layer, struct gap *gap)
{
	const struct layout *l = &s->layout;

	gap->wires = ARENA_ARRAY(s->arena, l->count[layer], struct wire);
	for (int i = 0; i < l->count[layer]; i++) {
		int node = l->order[layer][i];
		struct wire w = { .node = node, .track = NONE };
		int n = 0;

		for (int j = l->nodes.v[node].first_down; j != NONE; j = l->links.v[j].next_down)
			n++;
		if (!n)
			continue;
		w.to = ARENA_ARRAY(s->arena, n, int);
		w.to_x = ARENA_ARRAY(s->arena, n, int);
		for (int j = l->nodes.v[node].first_down; j != NONE; j = l->links.v[j].next_down)
			w.to[w.nto++] = l->links.v[j].to;
		sort_targets(s, &w);
		w.from_x = leave_column(s, &w);
		gap->wires[gap->nwires++] = w;
	}
}

/* Does another line leave its box in this column? */
static bool leaves_here(const struct gap *gap, const struct wire *self, int x)
{
	for (int i = 0; i < gap->nwires; i++)
		if (&gap->wires[i] != self && gap->wires[i].from_x == x)
			return true;
	return false;
}

/* The end of a wire at one box. */
struct port {
	struct wire *wire;
	int target;			/* index into the wire's targets */
	int x;
};

/* Choose different columns for the lines that enter a box, in the order of their sources and as near to them as
 * possible. False if the box is too narrow. */
static bool enter_columns(const struct sketch *s, struct gap *gap, int node)
{
	const struct layout_node *n = node_at(s, node);
	int lo = port_least(n), hi = port_most(n), count = 0;
	struct port *p = ARENA_ARRAY(s->arena, gap->nwires, struct port);

	for (int i = 0; i < gap->nwires; i++)
		for (int j = 0; j < gap->wires[i].nto; j++)
			if (gap->wires[i].to[j] == node)
				p[count++] = (struct port){ &gap->wires[i], j, 0 };
	if (count > hi - lo + 1)
		return false;
	for (int i = 0; i < count; i++) {
		int x = clamp(p[i].wire->from_x, lo + i, hi - (count - 1 - i));

		p[i].x = i && x <= p[i - 1].x ? p[i - 1].x + 1 : x;
	}
	/* avoid columns in which another line begins: both would need different rows */
	for (int i = count - 1; i >= 0; i--) {
		int most = i + 1 < count ? p[i + 1].x - 1 : hi, least = i ? p[i - 1].x + 1 : lo;

		p[i].x = clamp(p[i].x, least, most);
		for (int d = 1; d < 4 && leaves_here(gap, p[i].wire, p[i].x); d++) {
			if (p[i].x + d <= most && !leaves_here(gap, p[i].wire, p[i].x + d))
				p[i].x += d;
			else if (p[i].x - d >= least && !leaves_here(gap, p[i].wire, p[i].x - d))
				p[i].x -= d;
		}
	}
	for (int i = 0; i < count; i++)
		p[i].wire->to_x[p[i].target] = p[i].x;
	return true;
}

static bool enters_at(const struct wire *w, int x)
{
	for (int i = 0; i < w->nto; i++)
		if (w->to_x[i] == x)
			return true;
	return false;
}

/* May wire i have this track? Not before all wires that must be above it have one. */
static bool may_take(const struct gap *gap, int i, int track)
{
	const struct wire *w = &gap->wires[i];

	for (int j = 0; j < gap->nwires; j++) {
		const struct wire *o = &gap->wires[j];
		bool above = j != i && o->lo < o->hi && enters_at(w, o->from_x);

		if (above && (o->track == NONE || o->track >= track))
			return false;
		if (j != i && o->track == track && o->lo <= w->hi + 1 && w->lo <= o->hi + 1)
			return false;
	}
	return true;
}

static bool assign_tracks(struct gap *gap)
{
	int left = 0;

	for (int i = 0; i < gap->nwires; i++)
		left += gap->wires[i].lo < gap->wires[i].hi;
	while (left) {
		int before = left;

		for (int i = 0; i < gap->nwires; i++) {
			struct wire *w = &gap->wires[i];

			if (w->lo == w->hi || w->track != NONE || !may_take(gap, i, gap->ntracks))
				continue;
			w->track = gap->ntracks;
			left--;
		}
		gap->ntracks++;
		if (left == before)
			return false;
	}
	return true;
}

static bool route_gap(const struct sketch *s, int layer, struct gap *gap)
{
	const struct layout *l = &s->layout;

	collect_wires(s, layer, gap);
	for (int i = 0; i < l->count[layer + 1]; i++)
		if (!enter_columns(s, gap, l->order[layer + 1][i]))
			return false;
	for (int i = 0; i < gap->nwires; i++) {
		struct wire *w = &gap->wires[i];

		w->lo = w->hi = w->from_x;
		for (int k = 0; k < w->nto; k++) {
			w->lo = (int)min_i64(w->lo, w->to_x[k]);
			w->hi = (int)max_i64(w->hi, w->to_x[k]);
		}
	}
	return assign_tracks(gap);
}

bool sketch_route(struct sketch *s)
{
	s->gaps = ARENA_ARRAY(s->arena, s->layout.nlayers, struct gap);
	for (int k = 0; k + 1 < s->layout.nlayers; k++)
		if (!route_gap(s, k, &s->gaps[k]))
			return false;
	return true;
}
