#include "device/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sets, checks and prints the fields of a vDevice. All fields that a file may have are in the two tables below;
 * everything in this file works on these. */

enum field_kind {
	NUM,
	GIGA,				/* a NUM given in 1e9s */
	INT,
	BYTES,				/* int64_t */
	FLAG,				/* 0 or 1; 0 if not given */
	KIND,
	TEXT,
};

enum field_over {
	ONE,
	TYPES,				/* an array by dtype ("flops.bf16"); 0 if not given */
	CLASSES,			/* an array by op_class ("ops.fma") */
};

/* The kinds of sEUs that have a field (and must have it, unless it has a default). */
enum {
	COPY = 1 << SEU_COPY,
	MATRIX = 1 << SEU_MATRIX,
	VECTOR = 1 << SEU_VECTOR,
	ALL = COPY | MATRIX | VECTOR,
};

/* The value of a field that was not given: less than any valid value. */
#define UNSET (-1.0)

struct field {
	const char *path;		/* of an sEU's field: what follows "seu.NAME." */
	enum field_kind kind;
	enum field_over over;
	unsigned of;
	size_t offset;
	double min, max;		/* as given, inclusive */
	const char *unit, *doc;
};

#define D(path, kind, member, min, max, unit, doc) \
	{ path, kind, ONE, 0, offsetof(struct vdevice, member), min, max, unit, doc }

