#include "draw/text.h"

#include <string.h>

/* Length and code point of the UTF-8 sequence at s; 0 if it is not valid (RFC 3629: no overlong forms, no
 * surrogates). */
static int decode(const unsigned char *s, uint32_t *cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	int n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;

	if (n == 0 || s[0] > 0xf4)
		return 0;
	*cp = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
	for (int i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < least[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp <= 0xdfff))
		return 0;
	return n;
}

/* Widths after Unicode's East Asian Width (UAX 11), for the ranges that matter in names and messages; wcwidth
 * depends on the locale. */
static int columns_of(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
		int width;
	} ranges[] = { { 0x0300, 0x036f, 0 }, { 0x1100, 0x115f, 2 }, { 0x200b, 0x200f, 0 }, { 0x202a, 0x202e, 0 },
		{ 0x2060, 0x206f, 0 }, { 0x2e80, 0xa4cf, 2 }, { 0xac00, 0xd7a3, 2 }, { 0xf900, 0xfaff, 2 },
		{ 0xfe00, 0xfe0f, 0 }, { 0xfe30, 0xfe6f, 2 }, { 0xfeff, 0xfeff, 0 }, { 0xff00, 0xff60, 2 },
		{ 0xffe0, 0xffe6, 2 }, { 0x1f300, 0x1f64f, 2 }, { 0x1f680, 0x1f6ff, 2 }, { 0x1f900, 0x1f9ff, 2 },
		{ 0x20000, 0x3fffd, 2 }, { 0xe0000, 0xe0fff, 0 } };

	for (int i = 0; i < LEN(ranges); i++)
		if (cp >= ranges[i].first && cp <= ranges[i].last)
			return ranges[i].width;
	return 1;
}

const char *glyph_next(const char *s, struct glyph *g)
{
	uint32_t cp = 0;
	int n = decode((const unsigned char *)s, &cp);

	if (n == 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
		*g = (struct glyph){ "?", 1 };
		return s + (n ? n : 1);
	}
	*g = (struct glyph){ .width = columns_of(cp) };
	memcpy(g->utf8, s, (size_t)n);
	return s + n;
}

/* Whether there are dots in the upper half, the lower half, or both. */
static char ascii_dots(const char *utf8)
{
	int dots = ((unsigned char)utf8[1] & 3) << 6 | ((unsigned char)utf8[2] & 63);

	return !dots ? ' ' : !(dots & 0xe4) ? '\'' : !(dots & 0x1b) ? '.' : ':';
}

char glyph_ascii(const char *utf8)
{
	/* each row: an ASCII character, and those that it replaces */
	static const struct {
		char ascii;
		const char *from;
	} map[] = { { '-', "─╌–—░" }, { '=', "═━▒" }, { '|', "│║┃▌▏▐┊" }, { '.', "╭╮·┄▁▂▃" }, { 'o', "▄▅▆▇○" },
		{ '*', "●" }, { '\'', "╰╯" }, { ':', "┆" }, { '#', "╔╗╚╝█▓" }, { '+', "┌┐└┘├┤┬┴┼╤╧" }, { 'v', "▼▽" },
		{ '^', "▲" }, { '<', "◂←" }, { '>', "▸→⇢" }, { '@', "↺" }, { '~', "…" }, { 'x', "×" }, { 'u', "µ" },
		{ '0', "⁰" }, { '1', "¹" } };

	if (!(utf8[0] & 0x80))
		return utf8[0];
	if ((unsigned char)utf8[0] == 0xe2 &&
		((unsigned char)utf8[1] & 0xfc) == 0xa0)	/* U+2800 to U+28FF: eight dots */
		return ascii_dots(utf8);
	for (int i = 0; i < LEN(map); i++)
		if (strstr(map[i].from, utf8))
			return map[i].ascii;
	return '?';
}

