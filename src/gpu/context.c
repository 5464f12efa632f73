#include "gpu/context.h"

#include <stdio.h>
#include <string.h>

/* NVML's utilisation is a mean over up to a second; with some margin. */
#define UTILISATION_SECONDS 2.0

/* ---- failures ---- */

/* The kind of failure of a CUDA error, and what the user can do. */
static const struct advice {
	int result;
	enum gpu_failure failure;
	const char *text;
} advices[] = {
	{ CUDA_OUT_OF_MEMORY, GPU_FAIL_MEMORY, "take smaller sizes, or end what else uses the device" },
	{ CUDA_STUB_LIBRARY, GPU_FAIL_MISSING, "take the stubs folder of the CUDA toolkit out of LD_LIBRARY_PATH" },
	{ CUDA_DEVICE_UNAVAILABLE, GPU_FAIL_MISSING, "another process uses the device exclusively" },
	{ CUDA_NO_DEVICE, GPU_FAIL_MISSING, "is one attached, and does CUDA_VISIBLE_DEVICES let us see it?" },
	{ CUDA_INVALID_DEVICE, GPU_FAIL_MISSING, "there are fewer devices" },
	{ CUDA_SYSTEM_NOT_READY, GPU_FAIL_MISSING, "the fabric manager or the driver's services are not running" },
	{ CUDA_DRIVER_MISMATCH, GPU_FAIL_MISSING,
		"the driver's library and its kernel module differ: reboot, or reinstall it" },
	{ CUDA_COMPAT_NOT_SUPPORTED, GPU_FAIL_MISSING,
		"this device does not take the forward compatibility library: install the driver" },
	{ CUDA_INVALID_IMAGE, GPU_FAIL_BINARY,
		"the binary is broken, or newer than the driver: update the driver, or name an "
		"older libnvrtc in MILLRACE_LIBNVRTC" },
	{ CUDA_NO_BINARY_FOR_GPU, GPU_FAIL_BINARY, "compile for the architecture of this device" },
	{ CUDA_INVALID_PTX, GPU_FAIL_BINARY, "compile for the architecture of this device" },
	{ CUDA_UNSUPPORTED_PTX_VERSION, GPU_FAIL_BINARY,
		"update the driver, or name an older libnvrtc in MILLRACE_LIBNVRTC" },
	{ CUDA_NOT_FOUND, GPU_FAIL_BINARY, "the binary has no such kernel: is it extern \"C\"?" },
	{ CUDA_LAUNCH_OUT_OF_RESOURCES, GPU_FAIL_LAUNCH,
		"registers a thread times threads, or shared memory, exceed what an SM has" },
	{ CUDA_COOPERATIVE_TOO_LARGE, GPU_FAIL_LAUNCH, "not all blocks fit on the device at once: launch fewer" },
	{ CUDA_INVALID_CLUSTER_SIZE, GPU_FAIL_LAUNCH, "no such cluster fits on this device with these resources" },
	{ CUDA_ILLEGAL_ADDRESS, GPU_FAIL_FAULT, "a kernel touched memory that is none of its buffers" },
	{ CUDA_ILLEGAL_INSTRUCTION, GPU_FAIL_FAULT,
		"a kernel executed a trap, or an instruction with operands that it cannot take" },
	{ CUDA_MISALIGNED_ADDRESS, GPU_FAIL_FAULT, "an address is no multiple of the size of its access" },
	{ CUDA_INVALID_ADDRESS_SPACE, GPU_FAIL_FAULT, "a shared or local access went to another kind of memory" },
	{ CUDA_INVALID_PC, GPU_FAIL_FAULT, "a jump went nowhere" },
	{ CUDA_HARDWARE_STACK, GPU_FAIL_FAULT, "the call stack is corrupt" },
	{ CUDA_ASSERT, GPU_FAIL_FAULT, "an assert() in the kernel failed" },
	{ CUDA_LAUNCH_FAILED, GPU_FAIL_FAULT, "often a bad address in shared memory, a barrier or a tensor map" },
	{ CUDA_LAUNCH_TIMEOUT, GPU_FAIL_TIMEOUT, "the driver's own watchdog stopped a kernel: is a display attached?" },
	{ CUDA_ECC_UNCORRECTABLE, GPU_FAIL_OTHER, "the device's memory is failing" },
	{ CUDA_NOT_SUPPORTED, GPU_FAIL_LAUNCH, "this device or driver cannot do it" },
	{ CUDA_INVALID_VALUE, GPU_FAIL_OTHER, "one of its arguments is out of range" },
};

