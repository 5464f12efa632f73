-- Two of every four elements and their indices (mr.expand): what the reference and kernels on the CPU make of them, and what is refused.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, on_host = dofile(dir .. "tap.lua"), dofile(dir .. "lib/on_host.lua")

local h200 = mr.device "h200"

-- Runs in several orders, half of them with the detection of races, agree with the reference.
local function computes(what, plan)
  local worst, report = on_host.worst(plan, 2)
  tap.ok(not report and worst <= 1e-2, what, "  relative error: " .. worst, report)
end

-- Y = X of all elements.
local dense = mr.program("dense", function(p)
  local m, k = p:axes("m", "k")
  local half, eighth = p:axis("half", k.size // 2), p:axis("eighth", k.size // 8)
  local X, E = p:input("X", {m, half}, p.from or "bf16"), p:input("E", {m, eighth}, p.bytes or "u8")
  local Y = p:output("Y", {m, k}, p.to or p.from or "bf16")
  local x, e = p:load(X), p:load(E)
  Y:store(p:task("expand", function() return x:expand(e, k) end))
end)

local pairs_of_four <const> = {[0] = {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}
local function nibble(i, group) return pairs_of_four[(i + 2 * group) % 6] end
local function byte(i, j)
  local low, high = nibble(i, 2 * j), nibble(i, 2 * j + 1)
  return low[1] | low[2] << 2 | high[1] << 4 | high[2] << 6
end

do
  local bound, m, k = dense{m = 9, k = 48}, 9, 48
  local inputs = {X = mr.array("bf16", {m, k // 2}, function(i, j) return i * 3 + j end),
    E = mr.array("u8", {m, k // 8}, function(i, j) return byte(i - 1, j - 1) end)}
  local wants = mr.array("bf16", {m, k}, function(i, j)
    local pair, group = nibble(i - 1, (j - 1) // 4), (j - 1) // 4
    for each = 1, 2 do
      if pair[each] == (j - 1) % 4 then return inputs.X:get(i, 2 * group + each) end
    end
    return 0
  end)
  tap.is(bound:reference(inputs).Y:max_error(wants), 0, "each value is at its index, and zeros are elsewhere")
  tap.is(bound:reference(inputs, {on = "host"}).Y:max_error(wants), 0, "  by the plain kernel, too")
  local plan = assert(mr.search(bound, h200, {trials = 4, measure = false})).plan
  tap.is(plan:compile{target = "host"}:run(inputs).Y:max_error(wants), 0, "  and by a kernel")
end

for _, bytes in ipairs{"u8", "i8"} do
  local E, valid, several = dense{m = 8, k = 512, bytes = bytes}:inputs().E, true, {}
  for i = 1, 8 do
    for j = 1, 64 do
      for half = 0, 1 do
        local bits = math.tointeger(E:get(i, j)) >> 4 * half & 15
        valid, several[bits] = valid and bits & 3 < bits >> 2, true
      end
    end
  end
  local kinds = 0
  for _ in pairs(several) do kinds = kinds + 1 end
  tap.ok(valid and kinds == 6, bytes .. ": random indices are pairs in order, of all six kinds")
end
for _, from in ipairs{"f32", "f16", "e4m3", "i8"} do
  computes("values of " .. from, assert(mr.search(dense{m = 40, k = 72, from = from}, h200, {trials = 4, measure = false})).plan)
end

-- C = A B^T of an A that a task expands, as any other operand.
local gemm = mr.program("gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local half, eighth = p:axis("half", k.size // 2), p:axis("eighth", k.size // 8)
  local A, E = p:input("A", {m, half}), p:input("E", {m, eighth}, "u8")
  local B, C = p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local a, e = p:load("load_a", A), p:load("load_e", E)
    local x = p:task("expand", function() return mr.expand(a, e, k) end)
    c:add(p:mma("mma", x, p:load("load_b", B)))
  end)
  C:store("store_c", c)
end)
for _, lane in ipairs{"c0", "c1"} do
  local plan = mr.plan(gemm{m = 72, n = 40, k = 136}:graph{tile = {m = 64, n = 40, k = 64}}, h200)
  for _, name in ipairs{"c0", "c1"} do plan:lane(name, {warps = 4}) end
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.name == "expand" and lane or "c0"}) end
  plan:fill_waits()
  computes("a product of an operand that is expanded " .. (lane == "c0" and "in registers" or "by another lane"), plan)
end

local function refused(what, message, body)
  local good, got = pcall(function()
    mr.program("refused", function(p)
      local m, k = p:axes("m", "k")
      local X, Y = p:input("X", {m, p:axis("half", p.half or k.size // 2)}, p.from or "bf16"), p:output("Y", {m, k}, "f32")
      local E = p:input("E", {m, p:axis("eighth", p.eighth or k.size // 8)}, p.bytes or "u8")
      local x, e = p:load(X), p:load(E)
      local y = p:task("expand", function() return x:expand(e, k):to "f32" end)
      Y:store(y)
    end){m = 8, k = body.k or 64, half = body.half, eighth = body.eighth, from = body.from, bytes = body.bytes}
  end)
  tap.ok(not good and tostring(got):find(message, 1, true), what, got)
end
refused("not eight at a time", "'k' has 12 elements; indices are bytes of 8", {k = 12, half = 6, eighth = 2})
refused("too few values", "expand: 'k' has 64 elements, of which the values' 'half' has one for each 2, 32; it has 16", {half = 16})
refused("too many bytes", "the indices' 'eighth' has one for each 8, 8; it has 16", {eighth = 16})
refused("other indices", "expand takes indices of u8 or i8, and these are i32", {bytes = "i32"})
tap.refuses([[
local mr = require "millrace"
mr.program("p", function(p)
  local m, k = p:axes("m", "k")
  local X = p:load(p:input("X", {m, k}))
  X:expand(X, k)
end){m = 8, k = 8}]], "user.lua:5: expand takes indices of u8 or i8, and these are bf16")

---- a product that expands its first operand itself ---------------------------------------------

local function matrices(p)
  local m, n, k = p:axes("m", "n", "k")
  local half, eighth = p:axis("half", k.size // 2), p:axis("eighth", k.size // 8)
  local A, E = p:input("A", {m, half}, p.type), p:input("E", {m, eighth}, p.bytes or "u8")
  return m, n, k, A, E, p:input("B", p.b == "kn" and {k, n} or {n, k}, p.type), p:output("C", p.c == "nm" and {n, m} or {m, n}, p.out or "f32")
end
local sparse = mr.program("sparse", function(p)
  local m, n, k, A, E, B, C = matrices(p)
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local a, b = p:load("load_a", A):expand(p:load("load_e", E), k), p:load("load_b", B)
    c:add(p.second and p:mma("mma", b, a) or p:mma("mma", a, b))
  end)
  C:store("store_c", p:task("convert", function() return c:to(p.out or "f32") end))
end)

-- A lane that loads, with so many slots; and one that computes, or two.
local function planned(bound, tile, options)
  options = options or {}
  local plan = mr.plan(bound:graph{tile = tile}, h200)
  if options.split then plan:split("m", 2) end
  plan:lane("p0", {warps = options.warps or 1})
  plan:lane("c0", {warps = options.eight and 8 or 4})
  if options.split then plan:lane("c1", {warps = 4}) end
  plan:buffers{a = 2, b = 2, e = 2}
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or t.name:find "%.1$" and "c1" or "c0"})
  end
  plan:fill_waits()
  return plan
end

for _, type in ipairs{"bf16", "f16", "e4m3", "e5m2", "i8"} do
  local bound = sparse{m = 128, n = 64, k = 512, type = type, out = type == "i8" and "i32" or "f32"}
  local plan = planned(bound, {m = 64, n = 64, k = 128})
  computes("a sparse product of " .. type, plan)
  local text = plan:compile{target = "cuda", text = true}.source
  local sums, elements = type == "i8" and "s32" or "f32", type == "i8" and "s8" or type
  tap.like(text, ("wgmma%%.mma_async%%.sp%%.sync%%.aligned%%.m64n64k%d%%.%s%%.%s%%.%s "):format((type == "bf16" or type == "f16") and 32 or 64,
    sums, elements, elements), "  by its instruction")
  local dense = mr.examples.gemm{m = 128, n = 64, k = 512}:graph{tile = {m = 64, n = 64, k = 128}}
  tap.is(plan.graph.flops * 2, dense.flops, "  of half of the flops")
end
for _, case in ipairs{
  {"tiles beyond the ends", {m = 104, n = 40, k = 200}, {m = 64, n = 40, k = 64}},
  {"fewer rows than an instruction has", {m = 40, n = 24, k = 96}, {m = 40, n = 24, k = 96}},
  {"several blocks of rows", {m = 256, n = 32, k = 128}, {m = 192, n = 32, k = 64}},
  {"two groups of warps", {m = 256, n = 32, k = 128}, {m = 256, n = 32, k = 64}, {eight = true}},
  {"columns divided among groups of warps", {m = 64, n = 128, k = 128}, {m = 64, n = 128, k = 64}, {eight = true}},
  {"a product in slices", {m = 256, n = 32, k = 128}, {m = 128, n = 32, k = 64}, {split = true}},
  {"a second operand with other neighbours", {m = 64, n = 72, k = 128, b = "kn"}, {m = 64, n = 64, k = 64}},
  {"copies by threads", {m = 72, n = 20, k = 72}, {m = 64, n = 20, k = 32}, {warps = 4}},
  {"indices of i8", {m = 64, n = 32, k = 64, bytes = "i8"}, {m = 64, n = 32, k = 64}},
  {"the second operand", {m = 128, n = 72, k = 128, second = true}, {m = 64, n = 64, k = 64}},
  {"the second operand, stored transposed", {m = 128, n = 64, k = 128, second = true, c = "nm", out = "bf16"}, {m = 64, n = 64, k = 64}},
} do
  local what, sizes, tile, options = table.unpack(case)
  sizes.type = "bf16"
  computes("a sparse product: " .. what, planned(sparse(sizes), tile, options))
end
do                                                       -- its instructions read the indices' registers while they are under way
  local plan = mr.plan(sparse{m = 128, n = 64, k = 512, type = "bf16"}:graph{tile = {m = 128, n = 64, k = 128}}, h200)
  plan:split("m", 2)
  plan:lane("p0", {warps = 1})
  for i = 0, 1 do plan:lane("c" .. i, {warps = 4}) end
  plan:buffers{a = 2, e = 2, b = 2}
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or t.name:find "1$" and "c1" or "c0"})
  end
  plan:fill_waits()
  computes("sparse products of slices", plan)
  tap.like(plan:compile{target = "cuda"}.source, "groups_commit%(%);%s*GROUPS_WAIT%(0%);", "  which wait before the next indices")
end
do                                                       -- E stays, as the loop over n needs all of it again
  local bound = mr.program("stays", function(p)
    local m, n, k, A, E, B, C = matrices(p)
    local e = p:load("load_e", E)
    p:loop(n, function()
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A):expand(e, k), p:load("load_b", B))) end)
      C:store("store_c", p:task("convert", function() return c:to "bf16" end))
    end)
  end){m = 100, n = 96, k = 200, type = "bf16", out = "bf16"}
  local good, plan = pcall(planned, bound, {m = 64, n = 32, k = 64})
  if good then computes("a sparse product by indices that stay", plan) else tap.like(plan, "made outside", "indices that stay") end
end

do                                                       -- the product expands one of two such operands, a task of its own the other
  local bound = mr.program("both", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local half, eighth, half2, eighth2 = p:axis("half", k.size // 2), p:axis("eighth", k.size // 8), p:axis("half2", k.size // 2),
      p:axis("eighth2", k.size // 8)
    local a = p:load("load_a", p:input("A", {m, half})):expand(p:load("load_e", p:input("E", {m, eighth}, "u8")), k)
    local b = p:load("load_b", p:input("B", {n, half2})):expand(p:load("load_f", p:input("F", {n, eighth2}, "u8")), k)
    p:output("C", {m, n}, "f32"):store("store_c", p:mma("mma", a, b))
  end){m = 64, n = 32, k = 64}
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 32}}, h200)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  computes("a sparse product of two sparse operands", plan)
  tap.like(plan:compile{target = "host"}.source, "mma_sparse_bf16", "  which expands the first itself")
end
do                                                       -- threads multiply what they expand
  local plan = mr.plan(sparse{m = 72, n = 20, k = 72, type = "bf16"}:graph{tile = {m = 64, n = 20, k = 24}}, h200)
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {seu = t.kind == "mma" and "cuda" or nil}) end
  plan:fill_waits()
  computes("a sparse product by threads", plan)
end

-- An operand that is expanded along an axis that the product keeps, by an sTask of its own.
local kept = mr.program("kept", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A = p:input("A", {p:axis("half", m.size // 2), k})
  local E = p:input("E", {p:axis("eighth", m.size // 8), k}, "u8")
  local B, C = p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local a, e = p:load("load_a", A), p:load("load_e", E)
    c:add(p:mma("mma", a:expand(e, m), p:load("load_b", B)))
  end)
  C:store("store_c", c)
end)
do
  local plan = mr.plan(kept{m = 72, n = 40, k = 96}:graph{tile = {m = 64, n = 40, k = 32}}, h200)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  computes("a product of an operand that is expanded along its rows", plan)
end

local function not_lowered(what, message, bound, tile, device)
  local good, got = pcall(function()
    local plan = mr.plan(bound:graph{tile = tile}, mr.device(device or "h200"))
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:fill_waits()
    plan:compile{target = "host"}
  end)
  tap.ok(not good and tostring(got):find(message, 1, true), what, got)
end
not_lowered("too little in a tile", "'mma' has 16 of 'k' in a tile; instructions that expand an operand of bf16 contract 32: choose a multiple of that",
  sparse{m = 64, n = 32, k = 64, type = "bf16"}, {m = 64, n = 32, k = 16})
not_lowered("another machine", "expands its first operand itself, for which sm_80 has no instructions: expand it in a task",
  sparse{m = 64, n = 32, k = 64, type = "bf16"}, {m = 64, n = 32, k = 32}, "a100")

tap.done_testing()
