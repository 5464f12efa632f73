/* The text of a role program: lane by lane, one operation in each line. */
#include <string.h>

#include "role/operands.h"

struct dump {
	const struct role_program *r;
	struct buf *out;
	struct arena *a;
};

enum { WHY_COLUMN = 64 };		/* where reasons begin */

static const char *number_text(const struct dump *d, const struct num *x)
{
	return num_text(d->a, x, &d->r->names);
}

static const char *frag_text(const struct dump *d, struct frag_at at)
{
	return at.frag->versions ? arena_strf(d->a, "%s[%d]", at.frag->name, at.version) : at.frag->name;
}

static const char *extents_text(const struct dump *d, const struct frag *f)
{
	const char *type = dtype_name(f->type);

	switch (f->kind) {
	case FRAG_FULL: return arena_strf(d->a, "%lld x %lld %s", (long long)f->height, (long long)f->width, type);
	case FRAG_ROW: return arena_strf(d->a, "%lld rows %s", (long long)f->height, type);
	case FRAG_COL: return arena_strf(d->a, "%lld columns %s", (long long)f->width, type);
	case FRAG_WORDS: return arena_strf(d->a, "%d words a thread of %s", frag_words(f), type);
	case FRAG_SCALAR:
		break;
	}
	return type;
}

/* values ----------------------------------------------------------------------- */

static const char *value_text(const struct dump *d, const struct val *v);

static const char *call_text(const struct dump *d, const struct val *v)
{
	struct buf b;

	buf_init(&b, d->a);
	buf_puts(&b, v->kind == VAL_CAST ? dtype_name(v->type) : op_name(v->op));
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		buf_printf(&b, "%s%s", i ? ", " : "(", value_text(d, v->arg[i]));
	buf_putc(&b, ')');
	return b.text;
}

static const char *value_text(const struct dump *d, const struct val *v)
{
	switch (v->kind) {
	case VAL_CONST: return arena_strf(d->a, "%.9g", v->k);
	case VAL_NUM: return number_text(d, v->num);
	case VAL_FRAG: return frag_text(d, v->frag);
	case VAL_FLIPPED: return arena_strf(d->a, "%s in column ~ %lld", frag_text(d, v->frag), (long long)v->flips);
	case VAL_NODE: return arena_strf(d->a, "x%d", v->node);
	case VAL_SHARED:
		return arena_strf(d->a, "shared %s%s [%s]", val_at_once(v) > 1 ? arena_strf(d->a, "%d ", val_at_once(v)) : "",
			dtype_name(v->from), number_text(d, v->num));
	case VAL_OP: case VAL_CAST: return call_text(d, v);
	case VAL_FIELD: return arena_strf(d->a, "field of %s", value_text(d, v->arg[0]));
	case VAL_GUARD:
		return arena_strf(d->a, "(%s ? %s : %s)", number_text(d, v->num), value_text(d, v->arg[0]),
			value_text(d, v->arg[1]));
	case VAL_COLUMN:
		break;
	}
	return arena_strf(d->a, "column against %s", value_text(d, v->arg[0]));
}

/* operations ------------------------------------------------------------------- */

static const char *flag_name(const struct dump *d, int flag)
{
	return d->r->flags.v[flag].name;
}

static const char *lets_text(const struct dump *d, const struct role_op *o)
{
	struct buf b;

	buf_init(&b, d->a);
	for (int i = 0; i < o->u.let.v.n; i++) {
		const struct role_let *l = &o->u.let.v.v[i];

		if (!l->to)
			continue;
		buf_printf(&b, "%s%s %s %s", i ? ", " : "", var_text(d->a, l->var, l->of,
			&d->r->names), o->what == DO_ADVANCE ? "+=" : "=", number_text(d, l->to));
	}
	return b.text ? b.text : "";
}

