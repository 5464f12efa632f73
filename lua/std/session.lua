-- session.lua - the programs and plans that another program works on, by the ids that it was given: "program 2", "plan 7".
--
-- A plan is kept as its script, and made again for each request: a request can change no plan, an edit gives a new one, and
-- locations in the messages are lines of the script that the caller has.

local core = require "millrace.core"
local confine = require "millrace.confine"
local json = require "millrace.json"
local loader = require "millrace.loader"
local membrane = require "millrace.membrane"
local rpc = require "millrace.rpc"
local tile = require "millrace.tile"
local mr = require "millrace"

local session = {}
session.__index = session

local KEPT <const> = 10000                              -- the last ones of each kind

function session.new() return setmetatable({lists = {program = {made = 0}, plan = {made = 0}}}, session) end

-- The parameter `name` is not as it must be.
local function refuse(name, message, nearest) rpc.fail(rpc.PARAMS, message, {parameter = name, nearest = nearest}) end

session.refuse = refuse

-- Keep an object; returns its id, "plan 7".
function session:keep(kind, object)
  local list = self.lists[kind]
  list.made = list.made + 1
  list[list.made], list[list.made - KEPT] = object, nil
  return ("%s %d"):format(kind, list.made)
end

-- What is kept under an id; nil: the text is no id.
function session:kept(kind, text)
  local list, i = self.lists[kind], text:match("^" .. kind .. " (%d+)$")
  if not i then return nil end
  i = tonumber(i)
  local gone = i > 0 and i <= list.made
  return list[i] or refuse(kind, gone and ("%s is no longer kept; the last %d are"):format(text, KEPT) or "there is no " .. text)
end

-- Run code of a text that was given as `name`.
local function confined(name, f, ...) return membrane.without_strings("=" .. name, confine.call, name, f, ...) end

---- programs -----------------------------------------------------------------------------------

local function program_of_source(source)
  local chunk, message = load(source, "=program", "t", confine.language())
  if not chunk then error(message, 0) end
  local program = confined("program", chunk)
  if not tile.is_program(program) then core.raise(("program: the source returns %s, not a program"):format(core.show(program))) end
  return program
end

-- As a chunk of the caller, so that errors about sizes are located there.
local bind = load("local program, sizes = ... return (program:bind(sizes))", "=sizes", "t", {})

local function refuse_call(name) refuse("call", ("'%s' is a program, of which there are no calls"):format(name)) end

-- The program itself, or that of the named call of a sequence; fails if `call` is missing or unknown, or given for a program.
local function program_of_call(bound, call)
  local is_sequence = core.is(bound, "millrace.sequence")
  if not is_sequence then return call and refuse_call(bound.name) or bound end
  local names = core.sequence_call_names(bound)
  for _, name in ipairs(names) do
    if name == call then return bound:program(call) end
  end
  if call then
    local near = core.hint(call, names)
    refuse("call", ("sequence '%s' has no call '%s'%s"):format(bound.name, call, near), near:match "'(.*)'")
  end
  refuse("call", ("'%s' is a sequence of %d kernels: 'call' must name one of them, such as '%s'"):format(bound.name, #names, names[1]))
end

-- The bound program that parameters name.
function session:bound(p)
  if (p.program == nil) == (p.source == nil) then
    refuse("program", p.program and "both 'program' and 'source' are given" or "'program' or 'source' is missing")
  end
  local found = p.program and self:kept("program", p.program)
  if found and p.sizes then refuse("sizes", ("'%s' has its sizes; give the example or the source with others"):format(p.program)) end
  if found and p.call then refuse_call(p.program) end
  if found then return found end
  local program = p.source and program_of_source(p.source) or mr.examples[p.program]
  return program_of_call(confined("program", bind, program, p.sizes or {}), p.call)
end

---- devices ------------------------------------------------------------------------------------

-- A device by its name; nil: the attached one, or the usual model.
function session.device(name)
  if name and name:find "[/.]" then refuse("device", "'device' is the name of a device, not a path") end
  return name and mr.device(name) or mr.device()
end

---- plans ----------------------------------------------------------------------------------------

local function made(script, name, bound) return (loader.of_text(mr, script, name, bound)) end

-- The plan that the text means: an id, the name of one that comes with Millrace, or a script; and its id, if it has one. bound: the
-- program for it, or nil.
function session:plan(text, bound)
  local found = self:kept("plan", text)
  if found then
    if bound then refuse("program", ("'%s' has its program"):format(text)) end
    return made(found.script, text, found.bound), text
  end
  if not text:find "^[%w_]+$" then return made(text, "script", bound) end
  local names = loader.plan_names()
  for _, name in ipairs(names) do
    if name == text then return (mr.load_plan(text, bound)) end
  end
  local near = loader.plan_hint(text)
  refuse("plan", ("no plan '%s' comes with Millrace%s"):format(text, near), near:match "'(.*)'")
end

-- Keep a plan. Returns its id, and the plan as made from its script.
function session:add_plan(plan)
  local script, bound = plan:script(), plan.graph.program
  local id = self:keep("plan", {script = script, bound = bound})
  return id, made(script, id, bound)
end

---- edits ----------------------------------------------------------------------------------------

local EDITS <const> = membrane.EDITS

local is_edit = {}
for _, name in ipairs(EDITS) do is_edit[name] = true end

local function unknown_edit(name)
  return ("edit: there is no statement plan:%s%s"):format(tostring(name), core.hint(name, EDITS))
end

-- What statements see as `plan`: methods that edit, and nothing else of the plan.
local function editable(plan)
  return setmetatable({}, {__metatable = false, __index = function(_, name)
    if not is_edit[name] then core.raise(unknown_edit(name)) end
    return core.entry(function(_, ...) plan[name](plan, ...) end)
  end})
end

-- An argument of an edit as Lua has it: a wait with more than a name is {on=, distance=, when=} in JSON.
local function argument(x)
  if type(x) ~= "table" then return x ~= json.null and x or nil end
  local out = {}
  for key, value in pairs(x) do out[key == "on" and 1 or key] = argument(value) end
  return out
end

-- Edit a plan by statements as text, or by a list of {method=, arguments=}.
function session.edit(plan, edits)
  if type(edits) == "string" then
    local chunk, message = load("local plan = ... " .. edits, "=edit", "t", {})
    if not chunk then error(message, 0) end
    confined("edit", chunk, editable(plan))
    return
  end
  for i, e in ipairs(edits) do
    if not is_edit[e.method] then
      refuse(("edits[%d].method"):format(i), unknown_edit(e.method), core.hint(e.method, EDITS):match "'(.*)'")
    end
    local arguments = {}
    for k, x in ipairs(e.arguments or {}) do arguments[k] = argument(x) end
    plan[e.method](plan, table.unpack(arguments, 1, #(e.arguments or {})))
  end
end

return session
