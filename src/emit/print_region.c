/* Regions, counters and slots. */
#include "emit/print.h"

static const char *var(struct print *c, enum var v, int of)
{
	return var_text(c->a, v, of, &c->r->names);
}

static void put_region(struct print *c, const struct role_body *b)
{
	c->indent++;
	print_body(c, b);
	c->indent--;
}

/* { ... }, with a note behind the brace. */
static void put_block(struct print *c, const char *note, const struct role_body *b)
{
	put(c, note ? "{\t/* %s */" : "{", note);
	put_region(c, b);
	put(c, "}");
}

static bool multiplies(const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_PRODUCT || (role_op_info[o->what].group == OPS_REGION &&
		    (multiplies(&o->u.region.body) || multiplies(&o->u.region.other))))
			return true;
	}
	return false;
}

/* The operations of an sTask; products, and what is among them, at the lane's priority. */
static void put_prioritized(struct print *c, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		struct role_body one = { .v = { .v = &b->v.v[i], .n = 1 } };
		bool raised = multiplies(&one);

		if (raised)
			put(c, "PRIORITY(%d);", c->role->priority);
		print_body(c, &one);
		if (raised)
			put(c, "PRIORITY(0);");
		c->priority |= raised;
	}
}

/* A block in which values may lie in another way than around it. */
static void put_block_of(struct print *c, const struct role_op *o)
{
	const struct frag_layout *around = c->layout;

	if (!o->u.region.layout) {
		put_block(c, o->u.region.note, &o->u.region.body);
		return;
	}
	c->layout = o->u.region.layout;
	put(c, "{\t/* %s */", o->u.region.note);
	c->indent++;
	put_coordinates(c, c->layout);
	print_body(c, &o->u.region.body);
	c->indent--;
	put(c, "}");
	c->layout = around;
}

static void put_task(struct print *c, const struct role_op *o)
{
	const char *name = role_task_names(c->a, c->r, o), *where = "once a tile";

	if (o->u.region.iteration)
		where = arena_strf(c->a, "%s %s", o->u.region.of != NONE ? "iteration" : "tile",
			num(c, o->u.region.iteration));
	if (!c->role->priority || !multiplies(&o->u.region.body)) {
		put_block(c, arena_strf(c->a, "%s, %s", name, where), &o->u.region.body);
		return;
	}
	put(c, "{\t/* %s, %s */", name, where);
	c->indent++;
	put_prioritized(c, &o->u.region.body);
	c->indent--;
	put(c, "}");
}

/* The name of a position in the order of tiles: that of the tile, where both are the same number. */
static const char *position(const struct print *c)
{
	return c->r->names.tiles && !c->r->names.tile_at ? "tile" : "at";
}

/* The tile at that position. */
static void put_tile_at(struct print *c)
{
	if (c->r->names.tile_at)
		put(c, "const int tile = %s(at);", c->r->names.tile_at);
	else if (!c->r->names.tiles)
		put(c, "const int tile = order[at];");
}

/* Tiles that the block takes by a counter; `taken` counts them. The number of the next one is in the loop's header, as a replica goes on
 * with it from within a tile, too. */
static void put_taken_tiles(struct print *c, const struct role_op *o)
{
	const struct role_taken *x = &c->r->taken;
	const char *at = position(c);
	long long counted = max_i64(0, x->tiles - (int64_t)x->own * x->blocks) + x->blocks, tiles = x->tiles;
	const char *ask = arena_strf(c->a, "tile_ask(counter, %lld)", counted - 1);
	const char *ring = arena_strf(c->a, "shared + %lld, taken - %d, %d", (long long)x->offset, x->own, x->slots);
	const char *next = arena_strf(c->a, "number_get(%s)", ring);

	put(c, "int taken = 0;");
	if (o->u.region.asks) {
		put(c, "int ahead = leader ? %s : -1;", ask);
		next = arena_strf(c->a, "(ahead = number_put(ahead, %d, %lld, %s) ? %s : -1, WARP_SYNC(), %s)", x->own * x->blocks,
			tiles, ring, ask, next);
	}
	if (x->own > 1)
		next = arena_strf(c->a, "taken < %d ? %s + %d : %s", x->own, at, x->blocks, next);
	put(c, "LOOP (int %s = BLOCK; %s < %lld; %s = %s) {", at, at, tiles, at, next);
	c->indent++;
	put(c, "const int t = taken++;");
	put_tile_at(c);
	print_body(c, &o->u.region.body);
	c->indent--;
	put(c, "}");
}

static void put_tiles(struct print *c, const struct role_op *o)
{
	long long n = (long long)c->r->names.tiles;
	int blocks = c->r->names.blocks;
	const char *at = position(c);

	if (o->u.region.hidden)
		put(c, "LOOP (int t = 0;; t++) {");
	else if (n)
		put(c, "LOOP (int %s = BLOCK, t = 0; %s < %lld; %s += %d, t++) {", at, at, n, at, blocks);
	else
		put(c, "LOOP (int at = start[BLOCK], t = 0; at < start[BLOCK + 1]; at++, t++) {");
	c->indent++;
	if (o->u.region.hidden && n) {
		put(c, "const int %s = opaque(BLOCK) + t * %d;", at, blocks);
		put(c, "if (%s >= %lld) break;", at, n);
	} else if (o->u.region.hidden) {
		put(c, "const int block = opaque(BLOCK), at = start[block] + t;");
		put(c, "if (at >= start[block + 1]) break;");
	}
	put_tile_at(c);
	print_body(c, &o->u.region.body);
	c->indent--;
	put(c, "}");
}

