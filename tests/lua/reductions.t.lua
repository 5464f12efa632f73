-- Reductions and scans along every axis of values with one to four axes, in registers and in shared
-- memory, along full axes and in tiles: all copies of each result are right, and no two accesses race.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans, rare = dofile(dir .. "lib/random_plans.lua"), dofile(dir .. "lib/wild_programs.lua")
random_plans.target = arg[1] or "host"
local rowsum, rowmax, cumsum, cummax, where = mr.rowsum, mr.rowmax, mr.cumsum, mr.cummax, mr.where

local SEEDS <const> = {1, 2}                            -- accesses are watched with the first

local function right(what, bound, tile, options, before)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  if before then before(plan) end
  for _, t in ipairs(plan.tasks) do plan:append(t.name, options and options(t) or nil) end
  plan:grid{eus = 1}                                    -- one EU has all tiles, one after the other
  plan:fill_waits()
  random_plans.correct(tap, what, plan, SEEDS)
end

local function compute_on(lane) return function(t) return {lane = t.kind == "load" and "p0" or lane} end end

---- one reduction or scan: "FUNCTION of AXES along AXIS", of what, its use, its tiles -----------------------------

local sizes = {f32 = {m = 70, n = 52, dtype = "f32"}, cast = {m = 70, n = 52}, product = {m = 80, n = 40, d = 32},
  m = {m = 70, dtype = "f32"}, mnk = {m = 20, n = 12, k = 18, dtype = "f32"}}
local tiles = {[""] = {}, m = {m = 64}, n = {n = 16}, mn = {m = 64, n = 16}, m8 = {m = 8}, mnk = {m = 8, n = 8, k = 8}}

for line in ([[
  cumsum m m m alone .
  cummin m m m against m
  rowsum mn m f32 against .
  rowmax mn m f32 against n
  cumsum mn m f32 alone .
  cummax mn m f32 carried mn
  cummin mn m cast against m
  cumsum mn m product against .
  cummax mn m product alone mn
  rowmin mn m product against n
  cumsum mn n product against mn
  rowsum mnk m mnk alone .
  rowmax mnk n mnk against mnk
  rowmin mnk k mnk alone m8
  cumsum mnk m mnk against mnk
  cummax mnk n mnk alone m8
  cummin mnk k mnk against .
]]):gmatch "[^\n]+" do
  local f, axes, along, of, use, tile = line:match "(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)"
  local program = rare.unary({f}, axes, along, use, nil, of == "product")
  right(("%s of %s along %s, %s, %s, tiles of %s"):format(f, axes, along, of, use, tile), program(sizes[of]),
    tiles[tile:gsub("%.", "")])
end

-- The greatest along another axis of what a scan gives, of which the tile has a part, or all.
for _, of in ipairs{"f32", "product"} do
  for _, along in ipairs{"m", "n"} do
    local other = along == "m" and "n" or "m"
    for _, tile in ipairs{"", along} do
      right(("cumsum of %s along %s, then the greatest along %s, tiles of %s"):format(of, along, other, tile),
        rare.unary({"cumsum"}, "mn", along, "alone", other, of == "product")(sizes[of]), tiles[tile])
    end
  end
end

for _, s in ipairs{{1, 20}, {20, 1}, {1, 1}, {1, 6, 20}, {6, 20, 1}} do
  for _, f in ipairs{"rowsum", "cumsum"} do
    right(("%s along m of %s"):format(f, table.concat(s, " x ")),
      rare.unary({f}, s[3] and "mnk" or "mn", "m", "against"){m = s[1], n = s[2], k = s[3], dtype = "f32"}, {})
  end
end

-- Rows that do not fit in the registers of four threads: a warp has one.
for _, n in ipairs{1100, 2050} do
  for _, m in ipairs{1, 5, 9} do
    for _, use in ipairs{"alone", "against"} do
      right(("rowsum and rowmax of %d rows of %d, %s"):format(m, n, use), rare.unary({"rowsum", "rowmax"}, "mn", "n", use)
        {m = m, n = n, dtype = "f32"}, {m = 4})
    end
  end
