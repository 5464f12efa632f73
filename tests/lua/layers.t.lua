-- Layers of models, which are sequences of kernels: their references are those of formulas written out here in plain Lua, and their
-- kernels, as planned, agree with them on the CPU.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")

local exp, sqrt, max, min = math.exp, math.sqrt, math.max, math.min

local function silu(x) return x / (1 + exp(-x)) end

-- Row i of X, n elements, times the rows of W: a list of `rows` sums.
local function times(x, W, rows)
  local y = {}
  for r = 1, rows do
    local sum = 0
    for j = 1, #x do sum = sum + x[j] * W:get(r, j) end
    y[r] = sum
  end
  return y
end

local function normalised(x)
  local square, y = 0, {}
  for _, e in ipairs(x) do square = square + e * e end
  for i, e in ipairs(x) do y[i] = e / sqrt(square / #x + 1e-5) end
  return y
end

local function row(array, i, n)
  local x = {}
  for j = 1, n do x[j] = array:get(i, j) end
  return x
end

-- Element j of key i of sequence b in a cache, all from 1 but i: the array and the indices of it.
local function cached(z, t, cache, b, g, i, j)
  if not z.page then return cache, b, g, i + 1, j end
  return cache, t.table:get(b, i // z.page + 1) + 1, i % z.page + 1, g, j
end

local function element(...)
  local array = ...
  return array:get(select(2, ...))
end

-- What a decoder layer does to the token of each sequence: y, and rows k and v of the caches.
local function decoder(z, t)
  local heads, half, out, keys, values = z.hq + 2 * z.hkv, z.hd // 2, {}, {}, {}
  for b = 1, z.b do
    local x, at = row(t.x, b, z.d), t.pos:get(b)
    local qkv = times(normalised(x), t.wqkv, heads * z.hd)
    for h = 0, z.hq + z.hkv - 1 do
      for j = 1, half do
        local one, two, c, s = qkv[h * z.hd + j], qkv[h * z.hd + half + j], t.cos:get(b, j), t.sin:get(b, j)
        qkv[h * z.hd + j], qkv[h * z.hd + half + j] = one * c - two * s, two * c + one * s
      end
    end
    local function key(g, i, j) return i == at and qkv[(z.hq + g) * z.hd + j] or element(cached(z, t, t.k, b, g + 1, i, j)) end
    local function value(g, i, j) return i == at and qkv[(z.hq + z.hkv + g) * z.hd + j] or element(cached(z, t, t.v, b, g + 1, i, j)) end
    local a = {}
    for h = 0, z.hq - 1 do
      local g, scores, top, sum = h // (z.hq // z.hkv), {}, -math.huge, 0
      for i = 0, at do
        local s = 0
        for j = 1, z.hd do s = s + qkv[h * z.hd + j] * key(g, i, j) end
        scores[i] = s / sqrt(z.hd)
        top = max(top, scores[i])
      end
      for i = 0, at do
        scores[i] = exp(scores[i] - top)
        sum = sum + scores[i]
      end
      for j = 1, z.hd do
        local o = 0
        for i = 0, at do o = o + scores[i] * value(g, i, j) end
        a[h * z.hd + j] = o / sum
      end
    end
    local y1 = times(a, t.wo, z.d)
    for i = 1, z.d do y1[i] = y1[i] + x[i] end
    local n = normalised(y1)
    local gate, up = times(n, t.wg, z.f), times(n, t.wu, z.f)
    for i = 1, z.f do gate[i] = silu(gate[i]) * up[i] end
    local y = times(gate, t.wd, z.d)
    for i = 1, z.d do y[i] = y[i] + y1[i] end
    out[b], keys[b], values[b] = y, {}, {}
    for g = 0, z.hkv - 1 do
      for j = 1, z.hd do
        keys[b][g * z.hd + j], values[b][g * z.hd + j] = key(g, at, j), value(g, at, j)
      end
    end
  end
  return out, keys, values
end

-- ||got - want|| / ||want|| of functions of rows and columns.
local function distance(rows, columns, got, want)
  local off, size = 0, 0
  for i = 1, rows do
    for j = 1, columns do
      local w = want(i, j)
      off, size = off + (got(i, j) - w) ^ 2, size + w ^ 2
    end
  end
  return sqrt(off / size)
end

for _, z in ipairs{
  {b = 1, nmax = 24, d = 64, f = 48, hq = 4, hkv = 2, hd = 16, splits = 3},
  {b = 3, nmax = 20, d = 96, f = 72, hq = 2, hkv = 1, hd = 32, squares = "store"},
  {b = 2, nmax = 20, d = 64, f = 40, hq = 2, hkv = 2, hd = 16, squares = "layers"},
  {b = 2, nmax = 16, d = 64, f = 40, hq = 4, hkv = 2, hd = 16, splits = 2, page = 4, pages = 10},
} do
  local seq = mr.examples.llama3_decode(z)
  local inputs, what = seq:inputs{seed = 3}, ("llama3_decode of %d"):format(z.b)
  for b = 1, z.b do inputs.pos:set(min(z.nmax - 1, 5 * b * b), b) end
  for b = 1, inputs.xs and z.b or 0 do
    for i = 1, z.d // 32 do
      local sum = 0
      for j = 32 * i - 31, 32 * i do sum = sum + inputs.x:get(b, j) ^ 2 end
      inputs.xs:set(sum, b, i)
    end
  end
  local got = seq:reference(inputs)
  local y, keys, values = decoder(z, inputs)
  local off = distance(z.b, z.d, function(i, j) return got.y:get(i, j) end, function(i, j) return y[i][j] end)
  tap.ok(off < 2e-2, what .. ": the reference of the sequence is that of the formula", off)
  if got.ys then
    off = distance(z.b, z.d // 32, function(i, j) return got.ys:get(i, j) end, function(i, j)
      local sum = 0
      for x = 32 * j - 31, 32 * j do sum = sum + got.y:get(i, x) ^ 2 end
      return sum
    end)
    tap.ok(off < 2e-2, what .. ": the squares of its rows", off)
  end
  for name, want in pairs{k = keys, v = values} do
    off = distance(z.b, z.hkv * z.hd, function(i, j)
      return element(cached(z, inputs, got[name], i, (j - 1) // z.hd + 1, inputs.pos:get(i), (j - 1) % z.hd + 1))
    end, function(i, j) return want[i][j] end)
    tap.ok(off < 2e-2, what .. ": the new row of " .. name, off)
    local changed, most = 0, z.b * z.hkv * z.hd          -- elements of the new rows
    for i = 1, #got[name] do changed = changed + (got[name][i] ~= inputs[name][i] and 1 or 0) end
    local kept = changed > 0 and changed <= most
    tap.ok(kept, what .. ": the others are kept")
  end
  local plan = seq:plan("h200", {trials = 20, measure = false})
  tap.ok(plan:check(), what .. ": a plan of all kernels")
  local found = plan:compile{target = "host"}:check{inputs = inputs}
  tap.ok(found.ok, what .. ": its kernels are right on the CPU, and leave other rows of the caches as they are", tostring(found))
end

-- llama3_layer: the same as its tokens one after the other.
local function proxy(get) return {get = function(_, ...) return get(...) end} end
for _, z in ipairs{
  {b = 2, m = 5, nmax = 7, d = 64, f = 48, hq = 4, hkv = 2, hd = 16, block = 32},
  {b = 1, m = 6, d = 64, f = 40, hq = 2, hkv = 1, hd = 32, block = 16, layers = true, table = "f32"},
} do
  local seq, what = mr.examples.llama3_layer(z), ("llama3_layer of %d x %d"):format(z.b, z.m)
  local inputs, parts = seq:inputs{seed = 5}, z.d // z.block
  local function squares(x, b, i, part)
    local sum = 0
    for j = part * z.block + 1, (part + 1) * z.block do sum = sum + x:get(b, i, j) ^ 2 end
    return sum
  end
  for b = 1, inputs.xs and z.b or 0 do
    for i = 1, z.m do
      for part = 0, parts - 1 do inputs.xs:set(squares(inputs.x, b, i, part), (b - 1) * z.m + i, part + 1) end
    end
  end
  local got, want, k, v = seq:reference(inputs), {}, {}, {}
  for i = 1, z.m do
    local t = setmetatable({x = proxy(function(b, j) return inputs.x:get(b, i, j) end), pos = proxy(function() return i - 1 end),
      cos = proxy(function(_, j) return inputs.cos:get(i, j) end), sin = proxy(function(_, j) return inputs.sin:get(i, j) end),
      k = proxy(function(b, g, at, j) return k[at][b][(g - 1) * z.hd + j] end),
      v = proxy(function(b, g, at, j) return v[at][b][(g - 1) * z.hd + j] end)}, {__index = inputs})
    want[i], k[i], v[i] = decoder(z, t)
  end
  local off = distance(z.b * z.m, z.d, function(i, j) return got.y:get((i - 1) // z.m + 1, (i - 1) % z.m + 1, j) end,
    function(i, j) return want[(i - 1) % z.m + 1][(i - 1) // z.m + 1][j] end)
  tap.ok(off < 2e-2, what .. ": the reference of the sequence is that of the formula", off)
  for name, list in pairs{k = k, v = v} do
    off = distance(z.b * z.m, z.hkv * z.hd, function(i, j)
      return got[name]:get((i - 1) // z.m + 1, (j - 1) // z.hd + 1, (i - 1) % z.m + 1, (j - 1) % z.hd + 1)
    end, function(i, j) return list[(i - 1) % z.m + 1][(i - 1) // z.m + 1][j] end)
    tap.ok(off < 2e-2, what .. ": " .. name, off)
  end
  local kept = true
  for at = z.m + 1, z.nmax or z.m do kept = kept and got.k:get(1, 1, at, 1) == inputs.k:get(1, 1, at, 1) end
  tap.ok(kept, what .. ": rows of the caches that no token has are kept")
  if got.ys then
    off = distance(z.b * z.m, parts, function(i, j) return got.ys:get(i, j) end,
      function(i, j) return squares(got.y, (i - 1) // z.m + 1, (i - 1) % z.m + 1, j - 1) end)
    tap.ok(off < 2e-2, what .. ": the squares of its rows", off)
  end
  local plan = seq:plan("h200", {trials = 20, measure = false})
  tap.ok(plan:check(), what .. ": a plan of all kernels")
  local found = plan:compile{target = "host"}:check{inputs = inputs}
  tap.ok(found.ok, what .. ": its kernels are right on the CPU", tostring(found))
end

tap.done_testing()
