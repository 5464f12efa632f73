#include "draw/cells.h"

#include <string.h>

void cells_init(struct cells *c, struct arena *a, int w, int h)
{
	*c = (struct cells){ .arena = a, .w = w, .h = h };
	c->at = ARENA_ARRAY(a, (size_t)w * (size_t)h, struct cell);
}

void cells_grow(struct cells *c, int h)
{
	struct cell *grown;

	if (h <= c->h)
		return;
	grown = ARENA_ARRAY(c->arena, (size_t)c->w * (size_t)h, struct cell);
	if (c->h)
		memcpy(grown, c->at, (size_t)c->w * (size_t)c->h * sizeof(*grown));
	c->at = grown;
	c->h = h;
}

struct cell *cells_at(const struct cells *c, int x, int y)
{
	if (x < 0 || x >= c->w || y < 0 || y >= c->h)
		return NULL;
	return &c->at[(size_t)y * (size_t)c->w + (size_t)x];
}

void cells_put(struct cells *c, int x, int y, const char *utf8, struct style style)
{
	struct cell *cell = cells_at(c, x, y);

	if (!cell)
		return;
	*cell = (struct cell){ .style = style };
	memcpy(cell->utf8, utf8, (size_t)min_i64((int64_t)strlen(utf8), 4));
}

/* Put a character; the right half of a wide one is an empty cell. */
static void put_glyph(struct cells *c, int x, int y, const struct glyph *g, struct style style)
{
	cells_put(c, x, y, g->utf8, style);
	if (g->width == 2)
		cells_put(c, x + 1, y, "", style);
}

int cells_text(struct cells *c, int x, int y, int space, const char *s, struct style style)
{
	bool too_long = text_width(s) > space;
	int n = 0;

	while (*s) {
		struct glyph g;

		s = glyph_next(s, &g);
		if (n + g.width > space - too_long)
			break;
		if (g.width)
			put_glyph(c, x + n, y, &g, style);
		n += g.width;
	}
	if (too_long && space > 0)
		cells_put(c, x + n++, y, "…", style);
	return n;
}

void cells_fill(struct cells *c, int x, int y, int n, const char *utf8, struct style style)
{
	for (int i = 0; i < n; i++)
		cells_put(c, x + i, y, utf8, style);
}

void cells_mark(struct cells *c, int x, int y, int n, unsigned attr)
{
	for (int i = x; i < x + n; i++)
		if (cells_at(c, i, y))
			cells_at(c, i, y)->style.attr |= (uint8_t)attr;
}

/* Read the number at *s and move *s behind it. */
static int next_number(const char **s)
{
	int n = 0;

	for (; **s >= '0' && **s <= '9'; ++*s)
		n = n < 1000 ? 10 * n + (**s - '0') : n;
	return n;
}

/* The style after an SGR code with the parameters at s: the inverse of style_put. */
static struct style style_after(struct style style, const char *s)
{
	static const uint8_t attr[] = { [1] = STYLE_BOLD, [2] = STYLE_DIM, [4] = STYLE_UNDERLINE, [7] = STYLE_REVERSE };

	for (;; s++) {
		int k = next_number(&s);

		if (k == 0)
			style = PLAIN;
		else if (k < LEN(attr))
			style.attr |= attr[k];
		if ((k == 38 || k == 48) && !strncmp(s, ";5;", 3)) {
			s += 3;
			*(k == 38 ? &style.fg : &style.bg) = (uint8_t)next_number(&s);
		}
		if (*s != ';')
			return style;
	}
}

/* The end of an SGR code that begins at s; NULL if there is none. */
static const char *code_end(const char *s)
{
	size_t n = s[0] == '\033' && s[1] == '[' ? strspn(s + 2, "0123456789;") : 0;

	return n && s[2 + n] == 'm' ? s + 3 + n : NULL;
}

void cells_scan(struct cells *c, int x, int y, int w, int h, const char *text)
{
	struct style style = PLAIN;
	int col = 0, row = 0;

	while (*text && row < h) {
		const char *end = code_end(text);
		struct glyph g;

		if (end) {
			style = style_after(style, text + 2);
			text = end;
		} else if (*text == '\n') {
			col = 0;
			row++;
			text++;
		} else {
			text = glyph_next(text, &g);
			if (g.width && col + g.width <= w)
				put_glyph(c, x + col, y + row, &g, style);
			col += g.width;
		}
	}
}

void cells_measure(const char *text, int *w, int *h)
{
	int col = 0;

	for (*w = *h = 0; *text;) {
		const char *end = code_end(text);
		struct glyph g;

		if (!col)
			*h += !end;
		if (end) {
			text = end;
		} else if (*text == '\n') {
			col = 0;
			text++;
		} else {
			text = glyph_next(text, &g);
			col += g.width;
			*w = (int)max_i64(*w, col);
		}
	}
}

static bool is_blank(const struct cell *c)
{
	return (c->utf8[0] == '\0' || c->utf8[0] == ' ') && !c->style.bg &&
		!(c->style.attr & (STYLE_UNDERLINE | STYLE_REVERSE));
}

static void print_row(const struct cells *c, int y, unsigned flags, struct buf *out)
{
	struct style now = PLAIN;
	int end = c->w, x = 0;

	while (end > 0 && is_blank(cells_at(c, end - 1, y)))
		end--;
	while (x < end) {
		const struct cell *cell = cells_at(c, x, y);
		struct glyph g = { .utf8 = " ", .width = 1 };

		if (cell->utf8[0])
			glyph_next(cell->utf8, &g);
		/* most styles do not show on a blank without background */
		if (!is_blank(cell)) {
			style_put(out, now, cell->style, flags);
			now = cell->style;
		} else if (now.bg || (now.attr & (STYLE_UNDERLINE | STYLE_REVERSE))) {
			style_put(out, now, PLAIN, flags);
			now = PLAIN;
		}
		text_put(out, g.utf8, flags);
		x += g.width > 1 ? g.width : 1;
	}
	style_put(out, now, PLAIN, flags);
	buf_putc(out, '\n');
}

void cells_print(const struct cells *c, unsigned flags, struct buf *out)
{
	for (int y = 0; y < c->h; y++)
		print_row(c, y, flags, out);
}

void cells_blit(struct cells *dst, int x, int y, int w, int h, const struct cells *src, int src_x, int src_y)
{
	for (int row = 0; row < h; row++) {
		for (int col = 0; col < w; col++) {
			const struct cell *from = cells_at(src, src_x + col, src_y + row);
			struct cell *to = cells_at(dst, x + col, y + row);

			if (from && to)
				*to = *from;
		}
	}
}