end

-- Scans of rows that all warps of a lane share: each thread has some neighbours of every group of columns. 12 warps leave threads
-- without a part; the last group of columns is not complete.
do
  local function running(dtype, op, second)
    return mr.program("running", function(p)
      local m, n = p:axes("m", "n")
      local x = p:load("load_x", p:input("X", {m, n}, dtype))
      local y = p:task("scan", function()
        local y = mr[op](x, n)
        if second then y = y + mr[second](y - x, n) end
        return dtype == "bf16" and y:to "bf16" or y
      end)
      p:output("Y", {m, n}, dtype == "i32" and "i32" or dtype):store("store_y", y)
    end)
  end

  for line in ([[
    bf16 cumsum - 8192 4 2
    bf16 cumsum - 1000 8 1
    f32 cummax - 5000 12 2
    f32 cumsum cummin 3001 4 3
    bf16 cummin cumsum 4100 8 2
    i32 cumsum - 2500 5 1
    i32 cummax cumsum 777 16 1
    f32 cumsum - 1030 2 4
  ]]):gmatch "[^\n]+" do
    local dtype, op, second, n, warps, m = line:match "(%S+) (%S+) (%S+) (%d+) (%d+) (%d+)"
    if dtype then
      local bound = running(dtype, op, second ~= "-" and second){m = 5, n = tonumber(n)}
      right(("%s of rows of %s %s in %s warps"):format(op, n, dtype, warps), bound, {m = tonumber(m), n = tonumber(n)},
        compute_on "c0", function(plan)
          plan:lane("p0", {warps = 1})
          plan:lane("c0", {warps = tonumber(warps)})
        end)
    end
  end

  -- A row in several tiles: each continues where the one before ended. Online softmax of such tiles, too.
  local carried = mr.program("carried", function(p)
    local m, n = p:axes("m", "n")
    local X, Y, Z = p:input("X", {m, n}), p:output("Y", {m, n}, "f32"), p:output("Z", {m}, "f32")
    local sum, top, total = p:carry("sum", {m}, 0), p:carry("top", {m}, -math.huge), p:carry("total", {m}, 0)
    p:loop(n, function()
      local x = p:load("load_x", X)
      Y:store("store_y", p:task("scan", function()
        local y = cumsum(x, n) + sum
        sum:add(rowsum(x, n))
        return y
      end))
      p:task("softmax", function()
        local new = mr.max(top, rowmax(x, n))
        total:set(total * mr.exp(top - new) + rowsum(mr.exp(x - new), n))
        top:set(new)
      end)
    end)
    Z:store("store_z", p:task("join", function() return top + mr.log(total) end))
  end)
  for _, t in ipairs{{1, 1024, 4}, {2, 1024, 8}, {1, 600, 4}} do
    right(("tiles of %d x %d of longer rows, carried, %d warps"):format(t[1], t[2], t[3]), carried{m = 3, n = 2500}, {m = t[1], n = t[2]},
      compute_on "c0", function(plan) plan:lane("c0", {warps = t[3]}) end)
  end

  local single = mr.plan(running("bf16", "cumsum"){m = 64, n = 8192}:graph{tile = {m = 1, n = 8192}}, mr.device "h200")
  for _, t in ipairs(single.tasks) do single:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  single:fill_waits()
  tap.ok(single:compile{target = "host"}.source:find("u32 r_scan[1][1][32]", 1, true), "two columns of a tile of one row are a word")
  local best = mr.search(running("bf16", "cumsum"){m = 8192, n = 16384}, mr.device "h200", {measure = false})
  local text = best.plan:compile{target = "host"}.source
  tap.ok(text:find("const int part", 1, true) and not text:find("along", 1, true), "warps scan their parts of a long row in registers")
  tap.ok(best.seconds < 0.14e-3, "  which takes as long as to load and store it", best)
end

---- lanes, parts, types -------------------------------------------------------------------------------------------

