#include "draw/wires.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/label.h"

enum {
	LABEL_MAX = 120,		/* pixels of a name of buffers */
	NEAR = 5,			/* lines that are nearer look like one */
	STRAIGHT = 24, CHANNEL = 14, ROUND = 6, SIDE = 12,
};

static const struct layout_node *node_at(const struct wires *w, int node)
{
	return &w->s->layout.nodes.v[node];
}

double wires_node_x(const struct wires *w, int node)
{
	return w->x + node_at(w, node)->x * COLUMN;
}

double wires_node_width(const struct wires *w, int node)
{
	const struct layout_node *n = node_at(w, node);

	return n->width * (double)COLUMN - (n->passing ? 0 : w->own[n->item]);
}

static double middle(const struct wires *w, int node)
{
	return wires_node_x(w, node) + wires_node_width(w, node) / 2;
}

static bool is_carried(const struct sketch *s, const struct edge *e)
{
	return s->layer[e->to] != NONE && s->layer[e->from] != NONE && e->kind == EDGE_FLOW && !edge_is_inner(e) &&
		!e->reuse;
}

/* "o", "mx, l": the buffers in which an sTask leaves what the other one reads. */
static const char *flow_text(const struct wires *w, int from, int to)
{
	const struct graph *g = w->s->g;
	struct buf b = buf_new(w->p->arena);

	for (int i = g->first_in[to]; i != NONE; i = g->next_in.v[i])
		if (g->edges.v[i].from == from && sketch_is_flow(w->s, &g->edges.v[i]))
			buf_printf(&b, "%s%s", b.len ? ", " : "", g->buffers.v[g->edges.v[i].buffer].name);
	return b.len ? picture_fit(w->p, b.text, w->look->edge, LABEL_MAX) : "";
}

static double channel_width(const struct wires *w, const struct wire_back *b)
{
	return CHANNEL + 4 + picture_width(b->text, w->look->edge, false);
}

/* Values of an sTask of its own are one line, whose text has each of them once, of whichever loop. */
static void add_back(struct wires *w, int edge)
{
	struct arena *a = w->p->arena;
	const struct edge *e = &w->s->g->edges.v[edge];
	const char *buffers = label_edge_buffers(a, w->s->g, edge), *text;

	if (!buffers)
		return;
	text = arena_strf(a, "%s %s", label_distance(a, e), buffers);
	for (int i = 0; i < w->backs.n && e->from == e->to; i++) {
		struct wire_back *b = &w->backs.v[i];

		if (b->from != e->from || b->to != e->to)
			continue;
		if (!strstr(arena_strf(a, "%s, +", b->text), arena_strf(a, "%s, +", text)))
			b->text = arena_strf(a, "%s, %s", b->text, text);
		return;
	}
	VEC_PUSH(a, &w->backs, ((struct wire_back){ .from = e->from, .to = e->to, .text = text }));
}

void wires_init(struct wires *w, struct picture *p, struct sketch *s, const struct graph_look *look)
{
	*w = (struct wires){ .p = p, .s = s, .look = look };
	for (int i = 0; i < s->g->edges.n; i++)
		if (is_carried(s, &s->g->edges.v[i]))
			add_back(w, i);
	for (int i = 0; i < w->backs.n; i++)
		w->backs.v[i].text = picture_fit(p, w->backs.v[i].text, look->edge, LABEL_MAX);
	w->own = ARENA_ARRAY(p->arena, s->g->tasks.n, double);
	for (int i = 0; i < w->backs.n; i++)
		if (w->backs.v[i].from == w->backs.v[i].to)
			w->own[w->backs.v[i].from] += channel_width(w, &w->backs.v[i]);
}

double wires_own(const struct wires *w, int task)
{
	return w->own[task];
}

static double port_width(const struct wires *w, const char *text)
{
	return (*text && w->look->labels ? 4 + picture_width(text, w->look->edge, false) : 0) + PORT_GAP;
}

