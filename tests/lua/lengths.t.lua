-- lengths.t.lua - loops whose lengths are values: programs against formulas in plain Lua, kernels against the reference,
-- plans by hand and of a search, what predictions assume, traces, and refusals.
--
--   millrace lengths.t.lua [cuda]      kernels run on the CPU, or on a device
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local tensors = dofile(dir .. "lib/tensors.lua")
local tensor, mixed = tensors.tensor, tensors.mixed
local programs = dofile(dir .. "lib/length_programs.lua")
random_plans.target = arg[1] or "host"
local SEEDS <const> = {1, 2}                            -- accesses are watched with the first

---- formulas -------------------------------------------------------------------

-- The tensor beyond a length is not a number, so that it is seen if anything is made of it.
local function behind(dtype, shape, length, axis, f)
  return tensor(dtype, shape, function(...)
    local at = {...}
    return at[axis] < length(at[1]) and f(...) or 0 / 0
  end)
end

-- The output must be want(i, j, ...) of the positions from 0: of the reference, and of kernels in the program's order with
-- various tiles, of which the loops are ragged. nil: any number.
local function follows(what, bound, inputs, tiles, want)
  local output = "Y"
  for _, t in ipairs(bound.tensors) do if t.role == "output" then output = t.name end end
  local results = {["the reference"] = bound:reference(inputs), ["that of C"] = bound:reference(inputs, {on = "host"})}
  for i, tile in ipairs(tiles) do
    results["tiles " .. i] = bound:reference(inputs, {tile = tile})
    local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:grid{eus = 1}
    plan:fill_waits()
    local kernel = plan:compile{target = random_plans.target}
    for _, seed in ipairs(SEEDS) do
      results[("kernel %d, seed %d"):format(i, seed)] = kernel:run(inputs, {seed = seed, race = seed == 1})
    end
  end
  local expected = mr.array("f64", results["the reference"][output]:shape(), function(...)
    local at = {...}
    for i = 1, #at do at[i] = at[i] - 1 end
    return want(table.unpack(at)) or 1e30
  end)
  for name, got in pairs(results) do
    got = got[output]
    for i = 1, #expected do if expected[i] == 1e30 then got[i] = 1e30 end end
    local most = got:max_error(expected)
    tap.ok(most <= 1e-3, what .. ", " .. name, "greatest difference " .. most)
  end
end

local LENGTHS <const> = {0, 1, 16, 23, 40}
local function length_of(b) return LENGTHS[b + 1] end
local Length = tensor("i32", {5}, length_of)

-- Attention over the first keys must be that of a program with so many keys.
local Q, q = tensor("bf16", {5, 16, 32}, mixed)
local K, k = behind("bf16", {5, 40, 32}, length_of, 2, mixed)
local V, v = behind("bf16", {5, 40, 32}, length_of, 2, mixed)
for _, causal in ipairs{false, true} do
  local rows = {}
  local function row(b, m)                              -- weights of the keys of a query
    local key = b * 16 + m
    if rows[key] then return rows[key] end
    local s, sum, most = {}, 0, -1e30
    for n = 0, math.min(length_of(b), causal and m + 1 or 40) - 1 do
      s[n] = 0
      for d = 0, 31 do s[n] = s[n] + q(b, m, d) * k(b, n, d) end
      s[n] = s[n] / 8
      most = math.max(most, s[n])
    end
    for n, x in pairs(s) do s[n], sum = 2 ^ (x - most), sum + 2 ^ (x - most) end
    for n, x in pairs(s) do s[n] = x / sum end
    rows[key] = s
    return s
  end
  follows(causal and "causal attention" or "attention", programs.attention{b = 5, m = 16, n = 40, d = 32, causal = causal or nil},
    {Q = Q, K = K, V = V, Length = Length}, {{m = 16, n = 16}, {m = 16, n = 40}, {m = 16, n = 8}}, function(b, m, d)
      local sum = 0
      for n, weight in pairs(row(b, m)) do sum = sum + weight * v(b, n, d) end
      return sum
    end)
end

-- The dense program with as many keys gives the same.
for _, n in ipairs{1, 23} do
  local few = mr.examples.flash_attention{b = 1, h = 1, m = 16, n = n, d = 32, scale = math.log(2) / 8}
  local at = n == 1 and 1 or 3
  local got = programs.attention{b = 5, m = 16, n = 40, d = 32}:reference{Q = Q, K = K, V = V, Length = Length}.O
  local want = few:reference{Q = tensor("bf16", {1, 1, 16, 32}, function(_, _, m, d) return q(at, m, d) end),
    K = tensor("bf16", {1, 1, n, 32}, function(_, _, i, d) return k(at, i, d) end),
    V = tensor("bf16", {1, 1, n, 32}, function(_, _, i, d) return v(at, i, d) end)}.O
  local most = 0
  for m = 1, 16 do
    for d = 1, 32 do most = math.max(most, math.abs(got:get(at + 1, m, d) - want:get(1, 1, m, d))) end
  end
  tap.ok(most < 1e-9, ("attention over %d keys of 40 is flash_attention over %d"):format(n, n), most)
