-- remote.lua - servers of queue.lua on other ranks of a farm, for mr.search{farm=true}: the search itself is on rank 0, and each other rank
-- with the device measures candidates there.
--
-- All ranks call mr.search with the same program. In addition to those of ranks.lua the messages are
--
--   helpers    to a rank that measures: which others compile for it
--   measure    to a rank: an item of the queue;  incumbent  the item that others are raced against from now on;  drop  an item
--   lead       to a rank: it may measure though there is no incumbent yet
--   row        to rank 0: the row of an item
--
-- A plan travels as its script. An item that fails on one rank is given to another one, once. Times are compared by ratios to the
-- incumbent, which each rank measures on its own device.

local core = require "millrace.core"
local farm_devices = require "millrace.farm_devices"
local helpers = require "millrace.helpers"

local remote = {}

local SILENCE <const> = 3600                            -- seconds after which a rank is lost that has items and from which nothing has come
local TRIES <const>, FAILURES <const> = 2, 4            -- of an item that fails; of a rank in a row, after which it measures no more
local POLL <const> = 0.02                               -- seconds between two looks at messages while kernels are compiled
local STATUS <const> = {ok = true, skipped = true, wrong = true, failed = true}

---- rows as messages --------------------------------------------------------------------------------

local BY_ID <const> = {"results", "wrong", "failed", "notes"}  -- fields of the row of finalists: tables by the numbers of items

-- JSON has texts as names of fields: {[3]=x} becomes {{id=3, value=x}}.
local function pack(row)
  local m = {}
  for key, value in pairs(row) do m[key] = value end
  for _, key in ipairs(BY_ID) do
    if row[key] then
      m[key] = {}
      for id, value in pairs(row[key]) do table.insert(m[key], {id = id, value = value}) end
    end
  end
  m.plan = nil
  return m
end

local function unpack_row(m)
  for _, key in ipairs(BY_ID) do
    local list = m[key]
    m[key] = list and {}
    for _, x in ipairs(list or {}) do m[key][x.id] = x.value end
  end
  return m
end

-- What is wrong with a row that a rank sent, or nil.
local function fault(row)
  if type(row) ~= "table" or math.type(row.id) ~= "integer" then return "a row without a number" end
  if not STATUS[row.status] then return "a row of an unknown status" end
  if row.status == "ok" and not row.ms and not row.results then return "a row without a time" end
  for _, key in ipairs(BY_ID) do
    for _, x in ipairs(row[key] or {}) do
      if type(x) ~= "table" or math.type(x.id) ~= "integer" then return ("a row whose %s have no numbers"):format(key) end
    end
  end
  for _, key in ipairs{"ms", "min", "max", "ratio", "low", "high", "relative", "device_seconds"} do
    if row[key] ~= nil and type(row[key]) ~= "number" then return ("a row whose %s is no number"):format(key) end
  end
  if row.right ~= nil and math.type(row.right) ~= "integer" then return "a row of finalists whose right one has no number" end
  for _, x in ipairs(row.results or {}) do
    for _, key in ipairs{"ms", "min", "max", "ratio"} do
      if type(x.value) ~= "table" or type(x.value[key]) ~= "number" then return ("a row of finalists one of whose %s is no number"):format(key) end
    end
  end
end

---- rank 0 -------------------------------------------------------------------------------------------

local function item_message(item)
  local m = {id = item.id, script = item.script, anyway = item.anyway}
  if item.finalists then
    m.finalists = {}
    for i, x in ipairs(item.finalists) do m.finalists[i] = {id = x.id, script = x.script} end
  end
  return m
end

local group = {}                                        -- the servers of a search
group.__index = group

local handle = {}
handle.__index = handle

local function give(h, server)
  local g = server.group
  if not next(server.holds) then server.heard = g.ranks.clock() end
  h.server = server
  server.holds[h.item.id] = h
  g.ranks:send(server.rank, {kind = "measure", item = item_message(h.item)})
  g:have_lead()
end