double wires_width(const struct wires *w, int task)
{
	double sum = 0;
	int n = 0;

	for (int from = 0; from < w->s->g->tasks.n; from++) {
		const char *text = w->s->layer[from] == NONE ? "" : flow_text(w, from, task);

		sum += *text ? port_width(w, text) : 0;
		n += *text != '\0';
	}
	for (int i = 0; i < w->backs.n; i++)
		sum += (w->backs.v[i].to == task) * PORT_GAP;
	return (n == 1 ? 2 : 1) * sum + 2 * SIDE;
}

/* ---- ports ---------------------------------------------------------------------- */

static bool is_rightmost(const struct wires *w, int node)
{
	return node_at(w, node)->pos == w->s->layout.count[node_at(w, node)->layer] - 1;
}

/* Which end of a box's side, of all that are there. */
static double side_y(const struct wires *w, int back, bool out)
{
	int node = out ? w->backs.v[back].from : w->backs.v[back].to, nth = 0, n = 0;

	for (int i = 0; i < w->backs.n; i++) {
		const struct wire_back *b = &w->backs.v[i];

		if ((out ? b->from : b->to) != node)
			continue;
		nth += i < back;
		n++;
	}
	return w->look->box * ((out ? 0.5 : 0) + 0.5 * (nth + 1) / (n + 1));
}

/* Ports of a box from left to right: in the order of where lines come from, those of earlier iterations last. */
static void choose_ports(struct wires *w, int node)
{
	const struct layout *l = &w->s->layout;
	int first = w->ports.n, n;
	double sum = 0, x;

	for (int i = node_at(w, node)->first_up; i != NONE; i = l->links.v[i].next_up) {
		int from = l->links.v[i].from, at;

		VEC_PUSH(w->p->arena, &w->ports, ((struct wire_port){ node, from, NONE,
			flow_text(w, node_at(w, from)->item, node_at(w, node)->item), 0 }));
		for (at = w->ports.n - 1; at > first &&
		     node_at(w, w->ports.v[at - 1].link_from)->pos > node_at(w, from)->pos; at--) {
			struct wire_port other = w->ports.v[at - 1];

			w->ports.v[at - 1] = w->ports.v[at];
			w->ports.v[at] = other;
		}
	}
	for (int i = 0; i < w->backs.n; i++)
		if (w->backs.v[i].to == node && !w->backs.v[i].to_side)
			VEC_PUSH(w->p->arena, &w->ports, ((struct wire_port){ node, NONE, i, "", 0 }));
	n = w->ports.n - first;
	for (int i = first; i < w->ports.n; i++)
		sum += port_width(w, w->ports.v[i].text);
	x = n == 1 ? middle(w, node) : middle(w, node) - (sum - PORT_GAP) / 2;
	for (int i = first; i < w->ports.n; i++) {
		w->ports.v[i].x = x;
		if (w->ports.v[i].back != NONE)
			w->backs.v[w->ports.v[i].back].to_x = x;
		x += port_width(w, w->ports.v[i].text);
	}
}

static double port_x(const struct wires *w, int from, int node)
{
	for (int i = 0; i < w->ports.n; i++)
		if (w->ports.v[i].node == node && w->ports.v[i].link_from == from)
			return w->ports.v[i].x;
	return middle(w, node);
}

/* ---- tracks --------------------------------------------------------------------- */

static struct wire_part *add_part(struct wires *w, int gap, int from, int back, double from_x, int nto)
{
	struct wire_part *part = VEC_ADD(w->p->arena, &w->gap[gap].parts);

	*part = (struct wire_part){ .from = from, .back = back, .from_x = from_x, .track = NONE,
		.to = ARENA_ARRAY(w->p->arena, nto, int), .to_x = ARENA_ARRAY(w->p->arena, nto, double) };
	return part;
}

