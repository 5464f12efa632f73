#include "draw/picture.h"

#include <math.h>

#include "draw/palette.h"
#include "draw/text.h"

/* Widths of ' ' to '~' in thousandths of the size: those of DejaVu Sans, which is one of the widest common fonts. */
static const uint16_t advance[] = {
	318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
	636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
	1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
	603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
	500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
	635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,};
enum { ADVANCE_OTHER = 640, ADVANCE_WIDE = 1000, BOLD_MORE = 12 };

/* After Okabe and Ito (2008): they differ for colour-blind people too, and by lightness in print. */
static const uint32_t colours[THEMES][INK_TASK] = {
	[THEME_LIGHT] = { [INK_PAPER] = 0xffffff, [INK_TEXT] = 0x1a1a1a, [INK_FAINT] = 0x5c6068,
		[INK_LINE] = 0x6b7078, [INK_GRID] = 0xdfe2e6, [INK_PANEL] = 0xf4f5f7,
		[INK_WAIT] = 0xb4bac2, [INK_BOUND] = 0xd55e00, [INK_PROLOGUE] = 0xf0e442,
		[INK_STEADY] = 0x009e73, [INK_EPILOGUE] = 0x7a8290, [INK_FILLING] = 0xf0e442,
		[INK_FULL] = 0x0072b2, [INK_READ] = 0xe69f00, [INK_FREE] = 0xe6e8eb,
		[INK_FIRST] = 0x0072b2, [INK_SECOND] = 0xe69f00 },
	[THEME_DARK] = { [INK_PAPER] = 0x14171c, [INK_TEXT] = 0xf2f3f5, [INK_FAINT] = 0xa9b0ba,
		[INK_LINE] = 0x8f97a3, [INK_GRID] = 0x333942, [INK_PANEL] = 0x1d2128,
		[INK_WAIT] = 0x5a626e, [INK_BOUND] = 0xff8a3d, [INK_PROLOGUE] = 0xf0e442,
		[INK_STEADY] = 0x2fc79a, [INK_EPILOGUE] = 0x9aa3b0, [INK_FILLING] = 0xf0e442,
		[INK_FULL] = 0x3d9fdb, [INK_READ] = 0xe69f00, [INK_FREE] = 0x2b3038,
		[INK_FIRST] = 0x56b4e9, [INK_SECOND] = 0xe69f00 },
};

uint32_t ink_colour(enum theme theme, int ink)
{
	if (ink >= INK_TASK)
		return task_colour(ink - INK_TASK);
	if (ink == INK_BLACK || ink == INK_WHITE)
		return ink == INK_BLACK ? 0x000000 : 0xffffff;
	return colours[theme][ink];
}

int picture_on(enum theme theme, int fill)
{
	uint32_t c = ink_colour(theme, fill);

	return colour_contrast(c, ink_colour(theme, INK_BLACK)) >= colour_contrast(c, ink_colour(theme, INK_WHITE)) ?
		INK_BLACK : INK_WHITE;
}

void picture_init(struct picture *p, struct arena *a, const char *title)
{
	*p = (struct picture){ .arena = a, .title = title, .about = "", .script = "" };
}

static struct shape *add(struct picture *p, struct shape s)
{
	struct shape *new = VEC_ADD(p->arena, &p->shapes);

	*new = s;
	return new;
}

struct shape *picture_rect(struct picture *p, double x, double y, double w, double h, int fill, int stroke)
{
	return add(p, (struct shape){ .kind = SHAPE_RECT, .x = x, .y = y, .w = w, .h = h,
		.fill = (uint8_t)fill, .stroke = (uint8_t)stroke, .width = 1 });
}

struct shape *picture_line(struct picture *p, double x1, double y1, double x2, double y2, int stroke, double width)
{
	return add(p, (struct shape){ .kind = SHAPE_LINE, .x = x1, .y = y1, .w = x2, .h = y2,
		.stroke = (uint8_t)stroke, .width = width });
}

struct shape *picture_path(struct picture *p, const struct point *v, int n, bool closed, int fill, int stroke)
{
	return add(p, (struct shape){ .kind = SHAPE_PATH, .npoints = n, .point = arena_copy(p->arena, v, (size_t)n,
		sizeof(*v)), .closed = closed, .fill = (uint8_t)fill, .stroke = (uint8_t)stroke, .width = 1 });
}

