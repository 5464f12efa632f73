#include "role/uses.h"

static void use(const struct uses *u, struct frag_at at, bool whole)
{
	if (at.frag && u->used)
		u->used(u->ctx, at, whole || at.frag->kind != FRAG_FULL);
}

static void use_value(const struct uses *u, const struct val *v, bool whole)
{
	if (!v)
		return;
	if (v->kind == VAL_FRAG)
		use(u, v->frag, whole);
	for (int i = 0; i < LEN(v->arg); i++)
		use_value(u, v->arg[i], whole);
}

static struct frag_at only(const struct frag *f)
{
	return (struct frag_at){ f, 0 };
}

static void make(const struct uses *u, struct frag_at at)
{
	if (at.frag && u->made)
		u->made(u->ctx, at);
}

static void map_uses(const struct role_op *o, const struct uses *u)
{
	make(u, o->u.map.to);
	for (int i = o->u.map.steps.n - 1; i >= 0; i--)
		make(u, only(o->u.map.steps.v[i].to));
	for (int i = 0; i < o->u.map.steps.n; i++)
		use_value(u, o->u.map.steps.v[i].value, o->u.map.over->kind != FRAG_FULL);
}

static void product_uses(const struct role_op *o, const struct uses *u)
{
	make(u, o->u.product.sum);
	if (o->u.product.adds->op != NUM_GT)	/* else it begins with nothing */
		use(u, o->u.product.sum, true);
	if (o->u.product.form.registers)
		use(u, o->u.product.a, true);
	if (o->u.product.form.b_registers)
		use(u, o->u.product.b, true);
}

static void sum_product_uses(const struct role_op *o, const struct uses *u)
{
	make(u, o->u.sum_product.sum);
	use(u, o->u.sum_product.sum, true);
	use_value(u, o->u.sum_product.a, true);
	use_value(u, o->u.sum_product.b, true);
}

void role_uses(const struct role_op *o, const struct uses *u)
{
	if (o->what == DO_INIT) {
		make(u, o->u.frag.at);
		use_value(u, o->u.frag.value, false);
	} else if (o->what == DO_MAP) {
		map_uses(o, u);
	} else if (o->what == DO_PACK) {
		make(u, o->u.pack.to);
		use_value(u, o->u.pack.value, false);
	} else if (o->what == DO_KEEP) {
		make(u, o->u.pack.to);
		use(u, only(o->u.pack.from), false);
	} else if (o->what == DO_REDUCE || o->what == DO_SCAN) {
		make(u, only(o->u.reduce.to));
		use_value(u, o->u.reduce.value, true);
		use_value(u, o->u.reduce.zero, true);
	} else if (o->what == DO_LINES) {
		use_value(u, o->u.lines.value, true);
		use_value(u, o->u.lines.zero, true);
	} else if (o->what == DO_FILL) {
		use_value(u, o->u.fill.value, true);
	} else if (o->what == DO_FETCH) {
		make(u, only(o->u.fetch.to));
	} else if (o->what == DO_PRODUCT) {
		product_uses(o, u);
	} else if (o->what == DO_SUM_PRODUCT) {
		sum_product_uses(o, u);
	} else if (o->what == DO_PUT) {
		use(u, o->u.put.from, false);
		use_value(u, o->u.put.value, o->u.put.over->kind != FRAG_FULL);
	} else if (o->what == DO_PUT_PANELS) {
		use(u, o->u.panels.from, false);
	} else if (o->what == DO_STORE_THREADS || o->what == DO_STORE_RING) {
		use(u, o->u.move.from, false);
		use_value(u, o->u.move.value, false);
	}
}
