/* meaning_sample.h - a small copy of a program, evaluated under several tilings.
 *
 * For meaning.c alone. A sample has the program's nodes, loops and phases over shortened axes, so
 * that an evaluation takes some thousand operations, whatever the sizes. The value of an element of a tensor depends on
 * its position alone, and a load outside the program's own tensor gives zero, as always; so a program that means the
 * same under all tilings does so in its sample.
 *
 * Everything is allocated in the given arena; only memory can run out.
 */
#ifndef TILE_MEANING_SAMPLE_H
#define TILE_MEANING_SAMPLE_H

#include "tile/program.h"

struct sample {
	struct program p;		/* shares with the program all but the sizes of axes */
	int64_t size[AXES_MAX];		/* of the program itself */
	bool looped[AXES_MAX];		/* some loop runs over it, or tiles of the grid that add in memory */
	bool batch[AXES_MAX];
	int64_t begin[AXES_MAX];	/* where the sample's part of it begins */
	bool varies[AXES_MAX];		/* and may do so in one tile or in several */
	int nvary;			/* axes that do */
	bool grid[AXES_MAX];		/* of the outputs, and tiled */
	int64_t per[AXES_MAX];		/* tiles are multiples of this many; else 1 */
	bool rounds;			/* numbers are rounded to integers on the way */
};

void sample_shorten(struct arena *a, const struct program *p, struct sample *out);
/* Where a bound of a loop leaves out a part of the sample: inside the loop's axis, or, for some elements of the other
 * axes, all of it. */
enum sample_where { WHERE_INSIDE, WHERE_EMPTY, WHERE_COUNT };

/* Let the axes begin so that one does; false if it does already, or nowhere. */
bool sample_shift(struct arena *a, struct sample *s, int loop, bool upto, enum sample_where where);
/* The sample with as much of the bounded loops' axes as can be evaluated; false: it has no more. A short sample ends
 * where the program does not, so rows may be masked completely there that are not in the program. */
bool sample_lengthen(struct arena *a, const struct sample *s, struct sample *out);
/* Does the bound leave out all of the loop's axis for some elements, and not for others? */
bool sample_is_emptied(const struct sample *s, int loop, bool upto);
/* One of these elements: at[axis] in the program, and the bound there. */
bool sample_find_empty(const struct sample *s, int loop, bool upto, int64_t *at, int64_t *bound);
/* The sample with one element of the axes of the bound, for which it leaves out least. */
bool sample_keep_one(struct arena *a, const struct sample *s, int loop, bool upto, struct sample *out);

/* How the axes that vary are tiled: as one tile, as some, or by single elements (words). */
enum sample_tiles { TILES_ONE, TILES_FEW, TILES_MANY };

/* What an evaluation leaves, row-major. */
struct outcome {
	double **tensor, **carry;
};

enum { INPUT_KINDS = 2 };		/* of both signs, or all positive */

/* Tiles as said along one axis, along all if that is NONE, and one tile along the others.
 * False: the program cannot be tiled so. */
bool sample_run(struct arena *a, const struct sample *s, int axis, enum sample_tiles tiles,
	int inputs, struct outcome *out);
bool same_tensor(const struct sample *s, int tensor, const struct outcome *x, const struct outcome *y);
bool same_carry(const struct sample *s, int carry, const struct outcome *x, const struct outcome *y);
/* Is an element of the carry NaN in one of them alone? */
bool nan_differs(const struct sample *s, int carry, const struct outcome *x, const struct outcome *y);
/* Of every output. */
bool same_outputs(const struct sample *s, const struct outcome *x, const struct outcome *y);

#endif
