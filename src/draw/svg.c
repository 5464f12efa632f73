/* Pictures as SVG: texts are text, tips are titles, and animations are SMIL. */
#include <math.h>
#include <string.h>

#include "draw/picture.h"
#include "draw/text.h"

enum { SECONDS = 12 };

struct svg {
	const struct picture *p;
	const struct picture_how *how;
	struct buf *out;
};

/* Escaped for XML; bytes that XML does not allow become '?'. */
static void put_text(struct buf *out, const char *s)
{
	struct glyph g;

	while (*s) {
		s = glyph_next(s, &g);
		switch (g.utf8[0]) {
		case '<': buf_puts(out, "&lt;"); break;
		case '>': buf_puts(out, "&gt;"); break;
		case '&': buf_puts(out, "&amp;"); break;
		case '"': buf_puts(out, "&quot;"); break;
		default: buf_puts(out, g.utf8); break;
		}
	}
}

/* The same, with newlines. */
static void put_lines(struct buf *out, const char *s)
{
	char *copy = arena_strdup(out->arena, s), *line = copy, *end;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		put_text(out, line);
		buf_putc(out, '\n');
	}
	put_text(out, line);
}

/* Rounded to a tenth of a pixel. */
static void put_number(struct buf *out, const char *name, double v)
{
	double r = round(v * 10) / 10;

	if (r == floor(r))
		buf_printf(out, " %s=\"%.0f\"", name, r + 0.0);
	else
		buf_printf(out, " %s=\"%.1f\"", name, r);
}

static void put_ink(const struct svg *s, const char *name, int ink)
{
	if (ink == INK_NONE)
		buf_printf(s->out, " %s=\"none\"", name);
	else
		buf_printf(s->out, " %s=\"#%06x\"", name, (unsigned)ink_colour(s->how->theme, ink));
}

static void put_stroke(const struct svg *s, const struct shape *x)
{
	if (x->stroke == INK_NONE)
		return;
	put_ink(s, "stroke", x->stroke);
	put_number(s->out, "stroke-width", x->width);
	if (x->dash > 0)
		buf_printf(s->out, " stroke-dasharray=\"%.1f\"", x->dash);
}

/* The share of the animation that has passed at a cycle. */
static double share(const struct svg *s, double cycle)
{
	double v = (cycle - s->p->from) / fmax(s->p->to - s->p->from, 1);

	/* at the end, the complete picture stays for a while */
	return fmin(fmax(v, 0), 1) * 0.9;
}

static double seconds(const struct svg *s)
{
	return s->how->seconds > 0 ? s->how->seconds : SECONDS;
}

static void put_motion(const struct svg *s, const struct shape *x)
{
	double from = share(s, x->begin), to = share(s, x->end);

	if (!s->how->animate || s->how->still)
		return;
	switch ((enum motion)x->motion) {
	case MOTION_NONE:
		break;
	case MOTION_GROW:
		buf_printf(s->out, "<animate attributeName=\"width\" dur=\"%gs\" repeatCount=\"indefinite\" "
			"values=\"0;0;%.1f;%.1f\" keyTimes=\"0;%.4f;%.4f;1\"/>", seconds(s), x->w, x->w,
			from, fmax(to, from));
		break;
	case MOTION_APPEAR:
		buf_printf(s->out, "<animate attributeName=\"visibility\" dur=\"%gs\" calcMode=\"discrete\" "
			"repeatCount=\"indefinite\" values=\"hidden;visible\" keyTimes=\"0;%.4f\"/>", seconds(s), from);
		break;
	case MOTION_SWEEP:
		buf_printf(s->out, "<animateTransform attributeName=\"transform\" type=\"translate\" "
			"dur=\"%gs\" repeatCount=\"indefinite\" values=\"0;%.1f;%.1f\" "
			"keyTimes=\"0;0.9;1\"/>", seconds(s), x->end, x->end);
		break;
	}
}

