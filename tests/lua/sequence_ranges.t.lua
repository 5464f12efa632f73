-- seq:ranges: a size that is left to the launch, divided into ranges with a plan each. The division is compared with all divisions by brute
-- force; the kernels with the reference, at the edges of the ranges, too.
local tap = dofile(os.getenv "MILLRACE_HOME" .. "/tests/lua/tap.lua")
local any, gemm = mr.any, mr.examples.gemm
local device = mr.device("h200", {eus = 2})             -- small sizes already fill it

local fails = tap.fails_with

local mlp = mr.sequence("mlp", function(s)
  local m, d, f = s:sizes("m", "d", "f")
  local x, w1, w2 = s:input("x", {m, d}), s:input("w1", {f, d}), s:input("w2", {d, f})
  local h, y = s:temp("h", {m, f}), s:output("y", {m, d})
  s:call("up", gemm{m = m, n = f, k = d, activation = "silu"}, {A = x, B = w1, C = h})
  s:call("down", gemm{m = m, n = d, k = f}, {A = h, B = w2, C = y})
end)
local seq = mlp{m = any{max = 512, multiple = 8, typical = {24}}, d = 32, f = 64}

local function with_tile(m)
  local sp = mr.sequence_plan(seq, device)
  for _, c in ipairs(sp.calls) do
    local plan = mr.plan(seq:program(c.name):graph{tile = {m = m, n = 32, k = 32}}, device)
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:fill_waits()
    sp:use(c.name, plan)
  end
  sp:arena()
  return sp
end
local plans = {with_tile(16), with_tile(64), with_tile(128)}

---- the division --------------------------------------------------------------------------------

-- By size: what each plan is predicted to take, and the best.
local function predicted(sizes)
  local all = {}
  for i, m in ipairs(sizes) do
    all[i] = {best = math.huge}
    for p, sp in ipairs(plans) do
      all[i][p] = sp:simulate{m = m}.seconds
      all[i].best = math.min(all[i].best, all[i][p])
    end
  end
  return all
end

-- The least greatest loss of `count` ranges from size i on, of all divisions and all plans.
local function least(times, i, count)
  if i > #times then return 0 end
  if count == 0 then return math.huge end
  local best = math.huge
  for p = 1, #plans do
    local worst = 0
    for last = i, #times do
      worst = math.max(worst, times[last][p] / times[last].best - 1)
      best = math.min(best, math.max(worst, least(times, last + 1, count - 1)))
    end
  end
  return best
end

local sizes = {8, 16, 24, 64, 72, 128, 136, 256, 512}
local times = predicted(sizes)
for count = 1, 4 do
  local r = seq:ranges(device, {plans = plans, sizes = sizes, at_most = count, loss = 0})
  tap.near(r.loss, least(times, 1, count), 1e-12, ("%d ranges lose as little as any can"):format(count))
  tap.ok(#r.rows <= count, "there are no more of them")
end
local few = {}
for count = 1, 4 do few[count] = least(times, 1, count) end
tap.ok(few[1] > 0.02 and few[3] < few[1], "one plan alone loses time here", table.concat(few, " "))
local r = seq:ranges(device, {plans = plans, sizes = sizes, loss = few[2] + 1e-9})
tap.is(#r.rows, few[1] <= few[2] + 1e-9 and 1 or 2, "there are as few ranges as the loss allows")

r = seq:ranges(device, {plans = plans, loss = 0})
tap.is(#r.sizes, 64, "of few sizes all are predicted")
tap.ok(#r.rows > 1, "and divided", tostring(r))
tap.is(r.rows[1].from, 8, "ranges begin at the least size")
tap.is(r.rows[#r.rows].to, 512, "and end at the largest")
for i = 2, #r.rows do tap.is(r.rows[i].from, r.rows[i - 1].to + 8, "each begins behind the one before it") end
for _, row in ipairs(r.rows) do
  for i, m in ipairs{row.from, row.to} do
    tap.is(r:plan(m), row.plan, "a size has the plan of its range")
    tap.near(row.plan:simulate{m = m}.seconds, row.seconds[i], 1e-12, "which is predicted as the table says")
    tap.is(r:simulate{m = m}.seconds, row.plan:simulate{m = m}.seconds, "also by the ranges")
  end
  tap.ok(row.plan:check(), "and legal")
end
tap.ok(r.rows[1].plan.arena_bytes < r.rows[#r.rows].plan.arena_bytes, "the plan of a range has temporaries for its largest size")
tap.is(tostring(r):match "^[^;]*", ("sequence mlp on h200: %d ranges of m"):format(#r.rows), "ranges are shown as a table")
tap.is(select(2, tostring(r):gsub("\n", "")), #r.rows + 1, "with a line for each")

---- running -------------------------------------------------------------------------------------

local k = r:compile{target = "host"}
local list = {8, 24, 40, 512}
for _, row in ipairs(r.rows) do
  list[#list + 1] = row.from
  list[#list + 1] = row.to
end
for seed, m in ipairs(list) do
  local ran, found = pcall(k.check, k, {m = m, seed = seed})
  tap.ok(ran and found.ok, ("kernels are right at %d"):format(m), tostring(found))
end
local inputs = seq:at_sizes{m = 40}:inputs{seed = 2}
tap.ok(select(2, k:run(inputs).y:max_error(seq:reference(inputs).y)) < 1e-2, "the arrays' shapes choose the range")

---- searched ------------------------------------------------------------------------------------

local searched = seq:ranges(device, {trials = 3, measure = false, fresh = true, at = {16, 256}, sizes = {8, 64, 512}, at_most = 2})
tap.ok(searched.rows[1].at == 16 or searched.rows[1].at == 256, "plans are made where they are asked for", tostring(searched))
tap.ok(searched:compile{target = "host"}:check{m = 72}.ok, "and are right at other sizes")
local default = mlp{m = any{max = 64, multiple = 8}, d = 32, f = 64}:ranges(device, {trials = 1, measure = false, fresh = true})
tap.ok(({[16] = true, [32] = true, [64] = true})[default.rows[1].at], "or at the largest size, half of it and so on", tostring(default))

---- what is refused -----------------------------------------------------------------------------

local function refused(text, ...)
  local arguments = table.pack(...)
  fails("refused", function() return seq:ranges(table.unpack(arguments, 1, arguments.n)) end, text, "sequence_ranges.t.lua")
end
refused("ranges: at_most must be an integer of at least 1, got 0", device, {at_most = 0})
refused("ranges: loss must be a share of the time, 0.02 for 2 %, got -1", device, {loss = -1})
refused("ranges: sizes: 12 is not a size 'm' of the sequence, which is for m up to 512 in steps of 8", device, {sizes = {12}})
refused("ranges: at: 1024 is not a size 'm'", device, {at = {1024}})
refused("ranges: a plan is for device 'h200', not 'a100'", "a100", {plans = plans})
refused("unknown option 'most'", device, {most = 2})
refused("plan of a sequence expected", device, {plans = {1}})
fails("no size", function() return mlp{m = 8, d = 32, f = 64}:ranges(device) end, "ranges: sequence 'mlp' leaves no size to the launch; ranges are of one size")
fails("two sizes", function() return mlp{m = any{max = 8}, d = 32, f = any{max = 8}}:ranges(device) end, "ranges: sequence 'mlp' leaves f and m to the launch")
fails("too large", function() return k:check{m = 520} end, "check: size 'm' is 520; the sequence is for m up to 512 in steps of 8")
fails("no multiple", function() return r:plan(12) end, "plan: size 'm' is 12; the sequence is for m up to 512 in steps of 8")

tap.done_testing()
