/* A vDevice as tables. */
#include "draw/draw.h"
#include "draw/pen.h"
#include "draw/units.h"

static const char *seu_kind_label(enum seu_kind k)
{
	static const char *const names[] = { "copy", "matrix", "vector" };

	return k < SEU_KINDS ? names[k] : "?";
}

/* The rates that make a unit what it is, over all EUs: "bf16 989 TFLOP/s". */
static const char *peak(const struct vdevice *d, const struct seu *s, struct arena *a)
{
	struct buf b;

	buf_init(&b, a);
	for (int t = 0; t < DT_COUNT && s->kind == SEU_MATRIX; t++)
		if (s->flops[t] > 0)
			buf_printf(&b, "%s%s %s", b.len ? ", " : "", dtype_name((enum dtype)t),
				unit_si(s->flops[t] * d->eus * d->clock_hz, "FLOP/s").s);
	if (s->kind == SEU_VECTOR) {
		if (s->ops[CLASS_FMA] > 0)
			buf_printf(&b, "fma %s", unit_si(s->ops[CLASS_FMA] * d->eus * d->clock_hz,
				"op/s").s);
		if (s->ops[CLASS_SFU] > 0)
			buf_printf(&b, ", sfu %s", unit_si(s->ops[CLASS_SFU] * d->eus *
				d->clock_hz, "op/s").s);
	}
	return b.text;
}

static void put_seus(const struct vdevice *d, struct pen *pen)
{
	static const struct column col[] = {
		{ "sEU", ALIGN_LEFT, 0, 0 }, { "kind", ALIGN_LEFT, 0, 0 },
		{ "lanes", ALIGN_LEFT, 0, 3 }, { "issue", ALIGN_RIGHT, 0, 2 },
		{ "latency", ALIGN_RIGHT, 0, 1 }, { "all EUs", ALIGN_LEFT, 12, 0 },
	};
	struct table t;

	table_init(&t, pen->arena, col, LEN(col));
	for (int i = 0; i < d->nseus; i++) {
		const struct seu *s = &d->seu[i];
		struct table_cell *row = table_row(&t);

		row[0].text = s->name;
		row[1].text = seu_kind_label(s->kind);
		row[2].text = !s->async ? "synchronous" : s->ordered ? "async, in order" : "async";
		row[3].text = arena_strf(t.arena, "%.4g", s->issue);
		row[4].text = arena_strf(t.arena, "%.4g", s->latency);
		row[5].text = peak(d, s, t.arena);
	}
	pen_section(pen, "sEUs of one EU (cycles)");
	pen_table(pen, &t);
}

static void add_memory(struct table *t, const char *name, double bytes, double cycle_rate,
	const struct vdevice *d, double latency)
{
	struct table_cell *row = table_row(t);
	double second = cycle_rate * d->clock_hz;

	row[0].text = name;
	row[1].text = arena_strf(t->arena, "%s", unit_bytes(bytes).s);
	row[2].text = arena_strf(t->arena, "%s", unit_si(second, "B/s").s);
	row[3].text = arena_strf(t->arena, "%.3g", cycle_rate / d->eus);
	row[4].text = latency > 0 ? arena_strf(t->arena, "%.4g", latency) : NULL;
}

static void put_memories(const struct vdevice *d, struct pen *pen)
{
	static const struct column col[] = {
		{ "memory", ALIGN_LEFT, 0, 0 }, { "size", ALIGN_RIGHT, 0, 0 },
		{ "rate", ALIGN_RIGHT, 0, 1 }, { "B/cycle of an EU", ALIGN_RIGHT, 0, 3 },
		{ "latency", ALIGN_RIGHT, 0, 2 },
	};
	struct table t;

	table_init(&t, pen->arena, col, LEN(col));
	add_memory(&t, "device", (double)d->global_bytes, d->global_rate / d->clock_hz, d,
		d->global_latency);
	add_memory(&t, "L2", (double)d->l2_bytes, d->l2_rate, d, d->l2_latency);
	add_memory(&t, "shared, an EU", (double)d->shared_bytes, d->shared_rate * d->eus, d, 0);
	pen_section(pen, "memories");
	pen_table(pen, &t);
}

static void put_limits(const struct vdevice *d, struct pen *pen)
{
	struct buf b;

	buf_init(&b, pen->arena);
	buf_printf(&b, "%d threads in warps of %d, ", d->max_threads, d->warp);
	buf_printf(&b, "%s registers, %d a thread, ", unit_count(d->registers).s,
		d->thread_registers);
	buf_printf(&b, "%d named barriers, clusters of up to %d", d->named_barriers,
		d->max_cluster);
	pen_section(pen, "limits of one EU");
	pen_wrap(pen, "  ", 2, b.text);
	pen_section(pen, "synchronisation (cycles)");
	buf_init(&b, pen->arena);
	buf_printf(&b, "wait %.4g, flag %.4g, turn %.4g, hand-off %.4g + bytes / %.4g, "
		"between tiles %.4g", d->wait_cost, d->flag_latency, d->turn_latency,
		d->handoff_latency, d->handoff_rate, d->tile_overhead);
	pen_wrap(pen, "  ", 2, b.text);
}

void draw_device(const struct vdevice *d, const struct draw_options *o, struct buf *out)
{
	struct pen pen = pen_new(o, out);

	pen_name(&pen, arena_strf(pen.arena, "%s:", d->name), arena_strf(pen.arena,
		"%s (%s), %d EUs at %.4g GHz", d->title ? d->title : d->name,
		d->arch ? d->arch : "?", d->eus, d->clock_hz / 1e9));
	put_seus(d, &pen);
	put_memories(d, &pen);
	put_limits(d, &pen);
}
