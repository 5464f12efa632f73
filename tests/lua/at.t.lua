-- at.t.lua - values that are read at other indices of an axis, v:at(axis, index): programs against formulas in plain Lua,
-- kernels of families of plans against the reference, and refusals.
--
--   millrace at.t.lua [PATTERN]   runs the families' cases whose names match
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local tensors = dofile(dir .. "lib/tensors.lua")
local tensor, mixed = tensors.tensor, tensors.mixed
local follows = dofile(dir .. "lib/follows.lua")(tap)
random_plans.target = "host"
local only = arg[1]
local SEEDS <const> = {1, 2}

---- formulas -------------------------------------------------------------------

-- Y[i, j] = 3 x[i, of(j)] + x[i, j], by a load that is read elsewhere, by a value of another task, or by one of the same.
local function row_program(of)
  return mr.program("row", function(p)
    local i, j = p:axes("i", "j")
    local X, Y = p:input("X", {i, j}, p.dtype), p:output("Y", {i, j}, "f32")
    local x = p:load("load_x", X)
    if p.form == "load" then
      Y:store(p:task("read", function() return x:at(j, of(j)) * 3 + x end))
    elseif p.form == "tasks" then
      local y = p:task("scale", function() return x * 3 end)
      Y:store(p:task("read", function() return y:at(j, of(j)) + x end))
    else
      Y:store(p:task("read", function() return (x * 3):at(j, of(j)) + x end))
    end
  end)
end

