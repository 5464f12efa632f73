/* pen.h - writes lines of text as draw_options ask. */
#ifndef DRAW_PEN_H
#define DRAW_PEN_H

#include "draw/draw.h"
#include "draw/table.h"

struct pen {
	struct buf *out;		/* borrowed */
	struct arena *arena;		/* of out; for texts that live as long as out */
	int width;
	unsigned flags;
};

/* o may be NULL; a width out of range is clamped. */
struct pen pen_new(const struct draw_options *o, struct buf *out);
void pen_puts(struct pen *pen, const char *s, struct style style);
void pen_printf(struct pen *pen, const char *fmt, ...) PRINTF(2, 3);
/* A blank line, and a line with a title. */
void pen_section(struct pen *pen, const char *title);
/* `lead`, then s, wrapped at the width; further lines are indented by `indent` columns. */
void pen_wrap(struct pen *pen, const char *lead, int indent, const char *s);
/* The same without a lead, indented by two; nothing if s is "". */
void pen_line(struct pen *pen, const char *s);
/* A lane's order with its waits (usage may be NULL); the rings and the usage of an EU. */
void pen_lane(struct pen *pen, const struct plan *p, int lane, const struct usage *usage);
void pen_usage(struct pen *pen, const struct plan *p, const struct usage *usage);
/* The first line of a drawing: a name in bold, and s, wrapped. */
void pen_name(struct pen *pen, const char *name, const char *s);
/* A share in [0, 1] as a bar of `cols` columns; in `a`. */
struct table_cell pen_bar(struct arena *a, double share, int cols);
/* A section with a table, indented by two columns; title NULL: no section. */
void pen_table(struct pen *pen, const char *title, const struct table *t);

#endif
