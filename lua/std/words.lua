-- words.lua - what could stand at the cursor inside a call of ours: names of sTasks, lanes, buffers,
-- axes, devices, plans, topics, and options. For completion, which may run no code of the user's: all
-- of Lua's functions that are used here are those that were there in the beginning, and objects are
-- looked at only if they are ours.

local core = require "millrace.core"
local known = require "millrace.topics"
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local next, type, open, is = next, type, io.open, core.is
local read_file, close_file = io.stdout.read, io.stdout.close

local function keys_of(t)
  local list = {}
  for key in next, core.contents(t or {}) do list[#list + 1] = key end
  return list
end

local function names_of(list, key)
  local names = {}
  for i = 1, #list do names[i] = list[i][key or "name"] end
  return names
end

local function read(path)
  local file = open(path)
  if not file then return "" end
  local text = read_file(file, "a")
  close_file(file)
  return text
end

---- sets of words: of each the argument is the object that is called, or nil ----------------------------------

local function plan_of(x) return is(x, "millrace.plan") and x or nil end

-- Names, and of slices the name of all of them: "mma" means mma.0, mma.1, ...
local function with_bases(names)
  for i = 1, #names do
    local base = match(names[i], "^(.*)%.%d+$")
    if base then names[#names + 1] = base end
  end
  return names
end

local function tasks(x) return with_bases(plan_of(x) and names_of(x.tasks) or {}) end

local function lanes(x)
  local names = {"c0", "p0"}
  if not plan_of(x) then return names end
  for name in gmatch(core.statements(x), 'lane%(?=?"([^"]+)"') do names[#names + 1] = name end
  return names
end

local function buffers(x) return with_bases(plan_of(x) and keys_of(x.rings) or {}) end

local function axes(x)
  local bound = plan_of(x) and x.graph.program or is(x, "millrace.program") and x
  return bound and keys_of(bound.axes) or {}
end

local function units(x) return plan_of(x) and names_of(x.device.seus) or {} end
local function dtypes() return core.dtypes() end
local function devices() return core.list(core.home() .. "/hw", ".lua") end

local function topics()
  local names = keys_of(known.topics)
  for i = 1, #names do names[i] = gsub(names[i], "^check%.", "") end
  return names
end


local function plans()
  local home = core.home()
  local names = core.list(home .. "/examples/plans", ".lua")
  local files = core.list(home .. "/examples", ".lua")
  for i = 1, #files do
    if find(read(home .. "/examples/" .. files[i] .. ".lua"), "\nreturn plan") then names[#names + 1] = files[i] end
  end
  return names
end

local function one_of(...)
  local words = {...}
  return function() return words end
end

-- Names of passes of lowering that have such a field.
local function passes(field)
  return function()
    local names, list = {}, core.passes()
    for i = 1, #list do
      if list[i][field] then names[#names + 1] = list[i].name end
    end
    return names
  end
end

---- what stands where -------------------------------------------------------------------------

-- Of a method or function: words of its arguments by position, of its options by name; [0]: of the
-- elements of lists in any argument; files: a name of a file may stand there.
local signatures = {
  append = {tasks, lane = lanes, seu = units}, remove = {tasks},
  move = {tasks, [0] = tasks, lane = lanes, seu = units, before = tasks, after = tasks},
  insert = {tasks, [0] = tasks, lane = lanes, seu = units, before = tasks, after = tasks},
  wait = {tasks, tasks, [0] = tasks, when = one_of("complete", "issued")}, unwait = {tasks, tasks, [0] = tasks},
  lane = {lanes}, split = {axes, [0] = tasks}, split_off = {buffers}, fetch = {tasks, [0] = buffers}, direct = {[0] = buffers},
  swap = {tasks}, window = {[0] = tasks},
  cut = {buffers}, place = {["*"] = buffers},            -- deprecated names
  alias = {["*"] = buffers},
  grid = {raster = one_of("rows", "columns")}, launch = {next = one_of("auto", "start", "loaded", "end")},
  compile = {target = one_of("cuda", "hip", "host"), [0] = passes "optional"},
  kernel = {target = one_of("cuda", "hip", "host"), after = passes "tree"},
  print = {by = one_of("lane", "seu")}, text = {by = one_of("lane", "seu")},
  reference = {on = one_of("host", "device")}, check = {reference = one_of("interpreter", "host", "device")},
  device = {devices, files = true}, load_plan = {plans, files = true}, calibrate = {files = true},
  export = {files = true}, array = {dtypes}, to = {dtypes}, copy = {dtypes},
  input = {nil, nil, dtypes}, output = {nil, nil, dtypes}, temp = {nil, nil, dtypes}, unpack = {nil, nil, nil, dtypes},
  option = {nil, one_of("number", "integer", "boolean")}, help = {topics},
  dofile = {files = true}, loadfile = {files = true}, open = {files = true}, lines = {files = true},
}
local alone = {dofile = true, loadfile = true, help = true}    -- functions that are no field of anything
local anywhere = {dtype = dtypes, out = dtypes, wtype = dtypes, decay = dtypes}

local classes <const> = {"plan", "timeline", "graph", "kernel", "program", "array", "device", "sequence", "sequence_plan", "sequence_timeline"}

-- Topic of a call: of an object's class if that is known, else of the first class that has such a method.
local function topic_of(x, name, path)
  if known.topics[path] or name == path then return known.topics[path] end
  local first
  for i = 1, #classes do
    local topic = known.topics[(classes[i] == "program" and "bound" or classes[i]) .. ":" .. name]
    if topic and is(x, "millrace." .. classes[i]) then return topic end
    first = first or topic and topic.call and topic
  end
  if type(x) == "userdata" then return nil end
  if first then return first end
  local least
  for full, topic in next, known.topics do
    if topic.call and match(full, ":(.*)$") == name and (not least or full < least) then first, least = topic, full end
  end
  return first
end

-- Sizes and options of a program of examples/, as its text reads them.
local function example_options(path)
  local name = match(path, "^mr%.examples%.([%w_]+)$") or match(path, "^mr%.examples%.([%w_]+):bind$")
  local words, text = {}, name and read(core.home() .. "/examples/" .. name .. ".lua") or ""
  for names in gmatch(text, ":axes(%b())") do
    for axis in gmatch(names, '"([%w_]+)"') do words[#words + 1] = axis .. "=" end
  end
  for option in gmatch(text, '%f[%w_]p:option%("([%w_]+)"') do words[#words + 1] = option .. "=" end
  for option in gmatch(text, "%f[%w_]p%.([%a_][%w_]*)") do words[#words + 1] = option .. "=" end
  return words
end

-- Those names that can stand before a sign, with it.
local function with_sign(names)
  local words = {}
  for i = 1, #names do
    if not find(names[i], "%.") then words[#words + 1] = names[i] .. "=" end
  end
  return words
end

-- Options of a call, written "at=". keys: those of the tables that the cursor is in, from within.
local function options(x, name, path, keys)
  if keys[1] == "tile" or name == "propagate" then return with_sign(axes(x)) end
  if #keys > 0 and not (name == "wait") then return {} end
  if name == "wait" then return #keys > 0 and {"distance=", "when="} or {} end
  if name == "buffers" or name == "alias" or name == "place" then  -- place: deprecated
    return with_sign(buffers(x))
  end
  local words = example_options(path)
  local topic = topic_of(x, name, path)
  for key in gmatch(topic and topic.call or "", "([%a_]+)=") do words[#words + 1] = key .. "=" end
  return words
end

-- The words for a position in a call, and whether files may stand there; nil: nothing is known of it.
--   x       the object whose method it is, if it is ours
--   name    of the function or method; path: all that stands before the bracket, "mr.load_plan"
--   arg     which argument it is
--   keys    of the tables that the cursor is in, from within: a name, or "" for an element
--   quoted  in a string: its words; else names of options
return function(x, name, path, arg, keys, quoted)
  if not quoted then return options(x, name, path, keys), false end
  local signature = (name ~= path or alone[name]) and signatures[name]
  if path == "require" then return {"millrace"}, false end
  if #keys > 0 and keys[1] ~= "" then
    local set = signature and (signature[keys[1]] or signature["*"]) or anywhere[keys[1]]
    if set then return set(x), false end
    return nil
  end
  if not signature then return nil end
  local set = #keys > 0 and signature[0] or signature[arg]
  return set and set(x) or {}, signature.files or false
end