static const struct field device_fields[] = {
	D("title", TEXT, title, 0, 0, "", "what people call it"),
	D("arch", TEXT, arch, 0, 0, "", "what compilers call it"),
	D("eus", INT, eus, 1, 1e6, "", "execution units: SMs, CUs, cores"),
	D("clock_ghz", GIGA, clock_hz, 0.01, 20, "GHz", "clock of the EUs"),

	D("limits.warp", INT, warp, 1, 1024, "threads", "of a warp or wave"),
	D("limits.max_threads", INT, max_threads, 1, 1e6, "threads", "of a block"),
	D("limits.registers", INT, registers, 1, 1e9, "", "32-bit, of an EU"),
	D("limits.thread_registers", INT, thread_registers, 1, 65536, "", "most a thread may have"),
	D("limits.register_step", INT, register_step, 1, 1024, "", "a thread has a multiple of it"),
	D("limits.reserved_registers", INT, reserved_registers, 0, 65536, "", "a thread's, for addresses and the like"),
	D("limits.named_barriers", INT, named_barriers, 0, 65536, "", "of a block"),
	D("limits.max_cluster", INT, max_cluster, 1, 1024, "EUs", "in a cluster"),
	D("limits.cluster_eus", INT, cluster_eus, 1, 1e6, "EUs", "that clusters of more than two can fill at once"),
	D("limits.chiplets", INT, chiplets, 1, 1024, "", "with a cache of their own, that blocks go round one by one"),

	D("memory.global.bytes", BYTES, global_bytes, 1, 0x1p50, "B", "device memory"),
	D("memory.global.rate", NUM, global_rate, 1, 1e18, "B/s", "of the device"),
	D("memory.global.uneven", NUM, global_uneven, 0, 0.5, "", "of the rate, that EUs which take tiles by a counter have in addition"),
	D("memory.global.switching", NUM, global_switching, 0, 10, "", "share by which a byte takes longer behind one of the other kind: read, written"),
	D("memory.global.latency", NUM, global_latency, 0, 1e9, "cycles", "of a read"),
	D("memory.l2.bytes", BYTES, l2_bytes, 1, 0x1p50, "B", "cache that all EUs share"),
	D("memory.l2.rate", NUM, l2_rate, 1e-3, 1e9, "B/cycle", "of the device"),
	D("memory.l2.eu_rate", NUM, l2_eu_rate, 1e-3, 1e9, "B/cycle", "that one EU can draw"),
	D("memory.l2.apart_rate", NUM, l2_apart_rate, 1e-3, 1e9, "B/cycle", "of the device, if EUs of clusters divide a loop"),
	D("memory.l2.thread_rate", NUM, l2_thread_rate, 1e-3, 1e9, "B/cycle", "... by loads of its threads"),
	D("memory.l2.warp_rate", NUM, l2_warp_rate, 1e-3, 1e9, "B/cycle", "... of one warp"),
	D("memory.l2.add_rate", NUM, l2_add_rate, 1e-3, 1e9, "B/cycle", "of the device, of additions in memory"),
	D("memory.l2.add_eu_rate", NUM, l2_add_eu_rate, 1e-3, 1e9, "B/cycle", "... of one EU"),
	D("memory.l2.add_interval", NUM, l2_add_interval, 0, 1e9, "cycles", "between additions to the same bytes"),
	D("memory.l2.latency", NUM, l2_latency, 0, 1e9, "cycles", "of a read that hits"),
	D("memory.l2.again", NUM, l2_again, 0, 0.9, "", "of a fetch's time, for another EU's request"),
	D("memory.shared.bytes", BYTES, shared_bytes, 1, 0x1p50, "B", "that a block can use"),
	D("memory.shared.rate", NUM, shared_rate, 1e-3, 1e9, "B/cycle", "of an EU"),
	D("memory.shared.peer_rate", NUM, peer_rate, 1e-3, 1e9, "B/cycle", "... of others in its cluster, to an EU"),
	D("memory.shared.peer_latency", NUM, peer_latency, 0, 1e9, "cycles",
		"of a signal to others of its cluster and a read from them"),

	D("sync.wait_cost", NUM, wait_cost, 0, 1e9, "cycles", "a wait that is satisfied"),
	D("sync.drain_cost", NUM, drain_cost, 0, 1e9, "cycles", "... for a lane's own products"),
	D("sync.tell_cost", NUM, tell_cost, 0, 1e9, "cycles", "an arrival at a flag"),
	D("sync.warp_cost", NUM, warp_cost, 0, 1e9, "cycles", "synchronisation of a warp"),
	D("sync.fence_cost", NUM, fence_cost, 0, 1e9, "cycles", "between writes of threads and reads of an engine"),
	D("sync.flag_latency", NUM, flag_latency, 0, 1e9, "cycles", "completion to another lane"),
	D("sync.issue_order_latency", NUM, issue_order_latency, 0, 1e9, "cycles",
		"issue to a lane that comes next in an issue order"),
	D("sync.handoff_latency", NUM, handoff_latency, 0, 1e9, "cycles", "registers to another lane, base"),
	D("sync.handoff_rate", NUM, handoff_rate, 1e-3, 1e9, "B/cycle", "... and on top of it"),
	D("sync.launch_seconds", NUM, launch_seconds, 0, 1e3, "s", "start of a kernel"),
	D("sync.early_seconds", NUM, early_seconds, 0, 1e3, "s", "... behind another one, if it is launched while that runs"),
	D("sync.ahead_seconds", NUM, ahead_seconds, 0, 1e3, "s", "... and so long before that its blocks begin"),
	D("sync.cluster_seconds", NUM, cluster_seconds, 0, 1e3, "s", "... whose EUs form clusters, in addition"),
	D("sync.tile_overhead", NUM, tile_overhead, 0, 1e9, "cycles", "a lane's, between output tiles"),

	D("power.limit", NUM, power_limit, 0, 1e6, "W", "of the device; 0: not known"),
	D("power.idle", NUM, power_idle, 0, 1e6, "W", "... whatever its EUs do"),
	D("power.product", NUM, energy[EFFORT_PRODUCT], 0, 1e9, "pJ/flop", "of products on 16 bits"),
	D("power.vector", NUM, energy[EFFORT_VECTOR], 0, 1e9, "pJ", "of a thread's operation"),
	D("power.l2", NUM, energy[EFFORT_L2], 0, 1e9, "pJ/B", "through L2"),
	D("power.l2_rows", NUM, l2_row_energy, 0, 10, "", "share by which loads of half a line take more, for their bytes"),
	D("power.global", NUM, energy[EFFORT_GLOBAL], 0, 1e9, "pJ/B", "of device memory"),
	D("power.eu", NUM, energy[EFFORT_EU], 0, 1e9, "pJ/cycle", "of an EU that has a tile"),

	D("uncertainty.products", NUM, uncertainty_products, 0, 10, "", "share of a time, if products bind"),
	D("uncertainty.other", NUM, uncertainty_other, 0, 10, "", "... if something else does"),
	D("uncertainty.least_products", NUM, least_products, 0, 10, "", "... at least, if it is not known, but that of a relative is"),
	D("uncertainty.least_other", NUM, least_other, 0, 10, "", "... at least, if something else binds"),
	D("uncertainty.order", NUM, uncertainty_order, 0, 10, "", "... of a difference"),
};

