-- program_of.lua - the program that a case of against_torch.py names. program_of(name) -> a function of sizes
--
-- NAME is a shipped one; FILE:NAME is of the file's programs by name, or an operator of tests/operators (its file's name, or of a list).
-- Files are relative to the top folder.
local mr = require "millrace"
local top = (debug.getinfo(1, "S").source:match "^@(.*/)" or "./") .. "../../"

return function(text)
  local file, name = text:match "^(.*%.lua):(.*)$"
  if not file then return assert(mr.examples[text], text) end
  local made = dofile(top .. file)
  for _, operator in ipairs(made.program and {made} or made) do
    if (operator.name or file:match "([^/]*)%.lua$") == name then return operator.program end
  end
  return assert(made[name], text)
end