-- Until there is an incumbent, one rank alone measures, of those that hold items: times of different devices are compared by ratios to it.
function group:have_lead()
  if self.has_incumbent or next(self.untaken) or self.lead and next(self.lead.holds) then return end
  for _, server in ipairs(self.servers) do
    if next(server.holds) then
      self.lead = server
      return self.ranks:send(server.rank, {kind = "lead"})
    end
  end
end

local function count(holds)
  local n = 0
  for _ in pairs(holds) do n = n + 1 end
  return n
end

-- The server with the least to do, but not this one and none that is left out; nil: there is none.
function group:another(server)
  local best, least
  for _, x in ipairs(self.servers) do
    local n = count(x.holds)
    if x ~= server and x.capacity > 0 and (not best or n < least) then best, least = x, n end
  end
  return best
end

-- A rank on which one item after the other fails, while there are others, gets no more of them.
function group:leave_out(server)
  server.capacity = 0
  self.warn(("rank %d measures nothing any more: %d candidates in a row have failed there"):format(server.rank, FAILURES))
  for id, h in pairs(server.holds) do
    server.holds[id] = nil
    self.ranks:send(server.rank, {kind = "drop", id = id})
    give(h, self:another(server))
  end
end

-- A rank from which nothing has come for long, as where a driver never returns, gets no more items, and another one those that it has.
function group:look_for_lost()
  local now = self.ranks.clock()
  for _, server in ipairs(self.servers) do
    if next(server.holds) and not self.ranks.lost[server.rank] and now - server.heard > self.silence then
      local name = ("rank %d on %s"):format(server.rank, server.host)
      local why = ("nothing has come from %s for %g s"):format(name, self.silence)
      self.ranks.lost[server.rank] = name
      self.warn(why .. ": it measures nothing until something does")
      server.wanted, server.capacity = server.capacity, 0
      for id, h in pairs(server.holds) do               -- any of these may be what it hangs in
        h.failures = h.failures + 1
        local other = h.failures < TRIES and self:another(server)
        server.holds[id] = nil
        if other then give(h, other) else h.row = {id = id, status = "failed", why = why, script = h.item.script} end
      end
      self:have_lead()
    end
  end
end

local function different(rank, host)
  return ("farm: rank %d on %s searches for something else than rank 0: the script must make the same calls everywhere, with the same program "
    .. "and sizes, and name the device, as in mr.search(program, \"h200\", {farm=true})"):format(rank, host)
end

-- Take a row of a server: of an item that it holds, or of one that was dropped. A failed item goes to another server, once.
function group:take_row(server, row)
  row.by = ("rank %d on %s"):format(server.rank, server.host)
  local h = server.holds[row.id]
  server.holds[row.id] = nil
  if not h then                                         -- it crossed the message that dropped it
    if row.status == "ok" and row.script then self.measured[row.script] = unpack_row(row) end
    return
  end
  local failed = row.status == "failed" or next(row.failed or {}) ~= nil
  server.failures = failed and server.failures + 1 or 0
  h.failures = h.failures + (failed and 1 or 0)
  local other = failed and self:another(server)
  if other and h.failures < TRIES then
    give(h, other)
  else
    h.row = unpack_row(row)
    self.untaken[h] = h.row.status == "ok" or nil
  end
  if other and server.failures >= FAILURES and server.capacity > 0 then self:leave_out(server) end
  self:have_lead()
end

-- Take a message, and wait for it, but no longer than so many seconds. False: none came. A rank that was lost may come back: it goes on if
-- it was lost in this search, and else waits for the result.
function group:receive(seconds)
  local m, from = self.ranks:next(seconds)
  if not m then return false end
  local server = self.of_rank[from]
  if server then server.heard = self.ranks.clock() end
  if server and self.ranks.lost[from] then
    self.ranks.lost[from], server.capacity = nil, server.wanted
  elseif self.ranks.lost[from] then
    self.ranks:welcome(m, from, self.name, different)
    return true
  end
  local wrong = (m.kind ~= "row" or not server) and ("'%s'"):format(m.kind) or fault(m.row)
  if wrong then core.raise(("farm: rank %d sent %s"):format(from, wrong)) end
  self:take_row(server, m.row)
  return true
