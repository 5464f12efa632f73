# Kernels for AMD's GPUs with a fake of AMD's runtime (tests/fake/fake_hip.c), which executes no code but does what a
# variable says: how they are started, what comes back, and what is said when something is missing or goes wrong.
. tests/lib.sh

fakes=$(dirname "$(readlink -f "$MILLRACE")")/fake
[ -e "$fakes/fake_hip.so" ] && [ -e "$fakes/fake_cuda.so" ] ||
	t_skip_all "no fake libraries in $fakes: make check builds them"
[ -e "$fakes/fake_hiprtc.so" ] || t_skip_all "no fake libraries in $fakes: make check builds them"
type clang-22 >/dev/null 2>&1 || t_skip_all 'no clang-22'
export MILLRACE_LIBCUDA=/nowhere MILLRACE_LIBHIP=$fakes/fake_hip.so

cat >"$T/copy.lua" <<'E2'
local mr = require "millrace"
local program = mr.program("copy", function(p)
  local i, j = p:axes("i", "j")
  local X, Y = p:input("X", {i, j}), p:output("Y", {i, j})
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("same", function() return (x:to "f32"):to "bf16" end))
end)
bound = program:bind{i = 64, j = 64}
plan = mr.plan(bound:graph{tile = {i = 32, j = 64}}, mr.device "mi300x")
plan:lane("c0", {warps = 1})
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
k = plan:compile()
E2
cd "$T"

does() { # TITLE CODE
	t_cmd "$1" 0 "$MILLRACE" -e "dofile 'copy.lua' $2"
}

does 'the attached device' 'local a = mr.attached() print(a.name, a.arch, a.sms, a.driver, mr.attached().trouble)'
t_out '  is AMD'"'"'s where CUDA'"'"'s driver is missing' <<'E2'
Fake MI300X	gfx942	304	HIP 6.3	nil
E2
FAKE_HIP_NAME='AMD Instinct MI300X' does 'its file' 'print(mr.device().name)'
t_out '  is found by its name' <<'E2'
mi300x
E2

export FAKE_HIP_KERNEL=copy
does 'a kernel' 'print(k.target, k:run(bound:inputs()).Y:shape()[1])'
t_out '  runs' <<'E2'
hip	64
E2
does 'its results' 'local x = bound:inputs() print(k:run(x).Y:get(3, 5) == x.X:get(3, 5))'
t_out '  come back' <<'E2'
true
E2
does 'a kernel that is right' 'print(k:check())'
t_like '  is found to be' "$(<out)" '^agrees with the reference \(interpreter\)'
FAKE_HIP_KERNEL=zero does 'one that is wrong' 'print(k:check().ok)'
t_is '  is not' "$(<out)" false
FAKE_HIP_KERNEL=zero does 'the plain kernel' 'print(k:check{reference = "device"}.reference)'
t_is '  is compiled for AMD'"'"'s device and runs there' "$(<out)" device
does 'a benchmark' 'print(("%.3f"):format(k:bench().ms))'
t_is '  has the times of the device' "$(<out)" 0.050
does 'a roofline' 'print(#mr.roofline{k}.points)'
t_is '  has the measured and the predicted time' "$(<out)" 2
does 'what is shown of a kernel' 'print(k)'
t_like '  says that it was not measured by us' "$(<out)" 'HIP, not measured by us: [0-9]+ registers'

