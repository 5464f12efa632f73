-- topics.lua - what help knows, read from docs/reference.md, which is embedded in the program. There, in comments:
--
--   <!-- names: plan -->    the next table is about calls and fields. A cell `rings` means plan.rings, a cell `plan` in
--                           the first row plan itself, and `tl:print{by=}` is a call; *: all names are complete
--   <!-- kind: words -->    the paragraph behind it is the topic "words", and each row of the table is one of that kind
--   <!-- topic: start -->   the lines up to <!-- end --> are the topic "start"; indented ones are kept as they are
--   <!-- about: ... -->     what the part behind this heading is about, for the table of contents
--
-- The functions that are operations are described in src/tile/ops.def. Words that docs/glossary.md alone has are a part of their own;
-- what CUTLASS, Triton and CUDA call a word is `elsewhere` of its topic. Each guide of docs/howto is a topic whose `guide` is its text.

local core = require "millrace.core"

local sections = {}             -- by heading, and by kind: {title=, kind=, topics...}
local topics = {}               -- name -> {title=, names=, call=, text=, fix=, note=, kind=}

-- What objects are called in the texts -> what their topics begin with.
local short = {tl = "timeline", k = "kernel", r = "found", prog = "program", a = "array", e = "event",
  v = "value", c = "carry", seq = "sequence", sp = "sequence_plan", sk = "sequence_kernel", b = "benched", err = "checked", row = "stored"}

-- Markdown as plain text.
local function plain(text) return (text:gsub("%[([^%[%]]*)%]%([^()]*%)", "%1"):gsub("`", ""):gsub("\\|", "|")) end

-- "tl:print" -> "timeline:print"
local function full_name(name)
  local owner, member = name:match "^([%a_]+)([.:].+)$"
  return short[owner] and short[owner] .. member or name
end