for _, warps in ipairs{1, 2, 8} do
  for _, along in ipairs{"m", "k"} do
    right(("%d warps, along %s"):format(warps, along), rare.unary({"rowsum", "cummax"}, "mnk", along, "against")
      {m = 20, n = 12, k = 10, dtype = "f32"}, {}, compute_on "c0", function(plan) plan:lane("c0", {warps = warps}) end)
  end
end
right("a lane with replicas", rare.unary({"cumsum", "rowmax"}, "mnk", "n", "against")
  {m = 50, n = 12, k = 10, dtype = "f32"}, {m = 8}, compute_on "c0", function(plan)
    plan:lane("p0", {warps = 1})
    plan:lane("c0", {warps = 4, replicas = 2})
  end)
for _, f in ipairs{"rowmax", "cumsum"} do
  right("parts of " .. f .. " along m on two lanes", rare.unary({f}, "mn", "m", "against", nil, true)
    {m = 128, n = 64, d = 32}, {n = 64}, function(t)
      return t.kind ~= "load" and {lane = t.name:match "%.1$" and "c1" or "c0"} or nil
    end, function(plan)
      plan:split("n", 2)
      plan:lane("c0", {warps = 4})
      plan:lane("c1", {warps = 4})
    end)
end

for _, dtype in ipairs{"bf16", "i32", "i8"} do
  for _, along in ipairs{"m", "n", "k"} do
    local program = mr.program("typed", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local x, out = p:load("load_x", p:input("X", {m, n, k}, dtype)), dtype == "i32" and "i32" or "f32"
      local by = {m = m, n = n, k = k}
      local y = p:task("scan", function() return cumsum(x, by[along]) end)
      p:output("Y", {m, n, k}, out):store("store_y", y)
    end)
    right(("cumsum of %s along %s"):format(dtype, along), program{m = 16, n = 16, k = 16}, {})
  end
end

-- Pairs of a 16-bit type in registers.
for _, along in ipairs{"m", "n"} do
  local narrow = mr.program("narrow", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local by, left = along == "m" and m or n, along == "m" and n or m
    local c = p:mma("mma", p:load("load_a", p:input("A", {m, k})), p:load("load_b", p:input("B", {n, k})))
    local h = p:task("narrow", function() return c:to "bf16" end)
    p:output("Y", {m, n}, "f32"):store("store_y", p:task("scan", function() return cumsum(h, by) end))
    p:output("Z", {left}, "f32"):store("store_z", p:task("reduce", function() return rowmax(h, by) end))
  end)
  right("of pairs in registers, along " .. along, narrow{m = 80, n = 40, k = 32}, {})
end

---- one after the other -------------------------------------------------------------------------------------------

for _, lanes in ipairs{"one lane", "two lanes"} do
  for _, order in ipairs{"mn", "nk", "km", "nn"} do
    local chain = mr.program("chain", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local by = {m = m, n = n, k = k}
      local first, second = by[order:sub(1, 1)], by[order:sub(2, 2)]
      local x = p:load("load_x", p:input("X", {m, n, k}, "f32"))
      local s = p:task("first", function() return cumsum(x, first) end)
      local u = p:task("second", function() return cummax(s * 0.5, second) - s end)
      local v = p:task("third", function() return u - rowmax(s, second) end)
      p:output("Y", {m, n, k}, "f32"):store("store_y", v)
    end)
    right(("a chain along %s and %s, %s"):format(order:sub(1, 1), order:sub(2, 2), lanes),
      chain{m = 12, n = 10, k = 9}, {m = 8}, function(t)
        return t.kind ~= "load" and {lane = lanes == "two lanes" and t.name == "second" and "c1" or "c0"} or nil
      end)
  end
end

right("of four axes", mr.program("four", function(p)
  local a, b, c, d = p:axes("a", "b", "c", "d")
  local x = p:load("load_x", p:input("X", {a, b, c, d}, "f32"))
  p:output("Y", {a, c, d}, "f32"):store("store_y", p:task("both", function() return rowsum(cumsum(x, c), b) end))
end){a = 3, b = 5, c = 7, d = 8}, {})

