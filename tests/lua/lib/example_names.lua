-- example_names.lua - the names of the examples, sorted: of the programs, and of the sequences of kernels.
local mr = require "millrace"

local programs, sequences = {}, {}
for name, example in pairs(mr.examples) do
  local list = debug.getmetatable(example).__name == "sequence" and sequences or programs
  list[#list + 1] = name
end
table.sort(programs)
table.sort(sequences)
return programs, sequences