struct shape *picture_text(struct picture *p, double x, double y, enum anchor anchor, double size,
	int ink, const char *text)
{
	return add(p, (struct shape){ .kind = SHAPE_TEXT, .x = x, .y = y, .anchor = (uint8_t)anchor, .size = size,
		.fill = (uint8_t)ink, .text = text, .max_width = picture_width(text, size, false) });
}

struct shape *picture_bold(struct picture *p, double x, double y, enum anchor anchor, double size,
	int ink, const char *text)
{
	struct shape *s = picture_text(p, x, y, anchor, size, ink, text);

	s->bold = true;
	s->max_width = picture_width(text, size, true);
	return s;
}

void picture_head(struct picture *p, double x, double y, double dx, double dy, double size, int ink)
{
	double l = hypot(dx, dy), c = l > 0 ? dx / l : 0, s = l > 0 ? dy / l : 1;
	struct point v[] = { { x, y }, { x - size * (c + 0.45 * s), y - size * (s - 0.45 * c) },
		{ x - size * (c - 0.45 * s), y - size * (s + 0.45 * c) } };

	picture_path(p, v, LEN(v), true, ink, INK_NONE);
}

static int advance_of(const struct glyph *g)
{
	unsigned char c = (unsigned char)g->utf8[0];

	if (c >= ' ' && c <= '~')
		return advance[c - ' '];
	return g->width == 2 ? ADVANCE_WIDE : g->width ? ADVANCE_OTHER : 0;
}

double picture_width(const char *s, double size, bool bold)
{
	struct glyph g;
	double w = 0;

	while (*s) {
		s = glyph_next(s, &g);
		w += advance_of(&g);
	}
	return w * size / 1000 * (bold ? 1 + BOLD_MORE / 100.0 : 1);
}

const char *picture_fit(struct picture *p, const char *s, double size, double space)
{
	double w = picture_width("…", size, false);
	const char *at = s;
	int letters = 0;
	struct glyph g;

	if (picture_width(s, size, false) <= space)
		return s;
	while (*at) {
		const char *next = glyph_next(at, &g);

		w += advance_of(&g) * size / 1000;
		if (w > space)
			break;
		at = next;
		letters++;
	}
	return letters < 3 ? "" : arena_strf(p->arena, "%.*s…", (int)(at - s), s);
}

/* x and y become factor * x + dx and factor * y; sizes, factor times as much. */
static void change_shape(struct arena *a, struct shape *s, double factor, double dx)
{
	double *const v[] = { &s->x, &s->y, &s->w, &s->h, &s->width, &s->dash, &s->round, &s->size, &s->max_width };
	struct point *point;

	for (int k = 0; k < LEN(v); k++)
		*v[k] *= factor;
	s->x += dx;
	if (s->kind == SHAPE_LINE)
		s->w += dx;
	if (s->motion == MOTION_SWEEP)
		s->end *= factor;
	if (!s->npoints)
		return;
	point = ARENA_ARRAY(a, s->npoints, struct point);
	for (int k = 0; k < s->npoints; k++)
		point[k] = (struct point){ s->point[k].x * factor + dx, s->point[k].y * factor };
	s->point = point;
}

void picture_shift(struct picture *p, int first, double dx)
{
	for (int i = first; i < p->shapes.n && dx > 0; i++)
		change_shape(p->arena, &p->shapes.v[i], 1, dx);
}

void picture_enlarge(struct picture *p, double factor)
{
	p->width *= factor;
	p->height *= factor;
	for (int i = 0; i < p->shapes.n; i++)
		change_shape(p->arena, &p->shapes.v[i], factor, 0);
}

void shape_move(struct shape *s, enum motion motion, double begin, double end)
{
	s->motion = (uint8_t)motion;
	s->begin = begin;
	s->end = end;
}

bool shape_at(const struct shape *s, const struct picture_how *how, double *w)
{
	*w = s->w;
	if (!how->still || s->motion == MOTION_NONE)
		return s->motion != MOTION_SWEEP;
	if (s->motion == MOTION_SWEEP)
		return true;
	if (how->at < s->begin)
		return false;
	if (s->motion == MOTION_GROW && how->at < s->end)
		*w = s->w * (how->at - s->begin) / (s->end - s->begin);
	return true;
}