right("the greatest of rows times that of columns", rare.outer{m = 100, n = 40, k = 20, dtype = "f32"},
  {m = 64, n = 24})
right("softmax down the columns of a product, and its sums", rare.columns{m = 80, n = 48, k = 64}, {n = 24, k = 32})

---- loops and carries ---------------------------------------------------------------------------------------------

-- A loop over tiles of a value with the full axis: each iteration uses its own tile.
for _, made in ipairs{false, true} do
  for _, f in ipairs{rowsum, cumsum} do
    local tiled = mr.program("tiled", function(p)
      local m, n = p:axes("m", "n")
      local x, sum = p:load("load_x", p:input("X", {m, n}, "f32")), p:carry("sum", {m}, 0)
      local Y = f == cumsum and p:output("Y", {m, n}, "f32")
      if made then x = p:task("double", function() return x * 2 end) end
      p:loop(n, function()
        local y = p:task("step", function()
          local y = f == cumsum and cumsum(x, m) or x + 0
          sum:set(sum + rowsum(y, n))
          return y
        end)
        if Y then Y:store("store_y", y) end
      end)
      p:output("S", {m}, "f32"):store("store_s", p:task("finish", function() return sum + 0 end))
    end)
    local what = f == cumsum and "cumsum" or "rowsum"
    right(("%s of tiles of a value with the full axis%s"):format(what, made and " in registers" or ""),
      tiled{m = 70, n = 50}, {m = f == rowsum and 32 or nil, n = 16})
  end
end

for _, along in ipairs{"m", "n"} do
  for _, lane in ipairs{"c0", "c1"} do
    local carried = mr.program("carried", function(p)
      local m, n, k, l = p:axes("m", "n", "k", "l")
      local by, left = along == "m" and m or n, along == "m" and n or m
      local A, B, X = p:input("A", {m, k}), p:input("B", {n, k}), p:input("X", {left, l}, "f32")
      local c, d = p:carry("c", {m, n}, 0), p:carry("d", {left}, 0)
      p:loop(k, function()
        c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B)))
      end)
      p:loop(l, function()
        local x = p:load("load_x", X)
        p:task("fold", function() d:set(d + rowmax(c, by) * rowsum(x, l)) end)
      end)
      p:output("Y", {left}, "f32"):store("store_y", p:task("fold_y", function() return d + 0 end))
      p:output("Z", {m, n}, "f32"):store("store_z", p:task("fold_z", function() return cumsum(c, by) * 2 end))
    end)
    right(("of a carry along %s, on %s"):format(along, lane == "c0" and "its lane" or "another"),
      carried{m = 80, n = 40, k = 64, l = 24}, {k = 32, l = 16}, function(t)
        return t.kind ~= "load" and {lane = t.name:find "^fold" and lane or "c0"} or nil
      end)
  end
end

-- What a product takes first is made of a scan and a reduction.
for _, along in ipairs{"m", "n"} do
  local weights = mr.program("weights", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local K, V, by = p:input("K", {n, d}), p:input("V", {n, d}), along == "m" and m or n
    local q, o = p:load("load_q", p:input("Q", {m, d})), p:carry("o", {m, d}, 0)
    local function multiply()
      local s = p:mma("mma_s", q, p:load("load_k", K))
      local w = p:task("weigh", function() return (cumsum(s - rowmax(s, by), by) * 0.1):to "bf16" end)
      o:add(p:mma("mma_o", w, p:load("load_v", V)))
    end
    if along == "m" then p:loop(n, multiply) else multiply() end
    p:output("O", {m, d}, "f32"):store("store_o", p:task("finish", function() return o + 0 end))
  end)
  right("weights of a product, along " .. along, weights{m = 100, n = 80, d = 32},
    {m = along == "n" and 64 or nil, n = along == "m" and 32 or nil})
