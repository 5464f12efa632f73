-- picture.lua - what all pictures have in common: where they go, showing them, what is said then.

local core = require "millrace.core"
local raise, show = core.raise, core.show

local picture = {formats = {"svg", "png", "pdf"}}

-- Of the path the file's name only: folders are of this machine.
function picture.call_of(what, path) return ("%s(%q)"):format(what, path:match "[^/]*$") end

function picture.check_path(what, path)
  if type(path) ~= "string" then raise(("%s: path of a file expected, got %s"):format(what, show(path))) end
  if path == "" then raise(what .. ": the path of the file is empty") end
end

-- path, options as the user gave them -> path or nil, options without `show`, whether to show it; of a png the
-- path may be left out then.
function picture.where(format, path, options)
  if options == nil and type(path) == "table" then path, options = nil, path end
  local show_it
  if type(options) == "table" then show_it = options.show end
  if show_it ~= nil and type(show_it) ~= "boolean" then
    raise(("%s: show must be true or false, got %s"):format(format, show(show_it)))
  end
  if show_it ~= nil then
    if format ~= "png" then raise(format .. ": only a png can be shown") end
    local rest = {}
    for key, value in pairs(options) do if key ~= "show" then rest[key] = value end end
    options = rest
  end
  if path ~= nil or not show_it then picture.check_path(format, path) end
  return path, options, show_it
end

-- Of a file that has the shapes of its letters in it, not the text alone; said once.
local noted
function picture.note_font(format)
  if noted or format == "svg" or core.has_font() then return end
  noted = true
  io.stderr:write("no font is installed: the texts of PNG and PDF are drawn with cairo's own strokes; ",
    "a font, such as fonts-dejavu-core, mends that\n")
end

-- What is to be said of a picture that was made. That it cannot be shown is an error if nothing else was asked for.
function picture.say(format, path, why)
  picture.note_font(format)
  if why and not path then raise(("%s: it cannot be shown here: %s"):format(format, why)) end
  if why then io.stderr:write("it cannot be shown here: ", why, "\n") end
end

return picture
