/* A program in which loads whose windows overlap are one load.
 *
 * The taps of a stencil read the same elements of a tensor, a constant apart: a tile of each tap is nearly the same box. If one load
 * brings the bounding box of all, the tasks that use the taps read them out of that, each at its own index. An axis of a window goes
 * along a dimension of the box: it has as many elements as the box does there, all of which each tile has. The load indexes the dimension
 * by where the tile begins plus that axis, and a read of element y of the tile at tap r is one at element stride * (y mod tile) + r of it
 * (OP_AT). */
#include "tile/extent.h"
#include "tile/program_build.h"

enum { NAME_MOST = 40 };		/* characters of a name that an axis gets */

/* The box of a window along one dimension. */
struct span {
	bool is_window;			/* the loads differ there, or several axes move in it; else it is indexed as before */
	int64_t least, size;		/* the constant of the first element; elements */
	int axis;			/* of the window */
};

struct boxed {
	const struct program *p;
	const struct extents *x;
	const struct window *w;
	const struct node *first;	/* the load that stays */
	struct span of[RANK_MAX];
};

static const struct node *load_of(const struct boxed *b, int i)
{
	return &b->p->nodes.v[b->w->loads[i]];
}

static const char *name_of(const struct program *p, int load)
{
	return p->tasks.v[p->nodes.v[load].task].name;
}

/* Elements of an axis that a tile of the load's value has. */
static int64_t extent_in(const struct boxed *b, int axis)
{
	int load = b->w->loads[0], i = ints_find(b->p->nodes.v[load].axis, b->p->nodes.v[load].naxes, axis);

	return extent_of_node(b->x, load, i);
}

static bool same_terms(const struct index_expr *x, const struct index_expr *y)
{
	if (x->n != y->n)
		return false;
	for (int i = 0; i < x->n; i++)
		if (x->term[i].axis != y->term[i].axis || x->term[i].coef != y->term[i].coef || x->term[i].div != y->term[i].div ||
		    x->term[i].mod != y->term[i].mod)
			return false;
	return true;
}

/* Do the loads of the same region address the same tensor, but for constants? */
static bool differ_by_constants(const struct program *p, int a, int b)
{
	const struct node *x = &p->nodes.v[a], *y = &p->nodes.v[b];
	bool same = x->ref == y->ref && p->tasks.v[x->task].phase == p->tasks.v[y->task].phase &&
		p->tasks.v[x->task].loop == p->tasks.v[y->task].loop;

	for (int d = 0; same && d < p->tensors.v[x->ref].rank; d++)
		same &= same_terms(&x->index[d], &y->index[d]);
	return same;
}

/* Can a load be replaced by reads of a window: is it one of plain elements, which only tasks that compute use? */
static bool is_plain_load(const struct program *p, int node, const bool *lengths)
{
	const struct node *n = &p->nodes.v[node];
	bool plain = n->op == OP_LOAD && n->task != NONE && !has_index_values(n) && !lengths[node] && n->naxes && p->tensors.v[n->ref].rank;

	for (int i = 0; plain && i < n->naxes; i++)
		plain &= p->axes.v[n->axis[i]].packs == NONE && !is_packed(p, n->axis[i]);
	for (int i = 0; plain && i < p->nodes.n; i++) {
		const struct node *user = &p->nodes.v[i];

		if (user->task != NONE && ints_hold(user->arg, node_arity(user), node))
			plain &= p->tasks.v[user->task].kind == TASK_COMPUTE && user->op != OP_EXPAND && user->op != OP_UNPACK;
	}
	return plain;
}

/* Terms of a dimension's index whose axes the load's value has. */
static int terms_in_value(const struct node *n, const struct index_expr *x)
{
	int count = 0;

	for (int i = 0; i < x->n; i++)
		count += node_has_axis(n, x->term[i].axis);
	return count;
}

/* In how many dimensions the load uses the axis. */
static int uses_of(const struct program *p, const struct node *n, int axis)
{
	int count = 0;

	for (int d = 0; d < p->tensors.v[n->ref].rank; d++)
		count += index_uses(&n->index[d], axis);
	return count;
}

