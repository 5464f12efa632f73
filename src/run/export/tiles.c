/* ---- tiles at the sizes of a launch --------------------------------------------- */

/* A dimension of the grid: so many tiles of so many elements at the largest size, which is
 * number `size` of those that a launch gives; -1: it is always the same. */
struct dimension {
	int tiles, extent, size;
};

/* The tiles of a phase at the largest sizes, in the plan's order. Blocks of a cluster take
 * neighbours along dimension `along`, of which the first one is listed. */
struct grid {
	const int *first, *work;	/* work: iterations of each; NULL: each block takes as many */
	int ngroups;
	const struct dimension *dims;
	int ndims;
	int cluster, along;
	int blocks;			/* at most */
};

static int tiles_of(const struct dimension *d, const int *sizes)
{
	return d->size < 0 ? d->tiles : (sizes[d->size] + d->extent - 1) / d->extent;
}

/* The tile of block i of a cluster whose first tile is this one; -1: that is not there. A
 * block without a tile of its own gets the last one. */
static int tile_at(const struct grid *g, const int *sizes, int first, int i)
{
	int tile = first, left = first, below = 1;

	for (int d = g->ndims - 1; d >= 0; d--) {
		int at = left % g->dims[d].tiles, n = tiles_of(&g->dims[d], sizes);

		if (at >= n)
			return -1;
		if (d == g->along)
			tile += (at + i < n ? i : n - 1 - at) * below;
		left /= g->dims[d].tiles;
		below *= g->dims[d].tiles;
	}
	return tile;
}

@CHIPLETS@/* Blocks go round the chiplets. So that a chiplet gets consecutive tiles, those that are taken at the
@CHIPLETS@ * same time go to the blocks of one after the other: the block of number k of n. */
@CHIPLETS@static int unit_of(int k, int n, int units)
@CHIPLETS@{
@CHIPLETS@	enum { CHIPLETS = @NCHIPLETS@ };
@CHIPLETS@	int at = k % units, left = n - (k - at), round = left < units ? left : units;
@CHIPLETS@	int each = round / CHIPLETS, more = round % CHIPLETS, ahead = more * (each + 1);
@CHIPLETS@
@CHIPLETS@	if (at < ahead)
@CHIPLETS@		return at % (each + 1) * CHIPLETS + at / (each + 1);
@CHIPLETS@	return (at - ahead) % each * CHIPLETS + more + (at - ahead) / each;
@CHIPLETS@}
@CHIPLETS@
/* Assign the tiles that are there to the blocks: those of block b are order[start[b]] up to
 * order[start[b + 1] - 1]. order: ngroups * cluster, start: blocks + 1, scratch: ngroups.
 * Returns how many blocks there are. */
static int assign_tiles(const struct grid *g, const int *sizes, int *order, int *start,
	int *scratch)
{
	int n = 0, units = g->blocks / g->cluster, filled = 0;
	int *unit = scratch;

	for (int i = 0; i < g->ngroups; i++)
		n += tile_at(g, sizes, g->first[i], 0) >= 0;
	units = n < units ? n : units;
	for (int u = 0; u < units; u++)	/* the work of each */
		start[u] = 0;
	for (int i = 0, k = 0; i < g->ngroups; i++) {
		unit[i] = -1;
		if (tile_at(g, sizes, g->first[i], 0) < 0)
			continue;
@ROUND@		unit[i] = k++ % units;
@CHIPLETS@		unit[i] = unit_of(k++, n, units);
		for (int u = unit[i] = g->work ? 0 : unit[i]; u < units && g->work; u++)
			if (start[u] < start[unit[i]])
				unit[i] = u;
		start[unit[i]] += g->work ? g->work[i] : 0;
@CHIPLETS@		unit[i] = g->work ? unit_of(unit[i], units, units) : unit[i];
	}
	for (int b = 0; b < units * g->cluster; b++) {
		start[b] = filled;
		for (int i = 0; i < g->ngroups; i++)
			if (unit[i] == b / g->cluster)
				order[filled++] = tile_at(g, sizes, g->first[i], b % g->cluster);
	}
	start[units * g->cluster] = filled;
	return units * g->cluster;
}

