-- columns.lua - rows of cells as lines of text, in columns of equal width.

local function width(text) return utf8.len(text) or #text end

-- columns(rows, is_right) -> list of lines. is_right(i): is column i aligned to the right?
return function(rows, is_right)
  local widths, lines = {}, {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, width(cell)) end
  end
  for n, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local blank = (" "):rep(widths[i] - width(cell))
      cells[i] = is_right(i) and blank .. cell or cell .. blank
    end
    lines[n] = table.concat(cells, "  "):gsub("%s+$", "")
  end
  return lines
end