#define S(of, path, kind, over, member, min, max, unit, doc) \
	{ path, kind, over, of, offsetof(struct seu, member), min, max, unit, doc }

static const struct field seu_fields[] = {
	S(ALL, "kind", KIND, ONE, kind, 0, SEU_KINDS - 1, "", "copy, matrix or vector"),
	S(ALL, "async", FLAG, ONE, async, 0, 1, "", "the lane continues after the issue"),
	S(ALL, "ordered", FLAG, ONE, ordered, 0, 1, "", "a lane's work completes in order"),
	S(ALL, "issue", NUM, ONE, issue, 0, 1e9, "cycles", "of the lane, to issue an sTask"),
	S(ALL, "latency", NUM, ONE, latency, 0, 1e9, "cycles", "end of work to completion"),

	S(MATRIX, "flops", NUM, TYPES, flops, 0, 1e9, "flop/cycle", "dense, of an EU"),
	S(MATRIX, "efficiency", NUM, ONE, efficiency, 1e-3, 1, "", "share of it in long runs"),
	S(MATRIX, "step", NUM, ONE, step, 0, 1e9, "cycles", "of the lane, each further instruction"),
	S(MATRIX, "depth", NUM, ONE, depth, 1, 1e9, "", "instructions of a lane in flight, at most"),
	S(MATRIX, "clock_ghz", GIGA, ONE, clock_hz, 0.01, 20, "GHz", "clock of EUs when it has work"),
	S(MATRIX, "min_m", BYTES, ONE, min_m, 1, 65536, "rows", "of an instruction"),
	S(MATRIX, "min_n", BYTES, ONE, min_n, 1, 65536, "columns", "of an instruction, least"),
	S(MATRIX, "min_k", BYTES, ONE, min_k, 1, 65536, "B", "depth of an instruction"),

	S(VECTOR, "ops", NUM, CLASSES, ops, 1e-6, 1e9, "/cycle", "operations on elements"),
	S(VECTOR, "slots", NUM, ONE, slots, 1e-6, 1e9, "/cycle", "... over all classes"),
	S(VECTOR, "lane_share", NUM, ONE, lane_share, 1e-3, 1, "", "that a lane of 4 warps can use"),
	S(VECTOR, "contention", NUM, ONE, contention, 1e-3, 1, "", "of that, while a matrix unit works"),
	S(VECTOR, "by_age", NUM, ONE, by_age, 0, 1, "", "of the cycles, for the oldest work"),
	S(VECTOR, "chain", NUM, ONE, chain, 0, 1e9, "cycles", "to the next dependent instruction"),

	S(COPY, "box_bytes", NUM, ONE, box_bytes, 1, 1e12, "B", "that one instruction moves, at most"),
	S(COPY, "box_interval", NUM, ONE, box_interval, 0, 1e9, "cycles", "between instructions"),
	S(COPY, "row_interval", NUM, ONE, row_interval, 0, 1e9, "cycles", "... that bring a row each"),
	S(COPY, "add_interval", NUM, ONE, add_interval, 0, 1e9, "cycles", "... that add in memory"),
};

/* ORDER seu_kind */
static const char *const kind_names[] = { "copy", "matrix", "vector" };
_Static_assert(LEN(kind_names) == SEU_KINDS, "a name for every kind");

/* ORDER op_class. FREE costs nothing and MMA is costed from flops: no rate. */
static const char *const class_names[] = { NULL, "fma", "alu", "sfu", "cvt", "div", "reduce", "scan", "move", NULL };
_Static_assert(LEN(class_names) == CLASS_COUNT, "a name for every class");

/* Pairs of fields of which the first must not exceed the second. */
static const char *const at_most[][2] = {
	{ "limits.warp", "limits.max_threads" },
	{ "limits.register_step", "limits.thread_registers" },
	{ "limits.reserved_registers", "limits.thread_registers" },
	{ "limits.thread_registers", "limits.registers" },
	{ "memory.l2.eu_rate", "memory.l2.rate" },
	{ "memory.l2.thread_rate", "memory.l2.eu_rate" },
	{ "memory.l2.warp_rate", "memory.l2.thread_rate" },
	{ "memory.l2.add_rate", "memory.l2.rate" },
	{ "memory.l2.latency", "memory.global.latency" },
	{ "power.idle", "power.limit" },
};

