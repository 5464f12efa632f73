#include "plan/diff.h"

#include <string.h>

enum { TABLE_MAX = 1 << 22 };

struct lines {
	VEC(const char *) v;
};

static struct lines split(struct arena *a, const char *text)
{
	struct lines l = { 0 };

	while (*text) {
		size_t n = strcspn(text, "\n");

		VEC_PUSH(a, &l.v, arena_strf(a, "%.*s", (int)n, text));
		text += n + (text[n] == '\n');
	}
	return l;
}

static void add(struct arena *a, struct diff *out, enum diff_kind kind, const char *text)
{
	VEC_PUSH(a, &out->v, ((struct diff_line){ kind, text }));
	out->gone += kind == DIFF_GONE;
	out->added += kind == DIFF_NEW;
}

/* The longest common subsequence of what differs in the middle, from line `head` to lines xend and yend, by a table of the
 * lengths of those of all pairs of ends. */
static void diff_middle(struct arena *a, const struct lines *x, int xend, const struct lines *y, int yend, int head,
	struct diff *out)
{
	int n = xend - head, m = yend - head, cols = m + 1, i = 0, j = 0;
	int *most = (int64_t)(n + 1) * cols <= TABLE_MAX ? ARENA_ARRAY(a, (n + 1) * cols, int) : NULL;

	for (int r = n - 1; r >= 0 && most; r--)
		for (int c = m - 1; c >= 0; c--) {
			int down = most[(r + 1) * cols + c], right = most[r * cols + c + 1];

			most[r * cols + c] = !strcmp(x->v.v[head + r], y->v.v[head + c]) ? most[(r + 1) * cols + c + 1] + 1 :
				down > right ? down : right;
		}
	while (i < n || j < m) {
		if (most && i < n && j < m && !strcmp(x->v.v[head + i], y->v.v[head + j])) {
			add(a, out, DIFF_SAME, x->v.v[head + i++]);
			j++;
		} else if (i < n && (j == m || !most || most[(i + 1) * cols + j] >= most[i * cols + j + 1])) {
			add(a, out, DIFF_GONE, x->v.v[head + i++]);
		} else {
			add(a, out, DIFF_NEW, y->v.v[head + j++]);
		}
	}
}

void script_diff(struct arena *a, const char *one, const char *other, struct diff *out)
{
	struct lines x = split(a, one), y = split(a, other);
	int n = x.v.n, m = y.v.n, head = 0, tail = 0;

	*out = (struct diff){ 0 };
	while (head < n && head < m && !strcmp(x.v.v[head], y.v.v[head]))
		add(a, out, DIFF_SAME, x.v.v[head++]);
	while (tail < n - head && tail < m - head && !strcmp(x.v.v[n - 1 - tail], y.v.v[m - 1 - tail]))
		tail++;
	diff_middle(a, &x, n - tail, &y, m - tail, head, out);
	for (int i = n - tail; i < n; i++)
		add(a, out, DIFF_SAME, x.v.v[i]);
}
