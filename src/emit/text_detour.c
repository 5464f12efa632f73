/* Values in registers that are taken in another layout: written to the lane's scratch in
 * shared memory as they lie, and read from there. */
#include "emit/gpu_text.h"

#include <string.h>

#include "lower/detours.h"

static const struct detoured *find(const struct text *c, int node, int arg, int carry)
{
	for (int i = 0; i < c->detours.n; i++)
		if (c->detours.v[i].node == node && c->detours.v[i].arg == arg &&
		    c->detours.v[i].carry == carry)
			return &c->detours.v[i];
	return NULL;
}

bool has_detour(const struct text *c, int node, int arg, int carry)
{
	return find(c, node, arg, carry) != NULL;
}

static enum dtype type_of(const struct text *c, int arg, int carry)
{
	return arg != NONE ? c->p->nodes.v[arg].type : c->p->carries.v[carry].type;
}

static const char *address(struct text *c, const struct stask *s, int64_t at,
	const struct shape2 *from, const struct shape2 *to)
{
	return arena_strf(c->a, "shared + %lld + 4 * (%s)", (long long)(c->lane->scratch + at),
		plain_place(c, s, from, to));
}

/* The element at hand of the value as it lies. */
static enum err_code source_text(struct text *c, const struct kentry *x, const struct detour *d,
	struct view *v, const char **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	int buffer;

	if (d->arg != NONE) {
		TRY(node_view(c, s, d->arg, v, e));
		return operand_text(c, x, d->arg, d->arg, out, e);
	}
	buffer = buffer_of_carry(c, s, d->carry);
	TRY(buffer_view(c, buffer, v, e));
	*out = arena_strf(c->a, "%s%s", buffer_name(c, x, buffer), frag_element(v->kind));
	return OK;
}

static enum err_code put_detour(struct text *c, const struct kentry *x, const struct detour *d,
	int64_t at, struct err *e)
{
	bool floats = dtype_is_float(type_of(c, d->arg, d->carry));
	const struct stask *s = stask_of(c, x);
	const char *value;
	struct view v;

	TRY(source_text(c, x, d, &v, &value, e));
	put(c, "%s%sshared_put_%s(%s, %s%s);", frag_loops(c, &v), if_brought(c, s, d->from, &v),
		floats ? "f32" : "u32", address(c, s, at, d->from, d->from), floats ? "" : "(u32)",
		value);
	return OK;
}

/* What was there has been read when the lane's threads meet, and then all of it is there. */
enum err_code put_detours(struct text *c, const struct kentry *x, int first, int last,
	struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	struct detour d;
	int64_t at = 0;

	c->detours.n = 0;
	for (int i = first; i < last; i++) {
		for (int k = 0; detour_next(c->k, s, t->nodes.v[i], &k, &d);) {
			if (!c->detours.n)
				put_lane_sync(c);
			TRY(put_detour(c, x, &d, at, e));
			VEC_PUSH(c->a, &c->detours, ((struct detoured){ t->nodes.v[i], d.arg, d.carry,
				at }));
			at += detour_bytes(s, &d);
		}
	}
	if (c->detours.n)
		put_lane_sync(c);
	return OK;
}

enum err_code detour_text(struct text *c, const struct kentry *x, int node, int arg, int carry,
	const char **out, struct err *e)
{
	const struct detoured *at = find(c, node, arg, carry);
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	bool sets = n->op == OP_SET && c->k->ring_of[buffer_of_carry(c, s, n->ref)] == NONE;
	const struct shape2 *to = sets ? &c->k->carry_shape[n->ref] : &c->k->node_shape[node];
	enum dtype type = type_of(c, arg, carry);
	const struct shape2 *from;
	const char *inside, *place;
	struct view v;

	if (!at)
		return err_set(e, ERR_ILLEGAL, n->loc, "%s: an argument lies otherwise over the lane's "
			"threads than the result; only a value in shared memory can be read so: let "
			"another lane make it", op_name(n->op));
	if (sets)
		TRY(buffer_view(c, buffer_of_carry(c, s, n->ref), &v, e));
	else
		TRY(node_view(c, s, node, &v, e));
	from = arg != NONE ? &c->k->node_shape[arg] : &c->k->carry_shape[carry];
	place = address(c, s, at->at, from, to);
	inside = inside_text(c, s, to, &v, from->whole & ~to->whole);
	*out = arena_strf(c->a, dtype_is_float(type) ? "shared_f32(%s)" : type == DT_BOOL ?
		"(shared_u32(%s) != 0)" : "(int)shared_u32(%s)", place);
	if (strcmp(inside, "true"))
		*out = arena_strf(c->a, "(%s ? %s : 0)", inside, *out);
	return OK;
}
