-- The layer of Mamba2: what its kernels compute on the CPU is the layer, position by position in Lua, at sizes of which some are ragged.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local exp = math.exp
local function silu(x) return x / (1 + exp(-x)) end

-- Numbers around 0, the same in each run.
local function numbers(seed)
  local state = seed
  return function(scale, offset)
    state = (state * 1103515245 + 12345) % 2147483648
    return (state / 2147483648 - 0.5) * 2 * (scale or 1) + (offset or 0)
  end
end

-- Arrays for all inputs: A is negative, time steps are around 0.1.
local function inputs_of(seq, seed)
  local draw, made = numbers(seed), {}
  local how = {A = {0.5, -1}, bias_dt = {0.5, -2}, g = {0.2, 1}, w_in = {0.3}, w_out = {0.3}}
  for _, t in ipairs(seq.tensors) do
    if t.role == "input" then
      made[t.name] = mr.array(t.dtype, t.shape, function() return draw(table.unpack(how[t.name] or {})) end)
    end
  end
  return made
end

-- The layer of one sequence after the other, its state after each position. -> numbers of output, in order
local function layer(z, x)
  local inner, mixed, w, eps = z.h * z.p, z.h * z.p + 2 * z.n, z.w or 4, z.eps or 1e-5
  local width, out = inner + mixed + z.h, {}
  for i = 0, z.b - 1 do
    local all, state = {}, {}
    for t = 1, z.s do
      local row = {}
      for c = 1, width do
        local sum = 0
        for k = 1, z.d do sum = sum + x.input[(i * z.s + t - 1) * z.d + k] * x.w_in[(c - 1) * z.d + k] end
        row[c] = sum
      end
      all[t] = row
      local xbc = {}
      for c = 1, mixed do
        local sum = x.bias_conv[c]
        for j = 1, w do
          local before = all[t + j - w]
          if before then sum = sum + x.w_conv[(c - 1) * w + j] * before[inner + c] end
        end
        xbc[c] = silu(sum)
      end
      local y, square = {}, 0
      for head = 1, z.h do
        local dt = math.log(1 + exp(row[inner + mixed + head] + x.bias_dt[head]))
        local decay = exp(dt * x.A[head])
        for p = 1, z.p do
          local at, sum = (head - 1) * z.p + p, 0
          for n = 1, z.n do
            local e = (at - 1) * z.n + n
            state[e] = decay * (state[e] or 0) + dt * xbc[at] * xbc[inner + n]
            sum = sum + xbc[inner + z.n + n] * state[e]
          end
          y[at] = (sum + x.D[head] * xbc[at]) * silu(row[at])
          square = square + y[at] ^ 2
        end
      end
      local scale = 1 / math.sqrt(square / inner + eps)
      for c = 1, z.d do
        local sum = 0
        for k = 1, inner do sum = sum + y[k] * scale * x.g[k] * x.w_out[(c - 1) * inner + k] end
        out[#out + 1] = sum
      end
    end
  end
  return out
end

local function distance(got, want)
  local off, all = 0, 0
  for i, x in ipairs(want) do off, all = off + (got[i] - x) ^ 2, all + x ^ 2 end
  return math.sqrt(off / all)
end

for i, z in ipairs{
  {b = 2, s = 64, d = 16, h = 4, p = 16, n = 16, chunk = 32},
  {b = 1, s = 77, d = 24, h = 6, p = 16, n = 32, chunk = 32, heads = 3},
  {b = 2, s = 37, d = 8, h = 3, p = 8, n = 16, chunk = 16, w = 3},
  {b = 1, s = 30, d = 16, h = 2, p = 16, n = 16, eps = 0.1},
} do
  local seq = mr.examples.mamba2_layer(z)
  local x, what = inputs_of(seq, i), ("%d x %d x %d, %d heads"):format(z.b, z.s, z.d, z.h)
  local want = layer(z, x)
  local off = distance(seq:reference(x).output, want)
  tap.ok(off < 0.02, what .. ": the references of its programs give the layer", off)
  local sp = seq:plan("h200", {trials = 30, measure = false, fresh = true})
  local good, problems = sp:check()
  if tap.ok(good, what .. ": legal", tostring(problems)) then
    off = distance(sp:compile{target = "host"}:run(x, {race = true}).output, want)
    tap.ok(off < 0.02, what .. ": its kernels do, and none races", off)
  end
end

local function refused(sizes, message)
  local good, said = pcall(mr.examples.mamba2_layer, sizes)
  tap.ok(not good and said:find(message, 1, true), message, said)
end
refused({b = 1, s = 8, d = 8, h = 4, p = 8, n = 8, heads = 3}, "heads must divide h")
refused({b = 1, s = 8, d = 8, h = 4, p = 8, n = 8, chunk = 0}, "chunk must be at least 1")
tap.done_testing()
