-- mamba2_layer: a layer of Mamba2 (Dao and Gu, "Transformers are SSMs", 2024), with one group of heads that share B and C:
--
--   z, x, B, C, dt = columns of input w_in^T
--   x, B, C = silu(a convolution of each column over w positions, and bias)
--   y = the scan of x by dt, A, B, C, with the term D x (as examples/mamba2.lua has it)
--   output = rmsnorm(y silu(z)) g w_out^T
--
-- The tensors between the kernels stay as the product in front has left them: kernels read their columns of it. The scan is in two
-- kernels, states and scan. The first carries the state of a head from chunk to chunk, and leaves the state before each. The second
-- takes heads one after the other, for which it multiplies C and B once, and leaves y silu(z) g and the sum of squares of each head's
-- part of a row. out_proj adds these up, and as it multiplies rows by the root mean square at the end, no kernel of its own normalises.
-- Decays are kept as exponents of 2: rate is the running sum of dt A in a chunk, and step is rate - log2(dt), so that 2^(rate - step)
-- is the weight of a position at a later one.
--
-- sizes    b batch, s sequence, d columns of the model, h heads, p head dim, n state
-- options  w      positions of the convolution (4)
--          chunk  (128)
--          heads  that a block takes one after the other; must divide h (the greatest divisor up to 10)
--          eps    (1e-5)
local mr = require "millrace"
local exp2, rowsum = mr.exp2, mr.rowsum

local LOG2E <const> = 1.4426950408889634

-- Y[b,s,c] = silu(B[c] + sum over w of W[c,w] X[b, s + w - 3, offset + c])
local conv = mr.program("mamba2_conv", function(p)
  local b, s, c, w = p:axes("b", "s", "c", "w")
  local width, offset = p:axis("width", p.width or c.size), p:option("offset", "integer", 0)
  local X, W, B, Y = p:input("X", {b, s, width}), p:input("W", {c, w}), p:input("B", {c}), p:output("Y", {b, s, c})
  local x, weights, bias = p:load("load_x", X, {b, s + w - (w.size - 1), offset + c}), p:load("load_w", W), p:load("load_b", B)
  Y:store("store_y", p:task("filter", function() return mr.silu(rowsum(x * weights, w) + bias):to "bf16" end))
end)