static const char *steps_text(const struct dump *d, const struct role_op *o)
{
	struct buf b;

	buf_init(&b, d->a);
	buf_puts(&b, extents_text(d, o->u.map.over));
	if (o->u.map.to.frag)
		buf_printf(&b, ": %s = %s", frag_text(d, o->u.map.to), value_text(d, o->u.map.steps.v[0].value));
	for (int i = 0; i < o->u.map.steps.n && !o->u.map.to.frag; i++) {
		const struct role_step *s = &o->u.map.steps.v[i];

		buf_printf(&b, "%s x%d = %s", i ? ";" : ":", s->node, value_text(d, s->value));
	}
	if (o->u.map.some)
		buf_printf(&b, "; of %d groups of columns each if for some thread %s", o->u.map.chunk, number_text(d, o->u.map.some));
	if (o->u.map.apart)
		buf_printf(&b, ", %d groups of columns at once", o->u.map.apart);
	return b.text;
}

/* The type of both operands, or each. */
static const char *operand_types(const struct dump *d, const struct product_form *f)
{
	return f->a_type == f->b_type ? dtype_name(f->a_type) : arena_strf(d->a, "%s x %s", dtype_name(f->a_type),
		dtype_name(f->b_type));
}

static const char *product_text(const struct dump *d, const struct role_op *o)
{
	const struct product_form *f = &o->u.product.form;

	if (f->b_registers)
		return arena_strf(d->a, "%s += %s x %s, %s, %s, %d at once%s", frag_text(d, o->u.product.sum),
			frag_text(d, o->u.product.a), frag_text(d, o->u.product.b), operand_types(d, f), f->by->name,
			o->u.product.sum.frag->blocks * o->u.product.col_steps, o->u.product.steps > 1 ?
			arena_strf(d->a, ", %d steps", o->u.product.steps) : "");
	return arena_strf(d->a, "%s%s += %s x b, %s, %d columns, %d steps, in %d", frag_text(d,
		o->u.product.sum), o->u.product.first ? arena_strf(d->a, " from column %d",
		o->u.product.first) : "", f->registers ? frag_text(d, o->u.product.a) : "a", operand_types(d, f),
		f->cols, o->u.product.steps, o->u.product.sum.frag->blocks * o->u.product.col_steps);
}

static const char *boxes_text(const struct dump *d, const struct role_op *o)
{
	const struct role_map *m = &d->r->maps.v[o->u.boxes.map];
	struct buf b;

	buf_init(&b, d->a);
	buf_puts(&b, d->r->tensors.v[m->tensor].name);
	for (int i = m->rank - 1; i >= 0; i--)
		if (o->u.boxes.boxes.v[0].value[i])
			buf_printf(&b, " by index %s", value_text(d, o->u.boxes.boxes.v[0].value[i]));
	for (int i = m->rank - 1; i >= 0; i--)
		buf_printf(&b, "%s%lld", i == m->rank - 1 ? " in boxes of " : " x ", (long long)m->box[i]);
	buf_printf(&b, ", %d", o->what == DO_LOAD_BOXES ? o->u.boxes.boxes.n : o->u.boxes.panels);
	if (o->what == DO_LOAD_BOXES && o->u.boxes.rows)
		buf_printf(&b, " for each of %lld rows", (long long)o->u.boxes.rows);
	if (o->what == DO_LOAD_BOXES)
		buf_printf(&b, ", %lld bytes on '%s' %s", (long long)o->u.boxes.bytes,
			flag_name(d, o->u.boxes.flag), number_text(d, o->u.boxes.n));
	if (o->u.boxes.multicast)
		buf_puts(&b, ", to all blocks");
	if (o->what == DO_LOAD_BOXES && o->u.boxes.key)
		buf_printf(&b, ", unless the slot has %s", number_text(d, o->u.boxes.key));
	if (o->u.boxes.once)
		buf_puts(&b, ", evicted first");
	if (o->u.boxes.adds)
		buf_puts(&b, ", added");
	return b.text;
}

