-- What a trace adds to a kernel uses declared names alone: those of the prelude, and those of the kernel in a block that is open
-- there. For two hand-made plans of each shipped program, and for those that searches have found for an H200.
local mr = require "millrace"
local core = require "millrace.core"
local json = require "millrace.json"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")

local function set(words)
  local of = {}
  for word in words:gmatch "%S+" do of[word] = true end
  return of
end

local TYPES <const> = set "int u32 u64 float bool"
local KEYWORDS <const> = "const for if int return"

-- Names that lines with stamps use undeclared, in their order.
local function undeclared(text)
  local head, kernel = text:match "^(.*%f[%w]KERNEL%f[%W])(.*)$"
  local given, scopes, missing = set(KEYWORDS), {{}}, {}
  for name in (head .. kernel:match "^[^{]*"):gmatch "[%a_][%w_]*" do given[name] = true end
  local function known(name)
    if given[name] then return true end
    for _, scope in ipairs(scopes) do if scope[name] then return true end end
  end
  for line in kernel:match "%b{}":gsub("/%*.-%*/", ""):gsub('"[^"\n]*"', ""):gmatch "[^\n]+" do
    local stamps, declares = line:find "stamp" or line:find "trace", false
    for at, token in line:gmatch "()([%a_]?[%w_]*%W?)" do
      local name, behind = token:match "^([%a_][%w_]*)(.?)$"
      if name and TYPES[name] then
        declares = true
      elseif name then
        local follows = line:match("^%s*=?[^=]?", at + #name)
        if declares and (follows:find "^%s*=[^=]" or follows:find "^%s*;") then scopes[#scopes][name] = true end
        if stamps and not known(name) then missing[#missing + 1] = name end
      end
      behind = behind or token:sub(-1)
      if behind == "{" then scopes[#scopes + 1] = {}
      elseif behind == "}" then scopes[#scopes] = nil
      elseif behind == ";" or behind == ")" then declares = false end
    end
  end
  return table.concat(missing, " ")
end

tap.is(undeclared "int stamp;\nKERNEL f(int a)\n{\n{ int b = a; stamp(a, b); }\nfor (int i = 0, j = 1; i < 2;) { stamp(b == i, j); } }", "b",
  "a name of a block that is over is not declared")

-- Everything in the program's order on the lanes that the device chooses.
local function simple(plan)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
end

-- Loads alternately on two lanes, few EUs.
local function deep(plan)
  local loads = 0
  plan:grid{eus = 2}
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p" .. loads % 2 or nil})
    if t.kind == "load" then loads = loads + 1 end
  end
end

local function declares(what, plan)
  if not plan:check() then return false end
  plan:grid{dynamic = false}
  local traced, phases = core.lower(plan, "cuda", true), core.lower(plan, "cuda")
  local wrong = {}
  for i, phase in ipairs(traced) do
    wrong[#wrong + 1] = undeclared(phase.text)
    if phase.text == phases[i].text then wrong[#wrong + 1] = "no stamps" end
  end
  tap.is(table.concat(wrong):gsub("^ +$", ""), "", what .. ": all names are declared")
  return true
end

local names, programs = dofile(dir .. "lib/example_names.lua"), dofile(dir .. "lib/shipped_sizes.lua")
for _, name in ipairs(names) do
  for n, sizes in ipairs(programs[name]) do
    for how, make in ipairs{simple, deep} do
      local plan = mr.plan(mr.examples[name](sizes):graph{tile = programs[name].tile}, mr.device "h200")
      make(plan)
      plan:fill_waits()
      local what = ("%s at sizes %d, plan %d"):format(name, n, how)
      tap.ok(declares(what, plan), what .. " is legal")
    end
  end
end

for line in io.lines(dir .. "../perf/searched-h200.jsonl") do
  local row = json.decode(line)
  if not row.program:find ":" then
    tap.ok(declares(row.family, load(row.script)(mr.examples[row.program](row.sizes))), row.family .. " is legal")
  end
end

-- Loops in loops on a lane whose tile begins with an sTask: compiled, and run on the CPU.
local sizes = {b = 1, h = 2, m = 128, d = 64}
local backward = mr.plan(mr.examples.attention_backward(sizes):graph{tile = programs.attention_backward.tile}, mr.device "h200")
simple(backward)
backward:fill_waits()
local function instances(timeline)
  local counts, list = {}, {}
  for _, e in ipairs(timeline.events) do counts[e.task] = (counts[e.task] or 0) + 1 end
  for task, n in pairs(counts) do list[#list + 1] = ("%s %d"):format(task, n) end
  table.sort(list)
  return table.concat(list, ", ")
end
tap.is(instances(backward:compile{target = "host"}:trace{}), instances(backward:simulate()), "the trace has all instances")
tap.done_testing()
