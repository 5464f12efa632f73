-- Threads against boxes of rows: the same gathered product, by both. `millrace tests/perf/row_boxes.lua` on a machine with an H100.
local mr = require "millrace"
local prog = mr.program("gathered", function(p)
  local g, m, n, d = p:axes("g", "m", "n", "d")
  local r = p:axis("r", 8192)
  local T, A, X = p:input("T", {g, n}, "i32"), p:input("A", {g, m, n}), p:input("X", {r, d})
  local Y = p:output("Y", {g, m, d}, "f32")
  p:batch(g)
  local acc = p:carry("acc", {m, d}, 0)
  p:loop(n, function()
    local t = p:load("load_t", T)
    acc:add(p:mma("mma", p:load("load_a", A), p:load("load_x", X, {t, d})))
  end)
  Y:store("store_y", acc)
end)
local bound = prog{g = 264, m = 64, n = 4096, d = 128}
for _, how in ipairs{{"threads, 4 warps", 4, false}, {"threads, 1 warp", 1, false}, {"rows, 1 warp", 1, true}, {"rows, 2 warps", 2, true},
  {"rows, 4 warps", 4, true}} do
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 64, d = 128}}, mr.device "h100")
  plan:lane("c0", {warps = 4})
  plan:lane("p0", {warps = how[2]})
  plan:lane("p1", {warps = 1})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.name == "load_t" and "p1" or t.kind == "load" and "p0" or "c0", by_rows = how[3] and t.name == "load_x"})
  end
  plan:fill_waits()
  plan:buffers{x = 4, a = 4, t = 4}
  plan:fill_waits()
  local ok, problems = plan:check()
  if not ok then print(problems) end
  local k = plan:compile{target = "cuda"}
  local line = ("%-18s predicted %8.4f ms, spills %d"):format(how[1], plan:simulate().seconds * 1e3, k.spills)
  if mr.attached() then
    line = line .. (", %s, measured %.4f ms"):format(k:check().ok and "right" or "WRONG", k:bench{seconds = 0.5}.ms)
  end
  print(line)
end
