-- What compilers that pipeline loops have got wrong, each in several schedules:
-- a buffer that is read and then overwritten; a value read after the loop that filled it; an
-- accumulation that a later iteration reads back; a pipelined loop of a single iteration.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans, programs = dofile(dir .. "lib/random_plans.lua"), dofile(dir .. "lib/programs.lua")
random_plans.target = arg[1] or "host"

local SEEDS <const> = {1, 2, 3, 4, 5, 6}

-- Loads are on p0, the sTasks of the list on c0 in its order: {name, offset}. Others have offset 0.
local function schedule(bound, tile, rings, order)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  local done = {}
  local function append(name, at)
    local lane = name:find "^load" and "p0" or "c0"
    plan:append(name, {lane = lane, at = at})
    done[name] = true
  end
  plan:lane("p0", {warps = 1})
  plan:buffers(rings)
  plan:grid{eus = 1}
  for _, entry in ipairs(order) do append(entry[1], entry[2]) end
  for _, t in ipairs(plan.tasks) do
    if not done[t.name] then append(t.name, 0) end
  end
  plan:fill_waits()
  return plan
end

local function correct(what, plan) random_plans.correct(tap, what, plan, SEEDS) end

local sizes, tile = {m = 128, n = 64, k = 160}, {m = 64, n = 64, k = 32}

-- `top` is read by one sTask and then overwritten by another; the product of the next
-- iterations is issued before.
for _, ring in ipairs{1, 3} do
  for ahead = 0, 2 do
    local what = ("a buffer read and then overwritten, products %d ahead, rings of %d"):format(ahead, ring)
    correct(what, schedule(programs.highest(sizes), tile, {a = ring, b = ring, mma = ahead + 1},
      {{"mma", ahead}, {"before", 0}, {"after", 0}}))
  end
end
correct("a buffer overwritten where the next iteration has not read it yet", schedule(
  programs.highest(sizes), tile, {a = 2, b = 2, before = 2}, {{"mma", 0}, {"after", 0}, {"before", 1}}))
tap.ok(not schedule(programs.highest(sizes), tile, {a = 2, b = 2, before = 2},
  {{"mma", 0}, {"before", 1}, {"after", 0}}):check(),
  "a buffer read before the iteration that overwrites it is refused")

-- The maxima of the first loop, and how its last iterations leave them.
for ahead = 0, 2 do
  for _, n in ipairs{64, 128, 320} do
    correct(("a value read after the loop that filled it, products %d ahead, %d iterations"):format(ahead,
      n // 64), schedule(programs.two_pass{m = 128, n = n, d = 64}, {m = 64, n = 64},
      {k1 = 2, k2 = 2, v2 = 2, mma_first = ahead + 1, mma_second = ahead + 1},
      {{"mma_first", ahead}, {"highest", 0}, {"mma_second", ahead}, {"weights", 0}, {"mma_v", 0}}))
  end
end
correct("sums read after the loop that are stored by another sTask", schedule(
  programs.normed(sizes), tile, {a = 4, b = 4}, {{"square", 2}, {"mma", 0}}))

-- What one iteration has accumulated is an operand of the next product.
for ahead = 0, 1 do
  for _, ring in ipairs{1, 2, 4} do
    correct(("an accumulation read back, reads %d ahead, rings of %d"):format(ahead, ring), schedule(
      programs.recurrent{m = 128, n = 64, k = 160, d = 64}, {m = 64, k = 32},
      {a = ring, b = ring, read = ahead + 1},
      {{"rows", ahead}, {"mma_in", ahead}, {"read", ahead}, {"mma_out", 0}}))
  end
end
correct("an accumulation scaled between two products into it", schedule(
  mr.examples.flash_attention{b = 1, h = 1, m = 128, n = 320, d = 64}, {m = 64, n = 64},
  {k = 2, v = 2, softmax = 2, softmax_2 = 2},
  {{"mma_qk", 1}, {"softmax", 1}, {"rescale", 0}, {"mma_pv", 0}}))

-- One iteration: the pipelined loop has only a prologue and an epilogue.
for _, versions in ipairs{1, 3} do
  for offset = -1, 2 do
    local first, others = math.max(offset, 0), math.min(offset, 0)
    correct(("a single iteration, offset %d, %d versions"):format(offset, versions), schedule(
      programs.highest{m = 128, n = 64, k = 32}, tile,
      {a = versions, b = versions, mma = math.max(versions, math.abs(offset) + 1)},
      {{"mma", first}, {"before", others}, {"after", others}}))
  end
end

-- One sTask sets an accumulator and reads what was there before, what it has set, or both: in registers, in
-- registers that lie transposed, and in shared memory, as another lane adds the products.
local reads = {
  {"the old value", function(c, q, n) local old = c + 0 c:set(old * 0.5 + 1) return mr.rowsum(old * q, n) end},
  {"the new value", function(c, q, n) c:set(c * 0.5 + 1) return mr.rowsum(c * q, n) end},
  {"both", function(c, q, n)
    local old = c + 0
    c:set(old * 0.5 + 1)
    local new = c + 0
    c:set(new * 0.25)
    return mr.rowsum(old * q + new, n) + mr.rowmax(c + 0, n)
  end},
}
local function set_and_read(read, transposed)
  return mr.program("set_and_read", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, Q = p:input("A", {m, k}), p:input("B", {n, k}), p:input("Q", {m, n})
    local C, S = p:output("C", {m, n}, "f32"), p:output("S", {m}, "f32")
    local c, a, b = p:carry("c", {m, n}, 0), p:load("load_a", A), p:load("load_b", B)
    if transposed then c:add(p:mma("mma", b, a)) else c:add(p:mma("mma", a, b)) end
    local q = p:load("load_q", Q)
    local s = p:task("scale", function() return read(c, q, n) end)
    p:task("again", function() c:set(c + s) end)
    C:store("store_c", c)
    S:store("store_s", s)
  end)