-- The first one with a name is what help shows of that name.
local function add(section, topic)
  if not topic.names[1] or topics[topic.names[1]] then return end
  for _, name in ipairs(topic.names) do topics[name] = topic end
  topic.title = topic.title or table.concat(topic.names, ", ")
  section[#section + 1] = topic
end

-- A row about calls and fields.
local function add_names(section, prefix, cell, text, first)
  local names, call = {}, nil
  for code in cell:gmatch "`([^`]+)`" do
    local name, arguments = code:gsub("^mr%.store:", "store:"):match "^([%a_][%w_.:]*)(.?)"
    if name and name ~= "tostring" and arguments ~= "[" then
      local bare = prefix ~= "*" and not name:find ":" and (prefix == "hw" or not name:find "%.")
      if not bare and arguments ~= "" then call = call or code end
      if bare and not (first and name == prefix) then name = prefix .. "." .. name end
      names[#names + 1] = full_name(name)
    end
  end
  local field = not call and names[1] and names[1]:find "[.:]" and not names[1]:find "^mr%."
  add(section, {names = names, call = call, text = text, kind = field and "fields" or nil})
end

-- A row of a kind.
local function add_kind(section, kind, cell, text, fix)
  local names, call = {}, nil
  for name in plain(cell):gmatch "[^,]+" do
    name = name:match "^%s*(.*)$"
    if kind == "options" or kind == "commands" or kind == "subcommands" then
      call = name:find " " and name
      name = name:match(kind == "subcommands" and "^%S+ %S+" or "^%S+")
    end
    names[#names + 1] = section.kind == "problems" and "check." .. name or name
  end
  add(section, {names = names, call = call, text = text, fix = fix, note = kind == "notes" or nil, kind = section.kind})
end

local function read(reference)
  local heading, section, marker, value, row, prose
  local by_kind = {}
  for line in reference:gmatch "([^\n]*)\n" do
    local about = line:match "^<!%-%- about: (.-) %-%->$"
    if about then heading.about = about end
    local new_marker, new_value = line:match "^<!%-%- (%a+):? ?([%w_*]*) %-%->$"
    if prose and not new_marker then
      prose[#prose + 1] = line:gsub("^    ", "  ")
    elseif prose then
      add(heading, {names = {value}, text = plain(table.concat(prose, "\n"):gsub("\n\n", "\n"))})
      prose, marker = nil, nil
    elseif new_marker then
      marker, value, row, section = new_marker, new_value, -2, heading
      prose = marker == "topic" and {} or nil
      if marker == "kind" then
        local kind = value == "notes" and "problems" or value
        section = by_kind[kind] or {title = kind:gsub("^%l", string.upper), kind = kind}
        if not by_kind[kind] then sections[#sections + 1], by_kind[kind] = section, section end
      end
    elseif line:find "^## " then
      heading = {title = line:sub(4)}
      sections[#sections + 1] = heading
    elseif marker and line:find "^|" then
      row = row + 1
      local cell, text, fix = (line:gsub("\\|", "\0")):match "^| ([^|]*) |%s*([^|]-)%s*|%s*([^|]-)%s*|?$"
      if row > 0 and marker == "names" then
        add_names(section, value, cell, plain(text:gsub("%z", "|")), row == 1)
      elseif row > 0 then
        add_kind(section, value, (cell:gsub("%z", "|")), plain(text:gsub("%z", "|")), fix ~= "" and plain(fix) or nil)
      end
    elseif marker == "kind" and row == -2 and line ~= "" then
      add(section, {names = {value}, text = plain(line), kind = value})
    elseif marker and row ~= -2 then
      marker = nil
    end
  end
end

-- The tables of the glossary: | word | meaning | elsewhere |.
local function read_glossary(text)
  local section = {title = "Glossary", kind = "glossary", about = "more words, and what CUTLASS, Triton and CUDA call them"}
  sections[#sections + 1] = section
  for line in text:gmatch "[^\n]+" do
    local cell, meaning, elsewhere = line:match "^| ([^|]+) | ([^|]+) |%s*([^|]-)%s*|$"
    if cell and cell ~= "word" and not cell:find "^%-" then
      local names, topic = {}, nil
      for name in cell:gmatch "[^,]+" do names[#names + 1] = name:match "^%s*(.-)%s*$" end
      for _, name in ipairs(names) do topic = topic or topics[name] end
      if not topic then
        topic = {names = names, text = plain(meaning):gsub("%*", ""), kind = "glossary"}
        add(section, topic)
      end
      topic.elsewhere = elsewhere ~= "" and plain(elsewhere) or nil
    end
  end
end

-- The guides: "# How to fuse an epilogue", and a paragraph that begins with "Goal: ".
local function read_guides()
  local section, names = {title = "How to", kind = "howto", about = "guides, step by step"}, {}
  for module in pairs(package.preload) do
    names[#names + 1] = type(module) == "string" and module:match "^millrace%.(.+)%.md$" or nil
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local text = require("millrace." .. name .. ".md")
    local title, goal = text:match "^# How to (.-)\n+Goal: (.-)\n\n"
    if title then
      goal = plain(goal):gsub("%*", ""):gsub("%s+", " "):gsub("^%l", string.upper)
      add(section, {names = {title, name}, title = "how to " .. title, text = goal, kind = "howto", guide = text})
    end
  end
  sections[#sections + 1] = section
end

read(require "millrace.reference.md")
read_glossary(require "millrace.glossary.md")
read_guides()
for _, section in ipairs(sections) do
  if section.title == "The tile language" then
    for _, op in ipairs(core.operations()) do
      if op.help then add(section, {names = {op.call:match "^[%w.]+"}, call = op.call, text = op.help}) end
    end
  end
end

-- The comment at the head of examples/NAME.lua, which is its help; nil if there is none.
local function example(name)
  local file = name:find "^[%w_]+$" and io.open(core.home() .. "/examples/" .. name .. ".lua")
  if not file then return nil end
  local lines = {}
  for line in file:lines() do
    local text = line:match "^%-%- ?(.*)"
    if not text then break end
    lines[#lines + 1] = text
  end
  file:close()
  if lines[1] then return table.concat(lines, "\n") end
end

return {sections = sections, topics = topics, plain = plain, full_name = full_name, example = example}
