-- families.t.lua - families of plans that differ in one property, with all its values: reductions along every
-- axis, every role of an axis in a product, every split, every number of warps. Each
-- case is either refused (by the program, the graph, an edit or check()), or lowered with the right result.
--
--   millrace families.t.lua [PATTERN]         runs the cases whose names match as a test
--   millrace families.t.lua table [PATTERN]   prints a line each: right, refused or FAULT; then a summary by kind
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local rare = dofile(dir .. "lib/wild_programs.lua")

local as_table = arg[1] == "table"
local only = arg[as_table and 2 or 1]
local SEEDS <const> = {1, 2}                            -- accesses are watched with the first

---- one case -------------------------------------------------------------------

local function one_line(message) return (tostring(message):gsub("\n%s*", " | ")) end

-- What kinds of refusals and faults there were in a family: how often, and the first case.
local kinds = {refused = {}, FAULT = {}}

local function note(what, name, message, stage)
  local key = name:match "^%a+" .. ": " .. (stage or "") .. random_plans.kind_of(message)
  local kind = kinds[what][key]
  if not kind then
    kind = {key = key, first = name, count = 0}
    table.insert(kinds[what], kind)
    kinds[what][key] = kind
  end
  kind.count = kind.count + 1
end

local function judge(make)
  local made, plan = pcall(make)
  if not made then return "refused", tostring(plan) end
  local good, problems = plan:check()
  if not good then return "refused", problems[1].code .. ": " .. problems[1].message, plan:script() end
  local result, message = random_plans.verify(plan, SEEDS)
  if result == "ok" then return "right" end
  return "FAULT", message, plan:script(), result == "refused" and "not lowered: " or ""
end

-- make() gives a plan, or an error where something cannot be said.
local function case(name, make)
  if only and not name:find(only) then return end
  local result, message, script, stage = judge(make)
  if result ~= "right" then note(result, name, message, stage) end
  if as_table then
    local why = message and ": " .. (stage or "") .. one_line(message):sub(1, 200) or ""
    print(("%-70s %s%s"):format(name, result, why))
    io.stdout:flush()
  else
    tap.ok(result ~= "FAULT", name, message, script)
  end
end

local function summary()
  for _, what in ipairs{"refused", "FAULT"} do
    table.sort(kinds[what], function(a, b) return a.count > b.count or a.count == b.count and a.first < b.first end)
    for _, kind in ipairs(kinds[what]) do
      print(("# %4d %s, %s; first: %s"):format(kind.count, what, kind.key, kind.first))
    end
  end
end

-- What a plan appends: every sTask in the program's order, with the options that `options(task)`
-- gives, after `before(plan)`.
local function schedule(bound, tile, options, before)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  if before then before(plan) end
  for _, t in ipairs(plan.tasks) do plan:append(t.name, options and options(t) or nil) end
  plan:grid{eus = 1}                                    -- one EU has all tiles, one after the other
  plan:fill_waits()
  return plan
end

