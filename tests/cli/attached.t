# The attached device, by fake libraries: what mr.attached() tells of it, and which file of hw/
# mr.device() takes for it.
. tests/lib.sh

t_fake_cuda

echo 'print(mr.device().name)' >"$T/device.lua"

picks() { # FILE SMS NAME
	export FAKE_CUDA_NAME=$3 FAKE_CUDA_SMS=$2
	t_is "$3 is $1" "$("$MILLRACE" "$T/device.lua" 2>&1)" "$1"
}

picks h200 132 'NVIDIA H200'
picks h100 132 'NVIDIA H100 80GB HBM3'
picks a100 108 'NVIDIA A100-SXM4-80GB'

refuses() { # TITLE SMS NAME ERE
	export FAKE_CUDA_NAME=$3 FAKE_CUDA_SMS=$2
	t_cmd "$1 is refused" 1 "$MILLRACE" "$T/device.lua"
	t_err '  at its line, with the reason' "^millrace: $T/device.lua:1: device: $4\$"
	t_is '  but h200 can be had by its name' \
		"$("$MILLRACE" -e 'print(mr.device("h200").name)' 2>&1)" h200
}

model='to take that as a model, say mr.device'
refuses 'a device of another size' 114 'NVIDIA H100 PCIe' "the attached NVIDIA H100 PCIe has \
114 SMs, and hw/h100.lua is of one with 132; $model \"h100\""
refuses 'one without a file' 148 'NVIDIA B200' "no file of hw/ is of the attached NVIDIA B200: \
copy the nearest there under a word of that name, or take a model, as mr.device \"h200\""
refuses 'one whose name only holds a known one' 132 'NVIDIA GH200 480GB' \
	'no file of hw/ is of the attached NVIDIA GH200 480GB: .*'
refuses 'a partition, by its name' 60 'NVIDIA H200 MIG 3g.71gb' "the attached NVIDIA H200 MIG \
3g.71gb is a part of a board, with 60 SMs, and hw/h200.lua is of a complete one; $model \"h200\""
export FAKE_NVML_MIG=1
refuses 'a partition, by its board' 132 'NVIDIA H200' \
	'the attached NVIDIA H200 is a part of a board, with 132 SMs, .*'
unset FAKE_NVML_MIG

# Plans without a device are for that one.
cat >"$T/plan.lua" <<'E'
local bound = mr.examples.gemm{m = 256, n = 256, k = 64}
print(mr.plan(bound:graph{tile = {m = 128, n = 128, k = 64}}).device.name)
E
export FAKE_CUDA_NAME='NVIDIA H100 80GB HBM3' FAKE_CUDA_SMS=132
t_cmd 'a plan' 0 "$MILLRACE" "$T/plan.lua"
t_is '  is for the attached device' "$(<"$T/out")" h100
FAKE_CUDA_SMS=114
t_cmd 'where there is no file of it' 1 "$MILLRACE" "$T/plan.lua"
t_err '  that is said, too' 'plan.lua:2: device: the attached NVIDIA H100 80GB HBM3 has 114 SMs'

# Without a device, or a driver, there is the model.
FAKE_CUDA_INIT=100 picks h200 132 'no device'
MILLRACE_LIBCUDA=/nowhere picks h200 132 'no driver'

export FAKE_CUDA_NAME='NVIDIA H200' FAKE_CUDA_SMS=132
cat >"$T/attached.lua" <<'E'
local a = mr.attached()
print(a.name, a.arch, a.sms, a.bus, a.partition, a.driver, a.power_limit, a.trouble)
E
t_cmd 'mr.attached()' 0 "$MILLRACE" "$T/attached.lua"
t_out '  has what is known' <<'E'
NVIDIA H200	sm_90a	132	0000:1B:00.0	false	580.159.03	700.0	nil
E
FAKE_NVML_PIDS=71 FAKE_NVML_USE=40 t_cmd 'of a busy one' 0 "$MILLRACE" "$T/attached.lua"
t_like '  who is on it' "$(<"$T/out")" 'another process \(pid 71\) is on it, 40 % in use$'
MILLRACE_LIBNVML=/nowhere t_cmd 'without the management library' 0 "$MILLRACE" "$T/attached.lua"
t_out '  it has everything else' <<'E'
NVIDIA H200	sm_90a	132	0000:1B:00.0	false	nil	nil	nil
E
FAKE_CUDA_BUS= t_cmd 'of a driver that does not know the address' 0 "$MILLRACE" "$T/attached.lua"
t_out '  it has what the driver knows' <<'E'
NVIDIA H200	sm_90a	132	nil	false	nil	nil	nil
E
if [ -e "$fakes/fake_hip.so" ]; then
	MILLRACE_LIBHIP=$fakes/fake_hip.so t_cmd "AMD's" 0 "$MILLRACE" -e 'print(require "millrace.core".attached("hip").bus)'
	t_is '  has an address, too' "$(<"$T/out")" 0000:1B:00.0
fi
t_done
