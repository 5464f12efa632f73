/* The rows of a table of a sequence's kernels. */
#include "draw/sequences.h"

#include <string.h>

enum { ROWS_MOST = 24 };	/* up to so many calls have a row each; if there are more, equal kernels share one */

/* What the kernel of a call is: its program and its plan. In `a`. */
static const char *kernel_text(struct arena *a, const struct seqplan *p, int call)
{
	struct buf b = buf_new(a);

	program_print(p->s->calls.v[call].program, &b);
	plan_script(p->launches[call].plan, &b);
	return b.text;
}

/* The first span before i with the same program and plan and, in a prediction, the same time (another part of its
 * inputs may be in L2); NONE. */
static int find_same(const struct seqline *l, const char *const *texts, int i)
{
	int k;

	FIND_FIRST(k, i, !strcmp(texts[k], texts[i]) &&
		(l->measured || l->spans[k].timeline->seconds == l->spans[i].timeline->seconds));
	return k;
}

struct seq_row *seqline_table(struct arena *a, const struct seqline *l, int *n)
{
	struct seq_row *rows = ARENA_ARRAY(a, l->n, struct seq_row);
	const char **texts = ARENA_ARRAY(a, l->n, const char *);
	int *row = ARENA_ARRAY(a, l->n, int);

	*n = 0;
	for (int i = 0; i < l->n; i++) {
		const struct seq_span *s = &l->spans[i];
		int same = NONE;

		if (l->n > ROWS_MOST) {
			texts[i] = kernel_text(a, l->plan, s->call);
			same = find_same(l, texts, i);
		}
		row[i] = same == NONE ? (*n)++ : row[same];
		if (same == NONE)
			rows[row[i]] = (struct seq_row){ .first = i };
		rows[row[i]].calls++;
		rows[row[i]].gap += s->begin - s->launch;
		rows[row[i]].seconds += s->end - s->begin;
	}
	for (int i = 0; i < *n; i++) {
		rows[i].share = rows[i].seconds / l->seconds;
		rows[i].gap /= rows[i].calls;
		rows[i].seconds /= rows[i].calls;
	}
	return rows;
}