end

local server = {}
server.__index = server

function server:begin(item)
  item.script = item.script or item.plan and item.plan:script()
  local h = setmetatable({item = item, failures = 0, server = self}, handle)
  h.row = not item.finalists and self.group.measured[item.script] or nil
  if h.row then
    h.row.id = item.id
    return h
  end
  local taker = self.capacity > 0 and self or self.group:another(self)
  if taker then give(h, taker) else h.row = {id = item.id, status = "failed", why = "no rank measures any more", script = item.script} end
  return h
end

function server:wait(seconds)
  self.group:look_for_lost()
  if self.group:receive(seconds) then
    while self.group:receive(0) do end
  end
end

function handle:poll(incumbent)
  local s = self.server
  if incumbent and s.incumbent ~= incumbent.id then
    s.incumbent, s.group.has_incumbent = incumbent.id, true
    s.group.ranks:send(s.rank, {kind = "incumbent", item = item_message(incumbent)})
  end
  s.group.untaken[self] = nil
  return self.row
end

function handle:drop()
  self.server.group.untaken[self] = nil
  self.server.holds[self.item.id] = nil
  self.server.group.ranks:send(self.server.rank, {kind = "drop", id = self.item.id})
end

-- Why no rank offers a device: as those that would are lost, or by what these say. nil: none was asked.
function group:why_none(offers)
  for rank = 1, self.ranks.size - 1 do
    if self.ranks.lost[rank] then return self.ranks.lost[rank] .. ": nothing has come from it since it was lost" end
  end
  return farm_devices.without(offers)
end