static void put_loop(struct print *c, const struct role_op *o)
{
	const char *i = var(c, o->u.region.var, o->u.region.of), *note = o->u.region.note;
	const char *first = o->u.region.from ? arena_strf(c->a, "int %s = %s", i, num(c, o->u.region.from)) : "";
	const char *step = o->u.region.step == 1 ? arena_strf(c->a, "%s++", i) :
		arena_strf(c->a, "%s += %d", i, o->u.region.step);
	const char *end = o->u.region.end ? arena_strf(c->a, " %s < %s", i, num(c, o->u.region.end)) : "";
	const char *hide = o->u.region.hidden ? "opaque" : "";

	if (o->u.region.run_while)
		end = arena_strf(c->a, "%s && %s(%s)", end, hide, num(c, o->u.region.run_while));
	if (o->u.region.run_until)
		end = arena_strf(c->a, "%s && !%s(%s)", end, hide, num(c, o->u.region.run_until));
	put(c, "LOOP (%s;%s; %s) {%s", first, end, step, note ? arena_strf(c->a, "\t/* %s */", note) : "");
	put_region(c, &o->u.region.body);
	/* nvcc knows from the second condition how many iterations there are at most. */
	if ((o->u.region.run_while || o->u.region.run_until) && !o->u.region.hidden && c->r->target->forgets_loops)
		put(c, "\topaque(0);\t/* so that the loop stays one */");
	put(c, "}");
}

static void put_each(struct print *c, const struct role_op *o)
{
	put(c, "EACH(%s, %d) {", var(c, o->u.region.var, o->u.region.of), o->u.region.step);
	put_region(c, &o->u.region.body);
	put(c, "}");
}

static void put_if(struct print *c, const struct role_op *o)
{
	const char *start = "";

	for (;;) {
		const struct role_body *other = &o->u.region.other;

		put(c, "%sif (%s) {%s", start, num(c, o->u.region.when), o->u.region.note ?
			arena_strf(c->a, "\t/* %s */", o->u.region.note) : "");
		put_region(c, &o->u.region.body);
		put(c, "}");
		if (!other->v.n)
			return;
		if (other->v.n > 1 || other->v.v[0]->what != DO_IF) {
			put(c, "else {");
			put_region(c, other);
			put(c, "}");
			return;
		}
		o = other->v.v[0];
		start = "else ";
	}
}

static void put_let(struct print *c, const struct role_op *o)
{
	struct buf b;

	buf_init(&b, c->a);
	for (int i = 0; i < o->u.let.v.n; i++) {
		const struct role_let *l = &o->u.let.v.v[i];

		buf_printf(&b, "%s%s = %s%s%s", i ? ", " : "", var(c, l->var, l->of),
			o->u.let.hidden ? "opaque(" : "", num(c, l->to), o->u.let.hidden ? ")" : "");
	}
	put(c, "%s%s %s;", o->u.let.changes ? "" : "const ", o->u.let.v.v[0].var == VAR_TO ? "u32" : "int", b.text);
}

static void put_change(struct print *c, const struct role_op *o)
{
	const struct role_let *l = o->u.let.v.v;
	const char *name = var(c, l->var, l->of);

	if (o->what == DO_SET)
		put(c, "%s = %s;", name, num(c, l->to));
	else if (num_is(l->to, 1))
		put(c, "%s++;", name);
	else
		put(c, "%s += %s;", name, num(c, l->to));
}

/* The thread's number in the lane, and its coordinates in fragments. The mask changes nothing: it says how large the
 * number can be, so that compilers divide it by shifts and fold what is added. A number that compilers know to be less
 * than a block's threads is limited by `%` instead: with a mask they fold so early that more is kept in registers, and
 * plans of 200 words spill. */
void put_thread(struct print *c, const char *number, bool known, const struct frag_layout *l)
{
	int span = role_thread_span(c->role, c->r->target), warp = warp_threads(c);

	if (!role_is_aligned(c->role, c->r->target))
		put(c, "const int thread = (%s - %s) & %d;", number, by_lane(c, c->role->first_warp * warp,
			second_role(c)->first_warp * warp), span - 1);
	else if (known)
		put(c, "const int thread = %s %% %d;", number, span);
	else
		put(c, "const int thread = %s & %d;", number, span - 1);
	put_coordinates(c, l);
}

static void put_opaque(struct print *c, const struct role_op *o)
{
	const char *number = "opaque(THREAD)";

	if (o->u.opaque.again)
		number = arena_strf(c->a, "recomputed(THREAD, %d)", o->u.opaque.again);
	c->recomputed |= o->u.opaque.again;
	put_thread(c, number, o->u.opaque.unmasked, layout(c));
}

