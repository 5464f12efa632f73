-- What calls of a sequence write: programs that store only some elements of a temporary or an output, and programs that read others. By
-- the elements one by one: a sequence is refused if a call reads one that no call before it stores, and the message names the first.
--
--   millrace tests/lua/sequence_writes.t.lua [first [last]]
local tap = dofile(os.getenv "MILLRACE_HOME" .. "/tests/lua/tap.lua")

local state
local function below(n)                                 -- from 0
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % n
end

---- random indices ------------------------------------------------------------------------------

-- Of axes, and of numbers alike.
local forms = {
  function(i) return i end,
  function(i) return i end,
  function(i) return i + 1 end,
  function(i) return i * 2 end,
  function(i) return i * 2 + 1 end,
  function(i) return i * 3 - 2 end,
  function(_, j) return j end,
  function(i, j) return i * 4 + j end,
  function(i, j) return i + j * 2 end,
  function(i) return i // 2 end,
  function(i) return i % 3 end,
  function(i, j) return i // 2 * 4 + j end,
}

-- Access of {rows, columns} by i and j; of all of it, of its even or odd columns, or anything.
local function draw(rows, columns, kind)
  if kind == "all" then return {rows = rows, columns = columns, i = rows, j = columns, of_row = 1, of_column = 1} end
  if kind == "even" or kind == "odd" then
    return {rows = rows, columns = columns, i = rows, j = (columns + 1) // 2, of_row = 1, of_column = kind == "even" and 4 or 5}
  end
  return {rows = rows, columns = columns, i = 1 + below(8), j = 1 + below(8), of_row = 1 + below(#forms), of_column = 1 + below(#forms)}
end

-- Visit {row, column} of all that is accessed; bounded: only those where j <= i.
local function each(x, f)
  for i = 0, x.i - 1 do
    for j = 0, x.bounded and math.min(i, x.j - 1) or x.j - 1 do
      local row, column = forms[x.of_row](i, j), forms[x.of_column](j, i)
      if row >= 0 and row < x.rows and column >= 0 and column < x.columns then f(row, column) end
    end
  end
end

---- programs of them ----------------------------------------------------------------------------

-- Stores at the indices of each of the list.
local function writer(list)
  return pcall(function()
    local sizes = {rows = list[1].rows, columns = list[1].columns, i = list[1].i, j = list[1].j}
    return mr.program("writer", function(p)
      local rows, columns = p:axes("rows", "columns")
      local i, j = p:axes("i", "j")
      local X, Y = p:input("X", {i, j}, "f32"), p:output("Y", {rows, columns}, "f32")
      for n, x in ipairs(list) do
        p:phase("part" .. n, function()
          local v = p:load("load" .. n, X)
          Y:store("store" .. n, p:task("work" .. n, function() return v * 2 end), {forms[x.of_row](i, j), forms[x.of_column](j, i)})
        end)
      end
    end):bind(sizes)
  end)
end

local function reader(x)
  return pcall(function()
    return mr.program("reader", function(p)
      local rows, columns = p:axes("rows", "columns")
      local i, j = p:axes("i", "j")
      local X, Y = p:input("X", {rows, columns}, "f32"), p:output("Y", {i}, "f32")
      local sum = p:carry("sum", {i}, 0)
      p:loop(j, {upto = x.bounded and i or nil}, function()
        local v = p:load("load", X, {forms[x.of_row](i, j), forms[x.of_column](j, i)})
        p:task("work", function()
          if x.bounded then v = mr.where(j:index():le(i:index()), v, 0) end
          sum:set(sum + mr.rowsum(v, j))
        end)
      end)
      Y:store("store", sum)
    end):bind{rows = x.rows, columns = x.columns, i = x.i, j = x.j}
  end)
end

local first, last = tonumber(arg and arg[1]) or 1, tonumber(arg and (arg[2] or arg[1])) or 1500
local made, refused, wrong = 0, 0, 0
for seed = first, last do
  state = seed * 2654435761 + 1
  for _ = 1, 3 do below(2) end
  local rows, columns, list, kinds = 4 + below(5), 4 + below(5), {}, {"any", "any", "all", "even"}
  local kind = kinds[1 + below(4)]
  for n = 1, kind == "even" and 2 or 1 + below(2) do
    list[n] = draw(rows, columns, kind)
    list[n].i, list[n].j = list[1].i, list[1].j
    if kind == "even" then kind = below(4) == 0 and "even" or "odd" end
  end
  local read = below(4) > 0 and draw(rows, columns, kinds[1 + below(4)]) or {}
  if not read.i then
    for key, value in pairs(list[1]) do read[key] = value end
    read.i, read.j = 1 + below(read.i), 1 + below(read.j)
  end
  read.bounded = below(3) == 0
  local can, w = writer(list)
  local could, r = reader(read)
  if can and could then
    local stored, want = {}, nil
    for _, x in ipairs(list) do each(x, function(row, column) stored[row * x.columns + column] = true end) end
    each(read, function(row, column)
      local at = row * read.columns + column
      if not stored[at] and (not want or at < want) then want = at end
    end)
    local seq = mr.sequence("drawn", function(s)
      local x, t = s:input("x", {list[1].i, list[1].j}, "f32"), s:temp("t", {list[1].rows, list[1].columns}, "f32")
      local y = s:state("y", {read.i}, "f32")
      s:call("write", w, {X = x, Y = t})
      s:call("read", r, {X = t, Y = y})
    end)
    local good, message = pcall(seq)
    made, refused = made + 1, refused + (good and 0 or 1)
    local says = want and ("'read' reads element [%d, %d] of 't'"):format(want // read.columns, want % read.columns)
    if good ~= not want or want and not tostring(message):find(says, 1, true) then
      wrong = wrong + 1
      if wrong < 5 or first == last then tap.ok(false, ("sequence %d"):format(seed), tostring(message), tostring(says), w, r) end
    end
  end
end
print(("# %d sequences, %d refused"):format(made, refused))
tap.ok(first == last or made > 600 and refused > 150 and made - refused > 150, "some are refused, and some are not")
tap.is(wrong, 0, "what is read and not stored, by elements")
tap.done_testing()
