-- help.lua - help(topic): a short text for everything a script or the shell can call, for fields,
-- words, problems and keys. The texts are those of docs/reference.md, which topics.lua reads; an example's help is
-- the comment at the head of its file.

local core = require "millrace.core"
local explain = require "millrace.explain"
local known = require "millrace.topics"
local topics, sections, example = known.topics, known.sections, known.example

---- finding a topic -----------------------------------------------------------

-- Names by which our kinds of objects know themselves, where the topic has another.
local kinds = {["millrace.program"] = "bound", ["millrace.tile_program"] = "program",
  ["millrace.index"] = "p:load", ["millrace.search"] = "mr.search"}

-- "plan:move(task, ...)" -> "plan:move"; "steady state" stays, as there is such a topic.
local function trim(name)
  name = name:match "^%s*(.-)%s*$"
  return topics[name] and name or (name:gsub("[%s%(%{].*$", ""))
end

-- Topics that a text means: of that name, also a problem's; mr's; else a field or method anywhere.
local function find(name)
  local found = {topics[name]}
  found[#found + 1] = topics["check." .. name]
  if #found == 0 then found[1] = topics["mr." .. name] end
  if #found > 0 then return found end
  for _, section in ipairs(sections) do
    for _, topic in ipairs(section) do
      for _, full in ipairs(topic.names) do
        local point = full:sub(-#name - 1, -#name - 1)
        if full:sub(-#name) == name and (point == "." or point == ":") and found[#found] ~= topic then
          found[#found + 1] = topic
        end
      end
    end
  end
  return found
end

local function name_of_function(f)
  for name, value in pairs(require "millrace") do
    if value == f then return "mr." .. name end
  end
  if f == _G.help then return "help" end
end

local function name_of_object(x)
  if x == require("millrace").examples then return "mr.examples" end
  if x == require "millrace" then return nil end
  local meta = debug.getmetatable(x)
  if type(meta) ~= "table" or type(x) == "string" then return nil end
  local kind = rawget(meta, "__metatable")
  kind = type(kind) == "string" and kind or rawget(meta, "__name")
  if type(kind) ~= "string" then return nil end
  if kind == "millrace.tile_program" and example(x.name) then return x.name end
  return kinds[kind] or kind:gsub("^millrace%.", "")
end

---- showing it ----------------------------------------------------------------

-- In the shell, a screen at a time.
local function show(text) (core.page or print)(text) end

local function show_all() show(explain.all(core.terminal().width)) end

local function unknown(name)
  local names, fields = {}, {}
  for full, topic in pairs(topics) do
    local list = topic.kind == "fields" and fields or names
    list[#list + 1] = full
    list[#list + 1] = full:match "[.:](.*)$"
  end
  table.sort(names)
  table.sort(fields)
  local near = core.hint(name, names)                   -- fields are many and short: after all else
  local text = ("no help about '%s'%s"):format(name, near ~= "" and near or core.hint(name, fields))
  print(table.concat(explain.fill(text, 0, core.terminal().width), "\n"))
end

local function help(...)
  local x = ...
  if select("#", ...) == 0 then return show_all() end
  if x == nil then return print "that is nil: nothing to tell about it" end
  if x == require "millrace" then return show_all() end
  local name = type(x) == "string" and trim(x)
    or type(x) == "function" and name_of_function(x) or name_of_object(x)
  if not name then return print("a " .. type(x) .. " of your own or of Lua's: no help about it") end
  local found = find(topics[name] and name or known.full_name(name))
  local texts = {}
  for i, topic in ipairs(found) do texts[i] = explain.topic(topic, core.terminal().width) end
  if #found > 0 then return show(table.concat(texts, "\n")) end
  local text = example(name)
  if text then show(text) else unknown(name) end
end

return help