static const char *move_text(const struct dump *d, const struct role_op *o)
{
	const char *name = d->r->tensors.v[o->u.move.tensor].name;

	for (int i = 0; i < o->u.move.rank; i++)
		if (o->u.move.index[i].value)
			name = arena_strf(d->a, "%s by index %s", name, value_text(d, o->u.move.index[i].value));

	if (o->what == DO_LOAD_THREADS && (o->u.move.run > 1 || o->u.move.dma))
		return arena_strf(d->a, "%s, %lld elements, %d at once%s%s", name, (long long)o->u.move.elements,
			o->u.move.run, o->u.move.dma ? ", without registers" : o->u.move.shifted ? ", shifted" : "", o->u.move.arrives ? arena_strf(d->a,
			", on '%s' %s", flag_name(d, o->u.move.flag), number_text(d, o->u.move.n)) : "");
	if (o->what != DO_STORE_THREADS)
		return arena_strf(d->a, "%s, %lld elements %s%s%s", name, (long long)o->u.move.elements,
			o->what == DO_STORE_RING && o->u.move.width > 1 ? arena_strf(d->a, "%d at once", o->u.move.width) : "one by one",
			o->u.move.down ? ", down the columns" : "", o->u.move.adds ? ", added" : "");
	return arena_strf(d->a, "%s from %s, %d neighbour%s%s at once%s", name, frag_text(d, o->u.move.from),
		o->u.move.width, o->u.move.width == 1 ? "" : "s", o->u.move.down ? " of a column" : "", o->u.move.adds ? ", added" : "");
}

static const char *reduction_text(const struct dump *d, const struct role_op *o)
{
	if (o->u.reduce.over == o->u.reduce.to)
		return arena_strf(d->a, "%s = %s of what each thread has of %s", o->u.reduce.to->name,
			op_name(o->u.reduce.op), value_text(d, o->u.reduce.value));
	return arena_strf(d->a, "%s = %s along %s of %s, %s%s", o->u.reduce.to->name,
		op_name(o->u.reduce.op), o->u.reduce.along_rows ? "rows" : "columns", value_text(d, o->u.reduce.value),
		extents_text(d, o->u.reduce.over), o->u.reduce.partial ? ", each thread its own" : "");
}

const char *role_task_names(struct arena *a, const struct role_program *r, const struct role_op *o)
{
	const char *names = r->tasks[o->task];

	for (int l = 1; o->merged && o->merged[l]; l++)
		if (o->merged[l]->task != o->task)
			names = arena_strf(a, "%s|%s", names, r->tasks[o->merged[l]->task]);
	return names;
}

/* Operands of the operations whose row in ops.def has no text. */
static const char *own_text(const struct dump *d, const struct role_op *o)
{
	static const char *const fetched_by[] = { [FETCH_ELEMENTS] = "elements", [FETCH_WORDS] = "words",
		[FETCH_MATRICES] = "matrices", [FETCH_MATRICES_ACROSS] = "transposed matrices" };
	const struct num *iteration = o->u.region.iteration, *inside = o->u.fetch.inside;
	const struct frag *f = o->u.frag.at.frag;

	switch ((int)o->what) {
	case DO_TASK: return arena_strf(d->a, "'%s', %s", role_task_names(d->a, d->r, o), iteration ? arena_strf(d->a,
		"%s %s", o->u.region.of != NONE ? "iteration" : "tile", number_text(d, iteration)) : "once a tile");
	case DO_LET: case DO_SET: case DO_ADVANCE: return lets_text(d, o);
	case DO_FRAGMENT: return arena_strf(d->a, "%s, %s%s", f->name, extents_text(d, f), f->versions > 1 ?
		arena_strf(d->a, ", %d versions", f->versions) : "");
	case DO_SLOT: return arena_strf(d->a, "%s of %s, %d in the ring", d->r->rings.v[o->u.slot.ring].name,
		number_text(d, o->u.slot.life), d->r->rings.v[o->u.slot.ring].versions);
	case DO_STORES_WAIT: return arena_strf(d->a, o->u.stores.first == o->u.stores.other ? "until %d unread" :
		"until %d unread, then %d", o->u.stores.first, o->u.stores.other);
	case DO_LOAD_BOXES: case DO_STORE_BOXES: return boxes_text(d, o);
	case DO_LOAD_THREADS: case DO_STORE_THREADS: case DO_STORE_RING: return move_text(d, o);
	case DO_FETCH:
		return arena_strf(d->a, "%s by %s from %s%s", frag_text(d, o->u.fetch.to), fetched_by[o->u.fetch.by],
			number_text(d, o->u.fetch.address),
			num_is(inside, 1) ? "" : arena_strf(d->a, " if %s", number_text(d, inside)));
	case DO_PRODUCT: return product_text(d, o);
	case DO_MAP: return steps_text(d, o);
	case DO_REDUCE: case DO_SCAN: return reduction_text(d, o);
	case DO_REDUCE_SHARED: return arena_strf(d->a, "%s = %s of %s, %s for each of %s", o->u.reduce.to->name,
		op_name(o->u.reduce.op), value_text(d, o->u.reduce.value), number_text(d, o->u.reduce.length),
		extents_text(d, o->u.reduce.over));
	default: BUG("'%s' has no text in a dump", role_op_info[o->what].name);
	}
}

