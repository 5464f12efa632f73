#include "graph/build.h"

#include <string.h>

#include "target/target.h"

static struct task *task_at(const struct builder *b, int task)
{
	return &b->p->tasks.v[task];
}

int64_t slice_extent(const struct builder *b, int task, int node, int i)
{
	int64_t x = extent_of_node(&b->g->extents, node, i);

	if (b->p->nodes.v[node].axis[i] == b->split_axis[task])
		x /= b->slices[task];
	return x;
}

int64_t slice_elements(const struct builder *b, int task, int node)
{
	int64_t n = 1;

	for (int i = 0; i < b->p->nodes.v[node].naxes; i++)
		n *= slice_extent(b, task, node, i);
	return n;
}

/* Program tasks in program order, by walking the bodies. */
static void order_body(struct builder *b, const struct item *items, int n)
{
	for (int i = 0; i < n; i++) {
		if (items[i].is_loop) {
			const struct loop *l = &b->p->loops.v[items[i].id];

			order_body(b, l->body.v, l->body.n);
		} else {
			b->task_order[b->ntasks++] = items[i].id;
		}
	}
}

/* Does the product contract the axis, on which its operands agree? */
static bool contracts(const struct builder *b, const struct node *n, int axis)
{
	return n->op == OP_MMA && !node_has_axis(n, axis) && node_has_axis(&b->p->nodes.v[n->arg[0]], axis);
}

/* Refuse a split of a product along an axis that it contracts, unless its slices can all add to the same sum. */
static enum err_code check_contracted_split(const struct builder *b, const struct task *t, const struct node *n, int axis,
	int ways, struct err *e)
{
	int64_t extent = program_reduces_tile(b->p, n, axis) ? b->g->extents.tile[axis] : b->p->axes.v[axis].size;

	if (n->ref == NONE || t->nodes.n > 1)
		return err_set(e, ERR_INPUT, t->loc, "'%s' cannot be split along '%s', which it contracts: %s", t->name,
			b->p->axes.v[axis].name, n->ref == NONE ? "it adds to no carry" : "it expands its operand itself");
	if (extent % ways)
		return err_set(e, ERR_INPUT, t->loc, "'%s' cannot be split %d ways along '%s': its tile has %lld there",
			t->name, ways, b->p->axes.v[axis].name, (long long)extent);
	return OK;
}

/* The product that takes what the task fetches. */
static const struct node *product_of_fetch(const struct builder *b, const struct task *t)
{
	int i = 0;

	while (b->p->nodes.v[i].op != OP_MMA || !ints_hold(b->p->nodes.v[i].arg, 2, t->nodes.v[0]))
		i++;
	return &b->p->nodes.v[i];
}

/* Refuse a split along an axis that the task's values lack, reduce, or have a tile of that it does not divide. */
static enum err_code check_split(const struct builder *b, int task, int axis, int ways, struct err *e)
{
	const struct task *t = task_at(b, task);
	bool found = false;

	if (!ints_hold(b->task_order, b->ntasks, task))
		return err_set(e, ERR_INPUT, t->loc, "'%s' is loaded with the other loads of its window, so it cannot be split", t->name);
	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &b->p->nodes.v[t->nodes.v[i]];
		int pos = ints_find(n->axis, n->naxes, axis);

		if (contracts(b, n, axis))
			return check_contracted_split(b, t, n, axis, ways, e);
		if (node_goes_along(n, axis))
			return err_set(e, ERR_INPUT, n->loc, "'%s' cannot be split along '%s': it %s along that "
				"axis", t->name, b->p->axes.v[axis].name, n->op == OP_AT ? "reads elements of others" : "reduces");
		if (pos == NONE)
			continue;
		found = true;
		if (extent_of_node(&b->g->extents, t->nodes.v[i], pos) % ways)
			return err_set(e, ERR_INPUT, t->loc, "'%s' cannot be split %d ways along '%s': its tile has "
				"%lld there", t->name, ways, b->p->axes.v[axis].name,
				(long long)extent_of_node(&b->g->extents, t->nodes.v[i], pos));
	}
	/* each slice of a product may have a fetch of its own of what they all take */
	if (!found && !(t->fetches && node_has_axis(product_of_fetch(b, t), axis)))
		return err_set(e, ERR_INPUT, t->loc, "'%s' cannot be split along '%s': its result "
			"does not have that axis", t->name, b->p->axes.v[axis].name);
	return OK;
}

