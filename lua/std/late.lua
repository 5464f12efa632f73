-- late.lua - late(module, name): a function of a module that its first call loads.

local entry = require("millrace.core").entry

return function(module, name)
  return entry(function(...) return require("millrace." .. module)[name](...) end)
end
