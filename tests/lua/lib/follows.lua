-- follows.lua - programs against formulas in plain Lua: `dofile(...)(tap)` is the function follows(what, bound, inputs, want[, by_rows]).
local mr = require "millrace"

-- The output Y must be want(i, j, ...) of the positions from 0, of the reference and of a kernel without any choice;
-- anything, where that is nil. by_rows: the copy engine brings rows one by one where it can.
return function(tap)
  return function(what, bound, inputs, want, by_rows)
    local reference, host = bound:reference(inputs), bound:reference(inputs, {on = "host"})
    local plan = mr.plan(bound:graph{}, mr.device "h200")
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {by_rows = by_rows and t.kind == "load"}) end
    plan:fill_waits()
    local kernel = plan:compile{target = "host"}
    local shape = reference.Y:shape()
    local expected = mr.array("f64", shape, function(...)
      local at = {...}
      for i = 1, #at do at[i] = at[i] - 1 end
      return want(table.unpack(at)) or 0 / 0
    end)
    local unstored = {}
    for i = 1, #expected do unstored[i] = expected[i] ~= expected[i] end
    for name, got in pairs{["the reference"] = reference.Y, ["that of C"] = host.Y, ["a kernel"] = kernel:run(inputs, {race = true}).Y} do
      for i = 1, #expected do
        if unstored[i] then got[i], expected[i] = 0, 0 end
      end
      local most = got:max_error(expected)
      tap.ok(most <= 1e-5, what .. ", " .. name, "greatest difference " .. most)
    end
  end
end