/* Elements that the load moves over in a tile along dimension d; 0: it cannot be a window, which goes by sums of multiples of axes
 * that no other dimension has. */
static int64_t reach_along(const struct boxed *b, int d)
{
	const struct index_expr *x = &b->first->index[d];
	int64_t reach = 1;

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		if (!node_has_axis(b->first, t->axis))
			continue;
		if (t->coef < 1 || t->div != 1 || t->mod || uses_of(b->p, b->first, t->axis) > 1)
			return 0;
		reach += t->coef * (extent_in(b, t->axis) - 1);
	}
	return reach;
}

/* The extents of the value's axes in the dimension, multiplied: elements along it without a window. */
static int64_t elements_along(const struct boxed *b, int d)
{
	const struct index_expr *x = &b->first->index[d];
	int64_t n = 1;

	for (int i = 0; i < x->n; i++)
		n *= node_has_axis(b->first, x->term[i].axis) ? extent_in(b, x->term[i].axis) : 1;
	return n;
}

/* A copy engine begins at multiples of `grain` elements of a row, and brings as many. */
static enum err_code find_span(struct boxed *b, int d, int64_t grain, struct err *e)
{
	const struct tensor *t = &b->p->tensors.v[b->first->ref];
	int64_t least = b->first->index[d].k, most = least, reach = reach_along(b, d);

	for (int i = 1; i < b->w->n; i++) {
		least = min_i64(least, load_of(b, i)->index[d].k);
		most = max_i64(most, load_of(b, i)->index[d].k);
	}
	b->of[d].is_window = most > least || (reach && terms_in_value(b->first, &b->first->index[d]) > 1 && reach < elements_along(b, d));
	if (!b->of[d].is_window)
		return OK;
	if (!reach)
		return err_set(e, ERR_INPUT, b->w->loc, "the loads of '%s' have no window along '%s': their indices there must be sums "
			"of multiples of axes that no other dimension has", t->name, b->p->axes.v[t->dim[d]].name);
	if (d == t->rank - 1) {
		least = floor_div(least, grain) * grain;
		reach = round_up(most - least + reach, grain) - (most - least);
	}
	b->of[d].least = least;
	b->of[d].size = most - least + reach;
	return OK;
}

/* A tile of the value must have the present tile of its axes, as a window goes with the tile. */
static enum err_code check_tiles(const struct boxed *b, struct err *e)
{
	for (int i = 0; i < b->w->n; i++)
		for (int k = 0; k < b->first->naxes; k++) {
			int axis = b->first->axis[k];

			if (extent_in(b, axis) > b->x->tile[axis] || (i && extent_is_full(b->x, b->w->loads[i], axis) &&
			    b->x->tile[axis] < b->p->axes.v[axis].size))
				return err_set(e, ERR_INPUT, b->w->loc, "each tile needs all of axis '%s' of '%s': it has no window",
					b->p->axes.v[axis].name, name_of(b->p, b->w->loads[i]));
		}
	return OK;
}

static enum err_code check_loads(struct arena *a, const struct program *p, const struct window *w, struct err *e)
{
	bool *lengths = ARENA_ARRAY(a, p->nodes.n, bool);

	mark_lengths(p, lengths);
	for (int i = 0; i < w->n; i++) {
		const struct node *n = &p->nodes.v[w->loads[i]];

		if (n->op != OP_LOAD)
			return err_set(e, ERR_INPUT, w->loc, "'%s' is no load: it has no window", w->names[i]);
		if (n->task == NONE || ints_hold(w->loads, i, w->loads[i]) || any_of_window(p, n->axis, n->naxes))
			return err_set(e, ERR_INPUT, w->loc, "'%s' is in a window already", w->names[i]);
		if (!is_plain_load(p, w->loads[i], lengths))
			return err_set(e, ERR_INPUT, w->loc, "'%s' has no window: its indices are values, or not only tasks that compute "
				"use it", w->names[i]);
		if (!differ_by_constants(p, w->loads[0], w->loads[i]))
			return err_set(e, ERR_INPUT, w->loc, "'%s' and '%s' have no common window: they are loads of one tensor, in one "
				"loop, of which indices differ by constants", w->names[0], w->names[i]);
	}
	return OK;
}