end

-- Two reductions of one row, the second of squares that nothing else uses: a warp holds the row's differences alone, so
-- that rows of 4096 fit its registers, whatever tile the store takes.
do
  local norm = mr.program("norm", function(p)
    local m, n = p:axes("m", "n")
    local x = p:load("load_x", p:input("X", {m, n}, "bf16"))
    local y = p:task("normalize", function()
      local d = x - rowsum(x, n) * (1 / 256)
      return d * mr.rsqrt(rowsum(d * d, n) * (1 / 256) + 1e-5)
    end)
    p:output("Y", {m, n}, "bf16"):store("store_y", y)
  end)
  for _, tile in ipairs{{m = 4}, {m = 4, n = 256}} do
    right("layer norm, " .. (tile.n and "the row as a tile" or "the row in full"), norm{m = 14, n = 256}, tile)
  end
  -- Rows too long for a warp are spread over all warps of the lane, which join their sums through shared memory.
  local other = mr.program("other", function(p)
    local m, n = p:axes("m", "n")
    local x = p:load("load_x", p:input("X", {m, n}, "bf16"))
    p:output("Y", {m}, "f32"):store("store_y", p:task("spread", function() return rowmax(x, n) - mr.rowmin(x, n) end))
    p:output("V", {m, n}, "bf16"):store("store_v", p:task("weights", function()
      local e = mr.exp(x - rowmax(x, n))
      return cumsum(e, n) / rowsum(e, n)
    end))
  end)
  for _, by in ipairs{{norm, 12000, 4}, {norm, 8200, 3}, {other, 6000, 4}} do
    local program, n, warps = table.unpack(by)
    right(("rows of %d in %d warps"):format(n, warps), program{m = 2, n = n}, {m = program == norm and 1 or 2, n = n},
      compute_on "c0", function(plan) plan:lane("c0", {warps = warps}) end)
  end
  local plan = mr.plan(norm{m = 64, n = 4096}:graph{tile = {m = 4, n = 4096}}, mr.device "h200")
  plan:lane("p0", {})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:fill_waits()
  tap.ok(plan:check(), "rows of 4096 in a warp")
  tap.ok(not tostring(plan:kernel()):find("scratch", 1, true), "  whose elements change no layout")
end

