-- show.lua - the show methods: the explorer, or text if there is no terminal.

local core = require "millrace.core"
local draft = require "millrace.draft"
local loader = require "millrace.loader"
local options = require "millrace.options"
local repairs = require "millrace.repairs"
local script = require "millrace.script"
local raise, show, entry, expect = core.raise, core.show, core.entry, core.expect

-- At the prompt, the shell shows an edited plan that a show method returns in one line, and does not print it.
local function line_of(plan)
  return ("the edited plan of %s: print(_) prints it, _:undo() undoes an edit"):format(plan.graph.program.name)
end

local function title_of(plan) return ("%s on %s"):format(plan.graph.program.name, plan.device.name) end

-- Run a plan on the device, after a check against the reference.
local function measure(plan)
  local target = core.gpu_target(plan)
  local board, why = core.attached(target)
  if not board then return nil, "there is no device to run it on: " .. tostring(why) end
  local k = plan:compile{target = target}
  local good = k:check()
  if not good.ok then return nil, ("the kernel is wrong: its error is %.2g"):format(good.max_abs) end
  return k:trace(), "measured on the device: compare (7) shows predicted and measured"
end

-- "softmax k tile" -> pins: names of sTasks, lanes, rings or axes; or a kind, of which all are pinned.
local function pins_of(plan, words)
  local kinds = {tasks = {}, lanes = {}, rings = plan.rings, tile = plan.tile, grid = {}}
  local pin = {}
  for _, s in draft.each(draft.read(plan), "append") do
    kinds.tasks[s[2]], kinds.tasks[draft.slice_of(s[2])], kinds.lanes[s[3].lane] = true, true, true
  end
  for word in words:gmatch "[^%s,]+" do
    local of = "tasks"                                  -- an unknown name is reported as an sTask
    for _, kind in ipairs{"tile", "rings", "lanes", "tasks"} do
      if kinds[kind][word] then of = kind end
    end
    if kinds[word] then
      pin[word] = true
    elseif pin[of] ~= true then
      pin[of] = pin[of] or {}
      table.insert(pin[of], word)
    end
  end
  return pin
end

local ended <const> = {trials = ": no more were allowed", seconds = " until the time was used", interrupted = " until Ctrl-C"}

-- Replace the plan by what a search from it finds; returns a summary, and whether it was changed.
local function improve(plan, words)
  local r = plan:improve{pin = pins_of(plan, words), progress = function() end}
  if #r.changes > 0 then r.keep() end
  return ("%d plan%s tried%s"):format(r.trials, r.trials == 1 and "" or "s", ended[r.ended] or ""), #r.changes > 0
end

-- Where to save a plan that has no file yet: in a file named after its program, as the program's own may be, that does not exist.
local function free_path(plan)
  local name = plan.graph.program.name:gsub("[^%w_-]", "_") .. "_plan"
  local path, n = name .. ".lua", 1
  while core.file_kind(path) do
    n = n + 1
    path = ("%s_%d.lua"):format(name, n)
  end
  return path
end

-- Save the plan. Returns the statement that loads it again, which needs the program if that is none of mr.examples.
local function save(plan, path, given)
  plan:save(path, given)
  if not path:find "[/.]" then path = "./" .. path end
  local own = plan:script():find("\nlocal bound = mr.bound(", 1, true)
  return (own and "mr.load_plan(%q, program)" or "mr.load_plan %q"):format(path)
end

local TRIALS <const> = 3                                -- changes tried where no repair alone makes a plan legal
local REPAIRS <const> = 8                              -- the most suggestions that are applied to make a plan legal

