-- within.lua - are outputs right, as far as the roundings of their program allow?

local core = require "millrace.core"

-- Which of the tiles along each axis an element is in, from 0: by the names of the axes that the tensor and the tile have.
local function tile_of(tensor, index, tile)
  local at = {}
  for i, axis in ipairs(tensor.axes) do
    if tile[axis] then at[axis] = (index[i] - 1) // tile[axis] end
  end
  return at
end

-- within(bound, got, want, allowed, tile, before) compares the outputs element by element. Of want and allowed: what
-- core.reference_allowing gives; tile: extents by axis; before: what outputs had before, false of one of which that is not known; nil: what a
-- run fills them with. Returns a table of
--   ok, wrong     are all elements right; how many are not
--   relative      the greatest error of an output in the Frobenius norm, and
--   allowed       what that could be if each element were off by what is allowed
--   max_abs       the greatest difference
--   worst         the element that is off by the greatest share of what is allowed: output=, index= (from 1), tile=,
--                 got=, want=, allowed=
--   stray         what the first element is that a kernel wrote although the program stores nothing there; else nil
--   notes         sentences about outputs of which the inputs leave little to be compared
local function add_notes(notes, name, one)
  if one.unlimited > 0 then
    notes[#notes + 1] = ("%d of %d elements of '%s' may be any number, as what overflows may, and were not compared"):format(one.unlimited,
      one.compared, name)
  end
  if one.compared == 0 then
    notes[#notes + 1] = ("no element of '%s' was stored"):format(name)
  elseif one.telling == 0 and one.unlimited < one.compared then
    notes[#notes + 1] = ("each element of '%s' that was compared is 0, or no number: a kernel that computes nothing may agree"):format(name)
  end
end

return function(bound, got, want, allowed, tile, before)
  local all, share = {ok = true, wrong = 0, relative = 0, allowed = 0, max_abs = 0, notes = {}}, -1
  for _, t in ipairs(bound.tensors) do
    if t.role == "output" then
      local one = core.compare(got[t.name], want[t.name], allowed[t.name], before and before[t.name])
      all.wrong = all.wrong + one.wrong + one.stray
      if one.stray > 0 and not all.stray then
        all.stray = ("%s[%s] is written, and the program stores nothing there"):format(t.name, table.concat(one.stray_at, ", "))
      end
      add_notes(all.notes, t.name, one)
      if not (one.max_abs <= all.max_abs) then all.max_abs = one.max_abs end       -- NaN stays
      if not (one.relative <= all.relative) then all.relative = one.relative end
      if not (one.allowed <= all.allowed) then all.allowed = one.allowed end
      if one.worst and one.share > share then
        share, all.worst = one.share, one.worst
        all.worst.output, all.worst.tile = t.name, tile_of(t, one.worst.index, tile)
      end
    end
  end
  all.ok = all.wrong == 0
  return all
end
