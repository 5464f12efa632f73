-- Last steps split off, and values that use the storage of others: what plan:split_off and plan:alias do to the graph,
-- what they refuse, and that the kernels are the same.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local function names(list)
  local out = {}
  for _, x in ipairs(list) do out[#out + 1] = x.name end
  return table.concat(out, " ")
end

---- the graph ------------------------------------------------------------------

local attention = mr.examples.flash_attention{b = 1, h = 1, m = 128, n = 192, d = 64}
local function fresh() return mr.plan(attention:graph{tile = {m = 64, n = 64}}, mr.device "h200") end

local plan = fresh()
local before = names(plan.tasks)
plan:split_off("softmax_2", "convert")
tap.is(names(plan.tasks), "load_q load_k mma_qk softmax convert rescale load_v mma_pv normalise store_o",
  "the last step is an sTask behind the others")
local of = {}
for _, t in ipairs(plan.tasks) do of[t.name] = t end
tap.is(table.concat(of.convert.reads, " ") .. " -> " .. table.concat(of.convert.writes, " "), "softmax_3 -> softmax_2",
  "it makes the value, which keeps its name")
tap.is(of.convert.kind .. " " .. of.convert.loop, "compute n", "it is element-wise work in the same loop")
plan:undo()
tap.is(names(plan.tasks), before, "undo joins the two sTasks")
plan:redo()
plan:split("m", 2)
tap.like(names(plan.tasks), "convert%.0 convert%.1", "it is split like the others")
plan:alias{softmax_3 = "mma_qk"}
tap.like(plan:script(), 'plan:split_off%("softmax_2", "convert"%)\nplan:split%("m", 2%)\nplan:alias{softmax_3="mma_qk"}\n',
  "the script says so")
tap.is(load(plan:script())(attention):script(), plan:script(), "and makes the same plan")
local twice = fresh()
twice:split_off("softmax_2", "convert")
twice:split_off("normalise", "round")
tap.like(names(twice.tasks), "normalise round store_o", "a second one")

local rows = mr.examples.rmsnorm_gemm{m = 64, n = 64, k = 64}
local several = mr.plan(rows:graph{tile = {m = 64, n = 64, k = 32}}, mr.device "h200")
several:split_off("squares", "convert", 2)
of = {}
for _, t in ipairs(several.tasks) do of[t.name] = t end
tap.is(table.concat(of.convert.reads, " ") .. " -> " .. table.concat(of.convert.writes, " "), "x g -> squares",
  "two steps: the product and its conversion")
tap.is(table.concat(of.squares.reads, " "), "x square", "  which the sTask does not compute")
tap.like(several:script(), 'plan:split_off%("squares", "convert", 2%)\n', "  the script says how many")
tap.is(load(several:script())(rows):script(), several:script(), "  and makes the same plan")

---- what is refused ------------------------------------------------------------

local function refused(what, pattern, edit, shape)
  local p = fresh()
  if shape then shape(p) end
  local script = p:script()
  local good, message = pcall(edit, p)
  tap.ok(not good and message:find(pattern), what, tostring(message))
  tap.is(p:script(), script, "  and nothing has changed")
end
local function converts(p) p:split_off("softmax_2", "convert") end

refused("no such value", "there is no buffer 'sofmax_2'; did you mean 'softmax_2'", function(p) p:split_off("sofmax_2", "x") end)
refused("a carry", "'l' is a carry", function(p) p:split_off("l", "x") end)
refused("a product", "'mma_qk' has no last step", function(p) p:split_off("mma_qk", "x") end)
refused("what the sTask itself needs", "'softmax' goes on with 'softmax': it cannot be made later",
  function(p) p:split_off("softmax", "x") end)
refused("a name that is taken", "has a task 'rescale' already", function(p) p:split_off("softmax_2", "rescale") end)
refused("no name", "cannot name a task", function(p) p:split_off("softmax_2", "2nd") end)
refused("no sTask", "split_off: ", function(p) p:split_off "softmax_2" end)
refused("more steps than there are", "only the last 1 step to 'softmax_2' can be split off, not 8", function(p) p:split_off("softmax_2", "x", 8) end)
refused("too many steps", "steps must be an integer from 1 to 8, got 9", function(p) p:split_off("softmax_2", "x", 9) end)
refused("no step", "steps must be an integer from 1 to 8, got 0", function(p) p:split_off("softmax_2", "x", 0) end)
refused("steps of a load", "'k' is loaded: that has one last step", function(p) p:split_off("k", "x", 2) end)
refused("twice", "'softmax_2' is split off already", function(p) p:split_off("softmax_2", "again") end, converts)
refused("an alias of an unknown value", "there is no buffer 'softmax_9'", function(p) p:alias{softmax_9 = "mma_qk"} end)
refused("a carry as an alias", "'o' is a carry", function(p) p:alias{o = "mma_qk"} end)
refused("an alias by number", "values are named", function(p) p:alias{"mma_qk"} end)
refused("an alias of a smaller value in shared memory", "'softmax_3' cannot be an alias of 'k': it is larger",
  function(p) p:alias{softmax_3 = "k"} end, converts)
refused("an alias of a value of another loop", "it is larger, or of another loop", function(p) p:alias{softmax_2 = "q"} end)
refused("a loaded value as an alias", "'v' cannot be an alias of 'k': it is in shared memory, loaded ahead",
  function(p) p:alias{v = "k"} end)
refused("an alias of itself", "is the same", function(p) p:alias{softmax_3 = "softmax_3"} end, converts)
refused("an alias of a smaller value in registers", "they differ in shape, type or loop",
  function(p) p:alias{mma_qk = "softmax_2"} end)
refused("a second time", "is an alias already", function(p) p:alias{softmax_3 = "mma_qk"} end,
  function(p) converts(p) p:alias{softmax_3 = "mma_qk"} end)

-- Two results of one sTask; a value that is read after its alias has overwritten it.
local chain = mr.program("chain", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, Z = p:input("X", {m, n}), p:output("Y", {m, n}, "f32"), p:output("Z", {m, n}, "f32")
  local x = p:load("load_x", X)
  local a, b = p:task("first", function() return x:to "f32" * 2, x:to "f32" + 1 end)
  local c = p:task("second", function() return b * b end)
  local d = p:task("third", function() return a + c end)
  Y:store("store_y", c)
  Z:store("store_z", d)
end)
local function chained(aliases)
  local p = mr.plan(chain{m = 64, n = 64}:graph{tile = {m = 64, n = 32}}, mr.device "h200")
  return pcall(p.alias, p, aliases)
end
local _, message = chained{first = "first_2"}
tap.like(message, "'first' cannot be an alias of 'first_2': 'first_2' is made together with it", "two results of one sTask")
_, message = chained{second = "first_2"}
tap.like(message, "'second' cannot be an alias of 'first_2': 'third' reads 'first_2' when 'second' has written over it",
  "a value that is still to be read")
tap.ok(chained{second = "first"}, "one that is not")

---- what check() says of aliases ------------------------------------------------

local function ready(edit)
  local p = fresh()
  p:split_off("softmax_2", "convert")
  p:alias{softmax_3 = "mma_qk"}
  p:lane("p0", {warps = 1})
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  p:buffers{k = 3, v = 3}
  if edit then edit(p) end
  p:fill_waits()
  local good, problems = p:check()
  return good and "good" or problems[1].code .. ": " .. problems[1].message
end
tap.is(ready(), "good", "an alias on one lane is legal")
tap.like(ready(function(p) p:buffers{softmax_3 = 2} end), "^alias: .*'softmax_3' has 2 versions", "in versions")
tap.like(ready(function(p) p:remove "convert" p:append("convert", {lane = "c1"}) end), "^alias: .*'softmax_3' is in shared",
  "for another lane")
tap.like(ready(function(p)
  for _, name in ipairs{"softmax", "convert", "rescale", "mma_pv"} do
    p:remove(name)
    p:append(name, {lane = "c0", at = name == "softmax" and 0 or -1})
  end
end), "^versions: .*'convert'", "the next scores come before the conversion")

---- the same results -----------------------------------------------------------

local orders = {
  {"serial", {}, 1},
  {"the next scores first", {mma_qk = 1, softmax = 1, convert = 1, rescale = 1, mma_pv = 0}, 1},
  {"the same, on two lanes", {mma_qk = 1, softmax = 1, convert = 1, rescale = 1, mma_pv = 0}, 2},
}
local sequence = {"load_q", "load_k", "load_v", "mma_qk", "mma_pv", "softmax", "convert", "rescale", "normalise", "store_o"}

local function attend(bound, how, placed)
  local _, at, ways = table.unpack(how)
  local p = mr.plan(bound:graph{tile = {m = 64 * ways, n = 64}}, mr.device "h200")
  if placed ~= nil then p:split_off("softmax_2", "convert") end
  if ways > 1 then p:split("m", ways) end
  if placed then p:alias{softmax_3 = "mma_qk"} end
  p:lane("p0", {warps = 1})
  for _, name in ipairs(next(at) and sequence or {}) do
    if name ~= "convert" or placed ~= nil then
      local load = name:find "^load"
      for i = 0, load and 0 or ways - 1 do
        p:append(name .. ((load or ways == 1) and "" or "." .. i), {lane = load and "p0" or "c" .. i, at = at[name]})
      end
    end
  end
  for _, t in ipairs(next(at) and {} or p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  p:buffers{k = 2, v = 2}
  p:fill_waits()
  return p:compile{target = "host", without = {"partial_sums"}}
end

for _, x in ipairs{{"plain", {m = 128, n = 256}}, {"ragged", {m = 152, n = 200}}, {"causal", {m = 192, n = 192, causal = true}}} do
  local what, sizes = table.unpack(x)
  sizes.b, sizes.h, sizes.d = 1, 1, 32
  local bound = mr.examples.flash_attention(sizes)
  local inputs = bound:inputs{seed = 3}
  for _, how in ipairs(orders) do
    local want = attend(bound, how):run(inputs)
    for _, placed in ipairs{false, true} do
      local k = attend(bound, how, placed)
      local got = k:run(inputs, {race = true, seed = 2})
      tap.is(got.O:max_error(want.O), 0.0, ("%s, %s%s: the same result"):format(what, how[1], placed and ", with an alias" or ""))
      tap.ok(k:check{seed = 4}.ok, "  and right")
    end
  end
end

---- an alias of a ring -----------------------------------------------------------

-- The output is an alias of the queries' ring; each EU has several tiles.
local function through(sizes, at, edit)
  sizes.b, sizes.h = 1, 2
  local p = mr.plan(mr.examples.flash_attention(sizes):graph{tile = {m = 64, n = 64}}, mr.device "h200")
  p:alias{normalise = "q"}
  p:lane("p0", {warps = 1})
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or "c0", at = at and at[t.name]}) end
  p:buffers{k = 2, v = 2}
  p:grid{eus = 1}
  if edit then edit(p) end
  p:fill_waits()
  return p
