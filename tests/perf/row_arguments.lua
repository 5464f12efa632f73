-- row_arguments.lua - the arguments [NAME=NUMBER ...] [PATTERN ...] of a script, and the rows that they name.
-- row_arguments(defaults, usual) -> {NAME= number}, the defaults where an argument does not say otherwise; and the rows of rows.py whose names
-- have one of the patterns (Lua), or of `usual` ones if there is none. Raises if no row has. Needs python3.
local dir = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"

return function(defaults, usual)
  local patterns = {}
  for _, word in ipairs(arg) do
    local key, value = word:match "^(%l+)=(%d+)$"
    if key then defaults[key] = tonumber(value) else patterns[#patterns + 1] = word end
  end
  local rows = dofile(dir .. "matching_rows.lua")(patterns[1] and patterns or usual)
  assert(rows[1], "no row has such a name")
  return defaults, rows
end
