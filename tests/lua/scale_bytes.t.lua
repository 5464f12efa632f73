-- Types of a byte that scales have: u8, and e8m0, powers of two.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local h200 <const> = mr.device "h200"

local function searched(bound)
  return assert(mr.search(bound, h200, {trials = 6, measure = false})).plan
end

-- Groups with a greatest element of 24: the scale is 4, of which the byte is 129.
local function quantise(dtype)
  return mr.program("quantise", function(p)
    local m, b, i = p:axes("m", "b", "i")
    local X, Y, S = p:input("X", {m, b, i}, "f32"), p:output("Y", {m, b, i}, "e2m1"), p:output("S", {m, b}, dtype)
    local x = p:load(X)
    local y, s = p:task("quantise", function()
      local most = mr.max(x:abs():rowmax(i), 2.0 ^ -124)
      if dtype == "e8m0" then
        local s = (most * 0.25):to "e8m0"
        return (x / s):to "e2m1", s
      end
      local e = mr.floor(mr.log2(most)) - 2
      return (x * mr.exp2(-e)):to "e2m1", (e + 127):to(dtype)
    end)
    Y:store(y)
    S:store(s)
  end)
end
for dtype, want in pairs{u8 = 129, e8m0 = 4.0} do
  local plan = searched(quantise(dtype){m = 32, b = 8, i = 32})
  local kernel = plan:compile{target = "host"}
  local got = kernel:run{X = mr.array("f32", {32, 8, 32}, function() return 24 end)}
  tap.is(got.S:get(1, 1), want, dtype .. ": the scale of 24")
  tap.is(got.Y:get(1, 1, 1), 6.0, dtype .. ": 24 with it")
  local result = kernel:check()
  tap.ok(result.ok, dtype .. ": random groups", result.message)
end

-- Every value that matters, and what is none.
local special <const> = {1, 1.5, 1.9999999, 2, -6, 0.3, 0, 2.0 ^ -126, 2.0 ^ -127 * 1.5, 2.0 ^ -140, 3e38, math.huge, 0 / 0, 254.7, 255, 256, -1, 129}
for _, dtype in ipairs{"u8", "e8m0"} do
  local plan = searched(mr.program("converts", function(p)
    local n = p:axes "n"
    local X, Y, Z = p:input("X", {n}, "f32"), p:output("Y", {n}, dtype), p:output("Z", {n}, "f32")
    local x = p:load(X)
    local y, z = p:task("convert", function() return x:to(dtype), x:to(dtype):to "f32" end)
    Y:store(y)
    Z:store(z)
  end){n = #special})
  local got = plan:compile{target = "host"}:run{X = mr.array("f32", {#special}, special)}
  local want = mr.array(dtype, {#special}, function(i)
    local x = special[i]
    return dtype == "u8" and (x ~= x and 0 or x > 255 and 255 or x < 0 and 0 or math.floor(x)) or x
  end)
  local wrong = {}
  for i = 1, #special do
    local y, z, w = got.Y[i], got.Z[i], want[i]
    if y ~= w and (y == y or w == w) or z ~= w and (z == z or w == w) then wrong[#wrong + 1] = special[i] end
  end
  tap.is(#wrong, 0, "values that become " .. dtype, table.concat(wrong, " "))
end

-- Bytes as scales: of rows, as words of four, and between phases.
for _, dtype in ipairs{"u8", "e8m0"} do
  local plan = searched(mr.program("scaled", function(p)
    local m, n = p:axes("m", "n")
    local w = p:axis("w", (n.size + 3) // 4)
    local X, S, W = p:input("X", {m, n}, "f32"), p:input("S", {m}, dtype), p:input("W", {m, w}, "i32")
    local T, Y = p:temp("T", {m, n}, dtype), p:output("Y", {m, n}, "f32")
    p:phase("first", function()
      local words = p:load(W)
      T:store(p:task("unpack", function() return mr.unpack(words, w, n, dtype) end))
    end)
    p:phase("second", function()
      local x, s, t = p:load(X), p:load(S), p:load(T)
      Y:store(p:task("scale", function() return x * s + mr.min(t, 1e6) end))
    end)
  end){m = 33, n = 64})
  local inputs = {
    X = mr.array("f32", {33, 64}, function(i, j) return (i * 5 + j) % 7 end),
    S = mr.array(dtype, {33}, function(i) return dtype == "u8" and i * 7 or 2.0 ^ (i % 9 - 4) end),
    W = mr.array("i32", {33, 16}, function(i, j) return 0x7f808182 + i + j * 0x101 end),
  }
  local kernel = plan:compile{target = "host"}
  local difference = kernel:run(inputs).Y:max_error(plan.program:reference(inputs).Y)
  tap.ok(difference == 0, dtype .. ": scales of rows, words of four, and a temporary", difference)
end

-- Threads multiply them; sums of u8 are integers.
for dtype, out in pairs{u8 = "i32", e8m0 = "f32"} do
  local plan = searched(mr.program("product", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}, dtype), p:input("B", {n, k}, dtype), p:output("C", {m, n}, out)
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", c)
  end){m = 32, n = 32, k = 64})
  local result = plan:compile{target = "host"}:check()
  tap.ok(result.ok, "a product of " .. dtype, result.message)
end

local ok, message = pcall(mr.program("implicit", function(p)
  local n = p:axes "n"
  p:output("Y", {n}, "e8m0"):store(p:load(p:input("X", {n}, "f32")))
end), {n = 8})
tap.ok(not ok and tostring(message):find("'Y' holds e8m0 and the value is f32; cast it first", 1, true), "only a cast makes e8m0 of f32", message)

tap.done_testing()
