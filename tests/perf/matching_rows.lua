-- matching_rows.lua - the rows of rows.py whose names have one of some patterns. matching_rows(patterns) -> a list of what
-- `rows.py --programs` prints: {case=, program=, sizes=, ...}; raises if that fails. Needs python3.
local dir = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
local parse_json = dofile(dir .. "../lua/lib/parse_json.lua")

return function(patterns)
  local rows, list = {}, assert(io.popen(("python3 '%srows.py' --programs"):format(dir)))
  for line in list:lines() do
    local row = parse_json(line)
    for _, pattern in ipairs(patterns) do
      if row.case:find(pattern) then
        rows[#rows + 1] = row
        break
      end
    end
  end
  assert(list:close(), "rows.py --programs failed")
  return rows
end
