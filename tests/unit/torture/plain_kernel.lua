-- The text of the plain kernel, with its choice of tiles.
local mr, core = require "millrace", require "millrace.core"
local rows = mr.program("rows", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m})
  Y:store(mr.rowmax(p:load(X), n))
end)
assert(#core.plain(rows{m=200, n=9}) > 0)
