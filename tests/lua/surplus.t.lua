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
says("plan:simulate(nil, nil, 3)", "simulate takes at most 1 argument, got 3: plan:simulate{events=}")
says('plan:append("softmax", {}, 3)', 'append takes at most 2 arguments, got 3: plan:append(task, {seu="tensor", lane="c0", at=1})')
says("mr.devices(3)", "devices takes no arguments, got 1: mr.devices()")
tap.ok(pcall(plan.copy, plan, nil, nil), "nil is no argument too many")
tap.done_testing()
