-- The shipped programs' reference answers against formulas written out here in plain Lua:
-- textbook loops in double precision that share nothing with the tile language.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, like = tap.ok, tap.like

local exp, sqrt, min, max, floor = math.exp, math.sqrt, math.min, math.max, math.floor
local TOLERANCE <const> = 1e-12

-- Tensors -------------------------------------------------------------------------------

-- Elements are read and written as t(i, j, ...), counted from 0; `flat` holds them row-major.
local function view(flat, ...)
  local n, d2, d3, d4, d5 = select("#", ...), select(2, ...)
  local get
  if n == 1 then get = function(i) return flat[i + 1] end
  elseif n == 2 then get = function(i, j) return flat[i * d2 + j + 1] end
  elseif n == 3 then get = function(i, j, k) return flat[(i * d2 + j) * d3 + k + 1] end
  elseif n == 4 then
    get = function(i, j, k, l) return flat[((i * d2 + j) * d3 + k) * d4 + l + 1] end
  else
    get = function(i, j, k, l, o)
      return flat[(((i * d2 + j) * d3 + k) * d4 + l) * d5 + o + 1]
    end
  end
  return get
end

local function elements(array)
  local flat = {}
  for i = 1, #array do flat[i] = array[i] end
  return flat
end

-- ||got - want|| / ||want||, both flat; huge if a value is missing or not a number.
local function distance(got, want)
  local diff, norm = 0, 0
  if #got ~= #want then return math.huge end
  for i = 1, #want do
    diff, norm = diff + (got[i] - want[i]) ^ 2, norm + want[i] ^ 2
  end
  local d = norm > 0 and sqrt(diff / norm) or sqrt(diff)
  return d == d and d or math.huge
end

-- Numbers in [lo, hi), the same in every run.
local state = 1
local function uniform(lo, hi)
  state = state * 6364136223846793005 + 1442695040888963407
  return lo + (hi - lo) * ((state >> 11) / 2 ^ 53)
end

local function describe(sizes)
  local words = {}
  for k, v in pairs(sizes) do words[#words + 1] = k .. "=" .. tostring(v) end
  table.sort(words)
  return table.concat(words, " ")
end

-- One program at one set of sizes and options: the reference, with its own tiles and with each
-- of `tiles`, equals formula(sizes, inputs). prepare(inputs, sizes) may change the random inputs.
local function check(name, sizes, output, formula, tiles, prepare)
  local bound = mr.examples[name](sizes)
  local inputs = bound:inputs{seed = 7}
  if prepare then prepare(inputs, sizes) end
  local flat = {}
  for k, array in pairs(inputs) do flat[k] = elements(array) end
  local want = formula(sizes, flat)
  local what = name .. " " .. describe(sizes)
  local d = distance(elements(bound:reference(inputs)[output]), want)
  ok(d < TOLERANCE, what, "distance " .. d)
  for _, tile in ipairs(tiles or {}) do
    d = distance(elements(bound:reference(inputs, {tile = tile})[output]), want)
    ok(d < TOLERANCE, what .. " in tiles " .. describe(tile), "distance " .. d)
  end
end

-- Formulas ------------------------------------------------------------------------------

local function tanh(x)
  local e = exp(-2 * math.abs(x))
  return (x < 0 and -1 or 1) * (1 - e) / (1 + e)
end
local function sigmoid(x) return 1 / (1 + exp(-x)) end
local act = {
  relu = function(x) return max(x, 0.0) end,
  silu = function(x) return x * sigmoid(x) end,
  gelu = function(x) return 0.5 * x * (1 + tanh(sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3))) end,
}

local function matmul_sum(z, t)
  local A, B, S = view(t.A, z.m, z.k), view(t.B, z.n, z.k), {}
  for i = 0, z.m - 1 do
    local sum = 0
    for j = 0, z.n - 1 do
      for k = 0, z.k - 1 do sum = sum + A(i, k) * B(j, k) end
    end
    S[i + 1] = sum
  end
  return S
end

