-- The language: a program, its inputs and reference, arrays, a device. Everything is small, as it runs thousands of times.
local mr = require "millrace"
local gemm = mr.program("gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, {upto = m + 2}, function()
    local a = p:load("load_a", A, {m, k})
    local left = mr.where(k:index():le(m:index() + 2), a, 0)
    c:add(p:mma("mma", left:to "bf16", p:load("load_b", B)))
  end)
  C:store("store_c", p:task("act", function()
    return mr.max(mr.exp2(c), 0):to "bf16"
  end))
end)
local bound = gemm:bind{m=4, n=3, k=2}
local inputs = bound:inputs{seed=1}
local out = bound:reference(inputs, {tile={m=2, k=1}, round=true})
assert(out.C:copy("f32"):max_error(out.C) < 1)
assert(#tostring(bound) > 0 and #tostring(out.C) > 0 and #tostring(mr.device "h200") > 0)
local a = mr.array("i4", {3, 2}, function(i, j) return i - j end)
assert(a:get(2, 1) == 1 and #mr.devices() > 0 and mr.examples.gemm)
mr.program("stubborn", function(p)    -- goes on after each failure
  local n = p:axes "n"
  local v = n:index()
  for i = 1, 20 do
    local good, w = pcall(function() return v + i end)
    v = good and w or v
  end
  p:output("Y", {n}):store(v)
end){n=2}
local good = pcall(gemm.bind, gemm, {m=4, n=3})
assert(not good)
