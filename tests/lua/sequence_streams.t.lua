-- Streams that plans of sequences choose: the same as by trying each call with all of the plan written again; and how the work grows with
-- the number of calls.
local tap = dofile(os.getenv "MILLRACE_HOME" .. "/tests/lua/tap.lua")
local core = require "millrace.core"
local choose_streams = require "millrace.sequence_streams"

---- the definition --------------------------------------------------------------------------------

local WORTH <const> = 0.005

local function arrange(sp, names, edges, streams, early)
  local last = {}
  for i, name in ipairs(names) do
    local latest, after = {}, {}
    for _, e in ipairs(edges) do
      if e.to == i and streams[e.from] ~= streams[i] then latest[streams[e.from]] = math.max(latest[streams[e.from]] or 0, e.from) end
    end
    for _, from in pairs(latest) do after[#after + 1] = names[from] end
    sp:launch(name, {stream = streams[i], after = after, early = early and last[streams[i]] ~= nil and #after == 0})
    last[streams[i]] = i
  end
  sp:arena()
end

local function choose_by_trying(sp, lines)
  local names, edges, streams, early = core.sequence_call_names(sp.sequence), core.sequence_edges(sp.sequence), {}, false
  for _, call in ipairs(sp.calls) do early = early or call.early end
  for i in ipairs(names) do streams[i] = 0 end
  local best = core.sequence_timeline(sp, lines).seconds
  for i = 2, #names do
    local depends = false
    for _, e in ipairs(edges) do depends = depends or e.to == i and e.from == i - 1 end
    if not depends then
      streams[i] = 1
      arrange(sp, names, edges, streams, early)
      local seconds = core.sequence_timeline(sp, lines).seconds
      if seconds < best * (1 - WORTH) then best = seconds else streams[i] = 0 end
    end
  end
  arrange(sp, names, edges, streams, early)
end

---- random sequences ------------------------------------------------------------------------------

local state = 1
local function below(n)                                 -- from 0
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % n
end

local function sum(inputs)
  return mr.program("sum" .. inputs, function(p)
    local m, n = p:axes("m", "n")
    local all
    for i = 1, inputs do
      local x = p:load("load_" .. i, p:input("X" .. i, {m, n}, "f32"))
      all = all and all + x or x
    end
    p:output("Y", {m, n}, "f32"):store("store", p:task("work", function() return all * 2 end))
  end)
end

-- Programs of one to three inputs and two sizes, and a plan for each.
local SMALL <const>, LARGE <const> = 64, 2048
local programs, plans = {}, {}
for inputs = 1, 3 do
  for _, m in ipairs{SMALL, LARGE} do
    local bound = sum(inputs){m = m, n = 64}
    programs[inputs .. " " .. m] = bound
    plans[bound] = mr.search(bound, "h200", {trials = 20, measure = false}).plan
  end
end

-- A sequence whose calls read results of those before them, and a plan on one stream. reach: how many calls back.
local function draw(calls, reach)
  local used = {}
  local seq = mr.sequence("drawn", function(s)
    local tensors = {[0] = s:input("x", {LARGE, 64}, "f32")}
    for i = 1, calls do
      local inputs, m = i == calls and 3 or 1 + below(3), below(2) == 0 and SMALL or LARGE
      local given = {}
      for k = 1, inputs do given["X" .. k] = tensors[math.max(0, i - 1 - below(reach))]:rows(0, m) end
      tensors[i] = i == calls and s:output("y", {m, 64}, "f32") or s:temp("t" .. i, {LARGE, 64}, "f32")
      given.Y = tensors[i]:rows(0, m)
      used[i] = programs[inputs .. " " .. m]
      s:call("c" .. i, used[i], given)
      if i < calls and m == SMALL then                     -- a temporary is complete before it is read
        s:call("d" .. i, programs["1 " .. LARGE], {X1 = tensors[0], Y = tensors[i]})
        used["d" .. i] = programs["1 " .. LARGE]
      end
    end
  end)()
  local sp = mr.sequence_plan(seq, "h200")
  for _, name in ipairs(core.sequence_call_names(seq)) do
    sp:use(name, plans[used[name] or used[tonumber(name:sub(2))]])
  end
  return sp
end

local function timelines(sp)
  local lines, of = {}, {}
  for i, p in ipairs(core.sequence_plans(sp)) do
    local key = p:script()
    of[key] = of[key] or p:simulate()
    lines[i] = of[key]
  end
  return lines
end

local differ, second = 0, 0
for _ = 1, 150 do
  local sp = draw(2 + below(5), 1 + below(5))
  local want, lines = sp:copy(), timelines(sp)
  choose_by_trying(want, lines)
  choose_streams(sp, lines)
  if sp:script() ~= want:script() then differ = differ + 1 end
  if sp:script():find "stream=1" then second = second + 1 end
  if not sp:check() then differ = differ + 1 end
end
tap.is(differ, 0, "the same streams, waits and offsets as by trying each call")
tap.ok(second > 20 and second < 140, "some have a second stream", second)

---- hundreds of calls -----------------------------------------------------------------------------

-- Steps of the Lua machine: a measure of the work that does not depend on the machine.
local function steps(f)
  local n = 0
  debug.sethook(function() n = n + 1 end, "", 100)
  f()
  debug.sethook()
  return n
end

local function work(calls)
  local sp = draw(calls, 4)
  local lines = timelines(sp)
  return steps(function() choose_streams(sp, lines) end), sp
end
local few, many = (work(50)), (work(200))
tap.ok(many < 6 * few, "four times as many calls are about four times the work", ("%d, %d"):format(few, many))

local _, sp = work(300)
tap.ok(#sp.calls > 300, "hundreds of calls can be called", #sp.calls)
tap.ok(sp:check(), "and planned")
tap.is(#sp:simulate().kernels, #sp.calls, "and predicted")
tap.done_testing()