end
for _, d in ipairs{32, 64} do
  local p = through{m = 168, n = 136, d = d, causal = d == 32}
  tap.like(p:script(), 'plan:alias{normalise="q"}', "the output is an alias of the queries")
  tap.like(tostring(p:kernel{}), "ring q: 1 of (%d+) bytes at 0\n.*ring normalise: 1 of %1 bytes at 0", "  and has its address")
  tap.like(p:script(), 'plan:wait%("load_q", {"store_o"', "  and the next ones wait until it is stored")
  local k = p:compile{target = "host"}
  for seed = 1, 3 do tap.ok(k:check{seed = seed}.ok, "  right") end
  p:unwait("load_q", "store_o")
  local good, problems = p:check()
  tap.ok(not good and problems[1].code == "missing_wait", "  not without that wait", tostring(problems))
end
tap.ok(through({m = 256, n = 128, d = 64}, nil, function(p) p:buffers{q = 2, normalise = 2} end):compile{target = "host"}:check().ok,
  "an alias of a ring with two versions")
local _, problems_found = through({m = 256, n = 128, d = 64}, nil, function(p) p:buffers{q = 2} end):check()
tap.like(problems_found[1].code .. ": " .. problems_found[1].message, "^alias: .*'normalise' has versions: 1, 'q': 2", "both must have the same number of versions")
_, problems_found = through({m = 128, n = 128, d = 64}, nil, function(p)
  p:remove "normalise" p:remove "store_o"
  p:append("normalise", {lane = "c0", at = 1})
  p:append("store_o", {lane = "c0", at = 1})
end):check()
tap.ok(problems_found[1] ~= nil, "the alias is not written before the queries are read", tostring(problems_found))

