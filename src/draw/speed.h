/* speed.h - how fast a program runs, by what limits it: its operations, its bytes, or both. */
#ifndef DRAW_SPEED_H
#define DRAW_SPEED_H

#include "device/device.h"
#include "graph/graph.h"

/* Bytes a second that the program moves in `seconds`, each tensor once, as a share of the device memory's. */
double bandwidth_share(const struct graph *g, const struct vdevice *d, double seconds);
/* "678 TFLOP/s", or "3.41 TB/s, 71 % of the bandwidth" where the tensors take most of the time that the device needs
 * at least, or both where neither is negligible; in `a`. `flops`: those of the program. "": the time is not known. */
const char *speed_text(struct arena *a, const struct graph *g, const struct vdevice *d, double flops, double seconds);

#endif
