# k:export. The launchers really run, on a driver that records its calls
# (tests/fake/recorder.c), and these are compared with what was lowered.
. tests/lib.sh

. tests/fake/recorder.sh
warn='-std=c11 -Wall -Wextra -Wpedantic -Werror -O1'

# Two plans: ragged sizes, a product on two lanes; and two phases with a temporary between.
cat >"$T/plans.lua" <<'E'
local plans = {}

local function lanes(bound, tile, split, rings)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  if split then plan:split("m", split) end
  plan:lane("p0", {warps = 1})
  for i = 0, (split or 1) - 1 do plan:lane("c" .. i, {warps = 4}) end
  plan:buffers(rings)
  for _, t in ipairs(plan.tasks) do
    local load = t.name:match "^load"
    local seu = (load or t.name:match "^store") and "tma" or t.name:match "^mma" and "tensor" or "cuda"
    plan:append(t.name, {lane = load and "p0" or "c" .. (t.name:match "%.(%d)$" or 0), seu = seu})
  end
  plan:fill_waits()
  return plan
end

function plans.gemm()
  return lanes(mr.examples.gemm{m = 200, n = 264, k = 136}, {m = 128, n = 128, k = 64}, 2, {a = 2, b = 2})
end

function plans.two()
  local prog = mr.program("two_products", function(p)
    local m, n, k, l = p:axes("m", "n", "k", "l")
    local T, D = p:temp("T", {m, n}), p:output("D", {m, l}, "f32")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:input("class", {l, n})
    p:phase("first", function()
      local acc = p:carry("acc1", {m, n}, 0)
      p:loop(k, function() acc:add(p:mma("mma1", p:load("load_a", A), p:load("load_b", B))) end)
      T:store("store_t", p:task("round1", function() return acc:to "bf16" end))
    end)
    p:phase("second", function()
      local acc = p:carry("acc2", {m, l}, 0)
      p:loop(n, function() acc:add(p:mma("mma2", p:load("load_t", T), p:load("load_c", C))) end)
      D:store("store_d", p:task("scale", function() return acc * 0.5 end))
    end)
  end)
  return lanes(prog:bind{m = 128, n = 64, k = 96, l = 192}, {m = 64, n = 64, k = 32, l = 64}, nil,
    {a = 2, b = 2, t = 2, c = 2})
end

return plans
E
cat >"$T/export.lua" <<'E'
-- export.lua PLAN DIR [NAME]: export, and write the arguments that the driver should get for each launch
-- on tensors at 0x10000, 0x20000, ... (inputs, outputs), in DIR/want.c and DIR/want.py.
local name, dir, as = ...
local core = require "millrace.core"
local plan = dofile(arg[0]:match "^(.*/)" .. "plans.lua")[name]()
for _, path in ipairs(plan:compile{target = "cuda"}:export(dir, {name = as})) do print(path) end

local element, swizzle = {bf16 = 9, f16 = 6, f32 = 7}, {[0] = 0, [32] = 1, [64] = 2, [128] = 3}
local bits = {bf16 = 16, f16 = 16, f32 = 32}
local address, dtype, n = {}, {}, 0
for _, role in ipairs{"input", "output", "temp"} do
  for _, t in ipairs(plan.graph.program.tensors) do
    if t.role == role then
      n = n + 1
      dtype[t.name] = t.dtype
      address[t.name] = {c = ("0x%x"):format(n * 0x10000), py = ("0x%x"):format(n * 0x10000)}
      if role == "temp" then
        local bytes = bits[t.dtype] // 8
        for _, size in ipairs(t.shape) do bytes = bytes * size end
        address[t.name].c = ("temporary(%d)"):format(bytes)
      end
    end
  end
end

