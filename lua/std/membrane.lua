-- membrane.lua - what a plan's file sees of us.
--
-- A plan is data, also if it comes from elsewhere: its file may make a plan and do nothing else. So it gets stand-ins for
-- programs, graphs, devices and plans. A stand-in is an empty table; its metatable, which the file cannot reach, knows the few
-- methods and fields that make plans. Only plain data goes in, and copies of plain data come out.

local core = require "millrace.core"
local confine = require "millrace.confine"
local raise, show, hint, entry = core.raise, core.show, core.hint, core.entry

local membrane = {}

local DEEPEST <const>, MOST <const> = 8, 10000          -- of a table that is given: how nested, and how many values

-- What a script that is only checked gets instead of what it may not use: it can be called and read, and is nothing again.
local nothing = {}
local function same() return nothing end
local without <const> = {__metatable = false, __name = "nothing", __call = same, __unm = same, __len = function() return 0 end,
  __tostring = function() return "nothing" end, __concat = function() return "" end,
  __index = function(_, key) return type(key) == "string" and nothing or nil end, __newindex = function() end}
for _, operator in ipairs{"add", "sub", "mul", "div", "mod", "pow", "idiv"} do without["__" .. operator] = same end
setmetatable(nothing, without)

local lenient, refusal, without_effect = false, nil, {}

-- The file tries to do more than make a plan. Raises, or in membrane.leniently returns nothing; `unknown`: nobody has such a name,
-- which is a mistake and nothing to be left out. acts: the name of Lua by which it would act on files, processes or Lua itself; or nil.
function membrane.refuse(message, unknown, acts)
  if unknown or not lenient then raise(message) end
  if acts and #without_effect < MOST then without_effect[#without_effect + 1] = {name = acts, location = core.location()} end
  refusal = refusal or message
  return nothing
end

-- Call f(...), in which what is refused has no effect -> true and its results, or false and its error; and before these, what
-- was refused first, or nil, and a list of the names of Lua that were, {name=, location=}.
function membrane.leniently(f, ...)
  local before, was, names = lenient, refusal, without_effect
  lenient, refusal, without_effect = true, nil, {}
  local result = table.pack(core.try(f, ...))
  local refused, refused_names = refusal, without_effect
  lenient, refusal, without_effect = before, was, names
  return refused, refused_names, table.unpack(result, 1, result.n)
end

local real = setmetatable({}, {__mode = "k"})           -- stand-in -> what it stands for
local metatables = {}                                   -- by class

-- Plain data, copied: a stand-in becomes what it stands for.
local function inward(x, depth, count)
  local kind = type(x)
  if real[x] ~= nil then return real[x] end
  if x == nothing then raise "this needs a value that is not there, as the file is only read, and not run as a script" end
  if kind ~= "table" then
    if kind == "function" or kind == "userdata" or kind == "thread" then
      raise(("a plan's file gives data: %s is none"):format(show(x)))
    end
    return x
  end
  depth, count = (depth or 0) + 1, count or {0}
  local copy = {}
  for key, value in next, core.contents(x) do
    count[1] = count[1] + 1
    if depth > DEEPEST or count[1] > MOST then raise "a table in a plan's file is too large, or contains itself" end
    copy[inward(key, depth, count)] = inward(value, depth, count)
  end
  return copy
end

-- Objects of ours as stand-ins, tables copied without their metatables; of anything else only plain values.
local function outward(x)
  local kind = type(x)
  if kind == "table" and not metatables[getmetatable(x)] then
    local copy = {}
    for key, value in next, core.contents(x) do copy[key] = outward(value) end
    return core.closed_as(copy, x)
  end
  for class, meta in pairs(metatables) do
    if core.is(x, class) or kind == "table" and getmetatable(x) == class then
      local stand_in = setmetatable({}, meta)
      real[stand_in] = x
      return stand_in
    end
  end
  if kind ~= "function" and kind ~= "userdata" and kind ~= "thread" then return x end
end
membrane.outward = outward

-- What a stand-in stands for; nil.
function membrane.real(x) return real[x] end

