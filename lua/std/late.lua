-- late.lua - functions of modules that not every session needs: a module is loaded by the first call.

local entry = require("millrace.core").entry

return function(module, name)
  return entry(function(...) return require("millrace." .. module)[name](...) end)
end
