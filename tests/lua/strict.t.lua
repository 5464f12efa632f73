-- Strict names: every name of the reference, mistyped by one letter, is an error that tells the
-- right one; what is there, and what may be nil, is read as ever.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses

is(undefined_name, nil, "a script is not strict unless it asks")
is(mr.no_such_thing, nil, "nor are fields")
mr.strict()

local device = mr.device "h200"
local bound = mr.examples.gemm{m = 256, n = 256, k = 256}
local graph = bound:graph{tile = {m = 128, n = 128, k = 64}}
local plan = mr.load_plan("gemm_cooperative")
local tl = plan:simulate()
local k = plan:compile{target = "cuda", text = true}
local found = mr.search(bound, device, {trials = 30})
local tried = plan:try(function(p) p:buffers{a = 2} end)
local _, problems = (function() local p = mr.plan(graph, device) return p:check() end)()

---- globals --------------------------------------------------------------------------------

refuses("local x = plna", "user.lua:1: no global 'plna'; did you mean 'mr.plan'?", "a global that mr has")
plan_a = 1
refuses("local x = plan_b2", "user.lua:1: no global 'plan_b2'; did you mean 'plan_a'?", "one of the user's")
refuses("prnit(1)", "user.lua:1: no global 'prnit'; did you mean 'print'?", "one of Lua's")
refuses("return ture", "user.lua:1: no global 'ture'; did you mean 'true'?", "a word of Lua's")
refuses("return q", "user.lua:1: no global 'q'", "of one letter nothing is guessed")
refuses("\nlocal function f() return undefined_thing end\nf()", "user.lua:2: no global 'undefined_thing'",
  "in a function")
is(rawget(_G, "undefined_name"), nil, "rawget(_G, name) asks without an error")
assigned = nil
is(assigned, nil, "a name that was assigned nil may be read")
assigned = 1
assigned = nil
is(assigned, nil, "and one that was set to nil")
is(_G[1], nil, "keys that are no names are not looked at")
is(select("#", pcall(require, "string")), 2, "modules load")

---- fields ----------------------------------------------------------------------------------

-- One letter changed, left out, added; two exchanged.
local function mistyped(name)
  local i = math.max(#name // 2, 1)
  local out = {name:sub(1, i - 1) .. "q" .. name:sub(i + 1), name:sub(1, i) .. "q" .. name:sub(i + 1)}
  if #name > 3 then
    out[#out + 1] = name:sub(1, i - 1) .. name:sub(i + 1)
    if name:sub(i, i) ~= name:sub(i + 1, i + 1) then
      out[#out + 1] = name:sub(1, i - 1) .. name:sub(i + 1, i + 1) .. name:sub(i, i) .. name:sub(i + 2)
    end
  end
  return out
end

-- Is one name made of the other by one slip? Then nobody can know which one was meant.
local function one_slip(a, b)
  local i, n = 1, math.min(#a, #b)
  while i <= n and a:byte(i) == b:byte(i) do i = i + 1 end
  return a:sub(i + 1) == b:sub(i + 1) or a:sub(i) == b:sub(i + 1) or a:sub(i + 1) == b:sub(i)
    or a:sub(i, i) == b:sub(i + 1, i + 1) and a:sub(i + 1, i + 1) == b:sub(i, i) and a:sub(i + 2) == b:sub(i + 2)
end

local function sorted(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local seen = 0
local function check(object, kind, name, known)
  for _, wrong in ipairs(mistyped(name)) do
    if not known[wrong] and #wrong > 1 then
      seen = seen + 1
      local good, message = pcall(function() return object[wrong] end)
      local suggested = not good and message:match "did you mean '([%w_]+)'%?$"
      ok(suggested == name or suggested and one_slip(suggested, wrong), ("%s.%s suggests %s"):format(kind, wrong, name), tostring(message))
    end
  end
end

local function check_all(object, kind, known)
  for _, name in ipairs(sorted(known)) do check(object, kind, name, known) end
end

local function known_of(object)
  local meta, known = debug.getmetatable(object), {}
  for _, part in ipairs{"methods", "fields"} do
    for name in pairs(rawget(meta, part) or {}) do known[name] = true end
  end
  return known
end

local names = {}
for name in next, mr do names[name] = true end
check_all(mr, "mr", names)
local objects = {bound = bound, graph = graph, plan = plan, tl = tl, k = k, device = device, r = found, tried = tried,
  array = mr.array("f32", {2}), task = graph.tasks[1], edge = graph.edges[1],
  buffer = graph.buffers[1], event = tl.events[1], phase = tl.phases[1], problem = problems[1], usage = plan.usage,
  row = tl.blame[1], part = tl.blame[1].parts[1], comparison = mr.compare(tl, tl), cmprow = mr.compare(tl, tl).rows[1],
  side = mr.compare(tl, tl).rows[1].predicted, difference = tried.diff, improved = plan:improve{trials = 1}}
for _, kind in ipairs(sorted(objects)) do check_all(objects[kind], kind, known_of(objects[kind])) end
ok(seen > 500, "hundreds of names were mistyped", seen)

-- What the reference's tables say that an object has, it has.
local home = mr.home .. "/docs/reference.md"
local file = io.open(home)
if file then
  local of = {mr = mr, plan = plan, tl = tl, graph = graph, k = k, bound = bound, device = device}
  local count = 0
  for line in file:lines() do
    for code in (line:match "^| (.-) |" or ""):gmatch "`([^`]*)`" do
      local object, name = code:match "^(%a+)[.:]([%a_]+)"
      if of[object] then
        count = count + 1
        local good, message = pcall(function() return of[object][name] end)
        ok(good, ("%s.%s of the reference is there"):format(object, name), message)
      end
    end
  end
  file:close()
  ok(count > 90, "the reference's tables were read", count)
end

---- what may be nil --------------------------------------------------------------------------

is(tl.kernel, nil, "a field without a value")
is(tl.events[1].late, nil, "of a plain table, too")
is(graph.tasks[1].m, nil, "that has none")
is(mr.examples.gemm.name, "gemm", "an example")
is(graph.tasks[1][1], nil, "a number is no field")
is(pairs(graph.tasks[1]) ~= nil and sorted(graph.tasks[1])[1], "bytes", "tables are walked through as ever")
mr.strict(false)
is(mr.no_such_thing, nil, "mr.strict(false) ends it")
is(undefined_name, nil, "for globals, too")
tap.refuses("mr = require 'millrace' mr.strict(1)", "user.lua:1: strict: true or false expected, got 1")
tap.done_testing()