---- values of other sizes and kinds ---------------------------------------------

-- The value has a quarter of the size of the one it is an alias of: its slots begin at the same addresses.
local halves = mr.program("halves", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:mma("mma", p:load("load_a", A), p:load("load_b", B))
  C:store("store_c", p:task("halve", function() return (c * 0.5):to "bf16" end))
end)
local function halved(n, edit)
  local p = mr.plan(halves{m = 320, n = 64, k = 64}:graph{tile = {m = 64, n = n}}, mr.device "h200")
  edit(p)
  p:lane("p0", {warps = 1})
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  p:grid{eus = 1}
  return p
end
for versions = 1, 3 do
  local p = halved(16, function(p) p:alias{halve = "a"} end)
  p:buffers{a = versions, halve = versions}
  p:fill_waits()
  tap.ok(p:check(), ("a smaller value is an alias of a ring of %d"):format(versions))
  local k = p:compile{target = "host"}
  for seed = 1, 3 do tap.ok(k:check{seed = seed}.ok, "  right") end
end

local function refused(what, pattern, edit)
  local good, message = pcall(halved, 16, edit)
  tap.ok(not good, what)
  tap.like(tostring(message), pattern, "  and why")
end
refused("a product as an alias of its operand", "'mma' makes 'mma' of 'a', which lies there", function(p) p:alias{mma = "a"} end)
refused("a split value as an alias of one that is not split", "no buffer 'a.0': both values of an alias are split, or none is", function(p)
  p:split("m", 2) p:alias{halve = "a"}
end)
refused("a slice as an alias of a value that is not split", "'halve.0' cannot be an alias of 'a'", function(p)
  p:split("m", 2) p:alias{["halve.0"] = "a"} p:alias{["halve.1"] = "a"}
end)
tap.is(halved(16, function(p) p:split("m", 2) p:split_off("halve", "convert") end):script(),
  halved(16, function(p) p:split_off("halve", "convert") p:split("m", 2) end):script(), "a step is split off before or after a split")

