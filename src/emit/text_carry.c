/* Carries in shared memory, and products whose results go there: where lanes pass them to
 * each other. */
#include "emit/gpu_text.h"

#include <string.h>

static const struct ring *ring_of(const struct text *c, int buffer)
{
	return &c->k->rings.v[c->k->ring_of[buffer]];
}

/* Does loop l make an iteration in the one at hand of region `around`? Then it is not the
 * first time. */
static void put_passed_by(struct text *c, int l, int around)
{
	int path[16], n = 0;

	for (int i = l; i != around && n < LEN(path); i = c->p->loops.v[i].parent)
		path[n++] = i;
	for (int i = n - 1; i >= 0; i--) {
		put(c, "{");
		c->indent++;
		put_trips(c, path[i]);
		if (!i) {
			put(c, "if (trips_%d > 0) fresh = 0;", l);
			break;
		}
		put(c, "LOOP (int i_%d = 0; i_%d < trips_%d; i_%d++) {", path[i], path[i], path[i],
			path[i]);
		c->indent++;
		put_loop_axes(c, path[i]);
	}
	for (int i = 0; i < 2 * n - 1; i++) {
		c->indent--;
		put(c, "}");
	}
}

static const char *initial_text(struct text *c, const struct buffer *b)
{
	double init = c->p->carries.v[b->carry].init;

	return dtype_is_float(b->type) ? float_text(c, init) : arena_strf(c->a, "%lld",
		(long long)init);
}

/* The first sTask to touch a life of the carry gives it its initial value. */
static void put_begin(struct text *c, const struct kentry *x, const struct begins *b)
{
	const struct buffer *buf = &c->g->buffers.v[b->buffer];
	const struct ring *r = ring_of(c, b->buffer);
	int mine = stask_of(c, x)->loop;
	const char *first = "1";

	put(c, "{\t/* %s begins */", buf->name);
	c->indent++;
	for (int l = mine; l != buf->loop; l = c->p->loops.v[l].parent)
		first = arena_strf(c->a, "%s%si_%d == 0", strcmp(first, "1") ? first : "",
			strcmp(first, "1") ? " && " : "", l);
	put(c, "int fresh = %s;", first);
	for (int i = 0; i < b->empty.n; i++)
		put_passed_by(c, b->empty.v[i], kernel_common_loop(c->p, mine, b->empty.v[i]));
	put(c, "if (fresh) {");
	put(c, "\tfor (int at = thread; at < %lld; at += %d) %s",
		(long long)(r->full_rows * r->full_cols), c->lane->warps * 32, shared_put(c,
		buf->type, ring_place(c, r, slot_of(c, b->buffer), arena_strf(c->a, "at / %lld",
		(long long)r->full_cols), arena_strf(c->a, "at %% %lld", (long long)r->full_cols)),
		initial_text(c, buf)));
	put(c, "\tfence_async();");
	put(c, "\tlane_sync(%d, %d);", c->lane->barrier, c->lane->warps * 32);
	put(c, "}");
	c->indent--;
	put(c, "}");
}

void put_begins(struct text *c, const struct kentry *x)
{
	for (int i = 0; i < x->begins.n; i++)
		put_begin(c, x, &x->begins.v[i]);
}

const char *if_brought(struct text *c, const struct stask *s, const struct shape2 *shape,
	const struct view *v)
{
	const char *inside = inside_text(c, s, shape, v, 0), *who = one_of_copies(v->kind);

	return *who || strcmp(inside, "true") ? arena_strf(c->a, "if (%s%s) ", who, inside) : "";
}

/* Leave `value`, of the element at hand of a fragment that lies like `node`, in the ring. */
static void put_elements(struct text *c, const struct kentry *x, int node, int buffer,
	const struct view *v, const char *value)
{
	const struct stask *s = stask_of(c, x);
	const struct shape2 *shape = &c->k->node_shape[node];
	const char *address = ring_address(c, s, ring_of(c, buffer), shape, slot_of(c, buffer));

	put(c, "%s%s%s", frag_loops(c, v), if_brought(c, s, shape, v), shared_put(c,
		c->g->buffers.v[buffer].type, address, value));
}

/* Is the carry touched by a node of the task in [from, to)? By a GET, or a SET too. */
static bool touched(const struct text *c, const struct task *t, int carry, int from, int to,
	bool sets)
{
	for (int i = from; i < to; i++) {
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];

		if ((n->op == OP_GET || (sets && n->op == OP_SET)) && n->ref == carry)
			return true;
	}
	return false;
}

static int place_in_task(const struct task *t, int node)
{
	int i = 0;

	while (t->nodes.v[i] != node)
		i++;
	return i;
}

/* Threads need not have read what they write, so they meet in between. */
enum err_code put_set_shared(struct text *c, const struct kentry *x, int node, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	const struct node *n = &c->p->nodes.v[node];
	int at = place_in_task(t, node);
	const char *value;
	struct view v;

	TRY(node_view(c, s, node, &v, e));
	TRY(operand_text(c, x, node, n->arg[0], &value, e));
	if (touched(c, t, n->ref, 0, at, true))
		put_lane_sync(c);
	put_elements(c, x, node, buffer_of_carry(c, s, n->ref), &v, value);
	put(c, "fence_async();");
	if (touched(c, t, n->ref, at + 1, t->nodes.n, false))
		put_lane_sync(c);
	return OK;
}

const char *landing_name(struct text *c, int buffer)
{
	return c_name(c, "acc_", c->g->buffers.v[buffer].name);
}

/* The registers of a product whose result goes to a ring, and what it adds to. */
enum err_code put_take_off(struct text *c, const struct kentry *x, int node, int buffer,
	struct err *e)
{
	const char *acc = landing_name(c, buffer), *value;
	struct view v;

	TRY(node_view(c, stask_of(c, x), node, &v, e));
	put(c, "float %s%s;", acc, frag_dims(c, &v));
	if (c->p->nodes.v[node].ref == NONE)
		return OK;
	TRY(from_ring(c, x, ring_of(c, buffer), node, &value, e));
	put(c, "%s%s%s = %s;", frag_loops(c, &v), acc, frag_element(v.kind), value);
	put_lane_sync(c);
	return OK;
}

/* Once the product is complete, its result goes where others find it. */
enum err_code put_landing(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	int node = t->nodes.v[t->nodes.n - 1];
	const struct node *n = &c->p->nodes.v[node];
	int buffer = n->ref != NONE ? buffer_of_carry(c, s, n->ref) : buffer_of_node(c, s, node);
	const char *acc = landing_name(c, buffer);
	struct view v;

	TRY(node_view(c, s, node, &v, e));
	put(c, "GROUPS_WAIT(0);");
	put(c, "EACH(rb, %d) PIN_F(%s[rb], %lld);", v.blocks, acc, (long long)(v.cols / 2));
	put_elements(c, x, node, buffer, &v, arena_strf(c->a, "%s%s", acc, frag_element(v.kind)));
	put(c, "fence_async();");
	put(c, "lane_sync(%d, %d);", c->lane->barrier, c->lane->warps * 32);
	return OK;
}
