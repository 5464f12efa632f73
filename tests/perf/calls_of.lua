-- calls_of.lua - time some calls of a layer, one after the other, by the plan of the layer: what a part of it takes.
--
--   millrace tests/perf/calls_of.lua PLAN CALL...
--
-- PLAN: a script of a plan of a sequence that comes with Millrace. What other calls write is an input here, with random elements.
local mr = require "millrace"
local core = require "millrace.core"

local sp = mr.load_plan(arg[1])
local seq, chosen, plans = sp.sequence, {}, {}
for i = 2, #arg do chosen[arg[i]] = true end

local part = mr.sequence("part", function(s)
  local tensors, written, handles = {}, {}, {}
  for _, t in ipairs(seq.tensors) do tensors[t.name] = t end
  for _, call in ipairs(core.sequence_call_names(seq)) do
    for _, x in ipairs(chosen[call] and core.sequence_args(seq, call) or {}) do
      assert(x.offset == 0, "a call of rows")
      written[x.tensor] = written[x.tensor] or x.writes
    end
  end
  for _, call in ipairs(core.sequence_call_names(seq)) do
    if chosen[call] then
      local given = {}
      for _, x in ipairs(core.sequence_args(seq, call)) do
        local t = tensors[x.tensor]
        handles[x.tensor] = handles[x.tensor] or s[written[x.tensor] and "output" or "input"](s, t.name, t.shape, t.dtype)
        given[x.own] = handles[x.tensor]
      end
      s:call(call, seq:program(call), given)
      plans[call] = sp:plan_of(call)
    end
  end
end)()

local planned = part:plan(sp.device, {plans = plans})
for _, c in ipairs(planned.calls) do planned:launch(c.name, {early = planned.calls[1].name ~= c.name}) end
assert(planned:check())
print(planned:simulate())
if mr.attached() then print(planned:bench{seconds = 0.5}) end