local second = mr.program("second", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}, "tf32"), p:input("B", {k, n}, "bf16"), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    c:add(p:mma("mma", a, p:task("twice", function() return (b:to "f32" * 2):to "tf32" end)))
  end)
  C:store("store_c", p:task("finish", function() return c * 1 end))
end)
local p = mr.plan(second{m = 64, n = 8, k = 32}:graph{tile = {m = 64, k = 16}}, mr.device "h200")
p:split_off("twice", "convert")
tap.like(select(2, pcall(p.alias, p, {twice_2 = "twice"})), "'convert' makes 'twice' of 'twice_2', which lies there",
  "a value as an alias of its own argument")

local columns = mr.program("columns", function(p)
  local m, n = p:axes("m", "n")
  local X, W, Z = p:input("X", {m, n}, "f32"), p:input("W", {m, n}, "f32"), p:output("Z", {m, n}, "f32")
  local x, w = p:load("load_x", X), p:load("load_w", W)
  local a = p:task("first", function() return x * 2 + w end)
  local b = p:task("second", function() return w * w end)
  Z:store("store_z", p:task("third", function() return b + mr.rowsum(b, n) + mr.rowsum(a, n) end))
end)
local p = mr.plan(columns{m = 64, n = 64}:graph{tile = {m = 32, n = 64}}, mr.device "h200")
p:split("n", 2, {"first", "second"})
tap.like(select(2, pcall(p.alias, p, {second = "first"})), "the slices of 'second.0' lie together", "slices that one sTask reads together")

