/* cuda_device.h - a driver, CUDA's or HIP's, opened on one device; in the worker only.
 *
 * Every call of the driver goes through cuda_check, which makes of an error a message that names the call, the driver's
 * error and what to do. After a fault in a kernel the context is lost: all further calls fail, until the process ends.
 */
#ifndef GPU_CUDA_DEVICE_H
#define GPU_CUDA_DEVICE_H

#include "gpu/cuda_api.h"
#include "gpu/cuda_board.h"
#include "gpu/proto.h"

struct cuda_device {
	enum gpu_api kind;		/* whose driver */
	struct driver api;
	struct cuda_board board;	/* use cuda_device_board */
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
NODISCARD enum err_code cuda_device_open(struct cuda_device *d, int ordinal);
/* The same, and the device's properties and present state. */
NODISCARD enum err_code cuda_device_info(struct cuda_device *d, int ordinal, struct gpu_info *info);
/* The board of the open device. NVML is opened by the first call, as that takes a while and only
 * measurements need it. */
struct cuda_board *cuda_device_board(struct cuda_device *d);

/* OK if `result`, which the member `call` of the driver returned, is CUDA_OK. Otherwise sets the verdict; in its message
 * `what` ("of 'A'", or NULL) follows the name of the call. */
NODISCARD enum err_code cuda_check(struct cuda_device *d, int result, size_t call, const char *what);
#define CU(d, call, ...) CU_FOR(d, NULL, call, __VA_ARGS__)
#define CU_FOR(d, what, call, ...) cuda_check((d), (d)->api.call(__VA_ARGS__), offsetof(struct driver, call), (what))

/* Set the verdict for an error that the driver did not report. Returns `code`. */
enum err_code cuda_fail(struct cuda_device *d, enum gpu_failure failure, enum err_code code,
	const char *fmt, ...) PRINTF(4, 5);

/* "8.0 GiB" */
char *cuda_size_text(const struct cuda_device *d, double bytes);

#endif