local function launch(s, how)
  local words = {("launch %s grid %d 1 1 block %d 1 1 shared %d stream 0x77 early:"):format(s.entry, s.blocks,
    s.threads, s.shared_bytes)}
  for _, p in ipairs(s.params) do
    if p.kind == "pointer" then words[#words + 1] = address[p.tensor][how] end
    if p.kind == "order" or p.kind == "start" then
      words[#words + 1] = "ints(" .. table.concat(s[p.kind], " ") .. ")"
    end
    if p.kind == "map" then
      words[#words + 1] = ("map(element %d at %s dims %s strides %s box %s swizzle %d promotion 2)"):format(
        element[dtype[p.tensor]], address[p.tensor][how], table.concat(p.dims, " "),
        table.concat(p.strides, " ", 2), table.concat(p.box, " "), swizzle[p.swizzle])
    end
  end
  return table.concat(words, " ")
end

local kinds = {}
for _, how in ipairs{"c", "py"} do
  local file <close> = io.open(dir .. "/want." .. how, "w")
  for _, s in ipairs(core.lower(plan, "cuda")) do
    file:write(launch(s, how), "\n")
    kinds[#kinds + 1] = s.entry .. "="
    for _, p in ipairs(s.params) do kinds[#kinds + 1] = p.kind == "map" and "m" or "p" end
    kinds[#kinds + 1] = ";"
  end
end
for file, text in pairs{kinds = table.concat(kinds), flops = ("%d"):format(plan.graph.flops)} do
  local file <close> = io.open(dir .. "/" .. file, "w")
  file:write(text)
end
E

# The recorded launches; a temporary's address in a map is not known in advance.
launches() {
	grep '^launch' "$1" | sed 's/at 0x[0-9a-f]\{6,\} dims/at TEMP dims/g'
}
wanted() {
	sed 's/at \(temporary([0-9]*)\|0x[0-9a-f]\{6,\}\) dims/at TEMP dims/g' "$1"
}

# ---- files ----------------------------------------------------------------------

gemm=$T/new/folder/gemm two=$T/two
t_cmd 'export makes the folder' 0 "$MILLRACE" "$T/export.lua" gemm "$gemm/"
t_out 'and gives the paths' <<E
$gemm/gemm.cu
$gemm/gemm.cubin
$gemm/gemm.h
$gemm/gemm.c
$gemm/gemm.py
E
t_cmd 'two phases' 0 "$MILLRACE" "$T/export.lua" two "$two" 2x
t_is 'two sources, and a name that is an identifier' "$(cd "$two" && ls ./*.* | tr '\n' ' ')" \
	'./k2x.c ./k2x.h ./k2x.py ./k2x_first.cu ./k2x_first.cubin ./k2x_second.cu ./k2x_second.cubin ./want.c ./want.py '
for compiler in gcc clang; do
	for c in "$gemm/gemm.c" "$two/k2x.c"; do
		command -v $compiler >/dev/null || continue
		t_cmd "$compiler has nothing to say about ${c##*/}" 0 $compiler $warn -c -o "$T/x.o" "$c"
	done
done
if command -v c++ >/dev/null; then
	t_cmd 'C++ takes the header' 0 c++ -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$two/k2x.h"
fi

# ---- the C launcher ----------------------------------------------------------------

cat >"$T/gemm_main.c" <<'E'
#include <stdio.h>
#include "gemm.h"

#define AT(i) ((void *)((i) * 0x10000L))

int main(void)
{
	struct CUstream_st *stream = (void *)0x77L;
	int before = gemm_launch(stream, AT(1), AT(2), AT(3));

	printf("before loading: %d, %s\n", before, gemm_error());
	if (gemm_load(0)) {
		printf("%s\n", gemm_error());
		return 1;
	}
	printf("again: %d\n", gemm_load(0));
	printf("launch: %d\n", gemm_launch(stream, AT(1), AT(2), AT(3)));
	printf("crooked: %d, ", gemm_launch(stream, AT(1), (char *)AT(2) + 8, AT(3)));
	printf("%s\n", gemm_error());
	printf("launch: %d\n", gemm_launch(NULL, AT(4), AT(5), AT(6)));
	gemm_unload(0);
	gemm_unload(0);
	printf("after: %d\n", gemm_launch(stream, AT(1), AT(2), AT(3)));
	printf("no such device: %d, ", gemm_load(1));
	printf("%s\n", gemm_error());
	return 0;
}
E
cat >"$T/two_main.c" <<'E'
#include <stdio.h>
#include "k2x.h"

#define AT(i) ((void *)((i) * 0x10000L))

int main(void)
{
	int code = k2x_load(0);

	code = code ? code : k2x_launch((void *)0x77L, AT(1), AT(2), AT(3), AT(4));
	printf("%d %s\n", code, k2x_error());
	k2x_unload(0);
	return code != 0;
}
E
t_ok 'the launchers link' $cc $warn -I"$gemm" -o "$T/gemm_main" "$T/gemm_main.c" "$gemm/gemm.c" -ldl
t_ok 'of two phases, too' $cc $warn -I"$two" -o "$T/two_main" "$T/two_main.c" "$two/k2x.c" -ldl

on_recorder() { # LOG COMMAND...
	rm -f "$1"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$1" RECORDER_PARAMS="$(cat "$gemm/kinds" "$two/kinds")" "${@:2}"
}
t_cmd 'the launcher runs' 0 on_recorder "$T/log" "$T/gemm_main"
t_out 'and says what is wrong' <<'E'
before loading: -1, gemm: not loaded on the device that is current: call gemm_load first
again: 0
launch: 0
crooked: -1, gemm: the address of argument 2 is no multiple of 16, or NULL
launch: 0
after: -1
no such device: 101, gemm: cuDeviceGet: CUDA_ERROR_101 (as the test set it)
E
t_is 'the driver gets what was lowered' "$(launches "$T/log" | head -1)" "$(wanted "$gemm/want.c")"
t_like 'tensor maps, as A[200][136] has them' "$(cat "$T/log")" \
	'map\(element 9 at 0x10000 dims 136 200 strides 272 box 64 128 swizzle 3 promotion 2\)'
t_like 'and B[264][136]' "$(cat "$T/log")" \
	'map\(element 9 at 0x20000 dims 136 264 strides 272 box 64 128 swizzle 3 promotion 2\)'
t_like 'each launch has its own addresses' "$(launches "$T/log" | sed -n 2p)" \
	'stream 0x0 early: 0x40000 0x50000 0x60000 .*map\(element 9 at 0x40000 '
t_like 'shared memory beyond 48 KiB is asked for' "$(cat "$T/log")" \
	"attribute 8 of gemm_main: $(sed 's/.*shared \([0-9]*\).*/\1/' "$gemm/want.c")\$"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
sum=$(grep ^load "$T/log")
t_like 'the embedded binary has its size' "$sum" "^load $(stat -c %s "$gemm/gemm.cubin") bytes"

t_cmd 'two phases run' 0 on_recorder "$T/log" "$T/two_main"
t_is 'in order, each early, over a temporary' "$(launches "$T/log")" "$(wanted "$two/want.c")"
t_is 'that is the same one' "$(grep -o 'at 0x[0-9a-f]\{6,\} dims' "$T/log" | sort -u | wc -l)" 1
t_like 'and is given back' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_cmd 'an early launch that fails' 1 env RECORDER_FAIL=cuLaunchKernelEx=719 bash -c "$(declare -f on_recorder)
	T='$T' gemm='$gemm' two='$two'; on_recorder '$T/log' '$T/two_main'"
t_like 'is reported' "$(cat "$T/out")" '^719 k2x: cuLaunchKernelEx: CUDA_ERROR_719 '

t_cmd 'a device of another kind' 1 env RECORDER_ARCH=80 bash -c "$(declare -f on_recorder)
	T='$T' gemm='$gemm' two='$two'; on_recorder '$T/log' '$T/gemm_main'"
t_like 'is named' "$(cat "$T/out")" 'the binary is for compute capability 9\.0, device 0 has 8\.0'
t_cmd 'memory that does not suffice' 1 env RECORDER_FAIL=cuMemAlloc=2 bash -c "$(declare -f on_recorder)
	T='$T' gemm='$gemm' two='$two'; on_recorder '$T/log' '$T/gemm_main'"
t_like 'is named' "$(cat "$T/out")" '^gemm: cuMemAlloc: CUDA_ERROR_2'
t_like 'and nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'

# ---- the Python module ----------------------------------------------------------------

# t_python TITLE COMMAND...: as t_cmd with status 0, where there is a Python
python=$(command -v python3)
t_python() {
	[ "$python" ] && { t_cmd "$1" 0 "${@:2}"; return; }
	t_count=$((t_count + 1))
	echo "ok $t_count - $1 # SKIP there is no python3"
}
py() { # LOG CODE
	on_recorder "$1" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$gemm:$two" "$python" -c "$2"
}
t_python 'the modules compile' "$python" -m py_compile "$gemm/gemm.py" "$two/k2x.py"
t_python 'one runs' py "$T/log" "from modules import *
import gemm
assert gemm.NAME == 'gemm' and gemm.ARCH == 'sm_90a'
assert gemm.INPUTS == (('A', (200, 136), torch.bfloat16), ('B', (264, 136), torch.bfloat16))
assert gemm.OUTPUTS[0].shape == (200, 264)
assert gemm.FLOPS == $(cat "$gemm/flops")
assert gemm.BYTES == 2 * (200 * 136 + 264 * 136 + 200 * 264), gemm.BYTES
A, B = (tensor(t, i + 1) for i, t in enumerate(gemm.INPUTS))
C = tensor(gemm.OUTPUTS[0], 3)
torch.cuda.capturing = True
refused(RuntimeError, 'call gemm.load() before capturing', gemm.run, A, B)
gemm.load('cuda:0')
assert gemm.run(A, B, out=C) is C
torch.NEW[200, 264] = 0x60000
assert gemm.run(B=B, A=A) is torch.made[0]
assert gemm.run(A, B).dtype is torch.bfloat16 and len(torch.made) == 2
assert gemm.run(A, B, out=[C])is C
import threading
done = []
for a in A, tensor(gemm.INPUTS[0], 7):
    t = threading.Thread(target=lambda: done.append(gemm.run(a, B, out=C)))
    t.start()
    t.join()
assert done == [C, C]
"
if [ "$python" ]; then
	t_is 'the driver gets what was lowered' "$(launches "$T/log" | head -1)" "$(wanted "$gemm/want.py")"
	t_is 'the cached arguments are the same' "$(launches "$T/log" | sed -n 4p)" "$(wanted "$gemm/want.py")"
	t_is 'a new output goes to the kernel' "$(launches "$T/log" | sed -n 2p)" \
		"$(wanted "$gemm/want.py" | sed 's/0x30000/0x60000/g')"
	t_is 'and is not forgotten' "$(launches "$T/log" | sed -n 2p)" "$(launches "$T/log" | sed -n 3p)"
	t_is 'also by threads without a context' "$(launches "$T/log" | tail -2)" \
		"$(wanted "$gemm/want.py"; wanted "$gemm/want.py" | sed 's/0x10000/0x70000/g')"
	t_is 'it loads the binary that the launcher embeds' "$(grep ^load "$T/log")" "$sum"
fi
t_python 'two phases run, also on another device' py "$T/log" "from modules import *
import k2x
A, B, c = (tensor(t, i + 1) for i, t in enumerate(k2x.INPUTS))
torch.NEW[128, 64] = 0x50000
k2x.run(A, B, class_=c, out=tensor(k2x.OUTPUTS[0], 4))
torch.cuda.current = 1
k2x.run(A, B, c, out=tensor(k2x.OUTPUTS[0], 4))
assert torch.cuda.current == 1
"
if [ "$python" ]; then
	t_is 'in order, each early, over a temporary' "$(launches "$T/log" | head -2)" "$(wanted "$two/want.py")"
	t_is 'each time' "$(launches "$T/log" | tail -2)" "$(wanted "$two/want.py")"
fi
t_python 'what is wrong is said' py "$T/log" "from modules import *
import gemm
A, B = (tensor(t, i + 1) for i, t in enumerate(gemm.INPUTS))
refused(TypeError, 'B must be a torch tensor, got list', gemm.run, A, [1, 2])
refused(TypeError, 'A must be a torch tensor, got int', gemm.run, 1, B)
refused(TypeError, 'missing 1 required', gemm.run, A)
refused(TypeError, 'A must have dtype torch.bfloat16, got torch.float32', gemm.run,
        torch.Tensor((200, 136), torch.float32, 0x10000), B)
refused(ValueError, 'B must have shape (264, 136), got (136, 264)', gemm.run, A,
        torch.Tensor((136, 264), torch.bfloat16, 0x10000))
refused(ValueError, 'A must be on a CUDA device, it is on cpu', gemm.run, tensor(gemm.INPUTS[0], 1, index=-1), B)
refused(ValueError, 'B is on cuda:1, other tensors are on cuda:0', gemm.run, A, tensor(gemm.INPUTS[1], 1, index=1))
refused(ValueError, 'B must be contiguous, as B.contiguous() is', gemm.run, A,
        tensor(gemm.INPUTS[1], 1, contiguous=False))
refused(ValueError, 'C must have shape', gemm.run, A, B, out=A)
refused(TypeError, 'out has 2 tensors, expected 1', gemm.run, A, B, out=(A, B))
refused(ValueError, 'B must begin at a multiple of 16 bytes', gemm.run, A,
        torch.Tensor((264, 136), torch.bfloat16, 0x10002), out=tensor(gemm.OUTPUTS[0], 3))
torch.cuda.capability = (10, 0)
refused(RuntimeError, 'the binary is for sm_90a, cuda:1 is sm_100', gemm.load, 1)
"
t_python 'and what the driver says' env RECORDER_FAIL=cuLaunchKernelEx=719 bash -c "$(declare -f on_recorder py)
	T='$T' gemm='$gemm' two='$two' python='$python'; py '$T/log' \"from modules import *
import gemm
A, B, C = (tensor(t, i + 1) for i, t in enumerate(gemm.INPUTS + gemm.OUTPUTS))
refused(RuntimeError, 'gemm: cuLaunchKernelEx on cuda:0: CUDA_ERROR_719 (719)', gemm.run, A, B, out=C)\""

# ---- a kernel for the CPU ----------------------------------------------------------------

cat >"$T/host.lua" <<'E'
-- host.lua PLAN DIR: export for the CPU; host.lua PLAN DIR OUTPUT: compare DIR/OUTPUT.bin with
-- the reference. Inputs are in DIR/NAME.bin.
local name, dir, output = ...
local plan = dofile(arg[0]:match "^(.*/)" .. "plans.lua")[name]()
local bound = plan.graph.program
local inputs = bound:inputs{seed = 7}

local function indices(shape, f)
  for i = 1, shape[1] do for j = 1, shape[2] do f(i, j) end end
end

if output then
  local want = bound:reference(inputs)[output]
  local file <close> = io.open(("%s/%s.bin"):format(dir, output), "rb")
  local half, worst, size = output == "C", 0, 0           -- C is bf16, D is f32
  indices(want:shape(), function(i, j)
    local x = half and (string.unpack("<f", "\0\0" .. file:read(2))) or (string.unpack("<f", file:read(4)))
    worst, size = math.max(worst, math.abs(x - want:get(i, j))), math.max(size, math.abs(want:get(i, j)))
  end)
  assert(worst <= 1e-2 * size, worst .. " of " .. size)
  return print "as the reference"
end
for _, path in ipairs(plan:compile{target = "host"}:export(dir)) do print(path) end
for tensor, x in pairs(inputs) do
  local file <close> = io.open(("%s/%s.bin"):format(dir, tensor), "wb")
  indices(x:shape(), function(i, j) file:write(string.pack("<f", x:get(i, j)):sub(3)) end)
end
E
on_cpu() { # PLAN NAME OUTPUT INPUT...: export, build, run, compare
	local plan=$1 name=$2 output=$3 dir=$T/cpu/$1
	t_cmd "$name for the CPU" 0 "$MILLRACE" "$T/host.lua" "$plan" "$dir"
	t_like 'has a driver' "$(cat "$T/out")" "^$dir/${name}_host.c\$"
	t_like 'and the runtime' "$(cat "$T/out")" "^$dir/millrace/host/rt.c\$"
	t_cmd 'is built by its makefile' 0 make -C "$dir" -f "${name}_host.mk" CC="$cc" \
		CFLAGS='-O1 -g -Wall -Wextra -Werror'
	t_is 'without a warning' "$(cat "$T/err")" ''
	t_cmd 'runs on files' 0 env -C "$dir" "./${name}_host" -r "$output=$output.bin" \
		$(for input in "${@:4}"; do echo "$input=$input.bin"; done)
	t_like 'shows the output' "$(cat "$T/out")" "^[a-z0-9]+ $output\\[.*; sum "
	t_cmd 'and computes' 0 "$MILLRACE" "$T/host.lua" "$plan" "$dir" "$output"
}
on_cpu gemm gemm C A B
on_cpu two two_products D A B class
host=$T/cpu/gemm
t_cmd 'without files' 0 "$host/gemm_host" -s 5
t_ok 'the inputs are random' grep -Eq '^bf16 C\[m=200\]\[n=264\]: .*; sum -?[0-9.]+$' "$T/out"
cp "$T/out" "$T/first"
t_cmd 'again' 0 "$host/gemm_host" -s 5
t_is 'and the same' "$(cat "$T/out")" "$(cat "$T/first")"
t_cmd 'other words' 2 "$host/gemm_host" X=x
t_err 'are answered by the usage' '^usage: gemm_host'
echo short >"$T/short"
t_cmd 'a file of another size' 1 "$host/gemm_host" A="$T/short"
t_err 'is refused' 'short must have 54400 bytes: bf16 A\[m=200\]\[k=136\]'
t_ok 'a kernel that signals nothing' sed -i 's/flag_arrive_warp(shared/if (0) &/' "$host/gemm_kernel.c"
t_ok 'whose text is another' grep -q 'if (0) flag_arrive_warp' "$host/gemm_kernel.c"
t_ok 'can be built' make -C "$host" -f gemm_host.mk CC="$cc"
t_cmd 'and ends' 3 "$host/gemm_host"
t_err 'with a report' 'deadlock'

# ---- what cannot be written -----------------------------------------------------------

k='k = dofile "'$T'/plans.lua".gemm():compile{target="cuda"}'
echo old >"$T/old.h"
ln "$T/old.h" "$gemm/link.h" && mv "$gemm/link.h" "$gemm/gemm.h"
t_cmd 'files of these names' 0 "$MILLRACE" -e "$k" -e "k:export '$gemm'"
t_is 'are replaced and not written into' "$(cat "$T/old.h")" old
t_like 'by new ones' "$(cat "$gemm/gemm.h")" '^int gemm_load'
t_cmd 'a folder under a file' 1 "$MILLRACE" -e "$k" -e "k:export '$T/old.h/x'"
t_err 'is named, and why' "^millrace: \(command line\):1: export: cannot make the folder '$T/old.h': Not a directory"
mkdir -p "$T/taken/gemm.c"
t_cmd 'a folder with the name of a file' 1 "$MILLRACE" -e "$k" -e "k:export '$T/taken'"
t_err 'is named, and why' "export: cannot write '$T/taken/gemm.c': Is a directory"
t_is 'and no half file is left' "$(ls "$T/taken" | grep part)" ''
t_cmd 'no folder' 1 "$MILLRACE" -e "$k" -e 'k:export()'
t_err 'is an error' 'export: folder must be a string, got nil'
t_cmd 'text alone' 1 "$MILLRACE" -e "dofile('$T/plans.lua').gemm():compile{text=true}:export '$T/text'"
t_err 'has nothing to launch' 'export: this kernel is text alone; compile it without text=true'
t_cmd 'an option that is none' 1 "$MILLRACE" -e "$k" -e "k:export('$T/text', {nam='x'})"
t_err 'has a hint' 'export: unknown option .nam.*name'
t_done
