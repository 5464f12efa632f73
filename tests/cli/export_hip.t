# k:export of kernels for AMD's GPUs: the launchers run on a runtime that records its calls (tests/fake/recorder_hip.c), and these
# are compared with what was lowered.
. tests/lib.sh

type clang-22 >/dev/null 2>&1 || t_skip_all 'no clang-22'
. tests/fake/recorder.sh libamdhip64.so.6
warn='-std=c11 -Wall -Wextra -Wpedantic -Werror -O1'
cat >"$T/export.lua" <<'E'
-- export.lua PLAN DIR: export, and write the launches on tensors at 0x10000, 0x20000, ... (inputs, outputs), to DIR/want
local name, dir, m = ...
local core = require "millrace.core"
local plans, programs = {}, dofile "tests/lua/lib/programs.lua"
local function plan_of(bound, tile)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "mi300x")
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan
end
function plans.gemm() return plan_of(mr.examples.gemm{m = 200, n = 264, k = 136}, {m = 64, n = 64, k = 32}) end
function plans.sizes() return plan_of(mr.examples.gemm{m = mr.any{max = 640, multiple = 8}, n = 128, k = 64}, {m = 64, n = 64, k = 32}) end
function plans.chiplets()
  local plan = plans.sizes()
  plan:grid{chiplets = 8, eus = 13}
  return plan
end
function plans.longest()
  local plan = plans.chiplets()
  plan:grid{longest_first = true, eus = 9}
  return plan
end
function plans.two()
  return plan_of(programs.two:bind{m = 128, n = 64, k = 96}, {m = 64, n = 64, k = 32})
end
local plan = plans[name]()
for _, path in ipairs(plan:compile():export(dir)) do print((path:gsub("^.*/", ""))) end
local sizes = plan.graph.program.axes.m ~= 200 and name ~= "two" and {m = tonumber(m)} or nil
local address, n, kinds, lines = {S = "temporary(16384)"}, 0, {}, {}
for _, role in ipairs{"input", "output"} do
  for _, t in ipairs(plan.graph.program.tensors) do
    if t.role == role then
      n = n + 1
      address[t.name] = ("0x%x"):format(n * 0x10000)
    end
  end
