/* Reads of shared memory that a block does ahead of its expressions: under all conditions that these have around them. */
#include "emit/print.h"
#include "tests/tap.h"

static const struct val *made(struct arena *a, struct val v)
{
	return arena_copy(a, &v, 1, sizeof(v));
}

static const struct num *before(struct arena *a, enum var v, int64_t end)
{
	return num_make(a, NUM_LT, num_var(a, v, -1), num_const(a, end));
}

static const struct val *guard(struct arena *a, const struct num *when, const struct val *x)
{
	return made(a, (struct val){ .kind = VAL_GUARD, .type = DT_I32, .num = when,
		.arg = { x, made(a, (struct val){ .kind = VAL_CONST, .type = DT_I32 }) } });
}

static const struct val *sum(struct arena *a, const struct val *x, const struct val *y)
{
	return made(a, (struct val){ .kind = VAL_OP, .type = DT_I32, .op = OP_ADD, .arg = { x, y } });
}

/* The reads of a value in a block that has fields of 4 bits, and then the value. */
static void has_text(struct arena *a, const struct val *v, const char *want, const char *what)
{
	struct role_program r = { 0 };
	struct buf out;
	struct print c = { .r = &r, .a = a, .out = &out, .shares_reads = true };

	buf_init(&out, a);
	begin_reads(&c, v);
	put_reads(&c, "");
	put(&c, "%s", value(&c, v));
	end_reads(&c);
	is_str(out.text, want, what);
}

int main(void)
{
	struct mem mem = { 0 };
	const struct val *at_h, *at_0;
	const struct num *rows, *groups;
	struct arena a;

	arena_init(&a, &mem);
	at_h = made(&a, (struct val){ .kind = VAL_SHARED, .type = DT_I32, .from = DT_I32, .together = 1,
		.num = num_var(&a, VAR_H, -1) });
	at_0 = made(&a, (struct val){ .kind = VAL_SHARED, .type = DT_I32, .from = DT_I32, .together = 1, .num = num_const(&a, 0) });
	rows = before(&a, VAR_RB, 3);
	groups = before(&a, VAR_COL_GROUP, 5);
	has_text(&a, at_h, "const u32 v0 = shared_u32(h);\n(int)v0\n", "a read");
	has_text(&a, guard(&a, rows, at_h), "const u32 v0 = rb < 3 ? shared_u32(h) : 0;\n(rb < 3 ? (int)v0 : 0)\n",
		"one under a condition");
	has_text(&a, guard(&a, rows, sum(&a, at_h, at_0)), "const u32 v0 = rb < 3 ? shared_u32(h) : 0;\n"
		"const u32 v1 = rb < 3 ? shared_u32(0) : 0;\n(rb < 3 ? (int)((u32)(int)v0 + (u32)(int)v1) : 0)\n",
		"two in an expression that has a condition");
	has_text(&a, guard(&a, groups, sum(&a, guard(&a, rows, at_h), at_0)),
		"const u32 v0 = j < 5 && rb < 3 ? shared_u32(h) : 0;\nconst u32 v1 = j < 5 ? shared_u32(0) : 0;\n"
		"(j < 5 ? (int)((u32)(rb < 3 ? (int)v0 : 0) + (u32)(int)v1) : 0)\n", "one under a second condition");
	has_text(&a, guard(&a, rows, sum(&a, guard(&a, rows, at_h), at_0)),
		"const u32 v0 = rb < 3 ? shared_u32(h) : 0;\nconst u32 v1 = rb < 3 ? shared_u32(0) : 0;\n"
		"(rb < 3 ? (int)((u32)(rb < 3 ? (int)v0 : 0) + (u32)(int)v1) : 0)\n", "one under the same condition twice");
	has_text(&a, sum(&a, guard(&a, rows, at_h), at_h), "const u32 v0 = rb < 3 ? shared_u32(h) : 0;\n"
		"const u32 v1 = shared_u32(h);\n(int)((u32)(rb < 3 ? (int)v0 : 0) + (u32)(int)v1)\n",
		"one that is read without a condition, too");
	arena_release(&a);
	return tap_done();
}
