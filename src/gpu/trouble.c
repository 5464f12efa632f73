#include <stdio.h>

#include "gpu/gpu.h"

enum { BUSY = 10 };			/* % of utilisation from which another process is at work */

/* A clock that was set to at least this share of the highest clock does no harm. */
#define FULL_CLOCK 0.99

static void describe_processes(const struct gpu_board *b, char text[GPU_TROUBLE_MAX])
{
	char use[32] = "";

	if (b->utilisation > 0)
		snprintf(use, sizeof(use), ", %d %% in use", b->utilisation);
	if (b->others == 1)
		snprintf(text, GPU_TROUBLE_MAX, "another process (pid %d) is on it%s", b->other_pid, use);
	else
		snprintf(text, GPU_TROUBLE_MAX, "%d other processes (one is pid %d) are on it%s",
			b->others, b->other_pid, use);
}

static void describe_clock(const struct gpu_info *info, char text[GPU_TROUBLE_MAX])
{
	static const char *const why[] = {
		[GPU_THROTTLE_HEAT] = "it is too hot",
		[GPU_THROTTLE_POWER_BRAKE] = "the machine's power supply asks for it",
		[GPU_THROTTLE_HARDWARE] = "the hardware does so, without a reason",
		[GPU_THROTTLE_SYNC] = "it goes with that of other devices (sync boost)",
	};
	const struct gpu_board *b = &info->board;

	if (b->throttle != GPU_THROTTLE_SETTING)
		snprintf(text, GPU_TROUBLE_MAX, "its clock is held down: %s", why[b->throttle]);
	else if (b->clock > 0 && b->clock < FULL_CLOCK * info->clock)
		snprintf(text, GPU_TROUBLE_MAX, "its clock is set to %.0f of %.0f MHz (nvidia-smi "
			"-rac and -rgc reset it)", b->clock * 1e-6, info->clock * 1e-6);
}

bool gpu_trouble(const struct gpu_info *info, char text[GPU_TROUBLE_MAX])
{
	const struct gpu_board *b = &info->board;

	text[0] = '\0';
	if (b->partition)
		snprintf(text, GPU_TROUBLE_MAX, "it is a part of a board (MIG), with %d SMs", info->sms);
	else if (b->others > 0)
		describe_processes(b, text);
	else if (!b->others_known && b->utilisation >= BUSY)
		snprintf(text, GPU_TROUBLE_MAX, "something else is on it, %d %% in use", b->utilisation);
	else if (b->throttle != GPU_THROTTLE_NONE)
		describe_clock(info, text);
	return text[0] != '\0';
}
