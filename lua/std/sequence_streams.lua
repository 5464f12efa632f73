-- sequence_streams.lua - on which streams the calls of a sequence run: a call that does not depend on the one before it may run at the
-- same time as that, on a second stream, if the prediction says that this is faster.

local core = require "millrace.core"

local WORTH <const> = 0.005                             -- a share of the time that a second stream must save

-- Launch each call on its stream, by its number in the sequence; a call waits for the last call of each other stream that it depends
-- on, and is launched early where it has one in front of it on its own and waits for no other. early: may calls be?
local function arrange(sp, names, edges, streams, early)
  local last = {}                                       -- by stream: is there a call in front?
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

-- Choose streams for a plan whose calls are on one. lines: the timelines of its kernels, in order of the sequence.
return function(sp, lines)
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