FAKE_HIP_KERNEL=zero does 'a trace' 'print(select(2, pcall(k.trace, k)))'
t_like '  is compiled with stamps, which this device does not leave' "$(<out)" 'the traced kernel left [0-9]+ stamps fewer than it should'
does 'a race' 'print(#mr.race({a = k, b = plan}, {seconds = 0.01}))'
t_is '  has kernels and plans' "$(<out)" 2
cat >search.lua <<'E2'
local bound = mr.examples.gemm{m = 256, n = 128, k = 128}
local r = assert(mr.search(bound, mr.device "mi300x", {trials = 2, seconds = 20}))
print(#r.measurements, r.measurements[1].status)
E2
MILLRACE_STORE=$T/store.db FAKE_HIP_NAME='AMD Instinct MI300X' FAKE_HIP_KERNEL=zero t_cmd 'a search' 0 "$MILLRACE" search.lua
t_out '  measures its best plans' <<'E2'
2	ok
E2

# What goes wrong is one message, and the same session goes on.
fails() { # TITLE KERNEL ERE [LIMIT]
	FAKE_HIP_KERNEL=$2 t_cmd "$1" 0 "$MILLRACE" -e "dofile 'copy.lua'
		local function try() return select(2, pcall(k.run, k, nil, {limit = ${4:-10}})) end
		print(try()) print((tostring(try())))"
	t_like '  is an error with its reason' "$(head -1 out)" "$3"
	t_is '  each time' "$(tail -1 out)" "$(head -1 out)"
}
fails 'a kernel that hangs' hang "'copy[a-z_]*' did not finish within 0.2 s and was stopped" 0.2
fails 'a kernel that faults' fault 'hipStreamSynchronize after .* hipErrorIllegalAddress .*a kernel touched memory'
fails 'a process that the runtime ends' abort 'Memory access fault by GPU node-1 .*while running'
fails 'a launch that is refused' refuse 'hipModuleLaunchKernel of .*exceed what a CU has'
fails 'a launch without blocks' error9 'hipModuleLaunchKernel of .* a launch has at least one block, and a block at most 1024 threads'
fails 'a launch for which the runtime has no memory' error1052 'hipModuleLaunchKernel of .* take smaller sizes'
fails 'a launch that fails for another reason' error1053 'hipModuleLaunchKernel of .* AMD_LOG_LEVEL=1'
fails 'an error that nobody knows' error4711 "hipModuleLaunchKernel of .* see HIP's list of errors"
FAKE_HIP_ARCH=gfx90a:sramecc+:xnack- fails 'a device of another architecture' copy \
	'the kernel was compiled for gfx942, and the attached Fake MI300X is gfx90a: plan for that device'
FAKE_HIP_INIT=100 fails 'no device' copy 'run: no AMD GPU to run it on: hipInit failed with hipErrorNoDevice .*/dev/kfd.*target="host"'
MILLRACE_LIBHIP=$fakes/fake_cuda.so fails 'a library without its functions' copy \
	'the AMD runtime \(libamdhip64.so\) has no function hipInit: it is too old'
MILLRACE_LIBHIP=/nowhere/libamdhip64.so fails 'no runtime' copy \
	'run: no AMD GPU to run it on: cannot open what MILLRACE_LIBHIP names: .*target="host"\} runs the same text on the CPU'

# Compilers.
mkdir bin lib
cat >bin/clang <<'E2'
#!/bin/sh
echo once >>"$CLANG_LOG"
echo "$@" >>"$CLANG_LOG.options"
exec clang-22 "$@"
E2
chmod +x bin/clang
export CLANG_LOG=$T/clang.log
for i in 1 2; do HIP_CLANG_PATH=$T/bin does "a kernel, $i" 'print(k.registers > 10, k.spills)'; done
t_out '  has the registers that the compiler gave it' <<'E2'
true	0
E2
t_is '  and comes from the cache the second time' "$(cat clang.log)" once
touch -d '2001-01-01' bin/clang
HIP_CLANG_PATH=$T/bin does 'by another compiler' 'print(k:run(bound:inputs()).Y:shape()[1])'
t_is '  it is compiled again' "$(wc -l <clang.log)" 2
HIP_CLANG_PATH=$T/bin XDG_CACHE_HOME=$T/plain does 'the plain kernel' 'print(k:check{reference = "device"}.reference)'
t_like '  has no multiplication and addition in one, which would round once' "$(<clang.log.options)" ' -ffp-contract=off '
printf 'once\nonce\n' >clang.log
HIP_CLANG_PATH=$T/bin does 'kernels of a race' 'print(#mr.race({a = plan, b = plan}, {seconds = 0.01}))'
t_is '  come from there, too: only what makes their inputs is new' "$(wc -l <clang.log)" 3
printf '#!/bin/sh\necho "kernel.hip:3: error: no such word" >&2\nexit 1\n' >bin/clang
HIP_CLANG_PATH=$T/bin t_cmd 'a text that clang refuses' 1 "$MILLRACE" -e "dofile 'copy.lua'"
t_err '  is an error' 'compile: clang failed: kernel.hip:3: error: no such word'

without_clang() { # TITLE CODE
	t_cmd "$1" 0 env PATH=/nowhere HIP_CLANG_PATH= "$MILLRACE" -e "dofile 'copy.lua' $2"
}
if [ ! -e /opt/rocm ]; then
	t_cmd 'without a compiler' 1 env PATH=/nowhere "$MILLRACE" -e "dofile 'copy.lua'"
	t_err '  it is said what to install' 'compile: HIP needs clang \(clang-22, or ROCm.s\) or hiprtc \(libhiprtc.so\), and neither is there: install'
	cp "$fakes/fake_hiprtc.so" lib/libhiprtc.so.6
	LD_LIBRARY_PATH=$T/lib without_clang 'hiprtc compiles where there is no clang' 'print(k.registers, k.spills, k:run(bound:inputs()).Y:shape()[1])'
	t_out '  and its kernels run' <<'E2'
300	0	64
E2
fi
export MILLRACE_LIBHIPRTC=$fakes/fake_hiprtc.so
does 'a library that is named' 'print(k.registers)'
t_is '  comes before clang' "$(<out)" 300
mkdir gate
touch gate/open
XDG_CACHE_HOME=$T/other FAKE_NVRTC_GATE=$T/gate does 'kernels of a race' 'print(#mr.race({a = plan, b = plan}, {seconds = 0.01}))'
t_ok '  are compiled by workers' ls gate/[1-9]*
XDG_CACHE_HOME=$T/third FAKE_NVRTC_ERROR=copy t_cmd 'a text that hiprtc refuses' 1 "$MILLRACE" -e "dofile 'copy.lua'"
t_err '  is an error' 'compile: hiprtc failed: kernel.cu\(7\): error: the fake compiler says so'
MILLRACE_LIBHIPRTC=/nowhere t_cmd 'a library that is not there' 1 "$MILLRACE" -e "dofile 'copy.lua'"
t_err '  is named' 'cannot open what MILLRACE_LIBHIPRTC names: /nowhere'
MILLRACE_LIBHIPRTC=$fakes/fake_cuda.so t_cmd 'one that is something else' 1 "$MILLRACE" -e "dofile 'copy.lua'"
t_err '  is, too' 'the HIP run-time compiler \(libhiprtc.so\) has no function hiprtcVersion: it is too old'
unset MILLRACE_LIBHIPRTC

FAKE_HIP_INIT=100 does 'a trace without a device' 'print(select(2, pcall(k.trace, k)))'
t_like '  says what is missing' "$(<out)" 'trace: no AMD GPU to run it on: hipInit failed'

# Subcommands. Plans in files are run on the device that runs them.
cat >"$T/plan.lua" <<'E2'
local bound = mr.examples.gemm{m = 64, n = 64, k = 64}
local plan = mr.plan(bound:graph{tile = {m = 64, n = 64, k = 32}}, "mi300x")
plan:lane("c0", {warps = 4})
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
return plan
E2
FAKE_HIP_KERNEL=zero t_cmd 'millrace run' 1 "$MILLRACE" run plan.lua
t_like '  runs such a plan there' "$(cat out err)" 'differs from the reference'
FAKE_HIP_INIT=100 t_cmd 'where there is no device, --on hip' 3 "$MILLRACE" run --on hip plan.lua
t_like '  says so' "$(cat out err)" 'no device is attached, .*hipInit'
t_done