/* Texts of ops.def ------------------------------------------------------------- */

/* The operand at s, which begins "name}". */
static const struct role_operand *operand_at(const struct role_op *o, const char *s)
{
	size_t len = strcspn(s, "}");

	for (const struct role_operand *x = role_op_info[o->what].operands; x->kind != OPERAND_END; x++) {
		const char *dot = strrchr(x->path, '.'), *name = dot ? dot + 1 : x->path;

		if (strlen(name) == len && !memcmp(name, s, len))
			return x;
	}
	BUG("'%s' has no operand '%.*s'", role_op_info[o->what].name, (int)len, s);
}

static const char *operand_text(const struct dump *d, const struct role_op *o, const struct role_operand *x)
{
	const void *at = role_field(o, x);

	switch ((int)x->kind) {
	case OPERAND_NUM: case OPERAND_ADDRESS: case OPERAND_OWN_ADDRESS:
		return number_text(d, *(const struct num *const *)at);
	case OPERAND_VALUE: return value_text(d, *(const struct val *const *)at);
	case OPERAND_USE: case OPERAND_DEF: case OPERAND_SUM: case OPERAND_FRAG:
		return frag_text(d, *(const struct frag_at *)at);
	case OPERAND_USE_FRAG: case OPERAND_DEF_FRAG: return (*(const struct frag *const *)at)->name;
	case OPERAND_COUNTER: return var_text(d->a, o->u.region.var, o->u.region.of, &d->r->names);
	case OPERAND_FLAG: return flag_name(d, *(const int *)at);
	case OPERAND_RING: return d->r->rings.v[*(const int *)at].name;
	case OPERAND_INT: return arena_strf(d->a, "%d", *(const int *)at);
	case OPERAND_INT64: return arena_strf(d->a, "%lld", (long long)*(const int64_t *)at);
	case OPERAND_TYPE: return dtype_name(*(const enum dtype *)at);
	case OPERAND_OPERATOR: return op_name(*(const enum op *)at);
	case OPERAND_STRING: return *(const char *const *)at;
	default: return "";
	}
}

/* Does the part in brackets that begins at s have an absent operand? */
static bool is_left_out(const struct role_op *o, const char *s)
{
	for (; *s != ']'; s++) {
		if (*s != '{')
			continue;
		const struct role_operand *x = operand_at(o, s + 1);
		const void *at = role_field(o, x);
		if (x->kind == OPERAND_BOOL ? !*(const bool *)at : x->kind == OPERAND_USE ?
		    !((const struct frag_at *)at)->frag : (x->kind == OPERAND_NUM || x->kind == OPERAND_VALUE ||
		    x->kind == OPERAND_STRING) && !*(const void *const *)at)
			return true;
	}
	return false;
}

static const char *operands_text(const struct dump *d, const struct role_op *o)
{
	const char *s = role_op_info[o->what].text;
	struct buf b;

	if (!s)
		return own_text(d, o);
	buf_init(&b, d->a);
	for (; *s; s++) {
		if (*s == '{') {
			buf_puts(&b, operand_text(d, o, operand_at(o, s + 1)));
			s += strcspn(s, "}");
		} else if (*s == '[' && is_left_out(o, s)) {
			s += strcspn(s, "]");
		} else if (*s != '[' && *s != ']') {
			buf_putc(&b, *s);
		}
	}
	return b.text ? b.text : "";
}