/* The position of a task in a body, of which it is an entry. */
static int position_of(const struct program *p, int task)
{
	const struct task *t = &p->tasks.v[task];
	struct items body = program_body(p, t->phase, t->loop);
	int i;

	FIND_FIRST(i, body.n, !body.v[i].is_loop && body.v[i].id == task);
	return i;
}

/* The load that comes first in its body. The others are dropped. */
static int first_load(const struct program *p, const struct window *w)
{
	int first = w->loads[0];

	for (int i = 1; i < w->n; i++)
		if (position_of(p, p->nodes.v[w->loads[i]].task) < position_of(p, p->nodes.v[first].task))
			first = w->loads[i];
	return first;
}

static enum err_code add_axis(struct arena *a, struct program *p, const struct boxed *b, int d, int first, int *out, struct err *e)
{
	const char *along = p->axes.v[p->tensors.v[b->first->ref].dim[d]].name;
	const char *name = arena_strf(a, "%.*s_of_%.*s", NAME_MOST / 2, along, NAME_MOST / 2, name_of(p, first)), *base = name;

	if (p->axes.n == AXES_MAX)
		return err_set(e, ERR_LIMIT, b->w->loc, "a window along '%s' needs an axis of its own: a program has %d at most", along,
			AXES_MAX);
	for (int i = 2; program_find_axis(p, name) != NONE; i++)
		name = arena_strf(a, "%s%d", base, i);
	*out = p->axes.n;
	VEC_PUSH(a, &p->axes, ((struct axis){ .name = name, .size = b->of[d].size, .like = NONE, .packs = NONE, .per = 1,
		.of_window = true, .loc = b->w->loc }));
	return OK;
}

/* The index of the box: where the tile begins. */
static struct index_expr begin_of(const struct boxed *b, int d)
{
	const struct index_expr *x = &b->first->index[d];
	struct index_expr begin = index_const(b->of[d].least);

	for (int i = 0; i < x->n; i++) {
		struct index_term t = x->term[i];
		bool moves = node_has_axis(b->first, t.axis);
		int64_t tile = moves ? extent_in(b, t.axis) : 1;

		if (moves && tile == b->p->axes.v[t.axis].size)
			continue;		/* it begins at 0 */
		if (moves) {
			t.coef *= tile;
			t.div = tile;
		}
		begin.term[begin.n++] = t;
	}
	return begin;
}

/* The index within the box of what load i reads. */
static struct index_expr index_in(const struct boxed *b, int d, int load)
{
	const struct index_expr *x = &b->p->nodes.v[load].index[d];
	struct index_expr at = index_const(x->k - b->of[d].least);

	for (int i = 0; i < x->n; i++) {
		struct index_term t = x->term[i];

		if (!node_has_axis(b->first, t.axis))
			continue;
		if (extent_in(b, t.axis) < b->p->axes.v[t.axis].size)
			t.mod = extent_in(b, t.axis);
		at.term[at.n++] = t;
	}
	return at;
}

/* Adds an axis to those of the box, unless it has it. */
static enum err_code give_axis(const struct boxed *b, struct node *n, int axis, struct err *e)
{
	if (node_has_axis(n, axis))
		return OK;
	if (n->naxes == RANK_MAX)
		return err_set(e, ERR_LIMIT, b->w->loc, "a window of '%s' would have more than %d axes",
			b->p->tensors.v[b->first->ref].name, RANK_MAX);
	n->axis[n->naxes++] = axis;
	return OK;
}

/* Lets the load that stays bring the box. */
static enum err_code load_box(struct arena *a, struct program *p, const struct boxed *b, int load, struct err *e)
{
	const struct tensor *t = &p->tensors.v[b->first->ref];
	struct index_expr *index = arena_copy(a, b->first->index, (size_t)t->rank, sizeof(*index));
	struct node n = *b->first;

