/* Loads by the copy engine: boxes of a tensor, of which one makes a panel of a slot. */
#include "emit/gpu_text.h"

#include <stdlib.h>
#include <string.h>

int map_param(struct text *c, const struct stask *s, const struct node *n, const int64_t *box,
	int swizzle)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	struct param m = { .kind = PARAM_MAP, .tensor = n->ref, .rank = t->rank,
		.task = (int)(s - c->g->tasks.v), .swizzle = swizzle };
	int64_t bytes = dtype_bits(t->type) / 8;

	for (int d = 0; d < t->rank; d++) {
		m.dim[d] = c->p->axes.v[t->dim[t->rank - 1 - d]].size;
		m.stride[d] = bytes;
		bytes *= m.dim[d];
		m.box[d] = box[d];
	}
	for (int i = 0; i < c->src->params.n; i++) {
		const struct param *x = &c->src->params.v[i];

		if (x->kind == PARAM_MAP && x->tensor == m.tensor && x->swizzle == swizzle &&
		    !memcmp(x->box, m.box, sizeof(m.box)))
			return i;
	}
	VEC_PUSH(c->a, &c->src->params, m);
	return c->src->params.n - 1;
}

static int load_map(struct text *c, const struct stask *s, const struct ring *r, const struct node *n)
{
	const struct buffer *b = &c->g->buffers.v[r->buffer];
	int rank = c->p->tensors.v[n->ref].rank;
	int64_t box[RANK_MAX] = { 0 };

	for (int d = 0; d < rank; d++) {
		const struct index_expr *ix = &n->index[rank - 1 - d];

		box[d] = 1;
		for (int k = 0; k < ix->n; k++)
			for (int q = 0; q < b->naxes; q++)
				if (b->axis[q] == ix->term[k].axis && b->extent[q] > 1)
					box[d] = r->shape.nrow == 1 ? r->box_rows : b->extent[q];
	}
	box[0] = r->panel_cols;
	return map_param(c, s, n, box, r->swizzle);
}

/* Do different positions of the axes have different values? Only sums in which each axis
 * steps over all that the ones with smaller steps reach are looked at. */
static bool is_one_to_one(const struct text *c, const struct index_expr *x)
{
	for (int i = 0; i < x->n; i++) {
		int64_t reach = 0;

		for (int k = 0; k < x->n; k++)
			if (k != i && (llabs(x->term[k].coef) < llabs(x->term[i].coef) ||
			    (llabs(x->term[k].coef) == llabs(x->term[i].coef) && k > i)))
				reach += llabs(x->term[k].coef) *
					(c->p->axes.v[x->term[k].axis].size - 1);
		if (x->term[i].div != 1 || x->term[i].mod || llabs(x->term[i].coef) <= reach)
			return false;
	}
	return true;
}

/* Is no byte of what a load brings asked for again, by any tile? */
static bool is_read_once(const struct text *c, const struct stask *s, const struct node *n)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	bool used[AXES_MAX] = { false };

	for (int d = 0; d < t->rank; d++) {
		if (!is_one_to_one(c, &n->index[d]))
			return false;
		for (int k = 0; k < n->index[d].n; k++)
			used[n->index[d].term[k].axis] = true;
	}
	for (int i = 0; i < c->p->nodes.n; i++)
		if (&c->p->nodes.v[i] != n && c->p->nodes.v[i].op == OP_LOAD &&
		    c->p->nodes.v[i].ref == n->ref)
			return false;
	for (int a = 0; a < c->p->axes.n; a++) {
		enum axis_role role = program_axis_role(c->p, s->phase, a);

		if (!used[a] && c->g->extents.tile[a] < c->p->axes.v[a].size && (role == AXIS_BATCH ||
		    role == AXIS_GRID || program_axis_bound(c->p, s->loop, a)))
			return false;
	}
	return true;
}

/* The tensor's dimension in which the rows of a ring lie that has one axis of them. */
static int row_dimension(const struct text *c, const struct ring *r, const struct node *n)
{
	for (int d = 0; d < c->p->tensors.v[n->ref].rank; d++)
		for (int i = 0; i < n->index[d].n; i++)
			if (r->shape.nrow == 1 && n->index[d].term[i].axis == r->shape.row[0])
				return d;
	return NONE;
}

/* One box: where panel number `panel` and its part of the rows begin, as C text. */
static void put_box(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n, const char *guard, const char *panel)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct tensor *t = &c->p->tensors.v[n->ref];
	int map = load_map(c, s, r, n), rows = r->cut == CUT_ROWS ? row_dimension(c, r, n) : NONE;
	const char *slot = c_name(c, "slot_", c->g->buffers.v[r->buffer].name);
	struct buf at, to;

	buf_init(&at, c->a);
	buf_init(&to, c->a);
	for (int d = t->rank - 1; d >= 0; d--) {
		buf_printf(&at, ", %s", index_text(c, s, &n->index[d], &r->shape, false));
		if (d == t->rank - 1 && strcmp(panel, "0"))
			buf_printf(&at, " + %s * %lld", panel, (long long)r->panel_cols);
		if (d == rows)
			buf_printf(&at, " + rank * %lld", (long long)r->box_rows);
	}
	buf_printf(&to, "%s + %s * %lld", slot, panel, (long long)r->panel_bytes);
	if (rows != NONE)
		buf_printf(&to, " + rank * %lld", (long long)(r->box_bytes / c->k->cluster));
	put(c, "\t%stma_load_all_%dd(%s, &map%d, full, %d%s);", guard, t->rank, to.text, map,
		(1 << c->k->cluster) - 1, at.text);
}

/* This block's part of what all blocks of the cluster get. */
static void put_shared_boxes(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n)
{
	int blocks = c->k->cluster;

	for (int p = 0; p < r->boxes && r->cut == CUT_ROWS; p++)
		put_box(c, x, r, n, "", arena_strf(c->a, "%d", p));
	for (int p = 0; p < r->boxes && r->cut == CUT_PANELS; p += blocks)
		put_box(c, x, r, n, p + blocks > r->boxes ? arena_strf(c->a, "if (rank < %d) ",
			r->boxes - p) : "", p ? arena_strf(c->a, "(%d + rank)", p) : "rank");
}

/* One box a panel. */
static void put_own_boxes(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const char *once = is_read_once(c, s, n) ? "once_" : "";
	int map = load_map(c, s, r, n);
	struct buf b;

	for (int p = 0; p < r->boxes; p++) {
		buf_init(&b, c->a);
		for (int d = t->rank - 1; d >= 0; d--)
			buf_printf(&b, ", %s%s", index_text(c, s, &n->index[d], &r->shape, false),
				d == t->rank - 1 && p ? arena_strf(c->a, " + %lld",
				(long long)(p * r->panel_cols)) : "");
		put(c, "\ttma_load_%s%dd(%s + %lld, &map%d, full%s);", once, t->rank, c_name(c, "slot_",
			c->g->buffers.v[r->buffer].name), (long long)(p * r->panel_bytes), map, b.text);
	}
}

/* The pieces of each load, all on one flag. */
void emit_boxes(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n)
{
	/* no thread may still look at a flag whose next phase this copy brings about */
	if (x->waits.n || x->meets || reads_own(c, x))
		put_lane_sync(c);
	put(c, "if (leader) {");
	put(c, "\tflag_expect(full, %lld);", (long long)c->k->flags.v[x->flag].bytes);
	if (r->cut != CUT_NONE)
		put_shared_boxes(c, x, r, n);
	else
		put_own_boxes(c, x, r, n);
	put(c, "}");
}
