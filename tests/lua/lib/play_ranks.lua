-- play_ranks.lua - ranks of a farm as coroutines of one process, for tests: {play, random}. What they send takes its time: a scheduler with
-- random numbers chooses who goes on, and which message arrives.

-- Numbers from 1 to n, the same everywhere.
local function random(seed)
  local state = seed
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 20) % n + 1
  end
end

-- Run body(farm) on each of `size` ranks until all have ended. -> what each returned, or its error, by rank; messages, in all. Messages
-- between two ranks arrive in order. Error: no rank can go on.
local function play(size, seed, body)
  local next_of, inbox, threads, values, sent = random(seed), {}, {}, {}, 0
  for rank = 0, size - 1 do
    inbox[rank] = {}
    local farm = {}
    function farm:rank() return rank end
    function farm:size() return size end
    function farm:host() return "host" .. rank // 4 end
    function farm:send(to, text)
      sent = sent + 1
      inbox[to][rank] = inbox[to][rank] or {}
      table.insert(inbox[to][rank], text)
    end
    function farm:receive()
      coroutine.yield()
      local from = {}
      for other = 0, size - 1 do if inbox[rank][other] and inbox[rank][other][1] then from[#from + 1] = other end end
      if #from == 0 then return nil end
      local other = from[next_of(#from)]
      return table.remove(inbox[rank][other], 1), other
    end
    function farm:closed_rank() return nil end          -- no test ends a rank early
    threads[rank] = coroutine.create(function() return body(farm) end)
  end
  local left, idle = size, 0
  while left > 0 do
    local rank = next_of(size) - 1
    if coroutine.status(threads[rank]) == "suspended" then
      local before = sent
      local good, value = coroutine.resume(threads[rank])
      if not good then values[rank], left = "error: " .. tostring(value), left - 1
      elseif coroutine.status(threads[rank]) == "dead" then values[rank], left = value, left - 1 end
      idle = sent == before and idle + 1 or 0
    else
      idle = idle + 1
    end
    if idle > 10000 * size then error("no rank can go on", 0) end
  end
  return values, sent
end

return {play, random}
