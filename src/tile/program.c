#include "tile/program_build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int64_t SIZE_MAX_AXIS = (int64_t)1 << 40;
static const double ELEMENTS_MAX = 0x1p48;
static const double INDEX_MAX = 0x1p60;
enum { NAME_LEN_MAX = 63 };

struct program *program_new(struct mem *mem, const char *name)
{
	size_t len = strlen(name) + 1;
	struct arena arena;
	struct program *p;

	arena_init(&arena, mem);
	p = arena_alloc(&arena, sizeof(*p) + len);	/* one allocation: it succeeds or fails as one */
	p->arena = arena;
	p->cur_phase = p->cur_loop = p->cur_task = NONE;
	p->name = memcpy(p + 1, name, len);
	return p;
}

void program_option(struct program *p, const char *text)
{
	VEC_PUSH(&p->arena, &p->options, arena_strdup(&p->arena, text));
}

void program_free(struct program *p)
{
	struct arena arena;

	if (!p)
		return;
	arena = p->arena;		/* it holds the program itself */
	arena_release(&arena);
}

#define AT(type, function, member) \
	const struct type *function(const struct program *p, int id) \
	{ \
		if (id < 0 || id >= p->member.n) \
			BUG("no %s %d", #type, id); \
		return &p->member.v[id]; \
	}

AT(axis, axis_at, axes)
AT(tensor, tensor_at, tensors)
AT(node, node_at, nodes)
AT(carry, carry_at, carries)

/* Names go into generated code and into keys of Lua tables. */
enum err_code check_name(const char *kind, const char *name, struct srcloc loc, struct err *e)
{
	size_t n = strlen(name);

	if (n > 0 && n <= NAME_LEN_MAX && !(name[0] >= '0' && name[0] <= '9') && strspn(name, NAME_LETTERS) == n)
		return OK;
	return err_set(e, ERR_INPUT, loc, "'%.80s' cannot name a%s %s; use letters, digits and '_', at most %d, no "
		"digit first", name, strchr("aeiou", kind[0]) ? "n" : "", kind, NAME_LEN_MAX);
}

static enum err_code taken(const char *kind, const char *name, struct srcloc first, struct srcloc loc, struct err *e)
{
	return err_set(e, ERR_INPUT, loc, "%s '%s' exists already, since line %d; choose another "
		"name", kind, name, first.line);
}

enum err_code program_axis(struct program *p, const char *name, int64_t size, struct srcloc loc,
			   int *out, struct err *e)
{
	int same = program_find_axis(p, name);

	TRY(check_name("axis", name, loc, e));
	if (same != NONE)
		return taken("axis", name, p->axes.v[same].loc, loc, e);
	if (size < 1 || size > SIZE_MAX_AXIS)
		return err_set(e, size < 1 ? ERR_INPUT : ERR_LIMIT, loc,
			"axis '%s' has size %lld; sizes are 1 to 2^40", name, (long long)size);
	if (p->axes.n == AXES_MAX)
		return err_set(e, ERR_LIMIT, loc, "axis '%s' is one too many; a program has at "
			"most %d", name, AXES_MAX);
	*out = p->axes.n;
	name = arena_strdup(&p->arena, name);
	VEC_PUSH(&p->arena, &p->axes, ((struct axis){ .name = name, .size = size, .packs = NONE,
		.like = NONE, .per = 1, .loc = loc }));
	return OK;
}

enum err_code program_axis_any(struct program *p, int axis, int64_t multiple, int like, struct srcloc loc,
	struct err *e)
{
	struct axis *a = &p->axes.v[axis];

	if (a->size > INT32_MAX)
		return err_set(e, ERR_LIMIT, loc,
			"axis '%s' has at most %lld elements at launch; a size that is known at launch is "
			"at most 2^31 - 1", a->name, (long long)a->size);
	if (multiple < 1 || a->size % multiple)
		return err_set(e, ERR_INPUT, loc,
			"axis '%s' has at most %lld elements at launch, which is no multiple of %lld",
			a->name, (long long)a->size, (long long)multiple);
	a->multiple = multiple;
	a->like = like;
	return OK;
}

enum err_code find_words(struct program *p, int axis, int per, struct srcloc loc, int *out, struct err *e)
{
	int64_t size = p->axes.v[axis].size / per;
	char name[80];

	for (*out = 0; *out < p->axes.n; ++*out)
		if (p->axes.v[*out].packs == axis && p->axes.v[*out].per == per && p->axes.v[*out].size == size)
			return OK;
	snprintf(name, sizeof(name), "%.50s_words", p->axes.v[axis].name);
	for (int i = 2; program_find_axis(p, name) != NONE; i++)
		snprintf(name, sizeof(name), "%.50s_words%d", p->axes.v[axis].name, i);
	TRY(program_axis(p, name, size, loc, out, e));
	p->axes.v[*out].packs = axis;
	p->axes.v[*out].per = per;
	return OK;
}

/* Kernels take elements of 4 bits out of words. Where rows end within a word, only the interpreter has the tensor. */
static enum err_code hold_as_words(struct program *p, struct tensor *t, struct srcloc loc, struct err *e)
{
	int last = t->rank ? t->dim[t->rank - 1] : NONE, per = dtype_bits(DT_I32) / dtype_bits(t->type);

	if (dtype_bits(t->type) != 4 || last == NONE || p->axes.v[last].size % per || p->axes.v[last].packs != NONE)
		return OK;
	TRY(find_words(p, last, per, loc, &t->dim[t->rank - 1], e));
	t->unpacked = last;
	t->type = DT_I32;
	return OK;
}

enum err_code program_tensor(struct program *p, enum tensor_role role, const char *name, enum dtype type, int rank,
			     const int *dims, struct srcloc loc, int *out, struct err *e)
{
	struct tensor t = { .role = role, .type = type, .element = type, .unpacked = NONE, .rank = rank, .loc = loc };
	int same = program_find_tensor(p, name);
	double elements = 1;

	TRY(check_name("tensor", name, loc, e));
	if (same != NONE)
		return taken("tensor", name, p->tensors.v[same].loc, loc, e);
	if (rank < 0 || rank > RANK_MAX)
		return err_set(e, ERR_LIMIT, loc, "tensor '%s' has %d dimensions; at most %d are "
			"possible", name, rank, RANK_MAX);
	for (int i = 0; i < rank; i++) {
		if (ints_hold(dims, i, dims[i]))
			return err_set(e, ERR_INPUT, loc, "tensor '%s' has axis '%s' twice; give each dimension an "
				"axis of its own", name, axis_at(p, dims[i])->name);
		elements *= (double)axis_at(p, dims[i])->size;
		t.dim[i] = dims[i];
	}
	if (elements > ELEMENTS_MAX)
		return err_set(e, ERR_LIMIT, loc, "tensor '%s' has %.3g elements; at most 2^48 "
			"are possible", name, elements);
	if (role == TENSOR_INPUT)
		TRY(hold_as_words(p, &t, loc, e));
	*out = p->tensors.n;
	t.name = arena_strdup(&p->arena, name);
	VEC_PUSH(&p->arena, &p->tensors, t);
	return OK;
}

enum err_code program_sorted(struct program *p, int tensor, struct srcloc loc, struct err *e)
{
	struct tensor *t = &p->tensors.v[tensor];

	if (t->role != TENSOR_INPUT || t->type != DT_I32 || !t->rank)
		return err_set(e, ERR_INPUT, loc, "'%s' cannot be sorted: that is promised of an input of i32 with a dimension",
			t->name);
	t->sorted = true;
	return OK;
}

enum err_code program_by_address(struct program *p, int tensor, struct srcloc loc, struct err *e)
{
	struct tensor *t = &p->tensors.v[tensor];

	if (t->role != TENSOR_INPUT || t->rank < 2)
		return err_set(e, ERR_INPUT, loc,
			"'%s' cannot be given by addresses: that is for inputs, which have an address for "
			"each index of the first dimension, and another dimension", t->name);
	t->by_address = true;
	return OK;
}

enum err_code check_in_phase(const struct program *p, const char *what, struct srcloc loc, struct err *e)
{
	if (p->cur_phase == NONE && p->phases.n > 0)
		return err_set(e, ERR_INPUT, loc, "%s stands between phases; put it inside one", what);
	return OK;
}

enum err_code check_task_name(const struct program *p, const char *name, struct srcloc loc, struct err *e)
{
	int same = program_find_task(p, name);

	TRY(check_name("task", name, loc, e));
	return same == NONE ? OK : taken("task", name, p->tasks.v[same].loc, loc, e);
}

enum err_code check_own_task(const struct program *p, const char *what, const char *name, const char *stem,
			     struct srcloc loc, struct err *e)
{
	TRY(check_in_phase(p, what, loc, e));
	if (p->task_is_open)
		return err_set(e, ERR_INPUT, loc, "%s '%s' stands inside task '%s'; it is a task of its own, so put it "
			"before or after that one", what, name ? name : stem, p->tasks.v[p->cur_task].name);
	return name ? check_task_name(p, name, loc, e) : OK;
}

enum err_code check_index(const struct program *p, const struct index_expr *x, struct srcloc loc, struct err *e)
{
	double most = fabs((double)x->k);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		if (t->div < 1 || t->mod < 0)
			BUG("index term with div %lld", (long long)t->div);
		most += fabs((double)t->coef) * (double)axis_at(p, t->axis)->size;
	}
	if (most > INDEX_MAX)
		return err_set(e, ERR_LIMIT, loc, "an index reaches %.3g; at most 2^60 is possible", most);
	return OK;
}

