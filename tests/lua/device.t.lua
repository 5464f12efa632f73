-- Devices: the files of hw/, what an object tells, and every refusal of a file.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses

is(table.concat(mr.devices(), " "), "a100 h100 h200 host mi300x", "the devices, in order")
for _, name in ipairs(mr.devices()) do
  local d = mr.device(name)
  is(d.name, name, name .. " loads")
  ok(#d.title > 0 and #d.arch > 0 and d.eus > 0 and d.clock_hz > 1e8, "  with its fields")
  local kinds = {}
  for _, seu in ipairs(d.seus) do kinds[seu.kind] = seu end
  ok(kinds.copy and kinds.matrix and kinds.vector, "  with an sEU of every kind")
  like(tostring(d), "^" .. name .. ": ", "  and prints")
end

local h200 = mr.device "h200"
is(h200, mr.device "h200", "one object for each name")
is(h200, mr.device(), "h200 unless named")
is(h200.eus, 132, "eus")
is(h200.arch, "sm_90a", "arch")
local names = {}
for i, seu in ipairs(h200.seus) do names[i] = seu.name .. (seu.async and "*" or "") end
is(table.concat(names, " "), "tma* tensor* cuda mma_sync", "sEUs in the order of the file")
is(getmetatable(h200), false, "the metatable is out of reach")

-- A name that is none ---------------------------------------------------------------------

local function bad(expression, message)
  refuses('local mr = require "millrace"\nreturn ' .. expression, "user.lua:2: " .. message)
end

bad('mr.device "h20"',
  "device: unknown device 'h20'; did you mean 'h200'? (known: a100, h100, h200, host, mi300x)")
bad('mr.device "b9"', "device: unknown device 'b9' (known: a100, h100, h200, host, mi300x)")
bad('mr.device(200)', "device: name expected, got 200")

-- Other numbers ---------------------------------------------------------------------------

local other = mr.device("h200", {["power.limit"]=500, ["seu.cuda.ops.sfu"]=32})
like(tostring(other), "limit%s+500 W", "a number that was changed")
ok(not tostring(h200):find("limit%s+500 W"), "  on a device of its own")
local other_plan = mr.plan(mr.examples.gemm{m=64, n=64, k=64}:graph{tile={m=64, n=64}}, other)
like(other_plan:script(), 'mr.device%("h200", {%["power.limit"%]=500, %["seu.cuda.ops.sfu"%]=32}%)',
  "a script has the changes")
local renamed = mr.device("h200", {["sync.turn_latency"]=7, ["doubt.order"]=0.5, ["seu.cuda.beside"]=0.25})    -- deprecated
is(renamed:number "sync.issue_order_latency", 7.0, "a deprecated name of a field is that field")
is(renamed:number "uncertainty.order", renamed:number "doubt.order", "  to read, too")     -- deprecated
is(renamed:number "seu.cuda.contention", 0.25, "  of a unit")
bad('mr.device("h200", {["power.limt"]=500})',
  "device 'h200' has no field 'power.limt'; did you mean 'power.limit'?")
bad('mr.device("h200", {["power.limit"]=-1})', "'power.limit' is -1 W; it must be from 0 to 1e+06")
bad('mr.device("h200", {["power.limit"]={}})', "field 'power.limit' must be a number, a text, true, false or a table")
bad('mr.device("h200", {5})', "field '' must have names for keys")
bad('mr.device("h200", 5)', "device: table of numbers by path expected, got 5")

-- Files -----------------------------------------------------------------------------------

-- A copy of hw/h200.lua with one string replaced, read as a device.
local home = os.getenv "MILLRACE_HOME" or "."
local original = assert(io.open(home .. "/hw/h200.lua")):read "a"
local base = os.tmpname()
local path = base .. ".lua"
local device = ": device '" .. base:match "[^/]*$" .. "' "

local function read(text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return pcall(mr.device, path)
end

local function changed(from, to)
  local at, last = original:find(from, 1, true)
  assert(at, "hw/h200.lua has no " .. from)
  return original:sub(1, at - 1) .. to .. original:sub(last + 1)
end

local function file_bad(text, message, what)
  local good, got = read(text)
  ok(not good and got:sub(1, #path) == path, what .. ": the message names the file", got)
  is(tostring(got):sub(#path + 1), message, "  and the field")
end

local good, d = read(original)
ok(good, "a file elsewhere is read by its path", d)
is(good and d.eus, 132, "  as hw/h200.lua is")
good, d = read(changed("eus = 132", "eus = 66"))
is(good and d.eus, 66, "and again each time")

file_bad(changed("eus = 132,", "eus = 132, clok_ghz = 1,"),
  device .. "has no field 'clok_ghz'; did you mean 'clock_ghz'?",
  "an unknown field")
file_bad(changed("warp = 32,", "warpp = 32,"),
  device .. "has no field 'limits.warpp'; did you mean 'limits.warp'?",
  "an unknown field inside")
file_bad(changed("eus = 132,", ""),
  device .. "lacks 'eus' (execution units: SMs, CUs, cores)",
  "a missing field")
file_bad(changed("eus = 132,", "eus = 'many',"),
  ": 'eus' takes a number, not the text 'many'", "a text for a number")
file_bad(changed("eus = 132,", "eus = -1,"),
  ": 'eus' is -1; it must be from 1 to 1e+06", "an impossible number")
file_bad(changed("eus = 132,", "eus = function() end,"),
  ": field 'eus' must be a number, a text, true, false or a table", "a function")
file_bad(changed("limits = {", "limits = { [7] = 1,"),
  ": field 'limits' must have names for keys", "a number as a key")
file_bad(changed("limits = {", "limits = { 1,"),
  ": field 'limits' must be a list of tables", "a list of numbers")
file_bad(changed('name = "tma",', ""), ": field 'seu' has an entry without a name",
  "an sEU without a name")
file_bad(changed('kind = "copy"', 'kind = "cpy"'),
  ": 'seu.tma.kind' is 'cpy'; it must be copy, matrix or vector", "an unknown kind")
file_bad("return 1", ": the file must return a table, got 1", "a file without a table")
file_bad("return {", ":1: unexpected symbol near <eof>", "a file that is no Lua")
file_bad("return { eus = math.huge }", ":1: attempt to index a nil value (global 'math')",
  "a file sees no globals")
file_bad("local t = {}; t.t = t; return t",
  ": field 't.t.t.t.t.t.t.t' is nested too deep", "a table in itself")
file_bad(string.dump(function() return {} end),
  ": attempt to load a binary chunk (mode is 't')", "a compiled chunk")

os.remove(path)
os.remove(base)
like(select(2, pcall(function() return mr.device(path) end)),
  "^tests/lua/device%.t%.lua:%d+: device: cannot open ", "a file that is not there")

tap.done_testing()
