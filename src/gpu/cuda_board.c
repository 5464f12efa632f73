#include "gpu/cuda_board.h"

#include <unistd.h>

/* Call a function of NVML, if the library has it; true: success. */
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
	/* On a board with MIG, CUDA's devices are its partitions. */
	b->partition = ASK(b, nvmlDeviceGetMigMode, &mig, &later) && mig;
}

static enum gpu_throttle throttle_of(unsigned long long reasons)
{
	if (reasons & (NVML_HW_THERMAL | NVML_SW_THERMAL))
		return GPU_THROTTLE_HEAT;
	if (reasons & NVML_POWER_BRAKE)
		return GPU_THROTTLE_POWER_BRAKE;
	if (reasons & NVML_HW_SLOWDOWN)
		return GPU_THROTTLE_HARDWARE;
	if (reasons & NVML_SYNC_BOOST)
		return GPU_THROTTLE_SYNC;
	return reasons & NVML_CLOCK_SETTING ? GPU_THROTTLE_SETTING : GPU_THROTTLE_NONE;
}

static void read_clock(struct cuda_board *b, struct gpu_board *out)
{
	unsigned long long reasons = 0;
	unsigned mhz;

	if (!ASK(b, nvmlDeviceGetCurrentClocksEventReasons, &reasons) &&
	    !ASK(b, nvmlDeviceGetCurrentClocksThrottleReasons, &reasons))	/* its older name */
		reasons = 0;
	out->throttle = throttle_of(reasons);
	if (ASK(b, nvmlDeviceGetClockInfo, NVML_OF_SM, &mhz))
		out->clock = mhz * 1e6;
}

static void count_processes(struct cuda_board *b, struct gpu_board *out)
{
	/* Larger than what is asked for: the first drivers 535 write one more field for each process.
	 * Then only the first pid is right, and unless it is ours, nothing is known. */
	struct nvml_process list[PROCESSES_MAX * 3 / 2];
	unsigned n = PROCESSES_MAX, own = (unsigned)getpid();

	if (!ASK(b, nvmlDeviceGetComputeRunningProcesses, &n, list) || n > PROCESSES_MAX)
		return;
	for (unsigned i = 0; i < n; i++) {
		if (list[i].pid == own) {
			out->others_known = true;
			continue;
		}
		out->other_pid = (int)list[i].pid;
		out->others++;
	}
	if (!out->others_known)
		out->others = out->other_pid = 0;
}

void cuda_board_read(struct cuda_board *b, struct gpu_board *out)
{
	unsigned milliwatts;

	*out = (struct gpu_board){ 0 };
	if (!b->handle)
		return;
	if (!b->api.nvmlSystemGetDriverVersion || b->api.nvmlSystemGetDriverVersion(out->driver, sizeof(out->driver)))
		out->driver[0] = '\0';
	if (ASK(b, nvmlDeviceGetEnforcedPowerLimit, &milliwatts))
		out->power_limit = milliwatts * 1e-3;
	out->partition = b->partition;
	read_clock(b, out);
	count_processes(b, out);
}

int cuda_board_utilisation(struct cuda_board *b)
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
