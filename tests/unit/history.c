/* Random edits of a plan, right and wrong, with undo and redo in between: the text is
 * always what it must be (tests/fuzz/plan_edits.h has the edits and the rules). */
#include <time.h>

#include "base/prng.h"
#include "tests/fuzz/plan_edits.h"
#include "tests/tap.h"

enum { SEQUENCES = 5000, BYTES_MOST = 400 };

int main(void)
{
	struct mem mem = { 0 };
	struct stage stage;
	int wrong = 0, good = 0, refused = 0, undone = 0, checked = 0;
	clock_t began = clock();

	stage_init(&stage, &mem);
	for (int i = 0; i < SEQUENCES; i++) {
		struct prng r = { (uint64_t)i };
		uint8_t data[BYTES_MOST];
		struct session s;
		int n = (int)prng_below(&r, BYTES_MOST);

		for (int k = 0; k < n; k++)
			data[k] = (uint8_t)prng_below(&r, 256);
		session_run(&s, &stage, data, (size_t)n);
		if (s.wrong && ++wrong <= 5)
			diag("sequence %d: not so: %s", i, s.wrong);
		good += s.good;
		refused += s.refused;
		undone += s.undone;
		checked += s.checked;
	}
	is_int(wrong, 0, "after every edit, undo and redo the text is what it must be");
	ok(good > 20 * SEQUENCES / 4 && refused > SEQUENCES && undone > SEQUENCES,
		"there were enough of each");
	diag("%d edits, %d refused, %d undone, %d checks, %.1f s", good, refused, undone, checked,
		(double)(clock() - began) / CLOCKS_PER_SEC);
	stage_release(&stage);
	is_int((long long)mem.used, 0, "all memory is given back");
	return tap_done();
}