enum { NAME_MAX_LEN = 31, PATH_MAX_LEN = 95 };

/* ORDER field_over */
static const int element_count[] = { 1, RATE_TYPES, CLASS_COUNT };

#define FOR_EACH_ELEMENT(f, i, fields, n) \
	for (const struct field *f = (fields); f < (fields) + (n); f++) \
		for (int i = 0; i < element_count[f->over]; i++)

/* The name of an array's element i, "bf16" of "flops.bf16"; "" if the field is no array; NULL if the element cannot
 * be given and stays 0. */
static const char *element_name(const struct field *f, int i)
{
	return f->over == ONE ? "" : f->over == TYPES ? dtype_name((enum dtype)i) : class_names[i];
}

/* The full path of an element, into path[PATH_MAX_LEN + 1]. */
static void field_path(char *path, const char *seu, const struct field *f, int i)
{
	snprintf(path, PATH_MAX_LEN + 1, "%s%s%s%s%s%s", seu ? "seu." : "", seu ? seu : "",
		seu ? "." : "", f->path, f->over == ONE ? "" : ".", element_name(f, i));
}

static double get_field(const void *base, const struct field *f, int i)
{
	const void *at = (const char *)base + f->offset;
	enum seu_kind kind;

	switch (f->kind) {
	case NUM: return ((const double *)at)[i];
	case GIGA: return *(const double *)at / 1e9;
	case INT: return *(const int *)at;
	case BYTES: return (double)*(const int64_t *)at;
	case FLAG: return *(const bool *)at;
	case KIND:
		kind = *(const enum seu_kind *)at;
		return kind == SEU_KINDS ? UNSET : (double)kind;
	case TEXT: return *(const char *const *)at ? 0 : UNSET;
	}
	return UNSET;
}

static void set_field(void *base, const struct field *f, int i, double v)
{
	void *at = (char *)base + f->offset;

	switch (f->kind) {
	case NUM: ((double *)at)[i] = v; break;
	case GIGA: *(double *)at = v * 1e9; break;
	case INT: *(int *)at = (int)v; break;
	case BYTES: *(int64_t *)at = (int64_t)v; break;
	case FLAG: *(bool *)at = v > 0; break;
	case KIND: *(enum seu_kind *)at = v < 0 ? SEU_KINDS : (enum seu_kind)v; break;
	case TEXT: *(const char **)at = NULL; break;
	}
}

static void clear_fields(void *base, const struct field *fields, int n)
{
	FOR_EACH_ELEMENT(f, i, fields, n)
		set_field(base, f, i, f->over == TYPES ? 0 : UNSET);
}

struct vdevice *device_new(struct mem *mem, const char *name)
{
	size_t len = strlen(name) + 1;
	struct arena arena;
	struct vdevice *d;

	arena_init(&arena, mem);
	d = arena_alloc(&arena, sizeof(*d) + len);	/* one allocation, so it fails or succeeds as one */
	d->arena = arena;
	d->name = memcpy(d + 1, name, len);
	clear_fields(d, device_fields, LEN(device_fields));
	return d;
}

void device_free(struct vdevice *d)
{
	struct arena arena;

	if (!d)
		return;
	arena = d->arena;		/* d itself is in its arena */
	arena_release(&arena);
}

static int find_seu(const struct vdevice *d, const char *name, size_t len)
{
	int i;

	FIND_FIRST(i, d->nseus, strlen(d->seu[i].name) == len && !memcmp(d->seu[i].name, name, len));
	return i;
}

int device_find_seu(const struct vdevice *d, const char *name)
{
	return find_seu(d, name, strlen(name));
}

/* What a path names. */
struct field_ref {
	const struct field *field;
	int index;
	int seu;			/* nseus: one still to be added; NONE: the device */
	char name[NAME_MAX_LEN + 1];	/* of the sEU */
};

/* Deprecated names of fields, which files may still use, and the names that replace them. */
static const char *const renamed[][2] = {
	{ "sync.turn_latency", "sync.issue_order_latency" },
	{ "doubt.products", "uncertainty.products" },
	{ "doubt.other", "uncertainty.other" },
	{ "doubt.order", "uncertainty.order" },
	{ "beside", "contention" },		/* of a vector sEU */
};