static void put_lane(struct print *c, const struct role_op *o)
{
	put_thread(c, "THREAD", true, layout(c));
	put(c, "const int leader = warp == %s && elect();", by_lane(c, o->u.lane.warp, second_of(o)->u.lane.warp));
	if (o->u.lane.stores)
		put(c, "const int elected = elect();\t/* of each warp: it issues its stores */");
	put(c, "const int group = UNIFORM(thread / %d);", warp_threads(c) * c->r->target->group);
}

static void put_slot(struct print *c, const struct role_op *o)
{
	const struct role_ring *r = &c->r->rings.v[o->u.slot.ring];

	put(c, "const u32 %s = shared + %s + rem(%s, %d) * %lld;", var(c, VAR_SLOT, o->u.slot.ring),
		by_lane(c, r->offset, c->r->rings.v[second_of(o)->u.slot.ring].offset), num(c, o->u.slot.life),
		r->versions, (long long)r->slot_bytes);
}

static void put_fragment(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.frag.at.frag;

	if (is_in_bits(c, f)) {
		put(c, "u32 %s[%d][%d] = { 0 };", f->name, f->blocks, bits_block_words(f));
		return;
	}
	put(c, "%s %s%s%s;", frag_type(f), f->name, f->versions ? arena_strf(c->a, "[%d]",
		f->versions) : "", frag_dims(c, f));
}

/* The name of the operation's sTask as a C expression: merged lanes have one each. */
static const char *task_name(struct print *c, const struct role_op *o)
{
	struct buf b;
	bool differ = false;

	for (int l = 0; o->merged && o->merged[l]; l++)
		differ |= o->merged[l]->task != o->task;
	if (!differ)
		return arena_strf(c->a, "\"%s\"", c->r->tasks[o->task]);
	buf_init(&b, c->a);
	for (int l = 0; o->merged[l]; l++)
		if (o->merged[l + 1])
			buf_printf(&b, "%swho == %d ? \"%s\" : ", l ? "" : "(", l, c->r->tasks[o->merged[l]->task]);
		else
			buf_printf(&b, "\"%s\")", c->r->tasks[o->merged[l]->task]);
	return b.text;
}

static void put_at(struct print *c, const struct role_op *o)
{
	put(c, "AT(%s, %s);", task_name(c, o), var(c, o->u.let.v.v[0].var, o->u.let.v.v[0].of));
}

static void put_pin(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.frag.at.frag;

	c->fresh |= o->u.frag.fresh;
	put(c, "EACH(rb, %d) %s_%c(%s[rb], %d);", f->blocks, o->u.frag.fresh ? "FRESH" : "PIN", f->packed || !dtype_is_float(f->type) ? 'U' : 'F',
		frag_name(c, o->u.frag.at), o->u.frag.words);
}

static void print_region(struct print *c, const struct role_op *o)
{
	switch ((int)o->what) {
	case DO_BLOCK: put_block_of(c, o); break;
	case DO_TASK: put_task(c, o); break;
	case DO_TILES: (o->u.region.taken ? put_taken_tiles : put_tiles)(c, o); break;
	case DO_LOOP: put_loop(c, o); break;
	case DO_EACH: put_each(c, o); break;
	case DO_IF: put_if(c, o); break;
	default: BUG("'%s' has no text", role_op_info[o->what].name);
	}
}

static void print_control(struct print *c, const struct role_op *o)
{
	switch ((int)o->what) {
	case DO_BREAK: put(c, "break;"); break;
	case DO_CONTINUE: put(c, "continue;"); break;
	case DO_AT: put_at(c, o); break;
	case DO_OPAQUE: put_opaque(c, o); break;
	case DO_LANE: put_lane(c, o); break;
	case DO_REGISTERS:
		put(c, "SET_REGISTERS(%s, %d);", o->u.registers.more ? "inc" : "dec", o->u.registers.n);
		break;
	case DO_LEAVE: put(c, "if (warp >= %d) return;", o->u.lane.warp); break;
	case DO_COUNT_TILES: put(c, "const int tiles = %s;", var(c, VAR_ALL_TILES, NONE)); break;
	case DO_LET: put_let(c, o); break;
	case DO_SET: case DO_ADVANCE: put_change(c, o); break;
	case DO_FRAGMENT: put_fragment(c, o); break;
	case DO_PIN: put_pin(c, o); break;
	case DO_SLOT: put_slot(c, o); break;
	default: BUG("'%s' has no text", role_op_info[o->what].name);
	}
}

void print_body(struct print *c, const struct role_body *b)
{
	static void (*const print[])(struct print *c, const struct role_op *o) = {
		[OPS_REGION] = print_region, [OPS_CONTROL] = print_control, [OPS_SYNC] = print_sync,
		[OPS_MOVE] = print_move, [OPS_MATH] = print_math, [OPS_STAMP] = print_stamp,
	};

	for (int i = 0; i < b->v.n; i++)
		print[role_op_info[b->v.v[i]->what].group](c, b->v.v[i]);
}
