-- helpers.lua: which ranks compile for which others, and what a rank does when one of these fails. The ranks are coroutines
-- (lib/play_ranks.lua), and the compilers of core are tables here.
require "millrace"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local play, random = table.unpack(dofile(here .. "lib/play_ranks.lua"))
local ok, is = tap.ok, tap.is
local core, helpers = require "millrace.core", require "millrace.helpers"

---- bytes as text -----------------------------------------------------------------------------------------------------

is(core.base64 "" .. " " .. core.base64 "f" .. " " .. core.base64 "fo" .. " " .. core.base64 "foo" .. " " .. core.base64 "\0\255\254~",
  " Zg== Zm8= Zm9v AP/+fg==", "bytes as text")
local next_of, bad = random(3), 0
for n = 0, 200 do
  local bytes = {}
  for i = 1, n do bytes[i] = string.char(next_of(256) - 1) end
  local text = table.concat(bytes)
  if core.base64_bytes(core.base64(text)) ~= text then bad = bad + 1 end
end
is(bad, 0, "  and back")
local none = 0
for _, text in ipairs{"Z", "Zg", "Zg=", "Zg==Zg==", "====", "=g==", "Z===", "Zm9*", "Zm 9", "\0\0\0\0"} do
  none = none + (core.base64_bytes(text) == nil and 1 or 0)
end
is(none, 10, "what is no such text")

---- who compiles for whom -----------------------------------------------------------------------------------------------