/* Those of HIP that differ, or that it has alone. */
static const struct advice hip_advices[] = {
	{ CUDA_NO_DEVICE, GPU_FAIL_MISSING,
		"is one attached, do HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES let us see it, "
		"and may we open /dev/kfd?" },
	{ CUDA_INVALID_IMAGE, GPU_FAIL_BINARY,
		"the code object is broken, or newer than ROCm: update ROCm, or compile with "
		"its clang (HIP_CLANG_PATH)" },
	{ CUDA_LAUNCH_OUT_OF_RESOURCES, GPU_FAIL_LAUNCH,
		"registers a thread times threads, or shared memory, exceed what a CU has" },
	{ CUDA_LAUNCH_FAILED, GPU_FAIL_FAULT, "often a bad address, in memory or in LDS" },
	{ HIP_INVALID_CONFIGURATION, GPU_FAIL_LAUNCH,
		"a launch has at least one block, and a block at most 1024 threads and the LDS of a CU" },
	{ HIP_RUNTIME_MEMORY, GPU_FAIL_MEMORY, "take smaller sizes, or end what else uses the device" },
	{ HIP_RUNTIME_OTHER, GPU_FAIL_OTHER, "AMD_LOG_LEVEL=1 in the environment makes the runtime say what is wrong" },
};

static const struct advice *find_advice(const struct gpu_context *d, int result)
{
	static const struct advice none[GPU_APIS] = {
		[GPU_CUDA] = { 0, GPU_FAIL_OTHER, "see the CUDA driver API's list of errors" },
		[GPU_HIP] = { 0, GPU_FAIL_OTHER, "see HIP's list of errors" },
	};

	for (int i = 0; d->kind == GPU_HIP && i < LEN(hip_advices); i++)
		if (hip_advices[i].result == result)
			return &hip_advices[i];
	for (int i = 0; i < LEN(advices); i++)
		if (advices[i].result == result)
			return &advices[i];
	return &none[d->kind];
}

/* The code of a failure; OK stands for ERR_IO. */
static const enum err_code codes[GPU_FAIL_OTHER + 1] = {
	[GPU_FAIL_MEMORY] = ERR_LIMIT, [GPU_FAIL_TIMEOUT] = ERR_LIMIT, [GPU_FAIL_JOB] = ERR_INPUT,
	[GPU_FAIL_LAUNCH] = ERR_INPUT, [GPU_FAIL_BINARY] = ERR_INPUT,
};