static enum err_code apply_splits(struct builder *b, const struct split *s, int n, struct err *e)
{
	for (int i = 0; i < n; i++) {
		if (s[i].ways < 1 || s[i].ways > 16)
			return err_set(e, ERR_INPUT, NOWHERE, "a split has 1 to 16 ways, not %d", s[i].ways);
		for (int j = 0; j < s[i].ntasks; j++) {
			int t = s[i].tasks[j];

			if (b->slices[t] > 1)
				return err_set(e, ERR_INPUT, task_at(b, t)->loc,
					"'%s' is split already", task_at(b, t)->name);
			TRY(check_split(b, t, s[i].axis, s[i].ways, e));
			b->slices[t] = s[i].ways;
			b->split_axis[t] = s[i].axis;
		}
	}
	return OK;
}

/* The node whose tile is the sTask's shape: the value that other sTasks read, or that is stored. */
static int result_node(const struct builder *b, const struct task *t)
{
	int last = t->nodes.v[t->nodes.n - 1], best = last;
	int64_t most = 0;

	if (b->p->nodes.v[last].op == OP_STORE)
		return b->p->nodes.v[last].arg[0];
	for (int i = 0; i < t->nodes.n; i++) {
		int64_t n = extent_elements(&b->g->extents, t->nodes.v[i]);

		if (n >= most) {
			most = n;
			best = t->nodes.v[i];
		}
	}
	return best;
}

static void add_stasks(struct builder *b)
{
	struct graph *g = b->g;

	for (int o = 0; o < b->ntasks; o++) {
		int task = b->task_order[o];
		const struct task *t = task_at(b, task);
		int shape = result_node(b, t);
		const struct node *n = &b->p->nodes.v[shape];

		b->first_stask[task] = g->tasks.n;
		for (int slice = 0; slice < b->slices[task]; slice++) {
			struct stask *s = VEC_ADD(&g->arena, &g->tasks);

			*s = (struct stask){ .task = task, .slice = slice, .slices = b->slices[task],
				.split_axis = b->split_axis[task], .kind = t->kind, .phase = t->phase, .loop = t->loop,
				.position = o, .naxes = n->naxes, .loc = t->loc };
			s->name = s->slices > 1 ? arena_strf(&g->arena, "%s.%d", t->name, slice) : t->name;
			for (int i = 0; i < n->naxes; i++) {
				s->axis[i] = n->axis[i];
				s->extent[i] = slice_extent(b, task, shape, i);
			}
		}
	}
}

static int add_buffer(struct builder *b, struct buffer buf, const char *name, int slices)
{
	struct graph *g = b->g;
	int first = g->buffers.n;

	for (int slice = 0; slice < slices; slice++) {
		buf.slice = slice;
		buf.slices = slices;
		buf.name = slices > 1 ? arena_strf(&g->arena, "%s.%d", name, slice) : arena_strdup(&g->arena, name);
		VEC_PUSH(&g->arena, &g->buffers, buf);
	}
	return first;
}

/* The axes of a value or carry that `task` makes or uses, and their extents in one slice of it. */
static void set_shape(const struct builder *b, struct buffer *buf, int task, int naxes, const int *axis)
{
	buf->naxes = naxes;
	buf->elements = 1;
	for (int i = 0; i < naxes; i++) {
		buf->axis[i] = axis[i];
		buf->extent[i] = buf->node != NONE ? extent_of_node(&b->g->extents, buf->node, i) :
			extent_of_carry(&b->g->extents, buf->carry, i);
		buf->extent[i] /= axis[i] == b->split_axis[task] ? b->slices[task] : 1;
		buf->elements *= buf->extent[i];
	}
	buf->bytes = (int64_t)dtype_bytes(buf->type, (size_t)buf->elements);
}

/* Are the names the same in a kernel, where dots become underscores? */
static bool same_in_kernel(const char *x, const char *y)
{
	for (; *x && *y; x++, y++)
		if (*x != *y && (*x != '.' || *y != '_') && (*x != '_' || *y != '.'))
			return false;
	return *x == *y;
}

