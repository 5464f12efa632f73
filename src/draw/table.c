#include "draw/table.h"

enum { GAP = 2 };

struct shape {
	int width[TABLE_COLUMNS_MAX];	/* 0: not shown */
	int last;			/* last column shown */
	int word;			/* longest word in that column, which wrapping does not divide */
};

struct table table_new(struct arena *a, const struct column *col, int n)
{
	return (struct table){ .arena = a, .col = col, .ncols = n };
}

struct table_cell *table_row(struct table *t)
{
	struct table_cell *row = ARENA_ARRAY(t->arena, t->ncols, struct table_cell);

	VEC_PUSH(t->arena, &t->rows, row);
	return row;
}

struct table_cell *table_add(struct table *t, const char *const text[TABLE_COLUMNS_MAX])
{
	struct table_cell *row = table_row(t);

	for (int c = 0; c < t->ncols; c++)
		row[c].text = text[c];
	return row;
}

static void natural_widths(const struct table *t, const bool *dropped, struct shape *s)
{
	s->last = -1;
	for (int c = 0; c < t->ncols; c++) {
		int most = 0;

		for (int r = 0; r < t->rows.n && !dropped[c]; r++)
			if (t->rows.v[r][c].text)
				most = (int)max_i64(most, text_width(t->rows.v[r][c].text));
		s->width[c] = most ? (int)max_i64(most, text_width(t->col[c].title)) : 0;
		if (most)
			s->last = c;
	}
}

static void longest_word(const struct table *t, struct shape *s)
{
	s->word = 0;
	for (int r = 0; r < t->rows.n && s->last >= 0; r++) {
		const char *text = t->rows.v[r][s->last].text;
		size_t bytes;

		for (; text && *text; text += bytes + (text[bytes] == ' '))
			s->word = (int)max_i64(s->word, text_word(text, &bytes));
	}
}

static int total_width(const struct table *t, const struct shape *s)
{
	int sum = 0;

	for (int c = 0; c < t->ncols; c++)
		if (s->width[c])
			sum += s->width[c] + (sum ? GAP : 0);
	return sum;
}

/* The widest column that can be narrowed; NONE. */
static int widest_to_narrow(const struct table *t, const struct shape *s)
{
	int best = -1;

	for (int c = 0; c < t->ncols; c++)
		if (t->col[c].least && s->width[c] > t->col[c].least && (c != s->last || s->width[c] > s->word) &&
		    (best < 0 || s->width[c] > s->width[best]))
			best = c;
	return best;
}

static int next_to_drop(const struct table *t, const struct shape *s)
{
	int best = -1;

	for (int c = 0; c < t->ncols; c++)
		if (s->width[c] && t->col[c].drop && (best < 0 || t->col[c].drop > t->col[best].drop))
			best = c;
	return best;
}

static void choose_widths(const struct table *t, int space, struct shape *s)
{
	bool dropped[TABLE_COLUMNS_MAX] = { 0 };

	for (;;) {
		int over, c;

		natural_widths(t, dropped, s);
		longest_word(t, s);
		over = total_width(t, s) - space;
		for (; over > 0 && (c = widest_to_narrow(t, s)) >= 0; over--)
			s->width[c]--;
		c = next_to_drop(t, s);
		if (over <= 0 || c < 0)
			return;
		dropped[c] = true;
	}
}

static void put_row(const struct table *t, const struct shape *s, const struct table_cell *row,
	int indent, unsigned flags, struct buf *out)
{
	int x = indent;

	buf_repeat(out, " ", indent);
	for (int c = 0; c <= s->last; c++) {
		const char *text = row[c].text ? row[c].text : "";
		int w = s->width[c];

		if (!w)
			continue;
		style_put(out, PLAIN, row[c].style, flags);
		if (c == s->last && t->col[c].least)
			text_wrap(out, text, x, x, x + w, flags);
		else if (c == s->last && t->col[c].align == ALIGN_LEFT && text_width(text) <= w)
			text_put(out, text, flags);
		else
			text_fit(out, text, w, t->col[c].align, flags);
		style_put(out, row[c].style, PLAIN, flags);
		if (c < s->last)
			buf_repeat(out, " ", GAP);
		x += w + GAP;
	}
	while (out->len && out->text[out->len - 1] == ' ')
		out->text[--out->len] = '\0';
	buf_putc(out, '\n');
}

void table_print(const struct table *t, int indent, int width, unsigned flags, struct buf *out)
{
	struct table_cell title[TABLE_COLUMNS_MAX];
	struct shape s;

	if (!t->rows.n)
		return;
	choose_widths(t, width - indent, &s);
	for (int c = 0; c < t->ncols; c++)
		title[c] = (struct table_cell){ t->col[c].title, FAINT };
	put_row(t, &s, title, indent, flags, out);
	for (int r = 0; r < t->rows.n; r++)
		put_row(t, &s, t->rows.v[r], indent, flags, out);
}
