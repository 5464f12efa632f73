-- The programs of a decoder layer (qkv_rope, rmsnorm_swiglu, row_squares, and the options of gemm and flash_attention that connect
-- them) against formulas in plain Lua, and kernels of them on the CPU: stores of a value to several tensors, of which each takes a
-- part, by the copy engine and by threads, with a staging that stores share.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
random_plans.target = arg[1] or "host"

local function elements(a)
  local list = {}
  for i = 1, #a do list[i] = a[i] end
  return list
end

-- Element (i, j, ...) from 0 of a list in row-major order.
local function view(list, ...)
  local dims = {...}
  return function(...)
    local at = 0
    for d, i in ipairs{...} do at = at * dims[d] + i end
    return list[at + 1]
  end
end

local function near(got, want, what)
  local off, size = 0, 0
  for i, x in pairs(want) do
    off, size = off + (got[i] - x) ^ 2, size + x ^ 2
  end
  tap.ok(size > 0 and math.sqrt(off / size) < 1e-9, what, ("distance %g"):format(math.sqrt(off / size)))
end

local function flat(inputs)
  local t = {}
  for name, array in pairs(inputs) do t[name] = elements(array) end
  return t
end

local function sums_of(x, rows, k)
  local s = {}
  for i = 0, rows - 1 do
    s[i] = 0
    for j = 0, k - 1 do s[i] = s[i] + x[i * k + j + 1] ^ 2 end
  end
  return s
end

-- Parts of sums of squares must be positive: as of numbers that there are.
local function square_sums(inputs)
  for i = 1, #inputs.S do inputs.S[i] = inputs.S[i] ^ 2 + 0.5 end
end

---- formulas ------------------------------------------------------------------------------------------

for _, z in ipairs{{b = 1, m = 5, k = 7, hq = 2, hkv = 1, d = 6}, {b = 2, m = 4, k = 9, hq = 4, hkv = 2, d = 4, nmax = 6, sums = 3},
    {b = 1, m = 3, k = 4, hq = 1, hkv = 1, d = 2, eps = 0.5, table = "bf16"}} do
  local bound = mr.examples.qkv_rope(z)
  local inputs, half, nmax = bound:inputs{seed = 4}, z.d // 2, z.nmax or z.m
  if z.sums then square_sums(inputs) end
  local t = flat(inputs)
  local X, W = view(t.X, z.b, z.m, z.k), view(t.W, z.hq + 2 * z.hkv, z.d, z.k)
  local Cos, Sin = view(t.Cos, z.m, half), view(t.Sin, z.m, half)
  local squares, want = sums_of(t.X, z.b * z.m, z.k), {Q = {}, K = {}, V = {}}
  for i = 0, z.b * z.m - 1 do
    local square, b, m = squares[i], i // z.m, i % z.m
    if z.sums then
      square = 0
      for j = 1, z.sums do square = square + t.S[i * z.sums + j] end
    end
    for h = 0, z.hq + 2 * z.hkv - 1 do
      local y = {}
      for j = 0, z.d - 1 do
        local sum = 0
        for k = 0, z.k - 1 do sum = sum + X(b, m, k) * W(h, j, k) end
        y[j] = sum / math.sqrt(square / z.k + (z.eps or 1e-6))
      end
      for j = 0, z.d - 1 do
        local c, s, out = Cos(m, j % half), Sin(m, j % half), y[j]
        if h < z.hq + z.hkv then out = j < half and y[j] * c - y[j + half] * s or j >= half and y[j] * c + y[j - half] * s end
        if h < z.hq then want.Q[((b * z.hq + h) * z.m + m) * z.d + j + 1] = out
        else
          local of, head = want.K, h - z.hq
          if head >= z.hkv then of, head = want.V, head - z.hkv end
          of[((b * z.hkv + head) * nmax + m) * z.d + j + 1] = out
        end
      end
    end
  end
  for _, tile in ipairs{{}, {m = 2, h = 3, k = 5}} do
    local got = bound:reference(inputs, {tile = tile})
    for name, x in pairs(want) do near(elements(got[name]), x, "qkv_rope: " .. name) end
  end
end