static bool is_taken(struct builder *b, const char *name, int slices)
{
	const struct graph *g = b->g;

	if (graph_find_buffer(g, name) != NONE || graph_find_buffer(g, arena_strf(&b->g->arena, "%s.0", name)) != NONE)
		return true;
	for (int slice = 0; slice < slices; slice++) {
		const char *full = slices > 1 ? arena_strf(&b->g->arena, "%s.%d", name, slice) : name;

		for (int i = 0; i < g->buffers.n; i++)
			if (same_in_kernel(g->buffers.v[i].name, full))
				return true;
	}
	return false;
}

static const char *unique_name(struct builder *b, const char *base, int slices)
{
	const char *name = base;

	for (int i = 2; is_taken(b, name, slices); i++)
		name = arena_strf(&b->g->arena, "%s_%d", base, i);
	return name;
}

/* Is the value loaded to registers first, from which a task of its own writes it to shared memory? */
static bool is_staged(const struct builder *b, int node)
{
	for (int t = b->first_split_off; t < b->p->tasks.n; t++)
		if (task_put_load(b->p, t) == node)
			return true;
	return false;
}

/* A name for a value: that of its task without "load_", with a number if the task has several; of what a task that is
 * split off makes, the name that the value had before. */
static const char *value_name(struct builder *b, int node)
{
	int task = b->p->nodes.v[node].task;
	const char *name = task_at(b, task)->name;

	if (task >= b->first_split_off && task < b->first_fetch)
		name = b->split_offs[task - b->first_split_off].value;
	else if (is_staged(b, node))
		return unique_name(b, name, b->slices[task]);
	else if (strncmp(name, "load_", 5) == 0 && name[5])
		name += 5;
	return unique_name(b, name, b->slices[task]);
}

/* The type that holds elements of a type of 4 bits exactly, a byte each; else t. */
static enum dtype holding_type(enum dtype t)
{
	return t == DT_E2M1 ? DT_E4M3 : t == DT_I4 ? DT_I8 : t;
}

/* The type in which a value is kept for other sTasks. Elements of 4 bits that a compute task makes are kept in
 * bytes. If it makes a value in f32, and all that other tasks do with it is to store it, without adding, to
 * tensors of one 16-bit type, it is kept in that type: it takes half of the space, and two elements are moved at
 * once. */
static enum dtype kept_type(const struct builder *b, int node)
{
	const struct node *value = &b->p->nodes.v[node];
	enum dtype stored = DT_COUNT;

	if (task_at(b, value->task)->kind != TASK_COMPUTE || task_at(b, value->task)->puts)
		return value->type;
	if (value->type != DT_F32)
		return holding_type(value->type);
	for (int i = 0; i < b->p->nodes.n; i++) {
		const struct node *n = &b->p->nodes.v[i];
		enum dtype type = n->op == OP_STORE && !n->adds ? b->p->tensors.v[n->ref].type : DT_COUNT;

		for (int k = 0; k < node_arity(n) && n->task != value->task; k++) {
			if (n->arg[k] != node)
				continue;
			if (k > 0 || (type != DT_BF16 && type != DT_F16) || (stored != DT_COUNT && type != stored))
				return value->type;	/* k > 0: it is an index */
			stored = type;
		}
	}
	return stored == DT_COUNT ? value->type : stored;
}

static int buffer_of_value(struct builder *b, int node)
{
	const struct node *n = &b->p->nodes.v[node];
	const struct task *t = task_at(b, n->task);
	struct buffer buf = { .node = node, .carry = NONE, .type = n->type, .phase = t->phase,
		.loop = t->loop, .loc = n->loc, .first = NONE, .alias_of = NONE };

	if (b->node_buffer[node] != NONE)
		return b->node_buffer[node];
	buf.type = kept_type(b, node);
	set_shape(b, &buf, n->task, n->naxes, n->axis);
	buf.staged = is_staged(b, node);
	buf.scope = t->puts || (t->kind == TASK_LOAD && !buf.staged) ? SCOPE_SHARED : SCOPE_REGISTERS;
	b->node_slices[node] = b->slices[n->task];
	return b->node_buffer[node] = add_buffer(b, buf, value_name(b, node), b->slices[n->task]);
}

/* Do products add to the carry whose first operands have different axes of it? They are the rows of sums in registers. */
static bool has_other_rows(const struct builder *b, int carry)
{
	const struct carry *c = &b->p->carries.v[carry];
	const struct node *first = NULL;

	for (int i = 0; i < b->p->nodes.n; i++) {
		const struct node *n = &b->p->nodes.v[i];

		if (n->op != OP_MMA || n->ref != carry)
			continue;
		for (int k = 0; k < c->naxes && first; k++)
			if (node_has_axis(&b->p->nodes.v[n->arg[0]], c->axis[k]) !=
			    node_has_axis(&b->p->nodes.v[first->arg[0]], c->axis[k]))
				return true;
		first = first ? first : n;
	}
	return false;
}

