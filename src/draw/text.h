/* text.h - text that has to fit: how wide it is, cut, padded, wrapped, coloured.
 *
 * Everything in this folder is written in UTF-8 with the line-drawing characters
 * of Unicode. DRAW_ASCII turns each into one ASCII character at the moment it is
 * written, so that layouts do not depend on it; bytes that are not UTF-8 and
 * control characters come out as '?', so that no name can spoil a terminal.
 */
#ifndef DRAW_TEXT_H
#define DRAW_TEXT_H

#include "base/buf.h"

enum draw_flags {
	DRAW_COLOUR = 1 << 0,		/* SGR codes of the 256-colour palette */
	DRAW_ASCII = 1 << 1,		/* no byte above 127 */
};

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 20, WIDTH_MAX = 1000 };

/* One character: its bytes, and the columns it fills (0, 1 or 2). */
struct glyph {
	char utf8[5];
	int width;
};

enum style_attr {
	STYLE_BOLD = 1 << 0,
	STYLE_DIM = 1 << 1,
	STYLE_UNDERLINE = 1 << 2,
	STYLE_REVERSE = 1 << 3,		/* the two colours change places */
};

/* Colours are indices of the 256-colour palette; 0: the terminal's own. */
struct style {
	uint8_t fg, bg, attr;
};
#define PLAIN ((struct style){ 0 })
#define BOLD ((struct style){ .attr = STYLE_BOLD })
#define FAINT ((struct style){ .fg = 245 })

enum align { ALIGN_LEFT, ALIGN_RIGHT };

/* The character at s; returns where the next one begins. s is not at its end. */
const char *glyph_next(const char *s, struct glyph *g);
/* What stands for a character in ASCII. */
char glyph_ascii(const char *utf8);

/* Columns. */
int text_width(const char *s);
/* Columns of the first word of s that ends at a space or the end; its bytes. */
int text_word(const char *s, size_t *bytes);

void text_put(struct buf *out, const char *s, unsigned flags);
/* In quotes, as Graphviz and JSON read it: names may hold anything, a newline breaks the line. */
void text_put_quoted(struct buf *out, const char *s);
/* Exactly `cols` columns: padded, or cut with an ellipsis at the end. */
void text_fit(struct buf *out, const char *s, int cols, enum align align, unsigned flags);
/* At spaces into lines that end before column `width`. The first begins at column
 * `at` of a line begun by the caller, the others at `indent`; no newline at the end. */
void text_wrap(struct buf *out, const char *s, int at, int indent, int width, unsigned flags);
/* The codes that lead from one style to another; nothing without DRAW_COLOUR. */
void style_put(struct buf *out, struct style from, struct style to, unsigned flags);
void text_styled(struct buf *out, const char *s, struct style style, unsigned flags);

#endif
