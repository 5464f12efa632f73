# Sequences on a device: the fake driver, each of whose launches takes 50 µs, and of a graph half of that (tests/fake/fake_cuda.c).
. tests/lib.sh

t_fake_cuda

cat >"$T/forked.lua" <<'E'
local gemm = mr.examples.gemm
local seq = mr.sequence("forked", function(s)
  local x, w, y = s:input("x", {64, 32}), s:input("w", {2, 32, 32}), s:output("y", {3, 64, 32})
  local t = s:temp("t", {64, 32})
  s:call("left", gemm{m = 64, n = 32, k = 32}, {A = x, B = w:rows(0, 1), C = y:rows(0, 1)})
  s:call("right", gemm{m = 64, n = 32, k = 32}, {A = x, B = w:rows(1, 1), C = t})
  s:call("more", gemm{m = 64, n = 32, k = 32}, {A = t, B = w:rows(1, 1), C = y:rows(1, 1)})
  s:call("last", gemm{m = 64, n = 32, k = 32}, {A = y:rows(1, 1), B = w:rows(0, 1), C = y:rows(2, 1)})
end)()
local plan = mr.plan(seq:program "left":graph{tile = {m = 64, n = 32, k = 32}}, "h200")
plan:buffers{a = 2, b = 2}
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
local sp = mr.sequence_plan(seq, "h200")
for _, c in ipairs(sp.calls) do sp:use(c.name, plan) end
sp:arena()
sp:launch("right", {stream = 1, early = false})
sp:launch("more", {stream = 1})
sp:launch("last", {early = false, after = {"more"}})
assert(sp:check())
return sp:compile{target = "cuda"}
E
t_cmd 'a benchmark' 0 "$MILLRACE" -e "local k = dofile '$T/forked.lua'
for _, graph in ipairs{'default', true, false} do
  local b = k:bench{seconds = 0.01, graph = graph ~= 'default' and graph or graph == 'default' and nil}
  print(('%.3f'):format(b.ms), b.graph, tostring(b):find('; as a graph', 1, true) ~= nil)
end
local y = k:run(k.plan.sequence:inputs()).y
print(y:get(1, 1, 1), y:get(3, 64, 32))"
t_out 'launches graphs, unless it is not to' <<'E'
0.100	true	true
0.100	true	true
0.200	false	false
0.0	0.0
E
t_cmd 'a driver that cannot capture early launches' 0 env FAKE_CUDA_VERSION=12020 "$MILLRACE" -e "
local b = dofile('$T/forked.lua'):bench{seconds = 0.01}
print(('%.3f'):format(b.ms), b.graph)"
t_out 'gets them one by one' <<'E'
0.200	false
E
FAKE_CUDA_LOG=$T/log t_cmd 'a check' 0 "$MILLRACE" -e "
local e = dofile('$T/forked.lua'):check{}
print(#e.calls, #e.differs)"
t_out 'compares each call' <<'E'
4	0
E
t_is 'and launches each twice: alone, and as planned' "$(grep -c '^gemm' "$T/log")" 8
t_cmd 'a trace of kernels that do not leave stamps' 1 "$MILLRACE" -e "dofile('$T/forked.lua'):trace{seconds = 0.001}"
t_err 'says so' 'the traced kernel left [0-9]* stamps fewer than it should on EU 1'

# ---- sizes that are left to the launch -------------------------------------------------------

cat >"$T/any.lua" <<'E'
local gemm = mr.examples.gemm
local seq = mr.sequence("any", function(s)
  local m = s:sizes("m")
  local x, w, t, y = s:input("x", {m, 32}), s:input("w", {32, 32}), s:temp("t", {m, 32}), s:output("y", {m, 32})
  s:call("a", gemm{m = m, n = 32, k = 32}, {A = x, B = w, C = t})
  s:call("b", gemm{m = m, n = 32, k = 32}, {A = t, B = w, C = y})
end){m = mr.any{max = 256, multiple = 8}}
local plan = mr.plan(seq:program "a":graph{tile = {m = 64, n = 32, k = 32}}, "h200")
plan:buffers{a = 2, b = 2}
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
local sp = mr.sequence_plan(seq, "h200")
for _, c in ipairs(sp.calls) do sp:use(c.name, plan) end
sp:arena()
return sp:compile{target = "cuda"}
E
t_cmd 'kernels run at sizes of a launch' 0 "$MILLRACE" -e "local k = dofile '$T/any.lua'
for _, m in ipairs{8, 200, 256} do
  local inputs = k.plan.sequence:at_sizes{m = m}:inputs()
  print(k:run(inputs).y:shape()[1], #k:check{m = m}.calls, k:bench{m = m, seconds = 0.01}.graph)
end
print(k:run().y:shape()[1], pcall(k.bench, k, {m = 264}))"
t_is 'the arrays, a check and a benchmark say which' "$(sed 's/[^ 	]*size/size/' "$T/out")" "$(printf '8\t2\ttrue\n200\t2\ttrue\n256\t2\ttrue\n256\tfalse\t%s' \
	"$(tail -1 "$T/out" | sed 's/.*false	//; s/[^ 	]*size/size/')")"
t_like 'others are refused' "$(tail -1 "$T/out")" "bench: size 'm' is 264; the sequence is for m up to 256 in steps of 8$"
t_done
