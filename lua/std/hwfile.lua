-- hwfile.lua - other numbers in the text of a device's file, which keeps all else that it says.

local core = require "millrace.core"
local raise = core.raise

local COLUMN <const> = 36                               -- where comments begin in hw/

-- Lines with what they are: {text=, path=, says=}: the field whose number stands there, and whether there
-- is nothing but a comment. A file has one field, or one opening or closing of a table, a line.
local function read_lines(text)
  local lines, stack = {}, {}
  for line in text:gmatch "([^\n]*)\n" do
    local code = line:gsub("%-%-.*", "")
    local x = {text = line, says = code:find "^%s*$" and line:find "%-%-"}
    local key, opened = code:match "^%s*([%w_]+)%s*=%s*[%d.][%w.+-]*%s*,", code:match "^%s+([%w_]*)[%s=]*{%s*$"
    local unit = code:match "name%s*=%s*\"([%w_]+)\""
    if unit and #stack > 0 then stack[#stack] = unit end
    if opened then stack[#stack + 1] = opened end
    if code:find "^%s*}" then stack[#stack] = nil end
    if key then x.path = table.concat(stack, ".") .. (#stack > 0 and "." or "") .. key end
    lines[#lines + 1] = x
  end
  return lines
end

-- The text with the numbers {value=, comment=} by path, both texts. What was said of the old ones goes. `head`
-- takes the position of the line at the top that says what "calibrated" means, or is added to them.
local function rewrite(text, numbers, head)
  local out, written, dropping, headed = {}, {}, false, false
  for _, line in ipairs(read_lines(text)) do
    local new = numbers[line.path]
    if new then
      local code = line.text:match "^%s*[%w_]+%s*=%s*" .. new.value .. ","
      out[#out + 1] = code .. (" "):rep(math.max(1, COLUMN - #code)) .. "-- " .. new.comment
      written[line.path] = true
    elseif line.text:find "^%-%-   calibrated" then
      out[#out + 1], headed = head, true
    elseif line.text:find "^return" and not headed then
      out[#out + 1], headed = head, true
      out[#out + 1] = line.text
    elseif not (dropping and line.says) then
      out[#out + 1] = line.text
    end
    dropping = new ~= nil or dropping and line.says
  end
  for path in pairs(numbers) do
    if not written[path] then raise(("the device's file has no line for %s"):format(path)) end
  end
  return table.concat(out, "\n") .. "\n"
end

return {read_lines = read_lines, rewrite = rewrite}
