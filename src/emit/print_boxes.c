/* Prints copies of boxes by a copy engine: between tensors, as tensor maps describe them, and panels in shared
 * memory. */
#include "emit/print.h"

/* The number of a map among the parameters. */
static int map_param(const struct print *c, int map)
{
	return c->r->tensors.n + 2 + map;	/* behind the order of tiles and where it starts */
}

static const char *coordinate_text(struct print *c, const struct role_box *b, int d)
{
	if (!b->value[d])
		return num(c, b->corner[d]);
	/* beyond an int it is outside of the tensor, also if it wraps around */
	return arena_strf(c->a, "(int)((u32)%s + (u32)(%s))", value(c, b->value[d]), num(c, b->corner[d]));
}

static const char *corner_text(struct print *c, const struct role_box *b, int rank)
{
	struct buf text;

	buf_init(&text, c->a);
	for (int d = 0; d < rank; d++)
		buf_printf(&text, ", %s", coordinate_text(c, b, d));
	return text.text;
}

/* Before the last box is copied, all coordinates that are values in shared memory have been read. The copy engine may
 * fill their slots again once the boxes are there, so the thread that has read them fences now. Returns the corner. */
static const char *put_last_corner(struct print *c, const struct role_box *b, int rank)
{
	struct buf text;
	bool values = false;

	buf_init(&text, c->a);
	for (int d = 0; d < rank; d++) {
		if (b->value[d])
			put(c, "\tconst int last%d = %s;", d, coordinate_text(c, b, d));
		buf_printf(&text, ", %s", b->value[d] ? arena_strf(c->a, "last%d", d) : coordinate_text(c, b, d));
		values |= b->value[d] != NULL;
	}
	if (values)
		put(c, "\tfence_async();");
	return text.text;
}

/* The bytes of the rows that a warp copies: `share` of the rows to each warp, as far as there are rows. */
static const char *bytes_of_warp(struct print *c, const struct role_op *o, long long share)
{
	long long rows = (long long)o->u.boxes.rows, each = (long long)o->u.boxes.bytes / rows;

	return rows == share * c->role->warps ? arena_strf(c->a, "%lld", share * each) :
		arena_strf(c->a, "max_of(0, min_of(%lld, %lld - warp_row)) * %lld", share, rows, each);
}

/* The indices of a row that are values, which all of its boxes have. */
static void put_row_values(struct print *c, const struct role_op *o, int rank)
{
	const struct role_box *b = &o->u.boxes.boxes.v[0];
	bool values = false;

	for (int d = 0; d < rank; d++) {
		if (b->value[d])
			put(c, "\tconst u32 value%d = (u32)%s;", d, value(c, b->value[d]));
		values |= b->value[d] != NULL;
	}
	if (values)			/* once the boxes are there, their slots may be filled again */
		put(c, "\tfence_async();");
}

/* The corner of one of the boxes of a row: beyond an int it is outside of the tensor, also if it wraps around. */
static const char *row_corner(struct print *c, const struct role_box *b, int rank)
{
	struct buf text;

	buf_init(&text, c->a);
	for (int d = 0; d < rank; d++)
		if (b->value[d])
			buf_printf(&text, num_is(b->corner[d], 0) ? ", (int)value%d" : ", (int)(value%d + (u32)(%s))", d,
				num(c, b->corner[d]));
		else
			buf_printf(&text, ", %s", num(c, b->corner[d]));
	return text.text;
}

