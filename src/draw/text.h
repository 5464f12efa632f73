/* text.h - widths, padding, shortening, wrapping and colours of texts on a character grid.
 *
 * Drawings are written in UTF-8 with the line-drawing characters of Unicode. With DRAW_ASCII each character is
 * replaced by one of ASCII when it is written, so that layouts are the same. Bytes that are not UTF-8, and control
 * characters, become '?', so that no name can disturb a terminal.
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
	STYLE_REVERSE = 1 << 3,		/* text and background colour are swapped */
};

/* Colours are indices of the 256-colour palette; 0: the terminal's own. */
struct style {
	uint8_t fg, bg, attr;
};
#define PLAIN ((struct style){ 0 })
#define BOLD ((struct style){ .attr = STYLE_BOLD })
#define FAINT ((struct style){ .fg = 245 })

enum align { ALIGN_LEFT, ALIGN_RIGHT };

/* The character at s, which is not "", and its width; returns where the next one begins. */
const char *glyph_next(const char *s, struct glyph *g);
/* The ASCII character that replaces another one. */
char glyph_ascii(const char *utf8);

/* Columns of a text. */
int text_width(const char *s);
/* Columns and bytes of the first word of s. */
int text_word(const char *s, size_t *bytes);

void text_put(struct buf *out, const char *s, unsigned flags);
/* In quotes, as Graphviz and JSON read it; a newline becomes \n. */
void text_put_quoted(struct buf *out, const char *s);
/* Exactly `cols` columns: padded, or shortened with an ellipsis. */
void text_fit(struct buf *out, const char *s, int cols, enum align align, unsigned flags);
/* Wrap at spaces into lines that end before column `width`. The first line continues one of the caller at column `at`,
 * the others begin at `indent`; there is no newline at the end. */
void text_wrap(struct buf *out, const char *s, int at, int indent, int width, unsigned flags);
/* SGR codes that change one style into another; nothing without DRAW_COLOUR. */
void style_put(struct buf *out, struct style from, struct style to, unsigned flags);
void text_styled(struct buf *out, const char *s, struct style style, unsigned flags);

#endif