end
for _, s in ipairs(core.lower(plan, "hip", false, {sizes = sizes})) do
  local words = {("launch %s grid %d 1 1 block %d 1 1 shared %d stream 0x77:"):format(s.entry, s.blocks, s.threads, s.shared_bytes)}
  kinds[#kinds + 1] = s.entry .. "="
  for _, p in ipairs(s.params) do
    kinds[#kinds + 1] = p.kind == "size" and "i" or "p"
    words[#words + 1] = p.kind == "pointer" and address[p.tensor] or p.kind == "size" and ("%d"):format(p.size)
      or "ints(" .. table.concat(s[p.kind], " ") .. ")"
  end
  kinds[#kinds + 1] = ";"
  lines[#lines + 1] = table.concat(words, " ")
end
for file, text in pairs{want = table.concat(lines, "\n") .. "\n", kinds = table.concat(kinds)} do
  local file <close> = io.open(dir .. "/" .. file, "w")
  file:write(text)
end
E
for plan in gemm two sizes chiplets longest; do
	t_cmd "$plan is exported" 0 "$MILLRACE" "$T/export.lua" $plan "$T/$plan" 200
	[ $plan = gemm ] && t_out '  as these files' <<'E'
gemm.hip
gemm.co
gemm.h
gemm.c
gemm.py
E
done
t_is 'two phases have two sources' "$(cd "$T/two" && ls ./*.hip ./*.co | tr '\n' ' ')" \
	'./two_first.co ./two_first.hip ./two_second.co ./two_second.hip '
t_is 'nothing is named as CUDA has it' "$(grep -i 'cuda\|nvidia\|cubin' "$T"/*/*.[ch] | grep -v cuda-device-only)" ''
for compiler in gcc clang; do
	for c in "$T/gemm/gemm.c" "$T/two/two.c" "$T/sizes/gemm.c"; do
		command -v $compiler >/dev/null || continue
		t_cmd "$compiler has nothing to say about ${c##*/}" 0 $compiler $warn -c -o "$T/x.o" "$c"
	done
done
if command -v c++ >/dev/null; then
	t_cmd 'C++ takes the header' 0 c++ -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$T/two/two.h"
fi
t_cmd 'clang compiles the source as the launcher says' 0 env -C "$T/gemm" clang-22 -x hip --cuda-device-only \
	--no-gpu-bundle-output --offload-arch=gfx942 -O3 -w -nogpuinc -nogpulib -o made gemm.hip

cat >"$T/main.c" <<'E'
#include <stdio.h>
#include HEADER

#define AT(i) ((void *)((i) * 0x10000L))

int main(void)
{
	struct ihipStream_t *stream = (void *)0x77L;
	int code = NAME(launch)(stream, ARRAYS);

	printf("before loading: %d, %s\n", code, NAME(error)());
	code = NAME(load)(0);
	code = code ? code : NAME(load)(0);
	code = code ? code : NAME(launch)(stream, ARRAYS);
	printf("%d %s\n", code, code ? NAME(error)() : "");
	NAME(unload)(0);
	printf("after: %d\n", NAME(launch)(stream, ARRAYS));
	printf("no such device: %d, %s\n", NAME(load)(1), NAME(error)());
	return code != 0;
}
E
on_recorder() { # LOG DIR COMMAND...
	rm -f "$1"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$1" RECORDER_PARAMS="$(cat "$2/kinds")" "${@:3}"
}
launcher() { # PLAN NAME ARGUMENTS
	t_ok "the launcher of $1 links" $cc $warn -I"$T/$1" -DHEADER="\"$2.h\"" -D"NAME(x)=$2_##x" -DARRAYS="$3" -o "$T/$1/main" \
		"$T/main.c" "$T/$1/$2.c" -ldl
	t_cmd '  and runs' 0 on_recorder "$T/log" "$T/$1" "$T/$1/main"
	t_out '  saying what is wrong' <<E
before loading: -1, $2: not loaded on the device that is current: call $2_load first
0 
after: -1
no such device: 101, $2: hipGetDeviceProperties: CUDA_ERROR_101 (as the test set it)
E
	t_is '  the runtime gets what was lowered' "$(grep ^launch "$T/log")" "$(cat "$T/$1/want")"
	t_is '  and nothing is left' "$(tail -1 "$T/log")" 'released: 0 contexts, 0 modules left'
}
launcher gemm gemm 'AT(1), AT(2), AT(3)'
t_like 'the embedded binary has its size' "$(grep ^load "$T/log")" "^load $(stat -c %s "$T/gemm/gemm.co") bytes"
sum=$(grep ^load "$T/log")
launcher two two 'AT(1), AT(2), AT(3)'
for plan in sizes chiplets longest; do
	launcher $plan gemm 'AT(1), AT(2), AT(3), 200'
done
t_cmd 'a device of another kind' 1 env RECORDER_ARCH=gfx90a:sramecc+ LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" "$T/gemm/main"
t_like '  is named' "$(cat "$T/out")" 'gemm: the binary is for gfx942, device 0 is a gfx90a:sramecc'
t_cmd 'one whose name begins alike' 1 env RECORDER_ARCH=gfx9421 LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" "$T/gemm/main"
t_like '  is another, too' "$(cat "$T/out")" 'device 0 is a gfx9421'
rm "$T/log"
t_cmd 'memory that does not suffice' 1 env RECORDER_FAIL=cuMemAlloc=2 LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" "$T/gemm/main"
t_like '  is named' "$(cat "$T/out")" 'gemm: hipMalloc: CUDA_ERROR_2'
t_is '  and nothing is left' "$(tail -1 "$T/log")" 'released: 0 contexts, 0 modules left'
t_cmd 'without the runtime' 1 env LD_LIBRARY_PATH=/nowhere "$T/gemm/main"
t_like '  it says so' "$(cat "$T/out")" "gemm: AMD's runtime cannot be loaded: "

# ---- the Python module ----------------------------------------------------------------

python=$(command -v python3)
[ "$python" ] || { t_done; exit; }
py() { # PLAN CODE
	on_recorder "$T/log" "$T/$1" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$T/$1" "$python" -c "
from modules import *
$2"
}
t_cmd 'the module runs' 0 py gemm "
import gemm
A, B, C = (tensor(t, i + 1) for i, t in enumerate(gemm.INPUTS + gemm.OUTPUTS))
assert gemm.ARCH == 'gfx942'
torch.cuda.capturing = True
refused(RuntimeError, 'call gemm.load() before capturing a HIP graph', gemm.run, A, B)
gemm.load('cuda:0')
assert gemm.run(A, B, out=C) is C and gemm.run(B=B, A=A, out=C) is C
refused(ValueError, 'A must be on a GPU, it is on cpu', gemm.run, torch.Tensor(A.shape, A.dtype, 0x10000, index=-1), B)
"
t_is '  and the runtime gets what was lowered' "$(grep ^launch "$T/log")" "$(cat "$T/gemm/want" "$T/gemm/want")"
t_is '  with the binary that the launcher embeds' "$(grep ^load "$T/log")" "$sum"
t_cmd 'two phases run' 0 py two "
import two
torch.NEW[128, 64] = 0x50000
two.run(*[tensor(t, i + 1) for i, t in enumerate(two.INPUTS)], out=tensor(two.OUTPUTS[0], 3))
"
t_is '  over a temporary of torch' "$(grep ^launch "$T/log")" "$(sed 's/temporary([0-9]*)/0x50000/' "$T/two/want")"
for plan in sizes chiplets longest; do
	t_cmd "so does one whose sizes are known at launch, $plan" 0 py $plan "
import gemm
gemm.load(m=200)
torch.cuda.capturing = True
gemm.run(*[tensor(t, i + 1, {'m': 200}) for i, t in enumerate(gemm.INPUTS)], out=tensor(gemm.OUTPUTS[0], 3, {'m': 200}))
"
	t_is '  with the same launch' "$(grep ^launch "$T/log")" "$(cat "$T/$plan/want")"
done
t_cmd 'what the runtime says' 0 env RECORDER_FAIL=cuLaunchKernel=719 bash -c "$(declare -f on_recorder py)
	T='$T' python='$python'; py gemm \"
import gemm
A, B, C = (tensor(t, i + 1) for i, t in enumerate(gemm.INPUTS + gemm.OUTPUTS))
refused(RuntimeError, 'gemm: hipModuleLaunchKernel on cuda:0: CUDA_ERROR_719 (719)', gemm.run, A, B, out=C)\""
t_cmd '  is passed on, and another device refused' 0 py gemm "
import gemm
torch._Properties.gcnArchName = 'gfx90a:sramecc+'
refused(RuntimeError, 'the binary is for gfx942, cuda:0 is gfx90a', gemm.load)
"
t_done
