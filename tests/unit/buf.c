#include "base/buf.h"

#include "tap.h"

int main(void)
{
	struct mem m = { 0 };
	struct arena a;
	struct buf b, big;
	int wrong = 0;

	arena_init(&a, &m);
	buf_init(&b, &a);
	is_str(b.text, "", "a new buf is the empty string");
	is_int((long long)b.len, 0, "of length 0");
	buf_puts(&b, "lane");
	buf_putc(&b, ' ');
	buf_printf(&b, "%s%d: %.1f%%", "c", 0, 99.5);
	is_str(b.text, "lane c0: 99.5%", "appended texts follow one another");
	buf_putn(&b, "abcdef", 3);
	buf_putn(&b, "xyz", 0);
	buf_puts(&b, "");
	is_str(b.text, "lane c0: 99.5%abc", "also parts of strings, and none");
	buf_repeat(&b, "\u2500", 3);
	buf_repeat(&b, "no", 0);
	buf_repeat(&b, "no", -1);
	is_str(b.text, "lane c0: 99.5%abc\u2500\u2500\u2500", "and repetitions");
	is_int((long long)b.len, (long long)strlen(b.text), "the length is in bytes");

	buf_init(&b, &a);
	buf_putn(&b, "a\0b", 3);
	ok(b.len == 3 && !memcmp(b.text, "a\0b", 4), "a NUL byte is a byte like any other");

	buf_init(&big, &a);
	for (int i = 0; i < 20000; i++)
		buf_printf(&big, "%05d", i);
	for (int i = 0; i < 20000; i++) {
		char want[16];

		snprintf(want, sizeof(want), "%05d", i);
		wrong += memcmp(big.text + 5 * i, want, 5) != 0;
	}
	is_int(wrong, 0, "a long text keeps every part");
	is_int((long long)big.len, 100000, "and its length");
	arena_release(&a);
	is_int((long long)m.used, 0, "nothing is left when the arena goes");
	return tap_done();
}
