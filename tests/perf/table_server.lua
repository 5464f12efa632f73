-- table_server.lua - table_server(race_error, final_error): a server of measure(), as queue.lua has them, that knows each candidate's time
-- beforehand: `ms`. The arguments draw the logarithm of the error of a time in a race, and in the last race; nil: there is none.
local FASTER <const> = require("millrace.paired").FASTER

local function exact() return 0 end

return function(race_error, final_error)
  race_error, final_error = race_error or exact, final_error or exact
  local function time(c, draw) return c.ms * math.exp(draw()) end
  local function finals(items)
    local row = {id = 0, status = "ok", results = {}}
    for _, x in ipairs(items) do
      local ms, right = time(x.candidate, final_error), row.results[row.right]
      row.results[x.id] = {ms = ms}
      if not right or ms < right.ms then row.right = x.id end
    end
    for _, result in pairs(row.results) do result.ratio = result.ms / row.results[row.right].ms end
    return row
  end
  local function race(item, incumbent)
    local row = {id = item.id, status = "ok", ms = time(item.candidate, race_error), candidate = item.candidate}
    local function ratio() return row.ms / time(incumbent.candidate, race_error) end
    if incumbent then
      row.against, row.ratio = incumbent.id, ratio()
      if row.ratio <= FASTER then                       -- raced again
        row.ms = time(item.candidate, race_error)
        row.ratio = ratio()
      end
    end
    return row
  end
  return {
    capacity = 16, wait = function() end,                   -- as many as a machine has workers
    begin = function(_, item)
      return {
        drop = function() end,
        poll = function(_, incumbent)
          if item.finalists then return finals(item.finalists) end
          return race(item, incumbent)
        end,
      }
    end,
  }
end