end

-- Lengths are differences of where groups begin; the last group is longer than the loop's axis, and one is negative.
local First, first = tensor("i32", {6}, function(i) return ({0, 7, 7, 30, 26, 49})[i + 1] end)
for _, a in ipairs{"mk", "km"} do
  local A, x = tensor("bf16", a == "mk" and {16, 49} or {49, 16}, mixed)
  local B, y = tensor("bf16", a == "mk" and {8, 49} or {49, 8}, mixed)
  local function get(f, i, j) if a == "mk" then return f(i, j) end return f(j, i) end
  follows("products of groups, " .. a, programs.groups{g = 5, m = 16, n = 8, k = 40, a = a, b = a == "mk" and "nk" or "kn"},
    {First = First, A = A, B = B}, {{k = 16}, {k = 40}, {k = 32}}, function(g, m, n)
      local sum = 0
      for i = first(g), math.min(first(g + 1), first(g) + 40) - 1 do
        if i < 49 then sum = sum + get(x, m, i) * get(y, n, i) end
      end
      return sum
    end)
end

-- A mask becomes lists; the product of a row and a column whose mask is empty is 0.
local Mask, mask = tensor("bool", {2, 3, 5}, function(i, j, k) return (i ~= 1 or j ~= 2) and (i + 2 * j + k) % 3 ~= 1 and 1 or 0 end)
for _, flat in ipairs{false, true} do
  local A, x = tensor("bf16", {2, 16, 5, 32}, mixed)
  local B, y = tensor("bf16", {5, 32, 3, 8}, mixed)
  local tiles = flat and {{key = 32}, {key = 64}, {key = 16}} or {{ks = 32}}
  follows(flat and "a mask, one loop" or "a mask", programs.mask{bm = 2, bn = 3, bk = 5, rows = 16, cols = 8, ks = 32, flat = flat or nil},
    {A = A, B = B, Mask = Mask}, tiles, function(i, r, j, c)
      local sum = 0
      for k = 0, 4 do
        for e = 0, mask(i, j, k) and 31 or -1 do sum = sum + x(i, r, k, e) * y(k, e, j, c) end
      end
      return sum
    end)
end

-- Each block has a length of its own.
do
  local function long(k) return ({3, 0, 40, 16, 23})[k + 1] end
  local A, x = tensor("bf16", {16, 5, 40}, function(m, k, l) return l < long(k) and mixed(m, k, l) or 0 / 0 end)
  local B, y = tensor("bf16", {5, 40, 8}, function(k, l, n) return l < long(k) and mixed(k, l, n) or 0 / 0 end)
  follows("lengths that an outer loop changes", programs.varying{m = 16, kb = 5, l = 40, n = 8},
    {A = A, B = B, Length = tensor("i32", {5}, long)}, {{l = 16}, {l = 40}, {l = 32}}, function(m, n)
      local sum = 0
      for k = 0, 4 do
        for l = 0, long(k) - 1 do sum = sum + x(m, k, l) * y(k, l, n) end
      end
      return sum
    end)
end

-- Steps that a mask leaves out are neither loaded, where there is no number, nor multiplied.
for _, by in ipairs{{"bool", false}, {"bool", true}, {"i32", false}} do
  local dtype, both = table.unpack(by)
  local function keeps(g, k) return g ~= 2 and (g + k) % 3 ~= 1 end
  local function there(g, k) return keeps(g, k) and (not both or k >= 2 * g) end
  local A, x = tensor("bf16", {3, 16, 4, 32}, function(g, m, k, l) return there(g, k) and mixed(g, m, k, l) or 0 / 0 end)
  local B, y = tensor("bf16", {4, 32, 8}, mixed)
  follows(("steps kept by %s%s"):format(dtype, both and " and a number" or ""),
    programs.kept{g = 3, kb = 4, m = 16, n = 8, k = 32, mask = dtype, both = both or nil},
    {A = A, B = B, Mask = tensor(dtype, {3, 4}, function(g, k) return keeps(g, k) and (dtype == "i32" and -5 or 1) or 0 end),
      Least = tensor("i32", {3}, function(g) return 2 * g end)}, {{m = 16}}, function(g, m, n)
      local sum = 0
      for k = 0, 3 do
        for l = 0, there(g, k) and 31 or -1 do sum = sum + x(g, m, k, l) * y(k, l, n) end
      end
      return sum
    end)
end