/* Slices of a carry that the task uses: as many as the task has, unless they divide what a product contracts. */
static int carry_slices(const struct builder *b, int task)
{
	const struct task *t = task_at(b, task);

	return contracts(b, &b->p->nodes.v[t->nodes.v[t->nodes.n - 1]], b->split_axis[task]) ? 1 : b->slices[task];
}

/* A carry is split as the tasks that use it are; they must agree. */
static enum err_code buffer_of_carry(struct builder *b, int carry, int task, int *out, struct err *e)
{
	const struct carry *c = &b->p->carries.v[carry];
	struct buffer buf = { .node = NONE, .carry = carry, .type = c->type, .phase = c->phase, .loop = c->loop,
		.loc = c->loc, .first = NONE, .alias_of = NONE, .scope = SCOPE_REGISTERS };
	int slices = carry_slices(b, task);

	if (b->carry_buffer[carry] != NONE) {
		*out = b->carry_buffer[carry];
		if (b->carry_slices[carry] != slices)
			return err_set(e, ERR_INPUT, task_at(b, task)->loc, "'%s' uses '%s', which other sTasks use in "
				"%d slice%s: split all that use it alike", task_at(b, task)->name, c->name,
				b->carry_slices[carry], b->carry_slices[carry] == 1 ? "" : "s");
		if (slices > 1 && b->carry_split[carry] != b->split_axis[task])
			return err_set(e, ERR_INPUT, task_at(b, task)->loc, "'%s' uses '%s', which other sTasks split "
				"along '%s': split all that use it alike", task_at(b, task)->name, c->name,
				b->p->axes.v[b->carry_split[carry]].name);
		return OK;
	}
	set_shape(b, &buf, task, c->naxes, c->axis);
	if (has_other_rows(b, carry))
		buf.scope = SCOPE_SHARED;
	b->carry_slices[carry] = slices;
	b->carry_split[carry] = b->split_axis[task];
	*out = b->carry_buffer[carry] = add_buffer(b, buf, unique_name(b, c->name, slices), slices);
	return OK;
}

static void add_unique(struct arena *a, struct ints *list, int x)
{
	if (!ints_hold(list->v, list->n, x))
		VEC_PUSH(a, list, x);
}

static bool split_alike(const struct builder *b, int task, int other)
{
	return b->slices[task] == b->slices[other] && b->split_axis[task] == b->split_axis[other];
}

static void find_apart(struct builder *b)
{
	b->apart = ARENA_ARRAY(&b->g->arena, b->p->nodes.n, bool);
	for (int i = 0; i < b->p->nodes.n; i++) {
		const struct node *n = &b->p->nodes.v[i];

		for (int k = 0; k < node_arity(n) && n->task != NONE; k++) {
			const struct node *arg = &b->p->nodes.v[n->arg[k]];

			if (!node_is_free(arg) && arg->task != NONE && !split_alike(b, arg->task, n->task))
				b->apart[n->arg[k]] = true;
		}
	}
}

static bool is_divided(const struct builder *b, int slices, int axis, int node)
{
	return slices > 1 && node_has_axis(&b->p->nodes.v[node], axis);
}

/* Does the product take a tile of an axis of which its operand `arg` has all? */
static bool takes_tile(const struct builder *b, const struct node *product, int arg)
{
	const struct node *a = &b->p->nodes.v[arg];
	const struct extents *x = &b->g->extents;
	int mma = (int)(product - b->p->nodes.v);

	for (int i = 0; i < a->naxes; i++) {
		int pos = ints_find(product->axis, product->naxes, a->axis[i]);
		bool full = pos == NONE ? !program_reduces_tile(b->p, product, a->axis[i]) :
			x->full_axis[mma * RANK_MAX + pos];

		if (x->full_axis[arg * RANK_MAX + i] && !full && x->tile[a->axis[i]] < b->p->axes.v[a->axis[i]].size)
			return true;
	}
	return false;
}

/* Do matrix instructions take operands of the type out of shared memory alone? */
static bool is_multiplied_from_shared(enum dtype type)
{
	const struct matrix_instruction *by = target_matrix(target_usual(), true, false, type);

	return by && !(by->loose >> type & 1);
}

