# k:export of kernels whose sizes are known at launch. The launchers run on a driver that records its calls
# (tests/fake/recorder.c), and these are compared, for several sizes, with what `k:run` would launch; the driver for the CPU
# computes, and its results are compared with the reference.
. tests/lib.sh

. tests/fake/recorder.sh
warn='-std=c11 -Wall -Wextra -Wpedantic -Werror -O1'

# All axes of a product; clusters; two phases over a temporary; longest tiles first, two axes of one size.
cat >"$T/plans.lua" <<'E'
local plans, any, programs = {}, mr.any, dofile "tests/lua/lib/programs.lua"

local function plan_of(bound, tile, grid, rings)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  if grid then plan:grid(grid) end
  if rings then plan:buffers(rings) end
  for _, t in ipairs(plan.tasks) do
    local load = t.kind == "load"
    local seu = (load or t.kind == "store") and "tma" or t.kind == "mma" and "tensor" or "cuda"
    plan:append(t.name, {lane = load and "p0" or "c0", seu = seu})
  end
  plan:fill_waits()
  return plan
end

local tile = {m = 64, n = 64, k = 64}

function plans.gemm()
  local size = any{max = 320, multiple = 8}
  return plan_of(mr.examples.gemm{m = size, n = any{max = 256, multiple = 8}, k = any{max = 128, multiple = 64}}, tile,
    {eus = 5, group = 2, raster = "columns"}, {a = 2, b = 2}), {{m = 8, n = 8, k = 64}, {m = 320, n = 256, k = 128}, {m = 136, n = 200, k = 64}}
end

function plans.clusters()
  return plan_of(mr.examples.gemm{m = any{max = 640, multiple = 8}, n = 128, k = 64}, tile, {eus = 6, raster = "columns", cluster = 2},
    {a = 2, b = 2}), {{m = 8}, {m = 640}, {m = 328}}
end

-- Clusters along an outer axis, of which some launches have an odd number.
function plans.batches()
  local prog = mr.program("batches", function(p)
    local device, m, n, k = p:axes("device", "m", "n", "k")
    local A, B, C = p:input("A", {device, m, k}), p:input("B", {n, k}), p:output("C", {device, m, n})
    p:batch(device)
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", p:task("round", function() return c:to "bf16" end))
  end)
  return plan_of(prog:bind{device = any{max = 6}, m = any{max = 128}, n = 128, k = 64}, tile, {eus = 6, cluster = 2, along = "device"},
    {a = 2, b = 2}), {{device = 1, m = 8}, {device = 6, m = 128}, {device = 3, m = 100}}
end

function plans.two()
  return plan_of(programs.two:bind{m = any{max = 200}, n = any{max = 128, multiple = 8}, k = 64}, tile), {{m = 1, n = 8}, {m = 200, n = 128},
    {m = 77, n = 72}}
end

function plans.causal()
  local bound = mr.examples.flash_attention{b = 1, h = 2, m = any{max = 320}, n = any{like = "m"}, d = 64, causal = true}
  return plan_of(bound, {m = 64, n = 64}, {longest_first = true, eus = 3}), {{m = 64}, {m = 320}, {m = 192}}
end

-- Names that the module uses itself: of the program, of an input, of an axis.
function plans.names()
  local prog = mr.program("heapq", function(p)
    local device, n = p:axes("device", "n")
    local X, Y = p:input("sizes", {device, n}), p:output("Y", {device, n}, "f32")
    local x = p:load("load_x", X)
    Y:store("store_y", p:task("twice", function() return x:to "f32" * 2 end))
  end)
  return plan_of(prog:bind{device = any{max = 200}, n = 64}, {device = 64}), {{device = 1}, {device = 200}, {device = 77}}
end

