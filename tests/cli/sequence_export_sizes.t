# sk:export of sequences whose sizes are left to the launch. The launcher in C and the module for torch run on a driver that records its
# calls (tests/fake/recorder.c); at several sizes the launches are compared with what would be lowered for the sequence of these sizes.
. tests/lib.sh

. tests/fake/recorder.sh
warn='-std=c11 -Wall -Wextra -Wpedantic -Werror -O1'

# Rows of b sequences of m tokens; halves of a temporary and of a state begin at rows that depend on both sizes.
cat >"$T/parts.lua" <<'E'
-- parts.lua DIR: export, and write to DIR/B.M the launches at these sizes, on tensors at 0x100000, 0x200000, ... (inputs, states, outputs)
-- and temporaries from 0x9000000 on
local dir = ...
local core, gemm, any = require "millrace.core", mr.examples.gemm, mr.any
local seq = mr.sequence("parts", function(s)
  local b, m = s:sizes("b", "m")
  local x, w, c = s:input("x", {b, m, 32}), s:input("w", {3, 32, 32}), s:state("c", {2 * b * m, 32})
  local h, y = s:temp("h", {2, b * m, 32}), s:output("y", {b * m, 32})
  s:call("left", gemm{m = b * m, n = 32, k = 32}, {A = x, B = w:rows(0, 1), C = h:rows(0, 1)})
  s:call("right", gemm{m = b * m, n = 32, k = 32}, {A = x, B = w:rows(1, 1), C = h:rows(1, 1)})
  s:call("keep", gemm{m = b * m, n = 32, k = 32}, {A = h:rows(1, 1), B = w:rows(2, 1), C = c:rows(b * m, b * m)})
  s:call("both", gemm{m = 2 * b * m, n = 32, k = 32}, {A = h, B = w:rows(2, 1), C = c})
  s:call("last", gemm{m = b * m, n = 32, k = 32}, {A = c:rows(b * m, b * m), B = w:rows(1, 1), C = y})
end){b = any{max = 4}, m = any{max = 128, multiple = 8}}
local sp = mr.sequence_plan(seq, "h200")
for _, c in ipairs(sp.calls) do
  local plan = mr.plan(seq:program(c.name):graph{tile = {m = 64, n = 32, k = 32}}, "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:buffers{a = 2, b = 2}
  for _, t in ipairs(plan.tasks) do
    local load = t.kind == "load"
    plan:append(t.name, {lane = load and "p0" or "c0", seu = (load or t.kind == "store") and "tma" or t.kind == "mma" and "tensor" or "cuda"})
  end
  plan:fill_waits()
  sp:use(c.name, plan)
end
sp:arena()
assert(sp:check())
for _, path in ipairs(sp:compile{target = "cuda"}:export(dir)) do print((path:gsub("^.*/", ""))) end
local swizzle, plans = {[0] = 0, [32] = 1, [64] = 2, [128] = 3}, {}
for i, name in ipairs(core.sequence_call_names(seq)) do plans[name] = core.sequence_plans(sp)[i] end
for _, at in ipairs{{1, 8}, {4, 128}, {3, 72}} do
  local here, base, n = seq:at_sizes{b = at[1], m = at[2]}, {}, 0
  for _, role in ipairs{"input", "state", "output"} do
    for _, t in ipairs(here.tensors) do
      if t.role == role then
        n = n + 1
        base[t.name] = n * 0x100000
      end
    end
  end
  for t, offset in pairs(sp.offsets) do base[t] = 0x9000000 + offset end
  local file <close> = io.open(("%s/%d.%d"):format(dir, at[1], at[2]), "w")
  local known = {}
  for _, c in ipairs(sp.calls) do
    local address = {}
    for _, x in ipairs(core.sequence_args(here, c.name)) do address[x.own] = ("0x%x"):format(base[x.tensor] + 2 * x.offset) end
    for _, s in ipairs(core.lower(plans[c.name], "cuda", false, {sizes = {m = here:program(c.name).axes.m}})) do
      local words = {("launch %s grid %d 1 1 block %d 1 1 shared %d stream 0x77%s:"):format(s.entry, s.blocks, s.threads, s.shared_bytes,
        c.early and " early" or "")}
      local kind = s.entry .. "="
      for _, p in ipairs(s.params) do
        kind = kind .. (p.kind == "map" and "m" or p.kind == "size" and "i" or "p")
        words[#words + 1] = p.kind == "pointer" and address[p.tensor] or p.kind == "size" and ("%d"):format(p.size)
          or (p.kind == "order" or p.kind == "start") and "ints(" .. table.concat(s[p.kind], " ") .. ")"
          or ("map(element 9 at %s dims %s strides %s box %s swizzle %d promotion 2)"):format(address[p.tensor],
            table.concat(p.dims, " "), table.concat(p.strides, " ", 2), table.concat(p.box, " "), swizzle[p.swizzle])
      end
      known[kind] = true
      file:write(table.concat(words, " "), "\n")
    end
  end
  local all <close> = io.open(dir .. "/kinds", "w")
  for kind in pairs(known) do all:write(kind, ";") end
end
E
dir=$T/parts
mkdir -p "$dir"
on_recorder() { # LOG COMMAND...
	rm -f "$1"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$1" RECORDER_PARAMS="$(cat "$dir/kinds")" "${@:2}"
}
launches() { grep '^launch' "$1"; }
t_cmd 'a sequence is exported for all sizes' 0 "$MILLRACE" "$T/parts.lua" "$dir"
t_is 'with one set of kernels' "$(grep '\.cubin$' "$T/out" | tr '\n' ' ')" 'parts_both.cubin parts_left.cubin '
for compiler in gcc clang; do
	command -v $compiler >/dev/null || continue
	t_cmd "$compiler has nothing to say about its launcher" 0 $compiler $warn -c -o "$T/x.o" "$dir/parts.c"
done
t_like 'the header has the ranges' "$(cat "$dir/parts.h")" '^ \* Sizes: b up to 4, m up to 128 in steps of 8\.'

# ---- the launcher in C -------------------------------------------------------------------

cat >"$T/main.c" <<'E'
#include <stdio.h>
#include <stdlib.h>
#include "parts.h"

#define AT(i) ((void *)((i) * 0x100000L))
#define TENSORS (void *)0x77L, AT(1), AT(2), AT(3), AT(4), AT(0x90)

/* launch|graph|prepare B M ...: each pair of sizes is a launch; what is prepared is then captured */
int main(int argc, char **argv)
{
	int code = parts_load(0);

	for (int i = 2; i + 1 < argc && !code; i += 2) {
		int b = atoi(argv[i]), m = atoi(argv[i + 1]);

		if (argv[1][0] == 'p') {
			code = parts_prepare(b, m);
			setenv("RECORDER_CAPTURING", "1", 1);
		}
		code = code ? code : argv[1][0] == 'g' ? parts_graph_launch(TENSORS, b, m) : parts_launch(TENSORS, b, m);
	}
	if (code)
		printf("%d %s\n", code, parts_error());
	parts_unload(0);
	return !!code;
}
E
t_ok 'the launcher links' $cc $warn -D_DEFAULT_SOURCE -I"$dir" -o "$T/main" "$T/main.c" "$dir"/*.c -ldl
for at in 1.8 4.128 3.72; do
	t_cmd "it runs at $at" 0 on_recorder "$T/log" "$T/main" launch ${at/./ }
	t_is 'and the driver gets what these sizes need' "$(launches "$T/log")" "$(cat "$dir/$at")"
	t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
done
t_cmd 'all sizes after each other' 0 on_recorder "$T/log" "$T/main" launch 1 8 4 128 3 72
t_is 'are right, too' "$(launches "$T/log")" "$(cat "$dir/1.8" "$dir/4.128" "$dir/3.72")"
t_cmd 'what is prepared is captured' 0 on_recorder "$T/log" "$T/main" prepare 3 72
t_cmd 'what is not is refused' 1 on_recorder "$T/log" env RECORDER_CAPTURING=1 "$T/main" launch 3 72
for wrong in '5 8 b is 5; it is to be from 1 to 4, and a multiple of 1' '1 136 m is 136; it is to be from 1 to 128, and a multiple of 8' \
	'1 12 m is 12; it is to be from 1 to 128, and a multiple of 8' '0 8 b is 0; it is to be from 1 to 4, and a multiple of 1'; do
	read -r b m text <<<"$wrong"
	for how in launch graph prepare; do
		t_cmd "sizes $b and $m are refused by $how" 1 on_recorder "$T/log" "$T/main" $how $b $m
		t_is 'with the reason' "$(cat "$T/out")" "-1 parts: $text"
	done
done
t_is 'and nothing is launched' "$(launches "$T/log")" ''

t_cmd 'graphs run' 0 on_recorder "$T/log" "$T/main" graph 3 72 3 72 4 128 3 72 1 8
t_is 'each set of sizes has one' "$(grep -E '^(capture|instantiate|update|run)' "$T/log" | tr '\n' ' ')" \
	'capture on 0x1000 instantiate graph 1 as 1 run 1 on 0x77 run 1 on 0x77 capture on 0x1000 instantiate graph 2 as 2 run 2 on 0x77 run 1 on 0x77 capture on 0x1000 instantiate graph 3 as 3 run 3 on 0x77 '
t_is 'of the launches of these sizes' "$(launches "$T/log")" "$(cat "$dir/3.72" "$dir/4.128" "$dir/1.8" | sed 's/stream 0x77/stream 0x1000/')"

# ---- the module for torch ------------------------------------------------------------------

python=$(command -v python3)
if [ "$python" ]; then
	py() { # CODE
		on_recorder "$T/log" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$dir" "$python" -c "from modules import refused
import torch, parts
def tensors(b, m, n=4):
    return [torch.Tensor(shape, torch.bfloat16, (i + 1) * 0x100000) for i, shape in enumerate(((b, m, 32), (3, 32, 32), (2 * b * m, 32), (b * m, 32)))][:n]
temporaries = torch.Tensor((parts.TEMPORARIES,), torch.uint8, 0x9000000)
$1"
	}
	for at in 1.8 4.128 3.72; do
		t_cmd "the module runs at $at" 0 py "
x, w, c, y = tensors(${at/./, })
parts.load(sizes={'b': ${at%.*}, 'm': ${at#*.}})
torch.cuda.capturing = True
assert parts.run(x, w, c, out=y, temporaries=temporaries) is y"
		t_is 'and the driver gets the same' "$(launches "$T/log")" "$(cat "$dir/$at")"
	done
	t_cmd 'it says what is wrong' 0 py "
assert parts.SIZES == (('b', 4, 1), ('m', 128, 8)) and parts.INPUTS[0] == ('x', ('b', 'm', 32), torch.bfloat16)
assert parts.STATES == (('c', ('2 * b * m', 32), torch.bfloat16),)
parts.load()
refused(ValueError, 'm is 12; it must be from 1 to 128, and a multiple of 8', parts.run, *tensors(1, 12, 3))
refused(ValueError, 'b is 5; it must be from 1 to 4', parts.run, *tensors(5, 8, 3))
refused(ValueError, 'c must be a contiguous tensor of torch.bfloat16 with shape (48, 32)', parts.run, *tensors(3, 8, 2), tensors(2, 8)[2])
refused(ValueError, 'y must be a contiguous tensor of torch.bfloat16 with shape (24, 32)', parts.run, *tensors(3, 8, 3), out=tensors(2, 8)[3])
refused(ValueError, 'x must be a tensor with more than 0 dimensions', parts.run, 1, *tensors(3, 8, 3)[1:])
"
fi

# ---- an operator of PyTorch ----------------------------------------------------------------

cat >"$T/torch.lua" <<'E'
local dir = ...
local gemm = mr.examples.gemm
local function exported(rows)
  local seq = mr.sequence("two", function(s)
    local m = s:sizes("m")
    local x, w, y = s:input("x", {m, 64}), s:input("w", {64, 64}), s:output("y", {rows * m, 64})
    s:call("a", gemm{m = m, n = 64, k = 64}, {A = x, B = w, C = rows == 1 and y or y:rows(m, m)})
    if rows == 2 then s:call("b", gemm{m = m, n = 64, k = 64}, {A = x, B = w, C = y:rows(0, m)}) end
  end){m = mr.any{max = 256, multiple = 8}}
  local sp = mr.sequence_plan(seq, "h200")
  for _, c in ipairs(sp.calls) do
    local plan = mr.plan(seq:program(c.name):graph{tile = {m = 64, n = 64, k = 64}}, "h200")
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:fill_waits()
    sp:use(c.name, plan)
  end
  return sp:compile{target = "cuda"}:export(dir, {torch = true})
end
print(select(2, pcall(exported, 2)))
exported(1)
E
t_cmd 'it is exported with a size that torch gives' 0 "$MILLRACE" "$T/torch.lua" "$T/torch"
t_like 'not with a multiple of one' "$(cat "$T/out")" "export: size 1 of 'y' is 2 \* m: of an operator of torch it is a number or a size"
for c in two two_a; do t_cmd "$c.c compiles" 0 $cc $warn -c -o "$T/x.o" "$T/torch/two/$c.c"; done
t_like 'the operator knows the range' "$(cat "$T/torch/two/operators.c")" '\{ "m", 256, 8, false \}'
t_like 'and gives the size of a call' "$(cat "$T/torch/two/operators.c")" 'two_launch_with\(1, between, stream, at\[0\], at\[1\], at\[2\], sizes\[0\]\);'

# ---- ranges of a size ----------------------------------------------------------------------

cat >"$T/ranges.lua" <<'E'
-- ranges.lua DIR: two products, with tiles of 16 rows up to a size and of 64 rows from there on. Prints the ranges and what each needs.
local dir = ...
local gemm, device = mr.examples.gemm, mr.device("h200", {eus = 8})
local seq = mr.sequence("rows", function(s)
  local m = s:sizes("m")
  local x, w = s:input("x", {m, 64}), s:input("w", {2, 64, 64})
  local t, y = s:temp("t", {m, 64}), s:output("y", {m, 64})
  s:call("a", gemm{m = m, n = 64, k = 64}, {A = x, B = w:rows(0, 1), C = t})
  s:call("b", gemm{m = m, n = 64, k = 64}, {A = t, B = w:rows(1, 1), C = y})
end){m = mr.any{max = 512, multiple = 8}}
local function with_tile(m)
  local sp, plan = mr.sequence_plan(seq, device), mr.plan(seq:program "a":graph{tile = {m = m, n = 64, k = 64}}, device)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  sp:use("a", plan)
  sp:use("b", plan)
  sp:arena()
  return sp
end
local r = seq:ranges(device, {plans = {with_tile(16), with_tile(64)}, loss = 0, at_most = 2})
local k = r:compile{target = "cuda"}
local function refused(part, ...)
  local good, why = pcall(k.export, k, ...)
  assert(not good and tostring(why):find(part, 1, true), why)
end
refused("export: folder expected", 1)
refused("unknown option 'torch'", dir, {torch = true})
refused("cannot be the name of a module", dir, {name = "1"})
k:export(dir)
for _, row in ipairs(r.rows) do print(row.from, row.to, row.plan:plan_of "a".tile.m, math.max(row.plan.arena_bytes, 256)) end
E
t_cmd 'ranges are exported' 0 "$MILLRACE" "$T/ranges.lua" "$T/rows"
{ read -r _ first tile1 bytes1; read -r next last tile2 bytes2; } <"$T/out"
t_is 'there are two, each with a tile' "$last $tile1 $tile2 $((next - first))" '512 16 64 8'
cat >"$T/rows.c" <<'E'
#include <stdio.h>
#include <stdlib.h>
#include "rows.h"

#define AT(i) ((void *)((i) * 0x100000L))

/* launch|graph|prepare M ... */
int main(int argc, char **argv)
{
	if (rows_load(0)) {
		printf("%s\n", rows_error());
		return 1;
	}
	for (int i = 2; i < argc; i++) {
		int m = atoi(argv[i]), code = argv[1][0] == 'p' ? rows_prepare(m) :
			(argv[1][0] == 'g' ? rows_graph_launch : rows_launch)((void *)0x77L, AT(1), AT(2), AT(3), AT(4), m);

		printf("%d %d%s%s\n", (int)rows_temporaries(m), code, code ? " " : "", code ? rows_error() : "");
	}
	printf("%d\n", (int)rows_TEMPORARIES);
	rows_unload(0);
	return 0;
}
E
t_ok 'the launcher links' $cc $warn -I"$T/rows" -o "$T/rows_main" "$T/rows.c" "$T"/rows/*.c -ldl
echo 'gemm_main=pppppi' >"$dir/kinds"
# How many blocks each launch of a log has; and of a launch of m rows with a tile of so many rows, two of them, on 8 EUs.
blocks() { launches "$1" | sed 's/.* grid \([0-9]*\) .*/\1/' | tr '\n' ' '; }
least() { n=$((($1 + $2 - 1) / $2)); [ $n -le 8 ] || n=8; printf '%d %d ' $n $n; }
t_cmd 'it runs' 0 on_recorder "$T/log" "$T/rows_main" launch 8 "$first" "$next" 512
t_is 'with the temporaries of the range' "$(cat "$T/out")" "$(printf '%d 0\n%d 0\n%d 0\n%d 0\n%d' $bytes1 $bytes1 $bytes2 $bytes2 $bytes2)"
t_is 'and its kernels' "$(blocks "$T/log")" "$(least 8 16; least $first 16; least $next 64; least 512 64)"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_cmd 'as graphs' 0 on_recorder "$T/log" "$T/rows_main" graph "$first" "$next" "$first"
t_is 'which each range keeps' "$(grep -cE '^capture' "$T/log") $(blocks "$T/log")" "2 $(least $first 16; least $next 64)"
t_cmd 'sizes are prepared' 0 on_recorder "$T/log" "$T/rows_main" prepare 8 512
for how in launch graph prepare; do
	t_cmd "wrong sizes are refused by $how" 0 on_recorder "$T/log" "$T/rows_main" $how 520 12 0
	t_is 'with the reason' "$(head -3 "$T/out")" "$(for m in 520 12 0; do echo "0 -1 rows: m is $m; it is to be from 1 to 512, and a multiple of 8"; done)"
done
if [ "$python" ]; then
	t_cmd 'the module runs' 0 on_recorder "$T/log" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$T/rows" "$python" -c "
from modules import refused
import torch, rows
def tensor(m, at): return torch.Tensor((m, 64), torch.bfloat16, at)
w = torch.Tensor((2, 64, 64), torch.bfloat16, 0x200000)
assert [n for n, _ in rows.RANGES] == [$first, 512] and rows.SIZES == (('m', 512, 8),) and rows.TEMPORARIES == $bytes2
rows.load()
for m in 8, $first, $next, 512:
    rows.load(sizes={'m': m})
    y = tensor(m, 0x300000)
    assert rows.run(tensor(m, 0x100000), w, out=y, temporaries=torch.Tensor((rows.TEMPORARIES,), torch.uint8, 0x400000)) is y
for m in 520, 12:
    refused(ValueError, f'm is {m}; it must be from 1 to 512, and a multiple of 8', rows.run, tensor(m, 0x100000), w)
refused(ValueError, 'x must be a tensor with more than 0 dimensions', rows.run, 1, w)
"
	t_is 'with the kernels of the range' "$(blocks "$T/log")" "$(least 8 16; least $first 16; least $next 64; least 512 64)"
fi
t_done