static int begin_phase(struct program *p, const char *name, struct srcloc loc)
{
	name = arena_strdup(&p->arena, name);
	VEC_PUSH(&p->arena, &p->phases, ((struct phase){ .name = name, .loc = loc }));
	return p->phases.n - 1;
}

void build_enter_phase(struct program *p, struct srcloc loc)
{
	if (p->cur_phase == NONE)
		p->cur_phase = begin_phase(p, "main", loc);
}

enum err_code program_phase_begin(struct program *p, const char *name, struct srcloc loc, struct err *e)
{
	TRY(check_name("phase", name, loc, e));
	if (p->cur_phase != NONE)
		return err_set(e, ERR_INPUT, loc, "phase '%s' begins inside phase '%s'; end that one first (statements "
			"before any phase begin 'main')", name, p->phases.v[p->cur_phase].name);
	for (int i = 0; i < p->phases.n; i++)
		if (!strcmp(p->phases.v[i].name, name))
			return taken("phase", name, p->phases.v[i].loc, loc, e);
	p->cur_phase = begin_phase(p, name, loc);
	p->cur_loop = p->cur_task = NONE;
	return OK;
}

/* Nothing that began inside what is about to end may still be open. */
static enum err_code check_all_ended(const struct program *p, const char *what, int loop,
				     struct srcloc loc, struct err *e)
{
	if (p->task_is_open)
		return err_set(e, ERR_INPUT, loc, "%s ends inside task '%s'; end the task first",
			what, p->tasks.v[p->cur_task].name);
	return p->cur_loop == loop ? OK : err_set(e, ERR_INPUT, loc, "%s ends inside %s; end the loop first", what,
		loop_phrase(p, p->cur_loop).s);
}

