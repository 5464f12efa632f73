-- operators.lua - the operators of tests/operators: programs as a user writes them, with formulas in plain Lua.
--
-- A file returns an operator, or a list of operators:
--   name      by default that of the file
--   program   what mr.program gives
--   small     sizes and options, a list; here the searched kernel runs on the CPU
--   usual     sizes and options at which people run the operator, a list; here it is searched, compiled and run on a device
--   fill      functions by input: fill.Table(sizes, i, j, ...) is the element at the positions i, j, ... from 0; other inputs are random
--   formula   function(inputs, sizes) giving functions by output: outputs.Y(i, j, ...) is the element at positions from 0, or nil
--             where the output is undefined; inputs are such functions, too, and are 0 outside of the tensor
--   tolerance largest error, relative to the largest element of the formula (0.02)
local mr = require "millrace"

local M = {}

-- All operators whose names match, by name. Folder: that of the operators, with "/".
function M.list(folder, pattern)
  local files, all = {}, {}
  for file in io.popen(("ls '%s'"):format(folder)):lines() do
    if file:find "%.lua$" then files[#files + 1] = file end
  end
  for _, file in ipairs(files) do
    local got = dofile(folder .. file)
    for _, operator in ipairs(got.program and {got} or got) do
      operator.name = operator.name or file:match "^(.*)%.lua$"
      if operator.name:find(pattern or "") then all[#all + 1] = operator end
    end
  end
  return all
end

-- Name and sizes in one line.
function M.describe(operator, sizes)
  local names, words = {}, {operator.name}
  for size in pairs(sizes) do names[#names + 1] = size end
  table.sort(names)
  for _, size in ipairs(names) do words[#words + 1] = ("%s=%s"):format(size, sizes[size]) end
  return table.concat(words, " ")
end

-- Inputs by name: random ones, and those that the operator fills.
function M.inputs(operator, bound, sizes, seed)
  local inputs = bound:inputs{seed = seed or 1}
  for name, f in pairs(operator.fill or {}) do
    local shape = inputs[name]:shape()
    inputs[name] = mr.array(inputs[name].dtype, shape, function(...)
      local at = {...}
      for i = 1, #at do at[i] = at[i] - 1 end
      return f(sizes, table.unpack(at))
    end)
  end
  return inputs
end

-- An array as a function of positions from 0, which is 0 outside.
local function reader(array)
  local shape = array:shape()
  return function(...)
    local at = {...}
    for i = 1, #at do
      if at[i] < 0 or at[i] >= shape[i] then return 0 end
      at[i] = at[i] + 1
    end
    return array:get(table.unpack(at))
  end
end

-- Compares up to `count` elements of each output with the operator's formula. Gives nil, or what differs.
function M.differs(operator, bound, sizes, inputs, outputs, count)
  local read = {}
  for name, array in pairs(inputs) do read[name] = reader(array) end
  local formulas, compared = operator.formula(read, sizes), 0
  for _, t in ipairs(bound.tensors) do
    local formula = t.role == "output" and formulas[t.name]
    if formula then
      local shape, total = outputs[t.name]:shape(), 1
      for _, n in ipairs(shape) do total = total * n end
      local got, worst, largest, where = reader(outputs[t.name]), 0, 0, nil
      local steps = math.min(count, total)
      for step = 0, steps - 1 do
        local index, at = step * total // steps, {}
        for i = #shape, 1, -1 do at[i], index = index % shape[i], index // shape[i] end
        local want = formula(table.unpack(at))
        if want then
          local value = got(table.unpack(at))
          local error = value == want and 0 or math.abs(value - want)
          compared, largest = compared + 1, math.max(largest, math.abs(want) < math.huge and math.abs(want) or 0)
          if not (error <= worst) then
            worst, where = error, ("%s[%s] is %s, by the formula %s"):format(t.name, table.concat(at, ", "), value, want)
          end
        end
      end
      if not (worst <= (operator.tolerance or 0.02) * largest) then return where end
    end
  end
  return compared == 0 and "the formula was asked for no element" or nil
end

return M