-- rate and step of each chunk, of dt = softplus(X[b, s, offset + h] + bias[h])
local steps = mr.program("mamba2_steps", function(p)
  local b, s, h = p:axes("b", "s", "h")
  local chunk, offset, width = p:option("chunk", "integer", 128), p:option("offset", "integer", 0), p:axis("width", p.width or h.size)
  local c, t = p:axis("c", (s.size + chunk - 1) // chunk), p:axis("t", chunk)
  local X, Bias, A = p:input("X", {b, s, width}), p:input("bias", {h}, "f32"), p:input("A", {h}, "f32")
  local Rate, Step = p:output("rate", {b, h, c, t}, "f32"), p:output("step", {b, h, c, t}, "f32")
  p:batch(b, c)
  local x, bias, a = p:load("load_dt", X, {b, c * chunk + t, offset + h}), p:load("load_bias", Bias), p:load("load_a", A)
  local rate, step = p:task("sums", function()
    local v = x + bias
    local dt = mr.where(v:gt(20), v, mr.log(1 + exp2(mr.min(v, 20) * LOG2E)))
    local rate = mr.cumsum(dt * (a * LOG2E), t)
    return rate, rate - mr.log(mr.max(dt, 1e-30)) * LOG2E
  end)
  Rate:store("store_rate", rate, {b, h, c, t})
  Step:store("store_step", step, {b, h, c, t})
end)

-- state[b,c,h] = the state before chunk c, of x and B in columns of X: those of head h, and those from `first` on
local states = mr.program("mamba2_states", function(p)
  local b, s, h, hd, n = p:axes("b", "s", "h", "p", "n")
  local chunk = p:option("chunk", "integer", 128)
  local c, j = p:axis("c", (s.size + chunk - 1) // chunk), p:axis("j", chunk)
  local first = h.size * hd.size
  local X = p:input("X", {b, s, p:axis("width", first + 2 * n.size)})
  local Rate, Step = p:input("rate", {b, h, c, j}, "f32"), p:input("step", {b, h, c, j}, "f32")
  local State = p:output("state", {b, c, h, hd, n})
  p:batch(b, h)
  local state = p:carry("running", {hd, n}, 0)
  p:loop(c, {batch = true}, function()
    State:store("store_state", p:task("before", function() return state:to "bf16" end))
    local last, step = p:load("load_last", Rate, {b, h, c, chunk - 1}), p:load("load_step", Step)
    local x, B = p:load("load_x", X, {b, c * chunk + j, h * hd.size + hd}), p:load("load_b", X, {b, c * chunk + j, first + n})
    local add = p:mma("mma_state", p:task("scale", function() return (x * exp2(last - step)):to "bf16" end), B)
    p:task("advance", function() state:set(state * exp2(last) + add) end)
  end)
end)

-- Y = y silu(z) G, squares = the sum of (y silu(z))^2 of each head; x, B and C are columns of X, z those of Z.
local scan = mr.program("mamba2_scan", function(p)
  local b, s, h, hd, n = p:axes("b", "s", "h", "p", "n")
  local chunk, heads = p:option("chunk", "integer", 128), p:option("heads", "integer", 1)
  local c, l, k = p:axis("c", (s.size + chunk - 1) // chunk), p:axis("l", chunk), p:axis("k", chunk)
  local group, each = p:axis("group", h.size // heads), p:axis("each", heads)
  local first = h.size * hd.size
  local X, Z = p:input("X", {b, s, p:axis("width", first + 2 * n.size)}), p:input("Z", {b, s, p:axis("zwidth", p.zwidth or first)})
  local Rate, Step = p:input("rate", {b, h, c, l}, "f32"), p:input("step", {b, h, c, l}, "f32")
  local State, D, G = p:input("state", {b, c, h, hd, n}), p:input("D", {h}, "f32"), p:input("G", {h, hd})
  local Y, Squares = p:output("Y", {b, s, h, hd}), p:output("squares", {b, s, h}, "f32")
  local head = group * heads + each
  local function pos(i) return c * chunk + i end
  p:batch(b, c, group)
  local C, B = p:load("load_c", X, {b, pos(l), first + n.size + n}), p:load("load_b", X, {b, pos(k), first + n})
  local product = p:mma("mma_cb", C, B)
  local cb = p:task("round_cb", function() return product:to "bf16" end)
  p:loop(each, {batch = true}, function()
    local rate, step = p:load("load_rate", Rate, {b, head, c, l}), p:load("load_step", Step, {b, head, c, k})
    local acc = p:carry("y", {l, hd}, 0)
    acc:add(p:mma("mma_c", C, p:load("load_state", State, {b, c, head, hd, n})))
    p:task("decay", function() acc:set(acc * exp2(rate)) end)
    local w = p:task("weights", function()
      return mr.where(k:index():le(l:index()), cb * exp2(rate - step), 0):to "bf16"
    end)
    local x = p:load("load_x", X, {b, pos(k), head * hd.size + hd})
    acc:add(p:mma("mma_x", w, x))
    local z = p:load("load_z", Z, {b, pos(l), head * hd.size + hd})
    local d, g = p:load("load_d", D, {head}), p:load("load_g", G, {head, hd})
    local y, squares = p:task("gate", function()
      local y = (acc + d * x:at(k, l)) * mr.silu(z)
      return (y * g):to "bf16", rowsum(y * y, hd)
    end)
    Y:store("store_y", y, {b, pos(l), head, hd})
    Squares:store("store_squares", squares, {b, pos(l), head})
  end)
end)

-- C[m,n] = (sum over k of A[m,k] B[n,k]) / sqrt((sum over h of squares[m,h]) / k + eps)
local normalised = mr.program("mamba2_out", function(p)
  local m, n, k, h = p:axes("m", "n", "k", "h")
  local eps = p:option("eps", "number", 1e-5)
  local A, B, Squares, C = p:input("A", {m, k}), p:input("B", {n, k}), p:input("squares", {m, h}, "f32"), p:output("C", {m, n})
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  local squares = p:load("load_squares", Squares)
  C:store("store_c", p:task("normalise", function() return (c * mr.rsqrt(rowsum(squares, h) / k.size + eps)):to "bf16" end))
end)

return mr.sequence("mamba2_layer", function(q)
  local b, s, d, h, p, n = q:sizes("b", "s", "d", "h", "p", "n")
  local w, chunk, eps = q:option("w", "integer", 4), q:option("chunk", "integer", 128), q:option("eps", "number", 1e-5)
  local most = 10
  while h % most ~= 0 do most = most - 1 end
  local heads = q:option("heads", "integer", most)
  q:check(heads >= 1 and h % heads == 0, "heads must divide h")
  q:check(chunk >= 1, "chunk must be at least 1")
  local inner, chunks = h * p, (s + chunk - 1) // chunk
  local mixed, width = inner + 2 * n, 2 * inner + 2 * n + h

  local input, output = q:input("input", {b, s, d}), q:output("output", {b, s, d})
  local w_in, w_out, g = q:input("w_in", {width, d}), q:input("w_out", {d, inner}), q:input("g", {inner})
  local w_conv, bias_conv = q:input("w_conv", {mixed, w}), q:input("bias_conv", {mixed})
  local bias_dt, A, D = q:input("bias_dt", {h}, "f32"), q:input("A", {h}, "f32"), q:input("D", {h}, "f32")
  local all, xbc = q:temp("all", {b, s, width}), q:temp("xbc", {b, s, mixed})
  local rate, step = q:temp("rate", {b, h, chunks, chunk}, "f32"), q:temp("step", {b, h, chunks, chunk}, "f32")
  local state, y, squares = q:temp("state", {b, chunks, h, p, n}), q:temp("y", {b, s, inner}), q:temp("squares", {b, s, h}, "f32")

  q:call("in_proj", mr.examples.gemm{m = b * s, n = width, k = d}, {A = input, B = w_in, C = all})
  q:call("steps", steps{b = b, s = s, h = h, chunk = chunk, width = width, offset = width - h},
    {X = all, bias = bias_dt, A = A, rate = rate, step = step})
  q:call("conv", conv{b = b, s = s, c = mixed, w = w, width = width, offset = inner}, {X = all, W = w_conv, B = bias_conv, Y = xbc})
  q:call("states", states{b = b, s = s, h = h, p = p, n = n, chunk = chunk}, {X = xbc, rate = rate, step = step, state = state})
  q:call("scan", scan{b = b, s = s, h = h, p = p, n = n, chunk = chunk, heads = heads, zwidth = width},
    {X = xbc, Z = all, rate = rate, step = step, state = state, D = D, G = g, Y = y, squares = squares})
  q:call("out_proj", normalised{m = b * s, n = d, k = inner, h = h, eps = eps}, {A = y, B = w_out, squares = squares, C = output})
end)
