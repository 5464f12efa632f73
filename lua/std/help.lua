-- help.lua - help(topic): a short text for everything a script or the shell can call, for fields,
-- words, problems and keys. The texts are those of docs/reference.md and docs/howto, which topics.lua reads; an example's
-- help is the comment at the head of its file.

local core = require "millrace.core"
local explain = require "millrace.explain"
local known = require "millrace.topics"
local topics, sections, example = known.topics, known.sections, known.example

local APROPOS <const> = 8                               -- lines at most

---- finding a topic -----------------------------------------------------------

-- Names by which our kinds of objects know themselves, where the topic has another.
local kinds = {["millrace.program"] = "bound", ["millrace.tile_program"] = "program",
  ["millrace.index"] = "p:load", ["millrace.search"] = "mr.search"}

-- "plan:move(task, ...)" -> "plan:move"
local function trim(name)
  name = name:match "^%s*(.-)%s*$"
  return topics[name] and name or (name:gsub("%s*[%(%{].*$", ""))
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

-- Topics of calls that have such an option.
local function with_option(name)
  local list = {}
  for _, section in ipairs(name:find "^[%a_][%w_]*$" and sections or {}) do
    for _, topic in ipairs(section) do
      if topic.call and topic.call:find("%f[%w_]" .. name .. "=") then list[#list + 1] = topic end
    end
  end
  return list
end

---- apropos ----------------------------------------------------------------------

-- As words between spaces, in small letters, without differences of spelling.
local function normal(text)
  text = (" " .. text:lower() .. " "):gsub("[^%w]+", " "):gsub("isation", "ization"):gsub("ised%f[%W]", "ized"):gsub("ise%f[%W]", "ize")
  return text
end

-- "buffering" -> "buffer"
local function stem(word) return #word > 5 and word:gsub("ing$", ""):gsub("ed$", ""):gsub("s$", "") or word end

-- A term without its endings and what is between its words: "split-K" and "splitk", "multi-stage" and "multistage" are the same.
local function bare(text) return (normal(text):gsub("%w+", stem):gsub(" ", "")) end

-- A part of help by its title.
local function section_of(name)
  for _, section in ipairs(sections) do
    if section[1] and bare(section.title) == bare(name) then return section end
  end
end

-- How well a text fits: the phrase as it is, with other endings, or all of its words; nil: it does not.
local function fit(text, phrase)
  text = normal(text)
  if text:find(normal(phrase), 1, true) then return 1 end
  local all = true
  for word in normal(phrase):gmatch "%w+" do
    local begin = " " .. stem(word) .. (#word < 4 and " " or "")    -- a short one begins many others
    all = all and text:find(begin, 1, true) ~= nil
  end
  return all and #phrase > 3 and 2 or nil
end

-- Is it one of the names of the topic, or that others have for it: 0; the beginning of one, of some length: 1; nil.
local function term_fit(topic, phrase)
  local wanted, best = bare(phrase), nil
  local function look(term)
    local is = bare(term)
    if is == wanted then best = 0 elseif #wanted > 5 and is:sub(1, #wanted) == wanted then best = best or 1 end
  end
  for term in (topic.elsewhere or ""):gmatch "[^;,:]+" do look(term) end
  for _, name in ipairs(topic.names) do look(name) end
  return best
end

-- Topics in whose names, names elsewhere or text the phrase is, the best first.
local function apropos(phrase)
  local list, rank, order = {}, {}, 0
  if not phrase:find "%w" then return list end
  for _, section in ipairs(sections) do
    for _, topic in ipairs(section) do
      order = order + 1
      if topic.names[1] == "help" then goto next end    -- whose text has phrases as examples
      local parts = {table.concat(topic.names, " | "), topic.elsewhere or "", topic.text .. " " .. (topic.fix or "")}
      local best = term_fit(topic, phrase)
      for i, part in ipairs(parts) do
        local f = fit(part, phrase)
        if f then best = math.min(best or 9, f == 1 and i or 3 + i) end
      end
      if best then
        list[#list + 1] = topic
        rank[topic] = best * 1e6 + (topic.kind == "fields" and 1e5 or 0) + order
      end
      ::next::
    end
  end
  table.sort(list, function(a, b) return rank[a] < rank[b] end)
  return list, list[1] and rank[list[1]] // 1e6
end

-- The name of a method of our objects, "plan:wait"; of a method that several have, without the object: then each is shown.
local function name_of_method(f)
  local last
  for class, methods in pairs(core.methods()) do
    local kind = kinds[class] or class:gsub("^millrace%.", "")
    for name, value in pairs(methods) do
      local full = ("%s:%s"):format(kind, name)
      if value == f and topics[full] then return full end
      if value == f then last = name end
    end
  end
  return last
end

local function name_of_function(f)
  for name, value in pairs(require "millrace") do
    if value == f then return "mr." .. name end
  end
  if f == _G.help then return "help" end
  return name_of_method(f)
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

-- The topic whose name, or name elsewhere, has the phrase, and a line for each other one.
local function show_apropos(name, list, rank)
  local width, texts = core.terminal().width, {}
  local from = rank <= 2 and 2 or 1
  if from == 2 then texts[1] = explain.topic(list[1], width) end
  local others = table.move(list, from, math.min(#list, from + APROPOS - 1), 1, {})
  if #others > 0 then
    texts[#texts + 1] = explain.list(from == 2 and "see also" or ("nothing is called '%s' here; it is in:"):format(name), others, width)
  end
  show(table.concat(texts, "\n"))
end

-- Topics, other than those found, that have the name elsewhere: CUTLASS, Triton or CUDA call them so.
local function called_elsewhere(name, found)
  local list, seen, wanted = {}, {}, bare(name)
  for _, topic in ipairs(found) do seen[topic] = true end
  for _, section in ipairs(sections) do
    for _, topic in ipairs(section) do
      for term in (seen[topic] and "" or topic.elsewhere or ""):gmatch "[^;,:]+" do
        if bare(term) == wanted then list[#list + 1] = topic break end
      end
    end
  end
  return list
end

-- Topics in whose names the words of a phrase are, if not the phrase: the best two of each word.
local function nearest(phrase)
  local list, seen = {}, {}
  for word in phrase:gmatch "%w+" do
    local found = #word > 3 and phrase:find "%W" and apropos(word) or {}
    local taken = 0
    for _, topic in ipairs(found) do
      local named = fit(table.concat(topic.names, " | "), word) or fit(topic.elsewhere or "", word)
      if named and taken < 2 and #list < APROPOS and topic.kind ~= "fields" and not seen[topic] then
        list[#list + 1], seen[topic], taken = topic, true, taken + 1
      end
    end
  end
  return list
end

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
  if near == "" then near = core.hint(name, fields) end
  local list = near == "" and nearest(name) or {}
  if near == "" and not list[1] then near = "; help() lists the topics" end
  local lines = table.concat(explain.fill(("no help about '%s'%s"):format(name, near), 0, core.terminal().width), "\n")
  if list[1] then
    show(lines .. "\n" .. explain.list("the nearest topics are", list, core.terminal().width))
  else
    print(lines)
  end
end

local help
function help(...)
  local x = ...
  if select("#", ...) == 0 then return show_all() end
  if x == nil then return print "that is nil: nothing to tell about it" end
  if x == require "millrace" then return show_all() end
  local name = type(x) == "string" and trim(x)
    or type(x) == "function" and name_of_function(x) or name_of_object(x)
  if not name then return print("a " .. type(x) .. " of your own or of Lua's: no help about it") end
  local found = find(topics[name] and name or known.full_name(name))
  local texts = {}
  local width, are_fields, of_values = core.terminal().width, true, #found > 0
  for i, topic in ipairs(found) do
    texts[i], are_fields = explain.topic(topic, width), are_fields and topic.kind == "fields"
    of_values = of_values and topic.names[1] == "value:" .. name
  end
  local calls = (are_fields or of_values) and with_option(name) or {}
  local few = table.move(calls, 1, math.min(#calls, APROPOS), 1, {})
  if #found > 0 and #few > 0 then                       -- at= of plans is asked for more often than v:at
    table.insert(texts, of_values and 1 or #texts + 1, explain.list(("%s= is an option of"):format(name), few, width))
  end
  local elsewhere = #found > 0 and type(x) == "string" and called_elsewhere(name, found) or {}
  if #elsewhere > 0 then texts[#texts + 1] = explain.list("elsewhere, the name is used for", elsewhere, width) end
  if #found > 0 then return show(table.concat(texts, "\n")) end
  local text = example(name)
  if text then return show(text) end
  local section = section_of(name)
  if section then return show(explain.section(section, core.terminal().width)) end
  if #few > 0 then return show(explain.list(("%s= is an option of"):format(name), few, width)) end
  local list, rank = apropos(name)
  if #list > 0 then return show_apropos(name, list, rank) end
  local first = name:match "^(%S+)%s"
  if first and #find(known.full_name(first)) > 0 then return help(first) end
  unknown(name)
end

return help
