-- Help knows every name of the reference, and the reference every name of help; every problem, every
-- variable of the environment, every method and field; and no line is wider than the terminal.
local mr = require "millrace"
local known, explain = require "millrace.topics", require "millrace.explain"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local ok, is = tap.ok, tap.is
local topics = known.topics

local function read(name)
  local file = assert(io.open(here .. "../../" .. name))
  local text = file:read "a"
  file:close()
  return text
end

-- What documents call an object -> what its topics begin with.
local kinds = {tl = "timeline", k = "kernel", prog = "program", a = "array", r = "found", b = "benched", err = "checked",
  row = "stored", v = "value", c = "carry"}

---- from the reference's tables to help --------------------------------------------------------

-- Names of a row's first cell, as topics. prefix: what the table is about, "sTask"; nil: only names
-- that say themselves whose they are count.
local function names_of(cell, prefix, add)
  local unit, last = cell:match "^`seu` (%a+):", ""
  if unit then cell = cell:match ":(.*)$" end
  for code in cell:gmatch "`([^`]*)`" do
    local owner, sep, name = code:match "^([%l][%a_]*)([.:])([%w_.]+)"
    if code:find "^tostring" or code:find "^#" or code == "..." or code:find "^mr%.array"
      or code:find "NAME" or code:find "%.toml$" then     -- of an export
      -- not a name, or described elsewhere
    elseif code == prefix then
      add(prefix)
    elseif prefix == "hw" then
      name = code:match "^[%w_.]+"
      if name:sub(1, 1) == "." then name = last:match "^(.*)%." .. name end
      last = name
      add("hw." .. (unit and "seu." .. unit .. "." or "") .. name)
    elseif owner then
      add((kinds[owner] or owner) .. sep .. name)
    elseif prefix and code:find "^%.?[%a_]+" and not code:find "^%a+[%[{]" then
      add(prefix .. "." .. code:match "^%.?([%a_][%w_]*)")
    end
  end
end

