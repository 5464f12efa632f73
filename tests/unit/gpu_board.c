/* The state of the board, as the management library reports it. */
#include "unit/gpu_setup.h"

/* "NAME=VALUE;NAME=VALUE" */
static void set_variables(const char *variables, bool on)
{
	char text[200], *at = text, *one;

	snprintf(text, sizeof(text), "%s", variables);
	while ((one = strsep(&at, ";")) && *one) {
		char *value = strchr(one, '=');

		*value++ = '\0';
		if (on)
			setenv(one, value, 1);
		else
			unsetenv(one);
	}
}

/* The result of a new worker, which sees these variables. */
static struct gpu_info probe_with(const char *variables)
{
	struct gpu *g = open_gpu();
	struct gpu_info info;

	set_variables(variables, true);
	if (gpu_probe(g, GPU_CUDA, NULL, &info, &err))
		diag("%s", err.msg);
	set_variables(variables, false);
	gpu_free(g);
	return info;
}

static void trouble_is(const char *variables, const char *want, const char *title)
{
	struct gpu_info info = probe_with(variables);
	char text[GPU_TROUBLE_MAX];
	bool any = gpu_trouble(&info, text);

	is_str(text, want, title);
	if (any != (*want != '\0'))
		ok(false, "and it says that there is any");
}

static void test_board(void)
{
	struct gpu_info info = probe_with("");

	is_str(info.board.driver, "580.159.03", "the driver's version");
	ok(info.board.power_limit == 700 && info.board.clock == 1980e6, "limit and clock");
	ok(info.board.others_known && !info.board.others && !info.board.partition && !info.board.utilisation,
		"a board that is ours alone");
	info = probe_with("FAKE_NVML_PIDS=71 72;FAKE_NVML_USE=40");
	ok(info.board.others_known && info.board.others == 2 && info.board.utilisation == 40,
		"other processes, and the use before ours");
}

static void test_trouble(void)
{
	trouble_is("", "", "no trouble");
	trouble_is("FAKE_NVML_PIDS=71;FAKE_NVML_USE=40",
		"another process (pid 71) is on it, 40 % in use", "another process");
	trouble_is("FAKE_NVML_PIDS=71", "another process (pid 71) is on it", "one that idles");
	trouble_is("FAKE_NVML_PIDS=71 72", "2 other processes (one is pid 72) are on it", "two");
	trouble_is("FAKE_NVML_PIDS=71;FAKE_NVML_HIDDEN=1", "",
		"where our process is not seen, no other is believed");
	trouble_is("FAKE_NVML_PIDS=71;FAKE_NVML_HIDDEN=1;FAKE_NVML_USE=40",
		"something else is on it, 40 % in use", "but its work is");
	trouble_is("FAKE_NVML_HIDDEN=1;FAKE_NVML_USE=9", "", "unless there is little");
	trouble_is("FAKE_NVML_USE=40", "", "with nobody there it was work that has ended");
	trouble_is("FAKE_NVML_MIG=1;FAKE_CUDA_SMS=60;FAKE_NVML_PIDS=71",
		"it is a part of a board (MIG), with 60 SMs", "a partition");
	trouble_is("FAKE_CUDA_NAME=NVIDIA H200 MIG 3g.71gb;FAKE_CUDA_SMS=60;FAKE_NVML_REFUSES=1",
		"it is a part of a board (MIG), with 60 SMs", "by its name alone");
	trouble_is("FAKE_NVML_REASONS=0x5", "", "idle, or at its power limit");
	trouble_is("FAKE_NVML_REASONS=0x48", "its clock is held down: it is too hot", "heat");
	trouble_is("FAKE_NVML_REASONS=0x20", "its clock is held down: it is too hot",
		"heat that software sees");
	trouble_is("FAKE_NVML_REASONS=0x88",
		"its clock is held down: the machine's power supply asks for it", "a brake");
	trouble_is("FAKE_NVML_REASONS=0x8",
		"its clock is held down: the hardware does so, without a reason", "neither");
	trouble_is("FAKE_NVML_REASONS=0x10",
		"its clock is held down: it goes with that of other devices (sync boost)",
		"sync boost");
	trouble_is("FAKE_NVML_REASONS=0x2;FAKE_NVML_MHZ=1200", "its clock is set to 1200 of 1980 "
		"MHz (nvidia-smi -rac and -rgc reset it)", "a clock that was set");
	trouble_is("FAKE_NVML_REASONS=0x2", "", "to the highest");
}

static bool nothing_known(const struct gpu_info *info)
{
	return info->sms == 132 && !info->board.driver[0] && !info->board.power_limit &&
		!info->board.clock && !info->board.throttle && !info->board.others_known &&
		!info->board.utilisation && !info->board.partition;
}

/* The device can be used whatever the management library lacks. */
static void test_board_unknown(void)
{
	struct gpu_info info;

	setenv("MILLRACE_LIBNVML", "/nowhere/libnvidia-ml.so.1", 1);
	info = probe_with("");
	ok(nothing_known(&info), "without the library, nothing is known of the board");
	use_fake("MILLRACE_LIBNVML", "fake_cuda.so");
	info = probe_with("");
	ok(nothing_known(&info), "nor by one that is none");
	use_fake("MILLRACE_LIBNVML", "fake_nvml_old.so");
	trouble_is("FAKE_NVML_REASONS=0x40", "its clock is held down: it is too hot",
		"an old one says what it can");
	info = probe_with("");
	ok(nothing_known(&info), "and no more");
	use_fake("MILLRACE_LIBNVML", "fake_nvml.so");
	info = probe_with("FAKE_NVML_INIT=9");
	ok(nothing_known(&info), "one that does not begin says nothing");
	info = probe_with("FAKE_NVML_REFUSES=1");
	ok(nothing_known(&info), "nor one that refuses everything");
}

/* Our own use of the device is not reported as that of another process. */
static void test_own_use(void)
{
	struct gpu *g = open_gpu();
	struct gpu_info info;

	setenv("FAKE_NVML_USE", "90", 1);
	ok(still_works(g) && !gpu_probe(g, GPU_CUDA, NULL, &info, &err) && info.board.utilisation == 0,
		"after a job, the use is ours");
	unsetenv("FAKE_NVML_USE");
	gpu_free(g);
}

int main(int argc, char **argv)
{
	static void (*const tests[])(void) = { test_board, test_trouble, test_board_unknown, test_own_use };

	return gpu_tests(argc, argv, tests, LEN(tests));
}
