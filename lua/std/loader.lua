-- loader.lua - a plan from the text that plan:script() gave.

local core = require "millrace.core"
local raise, show = core.raise, core.show

local loader = {}

-- A script sees no more than it needs: a plan is data.
local function environment(mr)
  return {
    assert = assert,
    require = function(name)
      if name == "millrace" then return mr end
      raise(("a plan may only require \"millrace\", not %s"):format(show(name)))
    end,
  }
end

local function run(what, name, bound, chunk, message)
  if not chunk then raise(("%s: %s"):format(what, message)) end
  local p = chunk(bound)
  if not core.is(p, "millrace.plan") then raise(("%s: %s returns %s, not a plan"):format(what, name, show(p))) end
  return p
end

-- bound: instead of the program that the script names; nil: that one.
function loader.of_file(mr, path, bound) return run("load_plan", path, bound, loadfile(path, "t", environment(mr))) end

-- name: what messages call the text.
function loader.of_text(mr, text, name, bound)
  return run("plan", name, bound, load(text, "=" .. name, "t", environment(mr)))
end

return loader