local function table_names(text)
  local names, order, prefix, before = {}, {}, nil, ""
  for line in text:gmatch "[^\n]+" do
    local cell = line:match "^| (.-) |"
    if line:find "^<!%-%- names:" then
      prefix = line:match "names: ([%a_]+)"
    elseif not line:find "^|" then
      prefix = nil
    end
    if cell and not cell:find "^field$" and not cell:find "^row$" and not cell:find "^cause$" then
      names_of(cell, prefix, function(name)
        if not names[name] then order[#order + 1] = name end
        names[name] = true
      end)
    end
  end
  return names, order
end

local reference = read "docs/reference.md"
local named, order = table_names(reference)
ok(#order > 200, "the reference's tables have hundreds of names", #order)

-- What is a call in the tables may be one with a point in help, and the other way round.
local function topic_of(name)
  return topics[name] or topics[(name:gsub(":", "."))] or topics[(name:gsub("%.([^.]*)$", ":%1"))]
end

-- Described together with what they belong to.
local within = {["found.why"] = "found", ["tried.keep"] = "tried", ["improved.keep"] = "improved", ["timeline.show"] = "timeline:show"}
for _, name in ipairs(order) do
  ok(topic_of(name) or topics[within[name]], ("help about %s of the reference"):format(name))
end

---- and back --------------------------------------------------------------------------------

local prose = reference .. read "docs/tile-language.md"
local words = {}
for code in prose:gsub("```.-```", ""):gmatch "`([^`\n]+)`" do
  for word in code:gmatch "[%w_]+" do words[word] = true end
end
for _, section in ipairs(known.sections) do
  for _, topic in ipairs(section) do
    for _, name in ipairs(topic.names) do
      local last = name:match "([^.:]*)$"
      local there = section.kind and section.kind ~= "fields" or not name:find "[.:]" or words[last]
      ok(there, ("the reference, or the tile language's, has %s"):format(name))
      ok(#topic.text > 5 and not topic.text:find "[\t`]" or name == "shell", name .. " has a text")
    end
  end
end

---- what the program has ---------------------------------------------------------------------

local plan = mr.load_plan "gemm_cooperative"
local tl = plan:simulate()
local objects = {plan = plan, timeline = tl, graph = plan.graph, bound = plan.graph.program, device = plan.device,
  kernel = plan:compile{text = true}, array = mr.array("f32", {2}), sTask = plan.tasks[1], dependence = plan.edges[1],
  buffer = plan.graph.buffers[1], event = tl.events[1], blame = tl.blame[1],
  found = mr.search(plan.graph.program, plan.device, {trials = 20}), tried = plan:try(function() end),
  improved = plan:improve{trials = 1},
  problem = select(2, mr.plan(plan.graph, plan.device):check())[1], problems = select(2, plan:check()), store = mr.store}
for kind, object in pairs(objects) do
  local meta = debug.getmetatable(object)
  for _, part in ipairs{"methods", "fields"} do
    for name in pairs(rawget(meta, part) or {}) do
      local topic = topics[kind .. ":" .. name] or topics[kind .. "." .. name] or topics[within[kind .. "." .. name]]
      ok(topic, ("help about %s.%s"):format(kind, name))
    end
  end
end
for name in pairs(mr) do ok(topics["mr." .. name], "help about mr." .. name) end

local source = read "src/plan/problem.c":match "names%[%] = (%b{})"
for code in source:gmatch '"([%w_]+)"' do
  local topic = topics["check." .. code]
  ok(topic and (topic.fix or topic.note), ("the problem %s and its repair"):format(code))
end

local pipe = assert(io.popen(("cd '%s../..' && cat src/*/*.c src/lower/*/*.c src/search/*/*.c lua/*.c ui/*.c ui/*/*.c"):format(here)))
local variables = {}
for name in pipe:read "a":gmatch 'getenv%("([%u_]+)"' do variables[name] = true end
pipe:close()
for name in pairs(variables) do ok(topics[name], "the variable " .. name) end
for _, name in ipairs{"MILLRACE_LIBCUDA", "MILLRACE_HOME", "MILLRACE_MEMORY", "NO_COLOR"} do
  ok(topics[name], "the variable " .. name)
end

for _, word in ipairs{"II", "ResMII", "RecMII", "offset", "iteration", "turn", "ring", "cluster", "sEU", "EU", "lane", "prologue",
    "epilogue", "Propagate", "Append", "Wait", "Stage", "slack", "occupancy", "sTask", "tile"} do
  ok(topics[word], "the word " .. word)
end

---- widths ----------------------------------------------------------------------------------

local function widest(text)
  local most = 0
  for line in text:gmatch "[^\n]*" do most = math.max(most, utf8.len(line) or #line) end
  return most
end

for _, width in ipairs{20, 40, 80, 200} do
  local seen, wide = {}, nil
  for name, topic in pairs(topics) do
    if not seen[topic] and widest(explain.topic(topic, width)) > width then wide = name end
    seen[topic] = true
  end
  ok(not wide, ("no topic is wider than %d columns"):format(width), wide)
  ok(widest(explain.all(width)) <= width, ("nor is the list of all, at %d"):format(width))
end
---- what others call it -------------------------------------------------------------------------

-- The first line that help prints of it.
local help, core = require "millrace.help", require "millrace.core"
local shown
local page = core.page
core.page = function(text) shown = text end
local function first(text)
  shown = nil
  help(text)
  return shown and shown:match "^[^\n]*"
end
for text, topic in pairs{["double buffering"] = "ring", ["Double-Buffering"] = "ring", pipeline = "pipelined loop", SM = "EU", sm = "EU",
    overlap = "overlap", occupancy = "occupancy", num_stages = "ring", ["warp specialization"] = "lane", ["warp specialisation"] = "lane",
    ["warp-specialized"] = "lane", ["software pipelining"] = "offset", ["split-K"] = "partition", ["persistent kernel"] = "persistent kernel",
    ["thread block cluster"] = "cluster",
    ["plan:move(softmax)"] = "plan:move(task, {at=, before=, after=, lane=, seu=, by_rows=, repair_waits=})",
    autotune = "candidate", do_bench = "round", num_ctas = "cluster", wgmma = "product", ["launch bounds"] = "lane", fp16 = "dtype",
    num_warps = "lane", TMA = "sEU", producer = "lane", barrier = "flag", ["named barrier"] = "issue order", swizzle = "raster",
    pingpong = "replica", ["double buffer"] = "ring", ["multi-stage"] = "ring", splitk = "partition", warpgroup = "lane",
    ["tail effect"] = "wave", pytorch = "PyTorch", ["bank conflicts"] = "bank conflict", swish = "swish", ["L2 hit rate"] = "L2, L2 hit rate",
    ["thread block"] = "thread block, CTA", stall = "stall", setmaxnreg = "setmaxnreg", ["cp.async"] = "cp.async", attention = "attention",
    ["register spill"] = "register spill", by_threads = "problem: by_threads", ["problems.notes"] = "problems.notes",
    varlen = "length", ["variable length"] = "length", ["online softmax"] = "carry", ["GB/s"] = "bandwidth, GB/s", sweep = "sweep",
    redundant = "problem: redundant_wait", drift = "drift", coalescing = "coalescing, alignment, padding", reduction = "reduction",
    ["load balancing"] = "load balancing", prefetch = "prefetch, pipeline bubble", ["register pressure"] = "register pressure",
    repeated = "problem: repeated", recomputed = "redundant work", ["redundant work"] = "redundant work",
    causal = "causal mask", GQA = "grouped-query attention", dropout = "dropout", ["TMA multicast"] = "cluster",
    ["epilogue fusion"] = "epilogue fusion", ["unit tests"] = "unit test", ["producer consumer"] = "producer-consumer",
    matmul = "product", softmax = "softmax", ["squared relu"] = "square", ["matrix multiplication"] = "product",
    ["howto"] = "How to: guides, step by step", ["how-to"] = "How to: guides, step by step", ["fuse an epilogue"] = "How to fuse an epilogue",
    ["schedules-under-ci"] = "How to keep schedules under CI", ["ping-pong"] = "replica",
    at = "at= is an option of", ["deadlock"] = "problem: deadlock", ["tl:why softmax"] = topics["timeline:why"].call} do
  is(first(text), topic, ("help '%s'"):format(text))
end
help "fuse an epilogue"
ok(not shown:find("<!--", 1, true), "a guide is shown without what is for its test")
help "epilogue"
ok(shown:gsub("%s+", " "):find('help "fuse an epilogue"', 1, true), "an epilogue leads to its guide")
for line in read "docs/glossary.md":gmatch "[^\n]+" do
  local word, elsewhere = line:match "^| ([^|,]+)[^|]* | [^|]+ |%s*([^|]-)%s*|$"
  if word and word ~= "word" and not word:find "^%-" then
    word = word:gsub("%s+$", "")
    ok(topics[word], "the word of the glossary " .. word)
  end
end
do                                                      -- functions of ours
  local plan = mr.load_plan "gemm_cooperative"
  for _, x in ipairs{{plan.wait, "plan:wait"}, {plan.check, "plan:check"}, {plan.simulate, "plan:simulate"}, {plan.json, "plan:json"},
      {plan:simulate().why, "timeline:why"}, {mr.json, "mr.json"}} do
    is(first(x[1]), topics[x[2]].call:match "^[^%(%[{]*" and first(x[2]), "help of the function " .. x[2])
  end
end
for text, guide in pairs{["ping-pong"] = "plan ping-pong by hand", residual = "epilogue fusion"} do
  first(text)
  ok(shown and shown:find(guide, 1, true), ("help '%s' leads on to '%s'"):format(text, guide), shown)
end
do                                                      -- every guide is there, and is shown completely
  local pipe = assert(io.popen(("cd '%s../..' && ls docs/howto/*.md"):format(here)))
  for path in pipe:lines() do
    local text = read(path)
    local title = text:match "^# How to ([^\n]*)"
    is(first(title), "How to " .. title, path)
    text = text:gsub("\n```%w+", "\n"):gsub("%](%b())", ""):gsub("\n<!%-%-[^\n]*", "")
    is((shown:gsub("%W", "")), (text:gsub("%W", "")), "  complete")
    ok(widest(shown) <= 80, "  and not too wide")
  end
  pipe:close()
end
first "split-K"
ok(shown:find("tensor:add", 1, true) and shown:find("flash_decoding", 1, true), "split-K: how it is done", shown)
ok(not shown:find("spills", 1, true), "  and nothing that only has its letters", shown)
first "double buffer"
ok(not shown:find("see also", 1, true), "the text of help itself is not among the others", shown)
first "from"
ok(shown:find("from= is an option of", 1, true) and shown:find("timeline:print", 1, true),
  "an option's calls, behind fields of that name", shown)
first "swizzle"
ok(shown:find "swizzle of shared%s+memory", "swizzle has two meanings", shown)
ok(first "relu" ~= nil, "how to write relu is found")
ok(first "gradient checkpointing" == nil, "what nobody has a word for is not found")
is(first "PLANS", "Plans: lanes, order, waits, rings, splits; check, edits, scripts",
  "a part of the list by its title, a line for each topic")
for line in shown:gmatch "[^\n]+" do
  ok(widest(line) <= core.terminal().width, "  " .. line)
end
help()
local contents = select(2, shown:gsub("\n", "\n"))
ok(contents < 30 and shown:find("\n  Timelines +simulate, print"), "the list of all is a table of contents, a line each", shown)
core.page = page

local lines = explain.fill("one two\nthree\n  code  stays\nfour", 2, 12)
is(table.concat(lines, "|"), "  one two|  three|    code|      stays|  four", "text is filled, code keeps its lines")
is(table.concat(explain.fill("abcdefghij", 0, 4), "|"), "abcd|efgh|ij", "a word without a space is divided")
is(table.concat(explain.fill("äöüäöü", 0, 4), "|"), "äöüä|öü", "between characters")
tap.done_testing()