-- What y shows: what binds a plan, or that nothing would help, in the first line, then of each suggestion a line, with tabs.
local function text_of(plan, found)
  local lines = {#found == 0 and found.none or plan:check() and plan:simulate():why().binds or ""}
  for _, s in ipairs(found) do
    lines[#lines + 1] = ("%s\t%s\t%s"):format(s.gain and ("%.1f %% less time"):format(100 * s.gain) or "", s.text, s.reason)
  end
  return table.concat(lines, "\n") .. "\n"
end

local function suggestions(plan) return plan:suggest(not plan:check() and {trials = TRIALS} or nil) end

-- Make a plan legal by the suggestions that come first, as one edit. Returns them and true; or what is in the way and false.
local function repair(plan)
  local from, edits, done, texts = core.mark(plan), core.edits(plan), false, {}
  local good, message = core.try(function()
    while not plan:check() and #texts < REPAIRS do
      local first = suggestions(plan)[1]
      if not first then return end
      first:apply()
      texts[#texts + 1] = first.text
    end
    done = plan:check()
  end)
  if not done then core.back(plan, from) end
  if not good then raise(message) end
  if done then
    core.join(plan, core.edits(plan) - edits)
    return table.concat(texts, "; "), true
  end
  local _, problems = plan:check()
  local p = problems[1]
  return ("no change that was tried makes the plan legal: %s%s"):format(p.message, p.hint and "; what would: " .. p.hint or ""), false
end

-- The problems as check() shows them: for each a line with the number of the problem that it begins with, its message and its hint,
-- with tabs.
local function problem_texts(plan)
  local _, list = plan:check()
  local number, lines = {}, {}
  for i, p in ipairs(list) do number[p] = i end
  for i, p in ipairs(repairs.shown(list)) do
    lines[i] = ("%d\t%s\t%s\n"):format(number[p.of or p], p.message, p.hint or "")
  end
  return table.concat(lines)
end

-- Options of core.explore for a plan.
local function of_plan(plan)
  local found
  local written = {}                                    -- paths that were saved to here: not asked again
  local function save_to(path, given)
    local text = save(plan, path, given)
    written[path] = true
    return text
  end
  return {plan = plan, title = title_of(plan), view = "plan",
    changes = function()
      found = suggestions(plan)
      return text_of(plan, found)
    end,
    apply = function(number)
      found[math.tointeger(tonumber(number))]:apply()
      return ""
    end,
    repair = function() return repair(plan) end,
    problems = function() return problem_texts(plan) end,
    path = function() return plan.path or free_path(plan) end,
    asks = function(path)
      local why, exists = script.obstacle(plan, path)
      return why or exists and not written[path] and "exists" or ""
    end,
    save = save_to,
    overwrite = function(path) return save_to(path, {overwrite = true}) end,
    measure = function() return measure(plan) end,
    improve = function(words) return improve(plan, words) end}
end

local function of_timeline(tl)
  if tl.measured then
    local plan = tl.kernel.plan
    local o = {timeline = tl, plan_of_timeline = plan, title = title_of(plan) .. ", measured", view = "timeline"}
    if plan:check() then o.base, o.plan_of_base, o.base_name, o.name = plan:simulate(), plan, "predicted", "measured" end
    return o
  end
  local o = of_plan(core.plan_of(tl))
  o.timeline, o.view = tl, "timeline"
  return o
end

local function of(x)
  if core.is(x, "millrace.timeline") then return of_timeline(x) end
  if core.is(x, "millrace.plan") then return of_plan(x) end
  if core.is(x, "millrace.graph") then return {graph = x, title = x.program.name, view = "graph"} end
  if core.target(x) then
    local o = of_plan(x.plan)
    o.view = "kernel"
    return o
  end
  raise("show: timeline, plan, graph or kernel expected, got " .. show(x))
end

---- names of what is compared -----------------------------------------------------------------

local getlocal, getinfo, globals = debug.getlocal, debug.getinfo, _G
local LONG <const> = 24                                 -- columns of a path in titles, at most
local here <const> = getinfo(1, "S").source

-- The name of the variable that has a value: a local one of the functions that run, else a global one; nil.
local function variable_of(x)
  local level, info = 2, getinfo(2, "S")
  while info do
    local i, name, value = 0, "", nil
    while name and info.source ~= here do
      i = i + 1
      name, value = getlocal(level, i)
      if name and rawequal(value, x) and name:find "^[%a_]" then return name end
    end
    level = level + 1
    info = getinfo(level, "S")
  end
  for name, value in next, globals do
    if rawequal(value, x) and type(name) == "string" and name ~= "_" then return name end
  end
end

local function plan_of(x) return core.is(x, "millrace.timeline") and not x.measured and core.plan_of(x) or x end

local function file_of(x)
  local path = plan_of(x).path
  return path and (#path <= LONG and path or path:match "[^/]*$")
end

-- What two things are called that are compared: the files that they were loaded from, a plan that came with Millrace by its name next
-- to a file; or variables, or what they are.
local function names_of(x, y)
  local one, other = file_of(x), file_of(y)
  if one or other then
    one = one or loader.shipped[plan_of(x)] or variable_of(x) or "first"
    other = other or loader.shipped[plan_of(y)] or variable_of(y) or "second"
    if one ~= other then return {one, other} end
  end
  one, other = variable_of(x) or "first", variable_of(y) or "second"
  return one ~= other and {one, other} or {"first", "second"}
end

---- to show -----------------------------------------------------------------------------------

-- Instead of the explorer, if there is no terminal.
local function as_text(x, y, names)
  if not y then
    if core.is(x, "millrace.timeline") then x:print() else print(x) end
    return
  end
  if core.is(y, "millrace.plan") and core.is(x, "millrace.plan") then
    local changes = x:diff(y)
    print(("from %s to %s:"):format(names[1], names[2]))
    print(changes)
    x, y = x:simulate(), y:simulate()
  end
  print(require "millrace".compare(x, y, {names = names}))
end

-- given: {names=}, what two are called; {keeps_edits=false}, nothing holds the plan afterwards.
local function run(x, y, given)
  local o, names = of(x), nil
  given = options.check(given, "show", {"names", "keeps_edits"})
  if y ~= nil then
    local first = core.is(x, "millrace.plan") and x:simulate() or x
    if not core.is(first, "millrace.timeline") then
      raise("show: two plans or timelines are compared, got " .. show(x))
    end
    names = given.names or names_of(x, y)
    expect(type(names) == "table" and type(names[1]) == "string" and type(names[2]) == "string", "show", "two names", names)
    o = of(y)
    o.base, o.plan_of_base, o.view = first, first.measured and first.kernel.plan or core.plan_of(first), "compare"
    o.difference = draft.difference(o.plan_of_base, o.plan or o.plan_of_timeline)
    o.base_name, o.name, o.title = names[1], names[2], ("%s: %s"):format(names[2], o.title)
  end
  o.keeps_edits = given.keeps_edits ~= false
  local edited, interrupted = core.explore(o)
  if edited == nil and interrupted then io.stderr:write(interrupted, "\n") end
  if edited == nil then return as_text(x, y, names) end
  if interrupted then
    io.stderr:write("interrupted", not edited and "" or o.keeps_edits and "; the plan keeps its edits: plan:undo() undoes them"
      or "; the edits are lost", "\n")
  end
  if edited then
    core.last_shown = {plan = o.plan, line = line_of(o.plan)}
    return o.plan
  end
end

-- The list of keys by group.
local key_list = {__tostring = function(list)
  local lines, group = {}, nil
  for _, k in ipairs(list) do
    if k.group ~= group then lines[#lines + 1] = (group and "\n" or "") .. k.group end
    group = k.group
    lines[#lines + 1] = ("  %-10s %s"):format(k.keys, k.help)
  end
  return table.concat(lines, "\n")
end}

return function()
  for _, class in ipairs{"timeline", "plan", "graph", "kernel", "on_host"} do
    core.method("millrace." .. class, "show", entry(function(x, given)
      if not core.is(x, "millrace." .. class) then raise(("show: %s expected, got %s"):format(class, show(x))) end
      return run(x, nil, given)
    end))
  end
  return {show = entry(run), keys = core.entry(function() return setmetatable(core.keys(), key_list) end)}
end