static void span(struct wire_part *part)
{
	part->lo = part->hi = part->from_x;
	for (int i = 0; i < part->nto; i++) {
		part->lo = fmin(part->lo, part->to_x[i]);
		part->hi = fmax(part->hi, part->to_x[i]);
	}
}

static void collect_flow(struct wires *w, int node)
{
	const struct layout *l = &w->s->layout;
	struct wire_part *part;
	int n = 0;

	for (int i = node_at(w, node)->first_down; i != NONE; i = l->links.v[i].next_down)
		n++;
	if (!n)
		return;
	part = add_part(w, node_at(w, node)->layer + 1, node, NONE, middle(w, node), n);
	for (int i = node_at(w, node)->first_down; i != NONE; i = l->links.v[i].next_down) {
		part->to[part->nto] = l->links.v[i].to;
		part->to_x[part->nto++] = node_at(w, l->links.v[i].to)->passing ? middle(w, l->links.v[i].to) :
			port_x(w, node, l->links.v[i].to);
	}
	/* straight down, if the box is above its only reader */
	if (part->nto == 1 && !node_at(w, node)->passing && fabs(part->from_x - part->to_x[0]) < STRAIGHT)
		part->from_x = part->to_x[0];
	span(part);
}

static void collect_back(struct wires *w, int i)
{
	struct wire_back *b = &w->backs.v[i];
	struct wire_part *part;

	if (!b->from_side) {
		part = add_part(w, node_at(w, b->from)->layer + 1, b->from, i, b->from_x, 1);
		part->to[part->nto] = NONE;
		part->to_x[part->nto++] = b->x;
		span(part);
	}
	if (!b->to_side) {
		part = add_part(w, node_at(w, b->to)->layer, NONE, i, b->x, 1);
		part->to[part->nto] = b->to;
		part->to_x[part->nto++] = b->to_x;
		span(part);
	}
}

/* Must `above` bend before w enters a box in the same column? */
static bool is_before(const struct wire_part *above, const struct wire_part *w)
{
	for (int i = 0; i < w->nto && above->from != NONE; i++)
		if (w->to[i] != NONE && fabs(above->from_x - w->to_x[i]) < NEAR)
			return true;
	return false;
}

static bool may_take(const struct wire_gap *g, int i, int track)
{
	const struct wire_part *w = &g->parts.v[i];

	for (int k = 0; k < g->parts.n; k++) {
		const struct wire_part *o = &g->parts.v[k];

		if (k == i || o->hi - o->lo < 1)
			continue;
		if (is_before(o, w) && (o->track == NONE || o->track >= track))
			return false;
		if (o->track == track && o->lo <= w->hi + NEAR && w->lo <= o->hi + NEAR)
			return false;
	}
	return true;
}

static void assign_tracks(struct wire_gap *g)
{
	int left = 0;

	for (int i = 0; i < g->parts.n; i++)
		left += g->parts.v[i].hi - g->parts.v[i].lo >= 1;
	while (left) {
		int before = left;

		/* if each waits for another one, two lines share some pixels of a column */
		for (int force = 0; force < 2 && left == before; force++) {
			for (int i = 0; i < g->parts.n && (!force || left == before); i++) {
				struct wire_part *w = &g->parts.v[i];

				if (w->hi - w->lo < 1 || w->track != NONE || (!force && !may_take(g, i, g->ntracks)))
					continue;
				w->track = g->ntracks;
				left--;
			}
		}
		g->ntracks++;
	}
}

/* Values that are read in a near layer are inside of those that go far; own ones are next to their boxes. */
static void choose_channels(struct wires *w, double right)
{
	int far = w->s->nlayers;

	for (int length = 0; length <= far; length++) {
		for (int i = 0; i < w->backs.n; i++) {
			struct wire_back *b = &w->backs.v[i];

			if (b->own || abs(node_at(w, b->from)->layer - node_at(w, b->to)->layer) != length)
				continue;
			b->x = right + CHANNEL + w->width;
			w->width += channel_width(w, b);
		}
	}
}

