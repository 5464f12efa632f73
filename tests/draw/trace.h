/* trace.h - reads a layered drawing back: which boxes do the lines join? */
#ifndef DRAW_TRACE_H
#define DRAW_TRACE_H

#include <string.h>

#include "draw/text.h"

struct picture {
	int w, h;
	struct glyph *at;
};

struct box {
	int x0, x1, y;			/* first and last column; row of the name */
};

enum { UP = 1, RIGHT = 2, DOWN = 4, LEFT = 8 };

static inline struct glyph *glyph_at(const struct picture *p, int x, int y)
{
	static struct glyph blank = { " ", 1 };

	return x < 0 || y < 0 || x >= p->w || y >= p->h ? &blank : &p->at[y * p->w + x];
}

static inline void picture_read(struct picture *p, struct arena *a, const char *text)
{
	const char *s = text;

	p->w = p->h = 0;
	for (const char *line = text; *line; p->h++) {
		int n = 0;
		struct glyph g;

		while (*line != '\n') {
			line = glyph_next(line, &g);
			n++;
		}
		line++;
		p->w = n > p->w ? n : p->w;
	}
	p->at = ARENA_ARRAY(a, p->w * p->h, struct glyph);
	for (int y = 0; y < p->h; y++, s++)
		for (int x = 0; *s != '\n'; x++)
			s = glyph_next(s, &p->at[y * p->w + x]);
}

static inline bool is_side(const struct glyph *g)
{
	return !strcmp(g->utf8, "│") || !strcmp(g->utf8, "║");
}

/* The box with this name. False if there is not exactly one. */
static inline bool find_box(const struct picture *p, const char *name, struct box *out)
{
	int n = (int)strlen(name), found = 0;

	for (int y = 0; y < p->h; y++) {
		for (int x = 2; x + n < p->w; x++) {
			bool same = is_side(glyph_at(p, x - 2, y)) &&
				glyph_at(p, x + n, y)->utf8[0] == ' ';

			for (int i = 0; i < n; i++)
				same &= glyph_at(p, x + i, y)->utf8[0] == name[i];
			if (!same)
				continue;
			found++;
			*out = (struct box){ x - 2, x + n, y };
			while (!is_side(glyph_at(p, out->x1, y)))
				out->x1++;
		}
	}
	return found == 1;
}

static inline int box_at(const struct box *b, int n, int x, int y)
{
	for (int i = 0; i < n; i++)
		if (x >= b[i].x0 && x <= b[i].x1 && y >= b[i].y - 1 && y <= b[i].y + 1)
			return i;
	return -1;
}

static inline int sides_of(const struct glyph *g)
{
	static const char *const glyph[] = { "", "", "", "└", "", "│", "┌", "├", "", "┘", "─",
		"┴", "┐", "┤", "┬", "┼" };

	for (int i = 1; i < 16; i++)
		if (!strcmp(glyph[i], g->utf8))
			return i;
	return 0;
}

/* Follow the line at (x, y); marks in `reached` the boxes at whose bottom it begins. */
static inline void trace(const struct picture *p, const struct box *b, int n, int x, int y,
	bool *seen, bool *reached)
{
	static const struct { int side, back, dx, dy; } way[] = { { UP, DOWN, 0, -1 },
		{ RIGHT, LEFT, 1, 0 }, { DOWN, UP, 0, 1 }, { LEFT, RIGHT, -1, 0 } };

	if (x < 0 || y < 0 || x >= p->w || y >= p->h || seen[y * p->w + x])
		return;
	seen[y * p->w + x] = true;
	for (int d = 0; d < 4; d++) {
		int nx = x + way[d].dx, ny = y + way[d].dy;

		if (!(sides_of(glyph_at(p, x, y)) & way[d].side))
			continue;
		/* under the lines that pass in front */
		while (way[d].dx && sides_of(glyph_at(p, nx, ny)) == (UP | DOWN))
			nx += way[d].dx;
		if (box_at(b, n, nx, ny) >= 0)
			reached[box_at(b, n, nx, ny)] |= way[d].side == UP;
		else if (sides_of(glyph_at(p, nx, ny)) & way[d].back)
			trace(p, b, n, nx, ny, seen, reached);
	}
}

#endif
