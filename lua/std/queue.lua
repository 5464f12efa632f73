-- queue.lua - the queue of work between a policy, which chooses plans to measure (measure.lua), and servers, which measure.
--
-- An item of work is {id=, script=, bound=, ...}: the text of a plan, its program, and whatever policy and server agree
-- on. A result is a row {id=, status=, ...} of plain values. A server has:
--
--   server.capacity        how many items it wants to hold at a time, with those whose kernels it still compiles; 0: it takes none any more
--   server.busy_thread     true: its polls measure, in this thread, where only `meanwhile` can do anything else then
--   server.meanwhile       a function, set by the policy, that begins another item: called now and then during such a poll
--   server:begin(item)     -> handle; does not wait
--   server:wait(seconds)   waits until something may have changed, but no longer
--   handle:poll(incumbent) -> a row; nil: not yet. It may measure meanwhile, against the incumbent, the best item so far
--   handle.row             the row, if it is there and poll would only return it; or nil
--   handle:drop()          the item is no longer wanted; not called after a row
--
-- There may be several servers, each with a device of its own.

local WAIT = 0.2                                        -- seconds between two polls of all handles

local queue = {}
queue.__index = queue

-- spare: how many more items each server gets than it wants (0).
local function new(servers, spare) return setmetatable({servers = servers, spare = spare or 0, under_way = {}}, queue) end

-- The server that can take most items, and how many.
function queue:freest()
  local best, most = nil, 0
  for _, server in ipairs(self.servers) do
    local free = server.capacity > 0 and server.capacity + self.spare or 0
    for _, work in ipairs(self.under_way) do if work.server == server then free = free - 1 end end
    if free > most then best, most = server, free end
  end
  return best, most
end

-- Does any server take items?
function queue:has_server()
  for _, server in ipairs(self.servers) do
    if server.capacity > 0 then return true end
  end
  return false
end

function queue:put(item)
  local server = self:freest() or self.servers[1]
  self.under_way[#self.under_way + 1] = {item = item, server = server, handle = server:begin(item)}
end

-- The number of items that were put, and neither taken nor dropped.
function queue:count() return #self.under_way end

-- A row that is there, and its item; or nil.
local function ready(self, incumbent)
  for i, work in ipairs(self.under_way) do
    local row = work.handle:poll(incumbent)
    if row then
      table.remove(self.under_way, i)
      return row, work.item
    end
  end
end

-- Wait for a row. Returns it and its item; nil if no item is under way.
function queue:take(incumbent)
  while #self.under_way > 0 do
    local row, item = ready(self, incumbent)
    if row then return row, item end
    for _, server in ipairs(self.servers) do server:wait(WAIT / #self.servers) end
  end
end

-- The same without waiting: nil if there is none yet.
function queue:poll(incumbent)
  for _, server in ipairs(self.servers) do server:wait(0) end
  return ready(self, incumbent)
end

-- Is there a row that take need not wait for? Servers measure several items at a time.
function queue:has_row()
  for _, work in ipairs(self.under_way) do
    if work.handle.row then return true end
  end
  return false
end

-- Drop an item, or all of them.
function queue:drop(item)
  for i = #self.under_way, 1, -1 do
    local work = self.under_way[i]
    if not item or work.item == item then
      table.remove(self.under_way, i)
      work.handle:drop()
    end
  end
end

return new