-- Neither operand counts behind the length, whatever is there, and however it lies.
for _, a in ipairs{"mk", "km"} do
  for _, b in ipairs{"nk", "kn"} do
    for _, dtype in ipairs{"bf16", "f32"} do
      local A, x = behind(dtype, a == "mk" and {5, 16, 40} or {5, 40, 16}, length_of, a == "mk" and 3 or 2, mixed)
      local B, y = behind(dtype, b == "nk" and {5, 8, 40} or {5, 40, 8}, length_of, b == "nk" and 3 or 2, mixed)
      follows(("products of %s, %s and %s"):format(dtype, a, b),
        programs.products{g = 5, m = 16, n = 8, k = 40, a = a, b = b, dtype = dtype},
        {A = A, B = B, Length = Length}, {{k = 16}, {k = 40}}, function(g, m, n)
          local sum = 0
          for i = 0, length_of(g) - 1 do
            sum = sum + (a == "mk" and x(g, m, i) or x(g, i, m)) * (b == "nk" and y(g, n, i) or y(g, i, n))
          end
          return 2 * sum
        end)
    end
  end
end

-- A loop with a length in one with a length.
local N, n_of = tensor("i32", {5}, function(g) return ({20, 0, 9, 16, 1})[g + 1] end)
local A, a = tensor("bf16", {5, 16, 40}, mixed)
local B, b = tensor("bf16", {5, 20, 40}, mixed)
follows("a loop in a loop", programs.nested{g = 5, m = 16, n = 20, k = 40, both = true}, {A = A, B = B, N = N, K = Length},
  {{n = 8, k = 16}, {n = 16, k = 40}}, function(g, m)
    local sum = 0
    for j = 0, n_of(g) - 1 do
      for i = 0, length_of(g) - 1 do sum = sum + a(g, m, i) * b(g, j, i) end
    end
    return sum
  end)

-- What is stored in the loop is stored up to the length; what lies behind keeps what was there.
for _, out in ipairs{"f32", "bf16"} do
  local X, x = behind("bf16", {5, 40, 32}, length_of, 2, mixed)
  local bound = programs.rows{g = 5, m = 40, d = 32, out = out}
  local tiles = {{m = 16}, {m = 40}, {m = 12}}
  follows("the greatest of the rows, " .. out, bound, {X = X, Length = Length}, tiles, function(g, d)
    local most = -4
    for m = 0, length_of(g) - 1 do most = math.max(most, x(g, m, d)) end
    return most * 2
  end)
  for i, tile in ipairs(tiles) do
    for _, seu in ipairs{"tma", "cuda"} do
      local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
      for _, t in ipairs(plan.tasks) do plan:append(t.name, {seu = t.kind == "store" and seu or nil}) end
      plan:fill_waits()
      local got, wrong = plan:compile{target = random_plans.target}:run({X = X, Length = Length}, {race = true}).Y, 0
      for g = 0, 4 do
        for m = 0, 39 do
          for d = 0, 31 do
            local y = got:get(g + 1, m + 1, d + 1)
            local right = m >= length_of(g) and y ~= y or m < length_of(g) and math.abs(y - x(g, m, d) / 2) < 1e-2
            wrong = wrong + (right and 0 or 1)
          end
        end
      end
      tap.is(wrong, 0, ("rows are stored up to the length, %s by %s, tile %d"):format(out, seu, i))
    end
  end
end

-- Parts of an axis, of which the last ones end early or have nothing.
for _, scan in ipairs{false, true} do
  local X, x = behind("f32", {5, 16, 60}, length_of, 3, mixed)
  follows(scan and "a scan over parts" or "sums over parts",
    programs.parts{g = 5, s = 3, m = 16, n = 20, dtype = "f32", scan = scan or nil}, {X = X, Length = Length},
    {{n = 8}, {n = 20}, {n = 16}}, function(g, s, m)
      local sum, best = 0, -9
      for i = s * 20, math.min(length_of(g), s * 20 + 20) - 1 do
        sum = sum + x(g, m, i)
        best = math.max(best, sum)
      end
      return scan and math.max(best, sum) or sum
    end)
end

-- Numbers that no length is: nothing and all, although an expression is added to them.
do
  local Extreme, extreme = tensor("i32", {5}, function(g) return ({-2147483647 - 1, 2147483647, -1, 61, 0})[g + 1] end)
  local X, x = tensor("f32", {5, 16, 60}, mixed)
  follows("the least and greatest numbers", programs.parts{g = 5, s = 3, m = 16, n = 20, dtype = "f32"}, {X = X, Length = Extreme},
    {{n = 8}, {n = 20}}, function(g, s, m)
      local sum = 0
      for i = s * 20, math.min(extreme(g), s * 20 + 20) - 1 do sum = sum + x(g, m, i) end
      return sum
    end)
end