local indices = {
  {"the neighbour", function(j) return j ~ 1 end},
  {"bits 0 and 2 flipped", function(j) return j ~ 5 end},
  {"bit 3 flipped", function(j) return 8 ~ j end},
  {"the next one", function(j) return j + 1 end},
  {"the one before", function(j) return j - 1 end},
  {"every other", function(j) return j * 2 end},
  {"one for each two", function(j) return j // 2 end},
  {"the last one of each four", function(j) return j - j % 4 + 3 end},
  {"from the other end", function(j) return 15 - j end},
  {"the third", function() return 2 end},
  {"none", function() return -1 end},
}
for _, index in ipairs(indices) do
  for _, form in ipairs{"load", "tasks", "task"} do
    for _, size in ipairs{{5, 16, "f32"}, {3, 23, "bf16"}} do
      local rows, cols, dtype = table.unpack(size)
      local X, x = tensor(dtype, {rows, cols}, mixed)
      follows(("%s of %d, %s, a %s"):format(index[1], cols, dtype, form), row_program(index[2]){i = rows, j = cols, form = form, dtype = dtype},
        {X = X}, function(i, j) return 3 * x(i, index[2](j)) + x(i, j) end)
    end
  end
end

-- Another axis: the diagonal, and a value as its transpose would be.
local diagonal = mr.program("diagonal", function(p)
  local i, j = p:axes("i", "j")
  local X, Y = p:input("X", {i, j}, "f32"), p:output("Y", {i}, "f32")
  local x = p:load("load_x", X)
  Y:store(p:task("read", function() return (x * 2):at(j, i + p.shift) end))
end)
for _, shift in ipairs{0, 3} do
  local X, x = tensor("f32", {9, 11}, mixed)
  follows("the diagonal from " .. shift .. " on", diagonal{i = 9, j = 11, shift = shift}, {X = X},
    function(i) return 2 * x(i, i + shift) end)
end
local symmetric = mr.program("symmetric", function(p)
  local b, i, j, k = p:axes("b", "i", "j", "k")
  local X, Y = p:input("X", {b, i, j}, p.dtype), p:output("Y", {b, i, j}, "f32")
  p:batch(b)
  local x = p:load("load_x", X)
  local y = p:task("scale", function() return x * 2 end)
  local transposed = p:task("transpose", function() return y:at(j, k):at(i, j):at(k, i) end)
  Y:store(p:task("add", function() return transposed + x end))
end)
for _, n in ipairs{8, 13} do
  local X, x = tensor("f32", {2, n, n}, mixed)
  follows("what is transposed, " .. n, symmetric{b = 2, i = n, j = n, k = n, dtype = "f32"}, {X = X},
    function(b, i, j) return 2 * x(b, j, i) + x(b, i, j) end)
end

-- The product of a matrix with itself: S S, of which S[k, j] is the second operand.
local squared = mr.program("squared", function(p)
  local b, i, k, j = p:axes("b", "i", "k", "j")
  local X, Y = p:input("X", {b, i, k}), p:output("Y", {b, i, j}, "f32")
  p:batch(b)
  local x = p:load("load_x", X)
  local s = p:task("halve", function() return (x * 0.5):to "bf16" end)
  local other = p:task("rename", function() return s:at(k, j):at(i, k) end)
  Y:store("store_y", p:mma("mma", s, other))
end)

-- In a loop: the value before it, at the index of the loop's tile; and a batch axis as the index.
local looped = mr.program("looped", function(p)
  local b, i, j, k = p:axes("b", "i", "j", "k")
  local X, W, Y = p:input("X", {b, i, j}, "f32"), p:input("W", {i, k}, "f32"), p:output("Y", {b, i}, "f32")
  p:batch(b)
  local x, sum = p:load("load_x", X), p:carry("sum", {i}, 0)
  local y = p:task("scale", function() return x * 2 end)
  p:loop(k, function()
    local w = p:load("load_w", W)
    p:task("sum", function() sum:add(mr.rowsum(w * y:at(j, k * 2), k)) end)
  end)
  Y:store(p:task("last", function() return sum + y:at(j, b + 1) end))
end)
do
  local X, x = tensor("f32", {2, 5, 18}, mixed)
  local W, w = tensor("f32", {5, 12}, mixed)
  follows("at the index of a loop, and of a batch axis", looped{b = 2, i = 5, j = 18, k = 12}, {X = X, W = W}, function(b, i)
    local sum = 2 * x(b, i, b + 1)
    for k = 0, 11 do sum = sum + w(i, k) * 2 * x(b, i, 2 * k) end
    return sum
  end)
end

-- Several reads, one behind the other: the blocks on the diagonal of a matrix, and a matrix of blocks.
local blocks = mr.program("blocks", function(p)
  local c, i, j = p:axes("c", "i", "j")
  local part = p.part or 4
  local g, bi, bj = p:axis("g", i.size // part), p:axis("bi", part), p:axis("bj", part)
  local X, Y = p:input("X", {c, i, j}, "f32"), p:output("Y", {c, i, j}, "f32")
  p:batch(c)
  local x = p:load("load_x", X)
  local y = p.form == "load" and x or p:task("double", function() return x * 2 end)
  local sums = p:carry("sums", {g, bj, bi}, 0)
  if p.form == "loop" then
    local r = p:axis("r", part)
    p:loop(r, {batch = true}, function()
      p:task("add", function()
        local column = y:at(j, g * part + r):at(i, g * part + bi)                  -- {g, bi}
        sums:set(sums + mr.where(bj:index():eq(r:index()), column, 0))
      end)
    end)
  else
    p:task("take", function() sums:set(y:at(i, g * part + bi):at(j, g * part + bj) * 1) end)
  end
  Y:store("store_y", p:task("put", function()
    local z = sums:at(g, i // part):at(bi, i % part):at(bj, j % part)
    return mr.where((i:index() // part):eq(j:index() // part), z, -1)
  end))
end)
for _, form in ipairs{"load", "task", "loop"} do
  local X, x = tensor("f32", {2, 16, 16}, mixed)
  follows("blocks of the diagonal, a " .. form, blocks{c = 2, i = 16, j = 16, form = form}, {X = X}, function(c, i, j)
    return i // 4 == j // 4 and (form == "load" and 1 or 2) * x(c, i, j) or -1
  end)
end

-- The cube of a matrix: its square is an operand under the name of another axis, and so is the matrix.
local cubed = mr.program("cubed", function(p)
  local c, i, k, j = p:axes("c", "i", "k", "j")
  local X, Y = p:input("X", {c, i, k}), p:output("Y", {c, i, j}, "f32")
  p:batch(c)
  local x = p:load("load_x", X)
  local s, of_k = p:task("halve", function()
    local s = (x * 0.5):to "bf16"
    return s, s:at(k, j):at(i, k)                         -- {i, k}, {k, j}
  end)
  local square = p:mma("mma_square", s, of_k)             -- {i, j}
  local again = p:task("round", function() return square:to "bf16":at(i, k) end)
  Y:store("store_y", p:mma("mma_cube", s, again))
end)
do
  local n = 16
  local X, x = tensor("bf16", {2, n, n}, function(c, i, k) return (i * 7 + k * 3 + c) % 5 - 2 end)
  local function s(c, i, k) return x(c, i, k) * 0.5 end
  local function square(c, i, j)                          -- sums of few quarters: bf16 has all of them
    local sum = 0
    for k = 0, n - 1 do sum = sum + s(c, i, k) * s(c, k, j) end
    return sum
  end
  follows("a matrix cubed", cubed{c = 2, i = n, k = n, j = n}, {X = X}, function(c, i, j)
    local sum = 0
    for k = 0, n - 1 do sum = sum + s(c, i, k) * square(c, k, j) end
    return sum
  end)
end

-- The Hadamard transform of rows: its element [i, j] is the sum of all x[i, l], with a minus where i & l has an odd number of bits.
local function butterfly(x, j, bit)                        -- x[j ~ bit] + x[j], with a minus in front of x[j] where j has the bit
  return x:at(j, j ~ bit) + mr.where((j:index() & bit):eq(0), x, -x)
end
local hadamard = mr.program("hadamard", function(p)
  local i, j = p:axes("i", "j")
  local X, Y = p:input("X", {i, j}, p.dtype or "f32"), p:output("Y", {i, j}, "f32")
  local x, bit = p:load("load_x", X), 1
  Y:store(p:task("transform", function()
    local y = x:to "f32"
    while bit < j.size do y, bit = butterfly(y, j, bit), bit * 2 end
    return y
  end))
end)
local function odd_bits(n)
  local odd = 0
  while n > 0 do n, odd = n & n - 1, 1 - odd end
  return odd == 1
end
for _, n in ipairs{1, 2, 64, 128, 256, 512, 1024} do
  local X, x = tensor("f32", {3, n}, function(i, j) return (i * 37 + j * j * 11) % 64 - 32 end)
  local rows = {}
  follows("Hadamard of " .. n, hadamard{i = 3, j = n}, {X = X}, function(i, j)
    if not rows[i] then
      rows[i] = {}
      for l = 0, n - 1 do rows[i][l] = x(i, l) end
    end
    local sum = 0
    for l = 0, n - 1 do sum = odd_bits(l & j) and sum - rows[i][l] or sum + rows[i][l] end
    return sum
  end)
end

---- families of plans ----------------------------------------------------------

local function correct(name, bound, tile, build)
  if only and not name:find(only) then return end
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  build(plan)
  plan:grid{eus = 1}
  plan:fill_waits()
  random_plans.correct(tap, name, plan, SEEDS)
end

-- Loads on a lane of their own, the named sTasks on "c1", all others on "c0".
local function lanes(other, warps)
  return function(plan)
    plan:lane("p0", {warps = 1})
    plan:lane("c0", {warps = warps})
    if other then plan:lane("c1", {warps = warps}) end
    for _, t in ipairs(plan.tasks) do
      local stem = t.name:gsub("%.%d+$", "")
      plan:append(t.name, {lane = t.kind == "load" and "p0" or stem == other and "c1" or t.name:find "%.1$" and "c1" or "c0"})
    end
  end
end

for _, index in ipairs{indices[1], indices[3], indices[5], indices[7], indices[10]} do
  for _, form in ipairs{"load", "tasks", "task"} do
    for _, dtype in ipairs{"f32", "bf16"} do
      for _, warps in ipairs{1, 4} do
        local other = form == "tasks" and warps == 4 and "read" or nil
        correct(("%s, %s, a %s, %d warps"):format(index[1], dtype, form, warps),
          row_program(index[2]){i = 40, j = 72, form = form, dtype = dtype}, {i = 16}, lanes(other, warps))
      end
      correct(("%s, %s, a %s, tiles of the row"):format(index[1], dtype, form), row_program(index[2]){i = 24, j = 72, form = form,
        dtype = dtype}, {i = 8, j = 32}, lanes(nil, 1))
    end
  end
end
for _, dtype in ipairs{"f32", "bf16"} do
  correct("slices of rows, " .. dtype, row_program(indices[2][2]){i = 96, j = 64, form = "tasks", dtype = dtype}, {i = 32},
    function(plan)
      plan:split("i", 2, {"scale", "read", "store_Y"})
      lanes(nil, 4)(plan)
    end)
  correct("slices of rows of another task, " .. dtype, row_program(indices[2][2]){i = 96, j = 64, form = "tasks", dtype = dtype},
    {i = 32}, function(plan)
      plan:split("i", 2, {"scale"})
      lanes(nil, 4)(plan)
    end)
  correct("slices along the axis of another task, " .. dtype, row_program(indices[2][2]){i = 96, j = 64, form = "tasks",
    dtype = dtype}, {i = 32}, function(plan)
      plan:split("j", 2, {"scale"})
      lanes(nil, 4)(plan)
    end)
end
for _, n in ipairs{16, 40, 64} do
  correct("a matrix squared, " .. n, squared{b = 2, i = n, k = n, j = n}, {}, lanes(nil, 4))
  correct("a matrix squared, in tiles, " .. n, squared{b = 2, i = n, k = n, j = n}, {j = 16}, lanes("rename", 4))
  correct("what is transposed, " .. n, symmetric{b = 2, i = n, j = n, k = n, dtype = "bf16"}, {}, lanes("transpose", 4))
end
correct("at the index of a loop", looped{b = 2, i = 40, j = 96, k = 50}, {i = 16, k = 16}, lanes(nil, 4))
correct("at the index of a loop, on two lanes", looped{b = 2, i = 40, j = 96, k = 50}, {i = 16, k = 16}, lanes("scale", 4))
for _, form in ipairs{"load", "task", "loop"} do
  for _, sizes in ipairs{{16, 4}, {64, 16}, {48, 16}, {40, 8}} do
    local n, part = table.unpack(sizes)
    for _, other in ipairs{"", "put", "add"} do
      correct(("blocks of %d in %d, a %s, '%s' on another lane"):format(part, n, form, other),
        blocks{c = 2, i = n, j = n, part = part, form = form}, {}, lanes(other, 4))
    end
  end
end
for _, n in ipairs{16, 40, 64} do
  correct("a matrix cubed, " .. n, cubed{c = 2, i = n, k = n, j = n}, {}, lanes(nil, 4))
  correct("a matrix cubed, in tiles, " .. n, cubed{c = 2, i = n, k = n, j = n}, {j = 16}, lanes(nil, 4))
  correct("a matrix cubed, on two lanes, " .. n, cubed{c = 2, i = n, k = n, j = n}, {}, lanes("round", 4))
end
for _, case in ipairs{{128, 1}, {128, 4}, {1024, 2}, {1024, 4}} do
  local n, warps = table.unpack(case)
  correct(("Hadamard of %d, %d warps"):format(n, warps), hadamard{i = 12, j = n, dtype = "bf16"}, {i = 4}, lanes(nil, warps))
end

-- In registers: no thread waits for another warp, and nothing is written to shared memory but the result.
for _, n in ipairs{64, 512, 1024} do
  local plan = mr.plan(hadamard{i = 64, j = n, dtype = "bf16"}:graph{tile = {i = 16}}, mr.device "h200")
  lanes(nil, 4)(plan)
  plan:fill_waits()
  local text = plan:compile{target = "host"}.source
  local work = text:match "/%* transform, .-/%* store"
  tap.ok(work:find "shuffle_xor" and not work:find "lane_sync", ("Hadamard of %d is exchanged in registers"):format(n), work)
end

-- What has another name alone stays where it is; what each iteration reads is in a ring, and read where it is used.
do
  local function text_of(bound, task)
    local plan = mr.plan(bound:graph{}, mr.device "h200")
    lanes(nil, 4)(plan)
    plan:fill_waits()
    return plan:compile{target = "host"}.source:match("/%* " .. task .. ", .-\n\t+}\n\t+{\t/%*")
  end
  local round = text_of(cubed{c = 2, i = 64, k = 64, j = 64}, "round")
  tap.ok(not round:find "shared_[uf]%d+%(" and not round:find "shared_put_f32", "a new name of an axis moves nothing", round)
  local add = text_of(blocks{c = 2, i = 64, j = 64, part = 16, form = "loop"}, "add")
  tap.ok(not add:find "shared_put_f32" and add:find "shared_f32%(slot_double", "a loop reads a value before it out of its ring", add)
end

---- texts ----------------------------------------------------------------------

tap.like(row_program(indices[2][2]){i = 4, j = 16, form = "task"}, "at %%2 at j = j %- 2%*%(j %% 2%) %- 8%*%(j // 4 %% 2%) %+ 5",
  "a listing says where a value is read")
do
  local plan = mr.plan(row_program(indices[1][2]){i = 4, j = 16, form = "task"}:graph{}, mr.device "h200")
  local good, problem = pcall(plan.split, plan, "j", 2)
  tap.ok(not good, "a task that reads elements along an axis is not split along it")
  tap.like(problem, "cannot be split along 'j': it reads elements of others along that axis", "  and says why")
end

local function refuses(body, message)
  tap.refuses('local mr = require "millrace"\nmr.program("x", function(p)\nlocal i, j = p:axes("i", "j")\n' ..
    'local X, Y = p:input("X", {i, j}), p:output("Y", {i, j}, "f32")\nlocal x = p:load(X)\n' .. body ..
    '\nend):bind{i = 8, j = 8}', message)
end
refuses("Y:store(x:at(i:index(), j))", "user.lua:6: at: axis expected, got value")
refuses("Y:store(x:rowsum(j):at(j, i))", "user.lua:6: at over 'j': the value has axes {i}; name one of them")
refuses("Y:store(x:at(j, j:index()))", "user.lua:6: at: an index is made of axes and numbers, not of values")
refuses("Y:store(x:at(j))", "user.lua:6: at: axis, index expression or integer expected, got nil")
refuses("Y:store(x:at(j, j ~ -1))",
  "user.lua:6: ~: of an axis and a number of at least 0 whose bits are flipped, got -1")
refuses("Y:store(x:at(j, i ~ j))", "user.lua:6: ~: of an axis and a number of at least 0 whose bits are flipped, got axis")
refuses("p:loop(j, function()\nY:store(p:load('again', X):at(j, j ~ 1) + x)\nend)",
  "user.lua:7: at over 'j': 'again' is made in the loop over {j} at line 6, where it has one tile of 'j' at a time; " ..
  "make it before the loop, or load what is at other indices")

refuses("local l = p:axis('l', 32)\nlocal w = x:to 'i32'\nY:store(w:at(j, i):to 'f32' + mr.unpack(w, j, l, 'i8'):rowsum(l):to 'f32' + i:index() + j:index())",
  "user.lua:8: unpack: a value is read at other indices along 'j', so 'j' cannot count words; use an axis of its own for the words")

-- Neighbours that a thread reads at once, of which some are read where an index is inside, and others where it is not.
do
  local bound = mr.program("neighbours", function(p)
    local i, j, k = p:axes("i", "j", "k")
    local X, Y = p:input("X", {i, k}, "f32"), p:output("Y", {k}, "f32")
    local x = p:load(X)
    Y:store(p:task("add", function() return (x + 1):at(i, k - 3) end))
  end){i = 1, j = 1, k = 8}
  local plan = mr.plan(bound:graph(), mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  local r = plan:compile{target = "host"}:check{seed = 1}
  tap.ok(r.ok, "a thread's second element may be inside where its first is not", tostring(r))
end

tap.done_testing()