int text_width(const char *s)
{
	struct glyph g;
	int n = 0;

	while (*s) {
		s = glyph_next(s, &g);
		n += g.width;
	}
	return n;
}

int text_word(const char *s, size_t *bytes)
{
	const char *at = s;
	struct glyph g;
	int n = 0;

	while (*at && *at != ' ') {
		at = glyph_next(at, &g);
		n += g.width;
	}
	*bytes = (size_t)(at - s);
	return n;
}

/* A wide character becomes two in ASCII, so that columns stay aligned. */
static void put_glyph(struct buf *out, const struct glyph *g, unsigned flags)
{
	if (!(flags & DRAW_ASCII)) {
		buf_puts(out, g->utf8);
		return;
	}
	for (int i = 0; i < g->width; i++)
		buf_putc(out, glyph_ascii(g->utf8));
}

void text_put_quoted(struct buf *out, const char *s)
{
	struct glyph g;

	buf_putc(out, '"');
	while (*s) {
		if (*s == '\n') {
			buf_puts(out, "\\n");
			s++;
			continue;
		}
		if (*s == '"' || *s == '\\')
			buf_putc(out, '\\');
		s = glyph_next(s, &g);
		buf_puts(out, g.utf8);
	}
	buf_putc(out, '"');
}

/* As many characters of s as fit into `cols` columns; returns how many columns they take. */
static int put_some(struct buf *out, const char *s, int cols, unsigned flags)
{
	struct glyph g;
	int n = 0;

	while (*s) {
		s = glyph_next(s, &g);
		if (n + g.width > cols)
			break;
		put_glyph(out, &g, flags);
		n += g.width;
	}
	return n;
}

void text_put(struct buf *out, const char *s, unsigned flags)
{
	put_some(out, s, INT32_MAX, flags);
}

void text_fit(struct buf *out, const char *s, int cols, enum align align, unsigned flags)
{
	int w = text_width(s);

	if (cols <= 0)
		return;
	if (w > cols) {
		w = put_some(out, s, cols - 1, flags);
		text_put(out, "…", flags);
		buf_repeat(out, " ", cols - 1 - w);
		return;
	}
	if (align == ALIGN_RIGHT)
		buf_repeat(out, " ", cols - w);
	text_put(out, s, flags);
	if (align == ALIGN_LEFT)
		buf_repeat(out, " ", cols - w);
}

void text_wrap(struct buf *out, const char *s, int at, int indent, int width, unsigned flags)
{
	bool first = true;
	int x = at;

	while (*s) {
		size_t bytes;
		int w;

		if (*s == ' ') {
			s++;
			continue;
		}
		w = text_word(s, &bytes);
		if (!first && x + 1 + w > width) {
			buf_putc(out, '\n');
			buf_repeat(out, " ", indent);
			x = indent;
			first = true;
		}
		if (!first) {
			buf_putc(out, ' ');
			x++;
		}
		put_some(out, s, w, flags);	/* the word is w columns */
		x += w;
		first = false;
		s += bytes;
	}
}

void style_put(struct buf *out, struct style from, struct style to, unsigned flags)
{
	if (!(flags & DRAW_COLOUR) || (from.fg == to.fg && from.bg == to.bg && from.attr == to.attr))
		return;
	buf_printf(out, "\033[0%s%s%s%s", to.attr & STYLE_BOLD ? ";1" : "", to.attr & STYLE_DIM ? ";2" : "",
		to.attr & STYLE_UNDERLINE ? ";4" : "", to.attr & STYLE_REVERSE ? ";7" : "");
	if (to.fg)
		buf_printf(out, ";38;5;%d", to.fg);
	if (to.bg)
		buf_printf(out, ";48;5;%d", to.bg);
	buf_putc(out, 'm');
}

void text_styled(struct buf *out, const char *s, struct style style, unsigned flags)
{
	style_put(out, PLAIN, style, flags);
	text_put(out, s, flags);
	style_put(out, style, PLAIN, flags);
}