return plans
E
cat >"$T/export.lua" <<'E'
-- export.lua PLAN DIR: export for the device and for the CPU, and write the launches on tensors at 0x10000, 0x20000, ...
-- (inputs, outputs), at each of its sizes, to DIR/want.N.c and DIR/want.N.py; their sizes to DIR/sizes.N.
local name, dir = ...
local core = require "millrace.core"
local plan, sizes = dofile(arg[0]:match "^(.*/)" .. "plans.lua")[name]()
plan:compile{target = "cuda"}:export(dir)
plan:compile{target = "host"}:export(dir)

local element, swizzle = {bf16 = 9, f16 = 6, f32 = 7}, {[0] = 0, [32] = 1, [64] = 2, [128] = 3}
local bits = {bf16 = 16, f16 = 16, f32 = 32}

local function launch(s, address, dtype)
  local words = {("launch %s grid %d 1 1 block %d 1 1 shared %d stream 0x77 early:"):format(s.entry, s.blocks, s.threads,
    s.shared_bytes)}
  for _, p in ipairs(s.params) do
    words[#words + 1] = p.kind == "pointer" and address[p.tensor] or p.kind == "size" and ("%d"):format(p.size)
      or (p.kind == "order" or p.kind == "start") and "ints(" .. table.concat(s[p.kind], " ") .. ")"
      or ("map(element %d at %s dims %s strides %s box %s swizzle %d promotion 2)"):format(element[dtype[p.tensor]], address[p.tensor],
        table.concat(p.dims, " "), table.concat(p.strides, " ", 2), table.concat(p.box, " "), swizzle[p.swizzle])
  end
  return table.concat(words, " ")
end

local function write(path, text)
  local file <close> = io.open(dir .. "/" .. path, "w")
  file:write(text)
end

for i, at in ipairs(sizes) do
  local bound = plan.graph.program:at_sizes(at)
  local dtype, n, address, list = {}, 0, {c = {}, py = {}}, {}
  for _, role in ipairs{"input", "output", "temp"} do
    for _, t in ipairs(bound.tensors) do
      if t.role == role then
        n = n + 1
        dtype[t.name] = t.dtype
        local bytes = bits[t.dtype] // 8
        for _, size in ipairs(t.shape) do bytes = bytes * size end
        address.c[t.name] = role == "temp" and ("temporary(%d)"):format(bytes) or ("0x%x"):format(n * 0x10000)
        address.py[t.name] = ("0x%x"):format(n * 0x10000)
      end
    end
  end
  local all = {}
  for axis in pairs(core.any_axes(plan.graph.program)) do all[axis] = bound.axes[axis] end
  for how, of in pairs(address) do
    local lines, kinds = {}, {}
    for _, s in ipairs(core.lower(plan, "cuda", false, {sizes = all})) do
      lines[#lines + 1] = launch(s, of, dtype)
      kinds[#kinds + 1] = s.entry .. "="
      for _, p in ipairs(s.params) do kinds[#kinds + 1] = p.kind == "map" and "m" or p.kind == "size" and "i" or "p" end
      kinds[#kinds + 1] = ";"
    end
    write(("want.%d.%s"):format(i, how), table.concat(lines, "\n") .. "\n")
    write("kinds", table.concat(kinds))
  end
  for _, axis in ipairs{"device", "m", "n", "k"} do list[#list + 1] = at[axis] end
  write("sizes." .. i, table.concat(list, " "))
end
E
launches() { grep '^launch' "$1" | sed 's/at 0x[0-9a-f]\{6,\} dims/at TEMP dims/g'; }
wanted() { sed 's/at \(temporary([0-9]*)\|0x[0-9a-f]\{6,\}\) dims/at TEMP dims/g' "$1"; }
on_recorder() { # LOG DIR COMMAND...
	rm -f "$1"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$1" RECORDER_PARAMS="$(cat "$2/kinds")" "${@:3}"
}
cat >"$T/main.c" <<'E'
#include <stdio.h>
#include <stdlib.h>
#include HEADER

#define AT(i) ((void *)((i) * 0x10000L))
#define SIZE(i) atoi(argv[i])

/* main SIZE...: load, launch with these sizes, twice */
int main(int argc, char **argv)
{
	struct CUstream_st *stream = (void *)0x77L;
	int code = NAME(load)(0);

	(void)argc;
	code = code ? code : NAME(prepare)(GIVEN);
	for (int i = 0; i < 2 && !code; i++)
		code = NAME(launch)(stream, ARRAYS, GIVEN);
	printf("%d %s\n", code, NAME(error)());
	NAME(unload)(0);
	return code != 0;
}
E
python=$(command -v python3)

# launchers PLAN NAME TENSORS SIZES
launchers() {
	local plan=$1 name=$2 dir=$T/$1 i tensors='' sizes=''
	for ((i = 1; i <= $3; i++)); do tensors+="${tensors:+, }AT($i)"; done
	for ((i = 1; i <= $4; i++)); do sizes+="${sizes:+, }SIZE($i)"; done
	t_cmd "$plan is exported" 0 "$MILLRACE" "$T/export.lua" "$plan" "$dir"
	for compiler in gcc clang; do
		command -v $compiler >/dev/null || continue
		t_cmd "$compiler has nothing to say about it" 0 $compiler $warn -c -o "$T/x.o" "$dir/$name.c"
	done
	t_cmd 'its launcher links' 0 $cc $warn -I"$dir" -DHEADER="\"$name.h\"" -D"NAME(x)=${name}_##x" -DARRAYS="$tensors" \
		-DGIVEN="$sizes" -o "$dir/main" "$T/main.c" "$dir/$name.c" -ldl
	for i in 1 2 3; do
		t_cmd "at sizes $(cat "$dir/sizes.$i")" 0 on_recorder "$T/log" "$dir" "$dir/main" $(cat "$dir/sizes.$i")
		t_is 'the driver gets what a run launches' "$(launches "$T/log")" "$(wanted "$dir/want.$i.c"; wanted "$dir/want.$i.c")"
		t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
		[ "$python" ] || continue
		t_cmd 'the module runs' 0 on_recorder "$T/log" "$dir" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$dir" "$python" -c "
from modules import *
import $name as k
given = dict(zip([s.name for s in k.SIZES if s.like is None], map(int, '$(cat "$dir/sizes.$i")'.split())))
value = {s.name: given.get(s.name, given.get(s.like)) for s in k.SIZES}
made = [tensor(t, i + 1, value) for i, t in enumerate(k.INPUTS + k.OUTPUTS)]
for i, t in enumerate(k._TEMPS):
    torch.NEW[tuple(value.get(n, n) for n in t.shape)] = (len(made) + 1 + i) * 0x10000
k.load(sizes=given)
torch.cuda.capturing = True
k.run(*made[:len(k.INPUTS)], out=made[len(k.INPUTS):])
k.run(*made[:len(k.INPUTS)], out=made[len(k.INPUTS):])
"
		t_is 'and the driver gets the same' "$(launches "$T/log")" "$(wanted "$dir/want.$i.py"; wanted "$dir/want.$i.py")"
	done
}
launchers gemm gemm 3 3
launchers clusters gemm 3 1
launchers batches batches 3 2
launchers two two 3 2
launchers causal flash_attention 4 1
launchers names heapq_ 2 1

# ---- lists of tiles ------------------------------------------------------------------------

# The driver has memory for 64 of them.
cat >"$T/lists.c" <<'E'
#include <stdio.h>
#include <stdlib.h>
#include "gemm.h"

static int launch(int m, int n)
{
	return gemm_launch((struct CUstream_st *)(void *)0x77L, (void *)0x10000L, (void *)0x20000L, (void *)0x30000L, m, n, 64);
}

int main(void)
{
	int code = gemm_load(0), failures = 0;

	setenv("RECORDER_FAIL", "cuMemcpyHtoD=1", 1);
	for (int i = 0; i < 100; i++)
		failures += launch(8, 8) == 1;
	unsetenv("RECORDER_FAIL");
	for (int m = 8; m <= 320 && !code; m += 8)
		code = launch(m, 8);
	setenv("RECORDER_CAPTURING", "1", 1);
	code = code ? code : launch(24, 16);
	printf("%d failures, then %d\n", failures, code);
	code = launch(8, 256);
	printf("%d %s\n", code, gemm_error());
	unsetenv("RECORDER_CAPTURING");
	printf("%d\n", gemm_prepare(8, 256, 64));
	setenv("RECORDER_CAPTURING", "1", 1);
	printf("%d\n", launch(64, 200));
	gemm_unload(0);
	return 0;
}
E
dir=$T/gemm
t_cmd 'a program of many sizes links' 0 $cc $warn -D_DEFAULT_SOURCE -I"$dir" -o "$T/lists" "$T/lists.c" "$dir/gemm.c" -ldl
t_cmd 'and runs' 0 on_recorder "$T/log" "$dir" "$T/lists"
t_is 'what fails leaves nothing, sizes of as many tiles share lists, and a capture wants them made' "$(cat "$T/out")" \
	"100 failures, then 0
-1 gemm: call gemm_prepare with these sizes before capturing a CUDA graph
0
0"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'

# ---- what is wrong is said -----------------------------------------------------------------

dir=$T/gemm
t_like 'the header has the range' "$(cat "$dir/gemm.h")" \
	'^ \* Sizes: m from 1 to 320, a multiple of 8; n from 1 to 256, a multiple of 8; k from 1 to 128, a multiple of 64\.$'
t_cmd 'a size that is too large' 1 on_recorder "$T/log" "$dir" "$dir/main" 328 8 64
t_like 'is refused' "$(cat "$T/out")" '^-1 gemm: m is 328; it is to be from 1 to 320, and a multiple of 8$'
t_cmd 'one that is no multiple' 1 on_recorder "$T/log" "$dir" "$dir/main" 8 12 64
t_like 'is refused' "$(cat "$T/out")" '^-1 gemm: n is 12; it is to be from 1 to 256, and a multiple of 8$'
t_is 'and nothing is launched' "$(launches "$T/log")" ''
if [ "$python" ]; then
	t_cmd 'the module says it, too' 0 on_recorder "$T/log" "$dir" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$dir" "$python" -c "
from modules import refused
import torch, gemm
def tensor(*shape): return torch.Tensor(shape, torch.bfloat16, 0x10000)
def wrong(text, *args, **kwargs): refused((ValueError, TypeError), text, gemm.run, *args, **kwargs)
assert gemm.INPUTS[0].shape == ('m', 'k') and gemm.SIZES[0] == ('m', 320, 8, None)
wrong('m is 328; it must be from 1 to 320, and a multiple of 8', tensor(328, 64), tensor(8, 64))
wrong('k is 32; it must be from 1 to 128, and a multiple of 64', tensor(8, 32), tensor(8, 32))
wrong('B must have shape (8, 64), got (8, 128)', tensor(8, 64), tensor(8, 128))
wrong('A must be a torch tensor', 1, tensor(8, 128))
wrong('there is no size mm; there is m, n, k', tensor(8, 64), tensor(8, 64), sizes={'mm': 64})
wrong('m must be an integer, got 8.0', tensor(8, 64), tensor(8, 64), sizes={'m': 8.0})
out = tensor(8, 8)
out.dtype = gemm.OUTPUTS[0].dtype
gemm.load()
torch.cuda.capturing = True
refused(RuntimeError, 'call gemm.load(m=8, n=8, k=64) before capturing a CUDA graph', gemm.run, tensor(8, 64), tensor(8, 64), out=out)
torch.cuda.capturing = False
gemm.load(sizes={'m': 8, 'n': 8}, k=64)
torch.cuda.capturing = True
gemm.run(tensor(16, 128), tensor(64, 128), out=tensor(16, 64))
"
	t_cmd 'a size may be called device' 0 on_recorder "$T/log" "$T/names" env PYTHONDONTWRITEBYTECODE=1 \
		PYTHONPATH="tests/fake:$T/names" "$python" -c "
import torch, heapq_
heapq_.load(sizes={'device': 77})
torch.cuda.capturing = True
heapq_.run(torch.Tensor((77, 64), torch.bfloat16, 0x10000), out=torch.Tensor((77, 64), torch.float32, 0x20000))
"
fi

# ---- a kernel for the CPU --------------------------------------------------------------------

cat >"$T/host.lua" <<'E'
-- host.lua PLAN DIR N: inputs of the plan's sizes number N to DIR/TENSOR.bin; host.lua PLAN DIR N OUTPUT: compare DIR/OUTPUT.bin
local name, dir, i, output = ...
local plan, sizes = dofile(arg[0]:match "^(.*/)" .. "plans.lua")[name]()
local bound = plan.graph.program:at_sizes(sizes[tonumber(i)])
local inputs = bound:inputs{seed = 7}
local dtype = {}
for _, t in ipairs(bound.tensors) do dtype[t.name] = t.dtype end
local function each(x, f)
  local shape, at = x:shape(), {}
  local function go(d)
    if d > #shape then return f(x:get(table.unpack(at))) end
    for j = 1, shape[d] do at[d] = j go(d + 1) end
  end
  go(1)
end
if output then
  local want = bound:reference(inputs)[output]
  local file <close> = io.open(("%s/%s.bin"):format(dir, output), "rb")
  local worst, size = 0, 0
  each(want, function(w)
    local x = dtype[output] == "bf16" and string.unpack("<f", "\0\0" .. file:read(2)) or string.unpack("<f", file:read(4))
    worst, size = math.max(worst, math.abs(x - w)), math.max(size, math.abs(w))
  end)
  assert(not file:read(1) and worst <= 1e-2 * size, worst .. " of " .. size)
  return print "as the reference"
end
for tensor, x in pairs(inputs) do
  local file <close> = io.open(("%s/%s.bin"):format(dir, tensor), "wb")
  each(x, function(v) file:write((string.pack("<f", v):sub(3))) end)
end
E
on_cpu() { # PLAN NAME OUTPUT AXES INPUT...
	local plan=$1 name=$2 output=$3 axes=$4 dir=$T/$1 i
	t_cmd "$plan for the CPU is built" 0 make -C "$dir" -f "${name}_host.mk" CC="$cc" CFLAGS='-O1 -g -Wall -Wextra -Werror'
	for i in 1 2 3; do
		local words=() values=($(cat "$dir/sizes.$i")) n=0
		for axis in $axes; do words+=(-n "$axis=${values[n++]}"); done
		"$MILLRACE" "$T/host.lua" "$plan" "$dir" $i
		t_cmd "it runs at ${words[*]}" 0 env -C "$dir" "./${name}_host" -r "${words[@]}" "$output=$output.bin" \
			$(for input in "${@:5}"; do echo "$input=$input.bin"; done)
		t_cmd 'and computes' 0 "$MILLRACE" "$T/host.lua" "$plan" "$dir" $i "$output"
	done
}
on_cpu gemm gemm C 'm n k' A B
on_cpu two two Y 'm n' A B
on_cpu causal flash_attention O m Q K V
t_cmd 'a size that is no multiple' 2 "$T/gemm/gemm_host" -n m=12
t_err 'is refused' 'm is 12; it is to be from 1 to 320, and a multiple of 8'
t_cmd 'an axis that is none' 2 "$T/gemm/gemm_host" -n x=12
t_err 'is refused' 'usage: gemm_host'
t_cmd 'without sizes they are the largest' 0 "$T/gemm/gemm_host" C="$T/c.bin"
t_is 'and so are the tensors' "$(stat -c %s "$T/c.bin")" $((320 * 256 * 2))
t_done
