/* Pictures that have the shape of a screen. */
#include <math.h>

#include "draw/pictures.h"

static const double STEP = 1.05, WIDEST = 2.6;	/* how much larger the next sheet is; how large the last one may be */

void picture_on_screen(struct picture *p, picture_function *draw, const void *what, const struct picture_options *o)
{
	struct arena_mark mark = arena_mark(p->arena);
	const struct picture empty = *p;
	struct picture_options sheet = *o;
	double width, shape = o->width / o->height;

	for (double factor = 1;; factor *= STEP) {
		arena_reset(p->arena, mark);
		*p = empty;
		sheet.width = o->width * factor;
		sheet.height = o->height * factor;
		sheet.shorten = factor >= WIDEST;
		draw(p, what, &sheet);
		if (sheet.shorten || (p->width < sheet.width + 0.5 && p->height < sheet.height + 0.5))
			break;
	}
	/* what is still too high is in the middle; what is still too wide has space below it */
	width = fmax(p->width, p->height * shape);
	picture_shift(p, 0, (width - p->width) / 2);
	p->width = width;
	p->height = width / shape;
	picture_enlarge(p, o->width / width);
}
