#include <stdio.h>

#include "gpu/gpu.h"

enum { IN_USE = 10 };			/* %: more is somebody's work */

/* A clock that was set is no trouble if it is set to the highest. */
#define AS_HIGH 0.99

static void tell_processes(const struct gpu_board *b, char text[GPU_TROUBLE_MAX])
{
	char use[32] = "";

	if (b->use > 0)
		snprintf(use, sizeof(use), ", %d %% in use", b->use);
	if (b->others == 1)
		snprintf(text, GPU_TROUBLE_MAX, "another process (pid %d) is on it%s", b->other,
			use);
	else
		snprintf(text, GPU_TROUBLE_MAX, "%d other processes (one is pid %d) are on it%s",
			b->others, b->other, use);
}

static void tell_clock(const struct gpu_info *info, char text[GPU_TROUBLE_MAX])
{
	static const char *const why[] = {
		[GPU_HELD_HOT] = "it is too hot",
		[GPU_HELD_BRAKE] = "the machine's power supply asks for it",
		[GPU_HELD_HARDWARE] = "the hardware does so, without a reason",
		[GPU_HELD_SYNC] = "it goes with that of other devices (sync boost)",
	};
	const struct gpu_board *b = &info->board;

	if (b->held != GPU_HELD_SETTING)
		snprintf(text, GPU_TROUBLE_MAX, "its clock is held down: %s", why[b->held]);
	else if (b->clock > 0 && b->clock < AS_HIGH * info->clock)
		snprintf(text, GPU_TROUBLE_MAX, "its clock is set to %.0f of %.0f MHz (nvidia-smi "
			"-rac and -rgc reset it)", b->clock * 1e-6, info->clock * 1e-6);
}

bool gpu_trouble(const struct gpu_info *info, char text[GPU_TROUBLE_MAX])
{
	const struct gpu_board *b = &info->board;

	text[0] = '\0';
	if (b->partition)
		snprintf(text, GPU_TROUBLE_MAX, "it is a part of a board (MIG), with %d SMs",
			info->sms);
	else if (b->others > 0)
		tell_processes(b, text);
	else if (!b->counted && b->use >= IN_USE)
		snprintf(text, GPU_TROUBLE_MAX, "something else is on it, %d %% in use", b->use);
	else if (b->held != GPU_HELD_NOT)
		tell_clock(info, text);
	return text[0] != '\0';
}