-- All choices of which axes are in tiles, as extents and a description; of three axes only: none,
-- the first, all.
local function tilings(axes, extents)
  local list = {{tile = {}, text = "full axes"}}
  for axis in axes:gmatch "." do
    for i = 1, #list do
      local tile = {[axis] = extents[axis]}
      for name, n in pairs(list[i].tile) do tile[name] = n end
      list[#list + 1] = {tile = tile, text = (list[i].text == "full axes" and "tiles of " or list[i].text) .. axis}
    end
  end
  if #axes == 3 then list = {list[1], list[2], list[8]} end
  return list
end

---- reductions and scans by every axis -----------------------------------------

local reductions, scans = {"rowsum", "rowmax", "rowmin"}, {"cumsum", "cummax", "cummin"}

-- What the value is: a tile of f32 as it was loaded, one that was cast, or a product.
local shapes = {
  {axes = "m", sizes = {m = 150}, extents = {m = 64}, uses = {"alone", "against", "carried"}},
  {axes = "m", sizes = {m = 64}, extents = {m = 24}, uses = {"alone", "against"}, cast = true},
  {axes = "mn", sizes = {m = 70, n = 52}, extents = {m = 32, n = 24}, uses = {"alone", "against", "carried"}},
  {axes = "mn", sizes = {m = 100, n = 72}, extents = {m = 64, n = 32}, uses = {"alone", "against"}, cast = true},
  {axes = "mn", sizes = {m = 80, n = 40}, extents = {m = 64, n = 16}, uses = {"alone", "against"}, product = true},
  {axes = "mnk", sizes = {m = 20, n = 12, k = 18}, extents = {m = 8, n = 8, k = 8}, uses = {"alone", "against"}},
}

local function with(sizes, more)
  local all = {}
  for k, v in pairs(sizes) do all[k] = v end
  for k, v in pairs(more or {}) do all[k] = v end
  return all
end

local function sizes_text(shape)
  local list = {shape.cast and "what is cast," or shape.product and "a product," or nil}
  for name in shape.axes:gmatch "." do list[#list + 1] = name .. shape.sizes[name] end
  return table.concat(list, " ")
end

for _, shape in ipairs(shapes) do
  local sizes = with(shape.sizes, {dtype = not shape.cast and not shape.product and "f32" or nil,
    d = shape.product and 32 or nil})
  for along in shape.axes:gmatch "." do
    for _, tiling in ipairs(tilings(shape.axes, shape.extents)) do
      for _, list in ipairs{reductions, scans} do
        local what = ("%s of %s along %s, %s"):format(list == scans and "scans" or "reductions",
          sizes_text(shape), along, tiling.text)
        for _, use in ipairs(shape.uses) do
          if use == "against" or list == scans or not tiling.tile[along] then
            case(what .. ", " .. use, function()
              return schedule(rare.unary(list, shape.axes, along, use, nil, shape.product)(sizes), tiling.tile)
            end)
          end
        end
        for other in shape.axes:gmatch "." do
          if other ~= along and not tiling.tile[other] and (list == scans or not tiling.tile[along]) then
            case(what .. ", then along " .. other, function()
              return schedule(rare.unary(list, shape.axes, along, "alone", other, shape.product)(sizes), tiling.tile)
            end)
          end
        end
      end
    end
  end
end
case("a reduction along an axis in tiles", function()
  return schedule(rare.unary(reductions, "mn", "n", "alone"){m = 70, n = 52}, {m = 32, n = 24})
end)

-- The same from tile to tile of a loop, in a carry.
local function looped(axes, along, scan)
  return mr.program("looped", function(p)
    local list, others, by = {}, {}, nil
    for name in axes:gmatch "." do
      local axis = p:axes(name)
      list[#list + 1] = axis
      if name == along then by = axis else others[#others + 1] = axis end
    end
    local X, Y = p:input("X", list, "f32"), p:output("Y", scan and list or others, "f32")
    local sum, top = p:carry("sum", others, 0), p:carry("top", others, -math.huge)
    p:loop(by, function()
      local x = p:load("load_x", X)
      local y = p:task("step", function()
        local y = scan and mr.cumsum(x, by) + sum
        sum:add(mr.rowsum(x, by))
        top:set(mr.max(top, mr.rowmax(x, by)))
        return y
      end)
      if scan then Y:store("store_y", y) end
    end)
    if not scan then Y:store("store_y", p:task("finish", function() return sum - top end)) end
  end)
end

for _, shape in ipairs{shapes[3], shapes[4], shapes[6]} do
  for along in shape.axes:gmatch "." do
    for _, tiling in ipairs(tilings(shape.axes:gsub(along, ""), shape.extents)) do
      local tile = with(tiling.tile, {[along] = shape.extents[along]})
      for _, scan in ipairs{false, true} do
        case(("%s of %s along %s in a loop, %s"):format(scan and "a scan" or "reductions", sizes_text(shape), along,
          tiling.text), function()
          return schedule(looped(shape.axes, along, scan)(shape.sizes), tile)
        end)
      end
    end
  end
end

case("row maxima times column maxima, full axes", function()
  return schedule(rare.outer{m = 64, n = 64, k = 16, dtype = "f32"}, {})
end)
case("row maxima times column maxima, in tiles", function()
  return schedule(rare.outer{m = 100, n = 40, k = 20, dtype = "f32"}, {m = 64, n = 24})
end)
for _, dtype in ipairs{"bf16", "f16"} do
  for _, n in ipairs{16, 24, 64} do
    case(("softmax and sums down the columns of a product of %s, %d wide"):format(dtype, n), function()
      return schedule(rare.columns{m = 80, n = 2 * n, k = 64, dtype = dtype}, {n = n, k = 32})
    end)
  end
end

---- roles of axes in a product ---------------------------------------

-- C = A B^T. Roles of m and n: "grid", "full", "batch"; "fold", a loop that sums up; "walk", a
-- loop that stores its tiles. Of k: "full", "loop", "batch"; "tile": in tiles, but not in a loop.
local function product(roles)
  return mr.program("product", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B = p:input("A", {m, k}), p:input("B", {n, k})
    local left, total, stored, folds, walks = {}, {}, {}, {}, {}
    for _, x in ipairs{{"m", m}, {"n", n}, {"k", k}} do
      local role, axis = roles[x[1]], x[2]
      if role == "batch" then p:batch(axis) end
      local in_result = x[1] ~= "k" or role == "batch"
      if in_result and role ~= "fold" then stored[#stored + 1] = axis end
      if in_result and role ~= "batch" then left[#left + 1] = axis end
      if in_result and role ~= "batch" and role ~= "fold" then total[#total + 1] = axis end
      if role == "fold" then folds[#folds + 1] = axis end
      if role == "walk" then walks[#walks + 1] = axis end
    end
    local C = p:output("C", stored, "f32")
    local function tile_of_c()
      if roles.k ~= "loop" then return p:mma("mma", p:load("load_a", A), p:load("load_b", B)) end
      local c = p:carry("c", left, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      return c
    end
    local function folded()
      if #folds == 0 then
        local c = tile_of_c()
        return p:task("finish", function() return c + 0 end)
      end
      local sum = p:carry("sum", total, 0)
      p:loop(folds, function()
        local c = tile_of_c()
        p:task("fold", function()
          for _, axis in ipairs(folds) do c = mr.rowsum(c + 0, axis) end
          sum:add(c)
        end)
      end)
      return p:task("finish", function() return sum + 0 end)
    end
    local function all() C:store("store_c", folded()) end
    if #walks > 0 then p:loop(walks, all) else all() end
  end)
end

local outer = {"grid", "full", "batch", "fold", "walk"}
for _, role_m in ipairs(outer) do
  for _, role_n in ipairs(outer) do
    for _, role_k in ipairs{"full", "loop", "batch", "tile"} do
      local sums_to_nothing = role_m == "fold" and role_n == "fold"
      if not sums_to_nothing and (role_k == "full" or role_k == "loop" or role_m == role_n) then
        case(("product: m %s, n %s, k %s"):format(role_m, role_n, role_k), function()
          local function extent(role, n) return role ~= "full" and role ~= "batch" and n or nil end
          local sizes = {m = role_m == "batch" and 3 or 80, n = role_n == "batch" and 3 or 40,
            k = role_k == "batch" and 3 or 48}
          return schedule(product{m = role_m, n = role_n, k = role_k}(sizes),
            {m = extent(role_m, 64), n = extent(role_n, 16), k = extent(role_k, 32)})
        end)
      end
    end
  end
end

-- A second axis of rows, or a second contracted axis.
local function wide_product(contracted)
  return mr.program("wide_product", function(p)
    local h, m, n, k = p:axes("h", "m", "n", "k")
    local A, B = p:input("A", {h, m, k}), p:input("B", contracted and {h, n, k} or {n, k})
    local C = p:output("C", contracted and {m, n} or {h, m, n}, "f32")
    local c = p:carry("c", contracted and {m, n} or {h, m, n}, 0)
    p:loop(p.over_h and {h, k} or k, function()
      c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B)))
    end)
    C:store("store_c", p:task("finish", function() return c + 0 end))
  end)
end

for _, extent in ipairs{1, 2, 4} do
  case(("product with two axes as rows, %d of 4 in a tile"):format(extent), function()
    return schedule(wide_product(false){h = 4, m = 32, n = 40, k = 48}, {h = extent, m = 16, n = 32, k = 32})
  end)
  case(("product that contracts two axes, %d of 4 in a tile"):format(extent), function()
    return schedule(wide_product(true){h = 4, m = 80, n = 40, k = 48, over_h = true},
      {h = extent, m = 64, n = 32, k = 16})
  end)
end
case("product that contracts two axes, one of them a full axis", function()
  return schedule(wide_product(true){h = 4, m = 80, n = 40, k = 48}, {m = 64, n = 32, k = 16})
end)

-- One product contracts the axis that another one has in tiles.
for _, m in ipairs{64, 32} do
  for _, n in ipairs{64, 16} do
    for _, d in ipairs{128, 64, 32, 16} do
      case(("tiled and contracted: tile %d x %d, %d of 128"):format(m, n, d), function()
        return schedule(rare.twice{m = 64, n = 72, d = 128}, {m = m, n = n, d = d < 128 and d or nil})
      end)
    end
  end
end
for _, dtype in ipairs{"f16", "f32"} do
  for _, d in ipairs{64, 32} do
    case(("tiled and contracted: %s, %d of 64"):format(dtype, d), function()
      return schedule(rare.twice{m = 32, n = 32, d = 64, dtype = dtype}, {m = 32, n = 32, d = d < 64 and d or nil})
    end)
  end
end
case("tiled and contracted: the axis is ragged", function()
  return schedule(rare.twice{m = 64, n = 64, d = 100}, {m = 64, n = 64, d = 32})
end)

-- A reduction along an axis that element-wise work has in tiles.
local share = mr.program("share", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("divide", function() return x / (mr.rowsum(x * x, n) + 1) end))
end)
for _, tiling in ipairs(tilings("mn", {m = 32, n = 24})) do
  case("tiled and reduced: " .. tiling.text, function() return schedule(share{m = 70, n = 52}, tiling.tile) end)
end

---- splits ---------------------------------------------------------------------

local function lane_of_slice(t)
  return t.kind ~= "load" and {lane = "c" .. (t.name:match "%.(%d+)$" or 0)} or nil
end

-- Sizes for a tile with this extent of the axis: two tiles of it, and small ones of the others.
local function split_case(name, program, tile, sizes, axis, ways, part, apart, is_tiled)
  case(("split: %s along %s, %d slices of %d, %s"):format(name, axis, ways, part,
    apart and "a lane each" or "one lane"), function()
    local total = ways * part
    local extents = with(tile, {[axis] = is_tiled and total or nil})
    local bound = program(with(sizes, {[axis] = is_tiled and total + 8 or total}))
    return schedule(bound, extents, apart and lane_of_slice or nil, function(plan) plan:split(axis, ways) end)
  end)
end

local highest_and_sums = {"rowmax", "cumsum"}
local split_programs = {
  {"gemm", mr.examples.gemm, {m = 64, n = 32, k = 32}, {m = 64, n = 32, k = 64}, {"m", "n"}},
  {"qkv", rare.qkv, {m = 64, n = 32}, {m = 64, n = 64, d = 64}, {"m", "n", "d"}},
  {"dq", rare.dq, {m = 64, n = 32}, {m = 64, n = 64, d = 64}, {"m", "n", "d"}, few = true},
  {"twice", rare.twice, {m = 64, n = 32}, {m = 64, n = 64, d = 64}, {"m", "n", "d"}, few = true},
  {"norms", rare.norms, {m = 64, n = 32, k = 32}, {m = 64, n = 32, k = 64}, {"m", "n"}, few = true},
  {"rows", rare.unary(highest_and_sums, "mn", "n", "against"), {m = 32}, {m = 32, n = 40}, {"m", "n"}, few = true},
  {"columns", rare.unary(highest_and_sums, "mn", "m", "against"), {n = 32}, {m = 40, n = 32}, {"m", "n"}, few = true},
}
for _, of in ipairs(split_programs) do
  for _, axis in ipairs(of[5]) do
    for _, shape in ipairs(of.few and {{2, 8}, {2, 32}, {3, 24}} or
      {{2, 8}, {2, 16}, {2, 24}, {2, 32}, {2, 64}, {3, 8}, {3, 32}, {4, 4}}) do
      for _, apart in ipairs{false, true} do
        split_case(of[1], of[2], of[3], of[4], axis, shape[1], shape[2], apart, of[3][axis] ~= nil)
      end
    end
  end
end

-- One sTask is split and all others are not; its slices are on lanes of their own, or on one.
local single = {
  {"qkv", rare.qkv, {m = 64, n = 32}, {m = 72, n = 64, d = 64}},
  {"norms", rare.norms, {m = 64, n = 32, k = 32}, {m = 72, n = 40, k = 64}},
  {"outer", rare.outer, {m = 48, n = 32}, {m = 72, n = 40, k = 16}},
  {"stats", rare.stats, {m = 48, n = 32}, {m = 72, n = 40}},
  {"fold", rare.fold, {m = 32, n = 64}, {m = 72, n = 72, k = 32}},
}
for _, of in ipairs(single) do
  local name, program, tile, sizes = table.unpack(of)
  for _, t in ipairs(program(sizes):graph{tile = tile}.tasks) do
    for _, axis in ipairs(t.kind == "load" and {} or {"m", "n", "d"}) do
      for _, apart in ipairs(t.shape[axis] and {false, true} or {}) do
        local where = apart and "a lane each" or "one lane"
        case(("split: %s of %s alone along %s, %s"):format(t.name, name, axis, where), function()
          return schedule(program(sizes), tile, apart and lane_of_slice or nil,
            function(plan) plan:split(axis, 2, {t.name}) end)
        end)
      end
    end
  end
end

---- lanes ----------------------------------------------------------------------

-- A product with loads, epilogue and store on lanes of their own: o.lanes, o.seu and o.on say of
-- which kind, by sTask.
local function gemm(o)
  local bound = mr.examples.gemm(with({m = 72, n = 48, k = 40, activation = "relu"}, o.sizes))
  return schedule(bound, o.tile or {m = 64, n = 32, k = 32}, function(t)
    return {seu = o.seu and o.seu[t.name], lane = o.on and o.on[t.name], at = o.at and o.at[t.name]}
  end, function(plan)
    local names = {}
    for name in pairs(o.lanes or {}) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do plan:lane(name, o.lanes[name]) end
    if o.rings then plan:buffers(o.rings) end
  end)
end

local of_lanes = {
  {"loads by the copy engine", {on = {load_a = "x", load_b = "x"}}},
  {"loads by threads", {on = {load_a = "x", load_b = "x"}, seu = {load_a = "cuda", load_b = "cuda"}}},
  {"a product on tensor cores", {on = {mma = "x", epilogue = "x", store_c = "x"}}},
  {"a product on CUDA cores", {on = {mma = "x", epilogue = "x", store_c = "x"}, seu = {mma = "cuda"}}},
  {"an epilogue", {on = {epilogue = "x"}}},
  {"a store", {on = {store_c = "x"}}},
  {"a store by threads", {on = {store_c = "x"}, seu = {store_c = "cuda"}}},
}
for _, x in ipairs(of_lanes) do
  for _, warps in ipairs{1, 2, 3, 4, 6, 8, 12} do
    case(("lanes: %d warps for %s"):format(warps, x[1]), function()
      return gemm{lanes = {x = {warps = warps}}, on = x[2].on, seu = x[2].seu}
    end)
  end
end
for warps = 1, 12, 2 do
  case(("lanes: %d warps for all of a program without products"):format(warps), function()
    return schedule(rare.unary(highest_and_sums, "mn", "n", "against"){m = 70, n = 52, dtype = "f32"}, {m = 32},
      function() return {lane = "c0"} end, function(plan) plan:lane("c0", {warps = warps}) end)
  end)
end

for _, registers in ipairs{24, 25, 63, 100, 128, 232, 236, 250, 255} do
  case(("lanes: %d registers for a product"):format(registers), function()
    return gemm{lanes = {c0 = {warps = 4, registers = registers}}}
  end)
  case(("lanes: %d registers for loads"):format(registers), function()
    return gemm{lanes = {p0 = {warps = 1, registers = registers}}}
  end)
end
case("lanes: registers for loads and for a product that are not multiples of the step", function()
  return gemm{lanes = {c0 = {warps = 4, registers = 157}, p0 = {warps = 4, registers = 77}}}
end)

-- Declared first or last.
for _, name in ipairs{"a_idle", "z_idle"} do
  for _, warps in ipairs{1, 4, 5} do
    for replicas = 1, 3 do
      local where = name == "a_idle" and "before the others" or "behind the others"
      case(("lanes: idle %s, %d warps, %d replicas"):format(where, warps, replicas), function()
        return gemm{lanes = {[name] = {warps = warps, replicas = replicas}, c0 = {warps = 4}}}
      end)
    end
  end
  case(("lanes: idle %s, with registers"):format(name), function()
    return gemm{lanes = {[name] = {warps = 2, registers = 100}}}
  end)
  case(("lanes: idle %s, program without a product"):format(name), function()
    return schedule(rare.outer{m = 32, n = 32, k = 16}, {}, nil, function(plan) plan:lane(name, {replicas = 2}) end)
  end)
end
for replicas = 1, 3 do
  case(("lanes: loads by %d replicas"):format(replicas), function()
    return gemm{lanes = {p0 = {warps = 1, replicas = replicas}}}
  end)
  case(("lanes: a product by %d replicas"):format(replicas), function()
    return gemm{lanes = {c0 = {warps = 4, replicas = replicas}}}
  end)
  case(("lanes: all on one lane of %d replicas"):format(replicas), function()
    return gemm{lanes = {c0 = {warps = 4, replicas = replicas}}, on = {load_a = "c0", load_b = "c0"}}
  end)
end
case("lanes: as many threads as there can be", function()
  return gemm{lanes = {c0 = {warps = 4}, c1 = {warps = 12, replicas = 2}, p0 = {warps = 4}}}
end)
case("lanes: so many if each had only the warps it says", function()
  return gemm{lanes = {c0 = {warps = 4}, c1 = {warps = 12, replicas = 2}, p0 = {warps = 1}, p1 = {warps = 1}}}
end)
for _, n in ipairs{6, 7, 14, 15} do
  case(("lanes: %d idle ones of one warp"):format(n), function()
    local lanes = {c0 = {warps = 4}}
    for i = 1, n do lanes[("idle%d"):format(i)] = {warps = 1} end
    return gemm{lanes = lanes}
  end)
end
case("lanes: one idle, with eight replicas", function()
  return gemm{lanes = {c0 = {warps = 4}, idle = {warps = 1, replicas = 8}}}
end)
for _, registers in ipairs{128, 168, 232} do
  case(("lanes: %d registers for each of twelve warps"):format(registers), function()
    return gemm{lanes = {c0 = {warps = 8, registers = registers}, p0 = {warps = 4, registers = registers}}}
  end)
end
case("lanes: five of one warp", function()
  return gemm{lanes = {a = {warps = 1}, b = {warps = 1}, c0 = {warps = 4}, d = {warps = 1}, p0 = {warps = 1}}}
end)

---- capacity of shared memory ---------------------------------------------------

for _, versions in ipairs{13, 14, 27, 64} do
  case(("capacity: %d versions of 64 x 64"):format(versions), function()
    return gemm{sizes = {m = 64, n = 64, k = 64}, tile = {m = 64, n = 64, k = 64}, rings = {a = versions}}
  end)
  case(("capacity: %d versions each of 8 x 64"):format(versions), function()
    return gemm{sizes = {m = 16, n = 16, k = 64}, tile = {m = 8, n = 8, k = 64},
      rings = {a = versions, b = versions}}
  end)
end
for _, versions in ipairs{1, 4, 8} do
  case(("capacity: %d versions of a wide tile that is stored"):format(versions), function()
    return gemm{sizes = {m = 64, n = 256, k = 64, out = "f32"}, tile = {m = 64, n = 256, k = 16},
      rings = {a = versions, b = versions}, on = {store_c = "s"}, lanes = {s = {warps = 1}}}
  end)
  case(("capacity: %d versions of the rows that a lane of one warp reduces"):format(versions), function()
    return schedule(rare.unary({"rowmax"}, "mn", "n", "against"){m = 72, n = 200, dtype = "f32"}, {m = 24},
      nil, function(plan) plan:buffers{x = versions} end)
  end)
end

---- units ----------------------------------------------------------------------

local layouts = {{"mk", "nk"}, {"mk", "kn"}, {"km", "nk"}, {"km", "kn"}}
local function layout_text(l) return "of " .. l[1] .. " by " .. l[2] end

for _, l in ipairs(layouts) do
  for _, warps in ipairs{1, 4, 8} do
    case(("units: loads by %d warps of a lane of their own, %s"):format(warps, layout_text(l)), function()
      return gemm{sizes = {a = l[1], b = l[2]}, seu = {load_a = "cuda", load_b = "cuda"},
        lanes = {p0 = {warps = warps}}, on = {load_a = "p0", load_b = "p0"}, rings = {a = 2, b = 2}}
    end)
  end
  for _, warps in ipairs{4, 8} do
    case(("units: loads by the %d warps that multiply, %s"):format(warps, layout_text(l)), function()
      return gemm{sizes = {a = l[1], b = l[2], m = 136}, tile = {m = 128, n = 32, k = 32},
        seu = {load_a = "cuda", load_b = "cuda"}, lanes = {c0 = {warps = warps}}, on = {load_a = "c0", load_b = "c0"}}
    end)
  end
  case("units: one load by threads, " .. layout_text(l), function()
    return gemm{sizes = {a = l[1], b = l[2]}, seu = {load_a = "cuda"}, on = {load_a = "p0"}}
  end)
  case("units: loads by threads an iteration ahead, " .. layout_text(l), function()
    return gemm{sizes = {a = l[1], b = l[2]}, seu = {load_a = "cuda", load_b = "cuda"}, rings = {a = 2, b = 2},
      on = {load_a = "c0", load_b = "c0"}, at = {load_a = 1, load_b = 1}}
  end)
  for _, dtype in ipairs{"bf16", "f16", "f32"} do
    for _, k in ipairs(l[1]:sub(1, 1) == l[2]:sub(1, 1) and {64} or {64, 20, 7}) do
      case(("units: product of %s on CUDA cores, %s, k = %d"):format(dtype, layout_text(l), k), function()
        return gemm{sizes = {a = l[1], b = l[2], k = k, dtype = dtype}, seu = {mma = "cuda"},
          tile = {m = 64, n = 32, k = k == 64 and 32 or nil}}
      end)
    end
    case(("units: all of %s by threads, %s"):format(dtype, layout_text(l)), function()
      return gemm{sizes = {a = l[1], b = l[2], dtype = dtype}, on = {load_a = "c0", load_b = "c0"},
        seu = {load_a = "cuda", load_b = "cuda", mma = "cuda", store_c = "cuda"}}
    end)
  end
  for _, dtype in ipairs{"bf16", "f16"} do
    for _, k in ipairs(dtype == "f16" and {20} or {100, 60, 20, 7, 1}) do
      case(("units: product of %s on tensor cores, %s, k = %d"):format(dtype, layout_text(l), k), function()
        return gemm{sizes = {a = l[1], b = l[2], k = k, dtype = dtype},
          tile = {m = 64, n = 32, k = k > 32 and 32 or nil}}
      end)
    end
  end
  for _, n in ipairs(l[1]:sub(1, 1) == l[2]:sub(1, 1) and {} or {100, 7, 1}) do
    for _, seu in ipairs{"tma", "cuda"} do
      case(("units: %d columns and rows by %s, %s"):format(n, seu, layout_text(l)), function()
        return gemm{sizes = {a = l[1], b = l[2], m = n, n = n}, seu = {load_a = seu, load_b = seu, store_c = seu}}
      end)
    end
  end
end
for _, m in ipairs{8, 16, 24, 48} do
  for _, n in ipairs{4, 8, 12, 56} do
    case(("units: tile of %d x %d on tensor cores"):format(m, n), function()
      return gemm{tile = {m = m, n = n, k = 16}}
    end)
  end
end
for _, k in ipairs{4, 8, 12, 24, 40} do
  case(("units: steps of %d on tensor cores"):format(k), function() return gemm{tile = {m = 64, n = 32, k = k}} end)
end
for _, name in ipairs{"qkv", "twice", "dq"} do
  for _, dtype in ipairs{"bf16", "f16", "f32"} do
    case(("units: %s of %s on CUDA cores"):format(name, dtype), function()
      return schedule(rare[name]{m = 40, n = 40, d = 24, dtype = dtype}, {m = 32, n = 16},
        function(t) return t.kind == "mma" and {seu = "cuda"} or nil end)
    end)
    case(("units: the first product of %s of %s on CUDA cores"):format(name, dtype), function()
      local first = true
      return schedule(rare[name]{m = 72, n = 40, d = 32, dtype = dtype}, {m = 64, n = 16}, function(t)
        if t.kind ~= "mma" or not first then return nil end
        first = false
        return {seu = "cuda"}
      end)
    end)
  end
end

---- operands -------------------------------------------------------------------

-- The first operand is loaded before the loop; each iteration multiplies a tile of it.
local ahead = mr.program("ahead", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B = p:input("A", p.turned and {k, m} or {m, k}), p:input("B", {n, k})
  local C, c = p:output("C", {m, n}, "f32"), p:carry("c", {m, n}, 0)
  local a = p:load("load_a", A)
  if p.computed then a = p:task("round", function() return (a:to "f32" * 0.5):to "bf16" end) end
  p:loop(k, function() c:add(p:mma("mma", a, p:load("load_b", B))) end)
  C:store("store_c", p:task("finish", function() return c + 0 end))
end)
for _, step in ipairs{1, 4, 8, 16, 24, 64} do
  for _, o in ipairs{{"of m by k", {}}, {"of k by m", {turned = true}}, {"that is computed", {computed = true}}} do
    case(("operands: steps of %d columns of one %s"):format(step, o[1]), function()
      return schedule(ahead(with({m = 72, n = 40, k = 64}, o[2])), {m = 64, n = 32, k = step})
    end)
  end
end

-- An operand, first or second, that element-wise work makes.
local made = mr.program("made", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B = p:input("A", p.turned and {k, m} or {m, k}), p:input("B", p.turned and {k, n} or {n, k})
  local C, c = p:output("C", {m, n}, "f32"), p:carry("c", {m, n}, 0)
  local dtype = p.dtype or "bf16"
  -- inputs of i32 are all that it can hold, of which f32 has not all digits
  local function twice(x) return ((dtype == "i32" and x or x:to "f32") * 2):to(dtype) end
  p:loop(k, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    if p.which ~= "b" then a = p:task("make_a", function() return twice(a) end) end
    if p.which ~= "a" then b = p:task("make_b", function() return twice(b) end) end
    c:add(p:mma("mma", a, b))
  end)
  C:store("store_c", p:task("finish", function() return c + 0 end))
end)
for _, which in ipairs{"a", "b", "both"} do
  for _, turned in ipairs{false, true} do
    for _, k in ipairs(which == "both" and {16} or {1, 8, 20, 64}) do
      case(("operands: %s made by a lane, %s, steps of %d"):format(which, turned and "k first" or "k last", k),
        function()
          return schedule(made{m = 72, n = 40, k = 64, which = which, turned = turned or nil},
            {m = 64, n = 32, k = k})
        end)
    end
  end
end

for _, dtype in ipairs{"f64", "f32", "tf32", "f16", "e4m3", "e5m2", "i32", "i8"} do
  for _, l in ipairs{layouts[1], layouts[2], layouts[3]} do
    case(("operands: of %s, %s"):format(dtype, layout_text(l)), function()
      return gemm{sizes = {a = l[1], b = l[2], dtype = dtype, out = "f32", activation = nil}}
    end)
  end
  case(("operands: of %s, first in registers"):format(dtype), function()
    return schedule(made{m = 72, n = 40, k = 64, which = "a", dtype = dtype}, {m = 64, n = 32, k = 32})
  end)
  case(("operands: of %s, second made"):format(dtype), function()
    return schedule(made{m = 72, n = 40, k = 64, which = "b", dtype = dtype}, {m = 64, n = 32, k = 32})
  end)
  case(("operands: a tile of %s, element-wise"):format(dtype), function()
    return schedule(rare.unary({"rowmax"}, "mn", "n", "against"){m = 40, n = 24, dtype = dtype}, {m = 32})
  end)
end
for _, n in ipairs{256, 264, 344, 512} do
  case(("operands: %d columns in a tile"):format(n), function()
    return gemm{sizes = {m = 64, n = n, k = 32}, tile = {m = 64, n = n, k = 16}, lanes = {c0 = {warps = 8}}}
  end)
end

local moved = mr.program("moved", function(p)
  local m, n = p:axes("m", "n")
  p:output("Y", p.turned and {n, m} or {m, n}):store("store_y", p:load("load_x", p:input("X", {m, n})))
end)
for _, turned in ipairs{false, true} do
  for _, seu in ipairs{"tma", "cuda"} do
    case(("operands: what is loaded is stored by %s%s"):format(seu, turned and ", turned" or ""), function()
      return schedule(moved{m = 72, n = 40, turned = turned or nil}, {m = 64, n = 32}, function(t)
        return t.kind == "store" and {seu = seu} or nil
      end)
    end)
  end
end

summary()
if not as_table then tap.done_testing() end