-- Rank 0 begins a search with all ranks. Returns a group:
--   servers   of the ranks that measure, perhaps none;   driver   theirs
--   without   why there is none; nil if there is one, or the search does not measure
--   :finish(result)  all ranks return the result, a plain value;   :fail(why)  all raise it
-- warn(text): tells the user of ranks. silence: seconds (3600) until a rank is lost that has items, or is not ready, and sends nothing.
function remote.begin(ranks, name, warn, silence)
  ranks.maps = ranks.maps + 1
  local g = setmetatable({ranks = ranks, name = core.hash(name), servers = {}, of_rank = {}, warn = warn, silence = silence or SILENCE,
    untaken = {},                                       -- handles with a measured row that the policy has not polled: the next incumbent?
    measured = {}}, group)                              -- rows of candidates that were dropped, by script
  local offers, lost = {}, table.move(ranks.lost, 1, ranks.size - 1, 1, {})
  local good, why = core.try(ranks.gather, ranks, g.name, offers, {different = different, silence = g.silence, warn = warn})
  if not good then g:fail(why) end
  for rank = 1, ranks.size - 1 do
    if lost[rank] and ranks.lost[rank] then warn(("nothing has come from %s since it was lost: it is not waited for"):format(lost[rank])) end
  end
  local chosen, wrong = farm_devices.choose(offers, warn)
  if wrong then g:fail(select(2, core.try(core.raise, "search: " .. wrong))) end   -- with the user's line
  local given = helpers.assign(offers, chosen)
  for rank = 1, ranks.size - 1 do
    if chosen[rank] then
      local capacity = helpers.workers(offers[rank].offer.capacity, given[rank])
      local s = setmetatable({group = g, rank = rank, host = offers[rank].host, holds = {}, failures = 0, capacity = capacity}, server)
      if given[rank] then ranks:send(rank, {kind = "helpers", list = given[rank]}) end
      g.servers[#g.servers + 1], g.of_rank[rank], g.driver = s, s, offers[rank].offer.driver
    end
  end
  if not g.servers[1] then g.without = g:why_none(offers) end
  return g
end

function group:finish(result)
  for rank = 1, self.ranks.size - 1 do self.ranks:send(rank, {kind = "end", result = result}) end
end

function group:fail(why)
  for rank = 1, self.ranks.size - 1 do self.ranks:send(rank, {kind = "end", why = tostring(why)}) end
  error(why, 0)
end

---- other ranks ------------------------------------------------------------------------------------------

local function item_of(m, bound)
  local item = {id = m.id, script = m.script, anyway = m.anyway, bound = bound}
  if m.finalists then
    item.finalists = {}
    for i, x in ipairs(m.finalists) do item.finalists[i] = item_of(x, bound) end
  end
  return item
end

-- The handles that have not given a row, in the order of their numbers.
local function sorted(handles)
  local ids = {}
  for id in pairs(handles) do ids[#ids + 1] = id end
  table.sort(ids)
  return ids
end

-- Another rank: measure what comes, until the result does, which is returned. o: seed=, measure=false: offer no device.
function remote.work(ranks, name, bound, device, o)
  ranks.maps = ranks.maps + 1
  local m
  ranks:join(name, function()
    if o.measure == false then return nil end
    local offer, why = farm_devices.offer(ranks, device)
    if offer then offer.capacity = math.max(core.compile_state(), 2) end
    return offer, why
  end, helpers.compilers)
  local helped <close> = helpers.use(ranks)             -- by none until rank 0 names them
  local between <const>, stop <const> = helpers.serve(ranks)
  local measuring, handles, incumbent, leads = nil, {}, nil, false
  local function answer(id, row)
    handles[id] = nil
    ranks:send(0, {kind = "row", row = pack(row)})
  end
  -- What f returns; or nil, and the row of the item says why it failed.
  local function attempt(id, f, ...)
    local good, x = ranks.try(f, ...)
    if good then return x end
    answer(id, {id = id, status = "failed", why = tostring(x)})
  end
  -- Items that came, in their order. To begin one takes time, so it is done while the device measures, or has nothing to measure.
  local waiting, problem = {}, nil
  local function begin_another()
    local item = table.remove(waiting, 1)
    if item then handles[item.id] = attempt(item.id, measuring.begin, measuring, item_of(item, bound)) end
    return item ~= nil
  end
  local function take_item(item)
    if not measuring then
      measuring = require "millrace.serve"(bound, device, {seed = o.seed})
      measuring.meanwhile = function()
        local good, why = ranks.try(ranks.poll, ranks, 0)
        if not good then problem = problem or why end   -- not that of the item that is measured
        local other = ranks:take "measure"
        if other then take_item(other.item) end
        begin_another()
      end
    end
    waiting[#waiting + 1] = item
  end
  local function drop(id)
    if handles[id] then handles[id]:drop() end
    handles[id] = nil
    for i, item in ipairs(waiting) do if item.id == id then return table.remove(waiting, i) end end
  end
  while true do
    if problem then error(problem, 0) end
    m = ranks:next((next(handles) or waiting[1]) and 0 or between())
    if m and m.kind == "end" then
      for _, h in pairs(handles) do h:drop() end
      if measuring then measuring:end_idle() end
      stop()
      if m.why then error(m.why, 0) end
      return m.result
    elseif m and m.kind == "helpers" then
      helpers.use(ranks, m.list)
    elseif m and m.kind == "measure" then
      take_item(m.item)
    elseif m and m.kind == "lead" then
      leads = true
    elseif m and m.kind == "incumbent" then
      incumbent = item_of(m.item, bound)
    elseif m and m.kind == "drop" then
      drop(m.id)
    elseif m then
      core.raise(("farm: a message '%s' of rank 0 within a search"):format(m.kind))
    else
      local any = false
      for _, id in ipairs((incumbent or leads) and sorted(handles) or {}) do
        local row = attempt(id, handles[id].poll, handles[id], incumbent)
        any = any or not handles[id]
        if row then
          answer(id, row)
          any = true
        end
      end
      if not any and not begin_another() and next(handles) then measuring:wait(POLL) end
    end
  end
end

return remote