local function words(text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end

local function pass(...)
  local list = table.pack(...)
  for i = 1, list.n do list[i] = outward(list[i]) end
  return table.unpack(list, 1, list.n)
end

-- A function of ours that takes and returns plain data and stand-ins.
function membrane.call(f)
  return entry(function(...)
    local list = table.pack(...)
    for i = 1, list.n do list[i] = inward(list[i]) end
    return pass(f(table.unpack(list, 1, list.n)))
  end)
end

-- kind: as messages say it. methods: name -> true for the object's own, or a function.
local function class(name, kind, methods, fields)
  local own = {}
  for method, f in pairs(methods) do
    own[method] = membrane.call(function(self, ...)
      if not core.is(self, name) and getmetatable(self) ~= name then
        raise(("%s: %s expected, got %s"):format(method, kind, show(self)))
      end
      if f ~= true then return f(self, ...) end
      return self[method](self, ...)
    end)
  end
  metatables[name] = {
    __name = name, __metatable = false,
    __index = entry(function(self, key)
      if own[key] then return own[key] end
      if fields[key] then return outward(real[self][key]) end
      if real[self][key] == nil then
        local known = {}
        for method in pairs(own) do known[#known + 1] = method end
        for field in pairs(fields) do known[#known + 1] = field end
        table.sort(known)
        raise(("a %s has no %s%s"):format(kind, show(key), type(key) == "string" and hint(key, known) or ""))
      end
      return membrane.refuse(("a plan's file is data and cannot use %s of a %s: it makes a plan and does nothing else"):format(
        show(key), kind))
    end),
    __newindex = entry(function(_, key) raise(("%s of a %s cannot be set"):format(show(key), kind)) end),
  }
end

-- The statements that edit a plan.
membrane.EDITS = {"alias", "append", "buffers", "direct", "fetch", "fill_waits", "grid", "insert", "lane", "launch", "move", "propagate", "remove",
  "split", "split_off", "swap", "unwait", "wait", "window"}

local of_plan = words(table.concat(membrane.EDITS, " ") .. " undo redo copy cut place") -- cut and place are deprecated
function of_plan.check(plan)
  local good, problems = plan:check()
  return good, tostring(problems)
end

class("millrace.plan", "plan", of_plan, words "tasks edges rings tile graph device usage")
class("millrace.sequence_plan", "plan of a sequence", words "use order launch arena", words "calls offsets arena_bytes sequence device")
class("millrace.sequence", "sequence with sizes", {program = true}, words "name tensors")
class("millrace.tile_sequence", "sequence", {bind = true}, words "name")
class("millrace.graph", "graph", {}, words "tasks buffers edges tile flops bytes tiles program")
class("millrace.program", "program with sizes", {graph = true}, words "name axes tensors")
class("millrace.device", "device", {number = true}, words "name title arch eus clock_hz seus")
class("millrace.tile_program", "program", {bind = true}, words "name")
class("millrace.any", "size that is known at launch", {}, words "max multiple typical like")
for _, name in ipairs{"millrace.tile_program", "millrace.tile_sequence"} do
  metatables[name].__call = membrane.call(function(prog, sizes) return prog:bind(sizes) end)
end

-- A table that can only be read; missing(name) raises.
function membrane.frozen(t, missing)
  return setmetatable({}, {__metatable = false,
    __index = entry(function(_, key)
      local value = t[key]
      if value == nil then return missing(key) end
      return value
    end),
    __newindex = entry(function(_, key) raise(("%s cannot be set"):format(show(key))) end),
  })
end

---- strings -------------------------------------------------------------------------------------

local harmless = {}
for _, name in ipairs(confine.STRINGS) do harmless[name] = true end

-- Call f(...); meanwhile, code of the chunk `source` has no other methods of strings.
function membrane.without_strings(source, f, ...)
  local meta, getinfo = getmetatable "", debug.getinfo
  local methods = meta.__index
  local _ <close> = core.at_close(function() meta.__index = methods end)
  meta.__index = function(s, key)
    if not harmless[key] and getinfo(2, "S").source == source then
      raise(("code that came from elsewhere cannot use %s of a text, which may take for ever"):format(show(key)))
    end
    if type(methods) == "function" then return methods(s, key) end
    return methods[key]
  end
  return f(...)
end

return membrane