local function gemm(z, t)
  local A = z.a == "km" and view(t.A, z.k, z.m) or view(t.A, z.m, z.k)
  local B = z.b == "kn" and view(t.B, z.k, z.n) or view(t.B, z.n, z.k)
  local C = {}
  for i = 0, z.m - 1 do
    for j = 0, z.n - 1 do
      local sum = z.bias and t.bias[j + 1] or 0
      for k = 0, z.k - 1 do
        sum = sum + (z.a == "km" and A(k, i) or A(i, k)) * (z.b == "kn" and B(k, j) or B(j, k))
      end
      C[#C + 1] = (z.activation and act[z.activation](sum) or sum) + (z.residual and t.R[i * z.n + j + 1] or 0)
    end
  end
  return C
end

-- The sums of the squares of each `squares` neighbours of a product.
local function gemm_squares(z, t)
  local C, S = gemm(z, t), {}
  for i, x in ipairs(C) do
    local at = (i - 1) // z.squares + 1                 -- squares divides n
    S[at] = (S[at] or 0) + x * x
  end
  return S
end

local function rmsnorm_swiglu(z, t)
  local X, G, U, C = view(t.X, z.m, z.k), view(t.G, z.n, z.k), view(t.U, z.n, z.k), {}
  for i = 0, z.m - 1 do
    local square, r = 0, 1
    if z.sums then
      for j = 1, z.sums do square = square + t.S[i * z.sums + j] end
    else
      for k = 0, z.k - 1 do square = square + X(i, k) ^ 2 end
    end
    if z.norm ~= false then r = 1 / sqrt(square / z.k + (z.eps or 1e-6)) end
    for j = 0, z.n - 1 do
      local g, u = 0, 0
      for k = 0, z.k - 1 do g, u = g + X(i, k) * G(j, k), u + X(i, k) * U(j, k) end
      C[#C + 1] = act.silu(g * r) * u * r
    end
  end
  return C
end

-- r of each row, and the elements of Y.
local function rmsnorm(z, t)
  local X, r, Y = view(t.X, z.m, z.n), {}, {}
  for i = 0, z.m - 1 do
    local square = 0
    for j = 0, z.n - 1 do square = square + X(i, j) ^ 2 end
    r[i] = 1 / sqrt(square / z.n + (z.eps or 1e-6))
    for j = 0, z.n - 1 do Y[#Y + 1] = X(i, j) * r[i] * t.G[j + 1] end
  end
  return Y, r
end

-- The normed rows are U = X r: through them dU = G dY, and dX = r (dU - U times the mean of dU U).
local function rmsnorm_gradients(z, t)
  local X, dY, dX, dG, _, r = view(t.X, z.m, z.n), view(t.dY, z.m, z.n), {}, {}, rmsnorm(z, t)
  for j = 1, z.n do dG[j] = 0 end
  for i = 0, z.m - 1 do
    local mean = 0
    for j = 0, z.n - 1 do
      mean = mean + t.G[j + 1] * dY(i, j) * X(i, j) * r[i] / z.n
      dG[j + 1] = dG[j + 1] + dY(i, j) * X(i, j) * r[i]
    end
    for j = 0, z.n - 1 do dX[#dX + 1] = r[i] * (t.G[j + 1] * dY(i, j) - X(i, j) * r[i] * mean) end
  end
  return dX, dG
end

local function swiglu(z, t)
  local C = {}
  for i = 1, z.m * z.n do C[i] = act.silu(t.A[i]) * t.B[i] end
  return C
end

local function swiglu_gradients(z, t)
  local dA, dB = {}, {}
  for i = 1, z.m * z.n do
    local s = sigmoid(t.A[i])
    dA[i], dB[i] = t.dC[i] * t.B[i] * (s + t.A[i] * s * (1 - s)), t.dC[i] * act.silu(t.A[i])
  end
  return dA, dB
end

-- Two passes: all scores of a row, then their softmax.
local function attention_row(score, n, sees, value, d, out)
  local top, sum, s = -math.huge, 0, {}
  for j = 0, n - 1 do
    if sees(j) then s[j] = score(j); top = max(top, s[j]) end
  end
  local row = {}
  for x = 0, d - 1 do row[x] = 0.0 end
  for j = 0, n - 1 do
    if s[j] then
      local e = exp(s[j] - top)
      sum = sum + e
      for x = 0, d - 1 do row[x] = row[x] + e * value(j, x) end
    end
  end
  for x = 0, d - 1 do out[#out + 1] = sum > 0 and row[x] / sum or 0.0 end
end

-- sees(b, h, i, j): may query i see key j, as far as the options let it? nil: each may.
local function flash_attention(z, t, sees)
  local n, hkv, scale = z.n or z.m, z.hkv or z.h, z.scale or 1 / sqrt(z.d)
  local Q, O = view(t.Q, z.b, z.h, z.m, z.d), {}
  local K, V = view(t.K, z.b, hkv, n, z.d), view(t.V, z.b, hkv, n, z.d)
  for b = 0, z.b - 1 do
    for h = 0, z.h - 1 do
      local head = h // (z.h // hkv)
      for i = 0, z.m - 1 do
        local at = i + n - z.m
        attention_row(function(j)
          local s = 0
          for x = 0, z.d - 1 do s = s + Q(b, h, i, x) * K(b, head, j, x) end
          return z.softcap and z.softcap * tanh(s * scale / z.softcap) or s * scale
        end, n, function(j)
          return (not z.causal or j <= at) and (not z.window or j > at - z.window) and (not sees or sees(b, h, i, j))
        end, function(j, x) return V(b, head, j, x) end, z.d, O)
      end
    end
  end
  return O
end

-- The logarithms of its sums; 0 of a query that sees no key.
local function attention_sums(z, t)
  local n, hkv, scale = z.n or z.m, z.hkv or z.h, z.scale or 1 / sqrt(z.d)
  local Q, K, L = view(t.Q, z.b, z.h, z.m, z.d), view(t.K, z.b, hkv, n, z.d), {}
  for b = 0, z.b - 1 do
    for h = 0, z.h - 1 do
      for i = 0, z.m - 1 do
        local sum, at = 0, i + n - z.m
        for j = 0, n - 1 do
          local s = 0
          for x = 0, z.d - 1 do s = s + Q(b, h, i, x) * K(b, h // (z.h // hkv), j, x) end
          s = z.softcap and z.softcap * tanh(s * scale / z.softcap) or s * scale
          if (not z.causal or j <= at) and (not z.window or j > at - z.window) then sum = sum + exp(s) end
        end
        L[#L + 1] = sum > 0 and math.log(sum) or 0.0
      end
    end
  end
  return L
end

-- The gradients of an attention whose sums have the logarithms L, whatever these are: three lists.
local function attention_gradients(z, t)
  local n, hkv, scale = z.n or z.m, z.hkv or z.h, z.scale or 1 / sqrt(z.d)
  local Q, O, dO = view(t.Q, z.b, z.h, z.m, z.d), view(t.O, z.b, z.h, z.m, z.d), view(t.dO, z.b, z.h, z.m, z.d)
  local K, V, L = view(t.K, z.b, hkv, n, z.d), view(t.V, z.b, hkv, n, z.d), view(t.L, z.b, z.h, z.m)
  local dQ, dK, dV = {}, {}, {}
  for i = 1, z.b * z.h * z.m * z.d do dQ[i] = 0.0 end
  for i = 1, z.b * hkv * n * z.d do dK[i], dV[i] = 0.0, 0.0 end
  local function dot(x, y)
    local s = 0
    for i = 0, z.d - 1 do s = s + x(i) * y(i) end
    return s
  end
  for b = 0, z.b - 1 do
    for h = 0, z.h - 1 do
      local head = h // (z.h // hkv)
      for i = 0, z.m - 1 do
        local function q(x) return Q(b, h, i, x) end
        local function g(x) return dO(b, h, i, x) end
        local delta = dot(g, function(x) return O(b, h, i, x) end)
        for j = 0, z.causal and i + n - z.m or n - 1 do
          local function k(x) return K(b, head, j, x) end
          local w = exp(dot(q, k) * scale - L(b, h, i))
          local ds = w * (dot(g, function(x) return V(b, head, j, x) end) - delta) * scale
          for x = 0, z.d - 1 do
            local of_q, of_k = ((b * z.h + h) * z.m + i) * z.d + x + 1, ((b * hkv + head) * n + j) * z.d + x + 1
            dQ[of_q], dK[of_k], dV[of_k] = dQ[of_q] + ds * k(x), dK[of_k] + ds * q(x), dV[of_k] + w * g(x)
          end
        end
      end
    end
  end
  return dQ, dK, dV
end

local function paged_decoding(z, t)
  local hkv, scale, page = z.hkv or z.h, z.scale or 1 / sqrt(z.d), z.page or 16
  local pages = z.pages or z.b * z.n // page
  local Q, O, Table = view(t.Q, z.b, z.h, z.d), {}, view(t.Table, z.b, z.n // page)
  local K, V = view(t.K, pages, page, hkv, z.d), view(t.V, pages, page, hkv, z.d)
  for b = 0, z.b - 1 do
    for h = 0, z.h - 1 do
      local head = h // (z.h // hkv)
      local function of(x)
        return function(j, i)
          local at = Table(b, j // page)
          return at >= 0 and at < pages and x(at, j % page, head, i) or 0
        end
      end
      local key, value = of(K), of(V)
      attention_row(function(j)
        local s = 0
        for x = 0, z.d - 1 do s = s + Q(b, h, x) * key(j, x) end
        return s * scale
      end, max(1, min(z.n, z.positions and t.Pos[b + 1] + 1 or t.Length[b + 1])), function() return true end, value, z.d, O)
    end
  end
  return O
end

-- Two lists: the weights and the experts.
local function topk_routing(z, t)
  local X, k, weights, experts = view(t.X, z.m, z.n), z.k or min(2, z.n), {}, {}
  for i = 0, z.m - 1 do
    local order, sum = {}, 0
    for j = 0, z.n - 1 do order[j + 1] = j end
    table.sort(order, function(a, b)
      local x, y = X(i, a), X(i, b)
      return x > y or x == y and a < b
    end)
    local top = X(i, order[1])
    for j = 1, z.all and z.n or k do sum = sum + exp(X(i, order[j]) - top) end
    for j = 1, k do
      weights[#weights + 1] = exp(X(i, order[j]) - top) / sum
      experts[#experts + 1] = order[j]
    end
  end
  return weights, experts
end

local function block_sparse_attention(z, t)
  local n, rows, keys = z.n or z.m, z.rows or 128, z.keys or 64
  local longest = z.longest or n // keys
  local Blocks, Count = view(t.Blocks, z.b, z.h, z.m // rows, longest), view(t.Count, z.b, z.h, z.m // rows)
  return flash_attention(z, t, function(b, h, i, j)
    for k = 0, min(longest, Count(b, h, i // rows)) - 1 do
      if Blocks(b, h, i // rows, k) == j // keys then return true end
    end
    return false
  end)
end

local function flash_decoding(z, t)
  local hkv, scale = z.hkv or z.h, z.scale or 1 / sqrt(z.d)
  local Q, O = view(t.Q, z.b, z.h, z.d), {}
  local K, V = view(t.K, z.b, hkv, z.n, z.d), view(t.V, z.b, hkv, z.n, z.d)
  for b = 0, z.b - 1 do
    for h = 0, z.h - 1 do
      local head = h // (z.h // hkv)
      attention_row(function(j)
        local s = 0
        for x = 0, z.d - 1 do s = s + Q(b, h, x) * K(b, head, j, x) end
        return s * scale
      end, z.n, function(j) return not z.positions or j <= max(0, t.Pos[b + 1]) end, function(j, x) return V(b, head, j, x) end, z.d, O)
    end
  end
  return O
end

-- Q, K and V: of the caches what is stored; all else is not compared.
local function qkv_rope_step(z, t)
  local d, nmax, eps = z.d or 128, z.nmax or 8192, z.eps or 1e-6
  local heads, half = z.hq + 2 * z.hkv, d // 2
  local X, W = view(t.X, z.b, z.k), view(t.W, heads, d, z.k)
  local Cos, Sin = view(t.Cos, z.b, half), view(t.Sin, z.b, half)
  local Q, K, V = {}, {}, {}
  for i = 0, z.b - 1 do
    local square = 0
    if z.sums then
      for j = 1, z.sums do square = square + t.S[i * z.sums + j] end
    else
      for k = 0, z.k - 1 do square = square + X(i, k) ^ 2 end
    end
    for h = 0, heads - 1 do
      local y, r = {}, 1 / sqrt(square / z.k + eps)
      for j = 0, d - 1 do
        local sum = 0
        for k = 0, z.k - 1 do sum = sum + X(i, k) * W(h, j, k) end
        y[j] = sum * r
      end
      for j = 0, d - 1 do
        local out, c, s = y[j], Cos(i, j % half), Sin(i, j % half)
        if h < z.hq + z.hkv then out = j < half and y[j] * c - y[j + half] * s or j >= half and y[j] * c + y[j - half] * s end
        local pos = t.Pos[i + 1]
        if h < z.hq then
          Q[(i * z.hq + h) * d + j + 1] = out
        elseif pos >= 0 and pos < nmax then
          local of, head = K, h - z.hq
          if head >= z.hkv then of, head = V, head - z.hkv end
          local row = (i * z.hkv + head) * nmax + pos
          if z.page then
            local page = t.Table[i * (nmax // z.page) + pos // z.page + 1]
            row = (page * z.page + pos % z.page) * z.hkv + head
          end
          of[row * d + j + 1] = out
        end
      end
    end
  end
  return Q, K, V
end

local function chunk_state(z, t)
  local L, g = z.chunk or 256, z.g or 1
  local c, states = (z.s + L - 1) // L, {}
  local X, B = view(t.X, z.b, z.s, z.h, z.p), view(t.B, z.b, z.s, g, z.n)
  local dt, dA = view(t.dt, z.b, z.h, c, L), view(t.dA, z.b, z.h, c, L)
  for b = 0, z.b - 1 do for ch = 0, c - 1 do for h = 0, z.h - 1 do
    local w = {}
    for l = 0, L - 1 do
      w[l] = exp(min(dA(b, h, ch, L - 1) - dA(b, h, ch, l), 0)) * dt(b, h, ch, l)
    end
    for p = 0, z.p - 1 do for n = 0, z.n - 1 do
      local sum = 0
      for l = 0, min(L, z.s - ch * L) - 1 do
        sum = sum + X(b, ch * L + l, h, p) * B(b, ch * L + l, h // (z.h // g), n) * w[l]
      end
      states[#states + 1] = sum
    end end
  end end end
  return states
end

local function chunk_scan(z, t)
  local L, g = z.chunk or 256, z.g or 1
  local c, out = (z.s + L - 1) // L, {}
  local X, C = view(t.X, z.b, z.s, z.h, z.p), view(t.C, z.b, z.s, g, z.n)
  local dt, dA = view(t.dt, z.b, z.h, c, L), view(t.dA, z.b, z.h, c, L)
  local CB, S = view(t.CB, z.b, c, g, L, L), view(t.states, z.b, c, z.h, z.p, z.n)
  local Z = z.z and view(t.Z, z.b, z.s, z.h, z.p)
  for b = 0, z.b - 1 do for pos = 0, z.s - 1 do for h = 0, z.h - 1 do
    local ch, l, group = pos // L, pos % L, h // (z.h // g)
    local here, w = dA(b, h, ch, l), {}
    for k = 0, l do
      w[k] = CB(b, ch, group, l, k) * exp(min(here - dA(b, h, ch, k), 0)) * dt(b, h, ch, k)
    end
    for p = 0, z.p - 1 do
      local sum = 0
      for n = 0, z.n - 1 do sum = sum + C(b, pos, group, n) * S(b, ch, h, p, n) end
      sum = sum * exp(here)
      for k = 0, l do sum = sum + w[k] * X(b, ch * L + k, h, p) end
      if z.D ~= false then sum = sum + t.D[h + 1] * X(b, pos, h, p) end
      if Z then sum = sum * act.silu(Z(b, pos, h, p)) end
      out[#out + 1] = sum
    end
  end end end
  return out
end

-- Position by position, as the recurrence says: the output and the last state.
local function mamba2(z, t)
  local g = z.g or 1
  local X, B, C = view(t.X, z.b, z.s, z.h, z.p), view(t.B, z.b, z.s, g, z.n), view(t.C, z.b, z.s, g, z.n)
  local dt, Z = view(t.dt, z.b, z.s, z.h), z.z and view(t.Z, z.b, z.s, z.h, z.p)
  local Init, out, last = z.init and view(t.init, z.b, z.h, z.p, z.n), {}, {}
  for b = 0, z.b - 1 do for h = 0, z.h - 1 do for p = 0, z.p - 1 do
    local state, group = {}, h // (z.h // g)
    for n = 0, z.n - 1 do state[n] = Init and Init(b, h, p, n) or 0.0 end
    for s = 0, z.s - 1 do
      local keep, add, y = exp(dt(b, s, h) * t.A[h + 1]), dt(b, s, h) * X(b, s, h, p), 0
      for n = 0, z.n - 1 do
        state[n] = keep * state[n] + add * B(b, s, group, n)
        y = y + C(b, s, group, n) * state[n]
      end
      if z.D ~= false then y = y + t.D[h + 1] * X(b, s, h, p) end
      if Z then y = y * act.silu(Z(b, s, h, p)) end
      out[((b * z.s + s) * z.h + h) * z.p + p + 1] = y
    end
    for n = 0, z.n - 1 do last[#last + 1] = state[n] end
  end end end
  return out, last
end

-- Position by position, as the recurrence says, whatever the decay of a position and key dim: the output and the last state.
local function delta_rule(z, t, decay)
  local hk, scale = z.hk or z.h, z.scale or 1 / sqrt(z.k)
  local Q, K, V = view(t.q, z.b, z.s, hk, z.k), view(t.k, z.b, z.s, hk, z.k), view(t.v, z.b, z.s, z.h, z.v)
  local Beta, Init, out, last = view(t.beta, z.b, z.s, z.h), z.init and view(t.init, z.b, z.h, z.k, z.v), {}, {}
  for b = 0, z.b - 1 do for h = 0, z.h - 1 do
    local S, head = {}, h // (z.h // hk)
    for x = 0, z.k - 1 do
      S[x] = {}
      for y = 0, z.v - 1 do S[x][y] = Init and Init(b, h, x, y) or 0.0 end
    end
    for s = 0, z.s - 1 do
      for x = 0, z.k - 1 do
        for y = 0, z.v - 1 do S[x][y] = S[x][y] * exp(decay(b, s, h, x)) end
      end
      for y = 0, z.v - 1 do
        local seen, o = 0, 0
        for x = 0, z.k - 1 do seen = seen + K(b, s, head, x) * S[x][y] end
        for x = 0, z.k - 1 do
          S[x][y] = S[x][y] + K(b, s, head, x) * Beta(b, s, h) * (V(b, s, h, y) - seen)
          o = o + Q(b, s, head, x) * S[x][y] * scale
        end
        out[((b * z.s + s) * z.h + h) * z.v + y + 1] = o
      end
    end
    for x = 0, z.k - 1 do
      for y = 0, z.v - 1 do last[#last + 1] = S[x][y] end
    end
  end end
  return out, last
end

local function gated_delta_rule(z, t)
  local g = view(t.g, z.b, z.s, z.h)
  return delta_rule(z, t, function(b, s, h) return g(b, s, h) end)
end

local function kimi_delta_attention(z, t)
  return delta_rule(z, t, view(t.g, z.b, z.s, z.h, z.k))
end

local function cross_entropy(z, t)
  local X, loss, sums = view(t.X, z.m, z.n), {}, {}
  for i = 0, z.m - 1 do
    local top, sum, mean, target = -math.huge, 0, 0, t.Target[i + 1]
    for j = 0, z.n - 1 do top, mean = max(top, X(i, j)), mean + X(i, j) / z.n end
    for j = 0, z.n - 1 do sum = sum + exp(X(i, j) - top) end
    local lse, share = top + math.log(sum), z.smoothing or 0
    sums[i + 1] = lse
    loss[i + 1] = target < 0 and 0.0 or lse - (1 - share) * X(i, target) - share * mean
  end
  return loss, sums
end

local function rmsnorm_gemm(z, t)
  local X, W, C = view(t.X, z.m, z.k), view(t.W, z.n, z.k), {}
  for i = 0, z.m - 1 do
    local square = 0
    for k = 0, z.k - 1 do square = square + X(i, k) ^ 2 / z.k end
    for j = 0, z.n - 1 do
      local sum = 0
      for k = 0, z.k - 1 do sum = sum + X(i, k) / sqrt(square + (z.eps or 1e-6)) * (t.G and t.G[k + 1] or 1) * W(j, k) end
      C[#C + 1] = sum
    end
  end
  return C
end

local function fp8_block_scales(z, t)
  local L, C = z.block or 128, {}
  local kb, nb = (z.k + L - 1) // L, (z.n + L - 1) // L
  local A, B, SA, SB = view(t.A, z.m, z.k), view(t.B, z.n, z.k), view(t.SA, kb, z.m), view(t.SB, nb, kb)
  for i = 0, z.m - 1 do
    for j = 0, z.n - 1 do
      local sum = 0
      for k = 0, z.k - 1 do sum = sum + A(i, k) * SA(k // L, i) * B(j, k) * SB(j // L, k // L) end
      C[#C + 1] = sum
    end
  end
  return C
end

local function mla_decoding(z, t)
  local d, r, O = z.d or 512, z.r or 64, {}
  local scale, Q, R = z.scale or 1 / sqrt(128 + r), view(t.Q, z.b, z.h, d), view(t.R, z.b, z.h, r)
  local C, P = view(t.C, z.b, z.n, d), view(t.P, z.b, z.n, r)
  for b = 0, z.b - 1 do
    for h = 0, z.h - 1 do
      attention_row(function(j)
        local s = 0
        for x = 0, d - 1 do s = s + Q(b, h, x) * C(b, j, x) end
        for x = 0, r - 1 do s = s + R(b, h, x) * P(b, j, x) end
        return s * scale
      end, z.n, function() return true end, function(j, x) return C(b, j, x) end, d, O)
    end
  end
  return O
end

local function grouped_gemm(z, t)
  local block, Y = z.block or 128, {}
  local X, W, V = view(t.X, z.m, z.k), view(t.W, z.e, z.n, z.k), z.gated and view(t.V, z.e, z.n, z.k)
  for r = 0, #t.Token - 1 do
    local row, e = t.Token[r + 1], t.Expert[r // block + 1]
    local known = row >= 0 and row < z.m and e >= 0 and e < z.e
    for n = 0, z.n - 1 do
      local y, g = 0, 0
      for k = 0, known and z.k - 1 or -1 do
        y = y + X(row, k) * W(e, n, k)
        g = V and g + X(row, k) * V(e, n, k)
      end
      Y[#Y + 1] = V and act.silu(y) * g or y
    end
  end
  return Y
end

local E2M1 <const> = {[0] = 0, 0.5, 1, 1.5, 2, 3, 4, 6}
local decode = {
  i4 = function(x) return x < 8 and x or x - 16 end,
  i8 = function(x) return x < 128 and x or x - 256 end,
  e2m1 = function(x) return (x < 8 and 1 or -1) * E2M1[x & 7] end,
}

local function dequant_gemm(z, t)
  local wtype, group = z.wtype or "i4", z.group or 128
  local bits = wtype == "i8" and 8 or 4
  local each = 32 // bits
  local A, W = view(t.A, z.m, z.k), view(t.W, z.n, z.k // each)
  local scale, C = view(t.scale, z.n, (z.k + group - 1) // group), {}
  for i = 0, z.m - 1 do
    for j = 0, z.n - 1 do
      local sum = 0
      for k = 0, z.k - 1 do
        local word = floor(W(j, k // each)) & 0xffffffff
        local w = decode[wtype](word >> (k % each * bits) & ((1 << bits) - 1))
        sum = sum + A(i, k) * w * scale(j, k // group)
      end
      C[#C + 1] = sum
    end
  end
  return C
end

local function fp4_gemm(z, t)
  local group = z.format == "mxfp4" and 32 or 16
  local A, W, S, C = view(t.A, z.m, z.k), view(t.W, z.n, z.k), view(t.S, z.n, z.k // group), {}
  for i = 0, z.m - 1 do
    for j = 0, z.n - 1 do
      local sum = 0
      for k = 0, z.k - 1 do
        sum = sum + A(i, k) * W(j, k) * S(j, k // group)
      end
      C[#C + 1] = sum
    end
  end
  return C
end

local function conv2d(z, t)
  local stride, pad = z.stride or 1, z.pad or 0
  local X, F, Y = view(t.X, z.n, z.h, z.w, z.c), view(t.F, z.k, z.r, z.s, z.c), {}
  for n = 0, z.n - 1 do
    for p = 0, (z.h + 2 * pad - z.r) // stride do
      for q = 0, (z.w + 2 * pad - z.s) // stride do
        for k = 0, z.k - 1 do
          local sum = 0
          for r = 0, z.r - 1 do
            local y = p * stride + r - pad
            for s = 0, z.s - 1 do
              local x = q * stride + s - pad
              if y >= 0 and y < z.h and x >= 0 and x < z.w then
                for c = 0, z.c - 1 do sum = sum + X(n, y, x, c) * F(k, r, s, c) end
              end
            end
          end
          Y[#Y + 1] = sum
        end
      end
    end
  end
  return Y
end

-- Cases: every program and option, at sizes that are small, even and divisible by no tile ------

local formulas = {
  matmul_sum = {matmul_sum, "S"}, gemm = {gemm, "C"},
  flash_attention = {flash_attention, "O"}, flash_decoding = {flash_decoding, "O"},
  paged_decoding = {paged_decoding, "O"}, block_sparse_attention = {block_sparse_attention, "O"},
  topk_routing = {topk_routing, "Weights"}, attention_backward = {attention_gradients, "dQ"},
  chunk_state = {chunk_state, "states"}, chunk_scan = {chunk_scan, "out"},
  dequant_gemm = {dequant_gemm, "C"}, fp4_gemm = {fp4_gemm, "C"}, conv2d = {conv2d, "Y"}, cross_entropy = {cross_entropy, "Loss"},
  qkv_rope_step = {qkv_rope_step, "Q"}, rmsnorm_swiglu = {rmsnorm_swiglu, "C"}, swiglu = {swiglu, "C"},
  swiglu_backward = {swiglu_gradients, "dA"}, rmsnorm = {rmsnorm, "Y"}, rmsnorm_backward = {rmsnorm_gradients, "dX"},
  rmsnorm_gemm = {rmsnorm_gemm, "C"}, fp8_block_scales = {fp8_block_scales, "C"}, mla_decoding = {mla_decoding, "O"},
  grouped_gemm = {grouped_gemm, "Y"}, mamba2 = {mamba2, "out"}, gated_delta_rule = {gated_delta_rule, "out"},
  kimi_delta_attention = {kimi_delta_attention, "out"},
}

local function with(sizes, options)
  local all = {}
  for k, v in pairs(sizes) do all[k] = v end
  for k, v in pairs(options) do all[k] = v end
  return all
end

-- Every one of the options at every one of the sizes.
local function each(name, sizes, options, tiles, prepare)
  local formula, output = table.unpack(formulas[name])
  for _, z in ipairs(sizes) do
    for _, o in ipairs(options) do check(name, with(z, o), output, formula, tiles, prepare) end
  end
end

each("matmul_sum", {
  {m = 1, n = 1, k = 1}, {m = 32, n = 64, k = 32}, {m = 37, n = 53, k = 29},
}, {{}}, {{m = 16, n = 32, k = 8}, {m = 64, n = 5, k = 64}})

local gemm_sizes <const> = {
  {m = 3, n = 2, k = 5}, {m = 32, n = 32, k = 64}, {m = 37, n = 53, k = 29},
}
each("gemm", gemm_sizes, {
  {}, {a = "km"}, {b = "kn"}, {a = "km", b = "kn"}, {a = "mk", b = "nk", bias = true},
  {activation = "relu"}, {activation = "gelu", bias = true}, {activation = "silu"},
}, {{m = 16, n = 32, k = 16}, {m = 1, n = 64, k = 7}})
each("gemm", gemm_sizes, {{residual = true}, {residual = true, bias = true, activation = "silu", b = "kn"}}, {{m = 16, n = 32, k = 16}})
for _, z in ipairs{{m = 3, n = 4, k = 5, squares = 2}, {m = 21, n = 96, k = 40, squares = 32, residual = true, bias = true},
  {m = 5, n = 12, k = 7, squares = 12, a = "km", b = "kn"}} do
  local tiles <const> = {{m = 16, k = 16}, {m = 2, k = 3}}
  check("gemm", z, "C", gemm, tiles)
  check("gemm", z, "S", gemm_squares, tiles)
end
local function positive_sums(inputs)
  for i = 1, inputs.S and #inputs.S or 0 do inputs.S[i] = 0.25 + i % 5 end
end
each("rmsnorm_swiglu", gemm_sizes, {{}, {norm = false}, {eps = 0.5}, {sums = 3}}, {{m = 16, n = 32, k = 16}, {m = 1, n = 64, k = 7}}, positive_sums)
each("gemm", gemm_sizes, {{dtype = "f16"}, {dtype = "f32", out = "f16"}, {dtype = "f64"}})

local row_sizes <const> = {{m = 1, n = 3}, {m = 16, n = 32}, {m = 37, n = 53}}
each("rmsnorm", row_sizes, {{}, {eps = 0.5}, {dtype = "f64"}}, {{m = 4}, {m = 64, n = 5}})
each("swiglu", row_sizes, {{}, {dtype = "f64"}}, {{m = 4, n = 32}, {m = 64, n = 5}})
for i, output in ipairs{"dX", "dG"} do
  for _, z in ipairs(row_sizes) do
    for _, o in ipairs{{}, {rows = 3, eps = 0.5}, {rows = 64, dtype = "f64"}} do
      check("rmsnorm_backward", with(z, o), output, function(...) return (select(i, rmsnorm_gradients(...))) end,
        {{row = 2, part = 3}, {n = 5, column = 16, row = 1}})
    end
    check("swiglu_backward", z, ({"dA", "dB"})[i], function(...) return (select(i, swiglu_gradients(...))) end, {{m = 4, n = 32}})
  end
end

local small <const> = {b = 1, h = 2, m = 3, d = 4}
local even <const> = {b = 2, h = 2, m = 32, d = 16}
local ragged <const> = {b = 1, h = 4, m = 37, n = 53, d = 19}
local map <const> = {{m = 16, n = 32}, {m = 5, n = 8, d = 8}}
each("flash_attention", {small, even, ragged}, {
  {}, {causal = true}, {causal = false, hkv = 1}, {causal = true, hkv = 2, scale = 0.7},
  {window = 9}, {causal = true, window = 1}, {causal = true, window = 11},
  {softcap = 2.5}, {causal = true, window = 12, softcap = 1.5, hkv = 1},
}, map)
-- More queries than keys: the first ones see no key, in tiles of which some rows do see one.
each("flash_attention", {
  {b = 1, h = 1, m = 53, n = 37, d = 8}, {b = 1, h = 1, m = 48, n = 16, d = 8},
}, {{causal = true}, {causal = true, window = 3}, {window = 30}}, map)
each("flash_attention", {{b = 1, h = 2, m = 20, n = 24, d = 8}},
  {{dtype = "f16"}, {dtype = "f32", causal = true}, {dtype = "f64"}})
for _, o in ipairs{{}, {causal = true, hkv = 1}, {causal = true, n = 37}, {window = 9, softcap = 1.5}} do
  check("flash_attention", with({b = 1, h = 2, m = 53, d = 8, lse = true}, o), "L", attention_sums, map)
  check("flash_attention", with({b = 1, h = 2, m = 53, d = 8, lse = true}, o), "O", flash_attention, map)
end

each("flash_decoding", {
  {b = 1, h = 4, n = 8, d = 4}, {b = 2, h = 4, n = 64, d = 16}, {b = 2, h = 4, n = 53, d = 19},
}, {
  {}, {hkv = 1}, {hkv = 2, splits = 1}, {splits = 3, scale = 0.3}, {hkv = 1, splits = 7},
}, {{key = 4, g = 1}, {key = 3, g = 3, d = 8}})
-- Splits without a key: 5 keys in 4 parts of 2, and fewer keys than parts.
each("flash_decoding", {{b = 1, h = 2, n = 5, d = 4}, {b = 1, h = 2, n = 1, d = 4}},
  {{splits = 4}, {}}, {{key = 1}})

-- Random positions are in the cache; then some are before it or behind it: there is one key at least, and n at most.
each("flash_decoding", {{b = 3, h = 4, n = 53, d = 19}}, {{positions = true}, {hkv = 2, splits = 3, positions = true, typical = 9}},
  {{key = 4, g = 1}})
each("flash_decoding", {{b = 4, h = 4, n = 53, d = 19}}, {{hkv = 2, splits = 3, positions = true}}, {{key = 5}}, function(inputs)
  for i, at in ipairs{0, -7, 52, 4000} do inputs.Pos[i] = at end
end)

-- What is stored of Q and of the caches, and nothing else: no element that the formula does not have.
do
  local function step(sizes, prepare)
    local bound = mr.examples.qkv_rope_step(sizes)
    local inputs, flat = bound:inputs{seed = 7}, {}
    if prepare then prepare(inputs) end
    for name, array in pairs(inputs) do flat[name] = elements(array) end
    local want = {qkv_rope_step(sizes, flat)}
    for _, tile in ipairs{{}, {k = 5, b = 2}, {k = 16, h = 2}} do
      local got = bound:reference(inputs, {tile = tile})
      for i, name in ipairs{"Q", "K", "V"} do
        local stored, has, others = {}, {}, 0
        for at, x in ipairs(elements(got[name])) do
          if want[i][at] then
            stored[#stored + 1], has[#has + 1] = want[i][at], x
          elseif x ~= 0 then
            others = others + 1
          end
        end
        local off = distance(has, stored)
        ok(off < TOLERANCE and others == 0, ("qkv_rope_step %s: %s in tiles %s"):format(describe(sizes), name, describe(tile)),
          ("distance %g, others %d"):format(off, others))
      end
    end
  end
  step{b = 1, k = 7, hq = 2, hkv = 1, d = 6, nmax = 3}
  step({b = 3, k = 7, hq = 1, hkv = 1, d = 4, nmax = 3, sums = 5}, function(inputs)
    for i = 1, #inputs.S do inputs.S[i] = 0.5 + i % 3 end
  end)
  step{b = 4, k = 7, hq = 2, hkv = 2, d = 6, nmax = 24, page = 4, pages = 26}
  step{b = 5, k = 24, hq = 4, hkv = 2, d = 8, nmax = 9, eps = 0.1}
  step({b = 4, k = 9, hq = 3, hkv = 1, d = 4, nmax = 5, table = "bf16"}, function(inputs)
    for i, at in ipairs{4, -1, 5, 0} do inputs.Pos[i] = at end
  end)
end

local backward_options <const> = {{}, {causal = true}, {hkv = 1, causal = true}, {n = 21, hkv = 2, scale = 0.4}, {n = 24, causal = true}}
for i, output in ipairs{"dQ", "dK", "dV"} do
  for _, z in ipairs{{b = 1, h = 2, m = 3, d = 4}, {b = 2, h = 4, m = 20, d = 9}} do
    for _, o in ipairs(backward_options) do
      check("attention_backward", with(z, o), output, function(...) return (select(i, attention_gradients(...))) end,
        {{m = 16, n = 8}, {m = 5, n = 32, d = 4}})
    end
  end
end

-- Random tables name pages that there are, random lengths are from 0 to beyond the last one; then some of each are others.
local paged_sizes <const> = {{b = 1, h = 4, n = 16, d = 4}, {b = 3, h = 4, n = 64, d = 16}, {b = 2, h = 4, n = 112, d = 19}}
local paged_options <const> = {{}, {hkv = 1, pages = 5}, {hkv = 2, splits = 1, page = 8}, {splits = 3, scale = 0.3, page = 4},
  {hkv = 1, splits = 7}}
each("paged_decoding", paged_sizes, paged_options, {{key = 16, g = 1}, {key = 3, g = 3, d = 8}})
each("paged_decoding", paged_sizes, {{positions = true}}, {{key = 16}}, function(inputs, z)
  for b = 1, z.b do inputs.Pos[b] = (b * 37 + z.n // 3) % z.n end
end)
-- Random numbers, and small integers, of which many are equal.
for i, output in ipairs{"Weights", "Experts"} do
  for _, z in ipairs{{m = 5, n = 1}, {m = 16, n = 8}, {m = 21, n = 37, k = 5, all = true}, {m = 8, n = 3, k = 3}} do
    for _, prepare in ipairs{false, function(inputs)
      for j = 1, #inputs.X do inputs.X[j] = j * 7 % 4 end
    end} do
      check("topk_routing", z, output, function(...) return (select(i, topk_routing(...))) end, {{m = 16}, {m = 3}}, prepare or nil)
    end
  end
end
-- Lists name each block once at most: the first ones of a cyclic order that begins elsewhere for each block of queries. Behind
-- their counts they have numbers of no block. Some lists are empty.
each("block_sparse_attention", {{b = 1, h = 2, m = 24, d = 4, rows = 8, keys = 4}, {b = 2, h = 4, m = 48, d = 9, rows = 16, keys = 8}}, {
  {}, {causal = true, longest = 3}, {hkv = 1, n = 64, keys = 16, longest = 4}, {hkv = 2, n = 32, causal = true, scale = 0.3},
}, {{key = 8}, {rows = 5, key = 12, d = 8}}, function(inputs, z)
  local there, lists = (z.n or z.m) // z.keys, z.b * z.h * z.m // z.rows
  local longest = z.longest or there
  for i = 0, lists - 1 do
    local count = i % 5 == 3 and 0 or 1 + i * 7 % longest
    inputs.Count[i + 1] = count
    for k = 0, longest - 1 do inputs.Blocks[i * longest + k + 1] = k < count and (i * 3 + k) % there or 1000 * i end
  end
end)
each("paged_decoding", paged_sizes, paged_options, {{key = 32}}, function(inputs, z)
  for b = 1, z.b do inputs.Length[b] = 1 + (b * 37 + z.n // 3) % z.n end
  for i = 1, #inputs.Table, 5 do inputs.Table[i] = i % 2 == 0 and -1 or 1000000 end
end)

-- dt > 0 and dA = cumsum(dt A) with A < 0, as a model has them; constant beyond the end.
local function decaying(inputs, z)
  local L = z.chunk or 256
  local c = (z.s + L - 1) // L
  local i = 0
  for _ = 1, z.b do
    for _ = 1, z.h do
      local A = -uniform(1, 16)
      for ch = 0, c - 1 do
        local sum = 0
        for l = 0, L - 1 do
          i = i + 1
          local dt = ch * L + l < z.s and exp(uniform(math.log(0.001), math.log(0.1))) or 0
          sum = sum + dt * A
          inputs.dt[i], inputs.dA[i] = dt, sum
        end
      end
    end
  end
end
local ssd_sizes <const> = {
  {b = 1, s = 4, h = 1, p = 2, n = 3, chunk = 4},
  {b = 2, s = 64, h = 2, p = 8, n = 16, chunk = 32},
  {b = 1, s = 90, h = 4, p = 7, n = 11, chunk = 37},
}
local state_tiles <const> = {{p = 4, n = 8, l = 16}, {p = 3, n = 32, l = 5}}
local scan_tiles <const> = {{l = 16, p = 4, k = 16}, {l = 5, p = 8, k = 8}, {l = 32, k = 3}}
for _, prepare in ipairs {false, decaying} do
  prepare = prepare or nil
  each("chunk_state", ssd_sizes, {{}, {g = 1, decay = "f16", out = "bf16"}}, state_tiles, prepare)
  each("chunk_scan", ssd_sizes, {{}, {D = false}, {z = true}, {z = true, D = false}}, scan_tiles,
    prepare)
  each("chunk_state", {ssd_sizes[3]}, {{g = 2}, {g = 4}}, state_tiles, prepare)
  each("chunk_scan", {ssd_sizes[3]}, {{g = 2}, {g = 4, z = true}}, scan_tiles, prepare)
end
each("chunk_state", {{b = 1, s = 20, h = 2, p = 4, n = 4}}, {{}})       -- one chunk of 256
each("chunk_scan", {{b = 1, s = 20, h = 2, p = 4, n = 4}}, {{}})

each("dequant_gemm", {
  {m = 2, n = 3, k = 8}, {m = 32, n = 32, k = 128}, {m = 37, n = 53, k = 88},
}, {
  {}, {wtype = "e2m1"}, {wtype = "i8"}, {wtype = "i4", group = 32}, {wtype = "e2m1", group = 8},
  {group = 24}, {wtype = "i4", group = 64, dtype = "f16"},
}, {{m = 16, n = 32, k = 16}, {m = 5, n = 8, k = 64}})

each("fp4_gemm", {{m = 2, n = 3, k = 16}, {m = 37, n = 53, k = 96}}, {{}, {dtype = "f16", out = "f32"}},
  {{m = 16, n = 32, k = 16}, {m = 5, n = 8, k = 64}})
each("fp4_gemm", {{m = 2, n = 3, k = 32}, {m = 37, n = 53, k = 96}}, {{format = "mxfp4"}},
  {{m = 16, n = 32, k = 16}, {m = 5, n = 8, k = 64}}, function(inputs)
    inputs.S:fill(function(i, j) return 2.0 ^ ((i * 3 + j) % 13 - 7) end)
  end)

each("conv2d", {
  {n = 1, c = 1, h = 3, w = 3, k = 1, r = 3, s = 3},
  {n = 2, c = 8, h = 8, w = 8, k = 8, r = 3, s = 3},
  {n = 2, c = 5, h = 13, w = 11, k = 7, r = 3, s = 2},
}, {{}, {pad = 1}, {stride = 2, pad = 1}, {stride = 3, pad = 2}},
  {{r = 1, s = 1, c = 4, p = 4, q = 8, k = 4}, {r = 2, s = 1, c = 3, n = 1, p = 3, q = 5}})
each("conv2d", {{n = 2, c = 9, h = 5, w = 6, k = 4, r = 1, s = 1}}, {{}, {stride = 2}},
  {{r = 1, s = 1, c = 4}})

for i, output in ipairs{"Loss", "Lse"} do
  for _, z in ipairs{{m = 3, n = 7}, {m = 20, n = 33, smoothing = 0.3}} do
    check("cross_entropy", z, output, function(...) return (select(i, cross_entropy(...))) end,
      {{m = 4, n = 8}, {m = 1, n = 5}}, function(inputs) inputs.Target[2] = -100 end)
  end
end

each("rmsnorm_gemm", {{m = 3, n = 2, k = 5}, {m = 37, n = 53, k = 29}}, {{}, {gain = false, eps = 0.1}, {out = "f32", dtype = "f16"}},
  {{m = 16, n = 32, k = 16}, {m = 1, n = 64, k = 7}})

each("fp8_block_scales", {{m = 3, n = 2, k = 5}, {m = 20, n = 37, k = 50}}, {{block = 16}, {block = 7, dtype = "e5m2"}, {}},
  {{m = 16, j = 4}, {m = 3, j = 16}})

each("mla_decoding", {{b = 2, h = 3, n = 37, d = 9, r = 4}, {b = 1, h = 5, n = 70, d = 8, r = 3}},
  {{}, {splits = 2}, {splits = 3, scale = 0.4}}, {{h = 2, key = 16, d = 4, head = 2}, {key = 5, h = 3}})

for _, z in ipairs{{m = 6, n = 5, k = 7, e = 3, block = 4}, {m = 20, n = 9, k = 12, e = 4, block = 8, blocks = 3}} do
  each("grouped_gemm", {z}, {{}, {gated = true}, {permute = true}, {permute = true, gated = true}}, {{i = 3, n = 4, k = 5}, {i = 8}}, function(inputs)
    for i = 1, #inputs.Token, 3 do inputs.Token[i] = i % 2 == 0 and -1 or 1000000 end
    inputs.Expert[2] = -1
  end)
end

for i, output in ipairs{"out", "final"} do
  local function formula(...) return (select(i, mamba2(...))) end
  for _, z in ipairs{{b = 1, s = 5, h = 1, p = 2, n = 3, chunk = 2}, {b = 2, s = 21, h = 4, p = 3, n = 5, chunk = 8, g = 2}} do
    for _, o in ipairs{{}, {init = true, D = false}, {z = true, decay = "f64"}} do
      check("mamba2", with(z, o), output, formula, {{t = 8, l = 3, j = 4, k = 2, p = 2}, {l = 2, k = 8, head = 2}},
        function(inputs)
          for j = 1, #inputs.A do inputs.A[j] = -uniform(1, 16) end
          for j = 1, #inputs.dt do inputs.dt[j] = exp(uniform(math.log(0.001), math.log(0.1))) end
        end)
    end
  end
end

-- Decays below 0, rates from 0 to 1.
local function forgetting(inputs)
  for i = 1, #inputs.g do inputs.g[i] = -exp(uniform(math.log(0.001), math.log(2))) end
  for i = 1, #inputs.beta do inputs.beta[i] = uniform(0, 1) end
end
for i, output in ipairs{"out", "final"} do
  local function formula(...) return (select(i, gated_delta_rule(...))) end
  for _, z in ipairs{{b = 1, s = 5, h = 1, k = 3, v = 2, chunk = 2}, {b = 2, s = 21, h = 4, k = 5, v = 6, chunk = 8, hk = 2}} do
    for _, o in ipairs{{}, {init = true, scale = 0.7}, {decay = "f64"}} do
      check("gated_delta_rule", with(z, o), output, formula, {{v = 2, vs = 1}, {head = 2, k = 2, vs = 2}}, forgetting)
    end
  end
  local function each_dim(...) return (select(i, kimi_delta_attention(...))) end
  for _, z in ipairs{{b = 1, s = 5, h = 1, k = 3, v = 2, chunk = 2}, {b = 2, s = 21, h = 2, k = 5, v = 6, chunk = 8}} do
    for _, o in ipairs{{}, {init = true, scale = 0.7}, {decay = "f64"}} do
      check("kimi_delta_attention", with(z, o), output, each_dim, {{v = 2, vs = 1}, {x = 4, vs = 2}}, forgetting)
    end
  end
end

-- Rounding as stored: near the exact answer, and not the same -------------------------------

for name, sizes in pairs {
  matmul_sum = {m = 32, n = 40, k = 64},
  gemm = {m = 32, n = 40, k = 64, bias = true, activation = "gelu"},
  flash_attention = {b = 1, h = 2, m = 40, d = 32, causal = true},
  flash_decoding = {b = 1, h = 4, hkv = 2, n = 100, d = 32},
  paged_decoding = {b = 8, h = 4, hkv = 2, n = 96, d = 32},
  topk_routing = {m = 16, n = 40, k = 3, dtype = "bf16"},
  block_sparse_attention = {b = 1, h = 2, m = 64, d = 32, rows = 32, keys = 16},
  attention_backward = {b = 1, h = 2, m = 40, d = 32, causal = true},
  chunk_state = ssd_sizes[2], chunk_scan = ssd_sizes[2],
  dequant_gemm = {m = 16, n = 40, k = 256},
  fp4_gemm = {m = 16, n = 40, k = 256},
  cross_entropy = {m = 32, n = 100},
  rmsnorm_gemm = {m = 16, n = 40, k = 256},
  qkv_rope_step = {b = 4, k = 256, hq = 2, hkv = 1, d = 32, nmax = 8},
  rmsnorm_swiglu = {m = 16, n = 40, k = 256}, rmsnorm = {m = 16, n = 100}, rmsnorm_backward = {m = 16, n = 100, rows = 4},
  swiglu = {m = 16, n = 100}, swiglu_backward = {m = 16, n = 100},
  fp8_block_scales = {m = 16, n = 40, k = 256},
  mla_decoding = {b = 2, h = 4, n = 100, d = 32, r = 8},
  grouped_gemm = {m = 16, n = 40, k = 64, e = 3, block = 16},
  mamba2 = {b = 1, s = 40, h = 2, p = 8, n = 8, chunk = 16},
  gated_delta_rule = {b = 1, s = 40, h = 2, k = 8, v = 8, chunk = 16},
  kimi_delta_attention = {b = 1, s = 20, h = 2, k = 8, v = 8, chunk = 8},
  conv2d = {n = 1, c = 16, h = 8, w = 8, k = 8, r = 3, s = 3},
} do
  local bound, output = mr.examples[name](sizes), formulas[name][2]
  local inputs = bound:inputs{seed = 3}
  local exact = elements(bound:reference(inputs)[output])
  local rounded = elements(bound:reference(inputs, {round = true})[output])
  local d = distance(rounded, exact)
  ok(d > 0 and d < 1e-2, name .. " with the roundings of bf16", "distance " .. d)
end

-- Searches find plans of all columns of a row at once, that checks accept ---------------------------------------------

for _, case in ipairs{{"h200", 8192, 14336, 2.1e-4}, {"a100", 8192, 14336, 4.6e-4}, {"h200", 1000, 512, 2e-5}, {"mi300x", 4096, 4096, 6e-5}} do
  local device, m, n, most = table.unpack(case)
  local found, why = mr.search(mr.examples.rmsnorm_backward{m = m, n = n}, mr.device(device), {measure = false, trials = 300})
  if ok(found, ("rmsnorm_backward of %d x %d on %s has a plan"):format(m, n, device), why) then
    ok(found.seconds < most, "  as fast as memory, nearly", found.seconds)
  end
end

-- Mistakes are reported ------------------------------------------------------------------------

for _, case in ipairs {
  {"flash_attention", {b = 1, h = 3, hkv = 2, m = 4, d = 4}, "hkv must divide h"},
  {"flash_attention", {b = 1, h = 1, m = 4, d = 4, scale = 0}, "scale must be positive"},
  {"flash_attention", {b = 1, h = 1, m = 4, d = 4, softcap = -1}, "softcap must be positive"},
  {"flash_attention", {b = 1, h = 1, m = 4, d = 4, window = 0}, "window must be an integer"},
  {"flash_attention", {b = 1, h = 1, m = 4, d = 4, hkv = 0}, "size of axis 'hkv' must be"},
  {"flash_decoding", {b = 1, h = 1, n = 4, d = 4, splits = 0}, "size of axis 'splits' must be"},
  {"flash_decoding", {b = 1, h = 1, n = 4, d = 4, scale = -1}, "scale must be positive"},
  {"flash_decoding", {b = 1, h = 3, hkv = 2, n = 4, d = 4}, "hkv must divide h"},
  {"flash_decoding", {b = 1, h = 1, n = 4, d = 4, typical = 0}, "typical must be at least 1"},
  {"qkv_rope_step", {b = 1, k = 4, hq = 1, hkv = 1, d = 5}, "d must be even"},
  {"qkv_rope_step", {b = 1, k = 4, hq = 1, hkv = 1, eps = -1}, "eps must be at least 0"},
  {"qkv_rope_step", {b = 1, k = 4, hq = 1, hkv = 1, nmax = 24, page = 12}, "page must be a power of two that divides nmax"},
  {"paged_decoding", {b = 1, h = 3, hkv = 2, n = 16, d = 4}, "hkv must divide h"},
  {"paged_decoding", {b = 1, h = 1, n = 24, d = 4}, "page must divide n"},
  {"paged_decoding", {b = 1, h = 1, n = 16, d = 4, page = "x"}, "size of axis 'page' must be"},
  {"paged_decoding", {b = 1, h = 1, n = 16, d = 4, pages = 0}, "size of axis 'pages' must be"},
  {"paged_decoding", {b = 1, h = 1, n = 16, d = 4, scale = -1}, "scale must be positive"},
  {"topk_routing", {m = 4, n = 4, k = 5}, "k must be at most n"},
  {"topk_routing", {m = 4, n = 4, k = 0}, "size of axis 'k' must be"},
  {"block_sparse_attention", {b = 1, h = 1, m = 100, d = 4}, "rows must divide m"},
  {"block_sparse_attention", {b = 1, h = 1, m = 128, n = 100, d = 4}, "keys must divide n"},
  {"block_sparse_attention", {b = 1, h = 1, m = 96, d = 4, rows = 96, keys = 24, causal = true}, "keys must be a power of two"},
  {"attention_backward", {b = 1, h = 3, hkv = 2, m = 4, d = 4}, "hkv must divide h"},
  {"attention_backward", {b = 1, h = 1, m = 4, d = 4, scale = 0}, "scale must be positive"},
  {"chunk_state", {b = 1, s = 4, h = 3, g = 2, p = 4, n = 4}, "g must divide h"},
  {"chunk_scan", {b = 1, s = 4, h = 3, g = 2, p = 4, n = 4}, "g must divide h"},
  {"chunk_state", {b = 1, s = 4, h = 1, p = 4, n = 4, chunk = 0}, "chunk must be at least 1"},
  {"chunk_scan", {b = 1, s = 4, h = 1, p = 4, n = 4, chunk = 0}, "chunk must be at least 1"},
  {"gemm", {m = 1, n = 1, k = 1, a = "nk"}, 'a must be "mk" or "km"'},
  {"gemm", {m = 1, n = 1, k = 1, activation = "tanh"}, 'activation must be'},
  {"gemm", {m = 1, n = 1, k = 1, dtype = "bf17"}, "unknown dtype 'bf17'; did you mean 'bf16'"},
  {"gemm", {m = 1, n = 6, k = 1, squares = 4}, "squares must divide n"},
  {"rmsnorm_swiglu", {m = 1, n = 1, k = 1, eps = -1}, "eps must be at least 0"},
  {"rmsnorm", {m = 1, n = 1, eps = -1}, "eps must be at least 0"},
  {"rmsnorm_backward", {m = 1, n = 1, eps = -1}, "eps must be at least 0"},
  {"rmsnorm_backward", {m = 1, n = 1, rows = 0}, "rows must be at least 1"},
  {"dequant_gemm", {m = 1, n = 1, k = 8, group = 0}, "group must be at least 1"},
  {"dequant_gemm", {m = 1, n = 1, k = 12}, "k must be a multiple of 8"},
  {"dequant_gemm", {m = 1, n = 1, k = 8, wtype = "i3"}, "wtype must be"},
  {"fp4_gemm", {m = 1, n = 1, k = 24}, "k must be a multiple of 16"},
  {"fp4_gemm", {m = 1, n = 1, k = 32, format = "fp4"}, "format must be"},
  {"cross_entropy", {m = 1, n = 1, smoothing = 2}, "smoothing must be from 0 to 1"},
  {"rmsnorm_gemm", {m = 1, n = 1, k = 1, eps = -1}, "eps must be at least 0"},
  {"fp8_block_scales", {m = 1, n = 1, k = 1, block = 0}, "block must be at least 1"},
  {"mla_decoding", {b = 1, h = 1, n = 1, scale = 0}, "scale must be positive"},
  {"grouped_gemm", {m = 1, n = 1, k = 1, e = 1, block = 0}, "block must be at least 1"},
  {"gated_delta_rule", {b = 1, s = 4, h = 3, hk = 2, k = 4, v = 4}, "hk must divide h"},
  {"gated_delta_rule", {b = 1, s = 4, h = 1, k = 4, v = 4, chunk = 0}, "chunk must be at least 1"},
  {"kimi_delta_attention", {b = 1, s = 4, h = 1, k = 4, v = 4, chunk = 0}, "chunk must be at least 1"},
  {"mamba2", {b = 1, s = 4, h = 3, g = 2, p = 4, n = 4}, "g must divide h"},
  {"mamba2", {b = 1, s = 4, h = 1, p = 4, n = 4, chunk = 0}, "chunk must be at least 1"},
  {"conv2d", {n = 1, c = 1, h = 2, w = 2, k = 1, r = 3, s = 3}, "larger than the image"},
  {"conv2d", {n = 1, c = 1, h = 2, w = 2, k = 1, r = 1, s = 1, stride = 0}, "stride must be at"},
  {"gemm", {m = 1, n = 1, k = 1, biass = true}, "biass"},
} do
  local good, message = pcall(mr.examples[case[1]], case[2])
  ok(not good, case[1] .. " refuses " .. describe(case[2]))
  like(message, "^[^:]*examples%.t%.lua:%d+: .*" .. case[3], "  and says where and why")
end

-- The demo shows its program; the figures of its plans are those that the documents have of the shipped program.
local demo <close> = assert(io.open(((arg[0]:match "^(.*/)") or "./") .. "../../examples/demo.lua"))
assert(load(demo:read "a":match "local text = %[%[(.-)%]%]"))()
local shown = attention{b = 2, h = 16, m = 8192, n = 8192, d = 128}
for _, name in ipairs{"serial", "overlap", "pingpong"} do
  tap.is(mr.load_plan("attention_" .. name, shown):simulate().seconds, mr.load_plan("attention_" .. name):simulate().seconds,
    "the demo predicts what the documents say: " .. name)
end

tap.done_testing()
