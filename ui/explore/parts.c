#include "explore/parts.h"

#include <string.h>

void cells_blit(struct cells *dst, int x, int y, const struct cells *src)
{
	for (int row = 0; row < src->h; row++)
		for (int col = 0; col < src->w; col++) {
			struct cell *to = cells_at(dst, x + col, y + row);

			if (to)
				*to = *cells_at(src, col, row);
		}
}

const char *loc_text(struct arena *a, struct srcloc loc)
{
	const char *slash = loc.file ? strrchr(loc.file, '/') : NULL;
	const char *file = slash ? slash + 1 : loc.file;

	if (!file)
		return "";
	return loc.line ? arena_strf(a, "%s:%d", file, loc.line) : file;
}