static void put_rect(const struct svg *s, const struct shape *x, double w)
{
	buf_puts(s->out, "<rect");
	put_number(s->out, "x", x->x);
	put_number(s->out, "y", x->y);
	put_number(s->out, "width", w);
	put_number(s->out, "height", x->h);
	if (x->round > 0)
		put_number(s->out, "rx", x->round);
	if (x->hatched)
		buf_printf(s->out, " fill=\"url(#hatch)\"");
	else
		put_ink(s, "fill", x->fill);
	put_stroke(s, x);
}

static void put_line(const struct svg *s, const struct shape *x)
{
	double by = x->motion == MOTION_SWEEP && s->how->still ?
		x->end * fmin(fmax((s->how->at - s->p->from) / fmax(s->p->to - s->p->from, 1), 0), 1) : 0;

	buf_puts(s->out, "<line");
	put_number(s->out, "x1", x->x + by);
	put_number(s->out, "y1", x->y);
	put_number(s->out, "x2", x->w + by);
	put_number(s->out, "y2", x->h);
	put_stroke(s, x);
}

static void put_path(const struct svg *s, const struct shape *x)
{
	buf_puts(s->out, "<path d=\"");
	for (int i = 0; i < x->npoints; i++)
		buf_printf(s->out, "%s%.1f %.1f", i ? "L" : "M", x->point[i].x, x->point[i].y);
	buf_puts(s->out, x->closed ? "Z\"" : "\"");
	put_ink(s, "fill", x->fill);
	put_stroke(s, x);
}

static void put_words(const struct svg *s, const struct shape *x)
{
	static const char *const anchors[] = { "start", "middle", "end" };

	buf_puts(s->out, "<text");
	put_number(s->out, "x", x->x);
	put_number(s->out, "y", x->y);
	put_number(s->out, "font-size", x->size);
	if (x->anchor != ANCHOR_LEFT)
		buf_printf(s->out, " text-anchor=\"%s\"", anchors[x->anchor]);
	if (x->bold)
		buf_puts(s->out, " font-weight=\"bold\"");
	put_ink(s, "fill", x->fill);
}

static void put_shape(const struct svg *s, const struct shape *x)
{
	static const char *const names[] = { "rect", "line", "path", "text" };
	bool moves = s->how->animate && !s->how->still && x->motion != MOTION_NONE;
	double w = x->w;

	if (!moves && !shape_at(x, s->how, &w))
		return;
	switch (x->kind) {
	case SHAPE_RECT: put_rect(s, x, w); break;
	case SHAPE_LINE: put_line(s, x); break;
	case SHAPE_PATH: put_path(s, x); break;
	case SHAPE_TEXT: put_words(s, x); break;
	}
	if (!moves && !x->tip && x->kind != SHAPE_TEXT) {
		buf_puts(s->out, "/>\n");
		return;
	}
	buf_putc(s->out, '>');
	if (x->tip) {
		buf_puts(s->out, "<title>");
		put_text(s->out, x->tip);
		buf_puts(s->out, "</title>");
	}
	put_motion(s, x);
	if (x->kind == SHAPE_TEXT)
		put_text(s->out, x->text);
	buf_printf(s->out, "</%s>\n", names[x->kind]);
}

void picture_svg(const struct picture *p, const struct picture_how *how, struct buf *out)
{
	struct svg s = { p, how, out };

	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" "
		"xml:space=\"preserve\">\n<title>", p->width, p->height, p->width, p->height);
	put_text(out, p->title);
	buf_puts(out, "</title>\n<desc>");
	put_text(out, p->about);
	buf_puts(out, "</desc>\n<metadata>");
	put_lines(out, p->script);
	buf_puts(out, "</metadata>\n");
	buf_printf(out, "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
		"patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"6\" fill=\"#%06x\"/></pattern>"
		"</defs>\n", (unsigned)ink_colour(how->theme, INK_WAIT));
	buf_puts(out, "<rect width=\"100%\" height=\"100%\"");
	put_ink(&s, "fill", INK_PAPER);
	buf_puts(out, "/>\n");
	for (int i = 0; i < p->shapes.n; i++)
		put_shape(&s, &p->shapes.v[i]);
	buf_puts(out, "</svg>\n");
}
