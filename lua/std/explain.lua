-- explain.lua - topics as text of a given width, of which no line is longer.

local core = require "millrace.core"
local known = require "millrace.topics"
local sections = known.sections

local function size(s) return utf8.len(s) or #s end

-- The first n characters, and the others.
local function divide(s, n)
  local at = utf8.len(s) and utf8.offset(s, n + 1) or n + 1
  return s:sub(1, at - 1), s:sub(at)
end

-- Words of a line that fill lines of the width; the first begins with `lead`, the others with `indent`.
local function flow(out, text, lead, indent, width)
  local line, empty = lead, true
  for word in text:gmatch "%S+" do
    if not empty and size(line) + 1 + size(word) > width then
      out[#out + 1], line, empty = line, indent, true
    end
    while size(line) + (empty and 0 or 1) + size(word) > width do
      local part
      part, word = divide(word, width - size(line))
      out[#out + 1], line = line .. part, indent
    end
    line, empty = line .. (empty and "" or " ") .. word, false
  end
  if not empty then out[#out + 1] = line end
end

-- Lines of a text: those that begin with two spaces stay lines, all others are filled.
local function fill(text, indent, width, out)
  local lead, paragraph = (" "):rep(indent), {}
  out = out or {}
  local function finish()
    flow(out, table.concat(paragraph, " "), lead, lead, width)
    paragraph = {}
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if line:find "^  " then
      finish()
      flow(out, line, lead .. line:match "^ *", lead .. line:match "^ *" .. "  ", width)
    else
      paragraph[#paragraph + 1] = line
    end
  end
  finish()
  return out
end

-- Topics whose names are under those of this one: their calls, and the names of their fields.
local function children(topic)
  local calls, fields = {}, {}
  for _, section in ipairs(sections) do
    for _, other in ipairs(section) do
      for _, name in ipairs(other.names) do
        local parent, child = name:match "^(.-)[.:](.+)$"
        for _, own in ipairs(topic.names) do
          if parent == own and other.call then calls[#calls + 1] = other.call end
          if parent == own and not other.call then fields[#fields + 1] = child end
        end
      end
    end
  end
  return calls, fields
end

-- All of a section, a line or two each.
local function add_section(out, section, width)
  for i = 2, #section do
    local topic = section[i]
    local title = (topic.call or topic.title):gsub("check%.", "")
    flow(out, title, "  ", "    ", width)
    fill(topic.text, 6, width, out)
    if topic.fix then flow(out, "repair: " .. topic.fix, "      ", "      ", width) end
  end
end

local explain = {fill = fill}

-- The explorer's keys by group.
local function add_keys(out, width)
  local group
  for _, k in ipairs(core.keys and core.keys() or {}) do
    if k.group ~= group then flow(out, k.group, "  ", "  ", width) end
    group = k.group
    flow(out, k.help, ("    %-9s "):format(k.keys), (" "):rep(14), width)
  end
end

-- A line of code: its spaces stay, and what does not fit goes on in the next one, from a word on if it can.
local function add_code(out, line, width)
  local lead = "    "
  repeat
    local part, after = divide(line, width - #lead)
    local kept = after ~= "" and #line - #after > width // 2 and part:match "^(.*%S)%s+%S*$" or part
    if kept ~= part and #kept > width // 2 then part, after = kept, line:sub(#kept + 1):gsub("^%s+", "") end
    out[#out + 1], lead, line = lead .. part, "      ", after
  until line == ""
end

-- Markdown of a guide as plain text, without emphasis.
local function plain(text)
  text = known.plain(text)
  return (text:gsub("%*%*(.-)%*%*", "%1"):gsub("%f[%*]%*(%a[^*]*)%*", "%1"))
end

-- A guide: its Markdown as text for a terminal.
local function add_guide(out, guide, width)
  local paragraph, lead, indent, code = {}, "  ", "  ", false
  local function finish()
    flow(out, plain(table.concat(paragraph, " ")), lead, indent, width)
    paragraph, lead, indent = {}, "  ", "  "
  end
  for line in (guide .. "\n"):gmatch "(.-)\n" do
    local heading, item = line:match "^#+ (.*)", line:match "^%- (.*)" or line:match "^%d+%. (.*)"
    if line:find "^<!%-%-.*%-%->$" and not code then
      finish()                                          -- for the test that runs the guide
    elseif line:find "^```" or code then
      finish()
      if line:find "^```" then code = not code elseif line == "" then out[#out + 1] = "" else add_code(out, line, width) end
    elseif heading or line == "" or line:find "^|" then
      finish()
      if heading then flow(out, plain(heading), "", "  ", width) end
      if line == "" and out[#out] ~= "" then out[#out + 1] = "" end
      local first, others = (line:gsub("\\|", "\0")):match "^|%s*(.-)%s*|%s*(.-)%s*|$"
      if first and (first .. others):find "%w" then
        others = others:gsub("%s*|%s*", "; ")
        flow(out, (plain(first .. (others ~= "" and ": " .. others or "")):gsub("%z", "|")), "    ", "      ", width)
      end
    elseif item then
      finish()
      paragraph, lead, indent = {item}, "  - ", "    "
    else
      paragraph[#paragraph + 1] = line
    end
  end
  finish()
  while out[#out] == "" do out[#out] = nil end
end

-- The text of one topic.
function explain.topic(topic, width)
  local out = {}
  if topic.guide then
    add_guide(out, topic.guide, width)
    return table.concat(out, "\n")
  end
  flow(out, topic.call or (topic.title:gsub("check%.", "problem: ")), "", "    ", width)
  fill(topic.text, 2, width, out)
  if topic.fix then flow(out, "repair: " .. topic.fix, "  ", "  ", width) end
  if topic.elsewhere then flow(out, "elsewhere: " .. topic.elsewhere, "  ", "    ", width) end
  if topic.names[1] == topic.kind then
    for _, section in ipairs(sections) do
      if section.kind == topic.kind then add_section(out, section, width) end
    end
    return table.concat(out, "\n")
  end
  if topic.names[1] == "explorer" then add_keys(out, width) end
  local calls, fields = children(topic)
  for _, call in ipairs(calls) do flow(out, call, "  ", "      ", width) end
  if #fields > 0 then flow(out, "fields: " .. table.concat(fields, " "), "  ", "    ", width) end
  return table.concat(out, "\n")
end

-- The first sentence of a text.
local function first_sentence(text)
  text = text:gsub("%s+", " ")
  return text:match "^(.-[^.]%.)%s" or text
end

-- A line for each: the name, and as much of the text as fits.
local function add_lines(out, list, width)
  local most = 0
  for _, x in ipairs(list) do most = math.max(most, size(x.name)) end
  most = math.min(most, width * 2 // 5)
  for _, x in ipairs(list) do
    local lead = ("  %s%s  "):format(x.name, (" "):rep(most - size(x.name)))
    if size(lead) >= width - 8 then
      flow(out, x.name .. ": " .. x.text, "  ", "    ", width)
    else
      local text, dots = x.text, width - size(lead)
      if size(text) > dots then
        text = divide(text, dots - 3):gsub("%s+%S*$", "") .. "..."
      end
      out[#out + 1] = lead .. text
    end
  end
end

local function line_of(topic)
  return {name = (topic.names[1]:gsub("^check%.", "")), text = first_sentence(topic.text)}
end

-- The topics of a list, a line each, under a title.
function explain.list(title, topics, width)
  local out, list = {}, {}
  flow(out, title, "", "", width)
  for i, topic in ipairs(topics) do list[i] = line_of(topic) end
  add_lines(out, list, width)
  flow(out, 'help "NAME" tells more.', "", "", width)
  return table.concat(out, "\n")
end

-- The topics of a section, but not those about fields of objects.
function explain.section(section, width)
  local list = {}
  for _, topic in ipairs(section) do
    if topic.kind ~= "fields" then list[#list + 1] = topic end
  end
  return explain.list(section.title .. (section.about and ": " .. section.about or ""), list, width)
end

-- The table of contents: a line for each section.
function explain.all(width)
  local out, list = {}, {}
  flow(out, 'help "start" says where to begin. help "NAME" tells about a part of this list, a function, a field, a word, a problem:',
    "", "", width)
  for _, section in ipairs(sections) do
    if section[1] then
      list[#list + 1] = {name = section.title, text = section.about or first_sentence(section[1].text)}
    end
  end
  add_lines(out, list, width)
  flow(out, "Words of CUDA, CUTLASS and Triton are found, too.", "", "", width)
  return table.concat(out, "\n")
end

return explain
