#include "base/arena.h"

#include <setjmp.h>
#include <stdlib.h>

#include "tap.h"

static bool is_zero(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* Many sizes: every allocation is zeroed and aligned, and overlaps no other. */
static void test_many_sizes(void)
{
	enum { ALLOCATIONS = 2000 };
	static struct {
		unsigned char *p;
		size_t n;
	} allocation[ALLOCATIONS];
	struct mem m = { 0 };
	struct arena a;
	int dirty = 0, crooked = 0, torn = 0;

	arena_init(&a, &m);
	is_int((long long)m.used, 0, "an empty arena holds nothing");
	for (int i = 0; i < ALLOCATIONS; i++) {
		size_t n = (size_t)i * 37 % 5000;

		allocation[i].p = arena_alloc(&a, n);
		allocation[i].n = n;
		dirty += !is_zero((char *)allocation[i].p, n);
		crooked += (uintptr_t)allocation[i].p % 16 != 0;
		memset(allocation[i].p, i & 255, n);
	}
	for (int i = 0; i < ALLOCATIONS; i++)
		for (size_t k = 0; k < allocation[i].n; k++)
			torn += allocation[i].p[k] != (i & 255);
	is_int(dirty, 0, "memory is zero");
	is_int(crooked, 0, "and aligned to 16 bytes");
	is_int(torn, 0, "and no allocation overlaps another");
	arena_release(&a);
	is_int((long long)m.used, 0, "release gives everything back");
	arena_release(&a);
	is_int((long long)m.used, 0, "and may be called again");
}

static void test_large(void)
{
	struct mem m = { 0 };
	struct arena a;
	char *p;

	arena_init(&a, &m);
	p = arena_alloc(&a, 3 << 20);
	ok(is_zero(p, 3 << 20), "an allocation may be larger than any block");
	p = arena_alloc(&a, 16);
	ok(is_zero(p, 16), "and is followed by others");
	arena_release(&a);
}

static void test_mark(void)
{
	struct mem m = { 0 };
	struct arena a;
	struct arena_mark empty, mark;
	size_t used;
	char *before, *after;

	arena_init(&a, &m);
	empty = arena_mark(&a);
	before = arena_strdup(&a, "before");
	mark = arena_mark(&a);
	used = m.used;
	for (int i = 0; i < 100; i++)
		memset(arena_alloc(&a, 10000), 255, 10000);
	ok(m.used > used, "scratch use grows the arena");
	arena_reset(&a, mark);
	is_int((long long)m.used, (long long)used, "going back to the mark shrinks it");
	is_str(before, "before", "what stood before the mark stays");
	memset(arena_alloc(&a, 64), 255, 64);
	arena_reset(&a, mark);
	after = arena_alloc(&a, 64);
	ok(is_zero(after, 64), "memory that is used again is zero again");
	arena_reset(&a, empty);
	is_int((long long)m.used, 0, "the mark of an empty arena empties it");
	arena_release(&a);
}

static void test_text(void)
{
	struct mem m = { 0 };
	struct arena a;
	char long_text[3000];

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	arena_init(&a, &m);
	is_str(arena_strdup(&a, ""), "", "the empty string");
	is_str(arena_strf(&a, "%d %s", 7, "sTasks"), "7 sTasks", "formatted text");
	is_int((long long)strlen(arena_strf(&a, "%s%s", long_text, long_text)), 5998,
	       "however long");
	arena_release(&a);
}

static void test_vec(void)
{
	VEC(int) v = { 0 };
	struct mem m = { 0 };
	struct arena a;
	int wrong = 0;

	arena_init(&a, &m);
	for (int i = 0; i < 1000; i++)
		VEC_PUSH(&a, &v, i * i);
	*VEC_ADD(&a, &v) = -1;
	for (int i = 0; i < 1000; i++)
		wrong += v.v[i] != i * i;
	is_int(v.n, 1001, "a vector counts its elements");
	is_int(wrong, 0, "and keeps them when it grows");
	is_int(v.v[1000], -1, "VEC_ADD returns the address of the new element");
	arena_release(&a);
}

static jmp_buf back;

static void on_fail(void *ud, size_t want)
{
	(void)ud;
	(void)want;
	longjmp(back, 1);
}

/* A request that cannot be met is refused as such and not made small by overflow. */
static bool refused(struct arena *a, size_t count, size_t size)
{
	if (setjmp(back))
		return true;
	arena_array(a, count, size);
	return false;
}

static void test_limits(void)
{
	struct mem m = { .cap = 1 << 20, .fail = on_fail };
	struct arena a;

	arena_init(&a, &m);
	ok(!refused(&a, 0, 8), "an array of nothing");
	ok(refused(&a, SIZE_MAX, 1), "the largest count");
	ok(refused(&a, SIZE_MAX / 2, 4), "a product that overflows");
	ok(refused(&a, 1, SIZE_MAX - 8), "the largest size");
	ok(!refused(&a, 1000, 100), "and after a refusal the arena works");
	m.fail_at = m.calls + 1;
	ok(refused(&a, 1, 500000), "a planned failure");
	arena_release(&a);
	is_int((long long)m.used, 0, "leaves nothing behind");
}

int main(void)
{
	test_many_sizes();
	test_large();
	test_mark();
	test_text();
	test_vec();
	test_limits();
	return tap_done();
}