static bool find_field(const struct field *fields, int n, const char *path, struct field_ref *at)
{
	char full[PATH_MAX_LEN + 1];

	for (int i = 0; i < LEN(renamed); i++)
		if (!strcmp(path, renamed[i][0]))
			path = renamed[i][1];
	FOR_EACH_ELEMENT(f, i, fields, n) {
		if (!element_name(f, i))
			continue;
		field_path(full, NULL, f, i);
		if (!strcmp(full, path)) {
			at->field = f;
			at->index = i;
			return true;
		}
	}
	return false;
}

enum { FIELDS_MAX = LEN(device_fields) + LEN(seu_fields) + RATE_TYPES + CLASS_COUNT };

static enum err_code unknown_field(const struct vdevice *d, const char *seu,
	const struct field *fields, int n, const char *path, struct srcloc loc, struct err *e)
{
	char full[FIELDS_MAX][PATH_MAX_LEN + 1], prefix[NAME_MAX_LEN + sizeof("seu..")] = "";
	const char *names[FIELDS_MAX], *hint;
	int count = 0;

	FOR_EACH_ELEMENT(f, i, fields, n)
		if (element_name(f, i)) {
			field_path(full[count], NULL, f, i);
			names[count] = full[count];
			count++;
		}
	if (seu)
		snprintf(prefix, sizeof(prefix), "seu.%s.", seu);
	hint = nearest_name(path, names, count);
	if (!hint)
		return err_set(e, ERR_INPUT, loc, "device '%s' has no field '%s%s'", d->name, prefix, path);
	return err_set(e, ERR_INPUT, loc, "device '%s' has no field '%s%s'; did you mean '%s%s'?",
		d->name, prefix, path, prefix, hint);
}

static enum err_code resolve_path(const struct vdevice *d, const char *path, struct field_ref *at,
	struct srcloc loc, struct err *e)
{
	const char *name = path + strlen("seu.");
	size_t len;

	at->seu = NONE;
	if (strncmp(path, "seu.", strlen("seu."))) {
		if (find_field(device_fields, LEN(device_fields), path, at))
			return OK;
		return unknown_field(d, NULL, device_fields, LEN(device_fields), path, loc, e);
	}
	len = strcspn(name, ".");
	if (!len || len > NAME_MAX_LEN || (*name >= '0' && *name <= '9') || strspn(name, NAME_LETTERS) < len)
		return err_set(e, ERR_INPUT, loc, "'%s': an sEU is named by at most %d letters, "
			"digits and underscores, a digit not first", path, NAME_MAX_LEN);
	if (!name[len])
		return err_set(e, ERR_INPUT, loc, "'%s' is an sEU and holds fields, not a value", path);
	memcpy(at->name, name, len);
	at->name[len] = '\0';
	if (!find_field(seu_fields, LEN(seu_fields), name + len + 1, at))
		return unknown_field(d, at->name, seu_fields, LEN(seu_fields), name + len + 1, loc, e);
	at->seu = find_seu(d, name, len);
	if (at->seu == NONE)
		at->seu = d->nseus;
	if (at->seu == SEU_MAX)
		return err_set(e, ERR_LIMIT, loc, "sEU '%s' is one too many: a device has at "
			"most %d", at->name, SEU_MAX);
	return OK;
}

/* The record that has the field; adds the sEU if it is new. */
static void *record_of(struct vdevice *d, const struct field_ref *at)
{
	struct seu *s;

	if (at->seu == NONE)
		return d;
	s = &d->seu[at->seu];
	if (at->seu == d->nseus) {
		clear_fields(s, seu_fields, LEN(seu_fields));
		s->name = arena_strdup(&d->arena, at->name);
		d->nseus++;
	}
	return s;
}

enum err_code device_set_number(struct vdevice *d, const char *path, double v, struct srcloc loc, struct err *e)
{
	struct field_ref at;
	const struct field *f;

	TRY(resolve_path(d, path, &at, loc, e));
	f = at.field;
	if (f->kind == TEXT || f->kind == KIND)
		return err_set(e, ERR_INPUT, loc, "'%s' takes a text, not the number %g", path, v);
	if (!(v >= f->min && v <= f->max))
		return err_set(e, ERR_INPUT, loc, "'%s' is %g%s%s; it must be from %g to %g",
			path, v, *f->unit ? " " : "", f->unit, f->min, f->max);
	if (f->kind != NUM && f->kind != GIGA && v != floor(v))
		return err_set(e, ERR_INPUT, loc, "'%s' is %g; it must be an integer", path, v);
	set_field(record_of(d, &at), f, at.index, v);
	return OK;
}

