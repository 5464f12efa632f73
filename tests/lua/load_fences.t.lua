-- Fences between what threads read of a slot and the copy engine's next write to it (src/lower/select/fences.c): in the lane that
-- loads where all it does is to have the engine load into its own block, else in those who have read. Kernels of both kinds are right
-- on the CPU, which looks for races and missing fences, and a text without the fence is refused there.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")

-- A GEMM whose first operand is the product of a tile with a column, and a bias that is read once a tile.
local program = mr.program("scaled", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, W, C = p:input("X", {m, k}), p:input("W", {n, k}), p:output("C", {m, n}, "f32")
  local G, B = p:input("G", {k}), p:input("B", {n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  local b = p:load("load_b", B)
  p:loop(k, function()
    local x, w, g = p:load("load_x", X), p:load("load_w", W), p:load("load_g", G)
    c:add(p:mma("mma", p:task("scale", function() return (x * g):to "bf16" end), w))
  end)
  C:store("store_c", p:task("add", function() return c + b end))
end)

local function planned(o)
  local plan = mr.plan(program(o.sizes or {m = 160, n = 256, k = 328}):graph{tile = {m = 64, n = o.k and 32 or 128, k = o.k or 64}}, mr.device "h200")
  plan:lane("p0", {warps = o.copying or 1})
  if o.apart then plan:lane("p1", {warps = o.copying or 1}) end
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do
    local lane = t.kind == "load" and "p0" or "c0"
    if o.alone and t.name == "load_x" then lane = "c0" elseif o.apart and t.name == "load_b" then lane = "p1" end
    plan:append(t.name, {lane = lane})
  end
  local deep = o.k and 1 or 2
  plan:buffers{x = deep, w = deep, g = 1 + deep, b = o.versions or 1}
  plan:grid{raster = "rows", group = 2, eus = o.eus or 2, cluster = o.cluster, along = o.along}
  plan:fill_waits()
  return plan
end

-- The tasks whose text has a fence, in their order, each once.
local function fenced(source)
  local found, seen, task = {}, {}, nil
  for line in source:gmatch "[^\n]+" do
    task = line:match "/%* ([%w_.]+), " or task
    if line:find "fence_async%(%);" and not seen[task] then
      found[#found + 1] = task
      seen[task] = true
    end
  end
  table.sort(found)
  return table.concat(found, " ")
end

local function compare(what, o, lean, all)
  local plan = planned(o)
  local ok, problems = plan:check()
  tap.ok(ok, what .. ": legal", tostring(problems))
  tap.is(fenced(plan:compile{text = true}.source), lean, "  fences")
  tap.is(fenced(plan:compile{text = true, without = {"load_fences"}}.source), all or lean, "  without that, where they read")
  for _, without in ipairs{{}, {"load_fences"}} do
    local k = plan:compile{target = "host", without = without}
    for seed = 1, 2 do
      local e = k:check{seed = seed, race = true}
      tap.ok(e.ok, ("  right on the CPU%s, seed %d"):format(#without > 0 and ", fences where they read" or "", seed), tostring(e))
    end
  end
  return plan
end

local plan = compare("a lane that loads", {}, "load_b load_g load_x store_c", "add scale store_c")
compare("two lanes that load", {apart = true}, "load_b load_g load_x store_c", "add scale store_c")
compare("a lane that loads with several warps", {copying = 4}, "load_b load_g load_x store_c", "add scale store_c")
compare("one EU with all tiles", {eus = 1, versions = 2}, "load_b load_g load_x store_c", "add scale store_c")
compare("a lane that computes loads, too", {alone = true}, "load_b load_g scale store_c", "add scale store_c")
compare("clusters that share what threads read", {cluster = 2, along = "n", eus = 4}, "load_b load_g scale store_c", "add scale store_c")
local shared = compare("clusters that share all else, but for what takes less time alone", {cluster = 2, along = "m", eus = 4,
  sizes = {m = 256, n = 256, k = 328}}, "load_b load_g load_x store_c", "add scale store_c")
local text = shared:compile{text = true}.source
tap.ok(text:find("tma_load_all_2d", 1, true) and not text:find("tma_load_all_1d(s", 1, true), "  that is the gains and the bias")
compare("gains of more bytes than a fence is worth", {cluster = 2, along = "m", eus = 4, k = 576, sizes = {m = 256, n = 64, k = 1152}},
  "load_b load_x scale store_c", "add scale store_c")
compare("a lane whose threads copy, too", {copying = 4, sizes = {m = 160, n = 256, k = 327}}, "add load_w load_x scale store_c")

---- texts without them ----------------------------------------------------------
local function refuses(what, edit)
  local n
  local k = core.build(plan, true, function(text)
    text, n = edit(text)
    return text
  end, nil, "host")
  tap.ok(n > 0, what .. ": replaced")
  local good, message = pcall(function() return tostring(k:check{seed = 3, race = true}) end)
  message = tostring(message)
  tap.ok(not good and message:find("without a fence", 1, true) ~= nil, "  the CPU says that there is none", message)
end
refuses("no fence before the load of x", function(text)
  return text:gsub("fence_async%(%);(\n[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*tma_load)", "%1")
end)
tap.done_testing()
