-- size_terms.lua - how a number of a sequence follows from the sizes that are left to the launch: a sum of products of them with integer
-- factors, such as m, 4 * m or b * m + 16. Found of numbers at some sizes, and written as Lua, C or Python.

local terms = {}
terms.__index = terms

local function sorted(names)
  table.sort(names)
  return table.concat(names, " ")
end

local function names_of(key)
  local list = {}
  for name in key:gmatch "%S+" do list[#list + 1] = name end
  return list
end

-- The corners of the ranges of some sizes, {m={least, most}, ...}: a list of {m=, ...}, in the order that terms.fit expects.
function terms.corners(names, ranges)
  local list = {{}}
  for i, name in ipairs(names) do
    local longer = {}
    for _, x in ipairs(list) do
      for side = 1, 2 do
        local y = {[name] = ranges[name][side]}
        for k = 1, i - 1 do y[names[k]] = x[names[k]] end
        longer[#longer + 1] = y
      end
    end
    list = longer
  end
  return list
end

-- What gives these values at the corners; nil: factors would not be integers.
function terms.fit(names, ranges, values)
  local function part(i, first, count)                  -- of names[i], ... and `count` values from `first` on
    if i > #names then return {[""] = values[first]} end
    local name, half = names[i], count // 2
    local low, high = part(i + 1, first, half), part(i + 1, first + half, half)
    if not low or not high then return nil end
    local least, most, out = ranges[name][1], ranges[name][2], {}
    for _, from in ipairs{low, high} do
      for key in pairs(from) do
        local rise = (high[key] or 0) - (low[key] or 0)
        if rise % (most - least) ~= 0 then return nil end
        local slope, longer = rise // (most - least), names_of(key)
        longer[#longer + 1] = name
        out[key], out[sorted(longer)] = (low[key] or 0) - slope * least, slope
      end
    end
    return out
  end
  local found = part(1, 1, #values)
  if not found then return nil end
  for key, factor in pairs(found) do
    if factor == 0 then found[key] = nil end
  end
  return setmetatable({of = found}, terms)
end

-- A number that no size changes.
function terms.constant(n) return setmetatable({of = n ~= 0 and {[""] = n} or {}}, terms) end

local function keys_of(t)
  local keys = {}
  for key in pairs(t.of) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return #a > #b or #a == #b and a < b end)       -- the constant is the last
  return keys
end

-- The value at sizes.
function terms:at(sizes)
  local sum = 0
  for key, factor in pairs(self.of) do
    for _, name in ipairs(names_of(key)) do factor = factor * sizes[name] end
    sum = sum + factor
  end
  return sum
end

-- Does it depend on no size? Does it grow with all of them that it depends on?
function terms:is_constant() return next(self.of) == nil or next(self.of) == "" and next(self.of, "") == nil end
function terms:grows()
  for _, factor in pairs(self.of) do
    if factor < 0 then return false end
  end
  return true
end

-- The size that it is a multiple of, and the factor; nil: it is something else.
function terms:single()
  local key, factor = next(self.of)
  if not key or key == "" or key:find " " or next(self.of, key) then return nil end
  return key, factor
end

-- What divides the value at all sizes that are multiples of multiples[name].
function terms:divisor(multiples)
  local all = 0
  for key, factor in pairs(self.of) do
    for _, name in ipairs(names_of(key)) do factor = factor * multiples[name] end
    while factor ~= 0 do all, factor = factor, all % factor end
  end
  return math.max(math.abs(all), 1)
end

-- As an expression; name_of: what sizes are called there.
function terms:text(name_of)
  local texts = {}
  for i, key in ipairs(keys_of(self)) do
    local factor, names = self.of[key], names_of(key)
    local words = (math.abs(factor) ~= 1 or #names == 0) and {("%d"):format(math.abs(factor))} or {}
    for _, name in ipairs(names) do words[#words + 1] = name_of and name_of(name) or name end
    local sign = factor < 0 and (i > 1 and " - " or "-") or i > 1 and " + " or ""
    texts[i] = sign .. table.concat(words, " * ")
  end
  return #texts == 0 and "0" or table.concat(texts)
end

function terms:times(n)
  local of = {}
  for key, factor in pairs(self.of) do of[key] = factor * n end
  return setmetatable({of = n ~= 0 and of or {}}, terms)
end

return terms
