-- parse_json.lua - JSON as RFC 8259 has it, read by code that shares nothing with the writer's.
--
-- parse(text) -> value, order: a table of each object's keys in their order. null is parse.null.
-- Raises what is wrong, and where.

local escapes <const> = {['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t"}

local M = {null = setmetatable({}, {__tostring = function() return "null" end})}

local function parse(text)
  local at, order, value = 1, {}, nil
  local function fail(what) error(("%s at byte %d"):format(what, at), 0) end
  local function skip() at = text:find("[^ \n\r\t]", at) or #text + 1 end
  local function take(pattern)
    local from, to, got = text:find("^(" .. pattern .. ")", at)
    if not from then return nil end
    at = to + 1
    return got
  end

  local function string()
    if not take '"' then fail "string expected" end
    local parts = {}
    while true do
      parts[#parts + 1] = take '[^"\\%z\1-\31]*'
      if take '"' then return table.concat(parts) end
      if not take "\\" then fail "control character, or string without end" end
      local code = take "u%x%x%x%x"
      if code then
        parts[#parts + 1] = utf8.char(tonumber(code:sub(2), 16))
      else
        parts[#parts + 1] = escapes[take "." or ""] or fail "unknown escape"
      end
    end
  end

  -- The items between brackets.
  local function items(close, item)
    skip()
    if take(close) then return end
    repeat
      item()
      skip()
      if take(close) then return end
    until not take ","
    fail "comma or end expected"
  end

  local function number()
    local from = at
    take "%-"
    if not (take "0" or take "[1-9]%d*") then fail "value expected" end
    if take "%." and not take "%d+" then fail "digits expected" end
    if take "[eE]" then
      take "[+-]"
      if not take "%d+" then fail "digits expected" end
    end
    local n = tonumber(text:sub(from, at - 1))
    return n
  end

  function value()
    skip()
    local t = {}
    if take "{" then
      order[t] = {}
      items("}", function()
        skip()
        local key = string()
        skip()
        if not take ":" then fail "colon expected" end
        if t[key] ~= nil then fail("second " .. key) end
        t[key], order[t][#order[t] + 1] = value(), key
      end)
      return t
    elseif take "%[" then
      items("%]", function() t[#t + 1] = value() end)
      return t
    end
    if text:find('^"', at) then return string() end
    if take "true" then return true end
    if take "false" then return false end
    if take "null" then return M.null end
    return number()
  end

  if not utf8.len(text) then fail "not UTF-8" end
  local v = value()
  skip()
  if at <= #text then fail "more text" end
  return v, order
end

return setmetatable(M, {__call = function(_, text) return parse(text) end})
