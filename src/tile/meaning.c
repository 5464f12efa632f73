#include "tile/meaning.h"

#include "tile/meaning_blame.h"

static enum err_code check_sample(struct arena *a, const struct sample *s, struct err *e)
{
	return sample_differs(a, s) ? meaning_blame(a, s, e) : OK;
}

/* A sample has the beginning of each axis. For a loop whose bounds leave out tiles only elsewhere, a second sample
 * is taken there. */
static enum err_code check_samples(struct arena *a, const struct program *p, struct err *e)
{
	struct sample s;

	sample_shorten(a, p, &s);
	if (!s.nvary)
		return OK;
	TRY(check_sample(a, &s, e));
	for (int i = 0; i < 2 * p->loops.n; i++) {
		sample_shorten(a, p, &s);
		if (sample_shift(a, &s, i / 2, i % 2))
			TRY(check_sample(a, &s, e));
	}
	return OK;
}

enum err_code meaning_check(struct arena *a, const struct program *p, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	enum err_code code = check_samples(a, p, e);

	arena_reset(a, mark);
	return code;
}
