-- What must still work after any failure, in the same state.
local mr = require "millrace"
local id = mr.program("id", function(p)
  local n = p:axes "n"
  local X, Y = p:input("X", {n}, "f64"), p:output("Y", {n}, "f64")
  Y:store(p:load(X) + 0)
end)
local bound = id{n=3}
local inputs = bound:inputs()
assert(bound:reference(inputs).Y:max_error(inputs.X) == 0)