enum err_code program_phase_end(struct program *p, struct srcloc loc, struct err *e)
{
	if (p->cur_phase == NONE)
		return err_set(e, ERR_INPUT, loc, "no phase has begun that could end here");
	TRY(check_all_ended(p, "a phase", NONE, loc, e));
	p->cur_phase = p->cur_task = NONE;
	return OK;
}

enum err_code check_not_words(const struct program *p, int axis, const char *verb, struct srcloc loc, struct err *e)
{
	const struct axis *a = axis_at(p, axis);

	return a->packs == NONE ? OK : err_set(e, ERR_INPUT, loc, "axis '%s' counts words of '%s' and follows it, so "
		"it cannot be %s; use '%s'", a->name, p->axes.v[a->packs].name, verb, p->axes.v[a->packs].name);
}

static enum err_code check_batch_comes_first(const struct program *p, const char *name,
					     struct srcloc loc, struct err *e)
{
	struct items body;

	if (p->cur_phase == NONE)
		return OK;
	for (int i = 0; i < p->carries.n; i++)
		if (p->carries.v[i].phase == p->cur_phase)
			return err_set(e, ERR_INPUT, loc, "batch axis '%s' comes after carry '%s'; declare batch axes "
				"first", name, p->carries.v[i].name);
	body = program_body(p, p->cur_phase, NONE);
	if (body.n && body.v[0].is_loop)
		return err_set(e, ERR_INPUT, loc, "batch axis '%s' comes after a loop; declare batch axes first", name);
	return !body.n ? OK : err_set(e, ERR_INPUT, loc, "batch axis '%s' comes after task '%s'; declare batch axes "
		"first", name, p->tasks.v[body.v[0].id].name);
}