void wires_route(struct wires *w, double x, double right)
{
	const struct layout *l = &w->s->layout;

	w->x = x;
	w->gap = ARENA_ARRAY(w->p->arena, w->s->nlayers + 1, struct wire_gap);
	for (int i = 0; i < w->backs.n; i++) {
		struct wire_back *b = &w->backs.v[i];
		double distance = CHANNEL;
		bool from_loop, to_loop;		/* is the side of the box taken? */
		int below = 0;

		b->own = b->from == b->to;
		from_loop = w->own[b->from] > 0;
		to_loop = w->own[b->to] > 0;
		b->from = w->s->node[b->from];
		b->to = w->s->node[b->to];
		b->from_side = b->own || (!from_loop && is_rightmost(w, b->from));
		b->to_side = b->own || (!to_loop && is_rightmost(w, b->to));
		for (int k = 0; k < i; k++) {
			below += w->backs.v[k].from == b->from;
			distance += w->backs.v[k].own && w->backs.v[k].from == b->from ?
				channel_width(w, &w->backs.v[k]) : 0;
		}
		if (b->own)
			b->x = wires_node_x(w, b->from) + wires_node_width(w, b->from) + distance;
		b->from_x = wires_node_x(w, b->from) + wires_node_width(w, b->from) - SIDE - below * PORT_GAP;
	}
	choose_channels(w, right);
	for (int i = 0; i < l->nodes.n; i++)
		if (!l->nodes.v[i].passing)
			choose_ports(w, i);
	for (int i = 0; i < l->nodes.n; i++)
		collect_flow(w, i);
	for (int i = 0; i < w->backs.n; i++)
		collect_back(w, i);
	for (int k = 0; k <= w->s->nlayers; k++)
		assign_tracks(&w->gap[k]);
}

/* ---- drawing -------------------------------------------------------------------- */

static struct point towards(struct point from, struct point to, double r)
{
	double l = hypot(to.x - from.x, to.y - from.y), t = l > 0 ? fmin(r / l, 0.5) : 0;

	return (struct point){ from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t };
}

/* A line with round corners. */
static struct shape *draw_bent(struct picture *p, const struct point *v, int n, int ink)
{
	struct point out[32];
	int m = 0;

	for (int i = 0; i < n && m + 3 <= LEN(out); i++) {
		if (!i || i == n - 1) {
			out[m++] = v[i];
			continue;
		}
		struct point a = towards(v[i], v[i - 1], ROUND), b = towards(v[i], v[i + 1], ROUND);

		out[m++] = a;
		out[m++] = (struct point){ (a.x + 2 * v[i].x + b.x) / 4, (a.y + 2 * v[i].y + b.y) / 4 };
		out[m++] = b;
	}
	return picture_path(p, out, m, false, INK_NONE, ink);
}

static double track_y(const struct wires *w, int gap, const struct wire_part *part)
{
	return w->gap[gap].y + part->track * w->look->track;
}

static void draw_part(struct wires *w, int k, const struct wire_part *part, const double *top)
{
	double y0 = top[k - 1] + w->look->box;

	for (int i = 0; i < part->nto; i++) {
		bool passing = node_at(w, part->to[i])->passing;
		double y1 = passing ? top[k] + w->look->box : top[k] - ARROW + 2, x = part->to_x[i],
			y = track_y(w, k, part);

		if (part->track == NONE)
			picture_line(w->p, x, y0, x, y1, INK_LINE, 1.6);
		else
			draw_bent(w->p, (struct point[]){ { part->from_x, y0 }, { part->from_x, y }, { x, y },
				{ x, y1 } }, 4,
				INK_LINE)->width = 1.6;
		if (!passing)
			picture_head(w->p, x, top[k], 0, 1, ARROW, INK_LINE);
	}
}

