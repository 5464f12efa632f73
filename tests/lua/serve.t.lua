-- serve.lua: which outputs are compared with which, and what a failed comparison costs; by a core whose kernels, compilers and
-- comparisons are tables here.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like
local core = require "millrace.core"

local real = {}
local function replace(name, f)
  real[name] = real[name] or core[name]
  core[name] = f
end

-- A server of kernels by their scripts, tables with
--   ms, again     its milliseconds; in all races but the first one
--   apart, chunk  how far its outputs are from those of another kernel; the error of the complete reference's comparison
--   wrong, late   how many outputs are wrong; by the complete reference alone
--   fault         the error if it runs alone
--   breaks        the error of a race with it;  breaks_from  of the so many-th race and later ones
--   unbuilt       the error of its compiler;  slow  it is not compiled;  problems  of its compiler
--   verify        an error of comparisons with the reference, or a function(tiles) that raises or not
-- log: the comparisons; .races: who was in each race; .samples: their milliseconds. While the device works in a race, what is called
-- meanwhile is called once, and log.after() then.
local function serve(kernels, workers, ahead)
  local log, now = {races = {}, samples = {}}, 0
  replace("attached", function() return {name = "Fake"} end)
  replace("compile_state", function() return workers or 8 end)
  replace("compile_wait", function() end)
  replace("compile_end_idle", function() log.ended = true end)
  replace("clock", function() return now end)
  replace("adds", function() return false end)
  replace("verify_begin", function(_, o)
    local function text()
      return {done = function() return not log.unprepared end, drop = function() log.under_way = log.under_way - 1 end}
    end
    log.begun, log.under_way = (log.begun or "") .. o.tiles .. " ", (log.under_way or 0) + 2
    return text(), text()
  end)
  replace("compile_begin", function(plan)
    local k = kernels[plan.name]
    k.registers, k.spills, k.problems, k.name, k.begun = 0, 0, k.problems or {}, plan.name, (k.begun or 0) + 1
    return {done = function() return not k.slow end, kernel = function() if k.unbuilt then error(k.unbuilt, 0) end return k end, drop = function() k.dropped = true end}
  end)
  replace("meanwhile", function(f, g, ...)
    log.meanwhile = f
    return g(...)
  end)
  replace("race", function(list, _, o)
    local racers = {}
    for i, k in ipairs(list) do racers[i] = k.name end
    log.races[#log.races + 1], log.options = table.concat(racers, " "), o
    log.samples[#log.samples + 1] = ("%g"):format(o.sample * 1e3)
    if log.meanwhile then log.meanwhile() end
    if log.after then log.after() end
    for _, k in ipairs(list) do
      if k.breaks or k.breaks_from and #log.races >= k.breaks_from then error(k.breaks or "the race is lost", 0) end
    end
    local rounds = {min = {}, max = {}, cache = "cold L2"}
    for r = 1, 2 do
      rounds[r] = {}
      for i, k in ipairs(list) do
        local ms = k.raced and k.again or k.ms
        rounds[r][i], rounds.min[i], rounds.max[i] = ms, ms, ms
      end
    end
    for _, k in ipairs(list) do k.raced = true end
    return rounds
  end)
  replace("run", function(k) if k.fault then error(k.fault, 0) end end)
  replace("verify", function(k, other, o)
    log.limit = o.limit
    log[#log + 1] = other and k.name .. " with " .. other.name or k.name .. (o.tiles > 0 and " by a sample" or " completely")
    if other then
      if k.together then error(k.together, 0) end
      return {C = {apart = k.apart or 0, unwritten = 0}}, false
    end
    if type(k.verify) == "string" then error(k.verify, 0) end
    if k.verify then k.verify(o.tiles) end
    return {C = {relative = 1e-3, wrong = k.wrong or o.tiles == 0 and k.late or 0, chunk = k.chunk or 1e-3}}, o.tiles == 0
  end)
  return require "millrace.serve"({}, nil, {limit = 3, seed = 7, ahead = ahead}), log, function(seconds) now = now + seconds end
end

local function item(id, name) return {id = id, script = name, plan = {name = name}} end

-- The rows of items that are begun together, by name.
local function rows_of(server, names, incumbent)
  local items, handles, rows = {}, {}, {}
  for i, name in ipairs(names) do
    items[i] = item(i, name)
    handles[i] = server:begin(items[i])
  end
  for i, h in ipairs(handles) do rows[names[i]] = h:poll(incumbent) end
  return rows, items
end

---- what compares ---------------------------------------------------------------------------------------------------

do
  local server, log = serve{a = {ms = 1}, b = {ms = 2}}
  server:prepare()
  is(log.begun, "128 ", "what compares a sample is compiled before there is a kernel")
  rows_of(server, {"a", "b"})
  is(log.begun, "128 0 ", "  and what compares all outputs behind the first kernel, each once")
  server:end_idle()
  ok(log.under_way == 0 and log.ended, "  and nothing is under way at the end")
end
is(serve({}, 1).capacity .. " " .. serve({}, 5).capacity, "2 5", "a server has as many items as compilers, or two")

-- Programs with additions have a reference for each shape of tiles.
do
  local within, references = package.loaded["millrace.within"], {}
  package.loaded["millrace.within"], package.loaded["millrace.serve"] = function(_, _, want) return {ok = want == "right", relative = 0.5} end, nil
  local kernels = {a = {ms = 4, tile = {m = 64}}, b = {ms = 3, tile = {m = 64}}, c = {ms = 2, tile = {m = 32}}, d = {ms = 1, tile = {m = 32, n = 8}}}
  for _, k in pairs(kernels) do k.plan = {graph = {tile = k.tile}} end
  local server = serve(kernels)
  replace("adds", function() return true end)
  replace("reference_allowing", function(bound, inputs, o)
    assert(bound and not inputs and o.seed == 7)
    references[#references + 1] = ("m=%s n=%s"):format(o.tile.m, o.tile.n)
    return o.tile.n and "wrong" or "right"
  end)
  local rows = {}
  for i, name in ipairs{"a", "b", "c", "d"} do
    rows[i] = server:measure({item(i, name)})[i]
  end
  package.loaded["millrace.within"], package.loaded["millrace.serve"] = within, nil
  is(table.concat(references, ", "), "m=64 n=nil, m=32 n=nil, m=32 n=8", "a program with additions has one reference for each shape of tiles")
  is(rows[1].status .. " " .. rows[2].status .. " " .. rows[3].status .. " " .. rows[4].status, "ok ok ok wrong", "  with which each is compared")
  is(rows[4].why, "its result is off by 0.5", "  and says by how much it is off")
end

---- a comparison that fails ------------------------------------------------------------------------------------------

local server, log = serve{fast = {ms = 1, verify = "out of memory"}, slow = {ms = 2}}
local rows = rows_of(server, {"fast", "slow"})
is(rows.fast.status, "failed", "a kernel whose outputs cannot be compared fails its own trial")
is(rows.fast.why, "its outputs cannot be compared: out of memory", "  and its row says why")
is(rows.fast.ms, nil, "  and has no time")
is(rows.slow.status, "ok", "the next one is measured")
is(rows.slow.relative, 1e-3, "  and compared")
is(table.concat(log, ", "), "fast by a sample, slow by a sample", "  once each")

server = serve{fast = {ms = 1, verify = "serve.lua:7: out of memory"}}
is(rows_of(server, {"fast"}).fast.why, "its outputs cannot be compared: out of memory", "  without the line of this program")

server = serve{fast = {ms = 1, verify = "lost", fault = "it touched memory"}, slow = {ms = 2}}
is(rows_of(server, {"fast", "slow"}).fast.why, "it touched memory", "if it faults alone, that is the reason")

local all = {}
for i = 1, 4 do all["k" .. i] = {ms = i, verify = "the reference does not compile"} end
server = serve(all)
local good, why = pcall(rows_of, server, {"k1", "k2", "k3", "k4"})
ok(not good, "where no kernel can be compared, though all run, it is an error")
like(tostring(why), "the reference does not compile", "  which says why")

all.k1.fault = "it touched memory"
server = serve(all)
ok(not pcall(rows_of, server, {"k1", "k2", "k3", "k4"}), "  also if another one does not run")

all.k3.verify = nil
server = serve(all)
rows = rows_of(server, {"k1", "k2", "k3", "k4"})
is(rows.k3.status .. rows.k4.status, "okok", "two that cannot be compared are not enough for that")

-- Two kernels that do not fit into the memory together.
server, log = serve{first = {ms = 2}, second = {ms = 1, together = "out of memory"}}
rows = rows_of(server, {"first"})
is(server:measure({item(2, "second")}, item(1, "first"))[2].status, "ok", "what cannot be compared with another kernel")
is(log[#log], "second completely", "  is compared with the reference")
is(log.limit, 180, "  which may take 60 times as long as a kernel")

---- the end ------------------------------------------------------------------------------------------------------------

local function finals(s, items)
  return s:begin{id = 0, finalists = items}:poll()
end
local function only_by_sample(tiles) if tiles == 0 then error("too long", 0) end end

server = serve{a = {ms = 1, verify = only_by_sample}, b = {ms = 1.01, apart = 1, verify = only_by_sample}}
local items
rows, items = rows_of(server, {"a", "b"})
local final = finals(server, items)
is(final.status, "ok", "at the end, a kernel whose outputs cannot be compared completely")
ok(final.results[1] and not next(final.wrong) and not next(final.failed), "  is the answer all the same, as a sample was right")
is(final.notes[1], "its outputs were compared by a sample alone: too long", "  with a note")

server = serve{a = {ms = 1}, b = {ms = 1.01, apart = 1, verify = "too long"}}
rows, items = rows_of(server, {"a", "b"})
server.kernels[2].ms = 0.5
final = finals(server, items)
is(final.failed[2], "its outputs cannot be compared: too long", "one that was never compared is not the answer")
is(tostring(final.right) .. tostring(next(final.results)), "nilnil", "  nor the next one, which was raced with it for four rounds alone")
is(finals(server, {items[1]}).right, 1, "  but after a race without it")

---- what two kernels may differ by ---------------------------------------------------------------------------------

-- "rough" has errors of 0.01, "exact" of 1e-6; "off" is 0.001 away from both. It was within 8 times the error of the rough one.
server, log = serve{rough = {ms = 4, chunk = 0.01}, exact = {ms = 3, chunk = 1e-6, apart = 1}, off = {ms = 2, apart = 1e-3, wrong = 5}}
rows, items = rows_of(server, {"rough"})
local exact, off = item(2, "exact"), item(3, "off")
rows = server:measure({exact}, items[1])
is(rows[2].status, "ok", "a kernel that does not agree with the right one is right by all of the reference")
rows = server:measure({off}, exact)
is(log[#log], "off completely", "the next one may differ from it by its own error, not by that of another one")
is(rows[3].status .. tostring(server.kernels[3]), "wrongnil", "  and so a wrong one is found, and nothing is compared with that")
is(log[#log - 1], "off with exact", "  which was compared with it")

-- Errors of an eightieth of the norm and more tell nothing of an element that is missing.
server, log = serve{a = {ms = 2, chunk = 0.02}, b = {ms = 1, apart = 0.11}}
rows, items = rows_of(server, {"a"})
server:measure({item(2, "b")}, items[1])
is(table.concat(log, ", "), "a by a sample, b with a, b completely", "a kernel with large errors vouches for no other one")

-- What agrees with a right kernel is not compared with the reference, also not at the end.
server, log = serve{a = {ms = 2}, b = {ms = 1}, wrong = {ms = 0.5, apart = 1, wrong = 9}}
rows, items = rows_of(server, {"a"})
items[2], items[3] = item(2, "b"), item(3, "wrong")
server:measure({items[2]}, items[1])
is(server:measure({items[3]}, items[2])[3].status, "wrong", "one that does not agree is wrong by all of the reference")
finals(server, {items[2], items[1]})
finals(server, {items[1]})
is(table.concat(log, ", "), "a by a sample, b with a, wrong with a, wrong completely", "  and no other one needs that")

-- What agreed with a kernel is not right for good if another right one does not agree with that.
server, log = serve{a = {ms = 4}, b = {ms = 3}, c = {ms = 2, apart = 1}}
rows, items = rows_of(server, {"a"})
items[2], items[3] = item(2, "b"), item(3, "c")
server:measure({items[2]}, items[1])
server:measure({items[3]}, items[2])
finals(server, {items[2]})
is(table.concat(log, ", "), "a by a sample, b with a, c with a, c completely, b with c", "what agreed with one that is doubtful is compared again")

-- Nor if that one faults in the end.
server, log = serve{a = {ms = 1}, b = {ms = 1.01}}
rows, items = rows_of(server, {"a"})
items[2] = item(2, "b")
server:try_verdict(items[2])
server.kernels[1].verify, server.kernels[1].fault, server.kernels[1].together = "lost", "it touched memory", "lost"
server.verdicts[1].complete = nil
final = finals(server, items)
is(final.failed[1] .. "; " .. log[#log], "it touched memory; b completely", "  as is what agreed with one that faults")

---- races ----------------------------------------------------------------------------------------------------------

-- Who is raced again.
for _, case in ipairs{
  {"without an incumbent none", {a = 1.02, b = 0.5, c = 1.01}, "a b c"},
  {"with one, those that are faster by 1 %", {a = 1.5, b = 0.98, c = 1.2}, "best a b c; best b", true},
  {"  however many", {a = 0.98, b = 0.9, c = 0.94}, "best a b c; best a b c", true},
  {"  or none", {a = 1.5, b = 0.995, c = 1.2}, "best a b c", true}} do
  local kernels = {best = {ms = 1}}
  for name, ms in pairs(case[2]) do kernels[name] = {ms = ms} end
  server, log = serve(kernels)
  if case[4] then rows_of(server, {"best"}) end
  log.races = {}
  items = {item(2, "a"), item(3, "b"), item(4, "c")}
  rows = server:measure(items, case[4] and item(1, "best") or nil)
  is(table.concat(log.races, "; "), case[3], "raced again: " .. case[1])
  is(tostring(rows[2].against) .. " " .. rows[3].against, case[4] and "1 1" or "nil 2", "  and compared with what is in front")
end

-- The second race counts.
server, log = serve{best = {ms = 1}, a = {ms = 0.9, again = 1.01}, b = {ms = 0.92, again = 0.97}, c = {ms = 1.1}}
rows_of(server, {"best"})
log.samples = {}
rows = server:measure({item(2, "a"), item(3, "b"), item(4, "c")}, item(1, "best"))
is(("%g %g %g"):format(rows[2].ratio, rows[3].ratio, rows[4].ratio), "1.01 0.97 1.1", "what was fast by luck has the time of the second race")
is(("%g %g"):format(rows[2].ms, rows[2].low), "1.01 1.01", "  and its bounds")
is(table.concat(log.samples, " "), "6 6", "  which has the same samples")

-- In the first race the incumbent seems to be a tenth slower than it is, so that all others seem to be faster.
do
  local kernels, names, list = {best = {ms = 1}}, {}, {}
  for i = 1, 8 do
    names[i] = "k" .. i
    kernels[names[i]] = {ms = 1.01 + i * 1e-3}
  end
  server, log = serve(kernels)
  rows_of(server, {"best"})
  kernels.best.ms, kernels.best.again, kernels.best.raced = 1.1, 1, nil
  for i, name in ipairs(names) do
    list[i] = item(i + 1, name)
    server:begin(list[i])
  end
  rows = server:measure(list, item(1, "best"))
  local least, off = math.huge, 0
  for i, x in ipairs(list) do
    least = math.min(least, rows[x.id].ratio)
    off = math.max(off, math.abs(rows[x.id].ratio / kernels[names[i]].ms - 1))
  end
  ok(least >= 1.01, ("items do not win by an error of the incumbent's samples: %.3f"):format(least))
  ok(off < 1e-3, ("  and have the ratios of the second race: %.2g off"):format(off))
end

-- A race that fails, by one of its kernels or for another reason.
server = serve{a = {ms = 1, breaks = "it hangs", fault = "it faults"}, b = {ms = 2}, c = {ms = 3, breaks = "the race is lost"}}
rows = server:measure{item(1, "a"), item(2, "b"), item(3, "c")}
is(rows[1].status .. " " .. rows[2].status .. " " .. rows[3].status, "failed ok failed", "where one makes a race fail, each is raced by itself")
is(rows[1].why .. ", " .. rows[3].why, "it faults, the race is lost", "  and says why")

-- The device's time: what is done meanwhile counts for half if it ends the race, as the device was idle for some of it.
for _, case in ipairs{{0, 2}, {1, 5}} do
  local pass
  server, log, pass = serve{a = {ms = 1}}
  pass(100)
  server.meanwhile = function() pass(4) end
  log.after = function() pass(case[1]) end
  is(rows_of(server, {"a"}).a.device_seconds, case[2], ("of a race with 4 s of other work, %d s before its end"):format(case[1]))
  server.meanwhile = nil
  log.after = function() pass(3) end
  is(finals(server, {item(1, "a")}).device_seconds, 3, "  a last race has its time")
end
do
  local pass
  server, log, pass = serve{a = {ms = 1}, b = {ms = 2}}
  log.after = function() pass(3) end
  is(server:measure({item(1, "a"), item(2, "b")})[2].device_seconds, 1.5, "those that are raced together share the time")
end

server, log = serve{a = {ms = 1, again = 2}}
rows, items = rows_of(server, {"a"})
local races = #log.races
is(finals(server, items).results[1].ms, 2, "a finalist alone gets the time of a last race, too")
is(#log.races - races, 1, "  of one race")
is(log.options.seed .. " " .. log.options.limit, "7 3", "  by the options of the search")

-- The fastest two are wrong.
server, log = serve{a = {ms = 0.98, wrong = 1, apart = 1}, b = {ms = 0.985}, c = {ms = 0.981, wrong = 1, apart = 1}, d = {ms = 1.003, wrong = 1, apart = 1},
  e = {ms = 1.02}}
rows, items = rows_of(server, {"e", "a", "b", "c", "d"})
log.races = {}
final = finals(server, items)
is(table.concat(log.races, "; "), "e a b c d; a c b; a c b", "finalists are raced in heats")
ok(final.wrong[2] and final.wrong[4] and final.results[3] and not final.wrong[3], "all that seem to be faster than the answer are verified")
ok(final.results[1] and final.results[5] and not final.wrong[5], "  and no others")

-- All of the last heat are.
server, log = serve{a = {ms = 0.9, wrong = 1, apart = 1}, b = {ms = 1.001}, c = {ms = 1}}
rows, items = rows_of(server, {"b", "a", "c"})
log.races = {}
final = finals(server, items)
is(table.concat(log.races, "; ") .. "; " .. tostring(final.right), "b a c; nil", "if all of the last heat are wrong none is right")
is(("%s %s"):format(final.wrong[2], next(final.results)), "its result is off by 0.001 nil", "  as the others had few rounds")

-- The policy, with the server: those others race again. The one that is left behind seems to be faster than the right one by what the first heat
-- says, and is not the answer.
do
  local measure = require "millrace.measure"
  local function search(kernels, names)
    server, log = serve(kernels)
    local list = {}
    for i, name in ipairs(names) do list[i] = {plan = {name = name, script = function() return name end}, script = name, predicted = 1e-3 + i * 1e-9} end
    return measure("bound", nil, list, {server = server, uncertainty = 0.5, gain = 0, risk = -1, alarm = function() end})
  end
  local r = search({w = {ms = 0.9, apart = 1, late = 1}, a = {ms = 1}, b = {ms = 1.001}}, {"w", "a", "b"})
  is(r.best.script .. " " .. ("%g"):format(r.best.final.ratio), "a 1", "after a wrong one the right ones race again")
  r = search({a = {ms = 1}, b = {ms = 1.001, breaks_from = 3, fault = "it faults"}}, {"a", "b"})
  is(r.best.script .. " " .. tostring(r.best.final ~= nil), "a true", "one that faults in the last race is left out")
end

-- Of equal ones the policy takes the one that is verified.
server, log = serve{a = {ms = 1}, b = {ms = 1}}
rows, items = rows_of(server, {"a", "b"})
final = finals(server, {items[2], items[1]})
is(log[#log] .. final.right, "b with a2", "of equal ones the first is verified")

-- One breaks the race, and one cannot be compiled, which need not be its fault.
server, log = serve{a = {ms = 1}, b = {ms = 0.9, breaks = "it hangs", fault = "it faults"}, c = {ms = 0.95, unbuilt = "no memory"}}
final = finals(server, {item(2, "b"), item(3, "c"), item(1, "a")})
is(("%s, %s, %d"):format(final.failed[2], final.failed[3], final.right), "it faults, nil, 1", "what cannot take part in the last race is left out")
ok(server.kernels[1] and server.kernels[2], "  the others were compiled all the same")
server = serve{a = {ms = 1, breaks = "it hangs", fault = "it faults"}}
final = finals(server, {item(1, "a")})
is(final.failed[1] .. " " .. tostring(next(final.results)), "it faults nil", "  also where nothing is left")

-- A later heat fails.
server, log = serve{a = {ms = 1}, b = {ms = 0.999, breaks_from = 2, fault = "it faults"}, c = {ms = 1.005}}
items = {item(1, "a"), item(2, "b"), item(3, "c")}
final = finals(server, items)
is(("%s %s %d %g"):format(final.failed[2], final.results[2], final.right, final.results[3].ratio > 1 and 1 or 0), "it faults nil 1 1",
  "one that faults in a later heat is left out, and what is known of the others counts")
server, log = serve{a = {ms = 1}, b = {ms = 0.999, breaks_from = 2}, c = {ms = 1.005}}
final = finals(server, items)
is(final.right .. " " .. tostring(next(final.failed)), "2 nil", "  or of all if none faults")

-- There is memory for two of four.
server, log = serve{a = {ms = 1}, b = {ms = 1.01}, c = {ms = 0.9, breaks = "no memory"}, d = {ms = 0.9, breaks = "no memory"}}
final = finals(server, {item(1, "a"), item(2, "b"), item(3, "c"), item(4, "d")})
is(log.races[1] .. "; " .. log.races[2], "a b c d; a b", "if a race fails though none faults, half as many are raced")
ok(final.results[1].ratio == 1 and final.results[2] and not final.results[3] and not final.failed[3], "  and the others are neither right nor wrong")
server = serve{a = {ms = 1, breaks = "no memory"}}
is(finals(server, {item(1, "a")}).why, "no memory", "  or the last race fails")

server = serve{a = {ms = 1}, b = {ms = 1.01}, c = {ms = 1.001}}
local kernels_begun = {item(1, "a"), item(2, "b"), item(3, "c")}
replace("compile_begin", (function(begin)
  local under_way, most = 0, 0
  return function(plan)
    local x = begin(plan)
    under_way = under_way + 1
    most = math.max(most, under_way)
    server.most = most
    return {done = x.done, drop = x.drop, kernel = function() under_way = under_way - 1 return x.kernel() end}
  end
end)(core.compile_begin))
final = finals(server, kernels_begun)
is(server.most .. final.status, "3ok", "finalists of other ranks are compiled at the same time")

---- a list that changes while it is walked -------------------------------------------------------------------------

local pass
server, log, pass = serve{a = {ms = 1}, b = {ms = 1, slow = true}, c = {ms = 1}, d = {ms = 1}}
local handles = {}
for i, name in ipairs{"a", "b", "c", "d"} do handles[i] = server:begin(item(i, name)) end
pass(60)
local raced = 0
local race = core.race
core.race = function(list, ...)
  raced = math.max(raced, #list)
  return race(list, ...)
end
is(handles[1]:poll().status, "ok", "of four, one takes too long to compile")
is(raced, 3, "  and the others are raced together")
is(handles[2]:poll().why, "its compiler takes more than 30 s", "  and that one is skipped")

---- kernels ---------------------------------------------------------------------------------------------------------

-- A kernel that takes long to compile: 30 s for each that a compiler has to do. One that is measured in any case may take longer.
for _, case in ipairs{{29, 1}, {31, 1, "skipped"}, {59, 4}, {61, 4, "skipped"}, {1000, 1, nil, true}} do
  server, log, pass = serve({a = {ms = 1, slow = true}}, 2)
  local first
  for i = 1, case[2] do
    local x = item(i, "a")
    x.anyway = case[4]
    first = server:begin(x)
  end
  pass(case[1])
  local row = first:poll()
  is(row and row.status, case[3], ("after %d s, one of %d"):format(case[1], case[2]))
end

local spilled = {ms = 1, problems = {{message = "it spills"}}}
server = serve{a = spilled}
rows = rows_of(server, {"a"})
is(rows.a.status .. " " .. rows.a.why .. " " .. rows.a.problems, "skipped it spills 1", "a kernel with problems is skipped")
is(#server.handles, 0, "  and is done")
local x = item(2, "a")
x.anyway = true
is(server:begin(x):poll().status, "ok", "  unless it is measured in any case")
server:begin(item(3, "a")):drop()
ok(spilled.dropped and #server.handles == 0, "what is dropped is not compiled")

server:begin{id = 0, finalists = {}}:drop()
is(#server.handles, 0, "  also a last race")

-- A kernel that was compiled ahead.
local jobs, kernels = {}, {a = {ms = 1}}
server, log = serve(kernels, 8, jobs)
is(server:measure_early(item(1, "a")), nil, "what is not compiled ahead is not measured ahead")
jobs.a = core.compile_begin{name = "a"}
log.unprepared = true
server:prepare()
is(server:measure_early(item(1, "a")), nil, "  nor what cannot be compared yet")
log.unprepared, kernels.a.slow = nil, true
is(server:measure_early(item(1, "a")), nil, "  nor what is still compiled")
kernels.a.slow = nil
is(server:measure_early(item(1, "a")).status, "ok", "  else it is")
is(kernels.a.begun .. " " .. #server.handles, "1 0", "  and is not compiled again")
server = serve(kernels, 8, {a = core.compile_begin{name = "a"}})
is(server:measure_early(item(1, "a")), nil, "where nothing is compiled that compares its outputs, nothing is measured ahead")

for name, f in pairs(real) do core[name] = f end
tap.done_testing()
