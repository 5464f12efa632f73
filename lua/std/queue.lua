-- queue.lua - work and its results, between who wants plans measured and who measures them.
--
-- An item of work is {id=, script=, bound=, ...}: the text of a plan, what it is for, and what the two ends
-- agree on. A result is a row {id=, status=, ...}, plain values. A server takes items and gives rows:
--
--   server.room            how many items it wants to have at a time, those that it prepares included
--   server:begin(item)     -> handle; does not wait
--   server:wait(seconds)   until something may have changed, no longer
--   handle:poll(incumbent) -> a row; or nil: not yet. It may take as long as one measurement, against the
--                          item that is the best so far
--   handle:drop()          nobody wants it any more; not after a row
--
-- There may be several servers, each with a device of its own. The queue knows no more of them.

local WAIT = 0.2                                        -- seconds between two looks at all handles

local queue = {}
queue.__index = queue

-- queue(servers): all of these
local function new(servers)
  return setmetatable({servers = servers, under_way = {}}, queue)
end

-- The server with most room, and how many items it can take.
function queue:freest()
  local best, most = nil, 0
  for _, server in ipairs(self.servers) do
    local room = server.room
    for _, work in ipairs(self.under_way) do if work.server == server then room = room - 1 end end
    if room > most then best, most = server, room end
  end
  return best, most
end

function queue:put(item)
  local server = self:freest() or self.servers[1]
  self.under_way[#self.under_way + 1] = {item = item, server = server, handle = server:begin(item)}
end

-- How many items have been put and not taken.
function queue:count() return #self.under_way end

-- Wait for a row, and give it with its item; nil if nothing is under way.
function queue:take(incumbent)
  while #self.under_way > 0 do
    for i, work in ipairs(self.under_way) do
      local row = work.handle:poll(incumbent)
      if row then
        table.remove(self.under_way, i)
        return row, work.item
      end
    end
    for _, server in ipairs(self.servers) do server:wait(WAIT / #self.servers) end
  end
end

-- Take an item back; all of them without one.
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