static double part_y(const struct wires *w, int gap, int back, bool out)
{
	for (int i = 0; i < w->gap[gap].parts.n; i++) {
		const struct wire_part *part = &w->gap[gap].parts.v[i];

		if (part->back == back && (part->from != NONE) == out)
			return track_y(w, gap, part);
	}
	return 0;
}

/* The row of the text next to a channel: none in which a line crosses it on the way to a channel further right. */
static double text_y(const struct wires *w, const struct wire_back *b)
{
	double mid = (b->from_y + b->to_y) / 2, half = fabs(b->from_y - b->to_y) / 2;

	for (int step = 0; step < 2 * half + 10 * w->look->box && !b->own; step += 4) {
		double y = mid + (step % 8 ? step / 2 + 2 : -step / 2);
		bool free = true;

		for (int i = 0; i < w->backs.n; i++) {
			const struct wire_back *o = &w->backs.v[i];

			free &= o == b || o->x < b->x || (fabs(o->from_y - y) > w->look->edge &&
				fabs(o->to_y - y) > w->look->edge);
		}
		if (free)
			return y;
	}
	return mid;
}

static void draw_back(struct wires *w, const struct wire_back *b, const double *top)
{
	double from_x = wires_node_x(w, b->from) + wires_node_width(w, b->from),
		from_y = top[node_at(w, b->from)->layer] + w->look->box;
	double to_x = wires_node_x(w, b->to) + wires_node_width(w, b->to), to_y = top[node_at(w, b->to)->layer];
	struct point v[6];
	int n = 0;

	if (b->from_side)
		v[n++] = (struct point){ from_x, b->from_y };
	else
		v[n++] = (struct point){ b->from_x, from_y }, v[n++] = (struct point){ b->from_x, b->from_y };
	v[n++] = (struct point){ b->x, b->from_y };
	v[n++] = (struct point){ b->x, b->to_y };
	if (b->to_side)
		v[n++] = (struct point){ to_x + ARROW - 2, b->to_y };
	else
		v[n++] = (struct point){ b->to_x, b->to_y }, v[n++] = (struct point){ b->to_x, to_y - ARROW + 2 };
	draw_bent(w->p, v, n, INK_BOUND)->dash = b->own ? 3 : 5;
	if (b->to_side)
		picture_head(w->p, to_x, b->to_y, -1, 0, ARROW, INK_BOUND);
	else
		picture_head(w->p, b->to_x, to_y, 0, 1, ARROW, INK_BOUND);
	picture_text(w->p, b->x + 5, text_y(w, b) + 4, ANCHOR_LEFT, w->look->edge, INK_BOUND, b->text);
}

void wires_draw(struct wires *w, const double *top)
{
	for (int k = 1; k < w->s->nlayers; k++)
		for (int i = 0; i < w->gap[k].parts.n; i++)
			if (w->gap[k].parts.v[i].back == NONE)
				draw_part(w, k, &w->gap[k].parts.v[i], top);
	for (int i = 0; i < w->ports.n; i++) {
		const struct wire_port *o = &w->ports.v[i];

		if (*o->text && w->look->labels)
			picture_text(w->p, o->x + 5, top[node_at(w, o->node)->layer] - 5, ANCHOR_LEFT, w->look->edge,
				INK_FAINT, o->text);
	}
	for (int i = 0; i < w->backs.n; i++) {
		struct wire_back *b = &w->backs.v[i];
		int from = node_at(w, b->from)->layer, to = node_at(w, b->to)->layer;

		b->from_y = b->from_side ? top[from] + side_y(w, i, true) : part_y(w, from + 1, i, true);
		b->to_y = b->to_side ? top[to] + side_y(w, i, false) : part_y(w, to, i, false);
	}
	for (int i = 0; i < w->backs.n; i++)
		draw_back(w, &w->backs.v[i], top);
}