enum err_code device_number(const struct vdevice *d, const char *path, double *v, struct srcloc loc, struct err *e)
{
	struct field_ref at;

	TRY(resolve_path(d, path, &at, loc, e));
	if (at.field->kind == TEXT || at.field->kind == KIND)
		return err_set(e, ERR_INPUT, loc, "'%s' is a text, not a number", path);
	if (at.seu == d->nseus)
		return err_set(e, ERR_INPUT, loc, "device '%s' has no sEU '%s'", d->name, at.name);
	*v = get_field(at.seu == NONE ? (const void *)d : &d->seu[at.seu], at.field, at.index);
	return OK;
}

enum err_code device_set_text(struct vdevice *d, const char *path, const char *v, struct srcloc loc, struct err *e)
{
	struct field_ref at;
	char *record;
	int kind = 0;

	TRY(resolve_path(d, path, &at, loc, e));
	if (at.field->kind == TEXT) {
		if (!*v)
			return err_set(e, ERR_INPUT, loc, "'%s' is an empty text", path);
		record = record_of(d, &at);
		*(const char **)(void *)(record + at.field->offset) = arena_strdup(&d->arena, v);
		return OK;
	}
	if (at.field->kind != KIND)
		return err_set(e, ERR_INPUT, loc, "'%s' takes a number, not the text '%s'", path, v);
	while (kind < SEU_KINDS && strcmp(kind_names[kind], v))
		kind++;
	if (kind == SEU_KINDS)
		return err_set(e, ERR_INPUT, loc, "'%s' is '%s'; it must be copy, matrix or vector", path, v);
	set_field(record_of(d, &at), at.field, 0, kind);
	return OK;
}

/* Check that a record has all fields that it must have, and no others; of an sEU those are set to 0. */
static enum err_code finish_record(const struct vdevice *d, void *base, const char *seu,
	const struct field *fields, int n, unsigned kinds, struct srcloc loc, struct err *e)
{
	char path[PATH_MAX_LEN + 1];

	FOR_EACH_ELEMENT(f, i, fields, n) {
		bool has = element_name(f, i) && (f->of & kinds) == kinds;

		if (!has && !(get_field(base, f, i) > 0)) {
			set_field(base, f, i, 0);
			continue;
		}
		field_path(path, seu, f, i);
		if (!has)
			return err_set(e, ERR_INPUT, loc, "'%s' is given, but a %s sEU has no such field", path,
				kind_names[((const struct seu *)base)->kind]);
		if (get_field(base, f, i) < f->min)
			return err_set(e, ERR_INPUT, loc, "device '%s' lacks '%s' (%s%s%s)", d->name, path, f->doc,
				*f->unit ? ", in " : "", f->unit);
	}
	return OK;
}

static enum err_code finish_seu(const struct vdevice *d, struct seu *s, struct srcloc loc, struct err *e)
{
	bool any = false;

	/* the kind first, since it decides which other fields there are */
	TRY(finish_record(d, s, s->name, seu_fields, 1, ALL, loc, e));
	TRY(finish_record(d, s, s->name, seu_fields, LEN(seu_fields), 1u << s->kind, loc, e));
	for (int i = 0; i < RATE_TYPES; i++)
		any |= s->flops[i] > 0;
	if (s->kind == SEU_MATRIX && !any)
		return err_set(e, ERR_INPUT, loc, "device '%s' lacks 'seu.%s.flops.TYPE': a matrix "
			"sEU supports at least one type", d->name, s->name);
	return OK;
}

static enum err_code check_limits(const struct vdevice *d, struct srcloc loc, struct err *e)
{
	for (int i = 0; i < LEN(at_most); i++) {
		const char *const *names = at_most[i];
		double low, high;

		TRY(device_number(d, names[0], &low, loc, e));
		TRY(device_number(d, names[1], &high, loc, e));
		if (low > high)
			return err_set(e, ERR_INPUT, loc, "'%s' is %g; it must not exceed '%s', which is %g", names[0],
				low, names[1], high);
	}
	if (d->max_threads % d->warp)
		return err_set(e, ERR_INPUT, loc, "'limits.max_threads' is %d; it must be a "
			"multiple of 'limits.warp', which is %d", d->max_threads, d->warp);
	return OK;
}

