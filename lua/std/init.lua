-- init.lua - the module "millrace": the table that scripts and the shell call mr.

local core = require "millrace.core"
local raise, hint, show, entry = core.raise, core.hint, core.show, core.entry

-- A function of a module that its first call loads.
function core.late(module, name)
  local f
  return entry(function(...)
    f = f or entry(require("millrace." .. module)[name])  -- which refuses more arguments than it takes
    return f(...)
  end)
end
local late = core.late
local sequences = require "millrace.sequence"
local tile = require "millrace.tile"

local mr = {version = "0.1.0", home = core.home(), array = entry(core.array, 3), program = tile.program, any = tile.any}
for name, f in pairs(tile.functions) do mr[name] = f end

local function path_of(folder, name) return ("%s/%s/%s.lua"):format(core.home(), folder, name) end

---- examples ------------------------------------------------------------------

-- Names of the examples that return a program, found in their text so that no
-- other one is run.
local function example_names()
  local names, files = {}, core.list(core.home() .. "/examples", ".lua")
  table.sort(files)
  for _, name in ipairs(files) do
    local file = name:find "^[%a_][%w_]*$" and io.open(path_of("examples", name))
    if file then
      local text = "\n" .. file:read "a"
      file:close()
      if text:find "\nreturn%s+[%w_%.]*program%s*%(" or text:find "\nreturn%s+[%w_%.]*sequence%s*%(" then names[#names + 1] = name end
    end
  end
  return names
end

local function example(examples, name)
  local path = type(name) == "string" and name:find "^[%w_]+$" and path_of("examples", name)
  local file = path and io.open(path)
  if not file then
    local near = type(name) == "string" and hint(name, example_names()) or ""
    if near == "" then near = "; there are " .. table.concat(example_names(), ", ") end
    raise(("examples: there is no example %s%s"):format(show(name), near))
  end
  file:close()
  local chunk, message = loadfile(path, "t")
  if not chunk then raise("examples: " .. message) end
  local prog = chunk()
  if not tile.is_program(prog) and not sequences.is_sequence(prog) then
    raise(("examples: examples/%s.lua returns %s, not a program"):format(name, show(prog)))
  end
  rawset(examples, name, prog)
  return prog
end

local fields = {}                                       -- for completion
for _, name in ipairs(example_names()) do fields[name] = true end

mr.examples = setmetatable({}, {
  fields = fields,
  __metatable = false,
  __name = "examples",
  __index = example,
  __tostring = function() return "examples\n  " .. table.concat(example_names(), "\n  ") end,
  __pairs = function(examples)
    local names, i = example_names(), 0
    return function()
      i = i + 1
      if names[i] then return names[i], examples[names[i]] end
    end
  end,
})

---- other modules --------------------------------------------------------------------------------

local made = setmetatable({}, {__mode = "k"})           -- {name or path, changes} of devices that have them
for _, part in ipairs{"devices", "plan", "edit", "problems", "kernel", "sequence_plan", "sequence_run", "sequence_ranges", "sequence_show", "trace", "compare", "blame", "pictures", "lesson", "show"} do
  for name, f in pairs(require("millrace." .. part)(mr, made)) do mr[name] = f end
end

for _, name in ipairs{"search", "tune", "race", "calibrate"} do mr[name] = late(name, name) end
mr.progress = late("curves", "progress")
mr.json = late("report", "value")
require("millrace.report").add_fields()
core.method("millrace.timeline", "why", late("why", "why"))
core.method("millrace.timeline", "proof", late("proof", "proof"))
core.method("millrace.plan", "suggest", late("suggest", "suggest"))
core.method("millrace.plan", "improve", late("improve", "improve"))

mr.store = core.store()
for _, name in ipairs{"list", "best", "near", "put", "prune", "export", "json"} do
  core.method("millrace.store", name, late("store", name))
end
core.shown("millrace.store", late("store", "text"))
core.sized("millrace.store", late("store", "size"))
for _, class in ipairs{"timeline", "graph", "plan", "problems", "sequence_plan", "sequence_timeline"} do
  core.method("millrace." .. class, "json", late("report", class))
end

mr.strict = entry(core.strict, 1)

-- How a call is written, for messages.
core.describe(function(name)
  local topics = require("millrace.topics").topics
  local topic = topics[name:find ":" and name:gsub("^program:", "bound:") or "mr." .. name]
  return topic and topic.call
end)
setmetatable(mr, {__index = core.known("mr", mr)})

return mr
