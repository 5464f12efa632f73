-- Attention without a softmax, computed in chunks of positions with the state S[k,v] = sum over earlier positions of k v:
--
--   o[t] = scale (sum over s <= t of (q[t] . k[s]) v[s]),   and the state behind the last position
--
-- (Katharopoulos et al., "Transformers are RNNs", 2020); its gradients; and retention, in which head h forgets by the factor
-- 1 - 2^(-5-h) a position: o[t] = scale (sum over s <= t of (1 - 2^(-5-h))^(t-s) (q[t] . k[s]) v[s]) (RetNet, 2023).
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum = formulas.sum
local exp2, where = mr.exp2, mr.where

-- The axes that all have: batch, position, head, dims of keys and values, and positions of a chunk in two roles.
local function axes(p)
  local b, s, h, k, v = p:axes("b", "s", "h", "k", "v")
  local chunk = p:option("chunk", "integer", 64)
  local c, i, j = p:axis("c", (s.size + chunk - 1) // chunk), p:axis("i", chunk), p:axis("j", chunk)
  return b, s, h, k, v, c, i, j, chunk
end

local function dot(size, x, y) return sum(0, size - 1, function(n) return x(n) * y(n) end) end

local forward = {
  name = "linear_attention",
  program = mr.program("linear_attention", function(p)
    local b, s, h, k, v, c, i, j, chunk = axes(p)
    local Q, K, V = p:input("Q", {b, s, h, k}, "f16"), p:input("K", {b, s, h, k}, "f16"), p:input("V", {b, s, h, v}, "f16")
    local O, Final = p:output("O", {b, s, h, v}, "f32"), p:output("Final", {b, h, k, v}, "f32")
    p:batch(b, h)
    local state = p:carry("state", {k, v}, 0)
    p:loop(c, {batch = true}, function()
      local q = p:load("load_q", Q, {b, c * chunk + i, h, k})
      local kj, vj = p:load("load_k", K, {b, c * chunk + j, h, k}), p:load("load_v", V, {b, c * chunk + j, h, v})
      local qk = p:mma("mma_qk", q, kj)
      local weights = p:task("mask", function() return where(j:index():le(i:index()), qk, 0):to "f16" end)
      local o = p:carry("o", {i, v}, 0)
      o:add(p:mma("mma_before", q, p:task("before", function() return state:to "f16" end)))
      o:add(p:mma("mma_inside", weights, vj))
      state:add(p:mma("mma_state", kj, vj))
      O:store("store_o", p:task("scale", function() return o * k.size ^ -0.5 end), {b, c * chunk + i, h, v})
    end)
    Final:store("store_final", state)
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 1, s = 88, h = 1, k = 64, v = 32}},
  usual = {{b = 8, s = 1024, h = 32, k = 128, v = 128}, {b = 1, s = 8192, h = 16, k = 128, v = 128}},
  formula = function(t, n)
    local function score(b, h, x, y)
      return dot(n.k, function(k) return t.Q(b, x, h, k) end, function(k) return t.K(b, y, h, k) end)
    end
    return {
      O = function(b, x, h, v)
        return n.k ^ -0.5 * sum(0, x, function(y) return score(b, h, x, y) * t.V(b, y, h, v) end)
      end,
      Final = function(b, h, k, v) return sum(0, n.s - 1, function(y) return t.K(b, y, h, k) * t.V(b, y, h, v) end) end,
    }
  end,
}

