#include "explore/parts.h"

#include <string.h>

void cells_blit(struct cells *dst, int x, int y, int w, int h, const struct cells *src, int src_x, int src_y)
{
	for (int row = 0; row < h; row++) {
		for (int col = 0; col < w; col++) {
			const struct cell *from = cells_at(src, src_x + col, src_y + row);
			struct cell *to = cells_at(dst, x + col, y + row);

			if (from && to)
				*to = *from;
		}
	}
}

void draw_separator(struct cells *out, bool upright, int at)
{
	for (int y = 0; y < out->h && upright; y++)
		cells_put(out, at, y, "│", FAINT);
	if (!upright)
		cells_fill(out, 0, at, out->w, "─", FAINT);
}

const char *loc_text(struct arena *a, struct srcloc loc)
{
	const char *slash = loc.file ? strrchr(loc.file, '/') : NULL, *file = slash ? slash + 1 : loc.file;

	if (!file)
		return "";
	return loc.line ? arena_strf(a, "%s:%d", file, loc.line) : file;
}
