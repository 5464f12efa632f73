-- sequence_streams.lua - on which streams the calls of a sequence run: a call that does not depend on the one before it may run at the
-- same time as that, on a second stream, if the prediction says that this is faster.

local core = require "millrace.core"

local WORTH <const> = 0.005                             -- a share of the time that a second stream must save

-- By call: the calls before it that it depends on, and those after it that depend on it; each once, as numbers in the sequence.
local function dependences(sp, n)
  local before, after, seen = {}, {}, {}
  for i = 1, n do before[i], after[i], seen[i] = {}, {}, {} end
  for _, e in ipairs(core.sequence_edges(sp.sequence)) do
    if not seen[e.to][e.from] then
      seen[e.to][e.from] = true
      table.insert(before[e.to], e.from)
      table.insert(after[e.from], e.to)
    end
  end
  return before, after, seen
end

-- Choose streams for a plan whose calls are on one. lines: the timelines of its kernels, in order of the sequence.
return function(sp, lines)
  local names, streams, early = core.sequence_call_names(sp.sequence), {}, false
  local before, after, depends = dependences(sp, #names)
  local second                                          -- the first call of the second stream
  for _, call in ipairs(sp.calls) do early = early or call.early end
  for i in ipairs(names) do streams[i] = 0 end

  -- Launch a call on its stream: it waits for the last call of the other stream that it depends on, and is launched early where it has
  -- one in front of it on its own and waits for no other.
  local function launch(i)
    local wait = 0
    for _, from in ipairs(before[i]) do
      if streams[from] ~= streams[i] then wait = math.max(wait, from) end
    end
    local in_front = i ~= (streams[i] == 0 and 1 or second)
    sp:launch(names[i], {stream = streams[i], after = {names[wait]}, early = early and in_front and wait == 0})
  end

  -- Put a call on a stream, all after it being on the first: what others wait for changes only where they depend on it.
  local function move(i, stream)
    streams[i] = stream
    launch(i)
    for _, to in ipairs(after[i]) do launch(to) end
  end

  for i in ipairs(names) do launch(i) end
  local best = core.sequence_timeline(sp, lines).seconds
  for i = 2, #names do
    if not depends[i][i - 1] then
      local first = second
      second = second or i
      move(i, 1)
      local seconds = core.sequence_timeline(sp, lines).seconds
      if seconds < best * (1 - WORTH) then
        best = seconds
      else
        second = first
        move(i, 0)
      end
    end
  end
  sp:arena()
end
