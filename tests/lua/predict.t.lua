-- What the model predicts for the plans in examples/ on an H200: their order and power,
-- legality with and without each of their waits, and that nothing in the model knows a
-- program by name.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local attention <const> = {"attention_serial", "attention_overlap", "attention_pingpong"}
local names <const> = {"attention_serial", "attention_overlap", "attention_pingpong",
  "gemm_cooperative"}

local function text_of(name)
  local file = assert(io.open(mr.home .. "/examples/" .. name .. ".lua"))
  local text = file:read "a"
  file:close()
  return text
end

-- Speed ---------------------------------------------------------------------------------

local plans, lines = {}, {}
for _, name in ipairs(names) do
  local plan = mr.load_plan(name)
  local legal, problems = plan:check()
  ok(legal, name .. " is legal", problems)
  plans[name], lines[name] = plan, plan:simulate()
  is(plan.device.name, "h200", "  and for the H200")
end

for i = 2, #attention do
  local slow, fast = lines[attention[i - 1]], lines[attention[i]]
  ok(fast.cycles < slow.cycles and fast.seconds < slow.seconds,
    ("%s is faster than %s"):format(attention[i], attention[i - 1]),
    slow.seconds, fast.seconds)
end

-- Warpgroups of a lane ------------------------------------------------------------------

