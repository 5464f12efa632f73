/* random.h - random tensors: what fill.h has to know of one. */
#ifndef TILE_RANDOM_H
#define TILE_RANDOM_H

#include "tile/dtype.h"
#include "tile/fill.h"

/* below: of numbers that make indices (struct tensor); 0: any. distinct: they should differ; of bytes: they are what program_expand takes. row: they ascend in rows of so
 * many; 0: they are in no order. */
struct fill_type random_type(enum dtype t, int64_t below, bool distinct, int64_t row);
/* Every tensor has a stream of its own, by its name. */
uint64_t random_state(uint64_t seed, const char *tensor);

#endif
