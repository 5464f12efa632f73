-- json.lua - values as JSON, for other programs; and from JSON, which lua/ljson.c reads.
--
-- The same value always gives the same text: fields come in the order that is asked for, else
-- sorted. What holds nothing that has parts is on one line. A number is read back as the same number; what JSON has no number
-- for (nan, inf) is null.
-- Text is UTF-8; bytes that are none become U+FFFD.

local core = require "millrace.core"

local json = {}

---- what a table is --------------------------------------------------------------------------

local LIST, OBJECT = {}, {}                             -- metatables of what is marked here

-- A list, even if it is empty. n: its length, if there are holes, which are null.
function json.list(t, n) return setmetatable({of = t, n = n or #t}, LIST) end

-- An object with these fields, in this order, all of them: one that is not set is null.
function json.object(names, t)
  local order = {}
  for name in names:gmatch "%S+" do order[#order + 1] = name end
  return setmetatable({of = t, order = order}, OBJECT)
end

json.null = setmetatable({}, {})                        -- where nil would mean another value

local READ = {}                                         -- the metatable of lists that were read

-- Is it a list that json.decode gave?
function json.is_list(x) return getmetatable(x) == READ end

-- The value that a text means, or nil and what is wrong with the text. null is json.null. Two values for one name, text that is no UTF-8
-- and lists within more than 64 others are errors.
function json.decode(text) return core.json_decode(text, json.null, READ) end

---- texts and numbers --------------------------------------------------------------------------

local short = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}

local function control(c) return short[c] or ("\\u%04x"):format(c:byte()) end

-- Valid UTF-8 with the same characters.
local function clean(text)
  local parts, from = {}, 1
  while true do
    local length, bad = utf8.len(text, from)
    if length then break end
    parts[#parts + 1] = text:sub(from, bad - 1)
    parts[#parts + 1] = "\u{FFFD}"
    from = bad + 1
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts)
end

json.clean = clean

local function string_of(text)
  if not utf8.len(text) then text = clean(text) end
  return '"' .. text:gsub('[\0-\31"\\]', control) .. '"'
end

-- As few digits as give the number again.
function json.number(x)
  if math.type(x) == "integer" then return ("%d"):format(x) end
  if x ~= x or x == math.huge or x == -math.huge then return "null" end
  for digits = 15, 17 do
    local text = ("%%.%dg"):format(digits):format(x)
    if tonumber(text) == x then return text:find "[.e]" and text or text .. ".0" end
  end
end

---- values -----------------------------------------------------------------------------------

local put                                               -- (out, value, indent)

-- n elements between brackets, which each(i) writes: one a line, or all on one, as they are without an indent.
local function block(out, open, close, n, indent, flat, each)
  local inner = indent and indent .. " "
  local first, between, last = "", ", ", ""
  if inner and not flat and n > 0 then first, between, last = "\n" .. inner, ",\n" .. inner, "\n" .. indent end
  out[#out + 1] = open .. first
  for i = 1, n do
    if i > 1 then out[#out + 1] = between end
    each(i, inner)
  end
  out[#out + 1] = last .. close
end

local function put_list(out, t, n, indent)
  local flat = true
  for i = 1, n do flat = flat and type(t[i]) ~= "table" end
  block(out, "[", "]", n, indent, flat, function(i, inner) put(out, t[i], inner) end)
end

local function put_object(out, t, order, indent)
  local flat = true
  for _, key in ipairs(order) do flat = flat and type(t[key]) ~= "table" end
  block(out, "{", "}", #order, indent, flat, function(i, inner)
    out[#out + 1] = string_of(tostring(order[i])) .. ": "
    put(out, t[order[i]], inner)
  end)
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

function put(out, value, indent)
  local kind, meta = type(value), getmetatable(value)
  if kind == "number" then
    out[#out + 1] = json.number(value)
  elseif kind == "string" then
    out[#out + 1] = string_of(value)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(value)
  elseif value == nil or value == json.null then
    out[#out + 1] = "null"
  elseif meta == LIST then
    put_list(out, value.of, value.n, indent)
  elseif meta == OBJECT then
    put_object(out, value.of, value.order, indent)
  elseif kind ~= "table" then
    error("json: a " .. kind .. " has no text", 0)
  elseif meta == READ or rawlen(value) > 0 then
    put_list(out, value, rawlen(value), indent)
  else
    put_object(out, value, sorted_keys(value), indent)
  end
end

-- indent: of the lines after the first; "" unless given.
function json.encode(value, indent)
  local out = {}
  put(out, value, indent or "")
  return table.concat(out)
end

-- All on one line.
function json.line(value)
  local out = {}
  put(out, value, nil)
  return table.concat(out)
end

return json