enum err_code program_batch(struct program *p, int axis, struct srcloc loc, struct err *e)
{
	const char *name = axis_at(p, axis)->name;
	struct phase *ph;

	TRY(check_in_phase(p, "a batch axis", loc, e));
	TRY(check_batch_comes_first(p, name, loc, e));
	TRY(check_not_words(p, axis, "batch", loc, e));
	if (is_packed(p, axis))
		return err_set(e, ERR_INPUT, loc, "axis '%s' is unpacked from words, several at "
			"a time, so it cannot be batch", name);
	if (axis_is_batch(p, p->cur_phase, axis))
		return err_set(e, ERR_INPUT, loc, "axis '%s' is batch already; declare it once", name);
	if (p->cur_phase != NONE && p->phases.v[p->cur_phase].nbatch == RANK_MAX)
		return err_set(e, ERR_LIMIT, loc, "batch axis '%s' is one too many; a phase has "
			"at most %d", name, RANK_MAX);
	build_enter_phase(p, loc);
	ph = &p->phases.v[p->cur_phase];
	ph->batch[ph->nbatch++] = axis;
	p->axes.v[axis].single = true;
	return OK;
}

static enum err_code check_loop_axes(const struct program *p, int naxes, const int *axes,
				     struct srcloc loc, struct err *e)
{
	if (naxes < 1 || naxes > LOOP_AXES_MAX)
		return err_set(e, naxes < 1 ? ERR_INPUT : ERR_LIMIT, loc,
			"a loop runs over 1 to %d axes, not %d", LOOP_AXES_MAX, naxes);
	for (int i = 0; i < naxes; i++) {
		const char *name = axis_at(p, axes[i])->name;

		TRY(check_not_words(p, axes[i], "looped over", loc, e));
		if (ints_hold(axes, i, axes[i]))
			return err_set(e, ERR_INPUT, loc, "a loop runs over axis '%s' twice; name it once", name);
		if (axis_is_batch(p, p->cur_phase, axes[i]))
			return err_set(e, ERR_INPUT, loc, "axis '%s' is batch, so a tile has one "
				"value of it and no loop can run over it", name);
		if (program_axis_bound(p, p->cur_loop, axes[i]))
			return err_set(e, ERR_INPUT, loc, "a loop runs over axis '%s', and so "
				"does a loop around it; use another axis", name);
	}
	return OK;
}

static enum err_code check_loop_bound(const struct program *p, int naxes, const int *axes, const struct index_expr *x,
				      const char *which, struct srcloc loc, struct err *e)
{
	const char *name = axis_at(p, axes[0])->name;

	if (!x)
		return OK;
	if (naxes > 1)
		return err_set(e, ERR_INPUT, loc, "'%s' needs a loop over one axis; nest a loop "
			"for each of the %d axes", which, naxes);
	if (index_uses(x, axes[0]))
		return err_set(e, ERR_INPUT, loc, "'%s' of the loop over '%s' depends on '%s' "
			"itself; use axes from outside the loop", which, name, name);
	return check_index(p, x, loc, e);
}

static void push_item(struct program *p, struct item it)
{
	if (p->cur_loop != NONE)
		VEC_PUSH(&p->arena, &p->loops.v[p->cur_loop].body, it);
	else
		VEC_PUSH(&p->arena, &p->phases.v[p->cur_phase].body, it);
}

enum err_code program_loop_begin(struct program *p, int naxes, const int *axes, const struct index_expr *from,
				 const struct index_expr *upto, struct srcloc loc, struct err *e)
{
	struct loop l = { .naxes = naxes, .loc = loc, .has_from = from, .has_upto = upto };
	int depth = 1;

	TRY(check_in_phase(p, "a loop", loc, e));
	if (p->task_is_open)
		return err_set(e, ERR_INPUT, loc, "a loop stands inside task '%s'; a task is one pass over its tile, "
			"so put the task into the loop", p->tasks.v[p->cur_task].name);
	TRY(check_loop_axes(p, naxes, axes, loc, e));
	TRY(check_loop_bound(p, naxes, axes, from, "from", loc, e));
	TRY(check_loop_bound(p, naxes, axes, upto, "upto", loc, e));
	for (int i = p->cur_loop; i != NONE; i = p->loops.v[i].parent)
		depth++;
	if (depth > LOOP_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, loc, "loops nest at most %d deep; one loop may run over "
			"several axes", LOOP_DEPTH_MAX);
	build_enter_phase(p, loc);
	l.parent = p->cur_loop;
	l.phase = p->cur_phase;
	memcpy(l.axis, axes, (size_t)naxes * sizeof(*axes));
	if (from)
		l.from = *from;
	if (upto)
		l.upto = *upto;
	VEC_PUSH(&p->arena, &p->loops, l);
	push_item(p, (struct item){ true, p->loops.n - 1 });
	p->cur_loop = p->loops.n - 1;
	p->cur_task = NONE;
	return OK;
}

