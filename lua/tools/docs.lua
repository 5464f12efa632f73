-- docs.lua - writes docs/lessons.md and docs/gallery.md, from the lessons and from what draws.
--
--   millrace lua/tools/docs.lua [FOLDER]     docs/ unless given; pictures go to FOLDER/pictures
--
-- The same text comes out on every machine; tests/cli/lessons.t compares it with what is there.
local mr = require "millrace"

local WIDTH <const> = 78
local folder = arg[1] or mr.home .. "/docs"

-- Whatever a picture can be made of has the method svg; where there is none, the text stands alone.
local pictured = 0
local function picture(lines, thing, name, options)
  local known, svg = pcall(function() return thing.svg end)
  if not known or not svg or not name then return end
  if pictured == 0 then os.execute(("mkdir -p '%s/pictures'"):format(folder)) end
  pictured = pictured + 1
  local o = {theme = "light"}
  for _, key in ipairs{"from", "to", "tile", "phase", "by"} do o[key] = options and options[key] end
  if pcall(svg, thing, ("%s/pictures/%s.svg"):format(folder, name), o) then
    lines[#lines + 1] = ("![%s](pictures/%s.svg)\n"):format(name, name)
  end
end

local function write(name, lines)
  local file = assert(io.open(("%s/%s"):format(folder, name), "w"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
end

-- Text with nothing of this machine in it.
local function here(text)
  local home = (mr.home .. "/"):gsub("%W", "%%%0")
  return (text:gsub(home, ""):gsub("[ \t]+\n", "\n"):gsub("%s+$", ""))
end

local function block(lines, kind, text)
  lines[#lines + 1] = ("```%s\n%s\n```\n"):format(kind, here(text))
end

-- Prose between blocks: paragraphs in lines of the document's width, tables as they are.
local function prose(lines, text)
  for paragraph in (text .. "\n\n"):gmatch "(.-)\n\n+" do
    if paragraph:find "^%s" then
      block(lines, "text", paragraph)
    elseif paragraph ~= "" then
      local line = ""
      for word in paragraph:gmatch "%S+" do
        if #line + 1 + #word > 120 then
          lines[#lines + 1], line = line, word
        else
          line = line == "" and word or line .. " " .. word
        end
      end
      lines[#lines + 1] = line .. "\n"
    end
  end
end

---- lessons ------------------------------------------------------------------------------

local say = {}

function say.text(lines, page) prose(lines, page.text) end

function say.code(lines, page, state)
  if state.code then lines[#lines + 1] = "<!-- continues -->" end
  state.code = true
  block(lines, "lua", page.code)
  if page.out ~= "" then block(lines, "text", page.out) end
end

function say.show(lines, page)
  block(lines, "text", "mr> " .. page.typed .. "\n" .. page.drawing)
  picture(lines, page.object, page.name, page.options)
end

function say.ask(lines, page)
  prose(lines, "**Predict.** " .. page.question)
  for i, choice in ipairs(page.choices or {}) do lines[#lines + 1] = ("%d. %s"):format(i, choice) end
  if page.choices then lines[#lines + 1] = "" end
  lines[#lines + 1] = "<details><summary>Answer</summary>\n"
  prose(lines, page.shown .. "." .. (page.because and " " .. page.because or ""))
  lines[#lines + 1] = "</details>\n"
end

function say.try(lines, page)
  prose(lines, "**Try yourself**, in the explorer or at the prompt:")
  for i, t in ipairs(page.list) do
    local edit = "`" .. t.edit:gsub("\n", "`, `") .. "`"
    prose(lines, ("%d. %s: %s"):format(i, edit, t.question))
  end
end

function say.claim() end

local function lessons()
  local lines = {[[
# Lessons on software pipelining

<!-- made by lua/tools/docs.lua: "make docs" -->

Each is one idea, and takes ten minutes. They run, too: `build/millrace examples/lessons/03_rings.lua` goes step by step and
lets you predict before it shows; in the shell it is `mr.lesson "rings"`, and `mr.lessons()` lists them. No GPU is needed: all
numbers are computed by the model of the H200 (lesson 13: of three machines) when the lesson runs, but for those that are said
to be measured.
]]}
  local list = mr.lessons()
  for _, lesson in ipairs(list) do
    lines[#lines + 1] = ("%d. [%s](#lesson-%d): %s"):format(lesson.number, lesson.title, lesson.number, lesson.idea)
  end
  lines[#lines + 1] = ""
  for _, lesson in ipairs(list) do
    lines[#lines + 1] = ('<a id="lesson-%d"></a>\n## %d. %s\n'):format(lesson.number, lesson.number, lesson.title)
    prose(lines, "*" .. lesson.idea .. "*")
    local state = {}
    for _, page in ipairs((lesson:pages{width = WIDTH})) do say[page.kind](lines, page, state) end
  end
  lines[#lines] = lines[#lines]:gsub("\n$", "")
  write("lessons.md", lines)
end

---- the gallery -----------------------------------------------------------------------------

-- The screen that a test of the explorer holds, after the keys that begin like this; nil: the first one.
local function screen(name, keys)
  local path, found = ("%s/tests/explore/%s.txt"):format(mr.home, name), keys == nil
  local lines, inside = nil, false
  for line in assert(io.open(path)):lines() do
    if not inside then
      if line:sub(1, 5) == "keys " then found = found or line:sub(6, 5 + #keys) == keys end
      inside = found and line == "screen"
      lines = {}
    elseif #lines > 1 and line:find "^%+%-" then
      return (table.concat(lines, "\n"):gsub("^[^\n]*\n", ""):gsub("\n\n\n+", "\n\n"))
    else
      lines[#lines + 1] = line:gsub("^|", ""):gsub("|$", ""):gsub("%s+$", "")
    end
  end
  error(("%s holds no such screen"):format(path))
end

-- What there is to see: a title, the code that makes it, and what that gives.
local gallery <const> = {
  {"A timeline by lane", "what each lane issued and waited for, then what the units did",
    'tl = mr.load_plan("attention_pingpong"):simulate()\ntl:print()', "timeline_lanes",
    function(env) return env.tl:text{width = WIDTH, ascii = true} end},
  {"A timeline by sEU", "the units alone",
    'tl = mr.load_plan("gemm_cooperative"):simulate()\ntl:print{by="seu"}', "timeline_units",
    function(env) return env.tl:text{width = WIDTH, ascii = true, by = "seu"} end},
  {"A graph", "what flows between sTasks; frames are loops, dotted lines what is carried on",
    "graph = mr.examples.flash_attention{b=2, h=16, m=8192, d=128}:graph{tile={m=128, n=128}}\nprint(graph:drawing())", "graph",
    function(env) return env.graph:drawing{width = WIDTH, ascii = true} end},
  {"A graph as a table", "sTasks, buffers and dependences",
    "graph = mr.examples.gemm{m=4096, n=4096, k=4096}:graph{tile={m=128, n=256, k=64}}\nprint(graph)", nil,
    function(env) return env.graph:table{width = WIDTH, ascii = true} end},
  {"A plan", "each lane's order with offsets, units and waits; rings; what it takes of an EU",
    'plan = mr.load_plan "attention_overlap"\nprint(plan)', "plan",
    function(env) return env.plan:table{width = WIDTH, ascii = true} end},
  {"Blame", "where the time of each lane goes",
    'tl = mr.load_plan("attention_serial"):simulate()\nprint(tl.blame)', nil, function(env) return tostring(env.tl.blame) end},
  {"A comparison", "two timelines, sTask by sTask",
    'first, second = mr.load_plan "attention_serial", mr.load_plan "attention_overlap"\n' ..
      "print(mr.compare(first:simulate(), second:simulate()))",
    nil, function(env) return tostring(mr.compare(env.first:simulate(), env.second:simulate())) end},
  {"The progress of a search", "what was tried, the best so far, the bound; or several searches in one picture",
    "tried = {}\nfor i = 1, 40 do tried[i] = {predicted=(2 + i * 23 % 41 / 8) * 1e-4} end\n"
      .. "for i = 41, 48 do tried[i] = {predicted=2e-4, measured=(1.9 + i * 23 % 41 / 90) * 1e-4, phase=\"device\"} end\n"
      .. "searched = mr.progress{history=tried, bound_seconds=1.7e-4}\nprint(searched)", "progress",
    function(env) return tostring(env.searched) end},
  {"What an edit brings", "statements, waits, time; taken back unless it is kept",
    'plan = mr.load_plan "attention_serial"\n' ..
      'print(plan:try(function(p) p:buffers{softmax_2=2} p:move("mma_pv", {at=-1, after="mma_qk"}) end))',
    nil, function(env)
      return tostring(env.plan:try(function(p) p:buffers{softmax_2 = 2} p:move("mma_pv", {at = -1, after = "mma_qk"}) end))
    end},
  {"What is wrong with a plan", "each problem with its location and a repair",
    'plan = mr.load_plan "attention_overlap"\nplan:unwait("mma_pv", "load_v") print(select(2, plan:check()))', nil,
    function(env)
      local _, problems = env.plan:check()
      for _, problem in ipairs(problems) do problem.location = here(problem.location) end
      return tostring(problems)                         -- folded by the length of the location
    end},
}

-- Screens of the explorer: a title, what it is, what opens it, the keys, and where the tests hold it.
local screens <const> = {
  {"Timeline", "The event that an event waited for, and the chain that leads there", "pingpong",
    "`Right` to an event, `Enter` to its cause", "timeline", "<Right><Right>"},
  {"Graph", "What flows, and what is known of the sTask", "serial", "`3`", "walk", "3"},
  {"Kernel", "What the plan is lowered to, with the reason of each wait", "serial", "`4`", "walk", "4"},
  {"Grid", "Which EU takes which output tile", "serial", "`5`, arrows, `v`", "walk", "<Right><Down>v"},
  {"Step by step", "One issue or completion at a time, with what is in each slot", "serial", "`6`, `Space`", "walk", "6"},
  {"Compare", "The plan as it was and as it is", "serial", "`7`, after an edit", "walk", "2/load_v"},
  {"An sTask picked up", "Every other position, and what the plan would take then", "serial",
    "`/mma_pv`, `Enter`, `Space`", "edit", "<Space>"},
}

local function draw_gallery()
  local lines = {[[
# Gallery

<!-- made by lua/tools/docs.lua: "make docs" -->

What Millrace draws, and the two lines of Lua that make it. In a terminal there are colours and line-drawing characters; here is
what a pipe gets. The screens of [the explorer](explorer.md), at the end, are those that its tests hold.
]]}
  for _, entry in ipairs(gallery) do
    local title, what, code, name, draw = table.unpack(entry, 1, 5)
    local env = setmetatable({print = function() end}, {__index = _G})
    assert(load(code:gsub("[%w_]+:print{[^\n]*}", ""), "=gallery", "t", env))()
    lines[#lines + 1] = ("## %s\n\n%s.\n"):format(title, (what:gsub("^%l", string.upper)))
    block(lines, "lua", code)
    block(lines, "text", draw(env))
    picture(lines, env.tl or env.graph or env.plan or env.searched, name and "gallery_" .. name)
  end
  lines[#lines + 1] = "## The explorer\n"
  for _, entry in ipairs(screens) do
    local title, what, plan, keys, file, after = table.unpack(entry, 1, 6)
    lines[#lines + 1] = ("### %s\n\n%s. Keys: %s.\n"):format(title, what, keys)
    block(lines, "text", ('mr> plan = mr.load_plan "attention_%s"\nmr> plan:simulate():show()'):format(plan))
    block(lines, "text", screen(file, after))
  end
  lines[#lines] = lines[#lines]:gsub("\n$", "")
  write("gallery.md", lines)
end

---- the reference ---------------------------------------------------------------------------------

-- The pictures of its section, made by the example that stands there.
local function reference()
  local file = assert(io.open "docs/reference.md")
  local text = file:read("a"):match "\n## Pictures\n(.-)\n## "
  file:close()
  local code = text:match "```lua\n(.-)```":gsub("tl:trace[^\n]*\n", "")
  code = code:gsub('"([%w_]+%.svg)"', ('"%s/pictures/%%1"'):format(folder)):gsub('frames%("frames"',
    ('frames("%s/pictures/frames"'):format(folder)) .. "\nreturn frames"
  local frames = assert(load(code, "=docs/reference.md", "t"))()
  assert(os.rename(frames[2], folder .. "/pictures/frame.svg"))
  for i, path in ipairs(frames) do
    if i ~= 2 then os.remove(path) end
  end
  os.remove(folder .. "/pictures/frames")
end

lessons()
draw_gallery()
reference()
