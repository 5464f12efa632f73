-- The registers that kernels grant their lanes (setmaxnreg), read from the text of kernels for an h200.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is = tap.ok, tap.is

-- The registers of each lane by name, of the first kernel that has it.
local function grants(plan)
  local text, of = plan:compile{text = true}.source, {}
  for names, n in text:gmatch "/%* lanes? ([%w, ]+) %*/\n.-SET_REGISTERS%(%l+, (%d+)%)" do
    for name in names:gmatch "%w+" do of[name] = of[name] or tonumber(n) end
  end
  return of
end

-- One lane loads and the others compute, all in the program's order.
local function schedule(bound, tile, lanes, versions)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for name, options in pairs(lanes) do plan:lane(name, options) end
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or nil}) end
  plan:buffers(versions)
  plan:fill_waits()
  return plan
end

-- A load of n / 64 boxes, as one has at most 128 bytes of a row.
local function scaled(n)
  local program = mr.program("scaled", function(p)
    local m, n = p:axes("m", "n")
    local A, Y = p:input("A", {m, n}), p:output("Y", {m, n})
    local a = p:load("load", A)
    Y:store("store", p:task("scale", function() return a * 2 end))
  end)
  return schedule(program:bind{m = 4096, n = n}, {m = 32, n = n}, {p0 = {warps = 1}, c0 = {warps = 8}}, {load = 2})
end

do
  local few, many = grants(scaled(256)), grants(scaled(320))
  local spare = scaled(320)
  spare:lane("c0", {spare = 200})
  ok(few.c0 == 240 and few.p0 == 24, "a lane that issues a few boxes has the least", few.c0, few.p0)
  ok(many.c0 == 232 and many.p0 == 40, "one that issues many has registers for their coordinates", many.c0, many.p0)
  spare = grants(spare)
  ok(spare.c0 == 240 and spare.p0 == 24, "  not those that the plan leaves to the compiler", spare.c0, spare.p0)
end

-- Elements are converted as they are stored, by the threads of the lane: no lane works on values.
do
  local program = mr.program("narrowed", function(p)
    local m, n = p:axes("m", "n")
    local A, Y = p:input("A", {m, n}, "f32"), p:output("Y", {m, n}, "f16")
    Y:store("store", p:load("load", A))
  end)
  local of = grants(schedule(program:bind{m = 4096, n = 64}, {m = 128, n = 64}, {p0 = {warps = 1}, c0 = {warps = 8}}, {load = 2}))
  ok(of.c0 == 240, "if all that lanes do is copy, those whose threads do share the registers", of.c0, of.p0)
end

-- Three groups of warps compute and need 158 registers a thread: 152, if the threads that copy the scales of blocks had 40.
do
  local function scaled_blocks(cluster)
    local plan = mr.plan(mr.examples.fp8_block_scales{m = 768, n = 256, k = 512}:graph{tile = {m = 192, j = 128}}, mr.device "h200")
    plan:split("m", 3)
    plan:lane("p0", {warps = 1})
    for i = 0, 2 do plan:lane("c" .. i, {warps = 4}) end
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%d$"}) end
    plan:buffers{a = 2, b = 2, sa = 2, sb = 2}
    plan:grid{cluster = cluster}
    plan:fill_waits()
    return plan
  end
  local of = grants(scaled_blocks(1))
  ok(of.c0 == 160 and of.p0 == 32, "lanes that copy have fewer if those that compute lack them", of.c0, of.p0)
  for cluster = 1, 2 do
    ok(scaled_blocks(cluster):compile{target = "host"}:check{seed = 4}.ok, "  and the kernel is right in clusters of " .. cluster)
  end
end

-- What the plan leaves to the compiler changes what is computed again, and not what is granted.
do
  local plan = schedule(mr.examples.flash_attention{b = 1, h = 2, m = 512, d = 128}, {m = 128, n = 128}, {p0 = {warps = 1}, c0 = {warps = 8}},
    {k = 2, v = 2})
  local before, had = plan:compile{text = true}.source, grants(plan).c0
  plan:lane("c0", {spare = 64})
  is(grants(plan).c0, had, "spare registers are among those that are granted")
  ok(plan:compile{text = true}.source ~= before, "  and the text counts on less")
  ok(plan:compile{target = "host"}:check{seed = 3}.ok, "  and is right")
end

tap.done_testing()