-- hosts: of ranks 1, 2, ...; those in capitals are chosen. shared: all ranks of a host have all of its cores, else each has its own. ->
-- "asker: helper/workers ...; ..."
local function assigned(hosts, workers, shared)
  local offers, chosen, words = {}, {}, {}
  for rank = 1, #hosts do
    local host = hosts:sub(rank, rank)
    offers[rank] = {host = host:lower(), compilers = {workers = workers or 4, cores = shared and "all" or tostring(rank)}}
    if host:lower() ~= host then chosen[rank] = true end
  end
  local given = helpers.assign(offers, chosen)
  for rank = 1, #hosts do
    if given[rank] then
      local list = {}
      for i, x in ipairs(given[rank]) do list[i] = x.rank .. "/" .. x.workers end
      words[#words + 1] = rank .. ": " .. table.concat(list, " ")
    end
  end
  return table.concat(words, "; ")
end
is(assigned "AA", "", "no rank without a task, no helper")
is(assigned "aa", "", "nobody to help")
is(assigned "Aaa", "1: 2/4 3/4", "all help the only one")
is(assigned "ABba", "1: 4/4; 2: 3/4", "on the same host first")
is(assigned "AABBabb", "1: 5/2; 2: 5/2; 3: 6/4; 4: 7/4", "  also the only one of a host")
is(assigned "AAaa", "1: 3/4; 2: 4/4", "the same number for each")
is(assigned "AAAa", "1: 4/1; 2: 4/1; 3: 4/1", "one helper's workers are divided")
is(assigned("AAAa", 2), "1: 4/1; 2: 4/1; 3: 4/1", "  each has one at least")
is(assigned "Abbb", "1: 2/4 3/4 4/4", "also on other hosts")
is(assigned("Aaa", 8, true), "", "what has no other cores than a rank with a task is no helper")
is(assigned("Aabb", 8, true), "1: 3/4 4/4", "helpers that share cores share workers")

local helped = helpers.helped{[2] = {{rank = 3}, {rank = 4}}, [1] = {{rank = 4}}}
is(helped[3] .. "; " .. helped[4] .. "; " .. tostring(helped[1]), "rank 2; rank 1, 2; nil", "for whom a rank compiles")

---- compilers ------------------------------------------------------------------------------------------------------------

local real = {}
local function replace(name, f)
  real[name] = real[name] or core[name]
  core[name] = f
end

local TOOL <const> = "compiler 1"
local now = 0
replace("clock", function() now = now + 0.01 return now end)
replace("compile_wait", function() end)
replace("compile_end_idle", function() end)

-- Plans are {name=, phases=, cached=}. Their kernels are texts, of what compiled each phase.
local function inner_of(plan, only_cached)
  local inner = {plan = plan, phase = {}}
  for i = 1, plan.phases do inner.phase[i] = plan.cached and "cache" or only_cached and "missing" or "here" end
  function inner:done() return true end
  function inner:kernel() return table.concat(self.phase, " ") end
  function inner:drop() self.dropped = true end
  return inner
end
replace("compile_begin", function(plan, _, _, only_cached) return inner_of(plan, only_cached) end)
replace("compile_missing", function(inner)
  local list = {}
  for i, x in ipairs(inner.phase) do if x == "missing" then list[#list + 1] = i end end
  return list
end)
replace("compile_wanted", function(inner, phase)
  local name = inner.plan.name
  return {api = "cuda", name = name, source = name .. phase, arch = "sm_90a", fast_math = false, options = {"-a"}, tool = TOOL}
end)
replace("compile_give", function(inner, phase, tool, log, bytes)
  assert(inner.phase[phase] == "missing")
  inner.phase[phase] = tool and ("%s,%s"):format(log, bytes) or "here"
end)

-- Three ranks (or `size`), of which rank 1 does `body` with rank 2, and further ones, as helpers; what these compile is `compile(source)`
-- -> done?, tool or nil, log or why, binary. -> what body returns, the log of the helpers: texts begun and dropped
local function ask(body, compile, workers, waiting, seed, size)
  local log, live = {}, 0
  replace("compile_state", function() return workers or 1, 0, waiting or 0 end)
  replace("compile_source", function(m)
    log[#log + 1] = m.source
    live = live + 1
    return {done = function() return (compile(m.source)) end, result = function() return select(2, compile(m.source)) end,
      drop = function() live = live - 1 end}
  end)
  local values = play(size or 3, seed or 1, function(farm)
    local r = require("millrace.ranks").new(farm, pcall)
    local between, stop = helpers.serve(r)
    local chosen = {[1] = true}
    local results = r:map({"task"}, function(_, with)
      local helped <close> = helpers.use(r, with)
      return body(r)
    end, {
      between = between,
      compilers = function() return {workers = core.compile_state(), cores = tostring(r.rank)} end,
      choose = function(offers) return chosen, helpers.assign(offers, chosen) end,
    })
    stop()
    return results[1].value or results[1].why
  end)
  return values[1], table.concat(log, " "), live
end

local function good(source) return true, TOOL, "log", "\0binary of " .. source end
local function kernel(name, phases) return helpers.compile_begin{name = name, phases = phases or 1}:kernel() end

local got, log, live
for seed = 1, 20 do
  got, log, live = ask(function() return kernel("a", 2) .. "; " .. kernel "b" end, good, nil, nil, seed)
  if got ~= "log,\0binary of a1 log,\0binary of a2; log,\0binary of b1" or log ~= "a1 a2 b1" or live ~= 0 then break end
end
is(got, "log,\0binary of a1 log,\0binary of a2; log,\0binary of b1", "what a helper compiles comes back")
is(log, "a1 a2 b1", "  each text was sent once")
is(live, 0, "  and nothing is under way at the end")

got, log = ask(function() return helpers.compile_begin{name = "a", phases = 2, cached = true}:kernel() end, good)
is(got .. "; " .. log, "cache cache; ", "what is in the cache is not sent")

got = ask(function() return helpers.workers() end, good, 8)
is(got, 16, "the workers of both count")
is(helpers.workers(), 8, "  as long as there are helpers")

local asked = {}
got = ask(function(r)
  local send = r.send
  function r:send(to, m)
    if m.kind == "compile" then asked[#asked + 1] = to end
    return send(self, to, m)
  end
  for i = 1, 7 do kernel("k" .. i) end
  return "done"
end, good, nil, nil, nil, 5)
is(got .. " " .. table.concat(asked, " "), "done 2 3 4 2 3 4 2", "of helpers with as much to do, the one asked longest ago is next")

---- where a helper fails ----------------------------------------------------------------------------------------------

-- Five kernels, one after the other.
local function five()
  local list = {}
  for i = 1, 5 do list[i] = kernel("k" .. i) end
  return table.concat(list, " ")
end
local here_5 = "here here here here here"
local cases = {
  {"its compiler fails", function() return true, nil, "no compiler" end},
  {"its compiler is another one", function() return true, "compiler 2", "log", "binary" end},
  {"its binary is empty", function() return true, TOOL, "log", "" end},
  {"its binary is longer than a message", function() return true, TOOL, "log", ("x"):rep((32 << 20) + 1) end},
}
for _, case in ipairs(cases) do
  got, log, live = ask(five, case[2])
  is(got, here_5, case[1] .. ": the rank compiles by itself")
  is(log .. " " .. live, "k11 k21 k31 0", "  and asks no more after three times")
end

local base64 = core.base64
replace("base64", function() return "no text" end)
is(ask(five, good), here_5, "an answer that is no binary")
replace("base64", function(x) return base64(x:sub(2)) end)
is(ask(five, good), here_5, "one that is not the binary that was compiled")
core.base64 = base64

local times = 0
got, log = ask(five, function(source)
  times = times + 1
  if times <= 2 then return true, nil, "memory is short" end
  return good(source)
end)
ok(got:find "^here.*log,\0binary of k51$", "one that fails now and then is asked again")

got, log, live = ask(five, function() return false end)
is(got, here_5, "one that does not answer for long: the rank compiles by itself")
is(log .. " " .. live, "k11 0", "  and asks no more, and the helper drops the text")

got, log, live = ask(function()
  local a, b = helpers.compile_begin{name = "a", phases = 1}, helpers.compile_begin{name = "b", phases = 1}
  local before = a:done() or b:done()
  a:drop()
  return ("%s %s %s"):format(before, a.inner.dropped, b:kernel())
end, function(source) return source == "b1", TOOL, "log", source end)
is(got, "false true log,b1", "a compilation that is dropped does not keep others waiting")
is(live, 0, "  and the helper drops it")

got, log = ask(function() return kernel "a" end, good, 4, 0)
is(got .. "; " .. log, "log,\0binary of a1; a1", "with nothing to do anywhere, the helper compiles")
got, log = ask(function()
  local list = {}
  for i = 1, 5 do list[i] = helpers.compile_begin{name = "k" .. i, phases = 1} end
  for i = 1, 5 do list[i] = list[i]:kernel() end
  return table.concat(list, " "):gsub("log,%z", "")
end, good, 4, 2)
ok(got:find "here" and got:find "binary", "with as much to do for each worker, the rank itself compiles, too: " .. tostring(got))

---- what a helper is sent -----------------------------------------------------------------------------------------------

local function job(id, source)
  return {kind = "compile", id = id, api = "cuda", name = "n", source = source, arch = "sm_90a", fast_math = false, options = {},
    tool = TOOL}
end
local wrong = job(1, "s")
local fields <const> = {"api", "name", "source", "arch", "fast_math", "options", "tool"}
got, log = ask(function(r)
  local answers, n = {}, 0
  r:handle("compiled", function(m) answers[#answers + 1], n = m.why, n + 1 end)
  for i, field in ipairs(fields) do
    for _, value in ipairs{{}, 7, "text", true} do
      if type(value) ~= type(wrong[field]) then
        local m = {kind = "compile"}
        for key, x in pairs(wrong) do m[key] = x end
        m[field] = value
        r:send(2, m)
      end
    end
  end
  for _, id in ipairs{"1", 1.5, {}, true} do
    r:send(2, {kind = "compile", id = id, api = "cuda"})
    r:send(2, {kind = "forget", id = id})
  end
  r:send(2, {kind = "compile"})
  r:send(2, job(5, "last"))
  while #answers < 3 * #fields or n == #answers do r:poll(1) end
  return n .. " " .. answers[1]
end, good)
is(got, "22 its api is table", "fields of another type are refused, and a request without a number is not answered")
is(log, "last", "  and none of these is compiled")

got, log, live = ask(function(r)
  local refused = 0
  r:handle("compiled", function(m) refused = refused + (m.why and 1 or 0) end)
  for i = 1, 300 do
    r:send(2, job(i, "s"))
  end
  while refused < 44 do r:poll(1) end
  return refused
end, function() return false end)
is(got, 44, "a helper holds 256 texts for a rank, and refuses more")
is(live, 0, "  and drops them at the end")

---- a rank that asks, alone ---------------------------------------------------------------------------------------------

-- A rank whose helpers are these: {sent= what it sends as texts, waits= for how long it waits for messages and compilers, kernel(name),
-- answer(id, from, o)}; use= is to be closed. workers, waiting: its compilers, and what waits for these.
local function asker(list, workers, waiting)
  local x, at = {sent = {}, waits = {}, now = 0}, {}
  core.clock = function() return x.now end
  core.compile_state = function() return workers or 1, 0, waiting or 0 end
  core.compile_wait = function(seconds) x.waits[#x.waits + 1] = "compilers " .. seconds end
  local r = {}
  function r:handle(_, f) x.take = f end
  function r:send(to, m)
    if m.kind == "compile" then at[m.id] = m.source end
    x.sent[#x.sent + 1] = ("%d %s %s"):format(to, m.kind, at[m.id])
  end
  function r:poll(seconds)
    x.waits[#x.waits + 1] = "messages " .. seconds
    return x.ended
  end
  x.use = helpers.use(r, list)
  function x.begin(name) return helpers.compile_begin{name = name, phases = 1} end
  function x.logged()
    local text, waits = table.concat(x.sent, ", "), table.concat(x.waits, ", ")
    x.sent, x.waits = {}, {}
    return text, waits
  end
  -- The answer to the last request for this text: the binary, or what is in o.
  function x.answer(source, from, o)
    local last
    for id, text in pairs(at) do if text == source and (not last or id > last) then last = id end end
    local m = {kind = "compiled", id = last, tool = TOOL, log = "log", binary = core.base64(source), hash = core.hash(source)}
    for key, value in pairs(o or {}) do m[key] = value end
    x.take(m, from)
  end
  return x
end

-- Two helpers, of which the first is late.
do
  local x = asker{{rank = 2, workers = 1}, {rank = 3, workers = 1}}
  local _ <close> = x.use
  local function begun(name)
    local c = x.begin(name)
    return c, c:done()
  end
  local a, is_done = begun "a"
  local b = begun "b"
  is(tostring(is_done) .. "; " .. x.logged(), "false; 2 compile a1, 3 compile b1", "texts are sent to both")
  x.answer("a1", 3)
  x.answer("a1", 2, {id = "1"})
  is(a:done(), false, "what another rank than the helper answers is none")
  x.now = 20
  is(tostring(a:done()) .. x.logged(), "false", "after 20 s a helper is not late")
  x.answer("b1", 3)
  x.now = 20.5
  is(tostring(a:done()) .. " " .. a:kernel() .. "; " .. x.logged(), "true here; 2 forget a1", "  but then, and the rank compiles by itself")
  is(b:kernel(), "log,b1", "  what another one has done in time counts")
  begun "c"
  begun "d"
  is(x.logged(), "3 compile c1, 3 compile d1", "one that is late is asked nothing")
  x.answer("a1", 2)
  begun "e"
  is(x.logged(), "2 compile e1", "  until it answers, which comes too late")
end

-- What a helper has to do is what it was asked for, and has neither done nor dropped.
do
  local x = asker{{rank = 2, workers = 2}, {rank = 3, workers = 2}}
  local _ <close> = x.use
  local list = {}
  for i = 1, 3 do
    list[i] = x.begin("k" .. i)
    list[i]:done()
  end
  is(x.logged(), "2 compile k11, 3 compile k21, 2 compile k31", "each helper gets as much")
  list[1]:drop()
  list[3]:drop()
  is(x.logged(), "2 forget k11, 2 forget k31", "what is dropped is forgotten")
  for i = 4, 5 do
    list[i] = x.begin("k" .. i)
    list[i]:done()
  end
  is(x.logged(), "2 compile k41, 3 compile k51", "  and counts no more")
end

-- Of two workers one compiles, as the rank also measures.
for waiting, want in pairs{[1] = "2 compile b1", [0] = ""} do
  local x = asker({{rank = 2, workers = 1}}, 2, 1)
  local _ <close> = x.use
  x.begin("a"):done()
  x.logged()
  core.compile_state = function() return 2, 0, waiting end
  x.begin("b"):done()
  is(x.logged(), want, ("with one text at the helper and %d that waits here"):format(waiting))
end

-- Three answers in a row that are none.
do
  local x = asker{{rank = 2, workers = 1}}
  local _ <close> = x.use
  local said = {}
  for i, good_one in ipairs{false, false, true, false, false, false, true} do
    local c = x.begin("k" .. i)
    c:done()
    said[i] = x.logged() == "" and "-" or "asked"
    if said[i] == "asked" then x.answer("k" .. i .. "1", 2, not good_one and {hash = "another"} or nil) end
  end
  is(table.concat(said, " "), "asked asked asked asked asked asked -", "a helper is asked until three answers in a row are none")
end

-- For what it waits.
do
  local x = asker{{rank = 2, workers = 1}}
  do
    local _ <close> = x.use
    local a = x.begin "a"
    helpers.compile_wait(7)
    is(select(2, x.logged()), "messages 0, compilers 0.02", "a rank waits for its compilers, not long")
    helpers.compile_wait(0.01)
    is(select(2, x.logged()), "messages 0.01, compilers 0", "  and for messages while a helper compiles")
    x.ended = true
    helpers.compile_wait(0.01)
    is(select(2, x.logged()), "messages 0.01, compilers 0.01", "  but not behind the end, where none is received")
    x.ended = nil
    local polls = 0
    local done = a.done
    function a.done(c)
      polls = polls + 1
      if polls == 2 then x.answer("a1", 2) end
      return done(c)
    end
    is(a:kernel(), "log,a1", "a kernel is waited for")
    is(select(2, x.logged()), "messages 0, compilers 0, messages 0.02, compilers 0, messages 0, compilers 0", "  by messages")
    local long = x.begin "long"
    long.inner.plan.name = ("x"):rep(16 << 20)
    is(long:done(), true, "a text that is too long for a message is not sent")
    local b = x.begin "b"
    b:done()
    x.logged()
    x.b, x.a = b, a
  end
  is(x.logged(), "2 forget b1", "with the task ends what is under way")
  ok(x.b.inner.dropped and not x.a.inner.dropped, "  but not what is done")
  helpers.compile_wait(7)
  is(select(2, x.logged()), "compilers 7", "then the rank is alone")
  is(helpers.compile_begin{name = "c", phases = 1}:kernel() .. select(2, x.logged()), "here",
    "  and compiles by itself, without a look at messages")
end
is(helpers.workers(60, {{workers = 3}, {workers = 3}}) .. " " .. helpers.workers(70, {{workers = 3}}), "64 70",
  "no more than 64 kernels are under way, or as many as it has compilers")

---- a helper, alone -----------------------------------------------------------------------------------------------------

do
  local handlers, sent, waits, idle, live, ready = {}, {}, 0, 0, {}, {}
  local r = {try = pcall}
  function r:handle(kind, f) handlers[kind] = f end
  function r:send(to, m) sent[#sent + 1] = ("%d %s %d %s"):format(to, m.kind, m.id, m.why or m.binary) end
  core.compile_wait = function() waits = waits + 1 end
  core.compile_end_idle = function() idle = idle + 1 end
  core.compile_source = function(m)
    live[m.source] = true
    return {
      done = function() return ready[m.source] end,
      result = function() return m.source == "other" and "compiler 2" or TOOL, "log", m.source end,
      drop = function() live[m.source] = nil end,
    }
  end
  local between, stop = helpers.serve(r)
  local function compile(from, id, source)
    handlers.compile(job(id, source), from)
  end
  local function under_way()
    local list = {}
    for name in pairs(live) do list[#list + 1] = name end
    table.sort(list)
    return table.concat(list, " ")
  end
  stop()
  is(idle, 0, "a helper without a text has no compilers to end")
  is(tostring(between()) .. " " .. waits, "nil 0", "  and waits for messages as long as usual")
  compile(1, 1, ("x"):rep((16 << 20) + 1))
  is(table.remove(sent), "1 compiled 1 its source is too long", "a text may be too long")
  compile(1, 1, "a")
  compile(1, 2, "b")
  compile(3, 1, "c")
  compile(1, 4, "other")
  handlers.forget({id = 1}, 1)
  is(under_way(), "b c other", "what is forgotten is that of the rank and the number")
  handlers.forget({id = 9}, 1)
  handlers.forget({id = 2}, 3)
  is(under_way(), "b c other", "  no other one")
  is(between() .. " " .. waits .. " " .. #sent, "0 1 0", "while it compiles it waits for compilers")
  ready = {b = true, other = true}
  between()
  table.sort(sent)
  is(table.concat(sent, ", "), "1 compiled 2 Yg==, 1 compiled 4 its compiler is compiler 2, not compiler 1", "  and answers what is done")
  is(under_way(), "c", "  and keeps what is not")
  for id = 1, 256 do compile(1, id, "many") end
  sent = {}
  compile(1, 257, "many")
  is(table.concat(sent), "1 compiled 257 it has too much to do", "a rank may ask for 256 texts at a time")
  compile(3, 2, "d")
  is(#sent .. " " .. under_way(), "1 c d many", "  each of them")
  stop()
  is(under_way() .. idle .. tostring(between()), "1nil", "in the end nothing is compiled")
end

for name, f in pairs(real) do core[name] = f end

if io.open "/proc/self/status" then
  ok(helpers.compilers().cores:find "^%d[%d,-]*$", "a rank knows its cores: " .. helpers.compilers().cores)
end
tap.done_testing()
