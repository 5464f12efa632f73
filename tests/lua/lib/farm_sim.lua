-- farm_sim.lua - ranks of a farm as coroutines in virtual time: messages take the time of a network, what rank 0 does is charged to it.
--
-- `local sim = dofile(".../farm_sim.lua")`
--
-- sim.play{size=, body=, latency=, bandwidth=, charge=, real=, stop=} -> what each rank returned by rank (an error as a table {why=}), and a
-- table: seconds (when the last rank ended), busy (seconds of rank 0), count and cost (messages that rank 0 got, and seconds that it
-- needed for them in all, by label: the kind, and of an ask the name; the last result is "last result", and
-- "none" what it does after it has found no message).
--
-- body(farm, rank): farm has the methods of core.farm(), and now(), sleep(seconds), and spend(seconds), by which code on rank 0 says that it
-- needs this time. latency: seconds of a message, or a function; bandwidth: bytes a second of each rank's link, each way. charge(label):
-- seconds of rank 0 for a message; real: what its code takes on this machine is charged, too. stop: the virtual time to stop at; ranks that
-- go on then return nothing.
--
-- sim.random(seed) -> a function: a number from 0 up to 1.
local sim = {}

function sim.random(seed)
  local state = seed * 7919 + 12345
  return function()
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 11) / (1 << 52)
  end
end

---- events in the order of their times ---------------------------------------------------------------

local function before(a, b) return a.time < b.time or a.time == b.time and a.number < b.number end

local function push(heap, event)
  local i = #heap + 1
  while i > 1 and before(event, heap[i // 2]) do
    heap[i] = heap[i // 2]
    i = i // 2
  end
  heap[i] = event
end

local function pop(heap)
  local first, last = heap[1], table.remove(heap)
  if #heap == 0 then return first end
  local i, n = 1, #heap
  while 2 * i <= n do
    local child = 2 * i
    if child < n and before(heap[child + 1], heap[child]) then child = child + 1 end
    if not before(heap[child], last) then break end
    heap[i], i = heap[child], child
  end
  heap[i] = last
  return first
end

---- ranks ----------------------------------------------------------------------------------------------

local function label_of(text)
  local kind = text:match '"kind": "(%w+)"'
  return kind == "ask" and "ask " .. (text:match '"name": "([^"]*)"' or "?") or kind or "?"
end

function sim.play(o)
  local latency = type(o.latency) == "function" and o.latency or function() return o.latency or 0 end
  local per_byte = o.bandwidth and 1 / o.bandwidth or 0
  local heap, number, now, left = {}, 0, 0, o.size
  local ranks, values, stats = {}, {}, {busy = 0, count = {}, cost = {}}
  local slice, sends                                    -- of the rank that runs: seconds that it needs, messages that it sends

  local function at(time, event)
    number = number + 1
    event.time, event.number = time, number
    push(heap, event)
  end

  -- A message leaves when what was sent before it has, and never overtakes an earlier one between the same ranks.
  local function transfer(from, to, text, time)
    local a, b, bytes = ranks[from], ranks[to], #text * per_byte
    a.out = math.max(a.out, time) + bytes
    local arrives = math.max(a.out + latency(), a.last_to[to] or 0)
    if o.bandwidth then
      arrives = math.max(arrives, b.inward + bytes)
      b.inward = arrives
    end
    a.last_to[to] = arrives
    at(arrives, {to = to, from = from, text = text})
  end

  local function run(rank)
    local r = ranks[rank]
    r.waiting, r.wakes, slice, sends = false, nil, 0, {}
    local label, began = r.label, rank == 0 and o.real and os.clock()
    local good, want, seconds = coroutine.resume(r.co)
    if began then slice = slice + os.clock() - began end
    for _, m in ipairs(sends) do if label == "result" and m.text:find('"kind": "end"', 1, true) then label = "last result" break end end
    if rank == 0 and label then
      slice = slice + (o.charge and label ~= "none" and o.charge(label) or 0)
      stats.count[label], stats.cost[label] = (stats.count[label] or 0) + 1, (stats.cost[label] or 0) + slice
    end
    r.label = nil
    if rank == 0 then stats.busy = stats.busy + slice end
    r.time = now + slice
    for _, m in ipairs(sends) do transfer(rank, m.to, m.text, r.time) end
    if coroutine.status(r.co) == "dead" then
      values[rank], left = good and want or {why = tostring(want)}, left - 1
      stats.seconds = math.max(stats.seconds or 0, r.time)
      return
    end
    r.waiting, r.wakes = want == "receive", {rank = rank}
    at(r.waiting and r.first <= r.last and r.time or r.time + seconds, r.wakes)
  end

  local function new_farm(rank)
    local farm = {}
    function farm:rank() return rank end
    function farm:size() return o.size end
    function farm:host() return "host" .. rank // 8 end
    function farm:now() return now end
    function farm:spend(seconds) slice = slice + seconds end
    function farm:sleep(seconds) coroutine.yield("sleep", seconds) end
    function farm:send(to, text) sends[#sends + 1] = {to = to, text = text} end
    function farm:closed_rank() return nil end
    function farm:receive(seconds)
      local r = ranks[rank]
      coroutine.yield("receive", seconds)
      if r.first > r.last then return nil end
      local m = r[r.first]
      r[r.first], r.first = nil, r.first + 1
      return m.text, m.from
    end
    return farm
  end

  for rank = 0, o.size - 1 do
    local farm = new_farm(rank)
    ranks[rank] = {co = coroutine.create(function() return o.body(farm, rank) end), first = 1, last = 0, out = 0, inward = 0, time = 0, last_to = {}}
    ranks[rank].wakes = {rank = rank}
    at(0, ranks[rank].wakes)
  end
  while left > 0 and heap[1] and heap[1].time <= (o.stop or math.huge) do
    local e = pop(heap)
    now = e.time
    if e.text then
      local r = ranks[e.to]
      r.last = r.last + 1
      r[r.last] = e
      if r.waiting and r.wakes.time > math.max(now, r.time) then
        r.wakes = {rank = e.to}
        at(math.max(now, r.time), r.wakes)
      end
    elseif ranks[e.rank].wakes == e then
      local r = ranks[e.rank]
      if e.rank == 0 then r.label = r.first <= r.last and label_of(r[r.first].text) or "none" end
      run(e.rank)
    end
  end
  return values, stats
end

sim.push, sim.pop = push, pop                           -- (heap, {time=, number=}), by these

return sim
