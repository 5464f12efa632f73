-- order.lua LOG STREAM - what the streams of the recorder's log order: "i<j" if launch i has ended when launch j begins; "begin" if each
-- launch comes after what was on the stream before, "end" if what follows on it comes after all launches.
local log, base = ...
local done, event, n, begins = {[base] = {[0] = true}}, {}, 0, true
local function all(from, to) for x in pairs(from) do to[x] = true end end
for line in io.lines(log) do
  local number, stream = line:match "^record event (%d+) on (0x%x+)$"
  if number then
    event[number] = {}
    all(done[stream] or {}, event[number])
  end
  stream, number = line:match "^wait on (0x%x+) for event (%d+)$"
  if stream then
    done[stream] = done[stream] or {}
    all(event[number], done[stream])
  end
  stream = line:match "^launch .* stream (0x%x+)"
  if stream then
    n = n + 1
    done[stream] = done[stream] or {}
    for i = 1, n do if done[stream][i] then print(i .. "<" .. n) end end
    begins = begins and done[stream][0]
    done[stream][n] = true
  end
end
local ends = true
for i = 0, n do ends = ends and done[base][i] end
print((begins and "begin" or "no begin") .. (ends and " end" or " no end"))