for _, z in ipairs{{m = 3, n = 4, k = 5}, {m = 6, n = 7, k = 9, sums = 2}, {m = 2, n = 3, k = 4, norm = false}} do
  local bound = mr.examples.rmsnorm_swiglu(z)
  local inputs = bound:inputs{seed = 2}
  if z.sums then square_sums(inputs) end
  local t, want = flat(inputs), {}
  local squares = sums_of(t.X, z.m, z.k)
  for i = 0, z.m - 1 do
    local square = squares[i]
    if z.sums then square = t.S[i * 2 + 1] + t.S[i * 2 + 2] end
    local r = z.norm == false and 1 or 1 / math.sqrt(square / z.k + 1e-6)
    for j = 0, z.n - 1 do
      local g, u = 0, 0
      for k = 1, z.k do
        g, u = g + r * t.X[i * z.k + k] * t.G[j * z.k + k], u + r * t.X[i * z.k + k] * t.U[j * z.k + k]
      end
      want[#want + 1] = g / (1 + math.exp(-g)) * u
    end
  end
  for _, tile in ipairs{{}, {m = 2, n = 3, k = 2}} do
    near(elements(bound:reference(inputs, {tile = tile}).C), want, "rmsnorm_swiglu")
  end
end

do
  local bound = mr.examples.row_squares{m = 5, k = 11}
  local inputs, want = bound:inputs{}, {}
  for i, x in pairs(sums_of(elements(inputs.X), 5, 11)) do want[i + 1] = x end
  near(elements(bound:reference(inputs, {tile = {m = 2, k = 4}}).S), want, "row_squares")
end

for _, o in ipairs{{}, {squares = 3}, {squares = 12, bias = true, activation = "silu"}, {squares = 4, a = "km", b = "kn"}} do
  o.m, o.n, o.k, o.residual = 5, 12, 7, true
  local bound = mr.examples.gemm(o)
  local inputs = bound:inputs{}
  local t, want, sums = flat(inputs), {}, {}
  for i = 0, 4 do
    for j = 0, 11 do
      local x = o.bias and t.bias[j + 1] or 0
      for k = 0, 6 do
        x = x + (o.a and t.A[k * 5 + i + 1] or t.A[i * 7 + k + 1]) * (o.b and t.B[k * 12 + j + 1] or t.B[j * 7 + k + 1])
      end
      x = (o.activation and x / (1 + math.exp(-x)) or x) + t.R[i * 12 + j + 1]
      want[#want + 1] = x
      local at = o.squares and i * (12 // o.squares) + j // o.squares + 1
      if at then sums[at] = (sums[at] or 0) + x * x end
    end
  end
  for _, tile in ipairs{{}, {m = 2, k = 3}} do
    local got = bound:reference(inputs, {tile = tile})
    near(elements(got.C), want, "gemm: C")
    if o.squares then near(elements(got.S), sums, "gemm: S") end
  end
end

-- Caches with more rows than keys, and O as rows: the same numbers elsewhere.
do
  local z = {b = 2, h = 4, hkv = 2, m = 5, n = 6, d = 3, causal = true}
  local plain = mr.examples.flash_attention(z)
  local inputs = plain:inputs{}
  local want = elements(plain:reference(inputs).O)
  z.nmax, z.o = 9, "bmhd"
  local bound, rows = mr.examples.flash_attention(z), {}
  local caches = bound:inputs{seed = 9}
  for i = 1, #inputs.Q do caches.Q[i] = inputs.Q[i] end
  for head = 0, 3 do
    for i = 1, 6 * 3 do
      caches.K[head * 27 + i] = inputs.K[head * 18 + i]
      caches.V[head * 27 + i] = inputs.V[head * 18 + i]
    end
  end
  for b = 0, 1 do
    for h = 0, 3 do
      for i = 0, 4 do
        for x = 1, 3 do rows[((b * 5 + i) * 4 + h) * 3 + x] = want[((b * 4 + h) * 5 + i) * 3 + x] end
      end
    end
  end
  near(elements(bound:reference(caches, {tile = {m = 2, n = 4}}).O), rows, "flash_attention of caches, O as rows")
end

for _, case in ipairs{
  {"qkv_rope", {b = 1, m = 4, k = 4, hq = 1, hkv = 1, d = 5}, "d must be even"},
  {"qkv_rope", {b = 1, m = 4, k = 4, hq = 1, hkv = 1, nmax = 3}, "nmax must be at least m"},
  {"qkv_rope", {b = 1, m = 4, k = 4, hq = 1, hkv = 1, eps = -1}, "eps must be at least 0"},
  {"rmsnorm_swiglu", {m = 4, n = 4, k = 4, eps = -1}, "eps must be at least 0"},
  {"gemm", {m = 4, n = 4, k = 4, squares = 3}, "squares must divide n"},
  {"flash_attention", {b = 1, h = 1, m = 4, d = 4, nmax = 3}, "nmax must be at least n"},
  {"flash_attention", {b = 1, h = 1, m = 4, d = 4, o = "x"}, 'o must be "bhmd" or "bmhd"'},
} do
  local good, message = pcall(mr.examples[case[1]], case[2])
  tap.ok(not good and tostring(message):find(case[3], 1, true), case[1] .. ": " .. case[3], message)
end

---- kernels -------------------------------------------------------------------------------------------

local function schedule(bound, tile, o)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  plan:split("m", 2)
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:lane("c1", {warps = 4})
  plan:buffers(o.rings)
  plan:grid{eus = o.eus or 2}
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%.(%d)$", seu = t.kind == "store" and o.seu or nil})
  end
  plan:fill_waits()
  return plan
end

local function try(what, plan, by, seeds)
  local good, problems = plan:check()
  if not good then return tap.ok(false, what, tostring(problems)) end
  local text = plan:compile{target = "host"}.source
  tap.is(text:find "tma_store_" and "engine" or "threads", by, what .. ": by the " .. by)
  local result, message = random_plans.verify(plan, seeds or {1, 2})
  tap.ok(result == "ok", what, message, plan:script())
  return text
end

-- Tiles of two heads, of which each is in one tensor; of three, of which some are in two; and rows that the cache has no more.
local sizes <const> = {b = 1, m = 256, k = 128, hq = 8, hkv = 2, d = 128, table = "bf16"}
for _, seu in ipairs{"tma", "cuda"} do
  for _, tile in ipairs{{h = 2, half = 64}, {h = 3, half = 32}, {h = 1, half = 64}} do
    tile.m, tile.k = 128, 64
    local plan = schedule(mr.examples.qkv_rope(sizes), tile, {rings = {x = 2, w0 = 2, w1 = 2}, seu = seu})
    local text = try(("qkv_rope, %d heads of %d, %s"):format(tile.h, tile.half, seu), plan, seu == "tma" and "engine" or "threads")
    tap.ok(text:find "if %(lo_h >= [%d%-]", "stores are left out where a tensor has nothing of the tile")
    for line in text:gmatch "[^\n]*tma_store_%dd%([^\n]*" do       -- and boxes where it has some, as engines trap at those in front of a tensor
      if line:find "%- ?%d+ %+ lo_h" or line:find "lo_h [+-]" then tap.ok(line:find "if %(.* >= 0 && .* < %d+%) tma_store", "a box inside", line) end
    end
  end
end

-- With a staging for each of six stores there is no space: the stores of a lane share one.
do
  local plan = schedule(mr.examples.qkv_rope{b = 1, m = 256, k = 256, hq = 4, hkv = 2, d = 128, table = "bf16"},
    {m = 128, h = 2, half = 64, k = 64}, {rings = {x = 4, w0 = 3, w1 = 3}})
  local text = try("a staging that stores share", plan, "engine")
  local stagings, stores = 0, 0
  for line in tostring(plan:kernel{}):gmatch "[^\n]+" do
    if line:find "staging of '" then stagings = stagings + 1 end
  end
  for _ in text:gmatch "tma_store_%d+d%(" do stores = stores + 1 end
  tap.is(stagings, 2, "one staging for each lane")
  tap.ok(stores >= 6, "six stores by the engine")
end

-- What is left out is not predicted: of three tensors each takes a part, and so all together as much as one.
do
  local bytes = {}
  for _, t in ipairs(mr.examples.qkv_rope(sizes):graph{tile = {m = 128, h = 2, half = 64, k = 64}}.tasks) do
    if t.kind == "store" then bytes[t.name] = t.bytes end
  end
  tap.near(bytes.store_q0 + bytes.store_k0 + bytes.store_v0, 128 * 2 * 64 * 2, 1e-6, "bytes of a tile are stored once")
  tap.near(bytes.store_q0, bytes.store_k0 * 4, 1e-6, "eight heads of twelve are of queries")
end

-- An axis whose elements are exchanged, in front of another one: the other half of a head is in the same thread's registers.
do
  local swapped = mr.program("swapped", function(p)
    local m, k, h, two, half = p:axes("m", "k", "h", "two", "half")
    local X, W, Y = p:input("X", {m, k}), p:input("W", {h, two, half, k}), p:output("Y", {m, h, two, half})
    local y = p:carry("y", {m, h, two, half}, 0)
    p:loop(k, function() y:add(p:mma("mma", p:load("load_x", X), p:load("load_w", W))) end)
    Y:store("store_y", p:task("exchange", function() return (y * 2 + y:at(two, two ~ 1)):to "bf16" end))
  end)
  for _, half in ipairs{32, 8, 12} do
    local plan = schedule(swapped{m = 128, k = 64, h = 4, two = 2, half = half}, {m = 128, h = 2, k = 32, half = half},
      {rings = {x = 2, w = 2}, eus = 1})
    local text = try("exchanged halves of " .. half, plan, half == 32 and "engine" or "threads", {1})
    tap.is(text:find "%(j %^ %d+%)" and true or false, half ~= 12, "in registers, if an exchange is that of bits of the column")
  end
end
tap.done_testing()
