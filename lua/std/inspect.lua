-- inspect.lua - a Lua value as text, as the shell shows it.
--
-- Short values are shown so that Lua can read them: strings in quotes, tables one level deep, with the array part first and
-- sorted keys. Objects are shown by their __tostring. A text of several lines is shown as it is.

local byte, find, format, gsub, match, sub = string.byte, string.find, string.format, string.gsub, string.match, string.sub
local getinfo, getmetatable, mathtype = debug.getinfo, debug.getmetatable, math.type
local error, next, rawget, rawlen, tostring, type = error, next, rawget, rawlen, tostring, type
local contents = require("millrace.core").contents
local concat, min, move, sort = table.concat, math.min, table.move, table.sort

local ITEMS_SHOWN = 100                                  -- of the array part, and of the other keys
local ITEM_WIDTH = 48                                    -- bytes of a string or object inside a table

local function escaped(c) return c == "\n" and "\\n" or (c == '"' or c == "\\") and "\\" .. c or format("\\%03d", byte(c)) end

-- At most ITEM_WIDTH bytes, without dividing a UTF-8 character.
local function shorten(s)
  local n = ITEM_WIDTH
  while #s > ITEM_WIDTH and n > 0 and find(s, "^[\x80-\xbf]", n + 1) do n = n - 1 end
  return sub(s, 1, n)
end

local function quoted(s) return '"' .. gsub(s, '[\0-\31\127"\\]', escaped) .. '"' end

local function function_text(f)
  local info = getinfo(f, "S")
  if info.what == "C" or sub(info.source, 1, 10) == "=[millrace" then return "function <built in>" end
  return format("function <%s:%d>", info.short_src, info.linedefined)
end

-- Is it a table that is shown by its contents?
local function is_open(x)
  local meta = type(x) == "table" and getmetatable(x)
  return type(x) == "table" and not (meta and rawget(meta, "__tostring") ~= nil)
end

-- As tostring, whose error about a __tostring would name this file.
local function text_of(x)
  local meta = getmetatable(x)
  local to_string = meta and rawget(meta, "__tostring")
  if to_string == nil then return tostring(x) end
  local text = to_string(x)
  if type(text) ~= "string" and type(text) ~= "number" then error("'__tostring' must return a string", 0) end
  return tostring(text)
end

-- A value inside a table, always short and in one line.
local function item(x)
  if type(x) == "string" then
    local shown = shorten(x)
    return quoted(shown) .. (#shown < #x and "..." or "")
  elseif type(x) == "function" then
    return function_text(x)
  elseif is_open(x) then
    if next(contents(x)) == nil then return "{}" end
    local name = rawget(x, "name")
    return type(name) == "string" and "{name = " .. item(name) .. ", ...}" or "{...}"
  end
  local text = text_of(x)
  return (#text > ITEM_WIDTH or find(text, "\n", 1, true)) and "<" .. type(x) .. ">" or text
end

-- The keys that are not in the array part, sorted: numbers, strings, and others by their texts, which are the second result.
local function other_keys(t, n)
  local keys, strings, others, texts = {}, {}, {}, {}
  for key in next, t do
    local list = type(key) == "number" and keys or type(key) == "string" and strings or others
    if list == others then texts[key] = #others < ITEMS_SHOWN and item(key) or "" end
    if not (mathtype(key) == "integer" and key >= 1 and key <= n) then list[#list + 1] = key end
  end
  sort(keys)
  sort(strings)
  sort(others, function(a, b) return texts[a] < texts[b] end)
  move(strings, 1, #strings, #keys + 1, keys)
  return move(others, 1, #others, #keys + 1, keys), texts
end

local function pair(key, name, value)
  if mathtype(key) then
    name = format(mathtype(key) == "integer" and "%d" or "%.14g", key)
  elseif type(key) == "string" then
    if find(key, "^[%a_][%w_]*$") then return key .. " = " .. item(value) end
    name = quoted(shorten(key))
  end
  return "[" .. name .. "] = " .. item(value)
end

local function table_text(t, width)
  t = contents(t)
  local n, list, total = rawlen(t), {}, 0
  local keys, names = other_keys(t, n)
  local items = min(n, ITEMS_SHOWN)
  for i = 1, items do list[i] = item(rawget(t, i)) end
  if n > items then list[items + 1] = format("... %d more", n - items) end
  local flowing = #list                                  -- these share lines
  for i = 1, min(#keys, ITEMS_SHOWN) do list[#list + 1] = pair(keys[i], names[keys[i]], rawget(t, keys[i])) end
  if #keys > ITEMS_SHOWN then list[#list + 1] = format("... %d more", #keys - ITEMS_SHOWN) end
  for i = 1, #list do total = total + #list[i] + 2 end
  if total <= width and n == items and #keys <= ITEMS_SHOWN then return "{" .. concat(list, ", ") .. "}" end
  local lines, column = "{", 0
  for i = 1, #list do
    local flows = i > 1 and i <= flowing and column + 2 + #list[i] <= width
    column = (flows and column or 1) + 2 + #list[i]
    lines = lines .. (flows and " " or "\n  ") .. list[i] .. ","
  end
  return lines .. "\n}"
end

-- Raises what the value's __tostring raises. Lines are not longer than `width` where that is possible.
return function(x, width)
  if type(x) == "function" then return function_text(x) end
  if is_open(x) then return table_text(x, width) end
  local text = text_of(x)
  if type(x) ~= "string" then return (gsub(gsub(text, "^\n", ""), "\n$", "")) end
  if not find(text, "\n", 1, true) then return quoted(text) end
  return (gsub(gsub(text, "\n$", ""), "[\0-\8\11-\31\127]", escaped))
end