enum err_code program_loop_batch(struct program *p, struct srcloc loc, struct err *e)
{
	struct loop *l;

	if (p->cur_loop == NONE)
		BUG("program_loop_batch comes behind program_loop_begin");
	l = &p->loops.v[p->cur_loop];
	for (int i = 0; i < l->naxes; i++) {
		struct axis *a = &p->axes.v[l->axis[i]];

		if (is_packed(p, l->axis[i]))
			return err_set(e, ERR_INPUT, loc, "axis '%s' is unpacked from words, several at "
				"a time, so it cannot be batch", a->name);
		a->single = true;
	}
	l->batch = true;
	return OK;
}

enum err_code program_loop_end(struct program *p, struct srcloc loc, struct err *e)
{
	if (p->cur_loop == NONE)
		return err_set(e, ERR_INPUT, loc, "no loop has begun that could end here");
	TRY(check_all_ended(p, "a loop", p->cur_loop, loc, e));
	p->cur_loop = p->loops.v[p->cur_loop].parent;
	p->cur_task = NONE;
	return OK;
}

const char *build_task_name(struct program *p, const char *name, const char *stem, bool numbered)
{
	char text[2 * NAME_LEN_MAX];
	size_t len = strlen(stem);
	int number = 1;

	if (name)
		return arena_strdup(&p->arena, name);
	/* Where names were left to us this is the first one free. */
	for (int i = 0; i < p->tasks.n; i++)
		number += !strncmp(p->tasks.v[i].name, stem, len);
	snprintf(text, sizeof(text), "%s", stem);
	if (numbered || number > 1)
		snprintf(text, sizeof(text), "%s%d", stem, number);
	while (program_find_task(p, text) != NONE)
		snprintf(text, sizeof(text), "%s%d", stem, ++number);
	return arena_strdup(&p->arena, text);
}

int build_task(struct program *p, const char *name, enum task_kind kind, struct srcloc loc)
{
	build_enter_phase(p, loc);
	VEC_PUSH(&p->arena, &p->tasks, ((struct task){ .name = name, .kind = kind, .phase = p->cur_phase,
		.loop = p->cur_loop, .loc = loc }));
	push_item(p, (struct item){ false, p->tasks.n - 1 });
	p->cur_task = NONE;
	return p->tasks.n - 1;
}

int build_node(struct program *p, const struct node *n)
{
	int id = p->nodes.n;

	if (p->cur_task == NONE)
		p->cur_task = build_task(p, build_task_name(p, NULL, "ew", true), TASK_COMPUTE, n->loc);
	VEC_PUSH(&p->arena, &p->nodes, *n);
	p->nodes.v[id].task = p->cur_task;
	VEC_PUSH(&p->arena, &p->tasks.v[p->cur_task].nodes, id);
	return id;
}

enum err_code program_task_begin(struct program *p, const char *name, struct srcloc loc, struct err *e)
{
	TRY(check_in_phase(p, "a task", loc, e));
	if (p->task_is_open)
		return err_set(e, ERR_INPUT, loc, "task '%s' begins inside task '%s'; tasks do "
			"not nest, so end that one first", name, p->tasks.v[p->cur_task].name);
	TRY(check_task_name(p, name, loc, e));
	p->cur_task = build_task(p, arena_strdup(&p->arena, name), TASK_COMPUTE, loc);
	p->tasks.v[p->cur_task].named = true;
	p->task_is_open = true;
	return OK;
}

enum err_code program_task_end(struct program *p, struct srcloc loc, struct err *e)
{
	if (!p->task_is_open)
		return err_set(e, ERR_INPUT, loc, "no task has begun that could end here");
	if (p->tasks.v[p->cur_task].nodes.n == 0)
		return err_set(e, ERR_INPUT, loc, "task '%s' computes nothing; put element-wise operations into it or "
			"remove it", p->tasks.v[p->cur_task].name);
	p->task_is_open = false;
	p->cur_task = NONE;
	return OK;
}
