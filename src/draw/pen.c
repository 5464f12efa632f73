#include "draw/pen.h"

#include <string.h>

struct pen pen_new(const struct draw_options *o, struct buf *out)
{
	struct pen pen = { .out = out, .arena = out->arena, .width = WIDTH_DEFAULT };

	if (o && o->width > 0)
		pen.width = (int)min_i64(max_i64(o->width, WIDTH_MIN), WIDTH_MAX);
	if (o)
		pen.flags = o->flags;
	return pen;
}

void pen_puts(struct pen *pen, const char *s, struct style style)
{
	size_t n;

	/* glyph_next takes a newline for a control character */
	for (; *s; s += n + (s[n] == '\n')) {
		n = strcspn(s, "\n");
		if (n)
			text_styled(pen->out, arena_strf(pen->arena, "%.*s", (int)n, s), style, pen->flags);
		if (s[n] == '\n')
			buf_putc(pen->out, '\n');
	}
}

void pen_printf(struct pen *pen, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pen_puts(pen, arena_vstrf(pen->arena, fmt, ap), PLAIN);
	va_end(ap);
}

void pen_section(struct pen *pen, const char *title)
{
	pen_puts(pen, arena_strf(pen->arena, "\n%s\n", title), BOLD);
}

void pen_wrap(struct pen *pen, const char *lead, int indent, const char *s)
{
	pen_puts(pen, lead, PLAIN);
	text_wrap(pen->out, s, text_width(lead), indent, pen->width, pen->flags);
	buf_putc(pen->out, '\n');
}

void pen_line(struct pen *pen, const char *s)
{
	if (s[0])
		pen_wrap(pen, "", 2, s);
}

void pen_name(struct pen *pen, const char *name, const char *s)
{
	pen_puts(pen, name, BOLD);
	buf_putc(pen->out, ' ');
	text_wrap(pen->out, s, text_width(name) + 1, 2, pen->width, pen->flags);
	buf_putc(pen->out, '\n');
}

void pen_table(struct pen *pen, const char *title, const struct table *t)
{
	if (title)
		pen_section(pen, title);
	table_print(t, 2, pen->width, pen->flags, pen->out);
}

struct table_cell pen_bar(struct arena *a, double share, int cols)
{
	uint8_t colour = share > 1 ? 203 : share > 0.75 ? 114 : share > 0.4 ? 179 : 245;
	struct buf b = buf_new(a);
	int full;

	if (!(share > 0))		/* NaN too */
		share = 0;
	full = (int)(min_i64((int64_t)(share * cols + 0.5), cols));
	if (!full && share > 0)
		full = 1;
	buf_repeat(&b, "█", full);
	buf_repeat(&b, "·", cols - full);
	return (struct table_cell){ b.text, { .fg = colour } };
}
