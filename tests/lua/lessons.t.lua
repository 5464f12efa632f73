-- The lessons: each runs in one go, what it claims holds, its edits can be made, its text fits, and
-- what it says was measured is what was measured.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, measured = dofile(dir .. "tap.lua"), dofile(dir .. "../perf/measured.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local WIDTH <const> = 78
-- A million events take about a second, and ten are what a reader will wait; this is far from both.
local EVENTS_MOST <const> = 2e6

local played = 0
do
  local plan = mr.load_plan "attention_serial"
  local simulate = plan.simulate
  core.method("millrace.plan", "simulate", core.entry(function(...)
    local tl = simulate(...)
    played = played + tl.played
    return tl
  end))
end

local function longest(text)
  local most = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do most = math.max(most, utf8.len(line) or #line) end
  return most
end

-- An edit as the reader makes it, on a plan that is taken back.
local function tried(env, on, t)
  return env[on]:try(function(p)
    assert(load(t.edit, "=edit", "t", setmetatable({[on] = p}, {__index = env})))()
  end)
end

local function check_try(name, page, env)
  is(#page.list, 2, name .. ": two things to try")
  for _, t in ipairs(page.list) do
    local what = ("%s: %s"):format(name, (t.edit:gsub("\n", "; ")))
    local good, r = pcall(tried, env, page.on, t)
    if ok(good, what, r) and t.that then
      ok(assert(load("return " .. t.that, "=that", "t", {r = r}))(), "  " .. t.that, tostring(r))
    end
  end
end

local list = mr.lessons()
ok(#list >= 9, "there are nine lessons or more", tostring(list))
local names = {}
for i, lesson in ipairs(list) do
  local name = lesson.name
  is(lesson.number, i, name .. " has its number")
  ok(not names[name], "  and a name of its own")
  names[name] = lesson
  played = 0
  local good, pages, env = pcall(lesson.pages, lesson, {width = WIDTH})
  if ok(good, "  runs", pages) then
    local kinds = {}
    for _, page in ipairs(pages) do
      kinds[page.kind] = (kinds[page.kind] or 0) + 1
      if page.kind == "claim" then ok(page.holds, "  " .. page.claim) end
      if page.kind == "show" then
        -- a comparison or a table of blame has a width of its own
        ok(longest(page.drawing) <= WIDTH, "  a drawing fits: " .. page.typed, longest(page.drawing))
      end
      if page.kind == "code" then
        ok(longest(page.code) <= WIDTH - 2, "  its code fits behind the prompt", page.code)
        ok(not page.out:find(mr.home, 1, true), "  and prints no path of this machine", page.out)
      end
      if page.kind == "try" then check_try(name, page, env) end
    end
    ok((kinds.ask or 0) >= 2 and (kinds.show or 0) >= 1 and kinds.try == 1 and (kinds.claim or 0) >= 2,
      "  asks, shows, claims and gives to try")
    ok(played < EVENTS_MOST, "  plays few events", played)
  end
end

-- What lesson 10 has as measured, of the plans that it has
local rows = {}
for _, r in ipairs(measured.plans(measured.sweep)) do rows[r.family .. ", " .. r.name] = r end
local _, env = names.model:pages{}
local of = {serial = "attention 128, 8192 keys, 128x128w2 ser", overlap = "attention 128, 8192 keys, 128x128w2 ov",
  pingpong = "attention 128, 8192 keys, 128x128w2 pp", gemm = "gemm 8192x8192x8192, 128x256w2s4"}
for _, m in ipairs(env.measured) do
  local row = rows[of[m[1]]]
  is(m[2], row.ms, "model: " .. m[1] .. " has the time that was measured")
  is(m[3], row.cycles, "  the cycles")
  is(m[4], row.clock_hz, "  the clock")
  is(env.tls[m[1]].cycles, load(row.script)():simulate{events = 0}.cycles, "  and that plan")
end
local function has(name, text)
  local file = assert(io.open(names[name].path))
  local all = file:read "a":gsub("%s+", " ")
  file:close()
  ok(all:find(text, 1, true), ("%s says %s"):format(name, text))
end
local one, other = rows["gemm 4096x4096x4096, search"], rows["gemm 4096x4096x4096, 128x256w2s4"]
has("model", ("%s cycles for one and %s for the other, but %.3f ms and %.3f"):format("271,551", "275,577", one.ms, other.ms))
is(one.cycles .. " " .. other.cycles, "271551 275577", "  and these are the cycles")
has("pingpong", ("%.2f ms without it and %.2f ms with it"):format(rows[of.overlap].ms, rows[of.pingpong].ms))

ok(math.abs(rows[of.serial].ms - 1.69) < 0.005, "  and in order, too")
local small = rows["gemm 4096x4096x4096, 64x128w1s8"]
has("clusters", ("%.0f us for those of 64 x 128"):format(small.ms * 1e3))
has("clusters", ("where it says %.0f"):format(load(small.script)():simulate{events = 0}.seconds * 1e6))

-- The frame
is(mr.lessons()[3].name, "rings", "mr.lessons() is in order")
like(tostring(mr.lessons()), " 3  rings +How deep", "  and shown with titles")
tap.refuses('mr.lesson "ring"', "user.lua:1: lesson: there is no lesson 'ring'; did you mean 'rings'?")
tap.refuses("mr.lesson(true)", "user.lua:1: lesson: name of a lesson expected, got true")
tap.refuses('mr.lesson("rings", {al=true})', "user.lua:1: lesson: unknown option 'al'; did you mean 'all'?")
tap.refuses('mr.lesson{title="a", idea="b", {shows="x"}}',
  "user.lua:1: lesson: step 1 is of no kind: text, code, show, ask, claim or try")
tap.refuses('mr.lesson{title="a", idea="b", {ask="x"}}', "user.lua:1: lesson: step 1: a question needs an answer")
tap.refuses('mr.lesson{title="a", idea="b", {text="x", unit="y"}}', "user.lua:1: lesson: step 1: text has no field 'unit'")
tap.done_testing()
