#include "gpu/cuda_board.h"

#include <unistd.h>

/* Call it if there is one; true: it went well. */
#define ASK(b, call, ...) \
	((b)->handle && (b)->api.call && (b)->api.call((b)->handle, __VA_ARGS__) == 0)

enum { PROCESSES_MAX = 256 };

void cuda_board_open(struct cuda_board *b, const char *bus_id)
{
	unsigned mig, later;
	struct err ignored;

	if (b->tried)
		return;
	b->tried = true;
	if (cuda_nvml_open(&b->api, &ignored) || b->api.nvmlInit())
		return;
	if (b->api.nvmlDeviceGetHandleByPciBusId(bus_id, &b->handle))
		b->handle = NULL;
	/* CUDA sees no device of a board with MIG but the parts of it. */
	b->partition = ASK(b, nvmlDeviceGetMigMode, &mig, &later) && mig;
}

static enum gpu_held held_by(unsigned long long reasons)
{
	if (reasons & (NVML_HW_THERMAL | NVML_SW_THERMAL))
		return GPU_HELD_HOT;
	if (reasons & NVML_POWER_BRAKE)
		return GPU_HELD_BRAKE;
	if (reasons & NVML_HW_SLOWDOWN)
		return GPU_HELD_HARDWARE;
	if (reasons & NVML_SYNC_BOOST)
		return GPU_HELD_SYNC;
	return reasons & NVML_CLOCK_SETTING ? GPU_HELD_SETTING : GPU_HELD_NOT;
}

static void read_clock(struct cuda_board *b, struct gpu_board *out)
{
	unsigned long long reasons = 0;
	unsigned mhz;

	if (!ASK(b, nvmlDeviceGetCurrentClocksEventReasons, &reasons) &&
	    !ASK(b, nvmlDeviceGetCurrentClocksThrottleReasons, &reasons))	/* as it was called */
		reasons = 0;
	out->held = held_by(reasons);
	if (ASK(b, nvmlDeviceGetClockInfo, NVML_OF_SM, &mhz))
		out->clock = mhz * 1e6;
}

static void count_processes(struct cuda_board *b, struct gpu_board *out)
{
	/* Room for more than is asked: the first drivers 535 write a field more for each. Then
	 * only the first number is one, and if it is not ours, nothing is known. */
	struct nvml_process list[PROCESSES_MAX * 3 / 2];
	unsigned n = PROCESSES_MAX, own = (unsigned)getpid();

	if (!ASK(b, nvmlDeviceGetComputeRunningProcesses, &n, list) || n > PROCESSES_MAX)
		return;
	for (unsigned i = 0; i < n; i++) {
		if (list[i].pid == own) {
			out->counted = true;
			continue;
		}
		out->other = (int)list[i].pid;
		out->others++;
	}
	if (!out->counted)
		out->others = out->other = 0;
}

void cuda_board_read(struct cuda_board *b, struct gpu_board *out)
{
	unsigned milliwatts;

	*out = (struct gpu_board){ 0 };
	if (!b->handle)
		return;
	if (!b->api.nvmlSystemGetDriverVersion ||
	    b->api.nvmlSystemGetDriverVersion(out->driver, sizeof(out->driver)))
		out->driver[0] = '\0';
	if (ASK(b, nvmlDeviceGetEnforcedPowerLimit, &milliwatts))
		out->power_limit = milliwatts * 1e-3;
	out->partition = b->partition;
	read_clock(b, out);
	count_processes(b, out);
}

int cuda_board_use(struct cuda_board *b)
{
	struct nvml_use use;

	return ASK(b, nvmlDeviceGetUtilizationRates, &use) ? (int)use.gpu : 0;
}

double cuda_board_joules(struct cuda_board *b)
{
	unsigned long long millijoules;

	return !b->partition && ASK(b, nvmlDeviceGetTotalEnergyConsumption, &millijoules) ?
		(double)millijoules * 1e-3 : 0;
}