end
for _, read in ipairs(reads) do
  for _, where in ipairs{"registers", "transposed registers", "shared memory"} do
    local plan = schedule(set_and_read(read[2], where == "transposed registers"){m = 128, n = 64, k = 64}, {m = 64}, {}, {})
    if where == "shared memory" then
      plan:lane("c1", {warps = 4})
      plan:move("scale", {lane = "c1"})
      plan:fill_waits()
    end
    correct(("an accumulator in %s is set, and %s read"):format(where, read[1]), plan)
  end
end
for init = 0, 1 do
  correct("an accumulation outside of all loops, from " .. init, schedule(mr.program("outside", function(p)
    local i, j = p:axes("i", "j")
    local X, Y = p:input("X", {i, j}), p:output("Y", {i}, "f32")
    local c = p:carry("c", {i}, init)
    c:add(mr.rowsum(p:load("load_x", X), j))
    Y:store("store", c)
  end){i = 48, j = 40}, {i = 16}, {}, {}))
end

-- Versions of values in registers: the loop is there once for each that meet, so that they multiply. With too many
-- the plan is refused, at its line and at once; with as many as there may be the kernel is right.
local function chain(versions)
  local plan = mr.plan(mr.program("chain", function(p)
    local m, k = p:axes("m", "k")
    local X, Y = p:input("X", {m, k}, "f32"), p:output("Y", {m, k}, "f32")
    p:loop(k, function()
      local v = p:load("load", X)
      for i = 1, 5 do v = p:task("t" .. i, function() return v * 0.5 + i end) end
      Y:store("store", v)
    end)
  end){m = 16, k = 600}:graph{tile = {m = 4, k = 1}}, mr.device "h200")
  plan:buffers(versions)
  local line = debug.getinfo(1, "l").currentline - 1
  plan:lane("c0", {warps = 1})
  plan:grid{eus = 1}
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0"}) end
  plan:fill_waits()
  return plan, line
end
for _, versions in ipairs{{t1 = 8, t2 = 9, t3 = 5, t4 = 7}, {t1 = 64, t2 = 63, t3 = 61, t4 = 59}} do
  local plan, line = chain(versions)
  local start = os.clock()
  local good, problems = plan:check()
  tap.ok(not good and os.clock() - start < 5, "a kernel of thousands of copies is refused at once")
  tap.is(problems[1].code, "copies", "  with a code of its own")
  tap.like(problems[1].location, "hazards%.t%.lua:" .. line .. "$", "  at the line of the versions")
  for name, n in pairs(versions) do
    tap.like(problems[1].message, ("'%s' (%d)"):format(name, n):gsub("%p", "%%%0"), "  it names the versions of " .. name)
  end
  tap.like(problems[1].hint, "^plan:buffers{", "  the hint says which there may be")
  load("local plan = ... " .. problems[1].hint)(plan)
  tap.ok(plan:check(), "  with which the plan is legal")
end
correct("a loop unrolled 280 times", (chain{t1 = 7, t3 = 40}))
local ahead = chain{t1 = 17, t2 = 17, t3 = 17, t4 = 17}
for i = 1, 5 do ahead:move("t" .. i, {at = i < 4 and 16 or 0}) end
ahead:move("load", {at = 16})
local _, problems = ahead:check()
tap.is(problems[1] and problems[1].code, nil, "offsets of 16 and 17 versions", tostring(problems))

-- A lane of several warps that copies for itself, by its threads, because rows of 4 bytes are too short for the copy
-- engine: each warp sees itself that the copies before are complete, no other lane need say it.
for _, warps in ipairs{1, 4} do
  local plan = mr.plan(mr.program("sums", function(p)
    local m, k, j = p:axes("m", "k", "j")
    local X, Y = p:input("X", {m, k}, "f32"), p:output("Y", {m}, "f32")
    local sum = p:carry("sum", {m}, 0)
    p:loop(k, function()
      p:loop(j, function()
        local x = p:load("load", X, {m, k + j})
        p:task("add", function() sum:add(mr.rowsum(mr.rowsum(x, k), j)) end)
      end)
    end)
    Y:store("store", sum)
  end){m = 16, k = 6, j = 5}:graph{tile = {m = 4, k = 1, j = 1}}, mr.device "h200")
  plan:lane("c0", {warps = warps})
  plan:grid{eus = 2}
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0"}) end
  plan:fill_waits()
  correct("a lane of " .. warps .. " warps that copies rows of 4 bytes for itself", plan)
end

-- The versions of a ring that loads fill.
local deep = schedule(programs.highest{m = 128, n = 64, k = 160}, {m = 64, n = 64, k = 16}, {a = 20}, {})
good, problems = deep:check()
tap.ok(not good and problems[1].code == "waits", "a ring of 20 versions is refused")
tap.like(problems[1].location, "hazards%.t%.lua:22$", "  at the line of the versions")
tap.like(problems[1].message, "'a' has 20 versions.*may have 16", "  which the message says")
tap.is(problems[1].hint, "plan:buffers{a=16}", "  and what there may be")
deep:buffers{a = 16}
correct("a ring of 16 versions", deep)

tap.done_testing()
