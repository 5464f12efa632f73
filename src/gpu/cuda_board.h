/* cuda_board.h - the state of the board that a device is on, through NVML; in the worker only.
 *
 * Nothing here fails. Where the library is missing or too old, or the board refuses a call, the value is unknown.
 */
#ifndef GPU_CUDA_BOARD_H
#define GPU_CUDA_BOARD_H

#include "gpu/libraries.h"
#include "gpu/gpu.h"

struct cuda_board {
	struct cuda_nvml api;
	struct nvmlDevice_st *handle;	/* NULL: none */
	bool tried;
	bool partition;			/* it is divided into MIG partitions */
};

/* Find the board by the device's PCI bus id. Later calls do nothing. */
void cuda_board_open(struct cuda_board *b, const char *bus_id);

/* All fields but `utilisation`. This process must have a context on the device: other processes are only counted if
 * NVML lists this one among them, as in a container the list may be empty or have pids of another name space. */
void cuda_board_read(struct cuda_board *b, struct gpu_board *out);
/* % of the last second in which kernels of any process ran; 0: none, or not known. */
int cuda_board_utilisation(struct cuda_board *b);
/* Energy (J) since the driver was loaded, up to 0.1 s old; 0: not known, or shared with other partitions. */
double cuda_board_joules(struct cuda_board *b);

#endif
