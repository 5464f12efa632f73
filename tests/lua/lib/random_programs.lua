-- random_programs.lua - tile programs drawn at random, as Lua text.
--
-- draw(seed) gives a program with axes, phases, loops, carries, loads of all types by all kinds of indices, products,
-- element-wise work, reductions, scans, stores and additions. The same seed gives the same program on every machine.
-- Each statement is one line of its own, so that shrink() can leave lines out.
--
-- A program is kept as {seed=, sizes = {name = n}, axes = {names}, lines = {{text=, block=}, ...}}. A line that opens or
-- ends a block has the number of its block: both go together.
local mr = require "millrace"

local M = {}
local random = math.random

local function choose(list) return list[random(#list)] end
local function chance(p) return random() < p end

---- a program under way ------------------------------------------------------------

local function name_of(draft, stem)
  draft.names = draft.names + 1
  return stem .. draft.names
end

local function emit(draft, text, block)
  draft.lines[#draft.lines + 1] = {text = ("  "):rep(draft.depth) .. text, block = block}
end

local function open(draft, text)
  draft.blocks = draft.blocks + 1
  emit(draft, text, draft.blocks)
  draft.depth = draft.depth + 1
  table.insert(draft.open, draft.blocks)
end

local function close(draft, text)
  draft.depth = draft.depth - 1
  emit(draft, text, table.remove(draft.open))
end

-- A line in the head of the program, before all phases: tensors and axes.
local function declare(draft, text)
  table.insert(draft.head, {text = "  " .. text})
end

local function list(names) return table.concat(names, ", ") end

---- values -------------------------------------------------------------------------

-- A value: {name=, axes={names}, dtype=, made="load" or not}. Regions are lists of values that can be used.
local function holds(axes, axis)
  for _, a in ipairs(axes) do if a == axis then return true end end
  return false
end

local function has(value, axis) return holds(value.axes, axis) end

local function union(a, b)
  local axes = {table.unpack(a.axes)}
  for _, axis in ipairs(b.axes) do if not has(a, axis) then axes[#axes + 1] = axis end end
  return axes
end

local function without(axes, axis)
  local others = {}
  for _, a in ipairs(axes) do if a ~= axis then others[#others + 1] = a end end
  return others
end

-- Is the value over exactly these axes?
local function is_over(value, axes)
  if #value.axes ~= #axes then return false end
  for _, axis in ipairs(axes) do if not has(value, axis) then return false end end
  return true
end

local function shuffled(axes)
  local copy = {table.unpack(axes)}
  for i = #copy, 2, -1 do
    local j = random(i)
    copy[i], copy[j] = copy[j], copy[i]
  end
  return copy
end

-- draft.used: the axes of values of the phase, over which no loop can begin any more.
local function keep(draft, value)
  for _, axis in ipairs(value.axes) do draft.used[axis] = true end
  table.insert(draft.values[#draft.values], value)
  return value
end

-- All values in sight that suit.
local function in_sight(draft, suits)
  local found = {}
  for _, region in ipairs(draft.values) do
    for _, v in ipairs(region) do if suits(v) then found[#found + 1] = v end end
  end
  return found
end

local TYPES <const> = {"bf16", "bf16", "bf16", "f16", "f32", "f32", "e4m3", "e5m2", "i8", "i32"}
local OPERANDS <const> = {"bf16", "bf16", "bf16", "bf16", "f16", "f16", "e4m3", "e5m2", "i8", "tf32"}

-- As an operand of arithmetic: f32.
local function number(v)
  if v.dtype == "i32" then return ('(%s & 15):to "f32"'):format(v.name) end
  return v.dtype == "f32" and v.name or v.name .. ':to "f32"'
end

---- loads --------------------------------------------------------------------------

-- An index along an axis: its text and the size of the dimension. Most are the axis itself.
local function index_of(draft, axis)
  local size = draft.sizes[axis]
  local roll = random(20)
  if roll == 1 then
    local by = choose{-5, -1, 1, 3, 8}
    return ("%s + %d"):format(axis, by), size
  elseif roll == 2 then
    local by = choose{2, 4, 8, 16}
    return ("%s // %d"):format(axis, by), (size + by - 1) // by
  elseif roll == 3 then
    local by = choose{2, 4, 8, 16}
    return ("%s %% %d"):format(axis, by), by
  elseif roll == 4 then
    return ("%s * 2 + 1"):format(axis), 2 * size
  end
  return axis, size
end

-- Rows by a table: an i32 value over one axis, the same for so many rows.
local function table_value(draft, axis, by)
  local tensor, value = name_of(draft, "T"), name_of(draft, "t")
  by = by or choose{1, 1, 8, 16}
  local rows = (draft.sizes[axis] + by - 1) // by
  declare(draft, ('local %s = p:input("%s", {p:axis("%s_rows", %d)}, "i32")'):format(tensor, tensor, tensor:lower(), rows))
  emit(draft, ('local %s = p:load("load_%s", %s, {%s})'):format(value, value, tensor, by == 1 and axis or axis .. " // " .. by))
  return {name = value, axes = {axis}, dtype = "i32"}
end

-- A length of a loop, one for each index of the batch axis.
local function length_value(draft)
  local tensor, value = name_of(draft, "T"), name_of(draft, "t")
  declare(draft, ('local %s = p:input("%s", {%s}, "i32")'):format(tensor, tensor, draft.batch or
    ('p:axis("%s_one", 1)'):format(tensor:lower())))
  emit(draft, ('local %s = p:load("load_%s", %s, {%s})'):format(value, value, tensor, draft.batch or 0))
  return value
end

-- A tensor's tile over the axes, of which the order of dimensions is any.
local function load_value(draft, axes, dtype)
  local tensor, value = name_of(draft, "X"), name_of(draft, "x")
  local dims, index, plain = {}, {}, true
  axes = shuffled(axes)
  if draft.batch and chance(0.7) then table.insert(axes, 1, draft.batch) end
  for i, axis in ipairs(axes) do
    local text, size = index_of(draft, axis)
    if axis ~= draft.batch and chance(0.04) then
      local t = table_value(draft, axis)
      text, size = t.name, choose{7, 24, 64}
    end
    plain = plain and text == axis
    index[i] = text
    dims[i] = text == axis and axis or ('p:axis("%s_%d", %d)'):format(tensor:lower(), i, size)
  end
  declare(draft, ('local %s = p:input("%s", {%s}, "%s")'):format(tensor, tensor, list(dims), dtype))
  emit(draft, ('local %s = p:load("load_%s", %s%s)'):format(value, value, tensor,
    plain and "" or ", {" .. list(index) .. "}"))
  return keep(draft, {name = value, axes = without(axes, draft.batch), dtype = dtype, made = "load"})
end

-- Some axes that values may have here: those of the tile and of the loops around.
local function some_axes(draft, most)
  local all = shuffled(draft.axes)
  local axes = {}
  for _, loop in ipairs(draft.loops) do
    if #axes < most and chance(0.85) then axes[#axes + 1] = loop end
  end
  for _, axis in ipairs(all) do
    local loop_elsewhere = draft.looped[axis]
    if #axes < most and not loop_elsewhere and chance(0.6) then
      if not holds(axes, axis) then axes[#axes + 1] = axis end
    end
  end
  if #axes == 0 then axes[1] = draft.loops[1] or all[1] end
  return axes
end

---- work ---------------------------------------------------------------------------

local UNARY <const> = {
  "%s * 0.5", "%s + 1", "-%s", "mr.exp2(%s * 0.1)", "mr.tanh(%s)", "mr.silu(%s)", "mr.gelu(%s)", "mr.abs(%s)",
  "mr.rsqrt(mr.abs(%s) + 1)", "mr.sigmoid(%s)", "mr.log2(mr.abs(%s) + 1)", "mr.max(%s, 0)", "mr.erf(%s)",
  "mr.sqrt(mr.abs(%s))",
}
local BINARY <const> = {"%s + %s", "%s - %s", "%s * %s", "mr.max(%s, %s)", "mr.min(%s, %s)", "%s / (mr.abs(%s) + 1)"}

local function a_value(draft)
  local found = in_sight(draft, function() return true end)
  if #found == 0 or chance(0.25) then return load_value(draft, some_axes(draft, 3), choose(TYPES)) end
  return choose(found)
end

-- Values are as large as tiles are: no more than three axes, and few elements.
local function fits(draft, axes)
  local n = 1
  for _, axis in ipairs(axes) do n = n * draft.sizes[axis] end
  return #axes <= 3 and n <= 65536
end

local function compute(draft)
  local a = a_value(draft)
  local text, axes = number(a), a.axes
  for _ = 1, random(2) do
    local b = chance(0.4) and a_value(draft)
    local both = b and union({axes = axes}, b)
    if both and fits(draft, both) then
      text, axes = "(" .. choose(BINARY):format(text, number(b)) .. ")", both
    else
      text = "(" .. choose(UNARY):format(text) .. ")"
    end
  end
  local roll = random(12)
  if roll == 1 and #axes > 0 then
    local axis = choose(axes)
    text = ("mr.where(%s:index():%s(%d), %s, %s)"):format(axis, choose{"lt", "ge", "ne"}, random(0, draft.sizes[axis]), text,
      choose{"0", "-1", "0.5"})
  elseif roll == 2 and #axes > 1 then
    text = ("mr.where(%s:index():le(%s:index()), %s, 0)"):format(axes[1], axes[2], text)
  elseif roll == 3 and #axes > 0 then
    text = ("%s + %s:index():to \"f32\" * 0.01"):format(text, choose(axes))
  elseif (roll == 4 or roll == 5) and #axes > 0 then
    local axis = choose(axes)
    if not holds(draft.loops, axis) then                                  -- else it would depend on the tile of the loop
      text = ("mr.%s(%s, %s)"):format(choose{"cumsum", "cummax", "cummin"}, text, axis)
    end
  elseif roll <= 7 and #axes > 0 then
    local axis = choose(axes)
    if not holds(draft.loops, axis) then
      text, axes = ("mr.%s(%s, %s)"):format(choose{"rowsum", "rowmax", "rowmin"}, text, axis), without(axes, axis)
    end
  end
  for _ = 1, roll == 8 and #axes > 0 and random(2) or 0 do     -- elements of other indices, or the axis under the index of another
    if #axes == 0 then break end
    local axis, other = choose(axes), choose(draft.axes)
    local free = not holds(draft.loops, axis) and (other == axis or not draft.looped[other] or holds(draft.loops, other))
    local all = other == axis and axes or union({axes = without(axes, axis)}, {axes = {other}})
    if free and fits(draft, all) then
      local index = choose{"%s ~ 1", "%s ~ 6", "%s + 1", "%s - 3", "%s // 2", "%s %% 4", "%s", "%s"}:format(other)
      text, axes = ("(%s):at(%s, %s)"):format(text, axis, index), all
    end
  end
  local dtype = chance(0.35) and choose{"bf16", "bf16", "f16"} or "f32"
  if dtype ~= "f32" then text = ('(%s):to "%s"'):format(text, dtype) end
  local value = name_of(draft, "v")
  if chance(0.8) then
    emit(draft, ('local %s = p:task("%s", function() return %s end)'):format(value, value, text))
  else
    emit(draft, ("local %s = %s"):format(value, text))
  end
  return keep(draft, {name = value, axes = axes, dtype = dtype})
end

-- An operand of a product over these axes.
local function operand(draft, axes, dtype)
  local found = in_sight(draft, function(v) return v.dtype == dtype and is_over(v, axes) end)
  if #found > 0 and chance(0.5) then return choose(found).name end
  if dtype ~= "i8" and chance(0.2) then                  -- of what has been computed, as when weights are unpacked
    local x, value = load_value(draft, axes, choose(TYPES)), name_of(draft, "c")
    emit(draft, ('local %s = p:task("%s", function() return (%s):to "%s" end)'):format(value, value,
      choose(UNARY):format(number(x)), dtype))
    return value
  end
  local made = in_sight(draft, function(v) return v.dtype == "f32" and dtype ~= "i8" and is_over(v, axes) end)
  if #made > 0 and chance(0.5) then
    local value = name_of(draft, "c")
    emit(draft, ('local %s = p:task("%s", function() return %s:to "%s" end)'):format(value, value, choose(made).name, dtype))
    return value
  end
  return load_value(draft, axes, dtype).name
end

-- A product that contracts `along`.
local function product(draft, along)
  local own = {}
  for _, axis in ipairs(shuffled(draft.axes)) do
    local blocked = axis == along or draft.looped[axis]
    for _, loop in ipairs(draft.loops) do blocked = blocked and loop ~= axis or axis == along end
    if not blocked then own[#own + 1] = axis end
  end
  if #own < 2 then return end
  local dtype = choose(OPERANDS)
  local second = dtype
  if dtype == "e4m3" and chance(0.3) then second = "e5m2" end
  if dtype == "bf16" and chance(0.05) then second = "f16" end
  local first, other, axes = {own[1], along}, {own[2], along}, {own[1], own[2]}
  if own[3] and chance(0.15) then first[3], other[3] = own[3], own[3] end
  if chance(0.1) then first, axes = {along, first[3]}, {own[2]} end
  local a, b = operand(draft, first, dtype), operand(draft, other, second)
  local value = name_of(draft, "s")
  emit(draft, ('local %s = p:mma("mma_%s", %s, %s)'):format(value, value, a, b))
  return keep(draft, {name = value, axes = axes, dtype = "f32", made = "mma"})
end

---- loops --------------------------------------------------------------------------

local function carry(draft, axes, init)
  local value = name_of(draft, "c")
  emit(draft, ('local %s = p:carry("%s", {%s}, %s)'):format(value, value, list(axes), init))
  return value
end

-- The first value in sight over exactly these axes, or a load.
local function value_over(draft, axes)
  local suits = in_sight(draft, function(v) return is_over(v, axes) end)
  return #suits > 0 and choose(suits) or load_value(draft, axes, choose(TYPES))
end

-- What a loop over `axis` leaves: sums, products and greatest values along it, each {kind=, axes=, carry=}. Their carries are
-- declared here, before the loop.
local function results_of_loop(draft, axis, nested)
  local results = {}
  for _ = 1, random(2) do
    local kind = choose{"product", "product", "sum", "greatest", "stored"}
    local own = {}
    for _, a in ipairs(shuffled(draft.axes)) do
      local most = kind == "product" and 2 or choose{1, 1, 2}
      if a ~= axis and not draft.looped[a] and #own < most then own[#own + 1] = a end
    end
    if kind == "product" and #own < 2 then kind = "sum" end
    if kind == "stored" and nested then kind = "greatest" end
    local r = {kind = kind, axes = own}
    if kind ~= "stored" then r.carry = carry(draft, own, kind == "greatest" and "-math.huge" or "0") end
    results[#results + 1] = r
  end
  return results
end

local function finish_result(draft, r, axis, mask)
  if r.kind == "product" then
    local dtype = choose(OPERANDS)
    local a
    if mask then
      a = name_of(draft, "c")
      dtype = dtype == "i8" and "bf16" or dtype
      emit(draft, ('local %s = p:task("%s", function() return %s:to "%s" end)'):format(a, a,
        mask:format(number(value_over(draft, {r.axes[1], axis})), 0), dtype))
    else
      a = operand(draft, {r.axes[1], axis}, dtype)
    end
    local b = operand(draft, {r.axes[2], axis}, dtype)
    local name = name_of(draft, "mma")
    if chance(0.8) then
      emit(draft, ('%s:add(p:mma("%s", %s, %s))'):format(r.carry, name, a, b))
    else
      emit(draft, ('local %s = p:mma("%s", %s, %s)'):format(name, name, a, b))
      emit(draft, ('p:task("add_%s", function() %s:add(%s * 0.5) end)'):format(name, r.carry, name))
    end
  elseif r.kind == "stored" then
    M.store(draft, value_over(draft, {axis, table.unpack(r.axes)}))
  else
    local v, task = number(value_over(draft, {axis, table.unpack(r.axes)})), name_of(draft, "u")
    if mask then v = mask:format(v, r.kind == "sum" and 0 or -1e30) end
    if r.kind == "sum" then
      emit(draft, ('p:task("%s", function() %s:add(mr.rowsum(%s, %s)) end)'):format(task, r.carry, v, axis))
    else
      emit(draft, ('p:task("%s", function() %s:set(mr.max(%s, mr.rowmax(%s, %s))) end)'):format(task, r.carry, r.carry, v, axis))
    end
  end
end

-- A loop over `axis`; returns the values that it leaves for what follows.
local function loop(draft, axis, nested)
  local results, after, bounds, mask = results_of_loop(draft, axis, nested), {}, "", nil
  local row = results[1].axes[1]
  for _, r in ipairs(results) do
    if r.kind == "stored" or r.axes[1] ~= row then row = nil end
  end
  if holds(draft.loops, row) then row = nil end
  local options = {}
  if chance(0.2) then options[1] = "length = " .. length_value(draft) end
  if row and chance(0.3) then                           -- each row has the elements up to its own
    options[#options + 1] = "upto = " .. row
    mask = ("mr.where(%s:index():le(%s:index()), %%s, %%s)"):format(axis, row)
  end
  if #options > 0 then bounds = "{" .. list(options) .. "}, " end
  open(draft, ("p:loop(%s, %sfunction()"):format(axis, bounds))
  table.insert(draft.loops, axis)
  table.insert(draft.values, {})
  for _ = 1, random(0, 2) do compute(draft) end
  if chance(0.3) and not nested then
    local inner = {}
    for _, a in ipairs(draft.axes) do
      local free = a ~= axis and not draft.looped[a] and not draft.used[a]
      for _, r in ipairs(results) do
        for _, b in ipairs(r.axes) do free = free and a ~= b end
      end
      if free then inner[#inner + 1] = a end
    end
    if #inner > 0 then loop(draft, choose(inner), true) end
  end
  for _, r in ipairs(results) do
    finish_result(draft, r, axis, mask)
    if r.carry then after[#after + 1] = {name = r.carry, axes = r.axes, dtype = "f32"} end
  end
  table.remove(draft.values)
  table.remove(draft.loops)
  close(draft, "end)")
  draft.looped[axis] = true
  for _, v in ipairs(after) do keep(draft, v) end
  return after
end

---- stores -------------------------------------------------------------------------

-- Indices of a store that are not its axes: its elements are elsewhere in a tensor, and some of them may be outside. `dims` gets the
-- dimensions. Two elements are never stored to one.
local function elsewhere(draft, tensor, axes, dims)
  local index, at, n, i = {}, {}, 0, 1
  local function dimension(size, text)
    n = n + 1
    dims[n], at[n] = ('p:axis("%s_%d", %d)'):format(tensor:lower(), n, math.max(size, 1)), text
  end
  table.move(axes, 1, #axes, 1, index)
  for k = #dims, 1, -1 do dims[k] = nil end
  while i <= #index do
    local axis, roll = index[i], random(12)
    local size = draft.sizes[axis]
    if roll <= 3 then                                   -- a shift, of any number or of one that tiles have
      local by = choose{1, 2, 8, 16, 32, 64, size // 2, random(size)}
      dimension(size + choose{0, 0, by, by + 8, -by, -by // 2, 8, 16}, ("%s %s %d"):format(axis, choose{"+", "-", "-"}, by))
    elseif roll == 4 then
      dimension(size * 2 + choose{0, -8, 8}, ("%s * 2 + %d"):format(axis, random(0, 1)))
    elseif roll == 5 then                               -- in blocks
      local by = choose{2, 4, 8, 16}
      dimension((size + by - 1) // by - choose{0, 0, 0, 1}, ("%s // %d - %d"):format(axis, by, choose{0, 0, 1}))
      dimension(by - choose{0, 0, 0, 1}, ("%s %% %d"):format(axis, by))
    elseif roll == 6 and index[i + 1] then              -- two axes in one dimension
      local other = index[i + 1]
      dimension(size * draft.sizes[other] - choose{0, 0, 8, size}, ("%s * %d + %s - %d"):format(axis, draft.sizes[other], other,
        choose{0, 0, 8, draft.sizes[other]}))
      i = i + 1
    elseif roll == 7 then                               -- the other way around
      dimension(size + choose{0, 0, -3, 8}, ("%d - %s"):format(size - 1 + choose{0, 0, 1, -2}, axis))
    elseif roll == 8 then
      dimension(size, axis)
      dimension(random(3), tostring(random(0, 2)))
    elseif roll == 9 then                               -- rows where a table says
      local t = table_value(draft, axis, 1)
      dimension(size + random(0, 9), t.name .. choose{"", "", " - 2", " + 1"})
    else
      n = n + 1
      dims[n], at[n] = roll == 10 and ('p:axis("%s_%d", %d)'):format(tensor:lower(), n, size + choose{8, 16, 24}) or axis, axis
    end
    i = i + 1
  end
  return ", {" .. list(at) .. "}"
end

function M.store(draft, value)
  local tensor = name_of(draft, "Y")
  local axes = shuffled(value.axes)
  local dtype, text = "f32", value.name
  if value.dtype ~= "f32" then
    dtype = value.dtype
  elseif chance(0.4) then
    dtype = choose{"bf16", "f16"}
    text = ('%s:to "%s"'):format(value.name, dtype)
  end
  if draft.batch then table.insert(axes, 1, draft.batch) end
  local dims, index = {}, ""
  for i, axis in ipairs(axes) do dims[i] = axis end
  if draft.elsewhere then index = elsewhere(draft, tensor, axes, dims) end
  if #dims == 0 then dims, index = {'p:axis("' .. tensor:lower() .. '_one", 1)'}, ", {0}" end
  if #axes > 0 and not draft.elsewhere and chance(0.05) then    -- rows where a table says
    local i = random(#axes)
    if axes[i] ~= draft.batch then
      local t = table_value(draft, axes[i], 1)
      dims[i] = ('p:axis("%s_rows", %d)'):format(tensor:lower(), draft.sizes[axes[i]] + random(0, 9))
      axes[i] = t.name
      index = ", {" .. list(axes) .. "}"
    end
  end
  declare(draft, ('local %s = p:output("%s", {%s}, "%s")'):format(tensor, tensor, list(dims), dtype))
  emit(draft, ('%s:store("store_%s", %s%s)'):format(tensor, tensor, text == value.name and (value.made == "load" or value.made == "mma") and text or
    ('p:task("out_%s", function() return %s end)'):format(tensor, text == value.name and text .. " + 0" or text), index))
end

---- programs -----------------------------------------------------------------------

-- What a phase makes is stored, or kept in a temporary for the next one.
local function phase(draft, last)
  draft.values, draft.loops, draft.looped, draft.used = {{}}, {}, {}, {}
  for _, temp in ipairs(draft.temps) do
    local value = name_of(draft, "x")
    emit(draft, ('local %s = p:load("load_%s", %s)'):format(value, value, temp.name))
    keep(draft, {name = value, axes = temp.axes, dtype = temp.dtype, made = "load"})
  end
  draft.temps = {}
  for _ = 1, random(0, 2) do
    if chance(0.3) then load_value(draft, some_axes(draft, 2), choose(TYPES)) else compute(draft) end
  end
  if chance(0.3) and #draft.axes > 2 then product(draft, choose(draft.axes)) end
  local made = {}
  for _ = 1, choose{0, 1, 1, 1, 1, 2} do
    local free, candidates = {}, {}
    for _, a in ipairs(draft.axes) do
      if not draft.looped[a] then free[#free + 1] = a end
      if not draft.looped[a] and not draft.used[a] then candidates[#candidates + 1] = a end
    end
    if #free > 1 and #candidates > 0 then
      for _, v in ipairs(loop(draft, choose(candidates))) do made[#made + 1] = v end
    end
  end
  for _ = 1, random(0, 2) do made[#made + 1] = compute(draft) end
  if #made == 0 then made[1] = compute(draft) end
  for i, v in ipairs(made) do
    if not last and i == #made and #v.axes > 0 then
      local temp = name_of(draft, "W")
      local axes, dtype = shuffled(v.axes), v.dtype
      if draft.batch then table.insert(axes, 1, draft.batch) end
      declare(draft, ('local %s = p:temp("%s", {%s}, "%s")'):format(temp, temp, list(axes), dtype))
      emit(draft, ('%s:store("store_%s", p:task("out_%s", function() return (%s * 0.5):to "%s" end))'):format(temp, temp, temp,
        number(v), dtype))
      draft.temps[1] = {name = temp, axes = v.axes, dtype = dtype}
    elseif i == #made or chance(0.6) then
      M.store(draft, v)
    end
  end
  if not last and chance(0.4) then                       -- begin a sum that the next phase adds to
    local axis, tensor = choose(draft.axes), name_of(draft, "Z")
    declare(draft, ('local %s = p:output("%s", {%s%s}, "f32")'):format(tensor, tensor, draft.batch and "b, " or "", axis))
    emit(draft, ('%s:store("zero_%s", p:task("zeros_%s", function() return (%s:index() * 0):to "f32" end))'):format(tensor, tensor,
      tensor, axis))
    draft.sum = {tensor = tensor, axis = axis}
  elseif last and draft.sum then
    for _, v in ipairs(made) do
      if has(v, draft.sum.axis) and #v.axes <= 2 then
        local text = number(v)
        for _, a in ipairs(without(v.axes, draft.sum.axis)) do text = ("mr.rowsum(%s, %s)"):format(text, a) end
        emit(draft, ('%s:add("add_%s", p:task("part_%s", function() return %s * 0.5 end))'):format(draft.sum.tensor, v.name, v.name, text))
        break
      end
    end
  end
end

local SIZES <const> = {1, 3, 8, 16, 16, 24, 32, 32, 40, 48, 64, 64, 70, 96}

-- Without what nothing that is stored depends on, which `bind` refuses.
local function live(lines)
  local wanted, stays, progress = {}, {}, true
  while progress do
    progress = false
    for i, line in ipairs(lines) do
      local text = line.text
      local updates = text:match "(%w+):add%(" or text:match "(%w+):set%("
      if text:find "[WYZ]%d+:store%(" or text:find "Z%d+:add%(" or wanted[text:match "local (%w+) =" or 0] or wanted[updates or 0] then
        if not stays[i] then
          stays[i], progress = true, true
          for name in text:gsub('"[^"]*"', ""):gmatch "%f[%w]%a%w*" do wanted[name] = true end
        end
      end
    end
  end
  local others = {}
  for i, line in ipairs(lines) do
    if i == 1 or line.block or line.text:find "p:batch" or stays[i] then others[#others + 1] = line end
  end
  for i = #others - 1, 1, -1 do                           -- blocks of nothing
    if others[i].block and others[i + 1] and others[i].block == others[i + 1].block then
      table.remove(others, i)
      table.remove(others, i)
    end
  end
  return others
end

-- elsewhere: stores have indices other than their axes
function M.draw(seed, elsewhere)
  math.randomseed(seed)
  local draft = {elsewhere = elsewhere, names = 0, blocks = 0, depth = 1, lines = {}, head = {}, open = {}, sizes = {}, axes = {}, temps = {}}
  for i = 1, choose{2, 3, 3, 3, 4} do
    local axis = ("mnkd"):sub(i, i)
    draft.axes[i], draft.sizes[axis] = axis, choose(SIZES)
  end
  local axes = {table.unpack(draft.axes)}
  if chance(0.25) then
    draft.batch, draft.sizes.b = "b", random(3)
    axes[#axes + 1] = "b"
  end
  local phases = chance(0.2) and 2 or 1
  if draft.batch and phases == 1 then emit(draft, "p:batch(b)") end
  for i = 1, phases do
    if phases > 1 then
      open(draft, ('p:phase("phase%d", function()'):format(i))
      if draft.batch then emit(draft, "p:batch(b)") end
    end
    phase(draft, i == phases)
    if phases > 1 then close(draft, "end)") end
  end
  local quoted = {}
  for i, axis in ipairs(axes) do quoted[i] = '"' .. axis .. '"' end
  local lines = {{text = ("  local %s = p:axes(%s)"):format(list(axes), list(quoted))}}
  table.move(draft.head, 1, #draft.head, #lines + 1, lines)
  table.move(draft.lines, 1, #draft.lines, #lines + 1, lines)
  return {seed = seed, sizes = draft.sizes, axes = axes, lines = live(lines)}
end

-- The program as a script that returns it.
function M.text(case)
  local out = {'local mr = require "millrace"', 'return mr.program("random", function(p)'}
  for _, line in ipairs(case.lines) do out[#out + 1] = line.text end
  out[#out + 1] = "end)"
  return table.concat(out, "\n") .. "\n"
end

function M.sizes_text(case)
  local out = {}
  for _, axis in ipairs(case.axes) do out[#out + 1] = ("%s = %d"):format(axis, case.sizes[axis]) end
  return "{" .. table.concat(out, ", ") .. "}"
end

-- Bound; or nil and the message.
function M.bind(case)
  local chunk = assert(load(M.text(case), "=program"))
  local made, prog = pcall(chunk)
  if not made then return nil, prog end
  local sizes = {}
  for axis, n in pairs(case.sizes) do sizes[axis] = n end
  local good, bound = pcall(prog.bind, prog, sizes)
  if not good then return nil, bound end
  return bound
end

-- The smallest case found by leaving lines and blocks out, and by smaller sizes, for which `fails(case)` still holds.
function M.shrink(case, fails)
  local function variant(lines, sizes)
    return {seed = case.seed, axes = case.axes, sizes = sizes or case.sizes, lines = live(lines)}
  end
  local progress = true
  while progress do
    progress = false
    for i = #case.lines, 2, -1 do
      local line = case.lines[i]
      if line then
        local others = {}
        for k, other in ipairs(case.lines) do
          if k ~= i and not (line.block and other.block == line.block) then others[#others + 1] = other end
        end
        local try = variant(others)
        if fails(try) then case, progress = try, true end
      end
    end
    for _, axis in ipairs(case.axes) do
      for _, n in ipairs{1, 8, 16, 64} do
        if n < case.sizes[axis] then
          local sizes = {}
          for a, s in pairs(case.sizes) do sizes[a] = s end
          sizes[axis] = n
          local try = variant(case.lines, sizes)
          if fails(try) then
            case, progress = try, true
            break
          end
        end
      end
    end
  end
  return case
end

-- A tile of the program: of each axis one of the extents; 0: the axis is not tiled.
function M.draw_tile(case, extents)
  local tile = {}
  for _, axis in ipairs(case.axes) do
    local extent = choose(extents)
    if extent > 0 then tile[axis] = extent end
  end
  return tile
end

return M
