/* cuda_board.h - the board that a device is on, through NVML; in the worker only.
 *
 * Nothing here fails. Where the library is missing, or too old for a call, or the board
 * refuses it, that much is not known, and everything else goes on.
 */
#ifndef GPU_CUDA_BOARD_H
#define GPU_CUDA_BOARD_H

#include "gpu/cuda_api.h"
#include "gpu/gpu.h"

struct cuda_board {
	struct cuda_nvml api;
	struct nvmlDevice_st *handle;	/* NULL: none */
	bool tried;
	bool partition;			/* devices are parts of it (MIG) */
};

/* Find it by the device's place on the bus; once. */
void cuda_board_open(struct cuda_board *b, const char *bus_id);

/* All but `use`. With a context of ours on the device, for other processes are told only
 * where ours is seen among them: in a container there may be none, or numbers of another
 * name space. */
void cuda_board_read(struct cuda_board *b, struct gpu_board *out);
/* % of the last second that kernels ran, whoever's; 0: none, or not known. */
int cuda_board_use(struct cuda_board *b);
/* J since the driver was loaded, as of up to 0.1 s ago; 0: not known, or not the device's alone. */
double cuda_board_joules(struct cuda_board *b);

#endif