/* Each warp has as many rows as the others, or fewer, and its threads issue the boxes of theirs. */
static void print_load_rows(struct print *c, const struct role_op *o)
{
	const struct role_map *m = &c->r->maps.v[o->u.boxes.map];
	int warps = c->role->warps, warp = c->r->target->warp;
	long long rows = (long long)o->u.boxes.rows, share = (rows + warps - 1) / warps;

	put(c, "const u32 full = %s;", flag_barrier(c, o, num(c, o->u.boxes.n)));
	if (warps > 1)
		put(c, "const int warp_row = UNIFORM(thread / %d) * %lld;", warp, share);
	put(c, "if (elect()) flag_expect(full, %s);", bytes_of_warp(c, o, share));
	put(c, "LOOP (int at = thread %% %d; at < %lld; at += %d) {", warp, share, warp);
	put(c, "\tconst int rb = 0, h = 0, j = 0, e = 0, row0 = %sat, col0 = 0;", warps > 1 ? "warp_row + " : "");
	if (rows != share * warps)
		put(c, "\tif (row0 >= %lld) break;", rows);
	put_row_values(c, o, m->rank);
	for (int i = 0; i < o->u.boxes.boxes.n; i++)
		put(c, "\ttma_load_%s%dd(%s, &map%d, full%s);", o->u.boxes.once ? "once_" : "", m->rank,
			num(c, o->u.boxes.boxes.v[i].to), map_param(c, o->u.boxes.map),
			row_corner(c, &o->u.boxes.boxes.v[i], m->rank));
	put(c, "}");
}

/* The flag completes without bytes if the slot has them; else the copy follows. */
static void put_kept(struct print *c, const struct role_op *o)
{
	const struct role_ring *r = &c->r->rings.v[o->u.boxes.ring];

	put(c, "\tconst u32 word = shared + %lld + 4 * rem(%s, %d), key = %s;", (long long)r->words, num(c, o->u.boxes.n), r->versions,
		num(c, o->u.boxes.key));
	put(c, "\tif (shared_u32(word) == key) flag_expect(full, 0);");
	put(c, "\telse {");
	put(c, "\tshared_put_u32(word, key);");
}

static void print_load_boxes(struct print *c, const struct role_op *o)
{
	const struct role_map *m = &c->r->maps.v[o->u.boxes.map];
	int map = map_param(c, o->u.boxes.map);

	put(c, "const u32 full = %s;", flag_barrier(c, o, num(c, o->u.boxes.n)));
	put(c, "if (leader) {");
	if (o->u.boxes.key)
		put_kept(c, o);
	put(c, "\tflag_expect(full, %lld);", (long long)o->u.boxes.bytes);
	for (int i = 0; i < o->u.boxes.boxes.n; i++) {
		const struct role_box *b = &o->u.boxes.boxes.v[i];
		const char *corner = i < o->u.boxes.boxes.n - 1 ? corner_text(c, b, m->rank) :
			put_last_corner(c, b, m->rank);

		if (o->u.boxes.multicast)
			put(c, "\t%stma_load_all_%dd(%s, &map%d, full, %d%s);", guard_text(c, b->when), m->rank,
				num(c, b->to), map, (1 << c->r->cluster) - 1, corner);
		else
			put(c, "\ttma_load_%s%dd(%s, &map%d, full%s);", o->u.boxes.once ? "once_" : "",
				m->rank, num(c, b->to), map, corner);
	}
	if (o->u.boxes.key)
		put(c, "}");
	put(c, "}");
}

static void print_store_boxes(struct print *c, const struct role_op *o)
{
	const struct role_box *b = &o->u.boxes.boxes.v[0];
	const struct role_map *m = &c->r->maps.v[o->u.boxes.map];

	put(c, "if (%s) {", o->u.boxes.elected ? "elected" : "leader");
	put(c, "\t%s%stma_%s_%dd(&map%d, %s%s);", each_panel(c, o->u.boxes.panels), guard_text(c, b->when),
		o->u.boxes.adds ? "add" : "store", m->rank, map_param(c, o->u.boxes.map), num(c, b->to), corner_text(c, b, m->rank));
	put(c, "}");
}

void print_boxes(struct print *c, const struct role_op *o)
{
	if (o->what == DO_STORE_BOXES)
		print_store_boxes(c, o);
	else if (o->u.boxes.rows)
		print_load_rows(c, o);
	else
		print_load_boxes(c, o);
}
