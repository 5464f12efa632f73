# sk:export. The launcher in C and the module for torch really run, on a driver that records its calls (tests/fake/recorder.c): launches
# are compared with what was lowered, and what streams wait for with the plan.
. tests/lib.sh

. tests/fake/recorder.sh
warn='-std=c11 -Wall -Wextra -Wpedantic -Werror -O1'

# Two layers of two products, on one stream; and products on three streams, of rows of tensors and a state that is written in part.
cat >"$T/plans.lua" <<'E'
local gemm, plans = mr.examples.gemm, {}

-- Of each call a plan with an engine that copies in and out, so that kernels of one name have parameters of the same kinds.
local function planned(seq)
  local sp = mr.sequence_plan(seq, "h200")
  for _, c in ipairs(sp.calls) do
    local tile, axes = {m = 64, n = 32, k = 32}, seq:program(c.name).axes
    tile.l = axes.l and 32
    local plan = mr.plan(seq:program(c.name):graph{tile = tile}, "h200")
    plan:lane("p0", {warps = 1})
    plan:lane("c0", {warps = 4})
    plan:buffers(axes.l and {a = 2, b = 2, t = 2, c = 2} or {a = 2, b = 2})
    for _, t in ipairs(plan.tasks) do
      local load = t.kind == "load"
      plan:append(t.name, {lane = load and "p0" or "c0", seu = (load or t.kind == "store") and "tma" or t.kind == "mma" and "tensor" or "cuda"})
    end
    plan:fill_waits()
    sp:use(c.name, plan)
  end
  sp:arena()
  return sp
end

function plans.line()
  local seq = mr.sequence("two_layers", function(s)
    local m, d, f = s:sizes("m", "d", "f")
    local x, w1, w2 = s:input("x", {m, d}), s:input("class", {f, d}), s:input("w2", {d, f})
    local h, g, i = s:temp("h", {m, f}), s:temp("g", {m, d}), s:temp("i", {m, f})
    local y = s:output("y", {m, d})
    s:call("up", gemm{m = m, n = f, k = d}, {A = x, B = w1, C = h})
    s:call("down", gemm{m = m, n = d, k = f}, {A = h, B = w2, C = g})
    s:call("up2", gemm{m = m, n = f, k = d}, {A = g, B = w1, C = i})
    s:call("down2", gemm{m = m, n = d, k = f}, {A = i, B = w2, C = y})
  end){m = 64, d = 32, f = 64}
  local sp = planned(seq)
  sp:launch("up2", {early = false})
  return sp
end

function plans.forked()
  local seq = mr.sequence("forked", function(s)
    local x, w, t = s:input("x", {64, 32}), s:input("w", {3, 32, 32}), s:state("s", {3, 64, 32})
    local a, b, y = s:temp("e", {64, 32}), s:temp("b", {128, 32}), s:output("y", {64, 32})
    s:call("left", gemm{m = 64, n = 32, k = 32}, {A = x, B = w:rows(0, 1), C = t:rows(1, 1)})
    s:call("right", gemm{m = 64, n = 32, k = 32}, {A = x, B = w:rows(1, 1), C = a})
    s:call("more", gemm{m = 64, n = 32, k = 32}, {A = a, B = w:rows(2, 1), C = b:rows(64, 64)})
    s:call("third", gemm{m = 64, n = 32, k = 32}, {A = x, B = w:rows(2, 1), C = t:rows(2, 1)})
    s:call("last", gemm{m = 64, n = 32, k = 32}, {A = b:rows(64, 64), B = w:rows(2, 1), C = y})
  end)()
  local sp = planned(seq)
  sp:launch("right", {stream = 3, early = false})
  sp:launch("more", {stream = 3})
  sp:launch("third", {stream = 5, early = false})
  sp:launch("last", {stream = 0, early = false, after = {"more"}})
  return sp
end