local backward = {
  name = "linear_attention_backward",
  program = mr.program("linear_attention_backward", function(p)
    local b, s, h, k, v, c, i, j, chunk = axes(p)
    local scale = k.size ^ -0.5
    local Q, K, V = p:input("Q", {b, s, h, k}, "f16"), p:input("K", {b, s, h, k}, "f16"), p:input("V", {b, s, h, v}, "f16")
    local dO = p:input("dO", {b, s, h, v}, "f16")
    local dQ, dK, dV = p:output("dQ", {b, s, h, k}, "f32"), p:output("dK", {b, s, h, k}, "f32"), p:output("dV", {b, s, h, v}, "f32")
    p:phase("queries", function()
      p:batch(b, h)
      local state = p:carry("state", {k, v}, 0)
      p:loop(c, {batch = true}, function()
        local dout = p:load("load_do", dO, {b, c * chunk + i, h, v})
        local kj, vj = p:load("load_k", K, {b, c * chunk + j, h, k}), p:load("load_v", V, {b, c * chunk + j, h, v})
        local dov = p:mma("mma_dov", dout, vj)
        local weights = p:task("mask", function() return where(j:index():le(i:index()), dov, 0):to "f16" end)
        local dq = p:carry("dq", {i, k}, 0)
        dq:add(p:mma("mma_before", dout, p:task("before", function() return state:to "f16" end)))
        dq:add(p:mma("mma_inside", weights, kj))
        state:add(p:mma("mma_state", kj, vj))
        dQ:store("store_dq", p:task("scale", function() return dq * scale end), {b, c * chunk + i, h, k})
      end)
    end)
    p:phase("keys", function()                            -- from the last chunk to the first
      p:batch(b, h)
      local state = p:carry("later", {k, v}, 0)           -- the sum over later positions of scale q dO
      p:loop(c, {batch = true}, function()
        local at = (c.size - 1 - c) * chunk
        local ki, vi = p:load("load_ki", K, {b, at + i, h, k}), p:load("load_vi", V, {b, at + i, h, v})
        local q, dout = p:load("load_qj", Q, {b, at + j, h, k}), p:load("load_doj", dO, {b, at + j, h, v})
        local after = p:task("after", function() return state:to "f16" end)
        local vdo, kq = p:mma("mma_vdo", vi, dout), p:mma("mma_kq", ki, q)
        local wk, wv = p:task("masks", function()
          local inside = i:index():le(j:index())
          return where(inside, vdo * scale, 0):to "f16", where(inside, kq * scale, 0):to "f16"
        end)
        local dk, dv = p:carry("dk", {i, k}, 0), p:carry("dv", {i, v}, 0)
        dk:add(p:mma("mma_dk", vi, after))
        dk:add(p:mma("mma_dk_inside", wk, q))
        dv:add(p:mma("mma_dv", ki, after))
        dv:add(p:mma("mma_dv_inside", wv, dout))
        local scaled = p:task("scale_q", function() return (q * scale):to "f16" end)
        state:add(p:mma("mma_later", scaled, dout))
        dK:store("store_dk", dk, {b, at + i, h, k})
        dV:store("store_dv", dv, {b, at + i, h, v})
      end)
    end)
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 1, s = 88, h = 1, k = 64, v = 64}},
  usual = {{b = 8, s = 1024, h = 32, k = 128, v = 128}, {b = 1, s = 8192, h = 16, k = 128, v = 128}},
  formula = function(t, n)
    local scale = n.k ^ -0.5
    local function score(b, h, x, y) return dot(n.k, function(k) return t.Q(b, x, h, k) end, function(k) return t.K(b, y, h, k) end) end
    local function gain(b, h, x, y) return dot(n.v, function(v) return t.dO(b, x, h, v) end, function(v) return t.V(b, y, h, v) end) end
    return {
      dQ = function(b, x, h, k) return scale * sum(0, x, function(y) return gain(b, h, x, y) * t.K(b, y, h, k) end) end,
      dK = function(b, y, h, k) return scale * sum(y, n.s - 1, function(x) return gain(b, h, x, y) * t.Q(b, x, h, k) end) end,
      dV = function(b, y, h, v) return scale * sum(y, n.s - 1, function(x) return score(b, h, x, y) * t.dO(b, x, h, v) end) end,
    }
  end,
}

local retention = {
  name = "retention",
  program = mr.program("retention", function(p)
    local b, s, h, k, v, c, i, j, chunk = axes(p)
    local Q, K, V = p:input("Q", {b, s, h, k}, "f16"), p:input("K", {b, s, h, k}, "f16"), p:input("V", {b, s, h, v}, "f16")
    local O = p:output("O", {b, s, h, v}, "f16")
    p:batch(b, h)
    local state = p:carry("state", {k, v}, 0)
    p:loop(c, {batch = true}, function()
      local q = p:load("load_q", Q, {b, c * chunk + i, h, k})
      local kj, vj = p:load("load_k", K, {b, c * chunk + j, h, k}), p:load("load_v", V, {b, c * chunk + j, h, v})
      local qk = p:mma("mma_qk", q, kj)
      local function keep(positions) return exp2(positions * mr.log2(1 - exp2(-5.0 - h:index()))) end
      local weights = p:task("weights", function()
        return where(j:index():le(i:index()), qk * keep(i:index() - j:index()), 0):to "f16"
      end)
      local o = p:carry("o", {i, v}, 0)
      o:add(p:mma("mma_before", q, p:task("before", function() return state:to "f16" end)))
      p:task("decay", function() o:set(o * keep(i:index() + 1)) end)
      o:add(p:mma("mma_inside", weights, vj))
      local faded = p:task("fade", function() return (vj * keep(chunk - 1 - j:index())):to "f16" end)
      p:task("forget", function() state:set(state * keep(chunk)) end)
      state:add(p:mma("mma_state", kj, faded))
      O:store("store_o", p:task("scale", function() return (o * k.size ^ -0.5):to "f16" end), {b, c * chunk + i, h, v})
    end)
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 1, s = 88, h = 3, k = 64, v = 32}},
  usual = {{b = 8, s = 4096, h = 32, k = 128, v = 128}},
  formula = function(t, n)
    return {O = function(b, x, h, v)
      return n.k ^ -0.5 * sum(0, x, function(y)
        local score = dot(n.k, function(k) return t.Q(b, x, h, k) end, function(k) return t.K(b, y, h, k) end)
        return (1 - 2 ^ (-5 - h)) ^ (x - y) * score * t.V(b, y, h, v)
      end)
    end}
  end,
}

return {forward, backward, retention}
