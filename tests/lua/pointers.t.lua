-- Inputs whose parts lie at addresses of their own: loaded by threads, from wherever they are.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local products = dofile(dir .. "lib/programs.lua").products_of_parts

local h200 = mr.device "h200"

local function computes(what, bound, options)
  local o = {trials = 15, seconds = 60, measure = false}
  for k, v in pairs(options or {}) do o[k] = v end
  local plan = assert(mr.search(bound, h200, o)).plan
  local kernel = plan:compile{target = "host"}
  local got, report = core.host_run(kernel, bound:inputs{}, {seed = 2, race = true, limit = 100})
  local off, relative = got.C:max_error(bound:reference(bound:inputs{}).C)
  tap.ok(not report and relative < 1e-2, what, off, report)
  return plan, kernel.source
end

local plan, source = computes("products of parts", products{g = 3, m = 64, n = 64, k = 128})
tap.like(source, "const u16 %*const %*__restrict__ tensor_A,", "the kernel gets addresses")
tap.like(source, "&tensor_A%[i0%]%[%(i1%) %* 128l %+ i2%]", "and reads a part by its own")
tap.ok(not source:find "tensor_A%[%(" and not source:find("tma_load", source:find "__restrict__ tensor_A", true), "and in no other way")
tap.like(tostring(select(2, plan:check())):gsub("%s+", " "), "the copy engine's map has one address, and the tensor is given by several",
  "the plan says why threads load it")
tap.ok(plan.graph.program.tensors[1].pointers and not plan.graph.program.tensors[3].pointers, "tensors say which are")
tap.like(tostring(plan.graph.program), "input A bf16 %[g, m, k%] by address", "a listing, too")
computes("parts of sizes that tiles do not divide", products{g = 2, m = 70, n = 40, k = 88})
computes("parts with rows that are not aligned", products{g = 2, m = 33, n = 20, k = 45})
computes("parts of 4-bit elements", products{g = 3, m = 64, n = 64, k = 128, wtype = "e2m1"})

-- Parts that values name, some of which there are none of; and an axis of parts that is not batch.
local experts = mr.program("experts", function(p)
  local b, e, m, n, k = p:axes("b", "e", "m", "n", "k")
  local Expert = p:input("Expert", {b}, "i32")
  local A, W = p:input("A", {b, m, k}), p:input("W", {e, n, k}, "bf16", {pointers = e})
  local C = p:output("C", {b, m, n}, "f32")
  p:batch(b)
  local expert = p:load("load_expert", Expert)
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_w", W, {expert, n, k}))) end)
  C:store("store_c", c)
end)
do
  local bound = experts{b = 4, e = 3, m = 16, n = 40, k = 64}
  local plan = assert(mr.search(bound, h200, {trials = 15, seconds = 60, measure = false})).plan
  local inputs = bound:inputs{}
  inputs.Expert:fill{2, -1, 0, 7}
  local got, report = core.host_run(plan:compile{target = "host"}, inputs, {seed = 2, race = true, limit = 100})
  local off = got.C:max_error(bound:reference(inputs).C)
  tap.ok(not report and off < 1e-3, "parts that a table names, two of them outside", off, report)
end
local twice = mr.program("twice", function(p)
  local g, m, n = p:axes("g", "m", "n")
  local A, C = p:input("A", {g, m, n}, "f32", {pointers = g}), p:output("C", {g, m, n}, "f32")
  local a = p:load("load_a", A)
  C:store("store_c", p:task("twice", function() return a * 2 end))
end)
computes("parts of which a tile has several", twice{g = 5, m = 24, n = 40}, {tile = {g = 5, m = 8}})
local _, ragged = computes("parts of which the last tile has fewer", twice{g = 6, m = 24, n = 40}, {tile = {g = 4, m = 8}})
tap.ok(ragged:find("tensor_A[i0 >= 0 && i0 < 6 ? i0 : 0]", 1, true) and not ragged:find("tensor_A[i0]", 1, true),
  "no address is read behind the last one", ragged:match "[^\n]*tensor_A%[[^\n]*")

-- A program for the CPU has no addresses of parts.
local dir = os.tmpname()
os.remove(dir)
tap.refuses([[
local mr = require "millrace"
local p = mr.program("x", function(p)
  local g, n = p:axes("g", "n")
  local X, Y = p:input("X", {g, n}, "f32", {pointers = g}), p:output("Y", {g, n}, "f32")
  p:batch(g)
  Y:store(p:load(X))
end)]] .. [[

local found = mr.search(p{g = 2, n = 64}, mr.device "h200", {trials = 4, measure = false})
found.plan:compile{target = "host"}:export "]] .. dir .. [["]],
  "user.lua:9: export: input 'X' is given by addresses, which the program that is exported for the CPU does not make; " ..
  "compile for the GPU, or declare it without pointers", "an export for the CPU")

-- Mistakes.
local function refused(declaration, message)
  tap.refuses([[
local mr = require "millrace"
mr.program("x", function(p)
  local g, n = p:axes("g", "n")
  ]] .. declaration .. [[

end){g = 2, n = 64}]], "user.lua:4: " .. message)
end
refused('p:input("X", {g, n}, "f32", {pointers = n})', "input: pointers = n: the parts that have addresses are those of the first dimension")
refused('p:input("X", {g, n}, "f32", {pointers = true})', "input: pointers: axis expected, got true")
refused('p:input("X", {g}, "f32", {pointers = g})', "'X' cannot be given by addresses: that is for inputs, which have an address for each " ..
  "index of the first dimension, and another dimension")
refused('p:input("X", {g, n}, "f32", {pointer = g})', "input: unknown option 'pointer'; did you mean 'pointers'?")
refused('p:loop(n, {length = p:load(p:input("X", {g, n}, "i32", {pointers = g}), {0, 0})}, function() end)',
  "loop: a length is not read from 'X', which is given by addresses; let another input have the lengths")

tap.done_testing()