/* Does another product, too, have the value as its first operand, but contract other axes of it? Registers hold rows
 * and columns for one of the two alone. */
static bool is_contracted_otherwise(const struct builder *b, const struct node *product, int node)
{
	const struct node *n = &b->p->nodes.v[node];

	for (int i = 0; i < b->p->nodes.n; i++) {
		const struct node *other = &b->p->nodes.v[i];

		if (other->op != OP_MMA || product_operand(b->p, other, 0) != node)
			continue;
		for (int k = 0; k < n->naxes; k++)
			if (node_has_axis(other, n->axis[k]) != node_has_axis(product, n->axis[k]))
				return true;
	}
	return false;
}

/* Has the value all of an axis of which the tile has a part? */
static bool has_all_of(const struct builder *b, int node, int axis)
{
	const struct extents *x = &b->g->extents;

	for (int i = 0; i < b->p->nodes.v[node].naxes; i++)
		if (b->p->nodes.v[node].axis[i] == axis)
			return x->full_axis[node * RANK_MAX + i] && x->tile[axis] < b->p->axes.v[axis].size;
	return false;
}

/* Slices of a value that has all of the split axis are parts of all of it, those of others are parts of the tile. Does the
 * task have any such other value, so that its slices need other elements than they have in common with those of `node`? */
static bool slices_differ(const struct builder *b, int node, int task)
{
	const struct task *t = &b->p->tasks.v[task];
	int axis = b->split_axis[task];

	for (int i = 0; i < t->nodes.n && b->slices[task] > 1 && has_all_of(b, node, axis); i++)
		if (node_has_axis(&b->p->nodes.v[t->nodes.v[i]], axis) && !has_all_of(b, t->nodes.v[i], axis))
			return true;
	return false;
}

/* Let sTask `s` read `node`, made by another task: its own slice if both are split alike; otherwise all slices, or one
 * if all slices make the same. What other threads made must be in shared memory, and so must indices of a load or store,
 * whose threads take elements in an order of their own. If a product reads it, `product` is that, and `operand` says as which
 * of its operands. What is fetched is in shared memory, and in registers behind that; what is made where products take it is
 * made of what is in shared memory. */
static void read_value(struct builder *b, int stask, int node, const struct node *product, int operand)
{
	const struct node *n = &b->p->nodes.v[node];
	int first = buffer_of_value(b, node);
	struct stask *s = &b->g->tasks.v[stask];
	bool divided = is_divided(b, b->slices[n->task], b->split_axis[n->task], node);
	/* where the slices make up one tile, instructions of a product read beyond its own slice */
	bool alike = split_alike(b, n->task, s->task) && !(product && divided && b->apart[node]) &&
		!slices_differ(b, node, s->task);
	bool fetched = task_at(b, n->task)->fetches || task_at(b, n->task)->direct;
	bool moves = s->kind == TASK_LOAD || (s->kind == TASK_STORE && operand) || task_at(b, s->task)->fetches ||
		task_at(b, s->task)->direct ||
		(!alike && (divided || is_divided(b, s->slices, s->split_axis, node))) ||
		(product && !fetched && (operand == 1 || takes_tile(b, product, node) ||
			is_contracted_otherwise(b, product, node) || is_multiplied_from_shared(n->type)));

	for (int slice = 0; slice < b->node_slices[node]; slice++) {
		struct buffer *buf = &b->g->buffers.v[first + slice];

		if (alike ? slice != s->slice : slice && !divided)
			continue;
		add_unique(&b->g->arena, &s->reads, first + slice);
		buf->together |= !alike && divided;
		buf->matrix_a |= product && operand == 0;
		buf->matrix_b |= product && operand == 1;
		if (moves)
			buf->scope = SCOPE_SHARED;
	}
}

/* What each iteration reads at other indices is in shared memory, else it would be written to the scratch in each; and so
 * is what is expanded, as which element a thread needs depends on the data. */
static void share_slices(struct builder *b, int node)
{
	for (int slice = 0; slice < b->node_slices[node]; slice++)
		b->g->buffers.v[b->node_buffer[node] + slice].scope = SCOPE_SHARED;
}