-- Programs of two phases, with a temporary between.
function plans.phases()
  local two = mr.program("two_products", function(p)
    local m, n, k, l = p:axes("m", "n", "k", "l")
    local T, D = p:temp("T", {m, n}), p:output("D", {m, l})
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:input("class", {l, n})
    p:phase("first", function()
      local acc = p:carry("acc1", {m, n}, 0)
      p:loop(k, function() acc:add(p:mma("mma1", p:load("load_a", A), p:load("load_b", B))) end)
      T:store("store_t", p:task("round1", function() return acc:to "bf16" end))
    end)
    p:phase("second", function()
      local acc = p:carry("acc2", {m, l}, 0)
      p:loop(n, function() acc:add(p:mma("mma2", p:load("load_t", T), p:load("load_c", C))) end)
      D:store("store_d", p:task("scale", function() return (acc * 0.5):to "bf16" end))
    end)
  end)
  local sp = planned(mr.sequence("phases", function(s)
    local x, w, v, y = s:input("x", {128, 64}), s:input("w", {64, 64}), s:input("v", {64, 64}), s:output("y", {128, 64})
    local t = s:temp("t", {128, 64})
    s:call("one", two{m = 128, n = 64, k = 64, l = 64}, {A = x, B = w, class = v, D = t})
    s:call("two", two{m = 128, n = 64, k = 64, l = 64}, {A = t, B = w, class = v, D = y})
  end)())
  return sp
end

return plans
E
cat >"$T/export.lua" <<'E'
-- export.lua PLAN DIR NAME: export, and write to DIR/c.want and DIR/py.want the launches that the driver should get in order, on tensors at 0x100000, 0x200000,
-- ... (inputs, states, outputs) and temporaries from 0x9000000 on; to DIR/pairs the pairs of calls that the plan orders.
local name, dir, as = ...
local core = require "millrace.core"
local sp = dofile(arg[0]:match "^(.*/)" .. "plans.lua")[name]()
assert(sp:check())
for _, path in ipairs(sp:compile{target = "cuda"}:export(dir, {name = as})) do print(path) end
local seq, element, swizzle = sp.sequence, {bf16 = 9}, {[0] = 0, [32] = 1, [64] = 2, [128] = 3}
local base, n, plans, streams, nstreams = {}, 0, {}, {[0] = 0}, 0
for _, role in ipairs{"input", "state", "output"} do
  for _, t in ipairs(seq.tensors) do
    if t.role == role then
      n = n + 1
      base[t.name] = n * 0x100000
    end
  end
end
for t, at in pairs(sp.offsets) do base[t] = 0x9000000 + at end
for i, call in ipairs(core.sequence_call_names(seq)) do plans[call] = core.sequence_plans(sp)[i] end

