-- picture.lua - what all pictures share: paths, showing on a terminal, messages.

local core = require "millrace.core"
local raise, show, expect = core.raise, core.show, core.expect

local picture = {formats = {"svg", "png", "pdf"}}

-- A call for a script, with the path without folders, which are of this machine.
function picture.call_of(what, path) return ("%s(%q)"):format(what, path:match "[^/]*$") end

function picture.check_path(what, path)
  expect(type(path) == "string", what, "path of a file", path)
  if path == "" then raise(what .. ": the path of the file is empty") end
end

-- Endings that say another format than the one that is written.
local other_formats = {jpg = true, jpeg = true, gif = true, webp = true, bmp = true, tif = true, tiff = true, ps = true, eps = true}
for _, format in ipairs(picture.formats) do other_formats[format] = true end

local function check_ending(format, path)
  local ending = path:match "%.(%w+)$"
  if not ending or ending:lower() == format or not other_formats[ending:lower()] then return end
  local written = table.concat(picture.formats, ", ")
  raise(("%s: %s would have the wrong ending: this writes .%s; pictures are written as %s, each by a method of that name"):format(format,
    show(path), format, written))
end

-- Arguments of the user -> path or nil, options without `show`, whether to show it. A png that is shown needs no path.
function picture.where(format, path, options)
  if options == nil and type(path) == "table" then path, options = nil, path end
  local show_it
  if type(options) == "table" then show_it = options.show end
  if show_it ~= nil and type(show_it) ~= "boolean" then
    raise(("%s: show must be true or false, got %s"):format(format, show(show_it)))
  end
  if show_it ~= nil then
    if format ~= "png" then raise(format .. ": only a png can be shown") end
    local others = {}
    for key, value in pairs(options) do if key ~= "show" then others[key] = value end end
    options = others
  end
  if path ~= nil or not show_it then
    picture.check_path(format, path)
    check_ending(format, path)
  end
  return path, options, show_it
end

-- A note, given once, that letters in files other than svg will be simple.
local noted
function picture.note_font(format)
  if noted or format == "svg" or core.has_font() then return end
  noted = true
  io.stderr:write("no font is installed, so texts in PNG and PDF use cairo's built-in one; ",
    "install a font such as fonts-dejavu-core for better ones\n")
end

-- Messages after a picture was made. If it was only to be shown and cannot be, that is an error.
function picture.say(format, path, why)
  picture.note_font(format)
  if why and not path then raise(("%s: the picture cannot be shown here: %s"):format(format, why)) end
  if why then io.stderr:write("the picture cannot be shown here: ", why, "\n") end
end

return picture
