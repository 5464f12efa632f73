-- remote.lua - servers of queue.lua on other ranks of a farm, for mr.search{farm=true}: the search itself is on rank 0, and each other rank
-- with the device measures candidates there.
--
-- All ranks call mr.search with the same program. In addition to those of ranks.lua the messages are
--
--   helpers    to a rank that measures: which others compile for it
--   measure    to a rank: an item of the queue;  incumbent  the item that others are raced against from now on;  drop  an item
--   row        to rank 0: the row of an item
--   bye        to rank 0, behind the end: there will be no further row
--
-- A plan travels as its script. An item that fails on one rank is given to another one, once. Times are compared by ratios to the incumbent, which each
-- rank measures on its own device.

local core = require "millrace.core"
local farm_devices = require "millrace.farm_devices"
local helpers = require "millrace.helpers"

local remote = {}

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
  for _, key in ipairs{"ms", "min", "max", "ratio", "low", "high", "relative", "device_seconds"} do
    if row[key] ~= nil and type(row[key]) ~= "number" then return ("a row whose %s is no number"):format(key) end
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
  h.server, h.tries = server, h.tries + 1
  server.holds[h.item.id] = h
  server.group.ranks:send(server.rank, {kind = "measure", item = item_message(h.item)})
end

-- Take a message of a rank: a row of an item that it holds, or of one that was dropped.
function group:receive(seconds)
  local m, from = self.ranks:next(seconds)
  if not m then return false end
  local server = self.of_rank[from]
  local wrong = (m.kind ~= "row" or not server) and ("'%s'"):format(m.kind) or fault(m.row)
  if wrong then core.raise(("farm: rank %d sent %s"):format(from, wrong)) end
  local h = server.holds[m.row.id]
  server.holds[m.row.id] = nil
  if not h then return true end
  local other = m.row.status == "failed" and h.tries < 2 and not h.item.finalists and self:another(server)
  if other then
    give(h, other)
  else
    h.row = unpack_row(m.row)
  end
  return true
end

-- A server of another rank, or nil.
function group:another(server)
  for _, x in ipairs(self.servers) do if x ~= server then return x end end
end

local server = {}
server.__index = server

function server:begin(item)
  item.script = item.script or item.plan and item.plan:script()
  local h = setmetatable({item = item, tries = 0}, handle)
  give(h, self)
  return h
end

function server:wait(seconds)
  if self.group:receive(seconds) then
    while self.group:receive(0) do end
  end
end

function handle:poll(incumbent)
  local s = self.server
  if incumbent and s.incumbent ~= incumbent.id then
    s.incumbent = incumbent.id
    s.group.ranks:send(s.rank, {kind = "incumbent", item = item_message(incumbent)})
  end
  return self.row
end

function handle:drop()
  self.server.holds[self.item.id] = nil
  self.server.group.ranks:send(self.server.rank, {kind = "drop", id = self.item.id})
end

-- Rank 0 begins a search with all ranks -> the search's ranks with what they offer: {servers=, driver=, finish=}; without a device there is
-- no server. x:finish(result): the end; all ranks get the result, a plain value.
function remote.begin(ranks, name, say)
  ranks.maps = ranks.maps + 1
  local g = setmetatable({ranks = ranks, servers = {}, of_rank = {}}, group)
  local offers, ready = {}, 0
  for rank = 1, ranks.size - 1 do ranks:send(rank, {kind = "begin", host = ranks.host}) end
  while ready < ranks.size - 1 do
    local m, from = ranks:next()
    if m and (m.kind ~= "ready" or m.names ~= core.hash(name)) then
      core.raise(("farm: rank %d searches for something else: not all ranks run the same script"):format(from))
    elseif m then
      ready, offers[from] = ready + 1, {host = m.host, offer = m.offer, compilers = m.compilers}
    end
  end
  local chosen = farm_devices.choose(offers, say)
  local given = helpers.assign(offers, chosen)
  for rank = 1, ranks.size - 1 do
    if chosen[rank] then
      local s = setmetatable({group = g, rank = rank, holds = {}, capacity = helpers.workers(offers[rank].offer.capacity, given[rank])}, server)
      if given[rank] then ranks:send(rank, {kind = "helpers", list = given[rank]}) end
      g.servers[#g.servers + 1], g.of_rank[rank], g.driver = s, s, offers[rank].offer.driver
    end
  end
  return g
end

function group:finish(result)
  local left = self.ranks.size - 1
  for rank = 1, left do self.ranks:send(rank, {kind = "end", result = result}) end
  while left > 0 do                                     -- rows of items that were dropped may be on their way
    local m = self.ranks:next()
    if m and m.kind == "bye" then left = left - 1 end
  end
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
  repeat m = ranks:next() until m
  if m.kind ~= "begin" then core.raise(("farm: rank 0 begins with '%s'"):format(m.kind)) end
  local offer = o.measure ~= false and farm_devices.offer(ranks, device, m.host == ranks.host) or nil
  if offer then offer.capacity = math.max(core.compile_state(), 2) end
  ranks:send(0, {kind = "ready", names = core.hash(name), host = ranks.host, offer = offer, compilers = helpers.compilers()})
  local helped <close> = helpers.use(ranks)             -- by none until rank 0 names them
  local between <const>, stop <const> = helpers.serve(ranks)
  local measuring, handles, incumbent = nil, {}, nil
  while true do
    m = ranks:next(next(handles) and 0 or between())
    if m and m.kind == "end" then
      for _, h in pairs(handles) do h:drop() end
      if measuring then measuring:end_idle() end
      stop()
      ranks:send(0, {kind = "bye"})
      return m.result
    elseif m and m.kind == "helpers" then
      helpers.use(ranks, m.list)
    elseif m and m.kind == "measure" then
      measuring = measuring or require "millrace.serve"(bound, device, {seed = o.seed})
      handles[m.item.id] = measuring:begin(item_of(m.item, bound))
    elseif m and m.kind == "incumbent" then
      incumbent = item_of(m.item, bound)
    elseif m and m.kind == "drop" then
      if handles[m.id] then handles[m.id]:drop() end
      handles[m.id] = nil
    elseif m then
      core.raise(("farm: a message '%s' of rank 0 within a search"):format(m.kind))
    else
      local any = false
      for _, id in ipairs(sorted(handles)) do
        local row = handles[id]:poll(incumbent)
        if row then
          handles[id], any = nil, true
          ranks:send(0, {kind = "row", row = pack(row)})
        end
      end
      if not any and next(handles) then measuring:wait(POLL) end
    end
  end
end

return remote
