-- A call with more arguments than it takes is an error with the call's signature: every function and method that the
-- reference describes.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local core = require "millrace.core"
local topics = require("millrace.topics").topics

local plan = mr.load_plan "attention_overlap"
local tl = plan:simulate{events = 100}
local objects = {plan = plan, timeline = tl, graph = plan.graph, bound = plan.graph.program, device = plan.device,
  kernel = plan:compile{target = "host", text = true}, array = mr.array("f32", {2})}

-- What takes any number: an element of an array has as many indices as the array has dimensions.
local any = {["array:get"] = true, ["array:set"] = true, ["mr.max"] = true, ["mr.min"] = true}

local n = 0
for name, topic in pairs(topics) do
  local kind, method = name:match "^(%a+):([%w_]+)$"
  local x = objects[kind]
  local f = x and x[method] or not kind and name:match "^mr%.[%w_]+$" and topic.call and rawget(mr, name:sub(4))
  if type(f) == "function" and not any[name] and topic.names[1] == name then
    local surplus = {}
    for i = 1, 12 do surplus[i] = false end
    local good, message
    if x then
      good, message = pcall(function() return x[method](x, table.unpack(surplus)) end)
    else
      good, message = pcall(function() return mr[name:sub(4)](table.unpack(surplus)) end)
    end
    n = n + 1
    tap.ok(not good and tostring(message):find " takes .*argument", name .. " refuses what it does not take", tostring(message))
  end
end
tap.ok(n > 80, "all calls of the reference", n)

local function says(code, want) tap.refuses('local plan = require "millrace".load_plan "attention_overlap" ' .. code, "user.lua:1: " .. want) end
says("plan:copy{device = 1}", "copy takes no arguments, got 1: plan:copy()")
says("plan:simulate(nil, nil, 3)", "simulate takes at most 1 argument, got 3: plan:simulate{events=, sizes=, warm=}")
says('plan:append("softmax", {}, 3)', 'append takes at most 2 arguments, got 3: plan:append(task, {seu="tensor", lane="c0", at=1})')
says("mr.devices(3)", "devices takes no arguments, got 1: mr.devices()")
tap.ok(pcall(plan.copy, plan, nil, nil), "nil is no argument too many")

-- nil is what a misspelt name gives: it is no way to leave an argument out.
local path = os.tmpname()
local kept = mr.load_plan "attention_overlap"
os.remove(path)
kept:save(path)
local before = io.open(path):read "a"
kept:buffers{v = 3}
for _, call in ipairs{"save(nil)", "save(nil, {overwrite = true})"} do
  tap.refuses(('local plan = require "millrace".load_plan %q plan:%s'):format(path, call),
    ("user.lua:1: save: path expected, got nil; plan:save() writes '%s'"):format(path))
end
local good, message = pcall(kept.save, kept, nil)
tap.ok(not good and tostring(message):find "save: path expected, got nil", "nor through pcall", tostring(message))
tap.is(io.open(path):read "a", before, "  and its file is as it was")
tap.is(kept:save(), path, "without an argument the plan's own file is written")
os.remove(path)
says("plan:save(nil)", "save: path expected, got nil; plan:save() writes the file of a plan that has one")
says("mr = require 'millrace' mr.plan(plan.graph, nil)",
  "plan: argument 2 is nil; is a name misspelt? What is not given is left out: mr.plan(graph[, device])")
tap.ok(pcall(plan.table, plan, nil), "options may be nil, as those are that a function passes on")
says('mr = require "millrace" mr.load_plan("gemm_cooperative", nil, {device = "h200"})', "load_plan: argument 2 is nil; "
  .. "is a name misspelt? What is not given is left out: mr.load_plan(path or name[, program][, {device=}])")
says('mr = require "millrace" mr.search(plan.graph.program, nil, {trials = 1})', "search: device expected, got nil; "
  .. "mr.device(), as in mr.search(program, mr.device(), {...}), takes the attached device, or the model h200 if there is none")
says('mr = require "millrace" mr.search(plan.graph.program, nil)',
  "search: device expected, got nil; mr.search(program) takes the attached device, or the model h200 if there is none")
says("plan:remove(nil)", "remove: sTask must be a string, got nil")
says("plan:wait('softmax', nil)", "wait: list of sTasks expected, got nil")
says("plan:buffers(nil)", "buffers: table of versions by buffer expected, got nil")
tap.done_testing()