-- Blocks of keys, a list of them for each block of queries; what is behind in the list names blocks that are not there.
do
  local Q, q = tensor("bf16", {1, 48, 32}, mixed)
  local K, k = tensor("bf16", {1, 80, 32}, function(b, n, d) return mixed(n, b, d) end)
  local V, v = tensor("bf16", {1, 80, 32}, function(b, n, d) return mixed(d, n, b) end)
  local lists <const> = {{}, {64, 0, 33}, {16}}
  local Count = tensor("i32", {1, 3}, function(_, mb) return #lists[mb + 1] end)
  local First = tensor("i32", {1, 3, 4}, function(_, mb, j) return lists[mb + 1][j + 1] or 1000 end)
  local rows = {}
  follows("attention over lists of blocks", programs.blocks{b = 1, mb = 3, m = 16, j = 4, n = 16, d = 32, keys = 80},
    {Q = Q, K = K, V = V, Count = Count, First = First}, {{j = 1}, {j = 2}, {j = 4, m = 8}}, function(_, m, d)
      local row, sum = rows[m], 0
      if not row then
        row = {}
        for _, first in ipairs(lists[m // 16 + 1]) do
          for n = first, first + 15 do
            local s = 0
            for i = 0, 31 do s = s + q(0, m, i) * k(0, n, i) end
            row[n] = 2 ^ (s / 8)
          end
        end
        for _, x in pairs(row) do sum = sum + x end
        for n, x in pairs(row) do row[n] = x / sum end
        rows[m], sum = row, 0
      end
      for n, weight in pairs(row) do sum = sum + weight * v(0, n, d) end
      return sum
    end)
end

-- Fields of words: the last word of a length has some that do not count.
local W, w = tensor("i32", {8, 5}, function(n, i) return (n * 305419 + i * 1234577 + 89) % 0x7fffffff end)
A, a = behind("bf16", {5, 16, 40}, length_of, 3, mixed)
follows("unpacked words", programs.unpacked{g = 5, m = 16, n = 8, k = 40}, {A = A, W = W, Length = Length},
  {{k = 16}, {k = 40}, {k = 24}}, function(g, m, n)
    local sum = 0
    for i = 0, length_of(g) - 1 do
      local field = w(n, i // 8) >> (i % 8 * 4) & 15
      sum = sum + a(g, m, i) * (field >= 8 and field - 16 or field)
    end
    return sum
  end)

---- families of plans ----------------------------------------------------------

-- build(plan) sets lanes and appends what it likes.
local function correct(name, bound, tile, build)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  build(plan)
  plan:fill_waits()
  random_plans.correct(tap, name, plan, SEEDS)
end

local function lanes_of(loads, warps, offset)
  return function(plan)
    if loads ~= "c0" then plan:lane(loads, {}) end
    for i = 0, 1 do
      if i == 0 or plan.graph.tasks[#plan.graph.tasks].name:find "%.1$" then plan:lane("c" .. i, {warps = warps}) end
    end
    for _, t in ipairs(plan.tasks) do
      local lane = t.kind == "load" and loads or "c" .. (t.name:match "%.(%d)$" or 0)
      plan:append(t.name, {lane = lane, at = offset and offset[t.name:gsub("%.%d$", "")] or 0})
    end
  end
end

local attention = programs.attention{b = 4, m = 128, n = 200, d = 64}
for _, loads in ipairs{"p0", "c0"} do
  for versions = 1, 3 do
    correct(("attention, loads on %s, %d versions"):format(loads, versions), attention, {m = 64, n = 64}, function(plan)
      lanes_of(loads, 4)(plan)
      plan:buffers{k = versions, v = versions}
    end)
  end
end
correct("attention, two lanes", attention, {m = 128, n = 64}, function(plan)
  plan:split("m", 2)
  lanes_of("p0", 4)(plan)
  plan:buffers{k = 2, v = 2}
end)
for _, at in ipairs{1, 2} do
  correct(("attention, products %d ahead"):format(at), attention, {m = 64, n = 32}, function(plan)
    lanes_of("p0", 4, {mma_qk = at, softmax = at - 1})(plan)
    plan:buffers{k = at + 2, v = 2, mma_qk = at + 1, softmax = at, softmax_2 = at}
    plan:grid{eus = 3}
  end)
end
correct("products ahead of the last tile", programs.products{g = 9, m = 64, n = 32, k = 200}, {m = 64, n = 32, k = 64},
  function(plan)
    lanes_of("p0", 4, {store_y = -1})(plan)
    plan:buffers{a = 3, b = 3, double = 2}
    plan:grid{eus = 2}
  end)
correct("replicas", programs.products{g = 9, m = 64, n = 32, k = 200}, {m = 64, n = 32, k = 64}, function(plan)
  plan:lane("c0", {warps = 4, replicas = 2})
  plan:lane("p0", {})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:buffers{a = 3, b = 3}
  plan:grid{eus = 2}
end)

-- The copy engine loads complete tiles of what is contracted, and threads the tile in which the length ends. If they cannot
-- write zeros for a complete instruction, they load all tiles.
for _, case in ipairs{{1, 64}, {2, 64}, {4, 64}, {1, 24}} do
  local warps, tile = table.unpack(case)
  local plan = mr.plan(attention:graph{tile = {m = 64, n = tile}}, mr.device "h200")
  plan:lane("p0", {warps = warps})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:buffers{k = 2, v = 3}
  plan:fill_waits()
  local dump = tostring(plan:kernel{})
  tap.ok(dump:find "load_boxes K" and not dump:find "load_threads K", "the copy engine loads keys")
  tap.is(dump:find "load_boxes V" ~= nil, tile == 64, ("and values, %d warps, tiles of %d"):format(warps, tile))
  tap.ok(dump:find "load_threads V", "  threads those where the length ends")
  local text = tostring(plan):gsub("%s+", " ")
  tap.is(text:find "does not write zeros behind the length" ~= nil, tile == 24, "  a note says why, if it does not")
  tap.is(text:find("take a tile of 'n' that is a multiple of 16", 1, true) ~= nil, tile == 24, "    and what to do")
  random_plans.correct(tap, ("values by the copy engine, %d warps"):format(warps), plan, SEEDS)
end

-- Copies that test whether they are inside of a length take registers each, of which a lane that loads has few.
do
  local plan = mr.plan(attention:graph{tile = {m = 64, n = 128}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:fill_waits()
  local most = 0
  for n in plan:compile{target = "cuda", text = true}.source:gmatch "EACH%(u, (%d+)%) {" do most = math.max(most, math.tointeger(n)) end
  tap.is(most, 8, "copies up to a length that are unrolled")
  random_plans.correct(tap, "values up to a length, in rounds", plan, SEEDS)
end

-- Lists of blocks: the engine loads each, and no value goes through the scratch.
do
  local bound = programs.blocks{b = 2, mb = 2, m = 64, j = 3, n = 64, d = 64, keys = 256}
  local plan = mr.plan(bound:graph{tile = {m = 64, j = 1}}, mr.device "h200")
  plan:lane("p0", {})
  plan:lane("p1", {})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.name == "load_first" and "p1" or t.kind == "load" and "p0" or "c0"})
  end
  plan:buffers{k = 2, v = 2, first = 2}
  plan:fill_waits()
  local dump = tostring(plan:kernel{})
  tap.ok(dump:find "load_boxes V by index" and not dump:find "load_threads V" and not dump:find "lines ", "blocks are loaded by boxes", dump)
  random_plans.correct(tap, "lists of blocks", plan, SEEDS)
end

-- Plans that the search makes by itself, of which tiles are placed on EUs by the assumed length.
for _, typical in ipairs{false, 70} do
  local found = mr.search(programs.attention{b = 4, m = 128, n = 200, d = 64, typical = typical or nil}, mr.device "h200",
    {seconds = 3, trials = 2, measure = false})
  random_plans.correct(tap, "of a search, typical " .. tostring(typical), found.plan, SEEDS)
end

-- A search plans it, the kernel is right, and no timeline shows its runs, whose lengths nobody knows before.
local function searched(what, bound, refusal)
  local found = mr.search(bound, mr.device "h200", {seconds = 3, trials = 20, measure = false})
  random_plans.correct(tap, what .. ", of a search", found.plan, SEEDS)
  local good, message = pcall(function() return found.plan:compile{target = "host"}:trace{} end)
  tap.ok(not good and message:find(refusal, 1, true), "  a trace needs lengths that are known", message)
end

-- Tiles of 64 end where lengths do, which are multiples of it: the copy engine loads the operands, zeros need not be written.
-- Also where the thread that issues the copies of 'b' is the last that reads the list's entry.
do
  local bound = programs.mask{bm = 2, bn = 2, bk = 5, rows = 64, cols = 64, ks = 64, flat = true}
  local function plan_of(key)
    local plan = mr.plan(bound:graph{tile = {key = key}}, mr.device "h200")
    plan:lane("p0", {})
    plan:lane("p1", {warps = 4})
    plan:lane("c0", {warps = 4})
    for _, t in ipairs(plan.tasks) do
      plan:append(t.name, {lane = t.name == "load_at" and "p0" or t.kind == "load" and "p1" or "c0"})
    end
    plan:fill_waits()
    return plan
  end
  local dump = tostring(plan_of(64):kernel{})
  tap.ok(dump:find "load_threads A" and dump:find "load_boxes B by index", "blocks of a list by boxes, if the length is a multiple of the tile", dump)
  tap.ok(not dump:find "load_threads B", "by boxes alone")
  dump = tostring(plan_of(128):kernel{})
  tap.ok(dump:find "load_boxes B" and dump:find "load_threads B", "but by threads where it ends, if that may be within a tile")
  random_plans.correct(tap, "lists of a mask, by the copy engine", plan_of(64), SEEDS)
  random_plans.correct(tap, "lists of a mask, by the engine and by threads", plan_of(128), SEEDS)
  searched("lists of a mask", bound, "comes from 'Count', which the program stores")
end

searched("lengths that an outer loop changes", programs.varying{m = 128, kb = 4, l = 200, n = 64},
  "depends on 'kb', which changes within a tile")

---- what predictions assume ----------------------------------------------------

local full = programs.attention{b = 4, m = 64, n = 640, d = 64}
local half = programs.attention{b = 4, m = 64, n = 640, d = 64, typical = 300}
local function planned(bound)
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 64}}, mr.device "h200")
  lanes_of("p0", 4)(plan)
  plan:fill_waits()
  return plan
end
local long, short = planned(full), planned(half)
local function flat(x) return (tostring(x):gsub("%s+", " ")) end
tap.like(flat(long), "assumed length of loop n 640, all", "a plan says that lengths are assumed to be complete")
tap.like(flat(short), "assumed length of loop n 300", "a plan says which length is assumed")
tap.like(flat(short.graph), "loop n, 0 to 10 iterations by its length, 5 assumed", "so does its graph")
local ratio = short:simulate().cycles / long:simulate().cycles
tap.ok(ratio > 0.4 and ratio < 0.75, "half of the length takes about half of the time", ratio)
tap.is(short.graph.flops * 2, long.graph.flops, "and half of the work")
local complete = planned(programs.attention{b = 4, m = 64, n = 640, d = 64, typical = 320}):simulate().cycles
tap.ok(short:simulate().cycles > 1.03 * complete, "a tile within which the length ends is copied by threads, which takes longer",
  short:simulate().cycles .. ", " .. complete)
tap.like(tostring(full), "loop n length Length%[b%]\n", "a program is printed with its length")
tap.like(tostring(half), "loop n length Length%[b%] typical 300\n", "and with what is typical")

---- inputs ---------------------------------------------------------------------

local least, most = 641, -1
for seed = 1, 100 do
  local inputs = half:inputs{seed = seed}
  for i = 1, 4 do least, most = math.min(least, inputs.Length[i]), math.max(most, inputs.Length[i]) end
end
tap.ok(least >= 0 and least < 40 and most > 600 and most <= 640, "random lengths are from 0 to the size", least .. " to " .. most)
for _, seed in ipairs(SEEDS) do
  tap.ok(short:compile{target = random_plans.target}:check{seed = seed, race = seed == 1}.ok, "k:check has random lengths, seed " .. seed)
end

---- traces ---------------------------------------------------------------------

local kernel = short:compile{target = "host"}
local line = kernel:trace{}
local products = 0
for _, e in ipairs(line.events) do products = products + (e.task == "mma_pv" and 1 or 0) end
tap.is(products, 5, "a trace shows runs of the length that is assumed")
local good, message = pcall(kernel.trace, kernel, {inputs = half:inputs{}})
tap.ok(not good and message:find("timelines show runs of the length that predictions assume, 300", 1, true),
  "a trace of other lengths is refused", message)
local inputs = half:inputs{}
inputs.Length:fill(260)
tap.ok(pcall(kernel.trace, kernel, {inputs = inputs}), "but not one of as many iterations")

---- steps that are left out ----------------------------------------------------

-- How many steps 'when' keeps is assumed, as a length is: predictions follow, kernels take any mask.
do
  local function masked(typical, blocks)                -- blocks: of the sum, by the names of the axes that number them
    return mr.program("masked", function(p)
      local b, m, n, k = p:axes("b", "m", "n", "k")
      local steps = {p:axes(table.unpack(blocks))}
      local function with(first, ...)
        local dims = {first}
        table.move(steps, 1, #steps, #dims + 1, dims)
        return table.move({...}, 1, select("#", ...), #dims + 1, dims)
      end
      local A, B = p:input("A", with(b, m, k)), p:input("B", with(k, n))
      local Mask, C = p:input("Mask", with(b), "bool"), p:output("C", {b, m, n})
      p:batch(b)
      local c = p:carry("c", {m, n}, 0)
      p:loop(steps, {when = function() return p:load("load_mask", Mask) end, typical = typical}, function()
        c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B)))
      end)
      C:store("store_c", p:task("cast", function() return c:to "bf16" end))
    end)
  end
  local function plan_of(typical, sizes)
    local plan = mr.plan(masked(typical, sizes.bl and {"bk", "bl"} or {"bk"})(sizes):graph{tile = {m = 128, n = 128, k = 64}}, mr.device "h200")
    for _, task in ipairs(plan.tasks) do plan:append(task.name) end
    plan:buffers{a = 3, b = 3}
    plan:fill_waits()
    tap.ok(plan:check(), "steps left out: the plan is legal", select(2, plan:check()))
    return plan
  end
  for _, sizes in ipairs{{b = 264, bk = 64, m = 128, n = 128, k = 64}, {b = 264, bk = 16, bl = 4, m = 128, n = 128, k = 64}} do
    local all, half, quarter = plan_of(nil, sizes), plan_of(32, sizes), plan_of(0.25, sizes)
    local entire, part, less = all:simulate(), half:simulate(), quarter:simulate()
    tap.is(half.graph.flops, all.graph.flops / 2, "half the steps have half the work")
    tap.near(part.cycles / entire.cycles, 0.5, 0.04, "  and take half the time")
    tap.near(less.cycles / entire.cycles, 0.25, 0.06, "  a quarter, a quarter")
    local function assumed(x) return tostring(x):gsub("%s+", " ") end
    local loop = sizes.bl and "bk,bl" or "bk"
    tap.ok(assumed(entire:summary{width = 300}):find("assumed steps of loop " .. loop .. " 64, all", 1, true), "  a timeline names the loop", entire:summary{width = 300})
    tap.ok(assumed(less:summary{width = 300}):find("assumed steps of loop " .. loop .. " 16 of 64", 1, true), "  and how many", less:summary{width = 300})
    tap.ok(assumed(half):find("assumed steps of loop " .. loop .. " 32 of 64", 1, true), "  so does a plan", half)
    tap.is(half:compile{text = true}.source:gsub(" typical [%w ]*", ""), all:compile{text = true}.source, "  kernels are the same")
  end
  local small = {b = 3, bk = 5, m = 128, n = 128, k = 64}
  for _, typical in ipairs{1, 0.5, 5} do
    local plan = plan_of(typical, small)
    random_plans.correct(tap, "with " .. typical .. " of the steps assumed", plan, SEEDS)
  end
end

---- blocks of a length ---------------------------------------------------------

-- As many blocks of 4 as a length needs, and every second one of them: // and % by powers of two, of negative numbers, too.
for _, form in ipairs{"length", "when"} do
  local bound = mr.program("blocks", function(p)
    local b, n, key, d = p:axes("b", "n", "key", "d")
    local X, Length, Y = p:input("X", {b, n, key, d}, "f32"), p:input("Length", {b}, "i32"), p:output("Y", {b, d}, "f32")
    p:batch(b)
    local sum = p:carry("sum", {d}, 0)
    local function blocks() return (p:load(Length) + 3) // 4 end
    local function kept() return n:index():lt(blocks()) & (n:index() % 2):eq(0) end
    p:loop(n, form == "length" and {length = blocks()} or {when = kept}, function()
      local x = p:load(X):rowsum(key)
      sum:add(form == "length" and x:rowsum(n) or x)
    end)
    Y:store(p:task("result", function() return sum + 0 end))
  end){b = 7, n = 6, key = 4, d = 8}
  local Length, length = tensors.tensor("i32", {7}, function(b) return ({-9, -3, 0, 1, 4, 17, 90})[b + 1] end)
  local X, x = tensors.tensor("f32", {7, 6, 4, 8}, tensors.mixed)
  dofile(dir .. "lib/follows.lua")(tap)("blocks of a length, by " .. form, bound, {X = X, Length = Length}, function(b, d)
    local sum = 0
    for n = 0, math.min(6, (length(b) + 3) // 4) - 1, form == "when" and 2 or 1 do
      for key = 0, 3 do sum = sum + x(b, n, key, d) end
    end
    return sum
  end)
end

---- refusals -------------------------------------------------------------------

local function refuses(options, message, batch)
  tap.refuses(([[
local mr = require "millrace"
mr.program("x", function(p)
  local b, n, d = p:axes("b", "n", "d")
  local X, Length = p:input("X", {b, n, d}, "i32"), p:input("Length", {b}, "i32")
  local Real, T, O = p:input("Real", {b}, "f32"), p:temp("T", {n}, "i32"), p:output("O", {b}, "f32")
  p:phase("first", function() p:batch(b) T:store(p:task("t", function() return b:index() * 2 end), {b}) end)
  p:phase("main", function()
  %s
  local length, real, c = p:load(Length), p:load("load_r", Real), p:carry("c", {}, 0)
  p:loop(%s, function() c:set(c + mr.rowsum(mr.rowsum(p:load("load_x", X), d) + 0.0, n)) end)
  O:store(c + real)
  end)
end):bind{b = 2, n = 20, d = 4}]]):format(batch or "p:batch(b)", options), message, options)
end

refuses("n, {upto = length}", "user.lua:10: loop: 'upto' is an index made of axes and numbers; for a value, write length = ..., at "
  .. "which the axis ends")
refuses("n, {from = length}", "user.lua:10: loop: an index is made of axes and numbers, not of values")
refuses("n, {length = 5}", "user.lua:10: loop: length: an i32 value, or one plus an index expected, got 5")
refuses("n, {when = length}", "user.lua:10: loop: when: a function that returns a value, expected, got value")
refuses("n, {when = function() return real:gt(0) end}", "user.lua:10: loop: the value of 'when' has an element for each b, but a "
  .. "step is executed or left out for a tile as one: declare p:batch(b), or reduce the value over it in an earlier phase", "")
refuses("n, {when = function() return 1 end}", "user.lua:10: loop: when: a function that returns a bool or i32 value expected, got 1")
refuses("n, {length = n}", "user.lua:10: loop: length: an i32 value, or one plus an index expected, got axis")
refuses("n, {typical = 5}", "user.lua:10: loop: 'typical' is what predictions assume of a length, or of the steps that 'when' keeps; it "
  .. "needs a length = ... or when = ...")
for _, wrong in ipairs{"0", "21", "-0.5", "1.5"} do
  refuses("n, {when = function() return length end, typical = " .. wrong .. "}", "user.lua:10: loop: 'typical' is how many of the steps "
    .. "'when' keeps, an integer from 1 to 20, or a share of them below 1, got " .. wrong)
end
refuses("n, {length = length, typical = 0.5}", "user.lua:10: loop: 'typical' is a length, an integer of at least 1, got 0.5")
refuses("n, {lenght = length}", "user.lua:10: loop: unknown option 'lenght'; did you mean 'length'?")
refuses("{n, d}, {length = length}", "user.lua:10: 'length' needs a loop over one axis; nest a loop for each of the 2 axes")
refuses("n, {length = real}", "user.lua:10: 'load_r', of which the length of a loop is made, is f32; a length is i32: keep it as i32 in "
  .. "the tensor")
refuses("n, {length = p:load('load_some', T, {b + 1})}", "user.lua:10: 'load_some' reads element 2 along 'n' of temporary 'T', which "
  .. "no store writes; store all of it, or read only what is stored")
refuses("n, {length = length | 7}", "user.lua:10: the length of a loop is made of '|' in 'ew1'; it may be made of elements of "
  .. "tensors, constants and indices by + - * min max, // and % by powers of two, comparisons and where: make it an input, or store it in an earlier phase")
refuses("n, {when = function() return (n:index() & length):eq(0) end}", "user.lua:10: what 'when' gives is made of '&' or '%' in 'ew1'; it "
  .. "may be made of elements of tensors, constants and indices by + - * min max, // and % by powers of two, comparisons and where: make it an input, or store it in "
  .. "an earlier phase", "p:batch(b)")
refuses("n, {when = function() return (real * 2):gt(0) end}", "user.lua:10: the mul in 'ew1', of which what 'when' gives is made, is f32; it is "
  .. "made of i32 and bool values: keep it as i32 in the tensor", "p:batch(b)")
refuses("n, {length = length + d}", "user.lua:10: the length of a loop depends on axis 'd', of which a tile has several indices, and a "
  .. "loop has one length in a tile; declare p:batch(d)")
refuses("n, {length = length}", "user.lua:10: the length of a loop is 'load_Length', which has an element for each b; a loop has one "
  .. "length in a tile: declare p:batch(b)", "")

-- An operand that is made before the loop has numbers behind the end, which the matrix unit would multiply.
local before = mr.program("before", function(p)
  local b, m, n, d = p:axes("b", "m", "n", "d")
  local A, V = p:input("A", {b, m, n}), p:input("V", {b, n, d})
  local Length, O = p:input("Length", {b}, "i32"), p:output("O", {b, m, d}, "f32")
  p:batch(b)
  local v, length, o = p:load("load_v", V), p:load(Length), p:carry("o", {m, d}, 0)
  p:loop(n, {length = length}, function() o:add(p:mma("mma", p:load("load_a", A), v)) end)
  O:store(o)
end){b = 3, m = 64, n = 128, d = 64}
for _, unit in ipairs{"tensor", "cuda"} do
  local plan = mr.plan(before:graph{tile = {m = 64, n = 32}}, mr.device "h200")
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {seu = t.kind == "mma" and unit or nil}) end
  plan:fill_waits()
  local good, problems = plan:check()
  if unit == "tensor" then
    tap.ok(not good and problems[1].code == "product" and problems[1].message:find("'v' is made before the loop over 'n'", 1, true),
      "an operand made before the loop is refused by matrix units", problems)
  else
    random_plans.correct(tap, "an operand made before the loop, on CUDA cores", plan, SEEDS)
  end
end

tap.done_testing()
