/* Arithmetic in pairs: two neighbouring elements of a word at once.
 *
 * A result of 16 bits is computed in f32 and rounded. Where it is the product of two values that its type has exactly, as of
 * a weight of 4 or 8 bits and a scale, or of two values of that type, one multiplication of pairs gives the same bits: f32 has the
 * product exactly, so there is one rounding either way. (Below 2^-134 f32 may round a product of two bf16 first; both are then 0.)
 * The weights are made as pairs, too, by operations on the bits of both. */
#include "lower/select/lowering.h"

/* Has the type all values of the other? */
static bool has_all_of(enum dtype type, enum dtype of)
{
	switch ((int)of) {
	case DT_E4M3: case DT_E5M2: case DT_E2M1: case DT_I4: case DT_I8: case DT_U8: case DT_BOOL:
		return type == DT_BF16 || type == DT_F16;
	case DT_E8M0:
		return type == DT_BF16;
	default:
		return type == of;
	}
}

/* Is the value one of the type? */
static bool is_exact(enum dtype type, const struct val *v)
{
	switch ((int)v->kind) {
	case VAL_CONST: return dtype_round(type, v->k) == v->k;
	case VAL_FRAG: return v->frag.frag->kind != FRAG_FULL && v->frag.frag->kind != FRAG_COL && has_all_of(type, v->frag.frag->type);
	case VAL_SHARED: return has_all_of(type, v->from);
	case VAL_FIELD: return has_all_of(type, v->type);
	case VAL_CAST: return has_all_of(type, v->type) || (v->type == DT_F32 && is_exact(type, v->arg[0]));
	case VAL_GUARD: return is_exact(type, v->arg[0]) && is_exact(type, v->arg[1]);
	default: return false;
	}
}

/* Can pairs of the value be made in the type, in which it is exact? *fields: counts what is converted. */
static bool is_pair(const struct lowering *c, enum dtype type, const struct val *v, int *fields)
{
	if (v->kind == VAL_FRAG && v->frag.frag->packed)
		return v->frag.frag->type == type && v->frag.frag->layout == c->lane->layout && !c->makes;
	if (!value_uses(v, VAR_E))
		return is_exact(type, v);
	if (v->kind == VAL_CAST)
		return v->type == DT_F32 && is_pair(c, type, v->arg[0], fields);
	if (v->kind == VAL_SHARED && v->from == type)
		return v->together > 1;
	++*fields;
	if (v->kind == VAL_SHARED)		/* a pair of bytes, and no more */
		return v->from == DT_I8 && v->together == 2;
	return v->kind == VAL_FIELD && (v->type == DT_I4 || v->type == DT_E2M1 || v->type == DT_I8) && !value_uses(v->arg[0], VAR_E) && begins_with_pair(c, v->num);
}

/* Do both elements of a pair lie in one word, or are they one element? */
static bool has_neighbours(const struct val *v)
{
	while (v->kind == VAL_CAST)
		v = v->arg[0];
	return (v->kind == VAL_FRAG && v->frag.frag->packed) || (v->kind == VAL_SHARED && (v->together > 1 || !value_uses(v, VAR_E)));
}

void pair_arithmetic(struct lowering *c, struct role_op *pack)
{
	enum dtype type = pack->u.pack.type;
	const struct val *v = pack->u.pack.value;
	int fields = 0;

	bool multiplies = v->kind == VAL_OP && v->op == OP_MUL && dtype_is_float(v->type);

	/* Machines that round by operations on bits need not ask for a NaN that such values make: its bits are those of a bf16. */
	pack->u.pack.short_nans = type == DT_BF16 && (multiplies ? is_exact(type, v->arg[0]) && is_exact(type, v->arg[1]) :
		is_exact(type, v));
	if (!(c->k->target->pairs >> type & 1))
		return;
	if (multiplies)
		pack->u.pack.pairs = is_pair(c, type, v->arg[0], &fields) && is_pair(c, type, v->arg[1], &fields);
	else
		pack->u.pack.pairs = is_pair(c, type, v, &fields);
	/* What else there is lies as pairs already, or is converted one by one: then nothing is gained but by a product of both. */
	pack->u.pack.pairs &= fields > 0 || (multiplies && has_neighbours(v->arg[0]) && has_neighbours(v->arg[1]));
}
