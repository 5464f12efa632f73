# Tiles by a counter give what the reference gives, in each of several launches: the counter is 0 again behind each.
. tests/gpu/lib.sh

cat >"$T/script.lua" <<'L'
local mr = require "millrace"
local device = mr.device "h200"
local copy = mr.program("copy", function(p)
  local m, n = p:axes("m", "n")
  p:output("Y", {m, n}):store("store_y", p:load("load_x", p:input("X", {m, n})))
end)

local function rows(m, n, eus, versions)
  local plan = mr.plan(copy:bind{m = m, n = n}:graph{tile = {m = 1, n = n}}, device)
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:append("load_x", {lane = "p0"})
  plan:append("store_y", {lane = "c0"})
  for name in pairs(plan.rings) do plan:buffers{[name] = versions} end
  plan:fill_waits()
  plan:grid{eus = eus}
  return plan
end
local function loaded(name, bound, grid)
  local plan = mr.load_plan(name, bound)
  plan:grid(grid)
  return plan
end
local function replicas()
  local plan = mr.plan(mr.examples.gemm{m = 4096, n = 4096, k = 512}:graph{tile = {m = 128, n = 128, k = 64}}, device)
  plan:lane("p0", {warps = 1})
  plan:lane("c", {warps = 4, replicas = 2})
  plan:buffers{a = 4, b = 4}
  for _, task in ipairs(plan.tasks) do plan:append(task.name, {lane = task.kind == "load" and "p0" or "c"}) end
  plan:fill_waits()
  plan:grid{group = 8}
  return plan
end
local causal = mr.examples.flash_attention{b = 2, h = 4, m = 2048, d = 128, causal = true}
for _, case in ipairs{{"rows", rows(3000, 1024, 132, 4)}, {"a tile each", rows(100, 1024, 100, 2)}, {"fewer than two each", rows(150, 1024, 100, 2)},
    {"one block", rows(50, 1024, 1, 3)}, {"many tiles", rows(60000, 128, 132, 8)},
    {"causal", loaded("attention_d128_causal", causal, {longest_first = false})},
    {"causal, longest first", loaded("attention_d128_causal", causal, {longest_first = true})},
    {"causal, sections", loaded("attention_d128_causal", causal, {longest_first = true, section = 100})},
    {"product, replicas", replicas()}} do
  local name, plan = case[1], case[2]
  plan:grid{dynamic = true}
  local kernel, good = plan:compile(), true
  for seed = 1, 5 do good = good and kernel:check{seed = seed}.ok end
  kernel:bench()                                        -- many launches, one behind the other
  print(name, good and kernel:check{seed = 6}.ok and kernel.spills == 0 and "right" or "wrong")
end
L
t_cmd 'tiles by a counter' 0 "$MILLRACE" "$T/script.lua"
t_out '  are right in each launch' <<E
rows	right
a tile each	right
fewer than two each	right
one block	right
many tiles	right
causal	right
causal, longest first	right
causal, sections	right
product, replicas	right
E
t_done
