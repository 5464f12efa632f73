-- trace.lua - kernel:trace.

local core = require "millrace.core"
local raise, show, entry, expect = core.raise, core.show, core.entry, core.expect

local on_gpu <const> = {"inputs", "seed", "limit", "seconds", "eu"}
local known <const> = {cuda = on_gpu, hip = on_gpu, host = {"inputs", "seed", "limit", "eu"}}

local function options(k, o)
  if o == nil then return {} end
  expect(type(o) == "table", "trace", "table of options", o)
  local copy = {}
  for key, value in pairs(o) do
    local found = false
    for _, name in ipairs(known[k.target]) do found = found or key == name end
    if not found then
      raise(("trace: unknown option %s for target %q%s"):format(show(key), k.target, core.hint(key, known[k.target])))
    end
    copy[key] = value
  end
  return copy
end

-- On the host the seed also decides wherever the plan leaves an order open.
local function trace(k, given)
  if not core.target(k) then raise("trace: kernel expected, got " .. show(k)) end
  local o = options(k, given)
  if k.target ~= "host" and k.registers == 0 then
    raise "trace: this kernel is text alone; compile it without text=true"
  end
  local found, why = true, nil
  if k.target == "hip" then found, why = core.attached "hip" end
  if not found then raise("trace: no AMD GPU to run it on: " .. why .. "; plan:compile{target=\"host\"}:trace() shows the order on the CPU") end
  local inputs, program = o.inputs, k.plan.graph.program
  local lengths = not inputs and core.typical_lengths(program)
  o.inputs = nil
  if not inputs and (lengths or k.target == "host") then inputs = program:inputs{seed = o.seed} end
  for name, n in pairs(lengths or {}) do inputs[name]:fill(n) end
  if k.target ~= "host" then return core.trace(k, inputs, o) end
  local tl, report = core.host_trace(k, inputs, o)
  if report then raise("trace: " .. report) end
  return tl
end

return function()
  for _, class in ipairs{"millrace.kernel", "millrace.on_host"} do
    core.method(class, "trace", entry(trace))
  end
  return {}
end
