-- farm_progress.lua - what the ranks of a farm do, for the user: a line for each of them, now and then and at the end.

local core = require "millrace.core"
local columns = require "millrace.columns"
local helpers = require "millrace.helpers"

local EVERY <const> = 30                                -- seconds between two tables
local AWAITED <const> = "is waited for: has not called mr.tune yet, or still times its GPU"
local LOST <const> = "is not waited for: nothing has come from it"
local LATE <const> = "came too late for this list"
local SILENT <const> = "nothing comes from it any more; its row went to another rank"

local progress = {}
progress.__index = progress

-- name_of(task). clock: seconds; out(text): where it goes.
local function new(name_of, clock, out)
  clock = clock or core.clock
  local now = clock()
  return setmetatable({name_of = name_of, clock = clock, out = out or function(text) io.stderr:write(text) end,
    began = now, due = now + EVERY, counts = {rows = {}, measured = {}}}, progress)
end

-- The device of a rank that is ready, by what it offers.
local function device_of(x)
  if not x then return "" end
  return x.offer and x.offer.name or "none"
end

-- What a rank does. helped: for whom ranks compile.
function progress:what_of(rank, state, helped)
  local lost, task = state.lost[rank], state.doing[rank]
  if not state.offers[rank] then return lost and LOST or AWAITED end
  if lost then return SILENT end
  if state.late[rank] then return LATE end
  return task and self.name_of(task) or helped[rank] and "compiles for " .. helped[rank] or ""
end

-- The table, of a state of ranks.lua: its ranks' offers, the task that each does, and for whom others compile; of ranks from which nothing
-- has come, whether they are waited for. Rates are means since the beginning.
function progress:text(state)
  local minutes = math.max(self.clock() - self.began, 1e-9) / 60
  local cells, ranks = {{"rank", "host", "device", "rows", "measured", "a minute", ""}}, {}
  for rank in pairs(state.heard) do ranks[#ranks + 1] = rank end
  table.sort(ranks)
  local helped = helpers.helped(state.with or {})
  for _, rank in ipairs(ranks) do
    local x, rows, n = state.offers[rank], self.counts.rows[rank] or 0, self.counts.measured[rank] or 0
    cells[#cells + 1] = {tostring(rank), x and x.host or "", device_of(x), tostring(rows), tostring(n), ("%.1f"):format(n / minutes),
      self:what_of(rank, state, helped)}
  end
  return table.concat(columns(cells, function(i) return i == 1 or i > 3 and i < 7 end), "\n") .. "\n"
end

-- The rank has done one more: of "rows", which are tasks, or "measured" candidates.
function progress:count(rank, what) self.counts[what][rank] = (self.counts[what][rank] or 0) + 1 end

-- Show the table, unless it was shown within EVERY seconds.
function progress:step(state)
  self.state = state
  if self.clock() < self.due then return end
  self.due = self.clock() + EVERY
  self.out(self:text(state))
end

-- Show it for the last time; not if there are no other ranks.
function progress:finish()
  if self.state then self.out(self:text(self.state)) end
end

return {new = new}
