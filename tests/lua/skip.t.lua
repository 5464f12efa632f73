-- Columns of which a mask leaves nothing in the rows of a warp are not computed: the kernels are right, the same to the bit as
-- without that, and cheaper in the model; and what is no such mask is computed as before.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

-- Weights of which a mask leaves some, and a product with them. mask: of indices of rows and columns; value: of a score.
local function masked(mask, value, other)
  return mr.program("masked", function(p)
    local m, n, k, d = p:axes("m", "n", "k", "d")
    local A, B, V, O = p:input("A", {m, k}), p:input("B", {n, k}), p:input("V", {n, d}), p:output("O", {m, d})
    local R, C = p:input("R", {m}, "f32"), p:input("C", {n}, "f32")
    local a, r, o = p:load("load_a", A), p:load("load_r", R), p:carry("o", {m, d}, 0)
    p:loop(n, function()
      local s, c = p:mma("score", a, p:load("load_b", B)), p:load("load_c", C)
      local w = p:task("weigh", function()
        return mr.where(mask(m:index(), n:index()), value(s, r, c), other or 0):to "bf16"
      end)
      o:add(p:mma("mma_v", w, p:load("load_v", V)))
    end)
    O:store("store", p:task("round", function() return o:to "bf16" end))
  end)
end

local function schedule(bound, tile, warps, ways)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  if ways then plan:split("m", ways) end
  plan:lane("p0", {warps = 1})
  for i = 0, (ways or 1) - 1 do plan:lane("c" .. i, {warps = warps}) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (t.name:match "%.(%d+)$" or 0)})
  end
  plan:fill_waits()
  return plan
end

local function chunks(plan, without)
  return select(2, plan:compile{target = "cuda", text = true, without = without}.source:gsub("= ANY_OF_WARP", ""))
end

-- n: questions in the text, of loops with masks: a loop that asks for no ends may have one, too.
local function compare(what, bound, plan, n)
  tap.is(chunks(plan), n, what .. ": chunks of columns")
  tap.is(chunks(plan, {"skip"}), 0, "  none where that is left out")
  local r = plan:compile{target = "host"}:check{seed = 3}
  tap.ok(r.ok, "  right", tostring(r))
  local inputs = bound:inputs{seed = 4}
  local got, all = plan:compile{target = "host"}:run(inputs), plan:compile{target = "host", without = {"skip"}}:run(inputs)
  for name, x in pairs(all) do tap.is(got[name]:max_error(x), 0.0, ("  '%s' is the same without"):format(name)) end
end

local function long(s, r, c) return s * (mr.exp2(mr.min(r - c, 0) * 0.5) * c) end
local function short(s, r, c) return s * (r - c) end
local cases = {
  {"below the diagonal", function(i, j) return j:le(i) end, long, 2},
  {"strictly below it", function(i, j) return j:lt(i) end, long, 2},
  {"above it", function(i, j) return i:le(j) end, long, 2},
  {"strictly above it", function(i, j) return i:lt(j) end, long, 2},
  {"below another diagonal", function(i, j) return j:le(i + 40) end, long, 2},
  {"columns that are counted from another one", function(i, j) return (j + 24):lt(i) end, long, 2},
  {"with another value where nothing is left", function(i, j) return j:le(i) end, long, 2, 0.25},
  {"against rows that count backwards", function(i, j) return j:le(200 - i) end, long, 2},
  {"on the diagonal alone: any column may be needed", function(i, j) return j:eq(i) end, long, 0},
  {"two conditions", function(i, j) return j:le(i) & i:le(j + 16) end, long, 0},
  {"too little work to ask", function(i, j) return j:le(i) end, short, 0},
}
for _, x in ipairs(cases) do
  local bound = masked(x[2], x[3], x[5]){m = 200, n = 168, k = 64, d = 64}
  local ok, plan = pcall(schedule, bound, {m = 128, n = 128, k = 64, d = 64}, 4, 2)
  if not ok then tap.ok(false, x[1], plan) else compare(x[1], bound, plan, x[4]) end
end
for _, t in ipairs{{64, 64, 4}, {128, 64, 8}, {128, 128, 8}, {64, 96, 4}, {128, 48, 4}} do
  local bound = masked(cases[1][2], long){m = 200, n = 264, k = 64, d = 64}
  compare(("tiles of %d x %d, %d warps"):format(table.unpack(t)), bound, schedule(bound, {m = t[1], n = t[2], k = 64, d = 64}, t[3]), 2)
end
for _, s in ipairs{512, 300} do
  local bound = mr.examples.chunk_scan{b = 1, s = s, h = 2, p = 64, n = 64}
  compare(("chunk_scan of %d positions"):format(s), bound, schedule(bound, {l = 128, k = 128, n = 64, p = 64}, 8), 1)
end

-- A tile on the diagonal: a warp of 16 rows computes 32, 64, 96 or 128 columns of 128, so five eighths of them all are left.
local function cycles(mask)
  local bound = masked(mask, function(s, r, c) return mr.exp2(long(s, r, c)) end){m = 128, n = 128, k = 64, d = 64}
  return schedule(bound, {m = 128, n = 128, k = 64, d = 64}, 8):simulate{events = 0}.cycles
end
local below, any = cycles(cases[1][2]), cycles(function(i, j) return j:eq(i) end)
tap.ok(below < any - 200, "columns that are not computed cost nothing in the model", ("%d and %d cycles"):format(below, any))
tap.done_testing()