	n.naxes = 0;
	for (int d = 0; d < t->rank; d++) {
		const struct index_expr *x = &b->first->index[d];

		for (int i = 0; i < x->n && !b->of[d].is_window; i++)
			if (node_has_axis(b->first, x->term[i].axis))
				TRY(give_axis(b, &n, x->term[i].axis, e));
		if (!b->of[d].is_window)
			continue;
		TRY(give_axis(b, &n, b->of[d].axis, e));
		index[d] = begin_of(b, d);
		if (index[d].n == INDEX_TERMS)
			return err_set(e, ERR_LIMIT, b->w->loc, "an index of '%s' has too many terms", t->name);
		index[d].term[index[d].n++] = (struct index_term){ b->of[d].axis, 1, 1, 0 };
	}
	n.index = index;
	p->nodes.v[load] = n;
	return OK;
}

/* Adds reads of the box as `load` had it, along one dimension after the other, to the task, at its beginning. Returns the last.
 * Dimensions of which a read takes one element come first: so no value in between has more axes than the box or the load's value. */
static int add_reads(struct arena *a, struct program *p, const struct boxed *b, int box, int load, int task)
{
	const struct node *was = &b->p->nodes.v[load];
	struct task *t = &p->tasks.v[task];
	int *nodes = ARENA_ARRAY(a, t->nodes.n + RANK_MAX, int), count = 0, last = box;

	for (int i = 0, rank = p->tensors.v[b->first->ref].rank; i < 2 * rank; i++) {
		int d = i % rank;
		bool takes_one = !terms_in_value(b->first, &b->first->index[d]);
		struct index_expr at;
		struct node n;

		if (!b->of[d].is_window || takes_one != (i < rank))
			continue;
		at = index_in(b, d, load);
		n = p->nodes.v[last];
		n.op = OP_AT;
		n.arg[0] = last;
		n.ref = b->of[d].axis;
		n.index = arena_copy(a, &at, 1, sizeof(at));
		n.task = task;
		n.naxes = 0;
		for (int j = 0; j < p->nodes.v[last].naxes; j++) {
			if (p->nodes.v[last].axis[j] != n.ref) {
				n.axis[n.naxes++] = p->nodes.v[last].axis[j];
				continue;
			}
			for (int k = 0; k < at.n; k++)
				n.axis[n.naxes++] = at.term[k].axis;
		}
		n.loc = was->loc;
		last = p->nodes.n;
		VEC_PUSH(a, &p->nodes, n);
		nodes[count++] = last;
	}
	for (int i = 0; i < t->nodes.n; i++)
		nodes[count++] = t->nodes.v[i];
	t->nodes.v = nodes;
	t->nodes.n = t->nodes.cap = count;
	return last;
}

/* Lets all that use `load` read the box. */
static void read_box(struct arena *a, struct program *p, const struct boxed *b, int box, int load)
{
	int n = p->nodes.n, *reads = arena_ints(a, p->tasks.n, NONE);

	for (int i = 0; i < n; i++) {
		const struct node *x = &p->nodes.v[i];
		int task = x->task;

		if (task == NONE || !ints_hold(x->arg, node_arity(x), load) || p->tasks.v[task].kind != TASK_COMPUTE)
			continue;
		if (reads[task] == NONE)
			reads[task] = add_reads(a, p, b, box, load, task);
		for (int k = 0; k < LEN(x->arg); k++)
			if (p->nodes.v[i].arg[k] == load)
				p->nodes.v[i].arg[k] = reads[task];
	}
}