local c_file <close> = io.open(dir .. "/c.want", "w")
local py_file <close> = io.open(dir .. "/py.want", "w")
local kinds, before, order = {}, {}, {}
for _, c in ipairs(sp.calls) do
  if not streams[c.stream] then
    nstreams = nstreams + 1
    streams[c.stream] = nstreams
  end
  local address, dtype = {}, {}
  for _, x in ipairs(core.sequence_args(seq, c.name)) do address[x.own] = ("0x%x"):format(base[x.tensor] + 2 * x.offset) end
  for _, t in ipairs(seq:program(c.name).tensors) do
    dtype[t.name] = t.dtype
    address[t.name] = address[t.name] or ("0x%x"):format(base[c.name .. "." .. t.name])
  end
  for phase, s in ipairs(core.lower(plans[c.name], "cuda")) do
    local words = {("launch %s grid %d 1 1 block %d 1 1 shared %d stream STREAM%s:"):format(s.entry, s.blocks, s.threads, s.shared_bytes,
      (c.early or phase > 1) and " early" or "")}
    local kind = s.entry .. "="
    for _, p in ipairs(s.params) do
      kind = kind .. (p.kind == "map" and "m" or "p")
      words[#words + 1] = p.kind == "pointer" and address[p.tensor] or
        (p.kind == "order" or p.kind == "start") and "ints(" .. table.concat(s[p.kind], " ") .. ")" or
        ("map(element %d at %s dims %s strides %s box %s swizzle %d promotion 2)"):format(element[dtype[p.tensor]], address[p.tensor],
          table.concat(p.dims, " "), table.concat(p.strides, " ", 2), table.concat(p.box, " "), swizzle[p.swizzle])
    end
    assert(not kinds[s.entry] or kinds[s.entry] == kind)
    kinds[s.entry] = kind
    -- The first stream of the launcher in C is the one that captures.
    for file, first in pairs{[c_file] = 2, [py_file] = 1} do
      local stream = streams[c.stream] == 0 and "0x77" or ("0x%x"):format((streams[c.stream] - 1 + first) * 0x1000)
      file:write((table.concat(words, " "):gsub("STREAM", stream)), "\n")
    end
  end
  -- What must have ended: what is in front of it in its stream, what it waits for, and what those wait for.
  order[#order + 1] = c.name
  before[c.name] = {}
  local function add(other)
    before[c.name][other] = true
    for x in pairs(before[other]) do before[c.name][x] = true end
  end
  for _, other in ipairs(sp.calls) do
    if other.name == c.name then break end
    if other.stream == c.stream then add(other.name) end
  end
  for _, other in ipairs(c.after) do add(other) end
end
local pairs_file <close> = io.open(dir .. "/pairs", "w")
for i, x in ipairs(order) do
  for j, y in ipairs(order) do
    if before[x][y] then pairs_file:write(j, "<", i, "\n") end
  end
end
local kinds_file <close> = io.open(dir .. "/kinds", "w")
for _, text in pairs(kinds) do kinds_file:write(text, ";") end
E
on_recorder() { # LOG COMMAND...
	rm -f "$1"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$1" RECORDER_PARAMS="$(cat "$T"/*/kinds)" "${@:2}"
}
launches() { grep '^launch' "$1"; }
sources() { ls "$1"/*.c; }

line=$T/line forked=$T/forked phases=$T/phases
t_cmd 'a sequence is exported' 0 "$MILLRACE" "$T/export.lua" line "$line" chain
t_is 'as a launcher, a module and two kernels, which two calls each share' "$(tr '\n' ' ' <"$T/out" | sed "s,$line/,,g")" \
	'chain.c chain.h chain.py chain_down.c chain_down.cu chain_down.cubin chain_down.h chain_down.py chain_up.c chain_up.cu chain_up.cubin chain_up.h chain_up.py '
t_cmd 'one with three streams' 0 "$MILLRACE" "$T/export.lua" forked "$forked" forked
t_cmd 'one of programs of two phases' 0 "$MILLRACE" "$T/export.lua" phases "$phases" phases
for compiler in gcc clang; do
	for c in "$line/chain.c" "$forked/forked.c" "$phases/phases.c" "$phases/phases_one.c"; do
		command -v $compiler >/dev/null || continue
		t_cmd "$compiler has nothing to say about ${c##*/}" 0 $compiler $warn -c -o "$T/x.o" "$c"
	done
done
if command -v c++ >/dev/null; then
	t_cmd 'C++ takes the header' 0 c++ -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$line/chain.h"
fi

# ---- the launcher in C -------------------------------------------------------------------

cat >"$T/main.c" <<'E'
#include <stdio.h>
#include HEADER

#define AT(i) ((void *)((i) * 0x100000L))

int main(void)
{
	void *stream = (void *)0x77L, *temporaries = AT(0x90);
	int code = NAME(launch)(stream, ARRAYS, temporaries);

	printf("before loading: %d, %s\n", code, NAME(error)());
	if ((code = NAME(load)(0)) != 0) {
		printf("%d, %s\n", code, NAME(error)());
		return 1;
	}
	printf("again: %d\n", NAME(load)(0));
	code = NAME(launch)(stream, ARRAYS, temporaries);
	printf("launch: %d %s\n", code, code ? NAME(error)() : "");
	code = NAME(launch)(stream, ARRAYS, AT(0x90) + 16);
	printf("crooked: %d, %s\n", code, NAME(error)());
	code = NAME(launch)(stream, WRONG, temporaries);
	printf("NULL: %d, %s\n", code, NAME(error)());
	NAME(unload)(0);
	NAME(unload)(0);
	return 0;
}
E
t_ok 'its launcher links' $cc -std=c11 -Wall -Werror -O1 -I"$line" -DHEADER='"chain.h"' -D'NAME(x)=chain_##x' \
	-DARRAYS='AT(1), AT(2), AT(3), AT(4)' -DWRONG='AT(1), NULL, AT(3), AT(4)' -o "$T/line_main" "$T/main.c" $(sources "$line") -ldl
t_ok 'that of three streams, too' $cc -std=c11 -Wall -Werror -O1 -I"$forked" -DHEADER='"forked.h"' -D'NAME(x)=forked_##x' \
	-DARRAYS='AT(1), AT(2), AT(3), AT(4)' -DWRONG='AT(1), AT(2), AT(3) + 8, AT(4)' -o "$T/forked_main" "$T/main.c" \
	$(sources "$forked") -ldl
t_cmd 'it runs' 0 on_recorder "$T/log" "$T/line_main"
t_out 'and says what is wrong' <<'E'
before loading: -1, chain: chain_up: not loaded on the device that is current: call chain_up_load first
again: 0
launch: 0 
crooked: -1, chain: temporaries: their address is no multiple of 256, or NULL
NULL: -1, chain: class: its address is no multiple of 16, or NULL
E
t_is 'the driver gets what was lowered, early as planned' "$(launches "$T/log")" "$(cat "$line/c.want")"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_cmd 'three streams run' 0 on_recorder "$T/log" "$T/forked_main"
t_out 'and say what is wrong' <<'E'
before loading: -1, forked: not loaded on the device that is current: call forked_load first
again: 0
launch: 0 
crooked: -1, forked: temporaries: their address is no multiple of 256, or NULL
NULL: -1, forked: s: its address is no multiple of 16, or NULL
E
t_is 'the driver gets what was lowered' "$(launches "$T/log")" "$(cat "$forked/c.want")"
t_is 'streams wait as planned' "$("$MILLRACE" tests/fake/order.lua "$T/log" 0x77)" "$(cat "$forked/pairs"; echo begin end)"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'

t_ok 'that of phases, too' $cc -std=c11 -Wall -Werror -O1 -I"$phases" -DHEADER='"phases.h"' -D'NAME(x)=phases_##x' \
	-DARRAYS='AT(1), AT(2), AT(3), AT(4)' -DWRONG='AT(1), AT(2), NULL, AT(4)' -o "$T/phases_main" "$T/main.c" $(sources "$phases") -ldl
t_cmd 'phases run' 0 on_recorder "$T/log" "$T/phases_main"
t_is 'with what is between them among the temporaries' "$(launches "$T/log")" "$(cat "$phases/c.want")"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'

# fails FUNCTION STATUS MAIN PATTERN: what the driver says of a function
fails() {
	t_cmd "$1 fails" "$2" env RECORDER_FAIL="$1=719" bash -c "$(declare -f on_recorder); T='$T'; on_recorder '$T/log' '$T/$3'"
	t_like 'is said' "$(cat "$T/out")" "$4"
	[ ! -s "$T/log" ] || t_like 'and nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
}
fails cuModuleLoadData 1 line_main '719, chain: chain_up: cuModuleLoadData: CUDA_ERROR_719'
fails cuLaunchKernelEx 0 line_main 'launch: 719 chain: chain_up: cuLaunchKernelEx: CUDA_ERROR_719'
fails cuStreamCreate 1 forked_main '719, forked: cuStreamCreate failed'
fails cuEventCreate 1 forked_main '719, forked: cuEventCreate failed'
fails cuEventRecord 0 forked_main 'launch: 719 forked: cuEventRecord failed'
fails cuStreamWaitEvent 0 forked_main 'launch: 719 forked: cuStreamWaitEvent failed'

# ---- graphs --------------------------------------------------------------------------------

cat >"$T/graph.c" <<'E'
#include <stdio.h>
#include HEADER

#define AT(i) ((void *)((i) * 0x100000L))

static int launch(long temporaries)
{
	int code = NAME(graph_launch)((void *)0x77L, AT(1), AT(2), AT(3), AT(4), AT(temporaries));

	if (code)
		printf("%d, %s\n", code, NAME(error)());
	return code;
}

int main(void)
{
	launch(0x90);
	if (NAME(load)(0)) {
		printf("%s\n", NAME(error)());
		return 1;
	}
	for (long i = 0; i < 9; i++)
		launch(0x90 + i);
	launch(0x98);
	launch(0x92);
	launch(0x90);
	NAME(graph_launch)(NULL, AT(1), AT(2), AT(3), AT(4), AT(0x90));
	NAME(unload)(0);
	return 0;
}
E
for name in line:chain forked:forked; do
	t_ok "graphs of ${name#*:} link" $cc -std=c11 -Wall -Werror -O1 -I"$T/${name%:*}" -DHEADER="\"${name#*:}.h\"" \
		-D"NAME(x)=${name#*:}_##x" -o "$T/${name%:*}_graph" "$T/graph.c" $(sources "$T/${name%:*}") -ldl
done
t_cmd 'graphs run' 0 on_recorder "$T/log" "$T/line_graph"
t_is 'only when they are loaded' "$(cat "$T/out")" '-1, chain: not loaded on the device that is current: call chain_load first'
# Of a log: all but launches and loads.
graphs() { grep -E '^(capture|instantiate|update|run)' "$1"; }
made() { for i in 1 2 3 4 5 6 7 8; do printf 'capture on 0x1000\ninstantiate graph %d as %d\nrun %d on 0x77\n' $i $i $i; done; }
t_is 'eight are instantiated, one of these is updated, and known addresses only launch' "$(graphs "$T/log")" "$(made
printf 'capture on 0x1000\nupdate 1 to graph 9\nrun 1 on 0x77\nrun 1 on 0x77\nrun 3 on 0x77\n'
printf 'capture on 0x1000\nupdate 2 to graph 10\nrun 2 on 0x77\nrun 2 on 0x0\n')"
t_is 'what is captured are the launches of the plan' "$(launches "$T/log" | head -4)" "$(sed 's/stream 0x77/stream 0x1000/' "$line/c.want")"
t_is 'with the addresses of the call' "$(launches "$T/log" | tail -4)" "$(sed 's/stream 0x77/stream 0x1000/' "$line/c.want")"
t_is 'or of another' "$(launches "$T/log" | sed -n 5,8p)" "$(sed 's/stream 0x77/stream 0x1000/; s/0x90\([0-9a-f]\{5\}\)/0x91\1/g' "$line/c.want")"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_cmd 'an update that the driver refuses' 0 env RECORDER_FAIL=cuGraphExecUpdate=910 bash -c "$(declare -f on_recorder); T='$T'; on_recorder '$T/log' '$T/line_graph'"
t_is 'is an instantiation' "$(graphs "$T/log")" "$(made
printf 'capture on 0x1000\ninstantiate graph 9 as 9\nrun 9 on 0x77\nrun 9 on 0x77\nrun 3 on 0x77\n'
printf 'capture on 0x1000\ninstantiate graph 10 as 10\nrun 10 on 0x77\nrun 10 on 0x0\n')"
t_like 'and nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_cmd 'graphs of three streams run' 0 on_recorder "$T/log" "$T/forked_graph"
sed '/^instantiate/,$d' "$T/log" >"$T/captured"
t_is 'with the order of the plan' "$("$MILLRACE" tests/fake/order.lua "$T/captured" 0x1000)" "$(cat "$forked/pairs"; echo begin end)"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
fails cuStreamBeginCapture 0 line_graph '719, chain: cuStreamBeginCapture_v2 failed'
fails cuStreamEndCapture 0 line_graph '719, chain: cuStreamEndCapture failed'
fails cuGraphInstantiate 0 line_graph '719, chain: cuGraphInstantiateWithFlags failed'
fails cuGraphLaunch 0 forked_graph '719, forked: cuGraphLaunch failed'
fails cuLaunchKernelEx 0 line_graph '719, chain: chain_up: cuLaunchKernelEx: CUDA_ERROR_719'

# ---- several sizes -------------------------------------------------------------------------

cat >"$T/sizes.lua" <<'E'
-- sizes.lua DIR: two products at three sizes
local dir = ...
local gemm = mr.examples.gemm
local two = mr.sequence("two", function(s)
  local m = s:sizes("m")
  local x, w = s:input("x", {m, 64}), s:input("w", {2, 64, 64})
  local t, y = s:temp("t", {m, 64}), s:output("y", {m, 64})
  s:call("a", gemm{m = m, n = 64, k = 64}, {A = x, B = w:rows(0, 1), C = t})
  s:call("b", gemm{m = m, n = 64, k = 64}, {A = t, B = w:rows(1, 1), C = y})
end)
local function compiled(m)
  local seq = two{m = m}
  local sp, plan = mr.sequence_plan(seq, "h200"), mr.plan(seq:program "a":graph{tile = {m = 64, n = 64, k = 64}}, "h200")
  plan:buffers{a = 2, b = 2}
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  sp:use("a", plan)
  sp:use("b", plan)
  return sp:compile{target = "cuda"}
end
local function refused(part, ...)
  local good, why = pcall(compiled(64).export, ...)
  assert(not good and tostring(why):find(part, 1, true), why)
end
local k = compiled(64)
refused("compiled sequences 1 and 2 have the same sizes", k, dir, {others = {compiled(64)}})
refused("export: others: list of compiled sequences expected, got", k, dir, {others = {}})
refused("export: others: compiled sequence expected, got 1", k, dir, {others = {1}})
for _, path in ipairs(k:export(dir, {name = "rows", others = {compiled(256), compiled(16)}})) do print((path:gsub("^.*/", ""))) end
E
t_cmd 'a sequence is exported at three sizes' 0 "$MILLRACE" "$T/sizes.lua" "$T/sizes"
t_is 'with a launcher and a module for all, and for each' "$(grep -v '_a\.' "$T/out" | tr '\n' ' ')" \
	'rows.c rows.h rows.py rows_m16.c rows_m16.h rows_m16.py rows_m256.c rows_m256.h rows_m256.py rows_m64.c rows_m64.h rows_m64.py '
cat >"$T/sizes.c" <<'E'
#include <stdio.h>
#include "rows.h"

#define AT(i) ((void *)((i) * 0x100000L))

int main(void)
{
	static const int sizes[] = { 64, 16, 256, 17 };

	printf("fit: %d %d %d %d\n", rows_fit(1), rows_fit(16), rows_fit(17), rows_fit(257));
	printf("temporaries: %d %d\n", (int)rows_temporaries(64), (int)rows_temporaries(65));
	printf("%d\n", rows_load(0));
	for (int i = 0; i < 4; i++)
		printf("%d %s\n", rows_launch((void *)0x77L, sizes[i], AT(1), AT(2), AT(3), AT(4)), rows_error());
	printf("%d\n", rows_graph_launch((void *)0x77L, 16, AT(1), AT(2), AT(3), AT(4)));
	printf("%d %s\n", rows_launch((void *)0x77L, 16, NULL, AT(2), AT(3), AT(4)), rows_error());
	rows_unload(0);
	return 0;
}
E
t_ok 'the launcher links' $cc $warn -I"$T/sizes" -o "$T/sizes_main" "$T/sizes.c" "$T"/sizes/*.c -ldl
t_cmd 'and runs' 0 env LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" RECORDER_PARAMS='gemm_main=ppp' "$T/sizes_main"
t_out 'what is there' <<'E'
fit: 16 16 64 0
temporaries: 8192 0
0
0 
0 
0 
-1 rows: there are no kernels for these sizes; there are some for m=16, m=64, m=256
0
-1 rows_m16: x: its address is no multiple of 16, or NULL
E
t_is 'with the kernels of that size' "$(grep -a '^launch' "$T/log" | tail -8 | sed 's/.* grid \([0-9]*\) .*/\1/' | tr '\n' ' ')" '1 1 1 1 4 4 1 1 '

# ---- the module for torch ------------------------------------------------------------------

python=$(command -v python3)
if [ "$python" ]; then
	py() { # LOG CODE
		on_recorder "$1" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$line:$forked" "$python" -c "from modules import refused
import torch
def tensors(k):
    return [torch.Tensor(shape, dtype, (i + 1) * 0x100000) for i, (_, shape, dtype) in enumerate(k.INPUTS + k.STATES + k.OUTPUTS)]
$2"
	}
	t_cmd 'the modules compile' 0 "$python" -m py_compile "$line/chain.py" "$forked/forked.py"
	t_cmd 'one runs' 0 py "$T/log" "
import chain
assert chain.INPUTS == (('x', (64, 32), torch.bfloat16), ('class', (64, 32), torch.bfloat16), ('w2', (32, 64), torch.bfloat16))
assert chain.STATES == () and chain.OUTPUTS == (('y', (64, 32), torch.bfloat16),)
assert chain.FLOPS == 4 * 2 * 64 * 32 * 64
x, w1, w2, y = tensors(chain)
chain.load()
torch.NEW[(chain.TEMPORARIES,)] = 0x9000000
assert chain.run(x, w1, w2, out=y) is y
torch.NEW[(64, 32)] = 0x400000
assert chain.run(x, class_=w1, w2=w2).address == 0x400000
refused(ValueError, 'w2 must be a contiguous tensor of torch.bfloat16 with shape (32, 64)', chain.run, x, w1, w1)
refused(ValueError, 'y must be a contiguous tensor', chain.run, x, w1, w2, out=torch.Tensor((64, 32), torch.float32, 0))
refused(ValueError, 'temporaries must be', chain.run, x, w1, w2, temporaries=torch.Tensor((256,), torch.uint8, 0x9000000))
"
	t_is 'the driver gets what was lowered, early as planned, each time' "$(launches "$T/log")" "$(cat "$line/py.want" "$line/py.want")"
	rm -f "$T/log"
	t_cmd 'a module of three sizes runs' 0 env LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" RECORDER_PARAMS='gemm_main=ppp' \
		PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$T/sizes" "$python" -c "
from modules import refused
import torch, rows
assert rows.SIZES == ({'m': 16}, {'m': 64}, {'m': 256}) and [rows.fit(n) for n in (1, 64, 65, 257)] == [16, 64, 256, None]
rows.load()
def tensor(m, at): return torch.Tensor((m, 64), torch.bfloat16, at)
w = torch.Tensor((2, 64, 64), torch.bfloat16, 0x200000)
for m in 256, 16:
    y = tensor(m, 0x300000)
    assert rows.run(tensor(m, 0x100000), w, out=y, temporaries=torch.Tensor((max(m * 128, 256),), torch.uint8, 0x400000)) is y
refused(ValueError, 'there are no kernels for tensors of these shapes; there are some for m=16, m=64, m=256', rows.run, tensor(17, 0x100000), w)
"
	t_is 'with the kernels of that size' "$(grep -a '^launch' "$T/log" | sed 's/.* grid \([0-9]*\) .*/\1/' | tr '\n' ' ')" '4 4 1 1 '
	t_cmd 'three streams run' 0 py "$T/log" "
import forked
x, w, s, y = tensors(forked)
forked.load(0)
assert forked.run(x, w, s_=s, out=(y,), temporaries=torch.Tensor((forked.TEMPORARIES,), torch.uint8, 0x9000000)) is y
"
	t_is 'the driver gets what was lowered' "$(launches "$T/log")" "$(cat "$forked/py.want")"
	t_is 'streams wait as planned' "$("$MILLRACE" tests/fake/order.lua "$T/log" 0x77)" "$(cat "$forked/pairs"; echo begin end)"
fi
t_done
