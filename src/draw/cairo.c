/* Pictures as PNG and PDF, through cairo. No function here allocates from an arena while cairo has memory of its own,
 * because an error of the arena would leak it. */
#include <cairo-pdf.h>
#include <cairo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/picture.h"

#ifdef ADDRESS_SANITIZER
/* fontconfig keeps memory that the sanitizer takes for a leak. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig\n";
}

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}
#endif

#define FONT "DejaVu Sans"
enum { PNG_HEAD = 33, HATCH = 6, SIDE_MAX = 32000 };

static void set_ink(cairo_t *c, enum theme theme, int ink)
{
	uint32_t v = ink_colour(theme, ink);

	cairo_set_source_rgb(c, (v >> 16 & 255) / 255.0, (v >> 8 & 255) / 255.0, (v & 255) / 255.0);
}

/* Fill the path, unless it is filled already, and draw along it. */
static void paint(cairo_t *c, const struct shape *s, bool filled, enum theme theme)
{
	if (!filled && s->fill != INK_NONE) {
		set_ink(c, theme, s->fill);
		cairo_fill_preserve(c);
	}
	if (s->stroke == INK_NONE) {
		cairo_new_path(c);
		return;
	}
	set_ink(c, theme, s->stroke);
	cairo_set_line_width(c, s->width);
	cairo_set_dash(c, &s->dash, s->dash > 0, 0);
	cairo_stroke(c);
}

static void add_round(cairo_t *c, double x, double y, double w, double h, double r)
{
	r = fmin(r, fmin(w, h) / 2);
	cairo_new_sub_path(c);
	cairo_arc(c, x + w - r, y + r, r, -M_PI / 2, 0);
	cairo_arc(c, x + w - r, y + h - r, r, 0, M_PI / 2);
	cairo_arc(c, x + r, y + h - r, r, M_PI / 2, M_PI);
	cairo_arc(c, x + r, y + r, r, M_PI, 3 * M_PI / 2);
	cairo_close_path(c);
}

static void draw_hatch(cairo_t *c, const struct shape *s, double w, enum theme theme)
{
	cairo_save(c);
	cairo_clip(c);
	set_ink(c, theme, INK_WAIT);
	cairo_set_line_width(c, 2);
	cairo_set_dash(c, NULL, 0, 0);
	for (double x = floor((s->x - s->h) / HATCH) * HATCH; x < s->x + w; x += HATCH * M_SQRT2) {
		cairo_move_to(c, x, s->y + s->h);
		cairo_line_to(c, x + s->h, s->y);
	}
	cairo_stroke(c);
	cairo_restore(c);
	cairo_new_path(c);
}

static void draw_rect(cairo_t *c, const struct shape *s, double w, enum theme theme)
{
	if (w <= 0)
		return;
	if (s->round > 0)
		add_round(c, s->x, s->y, w, s->h, s->round);
	else
		cairo_rectangle(c, s->x, s->y, w, s->h);
	if (s->hatched) {
		draw_hatch(c, s, w, theme);
		cairo_rectangle(c, s->x, s->y, w, s->h);
	}
	paint(c, s, s->hatched, theme);
}

