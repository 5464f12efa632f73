-- mr.tune: a search for each of a list, in one process, by the model alone.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is = tap.ok, tap.is
local core, json = require "millrace.core", require "millrace.json"

local gemm, norm = mr.examples.gemm, mr.examples.rmsnorm
local o = {device = "h200", trials = 40, measure = false}
local tuned = mr.tune({{gemm, m = 512, n = 512, k = 256}, norm{m = 64, n = 512}, {gemm, m = 256, n = 128, k = 128, activation = "silu"}}, o)
is(#tuned, 3, "a row for each")
is(tuned.device.name, "h200", "on the device")
for i, bound in ipairs{gemm{m = 512, n = 512, k = 256}, norm{m = 64, n = 512}, gemm{m = 256, n = 128, k = 128, activation = "silu"}} do
  local r = mr.search(bound, "h200", {trials = 40, measure = false})
  is(tuned[i].plan:script(), r.plan:script(), ("row %d: the plan of mr.search"):format(i))
  ok(tuned[i].seconds == r.seconds and tuned[i].trials == r.trials and tuned[i].ended == r.ended, "  and its figures")
end
ok(tuned[1].plan:check(), "a legal one")
local before = tuned[1].plan:script()
tuned[1].plan:grid{group = 3}
is(tuned[1].plan:script(), before, "each time a copy")
ok(tuned[1].ms == nil and tuned[1].measured == 0 and tuned[1].tflops > 1, "nothing is measured: figures are predicted")
local text = tostring(tuned)
ok(text:find "^3 rows on h200" and text:find "gemm +m=512 n=512 k=256" and text:find "rmsnorm", "shown as a table")
local data = json.decode(tuned:json())
is(data.format, "millrace tuned 1", "as JSON")
ok(data.rows[3].sizes == "m=256 n=128 k=128" and data.rows[3].options == "activation=silu" and data.rows[1].options == "",
  "  with options, which rows may differ in")
ok(text:find "gemm +m=256 n=128 k=128 activation=silu", "  as the table")
is(tostring(tuned[3]):gsub("[%d.]+", "0"), "gemm m=0 n=0 k=0 activation=silu: predicted 0 ms; 0 TFLOP/s, 0 GB/s; 0 measured; ended: trials",
  "a row is shown")
ok(#data.rows == 3 and data.rows[2].program == "rmsnorm" and data.rows[3].script == tuned[3].plan:script(), "  with all rows")

-- A row without a plan.
local long = mr.program("long", function(p)
  local m, n = p:axes("m", "n")
  p:batch(m)
  local x = p:load("load_x", p:input("X", {m, n}, "f64"))
  p:output("Y", {m, n}, "f64"):store("store_y", p:task("t", function() return x * (1 / mr.rowsum(x, n)) end))
end)
local mixed = mr.tune({{long, m = 16, n = 200000}, {norm, m = 64, n = 512}}, o)
ok(mixed[1].plan == nil and mixed[1].why:find "^no legal plan", "a row without a plan says why")
ok(mixed[2].plan ~= nil and tostring(mixed):find "no legal plan found for %d tile shapes\n",
  "  in a line of the table, and the others are there")
ok(tostring(mixed[1]):find "^long m=16 n=200000: no plan: no legal plan .*\n.*shared memory", "  and all of it where the row is shown")
is(tostring(mr.tune({{norm, m = 64, n = 512}}, o)):match "^[^\n]*", "1 row on h200, ms", "one row")

-- Ctrl-C ends the search of a row, and no other begins: also where the search has its result then, and does not tell.
local function press()
  io.popen("kill -INT $PPID"):close()
  while true do end
end
for _, heeds in ipairs{true, false} do
  local search, calls = mr.search, 0
  mr.search = function(...)
    calls = calls + 1
    if calls == 2 and heeds then core.heed(press) elseif calls == 2 then press() end
    return search(...)
  end
  local t = mr.tune({{norm, m = 8, n = 64}, {norm, m = 16, n = 64}, {norm, m = 24, n = 64}, {norm, m = 8, n = 64}}, o)
  mr.search = search
  ok(calls == 2 and t[1].plan ~= nil and t[3].why == "interrupted", "an interrupt ends all rows that are left")
  ok(heeds and t[2].plan ~= nil or not heeds and t[2].why == "interrupted", "  and the row of which it is")
  is(t[4].seconds, t[1].seconds, "equal rows are one")
end
ok(#mr.tune({{norm, m = 8, n = 64}, {norm, m = 16, n = 64}}, o) == 2, "an interrupt is of one call")

-- What is said of each row, and what follows from its time.
do
  local search, stderr, said = mr.search, io.stderr, {}
  mr.search = function(bound, ...)
    local r = search(bound, ...)
    if bound.axes.m == 16 then return nil, "no luck\nat all" end
    if bound.axes.m == 8 then r.measured = {ms = 2} end
    return r
  end
  io.stderr = {write = function(_, ...) said[#said + 1] = table.concat{...} end}
  local good, t = pcall(mr.tune, {{norm, m = 8, n = 64}, {norm, m = 16, n = 64}, {norm, m = 24, n = 64}}, o)
  mr.search, io.stderr = search, stderr
  ok(good, "three rows", t)
  is(table.concat(said), ("1 of 3: rmsnorm m=8 n=64 on h200: 2 ms\n2 of 3: rmsnorm m=16 n=64 on h200: no plan: no luck\n"
    .. "3 of 3: rmsnorm m=24 n=64 on h200: %.4g ms, predicted\n"):format(t[3].seconds * 1e3), "each is reported")
  for _, i in ipairs{1, 3} do
    local graph, seconds = t[i].plan.graph, i == 1 and 2e-3 or t[3].seconds
    tap.near(t[i].tflops, graph.flops / seconds * 1e-12, 1e-9, ("row %d: its rates are those of its time"):format(i))
    tap.near(t[i].gbps, graph.bytes / seconds * 1e-9, 1e-9, "  also of bytes")
  end
  is(t[1].ms, 2, "  which is there if it was measured")
end

-- Bad input.
for _, case in ipairs{
  {"no row", "tune: there is no row", {}},
  {"a number", "tune: row 2 must be a program with sizes, or {program, m=, ...}, not 7", {norm{m = 8, n = 64}, 7}},
  {"a size that is missing", "tune: row 1: .*size of axis 'n' is missing", {{norm, m = 8}}},
  {"a program without sizes", "tune: row 1 is a program without sizes", {norm}},
  {"a name", "tune: row 2 begins with 'gemm'; a row is {program, m=, ...}", {{norm, m = 8, n = 64}, {"gemm", m = 8, n = 8, k = 8}}},
  {"a row behind a nil", "tune: row 2 must be a program with sizes, or {program, m=, ...}, not nil",
    {norm{m = 8, n = 64}, nil, norm{m = 16, n = 64}}},
  {"an option in the list", "tune: the list of rows has 'device', which is no number of a row", {norm{m = 8, n = 64}, device = "h200"}},
  {"a sequence", "tune: row 1 is of .*sequence.*, not of a program", {{mr.examples.llama3_decode, b = 1}}},
} do
  local good, why = pcall(mr.tune, case[3], o)
  ok(not good and tostring(why):find(case[2]), case[1] .. ": " .. tostring(why):match "^[^\n]*")
end
local good, why = pcall(mr.tune, {{norm, m = 8, n = 64}}, {trails = 3})
ok(not good and tostring(why):find "tune: unknown option 'trails'; did you mean 'trials'", "an option: " .. tostring(why))
for text, bad in pairs{["seconds must be a number of at least 0, not 'x'"] = {seconds = "x"},
    ["trials must be a number of at least 0, not %-1"] = {trials = -1},
    ["seed must be an integer, not 1.5"] = {seed = 1.5}, ["compile must be true or false, not 1"] = {compile = 1}} do
  good, why = pcall(mr.tune, {{norm, m = 8, n = 64}}, bad)
  ok(not good and tostring(why):find("tune: " .. text), "a value of an option: " .. tostring(why))
end
good, why = pcall(mr.tune, {{norm, m = 8, n = 64}}, {device = "a100", measure = true})
ok(not good and tostring(why):find "tune: measure=true needs an attached device", "measure=true without a device")
tap.done_testing()