static void take_out(struct arena *a, struct program *p, int task)
{
	const struct task *t = &p->tasks.v[task];
	struct items body = program_body(p, t->phase, t->loop);
	struct item *kept = ARENA_ARRAY(a, body.n, struct item);
	int n = 0;

	for (int i = 0; i < body.n; i++)
		if (body.v[i].is_loop || body.v[i].id != task)
			kept[n++] = body.v[i];
	if (t->loop == NONE) {
		p->phases.v[t->phase].body.v = kept;
		p->phases.v[t->phase].body.n = p->phases.v[t->phase].body.cap = n;
	} else {
		p->loops.v[t->loop].body.v = kept;
		p->loops.v[t->loop].body.n = p->loops.v[t->loop].body.cap = n;
	}
}

static enum err_code add_window(struct arena *a, struct program *q, const struct extents *x, const struct window *w, int chunk,
	struct err *e)
{
	struct boxed b = { .p = build_copy(a, q), .x = x, .w = w };
	const struct tensor *t;
	bool any = false;
	int first;

	TRY(check_loads(a, q, w, e));
	b.first = &b.p->nodes.v[w->loads[0]];
	t = &q->tensors.v[b.first->ref];
	TRY(check_tiles(&b, e));
	for (int d = 0; d < t->rank; d++) {
		TRY(find_span(&b, d, max_i64(8 * chunk / dtype_bits(t->type), 1), e));
		any |= b.of[d].is_window;
	}
	if (!any)
		return err_set(e, ERR_INPUT, w->loc, "'%s' loads no element twice in a tile: a window would bring nothing", w->names[0]);
	first = first_load(q, w);
	for (int d = 0; d < t->rank; d++)
		if (b.of[d].is_window)
			TRY(add_axis(a, q, &b, d, first, &b.of[d].axis, e));
	for (int i = 0; i < w->n; i++)
		read_box(a, q, &b, first, w->loads[i]);
	for (int i = 0; i < w->n; i++)
		if (w->loads[i] != first) {
			take_out(a, q, q->nodes.v[w->loads[i]].task);
			q->nodes.v[w->loads[i]].task = NONE;
		}
	return load_box(a, q, &b, first, e);
}

enum err_code program_window(struct arena *a, const struct program *p, const struct tiling *t, const struct window *windows, int n,
	int chunk, const struct program **out, struct err *e)
{
	struct program *q = build_copy(a, p);
	struct extents x;

	q->axes.v = arena_copy(a, p->axes.v, (size_t)p->axes.n, sizeof(*p->axes.v));
	q->axes.cap = p->axes.n;
	TRY(extents_infer(a, p, t, &x, e));
	for (int i = 0; i < n; i++)
		TRY(add_window(a, q, &x, &windows[i], chunk, e));
	*out = q;
	return OK;
}

/* May a load that differs from no other one have a window: do several axes of its value move in one dimension? */
static bool moves_twice(const struct program *p, int load)
{
	const struct node *n = &p->nodes.v[load];

	for (int d = 0; d < p->tensors.v[n->ref].rank; d++)
		if (terms_in_value(n, &n->index[d]) > 1)
			return true;
	return false;
}

int program_find_windows(struct arena *a, const struct program *p, struct window **out)
{
	bool *lengths = ARENA_ARRAY(a, p->nodes.n, bool), *taken = ARENA_ARRAY(a, p->nodes.n, bool);
	int n = 0;

	*out = ARENA_ARRAY(a, p->nodes.n, struct window);
	mark_lengths(p, lengths);
	for (int i = 0; i < p->nodes.n; i++) {
		int *loads = ARENA_ARRAY(a, p->nodes.n, int), count = 0;
		const char **names;

		for (int k = i; k < p->nodes.n && is_plain_load(p, i, lengths) && !taken[i]; k++)
			if (!taken[k] && is_plain_load(p, k, lengths) && differ_by_constants(p, i, k))
				loads[count++] = k;
		if (!count || (count == 1 && !moves_twice(p, i)))
			continue;
		names = ARENA_ARRAY(a, count, const char *);
		for (int k = 0; k < count; k++) {
			taken[loads[k]] = true;
			names[k] = name_of(p, loads[k]);
		}
		(*out)[n++] = (struct window){ count, loads, names, NOWHERE };
	}
	return n;
}