-- Gradients of a layer norm, whose sums over the rows of a part are carries. Rows of 4096 are many boxes each, of which the
-- rings of a plan have more under way than the host plays at once.
do
  local backward = mr.program("layer_norm_backward", function(p)
    local m, n, r = p:axes("m", "n", "r")
    local part = p:axis("part", m.size // r.size)
    local X, dY, W = p:input("X", {m, n}), p:input("dY", {m, n}), p:input("W", {n})
    local Mean, Rstd = p:input("Mean", {m}, "f32"), p:input("Rstd", {m}, "f32")
    local dX, dW = p:output("dX", {m, n}), p:output("dW", {part, n}, "f32")
    p:batch(part)
    local w, dw = p:load("load_w", W), p:carry("dw", {n}, 0)
    p:loop(r, function()
      local row = part * r.size + r
      local x, dy = p:load("load_x", X, {row, n}), p:load("load_dy", dY, {row, n})
      local mean, rstd = p:load("load_mean", Mean, {row}), p:load("load_rstd", Rstd, {row})
      dX:store("store_dx", p:task("gradients", function()
        local xh, wg = (x - mean) * rstd, dy * w
        local c1, c2 = rowsum(wg * xh, n) / n.size, rowsum(wg, n) / n.size
        dw:add(rowsum(dy * xh, r))
        return (wg - c2 - xh * c1) * rstd
      end), {row, n})
    end)
    dW:store("store_dw", p:task("sums", function() return dw + 0 end))
  end)
  right("layer norm backward, rows of 4096", backward{m = 16, n = 4096, r = 8}, {r = 1, n = 4096}, compute_on "c0",
    function(plan)
      plan:lane("p0", {})
      plan:lane("c0", {warps = 8})
      plan:buffers{x = 8, dy = 8}
    end)
end

-- A sum along the axis in the middle: both others are rows, so that the threads of a row join its parts; as columns, the last
-- one would divide them among the threads of a warp.
do
  local middle = mr.program("middle", function(p)
    local h, i, j = p:axes("h", "i", "j")
    local x, a = p:load("load_x", p:input("X", {h, i, j}, "f32")), p:load("load_a", p:input("A", {h, i}, "f32"))
    p:output("Y", {h, i, j}, "f32"):store("store_y", p:task("subtract", function()
      local y = x + 1
      return y - a * rowsum(y, i)
    end))
  end)
  for _, sizes in ipairs{{h = 8, i = 16, j = 16}, {h = 5, i = 24, j = 12}} do
    right(("a sum along the middle of %d x %d x %d"):format(sizes.h, sizes.i, sizes.j), middle(sizes), {h = 4})
  end
  local plan = mr.plan(middle{h = 64, i = 16, j = 16}:graph{tile = {h = 8}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  tap.ok(not tostring(plan:kernel()):find("lines", 1, true), "  needs no shared memory")
  -- Of two axes that are rows, the one that is contiguous in memory is behind the other, whatever their order in the program.
  local turned = mr.program("turned", function(p)
    local j, i, h = p:axes("j", "i", "h")
    local x = p:load("load_x", p:input("X", {h, i, j}, "f32"))
    p:output("Y", {h, i, j}, "f32"):store("store_y", p:task("subtract", function()
      local y = x + 1
      return y - rowsum(y, i)
    end))
  end)
  plan = mr.plan(turned{h = 64, i = 16, j = 16}:graph{tile = {h = 8}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  tap.ok(plan:compile{target = "cuda", text = true}.source:find "const long i2 = [^;]*%% 16", "  and its threads have neighbours in memory")
end

-- A sum over an axis of one element: what is summed has one row, as the result has.
do
  local single = mr.program("single", function(p)
    local n, k = p:axes("n", "k")
    local X, Y = p:input("X", {k, n}, "f32"), p:output("Y", {n}, "f32")
    local sum = p:carry("sum", {n}, 0)
    p:loop(k, function()
      local x = p:load("load_x", X)
      p:task("add", function() sum:add(rowsum(x, k)) end)
    end)
    Y:store("store_y", p:task("running", function() return mr.cummax(sum, n) end))
  end)
  right("a sum over one element, then the greatest so far", single{n = 70, k = 1}, {k = 1})
  right("the same of several", single{n = 70, k = 5}, {k = 1})
end

-- Down the columns of what is loaded by rows: each thread adds up its own columns, of which it reads neighbours at once, whether
-- the argument is the load, or computed from it.
do
  local function columns(computed, dtype)
    return mr.program("columns", function(p)
      local m, n = p:axes("m", "n")
      local x, w = p:load("load_x", p:input("X", {m, n}, dtype)), computed and p:load("load_w", p:input("W", {m}, "f32"))
      local sum, most = p:task("fold", function()
        local y = computed and where(w:gt(0), x, 0) or x
        return rowsum(y, m), rowmax(y, m)
      end)
      p:output("S", {n}, "f32"):store("store_sum", sum)
      p:output("Y", {n}, "f32"):store("store_most", most)
    end)
  end
  for _, dtype in ipairs{"bf16", "f32"} do
    for _, computed in ipairs{false, true} do
      local what = ("columns of %s %s"):format(dtype, computed and "that are computed" or "as they are loaded")
      right(what, columns(computed, dtype){m = 70, n = 52}, {})
      right(what .. ", wide", columns(computed, dtype){m = 24, n = 520}, {n = 512}, compute_on "c0", function(plan)
        plan:lane("c0", {warps = 4})
      end)
      local plan = mr.plan(columns(computed, dtype){m = 64, n = 4096}:graph{tile = {m = 64, n = 256}}, mr.device "h200")
      for _, task in ipairs(plan.tasks) do plan:append(task.name) end
      plan:fill_waits()
      local text = plan:compile{target = "cuda", text = true}.source
      tap.ok(not text:find("shared_u16(slot_x", 1, true), "  no element of the matrix is read alone")
    end
  end
end

-- Along one of three axes of what is loaded, where the result has rows and columns: each thread goes over the lines of the
-- elements that it holds, in the ring, or in the scratch.
do
  local function inner(of, f)
    return mr.program("inner", function(p)
      local h, i, j = p:axes("h", "i", "j")
      local x = p:load("load_x", p:input("X", {h, i, j}, "f32"))
      local by = {h = h, i = i, j = j}
      local left = {}
      for _, a in ipairs{"h", "i", "j"} do if a ~= of then left[#left + 1] = by[a] end end
      p:output("Y", left, "f32"):store("store_y", p:task("fold", function() return f(x, by[of]) + f(x * x - 1, by[of]) end))
    end)
  end
  for _, along in ipairs{"h", "i", "j"} do
    right("a sum along " .. along .. " of three axes", inner(along, rowsum){h = 6, i = 20, j = 24}, {})
    right("the greatest along " .. along .. " of three axes, in tiles", inner(along, rowmax){h = 20, i = 6, j = 20},
      along == "h" and {i = 4, j = 16} or {h = 8})
  end
  local squares = mr.program("squares", function(p)
    local h, i, j = p:axes("h", "i", "j")
    local x = p:load("load_x", p:input("X", {h, i, j}, "f32"))
    p:output("Y", {j}, "f32"):store("store_y", p:task("fold", function()
      local sum = rowsum(x, i)
      return rowsum(sum * sum, h)
    end))
  end)
  right("a sum along one axis, then of its squares along another", squares{h = 6, i = 5, j = 40}, {})
  local plan = mr.plan(squares{h = 4, i = 20, j = 64}:graph{tile = {}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  local text = tostring(plan:kernel())
  tap.ok(text:find("reduce_shared", 1, true) and not text:find("lines", 1, true), "  by the threads that hold the results")
end

-- A row whose sum each tile needs in full: the part of it that the tile has is read out of the scratch, neighbours at once.
do
  local parts = mr.program("parts", function(p)
    local m, n = p:axes("m", "n")
    local x = p:load("load_x", p:input("X", {m, n}, "f32"))
    p:output("Y", {m, n}, "f32"):store("store_y", p:task("weigh", function()
      local y = mr.exp(x)
      return y / rowsum(y, n)
    end))
  end)
  right("a part of a row by the sum of all", parts{m = 12, n = 512}, {m = 4, n = 256})
  local plan = mr.plan(parts{m = 64, n = 512}:graph{tile = {m = 4, n = 256}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  local text = plan:compile{target = "cuda", text = true}.source
  tap.ok(text:find "shared_%d+%(v%d, shared %+" and not text:find "= shared_f32%(shared %+[^;]* e%)%)", "  in as few reads as it has")
  tap.ok(text:find("shared_put_16(shared", 1, true), "  and as few writes")
end

-- Behind a product, a value that is read again once a reduction has gone over it needs registers of its own: the product's sum
-- is set where a tile begins, so that a compiler does not keep it until then.
do
  local normed = mr.program("normed", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", p:task("norm", function()
      local away = c - rowsum(c, n) / n.size
      return away * mr.rsqrt(rowsum(away * away, n) / n.size + 1e-5)
    end))
  end)
  for _, n in ipairs{128, 256} do
    local plan = mr.plan(normed{m = 512, n = n, k = 256}:graph{tile = {m = 64, n = n, k = 64}}, mr.device "h200")
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:fill_waits()
    tap.is(plan:compile{target = "cuda", text = true}.source:find "r_c%[0%]%[rb%]%[i%] = 0" ~= nil, n == 256,
      ("a norm behind a product of %d columns %s"):format(n, n == 256 and "lacks registers" or "has registers"))
  end
end

tap.done_testing()