static void print_body(struct dump *d, const struct role_body *b, int depth)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];
		/* iterations and coordinates follow from the name of the sTask's instance */
		bool is_hidden = o->what == DO_LET ? o->u.let.v.v[0].var == VAR_I || o->u.let.v.v[0].var == VAR_LO :
			role_op_info[o->what].traits & TRAIT_HIDDEN;

		if (is_hidden)
			continue;
		size_t start = d->out->len;
		const char *what = operands_text(d, o);
		buf_repeat(d->out, "  ", depth);
		buf_printf(d->out, "%s%s%s", role_op_info[o->what].name, *what ? " " : "", what);
		size_t width = d->out->len - start;
		if (o->why)
			buf_printf(d->out, "%*s; %s", width < WHY_COLUMN ? (int)(WHY_COLUMN - width) : 1, "", o->why);
		buf_putc(d->out, '\n');
		if (!role_is_region(o->what))
			continue;
		print_body(d, &o->u.region.body, depth + 1);
		if (!o->u.region.other.v.n)
			continue;
		buf_repeat(d->out, "  ", depth);
		buf_puts(d->out, "else\n");
		print_body(d, &o->u.region.other, depth + 1);
	}
}

static void print_shared(const struct role_program *r, struct buf *out)
{
	for (int i = 0; i < r->rings.n; i++) {
		const struct role_ring *x = &r->rings.v[i];

		buf_printf(out, "  ring %s: %d of %lld bytes at %lld\n", x->name, x->versions,
			(long long)x->slot_bytes, (long long)x->offset);
	}
	for (int i = 0; i < r->stagings.n; i++)
		if (r->stagings.v[i].bytes)
			buf_printf(out, "  staging of '%s': %d of %lld bytes a warp at %lld\n",
				r->tasks[r->stagings.v[i].task], r->stagings.v[i].batches,
				(long long)r->stagings.v[i].bytes, (long long)r->stagings.v[i].offset);
	for (int i = 0; i < r->flags.n; i++) {
		const struct role_flag *f = &r->flags.v[i];

		buf_printf(out, "  flag '%s': %d deep, %d arrival%s", f->name, f->depth, f->arrivals,
			f->arrivals == 1 ? "" : "s");
		if (f->bytes)
			buf_printf(out, ", %lld bytes", (long long)f->bytes);
		buf_printf(out, "%s at %lld\n", f->all ? ", of all blocks" : "", (long long)f->offset);
	}
}

void role_print(const struct role_program *r, struct buf *out)
{
	struct dump d = { .r = r, .out = out, .a = out->arena };

	buf_printf(out, "kernel %s, phase %s, for %s: %d threads, %lld bytes of shared memory", r->program,
		r->phase, r->device, r->threads, (long long)r->shared_bytes);
	if (r->cluster > 1)
		buf_printf(out, ", clusters of %d%s", r->cluster, r->ends_apart ? ", whose blocks end each for itself" : "");
	buf_putc(out, '\n');
	print_shared(r, out);
	if (r->meetings.interval)
		buf_printf(out, "  lanes meet at the block's barrier, %d time%s in an iteration\n", r->meetings.interval, r->meetings.interval == 1 ? "" : "s");
	else if (r->flags.n && r->target->shared.polled)
		buf_printf(out, "  flags are counters, which waiting warps read again and again: %s\n", r->why_flags);
	if (r->ncounters)
		buf_printf(out, "  lanes synchronize at counters: %d bytes at %lld\n", r->ncounters * ROLE_COUNTER_BYTES,
			(long long)r->counters);
	for (int i = 0; i < r->roles.n; i++) {
		const struct role *l = &r->roles.v[i];

		buf_printf(out, "lane %s", l->name);
		if (l->replicas > 1)
			buf_printf(out, ", replica %d of %d", l->replica, l->replicas);
		buf_printf(out, ": warps %d to %d", l->first_warp, l->first_warp + l->warps - 1);
		if (l->words)
			buf_printf(out, ", values in %d registers at most", l->words);
		if (l->words && l->words_in != NONE)
			buf_printf(out, ", in '%s'", r->tasks[l->words_in]);
		if (l->priority)
			buf_printf(out, ", products at priority %d", l->priority);
		buf_putc(out, '\n');
		print_body(&d, &l->body, 1);
	}
}