-- Where they do not meet, one computes what the other multiplies, as two lanes do.
local function in_order(m, ways)
  local plan = mr.plan(mr.examples.flash_attention{b=2, h=16, m=4096, d=128}:graph{tile={m=m, n=128}}, mr.device "h200")
  if ways > 1 then plan:split("m", ways) end
  plan:lane("p0", {warps=1})
  plan:buffers{k=2, v=2}
  for _, task in ipairs{"load_q", "load_k", "load_v"} do plan:append(task, {lane="p0"}) end
  for i = 0, ways - 1 do
    plan:lane("c" .. i, {warps=m // ways // 16, registers=m > 64 and 240 or nil})
    for _, task in ipairs{"mma_qk", "softmax", "rescale", "mma_pv", "normalise", "store_o"} do
      plan:append(task .. (ways > 1 and "." .. i or ""), {lane="c" .. i})
    end
  end
  plan:fill_waits()
  return plan:simulate()
end
local one, two, lanes = in_order(64, 1), in_order(128, 1), in_order(128, 2)
ok(one.utilization.tensor < 0.6 and two.utilization.tensor > 0.7, "a second warpgroup uses what the first leaves",
  one.utilization.tensor, two.utilization.tensor)
ok(math.abs(two.cycles / lanes.cycles - 1) < 0.2, "  and takes about as long as a lane of its own", two.cycles, lanes.cycles)
local late = 0
for _, e in ipairs(two.events) do
  if e["end"] < e.start or e.start < e.issue or e.issue < e.ready then late = late + 1 end
end
is(late, 0, "  with one event for both")

-- Power -------------------------------------------------------------------------------

for _, name in ipairs(names) do
  local tl = lines[name]
  local full, limit = tl.full_clock_hz, plans[name].device:number "power.limit"
  local sum = 0
  for _, joules in pairs(tl.energy) do sum = sum + joules end
  tap.near(sum, tl.power * tl.seconds, 1e-9 * sum, name .. ": energy is power over the time")
  local held = tl.clock_hz < full
  ok(held == (math.abs(tl.power - limit) < 0.01) and tl.power < limit + 0.01, "  the limit holds the clock, or does not",
    tl.clock_hz, tl.power)
  ok(tl.seconds > tl.cycles / tl.clock_hz and tl.seconds < tl.cycles / tl.clock_hz + 1e-5,
    "  which makes seconds of cycles")
  ok(tl:summary{width=200}:find(("%s 1%%.%%d+ GHz: %.0f W, product %%d+ %%%%"):format(held and "power%-limited at" or "\nat", tl.power)), "  and is said", tl:summary{})
  ok(tl.uncertainty == 0.066, "  with an uncertainty", tl.uncertainty)
  ok(tl.doubt == tl.uncertainty and tl.tie == tl.noise and tl.noise == 0.08, "  the deprecated names are read, too")
end
do
  local small = mr.load_plan("gemm_cooperative", mr.examples.gemm{m=1024, n=512, k=4096}):simulate()
  is(small.clock_hz, small.full_clock_hz, "a few EUs run at the full clock")
  ok(small.full_clock_hz < plans.gemm_cooperative.device.clock_hz, "  which is that of products")
  ok(small.power < 400, "  and draw less", small.power)
  local same = mr.compare(small, small)
  ok(same.within_noise and tostring(same):find "too near to call", "two equal plans are too near to call")
  ok(same.tie, "  and the deprecated name of the field is read, too")
  local shallow = mr.load_plan("gemm_cooperative", mr.examples.gemm{m=1024, n=512, k=4096})
  shallow:buffers{a=1, b=1}
  ok(not mr.compare(small, shallow:simulate()).within_noise, "what is not, is not")
end

for _, name in ipairs(names) do
  local tl, bound = lines[name], plans[name].graph.program
  local flops = name:find "gemm" and 2 * 8192.0 ^ 3 or 4 * 2 * 16 * 8192.0 ^ 2 * 128
  tap.near(tl.tflops, flops / tl.seconds / 1e12, 1e-6 * tl.tflops,
    name .. ": tflops is the program's work over the time")
  ok(tl.ii >= tl.bound and tl.bound == math.max(tl.res_mii, tl.rec_mii),
    "  no interval is below its bound", tl.ii, tl.res_mii, tl.rec_mii)
  local busy = true
  for _, share in pairs(tl.utilization) do busy = busy and share >= 0 and share <= 1 end
  ok(busy and tl.utilization.tensor > 0.5, "  units are at work at most all the time")
  ok(tl.tflops * 1e12 <= 4096 * 132 * plans[name].device.clock_hz,
    "  and not faster than the tensor cores")
  is(bound.name, name:find "gemm" and "gemm" or "flash_attention", "  the program")
  is(plans[name]:simulate().cycles, tl.cycles, "  the same again")
end

-- Waits ---------------------------------------------------------------------------------

-- The waits of a plan as its script says them: {sTask, list}.
local function waits_of(plan)
  local found = {}
  local recorder = setmetatable({wait = function(_, task, list)
    found[#found + 1] = {task, list}
  end}, {__index = function() return function() end end})
  local env = {assert = assert, require = function()
    return {plan = function() return recorder end, device = function() end}
  end}
  assert(load(plan:script(), "=script", "t", env)({graph = function() end}))
  return found
end

local needed, spare = 0, 0
for _, name in ipairs(names) do
  local plan = plans[name]
  local script = plan:script()
  for _, statement in ipairs(waits_of(plan)) do
    local task, list = statement[1], statement[2]
    for _, on in ipairs(list) do
      local awaited = type(on) == "table" and on[1] or on
      local what = ("%s without %s after %s"):format(name, task, awaited)
      plan:unwait(task, awaited)
      local legal, problems = plan:check()
      local good, message = pcall(plan.simulate, plan)
      if legal then
        spare = spare + 1
        ok(#problems == 0 and good, what .. " is still legal", message)
      else
        needed = needed + 1
        local named = false
        for _, p in ipairs(problems) do
          named = named or p.code == "missing_wait" and p.task == task and p.other == awaited
        end
        ok(#problems > 0 and named, what .. " is reported", problems)
        like(not good and message, "predict%.t%.lua:%d+: simulate: the plan is not legal",
          "  and not simulated")
        plan:wait(task, {on})
        ok(plan:check(), "  until the wait is back")
        plan:undo()
      end
      plan:undo()
      if plan:script() ~= script then is(plan:script(), script, "  undone") end
    end
  end
  is(plan:simulate().cycles, lines[name].cycles, name .. " as before")
end
ok(needed > spare and spare > 0, "most waits are needed", needed, spare)

-- Names ---------------------------------------------------------------------------------

-- Every name that the programs and plans give to something, in other words whose order in
-- the alphabet is another one, too.
local others <const> = {
  -- axes
  b = "zz_batch", h = "y_head", m = "x_row", n = "w_col", d = "v_depth", k = "a_red",
  hkv = "u_group",
  -- tensors and carries
  Q = "Zq", K = "Yk", V = "Xv", O = "Aout", A = "Right", B = "Left", C = "Bottom",
  mx = "top", l = "sum", o = "output", c = "acc",
  -- sTasks
  load_q = "z_take", load_k = "y_bring", load_v = "x_fetch", mma_qk = "w_first",
  mma_pv = "v_second", softmax = "u_shape", rescale = "t_grow", normalise = "s_end",
  store_o = "r_put", load_a = "z_in", load_b = "y_in", mma = "x_dot", epilogue = "w_act",
  store_c = "v_out",
  -- programs
  flash_attention = "f", gemm = "g",
}
-- A buffer's name is the sTask's, without "load_".
local buffers <const> = {
  k = "y_bring", v = "x_fetch", softmax_2 = "u_shape_2", a = "z_in", b = "y_in",
}

local function renamed_key(map)
  return function(key) return (map[key] or key) .. "=" end
end

local function renamed_strings(text)
  return (text:gsub('"([%a_][%w_]*)(%.?%d?)"', function(name, part)
    local bare, number = name:match "^(.-)(_2)$"
    return ('"%s%s%s"'):format(others[bare or name] or bare or name, number or "", part)
  end))
end

local function renamed_program(name)
  return assert(load(renamed_strings(text_of(name)), "=" .. name, "t"))()
end

local function renamed_lane(name)
  return name == "p0" and "producer" or name:gsub("^c", "lane")
end

local function renamed_plan(name, bound)
  local text = renamed_strings(text_of(name):gsub('"([pc]%d?)"', function(lane)
    return '"' .. renamed_lane(lane) .. '"'
  end))
  text = text:gsub("tile=(%b{})", function(t)
    return "tile=" .. t:gsub("([%a_]%w*)=", renamed_key(others))
  end)
  text = text:gsub("plan:buffers(%b{})", function(t)
    return "plan:buffers" .. t:gsub("([%a_][%w_]*)=", renamed_key(buffers))
  end)
  return assert(load(text, "=" .. name, "t"))(bound)
end

local numbers <const> = {"seu", "cause", "iteration", "tile", "ready", "issue", "start", "end"}

local function same(name, tl, other)
  is(other.cycles, tl.cycles, name .. ": as many cycles under other names")
  is(other.ii, tl.ii, "  II")
  is(other.res_mii, tl.res_mii, "  ResMII")
  is(other.rec_mii, tl.rec_mii, "  RecMII")
  for _, unit in ipairs{"tma", "tensor", "cuda", "memory"} do
    is(other.utilization[unit], tl.utilization[unit], "  " .. unit)
  end
  local far, mine, theirs = nil, tl.events, other.events
  for i, e in ipairs(mine) do
    local x = theirs[i]
    for _, key in ipairs(numbers) do
      if x[key] ~= e[key] then far = far or ("event %d: %s"):format(i, key) end
    end
    local task, part = e.task:match "^([^.]*)(.*)$"
    if x.task ~= others[task] .. part or x.lane ~= renamed_lane(e.lane) then
      far = far or ("event %d: %s on %s"):format(i, x.task, x.lane)
    end
  end
  ok(#mine == #theirs and not far, "  every event", far)
end

local fa, gemm = renamed_program "flash_attention", renamed_program "gemm"
local bounds = {
  attention = fa{zz_batch = 2, y_head = 16, x_row = 8192, v_depth = 128},
  gemm = gemm{x_row = 8192, w_col = 8192, a_red = 8192},
}
for _, name in ipairs(names) do
  local plan = renamed_plan(name, bounds[name:match "^[^_]*"])
  local shared = {}
  for _, t in ipairs(plan.tasks) do
    for _, own in ipairs(plans[name].tasks) do
      if t.name == own.name then shared[#shared + 1] = t.name end
    end
  end
  is(table.concat(shared, " "), "", name .. ": no sTask has kept its name")
  ok(plan:check(), "  legal")
  same(name, lines[name], plan:simulate())
end

-- The search neither.
for _, pair in ipairs{
  {mr.examples.gemm{m = 512, n = 768, k = 256}, gemm{x_row = 512, w_col = 768, a_red = 256}},
  {mr.examples.flash_attention{b = 1, h = 2, m = 512, d = 64, causal = true},
    fa{zz_batch = 1, y_head = 2, x_row = 512, v_depth = 64, causal = true}},
} do
  local r = mr.search(pair[1], mr.device "h200", {trials = 12, seconds = 600})
  local x = mr.search(pair[2], mr.device "h200", {trials = 12, seconds = 600})
  is(x.trials .. " " .. x.shapes, r.trials .. " " .. r.shapes,
    pair[1].name .. ": the search tries as much")
  is(x.timeline.cycles, r.timeline.cycles, "  and finds as good a plan under other names")
end

-- A device on which nothing was measured does not look as if predictions for it were exact --------------------

do
  for name, least in pairs{h100 = 0.066, a100 = false, mi300x = false} do
    local plan = mr.load_plan "attention_overlap"
    local text = plan:script():gsub('mr.device "h200"', ("mr.device %q"):format(name)):gsub("registers=240", "registers=128")
    local tl = name == "h100" and assert(load(text))():simulate()
    if not tl then
      local naive = mr.plan(mr.examples.gemm{m = 1024, n = 1024, k = 512}:graph{tile = {m = 64, n = 64, k = 32}}, mr.device(name))
      for _ = 1, 2 do naive:suggest()[1]:apply() end
      tl = naive:simulate()
    end
    is(tl.uncertainty, nil, name .. ": the uncertainty is not known")
    is(tl.uncertainty_least, least or nil, "  at least")
    like(tl.uncertainty_reason, "^" .. name .. " is not calibrated", "  and why")
    local said = least and "%+%- 6.6 %% or more %(h100 is not calibrated%)" or "%(%+%- unknown: " .. name .. " is not calibrated%)"
    like(tl:summary{width = 200}, said, "  a summary says so")
    like(mr.compare(tl, tl).times, said, "  short texts, too")
    like(tl:json{events = false}, '"uncertainty": null,\n "uncertainty_least": ' .. (least and "0.066" or "null") .. ',\n "uncertainty_reason": "'
      .. name .. " is not calibrated", "  and JSON")
  end
  is(lines.gemm_cooperative.uncertainty_reason, nil, "where it is known, there is no reason")
end

-- Where products take most of the time, a device without numbers of power says that power was left out ----------

do
  local said = "clock not limited by power: this device has no power model"
  local tl = mr.load_plan("attention_overlap", {device = "h100"}):simulate()
  for what, text in pairs{summary = tl:summary{width = 200}, text = tl:text{width = 200}, reason = tl.uncertainty_reason,
    why = tl:proof() and tostring(tl:why())} do
    like(text, said, "power that was left out: " .. what)
  end
  local bound, tile = mr.examples.gemm{m = 4096, n = 4096, k = 4096}, {m = 128, n = 256, k = 64}
  local found = mr.search(bound, mr.device "h100", {trials = 30, seconds = 600, tile = tile})
  like(found, said, "  what a search found")
  ok(not tostring(mr.load_plan("attention_overlap"):simulate():summary{width = 200}):find(said, 1, true), "  not of a device that has them")
  local reads = mr.search(mr.examples.topk_routing{m = 8192, n = 64}, mr.device "h100", {trials = 10, seconds = 600})
  ok(not tostring(reads):find(said, 1, true) and not reads.timeline.uncertainty_reason:find(said, 1, true), "  nor where there are few products")
end

-- Speed is said in bytes where those count, with the share of the device's bandwidth ------------------------

do
  local softmax = mr.program("rows", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
    local x = p:load("load_x", X)
    Y:store("store_y", p:task("softmax", function()
      local e = mr.exp2(x - mr.rowmax(x, n))
      return e / mr.rowsum(e, n)
    end))
  end)
  local r = assert(mr.search(softmax:bind{m = 8192, n = 2048}, mr.device "h200", {tile = {m = 4, n = 2048}, trials = 20, measure = false}))
  local tl = r.timeline
  local bytes = 2 * 2 * 8192 * 2048
  tap.near(tl.gbps, bytes / tl.seconds / 1e9, 1e-6 * tl.gbps, "gbps is the program's bytes over the time")
  local rate = mr.device "h200":number "memory.global.rate"
  tap.near(tl.bandwidth_share, bytes / tl.seconds / rate, 1e-6, "  and bandwidth_share that of the device's memory")
  local said = ("%.3g TB/s, %.0f %% of the bandwidth"):format(tl.gbps / 1e3, 100 * tl.bandwidth_share)
  local function says(text, what)
    text = text:gsub("%s+", " ")
    ok(text:find(said, 1, true) ~= nil and not text:find "FLOP/s", what, text:sub(1, 300))
  end
  says(tostring(r), "a search says it")
  says(tl:text(), "a timeline")
  says(tl:summary(), "its summary")
  local path = os.tmpname()
  tl:svg(path)
  local file <close> = assert(io.open(path))
  says(file:read "a", "the title of a picture")
  os.remove(path)
  like(tl:json{events = false}, '"gbps": [%d.]+, *\n? *"bandwidth_share": 0%.', "JSON has both")
  like(r:json(), '"gbps": [%d.]+, *\n? *"bandwidth_share": 0%.', "  also that of a search")

  local both = mr.load_plan "decoding_split":simulate():summary()
  like(both, "TFLOP/s,%s+[%d.]+ TB/s, %d+ %% of%s+the%s+bandwidth", "where both count, both are said")
  ok(not lines.gemm_cooperative:summary():find "B/s", "where products count, they alone")
end

-- Taps of a stencil ----------------------------------------------------------------------

-- Three loads of X, at distances along one of its axes: of 64 rows of 8 MB.
do
  local function seconds_of(along)
    local bound = mr.program("taps", function(p)
      local a, b = p:axes("a", "b")
      local X, Y = p:input("X", {a, b}), p:output("Y", {a, b})
      local function tap(i) return p:load("x" .. i, X, along == "a" and {a + i, b} or {a, b + 8 * i}) end
      local x, y, z = tap(0), tap(1), tap(2)
      Y:store("store_y", p:task("add", function() return x + y + z end))
    end){a = 64, b = 4 << 20}
    local plan = mr.plan(bound:graph{tile = {a = 1, b = 4096}}, mr.device "h200")
    plan:lane("c0", {warps = 4})
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
    plan:buffers{x0 = 2, x1 = 2, x2 = 2}
    plan:fill_waits()
    return plan:simulate().seconds
  end
  local once = 2 * 64 * (4 << 20) * 2 / 4.55e12 * (1 + mr.device "h200":number "memory.global.switching" / 2)   -- half of it written
  ok(seconds_of "b" < 1.5 * once, "what taps near each other read comes from device memory once", seconds_of "b" / once)
  ok(seconds_of "a" > 1.9 * once, "not if more than L2 holds is read in between", seconds_of "a" / once)
end

tap.done_testing()