static void draw_text(cairo_t *c, const struct shape *s, enum theme theme)
{
	cairo_text_extents_t e;
	double narrow, x = s->x;

	cairo_select_font_face(c, FONT, CAIRO_FONT_SLANT_NORMAL,
		s->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(c, s->size);
	cairo_text_extents(c, s->text, &e);
	narrow = e.x_advance > s->max_width && s->max_width > 0 ? s->max_width / e.x_advance : 1;
	x -= s->anchor == ANCHOR_LEFT ? 0 : e.x_advance * narrow * (s->anchor == ANCHOR_MIDDLE ? 0.5 : 1);
	set_ink(c, theme, s->fill);
	cairo_save(c);
	cairo_translate(c, x, s->y);
	cairo_scale(c, narrow, 1);
	cairo_move_to(c, 0, 0);
	cairo_show_text(c, s->text);
	cairo_restore(c);
	cairo_new_path(c);
}

bool cairo_has_font(void)
{
	cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
	cairo_t *c = cairo_create(s);
	bool found;

	cairo_select_font_face(c, FONT, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
	/* the font that is built into cairo is a user font */
	found = cairo_scaled_font_get_type(cairo_get_scaled_font(c)) != CAIRO_FONT_TYPE_USER;
	cairo_destroy(c);
	cairo_surface_destroy(s);
	return found;
}

static void draw(cairo_t *c, const struct picture *p, const struct picture_how *how)
{
	set_ink(c, how->theme, INK_PAPER);
	cairo_paint(c);
	for (int i = 0; i < p->shapes.n && cairo_status(c) == CAIRO_STATUS_SUCCESS; i++) {
		const struct shape *s = &p->shapes.v[i];
		double w, by = 0;

		if (!shape_at(s, how, &w))
			continue;
		if (s->motion == MOTION_SWEEP)
			by = s->end * fmin(fmax((how->at - p->from) / fmax(p->to - p->from, 1), 0), 1);
		switch (s->kind) {
		case SHAPE_RECT:
			draw_rect(c, s, w, how->theme);
			break;
		case SHAPE_LINE:
			cairo_move_to(c, s->x + by, s->y);
			cairo_line_to(c, s->w + by, s->h);
			paint(c, s, true, how->theme);
			break;
		case SHAPE_PATH:
			for (int k = 0; k < s->npoints; k++)
				cairo_line_to(c, s->point[k].x, s->point[k].y);
			if (s->closed)
				cairo_close_path(c);
			paint(c, s, false, how->theme);
			break;
		case SHAPE_TEXT:
			draw_text(c, s, how->theme);
			break;
		}
	}
}

/* ---- files ---------------------------------------------------------------------- */

struct sink {
	FILE *f;
	size_t written;
	const char *metadata;		/* to be written after the head of a PNG; NULL: none, or written */
	size_t nmetadata;
};

static bool put(struct sink *s, const void *data, size_t n)
{
	s->written += n;
	return fwrite(data, 1, n, s->f) == n;
}

static cairo_status_t write_part(void *own, const unsigned char *data, unsigned n)
{
	struct sink *s = own;
	size_t head = s->metadata && s->written < PNG_HEAD ? PNG_HEAD - s->written : 0;

	if (s->metadata && n >= head) {
		const char *metadata = s->metadata;

		s->metadata = NULL;
		if (!put(s, data, head) || !put(s, metadata, s->nmetadata) || !put(s, data + head, n - head))
			return CAIRO_STATUS_WRITE_ERROR;
		return CAIRO_STATUS_SUCCESS;
	}
	return put(s, data, n) ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* Text of a status; NULL for success, and for a failed write, which the caller explains. */
static const char *status_text(cairo_status_t status)
{
	return status == CAIRO_STATUS_SUCCESS || status == CAIRO_STATUS_WRITE_ERROR ? NULL :
		cairo_status_to_string(status);
}

static cairo_surface_t *image_of(const struct picture *p, const struct picture_how *how)
{
	double scale = how->scale > 0 ? how->scale : 2, side = fmax(p->width, p->height);
	cairo_surface_t *s;
	cairo_t *c;

	if (side * scale > SIDE_MAX)
		scale = SIDE_MAX / side;
	/* a sum that is 1080 but for rounding errors needs no row more */
	s = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(p->width * scale - 0.01),
		(int)ceil(p->height * scale - 0.01));
	c = cairo_create(s);
	cairo_scale(c, scale, scale);
	draw(c, p, how);
	if (cairo_status(c) != CAIRO_STATUS_SUCCESS) {
		cairo_surface_destroy(s);
		s = cairo_image_surface_create(CAIRO_FORMAT_INVALID, 1, 1);
	}
	cairo_destroy(c);
	return s;
}

static cairo_status_t write_pdf(const struct picture *p, const struct picture_how *how, struct sink *sink)
{
	const double points = 72.0 / 96;
	cairo_surface_t *s = cairo_pdf_surface_create_for_stream(write_part, sink, p->width * points,
		p->height * points);
	cairo_t *c = cairo_create(s);
	cairo_status_t status;

	cairo_pdf_surface_set_metadata(s, CAIRO_PDF_METADATA_TITLE, p->title);
	cairo_pdf_surface_set_metadata(s, CAIRO_PDF_METADATA_SUBJECT, p->about);
	cairo_pdf_surface_set_metadata(s, CAIRO_PDF_METADATA_CREATOR, "Millrace");
	cairo_pdf_surface_set_metadata(s, CAIRO_PDF_METADATA_KEYWORDS, p->script);
	cairo_scale(c, points, points);
	draw(c, p, how);
	cairo_show_page(c);
	status = cairo_status(c);
	cairo_destroy(c);
	cairo_surface_finish(s);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_status(s);
	cairo_surface_destroy(s);
	return status;
}

const char *cairo_write(const struct picture *p, const struct picture_how *how,
	const char *metadata, size_t nmetadata, FILE *f)
{
	struct sink sink = { .f = f, .metadata = metadata, .nmetadata = nmetadata };
	cairo_surface_t *s;
	cairo_status_t status;

	if (how->format == PICTURE_PDF) {
		sink.metadata = NULL;
		return status_text(write_pdf(p, how, &sink));
	}
	s = image_of(p, how);
	status = cairo_surface_status(s);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_write_to_png_stream(s, write_part, &sink);
	cairo_surface_destroy(s);
	return status_text(status);
}

unsigned char *cairo_pixels(const struct picture *p, const struct picture_how *how, int *w, int *h, const char **error)
{
	cairo_surface_t *s = image_of(p, how);
	unsigned char *out = NULL;

	*error = status_text(cairo_surface_status(s));
	if (!*error) {
		*w = cairo_image_surface_get_width(s);
		*h = cairo_image_surface_get_height(s);
		out = malloc((size_t)*w * (size_t)*h * 4);
		*error = out ? NULL : "there is not enough memory for it";
		for (int y = 0; out && y < *h; y++)
			memcpy(out + (size_t)y * (size_t)*w * 4, cairo_image_surface_get_data(s) +
				(ptrdiff_t)y * cairo_image_surface_get_stride(s), (size_t)*w * 4);
		for (size_t i = 3; out && i < (size_t)*w * (size_t)*h * 4; i += 4)
			out[i] = 255;
	}
	cairo_surface_destroy(s);
	return out;
}