static enum err_code connect_node(struct builder *b, int stask, int node, struct err *e)
{
	const struct node *n = &b->p->nodes.v[node];
	struct stask *s = &b->g->tasks.v[stask];
	const struct node *expanding = s->kind == TASK_MMA ? &b->p->nodes.v[task_at(b, s->task)->nodes.v[
		task_at(b, s->task)->nodes.n - 1]] : NULL;
	int buffer;

	for (int i = 0; i < node_arity(n); i++) {
		const struct node *arg = &b->p->nodes.v[n->arg[i]];

		if (node_is_free(arg) || arg->task == n->task)
			continue;
		read_value(b, stask, n->arg[i], n->op == OP_MMA ? n : n->op == OP_EXPAND && i == 0 ? expanding : NULL, i);
		if ((n->op == OP_AT && task_at(b, arg->task)->loop != s->loop) || n->op == OP_EXPAND)
			share_slices(b, n->arg[i]);
	}
	if (node_gets_carry(n) || node_sets_carry(n)) {
		TRY(buffer_of_carry(b, n->ref, n->task, &buffer, e));
		buffer += b->carry_slices[n->ref] > 1 ? s->slice : 0;
		if (node_gets_carry(n))
			add_unique(&b->g->arena, &s->reads, buffer);
		if (node_sets_carry(n))
			add_unique(&b->g->arena, &s->writes, buffer);
	}
	return OK;
}

/* Find what each sTask reads and writes. */
static enum err_code connect(struct builder *b, struct err *e)
{
	struct graph *g = b->g;

	find_apart(b);
	/* Values get their names in this order: those that are split off come later, and those that are fetched last, so that
	 * the others have the same names with and without them. */
	for (int last = 0; last < 3; last++)
		for (int s = 0; s < g->tasks.n; s++) {
			const struct task *t = task_at(b, g->tasks.v[s].task);
			int when = (g->tasks.v[s].task >= b->first_split_off) + (g->tasks.v[s].task >= b->first_fetch);

			for (int i = 0; i < t->nodes.n && when == last; i++)
				TRY(connect_node(b, s, t->nodes.v[i], e));
		}
	/* only now is it known which values have a buffer: those that another task reads */
	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *buf = &g->buffers.v[i];

		if (buf->node != NONE)
			add_unique(&g->arena, &g->tasks.v[b->first_stask[b->p->nodes.v[buf->node].task] +
				buf->slice].writes, i);
	}
	return OK;
}

/* How many neighbours along an axis of a loaded value come from one element of its tensor: 32 where the index is
 * x // 32. Tiles begin at multiples of their extent. */
static int64_t same_element_run(const struct program *p, const struct node *n, int axis, int64_t tile)
{
	int64_t share = 1;
	int uses = 0;

	for (int d = 0; d < p->tensors.v[n->ref].rank; d++) {
		uses += index_value_has(p, &n->index[d], axis) ? 2 : 0;
		for (int i = 0; i < n->index[d].n; i++) {
			const struct index_term *t = &n->index[d].term[i];

			if (t->axis != axis)
				continue;
			uses++;
			share = t->mod || (tile % t->div && t->div % tile) ? 1 : min_i64(t->div, tile);
		}
	}
	return uses == 1 ? share : 1;
}

/* The bytes of loaded values: each element of the tensor once, but where a matrix unit reads the tile. */
static void set_loaded_bytes(struct builder *b)
{
	for (int i = 0; i < b->g->buffers.n; i++) {
		struct buffer *x = &b->g->buffers.v[i];
		const struct node *n = x->node == NONE ? NULL : &b->p->nodes.v[x->node];
		int64_t elements = 1;

		if (!n || n->op != OP_LOAD || x->matrix_a || x->matrix_b)
			continue;
		for (int k = 0; k < x->naxes; k++)
			elements *= ceil_div(x->extent[k], same_element_run(b->p, n, x->axis[k], x->extent[k]));
		x->bytes = (int64_t)dtype_bytes(x->type, (size_t)elements);
	}
}

static enum err_code build(struct graph *g, const struct shaping *how, struct err *e)
{
	const struct program *p = g->program;
	struct arena *a = &g->arena;
	struct builder b = { .g = g, .p = p, .first_split_off = p->tasks.n - how->nfetches - how->nsplit_offs,
		.split_offs = how->split_offs, .first_fetch = p->tasks.n - how->nfetches, .task_order = arena_ints(a, p->tasks.n, NONE),
		.slices = arena_ints(a, p->tasks.n, 1), .split_axis = arena_ints(a, p->tasks.n, NONE),
		.first_stask = arena_ints(a, p->tasks.n, NONE), .node_buffer = arena_ints(a, p->nodes.n, NONE),
		.node_slices = arena_ints(a, p->nodes.n, 0), .carry_buffer = arena_ints(a, p->carries.n, NONE),
		.carry_slices = arena_ints(a, p->carries.n, 0), .carry_split = arena_ints(a, p->carries.n, NONE) };