local steps = mr.program("steps", function(p)
  local m, n = p:axes("m", "n")
  local A, C = p:input("A", {m, n}, "f32"), p:output("C", {m, n}, "f32")
  local a = p:load("load_a", A)
  local x = p:task("first", function() return mr.exp2(a) * 2 + 1 end)
  local y = p:task("second", function() return mr.exp2(x) * 3 + 1 end)
  C:store("store_c", p:task("third", function() return y * 2 end))
end)
local p = mr.plan(steps{m = 64, n = 8}:graph{tile = {m = 64}}, mr.device "h200")
p:split_off("first", "last_first")
p:split_off("second", "last_second")
p:alias{first_2 = "second"}
for _, t in ipairs(p.tasks) do
  p:append(t.name, {lane = ({first = "c1", last_first = "c1", second = "c1"})[t.name] or "c0"})
end
p:fill_waits()
local good, problems = p:check()
tap.ok(not good and problems[1].code == "alias", "values in registers of different lanes", tostring(problems))
tap.like(problems[1].message, "they are in registers of different lanes", "  and why")

local by_part = mr.plan(mr.examples.flash_attention{b = 1, h = 1, m = 128, n = 192, d = 64}:graph{tile = {m = 128, n = 64}}, mr.device "h200")
by_part:split_off("softmax_2", "convert")
by_part:split("m", 2)
by_part:alias{["softmax_3.0"] = "mma_qk.0"}
tap.like(by_part:script(), 'plan:alias{%["softmax_3.0"%]="mma_qk.0"}', "an alias of one slice")
tap.is(assert(load(by_part:script()))():script(), by_part:script(), "  comes back from its script")

-- One lane loads what another reads, and stages an output there: its threads are not done with that
-- all at the same time.
for _, n in ipairs{64, 60} do
  for _, unit in ipairs{"tma", "cuda"} do
    local staged = mr.program("staged", function(p)
      local m, n = p:axes("m", "n")
      local A, C, D = p:input("A", {m, n}, "f32"), p:output("C", {m, n}, "bf16"), p:output("D", {m, n}, "bf16")
      local a = p:load("load_a", A)
      local x, y = p:task("scale", function() return a * 2, a * 3 end)
      C:store("store_c", p:task("first", function() return x:to "bf16" end))
      D:store("store_d", p:task("second", function() return y:to "bf16" end))
    end)
    local p = mr.plan(staged{m = 200, n = n}:graph{tile = {m = 40}}, mr.device "h200")
    p:alias{second = "a"}
    p:lane("c0", {warps = 4})
    for _, t in ipairs(p.tasks) do
      p:append(t.name, {lane = t.name == "scale" and "e0" or "c0", seu = t.kind == "load" and unit or t.kind == "store" and unit or nil})
    end
    p:grid{eus = 2}
    p:fill_waits()
    tap.ok(p:check(), ("a load on %s where the same lane has staged %d columns"):format(unit, n), tostring(select(2, p:check())))
    for seed = 1, 4 do tap.ok(p:compile{target = "host"}:check{seed = seed, race = seed % 2 == 0}.ok, "  right") end
  end
end

---- the shipped plans ----------------------------------------------------------

for _, x in ipairs{{"attention_d64", 64, 224}, {"attention_d128", 128, 352}, {"attention_d128_causal", 128, 256},
    {"attention_d256", 256, 160}} do
  local name, d, n = table.unpack(x)
  local p = mr.load_plan(name)
  tap.ok(p:check(), name .. " is legal for 8192 keys")
  for _, causal in ipairs{false, true} do
    local small = mr.load_plan(name, mr.examples.flash_attention{b = 1, h = 1, m = 192, n = n - 8, d = d, causal = causal})
    tap.ok(small:check(), ("%s%s, small"):format(name, causal and ", causal" or ""))
    tap.ok(small:compile{target = "host"}:check{seed = 1}.ok, "  right")
  end
end

tap.done_testing()
