/* context.h - a driver, CUDA's or HIP's, opened on one device; in the worker only.
 *
 * Every call of the driver goes through driver_check, which makes of an error a message that names the call, the
 * driver's error and what to do. After a fault in a kernel the context is lost: all further calls fail, until the
 * process ends.
 */
#ifndef GPU_CONTEXT_H
#define GPU_CONTEXT_H

#include "gpu/libraries.h"
#include "gpu/cuda_board.h"
#include "gpu/proto.h"

struct gpu_context {
	enum gpu_api kind;		/* whose driver */
	struct driver api;
	struct cuda_board board;	/* use context_board */
	struct arena *arena;		/* for messages */
	struct CUstream_st *stream;
	struct CUevent_st *span[2];	/* for the time of one thing at a time */
	int device;			/* the driver's handle */
	bool present, found, opened;	/* present: the library is there, whatever it lacks */
	double used_at;			/* when this process last ran a job, by clock_seconds; 0: never */
	struct gpu_info info;
	struct verdict verdict;		/* of the last call that failed */
};

/* Open the driver and make a context on device `ordinal`. Later calls do nothing. */
NODISCARD enum err_code context_open(struct gpu_context *d, int ordinal);
/* The same, and the device's properties and present state. */
NODISCARD enum err_code context_info(struct gpu_context *d, int ordinal, struct gpu_info *info);
/* The board of the open device. NVML is opened by the first call, as that takes a while and only
 * measurements need it. */
struct cuda_board *context_board(struct gpu_context *d);

/* OK if `result`, which the member `call` of the driver returned, is CUDA_OK. Otherwise sets the verdict; in its
 * message `what` ("of 'A'", or NULL) follows the name of the call. */
NODISCARD enum err_code driver_check(struct gpu_context *d, int result, size_t call, const char *what);
#define CALL(d, call, ...) CALL_FOR(d, NULL, call, __VA_ARGS__)
#define CALL_FOR(d, what, call, ...) driver_check((d), (d)->api.call(__VA_ARGS__), offsetof(struct driver, call), (what))

/* Set the verdict for an error that the driver did not report. Returns `code`. */
enum err_code context_fail(struct gpu_context *d, enum gpu_failure failure, enum err_code code,
	const char *fmt, ...) PRINTF(4, 5);

/* "8.0 GiB" */
char *size_text(const struct gpu_context *d, double bytes);

#endif