	TRY(extents_infer(a, p, &g->tiling, &g->extents, e));
	for (int i = 0; i < p->phases.n; i++)
		order_body(&b, p->phases.v[i].body.v, p->phases.v[i].body.n);
	TRY(apply_splits(&b, how->splits, how->nsplits, e));
	TRY(build_trips(g, e));
	add_stasks(&b);
	TRY(connect(&b, e));
	set_loaded_bytes(&b);
	TRY(build_aliases(g, how->aliases, how->naliases, e));
	build_edges(g, b.first_stask);
	TRY(build_check_aliases(g, how->aliases, e));
	for (int i = 0; i < g->tasks.n; i++)
		build_work(&b, &g->tasks.v[i]);
	return OK;
}

bool graph_has_window(struct arena *a, const struct program *p, const struct tiling *t, const struct window *w)
{
	const struct program *q;
	struct err e;

	return program_window(a, p, t, w, 1, target_usual()->shared.chunk, &q, &e) == OK;
}

/* Copies of the names that a plan has for what shapes its graph. */
static void keep_names(struct graph *g, const struct shaping *how)
{
	struct arena *a = &g->arena;

	g->windows = ARENA_ARRAY(a, how->nwindows, struct window);
	for (int i = 0; i < how->nwindows; i++) {
		const char **names = ARENA_ARRAY(a, how->windows[i].n, const char *);

		for (int k = 0; k < how->windows[i].n; k++)
			names[k] = arena_strdup(a, how->windows[i].names[k]);
		g->windows[g->nwindows++] = (struct window){ .n = how->windows[i].n, .names = names, .loc = how->windows[i].loc };
	}
	g->split_offs = ARENA_ARRAY(a, how->nsplit_offs, const char *);
	for (int i = 0; i < how->nsplit_offs; i++)
		g->split_offs[g->nsplit_offs++] = arena_strdup(a, how->split_offs[i].value);
	g->fetches = ARENA_ARRAY(a, how->nfetches, const char *);
	for (int i = 0; i < how->nfetches; i++)
		g->fetches[g->nfetches++] = arena_strdup(a, how->fetches[i].value);
	g->directs = ARENA_ARRAY(a, how->ndirects, const char *);
	for (int i = 0; i < how->ndirects; i++)
		g->directs[g->ndirects++] = arena_strdup(a, how->directs[i].value);
	g->swaps = ARENA_ARRAY(a, how->nswaps, const char *);
	for (int i = 0; i < how->nswaps; i++)
		g->swaps[g->nswaps++] = arena_strdup(a, how->swaps[i].product);
}

enum err_code graph_build(struct mem *mem, const struct program *p, const struct tiling *t,
	const struct shaping *how, struct graph **out, struct err *e)
{
	static const struct shaping plain;
	enum err_code code;

	*out = ARENA_OWNER(mem, struct graph);
	(*out)->program = (*out)->source = p;
	(*out)->tiling = *t;
	how = how ? how : &plain;
	keep_names(*out, how);
	code = how->nwindows ? program_window(&(*out)->arena, p, t, how->windows, how->nwindows, target_usual()->shared.chunk,
		&(*out)->program, e) : OK;
	if (!code && how->nsplit_offs)
		code = program_split_off(&(*out)->arena, (*out)->program, how->split_offs, how->nsplit_offs, &(*out)->program, e);
	if (!code && how->nfetches)
		code = program_fetch(&(*out)->arena, (*out)->program, how->fetches, how->nfetches, &(*out)->program, e);
	if (!code && how->ndirects)
		code = program_direct(&(*out)->arena, (*out)->program, how->directs, how->ndirects, &(*out)->program, e);
	if (!code && how->nswaps)
		code = program_swap(&(*out)->arena, (*out)->program, how->swaps, how->nswaps, &(*out)->program, e);
	code = code ? code : build(*out, how, e);
	if (code) {
		graph_free(*out);
		*out = NULL;
	}
	return code;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	arena_release(&g->arena);
}
