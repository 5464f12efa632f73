/* cuda_device.h - the driver, opened on one device; in the worker only.
 *
 * Every call of the driver goes through cuda_check: a failure becomes one message that
 * names the call, CUDA's error and what to do, and a kind of failure. After a fault in
 * a kernel every further call fails, whatever it is: the context is lost, and only the
 * end of the process clears it.
 */
#ifndef GPU_CUDA_DEVICE_H
#define GPU_CUDA_DEVICE_H

#include "gpu/cuda_api.h"
#include "gpu/cuda_board.h"
#include "gpu/proto.h"

struct cuda_device {
	struct cuda_driver api;
	struct cuda_board board;	/* by cuda_device_board */
	struct arena *arena;		/* for messages */
	struct CUstream_st *stream;
	int device;			/* the driver's handle */
	bool found, opened;
	double used_at;			/* of wire_clock: when we last had it at work; 0: never */
	struct gpu_info info;
	struct verdict verdict;		/* of what failed; err and failure go together */
};

/* Open the driver and make a context on device `ordinal`; once. */
NODISCARD enum err_code cuda_device_open(struct cuda_device *d, int ordinal);
/* The same, and what there is to know; what is free and the board's state change. */
NODISCARD enum err_code cuda_device_info(struct cuda_device *d, int ordinal,
	struct gpu_info *info);
/* Of the device that was chosen. Opened when first asked for: it takes a while, and only
 * who measures needs it. */
struct cuda_board *cuda_device_board(struct cuda_device *d);

/* result is what `call` returned; `what` follows its name in the message: "of 'A'". */
NODISCARD enum err_code cuda_check(struct cuda_device *d, int result, const char *call,
	const char *what);
#define CU(d, call, ...) cuda_check((d), (d)->api.call(__VA_ARGS__), #call, NULL)
#define CU_FOR(d, what, call, ...) cuda_check((d), (d)->api.call(__VA_ARGS__), #call, (what))

/* A failure that is not the driver's. */
enum err_code cuda_fail(struct cuda_device *d, enum gpu_failure failure, enum err_code code,
	const char *fmt, ...) PRINTF(4, 5);

/* "8.0 GiB" */
char *cuda_size_text(const struct cuda_device *d, double bytes);

#endif
