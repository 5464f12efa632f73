/* fake_nvml.c - NVIDIA's management library without a board, for tests that also use fake_cuda.c.
 *
 * What it says is in variables, read at each call:
 *
 *	FAKE_NVML_INIT		what nvmlInit returns
 *	FAKE_NVML_MIG		1: the board is partitioned
 *	FAKE_NVML_REASONS	why the clock is not higher, as NVML's bits
 *	FAKE_NVML_MHZ		the clock
 *	FAKE_NVML_USE		% of the last second
 *	FAKE_NVML_PIDS		"71 72": processes other than the caller, which comes last
 *	FAKE_NVML_HIDDEN	1: that one is not seen, as in a container
 *	FAKE_NVML_REFUSES	1: the board knows none of it
 *
 * The energy counter goes on by 7 J whenever it is read.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_bus.h"
#include "gpu/libraries.h"

#define PUBLIC __attribute__((visibility("default")))

#define DECLARE(needed, name, suffix, parameters) PUBLIC int name##suffix parameters;
CUDA_NVML_SYMBOLS(DECLARE)

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, READING_MJ = 7000 };

struct nvmlDevice_st {
	int unused;
};

static struct nvmlDevice_st board;

static long number(const char *variable, long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtol(text, NULL, 0) : otherwise;
}

/* The result of a call about a device. */
static int answer(const struct nvmlDevice_st *device)
{
	return device != &board ? NOT_FOUND :
		number("FAKE_NVML_REFUSES", 0) ? NOT_SUPPORTED : 0;
}

int nvmlInit_v2(void)
{
	return (int)number("FAKE_NVML_INIT", 0);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct nvmlDevice_st **device)
{
	char own[32];

	fake_bus(own, sizeof(own));
	*device = &board;
	return strcmp(id, own) ? NOT_FOUND : 0;
}

#ifndef FAKE_NVML_OLD

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
	strncpy(version, "580.159.03", size);
	return number("FAKE_NVML_REFUSES", 0) ? NOT_SUPPORTED : 0;
}

int nvmlDeviceGetEnforcedPowerLimit(struct nvmlDevice_st *device, unsigned *milliwatts)
{
	*milliwatts = 700000;
	return answer(device);
}

int nvmlDeviceGetTotalEnergyConsumption(struct nvmlDevice_st *device,
	unsigned long long *millijoules)
{
	static unsigned long long total = 1000;

	*millijoules = total += READING_MJ;
	return answer(device);
}

int nvmlDeviceGetMigMode(struct nvmlDevice_st *device, unsigned *now, unsigned *later)
{
	*now = *later = (unsigned)number("FAKE_NVML_MIG", 0);
	return answer(device);
}

int nvmlDeviceGetCurrentClocksEventReasons(struct nvmlDevice_st *device,
	unsigned long long *reasons)
{
	*reasons = (unsigned long long)number("FAKE_NVML_REASONS", 0);
	return answer(device);
}

int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, int clock, unsigned *mhz)
{
	*mhz = (unsigned)number("FAKE_NVML_MHZ", 1980);
	return clock != NVML_OF_SM ? NOT_SUPPORTED : answer(device);
}

int nvmlDeviceGetUtilizationRates(struct nvmlDevice_st *device, struct nvml_use *use)
{
	*use = (struct nvml_use){ .gpu = (unsigned)number("FAKE_NVML_USE", 0) };
	return answer(device);
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice_st *device, unsigned *n,
	struct nvml_process *processes)
{
	const char *pids = getenv("FAKE_NVML_PIDS");
	unsigned capacity = *n, count = 0;
	struct nvml_process found[8] = { { 0 } };
	char *end;

	for (; pids && *pids && count < 7; pids = end)
		found[count++].pid = (unsigned)strtol(pids, &end, 10);
	if (!number("FAKE_NVML_HIDDEN", 0))
		found[count++].pid = (unsigned)getpid();
	*n = count;
	if (count > capacity)
		return TOO_SMALL;
	memcpy(processes, found, count * sizeof(*found));
	return answer(device);
}

#endif

/* As the reasons were called before; and all that the oldest one has. */
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device,
	unsigned long long *reasons)
{
	*reasons = (unsigned long long)number("FAKE_NVML_REASONS", 0);
	return answer(device);
}