static void use_default(double *x, double value)
{
	if (*x < 0)			/* UNSET, of whatever unit */
		*x = value;
}

static void use_defaults(struct vdevice *d)
{
	d->chiplets = d->chiplets < 0 ? 1 : d->chiplets;
	use_default(&d->l2_apart_rate, d->l2_rate);
	use_default(&d->l2_thread_rate, d->l2_eu_rate);
	use_default(&d->l2_warp_rate, d->l2_thread_rate / 2);
	use_default(&d->l2_add_rate, d->l2_rate / 2);	/* a read and a write */
	use_default(&d->l2_add_eu_rate, d->l2_eu_rate);
	use_default(&d->l2_add_interval, 0);
	use_default(&d->peer_rate, d->l2_thread_rate);
	use_default(&d->peer_latency, d->l2_latency);
	use_default(&d->l2_again, 0);
	use_default(&d->early_seconds, d->launch_seconds);
	use_default(&d->ahead_seconds, 0);
	use_default(&d->cluster_seconds, 0);
	use_default(&d->global_uneven, 0);
	use_default(&d->global_switching, 0);
	use_default(&d->drain_cost, d->wait_cost);
	use_default(&d->uncertainty_products, 0);
	use_default(&d->uncertainty_other, 0);
	use_default(&d->least_products, 0);
	use_default(&d->least_other, 0);
	use_default(&d->uncertainty_order, 0);
	use_default(&d->power_limit, 0);
	use_default(&d->l2_row_energy, 0);
	if (!d->power_limit) {
		use_default(&d->power_idle, 0);
		for (int i = 0; i < EFFORT_KINDS; i++)
			use_default(&d->energy[i], 0);
	}
	for (int i = 0; i < d->nseus; i++) {
		struct seu *s = &d->seu[i];

		if (s->kind == SEU_VECTOR) {
			use_default(&s->contention, 1);
			use_default(&s->by_age, 0);
		}
		if (s->kind == SEU_COPY) {
			use_default(&s->row_interval, s->box_interval);
			use_default(&s->add_interval, s->box_interval);
		}
		if (s->kind == SEU_MATRIX) {
			use_default(&s->step, 0);
			use_default(&s->depth, 1e9);
			use_default(&s->clock_hz, d->clock_hz);
		}
	}
}

enum err_code device_finish(struct vdevice *d, struct srcloc loc, struct err *e)
{
	bool vector = false;

	use_defaults(d);
	TRY(finish_record(d, d, NULL, device_fields, LEN(device_fields), 0, loc, e));
	TRY(check_limits(d, loc, e));
	for (int i = 0; i < d->nseus; i++) {
		TRY(finish_seu(d, &d->seu[i], loc, e));
		vector |= d->seu[i].kind == SEU_VECTOR;
	}
	if (!vector)
		return err_set(e, ERR_INPUT, loc, "device '%s' lacks a vector sEU, which "
			"element-wise work needs", d->name);
	return OK;
}

static void print_record(const void *base, const char *seu, const struct field *fields, int n,
	unsigned kinds, struct buf *out)
{
	char path[PATH_MAX_LEN + 1];

	FOR_EACH_ELEMENT(f, i, fields, n) {
		if (f->kind == TEXT || f->kind == KIND || f->kind == FLAG || (f->of & kinds) != kinds ||
		    !element_name(f, i) || (f->over == TYPES && !(get_field(base, f, i) > 0)))
			continue;
		field_path(path, seu, f, i);
		buf_printf(out, "  %-26s %12.9g %-11s %s\n", path, get_field(base, f, i), f->unit, f->doc);
	}
}

void device_print(const struct vdevice *d, struct buf *out)
{
	buf_printf(out, "%s: %s (%s)\n", d->name, d->title, d->arch);
	print_record(d, NULL, device_fields, LEN(device_fields), 0, out);
	for (int i = 0; i < d->nseus; i++) {
		const struct seu *s = &d->seu[i];

		buf_printf(out, "sEU %s: %s%s%s\n", s->name, kind_names[s->kind],
			s->async ? ", asynchronous" : "", s->ordered ? ", in order" : "");
		print_record(s, s->name, seu_fields, LEN(seu_fields), 1u << s->kind, out);
	}
}
