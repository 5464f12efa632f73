-- fit.lua - the number of a device for which the simulator predicts what was measured.

local FACTOR <const> = 8                                -- it is at most so far from the one at hand
local STRIDE <const> = 1.1
local STEPS <const> = 30                                -- halvings of what is left of that

local fit = {}

-- What the simulator says of an entry of probes.lua, on a device.
function fit.predict(entry, device)
  local run = entry.run
  local tl = run.plan(run.program(run.sizes(device)), device):simulate{events = 0}
  return entry.of == "watts" and tl.power or tl[entry.of]
end

-- Between two numbers, of which the first is one for which it holds and the second is not: where it ends.
local function halve(near, far, holds)
  for _ = 1, STEPS do
    local middle = math.sqrt(near * far)
    if holds(middle) then near = middle else far = middle end
  end
  return near
end

-- at(v): what is predicted if the number is v, nil if it cannot be that. It goes one way with v, or does not
-- change. The number at which it is `seen`, nearest to `now`; nil if there is none.
function fit.number(at, now, seen)
  local here = at(now)
  local function short(v) return (at(v) - seen) * (here - seen) > 0 end
  if here == seen then return now end
  for _, stride in ipairs{STRIDE, 1 / STRIDE} do
    local near, far = now, now
    while short(far) and math.max(far / now, now / far) <= FACTOR do
      near, far = far, far * stride
      if not at(far) then
        far = halve(near, far, at)
        break
      end
    end
    if not short(far) then return halve(near, far, short) end
  end
  return nil
end

-- Numbers by path, as those at hand, but for what `seen` says: by entry of the list, what was measured.
-- device(numbers) makes one; passes: over the list, as some entries hang on those behind them.
function fit.all(entries, seen, numbers, device, passes)
  local found = {}
  for path, v in pairs(numbers) do found[path] = v end
  for _ = 1, passes do
    for i, x in ipairs(entries) do
      local function at(v)
        local changed = {}
        for path, old in pairs(found) do changed[path] = old end
        changed[x.number] = v
        local ok, d = pcall(device, changed)
        return ok and fit.predict(x, d) or nil
      end
      found[x.number] = seen[i] and fit.number(at, found[x.number], seen[i]) or found[x.number]
    end
  end
  return found
end

return fit
