#include "base/mem.h"

#include <setjmp.h>

#include "tap.h"

struct failure {
	jmp_buf back;
	size_t want;
};

static void on_fail(void *ud, size_t want)
{
	struct failure *f = ud;

	f->want = want;
	longjmp(f->back, 1);
}

/* Does a request of `size` fail by calling the handler? */
static bool get_fails(struct mem *m, struct failure *f, size_t size)
{
	void *p;

	if (setjmp(f->back))
		return true;
	p = mem_get(m, size);
	mem_put(m, p, size);
	return false;
}

static void test_account(void)
{
	struct mem m = { 0 };
	char *p = mem_get(&m, 100), *q = mem_get(&m, 28);

	is_int((long long)m.used, 128, "what was handed out is counted");
	p = mem_resize(&m, p, 100, 300);
	is_int((long long)m.used, 328, "growing counts");
	p = mem_resize(&m, p, 300, 50);
	is_int((long long)m.used, 78, "so does shrinking");
	ok(mem_resize(&m, p, 50, 0) == NULL, "resizing to nothing frees");
	mem_put(&m, q, 28);
	mem_put(&m, NULL, 0);
	is_int((long long)m.used, 0, "and all of it comes back");
	p = mem_get(&m, 0);
	ok(p != NULL, "no bytes have an address, too");
	mem_put(&m, p, 0);
	p = mem_resize(&m, NULL, 0, 10);
	ok(p && m.used == 10, "resizing nothing allocates");
	mem_put(&m, p, 10);
}

static void test_cap(void)
{
	struct failure f = { .want = 0 };
	struct mem m = { .cap = 1000, .fail = on_fail, .ud = &f };
	void *p = mem_get(&m, 600);

	ok(!get_fails(&m, &f, 400), "up to the cap there is memory");
	ok(get_fails(&m, &f, 401), "beyond there is none");
	is_int((long long)f.want, 401, "and the handler knows how much was wanted");
	ok(get_fails(&m, &f, SIZE_MAX), "the largest size does not wrap around");
	ok(mem_resize(&m, p, 600, 1001) == NULL, "resizing beyond the cap gives NULL");
	is_int((long long)m.used, 600, "and changes nothing");
	mem_put(&m, p, 600);
}

static void test_planned_failure(void)
{
	struct failure f = { .want = 0 };
	struct mem m = { .fail_at = 2, .fail = on_fail, .ud = &f };

	ok(!get_fails(&m, &f, 1), "the first request succeeds");
	ok(get_fails(&m, &f, 1), "the second one fails as planned");
	ok(!get_fails(&m, &f, 1), "the third one succeeds");
	m.fail_at = m.calls + 1;
	ok(mem_resize(&m, NULL, 0, 8) == NULL, "resizing fails as planned too");
	is_int((long long)m.used, 0, "nothing is left over");
}

int main(void)
{
	test_account();
	test_cap();
	test_planned_failure();
	return tap_done();
}