char *size_text(const struct gpu_context *d, double bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	int u = 0;

	for (; bytes >= 1024 && u < LEN(units) - 1; u++)
		bytes /= 1024;
	return arena_strf(d->arena, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

/* How much memory is free, for the message. */
static const char *memory_text(const struct gpu_context *d)
{
	size_t left, total;

	if (!d->opened || d->api.memory_info(&left, &total))
		return "";
	return arena_strf(d->arena, ": %s of %s are free", size_text(d, (double)left),
		size_text(d, (double)total));
}

enum err_code driver_check(struct gpu_context *d, int result, size_t call, const char *what)
{
	const struct advice *advice;
	enum err_code code;

	if (result == CUDA_OK)
		return OK;
	advice = find_advice(d, result);
	d->verdict.failure = advice->failure;
	/* After a fault every call of CUDA's fails. HIP's may go on, with memory of which nobody knows what it holds. */
	d->verdict.worker_lost = d->opened && (d->api.synchronize() != CUDA_OK ||
		(d->kind == GPU_HIP && advice->failure == GPU_FAIL_FAULT));
	code = codes[advice->failure] ? codes[advice->failure] : ERR_IO;
	return err_set(&d->verdict.err, code, NOWHERE, "%s%s%s failed with %s%s; %s",
		driver_call_name(&d->api, call), what ? " " : "", what ? what : "",
		driver_error_text(&d->api, result, d->arena), result == CUDA_OUT_OF_MEMORY ? memory_text(d) : "",
		advice->text);
}

enum err_code context_fail(struct gpu_context *d, enum gpu_failure failure, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->verdict.failure = failure;
	err_set(&d->verdict.err, code, NOWHERE, "%s", arena_vstrf(d->arena, fmt, ap));
	va_end(ap);
	return code;
}

/* ---- the device ---- */

static enum err_code read_attributes(struct gpu_context *d)
{
	enum { NONE = -1 };		/* 0 in the info */
	struct gpu_info *info = &d->info;
	int clock, memory_clock, l2, smem_sm, smem_block;
	const struct {
		int which[GPU_APIS];
		int *to;
	} wanted[] = {
		{ { CUDA_DEV_MAJOR, NONE }, &info->major },
		{ { CUDA_DEV_MINOR, NONE }, &info->minor },
		{ { CUDA_DEV_SM_COUNT, HIP_DEV_CU_COUNT }, &info->sms },
		{ { CUDA_DEV_CLOCK_RATE, HIP_DEV_CLOCK_RATE }, &clock },
		{ { CUDA_DEV_MEMORY_CLOCK_RATE, HIP_DEV_MEMORY_CLOCK_RATE }, &memory_clock },
		{ { CUDA_DEV_BUS_WIDTH, HIP_DEV_BUS_WIDTH }, &info->bus_width },
		{ { CUDA_DEV_L2_BYTES, HIP_DEV_L2_BYTES }, &l2 },
		{ { CUDA_DEV_SMEM_OPTIN, HIP_DEV_SMEM_PER_BLOCK }, &smem_block },
		{ { CUDA_DEV_SMEM_PER_SM, NONE }, &smem_sm },
		{ { CUDA_DEV_REGISTERS_PER_SM, NONE }, &info->registers_sm },
	};

	for (int i = 0; i < LEN(wanted); i++) {
		*wanted[i].to = 0;
		if (wanted[i].which[d->kind] != NONE)
			TRY(CALL(d, device_attribute, wanted[i].to, wanted[i].which[d->kind], d->device));
	}
	info->clock = clock * 1e3;
	info->memory_clock = memory_clock * 1e3;
	info->l2 = l2;
	info->smem_block = smem_block;
	info->smem_sm = smem_sm;
	return OK;
}

/* Without what follows the name, as ":sramecc+". */
static enum err_code read_hip_arch(struct gpu_context *d)
{
	_Alignas(16) char properties[2 * HIP_PROPERTIES_BYTES] = "";
	const char *arch = properties + HIP_PROPERTIES_ARCH;

	TRY(CALL(d, hipGetDevicePropertiesR0600, properties, d->device));
	properties[HIP_PROPERTIES_ARCH + HIP_PROPERTIES_ARCH_BYTES - 1] = '\0';
	snprintf(d->info.arch, sizeof(d->info.arch), "%.*s", (int)strcspn(arch, ":"), arch);
	return OK;
}

static enum err_code read_hip_info(struct gpu_context *d, int version)
{
	struct gpu_info *info = &d->info;

	info->driver_major = version / 10000000;
	info->driver_minor = version / 100000 % 100;
	snprintf(info->board.driver, sizeof(info->board.driver), "HIP %d.%d", info->driver_major, info->driver_minor);
	return read_hip_arch(d);
}

static enum err_code read_info(struct gpu_context *d)
{
	struct gpu_info *info = &d->info;
	int version;
	size_t total;

	TRY(CALL(d, version, &version));
	TRY(CALL(d, device_name, info->name, sizeof(info->name), d->device));
	TRY(CALL(d, device_memory, &total, d->device));
	if (d->api.device_bus(info->bus, sizeof(info->bus), d->device))
		info->bus[0] = '\0';
	TRY(read_attributes(d));
	info->api = d->kind;
	info->memory_total = (int64_t)total;
	if (d->kind == GPU_HIP)
		return read_hip_info(d, version);
	info->driver_major = version / 1000;
	info->driver_minor = version % 1000 / 10;
	/* from 9.0 on, important instructions (wgmma, tcgen05) are only in the architecture-specific target */
	snprintf(info->arch, sizeof(info->arch), "sm_%d%d%s", info->major, info->minor, info->major >= 9 ? "a" : "");
	return OK;
}

static enum err_code choose_device(struct gpu_context *d, int ordinal)
{
	int count;

	TRY(CALL(d, init, 0));
	TRY(CALL(d, device_count, &count));
	if (count < 1)
		return context_fail(d, GPU_FAIL_MISSING, ERR_IO, "the driver finds no device: %s",
			find_advice(d, CUDA_NO_DEVICE)->text);
	if (ordinal < 0 || ordinal >= count)
		return context_fail(d, GPU_FAIL_MISSING, ERR_IO,
			"there is no device %d: the driver finds %d, counted from 0", ordinal, count);
	return CALL(d, device_get, &d->device, ordinal);
}

static enum err_code open_driver(struct gpu_context *d)
{
	enum err_code code = d->api.lib ? OK : driver_open(&d->api, d->kind, &d->verdict.err);

	d->present = d->api.lib;
	if (code) {
		d->api.lib = NULL;
		d->verdict.failure = GPU_FAIL_MISSING;
	}
	return code;
}

/* Everything but a context, which takes time and memory of the device. */
static enum err_code find_device(struct gpu_context *d, int ordinal)
{
	if (d->found)
		return OK;
	TRY(open_driver(d));
	TRY(choose_device(d, ordinal));
	TRY(read_info(d));
	d->found = true;
	return OK;
}

static enum err_code make_context(struct gpu_context *d)
{
	struct CUctx_st *context;

	if (d->kind == GPU_HIP)
		return CALL(d, hipSetDevice, d->device);
	TRY(CALL_FOR(d, "for a context", cuDevicePrimaryCtxRetain, &context, d->device));
	return CALL(d, cuCtxSetCurrent, context);
}

enum err_code context_open(struct gpu_context *d, int ordinal)
{
	if (d->opened)
		return OK;
	TRY(find_device(d, ordinal));
	TRY(make_context(d));
	TRY(CALL(d, stream_create, &d->stream, CUDA_STREAM_NON_BLOCKING));
	for (int i = 0; i < LEN(d->span); i++)
		TRY(CALL(d, event_create, &d->span[i], 0));
	d->opened = true;
	d->used_at = clock_seconds();
	return OK;
}

struct cuda_board *context_board(struct gpu_context *d)
{
	if (d->kind == GPU_CUDA && d->info.bus[0])
		cuda_board_open(&d->board, d->info.bus);
	return &d->board;
}

enum err_code context_info(struct gpu_context *d, int ordinal, struct gpu_info *info)
{
	size_t left, total;
	int use = 0;

	TRY(find_device(d, ordinal));
	/* not known shortly after this process has used the device */
	if (d->used_at <= 0 || clock_seconds() - d->used_at >= UTILISATION_SECONDS)
		use = cuda_board_utilisation(context_board(d));
	TRY(context_open(d, ordinal));
	TRY(CALL(d, memory_info, &left, &total));
	*info = d->info;
	info->memory_free = (int64_t)left;
	if (d->kind == GPU_HIP)
		return OK;
	cuda_board_read(context_board(d), &info->board);
	info->board.utilisation = use;
	info->board.partition |= strstr(info->name, " MIG ") != NULL;
	return OK;
}
